/*
 * One BSON value of any type: an element of an array, or the _id that names an owner.
 *
 * A spill_value_t is a view: a type and the bytes that BSON stores after the type byte and the
 * field name (for a string: int32 length, characters, NUL; for a document: the document itself).
 * It owns nothing; it lives as long as the bytes it points to.
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

/* The value that an iterator stands on. Borrows from the iterator's document. O(1). */
SPILL_API spill_value_t spill_value_from_iter(const bson_iter_t *iter);

/* A whole document as one value. Borrows from the document. O(1). */
SPILL_API spill_value_t spill_value_from_document(const bson_t *document);

/*
 * A string or a 64-bit integer as a value. Appends it to `storage`, an initialized bson_t of the
 * caller's that owns the bytes; appending to `storage` again ends the life of values made before.
 */
SPILL_API spill_value_t spill_value_from_utf8(bson_t *storage, const char *text);
SPILL_API spill_value_t spill_value_from_int64(bson_t *storage, int64_t number);

/*
 * Append the value to a document under a key. False if the document would pass 2 GiB, if the
 * value's bytes do not fit its type (documents in it are not looked into), or if an argument is
 * NULL.
 */
SPILL_API bool spill_value_append(const spill_value_t *value, bson_t *document, const char *key);

/*
 * Same type and same bytes. (Owners compare by spill_value_same_owner, where 1 is 1.0.) False if
 * one is NULL.
 */
SPILL_API bool spill_value_equal(const spill_value_t *left, const spill_value_t *right);

/* Do both name one owner? Numbers compare by value, whatever their type, as MongoDB's _id does. */
SPILL_API bool spill_value_same_owner(const spill_value_t *left, const spill_value_t *right);

/*
 * The value as Extended JSON v2 (canonical or relaxed). Free the result with bson_free. NULL when
 * the bytes are not a well-formed BSON value, a string in it is not UTF-8, or `value` is NULL.
 * Cost: O(size).
 */
SPILL_API char *spill_value_to_json(const spill_value_t *value, bool canonical);

/*
 * Read Extended JSON text, which need not end with a NUL (and may be NULL if size_bytes is 0), as
 * one value of any type (a document, a number, a string, ...). Appends it to `storage`, an
 * initialized bson_t of the caller's that owns the bytes; appending again ends the life of values
 * made before. Strict: one value, with nothing but white space around it; SPILL_PARSE names the
 * offset of what does not belong. Refused, too: integers beyond 64 bits, nesting deeper than 97,
 * and code or pointers as elements of an array. Cost: about that of libbson's own parser.
 */
SPILL_API spill_code_t spill_value_from_json(const char *text, size_t size_bytes, bson_t *storage,
                                             spill_value_t *value, spill_error_t *error);

SPILL_END_DECLS

#endif
