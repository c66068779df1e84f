/*
 * Catch up: one pass that copies the arrays of a definition, the original, into its planned
 * definition, owner by owner. The original is an array migrated in place. The planned definition is
 * still building (core/array.h), so no other program writes to it. A pass is a copy
 * (tools/definition_jobs.h). If an owner no longer agrees with the original, the pass drops its
 * copy and copies it again. The pass only reads the original.
 */
#ifndef SPILL_TOOLS_CATCH_UP_H
#define SPILL_TOOLS_CATCH_UP_H

#include "tools/definition_jobs.h"
#include "tools/migrate.h"

/* A pass adds to these numbers. */
typedef struct spill_catch_up_result {
    spill_copy_result_t copied; /* `differences`: owners that changed during every attempt */
    int64_t recopied;           /* owners copied again from the start: they had been edited */
    int64_t deleted; /* owners dropped: the application has removed their document or array */
    int64_t failed;  /* owners that were skipped */
    uint64_t hash;   /* sum of one hash per owner: equal for equal arrays, in any order */
} spill_catch_up_result_t;

/*
 * Check that the arrays of `original` are still to be copied into `name`. SPILL_REFUSED: the
 * migration is being finished or undone, or was finished or undone. Cost: two reads.
 */
spill_code_t spill_catch_up_check(spill_store_t *store, const char *original, const char *name,
                                  spill_error_t *error);

/*
 * Check that the original has no pages without a head, except what an interrupted drop left. Such
 * pages may be the only copy of their elements: SPILL_REFUSED. `owner`: NULL checks all owners.
 */
spill_code_t spill_catch_up_check_pages(spill_array_t *original, const spill_value_t *owner,
                                        spill_error_t *error);

/*
 * Catch up all owners of `original` in `name`, and compare them element by element. SPILL_REFUSED:
 * the migration is being finished or undone. An owner that fails is skipped and reported, for
 * example if its array is damaged or the planned layout cannot store an element. After an
 * interruption, call again to continue. The options' `progress` is not called. Cost: as spill_copy;
 * an owner that is already in `name` is read and compared.
 */
spill_code_t spill_catch_up(spill_store_t *store, const char *original, const char *name,
                            const spill_migrate_options_t *options, spill_catch_up_result_t *result,
                            spill_error_t *error);

#endif
