/* One command each. A command uses a client of the pool until it ends. */
#include "store/mongo/mongo.h"

#include "bson/value.h"
#include "util/error.h"

/* A command that is being run. Each call of the driver with a reply initializes it. */
typedef struct use {
    spill_mongo_t *store;
    const char *name;
    mongoc_client_t *client;
    mongoc_collection_t *collection; /* NULL: the command is sent to the database */
    bson_t reply;
    bson_error_t cause;
} use_t;

/* Begin a command that is sent to the database. */
static void begin_alone(use_t *use, spill_mongo_t *store, const char *collection)
{
    *use = (use_t){.store = store, .name = collection};
    use->client = mongoc_client_pool_pop(store->pool);
}

static void begin(use_t *use, spill_mongo_t *store, const char *collection)
{
    begin_alone(use, store, collection);
    use->collection = mongoc_client_get_collection(use->client, store->database, collection);
    if (store->concerns.write)
        mongoc_collection_set_write_concern(use->collection, store->concerns.write);
    if (store->concerns.read)
        mongoc_collection_set_read_concern(use->collection, store->concerns.read);
}

static void release(use_t *use)
{
    mongoc_collection_destroy(use->collection);
    mongoc_client_pool_push(use->store->pool, use->client);
}

/* End a command that has a reply. */
static spill_code_t end(use_t *use, spill_code_t code)
{
    bson_destroy(&use->reply);
    release(use);
    return code;
}

static spill_code_t fail(use_t *use, bool write, spill_error_t *error)
{
    return spill_mongo_fail(use->store, use->name, write, &use->cause, &use->reply, error);
}

static int64_t reply_count(const use_t *use, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, &use->reply, field) ? spill_iter_int64(&iter) : 0;
}

/*
 * Was a document found? Then add it to `after`, which may be NULL. If the answer has one that
 * cannot be read, the update was made: SPILL_UNKNOWN, never "not found".
 */
static spill_code_t read_value(const use_t *use, bson_t *after, bool *found, spill_error_t *error)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    bson_t value;
    *found = bson_iter_init_find(&iter, &use->reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter);
    if (!*found)
        return SPILL_OK;
    bson_iter_document(&iter, &size, &data);
    if (!bson_init_static(&value, data, size) || !spill_answer_valid(&value)) {
        *found = false;
        return spill_fail(error, SPILL_UNKNOWN,
                          "%s.%s: the server's answer to an update cannot be read",
                          use->store->place, use->name);
    }
    if (after)
        bson_concat(after, &value);
    return SPILL_OK;
}

spill_code_t spill_mongo_modify(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                const bson_t *update, const bson_t *fields, bson_t *after,
                                bool *found, spill_error_t *error)
{
    return spill_mongo_modify_within(store, collection, filter, update, 0, fields, after, found,
                                     error);
}

spill_code_t spill_mongo_modify_within(spill_mongo_t *store, const char *collection,
                                       const bson_t *filter, const bson_t *update,
                                       uint32_t max_time_ms, const bson_t *fields, bson_t *after,
                                       bool *found, spill_error_t *error)
{
    if (after)
        bson_init(after);
    bson_t only_id = BSON_INITIALIZER;
    BSON_APPEND_INT32(&only_id, "_id", 1);
    mongoc_find_and_modify_opts_t *opts = mongoc_find_and_modify_opts_new();
    mongoc_find_and_modify_opts_set_update(opts, update);
    mongoc_find_and_modify_opts_set_fields(opts, fields ? fields : &only_id);
    mongoc_find_and_modify_opts_set_flags(opts, MONGOC_FIND_AND_MODIFY_RETURN_NEW);
    if (max_time_ms > 0)
        mongoc_find_and_modify_opts_set_max_time_ms(opts, max_time_ms);
    use_t use;
    begin(&use, store, collection);
    bool good = mongoc_collection_find_and_modify_with_opts(use.collection, filter, opts,
                                                            &use.reply, &use.cause);
    *found = false;
    spill_code_t code = good ? read_value(&use, after, found, error) : fail(&use, true, error);
    mongoc_find_and_modify_opts_destroy(opts);
    bson_destroy(&only_id);
    return end(&use, code);
}

spill_code_t spill_mongo_upsert(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                const bson_t *update, bool *done, spill_error_t *error)
{
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "upsert", true);
    BSON_APPEND_BOOL(&opts, "validate", false);
    use_t use;
    begin(&use, store, collection);
    *done =
        mongoc_collection_update_one(use.collection, filter, update, &opts, &use.reply, &use.cause);
    spill_code_t code =
        *done || spill_mongo_is_duplicate(&use.cause) ? SPILL_OK : fail(&use, true, error);
    bson_destroy(&opts);
    return end(&use, code);
}

spill_code_t spill_mongo_update_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *filters, const bson_t *const *updates,
                                    size_t count, bool upserts, spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "ordered", false);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(use.collection, &opts);
    bson_reinit(&opts);
    BSON_APPEND_BOOL(&opts, "upsert", upserts);
    BSON_APPEND_BOOL(&opts, "validate", false);
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        good = mongoc_bulk_operation_update_one_with_opts(bulk, filters[i], updates[i], &opts,
                                                          &use.cause);
    if (good)
        good = mongoc_bulk_operation_execute(bulk, &use.reply, &use.cause) != 0;
    else
        bson_init(&use.reply);
    mongoc_bulk_operation_destroy(bulk);
    bson_destroy(&opts);
    return end(&use,
               good || spill_mongo_is_duplicate(&use.cause) ? SPILL_OK : fail(&use, true, error));
}

/* Servers refuse a replacement with a top-level name that could be an operator. */
static bool has_operator_name(const bson_t *document)
{
    bson_iter_t iter;
    bool found = false;
    bson_iter_init(&iter, document);
    while (!found && bson_iter_next(&iter))
        found = bson_iter_key(&iter)[0] == '$';
    return found;
}

static spill_code_t replace_by_pipeline(spill_mongo_t *store, const char *collection,
                                        const bson_t *filter, const bson_t *document, bool *found,
                                        spill_error_t *error)
{
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline =
        BCON_NEW("0", "{", "$replaceWith", "{", "$literal", BCON_DOCUMENT(document), "}", "}");
    return spill_mongo_modify(store, collection, filter, pipeline, NULL, NULL, found, error);
}

spill_code_t spill_mongo_replace(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                 const bson_t *document, bool *found, spill_error_t *error)
{
    if (has_operator_name(document))
        return replace_by_pipeline(store, collection, filter, document, found, error);
    use_t use;
    begin(&use, store, collection);
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "validate", false);
    bool good = mongoc_collection_replace_one(use.collection, filter, document, &opts, &use.reply,
                                              &use.cause);
    bson_destroy(&opts);
    *found = good && reply_count(&use, "matchedCount") > 0;
    return end(&use, good ? SPILL_OK : fail(&use, true, error));
}

spill_code_t spill_mongo_insert(spill_mongo_t *store, const char *collection,
                                const bson_t *document, bool *done, spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "validate", false);
    *done = mongoc_collection_insert_one(use.collection, document, &opts, &use.reply, &use.cause);
    spill_code_t code =
        *done || spill_mongo_is_duplicate(&use.cause) ? SPILL_OK : fail(&use, true, error);
    bson_destroy(&opts);
    return end(&use, code);
}

bool spill_mongo_read_refusals(const bson_error_t *cause, const bson_t *reply, size_t count,
                               bool *refused)
{
    bson_iter_t iter, errors, field;
    int64_t answered =
        bson_iter_init_find(&iter, reply, "insertedCount") ? spill_iter_int64(&iter) : 0;
    bool only = spill_mongo_is_duplicate(cause) && !bson_has_field(reply, "writeConcernErrors") &&
                bson_iter_init_find(&iter, reply, "writeErrors") && BSON_ITER_HOLDS_ARRAY(&iter) &&
                bson_iter_recurse(&iter, &errors);
    while (only && bson_iter_next(&errors)) {
        bson_error_t one = {.domain = MONGOC_ERROR_SERVER};
        int64_t index = -1;
        if (bson_iter_recurse(&errors, &field) && bson_iter_find(&field, "code"))
            one.code = (uint32_t)spill_iter_int64(&field);
        if (bson_iter_recurse(&errors, &field) && bson_iter_find(&field, "index") &&
            BSON_ITER_HOLDS_NUMBER(&field))
            index = spill_iter_int64(&field);
        only = spill_mongo_is_duplicate(&one) && index >= 0 && index < (int64_t)count &&
               !refused[index];
        if (only)
            refused[index] = true;
        answered++;
    }
    return only && answered == (int64_t)count;
}

/* Perhaps not all documents were sent: the driver splits a command that is too long. */
static spill_code_t fail_insert(use_t *use, spill_error_t *error)
{
    if (!spill_mongo_is_duplicate(&use->cause))
        return fail(use, true, error);
    return spill_fail(error, SPILL_UNKNOWN,
                      "%s.%s: not every document's insertion was answered: %s", use->store->place,
                      use->name, use->cause.message);
}

spill_code_t spill_mongo_insert_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *documents, size_t count, bool *refused,
                                    spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    bson_t opts = BSON_INITIALIZER;
    BSON_APPEND_BOOL(&opts, "validate", false);
    BSON_APPEND_BOOL(&opts, "ordered", false);
    bool good = mongoc_collection_insert_many(use.collection, (const bson_t **)documents, count,
                                              &opts, &use.reply, &use.cause);
    spill_code_t code = good || spill_mongo_read_refusals(&use.cause, &use.reply, count, refused)
                            ? SPILL_OK
                            : fail_insert(&use, error);
    bson_destroy(&opts);
    return end(&use, code);
}

spill_code_t spill_mongo_delete(spill_mongo_t *store, const char *collection, const bson_t *filter,
                                bool *found, spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    bool good = mongoc_collection_delete_one(use.collection, filter, NULL, &use.reply, &use.cause);
    *found = good && reply_count(&use, "deletedCount") > 0;
    return end(&use, good ? SPILL_OK : fail(&use, true, error));
}

spill_code_t spill_mongo_delete_each(spill_mongo_t *store, const char *collection,
                                     const bson_t *filter, spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    bool good = mongoc_collection_delete_many(use.collection, filter, NULL, &use.reply, &use.cause);
    return end(&use, good ? SPILL_OK : fail(&use, true, error));
}

spill_code_t spill_mongo_delete_all(spill_mongo_t *store, const char *collection,
                                    const bson_t *const *filters, size_t count, bool *all,
                                    spill_error_t *error)
{
    use_t use;
    begin(&use, store, collection);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(use.collection, NULL);
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        good = mongoc_bulk_operation_remove_one_with_opts(bulk, filters[i], NULL, &use.cause);
    if (good)
        good = mongoc_bulk_operation_execute(bulk, &use.reply, &use.cause) != 0;
    else
        bson_init(&use.reply);
    *all = good && reply_count(&use, "nRemoved") == (int64_t)count;
    mongoc_bulk_operation_destroy(bulk);
    return end(&use, good ? SPILL_OK : fail(&use, true, error));
}

/* Call `visit` for each document of a cursor until it returns false. Ends the cursor. */
static spill_code_t visit_all(spill_mongo_t *store, const char *collection, mongoc_cursor_t *cursor,
                              spill_mongo_visit_fn visit, void *context, spill_error_t *error)
{
    spill_mongo_cursor_t documents = spill_mongo_cursor(store, collection, cursor, false);
    const bson_t *document;
    spill_code_t code;
    do
        code = spill_mongo_cursor_next(&documents, &document, error);
    while (document && visit(context, document));
    spill_mongo_cursor_end(&documents);
    return code;
}

spill_code_t spill_mongo_each(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                              bool may_be_old, spill_mongo_visit_fn visit, void *context,
                              spill_error_t *error)
{
    return spill_mongo_each_by(store, collection, pipeline, &(spill_mongo_plan_t){0}, may_be_old,
                               visit, context, error);
}

spill_code_t spill_mongo_each_by(spill_mongo_t *store, const char *collection,
                                 const bson_t *pipeline, const spill_mongo_plan_t *plan,
                                 bool may_be_old, spill_mongo_visit_fn visit, void *context,
                                 spill_error_t *error)
{
    use_t use;
    bson_t options = BSON_INITIALIZER;
    begin(&use, store, collection);
    if (plan->index)
        BSON_APPEND_UTF8(&options, "hint", plan->index);
    if (plan->batch > 0)
        BSON_APPEND_INT64(&options, "batchSize", plan->batch);
    /* Without its own read preference a command uses the URI's. */
    mongoc_cursor_t *cursor = mongoc_collection_aggregate(
        use.collection, MONGOC_QUERY_NONE, pipeline, &options, may_be_old ? NULL : store->primary);
    bson_destroy(&options);
    spill_code_t code = visit_all(store, collection, cursor, visit, context, error);
    release(&use);
    return code;
}

/*
 * A cursor of the driver costs a client more than the rest of such a read, so this is a command. It
 * has the read concern of the client, and the driver repeats it as it repeats a cursor's.
 */
static spill_code_t find_one(spill_mongo_t *store, const char *collection,
                             const spill_mongo_query_t *query, bool may_be_old,
                             spill_mongo_visit_fn visit, void *context, spill_error_t *error)
{
    use_t use;
    bson_t document;
    bool found = false;
    SPILL_SCOPED(bson_destroy) bson_t command = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&command, "find", collection);
    BSON_APPEND_DOCUMENT(&command, "filter", query->filter);
    BSON_APPEND_DOCUMENT(&command, "projection", query->projection);
    if (query->order && !bson_empty(query->order))
        BSON_APPEND_DOCUMENT(&command, "sort", query->order);
    BSON_APPEND_INT64(&command, "limit", 1);
    BSON_APPEND_BOOL(&command, "singleBatch", true); /* the server need not keep a cursor */
    begin_alone(&use, store, collection);
    bool good = mongoc_client_read_command_with_opts(
        use.client, store->database, &command, may_be_old ? NULL : store->primary,
        store->concerns.read_opts, &use.reply, &use.cause);
    spill_code_t code =
        good ? spill_mongo_only_document(store, collection, &use.reply, &document, &found, error)
             : fail(&use, false, error);
    if (code == SPILL_OK && found)
        visit(context, &document);
    return end(&use, code);
}

spill_code_t spill_mongo_find(spill_mongo_t *store, const char *collection,
                              const spill_mongo_query_t *query, bool may_be_old,
                              spill_mongo_visit_fn visit, void *context, spill_error_t *error)
{
    use_t use;
    if (query->limit == 1)
        return find_one(store, collection, query, may_be_old, visit, context, error);
    SPILL_SCOPED(bson_destroy) bson_t options = BSON_INITIALIZER;
    begin(&use, store, collection);
    BSON_APPEND_DOCUMENT(&options, "projection", query->projection);
    if (query->order && !bson_empty(query->order))
        BSON_APPEND_DOCUMENT(&options, "sort", query->order);
    if (query->limit > 0)
        BSON_APPEND_INT64(&options, "limit", query->limit);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(
        use.collection, query->filter, &options, may_be_old ? NULL : store->primary);
    spill_code_t code = visit_all(store, collection, cursor, visit, context, error);
    release(&use);
    return code;
}

typedef struct first {
    bson_t *document;
    bool found;
} first_t;

static bool keep_first(void *context, const bson_t *document)
{
    first_t *first = context;
    bson_concat(first->document, document);
    first->found = true;
    return false;
}

spill_code_t spill_mongo_first(spill_mongo_t *store, const char *collection, const bson_t *pipeline,
                               bson_t *document, bool *found, spill_error_t *error)
{
    bson_init(document);
    first_t first = {.document = document};
    spill_code_t code =
        spill_mongo_each(store, collection, pipeline, false, keep_first, &first, error);
    *found = code == SPILL_OK && first.found;
    return code;
}

spill_code_t spill_mongo_command(spill_mongo_t *store, const char *collection,
                                 const bson_t *command, spill_error_t *error)
{
    use_t use;
    begin_alone(&use, store, collection);
    bool good = mongoc_client_write_command_with_opts(
        use.client, store->database, command, store->concerns.write_opts, &use.reply, &use.cause);
    return end(&use, good ? SPILL_OK : fail(&use, true, error));
}

spill_code_t spill_mongo_ask(spill_mongo_t *store, const bson_t *command, bson_t *answer,
                             spill_error_t *error)
{
    use_t use;
    begin_alone(&use, store, NULL);
    bool good = false;
    for (int tries = 0; tries < 2 && !good; tries++) { /* the driver does not repeat it */
        if (tries > 0)
            bson_destroy(&use.reply);
        good = mongoc_client_command_simple(use.client, store->database, command, store->primary,
                                            &use.reply, &use.cause);
    }
    if (good)
        bson_copy_to(&use.reply, answer);
    else
        bson_init(answer);
    return end(&use, good ? SPILL_OK : fail(&use, false, error));
}
