/*
 * The parts of the contract: each function adds its tests. A test's state is the contract_kind_t.
 */
#ifndef TESTS_CONTRACT_SUITE_H
#define TESTS_CONTRACT_SUITE_H

#include "fixture.h"

typedef struct suite {
    struct CMUnitTest tests[256];
    size_t count;
} suite_t;

void suite_add(suite_t *suite, const char *name, CMUnitTestFunction test);

#define SUITE_ADD(suite, test) suite_add(suite, #test, test)

void add_append_tests(suite_t *suite);       /* append.c: guards, room, operations, other fields */
void add_given_number_tests(suite_t *suite); /* given_numbers.c: elements with given numbers */
void add_combined_tests(suite_t *suite);     /* combined.c: several appends in one step */
void add_newest_tests(suite_t *suite);       /* newest.c: an array that keeps the newest */
void add_oldest_tests(suite_t *suite);       /* oldest.c: an array that keeps the oldest */
void add_referenced_tests(
    suite_t *suite);                /* referenced.c: one document per element (layout reference) */
void add_top_tests(suite_t *suite); /* top.c: the elements of a summary (layout subset) */
void add_capped_tests(suite_t *suite);    /* capped.c: elements that an append drops */
void add_top_n_tests(suite_t *suite);     /* top_n.c: the same with a top-N */
void add_session_tests(suite_t *suite);   /* sessions.c: operations of sessions; matches */
void add_unmanaged_tests(suite_t *suite); /* unmanaged.c: unmanaged arrays */
void add_full_tests(suite_t *suite);      /* full.c: unmanaged arrays in full documents */
void add_read_tests(suite_t *suite);      /* reads.c: runs, and the page of a number */
void add_id_tests(suite_t *suite);        /* ids.c: elements by id */
void add_set_tests(suite_t *suite);       /* sets.c: arrays that keep each id once */
void add_catalog_tests(suite_t *suite);   /* catalog.c: catalog, numbers, owners */
void add_owner_tests(suite_t *suite);     /* owners.c: owners with an _id of any type */
/* bucket.c: windows and statistics through the public API */
void add_bucket_tests(suite_t *suite);
void add_path_tests(suite_t *suite);   /* paths.c: arrays whose names look alike */
void add_layout_tests(suite_t *suite); /* layout.c: a layout that a test adds */
/* random.c: random requests, compared with the model store */
void add_random_tests(suite_t *suite);
void add_random_referenced_tests(
    suite_t *suite); /* random_referenced.c: the same with referenced elements */

#endif
