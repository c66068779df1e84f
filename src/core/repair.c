/*
 * Repair, owner by owner:
 *
 *   1. Inspect the owner. Rebuild the store's own indexes, because the other steps read by them. If
 *      nothing was found, and the head does not show that a client may have died, stop here.
 *   2. Finish what dead clients left (layout/repair.c).
 *   3. If all other checks pass, correct counts and sequence numbers from the elements.
 *   4. Report every other finding. Repair cannot correct it, because the right value is not known.
 *
 * After all owners, forget old notes of drops.
 */
#include "layout/repair.h"
#include "core/array.h"
#include "core/half_done.h"
#include "core/inspection.h"
#include "util/buffer.h"
#include "util/error.h"

#include <spillway/verify.h>

#include <stdio.h>
#include <string.h>

typedef struct repair {
    spill_array_t *array;
    bool whole; /* all owners, which are listed */
    bool look_only;
    bool half_done_only; /* with look_only: without an inspection */
    spill_finding_fn report;
    void *context;
    spill_repair_summary_t *summary;
    const spill_value_t *owner; /* the one under repair */
} repair_t;

static void report_text(const repair_t *repair, int64_t page, const char *text)
{
    spill_finding_t finding = {.definition = repair->array->definition.name,
                               .owner = repair->owner,
                               .page = page,
                               .invariant = 7};
    snprintf(finding.text, sizeof finding.text, "%s", text);
    if (repair->report != NULL)
        repair->report(repair->context, &finding);
}

static void report_half_done(void *context, int64_t page, const char *text)
{
    const repair_t *repair = context;
    repair->summary->findings++;
    report_text(repair, page, text);
}

/* ---- what the verifier finds ----------------------------------------------------------------- */

enum { TRIES_MAX = 10, ROUNDS_MAX = 1000, SAME_MAX = 2 };

static void report_finding(const repair_t *repair, const spill_finding_t *finding, bool left)
{
    if (left)
        repair->summary->left++;
    else
        repair->summary->findings++;
    if (repair->report != NULL)
        repair->report(repair->context, finding);
}

/* If the answer is lost, the next inspection shows whether the step was done. */
static spill_code_t apply_fix(const spill_owner_t *owner, const spill_fix_t *fix, bool *done,
                              spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, fix->kind, fix->page);
    request.incarnation = fix->incarnation;
    request.rev = fix->rev;
    if (fix->kind == SPILL_REQUEST_RECOUNT) {
        request.recount.indexes = fix->indexes;
        request.recount.counts = !fix->indexes;
        request.recount.range = fix->range;
        request.recount.first = fix->first;
        request.recount.slots = fix->end - fix->first;
        request.recount.end = fix->seen_end;
        request.recount.pages = fix->pages;
        request.recount.total = fix->total;
        request.recount.removed = fix->removed;
    }
    spill_code_t code = spill_owner_step(owner, &request, done, error);
    *done = *done || code == SPILL_UNKNOWN;
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* ---- a store's own indexes ------------------------------------------------------------------- */

static void report_indexes(const repair_t *repair, const spill_inspection_t *inspection)
{
    int64_t reported = 0;
    for (size_t i = 0; i < inspection->kept; i++) {
        if (!inspection->fixes[i].indexes)
            continue;
        report_finding(repair, &inspection->findings[i], false);
        reported++;
    }
    repair->summary->findings += inspection->indexes - reported;
}

/*
 * Step 1. Report the findings once, even if other clients interrupt the repair several times. After
 * TRIES_MAX tries leave the owner to the next repair.
 */
static spill_code_t fix_indexes(const repair_t *repair, const spill_owner_t *owner,
                                spill_inspection_t *inspection, spill_error_t *error)
{
    SPILL_TRY(spill_inspect_rest(owner, inspection, error));
    report_indexes(repair, inspection);
    for (int round = 1; inspection->indexes > 0 && !repair->look_only && round <= TRIES_MAX;
         round++) {
        const spill_fix_t rebuild = spill_fix_indexes(inspection);
        bool done;
        spill_code_t code = apply_fix(owner, &rebuild, &done, error);
        spill_inspection_release(inspection);
        if (code != SPILL_OK && code != SPILL_CORRUPT) /* the next inspection reports damage */
            return code;
        SPILL_TRY(spill_inspect_rest(owner, inspection, error));
    }
    return SPILL_OK;
}

/* ---- counts and numbers ---------------------------------------------------------------------- */

/*
 * Correct the findings only if all of them can be corrected. Beside another finding a wrong count
 * may be the only trace of a loss. *any: at least one was corrected.
 */
static spill_code_t fix_found(const repair_t *repair, const spill_owner_t *owner,
                              const spill_inspection_t *inspection, bool fixes, bool *any,
                              spill_error_t *error)
{
    *any = false;
    for (size_t i = 0; i < inspection->kept; i++) {
        bool done = repair->look_only;
        if (inspection->fixes[i].indexes) /* reported in step 1 */
            continue;
        if (fixes && !done)
            SPILL_TRY(apply_fix(owner, &inspection->fixes[i], &done, error));
        if (!fixes || done)
            report_finding(repair, &inspection->findings[i], !fixes);
        *any = *any || done;
    }
    return SPILL_OK;
}

/* A digest of the findings. After a correction they are others, or there are none. */
static uint64_t digest_of(const spill_inspection_t *inspection)
{
    uint64_t digest = (uint64_t)inspection->found;
    for (size_t i = 0; i < inspection->kept; i++) {
        const spill_finding_t *finding = &inspection->findings[i];
        digest = digest * 31 + spill_hash(finding->text, strlen(finding->text)) +
                 (uint64_t)finding->page;
    }
    return digest;
}

/*
 * Step 3, after an inspection. Inspect again until no finding is left that can be corrected. If the
 * same findings come back after a correction (its answer may have been lost), it does not help.
 */
static spill_code_t fix_counts(const repair_t *repair, const spill_owner_t *owner,
                               spill_inspection_t *inspection, spill_error_t *error)
{
    bool again = true;
    int tries = 0, same = 0;
    uint64_t before = 0;
    for (int round = 1; again; round++) {
        uint64_t digest = digest_of(inspection);
        same = round > 1 && digest == before && tries == 0 ? same + 1 : 0;
        before = digest;
        bool last = tries == TRIES_MAX || round == ROUNDS_MAX || same == SAME_MAX, any;
        bool fixes = inspection->found == inspection->fixable && !last;
        SPILL_TRY(fix_found(repair, owner, inspection, fixes, &any, error));
        again = fixes && inspection->found > inspection->indexes && !repair->look_only;
        tries = any ? 0 : tries + 1; /* another client was faster, or the store refused */
        if (again) {
            spill_inspection_release(inspection);
            SPILL_TRY(spill_inspect_rest(owner, inspection, error));
        }
    }
    return SPILL_OK;
}

/* ---- an owner -------------------------------------------------------------------------------- */

/* Step 2, then an inspection of the result, then step 3. */
static spill_code_t repair_documents(repair_t *repair, spill_owner_t *owner,
                                     spill_inspection_t *inspection, spill_error_t *error)
{
    spill_error_t failure;
    int64_t found = repair->summary->findings;
    bool summed = inspection->found == 0 && !inspection->miscounted;
    spill_code_t second = SPILL_OK;
    spill_code_t code =
        spill_outlier_repair(owner, repair->look_only, summed, report_half_done, repair, &failure);
    repair->summary->owners += code == SPILL_OK ? 1 : 0;
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    if (code != SPILL_OK && code != SPILL_CORRUPT)
        return code;
    if (repair->summary->findings > found && !repair->look_only) {
        spill_inspection_release(inspection);
        second = spill_inspect_rest(owner, inspection, &failure);
    }
    if (second == SPILL_OK)
        second = fix_counts(repair, owner, inspection, &failure);
    if (code == SPILL_OK && second != SPILL_OK && error != NULL)
        *error = failure;
    return code == SPILL_OK ? second : code;
}

static spill_code_t repair_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    repair_t *repair = context;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_inspection_release) spill_inspection_t inspection = {0};
    repair->owner = value;
    SPILL_TRY(spill_owner_init(&owner, repair->array, value, error));
    owner.walked = repair->whole;
    SPILL_TRY(fix_indexes(repair, &owner, &inspection, error));
    if (inspection.found == 0 && !inspection.half_done && !inspection.miscounted) {
        repair->summary->owners++;
        return SPILL_OK;
    }
    return repair_documents(repair, &owner, &inspection, error);
}

/* Step 2 alone. */
static spill_code_t look_for_half_done(void *context, const spill_value_t *value,
                                       spill_error_t *error)
{
    repair_t *repair = context;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    repair->owner = value;
    SPILL_TRY(spill_owner_init(&owner, repair->array, value, error));
    owner.walked = true;
    return spill_outlier_repair(&owner, true, true, report_half_done, repair, error);
}

static spill_code_t repair_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    repair_t *repair = context;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    char text[SPILL_FINDING_TEXT_SIZE];
    repair->owner = &orphan->owner;
    spill_orphan_describe(orphan, text, sizeof text);
    report_text(repair, SPILL_HEAD, text);
    if (orphan->dropped)
        repair->summary->findings++;
    else
        repair->summary->left++;
    if (repair->look_only || orphan->strays > 0)
        return SPILL_OK;
    SPILL_TRY(spill_owner_init(&owner, repair->array, &orphan->owner, error));
    return spill_outlier_repair_orphan(&owner, orphan, error);
}

/* An unmanaged array (SPILL_REFUSED) may have replaced the head. */
static spill_code_t repair_all(repair_t *repair, const spill_value_t *owner, spill_error_t *error)
{
    spill_error_t failure;
    spill_each_fn step = repair->half_done_only ? look_for_half_done : repair_owner;
    spill_code_t code = owner != NULL ? step(repair, owner, error)
                                      : spill_each_owner(repair->array, step, repair, true, error);
    if (code != SPILL_OK && code != SPILL_CORRUPT && code != SPILL_REFUSED)
        return code;
    int64_t found = repair->summary->findings + repair->summary->left;
    spill_code_t second = spill_each_orphan(repair->array, owner, repair_orphan, repair, &failure);
    bool any = repair->summary->findings + repair->summary->left > found;
    if (code == SPILL_OK || (code == SPILL_REFUSED && (any || second != SPILL_OK))) {
        if (second != SPILL_OK && error != NULL)
            *error = failure;
        return second;
    }
    return code;
}

spill_code_t spill_array_repair(spill_array_t *array, const spill_value_t *owner, bool look_only,
                                spill_finding_fn report, void *context,
                                spill_repair_summary_t *summary, spill_error_t *error)
{
    spill_repair_summary_t ignored;
    repair_t repair = {
        .array = array,
        .whole = !owner,
        .look_only = look_only,
        .report = report,
        .context = context,
        .summary = summary != NULL ? summary : &ignored,
    };
    *repair.summary = (spill_repair_summary_t){.version = SPILL_REPAIR_SUMMARY_VERSION};
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    SPILL_TRY(repair_all(&repair, owner, error));
    bool more = repair.whole && !look_only;
    while (more)
        SPILL_TRY(spill_array_finish_drops(array, &more, error));
    return SPILL_OK;
}

spill_code_t spill_find_half_done(spill_array_t *array, spill_finding_fn report, void *context,
                                  spill_error_t *error)
{
    spill_repair_summary_t summary = {.version = SPILL_REPAIR_SUMMARY_VERSION};
    repair_t repair = {.array = array,
                       .whole = true,
                       .look_only = true,
                       .half_done_only = true,
                       .report = report,
                       .context = context,
                       .summary = &summary};
    return repair_all(&repair, NULL, error);
}
