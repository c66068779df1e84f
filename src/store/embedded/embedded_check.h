/*
 * Find errors that only the records show: elements that no document has or that are missing from
 * one; records that cannot be read; states with wrong numbers; wrong indexes. The verifier checks
 * bounds, order and counts. One iterator reads all of it as of one moment.
 *
 *   embedded_check.c    documents and their elements
 *   embedded_indexes.c  the indexes of pages, ids and ranks
 */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_CHECK_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_CHECK_H

#include "store/embedded/embedded.h"

/* The invariants (docs/internals/protocol.md) that these checks find violated. */
enum { SPILL_CHECK_LOST = 2, SPILL_CHECK_NUMBERED = 4, SPILL_CHECK_RECOVERABLE = 7 };

typedef struct spill_checking {
    const spill_request_t *request; /* definition, owner, and the array's number */
    spill_kv_iter_t *iter;
    spill_record_key_t key; /* of the owner */
    spill_state_t head;
    int64_t below; /* the documents checked so far have no number below this */
    bool sure;     /* one of them begins exactly there */
    bool damaged;  /* records of the head cannot be read, and a finding says so */
    bool broken;   /* not all pages could be read: which document has a number is unknown */
    spill_store_finding_fn report;
    void *context;
} spill_checking_t;

void spill_checking_find(const spill_checking_t *checking, int64_t page, int invariant,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Report a finding in an index, which spill_embedded_reindex rebuilds. */
void spill_checking_find_in_index(const spill_checking_t *checking, int64_t page,
                                  const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * If the iterator has stopped because the engine cannot read, report that and return true. One
 * damaged block has records of many kinds: of the head, only the first such finding is reported.
 */
bool spill_checking_find_damage(spill_checking_t *checking, int64_t page, const char *what);

/* Go to the first record of that kind, or to the first record behind that kind. */
void spill_checking_seek_kind(spill_checking_t *checking, spill_record_t kind);

/* After the records of one kind: report a record of an unknown kind before those of `next`. */
void spill_checking_find_unknown(const spill_checking_t *checking, spill_record_t next);

void spill_checking_page_index(spill_checking_t *checking);
void spill_checking_ids(spill_checking_t *checking);
void spill_checking_ranks(spill_checking_t *checking);

#endif
