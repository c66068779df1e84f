/* What the files of a migration in place share: a pass over an array's owners. */
#ifndef SPILL_TOOLS_MIGRATE_MIGRATE_PASS_H
#define SPILL_TOOLS_MIGRATE_MIGRATE_PASS_H

#include "core/array.h"
#include "layout/reshape.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/migrate_place.h"

#include <pthread.h>

/*
 * How many owners one query returns: when they are only counted; when the pass stores its place,
 * which is between two queries; and when each is reshaped while the next query runs.
 */
enum { SPILL_OWNERS_SURVEYED = 256, SPILL_OWNERS_PLACED = 64, SPILL_OWNERS_AT_A_TIME = 16 };

/* Several threads may each work on one owner. */
typedef struct spill_migrate_pass {
    spill_array_t *array;
    const spill_migrate_options_t *options; /* NULL: one thread, and no reports */
    spill_migrate_result_t *result;
    int64_t moved, pages;         /* of owners that are in progress: not yet in `result` */
    spill_migrate_place_t *place; /* of a resumed search; or NULL */
    pthread_mutex_t report_lock;  /* held over the numbers, and while the callbacks run */
} spill_migrate_pass_t;

spill_migrate_pass_t spill_migrate_pass_begin(spill_array_t *array,
                                              const spill_migrate_options_t *options,
                                              spill_migrate_result_t *result);

/*
 * Call a function for each owner with an oversized or unmanaged array, once, by several threads.
 * Begins at the pass's place.
 */
typedef spill_code_t (*spill_migrate_visit_fn)(spill_migrate_pass_t *pass,
                                               const spill_oversized_t *oversized,
                                               spill_error_t *error);
spill_code_t spill_migrate_each(spill_migrate_pass_t *pass, spill_migrate_visit_fn visit,
                                size_t at_a_time, spill_error_t *error);

/* Load the place of such a pass (tools/migrate/migrate_place.h) if options->resumes, else nothing.
 */
spill_code_t spill_migrate_pass_place(spill_migrate_pass_t *pass, spill_migrate_place_t *place,
                                      spill_error_t *error);

/* A walk over managed owners, each once. */
typedef struct spill_owners_walk {
    spill_array_t *array;
    int threads;
    const atomic_int *allowed;    /* as in spill_parallel_t; may be NULL */
    spill_migrate_place_t *place; /* the walk begins behind it; NULL: with the first owner */
    /*
     * Called by one thread at a time, beside `call`, with the next owners: at most
     * SPILL_OWNERS_PLACED. It sets `done` of those that need no call. May be NULL.
     */
    spill_code_t (*prepare)(void *context, const spill_listing_t *owners, bool *done,
                            spill_error_t *error);
    spill_each_fn call; /* by several threads */
    void *context;
} spill_owners_walk_t;

spill_code_t spill_migrate_each_owner(const spill_owners_walk_t *walk, spill_error_t *error);

/* Wait for the throttle before an owner is changed, and report the duration to it afterwards. */
spill_code_t spill_migrate_wait(spill_migrate_pass_t *pass, int64_t *started_us,
                                spill_error_t *error);
void spill_migrate_end_turn(spill_migrate_pass_t *pass, int64_t elements, int64_t started_us);

/* Report that this thread begins to work on an owner, and (NULL) ends it. */
void spill_migrate_works(const spill_migrate_options_t *options, const spill_value_t *owner);

/*
 * A step of an owner moved elements to pages, and the owner is not done yet: progress shows them.
 * Before the owner is reported, take its steps back with negative numbers, which shows nothing.
 */
void spill_migrate_step_done(spill_migrate_pass_t *pass, int64_t elements, int64_t pages);

/*
 * Report an owner, and add to the result what it adds. `code` and `failure` are its outcome. If the
 * failure concerns this owner only, the result is SPILL_OK.
 */
spill_code_t spill_migrate_report(spill_migrate_pass_t *pass, spill_code_t code,
                                  const spill_error_t *failure, const spill_migrate_result_t *added,
                                  spill_migrated_t *migrated, spill_error_t *error);

/* The same for an owner that adds nothing: report it only if it failed. */
spill_code_t spill_migrate_report_failure(spill_migrate_pass_t *pass, const spill_value_t *owner,
                                          spill_code_t code, const spill_error_t *failure,
                                          spill_error_t *error);

/* Report whether the owner has an unmanaged array that is not empty. One read. */
spill_code_t spill_migrate_is_unmanaged(const spill_migrate_pass_t *pass,
                                        const spill_value_t *value, bool *unmanaged,
                                        spill_error_t *error);

/* Report owners after their document was deleted or replaced. One search, and two reads for each.
 */
spill_code_t spill_migrate_report_orphans(spill_migrate_pass_t *pass, spill_error_t *error);

#endif
