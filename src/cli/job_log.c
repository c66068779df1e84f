/* The file of --log. */
#include "cli/job_log.h"

#include "cli/cli.h"
#include "util/buffer.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

spill_code_t spill_cli_job_log_open(spill_cli_job_log_t *log, const char *path,
                                    spill_error_t *error)
{
    *log = (spill_cli_job_log_t){.file = -1, .lock = PTHREAD_MUTEX_INITIALIZER};
    if (!path)
        return SPILL_OK;
    SPILL_TRY(spill_file_refuse_in_store(path, error));
    log->file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (log->file < 0)
        return spill_fail_errno(error, errno, "%s", path);
    log->losses.path = path;
    return SPILL_OK;
}

static void append_line(spill_buffer_t *to, const char *event, const bson_t *fields)
{
    bson_t line = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&line, "time", spill_clock_now_us(NULL) / 1000);
    BSON_APPEND_UTF8(&line, "event", event);
    if (fields)
        bson_concat(&line, fields);
    char *json = spill_cli_plain_json(&line);
    char *visible = json ? spill_visible_text(json) : NULL;
    if (!json && fields) { /* JSON cannot express a string that is not UTF-8 */
        append_line(to, event, NULL);
    } else if (visible) {
        spill_buffer_append(to, visible, strlen(visible));
        spill_buffer_append_byte(to, '\n');
    }
    bson_free(visible);
    bson_free(json);
    bson_destroy(&line);
}

/* What a later line needs before it: the end of a torn line, and the number of missing lines. */
static void append_gap(spill_buffer_t *to, const spill_cli_job_log_t *log)
{
    if (log->is_torn)
        spill_buffer_append_byte(to, '\n');
    if (log->missing == 0)
        return;
    bson_t fields = BSON_INITIALIZER;
    BSON_APPEND_INT64(&fields, "missing", log->missing);
    append_line(to, "gap", &fields);
    bson_destroy(&fields);
}

/* Report the first lost line. */
static void lose_line(spill_cli_job_log_t *log, int problem)
{
    log->missing++;
    if (atomic_load(&log->losses.lines) > 1)
        return;
    spill_cli_say("%s cannot be written (%s): the job continues without its log, and will end with "
                  "exit code %d",
                  log->losses.path, strerror(problem), SPILL_EXIT_FAILED);
}

void spill_cli_job_log_write(spill_cli_job_log_t *log, const char *event, const bson_t *fields)
{
    if (!log->losses.path)
        return;
    spill_buffer_t text = SPILL_BUFFER_INIT;
    pthread_mutex_lock(&log->lock);
    append_gap(&text, log);
    append_line(&text, event, fields);
    off_t before = lseek(log->file, 0, SEEK_END);
    int problem = spill_write_all(log->file, text.data, text.size);
    spill_lost_lines_count(&log->losses, problem);
    if (problem == 0) {
        log->missing = 0;
        log->is_torn = false;
    } else {
        log->is_torn = log->is_torn || lseek(log->file, 0, SEEK_END) != before;
        lose_line(log, problem);
    }
    pthread_mutex_unlock(&log->lock);
    spill_buffer_release(&text);
}

spill_code_t spill_cli_job_log_close(spill_cli_job_log_t *log, spill_error_t *error)
{
    const char *path = log->losses.path;
    if (!path)
        return SPILL_OK;
    int problem = close(log->file) == 0 ? 0 : errno;
    int64_t lost = atomic_load(&log->losses.lines);
    log->file = -1;
    log->losses.path = NULL;
    if (lost > 0)
        return spill_fail_errno(error, atomic_load(&log->losses.problem), "%s lacks %s", path,
                                spill_counted_text(lost, "line", "lines").text);
    return problem == 0 ? SPILL_OK : spill_fail_errno(error, problem, "%s", path);
}
