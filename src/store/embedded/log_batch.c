#include "store/embedded/log_batch.h"

#include <bson/bson.h>
#include <string.h>

/* RocksDB's tags of changes. */
enum { TAG_DELETE = 0x0, TAG_PUT = 0x1, TAG_NOTE = 0x3, TAG_NOTHING = 0xd, TAG_DELETE_RANGE = 0xf };

enum { HEAD_BYTES = 12 };

bool spill_log_batch_open(spill_log_batch_t *batch, const uint8_t *record, size_t bytes)
{
    *batch = (spill_log_batch_t){.sequence = 0};
    if (bytes < HEAD_BYTES)
        return false;
    memcpy(&batch->sequence, record, sizeof batch->sequence);
    memcpy(&batch->count, record + sizeof batch->sequence, sizeof batch->count);
    batch->sequence = BSON_UINT64_FROM_LE(batch->sequence);
    batch->count = BSON_UINT32_FROM_LE(batch->count);
    batch->at = (spill_reader_t){.at = record + HEAD_BYTES, .end = record + bytes};
    return true;
}

static const uint8_t *read_text(spill_reader_t *reader, size_t *bytes)
{
    *bytes = (size_t)spill_reader_varint(reader);
    return spill_reader_bytes(reader, *bytes);
}

bool spill_log_batch_next(spill_log_batch_t *batch, spill_log_change_t *change)
{
    spill_reader_t *reader = &batch->at;
    *change = (spill_log_change_t){.kind = SPILL_CHANGE_PUT};
    while (reader->at < reader->end && !reader->bad) {
        uint8_t tag = spill_reader_byte(reader);
        if (tag == TAG_NOTHING)
            continue;
        if (tag != TAG_PUT && tag != TAG_DELETE && tag != TAG_DELETE_RANGE && tag != TAG_NOTE)
            break;
        change->key = read_text(reader, &change->key_bytes);
        if (tag == TAG_NOTE)
            continue;
        if (tag != TAG_DELETE)
            change->value = read_text(reader, &change->value_bytes);
        change->kind = tag == TAG_PUT      ? SPILL_CHANGE_PUT
                       : tag == TAG_DELETE ? SPILL_CHANGE_DELETE
                                           : SPILL_CHANGE_DELETE_RANGE;
        return !reader->bad;
    }
    reader->bad = reader->bad || reader->at < reader->end;
    return false;
}
