#include "tools/convert_mark.h"

#include "store/store.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* The catalog's name for it: those of imports end with 16 hexadecimal digits. */
#define MARK_NAME_SIZE (SPILL_NAME_SIZE + 16)

static void mark_name(const char *definition, char name[MARK_NAME_SIZE])
{
    snprintf(name, MARK_NAME_SIZE, "%s:convert", definition);
}

bool spill_convert_mark_stands(const spill_convert_mark_t *mark)
{
    return mark->stored && !mark->emptied;
}

void spill_convert_mark_release(spill_convert_mark_t *mark)
{
    bson_destroy(mark->stored);
    *mark = (spill_convert_mark_t){0};
}

static bool decode(spill_convert_mark_t *mark)
{
    bson_iter_t as, emptied;
    if (!bson_iter_init_find(&as, mark->stored, "as") || !BSON_ITER_HOLDS_UTF8(&as) ||
        !bson_iter_init_find(&emptied, mark->stored, "emptied") || !BSON_ITER_HOLDS_BOOL(&emptied))
        return false;
    int length = snprintf(mark->as, sizeof mark->as, "%s", bson_iter_utf8(&as, NULL));
    mark->emptied = bson_iter_bool(&emptied);
    return length < (int)sizeof mark->as;
}

spill_code_t spill_convert_mark_load(spill_store_t *store, const char *name,
                                     spill_convert_mark_t *mark, spill_error_t *error)
{
    char entry[MARK_NAME_SIZE];
    *mark = (spill_convert_mark_t){0};
    mark_name(name, entry);
    spill_code_t code =
        store->ops->catalog_get(store, SPILL_CATALOG_IMPORT, entry, &mark->stored, error);
    if (code == SPILL_OK && mark->stored && !decode(mark))
        code = spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of the conversion of '%s' cannot be read; restore a "
                          "backup",
                          store->uri, name);
    return code;
}

spill_code_t spill_convert_mark_save(spill_store_t *store, const char *name, const char *as,
                                     bool emptied, spill_convert_mark_t *mark, spill_error_t *error)
{
    char entry[MARK_NAME_SIZE];
    mark_name(name, entry);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "definition", name);
    BSON_APPEND_UTF8(&document, "as", as);
    BSON_APPEND_BOOL(&document, "emptied", emptied);
    bool done = false;
    spill_code_t code = store->ops->catalog_put(store, SPILL_CATALOG_IMPORT, entry, mark->stored,
                                                &document, &done, error);
    if (code == SPILL_OK && !done)
        code =
            spill_fail(error, SPILL_CONFLICT, "'%s' is being dropped by another one already", name);
    if (code == SPILL_OK) {
        spill_convert_mark_release(mark);
        mark->stored = bson_copy(&document);
        snprintf(mark->as, sizeof mark->as, "%s", as);
        mark->emptied = emptied;
    }
    bson_destroy(&document);
    return code;
}
