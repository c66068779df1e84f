/* The result of an inspection: its findings, and the steps that correct them. */
#include "core/verify_owner.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spill_inspection_add(spill_inspection_t *inspection, int64_t page, int invariant,
                          const char *format, ...)
{
    inspection->found++;
    if (inspection->kept == SPILL_INSPECTION_FINDINGS)
        return;
    if (inspection->findings == NULL) {
        inspection->findings =
            bson_malloc0(SPILL_INSPECTION_FINDINGS * sizeof *inspection->findings);
        inspection->fixes = bson_malloc0(SPILL_INSPECTION_FINDINGS * sizeof *inspection->fixes);
    }
    spill_finding_t *finding = &inspection->findings[inspection->kept++];
    finding->definition = inspection->owner->array->definition.name;
    finding->owner = inspection->owner->value;
    finding->page = page;
    finding->invariant = invariant;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

void spill_inspection_fix(spill_inspection_t *inspection, const spill_fix_t *fix)
{
    inspection->fixable++;
    if (inspection->found == (int64_t)inspection->kept)
        inspection->fixes[inspection->kept - 1] = *fix;
}

spill_fix_t spill_fix_counts(int64_t page, const spill_state_t *state)
{
    return (spill_fix_t){.kind = SPILL_REQUEST_RECOUNT,
                         .page = page,
                         .incarnation = state->incarnation,
                         .rev = state->rev,
                         .pages = state->pages,
                         .total = state->total,
                         .removed = state->removed};
}

spill_fix_t spill_fix_indexes(const spill_inspection_t *inspection)
{
    return (spill_fix_t){
        .kind = SPILL_REQUEST_RECOUNT, .page = SPILL_HEAD, .rev = inspection->rev, .indexes = true};
}

static void forget(spill_inspection_t *inspection)
{
    bson_free(inspection->findings);
    bson_free(inspection->fixes);
    inspection->findings = NULL;
    inspection->fixes = NULL;
    spill_seqs_release(&inspection->unreadable);
}

void spill_inspection_release(spill_inspection_t *inspection)
{
    forget(inspection);
    bson_free(inspection->places.at);
    inspection->places = (spill_places_t){0};
}

/* Forget places that the last inspection did not confirm. */
void spill_inspection_restart(spill_inspection_t *inspection, spill_inspection_t *before)
{
    spill_inspection_t fresh = {
        .owner = inspection->owner, .rest = inspection->rest, .places = inspection->places};
    fresh.places.count = fresh.places.changed ? fresh.places.count : 0;
    fresh.places.changed = false;
    inspection->places = (spill_places_t){0};
    forget(before);
    *before = *inspection;
    *inspection = fresh;
}

static bool has_finding(const spill_inspection_t *inspection, const spill_finding_t *wanted)
{
    for (size_t i = 0; i < inspection->kept; i++) {
        const spill_finding_t *finding = &inspection->findings[i];
        if (finding->page == wanted->page && finding->invariant == wanted->invariant &&
            strcmp(finding->text, wanted->text) == 0)
            return true;
    }
    return false;
}

void spill_inspection_keep_repeated(spill_inspection_t *inspection,
                                    const spill_inspection_t *before)
{
    size_t kept = 0;
    inspection->fixable = 0;
    inspection->indexes = 0;
    for (size_t i = 0; i < inspection->kept; i++) {
        if (!has_finding(before, &inspection->findings[i]))
            continue;
        inspection->findings[kept] = inspection->findings[i];
        inspection->fixes[kept] = inspection->fixes[i];
        inspection->fixable += inspection->fixes[kept].kind != SPILL_REQUEST_READ ? 1 : 0;
        inspection->indexes += inspection->fixes[kept].indexes ? 1 : 0;
        kept++;
    }
    inspection->kept = kept;
    inspection->found = (int64_t)kept;
}
