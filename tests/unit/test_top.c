/* Ranks, and the highest-ranked elements. */
#include "store/embedded/embedded_codec.h"
#include "store/state.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Append a value; several of these functions define an expected order. */
typedef void (*append_fn)(bson_t *document, const char *key);

#define VALUE(name, call)                                                                          \
    static void name(bson_t *document, const char *key)                                            \
    {                                                                                              \
        call;                                                                                      \
    }

VALUE(text, BSON_APPEND_UTF8(document, key, "7"))
VALUE(not_a_number, BSON_APPEND_DOUBLE(document, key, (double)NAN))
VALUE(minus_infinity, BSON_APPEND_DOUBLE(document, key, -(double)INFINITY))
VALUE(lowest, BSON_APPEND_INT64(document, key, INT64_MIN))
VALUE(lowest_and_one, BSON_APPEND_INT64(document, key, INT64_MIN + 1))
VALUE(minus_half, BSON_APPEND_DOUBLE(document, key, -0.5))
VALUE(minus_zero, BSON_APPEND_DOUBLE(document, key, -0.0))
VALUE(zero, BSON_APPEND_INT32(document, key, 0))
VALUE(small, BSON_APPEND_DOUBLE(document, key, 5e-324))
VALUE(two_to_53, BSON_APPEND_DOUBLE(document, key, 0x1p53))
VALUE(two_to_53_as_integer, BSON_APPEND_INT64(document, key, INT64_C(1) << 53))
VALUE(above_two_to_53, BSON_APPEND_INT64(document, key, (INT64_C(1) << 53) + 1))
VALUE(next_double, BSON_APPEND_DOUBLE(document, key, 0x1p53 + 2))
VALUE(highest_but_one, BSON_APPEND_INT64(document, key, INT64_MAX - 1))
VALUE(highest, BSON_APPEND_INT64(document, key, INT64_MAX))
VALUE(two_to_63, BSON_APPEND_DOUBLE(document, key, 0x1p63))
VALUE(infinity, BSON_APPEND_DOUBLE(document, key, (double)INFINITY))
VALUE(early, BSON_APPEND_DATE_TIME(document, key, INT64_MIN))
VALUE(incarnation, BSON_APPEND_DATE_TIME(document, key, 0))
VALUE(late, BSON_APPEND_DATE_TIME(document, key, INT64_MAX))

/* From the lowest rank to the highest; values of one row rank equally. */
static const append_fn rows[][2] = {
    {text, not_a_number},
    {minus_infinity},
    {lowest},
    {lowest_and_one},
    {minus_half},
    {minus_zero, zero},
    {small},
    {two_to_53, two_to_53_as_integer},
    {above_two_to_53},
    {next_double},
    {highest_but_one},
    {highest},
    {two_to_63},
    {infinity},
    {early},
    {incarnation},
    {late},
};
enum { ROWS = sizeof rows / sizeof *rows };

static spill_rank_t make_rank(append_fn append, bson_t *document)
{
    bson_iter_t iter;
    bson_reinit(document);
    append(document, "v");
    assert_true(bson_iter_init_find(&iter, document, "v"));
    spill_value_t value = spill_value_from_iter(&iter);
    return spill_rank_of_value(&value);
}

/* Of two equal ranks the number decides, so compare a second time with the numbers exchanged. */
static int compare_ranks(const spill_rank_t *left, const spill_rank_t *right)
{
    int above = 0;
    for (int64_t turn = 0; turn < 2; turn++) {
        spill_top_entry_t first = {.seq = turn, .rank = *left};
        spill_top_entry_t second = {.seq = 1 - turn, .rank = *right};
        spill_top_t top = {0};
        spill_top_add(&top, 2, &first);
        spill_top_add(&top, 2, &second);
        above += top.at[0].seq == first.seq ? 1 : -1;
        spill_top_release(&top);
    }
    return above / 2;
}

static void ranks_are_in_order(void **state)
{
    (void)state;
    bson_t document = BSON_INITIALIZER;
    for (int i = 0; i < 2 * ROWS; i++) {
        for (int k = 0; k < 2 * ROWS; k++) {
            if (!rows[i / 2][i % 2] || !rows[k / 2][k % 2])
                continue;
            spill_rank_t left = make_rank(rows[i / 2][i % 2], &document);
            spill_rank_t right = make_rank(rows[k / 2][k % 2], &document);
            uint8_t left_key[SPILL_RANK_KEY_BYTES], right_key[SPILL_RANK_KEY_BYTES];
            int expected = (i / 2 > k / 2) - (i / 2 < k / 2);
            assert_int_equal(compare_ranks(&left, &right), expected);
            spill_rank_key(&left, left_key);
            spill_rank_key(&right, right_key);
            int order = memcmp(right_key, left_key, sizeof left_key); /* the highest first */
            assert_int_equal((order > 0) - (order < 0), expected);
        }
    }
    bson_destroy(&document);
}

static spill_top_t make_top(void)
{
    spill_top_t top = {0};
    bson_t document = BSON_INITIALIZER;
    for (int i = 0; i < ROWS; i++) {
        spill_top_entry_t entry = {.seq = 3 * i,
                                   .size_bytes = (uint32_t)(7 + i),
                                   .rank = make_rank(rows[i][0], &document)};
        spill_top_add(&top, SPILL_TOP_MAX, &entry);
    }
    spill_definition_t definition;
    spill_definition_preset(&definition, "reviews-subset", "r", NULL);
    spill_top_show(&top, &definition, 5);
    bson_destroy(&document);
    return top;
}

static void top_round_trip_in_document(void **state)
{
    (void)state;
    spill_top_t top = make_top(), back = {0};
    bson_t document = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_top_append(&top, "top", &document);
    assert_true(bson_iter_init_find(&iter, &document, "top"));
    spill_value_t value = spill_value_from_iter(&iter);
    assert_true(value.size_bytes <= 5 + ROWS * (SPILL_TOP_ENTRY_BYTES + 4));
    assert_true(spill_top_read(&value, top.shown, &back));
    assert_true(spill_top_equal(&top, &back));
    assert_int_equal(back.shown, 5);
    assert_int_equal(back.shown_bytes, top.shown_bytes);
    assert_false(spill_top_read(&value, ROWS + 1, &back));
    bson_t turned = BSON_INITIALIZER, array;
    BSON_APPEND_ARRAY_BEGIN(&turned, "top", &array); /* not in the order of ranks */
    for (int i = 0; i < 2; i++) {
        bson_t entry;
        bson_append_document_begin(&array, i == 0 ? "0" : "1", 1, &entry);
        BSON_APPEND_INT64(&entry, "seq", i);
        BSON_APPEND_INT64(&entry, "size", 5);
        bson_append_document_end(&array, &entry);
    }
    bson_append_array_end(&turned, &array);
    assert_true(bson_iter_init_find(&iter, &turned, "top"));
    value = spill_value_from_iter(&iter);
    assert_false(spill_top_read(&value, 0, &back));
    bson_destroy(&turned);
    bson_destroy(&document);
    spill_top_release(&top);
    spill_top_release(&back);
}

static void top_round_trip_in_record(void **state)
{
    (void)state;
    spill_state_t head = {.present = true, .incarnation = 9, .rev = 12, .top = make_top()};
    spill_state_t back = {0};
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_state_encode(&head, true, &bytes);
    assert_true(spill_state_decode(bytes.data, bytes.size, true, &back));
    assert_true(spill_top_equal(&head.top, &back.top));
    assert_int_equal(back.top.shown_bytes, head.top.shown_bytes);
    for (size_t size = 0; size < bytes.size; size++)
        assert_false(spill_state_decode(bytes.data, size, true, &back));
    for (size_t bit = 0; bit < bytes.size * 8; bit++) {
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        if (spill_state_decode(bytes.data, bytes.size, true, &back))
            assert_true(back.top.shown <= back.top.count && back.top.count <= SPILL_TOP_MAX);
        bytes.data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    spill_buffer_release(&bytes);
    spill_state_release(&head);
    spill_state_release(&back);
}

static void only_the_highest_are_kept(void **state)
{
    (void)state;
    spill_top_t top = {0}, all = {0};
    for (int i = 0; i < 100; i++) {
        spill_top_entry_t entry = {
            .seq = i, .rank = {.class = SPILL_RANK_NUMBER, .value = (double)(i * 37 % 20)}};
        spill_top_add(&top, 7, &entry);
        spill_top_add(&top, 7, &entry); /* added twice */
        spill_top_add(&all, SIZE_MAX, &entry);
    }
    assert_int_equal(top.count, 7);
    assert_int_equal(all.count, 100);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(top.at[i].seq, all.at[i].seq);
    spill_top_remove(&top, all.at[2].seq);
    spill_top_drop_below(&top, 50);
    spill_top_add_all(&top, 7, &all);
    assert_int_equal(top.count, 7);
    for (size_t i = 0; i < 7; i++)
        assert_int_equal(top.at[i].seq, all.at[i].seq);
    assert_true(spill_top_contains(&top, all.at[6].seq));
    assert_false(spill_top_contains(&top, all.at[7].seq));
    spill_top_release(&top);
    spill_top_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_are_in_order),
        cmocka_unit_test(top_round_trip_in_document),
        cmocka_unit_test(top_round_trip_in_record),
        cmocka_unit_test(only_the_highest_are_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
