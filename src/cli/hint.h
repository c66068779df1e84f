/*
 * Hints after a wrong word on the command line: which command or option it probably means. They
 * come from the tables of commands and options, and from one list of words with one meaning.
 */
#ifndef SPILL_CLI_HINT_H
#define SPILL_CLI_HINT_H

#include "cli/command.h"

#include <argp.h>

enum { SPILL_CLI_HINT_SIZE = 256 };

/* How many letters to insert, delete or replace between two words. SIZE_MAX: one of them is long.
 */
size_t spill_cli_word_distance(const char *left, const char *right);

/*
 * The first word behind words[0] that begins with "-" and is no option of `rows`, which end with a
 * zeroed row; NULL: all are. An abbreviation of an option's name is one, as in getopt_long.
 */
const char *spill_cli_unknown_option(const struct argp_option *rows, char *const *words);

/*
 * Put "; did you mean --keep N?" into `hint`, or "" if no option of the command comes close. The
 * word is an option that the command does not have, with its dashes.
 */
void spill_cli_hint_option(const spill_command_t *command, const char *word,
                           char hint[SPILL_CLI_HINT_SIZE]);

/*
 * The same for an argument too many, which may be the value of an option: "... --keep 5?" `fits`
 * tells whether a word can be the value of an option.
 */
typedef bool (*spill_cli_fits_fn)(const spill_option_t *option, const char *word);
void spill_cli_hint_argument(const spill_command_t *command, const char *word,
                             spill_cli_fits_fn fits, char hint[SPILL_CLI_HINT_SIZE]);

#endif
