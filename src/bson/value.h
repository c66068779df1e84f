/* Beyond <spillway/value.h>: what the library itself needs to know about values. */
#ifndef SPILL_BSON_VALUE_H
#define SPILL_BSON_VALUE_H

#include <spillway/value.h>

#include <stdbool.h>

/* Documents nested deeper are refused: databases of the family refuse them too. */
#define SPILL_NESTING_MAX 100

/*
 * What a store returns may be deeper: a server's own limit is 200, and answers wrap elements and
 * documents. A head's fields wrap the elements of an unmanaged array.
 */
#define SPILL_ANSWER_NESTING_MAX 255

#define SPILL_OID_BYTES 12

/*
 * Size of the value of this type that starts at `data`, of which `available` bytes may be read.
 * False when there is no such type or the value does not fit. Looks at lengths and terminators
 * only, not into documents. O(1), but for regular expressions.
 */
bool spill_value_measure(uint8_t type, const uint8_t *data, size_t available, uint32_t *size_bytes);

/*
 * Is it well-formed: a known type, exactly as many bytes as the type takes, and documents in it
 * likewise, at most SPILL_NESTING_MAX deep? Says nothing about UTF-8. O(size).
 */
bool spill_value_valid(const spill_value_t *value);

/* The same question about a whole document. */
bool spill_document_valid(const bson_t *document);

/* The same about a document from a store, at most SPILL_ANSWER_NESTING_MAX deep. */
bool spill_answer_valid(const bson_t *document);

/*
 * Negative, 0 or positive: the order of BSON values that MongoDB sorts by. Types come first,
 * numbers of all types compare by value, symbols are strings. Both must be well-formed.
 */
int spill_value_compare(const spill_value_t *left, const spill_value_t *right);

/* Are they of one class, as comparisons in queries ask: numbers of all types are, and so on? */
bool spill_value_same_class(const spill_value_t *left, const spill_value_t *right);

/* The value that was last appended to `storage`, under an empty key, at size `before`. O(1). */
spill_value_t spill_value_appended(const bson_t *storage, uint32_t before);

/* Contents of values of known types. Strings: characters and their length, without the NUL. */
double spill_value_double(const spill_value_t *value);
int32_t spill_value_int32(const spill_value_t *value);
int64_t spill_value_int64(const spill_value_t *value);
const char *spill_value_text(const spill_value_t *value, uint32_t *length_bytes);

/* The fields of a document or an array in turn: a cursor without libbson's large iterator. */
typedef struct spill_fields {
    const uint8_t *at;
    const uint8_t *end;
} spill_fields_t;

/* Over the document, array or scope at `data`, whose own size (not its content) must be right. */
spill_fields_t spill_fields_of(const uint8_t *data);

/* The next field; false at the end or where the rest is malformed. `name` borrows. */
bool spill_fields_next(spill_fields_t *fields, const char **name, spill_value_t *value);

/*
 * The field that the first name of a path is, in a document or by index in an array; *rest is the
 * path behind that name. False where there is none, or `value` is neither. `found` may be `value`.
 */
bool spill_value_field(const spill_value_t *value, const char *path, const char **rest,
                       spill_value_t *found);

/*
 * The value at a path of names with '.' between them, through documents, and through arrays by
 * index; false where there is none. Of a well-formed value. `found` borrows from it. O(size).
 */
bool spill_value_at(const spill_value_t *value, const char *path, spill_value_t *found);

#endif
