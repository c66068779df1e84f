#include "tools/import/import_fields.h"

#include "bson/field_path.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <string.h>

static spill_code_t check_name(const char *name, spill_error_t *error)
{
    bool good = name[0] != '\0' && name[0] != '$' && !strchr(name, '.');
    return good ? SPILL_OK
                : spill_fail(error, SPILL_PARSE,
                             "--fields cannot keep the field '%s': a head's field has a name "
                             "without dots that does not begin with $",
                             name);
}

/* The fields of the definition's heads that are its own. */
typedef struct own_fields {
    const char *paths[SPILL_OWN_FIELDS_MAX + 1];
    size_t count;
} own_fields_t;

static own_fields_t own_fields_of(const spill_definition_t *definition)
{
    own_fields_t own = {.count = 0};
    if (definition) {
        own.count = spill_own_fields(definition, own.paths);
        own.paths[own.count++] = SPILL_STORED_ROOT;
    }
    return own;
}

/* Refuse a field that would replace one of the definition's own, or a document around it. */
static spill_code_t check_clash(const spill_left_out_t *left, const own_fields_t *own,
                                const char *path, spill_error_t *error)
{
    for (size_t i = 0; i < own->count; i++)
        if (spill_paths_overlap(own->paths[i], path))
            return spill_fail(error, SPILL_PARSE,
                              "--fields cannot keep the field '%s': '%s' is a field of the heads "
                              "of '%s' itself; define '%s' with other names for its fields, or "
                              "import without --fields",
                              path, own->paths[i], left->definition->name, left->definition->name);
    return SPILL_OK;
}

/* Is one of the fields inside of the field at the path? */
static bool are_around(const char *const *paths, size_t count, const char *path)
{
    for (size_t i = 0; i < count; i++)
        if (spill_starts_with_part(paths[i], path) && strcmp(paths[i], path) != 0)
            return true;
    return false;
}

/* Has another definition on the same heads this field (`around`: a field inside of it)? */
static bool is_of_another(const spill_left_out_t *left, const char *path, bool around)
{
    for (size_t i = 0; i < left->stored_count; i++) {
        const spill_definition_t *one = &left->stored[i];
        const char *own[SPILL_OWN_FIELDS_MAX];
        if (strcmp(one->collection, left->collection) != 0 || strcmp(one->name, left->name) == 0)
            continue;
        size_t count = spill_own_fields(one, own);
        for (size_t k = 0; k < count; k++)
            if (around ? are_around(&own[k], 1, path) : strcmp(own[k], path) == 0)
                return true;
    }
    return false;
}

static bool is_left_out(const spill_left_out_t *left, const char *path)
{
    for (size_t i = 0; i < left->count; i++)
        if (strcmp(left->paths[i], path) == 0)
            return true;
    return false;
}

static spill_code_t append_fields(const spill_value_t *document, const char *prefix,
                                  const spill_left_out_t *left, bson_t *set, spill_error_t *error);

static spill_code_t append_field(const spill_value_t *value, const char *name, const char *path,
                                 const spill_left_out_t *left, bson_t *set, spill_error_t *error)
{
    const own_fields_t own = own_fields_of(left->definition);
    if (is_left_out(left, path) || strcmp(path, "_id") == 0 || is_of_another(left, path, false))
        return SPILL_OK;
    SPILL_TRY(check_name(name, error));
    bool around = (!left->whole && are_around(left->paths, left->count, path)) ||
                  are_around(own.paths, own.count, path) || is_of_another(left, path, true);
    if (around && value->type == BSON_TYPE_DOCUMENT)
        return append_fields(value, path, left, set, error);
    SPILL_TRY(check_clash(left, &own, path, error));
    spill_value_append(value, set, path);
    return SPILL_OK;
}

static spill_code_t append_fields(const spill_value_t *document, const char *prefix,
                                  const spill_left_out_t *left, bson_t *set, spill_error_t *error)
{
    spill_value_t value;
    const char *name;
    spill_fields_t fields = spill_fields_of(document->data);
    while (spill_fields_next(&fields, &name, &value)) {
        char *path = bson_strdup_printf("%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", name);
        spill_code_t code = append_field(&value, name, path, left, set, error);
        bson_free(path);
        SPILL_TRY(code);
    }
    return SPILL_OK;
}

spill_code_t spill_import_other_fields(const spill_value_t *document, const spill_left_out_t *left,
                                       bson_t *set, spill_error_t *error)
{
    return append_fields(document, "", left, set, error);
}
