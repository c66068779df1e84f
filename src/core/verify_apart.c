/*
 * Elements apart: their documents are read as runs, as a reader would, and the head's sum and top
 * are made anew from them. Only where elements are missing are documents asked for one by one.
 */
#include "core/verify_owner.h"

#include "bson/value.h"
#include "layout/apart.h"

#include <inttypes.h>

typedef struct apart {
    spill_inspection_t *inspection;
    const spill_state_t *head;
    spill_sum_t sum;
    double size; /* of all values, without their signs */
    int64_t next;
    int64_t live;
    spill_top_t top;        /* layout subset: those that rank highest of the elements met */
    const spill_run_t *run; /* ... and those that the head shows */
} apart_t;

static void add_value(apart_t *apart, const spill_sum_t *value)
{
    spill_sum_add(&apart->sum, value);
    apart->size += spill_sum_size(value);
}

/* ---- the top --------------------------------------------------------------------------------- */

static void rank_element(apart_t *apart, const spill_element_t *element)
{
    const spill_definition_t *definition = &apart->inspection->owner->array->definition;
    if (!spill_has_top(definition) || apart->inspection->rest)
        return;
    spill_top_entry_t entry = spill_top_entry_of(definition, element->seq, &element->value);
    spill_top_add(&apart->top, (size_t)definition->top_count, &entry);
    for (size_t i = 0; i < apart->run->count; i++) {
        spill_element_t shown = spill_run_element(apart->run, i);
        if (shown.seq == element->seq && !spill_value_equal(&shown.value, &element->value))
            spill_inspection_add(apart->inspection, SPILL_HEAD, 5,
                                 "shows element %" PRId64 " other than it is", element->seq);
    }
}

/*
 * While an edit is under way the head has its element as it was, which nobody else may have any
 * more: then the others are compared.
 */
static void check_top(apart_t *apart)
{
    const spill_definition_t *definition = &apart->inspection->owner->array->definition;
    const spill_state_t *head = apart->head;
    spill_top_t kept = {0};
    bool edit = head->intent && head->intent_edit;
    if (!spill_has_top(definition))
        return;
    spill_top_copy(&head->top, &kept);
    if (edit)
        spill_top_remove(&kept, head->intent_seq);
    size_t missing = apart->top.count - kept.count;
    bool same = kept.count <= apart->top.count && missing <= (edit ? 1 : 0);
    kept.shown = 0;
    apart->top.shown = 0;
    apart->top.count = same ? kept.count : apart->top.count;
    if (!same || !spill_top_equal(&kept, &apart->top))
        spill_inspection_add(apart->inspection, SPILL_HEAD, 5,
                             "its top %zu are not the elements that rank highest", kept.count);
    if (apart->run->count != head->top.shown)
        spill_inspection_add(apart->inspection, SPILL_HEAD, 5, "shows %zu elements, and counts %zu",
                             apart->run->count, head->top.shown);
    spill_top_copy(&head->top, &kept);
    spill_top_show(&kept, definition, SIZE_MAX);
    if (head->top.shown < kept.shown)
        spill_inspection_add(apart->inspection, SPILL_HEAD, 5,
                             "shows %zu elements of its top where %zu have room", head->top.shown,
                             kept.shown);
    for (size_t i = 0; i < apart->run->count && i < head->top.count; i++)
        if (apart->run->entries[i].seq != head->top.at[i].seq)
            spill_inspection_add(apart->inspection, SPILL_HEAD, 5,
                                 "shows element %" PRId64 " where %" PRId64 " ranks",
                                 apart->run->entries[i].seq, head->top.at[i].seq);
    spill_top_release(&kept);
}

/* ---- the elements ---------------------------------------------------------------------------- */

/* The element of an intent counts as the intent says, whatever its document has by now. */
static void add_element(apart_t *apart, const spill_element_t *element)
{
    const spill_state_t *head = apart->head;
    if (head->intent && head->intent_seq == element->seq)
        return;
    spill_sum_t value = spill_sum_of(&apart->inspection->owner->array->definition, &element->value);
    add_value(apart, &value);
    rank_element(apart, element);
}

static void inspect_run(apart_t *apart, const spill_run_t *run)
{
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (element.seq < apart->next || element.seq >= apart->head->first) {
            spill_inspection_add(apart->inspection, element.seq, 4,
                                 "element %" PRId64 " is out of place after %" PRId64, element.seq,
                                 apart->next - 1);
            continue;
        }
        apart->next = element.seq + 1;
        apart->live++;
        add_element(apart, &element);
    }
}

/* Every element in documents, a run at a time. */
static spill_code_t inspect_documents(apart_t *apart, spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = apart->head;
    spill_apart_walk_t walk = {.next = head->low};
    spill_code_t code = SPILL_OK;
    apart->next = head->low;
    while (code == SPILL_OK && walk.next < head->first) {
        code =
            spill_apart_walk(apart->inspection->owner, head, head->first, &walk, &response, error);
        if (code == SPILL_OK)
            inspect_run(apart, &response.run);
    }
    spill_response_release(&response);
    return code;
}

/* Numbers without an element: what is left of a removed one is there, a lost one is not. */
static spill_code_t inspect_gap(const apart_t *apart, int64_t from, int64_t end,
                                spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    for (; code == SPILL_OK && from < end && apart->inspection->found < SPILL_INSPECTION_FINDINGS;
         from++) {
        code = spill_owner_read_state(apart->inspection->owner, from, &page, error);
        if (code == SPILL_OK && (!page.state.present || page.state.epoch != apart->head->epoch))
            spill_inspection_add(apart->inspection, from, 2,
                                 "is missing: element %" PRId64 " has no document", from);
    }
    spill_response_release(&page);
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

static spill_code_t find_missing(const apart_t *apart, spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = apart->head;
    spill_apart_walk_t walk = {.next = head->low};
    spill_code_t code = SPILL_OK;
    int64_t next = head->low;
    while (code == SPILL_OK && walk.next < head->first) {
        code =
            spill_apart_walk(apart->inspection->owner, head, head->first, &walk, &response, error);
        for (size_t i = 0; code == SPILL_OK && i < response.run.count; i++) {
            int64_t seq = response.run.entries[i].seq;
            code = inspect_gap(apart, next, seq, error);
            next = seq + 1;
        }
    }
    if (code == SPILL_OK)
        code = inspect_gap(apart, next, head->first, error);
    spill_response_release(&response);
    return code;
}

static void check_sum(const apart_t *apart)
{
    const spill_sum_t *kept = &apart->head->sum;
    const spill_sum_t *found = &apart->sum;
    if (!spill_sum_close(kept, found, apart->size))
        spill_inspection_add(apart->inspection, SPILL_HEAD, 5,
                             "counts %" PRId64 " values with a sum of %.17g where there are "
                             "%" PRId64 " with %.17g",
                             kept->values, spill_sum_total(kept), found->values,
                             spill_sum_total(found));
}

spill_code_t spill_inspect_apart(spill_inspection_t *inspection, const spill_response_t *head,
                                 int64_t *live, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    apart_t apart = {.inspection = inspection, .head = state, .run = &head->top_run};
    if (state->pages != state->first) {
        spill_mend_t mend = spill_mend_counts(SPILL_HEAD, state);
        mend.pages = state->first;
        spill_inspection_add(inspection, SPILL_HEAD, 4,
                             "counts %" PRId64 " documents before element %" PRId64, state->pages,
                             state->first);
        spill_inspection_mend(inspection, &mend);
    }
    spill_code_t code = inspect_documents(&apart, error);
    for (size_t i = 0; i < head->run.count; i++) {
        spill_element_t element = spill_run_element(&head->run, i);
        add_element(&apart, &element);
    }
    if (state->intent && state->intent_edit)
        add_value(&apart, &state->intent_value);
    if (code == SPILL_OK && state->first - state->low - apart.live > state->removed)
        code = find_missing(&apart, error);
    if (code == SPILL_OK && inspection->found == 0 && !inspection->rest)
        check_sum(&apart);
    if (code == SPILL_OK && inspection->found == 0 && !inspection->rest)
        check_top(&apart);
    spill_top_release(&apart.top);
    inspection->pages += apart.live;
    *live = apart.live;
    return code;
}
