/* What the connections of all loops share. */
#ifndef SPILL_GATEWAY_STATE_H
#define SPILL_GATEWAY_STATE_H

#include "gateway/gateway.h"
#include "gateway/metrics.h"
#include "gateway/relay/limits.h"
#include "gateway/translate/retries.h"
#include "gateway/translate/served.h"
#include "gateway/translate/workers.h"

#include <pthread.h>

typedef struct spill_gateway {
    const spill_gateway_options_t *options;
    spill_served_t *served;
    spill_targets_t *targets;
    spill_limits_t *limits;
    spill_workers_t *workers;
    spill_retries_t *retries; /* NULL: the server's own record is relied on */
    spill_metrics_t metrics;
    spill_activity_t *activity;
    int64_t started_us;
    bson_oid_t process;       /* serviceId */
    atomic_int connections;   /* ever accepted: their numbers */
    pthread_mutex_t lock;     /* for what follows */
    spill_tls_context_t *tls; /* NULL: clients connect without TLS */
} spill_gateway_t;

/* What hello announces as maxMessageSizeBytes. */
static inline int32_t spill_gateway_message_bytes_max(const spill_gateway_t *gateway)
{
    return gateway->options->reply_bytes_max > 0
               ? (int32_t)gateway->options->reply_bytes_max
               : spill_targets_message_bytes_max(gateway->targets);
}

#endif
