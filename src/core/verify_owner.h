/* The checks on one owner's documents. */
#ifndef SPILL_CORE_VERIFY_OWNER_H
#define SPILL_CORE_VERIFY_OWNER_H

#include "layout/outlier.h"

#include <spillway/verify.h>

/* A step by which repair makes right what was found: RECOUNT with `counts`, or SEAL. */
typedef struct spill_fix {
    spill_request_kind_t kind;
    int64_t page;
    int64_t incarnation, rev;
    int64_t pages, total, removed; /* of a head, as they are to be */
    bool place;                    /* its numbers are to be [first, end) */
    int64_t first, end, seen_end;  /* and it was seen to end there (spill_place_t) */
    bool indexes;                  /* RECOUNT of the head, with that instead */
} spill_fix_t;

/*
 * Documents whose states are wrong about their numbers, found in one look; the next sees them as
 * they will be, so that what only follows from that is not told.
 */
typedef struct spill_places {
    spill_place_t *at;
    size_t count;
    bool changed; /* in this look */
} spill_places_t;

/* What one look at an owner found. Zero it first, release it last. */
typedef struct spill_inspection {
    const spill_owner_t *owner;
    bool rest; /* not a closed tail, nor sum and top of a summary: repair looks itself */
    int64_t pages;
    int64_t elements;
    spill_finding_t *findings; /* at most SPILL_INSPECTION_FINDINGS are kept */
    size_t kept;
    spill_fix_t *fixes; /* of each; kind READ: what is right is not known */
    int64_t fixable;    /* how many were found that can be made right */
    int64_t indexes;    /* ... and of these how many in a store's own indexes */
    spill_places_t places;
    spill_seqs_t unreadable; /* pages (or SPILL_HEAD) that are a finding as a whole */
    int64_t found;
    int64_t rev; /* of the head, the end of what it holds, and the pages it speaks of: */
    int64_t end; /* they tell whether the owner changed meanwhile */
    int64_t head_pages;
} spill_inspection_t;

#define SPILL_INSPECTION_FINDINGS 100

/*
 * Look at every document of the owner. SPILL_CORRUPT records become findings, not errors. Where
 * places have changed another look is needed.
 */
spill_code_t spill_inspect_owner(spill_inspection_t *inspection, spill_error_t *error);

/*
 * Elements apart, the head having been read whole: every element in documents, and the head's sum.
 * *live: how many there are in documents. (verify_referenced.c)
 */
spill_code_t spill_inspect_referenced(spill_inspection_t *inspection, const spill_response_t *head,
                                      int64_t *live, spill_error_t *error);

void spill_inspection_release(spill_inspection_t *inspection);

/* For another look: `owner`, `rest` and places stay, nothing else. */
void spill_inspection_restart(spill_inspection_t *inspection);

/* The finding that was just added is mended by this step, where all else is sound. */
void spill_inspection_fix(spill_inspection_t *inspection, const spill_fix_t *fix);

/* The step that makes a document's counts anew, the head's being what they are. */
spill_fix_t spill_fix_counts(int64_t page, const spill_state_t *state);

/* The store's own indexes of the owner are made anew, if its head is as it was seen. */
spill_fix_t spill_fix_indexes(const spill_inspection_t *inspection);

/* Add a finding. */
void spill_inspection_add(spill_inspection_t *inspection, int64_t page, int invariant,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/*
 * For repair: what the verifier finds of one owner, but for what repair itself finds and mends. The
 * caller releases *inspection, whose findings name `owner`. (verify.c)
 */
spill_code_t spill_inspect_rest(const spill_owner_t *owner, spill_inspection_t *inspection,
                                spill_error_t *error);

#endif
