#include "tools/planned.h"

#include "definition/schema.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* The original's head leaves room for the planned array in the same document. */
enum { PART_OF_HEAD = 4 };

bool spill_planned_in_place(const spill_definition_t *definition)
{
    return definition->layout == SPILL_LAYOUT_OUTLIER &&
           spill_schema_of(definition)->appends_to_head;
}

/* If the name does not fit, leave it empty: spill_definition_check refuses it. */
static void set_name(char *name, const char *text, const char *suffix)
{
    if (snprintf(name, SPILL_NAME_SIZE, "%s%s", text, suffix) >= SPILL_NAME_SIZE)
        name[0] = '\0';
}

void spill_planned_init(spill_planned_t *planned, const spill_definition_t *definition,
                        const char *collection, const char *path)
{
    spill_definition_t *original = &planned->original;
    planned->definition = *definition;
    planned->staged = !spill_planned_in_place(definition);
    planned->order_missing = false;
    planned->may_be_empty = false;
    spill_definition_init(original, "original");
    set_name(original->name, definition->name, ".original");
    set_name(original->collection, collection, "");
    set_name(original->array, path, "");
    set_name(original->page_array, path, "");
    set_name(original->page_collection, definition->name, ".original");
    set_name(original->pages_field, path, "Pages");
    strcpy(original->page_owner, "owner");
    original->count_field[0] = '\0';
    original->overflow_field[0] = '\0';
    original->order = definition->order;
    original->bounds.head_bytes_max = definition->bounds.head_bytes_max / PART_OF_HEAD + 1;
    original->largest = original->bounds;
}

/* Refuse a cap in the original's documents: what it keeps would depend on the other fields. */
static spill_code_t check_cap(const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *definition = &planned->definition;
    if (!spill_schema_of(definition)->is_capped ||
        strcmp(definition->collection, planned->original.collection) != 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is capped, and what it keeps would depend on the array that is still "
                      "in the documents of '%s': give it another collection",
                      definition->name, definition->collection);
}

spill_code_t spill_planned_check(const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *original = &planned->original;
    if (!planned->staged)
        return SPILL_OK;
    spill_error_t cause;
    spill_code_t code = spill_definition_check(original, &cause);
    if (code != SPILL_OK)
        return spill_fail(error, code, "the original of '%s': %s", planned->definition.name,
                          cause.message);
    if (!spill_planned_in_place(original))
        return spill_fail(error, SPILL_INVALID,
                          "the original of '%s' must have layout outlier, and keep the newest",
                          planned->definition.name);
    if (strcmp(planned->definition.name, original->name) == 0)
        return spill_fail(error, SPILL_INVALID, "'%s' and its original have the same name",
                          original->name);
    code = spill_definition_beside(&planned->definition, original, error);
    if (code == SPILL_OK)
        code = check_cap(planned, error);
    return code;
}
