/* Numbers, sizes, times, owners, elements and names of layouts from the command line. */
#include "cli/cli.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "util/error.h"
#include "util/text.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX (INT64_C(1) << 53)

static const struct {
    const char *suffix;
    int64_t factor;
} UNITS[] = {{"", 1},
             {"B", 1},
             {"KB", 1000},
             {"MB", 1000 * 1000},
             {"GB", 1000 * 1000 * 1000},
             {"KiB", 1 << 10},
             {"MiB", 1 << 20},
             {"GiB", 1 << 30}};

/* Parse digits only; *rest is what follows them. */
static bool parse_digits(const char *text, int64_t *number, const char **rest)
{
    *number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        *number = *number * 10 + (*at - '0');
        if (*number > NUMBER_MAX)
            return false;
    }
    *rest = at;
    return at != text;
}

bool spill_cli_parse_number(const char *text, int64_t *number)
{
    const char *rest = NULL;
    return parse_digits(text, number, &rest) && *rest == '\0';
}

bool spill_cli_parse_size(const char *text, int64_t *size)
{
    const char *rest = NULL;
    if (!parse_digits(text, size, &rest))
        return false;
    rest += *rest == ' ';
    for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
        if (strcasecmp(rest, UNITS[i].suffix) == 0)
            return !__builtin_mul_overflow(*size, UNITS[i].factor, size) && *size <= NUMBER_MAX;
    return false;
}

/* The reason if the digits of `text`, which no number of JSON has, are no plain word; else NULL. */
static const char *no_integer(const char *text)
{
    size_t sign = text[0] == '-';
    size_t digits = strspn(text + sign, "0123456789");
    if (digits == 0 || text[sign + digits] != '\0')
        return NULL;
    return text[sign] == '0' ? "is not a number, because it begins with 0"
                             : "does not fit into 64 bits";
}

bool spill_cli_parse_owner(const spill_invocation_t *invocation, const char *text, bson_t *storage,
                           spill_value_t *owner)
{
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, owner, &error) == SPILL_OK)
        return true;
    const char *reason = no_integer(text);
    if (reason) {
        spill_cli_usage(invocation,
                        "OWNER: %s %s; if it is meant as text, write it in quotes: '\"%s\"'", text,
                        reason, text);
        return false;
    }
    if (text[0] == '{' || text[0] == '[' || text[0] == '"') {
        spill_cli_usage(invocation, "OWNER: %s", error.message);
        return false;
    }
    if (!bson_utf8_validate(text, strlen(text), false)) {
        spill_cli_usage(invocation, "OWNER is not UTF-8");
        return false;
    }
    bson_reinit(storage);
    *owner = spill_value_from_utf8(storage, text);
    return true;
}

bool spill_cli_parse_element(const spill_invocation_t *invocation, const char *text,
                             bson_t *storage, spill_value_t *element)
{
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, element, &error) == SPILL_OK)
        return true;
    char *shown = spill_redact(text); /* redact before cutting */
    spill_cli_usage(invocation,
                    "'%.60s%s' is not Extended JSON: %s; a string needs quotes: '\"text\"'", shown,
                    strlen(shown) > 60 ? "..." : "", error.message);
    bson_free(shown);
    return false;
}

bool spill_cli_parse_id(const spill_invocation_t *invocation, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id;
    bool good = spill_cli_parse_element(invocation, text, &storage, &id);
    bson_destroy(&storage);
    return good;
}

/* ---- times and durations --------------------------------------------------------------------- */

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

/* ---- options of a definition ----------------------------------------------------------------- */

spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error)
{
    if (!name || spill_layout_of_name(name, layout))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "there is no layout '%s'; the layouts are: outlier, capped, reference, "
                      "subset, bucket",
                      name);
}

spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error)
{
    if (!name || spill_keep_of_name(name, keep))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID, "--keep must be 'newest' or 'oldest', not '%s'", name);
}
