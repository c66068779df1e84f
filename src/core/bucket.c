/*
 * Appends and reads over several windows. An append sorts the elements by window, and appends each
 * window's as one batch. A read gathers the reads of windows.
 */
#include "core/array.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* A window and the elements that lie in it, in their order. */
typedef struct group {
    char window[SPILL_WINDOW_SIZE];
    spill_value_t *elements;
    size_t count;
    size_t capacity;
} group_t;

typedef struct groups {
    group_t *at;
    size_t count;
    size_t capacity;
    size_t last; /* the group of the last element, and usually of the next one */
} groups_t;

static group_t *find_group(groups_t *groups, const char *window)
{
    if (groups->count > 0 && strcmp(groups->at[groups->last].window, window) == 0)
        return &groups->at[groups->last];
    for (groups->last = 0; groups->last < groups->count; groups->last++)
        if (strcmp(groups->at[groups->last].window, window) == 0)
            return &groups->at[groups->last];
    if (groups->count == groups->capacity) {
        groups->capacity = groups->capacity ? 2 * groups->capacity : 4;
        groups->at = bson_realloc(groups->at, groups->capacity * sizeof *groups->at);
    }
    group_t *group = &groups->at[groups->count++];
    *group = (group_t){.count = 0};
    memcpy(group->window, window, strlen(window) + 1);
    return group;
}

static void add(groups_t *groups, const char *window, const spill_value_t *element)
{
    group_t *group = find_group(groups, window);
    if (group->count == group->capacity) {
        group->capacity = group->capacity ? 2 * group->capacity : 4;
        group->elements = bson_realloc(group->elements, group->capacity * sizeof *group->elements);
    }
    group->elements[group->count++] = *element;
}

static spill_code_t sort_elements(const spill_array_t *array, const spill_value_t *elements,
                                  size_t count, groups_t *groups, spill_error_t *error)
{
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    if (count == 0)
        return spill_fail(error, SPILL_INVALID, "there is nothing to append");
    for (size_t i = 0; i < count; i++) {
        char window[SPILL_WINDOW_SIZE];
        SPILL_TRY(spill_array_check_element(&elements[i], i, error));
        SPILL_TRY(spill_window_of_element(&array->definition, &elements[i], window, error));
        add(groups, window, &elements[i]);
    }
    return SPILL_OK;
}

static void release_groups(groups_t *groups)
{
    for (size_t i = 0; i < groups->count; i++)
        bson_free(groups->at[i].elements);
    bson_free(groups->at);
}

/* ---- append ---------------------------------------------------------------------------------- */

void spill_bucket_append_options_init(spill_bucket_append_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_bucket_append_options_t){.version = SPILL_BUCKET_APPEND_OPTIONS_VERSION};
}

static const spill_bucket_base_t *find_base(const spill_bucket_append_options_t *options,
                                            const char *window)
{
    for (size_t i = 0; i < options->base_count; i++)
        if (strcmp(options->bases[i].window, window) == 0)
            return &options->bases[i];
    return NULL;
}

static spill_code_t check_options(const spill_bucket_append_options_t *options,
                                  const groups_t *groups, spill_error_t *error)
{
    if (options->version != SPILL_BUCKET_APPEND_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "bucket append options have version %d, but this library needs version "
                          "%d: initialize them with spill_bucket_append_options_init",
                          options->version, SPILL_BUCKET_APPEND_OPTIONS_VERSION);
    if (!options->bases && options->base_count > 0)
        return spill_fail(error, SPILL_INVALID, "bucket append options: 'bases' is NULL");
    for (size_t i = 0; i < options->base_count; i++)
        if (!memchr(options->bases[i].window, '\0', sizeof options->bases[i].window))
            return spill_fail(error, SPILL_INVALID,
                              "bucket append options: the window of base %zu does not end", i);
    for (size_t i = 0; options->op_id && i < groups->count; i++)
        if (!find_base(options, groups->at[i].window))
            return spill_fail(error, SPILL_INVALID,
                              "the operation has no base for window '%s' (spill_bucket_op_bases)",
                              groups->at[i].window);
    return SPILL_OK;
}

static spill_code_t append_group(spill_array_t *array, const spill_value_t *owner,
                                 const group_t *group, const spill_bucket_append_options_t *options,
                                 spill_append_result_t *result, spill_error_t *error)
{
    spill_append_options_t own;
    spill_append_options_init(&own);
    own.fill = options->fill;
    spill_op_t op = {.id = options->op_id, .id_bytes = options->op_id_bytes};
    const spill_bucket_base_t *base = options->op_id ? find_base(options, group->window) : NULL;
    if (base) {
        op.base = base->base;
        own.op = &op;
    }
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, owner, group->window);
    spill_code_t code =
        spill_array_append(array, &name, group->elements, group->count, &own, result, error);
    bson_destroy(&storage);
    return code;
}

spill_code_t spill_bucket_append(spill_array_t *array, const spill_value_t *owner,
                                 const spill_value_t *elements, size_t element_count,
                                 const spill_bucket_append_options_t *options,
                                 spill_bucket_appended_t **appended, size_t *count,
                                 spill_error_t *error)
{
    spill_bucket_append_options_t defaults;
    spill_bucket_append_options_init(&defaults);
    size_t ignored;
    options = options ? options : &defaults;
    if (appended)
        *appended = NULL;
    if (count)
        *count = 0;
    SPILL_CHECK_ARRAY(error, array, owner, elements);
    SPILL_CHECK_ARGUMENT(error, !appended || count, "'count' is NULL, but 'appended' is not");
    count = count ? count : &ignored;
    SPILL_SCOPED(release_groups) groups_t groups = {0};
    SPILL_TRY(sort_elements(array, elements, element_count, &groups, error));
    SPILL_TRY(check_options(options, &groups, error));
    spill_bucket_appended_t *all = bson_malloc0(groups.count * sizeof *all);
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < groups.count; i++) {
        const group_t *group = &groups.at[i];
        memcpy(all[i].window, group->window, sizeof group->window);
        all[i].elements = (int64_t)group->count;
        *count = i + 1;
        code = append_group(array, owner, group, options, &all[i].result, error);
    }
    if (appended) /* also after an error: the windows before it have their elements */
        *appended = all;
    else
        bson_free(all);
    return code;
}

spill_code_t spill_bucket_op_bases(spill_array_t *array, const spill_value_t *owner,
                                   const spill_value_t *elements, size_t element_count,
                                   spill_bucket_base_t **bases, size_t *count, spill_error_t *error)
{
    if (bases != NULL)
        *bases = NULL;
    if (count != NULL)
        *count = 0;
    SPILL_CHECK_ARRAY(error, array, owner, elements, bases, count);
    SPILL_SCOPED(release_groups) groups_t groups = {0};
    SPILL_TRY(sort_elements(array, elements, element_count, &groups, error));
    spill_bucket_base_t *all = bson_malloc0(groups.count * sizeof *all);
    spill_code_t code = SPILL_OK;
    for (size_t i = 0; code == SPILL_OK && i < groups.count; i++) {
        bson_t storage = BSON_INITIALIZER;
        memcpy(all[i].window, groups.at[i].window, sizeof all[i].window);
        spill_value_t name = spill_bucket_name(&storage, owner, all[i].window);
        code = spill_array_op_base(array, &name, &all[i].base, error);
        bson_destroy(&storage);
    }
    if (code != SPILL_OK) {
        bson_free(all);
        return code;
    }
    *bases = all;
    *count = groups.count;
    return SPILL_OK;
}

/* ---- reads ----------------------------------------------------------------------------------- */

enum { FEWEST_READ = 100 };

void spill_bucket_read_options_init(spill_bucket_read_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_bucket_read_options_t){.version = SPILL_BUCKET_READ_OPTIONS_VERSION,
                                             .order = SPILL_NEWEST_FIRST,
                                             .limit = 20,
                                             .from_ms = INT64_MIN,
                                             .to_ms = INT64_MAX};
}

/* A read of one window, from which the elements of the slice borrow. */
typedef struct kept {
    spill_slice_t *slice;
    char *window;
} kept_t;

typedef struct memory {
    kept_t *kept;
    size_t count;
    size_t capacity;
} memory_t;

typedef struct reader {
    spill_array_t *array;
    const spill_bucket_read_options_t *options;
    spill_bucket_slice_t *slice;
    memory_t *memory;
    size_t capacity; /* of slice->elements */
} reader_t;

static bool timed(const spill_bucket_read_options_t *options)
{
    return options->from_ms != INT64_MIN || options->to_ms != INT64_MAX;
}

static bool in_time(const reader_t *reader, const spill_value_t *element)
{
    const spill_bucket_read_options_t *options = reader->options;
    int64_t time_ms;
    return !timed(options) || (spill_window_time(&reader->array->definition, element, &time_ms) &&
                               time_ms >= options->from_ms && time_ms < options->to_ms);
}

static bool full(const reader_t *reader)
{
    return (int64_t)reader->slice->count >= reader->options->limit;
}

/* Add elements of a slice up to the limit. It then owns the slice. True: there were more. */
static bool take(reader_t *reader, spill_slice_t *slice, const char *window)
{
    memory_t *memory = reader->memory;
    spill_bucket_slice_t *to = reader->slice;
    if (memory->count == memory->capacity) {
        memory->capacity = memory->capacity ? 2 * memory->capacity : 4;
        memory->kept = bson_realloc(memory->kept, memory->capacity * sizeof *memory->kept);
    }
    char *name = bson_strdup(window);
    memory->kept[memory->count++] = (kept_t){.slice = slice, .window = name};
    for (size_t i = 0; i < slice->count; i++) {
        if (!in_time(reader, &slice->elements[i].value))
            continue;
        if (full(reader))
            return true;
        if (to->count == reader->capacity) {
            reader->capacity = reader->capacity ? 2 * reader->capacity : 32;
            to->elements = bson_realloc(to->elements, reader->capacity * sizeof *to->elements);
        }
        to->elements[to->count++] = (spill_bucket_element_t){
            .window = name, .seq = slice->elements[i].seq, .value = slice->elements[i].value};
    }
    return slice->more && slice->count > 0;
}

static spill_code_t read_window(void *context, const spill_value_t *name, const char *window,
                                bool last, bool *stop, spill_error_t *error)
{
    reader_t *reader = context;
    const spill_bucket_read_options_t *options = reader->options;
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.order = options->order;
    if (options->cursor_window && strcmp(options->cursor_window, window) == 0)
        *(options->order == SPILL_NEWEST_FIRST ? &read.before : &read.after) = options->cursor_seq;
    bool more = true;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && more && !full(reader)) {
        spill_slice_t *slice;
        read.limit = options->limit - (int64_t)reader->slice->count;
        if (timed(options) && read.limit < FEWEST_READ)
            read.limit = FEWEST_READ; /* some will be left out */
        code = spill_array_read(reader->array, name, &read, &slice, error);
        if (code != SPILL_OK)
            break;
        *(options->order == SPILL_NEWEST_FIRST ? &read.before : &read.after) = slice->next;
        more = take(reader, slice, window);
    }
    *stop = full(reader);
    reader->slice->more = *stop && (more || !last);
    return code;
}

static const char *higher(const char *left, const char *right)
{
    return !right || (left && strcmp(left, right) > 0) ? left : right;
}

static const char *lower(const char *left, const char *right)
{
    return !right || (left && strcmp(left, right) < 0) ? left : right;
}

/* Find the first and last window of the options' time range; "" means no bound. */
static spill_code_t time_range(const reader_t *reader, char from[SPILL_WINDOW_SIZE],
                               char to[SPILL_WINDOW_SIZE], spill_error_t *error)
{
    const spill_bucket_read_options_t *options = reader->options;
    spill_window_t window = reader->array->definition.window;
    from[0] = to[0] = '\0';
    if (options->from_ms != INT64_MIN)
        SPILL_TRY(spill_window_of_time(window, options->from_ms, from, error));
    if (options->to_ms != INT64_MAX)
        SPILL_TRY(spill_window_of_time(window, options->to_ms - 1, to, error));
    return SPILL_OK;
}

static spill_code_t read_windows(reader_t *reader, const spill_value_t *owner, spill_error_t *error)
{
    const spill_bucket_read_options_t *options = reader->options;
    bool newest_first = options->order == SPILL_NEWEST_FIRST;
    char from[SPILL_WINDOW_SIZE], to[SPILL_WINDOW_SIZE];
    SPILL_TRY(time_range(reader, from, to, error));
    spill_window_range_t range = {.from = higher(options->from, from[0] ? from : NULL),
                                  .to = lower(options->to, to[0] ? to : NULL),
                                  .newest_first = newest_first};
    if (newest_first)
        range.to = lower(range.to, options->cursor_window);
    else
        range.from = higher(range.from, options->cursor_window);
    return spill_each_window(reader->array, owner, &range, read_window, reader, error);
}

static spill_code_t check_read_options(const spill_bucket_read_options_t *options,
                                       spill_error_t *error)
{
    if (options->version != SPILL_BUCKET_READ_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "bucket read options have version %d, but this library needs version %d: "
                          "initialize them with spill_bucket_read_options_init",
                          options->version, SPILL_BUCKET_READ_OPTIONS_VERSION);
    if (options->order != SPILL_NEWEST_FIRST && options->order != SPILL_OLDEST_FIRST)
        return spill_fail(error, SPILL_INVALID, "bucket read options: there is no order %d",
                          (int)options->order);
    if (options->limit < 1)
        return spill_fail(error, SPILL_INVALID, "limit is at least 1, not %" PRId64,
                          options->limit);
    return SPILL_OK;
}

spill_code_t spill_bucket_read(spill_array_t *array, const spill_value_t *owner,
                               const spill_bucket_read_options_t *options,
                               spill_bucket_slice_t **slice, spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, slice);
    *slice = NULL;
    SPILL_CHECK_ARRAY(error, array, owner);
    spill_bucket_read_options_t defaults;
    spill_bucket_read_options_init(&defaults);
    options = options ? options : &defaults;
    SPILL_TRY(check_read_options(options, error));
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    reader_t reader = {.array = array, .options = options};
    reader.slice = bson_malloc0(sizeof *reader.slice);
    reader.memory = bson_malloc0(sizeof *reader.memory);
    reader.slice->memory = reader.memory;
    spill_code_t code = read_windows(&reader, owner, error);
    if (code != SPILL_OK) {
        spill_bucket_slice_free(reader.slice);
        return code;
    }
    if (reader.slice->count > 0) {
        const spill_bucket_element_t *end = &reader.slice->elements[reader.slice->count - 1];
        memcpy(reader.slice->cursor_window, end->window, strlen(end->window) + 1);
        reader.slice->cursor_seq = end->seq;
    }
    *slice = reader.slice;
    return SPILL_OK;
}

void spill_bucket_slice_free(spill_bucket_slice_t *slice)
{
    if (slice == NULL)
        return;
    memory_t *memory = slice->memory;
    for (size_t i = 0; i < memory->count; i++) {
        spill_slice_free(memory->kept[i].slice);
        bson_free(memory->kept[i].window);
    }
    bson_free(memory->kept);
    bson_free(memory);
    bson_free(slice->elements);
    bson_free(slice);
}
