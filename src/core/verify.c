/* The verifier. It inspects an owner again if the owner changed during the inspection. */
#include "core/array.h"
#include "core/inspection.h"
#include "definition/schema.h"
#include "layout/repair.h"
#include "util/error.h"

#include <stdio.h>

typedef struct verify {
    spill_array_t *array;
    bool whole; /* all owners, which are listed */
    spill_finding_fn report;
    void *context;
    spill_verify_summary_t *summary;
    bson_t last; /* the owner that was counted last, under an empty name */
} verify_t;

enum { LOOKS_MAX = 10 };

/* Did the owner's head change since the inspection read it? Then findings prove nothing. */
static spill_code_t has_changed(const spill_owner_t *owner, const spill_inspection_t *inspection,
                                bool *changed, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
    if (code == SPILL_CORRUPT)
        code = SPILL_OK; /* it is a finding already */
    *changed = head.state.rev != inspection->rev ||
               spill_state_end(&head.state) != inspection->end ||
               head.state.pages != inspection->head_pages;
    spill_response_release(&head);
    return code;
}

/* Layout bucket: the windows of an owner follow one another. */
static bool is_new_owner(verify_t *verify, const spill_owner_t *owner)
{
    spill_value_t of, last;
    const char *window;
    bson_iter_t iter;
    if (!spill_window_split(owner->value, &of, &window) ||
        !spill_schema_of(&owner->array->definition)->has_windows)
        return true;
    if (bson_iter_init_find(&iter, &verify->last, "")) {
        last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(&of, &last))
            return false;
    }
    bson_reinit(&verify->last);
    spill_value_append(&of, &verify->last, "");
    return true;
}

static void add_to_summary(verify_t *verify, const spill_inspection_t *inspection)
{
    verify->summary->owners += is_new_owner(verify, inspection->owner) ? 1 : 0;
    verify->summary->pages += inspection->pages;
    verify->summary->elements += inspection->elements;
    verify->summary->findings += inspection->found;
    for (size_t i = 0; verify->report != NULL && i < inspection->kept; i++)
        verify->report(verify->context, &inspection->findings[i]);
}

/*
 * Inspect the owner again while it changes. If it changes during each of LOOKS_MAX inspections,
 * report only what the last two agree on.
 */
static spill_code_t inspect(const spill_owner_t *owner, bool rest, spill_inspection_t *inspection,
                            spill_error_t *error)
{
    SPILL_SCOPED(spill_inspection_release) spill_inspection_t before = {0};
    bool again = true;
    *inspection = (spill_inspection_t){.owner = owner, .rest = rest};
    for (int look = 1; again; look++) {
        bool last = look == LOOKS_MAX, changed = false;
        spill_inspection_restart(inspection, &before);
        SPILL_TRY(spill_inspect_owner(inspection, error));
        if (inspection->found > 0)
            SPILL_TRY(has_changed(owner, inspection, &changed, error));
        again = !last && (inspection->ranges.changed || changed);
        if (last && changed)
            spill_inspection_keep_repeated(inspection, &before);
    }
    return SPILL_OK;
}

spill_code_t spill_inspect_rest(const spill_owner_t *owner, spill_inspection_t *inspection,
                                spill_error_t *error)
{
    return inspect(owner, true, inspection, error);
}

/*
 * The inspection of a damaged owner leaves out documents, so count the elements by themselves. On a
 * server the inspected documents can have more elements than that.
 */
static spill_code_t count_readable(spill_owner_t *owner, spill_inspection_t *inspection,
                                   spill_error_t *error)
{
    int64_t elements = 0;
    spill_code_t code = spill_readable_walk(owner, NULL, NULL, &elements, error);
    if (elements > inspection->elements)
        inspection->elements = elements;
    return code == SPILL_CORRUPT ? SPILL_OK : code; /* it is a finding already */
}

static spill_code_t verify_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    verify_t *verify = context;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_inspection_release) spill_inspection_t inspection = {0};
    SPILL_TRY(spill_owner_init(&owner, verify->array, value, error));
    owner.walked = verify->whole;
    SPILL_TRY(inspect(&owner, false, &inspection, error));
    if (inspection.found > 0 && verify->array->store->options.partial)
        SPILL_TRY(count_readable(&owner, &inspection, error));
    add_to_summary(verify, &inspection);
    return SPILL_OK;
}

/* ---- pages without a head -------------------------------------------------------------------- */

typedef struct again {
    const spill_orphan_t *orphan;
    bool same;
} again_t;

static spill_code_t compare(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    again_t *again = context;
    (void)error;
    again->same = again->same || (orphan->incarnation == again->orphan->incarnation &&
                                  orphan->pages == again->orphan->pages &&
                                  orphan->strays == again->orphan->strays);
    return SPILL_OK;
}

spill_code_t spill_orphan_stays(spill_array_t *array, const spill_orphan_t *orphan, bool *stays,
                                spill_error_t *error)
{
    again_t again = {.orphan = orphan};
    *stays = orphan->strays > 0; /* no step puts or deletes such a document */
    if (*stays)
        return SPILL_OK;
    spill_code_t code = spill_each_orphan(array, &orphan->owner, compare, &again, error);
    *stays = again.same;
    return code;
}

/* An owner with a head is listed, and was counted with its head. */
static spill_code_t has_head(spill_array_t *array, const spill_value_t *value, bool *has,
                             spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_init(&owner, array, value, error));
    spill_code_t code = spill_owner_read_state(&owner, SPILL_HEAD, &head, error);
    *has = code == SPILL_CORRUPT || (code == SPILL_OK && head.state.present);
    return code == SPILL_CORRUPT || code == SPILL_REFUSED ? SPILL_OK : code;
}

/* Count the owner and its pages. Pages of several incarnations follow one another. */
static spill_code_t count_orphan(verify_t *verify, const spill_orphan_t *orphan,
                                 spill_error_t *error)
{
    bool counted = false;
    bson_iter_t iter;
    verify->summary->pages += orphan->pages;
    if (orphan->strays > 0)
        return SPILL_OK;
    SPILL_TRY(has_head(verify->array, &orphan->owner, &counted, error));
    if (!counted && bson_iter_init_find(&iter, &verify->last, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        counted = spill_value_same_owner(&orphan->owner, &last);
    }
    if (counted)
        return SPILL_OK;
    verify->summary->owners++;
    bson_reinit(&verify->last);
    spill_value_append(&orphan->owner, &verify->last, "");
    return SPILL_OK;
}

static spill_code_t add_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    verify_t *verify = context;
    spill_finding_t finding = {.definition = verify->array->definition.name,
                               .owner = &orphan->owner,
                               .page = SPILL_HEAD,
                               .invariant = 7};
    bool stays;
    SPILL_TRY(spill_orphan_stays(verify->array, orphan, &stays, error));
    if (!stays)
        return SPILL_OK;
    SPILL_TRY(count_orphan(verify, orphan, error));
    spill_orphan_describe(orphan, finding.text, sizeof finding.text);
    verify->summary->findings++;
    if (verify->report != NULL)
        verify->report(verify->context, &finding);
    return SPILL_OK;
}

/* Damage that ends the search is a finding, too. */
static spill_code_t find_orphans(verify_t *verify, const spill_value_t *owner, spill_error_t *error)
{
    spill_finding_t finding = {.definition = verify->array->definition.name,
                               .owner = owner,
                               .page = SPILL_HEAD,
                               .invariant = 2};
    spill_error_t failure;
    spill_code_t code = spill_each_orphan(verify->array, owner, add_orphan, verify, &failure);
    if (code == SPILL_CORRUPT) {
        snprintf(finding.text, sizeof finding.text, "the search for pages without a head: %.180s",
                 failure.message);
        verify->summary->findings++;
        if (verify->report != NULL)
            verify->report(verify->context, &finding);
        return SPILL_OK;
    }
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    return code;
}

/* ---- all of it ------------------------------------------------------------------------------- */

spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                spill_finding_fn report, void *context,
                                spill_verify_summary_t *summary, spill_error_t *error)
{
    spill_verify_summary_t ignored;
    verify_t verify = {
        .array = array,
        .whole = !owner,
        .report = report,
        .context = context,
        .summary = summary != NULL ? summary : &ignored,
    };
    *verify.summary = (spill_verify_summary_t){.version = SPILL_VERIFY_SUMMARY_VERSION};
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    bson_init(&verify.last);
    spill_code_t code = owner != NULL
                            ? verify_owner(&verify, owner, error)
                            : spill_each_owner(array, verify_owner, &verify, false, error);
    if (code == SPILL_OK || (code == SPILL_REFUSED && owner != NULL)) {
        spill_error_t failure;
        spill_code_t second = find_orphans(&verify, owner, &failure);
        if (second != SPILL_OK && error)
            *error = failure;
        if (second != SPILL_OK || verify.summary->findings > 0)
            code = second;
    }
    bson_destroy(&verify.last);
    return code;
}
