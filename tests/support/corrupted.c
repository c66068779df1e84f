#include "support/corrupted.h"

#include "support/fault_store.h"
#include "support/findings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct stage {
    spill_store_t *store;
    spill_array_t *array;
    spill_definition_t definition;
    bson_t storage;
    spill_value_t owner;
} stage_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void define(stage_t *stage)
{
    spill_error_t error;
    must(spill_store_define(stage->store, &stage->definition, &error), &error);
    spill_array_close(stage->array);
    must(spill_array_open(stage->store, stage->definition.name, &stage->array, &error), &error);
}

static void begin(stage_t *stage, spill_store_t *store, const char *preset, const char *name)
{
    spill_error_t error;
    *stage = (stage_t){.store = store, .storage = BSON_INITIALIZER};
    must(spill_definition_preset(&stage->definition, preset, name, &error), &error);
    snprintf(stage->definition.collection, SPILL_NAME_SIZE, "%sHeads", name);
    snprintf(stage->definition.page_collection, SPILL_NAME_SIZE, "%sElements", name);
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    define(stage);
}

static void end(stage_t *stage)
{
    spill_error_t error;
    must(spill_array_drop_owner(stage->array, &stage->owner, &error), &error);
    spill_array_close(stage->array);
    bson_destroy(&stage->storage);
}

/* Append an element with this rating and a text of `bytes` bytes. */
static void append(stage_t *stage, double rating, size_t bytes)
{
    spill_error_t error;
    spill_append_result_t result;
    bson_t document = BSON_INITIALIZER;
    char *text = bson_malloc0(bytes + 1);
    memset(text, 'x', bytes);
    BSON_APPEND_DOUBLE(&document, "rating", rating);
    BSON_APPEND_UTF8(&document, "text", text);
    spill_value_t element = spill_value_from_document(&document);
    must(spill_array_append(stage->array, &stage->owner, &element, 1, NULL, &result, &error),
         &error);
    bson_destroy(&document);
    bson_free(text);
}

static void remove_element(stage_t *stage, int64_t seq)
{
    spill_error_t error;
    must(spill_array_remove(stage->array, &stage->owner, seq, &error), &error);
}

/* ---- the summary, as another reader sees it -------------------------------------------------- */

static bool take_head(void *context, const char *collection, const bson_t *document)
{
    bson_t **head = context;
    if (strstr(collection, "Heads"))
        *head = bson_copy(document);
    return true;
}

static void assert_average(stage_t *stage, double expected)
{
    spill_error_t error;
    bson_t *head = NULL;
    bson_iter_t iter, average;
    must(spill_array_documents(stage->array, &stage->owner, true, take_head, &head, &error),
         &error);
    assert_non_null(head);
    assert_true(bson_iter_init(&iter, head) &&
                bson_iter_find_descendant(&iter, "reviewSummary.averageRating", &average));
    assert_true(bson_iter_double(&average) == expected);
    bson_destroy(head);
}

static void assert_shown(stage_t *stage, size_t expected)
{
    spill_error_t error;
    spill_slice_t *slice;
    must(spill_array_top(stage->array, &stage->owner, INT64_MAX, &slice, &error), &error);
    assert_int_equal(slice->count, expected);
    spill_slice_free(slice);
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* A pair of doubles has no place for 4.5 beside these two. */
static void sum_without_small_values(spill_store_t *store)
{
    stage_t stage;
    begin(&stage, store, "reviews-separate", "sums");
    append(&stage, 1e200, 1);
    append(&stage, 1e100, 1);
    append(&stage, 4.5, 1);
    append(&stage, 2.25, 1);
    assert_verified(stage.array, "");
    remove_element(&stage, 0);
    remove_element(&stage, 1);
    assert_repaired(stage.array,
                    "I5@-1: counts 2 values with a sum of 0 where there are 2 with 6.75\n",
                    "I7@-1: counts 2 values with a sum of 0 where there are 2 with 6.75\n", 1);
    assert_average(&stage, 3.375);
    append(&stage, 2.25, 1);
    assert_average(&stage, 3);
    end(&stage);
}

/*
 * A repair reads all elements in one run before it changes anything, and again afterwards. The
 * other client acts only after the first of these reads.
 */
enum { LOOKED = 1, VERIFIED = LOOKED + 1 };

/* Another client, which acts while the repair counts the elements. */
typedef struct other {
    stage_t *stage;
    bool (*acts)(stage_t *stage, int times); /* false: it has finished */
    int times;
    int reads; /* of runs of elements */
    int begun; /* reads that begin at the first element */
    int recounts;
    int refused; /* recounts to refuse: the client appends before each */
} other_t;

static bool appends(stage_t *stage, int times)
{
    if (times < 3) /* the threshold is 1: each append moves an element out, and raises rev */
        append(stage, 1, 1);
    return times < 3;
}

/* The bound ends a repair that would try for ever. */
static bool appends_always(stage_t *stage, int times)
{
    if (times < 1000)
        append(stage, 1, 1);
    return times < 1000;
}

static bool does_nothing(stage_t *stage, int times)
{
    (void)stage;
    (void)times;
    return false;
}

static bool removes_once(stage_t *stage, int times)
{
    if (times == 0)
        remove_element(stage, 4);
    return times == 0;
}

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    other_t *other = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_RECOUNT || other->recounts >= other->refused)
        return;
    append(other->stage, 1, 1);
    other->times++;
}

static void after_call(void *context, int64_t index, const spill_request_t *request)
{
    other_t *other = context;
    (void)index;
    if (!request)
        return;
    other->recounts += request->kind == SPILL_REQUEST_RECOUNT;
    if (request->kind != SPILL_REQUEST_READ || request->page != SPILL_ELEMENTS)
        return;
    other->reads++;
    other->begun += request->read.seq == 0 ? 1 : 0;
    if (other->reads > LOOKED && other->acts(other->stage, other->times))
        other->times++;
}

/* Repair the owner beside `other`, and return the number of findings. */
static int64_t repair_with(other_t *other)
{
    spill_error_t error;
    spill_repair_summary_t summary;
    spill_store_t *store;
    spill_array_t *array;
    stage_t *stage = other->stage;
    const fault_hooks_t hooks = {.context = other, .before = before_call, .after = after_call};
    fault_wrap(stage->store, &hooks, &store);
    must(spill_array_open(store, stage->definition.name, &array, &error), &error);
    must(spill_array_repair(array, &stage->owner, false, NULL, NULL, &summary, &error), &error);
    spill_array_close(array);
    spill_store_close(store, NULL);
    return summary.findings;
}

static void repair_beside(stage_t *stage, bool (*acts)(stage_t *stage, int times), int reads,
                          double average)
{
    other_t other = {.stage = stage, .acts = acts};
    assert_int_equal(repair_with(&other), 1);
    assert_true(other.times > 0);
    assert_int_equal(other.reads, reads + VERIFIED);
    assert_int_equal(other.recounts, 1);
    assert_verified(stage->array, "");
    assert_average(stage, average);
}

/* Append 1e200, 1e100, 4.5, 2.5 and 9, and remove the first two. The sum has lost the other three:
 * a pair of doubles has no place for them beside 1e200. */
static void corrupt_sum(stage_t *stage)
{
    append(stage, 1e200, 1);
    append(stage, 1e100, 1);
    append(stage, 4.5, 1);
    append(stage, 2.5, 1);
    append(stage, 9, 1);
    remove_element(stage, 0);
    remove_element(stage, 1);
}

static void sum_beside_others(spill_store_t *store)
{
    stage_t stage;
    begin(&stage, store, "reviews-separate", "busy");
    corrupt_sum(&stage);
    /* After an append, the repair continues to count behind the elements that it has read. */
    repair_beside(&stage, appends, 4, 19.0 / 6);
    append(&stage, 1e200, 1);
    append(&stage, 1e100, 1);
    remove_element(&stage, 8);
    remove_element(&stage, 9);
    /* After a removal, it counts again from the first element. */
    repair_beside(&stage, removes_once, 2, 2);
    end(&stage);
}

/* If only appends caused the refusal of RECOUNT, the repair keeps what it has counted. */
static void sum_refused(spill_store_t *store, const char *name, int64_t threshold, int reads)
{
    enum { REFUSED = 5 };
    stage_t stage;
    begin(&stage, store, "reviews-separate", name);
    corrupt_sum(&stage);
    stage.definition.bounds.threshold = threshold;
    define(&stage);
    other_t other = {.stage = &stage, .acts = does_nothing, .refused = REFUSED};
    assert_int_equal(repair_with(&other), 1);
    assert_int_equal(other.recounts, REFUSED + 1);
    assert_int_equal(other.begun, 1 + VERIFIED);
    assert_int_equal(other.reads, reads + VERIFIED);
    assert_verified(stage.array, "");
    assert_average(&stage, (4.5 + 2.5 + 9 + REFUSED) / (3 + REFUSED));
    end(&stage);
}

/* If the head's bound grows, the head has room for more of the top elements. */
static void top_with_room(spill_store_t *store)
{
    stage_t stage;
    begin(&stage, store, "reviews-subset", "tops");
    int64_t large = stage.definition.bounds.head_bytes_max;
    stage.definition.bounds.head_bytes_max = 64 * 1024;
    define(&stage);
    for (int i = 0; i < 5; i++)
        append(&stage, i, 12000);
    assert_shown(&stage, 2);
    assert_verified(stage.array, "");
    stage.definition.bounds.head_bytes_max = large;
    define(&stage);
    assert_repaired(stage.array, "I5@-1: shows 2 elements of its top where 3 have room\n",
                    "I7@-1: shows 2 elements of its top where 3 have room\n", 1);
    assert_shown(&stage, 3);
    remove_element(&stage, 4);
    assert_shown(&stage, 3);
    assert_verified(stage.array, "");
    end(&stage);
}

void corrupted_summaries_fixed(spill_store_t *store)
{
    sum_without_small_values(store);
    sum_beside_others(store);
    sum_refused(store, "refused", 1, 6);
    sum_refused(store, "journal", 100, 1);
    top_with_room(store);
}

void corrupted_beside_appender(spill_store_t *store)
{
    enum { ROUNDS = 200 };
    stage_t stage;
    begin(&stage, store, "reviews-separate", "endless");
    corrupt_sum(&stage);
    other_t other = {.stage = &stage, .acts = appends_always};
    assert_int_equal(repair_with(&other), 0);
    assert_int_equal(other.recounts, 0);
    assert_in_range(other.reads, ROUNDS + 1, ROUNDS + 20); /* the verifier reads again, too */
    int appended = other.times;
    other = (other_t){.stage = &stage, .acts = does_nothing};
    assert_int_equal(repair_with(&other), 1);
    assert_verified(stage.array, "");
    assert_average(&stage, (4.5 + 2.5 + 9 + appended) / (3 + appended));
    end(&stage);
}
