#include "malformed.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- random numbers -------------------------------------------------------------------------- */

static uint64_t random_state;

void malformed_seed(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
}

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

int malformed_below(int limit)
{
    return (int)(next_random() % (uint64_t)limit);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void append_nested(bson_t *to, const char *key, int depth)
{
    bson_t child;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &child);
    if (depth > 0)
        append_nested(&child, "a", depth - 1);
    bson_append_document_end(to, &child);
}

static void append_long(bson_t *to, const char *key)
{
    char *text = bson_malloc0(100001);
    memset(text, 'y', 100000);
    BSON_APPEND_UTF8(to, key, text);
    bson_free(text);
}

static void append_array(bson_t *to, const char *key, int count, int64_t step)
{
    char buffer[16];
    const char *at;
    bson_t array;
    BSON_APPEND_ARRAY_BEGIN(to, key, &array);
    for (int i = 0; i < count; i++) {
        bson_uint32_to_string((uint32_t)i, &at, buffer, sizeof buffer);
        BSON_APPEND_INT64(&array, at, i * step);
    }
    bson_append_array_end(to, &array);
}

#define VALUES 44

static void append_page_id(bson_t *to, const char *key)
{
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &id);
    BSON_APPEND_UTF8(&id, "owner", "ada");
    BSON_APPEND_INT64(&id, "page", 7);
    bson_append_document_end(to, &id);
}

static void append_decimal(bson_t *to, const char *key, const char *text)
{
    bson_decimal128_t decimal;
    assert_true(bson_decimal128_from_string(text, &decimal));
    BSON_APPEND_DECIMAL128(to, key, &decimal);
}

/* A value that is no number. */
static void append_other(bson_t *to, const char *key, int kind)
{
    switch (kind) {
    case 0:
        BSON_APPEND_NULL(to, key);
        break;
    case 1:
        BSON_APPEND_UTF8(to, key, "");
        break;
    case 2:
        BSON_APPEND_UTF8(to, key, "x");
        break;
    case 3:
        BSON_APPEND_BOOL(to, key, true);
        break;
    case 4:
        append_nested(to, key, 0);
        break;
    case 5:
        append_array(to, key, 0, 0);
        break;
    case 6:
        append_array(to, key, 5, 1);
        break;
    case 7:
        append_array(to, key, 3, INT64_MAX / 4);
        break;
    case 8:
        append_array(to, key, 5000, 2);
        break;
    case 9:
        append_decimal(to, key, "NaN");
        break;
    case 10:
        append_decimal(to, key, "3");
        break;
    case 11:
        BSON_APPEND_DATE_TIME(to, key, INT64_MAX);
        break;
    case 12:
        BSON_APPEND_DATE_TIME(to, key, 0);
        break;
    case 13:
        BSON_APPEND_MAXKEY(to, key);
        break;
    case 14:
        BSON_APPEND_BINARY(to, key, BSON_SUBTYPE_BINARY, (const uint8_t *)"op3", 3);
        break;
    case 15:
        append_long(to, key);
        break;
    case 16:
        append_nested(to, key, 90);
        break;
    case 17:
        append_page_id(to, key);
        break;
    default:
        BSON_APPEND_REGEX(to, key, "a", "");
        break;
    }
}

static void append_value(bson_t *to, const char *key, int kind)
{
    static const int64_t integers[] = {-1,
                                       0,
                                       1,
                                       2,
                                       3,
                                       4,
                                       5,
                                       9,
                                       100,
                                       INT32_MAX,
                                       INT32_MIN,
                                       INT64_MAX,
                                       INT64_MIN,
                                       INT64_MAX / 4,
                                       INT64_C(1) << 53,
                                       INT64_C(1) << 40};
    static const double doubles[] = {
        -1, 0.5, 2, 1e30, -1e30, 9.3e18, 2.3e18, (double)NAN, (double)INFINITY};
    enum {
        INTEGERS = sizeof integers / sizeof *integers,
        DOUBLES = sizeof doubles / sizeof *doubles
    };
    if (kind < INTEGERS)
        BSON_APPEND_INT64(to, key, integers[kind]);
    else if (kind < INTEGERS + DOUBLES)
        BSON_APPEND_DOUBLE(to, key, doubles[kind - INTEGERS]);
    else
        append_other(to, key, kind - INTEGERS - DOUBLES);
}

typedef enum change { REMOVE, REPLACE, SHIFT, ADD, CHANGES } change_t;

/* A change of one field: the `at`th of the document, in the order of a walk. */
typedef struct damage {
    change_t change;
    int at;
    int value;
    int64_t shift;
    const bson_t *document; /* the innermost one around the field */
} damage_t;

static int count_fields(const bson_iter_t *from)
{
    bson_iter_t iter = *from, child;
    int count = 0;
    while (bson_iter_next(&iter)) {
        count++;
        if ((BSON_ITER_HOLDS_DOCUMENT(&iter) || BSON_ITER_HOLDS_ARRAY(&iter)) &&
            bson_iter_recurse(&iter, &child))
            count += count_fields(&child);
    }
    return count;
}

static void change_field(const bson_iter_t *field, const damage_t *damage, bson_t *to)
{
    static const char *const names[] = {"intent", "gone",   "ops",    "low",  "removed", "pages",
                                        "total",  "sealed", "closed", "src",  "lease",   "n",
                                        "sum",    "open",   "page",   "first"};
    const char *key = bson_iter_key(field);
    switch (damage->change) {
    case REMOVE:
        break;
    case SHIFT:
        if (BSON_ITER_HOLDS_INT(field))
            BSON_APPEND_INT64(
                to, key, (int64_t)((uint64_t)bson_iter_as_int64(field) + (uint64_t)damage->shift));
        else
            append_value(to, key, damage->value);
        break;
    case ADD:
        bson_append_iter(to, NULL, 0, field);
        if (!bson_has_field(damage->document, names[damage->value % 16]))
            append_value(to, names[damage->value % 16], damage->value * 7 % VALUES);
        break;
    default:
        append_value(to, key, damage->value);
        break;
    }
}

static void copy_damaged(const bson_iter_t *from, damage_t *damage, bson_t *to)
{
    bson_iter_t iter = *from, child;
    while (bson_iter_next(&iter)) {
        bson_t inner;
        const char *key = bson_iter_key(&iter);
        bool document = BSON_ITER_HOLDS_DOCUMENT(&iter);
        if (damage->at-- == 0) {
            change_field(&iter, damage, to);
        } else if (damage->at >= 0 && (document || BSON_ITER_HOLDS_ARRAY(&iter)) &&
                   bson_iter_recurse(&iter, &child)) {
            if (document)
                BSON_APPEND_DOCUMENT_BEGIN(to, key, &inner);
            else
                BSON_APPEND_ARRAY_BEGIN(to, key, &inner);
            const bson_t *outer = damage->document;
            bson_t within;
            const uint8_t *data;
            uint32_t size;
            if (document)
                bson_iter_document(&iter, &size, &data);
            else
                bson_iter_array(&iter, &size, &data);
            assert_true(bson_init_static(&within, data, size));
            damage->document = &within;
            copy_damaged(&child, damage, &inner);
            damage->document = outer;
            if (document)
                bson_append_document_end(to, &inner);
            else
                bson_append_array_end(to, &inner);
        } else {
            bson_append_iter(to, NULL, 0, &iter);
        }
    }
}

/* Most changes are made in bookkeeping, which is `spill` or comes after it. */
static int draw_field(const bson_t *content)
{
    bson_iter_t iter, child;
    int start = 0, count;
    assert_true(bson_iter_init(&iter, content));
    count = count_fields(&iter);
    while (malformed_below(4) > 0 && bson_iter_next(&iter)) {
        int inner = 0;
        if ((BSON_ITER_HOLDS_DOCUMENT(&iter) || BSON_ITER_HOLDS_ARRAY(&iter)) &&
            bson_iter_recurse(&iter, &child))
            inner = count_fields(&child);
        if (strcmp(bson_iter_key(&iter), "spill") == 0 && inner > 0)
            return start + malformed_below(1 + inner);
        start += 1 + inner;
    }
    return malformed_below(count);
}

bson_t *malformed_document(const bson_t *content)
{
    static const int64_t shifts[] = {1, -1, 2, -2, 3, 10, 1000, -1000, INT64_C(1) << 41};
    bson_t *changed = bson_new();
    bson_iter_t iter;
    damage_t damage = {.change = (change_t)malformed_below(CHANGES),
                       .at = draw_field(content),
                       .value = malformed_below(VALUES),
                       .shift = shifts[malformed_below(9)],
                       .document = content};
    assert_true(bson_iter_init(&iter, content));
    copy_damaged(&iter, &damage, changed);
    return changed;
}

bson_t *malformed_copy(const bson_t *content)
{
    bson_t *copy = bson_new(), id;
    static const int64_t pages[] = {9, 5, 1, INT64_C(1) << 40, -1, INT64_MAX, INT64_MIN, 1000000};
    int kind = malformed_below(5);
    if (kind < 4) {
        BSON_APPEND_DOCUMENT_BEGIN(copy, "_id", &id);
        BSON_APPEND_UTF8(&id, "owner", kind == 0 ? "eve" : "ada");
        if (kind == 3)
            BSON_APPEND_DOUBLE(&id, "page", 1.5);
        else
            BSON_APPEND_INT64(&id, "page", pages[malformed_below(8)]);
        bson_append_document_end(copy, &id);
    } else {
        append_value(copy, "_id", malformed_below(VALUES));
    }
    bson_copy_to_excluding_noinit(content, copy, "_id", NULL);
    return copy;
}
