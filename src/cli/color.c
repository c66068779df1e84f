/* Colours of text on stdout. */
#include "cli/color.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHEN_AUTO, WHEN_ALWAYS, WHEN_NEVER };

static int chosen;

bool spill_cli_choose_color(const char *when)
{
    static const char *const names[] = {
        [WHEN_AUTO] = "auto", [WHEN_ALWAYS] = "always", [WHEN_NEVER] = "never"};
    for (int i = WHEN_AUTO; i <= WHEN_NEVER; i++)
        if (strcmp(when, names[i]) == 0) {
            chosen = i;
            return true;
        }
    return false;
}

bool spill_cli_on_terminal(void)
{
    return isatty(STDOUT_FILENO) != 0;
}

/* https://no-color.org: any value but the empty one. */
static bool has_colors(void)
{
    const char *none = getenv("NO_COLOR"), *terminal = getenv("TERM");
    if (chosen != WHEN_AUTO)
        return chosen == WHEN_ALWAYS;
    return spill_cli_on_terminal() && !(none && none[0] != '\0') && terminal &&
           strcmp(terminal, "dumb") != 0;
}

const char *spill_cli_color(spill_cli_color_t color)
{
    static const char *const sequences[] = {[SPILL_CLI_PLAIN] = "\033[0m",
                                            [SPILL_CLI_BOLD] = "\033[1m",
                                            [SPILL_CLI_RED] = "\033[31m",
                                            [SPILL_CLI_YELLOW] = "\033[33m",
                                            [SPILL_CLI_GREEN] = "\033[32m"};
    return has_colors() ? sequences[color] : "";
}
