#include "layout/layout.h"

#include "layout/combine.h"

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

spill_code_t spill_layout_append_alone(spill_owner_t *owner, const spill_part_t *part,
                                       spill_append_result_t *result, spill_error_t *error)
{
    *result = (spill_append_result_t){0};
    return ops_of(owner)->append(owner, part, result, error);
}

/* An append to a head that keeps the best is told what it lost, so it is made alone. */
spill_code_t spill_layout_append(spill_owner_t *owner, const spill_part_t *part,
                                 spill_append_result_t *result, spill_error_t *error)
{
    spill_array_t *array = owner->array;
    bool alone = array->combine == NULL || part->update != NULL ||
                 spill_schema_of(&array->definition)->keeps_top_n;
    return alone ? spill_layout_append_alone(owner, part, result, error)
                 : spill_combine_append(array->combine, owner, part, result, error);
}

spill_code_t spill_layout_count(spill_owner_t *owner, spill_count_t *count, spill_error_t *error)
{
    *count = (spill_count_t){0};
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &head, error);
    if (code == SPILL_OK && head.state.present) {
        count->exists = true;
        count->head = head.state.live;
        count->pages = head.state.pages;
        code = ops_of(owner)->count(owner, &head, count, error);
    }
    spill_response_release(&head);
    return code;
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

spill_code_t spill_layout_try_drop(spill_owner_t *owner, const spill_state_t *head, bool *done,
                                   spill_error_t *error)
{
    return ops_of(owner)->drop(owner, head, done, error);
}
