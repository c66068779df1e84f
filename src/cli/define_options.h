/*
 * The options that describe a definition: `define` saves the definition, and `plan-set` writes it
 * into a plan.
 */
#ifndef SPILL_CLI_DEFINE_OPTIONS_H
#define SPILL_CLI_DEFINE_OPTIONS_H

#include "cli/cli.h"

typedef struct spill_cli_define_options {
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
    bool unique;
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
} spill_cli_define_options_t;

/* No option is given. */
#define SPILL_CLI_DEFINE_DEFAULTS                                                                  \
    {                                                                                              \
        .threshold = -1, .page = -1, .head_bytes = -1, .page_bytes = -1, .op_window = -1,          \
        .retain_elements = -1, .top = -1                                                           \
    }

/* Rows for a command's options; its struct `type` has a spill_cli_define_options_t as `member`. */
#define SPILL_CLI_DEFINE_OPTIONS(type, member)                                                     \
    {"preset", "P", SPILL_OPTION_TEXT, offsetof(type, member.preset),                              \
     "Start from feed, feed-recent, sales, reviews-separate, reviews-subset, reviews-bucket, "     \
     "gateway"},                                                                                   \
        {"layout", "LAYOUT", SPILL_OPTION_TEXT, offsetof(type, member.layout),                     \
         "Layout: outlier, capped, reference, subset or bucket"},                                  \
        {"keep", "newest|oldest", SPILL_OPTION_TEXT, offsetof(type, member.keep),                  \
         "Which elements the head keeps"},                                                         \
        {"order", "oldest-first|newest-first", SPILL_OPTION_TEXT, offsetof(type, member.order),    \
         "Which end of an array is its start"},                                                    \
        {"threshold", "N", SPILL_OPTION_NUMBER, offsetof(type, member.threshold),                  \
         "Elements that a head is meant to hold; capped: the most"},                               \
        {"page", "N", SPILL_OPTION_NUMBER, offsetof(type, member.page),                            \
         "Most elements in a page"},                                                               \
        {"max-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.head_bytes),                \
         "Most bytes of a head, and of a page"},                                                   \
        {"page-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.page_bytes),               \
         "Most bytes of a page, if different"},                                                    \
        {"op-window", "N", SPILL_OPTION_NUMBER, offsetof(type, member.op_window),                  \
         "Operation ids remembered for each owner"},                                               \
        {"collection", "C", SPILL_OPTION_TEXT, offsetof(type, member.collection),                  \
         "Collection of the heads"},                                                               \
        {"array", "F", SPILL_OPTION_TEXT, offsetof(type, member.array),                            \
         "The head's array field; a path such as stats.events is in a sub-document"},              \
        {"count-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.count_field),                \
         "The head's count field, or '' for none"},                                                \
        {"overflow-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.overflow_field),          \
         "The head's flag of having pages, or ''"},                                                \
        {"pages-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.pages_field),                \
         "The head's number of pages, or ''"},                                                     \
        {"page-collection", "C", SPILL_OPTION_TEXT, offsetof(type, member.page_collection),        \
         "Collection of the pages"},                                                               \
        {"page-owner", "F", SPILL_OPTION_TEXT, offsetof(type, member.page_owner),                  \
         "A page's owner field"},                                                                  \
        {"page-number", "F", SPILL_OPTION_TEXT, offsetof(type, member.page_number),                \
         "A page's number, or ''"},                                                                \
        {"page-array", "F", SPILL_OPTION_TEXT, offsetof(type, member.page_array),                  \
         "A page's array field"},                                                                  \
        {"page-count", "F", SPILL_OPTION_TEXT, offsetof(type, member.page_count),                  \
         "A page's count field, or ''"},                                                           \
        {"element-id-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.element_id_field),      \
         "Layouts reference, subset: where an element's document stores the element's _id, or "    \
         "''"},                                                                                    \
        {"id-field", "PATH", SPILL_OPTION_TEXT, offsetof(type, member.id_field),                   \
         "Where an element has its id ('.': it is its id), or '' for none"},                       \
        {"unique", NULL, SPILL_OPTION_FLAG, offsetof(type, member.unique),                         \
         "Keep each id once: appends leave out elements whose ids the array has"},                 \
        {"time-field", "PATH", SPILL_OPTION_TEXT, offsetof(type, member.time_field),               \
         "Where an element has its time, or '' for none"},                                         \
        {"retain-elements", "N", SPILL_OPTION_NUMBER, offsetof(type, member.retain_elements),      \
         "Keep the newest N elements; drop older ones. 0: keep all"},                              \
        {"retain-age", "DURATION", SPILL_OPTION_TEXT, offsetof(type, member.retain_age),           \
         "Keep elements younger than this (12h, 30d); drop older ones. 0: keep all"},              \
        {"window", "W", SPILL_OPTION_TEXT, offsetof(type, member.window),                          \
         "Layout bucket: hour, day, week, month, year, or field"},                                 \
        {"window-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.window_field),              \
         "A document's field that names its window"},                                              \
        {"window-source", "F", SPILL_OPTION_TEXT, offsetof(type, member.window_source),            \
         "Window field: the element's field that names it"},                                       \
        {"value-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.value_field),                \
         "An element's number for the statistics, or ''"},                                         \
        {"stats-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_field),                \
         "A document's statistics, or '' for none"},                                               \
        {"stats-count", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_count),                \
         "In them the number of elements, or ''"},                                                 \
        {"stats-average", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_average),            \
         "The average, or ''"},                                                                    \
        {"stats-sum", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_sum), "The sum, or ''"}, \
        {"stats-min", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_min),                    \
         "The least value, or ''"},                                                                \
        {"stats-max", "F", SPILL_OPTION_TEXT, offsetof(type, member.stats_max),                    \
         "The greatest value, or ''"},                                                             \
        {"top", "K", SPILL_OPTION_NUMBER, offsetof(type, member.top),                              \
         "Layout subset: elements in the summary, 1 to 1000"},                                     \
        {"top-field", "F", SPILL_OPTION_TEXT, offsetof(type, member.top_field),                    \
         "The summary's array of them"},                                                           \
    {                                                                                              \
        "sort-by", "PATH", SPILL_OPTION_TEXT, offsetof(type, member.sort_by),                      \
            "What they rank by, or '' for the newest; capped: the highest are kept"                \
    }

/* Is any option given? */
bool spill_cli_define_given(const spill_cli_define_options_t *options);

/*
 * Make the definition from which the options start: the preset's if one is given, else the preset
 * of the layout that is given, else the defaults. SPILL_INVALID: there is no such preset.
 */
spill_code_t spill_cli_define_start(const spill_cli_define_options_t *options, const char *name,
                                    spill_definition_t *definition, spill_error_t *error);

/* Apply the options to a definition, and check it. SPILL_INVALID: the message names what is wrong.
 */
spill_code_t spill_cli_define_apply(const spill_cli_define_options_t *options,
                                    spill_definition_t *definition, spill_error_t *error);

#endif
