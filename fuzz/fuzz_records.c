/*
 * A complete embedded store with malformed records. The first byte chooses the layout, the second
 * the operations. The changes follow: two bytes for the record, one for the kind of change, one for
 * the number of bytes, and the bytes. An error is a correct answer. A crash, an endless loop or a
 * malformed element is not (tests/support/exercise.c).
 */
#include "fuzz.h"
#include "support/exercise.h"

#include <string.h>

enum { CHANGE_DELETE, CHANGE_REPLACE, CHANGE_POKE, CHANGE_CUT, CHANGE_EXTEND, CHANGE_KEY, CHANGES };

enum { BYTES_MAX = 4096 };

static const exercise_store_t *store_of(int layout)
{
    static exercise_store_t stores[EXERCISE_LAYOUTS];
    if (stores[layout].count == 0)
        exercise_store_make(&stores[layout], layout);
    return &stores[layout];
}

/* Write bytes at places: `data` has pairs of a place and a byte. */
static void poke(uint8_t *bytes, size_t size, const uint8_t *data, size_t length)
{
    for (size_t i = 0; size > 0 && i + 1 < length; i += 2)
        bytes[data[i] % size] = data[i + 1];
}

static void change_record(disk_t *disk, const exercise_record_t *record, uint8_t kind,
                          const uint8_t *data, size_t length)
{
    uint8_t bytes[BYTES_MAX + 256];
    bool of_key = kind == CHANGE_KEY;
    size_t size = of_key ? record->key_bytes : record->value_bytes;
    size = size < BYTES_MAX ? size : BYTES_MAX;
    if (size > 0)
        memcpy(bytes, of_key ? record->key : record->value, size);
    switch (kind) {
    case CHANGE_DELETE:
        exercise_delete(disk, record->key, record->key_bytes);
        return;
    case CHANGE_REPLACE:
        exercise_put(disk, record->key, record->key_bytes, data, length);
        return;
    case CHANGE_CUT:
        size = length < size ? length : size;
        break;
    case CHANGE_EXTEND:
        memcpy(bytes + size, data, length);
        size += length;
        break;
    default:
        poke(bytes, size, data, length);
        break;
    }
    if (of_key)
        exercise_put(disk, bytes, size, record->value, record->value_bytes);
    else
        exercise_put(disk, record->key, record->key_bytes, bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const exercise_store_t *store = store_of(data[0] % EXERCISE_LAYOUTS);
    exercise_group_t group = (exercise_group_t)(data[1] % EXERCISE_GROUPS);
    disk_t *disk = exercise_disk(store);
    exercise_result_t result;
    size_t at = 2;
    while (size - at >= 4) {
        size_t index = (size_t)(data[at] | data[at + 1] << 8) % store->count;
        uint8_t kind = data[at + 2] % CHANGES;
        size_t length = data[at + 3];
        at += 4;
        length = length < size - at ? length : size - at;
        change_record(disk, &store->records[index], kind, data + at, length);
        at += length;
    }
    exercise_run(disk, group, &result);
    disk_free(disk);
    return 0;
}
