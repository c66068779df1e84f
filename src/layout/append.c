/*
 * Appends in all layouts: make the request, and find out why a store refused it. For layouts that
 * append only to the head, also the loop that repeats the request.
 */
#include "layout/append.h"
#include "definition/schema.h"
#include "layout/document_limits.h"
#include "layout/locate.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>

int64_t spill_part_bytes_alone(const spill_owner_t *owner, bool head, int64_t count, int64_t bytes)
{
    spill_state_t state = {.op_count = owner->array->definition.op_window};
    if (head)
        state.fields_bytes = 16 + owner->value->size_bytes;
    return spill_state_document_bytes(&owner->array->definition, owner->value, head, &state, count,
                                      bytes);
}

bool spill_part_fits(const spill_owner_t *owner, int64_t count, int64_t bytes)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_page_limits(&definition->bounds);
    if (count == 1 || !spill_schema_of(definition)->has_pages)
        return true;
    if (!spill_limits_fit(&limits, count, count,
                          spill_part_bytes_alone(owner, false, count, bytes)))
        return false;
    int64_t top = spill_top_room(definition); /* reserved for the top */
    return !spill_schema_of(definition)->appends_to_head ||
           spill_part_bytes_alone(owner, true, count, bytes) - top <=
               (definition->bounds.head_bytes_max - top) / 2;
}

spill_request_t spill_append_request(const spill_owner_t *owner, int64_t page,
                                     const spill_part_t *part)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_request_t append = spill_owner_request(owner, SPILL_REQUEST_APPEND, page);
    append.append.elements = part->elements;
    append.append.element_count = part->count;
    append.append.elements_bytes = part->bytes;
    append.append.skip = part->skip;
    append.append.seqs = part->seqs;
    append.append.end = part->end;
    append.append.op = part->op;
    append.append.searched = part->searched;
    append.append.members = part->members;
    append.append.member_count = part->member_count;
    append.append.update = page == SPILL_HEAD ? part->update : NULL;
    append.append.session = page == SPILL_HEAD ? part->session : NULL;
    append.append.match = page == SPILL_HEAD ? part->match : NULL;
    append.limits = spill_document_limits(definition, &definition->bounds, page == SPILL_HEAD);
    if (page == SPILL_HEAD) {
        append.create = part->match == NULL;
        append.incarnation = spill_owner_now(owner);
    }
    return append;
}

/* Capped: how many of the numbers [first, first + count) the head does not have any longer. */
static int64_t count_dropped(const spill_owner_t *owner, const spill_state_t *head, int64_t first,
                             int64_t count)
{
    if (spill_schema_of(&owner->array->definition)->has_pages)
        return 0;
    return count - spill_state_live_within(head, first, first + count);
}

static spill_code_t repeated(const spill_owner_t *owner, const spill_request_t *append,
                             const spill_response_t *response, spill_append_result_t *result,
                             spill_error_t *error)
{
    *result = (spill_append_result_t){
        .first = response->op.seq,
        .count = response->op.count,
        .repeated = true,
        .op_base = response->state.op_count,
        .dropped = count_dropped(owner, &response->state, response->op.seq, response->op.count),
    };
    /* An array that keeps each id once: the operation may have left out some of the batch. */
    bool fewer = append->append.searched && response->op.count < spill_request_numbers(append);
    if (response->op.count == spill_request_numbers(append) || fewer)
        return SPILL_OK;
    spill_fail(error, SPILL_CONFLICT,
               "the operation id was used for an append of %s, this one has %" PRId64
               ": choose another id",
               spill_counted_text(response->op.count, "element", "elements").text,
               spill_request_numbers(append));
    return spill_owner_name(owner, SPILL_CONFLICT, error);
}

/* An entry has no sequence numbers. */
static spill_code_t repeated_in_session(const spill_owner_t *owner,
                                        const spill_response_t *response,
                                        spill_append_result_t *result, spill_error_t *error)
{
    *result =
        (spill_append_result_t){.first = -1, .count = response->session_applied, .repeated = true};
    if (result->count > 0)
        return SPILL_OK;
    spill_fail(error, SPILL_CONFLICT,
               "some of the operation's numbers were used in this transaction, but not the first: "
               "for other elements, or the owner was dropped between two parts of the batch");
    return spill_owner_name(owner, SPILL_CONFLICT, error);
}

spill_code_t spill_refuse(const spill_owner_t *owner, spill_refusal_t refusal, spill_error_t *error)
{
    spill_code_t code = SPILL_CONFLICT;
    spill_reason_t reason = SPILL_REASON_TOO_OLD;
    if (refusal == SPILL_REFUSAL_NO_MATCH) {
        code = SPILL_NOT_FOUND;
        reason = SPILL_REASON_NO_MATCH;
        spill_fail(error, code, "there is no such owner, or its head does not match");
    } else if (refusal == SPILL_REFUSAL_SESSIONS) {
        reason = SPILL_REASON_SESSIONS;
        spill_fail_retryable(error, code,
                             "more sessions have written to it lately than it has entries for");
    } else if (refusal == SPILL_REFUSAL_GAPS) {
        reason = SPILL_REASON_SESSIONS;
        spill_fail(error, code,
                   "statements of this command that changed nothing lie between those that did, at "
                   "more than %d places: send the rest of the command as another one",
                   SPILL_SESSION_RUNS_MAX - 1);
    } else {
        spill_fail(error, code, "the session has made a later transaction");
    }
    spill_fail_because(error, code, reason);
    return spill_owner_name(owner, code, error);
}

void spill_forget_sessions(const spill_owner_t *owner, const spill_session_op_t *session)
{
    spill_error_t error;
    spill_request_t forget = spill_owner_request(owner, SPILL_REQUEST_FORGET, SPILL_HEAD);
    forget.forget.horizon_us = spill_session_horizon_us(session);
    if (spill_owner_step(owner, &forget, NULL, &error) != SPILL_OK)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "old sessions stay: %s",
                        error.message);
}

spill_code_t spill_append_classify_refusal(const spill_owner_t *owner,
                                           const spill_request_t *append,
                                           spill_response_t *response, spill_refusal_t *refusal,
                                           spill_append_result_t *result, spill_error_t *error)
{
    spill_request_t read = spill_request_reading(append);
    spill_code_t code =
        response->refusal_explained ? SPILL_OK : spill_owner_call(owner, &read, response, error);
    if (code != SPILL_OK)
        return code;
    spill_seen_t seen = spill_seen_by(response);
    *refusal = spill_append_refusal(append, &response->state, &seen);
    if (*refusal == SPILL_REFUSAL_REPEATED) {
        atomic_fetch_add_explicit(&owner->array->store->counts.repeats, 1, memory_order_relaxed);
        return append->append.session ? repeated_in_session(owner, response, result, error)
                                      : repeated(owner, append, response, result, error);
    }
    if (*refusal == SPILL_REFUSAL_TOO_OLD || *refusal == SPILL_REFUSAL_NO_MATCH)
        return spill_refuse(owner, *refusal, error);
    if (*refusal != SPILL_REFUSAL_STALE)
        return SPILL_OK;
    spill_fail(error, SPILL_UNKNOWN,
               "the operation's base %" PRId64 " is %" PRId64
               " operations old and the window has %d: it is not known whether an earlier try "
               "succeeded; read the array before you append with a new id",
               append->append.op->base, response->state.op_count - append->append.op->base,
               append->definition->op_window);
    return spill_owner_name(owner, SPILL_UNKNOWN, error);
}

void spill_append_done(const spill_part_t *part, const spill_response_t *response,
                       spill_append_result_t *result)
{
    *result = (spill_append_result_t){
        .first = response->seq,
        .count = part->skip + (int64_t)part->count,
        .op_base = response->state.op_count,
        .crowded_out = response->crowded_out,
    };
}

int64_t spill_part_growth(const spill_part_t *part)
{
    const spill_request_t append = {.kind = SPILL_REQUEST_APPEND,
                                    .append = {.update = part->update,
                                               .session = part->session,
                                               .members = part->members,
                                               .member_count = part->member_count}};
    return spill_fields_growth(&append);
}

/* ---- appends to the head --------------------------------------------------------------------- */

int64_t spill_append_head_bytes(const spill_owner_t *owner, const spill_state_t *head, int64_t live,
                                int64_t live_bytes)
{
    spill_state_t after = *head;
    after.op_count++;
    return spill_state_document_bytes(&owner->array->definition, owner->value, true, &after, live,
                                      live_bytes);
}

spill_code_t spill_append_check_head(const spill_owner_t *owner, const spill_part_t *part,
                                     const spill_state_t *head, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_head_limits(definition, &definition->bounds);
    int64_t count = (int64_t)part->count;
    int64_t bytes = part->bytes + spill_part_growth(part);
    int64_t alone = spill_append_head_bytes(owner, head, count, bytes);
    if (spill_limits_fit(&limits, count, count, alone))
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "%zu elements of %" PRId64 " bytes do not fit the head: its other fields "
                      "take %" PRId64 " of %" PRId64 " bytes; append fewer at a time, or raise "
                      "headBytesMax (--max-bytes)",
                      part->count, bytes, head->fields_bytes,
                      count == 1 ? (int64_t)SPILL_DOCUMENT_BYTES_MAX : limits.bytes_max);
}

/* After an append: sometimes remove old entries. */
static void forget_sometimes(const spill_owner_t *owner, const spill_request_t *append)
{
    const spill_session_op_t *session;
    int64_t count;
    for (size_t i = 0; (session = spill_request_session_at(append, i, &count)) != NULL; i++) {
        if (spill_session_forgets(session)) {
            spill_forget_sessions(owner, session);
            return;
        }
    }
}

/* There is no room for the session's entry. Remove old ones, once. */
static spill_code_t make_room_for_session(const spill_owner_t *owner, const spill_part_t *part,
                                          bool *forgot, spill_error_t *error)
{
    if (*forgot)
        return spill_refuse(owner, SPILL_REFUSAL_SESSIONS, error);
    spill_forget_sessions(owner, part->session);
    *forgot = true;
    return SPILL_OK;
}

/* Is there nothing more to do after a refusal that is not an error? */
static bool is_final(const spill_part_t *part, spill_refusal_t refusal)
{
    if (refusal == SPILL_REFUSAL_NONE) /* a member's operation, or an id, may be the reason */
        return part->member_count > 0 || part->searched != NULL;
    return refusal == SPILL_REFUSAL_REPEATED || refusal == SPILL_REFUSAL_STALE ||
           refusal == SPILL_REFUSAL_TOO_OLD || refusal == SPILL_REFUSAL_NO_MATCH ||
           refusal == SPILL_REFUSAL_SEARCH || refusal == SPILL_REFUSAL_PRESENT;
}

spill_code_t spill_append_to_head(spill_owner_t *owner, const spill_part_t *part,
                                  const spill_head_append_t *steps, spill_append_result_t *result,
                                  spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    int tries = 0;
    bool forgot = false;
    while (code == SPILL_OK) {
        spill_request_t append = steps->request(owner, part);
        code = spill_owner_call(owner, &append, &head, error);
        if (code != SPILL_OK)
            break;
        if (head.outcome == SPILL_DONE) {
            spill_append_done(part, &head, result);
            result->dropped = count_dropped(owner, &head.state, result->first, result->count);
            if (steps->done != NULL)
                steps->done(owner, &append, &head);
            forget_sometimes(owner, &append);
            break;
        }
        spill_refusal_t refusal = SPILL_REFUSAL_NONE;
        code = spill_append_classify_refusal(owner, &append, &head, &refusal, result, error);
        if (code != SPILL_OK || is_final(part, refusal))
            break;
        if (refusal == SPILL_REFUSAL_GAPS)
            code = spill_refuse(owner, refusal, error);
        if (refusal == SPILL_REFUSAL_SESSIONS)
            code = make_room_for_session(owner, part, &forgot, error);
        if (code == SPILL_OK && refusal == SPILL_REFUSAL_FULL)
            code = steps->full(owner, part, &head, error);
        if (code == SPILL_OK ||
            code == SPILL_UNKNOWN) /* the store refused it and changed nothing */
            code = spill_owner_again(owner, &tries, error);
    }
    spill_response_release(&head);
    return code;
}
