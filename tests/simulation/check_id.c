/* Check the answers of calls that select elements by id, by a filter, by count or by time. */
#include "world.h"

#include <stdlib.h>

/* ---- by id ----------------------------------------------------------------------------------- */

static bool has_id(const sim_model_t *plain, const sim_model_element_t *element, int32_t version,
                   int64_t id)
{
    int64_t value = sim_model_value(plain, element, version);
    return value >= 0 && value % SIM_IDS == id;
}

/*
 * Did an edit give the element the id while it was live, or after a trim had removed it? The client
 * of such a late edit read the head before the trim. Another client that reads the same head finds
 * the id.
 */
static bool had_id(const sim_model_t *plain, int64_t seq, sim_span_t span, int64_t id)
{
    for (int32_t v = span.from; v <= span.to; v++) {
        const sim_model_element_t *element = sim_model_find_at(plain, v, seq);
        if (element && has_id(plain, element, v, id))
            return true;
        if (!element || element->died < span.from || element->died > span.to)
            continue;
        for (int32_t i = element->last_edit; i >= 0; i = plain->edits[i].previous)
            if (plain->edits[i].version == element->died && plain->edits[i].value % SIM_IDS == id)
                return true;
    }
    return false;
}

/* Return the lowest number with the id at that version, or -1. */
static int64_t lowest_with_id(const sim_model_t *plain, int32_t version, int64_t id)
{
    if (!plain->moments[version].exists)
        return -1;
    for (size_t i = 0; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        if (element->generation == plain->moments[version].generation &&
            has_id(plain, element, version, id))
            return element->seq;
    }
    return -1;
}

/* Did some element have this id at every version of the span, without a pending removal? */
static bool existed_throughout(const sim_model_t *plain, sim_span_t span, int64_t id)
{
    for (size_t i = 0; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        bool there = !element->pending;
        for (int32_t v = span.from; there && v <= span.to; v++)
            there = plain->moments[v].exists && has_id(plain, element, v, id);
        if (there)
            return true;
    }
    return false;
}

static bool only_appends(const sim_model_t *plain, sim_span_t span)
{
    for (int32_t v = span.from + 1; v <= span.to; v++)
        if (plain->moments[v].change != SIM_CHANGE_APPEND)
            return false;
    return true;
}

void sim_check_id(sim_client_t *client, int owner, sim_span_t span, spill_code_t code, int64_t id,
                  int64_t seq, const char *what)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    if (code == SPILL_TOO_BIG && world->settings.padded)
        return;
    if (code != SPILL_OK) {
        if (code != SPILL_NOT_FOUND || existed_throughout(plain, span, id))
            sim_fail(world, "owner %d: %s by id %lld: %s", owner, what, (long long)id,
                     spill_code_name(code));
        sim_saw(world, SIM_ID_ABSENT);
        return;
    }
    sim_saw(world, client->reads > 1 ? SIM_ID_IN_PAGE : SIM_ID_FOUND);
    if (!had_id(plain, seq, span, id))
        sim_fail(world, "owner %d: %s by id %lld found %lld, which never had it", owner, what,
                 (long long)id, (long long)seq);
    int64_t first = lowest_with_id(plain, span.from, id);
    /* its removal is pending: it may be found or not */
    bool pending = plain->moments[span.from].pending > 0;
    if (only_appends(plain, span) && !pending && first >= 0 && first != seq)
        sim_fail(world, "owner %d: %s by id %lld found %lld, but %lld has it, too", owner, what,
                 (long long)id, (long long)seq, (long long)first);
}

/* ---- by a filter ----------------------------------------------------------------------------- */

void sim_check_removing(sim_client_t *client, int owner, int64_t seq)
{
    const sim_model_t *plain = &client->world->plains[owner];
    const sim_removing_t *removing = &client->removing;
    sim_span_t span = {removing->from, sim_model_version(plain)};
    if (removing->active && !had_id(plain, seq, span, removing->id))
        sim_fail(client->world, "owner %d: %lld was removed by a filter that it never matched",
                 owner, (long long)seq);
}

void sim_check_removed_where(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                             int64_t limit, int64_t removed)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    if (code != SPILL_OK)
        sim_fail(world, "owner %d: a removal by a filter failed: %s", owner, spill_code_name(code));
    else if (limit > 0 && removed > limit)
        sim_fail(world, "owner %d: a filter removed %lld, but the limit was %lld", owner,
                 (long long)removed, (long long)limit);
    else if ((limit == 0 || removed < limit) &&
             existed_throughout(plain, span, client->removing.id))
        sim_fail(world, "owner %d: a removal by a filter left an element that matches", owner);
    if (removed > 0)
        sim_saw(world, SIM_REMOVED_WHERE);
}

/* ---- trims ----------------------------------------------------------------------------------- */

/* Was the element older than the time at some version since the trim was requested? */
static bool was_older(const sim_model_t *plain, const sim_model_element_t *element, sim_span_t span,
                      int64_t time_ms)
{
    for (int32_t v = span.from; v <= span.to; v++) {
        int64_t value = sim_model_value(plain, element, v);
        if (value >= 0 && sim_value_time_ms(value) < time_ms)
            return true;
    }
    return false;
}

/* Retention keeps every element that is younger than this by the clock of some client. */
static int64_t kept_ms(const sim_world_t *world)
{
    const sim_settings_t *settings = &world->settings;
    int64_t ahead_us = SIM_CLIENTS_MAX * (int64_t)abs(settings->skew_us);
    return (world->now_us + ahead_us) / 1000 - (int64_t)settings->keep_seconds * 1000;
}

void sim_check_trimmed(sim_client_t *client, int owner, int32_t before)
{
    sim_world_t *world = client->world;
    if (client->trimming.retains && world->settings.keep_seconds > 0)
        client->trimming.time_ms = kept_ms(world);
    const sim_model_t *plain = &world->plains[owner];
    const sim_model_moment_t *now = sim_model_now(plain);
    const sim_model_moment_t *then = &plain->moments[before];
    const sim_trimming_t *trimming = &client->trimming;
    if (now->live - now->pending < trimming->keep && now->live < then->live)
        sim_fail(world, "owner %d: a trim to %lld elements left %d", owner,
                 (long long)trimming->keep, (int)(now->live - now->pending));
    if (trimming->keep > 0 && trimming->retains && now->live < then->live)
        sim_saw(world, SIM_RETAINED);
    if (trimming->retains && world->settings.keep_seconds > 0 && now->live < then->live)
        sim_saw(world, SIM_RETAINED_YOUNG);
    for (size_t i = 0; trimming->time_ms > 0 && i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        sim_span_t span = {trimming->from, before};
        if (element->died == sim_model_version(plain) &&
            !was_older(plain, element, span, trimming->time_ms))
            sim_fail(world, "owner %d: a trim by time removed %lld, which is not older", owner,
                     (long long)element->seq);
    }
}

/*
 * Is the first element left at that version young? Only elements that existed at version `from`
 * count.
 */
static bool first_is_young(const sim_model_t *plain, int32_t from, int32_t version, int64_t time_ms)
{
    const sim_model_moment_t *asked = &plain->moments[from];
    for (size_t i = 0; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        int64_t value = sim_model_value(plain, element, version);
        if (value >= 0 && element->generation == asked->generation && element->seq < asked->next)
            return sim_value_time_ms(value) >= time_ms;
    }
    return true;
}

/*
 * Was the element edited? A late edit counts although another client had trimmed the element
 * before.
 */
static bool was_edited(const sim_model_t *plain, sim_span_t span)
{
    for (size_t i = 0; i < plain->edit_count; i++)
        if (plain->edits[i].version > span.from && plain->edits[i].version <= span.to)
            return true;
    return false;
}

void sim_check_trim_to(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                       int64_t below)
{
    sim_world_t *world = client->world;
    const sim_model_t *plain = &world->plains[owner];
    const sim_trimming_t *trimming = &client->trimming;
    if (code != SPILL_OK) {
        sim_check_trim(client, owner, span, code, below);
        return;
    }
    int64_t appended = 0;
    for (int32_t v = span.from + 1; v <= span.to; v++)
        if (plain->moments[v].next > plain->moments[v - 1].next)
            appended += plain->moments[v].next - plain->moments[v - 1].next;
    sim_saw(world, trimming->time_ms > 0 ? SIM_TRIMMED_TO_TIME : SIM_TRIMMED_TO_COUNT);
    for (int32_t v = span.from; v <= span.to; v++) {
        const sim_model_moment_t *moment = &plain->moments[v];
        bool few =
            trimming->time_ms == 0 && moment->live - moment->pending <= trimming->keep + appended;
        bool young =
            trimming->time_ms > 0 && first_is_young(plain, span.from, v, trimming->time_ms);
        if (!moment->exists || few || young || (trimming->time_ms > 0 && was_edited(plain, span)))
            return;
    }
    sim_fail(world, "owner %d: a trim to below %lld was acknowledged, but not made", owner,
             (long long)below);
}
