/*
 * What a layout does: one table of operations for each, and the functions that call the right one.
 * The core calls these functions and knows no layout. What a layout's documents look like is its
 * schema (definition/schema.h). docs/internals/add-a-layout.md explains how to add one.
 */
#ifndef SPILL_LAYOUT_LAYOUT_H
#define SPILL_LAYOUT_LAYOUT_H

#include "definition/schema.h"
#include "layout/outlier.h"

/*
 * Every operation is for one owner, may run in any thread, and may race with any operation of other
 * clients. It is done, or has changed nothing, or returns SPILL_UNKNOWN. It pauses between its
 * tries with spill_owner_again.
 */
typedef struct spill_layout_ops {
    /* Append one part. *result is zeroed. */
    spill_code_t (*append)(spill_owner_t *owner, const spill_part_t *part,
                           spill_append_result_t *result, spill_error_t *error);
    /*
     * Count the elements as of one moment. `head` is present, and may be read again; exists, head
     * and pages of *count are filled by it.
     */
    spill_code_t (*count)(spill_owner_t *owner, spill_response_t *head, spill_count_t *count,
                          spill_error_t *error);
    /* Change or delete one element. which->seq becomes its number. SPILL_NOT_FOUND. */
    spill_code_t (*edit)(spill_owner_t *owner, spill_which_t *which, const spill_value_t *element,
                         spill_error_t *error);
    spill_code_t (*remove)(spill_owner_t *owner, spill_which_t *which, spill_error_t *error);
    /* Delete the oldest elements. *watermark becomes the lowest number that may be left. */
    spill_code_t (*trim)(spill_owner_t *owner, const spill_trim_t *trim, int64_t *watermark,
                         spill_error_t *error);
    /* One try to delete the head that was read, and the pages that it may have. *done: deleted. */
    spill_code_t (*drop)(spill_owner_t *owner, const spill_state_t *head, bool *done,
                         spill_error_t *error);
} spill_layout_ops_t;

/* newest.c, oldest.c, capped.c, referenced.c */
extern const spill_layout_ops_t spill_newest_ops;
extern const spill_layout_ops_t spill_oldest_ops;
extern const spill_layout_ops_t spill_capped_ops;
extern const spill_layout_ops_t spill_referenced_ops;

/*
 * Add a layout for the rest of the process, before any thread uses the library. *layout becomes the
 * value for spill_definition_t.layout. The schema and the table stay the caller's and have to stay
 * valid. False: there is no room for another. (Tests add layouts so.)
 */
bool spill_layout_add(const spill_schema_t *schema, const spill_layout_ops_t *ops,
                      spill_layout_t *layout);

/*
 * The operations, as the functions of array.h. spill_layout_append may append a part together with
 * parts of other threads. After the append it deletes the elements that the definition does not
 * keep, if owner->retain_is_due.
 */
spill_code_t spill_layout_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error);
spill_code_t spill_layout_count(spill_owner_t *owner, spill_count_t *count, spill_error_t *error);
spill_code_t spill_layout_edit(spill_owner_t *owner, spill_which_t *which,
                               const spill_value_t *element, spill_error_t *error);
spill_code_t spill_layout_remove(spill_owner_t *owner, spill_which_t *which, spill_error_t *error);
spill_code_t spill_layout_trim(spill_owner_t *owner, const spill_trim_t *trim, int64_t *watermark,
                               spill_error_t *error);
/*
 * Delete the elements that the definition does not keep. The append is acknowledged already, so a
 * failure only writes a warning to the store's log; the next append that is due tries again.
 */
void spill_layout_retain(spill_owner_t *owner);
/* Delete the owner: its head, then its pages. Finish a drop that another client began. */
spill_code_t spill_layout_drop(spill_owner_t *owner, spill_error_t *error);

/* ---- combined appends ------------------------------------------------------------------------ */

/*
 * Combine the appends of several threads to one owner. While one command is in progress, later
 * appends wait; the next command carries all of them. On a server the time of a command limits a
 * hot document, and a command with ten elements takes hardly longer than one with one element.
 *
 * spill_layout_append combines appends if the array has a spill_combine_t. Appends of one thread
 * keep their order, and each has its own numbers and its own operation.
 */
typedef struct spill_combine spill_combine_t;

spill_combine_t *spill_combine_new(void);
void spill_combine_free(spill_combine_t *combine); /* NULL is allowed */

#endif
