#include "definition/schema.h"
#include "store/render.h"
#include "support/model_store_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- pages of an owner ----------------------------------------------------------------------- */

/* The position of page `number`, present or not, among the first `high` of the owner's pages. */
static size_t seek_page(const model_owner_t *owner, size_t high, int64_t number)
{
    size_t low = 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (owner->pages[middle]->state.page < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static model_document_t *find_page(const model_owner_t *owner, int64_t number)
{
    size_t index = seek_page(owner, owner->page_count, number);
    if (index == owner->page_count || owner->pages[index]->state.page != number)
        return NULL;
    return owner->pages[index];
}

static int order_of_ints(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

static int order_of_pages(const spill_state_t *left, const spill_state_t *right)
{
    int order = order_of_ints(left->incarnation, right->incarnation);
    if (order == 0)
        order = order_of_ints(left->first, right->first);
    return order != 0 ? order : order_of_ints(left->page, right->page);
}

static void add_page(model_owner_t *owner, model_document_t *page)
{
    if (owner->page_count == owner->page_capacity) {
        owner->page_capacity = owner->page_capacity < 4 ? 4 : owner->page_capacity * 2;
        size_t bytes = owner->page_capacity * sizeof(model_document_t *);
        owner->pages = bson_realloc(owner->pages, bytes);
        owner->by_first = bson_realloc(owner->by_first, bytes);
    }
    size_t last = owner->page_count++;
    size_t index = seek_page(owner, last, page->state.page);
    model_document_t **place = owner->pages + index;
    memmove(place + 1, place, (last - index) * sizeof(model_document_t *));
    *place = page;
    /* Most pages are added at the end; then by_first stays sorted. */
    if (last == 0 || (owner->sorted && index == last &&
                      order_of_pages(&owner->by_first[last - 1]->state, &page->state) < 0)) {
        owner->by_first[last] = page;
        owner->sorted = true;
    } else {
        owner->sorted = false;
    }
}

static void remove_page(model_owner_t *owner, int64_t number)
{
    size_t index = seek_page(owner, owner->page_count, number);
    model_document_t **place = owner->pages + index;
    owner->page_count--;
    memmove(place, place + 1, (owner->page_count - index) * sizeof(model_document_t *));
    owner->sorted = false;
}

static int compare_pages(const void *left, const void *right)
{
    model_document_t *const *left_page = left, *const *right_page = right;
    return order_of_pages(&(*left_page)->state, &(*right_page)->state);
}

static void sort_pages(model_owner_t *owner)
{
    if (owner->sorted || owner->page_count == 0)
        return;
    size_t size = sizeof(model_document_t *);
    memcpy(owner->by_first, owner->pages, owner->page_count * size);
    qsort(owner->by_first, owner->page_count, size, compare_pages);
    owner->sorted = true;
}

/* SPILL_PAGE_HOLDING; see request.h. */
static model_document_t *find_page_holding(model_owner_t *owner, const spill_request_t *request)
{
    sort_pages(owner);
    spill_state_t bound = {
        .incarnation = request->incarnation, .first = request->read.seq, .page = INT64_MAX};
    size_t low = 0, high = owner->page_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order_of_pages(&owner->by_first[middle]->state, &bound) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low > 0 && owner->by_first[low - 1]->state.incarnation == request->incarnation; low--) {
        if (owner->by_first[low - 1]->state.page < request->read.pages)
            return owner->by_first[low - 1];
    }
    return NULL;
}

/* SPILL_PAGE_LEFT_OVER; see request.h. */
static model_document_t *find_page_left_over(const model_owner_t *owner,
                                             const spill_request_t *request)
{
    bool oldest = !spill_schema_of(request->definition)->appends_to_head;
    for (size_t i = owner->page_count; i > 0; i--) {
        model_document_t *page = owner->pages[i - 1];
        if (page->state.incarnation <= request->incarnation && (!oldest || page->count > 0))
            return page;
    }
    return NULL;
}

/* SPILL_PAGE_WITH_ID; see request.h. */
static model_document_t *find_page_with_id(model_owner_t *owner, const spill_request_t *request)
{
    size_t index;
    int64_t seq;
    sort_pages(owner);
    for (size_t i = 0; i < owner->page_count; i++) {
        const spill_state_t *state = &owner->by_first[i]->state;
        if (state->incarnation == request->incarnation && state->page < request->read.pages &&
            model_document_find_id(owner->by_first[i], request, &index, &seq))
            return owner->by_first[i];
    }
    return NULL;
}

/* ---- referenced elements --------------------------------------------------------------------- */

static void add_page_element(const model_document_t *page, const spill_request_t *request,
                             spill_run_t *run)
{
    if (page->state.incarnation == request->incarnation && page->count > 0)
        spill_run_add(run, page->state.page, &page->elements[0]);
}

/* Add the page's element to the run, unless the run has reached its number or bytes. */
static bool add_next_element(const model_document_t *page, const spill_request_t *request,
                             spill_response_t *response)
{
    spill_run_t *run = &response->run;
    add_page_element(page, request, run);
    response->stopped =
        request->read.bytes_most > 0 && (int64_t)run->arena.size >= request->read.bytes_most;
    return (int64_t)run->count < request->read.limit && !response->stopped;
}

/* SPILL_WANT_TOP_N: scan the documents at positions [first, end). */
static void read_top_n(const model_owner_t *owner, size_t first, size_t end,
                       const spill_request_t *request, spill_response_t *response)
{
    spill_top_t *top_n = &response->top_n;
    for (size_t at = first; at < end; at++) {
        const model_document_t *page = owner->pages[at];
        if (page->state.incarnation != request->incarnation || page->count == 0 ||
            page->state.page == request->read.seq)
            continue;
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, page->state.page, &page->elements[0]);
        if (request->read.below && spill_top_compare(request->read.below, &entry) <= 0)
            continue;
        spill_top_add(top_n, (size_t)request->read.limit, &entry);
    }
    spill_top_show(top_n, request->definition, SIZE_MAX);
    for (size_t i = 0; i < top_n->shown; i++)
        add_page_element(find_page(owner, top_n->at[i].seq), request, &response->run);
}

void model_read_top(const model_store_t *model, const spill_request_t *request, spill_run_t *run)
{
    const model_owner_t *owner = model_find_owner(model, request);
    const model_document_t *head = owner ? owner->head : NULL;
    for (size_t i = 0; head && i < head->state.top.shown; i++) {
        int64_t seq = head->state.top.at[i].seq;
        const model_document_t *page = seq < head->state.first ? find_page(owner, seq) : NULL;
        size_t index;
        if (page && page->count > 0)
            spill_run_add(run, seq, &page->elements[0]);
        else if (!page && model_document_find(head, seq, &index))
            spill_run_add(run, seq, &head->elements[index]);
    }
}

void model_read_elements(const model_store_t *model, const spill_request_t *request,
                         spill_response_t *response)
{
    const model_owner_t *owner = model_find_owner(model, request);
    if (!owner)
        return;
    size_t first = seek_page(owner, owner->page_count, request->read.watermark);
    size_t end = seek_page(owner, owner->page_count, request->read.pages);
    bool more = request->read.limit > 0;
    if (request->read.want == SPILL_WANT_TOP_N) {
        read_top_n(owner, first, end, request, response);
    } else if (request->read.want == SPILL_WANT_FORWARD) {
        size_t at = seek_page(owner, owner->page_count, request->read.seq);
        for (at = at < first ? first : at; more && at < end; at++)
            more = add_next_element(owner->pages[at], request, response);
    } else {
        int64_t beyond = request->read.seq < INT64_MAX ? request->read.seq + 1 : INT64_MAX;
        size_t at = seek_page(owner, owner->page_count, beyond);
        for (at = at > end ? end : at; more && at > first; at--)
            more = add_next_element(owner->pages[at - 1], request, response);
    }
}

/* ---- finding, making and dropping documents -------------------------------------------------- */

model_owner_t *model_find_owner(const model_store_t *model, const spill_request_t *request)
{
    return model_table_find(&model->owners, request->array_id, request->key, request->key_bytes);
}

model_fields_t *model_find_fields(const model_store_t *model, const spill_request_t *request)
{
    return model_table_find(&model->fields, request->collection_id, request->key,
                            request->key_bytes);
}

/* Set live, live_bytes and fields_bytes of the state from the document. */
static void load(const model_store_t *model, const spill_request_t *request,
                 model_document_t *document)
{
    document->state.live = (int64_t)document->count;
    document->state.live_bytes = document->bytes;
    if (document->state.present && request->page == SPILL_HEAD)
        document->state.fields_bytes = model_find_fields(model, request)->document->len;
}

model_document_t *model_find_document(const model_store_t *model, const spill_request_t *request)
{
    model_owner_t *owner = model_find_owner(model, request);
    if (!owner)
        return NULL;
    model_document_t *document;
    if (request->page == SPILL_HEAD)
        document = owner->head;
    else if (request->page == SPILL_PAGE_HOLDING)
        document = find_page_holding(owner, request);
    else if (request->page == SPILL_PAGE_LEFT_OVER)
        document = find_page_left_over(owner, request);
    else if (request->page == SPILL_PAGE_WITH_ID)
        document = find_page_with_id(owner, request);
    else
        document = find_page(owner, request->page);
    if (document)
        load(model, request, document);
    return document;
}

model_document_t *model_add_document(model_store_t *model, const spill_request_t *request,
                                     const model_document_t *made)
{
    model_owner_t *owner = model_find_owner(model, request);
    if (!owner)
        owner = model_table_add(&model->owners, request->array_id, request->key, request->key_bytes,
                                sizeof(model_owner_t));
    model_document_t *document = bson_malloc(sizeof *document);
    *document = *made;
    if (request->page == SPILL_HEAD) {
        owner->head = document;
        model_find_fields(model, request)->heads++;
    } else {
        add_page(owner, document);
    }
    return document;
}

bson_t *model_copy_fields(const model_store_t *model, const spill_request_t *request)
{
    const model_fields_t *fields = model_find_fields(model, request);
    if (fields)
        return bson_copy(fields->document);
    bson_t *made = bson_new();
    spill_value_append(request->owner, made, "_id");
    return made;
}

void model_set_fields(model_store_t *model, const spill_request_t *request, bson_t *document)
{
    model_fields_t *fields = model_find_fields(model, request);
    if (!fields)
        fields = model_table_add(&model->fields, request->collection_id, request->key,
                                 request->key_bytes, sizeof(model_fields_t));
    bson_destroy(fields->document);
    fields->document = document;
}

/* After a head was dropped: delete its document if only _id is left and no other array has a head
 * there, unless the request says that it stays. */
static void leave_fields(model_store_t *model, const spill_request_t *request)
{
    model_fields_t *fields = model_find_fields(model, request);
    bool stays = request->kind == SPILL_REQUEST_DROP_HEAD && request->drop_head.document_stays;
    fields->heads--;
    if (fields->heads > 0 || stays)
        return;
    spill_unmanaged_forget(request->definition, &fields->document);
    if (bson_count_keys(fields->document) > 1)
        return;
    bson_destroy(fields->document);
    model_table_remove(&model->fields, fields);
}

static void free_document(model_document_t *document)
{
    model_document_release(document);
    bson_free(document);
}

void model_release_owner(model_owner_t *owner)
{
    if (owner->head)
        free_document(owner->head);
    for (size_t i = 0; i < owner->page_count; i++)
        free_document(owner->pages[i]);
    bson_free(owner->pages);
    bson_free(owner->by_first);
}

void model_drop_document(model_store_t *model, const spill_request_t *request,
                         model_document_t *document)
{
    model_owner_t *owner = model_find_owner(model, request);
    if (request->page == SPILL_HEAD) {
        owner->head = NULL;
        leave_fields(model, request);
    } else {
        remove_page(owner, request->page);
    }
    free_document(document);
    if (owner->head || owner->page_count > 0)
        return;
    model_release_owner(owner);
    model_table_remove(&model->owners, owner);
}
