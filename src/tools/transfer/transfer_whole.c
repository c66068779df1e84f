/* A whole small array, by a few READs. */
#include "tools/transfer/transfer_whole.h"

#include "definition/schema.h"
#include "layout/referenced.h"
#include "util/error.h"

/* Read the documents of referenced elements, if one run has all of them. */
static spill_code_t read_documents(spill_whole_t *whole, spill_error_t *error)
{
    const spill_state_t *head = &whole->head.state;
    spill_referenced_walk_t walk = {.next = head->watermark};
    whole->complete = true;
    if (head->first <= head->watermark)
        return SPILL_OK;
    SPILL_TRY(
        spill_referenced_walk(&whole->owner, head, head->first, &walk, &whole->documents, error));
    whole->complete = walk.next >= head->first;
    spill_run_add_from(&whole->documents.run, 0, &whole->joined);
    spill_run_add_from(&whole->head.run, 0, &whole->joined);
    return SPILL_OK;
}

spill_code_t spill_whole_read(spill_whole_t *whole, bool fields, bool append_follows,
                              spill_error_t *error)
{
    const spill_definition_t *definition = &whole->owner.array->definition;
    const spill_state_t *head = &whole->head.state;
    whole->owner.walked = true;
    spill_request_t read = spill_owner_whole_request(&whole->owner, SPILL_HEAD);
    read.read.want_fields = fields;
    read.read.append_follows = append_follows;
    spill_run_clear(&whole->joined);
    SPILL_TRY(spill_owner_call(&whole->owner, &read, &whole->head, error));
    whole->complete = head->pages == 0;
    if (head->present && spill_schema_of(definition)->has_referenced_elements)
        SPILL_TRY(read_documents(whole, error));
    whole->complete = whole->complete && head->present && !head->intent && !head->closed &&
                      (int64_t)spill_whole_run(whole)->count == spill_state_count(definition, head);
    return SPILL_OK;
}

const spill_run_t *spill_whole_run(const spill_whole_t *whole)
{
    return whole->joined.count > 0 ? &whole->joined : &whole->head.run;
}

void spill_whole_clear(spill_whole_t *whole)
{
    spill_response_clear(&whole->head);
    spill_run_clear(&whole->joined);
    whole->complete = false;
}

void spill_whole_release(spill_whole_t *whole)
{
    spill_owner_release(&whole->owner);
    spill_response_release(&whole->head);
    spill_response_release(&whole->documents);
    spill_run_release(&whole->joined);
}
