/*
 * Random operations on two embedded stores, one with a tail cache and one without. Both must answer
 * alike. The caches are so small that they evict entries, and some writes of the first store fail.
 */
#include "simulation/random.h"
#include "store/embedded/embedded.h"
#include "support/effort.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 8, STEPS = 400, BATCH_MAX = 12, CACHED = 0, PLAIN = 1 };

typedef struct pair {
    sim_random_t random;
    bool appends_to_head; /* an append is one write, unless it spills */
    disk_t *disks[2];
    spill_store_t *stores[2];
    spill_array_t *arrays[2];
    int64_t ends[OWNERS]; /* numbers given */
    char names[OWNERS][24];
    bson_t storage[OWNERS];
    spill_value_t owners[OWNERS];
} pair_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* ---- the stores ------------------------------------------------------------------------------ */

typedef struct plan {
    const char *preset;
    bool capped;
    const char *sort_field; /* of a top-N; or "" */
    const char *id_field;
} plan_t;

static void open_store(pair_t *pair, int side, int64_t cache_bytes, const plan_t *plan)
{
    spill_store_options_t options;
    spill_definition_t definition;
    spill_error_t error;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    options.cache_bytes = cache_bytes;
    pair->disks[side] = disk_new();
    expect_ok(spill_embedded_open_kv(disk_open(pair->disks[side]), "memory", &options,
                                     &pair->stores[side], &error),
              &error);
    expect_ok(spill_definition_preset(&definition, plan->preset, "feed", &error), &error);
    definition.bounds.threshold = 40;
    definition.bounds.page_capacity = 20;
    if (plan->capped)
        spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    snprintf(definition.sort_field, sizeof definition.sort_field, "%s", plan->sort_field);
    snprintf(definition.id_field, sizeof definition.id_field, "%s", plan->id_field);
    expect_ok(spill_store_define(pair->stores[side], &definition, &error), &error);
    expect_ok(spill_array_open(pair->stores[side], "feed", &pair->arrays[side], &error), &error);
}

static void open_pair(pair_t *pair, uint64_t seed, const plan_t *plan)
{
    memset(pair, 0, sizeof *pair);
    pair->random.state = seed;
    pair->appends_to_head = strcmp(plan->preset, "feed") != 0;
    open_store(pair, CACHED, sim_random_between(&pair->random, 8, 300) * 1024, plan);
    open_store(pair, PLAIN, 0, plan);
    for (int i = 0; i < OWNERS; i++) {
        snprintf(pair->names[i], sizeof pair->names[i], "owner %d", i);
        bson_init(&pair->storage[i]);
        pair->owners[i] = spill_value_from_utf8(&pair->storage[i], pair->names[i]);
    }
}

static void close_pair(pair_t *pair)
{
    for (int side = 0; side < 2; side++) {
        spill_array_close(pair->arrays[side]);
        embedded_close(pair->stores[side]);
        disk_free(pair->disks[side]);
    }
    for (int i = 0; i < OWNERS; i++)
        bson_destroy(&pair->storage[i]);
}

/* ---- operations ------------------------------------------------------------------------------ */

static bson_t *new_element(pair_t *pair)
{
    static const uint8_t padding[600] = {0};
    int size = sim_random_chance(&pair->random, 100)
                   ? sim_random_below(&pair->random, (int)sizeof padding)
                   : sim_random_below(&pair->random, 60);
    bson_t *element = BCON_NEW("rating", BCON_INT32(sim_random_below(&pair->random, 100)));
    BSON_APPEND_BINARY(element, "padding", BSON_SUBTYPE_BINARY, padding, (uint32_t)size);
    return element;
}

static spill_value_t value_of(const bson_t *element)
{
    return (spill_value_t){
        .data = bson_get_data(element), .size_bytes = element->len, .type = BSON_TYPE_DOCUMENT};
}

/*
 * Let the next write of the first store fail. The step is repeated if it had no effect: *applied
 * says what the failure does.
 */
static bool fail_write(pair_t *pair, bool *applied)
{
    if (!pair->appends_to_head || !sim_random_chance(&pair->random, 50))
        return false;
    *applied = sim_random_chance(&pair->random, 300);
    disk_fail_writes(pair->disks[CACHED], 0, 1, *applied ? SPILL_UNKNOWN : SPILL_NO_SPACE);
    return true;
}

static void append(pair_t *pair, int owner)
{
    spill_value_t elements[BATCH_MAX];
    bson_t *documents[BATCH_MAX];
    int count =
        sim_random_chance(&pair->random, 600) ? 1 : sim_random_between(&pair->random, 1, BATCH_MAX);
    spill_append_result_t results[2];
    spill_error_t error;
    bool applied = false;
    for (int i = 0; i < count; i++) {
        documents[i] = new_element(pair);
        elements[i] = value_of(documents[i]);
    }
    if (count == 1 && fail_write(pair, &applied)) {
        spill_code_t code = spill_array_append(pair->arrays[CACHED], &pair->owners[owner], elements,
                                               1, NULL, &results[CACHED], &error);
        assert_int_equal(code, applied ? SPILL_UNKNOWN : SPILL_NO_SPACE);
    }
    for (int side = applied ? PLAIN : CACHED; side <= PLAIN; side++) {
        expect_ok(spill_array_append(pair->arrays[side], &pair->owners[owner], elements,
                                     (size_t)count, NULL, &results[side], &error),
                  &error);
        pair->ends[owner] = results[side].first + results[side].count;
    }
    if (!applied)
        assert_int_equal(results[CACHED].first, results[PLAIN].first);
    for (int i = 0; i < count; i++)
        bson_destroy(documents[i]);
}

static int64_t random_seq(pair_t *pair, int owner)
{
    int64_t end = pair->ends[owner];
    int64_t back = sim_random_chance(&pair->random, 500) ? 15 : end; /* often a new element */
    int64_t seq = end - 1 - sim_random_below(&pair->random, (int)back + 2);
    return seq < 0 ? 0 : seq;
}

static void edit(pair_t *pair, int owner)
{
    bson_t *document = new_element(pair);
    spill_value_t element = value_of(document);
    int64_t seq = random_seq(pair, owner);
    spill_error_t error;
    spill_code_t codes[2];
    for (int side = 0; side < 2; side++)
        codes[side] =
            spill_array_edit(pair->arrays[side], &pair->owners[owner], seq, &element, &error);
    assert_int_equal(codes[CACHED], codes[PLAIN]);
    bson_destroy(document);
}

static void remove_one(pair_t *pair, int owner)
{
    int64_t seq = random_seq(pair, owner);
    spill_error_t error;
    spill_code_t codes[2];
    for (int side = 0; side < 2; side++)
        codes[side] = spill_array_remove(pair->arrays[side], &pair->owners[owner], seq, &error);
    assert_int_equal(codes[CACHED], codes[PLAIN]);
}

static void trim(pair_t *pair, int owner)
{
    int64_t below = random_seq(pair, owner);
    spill_error_t error;
    spill_code_t codes[2];
    for (int side = 0; side < 2; side++)
        codes[side] = spill_array_trim(pair->arrays[side], &pair->owners[owner], below, &error);
    assert_int_equal(codes[CACHED], codes[PLAIN]);
}

static void update_fields(pair_t *pair, int owner)
{
    bson_t *update =
        BCON_NEW("$set", "{", "name", BCON_INT32(sim_random_below(&pair->random, 9)), "}");
    spill_error_t error;
    for (int side = 0; side < 2; side++)
        expect_ok(spill_array_update(pair->arrays[side], &pair->owners[owner], update, &error),
                  &error);
    bson_destroy(update);
}

static void drop(pair_t *pair, int owner)
{
    spill_error_t error;
    spill_code_t codes[2];
    for (int side = 0; side < 2; side++)
        codes[side] = spill_array_drop_owner(pair->arrays[side], &pair->owners[owner], &error);
    assert_int_equal(codes[CACHED], codes[PLAIN]);
    pair->ends[owner] = 0;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void compare_slices(const spill_slice_t *left, const spill_slice_t *right)
{
    assert_int_equal(left->count, right->count);
    assert_int_equal(left->more, right->more);
    assert_int_equal(left->next, right->next);
    for (size_t i = 0; i < left->count; i++) {
        assert_int_equal(left->elements[i].seq, right->elements[i].seq);
        assert_true(spill_value_equal(&left->elements[i].value, &right->elements[i].value));
    }
}

static void compare_reads(pair_t *pair, int owner)
{
    spill_read_options_t options;
    spill_slice_t *slices[2];
    spill_error_t error;
    sim_random_t *random = &pair->random;
    spill_read_options_init(&options);
    options.limit = sim_random_between(random, 1, sim_random_chance(random, 200) ? 90 : 12);
    if (sim_random_chance(random, 100))
        options.order = SPILL_OLDEST_FIRST;
    if (sim_random_chance(random, 200))
        options.before = random_seq(pair, owner);
    if (sim_random_chance(random, 100))
        options.skip = sim_random_below(random, 20);
    for (int side = 0; side < 2; side++)
        expect_ok(spill_array_read(pair->arrays[side], &pair->owners[owner], &options,
                                   &slices[side], &error),
                  &error);
    compare_slices(slices[CACHED], slices[PLAIN]);
    spill_slice_free(slices[CACHED]);
    spill_slice_free(slices[PLAIN]);
}

static void compare_counts(pair_t *pair, int owner)
{
    spill_count_t counts[2];
    spill_error_t error;
    for (int side = 0; side < 2; side++)
        expect_ok(
            spill_array_count(pair->arrays[side], &pair->owners[owner], &counts[side], &error),
            &error);
    assert_int_equal(counts[CACHED].exists, counts[PLAIN].exists);
    assert_int_equal(counts[CACHED].count, counts[PLAIN].count);
    assert_int_equal(counts[CACHED].head, counts[PLAIN].head);
}

/* ---- the test -------------------------------------------------------------------------------- */

static void take_step(pair_t *pair)
{
    int owner = sim_random_below(&pair->random, OWNERS);
    int what = sim_random_below(&pair->random, 100);
    if (what < 30)
        append(pair, owner);
    else if (what < 36)
        edit(pair, owner);
    else if (what < 42)
        remove_one(pair, owner);
    else if (what < 44)
        trim(pair, owner);
    else if (what < 46)
        update_fields(pair, owner);
    else if (what < 47)
        drop(pair, owner);
    else if (what < 52)
        compare_counts(pair, owner);
    else
        compare_reads(pair, owner);
    compare_reads(pair, owner);
}

static void play(const plan_t *plan)
{
    int64_t seeds = effort(2000, 60, 10);
    int64_t hits = 0;
    for (int64_t seed = 1; seed <= seeds; seed++) {
        pair_t pair;
        spill_counters_t counters;
        open_pair(&pair, (uint64_t)seed, plan);
        for (int step = 0; step < STEPS; step++)
            take_step(&pair);
        spill_store_counters(pair.stores[CACHED], &counters);
        hits += counters.tail_hits;
        assert_true(counters.tail_misses > 0);
        spill_store_counters(pair.stores[PLAIN], &counters);
        assert_int_equal(counters.tail_hits, 0);
        close_pair(&pair);
    }
    assert_true(hits > seeds * STEPS / 10);
}
static void keep_newest(void **state)
{
    (void)state;
    play(&(plan_t){"feed-recent", false, "", ""});
}

static void keep_newest_with_ids(void **state)
{
    (void)state;
    play(&(plan_t){"feed-recent", false, "", "rating"});
}

static void keep_oldest(void **state)
{
    (void)state;
    play(&(plan_t){"feed", false, "", ""});
}

static void capped(void **state)
{
    (void)state;
    play(&(plan_t){"feed-recent", true, "", ""});
}

static void capped_top_n(void **state)
{
    (void)state;
    play(&(plan_t){"feed-recent", true, "rating", ""});
}

static void referenced(void **state)
{
    (void)state;
    play(&(plan_t){"reviews-separate", false, "", ""});
}

static void subset(void **state)
{
    (void)state;
    play(&(plan_t){"reviews-subset", false, "rating", ""});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_newest),  cmocka_unit_test(keep_newest_with_ids),
        cmocka_unit_test(keep_oldest),  cmocka_unit_test(capped),
        cmocka_unit_test(capped_top_n), cmocka_unit_test(referenced),
        cmocka_unit_test(subset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
