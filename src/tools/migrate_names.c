#include "tools/migrate_names.h"

#include "core/array.h"
#include "store/raw_admin.h"
#include "tools/import_checkpoint.h"
#include "util/error.h"

#include <string.h>

/* ---- before a migration ---------------------------------------------------------------------- */

static void append_exists(bson_t *filter, const char *field, bool exists)
{
    bson_t condition;
    BSON_APPEND_DOCUMENT_BEGIN(filter, field, &condition);
    BSON_APPEND_BOOL(&condition, "$exists", exists);
    bson_append_document_end(filter, &condition);
}

/* Find a document with an unmanaged array and a field of the definition's: ADOPT refuses it. */
static spill_code_t check_field(spill_raw_admin_t *admin, const spill_definition_t *definition,
                                const char *field, char **remark, spill_error_t *error)
{
    bson_t filter = BSON_INITIALIZER;
    spill_raw_admin_batch_t batch = {0};
    append_exists(&filter, definition->array, true);
    append_exists(&filter, "spill", false);
    append_exists(&filter, field, true);
    spill_raw_admin_read_t what = {
        .collection = definition->collection, .filter = &filter, .ids_only = true, .limit = 1};
    spill_code_t code = admin->ops->read(admin, &what, &batch, error);
    if (code == SPILL_OK && batch.count > 0) {
        char *id = bson_as_relaxed_extended_json(batch.documents[0], NULL);
        *remark = bson_strdup_printf(
            "'%s': documents of '%s' have a field '%s' already and would be skipped, the first "
            "is %s: give the plan's definition another name for that field",
            definition->name, definition->collection, field, id ? id : "(not UTF-8)");
        bson_free(id);
    }
    spill_raw_admin_batch_release(&batch);
    bson_destroy(&filter);
    return code;
}

static spill_code_t is_empty(spill_raw_admin_t *admin, const char *collection, bool *empty,
                             spill_error_t *error)
{
    spill_raw_admin_read_t what = {.collection = collection, .ids_only = true, .limit = 1};
    spill_raw_admin_batch_t batch = {0};
    spill_code_t code = admin->ops->read(admin, &what, &batch, error);
    *empty = code == SPILL_OK && batch.count == 0;
    spill_raw_admin_batch_release(&batch);
    return code;
}

static spill_code_t check_documents(const char *uri, const spill_definition_t *definition,
                                    char **remark, spill_error_t *error)
{
    const char *pages = definition->page_collection;
    const char *fields[] = {definition->overflow_field, definition->pages_field};
    spill_raw_admin_t *admin = NULL;
    bool empty = true;
    spill_code_t code = spill_raw_admin_open(uri, &admin, error);
    for (size_t i = 0; code == SPILL_OK && i < sizeof fields / sizeof *fields; i++)
        if (!*remark && fields[i][0] != '\0')
            code = check_field(admin, definition, fields[i], remark, error);
    if (code == SPILL_OK && !*remark && pages[0] != '\0')
        code = is_empty(admin, pages, &empty, error);
    if (code == SPILL_OK && !empty)
        *remark = bson_strdup_printf("'%s': the collection '%s', planned for the pages, has "
                                     "documents already: give the plan's definition another "
                                     "pageCollection",
                                     definition->name, pages);
    spill_raw_admin_close(admin);
    return code;
}

spill_code_t spill_migrate_check_names(spill_store_t *store, const char *uri,
                                       const spill_definition_t *definition, char **remark,
                                       spill_error_t *error)
{
    spill_definition_t stored;
    *remark = NULL;
    spill_code_t code = spill_store_definition(store, definition->name, &stored, error);
    if (code != SPILL_NOT_FOUND)
        return code;
    code = spill_store_check_others(store, definition, error);
    return code == SPILL_OK && uri ? check_documents(uri, definition, remark, error) : code;
}

/* ---- after an undo --------------------------------------------------------------------------- */

/* Report whether another definition uses this one's page collection. */
static spill_code_t is_shared(spill_store_t *store, const spill_definition_t *definition,
                              bool *shared, spill_error_t *error)
{
    spill_definition_t *others;
    size_t count;
    const char *pages = definition->page_collection;
    *shared = false;
    spill_code_t code = spill_store_definitions(store, &others, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        *shared = *shared || (strcmp(others[i].name, definition->name) != 0 &&
                              (strcmp(others[i].collection, pages) == 0 ||
                               strcmp(others[i].page_collection, pages) == 0));
    bson_free(others);
    return code;
}

static spill_code_t drop_empty_pages(spill_store_t *store, const char *uri,
                                     const spill_definition_t *definition, spill_error_t *error)
{
    spill_raw_admin_t *admin = NULL;
    bool shared = true, empty = false;
    if (definition->page_collection[0] == '\0')
        return SPILL_OK;
    spill_code_t code = is_shared(store, definition, &shared, error);
    if (code != SPILL_OK || shared)
        return code;
    code = spill_raw_admin_open(uri, &admin, error);
    if (code == SPILL_OK)
        code = is_empty(admin, definition->page_collection, &empty, error);
    if (code == SPILL_OK && empty)
        code = admin->ops->drop(admin, definition->page_collection, error);
    spill_raw_admin_close(admin);
    return code;
}

spill_code_t spill_migrate_remove_names(spill_store_t *store, const char *uri, const char *name,
                                        spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(store, name, &stored, error);
    if (code != SPILL_OK)
        return code == SPILL_NOT_FOUND ? SPILL_OK : code;
    code = drop_empty_pages(store, uri, &stored, error);
    if (code == SPILL_OK)
        code = spill_import_checkpoints_drop(store, name, error);
    return code == SPILL_OK
               ? store->ops->catalog_delete(store, SPILL_CATALOG_DEFINITION, name, error)
               : code;
}
