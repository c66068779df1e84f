/* Reserve the benchmark's names in a store, and free them at the end. */
#include "tools/bench/bench_side.h"

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

static void free_definitions(spill_definition_t **definitions)
{
    bson_free(*definitions);
}

static void close_admin(spill_raw_admin_t **admin)
{
    spill_raw_admin_close(*admin);
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
    SPILL_SCOPED(free_definitions) spill_definition_t *definitions = NULL;
    size_t count;
    SPILL_TRY(spill_store_definitions(store, &definitions, &count, error));
    for (size_t i = 0; i < count; i++) {
        const spill_definition_t *definition = &definitions[i];
        if (is_ours(definition->name)
                ? !others
                : is_ours(definition->collection) || is_ours(definition->page_collection))
            return refuse_existing("definition", definition->name, error);
    }
    return SPILL_OK;
}

/* Drop, or refuse, each collection on a server that has a name of the benchmark. */
static spill_code_t each_collection(const char *uri, bool drop, spill_error_t *error)
{
    SPILL_SCOPED(close_admin) spill_raw_admin_t *admin = NULL;
    SPILL_SCOPED(bson_destroy) bson_t descriptions = BSON_INITIALIZER;
    bson_iter_t at, entry;
    if (!spill_raw_reader_serves(uri))
        return SPILL_OK;
    SPILL_TRY(spill_raw_admin_open(uri, &admin, error));
    SPILL_TRY(admin->ops->list(admin, NULL, &descriptions, error));
    bson_iter_init(&at, &descriptions);
    while (bson_iter_next(&at)) {
        if (!bson_iter_recurse(&at, &entry) || !bson_iter_find(&entry, "name") ||
            !BSON_ITER_HOLDS_UTF8(&entry) || !is_ours(bson_iter_utf8(&entry, NULL)))
            continue;
        const char *name = bson_iter_utf8(&entry, NULL);
        SPILL_TRY(drop ? admin->ops->drop(admin, name, error)
                       : refuse_existing("collection", name, error));
    }
    return SPILL_OK;
}

/* ---- dropping -------------------------------------------------------------------------------- */

static spill_code_t drop_definitions(spill_store_t *store, spill_error_t *error)
{
    SPILL_SCOPED(free_definitions) spill_definition_t *definitions = NULL;
    size_t count;
    SPILL_TRY(spill_store_definitions(store, &definitions, &count, error));
    for (size_t i = 0; i < count; i++)
        if (is_ours(definitions[i].name))
            SPILL_TRY(spill_store_drop(store, definitions[i].name, error));
    return SPILL_OK;
}

/* Drop collections first: a server drops them whole, but arrays document by document. */
static spill_code_t drop_all(spill_store_t *store, const char *uri, spill_error_t *error)
{
    SPILL_TRY(each_collection(uri, true, error));
    SPILL_TRY(drop_definitions(store, error));
    SPILL_TRY(each_collection(uri, true, error));
    return store->ops->catalog_delete(store, SPILL_CATALOG_JOB, checkpoint_name, error);
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
    SPILL_SCOPED(bson_destroy) bson_t checkpoint = BSON_INITIALIZER;
    bool done = false;
    BSON_APPEND_UTF8(&checkpoint, "definition", SPILL_BENCH_NAME);
    SPILL_TRY(place->store->ops->catalog_put(place->store, SPILL_CATALOG_JOB, checkpoint_name, NULL,
                                             &checkpoint, &done, error));
    if (!done)
        return spill_fail(error, SPILL_REFUSED,
                          "another run of the benchmark uses this store, or was killed: "
                          "`spillway bench STORE --clean' drops what it has left");
    place->names_reserved = true;
    return SPILL_OK;
}

static void release_names(spill_bench_place_t *place)
{
    place->names_reserved = false;
    place->store->ops->catalog_delete(place->store, SPILL_CATALOG_JOB, checkpoint_name, NULL);
}

spill_code_t spill_bench_enter(const spill_bench_options_t *options, spill_bench_place_t *place,
                               spill_error_t *error)
{
    *place = (spill_bench_place_t){.options = options};
    SPILL_TRY(open_store(options, false, &place->store, error));
    SPILL_TRY(reserve_names(place, error));
    spill_code_t code = check_definitions(place->store, false, error);
    if (code == SPILL_OK)
        code = each_collection(options->uri, false, error);
    if (code != SPILL_OK)
        release_names(place);
    return code;
}

spill_code_t spill_bench_leave(spill_bench_place_t *place, spill_code_t code, spill_error_t *error)
{
    spill_error_t later;
    if (place->names_reserved && drop_all(place->store, place->options->uri, &later) != SPILL_OK &&
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
    SPILL_TRY(open_store(options, !spill_raw_reader_serves(options->uri), &store, error));
    spill_code_t code = check_definitions(store, true, error);
    if (code == SPILL_OK)
        code = drop_all(store, options->uri, error);
    if (spill_store_close(store, &closing) != SPILL_OK && code == SPILL_OK) {
        code = closing.code;
        *error = closing;
    }
    return code;
}
