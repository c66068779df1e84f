/*
 * The replies to numbered writes, for a server that ignores the numbers although drivers repeat
 * their writes (--present mongos in front of a standalone server). A write repeated within
 * SPILL_RETRY_HORIZON_MS takes effect at most once, if this process still runs. The table has the
 * last write of each session.
 *
 * Threads: any.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_RETRIES_H
#define SPILL_GATEWAY_TRANSLATE_RETRIES_H

#include "gateway/relay/limits.h"

#include <bson/bson.h>

typedef struct spill_retries spill_retries_t;

/* lsid.id, and the digest of the user. */
typedef struct spill_retry_key {
    uint8_t session[16];
    uint8_t user[8];
} spill_retry_key_t;

typedef enum spill_retry {
    SPILL_RETRY_FIRST,    /* carry it out, then call spill_retries_end or spill_retries_forget */
    SPILL_RETRY_REPEATED, /* it was carried out: *reply is the reply */
    SPILL_RETRY_UNKNOWN,  /* it is in progress, or its outcome is unknown */
    SPILL_RETRY_TOO_OLD,  /* the session has made a later write */
    SPILL_RETRY_FULL      /* too many sessions have written lately */
} spill_retry_t;

/* How long an ended write is kept at least. */
#define SPILL_RETRY_HORIZON_MS 120000

#define SPILL_RETRY_SESSIONS_MAX 100000

/* Longer replies are not kept: a repeated write is then answered as one of unknown outcome. */
#define SPILL_RETRY_REPLY_BYTES_MAX 65536

/* The replies count against `limits`. At most `sessions_max` sessions. */
spill_retries_t *spill_retries_new(spill_limits_t *limits, size_t sessions_max);
void spill_retries_free(spill_retries_t *retries); /* NULL is allowed */

/* `now_ms` is of the monotonic clock. *reply is initialized if the result is REPEATED. */
spill_retry_t spill_retries_begin(spill_retries_t *retries, const spill_retry_key_t *key,
                                  int64_t txn, int64_t now_ms, bson_t *reply);

/* The write has ended with this reply; NULL: its outcome is unknown. */
void spill_retries_end(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn,
                       int64_t now_ms, const bson_t *reply);

/* The write has changed nothing that a repetition would change twice. */
void spill_retries_forget(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn,
                          int64_t now_ms);

#endif
