/* Layout subset: the elements in the head's summary. */
#include "definition/fields.h"
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

spill_code_t spill_array_top(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                             spill_slice_t **slice, spill_error_t *error)
{
    *slice = NULL;
    if (!spill_has_top(&array->definition))
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has no top elements: its layout is '%s', not 'subset'",
                          array->definition.name, spill_layout_name(array->definition.layout));
    if (limit < 0)
        return spill_fail(error, SPILL_INVALID, "limit cannot be negative");
    spill_owner_t own;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_init(&own, array, owner, error);
    if (code == SPILL_OK) {
        spill_request_t read = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
        read.want_top = true;
        read.may_be_old = array->store->reads_copies;
        code = spill_owner_call(&own, &read, &head, error);
    }
    if (code == SPILL_OK)
        *slice = make_slice(&head.state.top, &head.top_run, limit);
    spill_response_release(&head);
    spill_owner_release(&own);
    return code;
}
