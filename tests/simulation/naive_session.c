/* Weakened operations of sessions, over the model store's documents. */
#include "naive.h"

#include "support/model_store.h"

static void adjust_sessions(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_APPEND] = 1};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 2, 2);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.keep_elements = 0;
    world->settings.faults = 100;
    world->settings.sessions = 2;
    world->settings.actions_each = 6;
}

static model_document_t *head_of(sim_world_t *world, const spill_request_t *request)
{
    bool of_session = request->kind == SPILL_REQUEST_APPEND && request->append.session;
    return of_session ? model_document(world->store, request, false) : NULL;
}

/* The entry of the request's session; NULL: none. */
static spill_session_entry_t *entry_of(model_document_t *head, const spill_request_t *request)
{
    uint8_t key[SPILL_SESSION_KEY_BYTES];
    if (!head)
        return NULL;
    spill_session_key(request->append.session, key);
    return spill_sessions_find(&head->sessions, key);
}

/* Believed: "The last few sessions are enough: a driver retries at once. Nobody needs a base." */
static spill_code_t sessions_by_count(sim_world_t *world, const spill_request_t *request,
                                      spill_response_t *response, spill_error_t *error)
{
    model_document_t *head = head_of(world, request);
    if (head && !entry_of(head, request) &&
        (int64_t)head->sessions.count >= spill_session_entries_max(request->append.session))
        head->sessions.entries[0] = head->sessions.entries[--head->sessions.count];
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_sessions_by_count = {.name = "sessions leave the window by count",
                                                 .execute = sessions_by_count,
                                                 .adjust = adjust_sessions,
                                                 .shows = "appended twice",
                                                 .schedules = 20000};

/* Believed: "Statements are made in order, so the highest number says which were applied." */
static spill_code_t highest_statement(sim_world_t *world, const spill_request_t *request,
                                      spill_response_t *response, spill_error_t *error)
{
    model_document_t *head =
        request->page == SPILL_HEAD ? model_document(world->store, request, false) : NULL;
    for (size_t i = 0; head && i < head->sessions.count; i++) {
        spill_session_entry_t *entry = &head->sessions.entries[i];
        entry->runs[0] = (spill_session_run_t){0, entry->runs[entry->run_count - 1].last};
        entry->run_count = 1;
    }
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_highest_statement = {.name = "the highest number of a transaction",
                                                 .execute = highest_statement,
                                                 .adjust = adjust_sessions,
                                                 .shows = "acknowledged, but",
                                                 .schedules = 20000};

/* Believed: "A session has one command at a time, so any other number is a new transaction." */
static spill_code_t entry_replaced_late(sim_world_t *world, const spill_request_t *request,
                                        spill_response_t *response, spill_error_t *error)
{
    model_document_t *head = head_of(world, request);
    spill_session_entry_t *entry = entry_of(head, request);
    if (entry && entry->txn > request->append.session->txn)
        entry->txn = -1;
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_entry_replaced_late = {.name =
                                                       "an older transaction replaces the entry",
                                                   .execute = entry_replaced_late,
                                                   .adjust = adjust_sessions,
                                                   .shows = "appended twice",
                                                   .schedules = 20000};
