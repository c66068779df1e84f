/* Times and durations from the command line. */
#include "cli/cli.h"

#include "bson/value.h"

#include <ctype.h>
#include <string.h>

bool spill_cli_parse_duration(const char *text, int64_t *seconds)
{
    static const struct {
        const char *unit;
        int64_t seconds;
    } units[] = {{"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}, {"w", 7 * 86400}};
    size_t digits = strspn(text, "0123456789");
    char number[20];
    if (digits == 0 || digits >= sizeof number)
        return false;
    memcpy(number, text, digits);
    number[digits] = '\0';
    if (!spill_cli_parse_number(number, seconds))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(text + digits, units[i].unit) == 0)
            return !__builtin_mul_overflow(*seconds, units[i].seconds, seconds);
    return false;
}

bool spill_cli_parse_time(const char *text, int64_t now_ms, int64_t *time_ms)
{
    int64_t seconds;
    if (spill_cli_parse_duration(text, &seconds))
        return !__builtin_mul_overflow(seconds, 1000, time_ms) &&
               !__builtin_sub_overflow(now_ms, *time_ms, time_ms);
    if (strspn(text, "0123456789-+:.TZ") != strlen(text))
        return false;
    bool day = strlen(text) == strlen("2025-01-31");
    char *json = bson_strdup_printf("{\"$date\": \"%s%s\"}", text, day ? "T00:00:00Z" : "");
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    bool good = spill_value_from_json(json, strlen(json), &storage, &value, NULL) == SPILL_OK &&
                value.type == BSON_TYPE_DATE_TIME;
    if (good)
        *time_ms = spill_value_int64(&value);
    bson_destroy(&storage);
    bson_free(json);
    return good;
}
