/* Why appends and updates of fields are refused. */
#include "store/transition.h"

#include "definition/schema.h"

/* ---- room ------------------------------------------------------------------------------------ */

static bool append_fits(const spill_request_t *request, const spill_state_t *state,
                        int64_t fields_bytes)
{
    bool head = request->page == SPILL_HEAD;
    int64_t added = (int64_t)request->append.element_count;
    int64_t live = state->live + added;
    spill_state_t after = *state;
    after.fields_bytes = fields_bytes;
    after.op_count += spill_request_ops(request);
    int64_t bytes =
        spill_state_document_bytes(request->definition, request->owner, head, &after, live,
                                   state->live_bytes + request->append.elements_bytes);
    int64_t slots = spill_state_slots(state) + added;
    if (request->append.seqs) /* with the numbers of removed elements */
        slots = request->append.end - request->append.seqs[0];
    return spill_limits_fit(&request->limits, slots, live, bytes);
}

/* Capped: older elements can be dropped, so only the newest element has to fit, alone. */
static bool newest_fits(const spill_request_t *request, const spill_state_t *state,
                        int64_t fields_bytes)
{
    spill_state_t after = *state;
    after.fields_bytes = fields_bytes;
    after.op_count += spill_request_ops(request);
    after.deleted = (spill_seqs_t){0};
    int64_t size = request->append.elements[request->append.element_count - 1].size_bytes;
    int64_t bytes =
        spill_state_document_bytes(request->definition, request->owner, true, &after, 1, size);
    return spill_limits_fit(&request->limits, 1, 1, bytes);
}

/*
 * Top-N capped: any of the elements may be the only one that stays, so the largest has to fit. An
 * existing element has at most bytes_max bytes.
 */
static bool top_n_fits(const spill_request_t *request, const spill_state_t *state,
                       int64_t fields_bytes)
{
    spill_state_t after = *state;
    after.fields_bytes = fields_bytes;
    after.op_count += spill_request_ops(request);
    int64_t largest = request->limits.bytes_max;
    for (size_t i = 0; i < request->append.element_count; i++)
        if (request->append.elements[i].size_bytes > largest)
            largest = request->append.elements[i].size_bytes;
    return spill_state_document_bytes(request->definition, request->owner, true, &after, 1,
                                      largest) <= SPILL_DOCUMENT_BYTES_MAX;
}

static bool has_room(const spill_request_t *request, const spill_state_t *state,
                     int64_t fields_bytes)
{
    const spill_schema_t *schema = spill_schema_of(request->definition);
    if (schema->keeps_top_n)
        return top_n_fits(request, state, fields_bytes);
    return schema->is_capped ? newest_fits(request, state, fields_bytes)
                             : append_fits(request, state, fields_bytes);
}

spill_refusal_t spill_update_refusal(const spill_request_t *request, const spill_state_t *state,
                                     const spill_seen_t *seen)
{
    static const spill_seen_t nothing = {0};
    seen = seen ? seen : &nothing;
    if (state->present && seen->session == SPILL_SESSION_REPEATED)
        return SPILL_REFUSAL_REPEATED;
    if (state->present && seen->session == SPILL_SESSION_TOO_OLD)
        return SPILL_REFUSAL_TOO_OLD;
    if (spill_request_match(request) && (!state->present || seen->unmatched))
        return SPILL_REFUSAL_NO_MATCH;
    if (!state->present && !(request->page == SPILL_HEAD && request->create))
        return SPILL_REFUSAL_ABSENT;
    if (state->present && seen->session == SPILL_SESSION_FULL)
        return SPILL_REFUSAL_SESSIONS;
    if (state->present && seen->session == SPILL_SESSION_GAPS)
        return SPILL_REFUSAL_GAPS;
    return SPILL_REFUSAL_NONE;
}

spill_seen_t spill_seen_by(const spill_response_t *read)
{
    return (spill_seen_t){
        .op = read->op_found, .unmatched = read->unmatched, .session = read->session};
}

/* Does the head count other pages than those that the caller has searched? */
static bool is_searched_past(const spill_request_t *append, const spill_state_t *state)
{
    const spill_searched_t *searched = append->append.searched;
    int64_t incarnation = state->present ? state->incarnation : 0;
    return !searched->by_store &&
           (incarnation != searched->incarnation || state->pages != searched->pages);
}

spill_refusal_t spill_append_refusal_within(const spill_request_t *request,
                                            const spill_state_t *state, const spill_seen_t *seen,
                                            int64_t fields_bytes)
{
    spill_refusal_t refusal = spill_update_refusal(request, state, seen);
    if (refusal != SPILL_REFUSAL_NONE)
        return refusal;
    if (request->page != SPILL_HEAD && state->incarnation != request->incarnation)
        return SPILL_REFUSAL_ABSENT;
    if (request->append.op && seen && seen->op)
        return SPILL_REFUSAL_REPEATED;
    if (request->append.op &&
        state->op_count >= request->append.op->base + request->definition->op_window)
        return SPILL_REFUSAL_STALE;
    if (state->sealed)
        return SPILL_REFUSAL_SEALED;
    if (request->append.seqs && state->present)
        return SPILL_REFUSAL_PRESENT;
    if (request->append.searched && (is_searched_past(request, state) || (seen && seen->has_id)))
        return SPILL_REFUSAL_SEARCH;
    if (!has_room(request, state, fields_bytes))
        return SPILL_REFUSAL_FULL;
    return SPILL_REFUSAL_NONE;
}

/* The update's own values and, for each two bytes of a dotted path, a document of seven bytes. */
int64_t spill_update_growth(const bson_t *update)
{
    return update ? 4 * (int64_t)update->len : 0;
}

int64_t spill_fields_growth(const spill_request_t *request)
{
    int64_t count, bytes = spill_update_growth(spill_request_update(request));
    for (size_t i = 0; spill_request_session_at(request, i, &count) != NULL; i++)
        bytes += SPILL_SESSION_ENTRY_BYTES_MOST;
    return bytes;
}

spill_refusal_t spill_append_refusal(const spill_request_t *request, const spill_state_t *state,
                                     const spill_seen_t *seen)
{
    static const spill_seen_t nothing = {0};
    return spill_append_refusal_within(request, state, seen ? seen : &nothing,
                                       state->fields_bytes + spill_fields_growth(request));
}

bool spill_writes_fields(const spill_request_t *request, const spill_state_t *state,
                         const spill_seen_t *seen)
{
    if (request->page != SPILL_HEAD || (state->present && !spill_request_update(request)))
        return false;
    if (request->kind == SPILL_REQUEST_UPDATE_FIELDS)
        return spill_update_refusal(request, state, seen) == SPILL_REFUSAL_NONE;
    if (request->kind != SPILL_REQUEST_APPEND)
        return false;
    /* Whether the head is full is known only after the size is computed. */
    spill_refusal_t refusal = spill_append_refusal(request, state, seen);
    return refusal == SPILL_REFUSAL_NONE || refusal == SPILL_REFUSAL_FULL;
}
