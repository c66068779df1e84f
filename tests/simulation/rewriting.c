/* Clients that give a head without pages other elements, as the gateway does. */
#include "world.h"

#include "layout/owner.h"
#include "util/error.h"

static spill_code_t refuse(spill_code_t code, spill_reason_t reason, spill_error_t *error)
{
    spill_fail(error, code, "the head is not rewritten");
    spill_fail_because(error, code, reason);
    return code;
}

/* What the read of a head says about the operation. *settled: the answer is known. */
static spill_code_t judge(const spill_response_t *head, const sim_append_t *append, bool *settled,
                          spill_append_result_t *result, spill_error_t *error)
{
    *settled = true;
    if (!head->state.present)
        return refuse(SPILL_NOT_FOUND, SPILL_REASON_NO_MATCH, error);
    if (head->session == SPILL_SESSION_TOO_OLD)
        return refuse(SPILL_CONFLICT, SPILL_REASON_TOO_OLD, error);
    if (head->session == SPILL_SESSION_FULL || head->session == SPILL_SESSION_GAPS)
        return refuse(SPILL_CONFLICT, SPILL_REASON_SESSIONS, error);
    if (head->session == SPILL_SESSION_REPEATED) {
        *result = (spill_append_result_t){.first = -1, .count = append->count, .repeated = true};
        return SPILL_OK;
    }
    if (head->state.pages > 0)
        return refuse(SPILL_REFUSED, SPILL_REASON_NONE, error);
    *settled = false;
    return SPILL_OK;
}

static spill_code_t write_head(const spill_owner_t *owner, const spill_state_t *head,
                               const sim_append_t *append, const spill_value_t *elements,
                               const spill_session_op_t *session, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(spill_run_release) spill_run_t run = {0};
    int64_t end = spill_state_end(head);
    for (int i = 0; i < append->count; i++)
        spill_run_add(&run, end + i, &elements[i]);
    spill_request_t rewrite = spill_owner_request(owner, SPILL_REQUEST_REWRITE, SPILL_HEAD);
    rewrite.incarnation = head->incarnation;
    rewrite.rev = head->rev;
    rewrite.rewrite.run = &run;
    rewrite.rewrite.end = end;
    rewrite.rewrite.session = session;
    rewrite.rewrite.session_count = append->count;
    return spill_owner_step(owner, &rewrite, done, error);
}

spill_code_t sim_rewrite(sim_client_t *client, const sim_append_t *append,
                         const spill_value_t *elements, const spill_session_op_t *session,
                         spill_append_result_t *result, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    spill_value_t value = sim_owner_value(client->world, append->owner);
    bool done = false, settled = false;
    int tries = 0;
    *result = (spill_append_result_t){0};
    SPILL_TRY(spill_owner_init(&owner, client->array, &value, error));
    while (true) {
        spill_request_t read = spill_owner_request(&owner, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.session = session;
        read.read.session_count = append->count;
        SPILL_TRY(spill_owner_call(&owner, &read, &head, error));
        SPILL_TRY(judge(&head, append, &settled, result, error));
        if (settled)
            return SPILL_OK;
        int64_t end = spill_state_end(&head.state);
        SPILL_TRY(write_head(&owner, &head.state, append, elements, session, &done, error));
        *result = (spill_append_result_t){.first = end, .count = done ? append->count : 0};
        if (done)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(&owner, &tries, error));
    }
}
