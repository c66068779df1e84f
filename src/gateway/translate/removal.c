#include "gateway/translate/removal.h"

#include "definition/stored_names.h"
#include "gateway/translate/ending.h"
#include "util/error.h"

#include <stdio.h>

/* The document, the head as it was read, and the client's conditions. */
static void make_query(const spill_ending_t *ending, const bson_t *q, bson_t *query)
{
    char epoch[SPILL_BOOK_PATH_SIZE], rev[SPILL_BOOK_PATH_SIZE];
    SPILL_SCOPED(bson_destroy) bson_t head = BSON_INITIALIZER;
    spill_translation_book_path(ending->translation, SPILL_STORED_INCARNATION, epoch);
    spill_translation_book_path(ending->translation, SPILL_STORED_REV, rev);
    BSON_APPEND_INT64(&head, epoch, ending->incarnation);
    BSON_APPEND_INT64(&head, rev, ending->rev);
    BCON_APPEND(query, "$and", "[", BCON_DOCUMENT(ending->id), BCON_DOCUMENT(&head),
                BCON_DOCUMENT(q), "]");
}

bool spill_removal_run(spill_translation_t *translation, const spill_look_t *look, const bson_t *q,
                       spill_delete_head_fn delete_head, void *context, bool *removed)
{
    SPILL_SCOPED(bson_destroy) bson_t query = BSON_INITIALIZER;
    spill_ending_t ending = {translation, &look->id, look->book.epoch, look->book.rev};
    *removed = false;
    if (!spill_translation_check_concern(translation) ||
        !spill_translation_require(translation, SPILL_RIGHT_DELETE) ||
        !spill_ending_raise(&ending) || !spill_ending_begin(&ending))
        return false;
    make_query(&ending, q, &query);
    bool done = delete_head(context, &query, removed);
    spill_ending_end(&ending, done || !spill_translation_may_have_changed(translation), *removed);
    return done;
}
