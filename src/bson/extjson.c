/* Values to and from Extended JSON. */
#include "bson/json.h"
#include "bson/value.h"
#include "util/buffer.h"
#include "util/error.h"

#include <string.h>

/* libbson writes only documents, so another value is written as the one field of a document. */
static char *document_to_json(const bson_t *document, bool canonical)
{
    return canonical ? bson_as_canonical_extended_json(document, NULL)
                     : bson_as_relaxed_extended_json(document, NULL);
}

static char *field_to_json(const spill_value_t *value, bool canonical)
{
    static const char before[] = "{ \"\" : ";
    static const char after[] = " }";
    bson_t field = BSON_INITIALIZER;
    char *text = spill_value_append(value, &field, "") ? document_to_json(&field, canonical) : NULL;
    bson_destroy(&field);
    if (text != NULL) {
        size_t length = strlen(text) - strlen(before) - strlen(after);
        memmove(text, text + strlen(before), length);
        text[length] = '\0';
    }
    return text;
}

char *spill_value_to_json(const spill_value_t *value, bool canonical)
{
    if (value == NULL || !spill_value_valid(value))
        return NULL;
    bson_t document;
    if (value->type == BSON_TYPE_DOCUMENT &&
        bson_init_static(&document, value->data, value->size_bytes))
        return document_to_json(&document, canonical);
    return field_to_json(value, canonical);
}

/* In well-formed JSON, libbson still refuses wrong contents or ranges of a $-notation. */
static spill_code_t fail_to_read(const bson_error_t *reason, spill_error_t *error)
{
    return spill_fail(error, SPILL_PARSE, "malformed Extended JSON in the value at offset 0: %s",
                      reason->message);
}

static spill_code_t read_document(const char *text, size_t size_bytes, bson_t *document,
                                  spill_error_t *error)
{
    bson_error_t reason;
    if (!bson_init_from_json(document, text, (ssize_t)size_bytes, &reason))
        return fail_to_read(&reason, error);
    return SPILL_OK;
}

/* Read any checked text, as {"": text}. */
static spill_code_t read_field(const char *text, size_t size_bytes, bson_t *document,
                               spill_error_t *error)
{
    spill_buffer_t wrapped = SPILL_BUFFER_INIT;
    spill_buffer_append(&wrapped, "{\"\":", 4);
    spill_buffer_append(&wrapped, text, size_bytes);
    spill_buffer_append(&wrapped, "}", 1);
    spill_code_t code = read_document((const char *)wrapped.data, wrapped.size, document, error);
    spill_buffer_release(&wrapped);
    return code;
}

spill_code_t spill_value_from_json(const char *text, size_t size_bytes, bson_t *storage,
                                   spill_value_t *value, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, value);
    *value = (spill_value_t){0};
    SPILL_CHECK_POINTERS(error, storage);
    SPILL_CHECK_ARGUMENT(error, text != NULL || size_bytes == 0, "the argument 'text' is NULL");
    text = text != NULL ? text : "";
    spill_json_kind_t kind;
    spill_code_t code = spill_json_check(text, size_bytes, &kind, error);
    if (code != SPILL_OK)
        return code;
    bson_t parsed;
    bool is_document = kind == SPILL_JSON_DOCUMENT;
    code = is_document ? read_document(text, size_bytes, &parsed, error)
                       : read_field(text, size_bytes, &parsed, error);
    if (code != SPILL_OK)
        return code;
    bson_iter_t iter;
    spill_value_t read = spill_value_from_document(&parsed);
    if (!is_document && bson_iter_init(&iter, &parsed) && bson_iter_next(&iter))
        read = spill_value_from_iter(&iter);
    uint32_t before = storage->len;
    if (spill_value_append(&read, storage, ""))
        *value = spill_value_appended(storage, before);
    else
        code = spill_fail(error, SPILL_TOO_BIG, "the value does not fit its storage of 2 GiB");
    bson_destroy(&parsed);
    return code;
}
