/* Copies to a definition that cannot store every element: everything is checked before a write. */
#include "tools/definition_jobs.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GOOD "{\"_id\": 1, \"at\": {\"$date\": \"2026-01-01T00:00:00Z\"}, \"score\": 1}"

typedef struct stage {
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t definition; /* the target, which is not saved */
    bool appended;
    spill_copy_result_t result;
    spill_error_t error;
} stage_t;

static void open_stage(stage_t *stage, spill_layout_t layout, const char *sort_field)
{
    spill_definition_t from;
    *stage = (stage_t){.store = NULL};
    spill_definition_init(&from, "notes");
    strcpy(from.time_field, "at");
    assert_int_equal(spill_store_open("memory:", NULL, &stage->store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(stage->store, &from, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(stage->store, "notes", &stage->array, NULL), SPILL_OK);
    assert_int_equal(
        spill_convert_definition(&from, "target", layout, NULL, &stage->definition, NULL),
        SPILL_OK);
    strcpy(stage->definition.sort_field, sort_field);
}

static void close_stage(stage_t *stage)
{
    spill_array_close(stage->array);
    spill_store_close(stage->store, NULL);
}

static void append(stage_t *stage, const char *name, const char *json)
{
    bson_t storage = BSON_INITIALIZER;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(document);
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    spill_value_t element = spill_value_from_document(document);
    assert_int_equal(spill_array_append(stage->array, &owner, &element, 1, NULL, NULL, NULL),
                     SPILL_OK);
    bson_destroy(document);
    bson_destroy(&storage);
}

static void remove_number(stage_t *stage, const char *name, int64_t seq)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    assert_int_equal(spill_array_remove(stage->array, &owner, seq, NULL), SPILL_OK);
    bson_destroy(&storage);
}

static int64_t count_in_target(stage_t *stage, const char *name)
{
    bson_t storage = BSON_INITIALIZER;
    spill_array_t *target;
    spill_count_t count;
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    assert_int_equal(spill_array_open(stage->store, "target", &target, NULL), SPILL_OK);
    assert_int_equal(spill_array_count(target, &owner, &count, NULL), SPILL_OK);
    spill_array_close(target);
    bson_destroy(&storage);
    return count.count;
}

static spill_code_t convert(stage_t *stage, spill_copy_options_t options)
{
    options.as = "target";
    options.definition = &stage->definition;
    stage->result = (spill_copy_result_t){0};
    return spill_convert(stage->store, "notes", &options, &stage->result, &stage->error);
}

static spill_code_t check(stage_t *stage)
{
    spill_copy_options_t options = {.as = "target", .definition = &stage->definition};
    stage->result = (spill_copy_result_t){0};
    return spill_copy_check(stage->store, stage->store, "notes", &options, &stage->result,
                            &stage->error);
}

static void assert_message(const stage_t *stage, const char *text)
{
    if (strstr(stage->error.message, text) == NULL)
        fail_msg("'%s' does not say '%s'", stage->error.message, text);
}

static void assert_not_defined(stage_t *stage)
{
    spill_definition_t definition;
    assert_int_equal(spill_store_definition(stage->store, "target", &definition, NULL),
                     SPILL_NOT_FOUND);
}

/* The last element of the last owner cannot be stored: neither the definition nor an element is
 * written. After its removal the same conversion succeeds. */
static void nothing_is_written_before_all_is_checked(void **state)
{
    (void)state;
    static const struct {
        spill_layout_t layout;
        const char *sort_field;
        const char *bad;
        const char *message;
    } cases[] = {
        {SPILL_LAYOUT_REFERENCE, "", "{\"spill\": 1}", "cannot have a field 'spill'"},
        {SPILL_LAYOUT_SUBSET, "", "{\"elementId\": 1}", "cannot have a field 'elementId'"},
        {SPILL_LAYOUT_BUCKET, "", "{\"at\": 1}", "time"},
        {SPILL_LAYOUT_CAPPED, "score", "{\"score\": {\"$numberDecimal\": \"7\"}}", "decimal128"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        stage_t stage;
        open_stage(&stage, cases[i].layout, cases[i].sort_field);
        append(&stage, "a", GOOD);
        append(&stage, "b", GOOD);
        append(&stage, "b", cases[i].bad);
        for (int dry = 0; dry < 2; dry++) {
            assert_int_equal(dry ? check(&stage) : convert(&stage, (spill_copy_options_t){0}),
                             SPILL_INVALID);
            assert_message(&stage, "owner \"b\" of 'notes'");
            assert_message(&stage, "element 1");
            assert_message(&stage, cases[i].message);
            assert_int_equal(stage.result.elements, 0);
            assert_not_defined(&stage);
        }
        remove_number(&stage, "b", 1);
        assert_int_equal(check(&stage), SPILL_OK);
        assert_int_equal(stage.result.checked, 2);
        assert_not_defined(&stage);
        assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_OK);
        assert_int_equal(stage.result.elements, 2);
        assert_int_equal(stage.result.differences, 0);
        close_stage(&stage);
    }
}

/* The check of a later run reads only what that run copies. */
static void copied_elements_are_not_checked_again(void **state)
{
    (void)state;
    stage_t stage;
    open_stage(&stage, SPILL_LAYOUT_REFERENCE, "");
    for (int i = 0; i < 20; i++)
        append(&stage, "a", GOOD);
    assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_OK);
    assert_int_equal(stage.result.checked, 20);
    append(&stage, "a", GOOD);
    append(&stage, "b", GOOD);
    assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_OK);
    assert_int_equal(stage.result.checked, 2);
    assert_int_equal(stage.result.elements, 2);
    close_stage(&stage);
}

/* From now on, arrays of more than two elements have pages, so they are not copied in groups. */
static void lower_threshold(stage_t *stage)
{
    spill_definition_t from = *spill_array_get_definition(stage->array);
    from.bounds.threshold = from.bounds.page_capacity = 2;
    assert_int_equal(spill_store_define(stage->store, &from, NULL), SPILL_OK);
    spill_array_close(stage->array);
    assert_int_equal(spill_array_open(stage->store, "notes", &stage->array, NULL), SPILL_OK);
}

/* The first copied element: another client now appends one that cannot be stored to owner b. */
static void append_bad(void *context, const spill_copy_result_t *result)
{
    stage_t *stage = context;
    if (result->elements == 1 && !stage->appended) {
        stage->appended = true;
        append(stage, "b", "{\"score\": 2}");
        append(stage, "b", "{\"spill\": 1}");
    }
}

static void element_appended_after_the_check_is_refused(void **state)
{
    (void)state;
    stage_t stage;
    open_stage(&stage, SPILL_LAYOUT_REFERENCE, "");
    lower_threshold(&stage);
    append(&stage, "a", GOOD);
    for (int i = 0; i < 4; i++)
        append(&stage, "b", GOOD);
    spill_copy_options_t options = {.progress = append_bad, .context = &stage};
    assert_int_equal(convert(&stage, options), SPILL_INVALID);
    assert_message(&stage, "owner \"b\" of 'notes'");
    assert_message(&stage, "element 5: an element of 'target' cannot have a field 'spill'");
    assert_int_equal(count_in_target(&stage, "a"), 1);
    /* The next run finds it before it writes. */
    int64_t copied = count_in_target(&stage, "b");
    append(&stage, "a", GOOD);
    assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_INVALID);
    assert_int_equal(count_in_target(&stage, "a"), 1);
    assert_int_equal(count_in_target(&stage, "b"), copied);
    remove_number(&stage, "b", 5);
    assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_OK);
    assert_int_equal(stage.result.verified, 7);
    assert_int_equal(stage.result.differences, 0);
    close_stage(&stage);
}

/* A top-N target of the same order may refuse elements if its head is smaller. */
static void smaller_head_is_checked(void **state)
{
    (void)state;
    stage_t stage;
    char json[40000];
    open_stage(&stage, SPILL_LAYOUT_CAPPED, "score");
    append(&stage, "a", GOOD);
    snprintf(json, sizeof json, "{\"score\": 2, \"text\": \"%030000d\"}", 0);
    append(&stage, "b", json);
    assert_int_equal(convert(&stage, (spill_copy_options_t){0}), SPILL_OK);
    spill_definition_t smaller = stage.definition;
    strcpy(smaller.name, "smaller");
    strcpy(smaller.collection, "smaller");
    smaller.bounds.head_bytes_max = 20000;
    smaller.largest = smaller.bounds;
    smaller.op_window = 1;
    spill_copy_options_t options = {.as = "smaller", .definition = &smaller};
    stage.result = (spill_copy_result_t){0};
    assert_int_equal(spill_convert(stage.store, "target", &options, &stage.result, &stage.error),
                     SPILL_TOO_BIG);
    assert_message(&stage, "owner \"b\" of 'target'");
    assert_int_equal(stage.result.elements, 0);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_written_before_all_is_checked),
        cmocka_unit_test(copied_elements_are_not_checked_again),
        cmocka_unit_test(element_appended_after_the_check_is_refused),
        cmocka_unit_test(smaller_head_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
