#include "tools/migrate.h"

#include "core/array.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "layout/reshape.h"
#include "tools/parallel.h"
#include "tools/planned.h"
#include "tools/storable.h"
#include "util/error.h"

#include <spillway/verify.h>

#include <inttypes.h>
#include <pthread.h>

/*
 * How many owners one query returns: when they are only counted, and when each is reshaped while
 * the next query runs.
 */
enum { OWNERS_SURVEYED = 256, OWNERS_AT_A_TIME = 16 };

/*
 * A pass over an array's owners. Several threads may each work on one owner. The throttle has a
 * lock of its own: a thread that waits for its turn holds it, and later threads queue behind it.
 */
typedef struct pass {
    spill_array_t *array;
    const spill_migrate_options_t *options;
    spill_migrate_result_t *result;
    pthread_mutex_t telling; /* held over `result`, and while the callbacks run */
    pthread_mutex_t pacing;  /* held over the throttle */
} pass_t;

static pass_t begin_pass(spill_array_t *array, const spill_migrate_options_t *options,
                         spill_migrate_result_t *result)
{
    return (pass_t){.array = array,
                    .options = options,
                    .result = result,
                    .telling = PTHREAD_MUTEX_INITIALIZER,
                    .pacing = PTHREAD_MUTEX_INITIALIZER};
}

spill_code_t spill_migrate_check(const spill_definition_t *definition, spill_error_t *error)
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

/* ---- owners to reshape ----------------------------------------------------------------------- */

typedef spill_code_t (*visit_fn)(pass_t *pass, const spill_oversized_t *oversized,
                                 spill_error_t *error);

/* A walk over these owners, each once, in the store's order. */
typedef struct walk {
    pass_t *pass;
    visit_fn visit;
    size_t at_a_time; /* owners per query */
    bson_t found;
    bson_iter_t iter; /* in `found` */
    spill_buffer_t after;
    bool ended; /* no owners are left behind `after` */
} walk_t;

/* From this size on, a document may have no room for the bytes that ADOPT adds, about 300. */
static int64_t document_bytes(const spill_migrate_options_t *options)
{
    enum { ROOM_BYTES = 1024 };
    return options && options->full_bytes > 0 ? options->full_bytes
                                              : SPILL_DOCUMENT_BYTES_MAX - ROOM_BYTES;
}

/* Query the next owners into `found`. */
static spill_code_t find_oversized(walk_t *walk, spill_error_t *error)
{
    const spill_array_t *array = walk->pass->array;
    const spill_bounds_t *bounds = &array->definition.bounds;
    spill_buffer_t last = SPILL_BUFFER_INIT;
    spill_oversized_query_t query = {.after = walk->after.data,
                                     .after_bytes = walk->after.size,
                                     .limit = walk->at_a_time,
                                     .slots = bounds->threshold + bounds->page_capacity,
                                     .bytes = bounds->head_bytes_max,
                                     .counts = true,
                                     .full = document_bytes(walk->pass->options)};
    bson_destroy(&walk->found);
    spill_code_t code = array->store->ops->oversized(
        array->store, &array->definition, &array->binding, &query, &walk->found, &last, error);
    if (code != SPILL_OK)
        bson_init(&walk->found);
    bson_iter_init(&walk->iter, &walk->found);
    spill_buffer_clear(&walk->after);
    spill_buffer_append(&walk->after, last.data, last.size);
    spill_buffer_release(&last);
    return code;
}

/* *item: a document with the next owner as its field, or NULL. */
static spill_code_t next_oversized(void *context, void **item, spill_error_t *error)
{
    walk_t *walk = context;
    spill_code_t code = SPILL_OK;
    bool any = bson_iter_next(&walk->iter);
    if (!any && !walk->ended) {
        code = find_oversized(walk, error);
        any = code == SPILL_OK && bson_iter_next(&walk->iter);
        walk->ended = !any;
    }
    bson_t *one = any ? bson_new() : NULL;
    if (one)
        bson_append_iter(one, NULL, 0, &walk->iter);
    *item = one;
    return code;
}

static spill_code_t visit_one(void *context, void *item, spill_error_t *error)
{
    const walk_t *walk = context;
    bson_t *one = item;
    bson_iter_t iter;
    spill_oversized_t oversized;
    spill_code_t code = SPILL_OK;
    if (bson_iter_init(&iter, one) && bson_iter_next(&iter) &&
        spill_oversized_read(&iter, &oversized))
        code = walk->visit(walk->pass, &oversized, error);
    bson_destroy(one);
    return code;
}

static spill_code_t each_oversized(pass_t *pass, visit_fn visit, size_t at_a_time,
                                   spill_error_t *error)
{
    walk_t walk = {.pass = pass, .visit = visit, .at_a_time = at_a_time};
    size_t threads = pass->options ? (size_t)pass->options->threads : 1;
    bson_init(&walk.found);
    bson_iter_init(&walk.iter, &walk.found);
    spill_code_t code = spill_parallel(threads, next_oversized, visit_one, &walk, error);
    bson_destroy(&walk.found);
    spill_buffer_release(&walk.after);
    return code;
}

static void count_owner(spill_migrate_result_t *result, const spill_oversized_t *oversized)
{
    result->owners++;
    result->plain += oversized->ours ? 0 : 1;
    result->full += oversized->full ? 1 : 0;
    result->elements += oversized->elements;
    result->bytes += oversized->bytes;
}

/* ---- what must be done ----------------------------------------------------------------------- */

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
static spill_code_t predict_failure(const pass_t *pass, const spill_oversized_t *oversized,
                                    spill_code_t code, spill_error_t *failure)
{
    const spill_owner_t owner = {.array = pass->array, .value = &oversized->owner};
    const spill_migrated_t migrated = {
        .owner = &oversized->owner, .elements = oversized->elements, .failed = failure};
    spill_owner_name(&owner, code, failure);
    pass->result->failed++;
    if (pass->options && pass->options->migrated)
        pass->options->migrated(pass->options->context, &migrated);
    return SPILL_OK;
}

static spill_code_t survey_owner(pass_t *pass, const spill_oversized_t *oversized,
                                 spill_error_t *error)
{
    (void)error;
    spill_error_t failure;
    const spill_bounds_t *bounds = &pass->array->definition.bounds;
    int64_t page = elements_that_fit(bounds->page_capacity, bounds->page_bytes_max, oversized);
    int64_t target = spill_newest_bytes_target(bounds);
    int64_t stays = elements_that_fit(bounds->threshold, target, oversized);
    count_owner(pass->result, oversized);
    spill_code_t code = spill_reshape_check(oversized, &failure);
    if (code != SPILL_OK)
        return predict_failure(pass, oversized, code, &failure);
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
    pass_t pass = begin_pass(&array, options, result);
    spill_code_t code = spill_migrate_check(definition, error);
    if (code != SPILL_OK)
        return code;
    code = store->ops->bind(store, definition, &array.binding, error);
    return code == SPILL_OK || code == SPILL_NOT_FOUND
               ? each_oversized(&pass, survey_owner, OWNERS_SURVEYED, error)
               : code;
}

static spill_code_t stop_at_unmanaged(pass_t *pass, const spill_oversized_t *oversized,
                                      spill_error_t *error)
{
    if (oversized->ours)
        return SPILL_OK;
    pass->result->plain++;
    return spill_fail(error, SPILL_CANCELLED, "an array is there");
}

spill_code_t spill_migrate_has_unmanaged(spill_store_t *store, const spill_definition_t *definition,
                                         bool *any, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    spill_migrate_result_t result = {0};
    pass_t pass = begin_pass(&array, NULL, &result);
    *any = false;
    spill_code_t code = store->ops->bind(store, definition, &array.binding, error);
    if (code == SPILL_OK || code == SPILL_NOT_FOUND)
        code = each_oversized(&pass, stop_at_unmanaged, OWNERS_AT_A_TIME, error);
    *any = result.plain > 0;
    return *any && code == SPILL_CANCELLED ? SPILL_OK : code;
}

/* ---- migrating ------------------------------------------------------------------------------- */

bool spill_migrate_is_owner_failure(spill_code_t code)
{
    return code == SPILL_REFUSED || code == SPILL_TOO_BIG || code == SPILL_CORRUPT ||
           code == SPILL_CONFLICT || code == SPILL_INVALID;
}

/* `added`: what this owner adds to the result. */
static spill_code_t report_owner(pass_t *pass, spill_code_t code, const spill_error_t *failure,
                                 const spill_migrate_result_t *added, spill_migrated_t *migrated,
                                 spill_error_t *error)
{
    const spill_migrate_options_t *options = pass->options;
    spill_migrate_result_t *result = pass->result;
    bool passed_over = spill_migrate_is_owner_failure(code),
         goes_on = code == SPILL_OK || passed_over;
    migrated->failed = passed_over ? failure : NULL;
    pthread_mutex_lock(&pass->telling);
    result->owners += added->owners;
    result->plain += passed_over ? 0 : added->plain;
    result->full += passed_over ? 0 : added->full;
    result->elements += added->elements;
    result->bytes += added->bytes;
    result->moved += added->moved;
    result->pages += added->pages;
    result->changed += added->changed;
    result->failed += passed_over ? 1 : 0;
    if (goes_on && options->migrated)
        options->migrated(options->context, migrated);
    if (goes_on && options->progress)
        options->progress(options->context, result);
    pthread_mutex_unlock(&pass->telling);
    if (!goes_on && error)
        *error = *failure;
    return goes_on ? SPILL_OK : code;
}

static spill_code_t wait_for_turn(pass_t *pass, int64_t *started_us, spill_error_t *error)
{
    spill_throttle_t *throttle = pass->options->throttle;
    *started_us = 0;
    if (!throttle)
        return SPILL_OK;
    pthread_mutex_lock(&pass->pacing);
    bool goes_on = spill_throttle_wait(throttle);
    *started_us = spill_throttle_now_us(throttle);
    pthread_mutex_unlock(&pass->pacing);
    return goes_on ? SPILL_OK : spill_walk_stopped(error);
}

static void end_turn(pass_t *pass, int64_t elements, int64_t started_us)
{
    spill_throttle_t *throttle = pass->options->throttle;
    if (!throttle)
        return;
    pthread_mutex_lock(&pass->pacing);
    spill_throttle_ran(throttle, elements, spill_throttle_now_us(throttle) - started_us);
    pthread_mutex_unlock(&pass->pacing);
}

static spill_code_t reshape(pass_t *pass, const spill_oversized_t *oversized, spill_error_t *error)
{
    spill_owner_t owner;
    spill_error_t failure;
    spill_reshaped_t reshaped = {0};
    int64_t started_us = 0;
    spill_code_t code = wait_for_turn(pass, &started_us, error);
    if (code != SPILL_OK)
        return code;
    code = spill_owner_init(&owner, pass->array, &oversized->owner, &failure);
    if (code == SPILL_OK && !oversized->ours && pass->options->planned)
        code = spill_storable_check_owner(pass->options->planned, &owner, &failure);
    if (code == SPILL_OK)
        code = spill_reshape(&owner, oversized, &reshaped, &failure);
    spill_owner_release(&owner);
    spill_migrate_result_t added = {
        .moved = reshaped.elements, .pages = reshaped.pages, .changed = reshaped.changed};
    count_owner(&added, oversized);
    added.full = reshaped.at_once ? 1 : 0;
    spill_migrated_t migrated = {.owner = &oversized->owner,
                                 .elements = oversized->elements,
                                 .moved = reshaped.elements,
                                 .pages = reshaped.pages,
                                 .hash = reshaped.hash,
                                 .taken = reshaped.taken,
                                 .at_once = reshaped.at_once};
    code = report_owner(pass, code, &failure, &added, &migrated, error);
    end_turn(pass, reshaped.elements > 0 ? reshaped.elements : 1, started_us);
    return code;
}

/* ---- elements that the planned definition cannot store --------------------------------------- */

static spill_code_t predict(pass_t *pass, const spill_value_t *value, spill_error_t *error)
{
    spill_owner_t owner;
    spill_error_t failure;
    spill_migrate_result_t nothing = {0};
    spill_migrated_t migrated = {.owner = value};
    spill_code_t code = spill_owner_init(&owner, pass->array, value, &failure);
    if (code == SPILL_OK)
        code = spill_storable_check_owner(pass->options->planned, &owner, &failure);
    spill_owner_release(&owner);
    return code == SPILL_OK ? SPILL_OK
                            : report_owner(pass, code, &failure, &nothing, &migrated, error);
}

static spill_code_t predict_unmanaged(pass_t *pass, const spill_oversized_t *oversized,
                                      spill_error_t *error)
{
    return oversized->ours ? SPILL_OK : predict(pass, &oversized->owner, error);
}

static spill_code_t predict_ours(void *context, const spill_value_t *owner, spill_error_t *error)
{
    return predict(context, owner, error);
}

spill_code_t spill_migrate_predict(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_migrate_options_t *options,
                                   spill_migrate_result_t *result, spill_error_t *error)
{
    spill_array_t array = {.store = store, .definition = *definition};
    pass_t pass = begin_pass(&array, options, result);
    if (!options->planned || !spill_storable_may_refuse(options->planned))
        return SPILL_OK;
    spill_code_t code = store->ops->bind(store, definition, &array.binding, error);
    bool saved = code == SPILL_OK;
    if (saved || code == SPILL_NOT_FOUND)
        code = each_oversized(&pass, predict_unmanaged, OWNERS_AT_A_TIME, error);
    return code == SPILL_OK && saved ? spill_each_owner(&array, predict_ours, &pass, true, error)
                                     : code;
}

/* ---- pages without a head -------------------------------------------------------------------- */

/*
 * Report whether the pass visited the unmanaged array beside the pages. It refused and reported
 * that array, so do not report it again.
 */
static spill_code_t was_visited(const spill_owner_t *owner, bool *visited, spill_error_t *error)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_unmanaged_request(owner, 1);
    spill_code_t code = spill_owner_call(owner, &read, &head, error);
    *visited = code == SPILL_OK && !head.state.present && head.run.count > 0;
    spill_response_release(&head);
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

/* Free an abandoned copy of a full document that was deleted or emptied afterwards. */
static spill_code_t free_given_up(const spill_owner_t *owner, bool *freed, spill_error_t *error)
{
    spill_response_t page = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_read_state(owner, 0, &page, error);
    bool given_up =
        code == SPILL_OK && page.state.present && page.state.lease > 0 && page.state.closed;
    if (given_up)
        code = spill_free_pages(owner, error);
    *freed = given_up && code == SPILL_OK;
    spill_response_release(&page);
    return code;
}

static spill_code_t report_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    pass_t *pass = context;
    spill_owner_t owner;
    spill_error_t failure;
    spill_migrate_result_t nothing = {0};
    spill_migrated_t migrated = {.owner = &orphan->owner};
    char text[SPILL_FINDING_TEXT_SIZE];
    bool stays = false, visited = true, freed = false;
    spill_code_t code =
        orphan->dropped ? SPILL_OK : spill_orphan_stays(pass->array, orphan, &stays, error);
    if (code != SPILL_OK || !stays)
        return code;
    code = spill_owner_init(&owner, pass->array, &orphan->owner, &failure);
    if (code == SPILL_OK)
        code = was_visited(&owner, &visited, &failure);
    if (code == SPILL_OK && !visited)
        code = free_given_up(&owner, &freed, &failure);
    if (code == SPILL_OK && !visited && !freed) {
        spill_orphan_tell(orphan, text, sizeof text);
        code = spill_fail(&failure, SPILL_REFUSED, "%s", text);
        spill_owner_name(&owner, code, &failure);
    }
    spill_owner_release(&owner);
    return code == SPILL_OK ? SPILL_OK
                            : report_owner(pass, code, &failure, &nothing, &migrated, error);
}

/* Report owners whose document was deleted or replaced. One search, and two reads for each. */
static spill_code_t report_orphans(pass_t *pass, spill_error_t *error)
{
    spill_array_t *array = pass->array;
    return array->store->ops->others_write
               ? spill_each_orphan(array, NULL, report_orphan, pass, error)
               : SPILL_OK;
}

/* ---- the pass -------------------------------------------------------------------------------- */

spill_code_t spill_migrate(spill_array_t *array, const spill_migrate_options_t *options,
                           spill_migrate_result_t *result, spill_error_t *error)
{
    pass_t pass = begin_pass(array, options, result);
    spill_code_t code = spill_migrate_check(&array->definition, error);
    if (code == SPILL_OK)
        code = each_oversized(&pass, reshape, OWNERS_AT_A_TIME, error);
    return code == SPILL_OK ? report_orphans(&pass, error) : code;
}

/* ---- undo ------------------------------------------------------------------------------------ */

static spill_code_t check_fits(void *context, const spill_value_t *value, spill_error_t *error)
{
    pass_t *pass = context;
    spill_owner_t owner;
    spill_error_t failure;
    int64_t bytes = 0;
    spill_code_t code = spill_owner_init(&owner, pass->array, value, &failure);
    if (code == SPILL_OK)
        code = spill_unmanage_size(&owner, &bytes, &failure);
    spill_owner_release(&owner);
    pass->result->owners++;
    spill_migrate_result_t nothing = {0};
    spill_migrated_t migrated = {.owner = value};
    return code == SPILL_OK ? SPILL_OK
                            : report_owner(pass, code, &failure, &nothing, &migrated, error);
}

static spill_code_t unmanage(pass_t *pass, const spill_value_t *value, spill_error_t *error)
{
    spill_owner_t owner;
    spill_error_t failure;
    int64_t elements = 0, started_us = 0;
    spill_code_t code = wait_for_turn(pass, &started_us, error);
    if (code != SPILL_OK)
        return code;
    code = spill_owner_init(&owner, pass->array, value, &failure);
    if (code == SPILL_OK)
        code = spill_unmanage(&owner, &elements, &failure);
    spill_owner_release(&owner);
    end_turn(pass, elements > 0 ? elements : 1, started_us);
    spill_migrate_result_t added = {.owners = 1, .elements = elements};
    spill_migrated_t migrated = {.owner = value, .elements = elements, .given_back = true};
    return report_owner(pass, code, &failure, &added, &migrated, error);
}

static spill_code_t unmanage_owner(void *context, const spill_value_t *owner, spill_error_t *error)
{
    return unmanage(context, owner, error);
}

/*
 * Free the pages that an earlier undo left when it died after it had unmanaged the array. Skip an
 * array that is managed: some client has adopted it again meanwhile.
 */
static spill_code_t finish_undo(pass_t *pass, const spill_oversized_t *oversized,
                                spill_error_t *error)
{
    spill_owner_t owner;
    spill_error_t failure;
    spill_migrate_result_t nothing = {0};
    spill_migrated_t migrated = {.owner = &oversized->owner};
    if (oversized->ours)
        return SPILL_OK;
    spill_code_t code = spill_owner_init(&owner, pass->array, &oversized->owner, &failure);
    if (code == SPILL_OK)
        code = spill_free_pages(&owner, &failure);
    spill_owner_release(&owner);
    return code == SPILL_OK ? SPILL_OK
                            : report_owner(pass, code, &failure, &nothing, &migrated, error);
}

static spill_code_t count_ours(void *context, const spill_value_t *owner, spill_error_t *error)
{
    (void)owner;
    (void)error;
    ++*(int64_t *)context;
    return SPILL_OK;
}

static spill_code_t check_none_adopted(spill_array_t *array, spill_error_t *error)
{
    int64_t ours = 0;
    spill_code_t code = spill_each_owner(array, count_ours, &ours, true, error);
    if (code == SPILL_OK && ours > 0)
        return spill_fail(error, SPILL_REFUSED,
                          "%" PRId64 " arrays of '%s' are managed again: stop the programs that "
                          "adopt them (`spillway sweep', another migration, programs with the "
                          "library), then undo once more",
                          ours, array->definition.name);
    return code;
}

spill_code_t spill_migrate_check_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                      spill_migrate_result_t *result, spill_error_t *error)
{
    pass_t pass = begin_pass(array, options, result);
    spill_code_t code = spill_migrate_check(&array->definition, error);
    int64_t failed = result->failed;
    if (code == SPILL_OK)
        code = spill_each_owner(array, check_fits, &pass, false, error);
    if (code == SPILL_OK && result->failed > failed)
        return spill_fail(error, SPILL_TOO_BIG,
                          "%" PRId64 " owners of '%s' cannot be undone; nothing was changed",
                          result->failed - failed, array->definition.name);
    return code;
}

spill_code_t spill_migrate_undo(spill_array_t *array, const spill_migrate_options_t *options,
                                spill_migrate_result_t *result, spill_error_t *error)
{
    pass_t pass = begin_pass(array, options, result);
    spill_migrate_result_t measured = {0};
    spill_code_t code = spill_migrate_check_undo(array, options, &measured, error);
    result->failed += measured.failed;
    if (code == SPILL_OK)
        code = spill_each_owner(array, unmanage_owner, &pass, false, error);
    if (code == SPILL_OK)
        code = each_oversized(&pass, finish_undo, OWNERS_AT_A_TIME, error);
    if (code == SPILL_OK)
        code = report_orphans(&pass, error);
    return code == SPILL_OK ? check_none_adopted(array, error) : code;
}
