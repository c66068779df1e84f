/*
 * The presets, which have the same fields as the documents in descriptions of the patterns, and the
 * threshold for a size of elements.
 */
#include "definition/schema.h"
#include "util/error.h"

#include <spillway/definition.h>

#include <stdio.h>
#include <string.h>

/*
 * A head or a page is read and rewritten as a whole, which is quick up to about a megabyte. With
 * the usual 1000 elements the count is the effective bound for elements of up to 1 KiB.
 */
#define DEFAULT_BYTES_MAX (1024 * 1024)
#define DEFAULT_OP_WINDOW 64
/*
 * The gateway's heads: a push rewrites the array. Elements of 64 bytes make 64 KB; larger ones need
 * a lower threshold (spill_threshold(65536, bytes)).
 */
#define GATEWAY_THRESHOLD 1000

#define FEED_FIELDS                                                                                \
    .layout = SPILL_LAYOUT_OUTLIER, .op_window = DEFAULT_OP_WINDOW, .collection = "users",         \
    .array = "activities", .count_field = "activityCount", .overflow_field = "hasOverflow",        \
    .pages_field = "overflowPages", .page_collection = "overflowActivities",                       \
    .page_owner = "userId", .page_number = "page", .page_array = "activities",                     \
    .page_count = "count"

#define BOUNDS(threshold_count, page_count)                                                        \
    .bounds = {.threshold = (threshold_count),                                                     \
               .page_capacity = (page_count),                                                      \
               .head_bytes_max = DEFAULT_BYTES_MAX,                                                \
               .page_bytes_max = DEFAULT_BYTES_MAX}

/* Each review is a document of its own. */
#define REVIEWS_FIELDS                                                                             \
    .keep = SPILL_KEEP_NEWEST, BOUNDS(1, 1000), .op_window = DEFAULT_OP_WINDOW,                    \
    .collection = "products", .array = "reviewSummary", .page_collection = "reviews",              \
    .page_owner = "productId", .element_id_field = SPILL_ELEMENT_ID_FIELD,                         \
    .time_field = "createdAt", .value_field = "rating", .stats_count = "totalCount",               \
    .stats_average = "averageRating"

static const char *const preset_names[] = {
    "feed",           "feed-recent",    "sales",   "reviews-separate",
    "reviews-bucket", "reviews-subset", "gateway", NULL};

static const spill_definition_t preset_definitions[] = {
    {.keep = SPILL_KEEP_OLDEST, BOUNDS(1000, 1000), FEED_FIELDS},
    {.keep = SPILL_KEEP_NEWEST, BOUNDS(1000, 1000), FEED_FIELDS},
    {
        .layout = SPILL_LAYOUT_OUTLIER,
        .keep = SPILL_KEEP_OLDEST,
        BOUNDS(50, 1000),
        .op_window = DEFAULT_OP_WINDOW,
        .collection = "sales",
        .array = "customers_purchased",
        .overflow_field = "has_extras",
        .page_collection = "extra_sales",
        .page_owner = "book_id",
        .page_array = "customers_purchased_extra",
    },
    {
        .layout = SPILL_LAYOUT_REFERENCE,
        REVIEWS_FIELDS,
    },
    {
        .layout = SPILL_LAYOUT_BUCKET,
        .keep = SPILL_KEEP_OLDEST,
        BOUNDS(1000, 1000),
        .op_window = DEFAULT_OP_WINDOW,
        .collection = "reviewBuckets",
        .array = "reviews",
        .page_collection = "reviewBuckets",
        .page_owner = "productId",
        .page_array = "reviews",
        .time_field = "createdAt",
        .window = SPILL_WINDOW_MONTH,
        .window_field = "month",
        .value_field = "rating",
        .stats_field = "stats",
        .stats_count = "count",
        .stats_average = "averageRating",
        .stats_sum = "sum",
        .stats_min = "min",
        .stats_max = "max",
    },
    {
        .layout = SPILL_LAYOUT_SUBSET,
        REVIEWS_FIELDS,
        .top_field = "topReviews",
        .sort_field = "rating",
        .top_count = 3,
    },
    {
        /* Below its threshold an array is as the application stores it (`spillway serve`). */
        .layout = SPILL_LAYOUT_OUTLIER,
        .keep = SPILL_KEEP_NEWEST,
        .bounds = {.threshold = GATEWAY_THRESHOLD,
                   .page_capacity = 1000,
                   .head_bytes_max = DEFAULT_BYTES_MAX,
                   .page_bytes_max = DEFAULT_BYTES_MAX},
        .op_window = DEFAULT_OP_WINDOW,
        .collection = "users",
        .array = "activities",
        .page_collection = "users.activities.pages",
        .page_owner = "owner",
        .page_number = "page",
        .page_array = "activities",
    },
};

const char *const *spill_definition_presets(void)
{
    return preset_names;
}

/* A name that is too long stays empty, which the check refuses. */
static void start_from(spill_definition_t *definition, const spill_definition_t *preset,
                       const char *name)
{
    *definition = *preset;
    definition->largest = definition->bounds;
    if (strlen(name) < sizeof definition->name)
        memcpy(definition->name, name, strlen(name) + 1);
}

void spill_definition_init(spill_definition_t *definition, const char *name)
{
    if (definition != NULL)
        start_from(definition, &preset_definitions[1], name != NULL ? name : "");
}

spill_code_t spill_definition_preset(spill_definition_t *definition, const char *preset,
                                     const char *name, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, definition);
    *definition = (spill_definition_t){0};
    SPILL_CHECK_POINTERS(error, preset, name);
    for (size_t i = 0; preset_names[i] != NULL; i++) {
        if (strcmp(preset, preset_names[i]) != 0)
            continue;
        start_from(definition, &preset_definitions[i], name);
        if (definition->name[0] == '\0')
            return spill_fail(error, SPILL_INVALID,
                              "the name of a definition must have 1 to %d bytes, not %zu",
                              SPILL_NAME_SIZE - 1, strlen(name));
        return SPILL_OK;
    }
    char list[128] = "";
    for (size_t i = 0; preset_names[i] != NULL; i++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", preset_names[i]);
    }
    return spill_fail(error, SPILL_NOT_FOUND, "there is no preset '%s'; the presets are %s", preset,
                      list);
}

int64_t spill_threshold(int64_t target_bytes, int64_t element_bytes)
{
    int64_t count = target_bytes / (element_bytes > 0 ? element_bytes : 1);
    int64_t unit = 1;
    while (count / unit >= 100)
        unit *= 10;
    count -= count % unit;
    return count > 0 ? count : 1;
}
