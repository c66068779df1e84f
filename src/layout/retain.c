/*
 * Retention: delete the elements that the definition does not keep. The append that spilled or
 * sealed a document trims the array. Layouts without such a document trim after every few appends.
 *
 * Retention is an ordinary trim. It may die at any step, and two may race. The next one finishes.
 */
#include "bson/element.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/outlier.h"

bool spill_retain_is_due(int64_t first, int64_t count, int64_t step)
{
    return step <= 1 || first / step != (first + count) / step;
}

/* Is the oldest element, which is the first one that was read, older than the limit? */
static bool begins_old(const spill_owner_t *owner, const spill_response_t *head, int64_t time_ms)
{
    int64_t own_ms;
    if (head->run.count == 0)
        return false;
    spill_element_t oldest = spill_run_element(&head->run, 0);
    return spill_element_time_ms(&oldest.value, owner->array->definition.time_field, &own_ms) &&
           own_ms < time_ms;
}

/* Judge from the head alone: *excess is false if it shows that nothing has to go. */
static spill_code_t has_excess(const spill_owner_t *owner, const spill_trim_t *trim, bool *excess,
                               spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    bool capped = !spill_schema_of(definition)->has_pages;
    *excess = true;
    if (!capped && (!spill_schema_of(definition)->appends_to_head || trim->keep == 0))
        return SPILL_OK;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = capped ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = 1;
    spill_code_t code = spill_owner_call(owner, &read, &head, error);
    *excess = capped ? begins_old(owner, &head, trim->time_ms)
                     : spill_state_count(definition, &head.state) > trim->keep;
    spill_response_release(&head);
    return code;
}

void spill_outlier_retain(spill_owner_t *owner)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_trim_t trim = {.below = INT64_MAX, .keep = definition->keep_elements};
    if (!owner->array->retains || (trim.keep == 0 && definition->keep_seconds == 0) ||
        spill_schema_of(definition)->has_windows) /* of all windows: core/bucket_change.c */
        return;
    if (definition->keep_seconds > 0) {
        trim.by_time = true;
        trim.time_ms = spill_owner_now(owner) / 1000 - definition->keep_seconds * 1000;
    }
    bool excess;
    int64_t watermark;
    spill_error_t error;
    spill_code_t code = has_excess(owner, &trim, &excess, &error);
    if (code == SPILL_OK && excess)
        code = spill_layout_trim(owner, &trim, &watermark, &error);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "retention put off: %s",
                        error.message);
}
