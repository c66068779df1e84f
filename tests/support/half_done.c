#include "support/half_done.h"

#include "core/array.h"
#include "support/effort.h"
#include "support/fault_store.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ELEMENTS = 12, TRIMMED = 9, CALLS_MAX = 60 };

enum { IN_PAGE = 4 }; /* an element that is in a page in each of the layouts */

typedef enum change { APPEND, EDIT, REMOVE, TRIM, DROP, CHANGES } change_t;

static const char *const change_names[CHANGES] = {"append", "edit", "remove", "trim", "drop"};

static const struct shape {
    const char *name;
    spill_layout_t layout;
    spill_keep_t keep;
    bool leaves[CHANGES]; /* can a crash during the change leave something for repair? */
} shapes[] = {
    {"newest", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_NEWEST, {false, false, true, true, true}},
    {"oldest", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST, {true, false, true, true, true}},
    {"apart", SPILL_LAYOUT_REFERENCE, SPILL_KEEP_NEWEST, {false, true, true, true, true}},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* One array, opened twice: by a client that crashes, and by one that does not. */
typedef struct stage {
    const struct shape *shape;
    spill_store_t *crashing_store;
    spill_array_t *crashing;
    spill_array_t *direct;
    int64_t crash_at; /* the number of the call at which it crashes; INT64_MAX: never */
    bool applied;     /* that call takes effect, but its answer is lost */
    bson_t storage;
    spill_value_t owner;
} stage_t;

static fault_t decide(void *context, int64_t index, const spill_request_t *request)
{
    const stage_t *stage = context;
    (void)request;
    if (index < stage->crash_at)
        return FAULT_NONE;
    return index == stage->crash_at && stage->applied ? FAULT_LOST_APPLIED : FAULT_FAIL;
}

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* ---- the array ------------------------------------------------------------------------------- */

static void define(spill_store_t *store, const struct shape *shape)
{
    spill_definition_t definition;
    spill_error_t error;
    bool referenced = shape->layout == SPILL_LAYOUT_REFERENCE;
    must(spill_definition_preset(&definition, referenced ? "reviews-separate" : "feed", shape->name,
                                 &error),
         &error);
    definition.keep = shape->keep;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 2;
    snprintf(definition.collection, SPILL_NAME_SIZE, "%sHeads", shape->name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sPages", shape->name);
    must(spill_store_define(store, &definition, &error), &error);
}

static bson_t *element_of(int64_t number)
{
    return BCON_NEW("rating", BCON_INT64(number));
}

static spill_code_t append(const stage_t *stage, spill_array_t *array, int64_t number)
{
    bson_t *document = element_of(number);
    spill_value_t element = spill_value_from_document(document);
    spill_append_result_t result;
    spill_error_t error;
    spill_code_t code =
        spill_array_append(array, &stage->owner, &element, 1, NULL, &result, &error);
    bson_destroy(document);
    return code;
}

/* Append the ELEMENTS elements that exist before the change; they fill head and pages. */
static void append_all(const stage_t *stage)
{
    bson_t *documents[ELEMENTS];
    spill_value_t elements[ELEMENTS];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    for (int i = 0; i < ELEMENTS; i++) {
        documents[i] = element_of(i);
        elements[i] = spill_value_from_document(documents[i]);
    }
    spill_append_options_init(&options);
    options.fill = true;
    must(spill_array_append(stage->direct, &stage->owner, elements, ELEMENTS, &options, &result,
                            &error),
         &error);
    for (int i = 0; i < ELEMENTS; i++)
        bson_destroy(documents[i]);
}

static spill_code_t make_change(const stage_t *stage, change_t change)
{
    spill_error_t error;
    bson_t *document = element_of(1000);
    spill_value_t element = spill_value_from_document(document);
    spill_code_t code = SPILL_OK;
    switch (change) {
    case APPEND: /* at least one of them finds the head or the tail page full */
        for (int64_t i = 0; code == SPILL_OK && i < 4; i++)
            code = append(stage, stage->crashing, ELEMENTS + i);
        break;
    case EDIT:
        code = spill_array_edit(stage->crashing, &stage->owner, IN_PAGE, &element, &error);
        break;
    case REMOVE:
        code = spill_array_remove(stage->crashing, &stage->owner, IN_PAGE, &error);
        break;
    case TRIM:
        code = spill_array_trim(stage->crashing, &stage->owner, TRIMMED, &error);
        break;
    case DROP:
    case CHANGES:
        code = spill_array_drop_owner(stage->crashing, &stage->owner, &error);
        break;
    }
    bson_destroy(document);
    return code;
}

/* ---- after a crash --------------------------------------------------------------------------- */

static int64_t repair(const stage_t *stage, bool look_only)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    must(spill_array_repair(stage->direct, &stage->owner, look_only, NULL, NULL, &summary, &error),
         &error);
    assert_int_equal(summary.owners, 1);
    return summary.findings;
}

typedef struct reading {
    change_t change;
    int64_t next; /* the number that is expected */
    int64_t count;
} reading_t;

static bool check_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    reading_t *reading = context;
    bson_t document;
    bson_iter_t iter;
    assert_true(element->seq >= reading->next);
    bool removed =
        reading->change == REMOVE && element->seq == reading->next + 1 && reading->next == IN_PAGE;
    bool trimmed = reading->change == TRIM && reading->next == 0 && element->seq == TRIMMED;
    assert_true(element->seq == reading->next || removed || trimmed);
    assert_true(bson_init_static(&document, element->value.data, element->value.size_bytes));
    assert_true(bson_iter_init_find(&iter, &document, "rating"));
    bool edited = reading->change == EDIT && element->seq == IN_PAGE;
    assert_true(bson_iter_as_int64(&iter) == element->seq ||
                (edited && bson_iter_as_int64(&iter) == 1000));
    reading->next = element->seq + 1;
    reading->count++;
    return true;
}

static void print_finding(void *context, const spill_finding_t *finding)
{
    const char *owner = context;
    print_error("%s: %s: page %" PRId64 ", I%d: %s\n", finding->definition, owner, finding->page,
                finding->invariant, finding->text);
}

/* No element is missing, the count is right, and an append works. */
static void check_array(const stage_t *stage, change_t change)
{
    reading_t reading = {.change = change};
    spill_count_t count;
    spill_verify_summary_t verified;
    spill_error_t error;
    must(spill_array_export(stage->direct, &stage->owner, check_element, &reading, &error), &error);
    must(spill_array_count(stage->direct, &stage->owner, &count, &error), &error);
    assert_int_equal(count.count, reading.count);
    assert_int_equal(count.next, reading.next);
    assert_in_range(reading.next, change == DROP ? 0 : ELEMENTS, ELEMENTS + 4);
    must(spill_array_verify(stage->direct, &stage->owner, print_finding,
                            (void *)(uintptr_t)change_names[change], &verified, &error),
         &error);
    assert_int_equal(verified.findings, 0);
    must(append(stage, stage->direct, reading.next), &error);
    must(spill_array_count(stage->direct, &stage->owner, &count, &error), &error);
    assert_int_equal(count.count, reading.count + 1);
}

/* ---- crashes --------------------------------------------------------------------------------- */

/*
 * Where other programs may remove heads, repair leaves pages without a head that no note tells of.
 * A drop has left a note.
 */
static void check_nothing_is_left(const stage_t *stage)
{
    spill_repair_summary_t summary;
    spill_error_t error;
    must(spill_array_repair(stage->direct, &stage->owner, false, NULL, NULL, &summary, &error),
         &error);
    assert_int_equal(summary.left, 0);
}

/* Make the change for a new owner, and crash at call `at`. Sets *crashed if it crashed, and *left
 * if repair found something. */
static void crash_during(stage_t *stage, change_t change, int64_t at, bool *crashed, bool *left)
{
    char name[64];
    snprintf(name, sizeof name, "%s %" PRId64 "%s", change_names[change], at,
             stage->applied ? "!" : "");
    bson_reinit(&stage->storage);
    stage->owner = spill_value_from_utf8(&stage->storage, name);
    append_all(stage);
    stage->crash_at = fault_calls(stage->crashing_store) + at;
    *crashed = make_change(stage, change) != SPILL_OK;
    *crashed = *crashed ||
               fault_calls(stage->crashing_store) > stage->crash_at; /* after the change itself */
    stage->crash_at = INT64_MAX;
    int64_t found = repair(stage, true);
    if (found > 0 && !stage->shape->leaves[change])
        fail_msg("%s: %s: %" PRId64 " found", stage->shape->name, name, found);
    if (repair(stage, true) != found || repair(stage, false) != found || repair(stage, true) != 0)
        fail_msg("%s: %s: found %" PRId64 " first, and then another number", stage->shape->name,
                 name, found);
    check_nothing_is_left(stage);
    *left = *left || found > 0;
    check_array(stage, change);
}

/*
 * A crash after call k leaves the same documents as a crash before call k + 1. So every second
 * call, once before it and once after it, leaves every state. With SPILLWAY_LONG each call is
 * played both ways.
 */
static void play(spill_store_t *store, const struct shape *shape)
{
    stage_t stage = {.shape = shape, .crash_at = INT64_MAX};
    fault_hooks_t hooks = {.context = &stage, .decide = decide};
    spill_error_t error;
    define(store, shape);
    fault_wrap(store, &hooks, &stage.crashing_store);
    must(spill_array_open(stage.crashing_store, shape->name, &stage.crashing, &error), &error);
    must(spill_array_open(store, shape->name, &stage.direct, &error), &error);
    bson_init(&stage.storage);
    for (change_t change = 0; change < CHANGES; change++) {
        bool left = false;
        for (int applied = 0; applied < 2; applied++) {
            bool crashed = true;
            stage.applied = applied == 1;
            for (int64_t at = 0; crashed; at += effort(1, 2, 2)) {
                if (at >= CALLS_MAX)
                    fail_msg("%s: %s has more than %d calls", shape->name, change_names[change],
                             CALLS_MAX);
                crash_during(&stage, change, at, &crashed, &left);
            }
        }
        if (left != shape->leaves[change])
            fail_msg("%s: %s: deaths left %s", shape->name, change_names[change],
                     left ? "something" : "nothing");
    }
    spill_array_close(stage.direct);
    spill_array_close(stage.crashing);
    spill_store_close(stage.crashing_store, NULL);
    bson_destroy(&stage.storage);
}

void half_done_repaired(spill_store_t *store)
{
    for (int i = 0; i < SHAPES; i++)
        play(store, &shapes[i]);
}
