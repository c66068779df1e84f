/*
 * Capped: the head holds the newest elements, at most `threshold` of them and headBytesMax bytes;
 * what is older is dropped for good. There are no pages. An append is one atomic step, which makes
 * its own room: so no append is refused for want of it, a batch is never split, and a crash leaves
 * nothing half done. docs/protocol.md has the table.
 */
#include "layout/outlier.h"
#include "util/error.h"

#include <inttypes.h>

/* Not even the newest element fits beside the head's other fields. */
static spill_code_t too_big(const spill_part_t *part, const spill_state_t *head,
                            spill_error_t *error)
{
    return spill_fail(
        error, SPILL_TOO_BIG,
        "an element of %u bytes does not fit a document of %d bytes beside the head's "
        "other fields, which take %" PRId64,
        part->elements[part->count - 1].size_bytes, SPILL_DOCUMENT_BYTES_MAX, head->fields_bytes);
}

spill_code_t spill_capped_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    int tries = 0;
    while (code == SPILL_OK) {
        spill_request_t append = spill_append_request(
            owner, SPILL_HEAD, part, spill_head_limits(definition, &definition->bounds));
        code = spill_owner_call(owner, &append, &head, error);
        if (code != SPILL_OK)
            break;
        if (head.outcome == SPILL_DONE) {
            spill_append_done(part, &head, result);
            break;
        }
        spill_refusal_t refusal = SPILL_REFUSAL_NONE;
        code = spill_append_judge(owner, &append, &head, &refusal, result, error);
        if (refusal == SPILL_REFUSAL_REPEATED || refusal == SPILL_REFUSAL_STALE)
            break;
        if (code == SPILL_OK && refusal == SPILL_REFUSAL_NONE && part->member_count > 0)
            break; /* one of its operations may be the reason */
        if (code == SPILL_OK && refusal == SPILL_REFUSAL_FULL)
            code = too_big(part, &head.state, error);
        if (code == SPILL_OK || code == SPILL_UNKNOWN) /* refused: nothing was appended */
            code = spill_owner_again(owner, &tries, error);
    }
    spill_response_release(&head);
    return code;
}
