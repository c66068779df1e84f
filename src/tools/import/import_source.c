/* An input: its format, which says where a record ends, and its decompressed bytes. */
#include "tools/import/import_records.h"
#include "util/error.h"

#include <bson/bson.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

/* ---- formats --------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    spill_format_t format;
} FORMATS[] = {
    {"ndjson", SPILL_FORMAT_NDJSON}, {"jsonl", SPILL_FORMAT_NDJSON}, {"json", SPILL_FORMAT_JSON},
    {"csv", SPILL_FORMAT_CSV},       {"bson", SPILL_FORMAT_BSON},
};

static const struct {
    const char *suffix;
    spill_codec_t codec;
} CODECS[] = {{".gz", SPILL_CODEC_GZIP}, {".zst", SPILL_CODEC_ZSTD}, {"", SPILL_CODEC_PLAIN}};

bool spill_import_format(const char *text, bool is_path, spill_format_t *format,
                         spill_codec_t *codec)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < sizeof CODECS / sizeof CODECS[0]; i++) {
        size_t suffix = strlen(CODECS[i].suffix);
        if (length > suffix && strcmp(text + length - suffix, CODECS[i].suffix) == 0) {
            *codec = CODECS[i].codec;
            length -= suffix;
            break;
        }
    }
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        size_t size = strlen(FORMATS[i].name);
        bool ends = length >= size && memcmp(text + length - size, FORMATS[i].name, size) == 0;
        if (ends && (is_path ? length > size && text[length - size - 1] == '.' : length == size)) {
            *format = FORMATS[i].format;
            return true;
        }
    }
    return false;
}

/* ---- the end of a record: a pure function for each format ------------------------------------ */

spill_record_end_t spill_record_end_line(const uint8_t *data, size_t size, size_t *length)
{
    const uint8_t *newline = memchr(data, '\n', size);
    *length = newline ? (size_t)(newline - data) + 1 : size;
    return newline ? SPILL_RECORD_WHOLE : SPILL_RECORD_MORE;
}

spill_record_end_t spill_record_end_csv(const uint8_t *data, size_t size, size_t *length)
{
    bool quoted = false;
    bool may_open = true; /* at a field's start, or after a quote: two quotes stand for one */
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = data[i];
        if (quoted) {
            quoted = byte != '"';
            may_open = true;
        } else if (byte == '\n') {
            *length = i + 1;
            return SPILL_RECORD_WHOLE;
        } else {
            quoted = byte == '"' && may_open;
            may_open = byte == ',';
        }
    }
    *length = size;
    return SPILL_RECORD_MORE;
}

spill_record_end_t spill_record_end_document(const uint8_t *data, size_t size, size_t *length)
{
    bool quoted = false;
    int64_t depth = 0;
    *length = size;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = data[i];
        if (quoted) {
            i += byte == '\\';
            quoted = byte != '"';
        } else if (byte == '"') {
            quoted = true;
        } else if (byte == '{' || byte == '[') {
            depth++;
        } else if ((byte == '}' || byte == ']') && --depth == 0) {
            *length = i + 1;
            return SPILL_RECORD_WHOLE;
        } else if (depth == 0) {
            *length = i;
            return SPILL_RECORD_BAD;
        }
    }
    return SPILL_RECORD_MORE;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

#define INPUT_BYTES (256 * 1024)
#define STOP_MS 100           /* between two reads of *stop while waiting */
#define GZIP_WINDOW (15 + 16) /* zlib: expect gzip, with the largest window */

struct spill_source {
    char *name;
    int fd;
    bool plain_file; /* seekable and not compressed */
    bool waits;      /* a pipe or the like, which may have no bytes yet */
    const atomic_bool *stop;
    bool stopped;
    off_t start;  /* of a regular file: the place at which it was opened */
    int64_t size; /* from there */
    atomic_llong position;
    spill_codec_t codec;
    z_stream gzip;
    ZSTD_DCtx *zstd;
    bool inside;         /* within a compressed member or frame */
    spill_code_t failed; /* damage found behind good bytes: the next read reports it */
    spill_error_t failure;
    uint8_t *input;
    size_t input_at;
    size_t input_end;
};

static spill_code_t open_codec(spill_source_t *source, spill_error_t *error)
{
    if (source->codec == SPILL_CODEC_PLAIN)
        return SPILL_OK;
    source->input = bson_malloc(INPUT_BYTES);
    if (source->codec == SPILL_CODEC_GZIP)
        return inflateInit2(&source->gzip, GZIP_WINDOW) == Z_OK
                   ? SPILL_OK
                   : spill_fail(error, SPILL_IO, "zlib cannot be initialized");
    source->zstd = ZSTD_createDCtx();
    return source->zstd ? SPILL_OK : spill_fail(error, SPILL_IO, "zstd cannot be initialized");
}

spill_code_t spill_source_open(const char *path, spill_codec_t codec, spill_source_t **source,
                               spill_error_t *error)
{
    bool is_stdin = strcmp(path, "-") == 0;
    spill_source_t *made = bson_malloc0(sizeof *made);
    *source = made;
    made->codec = codec;
    made->size = -1;
    made->name = bson_strdup(is_stdin ? "stdin" : path);
    made->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (made->fd < 0)
        return spill_fail_errno(error, errno, "cannot open %s", path);
    struct stat status;
    if (fstat(made->fd, &status) != 0)
        return spill_fail_errno(error, errno, "cannot read the properties of %s", path);
    made->waits = !S_ISREG(status.st_mode);
    if (!made->waits) {
        made->start = lseek(made->fd, 0, SEEK_CUR);
        made->size = made->start < status.st_size ? status.st_size - made->start : 0;
        made->plain_file = codec == SPILL_CODEC_PLAIN;
        posix_fadvise(made->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    }
    return open_codec(made, error);
}

void spill_source_close(spill_source_t *source)
{
    if (!source)
        return;
    if (source->fd > STDIN_FILENO)
        close(source->fd);
    if (source->codec == SPILL_CODEC_GZIP && source->input)
        inflateEnd(&source->gzip);
    ZSTD_freeDCtx(source->zstd);
    bson_free(source->input);
    bson_free(source->name);
    bson_free(source);
}

bool spill_source_repeats(const char *path)
{
    struct stat status;
    bool known =
        strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &status) == 0 : stat(path, &status) == 0;
    return known && S_ISREG(status.st_mode);
}

void spill_source_rewind(spill_source_t *source)
{
    if (source->fd == STDIN_FILENO)
        lseek(source->fd, source->start, SEEK_SET);
}

void spill_source_stop_by(spill_source_t *source, const atomic_bool *stop)
{
    source->stop = stop;
}

bool spill_source_stopped(const spill_source_t *source)
{
    return source->stopped;
}

bool spill_source_check_stop(spill_source_t *source)
{
    if (source->stop && atomic_load_explicit(source->stop, memory_order_relaxed))
        source->stopped = true;
    return source->stopped;
}

/* Wait for bytes or the end of the input; for a pipe also wait for its first writer. */
static void wait_for_bytes(spill_source_t *source)
{
    struct pollfd ready = {.fd = source->fd, .events = POLLIN};
    while (!source->stopped) {
        int count = poll(&ready, 1, source->stop ? STOP_MS : -1);
        if (count > 0 || (count < 0 && errno != EINTR))
            break;
        source->stopped = source->stop && atomic_load_explicit(source->stop, memory_order_relaxed);
    }
}

static spill_code_t read_file(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                              spill_error_t *error)
{
    ssize_t count;
    do {
        if (source->waits)
            wait_for_bytes(source);
        count = source->stopped ? 0 : read(source->fd, data, size);
    } while (count < 0 && (errno == EINTR || errno == EAGAIN));
    if (count < 0)
        return spill_fail_errno(error, errno, "cannot read %s", source->name);
    *got = (size_t)count;
    atomic_fetch_add_explicit(&source->position, count, memory_order_relaxed);
    return SPILL_OK;
}

static spill_code_t fail_damaged(const spill_source_t *source, const char *what,
                                 spill_error_t *error)
{
    int64_t left = (int64_t)(source->input_end - source->input_at);
    return spill_fail(error, SPILL_PARSE,
                      "%s: the compressed data is damaged near byte %" PRId64 ": %s", source->name,
                      spill_source_position(source) - left, what);
}

/* A gzip file may consist of several members. */
static spill_code_t gunzip(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                           spill_error_t *error)
{
    z_stream *gzip = &source->gzip;
    if (!source->inside) {
        inflateReset(gzip);
        source->inside = true;
    }
    gzip->next_in = source->input + source->input_at;
    gzip->avail_in = (uInt)(source->input_end - source->input_at);
    gzip->next_out = data;
    gzip->avail_out = (uInt)size;
    int result = inflate(gzip, Z_NO_FLUSH);
    source->input_at = source->input_end - gzip->avail_in;
    *got = size - gzip->avail_out;
    if (result == Z_STREAM_END)
        source->inside = false;
    else if (result != Z_OK && result != Z_BUF_ERROR)
        return fail_damaged(source, gzip->msg ? gzip->msg : "not gzip", error);
    return SPILL_OK;
}

static spill_code_t unzstd(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                           spill_error_t *error)
{
    ZSTD_inBuffer input = {source->input, source->input_end, source->input_at};
    ZSTD_outBuffer output = {data, size, 0};
    size_t result = ZSTD_decompressStream(source->zstd, &output, &input);
    source->input_at = input.pos;
    *got = output.pos;
    if (ZSTD_isError(result))
        return fail_damaged(source, ZSTD_getErrorName(result), error);
    source->inside = result != 0;
    return SPILL_OK;
}

static spill_code_t read_compressed(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                                    spill_error_t *error)
{
    bool ended = false;
    for (;;) {
        bool pending = source->inside || source->input_at < source->input_end;
        if (pending) {
            spill_code_t code = source->codec == SPILL_CODEC_GZIP
                                    ? gunzip(source, data, size, got, error)
                                    : unzstd(source, data, size, got, error);
            if (code != SPILL_OK || *got > 0)
                return code;
        }
        if (source->input_at < source->input_end)
            continue;
        if (ended)
            return source->inside
                       ? spill_fail(error, SPILL_PARSE,
                                    "%s is cut off: the compressed data does not end (after byte "
                                    "%" PRId64 ")",
                                    source->name, spill_source_position(source))
                       : SPILL_OK;
        source->input_at = 0;
        source->input_end = 0;
        size_t count = 0;
        spill_code_t code = read_file(source, source->input, INPUT_BYTES, &count, error);
        if (code != SPILL_OK)
            return code;
        source->input_end = count;
        ended = count == 0;
    }
}

spill_code_t spill_source_read(spill_source_t *source, uint8_t *data, size_t size, size_t *got,
                               spill_error_t *error)
{
    *got = 0;
    if (source->codec == SPILL_CODEC_PLAIN)
        return read_file(source, data, size, got, error);
    if (source->failed == SPILL_OK)
        source->failed = read_compressed(source, data, size, got, &source->failure);
    if (source->failed != SPILL_OK && *got == 0) {
        *error = source->failure;
        return source->failed;
    }
    return SPILL_OK;
}

spill_code_t spill_source_skip(spill_source_t *source, int64_t bytes, int64_t *passed,
                               spill_error_t *error)
{
    *passed = 0;
    if (source->plain_file) {
        int64_t left = source->size - spill_source_position(source);
        left = left > 0 ? left : 0; /* a file that has grown is read beyond its size */
        *passed = bytes < left ? bytes : left;
        if (lseek(source->fd, *passed, SEEK_CUR) < 0)
            return spill_fail_errno(error, errno, "cannot seek in %s", source->name);
        atomic_fetch_add_explicit(&source->position, *passed, memory_order_relaxed);
        return SPILL_OK;
    }
    uint8_t *unused = bson_malloc(INPUT_BYTES);
    spill_code_t code = SPILL_OK;
    while (*passed < bytes) {
        int64_t left = bytes - *passed;
        size_t got = 0;
        code = spill_source_read(source, unused, left < INPUT_BYTES ? (size_t)left : INPUT_BYTES,
                                 &got, error);
        if (code != SPILL_OK || got == 0)
            break;
        *passed += (int64_t)got;
    }
    bson_free(unused);
    return code;
}

const char *spill_source_name(const spill_source_t *source)
{
    return source->name;
}

int64_t spill_source_position(const spill_source_t *source)
{
    return atomic_load_explicit(&source->position, memory_order_relaxed);
}

int64_t spill_source_size(const spill_source_t *source)
{
    return source->size;
}
