/*
 * Repair: finish what dead clients have begun. If a client dies, it leaves a state that any other
 * client can finish (docs/internals/protocol.md). A repair searches for each of these states:
 *
 *   begun                  shows as                                   is finished by
 *   a removal, an edit     an intent in the head                      DELETE or PUT_PAGE; COMPLETE
 *   a drop, keep oldest    a closed tail                              DROP_HEAD, DROP_PAGE each
 *   a seal, keep oldest    a sealed tail, or a missing one            ADVANCE, CREATE_PAGE
 *   a trim                 pages below the watermark have elements    EMPTY_PAGE each
 *   a drop, a late put     pages without a head (store/listing.h)     DROP_PAGE each; on a server
 *                                                                     only with a note of the drop
 *
 * Rounding and other programs can make a summary wrong. A repair then computes it again (RECOUNT).
 *
 * Three states need no repair: a page that was put and not cut, elements that wait in a journal,
 * and a head that is longer than its threshold. The array has the same elements without a crash.
 */
#include "layout/repair.h"
#include "definition/schema.h"
#include "layout/change_element.h"
#include "layout/drop.h"
#include "layout/oldest.h"
#include "layout/referenced.h"
#include "layout/trim.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <stdio.h>

/* An owner under repair. */
typedef struct repair {
    spill_owner_t *owner;
    bool look_only;
    spill_half_done_fn report;
    void *context;
    bool *any; /* something was found */
} repair_t;

/* Report it. Returns whether to finish it. */
static bool found(const repair_t *repair, int64_t page, const char *text)
{
    repair->report(repair->context, page, text);
    *repair->any = true;
    return !repair->look_only;
}

/* ---- one function for each state ------------------------------------------------------------- */

static spill_code_t repair_intent(const repair_t *repair, const spill_state_t *head,
                                  spill_error_t *error)
{
    char text[96];
    if (!head->intent)
        return SPILL_OK;
    snprintf(text, sizeof text, "%s of element %" PRId64 " in page %" PRId64 " was not finished",
             head->intent_edit ? "an edit" : "a removal", head->intent_seq, head->intent_page);
    if (!found(repair, SPILL_HEAD, text))
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t without_intent = SPILL_RESPONSE_INIT;
    return spill_read_head_without_intent(repair->owner, NULL, &without_intent, error);
}

/* Keep oldest: `last` is the last document that exists, `page` its number. */
static spill_code_t repair_last(const repair_t *repair, const spill_state_t *head, int64_t page,
                                spill_response_t *last, spill_error_t *error)
{
    if (!last->state.present || last->state.incarnation != head->incarnation || !last->state.sealed)
        return SPILL_OK;
    if (last->state.closed)
        return found(repair, page, "is closed: a drop of the owner was not finished")
                   ? spill_outlier_drop_closed(repair->owner, head->incarnation, page + 1, error)
                   : SPILL_OK;
    return found(repair, page, "is sealed, and no page was made to follow it")
               ? spill_oldest_grow(repair->owner, page, last, error)
               : SPILL_OK;
}

static spill_code_t repair_tail(const repair_t *repair, const spill_state_t *head,
                                spill_error_t *error)
{
    const spill_array_t *array = repair->owner->array;
    if (spill_schema_of(&array->definition)->appends_to_head || head->pages == 0)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t last = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_request(repair->owner, SPILL_REQUEST_READ, head->pages - 1);
    read.read.want_ops = !array->store->ops->shared_window;
    SPILL_TRY(spill_owner_call(repair->owner, &read, &last, error));
    if (!last.state.present || last.state.incarnation != head->incarnation) {
        read.page--; /* which may be the head: SPILL_HEAD is the number before 0 */
        SPILL_TRY(spill_owner_call(repair->owner, &read, &last, error));
    }
    return repair_last(repair, head, read.page, &last, error);
}

static spill_code_t repair_trim(const repair_t *repair, const spill_state_t *head,
                                spill_error_t *error)
{
    char text[96];
    int64_t from, end = head->watermark;
    bool referenced = spill_schema_of(&repair->owner->array->definition)->has_referenced_elements;
    spill_code_t code = referenced
                            ? spill_referenced_trimmed(repair->owner, head, &from, error)
                            : spill_outlier_trimmed_pages(repair->owner, head, &from, &end, error);
    if (code != SPILL_OK || from == end)
        return code;
    snprintf(text, sizeof text,
             "a trim was not finished: pages %" PRId64 " to %" PRId64 " are not emptied", from,
             end - 1);
    return found(repair, SPILL_HEAD, text)
               ? spill_outlier_empty_pages(repair->owner, head->incarnation, from, end, error)
               : SPILL_OK;
}

/* Referenced elements: the head's sum and top. Report it once, also if other clients interfere. */
static spill_code_t repair_summary(const repair_t *repair, spill_error_t *error)
{
    bool done = false, reported = false;
    int tries = 0;
    spill_recount_t recount = {0};
    spill_code_t code = SPILL_OK;
    if (!spill_schema_of(&repair->owner->array->definition)->has_referenced_elements)
        return SPILL_OK;
    while (code == SPILL_OK && !done) {
        code = spill_referenced_count(repair->owner, repair->look_only, &recount, error);
        done = code != SPILL_OK || recount.text[0] == '\0';
        if (!done && !reported)
            done = !found(repair, SPILL_HEAD, recount.text);
        reported = true;
        if (!done)
            code = spill_referenced_recount(repair->owner, &recount, &done, error);
        if (code == SPILL_OK && !done)
            code = spill_owner_again(repair->owner, &tries, error);
    }
    spill_recount_release(&recount);
    return code;
}

/* ---- pages without a head -------------------------------------------------------------------- */

/* Why the pages have no head, and what to do. */
static const char *explain_orphan(const spill_orphan_t *orphan)
{
    switch (orphan->now) {
    case SPILL_ORPHAN_NO_DOCUMENT:
        return "no document has the owner's _id: another program or a TTL index deleted it. "
               "`spillway repair --drop-orphans' deletes such pages";
    case SPILL_ORPHAN_PLAIN:
        return "another program replaced the document, or a `migrate' ended early. "
               "Inspect the pages; `spillway drop' of the owner deletes them, and leaves the "
               "document";
    case SPILL_ORPHAN_MANAGED:
        return "the document was deleted or replaced, and has a new array. Inspect the pages; "
               "`spillway drop' of the owner deletes them and the new array";
    default:
        return "its document was deleted or replaced by another program, or a drop or `migrate' "
               "ended early. Inspect the pages; `spillway drop' of the owner removes them";
    }
}

void spill_orphan_describe(const spill_orphan_t *orphan, char *text, size_t text_bytes)
{
    if (orphan->strays > 0)
        snprintf(text, text_bytes,
                 "%s the fields of a page, but not the _id of one, such as %s: inspect, and delete "
                 "what is a copy",
                 spill_counted_text(orphan->strays, "document has", "documents have").text,
                 orphan->example);
    else if (orphan->dropped)
        snprintf(text, text_bytes, "%s left of an owner that was dropped",
                 spill_counted_text(orphan->pages, "page is", "pages are").text);
    else
        snprintf(text, text_bytes, "%s (spill.epoch %" PRId64 ") %s no head: %s",
                 spill_counted_text(orphan->pages, "page", "pages").text, orphan->incarnation,
                 orphan->pages == 1 ? "has" : "have", explain_orphan(orphan));
}

spill_code_t spill_outlier_repair_orphan(const spill_owner_t *owner, const spill_orphan_t *orphan,
                                         spill_error_t *error)
{
    bool any = false;
    if (!orphan->dropped)
        return SPILL_OK;
    SPILL_TRY(spill_outlier_drop_left_over(owner, orphan->incarnation, &any, error));
    return spill_outlier_finish_noted(owner, error);
}

/* ---- an owner -------------------------------------------------------------------------------- */

spill_code_t spill_outlier_repair(spill_owner_t *owner, bool look_only, bool summed,
                                  spill_half_done_fn report, void *context, spill_error_t *error)
{
    bool any = false;
    const repair_t repair = {owner, look_only, report, context, &any};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    if (!spill_schema_of(&owner->array->definition)->has_pages)
        return SPILL_OK; /* each of its steps is whole */
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    SPILL_TRY(repair_intent(&repair, &head.state, error));
    SPILL_TRY(repair_tail(&repair, &head.state, error));
    if (any && !look_only) /* its incarnation may be another by now */
        SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    SPILL_TRY(repair_trim(&repair, &head.state, error));
    return summed && !any ? SPILL_OK : repair_summary(&repair, error);
}
