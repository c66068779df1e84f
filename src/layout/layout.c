/* The table of layouts, the functions that call its operations, and the loop of a drop. */
#include "layout/layout.h"

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

/* Also after an error: a spill may have been made for the append that then failed. */
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

/* Drop the incarnation whose head was read. Another client may have begun, and died since. */
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
    SPILL_TRY(spill_drop_read_head(owner, &head, error));
    if (head.state.present)
        return drop_incarnation(owner, &head, error);
    SPILL_TRY(spill_outlier_finish_drop(owner, &any, error));
    return any ? SPILL_OK : spill_owner_absent(owner, error);
}
