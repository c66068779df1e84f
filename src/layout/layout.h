/*
 * The layout interface: a table of operations for each layout, and functions that call the table of
 * an array's layout. The core calls these functions and has no code for single layouts. The schema
 * describes a layout's documents (definition/schema.h). docs/internals/add-a-layout.md explains how
 * to add a layout.
 *
 * The folder's files, in the order to read:
 *   owner.c            one owner: make requests, carry them out, pace retries
 *   document_limits.c  how many slots and bytes a head or a page may have
 *   append.c           what appends of all layouts share
 *   newest.c           keep newest: append and spill; newest.h has a picture of both protocols
 *   spiller.c          the thread that performs due spills of a server's arrays
 *   oldest.c           keep oldest: append to the tail, seal it, add a page
 *   capped.c           capped: append
 *   referenced.c       documents of one element: append and trim (referenced.h); referenced_read.c,
 *                      referenced_change.c and referenced_recount.c have the other steps
 *   unique.c           append to an array that keeps each id once (unique.h)
 *   locate.c           which document has an element; counts
 *   change_element.c   edit and remove, in documents of several elements
 *   trim.c             trim, and retention; trim_bound.c finds where a trim ends
 *   drop.c             drop an owner
 *   head_end.c         a head that ends by another step than a drop
 *   repair.c           finish what dead clients left
 *   adoption.c         the right to adopt arrays, beside an undo
 *   reshape.c          move elements of a long head to pages; full.c adopts a full document
 *   append_combiner.c  appends of several threads to one owner, as one request
 *   layout.c           the table of layouts
 */
#ifndef SPILL_LAYOUT_LAYOUT_H
#define SPILL_LAYOUT_LAYOUT_H

#include "definition/schema.h"
#include "layout/append.h"
#include "layout/locate.h"
#include "layout/trim.h"

/*
 * An operation is for one owner. It may run in any thread, beside any operations of other clients.
 * It succeeds, or changes nothing, or returns SPILL_UNKNOWN. Between two tries it calls
 * spill_owner_again.
 */
typedef struct spill_layout_ops {
    /* Append one part. *result is zeroed. */
    spill_code_t (*append)(spill_owner_t *owner, const spill_part_t *part,
                           spill_append_result_t *result, spill_error_t *error);
    /* The request of a first try to append to the head, and what follows it. May be NULL. */
    const spill_head_append_t *head_append;
    /*
     * Count the elements as of one moment. `head` is present; the operation may read it again. The
     * caller has set exists, head and pages of *count from it.
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
    /* Make one try to delete the head as it was read, and its pages. *done: they are deleted. */
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
 * value for spill_definition_t.layout. The caller keeps the schema and the table valid. False:
 * there are SPILL_LAYOUTS_MAX layouts already. (For tests.)
 */
bool spill_layout_add(const spill_schema_t *schema, const spill_layout_ops_t *ops,
                      spill_layout_t *layout);

/*
 * Call the operation of the array's layout. spill_layout_append may append a part together with
 * parts of other threads. If the append sets owner->retain_is_due, it then calls
 * spill_layout_retain.
 */
spill_code_t spill_layout_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error);
/* Append a part, or several that append_combiner.c has merged, by a request of its own. */
spill_code_t spill_layout_append_alone(spill_owner_t *owner, const spill_part_t *part,
                                       spill_append_result_t *result, spill_error_t *error);
/*
 * Try to append a part to the head of each of `count` different owners of one array, by one request
 * to the store. If a part was not appended, its result has the count 0. Also after an error, an
 * append of its own with the same operation is right for it. None is appended if the layout has no
 * head_append, or the store no call_many.
 */
spill_code_t spill_layout_append_many(spill_owner_t *owners, const spill_part_t *parts,
                                      size_t count, spill_append_result_t *results,
                                      spill_error_t *error);
/*
 * Layout outlier: try to make the head of each of `count` different owners of one array, with one
 * part, by one request to the store. On a server, an owner that has got a head meanwhile is not
 * changed; in other stores the part is then appended to it, as by an append with its operation.
 * Whether a part was appended is not known, also after an error: read the heads. No head is made if
 * the store cannot.
 */
spill_code_t spill_layout_make_heads(const spill_owner_t *owners, const spill_part_t *parts,
                                     size_t count, spill_error_t *error);
/*
 * Make the update by which the caller itself appends a part to the owner's head
 * (spill_store_ops_t.make_push). False: use spill_layout_append.
 */
bool spill_layout_make_push(const spill_owner_t *owner, const spill_part_t *part, bson_t *filter,
                            bson_t *update);
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
/* Keep newest: spill the head if it is due, then retain. `head` may show a read of it. */
spill_code_t spill_layout_spill_due(spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error);
/* Delete the owner: its head, then its pages. Finish a drop that another client began. */
spill_code_t spill_layout_drop(spill_owner_t *owner, spill_error_t *error);

#endif
