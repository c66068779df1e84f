/* An element's id and time, and whether it matches a filter. */
#include "bson/element_fields.h"

#include "bson/key.h"
#include "bson/value.h"
#include "util/error.h"
#include "util/sha256.h"

#include <stdlib.h>
#include <string.h>

/* ---- its id and time ------------------------------------------------------------------------- */

bool spill_is_whole_element(const char *id_path)
{
    return id_path[0] == '.' && id_path[1] == '\0';
}

/* Find the value at a path through documents, not through arrays; "." is the element itself. */
static bool find_in_documents(const spill_value_t *element, const char *path, spill_value_t *found)
{
    *found = *element;
    if (spill_is_whole_element(path))
        return true;
    while (*path != '\0')
        if (found->type != BSON_TYPE_DOCUMENT || !spill_value_field(found, path, &path, found))
            return false;
    return true;
}

/* The type of a value that is not an id, in words; NULL: a value of this type can be one. */
static const char *refused_type(const spill_value_t *id, bool any)
{
    switch (id->type) {
    case BSON_TYPE_UNDEFINED: /* servers refuse to compare with it */
        return "undefined";
    case BSON_TYPE_NULL:
        return any ? NULL : "null";
    case BSON_TYPE_ARRAY:
        return any ? NULL : "an array";
    case BSON_TYPE_REGEX:
        return any ? NULL : "a regular expression";
    default:
        return NULL;
    }
}

/* Put the digest in the place of a key that begins at `start`. */
static void put_digest(spill_buffer_t *key, size_t start)
{
    uint8_t digest[SPILL_SHA256_BYTES];
    spill_sha256(key->data + start, key->size - start, digest);
    key->size = start;
    spill_buffer_append_byte(key, SPILL_KEY_DIGEST);
    spill_buffer_append(key, digest, sizeof digest);
}

spill_code_t spill_element_id_key(const spill_value_t *id, bool any, spill_buffer_t *key,
                                  spill_error_t *error)
{
    size_t start = key->size;
    const char *refused = refused_type(id, any);
    if (refused)
        return spill_fail(error, SPILL_INVALID, "an element's id cannot be %s", refused);
    if (!any && id->size_bytes > SPILL_OWNER_KEY_MAX)
        return spill_fail(error, SPILL_INVALID, "an element's id is too long: %u bytes of %d",
                          id->size_bytes, SPILL_OWNER_KEY_MAX);
    spill_code_t code = spill_value_key(id, key, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "an element's id");
    size_t size = key->size - start;
    if (size <= SPILL_ELEMENT_ID_MAX)
        return SPILL_OK;
    if (any) {
        put_digest(key, start);
        return SPILL_OK;
    }
    key->size = start;
    return spill_fail(error, SPILL_INVALID,
                      "an element's id is too long: its key has %zu bytes of %d", size,
                      SPILL_ELEMENT_ID_MAX);
}

size_t spill_element_id_key_length(const uint8_t *data, size_t size)
{
    enum { DIGEST_KEY = 1 + SPILL_SHA256_BYTES };
    if (size > 0 && data[0] == SPILL_KEY_DIGEST)
        return size >= DIGEST_KEY ? DIGEST_KEY : 0;
    return spill_owner_key_length(data, size);
}

bool spill_element_id(const spill_value_t *element, const char *path, spill_value_t *id)
{
    return find_in_documents(element, path, id);
}

bool spill_element_key(const spill_value_t *element, const char *path, bool any,
                       spill_buffer_t *key)
{
    spill_value_t id;
    return find_in_documents(element, path, &id) &&
           spill_element_id_key(&id, any, key, NULL) == SPILL_OK;
}

/* The first four bytes of an ObjectId: seconds, big-endian. */
static int64_t object_id_ms(const spill_value_t *value)
{
    uint32_t seconds;
    memcpy(&seconds, value->data, sizeof seconds);
    return (int64_t)BSON_UINT32_FROM_BE(seconds) * 1000;
}

bool spill_element_time_ms(const spill_value_t *element, const char *path, int64_t *time_ms)
{
    spill_value_t value;
    if (!find_in_documents(element, path, &value))
        return false;
    switch (value.type) {
    case BSON_TYPE_DATE_TIME:
        *time_ms = spill_value_int64(&value);
        return true;
    case BSON_TYPE_TIMESTAMP: /* seconds, and an ordinal within the second */
        *time_ms = (int64_t)((uint64_t)spill_value_int64(&value) >> 32) * 1000;
        return true;
    case BSON_TYPE_OID:
        *time_ms = object_id_ms(&value);
        return true;
    default:
        return false;
    }
}

/* ---- operators of filters -------------------------------------------------------------------- */

typedef enum operation { EQ, NE, GT, GTE, LT, LTE, IN, NIN, EXISTS, OPERATIONS } operation_t;

static const char *const names[OPERATIONS] = {"$eq",  "$ne", "$gt",  "$gte",   "$lt",
                                              "$lte", "$in", "$nin", "$exists"};

static operation_t operation_of(const char *name)
{
    operation_t operation = EQ;
    while (operation < OPERATIONS && strcmp(names[operation], name) != 0)
        operation++;
    return operation;
}

/* Is it a document with an operator as its first field? */
static bool has_operators(const spill_value_t *value)
{
    const char *name;
    spill_value_t first;
    if (value->type != BSON_TYPE_DOCUMENT)
        return false;
    spill_fields_t fields = spill_fields_of(value->data);
    return spill_fields_next(&fields, &name, &first) && name[0] == '$';
}

/* ---- the check ------------------------------------------------------------------------------- */

static spill_code_t check_operand(const char *where, const spill_value_t *operand,
                                  spill_error_t *error)
{
    if (operand->type == BSON_TYPE_REGEX || operand->type == BSON_TYPE_UNDEFINED)
        return spill_fail(error, SPILL_INVALID,
                          "filter: %s: there is no matching by regular expressions, nor by "
                          "undefined",
                          where);
    return SPILL_OK;
}

static spill_code_t check_list(const char *where, const spill_value_t *list, spill_error_t *error)
{
    if (list->type != BSON_TYPE_ARRAY)
        return spill_fail(error, SPILL_INVALID, "filter: %s needs an array", where);
    spill_fields_t fields = spill_fields_of(list->data);
    const char *name;
    spill_value_t value;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && spill_fields_next(&fields, &name, &value))
        code = check_operand(where, &value, error);
    return code;
}

static spill_code_t check_operation(const char *name, const spill_value_t *operand,
                                    spill_error_t *error)
{
    switch (operation_of(name)) {
    case EQ:
    case NE:
    case EXISTS:
        return check_operand(name, operand, error);
    case GT:
    case GTE:
    case LT:
    case LTE:
        if (operand->type == BSON_TYPE_ARRAY || operand->type == BSON_TYPE_MINKEY ||
            operand->type == BSON_TYPE_MAXKEY)
            return spill_fail(error, SPILL_INVALID,
                              "filter: %s compares with neither arrays, MinKey nor MaxKey", name);
        return check_operand(name, operand, error);
    case IN:
    case NIN:
        return check_list(name, operand, error);
    default:
        return spill_fail(error, SPILL_INVALID,
                          "filter: '%s' is not supported; there are $eq, $ne, $gt, $gte, $lt, "
                          "$lte, $in, $nin and $exists",
                          name);
    }
}

static spill_code_t check_operations(const spill_value_t *operations, spill_error_t *error)
{
    spill_fields_t fields = spill_fields_of(operations->data);
    const char *name;
    spill_value_t operand;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && spill_fields_next(&fields, &name, &operand))
        code = check_operation(name, &operand, error);
    return code;
}

static bool is_path(const char *path)
{
    size_t length = strlen(path);
    return length > 0 && path[0] != '.' && path[length - 1] != '.' && !strstr(path, "..");
}

static spill_code_t check_field(const char *path, const spill_value_t *condition,
                                spill_error_t *error)
{
    if (path[0] == '$')
        return spill_fail(error, SPILL_INVALID,
                          "filter: '%s' is not supported beside fields: all conditions hold "
                          "together, and there is no $or",
                          path);
    if (!is_path(path))
        return spill_fail(error, SPILL_INVALID,
                          "filter: '%s' is not a path of names with a '.' between them", path);
    return has_operators(condition) ? check_operations(condition, error)
                                    : check_operand(path, condition, error);
}

spill_code_t spill_match_check(const bson_t *filter, spill_error_t *error)
{
    if (!spill_document_valid(filter))
        return spill_fail(error, SPILL_INVALID, "filter: not a well-formed document");
    spill_value_t whole = spill_value_from_document(filter);
    if (has_operators(&whole))
        return check_operations(&whole, error);
    spill_fields_t fields = spill_fields_of(whole.data);
    const char *path;
    spill_value_t condition;
    spill_code_t code = SPILL_OK;
    bool any = false;
    while (code == SPILL_OK && spill_fields_next(&fields, &path, &condition)) {
        code = check_field(path, &condition, error);
        any = true;
    }
    if (code == SPILL_OK && !any)
        return spill_fail(error, SPILL_INVALID,
                          "filter: it is empty and would match every element");
    return code;
}

/* ---- one value ------------------------------------------------------------------------------- */

static bool is_nan(const spill_value_t *value)
{
    bool number = value->type == BSON_TYPE_DOUBLE || value->type == BSON_TYPE_DECIMAL128;
    return number && spill_number_of(value).kind == SPILL_NUMBER_NAN;
}

static bool equals(const spill_value_t *value, const spill_value_t *operand)
{
    if (operand->type == BSON_TYPE_NULL && value->type == BSON_TYPE_UNDEFINED)
        return true;
    return spill_value_compare(value, operand) == 0;
}

static bool is_in(const spill_value_t *value, const spill_value_t *list)
{
    spill_fields_t fields = spill_fields_of(list->data);
    const char *name;
    spill_value_t operand;
    while (spill_fields_next(&fields, &name, &operand))
        if (equals(value, &operand))
            return true;
    return false;
}

/* NaN is neither greater nor less than any value, and equal to itself. */
static bool orders(operation_t operation, const spill_value_t *value, const spill_value_t *operand)
{
    bool or_equal = operation == GTE || operation == LTE;
    if (!spill_value_same_class(value, operand))
        return false;
    if (is_nan(value) || is_nan(operand))
        return or_equal && is_nan(value) && is_nan(operand);
    int order = spill_value_compare(value, operand);
    if (order == 0)
        return or_equal;
    return (operation == GT || operation == GTE) == (order > 0);
}

/* Does the value satisfy the operation, without its negation? */
static bool satisfies(operation_t operation, const spill_value_t *value,
                      const spill_value_t *operand)
{
    switch (operation) {
    case EQ:
    case NE:
        return equals(value, operand);
    case IN:
    case NIN:
        return is_in(value, operand);
    case EXISTS:
        return true;
    default:
        return orders(operation, value, operand);
    }
}

/* ---- values at a path ------------------------------------------------------------------------ */

/* The search for a value that satisfies an operation. */
typedef struct search {
    operation_t operation;
    const spill_value_t *operand;
} search_t;

static bool end_satisfies(const search_t *search, const spill_value_t *value)
{
    if (satisfies(search->operation, value, search->operand))
        return true;
    if (value->type != BSON_TYPE_ARRAY)
        return false;
    spill_fields_t fields = spill_fields_of(value->data);
    const char *name;
    spill_value_t element;
    while (spill_fields_next(&fields, &name, &element))
        if (satisfies(search->operation, &element, search->operand))
            return true;
    return false;
}

/* A missing value equals null, but does not exist. */
static bool nothing_satisfies(const search_t *search)
{
    static const spill_value_t null = {.type = BSON_TYPE_NULL, .data = (const uint8_t *)""};
    return search->operation != EXISTS && satisfies(search->operation, &null, search->operand);
}

static bool path_satisfies(const search_t *search, const spill_value_t *value, const char *path);

/* Try each document in an array, and the element at the index that the name spells. */
static bool array_satisfies(const search_t *search, const spill_value_t *array, const char *path)
{
    spill_fields_t fields = spill_fields_of(array->data);
    const char *name, *rest;
    spill_value_t element;
    if (spill_value_field(array, path, &rest, &element) && path_satisfies(search, &element, rest))
        return true;
    while (spill_fields_next(&fields, &name, &element))
        if (element.type == BSON_TYPE_DOCUMENT && path_satisfies(search, &element, path))
            return true;
    return false;
}

static bool path_satisfies(const search_t *search, const spill_value_t *value, const char *path)
{
    spill_value_t at = *value;
    while (*path != '\0') {
        if (at.type == BSON_TYPE_ARRAY)
            return array_satisfies(search, &at, path);
        if (!spill_value_field(&at, path, &path, &at))
            return nothing_satisfies(search);
    }
    return end_satisfies(search, &at);
}

/* ---- filters --------------------------------------------------------------------------------- */

/* "" is the path of the element itself. */
static bool operation_holds(const spill_value_t *element, const char *path, operation_t operation,
                            const spill_value_t *operand)
{
    const search_t search = {.operation = operation, .operand = operand};
    bool found = path_satisfies(&search, element, path);
    if (operation == NE || operation == NIN)
        return !found;
    if (operation != EXISTS)
        return found;
    bool wanted =
        operand->type == BSON_TYPE_BOOL ? operand->data[0] != 0 : operand->type != BSON_TYPE_NULL;
    bool zero = (operand->type == BSON_TYPE_INT32 && spill_value_int32(operand) == 0) ||
                (operand->type == BSON_TYPE_INT64 && spill_value_int64(operand) == 0);
    return found == (wanted && !zero);
}

static bool condition_holds(const spill_value_t *element, const char *path,
                            const spill_value_t *condition)
{
    if (!has_operators(condition))
        return operation_holds(element, path, EQ, condition);
    spill_fields_t fields = spill_fields_of(condition->data);
    const char *name;
    spill_value_t operand;
    while (spill_fields_next(&fields, &name, &operand))
        if (!operation_holds(element, path, operation_of(name), &operand))
            return false;
    return true;
}

bool spill_match(const bson_t *filter, const spill_value_t *element)
{
    spill_value_t whole = spill_value_from_document(filter);
    if (has_operators(&whole))
        return condition_holds(element, "", &whole);
    spill_fields_t fields = spill_fields_of(whole.data);
    const char *path;
    spill_value_t condition;
    while (spill_fields_next(&fields, &path, &condition))
        if (!condition_holds(element, path, &condition))
            return false;
    return true;
}

bool spill_match_fields(const bson_t *filter, const bson_t *document)
{
    spill_value_t value = {
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
    return bson_empty(filter) || spill_match(filter, &value);
}
