/* Passes over all members, repeated until one finds nothing to do. */
#include "tools/consolidate/consolidate_run.h"

#include "tools/parallel.h"
#include "util/error.h"

size_t spill_consolidate_members(const spill_consolidate_run_t *run,
                                 const spill_consolidate_way_t *way)
{
    return way->members > 0 ? way->members : run->group->count;
}

const char *spill_consolidate_old_name(const spill_consolidate_run_t *run,
                                       const spill_consolidate_way_t *way, size_t member)
{
    const spill_joined_t *joined = &run->group->members[member];
    return way->kept ? joined->kept : joined->collection;
}

/* How many documents members [from, end) have by the server's estimate. */
static int64_t count_documents(const spill_consolidate_run_t *run,
                               const spill_consolidate_way_t *way, size_t from, size_t end)
{
    int64_t all = 0;
    for (size_t i = from; i < end; i++) {
        int64_t count = run->admin->ops->count(run->admin, spill_consolidate_old_name(run, way, i));
        all += count > 0 ? count : 0;
    }
    return all;
}

/* Compare both sides and, if they differ, copy. Estimate the pause from the time of both. */
static spill_code_t compare_member(spill_copy_pass_t *copy_pass, spill_error_t *error)
{
    spill_digest_t target;
    spill_digest_t *source = &copy_pass->moved.digest;
    int64_t began_us = copy_pass->work_us;
    spill_code_t code = spill_copy_pass_digest(copy_pass, copy_pass->back, source, error);
    if (code == SPILL_OK)
        code = spill_copy_pass_digest(copy_pass, !copy_pass->back, &target, error);
    if (code == SPILL_OK && source->documents == 0)
        code = spill_copy_pass_check_source(copy_pass, error);
    if (code != SPILL_OK)
        return code;
    int64_t comparison_us = copy_pass->work_us - began_us;
    copy_pass->moved.compared = true;
    copy_pass->moved.equal = spill_digest_equal(source, &target);
    copy_pass->moved.pause_us = comparison_us;
    if (copy_pass->moved.equal)
        return SPILL_OK;
    code = spill_copy_pass_run(copy_pass, error);
    if (code == SPILL_OK)
        code = spill_copy_pass_remove(copy_pass, error);
    copy_pass->moved.pause_us = copy_pass->work_us - began_us + comparison_us;
    return code;
}

/* Count the member as slow if its estimated pause is longer than pause_us. */
static void add_estimate(spill_consolidate_run_t *run, const spill_consolidate_moved_t *moved,
                         int64_t pause_us)
{
    run->slow += pause_us == SPILL_CONSOLIDATE_EQUAL
                     ? !moved->equal
                     : !moved->compared || moved->pause_us > pause_us;
    if (moved->pause_us >= run->slowest_us) {
        run->slowest = run->place.member;
        run->slowest_us = moved->pause_us;
    }
}

static void clear_estimates(spill_consolidate_run_t *run)
{
    run->slow = run->slowest = 0;
    run->slowest_us = 0;
}

void spill_consolidate_count_member(spill_consolidate_run_t *run,
                                    const spill_consolidate_moved_t *moved, int64_t pause_us)
{
    spill_consolidate_result_t *result = run->result;
    result->inserted += moved->inserted;
    result->replaced += moved->replaced;
    result->deleted += moved->deleted;
    result->documents += moved->equal ? moved->digest.documents : 0;
    run->place.changing += !moved->equal;
    add_estimate(run, moved, pause_us);
    if (run->options->moved)
        run->options->moved(run->options->context, moved);
}

void spill_consolidate_works(const spill_consolidate_run_t *run, const char *collection)
{
    if (run->options->works)
        run->options->works(run->options->context, collection);
}

spill_code_t spill_consolidate_next_member(spill_consolidate_run_t *run, spill_error_t *error)
{
    run->place.member++;
    run->progress.collections = run->place.member;
    bson_reinit(run->place.after);
    return spill_consolidate_place_save(run, error);
}

/* ---- comparing passes ------------------------------------------------------------------------ */

/* A pass in which each thread compares one member at a time. */
typedef struct comparing {
    spill_consolidate_run_t *run;
    const spill_consolidate_way_t *way;
    int64_t pause_us;
    size_t member; /* the next one */
} comparing_t;

static spill_copy_pass_t *new_copy_pass(const comparing_t *comparing, size_t member)
{
    spill_consolidate_run_t *run = comparing->run;
    spill_copy_pass_t *copy_pass = bson_malloc(sizeof *copy_pass);
    spill_copy_pass_init(copy_pass, run, member,
                         spill_consolidate_old_name(run, comparing->way, member),
                         comparing->way->joint, comparing->way->back);
    copy_pass->moved.pass = run->place.pass;
    return copy_pass;
}

static void free_copy_pass(void *item)
{
    spill_copy_pass_release(item);
    bson_free(item);
}

static spill_code_t next_member(void *context, void **item, spill_error_t *error)
{
    comparing_t *comparing = context;
    (void)error;
    *item = NULL;
    if (comparing->member < spill_consolidate_members(comparing->run, comparing->way))
        *item = new_copy_pass(comparing, comparing->member++);
    return SPILL_OK;
}

static spill_code_t work_on_member(void *context, void *item, spill_error_t *error)
{
    const spill_consolidate_run_t *run = ((const comparing_t *)context)->run;
    spill_copy_pass_t *copy_pass = item;
    spill_consolidate_works(run, copy_pass->old);
    spill_code_t code = compare_member(copy_pass, error);
    spill_consolidate_works(run, NULL);
    return code == SPILL_OK ? code : spill_fail_prefix(error, code, "%s", copy_pass->old);
}

static spill_code_t finish_member(void *context, void *item, spill_error_t *error)
{
    const comparing_t *comparing = context;
    const spill_copy_pass_t *copy_pass = item;
    spill_consolidate_count_member(comparing->run, &copy_pass->moved, comparing->pause_us);
    return spill_consolidate_next_member(comparing->run, error);
}

/* Estimates of a pause hold for a pause, in which no other member is compared: one thread. */
static spill_code_t compare_members(spill_consolidate_run_t *run,
                                    const spill_consolidate_way_t *way, int64_t pause_us,
                                    spill_error_t *error)
{
    comparing_t comparing = {
        .run = run, .way = way, .pause_us = pause_us, .member = run->place.member};
    bool estimates = pause_us != SPILL_CONSOLIDATE_EQUAL;
    const spill_parallel_t job = {.threads = estimates ? 1 : (size_t)run->options->threads,
                                  .allowed =
                                      estimates ? NULL : spill_throttle_threads(&run->throttle),
                                  .next = next_member,
                                  .work = work_on_member,
                                  .finish = finish_member,
                                  .free = free_copy_pass,
                                  .context = &comparing};
    return spill_parallel(&job, error);
}

/* Compare the current member, without saving the place. */
static spill_code_t compare_current(spill_consolidate_run_t *run,
                                    const spill_consolidate_way_t *way, int64_t pause_us,
                                    spill_error_t *error)
{
    comparing_t comparing = {.run = run, .way = way, .pause_us = pause_us};
    spill_copy_pass_t *copy_pass = new_copy_pass(&comparing, run->place.member);
    spill_code_t code = work_on_member(&comparing, copy_pass, error);
    if (code == SPILL_OK)
        spill_consolidate_count_member(run, &copy_pass->moved, pause_us);
    free_copy_pass(copy_pass);
    return code;
}

/* ---- repeated passes ------------------------------------------------------------------------- */

/* Pass from the place to the last member. */
static spill_code_t pass_members(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                                 int64_t pause_us, spill_error_t *error)
{
    const spill_consolidate_place_t *place = &run->place;
    SPILL_TRY(spill_consolidate_list(run, error));
    run->progress.pass = place->pass;
    run->progress.documents = 0;
    run->progress.collections = place->member;
    run->progress.collections_all = spill_consolidate_members(run, way);
    run->result->documents = 0;
    if (place->pass > 1)
        return compare_members(run, way, pause_us, error);
    SPILL_TRY(spill_consolidate_first_pass(run, way, pause_us, error));
    return way->back ? SPILL_OK : spill_consolidate_create_rest(run, error);
}

spill_code_t spill_consolidate_passes(spill_consolidate_run_t *run,
                                      const spill_consolidate_way_t *way, int64_t pause_us,
                                      spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    int64_t left = run->options->passes > 0 ? run->options->passes : SPILL_CONSOLIDATE_PASSES;
    spill_code_t code = spill_consolidate_place_load(run, error);
    size_t before = place->member; /* done by another run, which did not save its estimates */
    bool whole = before == 0 && bson_empty(place->after);
    if (code == SPILL_OK)
        code = spill_consolidate_place_save(run, error);
    run->progress.documents_all =
        count_documents(run, way, before, spill_consolidate_members(run, way));
    for (bool again = true; code == SPILL_OK && again; left--) {
        clear_estimates(run);
        code = pass_members(run, way, pause_us, error);
        if (code != SPILL_OK)
            break;
        run->result->passes++;
        run->progress.documents_all += count_documents(run, way, 0, before);
        before = 0;
        bool estimates = pause_us != SPILL_CONSOLIDATE_EQUAL;
        bool estimated = estimates && whole && place->pass > 1;
        run->result->changing = estimated ? run->slow : place->changing;
        again = run->result->changing > 0 && (left > 1 || estimates != estimated);
        place->pass = place->changing > 0 ? place->pass + 1 : 2;
        place->member = place->changing = 0;
        whole = true;
        code = spill_consolidate_place_save(run, error);
    }
    return code;
}

/* Report whether another pass is worth it although the estimate fits already. */
static bool shortens_pause(int64_t before_us, int64_t pause_us)
{
    const int64_t short_us = 1000000;
    return pause_us > short_us && pause_us <= before_us / 2;
}

spill_code_t spill_consolidate_conclude(spill_consolidate_run_t *run,
                                        const spill_consolidate_way_t *way, int64_t pause_us,
                                        spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    int64_t left = run->options->passes > 0 ? run->options->passes : SPILL_CONSOLIDATE_PASSES;
    spill_code_t code = spill_consolidate_list(run, error);
    int64_t before_us = INT64_MAX;
    run->progress.collections = place->member;
    for (bool again = true; code == SPILL_OK && again; left--) {
        place->changing = 0;
        run->progress.pass = place->pass;
        clear_estimates(run);
        code = compare_current(run, way, pause_us, error);
        if (code != SPILL_OK)
            break;
        run->result->passes++;
        place->pass++;
        run->result->changing = run->slow;
        again = run->slow > 0 || (pause_us != SPILL_CONSOLIDATE_EQUAL && place->changing > 0 &&
                                  shortens_pause(before_us, run->slowest_us));
        again = again && left > 1;
        before_us = run->slowest_us;
    }
    place->changing = 0;
    return code;
}
