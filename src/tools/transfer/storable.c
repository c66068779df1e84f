/* Elements that a definition cannot store because of their values. */
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

bool spill_storable_may_refuse(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->has_referenced_elements || schema->keeps_top_n || schema->has_windows;
}

/* Report whether `to` may refuse elements of `from`. False if `from` has the same rules. */
static bool may_refuse_more(const spill_transfer_t *transfer, const spill_definition_t *from,
                            const spill_definition_t *to)
{
    if (spill_schema_of(to)->has_windows)
        return transfer->makes_windows;
    if (spill_schema_of(from)->has_referenced_elements &&
        spill_schema_of(to)->has_referenced_elements)
        return !spill_stored_element_same_rules(from, to);
    if (spill_schema_of(from)->keeps_top_n && spill_schema_of(to)->keeps_top_n)
        return strcmp(from->sort_field, to->sort_field) != 0 ||
               from->bounds.head_bytes_max > to->bounds.head_bytes_max;
    return spill_storable_may_refuse(to);
}

/* ---- one element ----------------------------------------------------------------------------- */

static spill_code_t check_value(const spill_owner_t *target, const spill_value_t *value,
                                spill_error_t *error)
{
    const spill_definition_t *to = &target->array->definition;
    char window[SPILL_WINDOW_SIZE];
    if (spill_schema_of(to)->has_referenced_elements)
        return spill_stored_element_check(to, value, NULL, error);
    if (spill_schema_of(to)->has_windows)
        return spill_window_of_element(to, value, window, error);
    return spill_array_check_top_n(target, value, error);
}

spill_code_t spill_storable_check(const spill_owner_t *target, const spill_owner_t *source,
                                  const spill_element_t *element, spill_error_t *error)
{
    spill_code_t code = check_value(target, &element->value, error);
    if (code == SPILL_OK)
        return SPILL_OK;
    spill_fail_prefix(error, code, "element %" PRId64, element->seq);
    return spill_owner_name(source, code, error);
}

/* ---- all elements of an owner, which may be unmanaged ---------------------------------------- */

static spill_code_t check_run(const spill_owner_t *target, const spill_owner_t *source,
                              const spill_run_t *run, spill_error_t *error)
{
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        SPILL_TRY(spill_storable_check(target, source, &element, error));
    }
    return SPILL_OK;
}

static spill_code_t check_stretches(const spill_owner_t *target, const spill_owner_t *source,
                                    spill_error_t *error)
{
    SPILL_SCOPED(spill_stretch_release) spill_stretch_t stretch = {0};
    while (!stretch.last) {
        SPILL_TRY(spill_stretch_read(source, &stretch, error));
        SPILL_TRY(check_run(target, source, stretch.run, error));
    }
    return SPILL_OK;
}

spill_code_t spill_storable_check_owner(const spill_definition_t *to, const spill_owner_t *owner,
                                        spill_error_t *error)
{
    if (!spill_storable_may_refuse(to))
        return SPILL_OK;
    spill_array_t array = {.store = owner->array->store, .definition = *to};
    const spill_owner_t target = {.array = &array, .value = owner->value};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_unmanaged_request(owner, INT64_MAX);
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    return head.state.present ? check_stretches(&target, owner, error)
                              : check_run(&target, owner, &head.run, error);
}

/* ---- the elements that a transfer is about to append ----------------------------------------- */

bool spill_transfer_may_refuse(const spill_transfer_t *transfer)
{
    return may_refuse_more(transfer, spill_transfer_source(transfer),
                           spill_transfer_target(transfer));
}

spill_code_t spill_transfer_check_missing(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    if (!spill_transfer_may_refuse(transfer))
        return SPILL_OK;
    SPILL_SCOPED(spill_transfer_reader_release)
    spill_transfer_reader_t reader =
        spill_transfer_reader_of_source(owner, owner->next, owner->end);
    spill_transfer_keep_begin(owner);
    while (!reader.ended) {
        spill_element_t element = {0};
        if (spill_store_stopped(transfer->source.store))
            return spill_walk_stopped(error);
        SPILL_TRY(spill_transfer_reader_get(&reader, &element, error));
        if (reader.ended)
            break;
        SPILL_TRY(spill_storable_check(&owner->target, &owner->source, &element, error));
        spill_transfer_keep(owner, &element);
        reader.at++;
        transfer->result->checked++;
    }
    spill_transfer_keep_end(owner);
    return SPILL_OK;
}
