/* The events of sockets and loops, for the connections of clients. */
#ifndef SPILL_GATEWAY_RELAY_SERVING_H
#define SPILL_GATEWAY_RELAY_SERVING_H

#include "gateway/relay/loop.h"

/* For spill_loop_new; the loop's context is a spill_gateway_t. Call it once, before any loop. */
const spill_loop_events_t *spill_serving_events(void);

#endif
