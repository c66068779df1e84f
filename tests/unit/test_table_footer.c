/*
 * A damaged footer of a table file: no byte of it makes an open hang, or run out of memory, and no
 * read returns anything but the elements or an error that names the file.
 */
#include "store/embedded/kv_rocksdb.h"
#include "store/embedded/table_footer.h"
#include "support/embedded.h"

#include <fcntl.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { ELEMENTS = 200, HANDLES_AT = 1, HANDLES_END = 41, PATH_BYTES = 256 };

/* A closed store whose elements are in one table file. */
typedef struct table {
    const char *folder;
    char path[PATH_BYTES];
    uint64_t size;
    uint8_t footer[SPILL_TABLE_FOOTER_BYTES];
} table_t;

static void write_footer(const table_t *table, const uint8_t *footer)
{
    int file = open(table->path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, footer, SPILL_TABLE_FOOTER_BYTES,
                            (off_t)(table->size - SPILL_TABLE_FOOTER_BYTES)),
                     SPILL_TABLE_FOOTER_BYTES);
    close(file);
}

static table_t make_table(void)
{
    table_t table = {.folder = embedded_new_folder()};
    char pattern[PATH_BYTES];
    glob_t found;
    struct stat about;
    spill_error_t error;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    spill_store_t *store = embedded_in_folder(table.folder, &options);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    assert_int_equal(embedded_append(array, "ada", 0, ELEMENTS, &error), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    snprintf(pattern, sizeof pattern, "%s/*.sst", table.folder);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    snprintf(table.path, sizeof table.path, "%s", found.gl_pathv[0]);
    globfree(&found);
    assert_int_equal(stat(table.path, &about), 0);
    table.size = (uint64_t)about.st_size;
    int file = open(table.path, O_RDONLY);
    assert_int_equal(
        pread(file, table.footer, sizeof table.footer, about.st_size - (off_t)sizeof table.footer),
        sizeof table.footer);
    close(file);
    return table;
}

/* Open the store and read all elements. Every error must be one of damage, and name the file. */
static spill_code_t read_all(const table_t *table, bool read_only, bool partial)
{
    spill_error_t error = {.message = ""};
    spill_store_t *store;
    spill_array_t *array = NULL;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.read_only = read_only;
    options.partial = partial;
    spill_code_t code = spill_store_open(table->folder, &options, &store, &error);
    if (code == SPILL_OK)
        code = spill_array_open(store, "feed", &array, &error);
    if (code == SPILL_OK)
        code = embedded_holds(array, "ada", 0, ELEMENTS, &error);
    if (code != SPILL_OK) {
        assert_int_equal(code, SPILL_CORRUPT);
        assert_non_null(strstr(error.message, table->folder));
    }
    spill_array_close(array);
    spill_store_close(store, NULL);
    return code;
}

static void put_varint(uint8_t **to, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *(*to)++ = (uint8_t)(value | 0x80);
    *(*to)++ = (uint8_t)value;
}

/* A footer that names a metaindex and an index at these places. */
static void put_blocks(uint8_t footer[SPILL_TABLE_FOOTER_BYTES], uint64_t offset, uint64_t size,
                       uint64_t index_offset, uint64_t index_size)
{
    uint8_t *at = footer + HANDLES_AT;
    memset(at, 0, HANDLES_END - HANDLES_AT);
    put_varint(&at, offset);
    put_varint(&at, size);
    put_varint(&at, index_offset);
    put_varint(&at, index_size);
}

/* ---- the function ---------------------------------------------------------------------------- */

static void blocks_must_be_in_the_file(void **state)
{
    (void)state;
    const table_t table = make_table();
    const uint64_t end = table.size - SPILL_TABLE_FOOTER_BYTES;
    uint8_t footer[SPILL_TABLE_FOOTER_BYTES];
    memcpy(footer, table.footer, sizeof footer);
    assert_null(spill_table_footer_problem(footer, table.size));
    put_blocks(footer, 0, end - 5, end - 5, 0);
    assert_null(spill_table_footer_problem(footer, table.size));
    const uint64_t bad[][2] = {{0, end - 4},    {1, end - 5},       {end - 4, 0},
                               {end + 1, 0},    {0, UINT64_MAX},    {UINT64_MAX, 0},
                               {UINT64_MAX, 2}, {5, UINT64_MAX - 4}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        put_blocks(footer, bad[i][0], bad[i][1], 0, 1);
        assert_non_null(spill_table_footer_problem(footer, table.size));
        put_blocks(footer, 0, 1, bad[i][0], bad[i][1]);
        assert_non_null(spill_table_footer_problem(footer, table.size));
    }
    put_blocks(footer, 0, 1, 0, 1);
    memset(footer + HANDLES_AT, 0xff, HANDLES_END - HANDLES_AT); /* no varint ends */
    assert_non_null(spill_table_footer_problem(footer, table.size));
}

static void checksums_and_formats(void **state)
{
    (void)state;
    const table_t table = make_table();
    uint8_t footer[SPILL_TABLE_FOOTER_BYTES];
    for (int value = 0; value < 256; value++) {
        memcpy(footer, table.footer, sizeof footer);
        footer[0] = (uint8_t)value;
        assert_int_equal(spill_table_footer_problem(footer, table.size) == NULL,
                         value >= 1 && value <= 4);
        memcpy(footer, table.footer, sizeof footer);
        footer[HANDLES_END] = (uint8_t)value;
        assert_int_equal(spill_table_footer_problem(footer, table.size) == NULL, value >= 2);
    }
    memcpy(footer, table.footer, sizeof footer);
    put_blocks(footer, 0, UINT64_MAX, 0, 1);
    footer[SPILL_TABLE_FOOTER_BYTES - 1] ^= 1; /* another magic number is left to the engine */
    assert_null(spill_table_footer_problem(footer, table.size));
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void huge_blocks_are_damage(void **state)
{
    (void)state;
    const table_t table = make_table();
    uint8_t footer[SPILL_TABLE_FOOTER_BYTES];
    memcpy(footer, table.footer, sizeof footer);
    assert_int_equal(read_all(&table, true, false), SPILL_OK);
    for (int bits = 20; bits < 64; bits += 11) {
        for (int index = 0; index < 2; index++) {
            uint64_t size = UINT64_C(1) << bits;
            put_blocks(footer, 0, index ? 1 : size, 0, index ? size : 1);
            write_footer(&table, footer);
            assert_int_equal(read_all(&table, true, false), SPILL_CORRUPT);
            assert_int_equal(read_all(&table, true, true), SPILL_CORRUPT);
            assert_int_equal(read_all(&table, false, false), SPILL_CORRUPT);
            spill_error_t error;
            assert_int_equal(spill_engine_check(table.path, "a table", &error), SPILL_CORRUPT);
        }
    }
    write_footer(&table, table.footer);
    assert_int_equal(read_all(&table, true, false), SPILL_OK);
}

static void no_byte_makes_a_reader_hang(void **state)
{
    (void)state;
    const uint8_t changes[] = {0x01, 0x80, 0xff};
    const table_t table = make_table();
    uint8_t footer[SPILL_TABLE_FOOTER_BYTES];
    int found = 0;
    for (size_t at = 0; at < sizeof footer; at++) {
        for (size_t i = 0; i < sizeof changes; i++) {
            memcpy(footer, table.footer, sizeof footer);
            footer[at] ^= changes[i];
            write_footer(&table, footer);
            found += read_all(&table, true, false) == SPILL_CORRUPT;
        }
    }
    assert_true(found > 2 * SPILL_TABLE_FOOTER_BYTES / 3); /* others change padding */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_must_be_in_the_file),
        cmocka_unit_test(checksums_and_formats),
        cmocka_unit_test(huge_blocks_are_damage),
        cmocka_unit_test(no_byte_makes_a_reader_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
