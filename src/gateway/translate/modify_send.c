/* findAndModify: what the gateway sends. */
#include "gateway/translate/mention.h"
#include "gateway/translate/modify.h"
#include "util/error.h"

/* The DocumentDB engine counts n: 0 if the update leaves the document as it was. */
bool spill_modify_found(const spill_modify_t *modify)
{
    bson_iter_t iter, n;
    if (bson_iter_init_find(&iter, &modify->answer, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter))
        return true;
    return bson_iter_init(&iter, &modify->answer) &&
           bson_iter_find_descendant(&iter, "lastErrorObject.n", &n) && bson_iter_as_int64(&n) > 0;
}

/* Send it, and keep the answer. */
static bool send_command(spill_modify_t *modify, bson_t *body)
{
    bson_t reply;
    if (modify->asked.projection != NULL)
        BSON_APPEND_DOCUMENT(body, "fields", modify->asked.projection);
    if (!spill_translation_call(modify->translation, body, &reply))
        return false;
    if (modify->answered)
        bson_destroy(&modify->answer);
    bson_steal(&modify->answer, &reply);
    modify->answered = true;
    return true;
}

bool spill_modify_send(spill_modify_t *modify, const bson_t *query, bool upsert)
{
    static const char *const except[] = {"query", "fields", "upsert", NULL};
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(modify->translation, except, &body);
    BSON_APPEND_DOCUMENT(&body, "query", query);
    if (upsert)
        BSON_APPEND_BOOL(&body, "upsert", true);
    return send_command(modify, &body);
}

bool spill_modify_delete_head(void *context, const bson_t *query, bool *removed)
{
    static const char *const except[] = {"query", "fields", "sort", "writeConcern", NULL};
    spill_modify_t *modify = context;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(modify->translation, except, &body);
    BCON_APPEND(&body, "query", BCON_DOCUMENT(query), "writeConcern", "{", "w", "majority", "}");
    bool done = send_command(modify, &body);
    *removed = done && spill_modify_found(modify);
    return done;
}

/*
 * The update of an adopted array. The session's entry makes a retry exact; if that ends, the
 * server's own record does.
 */
bool spill_modify_rewrite(spill_change_t *change, const spill_adopted_step_t *step, bool *matched)
{
    static const char *const except[] = {"query", "fields",       "upsert",    "update",
                                         "sort",  "writeConcern", "txnNumber", NULL};
    static const char *const except_numbered[] = {"query", "fields",       "upsert", "update",
                                                  "sort",  "writeConcern", NULL};
    spill_modify_t *modify = change->context;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(modify->translation, step->ends ? except_numbered : except, &body);
    BCON_APPEND(&body, "query", BCON_DOCUMENT(step->query), "writeConcern", "{", "w", "majority",
                "}");
    if (step->pipeline)
        BSON_APPEND_ARRAY(&body, "update", step->update);
    else
        BSON_APPEND_DOCUMENT(&body, "update", step->update);
    if (!send_command(modify, &body))
        return false;
    *matched = spill_modify_found(modify);
    change->n += *matched;
    return true;
}

bool spill_modify_attempt(spill_change_t *change, const bson_t *guards, bool upsert, bool many)
{
    bson_iter_t iter, id;
    spill_modify_t *modify = change->context;
    SPILL_SCOPED(bson_destroy) bson_t query = BSON_INITIALIZER;
    (void)many;
    bson_concat(&query, &modify->query);
    bson_concat(&query, guards);
    if (!spill_modify_send(modify, &query, upsert))
        return false;
    change->n += spill_modify_found(modify);
    if (bson_iter_init(&iter, &modify->answer) &&
        bson_iter_find_descendant(&iter, "lastErrorObject.upserted", &id))
        bson_append_iter(&change->upserted, "_id", -1, &id);
    return true;
}
