/*
 * Documents as a document database stores them: render one from its state and elements (render.c),
 * and read the arrays that programs without Spillway write (unmanaged.c).
 */
#ifndef SPILL_STORE_RENDER_H
#define SPILL_STORE_RENDER_H

#include "store/listing.h"
#include "store/request.h"

#include <spillway/definition.h>
#include <spillway/error.h>

#include <stdbool.h>
#include <stdint.h>

/*
 * The place of an element in a document's array. An element's rank counts from the oldest element;
 * other code uses ranks. An array that grows at the front (order: newest-first) has the elements in
 * reverse. This file has the arithmetic; store/mongo/mongo_elements.c has it as server expressions.
 */
static inline bool spill_grows_at_front(const spill_definition_t *definition)
{
    return definition->order == SPILL_ARRAY_NEWEST_FIRST;
}

/*
 * The index in a stored array of `count` elements of the element with that rank: 0 is the oldest.
 * Also the rank of the element at an index.
 */
static inline int64_t spill_array_index(const spill_definition_t *definition, int64_t count,
                                        int64_t rank)
{
    return spill_grows_at_front(definition) ? count - 1 - rank : rank;
}

/*
 * Both functions initialize `document`. `without_bookkeeping` omits `spill` and a page's _id: the
 * result has only the application's own fields.
 *
 * Head: {_id, <other fields>, <array>, <count>, <overflow>, <pages>, spill: {<array>: {...}}}.
 * Page: {_id: {owner, page}, <owner>, <page>, <array>, <count>, spill: {...}}.
 * Layout bucket: both are {_id: {owner, window, part}, <owner>, <window>, <part>, <array>,
 * <statistics>, spill: {...}}, part 0 the head. The `owner` to pass is {owner, window}.
 * Referenced elements (layouts reference and subset):
 * Head: {_id, <other fields>, <array>: {<top>, <count>, <average>}, spill: {<array>: {..., journal,
 * shown, top}}}; <top> of a subset has the elements of `top` that state->top shows, in its order.
 * Page: {_id: {owner, page}, <owner>, <the element's fields>, spill: {...}}, the fields as
 * definition/schema.h stores them; {_id, spill} if the element was removed.
 * `fields` is {_id, ...}. `run` has the document's live elements, ascending; the array has them in
 * the definition's order. A field whose name the definition leaves empty is omitted. The overflow
 * flag is omitted while it is false.
 */
void spill_render_head(const spill_definition_t *definition, const spill_state_t *state,
                       const bson_t *fields, const spill_run_t *run, const spill_run_t *top,
                       const spill_ops_t *ops, bool without_bookkeeping, bson_t *document);
void spill_render_page(const spill_definition_t *definition, const spill_value_t *owner,
                       const spill_state_t *state, const spill_run_t *run, const spill_ops_t *ops,
                       bool without_bookkeeping, bson_t *document);

/*
 * Referenced elements: append the summary of a head in that state, under the name of the array.
 * `top`: the elements that state->top shows, of a subset.
 */
void spill_render_summary(const spill_definition_t *definition, const spill_state_t *state,
                          const spill_run_t *top, bson_t *document);

/* Layout bucket: {owner, window, part} of a page (SPILL_HEAD: part 0) under a key. */
void spill_render_part_id(bson_t *document, const char *key, const spill_value_t *window,
                          int64_t page);

/* Append a head's intent, which must be set. */
void spill_render_intent(bson_t *document, const char *name, const spill_state_t *state);

/*
 * Append the deleted numbers as an array; as `gaps`, the first number and the length of each run.
 * Append nothing if there are none.
 */
void spill_render_deleted(bson_t *document, const char *name, const spill_seqs_t *deleted,
                          bool gaps);

/* ---- unmanaged arrays (unmanaged.c) ---------------------------------------------------------- */

/*
 * A program that does not know Spillway writes an array to the field that a definition names. These
 * functions are for stores that keep a head's other fields apart from its elements.
 *
 * Split a document: put the array's elements into `run` (empty or zeroed), oldest first and
 * numbered from 0, and return the other fields (bson_destroy). Return NULL if the field is missing,
 * not an array, or empty. O(document).
 */
bson_t *spill_unmanaged_split(const spill_definition_t *definition, const bson_t *document,
                              spill_run_t *run);

/* READ with `unmanaged` of an absent head whose document has these fields. */
void spill_unmanaged_read(const spill_request_t *read, const bson_t *fields,
                          spill_response_t *response);

/* Return SPILL_TOO_BIG for an ADOPT if the document is larger than request->limits allows. */
spill_code_t spill_unmanaged_allows(const spill_request_t *request, const bson_t *fields,
                                    spill_error_t *error);

/*
 * If `run`, filled by spill_unmanaged_split, begins with the elements of `first` and has more,
 * remove them from it and return true. O(elements).
 */
bool spill_unmanaged_cut(spill_run_t *run, const spill_run_t *first);

/*
 * Set elements, bytes, full and obstacle of an unmanaged array; false where spill_unmanaged_split
 * returns NULL. A document of at least `full_bytes` is full (0: none is). If a full document has
 * one element, it has no room for bookkeeping. O(document).
 */
bool spill_unmanaged_measure(const spill_definition_t *definition, const bson_t *document,
                             int64_t full_bytes, spill_oversized_t *measured);

/*
 * Return the document with an array of the `older` and then the `newer` elements, in the
 * definition's order (bson_destroy). O(document).
 */
bson_t *spill_unmanaged_join(const spill_definition_t *definition, const bson_t *document,
                             const spill_run_t *older, const spill_run_t *newer);

/*
 * May a head be made in a document with these fields? Return SPILL_REFUSED if its place has an
 * unmanaged array that is not empty, or another value.
 */
spill_code_t spill_unmanaged_check(const spill_definition_t *definition, const bson_t *fields,
                                   spill_error_t *error);

/*
 * Add to the fields the documents around the paths of the array's own fields, which every head has.
 * SPILL_REFUSED: one of these is another value. *fields is on the heap; it grows by *added bytes.
 */
spill_code_t spill_unmanaged_prepare(const spill_definition_t *definition, bson_t **fields,
                                     int64_t *added, spill_error_t *error);

/* After the last head was dropped: remove those documents again if they are empty. */
void spill_unmanaged_forget(const spill_definition_t *definition, bson_t **fields);

/* A value that is not a document, in place of a document around a field of a definition. */
typedef struct spill_obstruction {
    const char *collection;
    const char *path; /* of the field */
    size_t length; /* the value stands at the first bytes of the path; 0: it is not known where */
    bson_type_t type; /* of the value; only arrays have advice of their own */
    bool has_head;    /* the head exists, so another program has written the value since */
} spill_obstruction_t;

/* The error for such a value: SPILL_REFUSED, or SPILL_CORRUPT if the head exists. */
spill_code_t spill_path_refuse(const spill_obstruction_t *found, spill_error_t *error);

/* The error for an unmanaged array of `length` elements. */
spill_code_t spill_unmanaged_refuse(const spill_definition_t *definition, int64_t length,
                                    spill_error_t *error);

/* Append an array of that name: `older`, then `newer`, in the definition's order. */
void spill_unmanaged_append(const spill_definition_t *definition, const char *name,
                            const spill_run_t *older, const spill_run_t *newer, bson_t *to);

#endif
