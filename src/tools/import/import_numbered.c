/* Apply chunks of an export: its elements keep their numbers. */
#include "tools/import/import_chunk.h"

#include "tools/transfer/numbered.h"
#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>

bool spill_chunk_is_numbered(const spill_chunk_t *chunk, const spill_parser_options_t *options)
{
    return spill_export_lines_numbered(chunk->lines, options->definition, options->new_numbers);
}

/* The elements of an owner, in the writer's scratch. */
static const spill_element_t *collect_elements(spill_import_writer_t *writer,
                                               const spill_chunk_t *chunk,
                                               const spill_chunk_owner_t *owner)
{
    if (writer->element_capacity < owner->count) {
        writer->element_capacity = owner->count;
        writer->elements =
            bson_realloc(writer->elements, writer->element_capacity * sizeof *writer->elements);
    }
    size_t at = 0;
    for (uint32_t i = owner->first; i != SPILL_CHUNK_NONE; i = chunk->records[i].next)
        writer->elements[at++] = (spill_element_t){
            .seq = chunk->records[i].seq, .value = spill_chunk_element(chunk, &chunk->records[i])};
    return writer->elements;
}

/* Name the input and the lines of the chunk that failed. */
static spill_code_t name_lines(const spill_import_writer_t *writer, const spill_chunk_t *chunk,
                               spill_code_t code, spill_error_t *error)
{
    return code == SPILL_OK
               ? code
               : spill_fail_prefix(error, code, "%.256s: lines %" PRId64 " to %" PRId64,
                                   writer->input, chunk->line, chunk->end_line - 1);
}

spill_code_t spill_import_read_numbers(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                       int64_t *bases, spill_error_t *error)
{
    for (size_t k = 0; k < chunk->owner_count; k++) {
        uint32_t i = chunk->by_key[k];
        const spill_chunk_owner_t *owner = &chunk->owners[i];
        spill_value_t value = spill_chunk_owner_value(chunk, owner);
        const spill_element_t *elements = collect_elements(writer, chunk, owner);
        SPILL_TRY(name_lines(
            writer, chunk,
            spill_numbered_check(writer->array, &value, elements, owner->count, &bases[i], error),
            error));
    }
    return SPILL_OK;
}

spill_code_t spill_import_apply_numbered(spill_import_writer_t *writer, const spill_chunk_t *chunk,
                                         const int64_t *bases, spill_error_t *error)
{
    for (size_t k = 0; k < chunk->owner_count; k++) {
        uint32_t i = chunk->by_key[k];
        const spill_chunk_owner_t *owner = &chunk->owners[i];
        spill_value_t value = spill_chunk_owner_value(chunk, owner);
        const spill_element_t *elements = collect_elements(writer, chunk, owner);
        spill_numbered_counts_t counts;
        SPILL_TRY(name_lines(writer, chunk,
                             spill_numbered_append(writer->array, &value, elements, owner->count,
                                                   bases[i], &counts, error),
                             error));
        writer->records += owner->count;
        writer->repeated += counts.repeated;
        writer->dropped += counts.dropped;
    }
    /* An update makes a missing head, which would then begin with number 0. */
    return spill_import_apply_updates(writer, chunk, error);
}
