/* Helpers of the conversion tests: arrays of each layout, and lists of the expected elements. */
#include "model/convert.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "model/model.h"
#include "tools/definition_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 4, ELEMENTS = 19, CAP = 5, LISTED_MAX = 128 };

/* ---- definitions ----------------------------------------------------------------------------- */

static void set_bounds(spill_definition_t *definition, int64_t threshold)
{
    bool pages = !spill_schema_of(definition)->is_capped;
    definition->bounds.threshold = threshold;
    definition->bounds.page_capacity = pages ? 4 : 0;
    definition->op_window = 3;
    definition->largest = definition->bounds;
}

static spill_layout_t layout_of(convert_kind_t kind)
{
    static const spill_layout_t layouts[] = {
        [CONVERT_OUTLIER] = SPILL_LAYOUT_OUTLIER, [CONVERT_CAPPED] = SPILL_LAYOUT_CAPPED,
        [CONVERT_TOP_N] = SPILL_LAYOUT_CAPPED,    [CONVERT_REFERENCE] = SPILL_LAYOUT_REFERENCE,
        [CONVERT_SUBSET] = SPILL_LAYOUT_SUBSET,   [CONVERT_BUCKET] = SPILL_LAYOUT_BUCKET,
    };
    return layouts[kind];
}

/* Make a definition of that kind, derived from another one. */
static void make_definition(const spill_definition_t *from, const char *name, convert_kind_t kind,
                            spill_definition_t *definition)
{
    assert_int_equal(spill_convert_definition(from, name, layout_of(kind), NULL, definition, NULL),
                     SPILL_OK);
    definition->sort_field[0] = '\0';
    if (kind == CONVERT_TOP_N)
        strcpy(definition->sort_field, "score");
}

void convert_define_source(spill_store_t *store, convert_kind_t kind, int64_t cap)
{
    spill_definition_t base, definition;
    spill_definition_init(&base, "base");
    strcpy(base.id_field, "n");
    strcpy(base.time_field, "at");
    make_definition(&base, CONVERT_NAME, kind, &definition);
    set_bounds(&definition, spill_schema_of(&definition)->is_capped ? cap : 3);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
}

/* Windows are weeks; if the source has windows, those are months. */
void convert_define_target(spill_store_t *source, spill_store_t *target, convert_kind_t kind)
{
    spill_definition_t from, definition;
    assert_int_equal(spill_store_definition(source, CONVERT_NAME, &from, NULL), SPILL_OK);
    make_definition(&from, CONVERT_OTHER, kind, &definition);
    assert_string_equal(definition.id_field, "n");
    assert_string_equal(definition.time_field, "at");
    set_bounds(&definition, CAP);
    if (kind == CONVERT_BUCKET)
        definition.window = SPILL_WINDOW_WEEK;
    assert_int_equal(spill_store_define(target, &definition, NULL), SPILL_OK);
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_array_t *array;
    assert_int_equal(spill_array_open(store, name, &array, NULL), SPILL_OK);
    return array;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Some scores are equal: then the newer element ranks higher. */
static int64_t score_of(int64_t number)
{
    return number * 7 % 11;
}

/* One element per day, but every fifth arrived late. */
static spill_value_t make_element(bson_t *storage, int64_t number)
{
    int64_t day = 9 * number - (number % 5 == 0 ? 20 : 0);
    if (number % 3 == 0)
        BSON_APPEND_INT64(storage, "_id", number);
    BSON_APPEND_INT64(storage, "n", number);
    if (number % 3 == 1)
        BCON_APPEND(storage, "_id", "{", "_id", BCON_INT64(number), "}");
    BSON_APPEND_INT64(storage, "score", score_of(number));
    BSON_APPEND_DATE_TIME(storage, "at", (20500 + day) * INT64_C(86400000));
    return spill_value_from_document(storage);
}

static void append(spill_array_t *array, const spill_value_t *owner, int64_t from, int64_t to)
{
    bool bucket = spill_schema_of(spill_array_get_definition(array))->has_windows;
    for (int64_t i = from; i < to; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value = make_element(&storage, i);
        size_t count;
        spill_code_t code =
            bucket ? spill_bucket_append(array, owner, &value, 1, NULL, NULL, &count, NULL)
                   : spill_array_append(array, owner, &value, 1, NULL, NULL, NULL);
        assert_int_equal(code, SPILL_OK);
        bson_destroy(&storage);
    }
}

static void remove_element(spill_array_t *array, const spill_value_t *owner, int64_t number)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t id = spill_value_from_int64(&storage, number);
    bool bucket = spill_schema_of(spill_array_get_definition(array))->has_windows;
    char window[SPILL_WINDOW_SIZE];
    int64_t seq;
    spill_code_t code = bucket ? spill_bucket_remove_id(array, owner, &id, window, &seq, NULL)
                               : spill_array_remove_id(array, owner, &id, &seq, NULL);
    assert_true(code == SPILL_OK || code == SPILL_NOT_FOUND); /* a cap may have dropped it */
    bson_destroy(&storage);
}

/*
 * Owners: one whole; one with elements removed, including the last; one emptied; one with 2
 * elements.
 */
void convert_fill(spill_store_t *store)
{
    spill_array_t *array = open_array(store, CONVERT_NAME);
    bson_t storage = BSON_INITIALIZER;
    for (int64_t i = 0; i < OWNERS; i++) {
        spill_value_t owner = spill_value_from_int64(&storage, i);
        append(array, &owner, 0, i == 3 ? 2 : ELEMENTS);
        for (int64_t number = 0; i == 1 && number < ELEMENTS; number++)
            if (number == 1 || number % 7 == 6 || number >= 17)
                remove_element(array, &owner, number);
        for (int64_t number = 0; i == 2 && number < ELEMENTS; number++)
            remove_element(array, &owner, number);
    }
    bson_destroy(&storage);
    spill_array_close(array);
}

void convert_append_more(spill_store_t *store)
{
    spill_array_t *array = open_array(store, CONVERT_NAME);
    bson_t storage = BSON_INITIALIZER;
    for (int64_t i = 0; i < OWNERS; i++) {
        spill_value_t owner = spill_value_from_int64(&storage, i);
        append(array, &owner, 102, 105);
    }
    bson_destroy(&storage);
    spill_array_close(array);
}

void convert_remove_first(spill_store_t *store)
{
    spill_array_t *array = open_array(store, CONVERT_NAME);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 0);
    remove_element(array, &owner, 0);
    bson_destroy(&storage);
    spill_array_close(array);
}

/* ---- comparing source and target ------------------------------------------------------------- */

typedef struct listed {
    int64_t seq;
    int64_t number; /* the number that the element contains */
    char window[SPILL_WINDOW_SIZE];
} listed_t;

typedef struct list {
    listed_t at[LISTED_MAX];
    size_t count;
    int64_t end; /* the next number, in layouts with numbers */
    int64_t owner;
    /* group the elements by this definition's windows, or NULL */
    const spill_definition_t *windows;
} list_t;

static bool collect_element(void *context, const spill_value_t *name,
                            const spill_element_t *element)
{
    list_t *list = context;
    spill_value_t found, owner = *name;
    const char *window;
    int64_t number;
    spill_window_split(name, &owner, &window);
    if (owner.type != BSON_TYPE_INT64 || memcmp(owner.data, &list->owner, 8) != 0)
        return true;
    listed_t *listed = &list->at[list->count++];
    assert_true(list->count < LISTED_MAX);
    assert_true(spill_value_at(&element->value, "n", &found));
    memcpy(&number, found.data, sizeof number);
    *listed = (listed_t){.seq = element->seq, .number = number};
    if (list->windows)
        assert_int_equal(
            spill_bucket_window_of(list->windows, &element->value, listed->window, NULL), SPILL_OK);
    return true;
}

static void list_owner(spill_array_t *array, int64_t number, const spill_definition_t *windows,
                       list_t *list)
{
    *list = (list_t){.owner = number, .windows = windows};
    assert_int_equal(spill_array_export(array, NULL, collect_element, list, NULL), SPILL_OK);
    if (spill_schema_of(spill_array_get_definition(array))->has_windows)
        return;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, number);
    spill_count_t count;
    assert_int_equal(spill_array_count(array, &owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, list->count);
    list->end = count.next;
    bson_destroy(&storage);
}

static int compare_windows(const void *left, const void *right)
{
    const listed_t *one = left, *other = right;
    int order = strcmp(one->window, other->window);
    if (order != 0)
        return order;
    return one->seq < other->seq ? -1 : one->seq > other->seq;
}

static void drop_lowest(list_t *list)
{
    size_t lowest = 0;
    for (size_t i = 1; i < list->count; i++)
        if (score_of(list->at[i].number) < score_of(list->at[lowest].number))
            lowest = i;
    list->count--;
    memmove(list->at + lowest, list->at + lowest + 1, (list->count - lowest) * sizeof *list->at);
}

/* The elements that the target must have of an owner, derived from the source. */
static void expect_list(const spill_definition_t *from, const spill_definition_t *to, list_t *list)
{
    if (from->layout == SPILL_LAYOUT_BUCKET) {
        for (size_t i = 0; i < list->count; i++)
            list->at[i].seq = (int64_t)i;
        list->end = (int64_t)list->count;
    }
    if (spill_schema_of(to)->keeps_top_n) {
        while (list->count > CAP)
            drop_lowest(list);
    } else if (to->layout == SPILL_LAYOUT_CAPPED) {
        size_t room = CAP;
        if (list->count > 0 && list->at[list->count - 1].seq != list->end - 1)
            room--;
        size_t drop = list->count > room ? list->count - room : 0;
        memmove(list->at, list->at + drop, (list->count - drop) * sizeof *list->at);
        list->count -= drop;
    }
    if (to->layout == SPILL_LAYOUT_BUCKET) {
        qsort(list->at, list->count, sizeof *list->at, compare_windows);
        for (size_t i = 0, start = 0; i < list->count; i++) {
            if (strcmp(list->at[i].window, list->at[start].window) != 0)
                start = i;
            list->at[i].seq = (int64_t)(i - start);
        }
        list->end = 0;
    }
}

static bool verify_name(void *context, const spill_value_t *name)
{
    model_check_verify(context, name);
    return true;
}

void convert_check_same(spill_store_t *source, spill_store_t *target)
{
    spill_array_t *here = open_array(source, CONVERT_NAME),
                  *there = open_array(target, CONVERT_OTHER);
    const spill_definition_t *from = spill_array_get_definition(here);
    const spill_definition_t *to = spill_array_get_definition(there);
    const spill_definition_t *windows = to->layout == SPILL_LAYOUT_BUCKET ? to : NULL;
    list_t *lists = bson_malloc(2 * sizeof *lists);
    for (int64_t i = 0; i < OWNERS; i++) {
        list_owner(here, i, windows, &lists[0]);
        list_owner(there, i, windows, &lists[1]);
        expect_list(from, to, &lists[0]);
        assert_int_equal(lists[0].count, lists[1].count);
        assert_int_equal(lists[0].end, lists[1].end);
        assert_memory_equal(lists[0].at, lists[1].at, lists[0].count * sizeof *lists[0].at);
    }
    bson_free(lists);
    assert_int_equal(spill_array_owners(there, verify_name, there, NULL), SPILL_OK);
    spill_array_close(here);
    spill_array_close(there);
}

/* ---- a whole conversion ---------------------------------------------------------------------- */

void convert_see(void *context, const spill_copy_difference_t *difference)
{
    (void)context;
    char *owner = spill_value_to_json(difference->owner, false);
    print_message("owner %s, element %lld: %s\n", owner, (long long)difference->seq,
                  difference->text);
    bson_free(owner);
}

void convert_and_grow(spill_store_t *store, convert_kind_t from, convert_kind_t to)
{
    spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
    spill_copy_result_t result = {0};
    convert_define_source(store, from, to == CONVERT_BUCKET ? 2 * ELEMENTS : 15);
    convert_fill(store);
    convert_define_target(store, store, to);
    assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
    assert_int_equal(result.differences, 0);
    assert_int_equal(result.elements - result.verified, to == CONVERT_TOP_N ? result.dropped : 0);
    assert_true((result.dropped > 0) == (layout_of(to) == SPILL_LAYOUT_CAPPED));
    convert_check_same(store, store);
    convert_append_more(store);
    spill_copy_result_t more = {0};
    assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &more, NULL), SPILL_OK);
    assert_in_range(more.elements, from == CONVERT_TOP_N ? OWNERS : 3 * OWNERS, 3 * OWNERS);
    assert_int_equal(more.differences, 0);
    convert_check_same(store, store);
    assert_int_equal(spill_convert_finish(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
    spill_array_t *array;
    assert_int_equal(spill_array_open(store, CONVERT_NAME, &array, NULL), SPILL_NOT_FOUND);
    assert_int_equal(spill_store_drop(store, CONVERT_OTHER, NULL), SPILL_OK);
}
