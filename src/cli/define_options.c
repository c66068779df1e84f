/* The options that describe a definition, and how they change one. */
#include "cli/define_options.h"

#include "bson/field_path.h"
#include "definition/schema.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

spill_code_t spill_cli_define_start(const spill_cli_define_options_t *options, const char *name,
                                    spill_definition_t *definition, spill_error_t *error)
{
    const char *preset = options->preset;
    if (!preset && options->layout && strcmp(options->layout, "reference") == 0)
        preset = "reviews-separate";
    if (!preset && options->layout && strcmp(options->layout, "subset") == 0)
        preset = "reviews-subset";
    if (!preset && options->layout && strcmp(options->layout, "bucket") == 0)
        preset = "reviews-bucket";
    if (!preset) {
        spill_definition_init(definition, name);
        return SPILL_OK;
    }
    spill_code_t code = spill_definition_preset(definition, preset, name, error);
    return code == SPILL_NOT_FOUND ? (error->code = SPILL_INVALID) : code;
}

#define NAME_OPTION(field)                                                                         \
    offsetof(spill_cli_define_options_t, field), offsetof(spill_definition_t, field)

/* The field of the definition for the name in each option. */
static const struct {
    size_t option;
    size_t field;
} NAMES[] = {
    {NAME_OPTION(collection)},
    {NAME_OPTION(array)},
    {NAME_OPTION(count_field)},
    {NAME_OPTION(overflow_field)},
    {NAME_OPTION(pages_field)},
    {NAME_OPTION(page_collection)},
    {NAME_OPTION(page_owner)},
    {NAME_OPTION(page_number)},
    {NAME_OPTION(page_array)},
    {NAME_OPTION(page_count)},
    {NAME_OPTION(element_id_field)},
    {NAME_OPTION(id_field)},
    {NAME_OPTION(time_field)},
    {NAME_OPTION(window_field)},
    {NAME_OPTION(window_source)},
    {NAME_OPTION(value_field)},
    {NAME_OPTION(stats_field)},
    {NAME_OPTION(stats_count)},
    {NAME_OPTION(stats_average)},
    {NAME_OPTION(stats_sum)},
    {NAME_OPTION(stats_min)},
    {NAME_OPTION(stats_max)},
    {NAME_OPTION(top_field)},
    {offsetof(spill_cli_define_options_t, sort_by), offsetof(spill_definition_t, sort_field)},
};

static const char *name_given(const spill_cli_define_options_t *options, size_t option)
{
    const char *name = NULL;
    memcpy(&name, (const char *)options + option, sizeof name);
    return name;
}

bool spill_cli_define_given(const spill_cli_define_options_t *options)
{
    const int64_t numbers[] = {options->threshold,  options->page,      options->head_bytes,
                               options->page_bytes, options->op_window, options->retain_elements,
                               options->top};
    bool given = options->preset || options->layout || options->keep || options->order ||
                 options->retain_age || options->window || options->unique;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        given = given || numbers[i] != -1;
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        given = given || name_given(options, NAMES[i].option);
    return given;
}

static spill_code_t set_names(const spill_cli_define_options_t *options,
                              spill_definition_t *definition, spill_error_t *error)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *name = name_given(options, NAMES[i].option);
        if (!name)
            continue;
        if (strlen(name) >= SPILL_NAME_SIZE)
            return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %d bytes", name,
                              SPILL_NAME_SIZE - 1);
        strcpy((char *)definition + NAMES[i].field, name);
    }
    return SPILL_OK;
}

static spill_code_t set_kind(const spill_cli_define_options_t *options,
                             spill_definition_t *definition, spill_error_t *error)
{
    spill_layout_t layout = definition->layout;
    SPILL_TRY(spill_cli_layout(options->layout, &layout, error));
    if (layout != definition->layout)
        spill_definition_set_layout(definition, layout);
    if (options->window && !spill_window_of_name(options->window, &definition->window))
        return spill_fail(error, SPILL_INVALID,
                          "--window must be hour, day, week, month, year or field, not '%s'",
                          options->window);
    if (options->order && !spill_array_order_of_name(options->order, &definition->order))
        return spill_fail(error, SPILL_INVALID,
                          "--order must be 'oldest-first' or 'newest-first', not '%s'",
                          options->order);
    return spill_cli_keep(options->keep, &definition->keep, error);
}

/* One collection, and one array in its documents; equal bounds for all parts by default. */
static void set_bucket(const spill_cli_define_options_t *options, spill_definition_t *definition)
{
    if (!spill_schema_of(definition)->has_windows)
        return;
    if (!options->page_collection)
        memcpy(definition->page_collection, definition->collection, SPILL_NAME_SIZE);
    if (!options->page_array)
        memcpy(definition->page_array, definition->array, SPILL_NAME_SIZE);
    if (options->page >= 0 && options->threshold < 0)
        definition->bounds.threshold = options->page;
    if (options->threshold >= 0 && options->page < 0)
        definition->bounds.page_capacity = options->threshold;
}

static void set_number(int64_t given, int64_t *bound)
{
    if (given >= 0)
        *bound = given;
}

static spill_code_t set_retained(const spill_cli_define_options_t *options,
                                 spill_definition_t *definition, spill_error_t *error)
{
    const char *age = options->retain_age;
    set_number(options->retain_elements, &definition->keep_elements);
    if (age && (age[0] == '\0' || strcmp(age, "0") == 0))
        definition->keep_seconds = 0;
    else if (age && !spill_cli_parse_duration(age, &definition->keep_seconds))
        return spill_fail(error, SPILL_INVALID,
                          "--retain-age: '%.60s' is not a duration such as 12h or 30d", age);
    return SPILL_OK;
}

static spill_code_t set_bounds(const spill_cli_define_options_t *options,
                               spill_definition_t *definition, spill_error_t *error)
{
    set_number(options->threshold, &definition->bounds.threshold);
    set_number(options->page, &definition->bounds.page_capacity);
    set_number(options->head_bytes, &definition->bounds.head_bytes_max);
    if (spill_schema_of(definition)->has_pages)
        set_number(options->head_bytes, &definition->bounds.page_bytes_max);
    set_number(options->page_bytes, &definition->bounds.page_bytes_max);
    set_number(options->top, &definition->top_count);
    if (options->op_window > INT32_MAX)
        return spill_fail(error, SPILL_INVALID, "--op-window is too large");
    if (options->op_window >= 0)
        definition->op_window = (int32_t)options->op_window;
    return SPILL_OK;
}

/* Preset gateway: the pages of each array have a collection of their own, and its field's name. */
static spill_code_t name_pages(const spill_cli_define_options_t *options,
                               spill_definition_t *definition, spill_error_t *error)
{
    char pages[2 * SPILL_NAME_SIZE + 8];
    if (!options->preset || strcmp(options->preset, "gateway") != 0)
        return SPILL_OK;
    if (!options->page_array)
        strcpy(definition->page_array, spill_path_leaf(definition->array));
    if (options->page_collection)
        return SPILL_OK;
    snprintf(pages, sizeof pages, "%s.%s.pages", definition->collection, definition->array);
    if (strlen(pages) >= sizeof definition->page_collection)
        return spill_fail(error, SPILL_INVALID,
                          "the name '%.60s...' of the pages would be too long: give "
                          "--page-collection",
                          pages);
    memcpy(definition->page_collection, pages, strlen(pages) + 1);
    return SPILL_OK;
}

spill_code_t spill_cli_define_apply(const spill_cli_define_options_t *options,
                                    spill_definition_t *definition, spill_error_t *error)
{
    SPILL_TRY(set_kind(options, definition, error));
    SPILL_TRY(set_names(options, definition, error));
    SPILL_TRY(name_pages(options, definition, error));
    SPILL_TRY(set_bounds(options, definition, error));
    SPILL_TRY(set_retained(options, definition, error));
    set_bucket(options, definition);
    definition->unique = definition->unique || options->unique;
    return spill_definition_check(definition, error);
}
