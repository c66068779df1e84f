#include "tools/import_checkpoint.h"

#include "store/store.h"
#include "util/error.h"
#include "util/hash.h"

#include <inttypes.h>
#include <string.h>

void spill_import_id(const char *name, char id[SPILL_IMPORT_ID_SIZE])
{
    snprintf(id, SPILL_IMPORT_ID_SIZE, "%016" PRIx64, spill_hash(name, strlen(name)));
}

void spill_import_checkpoint_name(const char *definition, const char *source,
                                  char name[SPILL_IMPORT_CHECKPOINT_NAME_SIZE])
{
    char id[SPILL_IMPORT_ID_SIZE];
    spill_import_id(source, id);
    snprintf(name, SPILL_IMPORT_CHECKPOINT_NAME_SIZE, "%s:%s", definition, id);
}

void spill_import_checkpoint_release(spill_import_checkpoint_t *checkpoint)
{
    bson_free(checkpoint->bases);
    *checkpoint = (spill_import_checkpoint_t){0};
}

/* ---- to and from a document ------------------------------------------------------------------ */

static void encode(const spill_import_checkpoint_t *checkpoint, bson_t *document)
{
    bson_init(document);
    BSON_APPEND_UTF8(document, "definition", checkpoint->definition);
    BSON_APPEND_UTF8(document, "source", checkpoint->source);
    BSON_APPEND_UTF8(document, "format", checkpoint->format);
    BSON_APPEND_UTF8(document, "owner", checkpoint->owner);
    BSON_APPEND_UTF8(document, "id", checkpoint->id);
    BSON_APPEND_BOOL(document, "strings", checkpoint->strings);
    BSON_APPEND_INT64(document, "run", checkpoint->run);
    BSON_APPEND_INT64(document, "chunk", checkpoint->chunk);
    BSON_APPEND_INT64(document, "offset", checkpoint->offset);
    BSON_APPEND_INT64(document, "line", checkpoint->line);
    BSON_APPEND_INT64(document, "endOffset", checkpoint->end_offset);
    BSON_APPEND_INT64(document, "endLine", checkpoint->end_line);
    BSON_APPEND_INT64(document, "hash", (int64_t)checkpoint->hash);
    BSON_APPEND_INT64(document, "pageCapacity", checkpoint->bounds.page_capacity);
    BSON_APPEND_INT64(document, "pageBytesMax", checkpoint->bounds.page_bytes_max);
    BSON_APPEND_INT64(document, "headBytesMax", checkpoint->bounds.head_bytes_max);
    BSON_APPEND_INT64(document, "opWindow", checkpoint->op_window);
    BSON_APPEND_INT64(document, "records", checkpoint->records);
    BSON_APPEND_INT64(document, "before", checkpoint->before);
    BSON_APPEND_BOOL(document, "applied", checkpoint->applied);
    BSON_APPEND_BOOL(document, "finished", checkpoint->finished);
    BSON_APPEND_BINARY(document, "bases", BSON_SUBTYPE_BINARY, (const uint8_t *)checkpoint->bases,
                       (uint32_t)(checkpoint->base_count * sizeof *checkpoint->bases));
}

static bool find_field(const bson_t *document, const char *field, bson_type_t type,
                       bson_iter_t *iter)
{
    return bson_iter_init_find(iter, document, field) && bson_iter_type(iter) == type;
}

static bool get_text(const bson_t *document, const char *field, const char **text)
{
    bson_iter_t iter;
    bool found = find_field(document, field, BSON_TYPE_UTF8, &iter);
    *text = found ? bson_iter_utf8(&iter, NULL) : "";
    return found;
}

static bool get_int64(const bson_t *document, const char *field, int64_t *number)
{
    bson_iter_t iter;
    bool found = find_field(document, field, BSON_TYPE_INT64, &iter);
    *number = found ? bson_iter_int64(&iter) : 0;
    return found;
}

static bool get_bool(const bson_t *document, const char *field, bool *value)
{
    bson_iter_t iter;
    bool found = find_field(document, field, BSON_TYPE_BOOL, &iter);
    *value = found && bson_iter_bool(&iter);
    return found;
}

static bool get_bases(const bson_t *document, spill_import_checkpoint_t *checkpoint)
{
    bson_iter_t iter;
    uint32_t size = 0;
    const uint8_t *data = NULL;
    if (!find_field(document, "bases", BSON_TYPE_BINARY, &iter))
        return false;
    bson_iter_binary(&iter, NULL, &size, &data);
    checkpoint->base_count = size / sizeof *checkpoint->bases;
    checkpoint->bases = bson_malloc(size + 1);
    if (size > 0)
        memcpy(checkpoint->bases, data, checkpoint->base_count * sizeof *checkpoint->bases);
    return size % sizeof *checkpoint->bases == 0;
}

static bool decode(const bson_t *document, spill_import_checkpoint_t *checkpoint)
{
    int64_t hash = 0;
    bool good = get_text(document, "definition", &checkpoint->definition) &&
                get_text(document, "source", &checkpoint->source) &&
                get_text(document, "format", &checkpoint->format) &&
                get_text(document, "owner", &checkpoint->owner) &&
                get_text(document, "id", &checkpoint->id) &&
                get_bool(document, "strings", &checkpoint->strings) &&
                get_int64(document, "run", &checkpoint->run) &&
                get_int64(document, "chunk", &checkpoint->chunk) &&
                get_int64(document, "offset", &checkpoint->offset) &&
                get_int64(document, "line", &checkpoint->line) &&
                get_int64(document, "endOffset", &checkpoint->end_offset) &&
                get_int64(document, "endLine", &checkpoint->end_line) &&
                get_int64(document, "hash", &hash) &&
                get_int64(document, "pageCapacity", &checkpoint->bounds.page_capacity) &&
                get_int64(document, "pageBytesMax", &checkpoint->bounds.page_bytes_max) &&
                get_int64(document, "headBytesMax", &checkpoint->bounds.head_bytes_max) &&
                get_int64(document, "opWindow", &checkpoint->op_window) &&
                get_int64(document, "records", &checkpoint->records) &&
                get_int64(document, "before", &checkpoint->before) &&
                get_bool(document, "applied", &checkpoint->applied) &&
                get_bool(document, "finished", &checkpoint->finished) &&
                get_bases(document, checkpoint);
    checkpoint->hash = (uint64_t)hash;
    return good && checkpoint->offset >= 0 && checkpoint->end_offset >= checkpoint->offset;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

spill_code_t spill_import_checkpoint_load(spill_store_t *store, const char *name, bson_t **stored,
                                          spill_import_checkpoint_t *checkpoint,
                                          spill_error_t *error)
{
    *stored = NULL;
    *checkpoint = (spill_import_checkpoint_t){0};
    spill_code_t code = store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, name, stored, error);
    if (code == SPILL_OK && *stored && !decode(*stored, checkpoint))
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of import '%s' cannot be read; restore a backup",
                          store->uri, name);
    return code;
}

spill_code_t spill_import_checkpoint_save(spill_store_t *store, const char *name,
                                          const spill_import_checkpoint_t *checkpoint,
                                          bson_t **stored, spill_error_t *error)
{
    bson_t document;
    encode(checkpoint, &document);
    bool done = false;
    spill_code_t code = store->ops->catalog_put(store, SPILL_CATALOG_IMPORT, name, *stored,
                                                &document, &done, error);
    if (code == SPILL_OK && !done)
        code = spill_fail(error, SPILL_CONFLICT,
                          "another import of %s into '%s' is in progress; only one can run",
                          checkpoint->source, checkpoint->definition);
    if (code == SPILL_OK) {
        bson_destroy(*stored);
        *stored = bson_copy(&document);
    }
    bson_destroy(&document);
    return code;
}

static spill_code_t drop_checkpoint(spill_store_t *store, const char *name, const char *definition,
                                    spill_error_t *error)
{
    bson_t *stored = NULL;
    spill_code_t code = store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, name, &stored, error);
    const char *of = NULL;
    if (code == SPILL_OK && stored && get_text(stored, "definition", &of) &&
        strcmp(of, definition) == 0)
        code = store->ops->catalog_delete(store, SPILL_CATALOG_IMPORT, name, error);
    bson_destroy(stored);
    return code;
}

spill_code_t spill_import_checkpoints_drop(spill_store_t *store, const char *definition,
                                           spill_error_t *error)
{
    bson_t names;
    spill_code_t code = store->ops->catalog_names(store, SPILL_CATALOG_IMPORT, &names, error);
    if (code != SPILL_OK)
        return code;
    bson_iter_t iter;
    bson_iter_init(&iter, &names);
    while (code == SPILL_OK && bson_iter_next(&iter))
        code = drop_checkpoint(store, bson_iter_utf8(&iter, NULL), definition, error);
    bson_destroy(&names);
    return code;
}
