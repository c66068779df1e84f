/* The fixture of the contract tests: a store with one bound array and one owner. */
#ifndef TESTS_CONTRACT_FIXTURE_H
#define TESTS_CONTRACT_FIXTURE_H

#include "contract.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define INCARNATION 1000 /* of the first incarnation in all tests */

typedef struct fixture {
    const contract_kind_t *kind;
    spill_store_t *store;
    spill_definition_t definition;
    spill_binding_t binding;
    bson_t owner_storage;
    spill_value_t owner;
    spill_buffer_t key;
    spill_response_t response;
} fixture_t;

/* The order of the arrays that make_definition makes. */
extern spill_array_order_t contract_order;

/* Does make_definition put the head's fields into a sub-document, with paths for names? */
extern bool contract_paths;

/*
 * Make a definition with bounds that no test reaches and a window of 3 operations. "feed" has that
 * preset's names; another name is another array in the same heads.
 */
void make_definition(spill_definition_t *definition, const char *name, spill_keep_t keep);

/* Make one of preset "reviews-bucket". Its owners are windows. */
void make_bucket_definition(spill_definition_t *definition, const char *name);

/* Save the definition as a client does. */
void save_definition(spill_store_t *store, const spill_definition_t *definition);

void fixture_open(fixture_t *fixture, const contract_kind_t *kind, spill_keep_t keep);
/* Open with a path at which elements have their ids. */
void fixture_open_with_ids(fixture_t *fixture, const contract_kind_t *kind, spill_keep_t keep,
                           const char *id_field);
/* Open with any definition. */
void fixture_open_with(fixture_t *fixture, const contract_kind_t *kind,
                       const spill_definition_t *definition);
void fixture_reopen(fixture_t *fixture); /* no effect if the kind does not support it */
void fixture_close(fixture_t *fixture);

/* Switch to another owner. */
void fixture_owner(fixture_t *fixture, const char *name);

/* A request of the fixture's owner, with `incarnation` EPOCH and limits that allow all. */
spill_request_t make_request(const fixture_t *fixture, spill_request_kind_t kind, int64_t page);

/* An APPEND of these elements, which are borrowed. Does not make a head. */
spill_request_t make_append(const fixture_t *fixture, int64_t page, const spill_value_t *elements,
                            size_t count);

/* Call the store, which must not fail. The answer is in fixture->response. */
spill_outcome_t call(fixture_t *fixture, const spill_request_t *request);

#define assert_done(fixture, request) assert_int_equal(call(fixture, request), SPILL_DONE)
#define assert_refused(fixture, request)                                                           \
    assert_int_equal(call(fixture, request), SPILL_REFUSED_GUARD)

/* An int64 element; the number must live as long as the value is used. */
spill_value_t number_value(const int64_t *number);

/* An element of `size_bytes` (at least 5) in all: a string. Free `data` with bson_free. */
spill_value_t text_value(uint32_t size_bytes, char fill);

/* Append `count` numbers label, label + 1, ... to a document, which must take them. */
void append_numbers(fixture_t *fixture, int64_t page, int64_t label, size_t count);

/* Make a head without elements. */
void make_empty_head(fixture_t *fixture);

/* Drop the head of that incarnation, which has this number of pages; the pages are left over. */
void drop_head(fixture_t *fixture, int64_t incarnation, int64_t pages);

/* Create a head of a later incarnation (INCARNATION + 50) with the numbers label, label + 1, ... */
void begin_again(fixture_t *fixture, int64_t label, size_t count);

/*
 * Put elements [first, first + slots) of the head into page `page`, as a client does that spills:
 * from a READ of the head.
 */
spill_outcome_t put_from_head(fixture_t *fixture, int64_t page, int64_t slots);
/* Cut that page off the head. */
spill_outcome_t cut_from_head(fixture_t *fixture, int64_t page);
void spill_page(fixture_t *fixture, int64_t page, int64_t slots); /* both of these */

/*
 * Append the numbers 100, 101, ..., one more than `slots`, spill them to page 0 but for the last,
 * and drop the head: the page is left over.
 */
void leave_page(fixture_t *fixture, int64_t slots);

/*
 * A document in words, as READ shows it, to compare with what is expected. Numbers that are 0 are
 * left out:
 *   rev+2 first=3 gone=4,6 n=1 sealed closed pages=2 removed=1 low=3 total=9 intent=4@0 src+1 |
 *   3=103 5=105
 * rev and src count from `incarnation`, which is named where it is not EPOCH. An element is its
 * number if it is an int64, else its size in bytes as "#7". "absent" stands for no document. Along
 * the way it is checked that forward and backward reads agree with each other and with live and
 * live_bytes.
 */
char *describe(fixture_t *fixture, int64_t page); /* free with bson_free */
void assert_document(fixture_t *fixture, int64_t page, const char *expected);

/* Compare the document's operations: "id@ordinal:seq+count ...". */
void assert_ops(fixture_t *fixture, int64_t page, const char *expected);

/* Compare the head's other fields, as relaxed Extended JSON; NULL: none. */
void assert_fields(fixture_t *fixture, const char *expected);
/* The same for fields that were read; empty documents around the array do not count. */
void assert_fields_read(const fixture_t *fixture, const char *expected);

/* Check that the store's own records of the owner agree with each other. */
void assert_sound(fixture_t *fixture);

#endif
