#include "support/embedded.h"

#include "support/definition.h"

#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void must(spill_code_t code, const spill_error_t *error)
{
    if (code == SPILL_OK)
        return;
    fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
    abort();
}

spill_store_t *embedded_on_disk(disk_t *disk, spill_durability_t durability)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.durability = durability;
    must(spill_embedded_open_kv(disk_open(disk), "memory", &options, &store, &error), &error);
    return store;
}

spill_store_t *embedded_in_folder(const char *folder, const spill_store_options_t *options)
{
    spill_error_t error;
    spill_store_t *store;
    must(spill_store_open(folder, options, &store, &error), &error);
    return store;
}

void embedded_close(spill_store_t *store)
{
    spill_error_t error;
    must(spill_store_close(store, &error), &error);
}

/* ---- folders --------------------------------------------------------------------------------- */

static char parent[] = "/tmp/spillway-test-XXXXXX";

static int remove_entry(const char *path, const struct stat *about, int kind, struct FTW *walk)
{
    (void)about;
    (void)kind;
    (void)walk;
    return remove(path);
}

void embedded_remove_folder(const char *folder)
{
    nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void remove_parent(void)
{
    embedded_remove_folder(parent);
}

const char *embedded_new_folder(void)
{
    static char folder[64];
    static int count;
    if (count++ == 0) {
        if (!mkdtemp(parent))
            abort();
        atexit(remove_parent);
    }
    snprintf(folder, sizeof folder, "%s/%d", parent, count);
    return folder;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

bool embedded_paths;

spill_array_t *embedded_array(spill_store_t *store, const char *name, int64_t threshold,
                              int64_t page_capacity)
{
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    spill_definition_init(&definition, name);
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = page_capacity;
    if (embedded_paths)
        definition_put_in_document(&definition, "stats");
    if (!store->options.read_only)
        must(spill_store_define(store, &definition, &error), &error);
    must(spill_array_open(store, name, &array, &error), &error);
    return array;
}

spill_code_t embedded_append(spill_array_t *array, const char *owner, int64_t first, int64_t count,
                             spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    for (int64_t i = first; code == SPILL_OK && i < first + count; i++) {
        bson_t storage = BSON_INITIALIZER;
        bson_t number = BSON_INITIALIZER;
        spill_value_t name = spill_value_from_utf8(&storage, owner);
        spill_value_t element = spill_value_from_int64(&number, i);
        spill_append_result_t result;
        code = spill_array_append(array, &name, &element, 1, NULL, &result, error);
        bson_destroy(&storage);
        bson_destroy(&number);
    }
    return code;
}

static int64_t number_of(const spill_value_t *value)
{
    int64_t number = -1;
    if (value->type == BSON_TYPE_INT64)
        memcpy(&number, value->data, sizeof number);
    return (int64_t)BSON_UINT64_FROM_LE((uint64_t)number);
}

spill_code_t embedded_holds(spill_array_t *array, const char *owner, int64_t first, int64_t count,
                            spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_read_options_t options;
    spill_slice_t *slice = NULL;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.limit = INT64_MAX;
    spill_code_t code = spill_array_read(array, &name, &options, &slice, error);
    if (code == SPILL_OK && slice->count != (size_t)count)
        code = SPILL_REFUSED;
    for (size_t i = 0; code == SPILL_OK && i < slice->count; i++)
        if (number_of(&slice->elements[i].value) != first + (int64_t)i)
            code = SPILL_REFUSED;
    spill_slice_free(slice);
    bson_destroy(&storage);
    return code;
}

static void count_finding(void *context, const spill_store_finding_t *finding)
{
    (void)finding;
    ++*(int *)context;
}

int embedded_findings(spill_store_t *store, spill_array_t *array, const char *owner)
{
    int findings = 0;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_binding_t binding;
    spill_error_t error;
    const spill_definition_t *definition = spill_array_get_definition(array);
    must(store->ops->bind(store, definition, &binding, &error), &error);
    must(store->ops->check(store, &binding, definition, &name, count_finding, &findings, &error),
         &error);
    bson_destroy(&storage);
    return findings;
}
