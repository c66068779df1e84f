/*
 * An undo beside programs that adopt arrays. Before each call of one of them, the other one runs
 * from its beginning to its end; an ADOPT arrives late; each of them dies at each call. No array
 * may stay managed without a definition.
 */
#include "support/definition.h"
#include "support/effort.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include "core/array.h"
#include "layout/adoption.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/undoing.h"
#include "util/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 3, THRESHOLD = 4, PAGE = 3, TRIES = 100 };

static const char *const names[OWNERS] = {"ada", "bob", "cid"};
static const int lengths[OWNERS] = {23, 2, 9};

typedef struct world {
    spill_store_t *store;            /* the store below the others */
    spill_store_t *sweeper, *undoer; /* its clients */
    spill_array_t *feed, *other;     /* opened below: for checks, and for the documents' fields */
    spill_array_t *swept;            /* opened by the sweeper before the undo begins */
    int64_t now_us;
    bson_t storage[OWNERS];
    spill_value_t owners[OWNERS];
    bool full; /* documents have no room for bookkeeping */
    /* Before this call of the client `other` the function runs. Faults happen to the client. */
    spill_store_t *client;
    int64_t at;
    void (*run)(struct world *world);
    bool only_adopts; /* the function runs only if the call is an ADOPT */
    bool is_busy;     /* other programs write entries while the undo waits */
    int sleeps;
    int64_t waited_us; /* from the sending of an ADOPT to the end of an undo */
    bool dies;         /* at call `at`: this and all later calls of the client fail */
    bool is_late;      /* call `at` is lost, and arrives later, if it is an ADOPT */
    bool happened;     /* call `at` was reached */
    int adoptions, refusals;
} world_t;

static int64_t now_us(void *context)
{
    world_t *world = context;
    return ++world->now_us;
}

/* The entry of a program that has not checked the definition yet. */
static void write_entry(world_t *world)
{
    char entry[64];
    bool done;
    spill_error_t error;
    bson_t document = BSON_INITIALIZER;
    snprintf(entry, sizeof entry, "feed:%024d:adopter", world->sleeps);
    BSON_APPEND_UTF8(&document, "host", "other");
    BSON_APPEND_INT64(&document, "pid", 1);
    BSON_APPEND_DATE_TIME(&document, "ends", (world->now_us + SPILL_ADOPTER_US) / 1000);
    assert_true(world->sleeps < 10000);
    assert_int_equal(world->store->ops->catalog_put(world->store, SPILL_CATALOG_JOB, entry, NULL,
                                                    &document, &done, &error),
                     SPILL_OK);
    assert_true(done);
    bson_destroy(&document);
}

static void sleep_us(void *context, int64_t duration_us)
{
    world_t *world = context;
    world->now_us += duration_us;
    world->sleeps++;
    if (world->is_busy)
        write_entry(world);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

typedef struct port {
    world_t *world;
    spill_store_t **client;
} port_t;

static bool is_adoption(const spill_request_t *request)
{
    return request &&
           (request->kind == SPILL_REQUEST_ADOPT || request->kind == SPILL_REQUEST_ADOPT_SPLIT);
}

static void before(void *context, int64_t index, const spill_request_t *request)
{
    const port_t *port = context;
    world_t *world = port->world;
    if (world->client != *port->client || index != world->at)
        return;
    world->happened = true;
    if (world->run && (!world->only_adopts || is_adoption(request)))
        world->run(world);
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const port_t *port = context;
    const world_t *world = port->world;
    if (world->client != *port->client || index < world->at)
        return FAULT_NONE;
    if (world->dies)
        return FAULT_FAIL;
    return world->is_late && is_adoption(request) && index == world->at ? FAULT_LOST_DELAYED
                                                                        : FAULT_NONE;
}

static spill_store_t *open_client(world_t *world, port_t *port, spill_store_t **client)
{
    *port = (port_t){world, client};
    const fault_hooks_t hooks = {.context = port, .decide = decide, .before = before};
    fault_wrap(world->store, &hooks, client);
    ((spill_store_ops_t *)(*client)->ops)->others_write = true;
    return *client;
}

/* ---- the world ------------------------------------------------------------------------------- */

static void write_field(world_t *world, int owner)
{
    spill_error_t error;
    bson_t update = BSON_INITIALIZER, set, array;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (int i = 0; i < lengths[owner]; i++) {
        char key[24];
        snprintf(key, sizeof key, "%d", i);
        BSON_APPEND_INT64(&array, key, i);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(world->other, &world->owners[owner], &update, &error),
                     SPILL_OK);
    bson_destroy(&update);
}

static void open_world(world_t *world, bool full)
{
    static port_t ports[2];
    spill_error_t error;
    *world = (world_t){.full = full, .now_us = (int64_t)1700000000 * 1000000, .at = -1};
    world->store = model_store_open();
    world->store->options.clock = (spill_clock_t){world, now_us, sleep_us};
    world->store->adopt_room = 8 * (PAGE + 2);
    world->feed = definition_open_array(world->store, "feed-recent", "feed", THRESHOLD, PAGE);
    world->other = definition_open_array(world->store, "feed-recent", "other", THRESHOLD, PAGE);
    for (int i = 0; i < OWNERS; i++) {
        bson_init(&world->storage[i]);
        world->owners[i] = spill_value_from_utf8(&world->storage[i], names[i]);
        write_field(world, i);
    }
    open_client(world, &ports[0], &world->sweeper);
    open_client(world, &ports[1], &world->undoer);
    assert_int_equal(spill_array_open(world->sweeper, "feed", &world->swept, &error), SPILL_OK);
}

static void close_world(world_t *world)
{
    spill_error_t error;
    world->client = NULL;
    spill_array_close(world->swept);
    spill_array_close(world->feed);
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->sweeper, &error), SPILL_OK);
    assert_int_equal(spill_store_close(world->undoer, &error), SPILL_OK);
    assert_int_equal(spill_store_close(world->store, &error), SPILL_OK);
    for (int i = 0; i < OWNERS; i++)
        bson_destroy(&world->storage[i]);
}

/* ---- what the programs do -------------------------------------------------------------------- */

static spill_code_t sweep_once(world_t *world, spill_error_t *error)
{
    spill_migrate_options_t options = {.full_bytes = world->full ? 1 : 0};
    spill_migrate_result_t result = {0};
    spill_code_t code = spill_migrate(world->swept, &options, &result, error);
    world->adoptions += (int)result.unmanaged;
    world->refusals += code == SPILL_REFUSED ? 1 : 0;
    return code;
}

static void sweep(world_t *world)
{
    spill_error_t error;
    spill_code_t code = sweep_once(world, &error);
    assert_true(code == SPILL_OK || code == SPILL_REFUSED || code == SPILL_IO);
}

/* As the gateway does it. */
static void adopt_owner(world_t *world, int owner)
{
    bool adopted;
    spill_error_t error;
    spill_code_t code = spill_array_adopt(world->swept, &world->owners[owner], &adopted, &error);
    assert_true(code == SPILL_OK || code == SPILL_REFUSED || code == SPILL_IO ||
                code == SPILL_CONFLICT);
    if (code == SPILL_REFUSED)
        assert_int_equal(error.reason, SPILL_REASON_NOT_ADOPTED);
    world->adoptions += adopted;
    world->refusals += code == SPILL_REFUSED;
}

static void adopt_one(world_t *world)
{
    adopt_owner(world, 0);
}

static bool is_defined(world_t *world)
{
    spill_error_t error;
    spill_definition_t definition;
    spill_code_t code = spill_store_definition(world->store, "feed", &definition, &error);
    assert_true(code == SPILL_OK || code == SPILL_NOT_FOUND);
    return code == SPILL_OK;
}

/* `spillway migrate --undo`, once. */
static spill_code_t undo_once(world_t *world, spill_error_t *error)
{
    spill_array_t *array;
    spill_migrate_options_t options = {0};
    spill_migrate_result_t result = {0};
    spill_code_t code = spill_array_open(world->undoer, "feed", &array, error);
    if (code == SPILL_NOT_FOUND)
        return SPILL_OK;
    if (code == SPILL_OK)
        code = spill_migrate_undo(array, &options, &result, error);
    spill_array_close(array);
    if (code == SPILL_OK && result.failed > 0)
        return spill_fail_retryable(error, SPILL_CONFLICT, "an owner failed");
    return code == SPILL_OK ? spill_undoing_end(world->undoer, "feed", error) : code;
}

static void undo(world_t *world)
{
    spill_error_t error;
    undo_once(world, &error);
}

/* Repeat it, as its user would. */
static void undo_until_done(world_t *world)
{
    spill_error_t error;
    for (int i = 0; i < TRIES; i++) {
        if (undo_once(world, &error) == SPILL_OK)
            return;
        world->now_us += SPILL_ADOPT_US;
    }
    fail_msg("no end: %s", error.message);
}

/* `spillway migrate --execute`: it cancels the undo, or finds no definition. */
static void migrate_again(world_t *world)
{
    spill_error_t error;
    assert_int_equal(spill_undoing_cancel(world->sweeper, "feed", NULL, &error), SPILL_OK);
    sweep(world);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    int *count = context;
    int64_t number;
    (void)owner;
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, *count);
    ++*count;
    return true;
}

static int count_field(const bson_t *fields)
{
    bson_iter_t iter, elements;
    int count = 0;
    assert_true(bson_iter_init_find(&iter, fields, "activities"));
    assert_true(bson_iter_recurse(&iter, &elements));
    for (; bson_iter_next(&elements); count++)
        assert_int_equal(bson_iter_int64(&elements), count);
    return count;
}

/* All elements are there. Returns whether the array is managed. */
static bool check_owner(world_t *world, int owner)
{
    spill_error_t error;
    int count = 0;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    assert_int_equal(spill_owner_init(&own, world->feed, &world->owners[owner], &error), SPILL_OK);
    spill_code_t code = spill_owner_read_state(&own, SPILL_HEAD, &head, &error);
    bool managed = code == SPILL_OK && head.state.present;
    assert_true(code == SPILL_OK || code == SPILL_REFUSED);
    if (managed) {
        assert_int_equal(
            spill_array_export(world->feed, &world->owners[owner], count_element, &count, &error),
            SPILL_OK);
    } else {
        SPILL_SCOPED(spill_owner_release) spill_owner_t beside = {0};
        assert_int_equal(spill_owner_init(&beside, world->other, &world->owners[owner], &error),
                         SPILL_OK);
        spill_request_t read = spill_owner_request(&beside, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.want_fields = true;
        assert_int_equal(spill_owner_call(&beside, &read, &head, &error), SPILL_OK);
        count = count_field(head.fields);
    }
    assert_int_equal(count, lengths[owner]);
    return managed;
}

/* Returns the number of managed arrays. */
static int check_world(world_t *world)
{
    int managed = 0;
    for (int i = 0; i < OWNERS; i++)
        managed += check_owner(world, i);
    if (managed > 0 && !is_defined(world))
        fail_msg("call %lld: %d arrays are managed without a definition", (long long)world->at,
                 managed);
    return managed;
}

/* Nothing is left of adopters, and an undo ends. */
static void check_end(world_t *world)
{
    int64_t left;
    spill_error_t error;
    SPILL_SCOPED(spill_listing_release) spill_listing_t entries = SPILL_LISTING_INIT;
    world->client = NULL;
    undo_until_done(world);
    assert_int_equal(check_world(world), 0);
    assert_false(is_defined(world));
    assert_int_equal(spill_adopters_list(world->store, &entries, &error), SPILL_OK);
    assert_int_equal(spill_adopters_purge(world->store, "feed", &entries, &left, NULL, 0, &error),
                     SPILL_OK);
    assert_int_equal(left, 0);
}

/* ---- one runs between two calls of the other ------------------------------------------------- */

/* For each call of `client` in `first`: before it, `second` runs. */
static void between_all_calls(bool client_is_sweeper, bool full, void (*first)(world_t *world),
                              void (*second)(world_t *world), bool begins_swept)
{
    static world_t world;
    bool reached = true;
    int adoptions = 0, refusals = 0;
    for (int64_t k = 0; reached; k++) {
        open_world(&world, full);
        if (begins_swept) {
            sweep(&world);
            world.now_us += SPILL_ADOPT_US + SPILL_MARGIN_US; /* the leases of full documents */
        }
        world.client = client_is_sweeper ? world.sweeper : world.undoer;
        world.at = fault_calls(world.client) + k;
        world.run = second;
        first(&world);
        reached = world.happened;
        check_world(&world);
        adoptions += world.adoptions;
        refusals += world.refusals;
        check_end(&world);
        close_world(&world);
    }
    assert_true(adoptions > 0);
    assert_true(refusals > 0);
}

static void undo_between_calls_of_a_sweep(void **state)
{
    (void)state;
    between_all_calls(true, false, sweep, undo, false);
    between_all_calls(true, true, sweep, undo, false);
}

static void undo_between_calls_of_an_adoption(void **state)
{
    (void)state;
    between_all_calls(true, false, adopt_one, undo, false);
}

static void sweep_between_calls_of_an_undo(void **state)
{
    (void)state;
    between_all_calls(false, false, undo, sweep, true);
    between_all_calls(false, true, undo, sweep, true);
}

static void adoption_between_calls_of_an_undo(void **state)
{
    (void)state;
    between_all_calls(false, false, undo, adopt_one, true);
}

static void migration_between_calls_of_an_undo(void **state)
{
    (void)state;
    between_all_calls(false, false, undo, migrate_again, true);
}

/* ---- two threads of one program -------------------------------------------------------------- */

/* While an ADOPT of a thread is on its way, another thread sees that an undo begins. */
static void see_mark_and_undo(world_t *world)
{
    spill_error_t error;
    spill_array_t *array;
    assert_int_equal(spill_array_open(world->undoer, "feed", &array, &error), SPILL_OK);
    assert_int_equal(spill_undoing_begin(array, &error), SPILL_OK);
    spill_array_close(array);
    world->now_us += 2000000;
    adopt_owner(world, 1);
    undo(world);
}

static void entry_stays_while_another_thread_adopts(void **state)
{
    (void)state;
    static world_t world;
    for (int full = 0; full < 2; full++) {
        bool reached = true;
        int refusals = 0;
        for (int64_t k = 0; reached; k++) {
            open_world(&world, full);
            world.only_adopts = true;
            world.client = world.sweeper;
            world.at = fault_calls(world.client) + k;
            world.run = see_mark_and_undo;
            sweep(&world);
            reached = world.happened;
            check_world(&world);
            refusals += world.refusals;
            check_end(&world);
            close_world(&world);
        }
        assert_true(refusals > 0);
    }
}

/* While an ADOPT of a large document is on its way, another thread adopts a small one. */
static void adopt_small_and_undo(world_t *world)
{
    int64_t sent_us = world->now_us;
    world->now_us += SPILL_ADOPTER_US / 2 + 1;
    adopt_owner(world, 1);
    undo(world);
    if (!is_defined(world)) /* the undo has ended */
        world->waited_us = world->now_us - sent_us;
}

static void undo_waits_for_the_longest_adoption(void **state)
{
    (void)state;
    static world_t world;
    bool reached = true;
    int waits = 0;
    for (int64_t k = 0; reached; k++) {
        open_world(&world, true);
        world.only_adopts = true;
        world.client = world.sweeper;
        world.at = fault_calls(world.client) + k;
        world.run = adopt_small_and_undo;
        sweep(&world);
        reached = world.happened;
        if (world.waited_us > 0) {
            assert_true(world.waited_us > spill_adopt_run_us(world.store, true));
            waits++;
        }
        check_world(&world);
        check_end(&world);
        close_world(&world);
    }
    assert_true(waits > 0);
}

/* ---- programs that adopt while the definition has the mark ------------------------------------
 */

static int64_t calls_to_adopt(world_t *world)
{
    int64_t calls = fault_calls(world->sweeper);
    adopt_one(world);
    return fault_calls(world->sweeper) - calls;
}

static void refused_adoption_costs_a_read_in_a_second(void **state)
{
    (void)state;
    static world_t world;
    spill_error_t error;
    open_world(&world, false);
    assert_int_equal(spill_undoing_begin(world.swept, &error), SPILL_OK);
    int64_t first = calls_to_adopt(&world);
    int64_t second = calls_to_adopt(&world);
    world.now_us += 1000000;
    int64_t third = calls_to_adopt(&world);
    assert_int_equal(world.refusals, 3);
    assert_int_equal(first - second, 1);
    assert_int_equal(third, first);
    assert_int_equal(second, 0);
    check_end(&world);
    close_world(&world);
}

static void undo_waits_for_no_later_adopter(void **state)
{
    (void)state;
    static world_t world;
    spill_error_t error;
    open_world(&world, false);
    write_entry(&world);
    world.is_busy = true;
    assert_int_equal(undo_once(&world, &error), SPILL_OK);
    assert_true(world.sleeps > 10);
    world.is_busy = false;
    world.now_us += 3 * SPILL_ADOPTER_US;
    assert_int_equal(spill_adopters_sweep(world.store, "feed", &error), SPILL_OK);
    check_end(&world);
    close_world(&world);
}

/* A program stalls, and another one deletes its entry. */
static void stalled_adopter_begins_a_new_entry(void **state)
{
    (void)state;
    static world_t world;
    int64_t until;
    spill_error_t error;
    open_world(&world, false);
    {
        SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
        assert_int_equal(spill_owner_init(&own, world.swept, &world.owners[0], &error), SPILL_OK);
        spill_adoption_begin(world.swept);
        assert_int_equal(spill_adoption_until(&own, SPILL_ADOPTER_US, false, &until, &error),
                         SPILL_OK);
        world.now_us += 4 * SPILL_ADOPTER_US;
        assert_int_equal(spill_adopters_sweep(world.store, "feed", &error), SPILL_OK);
        assert_int_equal(spill_adoption_until(&own, SPILL_ADOPTER_US, false, &until, &error),
                         SPILL_OK);
        assert_true(until > world.now_us);
        spill_adoption_end(world.swept);
    }
    check_end(&world);
    close_world(&world);
}

/* ---- a server that is too slow --------------------------------------------------------------- */

static struct {
    spill_code_t (*call)(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error);
    int sends;
    int64_t run_us;
} slow;

static spill_code_t call_slowly(spill_store_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    if (!is_adoption(request))
        return slow.call(store, request, response, error);
    slow.sends++;
    slow.run_us = request->adopt.run_us;
    spill_fail(error, SPILL_UNKNOWN, "the server's time limit");
    error->native = 50;
    return SPILL_UNKNOWN;
}

static void slow_server_is_given_up(void **state)
{
    (void)state;
    static world_t world;
    spill_error_t error;
    atomic_bool stop = true;
    open_world(&world, false);
    spill_store_ops_t *ops = (spill_store_ops_t *)world.sweeper->ops;
    slow.call = ops->call;
    ops->call = call_slowly;
    assert_int_equal(spill_array_adopt(world.swept, &world.owners[0], NULL, &error),
                     SPILL_CONFLICT);
    assert_non_null(strstr(error.message, "within 60 s; try again when it is less busy"));
    assert_true(error.retryable);
    assert_int_equal(slow.sends, 3);
    assert_int_equal(slow.run_us, spill_adopt_run_us(world.sweeper, true));
    slow.sends = 0;
    world.sweeper->stop = &stop;
    assert_int_equal(spill_array_adopt(world.swept, &world.owners[0], NULL, &error),
                     SPILL_CANCELLED);
    assert_int_equal(slow.sends, 1);
    ops->call = slow.call;
    check_end(&world);
    close_world(&world);
}

/* ---- late ADOPTs ----------------------------------------------------------------------------- */

/* The k-th call is lost if it is an ADOPT, and arrives after the undo. */
static void late_adoption_is_refused(void **state)
{
    (void)state;
    static world_t world;
    bool reached = true;
    int late = 0;
    for (int full = 0; full < 2; full++, reached = true) {
        for (int64_t k = 0; reached; k++) {
            open_world(&world, full);
            world.client = world.sweeper;
            world.at = fault_calls(world.client) + k;
            world.is_late = true;
            sweep(&world);
            reached = world.happened;
            world.client = NULL;
            undo(&world);
            for (; fault_pending(world.sweeper) > 0; late++)
                fault_deliver(world.sweeper, 0);
            check_world(&world);
            check_end(&world);
            close_world(&world);
        }
    }
    assert_true(late > 2 * OWNERS);
}

/* ---- deaths ---------------------------------------------------------------------------------- */

/* The sweep dies at its k-th call. The undo waits for what it may have sent, and not for longer. */
static void undo_waits_for_a_killed_sweep(void **state)
{
    (void)state;
    static world_t world;
    bool reached = true;
    int64_t longest_us = 0;
    for (int64_t k = 0; reached; k++) {
        spill_error_t error;
        open_world(&world, false);
        world.client = world.sweeper;
        world.at = fault_calls(world.client) + k;
        world.dies = true;
        sweep(&world);
        reached = world.happened;
        check_world(&world);
        int64_t begun_us = world.now_us;
        assert_int_equal(undo_once(&world, &error), SPILL_OK);
        int64_t took_us = world.now_us - begun_us;
        longest_us = took_us > longest_us ? took_us : longest_us;
        assert_int_equal(check_world(&world), 0);
        close_world(&world);
    }
    assert_true(longest_us > SPILL_ADOPTER_US);
    assert_true(longest_us < 3 * SPILL_ADOPTER_US + 1000000);
}

/* The undo dies at its k-th call. Then a sweep adopts nothing; a migration cancels the undo, or the
 * undo ends. */
static void killed_undo_ends_or_is_cancelled(void **state)
{
    (void)state;
    static world_t world;
    bool reached = true;
    int undoing = 0;
    for (int64_t k = 0; reached; k++) {
        spill_error_t error;
        bool was;
        open_world(&world, false);
        sweep(&world);
        world.client = world.undoer;
        world.at = k;
        world.dies = true;
        undo(&world);
        reached = world.happened;
        check_world(&world);
        assert_int_equal(spill_undoing_is(world.store, "feed", &was, &error), SPILL_OK);
        undoing += was;
        if (was && k % 2 == 0) {
            assert_int_equal(spill_undoing_check(world.store, "feed", &error), SPILL_REFUSED);
            assert_int_equal(spill_undoing_cancel(world.undoer, "feed", &was, &error), SPILL_IO);
            assert_int_equal(spill_undoing_cancel(world.store, "feed", &was, &error), SPILL_OK);
            assert_true(was);
            assert_int_equal(sweep_once(&world, &error), SPILL_OK);
            assert_int_equal(check_world(&world), OWNERS);
        }
        check_end(&world);
        close_world(&world);
    }
    assert_true(undoing > OWNERS);
}

/* ---- appends by the library ------------------------------------------------------------------ */

/* An append makes a head, which an undo cannot prevent. */
static void append_to_new(world_t *world)
{
    spill_error_t error;
    int64_t number = 0;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "new");
    spill_value_t value = {(const uint8_t *)&number, sizeof number, BSON_TYPE_INT64};
    assert_int_equal(spill_array_append(world->feed, &owner, &value, 1, NULL, NULL, &error),
                     SPILL_OK);
}

/* It finds the head, also after it has deleted the definition. */
static void undo_finds_a_new_head(void **state)
{
    (void)state;
    static world_t world;
    bool reached = true;
    int refused = 0;
    for (int64_t k = 0; reached; k++) {
        spill_error_t error;
        open_world(&world, false);
        sweep(&world);
        world.client = world.undoer;
        world.at = k;
        world.run = append_to_new;
        spill_code_t code = undo_once(&world, &error);
        reached = world.happened;
        assert_true(code == SPILL_OK || code == SPILL_REFUSED);
        assert_int_equal(is_defined(&world), code == SPILL_REFUSED);
        refused += code == SPILL_REFUSED;
        check_end(&world);
        close_world(&world);
    }
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undo_between_calls_of_a_sweep),
        cmocka_unit_test(undo_between_calls_of_an_adoption),
        cmocka_unit_test(sweep_between_calls_of_an_undo),
        cmocka_unit_test(adoption_between_calls_of_an_undo),
        cmocka_unit_test(migration_between_calls_of_an_undo),
        cmocka_unit_test(entry_stays_while_another_thread_adopts),
        cmocka_unit_test(undo_waits_for_the_longest_adoption),
        cmocka_unit_test(refused_adoption_costs_a_read_in_a_second),
        cmocka_unit_test(undo_waits_for_no_later_adopter),
        cmocka_unit_test(stalled_adopter_begins_a_new_entry),
        cmocka_unit_test(slow_server_is_given_up),
        cmocka_unit_test(late_adoption_is_refused),
        cmocka_unit_test(undo_waits_for_a_killed_sweep),
        cmocka_unit_test(killed_undo_ends_or_is_cancelled),
        cmocka_unit_test(undo_finds_a_new_head),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
