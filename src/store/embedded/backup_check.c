/*
 * The check of a copy: read every table file and every file of large values, and compare the
 * checksums. Opening the copy has checked its list of files and its logs.
 *
 *   blob file   header (30 bytes: magic number, version, ...), records, footer (32 bytes)
 *   record      sizes of key and value (8 bytes each), expiration (8), checksum of these 24 bytes
 *               (4), checksum of key and value (4), key, value
 *   footer      magic number (4), count of records (8), times (16), checksum of these 28 bytes (4)
 *
 * Numbers are little-endian; the checksums are masked as in logs (logs.h).
 */
#include "store/embedded/kv_rocksdb.h"

#include "store/embedded/logs.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <bson/bson.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { HEADER_BYTES = 30, RECORD_BYTES = 32, FOOTER_BYTES = 32, SUM_BYTES = 4 };

#define BLOB_MAGIC UINT32_C(0x00248f37)

/* ---- files of large values ------------------------------------------------------------------- */

typedef struct blob_file {
    FILE *file;
    const char *name; /* for messages */
    int64_t at;
    int64_t end; /* the start of the footer */
    int64_t records;
    spill_buffer_t bytes;
} blob_file_t;

static spill_code_t fail_blob(const blob_file_t *blob, spill_error_t *error)
{
    return spill_fail(error, SPILL_CORRUPT,
                      "%s: a checksum does not match at byte %" PRId64
                      " (restore a backup; `spillway export --partial' writes what can be read)",
                      blob->name, blob->at);
}

static uint64_t number_at(const uint8_t *bytes, int count)
{
    uint64_t number = 0;
    for (int i = count - 1; i >= 0; i--)
        number = number << 8 | bytes[i];
    return number;
}

/* Read the next bytes of the file into blob->bytes. */
static spill_code_t read_bytes(blob_file_t *blob, size_t size, spill_error_t *error)
{
    spill_buffer_clear(&blob->bytes);
    spill_buffer_reserve(&blob->bytes, size);
    blob->bytes.size = fread(blob->bytes.data, 1, size, blob->file);
    if (ferror(blob->file))
        return spill_fail_errno(error, errno, "%s: cannot read", blob->name);
    return blob->bytes.size == size ? SPILL_OK : fail_blob(blob, error);
}

static spill_code_t check_record(blob_file_t *blob, spill_error_t *error)
{
    SPILL_TRY(read_bytes(blob, RECORD_BYTES, error));
    const uint8_t *head = blob->bytes.data;
    uint64_t key_bytes = number_at(head, 8), value_bytes = number_at(head + 8, 8);
    uint64_t left = (uint64_t)(blob->end - blob->at - RECORD_BYTES);
    uint32_t sum = (uint32_t)number_at(head + 28, SUM_BYTES);
    if (number_at(head + 24, SUM_BYTES) != spill_log_checksum(head, 24) || key_bytes > left ||
        value_bytes > left - key_bytes)
        return fail_blob(blob, error);
    size_t size = (size_t)(key_bytes + value_bytes);
    SPILL_TRY(read_bytes(blob, size, error));
    if (spill_log_checksum(blob->bytes.data, size) != sum)
        return fail_blob(blob, error);
    blob->at += RECORD_BYTES + (int64_t)size;
    blob->records++;
    return SPILL_OK;
}

static spill_code_t check_records(blob_file_t *blob, spill_error_t *error)
{
    SPILL_TRY(read_bytes(blob, HEADER_BYTES, error));
    if (number_at(blob->bytes.data, 4) != BLOB_MAGIC)
        return fail_blob(blob, error);
    blob->at = HEADER_BYTES;
    while (blob->end - blob->at >= RECORD_BYTES)
        SPILL_TRY(check_record(blob, error));
    if (blob->at != blob->end)
        return fail_blob(blob, error);
    SPILL_TRY(read_bytes(blob, FOOTER_BYTES, error));
    const uint8_t *footer = blob->bytes.data;
    bool whole = number_at(footer, 4) == BLOB_MAGIC &&
                 number_at(footer + 4, 8) == (uint64_t)blob->records &&
                 number_at(footer + 28, SUM_BYTES) == spill_log_checksum(footer, 28);
    return whole ? SPILL_OK : fail_blob(blob, error);
}

static spill_code_t check_blob(const char *path, const char *name, spill_error_t *error)
{
    struct stat about;
    blob_file_t blob = {.file = spill_file_stream_regular(path), .name = name};
    if (!blob.file || fstat(fileno(blob.file), &about) != 0) {
        spill_code_t failed = spill_fail_errno(error, errno, "%s: cannot read", name);
        if (blob.file)
            fclose(blob.file);
        return failed;
    }
    blob.end = (int64_t)about.st_size - FOOTER_BYTES;
    spill_code_t code = check_records(&blob, error);
    fclose(blob.file);
    spill_buffer_release(&blob.bytes);
    return code;
}

/* ---- all files ------------------------------------------------------------------------------- */

static spill_code_t check_file(const char *folder, const char *store, const char *file,
                               spill_error_t *error)
{
    bool table = spill_text_ends_with(file, ".sst");
    if (!table && !spill_text_ends_with(file, ".blob"))
        return SPILL_OK;
    char *path = bson_strdup_printf("%s/%s", folder, file);
    char *name = bson_strdup_printf("%s/%s", store, file);
    spill_code_t code =
        table ? spill_engine_check(path, name, error) : check_blob(path, name, error);
    bson_free(path);
    bson_free(name);
    return code;
}

spill_code_t spill_backup_check(const char *folder, const char *store, spill_error_t *error)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0)
        return spill_fail_errno(error, errno, "%s: cannot look into the folder", folder);
    spill_code_t code = SPILL_OK;
    for (int i = 0; i < count; i++) {
        if (code == SPILL_OK)
            code = check_file(folder, store, entries[i]->d_name, error);
        free(entries[i]);
    }
    free(entries);
    return code;
}
