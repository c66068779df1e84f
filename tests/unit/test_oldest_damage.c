/*
 * Keep oldest: the head counts pages that do not exist. Every operation ends at once, and none
 * reports a conflict, because no other client writes.
 */
#include "layout/owner.h"
#include "store/store.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 12, TRIES_FEW = 10 };

typedef struct stage {
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
} stage_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* Let the head count `more` pages that do not exist. */
static void raise_pages(stage_t *stage, int64_t more)
{
    spill_owner_t own;
    spill_error_t error;
    spill_response_t head = SPILL_RESPONSE_INIT;
    bool done;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, SPILL_HEAD, &head, &error), &error);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
    request.incarnation = head.state.incarnation;
    request.advance.pages = head.state.pages + more;
    request.advance.total = head.state.total;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_true(done);
    spill_response_release(&head);
    spill_owner_release(&own);
}

static spill_code_t append_elements(stage_t *stage, int64_t first, size_t count,
                                    spill_error_t *error)
{
    bson_t documents[ELEMENTS];
    spill_value_t elements[ELEMENTS] = {0};
    for (size_t i = 0; i < count; i++) {
        bson_init(&documents[i]);
        BSON_APPEND_INT64(&documents[i], "n", first + (int64_t)i);
        elements[i] = spill_value_from_document(&documents[i]);
    }
    spill_code_t code =
        spill_array_append(stage->array, &stage->owner, elements, count, NULL, NULL, error);
    for (size_t i = 0; i < count; i++)
        bson_destroy(&documents[i]);
    return code;
}

/* Create an owner with 12 elements and `more` pages that do not exist. */
static void begin(stage_t *stage, int64_t elements, int64_t more)
{
    spill_definition_t definition;
    spill_error_t error;
    *stage = (stage_t){.storage = BSON_INITIALIZER};
    must(spill_store_open("memory:", NULL, &stage->store, &error), &error);
    must(spill_definition_preset(&definition, "feed", "feed", &error), &error);
    definition.bounds.threshold = 4;
    definition.bounds.page_capacity = 3;
    must(spill_store_define(stage->store, &definition, &error), &error);
    must(spill_array_open(stage->store, "feed", &stage->array, &error), &error);
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    must(append_elements(stage, 0, (size_t)elements, &error), &error);
    raise_pages(stage, more);
    /* Continue as another client, which has not cached the last page. */
    spill_array_close(stage->array);
    must(spill_array_open(stage->store, "feed", &stage->array, &error), &error);
}

static void end(stage_t *stage)
{
    spill_error_t error;
    spill_array_close(stage->array);
    must(spill_store_close(stage->store, &error), &error);
    bson_destroy(&stage->storage);
}

/* ---- operations ------------------------------------------------------------------------------ */

static spill_code_t append_one(stage_t *stage, spill_error_t *error)
{
    return append_elements(stage, ELEMENTS, 1, error);
}

static spill_code_t append_many(stage_t *stage, spill_error_t *error)
{
    return append_elements(stage, ELEMENTS, 9, error);
}

static spill_code_t remove_last(stage_t *stage, spill_error_t *error)
{
    return spill_array_remove(stage->array, &stage->owner, ELEMENTS - 1, error);
}

static spill_code_t trim_some(stage_t *stage, spill_error_t *error)
{
    return spill_array_trim_keep(stage->array, &stage->owner, 2, NULL, error);
}

static spill_code_t count(stage_t *stage, spill_error_t *error)
{
    spill_count_t result;
    return spill_array_count(stage->array, &stage->owner, &result, error);
}

static spill_code_t drop(stage_t *stage, spill_error_t *error)
{
    return spill_array_drop_owner(stage->array, &stage->owner, error);
}

static spill_code_t repair(stage_t *stage, spill_error_t *error)
{
    spill_repair_summary_t summary;
    return spill_array_repair(stage->array, &stage->owner, false, NULL, NULL, &summary, error);
}

typedef struct operation {
    const char *name;
    spill_code_t (*run)(stage_t *stage, spill_error_t *error);
    bool needs_tail; /* needs the last page or the one before it */
} operation_t;

static const operation_t operations[] = {
    {"append", append_one, true},   {"append nine", append_many, true},
    {"remove", remove_last, false}, {"trim", trim_some, false},
    {"count", count, false},        {"drop", drop, true},
    {"repair", repair, false},
};

/*
 * `pages` is how many pages the head counts too many. One missing page may be in creation by
 * another client.
 */
static void assert_damage_reported(const operation_t *operation, int64_t elements, int64_t pages)
{
    stage_t stage;
    spill_error_t error = {.message = ""};
    begin(&stage, elements, pages);
    int64_t retries = stage.store->counts.retries;
    spill_code_t code = operation->run(&stage, &error);
    if (stage.store->counts.retries - retries > TRIES_FEW || code == SPILL_CONFLICT)
        fail_msg("%s, %d elements, %d pages more: %d retries, %s", operation->name, (int)elements,
                 (int)pages, (int)(stage.store->counts.retries - retries), error.message);
    if (operation->needs_tail && pages == 1)
        must(code, &error);
    if (operation->needs_tail && pages > 1) {
        assert_int_equal(code, SPILL_CORRUPT);
        assert_non_null(strstr(error.message, "page "));
        assert_non_null(strstr(error.message, "is missing"));
    }
    end(&stage);
}

static void missing_pages_are_damage(void **state)
{
    (void)state;
    static const int64_t pages[] = {1, 2, 3, 100};
    static const int64_t elements[] = {2, 5, ELEMENTS};
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
        for (size_t p = 0; p < sizeof pages / sizeof *pages; p++)
            for (size_t e = 0; e < sizeof elements / sizeof *elements; e++)
                assert_damage_reported(&operations[i], elements[e], pages[p]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(missing_pages_are_damage)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
