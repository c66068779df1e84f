/* Reads the highest-ranked elements of layouts subset and capped. */
#include "definition/schema.h"
#include "layout/owner.h"
#include "util/error.h"

/* The run becomes the slice's. */
static spill_slice_t *make_slice(const spill_top_t *top, spill_run_t *run, int64_t limit)
{
    spill_slice_t *slice = bson_malloc0(sizeof *slice);
    spill_run_t *own = bson_malloc0(sizeof *own);
    *own = *run;
    *run = (spill_run_t){0};
    slice->memory = own;
    slice->count = (int64_t)own->count > limit ? (size_t)limit : own->count;
    slice->more = top->count > slice->count;
    slice->elements = bson_malloc0((slice->count + 1) * sizeof *slice->elements);
    for (size_t i = 0; i < slice->count; i++)
        slice->elements[i] = spill_run_element(own, i);
    return slice;
}

/* Capped, keeping the top-N: the head's elements, as they rank. */
static spill_code_t read_top_n(const spill_owner_t *owner, int64_t limit, spill_slice_t **slice,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_top_release) spill_top_t ranks = {0};
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.may_be_old = owner->array->store->reads_copies;
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    spill_top_note(&ranks, &owner->array->definition, &head.run);
    for (size_t i = 0; i < ranks.count && (int64_t)i < limit; i++)
        for (size_t k = 0; k < head.run.count; k++)
            if (head.run.entries[k].seq == ranks.at[i].seq) {
                spill_element_t element = spill_run_element(&head.run, k);
                spill_run_add(&run, element.seq, &element.value);
            }
    *slice = make_slice(&ranks, &run, limit);
    return SPILL_OK;
}

static spill_code_t read_summary(const spill_owner_t *owner, int64_t limit, spill_slice_t **slice,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_top = true;
    read.read.may_be_old = owner->array->store->reads_copies;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    *slice = make_slice(&head.state.top, &head.top_run, limit);
    return SPILL_OK;
}

spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                             spill_slice_t **slice, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, slice);
    *slice = NULL;
    SPILL_CHECK_POINTERS(error, array, owner);
    bool top_n = spill_schema_of(&array->definition)->keeps_top_n;
    if (!spill_schema_of(&array->definition)->has_top && !top_n)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has no top elements: its layout is '%s', not 'subset', or "
                          "'capped' with a sortField",
                          array->definition.name, spill_layout_name(array->definition.layout));
    if (limit < 0)
        return spill_fail(error, SPILL_INVALID, "limit cannot be negative");
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    return top_n ? read_top_n(&own, limit, slice, error) : read_summary(&own, limit, slice, error);
}
