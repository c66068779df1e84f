/*
 * Keep oldest: the head keeps the first elements. Appends go to the tail, which is the last
 * document. If the tail, page p, is full, the writer adds a page:
 *
 *   1. SEAL         the tail accepts no further append, so its end is fixed
 *   2. ADVANCE      overflowPages = max(overflowPages, p + 2)   (sealing the head sets it to 1)
 *   3. CREATE_PAGE  p + 1: first = the end of p; it receives a copy of the window of operations
 *
 * Each step is idempotent, and any client may do it. A client makes a page only after it has read
 * that the page before is sealed. So there is one tail at a time, and sequence numbers have no gap.
 * Before an append moves on from a document that refused it, it searches the document's operations
 * for its own.
 *
 * A client appends to the tail without a read of the head. So a drop first closes the tail: it is
 * sealed, and no page follows it. A client that reads a closed tail finishes the drop.
 */
#include "layout/oldest.h"
#include "bson/update.h"
#include "definition/schema.h"
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/document_limits.h"
#include "layout/drop.h"
#include "layout/layout.h"
#include "layout/locate.h"
#include "layout/trim.h"
#include "util/error.h"

#include <inttypes.h>

/* ---- the tail -------------------------------------------------------------------------------- */

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

/*
 * Keep oldest: SEAL the document `page`, whose state was read. It has no effect if another client
 * changed the document meanwhile.
 */
static spill_code_t seal_document(const spill_owner_t *owner, int64_t page,
                                  const spill_state_t *state, spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_SEAL, page);
    request.incarnation = state->incarnation;
    request.rev = state->rev;
    return spill_owner_step(owner, &request, NULL, error);
}

/*
 * Keep oldest: the last two of the `pages` pages that a head of `incarnation` counted were missing.
 * A client raises that count only after it has sealed the last page but one, and a drop deletes the
 * head before its pages. So return SPILL_CORRUPT, with the page, if the head still counts them.
 * Cost: one read.
 */
static spill_code_t check_tail(const spill_owner_t *owner, int64_t incarnation, int64_t pages,
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
        return page >= 0 ? check_tail(owner, head->incarnation, head->pages, error) : SPILL_OK;
    return before->state.sealed ? spill_oldest_grow(owner, page, before, error)
                                : seal_document(owner, page, &before->state, error);
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
static spill_code_t drop_one(spill_owner_t *owner, const spill_state_t *head, bool *done,
                             spill_error_t *error)
{
    return head->pages > 0 ? drop_tail_first(owner, head, done, error)
                           : spill_drop_documents(owner, head, 0, 0, done, error);
}

/* ---- appends --------------------------------------------------------------------------------- */

/* The document to append to, and its incarnation (0: not known yet, only for the head). */
typedef struct tail {
    int64_t page;
    int64_t incarnation;
} tail_t;

static spill_code_t find_tail(const spill_owner_t *owner, tail_t *tail, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    *tail = (tail_t){.page = head.state.present ? head.state.pages - 1 : SPILL_HEAD,
                     .incarnation = head.state.present ? head.state.incarnation : 0};
    return SPILL_OK;
}

static bool is_of_tail(const spill_response_t *document, const tail_t *tail)
{
    return document->state.present && document->state.incarnation == tail->incarnation;
}

/*
 * Move on from a document that is full, or to one that was not made yet: do the steps that are
 * missing until the next page exists, and set *tail to the newest document.
 */
static spill_code_t move_on(spill_owner_t *owner, tail_t *tail, spill_error_t *error)
{
    int64_t refused = tail->page;
    spill_tail_forget(owner);
    SPILL_TRY(find_tail(owner, tail, error));
    if (tail->page > refused)
        return SPILL_OK;
    /* The head counts no later page: read the last page, or the one before if it is missing. */
    SPILL_SCOPED(spill_response_release) spill_response_t last = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, tail->page);
    read.read.want_ops = !owner->array->store->ops->shared_window;
    SPILL_TRY(spill_owner_call(owner, &read, &last, error));
    if (!is_of_tail(&last, tail) && tail->page > SPILL_HEAD) {
        read.page = tail->page - 1;
        SPILL_TRY(spill_owner_call(owner, &read, &last, error));
    }
    if (!is_of_tail(&last, tail))
        return read.page < 0 ? SPILL_OK
                             : check_tail(owner, tail->incarnation, tail->page + 1, error);
    if (last.state.closed) {
        SPILL_TRY(spill_outlier_drop_closed(owner, tail->incarnation, read.page + 1, error));
        return find_tail(owner, tail, error);
    }
    tail->page = last.state.sealed ? read.page + 1 : read.page;
    return last.state.sealed ? spill_oldest_grow(owner, read.page, &last, error) : SPILL_OK;
}

/* Make an empty head, which can then be sealed: its first batch is for a page. */
static spill_code_t make_head(const spill_owner_t *owner, spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.create = true;
    request.incarnation = spill_owner_now(owner);
    return spill_owner_step(owner, &request, NULL, error);
}

/* A part that no empty page could hold is too big; spill_array_append splits what it can. */
static spill_code_t check_fits_page(const spill_owner_t *owner, const spill_part_t *part,
                                    spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_limits_t limits = spill_page_limits(&definition->bounds);
    int64_t count = (int64_t)part->count;
    int64_t alone = spill_part_bytes_alone(owner, false, count, part->bytes);
    if (spill_limits_fit(&limits, count, count, alone))
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "%zu elements of %" PRId64 " bytes do not fit a page of '%s'", part->count,
                      part->bytes, definition->name);
}

/*
 * An append to a page updates the head's other fields after the append. If the update is invalid
 * for the fields of now, nothing shall be appended: so try it on a copy of them first.
 */
static spill_code_t check_update(const spill_owner_t *owner, const bson_t *update,
                                 spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    if (head.fields != NULL) {
        bson_t updated;
        spill_code_t code = spill_update_apply(head.fields, update, &updated, error);
        head.state.fields_bytes = updated.len;
        bson_destroy(&updated);
        if (code != SPILL_OK)
            return code;
    }
    int64_t bytes = spill_state_document_bytes(&owner->array->definition, owner->value, true,
                                               &head.state, head.state.live, head.state.live_bytes);
    if (bytes > SPILL_DOCUMENT_BYTES_MAX)
        return spill_fail(error, SPILL_TOO_BIG,
                          "with the update the head would have %" PRId64
                          " bytes, and no document holds more than %d",
                          bytes, SPILL_DOCUMENT_BYTES_MAX);
    return SPILL_OK;
}

/*
 * Update the head's other fields. The incarnation `incarnation` has the elements already, and
 * *result says so, also if the update fails.
 */
static spill_code_t update_fields(const spill_owner_t *owner, int64_t incarnation,
                                  const bson_t *update, spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.append.update = update;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &request, &response, error);
    bool refused = code == SPILL_OK && response.outcome != SPILL_DONE;
    if (refused)
        code = spill_owner_read_state(owner, SPILL_HEAD, &response, error);
    /* If the owner is absent or a later one, it was dropped after the append and the update. */
    if (code == SPILL_OK && refused && response.state.present &&
        response.state.incarnation == incarnation)
        code = spill_owner_name(
            owner, spill_fail(error, SPILL_UNKNOWN, "the head has no room for it"), error);
    spill_response_release(&response);
    if (code == SPILL_OK)
        return SPILL_OK;
    return spill_fail_prefix(error, SPILL_UNKNOWN,
                             "appended, but the update of other fields may be lost");
}

/* An append in progress. */
typedef struct attempt {
    const spill_part_t *whole;
    spill_part_t part; /* `whole`, or (fill) as much of it as `tail` has room for */
    tail_t tail;       /* the document that gets it */
    bool finished;     /* the result is filled */
    bool sealed;       /* this append has sealed a document */
} attempt_t;

/*
 * Fill: if the document that refused the part as FULL has room for some of its first elements, cut
 * the part to these.
 */
static bool cut_to_room(attempt_t *attempt, const spill_request_t *append,
                        const spill_state_t *state)
{
    spill_request_t shorter = *append;
    shorter.append.element_count = 1;
    shorter.append.elements_bytes = append->append.elements[0].size_bytes;
    size_t count = 0;
    int64_t bytes = 0;
    while (shorter.append.element_count < append->append.element_count &&
           spill_append_refusal(&shorter, state, NULL) == SPILL_REFUSAL_NONE) {
        count = shorter.append.element_count;
        bytes = shorter.append.elements_bytes;
        shorter.append.elements_bytes +=
            append->append.elements[shorter.append.element_count++].size_bytes;
    }
    if (count == 0)
        return false;
    attempt->part.count = count;
    attempt->part.bytes = bytes;
    return true;
}

/* The tail refused the append: find out why, and do what the next try needs. */
static spill_code_t after_refusal(spill_owner_t *owner, const spill_request_t *append,
                                  spill_response_t *response, attempt_t *attempt,
                                  spill_append_result_t *result, spill_error_t *error)
{
    tail_t *tail = &attempt->tail;
    spill_refusal_t refusal = SPILL_REFUSAL_NONE;
    spill_code_t code =
        spill_append_classify_refusal(owner, append, response, &refusal, result, error);
    attempt->finished = refusal == SPILL_REFUSAL_REPEATED || refusal == SPILL_REFUSAL_STALE;
    /* Return a refused group to the combiner, which appends its members in smaller groups. */
    bool divide_group = append->append.member_count > 0 &&
                        (refusal == SPILL_REFUSAL_NONE || refusal == SPILL_REFUSAL_FULL);
    attempt->finished = attempt->finished || divide_group;
    if (attempt->finished)
        return code;
    if (code == SPILL_OK && refusal == SPILL_REFUSAL_FULL && attempt->whole->fill &&
        cut_to_room(attempt, append, &response->state))
        return SPILL_OK;
    attempt->sealed = attempt->sealed || refusal == SPILL_REFUSAL_FULL;
    if (code == SPILL_OK && refusal == SPILL_REFUSAL_FULL)
        code = response->state.present ? seal_document(owner, tail->page, &response->state, error)
                                       : make_head(owner, error);
    bool as_it_is = refusal == SPILL_REFUSAL_NONE ||
                    (refusal == SPILL_REFUSAL_ABSENT && tail->page == SPILL_HEAD);
    if (code == SPILL_OK && !as_it_is) {
        attempt->part = *attempt->whole;
        code = move_on(owner, tail, error);
    }
    /* Nothing was appended, and each of these steps can be repeated. */
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* Try once to append to the tail. Unless attempt->finished, `attempt` describes the next try. */
static spill_code_t try_append(spill_owner_t *owner, attempt_t *attempt,
                               spill_append_result_t *result, spill_error_t *error)
{
    const tail_t *tail = &attempt->tail;
    spill_request_t append = spill_append_request(owner, tail->page, &attempt->part);
    if (tail->page != SPILL_HEAD)
        append.incarnation = tail->incarnation;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, &append, &response, error);
    if (code == SPILL_OK && response.outcome == SPILL_DONE) {
        spill_append_done(&attempt->part, &response, result);
        attempt->finished = true;
    } else if (code == SPILL_OK) {
        code = after_refusal(owner, &append, &response, attempt, result, error);
    }
    if (code == SPILL_OK && attempt->finished)
        spill_tail_remember(owner, append.incarnation, append.page);
    spill_response_release(&response);
    return code;
}

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    spill_code_t code = check_fits_page(owner, part, error);
    attempt_t attempt = {.whole = part, .part = *part, .tail = {.page = SPILL_HEAD}};
    spill_tail_t hint;
    if (code == SPILL_OK && spill_tail_recall(owner, &hint))
        attempt.tail = (tail_t){.page = hint.page, .incarnation = hint.incarnation};
    else if (code == SPILL_OK && (part->op == NULL || part->op->base > 0))
        code = find_tail(owner, &attempt.tail, error); /* with base 0 the owner is probably new */
    if (code == SPILL_OK && part->update != NULL && attempt.tail.page != SPILL_HEAD)
        code = check_update(owner, part->update, error);
    int tries = 0;
    bool in_head = true;
    while (code == SPILL_OK && !attempt.finished) {
        in_head = attempt.tail.page == SPILL_HEAD;
        code = try_append(owner, &attempt, result, error);
        if (code == SPILL_OK && !attempt.finished)
            code = spill_owner_again(owner, &tries, error);
    }
    owner->retain_is_due = code == SPILL_OK && attempt.sealed;
    owner->grew = owner->grew || attempt.sealed ||
                  (code == SPILL_OK && result->first == 0 && !result->repeated);
    if (code == SPILL_OK && part->update != NULL && !in_head && !result->repeated)
        code = update_fields(owner, attempt.tail.incarnation, part->update, error);
    return code;
}

static spill_request_t head_request(const spill_owner_t *owner, const spill_part_t *part)
{
    return spill_append_request(owner, SPILL_HEAD, part);
}

static void after_head_append(spill_owner_t *owner, const spill_request_t *append,
                              spill_response_t *head)
{
    (void)head;
    spill_tail_remember(owner, append->incarnation, SPILL_HEAD);
}

static const spill_head_append_t head_append = {.request = head_request, .done = after_head_append};

const spill_layout_ops_t spill_oldest_ops = {
    .append = append_part,
    .head_append = &head_append,
    .count = spill_count_oldest,
    .edit = spill_documents_edit,
    .remove = spill_documents_remove,
    .trim = spill_documents_trim,
    .drop = drop_one,
};
