/* Check names before a migration and after its undo, and the entries of a plan. */
#include "core/array.h"
#include "definition/stored_names.h"
#include "layout/adoption.h"
#include "store/raw_admin.h"
#include "store/raw_reader.h"
#include "tools/import/import_chunk.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/undoing.h"
#include "util/error.h"

#include <string.h>

static void close_admin(spill_raw_admin_t **admin)
{
    spill_raw_admin_close(*admin);
}

/* ---- names that clash ------------------------------------------------------------------------ */

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
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    append_exists(&filter, definition->array, true);
    append_exists(&filter, SPILL_STORED_ROOT, false);
    append_exists(&filter, field, true);
    spill_raw_admin_read_t what = {
        .collection = definition->collection, .filter = &filter, .ids_only = true, .limit = 1};
    SPILL_TRY(admin->ops->read(admin, &what, &batch, error));
    if (batch.count == 0)
        return SPILL_OK;
    char *id = bson_as_relaxed_extended_json(batch.documents[0], NULL);
    *remark = bson_strdup_printf(
        "'%s': documents of '%s' have a field '%s' already and would be skipped, the first "
        "is %s: give the plan's definition another name for that field",
        definition->name, definition->collection, field, id ? id : "(not UTF-8)");
    bson_free(id);
    return SPILL_OK;
}

static spill_code_t is_empty(spill_raw_admin_t *admin, const char *collection, bool *empty,
                             spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    spill_raw_admin_read_t what = {.collection = collection, .ids_only = true, .limit = 1};
    *empty = false;
    SPILL_TRY(admin->ops->read(admin, &what, &batch, error));
    *empty = batch.count == 0;
    return SPILL_OK;
}

static spill_code_t check_documents(const char *uri, const spill_definition_t *definition,
                                    char **remark, spill_error_t *error)
{
    const char *pages = definition->page_collection;
    const char *fields[] = {definition->overflow_field, definition->pages_field};
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    bool empty = true;
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (!*remark && fields[i][0] != '\0')
            SPILL_TRY(check_field(admin, definition, fields[i], remark, error));
    if (!*remark && pages[0] != '\0')
        SPILL_TRY(is_empty(admin, pages, &empty, error));
    if (!empty)
        *remark = bson_strdup_printf("'%s': the collection '%s', planned for the pages, has "
                                     "documents already: give the plan's definition another "
                                     "pageCollection",
                                     definition->name, pages);
    return SPILL_OK;
}

spill_code_t spill_migrate_has_undefined(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    *any = false;
    return store->ops->others_write ? spill_array_has_owner(&array, any, error) : SPILL_OK;
}

/*
 * If arrays are managed without a definition, say so. Their pages are no reason to choose another
 * collection.
 */
static spill_code_t remark_undefined(spill_store_t *store, const spill_definition_t *definition,
                                     char **remark, spill_error_t *error)
{
    bool any;
    SPILL_TRY(spill_migrate_has_undefined(store, definition, &any, error));
    if (any)
        *remark = bson_strdup_printf(
            "'%s': documents of '%s' have arrays that are managed, but the definition is missing: "
            "an undo or a drop has not ended. Keep the plan as it is. Run this command with "
            "--execute, which saves the definition again; to end the undo, run it then with --undo "
            "--execute",
            definition->name, definition->collection);
    return SPILL_OK;
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
    SPILL_TRY(spill_store_check_others(store, definition, error));
    SPILL_TRY(remark_undefined(store, definition, remark, error));
    return uri && !*remark ? check_documents(uri, definition, remark, error) : SPILL_OK;
}

/* ---- documents without an array -------------------------------------------------------------- */

spill_code_t spill_migrate_find_other_types(const char *uri, const spill_definition_t *definition,
                                            int64_t *count, char **first, spill_error_t *error)
{
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    bson_t condition, type;
    *count = 0;
    *first = NULL;
    BSON_APPEND_DOCUMENT_BEGIN(&filter, definition->array, &condition);
    BSON_APPEND_BOOL(&condition, "$exists", true);
    BSON_APPEND_DOCUMENT_BEGIN(&condition, "$not", &type);
    BSON_APPEND_UTF8(&type, "$type", "array");
    bson_append_document_end(&condition, &type);
    bson_append_document_end(&filter, &condition);
    spill_raw_admin_read_t what = {.collection = definition->collection,
                                   .filter = &filter,
                                   .ids_only = true,
                                   .limit = SPILL_MIGRATE_OTHER_TYPES_MAX};
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    SPILL_TRY(admin->ops->read(admin, &what, &batch, error));
    *count = (int64_t)batch.count;
    if (batch.count > 0)
        *first = bson_as_relaxed_extended_json(batch.documents[0], NULL);
    return SPILL_OK;
}

/* ---- names that an undo leaves --------------------------------------------------------------- */

/* Report whether a definition uses the collection. */
static spill_code_t is_used(spill_store_t *store, const char *pages, bool *used,
                            spill_error_t *error)
{
    spill_definition_t *others;
    size_t count;
    *used = false;
    spill_code_t code = spill_store_definitions(store, &others, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        *used = *used || strcmp(others[i].collection, pages) == 0 ||
                strcmp(others[i].page_collection, pages) == 0;
    bson_free(others);
    return code;
}

/*
 * The definition is deleted, so no program puts pages there, unless a migration has defined it
 * again: then the collection stays.
 */
static spill_code_t drop_empty_pages(spill_store_t *store, const char *uri,
                                     const spill_definition_t *definition, spill_error_t *error)
{
    const char *pages = definition->page_collection;
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    bool used, empty;
    if (pages[0] == '\0')
        return SPILL_OK;
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    SPILL_TRY(is_empty(admin, pages, &empty, error));
    SPILL_TRY(is_used(store, pages, &used, error));
    return empty && !used ? admin->ops->drop(admin, pages, error) : SPILL_OK;
}

spill_code_t spill_migrate_remove_names(spill_store_t *store, const char *uri, const char *name,
                                        spill_error_t *error)
{
    spill_definition_t stored;
    spill_code_t code = spill_store_definition(store, name, &stored, error);
    if (code != SPILL_OK)
        return code == SPILL_NOT_FOUND ? SPILL_OK : code;
    SPILL_TRY(spill_import_checkpoints_drop(store, name, error));
    SPILL_TRY(spill_undoing_end(store, name, error));
    SPILL_TRY(drop_empty_pages(store, uri, &stored, error));
    return spill_adopters_sweep(store, name, error);
}

/* ---- does the entry match something? --------------------------------------------------------- */

/* The definition with heads in the entry's collection. */
static const spill_definition_t *source_of(const spill_planned_t *planned)
{
    return planned->staged ? &planned->original : &planned->definition;
}

static void close_reader(spill_raw_reader_t **reader)
{
    spill_raw_reader_close(*reader);
}

static void free_names(char ***names)
{
    bson_strfreev(*names);
}

spill_code_t spill_migrate_check_collection(const char *uri, const char *collection,
                                            spill_error_t *error)
{
    SPILL_SCOPED(close_reader) spill_raw_reader_t *reader = NULL;
    SPILL_SCOPED(free_names) char **names = NULL;
    bool there = false;
    SPILL_TRY(spill_raw_reader_open(uri, NULL, &reader, error));
    SPILL_TRY(spill_raw_reader_collections(reader, &names, error));
    for (size_t i = 0; names[i] && !there; i++)
        there = strcmp(names[i], collection) == 0;
    return there ? SPILL_OK
                 : spill_fail(error, SPILL_NOT_FOUND, "the database '%s' has no collection '%s'",
                              spill_raw_reader_database(reader), collection);
}

spill_code_t spill_migrate_count_managed(spill_store_t *store, const char *name, int64_t *count,
                                         spill_error_t *error)
{
    spill_array_t *array;
    *count = 0;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code == SPILL_OK)
        code = spill_each_owner(array, spill_count_call, count, true, error);
    spill_array_close(array);
    return code;
}

/* *known is false if the store knows no arrays before the definition is saved. */
static spill_code_t has_managed(spill_store_t *store, const spill_definition_t *definition,
                                bool *any, bool *known, spill_error_t *error)
{
    spill_array_t *array;
    spill_code_t code = spill_array_open(store, definition->name, &array, error);
    *known = code == SPILL_OK || store->ops->others_write;
    if (code == SPILL_NOT_FOUND)
        return spill_migrate_has_undefined(store, definition, any, error);
    if (code == SPILL_OK)
        code = spill_array_has_owner(array, any, error);
    spill_array_close(array);
    return code;
}

static spill_code_t fail_source(const spill_definition_t *source, spill_code_t code,
                                spill_error_t *error)
{
    spill_error_t cause = *error;
    const char *advice = "correct \"collection\" and \"path\" of the plan's entry, or give it "
                         "\"mayBeEmpty\": true";
    return spill_fail(error, code, "'%s': %s, so there is nothing to migrate: %s", source->name,
                      cause.message, advice);
}

spill_code_t spill_migrate_check_source_collection(const char *uri, const spill_planned_t *planned,
                                                   spill_error_t *error)
{
    const spill_definition_t *source = source_of(planned);
    if (!uri || planned->may_be_empty)
        return SPILL_OK;
    spill_code_t code = spill_migrate_check_collection(uri, source->collection, error);
    return code == SPILL_NOT_FOUND ? fail_source(source, code, error) : code;
}

spill_code_t spill_migrate_check_source(spill_store_t *store, const char *uri,
                                        const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *source = source_of(planned);
    bool any = planned->may_be_empty, known = true;
    spill_code_t code = spill_migrate_check_source_collection(uri, planned, error);
    if (code == SPILL_OK && !any)
        code = has_managed(store, source, &any, &known, error);
    if (code == SPILL_OK && known && !any)
        code = spill_migrate_has_unmanaged(store, source, &any, error);
    if (code != SPILL_OK || any || !known)
        return code;
    spill_fail(error, SPILL_REFUSED, "no document of the collection '%s' has an array '%s'",
               source->collection, source->array);
    return fail_source(source, SPILL_REFUSED, error);
}

/* ---- collations ------------------------------------------------------------------------------ */

spill_code_t spill_collation_check(spill_raw_admin_t *admin, const char *collection,
                                   spill_error_t *error)
{
    bson_t listing;
    spill_code_t code = admin->ops->list(admin, NULL, &listing, error);
    if (code == SPILL_OK)
        code = spill_collation_refuse(&listing, collection, error);
    bson_destroy(&listing);
    return code;
}

spill_code_t spill_collation_check_at(const char *uri, const char *collection, spill_error_t *error)
{
    spill_raw_admin_t *admin;
    spill_code_t code = spill_raw_admin_open(uri, &admin, error);
    if (code == SPILL_OK)
        code = spill_collation_check(admin, collection, error);
    spill_raw_admin_close(admin);
    return code;
}
