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

/* What a field is in the struct, and in a document. */
typedef enum spill_field_type {
    SPILL_FIELD_CHARS,   /* char[]: a string */
    SPILL_FIELD_TEXT,    /* const char *: a string; read, it borrows from the document */
    SPILL_FIELD_COPY,    /* char *: a string; read, it is a copy (bson_free) */
    SPILL_FIELD_JSON,    /* const char *: JSON text; for printing only */
    SPILL_FIELD_INT32,   /* int32_t */
    SPILL_FIELD_INT64,   /* int64_t, uint64_t, size_t: an int64; an int32 is read, too */
    SPILL_FIELD_NUMBER,  /* the same; any number is read, for JSON that has passed an editor */
    SPILL_FIELD_BOOL,    /* bool */
    SPILL_FIELD_DOUBLE,  /* double; any finite number is read */
    SPILL_FIELD_DATE,    /* int64_t: milliseconds since 1970, or SPILL_DATE_UNKNOWN for null */
    SPILL_FIELD_ENUM,    /* an enum: its name, a string */
    SPILL_FIELD_VALUE,   /* spill_value_t: any value, or one of `bson_type`; read, it borrows */
    SPILL_FIELD_POINTER, /* const spill_value_t *: the same; for writing only */
    SPILL_FIELD_OID,     /* bson_oid_t */
    SPILL_FIELD_BYTES,   /* spill_bytes_t: a binary; read, it borrows */
    SPILL_FIELD_RECORD,  /* a struct `of` another table: a document */
    SPILL_FIELD_LIST,    /* `of` *, and their number at `count_offset`: an array; read, bson_free */
    SPILL_FIELD_TEXTS,   /* char **, and their number: an array of strings; for writing only */
    SPILL_FIELD_CUSTOM,  /* anything that `print` prints; it is null in a document */
    SPILL_FIELD_FIELDS   /* a pointer to a struct `of` another table, whose fields stand here, among
                            those of this record; for writing only */
} spill_field_type_t;

#define SPILL_DATE_UNKNOWN INT64_MAX

typedef struct spill_bytes {
    const uint8_t *data;
    uint32_t size_bytes;
} spill_bytes_t;

enum {
    /* It may be missing in a document; the struct keeps what it has. */
    SPILL_FIELD_OPTIONAL = 1,
    /* The same, and it is not written if it is 0, false, "", NULL or an empty list. */
    SPILL_FIELD_SPARSE = 2,
    /* A value of another type or out of range is as good as a missing one; a date is unknown then.
     */
    SPILL_FIELD_LENIENT = 4,
    /* `when` decides only whether the field is required. If it is not, it is sparse. */
    SPILL_FIELD_REQUIRED_WHEN = 8,
    /* `when` decides only about writing: otherwise the field is left out, and read if it is there,
     */
    SPILL_FIELD_OMIT_UNLESS = 16,
    /* or null, which is read as if it were missing. */
    SPILL_FIELD_NULL_UNLESS = 32,
    /* A negative number is printed and written as null. */
    SPILL_FIELD_NULL_NEGATIVE = 64,
    /* Printed without the secrets of a connection string, */
    SPILL_FIELD_REDACTED = 128,
    /* and with '?' for each byte of a string that is not UTF-8. */
    SPILL_FIELD_REPAIRED = 256,
    /* Never read, as types that are for writing only. */
    SPILL_FIELD_UNREAD = 512
};

typedef struct spill_record spill_record_t;

typedef struct spill_field {
    const char *name;
    spill_field_type_t type;
    unsigned flags;
    size_t offset; /* in the struct, as the next two */
    size_t size_bytes;
    size_t count_offset;
    int64_t least, most; /* of an integer; both 0: any */
    int digits;          /* of a double in JSON; 0: all 17 */
    bson_type_t bson_type;
    const spill_record_t *of;
    /* The name of an enum's value; NULL or "" for a value that has none. Values count from 0. */
    const char *(*name_of)(int value);
    int values; /* how many the enum has */
    /* The field belongs to this record; NULL: always. Fields without it are read first. */
    bool (*when)(const void *record);
    /* Print the value of a CUSTOM field, and read one of any type; NULL: by its type, if it has
     * one. `root` is the outermost record. */
    void (*print)(const void *record, const void *root, FILE *to);
    spill_code_t (*read)(void *record, const void *root, const bson_iter_t *iter,
                         spill_error_t *error);
} spill_field_t;

struct spill_record {
    const char *name;            /* in messages */
    const spill_field_t *fields; /* those of one name (with different `when`) side by side */
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
 * Read a document into *record, whose members keep what a document does not have. Messages name
 * the record and the field: "definition: field 'bounds.threshold' is missing". SPILL_CORRUPT: a
 * field is missing, of another type, or out of range; SPILL_FORMAT: the record is closed, and the
 * document has a field that the table does not have. After an error *record is partly filled.
 */
spill_code_t spill_record_read(const spill_record_t *type, const bson_t *document, void *record,
                               spill_error_t *error);

/* Append a record's fields to an initialized document. */
void spill_record_write(const spill_record_t *type, const void *record, bson_t *document);

/*
 * Print a record as a JSON object, without spaces or a newline. Strings and values are Extended
 * JSON, relaxed or canonical; invisible characters are written as \uXXXX. Returns the number of
 * values that JSON cannot express (a string in them is not UTF-8), which are null.
 */
int64_t spill_record_print(const spill_record_t *type, const void *record, bool canonical,
                           FILE *to);

/* For record.c and record_read.c: does the field belong to the record, by `when`? */
bool spill_field_belongs(const spill_field_t *field, const void *record);

#endif
