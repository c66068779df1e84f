/*
 * Steps on the tail of a keep-oldest array: seal it, create the page after it (oldest.c explains
 * the protocol), and close it for a drop.
 *
 * A client appends to the tail without a read of the head. So a drop first closes the tail: it is
 * sealed, and no page follows it. A client that reads a closed tail finishes the drop.
 */
#include "definition/schema.h"
#include "layout/outlier.h"
#include "util/error.h"

static spill_code_t advance(const spill_owner_t *owner, const spill_state_t *sealed,
                            spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
    request.incarnation = sealed->incarnation;
    request.advance.pages = sealed->page + 2;
    request.advance.total = spill_state_end(sealed);
    return spill_owner_step(owner, &request, NULL, error);
}

spill_code_t spill_oldest_grow(spill_owner_t *owner, int64_t page, spill_response_t *response,
                               spill_error_t *error)
{
    const spill_state_t *sealed = &response->state;
    if (page != SPILL_HEAD)
        SPILL_TRY(advance(owner, sealed, error));
    spill_request_t create = spill_owner_request(owner, SPILL_REQUEST_CREATE_PAGE, page + 1);
    create.incarnation = sealed->incarnation;
    create.create_page.first = spill_state_end(sealed);
    create.create_page.op_count = sealed->op_count;
    create.create_page.ops = &response->ops;
    create.limits = spill_page_limits(&owner->array->definition.bounds);
    return spill_owner_step(owner, &create, NULL, error);
}

spill_code_t spill_oldest_seal(const spill_owner_t *owner, int64_t page, const spill_state_t *state,
                               spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_SEAL, page);
    request.incarnation = state->incarnation;
    request.rev = state->rev;
    return spill_owner_step(owner, &request, NULL, error);
}

spill_code_t spill_oldest_check_tail(const spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                     spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (head.state.present && head.state.incarnation == incarnation && head.state.pages == pages)
        return spill_owner_missing_page(owner, pages - 2, error);
    return SPILL_OK;
}

/* ---- drop ------------------------------------------------------------------------------------ */

static spill_code_t close_page(const spill_owner_t *owner, int64_t page, int64_t incarnation,
                               spill_error_t *error)
{
    spill_request_t seal = spill_owner_request(owner, SPILL_REQUEST_SEAL, page);
    seal.incarnation = incarnation;
    seal.seal.close = true;
    return spill_owner_step(owner, &seal, NULL, error);
}

/*
 * The head counts a last page that does not exist. Read the page before it, and create the last
 * page for the next try. That page is sealed, unless the head's count is damaged.
 */
static spill_code_t make_tail(spill_owner_t *owner, const spill_state_t *head,
                              spill_response_t *before, spill_error_t *error)
{
    int64_t page = head->pages - 2;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want_ops = !owner->array->store->ops->shared_window;
    SPILL_TRY(spill_owner_call(owner, &read, before, error));
    if (!before->state.present || before->state.incarnation != head->incarnation)
        return page >= 0 ? spill_oldest_check_tail(owner, head->incarnation, head->pages, error)
                         : SPILL_OK;
    return before->state.sealed ? spill_oldest_grow(owner, page, before, error)
                                : spill_oldest_seal(owner, page, &before->state, error);
}

/*
 * One try with keep oldest and pages. If the tail is open, close it. If it is closed, drop the
 * rest. If it is sealed, or does not exist, create its successor or itself for the next try.
 */
static spill_code_t drop_tail_first(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                    spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t tail = SPILL_RESPONSE_INIT;
    int64_t page = head->pages - 1;
    SPILL_TRY(close_page(owner, page, head->incarnation, error));
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want_ops = !owner->array->store->ops->shared_window;
    SPILL_TRY(spill_owner_call(owner, &read, &tail, error));
    if (!tail.state.present || tail.state.incarnation != head->incarnation)
        return make_tail(owner, head, &tail, error);
    if (tail.state.closed) {
        SPILL_TRY(spill_outlier_drop_closed(owner, head->incarnation, head->pages, error));
        *done = true;
        return SPILL_OK;
    }
    return tail.state.sealed ? spill_oldest_grow(owner, page, &tail, error) : SPILL_OK;
}

spill_code_t spill_outlier_drop_has_begun(const spill_owner_t *owner, bool *begun,
                                          spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    *begun = false;
    if (spill_schema_of(&owner->array->definition)->appends_to_head)
        return SPILL_OK;
    SPILL_TRY(spill_drop_read_head(owner, &head, error));
    if (!head.state.present || head.state.pages == 0)
        return SPILL_OK;
    SPILL_TRY(spill_owner_read_state(owner, head.state.pages - 1, &page, error));
    *begun =
        page.state.present && page.state.closed && page.state.incarnation == head.state.incarnation;
    return SPILL_OK;
}

/* An earlier incarnation, or a head that was sealed before it was read, may have left pages. */
spill_code_t spill_oldest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    return head->pages > 0 ? drop_tail_first(owner, head, done, error)
                           : spill_drop_documents(owner, head, 0, 0, done, error);
}
