/*
 * The tables of all layouts, the functions that call their operations, and the combination of the
 * appends of several threads.
 */
#include "layout/layout.h"

#include "definition/schema.h"
#include "layout/outlier.h"
#include "layout/referenced.h"
#include "layout/spiller.h"
#include "store/timed.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/queue.h"

#include <assert.h>
#include <string.h>

enum { OLDEST = SPILL_KEEP_OLDEST, NEWEST = SPILL_KEEP_NEWEST, KEEPS };

static const spill_layout_ops_t *tables[SPILL_LAYOUTS_MAX][KEEPS] = {
    [SPILL_LAYOUT_OUTLIER] = {[OLDEST] = &spill_oldest_ops, [NEWEST] = &spill_newest_ops},
    [SPILL_LAYOUT_REFERENCE] = {&spill_referenced_ops, &spill_referenced_ops},
    [SPILL_LAYOUT_BUCKET] = {&spill_oldest_ops, &spill_oldest_ops},
    [SPILL_LAYOUT_CAPPED] = {&spill_capped_ops, &spill_capped_ops},
    [SPILL_LAYOUT_SUBSET] = {&spill_referenced_ops, &spill_referenced_ops},
};

static const spill_layout_ops_t *ops_of(const spill_owner_t *owner)
{
    const spill_definition_t *definition = &owner->array->definition;
    return tables[definition->layout][definition->keep];
}

bool spill_layout_add(const spill_schema_t *schema, const spill_layout_ops_t *ops,
                      spill_layout_t *layout)
{
    if (!spill_schema_add(schema, layout))
        return false;
    tables[*layout][OLDEST] = tables[*layout][NEWEST] = ops;
    return true;
}

void spill_layout_retain(spill_owner_t *owner)
{
    spill_trim_t trim;
    bool excess;
    int64_t watermark;
    spill_error_t error;
    spill_code_t code = spill_retain_find_excess(owner, &trim, &excess, &error);
    if (code == SPILL_OK && excess)
        code = spill_layout_trim(owner, &trim, &watermark, &error);
    if (code != SPILL_OK && code != SPILL_NOT_FOUND)
        spill_store_log(owner->array->store, SPILL_LOG_WARNING, "retention put off: %s",
                        error.message);
}

spill_code_t spill_layout_spill_due(spill_owner_t *owner, spill_response_t *head,
                                    spill_error_t *error)
{
    owner->retain_is_due = false;
    spill_code_t code = spill_newest_spill_due(owner, head, error);
    if (owner->retain_is_due)
        spill_layout_retain(owner);
    return code;
}

/* Retention may be due although the append failed: it may have spilled before. */
static spill_code_t append_alone(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    *result = (spill_append_result_t){0};
    owner->retain_is_due = false;
    spill_code_t code = ops_of(owner)->append(owner, part, result, error);
    if (owner->retain_is_due)
        spill_layout_retain(owner);
    return code;
}

spill_code_t spill_layout_append_many(spill_owner_t *owners, const spill_part_t *parts,
                                      size_t count, spill_append_result_t *results,
                                      spill_error_t *error)
{
    const spill_head_append_t *steps = ops_of(&owners[0])->head_append;
    spill_store_t *store = owners[0].array->store;
    for (size_t i = 0; i < count; i++)
        results[i] = (spill_append_result_t){0};
    if (steps == NULL || store->ops->call_many == NULL)
        return SPILL_OK;
    spill_request_t *requests = bson_malloc(count * sizeof *requests);
    spill_response_t *responses = bson_malloc0(count * sizeof *responses);
    for (size_t i = 0; i < count; i++)
        requests[i] = steps->request(&owners[i], &parts[i]);
    spill_code_t code = spill_store_call_many(store, requests, count, responses, error);
    for (size_t i = 0; i < count; i++) {
        if (code == SPILL_OK && responses[i].outcome == SPILL_DONE) {
            spill_append_done(&parts[i], &responses[i], &results[i]);
            owners[i].retain_is_due = false;
            if (steps->done != NULL)
                steps->done(&owners[i], &requests[i], &responses[i]);
            if (owners[i].retain_is_due)
                spill_layout_retain(&owners[i]);
        }
        spill_response_release(&responses[i]);
    }
    bson_free(requests);
    bson_free(responses);
    return code;
}

spill_code_t spill_layout_make_heads(const spill_owner_t *owners, const spill_part_t *parts,
                                     size_t count, spill_error_t *error)
{
    spill_request_t *requests = bson_malloc(count * sizeof *requests);
    for (size_t i = 0; i < count; i++)
        requests[i] = spill_append_request(&owners[i], SPILL_HEAD, &parts[i]);
    spill_code_t code = spill_store_make_heads(owners->array->store, requests, count, error);
    bson_free(requests);
    return code;
}

bool spill_layout_make_push(const spill_owner_t *owner, const spill_part_t *part, bson_t *filter,
                            bson_t *update)
{
    spill_store_t *store = owner->array->store;
    const spill_head_append_t *steps = ops_of(owner)->head_append;
    if (steps == NULL || store->ops->make_push == NULL ||
        !spill_schema_of(&owner->array->definition)->appends_to_head)
        return false;
    spill_request_t append = steps->request(owner, part);
    return store->ops->make_push(store, &append, filter, update);
}

spill_code_t spill_layout_count(spill_owner_t *owner, spill_count_t *count, spill_error_t *error)
{
    *count = (spill_count_t){0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    count->exists = true;
    count->head = head.state.live;
    count->pages = head.state.pages;
    return ops_of(owner)->count(owner, &head, count, error);
}

spill_code_t spill_layout_edit(spill_owner_t *owner, spill_which_t *which,
                               const spill_value_t *element, spill_error_t *error)
{
    return ops_of(owner)->edit(owner, which, element, error);
}

spill_code_t spill_layout_remove(spill_owner_t *owner, spill_which_t *which, spill_error_t *error)
{
    return ops_of(owner)->remove(owner, which, error);
}

spill_code_t spill_layout_trim(spill_owner_t *owner, const spill_trim_t *trim, int64_t *watermark,
                               spill_error_t *error)
{
    return ops_of(owner)->trim(owner, trim, watermark, error);
}

/* ---- drop ------------------------------------------------------------------------------------ */

/* Drop the incarnation of `head`. A client that began to drop it may have died. */
static spill_code_t drop_incarnation(spill_owner_t *owner, spill_response_t *head,
                                     spill_error_t *error)
{
    int64_t incarnation = head->state.incarnation;
    bool done = false, any = false;
    int tries = 0;
    while (head->state.present && head->state.incarnation == incarnation) {
        SPILL_TRY(ops_of(owner)->drop(owner, &head->state, &done, error));
        if (done)
            return SPILL_OK;
        SPILL_TRY(spill_owner_again(owner, &tries, error));
        SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, head, error));
    }
    return spill_outlier_drop_left_over(owner, incarnation, &any, error);
}

spill_code_t spill_layout_drop(spill_owner_t *owner, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    bool any;
    spill_spiller_await(owner);
    SPILL_TRY(spill_drop_read_head(owner, &head, error));
    if (head.state.present)
        return drop_incarnation(owner, &head, error);
    SPILL_TRY(spill_outlier_finish_drop(owner, &any, error));
    return any ? SPILL_OK : spill_owner_absent(owner, error);
}

/* ---- combined appends ------------------------------------------------------------------------ */

/* The hash of an owner selects its queue. A group has appends to one owner only. */
enum { QUEUES = 256, GATHER_YIELDS = 64, SESSIONS_MAX = 64 };

/* A part with more elements is not combined: their ids are compared with the other parts' ids. */
enum { UNIQUE_MAX = 16 };

typedef struct job {
    spill_waiter_t waiter; /* first */
    spill_owner_t *owner;
    const spill_part_t *part;
    spill_append_result_t *result;
    spill_error_t *error; /* or NULL */
    spill_code_t code;
} job_t;

struct spill_combine {
    spill_queue_t queues[QUEUES];
};

spill_combine_t *spill_combine_new(void)
{
    spill_combine_t *combine = bson_malloc0(sizeof *combine);
    for (size_t i = 0; i < QUEUES; i++)
        spill_queue_init(&combine->queues[i]);
    return combine;
}

void spill_combine_free(spill_combine_t *combine)
{
    for (size_t i = 0; combine != NULL && i < QUEUES; i++)
        spill_queue_release(&combine->queues[i]);
    bson_free(combine);
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* The appends that become one request. */
typedef struct group {
    job_t **jobs;
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
        const spill_part_t *other = group->jobs[i]->part;
        for (size_t k = 0; k < other->count * part->count; k++)
            if (other->ids[k / part->count] == part->ids[k % part->count])
                return true;
    }
    return false;
}

/*
 * Can the job be in one request with the group? Only what a document holds ends a group: its
 * elements, its bytes, and half a window of operations, so that a retry still finds its own.
 */
static bool joins(const group_t *group, const job_t *job)
{
    const job_t *first = group->jobs[0];
    const spill_op_t *op = job->part->op;
    const spill_session_op_t *session = job->part->session;
    const spill_definition_t *definition = &job->owner->array->definition;
    size_t most = op != NULL        ? (size_t)definition->op_window / 2
                  : session != NULL ? SESSIONS_MAX
                                    : SIZE_MAX;
    if (group->count >= most || !spill_buffer_equal(&first->owner->key, &job->owner->key) ||
        !same_kind(first->part, job->part) ||
        !same_search(first->part->searched, job->part->searched) ||
        (job->part->searched != NULL && has_id_of(group, job->part)) ||
        group->bytes + job->part->bytes > definition->bounds.head_bytes_max ||
        !spill_part_fits(job->owner, group->elements + (int64_t)job->part->count,
                         group->bytes + job->part->bytes))
        return false;
    for (size_t i = 0; op != NULL && i < group->count; i++)
        if (same_op(group->jobs[i]->part->op, op))
            return false;
    for (size_t i = 0; session != NULL && i < group->count; i++)
        if (same_session(group->jobs[i]->part->session, session))
            return false;
    return true;
}

/* spill_wanted_fn: the first job, and each one that can be in one request with those before. */
static bool add_job(void *context, spill_waiter_t *waiter)
{
    group_t *group = context;
    job_t *job = (job_t *)waiter;
    if (group->count > 0 && !joins(group, job))
        return false;
    if (group->count == group->capacity) {
        group->capacity = group->capacity < 16 ? 16 : 2 * group->capacity;
        group->jobs = bson_realloc(group->jobs, group->capacity * sizeof(job_t *));
    }
    group->jobs[group->count++] = job;
    group->elements += (int64_t)job->part->count;
    group->bytes += job->part->bytes;
    return true;
}

/* ---- carrying them out ----------------------------------------------------------------------- */

/* Make one part of the jobs [from, end). The caller frees the two arrays. */
static spill_part_t merge(const group_t *group, size_t from, size_t end)
{
    spill_part_t whole = {.member_count = end - from};
    for (size_t i = from; i < end; i++)
        whole.count += group->jobs[i]->part->count;
    spill_value_t *elements = bson_malloc(whole.count * sizeof *elements);
    spill_member_t *members = bson_malloc(whole.member_count * sizeof *members);
    size_t at = 0;
    for (size_t i = from; i < end; i++) {
        const spill_part_t *part = group->jobs[i]->part;
        memcpy(elements + at, part->elements, part->count * sizeof *elements);
        members[i - from] = (spill_member_t){
            .op = part->op, .session = part->session, .count = (int64_t)part->count};
        whole.bytes += part->bytes;
        at += part->count;
    }
    whole.elements = elements;
    whole.members = members;
    whole.match = group->jobs[from]->part->match;
    whole.searched = group->jobs[from]->part->searched;
    return whole;
}

/* The first `all` elements of a batch were dropped: return how many of [from, from + count). */
static int64_t share_of_dropped(int64_t all, int64_t from, int64_t count)
{
    int64_t dropped = all - from;
    return dropped < 0 ? 0 : dropped < count ? dropped : count;
}

/* Give each job its part of the result, or the error. */
static void share(const group_t *group, size_t from, size_t end, spill_code_t code,
                  const spill_append_result_t *result, const spill_error_t *error)
{
    int64_t first = result->first;
    for (size_t i = from; i < end; i++) {
        job_t *job = group->jobs[i];
        int64_t count = (int64_t)job->part->count;
        job->code = code;
        if (code == SPILL_OK && result->count > 0)
            *job->result = (spill_append_result_t){
                .first = first,
                .count = count,
                .op_base = result->op_base,
                .dropped = share_of_dropped(result->dropped, first - result->first, count)};
        else if (code != SPILL_OK && job->error != NULL)
            *job->error = *error;
        first += count;
    }
}

/*
 * Append the jobs as one part. If the store refuses it, append each half: one wrong job must not
 * make the others fail. If the outcome is unknown, all jobs get the error.
 */
static void carry_out(const group_t *group, size_t from, size_t end)
{
    job_t *first = group->jobs[from];
    assert(first != NULL && end > from);
    if (end - from == 1) {
        first->code = append_alone(first->owner, first->part, first->result, first->error);
        return;
    }
    spill_append_result_t result = {0};
    spill_error_t error;
    spill_part_t whole = merge(group, from, end);
    spill_code_t code = append_alone(first->owner, &whole, &result, &error);
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

static void lead(spill_queue_t *queue, job_t *own)
{
    group_t group = {0};
    spill_queue_gather(queue, GATHER_YIELDS);
    spill_waiter_t *waiters = spill_queue_select(queue, add_job, &group);
    pthread_mutex_unlock(&queue->lock);
    carry_out(&group, 0, group.count);
    bson_free(group.jobs);
    pthread_mutex_lock(&queue->lock);
    spill_queue_hand_over(queue, waiters, &own->waiter);
}

/* Append a part together with the parts of other threads for the same owner. */
static spill_code_t append_together(spill_owner_t *owner, const spill_part_t *part,
                                    spill_append_result_t *result, spill_error_t *error)
{
    spill_combine_t *combine = owner->array->combine;
    spill_queue_t *queue = &combine->queues[spill_hash(owner->key.data, owner->key.size) % QUEUES];
    job_t job = {.owner = owner, .part = part, .result = result, .error = error};
    if (spill_queue_join(queue, &job.waiter, 0))
        lead(queue, &job);
    return job.code;
}

/*
 * Do not combine an append that has an update or a match with conditions, or an append to a head
 * that keeps the top-N: its result has the elements that were dropped. Do not combine an append
 * with a deadline: it must not wait for another thread's command.
 */
spill_code_t spill_layout_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    const spill_array_t *array = owner->array;
    bool alone = array->combine == NULL || spill_timed_is_set() || part->update != NULL ||
                 (part->match != NULL && !bson_empty(part->match)) ||
                 (part->searched != NULL && part->count > UNIQUE_MAX) ||
                 spill_schema_of(&array->definition)->keeps_top_n;
    return alone ? append_alone(owner, part, result, error)
                 : append_together(owner, part, result, error);
}
