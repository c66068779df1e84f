/*
 * Repair, owner by owner: layout/repair.c knows what there is to finish. Of what the verifier finds
 * besides, counts are made anew from the elements where everything else is sound. The rest cannot
 * be mended, for what it was is not known: it is told.
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

/* ---- counts ---------------------------------------------------------------------------------- */

enum { TRIES_MAX = 10, ROUNDS_MAX = 1000 };

static void tell_finding(const repair_t *repair, const spill_inspection_t *inspection, size_t index,
                         bool left)
{
    if (left)
        repair->summary->left++;
    else
        repair->summary->findings++;
    if (repair->report != NULL)
        repair->report(repair->context, &inspection->findings[index]);
}

/* Where the answer is lost the next look tells whether it was done. */
static spill_code_t carry_out(const spill_owner_t *owner, const spill_mend_t *mend, bool *done,
                              spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, mend->kind, mend->page);
    request.epoch = mend->epoch;
    request.rev = mend->rev;
    request.counts = mend->kind == SPILL_REQUEST_RECOUNT;
    request.pages = mend->pages;
    request.total = mend->total;
    request.removed = mend->removed;
    spill_code_t code = spill_owner_step(owner, &request, done, error);
    *done = *done || code == SPILL_UNKNOWN;
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/*
 * One look. Findings are mended only where all of them can be: beside another, a count that does
 * not fit says that something was lost, and is what is known of it. *wait: some could not be, for
 * somebody was faster, or will not have it. *again: what is left shows in the next look.
 */
static spill_code_t mend_found(const repair_t *repair, const spill_owner_t *owner, bool last,
                               bool *wait, bool *again, spill_error_t *error)
{
    spill_inspection_t inspection;
    spill_code_t code = spill_inspect_rest(owner, &inspection, error);
    bool mends = inspection.found == inspection.mendable && !last, any = false;
    for (size_t i = 0; code == SPILL_OK && i < inspection.kept; i++) {
        bool done = repair->look_only;
        if (mends && !done)
            code = carry_out(owner, &inspection.mends[i], &done, error);
        if (!mends || done)
            tell_finding(repair, &inspection, i, !mends);
        any = any || done;
    }
    *again = code == SPILL_OK && mends && inspection.found > 0 && !repair->look_only;
    *wait = *again && !any;
    spill_inspection_release(&inspection);
    return code;
}

static spill_code_t mend_counts(const repair_t *repair, const spill_owner_t *owner,
                                spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    bool again = true, wait = false;
    int tries = 0;
    for (int round = 1; code == SPILL_OK && again; round++) {
        bool last = tries == TRIES_MAX || round == ROUNDS_MAX;
        code = mend_found(repair, owner, last, &wait, &again, error);
        tries = wait ? tries + 1 : 0;
    }
    return code;
}

/* ---- a store's own indexes ------------------------------------------------------------------- */

typedef struct looking {
    repair_t *repair;
    bool tells;
    int64_t found;
} looking_t;

static void note_index(void *context, const spill_value_t *owner, int64_t page, int invariant,
                       bool index, const char *text)
{
    looking_t *looking = context;
    (void)owner;
    (void)invariant;
    if (!index)
        return;
    looking->found++;
    if (looking->tells)
        tell(looking->repair, page, text);
}

static spill_code_t make_indexes(const spill_owner_t *owner, const spill_state_t *head,
                                 spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    request.rev = head->rev;
    request.indexes = true;
    spill_code_t code = spill_owner_step(owner, &request, NULL, error);
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/*
 * Before anything else, which reads by them. Told once, however often others come between; an owner
 * that never rests is left to the next repair.
 */
static spill_code_t mend_indexes(repair_t *repair, const spill_owner_t *owner, spill_error_t *error)
{
    spill_array_t *array = repair->array;
    spill_response_t head = SPILL_RESPONSE_INIT;
    looking_t looking = {.repair = repair, .tells = true, .found = 1};
    spill_code_t code = SPILL_OK;
    if (!array->store->ops->check)
        return SPILL_OK;
    for (int round = 1; code == SPILL_OK && looking.found > 0 && round <= TRIES_MAX; round++) {
        looking.found = 0;
        code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
        if (code != SPILL_OK || !head.state.present)
            break;
        code = array->store->ops->check(array->store, &array->binding, &array->definition,
                                        owner->value, note_index, &looking, error);
        if (code == SPILL_OK && looking.found > 0 && repair->look_only)
            break;
        if (code == SPILL_OK && looking.found > 0)
            code = make_indexes(owner, &head.state, error);
        looking.tells = false;
    }
    spill_response_release(&head);
    return code == SPILL_CORRUPT ? SPILL_OK : code; /* found again, and told, by what follows */
}

/* ---- an owner -------------------------------------------------------------------------------- */

static spill_code_t repair_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    repair_t *repair = context;
    spill_owner_t owner;
    spill_error_t failure;
    repair->owner = value;
    spill_code_t code = spill_owner_init(&owner, repair->array, value, &failure);
    if (code == SPILL_OK)
        code = mend_indexes(repair, &owner, &failure);
    if (code == SPILL_OK)
        code = spill_outlier_repair(&owner, repair->look_only, tell, repair, &failure);
    repair->summary->owners += code == SPILL_OK ? 1 : 0;
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    if (code == SPILL_OK || code == SPILL_CORRUPT) {
        spill_code_t looked = mend_counts(repair, &owner, &failure);
        if (code == SPILL_OK && looked != SPILL_OK && error != NULL)
            *error = failure;
        code = code == SPILL_OK ? looked : code;
    }
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
