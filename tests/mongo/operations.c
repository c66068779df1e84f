#include "operations.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void operation_failed(const char *what, spill_code_t code, const spill_error_t *error)
{
    fprintf(stderr, "worker: %s: %s: %s\n", what, spill_code_name(code), error->message);
    _exit(3);
}

bool operation_may_repeat(spill_code_t code, const spill_error_t *error)
{
    return error->retryable || code == SPILL_CONFLICT;
}

void place_init(place_t *place, spill_array_t *array, const char *owner)
{
    place->array = array;
    snprintf(place->name, sizeof place->name, "%.16s/%.30s",
             spill_array_get_definition(array)->name, owner);
    bson_init(&place->storage);
    place->owner = spill_value_from_utf8(&place->storage, owner);
}

void place_release(place_t *place)
{
    bson_destroy(&place->storage);
}

/* ---- append, count, read --------------------------------------------------------------------- */

/* Retry the append until it is acknowledged. Sometimes stop earlier, with the outcome unknown. */
static void append(worker_t *worker, const place_t *place, int64_t count, int64_t base)
{
    char id[SPILL_OP_ID_MAX];
    bson_t storage[HISTORY_BATCH_MAX];
    spill_value_t elements[HISTORY_BATCH_MAX];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    bool unknown = false;
    int64_t number = worker->history.number;
    spill_op_t op = {.id = id, .base = base};
    op.id_bytes = (size_t)snprintf(id, sizeof id, "%d/%" PRId64, worker->number, number);
    for (int64_t i = 0; i < count; i++) {
        bson_init(&storage[i]);
        elements[i] = spill_value_from_int64(&storage[i], history_label(worker->number, number, i));
    }
    spill_append_options_init(&options);
    options.op = &op;
    while (true) {
        spill_code_t code = spill_array_append(place->array, &place->owner, elements, (size_t)count,
                                               &options, &result, &error);
        unknown = unknown || code == SPILL_UNKNOWN;
        if (code == SPILL_OK) {
            history_appended(&worker->history, result.first);
            break;
        }
        bool stale = code == SPILL_UNKNOWN && !error.retryable;
        if (stale || (unknown && sim_random_chance(&worker->random, 300))) {
            history_unknown(&worker->history);
            break;
        }
        if (code != SPILL_UNKNOWN && !operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    }
    for (int64_t i = 0; i < count; i++)
        bson_destroy(&storage[i]);
}

void operation_append(worker_t *worker, const place_t *place)
{
    spill_error_t error;
    spill_code_t code;
    int64_t base;
    while ((code = spill_array_op_base(place->array, &place->owner, &base, &error)) != SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    int64_t count = sim_random_between(&worker->random, 1, OPERATIONS_PAGE_CAPACITY);
    history_append(&worker->history, place->name, count, base);
    append(worker, place, count, base);
}

void operation_append_again(worker_t *worker, const place_t *place, const history_append_t *again)
{
    append(worker, place, again->count, again->base);
}

void operation_count(worker_t *worker, const place_t *place)
{
    spill_error_t error;
    spill_count_t found;
    spill_code_t code;
    history_count(&worker->history, place->name);
    while ((code = spill_array_count(place->array, &place->owner, &found, &error)) != SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    history_counted(&worker->history, found.count);
}

/* The slice must have consecutive numbers, from the requested position on. */
static void check_run(const place_t *place, const spill_read_options_t *options,
                      const spill_slice_t *slice)
{
    int64_t step = options->order == SPILL_NEWEST_FIRST ? -1 : 1;
    bool good = (int64_t)slice->count <= options->limit;
    for (size_t i = 0; i < slice->count; i++)
        good = good && slice->elements[i].value.type == BSON_TYPE_INT64 &&
               slice->elements[i].seq == slice->elements[0].seq + step * (int64_t)i;
    if (good)
        return;
    fprintf(stderr, "worker: a read of %s has gaps or more than %" PRId64 " elements:", place->name,
            options->limit);
    for (size_t i = 0; i < slice->count; i++)
        fprintf(stderr, " %" PRId64, slice->elements[i].seq);
    fprintf(stderr, "\n");
    _exit(3);
}

static spill_slice_t *read_run(worker_t *worker, const place_t *place,
                               const spill_read_options_t *options)
{
    spill_error_t error;
    spill_slice_t *slice;
    spill_code_t code;
    history_read(&worker->history, place->name, options);
    while ((code = spill_array_read(place->array, &place->owner, options, &slice, &error)) !=
           SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    check_run(place, options, slice);
    history_got(&worker->history, slice);
    return slice;
}

void operation_read(worker_t *worker, const place_t *place)
{
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = sim_random_between(&worker->random, 1, 4 * OPERATIONS_PAGE_CAPACITY);
    if (sim_random_chance(&worker->random, 300)) {
        options.order = SPILL_OLDEST_FIRST;
        options.after = sim_random_between(&worker->random, -1, 60);
    }
    spill_slice_t *slice = read_run(worker, place, &options);
    if (options.order == SPILL_NEWEST_FIRST && slice->more &&
        sim_random_chance(&worker->random, 300)) {
        options.before = slice->next;
        spill_slice_free(slice);
        slice = read_run(worker, place, &options);
    }
    spill_slice_free(slice);
}

/* ---- change ---------------------------------------------------------------------------------- */

/* Retry the removal until it is acknowledged, or until the element no longer exists. */
static void remove_element(worker_t *worker, const place_t *place, int64_t seq)
{
    spill_error_t error;
    spill_code_t code;
    bool unknown = false;
    history_remove(&worker->history, place->name, seq);
    while ((code = spill_array_remove(place->array, &place->owner, seq, &error)) != SPILL_OK &&
           code != SPILL_NOT_FOUND) {
        unknown = unknown || code == SPILL_UNKNOWN;
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    }
    history_removed(&worker->history, unknown ? -1 : code == SPILL_OK);
}

static void trim(worker_t *worker, const place_t *place, int64_t below)
{
    spill_error_t error;
    spill_code_t code;
    history_trim(&worker->history, place->name, below);
    while ((code = spill_array_trim(place->array, &place->owner, below, &error)) != SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    history_trimmed(&worker->history);
}

/* Write the element's own value again, so that histories need no lines for edits. */
static void edit(const place_t *place, const spill_element_t *element)
{
    spill_error_t error;
    spill_code_t code;
    while ((code = spill_array_edit(place->array, &place->owner, element->seq, &element->value,
                                    &error)) != SPILL_OK &&
           code != SPILL_NOT_FOUND)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
}

/* The numbers must be in order, whatever was removed meanwhile. */
static void check_order(const place_t *place, const spill_slice_t *slice)
{
    for (size_t i = 1; i < slice->count; i++)
        if (slice->elements[i].seq >= slice->elements[i - 1].seq) {
            fprintf(stderr, "worker: a read of %s is out of order\n", place->name);
            _exit(3);
        }
}

void operation_change(worker_t *worker, const place_t *place)
{
    spill_read_options_t options;
    spill_error_t error;
    spill_slice_t *slice;
    spill_code_t code;
    spill_read_options_init(&options);
    options.skip = sim_random_below(&worker->random, 12);
    options.limit = 6;
    while ((code = spill_array_read(place->array, &place->owner, &options, &slice, &error)) !=
           SPILL_OK)
        if (!operation_may_repeat(code, &error))
            operation_failed(place->name, code, &error);
    check_order(place, slice);
    if (slice->count > 0) {
        int at = sim_random_below(&worker->random, (int)slice->count);
        int drawn = sim_random_below(&worker->random, 100);
        if (drawn < 50)
            remove_element(worker, place, slice->elements[at].seq);
        else if (drawn < 95)
            edit(place, &slice->elements[at]);
        else
            trim(worker, place, slice->elements[at].seq);
    }
    spill_slice_free(slice);
}
