#include "tools/bench/place.h"

#include "store/raw_admin.h"
#include "store/raw_reader.h"
#include "store/store.h"
#include "util/error.h"

#include <string.h>

/* An entry in the catalog of imports; their own names end with 16 hexadecimal digits. */
static const char checkpoint_name[] = SPILL_BENCH_NAME ":run";

bool spill_bench_stopped(const spill_bench_options_t *options)
{
    return options->stop && atomic_load(options->stop);
}

static bool is_ours(const char *name)
{
    return strncmp(name, SPILL_BENCH_NAME, strlen(SPILL_BENCH_NAME)) == 0;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static spill_code_t refuse_existing(const char *what, const char *name, spill_error_t *error)
{
    return spill_fail(error, SPILL_REFUSED,
                      "the store has a %s '%s' under a name of the benchmark, which drops what has "
                      "its names when it ends; `spillway bench STORE --clean' drops what a "
                      "killed run has left",
                      what, name);
}

/*
 * Refuse definitions with the benchmark's names and other definitions with collections of its
 * names; with `others` only the latter.
 */
static spill_code_t check_definitions(spill_store_t *store, bool others, spill_error_t *error)
{
    spill_definition_t *definitions = NULL;
    size_t count;
    spill_code_t code = spill_store_definitions(store, &definitions, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++) {
        const spill_definition_t *definition = &definitions[i];
        if (is_ours(definition->name)
                ? !others
                : is_ours(definition->collection) || is_ours(definition->page_collection))
            code = refuse_existing("definition", definition->name, error);
    }
    bson_free(definitions);
    return code;
}

/* Drop, or refuse, each collection on a server that has a name of the benchmark. */
static spill_code_t each_collection(const char *uri, bool drop, spill_error_t *error)
{
    spill_raw_admin_t *admin = NULL;
    bson_t descriptions;
    bson_iter_t at, entry;
    if (!spill_raw_reader_serves(uri))
        return SPILL_OK;
    spill_code_t code = spill_raw_admin_open(uri, &admin, error);
    if (code != SPILL_OK)
        return code;
    code = admin->ops->list(admin, &descriptions, error);
    if (code == SPILL_OK) {
        bson_iter_init(&at, &descriptions);
        while (code == SPILL_OK && bson_iter_next(&at)) {
            if (!bson_iter_recurse(&at, &entry) || !bson_iter_find(&entry, "name") ||
                !BSON_ITER_HOLDS_UTF8(&entry) || !is_ours(bson_iter_utf8(&entry, NULL)))
                continue;
            const char *name = bson_iter_utf8(&entry, NULL);
            code = drop ? admin->ops->drop(admin, name, error)
                        : refuse_existing("collection", name, error);
        }
        bson_destroy(&descriptions);
    }
    spill_raw_admin_close(admin);
    return code;
}

/* ---- dropping -------------------------------------------------------------------------------- */

static spill_code_t drop_definitions(spill_store_t *store, spill_error_t *error)
{
    spill_definition_t *definitions = NULL;
    size_t count;
    spill_code_t code = spill_store_definitions(store, &definitions, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        if (is_ours(definitions[i].name))
            code = spill_store_drop(store, definitions[i].name, error);
    bson_free(definitions);
    return code;
}

/* Drop collections first: a server drops them whole, but arrays document by document. */
static spill_code_t drop_all(spill_store_t *store, const char *uri, spill_error_t *error)
{
    spill_code_t code = each_collection(uri, true, error);
    if (code == SPILL_OK)
        code = drop_definitions(store, error);
    if (code == SPILL_OK)
        code = each_collection(uri, true, error);
    if (code == SPILL_OK)
        code = store->ops->catalog_delete(store, SPILL_CATALOG_IMPORT, checkpoint_name, error);
    return code;
}

/* ---- the place ------------------------------------------------------------------------------- */

static spill_code_t open_store(const spill_bench_options_t *options, bool must_exist,
                               spill_store_t **store, spill_error_t *error)
{
    spill_store_options_t given;
    spill_store_options_init(&given);
    given.durability = options->durability;
    given.must_exist = must_exist;
    given.count_bytes = true;
    given.file_mode = options->file_mode;
    return spill_store_open(options->uri, &given, store, error);
}

/* Save the entry only if it does not exist: of two concurrent runs, one gets it. */
static spill_code_t reserve_names(spill_bench_place_t *place, spill_error_t *error)
{
    bson_t checkpoint = BSON_INITIALIZER;
    bool done = false;
    BSON_APPEND_UTF8(&checkpoint, "definition", SPILL_BENCH_NAME);
    spill_code_t code = place->store->ops->catalog_put(
        place->store, SPILL_CATALOG_IMPORT, checkpoint_name, NULL, &checkpoint, &done, error);
    bson_destroy(&checkpoint);
    if (code == SPILL_OK && !done)
        return spill_fail(error, SPILL_REFUSED,
                          "another run of the benchmark uses this store, or was killed: "
                          "`spillway bench STORE --clean' drops what it has left");
    place->taken = code == SPILL_OK;
    return code;
}

static spill_code_t release_names(spill_bench_place_t *place, spill_error_t *error)
{
    place->taken = false;
    return place->store->ops->catalog_delete(place->store, SPILL_CATALOG_IMPORT, checkpoint_name,
                                             error);
}

spill_code_t spill_bench_enter(const spill_bench_options_t *options, spill_bench_place_t *place,
                               spill_error_t *error)
{
    *place = (spill_bench_place_t){.options = options};
    spill_code_t code = open_store(options, false, &place->store, error);
    if (code == SPILL_OK)
        code = reserve_names(place, error);
    if (code != SPILL_OK)
        return code;
    code = check_definitions(place->store, false, error);
    if (code == SPILL_OK)
        code = each_collection(options->uri, false, error);
    if (code != SPILL_OK)
        release_names(place, NULL);
    return code;
}

spill_code_t spill_bench_leave(spill_bench_place_t *place, spill_code_t code, spill_error_t *error)
{
    spill_error_t later;
    if (place->taken && drop_all(place->store, place->options->uri, &later) != SPILL_OK &&
        code == SPILL_OK) {
        code = later.code;
        *error = later;
    }
    if (spill_store_close(place->store, &later) != SPILL_OK && code == SPILL_OK) {
        code = later.code;
        *error = later;
    }
    place->store = NULL;
    return code;
}

spill_code_t spill_bench_clean(const spill_bench_options_t *options, spill_error_t *error)
{
    spill_store_t *store = NULL;
    spill_error_t closing;
    spill_code_t code = open_store(options, !spill_raw_reader_serves(options->uri), &store, error);
    if (code != SPILL_OK)
        return code;
    code = check_definitions(store, true, error);
    if (code == SPILL_OK)
        code = drop_all(store, options->uri, error);
    if (spill_store_close(store, &closing) != SPILL_OK && code == SPILL_OK) {
        code = closing.code;
        *error = closing;
    }
    return code;
}
