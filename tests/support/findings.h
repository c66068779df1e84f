/* What verify and repair find, as text that a test compares. */
#ifndef TESTS_SUPPORT_FINDINGS_H
#define TESTS_SUPPORT_FINDINGS_H

#include <spillway/spillway.h>

/* A line for each, "I5@-1: ...": the invariant, the page (the head is -1), and what is said. */
typedef struct findings {
    char text[512];
} findings_t;

/* The whole of what verify says is this; "" where it finds nothing. */
void assert_verified(spill_array_t *array, const char *expected);

/* What repair says, which has to end well. */
spill_repair_summary_t findings_of_repair(spill_array_t *array, bool look_only,
                                          findings_t *findings);

/*
 * A look tells of it and changes nothing, a repair mends it (so many findings, in either, and none
 * that is left), and then there is nothing to find.
 */
void assert_repaired(spill_array_t *array, const char *verified, const char *repaired,
                     int64_t count);

#endif
