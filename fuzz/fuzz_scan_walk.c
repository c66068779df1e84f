/*
 * The input may be a document. The walk of a scan has its own BSON reader: libbson must accept what
 * the walk accepts, and find the same number of arrays. What the walk refuses must leave no trace.
 *
 * The input may also be documents in sequence. A walk with outlines of the fields and one without
 * them give the same JSON.
 */
#include "fuzz.h"
#include "tools/scan/scan.h"

#include <bson/bson.h>
#include <string.h>

static const spill_scan_limits_t limits = {
    .elements = 4, .bytes = 64, .document_bytes = 1024, .paid_per_cent = 50};

/* The number of arrays and documents in it, down to the depth of the walk. */
static uint64_t count_inner(bson_iter_t *iter, int depth)
{
    uint64_t count = 0;
    bson_iter_t inner;
    while (bson_iter_next(iter)) {
        bool holds = BSON_ITER_HOLDS_DOCUMENT(iter) || BSON_ITER_HOLDS_ARRAY(iter);
        if (!holds || depth == SPILL_NESTING_MAX)
            continue;
        REQUIRE(bson_iter_recurse(iter, &inner));
        count += 1 + count_inner(&inner, depth + 1);
    }
    return count;
}

static void walk_one(const uint8_t *data, size_t size)
{
    static spill_walker_t *walker;
    walker = walker ? walker : spill_walker_new();
    spill_paths_t paths;
    spill_walk_t result;
    spill_paths_init(&paths, &limits);
    spill_walk(walker, &paths, data, size, 0, &result);
    REQUIRE(spill_walk_check(data, size) == (result.damage == NULL));
    uint64_t counted = 0;
    for (uint32_t i = 0; i < paths.node_count; i++) {
        const spill_path_t *path = spill_paths_at(&paths, i);
        char text[64];
        spill_path_text(path, text, sizeof text);
        counted += path->index == i ? path->lengths.count : 0;
    }
    bson_iter_t iter;
    if (result.damage) {
        REQUIRE(counted == 0 && paths.sizes.count == 0 && result.damage_at <= size);
    } else {
        REQUIRE(bson_iter_init_from_data(&iter, data, size));
        REQUIRE(counted == 1 + count_inner(&iter, 1));
        REQUIRE(!result.flaw || result.flaw_at < size);
    }
    spill_paths_release(&paths);
}

/* ---- documents in sequence ------------------------------------------------------------------- */

/* The next document of the sequence: its size, or all that is left. */
static size_t next_size(const uint8_t *data, size_t size)
{
    uint32_t length = 0;
    if (size >= sizeof length)
        memcpy(&length, data, sizeof length);
    length = BSON_UINT32_FROM_LE(length);
    return length >= 5 && length <= size ? length : size;
}

static bool same_text(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

/* Walk each document twice: the second time, its own fields are expected. */
static void walk_twins(spill_walker_t *const *walkers, spill_paths_t *paths, const uint8_t *data,
                       size_t size)
{
    while (size > 0) {
        size_t next = next_size(data, size);
        for (int i = 0; i < 2; i++) {
            spill_walk_t results[2];
            for (int j = 0; j < 2; j++)
                spill_walk(walkers[j], &paths[j], data, next, i, &results[j]);
            REQUIRE(same_text(results[0].damage, results[1].damage));
            REQUIRE(same_text(results[0].flaw, results[1].flaw));
            REQUIRE(results[0].damage_at == results[1].damage_at);
            REQUIRE(results[0].flaw_at == results[1].flaw_at);
        }
        data += next;
        size -= next;
    }
}

/* The JSON of a table, which is released. */
static char *json_of(spill_paths_t *paths)
{
    static const int64_t now_ms = INT64_C(1700000000000);
    spill_scan_result_t result = {.limits = limits, .collections_max = 10, .scanned_ms = now_ms};
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    spill_paths_foresee(paths, now_ms);
    spill_scan_add_collection(&result, "twins", NULL, paths, 0);
    spill_scan_find_sprawl(&result);
    spill_scan_derive(&result);
    spill_scan_find(&result);
    spill_scan_write_json(&result, "twins", to);
    fclose(to);
    spill_scan_release(&result);
    spill_paths_release(paths);
    return text;
}

static void walk_sequence(const uint8_t *data, size_t size)
{
    static spill_walker_t *walkers[2];
    spill_paths_t paths[2];
    for (int i = 0; i < 2; i++) {
        walkers[i] = walkers[i] ? walkers[i] : spill_walker_new();
        spill_paths_init(&paths[i], &limits);
    }
    spill_walker_ignore_outlines(walkers[1]);
    walk_twins(walkers, paths, data, size);
    char *fast = json_of(&paths[0]), *plain = json_of(&paths[1]);
    REQUIRE(strcmp(fast, plain) == 0);
    free(fast);
    free(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    walk_one(data, size);
    walk_sequence(data, size);
    return 0;
}
