/*
 * Eight clients add, remove and look up overlapping ids of one array that keeps each id once, on a
 * server (through a proxy that cuts connections and delays requests) and in an embedded store.
 * Their histories must be linearizable: for each id the checker searches for one order of its
 * operations in which a plain set would have given the same answers. Clients that search an id and
 * then append it, without a guard, must be refused. docs/internals/linearizability.md explains the
 * checker.
 *
 * SPILLWAY_SEED determines the faults and the operations, but not how the clients interleave.
 */
#include "history.h"
#include "operations.h"

#include "simulation/random.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/findings.h"
#include "support/proxy.h"
#include "support/server.h"

#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CLIENTS = 8, STORES = 4, IDS = 64, EACH = 200, EACH_SANITIZED = 60, EACH_LONG = 6000 };
static const char OWNER[] = "tom";

/* After a cut the driver waits for up to half a second, so there are few. */
static const proxy_plan_t faults = {
    .rate = {[PROXY_CUT_BEFORE] = 5,
             [PROXY_CUT_AFTER] = 10,
             [PROXY_CUT_REPLY] = 10,
             [PROXY_LATE] = 10,
             [PROXY_DELAY] = 500},
    .delay_us = 5000,
    .late_us = 200000,
};

typedef struct client {
    worker_t worker;
    place_t place;
    pthread_t thread;
    pthread_barrier_t *searched; /* only of naive clients */
    int actions;
    int64_t unknown; /* operations with an unknown outcome */
} client_t;

/* ---- the clients ----------------------------------------------------------------------------- */

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* A number with two types. As ids they are one. */
static spill_value_t make_id(client_t *client, int64_t id, bson_t *storage)
{
    bson_iter_t iter;
    bson_init(storage);
    if (sim_random_chance(&client->worker.random, 500))
        BSON_APPEND_INT64(storage, "id", id);
    else
        BSON_APPEND_DOUBLE(storage, "id", (double)id);
    assert_true(bson_iter_init_find(&iter, storage, "id"));
    return spill_value_from_iter(&iter);
}

static void log_unknown(client_t *client)
{
    client->unknown++;
    history_unknown(&client->worker.history);
}

/* Do not try again if the outcome is unknown: the first try may still take effect. */
static void add(client_t *client, int64_t id, const spill_value_t *value)
{
    const place_t *place = &client->place;
    spill_append_result_t result;
    spill_error_t error;
    spill_code_t code;
    history_add(&client->worker.history, place->name, id);
    while ((code = spill_array_append(place->array, &place->owner, value, 1, NULL, &result,
                                      &error)) != SPILL_OK &&
           code != SPILL_UNKNOWN)
        if (!operation_may_repeat(code, &error))
            operation_failed("add", code, &error);
    if (code == SPILL_UNKNOWN)
        log_unknown(client);
    else
        history_added(&client->worker.history, result.duplicates == 0);
}

static void remove_id(client_t *client, int64_t id, const spill_value_t *value)
{
    const place_t *place = &client->place;
    spill_error_t error;
    spill_code_t code;
    history_remove_id(&client->worker.history, place->name, id);
    while ((code = spill_array_remove_id(place->array, &place->owner, value, NULL, &error)) !=
               SPILL_OK &&
           code != SPILL_NOT_FOUND && code != SPILL_UNKNOWN)
        if (!operation_may_repeat(code, &error))
            operation_failed("remove", code, &error);
    if (code == SPILL_UNKNOWN)
        log_unknown(client);
    else
        history_removed(&client->worker.history, code == SPILL_OK);
}

/* Does the array have the id? */
static bool find_id(const place_t *place, const spill_value_t *value)
{
    spill_error_t error;
    spill_code_t code;
    int64_t seq;
    while ((code = spill_array_find_id(place->array, &place->owner, value, &seq, &error)) !=
               SPILL_OK &&
           code != SPILL_NOT_FOUND)
        if (!operation_may_repeat(code, &error))
            operation_failed("find", code, &error);
    return code == SPILL_OK;
}

static void contains(client_t *client, int64_t id, const spill_value_t *value)
{
    history_contains(&client->worker.history, client->place.name, id);
    history_contained(&client->worker.history, find_id(&client->place, value));
}

static void *act(void *argument)
{
    client_t *client = argument;
    for (int i = 0; i < client->actions; i++) {
        bson_t storage;
        int64_t id = sim_random_below(&client->worker.random, IDS);
        int drawn = sim_random_below(&client->worker.random, 100);
        spill_value_t value = make_id(client, id, &storage);
        if (drawn < 50) {
            add(client, id, &value);
        } else if (drawn < 80) {
            remove_id(client, id, &value);
        } else {
            contains(client, id, &value);
        }
        bson_destroy(&storage);
    }
    return NULL;
}

/* Believed: "An id that the search has not found is not there." */
static void *search_then_append(void *argument)
{
    client_t *client = argument;
    const place_t *place = &client->place;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_int64(&storage, 1);
    spill_error_t error;
    history_add(&client->worker.history, place->name, 1);
    bool found = find_id(place, &value);
    pthread_barrier_wait(client->searched);
    spill_code_t code =
        found ? SPILL_OK
              : spill_array_append(place->array, &place->owner, &value, 1, NULL, NULL, &error);
    if (code != SPILL_OK)
        operation_failed("append", code, &error);
    history_added(&client->worker.history, !found);
    bson_destroy(&storage);
    return NULL;
}

/* ---- a run ----------------------------------------------------------------------------------- */

typedef struct run {
    char folder[64];
    client_t clients[CLIENTS + 1]; /* the last one reads at the end */
    pthread_barrier_t searched;
} run_t;

static uint64_t chosen_seed(void)
{
    const char *text = getenv("SPILLWAY_SEED");
    return text != NULL ? strtoull(text, NULL, 10) : 1;
}

static void define(spill_store_t *store, bool unique)
{
    spill_definition_t definition;
    spill_error_t error;
    check(spill_definition_preset(&definition, "feed-recent", "set", &error), &error);
    snprintf(definition.id_field, sizeof definition.id_field, ".");
    definition.unique = unique;
    definition.sort_field[0] = '\0';
    definition.bounds.threshold = OPERATIONS_THRESHOLD;
    definition.bounds.page_capacity = OPERATIONS_PAGE_CAPACITY;
    check(spill_store_define(store, &definition, &error), &error);
}

static void run_begin(run_t *run)
{
    sim_random_t random = {.state = chosen_seed()};
    *run = (run_t){.folder = "/tmp/spillway-set-XXXXXX"};
    assert_non_null(mkdtemp(run->folder));
    print_message("SPILLWAY_SEED=%" PRIu64 "\n", chosen_seed());
    for (int i = 0; i <= CLIENTS; i++) {
        client_t *client = &run->clients[i];
        history_append_t open;
        client->worker = (worker_t){.number = i, .random.state = sim_random_next(&random)};
        client->searched = &run->searched;
        client->actions = (int)effort(EACH_LONG, EACH, EACH_SANITIZED);
        assert_false(history_open(&client->worker.history, run->folder, i, &open));
    }
}

static void client_open(client_t *client, spill_store_t *store)
{
    spill_array_t *array;
    spill_error_t error;
    check(spill_array_open(store, "set", &array, &error), &error);
    place_init(&client->place, array, OWNER);
}

static void client_close(client_t *client)
{
    spill_array_close(client->place.array);
    place_release(&client->place);
}

static void run_clients(run_t *run, void *(*body)(void *client))
{
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&run->clients[i].thread, NULL, body, &run->clients[i]), 0);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(run->clients[i].thread, NULL);
}

static int64_t number_of(const spill_value_t *value)
{
    bson_t storage = BSON_INITIALIZER;
    bson_iter_t iter;
    assert_true(spill_value_append(value, &storage, "id"));
    assert_true(bson_iter_init_find(&iter, &storage, "id"));
    int64_t number = bson_iter_as_int64(&iter);
    if (BSON_ITER_HOLDS_DOUBLE(&iter))
        number = (int64_t)bson_iter_double(&iter);
    bson_destroy(&storage);
    return number;
}

/* A whole read has each id at most once. */
static void read_whole(const place_t *place)
{
    bool has[IDS] = {false};
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = 2 * IDS;
    check(spill_array_read(place->array, &place->owner, &options, &slice, &error), &error);
    for (size_t i = 0; i < slice->count; i++) {
        int64_t id = number_of(&slice->elements[i].value);
        assert_in_range(id, 0, IDS - 1);
        if (has[id])
            fail_msg("the array has id %" PRId64 " twice", id);
        has[id] = true;
    }
    spill_slice_free(slice);
}

/* Look up each id. A late request of a client may still change one. */
static void find_all(client_t *reader)
{
    for (int64_t id = 0; id < IDS; id++) {
        bson_t storage;
        spill_value_t value = make_id(reader, id, &storage);
        contains(reader, id, &value);
        bson_destroy(&storage);
    }
}

/* Compare the checker's exit code. The histories are kept if it is another one. */
static void run_end(run_t *run, int expected)
{
    for (int i = 0; i <= CLIENTS; i++)
        history_close(&run->clients[i].worker.history);
    int code = history_check(run->folder);
    if (code != expected)
        fail_msg("the checker's exit code is %d, not %d: see the histories in %s", code, expected,
                 run->folder);
    char *command = bson_strdup_printf("rm -r %s", run->folder);
    assert_int_equal(system(command), 0);
    bson_free(command);
}

/* ---- the tests ------------------------------------------------------------------------------- */

static void verify_and_end(run_t *run, spill_store_t *store)
{
    client_t *reader = &run->clients[CLIENTS];
    client_open(reader, store);
    find_all(reader);
    read_whole(&reader->place);
    assert_verified(reader->place.array, "");
    client_close(reader);
    run_end(run, 0);
}

static void embedded_set_is_linearizable(void **state)
{
    (void)state;
    run_t run;
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    define(store, true);
    run_begin(&run);
    for (int i = 0; i < CLIENTS; i++)
        client_open(&run.clients[i], store);
    run_clients(&run, act);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(run.clients[i].unknown, 0);
        client_close(&run.clients[i]);
    }
    verify_and_end(&run, store);
    embedded_close(store);
    embedded_remove_folder(folder);
}

static bool is_disturbed(proxy_t *proxy)
{
    proxy_counts_t counts = proxy_counts(proxy);
    print_message("%" PRId64 " requests, %" PRId64 " connections:", counts.requests,
                  counts.connections);
    int64_t lost = 0;
    for (int i = PROXY_CUT_BEFORE; i < PROXY_DELAY; i++)
        lost += counts.faults[i];
    print_message(" %" PRId64 " requests cut or late, %" PRId64 " delayed\n", lost,
                  counts.faults[PROXY_DELAY]);
    return lost > 0 && counts.faults[PROXY_DELAY] > 0;
}

/* Two threads share a store, which combines their appends. */
static void set_on_a_server_is_linearizable(void **state)
{
    (void)state;
    run_t run;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri), *stores[STORES];
    proxy_plan_t plan = faults;
    int64_t unknown = 0;
    define(store, true);
    proxy_t *proxy = proxy_start(server_uri());
    char *through = proxy_uri(proxy, uri);
    run_begin(&run);
    for (int i = 0; i < STORES; i++)
        stores[i] = server_open(through);
    for (int i = 0; i < CLIENTS; i++)
        client_open(&run.clients[i], stores[i % STORES]);
    plan.seed = chosen_seed();
    proxy_set_plan(proxy, &plan);
    run_clients(&run, act);
    assert_true(is_disturbed(proxy));
    proxy_stop(proxy);
    for (int i = 0; i < CLIENTS; i++) {
        unknown += run.clients[i].unknown;
        client_close(&run.clients[i]);
    }
    for (int i = 0; i < STORES; i++)
        server_close(stores[i]);
    print_message("%" PRId64 " operations with an unknown outcome\n", unknown);
    verify_and_end(&run, store);
    server_close(store);
    server_drop(uri);
    bson_free(through);
    bson_free(uri);
}

static void search_then_append_is_refused(void **state)
{
    (void)state;
    run_t run;
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    define(store, false);
    run_begin(&run);
    assert_int_equal(pthread_barrier_init(&run.searched, NULL, CLIENTS), 0);
    for (int i = 0; i < CLIENTS; i++)
        client_open(&run.clients[i], store);
    run_clients(&run, search_then_append);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&run.clients[i]);
    pthread_barrier_destroy(&run.searched);
    run_end(&run, 1);
    embedded_close(store);
    embedded_remove_folder(folder);
}

int main(void)
{
    server_uri();
    mongoc_log_set_handler(NULL, NULL); /* it would report every connection that the proxy cuts */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedded_set_is_linearizable),
        cmocka_unit_test(set_on_a_server_is_linearizable),
        cmocka_unit_test(search_then_append_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
