/* Appends as the caller sees them: checks, and batches split into parts that each fit a page. */
#include "layout/append.h"
#include "bson/element_fields.h"
#include "bson/value.h"
#include "bson/value_text.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "layout/layout.h"
#include "layout/referenced.h"
#include "layout/unique.h"
#include "store/timed.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

void spill_append_options_init(spill_append_options_t *options)
{
    if (options == NULL)
        return;
    *options = (spill_append_options_t){.version = SPILL_APPEND_OPTIONS_VERSION};
}

/* Layouts reference and subset. */
static spill_code_t check_stored(const spill_owner_t *owner, const spill_value_t *element,
                                 size_t index, spill_error_t *error)
{
    spill_code_t code = spill_stored_element_check(&owner->array->definition, element, NULL, error);
    return code == SPILL_OK ? SPILL_OK : spill_fail_prefix(error, code, "element %zu", index);
}

/* An array that keeps each id once. */
static spill_code_t check_id(const spill_definition_t *definition, const spill_value_t *element,
                             size_t index, spill_error_t *error)
{
    spill_value_t id;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    if (!definition->unique)
        return SPILL_OK;
    if (!spill_element_id(element, definition->id_field, &id))
        return spill_fail(error, SPILL_INVALID,
                          "element %zu has no id at '%s': '%s' keeps each id once", index,
                          definition->id_field, definition->name);
    spill_code_t code = spill_element_id_key(&id, true, &key, error);
    return code == SPILL_OK ? code : spill_fail_prefix(error, code, "element %zu", index);
}

/* What a document around a single element adds to the element's bytes, at most. */
static int64_t bytes_around(const spill_owner_t *owner)
{
    int64_t head = spill_part_bytes_alone(owner, true, 1, 0);
    int64_t page = spill_schema_of(&owner->array->definition)->has_pages
                       ? spill_part_bytes_alone(owner, false, 1, 0)
                       : 0;
    return head > page ? head : page;
}

static spill_code_t check_elements(const spill_owner_t *owner, const spill_value_t *elements,
                                   size_t count, spill_error_t *error)
{
    if (count == 0)
        return spill_fail(error, SPILL_INVALID, "there is nothing to append");
    const int64_t around = bytes_around(owner);
    for (size_t i = 0; i < count; i++) {
        SPILL_TRY(spill_array_check_element(&elements[i], i, error));
        SPILL_TRY(spill_array_check_text(owner->array, &elements[i], i, error));
        if (spill_schema_of(&owner->array->definition)->has_referenced_elements)
            SPILL_TRY(check_stored(owner, &elements[i], i, error));
        SPILL_TRY(check_id(&owner->array->definition, &elements[i], i, error));
        SPILL_TRY(spill_array_check_window(owner, &elements[i], error));
        spill_code_t code = spill_array_check_top_n(owner, &elements[i], error);
        if (code != SPILL_OK)
            return spill_fail_prefix(error, code, "element %zu", i);
        int64_t bytes = around + elements[i].size_bytes;
        if (bytes > SPILL_DOCUMENT_BYTES_MAX)
            return spill_fail(error, SPILL_TOO_BIG,
                              "element %zu has %u bytes: with a document around it that is %" PRId64
                              ", and no document holds more than %d",
                              i, elements[i].size_bytes, bytes, SPILL_DOCUMENT_BYTES_MAX);
    }
    return SPILL_OK;
}

/* A read of an owner with any bytes succeeds; an append would make one that drivers cannot read. */
static spill_code_t check_owner_text(const spill_owner_t *owner, spill_error_t *error)
{
    if (owner->array->keeps_any_text)
        return SPILL_OK;
    spill_code_t code = spill_value_check_text(owner->value, error);
    return code == SPILL_OK ? SPILL_OK : spill_fail_prefix(error, code, "the owner's _id");
}

static spill_code_t check_op(const spill_op_t *op, spill_error_t *error)
{
    if (op != NULL && op->id == NULL)
        return spill_fail(error, SPILL_INVALID, "the operation's id is NULL");
    if (op != NULL && (op->id_bytes < 1 || op->id_bytes > SPILL_OP_ID_MAX))
        return spill_fail(error, SPILL_INVALID, "an operation id has 1 to %d bytes, not %zu",
                          SPILL_OP_ID_MAX, op->id_bytes);
    if (op != NULL && (op->base < 0 || op->base > SPILL_OP_BASE_MAX))
        return spill_fail(error, SPILL_INVALID,
                          "an operation's base is a number that the owner gave, 0 or more, not "
                          "%" PRId64,
                          op->base);
    return SPILL_OK;
}

static int64_t bytes_of(const spill_value_t *elements, size_t count)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += elements[i].size_bytes;
    return bytes;
}

/*
 * The most elements that fit one part; a single element always does. If some do not fit, more do
 * not either. So the steps double until one does not fit, and are halved from then on: few checks,
 * and a time that depends on the part alone, not on the elements behind it.
 */
static spill_part_t next_part(const spill_owner_t *owner, const spill_value_t *elements,
                              size_t count)
{
    spill_part_t part = {.elements = elements};
    bool grows = true;
    for (size_t step = 1; step > 0 && part.count < count;) {
        step = step < count - part.count ? step : count - part.count;
        int64_t bytes = part.bytes + bytes_of(elements + part.count, step);
        bool fits = spill_part_fits(owner, (int64_t)(part.count + step), bytes);
        grows = grows && fits;
        if (fits) {
            part.count += step;
            part.bytes = bytes;
        }
        step = grows ? step * 2 : fits ? step : step / 2;
    }
    return part;
}

/*
 * The parts of a split batch have the ids "ID", "ID\0K", ...: K is how many elements are in the
 * parts before. Each part that was applied has raised op_count by one. So base + i was a value of
 * op_count before the first try of the i-th part.
 */
typedef struct part_op {
    spill_op_t op;
    char id[SPILL_OP_ID_MAX + 24];
} part_op_t;

static spill_code_t part_op_init(part_op_t *part, const spill_op_t *whole, size_t at, int64_t index,
                                 spill_error_t *error)
{
    int suffix = 0;
    memcpy(part->id, whole->id, whole->id_bytes);
    if (at > 0)
        suffix = 1 + snprintf(part->id + whole->id_bytes + 1, sizeof part->id - whole->id_bytes - 1,
                              "%zu", at);
    part->id[whole->id_bytes] = '\0';
    part->op = (spill_op_t){
        .id = part->id, .id_bytes = whole->id_bytes + (size_t)suffix, .base = whole->base + index};
    if (part->op.id_bytes > SPILL_OP_ID_MAX)
        return spill_fail(error, SPILL_INVALID,
                          "the operation id of a batch that may be split (it is larger than a "
                          "page, or to fill documents) may have at most %d bytes, not %zu",
                          SPILL_OP_ID_MAX - suffix, whole->id_bytes);
    return SPILL_OK;
}

/* Before any write: does every part get a different id that is short enough? */
static spill_code_t check_split_id(const spill_op_t *op, const spill_part_t *first, size_t count,
                                   spill_error_t *error)
{
    part_op_t last;
    bool split = first->count < count || (first->fill && count > 1);
    return op != NULL && split ? part_op_init(&last, op, count, 0, error) : SPILL_OK;
}

/*
 * A part's operation id is known with another number of elements. If the stored elements equal
 * ours, it is the same batch, which was split in another way: other bounds applied, or a document
 * was full earlier. The part is then done.
 */
static spill_code_t done_otherwise(const spill_owner_t *owner, const spill_value_t *elements,
                                   size_t count, const spill_append_result_t *done, bool *same,
                                   spill_error_t *error)
{
    spill_read_options_t options;
    spill_slice_t *slice;
    *same = false;
    if (done->count > (int64_t)count)
        return SPILL_OK;
    spill_read_options_init(&options);
    options.order = SPILL_OLDEST_FIRST;
    options.after = done->first - 1;
    options.before = done->first + done->count;
    options.limit = done->count;
    SPILL_TRY(spill_array_read(owner->array, owner->value, &options, &slice, error));
    *same = (int64_t)slice->count == done->count;
    for (size_t i = 0; *same && i < slice->count; i++)
        *same = spill_value_equal(&slice->elements[i].value, &elements[i]);
    spill_slice_free(slice);
    return SPILL_OK;
}

/* Append the next part, or as much of it as fills a document, or recognize it. */
static spill_code_t append_next(spill_owner_t *owner, const spill_part_t *part, size_t left,
                                spill_append_result_t *done, spill_error_t *error)
{
    bool same = false;
    spill_error_t failure;
    spill_code_t code = owner->array->definition.unique
                            ? spill_unique_append(owner, part, done, error)
                            : spill_layout_append(owner, part, done, error);
    if (code != SPILL_CONFLICT || !done->repeated || part->op == NULL)
        return code; /* an entry of a session does not name the stored elements */
    spill_code_t second = done_otherwise(owner, part->elements, left, done, &same, &failure);
    if (second != SPILL_OK && error != NULL)
        *error = failure;
    if (second != SPILL_OK)
        return second;
    return same ? SPILL_OK : code;
}

/*
 * How a batch for an array that keeps each id once is split. Parts of an operation have numbers
 * that depend on which elements are left out, so there is only one. A session numbers each element.
 */
static spill_code_t fit_unique(const spill_owner_t *owner, const spill_append_options_t *options,
                               size_t count, spill_part_t *part, spill_error_t *error)
{
    if (!owner->array->definition.unique)
        return SPILL_OK;
    if (options->op != NULL && options->update != NULL)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' keeps each id once: an append with an operation id cannot have an "
                          "update, which a retry would repeat if all elements are left out",
                          owner->array->definition.name);
    if (options->session != NULL) {
        part->count = 1;
        part->bytes = part->elements[0].size_bytes;
    }
    if (options->op == NULL || part->count == count)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' keeps each id once: a batch with an operation id must fit a page, and "
                      "this one has %zu elements, of which %zu fit: append fewer at a time",
                      owner->array->definition.name, count, part->count);
}

/* All elements were left out, but the head's other fields change. */
static spill_code_t update_alone(const spill_owner_t *owner, const spill_append_options_t *options,
                                 spill_error_t *error)
{
    spill_update_options_t update;
    spill_update_options_init(&update);
    update.session = options->session;
    update.match = options->match;
    return spill_array_update_with(owner->array, owner->value, options->update, &update, NULL,
                                   error);
}

static spill_code_t append_parts(spill_owner_t *owner, const spill_value_t *elements, size_t count,
                                 const spill_append_options_t *options,
                                 spill_append_result_t *result, spill_error_t *error)
{
    bool fill = options->fill && !spill_schema_of(&owner->array->definition)->appends_to_head;
    const bson_t exists = BSON_INITIALIZER; /* no later part creates the head again */
    size_t at = 0;
    spill_code_t code = SPILL_OK;
    result->repeated = true;
    for (int64_t index = 0; code == SPILL_OK && at < count; index++) {
        spill_part_t part = next_part(owner, elements + at, count - at);
        part_op_t op;
        spill_session_op_t session;
        spill_append_result_t done = {0};
        spill_timed_forget_changes();
        part.update = result->count == result->duplicates ? options->update : NULL;
        part.fill = fill;
        part.match = index == 0 || options->match == NULL ? options->match : &exists;
        if (options->session != NULL) {
            session = *options->session;
            session.number += (int32_t)at;
            part.session = &session;
        }
        code = fit_unique(owner, options, count, &part, error);
        if (index == 0 && code == SPILL_OK)
            code = check_split_id(options->op, &part, count, error);
        if (code == SPILL_OK && options->op != NULL) {
            code = part_op_init(&op, options->op, at, index, error);
            part.op = &op.op;
        }
        if (code == SPILL_OK)
            code = append_next(owner, &part, count - at, &done, error);
        if (code != SPILL_OK && (code != SPILL_UNKNOWN || done.count == 0))
            break; /* after an unknown outcome elements may have been acknowledged all the same */
        if (index == 0 || (result->first < 0 && result->duplicates == result->count))
            result->first = done.first;
        result->count += done.count;
        result->repeated = result->repeated && done.repeated;
        result->op_base = done.op_base;
        result->dropped += done.dropped;
        result->crowded_out += done.crowded_out;
        result->duplicates += done.duplicates;
        at += (size_t)done.count;
    }
    if (code != SPILL_OK && result->count == 0)
        result->repeated = false;
    bool none = result->count == result->duplicates && !result->repeated;
    return code == SPILL_OK && none && options->update != NULL ? update_alone(owner, options, error)
                                                               : code;
}

spill_code_t spill_array_check_session(const spill_array_t *array,
                                       const spill_session_op_t *session, size_t count,
                                       const bson_t *match, spill_error_t *error)
{
    const spill_definition_t *definition = &array->definition;
    if (session == NULL && match == NULL)
        return SPILL_OK;
    if (definition->layout != SPILL_LAYOUT_OUTLIER || !spill_schema_of(definition)->appends_to_head)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has no operations of sessions and no match: only layout outlier "
                          "that keeps the newest has them",
                          definition->name);
    if (session != NULL &&
        (session->txn < 0 || session->number < 0 || session->horizon_us < 0 ||
         session->entries_max < 0 || count > INT32_MAX - (size_t)session->number))
        return spill_fail(error, SPILL_INVALID,
                          "a session's operation has numbers of 0 or more, below 2147483647");
    return match != NULL ? spill_array_check_match(array, match, error) : SPILL_OK;
}

/* Version 1 ends before the session. */
static spill_code_t copy_options(const spill_append_options_t *given,
                                 spill_append_options_t *options, spill_error_t *error)
{
    spill_append_options_init(options);
    if (given == NULL)
        return SPILL_OK;
    if (given->version != 1 && given->version != SPILL_APPEND_OPTIONS_VERSION)
        return spill_fail(error, SPILL_INVALID,
                          "append options have version %d, but this library needs version %d: "
                          "initialize them with spill_append_options_init",
                          given->version, SPILL_APPEND_OPTIONS_VERSION);
    options->op = given->op;
    options->update = given->update;
    options->fill = given->fill;
    options->session = given->version > 1 ? given->session : NULL;
    options->match = given->version > 1 ? given->match : NULL;
    if (options->op != NULL && options->session != NULL)
        return spill_fail(error, SPILL_INVALID,
                          "an append has an operation id or a session's operation, not both");
    return SPILL_OK;
}

spill_code_t spill_array_append(spill_array_t *array, const spill_value_t *owner,
                                const spill_value_t *elements, size_t count,
                                const spill_append_options_t *options,
                                spill_append_result_t *result, spill_error_t *error)
{
    spill_append_options_t own_options;
    spill_append_result_t ignored;
    result = result != NULL ? result : &ignored;
    *result = (spill_append_result_t){.version = SPILL_APPEND_RESULT_VERSION};
    SPILL_CHECK_ARRAY(error, array, owner, elements);
    SPILL_CHECK_ARGUMENT(error, count <= PTRDIFF_MAX / sizeof *elements,
                         "there are more elements than memory holds");
    SPILL_TRY(copy_options(options, &own_options, error));
    options = &own_options;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_array_check_built(array, error));
    SPILL_TRY(spill_owner_init(&own, array, owner, error));
    SPILL_TRY(check_owner_text(&own, error));
    SPILL_TRY(check_elements(&own, elements, count, error));
    SPILL_TRY(check_op(options->op, error));
    SPILL_TRY(spill_array_check_session(array, options->session, count, options->match, error));
    if (options->update != NULL) {
        SPILL_TRY(spill_array_check_update(array, options->update, error));
        SPILL_TRY(spill_array_check_others(&own, options->update, error));
    }
    spill_code_t code = append_parts(&own, elements, count, options, result, error);
    if (own.grew) /* also after an error */
        spill_windows_retain(array, owner);
    return code;
}

bool spill_array_make_push(spill_array_t *array, const spill_value_t *owner,
                           const spill_value_t *elements, size_t count,
                           const spill_session_op_t *session, bson_t *filter, bson_t *update)
{
    spill_error_t error;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    if (array->definition.unique || spill_array_check_built(array, &error) != SPILL_OK ||
        spill_owner_init(&own, array, owner, &error) != SPILL_OK ||
        check_elements(&own, elements, count, &error) != SPILL_OK ||
        spill_array_check_session(array, session, count, NULL, &error) != SPILL_OK)
        return false; /* the append reports it */
    if (session != NULL && spill_session_forgets(session))
        return false; /* the append also removes old entries */
    spill_part_t part = next_part(&own, elements, count);
    part.session = session;
    return part.count == count && spill_layout_make_push(&own, &part, filter, update);
}

/* ---- several owners, in one request to the store --------------------------------------------- */

/* The batches that go into the request, in one array for each part of them. */
typedef struct group {
    spill_owner_t owners[SPILL_BATCHES_MAX];
    spill_part_t parts[SPILL_BATCHES_MAX];
    part_op_t ops[SPILL_BATCHES_MAX];
    spill_append_result_t results[SPILL_BATCHES_MAX];
    spill_owner_batch_t *batches[SPILL_BATCHES_MAX];
    size_t count;
} group_t;

/* Check the batch, and make its only part. Its own append reports what is wrong with it. */
static bool add_batch(group_t *group, spill_array_t *array, spill_owner_batch_t *batch)
{
    spill_error_t error;
    size_t at = group->count;
    spill_owner_t *owner = &group->owners[at];
    if (spill_owner_init(owner, array, &batch->owner, &error) != SPILL_OK ||
        check_elements(owner, batch->elements, batch->count, &error) != SPILL_OK ||
        check_op(&batch->op, &error) != SPILL_OK) {
        spill_owner_release(owner);
        return false;
    }
    spill_part_t part = next_part(owner, batch->elements, batch->count);
    if (part.count < batch->count ||
        part_op_init(&group->ops[at], &batch->op, 0, 0, &error) != SPILL_OK) {
        spill_owner_release(owner);
        return false;
    }
    part.op = &group->ops[at].op;
    group->parts[at] = part;
    group->batches[at] = batch;
    group->count++;
    return true;
}

static void end_batch(spill_array_t *array, spill_owner_batch_t *batch,
                      const spill_append_result_t *result)
{
    batch->done = true;
    batch->result = *result;
    if (result->first == 0 && spill_schema_of(&array->definition)->has_windows)
        spill_windows_retain(array, &batch->owner);
}

spill_code_t spill_array_append_many(spill_array_t *array, spill_owner_batch_t *batches,
                                     size_t count, spill_error_t *error)
{
    group_t *group = bson_malloc(sizeof *group);
    group->count = 0;
    spill_code_t code = spill_array_check_built(array, error);
    for (size_t i = 0; i < count; i++) {
        batches[i].done = false;
        if (code == SPILL_OK && !array->definition.unique) /* else each is searched by itself */
            add_batch(group, array, &batches[i]);
    }
    if (code == SPILL_OK && group->count > 0)
        code = spill_layout_append_many(group->owners, group->parts, group->count, group->results,
                                        error);
    for (size_t i = 0; i < group->count; i++) {
        if (code == SPILL_OK && group->results[i].count > 0)
            end_batch(array, group->batches[i], &group->results[i]);
        spill_owner_release(&group->owners[i]);
    }
    bson_free(group);
    return code;
}
