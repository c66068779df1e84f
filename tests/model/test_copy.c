/*
 * Copies between stores: numbers, elements, other fields. In other tests the k-th call fails, is
 * answered late or twice, or another copy overtakes it, for every k.
 */
#include "model/model.h"
#include "model/trouble.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/definition_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define NAME "events"

enum { OWNERS = 6, ELEMENTS = 23, TRIES = 4, AT_THE_END = 1000000 };

/* ---- arrays ---------------------------------------------------------------------------------- */

static void close_store(spill_store_t *store)
{
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static spill_array_t *open_array(spill_store_t *store)
{
    spill_array_t *array;
    assert_int_equal(spill_array_open(store, NAME, &array, NULL), SPILL_OK);
    return array;
}

static void define(spill_store_t *store, spill_keep_t keep, int64_t threshold, int64_t page)
{
    spill_definition_t definition;
    spill_definition_init(&definition, NAME);
    definition.keep = keep;
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = page;
    definition.op_window = 3;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
}

static void append(spill_array_t *array, const spill_value_t *owner, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        spill_value_t value = model_value((int)(i % model_kinds()));
        assert_int_equal(spill_array_append(array, owner, &value, 1, NULL, NULL, NULL), SPILL_OK);
    }
}

static void set_fields(spill_array_t *array, const spill_value_t *owner, int32_t number)
{
    bson_t *update = BCON_NEW("$set", "{", "name", "n", "number", BCON_INT32(number), "}");
    assert_int_equal(spill_array_update(array, owner, update, NULL), SPILL_OK);
    bson_destroy(update);
}

static void remove_numbers(spill_array_t *array, const spill_value_t *owner, const int64_t *seqs)
{
    for (; *seqs >= 0; seqs++)
        assert_int_equal(spill_array_remove(array, owner, *seqs, NULL), SPILL_OK);
}

/* Create owners of every kind: whole, with numbers removed, trimmed, emptied, without elements. */
static void fill(spill_store_t *store)
{
    spill_array_t *array = open_array(store);
    bson_t storage = BSON_INITIALIZER;
    for (int64_t i = 0; i < OWNERS; i++) {
        spill_value_t owner = spill_value_from_int64(&storage, i);
        if (i >= 4)
            set_fields(array, &owner, (int32_t)i);
        if (i != 4)
            append(array, &owner, ELEMENTS);
        if (i == 1)
            remove_numbers(array, &owner, (const int64_t[]){1, 0, 7, 12, 13, 22, -1});
        if (i == 2)
            assert_int_equal(spill_array_trim(array, &owner, 9, NULL), SPILL_OK);
        if (i == 2)
            remove_numbers(array, &owner, (const int64_t[]){9, 11, -1});
        if (i == 3)
            assert_int_equal(spill_array_trim(array, &owner, ELEMENTS, NULL), SPILL_OK);
    }
    bson_destroy(&storage);
    spill_array_close(array);
}

static spill_code_t copy(spill_store_t *source, spill_store_t *target, spill_copy_result_t *result)
{
    spill_error_t error;
    spill_copy_options_t options = {.context = NULL};
    *result = (spill_copy_result_t){0};
    return spill_copy(source, target, NAME, &options, result, &error);
}

/* ---- comparing source and target ------------------------------------------------------------- */

static bool collect_element(void *context, const spill_value_t *owner,
                            const spill_element_t *element)
{
    bson_t *all = context;
    char key[24];
    (void)owner;
    snprintf(key, sizeof key, "%lld", (long long)element->seq);
    return spill_value_append(&element->value, all, key);
}

static bool collect_fields(void *context, const char *collection, const bson_t *document)
{
    bson_t *all = context;
    (void)collection;
    bson_copy_to_excluding_noinit(document, all, "activities", "activityCount", "hasOverflow",
                                  "overflowPages", NULL);
    return false; /* the head comes first */
}

typedef struct sides {
    spill_array_t *source;
    spill_array_t *target;
} sides_t;

static bool check_owner(void *context, const spill_value_t *owner)
{
    const sides_t *sides = context;
    spill_array_t *arrays[] = {sides->source, sides->target};
    bson_t elements[2] = {BSON_INITIALIZER, BSON_INITIALIZER};
    bson_t fields[2] = {BSON_INITIALIZER, BSON_INITIALIZER};
    spill_count_t counts[2];
    for (int i = 0; i < 2; i++) {
        assert_int_equal(spill_array_count(arrays[i], owner, &counts[i], NULL), SPILL_OK);
        assert_int_equal(spill_array_export(arrays[i], owner, collect_element, &elements[i], NULL),
                         SPILL_OK);
        if (counts[i].exists)
            assert_int_equal(
                spill_array_documents(arrays[i], owner, true, collect_fields, &fields[i], NULL),
                SPILL_CANCELLED);
        model_check_verify(arrays[i], owner);
    }
    assert_true(bson_equal(&elements[0], &elements[1]));
    assert_true(bson_equal(&fields[0], &fields[1]));
    assert_int_equal(counts[0].count, counts[1].count);
    assert_int_equal(counts[0].next, counts[1].next);
    for (int i = 0; i < 2; i++) {
        bson_destroy(&elements[i]);
        bson_destroy(&fields[i]);
    }
    return true;
}

static void check_same_arrays(sides_t sides)
{
    assert_int_equal(spill_array_owners(sides.source, check_owner, &sides, NULL), SPILL_OK);
    spill_array_close(sides.source);
    spill_array_close(sides.target);
}

static void check_same(spill_store_t *source, spill_store_t *target)
{
    check_same_arrays((sides_t){open_array(source), open_array(target)});
}

/* ---- without faults -------------------------------------------------------------------------- */

static void copy_and_check(spill_store_t *source, spill_store_t *target)
{
    spill_copy_result_t result;
    const int64_t elements = ELEMENTS + 17 + 12 + ELEMENTS;
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.owners, OWNERS);
    assert_int_equal(result.elements, elements);
    assert_int_equal(result.before, 0);
    assert_int_equal(result.verified, elements);
    assert_int_equal(result.differences, 0);
    check_same(source, target);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.before, elements);
    assert_int_equal(result.verified, elements);
}

/*
 * Append to the source and set fields there after the copy; the next copy transfers both. The
 * target lacks the appends of `times` rounds.
 */
static void grow_and_copy(spill_store_t *source, spill_store_t *target, int times)
{
    spill_copy_result_t result;
    spill_array_t *array = open_array(source);
    bson_t storage = BSON_INITIALIZER;
    for (int64_t i = 1; i < OWNERS + 1; i++) {
        spill_value_t owner = spill_value_from_int64(&storage, i);
        append(array, &owner, i);
        set_fields(array, &owner, 77);
    }
    spill_array_close(array);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.owners, OWNERS + 1);
    assert_int_equal(result.elements, times * OWNERS * (OWNERS + 1) / 2);
    assert_int_equal(result.differences, 0);
    check_same(source, target);
    bson_destroy(&storage);
}

static void from_store_to_store(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        disk_t *disk = disk_new();
        spill_store_t *stores[] = {model_store_open(), embedded_on_disk(disk, SPILL_DURABILITY_LOG),
                                   model_store_open()};
        define(stores[0], keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, 3, 4);
        fill(stores[0]);
        copy_and_check(stores[0], stores[1]);
        copy_and_check(stores[1], stores[2]);
        grow_and_copy(stores[0], stores[1], 1);
        grow_and_copy(stores[1], stores[2], 2);
        close_store(stores[0]);
        embedded_close(stores[1]);
        close_store(stores[2]);
        disk_free(disk);
    }
}

/* With keep oldest, the documents of the target are as full as possible. */
static void check_full(spill_store_t *target, int64_t threshold, int64_t page)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 0);
    spill_array_t *array = open_array(target);
    spill_count_t count;
    assert_int_equal(spill_array_count(array, &owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.head, threshold < ELEMENTS ? threshold : ELEMENTS);
    assert_int_equal(count.pages, (ELEMENTS - count.head + page - 1) / page);
    spill_array_close(array);
    bson_destroy(&storage);
}

static void other_bounds(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 2, 7, 100};
    for (size_t i = 0; i < 32; i++) {
        spill_store_t *source = model_store_open(), *target = model_store_open();
        spill_keep_t keep = i < 16 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST;
        define(source, keep, sizes[i % 16 / 4], sizes[i % 4]);
        define(target, keep, sizes[i % 4], sizes[3 - i % 16 / 4]);
        fill(source);
        copy_and_check(source, target);
        if (keep == SPILL_KEEP_OLDEST)
            check_full(target, sizes[i % 4], sizes[3 - i % 16 / 4]);
        close_store(source);
        close_store(target);
    }
}

/* ---- to another layout within a store -------------------------------------------------------- */

static spill_code_t convert(spill_store_t *store, const char *as, spill_copy_result_t *result)
{
    spill_copy_options_t options = {.as = as};
    *result = (spill_copy_result_t){0};
    return spill_convert(store, NAME, &options, result, NULL);
}

static void convert_and_check(spill_store_t *store, const char *as)
{
    spill_copy_result_t result;
    assert_int_equal(convert(store, as, &result), SPILL_OK);
    assert_int_equal(result.owners, OWNERS);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.verified, ELEMENTS + 17 + 12 + ELEMENTS);
    sides_t sides = {.source = open_array(store)};
    assert_int_equal(spill_array_open(store, as, &sides.target, NULL), SPILL_OK);
    check_same_arrays(sides);
}

static void define_converted(spill_store_t *store, const char *as, spill_keep_t keep, bool beside)
{
    spill_definition_t from, definition;
    assert_int_equal(spill_store_definition(store, NAME, &from, NULL), SPILL_OK);
    assert_int_equal(
        spill_convert_definition(&from, as, SPILL_LAYOUT_OUTLIER, &keep, &definition, NULL),
        SPILL_OK);
    if (beside) { /* in the same heads */
        strcpy(definition.collection, from.collection);
        strcpy(definition.array, "acts");
        strcpy(definition.count_field, "");
        strcpy(definition.overflow_field, "");
        strcpy(definition.pages_field, "");
    }
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
}

static void within_a_store(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        disk_t *disk = disk_new();
        spill_store_t *stores[] = {model_store_open(),
                                   embedded_on_disk(disk, SPILL_DURABILITY_LOG)};
        for (int i = 0; i < 2; i++) {
            spill_store_t *store = stores[i];
            spill_copy_result_t result;
            define(store, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, 3, 4);
            fill(store);
            define_converted(store, "other", keep ? SPILL_KEEP_OLDEST : SPILL_KEEP_NEWEST, false);
            convert_and_check(store, "other");
            assert_int_equal(convert(store, NAME, &result), SPILL_INVALID);
            assert_int_equal(convert(store, "none", &result), SPILL_NOT_FOUND);
        }
        close_store(stores[0]);
        embedded_close(stores[1]);
        disk_free(disk);
    }
}

/* Two arrays in one head: the application's fields already exist there. */
static void within_the_heads(void **state)
{
    (void)state;
    spill_store_t *store = model_store_open();
    spill_copy_result_t result;
    define(store, SPILL_KEEP_NEWEST, 3, 4);
    fill(store);
    define_converted(store, "other", SPILL_KEEP_OLDEST, true);
    assert_int_equal(convert(store, "other", &result), SPILL_OK);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.verified, ELEMENTS + 17 + 12 + ELEMENTS);
    close_store(store);
}

static void finishes(void **state)
{
    (void)state;
    spill_store_t *store = model_store_open(), *copied = model_store_open();
    spill_copy_options_t options = {.as = "other"};
    spill_copy_result_t result;
    spill_error_t error;
    define(store, SPILL_KEEP_NEWEST, 3, 4);
    fill(store);
    assert_int_equal(copy(store, copied, &result), SPILL_OK);
    define_converted(store, "other", SPILL_KEEP_OLDEST, false);
    assert_int_equal(convert(store, "other", &result), SPILL_OK);
    spill_array_t *array = open_array(store);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 0);
    assert_int_equal(spill_array_remove(array, &owner, 5, NULL), SPILL_OK);
    assert_int_equal(spill_convert_finish(store, NAME, &options, &result, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "1 of its owners"));
    spill_array_close(array);
    assert_int_equal(spill_array_open(store, "other", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_remove(array, &owner, 5, NULL), SPILL_OK);
    spill_array_close(array);
    assert_int_equal(spill_convert_finish(store, NAME, &options, &result, &error), SPILL_OK);
    assert_int_equal(spill_array_open(store, NAME, &array, NULL), SPILL_NOT_FOUND);
    array = open_array(copied);
    assert_int_equal(spill_array_remove(array, &owner, 5, NULL), SPILL_OK);
    sides_t sides = {.source = array};
    assert_int_equal(spill_array_open(store, "other", &sides.target, NULL), SPILL_OK);
    check_same_arrays(sides);
    bson_destroy(&storage);
    close_store(store);
    close_store(copied);
}

/* An array longer than a batch, with gaps of all lengths. This test does not measure memory. */
static void long_arrays(void **state)
{
    (void)state;
    spill_store_t *source = model_store_open(), *target = model_store_open();
    define(source, SPILL_KEEP_NEWEST, 500, 300);
    spill_array_t *array = open_array(source);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "long");
    append(array, &owner, 5000);
    for (int64_t seq = 1100; seq < 2400; seq++)
        remove_numbers(array, &owner, (const int64_t[]){seq, -1});
    spill_value_t other = spill_value_from_utf8(&storage, "trimmed");
    append(array, &other, 4000);
    assert_int_equal(spill_array_trim(array, &other, 3500, NULL), SPILL_OK);
    spill_array_close(array);
    spill_copy_result_t result;
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, 3700 + 500);
    assert_int_equal(result.verified, 3700 + 500);
    check_same(source, target);
    bson_destroy(&storage);
    close_store(source);
    close_store(target);
}

/* ---- differences ----------------------------------------------------------------------------- */

typedef struct seen {
    int owners;
    spill_copy_difference_t last;
} seen_t;

static void note_difference(void *context, const spill_copy_difference_t *difference)
{
    seen_t *seen = context;
    assert_string_equal(difference->definition, NAME);
    seen->owners++;
    seen->last = *difference;
}

/* Copy again, twice: each time exactly one owner differs, first at `seq`, in `count` numbers. */
static void assert_one_difference(spill_store_t *source, spill_store_t *target, int64_t seq,
                                  int64_t count)
{
    for (int i = 0; i < 2; i++) {
        seen_t seen = {0};
        spill_copy_options_t options = {.differs = note_difference, .context = &seen};
        spill_copy_result_t result = {0};
        assert_int_equal(spill_copy(source, target, NAME, &options, &result, NULL), SPILL_OK);
        assert_int_equal(seen.owners, 1);
        assert_int_equal(result.differences, 1);
        assert_int_equal(seen.last.seq, seq);
        assert_int_equal(seen.last.count, count);
    }
}

typedef struct pair {
    spill_store_t *source, *target;
    spill_array_t *here, *there;
    bson_t storage;
    spill_value_t owner;
} pair_t;

/* A store and its copy; all later changes are made in owner 0. */
static void pair_start(pair_t *pair, spill_keep_t keep)
{
    spill_copy_result_t result;
    pair->source = model_store_open();
    pair->target = model_store_open();
    define(pair->source, keep, 3, 4);
    fill(pair->source);
    assert_int_equal(copy(pair->source, pair->target, &result), SPILL_OK);
    pair->here = open_array(pair->source);
    pair->there = open_array(pair->target);
    bson_init(&pair->storage);
    pair->owner = spill_value_from_int64(&pair->storage, 0);
}

static void pair_end(pair_t *pair)
{
    bson_destroy(&pair->storage);
    spill_array_close(pair->here);
    spill_array_close(pair->there);
    close_store(pair->source);
    close_store(pair->target);
}

static void reports_differences(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        pair_t pair;
        pair_start(&pair, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST);
        spill_value_t value = spill_value_from_utf8(&pair.storage, "edited");
        pair.owner = model_value(0); /* an owner of its own, created in both */
        append(pair.here, &pair.owner, 9);
        spill_copy_result_t result;
        assert_int_equal(copy(pair.source, pair.target, &result), SPILL_OK);
        assert_int_equal(spill_array_edit(pair.here, &pair.owner, 5, &value, NULL), SPILL_OK);
        assert_one_difference(pair.source, pair.target, 5, 1);
        remove_numbers(pair.here, &pair.owner, (const int64_t[]){2, -1});
        assert_one_difference(pair.source, pair.target, 2, 2);
        remove_numbers(pair.there, &pair.owner, (const int64_t[]){2, 1, -1});
        assert_one_difference(pair.source, pair.target, 1, 2);
        /* After the difference nothing is appended to the target. */
        append(pair.here, &pair.owner, 1);
        assert_one_difference(pair.source, pair.target, 1, 3);
        assert_int_equal(spill_array_drop_owner(pair.there, &pair.owner, NULL), SPILL_OK);
        assert_int_equal(copy(pair.source, pair.target, &result), SPILL_OK);
        assert_int_equal(result.differences, 0);
        check_same(pair.source, pair.target);
        append(pair.there, &pair.owner, 1);
        assert_one_difference(pair.source, pair.target, 10, 2);
        pair_end(&pair);
    }
}

static void refuses_another_definition(void **state)
{
    (void)state;
    spill_store_t *source = model_store_open(), *target = model_store_open();
    spill_copy_options_t options = {.bounds.page_capacity = 9};
    spill_copy_result_t result = {0};
    spill_definition_t definition;
    spill_error_t error;
    define(source, SPILL_KEEP_NEWEST, 3, 4);
    define(target, SPILL_KEEP_OLDEST, 3, 4);
    fill(target);
    assert_int_equal(spill_copy(source, target, NAME, &options, &result, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "target: "));
    assert_non_null(strstr(error.message, "keep"));
    assert_int_equal(spill_copy(source, target, "none", &options, &result, &error),
                     SPILL_NOT_FOUND);
    assert_non_null(strstr(error.message, "source: "));
    assert_int_equal(spill_copy(target, source, NAME, &options, &result, &error), SPILL_REFUSED);
    close_store(target);
    target = model_store_open();
    assert_int_equal(spill_copy(source, target, NAME, &options, &result, &error), SPILL_OK);
    assert_int_equal(spill_store_definition(target, NAME, &definition, &error), SPILL_OK);
    assert_int_equal(definition.bounds.page_capacity, 9);
    assert_int_equal(definition.bounds.threshold, 3);
    close_store(source);
    close_store(target);
}

/* Two arrays in the same heads are copied by their own names. */
static void leaves_other_definitions_alone(void **state)
{
    (void)state;
    pair_t pair;
    spill_copy_result_t result;
    pair_start(&pair, SPILL_KEEP_NEWEST);
    spill_definition_t other;
    spill_definition_init(&other, "other");
    strcpy(other.array, "name"); /* in the source, that is a field of the application */
    strcpy(other.count_field, "");
    strcpy(other.overflow_field, "");
    strcpy(other.pages_field, "");
    strcpy(other.page_collection, "otherPages");
    assert_int_equal(spill_store_define(pair.target, &other, NULL), SPILL_OK);
    spill_value_t owner = spill_value_from_int64(&pair.storage, 5);
    spill_array_t *array;
    assert_int_equal(spill_array_open(pair.target, "other", &array, NULL), SPILL_OK);
    spill_array_close(array);
    set_fields(pair.here, &owner, 1000);
    bson_t *update = BCON_NEW("$set", "{", "name", "another", "}");
    assert_int_equal(spill_array_update(pair.here, &owner, update, NULL), SPILL_OK);
    bson_destroy(update);
    assert_int_equal(copy(pair.source, pair.target, &result), SPILL_OK);
    assert_int_equal(result.differences, 1);
    pair_end(&pair);
}

/* ---- faults ---------------------------------------------------------------------------------- */

/* Return false if the copy made at most trouble->at calls. */
static bool survives(spill_store_t *source, trouble_t *trouble)
{
    fault_hooks_t hooks = trouble_hooks(trouble);
    spill_store_t *target = model_store_open();
    spill_copy_result_t result;
    fault_wrap(target, &hooks, &trouble->store);
    spill_code_t code = copy(source, trouble->store, &result);
    for (int i = 0; code != SPILL_OK && i < TRIES; i++) {
        assert_true(code == SPILL_UNKNOWN || code == SPILL_IO);
        code = copy(source, trouble->store, &result);
    }
    assert_int_equal(code, SPILL_OK);
    assert_int_equal(result.differences, 0);
    while (fault_pending(trouble->store) > 0)
        fault_deliver(trouble->store, 0);
    bool reached = fault_calls(trouble->store) > trouble->at;
    spill_store_close(trouble->store, NULL);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.differences, 0);
    check_same(source, target);
    close_store(target);
    return reached;
}

static void every_call_goes_wrong(void **state)
{
    (void)state;
    static const trouble_t troubles[] = {
        {.fault = FAULT_FAIL},
        {.fault = FAULT_LOST_APPLIED},
        {.fault = FAULT_LOST_UNAPPLIED},
        {.fault = FAULT_LOST_DELAYED, .delay = 1},
        {.fault = FAULT_LOST_DELAYED, .delay = 3},
        {.fault = FAULT_LOST_DELAYED, .delay = 12},
        {.fault = FAULT_LOST_DELAYED, .delay = AT_THE_END},
        {.fault = FAULT_DUPLICATE, .delay = 1},
        {.fault = FAULT_DUPLICATE, .delay = 7},
        {.fault = FAULT_DUPLICATE, .delay = AT_THE_END},
    };
    const int64_t step = effort(1, 5, 13);
    for (int keep = 0; keep < 2; keep++) {
        spill_store_t *source = model_store_open();
        define(source, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, 3, 4);
        fill(source);
        for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
            trouble_t trouble = troubles[i];
            trouble.at = ((int64_t)i + keep) % step;
            while (survives(source, &trouble))
                trouble.at += step;
            assert_true(trouble.at > 100);
        }
        close_store(source);
    }
}

/* ---- two copies at once ---------------------------------------------------------------------- */

/* Before call `at` of one copy, another one runs until its own call `dies` fails, or to its end. */
typedef struct race {
    spill_store_t *source;
    spill_store_t *target;
    int64_t at;
    int64_t dies;
    bool grow; /* append to the source between the two */
} race_t;

static void overtake(void *context, int64_t index, const spill_request_t *request)
{
    const race_t *race = context;
    (void)request;
    if (index != race->at)
        return;
    if (race->grow) {
        spill_array_t *array = open_array(race->source);
        bson_t storage = BSON_INITIALIZER;
        for (int64_t i = 0; i < OWNERS; i++) {
            spill_value_t owner = spill_value_from_int64(&storage, i);
            append(array, &owner, 1);
        }
        bson_destroy(&storage);
        spill_array_close(array);
    }
    fault_once_t once = {.at = race->dies, .fault = FAULT_FAIL};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *other;
    spill_copy_result_t result;
    fault_wrap(race->target, &hooks, &other);
    copy(race->source, other, &result);
    spill_store_close(other, NULL);
}

static bool survives_race(spill_keep_t keep, race_t *race)
{
    fault_hooks_t hooks = {.context = race, .before = overtake};
    spill_store_t *one;
    spill_copy_result_t result;
    race->source = model_store_open();
    race->target = model_store_open();
    define(race->source, keep, 3, 8);
    fill(race->source);
    fault_wrap(race->target, &hooks, &one);
    assert_int_equal(copy(race->source, one, &result), SPILL_OK);
    bool reached = fault_calls(one) > race->at;
    spill_store_close(one, NULL);
    assert_int_equal(copy(race->source, race->target, &result), SPILL_OK);
    assert_int_equal(result.differences, 0);
    check_same(race->source, race->target);
    close_store(race->source);
    close_store(race->target);
    return reached;
}

static void two_copies_at_once(void **state)
{
    (void)state;
    for (int grow = 0; grow < 2; grow++)
        for (int keep = 0; keep < 2; keep++) {
            race_t race = {.grow = grow};
            int64_t step = 1;
            bool reached = true;
            while (reached) {
                race.dies = race.at + 1 + step * step; /* once it is a few calls ahead, once many */
                step = step % 11 + 1;
                reached = survives_race(keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, &race);
                race.at += effort(1, 3, 9);
            }
            assert_true(race.at > 100);
        }
}

/* ---- the source changes between the append and the comparison -------------------------------- */

typedef struct change {
    spill_store_t *source;
    int64_t edited; /* the number of an element; -1: one is appended instead */
    size_t appended;
    bool done;
} change_t;

static void change_source(void *context, int64_t index, const spill_request_t *request)
{
    change_t *change = context;
    (void)index;
    if (change->done || !request || request->kind != SPILL_REQUEST_APPEND)
        return;
    change->appended += request->append.element_count;
    if (change->appended < ELEMENTS)
        return;
    change->done = true;
    spill_array_t *array = open_array(change->source);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 0);
    if (change->edited >= 0)
        assert_int_equal(spill_array_edit(array, &owner, change->edited, &owner, NULL), SPILL_OK);
    else
        append(array, &owner, 1);
    bson_destroy(&storage);
    spill_array_close(array);
}

/* Copy an owner with pages; after the last append `edited` changes. Then copy again. */
static void copy_changing(int64_t edited, int64_t differences, int64_t appended,
                          int64_t differences_after)
{
    spill_store_t *source = model_store_open(), *target = model_store_open(), *wrapped;
    change_t change = {.source = source, .edited = edited};
    fault_hooks_t hooks = {.context = &change, .after = change_source};
    spill_copy_result_t result;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 0);
    define(source, SPILL_KEEP_NEWEST, 3, 8);
    spill_array_t *array = open_array(source);
    append(array, &owner, ELEMENTS);
    spill_array_close(array);
    fault_wrap(target, &hooks, &wrapped);
    assert_int_equal(copy(source, wrapped, &result), SPILL_OK);
    assert_true(change.done);
    assert_int_equal(result.elements, ELEMENTS);
    assert_int_equal(result.differences, differences);
    close_store(wrapped);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, appended);
    assert_int_equal(result.differences, differences_after);
    bson_destroy(&storage);
    close_store(source);
    close_store(target);
}

/*
 * A copy compares the target with the elements that it has in memory. An edit in the source's head
 * is a difference all the same. An edit in a page, or an append, is left to the next copy.
 */
static void the_source_changes_while_it_is_copied(void **state)
{
    (void)state;
    copy_changing(ELEMENTS - 1, 1, 0, 1);
    copy_changing(2, 0, 0, 1);
    copy_changing(-1, 0, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_store_to_store),
        cmocka_unit_test(other_bounds),
        cmocka_unit_test(within_a_store),
        cmocka_unit_test(within_the_heads),
        cmocka_unit_test(finishes),
        cmocka_unit_test(long_arrays),
        cmocka_unit_test(reports_differences),
        cmocka_unit_test(refuses_another_definition),
        cmocka_unit_test(leaves_other_definitions_alone),
        cmocka_unit_test(every_call_goes_wrong),
        cmocka_unit_test(two_copies_at_once),
        cmocka_unit_test(the_source_changes_while_it_is_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
