/* Reader of a transfer: one owner's elements on one side, in the order of their numbers. */
#ifndef SPILL_TOOLS_TRANSFER_READER_H
#define SPILL_TOOLS_TRANSFER_READER_H

#include "core/array.h"
#include "tools/transfer/transfer.h"

#include <spillway/bucket.h>

/* The elements with numbers in [from, to), ascending, one document at a time. */
typedef struct spill_transfer_reader {
    const spill_transfer_side_t *side;
    const spill_owner_t *owner;
    int64_t to;
    spill_stretch_t stretch;
    size_t at;
    bool ended;
    bool joins;                     /* reads joined windows, with: */
    spill_bucket_slice_t *slice;    /* the elements read last, `at` being an index in it; or NULL */
    int64_t first;                  /* number of its first element */
    int64_t limit;                  /* elements of the next read; 0: the first read */
    char window[SPILL_WINDOW_SIZE]; /* where the first slice begins; "" if not set */
} spill_transfer_reader_t;

/* Begin at `from`. Nothing is read yet. */
spill_transfer_reader_t spill_transfer_reader_of_source(const spill_transfer_owner_t *owner,
                                                        int64_t from, int64_t to);
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

/* Set the owner's end and has, from the source. */
spill_code_t spill_transfer_count_source(spill_transfer_owner_t *owner, spill_error_t *error);
/* Set the owner's base, next and live, from the target. Reads the base first. */
spill_code_t spill_transfer_count_target(spill_transfer_owner_t *owner, spill_error_t *error);

#endif
