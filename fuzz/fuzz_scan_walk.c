/*
 * The input may be a document. The walk of a scan has its own BSON reader: libbson must accept what
 * the walk accepts, and find the same number of arrays. What the walk refuses must leave no trace.
 */
#include "fuzz.h"
#include "tools/scan/paths.h"

#include <bson/bson.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const spill_scan_limits_t limits = {
        .elements = 4, .bytes = 64, .document_bytes = 1024, .paid_per_cent = 50};
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
    return 0;
}
