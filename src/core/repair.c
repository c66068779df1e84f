/*
 * Repair, owner by owner. What the verifier finds comes first, for a store's indexes, by which all
 * else is read, are made anew before anything. layout/repair.c knows what there is to finish. Then
 * counts, and the numbers of documents, are made anew from the elements where everything else is
 * sound. The rest cannot be mended, for what it was is not known: it is told.
 */
#include "core/array.h"
#include "core/verify_owner.h"
#include "util/argument.h"

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

/* ---- what the verifier finds ----------------------------------------------------------------- */

enum { TRIES_MAX = 10, ROUNDS_MAX = 1000 };

static void tell_finding(const repair_t *repair, const spill_finding_t *finding, bool left)
{
    if (left)
        repair->summary->left++;
    else
        repair->summary->findings++;
    if (repair->report != NULL)
        repair->report(repair->context, finding);
}

/* Where the answer is lost the next look tells whether it was done. */
static spill_code_t carry_out(const spill_owner_t *owner, const spill_fix_t *fix, bool *done,
                              spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, fix->kind, fix->page);
    request.incarnation = fix->incarnation;
    request.rev = fix->rev;
    request.indexes = fix->indexes;
    request.counts = fix->kind == SPILL_REQUEST_RECOUNT && !fix->indexes;
    request.place = fix->place;
    request.first = fix->first;
    request.slots = fix->end - fix->first;
    request.seq = fix->seen_end;
    request.pages = fix->pages;
    request.total = fix->total;
    request.removed = fix->removed;
    spill_code_t code = spill_owner_step(owner, &request, done, error);
    *done = *done || code == SPILL_UNKNOWN;
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* ---- a store's own indexes ------------------------------------------------------------------- */

static void tell_indexes(const repair_t *repair, const spill_inspection_t *inspection)
{
    int64_t told = 0;
    for (size_t i = 0; i < inspection->kept; i++) {
        if (!inspection->fixes[i].indexes)
            continue;
        tell_finding(repair, &inspection->findings[i], false);
        told++;
    }
    repair->summary->findings += inspection->indexes - told;
}

/*
 * The first look. Told once, however often others come between; an owner that never rests is left
 * to the next repair.
 */
static spill_code_t fix_indexes(const repair_t *repair, const spill_owner_t *owner,
                                spill_inspection_t *inspection, spill_error_t *error)
{
    spill_code_t code = spill_inspect_rest(owner, inspection, error);
    if (code == SPILL_OK)
        tell_indexes(repair, inspection);
    for (int round = 1;
         code == SPILL_OK && inspection->indexes > 0 && !repair->look_only && round <= TRIES_MAX;
         round++) {
        const spill_fix_t anew = spill_fix_indexes(inspection);
        bool done;
        code = carry_out(owner, &anew, &done, error);
        spill_inspection_release(inspection);
        if (code == SPILL_CORRUPT) /* the next look tells of it */
            code = SPILL_OK;
        if (code == SPILL_OK)
            code = spill_inspect_rest(owner, inspection, error);
    }
    return code;
}

/* ---- counts and numbers ---------------------------------------------------------------------- */

/*
 * Findings are mended only where all of them can be: beside another, a count that does not fit says
 * that something was lost, and is what is known of it. *any: one was mended.
 */
static spill_code_t fix_found(const repair_t *repair, const spill_owner_t *owner,
                              const spill_inspection_t *inspection, bool fixes, bool *any,
                              spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    *any = false;
    for (size_t i = 0; code == SPILL_OK && i < inspection->kept; i++) {
        bool done = repair->look_only;
        if (inspection->fixes[i].indexes) /* told before */
            continue;
        if (fixes && !done)
            code = carry_out(owner, &inspection->fixes[i], &done, error);
        if (!fixes || done)
            tell_finding(repair, &inspection->findings[i], !fixes);
        *any = *any || done;
    }
    return code;
}

/* Of what the look before has found. Looks again until nothing is left but what has to be. */
static spill_code_t fix_counts(const repair_t *repair, const spill_owner_t *owner,
                               spill_inspection_t *inspection, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    bool again = true;
    int tries = 0;
    for (int round = 1; code == SPILL_OK && again; round++) {
        bool last = tries == TRIES_MAX || round == ROUNDS_MAX, any;
        bool fixes = inspection->found == inspection->fixable && !last;
        code = fix_found(repair, owner, inspection, fixes, &any, error);
        again = fixes && inspection->found > inspection->indexes && !repair->look_only;
        tries = any ? 0 : tries + 1; /* somebody was faster, or will not have it */
        if (code == SPILL_OK && again) {
            spill_inspection_release(inspection);
            code = spill_inspect_rest(owner, inspection, error);
        }
    }
    return code;
}

/* ---- an owner -------------------------------------------------------------------------------- */

/* What is half done, then the rest, as it then is. */
static spill_code_t repair_documents(repair_t *repair, spill_owner_t *owner,
                                     spill_inspection_t *inspection, spill_error_t *error)
{
    spill_error_t failure;
    int64_t found = repair->summary->findings;
    spill_code_t code = spill_outlier_repair(owner, repair->look_only, tell, repair, &failure),
                 shows_read = SPILL_OK;
    repair->summary->owners += code == SPILL_OK ? 1 : 0;
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    if (code != SPILL_OK && code != SPILL_CORRUPT)
        return code;
    if (repair->summary->findings > found && !repair->look_only) {
        spill_inspection_release(inspection);
        shows_read = spill_inspect_rest(owner, inspection, &failure);
    }
    if (shows_read == SPILL_OK)
        shows_read = fix_counts(repair, owner, inspection, &failure);
    if (code == SPILL_OK && shows_read != SPILL_OK && error != NULL)
        *error = failure;
    return code == SPILL_OK ? shows_read : code;
}

static spill_code_t repair_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    repair_t *repair = context;
    spill_owner_t owner;
    spill_inspection_t inspection = {0};
    repair->owner = value;
    spill_code_t code = spill_owner_init(&owner, repair->array, value, error);
    if (code == SPILL_OK)
        code = fix_indexes(repair, &owner, &inspection, error);
    if (code == SPILL_OK)
        code = repair_documents(repair, &owner, &inspection, error);
    spill_inspection_release(&inspection);
    spill_owner_release(&owner);
    return code;
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
    spill_code_t shows_read =
        spill_each_orphan(repair->array, owner, repair_orphan, repair, &failure);
    bool any = repair->summary->findings + repair->summary->left > found;
    if (code == SPILL_OK || (code == SPILL_REFUSED && (any || shows_read != SPILL_OK))) {
        if (shows_read != SPILL_OK && error != NULL)
            *error = failure;
        return shows_read;
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
    SPILL_CHECK_POINTERS(error, array);
    return repair_all(&repair, owner, error);
}
