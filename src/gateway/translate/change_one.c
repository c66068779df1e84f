/* A statement for one document: see change.h. */
#include "gateway/translate/change.h"

#include "bson/key.h"
#include "gateway/translate/mention.h"
#include "util/clock.h"
#include "util/error.h"

#include <string.h>

enum { TRIES = 20 };

/* ---- changes --------------------------------------------------------------------------------- */

void spill_change_init(spill_change_t *change, spill_translation_t *translation,
                       const spill_statement_t *statement, spill_statement_numbers_t *numbers)
{
    bson_iter_t id;
    *change = (spill_change_t){
        .translation = translation, .statement = statement, .numbers = numbers, .number = -1};
    bson_init(&change->upserted);
    bson_init(&change->owner);
    bson_init(&change->taken_for);
    /* With a collation, the owner may have another _id than q. */
    if (statement->kind != SPILL_STATEMENT_OTHER && !statement->has_context &&
        spill_filter_find_id(&statement->q, &id)) {
        spill_value_t owner = spill_value_from_iter(&id);
        change->number = spill_numbers_take(numbers, &owner, true, statement->count);
    }
}

void spill_change_release(spill_change_t *change)
{
    bson_destroy(&change->upserted);
    bson_destroy(&change->owner);
    bson_destroy(&change->taken_for);
}

/* Other operators than $push: name the commands that remove and edit elements. */
static bool refuse_edit(spill_translation_t *translation, const spill_statement_t *statement)
{
    char *reason = bson_strdup_printf(
        "the array has pages: append with $push, and change other fields; `spillway remove STORE "
        "%s OWNER` and `spillway edit STORE %s OWNER` change elements "
        "(docs/reference/gateway.md#remove-or-edit-an-element)",
        translation->at->definition->name, translation->at->definition->name);
    spill_translation_refuse(translation, statement->field, statement->operation, reason);
    bson_free(reason);
    return false;
}

bool spill_change_refuse(spill_translation_t *translation, const spill_statement_t *statement)
{
    if (statement->kind == SPILL_STATEMENT_ARRAY && statement->touches_other_field)
        return spill_translation_refuse(translation, statement->field, statement->operation,
                                        "Spillway maintains the definition's fields other than "
                                        "the array: leave them out of the update");
    if (statement->kind == SPILL_STATEMENT_ARRAY)
        return statement->reason != NULL
                   ? spill_translation_refuse(translation, statement->field, statement->operation,
                                              statement->reason)
                   : refuse_edit(translation, statement);
    return spill_translation_refuse(translation, translation->array, "a filter",
                                    "the server does not search the pages: give the _id alone, or "
                                    "conditions on other fields");
}

bool spill_change_check_served(spill_translation_t *translation, const spill_statement_t *statement)
{
    if (statement->kind == SPILL_STATEMENT_SPILL)
        return spill_translation_refuse_spill(translation, translation->command->name);
    const spill_served_collection_t *at = translation->at;
    if (at->array != NULL)
        return true;
    if (statement->kind != SPILL_STATEMENT_OTHER)
        return spill_translation_refuse(translation, statement->field, statement->operation,
                                        at->reason);
    for (size_t i = 0; at->parts[i] != NULL; i++)
        if (spill_mentions_in_filter(&statement->q, at->parts[i]) != 0)
            return spill_translation_refuse(translation, at->parts[i], "a filter", at->reason);
    return true;
}

/* ---- appends by the library ------------------------------------------------------------------ */

bool spill_change_may_append(spill_change_t *change)
{
    const spill_statement_t *statement = change->statement;
    spill_translation_t *translation = change->translation;
    if (statement->q_mentions != 0)
        return spill_change_refuse(translation, statement);
    if (statement->has_filters)
        return spill_translation_refuse(translation, translation->array, "arrayFilters",
                                        "send the $push and the other change separately");
    if (statement->has_context && !spill_filter_is_id(&statement->q))
        return spill_translation_refuse(translation, translation->array, "a collation or let",
                                        "give the _id alone, without a collation and let");
    return spill_translation_check_concern(translation) &&
           spill_translation_require(translation, SPILL_RIGHT_UPDATE);
}

/* q does not name the owner, which was found. Another try for it is the same statement. */
static int32_t number_for_found(spill_change_t *change, const spill_value_t *owner)
{
    bson_iter_t id;
    spill_value_t last;
    bool same = bson_iter_init_find(&id, &change->taken_for, "_id");
    if (same) {
        last = spill_value_from_iter(&id);
        same = spill_value_equal(&last, owner);
    }
    if (!same) {
        change->taken = spill_numbers_take(change->numbers, owner, false, change->statement->count);
        bson_reinit(&change->taken_for);
        spill_value_append(owner, &change->taken_for, "_id");
    }
    return change->taken;
}

bool spill_change_session(spill_change_t *change, const spill_value_t *owner,
                          spill_session_op_t *session)
{
    const spill_client_command_t *command = change->translation->command;
    if (command->session == NULL || command->txn_number < 0)
        return false;
    *session = (spill_session_op_t){.txn = command->txn_number, .number = change->number};
    if (change->number < 0)
        session->number = number_for_found(change, owner);
    memcpy(session->session, command->session, sizeof session->session);
    memcpy(session->user, change->translation->user, sizeof session->user);
    return true;
}

/* Store an error of the library. *matched is false if the head does not match, and that is no
 * error. */
static bool judge(spill_change_t *change, spill_code_t code, const spill_error_t *error,
                  bool *matched)
{
    *matched = code == SPILL_OK;
    change->impossible = code == SPILL_INVALID || code == SPILL_REFUSED;
    if (code == SPILL_OK || error->reason == SPILL_REASON_NO_MATCH ||
        error->reason == SPILL_REASON_UNMANAGED)
        return true;
    return spill_translation_fail_library(change->translation, code, error);
}

static bool append(spill_change_t *change, const spill_value_t *owner, const bson_t *update,
                   const bson_t *match, bool *matched)
{
    const spill_statement_t *statement = change->statement;
    const spill_served_collection_t *at = change->translation->at;
    spill_session_op_t session;
    spill_error_t error = {0};
    spill_append_options_t options;
    spill_code_t code = SPILL_OK;
    bool numbered = spill_change_session(change, owner, &session);
    spill_append_options_init(&options);
    options.update = update;
    options.match = match;
    options.session = numbered ? &session : NULL;
    if (statement->count > 0) {
        spill_value_t *elements =
            spill_statement_elements(statement, at->definition->order == SPILL_ARRAY_NEWEST_FIRST);
        code = spill_array_append(at->array, owner, elements, (size_t)statement->count, &options,
                                  &change->result, &error);
        change->repeated = change->result.repeated;
        bson_free(elements);
    } else if (update != NULL) {
        spill_update_options_t changes;
        spill_update_options_init(&changes);
        changes.match = match;
        changes.session = options.session;
        code =
            spill_array_update_with(at->array, owner, update, &changes, &change->repeated, &error);
    }
    return judge(change, code, &error, matched);
}

/* The document {_id: ...} has a managed array. */
static void note_managed(const spill_change_t *change, const bson_t *id)
{
    bson_iter_t iter;
    const spill_translation_t *translation = change->translation;
    if (!bson_iter_init_find(&iter, id, "_id"))
        return;
    spill_value_t owner = spill_value_from_iter(&iter);
    spill_managed_note(spill_served_managed(translation->served), translation->at->collection,
                       &owner, spill_clock_monotonic_s());
}

bool spill_change_append(spill_change_t *change, const bson_t *id, bool *matched)
{
    bson_iter_t iter;
    bson_t nothing = BSON_INITIALIZER, others = BSON_INITIALIZER;
    const spill_statement_t *statement = change->statement;
    const bson_t *match = spill_filter_is_id(&statement->q) ? &nothing : &statement->q;
    bool any = false;
    bool done = spill_change_may_append(change) && bson_iter_init_find(&iter, id, "_id") &&
                spill_translation_has_time(change->translation);
    if (done) {
        spill_value_t owner = spill_value_from_iter(&iter);
        any = spill_statement_others(statement, change->translation->array, &owner, &others);
        done = append(change, &owner, any ? &others : NULL, match, matched);
        change->translation->written |= done && *matched;
        if (done && *matched)
            spill_activity_owner(change->translation->connection->activity,
                                 change->translation->at->collection, &owner);
    }
    if (done && *matched) {
        note_managed(change, id);
        change->appended = true;
        change->n++;
        change->modified += any || statement->count > 0;
        bson_reinit(&change->owner);
        bson_concat(&change->owner, id);
    }
    bson_destroy(&nothing);
    bson_destroy(&others);
    return done;
}

static bool prepare(spill_change_t *change, const spill_look_t *look)
{
    return change->prepare == NULL || change->prepare(change, look);
}

/* No page can have an _id that is so long. */
static bool can_have_pages(const spill_value_t *owner)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    return spill_owner_key(owner, &key, NULL) == SPILL_OK;
}

/* An adoption was refused. *changed: perhaps because another client has changed the document. */
static bool find_change(spill_change_t *change, const spill_look_t *before, bool *changed)
{
    spill_look_t look;
    if (!spill_look(change->translation, NULL, &before->id, NULL, &look))
        return false;
    *changed = !look.found || look.managed || look.length < before->length;
    spill_look_release(&look);
    return true;
}

/*
 * Adopt a long unmanaged array, and append to it. A change by another client is no error: the
 * caller looks again. *stays: the migration is being undone, or the _id is too long, so the array
 * stays unmanaged.
 */
static bool adopt_and_append(spill_change_t *change, const spill_look_t *look, bool *stays)
{
    bool matched, adopted;
    *stays = false;
    bson_iter_t iter;
    spill_error_t error;
    if (!spill_change_may_append(change) || !bson_iter_init_find(&iter, &look->id, "_id") ||
        !spill_translation_has_time(change->translation))
        return false;
    spill_value_t owner = spill_value_from_iter(&iter);
    *stays = !can_have_pages(&owner);
    if (*stays)
        return spill_translation_fail(change->translation, SPILL_SERVER_DOCUMENT_TOO_LARGE,
                                      "spillway: the document is full, and its _id is too long for "
                                      "an array with pages: at most %d bytes",
                                      SPILL_OWNER_KEY_MAX);
    spill_code_t code = spill_array_adopt(change->translation->at->array, &owner, &adopted, &error);
    if (adopted)
        spill_activity_adopted(change->translation->connection->activity);
    *stays = code == SPILL_REFUSED && error.reason == SPILL_REASON_NOT_ADOPTED;
    bool changed = code == SPILL_NOT_FOUND ||
                   (code == SPILL_REFUSED && error.reason == SPILL_REASON_UNMANAGED);
    if (code == SPILL_REFUSED && !changed && !*stays && !find_change(change, look, &changed))
        return false;
    if (changed)
        return true;
    if (code != SPILL_OK)
        return spill_translation_fail_library(change->translation, code, &error);
    return prepare(change, look) && spill_change_append(change, &look->id, &matched);
}

/* ---- one statement --------------------------------------------------------------------------- */

void spill_change_guard(const spill_change_t *change, bool cautious, bson_t *guards)
{
    if (cautious && change->statement->kind == SPILL_STATEMENT_PUSH)
        spill_guard_short(change->translation,
                          spill_change_longest(change) - change->statement->count, guards);
    else if (change->statement->kind == SPILL_STATEMENT_OTHER)
        spill_guard_no_pages(change->translation, guards);
    else
        spill_guard_unmanaged(change->translation, guards);
}

/* Send the statement for an unmanaged array. `cautious`: only if its array is short. */
static bool attempt_unmanaged(spill_change_t *change, bool cautious, bool upsert)
{
    bson_t guards = BSON_INITIALIZER;
    spill_change_guard(change, cautious, &guards);
    bool done = change->attempt(change, &guards, upsert, false);
    bson_destroy(&guards);
    return done;
}

/* Was the statement made, by this change or before? */
static bool is_made(const spill_change_t *change)
{
    return change->n > 0 || !bson_empty(&change->upserted);
}

/* No head matches q by itself. Elements in pages might: then the answer is not known. */
static bool check_unmatched(spill_change_t *change)
{
    bool any;
    if (change->statement->q_mentions == 0)
        return true;
    if (!spill_translation_find_pages(change->translation, &change->statement->whole,
                                      &change->statement->q, &any))
        return false;
    return !any || spill_change_refuse(change->translation, change->statement);
}

bool spill_change_is_appended(const spill_change_t *change)
{
    const spill_statement_t *statement = change->statement;
    return statement->kind == SPILL_STATEMENT_PUSH && statement->q_mentions == 0 &&
           !statement->has_filters &&
           (!statement->has_context || spill_filter_is_id(&statement->q));
}

/* The document that q finds has a managed array. */
static bool change_managed(spill_change_t *change, const spill_look_t *look)
{
    bool matched;
    const spill_statement_t *statement = change->statement;
    if (spill_change_is_appended(change))
        return prepare(change, look) && spill_change_append(change, &look->id, &matched);
    if (statement->kind == SPILL_STATEMENT_OTHER)
        return look->pages == 0 /* the next attempt changes it */ ||
               spill_change_refuse(change->translation, statement);
    return spill_change_adopted(change, &look->id, &matched);
}

/* What the tries of one statement have in common. */
typedef struct tries {
    spill_change_t *change;
    bool cautious; /* send the client's statement for a short array only */
    bool refused;  /* the last attempt was an insert, and the server has refused it */
    int vanished;  /* so often an insert met a document that was gone in the next look */
    bool ended;    /* no document matches q, so there is no further try */
} tries_t;

/* Change the document that was found, or find that it must be looked at again. */
static bool change_found(tries_t *tries, const spill_look_t *look)
{
    spill_change_t *change = tries->change;
    const spill_statement_t *statement = change->statement;
    if (look->managed)
        return change_managed(change, look);
    /* A push that the library cannot make would be refused after an adoption. */
    if (spill_change_is_appended(change) && look->length > 0 &&
        look->length + statement->count > spill_change_longest(change)) {
        bool stays, done = adopt_and_append(change, look, &stays);
        if (!stays)
            return done;
        spill_translation_recover(change->translation);
    }
    tries->cautious = false;
    return true;
}

/*
 * Did the server perhaps refuse the push because the document would exceed 16 MB? Servers have
 * several codes for that, so the document's size decides.
 */
static bool may_be_full(const spill_change_t *change)
{
    const spill_translation_t *translation = change->translation;
    return change->statement->kind == SPILL_STATEMENT_PUSH && !translation->close &&
           !spill_translation_is_duplicate(translation);
}

static bool is_full(const spill_change_t *change, const spill_look_t *look)
{
    return may_be_full(change) && !look->managed && look->length > 0 &&
           look->bytes + (int64_t)change->statement->u.len > SPILL_DOCUMENT_BYTES_MAX;
}

/* Two gateways may insert the document at the same time; then the other one's is found next. */
static bool insert(tries_t *tries)
{
    bool done = attempt_unmanaged(tries->change, true, true);
    bool duplicate = !done && spill_translation_is_duplicate(tries->change->translation);
    tries->refused =
        duplicate || (!done && !spill_translation_may_have_changed(tries->change->translation));
    return done || duplicate;
}

/*
 * No document matches q now. Perhaps that is so because the driver repeats a statement that was
 * made. The owner's entry of the session knows.
 */
static bool find_repeated(spill_change_t *change)
{
    bool done;
    bson_iter_t id;
    spill_look_t look;
    spill_translation_t *translation = change->translation;
    const spill_statement_t *statement = change->statement;
    if (statement->kind == SPILL_STATEMENT_OTHER || translation->command->txn_number < 0 ||
        spill_filter_is_id(&statement->q) || !spill_filter_find_id(&statement->q, &id))
        return true;
    bson_t filter = BSON_INITIALIZER;
    bson_append_iter(&filter, "_id", -1, &id);
    done = spill_look(translation, &statement->whole, &filter, NULL, &look);
    bool looked = done;
    if (done && look.managed)
        done = change_managed(change, &look);
    if (looked)
        spill_look_release(&look);
    bson_destroy(&filter);
    return done;
}

/*
 * Nothing matches q: insert the document if the statement is an upsert. If an insert was refused
 * for a duplicate, another client may have deleted the document since. A unique index, or other
 * conditions of q, refuse the next insert as well.
 */
static bool change_none(tries_t *tries, bool failed)
{
    spill_change_t *change = tries->change;
    if (failed && spill_translation_is_duplicate(change->translation) && tries->vanished++ == 0) {
        spill_translation_recover(change->translation);
        failed = false;
    }
    /* If pages may have what q asks for, a refused insert says nothing. */
    if (!check_unmatched(change) || failed || !find_repeated(change))
        return false;
    tries->ended = is_made(change) || !change->statement->upsert;
    return tries->ended || insert(tries);
}

/*
 * Change the document that was found. `failed`: the last attempt failed with a stored failure. If
 * it was an insert, the document that it would have made says nothing about the one that is there.
 */
static bool change_after(tries_t *tries, const spill_look_t *look, bool failed)
{
    spill_change_t *change = tries->change;
    spill_translation_t *translation = change->translation;
    bool full = failed && is_full(change, look);
    if (failed && !tries->refused && !full)
        return false;
    tries->refused = false;
    spill_translation_recover(translation);
    bool stays; /* then the push fails: the document is full */
    return full ? adopt_and_append(change, look, &stays) : change_found(tries, look);
}

/* Look at the document that q finds, and change it. */
static bool look_and_change(tries_t *tries)
{
    spill_look_t look;
    spill_change_t *change = tries->change;
    bool failed = change->translation->failed;
    if (!spill_look(change->translation, &change->statement->whole, &change->statement->q, NULL,
                    &look))
        return false;
    bool found = look.found, done = !found || change_after(tries, &look, failed);
    spill_look_release(&look);
    if (!found)
        return change_none(tries, failed);
    if (!done || is_made(change))
        return done;
    /* A full document refuses the statement. The next look shows that, so it is no failure yet. */
    return attempt_unmanaged(change, tries->cautious, false) || may_be_full(change);
}

bool spill_change_is_known_managed(const spill_change_t *change, const spill_value_t *owner)
{
    const spill_statement_t *statement = change->statement;
    const spill_translation_t *translation = change->translation;
    /* A push of nothing shows nothing: is there a document, and does it match q? */
    if (statement->kind != SPILL_STATEMENT_PUSH || statement->count == 0 ||
        statement->q_mentions != 0 || statement->has_filters || statement->has_context ||
        change->prepare != NULL)
        return false;
    int64_t known =
        spill_managed_since(spill_served_managed(translation->served), translation->at->collection,
                            owner, spill_clock_monotonic_s());
    return translation->command->txn_number < 0 ? known >= 0
                                                : known >= SPILL_MANAGED_CERTAIN_SECONDS;
}

/* Append to an owner that is known to be managed. It may have changed: then nothing happens. */
static bool append_known(spill_change_t *change, const bson_iter_t *id)
{
    bool matched = false;
    bson_t owner_id = BSON_INITIALIZER;
    const spill_translation_t *translation = change->translation;
    const spill_value_t owner = spill_value_from_iter(id);
    if (!spill_change_is_known_managed(change, &owner))
        return true;
    bson_append_iter(&owner_id, "_id", -1, id);
    bool done = spill_change_append(change, &owner_id, &matched);
    if (!done && change->impossible && change->result.count == 0) {
        /* Perhaps the array is none by now. That is an error only if the document matches q. */
        spill_translation_recover(change->translation);
        done = true;
    }
    if (!matched)
        spill_managed_forget(spill_served_managed(translation->served), translation->at->collection,
                             &owner);
    bson_destroy(&owner_id);
    return done;
}

bool spill_change_one(spill_change_t *change)
{
    bson_iter_t id;
    spill_translation_t *translation = change->translation;
    const spill_statement_t *statement = change->statement;
    bool by_id = spill_filter_find_id(&statement->q, &id) && !statement->has_context;
    tries_t tries = {.change = change, .cautious = true};
    if (by_id && !append_known(change, &id))
        return false;
    if (is_made(change))
        return true;
    /*
     * Other statements on F may fail on an empty document, though there is one that is managed. A
     * findAndModify looks first too: its insert beside a managed array is an error of the server,
     * and servers disagree on its code.
     */
    bool inserts = statement->upsert && by_id && statement->kind == SPILL_STATEMENT_PUSH &&
                   change->prepare == NULL;
    bool sent = inserts ? insert(&tries) : attempt_unmanaged(change, true, false);
    if (!sent && !may_be_full(change))
        return false;
    for (int i = 0; i < TRIES && !tries.ended && !is_made(change); i++)
        if (!look_and_change(&tries))
            return false;
    if (tries.ended || is_made(change))
        return true;
    return spill_translation_fail(translation, SPILL_SERVER_WRITE_CONFLICT,
                                  "spillway: the document changed at every try: try again");
}
