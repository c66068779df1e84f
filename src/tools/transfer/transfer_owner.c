/*
 * One owner: copy the fields of its head and the elements that the target does not have yet, and
 * compare everything. The target's next number shows how far an earlier transfer has come.
 */
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define TRIES_MAX 5 /* without progress */

/* ---- the application's fields in the head ---------------------------------------------------- */

/* Report whether the field belongs to another definition of the store on the same heads. */
static bool is_of_another(const spill_transfer_side_t *side, const char *name)
{
    const spill_definition_t *own = spill_array_get_definition(side->array);
    for (size_t i = 0; i < side->definition_count; i++) {
        const spill_definition_t *other = &side->definitions[i];
        if (strcmp(other->name, own->name) == 0 || strcmp(other->collection, own->collection) != 0)
            continue;
        if (strcmp(name, other->array) == 0 || strcmp(name, other->count_field) == 0 ||
            strcmp(name, other->overflow_field) == 0 || strcmp(name, other->pages_field) == 0)
            return true;
    }
    return false;
}

/* An update would read other names as a path or an operator. */
static bool can_be_set(const char *name)
{
    return name[0] != '\0' && name[0] != '$' && strchr(name, '.') == NULL;
}

static spill_code_t read_fields(const spill_transfer_side_t *side, const spill_owner_t *owner,
                                spill_response_t *head, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    spill_code_t code = spill_owner_call(owner, &read, head, error);
    return spill_transfer_failed(side, code, error);
}

static bool has_equal(const bson_t *fields, const char *name, const spill_value_t *value)
{
    bson_iter_t iter;
    if (!fields || !bson_iter_init_find(&iter, fields, name))
        return false;
    spill_value_t there = spill_value_from_iter(&iter);
    return spill_value_equal(&there, value);
}

/* Append a field to `set` if the target lacks it or has another value. True: it was appended. */
static bool add_field(spill_transfer_owner_t *owner, const bson_iter_t *iter, const bson_t *target,
                      bson_t *set)
{
    const char *name = bson_iter_key(iter);
    spill_value_t value = spill_value_from_iter(iter);
    if (strcmp(name, "_id") == 0 || is_of_another(&owner->transfer->source, name) ||
        has_equal(target, name, &value))
        return false;
    if (is_of_another(&owner->transfer->target, name)) {
        spill_transfer_differs(owner, -1,
                               "another definition of the target has a field of the head that is "
                               "the application's in the source");
        return false;
    }
    if (!can_be_set(name)) {
        spill_transfer_differs(owner, -1,
                               "the name of a field of the head is empty, begins with '$' or has a "
                               "'.' in it: it is not copied");
        return false;
    }
    return spill_value_append(&value, set, name);
}

bool spill_transfer_fields_update(spill_transfer_owner_t *owner, const bson_t *source,
                                  const bson_t *target, bson_t *update)
{
    bson_t set;
    bson_iter_t iter;
    bool any = false;
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
    if (source && bson_iter_init(&iter, source))
        while (bson_iter_next(&iter))
            any |= add_field(owner, &iter, target, &set);
    bson_append_document_end(update, &set);
    return any;
}

/* Set the other fields of the target's head as in the source. */
static spill_code_t copy_fields(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    SPILL_SCOPED(spill_response_release) spill_response_t here = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t there = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    SPILL_TRY(read_fields(&owner->transfer->source, &owner->source, &here, error));
    SPILL_TRY(read_fields(target, &owner->target, &there, error));
    if (!spill_transfer_fields_update(owner, here.fields, there.fields, &update))
        return SPILL_OK;
    const spill_value_t *value = owner->target.value;
    spill_code_t code = spill_array_update(target->array, value, &update, error);
    if (code == SPILL_UNKNOWN) /* applying the same update twice is harmless */
        code = spill_array_update(target->array, value, &update, error);
    return spill_transfer_failed(target, code, error);
}

/* ---- what is missing ------------------------------------------------------------------------- */

static spill_code_t append_missing(spill_transfer_owner_t *owner, spill_error_t *error)
{
    if (!owner->transfer->is_checked)
        SPILL_TRY(spill_transfer_check_missing(owner, error));
    SPILL_SCOPED(spill_transfer_batch_free)
    spill_transfer_batch_t *batch = spill_transfer_batch_new(owner->next);
    SPILL_SCOPED(spill_transfer_reader_release)
    spill_transfer_reader_t reader =
        spill_transfer_reader_of_source(owner, owner->next, owner->end);
    for (int64_t next = owner->next; next < owner->end;) {
        spill_element_t element = {0};
        SPILL_TRY(spill_transfer_reader_get(&reader, &element, error));
        int64_t end = reader.ended ? owner->end : element.seq;
        SPILL_TRY(spill_transfer_push_gap(owner, batch, next, end, error));
        next = next < end ? end : next;
        if (reader.ended)
            continue;
        SPILL_TRY(spill_storable_check(&owner->target, &owner->source, &element, error));
        SPILL_TRY(spill_transfer_push(owner, batch, &element.value, false, error));
        reader.at++;
        next++;
    }
    return spill_transfer_flush(owner, batch, error);
}

/* Read the base, then the target, then the source, which is therefore never behind the target. */
static spill_code_t count_both(spill_transfer_owner_t *owner, spill_error_t *error)
{
    SPILL_TRY(spill_transfer_count_target(owner, error));
    SPILL_TRY(spill_transfer_count_source(owner, error));
    if (owner->transfer->drops_windows && owner->next > owner->end) {
        owner->begin = owner->next - owner->end;
        owner->end = owner->next;
    }
    return spill_transfer_is_capped(owner->transfer) ? spill_transfer_cap_read(owner, error)
                                                     : SPILL_OK;
}

/* Compare the end of the target, from which the transfer continues, and count differences. */
static spill_code_t check_tail(spill_transfer_owner_t *owner, spill_error_t *error)
{
    int64_t from = owner->next < SPILL_TRANSFER_BATCH ? 0 : owner->next - SPILL_TRANSFER_BATCH;
    from = from < owner->begin ? owner->begin : from;
    if (spill_transfer_is_capped(owner->transfer) && from < owner->cap_low)
        from = owner->cap_low;
    return spill_transfer_compare(owner, from, owner->next, NULL, error);
}

/* Try once to copy what is missing now. */
static spill_code_t try_elements(spill_transfer_owner_t *owner, spill_error_t *error)
{
    bool capped = spill_transfer_is_capped(owner->transfer);
    SPILL_TRY(count_both(owner, error));
    bool missing = owner->next < owner->end;
    if (missing || owner->transfer->options->unverified) {
        owner->cap_begins = capped;
        spill_code_t code = check_tail(owner, error);
        owner->cap_begins = false;
        SPILL_TRY(code);
    }
    if (!missing || owner->difference.count > 0)
        return SPILL_OK;
    if (capped)
        SPILL_TRY(spill_transfer_cap_begin(owner, error));
    return append_missing(owner, error);
}

/* Append the elements of the source that the target does not have yet. */
static spill_code_t copy_elements(spill_transfer_owner_t *owner, spill_error_t *error)
{
    spill_code_t code;
    int64_t next;
    int tries = 0;
    do {
        next = owner->next;
        code = try_elements(owner, error);
        tries = owner->next > next ? 0 : tries + 1;
    } while ((code == SPILL_UNKNOWN || code == SPILL_CONFLICT) && tries < TRIES_MAX);
    return code;
}

/* ---- the whole owner ------------------------------------------------------------------------- */

/* Count the elements that a cap has dropped. Set *from to the first number to compare. */
static spill_code_t count_dropped(spill_transfer_owner_t *owner, int64_t *from,
                                  spill_error_t *error)
{
    const spill_transfer_side_t *target = &owner->transfer->target;
    *from = 0;
    if (spill_transfer_is_capped(owner->transfer))
        SPILL_TRY(spill_transfer_cap_check(owner, from, error));
    if (spill_transfer_keeps_top_n(owner->transfer)) {
        spill_count_t count;
        SPILL_TRY(spill_transfer_failed(
            target, spill_array_count(target->array, owner->target.value, &count, error), error));
        owner->live = count.count;
    }
    bool capped = spill_schema_of(spill_transfer_target(owner->transfer))->is_capped;
    if (capped && owner->has > owner->live)
        owner->transfer->result->dropped += owner->has - owner->live;
    if (*from < owner->begin)
        *from = owner->begin;
    return SPILL_OK;
}

/* Compare everything. A difference found while copying is found again. */
static spill_code_t compare_all(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    bool ahead = owner->next > owner->end;
    bool compares = !transfer->options->unverified;
    int64_t from;
    if (compares) {
        owner->difference.count = 0;
        owner->difference.ahead = false;
        owner->hash = 0;
    }
    SPILL_TRY(count_dropped(owner, &from, error));
    if (compares)
        SPILL_TRY(spill_transfer_compare(owner, from, ahead ? owner->next : owner->end,
                                         &transfer->result->verified, error));
    if (ahead)
        spill_transfer_differs_ahead(owner, owner->end,
                                     "the target has used more numbers than the source");
    return SPILL_OK;
}

/* Copy fields before elements: they count towards the head's bytes. */
spill_code_t spill_transfer_to_array(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    spill_copy_result_t *result = transfer->result;
    SPILL_TRY(spill_transfer_check_dropped(owner, &owner->target, error));
    if (owner->difference.count > 0)
        return SPILL_OK;
    int64_t copied = result->elements;
    bool fields_go = !transfer->joins_windows && !transfer->options->building;
    spill_code_t code = fields_go ? copy_fields(owner, error) : SPILL_OK;
    int64_t fields = owner->difference.count;
    owner->difference.count = 0; /* copy the elements even if a field cannot be set */
    if (code == SPILL_OK)
        code = copy_elements(owner, error);
    result->before += owner->live - (result->elements - copied);
    if (code == SPILL_OK)
        code = compare_all(owner, error);
    owner->difference.count += fields;
    return code;
}
