/* An interrupted drop leaves nothing for ever: the next drop completes it. */
#include "definition/schema.h"
#include "layout/owner.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PAGES_MAX = 40 };

/* A store, a wrapper that injects faults into it, and an array with owner "ada". */
typedef struct fixture {
    disk_t *disk; /* NULL: a model store */
    spill_store_t *inner;
    spill_store_t *store;
    fault_once_t once;
    spill_array_t *array;
    spill_owner_t owner; /* "ada", opened through `inner` */
    spill_array_t *direct;
    bson_t storage;
    spill_value_t name;
} fixture_t;

static const struct {
    const char *name;
    bool embedded;
    spill_keep_t keep;
} kinds[] = {
    {"model, newest", false, SPILL_KEEP_NEWEST},
    {"model, oldest", false, SPILL_KEEP_OLDEST},
    {"embedded, newest", true, SPILL_KEEP_NEWEST},
    {"embedded, oldest", true, SPILL_KEEP_OLDEST},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error ? error->message : "");
}

static void define(spill_store_t *store, spill_keep_t keep)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 1;
    must(spill_store_define(store, &definition, &error), &error);
}

static void open_fixture(fixture_t *fixture, int kind)
{
    *fixture = (fixture_t){.once = {.at = -1}};
    spill_error_t error;
    if (kinds[kind].embedded) {
        fixture->disk = disk_new();
        fixture->inner = embedded_on_disk(fixture->disk, SPILL_DURABILITY_FSYNC);
    } else {
        fixture->inner = model_store_open();
    }
    define(fixture->inner, kinds[kind].keep);
    fault_hooks_t hooks = fault_once(&fixture->once);
    fault_wrap(fixture->inner, &hooks, &fixture->store);
    must(spill_array_open(fixture->store, "feed", &fixture->array, &error), &error);
    must(spill_array_open(fixture->inner, "feed", &fixture->direct, &error), &error);
    bson_init(&fixture->storage);
    fixture->name = spill_value_from_utf8(&fixture->storage, "ada");
    must(spill_owner_init(&fixture->owner, fixture->direct, &fixture->name, &error), &error);
}

static void close_fixture(fixture_t *fixture)
{
    spill_owner_release(&fixture->owner);
    spill_array_close(fixture->direct);
    spill_array_close(fixture->array);
    spill_store_close(fixture->store, NULL);
    spill_store_close(fixture->inner, NULL);
    disk_free(fixture->disk);
    bson_destroy(&fixture->storage);
}

/* Count the pages of "ada" that hold something. With keep oldest, tombstones do not count. */
static int pages_left(const fixture_t *fixture)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    bool oldest = !spill_schema_of(&fixture->direct->definition)->appends_to_head;
    int left = 0;
    for (int64_t number = 0; number < PAGES_MAX; number++) {
        must(spill_owner_read_state(&fixture->owner, number, &page, NULL), NULL);
        left += page.state.present && (!oldest || page.state.live > 0);
    }
    spill_response_release(&page);
    return left;
}

static bool exists(const fixture_t *fixture)
{
    spill_count_t count;
    must(spill_array_count(fixture->direct, &fixture->name, &count, NULL), NULL);
    return count.exists;
}

static spill_code_t drop(const fixture_t *fixture)
{
    spill_error_t error;
    return spill_array_drop_owner(fixture->array, &fixture->name, &error);
}

/* Drop "ada" with the k-th store call failing. *failed: there was a k-th call. */
static void drop_failing_at(fixture_t *fixture, int64_t k, fault_t fault, bool *failed)
{
    fixture->once.fault = fault;
    fixture->once.at = fault_calls(fixture->store) + k;
    *failed = drop(fixture) != SPILL_OK;
    fixture->once.at = -1;
}

static void next_drop_completes_interrupted_drop(void **state)
{
    (void)state;
    static const fault_t faults[] = {FAULT_FAIL, FAULT_LOST_APPLIED};
    for (int kind = 0; kind < KINDS; kind++) {
        for (size_t i = 0; i < 2; i++) {
            fixture_t fixture;
            bool failed = true, left = false;
            open_fixture(&fixture, kind);
            for (int64_t k = 0; failed; k++) {
                must(embedded_append(fixture.array, "ada", 0, 30, NULL), NULL);
                drop_failing_at(&fixture, k, faults[i], &failed);
                bool there = exists(&fixture);
                bool finishes = !there && pages_left(&fixture) > 0;
                left = left || finishes;
                int64_t most = fault_calls(fixture.store) + pages_left(&fixture) + 12;
                assert_int_equal(drop(&fixture), there || finishes ? SPILL_OK : SPILL_NOT_FOUND);
                /* one search finds all pages */
                assert_in_range(fault_calls(fixture.store), 0, most);
                if (pages_left(&fixture) > 0)
                    fail_msg("%s: call %d: the drop left pages", kinds[kind].name, (int)k);
                assert_int_equal(drop(&fixture), SPILL_NOT_FOUND);
            }
            assert_true(left);
            close_fixture(&fixture);
        }
    }
}

/* Left-over pages may have numbers that a later owner of the name uses, or higher ones. */
static void later_owner_keeps_its_pages(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        fixture_t fixture;
        bool failed = true;
        open_fixture(&fixture, kind);
        for (int64_t k = 0; failed; k++) {
            must(embedded_append(fixture.array, "ada", 0, 12, NULL), NULL);
            drop_failing_at(&fixture, k, FAULT_FAIL, &failed);
            if (exists(&fixture))
                must(drop(&fixture), NULL);
            int64_t later = 1 + k % 6; /* also an owner without pages */
            must(embedded_append(fixture.array, "ada", 100, later, NULL), NULL);
            must(embedded_holds(fixture.array, "ada", 100, later, NULL), NULL);
            must(drop(&fixture), NULL);
            if (pages_left(&fixture) > 0)
                fail_msg("%s: call %d: the drop left pages", kinds[kind].name, (int)k);
        }
        close_fixture(&fixture);
    }
}

typedef struct meanwhile {
    fixture_t *fixture;
    int64_t at;
} meanwhile_t;

/* Create the owner again just before a call of the drop. */
static void create_again(void *context, int64_t index, const spill_request_t *request)
{
    (void)request;
    const meanwhile_t *meanwhile = context;
    if (index == meanwhile->at)
        must(embedded_append(meanwhile->fixture->direct, "ada", 100, 6, NULL), NULL);
}

static void owner_created_during_drop(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        bool met = true;
        for (int64_t k = 1; met; k++) { /* k == 0: before the drop reads the head */
            fixture_t fixture;
            bool failed;
            open_fixture(&fixture, kind);
            must(embedded_append(fixture.array, "ada", 0, 12, NULL), NULL);
            for (int64_t call = 0; exists(&fixture); call++)
                drop_failing_at(&fixture, call, FAULT_FAIL, &failed);
            assert_true(pages_left(&fixture) > 0);
            meanwhile_t meanwhile = {.fixture = &fixture, .at = -1};
            fault_hooks_t hooks = {.context = &meanwhile, .before = create_again};
            spill_store_t *store;
            spill_array_t *array;
            spill_error_t error;
            fault_wrap(fixture.inner, &hooks, &store);
            must(spill_array_open(store, "feed", &array, &error), &error);
            meanwhile.at = fault_calls(store) + k;
            spill_array_drop_owner(array, &fixture.name, &error);
            met = fault_calls(store) > meanwhile.at;
            if (met)
                must(embedded_holds(fixture.array, "ada", 100, 6, NULL), NULL);
            else
                assert_int_equal(pages_left(&fixture), 0);
            spill_array_close(array);
            spill_store_close(store, NULL);
            close_fixture(&fixture);
        }
    }
}

typedef struct between {
    fixture_t *fixture;
    bool dropped;
} between_t;

/* Drop the owner before its head's fields are updated, and create it again right after. */
static void drop_between(void *context, int64_t index, const spill_request_t *request)
{
    (void)index;
    between_t *between = context;
    const fixture_t *fixture = between->fixture;
    if (between->dropped)
        must(embedded_append(fixture->direct, "ada", 100, 1, NULL), NULL);
    between->dropped = request && request->kind == SPILL_REQUEST_UPDATE_FIELDS;
    if (between->dropped)
        must(spill_array_drop_owner(fixture->direct, &fixture->name, NULL), NULL);
}

static void owner_dropped_before_field_update(void **state)
{
    (void)state;
    fixture_t fixture;
    between_t between = {.fixture = &fixture};
    fault_hooks_t hooks = {.context = &between, .before = drop_between};
    spill_store_t *store;
    spill_array_t *array;
    spill_error_t error;
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.update = BCON_NEW("$inc", "{", "hits", BCON_INT64(1), "}");
    open_fixture(&fixture, 1);
    must(embedded_append(fixture.direct, "ada", 0, 8, NULL), NULL);
    fault_wrap(fixture.inner, &hooks, &store);
    must(spill_array_open(store, "feed", &array, &error), &error);
    spill_value_t element = fixture.name;
    must(spill_array_append(array, &fixture.name, &element, 1, &options, NULL, &error), &error);
    must(embedded_holds(fixture.direct, "ada", 100, 1, NULL), NULL);
    spill_array_close(array);
    spill_store_close(store, NULL);
    bson_destroy((bson_t *)options.update);
    close_fixture(&fixture);
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Count the records of owners' arrays, of all definitions. */
static int records_left(disk_t *disk)
{
    int left = 0;
    spill_kv_t *kv = disk_open(disk);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    static const uint8_t first[4] = {0, 0, 0, 1};
    for (iter->ops->seek(iter, first, sizeof first); iter->valid; iter->ops->next(iter))
        left++;
    iter->ops->free(iter);
    kv->ops->close(kv, NULL);
    return left;
}

static void dropped_definition_leaves_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        fixture_t fixture;
        bool failed;
        spill_error_t error;
        open_fixture(&fixture, kind);
        must(embedded_append(fixture.array, "bob", 0, 8, NULL), NULL);
        must(embedded_append(fixture.array, "ada", 0, 8, NULL), NULL);
        for (int64_t call = 0; exists(&fixture); call++)
            drop_failing_at(&fixture, call, FAULT_FAIL, &failed);
        must(spill_store_drop(fixture.inner, "feed", &error), &error);
        assert_int_equal(pages_left(&fixture), 0);
        if (fixture.disk)
            assert_int_equal(records_left(fixture.disk), 0);
        close_fixture(&fixture);
    }
}

/* An array that was opened before its definition was dropped refuses appends. */
static void open_array_of_dropped_definition_refuses(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        fixture_t fixture;
        spill_error_t error;
        open_fixture(&fixture, kind);
        must(embedded_append(fixture.direct, "ada", 0, 8, NULL), NULL);
        must(spill_store_drop(fixture.inner, "feed", &error), &error);
        for (int again = 0; again < 2; again++) {
            assert_int_equal(embedded_append(fixture.direct, "ada", 0, 1, &error), SPILL_NOT_FOUND);
            assert_non_null(strstr(error.message, "\"ada\" of 'feed'"));
            assert_non_null(strstr(error.message, "open the array again"));
            must(embedded_holds(fixture.direct, "ada", 0, 0, NULL), NULL);
            define(fixture.inner, again ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        }
        spill_array_t *array;
        must(spill_array_open(fixture.inner, "feed", &array, &error), &error);
        must(embedded_holds(array, "ada", 0, 0, NULL), NULL);
        must(embedded_append(array, "ada", 50, 8, &error), &error);
        must(embedded_holds(array, "ada", 50, 8, NULL), NULL);
        spill_array_close(array);
        close_fixture(&fixture);
    }
}

/* After a failed write, definition and array are unchanged. */
static void failed_drop_of_definition_changes_nothing(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_error_t error;
    open_fixture(&fixture, 2);
    disk_fail_writes(fixture.disk, 0, 1, SPILL_NO_SPACE);
    assert_int_equal(spill_store_drop(fixture.inner, "feed", &error), SPILL_NO_SPACE);
    must(embedded_append(fixture.direct, "ada", 0, 8, &error), &error);
    must(embedded_holds(fixture.direct, "ada", 0, 8, NULL), NULL);
    must(spill_store_drop(fixture.inner, "feed", &error), &error);
    assert_int_equal(embedded_append(fixture.direct, "ada", 0, 1, &error), SPILL_NOT_FOUND);
    close_fixture(&fixture);
}

/*
 * An owner that is created after the last check prevents the drop of its definition: it is dropped,
 * too.
 */
static void create_before_retiring(void *context, int64_t index, const spill_request_t *request)
{
    meanwhile_t *meanwhile = context;
    if (!request && index == meanwhile->at)
        must(embedded_append(meanwhile->fixture->direct, "ada", 100, 6, NULL), NULL);
}

static void owner_created_during_drop_of_definition(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        bool met = true;
        for (int64_t k = 2; met; k++) { /* earlier calls open the array */
            fixture_t fixture;
            spill_error_t error;
            open_fixture(&fixture, kind);
            meanwhile_t meanwhile = {.fixture = &fixture, .at = k};
            fault_hooks_t hooks = {.context = &meanwhile, .before = create_before_retiring};
            spill_store_t *store;
            fault_wrap(fixture.inner, &hooks, &store);
            must(spill_store_drop(store, "feed", &error), &error);
            met = fault_calls(store) > k;
            assert_int_equal(pages_left(&fixture), 0);
            assert_false(exists(&fixture));
            assert_int_equal(embedded_append(fixture.direct, "ada", 0, 1, &error), SPILL_NOT_FOUND);
            if (fixture.disk)
                assert_int_equal(records_left(fixture.disk), 0);
            spill_store_close(store, NULL);
            close_fixture(&fixture);
        }
    }
}

/* Drop the owner at the first element that an export visits, and create it again. */
typedef struct again {
    fixture_t *fixture;
    int64_t shown;
} again_t;

static bool drop_and_append_again(void *context, const spill_value_t *owner,
                                  const spill_element_t *element)
{
    again_t *again = context;
    (void)owner;
    /* no element of the new incarnation, none twice */
    assert_int_equal(element->seq, again->shown);
    if (again->shown == 0) {
        must(drop(again->fixture), NULL);
        must(embedded_append(again->fixture->direct, "ada", 100, 40, NULL), NULL);
    }
    again->shown++;
    return true;
}

static void export_ends_if_owner_is_created_again(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        fixture_t fixture;
        open_fixture(&fixture, kind);
        must(embedded_append(fixture.array, "ada", 0, 30, NULL), NULL);
        again_t again = {.fixture = &fixture};
        spill_error_t error;
        must(spill_array_export(fixture.direct, &fixture.name, drop_and_append_again, &again,
                                &error),
             &error);
        assert_in_range(again.shown, 1, 29);
        close_fixture(&fixture);
    }
}

/*
 * Another client has put the second page of a spill, but not the first one, or the first was
 * refused.
 */
static void verify_accepts_unfinished_spill_of_other_client(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, 0);
    must(embedded_append(fixture.array, "ada", 0, 10, NULL), NULL);
    spill_response_t response = SPILL_RESPONSE_INIT;
    must(spill_owner_read_state(&fixture.owner, SPILL_HEAD, &response, NULL), NULL);
    const spill_state_t *head = &response.state;
    spill_request_t put =
        spill_owner_request(&fixture.owner, SPILL_REQUEST_PUT_PAGE, head->pages + 1);
    spill_run_t run = {0};
    spill_run_add(&run, head->first + 1, &fixture.name);
    put.incarnation = head->incarnation;
    put.put_page.source_rev = head->rev;
    put.put_page.first = head->first + 1;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    spill_response_t answer = SPILL_RESPONSE_INIT;
    spill_verify_summary_t summary = {0};
    must(spill_owner_call(&fixture.owner, &put, &answer, NULL), NULL);
    assert_int_equal(answer.outcome, SPILL_DONE);
    must(spill_array_verify(fixture.direct, NULL, NULL, NULL, &summary, NULL), NULL);
    assert_int_equal(summary.findings, 0);

    put.page++; /* a copy of a head that no client has read since */
    put.put_page.source_rev = head->rev + 1000;
    must(spill_owner_call(&fixture.owner, &put, &answer, NULL), NULL);
    must(spill_array_verify(fixture.direct, NULL, NULL, NULL, &summary, NULL), NULL);
    assert_int_equal(summary.findings, 1);
    spill_run_release(&run);
    spill_response_release(&answer);
    spill_response_release(&response);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(next_drop_completes_interrupted_drop),
        cmocka_unit_test(later_owner_keeps_its_pages),
        cmocka_unit_test(owner_created_during_drop),
        cmocka_unit_test(dropped_definition_leaves_nothing),
        cmocka_unit_test(open_array_of_dropped_definition_refuses),
        cmocka_unit_test(failed_drop_of_definition_changes_nothing),
        cmocka_unit_test(owner_created_during_drop_of_definition),
        cmocka_unit_test(owner_dropped_before_field_update),
        cmocka_unit_test(export_ends_if_owner_is_created_again),
        cmocka_unit_test(verify_accepts_unfinished_spill_of_other_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
