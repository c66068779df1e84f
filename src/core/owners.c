/* Walks over the owners of an array and over pages without one, and the drop of a definition. */
#include "core/array.h"
#include "definition/schema.h"
#include "layout/drop.h"
#include "store/timed.h"
#include "util/error.h"

#include <spillway/bucket.h>

enum { OWNERS_AT_A_TIME = 256 };

spill_code_t spill_walk_stopped(spill_error_t *error)
{
    return spill_fail(error, SPILL_CANCELLED, "stopped by the caller");
}

/* Visit each owner that has a head or, with `unmanaged`, an unmanaged array. */
static spill_code_t visit_owners(spill_array_t *array, bool unmanaged, spill_owner_fn visit,
                                 void *context, spill_error_t *error)
{
    spill_timed_forget_changes();
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {.store = array->store,
                             .definition = &array->definition,
                             .binding = &array->binding,
                             .query = {.list = SPILL_LIST_OWNERS,
                                       .limit = OWNERS_AT_A_TIME,
                                       .owners.unmanaged = unmanaged}};
    const spill_item_t *item;
    do {
        SPILL_TRY(spill_cursor_next(&cursor, &item, error));
        if (item && !visit(context, &item->owner))
            return spill_walk_stopped(error);
    } while (item);
    return SPILL_OK;
}

spill_code_t spill_array_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    SPILL_CHECK_ARGUMENT(error, visit != NULL, "the argument 'visit' is NULL");
    return visit_owners(array, false, visit, context, error);
}

/* ---- owners of windows (layout bucket) ------------------------------------------------------- */

typedef struct owners {
    spill_owner_fn visit;
    void *context;
    bson_t last; /* the owner that was visited last, under an empty name */
} owners_t;

/* Windows of an owner lie side by side. */
static bool visit_owner(void *context, const spill_value_t *name)
{
    owners_t *owners = context;
    spill_value_t owner;
    const char *window;
    bson_iter_t iter;
    if (!spill_window_split(name, &owner, &window))
        return true;
    if (bson_iter_init_find(&iter, &owners->last, "")) {
        spill_value_t last = spill_value_from_iter(&iter);
        if (spill_value_same_owner(&owner, &last))
            return true;
    }
    bson_reinit(&owners->last);
    spill_value_append(&owner, &owners->last, "");
    return owners->visit(owners->context, &owner);
}

spill_code_t spill_bucket_owners(spill_array_t *array, spill_owner_fn visit, void *context,
                                 spill_error_t *error)
{
    SPILL_CHECK_POINTERS(error, array);
    SPILL_TRY(spill_store_check_process(array->store, error));
    SPILL_CHECK_ARGUMENT(error, visit != NULL, "the argument 'visit' is NULL");
    SPILL_TRY(spill_array_check_layout(array, true, "there are no windows", error));
    owners_t owners = {.visit = visit, .context = context};
    bson_init(&owners.last);
    spill_code_t code = spill_array_owners(array, visit_owner, &owners, error);
    bson_destroy(&owners.last);
    return code;
}

/* ---- each owner in turn ---------------------------------------------------------------------- */

spill_code_t spill_count_call(void *count, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    (void)error;
    ++*(int64_t *)count;
    return SPILL_OK;
}

typedef struct each {
    spill_array_t *array;
    spill_each_fn call;
    void *context;
    int64_t owners; /* so far */
    bool pass_damaged;
    bool pass_refused;
    int64_t refused; /* owners that were skipped for it */
    bool damaged;
    spill_error_t damage; /* the first */
    spill_code_t code;
    spill_error_t error;
} each_t;

static void report_walked(each_t *each)
{
    spill_store_t *store = each->array->store;
    each->owners++;
    if (store->walked)
        store->walked(store->walk_context, each->array, each->owners);
}

static bool call_next(void *context, const spill_value_t *owner)
{
    each_t *each = context;
    if (spill_store_stopped(each->array->store)) {
        each->code = spill_walk_stopped(&each->error);
        return false;
    }
    each->code = each->call(each->context, owner, &each->error);
    if (each->code != SPILL_CANCELLED)
        report_walked(each);
    if (each->code == SPILL_REFUSED && each->pass_refused) {
        spill_store_log(each->array->store, SPILL_LOG_WARNING, "skipped: %s", each->error.message);
        each->refused++;
        each->code = SPILL_OK;
        return true;
    }
    if (each->code != SPILL_CORRUPT || !each->pass_damaged)
        return each->code == SPILL_OK;
    const char *what = each->array->store->options.partial ? "incomplete" : "skipped";
    spill_store_log(each->array->store, SPILL_LOG_WARNING, "%s: %s", what, each->error.message);
    if (!each->damaged)
        each->damage = each->error;
    each->damaged = true;
    each->code = SPILL_OK;
    return true;
}

/* Combine the result of the calls and of the walk. */
static spill_code_t end_each(const each_t *each, spill_code_t code, const spill_error_t *walk,
                             spill_error_t *error)
{
    const spill_error_t *cause = walk;
    if (each->code != SPILL_OK) {
        code = each->code;
        cause = &each->error;
    } else if (code == SPILL_OK && each->damaged) {
        code = SPILL_CORRUPT;
        cause = &each->damage;
    }
    if (code != SPILL_OK && error != NULL)
        *error = *cause;
    return code;
}

spill_code_t spill_each_owner(spill_array_t *array, spill_each_fn call, void *context,
                              bool pass_damaged, spill_error_t *error)
{
    each_t each = {.array = array, .call = call, .context = context, .pass_damaged = pass_damaged};
    spill_error_t walk;
    spill_code_t code = spill_array_owners(array, call_next, &each, &walk);
    return end_each(&each, code, &walk, error);
}

static spill_code_t stop_at_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    *(bool *)context = true;
    return spill_walk_stopped(error);
}

spill_code_t spill_array_has_owner(spill_array_t *array, bool *any, spill_error_t *error)
{
    *any = false;
    spill_code_t code = spill_each_owner(array, stop_at_owner, any, true, error);
    return *any && code == SPILL_CANCELLED ? SPILL_OK : code;
}

spill_code_t spill_each_array(spill_array_t *array, spill_each_fn call, void *context,
                              int64_t *skipped, spill_error_t *error)
{
    const bool unmanaged = spill_array_has_unmanaged(array);
    each_t each = {.array = array,
                   .call = call,
                   .context = context,
                   .pass_damaged = true,
                   .pass_refused = unmanaged};
    spill_error_t walk;
    spill_code_t code = visit_owners(array, unmanaged, call_next, &each, &walk);
    *skipped = each.refused;
    return end_each(&each, code, &walk, error);
}

static bool count_owner(void *context, const spill_value_t *owner)
{
    (void)owner;
    ++*(int64_t *)context;
    return true;
}

spill_code_t spill_count_unmanaged(spill_array_t *array, int64_t *count, spill_error_t *error)
{
    int64_t managed = 0, all = 0;
    *count = 0;
    if (!spill_array_has_unmanaged(array))
        return SPILL_OK;
    SPILL_TRY(visit_owners(array, false, count_owner, &managed, error));
    SPILL_TRY(visit_owners(array, true, count_owner, &all, error));
    *count = all > managed ? all - managed : 0;
    return SPILL_OK;
}

/* Walk until a call fails; its code is in each->code. */
static spill_code_t walk_prepared(each_t *each, spill_cursor_t *cursor, spill_prepare_fn prepare,
                                  spill_error_t *error)
{
    const spill_item_t *item;
    do {
        bool first = cursor->next == cursor->listing.count;
        SPILL_TRY(spill_cursor_next(cursor, &item, error));
        if (item && first)
            SPILL_TRY(prepare(each->context, &cursor->listing, error));
    } while (item && call_next(each, &item->owner));
    return SPILL_OK;
}

spill_code_t spill_each_prepared(spill_array_t *array, size_t at_a_time, spill_prepare_fn prepare,
                                 spill_each_fn call, void *context, spill_error_t *error)
{
    each_t each = {.array = array, .call = call, .context = context, .pass_damaged = true};
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {.store = array->store,
                             .definition = &array->definition,
                             .binding = &array->binding,
                             .query = {.list = SPILL_LIST_OWNERS, .limit = at_a_time}};
    spill_error_t walk;
    spill_code_t code = walk_prepared(&each, &cursor, prepare, &walk);
    return end_each(&each, code, &walk, error);
}

spill_code_t spill_each_bucket_owner(spill_array_t *array, spill_each_fn call, void *context,
                                     bool pass_damaged, spill_error_t *error)
{
    each_t each = {.array = array, .call = call, .context = context, .pass_damaged = pass_damaged};
    spill_error_t walk;
    spill_code_t code = spill_bucket_owners(array, call_next, &each, &walk);
    return end_each(&each, code, &walk, error);
}

/* ---- pages without a head -------------------------------------------------------------------- */

/* On a server, only a note says that the owner was dropped. */
static spill_code_t find_note(spill_array_t *array, spill_orphan_t *orphan, spill_error_t *error)
{
    int64_t incarnation;
    if (orphan->dropped || orphan->strays > 0 || !array->store->ops->find_drop)
        return SPILL_OK;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    SPILL_TRY(spill_owner_init(&own, array, &orphan->owner, error));
    SPILL_TRY(spill_outlier_find_dropped(&own, &incarnation, error));
    orphan->dropped = incarnation >= orphan->incarnation;
    return SPILL_OK;
}

spill_code_t spill_each_orphan(spill_array_t *array, const spill_value_t *owner,
                               spill_orphan_fn call, void *context, spill_error_t *error)
{
    if (!spill_schema_of(&array->definition)->has_pages)
        return SPILL_OK;
    SPILL_SCOPED(spill_cursor_release)
    spill_cursor_t cursor = {
        .store = array->store,
        .definition = &array->definition,
        .binding = &array->binding,
        .query = {.list = SPILL_LIST_ORPHANS, .limit = OWNERS_AT_A_TIME, .orphans.owner = owner}};
    const spill_item_t *item;
    do {
        SPILL_TRY(spill_cursor_next(&cursor, &item, error));
        if (!item)
            break;
        spill_orphan_t orphan = item->orphan;
        SPILL_TRY(find_note(array, &orphan, error));
        SPILL_TRY(call(context, &orphan, error));
    } while (item);
    return SPILL_OK;
}

/* ---- notes of drops -------------------------------------------------------------------------- */

static spill_code_t finish_old(spill_array_t *array, const spill_value_t *value,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, array, value, error));
    return spill_outlier_finish_old(&owner, error);
}

spill_code_t spill_array_finish_drops(spill_array_t *array, bool *more, spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t owners = SPILL_LISTING_INIT;
    spill_store_t *store = array->store;
    *more = false;
    if (!store->ops->old_drops || !spill_schema_of(&array->definition)->has_pages)
        return SPILL_OK;
    SPILL_TRY(store->ops->old_drops(store, &array->definition, &owners, error));
    for (size_t i = 0; i < owners.count; i++) {
        if (spill_store_stopped(store))
            return spill_walk_stopped(error);
        const spill_item_t item = spill_listing_item(&owners, i);
        SPILL_TRY(finish_old(array, &item.owner, error));
    }
    *more = owners.count == SPILL_DROP_NOTES_LISTED;
    return SPILL_OK;
}

/* ---- the drop of a definition ---------------------------------------------------------------- */

enum { TRIES_MAX = 20 };

typedef struct drop {
    spill_array_t *array;
    int64_t dropped;
} drop_t;

static spill_code_t drop_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    drop_t *drop = context;
    spill_code_t code = spill_array_drop_owner(drop->array, owner, error);
    drop->dropped++;
    return code == SPILL_NOT_FOUND ? SPILL_OK : code; /* another client was faster */
}

static spill_code_t drop_owners(spill_array_t *array, spill_error_t *error)
{
    drop_t drop = {.array = array};
    do {
        drop.dropped = 0;
        SPILL_TRY(spill_each_owner(array, drop_owner, &drop, false, error));
    } while (drop.dropped > 0); /* again for owners made meanwhile */
    return SPILL_OK;
}

static void close_array(spill_array_t **array)
{
    spill_array_close(*array);
}

static spill_code_t drop(spill_store_t *store, const char *name, spill_error_t *error)
{
    SPILL_SCOPED(close_array) spill_array_t *array = NULL;
    SPILL_TRY(spill_array_open(store, name, &array, error));
    array->building = false;
    bool done = false;
    for (int tries = 0; tries <= TRIES_MAX; tries++) {
        SPILL_TRY(drop_owners(array, error));
        SPILL_TRY(spill_store_retire(store, &array->definition, &array->binding, &done, error));
        if (done)
            return store->ops->forget_drops
                       ? store->ops->forget_drops(store, &array->definition, error)
                       : SPILL_OK;
    }
    return spill_fail_retryable(error, SPILL_CONFLICT,
                                "owners of '%s' keep being made, or cannot all be listed: "
                                "stop those who append, or run `spillway verify`",
                                name);
}

spill_code_t spill_store_drop(spill_store_t *store, const char *name, spill_error_t *error)
{
    SPILL_CHECK_STORE(error, store, name);
    spill_deadline_t outer = spill_timed_suspend();
    spill_code_t code = drop(store, name, error);
    spill_deadline_end(outer);
    return code;
}
