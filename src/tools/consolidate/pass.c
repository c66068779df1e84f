/* Passes over all members, repeated until one finds nothing to do. */
#include "tools/consolidate/consolidate_run.h"

#include "util/error.h"

static size_t members_of(const spill_consolidate_run_t *run, const spill_consolidate_way_t *way)
{
    return way->members > 0 ? way->members : run->group->count;
}

/* How many documents members [from, end) have by the server's estimate. */
static int64_t count_documents(const spill_consolidate_run_t *run,
                               const spill_consolidate_way_t *way, size_t from, size_t end)
{
    int64_t all = 0;
    for (size_t i = from; i < end; i++) {
        const spill_joined_t *member = &run->group->members[i];
        const char *old = way->kept ? member->kept : member->collection;
        int64_t count = run->admin->ops->count(run->admin, old);
        all += count > 0 ? count : 0;
    }
    return all;
}

/* Compare both sides and, if they differ, copy. Estimate the pause from the time of both. */
static spill_code_t compare_member(spill_copy_pass_t *copy_pass, spill_error_t *error)
{
    spill_consolidate_run_t *run = copy_pass->run;
    spill_digest_t target;
    spill_digest_t *source = &copy_pass->moved.digest;
    int64_t began_us = run->work_us;
    spill_code_t code = spill_copy_pass_digest(copy_pass, copy_pass->back, source, error);
    if (code == SPILL_OK)
        code = spill_copy_pass_digest(copy_pass, !copy_pass->back, &target, error);
    if (code == SPILL_OK && source->documents == 0)
        code = spill_copy_pass_check_source(copy_pass, error);
    if (code != SPILL_OK)
        return code;
    int64_t comparison_us = run->work_us - began_us;
    copy_pass->moved.compared = true;
    copy_pass->moved.equal = spill_digest_equal(source, &target);
    copy_pass->moved.pause_us = comparison_us;
    if (copy_pass->moved.equal)
        return SPILL_OK;
    code = spill_copy_pass_run(copy_pass, false, error);
    if (code == SPILL_OK)
        code = spill_copy_pass_remove(copy_pass, error);
    copy_pass->moved.pause_us = run->work_us - began_us + comparison_us;
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

static spill_code_t pass_member(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                                int64_t pause_us, spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    const spill_joined_t *member = &run->group->members[place->member];
    const char *old = way->kept ? member->kept : member->collection;
    spill_copy_pass_t copy_pass;
    spill_copy_pass_init(&copy_pass, run, place->member, old, way->joint, way->back);
    copy_pass.moved.pass = place->pass;
    spill_code_t code = place->pass == 1 ? spill_copy_pass_run(&copy_pass, true, error)
                                         : compare_member(&copy_pass, error);
    spill_consolidate_result_t *result = run->result;
    result->inserted += copy_pass.moved.inserted;
    result->replaced += copy_pass.moved.replaced;
    result->deleted += copy_pass.moved.deleted;
    if (code != SPILL_OK) {
        spill_fail_prefix(error, code, "%s", old);
    } else {
        place->changing += !copy_pass.moved.equal;
        add_estimate(run, &copy_pass.moved, pause_us);
        result->documents += copy_pass.moved.equal ? copy_pass.moved.digest.documents : 0;
        if (run->options->moved)
            run->options->moved(run->options->context, &copy_pass.moved);
    }
    spill_copy_pass_release(&copy_pass);
    return code;
}

/* Pass from the place to the last member. */
static spill_code_t pass_members(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                                 int64_t pause_us, spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    spill_code_t code = spill_consolidate_list(run, error);
    run->progress.pass = place->pass;
    run->progress.documents = 0;
    run->progress.collections_all = members_of(run, way);
    run->result->documents = 0;
    while (code == SPILL_OK && place->member < members_of(run, way)) {
        run->progress.collections = place->member;
        code = pass_member(run, way, pause_us, error);
        if (code != SPILL_OK)
            break;
        place->member++;
        bson_reinit(place->after);
        code = spill_consolidate_place_save(run, error);
    }
    return code;
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
    run->progress.documents_all = count_documents(run, way, before, members_of(run, way));
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
        code = pass_member(run, way, pause_us, error);
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
