#include "tools/emptied.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/raw_admin.h"

#include <string.h>

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

/* {_id: {owner, page}, spill: {incarnation, ...}, ...}; of a window {_id: {owner, window, part},
 * ...}. */
static bool is_page(const spill_definition_t *definition, const char *collection,
                    const bson_t *document)
{
    bool bucket = spill_schema_of(definition)->has_windows;
    const char *paths[] = {bucket ? "_id.part" : "_id.page", "_id.owner", "spill.epoch"};
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
                                 bool *others, spill_error_t *error)
{
    spill_raw_admin_write_t writes[DOCUMENTS_AT_A_TIME];
    size_t count = 0;
    for (size_t i = 0; i < batch->count; i++) {
        bson_iter_t id;
        bool ours = is_page(definition, collection, batch->documents[i]) &&
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
                                     const char *collection, bool *others, spill_error_t *error)
{
    bson_t last = BSON_INITIALIZER;
    spill_value_t after;
    spill_raw_admin_read_t read = {.collection = collection, .limit = DOCUMENTS_AT_A_TIME};
    spill_code_t code = SPILL_OK;
    bool more = true;
    while (code == SPILL_OK && more) {
        spill_raw_admin_batch_t batch = {0};
        code = admin->ops->read(admin, &read, &batch, error);
        if (code == SPILL_OK)
            code = delete_pages(admin, definition, collection, &batch, others, error);
        more = code == SPILL_OK && advance(&batch, &last, &after);
        read.after = &after;
        spill_raw_admin_batch_release(&batch);
    }
    bson_destroy(&last);
    return code;
}

static spill_code_t drop_emptied(spill_store_t *store, spill_raw_admin_t *admin,
                                 const spill_definition_t *definition, const char *collection,
                                 spill_error_t *error)
{
    bool shared = false, others = false;
    spill_code_t code = is_shared(store, definition, collection, &shared, error);
    if (code == SPILL_OK && !shared)
        code = empty_collection(admin, definition, collection, &others, error);
    return code == SPILL_OK && !shared && !others ? admin->ops->drop(admin, collection, error)
                                                  : code;
}

spill_code_t spill_drop_emptied(spill_store_t *store, const char *uri,
                                const spill_definition_t *definition, spill_error_t *error)
{
    const char *pages = definition->page_collection, *heads = definition->collection;
    spill_raw_admin_t *admin = NULL;
    spill_code_t code = spill_raw_admin_open(uri, &admin, error);
    if (code == SPILL_OK && pages[0] != '\0')
        code = drop_emptied(store, admin, definition, pages, error);
    if (code == SPILL_OK && strcmp(heads, pages) != 0)
        code = drop_emptied(store, admin, definition, heads, error);
    spill_raw_admin_close(admin);
    return code;
}
