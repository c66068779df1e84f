/*
 * What only the records show: elements that are in no document, or missing from one; records that
 * cannot be read; documents whose numbers are others than their states say; indexes that disagree.
 * Bounds, order and counts are the verifier's. One iterator sees all of it at one moment.
 *
 *   check.c          documents and their elements
 *   check_indexes.c  the indexes of pages, ids and ranks
 */
#ifndef SPILL_STORE_EMBEDDED_CHECK_H
#define SPILL_STORE_EMBEDDED_CHECK_H

#include "store/embedded/embedded.h"

/* Invariants (docs/internals/protocol.md) that findings are of. */
enum { SPILL_CHECK_LOST = 2, SPILL_CHECK_NUMBERED = 4, SPILL_CHECK_RECOVERABLE = 7 };

typedef struct spill_checking {
    const spill_request_t *request; /* definition, owner, and the array's number */
    spill_kv_iter_t *iter;
    spill_record_key_t key; /* of the owner's */
    spill_state_t head;
    int64_t below; /* documents seen so far hold no number below this */
    bool sure;     /* ... and this is where one of them begins */
    bool broken;   /* pages could not be read to the first: what lies where is unknown */
    spill_store_finding_fn report;
    void *context;
} spill_checking_t;

void spill_checking_find(const spill_checking_t *checking, int64_t page, int invariant,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* In an index: reindex.c makes it anew. */
void spill_checking_find_in_index(const spill_checking_t *checking, int64_t page,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Does the iterator stand still because the engine cannot read on? Then that is a finding. */
bool spill_checking_find_damage(const spill_checking_t *checking, int64_t page, const char *what);

/* Go to the first record of that kind, or what comes after them. */
void spill_checking_seek_kind(spill_checking_t *checking, spill_record_t kind);

/* The iterator is behind the records of one kind: is it among others before those of `next`? */
void spill_checking_find_unknown(const spill_checking_t *checking, spill_record_t next);

void spill_checking_page_index(spill_checking_t *checking);
void spill_checking_ids(spill_checking_t *checking);
void spill_checking_ranks(spill_checking_t *checking);

#endif
