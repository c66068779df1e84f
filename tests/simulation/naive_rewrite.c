/* Weakened versions of REWRITE, over the model store's documents. */
#include "naive.h"

#include "support/model_store.h"

static void adjust(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_APPEND] = 1};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 3, 2);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.keep_elements = 0;
    world->settings.faults = 100;
    world->settings.sessions = 40;
    world->settings.actions_each = 6;
}

/* Believed: "An update of F alone needs no length: the server applies it to what is there." */
static spill_code_t rewrite_without_length(sim_world_t *world, const spill_request_t *request,
                                           spill_response_t *response, spill_error_t *error)
{
    model_document_t *head = request->kind == SPILL_REQUEST_REWRITE
                                 ? model_document(world->store, request, false)
                                 : NULL;
    if (!head)
        return sim_execute(world, request, response, error);
    spill_request_t accepted = *request;
    accepted.rewrite.end = spill_state_end(&head->state);
    spill_code_t code = sim_execute(world, &accepted, response, error);
    if (code == SPILL_OK && response->outcome == SPILL_DONE)
        head->state.first = head->state.watermark = request->rewrite.end;
    return code;
}

const sim_naive_t sim_naive_rewrite_without_length = {.name = "REWRITE by the rev alone",
                                                      .execute = rewrite_without_length,
                                                      .adjust = adjust,
                                                      .shows = "a sequence number was given twice",
                                                      .schedules = 20000};

/* Believed: "A rewrite sets the same array again, so a retry does no harm." */
static spill_code_t rewrite_without_entry(sim_world_t *world, const spill_request_t *request,
                                          spill_response_t *response, spill_error_t *error)
{
    spill_request_t alone = *request;
    if (request->kind == SPILL_REQUEST_REWRITE)
        alone.rewrite.session = NULL;
    return sim_execute(world, &alone, response, error);
}

const sim_naive_t sim_naive_rewrite_without_entry = {.name = "REWRITE without an entry",
                                                     .execute = rewrite_without_entry,
                                                     .adjust = adjust,
                                                     .shows = "appended twice",
                                                     .schedules = 20000};
