/*
 * What is checked, by invariant (docs/internals/protocol.md):
 *
 *   I1  each document is within its bounds, the largest that the definition has ever had
 *   I2  each page that the head counts exists, and holds each element that its state counts
 *   I3  no operation is in a window twice, and none has numbers beyond the end
 *   I4  numbers rise without a gap from document to document, except for removed ones
 *   I5  stored counts and statistics match the elements
 *   I6  first numbers rise with page numbers, because reads find pages by them
 *   I7  every page belongs to a head, except for pages that were put and not yet cut
 *   I9  an array that keeps each id once has no id twice, and no element without one
 */
#include "core/inspection.h"
#include "layout/document_limits.h"
#include "layout/drop.h"
#include "layout/locate.h"

#include "bson/value_text.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/*
 * A server enforces the size limit of its documents exactly. The sizes computed here include
 * reserved room, so they may exceed the limit for a document that other programs filled.
 */
static void check_bounds(spill_inspection_t *inspection, int64_t page, const spill_state_t *state)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    bool head = page == SPILL_HEAD;
    spill_limits_t limits = spill_document_limits(definition, &definition->largest, head);
    spill_state_t array = *state; /* other fields are the application's; only 16 MiB bounds them */
    array.fields_bytes = 0;
    array.deleted.count =
        0; /* a number may take more room than the element that it stands for had */
    const spill_value_t *owner = inspection->owner->value;
    int64_t whole =
        spill_state_document_bytes(definition, owner, head, state, state->live, state->live_bytes);
    int64_t bytes =
        spill_state_document_bytes(definition, owner, head, &array, state->live, state->live_bytes);
    int64_t slots = spill_state_bounded(definition, state);
    bool served = inspection->owner->array->store->ops->others_write;
    if (served && state->live == 1)
        bytes = 0;
    if (!spill_limits_fit(&limits, slots, state->live, bytes))
        spill_inspection_add(inspection, page, 1,
                             "%" PRId64 " slots and %" PRId64 " bytes, over the bounds of %" PRId64
                             " and %" PRId64,
                             slots, bytes, limits.slots_max, limits.bytes_max);
    else if (!served && whole > SPILL_DOCUMENT_BYTES_MAX)
        spill_inspection_add(inspection, page, 1, "%" PRId64 " bytes: more than a document holds",
                             whole);
}

/* Layout bucket: the statistics must equal those of the elements, bit for bit. */
static void check_window_stats(spill_inspection_t *inspection, int64_t page,
                               const spill_state_t *state, const spill_run_t *run)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    spill_window_stats_t window_stats = {0};
    if (!spill_schema_of(definition)->has_windows)
        return;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_window_stats_add(&window_stats, definition, &element.value);
    }
    if (spill_window_stats_equal(&window_stats, &state->window_stats))
        return;
    spill_inspection_add(inspection, page, 5,
                         "its elements have %" PRId64 " values with the sum %.17g, its "
                         "statistics are of %" PRId64 " with %.17g",
                         window_stats.values, window_stats.run, state->window_stats.values,
                         state->window_stats.run);
    spill_fix_t fix = spill_fix_counts(page, state);
    spill_inspection_fix(inspection, &fix);
}

/* Compare the elements with the state. */
static void check_elements(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                           const spill_run_t *run)
{
    if ((int64_t)run->count != state->live) {
        spill_inspection_add(inspection, page, 2,
                             "%zu elements are there, the document counts %" PRId64, run->count,
                             state->live);
    } else if (spill_run_bytes(run) != state->live_bytes) {
        spill_fix_t fix = spill_fix_counts(page, state);
        spill_inspection_add(inspection, page, 5,
                             "its elements have %" PRId64 " bytes, the document counts %" PRId64,
                             spill_run_bytes(run), state->live_bytes);
        spill_inspection_fix(inspection, &fix);
    }
    check_window_stats(inspection, page, state, run);
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        spill_inspect_id(inspection, page, &element);
    }
    int64_t before = state->first - 1;
    for (size_t i = 0; i < run->count; i++) {
        int64_t seq = run->entries[i].seq;
        if (seq <= before || seq >= spill_state_end(state) ||
            spill_seqs_contains(&state->deleted, seq)) {
            spill_inspection_add(inspection, page, 4,
                                 "element %" PRId64 " is out of place among [%" PRId64 ", %" PRId64
                                 ")",
                                 seq, state->first, spill_state_end(state));
            break;
        }
        before = seq;
    }
    before = state->first - 1;
    for (size_t i = 0; i < state->deleted.run_count; i++) {
        const spill_seq_run_t *deleted = &state->deleted.runs[i];
        if (deleted->first <= before || deleted->end > spill_state_end(state)) {
            spill_inspection_add(inspection, page, 4, "removed number %" PRId64 " is out of place",
                                 deleted->first <= before ? deleted->first : deleted->end - 1);
            break;
        }
        before = deleted->end - 1;
    }
}

/*
 * The window lists operations in the order of their application: ordinals and sequence numbers
 * rise. (An id may be in it twice, because an operation is an id with a base.)
 */
static void check_ops(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                      const spill_ops_t *ops)
{
    int64_t ordinal = -1;
    int64_t end = 0;
    for (size_t i = 0; i < ops->count; i++) {
        const spill_op_entry_t *op = &ops->entries[i];
        if (op->ordinal <= ordinal || op->ordinal >= state->op_count)
            spill_inspection_add(inspection, page, 3,
                                 "operation '%.*s' stands as number %" PRId64 " after %" PRId64
                                 " in a window of %" PRId64,
                                 op->id_bytes, (const char *)op->id, op->ordinal, ordinal,
                                 state->op_count);
        else if (op->seq < end || op->count < 1)
            spill_inspection_add(inspection, page, 3,
                                 "operation '%.*s' gave numbers that were given before",
                                 op->id_bytes, (const char *)op->id);
        ordinal = op->ordinal;
        end = op->seq + op->count;
    }
}

/* Compare this document's numbers with those of the document before it. */
static void check_order(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                        const spill_progress_t *progress)
{
    bool newest = spill_schema_of(&inspection->owner->array->definition)->appends_to_head;
    if (progress->any && state->first < progress->end && progress->end > progress->watermark)
        spill_inspection_add(inspection, page, 4,
                             "starts at %" PRId64 ", before the end %" PRId64 " of the one before",
                             state->first, progress->end);
    /* With keep newest removed numbers may be missing between two documents; I5 counts them. */
    if (progress->any && !newest && state->first > progress->end &&
        state->first > progress->watermark)
        spill_inspection_add(inspection, page, 4,
                             "starts at %" PRId64 ", after a gap from %" PRId64, state->first,
                             progress->end);
}

/*
 * A string that is not UTF-8 breaks no invariant: a program without Spillway may have written it.
 * Log the first one of the owner, because some drivers cannot read it.
 */
static void note_text(spill_inspection_t *inspection, const spill_run_t *run)
{
    spill_error_t error;
    const spill_owner_t *owner = inspection->owner;
    for (size_t i = 0; i < run->count && !inspection->noted_text; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (spill_value_check_text(&element.value, &error) == SPILL_OK)
            continue;
        char *name = spill_value_to_json(owner->value, false);
        spill_store_log(
            owner->array->store, SPILL_LOG_WARNING,
            "owner %.100s of '%s': element %" PRId64 ": %s; some drivers cannot read it",
            name ? name : "?", owner->array->definition.name, element.seq, error.message);
        bson_free(name);
        inspection->noted_text = true;
    }
}

/* The step that raises the watermark drops the head's elements below it. */
static void check_trimmed(spill_inspection_t *inspection, int64_t page, const spill_state_t *state,
                          const spill_progress_t *progress)
{
    if (page == SPILL_HEAD && spill_schema_of(&inspection->owner->array->definition)->has_pages &&
        spill_state_slots(state) > 0 && state->first < progress->watermark)
        spill_inspection_add(inspection, page, 5,
                             "has elements from %" PRId64 " on, and the elements below %" PRId64
                             " are trimmed",
                             state->first, progress->watermark);
}

static void check_document(spill_inspection_t *inspection, int64_t page,
                           const spill_response_t *response, spill_progress_t *progress)
{
    const spill_state_t *state = &response->state;
    const spill_number_range_t *range = spill_range_of(inspection, page);
    if (range) {
        spill_progress_range(inspection, range, state, progress);
        return;
    }
    check_bounds(inspection, page, state);
    check_elements(inspection, page, state, &response->run);
    note_text(inspection, &response->run);
    check_ops(inspection, page, state, &response->ops);
    check_order(inspection, page, state, progress);
    check_trimmed(inspection, page, state, progress);
    spill_progress_pass(inspection, page, state, progress);
}

/* Read a whole document. A record that cannot be read becomes a finding; *readable is false. */
static spill_code_t read_whole(spill_inspection_t *inspection, int64_t page,
                               spill_response_t *response, bool *readable, spill_error_t *error)
{
    spill_error_t failure = {.message = ""};
    spill_request_t read = spill_owner_request(inspection->owner, SPILL_REQUEST_READ, page);
    read.read.want = spill_range_of(inspection, page) ? SPILL_WANT_NONE : SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_ops = true;
    read.read.want_top = page == SPILL_HEAD;
    spill_store_t *store = inspection->owner->array->store;
    spill_code_t code = spill_store_call(store, &read, response, &failure);
    *readable = code != SPILL_CORRUPT;
    if (code == SPILL_CORRUPT) { /* the finding names owner and document itself */
        spill_seqs_insert(&inspection->unreadable, page);
        spill_inspection_add(inspection, page, 2, "cannot be read: %.200s", failure.message);
        return SPILL_OK;
    }
    if (code != SPILL_OK && error != NULL)
        *error = failure;
    return code == SPILL_OK ? code : spill_owner_name(inspection->owner, code, error);
}

/* Report a document that has a successor and is not sealed. */
static void find_unsealed(spill_inspection_t *inspection, int64_t page, const spill_state_t *state)
{
    spill_fix_t fix = spill_fix_counts(page, state);
    fix.kind = SPILL_REQUEST_SEAL;
    spill_inspection_add(inspection, page, 4, "is not sealed, though a page follows it");
    spill_inspection_fix(inspection, &fix);
}

static void find_total(spill_inspection_t *inspection, int64_t page, const spill_state_t *head,
                       int64_t first)
{
    spill_fix_t fix = spill_fix_counts(SPILL_HEAD, head);
    fix.total = first;
    spill_inspection_add(inspection, page, 5,
                         "starts at %" PRId64 ", the head counts %" PRId64 " before it", first,
                         head->total);
    spill_inspection_fix(inspection, &fix);
}

/* Keep newest: if the head begins at the end of the page before it, no page is missing. */
static void find_missing(spill_inspection_t *inspection, int64_t page, const spill_state_t *head,
                         bool never_was)
{
    spill_fix_t fix = spill_fix_counts(SPILL_HEAD, head);
    fix.pages = page;
    spill_inspection_add(inspection, page, 2, "is missing: the head counts %" PRId64 " pages",
                         head->pages);
    if (never_was)
        spill_inspection_fix(inspection, &fix);
}

/* *missing: the number of absent pages in a row, up to this one. */
static spill_code_t inspect_page(spill_inspection_t *inspection, int64_t page,
                                 const spill_state_t *head, spill_progress_t *progress,
                                 int64_t *missing, spill_error_t *error)
{
    bool newest = spill_schema_of(&inspection->owner->array->definition)->appends_to_head;
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *state = &response.state;
    bool readable;
    spill_code_t code = read_whole(inspection, page, &response, &readable, error);
    bool there =
        code == SPILL_OK && readable && state->present && state->incarnation == head->incarnation;
    bool last = page == head->pages - 1;
    *missing = there || !readable ? 0 : *missing + 1;
    if (!readable) /* the next one's place cannot be compared with this one's */
        progress->any = progress->before.any = false;
    if (there) {
        inspection->pages++;
        check_document(inspection, page, &response, progress);
        if (!newest && !last && !state->sealed)
            find_unsealed(inspection, page, state);
        if (!newest && last && state->closed && !inspection->rest)
            spill_inspection_add(inspection, page, 7,
                                 "is closed under a live head: a drop of the owner was begun");
        if (!newest && last && state->first != head->total && spill_state_slots(state) > 0 &&
            state->first >= head->watermark)
            find_total(inspection, page, head, state->first);
    } else if (code == SPILL_OK && readable && !(last && !newest) &&
               progress->end >= head->watermark) {
        find_missing(inspection, page, head, last && progress->any && progress->end == head->first);
    }
    spill_response_release(&response);
    return code;
}

/* Add a finding of the store, unless the document is known as unreadable. */
static void from_store(void *context, const spill_store_finding_t *finding)
{
    spill_inspection_t *inspection = context;
    const spill_fix_t rebuild = spill_fix_indexes(inspection);
    if (finding->range)
        spill_range_add(inspection, finding->range);
    if (finding->range || spill_seqs_contains(&inspection->unreadable, finding->page))
        return;
    spill_inspection_add(inspection, finding->page, finding->invariant, "%s", finding->text);
    if (!finding->index)
        return;
    inspection->indexes++;
    spill_inspection_fix(inspection, &rebuild);
}

/* Pages that are read together. */
enum { TOGETHER = 2 };

/* Read the states of consecutive pages together; if that fails, one by one, for the message. */
static spill_code_t read_states(const spill_owner_t *owner, int64_t first,
                                spill_response_t pages[TOGETHER], spill_error_t *error)
{
    spill_request_t reads[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        reads[i] = spill_owner_request(owner, SPILL_REQUEST_READ, first + (int64_t)i);
    spill_code_t code = spill_owner_call_all(owner, reads, TOGETHER, pages, NULL);
    for (size_t i = 0; code != SPILL_OK && i < TOGETHER; i++)
        SPILL_TRY(spill_owner_read_state(owner, first + (int64_t)i, &pages[i], error));
    return SPILL_OK;
}

/*
 * Keep newest: the pages after the last counted one are copies that a spill has put and not cut
 * yet, or that a dead or refused spill has left. A later spill replaces them. They copy this head,
 * or an earlier state of it. A spill puts several pages in turn, so one page may be absent (not put
 * yet, or refused) before a page that exists. Two absent pages end the search.
 */
static spill_code_t inspect_uncut(spill_inspection_t *inspection, const spill_state_t *head,
                                  spill_error_t *error)
{
    spill_response_t pages[TOGETHER] = {SPILL_RESPONSE_INIT, SPILL_RESPONSE_INIT};
    spill_code_t code = SPILL_OK;
    int absent = 0;
    for (int64_t page = head->pages; code == SPILL_OK && absent < 2; page++) {
        int64_t at = (page - head->pages) % TOGETHER;
        if (at == 0)
            code = read_states(inspection->owner, page, pages, error);
        const spill_state_t *state = &pages[at].state;
        bool exists = code == SPILL_OK && state->present && state->incarnation == head->incarnation;
        absent = exists ? 0 : absent + 1;
        if (exists && state->source_rev > head->rev)
            spill_inspection_add(inspection, page, 7,
                                 "is a copy of a head that was changed more often than this one");
    }
    for (size_t i = 0; i < TOGETHER; i++)
        spill_response_release(&pages[i]);
    return code;
}

/* Pages after the last one that the head counts. */
static spill_code_t inspect_beyond(spill_inspection_t *inspection, const spill_state_t *head,
                                   spill_error_t *error)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    spill_response_t response = SPILL_RESPONSE_INIT;
    int64_t page = head->pages;
    if (!spill_schema_of(definition)->has_pages)
        return SPILL_OK;
    if (spill_schema_of(definition)->has_referenced_elements)
        page = spill_state_end(head); /* each element of the head may have been put as a page */
    else if (spill_schema_of(definition)->appends_to_head)
        return inspect_uncut(inspection, head, error);
    spill_code_t code = spill_owner_read_state(inspection->owner, page, &response, error);
    if (code == SPILL_OK && response.state.present &&
        response.state.incarnation == head->incarnation)
        spill_inspection_add(inspection, page, 7,
                             "is there, though the head counts %" PRId64 " pages", head->pages);
    spill_response_release(&response);
    return code;
}

/* A trimmed page may be absent or exist. A late PUT_PAGE may have put it again. */
static spill_code_t inspect_trimmed(spill_inspection_t *inspection, int64_t page,
                                    const spill_state_t *head, spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    bool readable;
    spill_code_t code = read_whole(inspection, page, &response, &readable, error);
    if (code == SPILL_OK && readable && response.state.present &&
        response.state.incarnation == head->incarnation) {
        inspection->pages++;
        check_bounds(inspection, page, &response.state);
        check_elements(inspection, page, &response.state, &response.run);
    }
    spill_response_release(&response);
    return code;
}

/* Find the first page to inspect. With keep newest, trims may have deleted the pages before it. */
static spill_code_t first_page(spill_inspection_t *inspection, const spill_state_t *head,
                               int64_t *page, spill_error_t *error)
{
    *page = 0;
    if (head->watermark == 0 || head->pages == 0 ||
        !spill_schema_of(&inspection->owner->array->definition)->appends_to_head)
        return SPILL_OK;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_outlier_request_holding(inspection->owner, head, head->watermark);
    spill_code_t code = spill_owner_call(inspection->owner, &read, &response, error);
    if (code == SPILL_OK && response.state.present)
        *page = response.state.page;
    spill_response_release(&response);
    return code == SPILL_CORRUPT ? SPILL_OK : code; /* the page's own look finds it */
}

/*
 * A damaged head may count far too many pages. Verify must end anyway: after SEARCHED_AT missing
 * pages in a row it asks whether any later one exists, and after MISSING_MAX it skips the others.
 */
enum { SEARCHED_AT = 100, MISSING_MAX = 1000 };

/* Is there a page behind this one? If that cannot be known, there may be. */
static bool may_go_on(const spill_inspection_t *inspection, const spill_state_t *head, int64_t page)
{
    SPILL_SCOPED(spill_response_release) spill_response_t last = SPILL_RESPONSE_INIT;
    spill_code_t code =
        spill_outlier_find_left_over(inspection->owner, head->incarnation, &last, NULL);
    return code != SPILL_OK || (last.state.present && last.state.page > page);
}

static spill_code_t inspect_pages(spill_inspection_t *inspection, const spill_state_t *head,
                                  spill_progress_t *progress, spill_error_t *error)
{
    int64_t first, missing = 0;
    spill_code_t code = first_page(inspection, head, &first, error);
    for (int64_t page = 0; code == SPILL_OK && page < head->pages; page++) {
        code = page < first ? inspect_trimmed(inspection, page, head, error)
                            : inspect_page(inspection, page, head, progress, &missing, error);
        bool many = missing == MISSING_MAX ||
                    (missing == SEARCHED_AT && !may_go_on(inspection, head, page));
        if (code == SPILL_OK && many && page < head->pages - 2) {
            spill_inspection_add(inspection, page, 2,
                                 "%" PRId64
                                 " pages in a row are missing: skipped those up to page %" PRId64,
                                 missing, head->pages - 2);
            page = head->pages - 2; /* the last is next */
        }
    }
    return code;
}

/* Damage that ends the check of a document is a finding. */
static spill_code_t find_damage(spill_inspection_t *inspection, spill_code_t code,
                                const spill_error_t *failure, spill_error_t *error)
{
    if (code == SPILL_CORRUPT) {
        spill_inspection_add(inspection, SPILL_HEAD, 2, "the check ends at: %.200s",
                             failure->message);
        if (!spill_seqs_contains(&inspection->unreadable, SPILL_HEAD)) /* the store meets it, too */
            spill_seqs_insert(&inspection->unreadable, SPILL_HEAD);
    } else if (code != SPILL_OK && error != NULL)
        *error = *failure;
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

/*
 * May a client have died in a step that only layout/repair.c finds? A removal or an edit leaves an
 * intent. A trim leaves pages below the watermark, and a seal, with keep oldest, a sealed last
 * page.
 */
static bool may_be_half_done(const spill_schema_t *schema, const spill_state_t *head)
{
    bool trimmed = head->watermark > 0 && (head->pages > 0 || schema->has_referenced_elements);
    return schema->has_pages &&
           (head->intent || trimmed || (!schema->appends_to_head && head->pages > 0));
}

spill_code_t spill_inspect_owner(spill_inspection_t *inspection, spill_error_t *error)
{
    const spill_definition_t *definition = &inspection->owner->array->definition;
    spill_store_t *store = inspection->owner->array->store;
    bool newest = spill_schema_of(definition)->appends_to_head;
    spill_response_t response = SPILL_RESPONSE_INIT;
    const spill_state_t *head = &response.state;
    bool readable;
    spill_error_t failure = {.message = ""};
    spill_code_t code = read_whole(inspection, SPILL_HEAD, &response, &readable, &failure);
    if (code == SPILL_OK && readable && head->present) {
        spill_progress_t progress = {.watermark = head->watermark};
        int64_t pages_end = head->watermark;
        inspection->rev = head->rev;
        inspection->watermark = head->watermark;
        inspection->end = spill_state_end(head);
        inspection->head_pages = head->pages;
        inspection->half_done = may_be_half_done(spill_schema_of(definition), head);
        if (!newest)
            check_document(inspection, SPILL_HEAD, &response, &progress);
        if (spill_schema_of(definition)->has_referenced_elements)
            code = spill_inspect_referenced(inspection, &response, &progress.live, &failure);
        else
            code = inspect_pages(inspection, head, &progress, &failure);
        if (newest) {
            int64_t before = progress.live;
            pages_end = progress.any ? progress.end : head->watermark;
            check_document(inspection, SPILL_HEAD, &response, &progress);
            progress.in_head = progress.live - before;
        }
        inspection->elements = progress.live;
        /* A store that has elements under their numbers proves ranges in another way. */
        int64_t ranges = store->ops->check ? 0 : (int64_t)inspection->ranges.count;
        if (code == SPILL_OK && inspection->found == ranges)
            code = spill_progress_removed(inspection, head, &progress, pages_end, &failure);
        if (code == SPILL_OK)
            code = inspect_beyond(inspection, head, &failure);
        spill_inspect_ids(inspection);
        spill_state_release(&progress.before.state);
    }
    code = find_damage(inspection, code, &failure, error);
    if (code == SPILL_OK && store->ops->check != NULL)
        code = store->ops->check(store, &inspection->owner->array->binding, definition,
                                 inspection->owner->value, from_store, inspection, error);
    spill_response_release(&response);
    return code;
}
