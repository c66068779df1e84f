/* For every code of error.h, one real call of the library that returns it. */
#include "support/embedded.h"
#include "support/fail_new.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { NOBODY = 65534 };

/* A store in memory, an array with an operation window of one, and an owner. */
typedef struct scene {
    spill_store_t *store;
    spill_array_t *array;
    bson_t storage;
    spill_value_t owner;
    const char *folder; /* a path without a file */
} scene_t;

typedef spill_code_t (*provoke_fn)(scene_t *scene, spill_error_t *error);

static spill_value_t number(const int64_t *value)
{
    return (spill_value_t){(const uint8_t *)value, sizeof *value, BSON_TYPE_INT64};
}

/* Append a number. With an id, the number is also the base of the operation. */
static spill_code_t append(scene_t *scene, int64_t value, const char *id, spill_error_t *error)
{
    spill_value_t element = number(&value);
    spill_append_result_t result;
    spill_append_options_t options;
    spill_op_t op = {.id = id, .id_bytes = id != NULL ? strlen(id) : 0, .base = value};
    spill_append_options_init(&options);
    options.op = id != NULL ? &op : NULL;
    return spill_array_append(scene->array, &scene->owner, &element, 1, &options, &result, error);
}

static spill_code_t open_and_close(const char *path, const spill_store_options_t *options,
                                   spill_error_t *error)
{
    spill_store_t *store;
    spill_code_t code = spill_store_open(path, options, &store, error);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    return code;
}

/* ---- one call for each code ------------------------------------------------------------------ */

static spill_code_t provoke_ok(scene_t *scene, spill_error_t *error)
{
    return append(scene, 1, NULL, error);
}

static spill_code_t provoke_not_found(scene_t *scene, spill_error_t *error)
{
    spill_array_t *array;
    return spill_array_open(scene->store, "nowhere", &array, error);
}

static spill_code_t provoke_invalid(scene_t *scene, spill_error_t *error)
{
    spill_append_result_t result;
    return spill_array_append(scene->array, &scene->owner, NULL, 0, NULL, &result, error);
}

static spill_code_t provoke_parse(scene_t *scene, spill_error_t *error)
{
    (void)scene;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_code_t code = spill_value_from_json("{\"a\": ", 6, &storage, &value, error);
    bson_destroy(&storage);
    return code;
}

static spill_code_t provoke_too_big(scene_t *scene, spill_error_t *error)
{
    const uint32_t size = 16 * 1024 * 1024;
    bson_t document = BSON_INITIALIZER;
    uint8_t *bytes = bson_malloc0(size);
    BSON_APPEND_BINARY(&document, "bytes", BSON_SUBTYPE_BINARY, bytes, size);
    bson_free(bytes);
    spill_value_t element = spill_value_from_document(&document);
    spill_append_result_t result;
    spill_code_t code =
        spill_array_append(scene->array, &scene->owner, &element, 1, NULL, &result, error);
    bson_destroy(&document);
    return code;
}

static spill_code_t provoke_conflict(scene_t *scene, spill_error_t *error)
{
    int64_t numbers[] = {1, 0};
    spill_value_t elements[] = {number(&numbers[0]), number(&numbers[1])};
    spill_append_result_t result;
    spill_append_options_t options;
    spill_op_t op = {.id = "one", .id_bytes = 3};
    spill_append_options_init(&options);
    options.op = &op;
    assert_int_equal(append(scene, 0, "one", error), SPILL_OK);
    return spill_array_append(scene->array, &scene->owner, elements, 2, &options, &result, error);
}

static spill_code_t provoke_refused(scene_t *scene, spill_error_t *error)
{
    spill_definition_t other = *spill_array_get_definition(scene->array);
    assert_int_equal(append(scene, 1, NULL, error), SPILL_OK);
    other.keep = SPILL_KEEP_OLDEST;
    return spill_store_define(scene->store, &other, error);
}

/* Another operation replaces the first one in the window. */
static spill_code_t provoke_unknown(scene_t *scene, spill_error_t *error)
{
    assert_int_equal(append(scene, 0, "one", error), SPILL_OK);
    assert_int_equal(append(scene, 1, "two", error), SPILL_OK);
    return append(scene, 0, "one", error);
}

static spill_code_t provoke_corrupt(scene_t *scene, spill_error_t *error)
{
    char path[512];
    embedded_close(embedded_in_folder(scene->folder, NULL));
    snprintf(path, sizeof path, "%s/CURRENT", scene->folder);
    assert_int_equal(truncate(path, 3), 0);
    return open_and_close(scene->folder, NULL, error);
}

static spill_code_t provoke_busy(scene_t *scene, spill_error_t *error)
{
    spill_store_t *store = embedded_in_folder(scene->folder, NULL);
    spill_code_t code = open_and_close(scene->folder, NULL, error);
    embedded_close(store);
    return code;
}

static spill_code_t provoke_read_only(scene_t *scene, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    embedded_close(embedded_in_folder(scene->folder, NULL));
    options.read_only = true;
    spill_store_t *store = embedded_in_folder(scene->folder, &options);
    spill_code_t code = spill_store_define(store, spill_array_get_definition(scene->array), error);
    embedded_close(store);
    return code;
}

static spill_code_t provoke_denied(scene_t *scene, spill_error_t *error)
{
    assert_int_equal(mkdir(scene->folder, 0500), 0);
    /* Root may write everywhere, so become another user. */
    if (geteuid() == 0)
        assert_true(setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    return open_and_close(scene->folder, NULL, error);
}

/* Limit the size of files below what is appended. */
static spill_code_t provoke_no_space(scene_t *scene, spill_error_t *error)
{
    spill_store_t *store = embedded_in_folder(scene->folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 2, 2);
    struct rlimit limit = {.rlim_cur = 64 * 1024, .rlim_max = 64 * 1024};
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    spill_code_t code = embedded_append(array, "ada", 0, 100000, error);
    spill_array_close(array);
    spill_store_close(store, NULL);
    return code;
}

static spill_code_t provoke_io(scene_t *scene, spill_error_t *error)
{
    (void)scene;
    char path[400] = "/tmp/";
    memset(path + 5, 'x', sizeof path - 6); /* longer than a name may be */
    return open_and_close(path, NULL, error);
}

static spill_code_t provoke_no_memory(scene_t *scene, spill_error_t *error)
{
    fail_new_after(1); /* the engine's first allocation */
    spill_code_t code = open_and_close(scene->folder, NULL, error);
    fail_new_after(0);
    return code;
}

static spill_code_t provoke_timed_out(scene_t *scene, spill_error_t *error)
{
    spill_deadline_t outer = spill_deadline_begin(0);
    spill_code_t code = append(scene, 1, NULL, error);
    spill_deadline_end(outer);
    return code;
}

static spill_code_t provoke_format(scene_t *scene, spill_error_t *error)
{
    bson_t document = BSON_INITIALIZER;
    spill_definition_t definition;
    spill_definition_to_bson(spill_array_get_definition(scene->array), &document);
    BSON_APPEND_INT32(&document, "fieldOfALaterVersion", 1);
    spill_code_t code = spill_definition_from_bson(&definition, &document, error);
    bson_destroy(&document);
    return code;
}

static bool stop(void *context, const spill_value_t *owner)
{
    (void)context;
    (void)owner;
    return false;
}

static spill_code_t provoke_cancelled(scene_t *scene, spill_error_t *error)
{
    assert_int_equal(append(scene, 1, NULL, error), SPILL_OK);
    return spill_array_owners(scene->array, stop, NULL, error);
}

/* ---- all codes ------------------------------------------------------------------------------- */

static const provoke_fn calls[] = {
    [SPILL_OK] = provoke_ok,
    [SPILL_NOT_FOUND] = provoke_not_found,
    [SPILL_INVALID] = provoke_invalid,
    [SPILL_PARSE] = provoke_parse,
    [SPILL_TOO_BIG] = provoke_too_big,
    [SPILL_CONFLICT] = provoke_conflict,
    [SPILL_REFUSED] = provoke_refused,
    [SPILL_UNKNOWN] = provoke_unknown,
    [SPILL_CORRUPT] = provoke_corrupt,
    [SPILL_BUSY] = provoke_busy,
    [SPILL_READ_ONLY] = provoke_read_only,
    [SPILL_DENIED] = provoke_denied,
    [SPILL_NO_SPACE] = provoke_no_space,
    [SPILL_IO] = provoke_io,
    [SPILL_FORMAT] = provoke_format,
    [SPILL_CANCELLED] = provoke_cancelled,
    [SPILL_NO_MEMORY] = provoke_no_memory,
    [SPILL_TIMED_OUT] = provoke_timed_out,
};

static spill_code_t call_in_scene(provoke_fn call, const char *folder, spill_error_t *error)
{
    scene_t scene = {.storage = BSON_INITIALIZER, .folder = folder};
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    definition.keep = SPILL_KEEP_NEWEST;
    definition.op_window = 1;
    assert_int_equal(spill_store_open("memory:", NULL, &scene.store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(scene.store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(scene.store, "feed", &scene.array, NULL), SPILL_OK);
    scene.owner = spill_value_from_utf8(&scene.storage, "ada");
    spill_code_t code = call(&scene, error);
    spill_array_close(scene.array);
    assert_int_equal(spill_store_close(scene.store, NULL), SPILL_OK);
    bson_destroy(&scene.storage);
    return code;
}

/* Runs in a process of its own, because some calls change limits of the whole process. */
static spill_code_t call_in_child(provoke_fn call)
{
    const char *folder = embedded_new_folder(); /* belongs to the child process */
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        spill_error_t error = {0};
        spill_code_t code = call_in_scene(call, folder, &error);
        bool described = code == SPILL_OK || (error.code == code && error.message[0] != '\0');
        _exit(described ? (int)code : 99);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return (spill_code_t)WEXITSTATUS(status);
}

static void every_code_is_returned(void **state)
{
    (void)state;
    static const char *const names[] = {
#define NAME(name, text) [SPILL_##name] = "SPILL_" #name,
        SPILL_CODES(NAME)
#undef NAME
    };
    assert_int_equal(sizeof calls / sizeof *calls, sizeof names / sizeof *names);
    for (size_t code = 0; code < sizeof names / sizeof *names; code++) {
        if (calls[code] == NULL)
            fail_msg("no call of this test returns %s", names[code]);
        spill_code_t got = calls[code] != NULL ? call_in_child(calls[code]) : SPILL_OK;
        if (got != (spill_code_t)code)
            fail_msg("expected %s, got %s", names[code], spill_code_name(got));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_code_is_returned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
