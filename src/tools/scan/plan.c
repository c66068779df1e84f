#include "tools/scan/plan.h"

#include "definition/schema.h"
#include "util/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    /* If an element takes more than this part of a head, documents of its own serve better. */
    LARGE_PART = 10,
    /* A smaller page is not worth a document. */
    PAGE_MIN = 10
};

/* The most that a head is meant to have. */
typedef struct spill_plan_aims {
    int64_t bytes;
    int64_t elements;
} spill_plan_aims_t;

/* The times show the end if this share of the neighbours that differ is in one order, ... */
static const double one_order_share = 0.9;
/* ... and this share of all neighbours differs. */
static const double differ_share = 0.05;

/* Bytes of an element in its document, including name and type. */
static int64_t mean_bytes(const spill_scan_path_t *path)
{
    int64_t count = path->lengths.sum > 0 ? path->lengths.sum : 1;
    return (path->bytes + count - 1) / count;
}

/* ---- the choice ------------------------------------------------------------------------------ */

/* Report whether a definition can name the array at all. */
static bool can_be_reshaped(const spill_scan_path_t *path, spill_plan_texts_t *why)
{
    if (path->map) {
        spill_plan_say(
            why, "It grows by keys. Make it an array of {key, value} first: keys cannot be paged, "
                 "and names with dots or dollars are difficult in every query.");
        return false;
    }
    if (strstr(path->path, "[]") || strchr(path->path, '*')) {
        spill_plan_say(why,
                       "It is inside the elements of another array or map. First give those "
                       "elements documents of their own; then it is an array in these documents.");
        return false;
    }
    if (strchr(path->path, '"')) {
        spill_plan_say(why, "Its name has characters that fields of a definition cannot have.");
        return false;
    }
    return true;
}

static bool is_large(const spill_scan_path_t *path, int64_t target)
{
    return mean_bytes(path) > target / LARGE_PART;
}

/*
 * Choose the bounds. A head may grow to the target; then the oldest elements move, and four fifths
 * of the target stay. The number of elements stays within the scan's limit, because otherwise the
 * next scan would find the array again.
 */
static void choose_bounds(spill_definition_t *definition, const spill_scan_path_t *path,
                          const spill_plan_aims_t *aims, spill_plan_texts_t *why)
{
    int64_t by_bytes = spill_threshold(aims->bytes / 5 * 4, mean_bytes(path));
    int64_t by_elements = spill_threshold(aims->elements - aims->elements / 5, 1);
    int64_t threshold = by_bytes < by_elements ? by_bytes : by_elements;
    int64_t page = threshold / 4 > PAGE_MIN ? threshold / 4 : PAGE_MIN;
    if (page > aims->elements - threshold)
        page = aims->elements > threshold ? aims->elements - threshold : 1;
    definition->bounds.threshold = threshold;
    definition->bounds.page_capacity = page;
    spill_plan_say(why,
                   "Elements have %" PRId64 " bytes on average: the newest %" PRId64
                   " stay in the head, and when it has %" PRId64 " the oldest %" PRId64
                   " of them move to a page, so that it has %s of them at most.",
                   mean_bytes(path), threshold, threshold + page, page,
                   spill_size_text((threshold + page) * mean_bytes(path)).text);
    if (by_elements < by_bytes)
        spill_plan_say(why, "By their size more would fit, but the scan's limit is %" PRId64 ".",
                       aims->elements);
}

/* Of the preset's statistics keep only the count: the field to average is unknown. */
static void start_reference(spill_definition_t *definition, const spill_scan_path_t *path)
{
    bool dated = path->time_type && strcmp(path->time_type, "date") == 0;
    spill_definition_preset(definition, "reviews-separate", "plan", NULL);
    definition->value_field[0] = '\0';
    definition->stats_average[0] = '\0';
    bson_strncpy(definition->time_field, dated ? path->time_field : "",
                 sizeof definition->time_field);
}

static spill_plan_end_t growing_end(const spill_scan_path_t *path)
{
    const spill_growth_forecast_t *times = &path->growth_forecast;
    double differ = times->rising + times->falling;
    if (!times->timed || !(differ >= differ_share))
        return SPILL_PLAN_END_UNKNOWN;
    if (times->falling >= one_order_share * differ)
        return SPILL_PLAN_END_FRONT;
    return times->rising >= one_order_share * differ ? SPILL_PLAN_END_BACK : SPILL_PLAN_END_UNKNOWN;
}

/*
 * Elements are numbered from the oldest, so with a wrong end the head keeps the wrong elements.
 * `definition`: the part of the plan that `migrate` uses; NULL: the array is imported instead.
 */
static void say_end_unknown(const spill_scan_path_t *path, const char *definition,
                            spill_plan_texts_t *why)
{
    char cause[160];
    if (!path->growth_forecast.timed)
        snprintf(cause, sizeof cause, "its elements have no times, or too few");
    else
        snprintf(cause, sizeof cause,
                 "the times (%s) rise at %.0f %% of the elements and fall at %.0f %%",
                 path->time_field[0] != '\0' ? path->time_field : "the elements themselves",
                 100 * path->growth_forecast.rising, 100 * path->growth_forecast.falling);
    if (!definition) {
        spill_plan_say(why,
                       "It is not known at which end it grows: %s. Before the import, add "
                       "`--order newest-first' to its definition if new elements come at its "
                       "front.",
                       cause);
        return;
    }
    spill_plan_say(why,
                   "It is not known at which end it grows: %s. Before `migrate --execute', write "
                   "\"order\": \"oldest-first\" into its \"%s\" if new elements come at its end, "
                   "or \"order\": \"newest-first\" if they come at its front.",
                   cause, definition);
}

/* `reshaped`: in place, by `migrate`. */
static void choose_layout(spill_definition_t *definition, const spill_scan_path_t *path,
                          bool reshaped, const spill_plan_aims_t *aims, spill_plan_texts_t *why)
{
    spill_plan_end_t end = growing_end(path);
    if (is_large(path, aims->bytes)) {
        start_reference(definition, path);
        spill_plan_say(why,
                       "Layout reference: an element has %" PRId64
                       " bytes on average, enough for a document of its own.",
                       mean_bytes(path));
        if (end == SPILL_PLAN_END_UNKNOWN)
            say_end_unknown(path, reshaped ? "original" : NULL, why);
        return;
    }
    spill_plan_say(
        why, "Layout outlier, which keeps the newest elements in the head: appends and reads of "
             "the newest use one bounded document. Short arrays stay whole in their documents, "
             "which get bookkeeping of about 225 bytes.");
    choose_bounds(definition, path, aims, why);
    if (end == SPILL_PLAN_END_UNKNOWN)
        say_end_unknown(path, reshaped ? "definition" : NULL, why);
    if (end == SPILL_PLAN_END_FRONT) {
        definition->order = SPILL_ARRAY_NEWEST_FIRST;
        spill_plan_say(
            why,
            "It grows at its front: %.0f %% of the elements are followed by an older one (%s).",
            100 * path->growth_forecast.falling,
            path->time_field[0] != '\0' ? path->time_field : "the elements themselves");
    }
}

/* Describe what fits an array that must be moved before it can be reshaped. */
static void advise_later(spill_plan_item_t *item, const spill_plan_aims_t *aims)
{
    spill_plan_say(&item->why, "After that, this fits it:");
    choose_layout(&item->definition, item->path, false, aims, &item->why);
}

/* The longest window in which the longest array gets at most a page's elements. */
static const char *window_of(double per_day, int64_t page_capacity)
{
    static const struct {
        const char *name;
        double days;
    } windows[] = {{"year", 365}, {"month", 30}, {"week", 7}, {"day", 1}, {"hour", 1.0 / 24}};
    for (size_t i = 0; i < sizeof windows / sizeof windows[0]; i++)
        if (per_day * windows[i].days <= (double)page_capacity)
            return windows[i].name;
    return NULL;
}

/* Rates and dates are based on the elements' times, which may end long before the scan. */
static void say_as_of(const spill_scan_path_t *path, int64_t scanned_ms, spill_plan_texts_t *why)
{
    const int64_t day_ms = 86400000;
    const spill_growth_forecast_t *growth = &path->growth_forecast;
    if (growth->timed && scanned_ms > 0 && growth->newest_ms < scanned_ms - day_ms)
        spill_plan_say(
            why,
            "Its newest element is of %s, before the scan: rates and forecasts are as of "
            "then.",
            spill_day_text(growth->newest_ms).text);
}

/* A set of scalars: an append leaves out an element that the array has. */
static void keep_each_once(spill_plan_item_t *item)
{
    const spill_scan_path_t *path = item->path;
    if (!path->set || !spill_definition_has_unique(&item->definition))
        return;
    item->definition.unique = true;
    strcpy(item->definition.id_field, ".");
    spill_plan_say(&item->why,
                   "It is a set: its elements are scalars, and no array that the scan checked "
                   "(%" PRId64 "%s) has one twice. So each element is its own id "
                   "(\"idField\": \".\"), and an append leaves out what the array has "
                   "(\"unique\").",
                   path->set_arrays,
                   path->set_sampled ? ", long ones by a part of their values" : "");
    spill_plan_say(&item->alternatives,
                   "without \"unique\" and \"idField\", if an element may occur twice.");
}

static void add_alternatives(const spill_plan_item_t *item, spill_plan_texts_t *others)
{
    const spill_scan_path_t *path = item->path;
    double per_day = 0;
    for (size_t i = 0; i < path->owners.count; i++)
        per_day = fmax(per_day, path->owners.items[i].growth_forecast.pace.per_day);
    if (item->definition.layout == SPILL_LAYOUT_OUTLIER) {
        spill_plan_say(
            others, "subset, if only the top-N or the newest few are shown with the document, or a "
                    "count and an average of them.");
        spill_plan_say(
            others,
            "capped%s, if only the newest %" PRId64 " are ever needed: it deletes all others, "
            "and programs need the library. `$push` with `$slice: -%" PRId64 "` does the same "
            "without Spillway.",
            item->definition.unique ? " without \"unique\"" : "", item->definition.bounds.threshold,
            item->definition.bounds.threshold);
    }
    if (!path->time_type || strcmp(path->time_type, "date") != 0 || per_day == 0)
        return;
    int64_t page = item->definition.bounds.page_capacity;
    const char *window = window_of(per_day, page > 1 ? page : 1000);
    if (window)
        spill_plan_say(
            others,
            "bucket by the %s (time field %s), if it is read by time, or with statistics per "
            "window.",
            window, path->time_field);
}

/* ---- savings --------------------------------------------------------------------------------- */

/* Bytes of the array that stay in the head at most. */
static int64_t kept_bytes(const spill_plan_item_t *item)
{
    const spill_bounds_t *bounds = &item->definition.bounds;
    if (item->definition.layout != SPILL_LAYOUT_OUTLIER)
        return 0;
    return (bounds->threshold + bounds->page_capacity) * mean_bytes(item->path);
}

/* Report whether elements of any array leave the head. */
static bool leaves_head(const spill_plan_item_t *item)
{
    const spill_bounds_t *bounds = &item->definition.bounds;
    return item->definition.layout != SPILL_LAYOUT_OUTLIER ||
           item->path->lengths.max > bounds->threshold + bounds->page_capacity;
}

static void set_savings(spill_plan_item_t *item)
{
    const spill_scan_path_t *path = item->path;
    int64_t now =
        path->document_max > 0 ? path->document_max : path->owners.items[0].document_bytes;
    int64_t others = now > path->bytes_max ? now - path->bytes_max : 0;
    int64_t then = others + kept_bytes(item);
    item->bytes_now = now;
    item->bytes_then = then < now && leaves_head(item) ? then : now;
    if (item->definition.layout == SPILL_LAYOUT_REFERENCE)
        item->element_then = mean_bytes(path);
}

/* The head's bound must leave its other fields room to double. */
static void widen_head(spill_plan_item_t *item, int64_t document_limit)
{
    spill_definition_t *definition = &item->definition;
    int64_t wanted = 2 * item->bytes_then;
    wanted = wanted < document_limit ? wanted : document_limit;
    if (wanted > definition->bounds.head_bytes_max)
        definition->bounds.head_bytes_max = wanted;
    definition->largest = definition->bounds;
}

/* The collection's name without its database. */
static const char *bare_name(const spill_scan_result_t *result, const char *collection)
{
    const char *dot = result->qualified ? strchr(collection, '.') : NULL;
    return dot ? dot + 1 : collection;
}

char *spill_plan_quoted(const char *text, size_t size)
{
    bson_t storage = BSON_INITIALIZER;
    char *copy = bson_strndup(text, size);
    spill_value_t value = spill_value_from_utf8(&storage, copy);
    char *json = spill_value_to_json(&value, false);
    bson_free(copy);
    bson_destroy(&storage);
    return json ? json : bson_strdup("\"?\"");
}

/* The part of the path behind an array's "[]." or NULL. */
static const char *path_in_elements(const char *path)
{
    const char *inner = strstr(path, "[].");
    return inner ? inner + strlen("[].") : NULL;
}

/* The shell can name fields, a sub-document's fields, and fields of an array's elements. */
static bool can_be_detected(const spill_scan_path_t *path)
{
    const char *inner = path_in_elements(path->path);
    const char *from = inner && !path->map ? inner : path->path;
    size_t outer = inner ? (size_t)(inner - path->path) - strlen("[].") : 0;
    size_t length = strlen(from), plain = strcspn(from, "[]\"*");
    if (from == inner && strcspn(path->path, "[]\"*") != outer)
        return false;
    return plain == length || (path->map && plain == length - 1 && length > strlen(".*"));
}

/* The array's length as an expression; for an array in elements, that of the longest one. */
static char *length_of(const spill_scan_path_t *path)
{
    const char *inner = path_in_elements(path->path);
    int size = (int)strlen(path->path);
    if (path->map)
        return bson_strdup_printf("{$size: {$objectToArray: {$ifNull: [\"$%.*s\", {}]}}}",
                                  size - (int)strlen(".*"), path->path);
    if (!inner)
        return bson_strdup_printf("{$size: {$ifNull: [\"$%s\", []]}}", path->path);
    return bson_strdup_printf("{$max: {$map: {input: {$ifNull: [\"$%.*s\", []]}, in: {$size: "
                              "{$ifNull: [\"$$this.%s\", []]}}}}}",
                              (int)(inner - path->path) - (int)strlen("[]."), path->path, inner);
}

static char *detection_of(const spill_plan_item_t *item, const spill_scan_result_t *result)
{
    const char *collection = item->collection->name;
    const char *bare = bare_name(result, collection);
    bool pages = item->possible && item->definition.layout == SPILL_LAYOUT_OUTLIER;
    int64_t more = pages ? item->definition.bounds.threshold : result->limits.elements;
    char *length = length_of(item->path);
    char *name = spill_plan_quoted(bare, strlen(bare));
    char *database =
        bare > collection ? spill_plan_quoted(collection, (size_t)(bare - collection) - 1) : NULL;
    char *text = bson_strdup_printf(
        "db%s%s%s.getCollection(%s).aggregate([{$project: {length: %s, bytes: {$bsonSize: "
        "\"$$ROOT\"}}}, {$match: {length: {$gt: %" PRId64
        "}}}, {$sort: {length: -1}}, {$limit: 100}])",
        database ? ".getSiblingDB(" : "", database ? database : "", database ? ")" : "", name,
        length, more);
    bson_free(length);
    bson_free(name);
    bson_free(database);
    return text;
}

char *spill_plan_other_writers(const spill_definition_t *definition,
                               const spill_definition_t *planned)
{
    const char *field = definition->pages_field;
    bool nested = strchr(field, '.') != NULL, unique = definition->unique;
    if (planned && planned->layout == SPILL_LAYOUT_CAPPED)
        return bson_strdup_printf(
            "Until --finish, programs may push to the array. --finish deletes all elements but %s "
            "%" PRId64 " of each array, and the array is in '%s' from then on, no longer in '%s'. "
            "Programs have to use the library then: a plain driver finds no array, and a push "
            "begins a new one. The gateway does not serve this layout.",
            spill_schema_of(planned)->keeps_top_n ? "the highest ranking" : "the newest",
            planned->bounds.threshold, planned->collection, definition->collection);
    return bson_strdup_printf(
        "Programs with other drivers continue unchanged until a document has pages (it has the "
        "field %s)%s. Then they may %schange other fields. Only the library may %sedit elements, "
        "update by position, pull, and replace the document%s: such a program adds "
        "{%s%s%s: {$exists: false}} to its filter.",
        field, unique ? ", if they add with $addToSet" : "",
        unique ? "" : "push to the array, and ", unique ? "add and " : "",
        nested ? " or a sub-document around the array" : "", nested ? "\"" : "", field,
        nested ? "\"" : "");
}

/* ---- a plan ---------------------------------------------------------------------------------- */

/* Report whether it is worth it and `spillway migrate` can do it. If not, `why` says so. */
static bool can_be_migrated(spill_plan_item_t *item)
{
    const spill_bounds_t *bounds = &item->definition.bounds;
    spill_planned_t *planned = &item->planned;
    spill_error_t error;
    spill_planned_init(planned, &item->definition, item->definition.collection, item->path->path);
    if (item->grows_at == SPILL_PLAN_END_FRONT)
        planned->original.order = SPILL_ARRAY_NEWEST_FIRST;
    if (!leaves_head(item))
        spill_plan_say(&item->why,
                       "It would save nothing: the longest array has %" PRId64
                       " elements, and a head then has up to %" PRId64 ".",
                       item->path->lengths.max, bounds->threshold + bounds->page_capacity);
    else if (item->bytes_then >= item->bytes_now)
        spill_plan_say(&item->why,
                       "It would save nothing: the largest array has %" PRId64
                       " bytes, and a head then has up to that many.",
                       item->path->bytes_max);
    else if (spill_planned_check(planned, &error) != SPILL_OK)
        spill_plan_say(&item->why, "It cannot be migrated in this form: %s", error.message);
    else
        return true;
    return false;
}

static void define_item(spill_plan_item_t *item, const spill_plan_t *plan,
                        const spill_scan_result_t *result, const spill_plan_aims_t *aims)
{
    const spill_scan_path_t *path = item->path;
    choose_layout(&item->definition, path, true, aims, &item->why);
    keep_each_once(item);
    say_as_of(path, result->scanned_ms, &item->why);
    add_alternatives(item, &item->alternatives);
    item->possible = spill_plan_put_names(plan, &item->definition,
                                          bare_name(result, item->collection->name), path->path);
    if (!item->possible)
        spill_plan_say(&item->why,
                       "Its names are too long to derive other names from them: name the "
                       "definition, its pages and its fields yourself.");
}

static spill_plan_item_t make_item(const spill_plan_t *plan,
                                   const spill_scan_collection_t *collection,
                                   const spill_scan_path_t *path, const spill_scan_result_t *result,
                                   const spill_plan_aims_t *aims)
{
    spill_plan_item_t item = {.collection = collection,
                              .path = path,
                              .grows_at = growing_end(path),
                              .qualified = result->qualified && strchr(collection->name, '.')};
    spill_error_t error;
    spill_definition_init(&item.definition, "plan");
    if (can_be_reshaped(path, &item.why))
        define_item(&item, plan, result, aims);
    else
        advise_later(&item, aims);
    set_savings(&item);
    widen_head(&item, result->limits.document_bytes);
    if (!item.possible)
        spill_plan_say_import(&item, bare_name(result, collection->name));
    if (item.possible && spill_definition_check(&item.definition, &error) != SPILL_OK) {
        item.possible = false;
        spill_plan_say(&item.why, "It cannot be defined in this form: %s", error.message);
    }
    item.migrate = item.possible && can_be_migrated(&item);
    if (item.migrate)
        item.others = item.planned.staged
                          ? spill_plan_other_writers(&item.planned.original, &item.definition)
                          : spill_plan_other_writers(&item.definition, NULL);
    if (can_be_detected(path))
        item.detection = detection_of(&item, result);
    return item;
}

static bool is_planned(const spill_plan_t *plan, const spill_scan_path_t *path)
{
    for (size_t i = 0; i < plan->count; i++)
        if (plan->items[i].path == path)
            return true;
    return false;
}

spill_plan_t spill_plan_make(const spill_scan_result_t *result, int64_t target)
{
    spill_plan_t plan = {0};
    spill_plan_aims_t aims = {.bytes = target, .elements = result->limits.elements};
    plan.items = bson_malloc0((result->finding_count + 1) * sizeof *plan.items);
    plan.groups = bson_malloc0((result->finding_count + 1) * sizeof *plan.groups);
    for (size_t i = 0; i < result->finding_count; i++) {
        const spill_scan_finding_t *finding = &result->findings[i];
        if (finding->group)
            plan.groups[plan.group_count++] = spill_plan_make_group(result, finding->group);
        if (!finding->path || finding->path->owners.count == 0 || is_planned(&plan, finding->path))
            continue;
        plan.items[plan.count] = make_item(&plan, &result->collections[finding->collection],
                                           finding->path, result, &aims);
        plan.count++;
    }
    return plan;
}

void spill_plan_release(spill_plan_t *plan)
{
    for (size_t i = 0; i < plan->count; i++) {
        spill_plan_release_texts(&plan->items[i].why);
        spill_plan_release_texts(&plan->items[i].alternatives);
        bson_free(plan->items[i].detection);
        bson_free(plan->items[i].others);
    }
    for (size_t i = 0; i < plan->group_count; i++)
        spill_plan_release_group(&plan->groups[i]);
    bson_free(plan->groups);
    bson_free(plan->items);
    *plan = (spill_plan_t){0};
}
