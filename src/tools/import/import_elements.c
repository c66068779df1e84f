/* Split documents into elements: an array's elements, a map's entries, inner arrays. */
#include "tools/import/import_elements.h"

#include "tools/import/import_fields.h"
#include "tools/import/import_records.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- options --------------------------------------------------------------------------------- */

static const char PASS[] = ".$."; /* in a path: each inner document of an array or map */

static spill_code_t check_inner(const spill_elements_options_t *options, spill_error_t *error)
{
    const char *pass = strstr(options->array, PASS);
    if (pass && !options->inner)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has an array for each inner document: give the owner a field "
                          "for it, with --owner-inner FIELD",
                          options->array);
    if (!options->inner)
        return SPILL_OK;
    if (!pass || pass == options->array || pass[sizeof PASS - 1] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "--owner-inner needs a path such as chats.$.messages, not '%s'",
                          options->array);
    if (strstr(pass + sizeof PASS - 2, PASS))
        return spill_fail(error, SPILL_INVALID, "'%s' has more than one $: only one is possible",
                          options->array);
    size_t length = strcspn(options->inner, "=");
    bool named = length > 0 && strncmp(options->inner, "_id", length > 3 ? length : 3) != 0 &&
                 options->inner[0] != '$' && strcspn(options->inner, ".") >= length;
    if (!named || strcmp(options->inner + length, "=") == 0)
        return spill_fail(error, SPILL_INVALID,
                          "--owner-inner is FIELD or FIELD=PATH, and FIELD is a name without dots "
                          "that is not _id; it is '%s'",
                          options->inner);
    return SPILL_OK;
}

spill_code_t spill_elements_check(const spill_elements_options_t *options, spill_error_t *error)
{
    if (!options->array) {
        const char *other = options->entries_as ? "--entries-as"
                            : options->inner    ? "--owner-inner"
                            : options->fields   ? "--fields"
                                                : NULL;
        return other ? spill_fail(error, SPILL_INVALID,
                                  "%s is for documents with an array: give its path with "
                                  "--elements",
                                  other)
                     : SPILL_OK;
    }
    if (options->array[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "--elements needs the path of an array");
    if (options->entries_as && options->entries_as[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "--entries-as needs the name of a field");
    return check_inner(options, error);
}

void spill_split_init(spill_split_t *split, const spill_elements_options_t *options)
{
    *split = (spill_split_t){.options = options};
    bson_init(&split->owner_storage);
    bson_init(&split->element_storage);
    bson_init(&split->update_storage);
    bson_init(&split->exported.memory);
    if (!options->array)
        return;
    const char *pass = options->inner ? strstr(options->array, PASS) : NULL;
    if (!pass) {
        split->path = bson_strdup(options->array);
        return;
    }
    size_t length = strcspn(options->inner, "=");
    split->outer = bson_strndup(options->array, (size_t)(pass - options->array));
    split->path = bson_strdup(pass + sizeof PASS - 1);
    split->inner_field = bson_strndup(options->inner, length);
    split->inner_path = options->inner[length] == '=' ? options->inner + length + 1 : NULL;
}

void spill_split_release(spill_split_t *split)
{
    bson_destroy(&split->owner_storage);
    bson_destroy(&split->element_storage);
    bson_destroy(&split->update_storage);
    bson_free(split->outer);
    bson_free(split->path);
    bson_free(split->inner_field);
    bson_free(split->starts);
    spill_exported_release(&split->exported);
    spill_buffer_release(&split->owner_key);
    bson_destroy(split->held);
    split->held = NULL;
}

spill_code_t spill_split_fail(const spill_split_t *split, spill_code_t code, spill_error_t *error)
{
    if (!split->options->array || !split->owner.data)
        return error->code = code;
    char *json = spill_value_to_json(&split->owner, false);
    const char *owner = json ? json : "?";
    if (split->taken > 0)
        spill_fail_prefix(error, code, "owner %.100s, element %" PRId64, owner, split->taken - 1);
    else
        spill_fail_prefix(error, code, "owner %.100s", owner);
    bson_free(json);
    return code;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool find_name(const spill_value_t *document, const char *name, spill_value_t *found)
{
    const char *at;
    spill_fields_t fields = spill_fields_of(document->data);
    while (spill_fields_next(&fields, &at, found))
        if (strcmp(at, name) == 0)
            return true;
    return false;
}

/* Find the path in a document. *there: it has such a field. */
static spill_code_t find_path(const spill_value_t *document, const char *path, spill_value_t *found,
                              bool *there, spill_error_t *error)
{
    const char *rest = path;
    *there = find_name(document, path, found);
    if (*there)
        return SPILL_OK;
    *found = *document;
    while (*rest != '\0') {
        if (found->type == BSON_TYPE_ARRAY)
            return spill_fail(error, SPILL_PARSE,
                              "'%.*s' is an array, which '%s' cannot pass: write $ behind it, and "
                              "use --owner-inner",
                              (int)(rest - path) - 1, path, path);
        if (!spill_value_field(found, rest, &rest, found))
            return SPILL_OK;
    }
    *there = true;
    return SPILL_OK;
}

/* ---- the other fields of a head -------------------------------------------------------------- */

static spill_code_t make_update(spill_split_t *split, const spill_value_t *document,
                                spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t set = BSON_INITIALIZER;
    spill_value_t unused;
    const spill_definition_t *to = split->options->definition;
    const char *path = split->path;
    const spill_left_out_t left = {.paths = &path,
                                   .count = 1,
                                   .whole = find_name(document, path, &unused),
                                   .definition = to,
                                   .stored = split->options->stored,
                                   .stored_count = split->options->stored_count,
                                   .collection = to ? to->collection : "",
                                   .name = to ? to->name : ""};
    SPILL_TRY(spill_import_other_fields(document, &left, &set, error));
    split->update_due = !bson_empty(&set);
    bson_reinit(&split->update_storage);
    BSON_APPEND_DOCUMENT(&split->update_storage, "$set", &set);
    return SPILL_OK;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Note the starts of the current array's fields, to read them backwards. */
static void note_starts(spill_split_t *split)
{
    const char *name;
    spill_value_t value;
    spill_fields_t fields = split->left;
    const uint8_t *start = fields.at;
    for (; spill_fields_next(&fields, &name, &value); start = fields.at) {
        if (split->start_count == split->start_capacity) {
            split->start_capacity = split->start_capacity ? 2 * split->start_capacity : 256;
            split->starts =
                bson_realloc(split->starts, split->start_capacity * sizeof *split->starts);
        }
        split->starts[split->start_count++] = start;
    }
}

bool spill_split_next_field(spill_split_t *split, const char **name, spill_value_t *value)
{
    if (!split->options->backwards)
        return spill_fields_next(&split->left, name, value);
    if (split->start_count == 0)
        return false;
    split->left.at = split->starts[--split->start_count];
    return spill_fields_next(&split->left, name, value);
}

void spill_split_begin_array(spill_split_t *split, const spill_value_t *array)
{
    split->taken = 0;
    split->start_count = 0;
    split->left = array ? spill_fields_of(array->data) : (spill_fields_t){0};
    if (split->options->backwards)
        note_starts(split);
}

static spill_code_t check_container(const spill_split_t *split, const spill_value_t *found,
                                    spill_error_t *error)
{
    const char *path = split->options->array;
    const bool map = split->options->entries_as != NULL;
    if (found->type == (map ? BSON_TYPE_DOCUMENT : BSON_TYPE_ARRAY))
        return SPILL_OK;
    if (map)
        return spill_fail(error, SPILL_PARSE, "'%s' is no map, as --entries-as expects%s", path,
                          found->type == BSON_TYPE_ARRAY ? ", but an array" : "");
    return spill_fail(error, SPILL_PARSE, "'%s' is no array%s", path,
                      found->type == BSON_TYPE_DOCUMENT
                          ? ", but a document: --entries-as KEY imports the entries of a map"
                          : "");
}

/* Begin to read the array in this document, which is the whole one or an inner one. */
static spill_code_t open_array(spill_split_t *split, const spill_value_t *document,
                               spill_error_t *error)
{
    spill_value_t found;
    bool there = false;
    spill_split_begin_array(split, NULL);
    SPILL_TRY(find_path(document, split->path, &found, &there, error));
    if (there)
        SPILL_TRY(check_container(split, &found, error));
    spill_split_begin_array(split, there ? &found : NULL);
    split->missing += !there;
    return split->options->fields ? make_update(split, document, error) : SPILL_OK;
}

/* ---- a document ------------------------------------------------------------------------------ */

spill_code_t spill_split_begin(spill_split_t *split, const bson_t *document, spill_error_t *error)
{
    const spill_elements_options_t *options = split->options;
    spill_value_t whole = spill_value_from_document(document);
    spill_value_t found;
    bool there = false;
    split->document = document;
    split->owner = (spill_value_t){0};
    split->inners = (spill_fields_t){0};
    split->inner_count = split->items = split->missing = split->taken = 0;
    split->update_due = false;
    if (!options->owner) {
        SPILL_TRY(spill_export_line_read(document, &split->lines, &split->line, error));
        split->owner = split->line.owner;
        return spill_split_is_exported(split) ? spill_split_begin_exported(split, error) : SPILL_OK;
    }
    SPILL_TRY(spill_decode_field(document, options->owner, &split->id, error));
    split->owner = split->id;
    if (!options->array)
        return SPILL_OK;
    if (!split->outer)
        return open_array(split, &whole, error);
    spill_split_begin_array(split, NULL);
    SPILL_TRY(find_path(&whole, split->outer, &found, &there, error));
    split->missing = !there;
    if (!there)
        return SPILL_OK;
    if (found.type != BSON_TYPE_ARRAY && found.type != BSON_TYPE_DOCUMENT)
        return spill_fail(error, SPILL_PARSE, "'%s' is neither an array nor a map", split->outer);
    split->outer_is_map = found.type == BSON_TYPE_DOCUMENT;
    split->inners = spill_fields_of(found.data);
    return SPILL_OK;
}

/* The owner of an inner array: {_id: ID, FIELD: INNER}. */
static spill_code_t make_owner(spill_split_t *split, const char *name, const spill_value_t *inner,
                               spill_error_t *error)
{
    bson_t *owner = &split->owner_storage;
    const char *field = split->inner_field;
    spill_value_t value;
    bool there = true;
    bson_reinit(owner);
    spill_value_append(&split->id, owner, "_id");
    if (split->inner_path) {
        SPILL_TRY(find_path(inner, split->inner_path, &value, &there, error));
        if (there)
            spill_value_append(&value, owner, field);
    } else if (split->outer_is_map) {
        BSON_APPEND_UTF8(owner, field, name);
    } else {
        spill_append_count(owner, field, split->inner_count);
    }
    split->owner = spill_value_from_document(owner);
    return there ? SPILL_OK
                 : spill_fail(error, SPILL_PARSE,
                              "document %" PRId64 " of '%s' has no field '%s' for its owner",
                              split->inner_count, split->outer, split->inner_path);
}

/* Go to the next inner document. *there: there is one. */
static spill_code_t next_inner(spill_split_t *split, bool *there, spill_error_t *error)
{
    const char *name;
    spill_value_t inner;
    *there = spill_fields_next(&split->inners, &name, &inner);
    if (!*there)
        return SPILL_OK;
    if (inner.type != BSON_TYPE_DOCUMENT)
        return spill_fail(error, SPILL_PARSE, "'%s' in '%s' is no document", name, split->outer);
    SPILL_TRY(make_owner(split, name, &inner, error));
    split->inner_count++;
    return open_array(split, &inner, error);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Make {KEY: key, ...value}, or {KEY: key, value: VALUE} if the value is no document. */
static spill_code_t make_entry(spill_split_t *split, const char *key, const spill_value_t *value,
                               spill_value_t *element, spill_error_t *error)
{
    bson_t *made = &split->element_storage;
    const char *key_field = split->options->entries_as;
    const char *name = "value";
    spill_value_t field = *value;
    spill_fields_t fields = {0};
    bool document = value->type == BSON_TYPE_DOCUMENT;
    bson_reinit(made);
    BSON_APPEND_UTF8(made, key_field, key);
    if (document)
        fields = spill_fields_of(value->data);
    while (!document || spill_fields_next(&fields, &name, &field)) {
        if (strcmp(name, key_field) == 0)
            return spill_fail(error, SPILL_PARSE,
                              "the entry '%s' has a field '%s' already: give --entries-as another "
                              "name",
                              key, key_field);
        spill_value_append(&field, made, name);
        if (!document)
            break;
    }
    *element = spill_value_from_document(made);
    return SPILL_OK;
}

/* The document itself, or the element of a line, which is the only item. */
static void take_whole(spill_split_t *split, spill_input_item_t *item, bool *end)
{
    *end = split->items > 0;
    split->items = 1;
    item->owner = split->owner;
    item->element = spill_value_from_document(split->document);
    if (split->options->owner)
        return;
    item->element = split->line.element;
    item->seq = split->line.seq;
    item->window = split->line.window;
}

spill_code_t spill_split_next(spill_split_t *split, spill_input_item_t *item, bool *end,
                              spill_error_t *error)
{
    const char *name;
    spill_value_t value;
    bool there = true;
    *item = (spill_input_item_t){.seq = -1};
    *end = false;
    if (spill_split_is_exported(split)) {
        *end = !spill_split_next_exported(split, item);
        return SPILL_OK;
    }
    if (!split->options->array) {
        take_whole(split, item, end);
        return SPILL_OK;
    }
    while (!split->update_due && !spill_split_next_field(split, &name, &value)) {
        SPILL_TRY(next_inner(split, &there, error));
        *end = !there;
        if (*end)
            return SPILL_OK;
    }
    split->items++;
    item->owner = split->owner;
    if (split->update_due) {
        split->update_due = false;
        item->update = &split->update_storage;
        return SPILL_OK;
    }
    split->taken++;
    item->element = value;
    return split->options->entries_as ? make_entry(split, name, &value, &item->element, error)
                                      : SPILL_OK;
}
