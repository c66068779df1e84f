/*
 * Fold lines to the width of a terminal. One filter reads everything that commands print on stdout,
 * and folds what they print on stderr too. So no command counts columns for its sentences.
 */
#ifndef SPILL_CLI_FOLD_H
#define SPILL_CLI_FOLD_H

#include "util/buffer.h"

/*
 * Append the lines of a text, folded at blanks to at most `columns`. A folded line continues below
 * its text: "  label:  text" below "text". Colours have no width. What a person may copy stays in
 * one piece, however long it is: a word, text in quotes, and a line that begins with a command or
 * is JSON.
 */
void spill_cli_fold_text(const char *text, size_t size, size_t columns, spill_buffer_t *to);

/*
 * From now on fold the lines of stdout, which must be a terminal. Only for output that no program
 * reads. Call it once, before anything is printed.
 */
void spill_cli_fold_stdout(void);

#endif
