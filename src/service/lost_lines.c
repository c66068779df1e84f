/* The lines that a log lacks. */
#include "service/lost_lines.h"

#include "service/exposition.h"
#include "util/text.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void spill_lost_lines_count(spill_lost_lines_t *losses, int problem)
{
    atomic_store(&losses->failing, problem != 0);
    if (problem == 0)
        return;
    atomic_store(&losses->problem, problem);
    atomic_fetch_add(&losses->lines, 1);
}

bool spill_lost_lines_text(const spill_lost_lines_t *losses, char text[SPILL_LOST_LINES_TEXT])
{
    text[0] = '\0';
    int64_t lines = losses ? atomic_load(&losses->lines) : 0;
    if (lines == 0)
        return false;
    char *path = spill_visible_text(losses->path);
    snprintf(text, SPILL_LOST_LINES_TEXT, "%.300s %s %s (%s)", path,
             atomic_load(&losses->failing) ? "cannot be written, and lacks" : "lacks",
             spill_counted_text(lines, "line", "lines").text,
             strerror(atomic_load(&losses->problem)));
    bson_free(path);
    return true;
}

void spill_lost_lines_say(const spill_lost_lines_t *losses, spill_http_answer_t *answer)
{
    char text[SPILL_LOST_LINES_TEXT];
    if (!spill_lost_lines_text(losses, text))
        return;
    spill_http_say(answer, answer->status, "the log: ");
    spill_http_say(answer, answer->status, text);
    spill_http_say(answer, answer->status, "\n");
}

void spill_lost_lines_print(const spill_lost_lines_t *losses, const char *command,
                            spill_buffer_t *out)
{
    int64_t lines = losses ? atomic_load(&losses->lines) : 0;
    int failing = losses && atomic_load(&losses->failing) ? 1 : 0;
    spill_exposition_begin(out, "spillway_log_lines_lost_total", "counter",
                           "Lines of the log that could not be written");
    spill_exposition_print(out, "spillway_log_lines_lost_total{command=\"%s\"} %" PRId64 "\n",
                           command, lines);
    spill_exposition_begin(out, "spillway_log_failing", "gauge",
                           "1 if the last line of the log could not be written");
    spill_exposition_print(out, "spillway_log_failing{command=\"%s\"} %d\n", command, failing);
}
