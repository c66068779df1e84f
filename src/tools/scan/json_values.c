/* Values, texts and the points of plots in a scan's JSON document. */
#include "tools/scan/json_fields.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

void spill_json_put_value(FILE *to, const spill_value_t *value)
{
    char *json = value->data ? spill_value_to_json(value, false) : NULL;
    char *visible = spill_visible_text(json ? json : "null");
    fputs(visible, to);
    bson_free(visible);
    bson_free(json);
}

/* If the text is not UTF-8, replace what is not ASCII with '?'. */
static char *repaired(const char *text)
{
    char *copy = bson_strdup(text);
    bool sound = bson_utf8_validate(text, strlen(text), false);
    for (char *at = copy; *at && !sound; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    return copy;
}

void spill_json_put_text(FILE *to, const char *text)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = {0};
    char *sound = text ? repaired(text) : NULL;
    if (sound)
        value = spill_value_from_utf8(&storage, sound);
    spill_json_put_value(to, &value);
    bson_free(sound);
    bson_destroy(&storage);
}

/* ---- writing plots --------------------------------------------------------------------------- */

void spill_json_put_histogram(FILE *to, const spill_scan_histogram_t *histogram)
{
    fputc('[', to);
    for (size_t i = 0; i < histogram->count; i++)
        fprintf(to, "%s[%" PRIu64 ",%" PRIu64 "]", i ? "," : "", histogram->bins[i].least,
                histogram->bins[i].count);
    fputs("]", to);
}

void spill_json_put_course(FILE *to, const spill_course_t *course)
{
    fputs("{\"past\":[", to);
    for (size_t i = 0; i < course->past_count; i++)
        fprintf(to, "%s[%" PRId64 ",%.15g]", i ? "," : "", course->past[i].at_ms,
                course->past[i].elements);
    fputs("],\"coming\":[", to);
    for (size_t i = 0; i < course->coming_count; i++)
        fprintf(to, "%s[%" PRId64 ",%.15g,%.15g,%.15g]", i ? "," : "", course->coming[i].at_ms,
                course->coming[i].elements.low, course->coming[i].elements.likely,
                course->coming[i].elements.high);
    fputs("]}", to);
}

/* ---- reading plots --------------------------------------------------------------------------- */

/* The items of the array at the iterator. False: it is none. */
static bool items_of(const bson_iter_t *from, bson_iter_t *items, size_t *count)
{
    uint32_t size;
    const uint8_t *data;
    bson_t list;
    if (!BSON_ITER_HOLDS_ARRAY(from))
        return false;
    bson_iter_array(from, &size, &data);
    if (!bson_init_static(&list, data, size))
        return false;
    *count = bson_count_keys(&list);
    return bson_iter_init_from_data(items, data, size);
}

/* The same of the list of that name. */
static bool list_of(const bson_t *from, const char *name, bson_iter_t *items, size_t *count)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, from, name) && items_of(&iter, items, count);
}

/* Read the next point, which must have exactly `count` numbers. */
static bool next_point(bson_iter_t *items, double *numbers, size_t count)
{
    bson_iter_t inner;
    size_t at = 0;
    if (!bson_iter_next(items) || !BSON_ITER_HOLDS_ARRAY(items) ||
        !bson_iter_recurse(items, &inner))
        return false;
    while (at < count && bson_iter_next(&inner) && BSON_ITER_HOLDS_NUMBER(&inner) &&
           isfinite(bson_iter_as_double(&inner)))
        numbers[at++] = bson_iter_as_double(&inner);
    return at == count;
}

/* A whole number within the range of JSON. */
static int64_t whole(double number)
{
    const double most = (double)SPILL_SCAN_NUMBER_MAX;
    return number > -most && number < most ? (int64_t)number : 0;
}

spill_scan_histogram_t spill_json_read_histogram(const bson_iter_t *from)
{
    spill_scan_histogram_t histogram = {0};
    bson_iter_t items;
    size_t count;
    double point[2];
    if (!items_of(from, &items, &count))
        return histogram;
    histogram.bins = bson_malloc0((count + 1) * sizeof *histogram.bins);
    while (histogram.count < count && next_point(&items, point, 2) && point[0] >= 0 && point[1] > 0)
        histogram.bins[histogram.count++] =
            (spill_sketch_bin_t){(uint64_t)whole(point[0]), (uint64_t)whole(point[1])};
    return histogram;
}

spill_course_t *spill_json_read_course(const bson_iter_t *from)
{
    bson_iter_t items;
    bson_t storage;
    uint32_t size;
    const uint8_t *data;
    size_t count;
    double point[4];
    if (!BSON_ITER_HOLDS_DOCUMENT(from))
        return NULL;
    bson_iter_document(from, &size, &data);
    if (!bson_init_static(&storage, data, size))
        return NULL;
    spill_course_t *course = bson_malloc0(sizeof *course);
    if (list_of(&storage, "past", &items, &count))
        for (size_t i = 0; i < SPILL_COURSE_PAST && next_point(&items, point, 2); i++) {
            course->past[i].at_ms = whole(point[0]);
            course->past[i].elements = point[1];
            course->past_count++;
        }
    if (list_of(&storage, "coming", &items, &count))
        for (size_t i = 0; i < SPILL_COURSE_COMING && next_point(&items, point, 4); i++) {
            course->coming[i].at_ms = whole(point[0]);
            course->coming[i].elements = (spill_forecast_t){point[1], point[2], point[3]};
            course->coming_count++;
        }
    return course;
}
