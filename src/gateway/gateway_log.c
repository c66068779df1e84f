/* Lines of JSON on stderr. */
#include "gateway/gateway_log.h"

#include "util/clock.h"

#include <errno.h>
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

static spill_lost_lines_t losses = {.path = "stderr"};
static atomic_int_fast64_t missing; /* lines */

const spill_lost_lines_t *spill_gateway_lost_lines(void)
{
    return &losses;
}

/* A line as JSON, without its end; NULL: JSON cannot express it. Free it with bson_free. */
static char *line_text(const char *event, const bson_t *fields)
{
    char now[48];
    bson_t line = BSON_INITIALIZER;
    format_time(now, sizeof now);
    BSON_APPEND_UTF8(&line, "t", now);
    BSON_APPEND_UTF8(&line, "event", event);
    if (fields)
        bson_concat(&line, fields);
    char *json = bson_as_relaxed_extended_json(&line, NULL);
    bson_destroy(&line);
    return json;
}

/*
 * A line with a field that is no UTF-8, as a client's command may be, is written without its
 * fields. Returns 0 or the error number.
 */
static int write_line(const char *event, const bson_t *fields)
{
    char *json = line_text(event, fields);
    if (!json)
        json = line_text(event, NULL);
    int problem = json && fprintf(stderr, "%s\n", json) < 0 ? errno : 0;
    bson_free(json);
    return problem;
}

char *spill_gateway_log_message(const char *text)
{
    if (text[0] == '{')
        return NULL;
    bson_t fields = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&fields, "text", text);
    char *json = line_text("message", &fields);
    bson_destroy(&fields);
    return json;
}

/* Before a line, count those that are missing since the last one that was written. */
static int write_gap(void)
{
    int64_t count = atomic_exchange(&missing, 0);
    if (count == 0)
        return 0;
    bson_t fields = BSON_INITIALIZER;
    BSON_APPEND_INT64(&fields, "missing", count);
    int problem = write_line("gap", &fields);
    if (problem != 0)
        atomic_fetch_add(&missing, count);
    bson_destroy(&fields);
    return problem;
}

void spill_gateway_log(const char *event, bson_t *fields)
{
    int problem = write_gap();
    if (problem == 0)
        problem = write_line(event, fields);
    if (problem != 0)
        atomic_fetch_add(&missing, 1);
    spill_lost_lines_count(&losses, problem);
    bson_destroy(fields);
}
