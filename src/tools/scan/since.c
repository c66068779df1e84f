/* What has come since an earlier scan: for arrays with elements that have no times. */
#include "tools/scan/scan.h"

#include "bson/value.h"

#include <string.h>

static const double day_ms = 86400e3;

/* Dates beyond this many days are not reported. */
static const double days_max = 100 * 365.25;

static const spill_scan_collection_t *find_collection(const spill_scan_result_t *earlier,
                                                      const char *name)
{
    for (size_t i = 0; i < earlier->collection_count; i++)
        if (strcmp(earlier->collections[i].name, name) == 0)
            return &earlier->collections[i];
    return NULL;
}

static const spill_scan_path_t *find_path(const spill_scan_collection_t *collection,
                                          const spill_scan_path_t *path)
{
    for (size_t i = 0; i < collection->path_count; i++)
        if (collection->paths[i].map == path->map &&
            strcmp(collection->paths[i].path, path->path) == 0)
            return &collection->paths[i];
    return NULL;
}

static const spill_owner_t *find_owner(const spill_owners_t *owners, const spill_value_t *value)
{
    for (size_t i = 0; value->data && i < owners->count; i++)
        if (owners->items[i].value.data && spill_value_equal(&owners->items[i].value, value))
            return &owners->items[i];
    return NULL;
}

/* Use the pace between the scans; two scans do not show how far it can be trusted. */
static void set_when(spill_when_t *when, double per_day, int64_t scanned_ms)
{
    double days = (double)when->elements / per_day;
    if (when->elements == 0)
        return;
    when->as_of_ms = scanned_ms;
    if (days <= days_max)
        when->likely_ms = scanned_ms + (int64_t)(days * day_ms);
}

static void set_comparison(spill_growth_forecast_t *growth_forecast, int64_t added,
                           int64_t elapsed_ms, int64_t scanned_ms)
{
    growth_forecast->elapsed_ms = elapsed_ms;
    growth_forecast->added = added;
    if (growth_forecast->timed)
        return;
    growth_forecast->pace.per_day = (double)added / ((double)elapsed_ms / day_ms);
    if (added <= 0)
        return;
    set_when(&growth_forecast->threshold, growth_forecast->pace.per_day, scanned_ms);
    set_when(&growth_forecast->limit, growth_forecast->pace.per_day, scanned_ms);
}

void spill_scan_since(spill_scan_result_t *result, const spill_scan_result_t *earlier)
{
    int64_t elapsed_ms = result->scanned_ms - earlier->scanned_ms;
    for (size_t i = 0; i < result->collection_count; i++) {
        spill_scan_collection_t *now = &result->collections[i];
        const spill_scan_collection_t *then = find_collection(earlier, now->name);
        for (size_t j = 0; then && j < now->path_count; j++) {
            spill_scan_path_t *path = &now->paths[j];
            const spill_scan_path_t *old = find_path(then, path);
            if (!old)
                continue;
            set_comparison(&path->growth_forecast, path->lengths.sum - old->lengths.sum, elapsed_ms,
                           result->scanned_ms);
            for (size_t k = 0; k < path->owners.count; k++) {
                spill_owner_t *owner = &path->owners.items[k];
                const spill_owner_t *same = find_owner(&old->owners, &owner->value);
                if (same)
                    set_comparison(&owner->growth_forecast, owner->length - same->length,
                                   elapsed_ms, result->scanned_ms);
            }
        }
    }
    spill_scan_derive(result);
}
