/* Errors and exit codes. */
#include "cli/cli.h"

#include <stdarg.h>
#include <string.h>
#include <unistd.h>

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
    };
#define COUNT_CODE(name, text) +1
    _Static_assert(sizeof EXITS / sizeof EXITS[0] == 0 SPILL_CODES(COUNT_CODE),
                   "every code needs an exit code");
#undef COUNT_CODE
    return EXITS[code];
}

spill_exit_t spill_cli_fail(const spill_error_t *error)
{
    fflush(stdout);
    fprintf(stderr, "spillway: %s\n", error->message);
    return spill_cli_exit_code(error->code);
}

spill_exit_t spill_cli_usage(const spill_invocation_t *invocation, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "spillway %s: ", invocation->command->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\nTry 'spillway %s --help'.\n", invocation->command->name);
    va_end(arguments);
    return SPILL_EXIT_USAGE;
}

spill_exit_t spill_cli_confirm(const spill_invocation_t *invocation, const char *format, ...)
{
    char answer[16] = "";
    va_list arguments;
    if (!isatty(STDIN_FILENO))
        return spill_cli_usage(invocation, "there is no terminal to ask on: give --yes");
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputs(" Type yes: ", stderr);
    fflush(stderr);
    if (fgets(answer, sizeof answer, stdin) && strcmp(answer, "yes\n") == 0)
        return SPILL_EXIT_DONE;
    fputs("spillway: nothing was dropped\n", stderr);
    return SPILL_EXIT_REFUSED;
}
