/* The report before a copy, and the copy while the application writes. */
#include "tools/consolidate/consolidate_run.h"

#include "util/error.h"

#include <fnmatch.h>
#include <string.h>

/* ---- the report ------------------------------------------------------------------------------ */

/* What is known before a copy; all but the number are arrays of texts or indexes. */
typedef struct findings {
    int64_t documents;
    bson_t missing, strangers, indexes, refused, notes;
} findings_t;

static void findings_init(findings_t *findings)
{
    findings->documents = 0;
    bson_init(&findings->missing);
    bson_init(&findings->strangers);
    bson_init(&findings->indexes);
    bson_init(&findings->refused);
    bson_init(&findings->notes);
}

static void findings_release(findings_t *findings)
{
    bson_destroy(&findings->missing);
    bson_destroy(&findings->strangers);
    bson_destroy(&findings->indexes);
    bson_destroy(&findings->refused);
    bson_destroy(&findings->notes);
}

static void examine_member(spill_consolidate_run_t *run, const char *name, findings_t *findings)
{
    bson_t options;
    spill_consolidate_kind_t kind = spill_consolidate_kind_of(run, name, &options);
    if (kind == SPILL_CONSOLIDATE_ABSENT) {
        if (!run->checkpoint.stored)
            spill_consolidate_add_text(&findings->missing, "%s", name);
        return;
    }
    int64_t count = run->admin->ops->count(run->admin, name);
    findings->documents += count > 0 ? count : 0;
    if (kind != SPILL_CONSOLIDATE_COLLECTION)
        spill_consolidate_add_text(&findings->refused, "'%s' is a view, or a time series", name);
    if (bson_has_field(&options, "capped"))
        spill_consolidate_add_text(&findings->refused,
                                   "'%s' is capped: capped collections cannot be merged", name);
    if (bson_has_field(&options, "collation"))
        spill_consolidate_add_text(
            &findings->refused,
            "'%s' has a collation of its own, which decides which _ids are equal", name);
    if (bson_has_field(&options, "validator"))
        spill_consolidate_add_text(&findings->notes, "the validator of '%s' is not copied", name);
}

/* Collections of the pattern that the plan does not name. */
static void find_strangers(const spill_consolidate_run_t *run, bson_t *strangers)
{
    bson_iter_t iter, inner;
    const spill_consolidation_t *group = run->group;
    if (group->pattern[0] == '\0' || strcmp(group->pattern, "*") == 0)
        return;
    bson_iter_init(&iter, &run->listing);
    while (bson_iter_next(&iter)) {
        if (!bson_iter_recurse(&iter, &inner) || !bson_iter_find(&inner, "name") ||
            !BSON_ITER_HOLDS_UTF8(&inner))
            continue;
        const char *name = bson_iter_utf8(&inner, NULL);
        bool known = strcmp(name, group->into) == 0 || strncmp(name, "spillway", 8) == 0;
        for (size_t i = 0; i < group->count && !known; i++)
            known = strcmp(name, group->members[i].collection) == 0;
        if (!known && fnmatch(group->pattern, name, 0) == 0)
            spill_consolidate_add_text(strangers, "%s", name);
    }
}

/* Refuse a collection of the joint one's name that this consolidation has not created. */
static spill_code_t examine_target(spill_consolidate_run_t *run, findings_t *findings,
                                   spill_error_t *error)
{
    const char *into = run->group->into;
    spill_raw_admin_read_t what = {.collection = into, .ids_only = true, .limit = 1};
    spill_raw_admin_batch_t batch;
    if (run->checkpoint.stored)
        return SPILL_OK;
    spill_consolidate_kind_t kind = spill_consolidate_kind_of(run, into, NULL);
    if (spill_consolidate_kind_of(run, run->group->aside, NULL) != SPILL_CONSOLIDATE_ABSENT)
        spill_consolidate_add_text(&findings->refused, "there is a collection '%s'",
                                   run->group->aside);
    if (kind == SPILL_CONSOLIDATE_ABSENT)
        return SPILL_OK;
    if (kind != SPILL_CONSOLIDATE_COLLECTION) {
        spill_consolidate_add_text(&findings->refused, "'%s' is a view, or a time series", into);
        return SPILL_OK;
    }
    spill_code_t code = run->admin->ops->read(run->admin, &what, &batch, error);
    if (batch.count > 0)
        spill_consolidate_add_text(&findings->refused,
                                   "there is a collection '%s' with documents already", into);
    spill_raw_admin_batch_release(&batch);
    return code;
}

static spill_code_t examine(spill_consolidate_run_t *run, findings_t *findings,
                            spill_error_t *error)
{
    findings_init(findings);
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++) {
        const spill_joined_t *member = &run->group->members[i];
        bool aside = spill_consolidate_kind_of(run, member->kept, NULL) != SPILL_CONSOLIDATE_ABSENT;
        examine_member(run, run->checkpoint.stored && aside ? member->kept : member->collection,
                       findings);
        if (!run->checkpoint.stored && aside)
            spill_consolidate_add_text(&findings->refused, "there is a collection '%s'",
                                       member->kept);
    }
    find_strangers(run, &findings->strangers);
    SPILL_TRY(examine_target(run, findings, error));
    if (run->checkpoint.phase <= SPILL_CONSOLIDATE_COPYING)
        SPILL_TRY(spill_consolidate_check_definitions(run, &findings->refused, error));
    if (run->checkpoint.stored)
        return SPILL_OK;
    return spill_consolidate_merge_indexes(run, &findings->indexes, &findings->refused,
                                           &findings->notes, error);
}

/* How many members, the first ones of the plan, the application writes to in the joint collection.
 */
static size_t count_open(const spill_consolidate_run_t *run)
{
    spill_consolidate_phase_t phase = run->checkpoint.phase;
    if (phase == SPILL_CONSOLIDATE_CUTTING)
        return run->place.member;
    bool cut = phase >= SPILL_CONSOLIDATE_CUT && phase <= SPILL_CONSOLIDATE_FINISHED;
    return cut ? run->group->count : 0;
}

static void report_on(const spill_consolidate_run_t *run, const findings_t *findings,
                      bson_t *report)
{
    const spill_consolidation_t *group = run->group;
    bool begun = run->checkpoint.phase != SPILL_CONSOLIDATE_NONE;
    BSON_APPEND_UTF8(report, "into", group->into);
    BSON_APPEND_UTF8(report, "field", group->field);
    BSON_APPEND_UTF8(report, "ids", group->keeps_ids ? "keep" : "compound");
    BSON_APPEND_UTF8(report, "phase", spill_consolidate_phase_name(run->checkpoint.phase));
    BSON_APPEND_INT64(report, "collections", (int64_t)group->count);
    BSON_APPEND_INT64(report, "open", (int64_t)count_open(run));
    BSON_APPEND_INT64(report, "documents", findings->documents);
    BSON_APPEND_ARRAY(report, "missing", &findings->missing);
    BSON_APPEND_ARRAY(report, "notInPlan", &findings->strangers);
    if (begun)
        spill_value_append(&run->checkpoint.indexes, report, "indexes");
    else
        BSON_APPEND_ARRAY(report, "indexes", &findings->indexes);
    BSON_APPEND_ARRAY(report, "refused", &findings->refused);
    BSON_APPEND_ARRAY(report, "notes", &findings->notes);
}

static spill_code_t report_run(spill_consolidate_run_t *run, bson_t *report, spill_error_t *error)
{
    SPILL_SCOPED(findings_release) findings_t findings;
    SPILL_TRY(examine(run, &findings, error));
    SPILL_TRY(spill_consolidate_place_load(run, error));
    report_on(run, &findings, report);
    return SPILL_OK;
}

spill_code_t spill_consolidate_report(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                      bson_t *report, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_consolidate_options_t options = {0};
    spill_consolidate_result_t result;
    bson_init(report);
    spill_code_t code = spill_consolidate_start(&run, admin, group, &options, &result, error);
    return code == SPILL_OK ? report_run(&run, report, error) : code;
}

/* ---- copying --------------------------------------------------------------------------------- */

static spill_code_t refuse_missing(const findings_t *findings, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_refuse_first(&findings->missing, "", error);
    return code == SPILL_OK ? SPILL_OK
                            : spill_fail_prefix(error, SPILL_NOT_FOUND,
                                                "the plan names a collection that does not exist");
}

/* Check that it may begin, and save the checkpoint before anything is created. */
static spill_code_t begin_copy(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_SCOPED(findings_release) findings_t findings;
    SPILL_TRY(examine(run, &findings, error));
    SPILL_TRY(refuse_missing(&findings, error));
    SPILL_TRY(spill_consolidate_refuse_first(&findings.refused, "", error));
    /* a late run of an earlier consolidation may have left its place */
    SPILL_TRY(spill_consolidate_place_delete(run, error));
    run->checkpoint.indexes = (spill_value_t){.data = bson_get_data(&findings.indexes),
                                              .size_bytes = findings.indexes.len,
                                              .type = BSON_TYPE_ARRAY};
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_COPYING, error);
}

static spill_code_t copy_documents(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_way_t way = {.joint = run->group->into};
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_FINISHED) {
        run->result->done = true;
        return SPILL_OK;
    }
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_NONE)
        SPILL_TRY(begin_copy(run, error));
    if (run->checkpoint.phase == SPILL_CONSOLIDATE_UNDOING ||
        run->checkpoint.phase == SPILL_CONSOLIDATE_RESTORING)
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' is being undone: continue with --undo "
                          "--execute",
                          run->group->into);
    if (run->checkpoint.phase != SPILL_CONSOLIDATE_COPYING)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is past its copy (%s): its documents belong to the application now",
                          run->group->into, spill_consolidate_phase_name(run->checkpoint.phase));
    SPILL_TRY(spill_consolidate_place_load(run, error));
    SPILL_TRY(spill_consolidate_create(run, error));
    SPILL_TRY(spill_consolidate_passes(run, &way, SPILL_CONSOLIDATE_EQUAL, error));
    if (run->result->changing > 0 || run->checkpoint.copied)
        return SPILL_OK;
    run->checkpoint.copied = true;
    return spill_consolidate_enter(run, SPILL_CONSOLIDATE_COPYING, error);
}

spill_code_t spill_consolidate_copy(spill_raw_admin_t *admin, const spill_consolidation_t *group,
                                    const spill_consolidate_options_t *options,
                                    spill_consolidate_result_t *result, spill_error_t *error)
{
    SPILL_SCOPED(spill_consolidate_release) spill_consolidate_run_t run;
    spill_code_t code = spill_consolidate_start(&run, admin, group, options, result, error);
    return code == SPILL_OK ? copy_documents(&run, error) : code;
}
