/*
 * Compute the head's sum and top again, for a repair. The sum is exact for integers and for doubles
 * of ordinary size. If a sum has had a value like 1e200, it has lost smaller values, also after the
 * large one is removed. The top has fewer elements than it could if the head's bound was raised, or
 * if another program removed elements from the summary.
 *
 * The sum and the top must be right for one rev of the head, because steps that change elements in
 * documents raise rev. CUT moves the journal to documents and raises rev too; with threshold 1,
 * every append does so. If only CUTs came after the documents were counted, add the documents of
 * these CUTs: each CUT has raised rev by one, and its documents have that rev. The same is true
 * after a refused RECOUNT.
 */
#include "layout/change_element.h"
#include "layout/referenced.h"

#include "bson/value.h"
#include "definition/schema.h"

#include <inttypes.h>
#include <stdio.h>

enum { BEGINNINGS_MAX = 20, ROUNDS_MAX = 200 };

typedef struct spill_counting {
    const spill_owner_t *owner;
    bool look_only;
    spill_response_t head;  /* with its journal and the elements of its top */
    spill_response_t top_n; /* layout subset: of the documents */
    int beginnings, rounds; /* rounds: also those that continued a count */
    /* The elements in documents with numbers in [low, first), as they were at rev. */
    int64_t incarnation, rev, watermark, first;
    spill_sum_t sum;
    double size; /* of their values, without signs */
} counting_t;

static const spill_definition_t *definition_of(const counting_t *counting)
{
    return &counting->owner->array->definition;
}

/* ---- reading --------------------------------------------------------------------------------- */

static spill_code_t read_head(counting_t *counting, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(counting->owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_top = true;
    return spill_owner_call(counting->owner, &read, &counting->head, error);
}

static void add_run(const spill_definition_t *definition, const spill_run_t *run, spill_sum_t *sum,
                    double *size)
{
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_sum_t value = spill_sum_of(definition, &element.value);
        spill_sum_add(sum, &value);
        *size += spill_sum_size(&value);
    }
}

/* Count the documents with numbers from counting->first up to the head's first number. */
static spill_code_t add_documents(counting_t *counting, spill_error_t *error)
{
    const spill_state_t *head = &counting->head.state;
    spill_response_t read = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    bool values = definition_of(counting)->value_field[0] != '\0';
    spill_referenced_walk_t walk = {.next = counting->first};
    while (code == SPILL_OK && values && walk.next < head->first) {
        code = spill_referenced_walk(counting->owner, head, head->first, &walk, &read, error);
        if (code == SPILL_OK)
            add_run(definition_of(counting), &read.run, &counting->sum, &counting->size);
    }
    counting->first = head->first;
    spill_response_release(&read);
    return code;
}

/* Read the highest-ranked elements in documents. */
static spill_code_t read_top_n(counting_t *counting, spill_error_t *error)
{
    const spill_state_t *head = &counting->head.state;
    if (!spill_schema_of(definition_of(counting))->has_top)
        return SPILL_OK;
    spill_request_t read = spill_owner_request(counting->owner, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.incarnation = head->incarnation;
    read.read.watermark = head->watermark;
    read.read.pages = head->pages;
    read.read.seq = -1;
    read.read.want = SPILL_WANT_TOP_N;
    read.read.limit = definition_of(counting)->top_count;
    return spill_owner_call(counting->owner, &read, &counting->top_n, error);
}

/*
 * Did only CUTs change the head after the documents were counted? Then the number of different revs
 * in the new documents equals the increase of the head's rev.
 */
static spill_code_t check_followed(counting_t *counting, bool *followed, spill_error_t *error)
{
    const spill_state_t *head = &counting->head.state;
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = SPILL_OK;
    int64_t last = counting->rev - 1, cuts = 0;
    *followed = counting->beginnings > 0 && counting->incarnation == head->incarnation &&
                counting->watermark == head->watermark;
    for (int64_t seq = counting->first; code == SPILL_OK && *followed && seq < head->first; seq++) {
        code = spill_owner_read_state(counting->owner, seq, &page, error);
        *followed = page.state.present && page.state.incarnation == head->incarnation &&
                    page.state.source_rev >= counting->rev && page.state.source_rev >= last &&
                    page.state.source_rev < head->rev;
        cuts += page.state.source_rev > last ? 1 : 0;
        last = page.state.source_rev;
    }
    *followed = *followed && cuts == head->rev - counting->rev;
    spill_response_release(&page);
    return code;
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void judge_sum(const counting_t *counting, spill_recount_t *recount)
{
    const spill_state_t *head = &counting->head.state;
    double size = counting->size;
    recount->sum = counting->sum;
    if (definition_of(counting)->value_field[0] == '\0')
        return;
    add_run(definition_of(counting), &counting->head.run, &recount->sum, &size);
    if (spill_sum_close(&head->sum, &recount->sum, size))
        recount->sum = head->sum;
    else
        snprintf(recount->text, sizeof recount->text,
                 "counts %" PRId64 " values with a sum of %.17g where there are %" PRId64
                 " with %.17g",
                 head->sum.values, spill_sum_total(&head->sum), recount->sum.values,
                 spill_sum_total(&recount->sum));
}

static bool find_element(const spill_run_t *run, int64_t seq, spill_value_t *value)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->entries[i].seq == seq) {
            *value = spill_run_element(run, i).value;
            return true;
        }
    return false;
}

/* Does the head show wrong elements of its top? */
static bool shows_others(const counting_t *counting, const spill_refill_t *refill)
{
    const spill_run_t *shown = &counting->head.top_run;
    for (size_t i = 0; i < shown->count && i < refill->run.count; i++) {
        spill_element_t left = spill_run_element(shown, i);
        spill_element_t right = spill_run_element(&refill->run, i);
        if (left.seq != right.seq || !spill_value_equal(&left.value, &right.value))
            return true;
    }
    return shown->count != counting->head.state.top.shown;
}

static bool same_entries(const spill_top_t *left, const spill_top_t *right)
{
    spill_top_t a = *left, b = *right;
    a.shown = b.shown = 0;
    return spill_top_equal(&a, &b);
}

static void judge_top(const counting_t *counting, spill_recount_t *recount)
{
    const spill_definition_t *definition = definition_of(counting);
    const spill_top_t *kept = &counting->head.state.top;
    spill_top_t *top = &recount->refill.top, journal = {0};
    if (!spill_schema_of(definition)->has_top)
        return;
    spill_top_copy(&counting->top_n.top_n, top);
    spill_top_note(&journal, definition, &counting->head.run);
    spill_top_add_all(top, (size_t)definition->top_count, &journal);
    spill_top_release(&journal);
    spill_top_show(top, definition, SIZE_MAX);
    for (size_t i = 0; i < top->shown; i++) {
        spill_value_t value;
        if (find_element(&counting->head.run, top->at[i].seq, &value) ||
            find_element(&counting->top_n.run, top->at[i].seq, &value))
            spill_run_add(&recount->refill.run, top->at[i].seq, &value);
    }
    if (recount->text[0] != '\0')
        return;
    if (!same_entries(kept, top))
        snprintf(recount->text, sizeof recount->text,
                 "its top %zu are not the elements that rank highest", kept->count);
    else if (kept->shown < top->shown)
        snprintf(recount->text, sizeof recount->text,
                 "shows %zu elements of its top where %zu have room", kept->shown, top->shown);
    else if (shows_others(counting, &recount->refill))
        snprintf(recount->text, sizeof recount->text,
                 "shows other elements than the %zu that it counts", kept->shown);
}

/* ---- counting -------------------------------------------------------------------------------- */

/* Finish the change of an intent first. Before that its element has two states. */
static spill_code_t finish_intent(counting_t *counting, bool *skip, spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    *skip = !counting->head.state.present || (counting->head.state.intent && counting->look_only);
    if (*skip || !counting->head.state.intent)
        return SPILL_OK;
    code = spill_read_head_without_intent(counting->owner, NULL, &counting->head, error);
    if (code == SPILL_OK)
        code = read_head(counting, error);
    if (code == SPILL_OK)
        *skip = !counting->head.state.present;
    return code;
}

/* Count the elements of counting->head, or continue an earlier count. */
static spill_code_t count(counting_t *counting, spill_error_t *error)
{
    const spill_state_t *head = &counting->head.state;
    bool followed;
    spill_code_t code = check_followed(counting, &followed, error);
    if (code != SPILL_OK)
        return code;
    counting->rounds++;
    if (!followed) {
        counting->beginnings++;
        counting->incarnation = head->incarnation;
        counting->watermark = head->watermark;
        counting->first = head->watermark;
        counting->sum = (spill_sum_t){0};
        counting->size = 0;
    }
    counting->rev = head->rev;
    code = add_documents(counting, error);
    return code == SPILL_OK ? read_top_n(counting, error) : code;
}

/* Is counting->head the head of the elements that were counted? */
static bool is_counted(const counting_t *counting)
{
    const spill_state_t *head = &counting->head.state;
    return counting->rounds > 0 && head->present && head->incarnation == counting->incarnation &&
           head->rev == counting->rev;
}

static spill_code_t count_all(counting_t *counting, spill_recount_t *recount, spill_error_t *error)
{
    const spill_state_t *head = &counting->head.state;
    bool skip = false;
    spill_code_t code = read_head(counting, error);
    while (code == SPILL_OK && !is_counted(counting)) {
        code = finish_intent(counting, &skip, error);
        if (code != SPILL_OK || skip)
            return code;
        if (counting->beginnings == BEGINNINGS_MAX || counting->rounds == ROUNDS_MAX) {
            spill_store_log(counting->owner->array->store, SPILL_LOG_WARNING,
                            "%s: elements change too quickly for a summary to be checked",
                            definition_of(counting)->name);
            return SPILL_OK;
        }
        code = count(counting, error);
        if (code == SPILL_OK)
            code = read_head(counting, error);
    }
    if (code != SPILL_OK)
        return code;
    recount->rev = head->rev;
    recount->end = spill_state_end(head);
    judge_sum(counting, recount);
    judge_top(counting, recount);
    return SPILL_OK;
}

spill_code_t spill_referenced_count(const spill_owner_t *owner, bool look_only,
                                    spill_recount_t *recount, spill_error_t *error)
{
    if (!recount->counting) {
        recount->counting = bson_malloc(sizeof *recount->counting);
        *recount->counting = (counting_t){.owner = owner,
                                          .look_only = look_only,
                                          .head = SPILL_RESPONSE_INIT,
                                          .top_n = SPILL_RESPONSE_INIT};
    }
    recount->text[0] = '\0';
    spill_refill_release(&recount->refill);
    return count_all(recount->counting, recount, error);
}

spill_code_t spill_referenced_recount(const spill_owner_t *owner, const spill_recount_t *recount,
                                      bool *done, spill_error_t *error)
{
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    request.rev = recount->rev;
    request.recount.end = recount->end;
    request.recount.sum = recount->sum;
    request.recount.refill = &recount->refill.top;
    request.recount.refill_run = &recount->refill.run;
    return spill_owner_step(owner, &request, done, error);
}

void spill_recount_release(spill_recount_t *recount)
{
    spill_refill_release(&recount->refill);
    if (recount->counting) {
        spill_response_release(&recount->counting->head);
        spill_response_release(&recount->counting->top_n);
        bson_free(recount->counting);
    }
    recount->counting = NULL;
}
