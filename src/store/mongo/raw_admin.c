/* The application's own collections: read, write and move them. */
#include "store/raw_admin.h"

#include "bson/value.h"
#include "store/mongo/mongo.h"
#include "store/raw_reader.h"
#include "util/error.h"

#include <math.h>

/* Bytes after which a batch of documents ends. */
#define BATCH_BYTES (4 << 20)

/* The server's code for a missing collection. */
enum { NAMESPACE_NOT_FOUND = 26 };

typedef struct admin {
    spill_raw_admin_t base;
    spill_mongo_t *store;
} admin_t;

/* A client of the store's pool during one call, and a collection. */
typedef struct use {
    admin_t *admin;
    mongoc_client_t *client;
    mongoc_collection_t *collection; /* NULL: none */
} use_t;

static use_t use_client(spill_raw_admin_t *base)
{
    admin_t *admin = (admin_t *)base;
    return (use_t){.admin = admin, .client = mongoc_client_pool_pop(admin->store->pool)};
}

static use_t use_collection(spill_raw_admin_t *base, const char *name)
{
    use_t use = use_client(base);
    use.collection = mongoc_client_get_collection(use.client, use.admin->store->database, name);
    mongoc_collection_set_read_prefs(use.collection, use.admin->store->primary);
    return use;
}

static void end_use(use_t *use)
{
    mongoc_collection_destroy(use->collection);
    mongoc_client_pool_push(use->admin->store->pool, use->client);
}

void spill_raw_admin_batch_add(spill_raw_admin_batch_t *batch, const bson_t *document)
{
    if ((batch->count & (batch->count - 1)) == 0) /* full at every power of two */
        batch->documents =
            bson_realloc(batch->documents, (2 * batch->count + 1) * sizeof(bson_t *));
    batch->documents[batch->count++] = bson_copy(document);
}

void spill_raw_admin_batch_release(spill_raw_admin_batch_t *batch)
{
    for (size_t i = 0; i < batch->count; i++)
        bson_destroy(batch->documents[i]);
    bson_free(batch->documents);
    *batch = (spill_raw_admin_batch_t){0};
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Collect all results of a cursor in an array, and destroy the cursor. */
static spill_code_t collect_all(admin_t *admin, const char *collection, mongoc_cursor_t *cursor,
                                bson_t *array, spill_error_t *error)
{
    spill_mongo_cursor_t documents = spill_mongo_cursor(admin->store, collection, cursor, true);
    const bson_t *document;
    spill_error_t failure;
    uint32_t count = 0;
    bson_init(array);
    spill_code_t code = spill_mongo_cursor_next(&documents, &document, &failure);
    for (; document; code = spill_mongo_cursor_next(&documents, &document, &failure)) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(array, key, document);
    }
    if (code != SPILL_OK && failure.native == NAMESPACE_NOT_FOUND)
        code = SPILL_OK;
    if (code != SPILL_OK && error)
        *error = failure;
    spill_mongo_cursor_end(&documents);
    if (code != SPILL_OK)
        bson_reinit(array);
    return code;
}

static spill_code_t list(spill_raw_admin_t *base, const char *type, bson_t *descriptions,
                         spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t options = BSON_INITIALIZER;
    SPILL_SCOPED(end_use) use_t use = use_client(base);
    if (type != NULL)
        BCON_APPEND(&options, "filter", "{", "type", BCON_UTF8(type), "}");
    const spill_mongo_t *store = use.admin->store;
    mongoc_database_t *database = mongoc_client_get_database(use.client, store->database);
    mongoc_database_set_read_prefs(database, store->primary);
    mongoc_cursor_t *cursor = mongoc_database_find_collections_with_opts(database, &options);
    spill_code_t code = collect_all(use.admin, NULL, cursor, descriptions, error);
    mongoc_database_destroy(database);
    return code;
}

static spill_code_t indexes(spill_raw_admin_t *base, const char *name, bson_t *found,
                            spill_error_t *error)
{
    SPILL_SCOPED(end_use) use_t use = use_collection(base, name);
    mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(use.collection, NULL);
    return collect_all(use.admin, name, cursor, found, error);
}

static spill_code_t definitions(spill_raw_admin_t *base, bson_t *found, spill_error_t *error)
{
    SPILL_SCOPED(end_use) use_t use = use_collection(base, SPILL_MONGO_DEFINITIONS);
    SPILL_SCOPED(bson_destroy) bson_t all = BSON_INITIALIZER;
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(use.collection, &all, NULL, use.admin->store->primary);
    return collect_all(use.admin, SPILL_MONGO_DEFINITIONS, cursor, found, error);
}

static int64_t count_documents(spill_raw_admin_t *base, const char *name)
{
    SPILL_SCOPED(end_use) use_t use = use_collection(base, name);
    bson_error_t ignored;
    int64_t count = mongoc_collection_estimated_document_count(
        use.collection, NULL, use.admin->store->primary, NULL, &ignored);
    return count >= 0 && count < SPILL_MONGO_NUMBER_MAX / 1000 ? count : 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Is `document` behind the last one of the batch, and behind what->after? */
static bool follows(const spill_raw_admin_read_t *what, const spill_raw_admin_batch_t *batch,
                    const bson_t *document)
{
    bson_iter_t before, id;
    bson_t place = BSON_INITIALIZER;
    if (!bson_iter_init_find(&id, document, "_id"))
        return false;
    if (batch->count > 0 && bson_iter_init_find(&before, batch->documents[batch->count - 1], "_id"))
        bson_append_iter(&place, "", 0, &before);
    else if (what->after)
        spill_value_append(what->after, &place, "");
    bool good = spill_mongo_follows(bson_get_data(&place), place.len, &id);
    bson_destroy(&place);
    return good;
}

/* Add the documents that the filter finds to the batch, up to the limit. */
static spill_code_t find_documents(const use_t *use, const spill_raw_admin_read_t *what,
                                   const bson_t *filter, spill_raw_admin_batch_t *batch,
                                   spill_error_t *error)
{
    spill_mongo_t *store = use->admin->store;
    SPILL_SCOPED(bson_destroy) bson_t options = BSON_INITIALIZER;
    if (!what->ids)
        BCON_APPEND(&options, "sort", "{", "_id", BCON_INT32(1), "}");
    if (what->limit > 0)
        BSON_APPEND_INT64(&options, "limit", what->limit - (int64_t)batch->count);
    if (what->ids_only)
        BCON_APPEND(&options, "projection", "{", "_id", BCON_INT32(1), "}");
    mongoc_cursor_t *cursor =
        mongoc_collection_find_with_opts(use->collection, filter, &options, store->primary);
    spill_mongo_cursor_t documents = spill_mongo_cursor(store, what->collection, cursor, true);
    const bson_t *document;
    size_t bytes = 0;
    batch->end = true;
    spill_code_t code = spill_mongo_cursor_next(&documents, &document, error);
    for (; document; code = spill_mongo_cursor_next(&documents, &document, error)) {
        if (!what->ids && !follows(what, batch, document)) {
            code = spill_mongo_fail_order(store, what->collection, error);
            break;
        }
        spill_raw_admin_batch_add(batch, document);
        bytes += document->len;
        batch->end = what->limit == 0 || (int64_t)batch->count < what->limit;
        if (bytes > BATCH_BYTES && !what->ids) {
            batch->end = false;
            break;
        }
    }
    spill_mongo_cursor_end(&documents);
    return code;
}

/* A filter to which the caller adds a condition on _id; to be destroyed. */
static bson_t *start_filter(const spill_raw_admin_read_t *what)
{
    return what->filter ? bson_copy(what->filter) : bson_new();
}

/* For a server no value is $gt NaN, although it sorts NaN before all other numbers. */
static void append_behind(bson_t *condition, const spill_value_t *after)
{
    if (spill_is_number((uint8_t)after->type) && spill_number_of(after).kind == SPILL_NUMBER_NAN)
        BSON_APPEND_DOUBLE(condition, "$gte", -INFINITY);
    else
        spill_value_append(after, condition, "$gt");
}

/* Find what follows: first in the same class of types, to which a comparison in a query is limited,
 * then in the other classes. */
static spill_code_t find_after(const use_t *use, const spill_raw_admin_read_t *what,
                               spill_raw_admin_batch_t *batch, spill_error_t *error)
{
    bson_t condition;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *alike = start_filter(what);
    BSON_APPEND_DOCUMENT_BEGIN(alike, "_id", &condition);
    append_behind(&condition, what->after);
    spill_mongo_append_class(&condition, what->after->type, false);
    bson_append_document_end(alike, &condition);
    SPILL_TRY(find_documents(use, what, alike, batch, error));
    if (!batch->end)
        return SPILL_OK;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *others = start_filter(what);
    BSON_APPEND_DOCUMENT_BEGIN(others, "_id", &condition);
    bool more = spill_mongo_append_class(&condition, what->after->type, true);
    bson_append_document_end(others, &condition);
    return more ? find_documents(use, what, others, batch, error) : SPILL_OK;
}

static spill_code_t read_documents(spill_raw_admin_t *base, const spill_raw_admin_read_t *what,
                                   spill_raw_admin_batch_t *batch, spill_error_t *error)
{
    SPILL_SCOPED(end_use) use_t use = use_collection(base, what->collection);
    bson_t condition;
    *batch = (spill_raw_admin_batch_t){0};
    if (what->after)
        return find_after(&use, what, batch, error);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *filter = start_filter(what);
    if (what->ids) {
        BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &condition);
        BSON_APPEND_ARRAY(&condition, "$in", what->ids);
        bson_append_document_end(filter, &condition);
    }
    return find_documents(&use, what, filter, batch, error);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Add a write without the driver's checks: the server decides which documents are valid. */
static bool add_write(mongoc_bulk_operation_t *bulk, const spill_raw_admin_write_t *write,
                      const bson_t *unchecked, bson_error_t *cause)
{
    if (write->kind == SPILL_RAW_ADMIN_INSERT)
        return mongoc_bulk_operation_insert_with_opts(bulk, write->document, unchecked, cause);
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    bson_t condition;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "_id", &condition);
    spill_value_append(&write->id, &condition, "$eq");
    bson_append_document_end(&filter, &condition);
    if (write->filter)
        bson_concat(&filter, write->filter);
    return write->kind == SPILL_RAW_ADMIN_REPLACE
               ? mongoc_bulk_operation_replace_one_with_opts(bulk, &filter, write->document,
                                                             unchecked, cause)
               : mongoc_bulk_operation_remove_one_with_opts(bulk, &filter, NULL, cause);
}

static int64_t number_in(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, field) ? spill_iter_int64(&iter) : -1;
}

/* Set `duplicate` of the writes that failed so. False: `cause` is another error. */
static bool mark_duplicates(const bson_t *reply, spill_raw_admin_write_t *writes, size_t count,
                            bson_error_t *cause)
{
    bson_iter_t errors, at;
    bool duplicates = false;
    if (!bson_iter_init_find(&errors, reply, "writeErrors") || !bson_iter_recurse(&errors, &at))
        return false;
    while (bson_iter_next(&at)) {
        bson_t entry;
        const uint8_t *data;
        uint32_t size;
        bson_iter_t text;
        if (!BSON_ITER_HOLDS_DOCUMENT(&at))
            return false;
        bson_iter_document(&at, &size, &data);
        if (!bson_init_static(&entry, data, size))
            return false;
        int64_t index = number_in(&entry, "index");
        bson_error_t one = {.domain = MONGOC_ERROR_COMMAND,
                            .code = (uint32_t)number_in(&entry, "code")};
        if (bson_iter_init_find(&text, &entry, "errmsg") && BSON_ITER_HOLDS_UTF8(&text))
            bson_strncpy(one.message, bson_iter_utf8(&text, NULL), sizeof one.message);
        if (!spill_mongo_is_duplicate(&one) || index < 0 || (size_t)index >= count) {
            *cause = one;
            return false;
        }
        writes[index].duplicate = duplicates = true;
    }
    return duplicates && !bson_has_field(reply, "writeConcernErrors.0");
}

static spill_code_t write_documents(spill_raw_admin_t *base, const char *name,
                                    spill_raw_admin_write_t *writes, size_t count,
                                    spill_error_t *error)
{
    SPILL_SCOPED(end_use) use_t use = use_collection(base, name);
    const spill_mongo_t *store = use.admin->store;
    bson_t *unordered = BCON_NEW("ordered", BCON_BOOL(false));
    bson_t *unchecked = BCON_NEW("validate", BCON_BOOL(false));
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(use.collection, unordered);
    bson_error_t cause = {0};
    bson_t reply;
    bool good = true;
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; i < count && good; i++) {
        writes[i].duplicate = false;
        good = add_write(bulk, &writes[i], unchecked, &cause);
    }
    if (!good) {
        code = spill_mongo_fail(store, name, true, &cause, NULL, error);
    } else if (count > 0) {
        good = mongoc_bulk_operation_execute(bulk, &reply, &cause) != 0;
        if (!good && !mark_duplicates(&reply, writes, count, &cause))
            code = spill_mongo_fail(store, name, true, &cause, &reply, error);
        bson_destroy(&reply);
    }
    mongoc_bulk_operation_destroy(bulk);
    bson_destroy(unordered);
    bson_destroy(unchecked);
    return code;
}

/* ---- collections ----------------------------------------------------------------------------- */

/* `database`: NULL for the store's. */
static spill_code_t command_on(spill_raw_admin_t *base, const char *database,
                               const char *collection, const bson_t *command, bool missing_is_done,
                               spill_error_t *error)
{
    SPILL_SCOPED(end_use) use_t use = use_client(base);
    const spill_mongo_t *store = use.admin->store;
    SPILL_SCOPED(bson_destroy) bson_t reply = BSON_INITIALIZER;
    bson_error_t cause;
    bool good = mongoc_client_write_command_with_opts(
        use.client, database ? database : store->database, command, NULL, &reply, &cause);
    if (good || (missing_is_done && cause.code == NAMESPACE_NOT_FOUND))
        return SPILL_OK;
    return spill_mongo_fail(store, collection, true, &cause, &reply, error);
}

static spill_code_t create(spill_raw_admin_t *base, const char *name, const bson_t *made,
                           spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *command = BCON_NEW("createIndexes", BCON_UTF8(name), "indexes", BCON_ARRAY(made));
    return command_on(base, NULL, name, command, false, error);
}

static spill_code_t create_view(spill_raw_admin_t *base, const char *name, const char *on,
                                const bson_t *pipeline, spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *command = BCON_NEW("create", BCON_UTF8(name), "viewOn", BCON_UTF8(on), "pipeline",
                               BCON_ARRAY(pipeline));
    return command_on(base, NULL, name, command, false, error);
}

static spill_code_t rename_collection(spill_raw_admin_t *base, const char *from, const char *to,
                                      spill_error_t *error)
{
    admin_t *admin = (admin_t *)base;
    char *source = bson_strdup_printf("%s.%s", admin->store->database, from);
    char *target = bson_strdup_printf("%s.%s", admin->store->database, to);
    bson_t *command = BCON_NEW("renameCollection", BCON_UTF8(source), "to", BCON_UTF8(target));
    spill_code_t code = command_on(base, "admin", from, command, false, error);
    bson_destroy(command);
    bson_free(source);
    bson_free(target);
    return code;
}

static spill_code_t drop(spill_raw_admin_t *base, const char *name, spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *command = BCON_NEW("drop", BCON_UTF8(name));
    return command_on(base, NULL, name, command, true, error);
}

/* ---- job checkpoints ------------------------------------------------------------------------- */

static spill_code_t checkpoint_get(spill_raw_admin_t *base, const char *name, bson_t **document,
                                   spill_error_t *error)
{
    return spill_mongo_catalog_get(&((admin_t *)base)->store->base, SPILL_CATALOG_JOB, name,
                                   document, error);
}

static spill_code_t checkpoints_get(spill_raw_admin_t *base, const char *const names[2],
                                    bson_t *documents[2], spill_error_t *error)
{
    return spill_mongo_imports_get(&((admin_t *)base)->store->base, names, documents, error);
}

static spill_code_t checkpoint_put(spill_raw_admin_t *base, const char *name,
                                   const bson_t *expected, const bson_t *document, bool *done,
                                   spill_error_t *error)
{
    return spill_mongo_catalog_put(&((admin_t *)base)->store->base, SPILL_CATALOG_JOB, name,
                                   expected, document, done, error);
}

static spill_code_t checkpoint_delete(spill_raw_admin_t *base, const char *name,
                                      spill_error_t *error)
{
    return spill_mongo_catalog_delete(&((admin_t *)base)->store->base, SPILL_CATALOG_JOB, name,
                                      error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_admin(spill_raw_admin_t *base)
{
    admin_t *admin = (admin_t *)base;
    if (admin->store)
        spill_store_close(&admin->store->base, NULL);
    bson_free(admin);
}

static const spill_raw_admin_ops_t admin_ops = {.list = list,
                                                .definitions = definitions,
                                                .indexes = indexes,
                                                .count = count_documents,
                                                .read = read_documents,
                                                .write = write_documents,
                                                .create = create,
                                                .create_view = create_view,
                                                .rename = rename_collection,
                                                .drop = drop,
                                                .checkpoint_get = checkpoint_get,
                                                .checkpoints_get = checkpoints_get,
                                                .checkpoint_put = checkpoint_put,
                                                .checkpoint_delete = checkpoint_delete,
                                                .close = close_admin};

spill_code_t spill_raw_admin_open(const char *uri, spill_raw_admin_t **admin, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_t *store = NULL;
    *admin = NULL;
    if (!spill_raw_reader_serves(uri))
        return spill_fail(error, SPILL_INVALID,
                          "an embedded store has only the collections of its definitions: this "
                          "needs a server's database, mongodb://HOST/DATABASE");
    spill_store_options_init(&options);
    spill_code_t code = spill_mongo_open(uri, &options, &store, error);
    if (code != SPILL_OK)
        return code;
    admin_t *made = bson_malloc0(sizeof *made);
    made->store = (spill_mongo_t *)store;
    made->base = (spill_raw_admin_t){.ops = &admin_ops, .place = made->store->place};
    *admin = &made->base;
    return SPILL_OK;
}

void spill_raw_admin_close(spill_raw_admin_t *admin)
{
    if (admin)
        admin->ops->close(admin);
}
