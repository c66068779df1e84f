/* Extended JSON: one document per line, or documents in sequence. */
#include "tools/scan/document_source.h"

#include "util/error.h"

#include <bson/bson.h>
#include <string.h>

#define TEXT_BLOCK_BYTES (256 * 1024)

typedef struct text_source {
    spill_document_source_t base;
    spill_records_t *records;
    bool ended;
    bool begun; /* the input was not empty */
} text_source_t;

/* Messages of records begin with their place; the problem names it already. */
static const char *without_place(const char *message, int64_t line)
{
    char number[24];
    int length = snprintf(number, sizeof number, ":%lld: ", (long long)line);
    const char *found = strstr(message, number);
    return found ? found + length : message;
}

static spill_code_t next_block(spill_document_source_t *base, spill_block_t *block,
                               spill_error_t *error)
{
    text_source_t *document_source = (text_source_t *)base;
    while (!document_source->ended && block->data.size < TEXT_BLOCK_BYTES) {
        spill_input_record_t record;
        bool more = false;
        int64_t line = spill_records_line(document_source->records);
        spill_code_t code = spill_records_next(document_source->records, &record,
                                               &document_source->ended, &more, error);
        if (code == SPILL_OK && !document_source->ended) {
            spill_block_add(block, block->data.size, record.size, record.line);
            spill_buffer_append(&block->data, record.data, record.size);
        } else if (code != SPILL_OK) {
            spill_document_source_report(base, line, "%s", without_place(error->message, line));
            document_source->ended = !more;
        }
        document_source->begun =
            document_source->begun || !document_source->ended || code != SPILL_OK;
    }
    if (!document_source->begun && spill_document_source_has_no_size(base))
        spill_document_source_report(base, -1, "there is no input");
    document_source->begun = true;
    return SPILL_OK;
}

static void close_source(spill_document_source_t *base)
{
    text_source_t *document_source = (text_source_t *)base;
    spill_records_close(document_source->records);
    bson_free(document_source);
}

static const spill_document_source_ops_t OPS = {
    .next = next_block, .close = close_source, .text = true, .by_line = true};

spill_code_t spill_document_source_text(spill_source_t *source, spill_format_t format,
                                        spill_document_source_t **document_source,
                                        spill_error_t *error)
{
    text_source_t *made = bson_malloc0(sizeof *made);
    made->base =
        (spill_document_source_t){.ops = &OPS, .source = source, .name = spill_source_name(source)};
    *document_source = &made->base;
    return spill_records_open(source, format, &made->records, error);
}
