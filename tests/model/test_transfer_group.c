/*
 * Small owners are copied many at a time, into each layout. Each call of the target goes wrong in
 * each way; late requests arrive a few calls later, or after the copy. Nothing is copied twice.
 */
#include "definition/schema.h"
#include "support/effort.h"
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/definition_jobs.h"

#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 5, TRIES = 20, LATE = 3, ELEMENTS = 1 + 2 + 3 + 4 + 5, CAP = 2 };

typedef enum kind { NEWEST, OLDEST, REFERENCE, SUBSET, CAPPED, TOP_N, BUCKET, KINDS } kind_t;

typedef struct world {
    spill_store_t *target; /* with faults */
    int64_t fail_at;
    fault_t fault;
    bool late; /* after the copy */
    int reads, appends, puts, cuts;
    kind_t to;
} world_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const world_t *world = context;
    (void)request;
    return index == world->fail_at ? world->fault : FAULT_NONE;
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    world_t *world = context;
    world->reads += request && request->kind == SPILL_REQUEST_READ;
    world->appends += request && request->kind == SPILL_REQUEST_APPEND;
    world->puts += request && request->kind == SPILL_REQUEST_PUT_PAGE;
    world->cuts += request && request->kind == SPILL_REQUEST_CUT;
    while (!world->late && index > world->fail_at + LATE && fault_pending(world->target) > 0)
        fault_deliver(world->target, 0);
}

static spill_value_t int32_value(const int32_t *number)
{
    return (spill_value_t){
        .data = (const uint8_t *)number, .size_bytes = sizeof *number, .type = BSON_TYPE_INT32};
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_array_t *array;
    spill_error_t error;
    must(spill_array_open(store, name, &array, &error), &error);
    return array;
}

/* Owner i has i + 1 elements, one in each month. */
static void fill(spill_store_t *store)
{
    spill_definition_t definition;
    spill_error_t error;
    must(spill_definition_preset(&definition, "feed-recent", "feed", &error), &error);
    strcpy(definition.time_field, "at");
    must(spill_store_define(store, &definition, &error), &error);
    spill_array_t *array = open_array(store, "feed");
    for (int32_t i = 0; i < OWNERS; i++)
        for (int32_t k = 0; k <= i; k++) {
            spill_value_t owner = int32_value(&i);
            bson_t *element = BCON_NEW("n", BCON_INT32(k), "score", BCON_INT32((k * 3) % 5), "at",
                                       BCON_DATE_TIME((int64_t)k * 31 * 86400 * 1000));
            spill_value_t value = spill_value_from_document(element);
            must(spill_array_append(array, &owner, &value, 1, NULL, NULL, &error), &error);
            bson_destroy(element);
        }
    spill_array_close(array);
}

/* Owner 3 lacks an element between others, owner 4 the first ones. */
static void make_gaps(spill_store_t *store)
{
    int32_t three = 3, four = 4;
    spill_error_t error;
    spill_array_t *array = open_array(store, "feed");
    spill_value_t owner = int32_value(&three);
    must(spill_array_remove(array, &owner, 1, &error), &error);
    owner = int32_value(&four);
    must(spill_array_trim(array, &owner, 2, &error), &error);
    spill_array_close(array);
}

static void make_target(spill_store_t *source, kind_t kind, spill_definition_t *definition)
{
    static const spill_layout_t layouts[KINDS] = {
        [REFERENCE] = SPILL_LAYOUT_REFERENCE, [SUBSET] = SPILL_LAYOUT_SUBSET,
        [CAPPED] = SPILL_LAYOUT_CAPPED,       [TOP_N] = SPILL_LAYOUT_CAPPED,
        [BUCKET] = SPILL_LAYOUT_BUCKET,
    };
    spill_definition_t from;
    spill_error_t error;
    spill_keep_t oldest = SPILL_KEEP_OLDEST;
    must(spill_store_definition(source, "feed", &from, &error), &error);
    must(spill_convert_definition(&from, "other", layouts[kind], kind == OLDEST ? &oldest : NULL,
                                  definition, &error),
         &error);
    if (kind == REFERENCE || kind == SUBSET)
        definition->bounds.threshold = 2;
    if (kind == SUBSET || kind == TOP_N)
        strcpy(definition->sort_field, "score");
    if (kind == CAPPED || kind == TOP_N)
        definition->bounds.threshold = CAP;
    definition->largest = definition->bounds;
}

/* As its user would, repeat the copy until it succeeds. */
static spill_copy_result_t copy_until_done(spill_store_t *source, const world_t *world)
{
    spill_definition_t definition;
    make_target(source, world->to, &definition);
    const spill_copy_options_t options = {.as = "other", .definition = &definition};
    spill_error_t error = {0};
    spill_copy_result_t result = {0};
    spill_code_t code = SPILL_IO;
    for (int i = 0; code != SPILL_OK && i < TRIES; i++) {
        result = (spill_copy_result_t){0};
        code = spill_copy(source, world->target, "feed", &options, &result, &error);
    }
    if (code != SPILL_OK)
        fail_msg("kind %d, %s at call %lld: %s", world->to, fault_name(world->fault),
                 (long long)world->fail_at, error.message);
    return result;
}

static void check_sound(spill_store_t *store)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    spill_array_t *array = open_array(store, "other");
    must(spill_array_verify(array, NULL, NULL, NULL, &summary, &error), &error);
    assert_int_equal(summary.findings, 0);
    spill_array_close(array);
}

/* False: the copy has fewer calls. `verified`: how many elements the target must have. */
static bool survives(kind_t to, int64_t at, fault_t fault, bool late, int64_t verified)
{
    spill_store_t *source = model_store_open(), *inner = model_store_open();
    world_t world = {.fail_at = at, .fault = fault, .late = late, .to = to};
    fault_hooks_t hooks = {.context = &world, .decide = decide, .before = before_call};
    fault_wrap(inner, &hooks, &world.target);
    fill(source);
    make_gaps(source);
    copy_until_done(source, &world);
    bool reached = fault_calls(world.target) > at;
    while (fault_pending(world.target) > 0)
        fault_deliver(world.target, 0);
    spill_copy_result_t result = copy_until_done(source, &world);
    assert_int_equal(result.owners, OWNERS);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.verified, verified);
    check_sound(inner);
    spill_store_close(world.target, NULL);
    spill_store_close(inner, NULL);
    spill_store_close(source, NULL);
    return reached;
}

/* The elements that the target keeps. */
static int64_t kept(kind_t to)
{
    bool capped = to == CAPPED || to == TOP_N;
    return capped ? 1 + 2 + 2 + 2 + 2 : 1 + 2 + 3 + 3 + 3;
}

static void every_call(void **state)
{
    (void)state;
    for (kind_t to = 0; to < KINDS; to++)
        for (int fault = FAULT_FAIL; fault < FAULT_COUNT; fault++)
            for (int late = 0; late < 2; late++) {
                int64_t at = 0;
                while (survives(to, at, (fault_t)fault, late, kept(to)))
                    at += effort(1, 1, 3);
                assert_true(at > OWNERS);
            }
}

/* How often a group makes a head, and puts an element's document. */
static int heads_of(kind_t to)
{
    return to == BUCKET ? ELEMENTS : OWNERS;
}

static int puts_of(kind_t to)
{
    return to == REFERENCE || to == SUBSET ? ELEMENTS - 1 : 0; /* one journal is short */
}

/*
 * The requests of a group: a read of each head before, an append, a read after; with referenced
 * elements also the documents, the cut of the journal, and another read.
 */
static void no_owner_is_copied_alone(void **state)
{
    (void)state;
    for (kind_t to = 0; to < KINDS; to++) {
        spill_store_t *source = model_store_open(), *inner = model_store_open();
        world_t world = {.fail_at = -1, .to = to};
        fault_hooks_t hooks = {.context = &world, .before = before_call};
        fault_wrap(inner, &hooks, &world.target);
        fill(source);
        copy_until_done(source, &world);
        assert_int_equal(world.appends, heads_of(to));
        assert_int_equal(world.puts, puts_of(to));
        assert_int_equal(world.cuts, puts_of(to) > 0 ? OWNERS - 1 : 0);
        int journals = puts_of(to) > 0; /* their documents are read, and the heads once more */
        if (!journals)
            assert_int_equal(world.reads, 2 * heads_of(to));
        assert_in_range(world.reads, 2 * heads_of(to), (2 + 3 * journals) * heads_of(to));
        int reads = world.reads;
        spill_copy_result_t result = copy_until_done(source, &world);
        assert_int_equal(result.elements, 0);
        assert_int_equal(result.differences, 0);
        assert_int_equal(world.appends, heads_of(to));
        if (!journals) /* a top-N may refuse elements: the check before the copy reads heads, too */
            assert_int_equal(world.reads, reads + (1 + (to == TOP_N)) * heads_of(to));
        check_sound(inner);
        spill_store_close(world.target, NULL);
        spill_store_close(inner, NULL);
        spill_store_close(source, NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_owner_is_copied_alone),
        cmocka_unit_test(every_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
