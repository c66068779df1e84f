/*
 * What a note says of an owner that someone deletes by other means than DROP_HEAD: incarnations up
 * to this one have ended, or are about to, so their pages may be deleted (layout/drop.c decides).
 */
#ifndef SPILL_STORE_DROP_NOTE_H
#define SPILL_STORE_DROP_NOTE_H

#include <stdint.h>

/* As rev: the head of this incarnation was deleted. */
#define SPILL_DROP_IS_CERTAIN INT64_MAX

typedef struct spill_drop_note {
    int64_t incarnation;
    int64_t rev; /* of the head that was about to be deleted */
} spill_drop_note_t;

#endif
