#include "tools/convert_checkpoint.h"

#include "store/store.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* The catalog's name for the checkpoint; the names of imports end with 16 hexadecimal digits. */
#define CHECKPOINT_NAME_SIZE (SPILL_NAME_SIZE + 16)

static void checkpoint_name(const char *definition, char name[CHECKPOINT_NAME_SIZE])
{
    snprintf(name, CHECKPOINT_NAME_SIZE, "%s:convert", definition);
}

bool spill_convert_checkpoint_stands(const spill_convert_checkpoint_t *checkpoint)
{
    return checkpoint->stored && !checkpoint->emptied;
}

void spill_convert_checkpoint_release(spill_convert_checkpoint_t *checkpoint)
{
    bson_destroy(checkpoint->stored);
    *checkpoint = (spill_convert_checkpoint_t){0};
}

static bool decode_checkpoint(spill_convert_checkpoint_t *checkpoint)
{
    bson_iter_t as, emptied;
    if (!bson_iter_init_find(&as, checkpoint->stored, "as") || !BSON_ITER_HOLDS_UTF8(&as) ||
        !bson_iter_init_find(&emptied, checkpoint->stored, "emptied") ||
        !BSON_ITER_HOLDS_BOOL(&emptied))
        return false;
    int length = snprintf(checkpoint->as, sizeof checkpoint->as, "%s", bson_iter_utf8(&as, NULL));
    checkpoint->emptied = bson_iter_bool(&emptied);
    return length < (int)sizeof checkpoint->as;
}

spill_code_t spill_convert_checkpoint_load(spill_store_t *store, const char *name,
                                           spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    char entry[CHECKPOINT_NAME_SIZE];
    *checkpoint = (spill_convert_checkpoint_t){0};
    checkpoint_name(name, entry);
    spill_code_t code =
        store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, entry, &checkpoint->stored, error);
    if (code == SPILL_OK && checkpoint->stored && !decode_checkpoint(checkpoint))
        code = spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of the conversion of '%s' cannot be read; restore a "
                          "backup",
                          store->uri, name);
    return code;
}

spill_code_t spill_convert_checkpoint_save(spill_store_t *store, const char *name, const char *as,
                                           bool emptied, spill_convert_checkpoint_t *checkpoint,
                                           spill_error_t *error)
{
    char entry[CHECKPOINT_NAME_SIZE];
    checkpoint_name(name, entry);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "definition", name);
    BSON_APPEND_UTF8(&document, "as", as);
    BSON_APPEND_BOOL(&document, "emptied", emptied);
    bool done = false;
    spill_code_t code = store->ops->catalog_put(store, SPILL_CATALOG_IMPORT, entry,
                                                checkpoint->stored, &document, &done, error);
    if (code == SPILL_OK && !done)
        code = spill_fail(error, SPILL_CONFLICT, "another process is dropping '%s' already", name);
    if (code == SPILL_OK) {
        spill_convert_checkpoint_release(checkpoint);
        checkpoint->stored = bson_copy(&document);
        snprintf(checkpoint->as, sizeof checkpoint->as, "%s", as);
        checkpoint->emptied = emptied;
    }
    bson_destroy(&document);
    return code;
}
