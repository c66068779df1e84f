/* Which $-notation of Extended JSON libbson refuses, in our own words. */
#include "bson/value.h"
#include "util/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_MAX = 60 };

/* An object of the text. Its first name begins with '$'. */
typedef struct notation {
    const char *start;
    size_t size;
    const char *name; /* without its quotes */
    size_t name_size;
} notation_t;

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && strchr(" \t\r\n", *at))
        at++;
    return at;
}

/* `at` is a quote. Returns the end of the string. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : end;
}

/* `at` is an opening brace. Returns the end of the object. */
static const char *skip_object(const char *at, const char *end)
{
    int depth = 0;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        depth += *at == '{' ? 1 : *at == '}' ? -1 : 0;
        at++;
        if (depth == 0)
            break;
    }
    return at;
}

/* Find the next notation from *at on, and set *at behind its brace. */
static bool find_notation(const char **at, const char *end, notation_t *found)
{
    while (*at < end) {
        if (**at == '"') {
            *at = skip_string(*at, end);
            continue;
        }
        const char *brace = (*at)++;
        const char *quote = *brace == '{' ? skip_space(*at, end) : end;
        if (end - quote < 2 || quote[0] != '"' || quote[1] != '$')
            continue;
        *found = (notation_t){.start = brace,
                              .size = (size_t)(skip_object(brace, end) - brace),
                              .name = quote + 1,
                              .name_size = (size_t)(skip_string(quote, end) - quote) - 2};
        return true;
    }
    return false;
}

static bool is_refused(const notation_t *notation)
{
    bson_t document;
    bson_error_t ignored;
    char *wrapped = bson_strdup_printf("{\"v\":%.*s}", (int)notation->size, notation->start);
    bool refused = !bson_init_from_json(&document, wrapped, -1, &ignored);
    if (!refused)
        bson_destroy(&document);
    bson_free(wrapped);
    return refused;
}

/* Is the text a number beyond the largest double? */
static bool is_beyond(const char *text, size_t size)
{
    if (size == 0)
        return false;
    char *number = bson_strdup_printf("%.*s", (int)size, text); /* strndup would read one more */
    bool beyond = isinf(strtod(number, NULL));
    bson_free(number);
    return beyond;
}

/* Without a wrong notation, libbson refuses numbers beyond the largest double. */
static spill_code_t fail_number(const char *text, const char *end, spill_error_t *error)
{
    const char *at = text;
    while (at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        size_t size = 0;
        while (at + size < end && at[size] != '\0' && strchr("+-.0123456789eE", at[size]))
            size++;
        if (is_beyond(at, size))
            break;
        at += size > 0 ? size : 1;
    }
    return spill_fail(error, SPILL_PARSE, "malformed JSON at offset %zu: a number is out of range",
                      (size_t)(at < end ? at - text : 0));
}

spill_code_t spill_json_refuse(const char *text, size_t size_bytes, spill_error_t *error)
{
    const char *at = text, *end = text + size_bytes;
    notation_t next, worst = {.start = NULL};
    /* The innermost one: it lies within the one before. */
    while (find_notation(&at, end, &next)) {
        bool inside = !worst.start || next.start < worst.start + worst.size;
        if (inside && is_refused(&next))
            worst = next;
    }
    if (!worst.start)
        return fail_number(text, end, error);
    bool cut = worst.size > SHOWN_MAX;
    return spill_fail(error, SPILL_PARSE,
                      "malformed Extended JSON at offset %zu: %.*s%s is not a value of the type "
                      "that %.*s names",
                      (size_t)(worst.start - text), (int)(cut ? SHOWN_MAX : worst.size),
                      worst.start, cut ? "..." : "", (int)worst.name_size, worst.name);
}
