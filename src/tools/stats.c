/* Count an array's owners, elements and bytes, and find the longest arrays. */
#include "tools/definition_jobs.h"

#include "bson/element_fields.h"
#include "bson/record.h"
#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <string.h>

/* A walk that adds up each owner. */
typedef struct collector {
    spill_array_t *array;
    const char *prefix; /* only owners whose name begins with it; NULL: all */
    bool newest;        /* find the latest times */
    bool reads;         /* the elements are read, not only the documents' sizes of them */
    spill_owner_totals_fn visit;
    void *context;
    spill_owner_totals_t totals; /* of the current owner */
    bool any;
    bool stopped; /* by the visitor */
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
    spill_owner_totals_t *totals = &collector->totals;
    const char *path = spill_array_get_definition(collector->array)->time_field;
    int64_t time_ms;
    totals->elements++;
    totals->bytes += element->value.size_bytes;
    if (collector->newest && path[0] != '\0' &&
        spill_element_time_ms(&element->value, path, &time_ms) &&
        (totals->newest_ms == SPILL_DATE_UNKNOWN || time_ms > totals->newest_ms))
        totals->newest_ms = time_ms;
    return true;
}

/* Report the current owner, which is complete. */
static void end_owner(collector_t *collector)
{
    bson_iter_t iter;
    if (collector->any && bson_iter_init_find(&iter, &collector->owner, "")) {
        collector->totals.owner = spill_value_from_iter(&iter);
        collector->stopped = !collector->visit(collector->context, &collector->totals);
    }
    collector->any = false;
    collector->totals = (spill_owner_totals_t){.newest_ms = SPILL_DATE_UNKNOWN};
}

/* The owner's name begins with the prefix: a string, or the digits of an ObjectId. */
static bool has_prefix(const spill_value_t *owner, const char *prefix)
{
    char digits[25];
    size_t length = strlen(prefix);
    bson_oid_t oid;
    if (owner->type == BSON_TYPE_UTF8) /* its length, the text, and NUL */
        return owner->size_bytes >= 5 + length && memcmp(owner->data + 4, prefix, length) == 0;
    if (owner->type != BSON_TYPE_OID)
        return false;
    memcpy(&oid, owner->data, sizeof oid);
    bson_oid_to_string(&oid, digits);
    return strncmp(digits, prefix, length) == 0;
}

/* Layout bucket: the windows of an owner are consecutive. False: the owner is not wanted. */
static bool begin_owner(collector_t *collector, const spill_value_t *owner)
{
    bson_iter_t iter;
    spill_value_t of = *owner;
    const char *window;
    if (spill_schema_of(spill_array_get_definition(collector->array))->has_windows)
        spill_window_split(owner, &of, &window);
    if (collector->any && bson_iter_init_find(&iter, &collector->owner, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(&last, &of))
            return true;
    }
    end_owner(collector);
    if (collector->prefix && !has_prefix(&of, collector->prefix))
        return false;
    bson_reinit(&collector->owner);
    spill_value_append(&of, &collector->owner, "");
    return true;
}

/* Without a read of elements. After an error, nothing is added. */
static spill_code_t add_sizes(collector_t *collector, const spill_value_t *owner,
                              spill_error_t *error)
{
    spill_sizes_t sizes;
    spill_owner_totals_t *totals = &collector->totals;
    SPILL_TRY(spill_measure_any(collector->array, owner, &sizes, error));
    totals->elements += sizes.elements;
    totals->bytes += sizes.bytes;
    totals->unmanaged = !sizes.managed;
    return SPILL_OK;
}

static spill_code_t add_elements(collector_t *collector, const spill_value_t *owner,
                                 spill_error_t *error)
{
    bool managed = true;
    spill_code_t code =
        spill_walk_any(collector->array, owner, count_element, collector, &managed, error);
    collector->totals.unmanaged = !managed;
    return code;
}

static spill_code_t count_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    collector_t *collector = context;
    bool wanted = begin_owner(collector, owner);
    if (collector->stopped)
        return spill_walk_stopped(error);
    if (!wanted)
        return SPILL_OK;
    const spill_owner_totals_t before = collector->totals;
    spill_code_t code = collector->reads ? add_elements(collector, owner, error)
                                         : add_sizes(collector, owner, error);
    bool counts =
        code == SPILL_OK || (code == SPILL_CORRUPT && collector->array->store->options.partial &&
                             collector->totals.elements > before.elements);
    collector->any = collector->any || counts;
    if (!counts)
        collector->totals = before;
    return code;
}

/* Referenced elements have a document each. With `partial`, those that can be read are counted. */
static bool must_read(const spill_array_t *array, bool newest)
{
    const spill_definition_t *definition = &array->definition;
    return spill_schema_of(definition)->has_referenced_elements || array->store->options.partial ||
           (newest && definition->time_field[0] != '\0');
}

spill_code_t spill_stats_owners(spill_array_t *array, const char *prefix, bool newest,
                                spill_owner_totals_fn visit, void *context, int64_t *skipped,
                                spill_error_t *error)
{
    collector_t collector = {.array = array,
                             .prefix = prefix,
                             .newest = newest,
                             .reads = must_read(array, newest),
                             .visit = visit,
                             .context = context,
                             .totals = {.newest_ms = SPILL_DATE_UNKNOWN}};
    bson_init(&collector.owner);
    spill_code_t code = spill_each_array(array, count_owner, &collector, skipped, error);
    if (collector.stopped && code == SPILL_CANCELLED)
        code = SPILL_OK;
    else if (code == SPILL_OK || code == SPILL_CORRUPT) /* else it may lack windows */
        end_owner(&collector);
    bson_destroy(&collector.owner);
    return code;
}

static bool add_owner(void *context, const spill_owner_totals_t *totals)
{
    spill_stats_t *stats = context;
    stats->owners++;
    stats->unmanaged += totals->unmanaged ? 1 : 0;
    stats->elements += totals->elements;
    stats->bytes += totals->bytes;
    add_length(stats, totals->elements);
    add_largest(stats, &totals->owner, totals->elements, totals->bytes);
    return true;
}

spill_code_t spill_stats_collect(spill_array_t *array, size_t top, spill_stats_t *stats,
                                 spill_error_t *error)
{
    *stats = (spill_stats_t){.largest_max = top};
    stats->largest = bson_malloc((top + 1) * sizeof *stats->largest);
    return spill_stats_owners(array, NULL, false, add_owner, stats, &stats->skipped, error);
}

void spill_stats_release(spill_stats_t *stats)
{
    for (size_t i = 0; i < stats->largest_count; i++)
        bson_destroy(stats->largest[i].storage);
    bson_free(stats->largest);
    bson_free(stats->lengths);
    *stats = (spill_stats_t){0};
}
