/*
 * The end of a head on a store whose documents other programs delete, too: by DROP_HEAD (drop.c),
 * or by a statement that deletes its document or leaves no array in it. A note shows repair, and
 * the next adoption, that the pages that are left may be deleted (store/drop_note.h).
 * docs/internals/gateway.md has the order of the steps, and what each crash leaves behind.
 *
 *     raise    the head's rev becomes R: no client can count a page that was put before
 *     begin    the dropped mark becomes R, then the note {incarnation, R}
 *     ...      the caller's statement, guarded by incarnation and R; DROP_HEAD by the pages instead
 *     finish   the note without R, then the pages. The note stays for a time (store/drop_note.h)
 *
 * For stores that have head_ends (store/store.h).
 */
#ifndef SPILL_LAYOUT_HEAD_END_H
#define SPILL_LAYOUT_HEAD_END_H

#include "layout/owner.h"

typedef struct spill_head_end {
    const spill_owner_t *owner;
    int64_t incarnation, rev; /* of the head as it was read */
} spill_head_end_t;

/*
 * If the head has changed meanwhile, `rev` stays, and the statement's guard will not hold. It also
 * stays if the head has an intent or no elements of its own; then the note may not be believed.
 */
spill_code_t spill_head_end_raise(spill_head_end_t *end, spill_error_t *error);

/* Before the statement. Waits for a spill of the owner by this process. */
spill_code_t spill_head_end_begin(const spill_head_end_t *end, spill_error_t *error);

/*
 * After the statement. `made`: it ended the head, or may have. Call it only if the statement was
 * answered: without an answer the note has to stay. After an error the note is there: the next
 * adoption and `repair` finish.
 */
spill_code_t spill_head_end_finish(const spill_head_end_t *end, bool made, spill_error_t *error);

#endif
