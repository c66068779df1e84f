/* The parts of the contract: each adds its tests. A test's state is the contract_kind_t. */
#ifndef TESTS_CONTRACT_SUITE_H
#define TESTS_CONTRACT_SUITE_H

#include "fixture.h"

typedef struct suite {
    struct CMUnitTest tests[192];
    size_t count;
} suite_t;

void suite_add(suite_t *suite, const char *name, CMUnitTestFunction test);

#define SUITE_ADD(suite, test) suite_add(suite, #test, test)

void add_append_tests(suite_t *suite);   /* append.c: guards, room, operations, other fields */
void add_combined_tests(suite_t *suite); /* combined.c: several appends in one step */
void add_newest_tests(suite_t *suite);   /* newest.c: the life of an array, keep newest */
void add_oldest_tests(suite_t *suite);   /* oldest.c: the same, keep oldest */
void add_referenced_tests(
    suite_t *suite);                /* referenced.c: each element a document (layout reference) */
void add_top_tests(suite_t *suite); /* top.c: the elements of a summary (layout subset) */
void add_capped_tests(suite_t *suite);    /* capped.c: what an append drops */
void add_top_n_tests(suite_t *suite);     /* top_n.c: the same, where the best are kept */
void add_unmanaged_tests(suite_t *suite); /* unmanaged.c: arrays of other programs */
void add_full_tests(suite_t *suite);      /* full.c: ... in documents that are full */
void add_read_tests(suite_t *suite);      /* reads.c: runs, the page that holds a number */
void add_id_tests(suite_t *suite);        /* ids.c: elements by their ids */
void add_catalog_tests(suite_t *suite);   /* catalog.c: catalog, numbers, owners */
void add_owner_tests(suite_t *suite);     /* owners.c: owners whose _id is of any type */
void add_bucket_tests(suite_t *suite);    /* bucket.c: windows and statistics, by the public API */
void add_layout_tests(suite_t *suite);    /* layout.c: a layout that a test adds */
void add_random_tests(suite_t *suite);    /* random.c: against the model store, step by step */
void add_random_referenced_tests(
    suite_t *suite); /* random_referenced.c: the same, elements apart */

#endif
