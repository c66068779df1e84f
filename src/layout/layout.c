/* The tables of all layouts, and the functions that call their operations. */
#include "layout/layout.h"

#include "definition/schema.h"
#include "layout/append.h"
#include "layout/append_combiner.h"
#include "layout/drop.h"
#include "layout/locate.h"
#include "layout/newest.h"
#include "layout/referenced.h"
#include "layout/spiller.h"
#include "layout/trim.h"
#include "store/timed.h"
#include "util/error.h"

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
spill_code_t spill_layout_append_alone(spill_owner_t *owner, const spill_part_t *part,
                                       spill_append_result_t *result, spill_error_t *error)
{
    *result = (spill_append_result_t){0};
    owner->retain_is_due = false;
    spill_code_t code = ops_of(owner)->append(owner, part, result, error);
    if (owner->retain_is_due)
        spill_layout_retain(owner);
    return code;
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
    bool alone = array->combiner == NULL || spill_timed_is_set() || part->update != NULL ||
                 (part->match != NULL && !bson_empty(part->match)) ||
                 (part->searched != NULL && part->count > SPILL_COMBINED_IDS_MAX) ||
                 spill_schema_of(&array->definition)->keeps_top_n;
    return alone ? spill_layout_append_alone(owner, part, result, error)
                 : spill_append_combined(owner, part, result, error);
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
