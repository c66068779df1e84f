#include "gateway/translate/mention.h"

#include "bson/value.h"
#include "definition/stored_names.h"
#include "util/text.h"

#include <string.h>

enum { DEPTH_MAX = 200 };

static const char spill_field[] = SPILL_STORED_ROOT;

bool spill_path_begins(const char *path, const char *field)
{
    size_t length = strlen(field);
    return strncmp(path, field, length) == 0 && (path[length] == '\0' || path[length] == '.');
}

bool spill_path_holds(const char *path, const char *array)
{
    return spill_path_begins(array, path);
}

unsigned spill_mentions_in_path(const char *path, const char *array)
{
    bool touches = spill_path_begins(path, array) || spill_path_holds(path, array);
    return (touches ? SPILL_MENTIONS_ARRAY : 0) |
           (spill_path_begins(path, spill_field) ? SPILL_MENTIONS_SPILL : 0);
}

bool spill_is_one_of(const char *name, const char *const *names)
{
    for (size_t i = 0; names[i] != NULL; i++)
        if (spill_same_name(name, names[i]))
            return true;
    return false;
}

/* ---- expressions and stages ------------------------------------------------------------------ */

/* "$$ROOT.a", "$a.b", or a text that may be the name of a field. */
static unsigned in_text(const char *text, const char *array)
{
    static const char *const roots[] = {"$$ROOT", "$$CURRENT", NULL};
    for (size_t i = 0; roots[i] != NULL; i++) {
        if (!spill_path_begins(text, roots[i]))
            continue;
        const char *rest = text + strlen(roots[i]);
        return *rest == '.' ? spill_mentions_in_path(rest + 1, array) : SPILL_MENTIONS_WHOLE;
    }
    if (text[0] == '$')
        text++;
    return spill_mentions_in_path(text, array);
}

/* Operators that reach fields by computed names, by code, or all of them. */
static const char *const opaque_operators[] = {
    "$getField",   "$setField",     "$unsetField", "$function", "$accumulator",
    "$where",      "$jsonSchema",   "$text",       "$redact",   "$search",
    "$searchMeta", "$vectorSearch", "$geoNear",    NULL};

static unsigned in_value(const bson_iter_t *value, const char *array, int depth);

/* All keys and values of a document or an array. */
static unsigned in_children(bson_iter_t *child, bool names, const char *array, int depth)
{
    unsigned found = 0;
    if (depth > DEPTH_MAX)
        return SPILL_MENTIONS_ANY;
    while (found != SPILL_MENTIONS_ANY && bson_iter_next(child)) {
        const char *key = bson_iter_key(child);
        if (names)
            found |= spill_mentions_in_path(key, array);
        if (names && spill_is_one_of(key, opaque_operators))
            found |= SPILL_MENTIONS_WHOLE;
        found |= in_value(child, array, depth);
    }
    return child->err_off != 0 ? SPILL_MENTIONS_ANY : found;
}

static unsigned in_value(const bson_iter_t *value, const char *array, int depth)
{
    bson_iter_t child;
    switch (bson_iter_type(value)) {
    case BSON_TYPE_UTF8:
        return in_text(bson_iter_utf8(value, NULL), array);
    case BSON_TYPE_SYMBOL:
        return in_text(bson_iter_symbol(value, NULL), array);
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return bson_iter_recurse(value, &child)
                   ? in_children(&child, bson_iter_type(value) == BSON_TYPE_DOCUMENT, array,
                                 depth + 1)
                   : SPILL_MENTIONS_ANY;
    case BSON_TYPE_CODE:
    case BSON_TYPE_CODEWSCOPE:
        return SPILL_MENTIONS_WHOLE;
    default:
        return 0;
    }
}

unsigned spill_mentions_in_value(const bson_iter_t *value, const char *array)
{
    return in_value(value, array, 0);
}

unsigned spill_mentions_in_document(const bson_t *document, const char *array)
{
    bson_iter_t child;
    return bson_iter_init(&child, document) ? in_children(&child, true, array, 0)
                                            : SPILL_MENTIONS_ANY;
}

/* ---- filters --------------------------------------------------------------------------------- */

static unsigned in_filter(bson_iter_t *condition, const char *array, int depth);

/* The filters of an $and, $or or $nor. */
static unsigned in_filters(const bson_iter_t *list, const char *array, int depth)
{
    bson_iter_t each, condition;
    unsigned found = 0;
    if (depth > DEPTH_MAX || !BSON_ITER_HOLDS_ARRAY(list) || !bson_iter_recurse(list, &each))
        return SPILL_MENTIONS_ANY;
    while (bson_iter_next(&each))
        found |= BSON_ITER_HOLDS_DOCUMENT(&each) && bson_iter_recurse(&each, &condition)
                     ? in_filter(&condition, array, depth + 1)
                     : SPILL_MENTIONS_ANY;
    return each.err_off != 0 ? SPILL_MENTIONS_ANY : found;
}

static unsigned in_filter(bson_iter_t *condition, const char *array, int depth)
{
    static const char *const lists[] = {"$and", "$or", "$nor", NULL};
    static const char *const harmless[] = {"$comment", "$sampleRate", "$alwaysTrue", "$alwaysFalse",
                                           NULL};
    unsigned found = 0;
    while (bson_iter_next(condition)) {
        const char *key = bson_iter_key(condition);
        if (key[0] != '$')
            found |= spill_mentions_in_path(key, array);
        else if (spill_is_one_of(key, lists))
            found |= in_filters(condition, array, depth);
        else if (strcmp(key, "$expr") == 0)
            found |= in_value(condition, array, depth);
        else if (!spill_is_one_of(key, harmless))
            found |= SPILL_MENTIONS_WHOLE;
    }
    return condition->err_off != 0 ? SPILL_MENTIONS_ANY : found;
}

unsigned spill_mentions_in_filter(const bson_t *filter, const char *array)
{
    bson_iter_t condition;
    return bson_iter_init(&condition, filter) ? in_filter(&condition, array, 0)
                                              : SPILL_MENTIONS_ANY;
}

/* ---- conditions on _id ----------------------------------------------------------------------- */

/* Is it a value that a document's _id can have? A document of operators is none. */
static bool is_id(const bson_iter_t *value)
{
    bson_iter_t child;
    if (BSON_ITER_HOLDS_ARRAY(value) || BSON_ITER_HOLDS_REGEX(value) ||
        BSON_ITER_HOLDS_UNDEFINED(value))
        return false;
    if (!BSON_ITER_HOLDS_DOCUMENT(value))
        return true;
    return bson_iter_recurse(value, &child) &&
           (!bson_iter_next(&child) || bson_iter_key(&child)[0] != '$');
}

/* The operand of {$eq: value}, which has no other operator. */
static bool find_equal(const bson_iter_t *value, bson_iter_t *operand)
{
    bson_iter_t next;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, operand) ||
        !bson_iter_next(operand) || strcmp(bson_iter_key(operand), "$eq") != 0)
        return false;
    next = *operand;
    return !bson_iter_next(&next) && is_id(operand);
}

bool spill_filter_find_id(const bson_t *filter, bson_iter_t *id)
{
    bson_iter_t condition, operand;
    int found = 0;
    if (!bson_iter_init(&condition, filter))
        return false;
    while (bson_iter_next(&condition)) {
        if (strcmp(bson_iter_key(&condition), "_id") != 0)
            continue;
        found++;
        if (is_id(&condition))
            *id = condition;
        else if (find_equal(&condition, &operand))
            *id = operand;
        else
            return false;
    }
    return found == 1;
}

bool spill_filter_is_id(const bson_t *filter)
{
    bson_iter_t id;
    return bson_count_keys(filter) == 1 && spill_filter_find_id(filter, &id);
}

/* ---- values ---------------------------------------------------------------------------------- */

bool spill_iter_is_flag(const bson_iter_t *iter)
{
    return BSON_ITER_HOLDS_BOOL(iter) || BSON_ITER_HOLDS_NUMBER(iter) ||
           BSON_ITER_HOLDS_DECIMAL128(iter);
}

bool spill_iter_is_true(const bson_iter_t *iter)
{
    if (BSON_ITER_HOLDS_BOOL(iter))
        return bson_iter_bool(iter);
    if (BSON_ITER_HOLDS_DECIMAL128(iter)) {
        spill_value_t value = spill_value_from_iter(iter);
        spill_number_t number = spill_number_of(&value);
        return number.kind != SPILL_NUMBER_FINITE || number.digits != 0;
    }
    return BSON_ITER_HOLDS_NUMBER(iter) && bson_iter_as_double(iter) != 0;
}

bool spill_iter_document(const bson_iter_t *iter, bson_t *document)
{
    const uint8_t *data;
    uint32_t size;
    if (BSON_ITER_HOLDS_DOCUMENT(iter))
        bson_iter_document(iter, &size, &data);
    else if (BSON_ITER_HOLDS_ARRAY(iter))
        bson_iter_array(iter, &size, &data);
    else
        return false;
    return bson_init_static(document, data, size);
}

/* ---- projections ----------------------------------------------------------------------------- */

static spill_projection_t read_projected(const bson_iter_t *value, int depth)
{
    static const char *const neutral[] = {"$slice", "$meta", NULL};
    bson_iter_t child;
    spill_projection_t found = SPILL_PROJECTION_INCLUDES;
    if (spill_iter_is_flag(value))
        return spill_iter_is_true(value) ? SPILL_PROJECTION_INCLUDES : SPILL_PROJECTION_EXCLUDES;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &child) || depth > DEPTH_MAX)
        return SPILL_PROJECTION_INCLUDES;
    for (bool first = true; bson_iter_next(&child); first = false) {
        const char *key = bson_iter_key(&child);
        if (first && spill_is_one_of(key, neutral))
            return SPILL_PROJECTION_NEUTRAL;
        if (first && key[0] == '$')
            return strcmp(key, "$elemMatch") == 0 ? SPILL_PROJECTION_MATCHES
                                                  : SPILL_PROJECTION_INCLUDES;
        if (read_projected(&child, depth + 1) != SPILL_PROJECTION_EXCLUDES)
            return SPILL_PROJECTION_INCLUDES;
        found = SPILL_PROJECTION_EXCLUDES;
    }
    return found;
}

spill_projection_t spill_projection_of(const bson_iter_t *value)
{
    return read_projected(value, 0);
}

/* ---- collections ----------------------------------------------------------------------------- */

/* Does the value have this text? */
static bool has_text(const bson_iter_t *value, const char *text, int depth)
{
    bson_iter_t child;
    bool found = false;
    if (BSON_ITER_HOLDS_UTF8(value))
        return strcmp(bson_iter_utf8(value, NULL), text) == 0;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) && !BSON_ITER_HOLDS_ARRAY(value))
        return false;
    if (depth > DEPTH_MAX || !bson_iter_recurse(value, &child))
        return true;
    while (!found && bson_iter_next(&child))
        found = has_text(&child, text, depth + 1);
    return found;
}

bool spill_pipeline_reads(const bson_t *body, const char *collection)
{
    static const char *const others[] = {"$match", "$out", "$merge", NULL};
    bson_iter_t iter, each, spec;
    bool found = false;
    if (!bson_iter_init_find(&iter, body, "pipeline") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &each))
        return false;
    while (!found && bson_iter_next(&each)) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&each) || !bson_iter_recurse(&each, &spec) ||
            !bson_iter_next(&spec))
            continue;
        found = !spill_is_one_of(bson_iter_key(&spec), others) && has_text(&spec, collection, 0);
    }
    return found;
}
