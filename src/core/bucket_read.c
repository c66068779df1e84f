/* Reads over several windows, gathered from reads of each. */
#include "core/windows.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

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

/* What a slice's elements borrow from: a read of one window. */
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

/* Take elements of a slice up to the limit. True if there were more. Owns the slice from then on.
 */
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

static spill_code_t check_options(const spill_bucket_read_options_t *options, spill_error_t *error)
{
    if (options->version != SPILL_BUCKET_READ_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID, "bucket read options of version %d, not %d",
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
    SPILL_CHECK_POINTERS(error, array, owner);
    spill_bucket_read_options_t defaults;
    spill_bucket_read_options_init(&defaults);
    options = options ? options : &defaults;
    SPILL_TRY(check_options(options, error));
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
