/*
 * Capped: the head holds the newest elements, or with a sortField those that rank highest, at most
 * `threshold` of them and headBytesMax bytes; what is older, or ranks lower, is dropped for good.
 * There are no pages. An append is one atomic step, which makes
 * its own room: so no append is refused for want of it, a batch is never split, and a crash leaves
 * nothing half done. docs/internals/protocol.md has the table.
 */
#include "definition/schema.h"
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/drop.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "layout/trim.h"
#include "util/error.h"

#include <inttypes.h>

static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    return spill_append_request(owner, SPILL_HEAD, part);
}

/* Not even the newest element fits beside the head's other fields. */
static spill_code_t too_big(spill_owner_t *owner, const spill_part_t *part, spill_response_t *head,
                            spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    if (spill_schema_of(definition)->keeps_top_n)
        return spill_fail(error, SPILL_TOO_BIG,
                          "an element of headBytesMax, %" PRId64 " bytes, would not fit a document "
                          "of %d beside the head's other fields, which take %" PRId64,
                          definition->bounds.head_bytes_max, SPILL_DOCUMENT_BYTES_MAX,
                          head->state.fields_bytes);
    return spill_fail(
        error, SPILL_TOO_BIG,
        "an element of %u bytes does not fit a document of %d bytes beside the head's "
        "other fields, which take %" PRId64,
        part->elements[part->count - 1].size_bytes, SPILL_DOCUMENT_BYTES_MAX,
        head->state.fields_bytes);
}

/* An age is looked at so many times in the course of `threshold` appends. */
enum { LOOKS = 8 };

static void after_append(spill_owner_t *owner, const spill_request_t *append,
                         spill_response_t *head)
{
    int64_t step = owner->array->definition.bounds.threshold / LOOKS;
    owner->retain_is_due = spill_retain_is_due(head->seq, spill_request_numbers(append), step);
}

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    static const spill_head_append_t steps = {
        .request = append_request, .done = after_append, .full = too_big};
    return spill_append_to_head(owner, part, &steps, result, error);
}

const spill_layout_ops_t spill_capped_ops = {
    .append = append_part,
    .count = spill_count_newest,
    .edit = spill_documents_edit,
    .remove = spill_documents_remove,
    .trim = spill_documents_trim,
    .drop = spill_capped_drop,
};
