/*
 * Migrations in two stages (staged.h) on a server: the k-th store call fails or its answer is lost;
 * for each k with SPILLWAY_LONG, else for a few.
 */
#include "model/staged.h"
#include "support/effort.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/*
 * Delete all documents, including the catalog; keep collections and indexes, which take longest to
 * create.
 */
static void empty_database(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    bson_t all = BSON_INITIALIZER;
    char **names = mongoc_database_get_collection_names_with_opts(database, NULL, NULL);
    assert_non_null(names);
    for (char **name = names; *name; name++) {
        mongoc_collection_t *collection = mongoc_database_get_collection(database, *name);
        assert_true(mongoc_collection_delete_many(collection, &all, NULL, NULL, NULL));
        mongoc_collection_destroy(collection);
    }
    bson_strfreev(names);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

static void every_call(void **state)
{
    (void)state;
    bool all = effort(true, false, false);
    for (size_t g = 0; g < STAGED_GOALS; g++) {
        bool reached = true;
        char *uri = server_new_database(NULL);
        spill_store_t *store = server_open_indexed(uri);
        for (int64_t k = all ? 0 : 40 + 37 * (int64_t)g; reached; k += all ? 1 : 200) {
            fault_t fault = (k + (int64_t)g) % 2 == 0 ? FAULT_FAIL : FAULT_LOST_APPLIED;
            reached = staged_survives(&staged_goals[g], store, k, fault, k / 2 % 2 == 0);
            empty_database(uri);
        }
        server_close(store);
        server_drop(uri);
        bson_free(uri);
    }
}

static int64_t count_documents(const char *uri, const char *name)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *collection = mongoc_database_get_collection(database, name);
    bson_t all = BSON_INITIALIZER;
    int64_t count = mongoc_collection_count_documents(collection, &all, NULL, NULL, NULL, NULL);
    mongoc_collection_destroy(collection);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    return count;
}

static void change(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *users = mongoc_database_get_collection(database, "users");
    mongoc_collection_t *planned = mongoc_database_get_collection(database, "planned");
    bson_t *ada = BCON_NEW("_id", "ada"), *other = BCON_NEW("_id", "of an application");
    bson_t *replaced = BCON_NEW("name", "ada");
    assert_true(mongoc_collection_replace_one(users, ada, replaced, NULL, NULL, NULL));
    assert_true(mongoc_collection_insert_one(planned, other, NULL, NULL, NULL));
    bson_destroy(ada);
    bson_destroy(other);
    bson_destroy(replaced);
    mongoc_collection_destroy(users);
    mongoc_collection_destroy(planned);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

static void documents_of_other_programs_stay(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open_indexed(uri);
    staged_documents_of_others(&staged_goals[0], store, uri, change);
    assert_int_equal(count_documents(uri, "users"), 4);
    assert_int_equal(count_documents(uri, "planned"), 1);
    assert_int_equal(count_documents(uri, "planned.pages"), 0);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

static void insert_bare(const char *uri)
{
    mongoc_database_t *database;
    mongoc_client_t *client = server_client(uri, &database);
    mongoc_collection_t *users = mongoc_database_get_collection(database, "users");
    for (int i = 0; i < 2; i++) {
        bson_t *document = BCON_NEW("_id", i == 0 ? "eve" : "fay", "activities", "[", "{", "n",
                                    BCON_INT64(500 + i), "}", "]");
        assert_true(mongoc_collection_insert_one(users, document, NULL, NULL, NULL));
        bson_destroy(document);
    }
    mongoc_collection_destroy(users);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

/*
 * With the planned head in other documents, in which case the drop by hand deletes eve's, and in
 * the same documents.
 */
static void documents_of_the_application_stay(void **state)
{
    (void)state;
    for (size_t g = 0; g < 2; g++) {
        char *uri = server_new_database(NULL);
        spill_store_t *store = server_open_indexed(uri);
        staged_documents_stay(&staged_goals[g], store, uri, insert_bare);
        assert_int_equal(count_documents(uri, "users"), staged_goals[g].beside ? 6 : 5);
        server_close(store);
        server_drop(uri);
        bson_free(uri);
    }
}

/* The layouts in which a drop closes a page, in each way. */
static void interrupted_drop_is_completed(void **state)
{
    (void)state;
    for (size_t g = 0; g < 5; g++) {
        char *uri = server_new_database(NULL);
        spill_store_t *store = server_open_indexed(uri);
        staged_drop_is_broken_off(&staged_goals[g], store);
        server_close(store);
        server_drop(uri);
        bson_free(uri);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_of_other_programs_stay),
        cmocka_unit_test(documents_of_the_application_stay),
        cmocka_unit_test(interrupted_drop_is_completed),
        cmocka_unit_test(every_call),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
