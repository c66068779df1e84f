/* Bases of operations that the parsing thread reads ahead. */
#include "support/document.h"
#include "support/embedded.h"
#include "tools/import/import_chunk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { WAITING_MAX = 2 };

/* Fill a chunk with a record of each of these owners: "a" to "z". */
static void fill_chunk(spill_chunk_t *chunk, int64_t number, const char *owners)
{
    static const spill_chunk_bounds_t bounds = {.records_max = 100,
                                                .bytes_max = 100000,
                                                .parts_max = 10,
                                                .page_capacity = 10,
                                                .part_bytes_max = 100000,
                                                .op_window = 64};
    spill_chunk_clear(chunk);
    chunk->number = number;
    for (; *owners; owners++) {
        bson_t document = BSON_INITIALIZER, storage = BSON_INITIALIZER;
        const char name[2] = {*owners, '\0'};
        spill_value_t owner = spill_value_from_utf8(&storage, name);
        BSON_APPEND_UTF8(&document, "o", name);
        spill_input_item_t item = {
            .owner = owner, .element = spill_value_from_document(&document), .seq = -1};
        assert_int_equal(spill_chunk_add(chunk, &bounds, &item, NULL, 0, NULL), SPILL_OK);
        bson_destroy(&document);
        bson_destroy(&storage);
    }
    spill_chunk_sort(chunk);
}

static void owners_of_waiting_chunks_are_left(void **state)
{
    (void)state;
    spill_chunk_t chunk = {0};
    spill_bases_reader_t *reader = spill_bases_reader_new(NULL, WAITING_MAX);
    fill_chunk(&chunk, 253, "ab");
    spill_bases_begin(reader, &chunk);
    assert_int_equal(chunk.bases[0], SPILL_BASE_UNREAD);
    assert_int_equal(chunk.bases[1], SPILL_BASE_UNREAD);
    fill_chunk(&chunk, 254, "bcc");
    spill_bases_begin(reader, &chunk);
    assert_int_equal(chunk.bases[0], SPILL_BASE_LATER);
    assert_int_equal(chunk.bases[1], SPILL_BASE_UNREAD);
    fill_chunk(&chunk, 255, "ad");
    spill_bases_begin(reader, &chunk);
    assert_int_equal(chunk.bases[0], SPILL_BASE_LATER);
    assert_int_equal(chunk.bases[1], SPILL_BASE_UNREAD);
    fill_chunk(&chunk, 257, "abcd"); /* "b" and "c" are old enough */
    spill_bases_begin(reader, &chunk);
    assert_int_equal(chunk.bases[0], SPILL_BASE_LATER);
    assert_int_equal(chunk.bases[1], SPILL_BASE_UNREAD);
    assert_int_equal(chunk.bases[2], SPILL_BASE_UNREAD);
    assert_int_equal(chunk.bases[3], SPILL_BASE_LATER);
    spill_bases_reader_free(reader);
    spill_chunk_release(&chunk);
}

/* Append an element with an operation id, so that the owner's count of operations rises. */
static void append_operation(spill_array_t *array, const char *name, int number)
{
    bson_t storage = BSON_INITIALIZER, element = BSON_INITIALIZER;
    char id[16];
    spill_append_options_t options;
    spill_append_options_init(&options);
    spill_op_t op = {id, (size_t)bson_snprintf(id, sizeof id, "op%d", number), 0};
    options.op = &op;
    BSON_APPEND_INT32(&element, "n", number);
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    spill_value_t value = spill_value_from_document(&element);
    assert_int_equal(spill_array_append(array, &owner, &value, 1, &options, NULL, NULL), SPILL_OK);
    bson_destroy(&storage);
    bson_destroy(&element);
}

/* The importing thread reads what is missing, after the chunks before have changed the counts. */
static void missing_bases_are_read_later(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    spill_array_t *array = embedded_array(store, "feed", 5, 4);
    spill_chunk_t chunk = {0};
    spill_bases_reader_t *reader = spill_bases_reader_new(array, WAITING_MAX);
    int64_t bases[3];
    append_operation(array, "b", 0);
    fill_chunk(&chunk, 1, "c");
    spill_bases_begin(reader, &chunk);
    fill_chunk(&chunk, 2, "abc");
    spill_bases_begin(reader, &chunk);
    spill_bases_read(reader, &chunk, 0, 2);
    spill_bases_read(reader, &chunk, 2, 100);
    assert_int_equal(chunk.bases[0], 0);
    assert_int_equal(chunk.bases[1], 1);
    assert_int_equal(chunk.bases[2], SPILL_BASE_LATER);
    append_operation(array, "b", 1);
    append_operation(array, "c", 2);
    assert_int_equal(spill_import_read_bases(array, &chunk, bases, NULL), SPILL_OK);
    assert_int_equal(bases[0], 0);
    assert_int_equal(bases[1], 1); /* read ahead: any count before the first try is a base */
    assert_int_equal(bases[2], 1);
    spill_chunk_clear(&chunk);
    fill_chunk(&chunk, 3, "b");
    assert_int_equal(spill_import_read_bases(array, &chunk, bases, NULL), SPILL_OK);
    assert_int_equal(bases[0], 2);
    spill_bases_reader_free(reader);
    spill_chunk_release(&chunk);
    spill_array_close(array);
    embedded_close(store);
    disk_free(disk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_of_waiting_chunks_are_left),
        cmocka_unit_test(missing_bases_are_read_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
