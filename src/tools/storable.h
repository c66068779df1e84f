/* Which elements a definition cannot store: checked before anything is copied to it. */
#ifndef SPILL_TOOLS_STORABLE_H
#define SPILL_TOOLS_STORABLE_H

#include "layout/owner.h"

/*
 * Report whether a definition may refuse an element because of its value. Layouts reference and
 * subset may, because of its field names; layout capped with a sortField may, because of its rank.
 */
bool spill_storable_may_refuse(const spill_definition_t *definition);

/* Report whether `to` may refuse elements of `from`. False if `from` has the same rules. */
bool spill_storable_differs(const spill_definition_t *from, const spill_definition_t *to);

/* SPILL_INVALID: `to` cannot store this element of `owner`; the message names both. */
spill_code_t spill_storable_check(const spill_definition_t *to, const spill_owner_t *owner,
                                  const spill_element_t *element, spill_error_t *error);

/*
 * Check all elements of an owner, which may have an unmanaged array. The message names the first
 * element that `to` cannot store. A missing owner is no error. Cost: if the definition may refuse
 * elements, a read of every element.
 */
spill_code_t spill_storable_check_owner(const spill_definition_t *to, const spill_owner_t *owner,
                                        spill_error_t *error);

#endif
