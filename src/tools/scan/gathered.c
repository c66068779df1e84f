/* Add what the walk found in a document to the table of paths. */
#include "tools/scan/gathered.h"

bool spill_gathered_add(spill_gathered_t *gathered, const spill_path_values_t *values,
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

void spill_gathered_flush(spill_gathered_t *gathered, spill_paths_t *paths, const uint8_t *document)
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
