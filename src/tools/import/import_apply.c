/* Apply chunks, each exactly once: the job checkpoint of an import, and the appends of a chunk. */
#include "bson/record.h"
#include "core/array.h"
#include "store/job.h"
#include "tools/import/import_chunk.h"
#include "util/buffer.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- the checkpoint -------------------------------------------------------------------------- */

void spill_import_id(const char *name, char id[SPILL_IMPORT_ID_SIZE])
{
    snprintf(id, SPILL_IMPORT_ID_SIZE, "%016" PRIx64, spill_hash(name, strlen(name)));
}

void spill_import_checkpoint_name(const char *definition, const char *source,
                                  char name[SPILL_IMPORT_CHECKPOINT_NAME_SIZE])
{
    char id[SPILL_IMPORT_ID_SIZE];
    spill_import_id(source, id);
    snprintf(name, SPILL_IMPORT_CHECKPOINT_NAME_SIZE, "%s:%s", definition, id);
}

void spill_import_checkpoint_release(spill_import_checkpoint_t *checkpoint)
{
    bson_free(checkpoint->bases);
    *checkpoint = (spill_import_checkpoint_t){0};
}

/* ---- to and from a document ------------------------------------------------------------------ */

typedef struct stored_checkpoint {
    spill_import_checkpoint_t checkpoint;
    spill_bytes_t bases; /* the stored form of the checkpoint's bases */
} stored_checkpoint_t;

#define STORED(type, member, name) SPILL_FIELD(type, stored_checkpoint_t, checkpoint.member, name)
#define OFFSET(member, name)                                                                       \
    SPILL_FIELD(INT64, stored_checkpoint_t, checkpoint.member, name, .most = INT64_MAX)
#define SPARSE(type, member, name)                                                                 \
    SPILL_FIELD(type, stored_checkpoint_t, checkpoint.member, name, .flags = SPILL_FIELD_SPARSE)
#define STORED_GIVEN(type, member, name) STORED(type, given.member, name),
#define SPARSE_GIVEN(type, member, name) SPARSE(type, given.member, name),
static const spill_field_t checkpoint_fields[] = {
    STORED(TEXT, definition, "definition"),
    STORED(TEXT, source, "source"),
    STORED(TEXT, format, "format"),
    SPILL_IMPORT_GIVEN(STORED_GIVEN, SPARSE_GIVEN) SPARSE(INT64, lines, "lines"),
    STORED(INT64, run, "run"),
    STORED(INT64, chunk, "chunk"),
    OFFSET(offset, "offset"),
    STORED(INT64, line, "line"),
    OFFSET(end_offset, "endOffset"),
    STORED(INT64, end_line, "endLine"),
    SPARSE(INT64, items, "items"),
    SPARSE(INT64, end_items, "endItems"),
    STORED(INT64, hash, "hash"),
    STORED(INT64, bounds.page_capacity, "pageCapacity"),
    STORED(INT64, bounds.page_bytes_max, "pageBytesMax"),
    STORED(INT64, bounds.head_bytes_max, "headBytesMax"),
    STORED(INT64, op_window, "opWindow"),
    STORED(INT64, records, "records"),
    STORED(INT64, before, "before"),
    STORED(BOOL, applied, "applied"),
    STORED(BOOL, finished, "finished"),
    SPILL_FIELD(BYTES, stored_checkpoint_t, bases, "bases")};
static const spill_record_t checkpoint_record =
    SPILL_RECORD("import", stored_checkpoint_t, checkpoint_fields);

static void encode(const spill_import_checkpoint_t *checkpoint, bson_t *document)
{
    const stored_checkpoint_t stored = {
        *checkpoint,
        {(const uint8_t *)checkpoint->bases,
         (uint32_t)(checkpoint->base_count * sizeof *checkpoint->bases)}};
    bson_init(document);
    spill_record_write(&checkpoint_record, &stored, document);
}

static spill_code_t decode(const bson_t *document, spill_import_checkpoint_t *checkpoint,
                           spill_error_t *error)
{
    stored_checkpoint_t stored = {.checkpoint = {.given = spill_import_given_none()}};
    SPILL_TRY(spill_record_read(&checkpoint_record, document, &stored, error));
    uint32_t size = stored.bases.size_bytes;
    *checkpoint = stored.checkpoint;
    if (size % sizeof *checkpoint->bases != 0)
        return spill_fail(error, SPILL_CORRUPT, "import: field 'bases' has half a number");
    if (checkpoint->items < 0 || checkpoint->end_items < 0)
        return spill_fail(error, SPILL_CORRUPT, "import: 'items' and 'endItems' are at least 0");
    if (checkpoint->end_offset < checkpoint->offset)
        return spill_fail(error, SPILL_CORRUPT, "import: field 'endOffset' is below 'offset'");
    checkpoint->base_count = size / sizeof *checkpoint->bases;
    checkpoint->bases = bson_malloc(size + 1);
    memcpy(checkpoint->bases, stored.bases.data, size);
    return SPILL_OK;
}

/* ---- the catalog ----------------------------------------------------------------------------- */

spill_code_t spill_import_checkpoint_load(spill_store_t *store, const char *name, bson_t **stored,
                                          spill_import_checkpoint_t *checkpoint,
                                          spill_error_t *error)
{
    spill_error_t cause;
    *stored = NULL;
    *checkpoint = (spill_import_checkpoint_t){0};
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_JOB, name, stored, error));
    if (*stored && decode(*stored, checkpoint, &cause) != SPILL_OK)
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the checkpoint of import '%s' cannot be read; restore a backup (%s)",
                          store->uri, name, cause.message);
    return SPILL_OK;
}

spill_code_t spill_import_checkpoint_save(spill_store_t *store, const char *name,
                                          const spill_import_checkpoint_t *checkpoint,
                                          bson_t **stored, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t document;
    const spill_clock_t *clock = &store->options.clock;
    encode(checkpoint, &document);
    BSON_APPEND_DATE_TIME(&document, SPILL_JOB_SAVED, clock->now_us(clock->context) / 1000);
    bool done = false;
    SPILL_TRY(
        store->ops->catalog_put(store, SPILL_CATALOG_JOB, name, *stored, &document, &done, error));
    if (!done)
        return spill_fail(error, SPILL_CONFLICT,
                          "another import of %s into '%s' is in progress; only one can run",
                          checkpoint->source, checkpoint->definition);
    bson_destroy(*stored);
    *stored = bson_copy(&document);
    return SPILL_OK;
}

static spill_code_t drop_checkpoint(spill_store_t *store, const char *name, const char *definition,
                                    spill_error_t *error)
{
    bson_t *stored = NULL;
    bson_iter_t iter;
    spill_code_t code = store->ops->catalog_get(store, SPILL_CATALOG_JOB, name, &stored, error);
    bool same = code == SPILL_OK && stored && bson_iter_init_find(&iter, stored, "definition") &&
                BSON_ITER_HOLDS_UTF8(&iter) && strcmp(bson_iter_utf8(&iter, NULL), definition) == 0;
    bson_destroy(stored);
    return same ? store->ops->catalog_delete(store, SPILL_CATALOG_JOB, name, error) : code;
}

spill_code_t spill_import_checkpoints_drop(spill_store_t *store, const char *definition,
                                           spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(store->ops->catalog_names(store, SPILL_CATALOG_JOB, &names, error));
    for (size_t i = 0; i < names.count; i++)
        SPILL_TRY(drop_checkpoint(store, spill_listing_item(&names, i).text, definition, error));
    return SPILL_OK;
}

/* ---- the appends ----------------------------------------------------------------------------- */

void spill_import_writer_release(spill_import_writer_t *writer)
{
    bson_free(writer->values);
    bson_free(writer->elements);
    writer->values = NULL;
    writer->elements = NULL;
}

static spill_code_t append_values(spill_import_writer_t *writer, const spill_value_t *owner,
                                  const spill_value_t *values, size_t count, const spill_op_t *op,
                                  spill_append_result_t *result, spill_error_t *error)
{
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = op;
    options.fill = writer->fill;
    spill_code_t code =
        spill_array_append(writer->array, owner, values, count, &options, result, error);
    /* After an error: of the parts that were acknowledged. A set leaves some out. */
    writer->records += result->count;
    writer->duplicates += result->duplicates;
    writer->repeated += result->repeated ? result->count : 0;
    writer->dropped += result->dropped;
    return code;
}

/* ---- one batch per owner --------------------------------------------------------------------- */

static void reserve_values(spill_import_writer_t *writer, size_t count)
{
    if (writer->value_capacity >= count)
        return;
    writer->value_capacity = count;
    writer->values = bson_realloc(writer->values, writer->value_capacity * sizeof *writer->values);
}

/* Put the values of the owner's records at number `from`. Return their bytes. */
static int64_t collect_values(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                              const spill_chunk_owner_t *entry, size_t from)
{
    int64_t bytes = 0;
    for (uint32_t at = entry->first; at != SPILL_CHUNK_NONE; at = chunk->records[at].next) {
        writer->values[from] = spill_chunk_element(chunk, &chunk->records[at]);
        bytes += writer->values[from++].size_bytes;
    }
    return bytes;
}

/* Write the operation id of the chunk's batches. Return its length. */
static size_t name_operation(const spill_import_writer_t *writer, const spill_chunk_t *chunk,
                             char id[SPILL_OP_ID_MAX])
{
    return (size_t)snprintf(id, SPILL_OP_ID_MAX, "%s:%" PRId64, writer->prefix, chunk->number);
}

static spill_code_t append_batch(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                 const spill_chunk_owner_t *entry, int64_t base,
                                 spill_error_t *error)
{
    char id[SPILL_OP_ID_MAX];
    spill_append_result_t result;
    reserve_values(writer, entry->count);
    collect_values(writer, chunk, entry, 0);
    spill_op_t op = {id, name_operation(writer, chunk, id), base};
    spill_value_t owner = spill_chunk_owner_value(chunk, entry);
    /* The ids make a batch to a set repeatable, and an operation would have to fit a page. */
    bool named = writer->prefix[0] && !spill_array_get_definition(writer->array)->unique;
    return append_values(writer, &owner, writer->values, entry->count, named ? &op : NULL, &result,
                         error);
}

/* ---- batches of several owners --------------------------------------------------------------- */

/* A group ends at this many owners, or after this many bytes: damage of the log loses groups. */
enum { GROUP_OWNERS = SPILL_BATCHES_MAX, GROUP_BYTES = 32 * 1024 };

/* The batches of several owners of a chunk, which are tried together. */
typedef struct group {
    spill_owner_batch_t batches[GROUP_OWNERS];
    size_t count;
    size_t values; /* of all batches, in the writer */
    int64_t bytes;
} group_t;

static void add_to_group(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                         const spill_chunk_owner_t *entry, const spill_op_t *op, group_t *group)
{
    group->batches[group->count++] =
        (spill_owner_batch_t){.owner = spill_chunk_owner_value(chunk, entry),
                              .elements = writer->values + group->values,
                              .count = entry->count,
                              .op = *op};
    group->bytes += collect_values(writer, chunk, entry, group->values);
    group->values += entry->count;
}

/*
 * Append the batches of the next owners in one request to the store. Return the number of owners
 * that were tried. *left gets the indexes of the owners that need their own append. An error does
 * not show which batches were appended: the own append, with the same operation, finds out.
 */
static size_t append_group(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                           const int64_t *bases, size_t from, uint32_t left[GROUP_OWNERS],
                           size_t *left_count)
{
    char id[SPILL_OP_ID_MAX];
    spill_error_t ignored;
    group_t group = {.count = 0};
    spill_op_t op = {id, name_operation(writer, chunk, id), 0};
    reserve_values(writer, chunk->record_count);
    while (from + group.count < chunk->owner_count && group.count < GROUP_OWNERS &&
           group.bytes < GROUP_BYTES) {
        uint32_t i = chunk->by_key[from + group.count];
        op.base = bases[i];
        add_to_group(writer, chunk, &chunk->owners[i], &op, &group);
    }
    spill_array_append_many(writer->array, group.batches, group.count, &ignored);
    *left_count = 0;
    for (size_t i = 0; i < group.count; i++) {
        const spill_owner_batch_t *batch = &group.batches[i];
        if (!batch->done) {
            left[(*left_count)++] = chunk->by_key[from + i];
            continue;
        }
        writer->records += batch->result.count;
        writer->dropped += batch->result.dropped;
        writer->duplicates += batch->result.duplicates;
    }
    return group.count;
}

/* ---- one operation per record ---------------------------------------------------------------- */

/*
 * An earlier import may have appended a record with an id. So the base of its operation is as old
 * as the window allows, counted from `*n`, a count of the owner's operations. If the store answers
 * that this base is too old, the count has risen meanwhile: read it again. This is exact as long as
 * the window still has all operations since `first_n`, the count before this chunk was first tried.
 */
static spill_code_t append_with_id(spill_import_writer_t *writer, const spill_value_t *owner,
                                   const spill_value_t *value, spill_op_t *op, int64_t first_n,
                                   int64_t *n, spill_error_t *error)
{
    int64_t reach = writer->op_window - 1;
    while (true) {
        op->base = *n > reach ? *n - reach : 0;
        spill_append_result_t result;
        spill_code_t code = append_values(writer, owner, value, 1, op, &result, error);
        if (code == SPILL_OK)
            *n = result.op_base;
        if (code != SPILL_UNKNOWN)
            return code;
        int64_t before = *n;
        spill_error_t late;
        if (spill_array_op_base(writer->array, owner, n, &late) != SPILL_OK || *n == before)
            return code;
        if (*n - reach > first_n)
            return spill_fail(error, SPILL_UNKNOWN,
                              "the window of operations does not reach back to where the import "
                              "was interrupted: what it had appended is no longer known");
    }
}

static spill_code_t append_with_ids(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                    const spill_chunk_owner_t *entry, int64_t first_n,
                                    spill_error_t *error)
{
    spill_value_t owner = spill_chunk_owner_value(chunk, entry);
    int64_t n = first_n;
    for (uint32_t at = entry->first; at != SPILL_CHUNK_NONE;) {
        const spill_chunk_record_t *record = &chunk->records[at];
        spill_value_t value = spill_chunk_element(chunk, record);
        spill_op_t op = {chunk->ids.data + record->id_offset, record->id_bytes, 0};
        SPILL_TRY(append_with_id(writer, &owner, &value, &op, first_n, &n, error));
        at = record->next;
    }
    return SPILL_OK;
}

/* ---- a chunk --------------------------------------------------------------------------------- */

/* Append the records of one owner. */
static spill_code_t append_owner(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                 const spill_chunk_owner_t *owner, int64_t base,
                                 spill_error_t *error)
{
    spill_code_t code = writer->with_ids ? append_with_ids(writer, chunk, owner, base, error)
                                         : append_batch(writer, chunk, owner, base, error);
    if (code == SPILL_UNKNOWN) {
        spill_value_t value = spill_chunk_owner_value(chunk, owner);
        char *json = spill_value_to_json(&value, false);
        spill_fail_prefix(error, code, "%.256s: lines %" PRId64 " to %" PRId64 ", owner %.100s",
                          writer->input, chunk->line, chunk->end_line - 1, json);
        bson_free(json);
    }
    return code;
}

spill_code_t spill_import_apply_updates(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                        spill_error_t *error)
{
    for (size_t i = 0; i < chunk->update_count; i++) {
        const spill_chunk_update_t *entry = &chunk->updates[i];
        const uint8_t *documents = chunk->documents.data;
        spill_value_t owner = {documents + entry->owner_offset, entry->owner_bytes,
                               entry->owner_type};
        bson_t update;
        bson_init_static(&update, documents + entry->update_offset, entry->update_bytes);
        spill_code_t code = spill_array_update(writer->array, &owner, &update, error);
        if (code != SPILL_OK) {
            char *json = spill_value_to_json(&owner, false);
            spill_fail_prefix(error, code, "the other fields of owner %.100s", json);
            bson_free(json);
            return code;
        }
        writer->updates++;
    }
    return SPILL_OK;
}

spill_code_t spill_import_apply(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                const int64_t *bases, spill_error_t *error)
{
    /* Without an operation, a second try could append a batch again. */
    bool grouped = bases && writer->prefix[0] && !writer->with_ids;
    uint32_t left[GROUP_OWNERS];
    SPILL_TRY(spill_import_apply_updates(writer, chunk, error));
    for (size_t k = 0; k < chunk->owner_count;) {
        size_t left_count = 1;
        left[0] = chunk->by_key[k];
        k += grouped ? append_group(writer, chunk, bases, k, left, &left_count) : 1;
        for (size_t i = 0; i < left_count; i++)
            SPILL_TRY(append_owner(writer, chunk, &chunk->owners[left[i]],
                                   bases ? bases[left[i]] : 0, error));
    }
    return SPILL_OK;
}
