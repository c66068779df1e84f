/*
 * Corrupt bookkeeping on purpose. Layouts with referenced elements: now and then give a head's
 * summary wrong values, as other programs may. The checks skip a corrupted summary until repair
 * rebuilds it; from then on it must be correct. Any layout: at the end of a schedule, make the
 * count of removed elements wrong. Repair must correct it.
 */
#include "world.h"

#include "definition/schema.h"
#include "layout/referenced.h"

bool sim_is_corrupted(const sim_world_t *world, int owner)
{
    return world->corrupted[owner];
}

void sim_corrupt(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    sim_random_t random = {world->seed ^ (uint64_t)world->calls * 0x73706f696cu};
    if (!world->settings.referenced || client->crashed || !sim_random_chance(&random, 800))
        return;
    spill_owner_t own;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_top_t top = {0};
    spill_value_t value = sim_owner_value(world, owner);
    spill_code_t code = spill_owner_init(&own, client->array, &value, NULL);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    sim_read_state(world, &request, &response);
    const spill_state_t *head = &response.state;
    if (code == SPILL_OK && head->present && !head->intent) {
        request.rev = head->rev;
        request.recount.end = spill_state_end(head);
        request.recount.sum = head->sum;
        request.recount.sum.whole += 1000;
        request.recount.refill = &top;
        spill_top_copy(&head->top, &top);
        if (top.count > 0 && sim_random_chance(&random, 300))
            spill_top_remove(&top, top.at[sim_random_below(&random, (int)top.count)].seq);
        code = sim_execute(world, &request, &response, NULL);
        if (code != SPILL_OK || response.outcome != SPILL_DONE)
            sim_fail(world, "owner %d: its summary cannot be corrupted", owner);
        sim_trace(world, "       the summary of owner %d is corrupted", owner);
        world->corrupted[owner] = true;
        world->corruptions[owner]++;
    }
    spill_top_release(&top);
    spill_response_release(&response);
    spill_owner_release(&own);
}

bool sim_miscount(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    sim_random_t random = {world->seed ^ (uint64_t)world->calls * 0x6d697363u};
    spill_owner_t own;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_value_t value = sim_owner_value(world, owner);
    bool done = false;
    if (sim_random_chance(&random, 500))
        return false;
    spill_code_t code = spill_owner_init(&own, client->array, &value, NULL);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    sim_read_state(world, &request, &response);
    const spill_state_t *head = &response.state;
    bool counts = spill_schema_of(&client->array->definition)->has_pages;
    if (code == SPILL_OK && counts && head->present && !head->intent) {
        request.recount.counts = true;
        request.rev = head->rev;
        request.recount.pages = head->pages;
        request.recount.total = head->total;
        request.recount.removed = head->removed + 1 + sim_random_below(&random, 5);
        code = sim_execute(world, &request, &response, NULL);
        done = code == SPILL_OK && response.outcome == SPILL_DONE;
        if (!done)
            sim_fail(world, "owner %d: its counts cannot be corrupted", owner);
    }
    spill_response_release(&response);
    spill_owner_release(&own);
    return done;
}

void sim_observe_corrupted(sim_world_t *world, int owner, const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_RECOUNT && world->corrupted[owner])
        sim_saw(world, SIM_SUMMARY_FIXED);
    if (request->kind == SPILL_REQUEST_RECOUNT || request->kind == SPILL_REQUEST_DROP_HEAD)
        world->corrupted[owner] = false;
}
