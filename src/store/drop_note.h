/*
 * What a note says of an owner whose head someone deletes. Incarnations up to `ended` have ended,
 * so their pages may be deleted. The head of a later `incarnation` is about to be deleted, or was;
 * if that happened, layout/drop.c finds out.
 */
#ifndef SPILL_STORE_DROP_NOTE_H
#define SPILL_STORE_DROP_NOTE_H

#include <stdint.h>

/* As rev: the head of this incarnation was deleted. */
#define SPILL_DROP_IS_CERTAIN INT64_MAX

typedef struct spill_drop_note {
    int64_t incarnation;
    int64_t rev;   /* of the head that was about to be deleted */
    int64_t ended; /* in the answer of find_drop */
} spill_drop_note_t;

/* A drop of the collection of all heads, which have incarnations up to this one. */
typedef struct spill_drop_all {
    int64_t incarnation;
    char attempt[32]; /* no other drop has this name */
} spill_drop_all_t;

typedef enum spill_drop_stage {
    SPILL_DROP_BEGINS, /* the collection is about to be dropped */
    SPILL_DROP_ENDED,  /* it was dropped */
    SPILL_DROP_REFUSED /* it was not, and will not be by this attempt */
} spill_drop_stage_t;

#endif
