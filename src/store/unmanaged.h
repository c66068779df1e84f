/*
 * Arrays that programs which know nothing of Spillway keep in a definition's place: a plain field
 * of the head's document. For the stores that keep a head's other fields apart from its elements.
 */
#ifndef SPILL_STORE_UNMANAGED_H
#define SPILL_STORE_UNMANAGED_H

#include "store/request.h"

#include <spillway/definition.h>
#include <spillway/error.h>

/*
 * Take the definition's array out of a document: its elements into `run` (empty or zeroed), oldest
 * first and numbered from 0; what is returned are the other fields (bson_destroy). NULL where the
 * field is missing, no array, or empty. O(document).
 */
bson_t *spill_unmanaged_split(const spill_definition_t *definition, const bson_t *document,
                              spill_run_t *run);

/* READ with `unmanaged` of a head that is not there, beside these fields of its document. */
void spill_unmanaged_read(const spill_request_t *read, const bson_t *fields,
                          spill_response_t *response);

/* SPILL_TOO_BIG: an ADOPT of an array in a document that is larger than the request allows. */
spill_code_t spill_unmanaged_allows(const spill_request_t *request, const bson_t *fields,
                                    spill_error_t *error);

/*
 * Does it begin with the elements of `first`, and have more? Then they are taken out of `run`, as
 * spill_unmanaged_split has filled it. O(elements).
 */
bool spill_unmanaged_cut(spill_run_t *run, const spill_run_t *first);

/* How many elements such an array has, and the size of it; false as above. O(document). */
bool spill_unmanaged_measure(const spill_definition_t *definition, const bson_t *document,
                             int64_t *length, int64_t *bytes);

/*
 * The document with an array of `older` and then `newer` elements, in the definition's order
 * (bson_destroy). O(document).
 */
bson_t *spill_unmanaged_join(const spill_definition_t *definition, const bson_t *document,
                             const spill_run_t *older, const spill_run_t *newer);

/*
 * May a head be made beside these fields? SPILL_REFUSED where others keep an array in the place of
 * its own that is not empty, or some other value.
 */
spill_code_t spill_unmanaged_check(const spill_definition_t *definition, const bson_t *fields,
                                   spill_error_t *error);

/* What is told of an array of others, of `length` elements. */
spill_code_t spill_unmanaged_refuse(const spill_definition_t *definition, int64_t length,
                                    spill_error_t *error);

/* Append as an array of that name, in the definition's order: `older`, then `newer`. */
void spill_unmanaged_append(const spill_definition_t *definition, const char *name,
                            const spill_run_t *older, const spill_run_t *newer, bson_t *to);

#endif
