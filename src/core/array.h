/*
 * The internal functions of src/core: checks of arguments and walks. building.h has the definitions
 * that a migration copies arrays to.
 *
 * The folder's files, in the order to read:
 *   define.c         save and find definitions
 *   array.c          open an array; calls for one owner; checks of arguments
 *   append.c         append, to one owner or to several at once
 *   reading.c        the documents of a read; read.c chooses them
 *   update.c         update a head's other fields
 *   others.c         the other definitions of a collection, whose fields an update leaves alone
 *   change.c         edit, remove and trim
 *   walk.c           all elements of an owner, a bounded run at a time
 *   measure.c        the number and the bytes of the elements, without a read of them
 *   readable.c       the elements of a damaged owner that can be read
 *   adopt.c          make the unmanaged array of one owner managed
 *   owners.c         all owners; drop a definition
 *   orphans.c        delete pages of owners whose documents were deleted
 *   unheaded.c       pages and documents that a walk over the owners does not reach
 *   windows.c        the windows of an owner (layout bucket)
 *   bucket.c         append to windows and read them; bucket_change.c edits, removes and trims
 *   verify.c         verify: inspect each owner (verify_owner.c, verify_referenced.c, verify_ids.c)
 *   inspection.c     the findings of an inspection, and the steps that correct them
 *   repair.c         repair: make these steps, and finish what dead clients left
 */
#ifndef SPILL_CORE_ARRAY_H
#define SPILL_CORE_ARRAY_H

#include "definition/schema.h"
#include "layout/referenced.h"

/*
 * Check that an update has only known operators, and does not change the fields of the array.
 * SPILL_INVALID.
 */
spill_code_t spill_array_check_update(const spill_array_t *array, const bson_t *update,
                                      spill_error_t *error);

/* The names of the fields of an array, with NULL behind the last. They belong to the definition. */
enum { SPILL_RESERVED_MAX = 6 };
void spill_array_reserved(const spill_definition_t *definition,
                          const char *reserved[SPILL_RESERVED_MAX]);

/* ---- the other definitions of an array's collection (others.c) ------------------------------- */

spill_others_t *spill_others_new(void);
void spill_others_free(spill_others_t *others);

/*
 * Embedded store: check that an update does not change the fields of other arrays in the owner's
 * head, or replace a document around them. SPILL_REFUSED names the definition. On a server other
 * programs may do that anyway (docs/internals/protocol.md). Cost: none if no other definition has
 * heads in the collection; else one pass over the update, a catalog read for each definition after
 * a definition of the store was changed, and a read of each head whose fields it would change. A
 * definition that was saved before the call is seen. A head that is made meanwhile is not.
 */
spill_code_t spill_array_check_others(const spill_owner_t *owner, const bson_t *update,
                                      spill_error_t *error);

/* ---- checks of arguments --------------------------------------------------------------------- */

/*
 * Check a session's operation of `count` numbers, and a match; each may be NULL. SPILL_INVALID: the
 * layout has none, or one is malformed.
 */
spill_code_t spill_array_check_session(const spill_array_t *array,
                                       const spill_session_op_t *session, size_t count,
                                       const bson_t *match, spill_error_t *error);

/*
 * Check a filter on a head's other fields: it does not name a field of the array. A store that
 * evaluates it here has the operators of spill_match. SPILL_INVALID.
 */
spill_code_t spill_array_check_match(const spill_array_t *array, const bson_t *match,
                                     spill_error_t *error);

/*
 * Check that the element is well-formed and fits a document. `index` is its index in the batch, for
 * the message. SPILL_INVALID.
 */
spill_code_t spill_array_check_element(const spill_value_t *element, size_t index,
                                       spill_error_t *error);

/*
 * Check that all strings of the well-formed element are UTF-8, unless the array keeps any text.
 * SPILL_INVALID. Cost: one pass over the element.
 */
spill_code_t spill_array_check_text(const spill_array_t *array, const spill_value_t *element,
                                    size_t index, spill_error_t *error);

/*
 * Capped with a sort_field: check that the element's value there can be compared. SPILL_INVALID: it
 * is a decimal128.
 */
spill_code_t spill_array_check_rank(const spill_definition_t *definition,
                                    const spill_value_t *element, spill_error_t *error);

/*
 * Capped with a sort_field: call spill_array_check_rank, and check that the element fits the head.
 * SPILL_TOO_BIG: it does not. It would replace all other elements. Other layouts: SPILL_OK.
 */
spill_code_t spill_array_check_top_n(const spill_owner_t *owner, const spill_value_t *element,
                                     spill_error_t *error);

/*
 * Make the update by which the caller itself appends the elements, oldest first, to an existing
 * head (spill_store_ops_t.make_push), under an operation of a session (or NULL). False: use
 * spill_array_append. (append.c)
 */
bool spill_array_make_push(spill_array_t *array, const spill_value_t *owner,
                           const spill_value_t *elements, size_t count,
                           const spill_session_op_t *session, bson_t *filter, bson_t *update);

/* Check that the definition has an id_field and that the value can be an id. SPILL_INVALID. */
spill_code_t spill_array_check_id(const spill_array_t *array, const spill_value_t *id,
                                  spill_error_t *error);

/* Layout bucket: check that the element belongs to the window `owner`. SPILL_INVALID. */
spill_code_t spill_array_check_window(const spill_owner_t *owner, const spill_value_t *element,
                                      spill_error_t *error);

/*
 * Check that the layout is bucket (`bucket`), or is not (!`bucket`). SPILL_INVALID: the message
 * begins with `what`.
 */
spill_code_t spill_array_check_layout(const spill_array_t *array, bool bucket, const char *what,
                                      spill_error_t *error);

/*
 * Call a function for every owner, until one call fails. With `pass_damaged`, log each owner that
 * is SPILL_CORRUPT and skip it; the walk then ends with SPILL_CORRUPT and the first message.
 * (owners.c)
 */
typedef spill_code_t (*spill_each_fn)(void *context, const spill_value_t *owner,
                                      spill_error_t *error);
spill_code_t spill_each_owner(spill_array_t *array, spill_each_fn call, void *context,
                              bool pass_damaged, spill_error_t *error);

/* A call that counts: it adds 1 to the int64_t at `count`. (owners.c) */
spill_code_t spill_count_call(void *count, const spill_value_t *owner, spill_error_t *error);

/* Report whether there is any owner. The array may be of a definition that is not saved. (owners.c)
 */
spill_code_t spill_array_has_owner(spill_array_t *array, bool *any, spill_error_t *error);

/*
 * spill_each_owner with `pass_damaged`, also for owners of unmanaged arrays that are not empty, if
 * spill_array_has_unmanaged. Each owner is visited once, also if its array is adopted or unmanaged
 * during the walk. A document of another program may have no place for an array: its path leads
 * through an array, for example. If such an owner is SPILL_REFUSED, log it and skip it. *skipped
 * counts these owners. (owners.c)
 */
spill_code_t spill_each_array(spill_array_t *array, spill_each_fn call, void *context,
                              int64_t *skipped, spill_error_t *error);

/*
 * Count the owners of unmanaged arrays that are not empty; 0 unless spill_array_has_unmanaged. It
 * reads only names of owners, in two walks: the count is off by what is adopted or written between
 * them. (owners.c)
 */
spill_code_t spill_count_unmanaged(spill_array_t *array, int64_t *count, spill_error_t *error);

/*
 * spill_each_owner with `pass_damaged`, for walks that work on many owners at once: calls `prepare`
 * with the next owners, at most `at_a_time`, before it calls `call` for each of them.
 */
typedef spill_code_t (*spill_prepare_fn)(void *context, const spill_listing_t *owners,
                                         spill_error_t *error);
spill_code_t spill_each_prepared(spill_array_t *array, size_t at_a_time, spill_prepare_fn prepare,
                                 spill_each_fn call, void *context, spill_error_t *error);

/* spill_each_owner for layout bucket, once for each owner. (spill_each_owner calls for each
 * window.) */
spill_code_t spill_each_bucket_owner(spill_array_t *array, spill_each_fn call, void *context,
                                     bool pass_damaged, spill_error_t *error);

/*
 * SPILL_CORRUPT if there are pages without a head, and no drop has left them, or documents without
 * the _id of a page: of this owner, or (NULL) of all. Each is logged; the message is the first
 * one's. Stores to which no other program writes: SPILL_OK. Cost: spill_each_orphan.
 * (unheaded.c)
 */
spill_code_t spill_check_unheaded(spill_array_t *array, const spill_value_t *owner,
                                  spill_error_t *error);

/*
 * The end of a walk over all owners that promises all elements: `code` and *error are the walk's.
 * Return SPILL_CORRUPT also if spill_check_unheaded does. (unheaded.c)
 */
spill_code_t spill_end_walk(spill_array_t *array, spill_code_t code, spill_error_t *error);

/* spill_array_export of one owner, for which spill_each_owner calls. (walk.c) */
spill_code_t spill_walk_owner(spill_array_t *array, const spill_value_t *owner,
                              spill_element_fn visit, void *context, spill_error_t *error);

/*
 * The same, also of an unmanaged array: its elements have the numbers from 0 on. *managed (may be
 * NULL) is false for such an array. SPILL_CONFLICT: other programs keep adopting it and giving it
 * up. (walk.c)
 */
spill_code_t spill_walk_any(spill_array_t *array, const spill_value_t *owner,
                            spill_element_fn visit, void *context, bool *managed,
                            spill_error_t *error);

/* The elements of one owner, and the bytes of their values. */
typedef struct spill_sizes {
    int64_t elements;
    int64_t bytes;
    bool managed; /* false: the array is unmanaged */
} spill_sizes_t;

/*
 * Measure an owner's array, which may be unmanaged, without a read of its elements: documents know
 * how many they have, and their bytes. An absent owner has none. For a walk that lists owners. Not
 * for referenced elements. Cost: one read of a state for each document, and one of the page with
 * the trim watermark. SPILL_CANCELLED: the store was asked to stop. SPILL_CORRUPT: a page is
 * missing; damage inside of a page is not noticed. SPILL_CONFLICT: other programs keep changing
 * which pages there are. (measure.c)
 */
spill_code_t spill_measure_any(spill_array_t *array, const spill_value_t *owner,
                               spill_sizes_t *sizes, spill_error_t *error);

/* May documents have unmanaged arrays? Other programs write to the store, and the layout is
 * outlier, keep newest. (adopt.c) */
bool spill_array_has_unmanaged(const spill_array_t *array);

/*
 * Call a function for every incarnation that has pages and no head, of all owners or of one, until
 * the function fails. (owners.c)
 */
typedef spill_code_t (*spill_orphan_fn)(void *context, const spill_orphan_t *orphan,
                                        spill_error_t *error);
spill_code_t spill_each_orphan(spill_array_t *array, const spill_value_t *owner,
                               spill_orphan_fn call, void *context, spill_error_t *error);

/*
 * Delete the pages that drops left, by notes that have stayed for their time, and forget the notes.
 * One batch; *more: there may be others. SPILL_CANCELLED: the store was stopped. (owners.c)
 */
spill_code_t spill_array_finish_drops(spill_array_t *array, bool *more, spill_error_t *error);

/*
 * Find the orphan again. *stays: it has the same pages. False: perhaps a drop is in progress. Cost:
 * a search for that owner. (verify.c)
 */
spill_code_t spill_orphan_stays(spill_array_t *array, const spill_orphan_t *orphan, bool *stays,
                                spill_error_t *error);

/*
 * Call spill_definition_beside for the definition and each other saved one in its collections.
 * SPILL_REFUSED: the message names the other one. Cost: one command, and one for each of those.
 * (define.c)
 */
spill_code_t spill_store_check_others(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error);

/* Make the error of a walk that the caller's function stopped: SPILL_CANCELLED. */
spill_code_t spill_walk_stopped(spill_error_t *error);

/* Read the definition `name` from its entry. A NULL entry is SPILL_NOT_FOUND. */
spill_code_t spill_store_read_definition(spill_store_t *store, const char *name,
                                         const bson_t *stored, spill_definition_t *definition,
                                         spill_error_t *error);

/* ---- one owner's elements, a bounded run at a time ------------------------------------------- */

/* A part of an owner's array: elements of one document from number `next` on. */
typedef struct spill_stretch {
    spill_response_t head;
    spill_response_t now; /* the head, after the page was read */
    spill_response_t page;
    bool head_is_new;       /* `head` was read after the last call's page, or by the caller */
    bool head_has_run;      /* ... with its elements from number `next` on */
    const spill_run_t *run; /* ascending; of this stretch */
    int64_t next;           /* the number from which the next call reads */
    int64_t incarnation;    /* the incarnation that the walk reads; 0 before the first call */
    bool last;
    spill_referenced_walk_t referenced; /* position among referenced elements */
} spill_stretch_t;

/*
 * Read the next part: up to 1000 elements of one document from stretch->next on, or of many
 * documents if elements are referenced. Zero the stretch before the first call; if the caller has
 * just read the head's state, it may give it with head_is_new. `last`: the walk
 * has ended. The run may be empty before that. If the owner does not exist, the first part is empty
 * and the last. If the owner is dropped, the walk ends, even if an append has created it again.
 * Cost: two store operations for a page, none for elements of the head behind it; one more for the
 * first part without head_is_new, or if elements are read from pages and from the head in turns.
 */
spill_code_t spill_stretch_read(const spill_owner_t *owner, spill_stretch_t *stretch,
                                spill_error_t *error);
void spill_stretch_release(spill_stretch_t *stretch);

/*
 * For a store that was opened with `partial`: visit the elements of an owner that can be read,
 * oldest first. *elements is their number. If `visit` is NULL, only count them. SPILL_CORRUPT: some
 * cannot be read; the message has the lowest and the highest missing number, and with `visit` each
 * hole is logged. Memory: 1000 elements or 4 MiB. Cost: reads every element once; about 10 reads
 * for each hole, and one for each missing number. (readable.c)
 */
spill_code_t spill_readable_walk(spill_owner_t *owner, spill_element_fn visit, void *context,
                                 int64_t *elements, spill_error_t *error);

/* ---- walks over the windows of one owner (layout bucket) ------------------------------------- */

/* The selected windows, as in spill_list_query_t. */
typedef struct spill_window_range {
    const char *from; /* or NULL */
    const char *to;
    bool newest_first;
    const spill_value_t *id;
} spill_window_range_t;

/*
 * Gets one window. `name` is the window as an owner for the functions of array.h. `last`: no window
 * follows. Set *stop to end the walk.
 */
typedef spill_code_t (*spill_each_window_fn)(void *context, const spill_value_t *name,
                                             const char *window, bool last, bool *stop,
                                             spill_error_t *error);

/*
 * Check the layout, and call a function for each window of the range. If `from` and `to` are the
 * same, it is called for that window, which may not exist. Cost: one store operation for the first
 * 2 windows, for the next 8, for the next 32, and for each 100 after these; none if `from` and `to`
 * are the same.
 */
spill_code_t spill_each_window(spill_array_t *array, const spill_value_t *owner,
                               const spill_window_range_t *range, spill_each_window_fn call,
                               void *context, spill_error_t *error);

/*
 * Drop windows before `before` (NULL: any), the oldest first, at most `limit`. *dropped is their
 * number. *more: there are others.
 */
spill_code_t spill_windows_drop(spill_array_t *array, const spill_value_t *owner,
                                const char *before, int64_t limit, int64_t *dropped, bool *more,
                                spill_error_t *error);

/*
 * After an append has created a window or a part of one: delete the windows that the definition
 * does not keep. A failure only writes a warning to the store's log; the next such append tries
 * again. (bucket_change.c)
 */
void spill_windows_retain(spill_array_t *array, const spill_value_t *window);

/* ---- appends to several owners (append.c) ---------------------------------------------------- */

enum { SPILL_BATCHES_MAX = 64 };

/* A batch for one owner, with its operation. */
typedef struct spill_owner_batch {
    spill_value_t owner;
    const spill_value_t *elements;
    size_t count;
    spill_op_t op;
    bool done; /* it is appended, and `result` is filled */
    spill_append_result_t result;
} spill_owner_batch_t;

/*
 * Try to append each of at most SPILL_BATCHES_MAX batches, of different owners, to the owner's
 * head, in one atomic write. A batch that is not `done` needs an append of its own with the same
 * operation, also after an error: its head is full, it was appended before, something is wrong
 * with it, or store or layout cannot append in this way.
 */
spill_code_t spill_array_append_many(spill_array_t *array, spill_owner_batch_t *batches,
                                     size_t count, spill_error_t *error);

#endif
