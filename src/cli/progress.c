#include "cli/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define TERMINAL_INTERVAL_US 200000
#define LINE_INTERVAL_US 5000000

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
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

/* If it is time for a line, begin it. */
static bool begin_line(spill_cli_progress_t *progress)
{
    int64_t now = now_us();
    int64_t interval = progress->terminal ? TERMINAL_INTERVAL_US : LINE_INTERVAL_US;
    if (progress->quiet || now - progress->printed_us < interval)
        return false;
    progress->printed_us = now;
    fputs(progress->terminal ? "\r" : "", stderr);
    return true;
}

static void end_line(spill_cli_progress_t *progress)
{
    fputs(progress->terminal ? "   " : "\n", stderr);
    fflush(stderr);
    progress->line_open = progress->terminal;
}

void spill_cli_progress_show(spill_cli_progress_t *progress, int64_t done, int64_t part,
                             int64_t whole)
{
    if (!begin_line(progress))
        return;
    double seconds = spill_cli_progress_seconds(progress);
    fprintf(stderr, "%" PRId64 " records, %.0f/s", done, (double)done / seconds);
    if (whole > 0 && part > 0 && part <= whole) {
        double fraction = (double)part / (double)whole;
        fprintf(stderr, ", %.0f %% of %.1f MB, %.0f s left", fraction * 100, (double)whole / 1e6,
                seconds / fraction - seconds);
    }
    end_line(progress);
}

void spill_cli_progress_print(spill_cli_progress_t *progress, const char *format, ...)
{
    if (!begin_line(progress))
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    end_line(progress);
}

void spill_cli_progress_break(spill_cli_progress_t *progress)
{
    if (progress->line_open) {
        fputc('\n', stderr);
        progress->line_open = false;
    }
}
