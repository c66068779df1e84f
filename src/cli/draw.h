/* Documents drawn in the terminal: their contents, and how full they are. */
#ifndef SPILL_CLI_DRAW_H
#define SPILL_CLI_DRAW_H

#include "store/content.h"

#include <stdbool.h>
#include <stdint.h>

/* One document. Strings are borrowed for the call. */
typedef struct spill_cli_place {
    const char *name; /* "head", "page 3" */
    const char *collection;
    int64_t first; /* sequence numbers [first, end) */
    int64_t end;
    int64_t slots; /* used, of limits.slots_max */
    int64_t elements;
    int64_t bytes;
    int64_t watermark;     /* numbers below it are trimmed, though elements may still be stored */
    spill_limits_t limits; /* its bounds */
} spill_cli_place_t;

/*
 *   head         ██████████████░░░░░░  70 % of 1 MB     [0..50)  50 elements, 0.7 MB in users
 *
 * with '#' and '.' if the locale is not UTF-8.
 */
void spill_cli_draw_place(const spill_cli_place_t *place);

/* Draw the summary of a head; it shows some of its `known` elements. */
void spill_cli_draw_top(const spill_cli_place_t *top, int64_t known);

/* Consecutive documents that are not drawn one by one. Start from SPILL_CLI_STRETCH_INIT. */
typedef struct spill_cli_stretch {
    int64_t documents;
    int64_t elements;
    int64_t bytes;
    double least_full;
    double most_full;
} spill_cli_stretch_t;

#define SPILL_CLI_STRETCH_INIT                                                                     \
    {                                                                                              \
        .least_full = 1e9                                                                          \
    }

void spill_cli_stretch_add(spill_cli_stretch_t *stretch, const spill_cli_place_t *place);
void spill_cli_draw_stretch(const spill_cli_stretch_t *stretch); /* nothing for none */

#endif
