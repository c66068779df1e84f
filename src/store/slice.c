#include "store/slice.h"

#include <bson/bson.h>

/* A slice and what it owns. The bytes of the values are in the run, or after the elements. */
typedef struct slice_memory {
    spill_slice_t slice;
    spill_run_t run;
    spill_element_t elements[];
} slice_memory_t;

spill_slice_t *spill_slice_new(size_t count, size_t bytes, uint8_t **values)
{
    slice_memory_t *memory = bson_malloc(sizeof *memory + count * sizeof *memory->elements + bytes);
    memory->slice = (spill_slice_t){.elements = memory->elements, .memory = memory};
    memory->run = (spill_run_t){0};
    *values = (uint8_t *)(memory->elements + count);
    return &memory->slice;
}

spill_slice_t *spill_slice_of(spill_run_t *run, size_t count)
{
    uint8_t *values;
    spill_slice_t *slice = spill_slice_new(count, 0, &values);
    slice_memory_t *memory = slice->memory;
    memory->run = *run;
    *run = (spill_run_t){0};
    for (size_t i = 0; i < count; i++)
        slice->elements[i] = spill_run_element(&memory->run, i);
    slice->count = count;
    return slice;
}

void spill_slice_free(spill_slice_t *slice)
{
    if (slice == NULL)
        return;
    slice_memory_t *memory = slice->memory;
    spill_run_release(&memory->run);
    bson_free(memory);
}
