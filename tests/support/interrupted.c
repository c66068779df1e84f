#include "support/interrupted.h"
#include "definition/schema.h"

#include "support/effort.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 12, REMOVED = 3, CALLS_MAX = 4000 };

/* ---- arrays ---------------------------------------------------------------------------------- */

typedef struct shape {
    const char *name;
    shape_set_t set;
    const char *preset;
    spill_layout_t layout;
    spill_keep_t keep;
} shape_t;

static const shape_t shapes[] = {
    {"newest", ON_NEWEST, "feed-recent", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_NEWEST},
    {"oldest", ON_OLDEST, "feed", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST},
    {"retained", ON_RETAINED, "feed-recent", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_NEWEST},
    {"reference", ON_REFERENCE, "reviews-separate", SPILL_LAYOUT_REFERENCE, SPILL_KEEP_NEWEST},
    {"subset", ON_SUBSET, "reviews-subset", SPILL_LAYOUT_SUBSET, SPILL_KEEP_NEWEST},
    {"capped", ON_CAPPED, "feed-recent", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST},
    {"best", ON_TOP_N, "feed-recent", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST},
    {"bucket", ON_BUCKET, "reviews-bucket", SPILL_LAYOUT_BUCKET, SPILL_KEEP_OLDEST},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* The current run, for messages. */
static struct {
    const char *shape;
    const char *operation;
    const char *way;
    int64_t at;
} now;

static void fail_now(const char *what, const char *detail)
{
    fail_msg("%s, %s, %s at call %" PRId64 ": %s: %s", now.shape, now.operation, now.way, now.at,
             what, detail);
}

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_now(spill_code_name(code), error->message);
}

static void describe(const shape_t *shape, const char *name, spill_definition_t *definition)
{
    spill_error_t error;
    must(spill_definition_preset(definition, shape->preset, name, &error), &error);
    if (definition->layout != shape->layout)
        spill_definition_set_layout(definition, shape->layout);
    definition->keep = shape->keep;
    definition->bounds.threshold = shape->layout == SPILL_LAYOUT_CAPPED ? 30 : 2;
    if (shape->layout != SPILL_LAYOUT_CAPPED)
        definition->bounds.page_capacity = 2;
    snprintf(definition->collection, SPILL_NAME_SIZE, "%.100sHeads", name);
    if (shape->layout == SPILL_LAYOUT_BUCKET)
        snprintf(definition->page_collection, SPILL_NAME_SIZE, "%.100sHeads", name);
    else if (definition->page_collection[0] != '\0')
        snprintf(definition->page_collection, SPILL_NAME_SIZE, "%.100sPages", name);
    snprintf(definition->id_field, SPILL_NAME_SIZE, "n");
    snprintf(definition->time_field, SPILL_NAME_SIZE, "at");
    if (shape->set == ON_RETAINED)
        definition->keep_elements = 10;
    if (shape->set == ON_TOP_N)
        snprintf(definition->sort_field, SPILL_NAME_SIZE, "rating");
    if (shape->set == ON_BUCKET) {
        definition->window = SPILL_WINDOW_DAY;
        snprintf(definition->window_field, SPILL_NAME_SIZE, "day");
    }
}

static void append_run(stage_t *stage, int64_t first, size_t count)
{
    bson_t *documents[ELEMENTS];
    spill_value_t elements[ELEMENTS];
    spill_append_result_t result;
    spill_error_t error;
    for (size_t i = 0; i < count; i++) {
        documents[i] = interrupted_element(first + (int64_t)i);
        elements[i] = spill_value_from_document(documents[i]);
    }
    spill_code_t code;
    if (spill_schema_of(&stage->definition)->has_windows) {
        size_t windows;
        code = spill_bucket_append(stage->array, &stage->owner, elements, count, NULL, NULL,
                                   &windows, &error);
    } else {
        spill_append_options_t options;
        spill_append_options_init(&options);
        options.fill = true;
        code = spill_array_append(stage->array, &stage->owner, elements, count, &options, &result,
                                  &error);
    }
    for (size_t i = 0; i < count; i++)
        bson_destroy(documents[i]);
    must(code, &error);
}

/* Append elements 0 to 11, and remove one of them. */
static void fill_owner(stage_t *stage)
{
    spill_error_t error;
    append_run(stage, 0, ELEMENTS);
    if (!spill_schema_of(&stage->definition)->has_windows)
        must(spill_array_remove(stage->array, &stage->owner, REMOVED, &error), &error);
}

static void name_owner(stage_t *stage, const char *name)
{
    bson_reinit(&stage->storage);
    stage->owner = spill_value_from_utf8(&stage->storage, name);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static void open_array(stage_t *stage)
{
    spill_error_t error;
    must(spill_array_open(stage->store, stage->definition.name, &stage->array, &error), &error);
}

static void define_array(stage_t *stage, const shape_t *shape, const char *name)
{
    spill_error_t error;
    describe(shape, name, &stage->definition);
    must(spill_store_define(stage->store, &stage->definition, &error), &error);
    open_array(stage);
}

/* A second owner, for what goes through all of them. */
static void fill_second_owner(stage_t *stage)
{
    name_owner(stage, "bob");
    append_run(stage, 0, 5);
}

/* The definition with two owners, to be renewed for each run. */
static void keep_array(interrupted_t *interrupted, const shape_t *shape)
{
    stage_t stage = {.interrupted = interrupted, .store = interrupted->store};
    bson_init(&stage.storage);
    define_array(&stage, shape, shape->name);
    fill_second_owner(&stage);
    name_owner(&stage, "ada");
    fill_owner(&stage);
    spill_array_close(stage.array);
    bson_destroy(&stage.storage);
    interrupted->keep(interrupted->context);
}

static void read_bases(stage_t *stage)
{
    bson_t *documents[ELEMENTS];
    spill_value_t elements[ELEMENTS];
    spill_error_t error;
    spill_code_t code;
    if (!spill_schema_of(&stage->definition)->has_windows) {
        must(spill_array_op_base(stage->array, &stage->owner, &stage->base, &error), &error);
        return;
    }
    for (int i = 0; i < ELEMENTS; i++) {
        documents[i] = interrupted_element(ELEMENTS - 4 + i);
        elements[i] = spill_value_from_document(documents[i]);
    }
    code = spill_bucket_op_bases(stage->array, &stage->owner, elements, ELEMENTS, &stage->bases,
                                 &stage->base_count, &error);
    for (int i = 0; i < ELEMENTS; i++)
        bson_destroy(documents[i]);
    must(code, &error);
}

/*
 * The array of one run. A store that cannot be renewed gets a new owner; for an operation on the
 * whole array it gets a new definition.
 */
static void begin(stage_t *stage, interrupted_t *interrupted, const shape_t *shape,
                  const operation_t *operation)
{
    static int number;
    char name[INTERRUPTED_TEXT_MAX];
    *stage = (stage_t){.interrupted = interrupted};
    bson_init(&stage->storage);
    if (interrupted->renew) {
        interrupted->store = interrupted->renew(interrupted->context);
        stage->store = interrupted->store;
        describe(shape, shape->name, &stage->definition);
        open_array(stage);
        name_owner(stage, "ada");
    } else if (operation->whole) {
        stage->store = interrupted->store;
        snprintf(name, sizeof name, "%s%d", shape->name, ++number);
        define_array(stage, shape, name);
        stage->drops = true;
        fill_second_owner(stage);
        name_owner(stage, "ada");
        fill_owner(stage);
    } else {
        stage->store = interrupted->store;
        describe(shape, shape->name, &stage->definition);
        open_array(stage);
        snprintf(name, sizeof name, "ada %d", operation->reads ? 0 : ++number);
        name_owner(stage, name);
        if (!operation->reads)
            fill_owner(stage);
    }
    if (!operation->reads)
        read_bases(stage);
}

static void end(stage_t *stage)
{
    if (stage->drops) {
        spill_error_t error;
        spill_code_t code = spill_store_drop(stage->store, stage->definition.name, &error);
        if (code != SPILL_NOT_FOUND)
            must(code, &error);
    }
    bson_free(stage->bases);
    spill_array_close(stage->array);
    bson_destroy(&stage->storage);
}

/* ---- what an array holds --------------------------------------------------------------------- */

static bool print_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    char *json = spill_value_to_json(&element->value, false);
    bson_string_append_printf(context, "%" PRId64 " %s\n", element->seq, json);
    bson_free(json);
    return true;
}

static void print_windows(const stage_t *stage, bson_string_t *out)
{
    spill_bucket_read_options_t options;
    spill_bucket_slice_t *slice;
    spill_statistics_t sums;
    int64_t windows;
    spill_error_t error;
    spill_bucket_read_options_init(&options);
    options.limit = 1000;
    must(spill_bucket_read(stage->array, &stage->owner, &options, &slice, &error), &error);
    for (size_t i = 0; i < slice->count; i++) {
        char *json = spill_value_to_json(&slice->elements[i].value, false);
        bson_string_append_printf(out, "%s %" PRId64 " %s\n", slice->elements[i].window,
                                  slice->elements[i].seq, json);
        bson_free(json);
    }
    spill_bucket_slice_free(slice);
    must(spill_bucket_statistics(stage->array, &stage->owner, NULL, NULL, &sums, &windows, &error),
         &error);
    bson_string_append_printf(out, "%" PRId64 " windows, %" PRId64 ", sum %g\n", windows,
                              sums.count, sums.sum.value);
}

/* If its retention fails, an append leaves old elements to the next append. */
static void retain(const stage_t *stage)
{
    spill_error_t error;
    if (stage->definition.keep_elements == 0)
        return;
    spill_code_t code = spill_array_trim_keep(stage->array, &stage->owner,
                                              stage->definition.keep_elements, NULL, &error);
    if (code != SPILL_NOT_FOUND)
        must(code, &error);
}

static void print_array(const stage_t *stage, bson_string_t *out)
{
    spill_count_t count;
    spill_error_t error;
    retain(stage);
    if (spill_schema_of(&stage->definition)->has_windows) {
        print_windows(stage, out);
        return;
    }
    must(spill_array_export(stage->array, &stage->owner, print_element, out, &error), &error);
    must(spill_array_count(stage->array, &stage->owner, &count, &error), &error);
    bson_string_append_printf(out, "%d, %" PRId64 " elements, next %" PRId64 ", sum %g\n",
                              count.exists, count.count, count.next, count.sum);
    if (stage->definition.layout == SPILL_LAYOUT_SUBSET) {
        spill_slice_t *slice;
        must(spill_array_top(stage->array, &stage->owner, 10, &slice, &error), &error);
        for (size_t i = 0; i < slice->count; i++)
            print_element(out, &stage->owner, &slice->elements[i]);
        spill_slice_free(slice);
    }
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    (void)context;
    print_error("page %" PRId64 ", I%d: %s\n", finding->page, finding->invariant, finding->text);
}

static void check_owner(const stage_t *stage, const spill_value_t *owner)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    must(spill_array_verify(stage->array, owner, print_finding, NULL, &summary, &error), &error);
    if (summary.findings > 0)
        fail_now("the verifier found", "what is told above");
}

static bool check_window(void *context, const spill_bucket_window_t *window)
{
    const stage_t *stage = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, &stage->owner, window->window);
    check_owner(stage, &name);
    bson_destroy(&storage);
    return true;
}

static void check_verified(stage_t *stage)
{
    spill_error_t error;
    if (spill_schema_of(&stage->definition)->has_windows)
        must(spill_bucket_windows(stage->array, &stage->owner, NULL, NULL, SPILL_OLDEST_FIRST,
                                  check_window, stage, &error),
             &error);
    else
        check_owner(stage, &stage->owner);
}

/* Pages that a dead client left stay until a repair. */
static void repair_array(const stage_t *stage)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    must(spill_array_repair(stage->array, &stage->owner, false, NULL, NULL, &summary, &error),
         &error);
    if (summary.left > 0)
        must(spill_array_drop_owner(stage->array, &stage->owner, &error), &error);
}

/* ---- one run --------------------------------------------------------------------------------- */

/* What an operation read, and what the array held after it, without a failure. */
typedef struct expected {
    bson_string_t *out;
    bson_string_t *array;
} expected_t;

static void assert_same_text(const bson_string_t *text, const bson_string_t *expected)
{
    if (strcmp(text->str, expected->str) != 0)
        print_error("expected:\n%sgot:\n%s", expected->str, text->str);
    if (strcmp(text->str, expected->str) != 0)
        fail_now("another result", "see above");
}

static bool has_findings(stage_t *stage)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    must(spill_array_repair(stage->array, &stage->owner, true, NULL, NULL, &summary, &error),
         &error);
    return summary.findings > 0;
}

/*
 * Let the operation die at its first call that leaves something half done. A failed call that
 * leaves nothing changes nothing, so the next try is the first one's equal.
 */
static void die_half_way(stage_t *stage, stage_fn half)
{
    interrupted_t *interrupted = stage->interrupted;
    bson_string_t *out = bson_string_new(NULL);
    spill_error_t error;
    bool died = true;
    for (int64_t at = 0; died && !has_findings(stage); at++) {
        interrupted->arm(interrupted->context, 0, at);
        half(stage, out, &error);
        died = interrupted->disarm(interrupted->context);
    }
    bson_string_free(out, true);
}

/* The operation returned the failure with a message, or made up for it. */
static void check_failure(spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK)
        return;
    if (code != SPILL_IO && code != SPILL_UNKNOWN && code != SPILL_CORRUPT &&
        code != SPILL_CONFLICT)
        must(code, error);
    if (error->code != code || error->message[0] == '\0')
        fail_now("without an error", spill_code_name(code));
}

static void check_result(stage_t *stage, const operation_t *operation, bson_string_t *out,
                         spill_code_t code, const expected_t *expected)
{
    bson_string_t *array = bson_string_new(NULL);
    if (code == SPILL_OK)
        assert_same_text(out, expected->out);
    if (!operation->ends) {
        print_array(stage, array);
        assert_same_text(array, expected->array);
        if (operation->half)
            repair_array(stage);
        check_verified(stage);
    }
    bson_string_free(array, true);
}

static void expect(interrupted_t *interrupted, const shape_t *shape, const operation_t *operation,
                   expected_t *expected)
{
    stage_t stage;
    spill_error_t error;
    expected->out = bson_string_new(NULL);
    expected->array = bson_string_new(NULL);
    begin(&stage, interrupted, shape, operation);
    if (operation->half)
        die_half_way(&stage, operation->half);
    must(operation->run(&stage, expected->out, &error), &error);
    if (!operation->ends)
        print_array(&stage, expected->array);
    end(&stage);
}

/* False: the operation makes no call `at`. */
static bool fail_at(interrupted_t *interrupted, const shape_t *shape, const operation_t *operation,
                    int way, int64_t at, const expected_t *expected)
{
    stage_t stage;
    spill_error_t error = {.message = ""};
    bson_string_t *out = bson_string_new(NULL);
    begin(&stage, interrupted, shape, operation);
    if (operation->half)
        die_half_way(&stage, operation->half);
    interrupted->arm(interrupted->context, way, at);
    spill_code_t code = operation->run(&stage, out, &error);
    bool struck = interrupted->disarm(interrupted->context);
    if (struck) {
        check_failure(code, &error);
    }
    if (struck && (code != SPILL_OK || operation->reports)) {
        bson_string_truncate(out, 0);
        code = operation->run(&stage, out, &error);
        if (code != SPILL_OK && !(operation->deleted && code == SPILL_NOT_FOUND))
            must(code, &error);
    } else {
        must(code, &error);
    }
    check_result(&stage, operation, out, code, expected);
    end(&stage);
    bson_string_free(out, true);
    return struck;
}

static int64_t fail_each_call(interrupted_t *interrupted, const shape_t *shape,
                              const operation_t *operation)
{
    static int turn;
    int64_t failures = 0;
    int ways = 0;
    bool struck;
    expected_t expected;
    while (interrupted->ways[ways])
        ways++;
    turn++;
    now.operation = operation->name;
    now.way = "no failure";
    expect(interrupted, shape, operation, &expected);
    for (int way = 0; interrupted->ways[way] && (way == 0 || !interrupted->slow); way++) {
        int64_t step = way == 0 ? effort(1, 2, 7) : effort(1, 5, 17);
        now.at = interrupted->slow ? turn / ways % effort(1, 3, 3) : turn % step;
        if (operation->reads && way == interrupted->way_of_writes)
            continue;
        do {
            int this_way = way;
            if (interrupted->slow)
                this_way = (int)((now.at + turn) % ways);
            now.way = interrupted->ways[this_way];
            struck = fail_at(interrupted, shape, operation, this_way, now.at, &expected);
            failures += struck;
            if (interrupted->slow)
                step = operation->whole ? 1 + now.at / 2 : effort(1, 3, 3);
            now.at += step;
        } while (struck && now.at < CALLS_MAX);
        assert_true(now.at < CALLS_MAX);
    }
    bson_string_free(expected.out, true);
    bson_string_free(expected.array, true);
    return failures;
}

/*
 * On a slow store play each operation on every sixth array, from another array on for the next
 * operation. Each run of an operation on a whole array makes a definition: play it on every
 * twelfth, and fail fewer of its later calls.
 */
static bool is_played(const interrupted_t *interrupted, const shape_t *shape,
                      const operation_t *operation, int64_t number)
{
    if (!(operation->shapes & (unsigned)shape->set))
        return false;
    if (!interrupted->slow)
        return true;
    return (number + (shape - shapes)) % (operation->whole ? 12 : 6) == 0;
}

static int64_t play_table(interrupted_t *interrupted, const shape_t *shape,
                          const operation_t *operations)
{
    int64_t failures = 0;
    for (const operation_t *operation = operations; operation->name; operation++)
        if (is_played(interrupted, shape, operation, operation - operations))
            failures += fail_each_call(interrupted, shape, operation);
    return failures;
}

int64_t interrupted_play(interrupted_t *interrupted)
{
    int64_t failures = 0;
    for (int i = 0; i < SHAPES; i++) {
        const shape_t *shape = &shapes[i];
        stage_t stage = {.interrupted = interrupted, .store = interrupted->store};
        now.shape = shape->name;
        now.operation = "set-up";
        if (interrupted->keep) {
            keep_array(interrupted, shape);
        } else {
            bson_init(&stage.storage);
            define_array(&stage, shape, shape->name);
            name_owner(&stage, "ada 0");
            fill_owner(&stage);
            end(&stage);
        }
        failures += play_table(interrupted, shape, array_operations);
        failures += play_table(interrupted, shape, window_operations);
    }
    return failures;
}
