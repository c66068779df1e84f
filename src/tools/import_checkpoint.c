#include "tools/import_checkpoint.h"

#include "bson/record.h"
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

typedef struct stored_checkpoint {
    spill_import_checkpoint_t checkpoint;
    spill_bytes_t bases; /* the checkpoint's, as they are stored */
} stored_checkpoint_t;

#define STORED(type, member, name) SPILL_FIELD(type, stored_checkpoint_t, checkpoint.member, name)
#define OFFSET(member, name)                                                                       \
    SPILL_FIELD(INT64, stored_checkpoint_t, checkpoint.member, name, .most = INT64_MAX)
static const spill_field_t checkpoint_fields[] = {
    STORED(TEXT, definition, "definition"),
    STORED(TEXT, source, "source"),
    STORED(TEXT, format, "format"),
    STORED(TEXT, owner, "owner"),
    STORED(TEXT, id, "id"),
    STORED(BOOL, strings, "strings"),
    STORED(INT64, run, "run"),
    STORED(INT64, chunk, "chunk"),
    OFFSET(offset, "offset"),
    STORED(INT64, line, "line"),
    OFFSET(end_offset, "endOffset"),
    STORED(INT64, end_line, "endLine"),
    STORED(INT64, hash, "hash"),
    STORED(INT64, bounds.page_capacity, "pageCapacity"),
    STORED(INT64, bounds.page_bytes_max, "pageBytesMax"),
    STORED(INT64, bounds.head_bytes_max, "headBytesMax"),
    STORED(INT64, op_window, "opWindow"),
    STORED(INT64, records, "records"),
    STORED(INT64, before, "before"),
    STORED(BOOL, applied, "applied"),
    STORED(BOOL, finished, "finished"),
    SPILL_FIELD(BYTES, stored_checkpoint_t, bases, "bases")};
static const spill_record_t checkpoint_record =
    SPILL_RECORD("import", stored_checkpoint_t, checkpoint_fields);

static void encode(const spill_import_checkpoint_t *checkpoint, bson_t *document)
{
    const stored_checkpoint_t stored = {
        *checkpoint,
        {(const uint8_t *)checkpoint->bases,
         (uint32_t)(checkpoint->base_count * sizeof *checkpoint->bases)}};
    bson_init(document);
    spill_record_write(&checkpoint_record, &stored, document);
}

static spill_code_t decode(const bson_t *document, spill_import_checkpoint_t *checkpoint,
                           spill_error_t *error)
{
    stored_checkpoint_t stored = {0};
    SPILL_TRY(spill_record_read(&checkpoint_record, document, &stored, error));
    uint32_t size = stored.bases.size_bytes;
    *checkpoint = stored.checkpoint;
    if (size % sizeof *checkpoint->bases != 0)
        return spill_fail(error, SPILL_CORRUPT, "import: field 'bases' has half a number");
    if (checkpoint->end_offset < checkpoint->offset)
        return spill_fail(error, SPILL_CORRUPT, "import: field 'endOffset' is below 'offset'");
    checkpoint->base_count = size / sizeof *checkpoint->bases;
    checkpoint->bases = bson_malloc(size + 1);
    memcpy(checkpoint->bases, stored.bases.data, size);
    return SPILL_OK;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

spill_code_t spill_import_checkpoint_load(spill_store_t *store, const char *name, bson_t **stored,
                                          spill_import_checkpoint_t *checkpoint,
                                          spill_error_t *error)
{
    spill_error_t cause;
    *stored = NULL;
    *checkpoint = (spill_import_checkpoint_t){0};
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, name, stored, error));
    if (*stored && decode(*stored, checkpoint, &cause) != SPILL_OK)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of import '%s' cannot be read; restore a backup (%s)",
                          store->uri, name, cause.message);
    return SPILL_OK;
}

spill_code_t spill_import_checkpoint_save(spill_store_t *store, const char *name,
                                          const spill_import_checkpoint_t *checkpoint,
                                          bson_t **stored, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t document;
    encode(checkpoint, &document);
    bool done = false;
    SPILL_TRY(store->ops->catalog_put(store, SPILL_CATALOG_IMPORT, name, *stored, &document, &done,
                                      error));
    if (!done)
        return spill_fail(error, SPILL_CONFLICT,
                          "another import of %s into '%s' is in progress; only one can run",
                          checkpoint->source, checkpoint->definition);
    bson_destroy(*stored);
    *stored = bson_copy(&document);
    return SPILL_OK;
}

static spill_code_t drop_checkpoint(spill_store_t *store, const char *name, const char *definition,
                                    spill_error_t *error)
{
    bson_t *stored = NULL;
    bson_iter_t iter;
    spill_code_t code = store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, name, &stored, error);
    bool same = code == SPILL_OK && stored && bson_iter_init_find(&iter, stored, "definition") &&
                BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), definition) == 0;
    bson_destroy(stored);
    return same ? store->ops->catalog_delete(store, SPILL_CATALOG_IMPORT, name, error) : code;
}

spill_code_t spill_import_checkpoints_drop(spill_store_t *store, const char *definition,
                                           spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_IMPORT, &names, error));
    for (size_t i = 0; i < names.count; i++)
        SPILL_TRY(drop_checkpoint(store, spill_listing_item(&names, i).text, definition, error));
    return SPILL_OK;
}
