/* The order of BSON values, and a hash over a sequence of them. */
#include "bson/number.h"
#include "bson/value.h"
#include "util/hash.h"

#include <string.h>

/* The rank of each type in the order. Types with the same rank are compared by value. */
static int rank_of(uint8_t type)
{
    switch (type) {
    case BSON_TYPE_MINKEY:
        return 0;
    case BSON_TYPE_UNDEFINED:
        return 1;
    case BSON_TYPE_NULL:
        return 2;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return 3;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        return 4;
    case BSON_TYPE_DOCUMENT:
        return 5;
    case BSON_TYPE_ARRAY:
        return 6;
    case BSON_TYPE_BINARY:
        return 7;
    case BSON_TYPE_OID:
        return 8;
    case BSON_TYPE_BOOL:
        return 9;
    case BSON_TYPE_DATE_TIME:
        return 10;
    case BSON_TYPE_TIMESTAMP:
        return 11;
    case BSON_TYPE_REGEX:
        return 12;
    case BSON_TYPE_DBPOINTER:
        return 13;
    case BSON_TYPE_CODE:
        return 14;
    case BSON_TYPE_CODEWSCOPE:
        return 15;
    default:
        return 16;
    }
}

static int compare_bytes(const void *left, size_t left_size, const void *right, size_t right_size)
{
    size_t common = left_size < right_size ? left_size : right_size;
    int order = common > 0 ? memcmp(left, right, common) : 0;
    return order != 0 ? order : (left_size > right_size) - (left_size < right_size);
}

static int compare_numbers(const spill_value_t *left, const spill_value_t *right)
{
    spill_number_t a = spill_number_of(left);
    spill_number_t b = spill_number_of(right);
    return spill_number_compare(&a, &b);
}

static int compare_strings(const spill_value_t *left, const spill_value_t *right)
{
    uint32_t left_length, right_length;
    const char *a = spill_value_text(left, &left_length);
    const char *b = spill_value_text(right, &right_length);
    return compare_bytes(a, left_length, b, right_length);
}

/* Compare field by field: type, then name (not in arrays), then value. */
static int compare_documents(const uint8_t *left, const uint8_t *right, bool names)
{
    spill_fields_t left_fields = spill_fields_of(left);
    spill_fields_t right_fields = spill_fields_of(right);
    for (;;) {
        const char *left_name, *right_name;
        spill_value_t a, b;
        bool more_left = spill_fields_next(&left_fields, &left_name, &a);
        bool more_right = spill_fields_next(&right_fields, &right_name, &b);
        if (!more_left || !more_right)
            return (int)more_left - (int)more_right;
        int order = rank_of(a.type) - rank_of(b.type);
        if (order == 0 && names)
            order = strcmp(left_name, right_name);
        if (order == 0)
            order = spill_value_compare(&a, &b);
        if (order != 0)
            return order;
    }
}

/* Compare length, then subtype, then bytes. */
static int compare_binaries(const spill_value_t *left, const spill_value_t *right)
{
    if (left->size_bytes != right->size_bytes)
        return left->size_bytes < right->size_bytes ? -1 : 1;
    return memcmp(left->data + 4, right->data + 4, left->size_bytes - 4);
}

static int compare_timestamps(const spill_value_t *left, const spill_value_t *right)
{
    uint64_t a = (uint64_t)spill_value_int64(left);
    uint64_t b = (uint64_t)spill_value_int64(right);
    return (a > b) - (a < b);
}

static int compare_codes_with_scope(const spill_value_t *left, const spill_value_t *right)
{
    spill_value_t a = {.data = left->data + 4}; /* the string inside */
    spill_value_t b = {.data = right->data + 4};
    int order = compare_strings(&a, &b);
    if (order != 0)
        return order;
    uint32_t length;
    (void)spill_value_text(&a, &length); /* equal on both sides */
    return compare_documents(a.data + 4 + length + 1, b.data + 4 + length + 1, true);
}

int spill_value_compare(const spill_value_t *left, const spill_value_t *right)
{
    int order = rank_of(left->type) - rank_of(right->type);
    if (order != 0)
        return order;
    switch (left->type) {
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        return compare_numbers(left, right);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
    case BSON_TYPE_CODE:
        return compare_strings(left, right);
    case BSON_TYPE_DOCUMENT:
        return compare_documents(left->data, right->data, true);
    case BSON_TYPE_ARRAY:
        return compare_documents(left->data, right->data, false);
    case BSON_TYPE_BINARY:
        return compare_binaries(left, right);
    case BSON_TYPE_DATE_TIME: {
        int64_t a = spill_value_int64(left), b = spill_value_int64(right);
        return (a > b) - (a < b);
    }
    case BSON_TYPE_TIMESTAMP:
        return compare_timestamps(left, right);
    case BSON_TYPE_CODEWSCOPE:
        return compare_codes_with_scope(left, right);
    default: /* bool, ObjectId, regular expression, pointer; types without bytes */
        return compare_bytes(left->data, left->size_bytes, right->data, right->size_bytes);
    }
}

bool spill_value_same_class(const spill_value_t *left, const spill_value_t *right)
{
    return rank_of(left->type) == rank_of(right->type);
}

void spill_value_add_hash(const spill_value_t *value, uint64_t *hash)
{
    uint64_t parts[3] = {*hash, value->type, spill_hash(value->data, value->size_bytes)};
    *hash = spill_hash(parts, sizeof parts);
}
