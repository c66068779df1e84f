/*
 * Find documents again behind damage, in time that is linear in the bytes that are passed over.
 *
 * A document's fields form a chain: each field's type, name and length give the place of the next
 * one. The chain from a place does not depend on the document that the place lies in, and it ends
 * at the first byte that begins no field. So a document of `length` bytes is whole if and only if
 * the chain from its first field ends at its last byte, and that byte is 0.
 *
 * Bytes that only look like documents begin many chains, which soon run into each other. For each
 * place that a chain has passed, the search remembers a later place of the same chain, as a
 * union-find structure does. It measures each field once, however many candidates contain the
 * field.
 *
 * What is remembered is bounded (PLACES_MAX in resync.c), and so is the work: passing a byte earns
 * SPILL_RESYNC_CREDIT steps. Without credit a candidate counts as no document. Only input that was
 * made for this purpose uses up the credit.
 */
#ifndef SPILL_TOOLS_SCAN_RESYNC_H
#define SPILL_TOOLS_SCAN_RESYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A longer document is skipped: no database of the family stores one. */
#define SPILL_SCAN_DOCUMENT_BYTES_MAX (24 * 1024 * 1024)

enum { SPILL_RESYNC_CREDIT = 2 };

typedef struct spill_resync spill_resync_t;

/* Bytes of the input that are in memory. */
typedef struct spill_resync_view {
    const uint8_t *data;
    size_t size;
    int64_t offset; /* of data[0] in the input */
    bool ended;     /* the input has no bytes behind these */
    bool ids;       /* all documents so far began with their _id */
} spill_resync_view_t;

typedef enum spill_sight {
    SPILL_SIGHT_NO,
    SPILL_SIGHT_YES,
    SPILL_SIGHT_CANNOT_TELL /* more bytes are needed */
} spill_sight_t;

/* One thread's. NULL may be freed. */
spill_resync_t *spill_resync_new(void);
void spill_resync_free(spill_resync_t *resync);

/* Can a document begin here, by its length and the type of its first field? `size`: bytes in
 * memory. */
bool spill_resync_header(const uint8_t *data, size_t size);

/* Does a document with _id as its first field begin here, and another one where it ends? O(1). */
bool spill_resync_two(const uint8_t *data, size_t size);

/*
 * Do the fields of the document of `length` bytes at data[at] end where the document ends? The
 * contents of nested documents are not checked. *passed: how far the fields go, as an index.
 * O(fields), and nothing is remembered.
 */
bool spill_resync_fits(const spill_resync_view_t *view, size_t at, size_t length, size_t *passed);

/* The same answer, from what is remembered as far as possible. */
bool spill_resync_whole(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                        size_t length);

/*
 * Does a document begin at data[at]? One that is whole, and is followed by another whole one or by
 * the end of the input. With view->ids the first field of one of the two has to be _id. *wanted: if
 * more bytes are needed, their number from `at` on.
 */
spill_sight_t spill_resync_look(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                                size_t *wanted);

/*
 * Move *at on to the first place where spill_resync_look sees a document, and return YES; NO at the
 * end of the input; CANNOT_TELL if `wanted` bytes from *at on are needed, or after a part of the
 * input (then *wanted is 0): poll for an interrupt, and call again.
 */
spill_sight_t spill_resync_find(spill_resync_t *resync, const spill_resync_view_t *view, size_t *at,
                                size_t *wanted);

/* Steps so far: fields measured, places followed, and bytes of long names. */
int64_t spill_resync_work(const spill_resync_t *resync);

#endif
