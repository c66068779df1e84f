/* Migrate arrays in place: count what must be done, reshape, and undo. */
#include "tools/migrate/migrate.h"
#include "layout/newest.h"

#include "core/array.h"
#include "definition/schema.h"
#include "layout/adoption.h"
#include "layout/unique.h"
#include "tools/migrate/migrate_pass.h"
#include "tools/migrate/planned.h"
#include "tools/migrate/undoing.h"
#include "tools/missing_owner.h"
#include "tools/transfer/transfer.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>

/* Check that the definition is one that is migrated in place: layout outlier, keep newest. If not,
 * SPILL_INVALID. */
static spill_code_t check_definition(const spill_definition_t *definition, spill_error_t *error)
{
    bool oldest = !spill_schema_of(definition)->appends_to_head;
    if (spill_planned_in_place(definition))
        return SPILL_OK;
    return spill_fail(error, SPILL_INVALID,
                      "'%s' has layout %s%s. Unmanaged arrays are migrated in place, and pushed "
                      "elements are moved, only with layout outlier, keep newest",
                      definition->name, spill_layout_name(definition->layout),
                      definition->layout == SPILL_LAYOUT_OUTLIER && oldest ? ", keep oldest" : "");
}

/* ---- what must be done ----------------------------------------------------------------------- */

static void count_owner(spill_migrate_result_t *result, const spill_oversized_t *oversized)
{
    result->owners++;
    result->unmanaged += oversized->managed ? 0 : 1;
    result->elements += oversized->elements;
    result->bytes += oversized->bytes;
}

/*
 * How many elements of the mean size go to a page, or stay in a head after its spill. The number
 * of slots and the bytes both bound it.
 */
static int64_t elements_that_fit(int64_t slots, int64_t bytes_max,
                                 const spill_oversized_t *oversized)
{
    int64_t mean = oversized->bytes / (oversized->elements > 0 ? oversized->elements : 1);
    int64_t fit = mean > 0 ? bytes_max / mean : slots;
    return fit < 1 ? 1 : fit < slots ? fit : slots;
}

/* Report an owner that the migration will skip. */
static spill_code_t predict_failure(const spill_migrate_pass_t *pass,
                                    const spill_oversized_t *oversized, spill_error_t *failure)
{
    const spill_migrated_t migrated = {
        .owner = &oversized->owner, .elements = oversized->elements, .failed = failure};
    pass->result->failed++;
    if (pass->options && pass->options->migrated)
        pass->options->migrated(pass->options->context, &migrated);
    return SPILL_OK;
}

/*
 * Will the migration skip the owner? A dry run also reads an array that is to become a set, as the
 * adoption does, and refuses one with an id twice.
 */
static spill_code_t check_owner(const spill_migrate_pass_t *pass,
                                const spill_oversized_t *oversized, bool *skips,
                                spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    bool predicts = pass->options && pass->options->migrated;
    spill_code_t code = spill_owner_init(&owner, pass->array, &oversized->owner, error);
    if (code == SPILL_OK) {
        code = spill_reshape_check(oversized, error);
        code = code == SPILL_OK ? code : spill_owner_name(&owner, code, error);
    }
    if (code == SPILL_OK && !oversized->managed && predicts)
        code = spill_unique_check_unmanaged(&owner, error);
    *skips = spill_migrate_is_owner_failure(code);
    return code;
}

static spill_code_t survey_owner(spill_migrate_pass_t *pass, const spill_oversized_t *oversized,
                                 spill_error_t *error)
{
    spill_error_t failure;
    bool skips;
    const spill_bounds_t *bounds = &pass->array->definition.bounds;
    int64_t page = elements_that_fit(bounds->page_capacity, bounds->page_bytes_max, oversized);
    int64_t target = spill_newest_bytes_target(bounds);
    int64_t stays = elements_that_fit(bounds->threshold, target, oversized);
    count_owner(pass->result, oversized);
    spill_code_t code = check_owner(pass, oversized, &skips, &failure);
    if (skips)
        return predict_failure(pass, oversized, &failure);
    pass->result->full += oversized->full ? 1 : 0;
    if (code != SPILL_OK && error)
        *error = failure;
    SPILL_TRY(code);
    if (oversized->elements < bounds->threshold + bounds->page_capacity &&
        oversized->bytes < bounds->head_bytes_max)
        return SPILL_OK;
    pass->result->moved += oversized->elements - stays;
    pass->result->pages += (oversized->elements - stays + page - 1) / page;
    return SPILL_OK;
}

/* An embedded store has no heads for a definition that is not saved. */
spill_code_t spill_migrate_survey(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_migrate_options_t *options,
                                  spill_migrate_result_t *result, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    spill_migrate_pass_t pass = spill_migrate_pass_begin(&array, options, result);
    SPILL_SCOPED(spill_migrate_place_release) spill_migrate_place_t place = {0};
    SPILL_TRY(check_definition(definition, error));
    spill_code_t code = store->ops->bind(store, definition, &array.binding, error);
    if (code == SPILL_OK && options && options->resumes)
        SPILL_TRY(spill_migrate_pass_place(&pass, &place, error));
    spill_migrate_place_stop(&place);
    return code == SPILL_OK || code == SPILL_NOT_FOUND
               ? spill_migrate_each(&pass, survey_owner, SPILL_OWNERS_SURVEYED, error)
               : code;
}

static spill_code_t stop_at_unmanaged(spill_migrate_pass_t *pass,
                                      const spill_oversized_t *oversized, spill_error_t *error)
{
    if (oversized->managed)
        return SPILL_OK;
    pass->result->unmanaged++;
    return spill_fail(error, SPILL_CANCELLED, "an array is there");
}

spill_code_t spill_migrate_has_unmanaged(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    spill_migrate_result_t result = {0};
    spill_migrate_pass_t pass = spill_migrate_pass_begin(&array, NULL, &result);
    *any = false;
    spill_code_t code = store->ops->bind(store, definition, &array.binding, error);
    if (code == SPILL_OK || code == SPILL_NOT_FOUND)
        code = spill_migrate_each(&pass, stop_at_unmanaged, SPILL_OWNERS_AT_A_TIME, error);
    *any = result.unmanaged > 0;
    return *any && code == SPILL_CANCELLED ? SPILL_OK : code;
}

/* ---- migrating ------------------------------------------------------------------------------- */

/* The work on one owner: its steps pay the throttle as they move elements. */
typedef struct turn {
    spill_migrate_pass_t *pass;
    int64_t step_min;        /* elements of a step, below which it costs too much */
    int64_t started_us;      /* of the current step */
    spill_reshaped_t before; /* what the earlier steps did */
} turn_t;

static int64_t step_limit(void *context)
{
    const turn_t *turn = context;
    const spill_throttle_t *throttle = turn->pass->options->throttle;
    int64_t rate = throttle ? spill_throttle_rate(throttle) : 0;
    return rate > 0 && rate < turn->step_min ? turn->step_min : rate;
}

static turn_t begin_turn(spill_migrate_pass_t *pass, const spill_oversized_t *oversized)
{
    int64_t bytes = pass->options->step_bytes;
    int64_t mean = oversized->elements > 0 ? oversized->bytes / oversized->elements : 0;
    bytes = bytes > 0 ? bytes : SPILL_MIGRATE_STEP_BYTES;
    return (turn_t){.pass = pass, .step_min = bytes / (mean > 0 ? mean : 1)};
}

static spill_code_t end_step(void *context, const spill_reshaped_t *so_far, spill_error_t *error)
{
    turn_t *turn = context;
    int64_t elements = so_far->elements - turn->before.elements;
    spill_migrate_step_done(turn->pass, elements, so_far->pages - turn->before.pages);
    turn->before = *so_far;
    spill_migrate_end_turn(turn->pass, elements, turn->started_us);
    return spill_migrate_wait(turn->pass, &turn->started_us, error);
}

/* The last step ends here. An owner without elements to move costs as much as one element. */
static void end_turn(const turn_t *turn, const spill_reshaped_t *reshaped)
{
    int64_t elements = reshaped->elements - turn->before.elements;
    if (elements == 0 && turn->before.elements == 0)
        elements = 1;
    spill_migrate_end_turn(turn->pass, elements, turn->started_us);
}

static spill_code_t reshape_owner(turn_t *turn, const spill_oversized_t *oversized,
                                  spill_reshaped_t *reshaped, spill_error_t *error)
{
    const spill_migrate_pass_t *pass = turn->pass;
    const spill_definition_t *planned = pass->options->planned;
    const spill_reshape_steps_t steps = {.limit = step_limit, .moved = end_step, .context = turn};
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, &oversized->owner, error));
    if (!oversized->managed && planned)
        SPILL_TRY(spill_storable_check_owner(planned, &owner, error));
    return spill_reshape(&owner, oversized, &steps, reshaped, error);
}

static spill_code_t reshape(spill_migrate_pass_t *pass, const spill_oversized_t *oversized,
                            spill_error_t *error)
{
    spill_error_t failure;
    spill_reshaped_t reshaped = {0};
    turn_t turn = begin_turn(pass, oversized);
    SPILL_TRY(spill_migrate_wait(pass, &turn.started_us, error));
    spill_migrate_works(pass->options, &oversized->owner);
    spill_code_t code = reshape_owner(&turn, oversized, &reshaped, &failure);
    spill_migrate_works(pass->options, NULL);
    spill_migrate_result_t added = {
        .moved = reshaped.elements, .pages = reshaped.pages, .changed = reshaped.changed};
    count_owner(&added, oversized);
    /* The document may have become full after the search. */
    bool full = oversized->full || reshaped.at_once;
    added.full = full ? 1 : 0;
    spill_migrated_t migrated = {.owner = &oversized->owner,
                                 .elements = oversized->elements,
                                 .moved = reshaped.elements,
                                 .pages = reshaped.pages,
                                 .hash = reshaped.hash,
                                 .adopted = reshaped.adopted,
                                 .at_once = reshaped.at_once,
                                 .full = full};
    spill_migrate_step_done(pass, -turn.before.elements, -turn.before.pages);
    code = spill_migrate_report(pass, code, &failure, &added, &migrated, error);
    end_turn(&turn, &reshaped);
    return code;
}

static spill_code_t finish_drops(spill_array_t *array, spill_error_t *error)
{
    bool more = true;
    while (more)
        SPILL_TRY(spill_array_finish_drops(array, &more, error));
    return SPILL_OK;
}

spill_code_t spill_migrate(spill_array_t *array, const spill_migrate_options_t *options,
                           spill_migrate_result_t *result, spill_error_t *error)
{
    spill_migrate_pass_t pass = spill_migrate_pass_begin(array, options, result);
    SPILL_SCOPED(spill_migrate_place_release) spill_migrate_place_t place = {0};
    SPILL_TRY(check_definition(&array->definition, error));
    SPILL_TRY(spill_migrate_pass_place(&pass, &place, error));
    result->resumed = place.resumed;
    spill_migrate_place_mark(&place);
    spill_adoption_begin(array);
    spill_code_t code = spill_migrate_each(&pass, reshape, SPILL_OWNERS_AT_A_TIME, error);
    spill_adoption_end(array);
    if (code == SPILL_OK)
        code = finish_drops(array, error);
    if (code == SPILL_OK)
        code = spill_migrate_report_orphans(&pass, error);
    if (code == SPILL_OK)
        code = spill_adopters_sweep(array->store, array->definition.name, error);
    spill_code_t ended =
        spill_migrate_place_end(&place, code == SPILL_OK, code == SPILL_OK ? error : NULL);
    return code == SPILL_OK ? ended : code;
}

/* ---- elements that the planned definition cannot store --------------------------------------- */

static spill_code_t check_storable(const spill_migrate_pass_t *pass, const spill_value_t *value,
                                   spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_storable_check_owner(pass->options->planned, &owner, error);
}

static spill_code_t predict(spill_migrate_pass_t *pass, const spill_value_t *value,
                            spill_error_t *error)
{
    spill_error_t failure;
    spill_code_t code = check_storable(pass, value, &failure);
    return spill_migrate_report_failure(pass, value, code, &failure, error);
}

static spill_code_t predict_unmanaged(spill_migrate_pass_t *pass,
                                      const spill_oversized_t *oversized, spill_error_t *error)
{
    const spill_definition_t *planned = pass->options->planned;
    if (oversized->managed)
        return SPILL_OK;
    if (spill_schema_of(planned)->is_capped && oversized->elements > planned->bounds.threshold) {
        pthread_mutex_lock(&pass->report_lock);
        pass->result->over_cap += oversized->elements - planned->bounds.threshold;
        pthread_mutex_unlock(&pass->report_lock);
    }
    return spill_storable_may_refuse(planned) ? predict(pass, &oversized->owner, error) : SPILL_OK;
}

static spill_code_t predict_managed(void *context, const spill_value_t *owner, spill_error_t *error)
{
    return predict(context, owner, error);
}

spill_code_t spill_migrate_predict(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_migrate_options_t *options,
                                   spill_migrate_result_t *result, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    spill_migrate_pass_t pass = spill_migrate_pass_begin(&array, options, result);
    if (!options->planned || !(spill_storable_may_refuse(options->planned) ||
                               spill_schema_of(options->planned)->is_capped))
        return SPILL_OK;
    spill_code_t code = store->ops->bind(store, definition, &array.binding, error);
    bool saved = code == SPILL_OK;
    if (saved || code == SPILL_NOT_FOUND)
        code = spill_migrate_each(&pass, predict_unmanaged, SPILL_OWNERS_AT_A_TIME, error);
    saved = saved && spill_storable_may_refuse(options->planned);
    return code == SPILL_OK && saved ? spill_each_owner(&array, predict_managed, &pass, true, error)
                                     : code;
}

/* ---- undo ------------------------------------------------------------------------------------ */

static spill_code_t measure_owner(const spill_migrate_pass_t *pass, const spill_value_t *value,
                                  int64_t *elements, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    int64_t bytes = 0;
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_unmanage_size(&owner, elements, &bytes, error);
}

static spill_code_t check_fits(void *context, const spill_value_t *value, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    int64_t elements = 0;
    spill_code_t code = measure_owner(pass, value, &elements, &failure);
    pthread_mutex_lock(&pass->report_lock);
    pass->result->owners += code == SPILL_OK ? 1 : 0;
    pass->result->elements += code == SPILL_OK ? elements : 0;
    pthread_mutex_unlock(&pass->report_lock);
    return spill_migrate_report_failure(pass, value, code, &failure, error);
}

static spill_code_t unmanage(const spill_migrate_pass_t *pass, const spill_value_t *value,
                             int64_t *elements, spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_unmanage(&owner, elements, error);
}

static spill_code_t unmanage_owner(void *context, const spill_value_t *value, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    int64_t elements = 0, started_us = 0;
    SPILL_TRY(spill_migrate_wait(pass, &started_us, error));
    spill_migrate_works(pass->options, value);
    spill_code_t code = unmanage(pass, value, &elements, &failure);
    spill_migrate_works(pass->options, NULL);
    spill_migrate_end_turn(pass, elements > 0 ? elements : 1, started_us);
    spill_migrate_result_t added = {.owners = code == SPILL_OK ? 1 : 0, .elements = elements};
    spill_migrated_t migrated = {.owner = value, .elements = elements, .unmanaged = true};
    return spill_migrate_report(pass, code, &failure, &added, &migrated, error);
}

static spill_code_t free_pages(const spill_migrate_pass_t *pass, const spill_value_t *value,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return spill_free_pages(&owner, error);
}

static spill_code_t finish_owner(spill_migrate_pass_t *pass, const spill_value_t *owner,
                                 spill_error_t *error)
{
    spill_error_t failure;
    spill_code_t code = free_pages(pass, owner, &failure);
    return spill_migrate_report_failure(pass, owner, code, &failure, error);
}

static spill_code_t finish_unmanaged(spill_migrate_pass_t *pass, const spill_oversized_t *oversized,
                                     spill_error_t *error)
{
    return oversized->managed ? SPILL_OK : finish_owner(pass, &oversized->owner, error);
}

static spill_code_t finish_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    bool unmanaged;
    spill_code_t code = spill_migrate_is_unmanaged(pass, &orphan->owner, &unmanaged, &failure);
    if (code != SPILL_OK)
        return spill_migrate_report_failure(pass, &orphan->owner, code, &failure, error);
    return unmanaged ? finish_owner(pass, &orphan->owner, error) : SPILL_OK;
}

/*
 * Free the pages that an earlier undo left when it died after it had unmanaged the array. Skip an
 * array that is managed: some client has adopted it again meanwhile. A server finds the pages
 * without a head in one search; other stores have no such list and visit each unmanaged array.
 */
static spill_code_t finish_undo(spill_migrate_pass_t *pass, spill_error_t *error)
{
    return pass->array->store->ops->others_write
               ? spill_each_orphan(pass->array, NULL, finish_orphan, pass, error)
               : spill_migrate_each(pass, finish_unmanaged, SPILL_OWNERS_AT_A_TIME, error);
}

/* `failed` owners are still managed, because their arrays do not fit. */
static spill_code_t check_none_adopted(spill_array_t *array, int64_t failed, spill_error_t *error)
{
    int64_t managed = -failed;
    SPILL_TRY(spill_each_owner(array, spill_count_call, &managed, true, error));
    if (managed <= 0)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "%" PRId64 " arrays of '%s' are managed again: stop the programs with the "
                      "library, whose appends make them, then undo once more",
                      managed, array->definition.name);
}

/* ---- one owner, or all ----------------------------------------------------------------------- */

static spill_code_t is_managed(const spill_migrate_pass_t *pass, bool *managed,
                               spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    *managed = false;
    SPILL_TRY(spill_owner_init(&owner, pass->array, pass->options->owner, error));
    spill_code_t code = spill_owner_read_state(&owner, SPILL_HEAD, &head, error);
    *managed = code == SPILL_OK && head.state.present;
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/* An unmanaged array may have pages that an earlier undo left when it died. */
static spill_code_t check_exists(const spill_migrate_pass_t *pass, spill_error_t *error)
{
    bool managed, unmanaged = false;
    SPILL_TRY(is_managed(pass, &managed, error));
    if (!managed)
        SPILL_TRY(spill_migrate_is_unmanaged(pass, pass->options->owner, &unmanaged, error));
    if (managed || unmanaged)
        return SPILL_OK;
    return spill_fail_no_owner(pass->array->definition.name, pass->options->owner, error);
}

static spill_code_t check_unmanaged(const spill_migrate_pass_t *pass, spill_error_t *error)
{
    bool managed;
    SPILL_TRY(is_managed(pass, &managed, error));
    if (!managed)
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "the array of this owner of '%s' is managed again: stop the programs that "
                      "adopt it (`spillway sweep', a migration, programs with the library), then "
                      "undo once more",
                      pass->array->definition.name);
}

static spill_code_t each_undone(spill_migrate_pass_t *pass, spill_each_fn call,
                                spill_error_t *error)
{
    const spill_migrate_options_t *options = pass->options;
    if (options->owner)
        return call(pass, options->owner, error);
    const spill_owners_walk_t walk = {.array = pass->array,
                                      .threads = options->threads,
                                      .allowed = spill_throttle_threads(options->throttle),
                                      .call = call,
                                      .context = pass};
    return spill_migrate_each_owner(&walk, error);
}

static spill_code_t refuse_undo(const spill_array_t *array, int64_t failed, spill_error_t *error)
{
    return spill_fail(error, SPILL_TOO_BIG,
                      "%s of '%s' cannot be undone; this run has changed nothing",
                      spill_counted_text(failed, "owner", "owners").text, array->definition.name);
}

spill_code_t spill_migrate_measure_undo(spill_array_t *array,
                                        const spill_migrate_options_t *options,
                                        spill_migrate_result_t *result, spill_error_t *error)
{
    spill_migrate_pass_t pass = spill_migrate_pass_begin(array, options, result);
    int64_t failed = result->failed, owners = result->owners;
    SPILL_TRY(check_definition(&array->definition, error));
    if (options->owner)
        SPILL_TRY(check_exists(&pass, error));
    SPILL_TRY(each_undone(&pass, check_fits, error));
    failed = result->failed - failed;
    return failed == 0 || result->owners > owners ? SPILL_OK : refuse_undo(array, failed, error);
}

spill_code_t spill_migrate_check_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                      spill_migrate_result_t *result, spill_error_t *error)
{
    int64_t failed = result->failed;
    SPILL_TRY(spill_migrate_measure_undo(array, options, result, error));
    failed = result->failed - failed;
    return failed == 0 ? SPILL_OK : refuse_undo(array, failed, error);
}

/* Unmanage every array, and then those that other programs adopted until they saw the undo. */
static spill_code_t unmanage_all(spill_migrate_pass_t *pass, spill_error_t *error)
{
    int64_t failed = pass->result->failed;
    SPILL_TRY(spill_undoing_begin(pass->array, error));
    SPILL_TRY(each_undone(pass, unmanage_owner, error));
    SPILL_TRY(spill_undoing_wait(pass->array, error));
    pass->result->failed = failed; /* the second pass counts these owners again */
    return each_undone(pass, unmanage_owner, error);
}

static spill_code_t undo_all(spill_migrate_pass_t *pass, spill_error_t *error)
{
    int64_t failed = pass->result->failed;
    SPILL_TRY(unmanage_all(pass, error));
    failed = pass->result->failed - failed;
    SPILL_TRY(finish_undo(pass, error));
    SPILL_TRY(spill_migrate_report_orphans(pass, error));
    return check_none_adopted(pass->array, failed, error);
}

static spill_code_t undo_owner(spill_migrate_pass_t *pass, spill_error_t *error)
{
    SPILL_TRY(each_undone(pass, unmanage_owner, error));
    return pass->result->failed > 0 ? SPILL_OK : check_unmanaged(pass, error); /* it was reported */
}

spill_code_t spill_migrate_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error)
{
    spill_migrate_pass_t pass = spill_migrate_pass_begin(array, options, result);
    spill_migrate_result_t measured = {0};
    spill_code_t code = spill_migrate_measure_undo(array, options, &measured, error);
    result->failed += code == SPILL_OK ? 0 : measured.failed; /* the passes count them */
    SPILL_TRY(code);
    SPILL_TRY(spill_migrate_place_delete(array->store, array->definition.name, error));
    if (options->measured)
        options->measured(options->context, &measured);
    return options->owner ? undo_owner(&pass, error) : undo_all(&pass, error);
}
