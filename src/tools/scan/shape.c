#include "tools/scan/shape.h"

#include "bson/value.h"
#include "util/hash.h"

#include <string.h>

static size_t find_name(const spill_shape_t *shape, uint64_t name)
{
    size_t low = 0, high = shape->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (shape->names[middle] < name)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add_name(spill_shape_t *shape, uint64_t name, uint16_t seen)
{
    size_t at = find_name(shape, name);
    if (at < shape->count && shape->names[at] == name) {
        shape->seen[at] = (uint16_t)(shape->seen[at] + seen);
        return;
    }
    if (shape->count == SPILL_SHAPE_FIELDS)
        return;
    memmove(&shape->names[at + 1], &shape->names[at], (shape->count - at) * sizeof shape->names[0]);
    memmove(&shape->seen[at + 1], &shape->seen[at], (shape->count - at) * sizeof shape->seen[0]);
    shape->names[at] = name;
    shape->seen[at] = seen;
    shape->count++;
}

void spill_shape_add(spill_shape_t *shape, const uint8_t *document)
{
    spill_fields_t fields = spill_fields_of(document);
    const char *name;
    spill_value_t value;
    if (shape->documents >= SPILL_SHAPE_DOCUMENTS)
        return;
    shape->documents++;
    while (spill_fields_next(&fields, &name, &value))
        add_name(shape, spill_hash(name, strlen(name)), 1);
}

void spill_shape_merge(spill_shape_t *shape, const spill_shape_t *from)
{
    for (size_t i = 0; i < from->count; i++)
        add_name(shape, from->names[i], from->seen[i]);
    shape->documents = (uint16_t)(shape->documents + from->documents);
}

/* Report whether at least half of the documents have the name at that index. */
static int is_common(const spill_shape_t *shape, size_t at)
{
    return 2 * shape->seen[at] >= shape->documents;
}

static size_t count_common(const spill_shape_t *shape)
{
    size_t count = 0;
    for (size_t i = 0; i < shape->count; i++)
        count += (size_t)is_common(shape, i);
    return count;
}

double spill_shape_likeness(const spill_shape_t *left, const spill_shape_t *right)
{
    size_t both = 0;
    for (size_t i = 0; i < left->count; i++) {
        size_t at = find_name(right, left->names[i]);
        both += is_common(left, i) && at < right->count && right->names[at] == left->names[i] &&
                is_common(right, at);
    }
    size_t either = count_common(left) + count_common(right) - both;
    return either > 0 ? (double)both / (double)either : 0;
}
