/* A consolidation of three small collections in memory, for its tests. */
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

/* All documents of the three collections under their present names, and of the joint collection. */
typedef struct picture {
    char *texts[4];
} picture_t;

/* Read the plan with that rule for _ids. */
void read_group(world_t *world, const char *ids);
/* Create three collections; with `compound` ids, two documents have the same _id. */
void world_open(world_t *world, const char *ids);
void world_close(world_t *world);
spill_code_t world_run(world_t *world, step_fn step);
void assert_done(world_t *world, step_fn step);
/* The step is refused with a message that has the text. */
void assert_refused(world_t *world, step_fn step, const char *text);
/* Read the collections by their old names, or by the names under which they are kept. */
picture_t picture_of(world_t *world, bool kept);
void picture_release(picture_t *picture);
void assert_same_picture(const picture_t *left, const picture_t *right, int count);
bool world_has(world_t *world, const char *name);
/* Run steps by name (copy, cut over, finish, undo) until one fails. */
spill_code_t world_run_to(world_t *world, const char *steps);
/* The status has this text. */
void assert_says(world_t *world, const char *wanted);
/*
 * Each old document, in a collection with its own or its kept name, has its transformed document in
 * the joint collection, which has no others.
 */
void assert_joint(world_t *world, bool kept);

/* A clock that advances by `call_us` with each call of the store. */
typedef struct call_clock {
    world_t *world;
    int64_t call_us;
    int64_t aside_us; /* instead, if not 0, once a collection was put aside */
} call_clock_t;
/* Only the calls advance the clock; a pause lasts one second at most. */
void set_call_clock(world_t *world, call_clock_t *clock);

#endif
