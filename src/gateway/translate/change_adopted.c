/*
 * A managed array without pages: the client's own update, guarded by the bookkeeping that was read.
 * The update also renumbers all elements, so the bookkeeping is valid whatever array results
 * (store/renumber.h).
 */
#include "gateway/translate/change.h"

#include "bson/field_path.h"
#include "definition/stored_names.h"
#include "gateway/translate/ending.h"
#include "gateway/translate/mention.h"
#include "layout/append.h"
#include "store/renumber.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

enum { TRIES = 20 };

/* ---- the head -------------------------------------------------------------------------------- */

/* One statement on one owner, over all tries. What is read is of the last try. */
typedef struct rewrite {
    spill_change_t *change;
    const bson_t *id; /* {_id: ...} */
    spill_session_op_t session;
    bool numbered;  /* session is set */
    bool made_room; /* old entries of sessions were removed */
    bool found;
    bson_t document; /* as upstream has it */
    spill_renumbering_t before;
} rewrite_t;

static bool read_head(rewrite_t *rewrite)
{
    bson_t reply, only;
    bson_iter_t iter, batch;
    spill_translation_t *translation = rewrite->change->translation;
    bson_t *find = BCON_NEW("find", BCON_UTF8(translation->at->collection), "filter",
                            BCON_DOCUMENT(rewrite->id), "limit", BCON_INT64(1), "singleBatch",
                            BCON_BOOL(true));
    spill_translation_finish_step(translation, find);
    bool done = spill_translation_call(translation, find, &reply);
    bson_destroy(find);
    if (!done)
        return false;
    bson_reinit(&rewrite->document);
    if (bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &batch) &&
        spill_iter_document(&batch, &only))
        bson_concat(&rewrite->document, &only);
    bson_destroy(&reply);
    int64_t count = rewrite->change->statement->count;
    rewrite->before = (spill_renumbering_t){
        .array = translation->array,
        .op_window = translation->at->definition->op_window,
        .session = rewrite->numbered ? &rewrite->session : NULL,
        .session_count = count > 0 ? count : 1,
    };
    rewrite->found = spill_renumber_read(&rewrite->document, &rewrite->before);
    return true;
}

/* ---- the session ----------------------------------------------------------------------------- */

static void fail_too_old(spill_translation_t *translation)
{
    spill_translation_fail(translation, SPILL_SERVER_TRANSACTION_TOO_OLD,
                           "spillway: the session has made a later write");
}

/* Remove old entries from the head, once for a statement. */
static bool remove_old_sessions(rewrite_t *rewrite)
{
    bson_iter_t iter;
    spill_error_t error;
    spill_translation_t *translation = rewrite->change->translation;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    if (rewrite->made_room || !bson_iter_init_find(&iter, rewrite->id, "_id"))
        return spill_translation_overloaded(translation,
                                            "more sessions have written to one array lately than "
                                            "it has entries for");
    spill_value_t owner = spill_value_from_iter(&iter);
    spill_code_t code = spill_owner_init(&own, translation->at->array, &owner, &error);
    if (code != SPILL_OK)
        return spill_translation_fail_library(translation, code, &error);
    spill_forget_sessions(&own, &rewrite->session);
    rewrite->made_room = true;
    return true;
}

/* What the session's entry in the head says of the statement. */
typedef enum session_answer {
    SESSION_NEW,      /* it was not made before */
    SESSION_REPEATED, /* it was made before */
    SESSION_CHANGED,  /* old entries were removed: read the head again */
    SESSION_FAILED    /* the translation has the error */
} session_answer_t;

static session_answer_t ask_session(rewrite_t *rewrite)
{
    int64_t applied;
    const spill_renumbering_t *before = &rewrite->before;
    if (!rewrite->numbered)
        return SESSION_NEW;
    switch (spill_session_judge(&rewrite->session, before->session_count,
                                before->has_entry ? &before->entry : NULL, before->entries,
                                &applied)) {
    case SPILL_SESSION_TOO_OLD:
        fail_too_old(rewrite->change->translation);
        return SESSION_FAILED;
    case SPILL_SESSION_FULL:
        return remove_old_sessions(rewrite) ? SESSION_CHANGED : SESSION_FAILED;
    case SPILL_SESSION_GAPS:
        spill_translation_fail_gaps(rewrite->change->translation);
        return SESSION_FAILED;
    case SPILL_SESSION_REPEATED:
        return SESSION_REPEATED;
    case SPILL_SESSION_NEW:
        break;
    }
    return SESSION_NEW;
}

/* ---- the update ------------------------------------------------------------------------------ */

/* May the array become unmanaged, because F is, or may become, no array? */
static bool may_become_unmanaged(const rewrite_t *rewrite)
{
    bson_iter_t iter;
    bson_type_t type;
    size_t length;
    const spill_statement_t *statement = rewrite->change->statement;
    const char *array = rewrite->before.array;
    if (statement->replaces && spill_path_find(&statement->u, array, &iter))
        return !BSON_ITER_HOLDS_ARRAY(&iter);
    if (statement->replaces)
        return spill_path_blocked(&statement->u, array, &length, &type);
    return statement->pipeline || statement->ends;
}

/* Append the client's operator with more operands. */
static void append_operator(const bson_t *u, const char *name, const bson_t *more, bson_t *update)
{
    bson_iter_t iter;
    bson_t own, all;
    bool has = bson_iter_init_find(&iter, u, name) && BSON_ITER_HOLDS_DOCUMENT(&iter) &&
               spill_iter_document(&iter, &own);
    if (!has && bson_empty(more))
        return;
    bson_append_document_begin(update, name, -1, &all);
    if (has)
        bson_concat(&all, &own);
    bson_concat(&all, more);
    bson_append_document_end(update, &all);
}

static void make_operators(const rewrite_t *rewrite, bool ends, bson_t *update)
{
    static const char *const merged[] = {"$set", "$unset", "$currentDate", NULL};
    bson_iter_t iter;
    const bson_t *u = &rewrite->change->statement->u;
    bson_t set = BSON_INITIALIZER, unset = BSON_INITIALIZER, date = BSON_INITIALIZER;
    if (ends)
        BSON_APPEND_BOOL(&unset, SPILL_STORED_ROOT, true);
    else
        spill_renumber_set(&rewrite->before, &set, &unset, &date);
    if (bson_iter_init(&iter, u))
        while (bson_iter_next(&iter))
            if (!spill_is_one_of(bson_iter_key(&iter), merged))
                bson_append_iter(update, NULL, -1, &iter);
    append_operator(u, merged[0], &set, update);
    append_operator(u, merged[1], &unset, update);
    append_operator(u, merged[2], &date, update);
    bson_destroy(&set);
    bson_destroy(&unset);
    bson_destroy(&date);
}

static void append_stage(bson_t *pipeline, uint32_t *count, const char *name, const bson_t *operand)
{
    char text[16];
    const char *key;
    bson_t stage;
    bson_uint32_to_string((*count)++, &key, text, sizeof text);
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, key, &stage);
    bson_append_document(&stage, name, -1, operand);
    bson_append_document_end(pipeline, &stage);
}

/*
 * The replacement without its _id, which the server keeps: an engine would store it twice. Another
 * _id stays, for the server to refuse.
 */
static void append_replacement(const rewrite_t *rewrite, bson_t *operand)
{
    bson_iter_t own, given;
    bson_t fields = BSON_INITIALIZER;
    const bson_t *u = &rewrite->change->statement->u;
    bool same = false;
    if (bson_iter_init_find(&given, u, "_id") && bson_iter_init_find(&own, rewrite->id, "_id")) {
        spill_value_t left = spill_value_from_iter(&own), right = spill_value_from_iter(&given);
        same = spill_value_equal(&left, &right);
    }
    if (same)
        bson_copy_to_excluding_noinit(u, &fields, "_id", NULL);
    else
        bson_concat(&fields, u);
    BSON_APPEND_DOCUMENT(operand, "$literal", &fields);
    bson_destroy(&fields);
}

/*
 * Remove `spill`, run the client's stages, then set the new `spill`. A replacement becomes one
 * stage.
 */
static void make_pipeline(const rewrite_t *rewrite, bson_t *pipeline)
{
    char text[16];
    const char *key;
    uint32_t count = 0;
    bson_iter_t stage;
    const spill_statement_t *statement = rewrite->change->statement;
    bson_t operand = BSON_INITIALIZER;
    if (statement->replaces) {
        append_replacement(rewrite, &operand);
        append_stage(pipeline, &count, "$replaceWith", &operand);
    } else {
        BCON_APPEND(pipeline, "0", "{", "$unset", SPILL_STORED_ROOT, "}");
        count = 1;
        if (bson_iter_init(&stage, &statement->u))
            while (bson_iter_next(&stage)) {
                bson_uint32_to_string(count++, &key, text, sizeof text);
                bson_append_iter(pipeline, key, -1, &stage);
            }
    }
    bson_reinit(&operand);
    spill_renumber_expression(&rewrite->before, &operand);
    append_stage(pipeline, &count, "$set", &operand);
    bson_destroy(&operand);
}

void spill_change_append_options(const spill_change_t *change, bson_t *command)
{
    static const char *const names[] = {"arrayFilters", "collation", "hint", NULL};
    static const char *const of_body[] = {"let", "bypassDocumentValidation", NULL};
    bson_iter_t field;
    if (bson_iter_init(&field, &change->statement->whole))
        while (bson_iter_next(&field))
            if (spill_is_one_of(bson_iter_key(&field), names))
                bson_append_iter(command, NULL, -1, &field);
    for (size_t i = 0; of_body[i] != NULL; i++)
        if (spill_translation_find(change->translation, of_body[i], &field))
            bson_append_iter(command, NULL, -1, &field);
}

/* The filter: the _id, the client's conditions, and the guard that the head is as it was read. */
static void make_query(const rewrite_t *rewrite, bson_t *query)
{
    bson_t guard = BSON_INITIALIZER;
    spill_renumber_guard(&rewrite->before, &guard);
    BCON_APPEND(query, "$and", "[", BCON_DOCUMENT(rewrite->id),
                BCON_DOCUMENT(&rewrite->change->statement->q), BCON_DOCUMENT(&guard), "]");
    bson_destroy(&guard);
}

static bool send_update(rewrite_t *rewrite, bool ends, bool *matched)
{
    spill_change_t *change = rewrite->change;
    bool pipeline = change->statement->pipeline || change->statement->replaces;
    bson_t query = BSON_INITIALIZER, update = BSON_INITIALIZER;
    const spill_adopted_step_t step = {&query, &update, pipeline, ends, &rewrite->document};
    make_query(rewrite, &query);
    if (pipeline)
        make_pipeline(rewrite, &update);
    else
        make_operators(rewrite, ends, &update);
    bool done = change->rewrite(change, &step, matched);
    bson_destroy(&query);
    bson_destroy(&update);
    return done;
}

static spill_ending_t ending_of(const rewrite_t *rewrite)
{
    const spill_renumbering_t *before = &rewrite->before;
    return (spill_ending_t){rewrite->change->translation, rewrite->id, before->incarnation,
                            before->rev};
}

/* Make the update. If the head may end by it, a note names pages that a spill has put. */
static bool update_head(rewrite_t *rewrite, bool *matched)
{
    spill_translation_t *translation = rewrite->change->translation;
    const spill_ending_t ending = ending_of(rewrite);
    if (!may_become_unmanaged(rewrite))
        return send_update(rewrite, false, matched);
    if (!spill_ending_begin(&ending))
        return false;
    bool done = send_update(rewrite, true, matched);
    spill_ending_end(&ending, done || !spill_translation_may_have_changed(translation), *matched);
    return done;
}

/*
 * F is missing or no array. What an operator makes of that, only the server knows: it may depend on
 * whether the update changes anything else. So the document becomes unmanaged by an update of its
 * own.
 */
static bool end_management(rewrite_t *rewrite, bool *made)
{
    bson_t reply;
    bson_iter_t iter;
    spill_translation_t *translation = rewrite->change->translation;
    const spill_ending_t ending = ending_of(rewrite);
    SPILL_SCOPED(bson_destroy) bson_t guard = BSON_INITIALIZER;
    *made = false;
    if (!spill_translation_require(translation, SPILL_RIGHT_UPDATE) || !spill_ending_begin(&ending))
        return false;
    spill_renumber_guard(&rewrite->before, &guard);
    bson_t *command =
        BCON_NEW("update", BCON_UTF8(translation->at->collection), "updates", "[", "{", "q", "{",
                 "$and", "[", BCON_DOCUMENT(rewrite->id), BCON_DOCUMENT(&guard), "]", "}", "u", "{",
                 "$unset", "{", SPILL_STORED_ROOT, BCON_BOOL(true), "}", "}", "}", "]",
                 "writeConcern", "{", "w", "majority", "}");
    spill_translation_finish_step(translation, command);
    bool done = spill_translation_call(translation, command, &reply);
    bson_destroy(command);
    if (done) {
        *made = bson_iter_init_find(&iter, &reply, "n") && bson_iter_as_int64(&iter) > 0;
        done = spill_translation_keep_write_error(translation, &reply, false);
        bson_destroy(&reply);
    }
    spill_ending_end(&ending, done || !spill_translation_may_have_changed(translation), *made);
    return done;
}

/*
 * Set the count field of the definition, which the client's update has left unchanged. If this
 * fails, the next spill or removal sets it.
 */
static bool set_count(rewrite_t *rewrite)
{
    bson_t reply;
    char array[SPILL_NAME_SIZE + 1], rev[SPILL_BOOK_PATH_SIZE];
    spill_translation_t *translation = rewrite->change->translation;
    const spill_definition_t *definition = translation->at->definition;
    if (definition->count_field[0] == '\0')
        return true;
    snprintf(array, sizeof array, "$%s", definition->array);
    spill_translation_book_path(translation, SPILL_STORED_REV, rev);
    bson_t *command = BCON_NEW(
        "update", BCON_UTF8(translation->at->collection), "updates", "[", "{", "q", "{", "$and",
        "[", BCON_DOCUMENT(rewrite->id), "{", rev, BCON_INT64(rewrite->before.rev + 1), "}", "]",
        "}", "u", "[", "{", "$set", "{", definition->count_field, "{", "$size", "{", "$ifNull", "[",
        BCON_UTF8(array), "[", "]", "]", "}", "}", "}", "}", "]", "}", "]");
    spill_translation_finish_step(translation, command);
    bool done = spill_translation_call(translation, command, &reply);
    bson_destroy(command);
    if (done)
        bson_destroy(&reply);
    else if (!translation->close)
        spill_translation_recover(translation);
    return !translation->close;
}

/* ---- one owner ------------------------------------------------------------------------------- */

/* The session has made the statement before: answer as its first try. */
static void answer_repeated(rewrite_t *rewrite)
{
    spill_change_t *change = rewrite->change;
    change->n++;
    change->modified++;
    change->appended = change->repeated = true;
    change->result = (spill_append_result_t){.first = -1};
    bson_reinit(&change->owner);
    bson_concat(&change->owner, rewrite->id);
}

/*
 * Has the document not changed since the last try? Then that try's guard held, so it failed because
 * the document does not match q.
 */
static bool is_unchanged(const rewrite_t *rewrite, bson_t *last)
{
    bool unchanged = bson_equal(last, &rewrite->document);
    bson_reinit(last);
    bson_concat(last, &rewrite->document);
    return unchanged;
}

/* Change the head that was read. *finished: the statement was made, or the array is unmanaged. */
static bool change_head(rewrite_t *rewrite, bool *matched, bool *finished)
{
    spill_change_t *change = rewrite->change;
    if (rewrite->before.length < 0 && !change->statement->pipeline &&
        !change->statement->replaces) {
        bool done = end_management(rewrite, &change->ended);
        *finished = change->ended;
        return done;
    }
    if (!update_head(rewrite, matched))
        return false;
    *finished = *matched;
    return !*matched || set_count(rewrite);
}

/* Try once. *finished: no further try is needed. */
static bool try_once(rewrite_t *rewrite, bson_t *last, bool *matched, bool *finished)
{
    spill_change_t *change = rewrite->change;
    if (!read_head(rewrite))
        return false;
    *finished = !rewrite->found;
    if (*finished)
        return true;
    switch (ask_session(rewrite)) {
    case SESSION_FAILED:
        return false;
    case SESSION_CHANGED:
        return true;
    case SESSION_REPEATED:
        answer_repeated(rewrite);
        *matched = *finished = true;
        return true;
    case SESSION_NEW:
        break;
    }
    if (rewrite->before.pages > 0 || change->statement->touches_other_field)
        return spill_change_refuse(change->translation, change->statement);
    *finished = is_unchanged(rewrite, last);
    return *finished || (spill_translation_check_concern(change->translation) &&
                         change_head(rewrite, matched, finished));
}

bool spill_change_adopted(spill_change_t *change, const bson_t *id, bool *matched)
{
    bson_iter_t iter;
    rewrite_t rewrite = {.change = change, .id = id};
    bson_t last = BSON_INITIALIZER;
    bool done = true, finished = false;
    *matched = false;
    if (!bson_iter_init_find(&iter, id, "_id"))
        return true;
    spill_value_t owner = spill_value_from_iter(&iter);
    rewrite.numbered = spill_change_session(change, &owner, &rewrite.session);
    bson_init(&rewrite.document);
    for (int tries = 0; tries < TRIES && done && !finished; tries++)
        done = try_once(&rewrite, &last, matched, &finished);
    bson_destroy(&rewrite.document);
    bson_destroy(&last);
    if (done && !finished)
        return spill_translation_fail(change->translation, SPILL_SERVER_WRITE_CONFLICT,
                                      "spillway: the array changed at every try: try again");
    return done;
}
