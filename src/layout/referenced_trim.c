/*
 * Trim of referenced elements. TRIM raises the head's watermark in steps of at most TRIM_STEP
 * numbers, because each step subtracts the values of the elements that it deletes from the head's
 * sum. After each step the client deletes their documents.
 */
#include "layout/referenced.h"

#include "util/error.h"

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
    SPILL_TRY(spill_outlier_settled_head(owner, NULL, &response, error));
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

spill_code_t spill_referenced_trim(spill_owner_t *owner, const spill_trim_t *trim,
                                   int64_t *watermark, spill_error_t *error)
{
    trimming_t trimming = {.trim = trim, .rev = -1};
    bool done = false;
    while (!done)
        SPILL_TRY(try_trim(owner, &trimming, watermark, &done, error));
    return SPILL_OK;
}
