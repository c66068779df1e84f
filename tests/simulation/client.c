/* The behaviour of clients: random calls of the public API. Each answer is checked. */
#include "world.h"

#include "layout/append.h"
#include "layout/layout.h"

#include <assert.h>
#include <string.h>

/* ---- values ---------------------------------------------------------------------------------- */

int64_t sim_value_new(sim_world_t *world, int owner, int32_t append, int padding)
{
    if (world->origin_count == world->origin_capacity) {
        world->origin_capacity = world->origin_capacity ? 2 * world->origin_capacity : 256;
        world->origins =
            bson_realloc(world->origins, world->origin_capacity * sizeof *world->origins);
    }
    world->origins[world->origin_count] = (sim_origin_t){
        .append = append, .padding = padding, .second = world->settings.windows && owner == 1};
    int64_t value = (int64_t)world->origin_count++;
    if (world->settings.keep_seconds > 0 && world->now_us < 1000 * sim_value_time_ms(value))
        world->now_us = 1000 * sim_value_time_ms(value);
    return value;
}

spill_value_t sim_value_of(const sim_world_t *world, sim_value_bytes_t *bytes, int64_t id)
{
    int padding = world->origins[id].padding;
    return world->settings.bucket
               ? sim_value_make_document(bytes, id, padding, world->origins[id].second)
               : sim_value_make(bytes, id, padding);
}

/* The owner's name: a number, or for a bucket its window. */
spill_value_t sim_owner_value(const sim_world_t *world, int owner)
{
    static const int64_t numbers[SIM_OWNERS_MAX] = {0, 1};
    static const char *const owners[SIM_OWNERS_MAX] = {SIM_WINDOW_OF("\0", SIM_WINDOW),
                                                       SIM_WINDOW_OF("\1", SIM_WINDOW)};
    static const char *const windows[SIM_OWNERS_MAX] = {SIM_WINDOW_OF("\0", SIM_WINDOW),
                                                        SIM_WINDOW_OF("\0", SIM_SECOND_WINDOW)};
    const char *const *names = world->settings.windows ? windows : owners;
    if (world->settings.bucket)
        return (spill_value_t){.data = (const uint8_t *)names[owner],
                               .size_bytes = SIM_WINDOW_BYTES,
                               .type = BSON_TYPE_DOCUMENT};
    return (spill_value_t){.data = (const uint8_t *)&numbers[owner],
                           .size_bytes = sizeof numbers[owner],
                           .type = BSON_TYPE_INT64};
}

static int random_padding(sim_world_t *world)
{
    static const int sizes[] = {0, 40, 120, 300, SIM_PADDING_MAX};
    return world->settings.padded ? sizes[sim_random_below(&world->random, 5)] : 0;
}

/* ---- appends --------------------------------------------------------------------------------- */

int sim_append_new(sim_client_t *client, int owner, int count, bool has_op)
{
    sim_world_t *world = client->world;
    if (world->append_count == world->append_capacity) {
        world->append_capacity = world->append_capacity ? 2 * world->append_capacity : 64;
        world->appends =
            bson_realloc(world->appends, world->append_capacity * sizeof *world->appends);
    }
    int index = (int)world->append_count++;
    world->appends[index] = (sim_append_t){
        .owner = owner,
        .first_value = (int64_t)world->origin_count,
        .count = count,
        .has_op = has_op,
        .base = client->bases[owner],
        .base_generation = client->base_incarnations[owner],
        .session = -1,
        .started_us = world->now_us,
        .started = sim_model_version(&world->plains[owner]),
    };
    memcpy(world->appends[index].id, &(uint64_t){(uint64_t)index}, 8);
    for (int i = 0; i < count; i++)
        sim_value_new(world, owner, index, random_padding(world));
    return index;
}

static void learn_base(sim_client_t *client, int owner, int64_t base, int32_t generation)
{
    client->bases[owner] = base;
    client->base_incarnations[owner] = generation;
}

/*
 * Learn the base that a call returned. The call began at the owner's version `from`. The base
 * belongs to a known incarnation only if that incarnation existed during the whole call.
 */
static void learn_returned_base(sim_client_t *client, int owner, int64_t base, int32_t from)
{
    const sim_model_t *plain = &client->world->plains[owner];
    int32_t generation = plain->moments[from].generation;
    if (generation == sim_model_now(plain)->generation)
        learn_base(client, owner, base, generation);
}

/* Append like a copy job whose source skips numbers. */
static spill_code_t append_skipping(sim_client_t *client, const sim_append_t *append,
                                    const spill_value_t *elements, const spill_op_t *op,
                                    spill_append_result_t *result, spill_error_t *error)
{
    spill_owner_t owner;
    spill_value_t value = sim_owner_value(client->world, append->owner);
    spill_part_t part = {
        .elements = elements, .count = (size_t)append->count, .skip = append->skip, .op = op};
    for (size_t i = 0; i < part.count; i++)
        part.bytes += elements[i].size_bytes;
    *result = (spill_append_result_t){0};
    spill_code_t code = spill_owner_init(&owner, client->array, &value, error);
    if (code == SPILL_OK)
        code = spill_layout_append(&owner, &part, result, error);
    spill_owner_release(&owner);
    return code;
}

static spill_code_t call_append(sim_client_t *client, const sim_append_t *append,
                                spill_append_result_t *result, spill_error_t *error)
{
    sim_value_bytes_t bytes[SIM_BATCH_MAX];
    spill_value_t elements[SIM_BATCH_MAX];
    for (int i = 0; i < append->count; i++)
        elements[i] = sim_value_of(client->world, &bytes[i], append->first_value + i);
    spill_op_t op = {.id = append->id, .id_bytes = sizeof append->id, .base = append->base};
    if (append->skip > 0)
        return append_skipping(client, append, elements, &op, result, error);
    bson_t update = BSON_INITIALIZER;
    spill_append_options_t options;
    spill_append_options_init(&options);
    spill_session_op_t session = {.session = {(uint8_t)append->session},
                                  .txn = append->txn,
                                  .number = append->number,
                                  .horizon_us = SIM_HORIZON_US,
                                  .entries_max = client->world->settings.sessions};
    if (append->rewrites)
        return sim_rewrite(client, append, elements, &session, result, error);
    bson_t any = BSON_INITIALIZER;
    options.op = append->has_op && append->session < 0 ? &op : NULL;
    options.session = append->session >= 0 ? &session : NULL;
    options.match = append->must_exist ? &any : NULL;
    options.fill = append->fill;
    if (append->updates) {
        bson_t fields;
        BSON_APPEND_DOCUMENT_BEGIN(&update, "$inc", &fields);
        BSON_APPEND_INT64(&fields, "hits", 1);
        bson_append_document_end(&update, &fields);
        options.update = &update;
    }
    spill_value_t owner = sim_owner_value(client->world, append->owner);
    spill_code_t code = spill_array_append(client->array, &owner, elements, (size_t)append->count,
                                           &options, result, error);
    bson_destroy(&update);
    return code;
}

bool sim_client_append(sim_client_t *client, int index)
{
    sim_world_t *world = client->world;
    int owner = world->appends[index].owner;
    int32_t from = sim_model_version(&world->plains[owner]);
    spill_append_result_t result;
    spill_error_t error = {0};
    client->trimming.from = from;
    spill_code_t code = call_append(client, &world->appends[index], &result, &error);
    sim_append_t *append = &world->appends[index];
    sim_trace(world, "       client %d   append #%d (v%lld, %d): %s, first %lld count %lld%s",
              client->index, index, (long long)append->first_value, append->count,
              spill_code_name(code), (long long)result.first, (long long)result.count,
              result.repeated ? ", repeated" : "");
    append->code = code;
    append->reason = error.reason;
    append->tries++;
    if (client->crashed || code == SPILL_UNKNOWN || client->append_again)
        append->unknown = true;
    if (client->crashed)
        return false;
    sim_check_append(client, append, &result, from);
    if (code == SPILL_OK)
        learn_returned_base(client, owner, result.op_base, from);
    bool stale = code == SPILL_UNKNOWN && client->faults_met == 0; /* no later try can succeed */
    return code != SPILL_UNKNOWN || stale || !append->has_op || append->tries >= 4;
}

/* Retry until the answer is final. The replacement of a crashed client continues the append. */
static void append_until_final(sim_client_t *client, int index)
{
    while (!sim_client_append(client, index)) {
        if (client->crashed || client->world->failure[0]) {
            client->pending = client->world->appends[index].has_op ? index : -1;
            return;
        }
        if (!sim_begin_call(client)) {
            client->pending = index;
            return;
        }
    }
    client->pending = -1;
}

/*
 * Get an operation base that was valid before the first try: from the last answer, or by a new
 * read.
 */
static void refresh_base(sim_client_t *client, int owner)
{
    int64_t base;
    spill_error_t error;
    int32_t from = sim_model_version(&client->world->plains[owner]);
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_code_t code = spill_array_op_base(client->array, &value, &base, &error);
    if (code == SPILL_OK)
        learn_returned_base(client, owner, base, from);
}

/* Make it the next statement of one of the client's sessions. */
static void number_statement(sim_client_t *client, sim_append_t *append)
{
    sim_world_t *world = client->world;
    append->session = 2 * client->index + sim_random_below(&world->random, 2);
    sim_session_t *session = &world->sessions[append->session];
    bool same = session->txn > 0 && session->owner == append->owner &&
                sim_random_chance(&world->random, 500);
    if (!same)
        *session = (sim_session_t){.txn = session->txn + 1, .owner = append->owner};
    append->txn = session->txn;
    append->number = session->next;
    session->next += append->count;
}

/*
 * A driver sends an earlier statement again, through this client, perhaps while another client is
 * still at work on it.
 */
static void retry_elsewhere(sim_client_t *client)
{
    sim_world_t *world = client->world;
    int index = sim_random_below(&world->random, (int)world->append_count);
    sim_append_t *append = &world->appends[index];
    if (append->session < 0)
        return;
    append->unknown = true;
    append->tries++;
    sim_saw(world, SIM_RETRIED_ELSEWHERE);
    sim_client_append(client, index);
}

static void do_append(sim_client_t *client, int owner, int count)
{
    sim_world_t *world = client->world;
    if (world->settings.sessions > 0 && sim_random_chance(&world->random, 100))
        world->now_us += SIM_HORIZON_US / 2 * sim_random_between(&world->random, 1, 3);
    if (world->settings.sessions > 0 && world->append_count > 0 &&
        sim_random_chance(&world->random, 250)) {
        retry_elsewhere(client);
        return;
    }
    bool has_op = sim_random_chance(&world->random, 700);
    if (world->settings.unique && has_op)
        count = 1; /* a batch with an operation id must fit a page */
    const sim_model_t *plain = &world->plains[owner];
    if (has_op && sim_random_chance(&world->random, 300))
        refresh_base(client, owner);
    if (client->crashed)
        return;
    if (client->base_incarnations[owner] != sim_model_now(plain)->generation)
        learn_base(client, owner, 0, sim_model_now(plain)->generation);
    int index = sim_append_new(client, owner, count, has_op);
    if (world->settings.top_n && has_op && sim_random_chance(&world->random, 150))
        world->appends[index].skip = sim_random_between(&world->random, 1, 5);
    world->appends[index].updates = sim_random_chance(&world->random, 100) &&
                                    !world->settings.bucket && world->appends[index].skip == 0 &&
                                    !(world->settings.unique && has_op); /* refused */
    world->appends[index].fill = count > 1 && sim_random_chance(&world->random, 400);
    if (world->settings.sessions > 0) {
        world->appends[index].must_exist = sim_random_chance(&world->random, 200);
        if (has_op)
            number_statement(client, &world->appends[index]);
    }
    const spill_bounds_t *bounds = world->settings.bounds;
    bool fits = count <= bounds[0].threshold && count <= bounds[1].threshold;
    if (world->appends[index].session >= 0 && !world->settings.padded && fits &&
        sim_random_chance(&world->random, 300)) {
        world->appends[index].rewrites = world->appends[index].must_exist = true;
        world->appends[index].updates = world->appends[index].fill = false;
    }
    append_until_final(client, index);
}

/* ---- the other calls ------------------------------------------------------------------------- */

static sim_span_t span_since(const sim_client_t *client, int owner, int32_t from)
{
    return (sim_span_t){from, sim_model_version(&client->world->plains[owner])};
}

static int32_t version_of(const sim_client_t *client, int owner)
{
    return sim_model_version(&client->world->plains[owner]);
}

bool sim_failed_by_fault(const sim_client_t *client, spill_code_t code)
{
    return client->crashed ||
           ((code == SPILL_UNKNOWN || code == SPILL_IO) && client->faults_met > 0);
}

static void report_call(sim_client_t *client, const char *what, int owner, int64_t seq,
                        spill_code_t code)
{
    sim_trace(client->world, "       client %d   %s owner %d, %lld: %s", client->index, what, owner,
              (long long)seq, spill_code_name(code));
}

static int64_t any_number(sim_world_t *world, int owner)
{
    int64_t next = sim_model_now(&world->plains[owner])->next;
    return sim_random_between(&world->random, 0, (int)next);
}

static void do_read(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    sim_random_t *random = &world->random;
    if ((world->settings.top > 0 || world->settings.top_n) && sim_random_chance(random, 400)) {
        sim_check_top(client, owner, false);
        return;
    }
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = sim_random_below(random, 2) ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.limit = sim_random_chance(random, 300) ? 100 : sim_random_between(random, 1, 5);
    if (sim_random_chance(random, 300))
        options.before = any_number(world, owner);
    if (sim_random_chance(random, 300))
        options.after = any_number(world, owner) - 1;
    if (sim_random_chance(random, 300))
        options.skip = sim_random_between(random, 0, 6);
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_slice_t *slice = NULL;
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = spill_array_read(client->array, &value, &options, &slice, &error);
    report_call(client, "read", owner, slice ? (int64_t)slice->count : -1, code);
    if (code == SPILL_OK)
        sim_check_read(client, owner, span_since(client, owner, from), &options, slice);
    else if (!sim_failed_by_fault(client, code))
        sim_fail(world, "owner %d: a read failed: %s", owner, error.message);
    spill_slice_free(slice);
}

/* Read a bucket's statistics from its documents, without reading elements. */
static void do_statistics(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    spill_value_t name = sim_owner_value(world, owner), of;
    char window[SPILL_WINDOW_SIZE];
    spill_statistics_t statistics;
    spill_error_t error;
    bool found = spill_bucket_split(&name, &of, window);
    int32_t from = version_of(client, owner);
    spill_code_t code =
        spill_bucket_statistics(client->array, &of, window, window, &statistics, NULL, &error);
    report_call(client, "statistics", owner, statistics.count, code);
    if (code == SPILL_OK && found)
        sim_check_statistics(client, owner, span_since(client, owner, from), &statistics);
    else if (!sim_failed_by_fault(client, code))
        sim_fail(world, "owner %d: statistics failed: %s", owner, error.message);
}

static void do_count(sim_client_t *client, int owner)
{
    if (client->world->settings.bucket && sim_random_chance(&client->world->random, 500)) {
        do_statistics(client, owner);
        return;
    }
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_count_t count;
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = spill_array_count(client->array, &value, &count, &error);
    report_call(client, "count", owner, count.count, code);
    if (code == SPILL_OK)
        sim_check_count(client, owner, span_since(client, owner, from), &count);
    else if (!sim_failed_by_fault(client, code))
        sim_fail(client->world, "owner %d: a count failed: %s", owner, error.message);
}

/*
 * Choose a value for an edit of an existing or earlier element: its first value, a new value, or a
 * later one of the array.
 */
static int64_t value_to_set(sim_world_t *world, int owner, int64_t seq)
{
    const sim_model_t *plain = &world->plains[owner];
    const sim_model_element_t *element = sim_model_find(plain, seq);
    if (element && element->value != SIM_NO_VALUE && sim_random_chance(&world->random, 300))
        return element->value;
    return sim_value_new(world, owner, -1, random_padding(world));
}

/* Choose an id that elements share, encoded with another type than theirs. */
static spill_value_t any_id(sim_world_t *world, int64_t *id)
{
    *id = sim_random_below(&world->random, SIM_IDS);
    return (spill_value_t){
        .data = (const uint8_t *)id, .size_bytes = sizeof *id, .type = BSON_TYPE_INT64};
}

static void do_edit(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    int64_t seq = any_number(world, owner);
    int64_t value = value_to_set(world, owner, seq);
    sim_value_bytes_t bytes;
    spill_value_t element = sim_value_of(world, &bytes, value);
    spill_value_t whose = sim_owner_value(world, owner);
    int64_t id;
    spill_value_t by = any_id(world, &id);
    bool by_id = sim_random_chance(&world->random, 300);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code =
        by_id ? spill_array_edit_id(client->array, &whose, &by, &element, &seq, &error)
              : spill_array_edit(client->array, &whose, seq, &element, &error);
    report_call(client, by_id ? "edit by id" : "edit", owner, seq, code);
    if (sim_failed_by_fault(client, code))
        return;
    sim_span_t span = span_since(client, owner, from);
    if (by_id)
        sim_check_id(client, owner, span, code, id, seq, "edit");
    if (!by_id || code == SPILL_OK)
        sim_check_edit(client, owner, span, code, seq, value);
}

static void do_find(sim_client_t *client, int owner)
{
    int64_t id;
    int64_t seq;
    spill_value_t by = any_id(client->world, &id);
    spill_value_t whose = sim_owner_value(client->world, owner);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = spill_array_find_id(client->array, &whose, &by, &seq, &error);
    report_call(client, "find by id", owner, seq, code);
    if (!sim_failed_by_fault(client, code))
        sim_check_id(client, owner, span_since(client, owner, from), code, id, seq, "find");
}

/* Remove all elements with an id, or the first few. */
static void do_remove_where(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    spill_value_t whose = sim_owner_value(client->world, owner);
    int64_t id = sim_random_below(&world->random, SIM_IDS);
    int64_t limit = sim_random_below(&world->random, 3);
    int64_t removed;
    bson_t *filter = BCON_NEW(SIM_ID_FIELD, BCON_INT64(id));
    spill_error_t error;
    int32_t from = version_of(client, owner);
    client->removing = (sim_removing_t){.active = true, .id = id, .from = from};
    spill_code_t code =
        spill_array_remove_where(client->array, &whose, filter, limit, &removed, &error);
    report_call(client, "remove where", owner, removed, code);
    if (!sim_failed_by_fault(client, code))
        sim_check_removed_where(client, owner, span_since(client, owner, from), code, limit,
                                removed);
    client->removing.active = false;
    bson_destroy(filter);
}

static void do_remove(sim_client_t *client, int owner)
{
    if (sim_random_chance(&client->world->random, 150)) {
        do_remove_where(client, owner);
        return;
    }
    int64_t seq = any_number(client->world, owner);
    spill_value_t whose = sim_owner_value(client->world, owner);
    int64_t id;
    spill_value_t by = any_id(client->world, &id);
    bool by_id = sim_random_chance(&client->world->random, 400);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = by_id ? spill_array_remove_id(client->array, &whose, &by, &seq, &error)
                              : spill_array_remove(client->array, &whose, seq, &error);
    report_call(client, by_id ? "remove by id" : "remove", owner, seq, code);
    if (sim_failed_by_fault(client, code))
        return;
    sim_span_t span = span_since(client, owner, from);
    if (by_id)
        sim_check_id(client, owner, span, code, id, seq, "remove");
    if (!by_id || code == SPILL_OK)
        sim_check_remove(client, owner, span, code, seq);
}

sim_trimming_t sim_retention(const sim_world_t *world)
{
    return (sim_trimming_t){.retains = true, .keep = world->settings.keep_elements};
}

/* Trim to the newest few elements, or to those after a time. */
static void do_trim_to(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    bool by_count = sim_random_below(&world->random, 2);
    sim_trimming_t *trimming = &client->trimming;
    *trimming = (sim_trimming_t){.from = version_of(client, owner)};
    int64_t live = sim_model_now(&world->plains[owner])->live;
    if (by_count)
        trimming->keep = sim_random_between(&world->random, 0, (int)live + 1);
    else
        trimming->time_ms =
            sim_value_time_ms(sim_random_between(&world->random, 1, (int)world->origin_count + 1));
    spill_value_t whose = sim_owner_value(client->world, owner);
    int64_t below;
    spill_error_t error;
    spill_code_t code =
        by_count ? spill_array_trim_keep(client->array, &whose, trimming->keep, &below, &error)
                 : spill_array_trim_older(client->array, &whose, trimming->time_ms, &below, &error);
    report_call(client, by_count ? "trim keep" : "trim older", owner, below, code);
    if (!sim_failed_by_fault(client, code))
        sim_check_trim_to(client, owner, span_since(client, owner, trimming->from), code, below);
    *trimming = sim_retention(world);
}

static void do_trim(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    client->trimming = (sim_trimming_t){0};
    int64_t below = any_number(world, owner) + sim_random_below(&world->random, 2);
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = spill_array_trim(client->array, &value, below, &error);
    report_call(client, "trim", owner, below, code);
    if (!sim_failed_by_fault(client, code))
        sim_check_trim(client, owner, span_since(client, owner, from), code, below);
    client->trimming = sim_retention(world);
}

static void do_drop(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    if (world->settings.notes && sim_act_on_head(client, owner))
        return;
    world->drop_begun[owner] = client->drops = true;
    spill_code_t code = spill_array_drop_owner(client->array, &value, &error);
    client->drops = false;
    report_call(client, "drop", owner, 0, code);
    if (!sim_failed_by_fault(client, code))
        sim_check_drop(client, owner, span_since(client, owner, from), code);
}

static void do_update(sim_client_t *client, int owner)
{
    bson_t *update = BCON_NEW("$inc", "{", "hits", BCON_INT64(1), "}");
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_error_t error;
    spill_code_t code = spill_array_update(client->array, &value, update, &error);
    report_call(client, "update", owner, 0, code);
    if (code != SPILL_OK && !sim_failed_by_fault(client, code))
        sim_fail(client->world, "owner %d: an update failed: %s", owner, error.message);
    bson_destroy(update);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static spill_bounds_t larger_bounds(const spill_bounds_t *left, const spill_bounds_t *right)
{
#define LARGER(field) left->field > right->field ? left->field : right->field
    return (spill_bounds_t){LARGER(threshold), LARGER(page_capacity), LARGER(head_bytes_max),
                            LARGER(page_bytes_max)};
#undef LARGER
}

/*
 * Open the array with the byte bounds of the simulation, which are smaller than a definition
 * allows.
 */
bool sim_client_open(sim_client_t *client)
{
    sim_world_t *world = client->world;
    spill_error_t error;
    spill_array_close(client->array);
    spill_code_t code = spill_array_open(&client->port, SIM_ARRAY_NAME, &client->array, &error);
    if (code != SPILL_OK) {
        sim_fail(world, "the array cannot be opened: %s", error.message);
        return false;
    }
    const spill_bounds_t *bounds = world->settings.bounds;
    client->array->definition.bounds.head_bytes_max = bounds[0].head_bytes_max;
    client->array->definition.bounds.page_bytes_max = bounds[0].page_bytes_max;
    client->array->definition.largest = larger_bounds(&bounds[0], &bounds[1]);
    return true;
}

/*
 * Save other bounds and use them here. The other clients continue with the bounds that they know.
 */
static void do_define(sim_client_t *client)
{
    sim_world_t *world = client->world;
    spill_definition_t next = world->definition;
    const spill_bounds_t *bounds = &world->settings.bounds[sim_random_below(&world->random, 2)];
    next.bounds.threshold = bounds->threshold;
    next.bounds.page_capacity = bounds->page_capacity;
    spill_error_t error;
    spill_code_t code = spill_store_define(&client->port, &next, &error);
    if (code != SPILL_OK)
        sim_fail(world, "the definition cannot be saved: %s", error.message);
    else if (sim_client_open(client))
        sim_saw(world, SIM_DEFINED_AGAIN);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static bool export_element(void *context, const spill_value_t *owner,
                           const spill_element_t *element)
{
    (void)owner;
    spill_run_add(context, element->seq, &element->value);
    return true;
}

void sim_client_export(sim_client_t *client, int owner)
{
    spill_run_t run = {0};
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_error_t error;
    int32_t from = version_of(client, owner);
    spill_code_t code = spill_array_export(client->array, &value, export_element, &run, &error);
    report_call(client, "export", owner, (int64_t)run.count, code);
    if (code == SPILL_OK) {
        spill_read_options_t options;
        spill_read_options_init(&options);
        options.order = SPILL_OLDEST_FIRST;
        options.limit = INT64_MAX;
        spill_element_t *elements = bson_malloc((run.count + 1) * sizeof *elements);
        for (size_t i = 0; i < run.count; i++)
            elements[i] = spill_run_element(&run, i);
        spill_slice_t slice = {.elements = elements, .count = run.count};
        sim_check_read(client, owner, span_since(client, owner, from), &options, &slice);
        bson_free(elements);
    } else if (code == SPILL_CORRUPT && run.count == 0 && client->world->ends[owner].any) {
        sim_saw(client->world, SIM_EXPORT_WITHOUT_HEAD);
    } else if (!sim_failed_by_fault(client, code)) {
        sim_fail(client->world, "owner %d: an export failed: %s", owner, error.message);
    }
    spill_run_release(&run);
}

/* Repair the owner. It may find operations of other clients in progress and finish them. */
static void do_repair(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    spill_repair_summary_t summary;
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    bool look_only = sim_random_chance(&world->random, 100);
    sim_corrupt(client, owner);
    spill_code_t code =
        spill_array_repair(client->array, &value, look_only, NULL, NULL, &summary, &error);
    report_call(client, "repair", owner, summary.findings, code);
    if (code != SPILL_OK && !sim_failed_by_fault(client, code))
        sim_fail(world, "owner %d: repair failed: %s", owner, error.message);
}

static void do_verify(sim_client_t *client, int owner)
{
    spill_verify_summary_t summary;
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_error_t error;
    spill_code_t code =
        spill_array_verify(client->array, &value, sim_check_finding, client, &summary, &error);
    report_call(client, "verify", owner, summary.findings, code);
    if (code != SPILL_OK && !sim_failed_by_fault(client, code))
        sim_fail(client->world, "owner %d: verify failed: %s", owner, error.message);
}

/* ---- the client ------------------------------------------------------------------------------ */

static sim_action_t choose_action(sim_world_t *world)
{
    const int *weights = world->settings.weights;
    int total = 0;
    for (int i = 0; i < SIM_ACTION_KINDS; i++)
        total += weights[i];
    int left = sim_random_below(&world->random, total);
    sim_action_t action = 0;
    while (left >= weights[action])
        left -= weights[action++];
    return action;
}

static void run_action(sim_client_t *client)
{
    sim_world_t *world = client->world;
    int owner = sim_random_below(&world->random, world->settings.owners);
    if (world->settings.windows && sim_act_on_windows(client))
        return;
    if (world->settings.defers && sim_spiller_act(client))
        return;
    switch (choose_action(world)) {
    case SIM_ACTION_APPEND:
        do_append(client, owner, 1);
        break;
    case SIM_ACTION_BATCH:
        do_append(client, owner, sim_random_between(&world->random, 2, 5));
        break;
    case SIM_ACTION_READ:
        do_read(client, owner);
        break;
    case SIM_ACTION_COUNT:
        if (sim_random_chance(&world->random, 300))
            do_find(client, owner);
        else
            do_count(client, owner);
        break;
    case SIM_ACTION_EDIT:
        do_edit(client, owner);
        break;
    case SIM_ACTION_REMOVE:
        do_remove(client, owner);
        break;
    case SIM_ACTION_TRIM:
        if (sim_random_chance(&world->random, 600))
            do_trim_to(client, owner);
        else
            do_trim(client, owner);
        break;
    case SIM_ACTION_DROP:
        do_drop(client, owner);
        break;
    case SIM_ACTION_UPDATE:
        do_update(client, owner);
        break;
    case SIM_ACTION_DEFINE:
        do_define(client);
        break;
    case SIM_ACTION_EXPORT:
        sim_client_export(client, owner);
        break;
    case SIM_ACTION_VERIFY:
        (sim_random_chance(&world->random, 500) ? do_repair : do_verify)(client, owner);
        break;
    case SIM_ACTION_KINDS:
        assert(false && "an action");
    }
}

/*
 * Wait for a turn before a public call, so that the call begins only when its first request is
 * carried out.
 */
bool sim_begin_call(sim_client_t *client)
{
    if (!sim_turn(client))
        return false;
    client->began = true;
    client->reads = 0;
    client->faults_met = 0;
    client->append_again = false;
    client->refused_put = -1;
    return true;
}

void sim_client_run(void *context)
{
    sim_client_t *client = context;
    sim_world_t *world = client->world;
    client->array = NULL;
    client->trimming = sim_retention(world);
    client->removing.active = false;
    client->raises = false;
    if (sim_begin_call(client) && sim_client_open(client)) {
        /* Every second client opened the array under other bounds. */
        client->array->definition.bounds = world->settings.bounds[client->index % 2];
        if (client->pending >= 0)
            append_until_final(client, client->pending);
        while (client->actions_left > 0 && !client->crashed && !world->failure[0]) {
            client->actions_left--;
            if (sim_begin_call(client))
                run_action(client);
        }
    }
    spill_array_close(client->array);
    client->array = NULL;
    sim_spiller_close(client);
}
