/*
 * A consolidation stops before it does harm: invalid plans, names and documents, changed
 * collections, and a second operator.
 */
#include "model/consolidate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- two operators --------------------------------------------------------------------------- */

/* One operator stops before call `at` of any step, while the other runs `steps`. */
typedef struct other {
    world_t world; /* in the same memory */
    int64_t at;
    const char *steps;
    bool done; /* all steps succeeded and changed something */
    picture_t picture, kept;
} other_t;

static void run_other_operator(memory_admin_t *memory)
{
    other_t *other = memory->context;
    if (memory->calls < other->at || memory->changing)
        return;
    memory->before = NULL;
    other->done =
        world_run_to(&other->world, other->steps) == SPILL_OK && !other->world.result.done;
    if (world_has(&other->world, "messages")) { /* the application continues with it */
        memory_admin_delete(memory, "messages", "{\"room\": \"a\", \"id\": 1}");
        memory_admin_put(memory, "messages", "{\"_id\": \"own\", \"room\": \"a\"}");
    } else {
        memory_admin_delete(memory, "m_a", "1");
        memory_admin_put(memory, "m_a", "{\"_id\": \"own\"}");
    }
    other->picture = picture_of(&other->world, false);
    other->kept = picture_of(&other->world, true);
}

/* Return false if the step has fewer calls. */
static bool overtake(const char *begun, step_fn step, int64_t k, const char *steps)
{
    world_t world;
    world_open(&world, "compound");
    assert_int_equal(world_run_to(&world, begun), SPILL_OK);
    bool cut = strcmp(begun, "co") == 0;
    memory_admin_put(world.memory, cut ? "messages" : "m_a",
                     cut ? "{\"_id\": \"since\", \"room\": \"a\"}" : "{\"_id\": \"since\"}");
    other_t other = {.world = world, .at = world.memory->calls + k, .steps = steps};
    world.memory->before = run_other_operator;
    world.memory->context = &other;
    spill_code_t code = world_run(&world, step);
    bool overtaken = !world.memory->before;
    world.memory->before = NULL;
    if (overtaken && other.done) {
        picture_t picture = picture_of(&world, false), kept = picture_of(&world, true);
        assert_same_picture(&other.picture, &picture, 4);
        assert_same_picture(&other.kept, &kept, 4);
        bool told = code == SPILL_REFUSED && !strstr(world.error.message, "give it its name");
        if (code != SPILL_CONFLICT && code != SPILL_OK && !told)
            fail_msg("%s, call %lld: %s", steps, (long long)k, world.error.message);
        picture_release(&picture);
        picture_release(&kept);
    }
    if (overtaken) {
        picture_release(&other.picture);
        picture_release(&other.kept);
    }
    world_close(&world);
    return overtaken;
}

static void test_late_operator_changes_nothing(void **state)
{
    (void)state;
    static const char *const others[] = {"f", "o", "u", "uco", "ucf"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        int64_t k = 2; /* it has read the checkpoint */
        while (overtake("c", spill_consolidate_copy, k, others[i]))
            k++;
        assert_true(k > 10);
        for (k = 2; overtake("c", spill_consolidate_cut_over, k, others[i]);)
            k++;
        if (strcmp(others[i], "uco") == 0) /* all is undone: the late operator may continue */
            continue;
        for (k = 2; overtake("co", spill_consolidate_undo, k, others[i]);)
            k++;
        for (k = 2; overtake("co", spill_consolidate_finish, k, others[i]);)
            k++;
    }
}

/* ---- refused input --------------------------------------------------------------------------- */

static void test_clashing_ids_are_refused_where_kept(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "keep");
    memory_admin_put(world.memory, "m_b", "{\"_id\": 3, \"text\": \"also in a\"}");
    assert_refused(&world, spill_consolidate_copy, "_id 3 also occurs in another collection");
    world_close(&world);
}

static void test_discriminator_in_documents_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    memory_admin_put(world.memory, "m_b", "{\"_id\": 77, \"room\": \"b\"}");
    assert_refused(&world, spill_consolidate_copy, "document 77 has a field 'room' already");
    world_close(&world);
}

static void test_foreign_target_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    memory_admin_put(world.memory, "messages", "{\"_id\": 1}");
    assert_refused(&world, spill_consolidate_copy, "'messages' with documents already");
    assert_int_equal(memory_admin_count(world.memory, "messages"), 1);
    assert_int_equal(world.memory->marks.documents.count, 0);
    world_close(&world);
}

static void test_changed_plan_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_done(&world, spill_consolidate_copy);
    spill_consolidation_release(&world.group);
    read_group(&world, "keep");
    assert_refused(&world, spill_consolidate_copy, "begun with another plan");
    assert_refused(&world, spill_consolidate_undo, "begun with another plan");
    world_close(&world);
}

static void test_finished_plan_cannot_change(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_int_equal(world_run_to(&world, "cf"), SPILL_OK);
    spill_consolidation_release(&world.group);
    read_group(&world, "keep");
    assert_refused(&world, spill_consolidate_copy, "is finished with another plan");
    assert_refused(&world, spill_consolidate_copy, "another 'into'");
    world_close(&world);
}

/* {_id: 3} and {_id: {room: "a", id: 3}} are found before any collection is put aside. */
static void test_undo_refuses_clashing_ids(void **state)
{
    (void)state;
    static const char *const own[] = {"3", "3.0", "0"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        world_t world;
        char text[64];
        world_open(&world, "compound");
        assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
        snprintf(text, sizeof text, "{\"_id\": %s, \"room\": \"a\"}", own[i]);
        memory_admin_put(world.memory, "messages", text);
        memory_admin_put(world.memory, "messages", "{\"_id\": \"word\", \"room\": \"a\"}");
        assert_refused(&world, spill_consolidate_undo, "would be one document of 'm_a'");
        assert_non_null(strstr(world.error.message, "\"id\""));
        assert_true(world_has(&world, "messages"));
        assert_true(world_has(&world, "spillway_kept_m_a"));
        assert_false(world_has(&world, "spillway_kept_messages"));
        memory_admin_delete(world.memory, "messages", own[i]);
        assert_int_equal(world_run_to(&world, "u"), SPILL_OK);
        assert_int_equal(memory_admin_count(world.memory, "m_a"), 6);
        world_close(&world);
    }
}

static void test_too_large_document_is_refused_by_name(void **state)
{
    (void)state;
    world_t world;
    const size_t length = ((size_t)16 << 20) - 40;
    char *text = bson_malloc(length + 1);
    memset(text, 'x', length);
    text[length] = '\0';
    world_open(&world, "compound");
    bson_t *document = BCON_NEW("_id", BCON_INT32(77), "t", BCON_UTF8(text));
    assert_true(document->len <= (16 << 20));
    spill_raw_admin_write_t write = {.kind = SPILL_RAW_ADMIN_INSERT, .document = document};
    assert_int_equal(world.admin->ops->write(world.admin, "m_b", &write, 1, NULL), SPILL_OK);
    assert_refused(&world, spill_consolidate_copy, "document 77 would have 167772");
    bson_destroy(document);
    bson_free(text);
    world_close(&world);
}

static void test_lost_collection_is_not_an_empty_one(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_done(&world, spill_consolidate_copy);
    world.admin->ops->drop(world.admin, "m_b", NULL);
    assert_refused(&world, spill_consolidate_copy, "the collection 'm_b' no longer exists");
    assert_int_equal(memory_admin_count(world.memory, "messages"), 12);
    assert_int_equal(
        world.admin->ops->create(world.admin, "m_b", world.memory->marks.indexes, NULL), SPILL_OK);
    assert_done(&world, spill_consolidate_copy);
    assert_int_equal(memory_admin_count(world.memory, "messages"), 7);
    world_close(&world);
}

/* Rename the collection before call k of a pass: its slice stays unchanged. */
static void rename_a(memory_admin_t *memory)
{
    if (memory->calls != *(int64_t *)memory->context)
        return;
    memory->before = NULL;
    memory->base.ops->rename(&memory->base, "m_a", "archive_a", NULL);
}

static void test_renamed_collection_is_not_an_empty_one(void **state)
{
    (void)state;
    for (int64_t k = 1;; k++) {
        world_t world;
        world_open(&world, "compound");
        assert_done(&world, spill_consolidate_copy);
        memory_admin_put(world.memory, "m_a", "{\"_id\": 7, \"text\": \"since\"}");
        int64_t at = world.memory->calls + k;
        world.memory->before = rename_a;
        world.memory->context = &at;
        spill_code_t code = world_run(&world, spill_consolidate_copy);
        bool renamed = !world.memory->before;
        assert_true(memory_admin_count(world.memory, "messages") >= 12);
        world.memory->before = NULL;
        if (renamed)
            assert_refused(&world, spill_consolidate_copy, "the collection 'm_a' no longer exists");
        world_close(&world);
        if (!renamed) {
            assert_int_equal(code, SPILL_OK);
            break;
        }
    }
}

static void test_collections_of_definitions_are_refused(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "{\"_id\": \"d\", \"entry\": {\"collection\": \"m_b\", \"pageCollection\": \"p\"}}",
        "{\"_id\": \"d\", \"entry\": {\"collection\": \"h\", \"pageCollection\": \"m_b\"}}",
        "{\"_id\": \"d\", \"entry\": {\"collection\": \"messages\"}}"};
    static const char *const texts[] = {"'m_b' has the documents of the definition 'd'",
                                        "'m_b' has the pages of the definition 'd'",
                                        "'messages' has the documents of the definition 'd'"};
    for (size_t i = 0; i < 3; i++)
        for (int begun = 0; begun < 2; begun++) {
            world_t world;
            world_open(&world, "compound");
            if (begun)
                assert_done(&world, spill_consolidate_copy);
            memory_admin_put(world.memory, "spillway.definitions", entries[i]);
            assert_says(&world, texts[i]);
            assert_refused(&world, begun ? spill_consolidate_cut_over : spill_consolidate_copy,
                           texts[i]);
            assert_true(world_has(&world, "m_b"));
            assert_int_equal(world_has(&world, "messages"), begun);
            world_close(&world);
        }
}

static void test_stray_after_cut_over_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_int_equal(world_run_to(&world, "co"), SPILL_OK);
    memory_admin_put(world.memory, "m_a", "{\"_id\": 1, \"text\": \"too late\"}");
    assert_refused(&world, spill_consolidate_finish, "a client has written to 'm_a'");
    assert_refused(&world, spill_consolidate_undo, "a client has written to 'm_a'");
    assert_true(world_has(&world, "spillway_kept_m_a"));
    world_close(&world);
}

static void test_server_without_views_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_done(&world, spill_consolidate_copy);
    world.memory->no_views = true;
    world.options.views = true;
    assert_refused(&world, spill_consolidate_cut_over, "the server creates no views");
    assert_true(world_has(&world, "m_a"));
    world.options.views = false;
    assert_done(&world, spill_consolidate_cut_over);
    world_close(&world);
}

static void test_cut_over_before_copy_is_refused(void **state)
{
    (void)state;
    world_t world;
    world_open(&world, "compound");
    assert_refused(&world, spill_consolidate_cut_over, "copy first");
    world.options.passes = 1; /* it cannot have compared anything, so the cut-over compares */
    assert_int_equal(world_run(&world, spill_consolidate_copy), SPILL_OK);
    assert_int_equal(world.result.changing, 3);
    assert_done(&world, spill_consolidate_cut_over);
    world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_late_operator_changes_nothing),
        cmocka_unit_test(test_clashing_ids_are_refused_where_kept),
        cmocka_unit_test(test_discriminator_in_documents_is_refused),
        cmocka_unit_test(test_foreign_target_is_refused),
        cmocka_unit_test(test_changed_plan_is_refused),
        cmocka_unit_test(test_finished_plan_cannot_change),
        cmocka_unit_test(test_undo_refuses_clashing_ids),
        cmocka_unit_test(test_too_large_document_is_refused_by_name),
        cmocka_unit_test(test_lost_collection_is_not_an_empty_one),
        cmocka_unit_test(test_renamed_collection_is_not_an_empty_one),
        cmocka_unit_test(test_collections_of_definitions_are_refused),
        cmocka_unit_test(test_stray_after_cut_over_is_refused),
        cmocka_unit_test(test_server_without_views_is_refused),
        cmocka_unit_test(test_cut_over_before_copy_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
