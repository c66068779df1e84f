/*
 * A program that has its own collection and its own pool of libmongoc. Spillway appends to arrays
 * of that collection through the same pool.
 *
 *   own_collection mongodb://HOST/DATABASE
 *
 * The database must not have a collection `posts` yet.
 */
#include <spillway/mongoc.h>
#include <spillway/spillway.h>

#include <stdio.h>

/* The program's own code: a post with a first comment, written without Spillway. */
static bool insert_post(mongoc_client_pool_t *pool, const char *database, bson_error_t *error)
{
    mongoc_client_t *client = mongoc_client_pool_pop(pool);
    mongoc_collection_t *posts = mongoc_client_get_collection(client, database, "posts");
    bson_t *post = BCON_NEW("_id", "post-1", "title", "Hello", "comments", "[", "first", "]");
    bool inserted = mongoc_collection_insert_one(posts, post, NULL, NULL, error);
    bson_destroy(post);
    mongoc_collection_destroy(posts);
    mongoc_client_pool_push(pool, client);
    return inserted;
}

/* The array `comments` of the documents of `posts`. The excess goes to `posts_comments`. */
static spill_code_t open_comments(spill_store_t *store, spill_array_t **comments,
                                  spill_error_t *error)
{
    spill_definition_t definition;
    spill_code_t code = spill_definition_preset(&definition, "gateway", "comments", error);
    snprintf(definition.collection, sizeof definition.collection, "posts");
    snprintf(definition.array, sizeof definition.array, "comments");
    snprintf(definition.page_collection, sizeof definition.page_collection, "posts_comments");
    definition.bounds.threshold = definition.bounds.page_capacity = 50;
    if (code == SPILL_OK)
        code = spill_store_define(store, &definition, error);
    if (code == SPILL_OK)
        code = spill_array_open(store, "comments", comments, error);
    return code;
}

/* Appends to an array that programs wrote before are refused until it is adopted, once. */
static spill_code_t add_comment(spill_array_t *comments, const char *post, const char *text,
                                spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER, text_storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, post);
    spill_value_t element = spill_value_from_utf8(&text_storage, text);
    spill_code_t code = spill_array_append(comments, &owner, &element, 1, NULL, NULL, error);
    if (code == SPILL_REFUSED && error->reason == SPILL_REASON_UNMANAGED) {
        code = spill_array_adopt(comments, &owner, NULL, error);
        if (code == SPILL_OK)
            code = spill_array_append(comments, &owner, &element, 1, NULL, NULL, error);
    }
    bson_destroy(&storage);
    bson_destroy(&text_storage);
    return code;
}

static spill_code_t use_comments(spill_store_t *store, spill_error_t *error)
{
    spill_array_t *comments = NULL;
    spill_slice_t *newest = NULL;
    spill_read_options_t options;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "post-1");
    char text[32];

    spill_code_t code = open_comments(store, &comments, error);
    for (int i = 1; i <= 120 && code == SPILL_OK; i++) {
        snprintf(text, sizeof text, "comment %d", i);
        code = add_comment(comments, "post-1", text, error);
    }
    spill_read_options_init(&options);
    options.limit = 2;
    if (code == SPILL_OK)
        code = spill_array_read(comments, &owner, &options, &newest, error);
    for (size_t i = 0; newest && i < newest->count; i++)
        printf("%lld: %s\n", (long long)newest->elements[i].seq,
               spill_value_to_utf8(&newest->elements[i].value, NULL));
    spill_slice_free(newest);
    spill_array_close(comments);
    bson_destroy(&storage);
    return code;
}

int main(int argc, char **argv)
{
    bson_error_t problem;
    spill_error_t error;
    spill_store_t *store = NULL;
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new_with_error(argc > 1 ? argv[1] : "", &problem);
    const char *database = uri ? mongoc_uri_get_database(uri) : NULL;
    if (!database) {
        fprintf(stderr, "usage: own_collection mongodb://HOST/DATABASE\n");
        mongoc_uri_destroy(uri);
        return 1;
    }
    mongoc_client_pool_t *pool = mongoc_client_pool_new(uri);
    mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2); /* Spillway needs it */

    bool ok = insert_post(pool, database, &problem);
    if (!ok)
        fprintf(stderr, "%s\n", problem.message);
    if (ok) {
        spill_code_t code = spill_store_open_pool(pool, NULL, NULL, &store, &error);
        if (code == SPILL_OK)
            code = use_comments(store, &error);
        if (code != SPILL_OK)
            fprintf(stderr, "%s: %s\n", spill_code_name(code), error.message);
        ok = code == SPILL_OK;
    }
    spill_store_close(store, NULL); /* before the pool */
    mongoc_client_pool_destroy(pool);
    mongoc_uri_destroy(uri);
    mongoc_cleanup();
    return ok ? 0 : 1;
}
