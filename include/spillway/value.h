/**
 * \file
 * One BSON value of any type: an element of an array, or the _id that names an owner.
 */
#ifndef SPILLWAY_VALUE_H
#define SPILLWAY_VALUE_H

#include <spillway/error.h>

#include <bson/bson.h>
#include <stddef.h>
#include <stdint.h>

/**
 * \defgroup spillway_value Values
 * One BSON value of any type: an element of an array, or the _id that names an owner.
 *
 * A #spill_value_t is a view of a type and of the bytes that BSON stores after the field's name.
 * For a string these are its length as an int32, the characters and a NUL; for a document, the
 * document itself. A view owns nothing: it is valid as long as the bytes.
 *
 *     bson_oid_t id;
 *     bson_oid_init_from_string(&id, "65f0c0ffee0123456789abcd");
 *     spill_value_t owner = spill_value_from_oid(&id);               // borrows from id
 *     bson_t *like = BCON_NEW("by", "ada", "stars", BCON_INT32(5));
 *     spill_value_t element = spill_value_from_document(like);       // borrows from like
 *
 * Functions that make a value return an empty one ({0}) if an argument is NULL. No function accepts
 * that as an element, an owner or an id.
 * \{
 */

SPILL_BEGIN_DECLS

/** A view of one BSON value. It owns nothing. */
typedef struct spill_value {
    const uint8_t *data; /**< the bytes after the field's name; borrowed */
    uint32_t size_bytes; /**< their number */
    uint8_t type;        /**< a bson_type_t, such as BSON_TYPE_DOCUMENT */
} spill_value_t;

/* ---- make a value ---------------------------------------------------------------------------- */

/**
 * Make a value of the field at an iterator.
 *
 * \param iter  an iterator at a field
 * \return a view of the bytes of the iterator's document
 * \null `iter` NULL: an empty value
 * \errors none
 * \cost O(1)
 * \threads any number at once, if no thread changes the document
 */
SPILL_API spill_value_t spill_value_from_iter(const bson_iter_t *iter);

/**
 * Make a value of a whole document.
 *
 * \param document  the document
 * \return a view of the document's bytes, valid until the document changes or is destroyed
 * \null `document` NULL: an empty value
 * \errors none
 * \cost O(1)
 * \threads any number at once, if no thread changes the document
 */
SPILL_API spill_value_t spill_value_from_document(const bson_t *document);

/**
 * Make a value of an ObjectId, the usual _id of an owner.
 *
 * \param oid  the ObjectId
 * \return a view of the 12 bytes of *oid, valid as long as they are
 * \null `oid` NULL: an empty value
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API spill_value_t spill_value_from_oid(const bson_oid_t *oid);

/**
 * Make a value of a string. Use one storage for each value that you need at the same time:
 *
 *     bson_t owner_storage = BSON_INITIALIZER, id_storage = BSON_INITIALIZER;
 *     spill_value_t owner = spill_value_from_utf8(&owner_storage, "user-7");
 *     spill_value_t id = spill_value_from_utf8(&id_storage, "review-3");
 *
 * \param storage  an initialized document of the caller's; the bytes are appended to it
 * \param text     a zero-terminated text in UTF-8. It is not checked here: appends and edits refuse
 *                 other bytes with SPILL_INVALID.
 * \return a view of the bytes in `storage`. The next append to `storage` makes earlier values
 *         invalid.
 * \null either NULL: an empty value
 * \errors none; an empty value if `storage` would exceed 2 GiB
 * \cost O(length)
 * \threads one at a time for each `storage`
 */
SPILL_API spill_value_t spill_value_from_utf8(bson_t *storage, const char *text);

/**
 * Make a value of a 64-bit integer.
 *
 * \param storage  an initialized document of the caller's; the bytes are appended to it
 * \param number   any number, without a unit
 * \return a view of the bytes in `storage`. The next append to `storage` makes earlier values
 *         invalid.
 * \null `storage` NULL: an empty value
 * \errors none; an empty value if `storage` would exceed 2 GiB
 * \cost O(1)
 * \threads one at a time for each `storage`
 */
SPILL_API spill_value_t spill_value_from_int64(bson_t *storage, int64_t number);

/**
 * Make a value of libbson's bson_value_t, which holds a value of any type.
 *
 * \param storage  an initialized document of the caller's; the bytes are appended to it
 * \param value    the value
 * \return a view of the bytes in `storage`. The next append to `storage` makes earlier values
 *         invalid.
 * \null either NULL: an empty value
 * \errors none; an empty value if libbson cannot append the value
 * \cost O(size)
 * \threads one at a time for each `storage`
 */
SPILL_API spill_value_t spill_value_from_bson(bson_t *storage, const bson_value_t *value);

/**
 * Parse Extended JSON text as one value of any type.
 *
 * \param text        the text; it needs no NUL at its end
 * \param size_bytes  its length in bytes
 * \param storage     an initialized document of the caller's; the bytes are appended to it
 * \param value       becomes a view of the bytes in `storage`. The next append to `storage` makes
 *                    earlier values invalid.
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `text` may be NULL if size_bytes is 0; `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_PARSE: the text is not one value with optional white space around it; or it has an
 *         integer beyond 64 bits, more than 97 nested levels, or code or pointers in an array. The
 *         message has the offset in bytes.
 * \cost like the parser of libbson
 * \threads one at a time for each `storage`
 */
SPILL_API spill_code_t spill_value_from_json(const char *text, size_t size_bytes, bson_t *storage,
                                             spill_value_t *value, spill_error_t *error);

/* ---- read a value ---------------------------------------------------------------------------- */

/**
 * Look at a value as a document or an array.
 *
 * \param value     the value
 * \param document  becomes a view of the value's bytes; it needs no bson_destroy(), and is valid as
 *                  long as the bytes
 * \return true if the value is a document or an array; false: *document is unchanged
 * \null either NULL: false
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API bool spill_value_to_document(const spill_value_t *value, bson_t *document);

/**
 * Copy an ObjectId out of a value.
 *
 * \param value  the value
 * \param oid    becomes the ObjectId
 * \return true if the value is an ObjectId; false: *oid is unchanged
 * \null either NULL: false
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API bool spill_value_to_oid(const spill_value_t *value, bson_oid_t *oid);

/**
 * Copy an integer out of a value: an int32, an int64, or a double that is a whole number.
 *
 * \param value   the value
 * \param number  becomes the integer, without a unit
 * \return true if the value is such a number; false: *number is unchanged
 * \null either NULL: false
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API bool spill_value_to_int64(const spill_value_t *value, int64_t *number);

/**
 * Look at a value as a string.
 *
 * \param value         the value
 * \param length_bytes  becomes the number of bytes before the last NUL; the text may have more NULs
 * \return the text, a view of the value's bytes with a NUL at its end; NULL: it is no string
 * \null `value` NULL: NULL. `length_bytes` may be NULL.
 * \errors none
 * \cost O(1)
 * \threads any number at once
 */
SPILL_API const char *spill_value_to_utf8(const spill_value_t *value, size_t *length_bytes);

/**
 * Copy a value of any type into libbson's bson_value_t.
 *
 * \param value  the value
 * \param copy   becomes a copy, which the caller frees with bson_value_destroy()
 * \return true; false: the value's bytes do not fit its type, and *copy is unchanged
 * \null either NULL: false
 * \errors none
 * \cost O(size)
 * \threads any number at once
 */
SPILL_API bool spill_value_to_bson(const spill_value_t *value, bson_value_t *copy);

/**
 * Append the value to a document under a key. The contents of documents are not checked.
 *
 * \param value     the value
 * \param document  an initialized document
 * \param key       the field's name, zero-terminated
 * \return true; false: the document is unchanged, because it would exceed 2 GiB, or because the
 *         value's bytes do not fit its type
 * \null any NULL: false
 * \errors none
 * \cost O(size)
 * \threads one at a time for each `document`
 */
SPILL_API bool spill_value_append(const spill_value_t *value, bson_t *document, const char *key);

/**
 * Write the value as Extended JSON v2.
 *
 * \param value      the value
 * \param canonical  true: canonical, which keeps every type; false: relaxed, which is shorter
 * \return a zero-terminated text, which the caller frees with bson_free(); NULL: the bytes are not
 *         a well-formed BSON value, or a string in it is not UTF-8
 * \null `value` NULL: NULL
 * \errors none
 * \cost O(size)
 * \threads any number at once
 */
SPILL_API char *spill_value_to_json(const spill_value_t *value, bool canonical);

/* ---- compare --------------------------------------------------------------------------------- */

/**
 * Compare types and bytes. To compare owners, use spill_value_same_owner().
 *
 * \param left   a value
 * \param right  another value
 * \return true if both have the same type and the same bytes
 * \null either NULL: false
 * \errors none
 * \cost O(size)
 * \threads any number at once
 */
SPILL_API bool spill_value_equal(const spill_value_t *left, const spill_value_t *right);

/**
 * Compare as names of owners: numbers by value, as in MongoDB's _id. 1 is the same as 1.0.
 *
 * \param left   a value
 * \param right  another value
 * \return true if both name one owner
 * \null either NULL: false
 * \errors none
 * \cost O(size)
 * \threads any number at once
 */
SPILL_API bool spill_value_same_owner(const spill_value_t *left, const spill_value_t *right);

SPILL_END_DECLS

/** \} */

#endif
