/* The table of a definition's parts, and the names of its enums. */
#include "definition/fields.h"

#include <stddef.h>
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
