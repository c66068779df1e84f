/*
 * The texts of a plan: its sentences, the names of its definitions and their fields, and the JSON
 * document for an editor (docs/reference/plan-file.md has the schema).
 */
#include "bson/field_path.h"
#include "bson/record.h"
#include "bson/value.h"
#include "tools/scan/plan.h"
#include "util/error.h"
#include "util/file.h"

#include <ctype.h>
#include <stdarg.h>
#include <string.h>

/* ---- sentences ------------------------------------------------------------------------------- */

void spill_plan_say(spill_plan_texts_t *texts, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    texts->at = bson_realloc(texts->at, (texts->count + 1) * sizeof *texts->at);
    texts->at[texts->count++] = bson_strdupv_printf(format, arguments);
    va_end(arguments);
}

void spill_plan_release_texts(spill_plan_texts_t *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        bson_free(texts->at[i]);
    bson_free(texts->at);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Format the name; false if it does not fit. */
static bool format_name(char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool format_name(char *name, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, SPILL_NAME_SIZE, format, arguments);
    va_end(arguments);
    return length >= 0 && length < SPILL_NAME_SIZE;
}

static bool is_plain(char character)
{
    return (unsigned char)character < 0x80 && isalnum((unsigned char)character);
}

/* Replace each character that a definition's name cannot have with '-', and drop leading ones. */
static void make_allowed(char *name)
{
    char *to = name;
    for (const char *from = name; *from != '\0'; from++) {
        bool continues = ((unsigned char)*from & 0xc0) == 0x80;
        if (is_plain(*from) || (to > name && strchr("-_.", *from)))
            *to++ = *from;
        else if (to > name && !continues)
            *to++ = '-';
    }
    *to = '\0';
}

static bool is_taken(const spill_plan_t *plan, const char *name)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].possible && strcmp(plan->items[i].definition.name, name) == 0)
            return true;
    return false;
}

/* "COLLECTION-ARRAY", with a number if that name is in use. */
static bool put_definition_name(const spill_plan_t *plan, char *name, const char *collection,
                                const char *array)
{
    char first[SPILL_NAME_SIZE];
    bool fits = format_name(first, "%s-%s", collection, array);
    make_allowed(first);
    if (first[0] == '\0')
        fits = format_name(first, "array");
    fits = fits && format_name(name, "%s", first);
    for (size_t number = 2; fits && is_taken(plan, name); number++)
        fits = format_name(name, "%s-%zu", first, number);
    return fits;
}

bool spill_plan_put_names(const spill_plan_t *plan, spill_definition_t *definition,
                          const char *collection, const char *path)
{
    bool has_pages = definition->layout == SPILL_LAYOUT_OUTLIER;
    bool fits = put_definition_name(plan, definition->name, collection, path) &&
                format_name(definition->collection, "%s", collection) &&
                format_name(definition->array, "%s%s", path, has_pages ? "" : "Summary") &&
                format_name(definition->page_collection, "%s_%s", collection, path) &&
                format_name(definition->page_owner, "owner");
    if (has_pages)
        fits = fits && format_name(definition->page_array, "%s", spill_path_leaf(path)) &&
               format_name(definition->count_field, "%sCount", path) &&
               format_name(definition->overflow_field, "%sHasPages", path) &&
               format_name(definition->pages_field, "%sPages", path);
    return fits;
}

/* ---- the JSON document ----------------------------------------------------------------------- */

#define SCHEMA_VERSION 1

/* Deeper objects and arrays stay on one line. */
enum { LINES_DEPTH_MAX = 4 };

#define REPAIRED .flags = SPILL_FIELD_REPAIRED
#define UNLESS(condition) .flags = SPILL_FIELD_OMIT_UNLESS | SPILL_FIELD_REPAIRED, .when = condition
#define TEXTS(struct_, member, name, ...)                                                          \
    SPILL_FIELD(TEXTS, struct_, member.at, name, .count_offset = offsetof(struct_, member.count),  \
                __VA_ARGS__)
#define PART(record_, name_, ...)                                                                  \
    {                                                                                              \
        .type = SPILL_FIELD_RECORD, .of = &(record_), .name = name_, __VA_ARGS__                   \
    }

/* ---- arrays ---------------------------------------------------------------------------------- */

/* An entry of "arrays". Its texts and values are borrowed. */
typedef struct array_entry {
    const char *collection, *path;
    char *database; /* or NULL; owned */
    bool migrate, possible;
    spill_plan_texts_t why, alternatives;
    const char *grows_at;
    spill_value_t definition, original; /* original: without data, if there is none */
    spill_value_t owner;                /* of the largest array */
    int64_t length;                     /* of the largest array */
    int64_t append_now, append_then, read_now, read_then;
    const char *others, *detection; /* or NULL */
} array_entry_t;

static bool is_possible(const void *entry)
{
    return ((const array_entry_t *)entry)->possible;
}

#define ENTRY(type, member, ...) SPILL_FIELD(type, array_entry_t, member, __VA_ARGS__)
static const spill_field_t largest_fields[] = {ENTRY(VALUE, owner, "owner"),
                                               ENTRY(INT64, length, "length")};
static const spill_field_t append_fields[] = {ENTRY(INT64, append_now, "now"),
                                              ENTRY(INT64, append_then, "then")};
static const spill_field_t read_fields[] = {ENTRY(INT64, read_now, "now"),
                                            ENTRY(INT64, read_then, "then")};
static const spill_record_t largest = SPILL_RECORD("largest", array_entry_t, largest_fields);
static const spill_record_t append_rewrites = SPILL_RECORD("saves", array_entry_t, append_fields);
static const spill_record_t other_fields = SPILL_RECORD("saves", array_entry_t, read_fields);
static const spill_field_t saves_fields[] = {PART(append_rewrites, "appendRewrites", .flags = 0),
                                             PART(other_fields, "otherFieldsRead", .flags = 0)};
static const spill_record_t saves = SPILL_RECORD("saves", array_entry_t, saves_fields);

static const spill_field_t array_fields[] = {
    ENTRY(TEXT, collection, "collection", REPAIRED),
    ENTRY(TEXT, path, "path", REPAIRED),
    ENTRY(COPY, database, "database", .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE),
    ENTRY(BOOL, migrate, "migrate"),
    TEXTS(array_entry_t, why, "why", REPAIRED),
    ENTRY(TEXT, grows_at, "growsAt", UNLESS(is_possible)),
    ENTRY(VALUE, definition, "definition", UNLESS(is_possible)),
    ENTRY(VALUE, original, "original", .flags = SPILL_FIELD_SPARSE),
    TEXTS(array_entry_t, alternatives, "alternatives",
          .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE),
    PART(largest, "largest", .flags = 0),
    PART(saves, "saves", UNLESS(is_possible)),
    ENTRY(TEXT, others, "otherWriters", .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE),
    ENTRY(TEXT, detection, "detect", .flags = SPILL_FIELD_REPAIRED | SPILL_FIELD_SPARSE)};
static const spill_record_t array_record = SPILL_RECORD("array", array_entry_t, array_fields);

/* Make the definition's document in *document, and its value. */
static spill_value_t value_of(const spill_definition_t *definition, bson_t *document)
{
    spill_definition_to_bson(definition, document);
    return spill_value_from_document(document);
}

static void print_array(const spill_plan_item_t *item, FILE *to)
{
    static const char *const ends[] = {[SPILL_PLAN_END_UNKNOWN] = "unknown",
                                       [SPILL_PLAN_END_BACK] = "end",
                                       [SPILL_PLAN_END_FRONT] = "front"};
    const char *collection = item->collection->name;
    const spill_large_owner_t *owner = &item->path->owners.items[0];
    bson_t definition = BSON_INITIALIZER, original = BSON_INITIALIZER;
    array_entry_t entry = {.collection = collection,
                           .path = item->path->path,
                           .migrate = item->migrate,
                           .possible = item->possible,
                           .why = item->why,
                           .alternatives = item->alternatives,
                           .grows_at = ends[item->grows_at],
                           .owner = owner->value,
                           .length = owner->length,
                           .append_now = item->bytes_now,
                           .append_then = item->bytes_then + item->element_then,
                           .read_now = item->bytes_now,
                           .read_then = item->bytes_then,
                           .others = item->others,
                           .detection = item->detection};
    /* In a qualified name, the database's name is in front of the first dot. */
    if (item->qualified)
        entry.database = bson_strndup(collection, strcspn(collection, "."));
    if (item->possible)
        entry.definition = value_of(&item->definition, &definition);
    if (item->migrate && item->planned.staged)
        entry.original = value_of(&item->planned.original, &original);
    spill_record_print(&array_record, &entry, false, to);
    bson_free(entry.database);
    bson_destroy(&definition);
    bson_destroy(&original);
}

/* ---- groups of collections ------------------------------------------------------------------- */

/* An item of a group's "collections". */
typedef struct member {
    const char *collection;
    char *value; /* the identifier in its name; owned */
} member_t;

/* An entry of "sprawl". */
typedef struct group_entry {
    const char *pattern;
    bool possible;
    spill_plan_texts_t why;
    const char *into, *field, *ids;
    const spill_plan_group_t *group;
    spill_plan_texts_t nothing; /* a list for a person to fill */
} group_entry_t;

static bool is_group_possible(const void *entry)
{
    return ((const group_entry_t *)entry)->possible;
}

static const spill_field_t member_fields[] = {
    SPILL_FIELD(TEXT, member_t, collection, "collection", REPAIRED),
    SPILL_FIELD(COPY, member_t, value, "value", REPAIRED)};
static const spill_record_t member_record = SPILL_RECORD("member", member_t, member_fields);

static void print_members(const void *record, const void *root, FILE *to)
{
    (void)root;
    const spill_plan_group_t *group = ((const group_entry_t *)record)->group;
    fputc('[', to);
    for (size_t i = 0; i < group->sprawl->count; i++) {
        const char *name = spill_plan_group_member(group, i);
        size_t length = strlen(name) - group->head - group->tail;
        member_t member = {.collection = name, .value = bson_strndup(name + group->head, length)};
        fputs(i > 0 ? "," : "", to);
        spill_record_print(&member_record, &member, false, to);
        bson_free(member.value);
    }
    fputc(']', to);
}

#define GROUP(type, member, ...) SPILL_FIELD(type, group_entry_t, member, __VA_ARGS__)
static const spill_field_t group_fields[] = {
    GROUP(TEXT, pattern, "pattern", REPAIRED),
    GROUP(BOOL, possible, "consolidate"),
    TEXTS(group_entry_t, why, "why", REPAIRED),
    GROUP(TEXT, into, "into", UNLESS(is_group_possible)),
    GROUP(TEXT, field, "field", UNLESS(is_group_possible)),
    GROUP(TEXT, ids, "ids", UNLESS(is_group_possible)),
    TEXTS(group_entry_t, nothing, "indexes", UNLESS(is_group_possible)),
    TEXTS(group_entry_t, nothing, "leaveOut", UNLESS(is_group_possible)),
    {.type = SPILL_FIELD_CUSTOM,
     .name = "collections",
     .print = print_members,
     UNLESS(is_group_possible)}};
static const spill_record_t group_record = SPILL_RECORD("sprawl", group_entry_t, group_fields);

static void print_group(const spill_plan_group_t *group, FILE *to)
{
    const char *pattern = group->sprawl->pattern;
    const group_entry_t entry = {.pattern = group->possible ? pattern + group->database : pattern,
                                 .possible = group->possible,
                                 .why = group->why,
                                 .into = group->into,
                                 .field = group->field,
                                 .ids = "compound",
                                 .group = group};
    spill_record_print(&group_record, &entry, false, to);
}

/* ---- the document ---------------------------------------------------------------------------- */

typedef struct plan_document {
    const spill_plan_t *plan;
    const char *source;
    int32_t version;
} plan_document_t;

static void print_arrays(const void *record, const void *root, FILE *to)
{
    (void)root;
    const spill_plan_t *plan = ((const plan_document_t *)record)->plan;
    fputc('[', to);
    for (size_t i = 0; i < plan->count; i++) {
        fputs(i > 0 ? "," : "", to);
        print_array(&plan->items[i], to);
    }
    fputc(']', to);
}

static void print_groups(const void *record, const void *root, FILE *to)
{
    (void)root;
    const spill_plan_t *plan = ((const plan_document_t *)record)->plan;
    fputc('[', to);
    for (size_t i = 0; i < plan->group_count; i++) {
        fputs(i > 0 ? "," : "", to);
        print_group(&plan->groups[i], to);
    }
    fputc(']', to);
}

static bool has_groups(const void *document)
{
    return ((const plan_document_t *)document)->plan->group_count > 0;
}

static const spill_field_t document_fields[] = {
    SPILL_FIELD(INT32, plan_document_t, version, "spillwayPlan"),
    SPILL_FIELD(TEXT, plan_document_t, source, "source",
                .flags = SPILL_FIELD_REDACTED | SPILL_FIELD_REPAIRED),
    {.type = SPILL_FIELD_CUSTOM, .name = "arrays", .print = print_arrays},
    {.type = SPILL_FIELD_CUSTOM, .name = "sprawl", .print = print_groups, UNLESS(has_groups)}};
static const spill_record_t document_record =
    SPILL_RECORD("plan", plan_document_t, document_fields);

/* ---- lines ----------------------------------------------------------------------------------- */

static void break_line(int depth, FILE *to)
{
    fprintf(to, "\n%*s", 2 * depth, "");
}

/* Copy the string that begins at `text`, and return its end. */
static const char *copy_string(const char *text, FILE *to)
{
    const char *end = text + 1;
    while (*end != '"' && *end != '\0')
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    end += *end == '"';
    fwrite(text, 1, (size_t)(end - text), to);
    return end;
}

static const char *skip_spaces(const char *text)
{
    return text + strspn(text, " \t\r\n");
}

void spill_plan_print_lines(const char *json, FILE *to)
{
    int depth = 0;
    char last = '\0'; /* printed */
    for (json = skip_spaces(json); *json != '\0'; json = skip_spaces(json)) {
        bool opened = last == '{' || last == '[';
        bool closes = *json == '}' || *json == ']';
        bool starts_line = closes ? !opened : opened || last == ',';
        if (starts_line && depth <= LINES_DEPTH_MAX)
            break_line(closes ? depth - 1 : depth, to);
        else if (last == ',' || last == ':')
            fputc(' ', to);
        depth += (*json == '{' || *json == '[') - closes;
        last = *json;
        if (last == '"')
            json = copy_string(json, to);
        else
            fputc(*json++, to);
    }
    fputc('\n', to);
}

spill_code_t spill_plan_write_json(const spill_plan_t *plan, const char *source, FILE *to,
                                   spill_error_t *error)
{
    const plan_document_t document = {plan, source, SCHEMA_VERSION};
    SPILL_SCOPED(spill_text_release) spill_text_t json = {0};
    SPILL_TRY(spill_text_open(&json, error));
    spill_record_print(&document_record, &document, false, json.to);
    SPILL_TRY(spill_text_close(&json, error));
    spill_plan_print_lines(json.text, to);
    return SPILL_OK;
}
