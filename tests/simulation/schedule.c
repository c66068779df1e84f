/* One schedule: a fresh store, clients that take turns, and the final checks. */
#include "world.h"

#include "layout/owner.h"
#include "support/definition.h"

#include <stdarg.h>
#include <string.h>

/* A schedule with more requests than this never ends. */
enum { CALLS_MAX = 20000 };

void sim_fail(sim_world_t *world, const char *format, ...)
{
    if (world->failure[0])
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(world->failure, sizeof world->failure, format, arguments);
    va_end(arguments);
    sim_trace(world, "       FAILURE: %s", world->failure);
}

void sim_trace(sim_world_t *world, const char *format, ...)
{
    if (!world->trace)
        return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(world->trace, format, arguments);
    va_end(arguments);
    fputc('\n', world->trace);
}

void sim_world_init(sim_world_t *world, sim_engine_t engine, sim_coverage_t *coverage)
{
    *world = (sim_world_t){.engine = engine, .coverage = coverage};
    for (int i = 0; i < SIM_CLIENTS_MAX; i++)
        world->clients[i].coroutine = sim_coroutine_new();
}

void sim_world_release(sim_world_t *world)
{
    for (int i = 0; i < SIM_CLIENTS_MAX; i++)
        sim_coroutine_free(world->clients[i].coroutine);
    for (int i = 0; i < SIM_OWNERS_MAX; i++)
        sim_model_release(&world->plains[i]);
    bson_free(world->late);
    bson_free(world->appends);
    bson_free(world->origins);
    spill_response_release(&world->before);
    spill_top_release(&world->top_before);
}

/* ---- begin ----------------------------------------------------------------------------------- */

static void define(sim_world_t *world, const spill_bounds_t *bounds)
{
    spill_error_t error;
    world->definition.bounds.threshold = bounds->threshold;
    world->definition.bounds.page_capacity = bounds->page_capacity;
    if (spill_store_define(world->store, &world->definition, &error) != SPILL_OK)
        sim_fail(world, "the definition cannot be saved: %s", error.message);
}

static void start_client(sim_world_t *world, int index)
{
    sim_client_t *client = &world->clients[index];
    client->crashed = false;
    for (int owner = 0; owner < SIM_OWNERS_MAX; owner++) {
        client->bases[owner] = 0;
        client->base_incarnations[owner] = 0;
    }
    sim_port_open(client);
    if (!client->reliable)
        sim_coroutine_start(client->coroutine, world->body ? world->body : sim_client_run, client);
}

void sim_schedule_begin(sim_world_t *world)
{
    world->failure[0] = '\0';
    world->now_us = 1000;
    world->calls = 0;
    world->append_count = 0;
    world->origin_count = 0;
    world->running = NULL;
    memset(world->sessions, 0, sizeof world->sessions);
    world->drops_all = (sim_drops_all_t){0};
    for (int i = 0; i < SIM_OWNERS_MAX; i++) {
        sim_model_clear(&world->plains[i]);
        world->hits[i] = 0;
        world->ends[i] = (sim_ends_t){0};
        world->drop_begun[i] = false;
        world->corrupted[i] = false;
        world->corruptions[i] = 0;
        world->traces[i] = (sim_traces_t){-1, -1, -1, -1, false};
    }
    sim_engine_open(world);
    if (world->settings.referenced || world->settings.bucket)
        spill_definition_preset(&world->definition,
                                world->settings.top > 0      ? "reviews-subset"
                                : world->settings.referenced ? "reviews-separate"
                                                             : "reviews-bucket",
                                SIM_ARRAY_NAME, NULL);
    else
        spill_definition_init(&world->definition, SIM_ARRAY_NAME);
    if (world->settings.layout == SPILL_LAYOUT_CAPPED)
        spill_definition_set_layout(&world->definition, SPILL_LAYOUT_CAPPED);
    world->definition.keep = world->settings.keep;
    world->definition.op_window = world->settings.op_window;
    if (world->settings.referenced)
        strcpy(world->definition.value_field, SIM_VALUE_FIELD);
    if (world->settings.top > 0) {
        world->definition.top_count = world->settings.top;
        strcpy(world->definition.sort_field, world->settings.sort_field);
    }
    if (world->settings.top_n)
        strcpy(world->definition.sort_field, world->settings.sort_field);
    world->definition.keep_elements = world->settings.keep_elements;
    world->definition.keep_seconds = world->settings.keep_seconds;
    strcpy(world->definition.id_field, SIM_ID_FIELD);
    world->definition.unique = world->settings.unique;
    strcpy(world->definition.time_field, SIM_TIME_FIELD);
    if (world->settings.paths)
        definition_put_in_document(&world->definition, "inner");
    define(world, &world->settings.bounds[1]);
    define(world, &world->settings.bounds[0]);
    for (int i = 0; i < world->settings.clients; i++) {
        sim_coroutine_t *coroutine = world->clients[i].coroutine;
        world->clients[i] = (sim_client_t){.world = world,
                                           .index = i,
                                           .coroutine = coroutine,
                                           .actions_left = world->settings.actions_each,
                                           .pending = -1};
        start_client(world, i);
    }
}

/* ---- play ------------------------------------------------------------------------------------ */

bool sim_turn(sim_client_t *client)
{
    if (client->reliable)
        return true;
    if (!client->crashed)
        sim_coroutine_yield(client->coroutine);
    return !client->crashed;
}

/* The client has returned. If it crashed, replace it; the replacement continues its list. */
static void finish_client(sim_world_t *world, sim_client_t *client)
{
    sim_port_close(client);
    if (!client->crashed || world->failure[0])
        return;
    sim_trace(world, "       client %d   starts again", client->index);
    client->life++;
    start_client(world, client->index);
}

static sim_client_t *choose_client(sim_world_t *world)
{
    sim_client_t *active[SIM_CLIENTS_MAX];
    int count = 0;
    for (int i = 0; i < world->settings.clients; i++)
        if (sim_coroutine_active(world->clients[i].coroutine))
            active[count++] = &world->clients[i];
    if (count == 0)
        return NULL;
    if (world->running && sim_coroutine_active(world->running->coroutine) &&
        sim_random_chance(&world->random, world->settings.sticky))
        return world->running;
    return active[sim_random_below(&world->random, count)];
}

static void give_up(sim_world_t *world)
{
    for (int i = 0; i < world->settings.clients; i++) {
        sim_client_t *client = &world->clients[i];
        if (!sim_coroutine_active(client->coroutine))
            continue;
        client->crashed = true;
        sim_coroutine_resume(client->coroutine);
        sim_port_close(client);
    }
}

void sim_schedule_play(sim_world_t *world)
{
    while (!world->failure[0]) {
        if (world->late_count > 0 && sim_random_chance(&world->random, world->settings.late)) {
            sim_deliver_late(world);
            continue;
        }
        sim_client_t *client = choose_client(world);
        if (!client)
            return;
        world->running = client;
        sim_coroutine_resume(client->coroutine);
        if (!sim_coroutine_active(client->coroutine))
            finish_client(world, client);
        if (world->calls > CALLS_MAX)
            sim_fail(world, "no end in sight after %d requests", CALLS_MAX);
    }
    give_up(world);
}

/* ---- final checks ---------------------------------------------------------------------------- */

typedef struct reckoning {
    sim_world_t *world;
    int owner;
    size_t at; /* the next element of the plain array */
} reckoning_t;

static bool compare_element(void *context, const spill_value_t *owner,
                            const spill_element_t *element)
{
    (void)owner;
    reckoning_t *reckoning = context;
    sim_world_t *world = reckoning->world;
    const sim_model_t *plain = &world->plains[reckoning->owner];
    int32_t version = sim_model_version(plain);
    while (reckoning->at < plain->element_count && plain->elements[reckoning->at].died != SIM_ALIVE)
        reckoning->at++;
    int64_t id = sim_value_id(&element->value, NULL);
    if (reckoning->at == plain->element_count)
        sim_fail(world, "owner %d, at the end: %lld:v%lld should not exist", reckoning->owner,
                 (long long)element->seq, (long long)id);
    else {
        const sim_model_element_t *expected = &plain->elements[reckoning->at++];
        int64_t value = sim_model_value(plain, expected, version);
        if (element->seq != expected->seq || id != value)
            sim_fail(world, "owner %d, at the end: %lld:v%lld where %lld:v%lld should be",
                     reckoning->owner, (long long)element->seq, (long long)id,
                     (long long)expected->seq, (long long)value);
    }
    return !world->failure[0];
}

static void compare_export(sim_world_t *world, sim_client_t *client, int owner)
{
    const sim_model_t *plain = &world->plains[owner];
    reckoning_t reckoning = {.world = world, .owner = owner, .at = plain->generation_start};
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    spill_code_t code =
        spill_array_export(client->array, &value, compare_element, &reckoning, &error);
    if (code != SPILL_OK)
        sim_fail(world, "owner %d, at the end: export: %s", owner, error.message);
    for (size_t i = reckoning.at; i < plain->element_count; i++)
        if (plain->elements[i].died == SIM_ALIVE)
            sim_fail(world, "owner %d, at the end: %lld:v%lld is lost", owner,
                     (long long)plain->elements[i].seq, (long long)plain->elements[i].value);
}

static void verify(sim_world_t *world, sim_client_t *client, int owner)
{
    spill_value_t value = sim_owner_value(world, owner);
    spill_verify_summary_t summary;
    spill_error_t error;
    if (spill_array_verify(client->array, &value, sim_check_finding, client, &summary, &error) !=
        SPILL_OK)
        sim_fail(world, "owner %d, at the end: verify: %s", owner, error.message);
}

static bool compare_hits(void *context, const char *collection, const bson_t *document)
{
    reckoning_t *reckoning = context;
    bson_iter_t iter;
    (void)collection;
    int64_t hits = 0;
    if (bson_iter_init_find(&iter, document, "hits"))
        hits = bson_iter_as_int64(&iter);
    if (hits != reckoning->world->hits[reckoning->owner])
        sim_fail(reckoning->world, "owner %d, at the end: hits is %lld, not %lld", reckoning->owner,
                 (long long)hits, (long long)reckoning->world->hits[reckoning->owner]);
    return false; /* the head comes first */
}

/*
 * Append once more: that completes an unfinished operation. *dropped: it completed a drop, so the
 * base that was read before it was no longer valid.
 */
static spill_code_t last_append(sim_world_t *world, sim_client_t *client, int owner, bool *dropped)
{
    int index = sim_append_new(client, owner, 1, true);
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    int64_t base;
    bool existed = sim_model_now(&world->plains[owner])->exists;
    if (spill_array_op_base(client->array, &value, &base, &error) != SPILL_OK)
        sim_fail(world, "owner %d, at the end: op_base: %s", owner, error.message);
    world->appends[index].base = base;
    client->faults_met = 0;
    sim_client_append(client, index);
    *dropped = existed && !sim_model_now(&world->plains[owner])->exists;
    return world->appends[index].code;
}

/* Complete unfinished operations: by an append, and by a removal that finds nothing. */
static void complete_unfinished(sim_world_t *world, sim_client_t *client, int owner)
{
    bool dropped;
    spill_code_t code = last_append(world, client, owner, &dropped);
    if (code == SPILL_UNKNOWN && dropped)
        code = last_append(world, client, owner, &dropped);
    if (code != SPILL_OK)
        sim_fail(world, "owner %d, at the end: the last append: %s", owner, spill_code_name(code));
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    int64_t beyond = sim_model_now(&world->plains[owner])->next;
    if (spill_array_remove(client->array, &value, beyond, &error) != SPILL_NOT_FOUND)
        sim_fail(world, "owner %d, at the end: an absent element was removed", owner);
    if (sim_model_now(&world->plains[owner])->pending > 0)
        sim_fail(world, "owner %d, at the end: a removal was not finished", owner);
}

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

/* Are the elements in order of their times? Late appends and edits may break that order. */
static bool in_order_of_time(const sim_model_t *plain)
{
    int64_t last = -1;
    for (size_t i = plain->generation_start; i < plain->element_count; i++) {
        int64_t value = sim_model_value(plain, &plain->elements[i], sim_model_version(plain));
        if (value >= 0 && value < last)
            return false;
        last = value >= 0 ? value : last;
    }
    return true;
}

/*
 * Retention by age keeps old elements at most as long as definition.h promises. Append one value
 * per second until each kind of document must have been filled. Old elements behind a younger one
 * stay. A set leaves a value out if it has the id, so these appends may add nothing to it.
 */
static void check_retained(sim_world_t *world, sim_client_t *client, int owner)
{
    const sim_settings_t *settings = &world->settings;
    const sim_model_t *plain = &world->plains[owner];
    bool capped = settings->layout == SPILL_LAYOUT_CAPPED, dropped;
    int64_t threshold = larger(settings->bounds[0].threshold, settings->bounds[1].threshold);
    int64_t page = larger(settings->bounds[0].page_capacity, settings->bounds[1].page_capacity);
    if (settings->keep_seconds == 0 || settings->unique)
        return;
    for (int64_t i = 0; i <= threshold + page && !world->failure[0]; i++)
        last_append(world, client, owner, &dropped);
    int64_t young = settings->keep_seconds + 1;
    int64_t kept = larger(settings->keep_elements, young);
    int64_t most = settings->padded ? kept + threshold + page : larger(kept, threshold) + page;
    most = capped ? young : most;
    if (settings->bucket) /* a part is dropped only as a whole */
        most += larger(threshold, page);
    if (sim_model_now(plain)->live > most && in_order_of_time(plain))
        sim_fail(world, "owner %d, at the end: %d elements were kept, not at most %lld", owner,
                 sim_model_now(plain)->live, (long long)most);
}

static void check_owner(sim_world_t *world, sim_client_t *client, int owner)
{
    compare_export(world, client, owner);
    spill_value_t value = sim_owner_value(world, owner);
    spill_count_t count;
    spill_error_t error;
    int32_t version = sim_model_version(&world->plains[owner]);
    if (spill_array_count(client->array, &value, &count, &error) != SPILL_OK)
        sim_fail(world, "owner %d, at the end: count: %s", owner, error.message);
    sim_check_count(client, owner, (sim_span_t){version, version}, &count);
    spill_value_t of;
    char window[SPILL_WINDOW_SIZE];
    spill_statistics_t statistics;
    if (world->settings.bucket && spill_bucket_split(&value, &of, window)) {
        if (spill_bucket_statistics(client->array, &of, window, window, &statistics, NULL,
                                    &error) != SPILL_OK)
            sim_fail(world, "owner %d, at the end: statistics: %s", owner, error.message);
        sim_check_statistics(client, owner, (sim_span_t){version, version}, &statistics);
    }
    if (world->settings.top > 0 || world->settings.top_n)
        sim_check_top(client, owner, true);
    verify(world, client, owner);
}

/* No page is left, except tombstones if the array keeps the oldest. */
static void check_no_page(sim_world_t *world, sim_client_t *client, int owner)
{
    spill_owner_t own;
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    spill_code_t code = spill_owner_init(&own, client->array, &value, &error);
    int64_t pages = (int64_t)world->origin_count + 2; /* no owner can have had more pages */
    for (int64_t number = 0; code == SPILL_OK && number < pages; number++) {
        code = spill_owner_read_state(&own, number, &page, &error);
        if (code == SPILL_OK && page.state.present &&
            (world->settings.keep == SPILL_KEEP_NEWEST || page.state.live > 0))
            sim_fail(world, "owner %d, at the end: page %lld is left of what was dropped", owner,
                     (long long)number);
    }
    if (code != SPILL_OK)
        sim_fail(world, "owner %d, at the end: pages: %s", owner, error.message);
    spill_response_release(&page);
    spill_owner_release(&own);
}

/*
 * Drop the owner. Even after clients crashed in drops, no page of this owner or an earlier one is
 * left.
 */
static void drop(sim_world_t *world, sim_client_t *client, int owner)
{
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    bool existed = sim_model_now(&world->plains[owner])->exists;
    client->drops = true;
    spill_code_t code = spill_array_drop_owner(client->array, &value, &error);
    if (code != SPILL_OK && (code != SPILL_NOT_FOUND || existed))
        sim_fail(world, "owner %d, at the end: drop: %s", owner, error.message);
    if (code == SPILL_OK && !existed)
        sim_saw(world, SIM_DROP_FINISHED);
    if (spill_array_drop_owner(client->array, &value, &error) != SPILL_NOT_FOUND)
        sim_fail(world, "owner %d, at the end: dropped twice", owner);
    client->drops = false;
    check_no_page(world, client, owner);
}

/*
 * Repair the owner. Even after clients crashed, it completes unfinished operations and corrects
 * corrupted bookkeeping.
 */
static void repair(sim_world_t *world, sim_client_t *client, int owner)
{
    spill_value_t value = sim_owner_value(world, owner);
    spill_repair_summary_t found, after;
    spill_error_t error;
    bool miscounted = sim_miscount(client, owner);
    spill_code_t code =
        spill_array_repair(client->array, &value, false, NULL, NULL, &found, &error);
    if (code == SPILL_OK)
        code = spill_array_repair(client->array, &value, true, NULL, NULL, &after, &error);
    if (code != SPILL_OK)
        sim_fail(world, "owner %d, at the end: repair: %s", owner, error.message);
    else if (after.findings > 0)
        sim_fail(world, "owner %d, at the end: repair left %lld things half done", owner,
                 (long long)after.findings);
    else if (miscounted && found.findings == 0)
        sim_fail(world, "owner %d, at the end: repair did not make its counts right", owner);
    else if (found.findings > 0)
        sim_saw(world, miscounted ? SIM_COUNTS_FIXED : SIM_REPAIRED);
    if (sim_model_now(&world->plains[owner])->pending > 0)
        sim_fail(world, "owner %d, at the end: repair did not finish a removal", owner);
    world->corrupted[owner] = false;
    verify(world, client, owner);
}

static void check_appends(sim_world_t *world)
{
    for (size_t i = 0; i < world->append_count; i++) {
        const sim_append_t *append = &world->appends[i];
        /* part of it reached a later owner of the name, maybe its update, too */
        bool again = false;
        for (int j = 0; j < append->count; j++) {
            const sim_origin_t *origin = &world->origins[append->first_value + j];
            if (append->code == SPILL_OK && origin->applied == 0 && !world->settings.unique)
                sim_fail(world, "append #%zu was acknowledged and is lost", i);
            again = again || origin->applied > 1;
        }
        if (append->updated > 1 && !again)
            sim_fail(world, "append #%zu: its update was applied %d times", i, append->updated);
    }
}

static void check_all_owners(sim_world_t *world, sim_client_t *client)
{
    for (int owner = 0; owner < world->settings.owners && !world->failure[0]; owner++) {
        verify(world, client, owner);
        sim_ends_t *ends = &world->ends[owner];
        ends->old = true;
        bool left = ends->note.incarnation > 0 && ends->note.incarnation == ends->deleted;
        int64_t certain = ends->certain;
        if (left)
            sim_saw(world, SIM_NOTE_LEFT);
        if (sim_random_chance(&world->random, 500) || sim_is_corrupted(world, owner) ||
            world->settings.notes)
            repair(world, client, owner);
        if (left && ends->note.incarnation == 0)
            sim_saw(world, SIM_NOTE_FINISHED);
        if (world->settings.notes)
            sim_check_ended(world, client, owner, certain);
        if (!sim_model_now(&world->plains[owner])->exists && sim_random_chance(&world->random, 500))
            drop(world, client, owner);
        complete_unfinished(world, client, owner);
        check_retained(world, client, owner);
        check_owner(world, client, owner);
        if (world->hits[owner] > 0) {
            reckoning_t reckoning = {.world = world, .owner = owner};
            spill_value_t value = sim_owner_value(world, owner);
            spill_array_documents(client->array, &value, true, compare_hits, &reckoning, NULL);
        }
    }
    check_appends(world);
    for (int owner = 0; owner < world->settings.owners && !world->failure[0]; owner++)
        drop(world, client, owner);
}

void sim_schedule_end(sim_world_t *world)
{
    while (world->late_count > 0 && !world->failure[0])
        sim_deliver_late(world);
    if (world->failure[0])
        return;
    sim_client_t *client = &world->clients[SIM_CLIENTS_MAX];
    *client =
        (sim_client_t){.world = world, .index = SIM_CLIENTS_MAX, .reliable = true, .pending = -1};
    client->trimming = sim_retention(world);
    start_client(world, client->index);
    if (sim_client_open(client)) {
        if (world->finish)
            world->finish(world);
        else
            check_all_owners(world, client);
    }
    spill_array_close(client->array);
    sim_port_close(client);
}

void sim_schedule_clear(sim_world_t *world)
{
    world->coverage->schedules++;
    world->coverage->calls += world->calls;
    sim_discard_late(world);
    sim_engine_close(world);
}

bool sim_schedule_run(sim_world_t *world, uint64_t seed)
{
    world->seed = seed;
    world->random = (sim_random_t){seed};
    sim_settings_choose(&world->settings, world->engine, &world->random);
    /* they are written for the layout outlier */
    bool naive = world->execute || world->body || world->adjust;
    /* Not chosen by chance, so that the other choices of these seeds stay the same. */
    world->settings.referenced =
        !naive && world->settings.keep == SPILL_KEEP_NEWEST && seed % 3 == 0;
    if (world->settings.referenced && seed / 3 % 2 == 0)
        sim_settings_top(&world->settings, seed);
    if (naive) {
        world->settings.bucket = false;
        world->settings.windows = false;
        world->settings.keep_seconds = 0;
    }
    if (world->adjust)
        world->adjust(world);
    else if (!world->settings.referenced && !world->settings.bucket &&
             sim_random_chance(&world->random, 250))
        sim_settings_cap(&world->settings, seed);
    sim_settings_t *settings = &world->settings;
    settings->defers = !naive && seed / 7 % 3 == 0 && settings->keep == SPILL_KEEP_NEWEST &&
                       settings->keep_elements == 0 && settings->keep_seconds == 0;
    bool outlier = settings->keep == SPILL_KEEP_NEWEST && !settings->referenced &&
                   settings->layout == SPILL_LAYOUT_OUTLIER;
    if (!naive && outlier && seed / 5 % 2 == 0)
        settings->sessions = seed / 10 % 3 == 0 ? 40 : 2 + (int)(seed / 10 % 3);
    settings->paths = !naive && seed / 11 % 3 == 0;
    for (int i = 0; i < 2 && settings->paths && settings->padded; i++)
        settings->bounds[i].head_bytes_max += SIM_PATHS_BYTES;
    bool holds_ids = settings->keep == SPILL_KEEP_NEWEST &&
                     settings->layout != SPILL_LAYOUT_CAPPED && !settings->bucket;
    if (!naive && holds_ids && seed / 11 % 5 == 0)
        sim_settings_unique(settings);
    if (!naive && outlier && world->engine == SIM_MODEL && seed % 2 == 1 && seed / 13 % 3 == 0)
        sim_settings_notes(settings);
    if (world->trace)
        sim_settings_print(&world->settings, world->trace);
    sim_schedule_begin(world);
    sim_schedule_play(world);
    sim_schedule_end(world);
    sim_schedule_clear(world);
    return !world->failure[0];
}
