/* Save and find definitions, and the records of definitions under construction. */
#include "core/array.h"
#include "core/building.h"
#include "store/job.h"
#include "store/timed.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 20 };

static int64_t larger(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

static void remember_largest(spill_definition_t *next, const spill_bounds_t *before)
{
    const spill_bounds_t *now = &next->bounds;
    next->largest = (spill_bounds_t){
        .threshold = larger(now->threshold, before->threshold),
        .page_capacity = larger(now->page_capacity, before->page_capacity),
        .head_bytes_max = larger(now->head_bytes_max, before->head_bytes_max),
        .page_bytes_max = larger(now->page_bytes_max, before->page_bytes_max),
    };
}

/* Check the change of a definition with data. */
static spill_code_t check_compatible(const spill_store_t *store, const spill_definition_t *now,
                                     const spill_definition_t *next, spill_error_t *error)
{
    spill_definition_t with_id = *now;
    spill_definition_t without = *next;
    bool lacks_id = now->id_field[0] == '\0' && next->id_field[0] != '\0';
    if (store->ops->others_write && spill_definition_adds_id(now, next))
        strcpy(with_id.id_field, next->id_field);
    spill_code_t code = spill_definition_compatible(&with_id, next, error);
    without.id_field[0] = '\0';
    without.unique = now->unique;
    if (code != SPILL_REFUSED || !lacks_id ||
        spill_definition_compatible(now, &without, NULL) != SPILL_OK)
        return code;
    return spill_fail(error, code,
                      "definition '%s' has data: %s. Define another name with --id-field%s, and "
                      "`spillway export' and `spillway import' copy the elements there",
                      now->name,
                      next->unique ? "uniqueness (--unique) cannot be added, because elements with "
                                     "one id may be there already"
                                   : "an idField can be added only to layout outlier on a server; "
                                     "here stored elements would have no index entries",
                      next->unique ? " and --unique" : "");
}

/* May `next` replace `now`? Without an owner everything may change. */
static spill_code_t check_change(spill_store_t *store, const spill_definition_t *now,
                                 const spill_definition_t *next, spill_error_t *error)
{
    spill_code_t code = check_compatible(store, now, next, error);
    if (code != SPILL_REFUSED)
        return code;
    spill_error_t failure;
    spill_binding_t binding;
    const spill_item_t *item = NULL;
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {.store = store,
                             .definition = now,
                             .binding = &binding,
                             .query = {.list = SPILL_LIST_OWNERS, .limit = 1}};
    spill_code_t listed = store->ops->bind(store, now, &binding, &failure);
    if (listed == SPILL_OK)
        listed = spill_cursor_next(&cursor, &item, &failure);
    if (listed == SPILL_OK)
        return item ? SPILL_REFUSED : SPILL_OK;
    if (error != NULL)
        *error = failure;
    return listed;
}

/* Compare with the definition `name`, if it was not dropped since its name was read. */
static spill_code_t check_other(spill_store_t *store, const spill_definition_t *definition,
                                const char *name, spill_error_t *error)
{
    spill_definition_t other;
    SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, &stored, error));
    if (stored == NULL)
        return SPILL_OK;
    SPILL_TRY(spill_store_read_definition(store, name, stored, &other, error));
    return spill_definition_beside(definition, &other, error);
}

spill_code_t spill_store_check_others(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(spill_store_definitions_beside(store, definition, &names, error));
    for (size_t i = 0; i < names.count; i++) {
        const char *name = spill_listing_item(&names, i).text;
        if (strcmp(name, definition->name) != 0)
            SPILL_TRY(check_other(store, definition, name, error));
    }
    return SPILL_OK;
}

/*
 * `document` has replaced `stored`. At the same moment another program may have saved a definition
 * that clashes with it, and neither check saw the other one. Compare again: at least one of the two
 * programs now sees both, and undoes its own.
 */
static spill_code_t compare_again(spill_store_t *store, const spill_definition_t *definition,
                                  const bson_t *document, const bson_t *stored,
                                  spill_error_t *error)
{
    bool done = true;
    const char *name = definition->name;
    spill_code_t code = spill_store_check_others(store, definition, error);
    if (code == SPILL_OK)
        return code;
    spill_code_t back =
        stored != NULL ? store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, name, document,
                                                 stored, &done, NULL)
                       : store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, name, NULL);
    if (back == SPILL_OK && done)
        return code;
    return spill_fail_prefix(error, SPILL_UNKNOWN, "definition '%s' may have been saved", name);
}

/* A program defines its preset again after an operator has added an id_field: keep that one. */
static bool keep_id(const spill_store_t *store, const spill_definition_t *now,
                    spill_definition_t *next)
{
    bool keeps = store->ops->others_write && !next->unique && spill_definition_adds_id(next, now);
    if (keeps)
        strcpy(next->id_field, now->id_field);
    return keeps;
}

/* Replace `stored` (NULL: nothing) by `definition`. An undo that is in progress stays so. */
static spill_code_t put_over(spill_store_t *store, const spill_definition_t *definition,
                             const bson_t *stored, bool *done, spill_error_t *error)
{
    spill_stored_definition_t next = {.definition = *definition};
    next.definition.largest = next.definition.bounds;
    if (stored != NULL) {
        spill_stored_definition_t now;
        spill_code_t code = spill_stored_definition_from_bson(&now, stored, error);
        if (code == SPILL_OK)
            code = check_change(store, &now.definition, &next.definition, error);
        if (code == SPILL_REFUSED &&
            spill_definition_keep_without_id(&now.definition, &next.definition))
            code = check_change(store, &now.definition, &next.definition, error);
        if (code == SPILL_REFUSED && keep_id(store, &now.definition, &next.definition))
            code = check_change(store, &now.definition, &next.definition, error);
        if (code != SPILL_OK)
            return code;
        remember_largest(&next.definition, &now.definition.largest);
        next.undoing = now.undoing;
    }
    bson_t document;
    spill_stored_definition_to_bson(&next, &document);
    spill_code_t code = SPILL_OK;
    bool put = false;
    *done = stored != NULL && bson_equal(stored, &document);
    if (!*done)
        code = spill_store_check_others(store, &next.definition, error);
    if (code == SPILL_OK && !*done)
        code = store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, definition->name, stored,
                                       &document, &put, error);
    if (code == SPILL_OK && put)
        code = compare_again(store, &next.definition, &document, stored, error);
    *done = *done || put;
    bson_destroy(&document);
    return code;
}

static spill_code_t save(spill_store_t *store, const spill_definition_t *definition,
                         spill_error_t *error)
{
    bool done = false;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
        SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, definition->name,
                                          &stored, error));
        SPILL_TRY(put_over(store, definition, stored, &done, error));
        if (done)
            return SPILL_OK;
    }
    return spill_fail_retryable(error, SPILL_CONFLICT,
                                "other programs keep changing definition '%s'", definition->name);
}

spill_code_t spill_store_define(spill_store_t *store, const spill_definition_t *definition,
                                spill_error_t *error)
{
    SPILL_CHECK_STORE(error, store, definition);
    SPILL_TRY(spill_definition_check(definition, error));
    spill_deadline_t outer = spill_timed_suspend();
    pthread_mutex_lock(&store->defining);
    spill_code_t code = save(store, definition, error);
    pthread_mutex_unlock(&store->defining);
    spill_deadline_end(outer);
    return code;
}

/* "there is no definition 'x'; there are: a, b" */
static spill_code_t fail_unknown(spill_store_t *store, const char *name, spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_DEFINITION, &names, error));
    char list[256] = "none";
    size_t used = 0;
    for (size_t i = 0; i < names.count && used < sizeof list - SPILL_NAME_SIZE; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%.100s", used > 0 ? ", " : "",
                                 spill_listing_item(&names, i).text);
    return spill_fail(error, SPILL_NOT_FOUND,
                      "there is no definition '%.100s' in the store (there are: %s)", name, list);
}

spill_code_t spill_store_read_definition(spill_store_t *store, const char *name,
                                         const bson_t *stored, spill_definition_t *definition,
                                         spill_error_t *error)
{
    if (stored == NULL)
        return fail_unknown(store, name, error);
    spill_code_t code = spill_definition_from_bson(definition, stored, error);
    if (code == SPILL_OK && strcmp(definition->name, name) != 0)
        code = spill_fail(error, SPILL_CORRUPT, "definition: field 'name' is '%.100s'",
                          definition->name);
    if (code == SPILL_CORRUPT || code == SPILL_FORMAT)
        spill_fail_prefix(error, code, "the record of definition '%.100s'", name);
    return code;
}

spill_code_t spill_store_definition(spill_store_t *store, const char *name,
                                    spill_definition_t *definition, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    *definition = (spill_definition_t){0};
    SPILL_CHECK_STORE(error, store, name);
    SPILL_SCOPED(spill_free_document) bson_t *stored = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, &stored, error));
    return spill_store_read_definition(store, name, stored, definition, error);
}

spill_code_t spill_store_definitions(spill_store_t *store, spill_definition_t **definitions,
                                     size_t *count, spill_error_t *error)
{
    if (definitions != NULL)
        *definitions = NULL;
    if (count != NULL)
        *count = 0;
    SPILL_CHECK_STORE(error, store, definitions, count);
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_DEFINITION, &names, error));
    if (names.count > 0)
        *definitions = bson_malloc0(names.count * sizeof **definitions);
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < names.count; i++) {
        code = spill_store_definition(store, spill_listing_item(&names, i).text,
                                      *definitions + *count, error);
        if (code == SPILL_OK)
            ++*count;
        else if (code == SPILL_NOT_FOUND) /* dropped since its name was read */
            code = SPILL_OK;
    }
    if (code != SPILL_OK) {
        bson_free(*definitions);
        *definitions = NULL;
        *count = 0;
    }
    return code;
}

/* ---- definitions under construction ---------------------------------------------------------- */

static const spill_field_t fields[] = {SPILL_FIELD(CHARS, spill_building_t, original, "original"),
                                       SPILL_FIELD(BOOL, spill_building_t, undoing, "undoing")};
static const spill_record_t record = SPILL_RECORD("migration", spill_building_t, fields);

static bool has_original(const void *building)
{
    return ((const spill_building_t *)building)->original[0] != '\0';
}

static const spill_job_kind_t kind = {.suffix = SPILL_CATALOG_BUILDING,
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
    _Static_assert(sizeof SPILL_CATALOG_BUILDING <= SPILL_BUILDING_NAME_SIZE - SPILL_NAME_SIZE + 1,
                   "room for it");
    snprintf(entry, SPILL_BUILDING_NAME_SIZE, "%.*s" SPILL_CATALOG_BUILDING, SPILL_NAME_SIZE - 1,
             name);
}

void spill_building_release(spill_building_t *building)
{
    spill_job_release(&kind, building);
}

/* If it is the entry of a migration, copy the definition's name to `name`. */
static bool split_entry(const char *entry, char *name)
{
    size_t length = strlen(entry), end = sizeof SPILL_CATALOG_BUILDING - 1;
    if (length <= end || length - end >= SPILL_NAME_SIZE ||
        strcmp(entry + length - end, SPILL_CATALOG_BUILDING) != 0)
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
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_JOB, &names, error));
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
