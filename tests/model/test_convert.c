/*
 * Conversions between all layouts; the target is compared with lists that this test computes. In
 * other tests the k-th call fails, is answered late or twice, or another conversion overtakes it,
 * for every k.
 */
#include "model/convert.h"
#include "model/trouble.h"
#include "store/request.h"
#include "support/effort.h"
#include "support/embedded.h"
#include "support/fault_store.h"
#include "support/model_store.h"
#include "tools/definition_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { KINDS = CONVERT_BUCKET + 1, TRIES = 5, AT_THE_END = 1000000 };

static spill_code_t copy(spill_store_t *source, spill_store_t *target, spill_copy_result_t *result)
{
    spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
    *result = (spill_copy_result_t){0};
    return spill_copy(source, target, CONVERT_NAME, &options, result, NULL);
}

static void each_to_each(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS * KINDS; i++) {
        convert_kind_t from = (convert_kind_t)(i / KINDS), to = (convert_kind_t)(i % KINDS);
        spill_store_t *store = model_store_open();
        convert_and_grow(store, from, to);
        assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
        disk_t *disk = disk_new();
        store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
        convert_and_grow(store, from, to);
        embedded_close(store);
        disk_free(disk);
    }
}

/* ---- trouble --------------------------------------------------------------------------------- */

/* Hooks of the client: after the lost call it sends nothing more. */
static fault_t dies(void *context, int64_t index, const spill_request_t *request)
{
    const trouble_t *trouble = context;
    (void)request;
    if (index < trouble->at)
        return FAULT_NONE;
    return index == trouble->at ? trouble->fault : FAULT_FAIL;
}

/* Return false if the copy made at most trouble->at calls. The trouble is the hooks' context. */
static bool survives_with(spill_store_t *source, convert_kind_t to, fault_hooks_t hooks)
{
    trouble_t *trouble = hooks.context;
    spill_store_t *target = model_store_open();
    spill_copy_result_t result;
    convert_define_target(source, target, to);
    fault_wrap(target, &hooks, &trouble->store);
    spill_code_t code = copy(source, trouble->store, &result);
    for (int i = 0; code != SPILL_OK && i < TRIES; i++) {
        assert_true(code == SPILL_UNKNOWN || code == SPILL_IO);
        code = copy(source, trouble->store, &result);
    }
    assert_int_equal(code, SPILL_OK);
    assert_int_equal(result.differences, 0);
    while (fault_pending(trouble->store) > 0)
        fault_deliver(trouble->store, 0);
    bool reached = fault_calls(trouble->store) > trouble->at;
    assert_int_equal(spill_store_close(trouble->store, NULL), SPILL_OK);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.differences, 0);
    convert_check_same(source, target);
    assert_int_equal(spill_store_close(target, NULL), SPILL_OK);
    return reached;
}

static bool survives(spill_store_t *source, convert_kind_t to, trouble_t *trouble)
{
    return survives_with(source, to, trouble_hooks(trouble));
}

static const struct {
    convert_kind_t from, to;
} PAIRS[] = {
    {CONVERT_OUTLIER, CONVERT_CAPPED}, {CONVERT_OUTLIER, CONVERT_BUCKET},
    {CONVERT_BUCKET, CONVERT_OUTLIER}, {CONVERT_BUCKET, CONVERT_CAPPED},
    {CONVERT_BUCKET, CONVERT_BUCKET},  {CONVERT_OUTLIER, CONVERT_TOP_N},
    {CONVERT_TOP_N, CONVERT_TOP_N},    {CONVERT_BUCKET, CONVERT_TOP_N},
    {CONVERT_TOP_N, CONVERT_OUTLIER},
};

/* Of the calls of a conversion between this pair, every n-th goes wrong. */
static int64_t step_of(size_t pair)
{
    return pair < 3 ? effort(1, 5, 13) : effort(1, 11, 29);
}

static void every_call_goes_wrong(void **state)
{
    (void)state;
    static const trouble_t troubles[] = {
        {.fault = FAULT_FAIL},
        {.fault = FAULT_LOST_APPLIED},
        {.fault = FAULT_LOST_UNAPPLIED},
        {.fault = FAULT_LOST_DELAYED, .delay = 3},
        {.fault = FAULT_LOST_DELAYED, .delay = 12},
        {.fault = FAULT_LOST_DELAYED, .delay = AT_THE_END},
        {.fault = FAULT_DUPLICATE, .delay = 7},
        {.fault = FAULT_DUPLICATE, .delay = AT_THE_END},
    };
    for (size_t p = 0; p < sizeof PAIRS / sizeof *PAIRS; p++) {
        spill_store_t *source = model_store_open();
        convert_define_source(source, PAIRS[p].from, 15);
        convert_fill(source);
        for (size_t i = 0; i < sizeof troubles / sizeof *troubles; i++) {
            trouble_t trouble = troubles[i];
            trouble.at = (int64_t)i % step_of(p);
            while (survives(source, PAIRS[p].to, &trouble))
                trouble.at += step_of(p);
            assert_true(trouble.at > 20);
        }
        assert_int_equal(spill_store_close(source, NULL), SPILL_OK);
    }
}

typedef struct late_trim {
    trouble_t trouble;
    int64_t which; /* the trim that arrives late */
    int64_t trims; /* so far */
} late_trim_t;

static fault_t loses_trim(void *context, int64_t index, const spill_request_t *request)
{
    late_trim_t *late = context;
    if (!request || request->kind != SPILL_REQUEST_TRIM || late->trims++ != late->which)
        return FAULT_NONE;
    late->trouble.at = index;
    return late->trouble.fault;
}

/* One trim of a capped target arrives while the copy looks at what it has done. */
static void each_trim_is_late(void **state)
{
    (void)state;
    static const convert_kind_t kinds[] = {CONVERT_OUTLIER, CONVERT_BUCKET};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        spill_store_t *source = model_store_open();
        convert_define_source(source, kinds[i], 15);
        convert_fill(source);
        for (int64_t delay = 1; delay <= 9; delay++) {
            late_trim_t late = {.trouble = {.delay = delay, .fault = FAULT_LOST_DELAYED}};
            fault_hooks_t hooks = trouble_hooks(&late.trouble);
            hooks.context = &late;
            hooks.decide = loses_trim;
            bool reached = true;
            while (reached) {
                late.trouble.at = AT_THE_END;
                late.trims = 0;
                reached = survives_with(source, CONVERT_CAPPED, hooks);
                late.which += reached;
            }
            assert_true(late.which > 1);
        }
        assert_int_equal(spill_store_close(source, NULL), SPILL_OK);
    }
}

/*
 * A source with a top-N drops elements between two copies. The first copy fails at its k-th call,
 * and one of its requests arrives after the second copy.
 */
static bool survives_drops(convert_kind_t to, int64_t at)
{
    trouble_t trouble = {.at = at, .delay = AT_THE_END, .fault = FAULT_LOST_DELAYED};
    fault_hooks_t hooks = trouble_hooks(&trouble);
    hooks.decide = dies;
    spill_store_t *source = model_store_open(), *target = model_store_open();
    spill_copy_result_t result;
    convert_define_source(source, CONVERT_TOP_N, 7);
    convert_fill(source);
    convert_define_target(source, target, to);
    fault_wrap(target, &hooks, &trouble.store);
    bool reached = copy(source, trouble.store, &result) != SPILL_OK;
    convert_append_more(source);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.differences, 0);
    while (fault_pending(trouble.store) > 0)
        fault_deliver(trouble.store, 0);
    assert_int_equal(spill_store_close(trouble.store, NULL), SPILL_OK);
    assert_int_equal(copy(source, target, &result), SPILL_OK);
    assert_int_equal(result.elements, 0);
    assert_int_equal(result.differences, 0);
    convert_check_same(source, target);
    assert_int_equal(spill_store_close(source, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(target, NULL), SPILL_OK);
    return reached;
}

static void source_drops_elements_meanwhile(void **state)
{
    (void)state;
    static const convert_kind_t kinds[] = {CONVERT_TOP_N, CONVERT_OUTLIER, CONVERT_REFERENCE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        int64_t at = 0;
        while (survives_drops(kinds[i], at))
            at++;
        assert_true(at > 20);
    }
}

/* ---- dropping the old documents -------------------------------------------------------------- */

/* Return false if finishing makes at most `at` calls. After a failure both arrays are unchanged. */
static bool finishes(convert_kind_t from, convert_kind_t to, int64_t at)
{
    fault_once_t once = {.at = at, .fault = FAULT_FAIL};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *store = model_store_open(), *kept = model_store_open(), *wrapped;
    spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
    spill_copy_result_t result = {0};
    spill_error_t error;
    convert_define_source(store, from, 15);
    convert_define_source(kept, from, 15);
    convert_fill(store);
    convert_fill(kept);
    convert_define_target(store, store, to);
    assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
    fault_wrap(store, &hooks, &wrapped);
    spill_code_t code = spill_convert_finish(wrapped, CONVERT_NAME, &options, &result, &error);
    bool reached = fault_calls(wrapped) > at;
    assert_int_equal(spill_store_close(wrapped, NULL), SPILL_OK);
    if (code == SPILL_IO) {
        code = spill_convert_finish(store, CONVERT_NAME, &options, &result, &error);
        assert_true(code == SPILL_OK || code == SPILL_NOT_FOUND);
    } else {
        assert_int_equal(code, SPILL_OK);
    }
    spill_definition_t deleted;
    assert_int_equal(spill_store_definition(store, CONVERT_NAME, &deleted, NULL), SPILL_NOT_FOUND);
    convert_check_same(kept, store);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(kept, NULL), SPILL_OK);
    return reached;
}

static void every_call_of_finish_goes_wrong(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof PAIRS / sizeof *PAIRS; p++) {
        int64_t at = 0;
        while (finishes(PAIRS[p].from, PAIRS[p].to, at))
            at += step_of(p);
        assert_true(at > 20);
    }
}

/* Elements removed from old windows do not mean that the windows are being dropped. */
static void finish_sees_removals(void **state)
{
    (void)state;
    static const convert_kind_t layouts[] = {CONVERT_OUTLIER, CONVERT_CAPPED, CONVERT_BUCKET};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        spill_store_t *store = model_store_open();
        spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
        spill_copy_result_t result = {0};
        spill_error_t error;
        spill_definition_t kept;
        convert_define_source(store, CONVERT_BUCKET, 0);
        convert_fill(store);
        convert_define_target(store, store, layouts[i]);
        assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
        convert_remove_first(store);
        assert_int_equal(spill_convert_finish(store, CONVERT_NAME, &options, &result, &error),
                         SPILL_REFUSED);
        assert_non_null(strstr(error.message, "may be the only complete copy"));
        assert_int_equal(result.differences, 1);
        assert_int_equal(result.ahead, 1);
        assert_int_equal(spill_store_definition(store, CONVERT_NAME, &kept, NULL), SPILL_OK);
        assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    }
}

/*
 * While old windows are being dropped, only the same command continues. Return false if they were
 * dropped without the fault.
 */
static bool only_finish_continues(int64_t at)
{
    fault_once_t once = {.at = at, .fault = FAULT_FAIL};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *store = model_store_open(), *wrapped;
    spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
    spill_copy_result_t result = {0};
    spill_convert_checkpoint_t checkpoint;
    spill_definition_t definition;
    convert_define_source(store, CONVERT_BUCKET, 0);
    convert_fill(store);
    convert_define_target(store, store, CONVERT_OUTLIER);
    assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
    fault_wrap(store, &hooks, &wrapped);
    bool failed = spill_convert_finish(wrapped, CONVERT_NAME, &options, &result, NULL) != SPILL_OK;
    assert_int_equal(spill_store_close(wrapped, NULL), SPILL_OK);
    assert_int_equal(spill_convert_checkpoint_load(store, CONVERT_NAME, &checkpoint, NULL),
                     SPILL_OK);
    if (failed && spill_convert_checkpoint_stands(&checkpoint)) {
        assert_string_equal(checkpoint.as, CONVERT_OTHER);
        assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL),
                         SPILL_REFUSED);
        options.as = "third";
        assert_int_equal(spill_convert_finish(store, CONVERT_NAME, &options, &result, NULL),
                         SPILL_REFUSED);
        options.as = CONVERT_OTHER;
        assert_int_equal(spill_convert_finish(store, CONVERT_NAME, &options, &result, NULL),
                         SPILL_OK);
        assert_int_equal(spill_store_definition(store, CONVERT_NAME, &definition, NULL),
                         SPILL_NOT_FOUND);
    }
    spill_convert_checkpoint_release(&checkpoint);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    return failed;
}

/* A later definition with the old name is not mistaken for the rest of the first one. */
static void old_name_is_defined_again(void **state)
{
    (void)state;
    spill_store_t *store = model_store_open();
    spill_copy_options_t options = {.as = CONVERT_OTHER, .differs = convert_see};
    for (int i = 0; i < 2; i++) {
        spill_copy_result_t result = {0};
        bool finished;
        convert_define_source(store, CONVERT_BUCKET, 0);
        convert_fill(store);
        if (i == 0)
            convert_define_target(store, store, CONVERT_OUTLIER);
        else
            convert_remove_first(store);
        assert_int_equal(spill_convert(store, CONVERT_NAME, &options, &result, NULL), SPILL_OK);
        assert_int_equal(result.differences, i);
        assert_int_equal(spill_convert_finish(store, CONVERT_NAME, &options, &result, NULL),
                         i == 0 ? SPILL_OK : SPILL_REFUSED);
        assert_int_equal(
            spill_convert_finished(store, CONVERT_NAME, CONVERT_OTHER, &finished, NULL), SPILL_OK);
        assert_true(finished || i > 0);
        assert_int_equal(spill_convert_finished(store, "typo", CONVERT_OTHER, &finished, NULL),
                         SPILL_OK);
        assert_false(finished);
    }
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static void old_windows_being_dropped(void **state)
{
    (void)state;
    for (int64_t at = 0; only_finish_continues(at); at++)
        continue;
}

/* ---- two conversions at once ----------------------------------------------------------------- */

/* Before call `at` of one copy, another one runs until its own call `dies` fails, or to its end. */
typedef struct race {
    spill_store_t *source;
    spill_store_t *target;
    int64_t at;
    int64_t dies;
} race_t;

static void overtake(void *context, int64_t index, const spill_request_t *request)
{
    const race_t *race = context;
    (void)request;
    if (index != race->at)
        return;
    fault_once_t once = {.at = race->dies, .fault = FAULT_FAIL};
    fault_hooks_t hooks = fault_once(&once);
    spill_store_t *other;
    spill_copy_result_t result;
    fault_wrap(race->target, &hooks, &other);
    copy(race->source, other, &result);
    assert_int_equal(spill_store_close(other, NULL), SPILL_OK);
}

static bool survives_race(convert_kind_t to, race_t *race)
{
    fault_hooks_t hooks = {.context = race, .before = overtake};
    spill_store_t *one;
    spill_copy_result_t result;
    race->target = model_store_open();
    convert_define_target(race->source, race->target, to);
    fault_wrap(race->target, &hooks, &one);
    assert_int_equal(copy(race->source, one, &result), SPILL_OK);
    bool reached = fault_calls(one) > race->at;
    assert_int_equal(spill_store_close(one, NULL), SPILL_OK);
    assert_int_equal(copy(race->source, race->target, &result), SPILL_OK);
    assert_int_equal(result.differences, 0);
    convert_check_same(race->source, race->target);
    assert_int_equal(spill_store_close(race->target, NULL), SPILL_OK);
    return reached;
}

static void two_at_once(void **state)
{
    (void)state;
    for (size_t p = 0; p < sizeof PAIRS / sizeof *PAIRS; p++) {
        race_t race = {.source = model_store_open()};
        convert_define_source(race.source, PAIRS[p].from, 15);
        convert_fill(race.source);
        int64_t step = 1;
        bool reached = true;
        while (reached) {
            race.dies = race.at + 1 + step * step; /* once it is a few calls ahead, once many */
            step = step % 11 + 1;
            reached = survives_race(PAIRS[p].to, &race);
            race.at += effort(1, 3, 9);
        }
        assert_true(race.at > 20);
        assert_int_equal(spill_store_close(race.source, NULL), SPILL_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_to_each),
        cmocka_unit_test(every_call_goes_wrong),
        cmocka_unit_test(each_trim_is_late),
        cmocka_unit_test(source_drops_elements_meanwhile),
        cmocka_unit_test(every_call_of_finish_goes_wrong),
        cmocka_unit_test(finish_sees_removals),
        cmocka_unit_test(old_windows_being_dropped),
        cmocka_unit_test(old_name_is_defined_again),
        cmocka_unit_test(two_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
