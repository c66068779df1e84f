/*
 * A collection with a collation of its own cannot hold owners or pages. The server compares _ids by
 * the collation, so two owners may be equal. It also compares elements, so CUT may miss an edit.
 */
#ifndef SPILL_STORE_COLLATION_H
#define SPILL_STORE_COLLATION_H

#include <bson/bson.h>
#include <spillway/error.h>

/*
 * Return SPILL_REFUSED if `collection` has a collation other than "simple". `listing` is an array
 * of what the server lists for its collections.
 */
spill_code_t spill_collation_refuse(const bson_t *listing, const char *collection,
                                    spill_error_t *error);

#endif
