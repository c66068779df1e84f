#include "tools/migrate/undoing.h"

#include "definition/schema.h"
#include "layout/adoption.h"
#include "util/error.h"

#include <inttypes.h>

/* Between two looks at the adopters. */
#define PAUSE_US ((int64_t)100000)

enum { TRIES_MAX = 20 };

/* ---- the mark -------------------------------------------------------------------------------- */

/* Read the definition. *document: the stored entry, or NULL. */
static spill_code_t load(spill_store_t *store, const char *name, spill_stored_definition_t *stored,
                         bson_t **document, spill_error_t *error)
{
    *stored = (spill_stored_definition_t){0};
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, name, document, error));
    return *document ? spill_stored_definition_from_bson(stored, *document, error) : SPILL_OK;
}

/* Make one try to set the mark to `undoing`. */
static spill_code_t try_mark(spill_store_t *store, const char *name, int64_t undoing, bool *was,
                             bool *done, spill_error_t *error)
{
    spill_stored_definition_t stored;
    SPILL_SCOPED(spill_free_document) bson_t *before = NULL;
    SPILL_TRY(load(store, name, &stored, &before, error));
    *was = stored.undoing != 0;
    *done = !before || *was == (undoing != 0);
    if (*done)
        return SPILL_OK;
    stored.undoing = undoing;
    SPILL_SCOPED(bson_destroy) bson_t after;
    spill_stored_definition_to_bson(&stored, &after);
    return store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, name, before, &after, done,
                                   error);
}

static spill_code_t mark(spill_store_t *store, const char *name, int64_t undoing, bool *was,
                         spill_error_t *error)
{
    bool done = false;
    for (int tries = 0; tries < TRIES_MAX && !done; tries++)
        SPILL_TRY(try_mark(store, name, undoing, was, &done, error));
    return done ? SPILL_OK
                : spill_fail_retryable(error, SPILL_CONFLICT,
                                       "other programs keep changing definition '%s'", name);
}

spill_code_t spill_undoing_is(spill_store_t *store, const char *name, bool *undoing,
                              spill_error_t *error)
{
    spill_stored_definition_t stored;
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    spill_code_t code = load(store, name, &stored, &document, error);
    *undoing = stored.undoing != 0;
    return code;
}

spill_code_t spill_undoing_check(spill_store_t *store, const char *name, spill_error_t *error)
{
    bool undoing;
    SPILL_TRY(spill_undoing_is(store, name, &undoing, error));
    if (!undoing)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s': an undo of the migration has begun and not ended. `spillway migrate' "
                      "with its name (or the plan) and --undo --execute ends it; with --execute "
                      "alone it migrates again, unless the migration has two stages",
                      name);
}

spill_code_t spill_undoing_begin(spill_array_t *array, spill_error_t *error)
{
    bool was;
    const spill_clock_t *clock = &array->store->options.clock;
    if (!array->store->ops->others_write)
        return SPILL_OK;
    return mark(array->store, array->definition.name, clock->now_us(clock->context), &was, error);
}

spill_code_t spill_undoing_cancel(spill_store_t *store, const char *name, bool *was,
                                  spill_error_t *error)
{
    bool ignored;
    return mark(store, name, 0, was ? was : &ignored, error);
}

/* ---- waiting for adopters -------------------------------------------------------------------- */

/* An entry that is not in this list is written after the mark: its adopter finds the mark. */
spill_code_t spill_undoing_wait(spill_array_t *array, spill_error_t *error)
{
    spill_store_t *store = array->store;
    const spill_clock_t *clock = &store->options.clock;
    const char *name = array->definition.name;
    SPILL_SCOPED(spill_listing_release) spill_listing_t entries = SPILL_LISTING_INIT;
    if (!store->ops->others_write)
        return SPILL_OK;
    SPILL_TRY(spill_adopters_list(store, &entries, error));
    for (bool first = true;; first = false) {
        char text[400] = "";
        int64_t left;
        SPILL_TRY(spill_adopters_purge(store, name, &entries, &left, text, sizeof text, error));
        if (left == 0)
            return SPILL_OK;
        if (first)
            spill_store_log(store, SPILL_LOG_WARNING, "the undo of '%s' waits: %s", name, text);
        if (spill_store_stopped(store))
            return spill_walk_stopped(error);
        clock->sleep_us(clock->context, PAUSE_US);
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

static spill_code_t check_none_managed(spill_array_t *array, bool *any, spill_error_t *error)
{
    spill_code_t code = spill_array_has_owner(array, any, error);
    if (!*any)
        return code;
    return spill_fail(error, SPILL_REFUSED,
                      "arrays of '%s' are managed again, so its definition stays: stop the "
                      "programs with the library, then undo once more",
                      array->definition.name);
}

/* The definition is deleted. If arrays are managed, save it again. */
static spill_code_t look_again(spill_array_t *array, const bson_t *deleted, spill_error_t *error)
{
    bool any, done;
    spill_code_t code = check_none_managed(array, &any, error);
    if (any)
        SPILL_TRY(array->store->ops->catalog_put(array->store, SPILL_CATALOG_DEFINITION,
                                                 array->definition.name, NULL, deleted, &done,
                                                 error));
    return code;
}

/*
 * Delete the definition as it was loaded, with the mark. Every adopter that checked before this
 * mark has left. Another mark is another document, so then nothing is deleted.
 */
static spill_code_t delete_marked(spill_array_t *array, const bson_t *document, bool *done,
                                  spill_error_t *error)
{
    bool any;
    spill_store_t *store = array->store;
    SPILL_TRY(spill_undoing_wait(array, error));
    SPILL_TRY(check_none_managed(array, &any, error));
    return store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, array->definition.name,
                                   document, NULL, done, error);
}

static spill_code_t end(spill_array_t *array, spill_error_t *error)
{
    spill_store_t *store = array->store;
    const char *name = array->definition.name;
    spill_stored_definition_t stored;
    bool done = false;
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(load(store, name, &stored, &document, error));
    if (!document)
        return SPILL_OK;
    if (stored.undoing != 0)
        SPILL_TRY(delete_marked(array, document, &done, error));
    if (done)
        return look_again(array, document, error);
    return spill_fail(error, SPILL_REFUSED,
                      "'%s': a run of `spillway migrate' --execute has cancelled this undo, or "
                      "another undo has begun since: `spillway status' says whether one is "
                      "unfinished. To undo the migration, undo once more",
                      name);
}

spill_code_t spill_undoing_end(spill_store_t *store, const char *name, spill_error_t *error)
{
    spill_array_t *array;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code == SPILL_OK)
        code = end(array, error);
    spill_array_close(array);
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}
