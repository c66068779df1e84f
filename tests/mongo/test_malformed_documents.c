/*
 * Stored documents with arbitrary values on a server. For each layout, one document is changed at a
 * place that the seed draws: a field is removed, gets another value, or is swapped, or the document
 * is deleted or stored once more under another _id. Then every operation of the library runs. Each
 * must return the data or an error that names a place (exercise.c checks that). No operation may
 * lose a race, because no other client writes. If verify finds nothing, the export is complete. If
 * repair leaves nothing, verify finds nothing. Cases that once broke these rules run first.
 *
 *   SPILLWAY_SEED             the seed (printed); the same seed draws the same cases
 *   SPILLWAY_MALFORMED_CASES  the number of cases
 *   SPILLWAY_MALFORMED_CASE   run only the drawn case of this number, from 0
 *
 * By default both are fixed, so that a run is repeatable. Other seeds still find cases that break a
 * rule; each becomes a known case with its correction.
 */
#include "malformed.h"
#include "support/exercise.h"
#include "support/server.h"

#include <spillway/mongoc.h>

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* A case that takes longer hangs, and the alarm ends it. Sound cases take less than a second. */
enum { SECONDS_MAX = 120 };

/* Store operations of one group on one small store. */
enum { CALLS_MAX = 3000 };

#define SEED "102"
enum { CASES = 35 };

/* ---- the documents of a store ---------------------------------------------------------------- */

enum { DOCUMENTS_MAX = 100, NAME_BYTES = 128, TEXT_BYTES = 5000 };

typedef struct document {
    char collection[NAME_BYTES];
    bson_t *content;
} document_t;

typedef struct stage {
    mongoc_client_pool_t *pool;
    mongoc_client_t *client;
    mongoc_database_t *database;
    char name[NAME_BYTES];
    document_t documents[DOCUMENTS_MAX];
    size_t count;
    int64_t elements; /* of the sound store */
} stage_t;

/* The case that runs and its change, for messages. */
static long case_number;
static char case_text[TEXT_BYTES];

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* In the order of their names, so that a seed always draws the same cases. */
static void each_collection(stage_t *stage, void (*visit)(stage_t *stage, const char *name,
                                                          mongoc_collection_t *collection))
{
    bson_error_t error;
    char **names = mongoc_database_get_collection_names_with_opts(stage->database, NULL, &error);
    if (!names)
        fail_msg("%s", error.message);
    size_t count = 0;
    while (names[count])
        count++;
    qsort(names, count, sizeof *names, compare_names);
    for (size_t i = 0; i < count; i++) {
        mongoc_collection_t *collection = mongoc_database_get_collection(stage->database, names[i]);
        visit(stage, names[i], collection);
        mongoc_collection_destroy(collection);
    }
    bson_strfreev(names);
}

static void keep_documents(stage_t *stage, const char *name, mongoc_collection_t *collection)
{
    const bson_t *document, all = BSON_INITIALIZER;
    bson_t *by_id = BCON_NEW("sort", "{", "_id", BCON_INT32(1), "}");
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, &all, by_id, NULL);
    while (mongoc_cursor_next(cursor, &document)) {
        assert_true(stage->count < DOCUMENTS_MAX);
        document_t *kept = &stage->documents[stage->count++];
        snprintf(kept->collection, sizeof kept->collection, "%s", name);
        kept->content = bson_copy(document);
    }
    mongoc_cursor_destroy(cursor);
    bson_destroy(by_id);
}

static void empty_collection(stage_t *stage, const char *name, mongoc_collection_t *collection)
{
    (void)stage;
    (void)name;
    bson_error_t error;
    const bson_t all = BSON_INITIALIZER;
    if (!mongoc_collection_delete_many(collection, &all, NULL, NULL, &error))
        fail_msg("%s", error.message);
}

/* Return false if the server refuses the document, as one whose _id exists. */
static bool insert_document(stage_t *stage, const char *name, const bson_t *content)
{
    bson_error_t error;
    mongoc_collection_t *collection = mongoc_database_get_collection(stage->database, name);
    bool done = mongoc_collection_insert_one(collection, content, NULL, NULL, &error);
    mongoc_collection_destroy(collection);
    return done;
}

/* Insert the kept documents of the collection, except for number `except`. */
static void insert_kept(stage_t *stage, const char *name, size_t except)
{
    bson_error_t error;
    const bson_t *batch[DOCUMENTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < stage->count; i++)
        if (i != except && strcmp(stage->documents[i].collection, name) == 0)
            batch[count++] = stage->documents[i].content;
    mongoc_collection_t *collection = mongoc_database_get_collection(stage->database, name);
    if (count > 0 && !mongoc_collection_insert_many(collection, batch, count, NULL, NULL, &error))
        fail_msg("%s: %s", name, error.message);
    mongoc_collection_destroy(collection);
}

static bool has_same(const bson_t *left, const bson_t *right, const char *field)
{
    bson_t one = BSON_INITIALIZER, other = BSON_INITIALIZER;
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, left, field))
        bson_append_iter(&one, NULL, 0, &iter);
    if (bson_iter_init_find(&iter, right, field))
        bson_append_iter(&other, NULL, 0, &iter);
    bool same = bson_equal(&one, &other);
    bson_destroy(&one);
    bson_destroy(&other);
    return same;
}

/*
 * Has the document, as JSON, bookkeeping? Without any a head is the application's document, and its
 * elements are no elements.
 */
static bool is_managed(const char *document)
{
    return strstr(document, "\"epoch\"") || strstr(document, "\"rev\"");
}

/*
 * Draw a change of document `at` and describe it. `*changed` NULL: it is deleted. Return whether
 * the documents still have all elements.
 */
static bool draw_change(stage_t *stage, size_t at, bson_t **changed, bson_t **more)
{
    const document_t *document = &stage->documents[at];
    int kind = malformed_below(20);
    *changed = *more = NULL;
    if (kind == 0)
        ;
    else if (kind < 3)
        *more = malformed_copy(document->content);
    else
        *changed = malformed_document(document->content);
    if (kind == 3 || kind == 4) { /* both are changed */
        *more = malformed_copy(*changed);
        bson_destroy(*changed);
        *changed = NULL;
    }
    if (*more)
        *changed = bson_copy(document->content);
    char *before = bson_as_relaxed_extended_json(document->content, NULL);
    char *after = *more      ? bson_as_relaxed_extended_json(*more, NULL)
                  : *changed ? bson_as_relaxed_extended_json(*changed, NULL)
                             : bson_strdup("deleted");
    snprintf(case_text, sizeof case_text, "%s: %.2000s\n  %s %.2400s", document->collection, before,
             *more ? "and also" : "becomes", after);
    bool managed = is_managed(after);
    bson_free(before);
    bson_free(after);
    return *changed && !*more && managed && has_same(document->content, *changed, "_id") &&
           has_same(document->content, *changed, "activities") &&
           has_same(document->content, *changed, "reviews");
}

/* ---- cases ----------------------------------------------------------------------------------- */

static spill_store_t *open_store(void *context, bool read_only, spill_error_t *error)
{
    stage_t *stage = context;
    spill_store_t *store;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.read_only = read_only;
    options.clock = exercise_clock();
    return spill_store_open_pool(stage->pool, stage->name, &options, &store, error) == SPILL_OK
               ? store
               : NULL;
}

/* cmocka reports a signal without the case, so print the case first. */
static void show_last_case(int number)
{
    fprintf(stderr, "case %ld: %s\n", case_number, case_text);
    signal(number, SIG_DFL);
    raise(number);
}

/* Store all documents, number `at` with its changes. False: the server refuses one of these. */
static bool store_documents(stage_t *stage, size_t at, const bson_t *changed, const bson_t *more)
{
    each_collection(stage, empty_collection);
    for (size_t i = 0; i < stage->count; i++)
        if (i == 0 ||
            strcmp(stage->documents[i].collection, stage->documents[i - 1].collection) != 0)
            insert_kept(stage, stage->documents[i].collection, at);
    const char *collection = at < stage->count ? stage->documents[at].collection : NULL;
    return (!changed || insert_document(stage, collection, changed)) &&
           (!more || insert_document(stage, collection, more));
}

static int failures;

/*
 * `whole`: the documents have all elements. `must_fail`: an export that misses one fails. (A random
 * trim watermark, for example, hides elements, and only verify can find that.)
 */
static void expect_rules(stage_t *stage, const char *layout, int group, bool whole, bool must_fail,
                         const exercise_result_t *result)
{
    const char *broken = NULL;
    if (result->calls > CALLS_MAX)
        broken = "too many store operations";
    else if (result->conflicts > 0)
        broken = "an operation lost a race, although no other client writes";
    else if (result->unnoticed > 0)
        broken = "operations failed with SPILL_CORRUPT, but verify has no findings";
    else if (result->left == 0 && result->unfixed != 0)
        broken = "repair leaves nothing, but verify has findings";
    else if (group == EXERCISE_READ && whole && result->verified && result->findings == 0 &&
             result->elements < stage->elements && result->corrupt == 0 && result->elements >= 0)
        broken = "the export misses elements, but verify has no findings";
    else if (group == EXERCISE_READ && must_fail && result->elements >= 0 &&
             result->elements < stage->elements)
        broken = "the export misses elements without an error";
    if (!broken)
        return;
    failures++;
    printf("case %ld, %s, group %d: %s\n  calls %lld, findings %lld, elements %lld of %lld, left "
           "%lld, then "
           "%lld\n  %s\n",
           case_number, layout, group, broken, (long long)result->calls,
           (long long)result->findings, (long long)result->elements, (long long)stage->elements,
           (long long)result->left, (long long)result->unfixed, case_text);
    fflush(stdout);
}

static void run_case(stage_t *stage, const char *layout, bool runs)
{
    exercise_result_t result;
    const exercise_opener_t opener = {open_store, stage, stage->name};
    bson_t *changed, *more;
    size_t at = (size_t)malformed_below((int)stage->count);
    bool whole = draw_change(stage, at, &changed, &more);
    alarm(SECONDS_MAX);
    for (int group = 0; runs && group < EXERCISE_GROUPS; group++) {
        if (getenv("EXERCISE_TRACE"))
            fprintf(stderr, "group %d, %s\n", group, case_text);
        if (!store_documents(stage, at, changed, more))
            break; /* the server refuses such a document */
        exercise_run_on(&opener, (exercise_group_t)group, &result);
        expect_rules(stage, layout, group, whole, false, &result);
    }
    alarm(0);
    bson_destroy(changed);
    bson_destroy(more);
}

/* ---- known cases ----------------------------------------------------------------------------- */

enum { NEWEST, OLDEST, REFERENCE, SUBSET, BUCKET, CAPPED, RANKED };

/*
 * A change by which a version once hung or ended, lost a race without a rival, missed elements, or
 * had no finding.
 */
typedef struct known {
    int layout;
    const char *collection;
    const char *query;
    const char
        *update;    /* NULL: the document is deleted. "+ARRAY": the array's keys are no places */
    const char *id; /* not NULL: it is stored again under this _id, and keeps its own if `copy` */
    bool copy;
} known_t;

static const known_t known[] = {
    {NEWEST, "overflowActivities", "{\"page\": 1}", NULL, NULL, false},
    {NEWEST, "overflowActivities", "{\"page\": 1}", "{\"$set\": {\"userId\": 3}}", NULL, false},
    {NEWEST, "overflowActivities", "{\"page\": 0}", NULL,
     "{\"owner\": \"ada\", \"page\": 1099511627776}", true},
    {NEWEST, "overflowActivities", "{\"page\": 1}", NULL,
     "{\"owner\": \"eve\", \"page\": 1099511627776}", true},
    {OLDEST, "overflowActivities", "{\"page\": 1}", NULL, "{\"owner\": \"ada\", \"page\": 1.5}",
     true},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-05\"}", "{\"$unset\": {\"spill.pages\": 1}}",
     NULL, false},
    {REFERENCE, "reviews", "{\"id\": 10}", "{\"$set\": {\"spill.first\": 1099511627776}}", NULL,
     false},
    {REFERENCE, "reviews", "{\"id\": 2}", "{\"$set\": {\"spill.first\": {\"page\": 7}}}", NULL,
     false},
    {SUBSET, "reviews", "{\"id\": 6}", NULL, "{\"other\": 1}", false},
    /* An owner that cannot be one. A fourth field of an _id. An _id without a number. */
    {SUBSET, "reviews", "{\"id\": 10}", NULL,
     "{\"owner\": {\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}, "
     "\"page\": 10}",
     false},
    {SUBSET, "reviews", "{\"id\": 4}", NULL, "{\"owner\": \"ada\", \"removed\": 100, \"page\": 4}",
     false},
    {REFERENCE, "reviews", "{\"id\": 9}", NULL, "{\"owner\": \"ada\", \"page\": 1099511627776}",
     true},
    {OLDEST, "overflowActivities", "{\"page\": 1}", NULL, "{\"owner\": \"ada\"}", false},
    {OLDEST, "overflowActivities", "{\"page\": 2}", NULL,
     "{\"owner\": \"ada\", \"page\": 2, \"first\": 0.5}", true},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-02\"}", NULL,
     "{\"owner\": \"ada\", \"low\": 9.3e18, \"window\": \"2024-02\", \"part\": 0}", false},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-02\"}", NULL,
     "{\"owner\": \"ada\", \"window\": \"2024-02\", \"part\": 0, \"low\": 1}", true},
    {NEWEST, "overflowActivities", "{\"page\": 1}", NULL, "{\"owner\": -1, \"page\": 1}", false},
    /* A head without its incarnation. */
    {NEWEST, "users", "{\"_id\": \"ada\"}", "{\"$unset\": {\"spill.activities.epoch\": 1}}", NULL,
     false},
    {OLDEST, "users", "{\"_id\": \"ada\"}", "{\"$unset\": {\"spill.activities.epoch\": 1}}", NULL,
     false},
    {REFERENCE, "products", "{\"_id\": \"ada\"}",
     "{\"$unset\": {\"spill.reviewSummary.epoch\": 1}}", NULL, false},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-05\"}", "{\"$unset\": {\"spill.epoch\": 1}}",
     NULL, false},
    /* A page or a window without bookkeeping, or with another window in its field. */
    {OLDEST, "overflowActivities", "{\"page\": 2}", "{\"$unset\": {\"spill\": 1}}", NULL, false},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-05\"}", "{\"$unset\": {\"spill\": 1}}", NULL,
     false},
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-04\"}", "{\"$set\": {\"month\": \"\"}}", NULL,
     false},
    /* Values that a guard of the document itself does not match. */
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-05\"}", "{\"$unset\": {\"spill.total\": 1}}",
     NULL, false},
    {RANKED, "users", "{\"_id\": \"ada\"}", "{\"$unset\": {\"spill.activities.n\": 1}}", NULL,
     false},
    {RANKED, "users", "{\"_id\": \"ada\"}", "{\"$set\": {\"spill.activities.gaps.0\": 1005}}", NULL,
     false},
    {SUBSET, "reviews", "{\"id\": 7}",
     "{\"$set\": {\"spill.src\": {\"$numberLong\": \"2305843009213693951\"}}}", NULL, false},
    {RANKED, "users", "{\"_id\": \"ada\"}", "+activities", NULL, false},
    /* Far too many pages. */
    {BUCKET, "reviewBuckets", "{\"month\": \"2024-01\"}",
     "{\"$set\": {\"spill.pages\": {\"$numberLong\": \"2199023255552\"}}}", NULL, false},
    /* Pages of a layout that has none. */
    {CAPPED, "users", "{\"_id\": \"ada\"}", "{\"$set\": {\"spill.activities.first\": 2147483647}}",
     NULL, false},
    {CAPPED, "users", "{\"_id\": \"ada\"}", "{\"$set\": {\"spill.activities.pages\": 10}}", NULL,
     false},
};

/* After these the head itself has fewer elements. Only verify finds that they were more. */
static const known_t reduced[] = {
    {REFERENCE, "products", "{\"_id\": \"bob\"}",
     "{\"$unset\": {\"spill.reviewSummary.journal\": 1}}", NULL, false},
    {RANKED, "users", "{\"_id\": \"ada\"}", "{\"$unset\": {\"activities\": 1}}", NULL, false},
    {OLDEST, "users", "{\"_id\": \"ada\"}", "{\"$set\": {\"spill.activities.low\": 1}}", NULL,
     false},
};

static bson_t *parse(const char *json)
{
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    if (!document)
        fail_msg("%s: %s", json, error.message);
    return document;
}

static void store_under(stage_t *stage, const known_t *change, const bson_t *content)
{
    bson_t *id = parse(change->id), copy = BSON_INITIALIZER;
    BSON_APPEND_DOCUMENT(&copy, "_id", id);
    bson_copy_to_excluding_noinit(content, &copy, "_id", NULL);
    assert_true(insert_document(stage, change->collection, &copy));
    bson_destroy(&copy);
    bson_destroy(id);
}

/* Store the document with the key "low" for the first element of an array. */
static void store_with_key(stage_t *stage, const known_t *change, const bson_t *content)
{
    const char *array = change->update + 1;
    bson_t copy = BSON_INITIALIZER, elements;
    bson_iter_t field, element;
    assert_true(bson_iter_init(&field, content));
    while (bson_iter_next(&field)) {
        if (strcmp(bson_iter_key(&field), array) != 0) {
            bson_append_iter(&copy, NULL, 0, &field);
            continue;
        }
        assert_true(bson_iter_recurse(&field, &element));
        bson_append_array_begin(&copy, array, -1, &elements);
        for (const char *key = "low"; bson_iter_next(&element); key = NULL)
            bson_append_iter(&elements, key, -1, &element);
        bson_append_array_end(&copy, &elements);
    }
    assert_true(insert_document(stage, change->collection, &copy));
    bson_destroy(&copy);
}

static void apply_known(stage_t *stage, const known_t *change)
{
    bson_error_t error;
    const bson_t *found;
    bson_t *query = parse(change->query), *update = NULL;
    bool renamed = change->update && change->update[0] == '+';
    if (change->update && !renamed)
        update = parse(change->update);
    mongoc_collection_t *collection =
        mongoc_database_get_collection(stage->database, change->collection);
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, query, NULL, NULL);
    assert_true(mongoc_cursor_next(cursor, &found));
    bson_t *content = bson_copy(found);
    mongoc_cursor_destroy(cursor);
    bool done = true;
    if (update)
        done = mongoc_collection_update_one(collection, query, update, NULL, NULL, &error);
    else if (!change->copy)
        done = mongoc_collection_delete_one(collection, query, NULL, NULL, &error);
    if (!done)
        fail_msg("%s", error.message);
    if (renamed)
        store_with_key(stage, change, content);
    if (change->id)
        store_under(stage, change, content);
    mongoc_collection_destroy(collection);
    bson_destroy(content);
    bson_destroy(query);
    bson_destroy(update);
}

static void run_known(stage_t *stages, const known_t *changes, size_t count, bool must_fail)
{
    for (size_t i = 0; i < count; i++) {
        stage_t *stage = &stages[changes[i].layout];
        const exercise_opener_t opener = {open_store, stage, stage->name};
        exercise_result_t result;
        const char *what = changes[i].update ? changes[i].update : changes[i].id;
        snprintf(case_text, sizeof case_text, "known case %zu: %s %s: %s", i, changes[i].collection,
                 changes[i].query, what ? what : "deleted");
        alarm(SECONDS_MAX);
        for (int group = 0; group < EXERCISE_GROUPS; group++) {
            store_documents(stage, SIZE_MAX, NULL, NULL);
            apply_known(stage, &changes[i]);
            exercise_run_on(&opener, (exercise_group_t)group, &result);
            expect_rules(stage, exercise_layout_name(changes[i].layout), group, true, must_fail,
                         &result);
        }
        alarm(0);
    }
}

static void begin(stage_t *stage, const char *uri, int layout)
{
    spill_error_t error;
    exercise_result_t result;
    const exercise_opener_t opener = {open_store, stage, stage->name};
    mongoc_uri_t *parsed = mongoc_uri_new(uri);
    *stage = (stage_t){.pool = mongoc_client_pool_new(parsed)};
    snprintf(stage->name, sizeof stage->name, "%s", mongoc_uri_get_database(parsed));
    mongoc_uri_destroy(parsed);
    mongoc_client_pool_set_error_api(stage->pool, MONGOC_ERROR_API_VERSION_2);
    stage->client = mongoc_client_pool_pop(stage->pool);
    stage->database = mongoc_client_get_database(stage->client, stage->name);
    spill_store_t *store = open_store(stage, false, &error);
    assert_non_null(store);
    exercise_store_fill(store, layout);
    assert_int_equal(spill_store_close(store, &error), SPILL_OK);
    each_collection(stage, keep_documents);
    exercise_run_on(&opener, EXERCISE_READ, &result);
    assert_int_equal(result.findings, 0);
    assert_int_equal(result.corrupt, 0);
    stage->elements = result.elements;
    assert_true(stage->elements > 3);
}

static void end(stage_t *stage)
{
    for (size_t i = 0; i < stage->count; i++)
        bson_destroy(stage->documents[i].content);
    mongoc_database_destroy(stage->database);
    mongoc_client_pool_push(stage->pool, stage->client);
    mongoc_client_pool_destroy(stage->pool);
}

static void documents_of_any_values(void **state)
{
    (void)state;
    static stage_t stages[EXERCISE_LAYOUTS];
    char *uris[EXERCISE_LAYOUTS];
    const char *seed = getenv("SPILLWAY_SEED"), *cases = getenv("SPILLWAY_MALFORMED_CASES");
    const char *only = getenv("SPILLWAY_MALFORMED_CASE");
    uint64_t number = strtoull(seed ? seed : SEED, NULL, 10);
    malformed_seed(number);
    printf("seed %llu\n", (unsigned long long)number);
    for (int layout = 0; layout < EXERCISE_LAYOUTS; layout++) {
        uris[layout] = server_new_database(NULL);
        begin(&stages[layout], uris[layout], layout);
    }
    if (!only) {
        run_known(stages, known, sizeof known / sizeof *known, true);
        run_known(stages, reduced, sizeof reduced / sizeof *reduced, false);
    }
    long done = 0, limit = cases ? strtol(cases, NULL, 10) : CASES;
    for (; done < limit; done++) {
        int layout = (int)(done % EXERCISE_LAYOUTS);
        case_number = done;
        run_case(&stages[layout], exercise_layout_name(layout),
                 !only || strtol(only, NULL, 10) == done);
    }
    for (int layout = 0; layout < EXERCISE_LAYOUTS; layout++) {
        end(&stages[layout]);
        server_drop(uris[layout]);
        bson_free(uris[layout]);
    }
    printf("%ld cases\n", done);
    assert_true(done >= EXERCISE_LAYOUTS);
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(documents_of_any_values)};
    signal(SIGALRM, show_last_case);
    signal(SIGABRT, show_last_case);
    signal(SIGSEGV, show_last_case);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
