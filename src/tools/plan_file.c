#include "tools/plan_file.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "util/error.h"

#include <string.h>

enum { PLAN_VERSION = 1 };

spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error)
{
    bson_error_t cause;
    bson_iter_t iter;
    bson_init(document);
    bson_json_reader_t *reader = bson_json_reader_new_from_file(file, &cause);
    if (!reader)
        return spill_fail(error, SPILL_IO, "%s: %s", file, cause.message);
    int got = bson_json_reader_read(reader, document, &cause);
    bson_json_reader_destroy(reader);
    if (got != 1)
        return spill_fail(error, SPILL_PARSE, "%s: %s", file,
                          got == 0 ? "it is empty" : cause.message);
    if (!bson_iter_init_find(&iter, document, "spillwayPlan") ||
        bson_iter_as_int64(&iter) != PLAN_VERSION)
        return spill_fail(error, SPILL_INVALID, "%s: this is no plan of version %d", file,
                          PLAN_VERSION);
    return SPILL_OK;
}

/* ---- definitions ----------------------------------------------------------------------------- */

static const char *text_in(const bson_t *entry, const char *name)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, entry, name) && BSON_ITER_HOLDS_UTF8(&iter)
               ? bson_iter_utf8(&iter, NULL)
               : "?";
}

/* *value: false if the field is missing. SPILL_INVALID if it is neither true nor false. */
static spill_code_t read_flag(const char *file, const bson_t *entry, const char *name, bool *value,
                              spill_error_t *error)
{
    bson_iter_t iter;
    *value = false;
    if (!bson_iter_init_find(&iter, entry, name))
        return SPILL_OK;
    if (!BSON_ITER_HOLDS_BOOL(&iter))
        return spill_fail(error, SPILL_INVALID, "%s: \"%s\" of %s.%s must be true or false", file,
                          name, text_in(entry, "collection"), text_in(entry, "path"));
    *value = bson_iter_bool(&iter);
    return SPILL_OK;
}

/* `name` without the database's name and a dot in front, if it begins with these. */
static const char *without_database(const char *name, const char *database)
{
    size_t length = database ? strlen(database) : 0;
    return length > 0 && strncmp(name, database, length) == 0 && name[length] == '.' &&
                   name[length + 1] != '\0'
               ? name + length + 1
               : name;
}

/* The entry's collection without its database; borrowed. */
static const char *bare_collection(const bson_t *entry, const char *database,
                                   const spill_definition_t *definition)
{
    bson_iter_t iter;
    const char *name = text_in(entry, "collection");
    const char *dot = strchr(name, '.');
    if (bson_iter_init_find(&iter, entry, "database") && BSON_ITER_HOLDS_UTF8(&iter))
        return without_database(name, bson_iter_utf8(&iter, NULL));
    const char *bare = without_database(name, database);
    return bare == name && dot && strcmp(dot + 1, definition->collection) == 0 ? dot + 1 : bare;
}

/* Read and check the entry's definition of that name. *there: it has one. */
static spill_code_t read_definition(const char *file, const bson_t *entry, const char *name,
                                    spill_definition_t *definition, bool *there,
                                    spill_error_t *error)
{
    bson_iter_t iter;
    bson_t document;
    const uint8_t *data = NULL;
    uint32_t size = 0;
    if (bson_iter_init_find(&iter, entry, name) && BSON_ITER_HOLDS_DOCUMENT(&iter))
        bson_iter_document(&iter, &size, &data);
    *there = data && bson_init_static(&document, data, size);
    if (!*there)
        return SPILL_OK;
    spill_error_t cause;
    spill_code_t code = spill_definition_from_bson(definition, &document, &cause);
    /* A plan is for new definitions: an entry without the field gets the default. */
    if (code == SPILL_OK && spill_schema_of(definition)->has_referenced_elements &&
        !bson_has_field(&document, "elementIdField"))
        strcpy(definition->element_id_field, SPILL_ELEMENT_ID_FIELD);
    if (code == SPILL_OK)
        code = spill_definition_check(definition, &cause);
    if (code != SPILL_OK)
        return spill_fail(error, SPILL_INVALID, "%s: the %s for %s.%s: %s", file, name,
                          text_in(entry, "collection"), text_in(entry, "path"), cause.message);
    return SPILL_OK;
}

/* Report whether the entry's definition of that name has a field "order". */
static bool has_order(const bson_t *entry, const char *name)
{
    bson_iter_t iter, field;
    return bson_iter_init_find(&iter, entry, name) && BSON_ITER_HOLDS_DOCUMENT(&iter) &&
           bson_iter_recurse(&iter, &field) && bson_iter_find(&field, "order");
}

static bool is_order_missing(const bson_t *entry, bool staged)
{
    return strcmp(text_in(entry, "growsAt"), "unknown") == 0 && !has_order(entry, "definition") &&
           !(staged && has_order(entry, "original"));
}

static spill_code_t read_planned(const char *file, const char *database, const bson_t *entry,
                                 spill_planned_t *planned, spill_error_t *error)
{
    const char *collection = text_in(entry, "collection"), *path = text_in(entry, "path");
    spill_definition_t definition;
    bool there;
    spill_code_t code = read_definition(file, entry, "definition", &definition, &there, error);
    if (code == SPILL_OK && !there)
        return spill_fail(error, SPILL_INVALID,
                          "%s: %s.%s has \"migrate\": true, but no \"definition\"", file,
                          collection, path);
    if (code != SPILL_OK)
        return code;
    spill_planned_init(planned, &definition, bare_collection(entry, database, &definition), path);
    planned->order_missing = is_order_missing(entry, planned->staged);
    code = read_flag(file, entry, "mayBeEmpty", &planned->may_be_empty, error);
    return code == SPILL_OK && planned->staged
               ? read_definition(file, entry, "original", &planned->original, &there, error)
               : code;
}

static spill_code_t read_arrays(const char *file, const char *database, const bson_t *plan,
                                spill_planned_t **arrays, size_t *count, spill_error_t *error)
{
    bson_iter_t iter, entries;
    spill_code_t code = SPILL_OK;
    if (!bson_iter_init_find(&iter, plan, "arrays") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &entries))
        return spill_fail(error, SPILL_INVALID, "%s: it has no array \"arrays\"", file);
    while (code == SPILL_OK && bson_iter_next(&entries)) {
        const uint8_t *data = NULL;
        uint32_t size = 0;
        bson_t entry;
        if (BSON_ITER_HOLDS_DOCUMENT(&entries))
            bson_iter_document(&entries, &size, &data);
        if (!data || !bson_init_static(&entry, data, size))
            return spill_fail(error, SPILL_INVALID, "%s: 'arrays' must contain documents", file);
        bool migrate;
        code = read_flag(file, &entry, "migrate", &migrate, error);
        if (code != SPILL_OK || !migrate)
            continue;
        *arrays = bson_realloc(*arrays, (*count + 1) * sizeof **arrays);
        code = read_planned(file, database, &entry, *arrays + *count, error);
        *count += code == SPILL_OK ? 1 : 0;
    }
    return code;
}

spill_code_t spill_plan_file_arrays(const char *file, const char *database,
                                    spill_planned_t **arrays, size_t *count, spill_error_t *error)
{
    bson_t plan;
    *arrays = NULL;
    *count = 0;
    spill_code_t code = spill_plan_file_read(file, &plan, error);
    if (code == SPILL_OK)
        code = read_arrays(file, database, &plan, arrays, count, error);
    if (code == SPILL_OK && *count == 0)
        code = spill_fail(error, SPILL_INVALID,
                          "%s: nothing to migrate: no entry of 'arrays' has \"migrate\": "
                          "true",
                          file);
    bson_destroy(&plan);
    return code;
}
