/* Capped arrays with a top-N: each append drops the elements that rank lowest. */
#include "world.h"

/* The elements of a head before an append, split into kept and dropped. */
typedef struct fall {
    sim_world_t *world;
    sim_model_t *plain;
    const spill_request_t *request;
    const spill_response_t *response;
    spill_top_t kept, dropped; /* by rank */
} fall_t;

/* Sort each earlier element by whether the head still has it. */
static void split_kept_and_dropped(fall_t *fall)
{
    const sim_model_t *plain = fall->plain;
    for (size_t i = plain->generation_start; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        sim_value_bytes_t bytes;
        if (element->died != SIM_ALIVE)
            continue;
        spill_value_t value = sim_value_of(
            fall->world, &bytes, sim_model_value(plain, element, sim_model_version(plain)));
        spill_top_entry_t entry =
            spill_top_entry_of(&fall->world->definition, element->seq, &value);
        bool deleted = spill_is_deleted(&fall->response->state, element->seq);
        spill_top_add(deleted ? &fall->dropped : &fall->kept, SIZE_MAX, &entry);
    }
}

static const char *check_dropped(const fall_t *fall)
{
    int64_t cap = fall->request->limits.slots_max;
    int64_t all = (int64_t)(fall->kept.count + fall->dropped.count);
    int64_t most = all > cap ? all - cap : 0;
    if (fall->kept.count != (size_t)fall->response->state.live)
        return "the head has not the elements that its counts say";
    if ((int64_t)fall->dropped.count < most)
        return "more elements than the cap allows";
    if ((int64_t)fall->dropped.count > most && !fall->world->settings.padded)
        return "an element that fits was dropped";
    if (fall->kept.count == 0)
        return "the best element was dropped";
    if (fall->dropped.count > 0 &&
        spill_top_compare(&fall->dropped.at[0], &fall->kept.at[fall->kept.count - 1]) > 0)
        return "an element was dropped that ranks above one that was kept";
    return NULL;
}

static void note_events(const fall_t *fall)
{
    sim_world_t *world = fall->world;
    if (fall->dropped.count == 0)
        return;
    sim_saw(world, (int64_t)fall->kept.count < fall->request->limits.slots_max ? SIM_TOP_N_BY_BYTES
                                                                               : SIM_TOP_N);
    for (size_t i = 0; i < fall->dropped.count; i++) {
        int64_t seq = fall->dropped.at[i].seq;
        if (seq >= fall->response->seq)
            sim_saw(world, SIM_TOP_N_NOT_KEPT);
        if (seq > fall->response->state.first)
            sim_saw(world, SIM_TOP_N_BETWEEN);
        if (sim_model_find(fall->plain, seq)->last_edit >= 0)
            sim_saw(world, SIM_TOP_N_EDITED);
    }
}

void sim_observe_top_n(sim_world_t *world, int owner, const spill_request_t *request,
                       const spill_response_t *response)
{
    fall_t fall = {
        .world = world, .plain = &world->plains[owner], .request = request, .response = response};
    split_kept_and_dropped(&fall);
    const char *wrong = check_dropped(&fall);
    note_events(&fall);
    for (size_t i = 0; !wrong && i < fall.dropped.count; i++)
        wrong = sim_model_fall_one(fall.plain, fall.dropped.at[i].seq);
    sim_model_lift(fall.plain);
    if (!wrong && sim_model_now(fall.plain)->watermark != response->state.first)
        wrong = "the head does not begin with a live element";
    if (wrong)
        sim_fail(world, "owner %d: %s", owner, wrong);
    spill_top_release(&fall.kept);
    spill_top_release(&fall.dropped);
}
