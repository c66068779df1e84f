/*
 * Appends to an array that keeps each id once.
 *
 *   1. search   the head, with its incarnation and k = pages; then the pages below k
 *   2. append   the elements without a found id, if the head still has that incarnation and k
 *               pages, and has none of the ids
 *   refused: again from 1
 *
 * Pages below k never get another id: spills put pages from k on, and edits keep the id. So an id
 * that the search has not found can only be in the head, where the guard sees it. A spill between 1
 * and 2 could move it away from there; that raises k. A store with an index of all ids checks all
 * documents in 2 (spill_store_ops_t.checks_ids), so it needs step 1 only after a refusal.
 *
 * docs/internals/protocol.md, "Sets", has the proof.
 */
#include "layout/unique.h"
#include "layout/append.h"
#include "layout/change_element.h"
#include "layout/locate.h"

#include "bson/element_fields.h"
#include "layout/layout.h"
#include "util/error.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- the elements that are left -------------------------------------------------------------- */

/* The elements of a part that the array may lack, in order, and a table of their ids. */
typedef struct candidates {
    spill_value_t *elements;
    spill_buffer_t *keys; /* of their ids */
    uint64_t *hashes;     /* of the keys */
    bool *found;          /* the array has the id */
    size_t count;
    uint32_t *slots; /* by hash: an index + 1; 0: free */
    size_t slot_count;
} candidates_t;

static void candidates_release(candidates_t *candidates)
{
    for (size_t i = 0; i < candidates->count; i++)
        spill_buffer_release(&candidates->keys[i]);
    bson_free(candidates->elements);
    bson_free(candidates->keys);
    bson_free(candidates->hashes);
    bson_free(candidates->found);
    bson_free(candidates->slots);
}

/* The slot of the key, or the free one where it belongs. */
static uint32_t *slot_of(const candidates_t *candidates, const spill_buffer_t *key, uint64_t hash)
{
    assert(candidates->slot_count > 0); /* candidates_reserve */
    size_t at = hash % candidates->slot_count;
    while (candidates->slots[at] != 0) {
        size_t index = candidates->slots[at] - 1;
        if (candidates->hashes[index] == hash && spill_buffer_equal(&candidates->keys[index], key))
            break;
        at = (at + 1) % candidates->slot_count;
    }
    return &candidates->slots[at];
}

static uint64_t hash_of(const spill_buffer_t *key)
{
    return spill_hash(key->data, key->size);
}

static void candidates_reserve(size_t count, candidates_t *candidates)
{
    *candidates = (candidates_t){.elements = bson_malloc(count * sizeof(spill_value_t)),
                                 .keys = bson_malloc0(count * sizeof(spill_buffer_t)),
                                 .hashes = bson_malloc(count * sizeof(uint64_t)),
                                 .found = bson_malloc0(count * sizeof(bool)),
                                 .slots = bson_malloc0(2 * count * sizeof(uint32_t)),
                                 .slot_count = 2 * count};
}

/* False: there is one with the element's id. */
static bool add_candidate(candidates_t *candidates, const spill_value_t *element, const char *path)
{
    size_t at = candidates->count;
    spill_buffer_t *key = &candidates->keys[at];
    spill_element_key(element, path, true, key);
    uint32_t *slot = slot_of(candidates, key, hash_of(key));
    if (*slot != 0) {
        spill_buffer_release(key);
        return false;
    }
    candidates->hashes[at] = hash_of(key);
    candidates->elements[at] = *element;
    *slot = (uint32_t)++candidates->count;
    return true;
}

/* Begin with the elements of the part, without those that have the id of an earlier one. */
static void candidates_init(const spill_owner_t *owner, const spill_part_t *part,
                            candidates_t *candidates)
{
    candidates_reserve(part->count, candidates);
    for (size_t i = 0; i < part->count; i++)
        add_candidate(candidates, &part->elements[i], owner->array->definition.id_field);
}

/* Leave out what was found. *any: there was some. */
static void leave_out(candidates_t *candidates, bool *any)
{
    size_t count = 0;
    memset(candidates->slots, 0, candidates->slot_count * sizeof *candidates->slots);
    for (size_t i = 0; i < candidates->count; i++) {
        if (candidates->found[i]) {
            spill_buffer_release(&candidates->keys[i]);
            continue;
        }
        candidates->elements[count] = candidates->elements[i];
        candidates->keys[count] = candidates->keys[i];
        candidates->hashes[count] = candidates->hashes[i];
        uint32_t *slot = slot_of(candidates, &candidates->keys[count], candidates->hashes[count]);
        *slot = (uint32_t)++count;
    }
    *any = count < candidates->count;
    memset(candidates->found, 0, candidates->count * sizeof *candidates->found);
    candidates->count = count;
}

/* The part with the elements that are left; it borrows from them. */
static spill_part_t part_of(const candidates_t *candidates, const spill_part_t *whole,
                            const spill_searched_t *searched)
{
    spill_part_t part = *whole;
    part.elements = candidates->elements;
    part.count = candidates->count;
    part.ids = candidates->hashes;
    part.searched = searched;
    part.bytes = 0;
    for (size_t i = 0; i < part.count; i++)
        part.bytes += part.elements[i].size_bytes;
    return part;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Read the head without an intent, with all of its elements. */
static spill_code_t read_whole_head(const spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error)
{
    int tries = 0;
    while (true) {
        spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
        read.read.want = SPILL_WANT_FORWARD;
        read.read.limit = INT64_MAX;
        SPILL_TRY(spill_owner_call(owner, &read, head, error));
        if (!head->state.present || !head->state.intent)
            return SPILL_OK;
        SPILL_TRY(spill_read_head_without_intent(owner, NULL, head, error));
        SPILL_TRY(spill_owner_again(owner, &tries, error));
    }
}

/* Of one candidate, the store looks up the id; of several, this client searches the elements. */
static spill_code_t search_head(const spill_owner_t *owner, candidates_t *candidates,
                                spill_response_t *head, spill_error_t *error)
{
    const char *path = owner->array->definition.id_field;
    spill_value_t id;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    if (candidates->count == 1) {
        spill_element_id(&candidates->elements[0], path, &id);
        SPILL_TRY(spill_read_head_without_intent(owner, &id, head, error));
        candidates->found[0] = head->run.count > 0;
        return SPILL_OK;
    }
    SPILL_TRY(read_whole_head(owner, head, error));
    for (size_t i = 0; i < head->run.count; i++) {
        spill_element_t element = spill_run_element(&head->run, i);
        spill_buffer_clear(&key);
        if (!spill_element_key(&element.value, path, true, &key))
            continue;
        uint32_t slot = *slot_of(candidates, &key, hash_of(&key));
        if (slot > 0)
            candidates->found[slot - 1] = true;
    }
    return SPILL_OK;
}

/*
 * A page in which an id was found may be an older copy that a late write has restored after a trim
 * (spill_owner_still_has): then *still becomes false.
 */
static spill_code_t search_pages(const spill_owner_t *owner, const spill_state_t *head,
                                 candidates_t *candidates, bool *still, spill_error_t *error)
{
    const char *path = owner->array->definition.id_field;
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    bool any = false;
    for (size_t i = 0; i < candidates->count; i++) {
        int64_t where;
        spill_value_t id;
        if (candidates->found[i])
            continue;
        spill_element_id(&candidates->elements[i], path, &id);
        spill_which_t which = {.id = &id};
        SPILL_TRY(spill_outlier_find_in_pages(owner, head, &which, &page, &where, error));
        candidates->found[i] = where != SPILL_NO_DOCUMENT;
        any = any || candidates->found[i];
    }
    *still = true;
    return any ? spill_owner_still_has(owner, head, head->watermark, &page, still, error)
               : SPILL_OK;
}

/* What a search has shown, besides the candidates that it found. */
typedef struct view {
    spill_searched_t searched;
    int64_t op_base;
    int64_t rev, end; /* of the head */
    int same;         /* searches in a row that have shown the same, and found nothing */
} view_t;

static spill_code_t search_once(const spill_owner_t *owner, candidates_t *candidates, view_t *view,
                                bool *still, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    const spill_state_t *state = &head.state;
    *still = true;
    memset(candidates->found, 0, candidates->count * sizeof *candidates->found);
    SPILL_TRY(search_head(owner, candidates, &head, error));
    const view_t before = *view;
    *view = (view_t){0};
    if (!state->present)
        return SPILL_OK;
    view->op_base = state->op_count;
    view->searched = (spill_searched_t){.incarnation = state->incarnation, .pages = state->pages};
    view->rev = state->rev;
    view->end = spill_state_end(state);
    bool same = view->rev == before.rev && view->end == before.end &&
                view->searched.pages == before.searched.pages &&
                view->searched.incarnation == before.searched.incarnation;
    view->same = same ? before.same + 1 : 0;
    return head.id_absent ? SPILL_OK : search_pages(owner, state, candidates, still, error);
}

/* Search, and leave out what was found. *any: there was some. */
static spill_code_t search(const spill_owner_t *owner, candidates_t *candidates, view_t *view,
                           bool *any, spill_error_t *error)
{
    int tries = 0;
    bool still;
    SPILL_TRY(search_once(owner, candidates, view, &still, error));
    while (!still) {
        SPILL_TRY(spill_owner_again(owner, &tries, error));
        SPILL_TRY(search_once(owner, candidates, view, &still, error));
    }
    leave_out(candidates, any);
    return SPILL_OK;
}

/* ---- the append ------------------------------------------------------------------------------ */

/*
 * An id was found. Perhaps an earlier try of the same operation has appended it: then the result is
 * that of the repeated operation. It was applied before the search, so the head shows it now,
 * unless the owner was dropped in between: then *still is false, and what was found says nothing.
 */
static spill_code_t find_earlier_try(const spill_owner_t *owner, const spill_part_t *part,
                                     const view_t *view, spill_append_result_t *result, bool *still,
                                     spill_error_t *error)
{
    static const spill_searched_t nothing = {.by_store = true};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_part_t whole = *part;
    spill_refusal_t refusal;
    *still = true;
    if (part->op == NULL && part->session == NULL && part->match == NULL)
        return SPILL_OK;
    whole.searched = &nothing;
    spill_request_t append = spill_append_request(owner, SPILL_HEAD, &whole);
    SPILL_TRY(spill_append_classify_refusal(owner, &append, &head, &refusal, result, error));
    *still = head.state.present && head.state.incarnation == view->searched.incarnation;
    return SPILL_OK;
}

/* One try, with what is left. *done: there is a result. */
static spill_code_t append_candidates(spill_owner_t *owner, const spill_part_t *part,
                                      const candidates_t *candidates, const view_t *view,
                                      spill_append_result_t *result, bool *done,
                                      spill_error_t *error)
{
    *done = candidates->count == 0;
    if (*done) {
        *result = (spill_append_result_t){.op_base = view->op_base};
        return SPILL_OK;
    }
    spill_searched_t searched = view->searched;
    searched.by_store = owner->array->store->ops->checks_ids;
    spill_part_t left = part_of(candidates, part, &searched);
    SPILL_TRY(spill_layout_append(owner, &left, result, error));
    *done = result->count > 0 || result->repeated;
    return SPILL_OK;
}

/*
 * The guard of an append that was searched holds if nothing has changed since. If it does not hold
 * again and again, the store compares ids in another way than this client.
 */
static spill_code_t search_again(const spill_owner_t *owner, const view_t *view, int *tries,
                                 spill_error_t *error)
{
    enum { SAME_MAX = 100 };
    const spill_definition_t *definition = &owner->array->definition;
    if (view->same < SAME_MAX)
        return spill_owner_again(owner, tries, error);
    if (owner->array->store->ops->others_write)
        spill_fail(error, SPILL_CONFLICT,
                   "the server refuses the append, though no document of the owner has one of the "
                   "ids: perhaps collection '%s' has a collation, by which an id equals another; a "
                   "set needs a collection without one",
                   definition->collection);
    else
        spill_fail(error, SPILL_CONFLICT,
                   "the index of ids has an id that no element has: run `spillway verify` and "
                   "`spillway repair`");
    return spill_owner_name(owner, SPILL_CONFLICT, error);
}

spill_code_t spill_unique_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    bool done = false, any = false, still = true;
    int tries = 0;
    view_t view = {0};
    SPILL_SCOPED(candidates_release) candidates_t candidates;
    candidates_init(owner, part, &candidates);
    *result = (spill_append_result_t){0};
    if (owner->array->store->ops->checks_ids)
        SPILL_TRY(append_candidates(owner, part, &candidates, &view, result, &done, error));
    while (!done) {
        still = true;
        SPILL_TRY(search(owner, &candidates, &view, &any, error));
        view.same = any ? 0 : view.same;
        if (any)
            SPILL_TRY(find_earlier_try(owner, part, &view, result, &still, error));
        if (!still) { /* start again with all elements */
            candidates_release(&candidates);
            candidates_init(owner, part, &candidates);
        }
        done = result->repeated;
        if (!done && still)
            SPILL_TRY(append_candidates(owner, part, &candidates, &view, result, &done, error));
        if (!done)
            SPILL_TRY(search_again(owner, &view, &tries, error));
    }
    result->duplicates = (int64_t)part->count - result->count;
    if (result->count == 0)
        result->first = -1;
    result->count = (int64_t)part->count;
    return SPILL_OK;
}

/* ---- before elements are stored without a search --------------------------------------------- */

static spill_code_t refuse_element(const spill_owner_t *owner, const spill_element_t *element,
                                   const char *why, const char *advice, spill_error_t *error)
{
    char *json = spill_value_to_json(&element->value, false);
    spill_fail(error, SPILL_REFUSED, "element %" PRId64 ", %.200s, %s: '%s' keeps each id once; %s",
               element->seq, json ? json : "?", why, owner->array->definition.name, advice);
    bson_free(json);
    return spill_owner_name(owner, SPILL_REFUSED, error);
}

/* Add the element, which must have an id that no earlier one has. */
static spill_code_t add_distinct(const spill_owner_t *owner, const spill_element_t *element,
                                 const char *advice, candidates_t *candidates, spill_error_t *error)
{
    const char *path = owner->array->definition.id_field;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t key = SPILL_BUFFER_INIT;
    if (!spill_element_key(&element->value, path, true, &key))
        return refuse_element(owner, element, "has no id", advice, error);
    return add_candidate(candidates, &element->value, path)
               ? SPILL_OK
               : refuse_element(owner, element, "has the id of an earlier element", advice, error);
}

spill_code_t spill_unique_check_new(spill_owner_t *owner, const spill_element_t *elements,
                                    size_t count, spill_error_t *error)
{
    static const char advice[] = "import with --new-numbers, which leaves it out";
    SPILL_SCOPED(candidates_release) candidates_t candidates = {0};
    view_t view = {0};
    bool still = false;
    int tries = 0;
    if (!owner->array->definition.unique || count == 0)
        return SPILL_OK;
    candidates_reserve(count, &candidates);
    for (size_t i = 0; i < count; i++)
        SPILL_TRY(add_distinct(owner, &elements[i], advice, &candidates, error));
    SPILL_TRY(search_once(owner, &candidates, &view, &still, error));
    while (!still) {
        SPILL_TRY(spill_owner_again(owner, &tries, error));
        SPILL_TRY(search_once(owner, &candidates, &view, &still, error));
    }
    for (size_t i = 0; i < count; i++)
        if (candidates.found[i])
            return refuse_element(owner, &elements[i], "has an id that the array has already",
                                  advice, error);
    return SPILL_OK;
}

spill_code_t spill_unique_check_unmanaged(const spill_owner_t *owner, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(candidates_release) candidates_t ids = {0};
    if (!owner->array->definition.unique)
        return SPILL_OK;
    spill_request_t read = spill_owner_unmanaged_request(owner, INT64_MAX);
    SPILL_TRY(spill_owner_call(owner, &read, &head, error));
    candidates_reserve(head.run.count, &ids);
    for (size_t i = 0; !head.state.present && i < head.run.count; i++) {
        spill_element_t element = spill_run_element(&head.run, i);
        SPILL_TRY(add_distinct(owner, &element, "remove it first", &ids, error));
    }
    return SPILL_OK;
}
