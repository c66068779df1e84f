/* Reads the records of the engine's logs, their changes, and the engine's list of files. */
#include "store/embedded/logs.h"

#include "util/buffer.h"
#include "util/error.h"
#include "util/file.h"

#include <bson/bson.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* ---- records --------------------------------------------------------------------------------- */

enum { HEADER_BYTES = 7, TYPE_WHOLE = 1, TYPE_FIRST = 2, TYPE_MIDDLE = 3, TYPE_LAST = 4 };
enum { TYPE_RECYCLED_WHOLE = 5, TYPE_RECYCLED_LAST = 8 };

/* Checksums cost time: how many bytes a search may sum in a block that is not the last one. */
enum { SEARCH_BYTES_MAX = 32 * SPILL_LOG_BLOCK_BYTES };

/* What was found at a position: a good part, a torn or bad one, or the end. */
typedef enum part_kind { PART_GOOD, PART_TORN, PART_BAD, PART_END } part_kind_t;

typedef struct part {
    int type;
    int64_t offset;
    const uint8_t *content;
    size_t bytes;
} part_t;

void spill_log_reader_open(spill_log_reader_t *reader, FILE *file)
{
    memset(reader, 0, offsetof(spill_log_reader_t, block));
    reader->file = file;
}

void spill_log_reader_close(spill_log_reader_t *reader)
{
    spill_buffer_release(&reader->joined);
}

/* Read the next block. A short block is the last one, also if the file grows during the read. */
static bool next_block(spill_log_reader_t *reader)
{
    if (reader->last)
        return false;
    reader->block_offset += (int64_t)reader->block_bytes;
    reader->block_bytes = fread(reader->block, 1, SPILL_LOG_BLOCK_BYTES, reader->file);
    reader->at = 0;
    if (ferror(reader->file))
        reader->failed = errno != 0 ? errno : EIO;
    reader->last = reader->block_bytes < SPILL_LOG_BLOCK_BYTES;
    return reader->block_bytes > 0;
}

/* The engine rotates and shifts a checksum, so that checksums of checksums differ. */
static uint32_t masked(uint32_t crc)
{
    return ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
}

uint32_t spill_log_checksum(const void *data, size_t size)
{
    return masked(spill_crc32c(data, size));
}

static bool checksum_holds(const uint8_t *header, size_t content_bytes)
{
    uint32_t sum = header[0] | ((uint32_t)header[1] << 8) | ((uint32_t)header[2] << 16) |
                   ((uint32_t)header[3] << 24);
    return spill_log_checksum(header + 6, content_bytes + 1) == sum;
}

static bool only_zeros(const uint8_t *data, size_t size)
{
    return size == 0 || (data[0] == 0 && memcmp(data, data + 1, size - 1) == 0);
}

static size_t length_at(const uint8_t *header)
{
    return header[4] + ((size_t)header[5] << 8);
}

/* The part at the reader's position. At least a header's bytes are left in the block. */
static part_kind_t part_here(const spill_log_reader_t *reader, part_t *part)
{
    const uint8_t *header = reader->block + reader->at;
    size_t left = reader->block_bytes - reader->at;
    size_t length = length_at(header);
    part->offset = reader->block_offset + (int64_t)reader->at;
    part->type = header[6];
    part->content = header + HEADER_BYTES;
    part->bytes = length;
    if (length == 0 && part->type == 0)
        return only_zeros(header, left) ? PART_TORN : PART_BAD;
    if (part->type < TYPE_WHOLE || part->type > TYPE_LAST)
        return PART_BAD;
    if (length > left - HEADER_BYTES)
        return reader->last ? PART_TORN : PART_BAD;
    return checksum_holds(header, length) ? PART_GOOD : PART_BAD;
}

/* The next part. The reader then is behind a good part, and at the start of any other part. */
static part_kind_t next_part(spill_log_reader_t *reader, part_t *part)
{
    while (reader->block_bytes - reader->at < HEADER_BYTES) {
        const uint8_t *rest = reader->block + reader->at;
        size_t left = reader->block_bytes - reader->at;
        part->offset = reader->block_offset + (int64_t)reader->at;
        if (reader->last && !only_zeros(rest, left))
            return PART_TORN;
        if (!next_block(reader))
            return PART_END;
    }
    part_kind_t kind = part_here(reader, part);
    if (kind == PART_GOOD)
        reader->at += HEADER_BYTES + part->bytes;
    return kind;
}

/* Find a part in the rest of the block. Inside a block only a whole or a first part can follow. */
static bool search_block(spill_log_reader_t *reader, part_t *part)
{
    size_t summed = 0;
    for (; reader->at + HEADER_BYTES <= reader->block_bytes; reader->at++) {
        const uint8_t *header = reader->block + reader->at;
        size_t length = length_at(header);
        bool can_follow = header[6] == TYPE_WHOLE || header[6] == TYPE_FIRST ||
                          (reader->at == 0 && header[6] <= TYPE_LAST);
        if (!can_follow || length == 0 || length > reader->block_bytes - reader->at - HEADER_BYTES)
            continue;
        summed += length;
        if (summed > SEARCH_BYTES_MAX && !reader->last) {
            reader->gave_up = true;
            return false;
        }
        if (part_here(reader, part) == PART_GOOD) {
            reader->at += HEADER_BYTES + length;
            return true;
        }
    }
    return false;
}

/* The first good part behind the break. */
static part_kind_t search_part(spill_log_reader_t *reader, part_t *part)
{
    bool found = search_block(reader, part);
    while (!found && next_block(reader))
        found = search_block(reader, part);
    if (!found)
        return PART_END;
    reader->searching = false;
    reader->more = true;
    return PART_GOOD;
}

static spill_log_step_t stop_at(spill_log_reader_t *reader, int64_t offset, bool torn)
{
    reader->offset = offset;
    reader->torn = torn;
    reader->searching = true;
    return SPILL_LOG_BREAK;
}

/* Return a record: the content of a whole part, or of joined parts. */
static spill_log_step_t return_record(spill_log_reader_t *reader, const uint8_t *data, size_t bytes)
{
    reader->record = bytes > 0 ? data : reader->block; /* no null pointer */
    reader->record_bytes = bytes;
    return SPILL_LOG_RECORD;
}

/* Join the parts behind a first part up to the last one. */
static spill_log_step_t join_parts(spill_log_reader_t *reader, const part_t *first)
{
    int64_t start = first->offset;
    reader->offset = start;
    spill_buffer_clear(&reader->joined);
    spill_buffer_append(&reader->joined, first->content, first->bytes);
    for (;;) {
        part_t part;
        part_kind_t kind = next_part(reader, &part);
        if (kind != PART_GOOD) {
            bool at_bad_part = kind != PART_END && reader->at < reader->block_bytes;
            reader->at += at_bad_part;
            return stop_at(reader, start, kind != PART_BAD);
        }
        if (part.type == TYPE_WHOLE || part.type == TYPE_FIRST) { /* a part between is missing */
            reader->at = (size_t)(part.offset - reader->block_offset);
            return stop_at(reader, start, false);
        }
        spill_buffer_append(&reader->joined, part.content, part.bytes);
        if (part.type == TYPE_LAST)
            return return_record(reader, reader->joined.data, reader->joined.size);
    }
}

spill_log_step_t spill_log_reader_next(spill_log_reader_t *reader)
{
    for (;;) {
        part_t part;
        bool after_break = reader->searching || reader->more;
        part_kind_t kind =
            reader->searching ? search_part(reader, &part) : next_part(reader, &part);
        if (kind == PART_END)
            return SPILL_LOG_END;
        if (kind != PART_GOOD) {
            reader->at += reader->at < reader->block_bytes;
            return stop_at(reader, part.offset, kind == PART_TORN);
        }
        reader->offset = part.offset;
        if (part.type == TYPE_WHOLE)
            return return_record(reader, part.content, part.bytes);
        if (part.type == TYPE_FIRST)
            return join_parts(reader, &part);
        if (!after_break) /* the first part of this record is missing */
            return stop_at(reader, part.offset, false);
    }
}

/*
 * The engine goes from part to part by their lengths, and to the next block behind damage. A walk
 * that does not look for damage visits at least the same parts.
 */
bool spill_log_has_recycled_part(FILE *file)
{
    uint8_t *block = bson_malloc(SPILL_LOG_BLOCK_BYTES);
    bool found = false;
    size_t bytes;
    rewind(file);
    while (!found && (bytes = fread(block, 1, SPILL_LOG_BLOCK_BYTES, file)) > 0) {
        for (size_t at = 0; !found && at + HEADER_BYTES <= bytes;
             at += HEADER_BYTES + length_at(block + at)) {
            uint8_t type = block[at + 6];
            found = type >= TYPE_RECYCLED_WHOLE && type <= TYPE_RECYCLED_LAST;
        }
    }
    bson_free(block);
    return found;
}

/* ---- the changes of a record ----------------------------------------------------------------- */

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

/* ---- the list of files ----------------------------------------------------------------------- */

/* RocksDB's numbers of a record's fields that come before the fields of single files. */
enum {
    FIELD_COMPARATOR = 1,
    FIELD_LOG = 2,
    FIELD_NEXT_FILE = 3,
    FIELD_SEQUENCE = 4,
    FIELD_PREVIOUS_LOG = 9,
    FIELD_OLDEST_LOG = 10,
    FIELD_MAX_FAMILY = 203,
    FIELD_TEXT = 1 << 13 /* bit: the field is a length, then that number of bytes */
};

bool spill_manifest_apply(spill_manifest_t *manifest, const uint8_t *record, size_t bytes)
{
    spill_reader_t reader = {.at = record, .end = record + bytes};
    while (reader.at < reader.end && !reader.bad) {
        uint64_t field = spill_reader_varint(&reader);
        if (field == FIELD_LOG)
            manifest->log = spill_reader_varint(&reader);
        else if (field == FIELD_NEXT_FILE)
            manifest->next_file = spill_reader_varint(&reader);
        else if (field == FIELD_SEQUENCE)
            manifest->sequence = spill_reader_varint(&reader);
        else if (field == FIELD_PREVIOUS_LOG || field == FIELD_OLDEST_LOG ||
                 field == FIELD_MAX_FAMILY)
            spill_reader_varint(&reader);
        else if (field == FIELD_COMPARATOR || (field & FIELD_TEXT) != 0)
            spill_reader_bytes(&reader, (size_t)spill_reader_varint(&reader));
        else
            break; /* fields of single files */
    }
    return !reader.bad;
}

/* "MANIFEST-", digits and a line end, and nothing else. */
static bool is_list_name(const char *line)
{
    const char *digits = line + strlen("MANIFEST-");
    if (strncmp(line, "MANIFEST-", strlen("MANIFEST-")) != 0)
        return false;
    size_t count = strspn(digits, "0123456789");
    return count > 0 && strcmp(digits + count, "\n") == 0;
}

FILE *spill_manifest_open_file(const char *folder, const spill_pinned_t *pinned, const char *name)
{
    if (pinned) {
        const spill_pinned_file_t *file = spill_pinned_find(pinned, name);
        errno = ENOENT;
        return file ? spill_pinned_stream(file) : NULL;
    }
    char *path = bson_strdup_printf("%s/%s", folder, name);
    FILE *file = spill_file_stream_regular(path);
    int problem = errno;
    bson_free(path);
    errno = problem;
    return file;
}

/* The name in CURRENT, without its line end. */
static spill_code_t read_current(const char *folder, const spill_pinned_t *pinned, char *name,
                                 size_t size, spill_error_t *error)
{
    FILE *file = spill_manifest_open_file(folder, pinned, "CURRENT");
    int problem = errno;
    if (!file)
        return spill_fail_errno(error, problem, "%s/CURRENT: cannot read", folder);
    size_t length = fread(name, 1, size - 1, file);
    fclose(file);
    name[length] = '\0';
    if (strlen(name) != length || !is_list_name(name))
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/CURRENT: does not hold the name of a list of files "
                          "(MANIFEST-NUMBER and a line end): restore a backup",
                          folder);
    name[length - 1] = '\0';
    return SPILL_OK;
}

static spill_code_t fail_damaged(const char *folder, const spill_manifest_t *manifest,
                                 int64_t offset, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s/%s: the list of files is damaged at byte %" PRId64 ": restore a backup",
                      folder, manifest->name, offset);
}

/* Read every record. A torn end is what a power loss leaves; anything else is damage. */
static spill_code_t read_records(const char *folder, spill_log_reader_t *reader,
                                 spill_manifest_t *manifest, spill_error_t *error)
{
    spill_log_step_t step;
    while ((step = spill_log_reader_next(reader)) == SPILL_LOG_RECORD)
        if (!spill_manifest_apply(manifest, reader->record, reader->record_bytes))
            return fail_damaged(folder, manifest, reader->offset, error);
    int64_t place = reader->offset;
    if (step == SPILL_LOG_BREAK) {
        manifest->torn = reader->torn;
        spill_log_reader_next(reader);
        if (!manifest->torn || reader->more || reader->gave_up)
            return fail_damaged(folder, manifest, place, error);
    }
    if (reader->failed != 0)
        return spill_fail_errno(error, reader->failed, "%s/%s: cannot read", folder,
                                manifest->name);
    return SPILL_OK;
}

static spill_code_t read_list(const char *folder, FILE *file, spill_manifest_t *manifest,
                              spill_error_t *error)
{
    spill_log_reader_t *reader = bson_malloc(sizeof *reader);
    spill_log_reader_open(reader, file);
    spill_code_t code = read_records(folder, reader, manifest, error);
    spill_log_reader_close(reader);
    bson_free(reader);
    if (code == SPILL_OK && fseeko(file, 0, SEEK_END) == 0)
        manifest->bytes = (int64_t)ftello(file);
    return code;
}

static spill_code_t read_manifest(const char *folder, const spill_pinned_t *pinned,
                                  spill_manifest_t *manifest, spill_error_t *error)
{
    *manifest = (spill_manifest_t){.bytes = 0};
    spill_code_t code = read_current(folder, pinned, manifest->name, sizeof manifest->name, error);
    if (code != SPILL_OK)
        return code;
    FILE *file = spill_manifest_open_file(folder, pinned, manifest->name);
    int problem = errno;
    if (!file && problem == ENOENT)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s/CURRENT: names the list of files %s, which does not exist: CURRENT "
                          "was changed or the list is missing; restore a backup",
                          folder, manifest->name);
    if (!file)
        return spill_fail_errno(error, problem, "%s/%s: cannot read", folder, manifest->name);
    code = read_list(folder, file, manifest, error);
    fclose(file);
    return code;
}

spill_code_t spill_manifest_read(const char *folder, spill_manifest_t *manifest,
                                 spill_error_t *error)
{
    return read_manifest(folder, NULL, manifest, error);
}

spill_code_t spill_manifest_read_pinned(const spill_pinned_t *pinned, spill_manifest_t *manifest,
                                        spill_error_t *error)
{
    return read_manifest(pinned->folder, pinned, manifest, error);
}
