/*
 * Values as bytes. Only spill_value_measure knows the sizes of BSON types.
 */
#include "bson/value.h"

#include <string.h>

enum { DOCUMENT_BYTES_MIN = 5, STRING_BYTES_MIN = 5 };

static uint32_t read_u32(const uint8_t *data)
{
    uint32_t value;
    memcpy(&value, data, sizeof value);
    return BSON_UINT32_FROM_LE(value);
}

/* int32 length of the characters and their NUL, characters, NUL */
static bool measure_string(const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    if (available < STRING_BYTES_MIN)
        return false;
    uint32_t length = read_u32(data);
    *size_bytes = length + 4;
    return length > 0 && length <= INT32_MAX && length <= available - 4 && data[length + 3] == 0;
}

/* int32 length of all, content, NUL */
static bool measure_document(const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    if (available < DOCUMENT_BYTES_MIN)
        return false;
    *size_bytes = read_u32(data);
    return *size_bytes >= DOCUMENT_BYTES_MIN && *size_bytes <= INT32_MAX &&
           *size_bytes <= available && data[*size_bytes - 1] == 0;
}

/* int32 length of the bytes, subtype, bytes */
static bool measure_binary(const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    if (available < 5)
        return false;
    uint32_t length = read_u32(data);
    if (length > INT32_MAX - 5 || length > available - 5)
        return false;
    *size_bytes = length + 5;
    /* The old generic subtype repeats the length inside. */
    return data[4] != BSON_SUBTYPE_BINARY_DEPRECATED ||
           (length >= 4 && read_u32(data + 5) == length - 4);
}

/* pattern, NUL, options, NUL */
static bool measure_regex(const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    const uint8_t *pattern_end = available > 0 ? memchr(data, 0, available) : NULL;
    if (pattern_end == NULL)
        return false;
    const uint8_t *options = pattern_end + 1;
    size_t left = available - (size_t)(options - data);
    const uint8_t *options_end = left > 0 ? memchr(options, 0, left) : NULL;
    if (options_end == NULL || (size_t)(options_end - data) >= INT32_MAX)
        return false;
    *size_bytes = (uint32_t)(options_end + 1 - data);
    return true;
}

/* int32 length of all, string, document */
static bool measure_code_with_scope(const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    if (available < 4 + STRING_BYTES_MIN + DOCUMENT_BYTES_MIN)
        return false;
    uint32_t code, scope;
    *size_bytes = read_u32(data);
    return *size_bytes <= available && *size_bytes >= 4 + STRING_BYTES_MIN + DOCUMENT_BYTES_MIN &&
           *size_bytes <= INT32_MAX && measure_string(data + 4, *size_bytes - 4, &code) &&
           measure_document(data + 4 + code, *size_bytes - 4 - code, &scope) &&
           *size_bytes == 4 + code + scope;
}

static bool measure_fixed(uint32_t size, size_t available, uint32_t *size_bytes)
{
    *size_bytes = size;
    return size <= available;
}

bool spill_value_measure(uint8_t type, const uint8_t *data, size_t available, uint32_t *size_bytes)
{
    switch (type) {
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_NULL:
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
        return measure_fixed(0, available, size_bytes);
    case BSON_TYPE_BOOL:
        return measure_fixed(1, available, size_bytes) && data[0] <= 1;
    case BSON_TYPE_INT32:
        return measure_fixed(4, available, size_bytes);
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DATE_TIME:
    case BSON_TYPE_TIMESTAMP:
        return measure_fixed(8, available, size_bytes);
    case BSON_TYPE_OID:
        return measure_fixed(SPILL_OID_BYTES, available, size_bytes);
    case BSON_TYPE_DECIMAL128:
        return measure_fixed(16, available, size_bytes);
    case BSON_TYPE_UTF8:
    case BSON_TYPE_CODE:
    case BSON_TYPE_SYMBOL:
        return measure_string(data, available, size_bytes);
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return measure_document(data, available, size_bytes);
    case BSON_TYPE_BINARY:
        return measure_binary(data, available, size_bytes);
    case BSON_TYPE_REGEX:
        return measure_regex(data, available, size_bytes);
    case BSON_TYPE_DBPOINTER:
        if (!measure_string(data, available, size_bytes))
            return false;
        *size_bytes += SPILL_OID_BYTES;
        return *size_bytes <= available;
    case BSON_TYPE_CODEWSCOPE:
        return measure_code_with_scope(data, available, size_bytes);
    default:
        return false;
    }
}

/* ---- well-formedness ------------------------------------------------------------------------- */

static bool document_valid(const uint8_t *data, size_t size, int depth);

/* Are the documents inside a value valid? The value's own size is right. */
static bool content_valid(uint8_t type, const uint8_t *data, uint32_t size, int depth)
{
    switch (type) {
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return document_valid(data, size, depth + 1);
    case BSON_TYPE_CODEWSCOPE: {
        uint32_t before_scope = 4 + 4 + read_u32(data + 4);
        return document_valid(data + before_scope, size - before_scope, depth + 1);
    }
    default:
        return true;
    }
}

static bool document_valid(const uint8_t *data, size_t size, int depth)
{
    uint32_t measured;
    if (depth > SPILL_NESTING_MAX || !measure_document(data, size, &measured) || measured != size)
        return false;
    const uint8_t *end = data + size - 1;
    const uint8_t *at = data + 4;
    while (at < end) {
        uint8_t type = *at++;
        const uint8_t *name_end = memchr(at, 0, (size_t)(end - at));
        if (name_end == NULL)
            return false;
        at = name_end + 1;
        if (!spill_value_measure(type, at, (size_t)(end - at), &measured) ||
            !content_valid(type, at, measured, depth))
            return false;
        at += measured;
    }
    return true;
}

bool spill_value_valid(const spill_value_t *value)
{
    static const uint8_t nothing[1];
    if (value->data == NULL && value->size_bytes > 0)
        return false;
    const uint8_t *data = value->data ? value->data : nothing;
    uint32_t measured;
    return spill_value_measure(value->type, data, value->size_bytes, &measured) &&
           measured == value->size_bytes && content_valid(value->type, data, measured, 0);
}

bool spill_document_valid(const bson_t *document)
{
    return document_valid(bson_get_data(document), document->len, 1);
}

bool spill_answer_valid(const bson_t *document)
{
    int outermost = 1 - (SPILL_ANSWER_NESTING_MAX - SPILL_NESTING_MAX);
    return document_valid(bson_get_data(document), document->len, outermost);
}

/* ---- contents -------------------------------------------------------------------------------- */

spill_fields_t spill_fields_of(const uint8_t *data)
{
    return (spill_fields_t){.at = data + 4, .end = data + read_u32(data) - 1};
}

bool spill_fields_next(spill_fields_t *fields, const char **name, spill_value_t *value)
{
    if (fields->at >= fields->end)
        return false;
    const uint8_t *text = fields->at + 1;
    const uint8_t *nul = memchr(text, 0, (size_t)(fields->end - text));
    if (nul == NULL)
        return false;
    *name = (const char *)text;
    value->type = *fields->at;
    value->data = nul + 1;
    if (!spill_value_measure(value->type, value->data, (size_t)(fields->end - value->data),
                             &value->size_bytes))
        return false;
    fields->at = value->data + value->size_bytes;
    return true;
}

int32_t spill_value_int32(const spill_value_t *value)
{
    return (int32_t)read_u32(value->data);
}

int64_t spill_value_int64(const spill_value_t *value)
{
    uint64_t number;
    memcpy(&number, value->data, sizeof number);
    return (int64_t)BSON_UINT64_FROM_LE(number);
}

double spill_value_double(const spill_value_t *value)
{
    int64_t bits = spill_value_int64(value);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

const char *spill_value_text(const spill_value_t *value, uint32_t *length_bytes)
{
    *length_bytes = read_u32(value->data) - 1;
    return (const char *)value->data + 4;
}

/* ---- making and appending -------------------------------------------------------------------- */

spill_value_t spill_value_from_iter(const bson_iter_t *iter)
{
    if (iter == NULL)
        return (spill_value_t){0};
    const uint8_t *data = (const uint8_t *)bson_iter_key(iter) + bson_iter_key_len(iter) + 1;
    return (spill_value_t){
        .data = data,
        .size_bytes = (uint32_t)(iter->raw + iter->next_off - data),
        .type = (uint8_t)bson_iter_type(iter),
    };
}

spill_value_t spill_value_from_document(const bson_t *document)
{
    if (document == NULL)
        return (spill_value_t){0};
    return (spill_value_t){
        .data = bson_get_data(document),
        .size_bytes = document->len,
        .type = BSON_TYPE_DOCUMENT,
    };
}

bool spill_inner_document(const bson_iter_t *iter, bson_t *inner)
{
    const uint8_t *data = NULL;
    uint32_t size = 0;
    if (BSON_ITER_HOLDS_DOCUMENT(iter))
        bson_iter_document(iter, &size, &data);
    else if (BSON_ITER_HOLDS_ARRAY(iter))
        bson_iter_array(iter, &size, &data);
    if (data && bson_init_static(inner, data, size))
        return true;
    bson_init(inner);
    return false;
}

bool spill_document_is_true(const bson_t *document, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && bson_iter_as_bool(&iter);
}

const char *spill_document_text(const bson_t *document, const char *name, const char *otherwise)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, name) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_iter_utf8(&iter, NULL)
               : otherwise;
}

spill_value_t spill_value_appended(const bson_t *storage, uint32_t before)
{
    const uint8_t *type = bson_get_data(storage) + before - 1;
    return (spill_value_t){
        .data = type + 2,
        .size_bytes = storage->len - before - 2,
        .type = *type,
    };
}

spill_value_t spill_value_from_utf8(bson_t *storage, const char *text)
{
    if (storage == NULL || text == NULL)
        return (spill_value_t){0};
    uint32_t before = storage->len;
    return bson_append_utf8(storage, "", 0, text, -1) ? spill_value_appended(storage, before)
                                                      : (spill_value_t){0};
}

spill_value_t spill_value_from_int64(bson_t *storage, int64_t number)
{
    if (storage == NULL)
        return (spill_value_t){0};
    uint32_t before = storage->len;
    return bson_append_int64(storage, "", 0, number) ? spill_value_appended(storage, before)
                                                     : (spill_value_t){0};
}

/*
 * Append a value that is not a document: make a document of this one field, which libbson
 * concatenates byte by byte. libbson's functions for single types change some values: they sort the
 * options of regular expressions, and drop empty scopes.
 */
static bool append_bytes(const spill_value_t *value, bson_t *document, const char *key)
{
    uint8_t small[1024];
    size_t key_size = strlen(key) + 1;
    size_t size = 4 + 1 + key_size + (size_t)value->size_bytes + 1;
    if (size > INT32_MAX)
        return false;
    uint8_t *bytes = size <= sizeof small ? small : bson_malloc(size);
    uint32_t length = BSON_UINT32_TO_LE((uint32_t)size);
    memcpy(bytes, &length, sizeof length);
    bytes[4] = value->type;
    memcpy(bytes + 5, key, key_size);
    if (value->size_bytes > 0)
        memcpy(bytes + 5 + key_size, value->data, value->size_bytes);
    bytes[size - 1] = 0;

    bson_t field;
    bool done = bson_init_static(&field, bytes, size) && bson_concat(document, &field);
    if (bytes != small)
        bson_free(bytes);
    return done;
}

bool spill_value_append(const spill_value_t *value, bson_t *document, const char *key)
{
    bson_t content;
    uint32_t measured;
    if (value == NULL || document == NULL || key == NULL ||
        (value->data == NULL && value->size_bytes > 0) ||
        value->size_bytes >= INT32_MAX || /* no document holds it; do not read its bytes */
        !spill_value_measure(value->type, value->data, value->size_bytes, &measured) ||
        measured != value->size_bytes)
        return false;
    if (value->type == BSON_TYPE_DOCUMENT &&
        bson_init_static(&content, value->data, value->size_bytes))
        return bson_append_document(document, key, -1, &content);
    return append_bytes(value, document, key);
}

bool spill_value_equal(const spill_value_t *left, const spill_value_t *right)
{
    return left != NULL && right != NULL && left->type == right->type &&
           left->size_bytes == right->size_bytes &&
           (left->size_bytes == 0 || memcmp(left->data, right->data, left->size_bytes) == 0);
}

bool spill_value_field(const spill_value_t *value, const char *path, const char **rest,
                       spill_value_t *found)
{
    size_t length = strcspn(path, ".");
    if (value->type != BSON_TYPE_DOCUMENT && value->type != BSON_TYPE_ARRAY)
        return false;
    *rest = path + length + (path[length] == '.');
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    while (spill_fields_next(&fields, &name, found))
        if (strncmp(name, path, length) == 0 && name[length] == '\0')
            return true;
    return false;
}

bool spill_value_at(const spill_value_t *value, const char *path, spill_value_t *found)
{
    *found = *value;
    while (*path != '\0')
        if (!spill_value_field(found, path, &path, found))
            return false;
    return true;
}
