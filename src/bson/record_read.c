/* Records from BSON documents. */
#include "bson/record.h"
#include "bson/value.h"
#include "util/buffer.h"
#include "util/error.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A field on the way from the outermost record to the one that is read now. */
typedef struct place {
    const struct place *outer; /* NULL: the outermost record */
    const char *name;
    int64_t index; /* of an item of a list; -1: not an item */
} place_t;

typedef struct reader {
    const char *record_name;
    const void *root;
    spill_error_t *error;
} reader_t;

/* Append "bounds.threshold" or "rows[3].length". */
static void append_path(spill_buffer_t *path, const place_t *place)
{
    char index[32];
    if (!place)
        return;
    append_path(path, place->outer);
    if (place->index >= 0) {
        snprintf(index, sizeof index, "[%" PRId64 "]", place->index);
        spill_buffer_append(path, index, strlen(index));
        return;
    }
    if (path->size > 0)
        spill_buffer_append_byte(path, '.');
    spill_buffer_append(path, place->name, strlen(place->name));
}

static spill_code_t fail_at(const reader_t *reader, const place_t *place, spill_code_t code,
                            const char *problem)
{
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t path = SPILL_BUFFER_INIT;
    append_path(&path, place);
    spill_buffer_append_byte(&path, '\0');
    return spill_fail(reader->error, code, "%s: field '%s' %s", reader->record_name,
                      (const char *)path.data, problem);
}

/* ---- values ---------------------------------------------------------------------------------- */

static void *member_of(const spill_field_t *field, void *record)
{
    return (char *)record + field->offset;
}

static void set_integer(const spill_field_t *field, void *record, int64_t number)
{
    int32_t narrow = (int32_t)number;
    if (field->size_bytes == sizeof(bool))
        *(bool *)member_of(field, record) = number != 0;
    else if (field->size_bytes == sizeof narrow)
        memcpy(member_of(field, record), &narrow, sizeof narrow);
    else
        memcpy(member_of(field, record), &number, sizeof number);
}

/* The functions below return NULL, or what is wrong with the value. */
static const char *read_text(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    uint32_t length;
    if (!BSON_ITER_HOLDS_UTF8(iter))
        return "is not a string";
    const char *text = bson_iter_utf8(iter, &length);
    if (strlen(text) != length)
        return "contains a NUL";
    if (field->type == SPILL_FIELD_CHARS && length >= field->size_bytes)
        return "is too long";
    if (field->type == SPILL_FIELD_CHARS) {
        memcpy(member_of(field, record), text, length + 1);
    } else if (field->type == SPILL_FIELD_COPY) {
        char **copy = member_of(field, record);
        bson_free(*copy);
        *copy = bson_strdup(text);
    } else {
        memcpy(member_of(field, record), &text, sizeof text);
    }
    return NULL;
}

/* The int64 of any number that has one, rounded towards zero. */
static bool as_integer(const bson_iter_t *iter, int64_t *number)
{
    if (BSON_ITER_HOLDS_INT(iter)) {
        *number = bson_iter_as_int64(iter);
        return true;
    }
    double real = BSON_ITER_HOLDS_DOUBLE(iter) ? bson_iter_double(iter) : NAN;
    bool fits = fabs(real) < 9.2e18; /* not a NaN */
    *number = fits ? (int64_t)real : 0;
    return fits;
}

static const char *read_integer(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    int64_t number;
    if (field->type == SPILL_FIELD_INT32 && !BSON_ITER_HOLDS_INT32(iter))
        return "is not an int32";
    if (field->type == SPILL_FIELD_INT64 && !BSON_ITER_HOLDS_INT(iter))
        return "is not an integer";
    if (field->type == SPILL_FIELD_NUMBER && !BSON_ITER_HOLDS_INT(iter) &&
        !BSON_ITER_HOLDS_DOUBLE(iter))
        return "is not a number";
    bool limited = field->least != 0 || field->most != 0;
    if (!as_integer(iter, &number) || (limited && (number < field->least || number > field->most)))
        return "is out of range";
    set_integer(field, record, number);
    return NULL;
}

static const char *read_bool(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    if (!BSON_ITER_HOLDS_BOOL(iter))
        return "must be true or false";
    *(bool *)member_of(field, record) = bson_iter_bool(iter);
    return NULL;
}

static const char *read_double(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    if (!BSON_ITER_HOLDS_DOUBLE(iter) && !BSON_ITER_HOLDS_INT(iter))
        return "is not a number";
    double number = bson_iter_as_double(iter);
    if (!isfinite(number))
        return "is not finite";
    *(double *)member_of(field, record) = number;
    return NULL;
}

static const char *read_date(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    int64_t time_ms = SPILL_DATE_UNKNOWN;
    if (!BSON_ITER_HOLDS_NULL(iter) && !BSON_ITER_HOLDS_DATE_TIME(iter))
        return "is neither a date nor null";
    if (BSON_ITER_HOLDS_DATE_TIME(iter))
        time_ms = bson_iter_date_time(iter);
    bool limited = field->least != 0 || field->most != 0;
    if (limited && time_ms != SPILL_DATE_UNKNOWN &&
        (time_ms < field->least || time_ms > field->most))
        return "is out of range";
    set_integer(field, record, time_ms);
    return NULL;
}

static const char *read_value(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    if (field->bson_type != BSON_TYPE_EOD && bson_iter_type(iter) != field->bson_type)
        return field->bson_type == BSON_TYPE_ARRAY      ? "is not an array"
               : field->bson_type == BSON_TYPE_DOCUMENT ? "is not a document"
                                                        : "is of another type";
    *(spill_value_t *)member_of(field, record) = spill_value_from_iter(iter);
    return NULL;
}

static const char *read_oid(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    if (!BSON_ITER_HOLDS_OID(iter))
        return "is not an ObjectId";
    bson_oid_copy(bson_iter_oid(iter), member_of(field, record));
    return NULL;
}

static const char *read_bytes(const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    spill_bytes_t *bytes = member_of(field, record);
    if (!BSON_ITER_HOLDS_BINARY(iter))
        return "is not a binary";
    bson_iter_binary(iter, NULL, &bytes->size_bytes, &bytes->data);
    return NULL;
}

/* ---- enums ----------------------------------------------------------------------------------- */

static spill_code_t read_enum(const reader_t *reader, const place_t *place,
                              const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    const char *text = NULL;
    const spill_field_t as_text = {.type = SPILL_FIELD_TEXT};
    const char *problem = read_text(&as_text, iter, &text);
    if (problem)
        return fail_at(reader, place, SPILL_CORRUPT, problem);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t names = SPILL_BUFFER_INIT;
    static const char before[] = "is not one of: ";
    spill_buffer_append(&names, before, sizeof before - 1);
    for (int value = 0, listed = 0; value < field->values; value++) {
        const char *name = field->name_of(value);
        if (!name || name[0] == '\0')
            continue;
        if (strcmp(name, text) == 0) {
            set_integer(field, record, value);
            return SPILL_OK;
        }
        spill_buffer_append(&names, ", ", listed++ > 0 ? 2 : 0);
        spill_buffer_append(&names, name, strlen(name));
    }
    spill_buffer_append_byte(&names, '\0');
    return fail_at(reader, place, SPILL_CORRUPT, (const char *)names.data);
}

/* ---- records in records ---------------------------------------------------------------------- */

static spill_code_t read_record(const reader_t *reader, const place_t *place,
                                const spill_record_t *type, const bson_t *document, void *record);

static spill_code_t read_inner(const reader_t *reader, const place_t *place,
                               const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    bson_t inner;
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !spill_inner_document(iter, &inner))
        return fail_at(reader, place, SPILL_CORRUPT, "is not a document");
    return read_record(reader, place, field->of, &inner, member_of(field, record));
}

/* Count each item before it is read, so that the caller can release what was read of it. */
static spill_code_t read_list(const reader_t *reader, const place_t *place,
                              const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    bson_t list, inner;
    bson_iter_t item;
    if (!BSON_ITER_HOLDS_ARRAY(iter) || !spill_inner_document(iter, &list) ||
        !bson_iter_init(&item, &list))
        return fail_at(reader, place, SPILL_CORRUPT, "is not an array");
    char *items = bson_malloc0((bson_count_keys(&list) + 1) * field->of->size_bytes);
    size_t *count = (void *)((char *)record + field->count_offset);
    memcpy(member_of(field, record), &items, sizeof items);
    for (*count = 0; bson_iter_next(&item);) {
        const place_t inside = {.outer = place, .index = (int64_t)*count};
        if (!BSON_ITER_HOLDS_DOCUMENT(&item) || !spill_inner_document(&item, &inner))
            return fail_at(reader, &inside, SPILL_CORRUPT, "is not a document");
        void *at = items + (*count)++ * field->of->size_bytes;
        SPILL_TRY(read_record(reader, &inside, field->of, &inner, at));
    }
    return SPILL_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static spill_code_t read_field(const reader_t *reader, const place_t *place,
                               const spill_field_t *field, const bson_iter_t *iter, void *record)
{
    const char *problem = NULL;
    if (field->read)
        return field->read(record, reader->root, iter, reader->error);
    switch (field->type) {
    case SPILL_FIELD_CHARS:
    case SPILL_FIELD_TEXT:
    case SPILL_FIELD_COPY:
        problem = read_text(field, iter, record);
        break;
    case SPILL_FIELD_INT32:
    case SPILL_FIELD_INT64:
    case SPILL_FIELD_NUMBER:
        problem = read_integer(field, iter, record);
        break;
    case SPILL_FIELD_BOOL:
        problem = read_bool(field, iter, record);
        break;
    case SPILL_FIELD_DOUBLE:
        problem = read_double(field, iter, record);
        break;
    case SPILL_FIELD_DATE:
        problem = read_date(field, iter, record);
        break;
    case SPILL_FIELD_VALUE:
        problem = read_value(field, iter, record);
        break;
    case SPILL_FIELD_OID:
        problem = read_oid(field, iter, record);
        break;
    case SPILL_FIELD_BYTES:
        problem = read_bytes(field, iter, record);
        break;
    case SPILL_FIELD_ENUM:
        return read_enum(reader, place, field, iter, record);
    case SPILL_FIELD_RECORD:
        return read_inner(reader, place, field, iter, record);
    case SPILL_FIELD_LIST:
        return read_list(reader, place, field, iter, record);
    case SPILL_FIELD_JSON:
    case SPILL_FIELD_POINTER:
    case SPILL_FIELD_TEXTS:
    case SPILL_FIELD_CUSTOM:
    case SPILL_FIELD_FIELDS:
        break;
    }
    return problem ? fail_at(reader, place, SPILL_CORRUPT, problem) : SPILL_OK;
}

static bool is_read(const spill_field_t *field)
{
    bool written_only = field->type == SPILL_FIELD_JSON || field->type == SPILL_FIELD_POINTER ||
                        field->type == SPILL_FIELD_TEXTS || field->type == SPILL_FIELD_CUSTOM ||
                        field->type == SPILL_FIELD_FIELDS;
    return !(field->flags & SPILL_FIELD_UNREAD) && (field->read || !written_only);
}

static bool is_required(const spill_field_t *field, const void *record)
{
    if (field->flags &
        (SPILL_FIELD_OPTIONAL | SPILL_FIELD_SPARSE | SPILL_FIELD_LENIENT | SPILL_FIELD_OMIT_UNLESS))
        return false;
    return !(field->flags & SPILL_FIELD_REQUIRED_WHEN) || !field->when || field->when(record);
}

/* ---- from names to fields -------------------------------------------------------------------- */

enum { FIELDS_MAX = 64 };

/* Where a document has a field of the table; `offset` 0: nowhere. */
typedef struct position {
    uint32_t offset;
    uint32_t name_length;
} position_t;

/* The index of the first field with this name, or the table's count. The search begins at `next`,
 * because documents usually have the order of the table. */
static size_t index_of(const spill_record_t *type, const char *name, size_t next)
{
    for (size_t i = next; i < type->count; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return i;
    for (size_t i = 0; i < next; i++)
        if (strcmp(type->fields[i].name, name) == 0)
            return i;
    return type->count;
}

/*
 * Find the fields of the table in one pass over the document. If a name is there twice, the first
 * counts. A closed record refuses other fields: a later version's field may change the meaning of
 * others.
 */
static spill_code_t find_fields(const reader_t *reader, const place_t *outer,
                                const spill_record_t *type, const bson_t *document,
                                position_t *positions)
{
    bson_iter_t iter;
    size_t next = 0;
    assert(type->count <= FIELDS_MAX);
    memset(positions, 0, type->count * sizeof *positions);
    if (!bson_iter_init(&iter, document))
        return type->closed ? spill_fail(reader->error, SPILL_CORRUPT, "%s: not a document",
                                         reader->record_name)
                            : SPILL_OK;
    while (bson_iter_next(&iter)) {
        const place_t place = {.outer = outer, .name = bson_iter_key(&iter), .index = -1};
        const position_t here = {bson_iter_offset(&iter), bson_iter_key_len(&iter)};
        size_t i = index_of(type, place.name, next);
        if (i == type->count && type->closed)
            return fail_at(reader, &place, SPILL_FORMAT, "is not known to this version");
        for (; i < type->count && strcmp(type->fields[i].name, place.name) == 0; next = ++i)
            if (positions[i].offset == 0)
                positions[i] = here;
    }
    return SPILL_OK;
}

/* Refuse the fields of a document that do not belong to the record, which has been read. */
static spill_code_t refuse_foreign(const reader_t *reader, const place_t *outer,
                                   const spill_record_t *type, const position_t *positions,
                                   const void *record)
{
    for (size_t i = 0; i < type->count; i++) {
        const char *name = type->fields[i].name;
        const place_t place = {.outer = outer, .name = name, .index = -1};
        bool belongs = positions[i].offset == 0;
        size_t same = i;
        for (; same < type->count && strcmp(type->fields[same].name, name) == 0; same++)
            belongs = belongs || spill_field_belongs(&type->fields[same], record);
        if (!belongs)
            return fail_at(reader, &place, SPILL_CORRUPT, "does not belong there");
        i = same - 1;
    }
    return SPILL_OK;
}

static spill_code_t read_or_miss(const reader_t *reader, const place_t *outer,
                                 const spill_field_t *field, const bson_t *document,
                                 position_t position, void *record)
{
    const place_t place = {.outer = outer, .name = field->name, .index = -1};
    bson_iter_t iter;
    if (!is_read(field))
        return SPILL_OK;
    if (field->type == SPILL_FIELD_DATE && (field->flags & SPILL_FIELD_LENIENT))
        set_integer(field, record, SPILL_DATE_UNKNOWN);
    if (position.offset == 0)
        return is_required(field, record) ? fail_at(reader, &place, SPILL_CORRUPT, "is missing")
                                          : SPILL_OK;
    if (!bson_iter_init_from_data_at_offset(&iter, bson_get_data(document), document->len,
                                            position.offset, position.name_length))
        return fail_at(reader, &place, SPILL_CORRUPT, "cannot be read");
    if ((field->flags & SPILL_FIELD_NULL_UNLESS) && BSON_ITER_HOLDS_NULL(&iter))
        return SPILL_OK;
    spill_code_t code = read_field(reader, &place, field, &iter, record);
    return (field->flags & SPILL_FIELD_LENIENT) ? SPILL_OK : code;
}

/* Read the fields without a condition first: conditions depend on their values. */
static spill_code_t read_record(const reader_t *reader, const place_t *place,
                                const spill_record_t *type, const bson_t *document, void *record)
{
    position_t positions[FIELDS_MAX];
    SPILL_TRY(find_fields(reader, place, type, document, positions));
    for (int conditional = 0; conditional < 2; conditional++)
        for (size_t i = 0; i < type->count; i++) {
            const spill_field_t *field = &type->fields[i];
            bool now =
                conditional ? field->when && spill_field_belongs(field, record) : !field->when;
            if (now)
                SPILL_TRY(read_or_miss(reader, place, field, document, positions[i], record));
        }
    return type->closed ? refuse_foreign(reader, place, type, positions, record) : SPILL_OK;
}

spill_code_t spill_record_read(const spill_record_t *type, const bson_t *document, void *record,
                               spill_error_t *error)
{
    const reader_t reader = {.record_name = type->name, .root = record, .error = error};
    return read_record(&reader, NULL, type, document, record);
}
