/*
 * Repair, owner by owner: layout/repair.c knows what there is to finish. What the verifier finds
 * besides cannot be mended, for what it was is not known: it is told.
 */
#include "core/array.h"
#include "core/verify_owner.h"

#include <spillway/verify.h>

#include <stdio.h>

typedef struct repair {
    spill_array_t *array;
    bool look_only;
    spill_finding_fn report;
    void *context;
    spill_repair_summary_t *summary;
    const spill_value_t *owner; /* the one under repair */
} repair_t;

static void pass_on(const repair_t *repair, int64_t page, const char *text)
{
    spill_finding_t finding = {.definition = repair->array->definition.name,
                               .owner = repair->owner,
                               .page = page,
                               .invariant = 7};
    snprintf(finding.text, sizeof finding.text, "%s", text);
    if (repair->report != NULL)
        repair->report(repair->context, &finding);
}

static void tell(void *context, int64_t page, const char *text)
{
    const repair_t *repair = context;
    repair->summary->findings++;
    pass_on(repair, page, text);
}

static void tell_left(void *context, const spill_finding_t *finding)
{
    const repair_t *repair = context;
    repair->summary->left++;
    if (repair->report != NULL)
        repair->report(repair->context, finding);
}

static spill_code_t repair_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    repair_t *repair = context;
    spill_owner_t owner;
    spill_error_t failure;
    repair->owner = value;
    spill_code_t code = spill_owner_init(&owner, repair->array, value, &failure);
    if (code == SPILL_OK)
        code = spill_outlier_repair(&owner, repair->look_only, tell, repair, &failure);
    repair->summary->owners += code == SPILL_OK ? 1 : 0;
    spill_owner_release(&owner);
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    if (code != SPILL_OK && code != SPILL_CORRUPT)
        return code;
    spill_code_t looked = spill_verify_rest(repair->array, value, tell_left, repair, &failure);
    if (code == SPILL_OK && looked != SPILL_OK && error != NULL)
        *error = failure;
    return code == SPILL_OK ? looked : code;
}

static spill_code_t repair_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    repair_t *repair = context;
    spill_owner_t owner;
    char text[SPILL_FINDING_TEXT_SIZE];
    repair->owner = &orphan->owner;
    spill_orphan_tell(orphan, text, sizeof text);
    pass_on(repair, SPILL_HEAD, text);
    if (orphan->dropped)
        repair->summary->findings++;
    else
        repair->summary->left++;
    if (repair->look_only)
        return SPILL_OK;
    spill_code_t code = spill_owner_init(&owner, repair->array, &orphan->owner, error);
    if (code == SPILL_OK)
        code = spill_outlier_repair_orphan(&owner, orphan, error);
    spill_owner_release(&owner);
    return code;
}

/* An array of others (SPILL_REFUSED) stands perhaps where the head was. */
static spill_code_t repair_all(repair_t *repair, const spill_value_t *owner, spill_error_t *error)
{
    spill_error_t failure;
    spill_code_t code = owner != NULL
                            ? repair_owner(repair, owner, error)
                            : spill_each_owner(repair->array, repair_owner, repair, true, error);
    if (code != SPILL_OK && code != SPILL_CORRUPT && code != SPILL_REFUSED)
        return code;
    int64_t found = repair->summary->findings + repair->summary->left;
    spill_code_t looked = spill_each_orphan(repair->array, owner, repair_orphan, repair, &failure);
    bool any = repair->summary->findings + repair->summary->left > found;
    if (code == SPILL_OK || (code == SPILL_REFUSED && (any || looked != SPILL_OK))) {
        if (looked != SPILL_OK && error != NULL)
            *error = failure;
        return looked;
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
        .look_only = look_only,
        .report = report,
        .context = context,
        .summary = summary != NULL ? summary : &ignored,
    };
    *repair.summary = (spill_repair_summary_t){0};
    return repair_all(&repair, owner, error);
}
