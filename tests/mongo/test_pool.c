/* A store on the program's own pool of libmongoc (spillway/mongoc.h). */
#include "support/server.h"

#include <spillway/mongoc.h>
#include <spillway/spillway.h>

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char *database_of(const char *text)
{
    mongoc_uri_t *uri = mongoc_uri_new(text);
    char *database = bson_strdup(mongoc_uri_get_database(uri));
    mongoc_uri_destroy(uri);
    return database;
}

static mongoc_client_pool_t *new_pool(const char *text, int32_t error_api)
{
    mongoc_uri_t *uri = mongoc_uri_new(text);
    assert_non_null(uri);
    mongoc_client_pool_t *pool = mongoc_client_pool_new(uri);
    if (error_api > 0)
        assert_true(mongoc_client_pool_set_error_api(pool, error_api));
    mongoc_uri_destroy(uri);
    return pool;
}

/* ---- the commands that a program's own callback sees ------------------------------------------
 */

typedef struct seen {
    pthread_mutex_t lock;
    int writes, reads, majority_writes, majority_reads, successes;
} seen_t;

static bool asks_for(const bson_t *command, const char *path, const char *text)
{
    bson_iter_t iter, found;
    return bson_iter_init(&iter, command) && bson_iter_find_descendant(&iter, path, &found) &&
           BSON_ITER_HOLDS_UTF8(&found) && strcmp(bson_iter_utf8(&found, NULL), text) == 0;
}

static void note_command(const mongoc_apm_command_started_t *event)
{
    seen_t *seen = mongoc_apm_command_started_get_context(event);
    const bson_t *command = mongoc_apm_command_started_get_command(event);
    const char *name = mongoc_apm_command_started_get_command_name(event);
    pthread_mutex_lock(&seen->lock);
    if (strcmp(name, "findAndModify") == 0 || strcmp(name, "update") == 0 ||
        strcmp(name, "insert") == 0) {
        seen->writes++;
        seen->majority_writes += asks_for(command, "writeConcern.w", "majority");
    }
    if (strcmp(name, "find") == 0 || strcmp(name, "aggregate") == 0) {
        seen->reads++;
        seen->majority_reads += asks_for(command, "readConcern.level", "majority");
    }
    pthread_mutex_unlock(&seen->lock);
}

static void note_success(const mongoc_apm_command_succeeded_t *event)
{
    seen_t *seen = mongoc_apm_command_succeeded_get_context(event);
    pthread_mutex_lock(&seen->lock);
    seen->successes++;
    pthread_mutex_unlock(&seen->lock);
}

static void watch(mongoc_client_pool_t *pool, seen_t *seen)
{
    mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();
    mongoc_apm_set_command_started_cb(callbacks, note_command);
    mongoc_apm_set_command_succeeded_cb(callbacks, note_success);
    assert_true(mongoc_client_pool_set_apm_callbacks(pool, callbacks, seen));
    mongoc_apm_callbacks_destroy(callbacks);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Append more than a head holds, read it, and check it. */
static void use_store(spill_store_t *store)
{
    spill_array_t *array;
    spill_definition_t definition;
    spill_count_t count;
    spill_verify_summary_t summary;
    bson_oid_t id;
    bson_oid_init(&id, NULL);
    spill_value_t owner = spill_value_from_oid(&id);
    spill_definition_init(&definition, "feed");
    definition.bounds.threshold = 4;
    definition.bounds.page_capacity = 2;
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, NULL), SPILL_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(spill_array_append(array, &owner, &owner, 1, NULL, NULL, NULL), SPILL_OK);
    assert_int_equal(spill_array_remove(array, &owner, 0, NULL), SPILL_OK);
    assert_int_equal(spill_array_count(array, &owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 9);
    assert_int_equal(spill_array_verify(array, NULL, NULL, NULL, &summary, NULL), SPILL_OK);
    assert_int_equal(summary.findings, 0);
    spill_array_close(array);
}

static void program_and_store_share_the_pool(void **state)
{
    (void)state;
    spill_store_t *store;
    spill_error_t error;
    bson_error_t cause;
    seen_t seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char *uri = server_new_database(NULL);
    char *database = database_of(uri);
    mongoc_client_pool_t *pool = new_pool(uri, MONGOC_ERROR_API_VERSION_2);
    watch(pool, &seen);
    spill_code_t code = spill_store_open_pool(pool, NULL, NULL, &store, &error);
    if (code != SPILL_OK)
        fail_msg("%s", error.message);
    use_store(store);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    assert_true(seen.writes > 10 && seen.reads > 0 && seen.successes > 10);
    assert_int_equal(seen.writes, seen.majority_writes);
    assert_int_equal(seen.reads, seen.majority_reads);

    /* The pool is still the program's, and has its settings. */
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    const mongoc_uri_t *settings = mongoc_client_get_uri(client);
    assert_int_equal(mongoc_write_concern_get_w(mongoc_uri_get_write_concern(settings)),
                     MONGOC_WRITE_CONCERN_W_DEFAULT);
    bson_t *ping = BCON_NEW("ping", BCON_INT32(1));
    assert_true(mongoc_client_command_simple(client, database, ping, NULL, NULL, &cause));
    bson_destroy(ping);
    mongoc_client_pool_push(pool, client);

    /* The database may also be named in the call; one that is opened by its URI has the same. */
    assert_int_equal(spill_store_open_pool(pool, database, NULL, &store, NULL), SPILL_OK);
    spill_definition_t definition;
    assert_int_equal(spill_store_definition(store, "feed", &definition, NULL), SPILL_OK);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    mongoc_client_pool_destroy(pool);
    server_drop(uri);
    bson_free(database);
    bson_free(uri);
}

/* A `w` of the program's stays. */
static void concerns_of_the_connection_string_apply(void **state)
{
    (void)state;
    spill_store_t *store;
    seen_t seen = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char *uri = server_new_database("w=1&readConcernLevel=local");
    mongoc_client_pool_t *pool = new_pool(uri, MONGOC_ERROR_API_VERSION_2);
    watch(pool, &seen);
    assert_int_equal(spill_store_open_pool(pool, NULL, NULL, &store, NULL), SPILL_OK);
    use_store(store);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
    assert_true(seen.writes > 10 && seen.reads > 0);
    assert_int_equal(seen.majority_writes, 0);
    assert_int_equal(seen.majority_reads, 0);
    mongoc_client_pool_destroy(pool);
    server_drop(uri);
    bson_free(uri);
}

static void expect_refusal(const char *uri, const char *database, int32_t error_api,
                           const spill_store_options_t *options, const char *text)
{
    spill_store_t *store = (spill_store_t *)1;
    spill_error_t error;
    mongoc_client_pool_t *pool = new_pool(uri, error_api);
    assert_int_equal(spill_store_open_pool(pool, database, options, &store, &error), SPILL_INVALID);
    assert_null(store);
    if (!strstr(error.message, text))
        fail_msg("'%s' does not have '%s'", error.message, text);
    mongoc_client_pool_destroy(pool);
}

static void settings_that_matter(void **state)
{
    (void)state;
    spill_store_t *store;
    spill_error_t error;
    spill_store_options_t options;
    char *uri = server_new_database(NULL);
    char *unacknowledged = server_new_database("w=0");
    char *impatient = server_new_database("waitQueueTimeoutMS=100");
    expect_refusal(uri, NULL, 0, NULL, "mongoc_client_pool_set_error_api");
    expect_refusal(uri, NULL, MONGOC_ERROR_API_VERSION_LEGACY, NULL, "before its first client");
    expect_refusal(unacknowledged, NULL, MONGOC_ERROR_API_VERSION_2, NULL, "w=0");
    expect_refusal(impatient, NULL, MONGOC_ERROR_API_VERSION_2, NULL, "waitqueuetimeoutms");
    expect_refusal(uri, "", MONGOC_ERROR_API_VERSION_2, NULL, "no database");
    spill_store_options_init(&options);
    options.count_bytes = true;
    expect_refusal(uri, NULL, MONGOC_ERROR_API_VERSION_2, &options, "count_bytes");
    options.version = 99;
    expect_refusal(uri, NULL, MONGOC_ERROR_API_VERSION_2, &options, "version");

    spill_store_options_init(&options);
    options.must_exist = true;
    mongoc_client_pool_t *pool = new_pool(uri, MONGOC_ERROR_API_VERSION_2);
    assert_int_equal(spill_store_open_pool(pool, NULL, &options, &store, &error), SPILL_NOT_FOUND);
    assert_int_equal(spill_store_open_pool(NULL, "x", NULL, &store, &error), SPILL_INVALID);
    assert_int_equal(spill_store_open_pool(pool, "x", NULL, NULL, &error), SPILL_INVALID);
    mongoc_client_pool_destroy(pool);
    bson_free(impatient);
    bson_free(unacknowledged);
    bson_free(uri);
}

int main(void)
{
    server_uri();
    mongoc_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_and_store_share_the_pool),
        cmocka_unit_test(concerns_of_the_connection_string_apply),
        cmocka_unit_test(settings_that_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
