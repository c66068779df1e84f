#include "definition/schema.h"

#include "bson/value.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

static bool is_renamed(const spill_definition_t *definition, const char *name)
{
    return definition->element_id_field[0] != '\0' && strcmp(name, "_id") == 0;
}

/* ---- the check of an element ----------------------------------------------------------------- */

static spill_code_t refuse_id(const spill_definition_t *definition, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '_id': the definition has no "
                      "elementIdField (--element-id-field) to store it in; convert '%s' to a "
                      "definition that has one",
                      definition->name, definition->name);
}

static spill_code_t refuse_name(const spill_definition_t *definition, const char *name,
                                spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '%s': the document that keeps the "
                      "element has a field of that name; rename the element's field",
                      definition->name, name);
}

/* Refuse a field with a name from the definition; another definition may have another name. */
static spill_code_t refuse_chosen(const spill_definition_t *definition, const char *name,
                                  const char *what, const char *option, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '%s': the document that keeps the "
                      "element stores %s in a field of that name; rename the element's field, or "
                      "define another %s",
                      definition->name, name, what, option);
}

static spill_code_t check_name(const spill_definition_t *definition, const char *name,
                               spill_error_t *error)
{
    if (strcmp(name, "spill") == 0)
        return refuse_name(definition, name, error);
    if (strcmp(name, "_id") == 0)
        return definition->element_id_field[0] == '\0' ? refuse_id(definition, error) : SPILL_OK;
    if (strcmp(name, definition->page_owner) == 0)
        return refuse_chosen(definition, name, "its owner", "--page-owner", error);
    if (name[0] != '\0' && strcmp(name, definition->element_id_field) == 0)
        return refuse_chosen(definition, name, "the element's _id", "--element-id-field", error);
    return SPILL_OK;
}

spill_code_t spill_stored_element_check(const spill_definition_t *definition,
                                        const spill_value_t *element, const char *except,
                                        spill_error_t *error)
{
    const char *name;
    spill_value_t value;
    if (element->type != BSON_TYPE_DOCUMENT)
        return spill_fail(error, SPILL_INVALID,
                          "an element of '%s' must be a document, because it is stored as one",
                          definition->name);
    spill_fields_t fields = spill_fields_of(element->data);
    while (spill_fields_next(&fields, &name, &value)) {
        if (except != NULL && strcmp(name, except) == 0)
            continue;
        spill_code_t code = check_name(definition, name, error);
        if (code != SPILL_OK)
            return code;
    }
    return SPILL_OK;
}

bool spill_stored_element_same_rules(const spill_definition_t *left,
                                     const spill_definition_t *right)
{
    return strcmp(left->page_owner, right->page_owner) == 0 &&
           strcmp(left->element_id_field, right->element_id_field) == 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Is `name` the first name of the path? */
static bool begins_with(const char *path, const char *name)
{
    size_t length = strlen(name);
    return length > 0 && strncmp(path, name, length) == 0 &&
           (path[length] == '\0' || path[length] == '.');
}

bool spill_stored_element_reserves(const spill_definition_t *definition, const char *path)
{
    bool no_id = definition->element_id_field[0] == '\0';
    return (no_id && begins_with(path, "_id")) || begins_with(path, "spill") ||
           begins_with(path, definition->page_owner) ||
           begins_with(path, definition->element_id_field);
}

void spill_stored_element_path(const spill_definition_t *definition, const char *path,
                               char stored[SPILL_STORED_PATH_SIZE])
{
    bool renamed = definition->element_id_field[0] != '\0' && begins_with(path, "_id");
    snprintf(stored, SPILL_STORED_PATH_SIZE, "%s%s", renamed ? definition->element_id_field : "",
             renamed ? path + strlen("_id") : path);
}

/* ---- documents ------------------------------------------------------------------------------- */

void spill_stored_element_append(const spill_definition_t *definition, const spill_value_t *element,
                                 bson_t *document)
{
    const char *name;
    spill_value_t value;
    spill_fields_t fields = spill_fields_of(element->data);
    while (spill_fields_next(&fields, &name, &value))
        spill_value_append(&value, document,
                           is_renamed(definition, name) ? definition->element_id_field : name);
}

/* Is it a field of the document itself? `spill` and `_id` are, whatever the element has. */
static bool is_own(const spill_definition_t *definition, const char *name)
{
    return strcmp(name, "_id") == 0 || strcmp(name, "spill") == 0 ||
           strcmp(name, definition->page_owner) == 0;
}

bool spill_stored_element_read(const spill_definition_t *definition, const bson_t *document,
                               bson_t *element)
{
    const char *name, *id = definition->element_id_field;
    spill_value_t value;
    bson_init(element);
    if (!bson_has_field(document, definition->page_owner))
        return false;
    spill_fields_t fields = spill_fields_of(bson_get_data(document));
    while (spill_fields_next(&fields, &name, &value)) {
        if (!is_own(definition, name))
            spill_value_append(&value, element,
                               id[0] != '\0' && strcmp(name, id) == 0 ? "_id" : name);
    }
    return true;
}

int64_t spill_stored_element_growth(const spill_definition_t *definition)
{
    size_t length = strlen(definition->element_id_field);
    return length > strlen("_id") ? (int64_t)(length - strlen("_id")) : 0;
}
