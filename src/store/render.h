/* A document as a document database would hold it, from its state and elements. */
#ifndef SPILL_STORE_RENDER_H
#define SPILL_STORE_RENDER_H

#include "store/request.h"

/*
 * Both initialize `document`. With `without_bookkeeping`, bookkeeping (`spill`, and a page's _id)
 * is left out: what remains is the source's document.
 *
 * Head: {_id, <other fields>, <array>, <count>, <overflow>, <pages>, spill: {<array>: {...}}}.
 * Page: {_id: {owner, page}, <owner>, <page>, <array>, <count>, spill: {...}}.
 * Layout bucket: both are {_id: {owner, window, part}, <owner>, <window>, <part>, <array>,
 * <statistics>, spill: {...}}, part 0 the head. The owner that is passed is {owner, window}.
 * Elements apart (layouts reference and subset):
 * Head: {_id, <other fields>, <array>: {<top>, <count>, <average>}, spill: {<array>: {..., journal,
 * shown, top}}}, of a subset the elements of `top` that state->top shows, in its order.
 * Page: {_id: {owner, page}, <owner>, <the element's fields>, spill: {...}}, the fields as
 * definition/stored_element.h stores them; {_id, spill} if the element was removed.
 * `fields` is {_id, ...}; `run` holds the document's live elements, ascending; they stand in the
 * array by the definition's order. Names that the definition leaves empty are left out; the
 * overflow flag is written once it is true.
 */
void spill_render_head(const spill_definition_t *definition, const spill_state_t *state,
                       const bson_t *fields, const spill_run_t *run, const spill_run_t *top,
                       const spill_ops_t *ops, bool without_bookkeeping, bson_t *document);
void spill_render_page(const spill_definition_t *definition, const spill_value_t *owner,
                       const spill_state_t *state, const spill_run_t *run, const spill_ops_t *ops,
                       bool without_bookkeeping, bson_t *document);

/*
 * Elements apart: the summary of a head in that state, under the name of the array. `top`: the
 * elements that state->top shows, of a subset.
 */
void spill_render_summary(const spill_definition_t *definition, const spill_state_t *state,
                          const spill_run_t *top, bson_t *document);

/* Layout bucket: {owner, window, part} of a page (SPILL_HEAD: part 0) under a key. */
void spill_render_part_id(bson_t *document, const char *key, const spill_value_t *window,
                          int64_t page);

/* A count as the sources' drivers write it, an int32 while it fits. Nothing under an empty name. */
void spill_render_count(bson_t *document, const char *name, int64_t count);

/* A head's intent, which it has. */
void spill_render_intent(bson_t *document, const char *name, const spill_state_t *state);

/*
 * The numbers that are gone, in an array; as `gaps` the first number of each run, and how many it
 * has. Nothing if there are none.
 */
void spill_render_deleted(bson_t *document, const char *name, const spill_seqs_t *deleted,
                          bool gaps);

#endif
