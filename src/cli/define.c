/* define: save, change, show and list definitions. */
#include "cli/define_options.h"
#include "cli/server_notes.h"
#include "definition/schema.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

typedef struct define_options {
    spill_cli_define_options_t define;
    const char *like; /* a stored definition; NULL: none */
} define_options_t;

static const define_options_t DEFAULTS = {.define = SPILL_CLI_DEFINE_DEFAULTS};

static const spill_cli_define_options_t *options_of(const spill_invocation_t *invocation)
{
    return &((const define_options_t *)invocation->options)->define;
}

static const char *like_of(const spill_invocation_t *invocation)
{
    return ((const define_options_t *)invocation->options)->like;
}

/* ---- listing --------------------------------------------------------------------------------- */

/* Print the options for elements, and the end of the line. */
static void print_elements(const spill_definition_t *definition)
{
    if (definition->element_id_field[0] != '\0')
        printf("; _id of elements in %s", definition->element_id_field);
    if (definition->id_field[0] != '\0')
        spill_cli_print("; ids at %s%s", definition->id_field,
                        definition->unique ? ", each once" : "");
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

/* The settings of the definition that --like names, with the new name. */
static spill_code_t start_like(const spill_invocation_t *invocation, spill_store_t *store,
                               spill_definition_t *definition, spill_error_t *error)
{
    const char *name = invocation->arguments[1];
    SPILL_TRY(spill_store_definition(store, like_of(invocation), definition, error));
    if (strlen(name) >= SPILL_NAME_SIZE)
        return spill_fail(error, SPILL_INVALID, "NAME is longer than %d bytes",
                          SPILL_NAME_SIZE - 1);
    strcpy(definition->name, name);
    return SPILL_OK;
}

/*
 * The definition that the options change: the one of --like, or the preset if one is given, else
 * the stored definition, else the defaults (if --layout says that one must be created).
 */
static spill_code_t starting_point(const spill_invocation_t *invocation, spill_store_t *store,
                                   spill_definition_t *definition, spill_error_t *error)
{
    const spill_cli_define_options_t *options = options_of(invocation);
    const char *name = invocation->arguments[1];
    if (like_of(invocation))
        return start_like(invocation, store, definition, error);
    if (options->preset)
        return spill_cli_define_start(options, name, definition, error);
    spill_code_t code = spill_store_definition(store, name, definition, error);
    if (code != SPILL_NOT_FOUND || !spill_cli_define_given(options))
        return code;
    if (!options->layout)
        return spill_fail(
            error, SPILL_INVALID,
            "there is no definition '%s' yet: to create it, give --preset feed, feed-recent, "
            "sales, reviews-separate, reviews-subset or gateway, or --layout outlier, capped, "
            "reference or "
            "subset",
            name);
    return spill_cli_define_start(options, name, definition, error);
}

/* If saving failed because the definition has another layout, name the command for that. */
static spill_code_t name_convert(const spill_invocation_t *invocation, spill_store_t *store,
                                 spill_code_t failed, spill_error_t *error)
{
    const spill_cli_define_options_t *options = options_of(invocation);
    const char *name = invocation->arguments[1];
    spill_definition_t there;
    spill_layout_t layout;
    if ((failed != SPILL_INVALID && failed != SPILL_REFUSED) || !options->layout ||
        spill_cli_layout(options->layout, &layout, NULL) != SPILL_OK ||
        spill_store_definition(store, name, &there, NULL) != SPILL_OK || there.layout == layout)
        return failed;
    return spill_fail(error, SPILL_REFUSED,
                      "definition '%s' exists, and its layout is %s: 'spillway convert STORE %s "
                      "--layout %s' copies its arrays into a definition of another name",
                      name, spill_layout_name(there.layout), name, options->layout);
}

/*
 * Save it. A definition with data that was saved without an elementIdField keeps none (core), which
 * is an error here if the command line asks for one.
 */
static spill_code_t save_definition(const spill_cli_define_options_t *options, spill_store_t *store,
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

/* Is it as preset `gateway` makes it? */
static bool is_for_gateway(const spill_definition_t *definition)
{
    char pages[2 * SPILL_NAME_SIZE + 8];
    snprintf(pages, sizeof pages, "%s.%s.pages", definition->collection, definition->array);
    return strcmp(definition->page_collection, pages) == 0;
}

/* The gateway serves one definition of a collection. *shared is the name of another one, or "". */
static spill_code_t find_shared(spill_store_t *store, const spill_definition_t *definition,
                                char shared[SPILL_NAME_SIZE], spill_error_t *error)
{
    spill_definition_t *all = NULL;
    size_t count = 0;
    shared[0] = '\0';
    spill_code_t code = spill_store_definitions(store, &all, &count, error);
    for (size_t i = 0; code == SPILL_OK && i < count; i++)
        if (strcmp(all[i].name, definition->name) != 0 &&
            strcmp(all[i].collection, definition->collection) == 0 &&
            (is_for_gateway(definition) || is_for_gateway(&all[i])))
            strcpy(shared, all[i].name);
    bson_free(all);
    return code;
}

/*
 * A second definition of a served collection would end its service within seconds: refuse it before
 * it is saved. If both are saved already, only warn, so that they can be changed.
 */
static spill_code_t check_shared(spill_store_t *store, const spill_definition_t *definition,
                                 spill_error_t *error)
{
    char shared[SPILL_NAME_SIZE];
    spill_definition_t there;
    SPILL_TRY(find_shared(store, definition, shared, error));
    if (shared[0] == '\0')
        return SPILL_OK;
    if (spill_store_definition(store, definition->name, &there, NULL) != SPILL_OK ||
        strcmp(there.collection, definition->collection) != 0)
        return spill_fail(
            error, SPILL_REFUSED,
            "the definition '%s' is of the collection '%s', too, and `spillway serve` "
            "serves one definition of a collection: with both it would refuse reads "
            "and writes of their arrays. Nothing was saved. To remove '%s': `spillway migrate "
            "STORE %s --undo --execute` keeps its elements, in plain arrays; `spillway drop STORE "
            "%s` deletes them",
            shared, definition->collection, shared, shared, shared);
    fprintf(stderr,
            "spillway: warning: the definitions '%s' and '%s' share the collection '%s', so "
            "`spillway serve` refuses reads and writes of their arrays: it serves one definition "
            "of a collection\n",
            definition->name, shared, definition->collection);
    return SPILL_OK;
}

static bool changes_definition(const spill_invocation_t *invocation)
{
    return like_of(invocation) || spill_cli_define_given(options_of(invocation));
}

static spill_code_t define_or_show(const spill_invocation_t *invocation, spill_store_t *store,
                                   spill_error_t *error)
{
    spill_cli_define_options_t options = *options_of(invocation);
    spill_definition_t definition;
    spill_code_t code = starting_point(invocation, store, &definition, error);
    if (code == SPILL_OK && !changes_definition(invocation)) {
        print_definition(invocation, &definition);
        return SPILL_OK;
    }
    if (code == SPILL_OK && like_of(invocation) && is_for_gateway(&definition))
        options.preset = "gateway"; /* name the pages after the new array */
    if (code == SPILL_OK)
        code = spill_cli_define_apply(&options, &definition, error);
    if (code == SPILL_OK)
        code = check_shared(store, &definition, error);
    if (code == SPILL_OK)
        code = save_definition(&options, store, &definition, error);
    if (code != SPILL_OK)
        return name_convert(invocation, store, code, error);
    if (invocation->quiet)
        return SPILL_OK;
    print_definition(invocation, &definition);
    spill_cli_note_definition(invocation, &definition, is_for_gateway(&definition));
    return SPILL_OK;
}

/* Check a new definition before a store is created for it. */
static spill_code_t check_new(const spill_invocation_t *invocation, spill_error_t *error)
{
    spill_definition_t definition;
    SPILL_TRY(spill_cli_define_start(options_of(invocation), invocation->arguments[1], &definition,
                                     error));
    return spill_cli_define_apply(options_of(invocation), &definition, error);
}

static spill_exit_t run_define(const spill_invocation_t *invocation)
{
    const spill_cli_define_options_t *options = options_of(invocation);
    bool makes = !like_of(invocation) && (options->preset || options->layout);
    bool changes = changes_definition(invocation);
    if (changes && invocation->argument_count == 1)
        return spill_cli_usage(invocation, "NAME is missing");
    if (options->preset && strcmp(options->preset, "gateway") == 0 &&
        (!options->collection || !options->array))
        return spill_cli_usage(invocation, "preset gateway needs --collection and --array");
    if (like_of(invocation) && options->preset)
        return spill_cli_usage(invocation, "give one of --like and --preset");
    if (like_of(invocation) && strcmp(like_of(invocation), invocation->arguments[1]) == 0)
        return spill_cli_usage(invocation, "--like names another definition, not '%s' itself",
                               like_of(invocation));
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

static const spill_option_t OPTIONS[] = {
    {"like", "NAME", SPILL_OPTION_TEXT, offsetof(define_options_t, like),
     "Start from the settings of this definition of the store"},
    SPILL_CLI_DEFINE_OPTIONS(define_options_t, define),
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
        "gateway (for `spillway serve`: the newest 1000 in the head, and no fields besides the "
        "application's; its pages are in COLLECTION.ARRAY.pages).\n"
        "\n"
        "--like NAME takes all settings of another definition of the store, and the other options "
        "replace single ones. The new definition needs another collection or another array. If the "
        "other one is for the gateway, the pages are named after the new collection and array.\n"
        "\n"
        "--array, --count-field, --overflow-field and --pages-field may be paths into "
        "sub-documents, such as stats.events (at most 8 names). A path cannot go through an array, "
        "and a field of a page is no path.\n"
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
        "  spillway define mongodb://localhost/shop fans.likes --like posts.comments --collection "
        "fans --array "
        "likes\n"
        "  spillway define feeds.db --json",
    .common = SPILL_COMMON_FOLDS | SPILL_COMMON_JSON | SPILL_COMMON_QUIET |
              SPILL_COMMON_DURABILITY | SPILL_COMMON_MODE,
    .options = OPTIONS,
    .defaults = &DEFAULTS,
    .options_bytes = sizeof DEFAULTS,
    .run = run_define};
