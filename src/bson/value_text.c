#include "bson/value_text.h"

#include "bson/value.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

#include <string.h>

/* A name on the way to a value. */
typedef struct step {
    const struct step *outer; /* NULL: a field of the whole value */
    const char *name;
} step_t;

static void put_path(const step_t *step, spill_buffer_t *path)
{
    if (step->outer) {
        put_path(step->outer, path);
        spill_buffer_append(path, ".", 1);
    }
    spill_buffer_append(path, step->name, strlen(step->name));
}

/* `step` leads to the string, or to the document in which a name is wrong; NULL: the whole value.
 */
static spill_code_t refuse(const step_t *step, const char *what, size_t at, spill_error_t *error)
{
    enum { PATH_SHOWN = 200 };
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t path = SPILL_BUFFER_INIT;
    if (!step)
        return spill_fail(error, SPILL_INVALID, "%s is not UTF-8, at byte %zu", what, at);
    put_path(step, &path);
    size_t shown = path.size < PATH_SHOWN ? path.size : PATH_SHOWN;
    return spill_fail(error, SPILL_INVALID, "%s at '%.*s' is not UTF-8, at byte %zu", what,
                      (int)shown, (const char *)path.data, at);
}

/* Most names and texts are short, and ASCII. */
static inline bool is_ascii(const uint8_t *text, size_t size)
{
    uint64_t word, bits = 0;
    for (; size >= sizeof word; text += sizeof word, size -= sizeof word) {
        memcpy(&word, text, sizeof word);
        bits |= word;
    }
    for (; size > 0; size--)
        bits |= *text++;
    return (bits & UINT64_C(0x8080808080808080)) == 0;
}

static inline spill_code_t check_bytes(const step_t *step, const char *what, const uint8_t *text,
                                       size_t size, spill_error_t *error)
{
    if (is_ascii(text, size))
        return SPILL_OK;
    size_t right = spill_utf8_prefix(text, size);
    return right == size ? SPILL_OK : refuse(step, what, right, error);
}

static spill_code_t check_value(const step_t *step, const spill_value_t *value,
                                spill_error_t *error);

/* The fields of a document, an array, or a scope. */
static spill_code_t check_fields(const step_t *step, const uint8_t *document, spill_error_t *error)
{
    spill_fields_t fields = spill_fields_of(document);
    step_t inner = {.outer = step};
    spill_value_t value;
    while (spill_fields_next(&fields, &inner.name, &value)) {
        size_t size = (size_t)(value.data - (const uint8_t *)inner.name) - 1;
        SPILL_TRY(
            check_bytes(step, "the name of a field", (const uint8_t *)inner.name, size, error));
        SPILL_TRY(check_value(&inner, &value, error));
    }
    return SPILL_OK;
}

static spill_code_t check_value(const step_t *step, const spill_value_t *value,
                                spill_error_t *error)
{
    uint32_t length;
    switch (value->type) {
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
    case BSON_TYPE_CODE:
    case BSON_TYPE_DBPOINTER: {
        const char *text = spill_value_text(value, &length);
        return check_bytes(step, "the string", (const uint8_t *)text, length, error);
    }
    case BSON_TYPE_REGEX: /* two texts, each with a NUL */
        return check_bytes(step, "the regular expression", value->data, value->size_bytes, error);
    case BSON_TYPE_CODEWSCOPE: { /* int32, string, document */
        spill_value_t code = {.type = BSON_TYPE_CODE, .data = value->data + 4};
        const char *text = spill_value_text(&code, &length);
        SPILL_TRY(check_bytes(step, "the string", (const uint8_t *)text, length, error));
        return check_fields(step, (const uint8_t *)text + length + 1, error);
    }
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return check_fields(step, value->data, error);
    default:
        return SPILL_OK;
    }
}

spill_code_t spill_value_check_text(const spill_value_t *value, spill_error_t *error)
{
    return check_value(NULL, value, error);
}
