#include "tools/copy_owner.h"

#include "core/array.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "definition/window.h"
#include "util/error.h"

#include <string.h>

spill_code_t spill_copy_failed(const spill_copy_side_t *side, spill_code_t code,
                               spill_error_t *error)
{
    return code == SPILL_OK ? code : spill_fail_prefix(error, code, "%s", side->name);
}

void spill_copy_differs(spill_copy_owner_t *owner, int64_t seq, const char *text)
{
    if (owner->difference.count == 0) {
        owner->difference.seq = seq;
        owner->difference.text = text;
    }
    owner->difference.count++;
}

void spill_copy_differs_ahead(spill_copy_owner_t *owner, int64_t seq, const char *text)
{
    spill_copy_differs(owner, seq, text);
    owner->difference.ahead = true;
}

void spill_copy_progress(const spill_copy_t *copy)
{
    if (copy->options->progress)
        copy->options->progress(copy->options->context, copy->result);
}

spill_code_t spill_copy_check_dropped(spill_copy_owner_t *owner, const spill_owner_t *target,
                                      spill_error_t *error)
{
    bool begun;
    spill_code_t code = spill_outlier_drop_has_begun(target, &begun, error);
    if (code == SPILL_OK && begun)
        spill_copy_differs(owner, -1, "in the target an unfinished drop has begun to delete it");
    return spill_copy_failed(&owner->copy->target, code, error);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* Copy what is missing, then compare. Copy fields first: they count towards the head's bytes. */
static spill_code_t copy_and_compare(spill_copy_owner_t *owner, spill_error_t *error)
{
    spill_code_t looked = spill_copy_check_dropped(owner, &owner->target, error);
    if (looked != SPILL_OK || owner->difference.count > 0)
        return looked;
    const spill_copy_t *copy = owner->copy;
    spill_copy_result_t *result = copy->result;
    int64_t copied = result->elements;
    bool fields_go = !copy->joins_windows && !copy->options->building;
    spill_code_t code = fields_go ? spill_copy_fields(owner, error) : SPILL_OK;
    int64_t fields = owner->difference.count;
    owner->difference.count = 0; /* copy the elements even if a field cannot be set */
    if (code == SPILL_OK)
        code = spill_copy_elements(owner, error);
    result->before += owner->live - (result->elements - copied);
    bool ahead = owner->next > owner->end;
    bool compares = code == SPILL_OK && !copy->options->unverified;
    int64_t from = 0;
    if (compares) {
        owner->difference.count = 0;
        owner->difference.ahead = false;
        owner->hash = 0;
    }
    if (code == SPILL_OK && spill_copy_is_capped(copy))
        code = spill_copy_cap_check(owner, &from, error);
    if (code == SPILL_OK && spill_copy_keeps_top_n(copy))
        code = spill_copy_count_top_n(owner, error);
    if (from < owner->begin)
        from = owner->begin;
    if (code == SPILL_OK && compares)
        code = spill_copy_compare(owner, from, ahead ? owner->next : owner->end, &result->verified,
                                  error);
    if (code == SPILL_OK && ahead)
        spill_copy_differs_ahead(owner, owner->end,
                                 "the target has used more numbers than the source");
    owner->difference.count += fields;
    return code;
}

/* Report whether the previous call had the same owner: the windows of an owner are consecutive. */
static bool is_counted(spill_copy_t *copy, const spill_value_t *owner)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, &copy->last, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(owner, &last))
            return true;
    }
    bson_reinit(&copy->last);
    spill_value_append(owner, &copy->last, "");
    copy->last_differs = false;
    copy->last_ahead = false;
    return false;
}

static void report_difference(spill_copy_t *copy, const spill_copy_difference_t *found)
{
    const spill_copy_options_t *options = copy->options;
    spill_copy_difference_t difference = *found;
    spill_value_t owner;
    bool window = !copy->joins_windows &&
                  spill_schema_of(spill_array_get_definition(copy->source.array))->has_windows &&
                  spill_window_split(difference.owner, &owner, &difference.window);
    if (window)
        difference.owner = &owner;
    copy->result->windows += window;
    copy->result->owners += !is_counted(copy, difference.owner);
    if (difference.count > 0) {
        copy->result->differences += !copy->last_differs;
        copy->result->ahead += difference.ahead && !copy->last_ahead;
        copy->last_ahead = copy->last_ahead || difference.ahead;
        copy->last_differs = true;
        if (options->differs)
            options->differs(options->context, &difference);
    }
    spill_copy_progress(copy);
}

/* An owner that stands for several windows is not one document: it needs no key. */
static spill_code_t init_side(spill_owner_t *owner, spill_array_t *array, bool windows,
                              const spill_value_t *value, spill_error_t *error)
{
    *owner = (spill_owner_t){.array = array, .value = value, .key = SPILL_BUFFER_INIT};
    return windows ? SPILL_OK : spill_owner_init(owner, array, value, error);
}

spill_code_t spill_copy_one(spill_copy_t *copy, const spill_value_t *value, spill_copied_t *copied,
                            spill_error_t *error)
{
    spill_copy_owner_t owner = {.copy = copy};
    owner.difference.definition = spill_array_get_definition(copy->source.array)->name;
    owner.difference.owner = value;
    spill_code_t code =
        init_side(&owner.source, copy->source.array, copy->joins_windows, value, error);
    if (code == SPILL_OK)
        code = init_side(&owner.target, copy->target.array, copy->makes_windows, value, error);
    if (code == SPILL_OK)
        code = copy->makes_windows ? spill_copy_to_windows(&owner, error)
                                   : copy_and_compare(&owner, error);
    *copied =
        (spill_copied_t){.difference = owner.difference, .elements = owner.has, .hash = owner.hash};
    spill_owner_release(&owner.source);
    spill_owner_release(&owner.target);
    return code;
}

static spill_code_t copy_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    spill_copied_t copied;
    spill_code_t code = spill_copy_one(context, value, &copied, error);
    if (code == SPILL_OK)
        report_difference(context, &copied.difference);
    return code;
}

/* ---- the definition -------------------------------------------------------------------------- */

static void set_bound(int64_t given, int64_t *bound)
{
    if (given > 0)
        *bound = given;
}

void spill_copy_set_bounds(const spill_bounds_t *bounds, spill_definition_t *definition)
{
    set_bound(bounds->threshold, &definition->bounds.threshold);
    set_bound(bounds->page_capacity, &definition->bounds.page_capacity);
    set_bound(bounds->head_bytes_max, &definition->bounds.head_bytes_max);
    if (spill_schema_of(definition)->has_pages)
        set_bound(bounds->head_bytes_max, &definition->bounds.page_bytes_max);
    set_bound(bounds->page_bytes_max, &definition->bounds.page_bytes_max);
    if (spill_schema_of(definition)->has_windows && bounds->threshold == 0)
        set_bound(bounds->page_capacity, &definition->bounds.threshold); /* equal documents */
    if (spill_schema_of(definition)->has_windows && bounds->page_capacity == 0)
        set_bound(bounds->threshold, &definition->bounds.page_capacity);
}

/* Make the definition for the target. */
static spill_code_t make_definition(const spill_copy_t *copy, const spill_definition_t *source,
                                    spill_definition_t *definition, spill_error_t *error)
{
    const char *as = copy->options->as;
    spill_code_t code =
        spill_store_definition(copy->target.store, as ? as : source->name, definition, error);
    if (code == SPILL_OK && !as) {
        code = spill_definition_compatible(definition, source, error);
    } else if (code == SPILL_NOT_FOUND && !as) {
        *definition = *source;
        code = SPILL_OK;
    }
    spill_copy_set_bounds(&copy->options->bounds, definition);
    return code;
}

/* If source and target have the same windows, each window is copied as an owner. */
static void compare_windows(spill_copy_t *copy, const spill_definition_t *source,
                            const spill_definition_t *target)
{
    bool same = source->layout == target->layout && source->window == target->window &&
                strcmp(source->window_source, target->window_source) == 0 &&
                strcmp(source->time_field, target->time_field) == 0;
    copy->joins_windows = spill_schema_of(source)->has_windows && !same;
    copy->makes_windows = spill_schema_of(target)->has_windows && !same;
    copy->drops_windows = copy->joins_windows && copy->options->dropping;
}

static spill_code_t define_target(spill_copy_t *copy, const char *name, spill_error_t *error)
{
    spill_definition_t source, definition;
    spill_code_t code = spill_store_definition(copy->source.store, name, &source, error);
    if (code != SPILL_OK)
        return spill_copy_failed(&copy->source, code, error);
    code = make_definition(copy, &source, &definition, error);
    compare_windows(copy, &source, &definition);
    if (code == SPILL_OK)
        code = spill_store_define(copy->target.store, &definition, error);
    return spill_copy_failed(&copy->target, code, error);
}

/* A copy of a definition onto itself would append each owner's elements to it without end. */
static spill_code_t refuse_itself(const spill_copy_t *copy, const char *name, spill_error_t *error)
{
    const char *as = copy->options->as;
    bool same;
    if (as && strcmp(as, name) != 0)
        return SPILL_OK;
    spill_code_t code = spill_store_same(copy->source.store, copy->target.store, &same, error);
    if (code == SPILL_OK && same)
        code = spill_fail(error, SPILL_INVALID, "source and target are the same store");
    return code;
}

static spill_code_t open_side(spill_copy_side_t *side, const char *name, spill_error_t *error)
{
    spill_code_t code = spill_array_open(side->store, name, &side->array, error);
    if (code == SPILL_OK)
        side->array->retains = false; /* later appends trim; a copy must compare everything */
    if (code == SPILL_OK)
        code = spill_store_definitions(side->store, &side->definitions, &side->definition_count,
                                       error);
    return spill_copy_failed(side, code, error);
}

static void close_side(spill_copy_side_t *side)
{
    spill_array_close(side->array);
    bson_free(side->definitions);
}

spill_code_t spill_copy_begin(spill_copy_t *copy, const char *name, spill_error_t *error)
{
    const char *as = copy->options->as;
    spill_code_t code = refuse_itself(copy, name, error);
    if (code == SPILL_OK)
        code = define_target(copy, name, error);
    if (code == SPILL_OK)
        code = open_side(&copy->source, name, error);
    if (code == SPILL_OK)
        code = open_side(&copy->target, as ? as : name, error);
    if (code == SPILL_OK && copy->options->building) {
        spill_array_t *target = copy->target.array;
        target->building = false;
        target->documents_stay =
            strcmp(target->definition.collection, copy->source.array->definition.collection) == 0;
    }
    return code;
}

void spill_copy_end(spill_copy_t *copy)
{
    close_side(&copy->source);
    close_side(&copy->target);
    bson_destroy(&copy->last);
}

spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error)
{
    spill_copy_t copy = {.source = {.name = "source", .store = source},
                         .target = {.name = "target", .store = target},
                         .options = options,
                         .result = result,
                         .last = BSON_INITIALIZER};
    spill_code_t code = spill_copy_begin(&copy, name, error);
    if (code == SPILL_OK)
        code = (copy.joins_windows ? spill_each_bucket_owner : spill_each_owner)(
            copy.source.array, copy_owner, &copy, true, error);
    spill_copy_end(&copy);
    return code;
}
