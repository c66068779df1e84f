/* Bases of the operations of a chunk: the parsing thread reads them ahead of the importing thread.
 */
#include "tools/import/import_chunk.h"

#include "util/error.h"

#include <bson/bson.h>

/*
 * Of each hash of an owner, a mark of the last chunk with such an owner. Marks are 1 to 255, in
 * turn. An old mark that looks recent only leaves a base to the importing thread.
 */
enum { HASHES = 256 * 1024, MARKS = 255 };

struct spill_bases_reader {
    spill_array_t *array;
    int waiting_max; /* chunks before one that may not be applied yet */
    uint8_t marks[HASHES];
};

spill_bases_reader_t *spill_bases_reader_new(spill_array_t *array, int waiting_max)
{
    spill_bases_reader_t *reader = bson_malloc0(sizeof *reader);
    reader->array = array;
    reader->waiting_max = waiting_max;
    return reader;
}

void spill_bases_reader_free(spill_bases_reader_t *reader)
{
    bson_free(reader);
}

/* Report whether a chunk with this mark may still wait when the chunk with mark `now` is filled. */
static bool may_wait(const spill_bases_reader_t *reader, int mark, int now)
{
    return mark != 0 && (now - mark + MARKS) % MARKS <= reader->waiting_max;
}

void spill_bases_begin(spill_bases_reader_t *reader, spill_chunk_t *chunk)
{
    const int now = (int)(chunk->number % MARKS) + 1;
    if (chunk->base_capacity < chunk->owner_count) {
        chunk->base_capacity = chunk->owner_count;
        chunk->bases = bson_realloc(chunk->bases, chunk->base_capacity * sizeof *chunk->bases);
    }
    chunk->has_bases = true;
    for (size_t i = 0; i < chunk->owner_count; i++) {
        bool waits = may_wait(reader, reader->marks[chunk->owners[i].hash % HASHES], now);
        chunk->bases[i] = waits ? SPILL_BASE_LATER : SPILL_BASE_UNREAD;
    }
    for (size_t i = 0; i < chunk->owner_count; i++)
        reader->marks[chunk->owners[i].hash % HASHES] = (uint8_t)now;
}

void spill_bases_read(spill_bases_reader_t *reader, spill_chunk_t *chunk, size_t from, size_t to)
{
    for (size_t k = from; k < to && k < chunk->owner_count; k++) {
        uint32_t i = chunk->by_key[k];
        spill_value_t owner = spill_chunk_owner_value(chunk, &chunk->owners[i]);
        spill_error_t ignored; /* the importing thread tries again, and reports */
        int64_t base;
        if (chunk->bases[i] == SPILL_BASE_UNREAD &&
            spill_array_op_base(reader->array, &owner, &base, &ignored) == SPILL_OK)
            chunk->bases[i] = base;
    }
}

spill_code_t spill_import_read_bases(spill_array_t *array, const spill_chunk_t *chunk,
                                     int64_t *bases, spill_error_t *error)
{
    for (size_t k = 0; k < chunk->owner_count; k++) {
        uint32_t i = chunk->by_key[k];
        spill_value_t owner = spill_chunk_owner_value(chunk, &chunk->owners[i]);
        bool known = chunk->has_bases && chunk->bases[i] >= 0;
        if (known)
            bases[i] = chunk->bases[i];
        else
            SPILL_TRY(spill_array_op_base(array, &owner, &bases[i], error));
    }
    return SPILL_OK;
}
