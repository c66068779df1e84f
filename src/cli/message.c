/* Errors and exit codes, and the only way for messages out of the program. */
#include "cli/cli.h"
#include "cli/process.h"

#include "util/buffer.h"
#include "util/file.h"
#include "util/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* One message must fit, so that no secret in it is cut in two. An argument has at most 128 KiB. */
enum { STDERR_BUFFER_BYTES = 512 * 1024 };

/* ---- stderr ---------------------------------------------------------------------------------- */

/* Append a piece without line ends in visible form. */
static void put_visible(spill_buffer_t *to, const char *piece, size_t size)
{
    char *text = bson_strndup(piece, size);
    char *redacted = spill_redact(text);
    char *visible = spill_visible_text(redacted);
    spill_buffer_append(to, visible, strlen(visible));
    bson_free(visible);
    bson_free(redacted);
    bson_free(text);
}

/* A progress line begins with a carriage return; only one at the start of a write passes. */
static ssize_t write_message(void *cookie, const char *data, size_t size)
{
    (void)cookie;
    spill_buffer_t visible = SPILL_BUFFER_INIT;
    const char *end = data + size, *at = data;
    if (at < end && *at == '\r')
        spill_buffer_append_byte(&visible, (uint8_t)*at++);
    while (at < end) {
        const char *stop = at;
        while (stop < end && *stop != '\n' && *stop != '\t')
            stop++;
        put_visible(&visible, at, (size_t)(stop - at));
        if (stop < end)
            spill_buffer_append_byte(&visible, (uint8_t)*stop++);
        at = stop;
    }
    bool written = spill_write_all(STDERR_FILENO, visible.data, visible.size) == 0;
    spill_buffer_release(&visible);
    return written ? (ssize_t)size : 0;
}

void spill_cli_filter_messages(void)
{
    static char buffer[STDERR_BUFFER_BYTES];
    cookie_io_functions_t functions = {.write = write_message};
    FILE *filtered = fopencookie(NULL, "w", functions);
    if (!filtered)
        abort();
    setvbuf(filtered, buffer, _IOLBF, sizeof buffer);
    stderr = filtered; /* glibc permits that; argp and perror print there too */
}

/* ---- messages -------------------------------------------------------------------------------- */

static void print_message(const char *before, const char *format, va_list arguments,
                          const char *after) __attribute__((format(printf, 2, 0)));

/* A line end inside the message comes from an argument or from data: write it out too. */
static void print_message(const char *before, const char *format, va_list arguments,
                          const char *after)
{
    char *text = bson_strdupv_printf(format, arguments);
    char *redacted = spill_redact(text);
    char *visible = spill_visible_text(redacted);
    fflush(stdout);
    fprintf(stderr, "%s%s%s", before, visible, after);
    bson_free(visible);
    bson_free(redacted);
    bson_free(text);
}

void spill_cli_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_message("spillway: ", format, arguments, "\n");
    va_end(arguments);
}

spill_exit_t spill_cli_exit_code(spill_code_t code)
{
    static const spill_exit_t EXITS[] = {
        [SPILL_OK] = SPILL_EXIT_DONE,          [SPILL_NOT_FOUND] = SPILL_EXIT_FAILED,
        [SPILL_INVALID] = SPILL_EXIT_USAGE,    [SPILL_PARSE] = SPILL_EXIT_FAILED,
        [SPILL_TOO_BIG] = SPILL_EXIT_REFUSED,  [SPILL_CONFLICT] = SPILL_EXIT_REFUSED,
        [SPILL_REFUSED] = SPILL_EXIT_REFUSED,  [SPILL_UNKNOWN] = SPILL_EXIT_FAILED,
        [SPILL_CORRUPT] = SPILL_EXIT_FAILED,   [SPILL_BUSY] = SPILL_EXIT_FAILED,
        [SPILL_READ_ONLY] = SPILL_EXIT_FAILED, [SPILL_DENIED] = SPILL_EXIT_FAILED,
        [SPILL_NO_SPACE] = SPILL_EXIT_FAILED,  [SPILL_IO] = SPILL_EXIT_FAILED,
        [SPILL_FORMAT] = SPILL_EXIT_FAILED,    [SPILL_CANCELLED] = SPILL_EXIT_FAILED,
        [SPILL_NO_MEMORY] = SPILL_EXIT_FAILED,
    };
#define COUNT_CODE(name, text) +1
    _Static_assert(sizeof EXITS / sizeof EXITS[0] == 0 SPILL_CODES(COUNT_CODE),
                   "every code needs an exit code");
#undef COUNT_CODE
    return EXITS[code];
}

spill_exit_t spill_cli_fail(const spill_error_t *error)
{
    spill_cli_say("%s", error->message);
    if (error->code == SPILL_CANCELLED && spill_cli_interrupted())
        return SPILL_EXIT_INTERRUPTED;
    return spill_cli_exit_code(error->code);
}

spill_exit_t spill_cli_usage(const spill_invocation_t *invocation, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "spillway %s: ", invocation->command->name);
    va_start(arguments, format);
    print_message("", format, arguments, "\n");
    fprintf(stderr, "Try 'spillway %s --help'.\n", invocation->command->name);
    va_end(arguments);
    return SPILL_EXIT_USAGE;
}

spill_exit_t spill_cli_confirm(const spill_invocation_t *invocation, const char *format, ...)
{
    char answer[16] = "";
    va_list arguments;
    if (!isatty(STDIN_FILENO))
        return spill_cli_usage(invocation, "no terminal to ask on: give --yes");
    va_start(arguments, format);
    print_message("", format, arguments, " Type yes: ");
    va_end(arguments);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && strcmp(answer, "yes\n") == 0)
        return SPILL_EXIT_DONE;
    fputs("spillway: nothing was dropped\n", stderr);
    return SPILL_EXIT_REFUSED;
}
