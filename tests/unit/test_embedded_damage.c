/*
 * Damaged files: each one is detected and named, no acknowledged element is lost silently, and
 * owners with undamaged records stay readable.
 */
#include "support/embedded.h"

#include "store/embedded/kv_rocksdb.h"
#include "store/embedded/logs.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <rocksdb/c.h>

enum { OWNERS = 40, ELEMENTS = 500 };

/* ---- a store to damage ----------------------------------------------------------------------- */

static void owner_name(char *name, size_t size, int owner)
{
    snprintf(name, size, "owner-%02d", owner);
}

static spill_store_t *open_store(const char *folder, bool read_only)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    options.read_only = read_only;
    options.partial = read_only;
    return embedded_in_folder(folder, &options);
}

static void fill(spill_store_t *store, int64_t first, int64_t count)
{
    spill_error_t error;
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    for (int i = 0; i < OWNERS; i++) {
        char name[24];
        owner_name(name, sizeof name, i);
        assert_int_equal(embedded_append(array, name, first, count, &error), SPILL_OK);
    }
    spill_array_close(array);
}

static void make_store(const char *folder)
{
    spill_store_t *store = open_store(folder, false);
    fill(store, 0, ELEMENTS);
    embedded_close(store);
}

/* Find the only file with this beginning and ending of its name, except the engine's own LOG. */
static void find_file(const char *folder, const char *begin, const char *end, char *path)
{
    DIR *entries = opendir(folder);
    path[0] = '\0';
    assert_non_null(entries);
    for (const struct dirent *entry; (entry = readdir(entries)) != NULL;) {
        size_t length = strlen(entry->d_name);
        struct stat about;
        char candidate[256];
        if (length < strlen(end) || strncmp(entry->d_name, begin, strlen(begin)) != 0 ||
            strcmp(entry->d_name + length - strlen(end), end) != 0)
            continue;
        snprintf(candidate, sizeof candidate, "%s/%.100s", folder, entry->d_name);
        if (stat(candidate, &about) == 0 && about.st_size > 0)
            strcpy(path, candidate);
    }
    closedir(entries);
    assert_true(path[0] != '\0');
}

static off_t size_of(const char *path)
{
    struct stat about;
    assert_int_equal(stat(path, &about), 0);
    return about.st_size;
}

static void flip_bit(const char *path, off_t at)
{
    uint8_t byte;
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 4;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    close(file);
}

static const char *base_name(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Neither a writer nor a reader can open the store; both name the file. */
static void assert_refused_naming(const char *folder, const char *name)
{
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_t options;
    spill_store_options_init(&options);
    for (int reader = 0; reader < 2; reader++) {
        options.read_only = reader;
        assert_int_equal(spill_store_open(folder, &options, &store, &error), SPILL_CORRUPT);
        assert_null(store);
        if (!strstr(error.message, name))
            fail_msg("\"%s\" is not in \"%s\"", name, error.message);
    }
}

/* Count the owners that can be read in full. Each other owner must report damage. */
static int count_readable(const char *folder, const char *damaged)
{
    int readable = 0;
    spill_store_t *store = open_store(folder, true);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    for (int i = 0; i < OWNERS; i++) {
        char name[24];
        spill_error_t error;
        owner_name(name, sizeof name, i);
        spill_code_t code = embedded_holds(array, name, 0, ELEMENTS, &error);
        readable += code == SPILL_OK;
        if (code != SPILL_OK) {
            assert_int_equal(code, SPILL_CORRUPT);
            if (!strstr(error.message, damaged) || !strstr(error.message, name))
                fail_msg("neither %s nor %s is in \"%s\"", damaged, name, error.message);
            assert_true(embedded_findings(store, array, name) > 0);
        }
    }
    spill_array_close(array);
    embedded_close(store);
    return readable;
}

/* ---- table files ----------------------------------------------------------------------------- */

static void flipped_bit_affects_few_owners(void **state)
{
    (void)state;
    char path[256];
    const char *folder = embedded_new_folder();
    make_store(folder);
    find_file(folder, "", ".sst", path);
    off_t data = size_of(path) * 3 / 4;
    for (int i = 1; i < 8; i++) {
        flip_bit(path, data * i / 8);
        int readable = count_readable(folder, base_name(path));
        assert_in_range(readable, OWNERS - 6, OWNERS - 1);
        flip_bit(path, data * i / 8);
    }
    assert_int_equal(count_readable(folder, ""), OWNERS);
}

static void note_warning(void *context, spill_log_level_t level, const char *message)
{
    if (level == SPILL_LOG_WARNING)
        snprintf(context, SPILL_ERROR_MESSAGE_SIZE, "%s", message);
}

/* This store has only one table: a partial open succeeds, and the array cannot be read. */
static void assert_unreadable_naming(const char *folder, const char *name)
{
    char warning[SPILL_ERROR_MESSAGE_SIZE] = "";
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_init(&options);
    options.read_only = true;
    options.partial = true;
    options.log = note_warning;
    options.log_context = warning;
    if (spill_store_open(folder, &options, &store, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    assert_non_null(strstr(warning, name));
    assert_non_null(strstr(warning, "showing only what can be read"));
    assert_non_null(strstr(warning, "restore a backup"));
    assert_null(strstr(warning, "--partial")); /* it is in use */
    assert_non_null(strstr(spill_store_damage(store), name));
    spill_array_t *array;
    assert_int_equal(spill_array_open(store, "feed", &array, &error), SPILL_CORRUPT);
    assert_non_null(strstr(error.message, folder));
    embedded_close(store);
}

static void missing_or_short_table_is_named(void **state)
{
    (void)state;
    char path[256], away[300];
    const char *folder = embedded_new_folder();
    make_store(folder);
    find_file(folder, "", ".sst", path);
    snprintf(away, sizeof away, "%s.away", path);
    assert_int_equal(rename(path, away), 0);
    assert_refused_naming(folder, base_name(path));
    assert_unreadable_naming(folder, base_name(path));
    assert_int_equal(rename(away, path), 0);
    assert_int_equal(truncate(path, size_of(path) / 2), 0);
    assert_refused_naming(folder, base_name(path));
    assert_unreadable_naming(folder, base_name(path));
}

/* ---- large values ---------------------------------------------------------------------------- */

static void damage_to_large_element_affects_its_owner(void **state)
{
    (void)state;
    enum { LARGE_OWNERS = 4, LARGE_BYTES = 700 * 1024 };
    char path[256];
    const char *folder = embedded_new_folder();
    bson_t storage = BSON_INITIALIZER;
    uint8_t *text = bson_malloc(LARGE_BYTES);
    spill_error_t error;
    spill_store_t *store = open_store(folder, false);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    for (uint32_t i = 0, random = 1; i < LARGE_BYTES; i++, random = random * 1664525 + 1013904223)
        text[i] = (uint8_t)(random >> 24);
    bson_append_binary(&storage, "", 0, BSON_SUBTYPE_BINARY, text, LARGE_BYTES);
    bson_free(text);
    bson_iter_t iter;
    bson_iter_init(&iter, &storage);
    assert_true(bson_iter_next(&iter));
    spill_value_t large = spill_value_from_iter(&iter);
    for (int64_t i = 0; i < LARGE_OWNERS; i++) {
        spill_value_t owner = {(const uint8_t *)&i, sizeof i, BSON_TYPE_INT64};
        assert_int_equal(spill_array_append(array, &owner, &large, 1, NULL, NULL, &error),
                         SPILL_OK);
    }
    spill_array_close(array);
    embedded_close(store);
    find_file(folder, "", ".blob", path);
    assert_true(size_of(path) > LARGE_OWNERS * LARGE_BYTES);
    flip_bit(path, size_of(path) / LARGE_OWNERS / 2);
    store = open_store(folder, false);
    array = embedded_array(store, "feed", 20, 50);
    int damaged = 0;
    for (int64_t i = 0; i < LARGE_OWNERS; i++) {
        spill_value_t owner = {(const uint8_t *)&i, sizeof i, BSON_TYPE_INT64};
        spill_slice_t *slice;
        spill_code_t code = spill_array_read(array, &owner, NULL, &slice, &error);
        damaged += code == SPILL_CORRUPT;
        if (code == SPILL_CORRUPT)
            assert_non_null(strstr(error.message, "owner 0 of 'feed', head: "));
        else
            assert_int_equal(slice->elements[0].value.size_bytes, large.size_bytes);
        spill_slice_free(slice);
    }
    assert_int_equal(damaged, 1);
    spill_array_close(array);
    embedded_close(store);
    bson_destroy(&storage);
}

/* ---- the list of files ----------------------------------------------------------------------- */

static void damaged_list_of_files_is_named(void **state)
{
    (void)state;
    char path[256], current[256];
    const char *folder = embedded_new_folder();
    make_store(folder);
    find_file(folder, "MANIFEST-", "", path);
    flip_bit(path, size_of(path) / 2);
    assert_refused_naming(folder, base_name(path));
    flip_bit(path, size_of(path) / 2);
    assert_int_equal(count_readable(folder, ""), OWNERS);
    snprintf(current, sizeof current, "%s/CURRENT", folder);
    unlink(current);
    assert_refused_naming(folder, "CURRENT");
}

static void list_of_files_without_end_is_named(void **state)
{
    (void)state;
    char path[256];
    spill_store_options_t options;
    spill_error_t error;
    spill_store_t *store;
    const char *folder = embedded_new_folder();
    make_store(folder);
    find_file(folder, "MANIFEST-", "", path);
    assert_int_equal(truncate(path, size_of(path) - 20), 0);
    for (int i = 0; i < 2; i++) /* the second open refuses, too */
        assert_refused_naming(folder, base_name(path));
    spill_store_options_init(&options);
    options.read_only = true;
    assert_int_equal(spill_store_open(folder, &options, &store, &error), SPILL_CORRUPT);
}

/* ---- logs ------------------------------------------------------------------------------------ */

/*
 * Make the store of a killed process: copy the folder while it is open. If the engine deletes a
 * file during the copy, copy again.
 */
static void make_killed(const char *folder, char *copy)
{
    enum { TRIES = 20 };
    char command[300];
    int result = -1;
    make_store(folder);
    spill_store_t *store = open_store(folder, false);
    fill(store, ELEMENTS, 10);
    strcpy(copy, folder);
    strcat(copy, "-killed");
    snprintf(command, sizeof command, "rm -rf %s; cp -r %s %s 2>&1", copy, folder, copy);
    for (int i = 0; i < TRIES && result != 0; i++)
        result = system(command);
    assert_int_equal(result, 0);
    embedded_close(store);
}

/* The last owner has exactly `count` elements. */
static void assert_last_has(const char *folder, int64_t count)
{
    char name[24];
    spill_error_t error;
    spill_store_t *store = open_store(folder, false);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    owner_name(name, sizeof name, OWNERS - 1);
    assert_int_equal(embedded_holds(array, name, 0, count, &error), SPILL_OK);
    assert_int_equal(embedded_findings(store, array, name), 0);
    spill_array_close(array);
    embedded_close(store);
}

static void log_is_replayed_after_kill(void **state)
{
    (void)state;
    char copy[80];
    make_killed(embedded_new_folder(), copy);
    assert_last_has(copy, ELEMENTS + 10);
}

static void incomplete_last_record_is_skipped(void **state)
{
    (void)state;
    char copy[80], path[256];
    spill_error_t error;
    spill_store_t *store;
    for (int synced = 0; synced < 2; synced++) {
        make_killed(embedded_new_folder(), copy);
        find_file(copy, "0", ".log", path);
        assert_int_equal(truncate(path, size_of(path) - 1), 0);
        if (synced) { /* it is unknown what the last writer acknowledged */
            assert_int_equal(spill_store_open(copy, NULL, &store, &error), SPILL_OK);
            embedded_close(store);
        }
        assert_last_has(copy, ELEMENTS + 9);
    }
}

/* Count the owners that a partial open shows completely: the damage did not hit them. */
static int count_whole(const char *folder, int64_t count)
{
    int whole = 0;
    spill_store_t *store = open_store(folder, true);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    for (int i = 0; i < OWNERS; i++) {
        char name[24];
        spill_error_t error;
        owner_name(name, sizeof name, i);
        whole += embedded_holds(array, name, 0, count, &error) == SPILL_OK;
    }
    spill_array_close(array);
    embedded_close(store);
    return whole;
}

static void flipped_bit_in_log_is_damage(void **state)
{
    (void)state;
    char copy[80], path[256];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", path);
    const off_t places[] = {20, size_of(path) / 2, size_of(path) - 4};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        flip_bit(path, places[i]);
        assert_refused_naming(copy, base_name(path));
        assert_in_range(count_whole(copy, ELEMENTS + 10), OWNERS / 5, OWNERS - 1);
        flip_bit(path, places[i]);
    }
    assert_last_has(copy, ELEMENTS + 10);
}

/*
 * A record that is longer than a block of the log is written in parts. The log may end between two
 * parts.
 */
static void log_cut_between_parts_is_replayed(void **state)
{
    (void)state;
    enum { LARGE = 100000, BLOCK = 32768 };
    char copy[80], command[300], path[256];
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 20, 50);
    spill_error_t error;
    assert_int_equal(embedded_append(array, "ada", 0, 3, &error), SPILL_OK);
    char *text = bson_malloc(LARGE);
    memset(text, 'x', LARGE - 1);
    text[LARGE - 1] = '\0';
    bson_t storage = BSON_INITIALIZER, name = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&name, "bob");
    spill_value_t element = spill_value_from_utf8(&storage, text);
    assert_int_equal(spill_array_append(array, &owner, &element, 1, NULL, NULL, &error), SPILL_OK);
    snprintf(copy, sizeof copy, "%s-cut", folder);
    snprintf(command, sizeof command, "cp -r %s %s", folder, copy);
    assert_int_equal(system(command), 0);
    spill_array_close(array);
    embedded_close(store);
    find_file(copy, "0", ".log", path);
    assert_true(size_of(path) > 3 * BLOCK);
    assert_int_equal(truncate(path, 2 * BLOCK), 0);
    store = embedded_in_folder(copy, NULL);
    array = embedded_array(store, "feed", 20, 50);
    assert_int_equal(embedded_holds(array, "ada", 0, 3, &error), SPILL_OK);
    assert_int_equal(embedded_holds(array, "bob", 0, 0, &error), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    bson_destroy(&storage);
    bson_destroy(&name);
    bson_free(text);
}

/*
 * A flipped bit in a record's length may move the record's end behind the end of the log, as for a
 * torn record. The bytes behind it show the difference. For the last record nothing does: it is
 * dropped like a torn one.
 */
static void flipped_bit_in_header_is_not_a_torn_end(void **state)
{
    (void)state;
    char copy[80], path[256];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", path);
    off_t size = size_of(path);
    off_t block = (size - 1) / 32768 * 32768;
    for (off_t place = block + 4; place < block + 7; place++) {
        flip_bit(path, place);
        assert_refused_naming(copy, base_name(path));
        flip_bit(path, place);
    }
    assert_last_has(copy, ELEMENTS + 10);
}

/* After a regular close, no byte of the list of files can change undetected. */
static void flipped_bit_in_list_of_files_is_detected(void **state)
{
    (void)state;
    char path[256];
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_close(embedded_array(store, "feed", 2, 2));
    embedded_close(store);
    find_file(folder, "MANIFEST-", "", path);
    for (off_t place = 0; place < size_of(path); place++) {
        flip_bit(path, place);
        assert_refused_naming(folder, base_name(path));
        flip_bit(path, place);
    }
    embedded_close(embedded_in_folder(folder, NULL));
}

/* Write the format's record again after a replay that keeps the old log: now two logs exist. */
static void add_log(const char *folder)
{
    char *message = NULL;
    size_t size;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_system_key(&key, SPILL_SYSTEM_FORMAT, "");
    rocksdb_options_t *usual = rocksdb_options_create();
    rocksdb_options_t *options = rocksdb_options_create();
    rocksdb_get_options_from_string(usual, "avoid_flush_during_recovery=true", options, &message);
    assert_null(message);
    rocksdb_t *db = rocksdb_open(options, folder, &message);
    assert_null(message);
    rocksdb_writeoptions_t *write = rocksdb_writeoptions_create();
    rocksdb_readoptions_t *read = rocksdb_readoptions_create();
    char *value = rocksdb_get(db, read, (const char *)key.data, key.size, &size, &message);
    assert_non_null(value);
    rocksdb_put(db, write, (const char *)key.data, key.size, value, size, &message);
    assert_null(message);
    rocksdb_free(value);
    spill_buffer_release(&key);
    rocksdb_readoptions_destroy(read);
    rocksdb_writeoptions_destroy(write);
    rocksdb_close(db);
    rocksdb_options_destroy(options);
    rocksdb_options_destroy(usual);
}

static void find_newest_log(const char *folder, char *path)
{
    size_t count;
    uint64_t *logs;
    assert_int_equal(spill_log_numbers(folder, 0, &logs, &count, NULL), SPILL_OK);
    assert_true(count > 0);
    char *newest = spill_log_path(folder, logs[count - 1]);
    strcpy(path, newest);
    bson_free(newest);
    bson_free(logs);
}

/*
 * With log durability, a power loss may remove the end of an older log; otherwise a missing end is
 * damage.
 */
static void incomplete_older_log_is_damage_or_power_loss(void **state)
{
    (void)state;
    char copy[80], older[256];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", older);
    add_log(copy);
    assert_int_equal(truncate(older, size_of(older) - 1), 0);
    assert_refused_naming(copy, base_name(older));
    assert_refused_naming(copy, "--durability=log");
    assert_int_equal(count_whole(copy, ELEMENTS + 10), OWNERS - 1);
    assert_last_has(copy, ELEMENTS + 9);
}

/*
 * After a power loss, a writer opens a new log behind a torn one and is killed before it flushes.
 */
static void torn_log_with_newer_log_is_whole(void **state)
{
    (void)state;
    char copy[80], older[256];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", older);
    assert_int_equal(truncate(older, size_of(older) - 1), 0);
    add_log(copy);
    embedded_close(open_store(copy, true));
    assert_last_has(copy, ELEMENTS + 9);
}

/* If a reader continued without a log, it would miss elements without reporting it. */
static void log_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    spill_error_t error;
    spill_store_t *store;
    spill_store_options_t options;
    char copy[80], path[256], aside[300];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", path);
    snprintf(aside, sizeof aside, "%s.aside", path);
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(symlink(base_name(aside), path), 0);
    spill_store_options_init(&options);
    options.read_only = true;
    assert_int_not_equal(spill_store_open(copy, &options, &store, &error), SPILL_OK);
    assert_non_null(strstr(error.message, base_name(path)));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rename(aside, path), 0);
    assert_last_has(copy, ELEMENTS + 10);
}

static void overwrite(const char *path, off_t at, const void *bytes, size_t size)
{
    int file = open(path, O_RDWR);
    assert_true(file >= 0);
    assert_int_equal(pwrite(file, bytes, size, at), (ssize_t)size);
    close(file);
}

/*
 * The engine mistakes both for the end of the log and opens the store without the rest. If it skips
 * damage instead, it reads the recycled part in an endless loop: a partial open must prevent that.
 */
static void zeros_and_recycled_parts_are_damage(void **state)
{
    (void)state;
    static const uint8_t recycled[] = {5}, zeros[7] = {0};
    char copy[80], path[256], original[256];
    make_killed(embedded_new_folder(), copy);
    find_file(copy, "0", ".log", path);
    int file = open(path, O_RDONLY);
    assert_int_equal(pread(file, original, sizeof original, 0), sizeof original);
    close(file);
    overwrite(path, 6, recycled, sizeof recycled); /* the type of the first part */
    assert_refused_naming(copy, base_name(path));
    assert_in_range(count_whole(copy, ELEMENTS + 10), 0, OWNERS - 1);
    overwrite(path, 0, original, 7);
    overwrite(path, 0, zeros, sizeof zeros);
    assert_refused_naming(copy, base_name(path));
    overwrite(path, 0, original, 7);
    assert_last_has(copy, ELEMENTS + 10);
}

/* ---- cutting damaged logs -------------------------------------------------------------------- */

typedef struct losses {
    int owners;
    int64_t elements;
} losses_t;

static void note_loss(void *context, const spill_log_loss_t *loss)
{
    losses_t *losses = context;
    assert_string_equal(loss->definition, "feed");
    assert_non_null(loss->owner);
    losses->owners++;
    losses->elements += loss->elements;
}

static bool same_bytes(const char *left, const char *right)
{
    char command[900];
    snprintf(command, sizeof command, "cmp -s '%s' '%s'", left, right);
    return system(command) == 0;
}

static void keep_copy(const char *path, char *copy, size_t size)
{
    char command[900];
    snprintf(copy, size, "%.200s-original", path);
    snprintf(command, sizeof command, "cp '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0);
}

/* 40 owners got 10 elements each, in turns. The damage is at the first elements of owner 20. */
static void damaged_log_is_cut_and_kept(void **state)
{
    (void)state;
    char copy[80], path[256], original[300], kept[400];
    spill_error_t error;
    spill_log_cut_t cut, again;
    losses_t losses = {0};
    make_killed(embedded_new_folder(), copy);
    assert_int_equal(spill_store_cut_log(copy, true, NULL, NULL, &cut, &error), SPILL_OK);
    assert_false(cut.needed);
    find_file(copy, "0", ".log", path);
    off_t place = size_of(path) / 2;
    flip_bit(path, place);
    keep_copy(path, original, sizeof original);
    assert_int_equal(spill_store_cut_log(copy, true, note_loss, &losses, &cut, &error), SPILL_OK);
    assert_true(cut.needed);
    assert_string_equal(cut.file, base_name(path));
    assert_in_range(cut.offset, place - 400, place);
    assert_int_equal(cut.bytes, size_of(path) - cut.offset);
    assert_int_equal(cut.owners, losses.owners);
    assert_int_equal(cut.elements, losses.elements);
    assert_in_range(losses.elements, OWNERS * 10 / 3, OWNERS * 10 - 1);
    assert_string_equal(cut.kept, "");
    assert_true(same_bytes(path, original));

    assert_int_equal(spill_store_cut_log(copy, false, NULL, NULL, &again, &error), SPILL_OK);
    assert_int_equal(again.offset, cut.offset);
    assert_int_equal(size_of(path), cut.offset);
    snprintf(kept, sizeof kept, "%s/%s", copy, again.kept);
    assert_true(same_bytes(kept, original));
    assert_int_equal(spill_store_cut_log(copy, false, NULL, NULL, &cut, &error), SPILL_OK);
    assert_false(cut.needed);
    assert_last_has(copy, ELEMENTS);
    assert_true(same_bytes(kept, original)); /* a writer does not change it */
}

/*
 * A cut with two logs, interrupted after each of its steps: it can be repeated, and no log is lost.
 */
static void interrupted_cut_is_repeated(void **state)
{
    (void)state;
    enum { STEPS = 4 };
    for (int step = 0; step < STEPS; step++) {
        char copy[80], older[256], newer[256], kept[2][300], original[2][300];
        spill_error_t error;
        spill_log_cut_t cut;
        make_killed(embedded_new_folder(), copy);
        find_file(copy, "0", ".log", older);
        add_log(copy);
        find_newest_log(copy, newer);
        assert_string_not_equal(older, newer);
        flip_bit(older, size_of(older) / 2);
        keep_copy(older, original[0], sizeof original[0]);
        keep_copy(newer, original[1], sizeof original[1]);
        snprintf(kept[0], sizeof kept[0], "%s/damaged-%s", copy, base_name(older));
        snprintf(kept[1], sizeof kept[1], "%s/damaged-%s", copy, base_name(newer));
        if (step > 0)
            assert_int_equal(link(newer, kept[1]), 0);
        if (step > 1)
            assert_int_equal(link(older, kept[0]), 0);
        if (step > 2)
            assert_int_equal(unlink(newer), 0);
        assert_refused_naming(copy, base_name(older));
        assert_int_equal(spill_store_cut_log(copy, false, NULL, NULL, &cut, &error), SPILL_OK);
        assert_true(cut.needed);
        assert_true(same_bytes(kept[0], original[0]));
        assert_true(same_bytes(kept[1], original[1]));
        assert_last_has(copy, ELEMENTS);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void messages_become_codes(void **state)
{
    (void)state;
    static const struct {
        const char *message;
        spill_code_t code;
    } cases[] = {
        {"IO error: No space left on device: While appending to file: a.log", SPILL_NO_SPACE},
        {"IO error: Disk quota exceeded: While appending to file: a.log", SPILL_NO_SPACE},
        {"IO error: While open a file for appending: a.log: Permission denied", SPILL_DENIED},
        {"IO error: While open a file: a.log: Read-only file system", SPILL_DENIED},
        {"IO error: While lock file: LOCK: Resource temporarily unavailable", SPILL_BUSY},
        {"Corruption: block checksum mismatch in a.sst", SPILL_CORRUPT},
        {"IO error: No such file or directory: While open: a.sst", SPILL_CORRUPT},
        {"Invalid argument: a: does not exist (create_if_missing is false)", SPILL_NOT_FOUND},
        {"IO error: While pread: a.sst: Input/output error", SPILL_IO},
        {"something else", SPILL_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spill_error_t error;
        assert_int_equal(spill_engine_code(cases[i].message), cases[i].code);
        assert_int_equal(spill_engine_fail(&error, "place", cases[i].message), cases[i].code);
        assert_non_null(strstr(error.message, cases[i].message));
        assert_int_equal(strncmp(error.message, "place: ", 7), 0);
        assert_int_equal(error.retryable, cases[i].code == SPILL_BUSY);
        assert_int_equal(error.native, 0); /* the engine gives no codes */
    }
    spill_error_t error;
    spill_engine_fail(&error, "place", "IO error: No such file or directory: 000011.ldb: none");
    assert_non_null(strstr(error.message, "000011.sst:"));
    assert_int_equal(spill_engine_fail(NULL, "place", "x"), SPILL_IO);
    assert_true(spill_engine_sync_failed("IO error: While fdatasync: a.log: Input/output error"));
    assert_false(spill_engine_sync_failed("IO error: While appending to file: a.log"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flipped_bit_affects_few_owners),
        cmocka_unit_test(missing_or_short_table_is_named),
        cmocka_unit_test(damage_to_large_element_affects_its_owner),
        cmocka_unit_test(damaged_list_of_files_is_named),
        cmocka_unit_test(list_of_files_without_end_is_named),
        cmocka_unit_test(log_is_replayed_after_kill),
        cmocka_unit_test(incomplete_last_record_is_skipped),
        cmocka_unit_test(flipped_bit_in_log_is_damage),
        cmocka_unit_test(log_cut_between_parts_is_replayed),
        cmocka_unit_test(flipped_bit_in_header_is_not_a_torn_end),
        cmocka_unit_test(flipped_bit_in_list_of_files_is_detected),
        cmocka_unit_test(incomplete_older_log_is_damage_or_power_loss),
        cmocka_unit_test(zeros_and_recycled_parts_are_damage),
        cmocka_unit_test(torn_log_with_newer_log_is_whole),
        cmocka_unit_test(log_that_cannot_be_opened_is_named),
        cmocka_unit_test(damaged_log_is_cut_and_kept),
        cmocka_unit_test(interrupted_cut_is_repeated),
        cmocka_unit_test(messages_become_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
