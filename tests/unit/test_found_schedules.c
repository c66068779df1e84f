/*
 * Schedules of the simulation that once ended in a wrong answer, step by step. The hooks of a
 * client's store let other clients act between two of its requests.
 */
#include "core/array.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/findings.h"
#include "support/model_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static bool is_head_read(const spill_request_t *request)
{
    return request && request->kind == SPILL_REQUEST_READ && request->page == SPILL_HEAD;
}

static spill_array_t *open_array(spill_store_t *store, const char *name)
{
    spill_array_t *array;
    assert_int_equal(spill_array_open(store, name, &array, NULL), SPILL_OK);
    return array;
}

/* ---- a page that was trimmed, and restored by a late PUT_PAGE -------------------------------- */

typedef struct restored {
    spill_store_t *late;   /* the store of the client whose PUT_PAGE comes late */
    spill_array_t *others; /* the same array for clients without faults */
    spill_array_t *reader;
    spill_value_t owner;
    int puts;
    bool acted;
} restored_t;

static fault_t delay_first_put(void *context, int64_t index, const spill_request_t *request)
{
    restored_t *schedule = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_PUT_PAGE || schedule->puts++ > 0)
        return FAULT_NONE;
    return FAULT_LOST_DELAYED;
}

/* After the first PUT_PAGE was sent: another client edits an element of the head. */
static void edit_after_put(void *context, int64_t index, const spill_request_t *request)
{
    restored_t *schedule = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_PUT_PAGE || schedule->puts != 1)
        return;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t edited = spill_value_from_int64(&storage, 1000);
    schedule->puts++;
    assert_int_equal(spill_array_edit(schedule->others, &schedule->owner, 0, &edited, NULL),
                     SPILL_OK);
    bson_destroy(&storage);
}

/* After the reader's first request, which reads the head: a trim, and then the late PUT_PAGE. */
static void trim_after_head(void *context, int64_t index, const spill_request_t *request)
{
    restored_t *schedule = context;
    (void)index;
    if (schedule->acted || !is_head_read(request))
        return;
    schedule->acted = true;
    assert_int_equal(spill_array_trim(schedule->others, &schedule->owner, 7, NULL), SPILL_OK);
    assert_int_equal(fault_pending(schedule->late), 1);
    assert_int_equal(fault_deliver(schedule->late, 0), SPILL_DONE);
}

static void begin_restored(restored_t *schedule, spill_store_t *store, const fault_hooks_t *writes)
{
    fault_wrap(store, writes, &schedule->late);
    schedule->others = embedded_array(store, "feed", 2, 2);
    spill_array_t *writer = open_array(schedule->late, "feed");
    assert_int_equal(embedded_append(writer, "ada", 0, 8, NULL), SPILL_OK);
    assert_int_equal(fault_pending(schedule->late), 1);
    spill_array_close(writer);
    schedule->acted = false;
}

static void check_element(void *context, const spill_element_t *element)
{
    int64_t *count = context;
    int64_t number;
    memcpy(&number, element->value.data, sizeof number);
    assert_int_equal(number, element->seq == 0 ? 1000 : element->seq);
    ++*count;
}

static bool visit(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    check_element(context, element);
    return true;
}

static void read_pages(restored_t *schedule)
{
    spill_read_options_t options;
    spill_slice_t *slice;
    int64_t count = 0;
    spill_read_options_init(&options);
    options.before = 2;
    assert_int_equal(spill_array_read(schedule->reader, &schedule->owner, &options, &slice, NULL),
                     SPILL_OK);
    for (size_t i = 0; i < slice->count; i++)
        check_element(&count, &slice->elements[i]);
    assert_int_equal(count, 0);
    spill_slice_free(slice);
}

static void export_pages(restored_t *schedule)
{
    int64_t count = 0;
    assert_int_equal(spill_array_export(schedule->reader, &schedule->owner, visit, &count, NULL),
                     SPILL_OK);
    assert_int_equal(count, 1);
}

static void edit_page(restored_t *schedule)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t edited = spill_value_from_int64(&storage, 2000);
    assert_int_equal(spill_array_edit(schedule->reader, &schedule->owner, 0, &edited, NULL),
                     SPILL_NOT_FOUND);
    bson_destroy(&storage);
}

static void skip_in_pages(restored_t *schedule)
{
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.skip = 1;
    assert_int_equal(spill_array_remove(schedule->others, &schedule->owner, 1, NULL), SPILL_OK);
    assert_int_equal(spill_array_read(schedule->reader, &schedule->owner, &options, &slice, NULL),
                     SPILL_OK);
    assert_int_equal(slice->count, 0);
    spill_slice_free(slice);
}

static void restored_page(void (*reads)(restored_t *schedule))
{
    bson_t storage = BSON_INITIALIZER;
    restored_t schedule = {.owner = spill_value_from_utf8(&storage, "ada")};
    const fault_hooks_t writes = {
        .context = &schedule, .decide = delay_first_put, .after = edit_after_put};
    const fault_hooks_t slow = {.context = &schedule, .after = trim_after_head};
    spill_store_t *store = model_store_open(), *reading;
    begin_restored(&schedule, store, &writes);
    fault_wrap(store, &slow, &reading);
    schedule.reader = open_array(reading, "feed");
    reads(&schedule);
    assert_true(schedule.acted);
    spill_array_close(schedule.reader);
    spill_array_close(schedule.others);
    spill_store_close(reading, NULL);
    spill_store_close(schedule.late, NULL);
    spill_store_close(store, NULL);
    bson_destroy(&storage);
}

static void read_does_not_show_restored_page(void **state)
{
    (void)state;
    restored_page(read_pages);
}

static void export_does_not_show_restored_page(void **state)
{
    (void)state;
    restored_page(export_pages);
}

static void edit_in_restored_page_finds_nothing(void **state)
{
    (void)state;
    restored_page(edit_page);
}

static void skip_does_not_count_restored_page(void **state)
{
    (void)state;
    restored_page(skip_in_pages);
}

/* ---- a refill of the top beside the removal of another element ------------------------------- */

enum { BEST = 4, SECOND = 0, FIRST_REMOVED = 1 };

typedef struct refilled {
    spill_array_t *crashing; /* its client crashes before each DELETE */
    spill_value_t owner;
    bool completed;
    bool acted;
} refilled_t;

static fault_t crash_before_delete(void *context, int64_t index, const spill_request_t *request)
{
    (void)context;
    (void)index;
    return request && request->kind == SPILL_REQUEST_DELETE ? FAULT_FAIL : FAULT_NONE;
}

/* After the client has completed the first removal and read the head: the next removal begins. */
static void remove_second(void *context, int64_t index, const spill_request_t *request)
{
    refilled_t *schedule = context;
    (void)index;
    if (request && request->kind == SPILL_REQUEST_COMPLETE)
        schedule->completed = true;
    if (!schedule->completed || schedule->acted || !is_head_read(request))
        return;
    schedule->acted = true;
    assert_int_equal(spill_array_remove(schedule->crashing, &schedule->owner, SECOND, NULL),
                     SPILL_IO);
}

static void append_ratings(spill_array_t *array, const spill_value_t *owner)
{
    static const int32_t ratings[] = {[SECOND] = 8, 1, 2, 3, [BEST] = 9};
    for (size_t i = 0; i < sizeof ratings / sizeof ratings[0]; i++) {
        bson_t *document = BCON_NEW("rating", BCON_INT32(ratings[i]));
        spill_value_t element = spill_value_from_document(document);
        assert_int_equal(spill_array_append(array, owner, &element, 1, NULL, NULL, NULL), SPILL_OK);
        bson_destroy(document);
    }
}

static spill_array_t *define_subset(spill_store_t *store)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "reviews", NULL),
                     SPILL_OK);
    definition.top_count = 1;
    definition.bounds.threshold = 3; /* elements 3 and 4 stay in the head */
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    return open_array(store, "reviews");
}

static void refill_leaves_out_element_in_removal(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    refilled_t schedule = {.owner = spill_value_from_utf8(&storage, "book")};
    const fault_hooks_t crashes = {.decide = crash_before_delete};
    const fault_hooks_t removes = {.context = &schedule, .after = remove_second};
    spill_store_t *store = model_store_open(), *crashing, *removing;
    spill_slice_t *slice;
    fault_wrap(store, &crashes, &crashing);
    fault_wrap(store, &removes, &removing);
    spill_array_t *array = define_subset(store);
    append_ratings(array, &schedule.owner);
    schedule.crashing = open_array(crashing, "reviews");
    spill_array_t *remover = open_array(removing, "reviews");
    assert_int_equal(spill_array_remove(schedule.crashing, &schedule.owner, FIRST_REMOVED, NULL),
                     SPILL_IO);
    assert_int_equal(spill_array_remove(remover, &schedule.owner, BEST, NULL), SPILL_OK);
    assert_true(schedule.acted);
    assert_int_equal(spill_array_remove(array, &schedule.owner, 2, NULL), SPILL_OK);
    assert_int_equal(spill_array_top(array, &schedule.owner, 10, &slice, NULL), SPILL_OK);
    assert_int_equal(slice->count, 1);
    assert_int_equal(slice->elements[0].seq, 3);
    spill_slice_free(slice);
    assert_verified(array, "");
    spill_array_close(remover);
    spill_array_close(schedule.crashing);
    spill_array_close(array);
    spill_store_close(removing, NULL);
    spill_store_close(crashing, NULL);
    spill_store_close(store, NULL);
    bson_destroy(&storage);
}

/* ---- a verification beside a writer that never pauses -----------------------------------------
 */

typedef struct busy {
    spill_array_t *others;
    int64_t next;
} busy_t;

/* Each time after the verifier has read the head: the writer makes another page. */
static void append_after_head(void *context, int64_t index, const spill_request_t *request)
{
    busy_t *schedule = context;
    (void)index;
    if (!is_head_read(request))
        return;
    assert_int_equal(embedded_append(schedule->others, "ada", schedule->next, 4, NULL), SPILL_OK);
    schedule->next += 4;
}

static void verify_beside_writer(spill_keep_t keep)
{
    busy_t schedule = {0};
    const fault_hooks_t writes = {.context = &schedule, .after = append_after_head};
    spill_store_t *store = model_store_open(), *reading;
    spill_definition_t definition;
    fault_wrap(store, &writes, &reading);
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 2;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    schedule.others = open_array(store, "feed");
    spill_array_t *verified = open_array(reading, "feed");
    assert_int_equal(embedded_append(schedule.others, "ada", 0, 8, NULL), SPILL_OK);
    schedule.next = 8;
    assert_verified(verified, "");
    assert_in_range(schedule.next, 12, 1000);
    spill_array_close(verified);
    spill_array_close(schedule.others);
    spill_store_close(reading, NULL);
    spill_store_close(store, NULL);
}

static void verify_does_not_report_what_a_writer_does(void **state)
{
    (void)state;
    for (spill_keep_t keep = SPILL_KEEP_OLDEST; keep <= SPILL_KEEP_NEWEST; keep++)
        verify_beside_writer(keep);
}

/* ---- a read beside trims that never pause -----------------------------------------------------
 */

enum { TRIMS = 15 };

/* Each time after the reader has read the head: the writer deletes the pages that it shows. */
static void trim_pages_after_head(void *context, int64_t index, const spill_request_t *request)
{
    busy_t *schedule = context;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    (void)index;
    if (is_head_read(request) && schedule->next < 8 + 4 * TRIMS) {
        assert_int_equal(embedded_append(schedule->others, "ada", schedule->next, 4, NULL),
                         SPILL_OK);
        assert_int_equal(spill_array_trim(schedule->others, &owner, schedule->next, NULL),
                         SPILL_OK);
        schedule->next += 4;
    }
    bson_destroy(&storage);
}

static void read_waits_for_trims(void **state)
{
    (void)state;
    busy_t schedule = {.next = 8};
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    const fault_hooks_t writes = {.context = &schedule, .after = trim_pages_after_head};
    spill_store_t *store = model_store_open(), *reading;
    fault_wrap(store, &writes, &reading);
    schedule.others = embedded_array(store, "feed", 2, 2);
    spill_array_t *reader = open_array(reading, "feed");
    assert_int_equal(embedded_append(schedule.others, "ada", 0, 8, NULL), SPILL_OK);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    if (spill_array_read(reader, &owner, &options, &slice, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    assert_int_equal(schedule.next, 8 + 4 * TRIMS);
    assert_in_range(slice->count, 1, 4);
    spill_slice_free(slice);
    spill_array_close(reader);
    spill_array_close(schedule.others);
    spill_store_close(reading, NULL);
    spill_store_close(store, NULL);
    bson_destroy(&storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_does_not_show_restored_page),
        cmocka_unit_test(export_does_not_show_restored_page),
        cmocka_unit_test(edit_in_restored_page_finds_nothing),
        cmocka_unit_test(skip_does_not_count_restored_page),
        cmocka_unit_test(refill_leaves_out_element_in_removal),
        cmocka_unit_test(verify_does_not_report_what_a_writer_does),
        cmocka_unit_test(read_waits_for_trims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
