/*
 * Retention: which elements does the definition not keep? The append that spilled or sealed a
 * document then trims the array (layout.c). Layouts without such a document trim after every few
 * appends.
 *
 * Retention is an ordinary trim. It may die at any step, and two may race. The next one finishes.
 */
#include "bson/element_fields.h"
#include "definition/schema.h"
#include "layout/outlier.h"
#include "util/error.h"

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
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = capped ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = 1;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    *excess = capped ? begins_old(owner, &head, trim->time_ms)
                     : spill_state_count(definition, &head.state) > trim->keep;
    return SPILL_OK;
}

spill_code_t spill_retain_find_excess(const spill_owner_t *owner, spill_trim_t *trim, bool *excess,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    *trim = (spill_trim_t){.below = INT64_MAX, .keep = definition->keep_elements};
    *excess = false;
    if (!owner->array->retains || (trim->keep == 0 && definition->keep_seconds == 0) ||
        spill_schema_of(definition)->has_windows) /* of all windows: core/bucket_change.c */
        return SPILL_OK;
    if (definition->keep_seconds > 0) {
        trim->by_time = true;
        trim->time_ms = spill_owner_now(owner) / 1000 - definition->keep_seconds * 1000;
    }
    return has_excess(owner, trim, excess, error);
}
