/*
 * Bring: one pass from a definition whose arrays are laid out in place, the original, into the one
 * that is planned for them, which is forming (core/building.h), owner by owner. It is a copy
 * (tools/copy.h) into arrays that nobody else changes, so what does not agree with the original any
 * more is made anew. The original is only read.
 */
#ifndef SPILL_TOOLS_CATCH_UP_H
#define SPILL_TOOLS_CATCH_UP_H

#include "tools/copy.h"
#include "tools/migrate.h"

/* Added to. */
typedef struct spill_catch_up_result {
    spill_copy_result_t copied; /* `differences`: owners that were changed as fast as that */
    int64_t anew;               /* owners brought from the start again: they had been edited */
    int64_t gone;               /* owners dropped, whose document or array the application has */
    int64_t failed;             /* owners that were passed over */
    uint64_t hash; /* the sum of one for each owner: the same for the same arrays, in any order */
} spill_catch_up_result_t;

/*
 * Are arrays of `original` still to be brought into `name`? SPILL_REFUSED: that is being finished
 * or undone, or was. Two reads.
 */
spill_code_t spill_catch_up_check(spill_store_t *store, const char *original, const char *name,
                                  spill_error_t *error);

/*
 * Has the original pages without a head (of this owner; NULL: of any), which no drop has left? They
 * may be the only copy of their elements. SPILL_REFUSED.
 */
spill_code_t spill_catch_up_check_pages(spill_array_t *original, const spill_value_t *owner,
                                        spill_error_t *error);

/*
 * Bring all owners of `original` into `name`, and compare them element for element. SPILL_REFUSED:
 * it is being finished or undone. Owners that
 * fail (an element that the planned layout cannot have; a damaged array) are passed over and told.
 * Whatever ends the pass, the same call goes on. `progress` of the options is not called. Cost: as
 * spill_copy; an owner that was brought before is read and compared.
 */
spill_code_t spill_catch_up(spill_store_t *store, const char *original, const char *name,
                            const spill_migrate_options_t *options, spill_catch_up_result_t *result,
                            spill_error_t *error);

#endif
