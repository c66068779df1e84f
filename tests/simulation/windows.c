/*
 * Operations on all windows of an owner. Each window is an owner of the plain arrays, which
 * observe.c keeps up to date. This file checks answers about several windows.
 */
#include "world.h"

typedef struct both {
    sim_client_t *client;
    spill_value_t owner;
    int32_t from[SIM_OWNERS_MAX];
} both_t;

static sim_model_t *unmanaged_of(const both_t *both, int window)
{
    return &both->client->world->plains[window];
}

static sim_span_t span_of(const both_t *both, int window)
{
    return (sim_span_t){both->from[window], sim_model_version(unmanaged_of(both, window))};
}

static void report_windows_call(const both_t *both, const char *call, int64_t number,
                                spill_code_t code)
{
    sim_trace(both->client->world, "       client %d   %s of all windows, %lld: %s",
              both->client->index, call, (long long)number, spill_code_name(code));
}

/* ---- by id ----------------------------------------------------------------------------------- */

/*
 * An earlier window must not have held the id during the whole call. If none was found, no window
 * did.
 */
static void remove_by_id(const both_t *both)
{
    sim_client_t *client = both->client;
    int64_t id = sim_random_below(&client->world->random, SIM_IDS), seq;
    spill_value_t by = {
        .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT64};
    char window[SPILL_WINDOW_SIZE];
    spill_error_t error;
    spill_code_t code =
        spill_bucket_remove_id(client->array, &both->owner, &by, window, &seq, &error);
    report_windows_call(both, "removal by id", seq, code);
    if (sim_failed_by_fault(client, code))
        return;
    int found = code != SPILL_OK ? SIM_OWNERS_MAX : strcmp(window, SIM_SECOND_WINDOW) == 0;
    for (int i = 0; i < found; i++)
        sim_check_id(client, i, span_of(both, i), SPILL_NOT_FOUND, id, -1, "remove");
    if (code != SPILL_OK) {
        if (code != SPILL_NOT_FOUND)
            sim_fail(client->world, "a removal by id from two windows: %s", error.message);
        return;
    }
    sim_check_id(client, found, span_of(both, found), code, id, seq, "remove");
    sim_check_remove(client, found, span_of(both, found), code, seq);
    sim_saw(client->world, found == 1 ? SIM_WINDOWS_REMOVED_LATER : SIM_WINDOWS_REMOVED);
}

/* ---- by count -------------------------------------------------------------------------------- */

/*
 * Count what was appended to a window since, or the removals that other clients have begun since.
 * The trim may finish such a removal.
 */
static int64_t changed_since(const both_t *both, int window, sim_change_t change)
{
    const sim_model_t *plain = unmanaged_of(both, window);
    sim_span_t span = span_of(both, window);
    int64_t count = 0;
    for (int32_t v = span.from + 1; v <= span.to; v++)
        if (change == SIM_CHANGE_PREPARE)
            count += plain->moments[v].change == change;
        else if (plain->moments[v].next > plain->moments[v - 1].next)
            count += plain->moments[v].next - plain->moments[v - 1].next;
    return count;
}

/*
 * The newest `keep` elements stay, of those that existed before the trim and those appended during
 * it. The trim removes at most the other elements, and finishes removals that were begun.
 */
static void trim_keep(const both_t *both)
{
    sim_client_t *client = both->client;
    sim_world_t *world = client->world;
    int64_t live = 0, pending = 0, taken = client->taken;
    for (int i = 0; i < SIM_OWNERS_MAX; i++) {
        live += sim_model_now(unmanaged_of(both, i))->live -
                sim_model_now(unmanaged_of(both, i))->pending;
        pending += sim_model_now(unmanaged_of(both, i))->pending;
    }
    int64_t keep = 1 + sim_random_below(&world->random, (int)live + 1);
    spill_error_t error;
    world->drop_begun[0] = true; /* the trim drops the older window if the newer one has enough */
    client->trimming = (sim_trimming_t){0};
    spill_code_t code = spill_bucket_trim_keep(client->array, &both->owner, keep, &error);
    client->trimming = sim_retention(world);
    report_windows_call(both, "trim keep", keep, code);
    for (int i = 0; i < SIM_OWNERS_MAX; i++) {
        live += changed_since(both, i, SIM_CHANGE_APPEND);
        pending += changed_since(both, i, SIM_CHANGE_PREPARE);
    }
    taken = client->taken - taken;
    if (taken > (live > keep ? live - keep : 0) + pending)
        sim_fail(world, "a trim of two windows to %lld of at most %lld took %lld", (long long)keep,
                 (long long)live, (long long)taken);
    if (sim_failed_by_fault(client, code))
        return;
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        sim_fail(world, "a trim of two windows: %s", error.message);
    if (code == SPILL_OK && taken > 0)
        sim_saw(world, sim_model_now(unmanaged_of(both, 0))->exists ? SIM_WINDOWS_TRIMMED_WITHIN
                                                                    : SIM_WINDOWS_TRIMMED);
}

/* ---- dropping whole windows ------------------------------------------------------------------ */

static void drop_before(const both_t *both)
{
    sim_client_t *client = both->client;
    sim_world_t *world = client->world;
    bool all = sim_random_below(&world->random, 2);
    int64_t dropped;
    spill_error_t error;
    for (int owner = 0; owner < SIM_OWNERS_MAX; owner++)
        world->drop_begun[owner] = true;
    spill_code_t code = spill_bucket_drop_before(client->array, &both->owner,
                                                 all ? NULL : SIM_SECOND_WINDOW, &dropped, &error);
    report_windows_call(both, "drop", dropped, code);
    if (sim_failed_by_fault(client, code))
        return;
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        sim_fail(world, "a drop of windows: %s", error.message);
    for (int i = 0; code == SPILL_OK && i < (all ? 2 : 1); i++) {
        const sim_model_t *plain = unmanaged_of(both, i);
        sim_span_t span = span_of(both, i);
        bool deleted = false;
        for (int32_t v = span.from; v <= span.to; v++)
            deleted = deleted || !plain->moments[v].exists;
        if (!deleted)
            sim_fail(world, "a drop of windows left window %d", i + 1);
    }
    if (dropped > 0)
        sim_saw(world, all && dropped > 1 ? SIM_WINDOWS_DROPPED_BOTH : SIM_WINDOWS_DROPPED);
}

bool sim_act_on_windows(sim_client_t *client)
{
    sim_world_t *world = client->world;
    spill_value_t first = sim_owner_value(world, 0);
    char window[SPILL_WINDOW_SIZE];
    both_t both = {.client = client};
    int dice = sim_random_below(&world->random, 1000);
    if (dice >= 200 || !spill_bucket_split(&first, &both.owner, window))
        return false;
    for (int i = 0; i < SIM_OWNERS_MAX; i++)
        both.from[i] = sim_model_version(unmanaged_of(&both, i));
    if (dice < 110)
        remove_by_id(&both);
    else if (dice < 170)
        trim_keep(&both);
    else
        drop_before(&both);
    return true;
}
