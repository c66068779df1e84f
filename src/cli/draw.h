/* Documents drawn in the terminal: what each holds, and how full it is. */
#ifndef SPILL_CLI_DRAW_H
#define SPILL_CLI_DRAW_H

#include "store/limits.h"

#include <stdbool.h>
#include <stdint.h>

/* One document. Strings are borrowed for the length of the call that gets it. */
typedef struct spill_cli_place {
    const char *name; /* "head", "page 3" */
    const char *collection;
    int64_t first; /* sequence numbers [first, end) */
    int64_t end;
    int64_t slots; /* that count against limits.slots_max */
    int64_t elements;
    int64_t bytes;
    int64_t watermark;     /* numbers below it were trimmed, though their elements may be there */
    spill_limits_t limits; /* its bounds */
} spill_cli_place_t;

/* How full, by what it is nearer to, slots or bytes: 1.0 is full; an element alone may pass it. */
double spill_cli_fill(const spill_cli_place_t *place);

/*
 *   head         ██████████████░░░░░░  70 % of 1 MB     [0..50)  50 elements, 0.7 MB in users
 *
 * with '#' and '.' where the locale is not UTF-8.
 */
void spill_cli_draw_place(const spill_cli_place_t *place);

/* The elements that a summary shows, of the `known` that it has. */
void spill_cli_draw_top(const spill_cli_place_t *top, int64_t known);

/* A stretch of documents that are not drawn one by one. Start from SPILL_CLI_STRETCH_INIT. */
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
