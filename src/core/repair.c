/* Repair, owner by owner: layout/repair.c knows what there is to finish. */
#include "core/array.h"

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

static void tell(void *context, int64_t page, const char *text)
{
    const repair_t *repair = context;
    spill_finding_t finding = {.definition = repair->array->definition.name,
                               .owner = repair->owner,
                               .page = page,
                               .invariant = 7};
    snprintf(finding.text, sizeof finding.text, "%s", text);
    repair->summary->findings++;
    if (repair->report != NULL)
        repair->report(repair->context, &finding);
}

static spill_code_t repair_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    repair_t *repair = context;
    spill_owner_t owner;
    repair->owner = value;
    spill_code_t code = spill_owner_init(&owner, repair->array, value, error);
    if (code == SPILL_OK)
        code = spill_outlier_repair(&owner, repair->look_only, tell, repair, error);
    repair->summary->owners += code == SPILL_OK ? 1 : 0;
    spill_owner_release(&owner);
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
    return owner != NULL ? repair_owner(&repair, owner, error)
                         : spill_each_owner(array, repair_owner, &repair, true, error);
}
