/* Numbers, sizes, owners and elements from the command line. */
#include "cli/cli.h"

#include "util/redact.h"

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

bool spill_cli_parse_seq(const spill_invocation_t *invocation, const char *text, int64_t *seq)
{
    if (spill_cli_parse_number(text, seq))
        return true;
    spill_cli_usage(invocation, "SEQ: '%s' is not a sequence number: " SPILL_CLI_NUMBER, text);
    return false;
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

/* An integer that 64 bits cannot hold is no plain word either. */
static bool is_integer(const char *text)
{
    size_t sign = text[0] == '-';
    size_t digits = strspn(text + sign, "0123456789");
    return digits > 0 && text[sign + digits] == '\0';
}

bool spill_cli_parse_owner(const spill_invocation_t *invocation, const char *text, bson_t *storage,
                           spill_value_t *owner)
{
    spill_error_t error;
    if (spill_value_from_json(text, strlen(text), storage, owner, &error) == SPILL_OK)
        return true;
    if (is_integer(text)) {
        spill_cli_usage(invocation,
                        "OWNER: %s does not fit into 64 bits; if it is meant as text, write it in "
                        "quotes: '\"%s\"'",
                        text, text);
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
