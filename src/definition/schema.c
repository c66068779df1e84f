/*
 * The table of a definition's parts, the names of its enums, the facts of its layout, and the form
 * of stored elements.
 */
#include "definition/schema.h"

#include "bson/element_fields.h"
#include "bson/value.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NAME(label, member, role, required)                                                        \
    {label, offsetof(spill_definition_t, member), SPILL_NAME_OF_##role, required, false, false},
#define PAGES(label, member, role, required)                                                       \
    {label, offsetof(spill_definition_t, member), SPILL_NAME_OF_##role, required, false, true},
#define ADDED(label, member, role)                                                                 \
    {label, offsetof(spill_definition_t, member), SPILL_NAME_OF_##role, false, true, false},

const spill_name_field_t spill_name_fields[SPILL_NAME_FIELDS] = {
    SPILL_DEFINITION_NAMES(NAME, PAGES, ADDED)};

const spill_bound_field_t spill_bound_fields[SPILL_BOUND_FIELDS] = {
    {"threshold", offsetof(spill_bounds_t, threshold), false},
    {"pageCapacity", offsetof(spill_bounds_t, page_capacity), true},
    {"headBytesMax", offsetof(spill_bounds_t, head_bytes_max), false},
    {"pageBytesMax", offsetof(spill_bounds_t, page_bytes_max), true},
};

void spill_bookkeeping_name(const char *array, char name[SPILL_NAME_SIZE])
{
    size_t length = strnlen(array, SPILL_NAME_SIZE - 1);
    for (size_t i = 0; i < length; i++)
        name[i] = array[i] == '.' ? '$' : array[i];
    name[length] = '\0';
}

/* Commands have many paths: snprintf would take a tenth of the client's time of a read. */
const char *spill_bookkeeping_path(const char *array, const char *field,
                                   char path[SPILL_BOOKKEEPING_PATH_SIZE])
{
    char name[SPILL_NAME_SIZE];
    spill_bookkeeping_name(array, name);
    char *end = stpcpy(stpcpy(path, SPILL_STORED_ROOT "."), name);
    if (field[0] != '\0')
        stpcpy(stpcpy(end, "."), field);
    return path;
}

size_t spill_own_fields(const spill_definition_t *definition,
                        const char *paths[SPILL_OWN_FIELDS_MAX])
{
    const char *head[SPILL_OWN_FIELDS_MAX] = {definition->array, definition->count_field,
                                              definition->overflow_field, definition->pages_field,
                                              ""};
    const char *bucket[SPILL_OWN_FIELDS_MAX] = {definition->array, definition->page_owner,
                                                definition->window_field, definition->page_number,
                                                definition->stats_field};
    const char **all = spill_schema_of(definition)->has_windows ? bucket : head;
    size_t count = 0;
    for (size_t i = 0; i < SPILL_OWN_FIELDS_MAX; i++)
        if (all[i][0] != '\0')
            paths[count++] = all[i];
    return count;
}

const char *spill_definition_get_name(const spill_definition_t *definition,
                                      const spill_name_field_t *field)
{
    return (const char *)definition + field->offset;
}

int64_t spill_bounds_get(const spill_bounds_t *bounds, const spill_bound_field_t *field)
{
    return *(const int64_t *)(const void *)((const char *)bounds + field->offset);
}

static const char *const keep_names[] = {
    [SPILL_KEEP_OLDEST] = "oldest", [SPILL_KEEP_NEWEST] = "newest"};
static const char *const order_names[] = {
    [SPILL_ARRAY_OLDEST_FIRST] = "oldest-first", [SPILL_ARRAY_NEWEST_FIRST] = "newest-first"};

static const char *const window_names[] = {
    [SPILL_WINDOW_NONE] = "",      [SPILL_WINDOW_HOUR] = "hour",   [SPILL_WINDOW_DAY] = "day",
    [SPILL_WINDOW_WEEK] = "week",  [SPILL_WINDOW_MONTH] = "month", [SPILL_WINDOW_YEAR] = "year",
    [SPILL_WINDOW_FIELD] = "field"};

#define KEEPS (sizeof keep_names / sizeof keep_names[0])
#define ORDERS (sizeof order_names / sizeof order_names[0])
#define WINDOWS (sizeof window_names / sizeof window_names[0])

const char *spill_keep_name(spill_keep_t keep)
{
    return (size_t)keep < KEEPS ? keep_names[keep] : NULL;
}

const char *spill_array_order_name(spill_array_order_t order)
{
    return (size_t)order < ORDERS ? order_names[order] : NULL;
}

const char *spill_window_name(spill_window_t window)
{
    return window != SPILL_WINDOW_NONE && (size_t)window < WINDOWS ? window_names[window] : NULL;
}

/* The index of a name in a table; `count` if it is not in the table. */
static size_t find_name(const char *const names[], size_t count, const char *name)
{
    size_t index = 0;
    while (index < count && strcmp(names[index], name) != 0)
        index++;
    return index;
}

bool spill_keep_of_name(const char *name, spill_keep_t *keep)
{
    size_t index = find_name(keep_names, KEEPS, name);
    *keep = (spill_keep_t)index;
    return index < KEEPS;
}

bool spill_array_order_of_name(const char *name, spill_array_order_t *order)
{
    size_t index = find_name(order_names, ORDERS, name);
    *order = (spill_array_order_t)index;
    return index < ORDERS;
}

bool spill_window_of_name(const char *name, spill_window_t *window)
{
    size_t index = find_name(window_names, WINDOWS, name);
    *window = (spill_window_t)index;
    return index < WINDOWS && *window != SPILL_WINDOW_NONE;
}

/* ---- the facts of a layout ------------------------------------------------------------------- */

/* Indexes of a layout's facts: with or without a sort_field, and by keep. */
enum { UNSORTED, SORTED, SORTINGS };

typedef struct layout_schemas {
    spill_keep_t usual;
    spill_schema_t by_keep[KEEPS][SORTINGS];
} layout_schemas_t;

/* Only appends_to_head depends on keep; no fact depends on sort_field. */
#define SAME(...)                                                                                  \
    {                                                                                              \
        [SPILL_KEEP_OLDEST] = {{__VA_ARGS__}, {__VA_ARGS__}}, [SPILL_KEEP_NEWEST] = {              \
            {__VA_ARGS__, .appends_to_head = true},                                                \
            {__VA_ARGS__, .appends_to_head = true},                                                \
        }                                                                                          \
    }

/* As SAME, and `fact` is true if the definition has a sort_field. */
#define IF_SORTED(fact, ...)                                                                       \
    {                                                                                              \
        [SPILL_KEEP_OLDEST] = {{__VA_ARGS__}, {__VA_ARGS__, .fact = true}}, [SPILL_KEEP_NEWEST] =  \
        { {__VA_ARGS__, .appends_to_head = true},                                                  \
          {__VA_ARGS__, .appends_to_head = true, .fact = true},                                    \
        }                                                                                          \
    }

static layout_schemas_t schemas[SPILL_LAYOUTS_MAX] = {
    [SPILL_LAYOUT_OUTLIER] = {.usual = SPILL_KEEP_NEWEST,
                              SAME(.name = "outlier", .check = spill_check_outlier,
                                   .has_pages = true)},
    [SPILL_LAYOUT_REFERENCE] = {.usual = SPILL_KEEP_NEWEST,
                                SAME(.name = "reference", .check = spill_check_referenced,
                                     .has_pages = true, .has_referenced_elements = true)},
    [SPILL_LAYOUT_BUCKET] = {.usual = SPILL_KEEP_OLDEST,
                             SAME(.name = "bucket", .check = spill_check_bucket, .has_pages = true,
                                  .has_windows = true)},
    [SPILL_LAYOUT_CAPPED] = {.usual = SPILL_KEEP_NEWEST,
                             IF_SORTED(keeps_top_n, .name = "capped", .check = spill_check_capped,
                                       .is_capped = true)},
    [SPILL_LAYOUT_SUBSET] = {.usual = SPILL_KEEP_NEWEST,
                             IF_SORTED(has_rank_index, .name = "subset",
                                       .check = spill_check_referenced, .has_pages = true,
                                       .has_referenced_elements = true, .has_top = true)},
};

static unsigned count_layouts(void)
{
    unsigned count = 0;
    while (count < SPILL_LAYOUTS_MAX && schemas[count].by_keep[0][0].name != NULL)
        count++;
    return count;
}

static const layout_schemas_t *find_layout(spill_layout_t layout)
{
    bool known = (unsigned)layout < SPILL_LAYOUTS_MAX && schemas[layout].by_keep[0][0].name != NULL;
    return known ? &schemas[layout] : NULL;
}

const spill_schema_t *spill_schema_of(const spill_definition_t *definition)
{
    const layout_schemas_t *layout = find_layout(definition->layout);
    spill_keep_t keep = definition->keep;
    if (layout == NULL)
        layout = &schemas[0];
    if ((unsigned)keep >= KEEPS)
        keep = layout->usual;
    return &layout->by_keep[keep][definition->sort_field[0] != '\0' ? SORTED : UNSORTED];
}

const spill_schema_t *spill_schema_of_layout(spill_layout_t layout)
{
    const layout_schemas_t *found = find_layout(layout);
    return found ? &found->by_keep[found->usual][UNSORTED] : NULL;
}

const char *spill_layout_name(spill_layout_t layout)
{
    const spill_schema_t *schema = spill_schema_of_layout(layout);
    return schema ? schema->name : NULL;
}

bool spill_layout_of_name(const char *name, spill_layout_t *layout)
{
    const spill_schema_t *schema;
    for (unsigned i = 0; (schema = spill_schema_of_layout((spill_layout_t)i)) != NULL; i++) {
        *layout = (spill_layout_t)i;
        if (strcmp(schema->name, name) == 0)
            return true;
    }
    return false;
}

bool spill_schema_add(const spill_schema_t *schema, spill_layout_t *layout)
{
    unsigned layouts = count_layouts();
    if (layouts == SPILL_LAYOUTS_MAX)
        return false;
    *layout = (spill_layout_t)layouts;
    schemas[layouts].usual = schema->appends_to_head ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST;
    for (size_t keep = 0; keep < KEEPS; keep++)
        for (int sorting = 0; sorting < SORTINGS; sorting++)
            schemas[layouts].by_keep[keep][sorting] = *schema;
    return true;
}

/* ---- stored elements ------------------------------------------------------------------------- */

/* Is an element stored whole under element_id_field? */
static bool is_stored_whole(const spill_definition_t *definition)
{
    return spill_is_whole_element(definition->id_field);
}

static bool is_renamed(const spill_definition_t *definition, const char *name)
{
    return definition->element_id_field[0] != '\0' && strcmp(name, "_id") == 0;
}

/* ---- ... the check of an element ------------------------------------------------------------- */

static spill_code_t refuse_id(const spill_definition_t *definition, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '_id': the definition has no "
                      "elementIdField (--element-id-field) to store it in; convert '%s' to a "
                      "definition that has one",
                      definition->name, definition->name);
}

static spill_code_t refuse_name(const spill_definition_t *definition, const char *name,
                                spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '%s': the document that keeps the "
                      "element has a field of that name; rename the element's field",
                      definition->name, name);
}

/* Refuse a field with a name from the definition; another definition may have another name. */
static spill_code_t refuse_chosen(const spill_definition_t *definition, const char *name,
                                  const char *what, const char *option, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID,
                      "an element of '%s' cannot have a field '%s': the document that keeps the "
                      "element stores %s in a field of that name; rename the element's field, or "
                      "define another %s",
                      definition->name, name, what, option);
}

static spill_code_t check_name(const spill_definition_t *definition, const char *name,
                               spill_error_t *error)
{
    if (strcmp(name, SPILL_STORED_ROOT) == 0)
        return refuse_name(definition, name, error);
    if (strcmp(name, "_id") == 0)
        return definition->element_id_field[0] == '\0' ? refuse_id(definition, error) : SPILL_OK;
    if (strcmp(name, definition->page_owner) == 0)
        return refuse_chosen(definition, name, "its owner", "--page-owner", error);
    if (name[0] != '\0' && strcmp(name, definition->element_id_field) == 0)
        return refuse_chosen(definition, name, "the element's _id", "--element-id-field", error);
    return SPILL_OK;
}

spill_code_t spill_stored_element_check(const spill_definition_t *definition,
                                        const spill_value_t *element, const char *except,
                                        spill_error_t *error)
{
    const char *name;
    spill_value_t value;
    if (is_stored_whole(definition))
        return SPILL_OK;
    if (element->type != BSON_TYPE_DOCUMENT)
        return spill_fail(error, SPILL_INVALID,
                          "an element of '%s' must be a document, because it is stored as one",
                          definition->name);
    spill_fields_t fields = spill_fields_of(element->data);
    while (spill_fields_next(&fields, &name, &value)) {
        if (except != NULL && strcmp(name, except) == 0)
            continue;
        spill_code_t code = check_name(definition, name, error);
        if (code != SPILL_OK)
            return code;
    }
    return SPILL_OK;
}

bool spill_stored_element_same_rules(const spill_definition_t *left,
                                     const spill_definition_t *right)
{
    return is_stored_whole(left) == is_stored_whole(right) &&
           strcmp(left->page_owner, right->page_owner) == 0 &&
           strcmp(left->element_id_field, right->element_id_field) == 0;
}

/* ---- ... paths ------------------------------------------------------------------------------- */

/* Is `name` the first name of the path? */
static bool begins_with(const char *path, const char *name)
{
    size_t length = strlen(name);
    return length > 0 && strncmp(path, name, length) == 0 &&
           (path[length] == '\0' || path[length] == '.');
}

bool spill_stored_element_reserves(const spill_definition_t *definition, const char *path)
{
    bool no_id = definition->element_id_field[0] == '\0';
    if (is_stored_whole(definition))
        return false;
    return (no_id && begins_with(path, "_id")) || begins_with(path, SPILL_STORED_ROOT) ||
           begins_with(path, definition->page_owner) ||
           begins_with(path, definition->element_id_field);
}

void spill_stored_element_path(const spill_definition_t *definition, const char *path,
                               char stored[SPILL_STORED_PATH_SIZE])
{
    bool renamed = definition->element_id_field[0] != '\0' && begins_with(path, "_id");
    bool referenced = spill_schema_of(definition)->has_referenced_elements;
    if (referenced && is_stored_whole(definition)) {
        bool itself = spill_is_whole_element(path);
        snprintf(stored, SPILL_STORED_PATH_SIZE, "%s%s%s", definition->element_id_field,
                 itself ? "" : ".", itself ? "" : path);
        return;
    }
    snprintf(stored, SPILL_STORED_PATH_SIZE, "%s%s", renamed ? definition->element_id_field : "",
             renamed ? path + strlen("_id") : path);
}

/* ---- ... documents --------------------------------------------------------------------------- */

void spill_stored_element_append(const spill_definition_t *definition, const spill_value_t *element,
                                 bson_t *document)
{
    const char *name;
    spill_value_t value;
    if (is_stored_whole(definition)) {
        spill_value_append(element, document, definition->element_id_field);
        return;
    }
    spill_fields_t fields = spill_fields_of(element->data);
    while (spill_fields_next(&fields, &name, &value))
        spill_value_append(&value, document,
                           is_renamed(definition, name) ? definition->element_id_field : name);
}

/* Is it a field of the document itself? `spill` and `_id` are, whatever the element has. */
static bool is_own(const spill_definition_t *definition, const char *name)
{
    return strcmp(name, "_id") == 0 || strcmp(name, SPILL_STORED_ROOT) == 0 ||
           strcmp(name, definition->page_owner) == 0;
}

static bool read_whole(const spill_definition_t *definition, const bson_t *document,
                       spill_value_t *value)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, definition->element_id_field))
        return false;
    *value = spill_value_from_iter(&iter);
    return true;
}

bool spill_stored_element_read(const spill_definition_t *definition, const bson_t *document,
                               bson_t *memory, spill_value_t *value)
{
    const char *name, *id = definition->element_id_field;
    spill_value_t field;
    bson_init(memory);
    if (!bson_has_field(document, definition->page_owner))
        return false;
    if (is_stored_whole(definition))
        return read_whole(definition, document, value);
    spill_fields_t fields = spill_fields_of(bson_get_data(document));
    while (spill_fields_next(&fields, &name, &field)) {
        if (!is_own(definition, name))
            spill_value_append(&field, memory,
                               id[0] != '\0' && strcmp(name, id) == 0 ? "_id" : name);
    }
    *value = spill_value_from_document(memory);
    return true;
}

int64_t spill_stored_element_growth(const spill_definition_t *definition)
{
    size_t length = strlen(definition->element_id_field);
    if (is_stored_whole(definition))
        return (int64_t)length + 2; /* its type, its name and a NUL */
    return length > strlen("_id") ? (int64_t)(length - strlen("_id")) : 0;
}
