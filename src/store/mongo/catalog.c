/* Definitions, imports, and indexes. */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/raw_reader.h"
#include "store/render.h"
#include "util/buffer.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- documents of the catalog ---------------------------------------------------------------- */

/* An entry is {_id: name, entry: {...}} in the collection of its kind. */
static const char *collection_of(spill_catalog_t kind)
{
    return kind == SPILL_CATALOG_DEFINITION ? SPILL_MONGO_DEFINITIONS : SPILL_MONGO_JOBS;
}

/* Copy the entry of a document of the catalog. */
static spill_code_t copy_entry(spill_catalog_t kind, const char *name, const bson_t *stored,
                               bson_t **entry, spill_error_t *error)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!bson_iter_init_find(&iter, stored, "entry") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return spill_fail(error, SPILL_CORRUPT, "%s: '%s' has no entry", collection_of(kind), name);
    bson_iter_document(&iter, &size, &data);
    *entry = bson_new_from_data(data, size);
    return SPILL_OK;
}

spill_code_t spill_mongo_catalog_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     bson_t **document, spill_error_t *error)
{
    *document = NULL;
    bson_t *pipeline =
        BCON_NEW("0", "{", "$match", "{", "_id", "{", "$eq", BCON_UTF8(name), "}", "}", "}");
    bson_t stored;
    bool found;
    spill_code_t code = spill_mongo_first((spill_mongo_t *)store, collection_of(kind), pipeline,
                                          &stored, &found, error);
    if (code == SPILL_OK && found)
        code = copy_entry(kind, name, &stored, document, error);
    bson_destroy(&stored);
    bson_destroy(pipeline);
    return code;
}

/* Entries that are read together. */
typedef struct pair {
    const char *const *names;
    bson_t **documents;
    spill_code_t code;
    spill_error_t *error;
} pair_t;

static bool add_entry(void *context, const bson_t *stored)
{
    pair_t *pair = context;
    const char *name = spill_document_text(stored, "_id", "");
    for (size_t i = 0; i < 2 && pair->code == SPILL_OK; i++)
        if (!pair->documents[i] && strcmp(pair->names[i], name) == 0)
            pair->code =
                copy_entry(SPILL_CATALOG_JOB, name, stored, &pair->documents[i], pair->error);
    return pair->code == SPILL_OK;
}

spill_code_t spill_mongo_imports_get(spill_store_t *store, const char *const names[2],
                                     bson_t *documents[2], spill_error_t *error)
{
    pair_t pair = {.names = names, .documents = documents, .error = error};
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", "{", "$in", "[",
                                BCON_UTF8(names[0]), BCON_UTF8(names[1]), "]", "}", "}", "}");
    documents[0] = documents[1] = NULL;
    SPILL_TRY(spill_mongo_each((spill_mongo_t *)store, collection_of(SPILL_CATALOG_JOB), pipeline,
                               false, add_entry, &pair, error));
    return pair.code;
}

/* The server's codes for indexes: not found, and conflicts with an existing index. */
enum { INDEX_NOT_FOUND = 27, INDEX_OPTIONS_CONFLICT = 85, INDEX_KEYS_CONFLICT = 86 };

static spill_code_t create_index(spill_mongo_t *store, const char *collection, const char *name,
                                 const bson_t *keys, spill_error_t *error)
{
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(collection), "indexes", "[", "{", "key",
                               BCON_DOCUMENT(keys), "name", BCON_UTF8(name), "}", "]");
    spill_code_t code = spill_mongo_command(store, collection, command, error);
    bson_destroy(command);
    return code;
}

static spill_code_t drop_index(spill_mongo_t *store, const char *collection, const char *name,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *command = BCON_NEW("dropIndexes", BCON_UTF8(collection), "index", BCON_UTF8(name));
    return spill_mongo_command(store, collection, command, error);
}

static bool is_index_conflict(spill_code_t code, const spill_error_t *error)
{
    return code != SPILL_OK &&
           (error->native == INDEX_OPTIONS_CONFLICT || error->native == INDEX_KEYS_CONFLICT);
}

/*
 * If an index of the name has other keys, an earlier definition made it, and no one uses it: field
 * names change only while there is no owner, and no other definition has pages here. So replace it.
 * If there is no index of the name, an application's index has the keys, which is as good.
 */
static spill_code_t make_index(spill_mongo_t *store, const char *collection, const char *name,
                               const bson_t *keys, spill_error_t *error)
{
    spill_error_t failure;
    spill_code_t code = create_index(store, collection, name, keys, &failure);
    for (int i = 0; i < 2 && is_index_conflict(code, &failure); i++) {
        code = drop_index(store, collection, name, &failure);
        if (code == SPILL_OK)
            code = create_index(store, collection, name, keys, &failure);
        else if (failure.native == INDEX_NOT_FOUND)
            code = SPILL_OK;
    }
    if (code != SPILL_OK && error)
        *error = failure;
    return code;
}

/* Append to an index the path of a value in referenced elements, in descending order. */
static void append_descending(const spill_definition_t *definition, const char *path, bson_t *keys)
{
    char stored[SPILL_STORED_PATH_SIZE];
    spill_stored_element_path(definition, path, stored);
    BSON_APPEND_INT32(keys, stored, -1);
}

/* Add the descriptions of the definition's collections, if they exist, to `listing`. */
static spill_code_t list_collections(spill_mongo_t *store, const spill_definition_t *definition,
                                     bson_t *listing, spill_error_t *error)
{
    char buffer[16];
    const char *key;
    const bson_t *description;
    uint32_t count = 0;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *opts =
        BCON_NEW("filter", "{", "name", "{", "$in", "[", BCON_UTF8(definition->collection),
                 BCON_UTF8(definition->page_collection), "]", "}", "}");
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_database_t *database = mongoc_client_get_database(client, store->database);
    mongoc_database_set_read_prefs(database, store->primary);
    spill_mongo_cursor_t cursor = spill_mongo_cursor(
        store, NULL, mongoc_database_find_collections_with_opts(database, opts), true);
    spill_code_t code = spill_mongo_cursor_next(&cursor, &description, error);
    for (; description; code = spill_mongo_cursor_next(&cursor, &description, error)) {
        bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(listing, key, description);
    }
    spill_mongo_cursor_end(&cursor);
    mongoc_database_destroy(database);
    mongoc_client_pool_push(store->pool, client);
    return code;
}

/*
 * Return SPILL_REFUSED if one of the definition's collections has a collation. A user without the
 * right to list collections may still use them, so then skip the check.
 */
static spill_code_t check_collations(spill_mongo_t *store, const bson_t *entry,
                                     spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_SCOPED(bson_destroy) bson_t listing = BSON_INITIALIZER;
    SPILL_TRY(spill_definition_from_bson(&definition, entry, error));
    spill_code_t code = list_collections(store, &definition, &listing, error);
    if (code == SPILL_DENIED)
        return SPILL_OK;
    SPILL_TRY(code);
    SPILL_TRY(spill_collation_refuse(&listing, definition.collection, error));
    return spill_schema_of(&definition)->has_pages
               ? spill_collation_refuse(&listing, definition.page_collection, error)
               : SPILL_OK;
}

static bson_t *owner_key(const spill_definition_t *definition)
{
    return BCON_NEW(definition->page_owner, BCON_INT32(1));
}

/* For applications: by owner and number, by owner and time, or by owner. */
static spill_code_t index_for_applications(spill_mongo_t *store,
                                           const spill_definition_t *definition,
                                           spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *by_page = owner_key(definition);
    if (schema->has_windows)
        BCON_APPEND(by_page, definition->window_field, BCON_INT32(1));
    if (definition->page_number[0] != '\0')
        BCON_APPEND(by_page, definition->page_number, BCON_INT32(1));
    else if (schema->has_referenced_elements && definition->time_field[0] != '\0')
        append_descending(definition, definition->time_field, by_page);
    return make_index(store, definition->page_collection, "spillway_page", by_page, error);
}

/* By rank, for SPILL_WANT_TOP_N. */
static spill_code_t index_ranks(spill_mongo_t *store, const spill_definition_t *definition,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy) bson_t *by_rank = owner_key(definition);
    if (definition->sort_field[0] == '\0')
        return SPILL_OK;
    append_descending(definition, definition->sort_field, by_rank);
    BCON_APPEND(by_rank, SPILL_STORED_PAGE_FIRST, BCON_INT32(-1));
    return make_index(store, definition->page_collection, "spillway_rank", by_rank, error);
}

/*
 * The indexes that a copy reads by: by the first element's number, for SPILL_PAGE_HOLDING; by the
 * elements' ids, for SPILL_PAGE_WITH_ID.
 */
static spill_code_t index_for_steps(spill_mongo_t *store, const spill_definition_t *definition,
                                    spill_error_t *error)
{
    const char *collection = definition->page_collection;
    char path[SPILL_MONGO_ID_PATH_SIZE];
    SPILL_SCOPED(spill_mongo_destroy) bson_t *by_first = owner_key(definition);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *by_id = owner_key(definition);
    if (spill_schema_of(definition)->has_windows)
        BCON_APPEND(by_first, definition->window_field, BCON_INT32(1));
    BCON_APPEND(by_first, SPILL_STORED_PAGE_FIRST, BCON_INT32(1), "_id", BCON_INT32(1));
    SPILL_TRY(make_index(store, collection, "spillway_first", by_first, error));
    if (definition->id_field[0] == '\0')
        return SPILL_OK;
    spill_mongo_id_path(definition, path);
    BCON_APPEND(by_id, path, BCON_INT32(1));
    return make_index(store, collection, "spillway_id", by_id, error);
}

spill_code_t spill_mongo_make_indexes(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error)
{
    spill_mongo_t *mongo = (spill_mongo_t *)store;
    if (!spill_schema_of(definition)->has_pages)
        return SPILL_OK;
    SPILL_TRY(index_for_steps(mongo, definition, error));
    SPILL_TRY(index_for_applications(mongo, definition, error));
    return index_ranks(mongo, definition, error);
}

/* Is a migration copying elements to the definition? Its job is saved before the definition. */
static spill_code_t is_building(spill_mongo_t *store, const char *name, bool *building,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_free_document) bson_t *job = NULL;
    SPILL_SCOPED(spill_free_text)
    char *entry = bson_strdup_printf("%s" SPILL_CATALOG_BUILDING, name);
    *building = false;
    SPILL_TRY(spill_mongo_catalog_get(&store->base, SPILL_CATALOG_JOB, entry, &job, error));
    *building = job != NULL;
    return SPILL_OK;
}

/*
 * An index for applications costs the server more than the document of an element itself. So a
 * migration copies without the indexes that no step of it reads by, and makes them after the copy.
 */
static spill_code_t make_indexes_of_entry(spill_mongo_t *store, const bson_t *entry,
                                          spill_error_t *error)
{
    spill_definition_t definition;
    bool building = false;
    SPILL_TRY(spill_definition_from_bson(&definition, entry, error));
    if (spill_schema_of(&definition)->has_referenced_elements)
        SPILL_TRY(is_building(store, definition.name, &building, error));
    return building ? index_for_steps(store, &definition, error)
                    : spill_mongo_make_indexes(&store->base, &definition, error);
}

/*
 * Does the entry only get the mark of an undo? If the mark is removed, indexes are made as for a
 * new definition: the undo may have dropped the page collection.
 */
static bool gets_mark(const bson_t *expected, const bson_t *document)
{
    SPILL_SCOPED(bson_destroy) bson_t before = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t after = BSON_INITIALIZER;
    if (!expected || !bson_has_field(document, "undoing"))
        return false;
    bson_copy_to_excluding_noinit(expected, &before, "undoing", NULL);
    bson_copy_to_excluding_noinit(document, &after, "undoing", NULL);
    return bson_equal(&before, &after);
}

spill_code_t spill_mongo_catalog_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                                     const bson_t *expected, const bson_t *document, bool *done,
                                     spill_error_t *error)
{
    spill_mongo_t *mongo = (spill_mongo_t *)store;
    const char *collection = collection_of(kind);
    *done = false;
    if (kind == SPILL_CATALOG_DEFINITION && document && !gets_mark(expected, document)) {
        SPILL_TRY(check_collations(mongo, document, error));
        SPILL_TRY(make_indexes_of_entry(mongo, document, error));
    }
    if (!expected) {
        SPILL_SCOPED(spill_mongo_destroy)
        bson_t *entry = BCON_NEW("_id", BCON_UTF8(name), "entry", BCON_DOCUMENT(document));
        return spill_mongo_insert(mongo, collection, entry, done, error);
    }
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *filter = BCON_NEW("_id", "{", "$eq", BCON_UTF8(name), "}", "entry", "{", "$eq",
                              BCON_DOCUMENT(expected), "}");
    if (!document)
        return spill_mongo_delete(mongo, collection, filter, done, error);
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *update = BCON_NEW("$set", "{", "entry", BCON_DOCUMENT(document), "}");
    return spill_mongo_modify(mongo, collection, filter, update, NULL, NULL, done, error);
}

spill_code_t spill_mongo_catalog_delete(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *filter = BCON_NEW("_id", "{", "$eq", BCON_UTF8(name), "}");
    bool found;
    return spill_mongo_delete((spill_mongo_t *)store, collection_of(kind), filter, &found, error);
}

/* Read the time in the field of an answer. `from` names where it comes from. */
static spill_code_t read_time(const bson_t *answer, const char *field, const char *from,
                              int64_t *now_us, spill_error_t *error)
{
    bson_iter_t now;
    if (!bson_iter_init_find(&now, answer, field) || !BSON_ITER_HOLDS_DATE_TIME(&now))
        return spill_fail(error, SPILL_CORRUPT, "%s: the server's answer is wrong: no time", from);
    *now_us = bson_iter_date_time(&now) * 1000;
    return SPILL_OK;
}

/* The time of `hello`, which needs no document. */
static spill_code_t ask_time(spill_mongo_t *store, int64_t *now_us, spill_error_t *error)
{
    bson_t answer;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *hello = BCON_NEW("hello", BCON_INT32(1));
    spill_code_t code = spill_mongo_ask(store, hello, &answer, error);
    if (code == SPILL_OK)
        code = read_time(&answer, "localTime", store->place, now_us, error);
    bson_destroy(&answer);
    return code;
}

/*
 * $$NOW is the clock of the guards: FerretDB has another one for `hello`. A pipeline needs a
 * document. A store has a definition, unless an undo has just deleted the last one.
 */
spill_code_t spill_mongo_now(spill_store_t *store, int64_t *now_us, spill_error_t *error)
{
    bson_t answer;
    bool found;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline = BCON_NEW("0", "{", "$limit", BCON_INT64(1), "}", "1", "{", "$project", "{",
                                "now", "$$NOW", "}", "}");
    *now_us = 0;
    spill_code_t code = spill_mongo_first((spill_mongo_t *)store, SPILL_MONGO_DEFINITIONS, pipeline,
                                          &answer, &found, error);
    if (code == SPILL_OK)
        code = found ? read_time(&answer, "now", SPILL_MONGO_DEFINITIONS, now_us, error)
                     : ask_time((spill_mongo_t *)store, now_us, error);
    bson_destroy(&answer);
    return code;
}

/* ---- lists ----------------------------------------------------------------------------------- */

typedef struct list {
    spill_mongo_t *store;
    const char *collection;
    spill_listing_t *names;
    spill_code_t code;
    spill_error_t *error;
} list_t;

/* Add a name. The server must return names in the order of their bytes, each once. */
static bool add_name(list_t *list, const bson_iter_t *iter)
{
    const spill_buffer_t *last = &list->names->last;
    if (!BSON_ITER_HOLDS_UTF8(iter)) {
        list->code =
            spill_fail(list->error, SPILL_CORRUPT, "%s.%s: the _id of a document is not a string",
                       list->store->place, list->collection);
        return false;
    }
    uint32_t length;
    const char *name = bson_iter_utf8(iter, &length);
    if (last->size > 0 && strcmp((const char *)last->data, name) >= 0) {
        list->code =
            spill_fail(list->error, SPILL_CORRUPT,
                       "%s.%s: the server's answer is wrong: it lists '%.100s' after "
                       "'%.100s'",
                       list->store->place, list->collection, name, (const char *)last->data);
        return false;
    }
    spill_listing_add_text(list->names, name, length);
    return true;
}

static bool add_id(void *context, const bson_t *document)
{
    list_t *list = context;
    bson_iter_t iter;
    return !bson_iter_init_find(&iter, document, "_id") || add_name(list, &iter);
}

/* List the names of the entries that match `filter`. */
static spill_code_t list_names(spill_mongo_t *store, spill_catalog_t kind, const bson_t *filter,
                               spill_listing_t *names, spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline = BCON_NEW("0", "{", "$match", BCON_DOCUMENT(filter), "}", "1", "{", "$sort",
                                "{", "_id", BCON_INT32(1), "}", "}", "2", "{", "$project", "{",
                                "_id", BCON_INT32(1), "}", "}");
    spill_listing_clear(names);
    list_t list = {
        .store = store, .collection = collection_of(kind), .names = names, .error = error};
    SPILL_TRY(spill_mongo_each(store, list.collection, pipeline, false, add_id, &list, error));
    return list.code;
}

spill_code_t spill_mongo_catalog_names(spill_store_t *store, spill_catalog_t kind,
                                       spill_listing_t *names, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t all = BSON_INITIALIZER;
    return list_names((spill_mongo_t *)store, kind, &all, names, error);
}

spill_code_t spill_mongo_definitions_beside(spill_store_t *store,
                                            const spill_definition_t *definition,
                                            spill_listing_t *names, spill_error_t *error)
{
    const char *heads = definition->collection;
    const char *pages = definition->page_collection[0] ? definition->page_collection : heads;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *filter =
        BCON_NEW("$or", "[", "{", "entry.collection", "{", "$in", "[", BCON_UTF8(heads),
                 BCON_UTF8(pages), "]", "}", "}", "{", "entry.pageCollection", "{", "$in", "[",
                 BCON_UTF8(heads), BCON_UTF8(pages), "]", "}", "}", "{", "entry.collection", "{",
                 "$exists", BCON_BOOL(false), "}", "}", "]");
    return list_names((spill_mongo_t *)store, SPILL_CATALOG_DEFINITION, filter, names, error);
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* This store finds documents by name; the numbers only have to differ. */
static spill_binding_t binding_of(const char *name, const char *collection)
{
    return (spill_binding_t){.array_id = (uint32_t)spill_hash(name, strlen(name)),
                             .collection_id = (uint32_t)spill_hash(collection, strlen(collection))};
}

spill_code_t spill_mongo_bind(spill_store_t *store, const spill_definition_t *definition,
                              spill_binding_t *binding, spill_error_t *error)
{
    *binding = (spill_binding_t){0};
    bson_t *document;
    SPILL_TRY(spill_mongo_catalog_get(store, SPILL_CATALOG_DEFINITION, definition->name, &document,
                                      error));
    if (!document)
        return spill_fail(error, SPILL_NOT_FOUND, "definition '%s' is not in the store",
                          definition->name);
    bson_destroy(document);
    *binding = binding_of(definition->name, definition->collection);
    return SPILL_OK;
}

/* Copy the entry of the import that $lookup has found, if there is one. */
static spill_code_t copy_import(const bson_t *stored, const char *import, bson_t **entry,
                                spill_error_t *error)
{
    bson_iter_t iter, found;
    const uint8_t *data;
    uint32_t size;
    bson_t document;
    if (!bson_iter_init_find(&iter, stored, "imports") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &found))
        return spill_fail(error, SPILL_CORRUPT, "%s: the server's answer is wrong: no imports",
                          SPILL_MONGO_DEFINITIONS);
    if (!bson_iter_next(&found))
        return SPILL_OK;
    if (!BSON_ITER_HOLDS_DOCUMENT(&found))
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the server's answer is wrong: an import of another type",
                          SPILL_MONGO_JOBS);
    bson_iter_document(&found, &size, &data);
    bool valid = bson_init_static(&document, data, size);
    return valid ? copy_entry(SPILL_CATALOG_JOB, import, &document, entry, error)
                 : spill_fail(error, SPILL_CORRUPT, "%s: '%s' is not valid BSON", SPILL_MONGO_JOBS,
                              import);
}

spill_code_t spill_mongo_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error)
{
    *entries = (spill_entries_t){0};
    bson_t *pipeline = BCON_NEW(
        "0", "{", "$match", "{", "_id", "{", "$eq", BCON_UTF8(name), "}", "}", "}", "1", "{",
        "$addFields", "{", "import", "{", "$literal", BCON_UTF8(import), "}", "}", "}", "2", "{",
        "$lookup", "{", "from", BCON_UTF8(SPILL_MONGO_JOBS), "localField", BCON_UTF8("import"),
        "foreignField", BCON_UTF8("_id"), "as", BCON_UTF8("imports"), "}", "}");
    bson_t stored;
    bool found;
    spill_code_t code = spill_mongo_first((spill_mongo_t *)store, SPILL_MONGO_DEFINITIONS, pipeline,
                                          &stored, &found, error);
    if (code == SPILL_OK && found)
        code = copy_entry(SPILL_CATALOG_DEFINITION, name, &stored, &entries->definition, error);
    if (code == SPILL_OK && found)
        code = copy_import(&stored, import, &entries->import, error);
    bson_iter_t collection;
    if (entries->definition &&
        bson_iter_init_find(&collection, entries->definition, "collection") &&
        BSON_ITER_HOLDS_UTF8(&collection)) {
        entries->binding = binding_of(name, bson_iter_utf8(&collection, NULL));
        entries->bound = true;
    }
    bson_destroy(&stored);
    bson_destroy(pipeline);
    return code;
}

/* ---- are two connections to the same database? ----------------------------------------------- */

/*
 * Read from the primary with read concern local: it finds an acknowledged marker, whatever the
 * write concern of one connection and the read concern of the other.
 */
static spill_code_t find_marker(spill_mongo_t *store, const bson_t *marker, bool *found,
                                spill_error_t *error)
{
    bson_t *opts = BCON_NEW("readConcern", "{", "level", MONGOC_READ_CONCERN_LEVEL_LOCAL, "}");
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_collection_t *marks =
        mongoc_client_get_collection(client, store->database, SPILL_MONGO_DROP_RECORDS);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(marks, marker, opts, store->primary);
    spill_mongo_cursor_t documents =
        spill_mongo_cursor(store, SPILL_MONGO_DROP_RECORDS, cursor, true);
    const bson_t *document;
    spill_code_t code = spill_mongo_cursor_next(&documents, &document, error);
    *found = document != NULL;
    spill_mongo_cursor_end(&documents);
    mongoc_collection_destroy(marks);
    mongoc_client_pool_push(store->pool, client);
    bson_destroy(opts);
    return code;
}

/*
 * A host may have several names, and a copy of a database has the same documents. Only a new write
 * distinguishes them. A marker that a crash leaves behind is a small document without effect.
 */
spill_code_t spill_mongo_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error)
{
    spill_mongo_t *marked = (spill_mongo_t *)other;
    bson_oid_t id;
    bool done;
    *same = false;
    bson_oid_init(&id, NULL);
    bson_t *marker = BCON_NEW("_id", BCON_OID(&id));
    spill_code_t code = spill_mongo_insert(marked, SPILL_MONGO_DROP_RECORDS, marker, &done, error);
    if (code == SPILL_OK) {
        code = find_marker((spill_mongo_t *)store, marker, same, error);
        spill_mongo_delete(marked, SPILL_MONGO_DROP_RECORDS, marker, &done, NULL);
    }
    bson_destroy(marker);
    return code;
}
