/*
 * The first byte of the input chooses a format and a compression; the rest is a file of records, as
 * `import` and `append` read it. Each decoded record must be a valid document. Its fields must give
 * owners or be refused, and its arrays and maps must give valid elements.
 */
#include "bson/key.h"
#include "bson/value.h"
#include "fuzz.h"
#include "tools/import/import_elements.h"
#include "tools/import/import_records.h"

static const spill_format_t FORMATS[] = {SPILL_FORMAT_CSV, SPILL_FORMAT_NDJSON, SPILL_FORMAT_JSON,
                                         SPILL_FORMAT_BSON};
enum { FORMAT_BITS = 3, CODEC_SHIFT = 2, CODECS = 3, STRINGS_BIT = 64 };

static void make_owner(const bson_t *document, const char *field)
{
    spill_error_t error;
    spill_value_t value;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    if (spill_decode_field(document, field, &value, &error) == SPILL_OK)
        spill_owner_key(&value, &key, &error);
    spill_buffer_release(&key);
}

/* Split the document, and return the number of its items. */
static int64_t split_document(const bson_t *document, const spill_elements_options_t *options)
{
    spill_split_t split;
    spill_input_item_t item;
    spill_error_t error;
    bool end = false;
    spill_split_init(&split, options);
    spill_code_t code = spill_split_begin(&split, document, &error);
    while (code == SPILL_OK && !end) {
        code = spill_split_next(&split, &item, &end, &error);
        if (code == SPILL_OK && !end && !item.update)
            REQUIRE(spill_value_valid(&item.element));
    }
    if (code != SPILL_OK)
        REQUIRE(spill_split_fail(&split, SPILL_PARSE, &error) == error.code);
    int64_t items = code == SPILL_OK ? split.items : -1;
    spill_split_release(&split);
    return items;
}

static void use_arrays(const bson_t *document)
{
    static const spill_elements_options_t
        forwards = {.array = "a", .owner = "_id", .fields = true},
        backwards = {.array = "a", .owner = "_id", .fields = true, .backwards = true},
        map = {.array = "a.b", .owner = "_id", .entries_as = "a"},
        inner = {.array = "a.$.b", .owner = "_id", .inner = "i=a", .fields = true};
    REQUIRE(split_document(document, &forwards) == split_document(document, &backwards));
    split_document(document, &map);
    split_document(document, &inner);
}

static void use_document(const bson_t *document)
{
    use_arrays(document);
    spill_value_t whole = spill_value_from_document(document);
    make_owner(document, "a");
    make_owner(document, "a.b");
    make_owner(document, "_id");
    bson_free(spill_value_to_json(&whole, true));
}

/* Read a record. Returns false at the end, or if the input cannot be read further. */
static bool read_record(spill_records_t *records, spill_decoder_t *decoder)
{
    spill_input_record_t record;
    spill_error_t error;
    bson_t document;
    bool end = false, more = false;
    spill_code_t code = spill_records_next(records, &record, &end, &more, &error);
    REQUIRE(code == SPILL_OK || error.code == code);
    if (code != SPILL_OK)
        return more;
    if (end)
        return false;
    if (spill_decode(decoder, &record, &document, &error) == SPILL_OK) {
        REQUIRE(spill_document_valid(&document));
        use_document(&document);
        bson_destroy(&document);
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    spill_format_t format = FORMATS[data[0] & FORMAT_BITS];
    spill_codec_t codec = (spill_codec_t)((data[0] >> CODEC_SHIFT) % CODECS);
    spill_source_t *source;
    spill_records_t *records = NULL;
    spill_decoder_t decoder;
    spill_error_t error;
    fuzz_file_t file = fuzz_open(data + 1, size - 1);
    spill_code_t code = spill_source_open(file.path, codec, &source, &error);
    if (code == SPILL_OK)
        code = spill_records_open(source, format, &records, &error);
    if (code == SPILL_OK) {
        code = spill_decoder_init(&decoder, format, data[0] & STRINGS_BIT,
                                  spill_records_header(records), &error);
        while (code == SPILL_OK && read_record(records, &decoder))
            ;
        spill_decoder_release(&decoder);
    }
    spill_records_close(records);
    spill_source_close(source);
    fuzz_close(&file);
    return 0;
}
