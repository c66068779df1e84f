#include "tools/transfer/transfer.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

const spill_definition_t *spill_transfer_source(const spill_transfer_t *transfer)
{
    return spill_array_get_definition(transfer->source.array);
}

const spill_definition_t *spill_transfer_target(const spill_transfer_t *transfer)
{
    return spill_array_get_definition(transfer->target.array);
}

bool spill_transfer_is_capped(const spill_transfer_t *transfer)
{
    const spill_schema_t *schema = spill_schema_of(spill_transfer_target(transfer));
    return schema->is_capped && !schema->keeps_top_n;
}

bool spill_transfer_keeps_top_n(const spill_transfer_t *transfer)
{
    return spill_schema_of(spill_transfer_target(transfer))->keeps_top_n;
}

spill_code_t spill_transfer_failed(const spill_transfer_side_t *side, spill_code_t code,
                                   spill_error_t *error)
{
    return code == SPILL_OK ? code : spill_fail_prefix(error, code, "%s", side->name);
}

spill_code_t spill_transfer_wait(const spill_transfer_t *transfer, int64_t elements,
                                 spill_error_t *error)
{
    const spill_copy_options_t *options = transfer->options;
    return options->turn ? options->turn(options->context, elements, error) : SPILL_OK;
}

void spill_transfer_progress(const spill_transfer_t *transfer)
{
    if (transfer->options->progress)
        transfer->options->progress(transfer->options->context, transfer->result);
}

/* ---- differences ----------------------------------------------------------------------------- */

void spill_transfer_differs(spill_transfer_owner_t *owner, int64_t seq, const char *text)
{
    if (owner->difference.count == 0) {
        owner->difference.seq = seq;
        owner->difference.text = text;
    }
    owner->difference.count++;
}

void spill_transfer_differs_ahead(spill_transfer_owner_t *owner, int64_t seq, const char *text)
{
    spill_transfer_differs(owner, seq, text);
    owner->difference.ahead = true;
}

spill_code_t spill_transfer_check_dropped(spill_transfer_owner_t *owner,
                                          const spill_owner_t *target, spill_error_t *error)
{
    bool begun;
    SPILL_TRY(spill_transfer_failed(&owner->transfer->target,
                                    spill_outlier_drop_has_begun(target, &begun, error), error));
    if (begun)
        spill_transfer_differs(owner, -1,
                               "in the target an unfinished drop has begun to delete it");
    return SPILL_OK;
}
