/*
 * What a note says of an owner whose head someone deletes. Incarnations up to `ended` have ended,
 * so their pages may be deleted. The head of a later `incarnation` is about to be deleted, or was;
 * if that happened, layout/drop.c finds out.
 *
 * A client that has read the head before may put a page afterwards. So a note stays for a time, by
 * the store's clock, and the next adoption of the owner, `repair` and sweeps find the page by it.
 */
#ifndef SPILL_STORE_DROP_NOTE_H
#define SPILL_STORE_DROP_NOTE_H

#include <stdbool.h>
#include <stdint.h>

/* As rev: the head of this incarnation was deleted. */
#define SPILL_DROP_IS_CERTAIN INT64_MAX

/* A spill does not take this long, in milliseconds, with what the network may delay of it. */
#define SPILL_DROP_NOTE_STAYS_MS ((int64_t)3600 * 1000)

/* So many notes are listed at a time. */
enum { SPILL_DROP_NOTES_LISTED = 100 };

typedef struct spill_drop_note {
    int64_t incarnation;
    int64_t rev;   /* of the head that was about to be deleted */
    int64_t ended; /* in the answer of find_drop */
    bool old;      /* forget_drop, announced: only a note that has stayed for its time */
    bool at_once;  /* forget_drop, certain: a young note, too, because no page can be put late */
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
