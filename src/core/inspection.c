/*
 * The result of an inspection: its findings, the steps that correct them, and the sequence numbers
 * of the documents that it has passed.
 */
#include "core/inspection.h"
#include "definition/schema.h"
#include "layout/locate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void spill_inspection_add(spill_inspection_t *inspection, int64_t page, int invariant,
                          const char *format, ...)
{
    inspection->found++;
    if (inspection->kept == SPILL_INSPECTION_FINDINGS)
        return;
    if (inspection->findings == NULL) {
        inspection->findings =
            bson_malloc0(SPILL_INSPECTION_FINDINGS * sizeof *inspection->findings);
        inspection->fixes = bson_malloc0(SPILL_INSPECTION_FINDINGS * sizeof *inspection->fixes);
    }
    spill_finding_t *finding = &inspection->findings[inspection->kept++];
    finding->definition = inspection->owner->array->definition.name;
    finding->owner = inspection->owner->value;
    finding->page = page;
    finding->invariant = invariant;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof finding->text, format, arguments);
    va_end(arguments);
}

void spill_inspection_fix(spill_inspection_t *inspection, const spill_fix_t *fix)
{
    inspection->fixable++;
    if (inspection->found == (int64_t)inspection->kept)
        inspection->fixes[inspection->kept - 1] = *fix;
}

spill_fix_t spill_fix_counts(int64_t page, const spill_state_t *state)
{
    return (spill_fix_t){.kind = SPILL_REQUEST_RECOUNT,
                         .page = page,
                         .incarnation = state->incarnation,
                         .rev = state->rev,
                         .pages = state->pages,
                         .total = state->total,
                         .removed = state->removed};
}

spill_fix_t spill_fix_indexes(const spill_inspection_t *inspection)
{
    return (spill_fix_t){
        .kind = SPILL_REQUEST_RECOUNT, .page = SPILL_HEAD, .rev = inspection->rev, .indexes = true};
}

static void forget(spill_inspection_t *inspection)
{
    bson_free(inspection->findings);
    bson_free(inspection->fixes);
    inspection->findings = NULL;
    inspection->fixes = NULL;
    spill_seqs_release(&inspection->unreadable);
    spill_passed_ids_release(&inspection->ids);
}

void spill_inspection_release(spill_inspection_t *inspection)
{
    forget(inspection);
    bson_free(inspection->ranges.at);
    inspection->ranges = (spill_number_ranges_t){0};
}

/* Forget ranges that the last inspection did not confirm. */
void spill_inspection_restart(spill_inspection_t *inspection, spill_inspection_t *before)
{
    spill_inspection_t fresh = {
        .owner = inspection->owner, .rest = inspection->rest, .ranges = inspection->ranges};
    fresh.ranges.count = fresh.ranges.changed ? fresh.ranges.count : 0;
    fresh.ranges.changed = false;
    inspection->ranges = (spill_number_ranges_t){0};
    forget(before);
    *before = *inspection;
    *inspection = fresh;
}

static bool has_finding(const spill_inspection_t *inspection, const spill_finding_t *wanted)
{
    for (size_t i = 0; i < inspection->kept; i++) {
        const spill_finding_t *finding = &inspection->findings[i];
        if (finding->page == wanted->page && finding->invariant == wanted->invariant)
            return true;
    }
    return false;
}

void spill_inspection_keep_repeated(spill_inspection_t *inspection,
                                    const spill_inspection_t *before)
{
    size_t kept = 0;
    inspection->fixable = 0;
    inspection->indexes = 0;
    for (size_t i = 0; i < inspection->kept; i++) {
        if (!has_finding(before, &inspection->findings[i]))
            continue;
        inspection->findings[kept] = inspection->findings[i];
        inspection->fixes[kept] = inspection->fixes[i];
        inspection->fixable += inspection->fixes[kept].kind != SPILL_REQUEST_READ ? 1 : 0;
        inspection->indexes += inspection->fixes[kept].indexes ? 1 : 0;
        kept++;
    }
    inspection->kept = kept;
    inspection->found = (int64_t)kept;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static spill_number_range_t *find_range(const spill_inspection_t *inspection, int64_t page)
{
    for (size_t i = 0; i < inspection->ranges.count; i++)
        if (inspection->ranges.at[i].page == page)
            return &inspection->ranges.at[i];
    return NULL;
}

const spill_number_range_t *spill_range_of(const spill_inspection_t *inspection, int64_t page)
{
    return find_range(inspection, page);
}

void spill_range_add(spill_inspection_t *inspection, const spill_number_range_t *range)
{
    spill_number_ranges_t *ranges = &inspection->ranges;
    spill_number_range_t *known = find_range(inspection, range->page);
    if (known && known->first == range->first && known->end == range->end)
        return;
    ranges->changed = true;
    if (!known) {
        ranges->at = bson_realloc(ranges->at, (ranges->count + 1) * sizeof *ranges->at);
        known = &ranges->at[ranges->count++];
    }
    *known = *range;
}

/* ---- passing documents ----------------------------------------------------------------------- */

static void note_gap(spill_progress_t *progress, int64_t page, int64_t from, int64_t end)
{
    char gap[96], document[32] = "the head";
    size_t used = strlen(progress->gaps);
    if (page != SPILL_HEAD)
        snprintf(document, sizeof document, "page %" PRId64, page);
    snprintf(gap, sizeof gap, "%s[%" PRId64 ", %" PRId64 ") before %s", used > 0 ? ", " : "", from,
             end, document);
    if (used + strlen(gap) + sizeof ", ..." <= sizeof progress->gaps)
        strcpy(progress->gaps + used, gap);
    else if (used > 0 && progress->gaps[used - 1] != '.')
        strcpy(progress->gaps + used, ", ...");
    progress->between += end - from;
}

static void account(spill_progress_t *progress, int64_t page, const spill_state_t *state)
{
    int64_t live = spill_state_live_within(state, progress->watermark, INT64_MAX);
    int64_t from =
        progress->any && progress->end > progress->watermark ? progress->end : progress->watermark;
    progress->live += live;
    if (state->first > from)
        note_gap(progress, page, from, state->first);
    progress->end = spill_state_end(state);
    progress->any = true;
}

/*
 * For stores that do not store the numbers of elements. The document before this one does not fit
 * between its neighbours. If it fits with exactly one other first number, or with one other set of
 * deleted numbers, then this is the correct one. If other programs write to the store, keep the
 * first number: they may have added an element to one document and removed one from another.
 */
static void judge_before(spill_inspection_t *inspection, const spill_state_t *next,
                         const spill_passed_t *before)
{
    const spill_array_t *array = inspection->owner->array;
    const spill_store_ops_t *ops = array->store->ops;
    const spill_state_t *state = &before->state;
    const int64_t firsts[] = {state->first, ops->others_write ? -1 : before->after};
    int64_t end = spill_state_end(state);
    bool gaps = spill_schema_of(&array->definition)->appends_to_head;
    bool fits = end <= next->first && state->first >= before->after &&
                (gaps || end == next->first || before->after < 0);
    spill_number_range_t range = {.page = before->page, .end = next->first, .seen_end = end};
    int found = 0;
    if (!before->any || fits || ops->check || spill_state_slots(state) == 0)
        return;
    for (int i = 0; i < 2; i++) {
        int64_t deleted = (int64_t)(spill_seqs_count_below(&state->deleted, range.end) -
                                    spill_seqs_count_below(&state->deleted, firsts[i]));
        if (firsts[i] < 0 || (i == 1 && firsts[1] == firsts[0]) ||
            firsts[i] + state->live + deleted != range.end)
            continue;
        range.first = firsts[i];
        found++;
    }
    if (found == 1 && (range.first != state->first || range.end != end))
        spill_range_add(inspection, &range);
}

static void note_before(spill_progress_t *progress, int64_t page, const spill_state_t *state)
{
    spill_passed_t *before = &progress->before;
    bool first = page == 0 && progress->watermark == 0;
    before->any = true;
    before->page = page;
    before->after = progress->any ? progress->end : first ? 0 : -1;
    spill_state_release(&before->state);
    spill_state_copy(state, &before->state);
}

void spill_progress_pass(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                         spill_progress_t *progress)
{
    judge_before(inspection, state, &progress->before);
    note_before(progress, page, state);
    account(progress, page, state);
}

void spill_progress_range(spill_inspection_t *inspection, const spill_number_range_t *range,
                          const spill_state_t *state, spill_progress_t *progress)
{
    spill_state_t fixed = {0};
    spill_fix_t fix = spill_fix_counts(range->page, state);
    fix.range = true;
    fix.first = range->first;
    fix.end = range->end;
    fix.seen_end = range->seen_end;
    if (range->first != state->first || range->end != spill_state_end(state)) {
        spill_inspection_add(inspection, range->page, 4,
                             "counts %" PRId64 " elements, in [%" PRId64 ", %" PRId64
                             "), where its elements are in [%" PRId64 ", %" PRId64 ")",
                             state->live, state->first, spill_state_end(state), range->first,
                             range->end);
        spill_inspection_fix(inspection, &fix);
    }
    spill_state_copy(state, &fixed);
    spill_seqs_drop_below(&fixed.deleted, range->first);
    spill_seqs_keep_below(&fixed.deleted, range->end);
    fixed.first = range->first;
    fixed.live = range->end - range->first - (int64_t)fixed.deleted.count;
    spill_progress_pass(inspection, range->page, &fixed, progress);
    spill_state_release(&fixed);
}

/* ---- removed numbers ------------------------------------------------------------------------- */

/*
 * Keep newest: find pages that the head does not count and that have exactly the elements missing
 * before the head's first number. (A page that was put and not cut has elements of the head. If
 * they were removed meanwhile, the head counts them as removed.) *end is the end of these pages, or
 * their start if there are none.
 */
static spill_code_t find_uncounted(spill_inspection_t *inspection, const spill_state_t *head,
                                   int64_t from, int64_t missing, int64_t *end,
                                   spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *state = &response.state;
    spill_code_t code = SPILL_OK;
    int64_t page = head->pages;
    bool more = from < head->first;
    while (code == SPILL_OK && more) {
        code = spill_owner_read_state(inspection->owner, page, &response, error);
        more = code == SPILL_OK && state->present && state->incarnation == head->incarnation &&
               state->first == from && state->source_rev < head->rev &&
               spill_state_slots(state) > 0;
        if (!more)
            break;
        from = spill_state_end(state);
        missing -= spill_state_live_within(state, head->watermark, INT64_MAX);
        more = from < head->first;
        page++;
    }
    *end = from == head->first && missing == 0 ? page : head->pages;
    spill_response_release(&response);
    return code;
}

spill_code_t spill_progress_removed(spill_inspection_t *inspection, const spill_state_t *head,
                                    const spill_progress_t *progress, int64_t pages_end,
                                    spill_error_t *error)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    bool newest = spill_schema_of(definition)->appends_to_head,
         referenced = spill_schema_of(definition)->has_referenced_elements;
    int64_t end = newest ? head->first : progress->end;
    int64_t live = newest ? progress->live - progress->in_head : progress->live;
    int64_t dead = end - head->watermark - live, pages = head->pages;
    spill_code_t code = SPILL_OK;
    spill_fix_t fix = spill_fix_counts(SPILL_HEAD, head);
    fix.removed = dead;
    if (!spill_schema_of(definition)->has_pages && head->watermark != head->first) {
        spill_inspection_add(inspection, SPILL_HEAD, 5,
                             "begins at %" PRId64 ", and counts the elements from %" PRId64 " on",
                             head->first, head->watermark);
        spill_inspection_fix(inspection, &fix);
    }
    /* A removal with an intent is counted, and may not be done yet. */
    if (head->removed == dead || (head->intent && head->removed == dead + 1))
        return SPILL_OK;
    if (newest && !referenced && !head->intent && head->removed < dead &&
        inspection->ranges.count == 0)
        code = find_uncounted(inspection, head, pages_end, dead - head->removed, &pages, error);
    if (code == SPILL_OK && pages > head->pages) {
        fix.removed = head->removed;
        fix.pages = pages;
        spill_inspection_add(inspection, SPILL_HEAD, 5,
                             "counts %" PRId64 " pages, where there are %" PRId64
                             " with elements before its own",
                             head->pages, pages);
        spill_inspection_fix(inspection, &fix);
        return SPILL_OK;
    }
    /*
     * A document lists the numbers that were deleted from it. Numbers between two documents (keep
     * newest) appear only in this count. If it is too small, elements may have been lost. If a
     * document's numbers are corrected, this count confirms the correction or contradicts it.
     */
    bool known = inspection->ranges.count == 0 &&
                 (head->removed > dead || progress->between == 0 || referenced);
    spill_inspection_add(inspection, SPILL_HEAD, 5,
                         "counts %" PRId64 " removed elements where %" PRId64 " are missing%s%s",
                         head->removed, dead,
                         known ? "" : "; in no document: ", known ? "" : progress->gaps);
    if (known)
        spill_inspection_fix(inspection, &fix);
    return code;
}
