#include "cli/lines.h"

#include "cli/process.h"
#include "util/error.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

/* The next line in the buffer; after the end of the input, the rest is the last line. */
static bool next_line(spill_cli_lines_t *lines, const char **line, size_t *size)
{
    const char *data = (const char *)lines->bytes.data;
    size_t left = lines->bytes.size - lines->scanned;
    const char *end = left > 0 ? memchr(data + lines->scanned, '\n', left) : NULL;
    lines->scanned = lines->bytes.size;
    if (!end && (!lines->ended || lines->start == lines->bytes.size))
        return false;
    *line = data + lines->start;
    *size = (end ? (size_t)(end - data) : lines->bytes.size) - lines->start;
    lines->start += *size + (end ? 1 : 0);
    lines->scanned = lines->start;
    return true;
}

/* Read more bytes behind the unfinished line, which moves to the buffer's front. */
static spill_code_t read_more(spill_cli_lines_t *lines, spill_error_t *error)
{
    size_t rest = lines->bytes.size - lines->start;
    if (lines->start > 0)
        memmove(lines->bytes.data, lines->bytes.data + lines->start, rest);
    lines->scanned -= lines->start;
    lines->bytes.size = rest;
    lines->start = 0;
    ssize_t count = read(STDIN_FILENO, spill_buffer_reserve(&lines->bytes, READ_BYTES), READ_BYTES);
    if (count < 0 && errno != EINTR && errno != EAGAIN)
        return spill_fail_errno(error, errno, "cannot read stdin");
    lines->bytes.size += count > 0 ? (size_t)count : 0;
    lines->ended = count == 0;
    return SPILL_OK;
}

spill_code_t spill_cli_lines_next(spill_cli_lines_t *lines, int wait_ms,
                                  spill_cli_lines_state_t *state, const char **line, size_t *size,
                                  spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    *state = SPILL_CLI_LINES_ONE;
    *line = NULL;
    *size = 0;
    while (code == SPILL_OK) {
        if (next_line(lines, line, size))
            return SPILL_OK;
        if (lines->ended || spill_cli_interrupted())
            break;
        if (poll(&ready, 1, wait_ms) == 0) {
            *state = SPILL_CLI_LINES_NONE;
            return SPILL_OK;
        }
        if (!spill_cli_interrupted())
            code = read_more(lines, error);
    }
    *state = SPILL_CLI_LINES_END;
    return code;
}

void spill_cli_lines_release(spill_cli_lines_t *lines)
{
    spill_buffer_release(&lines->bytes);
    *lines = (spill_cli_lines_t){0};
}
