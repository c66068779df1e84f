/* Progress on stderr: a line that is rewritten on a terminal, and printed every few seconds
 * elsewhere. */
#include "cli/progress.h"

#include "util/clock.h"
#include "util/text.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TERMINAL_INTERVAL_US 200000
#define LINE_INTERVAL_US 5000000

/* ---- the line -------------------------------------------------------------------------------- */

/* Lock stderr itself. With a lock of its own, progress and another writer could wait for each
 * other. */
void spill_cli_progress_lock(void)
{
    flockfile(stderr);
}

void spill_cli_progress_unlock(void)
{
    funlockfile(stderr);
}

int spill_cli_terminal_columns(void)
{
    enum { COLUMNS = 80 };
    struct winsize size = {0};
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 ||
                 ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    return known && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

int spill_cli_byte_columns(unsigned char byte)
{
    if ((byte & 0xC0U) == 0x80U)
        return 0;
    return byte >= 0xE1U ? 2 : 1;
}

static int text_columns(const char *text)
{
    int columns = 0;
    for (; *text != '\0'; text++)
        columns += spill_cli_byte_columns((unsigned char)*text);
    return columns;
}

/* Cut a text to `columns`: before its last comma, else before its last word, else anywhere. */
static void cut_text(char *text, int columns)
{
    while (text_columns(text) > columns) {
        char *end = strrchr(text, ',');
        if (!end)
            end = strrchr(text, ' ');
        if (end && end != text) {
            *end = '\0';
            continue;
        }
        int used = 0;
        char *at = text;
        while (*at != '\0' && used + spill_cli_byte_columns((unsigned char)*at) <= columns)
            used += spill_cli_byte_columns((unsigned char)*at++);
        *at = '\0';
    }
}

/* The line that the terminal shows now and that changes; NULL: none. */
static spill_cli_progress_t *open_line;

/* Write the text over the open line, and blanks over what remains of that. */
static void rewrite_line(spill_cli_progress_t *progress, char *text, const char *end)
{
    int most = spill_cli_terminal_columns() - 1;
    int room = most - text_columns(end);
    cut_text(text, room > 0 ? room : 0);
    int columns = text_columns(text) + text_columns(end);
    int before = progress->columns < most ? progress->columns : most;
    fprintf(stderr, "\r%s%s%*s", text, columns <= most ? end : "",
            before > columns ? before - columns : 0, "");
    fflush(stderr);
    progress->columns = columns;
    open_line = columns > 0 ? progress : NULL;
}

static void write_line(spill_cli_progress_t *progress, const char *format, const char *end,
                       va_list arguments) __attribute__((format(printf, 2, 0)));

/* All lines share one lock: texts are short, and few threads ask for them. */
static pthread_mutex_t text_lock = PTHREAD_MUTEX_INITIALIZER;

static void write_line(spill_cli_progress_t *progress, const char *format, const char *end,
                       va_list arguments)
{
    char text[SPILL_CLI_PROGRESS_TEXT];
    vsnprintf(text, sizeof text, format, arguments);
    pthread_mutex_lock(&text_lock);
    if (snprintf(progress->text, sizeof progress->text, "%s%s", text, end) < 0)
        progress->text[0] = '\0';
    pthread_mutex_unlock(&text_lock);
    if (!spill_cli_progress_due(progress))
        return;
    progress->printed_us = spill_clock_monotonic_us(NULL);
    char *visible = spill_visible_text(text);
    spill_cli_progress_lock();
    if (progress->terminal)
        rewrite_line(progress, visible, end);
    else
        fprintf(stderr, "%s%s\n", visible, end);
    spill_cli_progress_unlock();
    bson_free(visible);
}

bool spill_cli_progress_due(const spill_cli_progress_t *progress)
{
    int64_t interval = progress->terminal ? TERMINAL_INTERVAL_US : LINE_INTERVAL_US;
    return !progress->quiet && spill_clock_monotonic_us(NULL) - progress->printed_us >= interval;
}

void spill_cli_progress_start(spill_cli_progress_t *progress, bool quiet)
{
    int64_t now = spill_clock_monotonic_us(NULL);
    *progress = (spill_cli_progress_t){.quiet = quiet,
                                       .terminal = isatty(STDERR_FILENO) != 0,
                                       .started_us = now,
                                       .printed_us = now};
}

double spill_cli_progress_seconds(const spill_cli_progress_t *progress)
{
    return (double)(spill_clock_monotonic_us(NULL) - progress->started_us) / 1e6;
}

/* ---- the time left --------------------------------------------------------------------------- */

/* Seconds since the start, less the waits. */
static double worked_seconds(const spill_cli_progress_t *progress)
{
    int64_t waits_us =
        progress->waits_us > 0 ? spill_clock_monotonic_us(NULL) - progress->waits_us : 0;
    return spill_cli_progress_seconds(progress) - progress->waited_s - (double)waits_us / 1e6;
}

void spill_cli_progress_wait(spill_cli_progress_t *progress, bool waits)
{
    spill_cli_progress_lock();
    if (waits && progress->waits_us == 0) {
        progress->waits_us = spill_clock_monotonic_us(NULL);
    } else if (!waits && progress->waits_us > 0) {
        progress->waited_s += (double)(spill_clock_monotonic_us(NULL) - progress->waits_us) / 1e6;
        progress->waits_us = 0;
    }
    spill_cli_progress_unlock();
}

void spill_cli_progress_at_least(spill_cli_progress_t *progress, double left_s)
{
    progress->left_least_s = left_s;
}

void spill_cli_progress_restart(spill_cli_progress_t *progress, int64_t part)
{
    progress->estimate = (spill_estimate_t){.begin = {worked_seconds(progress), (double)part}};
    progress->left_least_s = 0;
}

/* Estimate only for lines that are printed, because the estimate depends on the one before. */
static void describe_part(spill_cli_progress_t *progress, int64_t part, int64_t whole, char end[64])
{
    end[0] = '\0';
    if (whole <= 0 || part < 0 || part > whole)
        return;
    double per_cent = 100 * (double)part / (double)whole;
    double left = progress->estimate.left_s;
    if (spill_cli_progress_due(progress))
        left = spill_estimate_left(&progress->estimate, worked_seconds(progress), (double)part,
                                   (double)whole);
    if (left < progress->left_least_s)
        left = progress->left_least_s;
    if (left > 0)
        snprintf(end, 64, ", %.0f %%, %s left", per_cent, spill_duration_text(left).text);
    else
        snprintf(end, 64, ", %.0f %%", per_cent);
}

void spill_cli_progress_part(spill_cli_progress_t *progress, int64_t part, int64_t whole,
                             const char *format, ...)
{
    char end[64];
    va_list arguments;
    describe_part(progress, part, whole, end);
    va_start(arguments, format);
    write_line(progress, format, end, arguments);
    va_end(arguments);
}

void spill_cli_progress_print(spill_cli_progress_t *progress, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_line(progress, format, "", arguments);
    va_end(arguments);
}

void spill_cli_progress_show(spill_cli_progress_t *progress, int64_t done, int64_t part,
                             int64_t whole)
{
    double per_second = (double)done / spill_cli_progress_seconds(progress);
    if (whole > 0 && part <= whole)
        spill_cli_progress_part(progress, part, whole, "%" PRId64 " records, %.0f/s, of %s", done,
                                per_second, spill_size_text(whole).text);
    else
        spill_cli_progress_print(progress, "%" PRId64 " records, %.0f/s", done, per_second);
}

void spill_cli_progress_text(const spill_cli_progress_t *progress,
                             char text[SPILL_CLI_PROGRESS_TEXT])
{
    pthread_mutex_lock(&text_lock);
    memcpy(text, progress->text, SPILL_CLI_PROGRESS_TEXT);
    pthread_mutex_unlock(&text_lock);
}

/* Two writes, because only the first byte of a write may be a carriage return (output.c). */
void spill_cli_progress_break(spill_cli_progress_t *progress)
{
    int most = spill_cli_terminal_columns() - 1;
    spill_cli_progress_lock();
    if (progress->columns > 0) {
        fprintf(stderr, "\r%*s", progress->columns < most ? progress->columns : most, "");
        fflush(stderr);
        fputs("\r", stderr);
        fflush(stderr);
        progress->columns = 0;
        open_line = NULL;
    }
    spill_cli_progress_unlock();
}

void spill_cli_progress_erase(void)
{
    spill_cli_progress_lock();
    if (open_line)
        spill_cli_progress_break(open_line);
    spill_cli_progress_unlock();
}
