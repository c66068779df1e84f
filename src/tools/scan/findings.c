/*
 * Findings: what is wrong with a collection's shape. docs/how-to/scan.md has the rules for users:
 *
 * - unbounded-array: an array of some document is over a threshold, and lengths differ: the longest
 *   is more than a quarter longer than one in the shortest tenth. (Vectors and the like are long,
 * but do not grow.) With fewer than ten arrays, all over a threshold count.
 *
 * - unbounded-map: the same for a map. It has SPILL_MAP_KEYS_MIN keys or more, and no single value
 *   takes half of its bytes.
 *
 * - overgrown-index: an index has entries for the elements of an array (or map) with lengths that
 *   differ. For some document these are more than a tenth of the threshold in elements.
 *
 * - paid-by-array: what is over the threshold in bytes is most of its document.
 *
 * - large-document: a document is larger than half of the limit.
 *
 * - collection-sprawl: collections are alike and differ by an identifier in their names (sprawl.c).
 *
 * A finding is critical if it concerns a document larger than four fifths of the limit. Sprawl is
 * critical if there are more collections than four fifths of their limit.
 */
#include "tools/scan/scan.h"

#include <stdlib.h>
#include <string.h>

#define FEW 10 /* arrays: too few for their lengths to show whether they grow */

const char *spill_scan_finding_name(spill_scan_finding_kind_t kind)
{
#define OUR_NAME(name, ours, atlas) [SPILL_SCAN_FINDING_##name] = ours,
    static const char *const NAMES[] = {SPILL_SCAN_FINDINGS(OUR_NAME)};
#undef OUR_NAME
    return NAMES[kind];
}

const char *spill_scan_finding_atlas(spill_scan_finding_kind_t kind)
{
#define ATLAS_NAME(name, ours, atlas) [SPILL_SCAN_FINDING_##name] = atlas,
    static const char *const NAMES[] = {SPILL_SCAN_FINDINGS(ATLAS_NAME)};
#undef ATLAS_NAME
    return NAMES[kind];
}

static void add_finding(spill_scan_result_t *result, spill_scan_finding_kind_t kind,
                        size_t collection, const spill_scan_path_t *path, int64_t documents,
                        bool critical)
{
    result->findings =
        bson_realloc(result->findings, (result->finding_count + 1) * sizeof *result->findings);
    result->findings[result->finding_count++] = (spill_scan_finding_t){.kind = kind,
                                                                       .critical = critical,
                                                                       .collection = collection,
                                                                       .path = path,
                                                                       .documents = documents};
}

static bool is_critical(const spill_scan_result_t *result, int64_t document_bytes)
{
    return document_bytes > result->limits.document_bytes / 5 * 4;
}

static bool lengths_differ(const spill_scan_path_t *path)
{
    return path->lengths.count < FEW || path->lengths.max * 4 > path->lengths.p10 * 5;
}

static void find_in_path(spill_scan_result_t *result, size_t collection,
                         const spill_scan_path_t *path)
{
    bool critical = is_critical(result, path->document_max);
    int64_t over = path->over_elements > path->over_bytes ? path->over_elements : path->over_bytes;
    if (over > 0 && lengths_differ(path))
        add_finding(result, path->map ? SPILL_SCAN_FINDING_MAP : SPILL_SCAN_FINDING_ARRAY,
                    collection, path, over, critical);
    if (path->paid > 0)
        add_finding(result, SPILL_SCAN_FINDING_PAID, collection, path, path->paid, critical);
}

/* Find the innermost path that the key is in: its elements have the entries. */
static const spill_scan_path_t *path_of(const spill_scan_collection_t *collection,
                                        const spill_scan_index_t *index)
{
    const spill_scan_path_t *found = NULL;
    for (size_t i = 0; i < collection->path_count; i++) {
        const spill_scan_path_t *path = &collection->paths[i];
        if (!path->map && spill_scan_index_covers(index, path->path) &&
            (!found || strlen(path->path) > strlen(found->path)))
            found = path;
    }
    return found;
}

static void find_in_indexes(spill_scan_result_t *result, size_t at)
{
    const spill_scan_collection_t *collection = &result->collections[at];
    for (size_t i = 0; i < collection->indexes.count; i++) {
        const spill_scan_index_t *index = &collection->indexes.items[i];
        const spill_scan_path_t *path = path_of(collection, index);
        if (!path || !lengths_differ(path) || path->over_entries == 0 ||
            path->lengths.max <= result->limits.elements / SPILL_SCAN_INDEX_PART)
            continue;
        add_finding(result, SPILL_SCAN_FINDING_INDEX, at, path, path->documents, false);
        result->findings[result->finding_count - 1].index = index;
    }
}

static void find_in_groups(spill_scan_result_t *result)
{
    bool critical = (int64_t)result->collection_count > result->collections_max / 5 * 4;
    for (size_t i = 0; i < result->sprawl.count; i++) {
        const spill_sprawl_group_t *group = &result->sprawl.groups[i];
        add_finding(result, SPILL_SCAN_FINDING_SPRAWL, group->members[0], NULL, group->documents,
                    critical);
        result->findings[result->finding_count - 1].group = group;
    }
}

void spill_scan_find_sprawl(spill_scan_result_t *result)
{
    size_t count = result->collection_count;
    spill_sprawl_collection_t *all = bson_malloc0((count + 1) * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        const spill_scan_collection_t *collection = &result->collections[i];
        all[i] = (spill_sprawl_collection_t){.name = collection->name,
                                             .shape = &collection->shape,
                                             .indexes = collection->indexes.hash,
                                             .index_count = (int64_t)collection->indexes.count,
                                             .index_bytes =
                                                 spill_scan_indexes_bytes(&collection->indexes),
                                             .documents = collection->documents,
                                             .bytes = collection->bytes};
    }
    spill_sprawl_release(&result->sprawl);
    result->sprawl = spill_sprawl_find(all, count, SPILL_SPRAWL_MIN, result->qualified);
    bson_free(all);
}

static int by_weight(const void *left, const void *right)
{
    const spill_scan_finding_t *one = left, *two = right;
    if (one->critical != two->critical)
        return one->critical ? -1 : 1;
    if (one->collection != two->collection)
        return one->collection < two->collection ? -1 : 1;
    if (one->kind != two->kind)
        return one->kind < two->kind ? -1 : 1;
    if (one->path != two->path)
        return one->path < two->path ? -1 : 1;
    if (one->index != two->index)
        return one->index < two->index ? -1 : 1;
    return (one->group > two->group) - (one->group < two->group);
}

void spill_scan_find(spill_scan_result_t *result)
{
    result->finding_count = 0;
    for (size_t i = 0; i < result->collection_count; i++) {
        const spill_scan_collection_t *collection = &result->collections[i];
        for (size_t j = 0; j < collection->path_count; j++)
            find_in_path(result, i, &collection->paths[j]);
        find_in_indexes(result, i);
        if (collection->over_half > 0)
            add_finding(result, SPILL_SCAN_FINDING_DOCUMENT, i, NULL, collection->over_half,
                        is_critical(result, collection->sizes.max));
    }
    find_in_groups(result);
    if (result->finding_count > 0)
        qsort(result->findings, result->finding_count, sizeof *result->findings, by_weight);
}
