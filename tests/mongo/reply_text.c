#include "mongo/reply_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- documents ------------------------------------------------------------------------------- */

static void sort_fields(const bson_t *document, bson_t *sorted);

static void append_sorted(const bson_iter_t *field, bson_t *sorted)
{
    const char *key = bson_iter_key(field);
    const uint8_t *data;
    uint32_t size;
    bson_t document, inner, array;
    bson_iter_t each;
    if (BSON_ITER_HOLDS_DOCUMENT(field)) {
        bson_iter_document(field, &size, &data);
        bson_init_static(&document, data, size);
        bson_init(&inner);
        sort_fields(&document, &inner);
        BSON_APPEND_DOCUMENT(sorted, key, &inner);
        bson_destroy(&inner);
    } else if (BSON_ITER_HOLDS_ARRAY(field) && bson_iter_recurse(field, &each)) {
        BSON_APPEND_ARRAY_BEGIN(sorted, key, &array);
        while (bson_iter_next(&each))
            append_sorted(&each, &array);
        bson_append_array_end(sorted, &array);
    } else {
        bson_append_iter(sorted, NULL, -1, field);
    }
}

/* Copy the fields, sorted by name: updates may add them in another order. */
static void sort_fields(const bson_t *document, bson_t *sorted)
{
    bson_iter_t field;
    uint32_t sorted_count = 0;
    for (const char *last = "";;) {
        const char *next = NULL;
        bson_iter_t at = {0};
        bson_iter_init(&field, document);
        while (bson_iter_next(&field))
            if (strcmp(bson_iter_key(&field), last) > 0 &&
                (next == NULL || strcmp(bson_iter_key(&field), next) < 0)) {
                next = bson_iter_key(&field);
                at = field;
            }
        if (next == NULL) {
            assert_int_equal(sorted_count, bson_count_keys(document)); /* none twice */
            return;
        }
        sorted_count++;
        if (strcmp(next, REPLY_COUNT_FIELD) != 0)
            append_sorted(&at, sorted);
        last = next;
    }
}

char *reply_document_text(const bson_iter_t *iter)
{
    const uint8_t *data;
    uint32_t size;
    bson_t document, sorted;
    bson_iter_document(iter, &size, &data);
    bson_init_static(&document, data, size);
    bson_init(&sorted);
    sort_fields(&document, &sorted);
    char *text = bson_as_canonical_extended_json(&sorted, NULL);
    bson_destroy(&sorted);
    return text;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void append_number(const bson_t *document, const char *name, bson_string_t *text)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, document, name))
        bson_string_append_printf(text, "%s %d\n", name, (int)bson_iter_as_int64(&iter));
}

static void append_document(const char *name, const bson_iter_t *iter, bson_string_t *text)
{
    char *value = reply_document_text(iter);
    bson_string_append_printf(text, "%s%s\n", name, value);
    bson_free(value);
}

bool reply_is_of_many(const bson_t *command, int index)
{
    char path[64];
    bson_iter_t iter, many;
    snprintf(path, sizeof path, "updates.%d.multi", index);
    return command != NULL && bson_iter_init(&iter, command) &&
           bson_iter_find_descendant(&iter, path, &many) && bson_iter_as_bool(&many);
}

/* The index and the code of each write error. `places`: see reply_text. */
static void append_errors(const bson_t *reply, const bson_t *command, const int *places,
                          bson_string_t *text)
{
    bson_iter_t iter, each, field;
    if (!bson_iter_init_find(&iter, reply, "writeErrors") || !bson_iter_recurse(&iter, &each))
        return;
    while (bson_iter_next(&each)) {
        int index = -1, code = -1;
        assert_true(bson_iter_recurse(&each, &field));
        while (bson_iter_next(&field))
            if (strcmp(bson_iter_key(&field), "index") == 0)
                index = (int)bson_iter_as_int64(&field);
            else if (strcmp(bson_iter_key(&field), "code") == 0)
                code = (int)bson_iter_as_int64(&field);
        assert_true(index >= 0 && code >= 0);
        if (reply_is_of_many(command,
                             index)) /* which document fails first is the engine's choice */
            code = 0;
        if (places == NULL || places[index] >= 0)
            bson_string_append_printf(text, "error %d %d\n", places != NULL ? places[index] : index,
                                      code);
    }
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The values of distinct, sorted: their order is the engine's. */
static void append_values(bson_iter_t *list, bson_string_t *text)
{
    enum { VALUES_MAX = 4096 };
    char *values[VALUES_MAX];
    size_t count = 0;
    while (bson_iter_next(list)) {
        bson_t one = BSON_INITIALIZER, sorted = BSON_INITIALIZER;
        bson_append_iter(&one, "v", -1, list);
        sort_fields(&one, &sorted);
        assert_true(count < VALUES_MAX);
        values[count++] = bson_as_canonical_extended_json(&sorted, NULL);
        bson_destroy(&one);
        bson_destroy(&sorted);
    }
    qsort(values, count, sizeof *values, compare_texts);
    for (size_t i = 0; i < count; i++) {
        bson_string_append_printf(text, "value %s\n", values[i]);
        bson_free(values[i]);
    }
}

/* An engine says n: 0 of a document that the update found and left as it was. */
static void append_last_error(const bson_iter_t *iter, bool found, bson_string_t *text)
{
    bson_iter_t field;
    if (!found) {
        append_document("lastErrorObject ", iter, text);
        return;
    }
    assert_true(bson_iter_recurse(iter, &field));
    while (bson_iter_next(&field))
        if (strcmp(bson_iter_key(&field), "upserted") == 0)
            bson_string_append_printf(text, "upserted %d\n", (int)bson_iter_as_int64(&field));
        else
            bson_string_append_printf(text, "has %s\n", bson_iter_key(&field));
}

char *reply_text(const bson_t *reply, const bson_t *command, const int *places)
{
    static const char *const numbers[] = {"n", "ok", "code", NULL};
    bson_string_t *text = bson_string_new("");
    bson_iter_t iter, found, each;
    for (size_t i = 0; numbers[i] != NULL; i++)
        append_number(reply, numbers[i], text);
    bool has_value = bson_iter_init_find(&iter, reply, "value") && BSON_ITER_HOLDS_DOCUMENT(&iter);
    if (has_value)
        append_document("value ", &iter, text);
    if (bson_iter_init_find(&iter, reply, "lastErrorObject") && BSON_ITER_HOLDS_DOCUMENT(&iter))
        append_last_error(&iter, has_value, text);
    if (bson_iter_init_find(&iter, reply, "upserted") && bson_iter_recurse(&iter, &each))
        while (bson_iter_next(&each))
            append_document("upserted ", &each, text);
    if (bson_iter_init_find(&iter, reply, "values") && bson_iter_recurse(&iter, &each))
        append_values(&each, text);
    append_errors(reply, command, places, text);
    if (bson_iter_init(&iter, reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &found) &&
        bson_iter_recurse(&found, &each))
        while (bson_iter_next(&each))
            append_document("", &each, text);
    return bson_string_free(text, false);
}
