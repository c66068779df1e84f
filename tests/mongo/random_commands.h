/*
 * Random commands on the collection "c" with the array "f", as JSON. They find a few owners, so
 * that commands meet plain, adopted and paged arrays.
 */
#ifndef SPILL_TESTS_RANDOM_COMMANDS_H
#define SPILL_TESTS_RANDOM_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>

enum { RANDOM_COMMAND_SIZE = 8192 }; /* bytes of a text */

typedef struct random_program {
    uint64_t state;    /* the seed at first */
    bool nested;       /* the commands will be relocated: some of them name the document around */
    bool newest_first; /* most pushes have $position: 0 */
    int64_t next_element;
} random_program_t;

/* A number below `sides`. */
uint32_t random_roll(random_program_t *program, uint32_t sides);

/* Any command; `text` has RANDOM_COMMAND_SIZE bytes. */
void random_command(random_program_t *program, char *text);

/* An insert, update or delete. */
void random_write(random_program_t *program, char *text);

#endif
