#include "gateway/ending.h"

#include "layout/outlier.h"
#include "layout/spiller.h"
#include "util/error.h"

/* The owner, for calls of the library. The store is a server's: it has notes. */
typedef struct place {
    spill_array_t *array;
    const spill_store_ops_t *ops;
    spill_owner_t own;
    spill_value_t owner;
} place_t;

static spill_code_t begin(const spill_ending_t *ending, place_t *place, spill_error_t *error)
{
    bson_iter_t id;
    spill_array_t *array = ending->translation->at->array;
    *place = (place_t){.array = array, .ops = array->store->ops};
    if (!bson_iter_init_find(&id, ending->id, "_id"))
        return spill_fail(error, SPILL_INVALID, "a document has no _id");
    place->owner = spill_value_from_iter(&id);
    return spill_owner_init(&place->own, array, &place->owner, error);
}

static void release(place_t *place)
{
    spill_owner_release(&place->own);
}

/*
 * May another process spill the head at this moment? Then it may put a page late, and the note has
 * to stay. (`length` leaves out deleted numbers, but a pull makes a head due for no one.)
 */
static bool may_be_spilled(const spill_ending_t *ending)
{
    const spill_bounds_t *bounds = &ending->translation->at->definition->bounds;
    return ending->length >= bounds->threshold + bounds->page_capacity ||
           ending->bytes >= bounds->head_bytes_max / 8 * 7;
}

bool spill_ending_announce(spill_translation_t *translation, int64_t rev)
{
    spill_error_t error;
    spill_store_t *store = translation->at->array->store;
    spill_code_t code = store->ops->head_ends(store, rev, &error);
    return code == SPILL_OK || spill_translation_fail_library(translation, code, &error);
}

static spill_code_t write_note(const spill_ending_t *ending, spill_error_t *error)
{
    SPILL_SCOPED(release) place_t place = {0};
    const spill_drop_note_t note = {ending->incarnation, ending->rev};
    SPILL_TRY(begin(ending, &place, error));
    spill_spiller_await(&place.own);
    return place.ops->note_drop(place.array->store, &place.array->definition, &place.owner, &note,
                                error);
}

static spill_code_t raise_rev(spill_ending_t *ending, spill_error_t *error)
{
    SPILL_SCOPED(release) place_t place = {0};
    bool done = false;
    SPILL_TRY(begin(ending, &place, error));
    spill_request_t raise = spill_owner_request(&place.own, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    raise.rev = ending->rev;
    spill_code_t code = spill_owner_step(&place.own, &raise, &done, error);
    ending->rev += done;
    return code == SPILL_CONFLICT ? SPILL_OK : code; /* the guard decides */
}

bool spill_ending_raise(spill_ending_t *ending)
{
    spill_error_t error;
    spill_code_t code = raise_rev(ending, &error);
    return code == SPILL_OK || spill_translation_fail_library(ending->translation, code, &error);
}

bool spill_ending_begin(const spill_ending_t *ending)
{
    spill_error_t error;
    if (!spill_ending_announce(ending->translation, ending->rev))
        return false;
    spill_code_t code = write_note(ending, &error);
    return code == SPILL_OK || spill_translation_fail_library(ending->translation, code, &error);
}

static spill_code_t forget(const spill_ending_t *ending, const place_t *place, spill_error_t *error)
{
    return place->ops->forget_drop(place->array->store, &place->array->definition, &place->owner,
                                   ending->incarnation, error);
}

/* Does a head of the incarnation exist? */
static spill_code_t find_head(const spill_ending_t *ending, const place_t *place, bool *lives,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_drop_read_head(&place->own, &head, error));
    *lives = head.state.present && head.state.incarnation == ending->incarnation;
    return SPILL_OK;
}

/* The statement was not made. If the head is gone all the same, another client may need the note.
 */
static spill_code_t forget_unless_gone(const spill_ending_t *ending, const place_t *place,
                                       spill_error_t *error)
{
    bool lives;
    SPILL_TRY(find_head(ending, place, &lives, error));
    return lives ? forget(ending, place, error) : SPILL_OK;
}

/*
 * Delete the pages that are left. A pipeline may have left an array, which stays managed; so look
 * for pages first and for the head afterwards (layout/drop.c).
 */
static spill_code_t drop_pages(const spill_ending_t *ending, const place_t *place,
                               spill_error_t *error)
{
    bool any = false, lives, stays = may_be_spilled(ending);
    const spill_drop_note_t note = {ending->incarnation, SPILL_DROP_IS_CERTAIN};
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_outlier_find_left_over(&place->own, ending->incarnation, &page, error));
    if (page.state.present || stays) {
        SPILL_TRY(find_head(ending, place, &lives, error));
        if (lives)
            return forget(ending, place, error);
        SPILL_TRY(place->ops->note_drop(place->array->store, &place->array->definition,
                                        &place->owner, &note, error));
        SPILL_TRY(spill_outlier_drop_left_over(&place->own, ending->incarnation, &any, error));
    }
    return stays ? SPILL_OK : forget(ending, place, error);
}

/* A failure leaves the note: the next adoption of the same _id, and `repair`, finish the drop. */
void spill_ending_end(const spill_ending_t *ending, bool sent, bool made)
{
    SPILL_SCOPED(release) place_t place = {0};
    if (!sent || begin(ending, &place, NULL) != SPILL_OK)
        return;
    if (made)
        drop_pages(ending, &place, NULL);
    else
        forget_unless_gone(ending, &place, NULL);
}
