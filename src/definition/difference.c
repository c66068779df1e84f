/* What a program changes that saves a definition in place of another one, as a text. */
#include "definition/difference.h"

#include "definition/schema.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Not chosen by a person: it follows from the bounds that were saved before. */
#define DERIVED "largest"

/* A name in quotes, or a number. */
typedef struct value_text {
    char text[SPILL_NAME_SIZE + 4];
} value_text_t;

/* `value` NULL: the field is missing. */
static value_text_t value_text(const bson_iter_t *value)
{
    value_text_t shown;
    if (!value)
        snprintf(shown.text, sizeof shown.text, "(none)");
    else if (BSON_ITER_HOLDS_UTF8(value))
        snprintf(shown.text, sizeof shown.text, "'%s'", bson_iter_utf8(value, NULL));
    else if (BSON_ITER_HOLDS_BOOL(value))
        snprintf(shown.text, sizeof shown.text, "%s", bson_iter_bool(value) ? "true" : "false");
    else
        snprintf(shown.text, sizeof shown.text, "%" PRId64, bson_iter_as_int64(value));
    return shown;
}

static void append_change(const char *label, const bson_iter_t *now, const bson_iter_t *next,
                          bson_string_t *text)
{
    const value_text_t before = value_text(now), after = value_text(next);
    if (strcmp(before.text, after.text) != 0)
        bson_string_append_printf(text, "%s%s %s -> %s", text->len > 0 ? ", " : "", label,
                                  before.text, after.text);
}

static void read_part(const bson_iter_t *value, bson_t *part)
{
    const uint8_t *data;
    uint32_t size;
    bson_iter_document(value, &size, &data);
    bson_init_static(part, data, size);
}

/* Append the fields that differ. The bounds are a document in the definition's. */
static void append_changes(const bson_t *now, const bson_t *next, bson_string_t *text)
{
    bson_iter_t left, right;
    bson_t left_part, right_part;
    for (bson_iter_init(&left, now); bson_iter_next(&left);) {
        bool both = bson_iter_init_find(&right, next, bson_iter_key(&left));
        if (!BSON_ITER_HOLDS_DOCUMENT(&left)) {
            append_change(bson_iter_key(&left), &left, both ? &right : NULL, text);
        } else if (both && strcmp(bson_iter_key(&left), DERIVED) != 0) {
            read_part(&left, &left_part);
            read_part(&right, &right_part);
            append_changes(&left_part, &right_part, text);
        }
    }
    for (bson_iter_init(&right, next); bson_iter_next(&right);)
        if (!bson_has_field(now, bson_iter_key(&right)))
            append_change(bson_iter_key(&right), NULL, &right, text);
}

char *spill_definition_difference(const spill_definition_t *now, const spill_definition_t *next)
{
    bson_t before, after;
    spill_definition_t saved = *next;
    bson_string_t *text = bson_string_new(NULL);
    spill_definition_keep_without_id(now, &saved);
    spill_definition_to_bson(now, &before);
    spill_definition_to_bson(&saved, &after);
    append_changes(&before, &after, text);
    bson_destroy(&before);
    bson_destroy(&after);
    return bson_string_free(text, text->len == 0);
}
