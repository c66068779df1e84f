/* The error of a command that names an owner which does not exist. */
#ifndef SPILL_TOOLS_MISSING_OWNER_H
#define SPILL_TOOLS_MISSING_OWNER_H

#include "bson/value.h"

#include <spillway/error.h>

/*
 * Fail with SPILL_NOT_FOUND: the definition `name` has no such owner. If the owner is a string with
 * the digits of an ObjectId, the message shows how to write an ObjectId. Returns SPILL_NOT_FOUND.
 */
spill_code_t spill_fail_no_owner(const char *name, const spill_value_t *owner,
                                 spill_error_t *error);

#endif
