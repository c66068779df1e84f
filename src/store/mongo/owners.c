/*
 * List the owners of an array, and those whose head needs a reshape: a range of documents of the
 * heads' collection, in the order of _id.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
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
    const spill_list_query_t *query;
    spill_listing_t *listing; /* the results of `add` */
    void (*add)(struct search *search, const bson_t *document, const spill_value_t *id);
    spill_code_t code; /* set if the answer is wrong */
    spill_error_t *error;
} search_t;

/* Does `id` follow the document before it, or the start of the search? */
static bool is_in_order(const search_t *search, const bson_iter_t *id)
{
    const spill_buffer_t *last = &search->listing->last;
    const spill_list_query_t *query = search->query;
    return last->size > 0 ? spill_mongo_follows(last->data, last->size, id)
                          : spill_mongo_follows(query->after, query->after_bytes, id);
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
    if (!bson_iter_init_find(&id, document, "_id"))
        return stop_search(search, "a document has no _id");
    if (search->listing->count >= search->query->limit)
        return stop_search(search, "it has more documents than were asked for");
    if (!is_in_order(search, &id))
        return stop_search(search, "its documents are not in the order of their _id");
    spill_value_t owner = spill_value_from_iter(&id);
    search->add(search, document, &owner);
    spill_mongo_set_last(search->listing, &id);
    return true;
}

static spill_code_t run_search(search_t *search, const bson_t *match, spill_error_t *error)
{
    bson_t *pipeline =
        BCON_NEW("0", "{", "$match", BCON_DOCUMENT(match), "}", "1", "{", "$sort", "{", "_id",
                 BCON_INT32(1), "}", "}", "2", "{", "$limit",
                 BCON_INT64((int64_t)(search->query->limit - search->listing->count)), "}", "3",
                 "{", "$project", BCON_DOCUMENT(search->projection), "}");
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

/* Continue from the position that an earlier search left; no bytes: from the start. */
static spill_code_t find_after(search_t *search, spill_error_t *error)
{
    const spill_list_query_t *query = search->query;
    bson_t place;
    bson_iter_t iter;
    int next = 0;
    search->error = error;
    bool placed = query->after_bytes > 0 &&
                  bson_init_static(&place, query->after, query->after_bytes) &&
                  bson_iter_init(&iter, &place) && bson_iter_next(&iter);
    if (spill_schema_of(search->definition)->has_windows)
        return find_buckets(search, placed ? &iter : NULL, error);
    if (placed) {
        int own = class_of((int)bson_iter_type(&iter));
        if (own == CLASSES)
            return spill_fail(error, SPILL_CORRUPT,
                              "%s: a document has an _id of BSON type %d, which no owner can have",
                              search->definition->collection, (int)bson_iter_type(&iter));
        SPILL_TRY(find_classes(search, &iter, own, own + 1, error));
        next = own + 1;
    }
    if (search->listing->count < query->limit && next < CLASSES)
        return find_classes(search, NULL, next, CLASSES, error);
    return SPILL_OK;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void add_owner(search_t *search, const bson_t *document, const spill_value_t *id)
{
    (void)document;
    spill_listing_add_owner(search->listing, id);
}

/*
 * Conditions: the array is managed or, if `unmanaged`, it has an element. A head that has lost its
 * incarnation is listed as well, so that the READ of it fails.
 */
static bson_t *owners_conditions(const spill_definition_t *definition, bool unmanaged)
{
    char incarnation[SPILL_MONGO_PATH_SIZE], rev[SPILL_MONGO_PATH_SIZE];
    char element[SPILL_NAME_SIZE + 2];
    bson_t *conditions = bson_new(), any;
    spill_bookkeeping_path(definition->array, SPILL_STORED_INCARNATION, incarnation);
    spill_bookkeeping_path(definition->array, SPILL_STORED_REV, rev);
    snprintf(element, sizeof element, "%s.0", definition->array);
    BSON_APPEND_ARRAY_BEGIN(conditions, "$or", &any);
    BCON_APPEND(&any, "0", "{", incarnation, "{", "$exists", BCON_BOOL(true), "}", "}", "1", "{",
                rev, "{", "$exists", BCON_BOOL(true), "}", "}");
    if (unmanaged)
        BCON_APPEND(&any, "2", "{", element, "{", "$exists", BCON_BOOL(true), "}", "}");
    bson_append_array_end(conditions, &any);
    return conditions;
}

/*
 * An expression, to be destroyed: is the _id made of these fields alone, in this order? A document
 * that is equal to its own copy of these fields has no other. The page of a referenced element has
 * the element's number.
 */
static bson_t *has_fields_of_id(const spill_schema_t *schema)
{
    const char *number = schema->has_referenced_elements ? "$" SPILL_STORED_PAGE_FIRST
                                                         : "$" SPILL_STORED_PAGE_NUMBER;
    return schema->has_windows ? BCON_NEW("$eq", "[", "$_id", "{", SPILL_STORED_ID_OWNER,
                                          "$" SPILL_STORED_PAGE_OWNER, SPILL_STORED_ID_WINDOW,
                                          "$" SPILL_STORED_PAGE_WINDOW, SPILL_STORED_ID_PART,
                                          "$" SPILL_STORED_PAGE_PART, "}", "]")
                               : BCON_NEW("$eq", "[", "$_id", "{", SPILL_STORED_ID_OWNER,
                                          "$" SPILL_STORED_PAGE_OWNER, SPILL_STORED_ID_PAGE,
                                          BCON_UTF8(number), "}", "]");
}

bson_t *spill_mongo_has_page_id(const spill_definition_t *definition)
{
    bool bucket = spill_schema_of(definition)->has_windows;
    const char *number = bucket ? "$" SPILL_STORED_PAGE_PART : "$" SPILL_STORED_PAGE_NUMBER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *fields = has_fields_of_id(spill_schema_of(definition));
    /* Servers order values of all types, and no type between numbers is not a number. */
    return BCON_NEW(
        "$and", "[", BCON_DOCUMENT(fields), "{", "$gte", "[", BCON_UTF8(number), BCON_INT64(0), "]",
        "}", "{", "$lte", "[", BCON_UTF8(number), BCON_INT64(INT64_MAX / 4), "]", "}", "{", "$cond",
        "[", "{", "$lte", "[", BCON_UTF8(number), BCON_INT64(INT64_MAX / 4), "]", "}", "{", "$eq",
        "[", "{", "$mod", "[", BCON_UTF8(number), BCON_INT32(1), "]", "}", BCON_INT32(0), "]", "}",
        BCON_BOOL(false), "]", "}", "{", "$eq", "[", "{", "$type",
        bucket ? "$" SPILL_STORED_PAGE_WINDOW : "$_id", "}", bucket ? "string" : "object", "]", "}",
        "{", "$not", "[", "{", "$in", "[", "{", "$type", "$" SPILL_STORED_PAGE_OWNER, "}", "[",
        "array", "regex", "undefined", "missing", "]", "]", "}", "]", "}", "]");
}

/* Conditions: heads of windows. Their names come from their _ids, so others are left out. */
static bson_t *windows_conditions(const spill_definition_t *definition)
{
    SPILL_SCOPED(spill_mongo_destroy) bson_t *own = spill_mongo_has_page_id(definition);
    return BCON_NEW(SPILL_STORED_PAGE_PART, BCON_INT32(0), "$expr", BCON_DOCUMENT(own));
}

spill_code_t spill_mongo_owners(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, const spill_list_query_t *query,
                                spill_listing_t *listing, spill_error_t *error)
{
    (void)binding;
    bool bucket = spill_schema_of(definition)->has_windows;
    bson_t *conditions = bucket ? windows_conditions(definition)
                                : owners_conditions(definition, query->owners.unmanaged);
    bson_t *projection =
        bucket ? BCON_NEW("_id", "{", SPILL_STORED_ID_OWNER, "$" SPILL_STORED_PAGE_OWNER,
                          SPILL_STORED_ID_WINDOW, "$" SPILL_STORED_PAGE_WINDOW, "}")
               : BCON_NEW("_id", BCON_INT32(1));
    search_t search = {.store = (spill_mongo_t *)store,
                       .definition = definition,
                       .conditions = conditions,
                       .projection = projection,
                       .query = query,
                       .listing = listing,
                       .add = add_owner};
    spill_code_t code = find_after(&search, error);
    if (code == SPILL_OK)
        spill_mongo_ahead_list(search.store->ahead, definition, listing);
    bson_destroy(conditions);
    bson_destroy(projection);
    return code;
}

/* ---- oversized heads ------------------------------------------------------------------------- */

/* The paths that the expressions refer to. */
typedef struct names {
    char array[SPILL_NAME_SIZE + 1], count[SPILL_NAME_SIZE + 1];
    char incarnation[SPILL_MONGO_PATH_SIZE + 1], first[SPILL_MONGO_PATH_SIZE + 1];
    char watermark[SPILL_MONGO_PATH_SIZE + 1], removed[SPILL_MONGO_PATH_SIZE + 1];
    char deleted[SPILL_MONGO_PATH_SIZE + 1];
} names_t;

static void name_bookkeeping(const spill_definition_t *definition, const char *field,
                             char ref[SPILL_MONGO_PATH_SIZE + 1])
{
    char path[SPILL_MONGO_PATH_SIZE];
    snprintf(ref, SPILL_MONGO_PATH_SIZE + 1, "$%s",
             spill_bookkeeping_path(definition->array, field, path));
}

static void name(const spill_definition_t *definition, names_t *names)
{
    snprintf(names->array, sizeof names->array, "$%s", definition->array);
    snprintf(names->count, sizeof names->count, "$%s", definition->count_field);
    name_bookkeeping(definition, SPILL_STORED_INCARNATION, names->incarnation);
    name_bookkeeping(definition, SPILL_STORED_FIRST, names->first);
    name_bookkeeping(definition, SPILL_STORED_WATERMARK, names->watermark);
    name_bookkeeping(definition, SPILL_STORED_DELETED, names->deleted);
    name_bookkeeping(definition, SPILL_STORED_REMOVED, names->removed);
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
                                    const spill_list_query_t *query)
{
    bson_t any = BSON_INITIALIZER;
    BCON_APPEND(&any, "0", "{", "$eq", "[", "{", "$type", BCON_UTF8(names->incarnation), "}",
                "missing", "]", "}", "1", "{", "$gte", "[", "{", "$add", "[", "{", "$size",
                BCON_UTF8(names->array), "}", "{", "$size", "{", "$ifNull", "[",
                BCON_UTF8(names->deleted), "[", "]", "]", "}", "}", "]", "}",
                BCON_INT64(query->oversized.slots), "]", "}", "2", "{", "$gte", "[", "{",
                "$bsonSize", "$$ROOT", "}", BCON_INT64(query->oversized.bytes), "]", "}");
    if (query->oversized.miscounts)
        append_miscounted(definition, names, &any);
    bson_t *conditions = BCON_NEW(
        "$expr", "{", "$cond", "[", "{", "$isArray", BCON_UTF8(names->array), "}", "{", "$and", "[",
        "{", "$gt", "[", "{", "$size", BCON_UTF8(names->array), "}", BCON_INT32(0), "]", "}", "{",
        "$or", BCON_ARRAY(&any), "}", "]", "}", BCON_BOOL(false), "]", "}");
    bson_destroy(&any);
    return conditions;
}

/* Read the measures of a document that the projection has. */
static void read_oversized(const bson_t *document, spill_oversized_t *one)
{
    bson_iter_t field;
    bson_iter_init(&field, document);
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        if (strcmp(key, "elements") == 0)
            one->elements = spill_iter_int64(&field);
        else if (strcmp(key, "bytes") == 0)
            one->bytes = spill_iter_int64(&field);
        else if (strcmp(key, "size") == 0)
            one->document_bytes = spill_iter_int64(&field);
        else if (strcmp(key, "ours") == 0)
            one->managed = bson_iter_as_bool(&field);
        else if (strcmp(key, "full") == 0)
            one->full = bson_iter_as_bool(&field);
    }
    one->full = one->full && !one->managed;
}

static void add_oversized(search_t *search, const bson_t *document, const spill_value_t *id)
{
    spill_oversized_t one = {.owner = *id};
    read_oversized(document, &one);
    if (one.elements < 0 || one.elements > INT32_MAX || one.bytes < 0) {
        stop_search(search, "the measures of an array are not sizes");
        return;
    }
    one.obstacle = spill_mongo_obstacle(search->definition, search->query, &one, document);
    spill_listing_add_oversized(search->listing, &one);
}

spill_code_t spill_mongo_oversized(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, const spill_list_query_t *query,
                                   spill_listing_t *listing, spill_error_t *error)
{
    (void)binding;
    names_t names;
    name(definition, &names);
    int64_t full_bytes = query->oversized.full > 0 ? query->oversized.full : INT64_MAX;
    bson_t *conditions = oversized_conditions(definition, &names, query);
    bson_t *projection = BCON_NEW(
        "elements", "{", "$size", BCON_UTF8(names.array), "}", "bytes", "{", "$bsonSize", "{", "a",
        BCON_UTF8(names.array), "}", "}", "size", "{", "$bsonSize", "$$ROOT", "}", "ours", "{",
        "$ne", "[", "{", "$type", BCON_UTF8(names.incarnation), "}", "missing", "]", "}", "full",
        "{", "$gte", "[", "{", "$bsonSize", "$$ROOT", "}", BCON_INT64(full_bytes), "]", "}");
    spill_mongo_project_near(definition, projection);
    search_t search = {.store = (spill_mongo_t *)store,
                       .definition = definition,
                       .conditions = conditions,
                       .projection = projection,
                       .query = query,
                       .listing = listing,
                       .add = add_oversized};
    spill_code_t code = find_after(&search, error);
    bson_destroy(conditions);
    bson_destroy(projection);
    return code;
}
