/*
 * One BSON value of any type: an element of an array, or the _id that names an owner.
 *
 * A spill_value_t is a view of a type and of the bytes that BSON stores after the field's name. For
 * a string these are its length as an int32, the characters and a NUL; for a document, the document
 * itself. A view owns nothing: it is valid as long as the bytes.
 */
#ifndef SPILLWAY_VALUE_H
#define SPILLWAY_VALUE_H

#include <spillway/error.h>

#include <bson/bson.h>
#include <stddef.h>
#include <stdint.h>

SPILL_BEGIN_DECLS

typedef struct spill_value {
    const uint8_t *data;
    uint32_t size_bytes;
    uint8_t type; /* a bson_type_t */
} spill_value_t;

/*
 * The functions below that make a value return an empty one ({0}) if an argument is NULL. No
 * function accepts that as an element, an owner or an id.
 */

/* The value at an iterator. It borrows from the iterator's document. O(1). */
SPILL_API spill_value_t spill_value_from_iter(const bson_iter_t *iter);

/* A whole document as one value. It borrows from the document. O(1). */
SPILL_API spill_value_t spill_value_from_document(const bson_t *document);

/*
 * Make a value of a string or a 64-bit integer. The bytes are appended to `storage`, an initialized
 * bson_t of the caller's. The next append to `storage` makes earlier values invalid.
 */
SPILL_API spill_value_t spill_value_from_utf8(bson_t *storage, const char *text);
SPILL_API spill_value_t spill_value_from_int64(bson_t *storage, int64_t number);

/*
 * Append the value to a document under a key. Returns false if the document would exceed 2 GiB, if
 * the value's bytes do not fit its type, or if an argument is NULL. It does not check the contents
 * of documents.
 */
SPILL_API bool spill_value_append(const spill_value_t *value, bson_t *document, const char *key);

/*
 * Have both values the same type and the same bytes? False if one is NULL. To compare owners, use
 * spill_value_same_owner.
 */
SPILL_API bool spill_value_equal(const spill_value_t *left, const spill_value_t *right);

/* Do both name one owner? Numbers compare by value, as in MongoDB's _id: 1 is the same as 1.0. */
SPILL_API bool spill_value_same_owner(const spill_value_t *left, const spill_value_t *right);

/*
 * The value as Extended JSON v2 (canonical or relaxed). Free the result with bson_free. NULL if the
 * bytes are not a well-formed BSON value, if a string in it is not UTF-8, or if `value` is NULL.
 * Cost: O(size).
 */
SPILL_API char *spill_value_to_json(const spill_value_t *value, bool canonical);

/*
 * Parse Extended JSON text as one value of any type. The text needs no NUL at its end, and may be
 * NULL if size_bytes is 0. The bytes are appended to `storage`, an initialized bson_t of the
 * caller's. The next append to `storage` makes earlier values invalid.
 *
 * SPILL_PARSE: the text is not one value with optional white space around it; or it has an integer
 * beyond 64 bits, more than 97 nested levels, or code or pointers in an array. The message has the
 * offset. Cost: like the parser of libbson.
 */
SPILL_API spill_code_t spill_value_from_json(const char *text, size_t size_bytes, bson_t *storage,
                                             spill_value_t *value, spill_error_t *error);

SPILL_END_DECLS

#endif
