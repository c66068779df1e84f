/*
 * The gateway's own cursors: of reads on served collections that have more than one batch. Each has
 * the cursor of upstream and what the last batch left over.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_CURSORS_H
#define SPILL_GATEWAY_TRANSLATE_CURSORS_H

#include "gateway/translate/asked.h"

#include "util/buffer.h"

#define SPILL_CURSORS_MAX 1000
#define SPILL_CURSORS_BYTES_MAX (64 * 1024 * 1024) /* of left-over documents */
#define SPILL_CURSOR_IDLE_SECONDS 600

typedef struct spill_read_cursor {
    int64_t id;       /* random; 0: not in the table */
    int64_t upstream; /* 0: upstream has no more documents */
    uint8_t user[8];
    const spill_served_collection_t *at;
    spill_asked_t asked;
    spill_buffer_t pending; /* upstream's documents that the client has not got yet */
    size_t pending_at;      /* the first of them */
    int64_t used;           /* seconds of the monotonic clock */
} spill_read_cursor_t;

typedef struct spill_cursors spill_cursors_t;

spill_cursors_t *spill_cursors_new(void);
void spill_cursors_free(spill_cursors_t *cursors); /* NULL is allowed */

spill_read_cursor_t *spill_read_cursor_new(const spill_served_collection_t *at,
                                           const uint8_t user[8]);
void spill_read_cursor_free(spill_read_cursor_t *cursor); /* NULL is allowed */

/*
 * Keep the cursor under its id; a new one gets an id. Idle cursors are removed first. False: a
 * limit is reached, and the caller keeps the cursor. Any thread.
 */
bool spill_cursors_put(spill_cursors_t *cursors, spill_read_cursor_t *cursor);

/* Take the cursor out of the table; NULL: there is none of this user. Any thread. */
spill_read_cursor_t *spill_cursors_take(spill_cursors_t *cursors, int64_t id,
                                        const uint8_t user[8]);

#endif
