/*
 * Delete the pages of documents that another program deleted. The steps for one owner:
 *
 *   1. Raise the incarnations of later heads above the pages' (head_ends), so that a head that is
 *      made from now on never has pages of this incarnation.
 *   2. Read the lease of page 0: while it runs, an adoption may still count the pages.
 *   3. Search for the owner's pages and its document again. Pages stay if a document has the _id by
 *      now, with or without the array: it may have been restored.
 *   4. Delete the pages.
 */
#include "core/orphans.h"
#include "core/array.h"
#include "core/building.h"
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

typedef struct again {
    const spill_orphan_t *orphan;
    bool deleted; /* the pages are there, and no document */
} again_t;

static spill_code_t compare(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    again_t *again = context;
    (void)error;
    again->deleted = again->deleted || (orphan->incarnation == again->orphan->incarnation &&
                                        orphan->now == SPILL_ORPHAN_NO_DOCUMENT);
    return SPILL_OK;
}

/* *deleted: false if the document exists by now, or the pages are gone. */
static spill_code_t drop_pages(const drop_orphans_t *drop, const spill_orphan_t *orphan,
                               bool *deleted, spill_error_t *error)
{
    bool any = false;
    again_t again = {.orphan = orphan};
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t first = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&owner, drop->array, &orphan->owner, error));
    *deleted = true;
    if (orphan->dropped)
        return spill_outlier_repair_orphan(&owner, orphan, error);
    if (drop->array->store->ops->head_ends)
        SPILL_TRY(spill_store_head_ends(drop->array->store, orphan->incarnation, error));
    SPILL_TRY(spill_outlier_read_leased(&owner, 0, &first, error));
    if (spill_page_is_leased(&first))
        return spill_owner_leased(&owner, first.state.lease, error);
    SPILL_TRY(spill_each_orphan(drop->array, &orphan->owner, compare, &again, error));
    *deleted = again.deleted;
    return again.deleted ? spill_outlier_drop_left_over(&owner, orphan->incarnation, &any, error)
                         : SPILL_OK;
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
    if (deletes && !drop->look_only)
        SPILL_TRY(drop_pages(drop, orphan, &deletes, error));
    drop->summary->owners += deletes ? 1 : 0;
    drop->summary->pages += deletes ? orphan->pages : 0;
    drop->summary->left += deletes ? 0 : 1;
    return SPILL_OK;
}

spill_code_t spill_drop_orphans(spill_array_t *array, bool look_only, spill_finding_fn report,
                                void *context, spill_orphans_summary_t *summary,
                                spill_error_t *error)
{
    drop_orphans_t drop = {array, look_only, report, context, summary};
    *summary = (spill_orphans_summary_t){0};
    if (!array->store->ops->others_write)
        return SPILL_OK;
    if (!look_only)
        SPILL_TRY(spill_array_check_built(array, error));
    return spill_each_orphan(array, NULL, drop_orphan, &drop, error);
}
