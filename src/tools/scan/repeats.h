/*
 * Is an array a set? Its elements are strings, integers, ObjectIds, binaries or null, and no value
 * occurs twice. A path is a set if all of its arrays that were checked are sets. The first value
 * that occurs twice ends the check of the path.
 *
 * Values compare as ids do (bson/element_fields.h), by a hash of 64 bits. The check is exact for
 * arrays of up to SPILL_REPEATS_EXACT elements. In a longer array, it keeps a part of the values,
 * chosen by the hash: both of two equal values are in that part, or neither.
 */
#ifndef SPILL_TOOLS_SCAN_REPEATS_H
#define SPILL_TOOLS_SCAN_REPEATS_H

#include <stdbool.h>
#include <stdint.h>

#define SPILL_REPEATS_EXACT 65536

/* Of one path. Zero it to begin. */
typedef struct spill_repeats {
    int64_t arrays; /* checked, of two elements or more */
    bool excluded;  /* an array has a value twice, or an element of another type */
    bool sampled;   /* a part of the values was checked, or only the longest array of a document */
} spill_repeats_t;

/* The hashes of one array. Zero it to begin. Grows with the longest array, up to 1.5 MB. */
typedef struct spill_repeats_table {
    uint64_t *hashes;
    uint32_t *stamps; /* of the array whose hash is in the slot */
    uint32_t stamp;
    uint32_t slots;
} spill_repeats_table_t;

void spill_repeats_table_release(spill_repeats_table_t *table);

/* Check the array at `data`, which is well-formed and has `length` elements. O(its bytes). */
void spill_repeats_check(spill_repeats_t *repeats, spill_repeats_table_t *table,
                         const uint8_t *data, uint32_t length);

void spill_repeats_merge(spill_repeats_t *into, const spill_repeats_t *from);

/* Report whether the path is a set, as far as was checked. */
static inline bool spill_repeats_is_set(const spill_repeats_t *repeats)
{
    return repeats->arrays > 0 && !repeats->excluded;
}

#endif
