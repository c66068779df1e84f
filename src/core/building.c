#include "core/building.h"

#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* The record's name in the catalog. Those of imports end with 16 hexadecimal digits. */
#define MARK_NAME_SIZE (SPILL_NAME_SIZE + 16)

static void checkpoint_name(const char *definition, char name[MARK_NAME_SIZE])
{
    snprintf(name, MARK_NAME_SIZE, "%s:migrate", definition);
}

static bool decode(spill_building_t *building)
{
    bson_iter_t original, undoing;
    if (!bson_iter_init_find(&original, building->stored, "original") ||
        !BSON_ITER_HOLDS_UTF8(&original) ||
        !bson_iter_init_find(&undoing, building->stored, "undoing") ||
        !BSON_ITER_HOLDS_BOOL(&undoing))
        return false;
    int length = snprintf(building->original, sizeof building->original, "%s",
                          bson_iter_utf8(&original, NULL));
    building->undoing = bson_iter_bool(&undoing);
    return length > 0 && length < (int)sizeof building->original;
}

spill_code_t spill_building_load(spill_store_t *store, const char *name, spill_building_t *building,
                                 spill_error_t *error)
{
    char entry[MARK_NAME_SIZE];
    *building = (spill_building_t){0};
    checkpoint_name(name, entry);
    spill_code_t code =
        store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, entry, &building->stored, error);
    if (code == SPILL_OK && building->stored && !decode(building))
        code = spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of the migration into '%s' cannot be read; restore a "
                          "backup",
                          store->uri, name);
    return code;
}

/* Is the catalog's entry such a record? Copies the definition's name to `name`. */
static bool is_mark(const char *entry, char *name)
{
    static const char suffix[] = ":migrate";
    size_t length = strlen(entry), end = sizeof suffix - 1;
    if (length <= end || length - end >= SPILL_NAME_SIZE ||
        strcmp(entry + length - end, suffix) != 0)
        return false;
    memcpy(name, entry, length - end);
    name[length - end] = '\0';
    return true;
}

spill_code_t spill_building_of_original(spill_store_t *store, const char *original, char *name,
                                        spill_error_t *error)
{
    bson_t names;
    bson_iter_t iter;
    bool found = false;
    spill_code_t code = store->ops->catalog_names(store, SPILL_CATALOG_IMPORT, &names, error);
    if (code != SPILL_OK)
        return code;
    bson_iter_init(&iter, &names);
    while (code == SPILL_OK && !found && bson_iter_next(&iter)) {
        spill_building_t building = {0};
        if (!is_mark(bson_iter_utf8(&iter, NULL), name))
            continue;
        code = spill_building_load(store, name, &building, error);
        found = code == SPILL_OK && strcmp(building.original, original) == 0;
        spill_building_release(&building);
    }
    if (!found)
        name[0] = '\0';
    bson_destroy(&names);
    return code;
}

void spill_building_release(spill_building_t *building)
{
    bson_destroy(building->stored);
    *building = (spill_building_t){0};
}

spill_code_t spill_building_save(spill_store_t *store, const char *name, const char *original,
                                 bool undoing, spill_building_t *building, spill_error_t *error)
{
    char entry[MARK_NAME_SIZE];
    checkpoint_name(name, entry);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "definition", name);
    BSON_APPEND_UTF8(&document, "original", original);
    BSON_APPEND_BOOL(&document, "undoing", undoing);
    bool done = building->stored && bson_equal(building->stored, &document);
    spill_code_t code = SPILL_OK;
    if (!done)
        code = store->ops->catalog_put(store, SPILL_CATALOG_IMPORT, entry, building->stored,
                                       &document, &done, error);
    if (code == SPILL_OK && !done)
        code = spill_fail(error, SPILL_CONFLICT,
                          "another migration into '%s' has gone on meanwhile: see what it does, "
                          "and start again",
                          name);
    if (code == SPILL_OK) {
        bson_destroy(building->stored);
        building->stored = bson_copy(&document);
        decode(building);
    }
    bson_destroy(&document);
    return code;
}

spill_code_t spill_building_end(spill_store_t *store, const char *name, spill_error_t *error)
{
    char entry[MARK_NAME_SIZE];
    checkpoint_name(name, entry);
    return store->ops->catalog_delete(store, SPILL_CATALOG_IMPORT, entry, error);
}

spill_code_t spill_array_check_built(const spill_array_t *array, spill_error_t *error)
{
    if (!array->building)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is still being made by `spillway migrate': it can be read, and takes "
                      "changes after --finish, when it is opened again; until then change the "
                      "original",
                      array->definition.name);
}
