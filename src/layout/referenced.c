/*
 * Appends to referenced elements, and trims of them. An append that makes the journal too long
 * writes it out: it puts a document for each element of the journal, then cuts them off the head.
 */
#include "layout/referenced.h"
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/drop.h"
#include "layout/locate.h"
#include "layout/newest.h"
#include "layout/trim.h"

#include "bson/value.h"
#include "layout/layout.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

/* ---- trims ----------------------------------------------------------------------------------- */

/*
 * Trim of referenced elements. TRIM raises the head's watermark in steps of at most TRIM_STEP
 * numbers, because each step subtracts the values of the elements that it deletes from the head's
 * sum. After each step the client deletes their documents.
 */

enum { TRIM_STEP = 1000 };

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
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    spill_referenced_walk_t walk = {.next = head->watermark};
    while (walk.next < end) {
        SPILL_TRY(spill_referenced_walk(owner, head, end, &walk, &response, error));
        add_run(owner, &response.run, end, &trim->change.sum_removed, &live);
    }
    trim->change.removed =
        head->removed - (end > head->watermark ? end - head->watermark - live : 0);
    if (watermark <= head->first)
        return SPILL_OK;
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = watermark - head->first;
    SPILL_TRY(spill_owner_call(owner, &read, &response, error));
    add_run(owner, &response.run, watermark, &trim->change.sum_removed, &in_journal);
    return SPILL_OK;
}

/* An unfinished trim left documents right below the head's watermark. */
spill_code_t spill_referenced_trimmed(const spill_owner_t *owner, const spill_state_t *head,
                                      int64_t *from, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    for (*from = head->watermark; *from > 0; --*from) {
        SPILL_TRY(spill_owner_read_state(owner, *from - 1, &page, error));
        if (!page.state.present || page.state.incarnation != head->incarnation)
            break;
    }
    return SPILL_OK;
}

static spill_code_t finish_trim(const spill_owner_t *owner, const spill_state_t *head,
                                spill_error_t *error)
{
    int64_t from;
    SPILL_TRY(spill_referenced_trimmed(owner, head, &from, error));
    return spill_outlier_empty_pages(owner, head->incarnation, from, head->watermark, error);
}

/* The state of one trim between its tries. */
typedef struct trimming {
    const spill_trim_t *trim;
    int64_t finished; /* the incarnation in which earlier trims are finished */
    int64_t rev;      /* the head's rev for which `bound` is right */
    int64_t bound;
    int tries;
} trimming_t;

/* Set trimming->bound for this head; -1 if documents changed meanwhile. */
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

/* Raise the watermark towards the bound, and delete the elements below. *made: the guard held. */
static spill_code_t raise_watermark(const spill_owner_t *owner, const spill_state_t *head,
                                    trimming_t *trimming, bool *made, spill_error_t *error)
{
    int64_t most = head->watermark + TRIM_STEP;
    spill_request_t trim = spill_owner_request(owner, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = head->rev;
    trim.change.watermark = trimming->bound < most ? trimming->bound : most;
    SPILL_TRY(measure(owner, head, &trim, error));
    SPILL_TRY(spill_referenced_step(owner, head, &trim, made, error));
    if (!*made)
        return SPILL_OK;
    trimming->rev = head->rev + 1;
    return spill_outlier_empty_pages(owner, head->incarnation, head->watermark,
                                     trim.change.watermark, error);
}

/* *done: the head's watermark, then also *watermark, has reached the end of the trim. */
static spill_code_t try_trim(const spill_owner_t *owner, trimming_t *trimming, int64_t *watermark,
                             bool *done, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = &response.state;
    bool made = false;
    SPILL_TRY(spill_read_head_without_intent(owner, NULL, &response, error));
    if (!head->present)
        return spill_owner_absent(owner, error);
    if (trimming->finished != head->incarnation)
        SPILL_TRY(finish_trim(owner, head, error));
    trimming->finished = head->incarnation;
    SPILL_TRY(find_bound(owner, head, trimming, error));
    *watermark = head->watermark;
    *done = trimming->bound >= 0 && trimming->bound <= head->watermark;
    if (!*done && trimming->bound >= 0)
        SPILL_TRY(raise_watermark(owner, head, trimming, &made, error));
    if (*done || made)
        return SPILL_OK;
    trimming->rev = -1;
    return spill_owner_again(owner, &trimming->tries, error);
}

static spill_code_t trim_referenced(spill_owner_t *owner, const spill_trim_t *trim,
                                    int64_t *watermark, spill_error_t *error)
{
    trimming_t trimming = {.trim = trim, .rev = -1};
    bool done = false;
    while (!done)
        SPILL_TRY(try_trim(owner, &trimming, watermark, &done, error));
    return SPILL_OK;
}

/* ---- writing out ----------------------------------------------------------------------------- */

/* PUT_PAGE of the documents of several numbers, which are sent together. */
typedef struct puts {
    spill_request_t *requests;
    spill_response_t *responses;
    spill_run_t *runs;     /* of one element, or of none ... */
    spill_seqs_t *deleted; /* ... and then the number is here */
    size_t count;
} puts_t;

static void puts_init(puts_t *puts, size_t count)
{
    *puts = (puts_t){.requests = bson_malloc0(count * sizeof(spill_request_t)),
                     .responses = bson_malloc0(count * sizeof(spill_response_t)),
                     .runs = bson_malloc0(count * sizeof(spill_run_t)),
                     .deleted = bson_malloc0(count * sizeof(spill_seqs_t)),
                     .count = count};
}

static void puts_release(puts_t *puts)
{
    for (size_t i = 0; i < puts->count; i++) {
        spill_response_release(&puts->responses[i]);
        spill_run_release(&puts->runs[i]);
        spill_seqs_release(&puts->deleted[i]);
    }
    bson_free(puts->requests);
    bson_free(puts->responses);
    bson_free(puts->runs);
    bson_free(puts->deleted);
}

/*
 * Make request i, for number `slot` of the journal. Its element is the one at *at of the run; if
 * that has another number, the element was removed, and the document is empty.
 */
static void make_put(const spill_owner_t *owner, const spill_response_t *head, puts_t *puts,
                     size_t i, int64_t slot, size_t *at)
{
    const spill_state_t *state = &head->state;
    int64_t seq = state->first + slot;
    if (*at < head->run.count && head->run.entries[*at].seq == seq) {
        spill_element_t element = spill_run_element(&head->run, (*at)++);
        spill_run_add(&puts->runs[i], seq, &element.value);
    } else {
        spill_seqs_insert(&puts->deleted[i], seq);
    }
    puts->requests[i] = spill_owner_request(owner, SPILL_REQUEST_PUT_PAGE, seq);
    spill_request_t *put = &puts->requests[i];
    put->incarnation = state->incarnation;
    put->put_page.source_rev = state->rev;
    put->put_page.first = seq;
    put->put_page.slots = 1;
    put->put_page.run = &puts->runs[i];
    put->put_page.deleted = &puts->deleted[i];
}

/*
 * The documents that were not put: read them together. *ready: each exists as a copy of the head at
 * this rev.
 */
static spill_code_t check_copied(const spill_owner_t *owner, const spill_state_t *head,
                                 puts_t *puts, bool *ready, spill_error_t *error)
{
    size_t count = 0;
    *ready = true;
    for (size_t i = 0; i < puts->count; i++)
        if (puts->responses[i].outcome != SPILL_DONE)
            puts->requests[count++] =
                spill_owner_request(owner, SPILL_REQUEST_READ, puts->requests[i].page);
    if (count == 0)
        return SPILL_OK;
    SPILL_TRY(spill_owner_call_all(owner, puts->requests, count, puts->responses, error));
    for (size_t i = 0; i < count; i++) {
        const spill_state_t *page = &puts->responses[i].state;
        *ready = *ready && page->present && page->incarnation == head->incarnation &&
                 page->source_rev == head->rev;
    }
    return SPILL_OK;
}

/* The CUT of the journal's first `slots` numbers, of which `elements` have an element. */
static spill_request_t cut_request(const spill_owner_t *owner, const spill_response_t *head,
                                   int64_t slots, size_t elements)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < elements; i++)
        bytes += head->run.entries[i].size_bytes;
    return spill_newest_cut_request(owner, &head->state, slots, bytes);
}

/*
 * Put the documents of the journal's first `slots` numbers. *ready: each exists as a copy of the
 * head at this rev, by this client or another. *elements: how many of them have an element.
 */
static spill_code_t put_all(const spill_owner_t *owner, const spill_response_t *head, int64_t slots,
                            size_t *elements, bool *ready, spill_error_t *error)
{
    SPILL_SCOPED(puts_release) puts_t puts;
    puts_init(&puts, (size_t)slots);
    *elements = 0;
    for (size_t i = 0; i < puts.count; i++)
        make_put(owner, head, &puts, i, (int64_t)i, elements);
    SPILL_TRY(spill_owner_call_all(owner, puts.requests, puts.count, puts.responses, error));
    return check_copied(owner, &head->state, &puts, ready, error);
}

/*
 * Make one try. If `head` shows a read, begin with that. *finished: the journal has fewer than
 * `threshold` elements.
 */
static spill_code_t try_write_out(const spill_owner_t *owner, spill_response_t *head,
                                  int64_t threshold, bool *finished, spill_error_t *error)
{
    const spill_state_t *state = &head->state;
    spill_code_t code = head->shows_read ? SPILL_OK : spill_newest_read_run(owner, head, error);
    head->shows_read = false; /* the next try looks again */
    int64_t slots = spill_state_slots(state);
    int64_t most = owner->array->definition.bounds.page_capacity;
    *finished = code == SPILL_OK && (!state->present || slots == 0 || slots < threshold);
    if (*finished || code != SPILL_OK)
        return code;
    if (slots > most)
        slots = most;
    size_t elements = 0;
    bool ready = false;
    code = put_all(owner, head, slots, &elements, &ready, error);
    bool done = false;
    spill_request_t cut = cut_request(owner, head, slots, elements);
    if (code == SPILL_OK && ready)
        code = spill_owner_step(owner, &cut, &done, error);
    *finished = done && spill_state_slots(state) - slots < threshold;
    /* Each step is guarded: whether a lost one was applied shows when the head is read again. */
    return code == SPILL_UNKNOWN ? SPILL_OK : code;
}

/* Write out elements until the journal has fewer than `threshold`. */
static spill_code_t write_out(const spill_owner_t *owner, spill_response_t *head, int64_t threshold,
                              spill_error_t *error)
{
    int tries = 0;
    bool finished = false;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !finished) {
        code = try_write_out(owner, head, threshold, &finished, error);
        if (code == SPILL_OK && !finished)
            code = spill_owner_again(owner, &tries, error);
    }
    return code;
}

/* The append is acknowledged already. If this fails, the next append writes them out. */
static void write_out_after(const spill_owner_t *owner, spill_response_t *head)
{
    spill_error_t error;
    if (write_out(owner, head, owner->array->definition.bounds.threshold, &error) != SPILL_OK)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "writing out put off: %s",
                        error.message);
}

/* ---- ... of several owners ------------------------------------------------------------------- */

/* Is the journal so long that an append would write it out? */
static bool is_due(const spill_owner_t *owner, const spill_state_t *head)
{
    int64_t slots = spill_state_slots(head);
    return head->present && !head->intent && slots > 0 &&
           slots >= owner->array->definition.bounds.threshold;
}

/* ... and is one CUT enough? A CUT in a group assumes that no number is removed. */
static bool is_long_journal(const spill_owner_t *owner, const spill_state_t *head)
{
    return is_due(owner, head) && head->deleted.count == 0 &&
           spill_state_slots(head) <= owner->array->definition.bounds.page_capacity;
}

/* Cut the journals whose documents were all put. */
static spill_code_t cut_all(const spill_owner_t *owners, const spill_response_t *heads,
                            size_t count, const puts_t *puts, spill_error_t *error)
{
    spill_request_t *cuts = bson_malloc0((count + 1) * sizeof *cuts);
    size_t at = 0, ready = 0;
    for (size_t i = 0; i < count; i++) {
        bool put = is_long_journal(&owners[i], &heads[i].state);
        int64_t slots = put ? spill_state_slots(&heads[i].state) : 0;
        for (int64_t k = 0; k < slots; k++)
            put = puts->responses[at++].outcome == SPILL_DONE && put;
        if (put)
            cuts[ready++] = cut_request(&owners[i], &heads[i], slots, heads[i].run.count);
    }
    spill_code_t code = SPILL_OK;
    if (ready > 0)
        code = spill_store_cut_heads(owners->array->store, cuts, ready, error);
    bson_free(cuts);
    return code;
}

static spill_code_t write_out_together(const spill_owner_t *owners, const spill_response_t *heads,
                                       size_t count, spill_error_t *error)
{
    SPILL_SCOPED(puts_release) puts_t puts = {0};
    size_t all = 0;
    for (size_t i = 0; i < count; i++)
        if (is_long_journal(&owners[i], &heads[i].state))
            all += (size_t)spill_state_slots(&heads[i].state);
    if (all == 0)
        return SPILL_OK;
    puts_init(&puts, all);
    all = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t slots = spill_state_slots(&heads[i].state);
        size_t element = 0;
        for (int64_t k = 0; is_long_journal(&owners[i], &heads[i].state) && k < slots; k++)
            make_put(&owners[i], &heads[i], &puts, all++, k, &element);
    }
    SPILL_TRY(spill_store_call_all(owners->array->store, puts.requests, puts.count, puts.responses,
                                   error));
    return cut_all(owners, heads, count, &puts, error);
}

spill_code_t spill_referenced_write_out_all(const spill_owner_t *owners,
                                            const spill_response_t *heads, size_t count,
                                            spill_error_t *error)
{
    SPILL_TRY(write_out_together(owners, heads, count, error));
    for (size_t i = 0; i < count; i++) {
        if (!is_due(&owners[i], &heads[i].state) || is_long_journal(&owners[i], &heads[i].state))
            continue;
        SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
        SPILL_TRY(
            write_out(&owners[i], &head, owners[i].array->definition.bounds.threshold, error));
    }
    return SPILL_OK;
}

/* ---- append ---------------------------------------------------------------------------------- */

/*
 * The page capacity bounds the journal. Old elements are trimmed after this number of appended ones
 * at the latest, however long the journal may be.
 */
enum { RETAIN_STEP_MAX = 100 };

/* The answer to the request has the elements to write out. */
static spill_request_t append_request(const spill_owner_t *owner, const spill_part_t *part)
{
    const spill_bounds_t *bounds = &owner->array->definition.bounds;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, part);
    append.append.due = bounds->threshold;
    append.append.due_limit = bounds->page_capacity;
    return append;
}

static void after_append(spill_owner_t *owner, const spill_request_t *append,
                         spill_response_t *head)
{
    int64_t first = head->seq;
    if (spill_state_slots(&head->state) >= append->append.due)
        write_out_after(owner, head);
    int64_t limit = append->append.due_limit;
    owner->retain_is_due = spill_retain_is_due(first, (int64_t)append->append.element_count,
                                               limit < RETAIN_STEP_MAX ? limit : RETAIN_STEP_MAX);
}

static spill_code_t make_room(spill_owner_t *owner, const spill_part_t *part,
                              spill_response_t *head, spill_error_t *error)
{
    spill_code_t code = spill_append_check_head(owner, part, &head->state, error);
    return code == SPILL_OK ? write_out(owner, head, 1, error) : code;
}

static spill_code_t append_part(spill_owner_t *owner, const spill_part_t *part,
                                spill_append_result_t *result, spill_error_t *error)
{
    static const spill_head_append_t steps = {
        .request = append_request, .done = after_append, .full = make_room};
    return spill_append_to_head(owner, part, &steps, result, error);
}

const spill_layout_ops_t spill_referenced_ops = {
    .append = append_part,
    .count = spill_count_referenced,
    .edit = spill_referenced_edit,
    .remove = spill_referenced_remove,
    .trim = trim_referenced,
    .drop = spill_referenced_drop,
};
