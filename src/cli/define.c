/* define: save, change, show and list definitions. */
#include "cli/cli.h"

#include "definition/schema.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

typedef struct define_options {
    const char *preset;
    const char *layout;
    const char *keep;
    const char *order;
    int64_t threshold; /* -1: not given, as for the others */
    int64_t page;
    int64_t head_bytes;
    int64_t page_bytes;
    int64_t op_window;
    const char *collection; /* names: NULL if not given, "" for a field that is not written */
    const char *array;
    const char *count_field;
    const char *overflow_field;
    const char *pages_field;
    const char *page_collection;
    const char *page_owner;
    const char *page_number;
    const char *page_array;
    const char *page_count;
    const char *element_id_field; /* layouts reference and subset */
    const char *id_field;
    const char *time_field;
    int64_t retain_elements;
    const char *retain_age;
    const char *window; /* layout bucket, as are the following */
    const char *window_field;
    const char *window_source;
    const char *value_field;
    const char *stats_field;
    const char *stats_count;
    const char *stats_average;
    const char *stats_sum;
    const char *stats_min;
    const char *stats_max;
    const char *top_field; /* layout subset, as are the following */
    const char *sort_by;
    int64_t top;
} define_options_t;

static const define_options_t DEFAULTS = {.threshold = -1,
                                          .page = -1,
                                          .head_bytes = -1,
                                          .page_bytes = -1,
                                          .op_window = -1,
                                          .retain_elements = -1,
                                          .top = -1};

#define NAME_OPTION(field) offsetof(define_options_t, field), offsetof(spill_definition_t, field)

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
    {offsetof(define_options_t, sort_by), offsetof(spill_definition_t, sort_field)},
};

/* ---- listing --------------------------------------------------------------------------------- */

/* Print the options for elements, and the end of the line. */
static void print_elements(const spill_definition_t *definition)
{
    if (definition->element_id_field[0] != '\0')
        printf("; _id of elements in %s", definition->element_id_field);
    if (definition->id_field[0] != '\0')
        spill_cli_print("; ids at %s", definition->id_field);
    if (definition->time_field[0] != '\0')
        spill_cli_print("; times at %s", definition->time_field);
    if (definition->keep_elements > 0)
        spill_cli_print("; keeps the newest %lld", (long long)definition->keep_elements);
    if (definition->keep_seconds > 0)
        spill_cli_print("; keeps the last %lld seconds", (long long)definition->keep_seconds);
    putchar('\n');
}

static void print_bucket(const spill_definition_t *definition)
{
    const spill_bounds_t *bounds = &definition->bounds;
    spill_cli_print("%s: bucket by %s, part %lld elements, %lld bytes, window %d; %s.%s",
                    definition->name, spill_window_name(definition->window),
                    (long long)bounds->page_capacity, (long long)bounds->page_bytes_max,
                    definition->op_window, definition->collection, definition->array);
    if (bounds->threshold != bounds->page_capacity ||
        bounds->head_bytes_max != bounds->page_bytes_max)
        spill_cli_print(", part 0 %lld elements, %lld bytes", (long long)bounds->threshold,
                        (long long)bounds->head_bytes_max);
    if (definition->value_field[0] != '\0')
        spill_cli_print(", statistics of %s", definition->value_field);
    print_elements(definition);
}

static void print_definition(const spill_invocation_t *invocation,
                             const spill_definition_t *definition)
{
    if (invocation->json) {
        bson_t document;
        spill_definition_to_bson(definition, &document);
        spill_cli_print_document(&document, false);
        bson_destroy(&document);
        return;
    }
    if (spill_schema_of(definition)->has_windows) {
        print_bucket(definition);
        return;
    }
    const spill_bounds_t *bounds = &definition->bounds;
    const char *order =
        definition->order == SPILL_ARRAY_NEWEST_FIRST ? ", arrays newest first" : "";
    spill_cli_print("%s: %s, keep %s%s, threshold %lld, ", definition->name,
                    spill_layout_name(definition->layout),
                    spill_schema_of(definition)->keeps_top_n ? "best"
                                                             : spill_keep_name(definition->keep),
                    order, (long long)bounds->threshold);
    if (!spill_schema_of(definition)->has_pages) {
        spill_cli_print("head %lld bytes, window %d; %s.%s", (long long)bounds->head_bytes_max,
                        definition->op_window, definition->collection, definition->array);
        if (spill_schema_of(definition)->keeps_top_n)
            spill_cli_print("; those highest by %s", definition->sort_field);
        print_elements(definition);
        return;
    }
    spill_cli_print("page %lld, head %lld bytes, page %lld bytes, window %d; %s.%s, pages in %s",
                    (long long)bounds->page_capacity, (long long)bounds->head_bytes_max,
                    (long long)bounds->page_bytes_max, definition->op_window,
                    definition->collection, definition->array, definition->page_collection);
    if (spill_schema_of(definition)->has_top)
        spill_cli_print(
            "; %s has the %lld %s%s", definition->top_field, (long long)definition->top_count,
            definition->sort_field[0] != '\0' ? "highest by " : "newest", definition->sort_field);
    print_elements(definition);
}

static spill_code_t list_definitions(const spill_invocation_t *invocation, spill_store_t *store,
                                     spill_error_t *error)
{
    spill_definition_t *definitions = NULL;
    size_t count = 0;
    spill_code_t code = spill_store_definitions(store, &definitions, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        print_definition(invocation, &definitions[i]);
    bson_free(definitions);
    return code;
}

/* ---- from options to a definition ------------------------------------------------------------ */

static spill_code_t set_names(const define_options_t *options, spill_definition_t *definition,
                              spill_error_t *error)
{
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *name = NULL;
        memcpy(&name, (const char *)options + NAMES[i].option, sizeof name);
        if (!name)
            continue;
        if (strlen(name) >= SPILL_NAME_SIZE)
            return spill_fail(error, SPILL_INVALID, "'%.40s...' is longer than %d bytes", name,
                              SPILL_NAME_SIZE - 1);
        strcpy((char *)definition + NAMES[i].field, name);
    }
    return SPILL_OK;
}

static spill_code_t set_kind(const define_options_t *options, spill_definition_t *definition,
                             spill_error_t *error)
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
static void set_bucket(const define_options_t *options, spill_definition_t *definition)
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

static spill_code_t set_retained(const define_options_t *options, spill_definition_t *definition,
                                 spill_error_t *error)
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

static spill_code_t set_bounds(const define_options_t *options, spill_definition_t *definition,
                               spill_error_t *error)
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

/* Report whether any option describes the definition. */
static bool has_options(const define_options_t *options)
{
    return memcmp(options, &DEFAULTS, sizeof DEFAULTS) != 0;
}

/* The preset's or the default definition, with the options applied. */
static spill_code_t make_definition(const spill_invocation_t *invocation,
                                    spill_definition_t *definition, spill_error_t *error)
{
    const define_options_t *options = invocation->options;
    const char *name = invocation->arguments[1];
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

/* Preset gateway: the pages of each array have a collection of their own, and its field's name. */
static spill_code_t name_pages(const define_options_t *options, spill_definition_t *definition,
                               spill_error_t *error)
{
    char pages[2 * SPILL_NAME_SIZE + 8];
    if (!options->preset || strcmp(options->preset, "gateway") != 0)
        return SPILL_OK;
    if (!options->page_array)
        memcpy(definition->page_array, definition->array, sizeof definition->page_array);
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

static spill_code_t apply_options(const define_options_t *options, spill_definition_t *definition,
                                  spill_error_t *error)
{
    SPILL_TRY(set_kind(options, definition, error));
    SPILL_TRY(set_names(options, definition, error));
    SPILL_TRY(name_pages(options, definition, error));
    SPILL_TRY(set_bounds(options, definition, error));
    SPILL_TRY(set_retained(options, definition, error));
    set_bucket(options, definition);
    return spill_definition_check(definition, error);
}

/*
 * The definition that the options change: the preset if one is given, else the stored definition,
 * else the defaults (if --layout says that one must be created).
 */
static spill_code_t starting_point(const spill_invocation_t *invocation, spill_store_t *store,
                                   spill_definition_t *definition, spill_error_t *error)
{
    const define_options_t *options = invocation->options;
    const char *name = invocation->arguments[1];
    if (options->preset)
        return make_definition(invocation, definition, error);
    spill_code_t code = spill_store_definition(store, name, definition, error);
    if (code != SPILL_NOT_FOUND || !has_options(options))
        return code;
    if (!options->layout)
        return spill_fail(
            error, SPILL_INVALID,
            "there is no definition '%s' yet: to create it, give --preset feed, feed-recent, "
            "sales, reviews-separate, reviews-subset or gateway, or --layout outlier, capped, "
            "reference or "
            "subset",
            name);
    return make_definition(invocation, definition, error);
}

/* If saving failed because the definition has another layout, name the command for that. */
static spill_code_t name_convert(const spill_invocation_t *invocation, spill_store_t *store,
                                 spill_code_t failed, spill_error_t *error)
{
    const define_options_t *options = invocation->options;
    const char *name = invocation->arguments[1];
    spill_definition_t there;
    spill_layout_t layout;
    if ((failed != SPILL_INVALID && failed != SPILL_REFUSED) || !options->layout ||
        spill_cli_layout(options->layout, &layout, NULL) != SPILL_OK ||
        spill_store_definition(store, name, &there, NULL) != SPILL_OK || there.layout == layout)
        return failed;
    return spill_fail(error, SPILL_REFUSED,
                      "definition '%s' exists, and its layout is %s: 'spillway convert STORE %s "
                      "--to %s' copies its arrays into a definition of another name",
                      name, spill_layout_name(there.layout), name, options->layout);
}

/*
 * Save it. A definition with data that was saved without an elementIdField keeps none (core), which
 * is an error here if the command line asks for one.
 */
static spill_code_t save_definition(const define_options_t *options, spill_store_t *store,
                                    spill_definition_t *definition, spill_error_t *error)
{
    const char *asked = options->element_id_field;
    char name[SPILL_NAME_SIZE];
    strcpy(name, definition->name);
    SPILL_TRY(spill_store_define(store, definition, error));
    SPILL_TRY(spill_store_definition(store, name, definition, error));
    if (asked && strcmp(definition->element_id_field, asked) != 0)
        return spill_fail(error, SPILL_REFUSED,
                          "definition '%s' has data: elementIdField cannot change from '%s' to "
                          "'%s'; convert it to a definition that has this field",
                          definition->name, definition->element_id_field, asked);
    return SPILL_OK;
}

static spill_code_t define_or_show(const spill_invocation_t *invocation, spill_store_t *store,
                                   spill_error_t *error)
{
    const define_options_t *options = invocation->options;
    spill_definition_t definition;
    spill_code_t code = starting_point(invocation, store, &definition, error);
    if (code == SPILL_OK && !has_options(options)) {
        print_definition(invocation, &definition);
        return SPILL_OK;
    }
    if (code == SPILL_OK)
        code = apply_options(options, &definition, error);
    if (code == SPILL_OK)
        code = save_definition(options, store, &definition, error);
    if (code != SPILL_OK)
        return name_convert(invocation, store, code, error);
    if (!invocation->quiet)
        print_definition(invocation, &definition);
    return code;
}

/* Check a new definition before a store is created for it. */
static spill_code_t check_new(const spill_invocation_t *invocation, spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_TRY(make_definition(invocation, &definition, error));
    return apply_options(invocation->options, &definition, error);
}

static spill_exit_t run_define(const spill_invocation_t *invocation)
{
    const define_options_t *options = invocation->options;
    bool makes = options->preset || options->layout;
    bool changes = has_options(options);
    if (changes && invocation->argument_count == 1)
        return spill_cli_usage(invocation, "NAME is missing");
    spill_cli_mode_t mode = makes ? SPILL_CLI_CREATE : changes ? SPILL_CLI_WRITE : SPILL_CLI_READ;
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_code_t code = makes ? check_new(invocation, &error) : SPILL_OK;
    if (code == SPILL_OK)
        code = spill_cli_open_store(invocation, mode, &store, &error);
    if (code == SPILL_OK)
        code = invocation->argument_count == 1 ? list_definitions(invocation, store, &error)
                                               : define_or_show(invocation, store, &error);
    return spill_cli_close(NULL, store, code, &error);
}

#define TEXT(field) SPILL_OPTION_TEXT, offsetof(define_options_t, field)
#define NUMBER(field) SPILL_OPTION_NUMBER, offsetof(define_options_t, field)
#define SIZE(field) SPILL_OPTION_SIZE, offsetof(define_options_t, field)

static const spill_option_t OPTIONS[] = {
    {"preset", "P", TEXT(preset),
     "Start from feed, feed-recent, sales, reviews-separate, reviews-subset, reviews-bucket, "
     "gateway"},
    {"layout", "L", TEXT(layout), "Layout: outlier, capped, reference, subset or bucket"},
    {"keep", "newest|oldest", TEXT(keep), "Which elements the head keeps"},
    {"order", "oldest-first|newest-first", TEXT(order), "Which end of an array is its start"},
    {"threshold", "N", NUMBER(threshold),
     "Elements that a head is meant to hold; capped: the most"},
    {"page", "N", NUMBER(page), "Most elements in a page"},
    {"max-bytes", "SIZE", SIZE(head_bytes), "Most bytes of a head, and of a page"},
    {"page-bytes", "SIZE", SIZE(page_bytes), "Most bytes of a page, if different"},
    {"op-window", "N", NUMBER(op_window), "Operation ids remembered for each owner"},
    {"collection", "C", TEXT(collection), "Collection of the heads"},
    {"array", "F", TEXT(array), "The head's array field"},
    {"count-field", "F", TEXT(count_field), "The head's count field, or '' for none"},
    {"overflow-field", "F", TEXT(overflow_field), "The head's flag of having pages, or ''"},
    {"pages-field", "F", TEXT(pages_field), "The head's number of pages, or ''"},
    {"page-collection", "C", TEXT(page_collection), "Collection of the pages"},
    {"page-owner", "F", TEXT(page_owner), "A page's owner field"},
    {"page-number", "F", TEXT(page_number), "A page's number, or ''"},
    {"page-array", "F", TEXT(page_array), "A page's array field"},
    {"page-count", "F", TEXT(page_count), "A page's count field, or ''"},
    {"element-id-field", "F", TEXT(element_id_field),
     "Layouts reference, subset: where an element's document stores the element's _id, or ''"},
    {"id-field", "PATH", TEXT(id_field), "Where an element has its id, or '' for none"},
    {"time-field", "PATH", TEXT(time_field), "Where an element has its time, or '' for none"},
    {"retain-elements", "N", NUMBER(retain_elements),
     "Keep the newest N elements; drop older ones. 0: keep all"},
    {"retain-age", "DURATION", TEXT(retain_age),
     "Keep elements younger than this (12h, 30d); drop older ones. 0: keep all"},
    {"window", "W", TEXT(window), "Layout bucket: hour, day, week, month, year, or field"},
    {"window-field", "F", TEXT(window_field), "A document's field that names its window"},
    {"window-source", "F", TEXT(window_source), "Window field: the element's field that names it"},
    {"value-field", "F", TEXT(value_field), "An element's number for the statistics, or ''"},
    {"stats-field", "F", TEXT(stats_field), "A document's statistics, or '' for none"},
    {"stats-count", "F", TEXT(stats_count), "In them the number of elements, or ''"},
    {"stats-average", "F", TEXT(stats_average), "The average, or ''"},
    {"stats-sum", "F", TEXT(stats_sum), "The sum, or ''"},
    {"stats-min", "F", TEXT(stats_min), "The least value, or ''"},
    {"stats-max", "F", TEXT(stats_max), "The greatest value, or ''"},
    {"top", "K", NUMBER(top), "Layout subset: elements in the summary, 1 to 1000"},
    {"top-field", "F", TEXT(top_field), "The summary's array of them"},
    {"sort-by", "PATH", TEXT(sort_by),
     "What they rank by, or '' for the newest; capped: the highest are kept"},
    {0}};

const spill_command_t spill_command_define = {
    .name = "define",
    .arguments = "STORE [NAME]",
    .arguments_min = 1,
    .arguments_max = 2,
    .summary = "Save a definition in the store, or list them",
    .text =
        "Without NAME, lists the definitions; with NAME alone, shows that one. Options "
        "create a definition (and the store), or change the existing one. Once it has "
        "data, only its bounds and its window may change; anything else is refused (exit "
        "code 4).\n"
        "\n"
        "Presets: feed (the oldest 1000 in the head), feed-recent (the newest 1000 in the "
        "head), sales (the oldest 50 in the head; names as in the MongoDB manual's example), "
        "reviews-separate (layout reference: each element is a document in another collection, "
        "with a summary in the head; --array names the summary), "
        "reviews-subset (the same, with the 3 best rated in the summary), "
        "reviews-bucket (product reviews by month, with statistics of their ratings), "
        "gateway (for `spillway serve': the newest 1000 in the head, and no fields besides the "
        "application's; its pages are in COLLECTION.ARRAY.pages).\n"
        "\n"
        "Layout bucket: a document for each window of an owner, by --time-field in UTC; a full "
        "window continues in another part. Heads and pages are parts: --page-owner is the "
        "documents' owner field, --page the most elements of a part (and --threshold, if it is "
        "different, of the first).\n"
        "\n"
        "Layout subset shows in the summary the K elements (--top K) that rank highest by a number "
        "or a time in them (--sort-by PATH; '': the newest). Each element has a document of "
        "its own. K cannot change. A decimal128 ranks like a missing value.\n"
        "\n"
        "Layout capped keeps the newest N elements of each owner (--threshold N), as many as "
        "fit --max-bytes, in one document, and drops older ones for good: recently viewed "
        "products, the last logins, the end of a log. With --sort-by PATH it keeps "
        "the N (1 to 1000) that rank highest by a number (int32, int64 or double) or a time in "
        "them, and drops the lowest: high scores, the best offers. read --top reads them by "
        "rank. Dates rank above numbers, and numbers above all else; of equals the newer ranks "
        "higher. An element with a decimal128 there is refused. The head's other fields count "
        "towards --max-bytes: as they grow, fewer elements may stay. trim --keep N keeps the "
        "newest N, not the best.\n"
        "\n"
        "Examples:\n"
        "  spillway define feeds.db events --preset feed-recent\n"
        "  spillway define feeds.db events --threshold 500 --page 2000\n"
        "  spillway define feeds.db visits --layout outlier --keep oldest \\\n"
        "    --collection pages --array visits \\\n"
        "    --page-collection moreVisits --page-array visits\n"
        "  spillway define shop.db reviews --preset reviews-separate\n"
        "  spillway define shop.db reviews --preset reviews-subset --top 5 --sort-by ''\n"
        "  spillway define shop.db reviews --preset reviews-bucket --window week\n"
        "  spillway define feeds.db viewed --layout capped --threshold 50 \\\n"
        "    --order newest-first --collection users --array recentlyViewed \\\n"
        "    --count-field ''\n"
        "  spillway define feeds.db --json",
    .common = SPILL_COMMON_JSON | SPILL_COMMON_QUIET | SPILL_COMMON_DURABILITY | SPILL_COMMON_MODE,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_define};
