/* Passes over all members, until one finds nothing to do. */
#include "tools/consolidate/run.h"

#include "util/error.h"

/* How many documents the server believes members [from, end) have. */
static int64_t count_documents(const spill_consolidate_run_t *run,
                               const spill_consolidate_way_t *way, size_t from, size_t end)
{
    int64_t all = 0;
    for (size_t i = from; i < end; i++) {
        const spill_joined_t *member = &run->group->members[i];
        const char *old = way->kept ? member->kept : member->collection;
        int64_t count = run->foreign->ops->count(run->foreign, old);
        all += count > 0 ? count : 0;
    }
    return all;
}

/* Compare both sides and, where they differ, make them the same. */
static spill_code_t compare(spill_mirror_t *mirror, spill_error_t *error)
{
    spill_digest_t target;
    spill_digest_t *source = &mirror->moved.digest;
    spill_code_t code = spill_mirror_digest(mirror, mirror->back, source, error);
    if (code == SPILL_OK)
        code = spill_mirror_digest(mirror, !mirror->back, &target, error);
    if (code == SPILL_OK && source->documents == 0)
        code = spill_mirror_check_source(mirror, error);
    if (code != SPILL_OK)
        return code;
    mirror->moved.compared = true;
    mirror->moved.equal = spill_digest_equal(source, &target);
    if (mirror->moved.equal)
        return SPILL_OK;
    code = spill_mirror_bring(mirror, false, error);
    return code == SPILL_OK ? spill_mirror_remove(mirror, error) : code;
}

static spill_code_t pass_member(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                                spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    const spill_joined_t *member = &run->group->members[place->member];
    const char *old = way->kept ? member->kept : member->collection;
    spill_mirror_t mirror;
    spill_mirror_init(&mirror, run, place->member, old, way->joint, way->back);
    mirror.moved.pass = place->pass;
    spill_code_t code =
        place->pass == 1 ? spill_mirror_bring(&mirror, true, error) : compare(&mirror, error);
    spill_consolidate_result_t *result = run->result;
    result->inserted += mirror.moved.inserted;
    result->replaced += mirror.moved.replaced;
    result->deleted += mirror.moved.deleted;
    if (code != SPILL_OK) {
        spill_fail_prefix(error, code, "%s", old);
    } else {
        place->changing += !mirror.moved.equal;
        result->documents += mirror.moved.equal ? mirror.moved.digest.documents : 0;
        if (run->options->moved)
            run->options->moved(run->options->context, &mirror.moved);
    }
    spill_mirror_release(&mirror);
    return code;
}

/* From the place on to the last member. */
static spill_code_t pass(spill_consolidate_run_t *run, const spill_consolidate_way_t *way,
                         spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    spill_code_t code = spill_consolidate_list(run, error);
    run->progress.pass = place->pass;
    run->progress.documents = 0;
    run->progress.collections_all = run->group->count;
    run->result->documents = 0;
    while (code == SPILL_OK && place->member < run->group->count) {
        run->progress.collections = place->member;
        code = pass_member(run, way, error);
        if (code != SPILL_OK)
            break;
        place->member++;
        bson_reinit(&place->after);
        code = spill_consolidate_place_save(run, error);
    }
    return code;
}

static int64_t changes(const spill_consolidate_result_t *result)
{
    return result->inserted + result->replaced + result->deleted;
}

spill_code_t spill_consolidate_passes(spill_consolidate_run_t *run,
                                      const spill_consolidate_way_t *way, int64_t near,
                                      spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    int64_t left = run->options->passes > 0 ? run->options->passes : SPILL_CONSOLIDATE_PASSES;
    spill_code_t code = spill_consolidate_place_load(run, error);
    size_t before = place->member; /* done by another run */
    bool whole = before == 0 && bson_empty(&place->after);
    if (code == SPILL_OK)
        code = spill_consolidate_place_save(run, error);
    run->progress.documents_all = count_documents(run, way, before, run->group->count);
    for (bool again = true; code == SPILL_OK && again; left--) {
        int64_t changed = changes(run->result);
        code = pass(run, way, error);
        if (code != SPILL_OK)
            break;
        run->result->passes++;
        run->progress.documents_all += count_documents(run, way, 0, before);
        before = 0;
        bool is_near = whole && changes(run->result) - changed <= near;
        run->result->changing = is_near ? 0 : place->changing;
        again = run->result->changing > 0 && left > 1;
        place->pass = place->changing > 0 ? place->pass + 1 : 2;
        place->member = place->changing = 0;
        whole = true;
        code = spill_consolidate_place_save(run, error);
    }
    return code;
}

spill_code_t spill_consolidate_settle(spill_consolidate_run_t *run,
                                      const spill_consolidate_way_t *way, int64_t near,
                                      spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    int64_t left = run->options->passes > 0 ? run->options->passes : SPILL_CONSOLIDATE_PASSES;
    spill_code_t code = spill_consolidate_list(run, error);
    run->progress.collections = place->member;
    for (bool again = true; code == SPILL_OK && again; left--) {
        int64_t changed = changes(run->result);
        place->changing = 0;
        run->progress.pass = place->pass;
        code = pass_member(run, way, error);
        if (code != SPILL_OK)
            break;
        run->result->passes++;
        place->pass++;
        bool is_near = changes(run->result) - changed <= near;
        run->result->changing = is_near ? 0 : place->changing;
        again = run->result->changing > 0 && left > 1;
    }
    place->changing = 0;
    return code;
}
