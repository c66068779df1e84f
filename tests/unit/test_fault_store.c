/* The fault-injecting wrapper: each fault, delayed deliveries, hooks. */
#include "support/fault_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    spill_store_t *memory;
    spill_store_t *store;
    spill_definition_t definition;
    spill_binding_t binding;
    bson_t owner_storage;
    spill_value_t owner;
    fault_once_t once;
    spill_response_t response;
} fixture_t;

static void open_with(fixture_t *fixture, const fault_hooks_t *hooks)
{
    assert_int_equal(spill_store_open("memory:", NULL, &fixture->memory, NULL), SPILL_OK);
    fault_wrap(fixture->memory, hooks, &fixture->store);
    spill_definition_preset(&fixture->definition, "feed", "feed", NULL);
    assert_int_equal(spill_store_define(fixture->memory, &fixture->definition, NULL), SPILL_OK);
    assert_int_equal(
        fixture->memory->ops->bind(fixture->memory, &fixture->definition, &fixture->binding, NULL),
        SPILL_OK);
    bson_init(&fixture->owner_storage);
    fixture->owner = spill_value_from_utf8(&fixture->owner_storage, "ada");
    fixture->response = (spill_response_t)SPILL_RESPONSE_INIT;
}

static void open_once(fixture_t *fixture, int64_t at, fault_t fault)
{
    fixture->once = (fault_once_t){.at = at, .fault = fault};
    fault_hooks_t hooks = fault_once(&fixture->once);
    open_with(fixture, &hooks);
}

static void close_fixture(fixture_t *fixture)
{
    spill_response_release(&fixture->response);
    bson_destroy(&fixture->owner_storage);
    spill_store_close(fixture->store, NULL);
    spill_store_close(fixture->memory, NULL);
}

static spill_request_t request_of(const fixture_t *fixture, spill_request_kind_t kind)
{
    return (spill_request_t){
        .kind = kind,
        .definition = &fixture->definition,
        .array_id = fixture->binding.array_id,
        .collection_id = fixture->binding.collection_id,
        .owner = &fixture->owner,
        .key = (const uint8_t *)"ada",
        .key_bytes = 3,
        .page = SPILL_HEAD,
        .incarnation = 7,
        .limits = {.slots_max = 100, .bytes_max = 100000},
    };
}

static spill_code_t append(fixture_t *fixture)
{
    spill_request_t request = request_of(fixture, SPILL_REQUEST_APPEND);
    request.create = true;
    request.append.elements = &fixture->owner;
    request.append.element_count = 1;
    request.append.elements_bytes = fixture->owner.size_bytes;
    spill_error_t error = {.code = SPILL_OK};
    spill_code_t code = spill_store_call(fixture->store, &request, &fixture->response, &error);
    assert_int_equal(code, error.code);
    return code;
}

/* Count the elements in the inner store. */
static int64_t stored_elements(fixture_t *fixture)
{
    spill_request_t read = request_of(fixture, SPILL_REQUEST_READ);
    spill_response_t response = SPILL_RESPONSE_INIT;
    assert_int_equal(spill_store_call(fixture->memory, &read, &response, NULL), SPILL_OK);
    int64_t live = response.state.live;
    spill_response_release(&response);
    return live;
}

static void each_fault_does_what_it_says(void **state)
{
    (void)state;
    static const struct {
        fault_t fault;
        spill_code_t code;
        int64_t now; /* elements after the call ... */
        size_t pending;
        int64_t then; /* ... and after all deliveries */
    } cases[] = {
        {FAULT_NONE, SPILL_OK, 1, 0, 1},
        {FAULT_FAIL, SPILL_IO, 0, 0, 0},
        {FAULT_LOST_APPLIED, SPILL_UNKNOWN, 1, 0, 1},
        {FAULT_LOST_UNAPPLIED, SPILL_UNKNOWN, 0, 0, 0},
        {FAULT_DUPLICATE, SPILL_OK, 1, 1, 2},
        {FAULT_LOST_DELAYED, SPILL_UNKNOWN, 0, 1, 1},
    };
    for (size_t i = 0; i < FAULT_COUNT; i++) {
        fixture_t fixture;
        open_once(&fixture, 0, cases[i].fault);
        assert_int_equal(append(&fixture), cases[i].code);
        assert_int_equal(fixture.response.outcome == SPILL_DONE, cases[i].code == SPILL_OK);
        assert_int_equal(fixture.response.state.live, cases[i].code == SPILL_OK ? 1 : 0);
        assert_int_equal(stored_elements(&fixture), cases[i].now);
        assert_int_equal(fault_pending(fixture.store), cases[i].pending);
        assert_int_equal(fault_counter(fixture.store, cases[i].fault), 1);
        while (fault_pending(fixture.store) > 0)
            assert_int_equal(fault_deliver(fixture.store, 0), SPILL_DONE);
        assert_int_equal(stored_elements(&fixture), cases[i].then);
        assert_int_equal(append(&fixture), SPILL_OK); /* only once */
        assert_int_equal(fault_calls(fixture.store), 2);
        close_fixture(&fixture);
    }
}

static fault_t always_delay(void *context, int64_t index, const spill_request_t *request)
{
    (void)context;
    (void)index;
    return request ? FAULT_LOST_DELAYED : FAULT_NONE;
}

static void delayed_requests_arrive_in_any_order(void **state)
{
    (void)state;
    fixture_t fixture;
    fault_hooks_t hooks = {.decide = always_delay};
    open_with(&fixture, &hooks);
    append(&fixture);
    spill_request_t seal = request_of(&fixture, SPILL_REQUEST_SEAL);
    assert_int_equal(spill_store_call(fixture.store, &seal, &fixture.response, NULL),
                     SPILL_UNKNOWN);
    append(&fixture);
    assert_int_equal(fault_pending(fixture.store), 3);
    assert_int_equal(fault_peek(fixture.store, 1)->kind, SPILL_REQUEST_SEAL);
    assert_int_equal(fault_deliver(fixture.store, 2), SPILL_DONE);
    assert_int_equal(fault_deliver(fixture.store, 1), SPILL_DONE);
    assert_int_equal(fault_peek(fixture.store, 0)->kind, SPILL_REQUEST_APPEND);
    assert_int_equal(fault_deliver(fixture.store, 0), SPILL_REFUSED_GUARD);
    assert_int_equal(stored_elements(&fixture), 1);
    for (int i = 0; i < 9; i++) /* still pending when the wrapper is closed */
        append(&fixture);
    assert_int_equal(fault_pending(fixture.store), 9);
    close_fixture(&fixture);
}

/* ---- hooks ----------------------------------------------------------------------------------- */

/* Records the calls of hooks, and crashes the client there. */
typedef struct watch {
    fixture_t *fixture;
    char log[64];
    jmp_buf crash;
    bool crash_before, crash_after;
} watch_t;

static void note_event(watch_t *watch, char what)
{
    size_t length = strlen(watch->log);
    watch->log[length] = what;
    watch->log[length + 1] = (char)('0' + stored_elements(watch->fixture));
}

static void before(void *context, int64_t index, const spill_request_t *request)
{
    watch_t *watch = context;
    assert_non_null(request);
    assert_int_equal(index, fault_calls(watch->fixture->store) - 1);
    note_event(watch, 'b');
    if (watch->crash_before)
        longjmp(watch->crash, 1);
}

static void after(void *context, int64_t index, const spill_request_t *request)
{
    watch_t *watch = context;
    (void)index;
    assert_non_null(request);
    note_event(watch, 'a');
    if (watch->crash_after)
        longjmp(watch->crash, 1);
}

static void hooks_surround_a_call(void **state)
{
    (void)state;
    fixture_t fixture;
    watch_t watch = {.fixture = &fixture};
    fault_hooks_t hooks = {.context = &watch, .before = before, .after = after};
    open_with(&fixture, &hooks);
    assert_int_equal(append(&fixture), SPILL_OK);
    assert_string_equal(watch.log, "b0a1");
    watch.crash_after = true;
    if (setjmp(watch.crash) == 0) {
        append(&fixture);
        fail();
    }
    assert_string_equal(watch.log, "b0a1b1a2"); /* applied, but the client did not learn it */
    watch.crash_before = true;
    if (setjmp(watch.crash) == 0) {
        append(&fixture);
        fail();
    }
    assert_string_equal(watch.log, "b0a1b1a2b2");
    assert_int_equal(stored_elements(&fixture), 2);
    close_fixture(&fixture);
}

/* ---- other calls than requests --------------------------------------------------------------- */

/* Use catalog, numbers and owners; return 0, or the first error code. */
static spill_code_t use_catalog(fixture_t *fixture)
{
    spill_store_t *store = fixture->store;
    const char *name = fixture->definition.name;
    bson_t document = BSON_INITIALIZER;
    spill_listing_t names = SPILL_LISTING_INIT, owners = SPILL_LISTING_INIT;
    bson_t *found;
    bool done;
    spill_code_t code = store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, name, NULL,
                                                &document, &done, NULL);
    if (code == SPILL_OK)
        code = store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, &found, NULL);
    if (code == SPILL_OK) {
        assert_non_null(found);
        bson_destroy(found);
        code = store->ops->catalog_names(store, SPILL_CATALOG_DEFINITION, &names, NULL);
        if (code == SPILL_OK)
            assert_int_equal(names.count, 1);
    }
    spill_binding_t binding;
    if (code == SPILL_OK)
        code = store->ops->bind(store, &fixture->definition, &binding, NULL);
    spill_list_query_t query = {.list = SPILL_LIST_OWNERS, .limit = 10};
    if (code == SPILL_OK)
        code = spill_store_list(store, &fixture->definition, &binding, &query, &owners, NULL);
    if (code == SPILL_OK)
        code = store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, name, NULL);
    spill_listing_release(&names);
    spill_listing_release(&owners);
    bson_destroy(&document);
    return code;
}

static void other_calls_fail_too(void **state)
{
    (void)state;
    enum { CALLS = 6 };
    static const fault_t faults[] = {FAULT_FAIL, FAULT_LOST_APPLIED, FAULT_LOST_UNAPPLIED,
                                     FAULT_LOST_DELAYED, FAULT_DUPLICATE};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        for (int64_t at = 0; at <= CALLS; at++) {
            fixture_t fixture;
            open_once(&fixture, at, faults[i]);
            spill_code_t expected = at == CALLS || faults[i] == FAULT_DUPLICATE ? SPILL_OK
                                    : faults[i] == FAULT_FAIL                   ? SPILL_IO
                                                                                : SPILL_UNKNOWN;
            assert_int_equal(use_catalog(&fixture), expected);
            assert_int_equal(fault_pending(fixture.store), 0);
            close_fixture(&fixture);
        }
    }
}

static void faults_have_names(void **state)
{
    (void)state;
    assert_string_equal(fault_name(FAULT_NONE), "NONE");
    assert_string_equal(fault_name(FAULT_LOST_DELAYED), "LOST_DELAYED");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_does_what_it_says),
        cmocka_unit_test(delayed_requests_arrive_in_any_order),
        cmocka_unit_test(hooks_surround_a_call),
        cmocka_unit_test(other_calls_fail_too),
        cmocka_unit_test(faults_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
