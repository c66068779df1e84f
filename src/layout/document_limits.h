/* The limits of a head and of a page: how many slots and bytes each may have. */
#ifndef SPILL_LAYOUT_DOCUMENT_LIMITS_H
#define SPILL_LAYOUT_DOCUMENT_LIMITS_H

#include "definition/schema.h"
#include "store/transition.h"

/* Limits of a head and of a page. Verify passes the largest bounds that the definition ever had. */
spill_limits_t spill_head_limits(const spill_definition_t *definition,
                                 const spill_bounds_t *bounds);
spill_limits_t spill_page_limits(const spill_bounds_t *bounds);
spill_limits_t spill_document_limits(const spill_definition_t *definition,
                                     const spill_bounds_t *bounds, bool head);

#endif
