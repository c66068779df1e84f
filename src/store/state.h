/*
 * The state of one document (a head or a page), without its elements. Each store has its own form
 * of it; the transitions of transition.h work on this one.
 *
 * Sequence numbers in a document: its slots are first, first + 1, ... first + slots - 1, with slots
 * = live + |deleted|. The i-th element of the array has the i-th number that is not in `deleted`.
 */
#ifndef SPILL_STORE_STATE_H
#define SPILL_STORE_STATE_H

#include "store/summary.h"
#include "util/buffer.h"

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

/* A sorted set of sequence numbers, stored as runs: its memory is O(runs). Zeroed: empty. */
typedef struct spill_seqs {
    spill_seq_run_t *runs; /* ascending; adjacent runs are merged */
    size_t run_count;
    size_t capacity;
    size_t count; /* numbers in all of them */
} spill_seqs_t;

bool spill_seqs_contains(const spill_seqs_t *seqs, int64_t seq);
bool spill_seqs_equal(const spill_seqs_t *left, const spill_seqs_t *right);
void spill_seqs_insert(spill_seqs_t *seqs, int64_t seq); /* no effect if it is in the set */
/* Insert all numbers in [first, end). */
void spill_seqs_insert_run(spill_seqs_t *seqs, int64_t first, int64_t end);
size_t spill_seqs_count_below(const spill_seqs_t *seqs, int64_t seq);
/* The number itself if it is not in the set, else the next higher (or lower) one that is not. */
int64_t spill_seqs_pass(const spill_seqs_t *seqs, int64_t seq);
int64_t spill_seqs_pass_down(const spill_seqs_t *seqs, int64_t seq);
/* The number, not in the set, with `passed` other numbers not in the set between `from` and it. */
int64_t spill_seqs_absent(const spill_seqs_t *seqs, int64_t from, int64_t passed);
void spill_seqs_clear(spill_seqs_t *seqs);                        /* empty, memory kept */
void spill_seqs_drop_below(spill_seqs_t *seqs, int64_t seq);      /* remove numbers < seq */
void spill_seqs_keep_below(spill_seqs_t *seqs, int64_t seq);      /* remove numbers >= seq */
void spill_seqs_copy(const spill_seqs_t *from, spill_seqs_t *to); /* `to` is empty or zeroed */
void spill_seqs_release(spill_seqs_t *seqs);

typedef struct spill_state {
    /* Every document. */
    bool present;
    int64_t incarnation; /* the owner's incarnation: when its head was made; pages carry it */
    int64_t rev;         /* starts at incarnation; the table in request.h has when it is raised */
    int64_t first;       /* sequence number of the first slot */
    int64_t live;        /* elements in the array */
    int64_t live_bytes;  /* sum of their value sizes */
    bool gaps;           /* top-N capped: `deleted` is stored as runs, because it is long */
    int64_t op_count;    /* appends that carried an operation id, so far */
    bool sealed;         /* keep oldest: accepts no appends */
    bool closed;         /* keep oldest: sealed, and no page follows: the owner is being dropped */
    spill_window_stats_t window_stats; /* layout bucket */

    /* Heads. */
    int64_t pages; /* pages that the array has */
    /*
     * How many numbers from the watermark on were deleted. Keep newest: only those below `first`,
     * whether in a page or in a leading run that the head dropped. Keep oldest: all, also the
     * head's own. So the live elements of the whole array are:
     *   keep newest: (first - watermark - removed) + live
     *   keep oldest: (end of the last page or head) - watermark - removed
     */
    int64_t removed;
    int64_t watermark;    /* all numbers below were trimmed */
    int64_t total;        /* keep oldest: numbers ever given, as of the last ADVANCE or SEAL */
    int64_t fields_bytes; /* size of the document of the other fields, _id included */
    bool intent;          /* a removal (or edit) of an element in a page has begun: */
    int64_t intent_seq;   /* the element */
    int64_t intent_page;
    bool intent_edit;          /* referenced elements: it is an edit */
    int64_t intent_source_rev; /* an edit: source_rev of its PUT_PAGE */
    spill_sum_t intent_value;  /* an edit: what it has added to the sum */
    spill_sum_t sum;           /* referenced elements: of all counted elements */

    /* Pages. */
    int64_t page;       /* 0-based number */
    int64_t source_rev; /* the head's rev when this content was copied from it */
    /*
     * A page that was written before its head: until this time, by the store's clock, no one
     * replaces or deletes it. 0: no lease. If the page is closed, its writer has abandoned it.
     */
    int64_t lease;

    /* What the state owns: the last members, because spill_state_clear keeps their memory. */
    spill_seqs_t deleted; /* removed numbers among the slots */
    /* Embedded store: the newest operations, up to op_count - 1, as in op_records.h. */
    spill_buffer_t newest_ops;
    /*
     * Layout subset: the highest-ranked of all counted elements, at most top_count. While an edit
     * is under way, its element ranks as before the edit.
     */
    spill_top_t top;
} spill_state_t;

/* live + |deleted| */
int64_t spill_state_slots(const spill_state_t *state);

/*
 * The number that slots_max bounds: the document's slots; capped: its live elements. The deleted
 * numbers of a capped head are bounded by bytes_max alone.
 */
int64_t spill_state_bounded(const spill_definition_t *definition, const spill_state_t *state);

/* first + slots: the number after the last slot. */
int64_t spill_state_end(const spill_state_t *state);

/*
 * Another program may have replaced the array by a shorter one. Then the highest deleted numbers
 * are no longer among the slots: they are strays. An append to such a document would get another
 * number than its element has. Remove them from the set; false: there are none. O(runs).
 */
bool spill_state_drop_strays(spill_state_t *state);

/* How many live elements of the document are older than element `seq`. O(log |deleted|). */
int64_t spill_state_rank(const spill_state_t *state, int64_t seq);
/* The live elements of the whole array, according to the head. Exact with keep newest. */
int64_t spill_state_count(const spill_definition_t *definition, const spill_state_t *head);

/* Deep copy into an empty or zeroed `to`; release frees what it owns and zeroes it. */
void spill_state_copy(const spill_state_t *from, spill_state_t *to);
void spill_state_clear(spill_state_t *state); /* zero it; keep its memory */
void spill_state_release(spill_state_t *state);

/*
 * Upper bound, in bytes, of the rendered document (render.h), if its array has `live` elements of
 * together `live_bytes`. It includes a head's other fields (state->fields_bytes). A page has the
 * owner twice. Each operation in the window counts with SPILL_OP_ID_MAX bytes for its id, if there
 * are operations at all (op_count > 0). O(1).
 */
int64_t spill_state_document_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                   bool head, const spill_state_t *state, int64_t live,
                                   int64_t live_bytes);

/*
 * Bytes of an array of n values besides its frame and the values: each value has a type, a NUL and
 * its index in decimal digits. 3 n + max(0, n - 10) + max(0, n - 100) + max(0, n - 1000) + ...
 */
int64_t spill_array_framing(int64_t count);

/*
 * The bound as a sum of terms, for a store whose server has to compute it. With
 * framing(n) = spill_array_framing(n) it is
 *
 *   base + fields_bytes (of a head) + framing(live) + live_bytes
 *        + framing(|deleted|) + |deleted| * SPILL_NUMBER_BYTES
 *        + framing(o) + o * SPILL_OP_BYTES,   o = max(1, min(op_count, op_window))
 */
enum {
    SPILL_NUMBER_BYTES = 8, /* the longest encoding of a number */
    /* An operation: a document with an id of SPILL_OP_ID_MAX bytes and two numbers. */
    SPILL_OP_BYTES = 5 + (2 + 2 + 5 + 64) + (2 + 5 + 8) + (2 + 5 + 8)
};
int64_t spill_document_base_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                                  bool head);

#endif
