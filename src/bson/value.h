/*
 * Values for the library itself, besides <spillway/value.h>: their bytes, order and paths, numbers,
 * and a check of JSON text.
 */
#ifndef SPILL_BSON_VALUE_H
#define SPILL_BSON_VALUE_H

#include <spillway/error.h>
#include <spillway/value.h>

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>

/* Documents with deeper nesting are refused, as by the document databases. */
#define SPILL_NESTING_MAX 100

/*
 * Documents from a store may have deeper nesting: a server's own limit is 200, and its answers have
 * further levels around elements and documents. The elements of an unmanaged array are inside a
 * head's fields.
 */
#define SPILL_ANSWER_NESTING_MAX 255

#define SPILL_OID_BYTES 12

/*
 * Size of the value of this type that starts at `data`; at most `available` bytes are read. False
 * if there is no such type or the value does not fit. It checks only lengths and terminators, not
 * the contents of documents. O(1), except for regular expressions.
 */
bool spill_value_measure(uint8_t type, const uint8_t *data, size_t available, uint32_t *size_bytes);

/*
 * Is it well-formed? Its type is known, its size is right, and so are the documents in it, nested
 * at most SPILL_NESTING_MAX deep. UTF-8 is not checked. O(size).
 */
bool spill_value_valid(const spill_value_t *value);

/* The same for a whole document. */
bool spill_document_valid(const bson_t *document);

/* The same for a document from a store, at most SPILL_ANSWER_NESTING_MAX deep. */
bool spill_answer_valid(const bson_t *document);

/*
 * Compare by MongoDB's sort order of BSON values: negative, 0 or positive. Types come first;
 * numbers of all types compare by value; symbols compare as strings. Both values must be
 * well-formed.
 */
int spill_value_compare(const spill_value_t *left, const spill_value_t *right);

/* Are they of one class of types, within which queries compare? All number types are one class. */
bool spill_value_same_class(const spill_value_t *left, const spill_value_t *right);

/*
 * The document or array at the iterator. False if it is neither; `inner` is empty then. `inner`
 * borrows from the iterator's document and needs no release. O(1).
 */
bool spill_inner_document(const bson_iter_t *iter, bson_t *inner);

/* The string in a top-level field; `otherwise` if there is no such field or it is no string. */
const char *spill_document_text(const bson_t *document, const char *name, const char *otherwise);

/* Is there a top-level field of this name that bson_iter_as_bool takes for true? */
bool spill_document_is_true(const bson_t *document, const char *name);

/* The last value in `storage`, appended under an empty key when the size was `before`. O(1). */
spill_value_t spill_value_appended(const bson_t *storage, uint32_t before);

/* Contents of values of known types. A string: characters and their length, without the NUL. */
double spill_value_double(const spill_value_t *value);
int32_t spill_value_int32(const spill_value_t *value);
int64_t spill_value_int64(const spill_value_t *value);
const char *spill_value_text(const spill_value_t *value, uint32_t *length_bytes);

/* A cursor over the fields of a document or an array, smaller than libbson's iterator. */
typedef struct spill_fields {
    const uint8_t *at;
    const uint8_t *end;
} spill_fields_t;

/* Start at the document, array or scope at `data`. Its size must be right, its content need not. */
spill_fields_t spill_fields_of(const uint8_t *data);

/* The next field; false at the end, or if the rest is malformed. `name` borrows. */
bool spill_fields_next(spill_fields_t *fields, const char **name, spill_value_t *value);

/*
 * Find the first name of a path in a document, or by index in an array; *rest is the path behind
 * that name. False if there is no such field, or `value` is neither. `found` may be `value`.
 */
bool spill_value_field(const spill_value_t *value, const char *path, const char **rest,
                       spill_value_t *found);

/*
 * Find the value at a path of names with '.' between them, through documents, and through arrays by
 * index; false if there is none. `value` must be well-formed; `found` borrows from it. O(size).
 */
bool spill_value_at(const spill_value_t *value, const char *path, spill_value_t *found);

/*
 * Add a value to a hash over a sequence of values, for logs and reports that compare arrays. Start
 * with 0. The hash depends on types, bytes and the order.
 */
void spill_value_add_hash(const spill_value_t *value, uint64_t *hash);

/* ---- numbers (number.c) ---------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 spill_uint128_t;

typedef enum spill_number_kind {
    SPILL_NUMBER_NAN,
    SPILL_NUMBER_MINUS_INFINITY,
    SPILL_NUMBER_FINITE,
    SPILL_NUMBER_PLUS_INFINITY
} spill_number_kind_t;

/*
 * A number by value, exactly: (-1)^negative * digits * 2^twos * 10^tens. `digits` has at most 113
 * bits. Zero has digits 0 and nothing else set. Integers and decimals have twos == 0, doubles tens
 * == 0.
 *
 * BSON has four number types (int32, int64, double, decimal128). 1, 1L, 1.0 and 1.00 are the same
 * number: in sort order, in $min and $max, and as the _id of an owner.
 */
typedef struct spill_number {
    spill_number_kind_t kind;
    bool negative;
    spill_uint128_t digits;
    int32_t twos;
    int32_t tens;
} spill_number_t;

bool spill_is_number(uint8_t type);

/* The number of a well-formed value of one of the four types. */
spill_number_t spill_number_of(const spill_value_t *value);

/*
 * The iterator's int32, int64 or double, rounded towards zero and limited to +-2^60, so that sums
 * do not overflow. NaN and values of other types are 0.
 */
int64_t spill_iter_int64(const bson_iter_t *iter);

/* If it is an integer of 64 bits, set *integer. */
bool spill_number_to_int64(const spill_number_t *number, int64_t *integer);

/* Compare exactly: negative, 0 or positive. NaN is below all numbers and equal to itself. */
int spill_number_compare(const spill_number_t *left, const spill_number_t *right);

/* Append a count as drivers do: an int32 while it fits. Append nothing if the name is empty. */
void spill_append_count(bson_t *document, const char *name, int64_t count);

/* ---- JSON (json.c) --------------------------------------------------------------------------- */

/* The deepest nesting: libbson's limit, less one level for the document around the text. */
#define SPILL_JSON_NESTING_MAX 97

typedef enum spill_json_kind {
    SPILL_JSON_DOCUMENT, /* an object; its first name does not begin with '$' */
    SPILL_JSON_SPECIAL,  /* an object that may stand for another type: {"$numberLong": ...} */
    SPILL_JSON_OTHER     /* an array, a string, a number, true, false, null */
} spill_json_kind_t;

/*
 * Write a document or a string as libbson does, if it has values of the usual types only. NULL:
 * leave it to libbson. Free the text with bson_free. (json_write.c)
 */
char *spill_json_write(const spill_value_t *value, bool canonical);

/*
 * Is the text one JSON value, with only white space around it? SPILL_PARSE names the offset of the
 * first wrong byte. Cost: one pass, no memory.
 *
 * This is a strict check (RFC 8259) before libbson reads the text. libbson's reader accepts only
 * documents, ignores text after the first one, wraps integers beyond 64 bits, and does not report
 * the position of an error.
 */
spill_code_t spill_json_check(const char *text, size_t size_bytes, spill_json_kind_t *kind,
                              spill_error_t *error);

/*
 * Make the error of a text that is JSON, and that libbson does not read: a $-notation has a wrong
 * value. SPILL_PARSE, with the offset and the text of the notation. Cost: one pass, and a read of
 * each notation; memory for the largest. (json_notation.c)
 */
spill_code_t spill_json_refuse(const char *text, size_t size_bytes, spill_error_t *error);

#endif
