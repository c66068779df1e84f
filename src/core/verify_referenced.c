/*
 * Referenced elements: read them in runs, as a reader does, and compute the head's sum and top
 * again. Read single documents only where elements are missing.
 */
#include "core/inspection.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "layout/referenced.h"
#include "util/error.h"

#include <inttypes.h>

typedef struct referenced {
    spill_inspection_t *inspection;
    const spill_state_t *head;
    spill_sum_t sum;
    double size; /* of all values, without their signs */
    int64_t next;
    int64_t live;
    spill_top_t top;        /* layout subset: the highest-ranked elements so far */
    const spill_run_t *run; /* ... and the elements that the head shows */
} referenced_t;

static void add_value(referenced_t *referenced, const spill_sum_t *value)
{
    spill_sum_add(&referenced->sum, value);
    referenced->size += spill_sum_size(value);
}

/* ---- the top --------------------------------------------------------------------------------- */

static void rank_element(referenced_t *referenced, const spill_element_t *element)
{
    const spill_definition_t *definition = &referenced->inspection->owner->array->definition;
    if (!spill_schema_of(definition)->has_top)
        return;
    spill_top_entry_t entry = spill_top_entry_of(definition, element->seq, &element->value);
    spill_top_add(&referenced->top, (size_t)definition->top_count, &entry);
    for (size_t i = 0; i < referenced->run->count; i++) {
        spill_element_t shown = spill_run_element(referenced->run, i);
        bool other = shown.seq == element->seq && !spill_value_equal(&shown.value, &element->value);
        if (other && referenced->inspection->rest)
            referenced->inspection->miscounted = true;
        else if (other)
            spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                                 "shows element %" PRId64 " other than it is", element->seq);
    }
}

/*
 * During an edit the head shows the old element, and its document may have the new one already. So
 * compare only the other elements.
 */
static void check_top(referenced_t *referenced)
{
    const spill_definition_t *definition = &referenced->inspection->owner->array->definition;
    const spill_state_t *head = referenced->head;
    spill_top_t kept = {0};
    bool edit = head->intent && head->intent_edit;
    if (!spill_schema_of(definition)->has_top)
        return;
    spill_top_copy(&head->top, &kept);
    if (edit)
        spill_top_remove(&kept, head->intent_seq);
    size_t missing = referenced->top.count - kept.count;
    bool same = kept.count <= referenced->top.count && missing <= (edit ? 1 : 0);
    kept.shown = 0;
    referenced->top.shown = 0;
    referenced->top.count = same ? kept.count : referenced->top.count;
    if (!same || !spill_top_equal(&kept, &referenced->top))
        spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                             "its top %zu are not the elements that rank highest", kept.count);
    if (referenced->run->count != head->top.shown)
        spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                             "shows %zu elements, and counts %zu", referenced->run->count,
                             head->top.shown);
    spill_top_copy(&head->top, &kept);
    spill_top_show(&kept, definition, SIZE_MAX);
    if (head->top.shown < kept.shown)
        spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                             "shows %zu elements of its top where %zu have room", head->top.shown,
                             kept.shown);
    for (size_t i = 0; i < referenced->run->count && i < head->top.count; i++)
        if (referenced->run->entries[i].seq != head->top.at[i].seq)
            spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                                 "shows element %" PRId64 " where %" PRId64 " ranks",
                                 referenced->run->entries[i].seq, head->top.at[i].seq);
    spill_top_release(&kept);
}

/* ---- the elements ---------------------------------------------------------------------------- */

/* For the element of an intent, count the value in the intent, not the one in its document. */
static void add_element(referenced_t *referenced, const spill_element_t *element)
{
    const spill_state_t *head = referenced->head;
    if (head->intent && head->intent_seq == element->seq)
        return;
    spill_sum_t value =
        spill_sum_of(&referenced->inspection->owner->array->definition, &element->value);
    add_value(referenced, &value);
    rank_element(referenced, element);
}

static void inspect_run(referenced_t *referenced, const spill_run_t *run)
{
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (element.seq < referenced->next || element.seq >= referenced->head->first) {
            spill_inspection_add(referenced->inspection, element.seq, 4,
                                 "element %" PRId64 " is out of place after %" PRId64, element.seq,
                                 referenced->next - 1);
            continue;
        }
        referenced->next = element.seq + 1;
        referenced->live++;
        spill_inspect_id(referenced->inspection, element.seq, &element);
        add_element(referenced, &element);
    }
}

/* Inspect every referenced element, one run at a time. */
static spill_code_t inspect_documents(referenced_t *referenced, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = referenced->head;
    spill_referenced_walk_t walk = {.next = head->watermark};
    referenced->next = head->watermark;
    while (walk.next < head->first) {
        SPILL_TRY(spill_referenced_walk(referenced->inspection->owner, head, head->first, &walk,
                                        &response, error));
        inspect_run(referenced, &response.run);
        if (response.state.source_rev > head->rev)
            spill_inspection_add(referenced->inspection, response.state.page, 7,
                                 "is a copy of a head that was changed more often than this one");
    }
    return SPILL_OK;
}

/* Inspect numbers without an element. A removed element leaves a document, a lost one does not. */
static spill_code_t inspect_gap(const referenced_t *referenced, int64_t from, int64_t end,
                                spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_error_t failure;
    spill_code_t code = SPILL_OK;
    for (; code == SPILL_OK && from < end &&
           referenced->inspection->found < SPILL_INSPECTION_FINDINGS;
         from++) {
        code = spill_owner_read_state(referenced->inspection->owner, from, &page, &failure);
        if (code == SPILL_CORRUPT) {
            spill_inspection_add(referenced->inspection, from, 2, "cannot be read: %.200s",
                                 failure.message);
            code = SPILL_OK;
        } else if (code == SPILL_OK &&
                   (!page.state.present || page.state.incarnation != referenced->head->incarnation))
            spill_inspection_add(referenced->inspection, from, 2,
                                 "is missing: element %" PRId64 " has no document", from);
        else if (code == SPILL_OK && page.state.live > 0 && page.state.first != from)
            spill_inspection_add(referenced->inspection, from, 4,
                                 "has the number of element %" PRId64 " in its fields",
                                 page.state.first);
    }
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    spill_response_release(&page);
    return code;
}

static spill_code_t find_missing(const referenced_t *referenced, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = referenced->head;
    spill_referenced_walk_t walk = {.next = head->watermark};
    int64_t next = head->watermark;
    while (walk.next < head->first) {
        SPILL_TRY(spill_referenced_walk(referenced->inspection->owner, head, head->first, &walk,
                                        &response, error));
        for (size_t i = 0; i < response.run.count; i++) {
            int64_t seq = response.run.entries[i].seq;
            SPILL_TRY(inspect_gap(referenced, next, seq, error));
            next = seq + 1;
        }
    }
    return inspect_gap(referenced, next, head->first, error);
}

static void check_sum(const referenced_t *referenced)
{
    const spill_sum_t *kept = &referenced->head->sum;
    const spill_sum_t *found = &referenced->sum;
    if (!spill_sum_close(kept, found, referenced->size))
        spill_inspection_add(referenced->inspection, SPILL_HEAD, 5,
                             "counts %" PRId64 " values with a sum of %.17g where there are "
                             "%" PRId64 " with %.17g",
                             kept->values, spill_sum_total(kept), found->values,
                             spill_sum_total(found));
}

/* With `rest` repair reports a wrong summary itself. */
static void check_summary(referenced_t *referenced)
{
    spill_inspection_t *inspection = referenced->inspection;
    check_sum(referenced);
    if (inspection->found == 0)
        check_top(referenced);
    if (!inspection->rest || inspection->found == 0)
        return;
    inspection->miscounted = true;
    inspection->found = 0;
    inspection->kept = 0;
}

spill_code_t spill_inspect_referenced(spill_inspection_t *inspection, const spill_response_t *head,
                                      int64_t *live, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    referenced_t referenced = {.inspection = inspection, .head = state, .run = &head->top_run};
    if (state->pages != state->first) {
        spill_fix_t fix = spill_fix_counts(SPILL_HEAD, state);
        fix.pages = state->first;
        spill_inspection_add(inspection, SPILL_HEAD, 4,
                             "counts %" PRId64 " documents before element %" PRId64, state->pages,
                             state->first);
        spill_inspection_fix(inspection, &fix);
    }
    spill_code_t code = inspect_documents(&referenced, error);
    for (size_t i = 0; i < head->run.count; i++) {
        spill_element_t element = spill_run_element(&head->run, i);
        add_element(&referenced, &element);
    }
    if (state->intent && state->intent_edit)
        add_value(&referenced, &state->intent_value);
    if (code == SPILL_OK && state->first - state->watermark - referenced.live > state->removed)
        code = find_missing(&referenced, error);
    if (code == SPILL_OK && inspection->found == 0)
        check_summary(&referenced);
    spill_top_release(&referenced.top);
    inspection->pages += referenced.live;
    *live = referenced.live;
    return code;
}
