/*
 * The cost of a removal in store operations and documents does not depend on the array's length.
 * For an owner with 300 000 elements (50 000 for layouts that take longer to fill; a million with
 * SPILLWAY_LONG) a removal reads and writes the head and one page at most. It sends the same
 * requests as for an owner with some thousand elements. Requests are counted between the array and
 * the embedded store.
 */
#include "definition/schema.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { PAGE = 1000, SHORT = 5000, SEEN_MAX = 32 };

typedef struct seen {
    spill_request_kind_t kind;
    int64_t page;
    bool elements; /* reads elements */
    int64_t limit;
} seen_t;

typedef struct trace {
    seen_t seen[SEEN_MAX];
    size_t count;
} trace_t;

typedef struct world {
    const char *folder;
    spill_store_t *inner, *store;
    spill_array_t *array;
    trace_t trace;
} world_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void note_request(void *context, int64_t index, const spill_request_t *request)
{
    (void)index;
    trace_t *trace = context;
    if (!request)
        return;
    assert_true(trace->count < SEEN_MAX);
    seen_t seen = {.kind = request->kind, .page = request->page};
    if (request->kind == SPILL_REQUEST_READ) {
        seen.elements = request->read.want != SPILL_WANT_NONE;
        seen.limit = request->read.limit;
    }
    trace->seen[trace->count++] = seen;
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* The owner's name, or the name of its only window. */
static spill_value_t make_owner(const world_t *world, const char *name, bson_t *storage)
{
    bson_t own = BSON_INITIALIZER;
    bson_init(storage);
    spill_value_t owner = spill_value_from_utf8(&own, name);
    spill_value_t result = owner;
    if (spill_schema_of(spill_array_get_definition(world->array))->has_windows)
        result = spill_bucket_name(storage, &owner, "2026");
    else
        result = spill_value_from_utf8(storage, name);
    bson_destroy(&own);
    return result;
}

static void fill(const world_t *world, const char *name, int64_t length)
{
    bson_t storage;
    spill_value_t owner = make_owner(world, name, &storage);
    bson_t *element = BCON_NEW("at", BCON_DATE_TIME(INT64_C(1767700000000)), "n", BCON_INT32(7));
    spill_value_t *elements = bson_malloc(PAGE * sizeof *elements);
    for (int i = 0; i < PAGE; i++)
        elements[i] = spill_value_from_document(element);
    for (int64_t done = 0; done < length; done += PAGE) {
        spill_append_result_t result;
        spill_error_t error;
        expect_ok(spill_array_append(world->array, &owner, elements, PAGE, NULL, &result, &error),
                  &error);
    }
    bson_free(elements);
    bson_destroy(element);
    bson_destroy(&storage);
}

static void open_world(world_t *world, const spill_definition_t *definition, int64_t length)
{
    spill_store_options_t options;
    spill_error_t error;
    *world = (world_t){.folder = embedded_new_folder()};
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    world->inner = embedded_in_folder(world->folder, &options);
    fault_hooks_t hooks = {.context = &world->trace, .before = note_request};
    expect_ok(spill_store_define(world->inner, definition, &error), &error);
    expect_ok(spill_array_open(world->inner, definition->name, &world->array, &error), &error);
    fill(world, "short", SHORT);
    fill(world, "long", length);
    spill_array_close(world->array);
    fault_wrap(world->inner, &hooks, &world->store);
    expect_ok(spill_array_open(world->store, definition->name, &world->array, &error), &error);
}

static void close_world(world_t *world)
{
    spill_array_close(world->array);
    embedded_close(world->store);
    embedded_close(world->inner);
    embedded_remove_folder(world->folder);
}

/* ---- requests of a removal ------------------------------------------------------------------- */

static void trace_removal(world_t *world, const char *name, int64_t seq, trace_t *trace)
{
    bson_t storage;
    spill_error_t error;
    spill_value_t owner = make_owner(world, name, &storage);
    world->trace = (trace_t){0};
    expect_ok(spill_array_remove(world->array, &owner, seq, &error), &error);
    *trace = world->trace;
    bson_destroy(&storage);
}

static bool is_write(const seen_t *seen)
{
    return seen->kind != SPILL_REQUEST_READ;
}

static void assert_cheap(const trace_t *trace, int64_t seq)
{
    int pages_read = 0, pages_written = 0, heads_read = 0;
    int64_t page = SPILL_PAGE_HOLDING;
    for (size_t i = 0; i < trace->count; i++) {
        const seen_t *seen = &trace->seen[i];
        bool head = seen->page == SPILL_HEAD;
        heads_read += head && !is_write(seen);
        pages_read += !head && !is_write(seen);
        pages_written += !head && is_write(seen);
        if (seen->elements)
            assert_true(seen->limit <= 1);
        if (seen->page >= 0 && page >= 0)
            assert_int_equal(seen->page, page); /* it is always the same page */
        page = seen->page >= 0 ? seen->page : page;
    }
    if (pages_read > 1 || pages_written > 1 || heads_read > 1 || trace->count > 5)
        fail_msg("element %" PRId64
                 ": %zu requests, %d reads of the head and %d of pages, %d pages "
                 "written",
                 seq, trace->count, heads_read, pages_read, pages_written);
}

static void assert_same(const trace_t *left, const trace_t *right)
{
    assert_int_equal(left->count, right->count);
    for (size_t i = 0; i < left->count; i++) {
        assert_int_equal(left->seen[i].kind, right->seen[i].kind);
        assert_int_equal(left->seen[i].elements, right->seen[i].elements);
        assert_int_equal(left->seen[i].limit, right->seen[i].limit);
    }
}

/*
 * Remove from both ends and the middle, each time first of the short owner, then of the long one.
 */
static void check_removals(const spill_definition_t *definition, int64_t length)
{
    world_t world;
    const int64_t lengths[] = {SHORT, length};
    static const char *const names[] = {"short", "long"};
    open_world(&world, definition, length);
    for (int place = 0; place < 4; place++) {
        trace_t traces[2];
        for (int i = 0; i < 2; i++) {
            int64_t seqs[] = {5, PAGE + 5, lengths[i] / 2 + 5, lengths[i] - 5};
            trace_removal(&world, names[i], seqs[place], &traces[i]);
            assert_cheap(&traces[i], seqs[place]);
        }
        assert_same(&traces[0], &traces[1]);
        print_message("%s, %" PRId64 " elements, place %d: %zu requests\n", definition->name,
                      length, place, traces[1].count);
    }
    for (int i = 0; i < 2; i++) {
        bson_t storage;
        spill_count_t count;
        spill_error_t error;
        spill_value_t owner = make_owner(&world, names[i], &storage);
        expect_ok(spill_array_count(world.array, &owner, &count, &error), &error);
        assert_int_equal(count.count, lengths[i] - 4);
        bson_destroy(&storage);
    }
    close_world(&world);
}

static int64_t longest(void)
{
    return effort(1000000, 100000, 50000);
}

/* The length for layouts that take longer to fill. */
static int64_t shorter(void)
{
    return effort(1000000, 20000, 20000);
}

static void keep_newest(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_definition_init(&definition, "newest");
    check_removals(&definition, longest());
}

static void keep_oldest(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_definition_init(&definition, "oldest");
    definition.keep = SPILL_KEEP_OLDEST;
    check_removals(&definition, longest());
}

static void reference(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_error_t error;
    expect_ok(spill_definition_preset(&definition, "reviews-separate", "reference", &error),
              &error);
    strcpy(definition.value_field, "n");
    check_removals(&definition, shorter());
}

static void bucket(void **state)
{
    (void)state;
    spill_definition_t definition;
    spill_error_t error;
    expect_ok(spill_definition_preset(&definition, "reviews-bucket", "bucket", &error), &error);
    definition.window = SPILL_WINDOW_YEAR;
    strcpy(definition.time_field, "at");
    strcpy(definition.value_field, "n");
    check_removals(&definition, shorter());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_newest),
        cmocka_unit_test(keep_oldest),
        cmocka_unit_test(reference),
        cmocka_unit_test(bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
