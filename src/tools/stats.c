/* Count an array's owners, elements and bytes, and find the longest arrays. */
#include "tools/definition_jobs.h"

#include "core/array.h"
#include "definition/schema.h"

#include <string.h>

typedef struct collector {
    spill_array_t *array;
    spill_stats_t *stats;
    int64_t elements; /* of the current owner */
    int64_t bytes;
    bool any;
    bson_t owner; /* the current one, under an empty name */
} collector_t;

/* ---- lengths --------------------------------------------------------------------------------- */

/* The index of the length, or the index at which to insert it. */
static size_t find_length(const spill_stats_t *stats, int64_t length)
{
    size_t low = 0;
    size_t high = stats->length_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (stats->lengths[middle].length < length)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_length(spill_stats_t *stats, int64_t length)
{
    size_t at = find_length(stats, length);
    if (at < stats->length_count && stats->lengths[at].length == length) {
        stats->lengths[at].owners++;
        return;
    }
    if (stats->length_count == stats->length_capacity) {
        stats->length_capacity = stats->length_capacity ? stats->length_capacity * 2 : 64;
        stats->lengths =
            bson_realloc(stats->lengths, stats->length_capacity * sizeof *stats->lengths);
    }
    memmove(&stats->lengths[at + 1], &stats->lengths[at],
            (stats->length_count - at) * sizeof *stats->lengths);
    stats->lengths[at] = (spill_stats_length_t){length, 1};
    stats->length_count++;
}

int64_t spill_stats_percentile(const spill_stats_t *stats, int64_t per_mille)
{
    int64_t rank = (stats->owners * per_mille + 999) / 1000;
    int64_t passed = 0;
    for (size_t i = 0; i < stats->length_count; i++) {
        passed += stats->lengths[i].owners;
        if (passed >= rank)
            return stats->lengths[i].length;
    }
    return 0;
}

/* ---- largest owners -------------------------------------------------------------------------- */

static void add_largest(spill_stats_t *stats, const spill_value_t *owner, int64_t elements,
                        int64_t bytes)
{
    size_t at = stats->largest_count;
    while (at > 0 && stats->largest[at - 1].elements < elements)
        at--;
    if (at == stats->largest_max)
        return;
    if (stats->largest_count == stats->largest_max)
        bson_destroy(stats->largest[--stats->largest_count].storage);
    memmove(&stats->largest[at + 1], &stats->largest[at],
            (stats->largest_count - at) * sizeof *stats->largest);
    spill_stats_owner_t *entry = &stats->largest[at];
    *entry = (spill_stats_owner_t){.elements = elements, .bytes = bytes};
    entry->storage = bson_new();
    spill_value_append(owner, entry->storage, "");
    bson_iter_t iter;
    bson_iter_init_find(&iter, entry->storage, "");
    entry->owner = spill_value_from_iter(&iter);
    stats->largest_count++;
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool count_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    (void)owner;
    collector_t *collector = context;
    collector->elements++;
    collector->bytes += element->value.size_bytes;
    return true;
}

/* Add the current owner, which is complete. */
static void end_owner(collector_t *collector)
{
    spill_stats_t *stats = collector->stats;
    bson_iter_t iter;
    if (collector->any && bson_iter_init_find(&iter, &collector->owner, "")) {
        spill_value_t owner = spill_value_from_iter(&iter);
        stats->owners++;
        stats->elements += collector->elements;
        stats->bytes += collector->bytes;
        add_length(stats, collector->elements);
        add_largest(stats, &owner, collector->elements, collector->bytes);
    }
    collector->any = false;
    collector->elements = 0;
    collector->bytes = 0;
}

/* Layout bucket: the windows of an owner are consecutive. */
static void begin_owner(collector_t *collector, const spill_value_t *owner)
{
    bson_iter_t iter;
    spill_value_t of = *owner;
    const char *window;
    if (spill_schema_of(spill_array_get_definition(collector->array))->has_windows)
        spill_window_split(owner, &of, &window);
    if (collector->any && bson_iter_init_find(&iter, &collector->owner, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(&last, &of))
            return;
    }
    end_owner(collector);
    bson_reinit(&collector->owner);
    spill_value_append(&of, &collector->owner, "");
}

static spill_code_t count_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    collector_t *collector = context;
    begin_owner(collector, owner);
    int64_t elements = collector->elements, bytes = collector->bytes;
    spill_code_t code = spill_walk_owner(collector->array, owner, count_element, collector, error);
    bool counts =
        code == SPILL_OK || (code == SPILL_CORRUPT && collector->array->store->options.partial &&
                             collector->elements > elements);
    collector->any = collector->any || counts;
    if (!counts) {
        collector->elements = elements;
        collector->bytes = bytes;
    }
    return code;
}

spill_code_t spill_stats_collect(spill_array_t *array, size_t top, spill_stats_t *stats,
                                 spill_error_t *error)
{
    *stats = (spill_stats_t){.largest_max = top};
    stats->largest = bson_malloc((top + 1) * sizeof *stats->largest);
    collector_t collector = {.array = array, .stats = stats};
    bson_init(&collector.owner);
    spill_code_t code = spill_each_owner(array, count_owner, &collector, true, error);
    end_owner(&collector);
    bson_destroy(&collector.owner);
    return code;
}

void spill_stats_release(spill_stats_t *stats)
{
    for (size_t i = 0; i < stats->largest_count; i++)
        bson_destroy(stats->largest[i].storage);
    bson_free(stats->largest);
    bson_free(stats->lengths);
    *stats = (spill_stats_t){0};
}
