/*
 * The state of one document (a head or a page), apart from its elements. Every store keeps it in
 * its own form; the transitions of transition.h work on this one.
 *
 * Sequence numbers in a document: its slots are first, first + 1, ... first + slots - 1, where
 * slots = live + |gone|. The i-th element of the array has the i-th number that is not in `gone`.
 */
#ifndef SPILL_STORE_STATE_H
#define SPILL_STORE_STATE_H

#include "store/sum.h"
#include "store/top.h"
#include "store/window_stats.h"

#include <spillway/definition.h>
#include <spillway/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers in [first, end), after `before` smaller ones of the set. */
typedef struct spill_seq_run {
    int64_t first;
    int64_t end;
    size_t before;
} spill_seq_run_t;

/* A sorted set of sequence numbers, kept as runs: it takes the memory of these. Zeroed: empty. */
typedef struct spill_seqs {
    spill_seq_run_t *runs; /* ascending, none beside another */
    size_t run_count;
    size_t capacity;
    size_t count; /* numbers in all of them */
} spill_seqs_t;

bool spill_seqs_contains(const spill_seqs_t *seqs, int64_t seq);
bool spill_seqs_equal(const spill_seqs_t *left, const spill_seqs_t *right);
void spill_seqs_insert(spill_seqs_t *seqs, int64_t seq); /* a second time: no effect */
/* Numbers in [first, end), as if each was inserted. */
void spill_seqs_insert_run(spill_seqs_t *seqs, int64_t first, int64_t end);
size_t spill_seqs_count_below(const spill_seqs_t *seqs, int64_t seq);
/* The number itself where it is not in the set, else the next higher, or lower, that is not. */
int64_t spill_seqs_pass(const spill_seqs_t *seqs, int64_t seq);
int64_t spill_seqs_pass_down(const spill_seqs_t *seqs, int64_t seq);
/* The number that has `passed` others, from `from` on, before it, all that are not in the set. */
int64_t spill_seqs_absent(const spill_seqs_t *seqs, int64_t from, int64_t passed);
void spill_seqs_clear(spill_seqs_t *seqs);                        /* empty, memory kept */
void spill_seqs_drop_below(spill_seqs_t *seqs, int64_t seq);      /* forget the smaller ones */
void spill_seqs_keep_below(spill_seqs_t *seqs, int64_t seq);      /* forget the others */
void spill_seqs_copy(const spill_seqs_t *from, spill_seqs_t *to); /* `to` is empty or zeroed */
void spill_seqs_release(spill_seqs_t *seqs);

typedef struct spill_state {
    /* Every document. */
    bool present;
    int64_t incarnation;  /* the owner's incarnation: when its head was made; pages carry it */
    int64_t rev;          /* raised where the table of request.h says so; starts at incarnation */
    int64_t first;        /* sequence number of the first slot */
    int64_t live;         /* elements in the array */
    int64_t live_bytes;   /* sum of their value sizes */
    spill_seqs_t deleted; /* removed numbers among the slots */
    bool gaps;            /* capped, keeping the best: they are noted as runs, for there are many */
    int64_t op_count;     /* appends that carried an operation id, up to here */
    bool sealed;          /* keep oldest: takes no more elements */
    bool closed;          /* keep oldest: sealed, and no page follows: the owner is being dropped */
    spill_window_stats_t window_stats; /* layout bucket: what its statistics are made of */

    /* Heads. */
    int64_t pages; /* overflowPages */
    /*
     * Dead numbers that are counted once, here: with keep newest those in [low, first), whether a
     * page's `gone` or a leading run folded away; with keep oldest all of those from low on, also
     * the head's own. So a whole array has live elements:
     *   keep newest: (first - low - removed) + live
     *   keep oldest: (end of the last page or head) - low - removed
     */
    int64_t removed;
    int64_t watermark;    /* everything below was trimmed */
    int64_t total;        /* keep oldest: numbers ever given, as of the last ADVANCE or SEAL */
    int64_t fields_bytes; /* size of the document of the other fields, _id included */
    bool intent;          /* a removal in a page is under way: */
    int64_t intent_seq;
    int64_t intent_page;
    bool intent_edit;          /* elements apart: an edit is, ... */
    int64_t intent_source_rev; /* ... which is the PUT_PAGE with this src, ... */
    spill_sum_t intent_value;  /* ... and the sum has this for it */
    spill_sum_t sum;           /* elements apart: of all that are counted */
    /*
     * Layout subset: the elements that rank highest of all that are counted, top_count of them or
     * all; while an edit is under way, its element as it was before.
     */
    spill_top_t top;

    /* Pages. */
    int64_t page;       /* 0-based number */
    int64_t source_rev; /* the head's rev when this content was copied from it */
    /*
     * Copied before there was a head: until then (by the store's clock) it is neither replaced nor
     * deleted. 0: none. Closed: whoever copied it has given it up.
     */
    int64_t lease;
} spill_state_t;

/* live + |gone| */
int64_t spill_state_slots(const spill_state_t *state);

/*
 * What of a document counts against its bound in slots: the slots; capped: the elements alone, for
 * there nothing else would end what is remembered of removed numbers but the bound in bytes.
 */
int64_t spill_state_bounded(const spill_definition_t *definition, const spill_state_t *state);

/* first + slots: the number after the last slot. */
int64_t spill_state_end(const spill_state_t *state);

/* How many live elements of the document are older than element `seq`. O(log |gone|). */
int64_t spill_state_rank(const spill_state_t *state, int64_t seq);
/* What the array's owner has in all, as far as the head can tell: with keep newest, exactly. */
int64_t spill_state_count(const spill_definition_t *definition, const spill_state_t *head);

/* Deep copy into an empty or zeroed `to`; release frees what it owns and zeroes it. */
void spill_state_copy(const spill_state_t *from, spill_state_t *to);
void spill_state_clear(spill_state_t *state); /* zero, but for memory, which is kept */
void spill_state_release(spill_state_t *state);

/*
 * Upper bound, in bytes, of the document when rendered (render.h), if its array had `live` elements
 * of `live_bytes` in sum. A head's other fields are counted in (state->fields_bytes); the owner
 * stands twice in a page. The window of operations is counted as if every id were as long as
 * SPILL_OP_ID_MAX allows, only where ids are used (n > 0). O(1).
 */
int64_t spill_state_document_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                   bool head, const spill_state_t *state, int64_t live,
                                   int64_t live_bytes);

/*
 * What an array takes beside its own frame and its values: each has a type, a NUL, and its index in
 * decimal digits. 3 n + max(0, n - 10) + max(0, n - 100) + max(0, n - 1000) + ...
 */
int64_t spill_array_framing(int64_t count);

/*
 * The bound as a sum of terms, for a store whose server has to add it up. With
 * framing(n) = spill_array_framing(n) it is
 *
 *   base + fields_bytes (of a head) + framing(live) + live_bytes
 *        + framing(|gone|) + |gone| * SPILL_NUMBER_BYTES
 *        + framing(o) + o * SPILL_OP_BYTES,   o = max(1, min(n, op_window))
 */
enum {
    SPILL_NUMBER_BYTES = 8, /* the largest form of a number */
    /* An operation: a document of an id of the longest kind (SPILL_OP_ID_MAX) and two numbers. */
    SPILL_OP_BYTES = 5 + (2 + 2 + 5 + 64) + (2 + 5 + 8) + (2 + 5 + 8)
};
int64_t spill_document_base_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                  bool head);

#endif
