#include "tools/import_apply.h"

#include "util/error.h"

#include <inttypes.h>

void spill_import_writer_release(spill_import_writer_t *writer)
{
    bson_free(writer->values);
    writer->values = NULL;
}

spill_code_t spill_import_read_bases(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                     int64_t *bases, spill_error_t *error)
{
    for (size_t i = 0; i < chunk->owner_count; i++) {
        spill_value_t owner = spill_chunk_owner_value(chunk, &chunk->owners[i]);
        SPILL_TRY(spill_array_op_base(writer->array, &owner, &bases[i], error));
    }
    return SPILL_OK;
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
    writer->records += result->count; /* after an error: of the parts that were acknowledged */
    writer->repeated += result->repeated ? result->count : 0;
    writer->dropped += result->dropped;
    return code;
}

/* ---- one batch per owner --------------------------------------------------------------------- */

static spill_code_t append_batch(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                 const spill_chunk_owner_t *entry, int64_t base,
                                 spill_error_t *error)
{
    if (writer->value_capacity < entry->count) {
        writer->value_capacity = entry->count;
        writer->values =
            bson_realloc(writer->values, writer->value_capacity * sizeof *writer->values);
    }
    size_t count = 0;
    for (uint32_t at = entry->first; at != SPILL_CHUNK_NONE; at = chunk->records[at].next)
        writer->values[count++] = spill_chunk_element(chunk, &chunk->records[at]);
    char id[SPILL_OP_ID_MAX];
    int length = snprintf(id, sizeof id, "%s:%" PRId64, writer->prefix, chunk->number);
    spill_op_t op = {id, (size_t)length, base};
    spill_value_t owner = spill_chunk_owner_value(chunk, entry);
    spill_append_result_t result;
    return append_values(writer, &owner, writer->values, count, writer->prefix[0] ? &op : NULL,
                         &result, error);
}

/* ---- one operation per record ---------------------------------------------------------------- */

/*
 * An earlier import may have appended a record with an id. So the base of its operation is as old
 * as the window allows, counted from `*n`, the owner's operation count. If other clients raised
 * that count meanwhile, read it again. This is exact as long as the window still has all
 * operations since `first_n`, the count before this chunk was first tried.
 */
static spill_code_t append_with_id(spill_import_writer_t *writer, const spill_value_t *owner,
                                   const spill_value_t *value, spill_op_t *op, int64_t first_n,
                                   int64_t *n, spill_error_t *error)
{
    int64_t reach = writer->op_window - 1;
    spill_code_t code = SPILL_UNKNOWN;
    while (code == SPILL_UNKNOWN) {
        op->base = *n > reach ? *n - reach : 0;
        spill_append_result_t result;
        code = append_values(writer, owner, value, 1, op, &result, error);
        if (code == SPILL_OK) {
            *n = result.op_base;
        } else if (code == SPILL_UNKNOWN) {
            int64_t before = *n;
            spill_error_t late;
            if (spill_array_op_base(writer->array, owner, n, &late) != SPILL_OK || *n == before ||
                *n - reach > first_n)
                break;
        }
    }
    return code;
}

static spill_code_t append_with_ids(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                    const spill_chunk_owner_t *entry, int64_t first_n,
                                    spill_error_t *error)
{
    spill_value_t owner = spill_chunk_owner_value(chunk, entry);
    int64_t n = 0;
    SPILL_TRY(spill_array_op_base(writer->array, &owner, &n, error));
    if (n - (writer->op_window - 1) > first_n)
        return spill_fail(error, SPILL_UNKNOWN,
                          "the window of operations does not reach back to where the import was "
                          "interrupted: what it had appended is no longer known");
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

spill_code_t spill_import_apply(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                const int64_t *bases, spill_error_t *error)
{
    for (size_t i = 0; i < chunk->owner_count; i++) {
        const spill_chunk_owner_t *owner = &chunk->owners[i];
        int64_t base = bases ? bases[i] : 0;
        spill_code_t code = writer->with_ids ? append_with_ids(writer, chunk, owner, base, error)
                                             : append_batch(writer, chunk, owner, base, error);
        if (code == SPILL_UNKNOWN) {
            spill_value_t value = spill_chunk_owner_value(chunk, owner);
            char *json = spill_value_to_json(&value, false);
            spill_fail_prefix(error, code, "lines %" PRId64 " to %" PRId64 ", owner %.100s",
                              chunk->line, chunk->end_line - 1, json);
            bson_free(json);
        }
        SPILL_TRY(code);
    }
    return SPILL_OK;
}
