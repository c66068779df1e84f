/* Arrays that keep each id once: what must hold after each append, and of each answer. */
#include "world.h"

static int64_t id_of(int64_t value)
{
    return value % SIM_IDS;
}

static bool alive_at(const sim_model_element_t *element, int32_t version)
{
    return element->born <= version && version < element->died;
}

void sim_settings_unique(sim_settings_t *settings)
{
    settings->unique = true;
    settings->sessions = 0;
    settings->weights[SIM_ACTION_EDIT] = 0; /* an edit cannot change an id */
    settings->weights[SIM_ACTION_REMOVE] += 10;
}

void sim_observe_unique(sim_world_t *world, int owner)
{
    const sim_model_t *plain = &world->plains[owner];
    int32_t now = sim_model_version(plain);
    int64_t seqs[SIM_IDS];
    for (int i = 0; i < SIM_IDS; i++)
        seqs[i] = -1;
    for (size_t i = plain->generation_start; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        if (element->value == SIM_NO_VALUE || !alive_at(element, now))
            continue;
        int64_t *seq = &seqs[id_of(element->value)];
        if (*seq >= 0)
            sim_fail(world, "owner %d: elements %lld and %lld have the same id", owner,
                     (long long)*seq, (long long)element->seq);
        *seq = element->seq;
    }
}

/* Did the array have the id at a version since the call began? */
static bool had_id(const sim_model_t *plain, int32_t from, int64_t id)
{
    for (size_t i = 0; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        if (element->value != SIM_NO_VALUE && id_of(element->value) == id && element->died > from)
            return true;
    }
    return false;
}

void sim_check_left_out(sim_client_t *client, const sim_append_t *append,
                        const spill_append_result_t *result, int32_t from)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[append->owner];
    const sim_origin_t *origins = &world->origins[append->first_value];
    int32_t generation = sim_model_now(plain)->generation;
    int index = (int)(append - world->appends), applied = 0;
    int64_t first = -1;
    if (result->count != append->count)
        sim_fail(world, "append #%d: %d elements, %lld acknowledged", index, append->count,
                 (long long)result->count);
    for (int i = 0; i < append->count; i++) {
        if (origins[i].applied > 1 ||
            (origins[i].applied > 0 && origins[i].generation != generation))
            return; /* an earlier owner of the name got elements of it: no promise */
        if (origins[i].applied > 0 && first < 0)
            first = origins[i].seq;
        applied += origins[i].applied;
    }
    if (applied != append->count - (int)result->duplicates)
        sim_fail(world, "append #%d: %lld of %d duplicates, but %d were appended", index,
                 (long long)result->duplicates, append->count, applied);
    if (applied > 0 && result->first != first)
        sim_fail(world, "append #%d: answered %lld, appended at %lld", index,
                 (long long)result->first, (long long)first);
    if (append->count == 1 && applied == 0 && !had_id(plain, from, id_of(append->first_value)))
        sim_fail(world, "append #%d: v%lld is no duplicate", index, (long long)append->first_value);
    if (result->duplicates > 0)
        sim_saw(world, SIM_LEFT_OUT);
}
