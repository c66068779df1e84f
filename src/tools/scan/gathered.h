/*
 * What the walk found in the current document. It is kept apart from the table of paths until the
 * document is known to be valid.
 *
 * Elements of one size are counted together, and so are documents of one path and length. So a long
 * array needs little memory.
 */
#ifndef SPILL_TOOLS_SCAN_GATHERED_H
#define SPILL_TOOLS_SCAN_GATHERED_H

#include "tools/scan/paths.h"

enum { SPILL_GATHERED_VALUES = 16384, SPILL_GATHERED_RUNS = 32768, SPILL_GATHERED_SLOTS = 1024 };

/* Elements of one array path and one size. */
typedef struct spill_gathered_run {
    uint32_t path; /* an index: a map may absorb the path meanwhile */
    uint32_t size_bytes;
    uint32_t times;
} spill_gathered_run_t;

/*
 * Zero it once, and set the counts to 0 for each document. Two numbers identify an item. The slot
 * of their hash has the index of the last item with this hash. The index may come from an earlier
 * document, so the numbers are compared.
 */
typedef struct spill_gathered {
    uint32_t value_count;
    uint32_t run_count;
    uint16_t value_slots[SPILL_GATHERED_SLOTS];
    uint16_t run_slots[SPILL_GATHERED_SLOTS];
    spill_path_values_t values[SPILL_GATHERED_VALUES];
    spill_gathered_run_t runs[SPILL_GATHERED_RUNS];
} spill_gathered_t;

/* Add everything to the table, and forget it. The document begins at `document`. */
static inline void spill_gathered_flush(spill_gathered_t *gathered, spill_paths_t *paths,
                                        const uint8_t *document)
{
    for (uint32_t i = 0; i < gathered->run_count; i++) {
        const spill_gathered_run_t *run = &gathered->runs[i];
        spill_paths_add_elements(paths, run->path, run->size_bytes, run->times);
    }
    for (uint32_t i = 0; i < gathered->value_count; i++)
        spill_paths_add(paths, &gathered->values[i], document);
    gathered->run_count = 0;
    gathered->value_count = 0;
}

static inline uint32_t spill_gathered_slot(uint32_t path, uint32_t number)
{
    return (path * 67 + number) % SPILL_GATHERED_SLOTS;
}

/* Add `times` elements of an array. False: there is no room; flush first. */
static inline bool spill_gathered_add_run(spill_gathered_t *gathered, uint32_t path,
                                          uint32_t size_bytes, uint32_t times)
{
    uint16_t *slot = &gathered->run_slots[spill_gathered_slot(path, size_bytes)];
    spill_gathered_run_t *run = &gathered->runs[*slot];
    if (*slot < gathered->run_count && run->path == path && run->size_bytes == size_bytes) {
        run->times += times;
        return true;
    }
    if (gathered->run_count == SPILL_GATHERED_RUNS)
        return false;
    *slot = (uint16_t)gathered->run_count;
    gathered->runs[gathered->run_count++] = (spill_gathered_run_t){path, size_bytes, times};
    return true;
}

/*
 * Add arrays or documents. Documents of one path and length, with fewer fields than
 * SPILL_MAP_KEYS_MIN, share an item. False: there is no room; flush first.
 */
static inline bool spill_gathered_add(spill_gathered_t *gathered, const spill_path_values_t *values,
                                      spill_path_kind_t kind)
{
    uint16_t *slot = &gathered->value_slots[spill_gathered_slot(values->path, values->length)];
    spill_path_values_t *like = &gathered->values[*slot];
    if (*slot < gathered->value_count && like->path == values->path &&
        like->length == values->length && kind == SPILL_PATH_DOCUMENT &&
        values->length < SPILL_MAP_KEYS_MIN) {
        like->count += values->count;
        like->bytes += values->bytes;
        if (values->size_max > like->size_max) {
            like->size_max = values->size_max;
            like->size_max_at = values->size_max_at;
        }
        return true;
    }
    if (gathered->value_count == SPILL_GATHERED_VALUES)
        return false;
    *slot = (uint16_t)gathered->value_count;
    gathered->values[gathered->value_count++] = *values;
    return true;
}

#endif
