/* The verifier: every owner, looked at again while it changes under the look. */
#include "core/array.h"
#include "core/verify_owner.h"
#include "definition/window.h"
#include "util/error.h"

typedef struct verify {
    spill_array_t *array;
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

/* Layout bucket: the windows of an owner are looked at one after the other. */
static bool is_new_owner(verify_t *verify, const spill_owner_t *owner)
{
    spill_value_t of, last;
    const char *window;
    bson_iter_t iter;
    if (!spill_window_split(owner->value, &of, &window) ||
        owner->array->definition.layout != SPILL_LAYOUT_BUCKET)
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

static spill_code_t verify_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    verify_t *verify = context;
    spill_owner_t owner;
    spill_code_t code = spill_owner_init(&owner, verify->array, value, error);
    bool again = code == SPILL_OK;
    for (int look = 1; again; look++) {
        spill_inspection_t inspection = {.owner = &owner};
        code = spill_inspect_owner(&inspection, error);
        again = false;
        if (code == SPILL_OK && inspection.found > 0 && look < LOOKS_MAX)
            code = has_changed(&owner, &inspection, &again, error);
        if (code == SPILL_OK && !again)
            add_to_summary(verify, &inspection);
        spill_inspection_release(&inspection);
    }
    spill_owner_release(&owner);
    return code;
}

spill_code_t spill_array_verify(spill_array_t *array, const spill_value_t *owner,
                                spill_finding_fn report, void *context,
                                spill_verify_summary_t *summary, spill_error_t *error)
{
    spill_verify_summary_t ignored;
    verify_t verify = {
        .array = array,
        .report = report,
        .context = context,
        .summary = summary != NULL ? summary : &ignored,
    };
    *verify.summary = (spill_verify_summary_t){0};
    bson_init(&verify.last);
    spill_code_t code = owner != NULL
                            ? verify_owner(&verify, owner, error)
                            : spill_each_owner(array, verify_owner, &verify, false, error);
    bson_destroy(&verify.last);
    return code;
}
