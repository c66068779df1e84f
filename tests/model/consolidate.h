/* A consolidation of three small collections in memory, for the tests of it. */
#ifndef TESTS_MODEL_CONSOLIDATE_H
#define TESTS_MODEL_CONSOLIDATE_H

#include "support/memory_admin.h"
#include "tools/consolidate/consolidate.h"

typedef struct world {
    memory_admin_t *memory;
    spill_raw_admin_t *admin;
    spill_consolidation_t group;
    spill_consolidate_options_t options;
    spill_consolidate_result_t result;
    spill_error_t error;
} world_t;

typedef spill_code_t (*step_fn)(spill_raw_admin_t *, const spill_consolidation_t *,
                                const spill_consolidate_options_t *, spill_consolidate_result_t *,
                                spill_error_t *);

/* All documents of the three, by the names that they have, with those of the joint one. */
typedef struct picture {
    char *texts[4];
} picture_t;

/* The plan, with that rule for _ids. */
void read_group(world_t *world, const char *ids);
/* Three collections; with `compound` two documents of one _id. */
void world_open(world_t *world, const char *ids);
void world_close(world_t *world);
spill_code_t world_run(world_t *world, step_fn step);
void assert_done(world_t *world, step_fn step);
/* It is, with a message that has the text. */
void assert_refused(world_t *world, step_fn step, const char *text);
/* By the old names, or by those that they are kept aside by. */
picture_t picture_of(world_t *world, bool kept);
void picture_release(picture_t *picture);
void assert_same(const picture_t *left, const picture_t *right, int count);
bool world_has(world_t *world, const char *name);
/* Steps by name (copy, cut over, finish, undo), up to the first that fails. */
spill_code_t world_run_to(world_t *world, const char *steps);
/* What a look says has the text. */
void assert_says(world_t *world, const char *wanted);
/* Each old document, by the name it has or is kept by, has its image, and there is no other. */
void assert_joint(world_t *world, bool kept);

/* A clock by which each call of the store takes `call_us`. */
typedef struct call_clock {
    world_t *world;
    int64_t call_us;
    int64_t aside_us; /* if not 0: from the moment in which a collection is put aside */
} call_clock_t;
/* Time passes by that alone, and a pause is of one second at most. */
void set_call_clock(world_t *world, call_clock_t *clock);

#endif
