/*
 * The end of a head by a statement of the gateway: a delete, or an update that makes the array
 * unmanaged. A note shows repair, and the next adoption, that the remaining pages may be
 * deleted. The steps are those of layout/head_end.h, on the client's document.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_ENDING_H
#define SPILL_GATEWAY_TRANSLATE_ENDING_H

#include "gateway/translate/translation.h"

/* The head as it was read. */
typedef struct spill_ending {
    spill_translation_t *translation;
    const bson_t *id; /* {_id: ...} */
    int64_t incarnation, rev;
} spill_ending_t;

/*
 * Raise the head's rev, so that no client can count a page that was put before: the note is then
 * believed if the gateway dies. `ending` gets the rev that it has now. If the head has changed, the
 * statement's guard will not hold. False: a failure.
 */
bool spill_ending_raise(spill_ending_t *ending);

/* Before the statement, which must be guarded by incarnation and rev. False: a failure. */
bool spill_ending_begin(const spill_ending_t *ending);

/*
 * After the statement. `sent`: it has an answer, which says whether it was `made`. Without an
 * answer the note stays.
 */
void spill_ending_end(const spill_ending_t *ending, bool sent, bool made);

#endif
