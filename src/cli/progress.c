/* Progress on stderr: the estimate of the time that is left, and the line. */
#include "cli/progress.h"

#include "util/text.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_INTERVAL_US 200000
#define LINE_INTERVAL_US 5000000

/* ---- the time that is left ------------------------------------------------------------------- */

/* The speed is the mean of about this time, or of a quarter of the run if that is longer. */
#define SMOOTH_S 4.0

/* Before this, the speed is not shown: the first steps may be unlike the rest. */
#define FIRST_S 0.5

/* The least that is shown. From 0.2, both half and one and a half are other numbers. */
#define LEFT_LEAST_S 0.2

static void measure_speed(spill_cli_estimate_t *estimate, double seconds, double part)
{
    double elapsed = seconds - estimate->seconds, moved = part - estimate->part;
    if (elapsed <= 0)
        return;
    double over = seconds / 4 > SMOOTH_S ? seconds / 4 : SMOOTH_S;
    double weight = estimate->per_second > 0 ? 1 - exp(-elapsed / over) : 1;
    estimate->per_second += weight * ((moved > 0 ? moved : 0) / elapsed - estimate->per_second);
    estimate->seconds = seconds;
    estimate->part = part;
}

/* Round as spill_cli_duration_text does, up or down. */
static double round_left(double seconds, bool up)
{
    double unit = seconds < 10 ? 0.1 : seconds < 120 ? 1 : 60;
    double count = seconds / unit;
    return unit * (up ? ceil(count - 1e-6) : floor(count + 1e-6));
}

double spill_cli_estimate_left(spill_cli_estimate_t *estimate, double seconds, double part,
                               double whole)
{
    if (part < estimate->part)
        *estimate = (spill_cli_estimate_t){.seconds = estimate->seconds};
    if (estimate->left_s == 0 && seconds < estimate->seconds + FIRST_S)
        return 0;
    measure_speed(estimate, seconds, part);
    if (estimate->per_second <= 0)
        return estimate->left_s;
    double left = (whole - part) / estimate->per_second, before = estimate->left_s;
    left = round_left(left > LEFT_LEAST_S ? left : LEFT_LEAST_S, true);
    if (before > 0 && left > before * 1.5)
        left = round_left(before * 1.5, false);
    if (before > 0 && left < before / 2)
        left = round_left(before / 2, true);
    estimate->left_s = left;
    return left;
}

void spill_cli_duration_text(double seconds, char text[32])
{
    int64_t minutes = (int64_t)(seconds / 60 + 1e-6);
    if (seconds < 9.95)
        snprintf(text, 32, "%.1f s", seconds);
    else if (seconds < 119.5)
        snprintf(text, 32, "%.0f s", seconds);
    else if (minutes < 120)
        snprintf(text, 32, "%" PRId64 " min", minutes);
    else
        snprintf(text, 32, "%" PRId64 " h %" PRId64 " min", minutes / 60, minutes % 60);
}

/* ---- the line -------------------------------------------------------------------------------- */

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int spill_cli_terminal_columns(void)
{
    enum { COLUMNS = 80 };
    struct winsize size = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : COLUMNS;
}

/* The columns of a character by its first byte. Those of three bytes or more may be wide. */
static int byte_columns(unsigned char byte)
{
    if ((byte & 0xC0U) == 0x80U)
        return 0;
    return byte >= 0xE1U ? 2 : 1;
}

static int text_columns(const char *text)
{
    int columns = 0;
    for (; *text != '\0'; text++)
        columns += byte_columns((unsigned char)*text);
    return columns;
}

/* Cut a text to `columns`, if possible before one of its commas. */
static void cut_text(char *text, int columns)
{
    while (text_columns(text) > columns) {
        char *comma = strrchr(text, ',');
        if (comma && comma != text) {
            *comma = '\0';
            continue;
        }
        int used = 0;
        char *at = text;
        while (*at != '\0' && used + byte_columns((unsigned char)*at) <= columns)
            used += byte_columns((unsigned char)*at++);
        *at = '\0';
    }
}

/* The line that is open on the terminal; at most one is. */
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

/* One lock for all: texts are short, and few threads ask. */
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
    progress->printed_us = now_us();
    char *visible = spill_visible_text(text);
    if (progress->terminal)
        rewrite_line(progress, visible, end);
    else
        fprintf(stderr, "%s%s\n", visible, end);
    bson_free(visible);
}

bool spill_cli_progress_due(const spill_cli_progress_t *progress)
{
    int64_t interval = progress->terminal ? TERMINAL_INTERVAL_US : LINE_INTERVAL_US;
    return !progress->quiet && now_us() - progress->printed_us >= interval;
}

void spill_cli_progress_start(spill_cli_progress_t *progress, bool quiet)
{
    int64_t now = now_us();
    *progress = (spill_cli_progress_t){.quiet = quiet,
                                       .terminal = isatty(STDERR_FILENO) != 0,
                                       .started_us = now,
                                       .printed_us = now};
}

double spill_cli_progress_seconds(const spill_cli_progress_t *progress)
{
    return (double)(now_us() - progress->started_us) / 1e6;
}

void spill_cli_progress_restart(spill_cli_progress_t *progress)
{
    progress->estimate =
        (spill_cli_estimate_t){.seconds = spill_cli_progress_seconds(progress)};
}

/* Estimate only for lines that are printed, because the estimate depends on the one before. */
static void describe_part(spill_cli_progress_t *progress, int64_t part, int64_t whole,
                          char end[64])
{
    char left_text[32];
    end[0] = '\0';
    if (whole <= 0 || part < 0 || part > whole)
        return;
    double per_cent = 100 * (double)part / (double)whole;
    double left = progress->estimate.left_s;
    if (spill_cli_progress_due(progress))
        left = spill_cli_estimate_left(&progress->estimate, spill_cli_progress_seconds(progress),
                                       (double)part, (double)whole);
    spill_cli_duration_text(left, left_text);
    if (left > 0)
        snprintf(end, 64, ", %.0f %%, %s left", per_cent, left_text);
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
    if (progress->columns == 0)
        return;
    fprintf(stderr, "\r%*s", progress->columns < most ? progress->columns : most, "");
    fflush(stderr);
    fputs("\r", stderr);
    fflush(stderr);
    progress->columns = 0;
    open_line = NULL;
}

void spill_cli_progress_erase(void)
{
    if (open_line)
        spill_cli_progress_break(open_line);
}
