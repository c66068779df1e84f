#include "layout/head_end.h"

#include "definition/schema.h"
#include "layout/drop.h"
#include "layout/spiller.h"
#include "util/error.h"

spill_code_t spill_head_end_raise(spill_head_end_t *end, spill_error_t *error)
{
    bool done = false;
    if (spill_schema_of(&end->owner->array->definition)->has_referenced_elements)
        return SPILL_OK; /* RECOUNT would set the sum */
    spill_request_t raise = spill_owner_request(end->owner, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    raise.rev = end->rev;
    spill_code_t code = spill_owner_step(end->owner, &raise, &done, error);
    end->rev += done;
    return code == SPILL_CONFLICT ? SPILL_OK : code; /* the guard decides */
}

static spill_code_t write_note(const spill_head_end_t *end, int64_t rev, spill_error_t *error)
{
    spill_store_t *store = end->owner->array->store;
    const spill_drop_note_t note = {.incarnation = end->incarnation, .rev = rev};
    return spill_store_note_drop(store, &end->owner->array->definition, end->owner->value, &note,
                                 error);
}

spill_code_t spill_head_end_begin(const spill_head_end_t *end, spill_error_t *error)
{
    spill_store_t *store = end->owner->array->store;
    SPILL_TRY(spill_store_head_ends(store, end->rev, error));
    spill_spiller_await(end->owner);
    return write_note(end, end->rev, error);
}

/* ---- afterwards ------------------------------------------------------------------------------ */

static spill_code_t forget_note(const spill_head_end_t *end, spill_error_t *error)
{
    spill_store_t *store = end->owner->array->store;
    const spill_drop_note_t note = {.incarnation = end->incarnation, .rev = end->rev};
    return spill_store_forget_drop(store, &end->owner->array->definition, end->owner->value, &note,
                                   error);
}

/* Does a head of the incarnation exist? */
static spill_code_t find_head(const spill_head_end_t *end, bool *lives, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_drop_read_head(end->owner, &head, error));
    *lives = head.state.present && head.state.incarnation == end->incarnation;
    return SPILL_OK;
}

/*
 * The statement was not made. If the head is gone all the same, another client may need the note.
 * If it lives, another client may have begun to end it: its note has a higher rev, and stays.
 */
static spill_code_t forget_unless_gone(const spill_head_end_t *end, spill_error_t *error)
{
    bool lives;
    SPILL_TRY(find_head(end, &lives, error));
    return lives ? forget_note(end, error) : SPILL_OK;
}

/*
 * Delete the pages that are left. A pipeline may have left an array, which stays managed; so look
 * for the head first. The note stays: another client may put a page that it has read of the head.
 */
static spill_code_t drop_pages(const spill_head_end_t *end, spill_error_t *error)
{
    bool any = false, lives;
    SPILL_TRY(find_head(end, &lives, error));
    if (lives)
        return forget_note(end, error);
    SPILL_TRY(write_note(end, SPILL_DROP_IS_CERTAIN, error));
    return spill_outlier_drop_left_over(end->owner, end->incarnation, &any, error);
}

spill_code_t spill_head_end_finish(const spill_head_end_t *end, bool made, spill_error_t *error)
{
    return made ? drop_pages(end, error) : forget_unless_gone(end, error);
}
