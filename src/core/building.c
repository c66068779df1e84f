#include "core/building.h"

#include "store/job.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

#define SUFFIX ":migrate"

static const spill_field_t fields[] = {SPILL_FIELD(CHARS, spill_building_t, original, "original"),
                                       SPILL_FIELD(BOOL, spill_building_t, undoing, "undoing")};
static const spill_record_t record = SPILL_RECORD("migration", spill_building_t, fields);

static bool has_original(const void *building)
{
    return ((const spill_building_t *)building)->original[0] != '\0';
}

static const spill_job_kind_t kind = {.suffix = SUFFIX,
                                      .activity = "the migration into",
                                      .record = &record,
                                      .named = true,
                                      .stored = offsetof(spill_building_t, stored),
                                      .is_good = has_original};

spill_code_t spill_building_load(spill_store_t *store, const char *name, spill_building_t *building,
                                 spill_error_t *error)
{
    return spill_job_load(&(spill_job_catalog_t){.store = store}, &kind, name, building, error);
}

spill_code_t spill_building_load_entry(spill_store_t *store, const char *name, bson_t *entry,
                                       spill_building_t *building, spill_error_t *error)
{
    return spill_job_load_entry(&(spill_job_catalog_t){.store = store}, &kind, name, entry,
                                building, error);
}

void spill_building_entry_name(const char *name, char *entry)
{
    _Static_assert(sizeof SUFFIX <= SPILL_BUILDING_NAME_SIZE - SPILL_NAME_SIZE + 1, "room for it");
    snprintf(entry, SPILL_BUILDING_NAME_SIZE, "%.*s" SUFFIX, SPILL_NAME_SIZE - 1, name);
}

void spill_building_release(spill_building_t *building)
{
    spill_job_release(&kind, building);
}

/* If it is the entry of a migration, copy the definition's name to `name`. */
static bool split_entry(const char *entry, char *name)
{
    size_t length = strlen(entry), end = sizeof SUFFIX - 1;
    if (length <= end || length - end >= SPILL_NAME_SIZE ||
        strcmp(entry + length - end, SUFFIX) != 0)
        return false;
    memcpy(name, entry, length - end);
    name[length - end] = '\0';
    return true;
}

spill_code_t spill_building_of_original(spill_store_t *store, const char *original, char *name,
                                        spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    name[0] = '\0';
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_IMPORT, &names, error));
    for (size_t i = 0; i < names.count; i++) {
        char candidate[SPILL_NAME_SIZE];
        SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
        if (!split_entry(spill_listing_item(&names, i).text, candidate))
            continue;
        SPILL_TRY(spill_building_load(store, candidate, &building, error));
        if (strcmp(building.original, original) == 0) {
            memcpy(name, candidate, sizeof candidate);
            return SPILL_OK;
        }
    }
    return SPILL_OK;
}

spill_code_t spill_building_save(spill_store_t *store, const char *name, const char *original,
                                 bool undoing, spill_building_t *building, spill_error_t *error)
{
    spill_building_t next = {.undoing = undoing, .stored = building->stored};
    if (building->stored && building->undoing == undoing &&
        strcmp(building->original, original) == 0)
        return SPILL_OK;
    snprintf(next.original, sizeof next.original, "%s", original);
    SPILL_TRY(spill_job_save(&(spill_job_catalog_t){.store = store}, &kind, name, &next, error));
    *building = next;
    return SPILL_OK;
}

spill_code_t spill_building_end(spill_store_t *store, const char *name, spill_error_t *error)
{
    return spill_job_delete(&(spill_job_catalog_t){.store = store}, &kind, name, error);
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
