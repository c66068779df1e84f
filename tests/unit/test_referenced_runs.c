/* Large elements: every operation that reads many of them holds only a few in memory. */
#include "support/fault_store.h"
#include "tools/definition_jobs.h"

#include <spillway/spillway.h>

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A third of the elements, and the owners that the leader knows (store/embedded/read_ahead.h). */
enum { ELEMENTS = 48, ELEMENT_BYTES = 1024 * 1024, RUN_MOST = (16 + 7) * ELEMENT_BYTES };

typedef struct stage {
    spill_store_t *memory;
    spill_store_t *watched;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    size_t before, most;
} stage_t;

static size_t in_use(void)
{
    struct mallinfo2 info = mallinfo2(); /* always nothing under sanitizers */
    return info.uordblks + info.hblkhd;
}

static void track_memory(void *context, int64_t index, const spill_request_t *request)
{
    stage_t *stage = context;
    (void)index;
    (void)request;
    size_t now = in_use();
    if (now > stage->most)
        stage->most = now;
}

static void append_all(stage_t *stage)
{
    char *text = bson_malloc0(ELEMENT_BYTES);
    memset(text, 'x', ELEMENT_BYTES - 1);
    for (int i = 0; i < ELEMENTS; i++) {
        bson_t document = BSON_INITIALIZER;
        spill_append_result_t result;
        BSON_APPEND_INT32(&document, "rating", i);
        BSON_APPEND_DATE_TIME(&document, "ts", 1000LL * i);
        BSON_APPEND_UTF8(&document, "text", text);
        spill_value_t element = spill_value_from_document(&document);
        assert_int_equal(
            spill_array_append(stage->array, &stage->owner, &element, 1, NULL, &result, NULL),
            SPILL_OK);
        bson_destroy(&document);
    }
    bson_free(text);
}

static void open_stage(stage_t *stage)
{
    spill_definition_t definition;
    const fault_hooks_t hooks = {.context = stage, .after = track_memory};
    *stage = (stage_t){.storage = BSON_INITIALIZER};
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    assert_int_equal(spill_store_open("memory:", NULL, &stage->memory, NULL), SPILL_OK);
    fault_wrap(stage->memory, &hooks, &stage->watched);
    assert_int_equal(spill_definition_preset(&definition, "reviews-separate", "reviews", NULL),
                     SPILL_OK);
    strcpy(definition.time_field, "ts");
    assert_int_equal(spill_store_define(stage->memory, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(stage->watched, "reviews", &stage->array, NULL), SPILL_OK);
    append_all(stage);
}

static void close_stage(stage_t *stage)
{
    spill_array_close(stage->array);
    spill_store_close(stage->watched, NULL);
    spill_store_close(stage->memory, NULL);
    bson_destroy(&stage->storage);
}

static void begin(stage_t *stage)
{
    stage->before = stage->most = in_use();
}

static void assert_few_at_once(const stage_t *stage)
{
    assert_in_range(stage->most - stage->before, 0, RUN_MOST);
}

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    assert_int_equal(element->seq, (*(int64_t *)context)++);
    return true;
}

static void all_are_read_few_at_once(void **state)
{
    (void)state;
    stage_t stage;
    open_stage(&stage);

    begin(&stage);
    spill_verify_summary_t verified;
    assert_int_equal(spill_array_verify(stage.array, NULL, NULL, NULL, &verified, NULL), SPILL_OK);
    assert_int_equal(verified.findings, 0);
    assert_int_equal(verified.elements, ELEMENTS);
    assert_few_at_once(&stage);

    begin(&stage);
    spill_repair_summary_t repaired;
    assert_int_equal(spill_array_repair(stage.array, NULL, true, NULL, NULL, &repaired, NULL),
                     SPILL_OK);
    assert_int_equal(repaired.findings, 0);
    assert_few_at_once(&stage);

    begin(&stage);
    int64_t next = 0;
    assert_int_equal(spill_array_export(stage.array, &stage.owner, count_element, &next, NULL),
                     SPILL_OK);
    assert_int_equal(next, ELEMENTS);
    assert_few_at_once(&stage);

    begin(&stage);
    int64_t removed;
    bson_t *filter = BCON_NEW("rating", BCON_INT32(ELEMENTS - 1));
    assert_int_equal(spill_array_remove_where(stage.array, &stage.owner, filter, 0, &removed, NULL),
                     SPILL_OK);
    assert_int_equal(removed, 1);
    bson_destroy(filter);
    assert_few_at_once(&stage);

    begin(&stage);
    int64_t watermark;
    assert_int_equal(spill_array_trim_older(stage.array, &stage.owner, 30000, &watermark, NULL),
                     SPILL_OK);
    assert_int_equal(watermark, 30);
    assert_int_equal(spill_array_trim_keep(stage.array, &stage.owner, 2, &watermark, NULL),
                     SPILL_OK);
    assert_int_equal(watermark, ELEMENTS - 3);
    assert_few_at_once(&stage);

    close_stage(&stage);
}

/* The elements that a cap keeps are found from the newest on and copied one at a time. */
static void capped_target_copies_few_at_once(void **state)
{
    (void)state;
    stage_t stage;
    spill_definition_t capped;
    spill_copy_result_t copied = {0};
    spill_copy_options_t options = {.as = "newest"};
    open_stage(&stage);
    assert_int_equal(spill_convert_definition(spill_array_get_definition(stage.array), "newest",
                                              SPILL_LAYOUT_CAPPED, NULL, &capped, NULL),
                     SPILL_OK);
    capped.bounds.threshold = 2;
    capped.bounds.head_bytes_max = 4 * ELEMENT_BYTES;
    assert_int_equal(spill_store_define(stage.memory, &capped, NULL), SPILL_OK);
    begin(&stage);
    assert_int_equal(spill_convert(stage.watched, "reviews", &options, &copied, NULL), SPILL_OK);
    assert_int_equal(copied.elements, 2);
    assert_int_equal(copied.differences, 0);
    assert_few_at_once(&stage);
    close_stage(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_are_read_few_at_once),
        cmocka_unit_test(capped_target_copies_few_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
