/* Read the times of an array's elements from the elements. */
#include "tools/scan/paths.h"

#include "util/clock.h"

#include <string.h>

#define TRIES_MAX 16   /* arrays */
#define ELEMENTS_MAX 4 /* of each */

bool spill_times_open(const spill_times_rule_t *rule)
{
    return rule->type == 0 && rule->tries < TRIES_MAX;
}

bool spill_times_same(const spill_times_rule_t *left, const spill_times_rule_t *right)
{
    const char *a = left->names, *b = right->names;
    if (left->type != right->type || left->depth != right->depth)
        return false;
    for (uint8_t i = 0; i < left->depth; i++, a += strlen(a) + 1, b += strlen(b) + 1)
        if (strcmp(a, b) != 0)
            return false;
    return true;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* The bytes of a text follow its length, and end with a NUL. */
static bool read_text(const spill_value_t *value, int64_t *time_ms)
{
    return spill_iso_time((const char *)value->data + 4, value->size_bytes - 5, time_ms);
}

/* 0: not a time; else a higher rank is better. */
static int rank_of(const spill_value_t *value)
{
    int64_t ignored;
    switch (value->type) {
    case BSON_TYPE_DATE_TIME:
        return 4;
    case BSON_TYPE_UTF8:
        return read_text(value, &ignored) ? 3 : 0;
    case BSON_TYPE_TIMESTAMP:
        return 2;
    case BSON_TYPE_OID:
        return 1;
    default:
        return 0;
    }
}

typedef struct search {
    const char *names[SPILL_TIMES_DEPTH_MAX];
    spill_times_rule_t *rule;
    int rank; /* of the time that the rule has */
} search_t;

/* Use the value, `depth` names down, if it ranks higher than the rule's. */
static void consider_time(search_t *search, const spill_value_t *value, uint8_t depth)
{
    spill_times_rule_t *rule = search->rule;
    int rank = rank_of(value);
    if (rank <= search->rank)
        return;
    size_t size = 0;
    for (uint8_t i = 0; i < depth; i++)
        size += strlen(search->names[i]) + 1;
    if (size > sizeof rule->names)
        return;
    search->rank = rank;
    rule->type = value->type;
    rule->depth = depth;
    char *to = rule->names;
    for (uint8_t i = 0; i < depth; i++) {
        size_t length = strlen(search->names[i]) + 1;
        memcpy(to, search->names[i], length);
        to += length;
    }
}

static void search_value(search_t *search, const spill_value_t *value, uint8_t depth)
{
    consider_time(search, value, depth);
    if (value->type != BSON_TYPE_DOCUMENT || depth == SPILL_TIMES_DEPTH_MAX)
        return;
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    spill_value_t inner;
    while (search->rule->type != BSON_TYPE_DATE_TIME && spill_fields_next(&fields, &name, &inner)) {
        search->names[depth] = name;
        search_value(search, &inner, (uint8_t)(depth + 1));
    }
}

void spill_times_learn(spill_times_rule_t *rule, const uint8_t *data)
{
    search_t search = {.rule = rule};
    spill_fields_t elements = spill_fields_of(data);
    const char *name;
    spill_value_t element;
    rule->tries++;
    for (int i = 0; i < ELEMENTS_MAX && rule->type == 0; i++)
        if (spill_fields_next(&elements, &name, &element))
            search_value(&search, &element, 0);
}

/* ---- reading field by field ------------------------------------------------------------------ */

static uint32_t be32(const uint8_t *data)
{
    return (uint32_t)data[0] << 24 | (uint32_t)data[1] << 16 | (uint32_t)data[2] << 8 | data[3];
}

int64_t spill_times_decode(uint8_t type, const uint8_t *data)
{
    if (type == BSON_TYPE_OID)
        return (int64_t)be32(data) * 1000;
    int64_t number = (int64_t)((uint64_t)read_u32(data + 4) << 32 | read_u32(data));
    return type == BSON_TYPE_DATE_TIME ? number : (int64_t)((uint64_t)number >> 32) * 1000;
}

/* False: the value is a text, but no time. */
static bool time_of(const spill_value_t *value, int64_t *time_ms)
{
    if (value->type == BSON_TYPE_UTF8)
        return read_text(value, time_ms);
    *time_ms = spill_times_decode(value->type, value->data);
    return true;
}

static bool field_of(const spill_value_t *document, const char *name, spill_value_t *found)
{
    if (document->type != BSON_TYPE_DOCUMENT)
        return false;
    spill_fields_t fields = spill_fields_of(document->data);
    const char *next;
    while (spill_fields_next(&fields, &next, found))
        if (strcmp(next, name) == 0)
            return true;
    return false;
}

/* Find the rule's field in an element, field by field. */
static bool search_field(const spill_times_rule_t *rule, const spill_value_t *element,
                         spill_value_t *value)
{
    const char *wanted = rule->names;
    *value = *element;
    for (uint8_t i = 0; i < rule->depth; i++) {
        spill_value_t inner;
        if (!field_of(value, wanted, &inner))
            return false;
        *value = inner;
        wanted += strlen(wanted) + 1;
    }
    return true;
}

/* ---- reading by outlines --------------------------------------------------------------------- */

static void set_step(spill_times_step_t *step, const spill_outline_t *outline, const char *name)
{
    *step = (spill_times_step_t){.outline = outline};
    for (uint32_t i = 0; i < outline->count; i++)
        if (spill_outline_is_named(&outline->fields[i], name))
            step->wanted |= UINT64_C(1) << i;
}

spill_times_t spill_times_of(const spill_times_rule_t *rule, const uint8_t *data,
                             const spill_outline_t *outline, const spill_times_kept_t *kept)
{
    spill_times_t times = {.rule = rule, .elements = spill_fields_of(data), .kept = kept};
    if (outline && outline->count > 0 && rule->depth > 0)
        set_step(&times.steps[0], outline, rule->names);
    if (outline && outline->template && rule->depth == 1 && rule->type != 0) {
        times.template = outline->template;
        times.place = spill_template_find(outline->template, rule->names);
    }
    return times;
}

/* Read the next element; false at the end. */
static bool next_element(spill_times_t *times, spill_value_t *element)
{
    spill_fields_t *elements = &times->elements;
    const char *name;
    if (!times->steps[0].outline || elements->at >= elements->end ||
        *elements->at != BSON_TYPE_DOCUMENT)
        return spill_fields_next(elements, &name, element);
    bool plain;
    const uint8_t *data = find_nul(elements->at + 1, elements->end, &plain) + 1;
    *element = (spill_value_t){data, read_u32(data), BSON_TYPE_DOCUMENT};
    elements->at = data + element->size_bytes;
    return true;
}

/* The bytes of a field's value in a well-formed document; UINT32_MAX: it needs a closer look. */
static uint32_t expected_size(const spill_outline_field_t *field, const uint8_t *data)
{
    if (field->value == SPILL_OUTLINE_TEXT)
        return 4 + read_u32(data);
    if (field->type == BSON_TYPE_DOCUMENT || field->type == BSON_TYPE_ARRAY)
        return read_u32(data);
    bool ends_fields = field->type == BSON_TYPE_BOOL && *data > 1; /* see spill_value_measure */
    return field->value == SPILL_OUTLINE_FIXED && !ends_fields ? field->size_bytes : UINT32_MAX;
}

typedef enum found { FOUND, MISSING, CANNOT_TELL } found_t;

/* Find the first field with the step's name in a document, unless a field before it is unexpected.
 */
static found_t find_expected(const spill_times_step_t *step, const uint8_t *document,
                             const uint8_t *limit, const spill_outline_field_t **field,
                             spill_value_t *value)
{
    const spill_outline_t *outline = step->outline;
    const spill_outline_field_t *expected = outline->fields, *last = expected + outline->count;
    const uint8_t *at = document + 4, *const end = document + read_u32(document) - 1;
    while (at < end) {
        *field = spill_outline_find(expected, last, at, limit);
        if (!*field)
            return CANNOT_TELL;
        const uint8_t *data = at + (*field)->head_size;
        uint32_t size = expected_size(*field, data);
        if (size == UINT32_MAX)
            return CANNOT_TELL;
        *value = (spill_value_t){data, size, (*field)->type};
        if (step->wanted >> (*field - outline->fields) & 1)
            return FOUND;
        at = data + size;
        expected = *field + 1;
    }
    return MISSING;
}

/* Find the rule's field in an element by the outlines. */
static found_t find_by_outlines(spill_times_t *times, const spill_value_t *element,
                                spill_value_t *value)
{
    const spill_times_rule_t *rule = times->rule;
    const spill_outline_field_t *field = NULL;
    const char *wanted = rule->names;
    *value = *element;
    for (uint8_t i = 0; i < rule->depth; i++) {
        spill_times_step_t *step = &times->steps[i];
        if (value->type != BSON_TYPE_DOCUMENT)
            return MISSING;
        if (field && step->outline != &field->path->outline)
            set_step(step, &field->path->outline, wanted);
        if (!step->outline)
            return CANNOT_TELL;
        found_t found = find_expected(step, value->data, times->elements.end, &field, value);
        if (found != FOUND)
            return found;
        wanted += strlen(wanted) + 1;
    }
    return FOUND;
}

/* ---- reading by a template ------------------------------------------------------------------- */

/*
 * Pass the next element and return its time's value, of the rule's type. NULL: the element is not
 * recognized, or has another type there; it is not passed.
 */
static inline const uint8_t *pass_recognized(spill_times_t *times)
{
    spill_fields_t *elements = &times->elements;
    if (!times->template || times->place.type != times->rule->type ||
        elements->at >= elements->end || *elements->at != BSON_TYPE_DOCUMENT)
        return NULL;
    bool plain;
    const uint8_t *data = find_nul(elements->at + 1, elements->end, &plain) + 1;
    const uint8_t *end = data + read_u32(data);
    const uint8_t *value =
        spill_template_value(times->template, &times->place, data + 4, end - 1, elements->end);
    if (value)
        elements->at = end;
    return value;
}

/* ---- times that the walk has kept ------------------------------------------------------------ */

const int64_t *spill_times_pass_kept(spill_times_t *times, uint32_t *count)
{
    const spill_times_kept_t *kept = times->kept;
    *count = 0;
    while (kept && times->series < kept->series_count) {
        const spill_times_series_t *series = &kept->series[times->series];
        if (series->from > times->elements.at)
            break;
        times->series++;
        if (series->from < times->elements.at || !spill_times_same(&series->rule, times->rule))
            continue; /* of another array, or of another field */
        times->elements.at = series->to;
        *count = series->count;
        return kept->times_ms + series->first;
    }
    return NULL;
}

bool spill_times_next(spill_times_t *times, bool *known, int64_t *time_ms)
{
    const spill_times_rule_t *rule = times->rule;
    spill_value_t element, value = {.type = rule->type};
    *time_ms = 0;
    value.data = pass_recognized(times);
    if (value.data) {
        if (rule->type == BSON_TYPE_UTF8)
            value.size_bytes = 4 + read_u32(value.data);
        *known = time_of(&value, time_ms);
        return true;
    }
    *known = false;
    if (!next_element(times, &element))
        return false;
    found_t found = find_by_outlines(times, &element, &value);
    if (found == CANNOT_TELL)
        found = search_field(rule, &element, &value) ? FOUND : MISSING;
    *known =
        found == FOUND && rule->type != 0 && value.type == rule->type && time_of(&value, time_ms);
    return true;
}

void spill_times_field(const spill_times_rule_t *rule, char *text, size_t size)
{
    size_t at = 0;
    const char *name = rule->names;
    text[0] = '\0';
    for (uint8_t i = 0; i < rule->depth && at + 1 < size; i++) {
        int length = snprintf(text + at, size - at, "%s%s", i > 0 ? "." : "", name);
        at += length > 0 ? (size_t)length : 0;
        name += strlen(name) + 1;
    }
}
