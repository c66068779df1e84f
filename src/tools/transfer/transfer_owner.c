/*
 * One owner: copy the fields of its head and the elements that the target does not have yet, and
 * compare everything. The target's next number shows how far an earlier transfer has come.
 */
#include "tools/transfer/transfer_parts.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

#define TRIES_MAX 5 /* without progress */

/* ---- the application's fields in the head ---------------------------------------------------- */

/*
 * Report whether a definition of the store on the same heads has a field at the path (`around`: in
 * the document at the path). `others`: without the side's own definition.
 */
static bool is_taken(const spill_transfer_side_t *side, const char *path, bool around, bool others)
{
    const spill_definition_t *own = spill_array_get_definition(side->array);
    for (size_t i = 0; i < side->definition_count; i++) {
        const spill_definition_t *one = &side->definitions[i];
        const char *fields[SPILL_OWN_FIELDS_MAX];
        bool itself = strcmp(one->name, own->name) == 0;
        if ((others && itself) || strcmp(one->collection, own->collection) != 0)
            continue;
        for (size_t k = spill_own_fields(one, fields); k > 0; k--)
            if (strcmp(fields[k - 1], path) == 0
                    ? !around
                    : around && spill_starts_with_part(fields[k - 1], path))
                return true;
    }
    return false;
}

static bool is_of_another(const spill_transfer_side_t *side, const char *path)
{
    return is_taken(side, path, false, true);
}

/* Is the document at the path around a field of an array, on either side? */
static bool is_around_array(const spill_transfer_t *transfer, const char *path)
{
    return is_taken(&transfer->source, path, true, false) ||
           is_taken(&transfer->target, path, true, false);
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

static bool has_equal(const bson_t *fields, const char *path, const spill_value_t *value)
{
    bson_iter_t iter;
    if (!fields || !spill_path_find(fields, path, &iter))
        return false;
    spill_value_t there = spill_value_from_iter(&iter);
    return spill_value_equal(&there, value);
}

/* Append a field to `set` if the target lacks it or has another value. True: it was appended. */
static bool add_field(spill_transfer_owner_t *owner, const char *path, const bson_iter_t *iter,
                      const bson_t *target, bson_t *set)
{
    spill_value_t value = spill_value_from_iter(iter);
    if (strcmp(path, "_id") == 0 || is_of_another(&owner->transfer->source, path) ||
        has_equal(target, path, &value))
        return false;
    if (is_of_another(&owner->transfer->target, path)) {
        spill_transfer_differs(owner, -1,
                               "another definition of the target has a field of the head that is "
                               "the application's in the source");
        return false;
    }
    if (!can_be_set(bson_iter_key(iter))) {
        spill_transfer_differs(owner, -1,
                               "the name of a field of the head is empty, begins with '$' or has a "
                               "'.' in it: it is not copied");
        return false;
    }
    return spill_value_append(&value, set, path);
}

/* Append the fields of the document at `parent` ("" or "stats."): of one around an array, each. */
static bool add_fields(spill_transfer_owner_t *owner, const char *parent, const bson_t *source,
                       const bson_t *target, bson_t *set)
{
    bson_iter_t iter;
    bson_t inner;
    bool any = false;
    if (!bson_iter_init(&iter, source))
        return false;
    while (bson_iter_next(&iter)) {
        const char *name = bson_iter_key(&iter);
        char *path = bson_strdup_printf("%s%s", parent, name);
        if (can_be_set(name) && BSON_ITER_HOLDS_DOCUMENT(&iter) &&
            is_around_array(owner->transfer, path) && spill_inner_document(&iter, &inner)) {
            char *within = bson_strdup_printf("%s.", path);
            any |= add_fields(owner, within, &inner, target, set);
            bson_free(within);
        } else {
            any |= add_field(owner, path, &iter, target, set);
        }
        bson_free(path);
    }
    return any;
}

bool spill_transfer_fields_update(spill_transfer_owner_t *owner, const bson_t *source,
                                  const bson_t *target, bson_t *update)
{
    bson_t set;
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &set);
    bool any = source && add_fields(owner, "", source, target, &set);
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
    spill_transfer_keep_release(owner);
    if (!owner->transfer->is_checked)
        SPILL_TRY(spill_transfer_check_missing(owner, error));
    SPILL_SCOPED(spill_transfer_batch_free)
    spill_transfer_batch_t *batch = spill_transfer_batch_new(owner->next);
    SPILL_SCOPED(spill_transfer_reader_release)
    spill_transfer_reader_t reader =
        spill_transfer_reader_of_source(owner, owner->next, owner->end);
    if (!reader.kept)
        spill_transfer_keep_begin(owner);
    for (int64_t next = owner->next; next < owner->end;) {
        spill_element_t element = {0};
        SPILL_TRY(spill_transfer_reader_get(&reader, &element, error));
        int64_t end = reader.ended ? owner->end : element.seq;
        SPILL_TRY(spill_transfer_push_gap(owner, batch, next, end, error));
        next = next < end ? end : next;
        if (reader.ended)
            continue;
        SPILL_TRY(spill_storable_check(&owner->target, &owner->source, &element, error));
        spill_transfer_keep(owner, &element);
        SPILL_TRY(spill_transfer_push(owner, batch, &element.value, false, error));
        reader.at++;
        next++;
    }
    spill_transfer_keep_end(owner);
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
    SPILL_TRY(spill_transfer_keep_check(owner, error));
    if (compares)
        SPILL_TRY(spill_transfer_compare(owner, from, ahead ? owner->next : owner->end,
                                         &transfer->result->verified, error));
    if (ahead)
        spill_transfer_differs_ahead(owner, owner->end,
                                     "the target has used more numbers than the source");
    return SPILL_OK;
}

bool spill_transfer_copies_fields(const spill_transfer_t *transfer)
{
    return !transfer->options->building && !transfer->joins_windows && !transfer->makes_windows;
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
    spill_code_t code =
        spill_transfer_copies_fields(transfer) ? copy_fields(owner, error) : SPILL_OK;
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
