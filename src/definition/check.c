/* The rules for a definition: for its numbers, its names, and each layout. */
#include "bson/element_fields.h"
#include "bson/field_path.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <bson/bson.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* ---- numbers --------------------------------------------------------------------------------- */

static spill_code_t check_range(const char *label, int64_t value, int64_t lowest, int64_t highest,
                                spill_error_t *error)
{
    if (value < lowest)
        return spill_fail(error, SPILL_INVALID, "%s must be at least %" PRId64 ", not %" PRId64,
                          label, lowest, value);
    if (value > highest)
        return spill_fail(error, SPILL_INVALID, "%s must be at most %" PRId64 ", not %" PRId64,
                          label, highest, value);
    return SPILL_OK;
}

/* A subset's head needs half of its bytes for its top elements, and more for their entries. */
static int64_t bytes_lowest(const spill_definition_t *definition)
{
    int64_t needed = SPILL_BOOKKEEPING_BYTES_MAX + definition->op_window * SPILL_OP_BYTES_MAX +
                     definition->top_count * SPILL_TOP_ENTRY_BYTES_MAX;
    if (needed < SPILL_DOCUMENT_BYTES_LOWEST)
        needed = SPILL_DOCUMENT_BYTES_LOWEST;
    return spill_schema_of(definition)->has_top ? 2 * needed : needed;
}

static spill_code_t check_numbers(const spill_definition_t *definition, spill_error_t *error)
{
    const spill_bounds_t *bounds = &definition->bounds;
    spill_code_t code =
        check_range("opWindow (--op-window)", definition->op_window, 1, SPILL_OP_WINDOW_MAX, error);
    if (code != SPILL_OK)
        return code;
    int64_t lowest = bytes_lowest(definition);
    const struct {
        const char *label;
        int64_t value, lowest, highest;
        bool pages;
    } ranges[] = {
        {"threshold (--threshold)", bounds->threshold, 1, SPILL_ELEMENTS_MAX, false},
        {"pageCapacity (--page)", bounds->page_capacity, 1, SPILL_ELEMENTS_MAX, true},
        {"headBytesMax (--max-bytes)", bounds->head_bytes_max, lowest, SPILL_DOCUMENT_BYTES_HIGHEST,
         false},
        {"pageBytesMax (--page-bytes)", bounds->page_bytes_max, lowest,
         SPILL_DOCUMENT_BYTES_HIGHEST, true},
        {"keepElements (--retain-elements)", definition->keep_elements, 0, SPILL_KEEP_ELEMENTS_MAX,
         false},
        {"keepSeconds (--retain-age)", definition->keep_seconds, 0, SPILL_KEEP_SECONDS_MAX, false},
    };
    bool pages = spill_schema_of(definition)->has_pages;
    for (size_t i = 0; code == SPILL_OK && i < sizeof ranges / sizeof ranges[0]; i++)
        if (pages || !ranges[i].pages)
            code = check_range(ranges[i].label, ranges[i].value, ranges[i].lowest,
                               ranges[i].highest, error);
    if (code == SPILL_OK && definition->keep_seconds > 0 && definition->time_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "keepSeconds (--retain-age) needs a timeField (--time-field)");
    return code;
}

/* ---- names ----------------------------------------------------------------------------------- */

static spill_code_t fail_name(const spill_name_field_t *field, const char *name,
                              const char *problem, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID, "%s '%s' %s", field->label, name, problem);
}

static bool is_definition_name(const char *name)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    static const char others[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                 "-_.";
    return strspn(name, letters) > 0 && name[strspn(name, others)] == '\0';
}

static bool has_control_character(const char *name)
{
    for (; *name != '\0'; name++)
        if ((unsigned char)*name < 0x20 || *name == 0x7f)
            return true;
    return false;
}

/* Is it a path like "name" or "author.name", without an empty part? */
static bool is_path(const char *name)
{
    return name[0] != '.' && name[strlen(name) - 1] != '.' && strstr(name, "..") == NULL;
}

/* Is a part of the path a number? Servers treat it as an index of an array, or as a name. */
static bool has_number(const char *path)
{
    for (size_t length; *path != '\0'; path += length + (path[length] == '.')) {
        length = strcspn(path, ".");
        if (strspn(path, "0123456789") == length)
            return true;
    }
    return false;
}

static int parts_of(const char *path)
{
    int parts = 1;
    for (const char *dot = strchr(path, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        parts++;
    return parts;
}

/* The problem of the path of a head's field, or NULL. */
static const char *problem_of_path(const char *path)
{
    if (strchr(path, '$') != NULL)
        return "contains '$', which field names here may not";
    if (!is_path(path))
        return "has an empty part: write names with one '.' between them, as in 'stats.events'";
    if (strchr(path, '.') != NULL && has_number(path))
        return "has a number as a part, which a server takes for a place in an array: a path goes "
               "through sub-documents only; keep each member of that array as an owner of its own, "
               "or rename the field";
    if (parts_of(path) > SPILL_PATH_PARTS_MAX)
        return "has more than 8 parts; name an array that is nested less deeply";
    if (strcmp(path, "_id") == 0 || strcmp(path, SPILL_STORED_ROOT) == 0)
        return "is a name that Spillway uses itself";
    return spill_starts_with_part(path, "_id") || spill_starts_with_part(path, SPILL_STORED_ROOT)
               ? "is in a field that Spillway uses itself; choose another path"
               : NULL;
}

/* Is it the field of a head, whose name may be a path? In buckets, pageArray is such a field. */
static bool is_head_field(const spill_definition_t *definition, const spill_name_field_t *field)
{
    return field->role == SPILL_NAME_OF_HEAD_FIELD ||
           (spill_schema_of(definition)->has_windows &&
            field->offset == offsetof(spill_definition_t, page_array));
}

/* The problem of a name that is not empty, or NULL. */
static const char *problem_of(spill_name_role_t role, const char *name)
{
    if (!bson_utf8_validate(name, strlen(name), false))
        return "is not UTF-8";
    if (has_control_character(name))
        return "contains a control character";
    switch (role) {
    case SPILL_NAME_OF_DEFINITION:
        return is_definition_name(name) ? NULL
                                        : "must start with a letter or a digit and consist of "
                                          "letters, digits, '-', '_' and '.'";
    case SPILL_NAME_OF_COLLECTION:
        if (strchr(name, '$') != NULL)
            return "contains '$', which no collection's name may";
        return strncmp(name, "system.", 7) == 0 ? "is reserved for the database" : NULL;
    case SPILL_NAME_OF_HEAD_FIELD:
        return problem_of_path(name);
    case SPILL_NAME_OF_ELEMENT_ID:
        return spill_is_whole_element(name) ? NULL : problem_of(SPILL_NAME_OF_ELEMENT_FIELD, name);
    case SPILL_NAME_OF_ELEMENT_FIELD:
        if (strchr(name, '$') != NULL)
            return "contains '$', which field names here may not";
        return is_path(name) ? NULL : "is not a path of names with a '.' between them";
    default:
        if (strchr(name, '.') != NULL)
            return "contains '.': only the fields of a head may be paths, such as --array, "
                   "--count-field, --overflow-field and --pages-field";
        if (strchr(name, '$') != NULL)
            return "contains '$', which field names here may not";
        return strcmp(name, "_id") == 0 || strcmp(name, SPILL_STORED_ROOT) == 0
                   ? "is a name that Spillway uses itself"
                   : NULL;
    }
}

static spill_code_t check_name(const spill_definition_t *definition,
                               const spill_name_field_t *field, spill_error_t *error)
{
    const char *name = spill_definition_get_name(definition, field);
    if (memchr(name, '\0', SPILL_NAME_SIZE) == NULL)
        return spill_fail(error, SPILL_INVALID, "%s is longer than %d bytes", field->label,
                          SPILL_NAME_SIZE - 1);
    if (name[0] == '\0')
        return field->required && (!field->pages || spill_schema_of(definition)->has_pages)
                   ? spill_fail(error, SPILL_INVALID, "%s is missing", field->label)
                   : SPILL_OK;
    bool path = is_head_field(definition, field);
    const char *problem = problem_of(path ? SPILL_NAME_OF_HEAD_FIELD : field->role, name);
    return problem == NULL ? SPILL_OK : fail_name(field, name, problem, error);
}

/*
 * Names of one role must differ: they name fields of one document, or the two collections. Names of
 * an element's fields may be equal: an ObjectId is both an id and a time.
 */
static spill_code_t check_distinct(const spill_definition_t *definition, size_t index,
                                   spill_error_t *error)
{
    const spill_name_field_t *field = &spill_name_fields[index];
    const char *name = spill_definition_get_name(definition, field);
    bool bucket = spill_schema_of(definition)->has_windows;
    bool alone = name[0] == '\0' || field->role == SPILL_NAME_OF_ELEMENT_FIELD ||
                 field->role == SPILL_NAME_OF_ELEMENT_ID ||
                 (bucket && field->role == SPILL_NAME_OF_COLLECTION);
    for (size_t i = 0; i < index && !alone; i++) {
        const spill_name_field_t *other = &spill_name_fields[i];
        const char *taken = spill_definition_get_name(definition, other);
        if (other->role != field->role)
            continue;
        if (strcmp(taken, name) == 0)
            return spill_fail(error, SPILL_INVALID, "%s and %s have the same name, '%s'",
                              other->label, field->label, name);
        if (field->role == SPILL_NAME_OF_HEAD_FIELD && taken[0] != '\0' &&
            spill_paths_overlap(taken, name))
            return spill_fail(error, SPILL_INVALID,
                              "%s '%s' and %s '%s': one field would be in the other; give one "
                              "of them another path",
                              other->label, taken, field->label, name);
    }
    return SPILL_OK;
}

/* ---- layouts --------------------------------------------------------------------------------- */

spill_code_t spill_check_referenced(const spill_definition_t *definition, spill_error_t *error)
{
    const struct {
        const char *label, *name;
    } unused[] = {
        {"countField (--count-field)", definition->count_field},
        {"overflowField (--overflow-field)", definition->overflow_field},
        {"pagesField (--pages-field)", definition->pages_field},
        {"pageNumber (--page-number)", definition->page_number},
        {"pageArray (--page-array)", definition->page_array},
        {"pageCount (--page-count)", definition->page_count},
    };
    const char *layout = spill_layout_name(definition->layout);
    if (!spill_schema_of(definition)->appends_to_head)
        return spill_fail(
            error, SPILL_INVALID,
            "layout '%s' has no --keep oldest: each of its elements has a document of "
            "its own, and the head keeps none. Layout 'outlier' can keep the oldest "
            "elements in the head",
            layout);
    if (spill_is_whole_element(definition->id_field) && definition->element_id_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "idField '.': layout '%s' stores the element under elementIdField "
                          "(--element-id-field), which is empty",
                          layout);
    if (spill_stored_element_reserves(definition, definition->id_field))
        return spill_fail(error, SPILL_INVALID,
                          "idField '%s': with layout '%s' this is a field of the document that "
                          "keeps the element, and no element has it",
                          definition->id_field, layout);
    if (definition->order != SPILL_ARRAY_OLDEST_FIRST)
        return spill_fail(error, SPILL_INVALID,
                          "layout '%s': there is no array whose order (--order) could be another",
                          layout);
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        if (unused[i].name[0] != '\0')
            return spill_fail(
                error, SPILL_INVALID,
                "layout '%s' does not use %s: an element is a document of its own; leave it out",
                layout, unused[i].label);
    return SPILL_OK;
}

/* Top-N capped: check its names and its threshold; an append reads all of the head's elements. */
static spill_code_t check_top_n(const spill_definition_t *definition, spill_error_t *error)
{
    if (definition->top_field[0] != '\0' || definition->top_count != 0)
        return spill_fail(error, SPILL_INVALID,
                          "topField and topCount belong to layout 'subset': of layout 'capped' the "
                          "threshold says how many are kept");
    if (has_number(definition->sort_field))
        return fail_name(&spill_name_fields[SPILL_NAME_FIELDS - 1], definition->sort_field,
                         "has a number as a name", error);
    return check_range("threshold (--threshold)", definition->bounds.threshold, 1, SPILL_TOP_MAX,
                       error);
}

/* Check the top before the bounds, which depend on it. */
static spill_code_t check_top(const spill_definition_t *definition, spill_error_t *error)
{
    bool named = definition->top_field[0] != '\0' || definition->sort_field[0] != '\0';
    if (spill_schema_of(definition)->keeps_top_n)
        return check_top_n(definition, error);
    if (spill_schema_of(definition)->has_top && definition->top_field[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "topField (--top-field) is missing");
    if (spill_schema_of(definition)->has_top &&
        spill_stored_element_reserves(definition, definition->sort_field))
        return fail_name(&spill_name_fields[SPILL_NAME_FIELDS - 1], definition->sort_field,
                         "is of the document that an element is kept as, not of the element",
                         error);
    if (spill_schema_of(definition)->has_top && has_number(definition->sort_field))
        return fail_name(&spill_name_fields[SPILL_NAME_FIELDS - 1], definition->sort_field,
                         "has a number as a name", error);
    if (spill_schema_of(definition)->has_top)
        return check_range("topCount (--top)", definition->top_count, 1, SPILL_TOP_MAX, error);
    if (named || definition->top_count != 0)
        return spill_fail(
            error, SPILL_INVALID,
            "topField, sortField and topCount belong to layout 'subset', sortField to "
            "'capped', too");
    return SPILL_OK;
}

spill_code_t spill_check_outlier(const spill_definition_t *definition, spill_error_t *error)
{
    if (definition->page_array[0] == '\0')
        return spill_fail(error, SPILL_INVALID, "pageArray is missing");
    if (definition->value_field[0] != '\0' || definition->stats_count[0] != '\0' ||
        definition->stats_average[0] != '\0')
        return spill_fail(error, SPILL_INVALID,
                          "valueField, statsCount and statsAverage belong to layouts 'reference', "
                          "'subset' and 'bucket'");
    return SPILL_OK;
}

/* ---- layout bucket --------------------------------------------------------------------------- */

static spill_code_t fail_bucket(const char *what, spill_error_t *error)
{
    return spill_fail(error, SPILL_INVALID, "layout 'bucket': %s", what);
}

/* All the fields are in one document, so their names must differ. */
static spill_code_t check_bucket_fields(const spill_definition_t *definition, spill_error_t *error)
{
    const struct {
        const char *label, *name;
    } fields[] = {
        {"array (--array)", definition->array},
        {"pageOwner (--page-owner)", definition->page_owner},
        {"pageNumber (--page-number)", definition->page_number},
        {"windowField (--window-field)", definition->window_field},
        {"statsField (--stats-field)", definition->stats_field},
    };
    enum { FIELDS = sizeof fields / sizeof *fields };
    for (size_t i = 0; i < FIELDS; i++)
        for (size_t k = 0; k < i; k++)
            if (fields[i].name[0] != '\0' && fields[k].name[0] != '\0' &&
                spill_paths_overlap(fields[i].name, fields[k].name))
                return spill_fail(error, SPILL_INVALID,
                                  "layout 'bucket': two fields of a document have the same name, "
                                  "or one is in the other: %s '%s' and %s '%s'; give one of them "
                                  "another name",
                                  fields[k].label, fields[k].name, fields[i].label, fields[i].name);
    return SPILL_OK;
}

spill_code_t spill_check_bucket(const spill_definition_t *definition, spill_error_t *error)
{
    bool by_field = definition->window == SPILL_WINDOW_FIELD;
    if (spill_window_name(definition->window) == NULL)
        return fail_bucket("window (--window) is missing", error);
    if (spill_schema_of(definition)->appends_to_head)
        return fail_bucket("keep is 'oldest': a full window continues in a next part", error);
    if (definition->window_field[0] == '\0')
        return fail_bucket("windowField (--window-field) is missing", error);
    if (by_field != (definition->window_source[0] != '\0'))
        return fail_bucket(by_field ? "window 'field' needs windowSource (--window-source)"
                                    : "windowSource (--window-source) belongs to window 'field'",
                           error);
    if (!by_field && definition->time_field[0] == '\0')
        return fail_bucket("timeField (--time-field) is missing", error);
    if (strcmp(definition->collection, definition->page_collection) != 0 ||
        strcmp(definition->array, definition->page_array) != 0)
        return fail_bucket("pageCollection and pageArray are collection and array", error);
    if (definition->count_field[0] != '\0' || definition->overflow_field[0] != '\0' ||
        definition->pages_field[0] != '\0' || definition->page_count[0] != '\0')
        return fail_bucket("countField, overflowField, pagesField and pageCount are empty: "
                           "a document's count is one of its statistics",
                           error);
    if (definition->keep_elements > 0)
        return fail_bucket("keepElements (--retain-elements) is 0: keepSeconds (--retain-age) says "
                           "what stays",
                           error);
    if (definition->keep_seconds > 0 && by_field)
        return fail_bucket("keepSeconds (--retain-age) needs windows of a time", error);
    return check_bucket_fields(definition, error);
}

static spill_code_t check_no_bucket(const spill_definition_t *definition, spill_error_t *error)
{
    bool named = definition->window != SPILL_WINDOW_NONE || definition->window_source[0] != '\0' ||
                 definition->stats_sum[0] != '\0' || definition->stats_min[0] != '\0' ||
                 definition->stats_max[0] != '\0';
    for (size_t i = 0; i < SPILL_NAME_FIELDS && !named; i++) {
        const spill_name_field_t *field = &spill_name_fields[i];
        named = field->role == SPILL_NAME_OF_BUCKET_FIELD &&
                spill_definition_get_name(definition, field)[0] != '\0';
    }
    return named
               ? spill_fail(error, SPILL_INVALID,
                            "window, statsField, statsSum, statsMin and statsMax belong to layout "
                            "'bucket'")
               : SPILL_OK;
}

/* Refuse options that have no effect in the layout. */
spill_code_t spill_check_capped(const spill_definition_t *definition, spill_error_t *error)
{
    const char *layout = spill_layout_name(definition->layout);
    if (!spill_schema_of(definition)->appends_to_head)
        return spill_fail(error, SPILL_INVALID, "layout %s keeps the newest (--keep newest)",
                          layout);
    if (definition->keep_elements > 0)
        return spill_fail(error, SPILL_INVALID,
                          "layout %s keeps as many as its threshold says: keepElements "
                          "(--retain-elements) has nothing to do there",
                          layout);
    if (definition->value_field[0] != '\0' || definition->stats_count[0] != '\0' ||
        definition->stats_average[0] != '\0')
        return spill_fail(error, SPILL_INVALID,
                          "valueField, statsCount and statsAverage belong to layout 'reference'");
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++)
        if (spill_name_fields[i].pages &&
            spill_definition_get_name(definition, &spill_name_fields[i])[0] != '\0')
            return spill_fail(error, SPILL_INVALID, "%s '%s': layout %s has no pages",
                              spill_name_fields[i].label,
                              spill_definition_get_name(definition, &spill_name_fields[i]), layout);
    for (size_t i = 0; i < SPILL_BOUND_FIELDS; i++)
        if (spill_bound_fields[i].pages &&
            spill_bounds_get(&definition->bounds, &spill_bound_fields[i]) != 0)
            return spill_fail(error, SPILL_INVALID, "%s is given: layout %s has no pages",
                              spill_bound_fields[i].label, layout);
    return SPILL_OK;
}

/* An append must be able to search the array, and then to guard the head. */
bool spill_definition_has_unique(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->appends_to_head && schema->has_pages;
}

spill_code_t spill_definition_carry_unique(const spill_definition_t *from, const char *otherwise,
                                           spill_definition_t *definition, spill_error_t *error)
{
    definition->unique = from->unique;
    if (!from->unique || spill_definition_has_unique(definition))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' keeps each id once (unique), and layout '%s' that keeps the %s cannot; "
                      "layouts 'outlier' that keeps the newest, 'reference' and 'subset' can. %s",
                      from->name, spill_schema_of(definition)->name,
                      spill_keep_name(definition->keep), otherwise);
}

static spill_code_t check_unique(const spill_definition_t *definition, spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    if (!definition->unique)
        return SPILL_OK;
    if (!spill_definition_has_unique(definition))
        return spill_fail(error, SPILL_INVALID,
                          "unique (--unique): layout '%s' that keeps the %s cannot keep each id "
                          "once; layouts 'outlier' that keeps the newest, 'reference' and "
                          "'subset' can",
                          schema->name, spill_keep_name(definition->keep));
    return definition->id_field[0] != '\0'
               ? SPILL_OK
               : spill_fail(error, SPILL_INVALID,
                            "unique (--unique) needs an idField (--id-field); '.' says that an "
                            "element is its own id");
}

/* A program of a later version may have set a field that this version does not know. */
static spill_code_t check_reserved(const spill_definition_t *definition, spill_error_t *error)
{
    for (size_t i = 0; i < sizeof definition->reserved / sizeof *definition->reserved; i++)
        if (definition->reserved[i] != 0)
            return spill_fail(error, SPILL_INVALID,
                              "'%s' was not initialized by spill_definition_init, or has a field "
                              "that this version of Spillway does not know",
                              definition->name);
    return SPILL_OK;
}

spill_code_t spill_definition_check(const spill_definition_t *definition, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    for (size_t i = 0; i < SPILL_NAME_FIELDS; i++) {
        spill_code_t code = check_name(definition, &spill_name_fields[i], error);
        if (code == SPILL_OK)
            code = check_distinct(definition, i, error);
        if (code != SPILL_OK)
            return code;
    }
    if (spill_layout_name(definition->layout) == NULL)
        return spill_fail(error, SPILL_INVALID, "layout %d is not known", (int)definition->layout);
    if (spill_keep_name(definition->keep) == NULL)
        return spill_fail(error, SPILL_INVALID, "keep %d is not known", (int)definition->keep);
    if (spill_array_order_name(definition->order) == NULL)
        return spill_fail(error, SPILL_INVALID, "order %d is not known", (int)definition->order);
    spill_code_t code = spill_schema_of(definition)->check(definition, error);
    if (code == SPILL_OK && !spill_schema_of(definition)->has_windows)
        code = check_no_bucket(definition, error);
    if (code == SPILL_OK && definition->element_id_field[0] != '\0' &&
        !spill_schema_of(definition)->has_referenced_elements)
        code = spill_fail(error, SPILL_INVALID,
                          "elementIdField (--element-id-field) belongs to layouts 'reference' and "
                          "'subset'");
    if (code == SPILL_OK)
        code = check_unique(definition, error);
    if (code == SPILL_OK)
        code = check_top(definition, error);
    if (code == SPILL_OK)
        code = check_reserved(definition, error);
    return code == SPILL_OK ? check_numbers(definition, error) : code;
}
