/*
 * Records: C structs that are stored as BSON documents or printed as JSON objects. A table of
 * fields describes each; one reader, one writer and one printer serve every table.
 *
 *     typedef struct job {
 *         char name[64];
 *         int64_t done;
 *     } job_t;
 *
 *     static const spill_field_t job_fields[] = {
 *         SPILL_FIELD(CHARS, job_t, name, "name"),
 *         SPILL_FIELD(INT64, job_t, done, "done", .most = SPILL_ELEMENTS_MAX),
 *     };
 *     static const spill_record_t job_record = SPILL_RECORD("job", job_t, job_fields);
 */
#ifndef SPILL_BSON_RECORD_H
#define SPILL_BSON_RECORD_H

#include <spillway/error.h>
#include <spillway/value.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/*
 * The type of a field: the member in the struct, then the value in a document. A member that
 * "borrows" is valid as long as the document that was read.
 */
typedef enum spill_field_type {
    SPILL_FIELD_CHARS,   /* char[]: a string */
    SPILL_FIELD_TEXT,    /* const char *: a string; borrows */
    SPILL_FIELD_COPY,    /* char *: a string; a copy, to be released with bson_free */
    SPILL_FIELD_JSON,    /* const char *: JSON text; for printing only */
    SPILL_FIELD_INT32,   /* int32_t */
    SPILL_FIELD_INT64,   /* int64_t, uint64_t, size_t: an int64; reads an int32, too */
    SPILL_FIELD_NUMBER,  /* the same; reads any number, for JSON that people edit */
    SPILL_FIELD_BOOL,    /* bool */
    SPILL_FIELD_DOUBLE,  /* double; reads any finite number */
    SPILL_FIELD_DATE,    /* int64_t: milliseconds since 1970, or SPILL_DATE_UNKNOWN for null */
    SPILL_FIELD_ENUM,    /* an enum: its name, a string */
    SPILL_FIELD_VALUE,   /* spill_value_t: any value, or only `bson_type`; borrows */
    SPILL_FIELD_POINTER, /* const spill_value_t *: the same; for writing only */
    SPILL_FIELD_OID,     /* bson_oid_t */
    SPILL_FIELD_BYTES,   /* spill_bytes_t: a binary; borrows */
    SPILL_FIELD_RECORD,  /* a struct `of` another table: a document */
    SPILL_FIELD_LIST,    /* `of` *, with a count at `count_offset`: an array; bson_free */
    SPILL_FIELD_TEXTS,   /* char **, with a count: an array of strings; for writing only */
    SPILL_FIELD_CUSTOM,  /* `print` prints the field; it is null in a document */
    SPILL_FIELD_FIELDS   /* a pointer to a struct `of` another table. Its fields are written at this
                            place, like fields of this record; for writing only */
} spill_field_type_t;

#define SPILL_DATE_UNKNOWN INT64_MAX

typedef struct spill_bytes {
    const uint8_t *data;
    uint32_t size_bytes;
} spill_bytes_t;

enum {
    /* A document may lack the field. The member is then unchanged. */
    SPILL_FIELD_OPTIONAL = 1,
    /* The same. The field is not written if it is 0, false, "", NULL or an empty list. */
    SPILL_FIELD_SPARSE = 2,
    /* Treat a value of another type or out of range like a missing one; a date is then unknown. */
    SPILL_FIELD_LENIENT = 4,
    /* If `when` is true, the field is required, else sparse. */
    SPILL_FIELD_REQUIRED_WHEN = 8,
    /* If `when` is false, do not write the field. It is read nevertheless. */
    SPILL_FIELD_OMIT_UNLESS = 16,
    /* If `when` is false, write null. Null is read like a missing field. */
    SPILL_FIELD_NULL_UNLESS = 32,
    /* Write a negative number as null. */
    SPILL_FIELD_NULL_NEGATIVE = 64,
    /* Print the string without the secrets of a connection string. */
    SPILL_FIELD_REDACTED = 128,
    /* Print '?' for each byte of a string that is not UTF-8. */
    SPILL_FIELD_REPAIRED = 256,
    /* Do not read the field. */
    SPILL_FIELD_UNREAD = 512
};

typedef struct spill_record spill_record_t;

typedef struct spill_field {
    const char *name;
    spill_field_type_t type;
    unsigned flags;
    size_t offset; /* of the member in the struct */
    size_t size_bytes;
    size_t count_offset; /* of the member with the number of items */
    int64_t least, most; /* of an integer; both 0: any */
    int digits;          /* of a double in JSON; 0: all 17 */
    bson_type_t bson_type;
    const spill_record_t *of;
    /* ENUM: the name of a value; NULL or "" if it has none. The lowest value is 0. */
    const char *(*name_of)(int value);
    int values; /* ENUM: the number of values */
    /* Does the record have the field? NULL: always. Fields without `when` are read first. */
    bool (*when)(const void *record);
    /* Print a CUSTOM field, or read a field of any type. NULL: the type decides. `root` is the
     * outermost record. */
    void (*print)(const void *record, const void *root, FILE *to);
    spill_code_t (*read)(void *record, const void *root, const bson_iter_t *iter,
                         spill_error_t *error);
} spill_field_t;

struct spill_record {
    const char *name;            /* in messages */
    const spill_field_t *fields; /* fields of one name (with different `when`) are adjacent */
    size_t count;                /* at most 64, if the record is read */
    size_t size_bytes;
    bool closed; /* refuse fields that the table does not have */
};

/* The last arguments are a field's name and more of its members: "seq", .least = -1 */
#define SPILL_FIELD(type_, struct_, member_, ...)                                                  \
    {                                                                                              \
        .type = SPILL_FIELD_##type_, .offset = offsetof(struct_, member_),                         \
        .size_bytes = sizeof((struct_ *)NULL)->member_ /* NOLINT(bugprone-sizeof-expression) */,   \
        .name = __VA_ARGS__                                                                        \
    }
/* The type and the name of a record, and the array of its fields. */
#define SPILL_RECORD(name_, struct_, ...)                                                          \
    {                                                                                              \
        .name = (name_), .size_bytes = sizeof(struct_), .fields = __VA_ARGS__,                     \
        .count = sizeof(__VA_ARGS__) / sizeof(__VA_ARGS__)[0]                                      \
    }

/*
 * Read a document into *record. Messages name the record and the field: "definition: field
 * 'bounds.threshold' is missing". SPILL_CORRUPT: a field is missing, of another type, or out of
 * range. SPILL_FORMAT: the record is closed, and the document has a field that the table does not
 * have. After an error *record is partly filled.
 */
spill_code_t spill_record_read(const spill_record_t *type, const bson_t *document, void *record,
                               spill_error_t *error);

/* Append a record's fields to an initialized document. */
void spill_record_write(const spill_record_t *type, const void *record, bson_t *document);

/*
 * Print a record as a JSON object, without spaces or a newline. Strings and values are Extended
 * JSON, relaxed or canonical. Invisible characters are printed as \uXXXX. A value with a string
 * that is not UTF-8 is printed as null. Returns the number of these values.
 */
int64_t spill_record_print(const spill_record_t *type, const void *record, bool canonical,
                           FILE *to);

/* For record.c and record_read.c: does the field belong to the record, by `when`? */
bool spill_field_belongs(const spill_field_t *field, const void *record);

#endif
