/*
 * The owner key. Two _id values have equal keys exactly if they are the same owner, in every store.
 * Keys sort by type, then by value if that is cheap. No key is a prefix of another.
 */
#ifndef SPILL_BSON_KEY_H
#define SPILL_BSON_KEY_H

#include "util/buffer.h"

#include <spillway/value.h>

/* Most bytes of an _id in BSON, and of its key. */
#define SPILL_OWNER_KEY_MAX 2048

/*
 * Append the owner's key to `key`, which is unchanged after an error: SPILL_INVALID for a type that
 * cannot be an _id (array, regular expression, undefined), for malformed bytes, and for an _id or a
 * key that is too long.
 */
spill_code_t spill_owner_key(const spill_value_t *owner, spill_buffer_t *key, spill_error_t *error);

/*
 * Append a key of the same form for a value of any type and length; `key` is unchanged after
 * SPILL_INVALID: malformed bytes. O(value).
 */
spill_code_t spill_value_key(const spill_value_t *value, spill_buffer_t *key, spill_error_t *error);

/* Can a value of this type be an _id? SPILL_INVALID names the type. */
spill_code_t spill_owner_check(const spill_value_t *owner, spill_error_t *error);

/*
 * Append an owner with this key to `storage` under an empty name. Of equal values (1, 1L, 1.0) it
 * may be any. False: it is not an owner key. O(key).
 */
bool spill_owner_from_key(const uint8_t *key, size_t key_bytes, bson_t *storage,
                          spill_value_t *owner);

/* Length of the owner key that starts at `data`, or 0 if there is no complete key. */
size_t spill_owner_key_length(const uint8_t *data, size_t size);

/* ---- the bytes of an owner key, for key.c and key_read.c ------------------------------------- */

/*
 *   key      ::= type payload           type: a byte below, never 0
 *
 *   payload of
 *   number   ::= 0x10 | 0x20 | 0x50     NaN, minus infinity, infinity
 *              | 0x40 be64              an integer of 64 bits, its sign bit flipped
 *              | 0x30 sign a b u        any other: u * 2^a * 5^b, u divisible by neither
 *                                       sign: a byte; a, b: zigzag;
 *                                       u: two varints of 64 bits, high and low
 *   string   ::= bytes 0x00 0x00        a 0x00 inside is 0x00 0xff; symbols and code likewise
 *   document ::= { type name 0x00 payload } 0x00
 *   array    ::= { type payload } 0x00
 *   binary   ::= varint subtype bytes   the varint counts the bytes
 *   date     ::= be64                   its sign bit flipped
 *   timestamp::= be64
 *   ObjectId ::= 12 bytes
 *   pointer  ::= string ObjectId
 *   regular expression, not of an _id itself ::= string string
 *   code with scope                       ::= string document
 *   any other type: nothing
 *
 * Each number has exactly one form (its factors are unique), so equal numbers of different types
 * have equal keys. Each form shows its own end, so no key is a prefix of another.
 */

/* The types of a key, in the order of BSON values. */
enum {
    SPILL_KEY_END = 0x00,
    SPILL_KEY_MINKEY = 0x08,
    SPILL_KEY_UNDEFINED = 0x10,
    SPILL_KEY_NULL = 0x18,
    SPILL_KEY_NUMBER = 0x20,
    SPILL_KEY_STRING = 0x28,
    SPILL_KEY_DOCUMENT = 0x30,
    SPILL_KEY_ARRAY = 0x38,
    SPILL_KEY_BINARY = 0x40,
    SPILL_KEY_OID = 0x48,
    SPILL_KEY_FALSE = 0x50,
    SPILL_KEY_TRUE = 0x51,
    SPILL_KEY_DATE = 0x58,
    SPILL_KEY_TIMESTAMP = 0x60,
    SPILL_KEY_REGEX = 0x68,
    SPILL_KEY_POINTER = 0x70,
    SPILL_KEY_CODE = 0x78,
    SPILL_KEY_CODE_WITH_SCOPE = 0x80,
    SPILL_KEY_DIGEST = 0xe0, /* of no value: the key of an id that is too long (element_fields.h) */
    SPILL_KEY_MAXKEY = 0xf0
};

/* The forms of a number. */
enum {
    SPILL_KEY_NAN = 0x10,
    SPILL_KEY_MINUS_INFINITY = 0x20,
    SPILL_KEY_FACTORS = 0x30,
    SPILL_KEY_INTEGER = 0x40,
    SPILL_KEY_PLUS_INFINITY = 0x50
};

/* Follows a 0x00 inside a string. */
enum { SPILL_KEY_ESCAPED_NUL = 0xff };

#endif
