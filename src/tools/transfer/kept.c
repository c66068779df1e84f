/*
 * The missing elements of one owner, as read from the source. While they are few, the check, the
 * append and the comparison share one read of them.
 */
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

enum { KEPT_BYTES = 4 * 1024 * 1024 };

bool spill_transfer_keeps_elements(const spill_transfer_t *transfer)
{
    const spill_schema_t *source = spill_schema_of(spill_transfer_source(transfer));
    const spill_schema_t *target = spill_schema_of(spill_transfer_target(transfer));
    return !transfer->joins_windows && !transfer->makes_windows && source->appends_to_head &&
           !source->has_windows && !source->is_capped && !target->is_capped;
}

void spill_transfer_keep_begin(spill_transfer_owner_t *owner)
{
    spill_transfer_kept_t *kept = &owner->kept;
    spill_run_clear(&kept->run);
    kept->incarnation = owner->source_incarnation;
    kept->rev = owner->source_rev;
    kept->from = owner->next;
    kept->to = owner->end;
    kept->is_whole = false;
    kept->is_filling = spill_transfer_keeps_elements(owner->transfer);
}

void spill_transfer_keep(spill_transfer_owner_t *owner, const spill_element_t *element)
{
    spill_transfer_kept_t *kept = &owner->kept;
    if (!kept->is_filling)
        return;
    spill_run_add(&kept->run, element->seq, &element->value);
    if (kept->run.arena.size > KEPT_BYTES) {
        spill_run_release(&kept->run);
        kept->is_filling = false;
    }
}

void spill_transfer_keep_end(spill_transfer_owner_t *owner)
{
    owner->kept.is_whole = owner->kept.is_whole || owner->kept.is_filling;
    owner->kept.is_filling = false;
}

void spill_transfer_keep_release(spill_transfer_owner_t *owner)
{
    spill_run_release(&owner->kept.run);
    owner->kept = (spill_transfer_kept_t){0};
}

const spill_run_t *spill_transfer_kept_run(const spill_transfer_owner_t *owner, int64_t from,
                                           int64_t to, size_t *at)
{
    const spill_transfer_kept_t *kept = &owner->kept;
    if (!kept->is_whole || from < kept->from || to > kept->to)
        return NULL;
    for (*at = 0; *at < kept->run.count && kept->run.entries[*at].seq < from;)
        ++*at;
    return &kept->run;
}

spill_code_t spill_transfer_keep_check(spill_transfer_owner_t *owner, spill_error_t *error)
{
    const spill_transfer_side_t *source = &owner->transfer->source;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    if (!owner->kept.is_whole)
        return SPILL_OK;
    spill_code_t code = spill_owner_read_state(&owner->source, SPILL_HEAD, &head, error);
    SPILL_TRY(spill_transfer_failed(source, code, error));
    if (!head.state.present || head.state.incarnation != owner->kept.incarnation ||
        head.state.rev != owner->kept.rev)
        spill_transfer_keep_release(owner);
    return SPILL_OK;
}
