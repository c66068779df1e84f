/*
 * Parts of a transfer of one owner: the reader of each side, the writer to the target, and the
 * comparison of both. Only the files of this folder use them.
 */
#ifndef SPILL_TOOLS_TRANSFER_TRANSFER_PARTS_H
#define SPILL_TOOLS_TRANSFER_TRANSFER_PARTS_H

#include "core/array.h"
#include "tools/transfer/transfer.h"
#include "util/buffer.h"

#include <spillway/bucket.h>

/* ---- what all files use (sides.c) ------------------------------------------------------------ */

/* The target is capped with keep newest; it keeps the elements of the highest rank. */
bool spill_transfer_is_capped(const spill_transfer_t *transfer);
bool spill_transfer_keeps_top_n(const spill_transfer_t *transfer);

/* Put the side in front of an error's message. */
spill_code_t spill_transfer_failed(const spill_transfer_side_t *side, spill_code_t code,
                                   spill_error_t *error);

/* Call options->turn before a change of the target. */
spill_code_t spill_transfer_wait(const spill_transfer_t *transfer, int64_t elements,
                                 spill_error_t *error);

/* Count a difference, and store it if it is the owner's first. `text` is static. */
void spill_transfer_differs(spill_transfer_owner_t *owner, int64_t seq, const char *text);
/* The same, for a target that has more than the source. */
void spill_transfer_differs_ahead(spill_transfer_owner_t *owner, int64_t seq, const char *text);

/* Count a difference if a drop of the target has begun: the next append or repair there deletes its
 * elements. `target` is the owner there, or one of its windows. */
spill_code_t spill_transfer_check_dropped(spill_transfer_owner_t *owner,
                                          const spill_owner_t *target, spill_error_t *error);

/* ---- elements that the target cannot store (storable.c) -------------------------------------- */

/* Report whether the target may refuse elements of the source. */
bool spill_transfer_may_refuse(const spill_transfer_t *transfer);

/*
 * Refuse an owner with an element that the target cannot store, before any element is appended.
 * Cost: reads the source's elements in [next, end), if the target may refuse any.
 */
spill_code_t spill_transfer_check_missing(spill_transfer_owner_t *owner, spill_error_t *error);

/* ---- the missing elements of the source, read once (kept.c) ---------------------------------- */

/* May the source's elements be kept? Not those of windows or caps, of which a copy lacks some. */
bool spill_transfer_keeps_elements(const spill_transfer_t *transfer);

/*
 * Keep the source's elements with numbers in [next, end), as they are read: begin, one call for
 * each, end. More than 4 MiB are not kept.
 */
void spill_transfer_keep_begin(spill_transfer_owner_t *owner);
void spill_transfer_keep(spill_transfer_owner_t *owner, const spill_element_t *element);
void spill_transfer_keep_end(spill_transfer_owner_t *owner);
void spill_transfer_keep_release(spill_transfer_owner_t *owner);

/* The kept elements, if they are those in [from, to); *at is the first index. NULL: read them. */
const spill_run_t *spill_transfer_kept_run(const spill_transfer_owner_t *owner, int64_t from,
                                           int64_t to, size_t *at);

/*
 * Forget the kept elements if the rev of the source's head has changed since. An edit in a page, or
 * by another program, does not change it. It counts as an edit after the comparison, which the next
 * comparison finds. Cost: one read, if elements are kept.
 */
spill_code_t spill_transfer_keep_check(spill_transfer_owner_t *owner, spill_error_t *error);

/* ---- the steps for one owner, which spill_transfer_one chooses from -------------------------- */

/* Does an owner keep its other fields? Windows have none; in-place builds leave them. */
bool spill_transfer_copies_fields(const spill_transfer_t *transfer);

/*
 * Append to `update` {$set: ...} of the source's other fields that the target lacks or has with
 * other values; each may be NULL. Fields that cannot be set count as differences. False: there are
 * none. (transfer_owner.c)
 */
bool spill_transfer_fields_update(spill_transfer_owner_t *owner, const bson_t *source,
                                  const bson_t *target, bson_t *update);

/* Copy fields and elements to an owner of the target, and compare them. (transfer_owner.c) */
spill_code_t spill_transfer_to_array(spill_transfer_owner_t *owner, spill_error_t *error);

/* Copy an owner's elements, each to its window, and compare all of them. (transfer_windows.c) */
spill_code_t spill_transfer_to_windows(spill_transfer_owner_t *owner, spill_error_t *error);

/* ---- a capped target with keep newest (transfer_capped.c) ------------------------------------ */

/* Set cap_low, cap_room and cap_from from both arrays. Reads the elements that the cap keeps. */
spill_code_t spill_transfer_cap_read(spill_transfer_owner_t *owner, spill_error_t *error);

/*
 * Trim elements that the cap will not keep, and give the numbers up to the first that it keeps; set
 * next, live and base again. SPILL_CONFLICT: something was appended meanwhile.
 */
spill_code_t spill_transfer_cap_begin(spill_transfer_owner_t *owner, spill_error_t *error);

/*
 * Set *from to the first number that the target must have. Count a difference if the element before
 * it should be there too: the cap and the bytes have room for one more.
 */
spill_code_t spill_transfer_cap_check(spill_transfer_owner_t *owner, int64_t *from,
                                      spill_error_t *error);

/* ---- reader: one owner's elements on one side (sides.c) -------------------------------------- */

/* The elements with numbers in [from, to), ascending, one document at a time. */
typedef struct spill_transfer_reader {
    const spill_transfer_side_t *side;
    const spill_owner_t *owner;
    int64_t to;
    spill_stretch_t stretch;
    const spill_run_t *kept; /* not NULL: the elements, of which nothing needs to be read */
    size_t at;
    bool ended;
    bool joins;                     /* reads joined windows, with: */
    spill_bucket_slice_t *slice;    /* the elements read last, `at` being an index in it; or NULL */
    int64_t first;                  /* number of its first element */
    int64_t limit;                  /* elements of the next read; 0: the first read */
    char window[SPILL_WINDOW_SIZE]; /* where the first slice begins; "" if not set */
} spill_transfer_reader_t;

/*
 * Begin at `from`. Nothing is read yet. After a count of the source, its first reader begins with
 * the head that was counted.
 */
spill_transfer_reader_t spill_transfer_reader_of_source(spill_transfer_owner_t *owner, int64_t from,
                                                        int64_t to);
spill_transfer_reader_t spill_transfer_reader_of_target(const spill_transfer_owner_t *owner,
                                                        int64_t from, int64_t to);
void spill_transfer_reader_release(spill_transfer_reader_t *reader);

/*
 * Get the element at the reader; at the end, set reader->ended. The element is borrowed until the
 * call after the next move of the reader (reader->at++).
 */
spill_code_t spill_transfer_reader_get(spill_transfer_reader_t *reader, spill_element_t *element,
                                       spill_error_t *error);

/* Read the whole head now, as one moment has it: a target that keeps the top N has nothing else. */
spill_code_t spill_transfer_reader_fetch_head(spill_transfer_reader_t *reader,
                                              spill_error_t *error);

/*
 * A read of several documents at once begins with few elements. Each later read has as many as the
 * sizes of the last ones allow, so that large elements do not fill the memory.
 */
enum { SPILL_TRANSFER_FIRST_READ = 4 };
int64_t spill_transfer_next_limit(int64_t limit, size_t count, int64_t bytes);

/* Set the owner's end, has, source_incarnation and source_rev, from the source. */
spill_code_t spill_transfer_count_source(spill_transfer_owner_t *owner, spill_error_t *error);
/* Set the owner's base, next and live, from the target. Reads the base first. */
spill_code_t spill_transfer_count_target(spill_transfer_owner_t *owner, spill_error_t *error);

/* ---- writer ---------------------------------------------------------------------------------- */

/*
 * Writer of a transfer: appends elements to one owner of the target, each at most once, and gives
 * every element the number that it has in the source.
 *
 * A batch is one atomic append, or with keep oldest one append for each document that it fills. The
 * operation id of an append consists of its first number alone. So of all appends that begin at a
 * number, at most one is applied: of this transfer, of an earlier one that was killed while a
 * request was in progress, or of a concurrent one. The base is read before the target's next
 * number, so no operation that begins at that number was applied at that time.
 *
 * A number without an element in the source gets a placeholder, which is removed before the next
 * batch.
 */

/* Most elements of a batch. An unfinished transfer leaves placeholders only among the last numbers,
 * at most this many. */
#define SPILL_TRANSFER_BATCH 1000

/* The operation id of an append: this, and the number of its first element. */
#define SPILL_TRANSFER_OP_PREFIX "spillway-copy:"

typedef struct spill_transfer_batch {
    int64_t first; /* the first number that it gives in the target */
    int64_t skip;  /* top-N target: numbers to skip before its first element */
    size_t count;
    size_t placeholders;
    spill_buffer_t bytes;
    spill_value_t values[SPILL_TRANSFER_BATCH];
    size_t offsets[SPILL_TRANSFER_BATCH]; /* of the values in `bytes` */
    bool gaps[SPILL_TRANSFER_BATCH];      /* true for placeholders */
} spill_transfer_batch_t;

/* A batch that begins at a number of the target. Free it with spill_transfer_batch_free. */
spill_transfer_batch_t *spill_transfer_batch_new(int64_t first);
void spill_transfer_batch_free(spill_transfer_batch_t **batch);

/* Report whether one more value fits, for any target. */
bool spill_transfer_batch_is_short(const spill_transfer_batch_t *batch, const spill_value_t *value);
/* Copies the value's bytes. */
void spill_transfer_batch_add(spill_transfer_batch_t *batch, const spill_value_t *value, bool gap);
/* Make the values point to their bytes; call it after the last add. */
void spill_transfer_batch_finish(spill_transfer_batch_t *batch);

/* Add a value to the batch. If it does not fit, append the batch first. */
spill_code_t spill_transfer_push(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                 const spill_value_t *value, bool gap, spill_error_t *error);

/* Append placeholders, or with a top-N target skip the numbers, from `next` up to `end`. */
spill_code_t spill_transfer_push_gap(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                     int64_t next, int64_t end, spill_error_t *error);

/* Append the batch, at most once; the empty batch then begins behind it. */
spill_code_t spill_transfer_flush(spill_transfer_owner_t *owner, spill_transfer_batch_t *batch,
                                  spill_error_t *error);

/* Capped target without elements: give the numbers from its next one up to `to`. */
spill_code_t spill_transfer_skip(spill_transfer_owner_t *owner, int64_t to, spill_error_t *error);

/* A placeholder is MinKey, a type that applications do not store, or a document with it. */
bool spill_transfer_is_placeholder(const spill_value_t *value);

/* Remove a placeholder, if it was not removed already. */
spill_code_t spill_transfer_remove(const spill_transfer_owner_t *owner, int64_t seq,
                                   spill_error_t *error);

/* ---- comparison: both sides of one owner, element by element --------------------------------- */

/*
 * Compare the numbers in [from, to). Remove placeholders that an unfinished transfer has left in
 * the target, and elements that a capped source has dropped since they were copied. Add the number
 * of equal elements to *equal (may be NULL). If the target keeps the top N, a missing element is a
 * difference only if it ranks above an element of the target or if the target has room for it.
 * While cap_begins, an element below cap_from that was trimmed after cap_low was read is no
 * difference.
 */
spill_code_t spill_transfer_compare(spill_transfer_owner_t *owner, int64_t from, int64_t to,
                                    int64_t *equal, spill_error_t *error);

/* Would the target's head, which keeps at most `room` elements, keep one more of this size? */
bool spill_transfer_holds_one_more(const spill_transfer_owner_t *owner, const spill_state_t *head,
                                   int64_t room, int64_t bytes);

#endif
