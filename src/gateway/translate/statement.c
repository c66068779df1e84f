#include "gateway/translate/statement.h"

#include "bson/field_path.h"
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"

#include <string.h>

static void set_array(spill_statement_t *statement, const char *field, const char *operation,
                      const char *reason)
{
    if (statement->kind == SPILL_STATEMENT_SPILL)
        return;
    statement->kind = SPILL_STATEMENT_ARRAY;
    statement->field = field;
    statement->operation = operation;
    statement->reason = reason;
}

/* ---- $push ----------------------------------------------------------------------------------- */

static bool is_zero(const bson_iter_t *value)
{
    return BSON_ITER_HOLDS_NUMBER(value) && bson_iter_as_double(value) == 0;
}

static bool has_modifiers(const bson_iter_t *value)
{
    bson_iter_t child;
    return BSON_ITER_HOLDS_DOCUMENT(value) && bson_iter_recurse(value, &child) &&
           bson_iter_find(&child, "$each");
}

/* Read {$each: [...], $position: 0}. The name of a modifier that is not supported, or NULL. */
static const char *read_modifiers(const bson_iter_t *value, bool newest_first, bool *first,
                                  spill_statement_t *statement)
{
    bson_iter_t child;
    bson_t each;
    if (!bson_iter_recurse(value, &child))
        return "$each";
    while (bson_iter_next(&child)) {
        const char *key = bson_iter_key(&child);
        if (strcmp(key, "$each") == 0 && BSON_ITER_HOLDS_ARRAY(&child) &&
            spill_iter_document(&child, &each)) {
            statement->values = child;
            statement->each = true;
            statement->count = (int64_t)bson_count_keys(&each);
        } else if (strcmp(key, "$position") == 0 && newest_first && is_zero(&child)) {
            *first = true;
        } else {
            return key;
        }
    }
    return NULL;
}

static void read_push(const bson_iter_t *field, bool newest_first, spill_statement_t *statement)
{
    bool first = false;
    const char *modifier = NULL;
    statement->values = *field;
    statement->each = false;
    statement->count = 1;
    if (has_modifiers(field))
        modifier = read_modifiers(field, newest_first, &first, statement);
    if (modifier != NULL)
        set_array(statement, bson_iter_key(field), modifier,
                  strcmp(modifier, "$each") == 0
                      ? "its value is no array"
                      : "it would renumber elements in pages: push to the end, without modifiers "
                        "other than $each");
    else if (newest_first && !first)
        set_array(statement, bson_iter_key(field), "$push",
                  "the array grows at its front: push with $position: 0");
    else if (statement->kind == SPILL_STATEMENT_OTHER)
        statement->kind = SPILL_STATEMENT_PUSH;
}

/* ---- operators ------------------------------------------------------------------------------- */

static void read_path(const spill_served_collection_t *at, const char *path, const char *operation,
                      spill_statement_t *statement)
{
    if (spill_path_begins(path, SPILL_STORED_ROOT)) {
        statement->kind = SPILL_STATEMENT_SPILL;
        return;
    }
    for (size_t i = 0; at->fields[i] != NULL; i++) {
        if (!spill_paths_overlap(path, at->fields[i]))
            continue;
        set_array(statement, path, operation, NULL);
        statement->touches_other_field |=
            strcmp(at->fields[i], at->definition->array) != 0 || at->array == NULL;
    }
}

/* Does the path lead to a document around F? Then F may be anything after a change. */
static bool is_around(const char *path, const char *array)
{
    return strcmp(path, array) != 0 && spill_path_holds(path, array);
}

/* May the operator leave a value in F that is no array? Others fail on an array. */
static bool may_end(const char *operation, const bson_iter_t *field)
{
    static const char *const names[] = {"$min", "$max", "$currentDate", NULL};
    return spill_is_one_of(operation, names) ||
           (strcmp(operation, "$set") == 0 && !BSON_ITER_HOLDS_ARRAY(field));
}

/* One operator with its paths. */
static void read_operator(const spill_served_collection_t *at, const bson_iter_t *operation,
                          spill_statement_t *statement)
{
    bson_iter_t field;
    const char *name = bson_iter_key(operation);
    bool newest_first = at->definition->order == SPILL_ARRAY_NEWEST_FIRST;
    if (!BSON_ITER_HOLDS_DOCUMENT(operation) || !bson_iter_recurse(operation, &field))
        return; /* upstream refuses it */
    while (bson_iter_next(&field)) {
        const char *path = bson_iter_key(&field);
        if (strcmp(name, "$push") == 0 && strcmp(path, at->definition->array) == 0 &&
            at->array != NULL)
            read_push(&field, newest_first, statement);
        else
            read_path(at, path, name, statement);
        if (is_around(path, at->definition->array) ||
            (strcmp(path, at->definition->array) == 0 && may_end(name, &field)))
            statement->ends = true;
        if (strcmp(name, "$rename") == 0 && BSON_ITER_HOLDS_UTF8(&field)) {
            read_path(at, bson_iter_utf8(&field, NULL), name, statement);
            statement->ends |=
                spill_paths_overlap(bson_iter_utf8(&field, NULL), at->definition->array);
        }
    }
}

/* A replacement takes away all fields that it does not name. */
static void read_replacement(const spill_served_collection_t *at, spill_statement_t *statement)
{
    bson_iter_t field;
    set_array(statement, at->definition->array, "a replacement",
              "change single fields with $set, and append with $push");
    statement->replaces = true;
    if (bson_iter_init_find(&field, &statement->u, SPILL_STORED_ROOT))
        statement->kind = SPILL_STATEMENT_SPILL;
}

static void read_pipeline(const spill_served_collection_t *at, spill_statement_t *statement)
{
    bson_iter_t each, stage;
    const char *array = at->definition->array;
    if (!bson_iter_init(&each, &statement->u))
        return;
    while (bson_iter_next(&each)) {
        unsigned mentions = spill_mentions_in_value(&each, array);
        for (size_t i = 0; at->fields[i] != NULL; i++) {
            unsigned own = spill_mentions_in_value(&each, at->fields[i]);
            statement->touches_other_field =
                statement->touches_other_field ||
                (strcmp(at->fields[i], array) != 0 && (own & SPILL_MENTIONS_ARRAY) != 0);
            mentions |= own;
        }
        bool sets = BSON_ITER_HOLDS_DOCUMENT(&each) && bson_iter_recurse(&each, &stage) &&
                    bson_iter_next(&stage) &&
                    (strcmp(bson_iter_key(&stage), "$set") == 0 ||
                     strcmp(bson_iter_key(&stage), "$addFields") == 0 ||
                     strcmp(bson_iter_key(&stage), "$unset") == 0);
        if ((mentions & SPILL_MENTIONS_SPILL) && mentions != SPILL_MENTIONS_ANY)
            statement->kind = SPILL_STATEMENT_SPILL;
        else if (mentions != 0 || !sets)
            set_array(statement, array, "an update pipeline",
                      "use update operators, or stages $set and $unset that do not name it");
    }
}

static void read_update(const spill_served_collection_t *at, spill_statement_t *statement)
{
    bson_iter_t operation;
    if (!bson_iter_init(&operation, &statement->u))
        return;
    bool any = false;
    while (bson_iter_next(&operation)) {
        if (bson_iter_key(&operation)[0] != '$') {
            read_replacement(at, statement);
            return;
        }
        any = true;
        read_operator(at, &operation, statement);
    }
    if (!any)
        read_replacement(at, statement);
}

/* ---- statements ------------------------------------------------------------------------------ */

bool spill_statement_read(const spill_served_collection_t *at, const bson_t *q, const bson_t *u,
                          bool pipeline, spill_statement_t *statement)
{
    *statement = (spill_statement_t){.kind = SPILL_STATEMENT_OTHER, .pipeline = pipeline};
    if (!bson_init_static(&statement->q, bson_get_data(q), q->len) ||
        !bson_init_static(&statement->u, bson_get_data(u), u->len) ||
        !bson_validate(&statement->q, BSON_VALIDATE_NONE, NULL) ||
        !bson_validate(&statement->u, BSON_VALIDATE_NONE, NULL))
        return false;
    statement->q_mentions = spill_mentions_in_filter(&statement->q, at->definition->array);
    for (size_t i = 0; at->array == NULL && at->parts[i] != NULL; i++)
        statement->q_mentions |= spill_mentions_in_filter(&statement->q, at->parts[i]);
    if ((statement->q_mentions & SPILL_MENTIONS_SPILL) &&
        statement->q_mentions != SPILL_MENTIONS_ANY)
        statement->kind = SPILL_STATEMENT_SPILL;
    if (statement->pipeline)
        read_pipeline(at, statement);
    else
        read_update(at, statement);
    return true;
}

bool spill_statement_is_relayed(const spill_statement_t *statement)
{
    return statement->kind == SPILL_STATEMENT_OTHER && statement->q_mentions == 0;
}

/* Does the operator set the owner's own _id? That changes nothing. */
static bool sets_own_id(const bson_iter_t *operation, const bson_iter_t *field,
                        const spill_value_t *owner)
{
    spill_value_t id = spill_value_from_iter(field);
    return owner != NULL && strcmp(bson_iter_key(operation), "$set") == 0 &&
           strcmp(bson_iter_key(field), "_id") == 0 && spill_value_equal(&id, owner);
}

/* Copy the operator without the path. */
static void copy_without(const bson_iter_t *operation, const char *path, const spill_value_t *owner,
                         bson_t *others)
{
    bson_iter_t field;
    bson_t kept = BSON_INITIALIZER;
    if (bson_iter_recurse(operation, &field))
        while (bson_iter_next(&field))
            if (strcmp(bson_iter_key(&field), path) != 0 && !sets_own_id(operation, &field, owner))
                bson_append_iter(&kept, NULL, -1, &field);
    if (!bson_empty(&kept))
        BSON_APPEND_DOCUMENT(others, bson_iter_key(operation), &kept);
    bson_destroy(&kept);
}

bool spill_statement_others(const spill_statement_t *statement, const char *array,
                            const spill_value_t *owner, bson_t *others)
{
    bson_iter_t operation;
    if (!bson_iter_init(&operation, &statement->u))
        return false;
    while (bson_iter_next(&operation)) {
        const char *name = bson_iter_key(&operation);
        if (strcmp(name, "$push") == 0)
            copy_without(&operation, array, owner, others);
        else if (strcmp(name, "$setOnInsert") != 0)
            copy_without(&operation, "", owner, others);
    }
    return !bson_empty(others);
}

int64_t spill_statement_bytes(const spill_statement_t *statement)
{
    return (int64_t)spill_value_from_iter(&statement->values).size_bytes + 1;
}

spill_value_t *spill_statement_elements(const spill_statement_t *statement, bool newest_first)
{
    bson_iter_t element;
    spill_value_t *elements = bson_malloc0((size_t)(statement->count + 1) * sizeof *elements);
    int64_t at = 0;
    if (!statement->each) {
        elements[0] = spill_value_from_iter(&statement->values);
        return elements;
    }
    if (bson_iter_recurse(&statement->values, &element))
        while (at < statement->count && bson_iter_next(&element)) {
            int64_t index = newest_first ? statement->count - 1 - at : at;
            elements[index] = spill_value_from_iter(&element);
            at++;
        }
    return elements;
}
