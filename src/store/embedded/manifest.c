#include "store/embedded/manifest.h"

#include "store/embedded/log_reader.h"
#include "util/error.h"
#include "util/file.h"

#include <bson/bson.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

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
