/*
 * Layout subset: after every step the head's top equals that of the plain array, and readers get a
 * top that existed at some version. A capped array that keeps the top-N returns all of its elements
 * by rank.
 */
#include "world.h"

#include <assert.h>

static spill_top_entry_t entry_of(const sim_world_t *world, int64_t seq, int64_t value)
{
    sim_value_bytes_t bytes;
    spill_value_t element = sim_value_of(world, &bytes, value);
    return spill_top_entry_of(&world->definition, seq, &element);
}

/*
 * Collect the highest-ranked elements at a version, without those with a pending removal and
 * without number `without`.
 */
static void rank_version(const sim_world_t *world, int owner, int32_t version, int64_t without,
                         spill_top_t *top)
{
    const sim_model_t *plain = &world->plains[owner];
    int32_t generation = plain->moments[version].generation;
    size_t most = world->settings.top_n ? SIZE_MAX : (size_t)world->settings.top;
    spill_top_clear(top);
    for (size_t i = 0; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        int64_t value =
            element->generation == generation ? sim_model_value(plain, element, version) : -1;
        bool pending = element->pending && element->died == SIM_ALIVE;
        if (value < 0 || pending || element->seq == without)
            continue;
        spill_top_entry_t entry = entry_of(world, element->seq, value);
        spill_top_add(top, most, &entry);
    }
}

/* ---- after each step ------------------------------------------------------------------------- */

static void note_events(sim_world_t *world, const spill_request_t *request,
                        const spill_state_t *head)
{
    const spill_top_t *before = &world->top_before;
    if (head->top.shown < head->top.count)
        sim_saw(world, SIM_TOP_PARTLY_SHOWN);
    if (request->kind == SPILL_REQUEST_COMPLETE && request->change.element &&
        spill_top_contains(&head->top, request->change.seq))
        sim_saw(world, SIM_TOP_EDITED);
    int64_t changed = spill_request_is_change(request) ? request->change.seq : -1;
    for (size_t i = 0; spill_request_refill(request) && i < head->top.count; i++) {
        int64_t seq = head->top.at[i].seq;
        if (seq == changed || spill_top_contains(before, seq))
            continue;
        sim_saw(world, seq >= head->first ? SIM_TOP_BY_JOURNAL : SIM_TOP_REFILLED);
    }
}

/*
 * During an edit the top may hold its element's old value. Then compare the other elements; one may
 * be missing.
 */
void sim_observe_top(sim_world_t *world, int owner, const spill_request_t *request)
{
    const spill_state_t *head = &world->before.state;
    if (!sim_model_now(&world->plains[owner])->exists)
        return;
    spill_top_t expected = {0}, kept = {0};
    int64_t without = head->intent_edit ? head->intent_seq : -1;
    rank_version(world, owner, sim_model_version(&world->plains[owner]), without, &expected);
    spill_top_copy(&head->top, &kept);
    if (without >= 0)
        spill_top_remove(&kept, without);
    if (without >= 0 && kept.count + 1 == expected.count)
        expected.count--;
    expected.shown = kept.shown;
    if (!spill_top_equal(&expected, &kept))
        sim_fail(world, "owner %d: the top has %zu elements, from %lld on, not %zu from %lld on",
                 owner, kept.count, kept.count > 0 ? (long long)kept.at[0].seq : -1, expected.count,
                 expected.count > 0 ? (long long)expected.at[0].seq : -1);
    note_events(world, request, head);
    spill_top_release(&expected);
    spill_top_release(&kept);
}

/* ---- answers to readers ---------------------------------------------------------------------- */

static bool matches_version(const sim_world_t *world, int owner, int32_t version,
                            const spill_slice_t *slice, spill_top_t *top)
{
    const sim_model_t *plain = &world->plains[owner];
    rank_version(world, owner, version, -1, top);
    if (slice->count > top->count)
        return false;
    for (size_t i = 0; i < slice->count; i++) {
        const sim_model_element_t *element = sim_model_find_at(plain, version, top->at[i].seq);
        if (slice->elements[i].seq != top->at[i].seq || !element ||
            sim_value_id(&slice->elements[i].value, NULL) !=
                sim_model_value(plain, element, version))
            return false;
    }
    return true;
}

/* Removals and edits have two steps. Between them a top matches no version. */
static bool only_whole_steps(const sim_world_t *world, int owner, sim_span_t span)
{
    const sim_model_t *plain = &world->plains[owner];
    for (int32_t v = span.from; v <= span.to; v++)
        if (plain->moments[v].change == SIM_CHANGE_EDIT ||
            plain->moments[v].change == SIM_CHANGE_PREPARE || plain->moments[v].pending > 0)
            return false;
    return !world->traces[owner].editing;
}

void sim_check_top(sim_client_t *client, int owner, bool at_the_end)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    spill_value_t value = sim_owner_value(world, owner);
    sim_span_t span = {.from = sim_model_version(plain)};
    spill_slice_t *slice;
    spill_error_t error;
    spill_top_t top = {0};
    int corruptions = world->corruptions[owner];
    bool corrupted = sim_is_corrupted(world, owner);
    spill_code_t code = spill_array_top(client->array, &value, INT64_MAX, &slice, &error);
    span.to = sim_model_version(plain);
    if (code != SPILL_OK) {
        if (at_the_end || !sim_failed_by_fault(client, code))
            sim_fail(world, "owner %d: its top cannot be read: %s", owner, error.message);
        return;
    }
    sim_saw(world, SIM_TOP_READ);
    corrupted = corrupted || corruptions != world->corruptions[owner];
    bool found = corrupted || (!at_the_end && !only_whole_steps(world, owner, span));
    for (int32_t v = span.from; !found && v <= span.to; v++)
        found = matches_version(world, owner, v, slice, &top);
    bool all = corrupted || slice->count == top.count || world->settings.padded || !at_the_end;
    if (!found || !all)
        sim_fail(world, "owner %d: a top of %zu elements was read that matches no version", owner,
                 slice->count);
    spill_top_release(&top);
    spill_slice_free(slice);
}
