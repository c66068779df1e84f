/* Helpers of the tests of migrations in two stages. */
#include "model/staged.h"

#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "support/definition.h"
#include "tools/definition_jobs.h"
#include "tools/import/import_chunk.h"
#include "tools/migrate/staged.h"

#include <spillway/bucket.h>
#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 4, ELEMENTS_MAX = 40, TRIES = 60, CAP = 4 };

const staged_goal_t staged_goals[STAGED_GOALS] = {
    {"keep oldest", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST, false, NULL},
    {"keep oldest, beside", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST, true, NULL},
    {"reference", SPILL_LAYOUT_REFERENCE, SPILL_KEEP_NEWEST, true, NULL},
    {"subset", SPILL_LAYOUT_SUBSET, SPILL_KEEP_NEWEST, false, NULL},
    {"subset, beside", SPILL_LAYOUT_SUBSET, SPILL_KEEP_NEWEST, true, NULL},
    {"bucket", SPILL_LAYOUT_BUCKET, SPILL_KEEP_NEWEST, false, NULL},
    {"capped", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST, false, NULL},
    {"best", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST, false, "score"},
};

static const char *const names[OWNERS] = {"ada", "bob", "cid", "dan"};

/* An owner's array: elements are numbers, one per day. */
typedef struct model {
    int64_t at[ELEMENTS_MAX];
    size_t count;
} model_t;

typedef struct world {
    const staged_goal_t *goal;
    spill_store_t *store;  /* the store below `faulty` */
    spill_store_t *faulty; /* the store that the migration uses */
    spill_array_t *other;  /* another array in the same heads, which writes other fields */
    spill_planned_t planned;
    spill_staged_t staged;
    spill_migrate_options_t options;
    bson_t storage[OWNERS];
    spill_value_t owners[OWNERS];
    model_t models[OWNERS];
    int64_t next, fail_at; /* fail_at: a call; -1: none */
    int64_t drops_left;    /* of heads, until a drop fails; -1: none fails */
    int64_t meet_at;       /* the call before which another operator does everything; -1: never */
    fault_t fault;
    int64_t anew, gone, findings;
} world_t;

/* ---- elements -------------------------------------------------------------------------------- */

static int64_t score_of(int64_t number)
{
    return number * 7 % 11;
}

/* Nine days each; every fifth element arrived late. */
static spill_value_t make_element(bson_t *storage, int64_t number)
{
    int64_t day = 9 * number - (number % 5 == 0 ? 20 : 0);
    bson_reinit(storage);
    if (number % 3 == 0)
        BSON_APPEND_INT64(storage, "_id", number);
    BSON_APPEND_INT64(storage, "n", number);
    if (number % 3 == 1)
        BCON_APPEND(storage, "_id", "{", "_id", BCON_INT64(number), "}");
    BSON_APPEND_INT64(storage, "score", score_of(number));
    BSON_APPEND_DATE_TIME(storage, "at", (20500 + day) * INT64_C(86400000));
    return spill_value_from_document(storage);
}

static int64_t number_of(const spill_value_t *value)
{
    spill_value_t found;
    int64_t number;
    assert_true(spill_value_at(value, "n", &found));
    memcpy(&number, found.data, sizeof number);
    return number;
}

/* Write the array like a program with its own driver: as a field of the document. */
static void write_unmanaged(world_t *world, int owner)
{
    const model_t *model = &world->models[owner];
    bson_t update = BSON_INITIALIZER, set, array, storage = BSON_INITIALIZER;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_UTF8(&set, "name", names[owner]);
    BSON_APPEND_ARRAY_BEGIN(&set, "activities", &array);
    for (size_t i = 0; i < model->count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%zu", i);
        spill_value_t value = make_element(&storage, model->at[i]);
        spill_value_append(&value, &array, key);
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    assert_int_equal(spill_array_update(world->other, &world->owners[owner], &update, NULL),
                     SPILL_OK);
    bson_destroy(&update);
    bson_destroy(&storage);
}

static void fill(world_t *world, int owner, int count)
{
    model_t *model = &world->models[owner];
    for (int i = 0; i < count; i++)
        model->at[model->count++] = world->next++;
    write_unmanaged(world, owner);
}

/* ---- changes by other programs in the middle ------------------------------------------------- */

static spill_array_t *open_array(world_t *world, const char *name)
{
    spill_array_t *array;
    spill_error_t error;
    if (spill_array_open(world->store, name, &array, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    return array;
}

static void append_one(world_t *world, spill_array_t *array, int owner)
{
    bson_t storage = BSON_INITIALIZER;
    model_t *model = &world->models[owner];
    spill_value_t value = make_element(&storage, world->next);
    model->at[model->count++] = world->next++;
    assert_int_equal(spill_array_append(array, &world->owners[owner], &value, 1, NULL, NULL, NULL),
                     SPILL_OK);
    bson_destroy(&storage);
}

static void drop_from_model(model_t *model, size_t at)
{
    memmove(model->at + at, model->at + at + 1, (model->count - at - 1) * sizeof *model->at);
    model->count--;
}

/*
 * Change the originals through the library: appends, an edit, removals; a new document, and a
 * dropped one.
 */
static void change_originals(world_t *world)
{
    spill_array_t *array = open_array(world, world->planned.original.name);
    bson_t storage = BSON_INITIALIZER;
    append_one(world, array, 0);
    append_one(world, array, 0);
    append_one(world, array, 1);
    for (int64_t seq = 1; seq < 9; seq += 7) {
        spill_value_t value = make_element(&storage, world->next);
        world->models[0].at[seq] = world->next++;
        assert_int_equal(spill_array_edit(array, &world->owners[0], seq, &value, NULL), SPILL_OK);
    }
    assert_int_equal(spill_array_remove(array, &world->owners[0], 9, NULL), SPILL_OK);
    drop_from_model(&world->models[0], 9);
    assert_int_equal(spill_array_drop_owner(array, &world->owners[2], NULL), SPILL_OK);
    world->models[2].count = 0;
    fill(world, 3, 3);
    bson_destroy(&storage);
    spill_array_close(array);
}

/* An array that is being built refuses changes by other clients. */
static void check_refuses_other_clients(world_t *world)
{
    spill_array_t *array = open_array(world, world->planned.definition.name);
    bool bucket = world->goal->layout == SPILL_LAYOUT_BUCKET;
    bson_t storage = BSON_INITIALIZER, filter = BSON_INITIALIZER;
    spill_value_t value = make_element(&storage, 1);
    const spill_value_t *owner = &world->owners[0];
    spill_error_t error;
    size_t count;
    spill_code_t code =
        bucket ? spill_bucket_append(array, owner, &value, 1, NULL, NULL, &count, &error)
               : spill_array_append(array, owner, &value, 1, NULL, NULL, &error);
    assert_int_equal(code, SPILL_REFUSED);
    assert_non_null(strstr(error.message, "still being made"));
    if (bucket) {
        assert_int_equal(spill_bucket_trim_keep(array, owner, 1, NULL), SPILL_REFUSED);
        assert_int_equal(spill_bucket_drop_before(array, owner, NULL, NULL, NULL), SPILL_REFUSED);
    } else {
        BSON_APPEND_INT32(&filter, "n", 1);
        assert_int_equal(spill_array_edit(array, owner, 0, &value, NULL), SPILL_REFUSED);
        assert_int_equal(spill_array_remove(array, owner, 0, NULL), SPILL_REFUSED);
        assert_int_equal(spill_array_remove_where(array, owner, &filter, 0, NULL, NULL),
                         SPILL_REFUSED);
        assert_int_equal(spill_array_trim(array, owner, 1, NULL), SPILL_REFUSED);
        assert_int_equal(spill_array_drop_owner(array, owner, NULL), SPILL_REFUSED);
    }
    bson_destroy(&storage);
    bson_destroy(&filter);
    spill_array_close(array);
}

/* ---- expected results ------------------------------------------------------------------------ */

typedef struct listed {
    int64_t number;
    int64_t place;
    char window[SPILL_WINDOW_SIZE];
} listed_t;

static int compare_windows(const void *left, const void *right)
{
    const listed_t *one = left, *other = right;
    int order = strcmp(one->window, other->window);
    return order != 0 ? order : (one->place > other->place) - (one->place < other->place);
}

static void drop_lowest(model_t *model)
{
    size_t lowest = 0;
    for (size_t i = 1; i < model->count; i++)
        if (score_of(model->at[i]) < score_of(model->at[lowest]))
            lowest = i;
    drop_from_model(model, lowest);
}

/* The model's array as the target's layout stores it. */
static size_t expect_elements(const world_t *world, int owner, listed_t *list)
{
    model_t kept = world->models[owner], *model = &kept;
    const spill_definition_t *definition = &world->planned.definition;
    while (spill_schema_of(definition)->keeps_top_n && model->count > CAP)
        drop_lowest(model);
    size_t from =
        spill_schema_of(definition)->is_capped && model->count > CAP ? model->count - CAP : 0;
    bson_t storage = BSON_INITIALIZER;
    for (size_t i = from; i < model->count; i++) {
        list[i - from] = (listed_t){.number = model->at[i], .place = (int64_t)i};
        spill_value_t value = make_element(&storage, model->at[i]);
        if (spill_schema_of(definition)->has_windows)
            assert_int_equal(
                spill_bucket_window_of(definition, &value, list[i - from].window, NULL), SPILL_OK);
    }
    bson_destroy(&storage);
    if (spill_schema_of(definition)->has_windows)
        qsort(list, model->count, sizeof *list, compare_windows);
    return model->count - from;
}

typedef struct found {
    const spill_value_t *owner;
    int64_t at[ELEMENTS_MAX];
    size_t count;
} found_t;

static bool collect_element(void *context, const spill_value_t *name, const spill_element_t *item)
{
    found_t *found = context;
    spill_value_t owner = *name;
    const char *window;
    spill_window_split(name, &owner, &window);
    if (!spill_value_same_owner(&owner, found->owner))
        return true;
    assert_true(found->count < ELEMENTS_MAX);
    found->at[found->count++] = number_of(&item->value);
    return true;
}

static void see_finding(void *context, const spill_finding_t *finding)
{
    world_t *world = context;
    world->findings++;
    print_error("%s, call %lld, fault %s: page %lld, I%d: %s\n", world->goal->name,
                (long long)world->fail_at, fault_name(world->fault), (long long)finding->page,
                finding->invariant, finding->text);
}

static void check_array(world_t *world, const char *name)
{
    spill_array_t *array = open_array(world, name);
    spill_verify_summary_t summary;
    for (int i = 0; i < OWNERS; i++) {
        listed_t list[ELEMENTS_MAX] = {0};
        found_t found = {.owner = &world->owners[i]};
        size_t count = expect_elements(world, i, list);
        assert_int_equal(spill_array_export(array, NULL, collect_element, &found, NULL), SPILL_OK);
        if (found.count != count)
            fail_msg("%s, call %lld, fault %s, %s: %zu elements, not %zu", world->goal->name,
                     (long long)world->fail_at, fault_name(world->fault), names[i], found.count,
                     count);
        for (size_t at = 0; at < count; at++)
            assert_int_equal(found.at[at], list[at].number);
    }
    assert_int_equal(spill_array_verify(array, NULL, see_finding, world, &summary, NULL), SPILL_OK);
    assert_int_equal(world->findings, 0);
    spill_array_close(array);
}

/* Compare the documents' other fields; an unmanaged array in `activities` is a field, too. */
static void check_documents(world_t *world, bool plain)
{
    for (int i = 0; i < OWNERS; i++) {
        spill_owner_t own;
        spill_response_t response = SPILL_RESPONSE_INIT;
        bson_iter_t iter, elements;
        assert_int_equal(spill_owner_init(&own, world->other, &world->owners[i], NULL), SPILL_OK);
        spill_request_t read = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.want_fields = true;
        assert_int_equal(spill_owner_call(&own, &read, &response, NULL), SPILL_OK);
        assert_true(bson_iter_init_find(&iter, response.fields, "name"));
        bool has = bson_iter_init_find(&iter, response.fields, "activities");
        assert_int_equal(has, plain && world->models[i].count > 0);
        size_t at = 0;
        if (has && bson_iter_recurse(&iter, &elements))
            for (; bson_iter_next(&elements); at++) {
                spill_value_t value = spill_value_from_iter(&elements);
                assert_int_equal(number_of(&value), world->models[i].at[at]);
            }
        assert_int_equal(at, has ? world->models[i].count : 0);
        /* Only _id, `name` and the array are left after an undo. */
        if (plain)
            assert_int_equal(bson_count_keys(response.fields), has ? 3 : 2);
        spill_response_release(&response);
        spill_owner_release(&own);
    }
}

/* ---- the world of a test --------------------------------------------------------------------- */

static void define_other(world_t *world)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "other", NULL), SPILL_OK);
    definition_name_other(&definition);
    assert_int_equal(spill_store_define(world->store, &definition, NULL), SPILL_OK);
    world->other = open_array(world, "other");
}

static void make_plan(world_t *world)
{
    const staged_goal_t *goal = world->goal;
    spill_definition_t base, definition;
    spill_definition_init(&base, "base");
    strcpy(base.time_field, "at");
    strcpy(base.count_field, "plannedCount");
    strcpy(base.overflow_field, "plannedOverflow");
    strcpy(base.pages_field, "plannedPages");
    bool outlier = goal->layout == SPILL_LAYOUT_OUTLIER;
    assert_int_equal(spill_convert_definition(&base, "planned", goal->layout,
                                              outlier ? &goal->keep : NULL, &definition, NULL),
                     SPILL_OK);
    definition.bounds.threshold = goal->layout == SPILL_LAYOUT_CAPPED ? CAP : 3;
    if (definition.bounds.page_capacity > 0)
        definition.bounds.page_capacity = 2;
    definition.op_window = 3;
    if (goal->sort_field)
        strcpy(definition.sort_field, goal->sort_field);
    if (goal->beside) {
        strcpy(definition.collection, "users");
        strcpy(definition.array, "planned");
    }
    definition.largest = definition.bounds;
    spill_planned_init(&world->planned, &definition, "users", "activities");
    assert_true(world->planned.staged);
    world->planned.original.bounds.threshold = 3;
    world->planned.original.bounds.page_capacity = 2;
    world->planned.original.largest = world->planned.original.bounds;
    spill_error_t error;
    if (spill_planned_check(&world->planned, &error) != SPILL_OK)
        fail_msg("%s", error.message);
}

static void finish_by_another(world_t *world);

static void before_world_call(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    (void)request;
    if (index == world->meet_at)
        finish_by_another(world);
    if (world->fail_at >= 0 && index > world->fail_at + 4)
        while (fault_pending(world->faulty) > 0)
            fault_deliver(world->faulty, 0);
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    if (world->drops_left >= 0 && request && request->kind == SPILL_REQUEST_DROP_HEAD &&
        world->drops_left-- == 0)
        return FAULT_FAIL;
    return index == world->fail_at ? world->fault : FAULT_NONE;
}

static void report_difference(void *context, const spill_migrated_t *migrated)
{
    world_t *world = context;
    world->anew += migrated->recopied;
    world->gone += migrated->deleted;
}

static void open_world(world_t *world, const staged_goal_t *goal, spill_store_t *store,
                       int64_t fail_at, fault_t fault)
{
    *world = (world_t){.goal = goal,
                       .store = store,
                       .fail_at = fail_at,
                       .fault = fault,
                       .drops_left = -1,
                       .meet_at = -1};
    fault_hooks_t hooks = {.context = world, .decide = decide, .before = before_world_call};
    world->options = (spill_migrate_options_t){.migrated = report_difference, .context = world};
    define_other(world);
    make_plan(world);
    for (int i = 0; i < OWNERS; i++) {
        bson_init(&world->storage[i]);
        world->owners[i] = spill_value_from_utf8(&world->storage[i], names[i]);
    }
    fault_wrap(store, &hooks, &world->faulty);
    world->staged = (spill_staged_t){.store = world->faulty, .planned = &world->planned};
    fill(world, 0, 9);
    fill(world, 1, 1);
    fill(world, 2, 4);
}

static void close_world(world_t *world)
{
    spill_array_close(world->other);
    assert_int_equal(spill_store_close(world->faulty, NULL), SPILL_OK);
    for (int i = 0; i < OWNERS; i++)
        bson_destroy(&world->storage[i]);
}

/* ---- runs ------------------------------------------------------------------------------------ */

typedef spill_code_t (*run_fn)(world_t *world, int64_t *failed, spill_error_t *error);

/* The steps of the command. */
static spill_code_t run_catch_up(world_t *world, int64_t *failed, spill_error_t *error)
{
    spill_migrate_result_t reshaped = {0};
    spill_catch_up_result_t caught_up = {0};
    spill_array_t *array = NULL;
    spill_code_t code = spill_staged_begin(&world->staged, error);
    if (code == SPILL_OK)
        code = spill_array_open(world->faulty, world->planned.original.name, &array, error);
    if (code == SPILL_OK)
        code = spill_migrate(array, &world->options, &reshaped, error);
    if (code == SPILL_OK)
        code = spill_catch_up(world->faulty, world->planned.original.name,
                              world->planned.definition.name, &world->options, &caught_up, error);
    spill_array_close(array);
    *failed = reshaped.failed + caught_up.failed;
    return code;
}

static spill_code_t run_finish(world_t *world, int64_t *failed, spill_error_t *error)
{
    spill_copy_result_t result = {0};
    spill_stage_t stage;
    spill_code_t code = spill_staged_find_stage(&world->staged, &stage, error);
    if (code == SPILL_OK && stage == SPILL_STAGE_COPYING)
        code = run_catch_up(world, failed, error);
    if (code != SPILL_OK || *failed > 0)
        return code;
    return spill_staged_finish(&world->staged, &world->options, &result, error);
}

static spill_code_t run_finish_all(world_t *world, int64_t *failed, spill_error_t *error)
{
    spill_stage_t stage;
    spill_code_t code = spill_staged_find_stage(&world->staged, &stage, error);
    if (code == SPILL_OK && stage == SPILL_STAGE_NONE)
        code = run_catch_up(world, failed, error);
    return code == SPILL_OK && *failed == 0 ? run_finish(world, failed, error) : code;
}

static spill_code_t run_undo(world_t *world, int64_t *failed, spill_error_t *error)
{
    spill_migrate_result_t result = {0};
    spill_code_t code = spill_staged_undo(&world->staged, &world->options, &result, error);
    *failed = result.failed;
    return code;
}

/* Repeat a run as its user would. */
static void until_done(world_t *world, run_fn run)
{
    spill_error_t error = {0};
    for (int i = 0; i < TRIES; i++) {
        int64_t failed = 0;
        spill_code_t code = run(world, &failed, &error);
        if (code == SPILL_OK && failed == 0)
            return;
        if (code != SPILL_OK && code != SPILL_IO && code != SPILL_UNKNOWN && code != SPILL_CONFLICT)
            fail_msg("%s, call %lld, fault %s: %s: %s", world->goal->name,
                     (long long)world->fail_at, fault_name(world->fault), spill_code_name(code),
                     error.message);
    }
    fail_msg("%s, call %lld: no end: %s", world->goal->name, (long long)world->fail_at,
             error.message);
}

static void check_finished(world_t *world)
{
    spill_array_t *array;
    spill_stage_t stage;
    spill_error_t error;
    check_array(world, world->planned.definition.name);
    check_documents(world, false);
    assert_int_equal(spill_array_open(world->store, world->planned.original.name, &array, &error),
                     SPILL_NOT_FOUND);
    assert_int_equal(spill_staged_find_stage(&world->staged, &stage, &error), SPILL_OK);
    assert_int_equal(stage, SPILL_STAGE_FINISHED);
    assert_int_equal(run_undo(world, &(int64_t){0}, &error), SPILL_REFUSED);
    assert_int_equal(run_catch_up(world, &(int64_t){0}, &error), SPILL_REFUSED);
    if (world->goal->layout == SPILL_LAYOUT_BUCKET || world->goal->layout == SPILL_LAYOUT_CAPPED)
        return;
    array = open_array(world, world->planned.definition.name);
    append_one(world, array, 1); /* open to all programs again */
    spill_array_close(array);
    check_array(world, world->planned.definition.name);
}

static void check_undone(world_t *world)
{
    spill_array_t *array;
    spill_stage_t stage;
    spill_error_t error;
    check_documents(world, true);
    assert_int_equal(spill_array_open(world->store, world->planned.definition.name, &array, &error),
                     SPILL_NOT_FOUND);
    assert_int_equal(spill_staged_find_stage(&world->staged, &stage, &error), SPILL_OK);
    assert_int_equal(stage, SPILL_STAGE_NONE);
}

bool staged_survives(const staged_goal_t *goal, spill_store_t *store, int64_t at, fault_t fault,
                     bool undo)
{
    static world_t world;
    open_world(&world, goal, store, at, fault);
    until_done(&world, run_catch_up);
    check_refuses_other_clients(&world);
    change_originals(&world);
    until_done(&world, run_catch_up);
    check_array(&world, world.planned.definition.name);
    if (fault_calls(world.faulty) <= at)
        assert_true(world.anew == 1 && world.gone == 1);
    until_done(&world, undo ? run_undo : run_finish);
    bool reached = fault_calls(world.faulty) > at;
    while (fault_pending(world.faulty) > 0)
        fault_deliver(world.faulty, 0);
    world.fail_at = -1;
    if (undo)
        check_undone(&world);
    else
        check_finished(&world);
    close_world(&world);
    return reached;
}

/* ---- broken originals ------------------------------------------------------------------------ */

static void expect_code(spill_code_t code, spill_code_t expected, const spill_error_t *error)
{
    if (code != expected)
        fail_msg("%s, not %s: %s", spill_code_name(code), spill_code_name(expected),
                 error->message);
}

static void open_all(world_t *world, const staged_goal_t *goal, spill_store_t *store)
{
    open_world(world, goal, store, -1, FAULT_NONE);
    fill(world, 3, 2);
}

static spill_stage_t stage_of(world_t *world)
{
    spill_stage_t stage;
    assert_int_equal(spill_staged_find_stage(&world->staged, &stage, NULL), SPILL_OK);
    return stage;
}

static void edit_original(world_t *world, int owner, int64_t seq, int64_t number)
{
    spill_array_t *array = open_array(world, world->planned.original.name);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = make_element(&storage, number);
    assert_int_equal(spill_array_edit(array, &world->owners[owner], seq, &value, NULL), SPILL_OK);
    bson_destroy(&storage);
    spill_array_close(array);
}

/* Copy all arrays, and let the run fail after it dropped one of the originals. */
static void interrupt_finish(world_t *world)
{
    int64_t failed = 0;
    spill_error_t error;
    until_done(world, run_catch_up);
    world->drops_left = 1;
    expect_code(run_finish(world, &failed, &error), SPILL_IO, &error);
    world->drops_left = -1;
    assert_int_equal(stage_of(world), SPILL_STAGE_DROPPING);
}

void staged_original_is_dropped(const staged_goal_t *goal, spill_store_t *store)
{
    static world_t world;
    spill_error_t error;
    int64_t failed = 0;
    const char *original = world.planned.original.name;
    open_all(&world, goal, store);
    until_done(&world, run_catch_up);
    expect_code(spill_drop_definition(store, NULL, original, &error), SPILL_REFUSED, &error);
    interrupt_finish(&world);
    edit_original(&world, 1, 0, 999);
    expect_code(run_finish(&world, &failed, &error), SPILL_REFUSED, &error);
    assert_non_null(strstr(error.message, "dropping 'planned.original' removes"));
    expect_code(spill_drop_definition(store, NULL, "planned", &error), SPILL_REFUSED, &error);
    expect_code(spill_drop_definition(store, NULL, original, &error), SPILL_OK, &error);
    assert_int_equal(stage_of(&world), SPILL_STAGE_DROPPING);
    expect_code(run_catch_up(&world, &failed, &error), SPILL_REFUSED, &error);
    expect_code(spill_drop_definition(store, NULL, "planned", &error), SPILL_REFUSED, &error);
    expect_code(run_finish(&world, &failed, &error), SPILL_OK, &error);
    check_finished(&world);
    expect_code(spill_drop_definition(store, NULL, "planned", &error), SPILL_OK, &error);
    close_world(&world);
}

/* A program appends to the first owner after it was compared, once. */
static void append_meanwhile(void *context, const spill_copy_result_t *result)
{
    world_t *world = context;
    if (result->verified > 0 && world->options.caught_up != NULL) {
        spill_array_t *array = open_array(world, world->planned.original.name);
        append_one(world, array, 0);
        spill_array_close(array);
        world->options.caught_up = NULL;
    }
}

void staged_writer_continues(const staged_goal_t *goal, spill_store_t *store)
{
    static world_t world;
    spill_error_t error;
    spill_copy_result_t result = {0};
    open_all(&world, goal, store);
    until_done(&world, run_catch_up);
    world.options.caught_up = append_meanwhile;
    assert_int_equal(spill_staged_finish(&world.staged, &world.options, &result, &error),
                     SPILL_REFUSED);
    assert_non_null(strstr(error.message, "programs still append to its arrays (1 more"));
    until_done(&world, run_finish); /* it copies the element first, so nothing was dropped */
    check_finished(&world);
    close_world(&world);
}

void staged_original_vanishes(const staged_goal_t *goal, spill_store_t *store)
{
    static world_t world;
    spill_error_t error;
    int64_t failed = 0;
    const char *original = world.planned.original.name;
    open_all(&world, goal, store);
    interrupt_finish(&world);
    expect_code(spill_store_drop(store, original, &error), SPILL_OK, &error);
    expect_code(spill_import_checkpoints_drop(store, original, &error), SPILL_OK, &error);
    assert_int_equal(stage_of(&world), SPILL_STAGE_DROPPING);
    expect_code(run_catch_up(&world, &failed, &error), SPILL_REFUSED, &error);
    check_array(&world, "planned");
    /* Defined again, an original without any array does not prove that owners were dropped. */
    expect_code(spill_store_define(store, &world.planned.original, &error), SPILL_OK, &error);
    expect_code(run_catch_up(&world, &failed, &error), SPILL_OK, &error);
    assert_int_equal(failed, OWNERS);
    assert_int_equal(world.gone, 0);
    check_array(&world, "planned");
    close_world(&world);
}

void staged_drop_is_broken_off(const staged_goal_t *goal, spill_store_t *store)
{
    static world_t world;
    spill_error_t error;
    int64_t failed = 0;
    open_all(&world, goal, store);
    until_done(&world, run_catch_up);
    edit_original(&world, 0, 2, 999);
    world.drops_left = 0;
    expect_code(run_catch_up(&world, &failed, &error), SPILL_IO, &error);
    world.drops_left = -1;
    edit_original(&world, 0, 2, world.models[0].at[2]);
    until_done(&world, run_finish);
    check_finished(&world);
    spill_array_t *array = open_array(&world, "planned");
    append_one(&world, array, 0);
    assert_int_equal(spill_array_repair(array, NULL, false, NULL, NULL, NULL, NULL), SPILL_OK);
    spill_array_close(array);
    check_array(&world, "planned");
    close_world(&world);
}

void staged_definition_is_another(const staged_goal_t *goal, spill_store_t *store)
{
    static world_t world;
    spill_error_t error;
    int64_t failed = 0;
    open_all(&world, goal, store);
    until_done(&world, run_catch_up);
    strcpy(world.planned.definition.collection, "orders");
    expect_code(run_undo(&world, &failed, &error), SPILL_REFUSED, &error);
    assert_non_null(strstr(error.message, "begun with another plan"));
    strcpy(world.planned.definition.collection, "planned");
    until_done(&world, run_undo);
    check_undone(&world);
    close_world(&world);
}

static void finish_by_another(world_t *world)
{
    world_t other = *world;
    other.faulty = world->store;
    other.staged.store = world->store;
    other.fail_at = other.meet_at = -1;
    until_done(&other, run_finish_all);
}

bool staged_meets_another(const staged_goal_t *goal, spill_store_t *store, int64_t at)
{
    static world_t world;
    spill_error_t error;
    int64_t failed = 0;
    open_all(&world, goal, store);
    world.meet_at = at;
    run_catch_up(&world, &failed, &error); /* it ends in some way */
    bool met = fault_calls(world.faulty) > at;
    world.meet_at = -1;
    if (met) {
        check_array(&world, "planned");
        check_documents(&world, false);
        assert_int_equal(stage_of(&world), SPILL_STAGE_FINISHED);
        assert_int_equal(run_undo(&world, &failed, &error), SPILL_REFUSED);
    }
    close_world(&world);
    return met;
}

void staged_documents_stay(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                           void (*insert)(const char *uri))
{
    static world_t world;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t eve = spill_value_from_utf8(&storage, "eve");
    open_all(&world, goal, store);
    insert(uri);
    until_done(&world, run_catch_up);
    spill_array_t *array = open_array(&world, world.planned.original.name);
    assert_int_equal(spill_array_drop_owner(array, &eve, NULL), SPILL_OK);
    spill_array_close(array);
    until_done(&world, run_catch_up);
    assert_int_equal(world.gone, 1);
    until_done(&world, run_finish);
    check_finished(&world);
    close_world(&world);
    bson_destroy(&storage);
}

void staged_documents_of_others(const staged_goal_t *goal, spill_store_t *store, const char *uri,
                                void (*change)(const char *uri))
{
    static world_t world;
    spill_error_t error;
    spill_copy_result_t result = {0};
    spill_count_t count;
    int64_t failed = 0;
    open_all(&world, goal, store);
    world.staged.uri = uri;
    until_done(&world, run_catch_up);
    change(uri);
    expect_code(run_catch_up(&world, &failed, &error), SPILL_OK, &error);
    assert_int_equal(failed, 2); /* each stage reports ada */
    assert_int_equal(world.gone, 0);
    spill_array_t *array = open_array(&world, "planned");
    assert_int_equal(spill_array_count(array, &world.owners[0], &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 9);
    spill_array_close(array);
    assert_int_equal(spill_staged_finish(&world.staged, &world.options, &result, &error),
                     SPILL_REFUSED);
    assert_non_null(strstr(error.message, "without a head"));
    array = open_array(&world, world.planned.original.name);
    assert_int_equal(spill_array_drop_owner(array, &world.owners[0], NULL), SPILL_OK);
    spill_array_close(array);
    until_done(&world, run_undo);
    assert_int_equal(spill_array_open(store, "planned", &array, NULL), SPILL_NOT_FOUND);
    close_world(&world);
}
