#include "store/sum.h"

#include "bson/value.h"
#include "store/window_stats.h"

#include <math.h>
#include <string.h>

/* ---- the pair of doubles --------------------------------------------------------------------- */

/* Set high + low to high + low + value; keep the rounding error of each addition (TwoSum). */
static void add_double(spill_sum_t *sum, double value)
{
    double high = sum->high + value;
    double part = high - sum->high;
    double error = (sum->high - (high - part)) + (value - part);
    double low = sum->low + error;
    sum->high = high + low;
    sum->low = low - (sum->high - high);
}

/* Each half of an int64 is exactly a double. */
static void add_integer_beside(spill_sum_t *sum, int64_t value)
{
    int64_t low = value % INT64_C(0x100000000);
    add_double(sum, (double)(value - low));
    add_double(sum, (double)low);
}

/* ---- adding and subtracting ------------------------------------------------------------------ */

spill_sum_t spill_sum_of(const spill_definition_t *definition, const spill_value_t *element)
{
    spill_amount_t amount;
    if (!spill_amount_of(definition, element, &amount))
        return (spill_sum_t){0};
    if (amount.real)
        return (spill_sum_t){.values = 1, .high = amount.value};
    return (spill_sum_t){.values = 1, .whole = amount.whole};
}

void spill_sum_add(spill_sum_t *sum, const spill_sum_t *other)
{
    int64_t whole;
    sum->values += other->values;
    if (__builtin_add_overflow(sum->whole, other->whole, &whole))
        add_integer_beside(sum, other->whole);
    else
        sum->whole = whole;
    add_double(sum, other->high);
    add_double(sum, other->low);
}

void spill_sum_subtract(spill_sum_t *sum, const spill_sum_t *other)
{
    int64_t whole;
    sum->values -= other->values;
    if (__builtin_sub_overflow(sum->whole, other->whole, &whole)) {
        spill_sum_t referenced = {0};
        add_integer_beside(&referenced, other->whole);
        add_double(sum, -referenced.high);
        add_double(sum, -referenced.low);
    } else {
        sum->whole = whole;
    }
    add_double(sum, -other->high);
    add_double(sum, -other->low);
    if (sum->values == 0)
        *sum = (spill_sum_t){0};
}

bool spill_sum_equal(const spill_sum_t *left, const spill_sum_t *right)
{
    return left->values == right->values && left->whole == right->whole &&
           left->high == right->high && left->low == right->low;
}

bool spill_sum_close(const spill_sum_t *left, const spill_sum_t *right, double size)
{
    return left->values == right->values &&
           fabs(spill_sum_total(left) - spill_sum_total(right)) <= size * 1e-12 &&
           (left->high != 0 || right->high != 0 || left->whole == right->whole);
}

double spill_sum_size(const spill_sum_t *value)
{
    return fabs((double)value->whole) + fabs(value->high);
}

double spill_sum_total(const spill_sum_t *sum)
{
    spill_sum_t all = {.high = sum->high, .low = sum->low};
    add_integer_beside(&all, sum->whole);
    return all.high + all.low;
}

double spill_sum_average(const spill_sum_t *sum)
{
    return sum->values > 0 ? spill_sum_total(sum) / (double)sum->values : 0;
}

/* ---- in documents ---------------------------------------------------------------------------- */

void spill_sum_append(const spill_sum_t *sum, const char *name, bson_t *document)
{
    bson_t fields;
    bson_append_document_begin(document, name, -1, &fields);
    BSON_APPEND_INT64(&fields, "values", sum->values);
    BSON_APPEND_INT64(&fields, "whole", sum->whole);
    if (sum->high != 0 || sum->low != 0) {
        BSON_APPEND_DOUBLE(&fields, "high", sum->high);
        BSON_APPEND_DOUBLE(&fields, "low", sum->low);
    }
    bson_append_document_end(document, &fields);
}

bool spill_sum_read(const spill_value_t *value, spill_sum_t *sum)
{
    *sum = (spill_sum_t){0};
    if (value->type != BSON_TYPE_DOCUMENT)
        return false;
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    spill_value_t field;
    while (spill_fields_next(&fields, &name, &field)) {
        spill_amount_t amount;
        if (!spill_amount_read(&field, &amount))
            return false;
        if (!amount.real && strcmp(name, "values") == 0)
            sum->values = amount.whole;
        else if (!amount.real && strcmp(name, "whole") == 0)
            sum->whole = amount.whole;
        else if (amount.real && strcmp(name, "high") == 0)
            sum->high = amount.value;
        else if (amount.real && strcmp(name, "low") == 0)
            sum->low = amount.value;
        else
            return false;
    }
    return sum->values >= 0;
}
