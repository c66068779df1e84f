#include "definition/schema.h"

#include "bson/value.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the calendar ---------------------------------------------------------------------------- */

#define MS_OF_HOUR INT64_C(3600000)
#define MS_OF_DAY (24 * MS_OF_HOUR)
/* 0000-01-01 and 10000-01-01, in days since 1970-01-01. */
#define FIRST_DAY INT64_C(-719528)
#define END_DAY INT64_C(2932897)

static int64_t floor_div(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

typedef struct date {
    int year;
    int month; /* from 1 */
    int day;   /* from 1 */
} date_t;

/* Compute the Gregorian date, in eras of 400 years that begin in March: leap days come last. */
static date_t date_of(int64_t days)
{
    enum { DAYS_OF_ERA = 146097, SHIFT = 719468 }; /* 0000-03-01 */
    int64_t shifted = days + SHIFT;
    int64_t era = floor_div(shifted, DAYS_OF_ERA);
    int64_t in_era = shifted - era * DAYS_OF_ERA;
    int64_t year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year + year / 4 - year / 100);
    int64_t march = (5 * in_year + 2) / 153;
    int month = (int)(march < 10 ? march + 3 : march - 9);
    return (date_t){.year = (int)(year + era * 400 + (month <= 2)),
                    .month = month,
                    .day = (int)(in_year - (153 * march + 2) / 5 + 1)};
}

/* ISO 8601: a week belongs to the year of its Thursday. */
static void week_of(int64_t days, int *year, int *week)
{
    int64_t from_monday = days + 3 - 7 * floor_div(days + 3, 7); /* 1970-01-01 was a Thursday */
    int64_t thursday = days - from_monday + 3;
    date_t date = date_of(thursday);
    int64_t first = thursday;
    while (date_of(first - 7).year == date.year)
        first -= 7;
    *year = date.year;
    *week = (int)((thursday - first) / 7) + 1;
}

spill_code_t spill_window_of_time(spill_window_t window, int64_t time_ms,
                                  char text[SPILL_WINDOW_SIZE], spill_error_t *error)
{
    int64_t days = floor_div(time_ms, MS_OF_DAY);
    text[0] = '\0';
    /* The first or last week may belong to a year outside the range. */
    if (days < FIRST_DAY + 7 || days >= END_DAY - 7)
        return spill_fail(error, SPILL_INVALID,
                          "the time %" PRId64 " ms since 1970 is outside the years 0 to 9999",
                          time_ms);
    date_t date = date_of(days);
    int hour = (int)floor_div(time_ms - days * MS_OF_DAY, MS_OF_HOUR);
    int year, week;
    switch (window) {
    case SPILL_WINDOW_HOUR:
        snprintf(text, SPILL_WINDOW_SIZE, "%04d-%02d-%02dT%02d", date.year, date.month, date.day,
                 hour);
        return SPILL_OK;
    case SPILL_WINDOW_DAY:
        snprintf(text, SPILL_WINDOW_SIZE, "%04d-%02d-%02d", date.year, date.month, date.day);
        return SPILL_OK;
    case SPILL_WINDOW_WEEK:
        week_of(days, &year, &week);
        snprintf(text, SPILL_WINDOW_SIZE, "%04d-W%02d", year, week);
        return SPILL_OK;
    case SPILL_WINDOW_MONTH:
        snprintf(text, SPILL_WINDOW_SIZE, "%04d-%02d", date.year, date.month);
        return SPILL_OK;
    case SPILL_WINDOW_YEAR:
        snprintf(text, SPILL_WINDOW_SIZE, "%04d", date.year);
        return SPILL_OK;
    default:
        return spill_fail(error, SPILL_INVALID,
                          "the definition's windows are named by a field, not by a time");
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

bool spill_window_time(const spill_definition_t *definition, const spill_value_t *element,
                       int64_t *time_ms)
{
    spill_value_t found;
    const char *path = definition->time_field;
    if (path[0] == '\0' || !spill_value_at(element, path, &found))
        return false;
    switch (found.type) {
    case BSON_TYPE_DATE_TIME:
        *time_ms = spill_value_int64(&found);
        return true;
    case BSON_TYPE_OID: {
        uint32_t seconds;
        memcpy(&seconds, found.data, sizeof seconds);
        *time_ms = (int64_t)BSON_UINT32_FROM_BE(seconds) * 1000;
        return true;
    }
    case BSON_TYPE_TIMESTAMP:
        *time_ms = (int64_t)((uint64_t)spill_value_int64(&found) >> 32) * 1000;
        return true;
    default:
        return false;
    }
}

bool spill_window_text_valid(const char *text, size_t length)
{
    if (length == 0 || length >= SPILL_WINDOW_SIZE || !bson_utf8_validate(text, length, false))
        return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return false;
    return true;
}

/* Does the text have the form? A digit of the form matches any digit. Two digits behind the year
 * match a number up to theirs. */
static bool has_form(const char *text, const char *form)
{
    if (strlen(text) != strlen(form))
        return false;
    for (size_t i = 0; form[i] != '\0'; i++) {
        bool digit = form[i] >= '0' && form[i] <= '9';
        if (digit ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    }
    for (size_t i = 4; form[i] != '\0'; i++)
        if (form[i] >= '0' && form[i] <= '9' && form[i + 1] >= '0' && form[i + 1] <= '9' &&
            memcmp(text + i, form + i, 2) > 0)
            return false;
    return true;
}

spill_code_t spill_window_check(const spill_definition_t *definition, const char *text,
                                spill_error_t *error)
{
    static const struct {
        const char *largest;
        const char *example;
    } forms[SPILL_WINDOW_FIELD + 1] = {
        [SPILL_WINDOW_HOUR] = {"9999-12-31T23", "2026-03-05T10"},
        [SPILL_WINDOW_DAY] = {"9999-12-31", "2026-03-05"},
        [SPILL_WINDOW_WEEK] = {"9999-W53", "2026-W10"},
        [SPILL_WINDOW_MONTH] = {"9999-12", "2026-03"},
        [SPILL_WINDOW_YEAR] = {"9999", "2026"},
    };
    const char *largest = forms[definition->window].largest;
    if (largest == NULL) /* windows of a field: any text */
        return spill_window_text_valid(text, strlen(text))
                   ? SPILL_OK
                   : spill_fail(error, SPILL_INVALID, "the text of a window has 1 to %d bytes",
                                SPILL_WINDOW_SIZE - 1);
    return has_form(text, largest)
               ? SPILL_OK
               : spill_fail(error, SPILL_INVALID,
                            "'%.60s' is no window of '%s', whose windows are such as %s", text,
                            definition->name, forms[definition->window].example);
}

static spill_code_t window_of_field(const spill_definition_t *definition,
                                    const spill_value_t *element, char text[SPILL_WINDOW_SIZE],
                                    spill_error_t *error)
{
    spill_value_t found;
    uint32_t length = 0;
    const char *source = NULL;
    if (spill_value_at(element, definition->window_source, &found) && found.type == BSON_TYPE_UTF8)
        source = spill_value_text(&found, &length);
    if (source == NULL || !spill_window_text_valid(source, length))
        return spill_fail(error, SPILL_INVALID,
                          "the element has no string of 1 to %d bytes at '%s', which names its "
                          "window in '%s'",
                          SPILL_WINDOW_SIZE - 1, definition->window_source, definition->name);
    memcpy(text, source, length);
    text[length] = '\0';
    return SPILL_OK;
}

spill_code_t spill_window_of_element(const spill_definition_t *definition,
                                     const spill_value_t *element, char window[SPILL_WINDOW_SIZE],
                                     spill_error_t *error)
{
    int64_t time_ms;
    window[0] = '\0';
    if (!spill_schema_of(definition)->has_windows)
        return spill_fail(error, SPILL_INVALID, "'%s' has no windows: its layout is not 'bucket'",
                          definition->name);
    if (!spill_value_valid(element))
        return spill_fail(error, SPILL_INVALID, "the element is not a well-formed BSON value");
    if (definition->window == SPILL_WINDOW_FIELD)
        return window_of_field(definition, element, window, error);
    if (!spill_window_time(definition, element, &time_ms))
        return spill_fail(error, SPILL_INVALID,
                          "the element has no time at '%s' (a date, an ObjectId or a timestamp), "
                          "so it lies in no window of '%s'",
                          definition->time_field, definition->name);
    return spill_window_of_time(definition->window, time_ms, window, error);
}

spill_code_t spill_bucket_window_of(const spill_definition_t *definition,
                                    const spill_value_t *element, char window[SPILL_WINDOW_SIZE],
                                    spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, window);
    window[0] = '\0';
    SPILL_CHECK_POINTERS(error, definition, element);
    spill_code_t code = spill_definition_check(definition, error);
    return code == SPILL_OK ? spill_window_of_element(definition, element, window, error) : code;
}

/* ---- windows as owners ----------------------------------------------------------------------- */

spill_value_t spill_bucket_name(bson_t *storage, const spill_value_t *owner, const char *window)
{
    bson_t name;
    if (storage == NULL || owner == NULL || window == NULL)
        return (spill_value_t){0};
    uint32_t before = storage->len;
    bson_append_document_begin(storage, "", 0, &name);
    spill_value_append(owner, &name, SPILL_STORED_ID_OWNER);
    BSON_APPEND_UTF8(&name, SPILL_STORED_ID_WINDOW, window);
    bson_append_document_end(storage, &name);
    return spill_value_appended(storage, before);
}

bool spill_window_split(const spill_value_t *window, spill_value_t *owner, const char **text)
{
    const char *name;
    spill_value_t value, more;
    uint32_t length;
    if (window->type != BSON_TYPE_DOCUMENT || !spill_value_valid(window))
        return false;
    spill_fields_t fields = spill_fields_of(window->data);
    if (!spill_fields_next(&fields, &name, owner) || strcmp(name, SPILL_STORED_ID_OWNER) != 0 ||
        !spill_fields_next(&fields, &name, &value) || strcmp(name, SPILL_STORED_ID_WINDOW) != 0 ||
        value.type != BSON_TYPE_UTF8 || spill_fields_next(&fields, &name, &more))
        return false;
    *text = spill_value_text(&value, &length);
    return spill_window_text_valid(*text, length);
}

bool spill_bucket_split(const spill_value_t *name, spill_value_t *owner,
                        char window[SPILL_WINDOW_SIZE])
{
    const char *text;
    if (window == NULL)
        return false;
    window[0] = '\0';
    if (name == NULL || owner == NULL || !spill_window_split(name, owner, &text))
        return false;
    memcpy(window, text, strlen(text) + 1);
    return true;
}
