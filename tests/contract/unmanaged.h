/* Documents that a program without Spillway writes. (unmanaged.c) */
#ifndef TESTS_CONTRACT_UNMANAGED_H
#define TESTS_CONTRACT_UNMANAGED_H

#include "fixture.h"

/* `other` is another array of the same heads: its steps write a head's other fields. */
void open_both(fixture_t *fixture, fixture_t *other, const contract_kind_t *kind);
void close_both(fixture_t *fixture, fixture_t *other);

/* Update the other fields of the current owner of `other`; create its head if absent. */
void set_field(fixture_t *other, const bson_t *update);

/* Write an unmanaged array for the fixture's owner: the numbers 100, 101, ..., `count` of them. */
void write_unmanaged(fixture_t *fixture, fixture_t *other, int64_t count);

spill_request_t make_adopt(const fixture_t *fixture);

/* Make a run of the numbers label, label + 1, ..., numbered from 0. Release it. */
spill_run_t numbers_run(int64_t label, int64_t count);

#endif
