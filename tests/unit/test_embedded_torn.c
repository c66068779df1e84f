/*
 * Files that may have lost their end in a power loss. The store opens if no acknowledged change can
 * be missing; otherwise it names the file.
 */
#include "support/embedded.h"

#include "store/embedded/logs.h"
#include "store/embedded/records.h"
#include "util/buffer.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <rocksdb/c.h>

enum { BLOCK = SPILL_LOG_BLOCK_BYTES, HEADER = 7, ELEMENTS = 20, PATH_SIZE = 300 };

static void run_command(const char *format, const char *from, const char *to)
{
    char *command = bson_strdup_printf(format, from, to);
    assert_int_equal(system(command), 0);
    bson_free(command);
}

static int64_t size_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

static void append_elements(spill_store_t *store)
{
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    spill_error_t error;
    assert_int_equal(embedded_append(array, "ada", 0, ELEMENTS, &error), SPILL_OK);
    spill_array_close(array);
}

static void assert_holds_all(const char *folder)
{
    spill_error_t error;
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    assert_int_equal(embedded_holds(array, "ada", 0, ELEMENTS, &error), SPILL_OK);
    assert_int_equal(embedded_findings(store, array, "ada"), 0);
    spill_array_close(array);
    embedded_close(store);
}

static void assert_refused_naming(const char *folder, const char *path)
{
    spill_error_t error;
    spill_store_t *store;
    assert_int_equal(spill_store_open(folder, NULL, &store, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, strrchr(path, '/') + 1));
}

/* ---- logs ------------------------------------------------------------------------------------ */

/* Copy the folder of a store in use, as a killed process leaves it. `log`: its newest log. */
static void make_killed(char *copy, char *log)
{
    size_t count;
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    append_elements(store);
    snprintf(copy, PATH_SIZE, "%s-killed", folder);
    run_command("cp -r %s %s", folder, copy);
    embedded_close(store);
    uint64_t *logs;
    assert_int_equal(spill_log_numbers(copy, 0, &logs, &count, NULL), SPILL_OK);
    assert_true(count > 0);
    char *path = spill_log_path(copy, logs[count - 1]);
    snprintf(log, PATH_SIZE, "%s", path);
    bson_free(path);
    bson_free(logs);
}

/*
 * Write headers of parts that would end within the block, so that a search must check the sum of
 * each.
 */
static size_t put_candidates(uint8_t *block, size_t at, size_t bytes)
{
    for (size_t end = at + bytes; at + HEADER <= end; at += HEADER) {
        memset(block + at, 0, HEADER);
        block[at + 5] = 0x20; /* 8 KiB */
        block[at + 6] = 1;
    }
    return at;
}

static void put_good_part(uint8_t *block, size_t at, const char *content)
{
    size_t length = strlen(content);
    uint8_t *header = block + at;
    header[4] = (uint8_t)length;
    header[5] = 0;
    header[6] = 1;
    memcpy(header + HEADER, content, length);
    uint32_t crc = spill_crc32c(header + 6, length + 1);
    uint32_t sum = ((crc >> 15) | (crc << 17)) + UINT32_C(0xa282ead8);
    for (int i = 0; i < 4; i++)
        header[i] = (uint8_t)(sum >> (8 * i));
}

static void append_bytes(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* The last block has a part that ends behind the file's end, 2 MiB to sum, and a good part. */
static void good_part_far_behind_break_is_damage(void **state)
{
    (void)state;
    char copy[PATH_SIZE], log[PATH_SIZE];
    static uint8_t tail[20000];
    make_killed(copy, log);
    size_t room = BLOCK - (size_t)(size_of(log) % BLOCK);
    assert_true(room > sizeof tail);
    put_candidates(tail, 0, HEADER);
    tail[4] = tail[5] = 0xff;
    size_t at = put_candidates(tail, HEADER, (size_t)HEADER * 256);
    put_good_part(tail, at + 10000, "a part");
    append_bytes(log, tail, sizeof tail);
    assert_refused_naming(copy, log);
    assert_int_equal(truncate(log, size_of(log) - 1 - (off_t)(sizeof tail - at - 10000)), 0);
    assert_holds_all(copy); /* without the good part it is a torn end */
}

/* Zeros up to a block's end, and behind them a block that the search gives up. */
static void block_too_costly_to_search_is_damage(void **state)
{
    (void)state;
    char copy[PATH_SIZE], log[PATH_SIZE];
    static uint8_t tail[2 * BLOCK];
    make_killed(copy, log);
    size_t zeros = BLOCK - (size_t)(size_of(log) % BLOCK);
    append_bytes(log, tail, zeros);
    size_t at = put_candidates(tail, 0, (size_t)HEADER * 256);
    put_good_part(tail, at + 10000, "a part");
    append_bytes(log, tail, BLOCK);
    assert_refused_naming(copy, log);
    assert_int_equal(truncate(log, size_of(log) - BLOCK), 0);
    assert_holds_all(copy);
}

/* ---- the list of files ----------------------------------------------------------------------- */

/* The engine itself, open on the store's folder. */
typedef struct engine {
    rocksdb_t *db;
    rocksdb_options_t *options;
} engine_t;

static void check_message(char *message)
{
    if (message)
        fail_msg("%s", message);
}

static engine_t open_engine(const char *folder)
{
    char *message = NULL;
    engine_t engine = {.options = rocksdb_options_create()};
    engine.db = rocksdb_open(engine.options, folder, &message);
    check_message(message);
    return engine;
}

static void close_engine(engine_t *engine)
{
    rocksdb_close(engine->db);
    rocksdb_options_destroy(engine->options);
}

/* Write the format's record again, so that the engine has something to flush. */
static void write_again(engine_t *engine)
{
    char *message = NULL;
    size_t size;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    spill_system_key(&key, SPILL_SYSTEM_FORMAT, "");
    char *value = rocksdb_get(engine->db, read, (const char *)key.data, key.size, &size, &message);
    check_message(message);
    assert_non_null(value);
    rocksdb_put(engine->db, write, (const char *)key.data, key.size, value, size, &message);
    check_message(message);
    rocksdb_free(value);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    spill_buffer_release(&key);
}

static void flush_engine(engine_t *engine)
{
    char *message = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush(engine->db, options, &message);
    check_message(message);
    rocksdb_flushoptions_destroy(options);
}

/* Rewrite the contents of the tables to a new table. */
static void compact_engine(engine_t *engine)
{
    enum { FORCE = 2 }; /* otherwise the engine may move tables without writing any */
    rocksdb_compactoptions_t *options = rocksdb_compactoptions_create();
    rocksdb_compactoptions_set_bottommost_level_compaction(options, FORCE);
    rocksdb_compact_range_opt(engine->db, options, NULL, 0, NULL, 0);
    rocksdb_compactoptions_destroy(options);
}

/* Make the store of a killed process with overlapping tables, and an idle engine. */
static engine_t open_idle(char *folder)
{
    char log[PATH_SIZE];
    make_killed(folder, log);
    engine_t engine = open_engine(folder);
    for (int i = 0; i < 2; i++) {
        write_again(&engine);
        flush_engine(&engine);
    }
    return engine;
}

/* Cut the list of files before the last record that names a new table. */
static void tear_list(const char *folder, char *path)
{
    spill_manifest_t whole, torn;
    spill_error_t error;
    assert_int_equal(spill_manifest_read(folder, &whole, &error), SPILL_OK);
    snprintf(path, PATH_SIZE, "%.200s/%s", folder, whole.name);
    do {
        assert_int_equal(truncate(path, size_of(path) - 1), 0);
        assert_int_equal(spill_manifest_read(folder, &torn, &error), SPILL_OK);
    } while (torn.next_file == whole.next_file);
    assert_true(torn.torn);
}

/*
 * A power loss before the record of a compaction is synced. The engine has not deleted the tables
 * that the compaction read, so the new tables are not needed.
 */
static void list_torn_by_compaction_is_whole(void **state)
{
    (void)state;
    char folder[PATH_SIZE], copy[PATH_SIZE], path[PATH_SIZE];
    engine_t engine = open_idle(folder);
    snprintf(copy, sizeof copy, "%.200s-before", folder);
    run_command("cp -r %s %s", folder, copy);
    compact_engine(&engine);
    run_command("cp -n %s/*.sst %s/", folder, copy);
    run_command("cp %s/MANIFEST-* %s/", folder, copy);
    close_engine(&engine);
    tear_list(copy, path);
    assert_holds_all(copy);
}

/* The engine deletes the log that it has flushed after it has answered. */
static void wait_for_one_log(const char *folder)
{
    char pattern[PATH_SIZE + 8];
    size_t logs = 0;
    snprintf(pattern, sizeof pattern, "%s/*.log", folder);
    for (int tries = 0; logs != 1 && tries < 60000; tries++) {
        glob_t found = {0};
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        logs = found.gl_pathc;
        globfree(&found);
        usleep(1000);
    }
    assert_int_equal(logs, 1);
}

/*
 * The record of a flush is missing although the engine synced it: it has deleted the flushed log.
 */
static void list_without_record_of_flush_is_named(void **state)
{
    (void)state;
    char folder[PATH_SIZE], copy[PATH_SIZE], path[PATH_SIZE];
    engine_t engine = open_idle(folder);
    write_again(&engine);
    flush_engine(&engine);
    wait_for_one_log(folder);
    snprintf(copy, sizeof copy, "%.200s-after", folder);
    run_command("cp -r %s %s", folder, copy);
    close_engine(&engine);
    tear_list(copy, path);
    assert_refused_naming(copy, path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_part_far_behind_break_is_damage),
        cmocka_unit_test(block_too_costly_to_search_is_damage),
        cmocka_unit_test(list_torn_by_compaction_is_whole),
        cmocka_unit_test(list_without_record_of_flush_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
