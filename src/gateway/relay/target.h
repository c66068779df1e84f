/*
 * The target of the upstream connections: the primary, its addresses and its hello. A thread
 * of its own renews them each second, and soon after an upstream connection has failed.
 */
#ifndef SPILL_GATEWAY_RELAY_TARGET_H
#define SPILL_GATEWAY_RELAY_TARGET_H

#include "gateway/relay/tls.h"
#include "store/upstream.h"

#include <stdatomic.h>
#include <sys/socket.h>

#define SPILL_TARGET_ADDRESSES_MAX 4

/* It never changes; a new one replaces it. */
typedef struct spill_target {
    atomic_int references;
    int64_t generation; /* higher after each change of the host */
    spill_upstream_primary_t primary;
    struct sockaddr_storage addresses[SPILL_TARGET_ADDRESSES_MAX];
    size_t address_count;
    int32_t message_bytes_max; /* maxMessageSizeBytes of its hello */
} spill_target_t;

typedef struct spill_targets spill_targets_t;

/*
 * Connect to the server of the URI, and find its primary. Free it in every case. Fails as the
 * opening of a store.
 */
spill_code_t spill_targets_open(const char *uri, spill_targets_t **targets, spill_error_t *error);

/* Stop the thread. It waits for a round trip, or for the server's selection. */
void spill_targets_free(spill_targets_t *targets); /* NULL is allowed */

/* The current one, or the last one if no primary is known now; give it back. Any thread. */
spill_target_t *spill_targets_get(spill_targets_t *targets);
void spill_target_release(spill_target_t *target); /* NULL is allowed */

/* The generation of the current one. Any thread; no lock. */
int64_t spill_targets_generation(const spill_targets_t *targets);

/* maxMessageSizeBytes of the current one. Any thread; no lock. */
int32_t spill_targets_message_bytes_max(const spill_targets_t *targets);

/* Is the current one a standalone server? Any thread; no lock. */
bool spill_targets_standalone(const spill_targets_t *targets);

/* Was there a primary at the last look? Any thread; no lock. */
bool spill_targets_known(const spill_targets_t *targets);

/* An upstream connection failed: look for the primary soon. Any thread. */
void spill_targets_renew(spill_targets_t *targets);

/* NULL: the server is reached without TLS. */
const spill_tls_context_t *spill_targets_tls(const spill_targets_t *targets);
const char *spill_targets_place(const spill_targets_t *targets);
const char *spill_targets_database(const spill_targets_t *targets);

#endif
