#include "definition/schema.h"
#include "layout/outlier.h"

/* Room for racers: how far a keep-newest head may pass the point where it spills. */
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

int64_t spill_document_after(const spill_schema_t *schema, int64_t page, int64_t pages)
{
    if (!schema->appends_to_head)
        return page + 1 < pages ? page + 1 : SPILL_NO_DOCUMENT; /* the head is -1 */
    if (page == SPILL_HEAD)
        return SPILL_NO_DOCUMENT;
    return page + 1 < pages ? page + 1 : SPILL_HEAD;
}

int64_t spill_document_before(const spill_schema_t *schema, int64_t page, int64_t pages)
{
    if (!schema->appends_to_head)
        return page == SPILL_HEAD ? SPILL_NO_DOCUMENT : page - 1; /* before page 0: the head */
    if (page == SPILL_HEAD)
        return pages > 0 ? pages - 1 : SPILL_NO_DOCUMENT;
    return page > 0 ? page - 1 : SPILL_NO_DOCUMENT;
}
