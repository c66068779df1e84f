#include "tools/import/import_names.h"

#include "bson/element_fields.h"
#include "bson/field_path.h"
#include "definition/schema.h"
#include "util/error.h"

#include <ctype.h>
#include <string.h>

/* The parts that are no names, and all names. */
enum { LAYOUT, KEEP, ORDER, NAMES, PARTS = NAMES + SPILL_NAME_FIELDS };

static const char *label_of(size_t part)
{
    static const char *const labels[NAMES] = {
        [LAYOUT] = "layout", [KEEP] = "keep", [ORDER] = "order"};
    return part < NAMES ? labels[part] : spill_name_fields[part - NAMES].label;
}

/*
 * Names of the definition itself and of statistics are not read from documents. An id_field
 * matters only if it stores elements whole.
 */
static const char *name_of(const spill_definition_t *definition, const spill_name_field_t *field)
{
    const char *name = spill_definition_get_name(definition, field);
    const spill_schema_t *schema = spill_schema_of(definition);
    switch (field->role) {
    case SPILL_NAME_OF_COLLECTION:
    case SPILL_NAME_OF_HEAD_FIELD:
    case SPILL_NAME_OF_PAGE_FIELD:
    case SPILL_NAME_OF_BUCKET_FIELD:
        return schema->has_pages || !field->pages ? name : "";
    case SPILL_NAME_OF_ELEMENT_ID:
        return schema->has_referenced_elements && spill_is_whole_element(name) ? name : "";
    default:
        return "";
    }
}

static const char *value_of(const spill_definition_t *definition, size_t part)
{
    switch (part) {
    case LAYOUT:
        return spill_schema_of(definition)->name;
    case KEEP:
        return spill_keep_name(definition->keep);
    case ORDER:
        return spill_array_order_name(definition->order);
    default:
        return name_of(definition, &spill_name_fields[part - NAMES]);
    }
}

void spill_import_names_append(const spill_definition_t *definition, bson_t *names)
{
    for (size_t part = 0; part < PARTS; part++) {
        const char *value = value_of(definition, part);
        if (value && value[0] != '\0')
            bson_append_utf8(names, label_of(part), -1, value, -1);
    }
}

/* "pageOwner": --page-owner. */
static void option_of(const char *label, char option[SPILL_NAME_SIZE])
{
    size_t length = 0;
    for (; *label != '\0' && length + 3 < SPILL_NAME_SIZE; label++) {
        if (isupper((unsigned char)*label))
            option[length++] = '-';
        option[length++] = (char)tolower((unsigned char)*label);
    }
    option[length] = '\0';
}

static spill_code_t fail_part(const spill_definition_t *definition, const char *label,
                              const char *theirs, const char *ours, spill_error_t *error)
{
    char option[SPILL_NAME_SIZE];
    option_of(label, option);
    return spill_fail(error, SPILL_PARSE,
                      "%s is '%s' in the export, and '%s' in '%s': define '%s' with --%s '%s', "
                      "import, and then use `spillway convert' for others",
                      label, theirs, ours, definition->name, definition->name, option, theirs);
}

spill_code_t spill_import_names_check(const spill_definition_t *definition,
                                      const spill_value_t *names, bool with_keep,
                                      spill_error_t *error)
{
    for (size_t part = 0; part < PARTS; part++) {
        const char *rest, *theirs = "", *ours = value_of(definition, part);
        spill_value_t found;
        uint32_t length;
        if (part == KEEP && !with_keep)
            continue;
        if (spill_value_field(names, label_of(part), &rest, &found)) {
            if (found.type != BSON_TYPE_UTF8)
                return spill_fail(error, SPILL_PARSE, "'%s' of the line's definition is no text",
                                  label_of(part));
            theirs = spill_value_text(&found, &length);
        }
        if (strcmp(theirs, ours ? ours : "") != 0)
            return fail_part(definition, label_of(part), theirs, ours ? ours : "", error);
    }
    return SPILL_OK;
}
