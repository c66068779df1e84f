/* The findings of verify and repair, as text that a test compares. */
#ifndef TESTS_SUPPORT_FINDINGS_H
#define TESTS_SUPPORT_FINDINGS_H

#include <spillway/spillway.h>

/* One line for each finding, "I5@-1: TEXT": the invariant, the page (-1: the head), the text. */
typedef struct findings {
    char text[512];
} findings_t;

/* Verify the array, and compare all findings. "": there are none. */
void assert_verified(spill_array_t *array, const char *expected);

/* Repair the array, or only look. The findings are returned as text. An error fails the test. */
spill_repair_summary_t findings_of_repair(spill_array_t *array, bool look_only,
                                          findings_t *findings);

/*
 * Check that verify reports `verified`, that a dry run of repair reports `repaired` and changes
 * nothing, and that repair reports the same and corrects all `count` findings.
 */
void assert_repaired(spill_array_t *array, const char *verified, const char *repaired,
                     int64_t count);

#endif
