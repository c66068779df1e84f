/* The status page: the gateway's state for people, as one page without scripts and resources. */
#ifndef SPILL_GATEWAY_STATUS_PAGE_H
#define SPILL_GATEWAY_STATUS_PAGE_H

#include "gateway/metrics.h"

/* Append the page as HTML. Any thread. */
void spill_status_page_print(spill_metrics_t *metrics, const spill_metrics_state_t *state,
                             spill_buffer_t *out);

#endif
