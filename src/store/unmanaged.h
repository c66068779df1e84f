/*
 * Unmanaged arrays: a program that does not know Spillway writes an array to the field that a
 * definition names. For stores that keep a head's other fields apart from its elements.
 */
#ifndef SPILL_STORE_UNMANAGED_H
#define SPILL_STORE_UNMANAGED_H

#include "store/listing.h"
#include "store/request.h"

#include <spillway/definition.h>
#include <spillway/error.h>

/*
 * Split a document: put the array's elements into `run` (empty or zeroed), oldest first and
 * numbered from 0, and return the other fields (bson_destroy). Return NULL if the field is missing,
 * not an array, or empty. O(document).
 */
bson_t *spill_unmanaged_split(const spill_definition_t *definition, const bson_t *document,
                              spill_run_t *run);

/* READ with `unmanaged` of an absent head whose document has these fields. */
void spill_unmanaged_read(const spill_request_t *read, const bson_t *fields,
                          spill_response_t *response);

/* Return SPILL_TOO_BIG for an ADOPT if the document is larger than request->limits allows. */
spill_code_t spill_unmanaged_allows(const spill_request_t *request, const bson_t *fields,
                                    spill_error_t *error);

/*
 * If `run`, filled by spill_unmanaged_split, begins with the elements of `first` and has more,
 * remove them from it and return true. O(elements).
 */
bool spill_unmanaged_cut(spill_run_t *run, const spill_run_t *first);

/*
 * Set elements, bytes, full and obstacle of an unmanaged array; false where spill_unmanaged_split
 * returns NULL. A document of at least `full_bytes` is full (0: none is). If a full document has
 * one element, it has no room for bookkeeping. O(document).
 */
bool spill_unmanaged_measure(const spill_definition_t *definition, const bson_t *document,
                             int64_t full_bytes, spill_oversized_t *measured);

/*
 * Return the document with an array of the `older` and then the `newer` elements, in the
 * definition's order (bson_destroy). O(document).
 */
bson_t *spill_unmanaged_join(const spill_definition_t *definition, const bson_t *document,
                             const spill_run_t *older, const spill_run_t *newer);

/*
 * May a head be made in a document with these fields? Return SPILL_REFUSED if its place has an
 * unmanaged array that is not empty, or another value.
 */
spill_code_t spill_unmanaged_check(const spill_definition_t *definition, const bson_t *fields,
                                   spill_error_t *error);

/* The error for an unmanaged array of `length` elements. */
spill_code_t spill_unmanaged_refuse(const spill_definition_t *definition, int64_t length,
                                    spill_error_t *error);

/* Append an array of that name: `older`, then `newer`, in the definition's order. */
void spill_unmanaged_append(const spill_definition_t *definition, const char *name,
                            const spill_run_t *older, const spill_run_t *newer, bson_t *to);

#endif
