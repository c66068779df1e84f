/* Views under the old names, for programs that continue to read by these. */
#include "tools/consolidate/run.h"

#include "util/error.h"

#include <string.h>

/*
 * [{$match: {room: "a"}}, {$set: {_id: {$ifNull: ["$_id.id", "$_id"]}}}, {$unset: "room"}]. An _id
 * that the application has chosen in the joint collection stays.
 */
void spill_consolidate_view_pipeline(const spill_consolidation_t *group, size_t member,
                                     bson_t *pipeline)
{
    bson_t match = BSON_INITIALIZER;
    spill_value_append(&group->members[member].value, &match, group->field);
    bson_init(pipeline);
    BCON_APPEND(pipeline, "0", "{", "$match", BCON_DOCUMENT(&match), "}");
    if (group->keeps_ids)
        BCON_APPEND(pipeline, "1", "{", "$unset", BCON_UTF8(group->field), "}");
    else
        BCON_APPEND(pipeline, "1", "{", "$set", "{", "_id", "{", "$ifNull", "[",
                    BCON_UTF8("$_id.id"), BCON_UTF8("$_id"), "]", "}", "}", "}", "2", "{", "$unset",
                    BCON_UTF8(group->field), "}");
    bson_destroy(&match);
}

/* Check in the listing that it is a view on the joint collection with this pipeline. */
static bool is_view(const spill_consolidate_run_t *run, const char *name, const bson_t *pipeline)
{
    bson_t options;
    bson_iter_t on, steps;
    if (spill_consolidate_kind_of(run, name, &options) != SPILL_CONSOLIDATE_VIEW)
        return false;
    if (!bson_iter_init_find(&on, &options, "viewOn") || !BSON_ITER_HOLDS_UTF8(&on) ||
        strcmp(bson_iter_utf8(&on, NULL), run->group->into) != 0)
        return false;
    if (!bson_iter_init_find(&steps, &options, "pipeline") || !BSON_ITER_HOLDS_ARRAY(&steps))
        return false;
    spill_value_t value = spill_value_from_iter(&steps);
    return value.size_bytes == pipeline->len &&
           memcmp(value.data, bson_get_data(pipeline), pipeline->len) == 0;
}

static void free_name(char **name)
{
    bson_free(*name);
}

spill_code_t spill_consolidate_try_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    SPILL_SCOPED(free_name) char *name = bson_strdup_printf("spillway_view_%s", run->group->into);
    spill_consolidate_view_pipeline(run->group, 0, &pipeline);
    SPILL_TRY(spill_consolidate_list(run, error));
    /* left by a killed run */
    if (spill_consolidate_kind_of(run, name, NULL) != SPILL_CONSOLIDATE_ABSENT)
        SPILL_TRY(spill_consolidate_drop(run, name, error));
    SPILL_TRY(spill_consolidate_create_view(run, name, &pipeline, error));
    SPILL_TRY(spill_consolidate_list(run, error));
    bool made = is_view(run, name, &pipeline);
    SPILL_TRY(spill_consolidate_drop(run, name, error));
    if (made)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "%s: the server creates no views, although it accepts the command; "
                      "nothing was changed: continue without --views",
                      run->admin->place);
}

/* Check in the listing that the member's view is there. */
static bool has_view(const spill_consolidate_run_t *run, size_t member)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    spill_consolidate_view_pipeline(run->group, member, &pipeline);
    return is_view(run, run->group->members[member].collection, &pipeline);
}

spill_code_t spill_consolidate_make_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    if (has_view(run, member))
        return SPILL_OK;
    spill_consolidate_view_pipeline(run->group, member, &pipeline);
    return spill_consolidate_create_view(run, run->group->members[member].collection, &pipeline,
                                         error);
}

static spill_code_t check_view(const spill_consolidate_run_t *run, size_t member,
                               spill_error_t *error)
{
    return has_view(run, member)
               ? SPILL_OK
               : spill_fail(error, SPILL_REFUSED,
                            "'%s' is not the view on '%s' that it should be: something else was "
                            "created under its name",
                            run->group->members[member].collection, run->group->into);
}

spill_code_t spill_consolidate_make_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(spill_consolidate_make_view(run, i, error));
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(check_view(run, i, error));
    return SPILL_OK;
}

spill_code_t spill_consolidate_drop_view(spill_consolidate_run_t *run, size_t member,
                                         spill_error_t *error)
{
    return has_view(run, member)
               ? spill_consolidate_drop(run, run->group->members[member].collection, error)
               : SPILL_OK;
}

spill_code_t spill_consolidate_drop_views(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++)
        SPILL_TRY(spill_consolidate_drop_view(run, i, error));
    return SPILL_OK;
}
