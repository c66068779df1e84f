/* Find the inputs of a source on disk: one file, or the files of a dump. */
#include "tools/scan/document_source.h"

#include "tools/import/import_records.h"
#include "util/error.h"
#include "util/file.h"
#include "util/text.h"

#include <bson/bson.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct listing {
    spill_scan_inputs_t *inputs;
    spill_scan_missing_fn missing;
    void *context;
} listing_t;

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int64_t size_of(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : -1;
}

/* The file of this path with another ending, uncompressed or with .gz; NULL: none exists. */
static char *beside(const char *path, const char *ending, const char *other)
{
    int length = (int)(strlen(path) - strlen(ending));
    char *name = bson_strdup_printf("%.*s%s.gz", length, path, other);
    if (size_of(name) >= 0)
        return name;
    name[strlen(name) - strlen(".gz")] = '\0';
    if (size_of(name) >= 0)
        return name;
    bson_free(name);
    return NULL;
}

/* The description of a .bson file's collection. */
static char *metadata_of(const char *path)
{
    if (!spill_text_ends_with(path, ".bson") && !spill_text_ends_with(path, ".bson.gz"))
        return NULL;
    return beside(path, spill_text_ends_with(path, ".gz") ? ".bson.gz" : ".bson", ".metadata.json");
}

static spill_scan_input_t *add_input(spill_scan_inputs_t *inputs, const char *path,
                                     spill_format_t format, spill_codec_t codec)
{
    inputs->items = bson_realloc(inputs->items, (inputs->count + 1) * sizeof *inputs->items);
    spill_scan_input_t *item = &inputs->items[inputs->count++];
    *item = (spill_scan_input_t){
        .path = bson_strdup(path), .format = format, .codec = codec, .size_bytes = size_of(path)};
    item->metadata = format == SPILL_FORMAT_BSON ? metadata_of(path) : NULL;
    bool known = item->size_bytes >= 0 && inputs->size_bytes >= 0;
    inputs->size_bytes = known ? inputs->size_bytes + item->size_bytes : -1;
    return item;
}

void spill_scan_inputs_release(spill_scan_inputs_t *inputs)
{
    for (size_t i = 0; i < inputs->count; i++) {
        bson_free(inputs->items[i].path);
        bson_free(inputs->items[i].collection);
        bson_free(inputs->items[i].metadata);
    }
    bson_free(inputs->items);
    *inputs = (spill_scan_inputs_t){0};
}

/* ---- names ----------------------------------------------------------------------------------- */

static int hex(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    int letter = tolower((unsigned char)digit);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* mongodump writes %2F and the like for characters that a file's name cannot have. */
static void unescape(char *name)
{
    char *to = name;
    for (const char *from = name; *from; from++) {
        bool escaped = from[0] == '%' && hex(from[1]) >= 0 && hex(from[2]) >= 0;
        *to++ = escaped ? (char)(hex(from[1]) * 16 + hex(from[2])) : *from;
        from += escaped ? 2 : 0;
    }
    *to = '\0';
}

/* The file's name without the endings for its format. */
static char *stem_of(const char *path)
{
    static const char *const endings[] = {".gz",    ".zst",  ".bson",   ".ndjson",
                                          ".jsonl", ".json", ".archive"};
    char *name = bson_strdup(base_name(path));
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (spill_text_ends_with(name, endings[i]))
            name[strlen(name) - strlen(endings[i])] = '\0';
    return name;
}

static char *collection_of(const char *database, const char *path)
{
    char *stem = stem_of(path);
    unescape(stem);
    char *name = database[0] ? bson_strdup_printf("%s.%s", database, stem) : bson_strdup(stem);
    bson_free(stem);
    return name;
}

/* ---- the first bytes of a file --------------------------------------------------------------- */

/* Read the first bytes, decompressed; *count were read. False: they cannot be read. */
static bool peek(const char *path, spill_codec_t codec, void *bytes, size_t size, size_t *count)
{
    spill_source_t *source;
    spill_error_t ignored;
    size_t got = 1;
    spill_code_t code = spill_source_open(path, codec, &source, &ignored);
    *count = 0;
    while (code == SPILL_OK && *count < size && got > 0) {
        code = spill_source_read(source, (uint8_t *)bytes + *count, size - *count, &got, &ignored);
        *count += code == SPILL_OK ? got : 0;
    }
    spill_source_close(source);
    return code == SPILL_OK;
}

char *spill_scan_metadata(const spill_scan_input_t *input, size_t *size_bytes)
{
    enum { MOST = 16 * 1024 * 1024 };
    char *text = bson_malloc(MOST);
    spill_codec_t codec =
        spill_text_ends_with(input->metadata, ".gz") ? SPILL_CODEC_GZIP : SPILL_CODEC_PLAIN;
    if (peek(input->metadata, codec, text, MOST, size_bytes) && *size_bytes < MOST)
        return bson_realloc(text, *size_bytes + 1);
    bson_free(text);
    return NULL;
}

/* Report whether it is an empty file; never for a pipe. */
static bool is_empty(const spill_scan_input_t *item)
{
    char byte;
    size_t count;
    return item->size_bytes == 0 || (item->size_bytes > 0 && item->codec != SPILL_CODEC_PLAIN &&
                                     peek(item->path, item->codec, &byte, 1, &count) && count == 0);
}

/* ---- a folder -------------------------------------------------------------------------------- */

/* Report whether a collection with this description has a file of documents. Views have none. */
static bool has_documents(const char *metadata)
{
    char text[4096];
    size_t size;
    peek(metadata, spill_text_ends_with(metadata, ".gz") ? SPILL_CODEC_GZIP : SPILL_CODEC_PLAIN,
         text, sizeof text - 1, &size);
    text[size] = '\0';
    return !strstr(text, "\"viewOn\"") && !strstr(text, "\"timeseries\"");
}

static void check_metadata(const listing_t *listing, const char *path)
{
    const char *ending = spill_text_ends_with(path, ".gz") ? ".metadata.json.gz" : ".metadata.json";
    char *documents = beside(path, ending, ".bson");
    if (!documents && has_documents(path))
        listing->missing(listing->context, path, "the collection's documents are not in the dump");
    bson_free(documents);
}

static void add_dumped(const listing_t *listing, const char *database, const char *path)
{
    spill_format_t format;
    spill_codec_t codec;
    if (!spill_import_format(path, true, &format, &codec) || format != SPILL_FORMAT_BSON)
        return;
    if (database[0] == '\0' && strncmp(base_name(path), "oplog.", 6) == 0)
        return; /* the operations during the dump: no collection */
    spill_scan_input_t *item = add_input(listing->inputs, path, format, codec);
    item->collection = collection_of(database, path);
    if (!item->metadata && is_empty(item))
        listing->missing(listing->context, path, "the file is empty");
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names in a folder, sorted, without those that begin with a dot. */
static spill_code_t names_in(const char *path, char ***names, size_t *count, spill_error_t *error)
{
    *names = NULL;
    *count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return spill_fail_errno(error, errno, "cannot open %s", path);
    int problem;
    for (const struct dirent *entry; (entry = spill_file_next_entry(folder, &problem)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        *names = bson_realloc(*names, (*count + 1) * sizeof **names);
        (*names)[(*count)++] = bson_strdup_printf("%s/%s", path, entry->d_name);
    }
    closedir(folder);
    if (*count > 0)
        qsort(*names, *count, sizeof **names, compare_texts);
    return problem == 0 ? SPILL_OK : spill_fail_errno(error, problem, "cannot list %s", path);
}

/* Is it something without a length, such as a pipe? To open a pipe may wait for ever. */
static bool is_special(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

static spill_code_t list_folder(const listing_t *listing, const char *path, const char *database,
                                bool inner, spill_error_t *error)
{
    char **names;
    size_t count;
    spill_code_t code = names_in(path, &names, &count, error);
    for (size_t i = 0; i < count; i++) {
        const char *name = names[i];
        if (code == SPILL_OK && spill_file_is_folder(name) && !inner)
            code = list_folder(listing, name, base_name(name), true, error);
        else if (is_special(name))
            listing->missing(listing->context, name, "this is not a file");
        else if (spill_text_ends_with(name, ".metadata.json") ||
                 spill_text_ends_with(name, ".metadata.json.gz"))
            check_metadata(listing, name);
        else
            add_dumped(listing, database, name);
        bson_free(names[i]);
    }
    bson_free(names);
    return code;
}

/* The database's name if the folder itself has collections: the folder's name. */
static char *folder_name(const char *path)
{
    char *copy = bson_strdup(path);
    size_t length = strlen(copy);
    while (length > 1 && copy[length - 1] == '/')
        copy[--length] = '\0';
    const char *name = base_name(copy);
    char *database = bson_strdup(strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? "" : name);
    bson_free(copy);
    return database;
}

bool spill_scan_is_store(const char *source)
{
    if (strncmp(source, "rocksdb:", 8) == 0)
        return true;
    char *current = bson_strdup_printf("%s/CURRENT", source);
    bool store = size_of(current) >= 0;
    bson_free(current);
    return store;
}

static spill_code_t list_dump(const listing_t *listing, const char *path, spill_error_t *error)
{
    char *database = folder_name(path);
    spill_code_t code = list_folder(listing, path, database, false, error);
    bson_free(database);
    if (code == SPILL_OK && listing->inputs->count == 0)
        code = spill_fail(error, SPILL_NOT_FOUND,
                          "%s has no .bson file, as a folder of mongodump has", path);
    return code;
}

/* ---- a file ---------------------------------------------------------------------------------- */

/* Only for a regular file: bytes read from a pipe would be lost. */
static bool begins_with(const char *path, spill_codec_t codec, const char *bytes, size_t size)
{
    uint8_t head[8];
    size_t count;
    return size_of(path) >= 0 && peek(path, codec, head, size, &count) && count == size &&
           memcmp(head, bytes, size) == 0;
}

/* Report whether it is an archive, by the given format or by its first bytes. */
static bool is_archive(const char *path, const char *given, spill_codec_t *codec)
{
    const char *name = given ? given : path;
    *codec = spill_text_ends_with(name, ".gz")    ? SPILL_CODEC_GZIP
             : spill_text_ends_with(name, ".zst") ? SPILL_CODEC_ZSTD
                                                  : SPILL_CODEC_PLAIN;
    if (given)
        return strncmp(given, "archive", 7) == 0 && (given[7] == '\0' || given[7] == '.');
    if (*codec == SPILL_CODEC_PLAIN && begins_with(path, *codec, "\x1F\x8B\x08", 3))
        *codec = SPILL_CODEC_GZIP;
    return begins_with(path, *codec, "\x6D\xE2\x99\x81", 4);
}

static spill_code_t add_file(const listing_t *listing, const char *path, const char *given,
                             spill_error_t *error)
{
    spill_format_t format = SPILL_FORMAT_BSON;
    spill_codec_t codec;
    bool archive = is_archive(path, given, &codec);
    spill_codec_t sniffed = codec;
    bool known = archive || (given ? spill_import_format(given, false, &format, &codec)
                                   : spill_import_format(path, true, &format, &codec));
    if (!known && given)
        return spill_fail(error, SPILL_INVALID, "unknown format '%s'", given);
    if (!known)
        return spill_fail(error, SPILL_INVALID,
                          "%s: its name does not show the format; give it with --format", path);
    if (format == SPILL_FORMAT_CSV)
        return spill_fail(error, SPILL_INVALID, "%s: CSV has no arrays", path);
    if (!given && codec == SPILL_CODEC_PLAIN)
        codec = sniffed; /* even if its name shows another one */
    spill_scan_input_t *item = add_input(listing->inputs, path, format, codec);
    item->archive = archive;
    item->collection = strcmp(path, "-") == 0 ? bson_strdup("stdin") : collection_of("", path);
    if (is_empty(item))
        listing->missing(listing->context, path, "the file is empty");
    return SPILL_OK;
}

spill_code_t spill_scan_inputs(const char *path, const char *format, spill_scan_inputs_t *inputs,
                               spill_scan_missing_fn missing, void *context, spill_error_t *error)
{
    *inputs = (spill_scan_inputs_t){0};
    listing_t listing = {inputs, missing, context};
    struct stat status;
    if (strcmp(path, "-") == 0)
        return add_file(&listing, path, format, error);
    if (stat(path, &status) != 0)
        return spill_fail_errno(error, errno, "cannot open %s", path);
    if (S_ISDIR(status.st_mode))
        return list_dump(&listing, path, error);
    return add_file(&listing, path, format, error);
}
