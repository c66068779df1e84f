/* Weakened versions of the guard of an append to an array that keeps each id once. */
#include "naive.h"

#include "support/model_store.h"

static void adjust(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 10, [SIM_ACTION_REMOVE] = 1};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 1, 1);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.keep_elements = 0;
    world->settings.actions_each = 6;
    sim_settings_unique(&world->settings);
}

/* Believed: "The id is in no page, and the update checks the head: so it is nowhere." */
static spill_code_t set_without_pages(sim_world_t *world, const spill_request_t *request,
                                      spill_response_t *response, spill_error_t *error)
{
    model_document_t *head =
        request->kind == SPILL_REQUEST_APPEND ? model_document(world->store, request, false) : NULL;
    if (!head || !request->append.searched)
        return sim_execute(world, request, response, error);
    spill_request_t accepted = *request;
    spill_searched_t searched = *request->append.searched;
    searched.pages = head->state.pages;
    accepted.append.searched = &searched;
    return sim_execute(world, &accepted, response, error);
}

const sim_naive_t sim_naive_set_without_pages = {.name = "a set that does not compare the pages",
                                                 .execute = set_without_pages,
                                                 .adjust = adjust,
                                                 .shows = "have the same id",
                                                 .schedules = 20000};

/* Believed: "An id that the search has not found is not there." */
static spill_code_t set_without_head(sim_world_t *world, const spill_request_t *request,
                                     spill_response_t *response, spill_error_t *error)
{
    spill_request_t accepted = *request;
    if (request->kind == SPILL_REQUEST_APPEND)
        accepted.append.searched = NULL;
    return sim_execute(world, &accepted, response, error);
}

const sim_naive_t sim_naive_set_without_head = {.name = "a set that searches, then appends",
                                                .execute = set_without_head,
                                                .adjust = adjust,
                                                .shows = "have the same id",
                                                .schedules = 20000};
