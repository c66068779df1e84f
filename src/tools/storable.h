/* Which elements another definition cannot have: asked before anything is copied to it. */
#ifndef SPILL_TOOLS_STORABLE_H
#define SPILL_TOOLS_STORABLE_H

#include "layout/owner.h"

/*
 * Can a definition refuse an element for what it is? Layouts reference and subset can, for the
 * names of its fields; layout capped with a sortField can, for what it would rank by.
 */
bool spill_storable_is_asked(const spill_definition_t *definition);

/* May elements of `from` be refused by `to`? False if `from` has the same rules. */
bool spill_storable_differs(const spill_definition_t *from, const spill_definition_t *to);

/* SPILL_INVALID: `to` cannot have this element of `owner`; the message names both. */
spill_code_t spill_storable_check(const spill_definition_t *to, const spill_owner_t *owner,
                                  const spill_element_t *element, spill_error_t *error);

/*
 * The same question about all elements of an owner, whose array may also be unmanaged: the message
 * names the first element that `to` cannot have. An owner that is not there is no error. Cost: if
 * the definition is asked at all, a read of every element.
 */
spill_code_t spill_storable_check_owner(const spill_definition_t *to, const spill_owner_t *owner,
                                        spill_error_t *error);

#endif
