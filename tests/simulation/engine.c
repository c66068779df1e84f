/*
 * The shared store: the model store, or the embedded store's code on an ordered engine in memory.
 * The machine of the embedded store can crash. It then loses all unsynced data; a write in progress
 * is kept entirely or not at all.
 */
#include "world.h"

#include "store/embedded/embedded.h"
#include "support/disk.h"
#include "support/model_store.h"
#include "util/error.h"

/* An engine that forwards to the engine in memory and can be dropped when the machine crashes. */
typedef struct sim_kv {
    spill_kv_t base;
    spill_kv_t *inner;
    sim_world_t *world;
} sim_kv_t;

static spill_kv_t *inner(spill_kv_t *kv)
{
    return ((sim_kv_t *)kv)->inner;
}

static spill_code_t kv_get(spill_kv_t *kv, const uint8_t *key, size_t key_bytes,
                           spill_buffer_t *value, bool *found, spill_error_t *error)
{
    return inner(kv)->ops->get(inner(kv), key, key_bytes, value, found, error);
}

static spill_code_t kv_write(spill_kv_t *kv, const spill_batch_t *batch, bool sync,
                             spill_error_t *error)
{
    sim_world_t *world = ((sim_kv_t *)kv)->world;
    if (!world->machine_dies)
        return inner(kv)->ops->write(inner(kv), batch, sync, error);
    spill_code_t code = inner(kv)->ops->write(inner(kv), batch, false, error);
    if (code != SPILL_OK)
        return code;
    size_t unsynced = disk_unsynced(world->disk);
    world->write_survives = sim_random_below(&world->random, 2) == 1;
    disk_crash(world->disk, world->write_survives ? unsynced : unsynced - 1);
    return spill_fail(error, SPILL_UNKNOWN, "the machine crashed");
}

static spill_kv_iter_t *kv_iterate(spill_kv_t *kv)
{
    return inner(kv)->ops->iterate(inner(kv));
}

static spill_code_t kv_close(spill_kv_t *kv, spill_error_t *error)
{
    spill_code_t code = inner(kv)->ops->close(inner(kv), error);
    bson_free(kv);
    return code;
}

static const spill_kv_ops_t kv_ops = {
    .get = kv_get, .write = kv_write, .iterate = kv_iterate, .close = kv_close};

static int64_t store_now(void *context)
{
    return ((const sim_world_t *)context)->now_us;
}

/* The shared store has a clock of its own, which no client sees. */
static void set_clock(sim_world_t *world)
{
    spill_clock_t *clock = &world->store->options.clock;
    *clock = (spill_clock_t){.context = world, .now_us = store_now, .sleep_us = clock->sleep_us};
}

static void open_embedded(sim_world_t *world)
{
    sim_kv_t *kv = bson_malloc0(sizeof *kv);
    *kv = (sim_kv_t){.base = {.ops = &kv_ops}, .inner = disk_open(world->disk), .world = world};
    spill_store_options_t options;
    spill_store_options_init(&options);
    spill_error_t error;
    if (spill_embedded_open_kv(&kv->base, "simulation:", &options, &world->store, &error) !=
        SPILL_OK)
        sim_fail(world, "the store cannot be opened: %s", error.message);
    else
        set_clock(world);
}

void sim_engine_open(sim_world_t *world)
{
    world->machine_dies = false;
    if (world->engine == SIM_EMBEDDED) {
        world->disk = disk_new();
        open_embedded(world);
    } else {
        world->store = model_store_open();
        set_clock(world);
    }
}

void sim_engine_close(sim_world_t *world)
{
    spill_error_t error;
    if (spill_store_close(world->store, &error) != SPILL_OK)
        sim_fail(world, "the store cannot be closed: %s", error.message);
    world->store = NULL;
    disk_free(world->disk);
    world->disk = NULL;
}

/* The embedded store runs inside the program, so a crash of the machine also ends all clients. */
void sim_machine_crash(sim_world_t *world)
{
    spill_error_t error;
    sim_trace(world, "       THE MACHINE CRASHES, and starts again");
    sim_saw(world, SIM_MACHINE_CRASH);
    for (int i = 0; i < world->settings.clients; i++)
        world->clients[i].crashed = true;
    sim_discard_late(world);
    spill_store_close(world->store, &error);
    disk_crash(world->disk, 0);
    world->machine_dies = false;
    open_embedded(world);
}
