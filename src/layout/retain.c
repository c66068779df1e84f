/*
 * Retention: the append that spilled or sealed a document trims what the definition does not keep.
 * It is a trim like any other, so it may die at any step, and two may race; the next spill or seal
 * does what is left.
 */
#include "layout/outlier.h"

/* What can be said from the head alone: are there no more than are kept? */
static spill_code_t has_excess(const spill_owner_t *owner, bool *excess, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    *excess = true;
    if (definition->keep != SPILL_KEEP_NEWEST || definition->keep_elements == 0)
        return SPILL_OK;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
    const spill_state_t *state = &head.state;
    *excess = state->first - state->low - state->removed + state->live > definition->keep_elements;
    spill_response_release(&head);
    return code;
}

void spill_outlier_retain(spill_owner_t *owner)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_trim_t trim = {.below = INT64_MAX, .keep = definition->keep_elements};
    if (!owner->array->retains || (trim.keep == 0 && definition->keep_seconds == 0))
        return;
    if (definition->keep_seconds > 0) {
        trim.by_time = true;
        trim.time_ms = spill_owner_now(owner) / 1000 - definition->keep_seconds * 1000;
    }
    bool excess;
    int64_t low;
    spill_error_t error;
    spill_code_t code = has_excess(owner, &excess, &error);
    if (code == SPILL_OK && excess)
        code = spill_outlier_trim(owner, &trim, &low, &error);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "retention put off: %s",
                        error.message);
}
