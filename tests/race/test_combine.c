/*
 * Appends of many threads that a store combines: a model store that supports combining and is slow
 * enough for other threads to queue meanwhile.
 */
#include "appenders.h"

#include "store/store.h"
#include "store/transition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { CALL_US = 100 };

static const spill_store_ops_t *memory;
static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static atomic_int combined; /* appends that were sent in one request with others */

/* Would the store refuse one of the request's appends if it applied them one after the other? */
static spill_code_t is_refused(spill_store_t *store, const spill_request_t *request, bool *refused,
                               spill_error_t *error)
{
    spill_response_t found = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_request_reading(request);
    read.read.want_ops = true;
    spill_code_t code = memory->call(store, &read, &found, error);
    *refused = spill_append_refusal(request, &found.state, NULL) != SPILL_REFUSAL_NONE;
    for (size_t i = 0; i < request->append.member_count; i++) {
        const spill_op_t *op = request->append.members[i].op;
        if (op && (spill_ops_find(&found.ops, op->id, op->id_bytes) ||
                   found.state.op_count + (int64_t)i >= op->base + request->definition->op_window))
            *refused = true;
    }
    spill_response_release(&found);
    return code;
}

/* Apply all appends, or none. */
static spill_code_t append_members(spill_store_t *store, const spill_request_t *request,
                                   spill_response_t *response, spill_error_t *error)
{
    bool refused;
    spill_code_t code = is_refused(store, request, &refused, error);
    spill_response_clear(response);
    response->outcome = SPILL_REFUSED_GUARD;
    const spill_value_t *elements = request->append.elements;
    int64_t first = 0;
    for (size_t i = 0; code == SPILL_OK && !refused && i < request->append.member_count; i++) {
        spill_request_t one = *request;
        one.append.members = NULL;
        one.append.member_count = 0;
        one.append.op = request->append.members[i].op;
        one.append.elements = elements;
        one.append.element_count = (size_t)request->append.members[i].count;
        one.append.elements_bytes = 0;
        for (size_t k = 0; k < one.append.element_count; k++)
            one.append.elements_bytes += elements[k].size_bytes;
        elements += one.append.element_count;
        code = memory->call(store, &one, response, error);
        assert_int_equal(response->outcome, SPILL_DONE);
        if (i == 0)
            first = response->seq;
    }
    response->seq = first;
    if (!refused)
        atomic_fetch_add(&combined, (int)request->append.member_count);
    return code;
}

static spill_code_t call(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    pthread_mutex_lock(&one_at_a_time);
    bool combined_append =
        request->kind == SPILL_REQUEST_APPEND && request->append.member_count > 0;
    spill_code_t code = combined_append ? append_members(store, request, response, error)
                                        : memory->call(store, request, response, error);
    if (request->kind == SPILL_REQUEST_APPEND)
        usleep(CALL_US);
    pthread_mutex_unlock(&one_at_a_time);
    return code;
}

static int race(spill_keep_t keep, bool separate)
{
    spill_store_t *store;
    spill_store_options_t options;
    spill_error_t error;
    spill_store_options_init(&options);
    options.separate_appends = separate;
    assert_int_equal(spill_store_open("memory:", &options, &store, &error), SPILL_OK);
    memory = store->ops;
    spill_store_ops_t combining = *memory;
    combining.combines = true;
    combining.call = call;
    store->ops = &combining;
    atomic_store(&combined, 0);
    race_settings_t settings = {.keep = keep, .threads = 8, .appends = 100};
    run_race(store, &settings);
    store->ops = memory;
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    return atomic_load(&combined);
}

static void newest(void **state)
{
    (void)state;
    assert_true(race(SPILL_KEEP_NEWEST, false) > 0);
}

static void oldest(void **state)
{
    (void)state;
    assert_true(race(SPILL_KEEP_OLDEST, false) > 0);
}

static void separate(void **state)
{
    (void)state;
    assert_int_equal(race(SPILL_KEEP_NEWEST, true), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(newest), cmocka_unit_test(oldest),
                                       cmocka_unit_test(separate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
