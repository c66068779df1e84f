/* The limits of heads and pages. */
#include "layout/document_limits.h"

/* How many elements concurrent appends may add to a keep-newest head that is due for a spill. */
static int64_t slack(const spill_bounds_t *bounds)
{
    return bounds->page_capacity / 8 + 1;
}

spill_limits_t spill_head_limits(const spill_definition_t *definition, const spill_bounds_t *bounds)
{
    int64_t slots_max = bounds->threshold;
    if (spill_schema_of(definition)->appends_to_head && spill_schema_of(definition)->has_pages)
        slots_max += bounds->page_capacity + slack(bounds);
    return (spill_limits_t){.slots_max = slots_max, .bytes_max = bounds->head_bytes_max};
}

spill_limits_t spill_page_limits(const spill_bounds_t *bounds)
{
    return (spill_limits_t){.slots_max = bounds->page_capacity,
                            .bytes_max = bounds->page_bytes_max};
}

spill_limits_t spill_document_limits(const spill_definition_t *definition,
                                     const spill_bounds_t *bounds, bool head)
{
    return head ? spill_head_limits(definition, bounds) : spill_page_limits(bounds);
}
