/*
 * Delete the pages of owners whose documents are gone. The steps for one owner:
 *
 *   1. Raise the incarnations of later heads above the pages' (head_ends), so that a head that is
 *      made from now on never has pages of this incarnation.
 *   2. Read the head. If the owner has one by now, only pages of earlier incarnations are deleted.
 *   3. Delete the pages, except those that have a lease: an adoption may still count them.
 */
#include "core/orphans.h"
#include "core/array.h"
#include "layout/drop.h"
#include "layout/repair.h"
#include "util/error.h"

typedef struct drop_orphans {
    spill_array_t *array;
    bool look_only;
    spill_finding_fn report;
    void *context;
    spill_orphans_summary_t *summary;
} drop_orphans_t;

static spill_code_t drop_pages(const drop_orphans_t *drop, const spill_orphan_t *orphan,
                               spill_error_t *error)
{
    bool any = false;
    spill_store_t *store = drop->array->store;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&owner, drop->array, &orphan->owner, error));
    if (store->ops->head_ends)
        SPILL_TRY(spill_store_head_ends(store, orphan->incarnation, error));
    SPILL_TRY(spill_drop_read_head(&owner, &response, error));
    int64_t last = orphan->incarnation;
    if (response.state.present && response.state.incarnation <= last)
        last = response.state.incarnation - 1;
    SPILL_TRY(spill_outlier_find_left_over(&owner, last, &response, error));
    if (spill_page_is_leased(&response))
        return spill_owner_leased(&owner, response.state.lease, error);
    return spill_outlier_drop_left_over(&owner, last, &any, error);
}

static spill_code_t drop_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    const drop_orphans_t *drop = context;
    spill_finding_t finding = {.definition = drop->array->definition.name,
                               .owner = &orphan->owner,
                               .page = SPILL_HEAD,
                               .invariant = 7};
    bool deletes = orphan->dropped || orphan->now == SPILL_ORPHAN_NO_DOCUMENT;
    spill_orphan_describe(orphan, finding.text, sizeof finding.text);
    if (drop->report)
        drop->report(drop->context, &finding);
    drop->summary->owners += deletes ? 1 : 0;
    drop->summary->pages += deletes ? orphan->pages : 0;
    drop->summary->left += deletes ? 0 : 1;
    return deletes && !drop->look_only ? drop_pages(drop, orphan, error) : SPILL_OK;
}

spill_code_t spill_drop_orphans(spill_array_t *array, bool look_only, spill_finding_fn report,
                                void *context, spill_orphans_summary_t *summary,
                                spill_error_t *error)
{
    drop_orphans_t drop = {array, look_only, report, context, summary};
    *summary = (spill_orphans_summary_t){0};
    return spill_each_orphan(array, NULL, drop_orphan, &drop, error);
}
