#include "support/miscounted.h"

#include "bson/value.h"
#include "layout/owner.h"
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
    int64_t appended; /* elements */
    int64_t live;
} stage_t;

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void append(stage_t *stage)
{
    spill_error_t error;
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_INT64(&document, "rating", stage->appended++);
    spill_value_t element = spill_value_from_document(&document);
    must(spill_array_append(stage->array, &stage->owner, &element, 1, NULL, NULL, &error), &error);
    stage->live++;
    bson_destroy(&document);
}

static void remove_element(stage_t *stage, int64_t seq)
{
    spill_error_t error;
    must(spill_array_remove(stage->array, &stage->owner, seq, &error), &error);
    stage->live--;
}

/* 13 elements in pages of 3; elements 1 and 5 are removed. */
static void begin(stage_t *stage, spill_store_t *store, const char *preset, const char *name)
{
    spill_error_t error;
    *stage = (stage_t){.store = store, .storage = BSON_INITIALIZER};
    must(spill_definition_preset(&stage->definition, preset, name, &error), &error);
    snprintf(stage->definition.collection, SPILL_NAME_SIZE, "%sHeads", name);
    snprintf(stage->definition.page_collection, SPILL_NAME_SIZE, "%sPages", name);
    if (stage->definition.layout == SPILL_LAYOUT_OUTLIER) {
        stage->definition.bounds.threshold = 4;
        stage->definition.bounds.page_capacity = 3;
    }
    stage->owner = spill_value_from_utf8(&stage->storage, "ada");
    must(spill_store_define(stage->store, &stage->definition, &error), &error);
    must(spill_array_open(stage->store, name, &stage->array, &error), &error);
    while (stage->appended < 13)
        append(stage);
    remove_element(stage, 1);
    remove_element(stage, 5);
}

static void end(stage_t *stage)
{
    spill_error_t error;
    must(spill_array_drop_owner(stage->array, &stage->owner, &error), &error);
    spill_array_close(stage->array);
    bson_destroy(&stage->storage);
}

/* ---- findings -------------------------------------------------------------------------------- */

static void assert_counted(stage_t *stage)
{
    spill_count_t count;
    spill_error_t error;
    must(spill_array_count(stage->array, &stage->owner, &count, &error), &error);
    assert_int_equal(count.count, stage->live);
}

static void assert_fixed(stage_t *stage, const char *finding)
{
    assert_repaired(stage->array, finding, finding, 1);
    assert_counted(stage);
}

/* Repair reports this finding first, and leaves it. */
static void assert_left(stage_t *stage, const char *finding)
{
    findings_t findings;
    for (int times = 0; times < 2; times++) {
        spill_repair_summary_t summary = findings_of_repair(stage->array, false, &findings);
        assert_ptr_equal(strstr(findings.text, finding), findings.text);
        assert_int_equal(summary.findings, 0);
        assert_true(summary.left >= 1);
    }
    assert_verified(stage->array, findings.text);
}

/* ---- wrong numbers --------------------------------------------------------------------------- */

/* Numbers to add to the head's counts. */
typedef struct error_in_counts {
    int64_t removed, pages, total;
} error_in_counts_t;

/* Store wrong counts by repair's own step, which does not check them. */
static void store_wrong_counts(stage_t *stage, error_in_counts_t wrong)
{
    spill_owner_t own;
    spill_error_t error;
    spill_response_t head = SPILL_RESPONSE_INIT;
    bool done;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, SPILL_HEAD, &head, &error), &error);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    request.recount.counts = true;
    request.rev = head.state.rev - 1;
    request.recount.pages = head.state.pages + wrong.pages;
    request.recount.total = head.state.total + wrong.total;
    request.recount.removed = head.state.removed + wrong.removed;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_false(done); /* the head has another revision */
    request.rev++;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_true(done);
    spill_response_release(&head);
    spill_owner_release(&own);
}

/* Store a wrong first number in a document: `later` is the difference. */
static void store_wrong_first(stage_t *stage, int64_t page, int64_t later)
{
    spill_owner_t own;
    spill_error_t error;
    spill_response_t state = SPILL_RESPONSE_INIT;
    bool done;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, page, &state, &error), &error);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_RECOUNT, page);
    request.recount.counts = true;
    request.recount.range = true;
    request.rev = state.state.rev;
    request.recount.pages = state.state.pages;
    request.recount.total = state.state.total;
    request.recount.removed = state.state.removed;
    request.recount.first = state.state.first + later;
    request.recount.end = spill_state_end(&state.state);
    request.recount.slots = spill_state_slots(&state.state) + 100;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_false(done); /* the document has fewer slots */
    request.recount.slots -= 100;
    request.recount.end--;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_false(done); /* the document ends at another number */
    request.recount.end++;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_true(done);
    spill_response_release(&state);
    spill_owner_release(&own);
}

static void assert_element(stage_t *stage, int64_t seq)
{
    spill_error_t error;
    spill_slice_t *slice;
    spill_read_options_t options;
    spill_value_t rating;
    int64_t number;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = 1;
    options.after = seq - 1;
    must(spill_array_read(stage->array, &stage->owner, &options, &slice, &error), &error);
    assert_int_equal(slice->count, 1);
    assert_int_equal(slice->elements[0].seq, seq);
    assert_true(spill_value_at(&slice->elements[0].value, "rating", &rating));
    memcpy(&number, rating.data, sizeof number);
    assert_int_equal(number, seq);
    spill_slice_free(slice);
}

/* Keep oldest: a client can raise `pages` without raising `rev`, so RECOUNT must compare `pages`.
 */
static void assert_guarded_by_pages(stage_t *stage)
{
    spill_owner_t own;
    spill_error_t error;
    spill_response_t head = SPILL_RESPONSE_INIT;
    bool done;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, SPILL_HEAD, &head, &error), &error);
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    request.recount.counts = true;
    request.rev = head.state.rev;
    request.recount.pages = head.state.pages - 1;
    must(spill_owner_step(&own, &request, &done, &error), &error);
    assert_false(done);
    spill_response_release(&head);
    spill_owner_release(&own);
    assert_verified(stage->array, "");
}

/* ---- beside writers -------------------------------------------------------------------------- */

/* Another client, which changes the array before each RECOUNT. */
typedef struct other {
    stage_t *stage;
    int times, recounts;
} other_t;

static void before_call(void *context, int64_t index, const spill_request_t *request)
{
    other_t *other = context;
    (void)index;
    if (!request || request->kind != SPILL_REQUEST_RECOUNT)
        return;
    other->recounts++;
    if (other->times == 4)
        return;
    if (other->times++ % 2 == 0)
        remove_element(
            other->stage,
            6 + other->times); /* a removal raises rev, so the store refuses the RECOUNT */
    else
        append(other->stage);
}

static void repair_beside_others(stage_t *stage)
{
    other_t other = {.stage = stage};
    const fault_hooks_t hooks = {.context = &other, .before = before_call};
    spill_store_t *store;
    spill_array_t *array;
    spill_repair_summary_t summary;
    spill_error_t error;
    store_wrong_counts(stage, (error_in_counts_t){.removed = 7});
    fault_wrap(stage->store, &hooks, &store);
    must(spill_array_open(store, stage->definition.name, &array, &error), &error);
    must(spill_array_repair(array, &stage->owner, false, NULL, NULL, &summary, &error), &error);
    spill_array_close(array);
    spill_store_close(store, NULL);
    assert_int_equal(summary.findings, 1);
    assert_int_equal(summary.left, 0);
    assert_true(other.recounts >= 2); /* the store refused the first */
    assert_verified(stage->array, "");
    assert_counted(stage);
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* On a server another program may have made the change: repair reports it and changes nothing. */
static void shifted(stage_t *stage, int64_t page, const char *fixed, const char *left)
{
    store_wrong_first(stage, page, 1);
    if (!stage->store->ops->others_write) {
        assert_fixed(stage, fixed);
        return;
    }
    assert_left(stage, left);
    store_wrong_first(stage, page, -1);
    assert_verified(stage->array, "");
}

/*
 * The last page ends with a removed number, and the head begins one number too early. Either of
 * them can be the wrong one, so repair changes nothing.
 */
static void overlap(stage_t *stage)
{
    spill_owner_t own;
    spill_error_t error;
    spill_response_t head = SPILL_RESPONSE_INIT;
    findings_t findings;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, SPILL_HEAD, &head, &error), &error);
    int64_t last = head.state.first - 1;
    spill_response_release(&head);
    spill_owner_release(&own);
    if (stage->store->ops->check)
        return; /* this store sees from the elements which one is wrong, and refuses the request */
    remove_element(stage, last);
    assert_verified(stage->array, "");
    store_wrong_first(stage, SPILL_HEAD, -1);
    spill_repair_summary_t summary = findings_of_repair(stage->array, false, &findings);
    assert_true(summary.left > 0);
    store_wrong_first(stage, SPILL_HEAD, 1);
    assert_verified(stage->array, "");
    assert_element(stage, last + 1);
}

/* Numbers between two documents may be removed or lost: repair cannot know which. */
static void gap(stage_t *stage)
{
    char left[256];
    spill_owner_t own;
    spill_error_t error;
    spill_response_t head = SPILL_RESPONSE_INIT;
    must(spill_owner_init(&own, stage->array, &stage->owner, &error), &error);
    must(spill_owner_read_state(&own, SPILL_HEAD, &head, &error), &error);
    int64_t first = head.state.first, missing = head.state.removed + 1;
    spill_response_release(&head);
    spill_owner_release(&own);
    remove_element(stage,
                   first); /* the head's first element: the head then begins one number later */
    assert_verified(stage->array, "");
    store_wrong_counts(stage, (error_in_counts_t){.removed = -1});
    snprintf(left, sizeof left,
             "I5@-1: counts %d removed elements where %d are missing; in no document: [%d, %d) "
             "before the head\n",
             (int)missing - 1, (int)missing, (int)first, (int)first + 1);
    assert_left(stage, left);
    store_wrong_counts(stage, (error_in_counts_t){.removed = 1});
    assert_verified(stage->array, "");
}

static void newest(spill_store_t *store)
{
    stage_t stage;
    begin(&stage, store, "feed-recent", "newest");
    assert_verified(stage.array, "");
    store_wrong_counts(&stage, (error_in_counts_t){.removed = 3});
    assert_fixed(&stage, "I5@-1: counts 5 removed elements where 2 are missing\n");
    store_wrong_counts(&stage, (error_in_counts_t){.removed = -1});
    assert_fixed(&stage, "I5@-1: counts 1 removed elements where 2 are missing\n");
    store_wrong_counts(&stage, (error_in_counts_t){.pages = 1});
    assert_fixed(&stage, "I2@3: is missing: the head counts 4 pages\n");
    store_wrong_counts(&stage, (error_in_counts_t){.pages = -1});
    assert_fixed(&stage, "I5@-1: counts 2 pages, where there are 3 with elements before its own\n");
    shifted(&stage, 2, "I4@2: counts 3 elements, in [7, 10), where its elements are in [6, 9)\n",
            "I4@-1: starts at 9, before the end 10 of the one before\n");
    assert_element(&stage, 6);
    repair_beside_others(&stage);
    overlap(&stage);
    gap(&stage);
    end(&stage);
}

static void oldest(spill_store_t *store)
{
    stage_t stage;
    begin(&stage, store, "feed", "oldest");
    assert_verified(stage.array, "");
    store_wrong_counts(&stage, (error_in_counts_t){.removed = 3});
    assert_fixed(&stage, "I5@-1: counts 5 removed elements where 2 are missing\n");
    store_wrong_counts(&stage, (error_in_counts_t){.total = 2});
    assert_fixed(&stage, "I5@2: starts at 10, the head counts 12 before it\n");
    store_wrong_counts(&stage, (error_in_counts_t){.total = -2});
    assert_fixed(&stage, "I5@2: starts at 10, the head counts 8 before it\n");
    assert_guarded_by_pages(&stage);
    shifted(&stage, 1, "I4@1: counts 3 elements, in [8, 11), where its elements are in [7, 10)\n",
            "I4@1: starts at 8, after a gap from 7\n");
    assert_element(&stage, 7);
    repair_beside_others(&stage);
    end(&stage);
}

static void referenced(spill_store_t *store, const char *preset, const char *name)
{
    stage_t stage;
    begin(&stage, store, preset, name);
    assert_verified(stage.array, "");
    store_wrong_counts(&stage, (error_in_counts_t){.removed = 3});
    assert_fixed(&stage, "I5@-1: counts 5 removed elements where 2 are missing\n");
    repair_beside_others(&stage);
    end(&stage);
}

void miscounted_fixed(spill_store_t *store)
{
    newest(store);
    oldest(store);
    referenced(store, "reviews-separate", "separate");
    referenced(store, "reviews-subset", "subset");
}
