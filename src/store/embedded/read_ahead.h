/*
 * Read-ahead for work on a whole store. A span holds the records of consecutive owners in memory.
 * One iterator fills it in key order, so a pass over many owners makes no seek and no point read
 * for each of them. Reads of an owner are answered from a span only if no change of the owner
 * began since the span was filled. So no reader gets old data (docs/internals/read-ahead.md).
 *
 *   span.c         a span: fill it, list its owners, read the records of one of them
 *   read_ahead.c   the spans of passes: listings fill them, READs and checks use them; changes
 */
#ifndef SPILL_STORE_EMBEDDED_READ_AHEAD_H
#define SPILL_STORE_EMBEDDED_READ_AHEAD_H

#include "store/embedded/embedded_codec.h"
#include "store/embedded/kv.h"
#include "store/request.h"

#include <stdatomic.h>

/*
 * A span holds at most SPILL_SPAN_BYTES of an array's records, and as many of other fields. It
 * begins with SPILL_SPAN_BYTES_MIN, and grows while owners fit into it.
 */
enum { SPILL_SPAN_BYTES_MIN = 64 * 1024, SPILL_SPAN_BYTES = 512 * 1024 };

/* ---- span.c ---------------------------------------------------------------------------------- */

/* Offsets in the span's bytes. */
typedef struct spill_span_record {
    uint32_t key, key_bytes;
    uint32_t value, value_bytes;
} spill_span_record_t;

/* The owner's key is in the key of its first record, between the array's id and the suffix. */
typedef struct spill_span_owner {
    uint32_t first, count; /* its array's records */
    uint32_t key_bytes;    /* of the owner's key */
    bool has_head;
    bool has_fields;
    spill_span_record_t fields; /* its other fields, if has_fields */
} spill_span_owner_t;

/* The records of consecutive owners. All of an owner's records are in it, or none. */
typedef struct spill_span {
    spill_buffer_t bytes;
    spill_span_record_t *records;
    size_t record_count, record_capacity;
    spill_span_owner_t *owners;
    size_t owner_count, owner_capacity;
    size_t bytes_most; /* for the next fill */
    bool ends;         /* no owner of the array follows */
} spill_span_t;

/* What to fill a span with. */
typedef struct spill_span_range {
    uint32_t array_id;
    uint32_t collection_id; /* of the other fields; 0: without them */
    const uint8_t *after;   /* begin behind this owner key; no bytes: at the first owner */
    size_t after_bytes;
    size_t heads_max;         /* end behind this number of owners with heads */
    size_t owner_records_max; /* end before an owner with more records; 0: any number */
} spill_span_range_t;

/*
 * Replace the span's content by records of one moment. It ends before an owner that does not fit,
 * and before the first record that the engine cannot read. So it may have no owner although one
 * follows: read that one from the engine.
 */
void spill_span_fill(spill_span_t *span, spill_kv_t *kv, const spill_span_range_t *range);
void spill_span_release(spill_span_t *span);

const uint8_t *spill_span_owner_key(const spill_span_t *span, const spill_span_owner_t *owner);

/*
 * One owner's records as an engine for `get` and `iterate`: the records of its array, and its other
 * fields. It answers for keys of this owner only. It has one iterator. Freeing that has no effect.
 */
typedef struct spill_owner_records spill_owner_records_t;

typedef struct spill_owner_iter {
    spill_kv_iter_t base;
    const spill_owner_records_t *of;
    size_t at; /* its place among the owner's records; their number: at the other fields */
} spill_owner_iter_t;

struct spill_owner_records {
    spill_kv_t base;
    const spill_span_t *span;
    const spill_span_owner_t *owner;
    spill_owner_iter_t iter;
};

spill_kv_t *spill_owner_records_open(spill_owner_records_t *records, const spill_span_t *span,
                                     const spill_span_owner_t *owner);

/* ---- read_ahead.c ---------------------------------------------------------------------------- */

/* Passes with a span at a time; another pass reads the engine. */
enum { SPILL_PASSES_MAX = 4 };

typedef struct spill_read_ahead spill_read_ahead_t;

spill_read_ahead_t *spill_read_ahead_new(spill_kv_t *kv);
void spill_read_ahead_free(spill_read_ahead_t *ahead);

/*
 * For a listing of owners, which their reads follow: the pass of this thread that continues behind
 * range->after, or a new one. NULL: list from the engine. The thread fills the pass's span as
 * often as it needs, and closes the pass with the key of the last owner that it listed. Without
 * one, the pass has ended, and its memory is freed.
 */
typedef struct spill_pass spill_pass_t;
spill_pass_t *spill_pass_open(spill_read_ahead_t *ahead, const spill_span_range_t *range);
const spill_span_t *spill_pass_fill(spill_pass_t *pass, const spill_span_range_t *range);
void spill_pass_close(spill_pass_t *pass, const uint8_t *last, size_t last_bytes);

/*
 * If a span has the owner, and no change of the owner began since it was filled, return the
 * owner's records. `owner` is a key with the array's id. Release the hold in the same thread. Until
 * then, other threads read this pass's owners from the engine. NULL: read the engine.
 */
typedef struct spill_hold {
    spill_pass_t *pass;
    spill_owner_records_t records;
} spill_hold_t;
spill_kv_t *spill_read_ahead_hold(spill_read_ahead_t *ahead, const spill_record_key_t *owner,
                                  spill_hold_t *hold);
void spill_hold_release(spill_hold_t *hold);

/*
 * Owners that the leader need not read: absent ones, without a head in the array and without other
 * fields in the collection, and ones with a small head. An import reads the bases of many owners
 * before it appends to the first. At most SPILL_KNOWN_MAX owners are known, with keys of at most
 * SPILL_KNOWN_KEY_MAX bytes; they use no memory before the first one.
 *
 *   reader   note = spill_known_note(...); read the engine; spill_known_add
 *   leader   spill_known_find; a change of an owner removes it (spill_read_ahead_begin)
 */
enum { SPILL_KNOWN_MAX = 64 * 1024, SPILL_KNOWN_KEY_MAX = 47, SPILL_KNOWN_HEAD_MAX = 40 };

typedef enum spill_known {
    SPILL_KNOWN_NOT,
    SPILL_KNOWN_ABSENT,
    SPILL_KNOWN_HEAD /* its record was appended to `head` */
} spill_known_t;

/* The last batch that the reader's engine certainly has. */
int64_t spill_known_note(spill_read_ahead_t *ahead);

/* `head`: the record of the owner's head; NULL: the owner is absent. */
void spill_known_add(spill_read_ahead_t *ahead, const spill_request_t *request, const void *head,
                     size_t head_bytes, int64_t note);

/* `key`: the id of an array or of a collection, and the owner's key. A collection has no heads. */
spill_known_t spill_known_find(spill_read_ahead_t *ahead, const uint8_t *key, size_t key_bytes,
                               spill_buffer_t *head);

/* The leader calls these before and after it writes a batch; `code` is the result of the write. */
void spill_read_ahead_begin(spill_read_ahead_t *ahead, const spill_batch_t *batch);
void spill_read_ahead_end(spill_read_ahead_t *ahead, const spill_batch_t *batch, spill_code_t code);

#endif
