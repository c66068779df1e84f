/* Drop a definition, its owners, and its collections. */
#include "tools/definition_jobs.h"

#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "layout/adoption.h"
#include "store/raw_admin.h"
#include "tools/import/import_chunk.h"
#include "tools/migrate/migrate_place.h"
#include "util/error.h"

#include <string.h>

/* ---- owners ---------------------------------------------------------------------------------- */

static spill_code_t drop_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    spill_code_t code = spill_array_drop_owner(context, owner, error);
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

spill_code_t spill_drop_owners(spill_store_t *store, const char *name, bool documents_stay,
                               bool building, spill_error_t *error)
{
    spill_array_t *array;
    SPILL_TRY(spill_array_open(store, name, &array, error));
    array->building = array->building && !building;
    array->documents_stay = documents_stay;
    spill_code_t code = spill_each_owner(array, drop_owner, array, false, error);
    spill_array_close(array);
    return code;
}

/* ---- the collections of a definition without owners ------------------------------------------ */

enum { DOCUMENTS_AT_A_TIME = 1000 };

static bool uses_collection(const spill_definition_t *definition, const char *collection)
{
    return strcmp(definition->collection, collection) == 0 ||
           strcmp(definition->page_collection, collection) == 0;
}

/* Report whether another definition has documents there. */
static spill_code_t is_shared(spill_store_t *store, const spill_definition_t *definition,
                              const char *collection, bool *shared, spill_error_t *error)
{
    spill_definition_t *others;
    size_t count;
    *shared = false;
    spill_code_t code = spill_store_definitions(store, &others, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        *shared = *shared || (strcmp(others[i].name, definition->name) != 0 &&
                              uses_collection(&others[i], collection));
    bson_free(others);
    return code;
}

/* Is the document of the collection to be deleted? */
typedef bool (*is_deleted_fn)(const spill_definition_t *definition, const char *collection,
                              const bson_t *document);

/* {_id: {owner, page}, spill: {incarnation, ...}, ...}; of a window {_id: {owner, window, part},
 * ...}. */
static bool is_page(const spill_definition_t *definition, const char *collection,
                    const bson_t *document)
{
    bool bucket = spill_schema_of(definition)->has_windows;
    const char *paths[] = {bucket ? SPILL_STORED_PAGE_PART : SPILL_STORED_PAGE_NUMBER,
                           SPILL_STORED_PAGE_OWNER, SPILL_STORED_PAGE_INCARNATION};
    bool page = bucket || strcmp(definition->page_collection, collection) == 0;
    for (size_t i = 0; page && i < sizeof paths / sizeof *paths; i++) {
        bson_iter_t iter, found;
        page =
            bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, paths[i], &found);
    }
    return page;
}

static spill_code_t delete_pages(spill_raw_admin_t *admin, const spill_definition_t *definition,
                                 const char *collection, const spill_raw_admin_batch_t *batch,
                                 is_deleted_fn is_deleted, bool *others, spill_error_t *error)
{
    spill_raw_admin_write_t writes[DOCUMENTS_AT_A_TIME];
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        bson_iter_t id;
        bool ours = is_deleted(definition, collection, batch->documents[i]) &&
                    bson_iter_init_find(&id, batch->documents[i], "_id");
        *others = *others || !ours;
        if (ours)
            writes[count++] = (spill_raw_admin_write_t){.kind = SPILL_RAW_ADMIN_DELETE,
                                                        .id = spill_value_from_iter(&id)};
    }
    return count > 0 ? admin->ops->write(admin, collection, writes, count, error) : SPILL_OK;
}

/* Set *after, stored in `last`, to the last _id of the batch. False: no further batch. */
static bool advance(const spill_raw_admin_batch_t *batch, bson_t *last, spill_value_t *after)
{
    bson_iter_t id;
    if (batch->end || batch->count == 0 ||
        !bson_iter_init_find(&id, batch->documents[batch->count - 1], "_id"))
        return false;
    bson_reinit(last);
    spill_value_t value = spill_value_from_iter(&id);
    spill_value_append(&value, last, "");
    if (!bson_iter_init_find(&id, last, ""))
        return false;
    *after = spill_value_from_iter(&id);
    return true;
}

static spill_code_t empty_collection(spill_raw_admin_t *admin, const spill_definition_t *definition,
                                     const char *collection, is_deleted_fn is_deleted, bool *others,
                                     spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t last = BSON_INITIALIZER;
    spill_value_t after;
    spill_raw_admin_read_t read = {.collection = collection, .limit = DOCUMENTS_AT_A_TIME};
    for (bool more = true; more;) {
        SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
        SPILL_TRY(admin->ops->read(admin, &read, &batch, error));
        SPILL_TRY(delete_pages(admin, definition, collection, &batch, is_deleted, others, error));
        more = advance(&batch, &last, &after);
        read.after = &after;
    }
    return SPILL_OK;
}

static spill_code_t drop_emptied(spill_store_t *store, spill_raw_admin_t *admin,
                                 const spill_definition_t *definition, const char *collection,
                                 is_deleted_fn is_deleted, spill_error_t *error)
{
    bool shared = false, others = false;
    SPILL_TRY(is_shared(store, definition, collection, &shared, error));
    if (shared)
        return SPILL_OK;
    SPILL_TRY(empty_collection(admin, definition, collection, is_deleted, &others, error));
    return others ? SPILL_OK : admin->ops->drop(admin, collection, error);
}

static void close_admin(spill_raw_admin_t **admin)
{
    spill_raw_admin_close(*admin);
}

spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error)
{
    const char *pages = definition->page_collection, *heads = definition->collection;
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    if (pages[0] != '\0')
        SPILL_TRY(drop_emptied(store, admin, definition, pages, is_page, error));
    return strcmp(heads, pages) != 0 ? drop_emptied(store, admin, definition, heads, is_page, error)
                                     : SPILL_OK;
}

/* ---- tombstones ------------------------------------------------------------------------------ */

/* Only dropped pages are closed and have no element: a living page is never deleted here. */
static bool is_tombstone(const spill_definition_t *definition, const char *collection,
                         const bson_t *document)
{
    bson_iter_t iter, closed, elements;
    const char *array =
        spill_schema_of(definition)->has_windows ? definition->array : definition->page_array;
    return is_page(definition, collection, document) && bson_iter_init(&iter, document) &&
           bson_iter_find_descendant(&iter, SPILL_STORED_ROOT "." SPILL_STORED_CLOSED, &closed) &&
           bson_iter_as_bool(&closed) && bson_iter_init(&iter, document) &&
           bson_iter_find_descendant(&iter, array, &elements) && BSON_ITER_HOLDS_ARRAY(&elements) &&
           bson_iter_recurse(&elements, &iter) && !bson_iter_next(&iter);
}

spill_code_t spill_drop_tombstones(spill_store_t *store, const char *uri, const char *name,
                                   spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    SPILL_TRY(spill_store_definition(store, name, &definition, error));
    const char *collection = spill_schema_of(&definition)->has_windows ? definition.collection
                                                                       : definition.page_collection;
    if (collection[0] == '\0')
        return SPILL_OK;
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    return drop_emptied(store, admin, &definition, collection, is_tombstone, error);
}

/* The definition, its owners, and what they leave. */
static spill_code_t drop_all(spill_store_t *store, const char *uri, const char *name,
                             spill_error_t *error)
{
    SPILL_TRY(spill_drop_owners(store, name, false, true, error));
    if (uri)
        SPILL_TRY(spill_drop_tombstones(store, uri, name, error));
    return spill_store_drop(store, name, error);
}

/* ---- a definition that a migration uses ------------------------------------------------------ */

/* Drop what is left of an original: the caller does not need it. Its checkpoint continues to say
 * that the arrays are in the planned definition and that none is left here. */
static spill_code_t drop_original(spill_store_t *store, const char *uri, const char *name,
                                  const char *planned, spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    SPILL_TRY(spill_convert_checkpoint_load(store, name, &checkpoint, error));
    if (strcmp(checkpoint.as, planned) != 0)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' has the arrays that `spillway migrate' copies to '%s': migrate "
                          "--finish drops it, and migrate --undo unmanages its arrays",
                          name, planned);
    if (!checkpoint.emptied)
        SPILL_TRY(spill_convert_checkpoint_save(store, name, planned, true, &checkpoint, error));
    return drop_all(store, uri, name, error);
}

/* Report whether the original is being dropped, or no longer exists. */
static spill_code_t original_ends(spill_store_t *store, const char *name, const char *original,
                                  bool *ends, spill_error_t *error)
{
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    spill_definition_t definition;
    SPILL_TRY(spill_convert_checkpoint_load(store, original, &checkpoint, error));
    spill_code_t code = spill_store_definition(store, original, &definition, error);
    *ends = code == SPILL_NOT_FOUND || strcmp(checkpoint.as, name) == 0;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/* Delete the building's checkpoint last: as long as it exists, the definition is incomplete. */
static spill_code_t drop_building(spill_store_t *store, const char *uri, const char *name,
                                  const char *original, spill_error_t *error)
{
    bool ends;
    SPILL_TRY(original_ends(store, name, original, &ends, error));
    if (ends)
        return spill_fail(error, SPILL_REFUSED,
                          "'%s' is complete, and '%s' is being dropped: it may be the only copy. "
                          "Run `spillway migrate' with --finish; then it may be dropped",
                          name, original);
    SPILL_TRY(drop_all(store, uri, name, error));
    return spill_import_checkpoints_drop(store, name, error);
}

spill_code_t spill_drop_definition(spill_store_t *store, const char *uri, const char *name,
                                   spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    char planned[SPILL_NAME_SIZE];
    SPILL_TRY(spill_migrate_place_delete(store, name, error));
    SPILL_TRY(spill_building_of_original(store, name, planned, error));
    if (planned[0] != '\0')
        return drop_original(store, uri, name, planned, error);
    SPILL_TRY(spill_building_load(store, name, &building, error));
    if (building.stored)
        return drop_building(store, uri, name, building.original, error);
    SPILL_TRY(spill_import_checkpoints_drop(store, name, error));
    SPILL_TRY(spill_adopters_sweep(store, name, error));
    return drop_all(store, uri, name, error);
}
