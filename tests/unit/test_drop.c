/* A drop that dies leaves nothing behind for ever: the next one frees it. */
#include "definition/schema.h"
#include "layout/outlier.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PAGES_MAX = 40 };

/* A store below one that can be made to fail, and an array of it with owner "ada". */
typedef struct fixture {
    disk_t *disk; /* NULL: a model store */
    spill_store_t *inner;
    spill_store_t *store;
    fault_once_t once;
    spill_array_t *array;
    spill_owner_t owner; /* "ada", of `inner` */
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

/* Pages of "ada" that hold something: with keep oldest tombstones do not count. */
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

/* Drop "ada", whose k-th store call fails, for every k; *failed: one did. */
static void drop_dying_at(fixture_t *fixture, int64_t k, fault_t fault, bool *failed)
{
    fixture->once.fault = fault;
    fixture->once.at = fault_calls(fixture->store) + k;
    *failed = drop(fixture) != SPILL_OK;
    fixture->once.at = -1;
}

static void the_next_drop_finishes_one_that_died(void **state)
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
                drop_dying_at(&fixture, k, faults[i], &failed);
                bool there = exists(&fixture);
                bool finishes = !there && pages_left(&fixture) > 0;
                left = left || finishes;
                int64_t most = fault_calls(fixture.store) + pages_left(&fixture) + 12;
                assert_int_equal(drop(&fixture), there || finishes ? SPILL_OK : SPILL_NOT_FOUND);
                assert_in_range(fault_calls(fixture.store), 0, most); /* one look for all */
                if (pages_left(&fixture) > 0)
                    fail_msg("%s: call %d: pages are left", kinds[kind].name, (int)k);
                assert_int_equal(drop(&fixture), SPILL_NOT_FOUND);
            }
            assert_true(left);
            close_fixture(&fixture);
        }
    }
}

/* What is left may lie among the pages of a later owner of the name, and beyond them. */
static void a_later_owner_keeps_its_pages(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        fixture_t fixture;
        bool failed = true;
        open_fixture(&fixture, kind);
        for (int64_t k = 0; failed; k++) {
            must(embedded_append(fixture.array, "ada", 0, 12, NULL), NULL);
            drop_dying_at(&fixture, k, FAULT_FAIL, &failed);
            if (exists(&fixture))
                must(drop(&fixture), NULL);
            int64_t later = 1 + k % 6; /* also one without pages */
            must(embedded_append(fixture.array, "ada", 100, later, NULL), NULL);
            must(embedded_holds(fixture.array, "ada", 100, later, NULL), NULL);
            must(drop(&fixture), NULL);
            if (pages_left(&fixture) > 0)
                fail_msg("%s: call %d: pages are left", kinds[kind].name, (int)k);
        }
        close_fixture(&fixture);
    }
}

typedef struct meanwhile {
    fixture_t *fixture;
    int64_t at;
} meanwhile_t;

/* Just before a call of the drop the owner is made anew. */
static void make_anew(void *context, int64_t index, const spill_request_t *request)
{
    (void)request;
    const meanwhile_t *meanwhile = context;
    if (index == meanwhile->at)
        must(embedded_append(meanwhile->fixture->direct, "ada", 100, 6, NULL), NULL);
}

static void an_owner_made_while_a_drop_is_finished(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        bool met = true;
        for (int64_t k = 1; met; k++) { /* k == 0: before the drop looks for a head */
            fixture_t fixture;
            bool failed;
            open_fixture(&fixture, kind);
            must(embedded_append(fixture.array, "ada", 0, 12, NULL), NULL);
            for (int64_t call = 0; exists(&fixture); call++)
                drop_dying_at(&fixture, call, FAULT_FAIL, &failed);
            assert_true(pages_left(&fixture) > 0);
            meanwhile_t meanwhile = {.fixture = &fixture, .at = -1};
            fault_hooks_t hooks = {.context = &meanwhile, .before = make_anew};
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

/* The owner is dropped before its head's fields are updated, and made anew right after. */
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

static void an_append_whose_owner_is_dropped_before_its_update(void **state)
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

/* Records of owners' arrays: of those of all definitions. */
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

static void a_definition_goes_with_all_that_is_left(void **state)
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
            drop_dying_at(&fixture, call, FAULT_FAIL, &failed);
        must(spill_store_drop(fixture.inner, "feed", &error), &error);
        assert_int_equal(pages_left(&fixture), 0);
        if (fixture.disk)
            assert_int_equal(records_left(fixture.disk), 0);
        close_fixture(&fixture);
    }
}

/* An array that was opened before its definition was dropped takes no appends any more. */
static void an_array_outlives_its_definition(void **state)
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

/* A write that fails leaves definition and array as they were. */
static void a_definition_that_could_not_be_dropped(void **state)
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

/* An owner that is made after the last look keeps the definition from going: it is looked again. */
static void make_before_retiring(void *context, int64_t index, const spill_request_t *request)
{
    meanwhile_t *meanwhile = context;
    if (!request && index == meanwhile->at)
        must(embedded_append(meanwhile->fixture->direct, "ada", 100, 6, NULL), NULL);
}

static void an_owner_made_while_its_definition_is_dropped(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        bool met = true;
        for (int64_t k = 2; met; k++) { /* before it the array is opened */
            fixture_t fixture;
            spill_error_t error;
            open_fixture(&fixture, kind);
            meanwhile_t meanwhile = {.fixture = &fixture, .at = k};
            fault_hooks_t hooks = {.context = &meanwhile, .before = make_before_retiring};
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

/* Drops the owner at the first element that an export shows, and creates it again. */
typedef struct again {
    fixture_t *fixture;
    int64_t shown;
} again_t;

static bool drop_and_append_again(void *context, const spill_value_t *owner,
                                  const spill_element_t *element)
{
    again_t *again = context;
    (void)owner;
    assert_int_equal(element->seq, again->shown); /* none of the new incarnation, none twice */
    if (again->shown == 0) {
        must(drop(again->fixture), NULL);
        must(embedded_append(again->fixture->direct, "ada", 100, 40, NULL), NULL);
    }
    again->shown++;
    return true;
}

static void an_export_ends_if_its_owner_is_dropped_and_created_again(void **state)
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

/* The second page of a spill, put while the first one was not put yet, or was refused. */
static void verify_accepts_a_spill_that_another_client_has_begun(void **state)
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

    put.page++; /* a copy of a head that nobody has seen */
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
        cmocka_unit_test(the_next_drop_finishes_one_that_died),
        cmocka_unit_test(a_later_owner_keeps_its_pages),
        cmocka_unit_test(an_owner_made_while_a_drop_is_finished),
        cmocka_unit_test(a_definition_goes_with_all_that_is_left),
        cmocka_unit_test(an_array_outlives_its_definition),
        cmocka_unit_test(a_definition_that_could_not_be_dropped),
        cmocka_unit_test(an_owner_made_while_its_definition_is_dropped),
        cmocka_unit_test(an_append_whose_owner_is_dropped_before_its_update),
        cmocka_unit_test(an_export_ends_if_its_owner_is_dropped_and_created_again),
        cmocka_unit_test(verify_accepts_a_spill_that_another_client_has_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
