/*
 * Partly completed cut-overs: the application already writes to some slices while other collections
 * still have their names, or a killed run has put collections aside.
 */
#include "model/consolidate.h"
#include "support/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- open slices during the cut-over --------------------------------------------------------- */

/* An application that writes to each slice once it is open. */
typedef struct slices {
    world_t *world;
    bool open[3];
    size_t reports;
} slices_t;

static const char *const slice_values[] = {"\"a\"", "\"b\"", "3"};
static const char *const slice_ids[] = {"2", "2", "\"word\""}; /* the documents that it deletes */

static void write_to_open_slice(void *context, const spill_consolidate_opened_t *opened)
{
    slices_t *slices = context;
    world_t *world = slices->world;
    size_t i = (size_t)(opened->member - world->group.members);
    char text[96];
    slices->reports += !opened->before;
    assert_true(i < 3 && (opened->before || !slices->open[i]));
    if (slices->open[i])
        return;
    slices->open[i] = true;
    snprintf(text, sizeof text, "{\"room\": %s, \"id\": %s}", slice_values[i], slice_ids[i]);
    memory_admin_delete(world->memory, "messages", text);
    snprintf(text, sizeof text, "{\"_id\": \"own %zu\", \"room\": %s}", i, slice_values[i]);
    assert_true(memory_admin_put(world->memory, "messages", text));
}

static bool has_line(const char *text, const char *begin)
{
    size_t length = strlen(begin);
    for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL)
        if (strncmp(at, begin, length) == 0)
            return true;
    return false;
}

/* Every write of the application is kept: in the slice or in the old collection. */
static void assert_slices(const slices_t *slices, bool undone)
{
    memory_admin_t *memory = slices->world->memory;
    for (size_t i = 0; i < 3; i++) {
        char own[64], deleted[96];
        char *text = memory_admin_text(memory, undone ? slices->world->group.members[i].collection
                                                      : "messages");
        snprintf(own, sizeof own, "{ \"_id\" : \"own %zu\"", i);
        if (undone)
            snprintf(deleted, sizeof deleted, "{ \"_id\" : %s", slice_ids[i]);
        else
            snprintf(deleted, sizeof deleted, "{ \"_id\" : { \"room\" : %s, \"id\" : %s }",
                     slice_values[i], slice_ids[i]);
        assert_int_equal(has_line(text, own), slices->open[i]);
        assert_int_equal(has_line(text, deleted), !slices->open[i]);
        bson_free(text);
    }
}

static void world_open_with_slices(world_t *world, slices_t *slices, bool views)
{
    *slices = (slices_t){.world = world};
    world_open(world, "compound");
    world->options.throttle.chunk_first = world->options.throttle.chunk_max = 4;
    world->options.views = views;
    world->options.opened = write_to_open_slice;
    world->options.context = slices;
    assert_int_equal(world_run_to(world, "c"), SPILL_OK);
}

static void test_open_slices_are_written_to(void **state)
{
    (void)state;
    world_t world;
    slices_t slices;
    world_open_with_slices(&world, &slices, false);
    assert_done(&world, spill_consolidate_cut_over);
    assert_int_equal(slices.reports, 3);
    assert_slices(&slices, false);
    assert_says(&world, "\"open\" : 3");
    assert_int_equal(world_run_to(&world, "u"), SPILL_OK);
    assert_slices(&slices, true);
    world_close(&world);
}

/* Kill the cut-over at each call; then continue it, undo it, or both. */
static void test_killed_with_open_slices(void **state)
{
    (void)state;
    static const char *const steps[] = {"o", "u", "ou", "f"};
    int undone_partly = 0;
    for (int64_t k = 1, ended = 0; ended == 0; k += effort(1, 2, 5))
        for (int variant = 0; variant < 32; variant++) {
            world_t world;
            slices_t slices;
            const char *then = steps[variant % 4];
            world_open_with_slices(&world, &slices, variant & 4);
            world.memory->fail_at = world.memory->calls + k;
            world.memory->fail_applied = variant & 8;
            world.memory->fail_for_good = variant & 16;
            ended += world_run(&world, spill_consolidate_cut_over) == SPILL_OK;
            world.memory->fail_at = 0;
            undone_partly += strcmp(then, "u") == 0 && slices.open[0] && !slices.open[2];
            if (world_run_to(&world, then) != SPILL_OK)
                fail_msg("call %lld, %s: %s", (long long)k, then, world.error.message);
            assert_slices(&slices, strchr(then, 'u') != NULL);
            if (!strchr(then, 'u'))
                assert_true(slices.open[0] && slices.open[1] && slices.open[2]);
            world_close(&world);
        }
    assert_true(undone_partly > effort(10, 5, 2));
}

/*
 * Undo a cut-over that stopped between two collections; kill the undo at each call and continue it.
 */
static bool stop_once_second_is_aside(void *context)
{
    return world_has(((slices_t *)context)->world, "spillway_kept_m_b");
}

static void test_undo_with_open_slices_is_killed(void **state)
{
    (void)state;
    for (int applied = 0; applied < 2; applied++)
        for (int64_t k = 1;; k += effort(1, 2, 5)) {
            world_t world;
            slices_t slices;
            bson_t report;
            world_open_with_slices(&world, &slices, false);
            world.options.throttle.stop = stop_once_second_is_aside;
            world.options.throttle.context = &slices;
            assert_int_equal(world_run(&world, spill_consolidate_cut_over), SPILL_CANCELLED);
            world.options.throttle.stop = NULL;
            assert_true(slices.open[0] && !slices.open[1]);
            assert_says(&world, "\"open\" : 1");
            assert_int_equal(spill_consolidate_report_undo(world.admin, &world.group,
                                                           &world.options, &report, &world.error),
                             SPILL_OK);
            char *text = bson_as_relaxed_extended_json(&report, NULL);
            assert_non_null(strstr(text, "\"collection\" : \"m_a\", \"before\" : 5, \"now\" : 5"));
            assert_null(strstr(text, "m_b"));
            bson_free(text);
            bson_destroy(&report);
            world.memory->fail_at = world.memory->calls + k;
            world.memory->fail_applied = applied;
            spill_code_t code = world_run_to(&world, "u");
            world.memory->fail_at = 0;
            if (code != SPILL_OK && world_run_to(&world, "u") != SPILL_OK)
                fail_msg("call %lld: %s", (long long)k, world.error.message);
            assert_slices(&slices, true);
            assert_false(world_has(&world, "messages"));
            assert_false(world_has(&world, "spillway_kept_messages"));
            world_close(&world);
            if (code == SPILL_OK)
                break;
        }
}

/*
 * Without its checkpoint it is unknown to which slices the application writes: nothing is changed.
 */
static void test_lost_checkpoint_is_refused(void **state)
{
    (void)state;
    world_t world;
    slices_t slices;
    world_open_with_slices(&world, &slices, false);
    world.options.throttle.stop = stop_once_second_is_aside;
    world.options.throttle.context = &slices;
    assert_int_equal(world_run(&world, spill_consolidate_cut_over), SPILL_CANCELLED);
    world.options.throttle.stop = NULL;
    assert_int_equal(
        world.admin->ops->checkpoint_delete(world.admin, "messages:consolidate.at", NULL),
        SPILL_OK);
    assert_int_equal(world_run(&world, spill_consolidate_cut_over), SPILL_CORRUPT);
    assert_non_null(strstr(world.error.message, "'messages:consolidate.at' is missing"));
    assert_int_equal(world_run(&world, spill_consolidate_undo), SPILL_CORRUPT);
    assert_slices(&slices, false);
    world_close(&world);
}

/* ---- the pause of a collection that a killed run has put aside ------------------------------- */

/* Before each call: kill the program at the first call after the rename of m_a. */
static void die_behind_rename(memory_admin_t *memory)
{
    if (memory->fail_at == 0 && memory_admin_find(memory, "spillway_kept_m_a"))
        memory->fail_at = memory->calls;
}

static void kill_behind_rename(world_t *world)
{
    world->memory->before = die_behind_rename;
    world->memory->fail_for_good = true;
    assert_int_equal(world_run(world, spill_consolidate_cut_over), SPILL_IO);
    world->memory->before = NULL;
    world->memory->fail_at = 0;
    assert_false(world_has(world, "m_a"));
}

static bool stop_at_once(void *context)
{
    (void)context;
    return true;
}

static void test_pause_of_a_killed_run_is_bounded(void **state)
{
    (void)state;
    world_t world;
    call_clock_t clock = {.call_us = 1000, .aside_us = 600000};
    world_open(&world, "compound");
    assert_done(&world, spill_consolidate_copy);
    for (int i = 0; i < 2; i++) {
        memory_admin_put(world.memory, "m_a", "{\"_id\": 8, \"text\": \"since\"}");
        kill_behind_rename(&world);
        if (i == 0) {
            set_call_clock(&world, &clock);
            assert_refused(&world, spill_consolidate_cut_over,
                           "'m_a' was put aside, could not be compared");
            world.options.throttle.clock = (spill_clock_t){0};
        } else {
            /* a stray does not prevent it */
            memory_admin_put(world.memory, "m_a", "{\"_id\": 70}");
            world.options.throttle.stop = stop_at_once;
            assert_int_equal(world_run(&world, spill_consolidate_cut_over), SPILL_CANCELLED);
            world.options.throttle.stop = NULL;
        }
        assert_true(world_has(&world, "m_a"));
        assert_false(world_has(&world, "spillway_kept_m_a"));
    }
    assert_done(&world, spill_consolidate_cut_over);
    assert_joint(&world, true);
    assert_int_equal(memory_admin_count(world.memory, "spillway_kept_m_a"), 7);
    world_close(&world);
}

/* Call k fails, with or without its effect. Count the collections that are aside but not open. */
static int count_blocked(int64_t k, bool views, spill_code_t *code)
{
    world_t world;
    slices_t slices;
    int blocked = 0;
    world_open_with_slices(&world, &slices, views);
    world.memory->fail_at = world.memory->calls + k;
    world.memory->fail_applied = k % 2;
    *code = world_run(&world, spill_consolidate_cut_over);
    for (size_t i = 0; i < 3 && *code != SPILL_OK; i++) {
        const foreign_collection_t *old =
            memory_admin_find(world.memory, world.group.members[i].collection);
        bool named = old && !old->view;
        blocked += !named && !slices.open[i];
    }
    world_close(&world);
    return blocked;
}

/*
 * The writers have their collection again, unless the answer to the save of the checkpoint was
 * lost.
 */
static void test_failed_pause_restores_the_name(void **state)
{
    (void)state;
    for (int views = 0; views < 2; views++) {
        spill_code_t code = SPILL_IO;
        int blocked = 0;
        for (int64_t k = 1; code != SPILL_OK; k++)
            blocked += count_blocked(k, views, &code);
        assert_int_equal(blocked, 3); /* once for the checkpoint of each collection */
    }
}

/* ---- strays: inserts under an old name after the collection was put aside -------------------- */

static void put_stray(world_t *world)
{
    memory_admin_put(world->memory, "m_a", "{\"_id\": 70, \"text\": \"late\"}");
    memory_admin_put(world->memory, "m_a", "{\"_id\": 71, \"text\": \"late, too\"}");
}

/* The collection has this number of documents with that _id. */
static void assert_count(world_t *world, const char *collection, const char *id, int times)
{
    char begin[96];
    char *text = memory_admin_text(world->memory, collection);
    int count = 0;
    snprintf(begin, sizeof begin, "{ \"_id\" : %s,", id);
    for (const char *at = text; (at = strstr(at, begin)) != NULL; at++)
        count++;
    bson_free(text);
    assert_int_equal(count, times);
}

static void assert_absorbed(world_t *world)
{
    const char *ids[] = {"70", "71"};
    bool undone = world_has(world, "m_a") && !world_has(world, "messages");
    for (size_t i = 0; i < 2; i++) {
        char id[64];
        bool keeps = world->group.keeps_ids || undone;
        snprintf(id, sizeof id, keeps ? "%s" : "{ \"room\" : \"a\", \"id\" : %s }", ids[i]);
        assert_count(world, undone ? "m_a" : "messages", id, 1);
    }
    assert_false(world_has(world, "spillway_late_m_a"));
    assert_int_equal(world_has(world, "m_a"), undone);
}

/* Each step after the cut-over absorbs strays, whichever call fails or is the last one. */
static void test_strays_are_absorbed(void **state)
{
    (void)state;
    static const char *const steps[] = {"o", "f", "u"};
    for (int variant = 0; variant < 24; variant++) {
        const char *step = steps[variant % 3];
        spill_code_t code = SPILL_IO;
        for (int64_t k = 1; code != SPILL_OK; k++) {
            world_t world;
            world_open(&world, variant / 12 ? "keep" : "compound");
            assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
            put_stray(&world);
            world.memory->fail_at = world.memory->calls + k;
            world.memory->fail_applied = variant / 3 % 2;
            world.memory->fail_for_good = variant / 6 % 2;
            code = world_run_to(&world, step);
            world.memory->fail_at = 0;
            if (code != SPILL_OK && world_run_to(&world, step) != SPILL_OK)
                fail_msg("call %lld, %s: %s", (long long)k, step, world.error.message);
            assert_absorbed(&world);
            world_close(&world);
        }
    }
}

static void test_conflicting_stray_is_not_touched(void **state)
{
    (void)state;
    static const char *const own[] = {"{\"_id\": {\"room\": \"a\", \"id\": 70}, \"room\": \"a\"}",
                                      "{\"_id\": 71, \"room\": \"a\"}"};
    for (size_t i = 0; i < 2; i++) {
        world_t world;
        world_open(&world, "compound");
        assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
        put_stray(&world);
        assert_true(memory_admin_put(world.memory, "messages", own[i]));
        assert_refused(&world, spill_consolidate_cut_over, "a client has written to 'm_a'");
        assert_refused(&world, spill_consolidate_cut_over, i ? "_id 71" : "\"id\" : 70");
        assert_refused(&world, spill_consolidate_finish, "merge the documents of 'm_a'");
        assert_refused(&world, spill_consolidate_undo, "drop 'm_a'");
        assert_int_equal(memory_admin_count(world.memory, "m_a"), 2);
        assert_int_equal(memory_admin_count(world.memory, "messages"), 13);
        memory_admin_delete(world.memory, "m_a", i ? "71" : "70"); /* merged by hand */
        assert_int_equal(world_run_to(&world, "o"), SPILL_OK);
        assert_int_equal(memory_admin_count(world.memory, "messages"), 14);
        assert_false(world_has(&world, "m_a"));
        world_close(&world);
    }
}

/* A unique index refuses the stray: it is kept, under its late name. */
static void test_stray_that_is_not_unique_is_kept(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    memory_admin_put(world.memory, "m_c", "{\"_id\": 5}");
    for (size_t i = 0; i < 3; i++) {
        foreign_collection_t *old =
            memory_admin_find(world.memory, world.group.members[i].collection);
        bson_destroy(old->indexes);
        old->indexes = BCON_NEW("0", "{", "key", "{", "text", BCON_INT32(1), "}", "name", "text_1",
                                "unique", BCON_BOOL(true), "sparse", BCON_BOOL(true), "}");
    }
    assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
    put_stray(&world);
    memory_admin_put(world.memory, "m_a", "{\"_id\": 72, \"text\": \"a1\"}");
    assert_refused(&world, spill_consolidate_cut_over, "drop 'spillway_late_m_a'");
    assert_refused(&world, spill_consolidate_undo, "\"id\" : 72");
    assert_int_equal(memory_admin_count(world.memory, "spillway_late_m_a"), 3);
    memory_admin_delete(world.memory, "spillway_late_m_a", "72");
    assert_int_equal(world_run_to(&world, "o"), SPILL_OK);
    assert_absorbed(&world);
    world_close(&world);
}

enum { MOST_INSERTS = 60 };

/* An application that keeps inserting under the old names. */
typedef struct inserters {
    int64_t next; /* _id from 1000 */
    int64_t until_call;
    unsigned seed;
    int late;                  /* inserts into strays */
    char *names[MOST_INSERTS]; /* the collection of each insert; NULL: it was refused */
} inserters_t;

static void insert_something(memory_admin_t *memory)
{
    static const char *const names[] = {"m_a", "m_b", "m_c"};
    inserters_t *inserters = memory->context;
    const char *name = names[rand_r(&inserters->seed) % 3];
    const foreign_collection_t *found = memory_admin_find(memory, name);
    if (memory->calls >= inserters->until_call || rand_r(&inserters->seed) % 8 != 0 ||
        inserters->next == MOST_INSERTS || (found && found->view))
        return;
    char text[64], kept[32];
    snprintf(kept, sizeof kept, "spillway_kept_%s", name);
    snprintf(text, sizeof text, "{\"_id\": %lld, \"x\": 1}", 1000 + (long long)inserters->next);
    inserters->late += memory_admin_find(memory, kept) != NULL;
    if (memory_admin_put(memory, name, text))
        inserters->names[inserters->next] = bson_strdup(name);
    inserters->next++;
}

/* Each insert is exactly once in the joint collection, or after an undo in its old one. */
static void assert_inserts(world_t *world, inserters_t *inserters, bool undone)
{
    for (int64_t i = 0; i < inserters->next; i++) {
        char id[64];
        const char *name = inserters->names[i];
        if (!name)
            continue;
        if (undone)
            snprintf(id, sizeof id, "%lld", 1000 + (long long)i);
        else
            snprintf(id, sizeof id, "{ \"room\" : %s, \"id\" : %lld }", slice_values[name[2] - 'a'],
                     1000 + (long long)i);
        assert_count(world, undone ? name : "messages", id, 1);
        bson_free(inserters->names[i]);
    }
}

static void test_inserts_never_stop(void **state)
{
    (void)state;
    int late = 0;
    for (unsigned seed = 1; seed <= 30; seed++) {
        world_t world;
        inserters_t inserters = {.seed = seed, .until_call = INT64_MAX};
        world_open(&world, "compound");
        world.options.views = seed % 2;
        world.options.passes = 2;
        world.memory->before = insert_something;
        world.memory->context = &inserters;
        assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
        for (int i = 0; i < 3; i++) { /* a stray was created again at most; that is refused */
            spill_code_t code = world_run(&world, spill_consolidate_cut_over);
            if (code != SPILL_OK && code != SPILL_REFUSED && code != SPILL_IO)
                fail_msg("seed %u: %s", seed, world.error.message);
        }
        late += inserters.late;
        inserters.until_call = 0;
        if (world_run_to(&world, seed % 3 ? "o" : "u") != SPILL_OK)
            fail_msg("seed %u: %s", seed, world.error.message);
        assert_inserts(&world, &inserters, seed % 3 == 0);
        world_close(&world);
    }
    assert_true(late > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_slices_are_written_to),
        cmocka_unit_test(test_killed_with_open_slices),
        cmocka_unit_test(test_undo_with_open_slices_is_killed),
        cmocka_unit_test(test_lost_checkpoint_is_refused),
        cmocka_unit_test(test_pause_of_a_killed_run_is_bounded),
        cmocka_unit_test(test_failed_pause_restores_the_name),
        cmocka_unit_test(test_strays_are_absorbed),
        cmocka_unit_test(test_conflicting_stray_is_not_touched),
        cmocka_unit_test(test_stray_that_is_not_unique_is_kept),
        cmocka_unit_test(test_inserts_never_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
