/* Colours of text on stdout. */
#ifndef SPILL_CLI_COLOR_H
#define SPILL_CLI_COLOR_H

#include <stdbool.h>

typedef enum spill_cli_color {
    SPILL_CLI_PLAIN,  /* end of a colour */
    SPILL_CLI_BOLD,   /* headings */
    SPILL_CLI_RED,    /* what is wrong, or critical */
    SPILL_CLI_YELLOW, /* warnings */
    SPILL_CLI_GREEN   /* what is good */
} spill_cli_color_t;

/* Choose by --color: "auto", "always" or "never". False for another text. */
bool spill_cli_choose_color(const char *when);

/*
 * The sequence that begins this colour on stdout; "" without colours. Without a choice, there are
 * colours if stdout is a terminal, NO_COLOR is not set or empty, and TERM is not "dumb".
 */
const char *spill_cli_color(spill_cli_color_t color);

/* Is stdout a terminal, so that a person reads it? */
bool spill_cli_on_terminal(void);

#endif
