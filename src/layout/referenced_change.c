/*
 * Edit, remove and trim of referenced elements. The update of the head also changes the head's sum.
 * The client reads the values after the head. They stay right as long as the head's rev does,
 * because every change of an element raises it.
 *
 * A removal in a document works as in change.c. DELETE leaves a document without the element. An
 * edit in a document:
 *
 *   PREPARE   head      adds the new element to the sum; the intent has a source_rev
 *   PUT_PAGE  document  writes the new element with that source_rev
 *   COMPLETE  head      corrects the sum by what the document now holds
 *
 * A client that finds the intent of another client does not know the new element. It writes the old
 * one with the same source_rev. The store accepts the first of the two and refuses the other.
 */
#include "layout/referenced.h"

#include "definition/stored_element.h"
#include "util/error.h"

#include <inttypes.h>

enum { TRIM_STEP = 1000 };

static spill_code_t deleted(const spill_owner_t *owner, int64_t seq, spill_error_t *error)
{
    spill_fail(error, SPILL_NOT_FOUND, "there is no element %" PRId64, seq);
    return spill_owner_name(owner, SPILL_NOT_FOUND, error);
}

/* Read a document, the head or a page, with element `seq` if it holds that. */
static spill_code_t read_with(const spill_owner_t *owner, int64_t page, int64_t seq,
                              spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = seq;
    read.read.limit = 1;
    return spill_owner_call(owner, &read, response, error);
}

static bool has(const spill_response_t *response, int64_t seq)
{
    return response->run.count == 1 && response->run.entries[0].seq == seq;
}

static spill_sum_t value_in(const spill_owner_t *owner, const spill_response_t *response)
{
    spill_element_t element = spill_run_element(&response->run, 0);
    return spill_sum_of(&owner->array->definition, &element.value);
}

/* Make a step on the head, with the elements that enter its top for those that leave. */
static spill_code_t step(const spill_owner_t *owner, const spill_state_t *head,
                         spill_request_t *request, bool *done, spill_error_t *error)
{
    spill_refill_t refill = {0};
    *done = false;
    spill_code_t code = spill_referenced_refill(owner, head, request, &refill, error);
    if (code == SPILL_OK)
        code = spill_owner_step(owner, request, done, error);
    spill_refill_release(&refill);
    return code;
}

/* Where an element was found: the head without an intent, and the document, which may be the head.
 */
typedef struct place {
    spill_response_t head;
    spill_response_t page;
    const spill_response_t *document;
    int64_t number; /* SPILL_HEAD, or seq */
} place_t;

static void release(place_t *place)
{
    spill_response_release(&place->head);
    spill_response_release(&place->page);
}

/* Find the element with an id, and its number. */
static spill_code_t find_by_id(const spill_owner_t *owner, spill_which_t *which, place_t *place,
                               spill_error_t *error)
{
    const spill_state_t *head = &place->head.state;
    spill_code_t code = spill_outlier_read_head(owner, which->id, &place->head, error);
    if (code == SPILL_OK && head->present && head->intent) {
        code = spill_outlier_settled_head(owner, &place->head, error);
        if (code == SPILL_OK)
            code = spill_outlier_read_head(owner, which->id, &place->head, error);
    }
    if (code == SPILL_OK && !head->present)
        return spill_outlier_absent_element(owner, which, error);
    if (code == SPILL_OK)
        code =
            spill_outlier_find_id(owner, &place->head, which, &place->page, &place->number, error);
    place->document = place->number == SPILL_HEAD ? &place->head : &place->page;
    return code;
}

/* SPILL_NOT_FOUND if the element was deleted. */
static spill_code_t find(const spill_owner_t *owner, spill_which_t *which, place_t *place,
                         spill_error_t *error)
{
    int64_t seq = which->seq;
    if (which->id)
        return find_by_id(owner, which, place, error);
    spill_code_t code = read_with(owner, SPILL_HEAD, seq, &place->head, error);
    const spill_state_t *head = &place->head.state;
    if (code == SPILL_OK && head->present && head->intent) {
        code = spill_outlier_settled_head(owner, &place->head, error);
        if (code == SPILL_OK)
            code = read_with(owner, SPILL_HEAD, seq, &place->head, error);
    }
    if (code != SPILL_OK)
        return code;
    if (!head->present || seq < head->watermark || seq >= spill_state_end(head))
        return deleted(owner, seq, error);
    place->number = seq >= head->first ? SPILL_HEAD : seq;
    place->document = seq >= head->first ? &place->head : &place->page;
    if (place->number != SPILL_HEAD)
        code = read_with(owner, seq, seq, &place->page, error);
    if (code == SPILL_OK &&
        (!has(place->document, seq) || place->document->state.incarnation != head->incarnation))
        return deleted(owner, seq, error);
    return code;
}

/* ---- edit ------------------------------------------------------------------------------------ */

static spill_request_t complete_request(const spill_owner_t *owner, int64_t seq, int64_t rev)
{
    spill_request_t completion = spill_owner_request(owner, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    completion.rev = rev;
    completion.change.seq = seq;
    completion.change.intent_page = seq;
    return completion;
}

/* Complete an edit. `there` holds what the document holds. */
static spill_code_t complete_edit(const spill_owner_t *owner, const spill_state_t *head,
                                  int64_t seq, int64_t rev, const spill_response_t *there,
                                  spill_error_t *error)
{
    bool done;
    spill_element_t element = spill_run_element(&there->run, 0);
    spill_request_t completion = complete_request(owner, seq, rev);
    completion.change.sum_added = value_in(owner, there);
    completion.change.element = &element.value;
    return step(owner, head, &completion, &done, error);
}

/* Put an element with the source_rev of an intent. `there` becomes what the document holds. */
static spill_code_t put(const spill_owner_t *owner, int64_t seq, int64_t incarnation,
                        int64_t source_rev, const spill_value_t *element, spill_response_t *there,
                        spill_error_t *error)
{
    bool done;
    spill_run_t run = {0};
    spill_run_add(&run, seq, element);
    spill_request_t put = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, seq);
    put.incarnation = incarnation;
    put.put_page.source_rev = source_rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.replaces = true;
    spill_code_t code = spill_owner_step(owner, &put, &done, error);
    spill_run_release(&run);
    return code == SPILL_OK ? read_with(owner, seq, seq, there, error) : code;
}

spill_code_t spill_referenced_complete(const spill_owner_t *owner, const spill_state_t *head,
                                       spill_error_t *error)
{
    int64_t seq = head->intent_seq;
    spill_response_t page = SPILL_RESPONSE_INIT, there = SPILL_RESPONSE_INIT;
    spill_code_t code = read_with(owner, seq, seq, &page, error);
    if (code == SPILL_OK && has(&page, seq) && page.state.incarnation == head->incarnation) {
        spill_element_t old = spill_run_element(&page.run, 0);
        if (page.state.source_rev < head->intent_source_rev)
            code = put(owner, seq, head->incarnation, head->intent_source_rev, &old.value, &there,
                       error);
        const spill_response_t *final =
            page.state.source_rev < head->intent_source_rev ? &there : &page;
        if (code == SPILL_OK && has(final, seq) &&
            final->state.source_rev >= head->intent_source_rev)
            code = complete_edit(owner, head, seq, head->rev, final, error);
    }
    spill_response_release(&page);
    spill_response_release(&there);
    return code;
}

static spill_code_t fail_size(int64_t seq, const spill_value_t *element, spill_error_t *error)
{
    return spill_fail(error, SPILL_TOO_BIG,
                      "the new element %" PRId64 " of %u bytes does not fit its document", seq,
                      element->size_bytes);
}

static spill_code_t edit_in_journal(const spill_owner_t *owner, int64_t seq,
                                    const spill_value_t *element, const place_t *place, bool *done,
                                    spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    const spill_state_t *head = &place->head.state;
    spill_request_t edit = spill_owner_request(owner, SPILL_REQUEST_EDIT, SPILL_HEAD);
    edit.limits = spill_head_limits(definition, &definition->bounds);
    edit.incarnation = head->incarnation;
    edit.rev = head->rev;
    edit.change.seq = seq;
    edit.change.element = element;
    edit.change.sum_removed = value_in(owner, &place->head);
    edit.change.sum_added = spill_sum_of(definition, element);
    spill_code_t code = step(owner, head, &edit, done, error);
    spill_response_t after = SPILL_RESPONSE_INIT;
    if (code == SPILL_OK && !*done)
        code = spill_owner_read_state(owner, SPILL_HEAD, &after, error);
    /* If the store refused and no client changed the head, there is no room. */
    if (code == SPILL_OK && !*done && after.state.present && after.state.rev == head->rev)
        code = fail_size(seq, element, error);
    spill_response_release(&after);
    return code;
}

static spill_code_t edit_in_document(const spill_owner_t *owner, int64_t seq,
                                     const spill_value_t *element, const place_t *place, bool *done,
                                     spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    const spill_state_t *head = &place->head.state;
    if (spill_state_document_bytes(definition, owner->value, false, &place->page.state, 1,
                                   element->size_bytes) > SPILL_DOCUMENT_BYTES_MAX)
        return fail_size(seq, element, error);
    spill_request_t prepare = spill_owner_request(owner, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = head->rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.edit = true;
    prepare.change.sum_removed = value_in(owner, &place->page);
    prepare.change.sum_added = spill_sum_of(definition, element);
    bool prepared;
    spill_code_t code = spill_owner_step(owner, &prepare, &prepared, error);
    if (code != SPILL_OK || !prepared)
        return code;
    int64_t source_rev = head->rev + 1;
    spill_response_t there = SPILL_RESPONSE_INIT;
    code = put(owner, seq, head->incarnation, source_rev, element, &there, error);
    if (code == SPILL_OK && has(&there, seq) && there.state.source_rev >= source_rev) {
        spill_element_t now = spill_run_element(&there.run, 0);
        *done = spill_value_equal(&now.value, element);
        code = complete_edit(owner, head, seq, source_rev, &there, error);
    }
    spill_response_release(&there);
    return code;
}

spill_code_t spill_referenced_edit(spill_owner_t *owner, spill_which_t *which,
                                   const spill_value_t *element, spill_error_t *error)
{
    int tries = 0;
    bool done = false;
    spill_code_t code = spill_stored_element_check(&owner->array->definition, element, NULL, error);
    while (code == SPILL_OK && !done) {
        place_t place = {.number = SPILL_HEAD};
        code = find(owner, which, &place, error);
        if (code == SPILL_OK && place.number == SPILL_HEAD)
            code = edit_in_journal(owner, which->seq, element, &place, &done, error);
        else if (code == SPILL_OK)
            code = edit_in_document(owner, which->seq, element, &place, &done, error);
        if (code == SPILL_OK && !done)
            code = spill_owner_again(owner, &tries, error);
        release(&place);
    }
    return code;
}

/* ---- remove ---------------------------------------------------------------------------------- */

static spill_code_t remove_in_document(const spill_owner_t *owner, int64_t seq,
                                       const place_t *place, bool *done, spill_error_t *error)
{
    const spill_state_t *head = &place->head.state;
    spill_request_t prepare = spill_owner_request(owner, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = head->rev;
    prepare.change.seq = seq;
    prepare.change.intent_page = seq;
    prepare.change.sum_removed = value_in(owner, &place->page);
    spill_code_t code = step(owner, head, &prepare, done, error);
    if (code != SPILL_OK || !*done)
        return code;
    /* The removal counts from here on. If this client dies, the next one completes it. */
    bool deleted;
    spill_request_t deletion = spill_owner_request(owner, SPILL_REQUEST_DELETE, seq);
    deletion.incarnation = head->incarnation;
    deletion.change.seq = seq;
    code = spill_owner_step(owner, &deletion, &deleted, error);
    spill_request_t completion = complete_request(owner, seq, head->rev + 1);
    return code == SPILL_OK ? spill_owner_step(owner, &completion, NULL, error) : code;
}

spill_code_t spill_referenced_remove(spill_owner_t *owner, spill_which_t *which,
                                     spill_error_t *error)
{
    int tries = 0;
    bool done = false;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !done) {
        place_t place = {.number = SPILL_HEAD};
        code = find(owner, which, &place, error);
        if (code == SPILL_OK && place.number == SPILL_HEAD) {
            spill_request_t remove = spill_owner_request(owner, SPILL_REQUEST_REMOVE, SPILL_HEAD);
            remove.rev = place.head.state.rev;
            remove.change.seq = which->seq;
            remove.change.sum_removed = value_in(owner, &place.head);
            code = step(owner, &place.head.state, &remove, &done, error);
        } else if (code == SPILL_OK) {
            code = remove_in_document(owner, which->seq, &place, &done, error);
        }
        if (code == SPILL_OK && !done)
            code = spill_owner_again(owner, &tries, error);
        release(&place);
    }
    return code;
}

/* ---- trim ------------------------------------------------------------------------------------ */

static void add_run(const spill_owner_t *owner, const spill_run_t *run, int64_t end,
                    spill_sum_t *sum, int64_t *live)
{
    for (size_t i = 0; i < run->count && run->entries[i].seq < end; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_sum_t value = spill_sum_of(&owner->array->definition, &element.value);
        spill_sum_add(sum, &value);
        ++*live;
    }
}

/* Sum the elements that a trim deletes: at most TRIM_STEP numbers from the head's watermark on. */
static spill_code_t measure(const spill_owner_t *owner, const spill_state_t *head,
                            spill_request_t *trim, spill_error_t *error)
{
    int64_t watermark = trim->change.watermark, live = 0, in_journal = 0;
    int64_t end = watermark < head->first ? watermark : head->first; /* of the documents */
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    spill_referenced_walk_t walk = {.next = head->watermark};
    while (code == SPILL_OK && walk.next < end) {
        code = spill_referenced_walk(owner, head, end, &walk, &response, error);
        if (code == SPILL_OK)
            add_run(owner, &response.run, end, &trim->change.sum_removed, &live);
    }
    trim->change.removed =
        head->removed - (end > head->watermark ? end - head->watermark - live : 0);
    if (code == SPILL_OK && watermark > head->first) {
        spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.want = SPILL_WANT_FORWARD;
        read.read.limit = watermark - head->first;
        code = spill_owner_call(owner, &read, &response, error);
        if (code == SPILL_OK)
            add_run(owner, &response.run, watermark, &trim->change.sum_removed, &in_journal);
    }
    spill_response_release(&response);
    return code;
}

/* An unfinished trim left documents right below the head's watermark. */
spill_code_t spill_referenced_trimmed(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t *from, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    *from = head->watermark;
    while (code == SPILL_OK && *from > 0) {
        code = spill_owner_read_state(owner, *from - 1, &page, error);
        if (code != SPILL_OK || !page.state.present || page.state.incarnation != head->incarnation)
            break;
        --*from;
    }
    spill_response_release(&page);
    return code;
}

static spill_code_t finish_trim(const spill_owner_t *owner, const spill_state_t *head,
                                spill_error_t *error)
{
    int64_t from;
    spill_code_t code = spill_referenced_trimmed(owner, head, &from, error);
    return code == SPILL_OK
               ? spill_outlier_empty_pages(owner, head->incarnation, from, head->watermark, error)
               : code;
}

/* A trim under way. */
typedef struct trimming {
    const spill_trim_t *trim;
    int64_t finished; /* the incarnation of which an earlier trim that died is finished */
    int64_t rev;      /* of the head that `bound` was judged from, or that followed by our step */
    int64_t bound;
    int tries;
} trimming_t;

/* Find where the trim ends, by the current head; -1 if documents changed meanwhile. */
static spill_code_t find_bound(const spill_owner_t *owner, const spill_state_t *head,
                               trimming_t *trimming, spill_error_t *error)
{
    const spill_definition_t *definition = &owner->array->definition;
    spill_count_t count = {.count = spill_state_count(definition, head),
                           .next = spill_state_end(head)};
    if (trimming->rev == head->rev)
        return SPILL_OK;
    trimming->rev = head->rev;
    return spill_outlier_trim_bound(owner, trimming->trim, head, &count, &trimming->bound, error);
}

/* Raise the head's watermark towards the bound, and delete what lies below. *made: guard held. */
static spill_code_t take_step(const spill_owner_t *owner, const spill_state_t *head,
                              trimming_t *trimming, bool *made, spill_error_t *error)
{
    int64_t most = head->watermark + TRIM_STEP;
    spill_request_t trim = spill_owner_request(owner, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = head->rev;
    trim.change.watermark = trimming->bound < most ? trimming->bound : most;
    spill_code_t code = measure(owner, head, &trim, error);
    if (code == SPILL_OK)
        code = step(owner, head, &trim, made, error);
    if (code != SPILL_OK || !*made)
        return code;
    trimming->rev = head->rev + 1;
    return spill_outlier_empty_pages(owner, head->incarnation, head->watermark,
                                     trim.change.watermark, error);
}

/* *done: the head's watermark, then also *watermark, has reached the end of the trim. */
static spill_code_t try_trim(const spill_owner_t *owner, trimming_t *trimming, int64_t *watermark,
                             bool *done, spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = &response.state;
    bool made = false;
    spill_code_t code = spill_outlier_settled_head(owner, &response, error);
    if (code == SPILL_OK && !head->present)
        code = spill_owner_absent(owner, error);
    if (code == SPILL_OK && trimming->finished != head->incarnation)
        code = finish_trim(owner, head, error);
    if (code == SPILL_OK) {
        trimming->finished = head->incarnation;
        code = find_bound(owner, head, trimming, error);
    }
    if (code == SPILL_OK) {
        *watermark = head->watermark;
        *done = trimming->bound >= 0 && trimming->bound <= head->watermark;
        if (!*done && trimming->bound >= 0)
            code = take_step(owner, head, trimming, &made, error);
    }
    if (code == SPILL_OK && !*done && !made) {
        trimming->rev = -1;
        code = spill_owner_again(owner, &trimming->tries, error);
    }
    spill_response_release(&response);
    return code;
}

spill_code_t spill_referenced_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                   int64_t *watermark, spill_error_t *error)
{
    trimming_t trimming = {.trim = trim, .rev = -1};
    spill_code_t code = SPILL_OK;
    bool done = false;
    while (code == SPILL_OK && !done)
        code = try_trim(owner, &trimming, watermark, &done, error);
    return code;
}
