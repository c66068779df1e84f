/*
 * Undoing. Until the cut-over the joint collection is a copy, and is dropped. After it, the
 * application writes to the slices of the opened collections. If any slice is open, the joint
 * collection is put aside, so that no client writes to it. Then each of these old collections is
 * made equal to its slice. Last, all old collections are renamed back.
 */
#include "tools/consolidate/consolidate_run.h"

#include "util/error.h"

#include <inttypes.h>

/* ---- checks ---------------------------------------------------------------------------------- */

/* Find the joint collection's first document that belongs to no old one and cannot be copied back.
 */
static spill_code_t find_stranger(spill_consolidate_run_t *run, const char *joint,
                                  spill_raw_admin_batch_t *batch, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    bson_t condition, values;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, group->field, &condition);
    BSON_APPEND_ARRAY_BEGIN(&condition, "$nin", &values);
    for (size_t i = 0; i < group->count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&group->members[i].value, &values, key);
    }
    bson_append_array_end(&condition, &values);
    bson_append_document_end(&filter, &condition);
    spill_raw_admin_read_t what = {
        .collection = joint, .filter = &filter, .ids_only = true, .limit = 1};
    return run->admin->ops->read(run->admin, &what, batch, error);
}

static spill_code_t check_strangers(spill_consolidate_run_t *run, const char *joint,
                                    spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    SPILL_TRY(find_stranger(run, joint, &batch, error));
    if (batch.count == 0)
        return SPILL_OK;
    char *text = bson_as_relaxed_extended_json(batch.documents[0], NULL);
    spill_fail(error, SPILL_REFUSED,
               "'%s' has documents that would be lost, because their '%s' is of no old "
               "collection; the first is %s",
               joint, run->group->field, text);
    bson_free(text);
    return SPILL_REFUSED;
}

/* Check that it can be undone, with this many slices open. Nothing is changed. */
static spill_code_t check_undo(spill_consolidate_run_t *run, size_t open, spill_error_t *error)
{
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHING ||
        run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHED)
        return spill_fail(error, SPILL_REFUSED,
                          "the old collections are being dropped, or no longer exist: it cannot "
                          "be undone");
    SPILL_TRY(spill_consolidate_list(run, error));
    SPILL_TRY(spill_consolidate_check_names(run, error));
    if (spill_consolidate_kind_of(run, run->group->into, NULL) == SPILL_CONSOLIDATE_COLLECTION)
        SPILL_TRY(check_strangers(run, run->group->into, error));
    return open > 0 ? spill_consolidate_check_ids(run, run->group->into, error) : SPILL_OK;
}

/* Append the member to `differing` if its slice differs from its collection. */
static spill_code_t compare_slice(spill_consolidate_run_t *run, size_t index, bson_t *differing,
                                  spill_error_t *error)
{
    const spill_joined_t *member = &run->group->members[index];
    SPILL_SCOPED(spill_copy_pass_release) spill_copy_pass_t copy_pass;
    spill_digest_t old, now;
    spill_copy_pass_init(&copy_pass, run, index, member->kept, run->group->into, true);
    SPILL_TRY(spill_copy_pass_digest(&copy_pass, false, &old, error));
    SPILL_TRY(spill_copy_pass_digest(&copy_pass, true, &now, error));
    if (spill_digest_equal(&old, &now))
        return SPILL_OK;
    char buffer[16];
    const char *key;
    bson_uint32_to_string(bson_count_keys(differing), &key, buffer, sizeof buffer);
    BCON_APPEND(differing, key, "{", "collection", BCON_UTF8(member->collection), "before",
                BCON_INT64(old.documents), "now", BCON_INT64(now.documents), "}");
    return SPILL_OK;
}

/* Compare the slices of the first `open` members with their collections. */
static spill_code_t compare_open(spill_consolidate_run_t *run, size_t open, bson_t *differing,
                                 spill_error_t *error)
{
    run->progress.collections_all = open;
    for (size_t i = 0; i < open; i++) {
        run->progress.collections = i;
        SPILL_TRY(compare_slice(run, i, differing, error));
    }
    return SPILL_OK;
}

/* Report what an undo would do; a refusal is part of the report. */
static spill_code_t report_undo(spill_consolidate_run_t *run, bson_t *report, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    spill_error_t refusal = {0};
    SPILL_SCOPED(bson_destroy) bson_t differing = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t refused = BSON_INITIALIZER;
    size_t open = 0;
    SPILL_TRY(spill_consolidate_place_load(run, error));
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_CUTTING)
        open = run->place.member;
    else if (run->checkpoint.phase == SPILL_CONSOLIDATE_CUT)
        open = group->count;
    if (run->checkpoint.stored) {
        spill_code_t checked = check_undo(run, open, &refusal);
        if (checked == SPILL_REFUSED)
            spill_consolidate_add_text(&refused, "%s", refusal.message);
        else if (checked != SPILL_OK)
            return spill_fail(error, checked, "%s", refusal.message);
    }
    SPILL_TRY(compare_open(run, open, &differing, error));
    BSON_APPEND_UTF8(report, "into", group->into);
    BSON_APPEND_UTF8(report, "phase", spill_consolidate_phase_name(run->checkpoint.phase));
    BSON_APPEND_ARRAY(report, "goesBack", &differing);
    BSON_APPEND_ARRAY(report, "refused", &refused);
    return SPILL_OK;
}

spill_code_t spill_consolidate_report_undo(spill_raw_admin_t *admin,
                                           const spill_consolidation_t *group,
                                           const spill_consolidate_options_t *options,
                                           bson_t *report, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_consolidate_result_t result;
    bson_init(report);
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, &result, error);
    return code == SPILL_OK ? report_undo(&run, report, error) : code;
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* Put the joint collection aside, and copy its documents back to the old collections. */
static spill_code_t copy_back(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    spill_consolidate_way_t way = {
        .joint = group->aside, .kept = true, .back = true, .members = (size_t)run->checkpoint.open};
    SPILL_TRY(spill_consolidate_list(run, error));
    SPILL_TRY(spill_consolidate_check_names(run, error));
    if (spill_consolidate_kind_of(run, group->aside, NULL) == SPILL_CONSOLIDATE_ABSENT)
        SPILL_TRY(spill_consolidate_rename(run, group->into, group->aside, error));
    SPILL_TRY(check_strangers(run, group->aside, error));
    /* documents written between the check and the rename */
    SPILL_TRY(spill_consolidate_check_ids(run, group->aside, error));
    SPILL_TRY(spill_consolidate_passes(run, &way, SPILL_CONSOLIDATE_EQUAL, error));
    if (run->result->changing == 0)
        return SPILL_OK;
    return spill_fail(
        error, SPILL_REFUSED, "%zu of %zu collections cannot be made equal to their part of '%s'",
        run->result->changing, way.members > 0 ? way.members : group->count, group->aside);
}

static spill_code_t rename_all_back(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    SPILL_TRY(spill_consolidate_drop_views(run, error));
    SPILL_TRY(spill_consolidate_list(run, error));
    SPILL_TRY(spill_consolidate_check_names(run, error));
    for (size_t i = 0; i < group->count; i++) {
        const spill_joined_t *member = &group->members[i];
        if (spill_consolidate_kind_of(run, member->kept, NULL) == SPILL_CONSOLIDATE_COLLECTION)
            SPILL_TRY(spill_consolidate_rename(run, member->kept, member->collection, error));
    }
    SPILL_TRY(
        spill_consolidate_drop(run, run->checkpoint.back ? group->aside : group->into, error));
    return spill_consolidate_checkpoint_delete(run, error);
}

static bool is_begun(const spill_consolidate_run_t *run)
{
    return run->checkpoint.phase == SPILL_CONSOLIDATE_UNDOING ||
           run->checkpoint.phase == SPILL_CONSOLIDATE_RESTORING;
}

/* With open slices, copy back what was written to them; else rename back at once. */
static spill_code_t begin_undo(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_phase_t phase = run->checkpoint.phase;
    size_t open = phase == SPILL_CONSOLIDATE_CUT ? run->group->count : 0;
    /* From the save of the place on, no other run opens a slice. */
    if (phase == SPILL_CONSOLIDATE_CUTTING)
        SPILL_TRY(spill_consolidate_own_place(run, &open, error));
    if (phase != SPILL_CONSOLIDATE_FINISHING && phase != SPILL_CONSOLIDATE_FINISHED)
        SPILL_TRY(spill_consolidate_absorb_all(run, open, error));
    SPILL_TRY(check_undo(run, open, error));
    run->checkpoint.back = open > 0;
    run->checkpoint.open = (int64_t)open;
    return spill_consolidate_enter(
        run, open > 0 ? SPILL_CONSOLIDATE_UNDOING : SPILL_CONSOLIDATE_RESTORING, error);
}

static spill_code_t undo_members(spill_consolidate_run_t *run, spill_error_t *error)
{
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_NONE) {
        run->result->done = true;
        return SPILL_OK;
    }
    if (!is_begun(run))
        SPILL_TRY(begin_undo(run, error));
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_UNDOING) {
        SPILL_TRY(copy_back(run, error));
        SPILL_TRY(spill_consolidate_enter(run, SPILL_CONSOLIDATE_RESTORING, error));
    }
    return rename_all_back(run, error);
}

spill_code_t spill_consolidate_undo(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    return code == SPILL_OK ? undo_members(&run, error) : code;
}
