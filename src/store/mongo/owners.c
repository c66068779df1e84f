/*
 * List the owners of an array, and those whose head needs a reshape: a range of documents of the
 * heads' collection, in the order of _id.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/oversized.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- in the order of _id --------------------------------------------------------------------- */

/*
 * The types that an _id may have (see spill_owner_key), in the order in which servers sort them. A
 * comparison in a query finds only values of the same class, so a search goes from class to class.
 */
static const int classes[][4] = {
    {BSON_TYPE_MINKEY},
    {BSON_TYPE_NULL},
    {BSON_TYPE_INT32, BSON_TYPE_INT64, BSON_TYPE_DOUBLE, BSON_TYPE_DECIMAL128},
    {BSON_TYPE_UTF8, BSON_TYPE_SYMBOL},
    {BSON_TYPE_DOCUMENT},
    {BSON_TYPE_BINARY},
    {BSON_TYPE_OID},
    {BSON_TYPE_BOOL},
    {BSON_TYPE_DATE_TIME},
    {BSON_TYPE_TIMESTAMP},
    {BSON_TYPE_DBPOINTER},
    {BSON_TYPE_CODE},
    {BSON_TYPE_CODEWSCOPE},
    {BSON_TYPE_MAXKEY},
};
enum { CLASSES = sizeof classes / sizeof *classes };

/* CLASSES: no owner has this type. */
static int class_of(int type)
{
    for (int i = 0; i < CLASSES; i++)
        for (int k = 0; k < 4; k++)
            if (classes[i][k] == type)
                return i;
    return CLASSES;
}

/* minKey has type -1 in queries. */
static void append_types(bson_t *condition, int from, int end)
{
    bson_t types;
    uint32_t index = 0;
    BSON_APPEND_ARRAY_BEGIN(condition, "$type", &types);
    for (int i = from; i < end; i++) {
        for (int k = 0; k < 4 && classes[i][k] != 0; k++) {
            char buffer[16];
            const char *key;
            bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
            bson_append_int32(&types, key, -1,
                              classes[i][k] == BSON_TYPE_MINKEY ? -1 : classes[i][k]);
        }
    }
    bson_append_array_end(condition, &types);
}

bool spill_mongo_append_class(bson_t *condition, int type, bool behind)
{
    int class = class_of(type);
    int from = behind ? class + 1 : class;
    int end = behind ? CLASSES : class + 1;
    if (from >= CLASSES)
        return false;
    append_types(condition, from, end);
    return true;
}

/* A search, and its results. */
typedef struct search {
    spill_mongo_t *store;
    const spill_definition_t *definition;
    const bson_t *conditions; /* besides the one on _id */
    const bson_t *projection;
    size_t limit;
    bson_t *array; /* the results of `add` */
    uint32_t count;
    void (*add)(struct search *search, const char *key, const bson_t *document,
                const bson_iter_t *id);
    spill_buffer_t *last;                 /* the position of the last result: {"": _id} */
    const spill_oversized_query_t *query; /* of oversized heads */
    const uint8_t *after;                 /* the position behind which the search begins */
    size_t after_bytes;
    spill_code_t code; /* set if the answer is wrong */
    spill_error_t *error;
} search_t;

/* Does `id` follow the document before it, or the start of the search? */
static bool is_in_order(const search_t *search, const bson_iter_t *id)
{
    return search->last->size > 0 ? spill_mongo_follows(search->last->data, search->last->size, id)
                                  : spill_mongo_follows(search->after, search->after_bytes, id);
}

static bool stop_search(search_t *search, const char *what)
{
    search->code =
        spill_fail(search->error, SPILL_CORRUPT, "%s.%s: the server's answer is wrong: %s",
                   search->store->place, search->definition->collection, what);
    return false;
}

static bool add_found(void *context, const bson_t *document)
{
    search_t *search = context;
    bson_iter_t id;
    char buffer[16];
    const char *key;
    if (!bson_iter_init_find(&id, document, "_id"))
        return stop_search(search, "a document has no _id");
    if (search->count >= search->limit)
        return stop_search(search, "it has more documents than were asked for");
    if (!is_in_order(search, &id))
        return stop_search(search, "its documents are not in the order of their _id");
    bson_uint32_to_string(search->count++, &key, buffer, sizeof buffer);
    search->add(search, key, document, &id);
    bson_t place = BSON_INITIALIZER;
    bson_append_iter(&place, "", 0, &id);
    spill_buffer_clear(search->last);
    spill_buffer_append(search->last, bson_get_data(&place), place.len);
    bson_destroy(&place);
    return true;
}

static spill_code_t run_search(search_t *search, const bson_t *match, spill_error_t *error)
{
    bson_t *pipeline = BCON_NEW("0", "{", "$match", BCON_DOCUMENT(match), "}", "1", "{", "$sort",
                                "{", "_id", BCON_INT32(1), "}", "}", "2", "{", "$limit",
                                BCON_INT64((int64_t)search->limit - search->count), "}", "3", "{",
                                "$project", BCON_DOCUMENT(search->projection), "}");
    spill_code_t code = spill_mongo_each(search->store, search->definition->collection, pipeline,
                                         false, add_found, search, error);
    bson_destroy(pipeline);
    return code == SPILL_OK ? search->code : code;
}

/*
 * Find documents of classes [from, end), of the first class only those after `after`. The condition
 * always has a bound, so that servers use the order of the index and do not sort all documents.
 */
static spill_code_t find_classes(search_t *search, const bson_iter_t *after, int from, int end,
                                 spill_error_t *error)
{
    bson_t match = BSON_INITIALIZER, id;
    BSON_APPEND_DOCUMENT_BEGIN(&match, "_id", &id);
    if (after)
        bson_append_iter(&id, "$gt", -1, after);
    else
        BSON_APPEND_MINKEY(&id, "$gte");
    if (from > 0 || end < CLASSES)
        append_types(&id, from, end);
    bson_append_document_end(&match, &id);
    bson_concat(&match, search->conditions);
    spill_code_t code = run_search(search, &match, error);
    bson_destroy(&match);
    return code;
}

/* Layout bucket: find windows in the order of their _id {owner, window, part}. */
static spill_code_t find_buckets(search_t *search, const bson_iter_t *after, spill_error_t *error)
{
    bson_t match = BSON_INITIALIZER, id;
    if (after) {
        spill_value_t window = spill_value_from_iter(after);
        BSON_APPEND_DOCUMENT_BEGIN(&match, "_id", &id);
        spill_render_part_id(&id, "$gt", &window, SPILL_HEAD);
        bson_append_document_end(&match, &id);
    }
    bson_concat(&match, search->conditions);
    spill_code_t code = run_search(search, &match, error);
    bson_destroy(&match);
    return code;
}

/* Continue from the position that an earlier search left; size 0: from the start. */
static spill_code_t find_after(search_t *search, const uint8_t *after, size_t after_bytes,
                               spill_error_t *error)
{
    bson_t place;
    bson_iter_t iter;
    int next = 0;
    spill_code_t code = SPILL_OK;
    search->after = after;
    search->after_bytes = after_bytes;
    search->error = error;
    bool placed = after_bytes > 0 && bson_init_static(&place, after, after_bytes) &&
                  bson_iter_init(&iter, &place) && bson_iter_next(&iter);
    if (spill_schema_of(search->definition)->has_windows)
        return find_buckets(search, placed ? &iter : NULL, error);
    if (placed) {
        int own = class_of((int)bson_iter_type(&iter));
        if (own < CLASSES)
            code = find_classes(search, &iter, own, own + 1, error);
        else
            code = spill_fail(error, SPILL_CORRUPT,
                              "%s: a document has an _id of BSON type %d, which no owner can have",
                              search->definition->collection, (int)bson_iter_type(&iter));
        next = own + 1;
    }
    if (code == SPILL_OK && search->count < search->limit && next < CLASSES)
        code = find_classes(search, NULL, next, CLASSES, error);
    return code;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void add_id(search_t *search, const char *key, const bson_t *document, const bson_iter_t *id)
{
    (void)document;
    bson_append_iter(search->array, key, -1, id);
}

spill_code_t spill_mongo_owners(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, const uint8_t *after,
                                size_t after_bytes, size_t limit, bson_t *owners,
                                spill_buffer_t *last, spill_error_t *error)
{
    (void)binding;
    char path[SPILL_NAME_SIZE + 16];
    snprintf(path, sizeof path, "spill.%s.epoch", definition->array);
    bool bucket = spill_schema_of(definition)->has_windows;
    bson_t *conditions = bucket ? BCON_NEW("_id.part", BCON_INT32(0), "spill.epoch", "{", "$exists",
                                           BCON_BOOL(true), "}")
                                : BCON_NEW(path, "{", "$exists", BCON_BOOL(true), "}");
    bson_t *projection =
        bucket ? BCON_NEW("_id", "{", "owner", "$_id.owner", "window", "$_id.window", "}")
               : BCON_NEW("_id", BCON_INT32(1));
    search_t search = {.store = (spill_mongo_t *)store,
                       .definition = definition,
                       .conditions = conditions,
                       .projection = projection,
                       .limit = limit,
                       .array = owners,
                       .add = add_id,
                       .last = last};
    bson_init(owners);
    spill_buffer_t from = SPILL_BUFFER_INIT; /* `after` may point into `last` */
    spill_buffer_append(&from, after, after_bytes);
    spill_buffer_clear(last);
    spill_code_t code = find_after(&search, from.data, from.size, error);
    if (code != SPILL_OK)
        bson_destroy(owners);
    spill_buffer_release(&from);
    bson_destroy(conditions);
    bson_destroy(projection);
    return code;
}

/* ---- oversized heads ------------------------------------------------------------------------- */

/* The paths that the expressions refer to. */
typedef struct names {
    char array[SPILL_NAME_SIZE + 1], count[SPILL_NAME_SIZE + 1];
    char incarnation[SPILL_NAME_SIZE + 32], first[SPILL_NAME_SIZE + 32],
        watermark[SPILL_NAME_SIZE + 32];
    char removed[SPILL_NAME_SIZE + 32], deleted[SPILL_NAME_SIZE + 32];
} names_t;

static void name(const spill_definition_t *definition, names_t *names)
{
    snprintf(names->array, sizeof names->array, "$%s", definition->array);
    snprintf(names->count, sizeof names->count, "$%s", definition->count_field);
    snprintf(names->incarnation, sizeof names->incarnation, "$spill.%s.epoch", definition->array);
    snprintf(names->first, sizeof names->first, "$spill.%s.first", definition->array);
    snprintf(names->watermark, sizeof names->watermark, "$spill.%s.low", definition->array);
    snprintf(names->deleted, sizeof names->deleted, "$spill.%s.gone", definition->array);
    snprintf(names->removed, sizeof names->removed, "$spill.%s.removed", definition->array);
}

/* Append: is the count field of a head (keep newest, or capped) wrong? */
static void append_miscounted(const spill_definition_t *definition, const names_t *names,
                              bson_t *any)
{
    if (definition->count_field[0] == '\0' || !spill_schema_of(definition)->appends_to_head)
        return;
    BCON_APPEND(any, "3", "{", "$ne", "[", BCON_UTF8(names->count), "{", "$subtract", "[", "{",
                "$add", "[", BCON_UTF8(names->first), "{", "$size", BCON_UTF8(names->array), "}",
                "]", "}", "{", "$add", "[", BCON_UTF8(names->watermark), BCON_UTF8(names->removed),
                "]", "}", "]", "}", "]", "}");
}

/* Conditions: an array is not empty, and it is unmanaged or oversized. */
static bson_t *oversized_conditions(const spill_definition_t *definition, const names_t *names,
                                    const spill_oversized_query_t *query)
{
    bson_t any = BSON_INITIALIZER;
    BCON_APPEND(&any, "0", "{", "$eq", "[", "{", "$type", BCON_UTF8(names->incarnation), "}",
                "missing", "]", "}", "1", "{", "$gte", "[", "{", "$add", "[", "{", "$size",
                BCON_UTF8(names->array), "}", "{", "$size", "{", "$ifNull", "[",
                BCON_UTF8(names->deleted), "[", "]", "]", "}", "}", "]", "}",
                BCON_INT64(query->slots), "]", "}", "2", "{", "$gte", "[", "{", "$bsonSize",
                "$$ROOT", "}", BCON_INT64(query->bytes), "]", "}");
    if (query->counts)
        append_miscounted(definition, names, &any);
    bson_t *conditions = BCON_NEW(
        "$expr", "{", "$cond", "[", "{", "$isArray", BCON_UTF8(names->array), "}", "{", "$and", "[",
        "{", "$gt", "[", "{", "$size", BCON_UTF8(names->array), "}", BCON_INT32(0), "]", "}", "{",
        "$or", BCON_ARRAY(&any), "}", "]", "}", BCON_BOOL(false), "]", "}");
    bson_destroy(&any);
    return conditions;
}

static void add_oversized(search_t *search, const char *key, const bson_t *document,
                          const bson_iter_t *id)
{
    (void)id;
    bson_t entry = BSON_INITIALIZER, at = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_oversized_t one;
    bson_copy_to_excluding_noinit(document, &entry, "near", NULL);
    BSON_APPEND_DOCUMENT(&at, "0", document);
    bool read =
        bson_iter_init(&iter, &at) && bson_iter_next(&iter) && spill_oversized_read(&iter, &one);
    if (!read || one.elements < 0 || one.elements > INT32_MAX || one.bytes < 0)
        stop_search(search, "the measures of an array are not sizes");
    else
        BSON_APPEND_INT32(
            &entry, "obstacle",
            (int32_t)spill_mongo_obstacle(search->definition, search->query, &one, document));
    BSON_APPEND_DOCUMENT(search->array, key, &entry);
    bson_destroy(&entry);
    bson_destroy(&at);
}

spill_code_t spill_mongo_oversized(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding,
                                   const spill_oversized_query_t *query, bson_t *found,
                                   spill_buffer_t *last, spill_error_t *error)
{
    (void)binding;
    names_t names;
    name(definition, &names);
    bson_t *conditions = oversized_conditions(definition, &names, query);
    bson_t *projection =
        BCON_NEW("elements", "{", "$size", BCON_UTF8(names.array), "}", "bytes", "{", "$bsonSize",
                 "{", "a", BCON_UTF8(names.array), "}", "}", "ours", "{", "$ne", "[", "{", "$type",
                 BCON_UTF8(names.incarnation), "}", "missing", "]", "}", "full", "{", "$gte", "[",
                 "{", "$bsonSize", "$$ROOT", "}",
                 BCON_INT64(query->full > 0 ? query->full : INT64_MAX), "]", "}");
    spill_mongo_project_near(definition, projection);
    search_t search = {.store = (spill_mongo_t *)store,
                       .definition = definition,
                       .query = query,
                       .conditions = conditions,
                       .projection = projection,
                       .limit = query->limit,
                       .array = found,
                       .add = add_oversized,
                       .last = last};
    bson_init(found);
    spill_buffer_clear(last);
    spill_code_t code = find_after(&search, query->after, query->after_bytes, error);
    if (code != SPILL_OK)
        bson_destroy(found);
    bson_destroy(conditions);
    bson_destroy(projection);
    return code;
}
