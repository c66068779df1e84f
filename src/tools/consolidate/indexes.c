/*
 * The indexes of the joint collection. It gets each index of the old collections once, with the
 * discriminator in front of the keys. So what is unique in each old collection stays unique in
 * each slice:
 *
 * - plain, compound, partial, with a collation: discriminator in front
 *
 * - unique: likewise, if all collections have it
 *
 * - unique and sparse, one field: unique if the field exists (partial)
 *
 * - sparse, not unique: not sparse, because each document has the discriminator
 *
 * - expiring (TTL): unchanged, if all have it, because it cannot be compound
 *
 * - text, geographic, hashed, wildcard: refused until the plan leaves the index out by its name
 */
#include "bson/value.h"
#include "tools/consolidate/consolidate_run.h"

#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* An index that some of the old collections have. */
typedef struct shape {
    bson_t *keys;
    bson_t *options; /* those in OPTIONS, in that order */
    char *name;      /* in the first of these collections */
    const char *first;
    size_t count; /* collections that have it */
} shape_t;

typedef struct shapes {
    shape_t *at;
    size_t count;
    size_t collections; /* read so far */
} shapes_t;

/* The options of an index that matter besides its keys. */
static const char *const OPTIONS[] = {"unique",    "sparse", "partialFilterExpression",
                                      "collation", "hidden", "expireAfterSeconds"};

void spill_consolidate_add_text(bson_t *array, const char *format, ...)
{
    va_list arguments;
    char buffer[16];
    const char *key;
    va_start(arguments, format);
    char *text = bson_strdupv_printf(format, arguments);
    va_end(arguments);
    bson_uint32_to_string(bson_count_keys(array), &key, buffer, sizeof buffer);
    BSON_APPEND_UTF8(array, key, text);
    bson_free(text);
}

/* ---- collecting ------------------------------------------------------------------------------ */

static void copy_options(const bson_t *index, bson_t *options)
{
    bson_iter_t iter;
    bson_init(options);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++) {
        if (!bson_iter_init_find(&iter, index, OPTIONS[i]))
            continue;
        if (!BSON_ITER_HOLDS_BOOL(&iter) || bson_iter_bool(&iter))
            bson_append_iter(options, OPTIONS[i], -1, &iter);
    }
}

static void add_shape(shapes_t *shapes, const bson_t *index, const bson_t *keys, const char *name,
                      const char *collection)
{
    bson_t options;
    copy_options(index, &options);
    for (size_t i = 0; i < shapes->count; i++) {
        shape_t *shape = &shapes->at[i];
        if (bson_equal(shape->keys, keys) && bson_equal(shape->options, &options)) {
            shape->count++;
            bson_destroy(&options);
            return;
        }
    }
    shapes->at = bson_realloc(shapes->at, (shapes->count + 1) * sizeof *shapes->at);
    shape_t *shape = &shapes->at[shapes->count++];
    *shape = (shape_t){.keys = bson_copy(keys),
                       .options = bson_copy(&options),
                       .name = bson_strdup(name),
                       .first = collection,
                       .count = 1};
    bson_destroy(&options);
}

static bool is_left_out(const spill_consolidation_t *group, const char *name)
{
    bson_iter_t iter;
    bson_iter_init(&iter, group->leave_out);
    while (bson_iter_next(&iter))
        if (BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), name) == 0)
            return true;
    return false;
}

static void collect_shapes(const spill_consolidate_run_t *run, const bson_t *indexes,
                           const char *collection, shapes_t *shapes)
{
    bson_iter_t iter, field;
    bson_iter_init(&iter, indexes);
    while (bson_iter_next(&iter)) {
        bson_t index, keys;
        spill_value_t value = spill_value_from_iter(&iter);
        if (!bson_init_static(&index, value.data, value.size_bytes) ||
            !bson_iter_init_find(&field, &index, "name") || !BSON_ITER_HOLDS_UTF8(&field))
            continue;
        const char *name = bson_iter_utf8(&field, NULL);
        if (strcmp(name, "_id_") == 0 || is_left_out(run->group, name) ||
            !bson_iter_init_find(&field, &index, "key") || !BSON_ITER_HOLDS_DOCUMENT(&field))
            continue;
        value = spill_value_from_iter(&field);
        if (bson_init_static(&keys, value.data, value.size_bytes))
            add_shape(shapes, &index, &keys, name, collection);
    }
}

static void release_shapes(shapes_t *shapes)
{
    for (size_t i = 0; i < shapes->count; i++) {
        bson_destroy(shapes->at[i].keys);
        bson_destroy(shapes->at[i].options);
        bson_free(shapes->at[i].name);
    }
    bson_free(shapes->at);
}

/* ---- what can be merged ---------------------------------------------------------------------- */

/* The kind of keys that are neither ascending nor descending; else NULL. */
static const char *special_kind(const bson_t *keys)
{
    bson_iter_t iter;
    bson_iter_init(&iter, keys);
    while (bson_iter_next(&iter)) {
        if (BSON_ITER_HOLDS_UTF8(&iter))
            return bson_iter_utf8(&iter, NULL);
        if (strstr(bson_iter_key(&iter), "$**"))
            return "wildcard";
    }
    return NULL;
}

/* Why it cannot be merged, or NULL. */
static const char *reason_against(const shapes_t *shapes, const shape_t *shape)
{
    bool all = shape->count == shapes->collections;
    if (spill_document_is_true(shape->options, "unique") && !all)
        return "it is unique, and not all of the collections have it";
    if (bson_has_field(shape->options, "expireAfterSeconds") && !all)
        return "its documents expire, and not all of the collections have it";
    if (spill_document_is_true(shape->options, "unique") &&
        spill_document_is_true(shape->options, "sparse") &&
        (bson_count_keys(shape->keys) > 1 ||
         bson_has_field(shape->options, "partialFilterExpression")))
        return "it is unique and sparse, of several fields";
    if (bson_has_field(shape->options, "expireAfterSeconds") &&
        spill_document_is_true(shape->options, "unique"))
        return "it is unique, and its documents expire";
    return NULL;
}

static bool can_merge(const shapes_t *shapes, const shape_t *shape, bson_t *refused)
{
    const char *kind = special_kind(shape->keys), *why = reason_against(shapes, shape);
    if (kind)
        spill_consolidate_add_text(
            refused,
            "index '%s' of '%s' is of the kind %s, which you must create by hand: name "
            "it in \"leaveOut\"",
            shape->name, shape->first, kind);
    else if (why)
        spill_consolidate_add_text(
            refused,
            "index '%s' of '%s' (%zu of %zu collections): %s: name it in \"leaveOut\", or "
            "make the collections alike",
            shape->name, shape->first, shape->count, shapes->collections, why);
    return !kind && !why;
}

/* ---- the merged indexes ---------------------------------------------------------------------- */

static bool is_taken(const bson_t *indexes, const char *name)
{
    bson_iter_t iter, inner;
    bson_iter_init(&iter, indexes);
    while (bson_iter_next(&iter))
        if (bson_iter_recurse(&iter, &inner) && bson_iter_find(&inner, "name") &&
            BSON_ITER_HOLDS_UTF8(&inner) && strcmp(bson_iter_utf8(&inner, NULL), name) == 0)
            return true;
    return false;
}

/* Append {key, name, ...}; if the name is in use, add a number to it. */
static void append_index(bson_t *indexes, const bson_t *keys, const char *name,
                         const bson_t *options)
{
    bson_t index;
    char buffer[16];
    const char *at;
    char *unique = bson_strdup(name);
    for (int number = 2; is_taken(indexes, unique); number++) {
        bson_free(unique);
        unique = bson_strdup_printf("%s_%d", name, number);
    }
    bson_uint32_to_string(bson_count_keys(indexes), &at, buffer, sizeof buffer);
    BSON_APPEND_DOCUMENT_BEGIN(indexes, at, &index);
    BSON_APPEND_DOCUMENT(&index, "key", keys);
    BSON_APPEND_UTF8(&index, "name", unique);
    bson_concat(&index, options);
    bson_append_document_end(indexes, &index);
    bson_free(unique);
}

/* The options that the index needs behind the discriminator. */
static void change_options(const shape_t *shape, bson_t *options)
{
    bson_iter_t iter;
    bool sparse = spill_document_is_true(shape->options, "sparse");
    bson_init(options);
    bson_copy_to_excluding_noinit(shape->options, options, "sparse", NULL);
    if (sparse && spill_document_is_true(shape->options, "unique") &&
        bson_iter_init(&iter, shape->keys) && bson_iter_next(&iter))
        BCON_APPEND(options, "partialFilterExpression", "{", bson_iter_key(&iter), "{", "$exists",
                    BCON_BOOL(true), "}", "}");
}

static void merge_shape(const spill_consolidate_run_t *run, const shape_t *shape, bson_t *indexes,
                        bson_t *notes)
{
    const char *field = run->group->field;
    bson_t keys = BSON_INITIALIZER, options;
    char *name;
    change_options(shape, &options);
    if (bson_has_field(&options, "expireAfterSeconds")) {
        spill_consolidate_add_text(
            notes, "index '%s' stays without '%s' in front: an expiring index has one field",
            shape->name, field);
        name = bson_strdup(shape->name);
    } else {
        BSON_APPEND_INT32(&keys, field, 1);
        name = bson_strdup_printf("%s_1_%s", field, shape->name);
    }
    bson_concat(&keys, shape->keys);
    append_index(indexes, &keys, name, &options);
    bson_free(name);
    bson_destroy(&options);
    bson_destroy(&keys);
}

/* "room_1_at_-1", as drivers name an index. */
static char *usual_name(const bson_t *keys)
{
    bson_iter_t iter;
    bson_string_t *name = bson_string_new("");
    bson_iter_init(&iter, keys);
    while (bson_iter_next(&iter)) {
        const char *kind = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : NULL;
        bson_string_append_printf(name, "%s%s_", name->len > 0 ? "_" : "", bson_iter_key(&iter));
        if (kind)
            bson_string_append(name, kind);
        else
            bson_string_append_printf(name, "%" PRId64, spill_iter_int64(&iter));
    }
    return bson_string_free(name, false);
}

/* Append the index by which slices are read, and those that the plan asks for. */
static void append_planned(const spill_consolidate_run_t *run, bson_t *indexes, bson_t *refused)
{
    bson_iter_t iter, inner;
    bson_t none = BSON_INITIALIZER;
    bson_t *keys = BCON_NEW(run->group->field, BCON_INT32(1), "_id", BCON_INT32(1));
    char *name = bson_strdup_printf("%s_1__id_1", run->group->field);
    append_index(indexes, keys, name, &none);
    bson_iter_init(&iter, run->group->indexes);
    while (bson_iter_next(&iter)) {
        bson_t index, key, options = BSON_INITIALIZER;
        spill_value_t value = spill_value_from_iter(&iter);
        bool good = BSON_ITER_HOLDS_DOCUMENT(&iter) &&
                    bson_init_static(&index, value.data, value.size_bytes) &&
                    bson_iter_init_find(&inner, &index, "key") && BSON_ITER_HOLDS_DOCUMENT(&inner);
        if (good) {
            value = spill_value_from_iter(&inner);
            good = bson_init_static(&key, value.data, value.size_bytes) && !bson_empty(&key);
        }
        if (good) {
            char *text = usual_name(&key);
            bson_copy_to_excluding_noinit(&index, &options, "key", "name", NULL);
            bool named =
                bson_iter_init_find(&inner, &index, "name") && BSON_ITER_HOLDS_UTF8(&inner);
            append_index(indexes, &key, named ? bson_iter_utf8(&inner, NULL) : text, &options);
            bson_free(text);
        } else {
            spill_consolidate_add_text(refused,
                                       "an entry of \"indexes\" in the plan has no \"key\"");
        }
        bson_destroy(&options);
    }
    bson_free(name);
    bson_destroy(keys);
}

spill_code_t spill_consolidate_merge_indexes(spill_consolidate_run_t *run, bson_t *indexes,
                                             bson_t *refused, bson_t *notes, spill_error_t *error)
{
    shapes_t shapes = {0};
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; i < run->group->count && code == SPILL_OK; i++) {
        bson_t of_one;
        const char *name = run->group->members[i].collection;
        if (spill_consolidate_kind_of(run, name, NULL) != SPILL_CONSOLIDATE_COLLECTION)
            continue;
        code = run->admin->ops->indexes(run->admin, name, &of_one, error);
        if (code == SPILL_OK) {
            collect_shapes(run, &of_one, name, &shapes);
            shapes.collections++;
        }
        bson_destroy(&of_one);
    }
    if (code == SPILL_OK)
        append_planned(run, indexes, refused);
    for (size_t i = 0; i < shapes.count && code == SPILL_OK; i++)
        if (can_merge(&shapes, &shapes.at[i], refused))
            merge_shape(run, &shapes.at[i], indexes, notes);
    release_shapes(&shapes);
    return code;
}
