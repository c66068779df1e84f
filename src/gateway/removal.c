#include "gateway/removal.h"

#include "layout/outlier.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/*
 * Delete the pages of the incarnation. The head is gone, so a note may be written, and no earlier:
 * while the head exists, its delete may still fail. A failure leaves the note: the next adoption of
 * the same _id, and `repair`, finish the drop.
 */
static void drop_pages(spill_translation_t *translation, const spill_look_t *look)
{
    bson_iter_t iter;
    bool any = false;
    spill_array_t *array = translation->at->array;
    const spill_store_ops_t *ops = array->store->ops;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    if (!bson_iter_init_find(&iter, &look->id, "_id"))
        return;
    spill_value_t owner = spill_value_from_iter(&iter);
    bool notes = ops->note_drop != NULL;
    if (notes)
        ops->note_drop(array->store, &array->definition, &owner, look->book.epoch, NULL);
    if (spill_owner_init(&own, array, &owner, NULL) == SPILL_OK &&
        spill_outlier_drop_left_over(&own, look->book.epoch, &any, NULL) == SPILL_OK && notes)
        ops->forget_drop(array->store, &array->definition, &owner, look->book.epoch, NULL);
}

bool spill_removal_run(spill_translation_t *translation, const spill_look_t *look, const bson_t *q,
                       bool *removed)
{
    char epoch[SPILL_NAME_SIZE + 16], rev[SPILL_NAME_SIZE + 16];
    bson_t reply, filter = BSON_INITIALIZER;
    bson_iter_t n;
    *removed = false;
    if (!spill_translation_check_concern(translation) ||
        !spill_translation_require(translation, SPILL_RIGHT_DELETE) ||
        !spill_change_announce_end(translation, look->book.rev))
        return false;
    snprintf(epoch, sizeof epoch, "spill.%s.epoch", translation->array);
    snprintf(rev, sizeof rev, "spill.%s.rev", translation->array);
    BSON_APPEND_INT64(&filter, epoch, look->book.epoch);
    BSON_APPEND_INT64(&filter, rev, look->book.rev);
    bson_t *command = BCON_NEW("delete", BCON_UTF8(translation->at->collection), "deletes", "[",
                               "{", "q", "{", "$and", "[", BCON_DOCUMENT(&look->id),
                               BCON_DOCUMENT(&filter), BCON_DOCUMENT(q), "]", "}", "limit",
                               BCON_INT32(1), "}", "]", "writeConcern", "{", "w", "majority", "}");
    spill_translation_finish_step(translation, command);
    bool done = spill_translation_call(translation, command, &reply);
    /* With the head, the session's entries are gone: nothing would recognize a repetition. */
    translation->connection->changed = translation->connection->changed || !done;
    if (done) {
        *removed = bson_iter_init_find(&n, &reply, "n") && bson_iter_as_int64(&n) > 0;
        bson_destroy(&reply);
    }
    bson_destroy(command);
    bson_destroy(&filter);
    if (*removed)
        drop_pages(translation, look);
    return done;
}
