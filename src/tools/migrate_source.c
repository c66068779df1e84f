#include "tools/migrate_source.h"

#include "core/array.h"
#include "store/raw_reader.h"
#include "tools/migrate.h"
#include "util/error.h"

#include <string.h>

/* The definition with heads in the entry's collection. */
static const spill_definition_t *source_of(const spill_planned_t *planned)
{
    return planned->staged ? &planned->original : &planned->definition;
}

spill_code_t spill_migrate_check_collection(const char *uri, const char *collection,
                                            spill_error_t *error)
{
    spill_raw_reader_t *reader = NULL;
    char **names = NULL;
    bool there = false;
    spill_code_t code = spill_raw_reader_open(uri, NULL, &reader, error);
    if (code == SPILL_OK)
        code = spill_raw_reader_collections(reader, &names, error);
    for (size_t i = 0; code == SPILL_OK && names[i] && !there; i++)
        there = strcmp(names[i], collection) == 0;
    if (code == SPILL_OK && !there)
        code = spill_fail(error, SPILL_NOT_FOUND, "the database '%s' has no collection '%s'",
                          spill_raw_reader_database(reader), collection);
    bson_strfreev(names);
    spill_raw_reader_close(reader);
    return code;
}

static spill_code_t count_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    (void)error;
    ++*(int64_t *)context;
    return SPILL_OK;
}

spill_code_t spill_migrate_count_managed(spill_store_t *store, const char *name, int64_t *count,
                                         spill_error_t *error)
{
    spill_array_t *array;
    *count = 0;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code == SPILL_OK)
        code = spill_each_owner(array, count_owner, count, true, error);
    spill_array_close(array);
    return code;
}

/* End the walk over a definition's owners at the first one. */
static spill_code_t stop_at_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    *(bool *)context = true;
    return spill_fail(error, SPILL_CANCELLED, "an owner is there");
}

/* *known is false if the store knows no arrays before the definition is saved. */
static spill_code_t has_managed(spill_store_t *store, const char *name, bool *any, bool *known,
                                spill_error_t *error)
{
    spill_array_t *array;
    spill_code_t code = spill_array_open(store, name, &array, error);
    *known = code == SPILL_OK || store->ops->others_write;
    if (code == SPILL_NOT_FOUND)
        return SPILL_OK;
    if (code == SPILL_OK)
        code = spill_each_owner(array, stop_at_owner, any, true, error);
    spill_array_close(array);
    return *any && code == SPILL_CANCELLED ? SPILL_OK : code;
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

spill_code_t spill_migrate_check_source(spill_store_t *store, const char *uri,
                                        const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *source = source_of(planned);
    bool any = planned->may_be_empty, known = true;
    spill_code_t code = SPILL_OK;
    if (!any && uri) {
        code = spill_migrate_check_collection(uri, source->collection, error);
        if (code == SPILL_NOT_FOUND)
            return fail_source(source, code, error);
    }
    if (code == SPILL_OK && !any)
        code = has_managed(store, source->name, &any, &known, error);
    if (code == SPILL_OK && known && !any)
        code = spill_migrate_has_unmanaged(store, source, &any, error);
    if (code != SPILL_OK || any || !known)
        return code;
    spill_fail(error, SPILL_REFUSED, "no document of the collection '%s' has an array '%s'",
               source->collection, source->array);
    return fail_source(source, SPILL_REFUSED, error);
}
