/*
 * Update operators. Each change (operator, path, argument) rewrites the document once, in the order
 * of the update. That is cheap, because a head's fields are few and small.
 */
#include "bson/update.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "util/error.h"

#include <string.h>

typedef enum operator_kind {
    OPERATOR_SET,
    OPERATOR_UNSET,
    OPERATOR_INC,
    OPERATOR_MIN,
    OPERATOR_MAX,
    OPERATOR_UNKNOWN
} operator_kind_t;

static const char *const operator_names[] = {"$set", "$unset", "$inc", "$min", "$max", "?"};

/* One change of an update; borrows from the update. */
typedef struct change {
    operator_kind_t kind;
    const char *path;
    spill_value_t argument;
} change_t;

/* A cursor over all changes of an update. */
typedef struct change_cursor {
    spill_fields_t operators;
    spill_fields_t arguments;
    operator_kind_t kind;
} change_cursor_t;

static operator_kind_t operator_of(const char *name)
{
    for (int kind = 0; kind < OPERATOR_UNKNOWN; kind++)
        if (strcmp(name, operator_names[kind]) == 0)
            return (operator_kind_t)kind;
    return OPERATOR_UNKNOWN;
}

static change_cursor_t changes_of(const bson_t *update)
{
    return (change_cursor_t){.operators = spill_fields_of(bson_get_data(update))};
}

/* Return the next change. All operators of the update are known, and each holds a document. */
static bool next_change(change_cursor_t *cursor, change_t *change)
{
    while (!spill_fields_next(&cursor->arguments, &change->path, &change->argument)) {
        const char *name;
        spill_value_t arguments;
        if (!spill_fields_next(&cursor->operators, &name, &arguments))
            return false;
        cursor->kind = operator_of(name);
        cursor->arguments = spill_fields_of(arguments.data);
    }
    change->kind = cursor->kind;
    return true;
}

/* ---- check ----------------------------------------------------------------------------------- */

static spill_code_t fail_change(const change_t *change, const char *problem, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID, "update: %s of '%s' %s", operator_names[change->kind],
                      change->path, problem);
}

static spill_code_t check_operators(const bson_t *update, spill_error_t *error)
{
    if (!spill_document_valid(update))
        return spill_fail(error, SPILL_INVALID, "update: not a well-formed document");
    spill_fields_t operators = spill_fields_of(bson_get_data(update));
    const char *name;
    spill_value_t arguments;
    while (spill_fields_next(&operators, &name, &arguments)) {
        if (operator_of(name) == OPERATOR_UNKNOWN)
            return spill_fail(
                error, SPILL_INVALID,
                "update: '%s' is not an operator here; these are: $set, $unset, $inc, "
                "$min, $max",
                name);
        if (arguments.type != BSON_TYPE_DOCUMENT)
            return spill_fail(error, SPILL_INVALID, "update: %s needs a document of fields", name);
    }
    return SPILL_OK;
}

/* The problem of a dotted path, or NULL. */
static const char *problem_of_path(const char *path)
{
    int depth = 0;
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, ".");
        if (length == 0)
            return "has an empty part in its path";
        if (part[0] == '$')
            return "has a part that starts with '$' in its path";
        if (++depth > SPILL_NESTING_MAX)
            return "has too many parts in its path";
        part += length;
        if (*part == '\0')
            return NULL;
    }
}

/* The reserved field that a change of the path would change too, or NULL. */
static const char *find_reserved(const char *path, const char *const *reserved)
{
    for (size_t i = 0; reserved != NULL && reserved[i] != NULL; i++)
        if (spill_paths_overlap(path, reserved[i]))
            return reserved[i];
    return NULL;
}

static spill_code_t fail_around(const char *operator, const char * path, const char *reserved,
                                spill_error_t *error)
{
    return spill_fail(
        error, SPILL_INVALID,
        "update: %s of '%s' would change '%s' in it, which belongs to the array; name "
        "the other fields one by one ('%s.FIELD')",
        operator, path, reserved, path);
}

static spill_code_t check_change(const change_t *change, const char *const *reserved,
                                 spill_error_t *error)
{
    const char *problem = problem_of_path(change->path);
    if (problem != NULL)
        return fail_change(change, problem, error);
    if (spill_starts_with_part(change->path, "_id"))
        return fail_change(change, "would change the owner's _id", error);
    const char *own = find_reserved(change->path, reserved);
    if (own != NULL)
        return spill_starts_with_part(change->path, own)
                   ? fail_change(change, "would change a field that belongs to the array", error)
                   : fail_around(operator_names[change->kind], change->path, own, error);
    if (change->kind == OPERATOR_INC && !spill_is_number(change->argument.type))
        return fail_change(change, "needs a number", error);
    return SPILL_OK;
}

/* Refuse changes of the same field, or of a field and one inside it: their order is not defined. */
static spill_code_t check_conflicts(const bson_t *update, const change_t *change,
                                    spill_error_t *error)
{
    change_cursor_t cursor = changes_of(update);
    change_t earlier;
    while (next_change(&cursor, &earlier) && earlier.path != change->path) {
        if (spill_paths_overlap(earlier.path, change->path))
            return spill_fail(error, SPILL_INVALID, "update: %s of '%s' conflicts with %s of '%s'",
                              operator_names[change->kind], change->path,
                              operator_names[earlier.kind], earlier.path);
    }
    return SPILL_OK;
}

spill_code_t spill_update_check(const bson_t *update, const char *const *reserved,
                                spill_error_t *error)
{
    spill_code_t code = check_operators(update, error);
    if (code != SPILL_OK)
        return code;
    change_cursor_t cursor = changes_of(update);
    change_t change;
    while (code == SPILL_OK && next_change(&cursor, &change)) {
        code = check_change(&change, reserved, error);
        if (code == SPILL_OK)
            code = check_conflicts(update, &change, error);
    }
    return code;
}

/* Does the value of a $rename, another path, name a reserved field? */
static bool renames_to(const spill_value_t *value, const char *const *reserved)
{
    const char *path = NULL;
    if (value->type == BSON_TYPE_UTF8)
        path = (const char *)value->data + sizeof(int32_t);
    return path != NULL &&
           (spill_starts_with_part(path, "_id") || find_reserved(path, reserved) != NULL);
}

static spill_code_t check_names(const char *operator, const spill_value_t * arguments,
                                const char *const *reserved, spill_error_t *error)
{
    spill_fields_t fields = spill_fields_of(arguments->data);
    const char *path;
    spill_value_t argument;
    bool renames = strcmp(operator, "$rename") == 0;
    while (spill_fields_next(&fields, &path, &argument)) {
        const char *own = find_reserved(path, reserved);
        if (own != NULL && !spill_starts_with_part(path, own))
            return fail_around(operator, path, own, error);
        if (own != NULL || spill_starts_with_part(path, "_id") ||
            (renames && renames_to(&argument, reserved)))
            return spill_fail(
                error, SPILL_INVALID, "update: %s of '%s' would change %s", operator, path,
                spill_starts_with_part(path, "_id") ? "the owner's _id"
                                                    : "a field that belongs to the array");
    }
    return SPILL_OK;
}

spill_code_t spill_update_check_names(const bson_t *update, const char *const *reserved,
                                      spill_error_t *error)
{
    if (!spill_document_valid(update))
        return spill_fail(error, SPILL_INVALID, "update: not a well-formed document");
    spill_fields_t operators = spill_fields_of(bson_get_data(update));
    const char *name;
    spill_value_t arguments;
    bool known = true;
    while (spill_fields_next(&operators, &name, &arguments)) {
        known = known && operator_of(name) != OPERATOR_UNKNOWN;
        if (name[0] != '$')
            return spill_fail(error, SPILL_INVALID, "update: '%s' is not an operator", name);
        if (arguments.type != BSON_TYPE_DOCUMENT)
            return spill_fail(error, SPILL_INVALID, "update: %s needs a document of fields", name);
        SPILL_TRY(check_names(name, &arguments, reserved, error));
    }
    return known ? spill_update_check(update, reserved, error) : SPILL_OK;
}

/* ---- apply ----------------------------------------------------------------------------------- */

static bool is_integer(uint8_t type)
{
    return type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64;
}

static int64_t integer_of(const spill_value_t *value)
{
    return value->type == BSON_TYPE_INT32 ? spill_value_int32(value) : spill_value_int64(value);
}

static double double_of(const spill_value_t *value)
{
    return is_integer(value->type) ? (double)integer_of(value) : spill_value_double(value);
}

/* Append a sum; an int32 (`narrow`) stays one if it fits. */
static void append_integer(bson_t *out, const char *name, int64_t sum, bool narrow)
{
    if (narrow && sum >= INT32_MIN && sum <= INT32_MAX)
        BSON_APPEND_INT32(out, name, (int32_t)sum);
    else
        BSON_APPEND_INT64(out, name, sum);
}

static spill_code_t append_sum(const change_t *change, const spill_value_t *old, const char *name,
                               bson_t *out, spill_error_t *error)
{
    const spill_value_t *more = &change->argument;
    if (!spill_is_number(old->type))
        return fail_change(change, "meets a value that is not a number", error);
    if (old->type == BSON_TYPE_DECIMAL128 || more->type == BSON_TYPE_DECIMAL128)
        return fail_change(change, "meets a decimal128, which cannot be added to; use $set", error);
    if (!is_integer(old->type) || !is_integer(more->type)) {
        BSON_APPEND_DOUBLE(out, name, double_of(old) + double_of(more));
        return SPILL_OK;
    }
    int64_t sum;
    if (__builtin_add_overflow(integer_of(old), integer_of(more), &sum))
        return fail_change(change, "would pass 64 bits", error);
    append_integer(out, name, sum, old->type == BSON_TYPE_INT32 && more->type == BSON_TYPE_INT32);
    return SPILL_OK;
}

/* Append the changed field at the end of the path; `old` is NULL if it is missing. */
static spill_code_t append_changed(const change_t *change, const spill_value_t *old,
                                   const char *name, bson_t *out, spill_error_t *error)
{
    const spill_value_t *result = &change->argument;
    switch (change->kind) {
    case OPERATOR_UNSET:
        return SPILL_OK;
    case OPERATOR_INC:
        if (old != NULL)
            return append_sum(change, old, name, out, error);
        break;
    case OPERATOR_MIN:
        if (old != NULL && spill_value_compare(result, old) >= 0)
            result = old;
        break;
    case OPERATOR_MAX:
        if (old != NULL && spill_value_compare(result, old) <= 0)
            result = old;
        break;
    case OPERATOR_SET:
    case OPERATOR_UNKNOWN:
        break;
    }
    if (!spill_value_append(result, out, name))
        return fail_change(change, "makes the document too big", error);
    return SPILL_OK;
}

static spill_code_t rewrite(const change_t *change, const char *path, const uint8_t *in,
                            bson_t *out, spill_error_t *error);

/* Rewrite a field on the path: change it if the path ends here, else continue in its document. */
static spill_code_t rewrite_field(const change_t *change, const char *name, const char *rest,
                                  const spill_value_t *old, bson_t *out, spill_error_t *error)
{
    if (rest == NULL)
        return append_changed(change, old, name, out, error);
    if (old != NULL && old->type != BSON_TYPE_DOCUMENT)
        return change->kind != OPERATOR_UNSET
                   ? fail_change(change, "goes through a value that is not a document", error)
               : spill_value_append(old, out, name)
                   ? SPILL_OK
                   : fail_change(change, "makes the document too big", error);
    bson_t child;
    BSON_APPEND_DOCUMENT_BEGIN(out, name, &child);
    spill_code_t code = rewrite(change, rest, old == NULL ? NULL : old->data, &child, error);
    bson_append_document_end(out, &child);
    return code;
}

/* Copy the document `in` (NULL: an empty one) to `out`, and make the change at `path`. */
static spill_code_t rewrite(const change_t *change, const char *path, const uint8_t *in,
                            bson_t *out, spill_error_t *error)
{
    size_t length = strcspn(path, ".");
    const char *rest = path[length] == '.' ? path + length + 1 : NULL;
    spill_fields_t fields = in == NULL ? (spill_fields_t){0} : spill_fields_of(in);
    const char *name;
    spill_value_t value;
    bool found = false;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && spill_fields_next(&fields, &name, &value)) {
        bool here = !found && strlen(name) == length && memcmp(name, path, length) == 0;
        found = found || here;
        if (here)
            code = rewrite_field(change, name, rest, &value, out, error);
        else if (!spill_value_append(&value, out, name))
            code = fail_change(change, "makes the document too big", error);
    }
    if (code == SPILL_OK && !found && change->kind != OPERATOR_UNSET) {
        char *made = bson_strndup(path, length);
        code = rewrite_field(change, made, rest, NULL, out, error);
        bson_free(made);
    }
    return code;
}

spill_code_t spill_update_apply(const bson_t *fields, const bson_t *update, bson_t *result,
                                spill_error_t *error)
{
    bson_init(result);
    spill_code_t code = spill_update_check(update, NULL, error);
    if (code != SPILL_OK)
        return code;
    if (!spill_answer_valid(fields))
        return spill_fail(error, SPILL_CORRUPT, "update: the fields to change are malformed");
    bson_concat(result, fields);
    change_cursor_t cursor = changes_of(update);
    change_t change;
    while (code == SPILL_OK && next_change(&cursor, &change)) {
        bson_t next = BSON_INITIALIZER;
        code = rewrite(&change, change.path, bson_get_data(result), &next, error);
        bson_destroy(result);
        bson_steal(result, &next);
    }
    /* If an unmanaged array has deep elements, the other fields can still be updated. */
    bool deep = !spill_document_valid(fields);
    if (code == SPILL_OK && !(deep ? spill_answer_valid(result) : spill_document_valid(result)))
        code = spill_fail(error, SPILL_INVALID, "update: the document would be nested too deeply");
    return code;
}

spill_code_t spill_update_replace(bson_t **fields, const bson_t *update, spill_error_t *error)
{
    bson_t updated;
    spill_code_t code = spill_update_apply(*fields, update, &updated, error);
    bson_destroy(*fields);
    *fields = code == SPILL_OK ? bson_copy(&updated) : NULL;
    bson_destroy(&updated);
    return code;
}
