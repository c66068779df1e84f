/*
 * Clients that leave a due spill to another thread. Here that thread is a turn of the same client,
 * which spills late, or never. Until then it knows the head as the append has shown it.
 */
#include "world.h"

#include "layout/newest.h"

/* spill_store_t.defer_spill */
static bool defer(const spill_owner_t *owner, spill_response_t *head)
{
    static const spill_response_t nothing = SPILL_RESPONSE_INIT;
    sim_client_t *client = (sim_client_t *)owner->array->store;
    sim_world_t *world = client->world;
    if (client->reliable || sim_random_chance(&world->random, 100))
        return false; /* the queue is full */
    sim_saw(world, SIM_SPILL_DEFERRED);
    for (int i = 0; i < world->settings.owners; i++) {
        spill_value_t value = sim_owner_value(world, i);
        if (!spill_value_equal(&value, owner->value) || client->due[i])
            continue;
        client->due[i] = true;
        if (sim_random_chance(&world->random, 500)) {
            client->due_heads[i] = *head;
            *head = nothing;
        }
    }
    return true;
}

void sim_spiller_open(sim_client_t *client)
{
    if (!client->world->settings.defers)
        return;
    client->port.defer_spill = defer;
    client->port.defer_room = 0;
}

static void forget(sim_client_t *client, int owner)
{
    client->due[owner] = false;
    spill_response_release(&client->due_heads[owner]);
}

void sim_spiller_close(sim_client_t *client)
{
    for (int i = 0; i < SIM_OWNERS_MAX; i++)
        forget(client, i);
}

static void spill(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    spill_value_t value = sim_owner_value(world, owner);
    spill_owner_t own;
    spill_error_t error;
    spill_code_t code = spill_owner_init(&own, client->array, &value, &error);
    if (code == SPILL_OK)
        code = spill_newest_spill_due(&own, &client->due_heads[owner], &error);
    spill_owner_release(&own);
    forget(client, owner);
    if (code == SPILL_OK)
        sim_saw(world, SIM_SPILL_LATE);
    else if (!sim_failed_by_fault(client, code))
        sim_fail(world, "owner %d: a deferred spill failed: %s", owner, error.message);
}

bool sim_spiller_act(sim_client_t *client)
{
    sim_world_t *world = client->world;
    for (int i = 0; i < world->settings.owners; i++)
        if (client->due[i] && sim_random_chance(&world->random, 400)) {
            spill(client, i);
            return true;
        }
    return false;
}
