/* Appends that make a head, and give numbers to its elements. */
#include "suite.h"

enum { COUNT = 3, END = 7 };

/* Numbers 3 and 6 have no element, and the array begins at 2. */
static const int64_t given[COUNT] = {2, 4, 5};
static const int64_t labels[COUNT] = {100, 101, 102};

static const spill_op_t first_op = {.id = "x", .id_bytes = 1};

static void open_layout(fixture_t *fixture, const contract_kind_t *kind, spill_keep_t keep,
                        spill_layout_t layout)
{
    spill_definition_t definition;
    make_definition(&definition, "feed", keep);
    spill_definition_set_layout(&definition, layout);
    fixture_open_with(fixture, kind, &definition);
}

static spill_request_t make_numbered(const fixture_t *fixture, spill_value_t values[COUNT])
{
    for (size_t i = 0; i < COUNT; i++)
        values[i] = number_value(&labels[i]);
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, COUNT);
    append.create = true;
    append.append.seqs = given;
    append.append.end = END;
    append.append.op = &first_op;
    return append;
}

/* Append one element with the number 7. */
static void append_next(fixture_t *fixture, int64_t slots_max)
{
    int64_t label = 103;
    spill_value_t value = number_value(&label);
    spill_request_t append = make_append(fixture, SPILL_HEAD, &value, 1);
    append.limits = (spill_limits_t){.slots_max = slots_max, .bytes_max = 100000};
    assert_done(fixture, &append);
    assert_int_equal(fixture->response.seq, END);
}

static void keeping_newest(void **state)
{
    fixture_t fixture;
    spill_value_t values[COUNT];
    open_layout(&fixture, *state, SPILL_KEEP_NEWEST, SPILL_LAYOUT_OUTLIER);
    spill_request_t append = make_numbered(&fixture, values);
    append.limits = (spill_limits_t){.slots_max = 4, .bytes_max = 100000};
    assert_refused(&fixture, &append); /* numbers without an element need room, too */
    assert_document(&fixture, SPILL_HEAD, "absent");
    append.limits.slots_max = 5;
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=2 gone=3,6 n=1 low=2 | 2=100 4=101 5=102");
    assert_ops(&fixture, SPILL_HEAD, "x@0:0+7");
    fixture_reopen(&fixture);
    append_next(&fixture, 100);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+0 first=2 gone=3,6 n=1 low=2 | 2=100 4=101 5=102 7=103");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void keeping_oldest(void **state)
{
    fixture_t fixture;
    spill_value_t values[COUNT];
    open_layout(&fixture, *state, SPILL_KEEP_OLDEST, SPILL_LAYOUT_OUTLIER);
    spill_request_t append = make_numbered(&fixture, values);
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+0 first=2 gone=3,6 n=1 removed=2 low=2 | 2=100 4=101 5=102");
    append_next(&fixture, 100);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+0 first=2 gone=3,6 n=1 removed=2 low=2 | 2=100 4=101 5=102 7=103");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* A cap drops the oldest of them at once. */
static void capped(void **state)
{
    fixture_t fixture;
    spill_value_t values[COUNT];
    open_layout(&fixture, *state, SPILL_KEEP_NEWEST, SPILL_LAYOUT_CAPPED);
    spill_request_t append = make_numbered(&fixture, values);
    append.limits = (spill_limits_t){.slots_max = 2, .bytes_max = 100000};
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=4 gone=6 n=1 low=4 | 4=101 5=102");
    assert_ops(&fixture, SPILL_HEAD, "x@0:0+7");
    append_next(&fixture, 2);
    assert_document(&fixture, SPILL_HEAD, "rev+0 first=5 gone=6 n=1 low=5 | 5=102 7=103");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* It never appends to an existing head. */
static void a_head_is_not_changed(void **state)
{
    fixture_t fixture;
    spill_value_t values[COUNT];
    open_layout(&fixture, *state, SPILL_KEEP_NEWEST, SPILL_LAYOUT_OUTLIER);
    append_numbers(&fixture, SPILL_HEAD, 50, 1);
    char *before = describe(&fixture, SPILL_HEAD);
    spill_request_t append = make_numbered(&fixture, values);
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, before);
    append.append.op = NULL;
    assert_refused(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, before);
    bson_free(before);
    fixture_close(&fixture);
}

void add_given_number_tests(suite_t *suite)
{
    SUITE_ADD(suite, keeping_newest);
    SUITE_ADD(suite, keeping_oldest);
    SUITE_ADD(suite, capped);
    SUITE_ADD(suite, a_head_is_not_changed);
}
