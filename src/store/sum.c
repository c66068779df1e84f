#include "store/summary.h"

#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"

#include <math.h>
#include <string.h>

/* So that at least 100 million values can be summed without overflow. */
static const double AMOUNT_MAX = 1e300;

/* ---- amounts --------------------------------------------------------------------------------- */

static spill_amount_t whole_amount(int64_t whole)
{
    return (spill_amount_t){.whole = whole, .value = (double)whole};
}

/* Read any int32, int64 or double; return false for another type. */
static bool read_amount(const spill_value_t *value, spill_amount_t *amount)
{
    switch (value->type) {
    case BSON_TYPE_INT32:
        *amount = whole_amount(spill_value_int32(value));
        return true;
    case BSON_TYPE_INT64:
        *amount = whole_amount(spill_value_int64(value));
        return true;
    case BSON_TYPE_DOUBLE:
        *amount = (spill_amount_t){.real = true, .value = spill_value_double(value)};
        return true;
    default:
        return false;
    }
}

/*
 * The number at the definition's value_field: an int32, an int64 or a double up to 1e300. Return
 * false if the element has no such number or the definition has no value_field.
 */
static bool amount_of(const spill_definition_t *definition, const spill_value_t *element,
                      spill_amount_t *amount)
{
    spill_value_t found;
    const char *path = definition->value_field;
    return path[0] != '\0' && spill_value_at(element, path, &found) &&
           read_amount(&found, amount) && fabs(amount->value) <= AMOUNT_MAX;
}

/* Append an int32 if an integer fits, else an int64; or a double. */
static void append_amount(const spill_amount_t *amount, const char *name, bson_t *document)
{
    if (amount->real)
        BSON_APPEND_DOUBLE(document, name, amount->value);
    else if (amount->whole >= INT32_MIN && amount->whole <= INT32_MAX)
        BSON_APPEND_INT32(document, name, (int32_t)amount->whole);
    else
        BSON_APPEND_INT64(document, name, amount->whole);
}

/* Compare exactly: negative, 0 or positive. Both are finite. */
static int compare(const spill_amount_t *left, const spill_amount_t *right)
{
    if (!left->real && !right->real)
        return (left->whole > right->whole) - (left->whole < right->whole);
    if (left->real && right->real)
        return (left->value > right->value) - (left->value < right->value);
    uint8_t bytes[2][8];
    spill_value_t values[2];
    const spill_amount_t *amounts[2] = {left, right};
    for (int i = 0; i < 2; i++) {
        uint64_t bits = BSON_UINT64_TO_LE((uint64_t)amounts[i]->whole);
        double number = BSON_DOUBLE_TO_LE(amounts[i]->value);
        memcpy(bytes[i], amounts[i]->real ? (const void *)&number : (const void *)&bits, 8);
        values[i] = (spill_value_t){.data = bytes[i],
                                    .size_bytes = 8,
                                    .type = amounts[i]->real ? BSON_TYPE_DOUBLE : BSON_TYPE_INT64};
    }
    spill_number_t numbers[2] = {spill_number_of(&values[0]), spill_number_of(&values[1])};
    return spill_number_compare(&numbers[0], &numbers[1]);
}

/* Equal to the bit: 0 and -0 differ. */
static bool same_double(double left, double right)
{
    uint64_t bits[2];
    memcpy(&bits[0], &left, sizeof left);
    memcpy(&bits[1], &right, sizeof right);
    return bits[0] == bits[1];
}

static bool same_amount(const spill_amount_t *left, const spill_amount_t *right)
{
    return left->real == right->real && left->whole == right->whole &&
           same_double(left->value, right->value);
}

/* ---- the fold -------------------------------------------------------------------------------- */

void spill_window_stats_add(spill_window_stats_t *window_stats,
                            const spill_definition_t *definition, const spill_value_t *element)
{
    spill_amount_t amount;
    if (!amount_of(definition, element, &amount))
        return;
    if (amount.real ||
        __builtin_add_overflow(window_stats->whole, amount.whole, &window_stats->whole))
        window_stats->real = true;
    if (window_stats->real)
        window_stats->whole = 0;
    window_stats->run += amount.value;
    if (window_stats->values == 0 || compare(&amount, &window_stats->min) < 0)
        window_stats->min = amount;
    if (window_stats->values == 0 || compare(&amount, &window_stats->max) > 0)
        window_stats->max = amount;
    window_stats->values++;
}

bool spill_window_stats_equal(const spill_window_stats_t *left, const spill_window_stats_t *right)
{
    return left->values == right->values && left->real == right->real &&
           left->whole == right->whole && same_double(left->run, right->run) &&
           same_amount(&left->min, &right->min) && same_amount(&left->max, &right->max);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static void compute_average(spill_statistics_t *statistics)
{
    statistics->average =
        statistics->values > 0 ? statistics->sum.value / (double)statistics->values : 0;
}

void spill_window_stats_derive(const spill_window_stats_t *window_stats, int64_t count,
                               spill_statistics_t *statistics)
{
    *statistics = (spill_statistics_t){
        .version = SPILL_STATISTICS_VERSION,
        .count = count,
        .values = window_stats->values,
        .sum = window_stats->real ? (spill_amount_t){.real = true, .value = window_stats->run}
                                  : whole_amount(window_stats->whole),
        .min = window_stats->min,
        .max = window_stats->max,
    };
    compute_average(statistics);
}

void spill_statistics_join(spill_statistics_t *statistics, const spill_statistics_t *next)
{
    spill_amount_t *sum = &statistics->sum;
    int64_t whole;
    statistics->count += next->count;
    if (next->values == 0)
        return;
    if (!sum->real && !next->sum.real &&
        !__builtin_add_overflow(sum->whole, next->sum.whole, &whole))
        *sum = whole_amount(whole);
    else
        *sum = (spill_amount_t){.real = true, .value = sum->value + next->sum.value};
    if (statistics->values == 0 || compare(&next->min, &statistics->min) < 0)
        statistics->min = next->min;
    if (statistics->values == 0 || compare(&next->max, &statistics->max) > 0)
        statistics->max = next->max;
    statistics->values += next->values;
    compute_average(statistics);
}

/* ---- in documents ---------------------------------------------------------------------------- */

void spill_window_stats_append(const spill_window_stats_t *window_stats, const char *name,
                               bson_t *document)
{
    if (window_stats->values == 0)
        return;
    bson_t fields;
    BSON_APPEND_DOCUMENT_BEGIN(document, name, &fields);
    BSON_APPEND_INT64(&fields, SPILL_STORED_STATS_VALUES, window_stats->values);
    if (!window_stats->real)
        BSON_APPEND_INT64(&fields, SPILL_STORED_STATS_WHOLE, window_stats->whole);
    BSON_APPEND_DOUBLE(&fields, SPILL_STORED_STATS_RUN, window_stats->run);
    append_amount(&window_stats->min, SPILL_STORED_STATS_MIN, &fields);
    append_amount(&window_stats->max, SPILL_STORED_STATS_MAX, &fields);
    bson_append_document_end(document, &fields);
}

bool spill_window_stats_read(const spill_value_t *value, spill_window_stats_t *window_stats)
{
    *window_stats = (spill_window_stats_t){.real = true};
    if (value->type != BSON_TYPE_DOCUMENT)
        return false;
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    spill_value_t field;
    int known = 0;
    while (spill_fields_next(&fields, &name, &field)) {
        spill_amount_t amount;
        if (!read_amount(&field, &amount))
            return false;
        known++;
        if (strcmp(name, SPILL_STORED_STATS_VALUES) == 0)
            window_stats->values = amount.whole;
        else if (strcmp(name, SPILL_STORED_STATS_RUN) == 0)
            window_stats->run = amount.value;
        else if (strcmp(name, SPILL_STORED_STATS_MIN) == 0)
            window_stats->min = amount;
        else if (strcmp(name, SPILL_STORED_STATS_MAX) == 0)
            window_stats->max = amount;
        else if (strcmp(name, SPILL_STORED_STATS_WHOLE) == 0) {
            window_stats->whole = amount.whole;
            window_stats->real = false;
        } else
            return false;
    }
    return window_stats->values > 0 && known == (window_stats->real ? 4 : 5);
}

void spill_window_stats_render(const spill_window_stats_t *window_stats, int64_t count,
                               const spill_definition_t *definition, bson_t *document)
{
    spill_statistics_t all;
    bson_t fields;
    if (definition->stats_field[0] == '\0')
        return;
    spill_window_stats_derive(window_stats, count, &all);
    BSON_APPEND_DOCUMENT_BEGIN(document, definition->stats_field, &fields);
    spill_append_count(&fields, definition->stats_count, count);
    if (definition->stats_average[0] != '\0' && all.values > 0)
        BSON_APPEND_DOUBLE(&fields, definition->stats_average, all.average);
    if (definition->stats_sum[0] != '\0')
        append_amount(&all.sum, definition->stats_sum, &fields);
    if (definition->stats_min[0] != '\0' && all.values > 0)
        append_amount(&all.min, definition->stats_min, &fields);
    if (definition->stats_max[0] != '\0' && all.values > 0)
        append_amount(&all.max, definition->stats_max, &fields);
    bson_append_document_end(document, &fields);
}

/* ---- sums ------------------------------------------------------------------------------------ */

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
    if (!amount_of(definition, element, &amount))
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
    BSON_APPEND_INT64(&fields, SPILL_STORED_SUM_VALUES, sum->values);
    BSON_APPEND_INT64(&fields, SPILL_STORED_SUM_WHOLE, sum->whole);
    if (sum->high != 0 || sum->low != 0) {
        BSON_APPEND_DOUBLE(&fields, SPILL_STORED_SUM_HIGH, sum->high);
        BSON_APPEND_DOUBLE(&fields, SPILL_STORED_SUM_LOW, sum->low);
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
        if (!read_amount(&field, &amount))
            return false;
        if (!amount.real && strcmp(name, SPILL_STORED_SUM_VALUES) == 0)
            sum->values = amount.whole;
        else if (!amount.real && strcmp(name, SPILL_STORED_SUM_WHOLE) == 0)
            sum->whole = amount.whole;
        else if (amount.real && strcmp(name, SPILL_STORED_SUM_HIGH) == 0)
            sum->high = amount.value;
        else if (amount.real && strcmp(name, SPILL_STORED_SUM_LOW) == 0)
            sum->low = amount.value;
        else
            return false;
    }
    return sum->values >= 0;
}
