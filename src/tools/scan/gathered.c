/* Add what the walk found in a document to the table of paths. */
#include "tools/scan/gathered.h"

bool spill_gathered_append(spill_gathered_t *gathered, uint32_t path, uint32_t length,
                           uint32_t size_bytes, uint32_t at)
{
    if (gathered->value_count == SPILL_GATHERED_VALUES)
        return false;
    gathered->value_slots[spill_gathered_slot(path, length)] = (uint16_t)gathered->value_count;
    gathered->values[gathered->value_count++] = (spill_path_values_t){.path = path,
                                                                      .length = length,
                                                                      .count = 1,
                                                                      .size_max = size_bytes,
                                                                      .size_max_at = at,
                                                                      .bytes = size_bytes};
    return true;
}

void spill_gathered_flush(spill_gathered_t *gathered, spill_paths_t *paths, const uint8_t *document)
{
    for (uint32_t i = 0; i < gathered->run_count; i++) {
        const spill_run_t *run = &gathered->runs[i];
        spill_paths_add_elements(paths, run->path, run->size_bytes, run->times);
    }
    for (uint32_t i = 0; i < gathered->value_count; i++)
        spill_paths_add(paths, &gathered->values[i], document);
    gathered->run_count = 0;
    gathered->value_count = 0;
}
