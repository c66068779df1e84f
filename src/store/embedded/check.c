#include "store/embedded/embedded.h"

#include "definition/fields.h"
#include "store/embedded/codec.h"
#include "util/error.h"
#include "util/hash.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * What only the records show: elements that are in no document, or missing from one; records that
 * cannot be read; pages and their index that disagree. Bounds, order and counts are the verifier's.
 *
 * Documents are walked from the highest numbers down, as the element records lie: with keep newest
 * the head and then the pages by the index, with keep oldest the other way round. One iterator sees
 * all of it at one moment.
 */
enum { NOTHING_LOST = 2, RECOVERABLE = 7 };

typedef struct checking {
    spill_kv_t *kv;
    const spill_request_t *request;
    spill_kv_iter_t *iter;
    spill_record_key_t key;
    spill_state_t head;
    int64_t below; /* documents seen so far hold no number below this */
    int64_t entries;
    bool broken; /* the index of pages could not be read to its end: what lies where is unknown */
    spill_store_finding_fn report;
    void *context;
} checking_t;

static void find(const checking_t *checking, int64_t page, int invariant, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void find(const checking_t *checking, int64_t page, int invariant, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    checking->report(checking->context, checking->request->owner, page, invariant, false, text);
}

/* In an index of elements: reindex.c makes it anew. */
static void find_in_index(const checking_t *checking, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void find_in_index(const checking_t *checking, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    checking->report(checking->context, checking->request->owner, SPILL_HEAD, RECOVERABLE, true,
                     text);
}

/* Does the iterator stand still because the engine cannot read on? Then that is a finding. */
static bool find_damage(const checking_t *checking, int64_t page, const char *what)
{
    spill_error_t error;
    if (checking->iter->valid || checking->iter->ops->status(checking->iter, &error) == SPILL_OK)
        return false;
    find(checking, page, NOTHING_LOST, "%s: %s", what, error.message);
    return true;
}

static bool seek_state(checking_t *checking, int64_t page, spill_state_t *state)
{
    spill_kv_iter_t *iter = checking->iter;
    state->present = false;
    spill_embedded_state_key(&checking->key, page);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    if (!iter->valid)
        return find_damage(checking, page, "the record of its state");
    if (iter->key_bytes != checking->key.size ||
        memcmp(iter->key, checking->key.data, checking->key.size) != 0)
        return false;
    if (!spill_state_decode(iter->value, iter->value_bytes, page == SPILL_HEAD, state))
        find(checking, page, RECOVERABLE, "the record of its state cannot be read");
    return true;
}

/* Go to the first record of that kind, or what comes after them. */
static void seek_kind(checking_t *checking, spill_record_t kind)
{
    spill_record_key_kind(&checking->key, kind);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
}

/* The iterator is behind the records of one kind: is it among others before those of `next`? */
static void find_unknown(const checking_t *checking, spill_record_t next)
{
    const spill_kv_iter_t *iter = checking->iter;
    uint8_t kind =
        iter->valid ? spill_record_key_kind_of(&checking->key, iter->key, iter->key_bytes) : 0;
    if (kind != 0 && kind < next)
        find(checking, SPILL_HEAD, RECOVERABLE, "there is a record of an unknown kind");
}

/* Is the iterator at an element of the incarnation that is looked at? */
static bool at_element(const checking_t *checking, int64_t *seq)
{
    int64_t epoch;
    const spill_kv_iter_t *iter = checking->iter;
    return iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &epoch, seq) &&
           epoch == checking->head.epoch;
}

/* ---- elements -------------------------------------------------------------------------------- */

static void find_missing(const checking_t *checking, int64_t page, const spill_state_t *state,
                         int64_t from, int64_t end)
{
    /* A document that was put, and trimmed before it was cut, may have outlived its element. */
    bool apart = spill_elements_apart(checking->request->definition);
    for (int64_t seq = end - 1;; seq--) {
        seq = spill_seqs_pass_down(&state->gone, seq);
        if (seq < from)
            break;
        if (apart && seq < checking->head.low)
            continue;
        find(checking, page, NOTHING_LOST, "element %" PRId64 " has no record", seq);
    }
}

/* Elements of a document's range, from the iterator's place on. */
static void check_range(checking_t *checking, int64_t page, const spill_state_t *state)
{
    int64_t end = spill_state_end(state);
    int64_t seq;
    for (; at_element(checking, &seq) && seq >= state->first;
         checking->iter->ops->next(checking->iter)) {
        spill_value_t value;
        find_missing(checking, page, state, seq + 1, end);
        end = seq;
        if (spill_seqs_contains(&state->gone, seq))
            find(checking, page, RECOVERABLE, "element %" PRId64 " was removed, but is there", seq);
        else if (!spill_element_decode(checking->iter->value, checking->iter->value_bytes, &value))
            find(checking, page, RECOVERABLE, "the record of element %" PRId64 " cannot be read",
                 seq);
    }
    if (!find_damage(checking, page, "its elements"))
        find_missing(checking, page, state, state->first, end);
}

/* From the iterator's place down to `end`: no document has them. */
static void check_gap(checking_t *checking, int64_t end)
{
    int64_t seq;
    if (checking->broken)
        return;
    for (; at_element(checking, &seq) && seq >= end; checking->iter->ops->next(checking->iter))
        find(checking, SPILL_HEAD, RECOVERABLE, "element %" PRId64 " is in no document", seq);
}

/* Below the lowest document. */
static void check_rest(checking_t *checking)
{
    if (checking->below == 0)
        return;
    spill_record_key_element(&checking->key, checking->head.epoch, checking->below - 1);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    check_gap(checking, 0);
}

static void check_document(checking_t *checking, int64_t page, const spill_state_t *state)
{
    if (spill_state_slots(state) == 0)
        return;
    if (spill_state_end(state) > checking->below) {
        find(checking, page, RECOVERABLE,
             "its numbers, up to %" PRId64 ", overlap those of the document after it, from "
             "%" PRId64,
             spill_state_end(state), checking->below);
        return;
    }
    int64_t above = checking->broken ? spill_state_end(state) : checking->below;
    spill_record_key_element(&checking->key, checking->head.epoch, above - 1);
    checking->iter->ops->seek(checking->iter, checking->key.data, checking->key.size);
    check_gap(checking, spill_state_end(state));
    check_range(checking, page, state);
    checking->below = state->first;
}

/* ---- pages ----------------------------------------------------------------------------------- */

static void check_page(checking_t *checking, int64_t epoch, int64_t first, int64_t page)
{
    spill_state_t state = {0};
    if (!seek_state(checking, page, &state))
        find(checking, page, RECOVERABLE, "the index has it, but it has no record");
    else if (state.present && (state.first != first || state.epoch != epoch))
        find(checking, page, RECOVERABLE,
             "the index has it from %" PRId64 " on, its record from %" PRId64, first, state.first);
    else if (state.present && checking->head.present && page < checking->head.pages &&
             epoch == checking->head.epoch)
        check_document(checking, page, &state);
    spill_state_release(&state);
}

/* Every entry of the index, in its order: in an incarnation, from the highest numbers down. */
static void check_pages(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, first, page;
    seek_kind(checking, SPILL_RECORD_FIRST);
    while (iter->valid && spill_record_key_is_first(&checking->key, iter->key, iter->key_bytes,
                                                    &epoch, &first, &page)) {
        checking->entries++;
        check_page(checking, epoch, first, page);
        spill_record_key_first(&checking->key, epoch, first, page);
        iter->ops->seek(iter, checking->key.data, checking->key.size);
        if (iter->valid)
            iter->ops->next(iter);
    }
    checking->broken = find_damage(checking, SPILL_HEAD, "the index of pages");
}

static void count_pages(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t page;
    int64_t pages = 0;
    seek_kind(checking, SPILL_RECORD_PAGE);
    for (;
         iter->valid && spill_record_key_is_page(&checking->key, iter->key, iter->key_bytes, &page);
         iter->ops->next(iter))
        pages++;
    if (!find_damage(checking, SPILL_HEAD, "the records of pages") && !checking->broken &&
        pages != checking->entries)
        find(checking, SPILL_HEAD, RECOVERABLE,
             "%" PRId64 " pages have records, but %" PRId64 " are in the index", pages,
             checking->entries);
}

/* ---- other incarnations ---------------------------------------------------------------------- */

static bool has_pages(checking_t *checking, int64_t of)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, first, page;
    spill_record_key_first(&checking->key, of, INT64_MAX, INT64_MAX);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    return iter->valid &&
           spill_record_key_is_first(&checking->key, iter->key, iter->key_bytes, &epoch, &first,
                                     &page) &&
           epoch == of;
}

/* Pages of an owner that is being dropped may have elements; elements without pages are lost. */
static void check_others(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, seq;
    seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &epoch, &seq)) {
        bool own = checking->head.present && epoch == checking->head.epoch;
        if (!own && !has_pages(checking, epoch))
            find(checking, SPILL_HEAD, RECOVERABLE,
                 "elements up to %" PRId64 " of incarnation %" PRId64 " are in no document", seq,
                 epoch);
        spill_record_key_element(&checking->key, epoch - 1, -1); /* the first of an earlier one */
        iter->ops->seek(iter, checking->key.data, checking->key.size);
    }
    find_damage(checking, SPILL_HEAD, "elements");
}

/* ---- the index of ids ------------------------------------------------------------------------ */

static bool is_there(checking_t *checking, const spill_record_key_t *key)
{
    spill_kv_iter_t *iter = checking->iter;
    iter->ops->seek(iter, key->data, key->size);
    return iter->valid && iter->key_bytes == key->size &&
           memcmp(iter->key, key->data, key->size) == 0;
}

/* Has the element at the iterator, if it has an id, its entries? The iterator moves. */
static bool has_entry(checking_t *checking, int64_t epoch, int64_t seq, bool *has_id)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_buffer_t id = SPILL_BUFFER_INIT;
    spill_record_key_t window;
    spill_value_t element;
    bool has = false;
    *has_id = spill_element_decode(iter->value, iter->value_bytes, &element) &&
              spill_element_key(&element, checking->request->definition->id_field, &id);
    if (*has_id) {
        spill_record_key_id(&checking->key, epoch, &id, seq);
        has = is_there(checking, &checking->key);
        if (spill_embedded_window_entry(checking->request, checking->request->array_id, &id, epoch,
                                        seq, &window))
            has = is_there(checking, &window) && has;
    }
    spill_buffer_release(&id);
    return has;
}

/* Every element that has an id, of any incarnation; how many of them have their entry. */
static int64_t check_ids_of_elements(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, seq;
    int64_t entries = 0;
    seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &epoch, &seq)) {
        bool has_id;
        bool has = has_entry(checking, epoch, seq, &has_id);
        entries += has;
        if (has_id && !has)
            find_in_index(checking, "the id of element %" PRId64 " has no entry", seq);
        if (has_id) {
            spill_record_key_element(&checking->key, epoch, seq);
            iter->ops->seek(iter, checking->key.data, checking->key.size);
        }
        if (iter->valid)
            iter->ops->next(iter);
    }
    return entries;
}

/* The iterator passes over the entries, which are to be as many as elements have. */
static void check_ids(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, seq;
    const uint8_t *id;
    size_t id_bytes;
    bool indexed = checking->request->definition->id_field[0] != '\0';
    int64_t expected = indexed ? check_ids_of_elements(checking) : 0;
    int64_t entries = 0;
    seek_kind(checking, SPILL_RECORD_ID);
    for (; iter->valid && spill_record_key_is_id(&checking->key, iter->key, iter->key_bytes, &epoch,
                                                 &id, &id_bytes, &seq);
         iter->ops->next(iter))
        entries++;
    if (find_damage(checking, SPILL_HEAD, "the index of ids"))
        return;
    if (entries != expected)
        find_in_index(checking,
                      "the index of ids has %" PRId64 " entries, of which %" PRId64
                      " are those of an element",
                      entries, expected);
    find_unknown(checking, SPILL_RECORD_RANK);
}

/* ---- the index of ranks ---------------------------------------------------------------------- */

/* Has the element at the iterator its entry? The iterator comes back to it. */
static bool has_rank(checking_t *checking, int64_t epoch, int64_t seq)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_value_t element;
    if (!spill_element_decode(iter->value, iter->value_bytes, &element))
        return false;
    spill_rank_t rank = spill_rank_of(checking->request->definition, &element);
    spill_record_key_rank(&checking->key, epoch, &rank, seq);
    bool has = is_there(checking, &checking->key);
    spill_record_key_element(&checking->key, epoch, seq);
    iter->ops->seek(iter, checking->key.data, checking->key.size);
    return has;
}

/* A number of keys, and a sum over them by which two sets are told apart. */
typedef struct key_set {
    int64_t count;
    uint64_t sum;
} key_set_t;

static void add_key(key_set_t *set, const uint8_t *key, size_t key_bytes)
{
    set->count++;
    set->sum += spill_hash(key, key_bytes);
}

/* The entries that elements of any incarnation are to have. */
static key_set_t ranks_of_elements(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_value_t element;
    int64_t epoch, seq;
    key_set_t set = {0};
    seek_kind(checking, SPILL_RECORD_ELEMENT);
    for (; iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &epoch, &seq);
         iter->ops->next(iter)) {
        if (!spill_element_decode(iter->value, iter->value_bytes, &element))
            continue;
        spill_rank_t rank = spill_rank_of(checking->request->definition, &element);
        spill_record_key_rank(&checking->key, epoch, &rank, seq);
        add_key(&set, checking->key.data, checking->key.size);
    }
    return set;
}

static void find_elements_without_rank(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, seq;
    seek_kind(checking, SPILL_RECORD_ELEMENT);
    while (iter->valid &&
           spill_record_key_is_element(&checking->key, iter->key, iter->key_bytes, &epoch, &seq)) {
        if (!has_rank(checking, epoch, seq))
            find_in_index(checking, "the rank of element %" PRId64 " has no entry", seq);
        if (iter->valid)
            iter->ops->next(iter);
    }
}

/* Every element has one entry, and there are no others. */
static void check_ranks(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    int64_t epoch, seq;
    bool indexed = spill_has_rank_index(checking->request->definition);
    key_set_t expected = {0}, entries = {0};
    if (indexed)
        expected = ranks_of_elements(checking);
    seek_kind(checking, SPILL_RECORD_RANK);
    for (; iter->valid &&
           spill_record_key_is_rank(&checking->key, iter->key, iter->key_bytes, &epoch, &seq);
         iter->ops->next(iter))
        add_key(&entries, iter->key, iter->key_bytes);
    if (find_damage(checking, SPILL_HEAD, "the index of ranks"))
        return;
    find_unknown(checking, SPILL_RECORD_WINDOW_ID);
    if (entries.count == expected.count && entries.sum == expected.sum)
        return;
    find_in_index(checking,
                  "the index of ranks has %" PRId64 " entries, which are not those of %" PRId64
                  " elements",
                  entries.count, expected.count);
    if (indexed)
        find_elements_without_rank(checking);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void check_ops(checking_t *checking)
{
    spill_kv_iter_t *iter = checking->iter;
    spill_op_entry_t entry;
    int64_t epoch, ordinal;
    seek_kind(checking, SPILL_RECORD_OP);
    for (; iter->valid &&
           spill_record_key_is_op(&checking->key, iter->key, iter->key_bytes, &epoch, &ordinal);
         iter->ops->next(iter))
        if (!spill_op_decode(iter->value, iter->value_bytes, &entry))
            find(checking, SPILL_HEAD, RECOVERABLE,
                 "the record of operation %" PRId64 " cannot be read", ordinal);
    if (!find_damage(checking, SPILL_HEAD, "the records of operations"))
        find_unknown(checking, SPILL_RECORD_ID);
}

static void check_all(checking_t *checking)
{
    bool newest = checking->request->definition->keep == SPILL_KEEP_NEWEST;
    seek_state(checking, SPILL_HEAD, &checking->head);
    if (newest && checking->head.present)
        check_document(checking, SPILL_HEAD, &checking->head);
    check_pages(checking);
    if (!newest && checking->head.present)
        check_document(checking, SPILL_HEAD, &checking->head);
    if (checking->head.present)
        check_rest(checking);
    check_others(checking);
    count_pages(checking);
    check_ops(checking);
    check_ids(checking);
    check_ranks(checking);
}

spill_code_t spill_embedded_check(spill_store_t *base, const spill_binding_t *binding,
                                  const spill_definition_t *definition, const spill_value_t *owner,
                                  spill_store_finding_fn report, void *context,
                                  spill_error_t *error)
{
    spill_kv_t *kv = ((spill_embedded_t *)base)->kv;
    spill_buffer_t owner_key = SPILL_BUFFER_INIT;
    spill_code_t code = spill_owner_key(owner, &owner_key, error);
    if (code == SPILL_OK) {
        spill_request_t request = {
            .definition = definition, .owner = owner, .array_id = binding->array_id};
        checking_t checking = {.kv = kv,
                               .request = &request,
                               .iter = kv->ops->iterate(kv),
                               .below = INT64_MAX,
                               .report = report,
                               .context = context};
        spill_record_key_init(&checking.key, binding->array_id, owner_key.data, owner_key.size);
        check_all(&checking);
        checking.iter->ops->free(checking.iter);
        spill_state_release(&checking.head);
    }
    spill_buffer_release(&owner_key);
    return code;
}
