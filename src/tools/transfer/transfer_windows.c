/*
 * A target with windows: each element is appended to its window, in the source's order. So the
 * number of an element in its window is the count of the source's earlier elements in that window.
 * The target's count in a window shows how far a copy has come there. A pass over the source
 * continues from that count, or compares. It gathers elements, sorts them by window, and handles
 * each window's elements together. Appends are applied at most once, as everywhere
 * (writer.c): their ids contain the number in the window.
 */
#include "tools/transfer/transfer_parts.h"

#include "bson/value.h"
#include "core/array.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define TRIES_MAX 5

/* A window of the owner, and how far the pass has come in it. */
typedef struct place {
    char window[SPILL_WINDOW_SIZE];
    int64_t begin; /* the number of the source's first element in it: above 0 only if the source is
                      being dropped */
    int64_t seen;  /* the number of the source's next element in it */
    int64_t next;  /* of the target */
    int64_t base;  /* of the next operation there */
    bool is_read;  /* next and base were read */
} place_t;

typedef struct pass {
    spill_transfer_owner_t *owner;
    bool counts;     /* only count the elements of each window */
    bool compares;   /* compare; else append */
    place_t *places; /* ordered by window */
    size_t count;
    size_t capacity;
    spill_transfer_batch_t *batch;              /* gathered elements of any windows */
    size_t at[SPILL_TRANSFER_BATCH];            /* the index of each one's place; SIZE_MAX: done */
    int64_t seqs[SPILL_TRANSFER_BATCH];         /* the number of each in the source */
    spill_value_t values[SPILL_TRANSFER_BATCH]; /* the elements of one window */
    int64_t numbers[SPILL_TRANSFER_BATCH];
} pass_t;

/* ---- windows --------------------------------------------------------------------------------- */

/* The index of the window, or the index at which to insert it. */
static size_t find_place(const pass_t *pass, const char *window)
{
    size_t low = 0, high = pass->count;
    if (high > 0 && strcmp(pass->places[high - 1].window, window) < 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(pass->places[middle].window, window) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool is_place(const pass_t *pass, size_t index, const char *window)
{
    return index < pass->count && strcmp(pass->places[index].window, window) == 0;
}

static size_t make_place(pass_t *pass, const char *window)
{
    size_t index = find_place(pass, window);
    if (is_place(pass, index, window))
        return index;
    if (pass->count == pass->capacity) {
        pass->capacity = pass->capacity ? 2 * pass->capacity : 16;
        pass->places = bson_realloc(pass->places, pass->capacity * sizeof *pass->places);
    }
    memmove(pass->places + index + 1, pass->places + index,
            (pass->count - index) * sizeof *pass->places);
    pass->places[index] = (place_t){.seen = 0};
    snprintf(pass->places[index].window, SPILL_WINDOW_SIZE, "%s", window);
    pass->count++;
    for (size_t i = 0; i < pass->batch->count; i++)
        pass->at[i] += pass->at[i] != SIZE_MAX && pass->at[i] >= index;
    return index;
}

/* ---- the gathered elements of one window ----------------------------------------------------- */

typedef struct group {
    spill_transfer_owner_t window; /* the target's window, as an owner */
    const spill_value_t *values;
    const int64_t *seqs; /* in the source */
    int64_t first;       /* number of the first element in the window */
    int64_t count;
} group_t;

static void free_slice(spill_slice_t **slice)
{
    spill_slice_free(*slice);
}

/*
 * Compare elements [*from, to) of the group with one read of the target. Advance *from behind what
 * it has compared.
 */
static void compare_slice(pass_t *pass, const group_t *group, const spill_slice_t *slice,
                          int64_t *from, int64_t to)
{
    size_t i = 0;
    int64_t end = slice->count == 0 || !slice->more
                      ? to
                      : slice->elements[slice->count - 1].seq + 1 - group->first;
    for (; *from < end; ++*from) {
        bool there = i < slice->count && slice->elements[i].seq == group->first + *from;
        if (!there)
            spill_transfer_differs(pass->owner, group->seqs[*from],
                                   "the target does not have this element");
        else if (!spill_value_equal(&slice->elements[i].value, &group->values[*from]))
            spill_transfer_differs(pass->owner, group->seqs[*from],
                                   "the target has another element of this number");
        else if (pass->compares)
            pass->owner->transfer->result->verified++;
        i += there;
    }
}

/* Compare elements [from, to) of the group with the target, which should have them. */
static spill_code_t compare_group(pass_t *pass, const group_t *group, int64_t from, int64_t to,
                                  spill_error_t *error)
{
    const spill_transfer_side_t *target = &pass->owner->transfer->target;
    spill_read_options_t read;
    spill_read_options_init(&read);
    read.order = SPILL_OLDEST_FIRST;
    read.before = group->first + to;
    while (from < to) {
        SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
        read.after = group->first + from - 1;
        read.limit = to - from;
        spill_code_t code =
            spill_array_read(target->array, group->window.target.value, &read, &slice, error);
        SPILL_TRY(spill_transfer_failed(target, code, error));
        compare_slice(pass, group, slice, &from, to);
    }
    return SPILL_OK;
}

static int64_t clamp(int64_t number, int64_t highest)
{
    return number < 0 ? 0 : number < highest ? number : highest;
}

/* Append the elements of the group, beginning at index `from`. */
static spill_code_t append_group(group_t *group, int64_t from, spill_error_t *error)
{
    SPILL_SCOPED(spill_transfer_batch_free)
    spill_transfer_batch_t *batch = spill_transfer_batch_new(group->first + from);
    for (; from < group->count; from++)
        SPILL_TRY(spill_transfer_push(&group->window, batch, &group->values[from], false, error));
    return spill_transfer_flush(&group->window, batch, error);
}

/* Append what the target does not have yet; compare the end of what it has. */
static spill_code_t complete_group(pass_t *pass, group_t *group, place_t *place,
                                   spill_error_t *error)
{
    spill_transfer_owner_t *window = &group->window;
    spill_code_t code = SPILL_OK;
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        if (!place->is_read) {
            code = spill_transfer_count_target(window, error);
            if (code != SPILL_OK)
                break;
        }
        place->is_read = true;
        int64_t there = clamp(window->next - group->first, group->count);
        int64_t from = clamp(window->next - SPILL_TRANSFER_BATCH - group->first, there);
        pass->owner->live += tries == 0 ? there : 0;
        code = compare_group(pass, group, from, there, error);
        if (code == SPILL_OK && pass->owner->difference.count == 0)
            code = append_group(group, there, error);
        if (code != SPILL_UNKNOWN && code != SPILL_CONFLICT)
            break;
        place->is_read = false;
    }
    place->next = window->next;
    place->base = window->base;
    return code;
}

static spill_code_t handle_group(pass_t *pass, place_t *place, group_t *group, spill_error_t *error)
{
    const spill_transfer_t *transfer = pass->owner->transfer;
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_bucket_name(&storage, pass->owner->target.value, place->window);
    group->window =
        (spill_transfer_owner_t){.transfer = transfer, .next = place->next, .base = place->base};
    group->first = place->seen;
    spill_code_t code =
        spill_owner_init(&group->window.target, transfer->target.array, &name, error);
    if (code == SPILL_OK)
        code = pass->compares ? compare_group(pass, group, 0, group->count, error)
                              : complete_group(pass, group, place, error);
    place->seen += group->count;
    spill_owner_release(&group->window.target);
    return code;
}

/* Handle all gathered elements, window by window. */
static spill_code_t handle_gathered(pass_t *pass, spill_error_t *error)
{
    spill_transfer_batch_t *batch = pass->batch;
    spill_code_t code = SPILL_OK;
    spill_transfer_batch_finish(batch);
    for (size_t start = 0; code == SPILL_OK && start < batch->count; start++) {
        size_t at = pass->at[start];
        if (at == SIZE_MAX)
            continue;
        group_t group = {.values = pass->values, .seqs = pass->numbers};
        for (size_t i = start; i < batch->count; i++) {
            if (pass->at[i] != at)
                continue;
            pass->values[group.count] = batch->values[i];
            pass->numbers[group.count++] = pass->seqs[i];
            pass->at[i] = SIZE_MAX;
        }
        code = handle_group(pass, &pass->places[at], &group, error);
        if (!pass->compares && pass->owner->difference.count > 0)
            break; /* do not append to a different array */
    }
    batch->count = 0;
    spill_buffer_clear(&batch->bytes);
    spill_transfer_progress(pass->owner->transfer);
    return code;
}

/* ---- a pass over the source ------------------------------------------------------------------ */

static spill_code_t find_window(const pass_t *pass, const spill_element_t *element, char *window,
                                spill_error_t *error)
{
    const spill_transfer_owner_t *owner = pass->owner;
    spill_code_t code = spill_bucket_window_of(spill_transfer_target(owner->transfer),
                                               &element->value, window, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    code = spill_fail_prefix(error, code, "element %" PRId64, element->seq);
    return spill_owner_name(&owner->source, code, error);
}

static spill_code_t gather(pass_t *pass, const spill_element_t *element, spill_error_t *error)
{
    char window[SPILL_WINDOW_SIZE];
    SPILL_TRY(find_window(pass, element, window, error));
    if (pass->counts) {
        size_t at = make_place(pass, window);
        pass->places[at].seen++;
        return SPILL_OK;
    }
    if (pass->compares)
        spill_value_add_hash(&element->value, &pass->owner->hash);
    if (!spill_transfer_batch_is_short(pass->batch, &element->value))
        SPILL_TRY(handle_gathered(pass, error));
    size_t at = make_place(pass, window);
    pass->at[pass->batch->count] = at;
    pass->seqs[pass->batch->count] = element->seq;
    spill_transfer_batch_add(pass->batch, &element->value, false);
    return SPILL_OK;
}

static spill_code_t read_source(pass_t *pass, spill_error_t *error)
{
    SPILL_SCOPED(spill_transfer_reader_release)
    spill_transfer_reader_t reader =
        spill_transfer_reader_of_source(pass->owner, 0, pass->owner->end);
    while (!reader.ended && (pass->compares || pass->owner->difference.count == 0)) {
        spill_element_t element = {0};
        SPILL_TRY(spill_transfer_reader_get(&reader, &element, error));
        if (!reader.ended)
            SPILL_TRY(gather(pass, &element, error));
        reader.at++;
    }
    return handle_gathered(pass, error);
}

/* ---- windows that only the target has -------------------------------------------------------- */

static spill_code_t check_window(void *context, const spill_value_t *name, const char *window,
                                 bool last, bool *stop, spill_error_t *error)
{
    (void)last;
    (void)stop;
    pass_t *pass = context;
    size_t index = find_place(pass, window);
    int64_t seen = is_place(pass, index, window) ? pass->places[index].seen : 0;
    if (pass->owner->transfer->drops_windows && seen == 0)
        return SPILL_OK; /* the source has dropped its elements */
    spill_count_t count;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    spill_array_t *array = pass->owner->transfer->target.array;
    SPILL_TRY(spill_owner_init(&own, array, name, error));
    SPILL_TRY(spill_transfer_check_dropped(pass->owner, &own, error));
    SPILL_TRY(spill_array_count(array, name, &count, error));
    if (count.next > seen && count.count > 0)
        spill_transfer_differs_ahead(pass->owner, -1,
                                     "a window of the target has more elements than the source");
    return SPILL_OK;
}

static spill_code_t compare_windows(pass_t *pass, spill_error_t *error)
{
    const spill_transfer_side_t *target = &pass->owner->transfer->target;
    spill_window_range_t range = {.from = NULL};
    for (size_t i = 0; i < pass->count; i++)
        pass->places[i].seen = pass->places[i].begin;
    pass->owner->difference.count = 0;
    pass->owner->hash = 0;
    pass->compares = true;
    SPILL_TRY(read_source(pass, error));
    spill_code_t code = spill_each_window(target->array, pass->owner->target.value, &range,
                                          check_window, pass, error);
    return spill_transfer_failed(target, code, error);
}

/*
 * For a source whose first windows may be dropped already: find where its elements begin in each
 * window of the target. They are the last ones there.
 */
static spill_code_t find_begins(pass_t *pass, spill_error_t *error)
{
    const spill_transfer_side_t *target = &pass->owner->transfer->target;
    pass->counts = true;
    spill_code_t code = read_source(pass, error);
    pass->counts = false;
    for (size_t i = 0; code == SPILL_OK && i < pass->count; i++) {
        place_t *place = &pass->places[i];
        SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
        spill_value_t name = spill_bucket_name(&storage, pass->owner->target.value, place->window);
        spill_count_t count;
        code = spill_array_count(target->array, &name, &count, error);
        code = spill_transfer_failed(target, code, error);
        place->begin = count.next > place->seen ? count.next - place->seen : 0;
        place->seen = place->begin;
    }
    return code;
}

static spill_code_t copy_to_windows(pass_t *pass, spill_error_t *error)
{
    SPILL_TRY(spill_transfer_count_source(pass->owner, error));
    if (pass->owner->transfer->drops_windows)
        SPILL_TRY(find_begins(pass, error));
    return read_source(pass, error);
}

spill_code_t spill_transfer_to_windows(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    pass_t *pass = bson_malloc0(sizeof *pass);
    pass->owner = owner;
    pass->batch = spill_transfer_batch_new(0);
    spill_code_t code = copy_to_windows(pass, error);
    transfer->result->before += owner->live;
    if (code == SPILL_OK && !transfer->options->unverified)
        code = compare_windows(pass, error);
    spill_transfer_batch_free(&pass->batch);
    bson_free(pass->places);
    bson_free(pass);
    return code;
}
