/* Catch up: one pass that copies the original's arrays into the planned definition. */
#include "layout/drop.h"
#include "tools/migrate/staged.h"

#include "bson/value.h"
#include "core/array.h"
#include "core/building.h"
#include "definition/schema.h"
#include "tools/definition_jobs.h"
#include "tools/migrate/migrate_pass.h"
#include "tools/transfer/transfer_group.h"
#include "util/error.h"

#include <inttypes.h>
#include <pthread.h>
#include <string.h>

/* If clients edit an owner during every try, the next pass copies it. */
enum { TRIES_MAX = 3 };

/* The pass. The lock is held over the result, the other numbers, and the caller's callbacks. */
typedef struct pass {
    pthread_mutex_t lock;
    spill_catch_up_result_t *result;
    spill_migrate_place_t place;
    spill_transfer_group_t group; /* of the thread that gets the next owners */
    bool is_clean;  /* when the pass began, the target had no pages or elements without a head */
    int64_t owners; /* of the original, that this pass has visited */
    bool over;      /* another run is finishing or undoing the migration, or has done so */
} pass_t;

/* The work on one owner, or of the only thread on all of them. */
typedef struct catch_up {
    pass_t *pass;
    spill_transfer_t transfer;
    spill_copy_options_t copy;  /* of the transfer */
    spill_copy_result_t copied; /* what this work adds to the result */
    const spill_migrate_options_t *options;
    const char *original;
    const char *name;
    int64_t began_us; /* when the last turn began */
    int64_t units;
} catch_up_t;

/* ---- is the copy still wanted? --------------------------------------------------------------- */

spill_code_t spill_catch_up_check(spill_store_t *store, const char *original, const char *name,
                                  spill_error_t *error)
{
    SPILL_SCOPED(spill_building_release) spill_building_t building = {0};
    SPILL_SCOPED(spill_convert_checkpoint_release) spill_convert_checkpoint_t checkpoint = {0};
    SPILL_TRY(
        spill_convert_checkpoint_load_with(store, name, &building, original, &checkpoint, error));
    bool builds = building.stored && !building.undoing && strcmp(building.original, original) == 0;
    bool ends = strcmp(checkpoint.as, name) == 0; /* also after the last array: `emptied` */
    if (builds && !ends)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "the migration to '%s' is being finished or undone, or it was: nothing "
                      "is copied there any longer",
                      name);
}

/*
 * Call this before each append to the target and each drop from it, after the read that showed the
 * need. If finishing the migration removed an owner of the original, its checkpoint was saved
 * before, so this call sees it.
 */
static spill_code_t check_building(catch_up_t *catch_up, spill_error_t *error)
{
    spill_code_t code = spill_catch_up_check(catch_up->transfer.source.store, catch_up->original,
                                             catch_up->name, error);
    if (code != SPILL_OK) {
        pthread_mutex_lock(&catch_up->pass->lock);
        catch_up->pass->over = true;
        pthread_mutex_unlock(&catch_up->pass->lock);
    }
    return code;
}

/* ---- pace ------------------------------------------------------------------------------------ */

/*
 * Report the last turn's duration to the throttle and wait for the next turn. The wait may take any
 * time, so check afterwards that the copy is still wanted.
 */
static spill_code_t wait_for_turn(void *context, int64_t elements, spill_error_t *error)
{
    catch_up_t *catch_up = context;
    spill_throttle_t *throttle = catch_up->options->throttle;
    if (!throttle)
        return check_building(catch_up, error);
    if (catch_up->units > 0)
        spill_throttle_ran(throttle, catch_up->units,
                           spill_throttle_now_us(throttle) - catch_up->began_us);
    if (!spill_throttle_wait(throttle))
        return spill_walk_stopped(error);
    catch_up->began_us = spill_throttle_now_us(throttle);
    catch_up->units = elements;
    return check_building(catch_up, error);
}

/* ---- reports --------------------------------------------------------------------------------- */

/* What an owner adds to the result. */
static void add_owner(catch_up_t *catch_up, const spill_catch_up_result_t *added,
                      const spill_migrated_t *migrated)
{
    spill_catch_up_result_t *result = catch_up->pass->result;
    pthread_mutex_lock(&catch_up->pass->lock);
    result->recopied += added->recopied;
    result->deleted += added->deleted;
    result->failed += added->failed;
    result->hash += added->hash;
    if (catch_up->options->migrated)
        catch_up->options->migrated(catch_up->options->context, migrated);
    pthread_mutex_unlock(&catch_up->pass->lock);
}

static bool is_over(catch_up_t *catch_up)
{
    pthread_mutex_lock(&catch_up->pass->lock);
    bool over = catch_up->pass->over;
    pthread_mutex_unlock(&catch_up->pass->lock);
    return over;
}

static spill_code_t skip_owner(catch_up_t *catch_up, const spill_value_t *owner, spill_code_t code,
                               const spill_error_t *failure, spill_error_t *error)
{
    const spill_catch_up_result_t added = {.failed = 1};
    spill_migrated_t migrated = {.owner = owner, .failed = failure};
    if (is_over(catch_up) || !spill_migrate_is_owner_failure(code)) {
        if (error)
            *error = *failure;
        return code;
    }
    spill_migrate_place_stop(&catch_up->pass->place);
    add_owner(catch_up, &added, &migrated);
    return SPILL_OK;
}

static void count_copied(catch_up_t *catch_up, const spill_value_t *owner,
                         const spill_transferred_t *transferred, bool recopied)
{
    spill_catch_up_result_t added = {.recopied = recopied ? 1 : 0, .hash = transferred->hash};
    spill_migrated_t migrated = {.owner = owner,
                                 .elements = transferred->elements,
                                 .hash = transferred->hash,
                                 .caught_up = true,
                                 .recopied = recopied};
    spill_value_add_hash(owner, &added.hash);
    add_owner(catch_up, &added, &migrated);
}

/* ---- one owner ------------------------------------------------------------------------------- */

/* Drop the owner in the target, with what a replaced document has left of it. */
static spill_code_t drop_copy(catch_up_t *catch_up, const spill_value_t *owner,
                              spill_error_t *error)
{
    spill_array_t *target = catch_up->transfer.target.array;
    bool windows = spill_schema_of(spill_array_get_definition(target))->has_windows;
    spill_code_t code = SPILL_UNKNOWN;
    /* If an answer is lost, repeat the drop now. A later pass would visit the owner only as an
     * orphan. */
    for (int tries = 0; code == SPILL_UNKNOWN && tries < TRIES_MAX; tries++) {
        code = check_building(catch_up, error);
        if (code == SPILL_OK)
            code = windows ? spill_bucket_drop_before(target, owner, NULL, NULL, error)
                           : spill_array_drop_owner(target, owner, error);
    }
    return code == SPILL_NOT_FOUND ? SPILL_OK : code;
}

/*
 * Drop the pages and elements that an owner without a head has in the target. They are left over if
 * the application replaced the document, and with it the head's fields. If the owner has a head,
 * even one created at this moment, nothing is dropped.
 */
static spill_code_t finish_drop(catch_up_t *catch_up, const spill_value_t *value,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    bool any;
    SPILL_TRY(spill_owner_init(&owner, catch_up->transfer.target.array, value, error));
    SPILL_TRY(check_building(catch_up, error));
    return spill_outlier_finish_drop(&owner, &any, error);
}

static spill_code_t drop_left_over(catch_up_t *catch_up, const spill_value_t *owner,
                                   spill_error_t *error)
{
    spill_count_t count;
    if (catch_up->pass->is_clean ||
        spill_schema_of(spill_transfer_target(&catch_up->transfer))->has_windows)
        return SPILL_OK; /* windows: see drop_orphan */
    SPILL_TRY(spill_array_count(catch_up->transfer.target.array, owner, &count, error));
    return count.next == 0 ? finish_drop(catch_up, owner, error) : SPILL_OK;
}

/* Copy an owner. If it differs, drop its copy and start again. */
static spill_code_t copy_owner(catch_up_t *catch_up, const spill_value_t *owner,
                               spill_transferred_t *transferred, bool *recopied,
                               spill_error_t *error)
{
    spill_copy_result_t *result = catch_up->transfer.result;
    SPILL_TRY(drop_left_over(catch_up, owner, error));
    for (int tries = 0; tries < TRIES_MAX; tries++) {
        spill_copy_result_t before = *result;
        *recopied = tries > 0;
        if (*recopied)
            SPILL_TRY(drop_copy(catch_up, owner, error));
        SPILL_TRY(spill_transfer_one(&catch_up->transfer, owner, transferred, error));
        if (transferred->difference.count == 0)
            return SPILL_OK;
        before.elements = result->elements; /* copied elements count each time, */
        *result = before;                   /* compared and dropped ones only in the last try */
    }
    spill_owner_t own = {.array = catch_up->transfer.source.array, .value = owner};
    spill_fail(error, SPILL_CONFLICT,
               "it changes as fast as it is copied (element %" PRId64
               ": %s); start again to continue",
               transferred->difference.seq, transferred->difference.text);
    return spill_owner_name(&own, SPILL_CONFLICT, error);
}

static spill_code_t catch_up_owner(catch_up_t *catch_up, const spill_value_t *owner,
                                   spill_error_t *error)
{
    spill_transferred_t transferred = {0};
    spill_error_t failure = {0};
    bool recopied = false;
    spill_code_t code = wait_for_turn(catch_up, 1, error);
    pthread_mutex_lock(&catch_up->pass->lock);
    catch_up->pass->owners++;
    pthread_mutex_unlock(&catch_up->pass->lock);
    if (code != SPILL_OK)
        return code;
    code = copy_owner(catch_up, owner, &transferred, &recopied, &failure);
    catch_up->copied.owners++;
    if (code != SPILL_OK)
        return skip_owner(catch_up, owner, code, &failure, error);
    count_copied(catch_up, owner, &transferred, recopied);
    spill_transfer_progress(&catch_up->transfer);
    return SPILL_OK;
}

/* The transfer of a copy of catch_up_t has its own options and result. */
static void own_transfer(catch_up_t *catch_up)
{
    catch_up->copied = (spill_copy_result_t){0};
    catch_up->copy.context = catch_up;
    catch_up->transfer.options = &catch_up->copy;
    catch_up->transfer.result = &catch_up->copied;
}

static void add_copied(const spill_copy_result_t *added, spill_copy_result_t *result)
{
    result->owners += added->owners;
    result->windows += added->windows;
    result->elements += added->elements;
    result->before += added->before;
    result->dropped += added->dropped;
    result->verified += added->verified;
    result->differences += added->differences;
    result->ahead += added->ahead;
}

static void end_work(catch_up_t *catch_up)
{
    pthread_mutex_lock(&catch_up->pass->lock);
    add_copied(&catch_up->copied, &catch_up->pass->result->copied);
    pthread_mutex_unlock(&catch_up->pass->lock);
}

/* Report the last turn's duration to the throttle. */
static void end_turn(const catch_up_t *catch_up)
{
    spill_throttle_t *throttle = catch_up->options->throttle;
    if (catch_up->units > 0 && throttle)
        spill_throttle_ran(throttle, catch_up->units,
                           spill_throttle_now_us(throttle) - catch_up->began_us);
}

/* Any thread: work with a copy of `context`. */
static spill_code_t catch_up_next(void *context, const spill_value_t *owner, spill_error_t *error)
{
    catch_up_t one = *(const catch_up_t *)context;
    own_transfer(&one);
    spill_migrate_works(one.options, owner);
    spill_code_t code = catch_up_owner(&one, owner, error);
    spill_migrate_works(one.options, NULL);
    end_turn(&one);
    end_work(&one);
    return code;
}

/* ---- many small owners ----------------------------------------------------------------------- */

static spill_code_t stop_at_orphan(void *context, const spill_orphan_t *orphan,
                                   spill_error_t *error)
{
    (void)orphan;
    *(bool *)context = true;
    return spill_walk_stopped(error);
}

/* Pages that an interrupted drop has left must be deleted before a head is made (drop_left_over):
 * if there are any, heads are not made in groups. */
static spill_code_t begin_groups(catch_up_t *catch_up, spill_error_t *error)
{
    spill_transfer_group_t *group = &catch_up->pass->group;
    bool any = false;
    spill_transfer_group_init(group, &catch_up->transfer);
    if (!group->is_possible)
        return SPILL_OK;
    spill_code_t code =
        spill_each_orphan(catch_up->transfer.target.array, NULL, stop_at_orphan, &any, error);
    group->makes = catch_up->pass->is_clean = !any;
    return any && code == SPILL_CANCELLED ? SPILL_OK : code;
}

static void count_group(catch_up_t *catch_up, const spill_listing_t *owners, bool *done)
{
    const spill_transfer_group_t *group = &catch_up->pass->group;
    for (size_t i = 0; i < owners->count; i++) {
        done[i] = group->is_possible && group->done[i];
        if (!done[i])
            continue;
        spill_item_t item = spill_listing_item(owners, i);
        catch_up->copied.owners++;
        count_copied(catch_up, &item.owner, &group->transferred[i], false);
    }
}

/* One thread at a time; see spill_owners_walk_t. */
static spill_code_t catch_up_group(void *context, const spill_listing_t *owners, bool *done,
                                   spill_error_t *error)
{
    catch_up_t one = *(const catch_up_t *)context;
    spill_transfer_group_t *group = &one.pass->group;
    own_transfer(&one);
    group->transfer = &one.transfer;
    spill_code_t code =
        group->is_possible ? wait_for_turn(&one, (int64_t)owners->count, error) : SPILL_OK;
    if (code == SPILL_OK)
        code = spill_transfer_group_try(group, owners, error);
    if (code == SPILL_OK)
        count_group(&one, owners, done);
    pthread_mutex_lock(&one.pass->lock);
    one.pass->owners += one.copied.owners;
    pthread_mutex_unlock(&one.pass->lock);
    end_turn(&one);
    end_work(&one);
    return code;
}

/* ---- owners that the application has removed ------------------------------------------------- */

static spill_code_t refuse_pages(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    const spill_definition_t *original = context;
    if (orphan->dropped)
        return SPILL_OK;
    return spill_fail(
        error, SPILL_REFUSED,
        "'%s' has %" PRId64 " pages of an array without a head: its document was "
        "replaced or deleted by another program, and they may be the only copy. Check "
        "them (`spillway verify STORE %s' names them); `spillway drop' of the owner "
        "there deletes them",
        original->name, orphan->pages, original->name);
}

spill_code_t spill_catch_up_check_pages(spill_array_t *original, const spill_value_t *owner,
                                        spill_error_t *error)
{
    return spill_each_orphan(original, owner, refuse_pages, &original->definition, error);
}

/* If the original has no array at all, its collection was probably dropped: keep the copies. */
static spill_code_t check_deleted(const catch_up_t *catch_up, const spill_value_t *value,
                                  spill_error_t *error)
{
    spill_owner_t own = {.array = catch_up->transfer.target.array, .value = value};
    spill_code_t code = SPILL_OK;
    if (catch_up->pass->owners == 0)
        code =
            spill_fail(error, SPILL_REFUSED,
                       "'%s' has no array at all, so this owner may not have been deleted and is "
                       "kept in '%s': --undo drops it there",
                       catch_up->original, catch_up->name);
    else
        code = spill_catch_up_check_pages(catch_up->transfer.source.array, value, error);
    return code == SPILL_REFUSED ? spill_owner_name(&own, code, error) : code;
}

/* Report whether the original has neither a head for this owner nor an unmanaged array. */
static spill_code_t is_deleted(const catch_up_t *catch_up, const spill_value_t *value,
                               bool *deleted, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    *deleted = false;
    spill_code_t code = spill_owner_init(&owner, catch_up->transfer.source.array, value, error);
    if (code == SPILL_OK)
        code = spill_owner_read_state(&owner, SPILL_HEAD, &head, error);
    *deleted = code == SPILL_OK && !head.state.present;
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

static spill_code_t drop_deleted(void *context, const spill_value_t *owner, spill_error_t *error)
{
    catch_up_t *catch_up = context;
    spill_error_t failure = {0};
    bool deleted = false;
    spill_code_t code = is_deleted(catch_up, owner, &deleted, &failure);
    if (code == SPILL_OK && deleted)
        code = check_deleted(catch_up, owner, &failure);
    if (code == SPILL_OK && deleted)
        code = drop_copy(catch_up, owner, &failure);
    if (code != SPILL_OK)
        return skip_owner(catch_up, owner, code, &failure, error);
    const spill_catch_up_result_t added = {.deleted = 1};
    spill_migrated_t migrated = {.owner = owner, .deleted = true};
    if (deleted)
        add_owner(catch_up, &added, &migrated);
    return SPILL_OK;
}

/*
 * Drop pages that an interrupted drop has left, of a deleted owner or of a window. If the original
 * has pages without a head for this owner too, these are kept: they may be the only copy.
 */
static spill_code_t drop_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    catch_up_t *catch_up = context;
    spill_error_t failure = {0};
    spill_value_t owner = orphan->owner;
    const char *window;
    bool deleted = false;
    if (spill_schema_of(spill_transfer_target(&catch_up->transfer))->has_windows)
        spill_window_split(&orphan->owner, &owner, &window);
    spill_code_t code = is_deleted(catch_up, &owner, &deleted, &failure);
    if (code == SPILL_OK)
        code = deleted
                   ? check_deleted(catch_up, &owner, &failure)
                   : spill_catch_up_check_pages(catch_up->transfer.source.array, &owner, &failure);
    if (code == SPILL_OK)
        code = finish_drop(catch_up, &orphan->owner, &failure);
    return code == SPILL_OK ? code : skip_owner(catch_up, &owner, code, &failure, error);
}

/* ---- a pass ---------------------------------------------------------------------------------- */

/* `copied` is what one owner has added so far. */
static void show_progress(void *context, const spill_copy_result_t *copied)
{
    const catch_up_t *catch_up = context;
    if (!catch_up->options->caught_up)
        return;
    pthread_mutex_lock(&catch_up->pass->lock);
    spill_copy_result_t all = catch_up->pass->result->copied;
    add_copied(copied, &all);
    catch_up->options->caught_up(catch_up->options->context, &all);
    pthread_mutex_unlock(&catch_up->pass->lock);
}

static spill_code_t count_first(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    ((catch_up_t *)context)->pass->owners++;
    return spill_walk_stopped(error);
}

/* Does the original have arrays, if this pass began behind the last one? */
static spill_code_t look_for_owners(catch_up_t *catch_up, spill_error_t *error)
{
    if (catch_up->pass->owners > 0 || !catch_up->pass->place.resumed)
        return SPILL_OK;
    spill_code_t code =
        spill_each_owner(catch_up->transfer.source.array, count_first, catch_up, true, error);
    return catch_up->pass->owners > 0 && code == SPILL_CANCELLED ? SPILL_OK : code;
}

static spill_code_t catch_up_all(catch_up_t *catch_up, spill_error_t *error)
{
    spill_transfer_t *transfer = &catch_up->transfer;
    spill_migrate_place_t *place = &catch_up->pass->place;
    SPILL_TRY(check_building(catch_up, error));
    SPILL_TRY(spill_migrate_place_begin(place, transfer->source.store, catch_up->name, 0, 0,
                                        catch_up->options->resumes, error));
    catch_up->pass->result->resumed = place->resumed;
    SPILL_TRY(spill_transfer_begin(transfer, catch_up->original, error));
    SPILL_TRY(begin_groups(catch_up, error));
    const spill_owners_walk_t walk = {.array = transfer->source.array,
                                      .threads = catch_up->options->threads,
                                      .allowed =
                                          spill_throttle_threads(catch_up->options->throttle),
                                      .place = place,
                                      .prepare = catch_up_group,
                                      .call = catch_up_next,
                                      .context = catch_up};
    SPILL_TRY(spill_migrate_each_owner(&walk, error));
    SPILL_TRY(look_for_owners(catch_up, error));
    bool windows = spill_schema_of(spill_transfer_target(transfer))->has_windows;
    SPILL_TRY((windows ? spill_each_bucket_owner : spill_each_owner)(
        transfer->target.array, drop_deleted, catch_up, true, error));
    SPILL_TRY(spill_each_orphan(transfer->target.array, NULL, drop_orphan, catch_up, error));
    return spill_store_make_indexes(transfer->target.store, spill_transfer_target(transfer), error);
}

spill_code_t spill_catch_up(spill_store_t *store, const char *original, const char *name,
                            const spill_migrate_options_t *options, spill_catch_up_result_t *result,
                            spill_error_t *error)
{
    pass_t pass = {.lock = PTHREAD_MUTEX_INITIALIZER, .result = result};
    catch_up_t catch_up = {
        .pass = &pass,
        .transfer = {.source = {.name = "original", .store = store},
                     .target = {.name = "planned", .store = store}},
        .copy = {.as = name, .building = true, .turn = wait_for_turn, .progress = show_progress},
        .options = options,
        .original = original,
        .name = name};
    own_transfer(&catch_up);
    spill_code_t code = catch_up_all(&catch_up, error);
    spill_code_t ended =
        spill_migrate_place_end(&pass.place, code == SPILL_OK, code == SPILL_OK ? error : NULL);
    end_work(&catch_up);
    spill_transfer_group_release(&pass.group);
    spill_transfer_end(&catch_up.transfer);
    spill_migrate_place_release(&pass.place);
    pthread_mutex_destroy(&pass.lock);
    return code == SPILL_OK ? ended : code;
}
