/* Inputs of an import that are no files of records: archives of mongodump, and servers. */
#include "tools/import/import_documents.h"

#include "store/raw_reader.h"
#include "tools/scan/document_source.h"
#include "util/error.h"
#include "util/file.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <string.h>

/* ---- find an input --------------------------------------------------------------------------- */

void spill_documents_input_release(spill_documents_input_t *input)
{
    bson_free(input->path);
    bson_free(input->collection);
    *input = (spill_documents_input_t){0};
}

/* Is this the collection "shop.products", or without its database? */
static bool is_named(const char *name, const char *wanted)
{
    const char *dot = strchr(name, '.');
    return strcmp(name, wanted) == 0 || (dot && strcmp(dot + 1, wanted) == 0);
}

typedef const char *(*name_fn)(void *context, size_t index); /* NULL behind the last one */

/* Find the wanted collection (NULL: the only one) among these names. */
static spill_code_t choose_collection(const char *place, const char *wanted, name_fn name_at,
                                      void *context, size_t *index, spill_error_t *error)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t names = SPILL_BUFFER_INIT;
    size_t found = 0, count = 0;
    const char *name;
    *index = SIZE_MAX;
    for (; (name = name_at(context, count)) != NULL; count++) {
        if (!wanted || is_named(name, wanted)) {
            *index = count;
            found++;
        }
        spill_buffer_append(&names, ", ", count > 0 ? 2 : 0);
        spill_buffer_append(&names, name, strlen(name));
    }
    spill_buffer_append(&names, "", 1);
    if (found == 1 || (count == 0 && !wanted))
        return SPILL_OK;
    if (found == 0)
        return spill_fail(error, SPILL_NOT_FOUND, "%s has no collection '%s', but: %.300s", place,
                          wanted, (const char *)names.data);
    return spill_fail(error, SPILL_INVALID,
                      "%s has %zu collections%s: choose one with --collection"
                      ": %.300s",
                      place, found, wanted ? " of this name" : "", (const char *)names.data);
}

static const char *input_name(void *context, size_t index)
{
    const spill_scan_inputs_t *inputs = context;
    return index < inputs->count ? inputs->items[index].collection : NULL;
}

/* An empty file is an import without documents. */
static void ignore_missing(void *context, const char *path, const char *text)
{
    (void)context;
    (void)path;
    (void)text;
}

static spill_code_t find_on_disk(const char *path, const char *format, const char *collection,
                                 spill_documents_input_t *input, spill_error_t *error)
{
    size_t index = 0;
    bool folder = strcmp(path, "-") != 0 && spill_file_is_folder(path);
    SPILL_SCOPED(spill_scan_inputs_release) spill_scan_inputs_t inputs = {0};
    if (strcmp(path, "-") == 0 && !format)
        format = "ndjson";
    SPILL_TRY(spill_scan_inputs(path, format, &inputs, ignore_missing, NULL, error));
    if (folder)
        SPILL_TRY(choose_collection(path, collection, input_name, &inputs, &index, error));
    const spill_scan_input_t *item = &inputs.items[index];
    if (collection && !folder && !item->archive)
        return spill_fail(error, SPILL_INVALID,
                          "%s is a file of one collection; --collection is for folders and "
                          "archives of mongodump and for servers",
                          path);
    *input = (spill_documents_input_t){.path = bson_strdup(item->path),
                                       .codec = item->codec,
                                       .format = item->format,
                                       .archive = item->archive};
    if (item->archive)
        input->collection = bson_strdup(collection ? collection : "");
    return SPILL_OK;
}

/* Divide mongodb://HOST/DATABASE.COLLECTION?OPTIONS. */
static spill_code_t find_on_server(const char *uri, const char *collection,
                                   spill_documents_input_t *input, spill_error_t *error)
{
    const char *authority = strstr(uri, "://") + strlen("://");
    const char *path = authority + strcspn(authority, "/?");
    const char *dot = path + strcspn(path, ".?");
    const char *end = path + strcspn(path, "?");
    bool named = *path == '/' && *dot == '.' && dot + 1 < end;
    if (named == (collection != NULL))
        return spill_fail(error, SPILL_INVALID,
                          "name the server's collection once: mongodb://HOST/DATABASE.COLLECTION, "
                          "or mongodb://HOST/DATABASE and --collection");
    input->path = bson_strdup_printf("%.*s%s", (int)(dot - uri), uri, end);
    input->collection =
        named ? bson_strndup(dot + 1, (size_t)(end - dot) - 1) : bson_strdup(collection);
    input->format = SPILL_FORMAT_BSON;
    return SPILL_OK;
}

spill_code_t spill_documents_find(const char *path, const char *format, const char *collection,
                                  spill_documents_input_t *input, spill_error_t *error)
{
    *input = (spill_documents_input_t){0};
    if (!spill_raw_reader_serves(path))
        return find_on_disk(path, format, collection, input, error);
    if (format)
        return spill_fail(error, SPILL_INVALID, "--format is for files, not for servers");
    return find_on_server(path, collection, input, error);
}

spill_code_t spill_documents_name(const spill_documents_input_t *input, char **name,
                                  spill_error_t *error)
{
    spill_raw_reader_t *reader = NULL;
    *name = NULL;
    spill_code_t code = spill_raw_reader_open(input->path, NULL, &reader, error);
    if (code == SPILL_OK)
        *name = bson_strdup_printf("%s.%s", spill_raw_reader_place(reader), input->collection);
    spill_raw_reader_close(reader);
    return code;
}

/* ---- an opened input ------------------------------------------------------------------------- */

/* Damage that the archive's source has reported, and that was not returned yet. */
typedef struct damage {
    int64_t place;
    char *text;
} damage_t;

struct spill_documents {
    spill_document_source_t *archive; /* NULL: a server */
    spill_block_t block;
    size_t at;         /* in the block */
    size_t collection; /* the source's index */
    damage_t *damages;
    size_t damage_count;
    bool ended; /* all blocks of the archive were read */

    spill_raw_reader_t *reader; /* NULL: an archive */
    const char *read;           /* the collection that it reads; borrowed */
    const atomic_bool *stop;
    int64_t expected;

    char *name;     /* for messages */
    int64_t offset; /* the next document begins here or later */
};

static void note_damage(void *context, int64_t place, const char *text)
{
    spill_documents_t *documents = context;
    documents->damages = bson_realloc(documents->damages,
                                      (documents->damage_count + 1) * sizeof *documents->damages);
    documents->damages[documents->damage_count++] = (damage_t){place, bson_strdup(text)};
}

static const char *member_name(void *context, size_t index)
{
    bool ended;
    const spill_document_source_t *archive = context;
    return archive->ops->collection(archive, index, &ended);
}

static spill_code_t open_archive(spill_documents_t *documents, const spill_documents_input_t *input,
                                 spill_error_t *error)
{
    spill_source_t *file = NULL;
    const char *wanted = input->collection[0] != '\0' ? input->collection : NULL;
    spill_code_t code = spill_source_open(input->path, input->codec, &file, error);
    if (code != SPILL_OK) {
        spill_source_close(file);
        return code;
    }
    spill_source_stop_by(file, documents->stop);
    documents->name = bson_strdup(spill_source_name(file));
    SPILL_TRY(spill_document_source_archive(file, &documents->archive, error));
    documents->archive->problem = note_damage;
    documents->archive->context = documents;
    code = documents->archive->ops->next(documents->archive, &documents->block, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "%s", documents->name);
    return choose_collection(documents->name, wanted, member_name, documents->archive,
                             &documents->collection, error);
}

static spill_code_t open_server(spill_documents_t *documents, const spill_documents_input_t *input,
                                spill_error_t *error)
{
    SPILL_TRY(spill_raw_reader_open(input->path, NULL, &documents->reader, error));
    documents->name =
        bson_strdup_printf("%s.%s", spill_raw_reader_place(documents->reader), input->collection);
    documents->expected = spill_raw_reader_count(documents->reader, input->collection);
    documents->read = input->collection;
    spill_raw_reader_begin_by_id(documents->reader, documents->read, 0);
    return SPILL_OK;
}

spill_code_t spill_documents_open(const spill_documents_input_t *input, const atomic_bool *stop,
                                  spill_documents_t **documents, spill_error_t *error)
{
    spill_documents_t *made = bson_malloc0(sizeof *made);
    *documents = made;
    made->stop = stop;
    return input->archive ? open_archive(made, input, error) : open_server(made, input, error);
}

void spill_documents_close(spill_documents_t *documents)
{
    if (!documents)
        return;
    for (size_t i = 0; i < documents->damage_count; i++)
        bson_free(documents->damages[i].text);
    bson_free(documents->damages);
    spill_block_release(&documents->block);
    spill_document_source_close(documents->archive);
    spill_raw_reader_close(documents->reader);
    bson_free(documents->name);
    bson_free(documents);
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Return the first damage. Its place is passed, so that a resumed import does not return it. */
static spill_code_t take_damage(spill_documents_t *documents, spill_error_t *error)
{
    damage_t first = documents->damages[0];
    documents->damage_count--;
    memmove(documents->damages, documents->damages + 1,
            documents->damage_count * sizeof *documents->damages);
    bool passed = first.place >= 0 && first.place < documents->offset;
    if (first.place >= documents->offset)
        documents->offset = first.place + 1;
    if (!passed)
        spill_fail(error, SPILL_PARSE, "%s: byte %" PRId64 ": %s", documents->name, first.place,
                   first.text);
    bson_free(first.text);
    return passed ? SPILL_OK : SPILL_PARSE;
}

/* Go to the next document of the collection. *end: there is none. */
static spill_code_t find_document(spill_documents_t *documents, bool *end, bool *more,
                                  spill_error_t *error)
{
    spill_block_t *block = &documents->block;
    *more = true;
    for (;;) {
        while (documents->damage_count > 0)
            SPILL_TRY(take_damage(documents, error));
        if (block->collection != documents->collection)
            documents->at = block->count;
        while (documents->at < block->count &&
               block->records[documents->at].place < documents->offset)
            documents->at++;
        *end = block->count == 0 && documents->ended;
        if (*end || documents->at < block->count)
            return SPILL_OK;
        spill_block_clear(block);
        documents->at = 0;
        *more = false;
        SPILL_TRY(documents->archive->ops->next(documents->archive, block, error));
        *more = true;
        documents->ended = block->count == 0;
    }
}

static spill_code_t next_of_archive(spill_documents_t *documents, spill_input_record_t *record,
                                    bool *end, bool *more, spill_error_t *error)
{
    SPILL_TRY(find_document(documents, end, more, error));
    if (*end)
        return SPILL_OK;
    const spill_document_source_record_t *found = &documents->block.records[documents->at++];
    *record = (spill_input_record_t){.data = documents->block.data.data + found->at,
                                     .size = found->size_bytes,
                                     .offset = found->place};
    documents->offset = found->place + (int64_t)found->size_bytes;
    return SPILL_OK;
}

static spill_code_t next_of_server(spill_documents_t *documents, spill_input_record_t *record,
                                   bool *end, spill_error_t *error)
{
    const uint8_t *data = NULL;
    uint32_t size = 0;
    bool stopped = documents->stop && atomic_load_explicit(documents->stop, memory_order_relaxed);
    if (!stopped)
        SPILL_TRY(spill_raw_reader_next(documents->reader, &data, &size, error));
    *end = data == NULL;
    if (*end)
        return SPILL_OK;
    *record = (spill_input_record_t){.data = data, .size = size, .offset = documents->offset++};
    return SPILL_OK;
}

spill_code_t spill_documents_next(spill_documents_t *documents, spill_input_record_t *record,
                                  bool *end, bool *more, spill_error_t *error)
{
    *record = (spill_input_record_t){0};
    *end = false;
    *more = false;
    return documents->archive ? next_of_archive(documents, record, end, more, error)
                              : next_of_server(documents, record, end, error);
}

int64_t spill_documents_offset(const spill_documents_t *documents)
{
    return documents->offset;
}

void spill_documents_seek(spill_documents_t *documents, int64_t offset)
{
    documents->offset = offset;
    if (documents->reader)
        spill_raw_reader_begin_by_id(documents->reader, documents->read, offset);
}

void spill_documents_place(const spill_documents_t *documents, int64_t offset,
                           char place[SPILL_PLACE_SIZE])
{
    snprintf(place, SPILL_PLACE_SIZE, "%.256s: %s %" PRId64, documents->name,
             documents->archive ? "byte" : "document", offset);
}

int64_t spill_documents_done(const spill_documents_t *documents)
{
    return documents->archive ? spill_source_position(documents->archive->source)
                              : documents->offset;
}

int64_t spill_documents_expected(const spill_documents_t *documents)
{
    return documents->archive ? spill_source_size(documents->archive->source) : documents->expected;
}
