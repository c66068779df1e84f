/* Sums from which values are removed again. */
#include "store/summary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t definition = {.value_field = "review.rating"};

static spill_sum_t real(double value)
{
    return (spill_sum_t){.values = 1, .high = value};
}

static spill_sum_t whole(int64_t value)
{
    return (spill_sum_t){.values = 1, .whole = value};
}

static spill_sum_t add_up(bson_t *document)
{
    spill_value_t value = {
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
    spill_sum_t sum = spill_sum_of(&definition, &value);
    bson_destroy(document);
    return sum;
}

static void values_of_elements(void **state)
{
    (void)state;
    spill_sum_t none = {0}, five = whole(5), half = real(0.5);
    spill_sum_t sums[] = {
        add_up(BCON_NEW("review", "{", "rating", BCON_INT32(5), "}")),
        add_up(BCON_NEW("review", "{", "rating", BCON_INT64(5), "}")),
        add_up(BCON_NEW("review", "{", "rating", BCON_DOUBLE(0.5), "}")),
        add_up(BCON_NEW("review", "{", "rating", "5", "}")),
        add_up(BCON_NEW("review", "{", "rating", BCON_DOUBLE(1.0 / 0.0), "}")),
        add_up(BCON_NEW("review", "{", "rating", BCON_DOUBLE(1e301), "}")),
        add_up(BCON_NEW("rating", BCON_INT32(5))),
    };
    assert_true(spill_sum_equal(&sums[0], &five));
    assert_true(spill_sum_equal(&sums[1], &five));
    assert_true(spill_sum_equal(&sums[2], &half));
    for (int i = 3; i < 7; i++)
        assert_true(spill_sum_equal(&sums[i], &none));
}

/*
 * A thousand times 0.1 is not 100 for doubles. Here, removing an added value restores the sum
 * exactly.
 */
static void removing_doubles_is_exact(void **state)
{
    (void)state;
    spill_sum_t sum = {0};
    for (int i = 0; i < 1000; i++) {
        spill_sum_t value = real(0.1 * (i + 1)), large = real(1e15 / (i + 1));
        spill_sum_add(&sum, &value);
        spill_sum_add(&sum, &large);
    }
    for (int i = 0; i < 1000; i++) {
        spill_sum_t large = real(1e15 / (i + 1));
        spill_sum_subtract(&sum, &large);
    }
    double difference = spill_sum_total(&sum) - 50050;
    assert_true(difference < 1e-9 && difference > -1e-9);
    assert_int_equal(sum.values, 1000);
    for (int i = 0; i < 1000; i++) {
        spill_sum_t value = real(0.1 * (i + 1));
        spill_sum_subtract(&sum, &value);
    }
    spill_sum_t none = {0};
    assert_true(spill_sum_equal(&sum, &none));
}

static void integers_beyond_64_bits(void **state)
{
    (void)state;
    spill_sum_t sum = {0}, most = whole(INT64_MAX), least = whole(INT64_MIN);
    for (int i = 0; i < 3; i++)
        spill_sum_add(&sum, &most);
    assert_true(spill_sum_total(&sum) == 3 * 9223372036854775807.0);
    assert_true(spill_sum_average(&sum) == 9223372036854775807.0);
    for (int i = 0; i < 2; i++)
        spill_sum_subtract(&sum, &most);
    assert_true(spill_sum_total(&sum) == 9223372036854775807.0);
    spill_sum_add(&sum, &least);
    assert_true(spill_sum_total(&sum) == -1);
}

static void integers_are_exact(void **state)
{
    (void)state;
    spill_sum_t sum = {0}, large = whole(INT64_C(9007199254740993)), one = whole(1);
    spill_sum_add(&sum, &large);
    spill_sum_add(&sum, &one);
    spill_sum_subtract(&sum, &large);
    assert_true(spill_sum_equal(&sum, &one));
    assert_true(spill_sum_average(&sum) == 1);
    spill_sum_subtract(&sum, &one);
    assert_true(spill_sum_average(&sum) == 0);
}

static void sum_round_trip(void **state)
{
    (void)state;
    spill_sum_t sums[] = {whole(-3), {.values = 2, .whole = 4, .high = 0.5, .low = 1e-20}, {0}};
    for (int i = 0; i < 3; i++) {
        bson_t document = BSON_INITIALIZER;
        bson_iter_t iter;
        spill_sum_t back;
        spill_sum_append(&sums[i], "sum", &document);
        assert_true(document.len <= SPILL_SUM_BYTES + 5 + 5);
        assert_true(bson_iter_init_find(&iter, &document, "sum"));
        spill_value_t value = spill_value_from_iter(&iter);
        assert_true(spill_sum_read(&value, &back));
        assert_true(spill_sum_equal(&sums[i], &back));
        bson_destroy(&document);
    }
    bson_t *other = BCON_NEW("values", "many");
    spill_value_t value = {
        .data = bson_get_data(other), .size_bytes = other->len, .type = BSON_TYPE_DOCUMENT};
    spill_sum_t back;
    assert_false(spill_sum_read(&value, &back));
    bson_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_elements),      cmocka_unit_test(removing_doubles_is_exact),
        cmocka_unit_test(integers_beyond_64_bits), cmocka_unit_test(integers_are_exact),
        cmocka_unit_test(sum_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
