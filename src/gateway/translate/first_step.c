/* The first step of an update of one array. */
#include "gateway/translate/first_step.h"

#include "gateway/translate/mention.h"
#include "gateway/translate/statements.h"
#include "gateway/translate/translations.h"

#include <string.h>

/* Does the update begin with one statement for an array, and does q name the owner? */
static bool is_for_owner(spill_translation_t *translation, const spill_statement_t *statement,
                         spill_value_t *owner)
{
    bson_iter_t id;
    if (statement->multi || statement->has_context || spill_statement_is_relayed(statement) ||
        !spill_filter_find_id(&statement->q, &id) ||
        !spill_change_check_served(translation, statement))
        return false;
    *owner = spill_value_from_iter(&id);
    return true;
}

static void make_unmanaged_statement(const spill_change_t *change, bson_t *body)
{
    const spill_statement_t *statement = change->statement;
    bson_t guards = BSON_INITIALIZER;
    bson_init(body);
    spill_change_guard(change, true, &guards);
    /* Other operators than $push may fail on an empty document, though there is one. */
    bool upsert = statement->upsert && statement->kind == SPILL_STATEMENT_PUSH;
    spill_update_body(change->translation, statement, &guards, upsert, false, body);
    bson_destroy(&guards);
}

/* ---- a managed array ------------------------------------------------------------------------- */

/* Is the statement a push alone? */
static bool is_push_alone(const spill_translation_t *translation,
                          const spill_statement_t *statement)
{
    bson_t others = BSON_INITIALIZER;
    bson_iter_t iter;
    bool alone = statement->count > 0 && spill_filter_is_id(&statement->q) &&
                 !spill_translation_find(translation, "writeConcern", &iter) &&
                 !spill_statement_others(statement, translation->array, NULL, &others);
    bson_destroy(&others);
    return alone;
}

/*
 * The client's command with the library's update: acknowledged as by the library. It does not have
 * the client's number: the entry of the session, which the update writes, finds a repetition.
 */
static void write_update(const spill_translation_t *translation, const bson_t *filter,
                         const bson_t *update, bson_t *body)
{
    static const char *const except[] = {"updates", "ordered", "txnNumber",
                                         "stmtId",  "stmtIds", NULL};
    bson_init(body);
    spill_translation_copy_body(translation, except, body);
    BCON_APPEND(body, "updates", "[", "{", "q", BCON_DOCUMENT(filter), "u", BCON_DOCUMENT(update),
                "}", "]", "writeConcern", "{", "w", "majority", "}");
}

/* A command with a number has to have a session. */
static bool make_append(spill_change_t *change, const spill_value_t *owner, bson_t *body)
{
    bson_t filter, update;
    spill_session_op_t session;
    const spill_translation_t *translation = change->translation;
    const spill_statement_t *statement = change->statement;
    const spill_served_collection_t *at = translation->at;
    bool newest_first = at->definition->order == SPILL_ARRAY_NEWEST_FIRST;
    bool numbered = spill_change_session(change, owner, &session);
    if (!is_push_alone(translation, statement) ||
        (!numbered && translation->command->txn_number >= 0))
        return false;
    spill_value_t *elements = spill_statement_elements(statement, newest_first);
    bool made = spill_array_make_push(at->array, owner, elements, (size_t)statement->count,
                                      numbered ? &session : NULL, &filter, &update);
    bson_free(elements);
    if (made) {
        write_update(translation, &filter, &update, body);
        bson_destroy(&filter);
        bson_destroy(&update);
    }
    return made;
}

/* ---- the step -------------------------------------------------------------------------------- */

static bool make(spill_translation_t *translation, spill_activity_t *activity,
                 const bson_t *document, bson_t *body, spill_push_turn_t *turn)
{
    spill_statement_t statement;
    spill_statement_numbers_t numbers = {0};
    spill_change_t change;
    spill_value_t owner;
    bool alone;
    if (!spill_update_read(translation, document, &statement) ||
        !is_for_owner(translation, &statement, &owner))
        return false;
    spill_change_init(&change, translation, &statement, &numbers);
    bool known = spill_change_is_known_managed(&change, &owner), made = !known;
    if (known) {
        const char *collection = translation->at->collection;
        turn->held = true;
        turn->slot = spill_managed_begin(spill_served_managed(translation->served), collection,
                                         &owner, &alone);
        made = alone && make_append(&change, &owner, body);
        turn->recorded = made && translation->command->txn_number >= 0;
        if (made)
            spill_activity_owner(activity, collection, &owner);
    } else {
        make_unmanaged_statement(&change, body);
    }
    spill_change_release(&change);
    spill_numbers_release(&numbers);
    return made;
}

bool spill_first_step_make(spill_served_t *served, spill_activity_t *activity,
                           const spill_client_command_t *command, const uint8_t user[8],
                           bson_t *body, spill_push_turn_t *turn)
{
    bson_t document;
    spill_translation_t translation;
    *turn = (spill_push_turn_t){0};
    if (strcmp(command->name, "update") != 0 || command->unanswered || command->in_transaction)
        return false;
    spill_translation_init(&translation, served, NULL, command);
    memcpy(translation.user, user, sizeof translation.user);
    bool made = translation.at != NULL && translation.at->array != NULL &&
                spill_statements_only(&translation, "updates", &document) &&
                make(&translation, activity, &document, body, turn);
    spill_translation_release(&translation);
    return made;
}

void spill_push_turn_end(spill_served_t *served, spill_push_turn_t *turn)
{
    if (turn->held)
        spill_managed_end(spill_served_managed(served), turn->slot);
    turn->held = turn->recorded = false;
}

/* One pass: most replies say that the update was made, and no more. */
static bool is_made(const bson_t *reply)
{
    static const char *const problems[] = {"code", "writeErrors", "writeConcernError", NULL};
    bson_iter_t field;
    bool changed = false, ok = false;
    if (!bson_iter_init(&field, reply))
        return false;
    while (bson_iter_next(&field)) {
        const char *name = bson_iter_key(&field);
        if (strcmp(name, "n") == 0)
            changed = bson_iter_as_int64(&field) > 0;
        else if (strcmp(name, "ok") == 0)
            ok = spill_iter_is_true(&field);
        else if (spill_is_one_of(name, problems))
            return false;
    }
    return changed && ok;
}

bool spill_first_step_is_done(const bson_t *reply, const spill_push_turn_t *turn)
{
    bson_iter_t iter;
    if (is_made(reply))
        return true;
    int code = spill_reply_error_code(reply);
    if (turn->recorded && (code != 0 || bson_has_field(reply, "writeConcernError")))
        return false; /* the worker finds out, and its errors have the labels for drivers */
    if (code != 0)
        return spill_server_changes_state(code) || spill_server_may_have_changed(code);
    return bson_iter_init_find(&iter, reply, "ok") && spill_iter_is_true(&iter) &&
           !bson_has_field(reply, "writeErrors") && bson_iter_init_find(&iter, reply, "n") &&
           bson_iter_as_int64(&iter) > 0;
}
