/*
 * Consolidations of a few small collections in memory: other programs write between any two calls,
 * each call fails with and without its effect, and each step is undone.
 */
#include "model/consolidate.h"
#include "support/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the whole consolidation ----------------------------------------------------------------- */

static void test_all_steps(void **state)
{
    (void)state;
    static const char *const rules[] = {"compound", "keep"};
    for (size_t i = 0; i < 2; i++) {
        world_t world;
        world_open(&world, rules[i]);
        assert_done(&world, spill_consolidate_copy);
        assert_joint(&world, false);
        assert_int_equal(world.result.documents, 12);
        assert_int_equal(world.result.inserted, 12);
        picture_t before = picture_of(&world, false);
        assert_done(&world, spill_consolidate_copy); /* nothing is left to do */
        assert_int_equal(world.result.passes, 1);
        assert_done(&world, spill_consolidate_cut_over);
        picture_t cut = picture_of(&world, true);
        assert_same_picture(&before, &cut, 4);
        assert_false(world_has(&world, "m_a"));
        assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_REFUSED);
        assert_done(&world, spill_consolidate_finish);
        assert_false(world_has(&world, "spillway_kept_m_a"));
        assert_int_equal(memory_admin_count(world.memory, "messages"), 12);
        assert_done(&world, spill_consolidate_finish);
        assert_true(world.result.done);
        assert_int_equal(world_run(&world, spill_consolidate_undo), SPILL_REFUSED);
        picture_release(&before);
        picture_release(&cut);
        world_close(&world);
    }
}

static void test_transforms(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_done(&world, spill_consolidate_copy);
    char *text = memory_admin_text(world.memory, "messages");
    assert_non_null(strstr(text, "{ \"_id\" : { \"room\" : 3, \"id\" : { \"x\" : 1 } }, \"room\" : "
                                 "3, \"of\" : [ 1, 2 ] }"));
    assert_non_null(strstr(text, "{ \"_id\" : { \"room\" : \"a\", \"id\" : 1 }, \"room\" : \"a\", "
                                 "\"text\" : \"a1\", \"at\" : 1 }"));
    bson_free(text);
    world_close(&world);
}

/* ---- indexes ------------------------------------------------------------------------------- */

static void set_indexes(world_t *world, const char *collection, const char *json)
{
    foreign_collection_t *found = memory_admin_find(world->memory, collection);
    bson_error_t error;
    bson_destroy(found->indexes);
    found->indexes = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(found->indexes);
}

static void set_all_indexes(world_t *world, const char *json)
{
    set_indexes(world, "m_a", json);
    set_indexes(world, "m_b", json);
    set_indexes(world, "m_c", json);
}

static void test_indexes_are_merged(void **state)
{
    (void)state;
    static const struct {
        const char *old, *merged;
    } cases[] = {
        {"{\"key\": {\"at\": -1}, \"name\": \"at_-1\"}",
         "{ \"key\" : { \"room\" : 1, \"at\" : -1 }, \"name\" : \"room_1_at_-1_2\" }"},
        {"{\"key\": {\"x\": 1, \"y\": 1}, \"name\": \"xy\", \"v\": 2, \"unique\": true}",
         "{ \"room\" : 1, \"x\" : 1, \"y\" : 1 }, \"name\" : \"room_1_xy\", \"unique\" : true }"},
        {"{\"key\": {\"x\": 1}, \"name\": \"x\", \"sparse\": true}",
         "{ \"room\" : 1, \"x\" : 1 }, \"name\" : \"room_1_x\" }"},
        {"{\"key\": {\"x\": 1}, \"name\": \"x\", \"sparse\": true, \"unique\": true}",
         "\"unique\" : true, \"partialFilterExpression\" : { \"x\" : { \"$exists\" : true } } }"},
        {"{\"key\": {\"x\": 1}, \"name\": \"old\", \"expireAfterSeconds\": 60}",
         "{ \"key\" : { \"x\" : 1 }, \"name\" : \"old\", \"expireAfterSeconds\" : 60 }"},
        {"{\"key\": {\"_id\": 1}, \"name\": \"_id_\"}",
         "{ \"room\" : 1, \"_id\" : 1 }, \"name\" : \"room_1__id_1\" }"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world_t world;
        char text[256];
        world_open(&world, "compound");
        snprintf(text, sizeof text, "[%s]", cases[i].old);
        set_all_indexes(&world, text);
        assert_says(&world, cases[i].merged);
        assert_says(&world, "\"refused\" : [  ]");
        world_close(&world);
    }
}

static void test_indexes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *old, *text;
        bool not_all;
    } cases[] = {
        {"{\"key\": {\"_fts\": \"text\"}, \"name\": \"i\"}", "is of the kind text", false},
        {"{\"key\": {\"p\": \"2dsphere\"}, \"name\": \"i\"}", "of the kind 2dsphere", false},
        {"{\"key\": {\"p\": \"hashed\"}, \"name\": \"i\"}", "of the kind hashed", false},
        {"{\"key\": {\"p.$**\": 1}, \"name\": \"i\"}", "of the kind wildcard", false},
        {"{\"key\": {\"x\": 1}, \"name\": \"i\", \"unique\": true}",
         "'m_a' (1 of 3 collections): it is unique", true},
        {"{\"key\": {\"x\": 1}, \"name\": \"i\", \"expireAfterSeconds\": 5}",
         "its documents expire, and not all", true},
        {"{\"key\": {\"x\": 1, \"y\": 1}, \"name\": \"i\", \"unique\": true, "
         "\"sparse\": true}",
         "unique and sparse, of several fields", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world_t world;
        char text[256];
        world_open(&world, "compound");
        snprintf(text, sizeof text, "[%s]", cases[i].old);
        if (cases[i].not_all)
            set_indexes(&world, "m_a", text);
        else
            set_all_indexes(&world, text);
        assert_says(&world, cases[i].text);
        assert_refused(&world, spill_consolidate_copy, cases[i].text);
        assert_false(world_has(&world, "messages"));
        bson_destroy(world.group.leave_out); /* that is "leaveOut" in the plan */
        world.group.leave_out = BCON_NEW("0", "i");
        assert_done(&world, spill_consolidate_copy);
        world_close(&world);
    }
}

/* ---- other programs write between any two calls ---------------------------------------------- */

typedef struct writers {
    int64_t until; /* calls */
    unsigned seed;
} writers_t;

static void write_something(memory_admin_t *memory)
{
    writers_t *writers = memory->context;
    static const char *const names[] = {"m_a", "m_b", "m_c"};
    if (memory->calls >= writers->until)
        return;
    char text[96];
    const char *name = names[rand_r(&writers->seed) % 3];
    int id = rand_r(&writers->seed) % 12;
    if (!memory_admin_find(memory, name)) /* renamed: the application gets an error */
        return;
    if (rand_r(&writers->seed) % 3 == 0) {
        snprintf(text, sizeof text, "%d", id);
        memory_admin_delete(memory, name, text);
    } else {
        snprintf(text, sizeof text, "{\"_id\": %d, \"text\": \"new %lld\"}", id,
                 (long long)memory->calls);
        memory_admin_put(memory, name, text);
    }
}

/*
 * Whatever other programs write, and however late they stop, the joint collection has it after the
 * cut-over.
 */
static void test_writers(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= (unsigned)effort(60, 15, 6); seed++) {
        world_t world;
        writers_t writers = {.until = 20 + 5 * (int64_t)seed, .seed = seed};
        world_open(&world, "compound");
        world.options.threads = 1 + (int)seed % 3;
        world.memory->before = write_something;
        world.memory->context = &writers;
        for (int i = 0; i < 50; i++) {
            assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
            if (world.result.changing == 0)
                break;
        }
        assert_int_equal(world.result.changing, 0);
        writers.until = world.memory->calls + seed % 30; /* continues into the cut-over */
        spill_code_t code = world_run(&world, spill_consolidate_cut_over);
        for (int i = 0; i < 5 && code == SPILL_REFUSED; i++)
            code = world_run(&world, spill_consolidate_cut_over);
        assert_int_equal(code, SPILL_OK);
        assert_joint(&world, true);
        world_close(&world);
    }
}

static void world_open_with_writers(world_t *world, writers_t *writers, unsigned seed)
{
    *writers = (writers_t){.until = INT64_MAX, .seed = seed};
    world_open(world, "compound");
    world->memory->before = write_something;
    world->memory->context = writers;
}

/*
 * The writers write before, during and after each step, so that no pass ever finds the collections
 * equal.
 */
static void test_writers_never_stop(void **state)
{
    (void)state;
    for (unsigned seed = 1; seed <= (unsigned)effort(60, 15, 6); seed++) {
        world_t world;
        writers_t writers;
        world_open_with_writers(&world, &writers, seed);
        world.options.passes = 2;
        assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
        assert_done(&world, spill_consolidate_cut_over);
        assert_joint(&world, true);
        assert_false(world_has(&world, "m_a"));
        world_close(&world);
    }
}

/* Kill the run at each call while others write, and start it again, or undo it. */
static void test_killed_while_others_write(void **state)
{
    (void)state;
    static const char *const steps[] = {"o", "u", "uco"};
    for (int64_t k = 1, ended = 0; ended < 3; k += effort(1, 3, 9))
        for (size_t i = 0; i < 3; i++) {
            world_t world;
            writers_t writers;
            world_open_with_writers(&world, &writers, (unsigned)k);
            world.options.throttle.chunk_first = world.options.throttle.chunk_max = 4;
            world.options.passes = 2;
            assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
            world.memory->fail_at = world.memory->calls + k;
            world.memory->fail_applied = k % 2;
            world.memory->fail_for_good = k % 4 > 1;
            ended += world_run(&world, spill_consolidate_cut_over) == SPILL_OK;
            world.memory->fail_at = 0;
            spill_code_t code = SPILL_OK;
            for (const char *step = steps[i]; *step && code == SPILL_OK; step++)
                code = world_run(&world, *step == 'u'   ? spill_consolidate_undo
                                         : *step == 'c' ? spill_consolidate_copy
                                                        : spill_consolidate_cut_over);
            if (code != SPILL_OK)
                fail_msg("after call %lld: %s", (long long)k, world.error.message);
            if (strchr(steps[i], 'o'))
                assert_joint(&world, true);
            else
                assert_false(world_has(&world, "messages"));
            assert_int_equal(world_has(&world, "m_a"), strchr(steps[i], 'o') == NULL);
            world_close(&world);
        }
}

/* A collection that is not equal in time gets its name back, also after Ctrl-C. */
static void test_pause_is_bounded(void **state)
{
    (void)state;
    world_t world;
    writers_t writers;
    call_clock_t clock = {.call_us = 1000, .aside_us = 600000};
    world_open_with_writers(&world, &writers, 1);
    assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
    set_call_clock(&world, &clock);
    assert_refused(&world, spill_consolidate_cut_over,
                   "'m_a' was put aside, could not be compared");
    assert_true(world_has(&world, "m_a"));
    assert_false(world_has(&world, "spillway_kept_m_a"));
    world.options.throttle.clock = (spill_clock_t){0};
    assert_done(&world, spill_consolidate_cut_over);
    assert_joint(&world, true);
    world_close(&world);
}

static bool stop_once_aside(void *context)
{
    return world_has(context, "spillway_kept_m_b");
}

static void test_ctrl_c_restores_the_name(void **state)
{
    (void)state;
    world_t world;
    writers_t writers;
    world_open_with_writers(&world, &writers, 2);
    assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
    world.options.throttle.stop = stop_once_aside;
    world.options.throttle.context = &world;
    assert_int_equal(world_run(&world, spill_consolidate_cut_over), SPILL_CANCELLED);
    assert_true(world_has(&world, "spillway_kept_m_a"));
    assert_true(world_has(&world, "m_b"));
    world.options.throttle.stop = NULL;
    assert_done(&world, spill_consolidate_cut_over);
    assert_joint(&world, true);
    world_close(&world);
}

/* The estimated pauses of passes that changed documents. */
typedef struct estimates {
    int64_t longest_us;
    int64_t sum_us;
} estimates_t;

static void add_estimate(void *context, const spill_consolidate_moved_t *moved)
{
    estimates_t *estimates = context;
    int64_t pause_us = moved->pause_us;
    if (moved->equal)
        return;
    estimates->sum_us += pause_us;
    if (pause_us > estimates->longest_us)
        estimates->longest_us = pause_us;
}

/* Each collection has its own pause; their total does not matter. */
static void test_pause_is_per_collection(void **state)
{
    (void)state;
    world_t world;
    call_clock_t clock = {.call_us = 20000};
    estimates_t estimates = {0};
    world_open(&world, "compound");
    world.options.passes = 1;
    assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
    memory_admin_put(world.memory, "m_a", "{\"_id\": 7, \"text\": \"since\"}");
    memory_admin_put(world.memory, "m_b", "{\"_id\": 7, \"text\": \"since\"}");
    memory_admin_put(world.memory, "m_c", "{\"_id\": 7, \"text\": \"since\"}");
    set_call_clock(&world, &clock);
    world.options.moved = add_estimate;
    world.options.context = &estimates;
    assert_done(&world, spill_consolidate_cut_over);
    assert_true(estimates.longest_us > 0 && estimates.longest_us <= 1000000);
    assert_true(estimates.sum_us > 1000000);
    assert_joint(&world, true);
    world_close(&world);
}

/* If its estimated pause is too long, no collection is put aside. */
static void test_fast_writers_are_refused(void **state)
{
    (void)state;
    world_t world;
    writers_t writers;
    call_clock_t clock = {.call_us = 60000};
    estimates_t estimates = {0};
    world_open_with_writers(&world, &writers, 3);
    assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
    set_call_clock(&world, &clock);
    world.options.passes = 3;
    world.options.moved = add_estimate;
    world.options.context = &estimates;
    assert_refused(&world, spill_consolidate_cut_over, "too fast");
    assert_true(estimates.longest_us > 1000000);
    assert_true(world_has(&world, "m_a"));
    writers.until = 0;
    assert_done(&world, spill_consolidate_cut_over);
    assert_joint(&world, true);
    world_close(&world);
}

/* Documents exchange values of a unique field during the copy. */
static void test_unique_values_exchanged(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    foreign_collection_t *a = memory_admin_find(world.memory, "m_a");
    bson_destroy(a->indexes);
    a->indexes = BCON_NEW("0", "{", "key", "{", "text", BCON_INT32(1), "}", "name", "text_1",
                          "unique", BCON_BOOL(true), "}");
    foreign_collection_t *b = memory_admin_find(world.memory, "m_b");
    foreign_collection_t *c = memory_admin_find(world.memory, "m_c");
    memory_admin_delete(world.memory, "m_c", "\"word\"");
    bson_destroy(b->indexes);
    bson_destroy(c->indexes);
    b->indexes = bson_copy(a->indexes);
    c->indexes = bson_copy(a->indexes);
    assert_done(&world, spill_consolidate_copy);
    memory_admin_put(world.memory, "m_a", "{\"_id\": 9, \"text\": \"aside\"}");
    memory_admin_delete(world.memory, "m_a", "0");
    memory_admin_delete(world.memory, "m_a", "1");
    assert_true(memory_admin_put(world.memory, "m_a", "{\"_id\": 0, \"text\": \"a1\"}"));
    assert_true(memory_admin_put(world.memory, "m_a", "{\"_id\": 1, \"text\": \"a0\"}"));
    assert_true(memory_admin_put(world.memory, "m_a", "{\"_id\": 2, \"text\": \"other\"}"));
    assert_true(memory_admin_put(world.memory, "m_a", "{\"_id\": -1, \"text\": \"a2\"}"));
    assert_done(&world, spill_consolidate_copy);
    assert_joint(&world, false);
    world_close(&world);
}

/* ---- each call fails once -------------------------------------------------------------------- */

/*
 * Run `begun` without failure; then run `steps` with call k failing, and `again` until it succeeds.
 * The result must equal that of a run without failures.
 */
static void fail_each_call_by(const char *ids, const char *begun, const char *steps,
                              const char *again, bool views, int threads)
{
    world_t plain;
    world_open(&plain, ids);
    plain.options.views = views;
    assert_int_equal(world_run_to(&plain, begun), SPILL_OK);
    assert_int_equal(world_run_to(&plain, steps), SPILL_OK);
    picture_t expected = picture_of(&plain, false), expected_kept = picture_of(&plain, true);
    int failures = 0;
    for (int kind = 0; kind < 4; kind++)
        for (int64_t k = 1;; k += effort(1, 3, 9)) {
            world_t world;
            world_open(&world, ids);
            world.options.views = views;
            world.options.threads = threads;
            assert_int_equal(world_run_to(&world, begun), SPILL_OK);
            world.memory->fail_applied = kind & 1;
            world.memory->fail_for_good = kind & 2;
            world.memory->fail_at = world.memory->calls + k;
            spill_code_t code = world_run_to(&world, steps);
            bool failed = world.memory->calls >= world.memory->fail_at;
            world.memory->fail_at = 0;
            if (code != SPILL_OK) {
                assert_true(failed);
                failures++;
                code = world_run_to(&world, again);
            }
            if (code != SPILL_OK)
                fail_msg("after call %lld of '%s': %s", (long long)k, steps, world.error.message);
            picture_t got = picture_of(&world, false), got_kept = picture_of(&world, true);
            assert_same_picture(&expected, &got, 4);
            assert_same_picture(&expected_kept, &got_kept, 4);
            for (int i = 0; i < FOREIGN_COLLECTIONS; i++)
                if (world.memory->collections[i].name)
                    assert_true(world_has(&plain, world.memory->collections[i].name));
            picture_release(&got);
            picture_release(&got_kept);
            world_close(&world);
            if (!failed)
                break;
        }
    assert_true(failures > 5);
    picture_release(&expected);
    picture_release(&expected_kept);
    world_close(&plain);
}

static void fail_each_call(const char *begun, const char *steps, const char *again, bool views)
{
    fail_each_call_by("compound", begun, steps, again, views, 1);
    fail_each_call_by("keep", begun, steps, again, views, 1);
}

static void test_fault_in_copy(void **state)
{
    (void)state;
    fail_each_call("", "c", "c", false);
}

/* Which call fails depends on the threads' order; the result does not. */
static void test_fault_in_parallel_passes(void **state)
{
    (void)state;
    fail_each_call_by("compound", "", "c", "c", false, 4);
    fail_each_call_by("keep", "", "c", "c", false, 4);
    fail_each_call_by("compound", "co", "u", "u", false, 4);
}

static void test_fault_in_cut_over(void **state)
{
    (void)state;
    fail_each_call("c", "o", "o", false);
    fail_each_call("c", "o", "o", true);
}

static void test_fault_in_finish(void **state)
{
    (void)state;
    fail_each_call("c", "f", "f", true);
    fail_each_call("co", "f", "f", false);
}

static void test_fault_in_undo(void **state)
{
    (void)state;
    fail_each_call("c", "u", "u", false);
    fail_each_call("co", "u", "u", false);
    fail_each_call("co", "u", "u", true);
}

/* A consolidation that was interrupted anywhere can be undone completely. */
static void test_undo_from_anywhere(void **state)
{
    (void)state;
    world_t plain;
    world_open(&plain, "compound");
    picture_t expected = picture_of(&plain, false);
    for (int64_t k = 1;; k++) {
        world_t world;
        world_open(&world, "compound");
        world.options.views = true;
        world.memory->fail_at = k;
        world.memory->fail_applied = k % 2;
        spill_code_t code = world_run_to(&world, "co");
        world.memory->fail_at = 0;
        assert_int_equal(world_run_to(&world, "u"), SPILL_OK);
        picture_t got = picture_of(&world, false);
        assert_same_picture(&expected, &got, 4);
        assert_false(world_has(&world, "messages"));
        assert_int_equal(world.memory->marks.documents.count, 0);
        picture_release(&got);
        world_close(&world);
        if (code == SPILL_OK)
            break;
    }
    picture_release(&expected);
    world_close(&plain);
}

/* ---- undo ------------------------------------------------------------------------------------ */

static void test_undo_copies_later_documents_back(void **state)
{
    (void)state;
    world_t world;
    bson_t report;
    world_open(&world, "compound");
    world.options.views = true;
    assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
    assert_true(memory_admin_find(world.memory, "m_a")->view);
    memory_admin_delete(world.memory, "messages", "{\"room\": \"a\", \"id\": 1}");
    memory_admin_put(world.memory, "messages",
                     "{\"_id\": {\"room\": \"a\", \"id\": 2}, \"room\": \"a\", \"text\": \"2\"}");
    memory_admin_put(world.memory, "messages", /* with a new _id */
                     "{\"_id\": \"own\", \"room\": \"b\", \"text\": \"new\"}");
    assert_int_equal(spill_consolidate_report_undo(world.admin, &world.group, &world.options,
                                                   &report, &world.error),
                     SPILL_OK);
    char *text = bson_as_relaxed_extended_json(&report, NULL);
    assert_non_null(strstr(text, "\"collection\" : \"m_a\", \"before\" : 5, \"now\" : 4"));
    assert_non_null(strstr(text, "\"collection\" : \"m_b\", \"before\" : 5, \"now\" : 6"));
    bson_free(text);
    bson_destroy(&report);
    assert_int_equal(world_run_to(&world, "u"), SPILL_OK);
    text = memory_admin_text(world.memory, "m_a");
    assert_null(strstr(text, "a1"));
    assert_non_null(strstr(text, "{ \"_id\" : 2, \"text\" : \"2\" }"));
    bson_free(text);
    text = memory_admin_text(world.memory, "m_b");
    assert_non_null(strstr(text, "{ \"_id\" : \"own\", \"text\" : \"new\" }"));
    bson_free(text);
    assert_false(memory_admin_find(world.memory, "m_a")->view);
    assert_false(world_has(&world, "messages"));
    world_close(&world);
}

static void test_undo_refuses_to_lose_documents(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
    memory_admin_put(world.memory, "messages", "{\"_id\": 1, \"room\": \"new room\"}");
    assert_int_equal(world_run(&world, spill_consolidate_undo), SPILL_REFUSED);
    assert_true(world_has(&world, "spillway_kept_m_a"));
    assert_true(world_has(&world, "messages"));
    memory_admin_delete(world.memory, "messages", "1");
    assert_int_equal(world_run_to(&world, "u"), SPILL_OK);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_steps),
        cmocka_unit_test(test_transforms),
        cmocka_unit_test(test_indexes_are_merged),
        cmocka_unit_test(test_indexes_are_refused),
        cmocka_unit_test(test_writers),
        cmocka_unit_test(test_writers_never_stop),
        cmocka_unit_test(test_killed_while_others_write),
        cmocka_unit_test(test_pause_is_bounded),
        cmocka_unit_test(test_ctrl_c_restores_the_name),
        cmocka_unit_test(test_pause_is_per_collection),
        cmocka_unit_test(test_fast_writers_are_refused),
        cmocka_unit_test(test_unique_values_exchanged),
        cmocka_unit_test(test_fault_in_copy),
        cmocka_unit_test(test_fault_in_parallel_passes),
        cmocka_unit_test(test_fault_in_cut_over),
        cmocka_unit_test(test_fault_in_finish),
        cmocka_unit_test(test_fault_in_undo),
        cmocka_unit_test(test_undo_from_anywhere),
        cmocka_unit_test(test_undo_copies_later_documents_back),
        cmocka_unit_test(test_undo_refuses_to_lose_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
