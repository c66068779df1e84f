/* Transfer the owners of a definition: begin, one owner after another, end; and copy all owners. */
#include "tools/transfer/transfer_group.h"
#include "tools/transfer/transfer_parts.h"

#include "core/array.h"
#include "definition/schema.h"
#include "util/error.h"

#include <string.h>

/* ---- the target's bounds --------------------------------------------------------------------- */

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

/* ---- both sides ------------------------------------------------------------------------------ */

/* A transfer of a definition onto itself would append each owner's elements to it without end. */
static spill_code_t refuse_same_store(const spill_transfer_t *transfer, const char *name,
                                      spill_error_t *error)
{
    const char *as = transfer->options->as;
    bool same;
    if (as && strcmp(as, name) != 0)
        return SPILL_OK;
    SPILL_TRY(spill_store_same(transfer->source.store, transfer->target.store, &same, error));
    return same ? spill_fail(error, SPILL_INVALID, "source and target are the same store")
                : SPILL_OK;
}

/* Make the definition for the target. */
static spill_code_t make_definition(const spill_transfer_t *transfer,
                                    const spill_definition_t *source,
                                    spill_definition_t *definition, spill_error_t *error)
{
    const char *as = transfer->options->as;
    spill_code_t code =
        spill_store_definition(transfer->target.store, as ? as : source->name, definition, error);
    if (code == SPILL_NOT_FOUND && !as)
        *definition = *source;
    else if (code == SPILL_NOT_FOUND && transfer->options->definition)
        *definition = *transfer->options->definition;
    else if (code != SPILL_OK)
        return code;
    else if (!as)
        SPILL_TRY(spill_definition_compatible(definition, source, error));
    spill_copy_set_bounds(&transfer->options->bounds, definition);
    return SPILL_OK;
}

/* If source and target have the same windows, each window is copied as an owner. */
static void compare_windows(spill_transfer_t *transfer, const spill_definition_t *source,
                            const spill_definition_t *target)
{
    bool same = source->layout == target->layout && source->window == target->window &&
                strcmp(source->window_source, target->window_source) == 0 &&
                strcmp(source->time_field, target->time_field) == 0;
    transfer->joins_windows = spill_schema_of(source)->has_windows && !same;
    transfer->makes_windows = spill_schema_of(target)->has_windows && !same;
    transfer->drops_windows = transfer->joins_windows && transfer->options->dropping;
}

/*
 * Elements are copied as they are. So a target that keeps each id once needs a source that does, by
 * the same ids.
 */
static spill_code_t check_ids(const spill_definition_t *source, const spill_definition_t *target,
                              spill_error_t *error)
{
    bool same = source->unique && strcmp(source->id_field, target->id_field) == 0;
    if (!target->unique || same)
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' keeps each id once, and the elements of '%s' may have an id twice: "
                      "append them instead, which leaves out duplicates",
                      target->name, source->name);
}

/* Make the definition for the target, and compare it with the source's. Change nothing. */
static spill_code_t plan_target(spill_transfer_t *transfer, const char *name,
                                spill_definition_t *definition, spill_error_t *error)
{
    spill_definition_t source;
    if (!transfer->is_checked)
        SPILL_TRY(refuse_same_store(transfer, name, error));
    SPILL_TRY(spill_transfer_failed(
        &transfer->source, spill_store_definition(transfer->source.store, name, &source, error),
        error));
    SPILL_TRY(spill_transfer_failed(&transfer->target,
                                    make_definition(transfer, &source, definition, error), error));
    compare_windows(transfer, &source, definition);
    return check_ids(&source, definition, error);
}

static spill_code_t define_target(spill_transfer_t *transfer, const char *name,
                                  spill_error_t *error)
{
    spill_definition_t definition;
    const spill_transfer_side_t *target = &transfer->target;
    SPILL_TRY(plan_target(transfer, name, &definition, error));
    return spill_transfer_failed(target, spill_store_define(target->store, &definition, error),
                                 error);
}

static spill_code_t open_side(spill_transfer_side_t *side, const char *name, spill_error_t *error)
{
    SPILL_TRY(spill_transfer_failed(side, spill_array_open(side->store, name, &side->array, error),
                                    error));
    side->array->retains = false; /* later appends trim; a transfer must compare everything */
    spill_code_t code =
        spill_store_definitions(side->store, &side->definitions, &side->definition_count, error);
    return spill_transfer_failed(side, code, error);
}

static void close_side(spill_transfer_side_t *side)
{
    spill_array_close(side->array);
    bson_free(side->definitions);
}

spill_code_t spill_transfer_begin(spill_transfer_t *transfer, const char *name,
                                  spill_error_t *error)
{
    const char *as = transfer->options->as;
    SPILL_TRY(define_target(transfer, name, error));
    SPILL_TRY(open_side(&transfer->source, name, error));
    SPILL_TRY(open_side(&transfer->target, as ? as : name, error));
    if (!transfer->options->building)
        return SPILL_OK;
    spill_array_t *target = transfer->target.array;
    target->building = false;
    target->documents_stay =
        strcmp(target->definition.collection, transfer->source.array->definition.collection) == 0;
    return SPILL_OK;
}

void spill_transfer_end(spill_transfer_t *transfer)
{
    close_side(&transfer->source);
    close_side(&transfer->target);
}

/* ---- one owner ------------------------------------------------------------------------------- */

/* An owner that stands for several windows is not one document: it needs no key. */
static spill_code_t init_side(spill_owner_t *owner, spill_array_t *array, bool windows,
                              const spill_value_t *value, spill_error_t *error)
{
    *owner = (spill_owner_t){.array = array, .value = value, .key = SPILL_BUFFER_INIT};
    return windows ? SPILL_OK : spill_owner_init(owner, array, value, error);
}

static spill_code_t check_window(void *context, const spill_value_t *name, const char *window,
                                 bool last, bool *stop, spill_error_t *error)
{
    (void)window;
    (void)last;
    (void)stop;
    int64_t elements;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, context, name, error));
    return spill_readable_walk(&own, NULL, NULL, &elements, error);
}

/*
 * Source opened with `partial`: are all elements of the owner readable? A reader may take a lost
 * element for a removed one.
 */
static spill_code_t check_source(const spill_transfer_t *transfer, const spill_value_t *value,
                                 spill_error_t *error)
{
    const spill_window_range_t all = {.from = NULL};
    bool stop;
    spill_array_t *source = transfer->source.array;
    if (!source->store->options.partial)
        return SPILL_OK;
    return transfer->joins_windows
               ? spill_each_window(source, value, &all, check_window, source, error)
               : check_window(source, value, NULL, true, &stop, error);
}

static void release_owner(spill_transfer_owner_t *owner)
{
    spill_transfer_keep_release(owner);
    spill_owner_release(&owner->source);
    spill_owner_release(&owner->target);
}

static spill_code_t init_owner(spill_transfer_owner_t *owner, const spill_value_t *value,
                               spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    SPILL_TRY(check_source(transfer, value, error));
    SPILL_TRY(
        init_side(&owner->source, transfer->source.array, transfer->joins_windows, value, error));
    return init_side(&owner->target, transfer->target.array, transfer->makes_windows, value, error);
}

static spill_code_t transfer_owner(spill_transfer_owner_t *owner, const spill_value_t *value,
                                   spill_error_t *error)
{
    const spill_transfer_t *transfer = owner->transfer;
    SPILL_TRY(init_owner(owner, value, error));
    return transfer->makes_windows ? spill_transfer_to_windows(owner, error)
                                   : spill_transfer_to_array(owner, error);
}

spill_code_t spill_transfer_one(const spill_transfer_t *transfer, const spill_value_t *value,
                                spill_transferred_t *transferred, spill_error_t *error)
{
    spill_transfer_owner_t owner = {.transfer = transfer};
    owner.difference.definition = spill_transfer_source(transfer)->name;
    owner.difference.owner = value;
    spill_code_t code = transfer_owner(&owner, value, error);
    *transferred = (spill_transferred_t){
        .difference = owner.difference, .elements = owner.has, .hash = owner.hash};
    release_owner(&owner);
    return code;
}

/* ---- all owners, in groups ------------------------------------------------------------------- */

/* A walk over all owners of the source. If windows are joined, it lists windows. */
typedef struct spill_group_walk {
    const spill_transfer_t *transfer;
    spill_transfer_group_t *group;
    bool checks;  /* it is the check before a copy */
    bool unsaved; /* ... and the target is not defined yet */
    /* `done`: the group has done the owner. */
    spill_code_t (*call)(void *context, const spill_value_t *owner, const spill_transferred_t *done,
                         spill_error_t *error);
    void *context;
    bool failed; /* not in the listing: in the group, or in `call` */
    size_t at;   /* the next item of the listing */
    bson_t last; /* joined windows: the owner of the last item, under an empty name */
} spill_group_walk_t;

static spill_code_t prepare_group(void *context, const spill_listing_t *owners,
                                  spill_error_t *error)
{
    spill_group_walk_t *walk = context;
    walk->at = 0;
    if (!walk->checks) {
        spill_code_t code = spill_transfer_group_try(walk->group, owners, error);
        walk->failed = code != SPILL_OK;
        return code;
    }
    spill_transfer_group_check(walk->group, owners, walk->unsaved);
    return SPILL_OK;
}

/* Set `last` to the owner. True: it was that owner already. */
static bool is_same_as_last(bson_t *last, const spill_value_t *owner)
{
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, last, "")) {
        spill_value_t before = spill_value_from_iter(&iter);
        if (spill_value_same_owner(owner, &before))
            return true;
    }
    bson_reinit(last);
    spill_value_append(owner, last, "");
    return false;
}

static spill_code_t walk_item(void *context, const spill_value_t *item, spill_error_t *error)
{
    spill_group_walk_t *walk = context;
    spill_value_t owner = *item;
    const char *window;
    size_t at = walk->at++;
    if (walk->transfer->joins_windows &&
        (!spill_window_split(item, &owner, &window) || is_same_as_last(&walk->last, &owner)))
        return SPILL_OK;
    bool done = walk->group->is_possible && walk->group->done[at];
    spill_transferred_t transferred = walk->group->transferred[at];
    transferred.difference.owner = &owner;
    spill_code_t code = walk->call(walk->context, &owner, done ? &transferred : NULL, error);
    walk->failed = code != SPILL_OK;
    return code;
}

static spill_code_t walk_in_groups(spill_group_walk_t *walk, spill_error_t *error)
{
    spill_transfer_group_init(walk->group, walk->transfer);
    bson_init(&walk->last);
    spill_code_t code = spill_each_prepared(walk->transfer->source.array, SPILL_TRANSFER_GROUP,
                                            prepare_group, walk_item, walk, error);
    code = spill_end_walk(walk->transfer->source.array, code, error);
    bson_destroy(&walk->last);
    spill_transfer_group_release(walk->group);
    return walk->failed ? code : spill_transfer_failed(&walk->transfer->source, code, error);
}

/* ---- the check before a copy ----------------------------------------------------------------- */

typedef struct checking {
    spill_transfer_t *transfer;
    spill_transfer_group_t group;
    spill_group_walk_t walk;
    spill_array_t unsaved; /* stands for the target if its definition is not saved yet */
} checking_t;

/* Open the source, and the target if it is defined. */
static spill_code_t open_sides(checking_t *checking, const char *name,
                               const spill_definition_t *definition, spill_error_t *error)
{
    spill_transfer_t *transfer = checking->transfer;
    SPILL_TRY(open_side(&transfer->source, name, error));
    spill_code_t code = open_side(&transfer->target, definition->name, error);
    if (code != SPILL_NOT_FOUND)
        return code;
    checking->unsaved.store = transfer->target.store;
    transfer->target.array = &checking->unsaved;
    return SPILL_OK;
}

static void close_sides(checking_t *checking)
{
    spill_transfer_t *transfer = checking->transfer;
    if (transfer->target.array == &checking->unsaved)
        transfer->target.array = NULL;
    spill_transfer_end(transfer);
    transfer->source.array = NULL;
    transfer->source.definitions = NULL;
    transfer->target.definitions = NULL;
}

/* Find the numbers that the copy will append. In windows, all elements count as missing. */
static spill_code_t count_missing(const checking_t *checking, spill_transfer_owner_t *owner,
                                  spill_error_t *error)
{
    const spill_transfer_t *transfer = checking->transfer;
    SPILL_TRY(spill_transfer_count_source(owner, error));
    return transfer->target.array == &checking->unsaved || transfer->makes_windows
               ? SPILL_OK
               : spill_transfer_count_target(owner, error);
}

static spill_code_t check_owner(void *context, const spill_value_t *value,
                                const spill_transferred_t *done, spill_error_t *error)
{
    const checking_t *checking = context;
    spill_transfer_owner_t owner = {.transfer = checking->transfer};
    if (done)
        return SPILL_OK;
    spill_code_t code = init_owner(&owner, value, error);
    if (code == SPILL_OK)
        code = count_missing(checking, &owner, error);
    if (code == SPILL_OK)
        code = spill_transfer_check_missing(&owner, error);
    release_owner(&owner);
    spill_transfer_progress(checking->transfer);
    /* The copy reports damage, and tries again after a conflict. */
    return code == SPILL_CORRUPT || code == SPILL_CONFLICT ? SPILL_OK : code;
}

static spill_code_t check_owners(checking_t *checking, const char *name,
                                 const spill_definition_t *definition, spill_error_t *error)
{
    spill_transfer_t *transfer = checking->transfer;
    SPILL_TRY(open_sides(checking, name, definition, error));
    transfer->target.array->definition = *definition; /* with the bounds that the copy sets */
    if (!spill_transfer_may_refuse(transfer))
        return SPILL_OK;
    checking->walk = (spill_group_walk_t){.transfer = transfer,
                                          .group = &checking->group,
                                          .checks = true,
                                          .unsaved = transfer->target.array == &checking->unsaved,
                                          .call = check_owner,
                                          .context = checking};
    spill_code_t code = walk_in_groups(&checking->walk, error);
    return code == SPILL_CORRUPT ? SPILL_OK : code;
}

/* Check every element that the copy is about to append. Change nothing. */
static spill_code_t check_all(spill_transfer_t *transfer, const char *name, spill_error_t *error)
{
    checking_t checking = {.transfer = transfer};
    spill_definition_t definition;
    SPILL_TRY(plan_target(transfer, name, &definition, error));
    if (transfer->options->dropping || !spill_storable_may_refuse(&definition))
        return SPILL_OK;
    spill_code_t code = check_owners(&checking, name, &definition, error);
    close_sides(&checking);
    transfer->target.array = NULL;
    return code;
}

spill_code_t spill_copy_check(spill_store_t *source, spill_store_t *target, const char *name,
                              const spill_copy_options_t *options, spill_copy_result_t *result,
                              spill_error_t *error)
{
    spill_transfer_t transfer = {.source = {.name = "source", .store = source},
                                 .target = {.name = "target", .store = target},
                                 .options = options,
                                 .result = result};
    return check_all(&transfer, name, error);
}

/* ---- copy: all owners ------------------------------------------------------------------------ */

typedef struct copying {
    spill_transfer_t transfer;
    spill_transfer_group_t group;
    bson_t last; /* the owner that was reported last, under an empty name */
    bool last_differs;
    bool last_ahead;
} copying_t;

/* Report whether the previous call had the same owner: the windows of an owner are consecutive. */
static bool is_counted(copying_t *copying, const spill_value_t *owner)
{
    if (is_same_as_last(&copying->last, owner))
        return true;
    copying->last_differs = false;
    copying->last_ahead = false;
    return false;
}

static void report_difference(copying_t *copying, const spill_copy_difference_t *found)
{
    const spill_copy_options_t *options = copying->transfer.options;
    spill_copy_difference_t difference = *found;
    spill_value_t owner;
    bool window = !copying->transfer.joins_windows &&
                  spill_schema_of(spill_transfer_source(&copying->transfer))->has_windows &&
                  spill_window_split(difference.owner, &owner, &difference.window);
    if (window)
        difference.owner = &owner;
    copying->transfer.result->windows += window;
    copying->transfer.result->owners += !is_counted(copying, difference.owner);
    if (difference.count > 0) {
        copying->transfer.result->differences += !copying->last_differs;
        copying->transfer.result->ahead += difference.ahead && !copying->last_ahead;
        copying->last_ahead = copying->last_ahead || difference.ahead;
        copying->last_differs = true;
        if (options->differs)
            options->differs(options->context, &difference);
    }
    spill_transfer_progress(&copying->transfer);
}

static spill_code_t copy_owner(void *context, const spill_value_t *value,
                               const spill_transferred_t *done, spill_error_t *error)
{
    copying_t *copying = context;
    spill_transferred_t transferred;
    if (done)
        transferred = *done;
    else
        SPILL_TRY(spill_transfer_one(&copying->transfer, value, &transferred, error));
    report_difference(copying, &transferred.difference);
    return SPILL_OK;
}

spill_code_t spill_copy(spill_store_t *source, spill_store_t *target, const char *name,
                        const spill_copy_options_t *options, spill_copy_result_t *result,
                        spill_error_t *error)
{
    copying_t copying = {.transfer = {.source = {.name = "source", .store = source},
                                      .target = {.name = "target", .store = target},
                                      .options = options,
                                      .result = result},
                         .last = BSON_INITIALIZER};
    spill_transfer_t *transfer = &copying.transfer;
    spill_code_t code = check_all(transfer, name, error);
    transfer->is_checked = true;
    if (code == SPILL_OK)
        code = spill_transfer_begin(transfer, name, error);
    spill_group_walk_t walk = {
        .transfer = transfer, .group = &copying.group, .call = copy_owner, .context = &copying};
    if (code == SPILL_OK)
        code = walk_in_groups(&walk, error);
    spill_transfer_end(transfer);
    bson_destroy(&copying.last);
    return code;
}
