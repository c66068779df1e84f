/*
 * The requests of work on a whole store, for each layout: copies, conversions, checks and repairs
 * of owners with a few elements. Many owners share each request, so the requests for an owner stay
 * below one.
 */
#include "definition/schema.h"
#include "mongo/counted_pair.h"
#include "support/server.h"
#include "tools/definition_jobs.h"

#include <spillway/bucket.h>
#include <spillway/spillway.h>
#include <spillway/verify.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* The elements of an owner lie in two months; a cap keeps the last of them. */
enum { OWNERS = 256, ELEMENTS = 4, KEPT = 3 };

typedef enum kind { NEWEST, OLDEST, REFERENCE, SUBSET, CAPPED, TOP_N, BUCKET, KINDS } kind_t;

static const char *const kind_names[KINDS] = {"outlier, keep newest",
                                              "outlier, keep oldest",
                                              "reference",
                                              "subset",
                                              "capped",
                                              "top-N",
                                              "bucket"};

static bool is_capped(kind_t kind)
{
    return kind == CAPPED || kind == TOP_N;
}

/* ---- arrays of each kind --------------------------------------------------------------------- */

static void make_definition(kind_t kind, const char *name, spill_definition_t *definition)
{
    static const spill_layout_t layouts[KINDS] = {
        [REFERENCE] = SPILL_LAYOUT_REFERENCE, [SUBSET] = SPILL_LAYOUT_SUBSET,
        [CAPPED] = SPILL_LAYOUT_CAPPED,       [TOP_N] = SPILL_LAYOUT_CAPPED,
        [BUCKET] = SPILL_LAYOUT_BUCKET,
    };
    spill_definition_t base;
    spill_error_t error;
    spill_definition_init(&base, "base");
    strcpy(base.time_field, "at");
    spill_keep_t oldest = SPILL_KEEP_OLDEST;
    counted_pair_must(spill_convert_definition(&base, name, layouts[kind],
                                               kind == OLDEST ? &oldest : NULL, definition, &error),
                      &error);
    strcpy(definition->time_field, "at");
    if (kind == SUBSET || kind == TOP_N)
        strcpy(definition->sort_field, "score");
    if (kind == REFERENCE || kind == SUBSET || kind == BUCKET) {
        strcpy(definition->value_field, "score");
        strcpy(definition->stats_average, "average");
    }
    if (is_capped(kind))
        definition->bounds.threshold = KEPT;
    definition->largest = definition->bounds;
}

static spill_array_t *define(spill_store_t *store, kind_t kind, const char *name)
{
    spill_definition_t definition;
    spill_array_t *array;
    spill_error_t error;
    make_definition(kind, name, &definition);
    counted_pair_must(spill_store_define(store, &definition, &error), &error);
    counted_pair_must(spill_array_open(store, name, &array, &error), &error);
    return array;
}

/* Fill an array on a store. Capped heads have dropped their first element. */
static void fill(spill_store_t *store, kind_t kind, const char *name)
{
    spill_array_t *array = define(store, kind, name);
    spill_error_t error;
    for (int i = 0; i < OWNERS; i++) {
        bson_t storage, documents[ELEMENTS];
        spill_value_t owner = counted_pair_owner(i, &storage), values[ELEMENTS];
        for (int k = 0; k < ELEMENTS; k++) {
            int64_t at = ((int64_t)k * 14 + 20) * 86400 * 1000;
            bson_init(&documents[k]);
            BCON_APPEND(&documents[k], "n", BCON_INT32(k), "score", BCON_INT32((k * 7 + i) % 5),
                        "at", BCON_DATE_TIME(at));
            values[k] = spill_value_from_document(&documents[k]);
        }
        if (kind == BUCKET)
            counted_pair_must(
                spill_bucket_append(array, &owner, values, ELEMENTS, NULL, NULL, NULL, &error),
                &error);
        else
            counted_pair_must(
                spill_array_append(array, &owner, values, ELEMENTS, NULL, NULL, &error), &error);
        for (int k = 0; k < ELEMENTS; k++)
            bson_destroy(&documents[k]);
        bson_destroy(&storage);
    }
    spill_array_close(array);
}

/* ---- counting -------------------------------------------------------------------------------- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

typedef struct counted {
    int64_t requests;
    double seconds;
} counted_t;

static counted_t begin(const counted_pair_t *pair)
{
    return (counted_t){counted_pair_requests(pair), now()};
}

static void check_cost(const counted_pair_t *pair, const counted_t *before, const char *what,
                       const char *from, const char *to)
{
    int64_t requests = counted_pair_requests(pair) - before->requests;
    print_message("%-10s %-20s %-20s %5lld requests, %.2f for an owner, %.0f us\n", what, from, to,
                  (long long)requests, (double)requests / OWNERS,
                  (now() - before->seconds) * 1e6 / OWNERS);
    if (!getenv("COST_ONLY"))
        assert_in_range(requests, 1, OWNERS);
}

/* ---- the work -------------------------------------------------------------------------------- */

static int64_t held(kind_t from, kind_t to)
{
    return (int64_t)OWNERS * (is_capped(from) || is_capped(to) ? KEPT : ELEMENTS);
}

/* Copy to the other database; the second copy only compares. */
static void copy_kind(const counted_pair_t *pair, kind_t kind)
{
    char name[8];
    snprintf(name, sizeof name, "k%d", kind);
    const spill_copy_options_t options = {0};
    spill_error_t error;
    for (int run = 0; run < 2; run++) {
        spill_copy_result_t result = {0};
        counted_t before = begin(pair);
        counted_pair_must(
            spill_copy(pair->stores[0], pair->stores[1], name, &options, &result, &error), &error);
        check_cost(pair, &before, run == 0 ? "copy" : "compare", kind_names[kind], "");
        assert_int_equal(result.owners, OWNERS);
        assert_int_equal(run == 0 ? result.elements : result.before, held(kind, kind));
        assert_int_equal(result.verified, held(kind, kind));
        assert_int_equal(result.differences, 0);
    }
    counted_pair_check(pair->stores[1], name, OWNERS);
}

static void convert_kind(const counted_pair_t *pair, kind_t from, kind_t to)
{
    char name[8], as[16];
    spill_definition_t definition;
    spill_error_t error;
    snprintf(name, sizeof name, "k%d", from);
    snprintf(as, sizeof as, "k%dto%d", from, to);
    make_definition(to, as, &definition);
    const spill_copy_options_t options = {.as = as, .definition = &definition};
    spill_store_t *store = pair->stores[0];
    for (int run = 0; run < 2; run++) {
        spill_copy_result_t result = {0};
        counted_t before = begin(pair);
        counted_pair_must(spill_convert(store, name, &options, &result, &error), &error);
        check_cost(pair, &before, run == 0 ? "convert" : "compare", kind_names[from],
                   kind_names[to]);
        assert_int_equal(result.owners, OWNERS);
        if (to != TOP_N) /* elements of a low rank are appended, and dropped */
            assert_int_equal(run == 0 ? result.elements : result.before, held(from, to));
        assert_int_equal(result.verified, held(from, to));
        assert_int_equal(result.differences, 0);
    }
    counted_pair_check(store, as, OWNERS);
}

static void inspect_kind(const counted_pair_t *pair, kind_t kind)
{
    char name[8];
    spill_array_t *array;
    spill_error_t error;
    spill_verify_summary_t verified;
    spill_repair_summary_t repaired;
    snprintf(name, sizeof name, "k%d", kind);
    counted_pair_must(spill_array_open(pair->stores[0], name, &array, &error), &error);
    counted_t before = begin(pair);
    counted_pair_must(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    check_cost(pair, &before, "verify", kind_names[kind], "");
    assert_int_equal(verified.findings, 0);
    before = begin(pair);
    counted_pair_must(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error),
                      &error);
    check_cost(pair, &before, "repair", kind_names[kind], "");
    assert_int_equal(repaired.findings, 0);
    assert_int_equal(repaired.left, 0);
    spill_array_close(array);
}

static void test_each_layout(void **state)
{
    const counted_pair_t *pair = *state;
    for (kind_t kind = 0; kind < KINDS; kind++) {
        char name[8];
        snprintf(name, sizeof name, "k%d", kind);
        fill(pair->stores[0], kind, name);
        inspect_kind(pair, kind);
        copy_kind(pair, kind);
    }
    for (kind_t kind = 0; kind < KINDS; kind++)
        if (kind != NEWEST) {
            convert_kind(pair, NEWEST, kind);
            convert_kind(pair, kind, NEWEST);
        }
}

/* Delete the document of an owner's element, as another program does. */
static void delete_element(const counted_pair_t *pair, const char *owner, int64_t number)
{
    spill_definition_t definition;
    mongoc_database_t *database;
    bson_error_t cause;
    make_definition(REFERENCE, "apart", &definition);
    mongoc_client_t *client = server_client(pair->uris[0], &database);
    mongoc_collection_t *pages =
        mongoc_database_get_collection(database, definition.page_collection);
    bson_t *filter =
               BCON_NEW("_id", "{", "owner", BCON_UTF8(owner), "page", BCON_INT64(number), "}"),
           reply;
    assert_true(mongoc_collection_delete_one(pages, filter, NULL, &reply, &cause));
    bson_iter_t iter;
    assert_true(bson_iter_init_find(&iter, &reply, "deletedCount"));
    assert_int_equal(bson_iter_as_int64(&iter), 1);
    bson_destroy(&reply);
    bson_destroy(filter);
    mongoc_collection_destroy(pages);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
}

enum { LOSER = 100 };

typedef struct found {
    int count, others;
} found_t;

static void note_finding(void *context, const spill_finding_t *finding)
{
    found_t *found = context;
    bson_t storage;
    spill_value_t owner = counted_pair_owner(LOSER, &storage);
    found->count++;
    found->others += !spill_value_equal(&owner, finding->owner);
    bson_destroy(&storage);
}

/* What is fetched ahead for many owners is inspected as what is read for one. */
static void test_lost_element(void **state)
{
    const counted_pair_t *pair = *state;
    spill_array_t *array;
    spill_error_t error;
    spill_repair_summary_t repaired;
    fill(pair->stores[0], REFERENCE, "apart");
    delete_element(pair, "o0100", 2);
    counted_pair_must(spill_array_open(pair->stores[0], "apart", &array, &error), &error);
    found_t found = {0};
    counted_pair_must(spill_array_verify(array, NULL, note_finding, &found, NULL, &error), &error);
    assert_in_range(found.count, 1, 5);
    assert_int_equal(found.others, 0);
    found = (found_t){0};
    counted_pair_must(
        spill_array_repair(array, NULL, false, note_finding, &found, &repaired, &error), &error);
    assert_in_range(repaired.left, 1, 5); /* a lost element cannot be repaired */
    assert_int_equal(repaired.left + repaired.findings, found.count);
    assert_int_equal(found.others, 0);
    spill_array_close(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lost_element, counted_pair_open, counted_pair_close),
        cmocka_unit_test_setup_teardown(test_each_layout, counted_pair_open, counted_pair_close),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
