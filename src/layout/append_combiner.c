/* Appends of several threads to one owner, as one request. */
#include "layout/append_combiner.h"
#include "layout/append.h"

#include "layout/layout.h"
#include "util/buffer.h"
#include "util/queue.h"

#include <assert.h>
#include <string.h>

/* The hash of an owner selects its queue. A group has appends to one owner only. */
enum { QUEUES = 256, GATHER_YIELDS = 64, SESSIONS_MAX = 64 };

/* An append that a thread waits for. */
typedef struct waiting_append {
    spill_waiter_t waiter; /* first */
    spill_owner_t *owner;
    const spill_part_t *part;
    spill_append_result_t *result;
    spill_error_t *error; /* or NULL */
    spill_code_t code;
} waiting_append_t;

struct spill_append_combiner {
    spill_queue_t queues[QUEUES];
};

spill_append_combiner_t *spill_append_combiner_new(void)
{
    spill_append_combiner_t *combiner = bson_malloc0(sizeof *combiner);
    for (size_t i = 0; i < QUEUES; i++)
        spill_queue_init(&combiner->queues[i]);
    return combiner;
}

void spill_append_combiner_free(spill_append_combiner_t *combiner)
{
    for (size_t i = 0; combiner != NULL && i < QUEUES; i++)
        spill_queue_release(&combiner->queues[i]);
    bson_free(combiner);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The appends that become one request. */
typedef struct group {
    waiting_append_t **appends;
    size_t count, capacity;
    int64_t elements;
    int64_t bytes;
} group_t;

static bool same_op(const spill_op_t *left, const spill_op_t *right)
{
    return left->id_bytes == right->id_bytes && memcmp(left->id, right->id, left->id_bytes) == 0;
}

static bool same_session(const spill_session_op_t *left, const spill_session_op_t *right)
{
    uint8_t keys[2][SPILL_SESSION_KEY_BYTES];
    spill_session_key(left, keys[0]);
    spill_session_key(right, keys[1]);
    return memcmp(keys[0], keys[1], SPILL_SESSION_KEY_BYTES) == 0;
}

/* Do both have an operation of the same kind, or none, and the same (empty) match, or none? */
static bool same_kind(const spill_part_t *left, const spill_part_t *right)
{
    return (left->op != NULL) == (right->op != NULL) &&
           (left->session != NULL) == (right->session != NULL) &&
           (left->match != NULL) == (right->match != NULL);
}

/* Do both have searched the same pages, or do both not care? */
static bool same_search(const spill_searched_t *left, const spill_searched_t *right)
{
    if (left == NULL || right == NULL)
        return left == right;
    return left->incarnation == right->incarnation && left->pages == right->pages;
}

/* Has an element of the group an id of the part? (Two ids may have one hash.) */
static bool has_id_of(const group_t *group, const spill_part_t *part)
{
    for (size_t i = 0; i < group->count; i++) {
        const spill_part_t *other = group->appends[i]->part;
        for (size_t k = 0; k < other->count * part->count; k++)
            if (other->ids[k / part->count] == part->ids[k % part->count])
                return true;
    }
    return false;
}

/*
 * Can the append be in one request with the group? Only what a document holds ends a group: its
 * elements, its bytes, and half a window of operations, so that a retry still finds its own.
 */
static bool joins(const group_t *group, const waiting_append_t *append)
{
    const waiting_append_t *first = group->appends[0];
    const spill_op_t *op = append->part->op;
    const spill_session_op_t *session = append->part->session;
    const spill_definition_t *definition = &append->owner->array->definition;
    size_t most = op != NULL        ? (size_t)definition->op_window / 2
                  : session != NULL ? SESSIONS_MAX
                                    : SIZE_MAX;
    if (group->count >= most || !spill_buffer_equal(&first->owner->key, &append->owner->key) ||
        !same_kind(first->part, append->part) ||
        !same_search(first->part->searched, append->part->searched) ||
        (append->part->searched != NULL && has_id_of(group, append->part)) ||
        group->bytes + append->part->bytes > definition->bounds.head_bytes_max ||
        !spill_part_fits(append->owner, group->elements + (int64_t)append->part->count,
                         group->bytes + append->part->bytes))
        return false;
    for (size_t i = 0; op != NULL && i < group->count; i++)
        if (same_op(group->appends[i]->part->op, op))
            return false;
    for (size_t i = 0; session != NULL && i < group->count; i++)
        if (same_session(group->appends[i]->part->session, session))
            return false;
    return true;
}

/* spill_wanted_fn: the first append, and each one that can be in one request with those before. */
static bool add_append(void *context, spill_waiter_t *waiter)
{
    group_t *group = context;
    waiting_append_t *append = (waiting_append_t *)waiter;
    if (group->count > 0 && !joins(group, append))
        return false;
    if (group->count == group->capacity) {
        group->capacity = group->capacity < 16 ? 16 : 2 * group->capacity;
        group->appends = bson_realloc(group->appends, group->capacity * sizeof(waiting_append_t *));
    }
    group->appends[group->count++] = append;
    group->elements += (int64_t)append->part->count;
    group->bytes += append->part->bytes;
    return true;
}

/* ---- carrying them out ----------------------------------------------------------------------- */

/* Make one part of the appends [from, end). The caller frees the two arrays. */
static spill_part_t merge(const group_t *group, size_t from, size_t end)
{
    spill_part_t whole = {.member_count = end - from};
    for (size_t i = from; i < end; i++)
        whole.count += group->appends[i]->part->count;
    spill_value_t *elements = bson_malloc(whole.count * sizeof *elements);
    spill_member_t *members = bson_malloc(whole.member_count * sizeof *members);
    size_t at = 0;
    for (size_t i = from; i < end; i++) {
        const spill_part_t *part = group->appends[i]->part;
        memcpy(elements + at, part->elements, part->count * sizeof *elements);
        members[i - from] = (spill_member_t){
            .op = part->op, .session = part->session, .count = (int64_t)part->count};
        whole.bytes += part->bytes;
        at += part->count;
    }
    whole.elements = elements;
    whole.members = members;
    whole.match = group->appends[from]->part->match;
    whole.searched = group->appends[from]->part->searched;
    return whole;
}

/* The first `all` elements of a batch were dropped: return how many of [from, from + count). */
static int64_t share_of_dropped(int64_t all, int64_t from, int64_t count)
{
    int64_t dropped = all - from;
    return dropped < 0 ? 0 : dropped < count ? dropped : count;
}

/* Give each append its part of the result, or the error. */
static void share(const group_t *group, size_t from, size_t end, spill_code_t code,
                  const spill_append_result_t *result, const spill_error_t *error)
{
    int64_t first = result->first;
    for (size_t i = from; i < end; i++) {
        waiting_append_t *append = group->appends[i];
        int64_t count = (int64_t)append->part->count;
        append->code = code;
        if (code == SPILL_OK && result->count > 0)
            *append->result = (spill_append_result_t){
                .first = first,
                .count = count,
                .op_base = result->op_base,
                .dropped = share_of_dropped(result->dropped, first - result->first, count)};
        else if (code != SPILL_OK && append->error != NULL)
            *append->error = *error;
        first += count;
    }
}

/*
 * Append the appends as one part. If the store refuses it, append each half: one wrong append must
 * not make the others fail. If the outcome is unknown, all appends get the error.
 */
static void carry_out(const group_t *group, size_t from, size_t end)
{
    waiting_append_t *first = group->appends[from];
    assert(first != NULL && end > from);
    if (end - from == 1) {
        first->code =
            spill_layout_append_alone(first->owner, first->part, first->result, first->error);
        return;
    }
    spill_append_result_t result = {0};
    spill_error_t error;
    spill_part_t whole = merge(group, from, end);
    spill_code_t code = spill_layout_append_alone(first->owner, &whole, &result, &error);
    bson_free((void *)whole.elements);
    bson_free((void *)whole.members);
    bool searches_again = code == SPILL_OK && whole.searched != NULL; /* each of them */
    if (code == SPILL_UNKNOWN || code == SPILL_IO || searches_again ||
        (code == SPILL_OK && result.count > 0)) {
        share(group, from, end, code, &result, &error);
        return;
    }
    size_t middle = from + (end - from) / 2;
    carry_out(group, from, middle);
    carry_out(group, middle, end);
}

static void lead(spill_queue_t *queue, waiting_append_t *own)
{
    group_t group = {0};
    spill_queue_gather(queue, GATHER_YIELDS);
    spill_waiter_t *waiters = spill_queue_select(queue, add_append, &group);
    pthread_mutex_unlock(&queue->lock);
    carry_out(&group, 0, group.count);
    bson_free(group.appends);
    pthread_mutex_lock(&queue->lock);
    spill_queue_hand_over(queue, waiters, &own->waiter);
}

spill_code_t spill_append_combined(spill_owner_t *owner, const spill_part_t *part,
                                   spill_append_result_t *result, spill_error_t *error)
{
    spill_append_combiner_t *combiner = owner->array->combiner;
    spill_queue_t *queue = &combiner->queues[spill_hash(owner->key.data, owner->key.size) % QUEUES];
    waiting_append_t append = {.owner = owner, .part = part, .result = result, .error = error};
    if (spill_queue_join(queue, &append.waiter, 0))
        lead(queue, &append);
    return append.code;
}
