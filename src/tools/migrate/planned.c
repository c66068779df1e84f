/* Planned arrays, and the plan's file that names them. */
#include "tools/migrate/planned.h"

#include "bson/field_path.h"
#include "bson/record.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "util/buffer.h"
#include "util/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* The original's head leaves room for the planned array in the same document. */
enum { PART_OF_HEAD = 4 };

bool spill_planned_in_place(const spill_definition_t *definition)
{
    return definition->layout == SPILL_LAYOUT_OUTLIER &&
           spill_schema_of(definition)->appends_to_head;
}

/* If the name does not fit, leave it empty: spill_definition_check refuses it. */
static void set_name(char *name, const char *text, const char *suffix)
{
    if (snprintf(name, SPILL_NAME_SIZE, "%s%s", text, suffix) >= SPILL_NAME_SIZE)
        name[0] = '\0';
}

void spill_planned_init(spill_planned_t *planned, const spill_definition_t *definition,
                        const char *collection, const char *path)
{
    spill_definition_t *original = &planned->original;
    planned->definition = *definition;
    planned->staged = !spill_planned_in_place(definition);
    planned->order_missing = false;
    planned->may_be_empty = false;
    spill_definition_init(original, "original");
    set_name(original->name, definition->name, ".original");
    set_name(original->collection, collection, "");
    set_name(original->array, path, "");
    set_name(original->page_array, spill_path_leaf(path), "");
    set_name(original->page_collection, definition->name, ".original");
    set_name(original->pages_field, path, "Pages");
    strcpy(original->page_owner, "owner");
    original->count_field[0] = '\0';
    original->overflow_field[0] = '\0';
    original->order = definition->order;
    original->unique = definition->unique;
    if (definition->unique)
        strcpy(original->id_field, definition->id_field);
    original->bounds.head_bytes_max = definition->bounds.head_bytes_max / PART_OF_HEAD + 1;
    original->largest = original->bounds;
}

/* Refuse a cap in the original's documents: what it keeps would depend on the other fields. */
static spill_code_t check_cap(const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *definition = &planned->definition;
    if (!spill_schema_of(definition)->is_capped ||
        strcmp(definition->collection, planned->original.collection) != 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "'%s' is capped, and what it keeps would depend on the array that is still "
                      "in the documents of '%s': give it another collection",
                      definition->name, definition->collection);
}

spill_code_t spill_planned_check(const spill_planned_t *planned, spill_error_t *error)
{
    const spill_definition_t *original = &planned->original;
    if (!planned->staged)
        return SPILL_OK;
    spill_error_t cause;
    spill_code_t code = spill_definition_check(original, &cause);
    if (code != SPILL_OK)
        return spill_fail(error, code, "the original of '%s': %s", planned->definition.name,
                          cause.message);
    if (!spill_planned_in_place(original))
        return spill_fail(error, SPILL_INVALID,
                          "the original of '%s' must have layout outlier, and keep the newest",
                          planned->definition.name);
    if (strcmp(planned->definition.name, original->name) == 0)
        return spill_fail(error, SPILL_INVALID, "'%s' and its original have the same name",
                          original->name);
    code = spill_definition_beside(&planned->definition, original, error);
    if (code == SPILL_OK)
        code = check_cap(planned, error);
    return code;
}

/* ---- the file -------------------------------------------------------------------------------- */

enum { PLAN_VERSION = 1, PLAN_BYTES_MAX = 64 << 20 };

/* Read the bytes of the file, which may be a pipe. */
static spill_code_t read_bytes(const char *file, spill_buffer_t *bytes, spill_error_t *error)
{
    uint8_t chunk[1 << 16];
    size_t size;
    struct stat status;
    FILE *stream = fopen(file, "rbe");
    if (!stream)
        return spill_fail(error, SPILL_IO, "%s: %s", file, strerror(errno));
    bool folder = fstat(fileno(stream), &status) == 0 && S_ISDIR(status.st_mode);
    while (!folder && bytes->size <= PLAN_BYTES_MAX &&
           (size = fread(chunk, 1, sizeof chunk, stream)) > 0)
        spill_buffer_append(bytes, chunk, size);
    int cause = ferror(stream) ? errno : 0;
    fclose(stream);
    if (folder)
        return spill_fail(error, SPILL_IO, "%s is a folder; a plan is a file", file);
    if (cause != 0)
        return spill_fail(error, SPILL_IO, "%s: %s", file, strerror(cause));
    if (bytes->size > PLAN_BYTES_MAX)
        return spill_fail(error, SPILL_PARSE, "%s: it has more than %d MiB, so it is no plan", file,
                          PLAN_BYTES_MAX >> 20);
    return SPILL_OK;
}

static size_t trim_end(const spill_buffer_t *bytes)
{
    size_t size = bytes->size;
    while (size > 0 && memchr(" \t\r\n", bytes->data[size - 1], 4))
        size--;
    return size;
}

/* The strict check comes first: libbson would ignore text after the plan, and wrap large numbers.
 */
static spill_code_t parse_plan(const char *file, const spill_buffer_t *bytes, bson_t *document,
                               spill_error_t *error)
{
    spill_json_kind_t kind = SPILL_JSON_OTHER;
    bson_error_t ignored;
    const char *text = (const char *)bytes->data;
    if (trim_end(bytes) == 0)
        return spill_fail(error, SPILL_PARSE, "%s: it is empty", file);
    spill_code_t code = spill_json_check(text, bytes->size, &kind, error);
    if (code != SPILL_OK)
        return spill_fail_prefix(error, code, "%s", file);
    bson_destroy(document);
    if (bson_init_from_json(document, text, (ssize_t)bytes->size, &ignored))
        return SPILL_OK;
    bson_init(document);
    code = spill_json_refuse(text, bytes->size, error);
    return spill_fail_prefix(error, code, "%s", file);
}

spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error)
{
    bson_iter_t iter;
    bson_init(document);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t bytes = SPILL_BUFFER_INIT;
    SPILL_TRY(read_bytes(file, &bytes, error));
    SPILL_TRY(parse_plan(file, &bytes, document, error));
    if (!bson_iter_init_find(&iter, document, "spillwayPlan") ||
        bson_iter_as_int64(&iter) != PLAN_VERSION)
        return spill_fail(error, SPILL_INVALID, "%s: this is no plan of version %d", file,
                          PLAN_VERSION);
    return SPILL_OK;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* An entry of "arrays". A person may have edited it: what is not used may be anything. */
typedef struct entry {
    const char *collection, *path;
    const char *database; /* or NULL */
    const char *grows_at;
    bool migrate;
    bool may_be_empty;
    spill_value_t definition, original;
} entry_t;

#define LENIENT(type, member, name, ...)                                                           \
    SPILL_FIELD(type, entry_t, member, name, .flags = SPILL_FIELD_LENIENT, __VA_ARGS__)
#define FLAG(member, name) SPILL_FIELD(BOOL, entry_t, member, name, .flags = SPILL_FIELD_OPTIONAL)
static const spill_field_t entry_fields[] = {
    LENIENT(TEXT, collection, "collection", .of = NULL),
    LENIENT(TEXT, path, "path", .of = NULL),
    LENIENT(TEXT, database, "database", .of = NULL),
    LENIENT(TEXT, grows_at, "growsAt", .of = NULL),
    LENIENT(VALUE, definition, "definition", .bson_type = BSON_TYPE_DOCUMENT),
    LENIENT(VALUE, original, "original", .bson_type = BSON_TYPE_DOCUMENT),
    FLAG(migrate, "migrate")};
static const spill_field_t migrated_fields[] = {FLAG(may_be_empty, "mayBeEmpty")};
static const spill_record_t entry_record = SPILL_RECORD("entry", entry_t, entry_fields);
static const spill_record_t migrated_record = SPILL_RECORD("entry", entry_t, migrated_fields);

/* Read a table's fields of the entry. SPILL_INVALID: a flag is neither true nor false. */
static spill_code_t read_fields(const char *file, const spill_record_t *type,
                                const bson_t *document, entry_t *entry, spill_error_t *error)
{
    if (spill_record_read(type, document, entry, error) == SPILL_OK)
        return SPILL_OK;
    return spill_fail_prefix(error, SPILL_INVALID, "%s: %s.%s", file, entry->collection,
                             entry->path);
}

const char *spill_planned_without_database(const char *name, const char *database)
{
    size_t length = database ? strlen(database) : 0;
    return length > 0 && strncmp(name, database, length) == 0 && name[length] == '.' &&
                   name[length + 1] != '\0'
               ? name + length + 1
               : name;
}

/* The entry's collection without its database; borrowed. */
static const char *bare_collection(const entry_t *entry, const char *database,
                                   const spill_definition_t *definition)
{
    const char *name = entry->collection;
    const char *dot = strchr(name, '.');
    if (entry->database)
        return spill_planned_without_database(name, entry->database);
    const char *bare = spill_planned_without_database(name, database);
    return bare == name && dot && strcmp(dot + 1, definition->collection) == 0 ? dot + 1 : bare;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* False: the entry has no such definition. */
static bool document_of(const spill_value_t *value, bson_t *document)
{
    return value->data && bson_init_static(document, value->data, value->size_bytes);
}

/* Read and check the entry's definition of that name, if it has one. */
static spill_code_t read_definition(const char *file, const entry_t *entry, const char *name,
                                    const spill_value_t *value, spill_definition_t *definition,
                                    spill_error_t *error)
{
    bson_t document;
    if (!document_of(value, &document))
        return SPILL_OK;
    spill_error_t cause;
    spill_code_t code = spill_definition_from_bson(definition, &document, &cause);
    /* A plan is for new definitions: an entry without the field gets the default. */
    if (code == SPILL_OK && spill_schema_of(definition)->has_referenced_elements &&
        !bson_has_field(&document, "elementIdField"))
        strcpy(definition->element_id_field, SPILL_ELEMENT_ID_FIELD);
    if (code == SPILL_OK)
        code = spill_definition_check(definition, &cause);
    if (code != SPILL_OK)
        return spill_fail(error, SPILL_INVALID, "%s: the %s for %s.%s: %s", file, name,
                          entry->collection, entry->path, cause.message);
    return SPILL_OK;
}

static bool has_order(const spill_value_t *definition)
{
    bson_t document;
    return document_of(definition, &document) && bson_has_field(&document, "order");
}

static bool is_order_missing(const entry_t *entry, bool staged)
{
    return strcmp(entry->grows_at, "unknown") == 0 && !has_order(&entry->definition) &&
           !(staged && has_order(&entry->original));
}

static spill_code_t read_planned(const char *file, const char *database, const bson_t *document,
                                 entry_t *entry, spill_planned_t *planned, spill_error_t *error)
{
    spill_definition_t definition = {0};
    bson_t given;
    if (!document_of(&entry->definition, &given))
        return spill_fail(error, SPILL_INVALID,
                          "%s: %s.%s has \"migrate\": true, but no \"definition\"", file,
                          entry->collection, entry->path);
    SPILL_TRY(read_definition(file, entry, "definition", &entry->definition, &definition, error));
    spill_planned_init(planned, &definition, bare_collection(entry, database, &definition),
                       entry->path);
    planned->order_missing = is_order_missing(entry, planned->staged);
    SPILL_TRY(read_fields(file, &migrated_record, document, entry, error));
    planned->may_be_empty = entry->may_be_empty;
    if (!planned->staged)
        return SPILL_OK;
    return read_definition(file, entry, "original", &entry->original, &planned->original, error);
}

static spill_code_t read_arrays(const char *file, const char *database, const bson_t *plan,
                                spill_planned_t **arrays, size_t *count, spill_error_t *error)
{
    bson_iter_t iter, entries;
    if (!bson_iter_init_find(&iter, plan, "arrays") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &entries))
        return spill_fail(error, SPILL_INVALID, "%s: it has no array \"arrays\"", file);
    while (bson_iter_next(&entries)) {
        const spill_value_t value = spill_value_from_iter(&entries);
        entry_t entry = {.collection = "?", .path = "?", .grows_at = "?"};
        bson_t document;
        if (value.type != BSON_TYPE_DOCUMENT || !document_of(&value, &document))
            return spill_fail(error, SPILL_INVALID, "%s: 'arrays' must contain documents", file);
        SPILL_TRY(read_fields(file, &entry_record, &document, &entry, error));
        if (!entry.migrate)
            continue;
        *arrays = bson_realloc(*arrays, (*count + 1) * sizeof **arrays);
        SPILL_TRY(read_planned(file, database, &document, &entry, *arrays + *count, error));
        *count += 1;
    }
    return SPILL_OK;
}

spill_code_t spill_plan_file_arrays(const char *file, const char *database,
                                    spill_planned_t **arrays, size_t *count, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t plan = BSON_INITIALIZER;
    *arrays = NULL;
    *count = 0;
    SPILL_TRY(spill_plan_file_read(file, &plan, error));
    SPILL_TRY(read_arrays(file, database, &plan, arrays, count, error));
    if (*count == 0)
        return spill_fail(error, SPILL_INVALID,
                          "%s: nothing to migrate: no entry of 'arrays' has \"migrate\": true",
                          file);
    return SPILL_OK;
}
