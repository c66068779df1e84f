/* Numbers by value, compared with a slow oracle: the exact decimal expansion as text. */
#include "bson/value.h"

#include "random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHOLE_DIGITS = 6200, FRACTION_DIGITS = 6200 };

/* A number as digits: the whole part without leading zeros, the fraction without trailing ones. */
typedef struct expansion {
    int special; /* NaN -2, infinities -1 and 1, else 0 */
    int sign;    /* of a finite number: -1, 0, 1 */
    char whole[WHOLE_DIGITS];
    char fraction[FRACTION_DIGITS];
} expansion_t;

/* Parse "[-]digits[.digits]". */
static void expand_plain(const char *text, expansion_t *out)
{
    bool negative = *text == '-';
    text += negative;
    text += strspn(text, "0");
    size_t whole = strspn(text, "0123456789");
    memcpy(out->whole, text, whole);
    out->whole[whole] = '\0';
    const char *fraction = text[whole] == '.' ? text + whole + 1 : "";
    size_t digits = strlen(fraction);
    while (digits > 0 && fraction[digits - 1] == '0')
        digits--;
    memcpy(out->fraction, fraction, digits);
    out->fraction[digits] = '\0';
    bool zero = whole == 0 && digits == 0;
    out->sign = zero ? 0 : negative ? -1 : 1;
}

/* Move the decimal point by the exponent. */
static void expand_decimal(const spill_value_t *value, expansion_t *out)
{
    static char plain[2 * WHOLE_DIGITS];
    bson_t document = BSON_INITIALIZER;
    bson_iter_t iter;
    bson_decimal128_t decimal;
    char text[BSON_DECIMAL128_STRING];
    spill_value_append(value, &document, "");
    assert_true(bson_iter_init(&iter, &document) && bson_iter_next(&iter));
    assert_true(bson_iter_decimal128(&iter, &decimal));
    bson_destroy(&document);
    bson_decimal128_to_string(&decimal, text);
    if (strcmp(text, "NaN") == 0 || strstr(text, "Infinity") != NULL) {
        out->special = strcmp(text, "NaN") == 0 ? -2 : text[0] == '-' ? -1 : 1;
        return;
    }
    const char *checkpoint = strchr(text, 'E');
    long exponent = checkpoint == NULL ? 0 : strtol(checkpoint + 1, NULL, 10);
    char digits[64] = "";
    long point = 0, count = 0;
    bool negative = text[0] == '-';
    bool seen = false;
    for (const char *at = text + negative; *at != '\0' && *at != 'E'; at++) {
        if (*at == '.') {
            seen = true;
        } else {
            digits[count++] = *at;
            point += !seen;
        }
    }
    point += exponent;
    char *to = plain;
    if (negative)
        *to++ = '-';
    long i = 0;
    for (; i < point; i++)
        *to++ = i < count ? digits[i] : '0';
    *to++ = '.';
    for (long zeros = point; zeros < 0; zeros++)
        *to++ = '0';
    for (i = point > 0 ? point : 0; i < count; i++)
        *to++ = digits[i];
    *to = '\0';
    expand_plain(plain, out);
}

static void expand(const spill_value_t *value, expansion_t *out)
{
    static char text[2048];
    memset(out, 0, offsetof(expansion_t, whole) + 1);
    out->fraction[0] = '\0';
    switch (value->type) {
    case BSON_TYPE_INT32:
        snprintf(text, sizeof text, "%d", spill_value_int32(value));
        expand_plain(text, out);
        break;
    case BSON_TYPE_INT64:
        snprintf(text, sizeof text, "%lld", (long long)spill_value_int64(value));
        expand_plain(text, out);
        break;
    case BSON_TYPE_DOUBLE: {
        double number = spill_value_double(value);
        if (isnan(number) || isinf(number)) {
            out->special = isnan(number) ? -2 : number < 0 ? -1 : 1;
        } else {
            snprintf(text, sizeof text, "%.1100f", number);
            expand_plain(text, out);
        }
        break;
    }
    default:
        expand_decimal(value, out);
    }
}

/* Rank NaN, minus infinity, finite numbers and infinity. */
static int rank_of(const expansion_t *number)
{
    return number->special == 1 ? 3 : number->special == 0 ? 2 : number->special + 2;
}

static int sign(int order)
{
    return (order > 0) - (order < 0);
}

static int compare_expansions(const expansion_t *left, const expansion_t *right)
{
    if (left->special != 0 || right->special != 0)
        return sign(rank_of(left) - rank_of(right));
    if (left->sign != right->sign)
        return sign(left->sign - right->sign);
    size_t a = strlen(left->whole), b = strlen(right->whole);
    int order = a != b ? (a < b ? -1 : 1) : sign(strcmp(left->whole, right->whole));
    if (order == 0)
        order = sign(strcmp(left->fraction, right->fraction));
    return left->sign < 0 ? -order : order;
}

static void check_pair(const spill_value_t *left, const spill_value_t *right)
{
    static expansion_t a, b;
    expand(left, &a);
    expand(right, &b);
    int expected = compare_expansions(&a, &b);
    bool same = spill_value_same_owner(left, right);
    int order = sign(spill_value_compare(left, right));
    if (same != (expected == 0) || order != expected)
        fail_msg("%s and %s: order %d, same %d, expected %d", spill_value_to_json(left, true),
                 spill_value_to_json(right, true), order, same, expected);
}

static void test_random_pairs(void **state)
{
    (void)state;
    random_source_t random = {1};
    for (int i = 0; i < 30000; i++) {
        bson_t documents[2];
        spill_value_t values[2];
        for (int k = 0; k < 2; k++) {
            bson_init(&documents[k]);
            random_append_number(&random, &documents[k], "");
            values[k] = first_value(&documents[k]);
        }
        check_pair(&values[0], &values[1]);
        bson_destroy(&documents[0]);
        bson_destroy(&documents[1]);
    }
}

/* Decimals equal to or next to doubles, written from the double's own digits. */
static void test_close_pairs(void **state)
{
    (void)state;
    random_source_t random = {2};
    for (int i = 0; i < 10000; i++) {
        double number;
        uint64_t bits = random_next(&random);
        if (random_below(&random, 2) == 0) {
            /* A double with few bits, near 1: its decimal expansion often fits a decimal128. */
            bits = (bits & UINT64_C(0x800f000000000000)) |
                   (uint64_t)(1000 + random_below(&random, 60)) << 52;
        }
        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
            continue;
        char text[64];
        bson_decimal128_t decimal;
        snprintf(text, sizeof text, "%.33e", number);
        assert_true(bson_decimal128_from_string(text, &decimal));
        decimal.low += random_below(&random, 3);
        bson_t as_double = BSON_INITIALIZER;
        bson_t as_decimal = BSON_INITIALIZER;
        BSON_APPEND_DOUBLE(&as_double, "", number);
        BSON_APPEND_DECIMAL128(&as_decimal, "", &decimal);
        spill_value_t left = first_value(&as_double);
        spill_value_t right = first_value(&as_decimal);
        check_pair(&left, &right);
        check_pair(&right, &left);
        bson_destroy(&as_double);
        bson_destroy(&as_decimal);
    }
}

/* ---- named cases ----------------------------------------------------------------------------- */

static void assert_same(const char *left, const char *right, bool expected)
{
    bson_t storage[2];
    spill_value_t values[2];
    const char *texts[] = {left, right};
    for (int k = 0; k < 2; k++) {
        bson_init(&storage[k]);
        assert_int_equal(
            spill_value_from_json(texts[k], strlen(texts[k]), &storage[k], &values[k], NULL),
            SPILL_OK);
    }
    if (spill_value_same_owner(&values[0], &values[1]) != expected)
        fail_msg("%s and %s", left, right);
    bson_destroy(&storage[0]);
    bson_destroy(&storage[1]);
}

static void test_named_pairs(void **state)
{
    (void)state;
    static const char two_53[] = "{\"$numberDouble\":\"9007199254740992\"}";
    assert_same("1", "{\"$numberLong\":\"1\"}", true);
    assert_same("1", "1.0", true);
    assert_same("1", "{\"$numberDecimal\":\"1.000\"}", true);
    assert_same("1", "{\"$numberDecimal\":\"0.1E1\"}", true);
    assert_same("100", "{\"$numberDecimal\":\"1E2\"}", true);
    assert_same("0", "-0.0", true);
    assert_same("0", "{\"$numberDecimal\":\"-0E-50\"}", true);
    assert_same("0.5", "{\"$numberDecimal\":\"0.50\"}", true);
    assert_same("0.1", "{\"$numberDecimal\":\"0.1\"}", false);
    assert_same("0.1", "{\"$numberDecimal\":\"0.1000000000000000055511151231257827\"}", false);
    assert_same(two_53, "9007199254740992", true);
    assert_same(two_53, "9007199254740993", false);
    assert_same("9007199254740993", "{\"$numberDecimal\":\"9007199254740993\"}", true);
    assert_same("{\"$numberDouble\":\"NaN\"}", "{\"$numberDecimal\":\"NaN\"}", true);
    assert_same("{\"$numberDouble\":\"Infinity\"}", "{\"$numberDecimal\":\"Infinity\"}", true);
    assert_same("{\"$numberDouble\":\"-Infinity\"}", "{\"$numberDouble\":\"Infinity\"}", false);
    assert_same("9223372036854775807", "{\"$numberDouble\":\"9223372036854775808\"}", false);
    assert_same("-9223372036854775808", "{\"$numberDouble\":\"-9223372036854775808\"}", true);
    assert_same("1e300", "{\"$numberDecimal\":\"1E300\"}", false);
    assert_same("1", "\"1\"", false);
    assert_same("1", "true", false);
}

static void test_to_int64(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool integer;
        int64_t value;
    } cases[] = {
        {"{\"$numberDecimal\":\"9223372036854775807\"}", true, INT64_MAX},
        {"{\"$numberDecimal\":\"9223372036854775808\"}", false, 0},
        {"{\"$numberDecimal\":\"-9223372036854775808\"}", true, INT64_MIN},
        {"{\"$numberDecimal\":\"1E18\"}", true, INT64_C(1000000000000000000)},
        {"{\"$numberDecimal\":\"1E19\"}", false, 0},
        {"{\"$numberDecimal\":\"1E6111\"}", false, 0},
        {"{\"$numberDecimal\":\"12.30\"}", false, 0},
        {"{\"$numberDecimal\":\"1200E-2\"}", true, 12},
        {"-0.0", true, 0},
        {"1e18", true, INT64_C(1000000000000000000)},
        {"1e19", false, 0},
        {"1e300", false, 0},
        {"-2.5", false, 0},
        {"{\"$numberDouble\":\"NaN\"}", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value;
        assert_int_equal(
            spill_value_from_json(cases[i].text, strlen(cases[i].text), &storage, &value, NULL),
            SPILL_OK);
        spill_number_t number = spill_number_of(&value);
        int64_t integer = 0;
        assert_int_equal(spill_number_to_int64(&number, &integer), cases[i].integer);
        assert_true(integer == cases[i].value);
        bson_destroy(&storage);
    }
}

/* A coefficient of 10^34 or more counts as 0, and so does every number of the second form. */
static void test_decimals_that_are_not_canonical(void **state)
{
    (void)state;
    static const bson_decimal128_t decimals[] = {
        {.high = UINT64_C(0x3041ed09bead87c0), .low = UINT64_C(0x378d8e6400000000)}, /* 10^34 */
        {.high = UINT64_C(0x6c10000000000000), .low = 7},
    };
    for (int i = 0; i < 2; i++) {
        bson_t document = BSON_INITIALIZER;
        BSON_APPEND_DECIMAL128(&document, "a", &decimals[i]);
        BSON_APPEND_INT32(&document, "b", 0);
        bson_iter_t iter;
        bson_iter_init(&iter, &document);
        assert_true(bson_iter_next(&iter));
        spill_value_t decimal = spill_value_from_iter(&iter);
        assert_true(bson_iter_next(&iter));
        spill_value_t zero = spill_value_from_iter(&iter);
        assert_true(spill_value_same_owner(&decimal, &zero));
        assert_int_equal(spill_value_compare(&decimal, &zero), 0);
        bson_destroy(&document);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_pairs),
        cmocka_unit_test(test_close_pairs),
        cmocka_unit_test(test_named_pairs),
        cmocka_unit_test(test_to_int64),
        cmocka_unit_test(test_decimals_that_are_not_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
