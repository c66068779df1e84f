#include "gateway/slow.h"

#include "gateway/gateway_log.h"
#include "gateway/relay/classify.h"
#include "gateway/translate/translate.h"
#include "util/clock.h"

#include <stdio.h>

void spill_slow_begin(spill_slow_t **slow, int64_t slow_ms, const char *name, const char *database,
                      const char *collection)
{
    if (slow_ms <= 0)
        return;
    if (*slow == NULL)
        *slow = bson_malloc0(sizeof **slow);
    bool known = spill_command_kind(name) != SPILL_COMMAND_OTHER;
    snprintf((*slow)->command, sizeof(*slow)->command, "%s", known ? name : "other");
    snprintf((*slow)->ns, sizeof(*slow)->ns, "%s%s%s", database,
             known && collection != NULL ? "." : "", known && collection != NULL ? collection : "");
    (*slow)->began_us = spill_clock_monotonic_us(NULL);
}

void spill_slow_end(spill_slow_t *slow, int64_t slow_ms, spill_metrics_class_t class)
{
    if (slow == NULL || slow->began_us == 0)
        return;
    int64_t took_ms = (spill_clock_monotonic_us(NULL) - slow->began_us) / 1000;
    slow->began_us = 0;
    if (took_ms >= slow_ms)
        spill_gateway_log("slow",
                          BCON_NEW("command", BCON_UTF8(slow->command), "ns", BCON_UTF8(slow->ns),
                                   "class", BCON_UTF8(spill_metrics_class_name(class)), "ms",
                                   BCON_INT64(took_ms)));
}
