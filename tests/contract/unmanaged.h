/* Documents as programs write them that know nothing of Spillway. (unmanaged.c) */
#ifndef TESTS_CONTRACT_UNMANAGED_H
#define TESTS_CONTRACT_UNMANAGED_H

#include "fixture.h"

/* `other` is another array of the same heads: by its steps a head's other fields are written. */
void open_both(fixture_t *fixture, fixture_t *other, const contract_kind_t *kind);
void close_both(fixture_t *fixture, fixture_t *other);

/* An update of the other fields of other's owner, who is made where he is not there. */
void set_field(fixture_t *other, const bson_t *update);

/* The array of the fixture's owner: the numbers 100, 101, ..., `count` of them. */
void write_unmanaged(fixture_t *fixture, fixture_t *other, int64_t count);

spill_request_t make_adopt(const fixture_t *fixture);

/* label, label + 1, ..., numbered from 0. To be released. */
spill_run_t numbers_run(int64_t label, int64_t count);

#endif
