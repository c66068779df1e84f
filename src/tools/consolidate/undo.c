/*
 * Undoing. Until the cut-over the joint collection is a copy, and is dropped. After it, the
 * application writes to the slices of the opened collections. If any slice is open, the joint
 * collection is put aside, so that no client writes to it. Then each of these old collections is
 * made equal to its slice. Last, all old collections are renamed back.
 */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <inttypes.h>

/* ---- checks ---------------------------------------------------------------------------------- */

/* Find the joint collection's first document that belongs to no old one and cannot be copied back.
 */
static spill_code_t find_stranger(spill_consolidate_run_t *run, const char *joint,
                                  spill_raw_admin_batch_t *batch, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    bson_t filter = BSON_INITIALIZER, condition, values;
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
    spill_code_t code = run->admin->ops->read(run->admin, &what, batch, error);
    bson_destroy(&filter);
    return code;
}

static spill_code_t check_strangers(spill_consolidate_run_t *run, const char *joint,
                                    spill_error_t *error)
{
    spill_raw_admin_batch_t batch = {0};
    spill_code_t code = find_stranger(run, joint, &batch, error);
    if (code == SPILL_OK && batch.count > 0) {
        char *text = bson_as_relaxed_extended_json(batch.documents[0], NULL);
        code = spill_fail(error, SPILL_REFUSED,
                          "'%s' has documents that would be lost, because their '%s' is of no old "
                          "collection; the first is %s",
                          joint, run->group->field, text);
        bson_free(text);
    }
    spill_raw_admin_batch_release(&batch);
    return code;
}

/* Check that it can be undone, with this many slices open. Nothing is changed. */
static spill_code_t check_undo(spill_consolidate_run_t *run, size_t open, spill_error_t *error)
{
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHING ||
        run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHED)
        return spill_fail(error, SPILL_REFUSED,
                          "the old collections are being dropped, or no longer exist: it cannot "
                          "be undone");
    spill_code_t code = spill_consolidate_list(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_check_names(run, error);
    if (code == SPILL_OK &&
        spill_consolidate_kind_of(run, run->group->into, NULL) == SPILL_CONSOLIDATE_COLLECTION)
        code = check_strangers(run, run->group->into, error);
    if (code == SPILL_OK && open > 0)
        code = spill_consolidate_check_ids(run, run->group->into, error);
    return code;
}

/* Compare the slices of the first `open` members with their collections. */
static spill_code_t compare_open(spill_consolidate_run_t *run, size_t open, bson_t *differing,
                                 spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    run->progress.collections_all = open;
    for (size_t i = 0; i < open && code == SPILL_OK; i++) {
        const spill_joined_t *member = &run->group->members[i];
        spill_copy_pass_t copy_pass;
        spill_digest_t old, now;
        run->progress.collections = i;
        spill_copy_pass_init(&copy_pass, run, i, member->kept, run->group->into, true);
        code = spill_copy_pass_digest(&copy_pass, false, &old, error);
        if (code == SPILL_OK)
            code = spill_copy_pass_digest(&copy_pass, true, &now, error);
        spill_copy_pass_release(&copy_pass);
        if (code == SPILL_OK && !spill_digest_equal(&old, &now)) {
            char buffer[16];
            const char *key;
            bson_uint32_to_string(bson_count_keys(differing), &key, buffer, sizeof buffer);
            BCON_APPEND(differing, key, "{", "collection", BCON_UTF8(member->collection), "before",
                        BCON_INT64(old.documents), "now", BCON_INT64(now.documents), "}");
        }
    }
    return code;
}

spill_code_t spill_consolidate_report_undo(spill_raw_admin_t *admin,
                                           const spill_consolidation_t *group,
                                           const spill_consolidate_options_t *options,
                                           bson_t *report, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_consolidate_result_t result;
    spill_error_t refusal = {0};
    bson_t differing = BSON_INITIALIZER, refused = BSON_INITIALIZER;
    size_t open = 0;
    bson_init(report);
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, &result, error);
    if (code == SPILL_OK)
        code = spill_consolidate_place_load(&run, error);
    if (code == SPILL_OK && run.checkpoint.phase == SPILL_CONSOLIDATE_CUTTING)
        open = run.place.member;
    else if (run.checkpoint.phase == SPILL_CONSOLIDATE_CUT)
        open = group->count;
    if (code == SPILL_OK && run.checkpoint.stored) {
        spill_code_t checked = check_undo(&run, open, &refusal);
        if (checked == SPILL_REFUSED)
            spill_consolidate_add_text(&refused, "%s", refusal.message);
        else if (checked != SPILL_OK)
            code = spill_fail(error, checked, "%s", refusal.message);
    }
    if (code == SPILL_OK)
        code = compare_open(&run, open, &differing, error);
    if (code == SPILL_OK) {
        BSON_APPEND_UTF8(report, "into", group->into);
        BSON_APPEND_UTF8(report, "phase", spill_consolidate_phase_name(run.checkpoint.phase));
        BSON_APPEND_ARRAY(report, "goesBack", &differing);
        BSON_APPEND_ARRAY(report, "refused", &refused);
    }
    bson_destroy(&differing);
    bson_destroy(&refused);
    spill_consolidate_release(&run);
    return code;
}

/* ---- undoing --------------------------------------------------------------------------------- */

/* Put the joint collection aside, and copy its documents back to the old collections. */
static spill_code_t copy_back(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    spill_consolidate_way_t way = {
        .joint = group->aside, .kept = true, .back = true, .members = (size_t)run->checkpoint.open};
    spill_code_t code = spill_consolidate_list(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_check_names(run, error);
    if (code == SPILL_OK &&
        spill_consolidate_kind_of(run, group->aside, NULL) == SPILL_CONSOLIDATE_ABSENT)
        code = spill_consolidate_rename(run, group->into, group->aside, error);
    if (code == SPILL_OK)
        code = check_strangers(run, group->aside, error);
    if (code == SPILL_OK) /* documents written between the check and the rename */
        code = spill_consolidate_check_ids(run, group->aside, error);
    if (code == SPILL_OK)
        code = spill_consolidate_passes(run, &way, SPILL_CONSOLIDATE_EQUAL, error);
    if (code == SPILL_OK && run->result->changing > 0)
        code = spill_fail(error, SPILL_REFUSED,
                          "%zu of %zu collections cannot be made equal to their part of '%s'",
                          run->result->changing, way.members > 0 ? way.members : group->count,
                          group->aside);
    return code;
}

static spill_code_t rename_all_back(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    spill_code_t code = spill_consolidate_drop_views(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_list(run, error);
    if (code == SPILL_OK)
        code = spill_consolidate_check_names(run, error);
    for (size_t i = 0; i < group->count && code == SPILL_OK; i++) {
        const spill_joined_t *member = &group->members[i];
        if (spill_consolidate_kind_of(run, member->kept, NULL) == SPILL_CONSOLIDATE_COLLECTION)
            code = spill_consolidate_rename(run, member->kept, member->collection, error);
    }
    if (code == SPILL_OK)
        code =
            spill_consolidate_drop(run, run->checkpoint.back ? group->aside : group->into, error);
    return code == SPILL_OK ? spill_consolidate_checkpoint_delete(run, error) : code;
}

static bool is_begun(const spill_consolidate_run_t *run)
{
    return run->checkpoint.phase == SPILL_CONSOLIDATE_UNDOING ||
           run->checkpoint.phase == SPILL_CONSOLIDATE_RESTORING;
}

/* With open slices, copy back what was written to them; else rename back at once. */
static spill_code_t begin_undo(spill_consolidate_run_t *run, spill_error_t *error)
{
    size_t open = run->checkpoint.phase == SPILL_CONSOLIDATE_CUT ? run->group->count : 0;
    spill_code_t code = SPILL_OK;
    /* From the save of the place on, no other run opens a slice. */
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_CUTTING)
        code = spill_consolidate_own_place(run, &open, error);
    if (code == SPILL_OK && run->checkpoint.phase != SPILL_CONSOLIDATE_FINISHING &&
        run->checkpoint.phase != SPILL_CONSOLIDATE_FINISHED)
        code = spill_consolidate_absorb_all(run, open, error);
    if (code == SPILL_OK)
        code = check_undo(run, open, error);
    run->checkpoint.back = open > 0;
    run->checkpoint.open = (int64_t)open;
    return code == SPILL_OK
               ? spill_consolidate_enter(
                     run, open > 0 ? SPILL_CONSOLIDATE_UNDOING : SPILL_CONSOLIDATE_RESTORING, error)
               : code;
}

static spill_code_t undo_members(spill_consolidate_run_t *run, spill_error_t *error)
{
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_NONE) {
        run->result->done = true;
        return SPILL_OK;
    }
    spill_code_t code = SPILL_OK;
    if (!is_begun(run))
        code = begin_undo(run, error);
    if (code == SPILL_OK && run->checkpoint.phase == SPILL_CONSOLIDATE_UNDOING) {
        code = copy_back(run, error);
        if (code == SPILL_OK)
            code = spill_consolidate_enter(run, SPILL_CONSOLIDATE_RESTORING, error);
    }
    return code == SPILL_OK ? rename_all_back(run, error) : code;
}

spill_code_t spill_consolidate_undo(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    if (code == SPILL_OK)
        code = undo_members(&run, error);
    spill_consolidate_release(&run);
    return code;
}
