/* Capped arrays with a top-N, through the public API. */
#include "tools/definition_jobs.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct stage {
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    spill_append_result_t result;
    spill_error_t error;
} stage_t;

static spill_definition_t top_n(int64_t cap)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "scores", NULL), SPILL_OK);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    strcpy(definition.sort_field, "score");
    strcpy(definition.id_field, "id");
    strcpy(definition.time_field, "at");
    definition.bounds.threshold = cap;
    return definition;
}

static void open_stage(stage_t *stage, const spill_definition_t *definition)
{
    *stage = (stage_t){.storage = BSON_INITIALIZER};
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    assert_int_equal(spill_store_open("memory:", NULL, &stage->store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(stage->store, definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(stage->store, definition->name, &stage->array, NULL),
                     SPILL_OK);
}

static void close_stage(stage_t *stage)
{
    spill_array_close(stage->array);
    spill_store_close(stage->store, NULL);
    bson_destroy(&stage->storage);
}

/* Make {id, score, at}, and perhaps a text. */
static void make_score(int id, int score, size_t text_bytes, bson_t *document)
{
    char *text = bson_malloc0(text_bytes + 1);
    bson_init(document);
    BSON_APPEND_INT32(document, "id", id);
    BSON_APPEND_INT32(document, "score", score);
    BSON_APPEND_DATE_TIME(document, "at", 1000LL * id);
    memset(text, 'x', text_bytes);
    BSON_APPEND_UTF8(document, "text", text);
    bson_free(text);
}

static spill_code_t append(stage_t *stage, int first, const int *scores, size_t count,
                           const spill_op_t *op)
{
    bson_t documents[16];
    spill_value_t values[16];
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = op;
    for (size_t i = 0; i < count; i++) {
        make_score(first + (int)i, scores[i], 0, &documents[i]);
        values[i] = spill_value_from_document(&documents[i]);
    }
    spill_code_t code = spill_array_append(stage->array, &stage->owner, values, count, &options,
                                           &stage->result, &stage->error);
    while (count > 0)
        bson_destroy(&documents[--count]);
    return code;
}

#define APPEND(stage, first, op, ...)                                                              \
    append(stage, first, (const int[]){__VA_ARGS__},                                               \
           sizeof((const int[]){__VA_ARGS__}) / sizeof(int), op)

static void assert_slice(spill_slice_t *slice, const char *expected)
{
    char text[256] = "";
    for (size_t i = 0; i < slice->count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%d", i > 0 ? " " : "",
                 (int)slice->elements[i].seq);
    assert_string_equal(text, expected);
    spill_slice_free(slice);
}

static void assert_scores(stage_t *stage, const char *newest_first, const char *top_n_first)
{
    spill_slice_t *slice;
    spill_verify_summary_t verified;
    assert_int_equal(spill_array_read(stage->array, &stage->owner, NULL, &slice, NULL), SPILL_OK);
    assert_slice(slice, newest_first);
    assert_int_equal(spill_array_top(stage->array, &stage->owner, 100, &slice, NULL), SPILL_OK);
    assert_false(slice->more);
    assert_slice(slice, top_n_first);
    assert_int_equal(spill_array_verify(stage->array, NULL, NULL, NULL, &verified, NULL), SPILL_OK);
    assert_int_equal(verified.findings, 0);
}

static void append_reports_dropped_elements(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    spill_count_t count;
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, NULL, 5, 9, 7), SPILL_OK);
    assert_int_equal(stage.result.dropped, 0);
    assert_int_equal(APPEND(&stage, 3, NULL, 4), SPILL_OK);
    assert_int_equal(stage.result.first, 3);
    assert_int_equal(stage.result.count, 1);
    assert_int_equal(stage.result.dropped, 1);
    assert_int_equal(APPEND(&stage, 4, NULL, 1, 8, 2, 10), SPILL_OK);
    assert_int_equal(stage.result.first, 4);
    assert_int_equal(stage.result.dropped, 2);
    assert_scores(&stage, "7 5 1", "7 1 5");
    assert_int_equal(spill_array_count(stage.array, &stage.owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 3);
    assert_int_equal(count.next, 8);
    close_stage(&stage);
}

static void retry_writes_nothing(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(2);
    spill_op_t op = {.id = "a", .id_bytes = 1};
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, &op, 5, 1, 7), SPILL_OK);
    assert_int_equal(stage.result.dropped, 1);
    assert_int_equal(APPEND(&stage, 0, &op, 5, 1, 7), SPILL_OK);
    assert_true(stage.result.repeated);
    assert_int_equal(stage.result.first, 0);
    assert_int_equal(stage.result.dropped, 1);
    assert_int_equal(APPEND(&stage, 3, NULL, 6), SPILL_OK);
    assert_int_equal(APPEND(&stage, 0, &op, 5, 1, 7), SPILL_OK);
    assert_true(stage.result.repeated);
    assert_int_equal(stage.result.dropped, 2); /* as of now */
    assert_scores(&stage, "3 2", "2 3");
    assert_int_equal(APPEND(&stage, 0, &op, 5), SPILL_CONFLICT);
    close_stage(&stage);
}

static void single_element_may_fill_document(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    bson_t document;
    open_stage(&stage, &definition);
    make_score(0, 5, (size_t)definition.bounds.head_bytes_max, &document);
    spill_value_t large = spill_value_from_document(&document);
    assert_int_equal(
        spill_array_append(stage.array, &stage.owner, &large, 1, NULL, &stage.result, &stage.error),
        SPILL_TOO_BIG);
    assert_non_null(strstr(stage.error.message, "headBytesMax, --max-bytes"));
    bson_destroy(&document);
    /* ... and the lowest are dropped until the rest fits. */
    for (int i = 0; i < 3; i++) {
        make_score(i, 5 - i, (size_t)definition.bounds.head_bytes_max / 2 - 9000, &document);
        spill_value_t half = spill_value_from_document(&document);
        assert_int_equal(spill_array_append(stage.array, &stage.owner, &half, 1, NULL,
                                            &stage.result, &stage.error),
                         SPILL_OK);
        assert_int_equal(stage.result.dropped, i == 2);
        bson_destroy(&document);
    }
    assert_scores(&stage, "1 0", "0 1");
    close_stage(&stage);
}

/*
 * The head's other fields count for its bytes. The result reports elements dropped because of them.
 */
static void drops_for_other_fields_are_reported(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    spill_append_options_t options;
    bson_t document;
    open_stage(&stage, &definition);
    spill_append_options_init(&options);
    size_t third = (size_t)definition.bounds.head_bytes_max / 3 - 9000;
    for (int i = 0; i < 3; i++) {
        make_score(i, 5 - i, third, &document);
        spill_value_t element = spill_value_from_document(&document);
        assert_int_equal(
            spill_array_append(stage.array, &stage.owner, &element, 1, NULL, &stage.result, NULL),
            SPILL_OK);
        assert_int_equal(stage.result.crowded_out, 0);
        bson_destroy(&document);
    }
    char *text = bson_malloc0(2 * third + 1);
    memset(text, 'x', 2 * third);
    bson_t *update = BCON_NEW("$set", "{", "about", BCON_UTF8(text), "}");
    options.update = update;
    make_score(3, 9, 0, &document);
    spill_value_t small = spill_value_from_document(&document);
    assert_int_equal(spill_array_append(stage.array, &stage.owner, &small, 1, &options,
                                        &stage.result, &stage.error),
                     SPILL_OK);
    assert_int_equal(stage.result.dropped, 0);
    assert_int_equal(stage.result.crowded_out, 1); /* the third was dropped by the cap */
    assert_scores(&stage, "3 0", "3 0");
    bson_destroy(&document);
    bson_destroy(update);
    bson_free(text);
    close_stage(&stage);
}

/* The value of a decimal128 is not compared: it would be dropped first, for ever. */
static void decimal_is_refused(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    bson_t game, decimal;
    bson_decimal128_t money;
    open_stage(&stage, &definition);
    make_score(0, 5, 0, &game);
    bson_decimal128_from_string("1000000.50", &money);
    bson_init(&decimal);
    BSON_APPEND_DECIMAL128(&decimal, "score", &money);
    spill_value_t values[] = {spill_value_from_document(&game),
                              spill_value_from_document(&decimal)};
    assert_int_equal(
        spill_array_append(stage.array, &stage.owner, values, 2, NULL, &stage.result, &stage.error),
        SPILL_INVALID);
    assert_non_null(strstr(stage.error.message, "element 1: 'score' is a decimal128"));
    assert_int_equal(
        spill_array_append(stage.array, &stage.owner, values, 1, NULL, &stage.result, &stage.error),
        SPILL_OK);
    assert_int_equal(stage.result.first, 0);
    assert_int_equal(spill_array_edit(stage.array, &stage.owner, 0, &values[1], &stage.error),
                     SPILL_INVALID);
    assert_scores(&stage, "0", "0");
    bson_destroy(&game);
    bson_destroy(&decimal);
    close_stage(&stage);
}

static void edits_and_removals(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    bson_t document, storage = BSON_INITIALIZER;
    int64_t watermark;
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, NULL, 5, 1, 9, 2, 7), SPILL_OK);
    assert_scores(&stage, "4 2 0", "2 4 0");
    make_score(2, 6, 0, &document);
    spill_value_t lower = spill_value_from_document(&document);
    assert_int_equal(spill_array_edit(stage.array, &stage.owner, 2, &lower, NULL), SPILL_OK);
    bson_destroy(&document);
    assert_scores(&stage, "4 2 0", "4 2 0");
    assert_int_equal(spill_array_remove(stage.array, &stage.owner, 3, NULL), SPILL_NOT_FOUND);
    assert_int_equal(spill_array_remove(stage.array, &stage.owner, 4, NULL), SPILL_OK);
    assert_int_equal(APPEND(&stage, 5, NULL, 0), SPILL_OK); /* at its position */
    assert_int_equal(stage.result.dropped, 0);
    assert_scores(&stage, "5 2 0", "2 0 5");
    assert_int_equal(spill_array_trim_keep(stage.array, &stage.owner, 2, &watermark, NULL),
                     SPILL_OK);
    assert_int_equal(watermark, 2);
    assert_int_equal(spill_array_trim_older(stage.array, &stage.owner, 5000, &watermark, NULL),
                     SPILL_OK);
    assert_scores(&stage, "5", "5");
    bson_destroy(&storage);
    close_stage(&stage);
}

static bool take_slice(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    *(int64_t *)context = *(int64_t *)context * 10 + element->seq;
    return true;
}

/* Convert to another layout and back. */
static void convert_from_and_to(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(2), other;
    spill_copy_result_t copied = {0};
    spill_copy_options_t options = {.as = "plain"};
    int64_t seen = 0;
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, NULL, 1, 5, 2, 3, 4), SPILL_OK);
    assert_int_equal(spill_convert_definition(&definition, "plain", SPILL_LAYOUT_OUTLIER, NULL,
                                              &other, &stage.error),
                     SPILL_OK);
    assert_int_equal(spill_store_define(stage.store, &other, NULL), SPILL_OK);
    assert_int_equal(spill_convert(stage.store, "scores", &options, &copied, &stage.error),
                     SPILL_OK);
    assert_int_equal(copied.elements, 2);
    assert_int_equal(copied.verified, 2);
    assert_int_equal(copied.differences, 0);
    spill_array_t *plain;
    assert_int_equal(spill_array_open(stage.store, "plain", &plain, NULL), SPILL_OK);
    assert_int_equal(spill_array_export(plain, &stage.owner, take_slice, &seen, NULL), SPILL_OK);
    assert_int_equal(seen, 14);
    spill_array_close(plain);
    options.as = "scores";
    copied = (spill_copy_result_t){0};
    assert_int_equal(spill_convert(stage.store, "plain", &options, &copied, &stage.error),
                     SPILL_OK);
    assert_int_equal(copied.elements, 0);
    assert_int_equal(copied.before, 2);
    assert_int_equal(copied.verified, 2);
    assert_int_equal(copied.differences, 0);
    close_stage(&stage);
}

/* Age retention also applies: of the kept elements, the old ones are dropped. */
static void age_retention_also_applies(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    definition.keep_seconds = 3600;
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, NULL, 5, 1, 9), SPILL_OK); /* of 1970 */
    assert_scores(&stage, "", "");
    close_stage(&stage);
}

/* The cost does not depend on how many numbers were assigned: the head's records stay small. */
static void old_elements_do_not_cost_more(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t definition = top_n(3);
    spill_slice_t *slice;
    open_stage(&stage, &definition);
    assert_int_equal(APPEND(&stage, 0, NULL, 100, 99, 98), SPILL_OK);
    for (int i = 3; i < 20003; i++)
        assert_int_equal(APPEND(&stage, i, NULL, i % 90), SPILL_OK);
    assert_scores(&stage, "2 1 0", "0 1 2");
    assert_int_equal(APPEND(&stage, 20003, NULL, 200), SPILL_OK);
    assert_scores(&stage, "20003 1 0", "20003 0 1");
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.skip = 1;
    assert_int_equal(spill_array_read(stage.array, &stage.owner, &options, &slice, NULL), SPILL_OK);
    assert_slice(slice, "1 0");
    options.skip = 0;
    options.before = 20003;
    assert_int_equal(spill_array_read(stage.array, &stage.owner, &options, &slice, NULL), SPILL_OK);
    assert_slice(slice, "1 0");
    options.before = INT64_MAX;
    options.order = SPILL_OLDEST_FIRST;
    options.after = 1;
    assert_int_equal(spill_array_read(stage.array, &stage.owner, &options, &slice, NULL), SPILL_OK);
    assert_slice(slice, "20003");
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_reports_dropped_elements),
        cmocka_unit_test(retry_writes_nothing),
        cmocka_unit_test(single_element_may_fill_document),
        cmocka_unit_test(drops_for_other_fields_are_reported),
        cmocka_unit_test(decimal_is_refused),
        cmocka_unit_test(edits_and_removals),
        cmocka_unit_test(convert_from_and_to),
        cmocka_unit_test(age_retention_also_applies),
        cmocka_unit_test(old_elements_do_not_cost_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
