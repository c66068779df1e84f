/* Compare the records of an owner's documents and elements with each other. */
#include "store/embedded/embedded_check.h"

#include "definition/schema.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/records.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Check documents from the highest numbers down, in the order of the element records: with keep
 * newest the head and then the pages, with keep oldest the pages and then the head.
 */

enum { MISSING_MAX = 100 };

/* ---- findings -------------------------------------------------------------------------------- */

static void report_finding(const spill_checking_t *checking, spill_store_finding_t finding,
                           const char *format, va_list arguments)
{
    char text[256];
    vsnprintf(text, sizeof text, format, arguments);
    finding.owner = checking->request->owner;
    finding.text = text;
    checking->report(checking->context, &finding);
}

void spill_checking_find(const spill_checking_t *checking, int64_t page, int invariant,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_finding(checking, (spill_store_finding_t){.page = page, .invariant = invariant}, format,
                   arguments);
    va_end(arguments);
}

void spill_checking_find_in_index(const spill_checking_t *checking, int64_t page,
                                  const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_finding(
        checking,
        (spill_store_finding_t){.page = page, .invariant = SPILL_CHECK_RECOVERABLE, .index = true},
        format, arguments);
    va_end(arguments);
}

/* Report a state that contradicts all other records. */
static void report_range(const spill_checking_t *checking, const spill_number_range_t *range,
                         const char *format, ...) __attribute__((format(printf, 3, 4)));

static void report_range(const spill_checking_t *checking, const spill_number_range_t *range,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    report_finding(checking,
                   (spill_store_finding_t){
                       .page = range->page, .invariant = SPILL_CHECK_NUMBERED, .range = range},
                   format, arguments);
    va_end(arguments);
}

bool spill_checking_find_damage(spill_checking_t *checking, int64_t page, const char *what)
{
    spill_error_t error;
    if (checking->iter->valid || checking->iter->ops->status(checking->iter, &error) == SPILL_OK)
        return false;
    if (page != SPILL_HEAD || !checking->damaged)
        spill_checking_find(checking, page, SPILL_CHECK_LOST, "%s: %s", what, error.message);
    checking->damaged = checking->damaged || page == SPILL_HEAD;
    return true;
}

/* Find and read a state record. One that cannot be read is reported, and its state is absent. */
static bool seek_state(spill_checking_t *checking, int64_t page, spill_state_t *state)
{
    spill_kv_iter_t *iter = checking->iter;
    state->present = false;
    spill_embedded_state_key(&checking->key, page);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    if (!iter->valid || iter->key_bytes != checking->key.size ||
        memcmp(iter->key, checking->key.data, checking->key.size) != 0)
        return false;
    spill_state_decode(iter->value, iter->value_bytes, page == SPILL_HEAD, state);
    return true;
}

static void seek_head(spill_checking_t *checking)
{
    if (!seek_state(checking, SPILL_HEAD, &checking->head))
        spill_checking_find_damage(checking, SPILL_HEAD, "the record of its state");
    else if (!checking->head.present)
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "the record of its state cannot be read");
}

void spill_checking_seek_kind(spill_checking_t *checking, spill_record_t kind)
{
    spill_record_key_kind(&checking->key, kind);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
}

void spill_checking_find_unknown(const spill_checking_t *checking, spill_record_t next)
{
    const spill_kv_iter_t *iter = checking->iter;
    uint8_t kind =
        iter->valid ? spill_record_key_kind_of(&checking->key, iter->key, iter->key_bytes) : 0;
    if (kind != 0 && kind < next)
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "there is a record of an unknown kind");
}

/* Is the iterator at an element of the checked incarnation? */
static bool at_element(const spill_checking_t *checking, int64_t *seq)
{
    int64_t incarnation;
    const spill_kv_iter_t *iter = checking->iter;
    return iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &incarnation,
                                       seq) &&
           incarnation == checking->head.incarnation;
}

/* ---- elements -------------------------------------------------------------------------------- */

/*
 * Report the elements in [from, end) that the state counts. After MISSING_MAX findings, one more
 * stands for the rest: a damaged state may count millions.
 */
static void find_missing(const spill_checking_t *checking, int64_t page, const spill_state_t *state,
                         int64_t from, int64_t end)
{
    /* A page that was put, and trimmed before it was cut, may have lost its element. */
    bool referenced = spill_schema_of(checking->request->definition)->has_referenced_elements;
    int64_t low = referenced && checking->head.watermark > from ? checking->head.watermark : from;
    int64_t seq = spill_seqs_pass_down(&state->deleted, end - 1);
    for (int found = 0; seq >= low; found++) {
        if (found == MISSING_MAX) {
            spill_checking_find(checking, page, SPILL_CHECK_LOST,
                                "elements %" PRId64 " to %" PRId64 " have no records", low, seq);
            return;
        }
        spill_checking_find(checking, page, SPILL_CHECK_LOST, "element %" PRId64 " has no record",
                            seq);
        seq = spill_seqs_pass_down(&state->deleted, seq - 1);
    }
}

/* Check the elements of a document's range, from the iterator's position on. */
static void check_range(spill_checking_t *checking, int64_t page, const spill_state_t *state)
{
    int64_t end = spill_state_end(state);
    int64_t seq;
    for (; at_element(checking, &seq) && seq >= state->first;
         checking->iter->ops->next(checking->iter)) {
        spill_value_t value;
        find_missing(checking, page, state, seq + 1, end);
        end = seq;
        if (spill_seqs_contains(&state->deleted, seq))
            spill_checking_find(checking, page, SPILL_CHECK_RECOVERABLE,
                                "element %" PRId64 " was removed, but has a record", seq);
        else if (!spill_element_decode(checking->request->definition, checking->iter->value,
                                       checking->iter->value_bytes, &value))
            spill_checking_find(checking, page, SPILL_CHECK_RECOVERABLE,
                                "the record of element %" PRId64 " cannot be read", seq);
    }
    if (!spill_checking_find_damage(checking, page, "its elements"))
        find_missing(checking, page, state, state->first, end);
}

/* Report elements from the iterator's position down to `end`, which no document has. */
static void check_gap(spill_checking_t *checking, int64_t end)
{
    int64_t seq;
    if (checking->broken)
        return;
    for (; at_element(checking, &seq) && seq >= end; checking->iter->ops->next(checking->iter))
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "element %" PRId64 " is in no document", seq);
}

/* Report elements below the lowest document. */
static void check_rest(spill_checking_t *checking)
{
    if (checking->below == 0)
        return;
    spill_record_key_element(&checking->key, checking->head.incarnation, checking->below - 1);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    check_gap(checking, 0);
}

/* ---- the right numbers of a document --------------------------------------------------------- */

/*
 * Do the records in [first, end) belong to the document? They do if exactly the numbers that are
 * not deleted have records, and if the sum of the sizes is the document's. Nulls have no size; if
 * there are any, the number of elements must be the document's, too.
 */
static bool fits(spill_checking_t *checking, const spill_state_t *state, int64_t first, int64_t end)
{
    int64_t seq, live = 0, bytes = 0;
    bool sized = true;
    int64_t expected = spill_seqs_pass_down(&state->deleted, end - 1);
    spill_record_key_element(&checking->key, checking->head.incarnation, end - 1);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    for (; at_element(checking, &seq) && seq >= first && seq == expected;
         checking->iter->ops->next(checking->iter)) {
        live++;
        bytes += (int64_t)checking->iter->value_bytes - 1;
        sized = sized && checking->iter->value_bytes > 1;
        expected = spill_seqs_pass_down(&state->deleted, seq - 1);
    }
    return expected < first && bytes == state->live_bytes && (sized || live == state->live);
}

/* The end of the document before this one; -1: unknown. */
static int64_t end_before(spill_checking_t *checking, int64_t page)
{
    const spill_state_t *head = &checking->head;
    bool newest = spill_schema_of(checking->request->definition)->appends_to_head;
    spill_state_t before = {0};
    int64_t end = -1;
    if (page == 0 && newest)
        return head->watermark == 0 ? 0 : -1;
    if (page == SPILL_HEAD && !newest)
        return -1;
    page = page == SPILL_HEAD ? head->pages - 1 : page - 1; /* SPILL_HEAD comes before 0 */
    if (seek_state(checking, page, &before) && before.present &&
        before.incarnation == head->incarnation)
        end = spill_state_end(&before);
    spill_state_release(&before);
    return end;
}

/* The number after the highest one that has a record. */
static int64_t end_of_all(spill_checking_t *checking)
{
    int64_t seq;
    spill_record_key_element(&checking->key, checking->head.incarnation, INT64_MAX);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    return at_element(checking, &seq) ? seq + 1 : 0;
}

/*
 * A document's last number is not next to the first number of the next document. Find its right
 * numbers and report them, if exactly one range is possible. The last document may have lost
 * elements, so numbers without records at its end prove nothing.
 */
static bool find_numbers(spill_checking_t *checking, int64_t page, const spill_state_t *state)
{
    bool last = checking->below == INT64_MAX;
    int64_t end = last ? end_of_all(checking) : checking->below;
    spill_number_range_t range = {.page = page, .end = end, .seen_end = spill_state_end(state)};
    int found = 0;
    if (checking->broken || !checking->sure ||
        spill_schema_of(checking->request->definition)->has_referenced_elements ||
        spill_state_end(state) == end || (last && spill_state_end(state) > end))
        return false;
    const int64_t firsts[] = {state->first, end_before(checking, page)};
    for (int i = 0; i < 2; i++)
        if (firsts[i] >= 0 && firsts[i] < end && (i == 0 || firsts[i] != firsts[0]) &&
            fits(checking, state, firsts[i], end)) {
            range.first = firsts[i];
            found++;
        }
    if (found != 1)
        return false;
    report_range(checking, &range,
                 "its numbers are [%" PRId64 ", %" PRId64 "), not [%" PRId64 ", %" PRId64 ")",
                 range.first, range.end, state->first, spill_state_end(state));
    checking->below = range.first;
    return true;
}

static void check_document(spill_checking_t *checking, int64_t page, const spill_state_t *state)
{
    bool empty = spill_state_slots(state) == 0;
    if ((empty && state->live_bytes == 0) || find_numbers(checking, page, state) || empty)
        return;
    checking->sure = spill_state_end(state) <= checking->below;
    if (!checking->sure) {
        spill_checking_find(checking, page, SPILL_CHECK_RECOVERABLE,
                            "its numbers, up to %" PRId64
                            ", overlap the next document, which begins at %" PRId64,
                            spill_state_end(state), checking->below);
        return;
    }
    int64_t above = checking->broken ? spill_state_end(state) : checking->below;
    spill_record_key_element(&checking->key, checking->head.incarnation, above - 1);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    check_gap(checking, spill_state_end(state));
    check_range(checking, page, state);
    checking->below = state->first;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Read the page record before `page`. Return its number, or -1. */
static int64_t seek_page_before(spill_checking_t *checking, int64_t page, spill_state_t *state)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t before;
    spill_record_key_page(&checking->key, page);
    iter->ops->seek_before(iter, checking->key.data, checking->key.size);
    if (!iter->valid) {
        checking->broken = true; /* the engine cannot read: the head's record comes before pages */
        return -1;
    }
    if (!spill_record_key_is_page(&checking->key, iter->key, iter->key_bytes, &before))
        return -1;
    if (!spill_state_decode(iter->value, iter->value_bytes, false, state)) {
        checking->sure = false; /* the check of the index has reported it */
        state->present = false;
    }
    return before;
}

/*
 * The right number of pages. A page that the head does not count was put but not cut: its elements
 * are the head's or another page's, or were removed since. But with keep newest, if such pages have
 * exactly the elements between the last counted page and the head, the head's count is wrong.
 */
static int64_t count_pages(spill_checking_t *checking)
{
    const spill_state_t *head = &checking->head;
    const spill_definition_t *definition = checking->request->definition;
    spill_state_t state = {0};
    int64_t page = head->pages;
    if (!head->present || !spill_schema_of(definition)->appends_to_head ||
        spill_schema_of(definition)->has_referenced_elements)
        return head->present ? page : 0;
    int64_t end = end_before(checking, page);
    while (end >= 0 && end < head->first && seek_state(checking, page, &state) && state.present &&
           state.incarnation == head->incarnation && state.first == end &&
           spill_state_end(&state) > end && fits(checking, &state, end, spill_state_end(&state))) {
        end = spill_state_end(&state);
        page++;
    }
    spill_state_release(&state);
    return end == head->first ? page : head->pages;
}

/* Check the pages from the highest numbers down. */
static void check_pages(spill_checking_t *checking)
{
    spill_state_t state = {0};
    int64_t page = count_pages(checking);
    while (page > 0 && (page = seek_page_before(checking, page, &state)) >= 0)
        if (state.present && state.incarnation == checking->head.incarnation)
            check_document(checking, page, &state);
    spill_state_release(&state);
}

/* ---- other incarnations ---------------------------------------------------------------------- */

static bool has_pages(spill_checking_t *checking, int64_t of)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, first, page;
    spill_record_key_first(&checking->key, of, INT64_MAX, INT64_MAX);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    return iter->valid &&
           spill_record_key_is_first(&checking->key, iter->key, iter->key_bytes, &incarnation,
                                     &first, &page) &&
           incarnation == of;
}

/* Elements of another incarnation need a page (of an owner that is being dropped), or are lost. */
static void check_others(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t incarnation, seq;
    spill_checking_seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid && spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes,
                                                      &incarnation, &seq)) {
        bool own = checking->head.present && incarnation == checking->head.incarnation;
        if (!own && !has_pages(checking, incarnation))
            spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                                "elements up to %" PRId64 " of incarnation %" PRId64
                                " are in no document",
                                seq, incarnation);
        spill_record_key_element(&checking->key, incarnation - 1,
                                 -1); /* go to the first element of an earlier one */
        iter->ops->seek(iter, checking->key.data, checking->key.size);
    }
    spill_checking_find_damage(checking, SPILL_HEAD, "elements");
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void check_ops(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_op_entry_t entry;
    int64_t incarnation, ordinal;
    spill_checking_seek_kind(checking, SPILL_RECORD_OP);
    for (; iter->valid && spill_record_key_is_op(&checking->key, iter->key, iter->key_bytes,
                                                 &incarnation, &ordinal);
         iter->ops->next(iter))
        if (!spill_op_decode(iter->value, iter->value_bytes, &entry))
            spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                                "the record of operation %" PRId64 " cannot be read", ordinal);
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the records of operations"))
        return;
    spill_checking_find_unknown(checking, SPILL_RECORD_OPS);
    spill_checking_seek_kind(checking, SPILL_RECORD_OPS);
    for (; iter->valid && spill_record_key_is_ops(&checking->key, iter->key, iter->key_bytes,
                                                  &incarnation, &ordinal);
         iter->ops->next(iter))
        if (spill_op_list_count(iter->value, iter->value_bytes) == 0)
            spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                                "the record of the operations from %" PRId64 " on cannot be read",
                                ordinal);
    if (!spill_checking_find_damage(checking, SPILL_HEAD, "the records of operations"))
        spill_checking_find_unknown(checking, SPILL_RECORD_SESSION);
}

/* Check the records of sessions, and how many belong to the head's incarnation. */
static void check_sessions(spill_checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    const uint8_t *session;
    int64_t incarnation, number = 0, counted = 0;
    bool good = true;
    spill_checking_seek_kind(checking, SPILL_RECORD_SESSION);
    for (; iter->valid && spill_record_key_is_session(&checking->key, iter->key, iter->key_bytes,
                                                      &incarnation, &session);
         iter->ops->next(iter)) {
        spill_session_entry_t entry = {0};
        bool own = checking->head.present && incarnation == checking->head.incarnation;
        int64_t value = 0;
        bool read = session ? spill_session_decode(iter->value, iter->value_bytes, &entry)
                            : spill_session_number_decode(iter->value, iter->value_bytes, &value);
        good = good && read;
        if (own)
            *(session ? &counted : &number) += session ? 1 : value;
        if (!read)
            spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                                "the record of a session cannot be read");
    }
    if (good && number != counted)
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "there are %" PRId64 " records of sessions, their number is %" PRId64,
                            counted, number);
    if (!spill_checking_find_damage(checking, SPILL_HEAD, "the records of sessions"))
        spill_checking_find_unknown(checking, SPILL_RECORD_ID);
}

/* A head must have a readable record of other fields. */
static void check_fields(spill_checking_t *checking)
{
    const spill_request_t *request = checking->request;
    spill_kv_iter_t *iter = checking->iter;
    spill_record_key_t key;
    bson_t fields;
    spill_record_key_init(&key, request->collection_id, request->key, request->key_bytes);
    iter->ops->seek(iter, key.data, key.size);
    if (spill_checking_find_damage(checking, SPILL_HEAD, "the record of the other fields"))
        return;
    if (!iter->valid || iter->key_bytes != key.size || memcmp(iter->key, key.data, key.size) != 0)
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "the record of the other fields is missing");
    else if (!spill_fields_decode(iter->value, iter->value_bytes, request->key, request->key_bytes,
                                  &fields))
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "the record of the other fields cannot be read");
    else if (checking->head.fields_bytes != (int64_t)fields.len)
        spill_checking_find(checking, SPILL_HEAD, SPILL_CHECK_RECOVERABLE,
                            "its other fields have %u bytes, the document counts %" PRId64,
                            fields.len, checking->head.fields_bytes);
}

static void check_all(spill_checking_t *checking)
{
    bool newest = spill_schema_of(checking->request->definition)->appends_to_head;
    seek_head(checking);
    spill_checking_page_index(checking);
    if (newest && checking->head.present)
        check_document(checking, SPILL_HEAD, &checking->head);
    check_pages(checking);
    if (!newest && checking->head.present)
        check_document(checking, SPILL_HEAD, &checking->head);
    if (checking->head.present)
        check_rest(checking);
    if (checking->head.present)
        check_fields(checking);
    check_others(checking);
    check_ops(checking);
    check_sessions(checking);
    spill_checking_ids(checking);
    spill_checking_ranks(checking);
}

spill_code_t spill_embedded_check(spill_store_t *base, const spill_binding_t *binding,
                                  const spill_definition_t *definition, const spill_value_t *owner,
                                  spill_store_finding_fn report, void *context,
                                  spill_error_t *error)
{
    spill_embedded_t *store = (spill_embedded_t *)base;
    spill_hold_t hold = {.pass = NULL};
    spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    spill_code_t code = spill_owner_key(owner, &owner_key, error);
    if (code == SPILL_OK) {
        spill_request_t request = {.definition = definition,
                                   .owner = owner,
                                   .key = owner_key.data,
                                   .key_bytes = owner_key.size,
                                   .array_id = binding->array_id,
                                   .collection_id = binding->collection_id};
        spill_checking_t checking = {.request = &request,
                                     .below = INT64_MAX,
                                     .sure = true,
                                     .report = report,
                                     .context = context};
        spill_record_key_init(&checking.key, binding->array_id, owner_key.data, owner_key.size);
        /* Entries of windows are under the key of another owner. */
        bool elsewhere = spill_schema_of(definition)->has_windows && definition->id_field[0];
        spill_kv_t *kv =
            elsewhere ? NULL : spill_read_ahead_hold(store->ahead, &checking.key, &hold);
        if (!kv)
            kv = store->kv;
        checking.iter = kv->ops->iterate(kv);
        check_all(&checking);
        checking.iter->ops->free(checking.iter);
        spill_hold_release(&hold);
        spill_state_release(&checking.head);
    }
    spill_buffer_release(&owner_key);
    return code;
}
