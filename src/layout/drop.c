/*
 * Steps of a drop (layout.c has its loop). DROP_HEAD deletes the array; then the client deletes its
 * pages. Pages have the incarnation of their head. So a page that was left over, or is put late,
 * never becomes a page of a later owner of the same name.
 *
 * If appends go to the tail, the drop closes the tail first (oldest.c). Each deleted page
 * leaves a tombstone, because a late CREATE_PAGE of this incarnation must be refused.
 *
 * A client that dies after DROP_HEAD leaves pages, and so does a page that is put late. The next
 * drop of that name deletes the pages of all ended incarnations, even if there is no head. If other
 * programs may delete heads, a note lets `repair` delete them as well (head_end.h).
 */
#include "layout/drop.h"
#include "definition/schema.h"
#include "layout/head_end.h"
#include "util/error.h"

#include <inttypes.h>

/* This many absent pages in a row end the walk by page numbers. */
enum { MISSING_MAX = 1000, PAGES_TOGETHER = 100 };

static spill_code_t drop_head(const spill_owner_t *owner, int64_t incarnation, int64_t pages,
                              bool *done, spill_error_t *error)
{
    spill_request_t drop = spill_owner_request(owner, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.incarnation = incarnation;
    drop.drop_head.pages = pages;
    drop.drop_head.document_stays = owner->array->documents_stay;
    return spill_owner_step(owner, &drop, done, error);
}

/* Pages that one call deletes. */
typedef struct together {
    spill_request_t requests[PAGES_TOGETHER];
    spill_response_t responses[PAGES_TOGETHER];
} together_t;

static void free_together(together_t **pages)
{
    for (size_t i = 0; i < PAGES_TOGETHER; i++)
        spill_response_release(&(*pages)->responses[i]);
    bson_free(*pages);
}

/* How many pages one call deletes. With keep oldest each page leaves a tombstone. */
static int64_t pages_at_a_time(const spill_owner_t *owner)
{
    return spill_schema_of(&owner->array->definition)->appends_to_head ? PAGES_TOGETHER : 1;
}

/* Delete as many pages as one call does: this page and those before it. *done: there was one. */
static spill_code_t drop_together(const spill_owner_t *owner, int64_t incarnation, int64_t page,
                                  bool *done, spill_error_t *error)
{
    SPILL_SCOPED(free_together) together_t *pages = bson_malloc0(sizeof *pages);
    int64_t most = pages_at_a_time(owner);
    size_t count = (size_t)(page < most ? page + 1 : most);
    for (size_t i = 0; i < count; i++) {
        int64_t number = page - (int64_t)i;
        pages->requests[i] = spill_owner_request(owner, SPILL_REQUEST_DROP_PAGE, number);
        pages->requests[i].incarnation = incarnation;
    }
    *done = false;
    SPILL_TRY(spill_owner_call_all(owner, pages->requests, count, pages->responses, error));
    for (size_t i = 0; i < count; i++)
        *done = *done || pages->responses[i].outcome == SPILL_DONE;
    return SPILL_OK;
}

/* Delete the page and those before it, until there is none. *dropped: there was one. */
static spill_code_t drop_down_from(const spill_owner_t *owner, int64_t incarnation, int64_t page,
                                   bool *dropped, spill_error_t *error)
{
    bool done = true;
    *dropped = false;
    for (; done && page >= 0; page -= pages_at_a_time(owner)) {
        SPILL_TRY(drop_together(owner, incarnation, page, &done, error));
        *dropped = *dropped || done;
    }
    return SPILL_OK;
}

spill_code_t spill_outlier_find_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          spill_response_t *page, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    read.incarnation = incarnation;
    read.read.want_now = true;
    return spill_owner_call(owner, &read, page, error);
}

bool spill_page_is_leased(const spill_response_t *page)
{
    return page->state.present && page->state.lease > page->now_us;
}

spill_code_t spill_outlier_read_leased(const spill_owner_t *owner, int64_t number,
                                       spill_response_t *page, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, number);
    read.read.want_now = true;
    return spill_owner_call(owner, &read, page, error);
}

/* Without other writers, no copy (full.c) exists beside a head without pages. */
spill_code_t spill_outlier_may_end(const spill_owner_t *owner, const spill_state_t *head,
                                   spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(&owner->array->definition);
    if ((head->pages == 0 && !owner->array->store->ops->others_write) || !schema->appends_to_head ||
        !schema->has_pages || schema->has_referenced_elements)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_outlier_read_leased(owner, 0, &page, error));
    return spill_page_is_leased(&page) ? spill_owner_leased(owner, page.state.lease, error)
                                       : SPILL_OK;
}

/*
 * Count a search that found the page `number` again, though no document with its _id was there to
 * delete. Another client may have put and deleted it meanwhile, but not so often.
 */
static spill_code_t count_undeletable(const spill_owner_t *owner, int64_t number, int *found,
                                      spill_error_t *error)
{
    enum { FOUND_MAX = 5 };
    if (++*found < FOUND_MAX)
        return SPILL_OK;
    const spill_definition_t *definition = &owner->array->definition;
    spill_fail(error, SPILL_CORRUPT,
               "a document in '%s' has the fields of its page %" PRId64
               ", but not the _id of that page: check and delete this document",
               spill_schema_of(definition)->has_windows ? definition->collection
                                                        : definition->page_collection,
               number);
    return spill_owner_name(owner, SPILL_CORRUPT, error);
}

/*
 * Delete the pages of the ended incarnations up to `incarnation`. *any: there was a page. A drop
 * deletes from the highest number down, so usually the page that is found is the highest one left;
 * one search is enough then. SPILL_CONFLICT: a lease runs.
 */
spill_code_t spill_outlier_drop_left_over(const spill_owner_t *owner, int64_t incarnation,
                                          bool *any, spill_error_t *error)
{
    int tries = 0, undeletable = 0;
    int64_t before = -1;
    if (!spill_schema_of(&owner->array->definition)->has_pages)
        return SPILL_OK;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_outlier_find_left_over(owner, incarnation, &page, error));
    while (page.state.present) {
        bool dropped, again = page.state.page == before;
        before = page.state.page;
        SPILL_TRY(drop_down_from(owner, incarnation, page.state.page, &dropped, error));
        *any = *any || dropped;
        undeletable = again && !dropped ? undeletable : 0;
        if (again && !dropped)
            SPILL_TRY(count_undeletable(owner, page.state.page, &undeletable, error));
        /* Another client was faster, or put the page again. */
        if (!dropped || again)
            SPILL_TRY(spill_owner_again(owner, &tries, error));
        SPILL_TRY(spill_outlier_find_left_over(owner, incarnation, &page, error));
        if (spill_page_is_leased(&page))
            return spill_owner_leased(owner, page.state.lease, error);
    }
    return SPILL_OK;
}

/*
 * The note was written before the head was deleted, at this rev, and nobody has completed it. Did
 * the head live on? Its next spill puts a page with a source_rev from this rev on. Without such a
 * page, the pages are those that were to be deleted, and copies that no CUT can count any more.
 */
static spill_code_t lived_on(const spill_owner_t *owner, const spill_drop_note_t *note, bool *lived,
                             spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_outlier_find_left_over(owner, note->incarnation, &page, error));
    /* Each page has an element, so no page has a higher number than its first element. */
    int64_t last = page.state.present ? page.state.page : -1;
    if (last > page.state.first)
        last = page.state.first;
    *lived = false;
    for (int64_t number = 0; !*lived && (number <= last || page.state.present); number++) {
        SPILL_TRY(spill_owner_read_state(owner, number, &page, error));
        *lived = page.state.present && page.state.incarnation == note->incarnation &&
                 page.state.source_rev >= note->rev;
    }
    return SPILL_OK;
}

/*
 * Raise *incarnation to the incarnation of a head that was about to be deleted, if it was deleted.
 * A living head may be of an incarnation of the note: a page of an earlier incarnation may have
 * been put late, so a caller who has found pages without a head knows nothing of this head.
 */
static spill_code_t judge(const spill_owner_t *owner, const spill_drop_note_t *note,
                          int64_t *incarnation, spill_error_t *error)
{
    bool lived = false;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_drop_read_head(owner, &head, error));
    int64_t living = head.state.present ? head.state.incarnation : INT64_MAX;
    if (note->incarnation > note->ended && note->incarnation < living) {
        SPILL_TRY(lived_on(owner, note, &lived, error));
        *incarnation = lived ? note->ended : note->incarnation;
    }
    if (*incarnation >= living)
        *incarnation = 0;
    return SPILL_OK;
}

spill_code_t spill_outlier_find_dropped(const spill_owner_t *owner, int64_t *incarnation,
                                        spill_error_t *error)
{
    spill_store_t *store = owner->array->store;
    spill_drop_note_t note = {0};
    *incarnation = 0;
    if (!store->ops->find_drop)
        return SPILL_OK;
    SPILL_TRY(spill_store_find_drop(store, &owner->array->definition, owner->value, &note, error));
    *incarnation = note.ended;
    return note.incarnation > 0 || note.ended > 0 ? judge(owner, &note, incarnation, error)
                                                  : SPILL_OK;
}

/*
 * What is certain is forgotten last: another client may have announced a later end meanwhile. It is
 * also forgotten if it is not believed, because the head was restored from a dump: later, when
 * another program has replaced that head, its pages would be deleted by the note.
 */
static spill_code_t finish_old_note(const spill_owner_t *owner, const spill_drop_note_t *note,
                                    int64_t incarnation, spill_error_t *error)
{
    bool any = false;
    spill_store_t *store = owner->array->store;
    const spill_definition_t *definition = &owner->array->definition;
    const spill_drop_note_t certain = {.incarnation =
                                           incarnation > note->ended ? incarnation : note->ended,
                                       .rev = SPILL_DROP_IS_CERTAIN};
    if (incarnation > 0)
        SPILL_TRY(spill_outlier_drop_left_over(owner, incarnation, &any, error));
    if (note->incarnation > incarnation)
        SPILL_TRY(spill_store_forget_drop(store, definition, owner->value, note, error));
    return spill_store_forget_drop(store, definition, owner->value, &certain, error);
}

/*
 * A note that is not believed by now never will be: the head lives, or has lived on. Pages of an
 * end that was certain may still be there.
 */
spill_code_t spill_outlier_finish_old(const spill_owner_t *owner, spill_error_t *error)
{
    int64_t incarnation;
    spill_drop_note_t note = {0};
    SPILL_TRY(spill_store_find_drop(owner->array->store, &owner->array->definition, owner->value,
                                    &note, error));
    note.old = true;
    SPILL_TRY(spill_outlier_find_dropped(owner, &incarnation, error));
    return finish_old_note(owner, &note, incarnation, error);
}

spill_code_t spill_outlier_finish_noted(const spill_owner_t *owner, spill_error_t *error)
{
    spill_store_t *store = owner->array->store;
    spill_drop_note_t note = {.rev = SPILL_DROP_IS_CERTAIN};
    bool any = false;
    SPILL_TRY(spill_outlier_find_dropped(owner, &note.incarnation, error));
    if (note.incarnation == 0)
        return SPILL_OK;
    SPILL_TRY(spill_outlier_drop_left_over(owner, note.incarnation, &any, error));
    return spill_store_forget_drop(store, &owner->array->definition, owner->value, &note, error);
}

/* After DROP_HEAD: delete the pages count - 1 .. from, then all others that are left. */
static spill_code_t drop_pages(const spill_owner_t *owner, int64_t incarnation, int64_t from,
                               int64_t count, spill_error_t *error)
{
    bool any = false, done = false;
    const int64_t most = pages_at_a_time(owner);
    /* The search below finds pages behind a long gap. */
    for (int64_t missing = 0; count > from && missing < MISSING_MAX; count -= most) {
        SPILL_TRY(drop_together(owner, incarnation, count - 1, &done, error));
        missing = done ? 0 : missing + most;
    }
    return spill_outlier_drop_left_over(owner, incarnation, &any, error);
}

/* Drop a head, with a note by which others find the pages that are left (head_end.h). */
static spill_code_t drop_noted(spill_head_end_t *end, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    *done = false;
    SPILL_TRY(spill_head_end_raise(end, error));
    /* Another client has changed the head. (An intent also prevents it, but may stay for long.) */
    if (end->rev == head->rev && !head->intent &&
        !spill_schema_of(&end->owner->array->definition)->has_referenced_elements)
        return SPILL_OK;
    SPILL_TRY(spill_head_end_begin(end, error));
    SPILL_TRY(drop_head(end->owner, head->incarnation, head->pages, done, error));
    return spill_head_end_finish(end, *done, error);
}

spill_code_t spill_drop_documents(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t from, int64_t count, bool *done, spill_error_t *error)
{
    const spill_schema_t *schema = spill_schema_of(&owner->array->definition);
    spill_head_end_t end = {owner, head->incarnation, head->rev};
    if (owner->array->store->ops->note_drop && schema->appends_to_head)
        return drop_noted(&end, head, done, error);
    SPILL_TRY(drop_head(owner, head->incarnation, head->pages, done, error));
    return *done ? drop_pages(owner, head->incarnation, from, count, error) : SPILL_OK;
}

spill_code_t spill_drop_read_head(const spill_owner_t *owner, spill_response_t *head,
                                  spill_error_t *error)
{
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, head, error);
    if (code == SPILL_REFUSED)
        spill_response_clear(head);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/*
 * There was no head: finish the drop of a dead client. Clients put pages only after they have read
 * the head. So if a read finds a page, and a later read finds no head of its incarnation, then this
 * incarnation and all earlier ones have ended.
 */
spill_code_t spill_outlier_finish_drop(const spill_owner_t *owner, bool *any, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    *any = false;
    if (!spill_schema_of(&owner->array->definition)->has_pages)
        return SPILL_OK;
    SPILL_TRY(spill_outlier_find_left_over(owner, INT64_MAX, &page, error));
    while (page.state.present && !head.state.present) {
        SPILL_TRY(spill_drop_read_head(owner, &head, error));
        int64_t over = head.state.present ? head.state.incarnation - 1 : page.state.incarnation;
        SPILL_TRY(spill_outlier_drop_left_over(owner, over, any, error));
        /* Is there a page of a later incarnation? */
        SPILL_TRY(spill_outlier_find_left_over(owner, INT64_MAX, &page, error));
    }
    return SPILL_OK;
}

/*
 * A closed tail is never opened again, so the note is certain before the head is deleted. It is
 * forgotten at once, because a page that is put late meets a tombstone.
 */
spill_code_t spill_outlier_drop_closed(spill_owner_t *owner, int64_t incarnation, int64_t pages,
                                       spill_error_t *error)
{
    bool done;
    spill_store_t *store = owner->array->store;
    const spill_definition_t *definition = &owner->array->definition;
    const spill_drop_note_t note = {
        .incarnation = incarnation, .rev = SPILL_DROP_IS_CERTAIN, .at_once = true};
    spill_tail_forget(owner);
    if (store->ops->note_drop)
        SPILL_TRY(spill_store_note_drop(store, definition, owner->value, &note, error));
    SPILL_TRY(drop_head(owner, incarnation, pages, &done, error));
    SPILL_TRY(drop_pages(owner, incarnation, 0, pages, error));
    return store->ops->note_drop
               ? spill_store_forget_drop(store, definition, owner->value, &note, error)
               : SPILL_OK;
}

spill_code_t spill_capped_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    return drop_head(owner, head->incarnation, head->pages, done, error);
}

/* Page number `pages` may have been put and not yet cut. */
spill_code_t spill_newest_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                               spill_error_t *error)
{
    SPILL_TRY(spill_outlier_may_end(owner, head, error));
    return spill_drop_documents(owner, head, 0, head->pages + 1, done, error);
}

/* A page of each element of the journal may have been put. Trims deleted those before. */
spill_code_t spill_referenced_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error)
{
    return spill_drop_documents(owner, head, head->watermark, spill_state_end(head), done, error);
}
