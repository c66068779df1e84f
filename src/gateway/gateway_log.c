/* Lines of JSON on stderr. */
#include "gateway/gateway_log.h"

#include "util/clock.h"

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

/* "2026-11-24T09:30:00.123Z" */
static void format_time(char *text, size_t size)
{
    int64_t now_us = spill_clock_now_us(NULL);
    time_t seconds = (time_t)(now_us / 1000000);
    struct tm parts;
    char day[32];
    gmtime_r(&seconds, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, size, "%s.%03dZ", day, (int)(now_us / 1000 % 1000));
}

static atomic_int_fast64_t lost; /* lines */

int64_t spill_gateway_log_lost(void)
{
    return atomic_load(&lost);
}

void spill_gateway_log(const char *event, bson_t *fields)
{
    char now[48];
    bson_t line = BSON_INITIALIZER;
    format_time(now, sizeof now);
    BSON_APPEND_UTF8(&line, "t", now);
    BSON_APPEND_UTF8(&line, "event", event);
    if (fields)
        bson_concat(&line, fields);
    char *json = bson_as_relaxed_extended_json(&line, NULL);
    if (json && fprintf(stderr, "%s\n", json) < 0)
        atomic_fetch_add(&lost, 1);
    bson_free(json);
    bson_destroy(&line);
    bson_destroy(fields);
}
