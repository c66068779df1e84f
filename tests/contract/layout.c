/*
 * A layout that the library does not have; docs/internals/add-a-layout.md explains it. All elements
 * of an owner are in its head, and an append to a full head is refused. The layout needs only the
 * schema and the table of operations below: no store and no function of the core knows it.
 */
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/drop.h"
#include "layout/locate.h"
#include "layout/trim.h"
#include "suite.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "util/error.h"

#include <spillway/spillway.h>

#include <stdio.h>
#include <string.h>

enum { CAPACITY = 10 };

/* ---- the layout ------------------------------------------------------------------------------ */

static spill_code_t check_single(const spill_definition_t *definition, spill_error_t *error)
{
    if (definition->keep != SPILL_KEEP_NEWEST)
        return spill_fail(error, SPILL_INVALID, "layout 'single': keep is 'newest'");
    return SPILL_OK;
}

static const spill_schema_t single_schema = {
    .name = "single", .check = check_single, .appends_to_head = true};

static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    return spill_append_request(owner, SPILL_HEAD, part);
}

static spill_code_t refuse_full(spill_owner_t *owner, const spill_part_t *part,
                                spill_response_t *head, spill_error_t *error)
{
    (void)owner;
    return spill_fail(error, SPILL_TOO_BIG, "the head has %d elements and no room for %d",
                      (int)head->state.live, (int)part->count);
}

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    static const spill_head_append_t steps = {.request = append_request, .full = refuse_full};
    return spill_append_to_head(owner, part, &steps, result, error);
}

static const spill_layout_ops_t single_ops = {
    .append = append_part,
    .count = spill_count_newest,
    .edit = spill_documents_edit,
    .remove = spill_documents_remove,
    .trim = spill_documents_trim,
    .drop = spill_capped_drop,
};

static spill_layout_t open_single(void)
{
    static spill_layout_t layout = SPILL_LAYOUT_OUTLIER;
    if (layout == SPILL_LAYOUT_OUTLIER)
        assert_true(spill_layout_add(&single_schema, &single_ops, &layout));
    return layout;
}

/* ---- its tests ------------------------------------------------------------------------------- */

typedef struct world {
    const contract_kind_t *kind;
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    spill_error_t error;
} world_t;

#define EXPECT_OK(world, call)                                                                     \
    do {                                                                                           \
        spill_code_t code_ = (call);                                                               \
        if (code_ != SPILL_OK)                                                                     \
            fail_msg("%s: %s", spill_code_name(code_), (world)->error.message);                    \
    } while (0)

static void world_open(world_t *world, const contract_kind_t *kind)
{
    *world = (world_t){.kind = kind, .store = kind->open(), .storage = BSON_INITIALIZER};
    spill_definition_t definition;
    spill_definition_init(&definition, "notes");
    definition.layout = open_single();
    definition.keep = SPILL_KEEP_NEWEST;
    definition.order = contract_order;
    definition.bounds.threshold = CAPACITY;
    definition.bounds.page_capacity = definition.bounds.page_bytes_max = 0;
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++)
        if (spill_name_fields[i].pages)
            *((char *)&definition + spill_name_fields[i].offset) = '\0';
    EXPECT_OK(world, spill_store_define(world->store, &definition, &world->error));
    EXPECT_OK(world, spill_array_open(world->store, "notes", &world->array, &world->error));
    world->owner = spill_value_from_utf8(&world->storage, "ada");
}

static void world_close(world_t *world)
{
    spill_array_close(world->array);
    bson_destroy(&world->storage);
    world->kind->close(world->store);
}

/* Append the numbers first, first + 1, ... as one batch. */
static spill_code_t append_batch(world_t *world, int64_t first, size_t count)
{
    int64_t numbers[CAPACITY + 1];
    spill_value_t elements[CAPACITY + 1];
    assert_true(count <= CAPACITY + 1);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = first + (int64_t)i;
        elements[i] = number_value(&numbers[i]);
    }
    return spill_array_append(world->array, &world->owner, elements, count, NULL, NULL,
                              &world->error);
}

/* The numbers of all elements, newest first: "4 3 ". */
static void assert_elements(world_t *world, const char *expected)
{
    char text[200] = "";
    spill_slice_t *slice;
    spill_read_options_t options;
    spill_read_options_init(&options);
    EXPECT_OK(world,
              spill_array_read(world->array, &world->owner, &options, &slice, &world->error));
    for (size_t i = 0; i < slice->count; i++) {
        int64_t number = spill_value_int64(&slice->elements[i].value);
        size_t used = strlen(text);
        assert_int_equal(number, slice->elements[i].seq);
        snprintf(text + used, sizeof text - used, "%d ", (int)number);
    }
    spill_slice_free(slice);
    assert_string_equal(text, expected);
    spill_count_t count;
    EXPECT_OK(world, spill_array_count(world->array, &world->owner, &count, &world->error));
    assert_int_equal(count.pages, 0);
}

static void fail_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    fail_msg("page %d: %s", (int)finding->page, finding->text);
}

static void assert_verified(world_t *world)
{
    spill_verify_summary_t summary;
    EXPECT_OK(world,
              spill_array_verify(world->array, NULL, fail_finding, NULL, &summary, &world->error));
    assert_int_equal(summary.owners, 1);
    assert_int_equal(summary.findings, 0);
}

static void added_layout_keeps_elements(void **state)
{
    world_t world;
    world_open(&world, *state);
    EXPECT_OK(&world, append_batch(&world, 0, 3));
    EXPECT_OK(&world, append_batch(&world, 3, 1));
    assert_elements(&world, "3 2 1 0 ");
    assert_verified(&world);

    EXPECT_OK(&world, spill_array_remove(world.array, &world.owner, 1, &world.error));
    assert_elements(&world, "3 2 0 ");
    EXPECT_OK(&world, spill_array_trim(world.array, &world.owner, 2, &world.error));
    assert_elements(&world, "3 2 ");
    EXPECT_OK(&world, append_batch(&world, 4, CAPACITY - 2));
    assert_elements(&world, "11 10 9 8 7 6 5 4 3 2 ");
    assert_verified(&world);

    assert_int_equal(append_batch(&world, 12, 1), SPILL_TOO_BIG);
    assert_non_null(strstr(world.error.message, "the head has 10 elements and no room for 1"));
    assert_elements(&world, "11 10 9 8 7 6 5 4 3 2 ");

    EXPECT_OK(&world, spill_array_drop_owner(world.array, &world.owner, &world.error));
    spill_count_t count;
    EXPECT_OK(&world, spill_array_count(world.array, &world.owner, &count, &world.error));
    assert_false(count.exists);
    EXPECT_OK(&world, append_batch(&world, 0, 1));
    assert_elements(&world, "0 ");
    world_close(&world);
}

static void added_layout_has_own_rules(void **state)
{
    world_t world;
    spill_definition_t definition;
    world_open(&world, *state);
    definition = *spill_array_get_definition(world.array);
    assert_int_equal(definition.layout, open_single());
    definition.keep = SPILL_KEEP_OLDEST;
    assert_int_equal(spill_definition_check(&definition, &world.error), SPILL_INVALID);
    assert_string_equal(world.error.message, "layout 'single': keep is 'newest'");
    world_close(&world);
}

void add_layout_tests(suite_t *suite)
{
    SUITE_ADD(suite, added_layout_keeps_elements);
    SUITE_ADD(suite, added_layout_has_own_rules);
}
