/* Opening and closing stores on disk: permissions, existing files, formats; backups. */
#include "support/embedded.h"

#include "store/embedded/kv_rocksdb.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static spill_store_options_t read_only(void)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.read_only = true;
    return options;
}

static spill_store_options_t log_durability(void)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    return options;
}

/* Opening must fail with this code, and a message that has these words. */
static void assert_open_fails(const char *folder, const spill_store_options_t *options,
                              spill_code_t code, const char *words)
{
    spill_error_t error;
    spill_store_t *store = (spill_store_t *)folder;
    assert_int_equal(spill_store_open(folder, options, &store, &error), code);
    assert_null(store);
    assert_int_equal(error.code, code);
    assert_int_equal(error.retryable, code == SPILL_BUSY);
    if (!strstr(error.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, error.message);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Create a store with 30 elements of one owner in a head and pages. */
static void make_store(const char *folder)
{
    spill_store_options_t options = log_durability();
    spill_error_t error;
    spill_store_t *store = embedded_in_folder(folder, &options);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    assert_int_equal(embedded_append(array, "ada", 0, 30, &error), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
}

static void assert_has_thirty(const char *folder, const spill_store_options_t *options)
{
    spill_error_t error;
    spill_store_t *store = embedded_in_folder(folder, options);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    assert_int_equal(embedded_holds(array, "ada", 0, 30, &error), SPILL_OK);
    assert_int_equal(embedded_findings(store, array, "ada"), 0);
    spill_array_close(array);
    embedded_close(store);
}

/* ---- existing files -------------------------------------------------------------------------- */

static void store_is_created_and_reopened(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    make_store(folder);
    assert_has_thirty(folder, NULL);
    spill_store_options_t options = read_only();
    assert_has_thirty(folder, &options);
}

static void reader_does_not_create_store(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    spill_store_options_t options = read_only();
    assert_open_fails(folder, &options, SPILL_NOT_FOUND, folder);
    options.read_only = false;
    options.must_exist = true;
    assert_open_fails(folder, &options, SPILL_NOT_FOUND, folder);
    assert_int_equal(access(folder, F_OK), -1);
    mkdir(folder, 0777);
    assert_open_fails(folder, &options, SPILL_NOT_FOUND, folder);
}

static void other_folders_are_refused(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    write_file("/tmp", "spillway-test-file", "");
    assert_open_fails("/tmp/spillway-test-file", NULL, SPILL_NOT_FOUND, "not a folder");
    unlink("/tmp/spillway-test-file");
    mkdir(folder, 0777);
    write_file(folder, "notes.txt", "not a store");
    assert_open_fails(folder, NULL, SPILL_NOT_FOUND, "not a Spillway store");
    write_file(folder, "CURRENT", "MANIFEST-000001\n"); /* another program's RocksDB */
    assert_open_fails(folder, NULL, SPILL_NOT_FOUND, "not a Spillway store");
    assert_int_equal(access("/nowhere", F_OK), -1);
    assert_open_fails("/nowhere/at/all", NULL, SPILL_NOT_FOUND, "/nowhere/at/all");
}

static void foreign_database_is_refused(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    spill_rocksdb_options_t options = {.cache_bytes = 1 << 20};
    spill_kv_t *kv;
    spill_batch_t batch = SPILL_BATCH_INIT;
    mkdir(folder, 0777);
    assert_int_equal(spill_kv_rocksdb_open(folder, &options, &kv, NULL), SPILL_OK);
    spill_batch_put(&batch, (const uint8_t *)"key", 3, "value", 5);
    assert_int_equal(kv->ops->write(kv, &batch, false, NULL), SPILL_OK);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    spill_batch_release(&batch);
    write_file(folder, "SPILLWAY", "A Spillway store.\n");
    assert_open_fails(folder, NULL, SPILL_NOT_FOUND, "a database, but not a Spillway store");
}

/* A crash after creating the folder and before creating the database. */
static void unfinished_store_is_created(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    mkdir(folder, 0777);
    write_file(folder, "SPILLWAY", "A Spillway store.\n");
    make_store(folder);
    assert_has_thirty(folder, NULL);
    /* The engine has written its first list of files, but not yet the file that names it. */
    folder = embedded_new_folder();
    mkdir(folder, 0777);
    write_file(folder, "SPILLWAY", "A Spillway store.\n");
    write_file(folder, "IDENTITY", "12345678");
    write_file(folder, "MANIFEST-000001", "half");
    write_file(folder, "000001.dbtmp", "MANIFEST-0000");
    make_store(folder);
    assert_has_thirty(folder, NULL);
}

/* ---- permissions ----------------------------------------------------------------------------- */

static void second_writer_is_refused_with_holder(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    char process[64];
    make_store(folder);
    spill_store_t *store = embedded_in_folder(folder, NULL);
    snprintf(process, sizeof process, "process %ld on ", (long)getpid());
    assert_open_fails(folder, NULL, SPILL_BUSY, process);
    assert_open_fails(folder, NULL, SPILL_BUSY, "read-only");
    embedded_close(store);
    assert_has_thirty(folder, NULL);
}

static void reader_sees_store_as_opened(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    spill_store_options_t options = read_only();
    spill_error_t error;
    make_store(folder);
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    assert_int_equal(embedded_append(array, "ada", 30, 5, &error), SPILL_OK);

    spill_store_t *reader = embedded_in_folder(folder, &options);
    spill_array_t *seen = embedded_array(reader, "feed", 3, 4);
    assert_int_equal(embedded_append(array, "ada", 35, 5, &error), SPILL_OK);
    assert_int_equal(embedded_holds(seen, "ada", 0, 35, &error), SPILL_OK);
    assert_int_equal(embedded_append(seen, "ada", 35, 1, &error), SPILL_READ_ONLY);
    assert_non_null(strstr(error.message, "read-only"));
    assert_int_equal(spill_store_define(reader, spill_array_get_definition(seen), &error),
                     SPILL_OK); /* already the same content */
    assert_int_equal(spill_store_drop(reader, "feed", &error), SPILL_READ_ONLY);
    spill_array_close(seen);
    embedded_close(reader);
    assert_int_equal(embedded_holds(array, "ada", 0, 40, &error), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
}

/* How many reads the store answered from its cache of newest elements. */
static int64_t tail_hits(spill_store_t *store)
{
    spill_counters_t counters;
    spill_store_counters(store, &counters);
    return counters.tail_hits;
}

/* The newest three elements of ada must be `newest` and the numbers below it. */
static void assert_newest(spill_array_t *array, int64_t newest)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_read_options_init(&options);
    options.limit = 3;
    assert_int_equal(spill_array_read(array, &owner, &options, &slice, NULL), SPILL_OK);
    assert_int_equal(slice->count, 3);
    for (size_t i = 0; i < slice->count; i++) {
        bson_t number = BSON_INITIALIZER;
        spill_value_t expected = spill_value_from_int64(&number, newest - (int64_t)i);
        assert_int_equal(slice->elements[i].seq, newest - (int64_t)i);
        assert_true(spill_value_equal(&slice->elements[i].value, &expected));
        bson_destroy(&number);
    }
    spill_slice_free(slice);
    bson_destroy(&storage);
}

/* The writer's appends come before the reader fills its cache, and after that. */
static void reader_caches_what_it_sees(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    spill_store_options_t options = read_only();
    spill_error_t error;
    make_store(folder);
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    assert_newest(array, 29);
    spill_store_t *reader = embedded_in_folder(folder, &options);
    spill_array_t *seen = embedded_array(reader, "feed", 3, 4);
    assert_int_equal(embedded_append(array, "ada", 30, 1, &error), SPILL_OK);
    assert_newest(seen, 29);
    assert_int_equal(tail_hits(reader), 0);
    assert_int_equal(embedded_append(array, "ada", 31, 9, &error), SPILL_OK);
    for (int hits = 1; hits <= 2; hits++) {
        assert_newest(seen, 29);
        assert_int_equal(tail_hits(reader), hits);
    }
    assert_newest(array, 39); /* the writer has a cache of its own */
    spill_array_close(seen);
    embedded_close(reader);
    spill_array_close(array);
    embedded_close(store);
}

static int count_entries(const char *folder)
{
    int count = 0;
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

/* Run in a child of this process. Fork first, before any engine has threads. */
static void in_a_child(void (*run)(const char *folder), const char *folder)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(2);
        run(folder);
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void exit_unless(bool good)
{
    if (!good)
        _exit(1);
}

static void use_without_permission(const char *folder)
{
    spill_store_options_t options = read_only();
    spill_error_t error;
    spill_store_t *store;
    exit_unless(spill_store_open(folder, NULL, &store, &error) == SPILL_DENIED);
    exit_unless(strstr(error.message, folder) != NULL);
    exit_unless(spill_store_open(folder, &options, &store, &error) == SPILL_OK);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    exit_unless(embedded_holds(array, "ada", 0, 30, &error) == SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    exit_unless(spill_store_open("/usr/spillway-test", NULL, &store, &error) == SPILL_DENIED);
    _exit(0); /* do not delete files that the parent still uses */
}

static void read_only_folder_can_be_read(void **state)
{
    (void)state;
    const char *folder = embedded_new_folder();
    char parent[64];
    snprintf(parent, sizeof parent, "%s/..", folder);
    spill_store_options_t options = log_durability();
    options.file_mode = 0644;
    embedded_close(embedded_in_folder(folder, &options));
    make_store(folder);
    chmod(parent, 0755);
    chmod(folder, 0555);
    int entries = count_entries(folder);
    in_a_child(use_without_permission, folder);
    assert_int_equal(count_entries(folder), entries);
    chmod(folder, 0755);
    assert_has_thirty(folder, NULL);
}

/* ---- formats --------------------------------------------------------------------------------- */

static void put_format(spill_batch_t *batch, uint64_t version)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    spill_system_key(&key, SPILL_SYSTEM_FORMAT, "");
    spill_buffer_append_varint(spill_batch_put_open(batch, key.data, key.size), version);
    spill_batch_put_close(batch);
    spill_buffer_release(&key);
}

static void write_to(disk_t *disk, spill_batch_t *batch)
{
    spill_kv_t *kv = disk_open(disk);
    assert_int_equal(kv->ops->write(kv, batch, true, NULL), SPILL_OK);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    spill_batch_release(batch);
}

static spill_code_t open_disk(disk_t *disk, bool reader, spill_store_t **store,
                              spill_error_t *error)
{
    spill_store_options_t options = reader ? read_only() : log_durability();
    return spill_embedded_open_kv(disk_open(disk), "memory", &options, store, error);
}

static void newer_format_is_refused(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_batch_t batch = SPILL_BATCH_INIT;
    spill_store_t *store;
    spill_error_t error;
    put_format(&batch, SPILL_FORMAT_VERSION + 1);
    write_to(disk, &batch);
    assert_int_equal(open_disk(disk, false, &store, &error), SPILL_FORMAT);
    assert_non_null(strstr(error.message, "format 3"));
    assert_non_null(strstr(error.message, "up to format 2"));
    put_format(&batch, 0);
    write_to(disk, &batch);
    assert_int_equal(open_disk(disk, false, &store, &error), SPILL_CORRUPT);
    disk_free(disk);
}

/* Delete the owner's index of pages by first number, of array number `id`. */
static void delete_index(spill_kv_t *kv, uint32_t id, const char *owner, spill_batch_t *batch)
{
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t name = SPILL_BUFFER_INIT;
    spill_record_key_t key;
    int64_t incarnation, first, page;
    spill_value_t value = spill_value_from_utf8(&storage, owner);
    assert_int_equal(spill_owner_key(&value, &name, NULL), SPILL_OK);
    spill_record_key_init(&key, id, name.data, name.size);
    spill_record_key_kind(&key, SPILL_RECORD_FIRST);
    spill_kv_iter_t *iter = kv->ops->iterate(kv);
    iter->ops->seek(iter, key.data, key.size);
    for (; iter->valid &&
           spill_record_key_is_first(&key, iter->key, iter->key_bytes, &incarnation, &first, &page);
         iter->ops->next(iter))
        spill_batch_delete(batch, iter->key, iter->key_bytes);
    iter->ops->free(iter);
    spill_buffer_release(&name);
    bson_destroy(&storage);
}

/* Make a store of format 1, which had no such index. */
static void make_format_1(disk_t *disk, uint32_t array_id, const char *const *owners)
{
    spill_kv_t *kv = disk_open(disk);
    spill_batch_t batch = SPILL_BATCH_INIT;
    for (; *owners; owners++)
        delete_index(kv, array_id, *owners, &batch);
    assert_true(batch.count > 1000); /* the upgrade needs more than one batch */
    put_format(&batch, 1);
    assert_int_equal(kv->ops->close(kv, NULL), SPILL_OK);
    write_to(disk, &batch);
}

static void older_format_is_upgraded(void **state)
{
    (void)state;
    static const char *const owners[] = {"ada", "ben", "cleo", NULL};
    disk_t *disk = disk_new();
    spill_error_t error;
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    spill_array_t *array = embedded_array(store, "feed", 1, 1);
    for (int i = 0; owners[i]; i++)
        assert_int_equal(embedded_append(array, owners[i], 100 * i, 900, &error), SPILL_OK);
    spill_binding_t binding;
    assert_int_equal(store->ops->bind(store, spill_array_get_definition(array), &binding, &error),
                     SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    make_format_1(disk, binding.array_id, owners);

    assert_int_equal(open_disk(disk, true, &store, &error), SPILL_FORMAT);
    assert_non_null(strstr(error.message, "upgrade"));
    disk_fail_writes(disk, 1, 1, SPILL_NO_SPACE); /* during the upgrade */
    assert_int_equal(open_disk(disk, false, &store, &error), SPILL_NO_SPACE);
    for (int i = 0; i < 2; i++) {
        store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
        array = embedded_array(store, "feed", 1, 1);
        for (int k = 0; owners[k]; k++) {
            assert_int_equal(embedded_holds(array, owners[k], 100 * k, 900, &error), SPILL_OK);
            assert_int_equal(embedded_findings(store, array, owners[k]), 0);
        }
        spill_array_close(array);
        embedded_close(store);
    }
    disk_free(disk);
}

/* ---- backups --------------------------------------------------------------------------------- */

static void backup_is_independent_store(void **state)
{
    (void)state;
    char folder[64], copy[64];
    spill_error_t error;
    strcpy(folder, embedded_new_folder());
    strcpy(copy, embedded_new_folder());
    make_store(folder);
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 3, 4);
    assert_int_equal(spill_store_backup(store, copy, &error), SPILL_OK);
    assert_int_equal(embedded_append(array, "ada", 30, 20, &error), SPILL_OK);
    assert_int_equal(spill_store_backup(store, copy, &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, copy));
    assert_int_equal(spill_store_backup(store, "/nowhere/copy", &error), SPILL_NOT_FOUND);
    spill_array_close(array);
    embedded_close(store);
    assert_has_thirty(copy, NULL);
}

static mode_t mode_of(const char *folder, const char *name)
{
    char path[256];
    struct stat about;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(stat(path, &about), 0);
    return about.st_mode & 07777;
}

static void folder_has_requested_mode(void **state)
{
    (void)state;
    static const mode_t modes[][2] = {{0600, 0700}, {0640, 0750}, {0664, 0775}};
    spill_error_t error;
    char copy[256];
    mode_t usual = umask(027);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        spill_store_options_t options = log_durability();
        options.file_mode = (unsigned)modes[i][0];
        const char *folder = embedded_new_folder();
        snprintf(copy, sizeof copy, "%s-copy", folder);
        spill_store_t *store = embedded_in_folder(folder, &options);
        assert_int_equal(mode_of(folder, "."), modes[i][1]);
        assert_int_equal(spill_store_backup(store, copy, &error), SPILL_OK);
        assert_int_equal(mode_of(copy, "."), modes[i][1]);
        embedded_close(store);
        assert_int_equal(umask(027), 027); /* the application's mask is unchanged */
    }
    umask(usual);
}

static void memory_store_has_no_backup(void **state)
{
    (void)state;
    disk_t *disk = disk_new();
    spill_error_t error;
    spill_store_t *store = embedded_on_disk(disk, SPILL_DURABILITY_LOG);
    assert_int_equal(spill_store_backup(store, "/tmp/spillway-copy", &error), SPILL_INVALID);
    embedded_close(store);
    disk_free(disk);
}

/* ---- windows of operations ------------------------------------------------------------------- */

/* Append operation `id`, of one element. */
static spill_append_result_t append_op(spill_array_t *array, int id, int64_t base)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_op_t op = {.id = &id, .id_bytes = sizeof id, .base = base};
    spill_append_options_t options;
    spill_append_result_t result;
    spill_append_options_init(&options);
    options.op = &op;
    assert_int_equal(spill_array_append(array, &owner, &owner, 1, &options, &result, NULL),
                     SPILL_OK);
    bson_destroy(&storage);
    return result;
}

/* Old operations are deleted many at a time. After each length, the window's are all known. */
static void check_window(spill_keep_t keep)
{
    enum { WINDOW = 8, LENGTH = 80, CHECKED = 70 };
    const char *folder = embedded_new_folder();
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    snprintf(definition.collection, SPILL_NAME_SIZE, "feed");
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "feedPages");
    definition.keep = keep;
    definition.op_window = WINDOW;
    definition.bounds.threshold = definition.bounds.page_capacity = 3;
    for (int length = 0; length < LENGTH;) {
        spill_array_t *array;
        spill_store_t *store = embedded_in_folder(folder, NULL);
        assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
        assert_int_equal(spill_array_open(store, "feed", &array, NULL), SPILL_OK);
        for (int id = length > WINDOW ? length - WINDOW : 0; id < length; id++)
            assert_true(append_op(array, id, id).repeated);
        do
            assert_false(append_op(array, length, length).repeated);
        while (++length < CHECKED);
        spill_array_close(array);
        embedded_close(store);
    }
}

/* With keep oldest, each page continues the window of the page before it. */
static void a_reopened_store_knows_its_window(void **state)
{
    (void)state;
    check_window(SPILL_KEEP_NEWEST);
    check_window(SPILL_KEEP_OLDEST);
}

/* ---- merges ---------------------------------------------------------------------------------- */

/* The priority of this process's thread that merges tables, as steps of nice(); -1: none. */
static int priority_of_merges(void)
{
    int priority = -1;
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        char path[320], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof name, file) && strcmp(name, "rocksdb:low\n") == 0)
            priority = getpriority(PRIO_PROCESS, (id_t)strtol(entry->d_name, NULL, 10));
        if (file)
            fclose(file);
    }
    closedir(threads);
    return priority;
}

/* Each close writes a table. The engine merges them, at a lower priority than the readers have. */
static void merges_have_a_lower_priority(void **state)
{
    (void)state;
    enum { TABLES = 6, TRIES_MAX = 3000, PAUSE_US = 10000 };
    const char *folder = embedded_new_folder();
    spill_error_t error;
    int own = getpriority(PRIO_PROCESS, 0);
    make_store(folder);
    for (int i = 0; i < TABLES; i++) {
        spill_store_t *store = embedded_in_folder(folder, NULL);
        spill_array_t *array = embedded_array(store, "feed", 3, 4);
        assert_int_equal(embedded_append(array, "ada", 30 + i, 1, &error), SPILL_OK);
        spill_array_close(array);
        embedded_close(store);
    }
    spill_store_t *store = embedded_in_folder(folder, NULL);
    int tries = 0;
    while (priority_of_merges() <= own && tries++ < TRIES_MAX)
        usleep(PAUSE_US);
    assert_true(priority_of_merges() > own);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
    embedded_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_only_folder_can_be_read), /* first: before any thread exists */
        cmocka_unit_test(store_is_created_and_reopened),
        cmocka_unit_test(reader_does_not_create_store),
        cmocka_unit_test(other_folders_are_refused),
        cmocka_unit_test(foreign_database_is_refused),
        cmocka_unit_test(unfinished_store_is_created),
        cmocka_unit_test(second_writer_is_refused_with_holder),
        cmocka_unit_test(reader_sees_store_as_opened),
        cmocka_unit_test(reader_caches_what_it_sees),
        cmocka_unit_test(newer_format_is_refused),
        cmocka_unit_test(older_format_is_upgraded),
        cmocka_unit_test(backup_is_independent_store),
        cmocka_unit_test(folder_has_requested_mode),
        cmocka_unit_test(memory_store_has_no_backup),
        cmocka_unit_test(a_reopened_store_knows_its_window),
        cmocka_unit_test(merges_have_a_lower_priority),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
