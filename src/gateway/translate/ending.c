#include "gateway/translate/ending.h"

#include "layout/head_end.h"
#include "util/error.h"

/* The owner, for calls of the library. The store is a server's: it has notes. */
typedef struct place {
    spill_owner_t own;
    spill_value_t owner;
    spill_head_end_t end;
} place_t;

static spill_code_t begin(const spill_ending_t *ending, place_t *place, spill_error_t *error)
{
    bson_iter_t id;
    if (!bson_iter_init_find(&id, ending->id, "_id"))
        return spill_fail(error, SPILL_INVALID, "a document has no _id");
    place->owner = spill_value_from_iter(&id);
    place->end = (spill_head_end_t){&place->own, ending->incarnation, ending->rev};
    return spill_owner_init(&place->own, ending->translation->at->array, &place->owner, error);
}

static void release(place_t *place)
{
    spill_owner_release(&place->own);
}

bool spill_ending_raise(spill_ending_t *ending)
{
    SPILL_SCOPED(release) place_t place = {0};
    spill_error_t error;
    spill_code_t code = begin(ending, &place, &error);
    if (code == SPILL_OK)
        code = spill_head_end_raise(&place.end, &error);
    ending->rev = place.end.rev;
    return code == SPILL_OK || spill_translation_fail_library(ending->translation, code, &error);
}

bool spill_ending_begin(const spill_ending_t *ending)
{
    SPILL_SCOPED(release) place_t place = {0};
    spill_error_t error;
    spill_code_t code = begin(ending, &place, &error);
    if (code == SPILL_OK)
        code = spill_head_end_begin(&place.end, &error);
    return code == SPILL_OK || spill_translation_fail_library(ending->translation, code, &error);
}

/* A failure leaves the note: the next adoption of the same _id, and `repair`, finish the drop. */
void spill_ending_end(const spill_ending_t *ending, bool sent, bool made)
{
    SPILL_SCOPED(release) place_t place = {0};
    if (sent && begin(ending, &place, NULL) == SPILL_OK)
        spill_head_end_finish(&place.end, made, NULL);
}
