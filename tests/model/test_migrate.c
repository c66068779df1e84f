/*
 * Unmanaged arrays are migrated while programs keep using them. Before each store call of the
 * migration one of these may happen: a program pushes; a program edits or pulls in an array that
 * was never cut; a client of the library appends or removes; another migration runs. Calls fail in
 * each possible way. In the end each array has, in order, what its writers wrote, and the verifier
 * finds nothing. The model store lets other programs write to its documents at any time, the
 * embedded store only before an array is adopted.
 */
#include "layout/drop.h"
#include "layout/trim.h"
#include "support/definition.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/undoing.h"

#include "bson/key.h"
#include "core/array.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 4, ELEMENTS_MAX = 400, TRIES = 200, THRESHOLD = 4, PAGE = 3 };

static const char *const names[OWNERS] = {"ada", "bob", "cid", "dan"};

/* The expected array of an owner. An element is an even number; an edit adds or removes 1. */
typedef struct model {
    int64_t at[ELEMENTS_MAX];
    size_t count;
} model_t;

typedef struct world {
    spill_store_t *store;  /* the store below `faulty` */
    spill_store_t *faulty; /* the store that the migration uses */
    spill_array_t *array;  /* opened through `faulty` */
    spill_array_t *feed;   /* opened by a client of the library */
    spill_array_t *other;  /* another array in the same heads, which writes other fields */
    spill_throttle_t throttle;
    disk_t *disk; /* of an embedded store */
    bool memory;
    bool full;      /* documents have no room for bookkeeping, or hardly any in alternate passes */
    bool compares;  /* pages without a head are deleted only if the array begins with them */
    int64_t now_us; /* the stores' clock */
    bson_t storage[OWNERS];
    spill_value_t owners[OWNERS];
    model_t models[OWNERS];
    int64_t next; /* the number of the next element */
    uint64_t dice;
    int writes;      /* in 100: probability that a program writes before a call */
    int faults;      /* in 1000 */
    int64_t fail_at; /* this call fails with `fault`; -1: none */
    fault_t fault;
    int seed; /* of a random schedule; SPILLWAY_SEED=n SPILLWAY_SCHEDULES=1 replays it */
    int moves, pushes, edits, pulls, appends, removals, at_once, left;
} world_t;

static uint64_t random_below(world_t *world, uint64_t sides)
{
    world->dice = world->dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (world->dice >> 33) % sides;
}

/* ---- time ------------------------------------------------------------------------------------ */

static int64_t now_us(void *context)
{
    world_t *world = context;
    return ++world->now_us;
}

static void sleep_us(void *context, int64_t duration_us)
{
    world_t *world = context;
    world->now_us += duration_us;
}

/* Advance the clock by up to twice the time that a page may be kept. */
static void pass_time(world_t *world)
{
    world->now_us += (int64_t)random_below(world, 2 * (SPILL_ADOPT_US + SPILL_MARGIN_US));
}

/* ---- the model ------------------------------------------------------------------------------- */

static int64_t add_to_model(world_t *world, int owner)
{
    model_t *model = &world->models[owner];
    assert_true(model->count < ELEMENTS_MAX);
    int64_t element = world->next;
    world->next += 2;
    model->at[model->count++] = element;
    return element;
}

static void remove_from_model(world_t *world, int owner, size_t index)
{
    model_t *model = &world->models[owner];
    memmove(model->at + index, model->at + index + 1,
            (model->count - index - 1) * sizeof *model->at);
    model->count--;
}

static spill_value_t number_value(const int64_t *number)
{
    return (spill_value_t){
        .type = BSON_TYPE_INT64, .data = (const uint8_t *)number, .size_bytes = 8};
}

/* ---- programs that know nothing of Spillway -------------------------------------------------- */

/* Write the array as a field of the document. */
static void write_field(world_t *world, int owner)
{
    const model_t *model = &world->models[owner];
    bson_t update = BSON_INITIALIZER, set, array;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (size_t i = 0; i < model->count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        BSON_APPEND_INT64(&array, key, model->at[i]);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    spill_error_t error;
    assert_int_equal(spill_array_update(world->other, &world->owners[owner], &update, &error),
                     SPILL_OK);
    bson_destroy(&update);
}

/* Read the owner's head; NULL: the array is unmanaged. */
static bool read_head(world_t *world, int owner, spill_state_t *head)
{
    spill_owner_t own;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    assert_int_equal(spill_owner_init(&own, world->feed, &world->owners[owner], &error), SPILL_OK);
    assert_int_equal(spill_owner_read_state(&own, SPILL_HEAD, &response, &error), SPILL_OK);
    *head = response.state;
    head->deleted = (spill_seqs_t){0};
    bool there = response.state.present;
    spill_response_release(&response);
    spill_owner_release(&own);
    return there;
}

static model_document_t *document_of(world_t *world, int owner)
{
    spill_owner_t own;
    spill_error_t error;
    assert_int_equal(spill_owner_init(&own, world->feed, &world->owners[owner], &error), SPILL_OK);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
    model_document_t *document = model_document(world->store, &request, false);
    spill_owner_release(&own);
    return document;
}

/* Push into the document itself: its elements are the last ones of the model. */
static void push(world_t *world, int owner, bool plain)
{
    int64_t element = add_to_model(world, owner);
    spill_value_t value = number_value(&element);
    model_document_t *document = plain ? NULL : document_of(world, owner);
    if (plain)
        write_field(world, owner);
    else
        model_document_insert(document, document->count, &value);
    world->pushes++;
}

static void edit(world_t *world, int owner, bool plain)
{
    model_t *model = &world->models[owner];
    size_t index = (size_t)random_below(world, model->count);
    model->at[index] ^= 1; /* a second edit restores the number */
    spill_value_t value = number_value(&model->at[index]);
    if (plain)
        write_field(world, owner);
    else
        model_document_replace(document_of(world, owner), index, &value);
    world->edits++;
}

static void pull(world_t *world, int owner, bool plain)
{
    size_t index = (size_t)random_below(world, world->models[owner].count);
    remove_from_model(world, owner, index);
    if (plain)
        write_field(world, owner);
    else
        model_document_remove(document_of(world, owner), index, 1);
    world->pulls++;
}

/* Push at any time. Edit and pull only while the array was never cut, and nothing removed. */
static void write_as_other_program(world_t *world, int owner)
{
    spill_state_t head;
    bool plain = !read_head(world, owner, &head);
    if (!plain && !world->memory)
        return;
    bool whole = plain || (head.pages == 0 && head.first == 0);
    uint64_t what = random_below(world, 4);
    if (whole && what == 0 && world->models[owner].count > 1)
        edit(world, owner, plain);
    else if (whole && what == 1 && world->models[owner].count > 2)
        pull(world, owner, plain);
    else
        push(world, owner, plain);
}

/* ---- a client of the library ----------------------------------------------------------------- */

static void append(world_t *world, int owner)
{
    int64_t element = world->next;
    spill_value_t value = number_value(&element);
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_append_options_init(&options);
    spill_code_t code = spill_array_append(world->feed, &world->owners[owner], &value, 1, &options,
                                           &result, &error);
    if (code == SPILL_REFUSED || code == SPILL_CONFLICT) /* not adopted yet; no room for now */
        return;
    assert_int_equal(code, SPILL_OK);
    assert_int_equal(add_to_model(world, owner), element);
    world->appends++;
}

/* Of an array that was cut: remove the element at some position, by its number. */
static void remove_one(world_t *world, int owner)
{
    model_t *model = &world->models[owner];
    spill_state_t head;
    if (!read_head(world, owner, &head) || head.pages == 0 || model->count < 3)
        return;
    size_t index = (size_t)random_below(world, model->count);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = ELEMENTS_MAX;
    assert_int_equal(spill_array_read(world->feed, &world->owners[owner], &options, &slice, &error),
                     SPILL_OK);
    assert_int_equal(slice->count, model->count);
    spill_code_t code =
        spill_array_remove(world->feed, &world->owners[owner], slice->elements[index].seq, &error);
    assert_int_equal(code, SPILL_OK);
    spill_slice_free(slice);
    remove_from_model(world, owner, index);
    world->removals++;
}

/* ---- before each call of the migration ------------------------------------------------------- */

/* Half of the passes are throttled, so that they stop within an array. */
static spill_migrate_options_t options_of(world_t *world)
{
    bool full = world->full && random_below(world, 4) > 0;
    bool paced = random_below(world, 2) == 0;
    return (spill_migrate_options_t){
        .full_bytes = full ? 1 : 0, .step_bytes = 1, .throttle = paced ? &world->throttle : NULL};
}

static void run_another(world_t *world)
{
    spill_migrate_options_t options = options_of(world);
    spill_migrate_result_t result = {0};
    spill_error_t error;
    assert_int_equal(spill_migrate(world->feed, &options, &result, &error), SPILL_OK);
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)index;
    (void)request;
    size_t pending = fault_pending(world->faulty);
    if (pending > 0 && random_below(world, 8) == 0)
        fault_deliver(world->faulty, (size_t)random_below(world, pending));
    if (world->full && random_below(world, 50) == 0)
        pass_time(world);
    if ((int)random_below(world, 100) >= world->writes)
        return;
    int owner = (int)random_below(world, OWNERS);
    uint64_t who = random_below(world, 20);
    if (who < 13)
        write_as_other_program(world, owner);
    else if (who < 17)
        append(world, owner);
    else if (who < 19)
        remove_one(world, owner);
    else
        run_another(world);
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)request;
    if (index == world->fail_at)
        return world->fault;
    if ((int)random_below(world, 1000) >= world->faults)
        return FAULT_NONE;
    return (fault_t)(1 + random_below(world, FAULT_COUNT - 1));
}

/* ---- the world of a test --------------------------------------------------------------------- */

static void open_world(world_t *world, bool memory, bool full, uint64_t seed)
{
    spill_error_t error;
    *world = (world_t){.memory = memory, .full = full, .dice = seed * 977 + 13, .fail_at = -1};
    fault_hooks_t hooks = {.context = world, .decide = decide, .before = before_call};
    if (memory) {
        world->store = model_store_open();
    } else {
        world->disk = disk_new();
        world->store = embedded_on_disk(world->disk, SPILL_DURABILITY_LOG);
    }
    world->now_us = (int64_t)1700000000 * 1000000;
    world->store->options.clock = (spill_clock_t){world, now_us, sleep_us};
    world->store->adopt_room = 8 * (PAGE + 2); /* two pages */
    spill_throttle_init(
        &world->throttle,
        &(spill_throttle_options_t){.rate_per_s = PAGE * 2, .clock = world->store->options.clock});
    world->feed = definition_open_array(world->store, "feed-recent", "feed", THRESHOLD, PAGE);
    world->other = definition_open_array(world->store, "feed-recent", "other", THRESHOLD, PAGE);
    for (int i = 0; i < OWNERS; i++) {
        bson_init(&world->storage[i]);
        world->owners[i] = spill_value_from_utf8(&world->storage[i], names[i]);
    }
    fault_wrap(world->store, &hooks, &world->faulty);
    assert_int_equal(spill_array_open(world->faulty, "feed", &world->array, &error), SPILL_OK);
    /* As on a server: if only a page has its elements, that cannot be distinguished from a drop. */
    world->compares = full && memory && seed % 2 == 0;
    if (world->compares)
        ((spill_store_ops_t *)world->faulty->ops)->others_write = true;
}

static void close_world(world_t *world)
{
    spill_error_t error;
    spill_array_close(world->array);
    spill_array_close(world->feed);
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->faulty, &error), SPILL_OK);
    assert_int_equal(spill_store_close(world->store, &error), SPILL_OK);
    for (int i = 0; i < OWNERS; i++)
        bson_destroy(&world->storage[i]);
    if (world->disk)
        disk_free(world->disk);
}

static void fill(world_t *world, int owner, int count)
{
    for (int i = 0; i < count; i++)
        add_to_model(world, owner);
    write_field(world, owner);
}

/* ---- the expected end state ------------------------------------------------------------------ */

typedef struct comparison {
    const model_t *model;
    size_t index;
    const char *what;
} comparison_t;

static bool compare_with_model(void *context, const spill_value_t *owner,
                               const spill_element_t *element)
{
    comparison_t *comparison = context;
    (void)owner;
    if (comparison->index >= comparison->model->count)
        fail_msg("%s: more than %zu elements", comparison->what, comparison->model->count);
    spill_value_t expected = number_value(&comparison->model->at[comparison->index]);
    if (!spill_value_equal(&expected, &element->value))
        fail_msg("%s: element %zu has another value", comparison->what, comparison->index);
    comparison->index++;
    return true;
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("page %lld, I%d: %s\n", (long long)finding->page, finding->invariant,
                finding->text);
}

/* A copy that was put late, after its lease had ended, is a left-over page. */
static void repair_owners(world_t *world)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    world->now_us += SPILL_ADOPT_US + SPILL_MARGIN_US;
    assert_int_equal(spill_array_repair(world->feed, NULL, false, NULL, NULL, &summary, &error),
                     SPILL_OK);
}

static void check_reshaped(world_t *world)
{
    spill_error_t error;
    if (world->full)
        repair_owners(world);
    for (int i = 0; i < OWNERS; i++) {
        char what[64];
        snprintf(what, sizeof what, "seed %d, %s", world->seed, names[i]);
        comparison_t comparison = {.model = &world->models[i], .what = what};
        spill_state_t head;
        assert_true(read_head(world, i, &head) || world->models[i].count == 0);
        assert_true(head.live < THRESHOLD + PAGE);
        assert_int_equal(spill_array_export(world->feed, &world->owners[i], compare_with_model,
                                            &comparison, &error),
                         SPILL_OK);
        if (comparison.index != world->models[i].count)
            fail_msg("%s: %zu elements, and not %zu", what, comparison.index,
                     world->models[i].count);
    }
    spill_verify_summary_t summary;
    assert_int_equal(spill_array_verify(world->feed, NULL, print_finding, NULL, &summary, &error),
                     SPILL_OK);
    if (summary.findings > 0)
        fail_msg("seed %d: %lld findings", world->seed, (long long)summary.findings);
}

/* The array is a field again, and no bookkeeping is left. */
static void check_unmanaged(world_t *world)
{
    for (int i = 0; i < OWNERS; i++) {
        spill_owner_t own;
        spill_error_t error;
        spill_state_t head;
        spill_response_t response = SPILL_RESPONSE_INIT;
        assert_false(read_head(world, i, &head));
        assert_int_equal(spill_owner_init(&own, world->feed, &world->owners[i], &error), SPILL_OK);
        assert_int_equal(spill_outlier_find_left_over(&own, INT64_MAX, &response, &error),
                         SPILL_OK);
        assert_false(response.state.present);
        spill_response_release(&response);
        spill_owner_release(&own);
        assert_int_equal(spill_owner_init(&own, world->other, &world->owners[i], &error), SPILL_OK);
        spill_request_t read = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.want_fields = true;
        assert_int_equal(spill_owner_call(&own, &read, &response, &error), SPILL_OK);
        bson_iter_t iter, elements;
        assert_true(bson_iter_init_find(&iter, response.fields, "activities"));
        assert_true(bson_iter_recurse(&iter, &elements));
        size_t index = 0;
        for (; bson_iter_next(&elements); index++)
            assert_int_equal(bson_iter_int64(&elements), world->models[i].at[index]);
        assert_int_equal(index, world->models[i].count);
        spill_response_release(&response);
        spill_owner_release(&own);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef spill_code_t (*pass_fn)(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error);

/*
 * Drop pages that a crashed pass left, as their user would: the array was edited since and no
 * longer begins with their elements.
 */
static void drop_pages(world_t *world)
{
    for (int i = 0; i < OWNERS; i++) {
        spill_state_t head;
        spill_error_t error;
        if (read_head(world, i, &head))
            continue;
        spill_code_t code = spill_array_drop_owner(world->feed, &world->owners[i], &error);
        assert_true(code == SPILL_OK || code == SPILL_NOT_FOUND || code == SPILL_CONFLICT);
        world->left += code == SPILL_OK ? 1 : 0;
    }
}

static void note_at_once(void *context, const spill_migrated_t *migrated)
{
    world_t *world = context;
    world->at_once += migrated->at_once ? 1 : 0;
}

/* Repeat a pass as its user would. The next pass also retries owners that failed. */
static void run_until_done(world_t *world, pass_fn pass)
{
    spill_code_t code = SPILL_UNKNOWN;
    spill_error_t error;
    for (int i = 0; i < TRIES; i++) {
        spill_migrate_options_t options = options_of(world);
        spill_migrate_result_t result = {0};
        options.context = world;
        options.migrated = note_at_once;
        code = pass(world->array, &options, &result, &error);
        world->moves += (int)result.moved;
        if (code == SPILL_OK && result.failed == 0)
            return;
        if (world->full)
            pass_time(world);
        if (world->compares && i > TRIES / 2)
            drop_pages(world);
        bool too_soon = world->full && code == SPILL_TOO_BIG; /* too early for the undo */
        if (code != SPILL_OK && code != SPILL_IO && code != SPILL_UNKNOWN && !too_soon)
            fail_msg("seed %d: %s: %s", world->seed, spill_code_name(code), error.message);
    }
    fail_msg("seed %d: no end after %d passes: %s", world->seed, TRIES, error.message);
}

static void deliver_pending(world_t *world)
{
    while (fault_pending(world->faulty) > 0)
        fault_deliver(world->faulty, 0);
    world->writes = world->faults = 0;
    world->fail_at = -1;
}

static void run_schedule(world_t *world, bool undo)
{
    run_until_done(world, spill_migrate);
    deliver_pending(world);
    run_until_done(world, spill_migrate); /* pushed behind the array */
    check_reshaped(world);
    if (!undo)
        return;
    run_until_done(world, spill_migrate_undo);
    check_unmanaged(world);
    assert_int_equal(spill_undoing_cancel(world->store, "feed", NULL, NULL), SPILL_OK);
    run_until_done(world, spill_migrate);
    check_reshaped(world);
}

static int setting(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? (int)strtol(text, NULL, 10) : otherwise;
}

static void random_schedules(bool memory, bool full)
{
    static world_t world;
    int moves = 0, edits = 0, pulls = 0, removals = 0, appends = 0, at_once = 0;
    int first = setting("SPILLWAY_SEED", 1),
        count = setting("SPILLWAY_SCHEDULES", (int)effort(1000, 250, 50));
    for (int seed = first; seed < first + count; seed++) {
        open_world(&world, memory, full, (uint64_t)seed);
        world.seed = seed;
        for (int i = 0; i < OWNERS; i++)
            fill(&world, i, (int)random_below(&world, 25));
        world.writes = (int)random_below(&world, 60);
        world.faults = (int)random_below(&world, 150);
        run_schedule(&world, seed % 3 == 0);
        moves += world.moves;
        edits += world.edits;
        pulls += world.pulls;
        removals += world.removals;
        appends += world.appends;
        at_once += world.at_once;
        close_world(&world);
    }
    assert_true(moves > 0 && edits > 0 && pulls > 0 && removals > 0 && appends > 0);
    assert_int_equal(at_once > 0, full);
}

static void migrate_during_writes_on_model_store(void **state)
{
    (void)state;
    random_schedules(true, false);
}

static void migrate_full_during_writes_on_model_store(void **state)
{
    (void)state;
    random_schedules(true, true);
}

static void migrate_full_during_writes_on_embedded_store(void **state)
{
    (void)state;
    random_schedules(false, true);
}

static void migrate_during_writes_on_embedded_store(void **state)
{
    (void)state;
    random_schedules(false, false);
}

/* The k-th call fails, for every k. */
static void every_call_fails_once(bool memory, bool full, pass_fn pass)
{
    static world_t world;
    const int64_t step = effort(1, 1, 7);
    for (fault_t fault = FAULT_FAIL; fault < FAULT_COUNT; fault++) {
        bool reached = true;
        for (int64_t k = (int64_t)fault % step; reached; k += step) {
            open_world(&world, memory, full, full ? 2 : 1);
            fill(&world, 0, 23);
            fill(&world, 1, 1);
            fill(&world, 2, 7);
            if (pass == spill_migrate_undo)
                run_until_done(&world, spill_migrate);
            world.fail_at = fault_calls(world.faulty) + k;
            world.fault = fault;
            run_until_done(&world, pass);
            reached = fault_calls(world.faulty) > world.fail_at;
            deliver_pending(&world);
            if (pass == spill_migrate)
                check_reshaped(&world);
            run_until_done(&world, spill_migrate_undo);
            fill(&world, 3, 1);
            check_unmanaged(&world);
            close_world(&world);
        }
    }
}

/* The survey of a dry run matches what the migration does. */
static void survey_predicts_migration(void **state)
{
    (void)state;
    static world_t world;
    for (int count = 0; count < 60; count++) {
        spill_migrate_options_t options = {0};
        spill_migrate_result_t said = {0}, done = {0};
        spill_error_t error;
        open_world(&world, true, false, 1);
        fill(&world, 0, count);
        fill(&world, 1, 60 - count);
        assert_int_equal(
            spill_migrate_survey(world.store, &world.feed->definition, NULL, &said, &error),
            SPILL_OK);
        assert_int_equal(spill_migrate(world.feed, &options, &done, &error), SPILL_OK);
        assert_int_equal(said.owners, done.owners);
        assert_int_equal(said.moved, done.moved);
        assert_int_equal(said.pages, done.pages);
        close_world(&world);
    }
}

/* The survey is about right if documents are bounded by bytes rather than by counts. */
static void survey_estimates_pages_bounded_by_bytes(void **state)
{
    (void)state;
    static world_t world;
    spill_migrate_options_t options = {0};
    spill_migrate_result_t said = {0}, done = {0};
    spill_error_t error;
    open_world(&world, true, false, 1);
    spill_definition_t definition = world.feed->definition;
    definition.bounds = (spill_bounds_t){
        .threshold = 100, .page_capacity = 200, .head_bytes_max = 65536, .page_bytes_max = 32768};
    assert_int_equal(spill_store_define(world.store, &definition, &error), SPILL_OK);
    spill_array_t *array;
    assert_int_equal(spill_array_open(world.store, "feed", &array, &error), SPILL_OK);
    bson_t update = BSON_INITIALIZER, set, elements;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &elements);
    for (uint32_t i = 0; i < 100; i++) {
        char key[16], text[3000] = {0};
        snprintf(key, sizeof key, "%u", i);
        memset(text, 'x', 2500 + i % 300);
        BSON_APPEND_UTF8(&elements, key, text);
    }
    bson_append_array_end(&set, &elements);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(world.other, &world.owners[0], &update, &error), SPILL_OK);
    bson_destroy(&update);
    assert_int_equal(spill_migrate_survey(world.store, &definition, NULL, &said, &error), SPILL_OK);
    assert_int_equal(spill_migrate(array, &options, &done, &error), SPILL_OK);
    assert_true(done.pages > 2);
    assert_in_range(said.pages, done.pages * 3 / 4, done.pages * 5 / 4);
    assert_in_range(said.moved, done.moved * 3 / 4, done.moved * 5 / 4);
    spill_array_close(array);
    close_world(&world);
}

static void every_call_of_a_migration_fails_once(void **state)
{
    (void)state;
    every_call_fails_once(true, false, spill_migrate);
    every_call_fails_once(false, false, spill_migrate);
}

static void every_call_of_an_undo_fails_once(void **state)
{
    (void)state;
    every_call_fails_once(true, false, spill_migrate_undo);
    every_call_fails_once(false, false, spill_migrate_undo);
}

static void every_call_with_full_documents_fails_once(void **state)
{
    (void)state;
    for (int memory = 0; memory < 2; memory++) {
        every_call_fails_once(memory, true, spill_migrate);
        every_call_fails_once(memory, true, spill_migrate_undo);
    }
}

/* A client that removes page 0 right after the first cut, before the page is read again. */
typedef struct remover {
    world_t *world;
    bool trims; /* by a trim of the library; else the page is lost */
    bool cut, done;
} remover_t;

static void remove_page_after_cut(void *context, int64_t index, const spill_request_t *request)
{
    remover_t *remover = context;
    const world_t *world = remover->world;
    spill_error_t error;
    (void)index;
    bool next = remover->cut && !remover->done && request && request->kind == SPILL_REQUEST_READ;
    if (next && remover->trims) {
        assert_int_equal(spill_array_trim(world->feed, &world->owners[0], PAGE, &error), SPILL_OK);
    } else if (next) {
        spill_owner_t own;
        spill_state_t head;
        assert_true(read_head(remover->world, 0, &head));
        assert_int_equal(spill_owner_init(&own, world->feed, &world->owners[0], &error), SPILL_OK);
        assert_int_equal(spill_outlier_empty_pages(&own, head.incarnation, 0, 1, &error), SPILL_OK);
        spill_owner_release(&own);
    }
    remover->done = remover->done || next;
    remover->cut = remover->cut || (request && request->kind == SPILL_REQUEST_CUT);
}

static void note_corrupt(void *context, const spill_migrated_t *migrated)
{
    bool *corrupt = context;
    *corrupt = migrated->failed && migrated->failed->code == SPILL_CORRUPT;
}

/* The page's elements exist nowhere else, unless the head says that they were trimmed. */
static void page_missing_after_cut_is_reported(void **state)
{
    (void)state;
    static world_t world;
    for (int trims = 0; trims < 2; trims++) {
        remover_t remover = {.world = &world, .trims = trims};
        fault_hooks_t hooks = {.context = &remover, .before = remove_page_after_cut};
        bool corrupt = false;
        spill_migrate_options_t options = {.context = &corrupt, .migrated = note_corrupt};
        spill_migrate_result_t result = {0};
        spill_store_t *store;
        spill_array_t *array;
        spill_error_t error;
        open_world(&world, true, false, 1);
        fill(&world, 0, THRESHOLD + PAGE);
        fault_wrap(world.store, &hooks, &store);
        assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_OK);
        assert_int_equal(spill_migrate(array, &options, &result, &error), SPILL_OK);
        assert_true(remover.done);
        assert_int_equal(result.failed, trims ? 0 : 1);
        assert_int_equal(corrupt, !trims);
        spill_array_close(array);
        spill_store_close(store, NULL);
        close_world(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survey_predicts_migration),
        cmocka_unit_test(survey_estimates_pages_bounded_by_bytes),
        cmocka_unit_test(page_missing_after_cut_is_reported),
        cmocka_unit_test(every_call_of_a_migration_fails_once),
        cmocka_unit_test(every_call_of_an_undo_fails_once),
        cmocka_unit_test(every_call_with_full_documents_fails_once),
        cmocka_unit_test(migrate_full_during_writes_on_model_store),
        cmocka_unit_test(migrate_full_during_writes_on_embedded_store),
        cmocka_unit_test(migrate_during_writes_on_model_store),
        cmocka_unit_test(migrate_during_writes_on_embedded_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
