/* The stored state of a consolidation: two small documents, the checkpoint and the place. */
#include "tools/consolidate/consolidate_run.h"

#include "bson/value.h"
#include "store/job.h"
#include "util/error.h"

#include <string.h>

static const char *const phase_names[] = {
    [SPILL_CONSOLIDATE_NONE] = "not begun",       [SPILL_CONSOLIDATE_COPYING] = "copying",
    [SPILL_CONSOLIDATE_CUTTING] = "cutting over", [SPILL_CONSOLIDATE_CUT] = "cut over",
    [SPILL_CONSOLIDATE_FINISHING] = "finishing",  [SPILL_CONSOLIDATE_FINISHED] = "finished",
    [SPILL_CONSOLIDATE_UNDOING] = "undoing",      [SPILL_CONSOLIDATE_RESTORING] = "restoring"};

const char *spill_consolidate_phase_name(spill_consolidate_phase_t phase)
{
    return phase_names[phase];
}

/* A stored checkpoint has begun. */
static const char *begun_phase_name(int phase)
{
    return phase == SPILL_CONSOLIDATE_NONE ? NULL : phase_names[phase];
}

#define PHASES .name_of = begun_phase_name, .values = SPILL_CONSOLIDATE_RESTORING + 1
#define ADDED .flags = SPILL_FIELD_OPTIONAL | SPILL_FIELD_LENIENT
#define STORED(type, member, ...)                                                                  \
    SPILL_FIELD(type, spill_consolidate_checkpoint_t, member, #member, __VA_ARGS__)
#define PLACE(type, member, ...)                                                                   \
    SPILL_FIELD(type, spill_consolidate_place_t, member, #member, __VA_ARGS__)

static const spill_field_t checkpoint_fields[] = {
    STORED(ENUM, phase, PHASES),
    STORED(VALUE, plan, .bson_type = BSON_TYPE_DOCUMENT),
    STORED(BOOL, copied, ADDED),
    STORED(BOOL, views, ADDED),
    STORED(BOOL, back, ADDED),
    STORED(NUMBER, open, ADDED),
    STORED(VALUE, indexes, .bson_type = BSON_TYPE_ARRAY)};
static const spill_field_t place_fields[] = {PLACE(ENUM, phase, PHASES, ADDED),
                                             PLACE(NUMBER, pass, ADDED),
                                             PLACE(NUMBER, member, ADDED),
                                             PLACE(NUMBER, changing, ADDED),
                                             SPILL_FIELD(VALUE, spill_consolidate_place_t,
                                                         stored_after, "after",
                                                         .bson_type = BSON_TYPE_DOCUMENT, ADDED),
                                             PLACE(OID, by, ADDED)};
static const spill_record_t checkpoint_record =
    SPILL_RECORD("consolidation", spill_consolidate_checkpoint_t, checkpoint_fields);
static const spill_record_t place_record =
    SPILL_RECORD("place", spill_consolidate_place_t, place_fields);

static const spill_job_kind_t checkpoint_kind = {
    .suffix = ":consolidate",
    .activity = "the consolidation into",
    .record = &checkpoint_record,
    .stored = offsetof(spill_consolidate_checkpoint_t, stored)};
static const spill_job_kind_t place_kind = {.suffix = ":consolidate.at",
                                            .activity = "the consolidation into",
                                            .record = &place_record,
                                            .stored = offsetof(spill_consolidate_place_t, stored)};

/* A whole document as a value, which borrows it. */
static spill_value_t value_of(const bson_t *document)
{
    return (spill_value_t){
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
}

static spill_job_catalog_t catalog_of(const spill_consolidate_run_t *run)
{
    return (spill_job_catalog_t){.admin = run->admin};
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

static spill_code_t check_plan(const spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidate_checkpoint_t *checkpoint = &run->checkpoint;
    const char *into = run->group->into;
    spill_value_t plan = value_of(run->group->document);
    if (spill_value_equal(&checkpoint->plan, &plan))
        return SPILL_OK;
    if (checkpoint->phase == SPILL_CONSOLIDATE_FINISHED)
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' is finished with another plan, and '%s' "
                          "belongs to the application: nothing is added to it. Give other "
                          "collections another 'into', or write their documents to '%s' by other "
                          "means",
                          into, into, into);
    if (checkpoint->phase == SPILL_CONSOLIDATE_FINISHING)
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' is being finished with another plan: "
                          "continue with that plan",
                          into);
    return spill_fail(error, SPILL_REFUSED,
                      "the consolidation into '%s' was begun with another plan: continue with "
                      "that plan, or undo it with that plan first",
                      into);
}

static spill_code_t load_checkpoint(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    SPILL_TRY(
        spill_job_load(&catalog, &checkpoint_kind, run->group->into, &run->checkpoint, error));
    return run->checkpoint.stored ? check_plan(run, error) : SPILL_OK;
}

spill_code_t spill_consolidate_enter(spill_consolidate_run_t *run, spill_consolidate_phase_t phase,
                                     spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    spill_consolidate_checkpoint_t next = run->checkpoint;
    next.phase = phase;
    next.plan = value_of(run->group->document);
    SPILL_TRY(spill_job_save(&catalog, &checkpoint_kind, run->group->into, &next, error));
    run->checkpoint = next;
    return SPILL_OK;
}

spill_code_t spill_consolidate_checkpoint_delete(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    SPILL_TRY(spill_consolidate_check_own(run, error));
    SPILL_TRY(spill_job_delete(&catalog, &place_kind, run->group->into, error));
    return spill_job_delete(&catalog, &checkpoint_kind, run->group->into, error);
}

/* ---- ownership ------------------------------------------------------------------------------- */

spill_code_t spill_consolidate_check_own(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    const spill_job_kind_t *const kinds[2] = {&checkpoint_kind, &place_kind};
    const void *const jobs[2] = {&run->checkpoint, &run->place};
    const char *into = run->group->into;
    pthread_rwlock_rdlock(&run->place_lock);
    spill_code_t code =
        run->place.stored
            ? spill_job_check_both(run->admin, kinds, into, jobs, error)
            : spill_job_check(&catalog, &checkpoint_kind, into, &run->checkpoint, error);
    pthread_rwlock_unlock(&run->place_lock);
    return code;
}

/* Does the first pass need the index? Only a unique one can refuse a document. */
static bool is_unique(const bson_t *index)
{
    return spill_document_is_true(index, "unique");
}

/* A command for each index, so that none takes longer than it must. */
static spill_code_t create_indexes(spill_consolidate_run_t *run, bool only_unique,
                                   spill_error_t *error)
{
    bson_t indexes;
    bson_iter_t iter;
    bson_init_static(&indexes, run->checkpoint.indexes.data, run->checkpoint.indexes.size_bytes);
    bson_iter_init(&iter, &indexes);
    while (bson_iter_next(&iter)) {
        bson_t index;
        spill_value_t value = spill_value_from_iter(&iter);
        if (!bson_init_static(&index, value.data, value.size_bytes) ||
            (only_unique && !is_unique(&index)))
            continue;
        SPILL_SCOPED(bson_destroy) bson_t one = BSON_INITIALIZER;
        BSON_APPEND_DOCUMENT(&one, "0", &index);
        SPILL_TRY(spill_consolidate_check_own(run, error));
        SPILL_TRY(run->admin->ops->create(run->admin, run->group->into, &one, error));
    }
    return SPILL_OK;
}

spill_code_t spill_consolidate_create(spill_consolidate_run_t *run, spill_error_t *error)
{
    bool copies = run->place.pass == 1 && run->throttle.options.latency_max_s == 0;
    return create_indexes(run, copies, error);
}

spill_code_t spill_consolidate_create_rest(spill_consolidate_run_t *run, spill_error_t *error)
{
    return create_indexes(run, false, error);
}

spill_code_t spill_consolidate_create_view(spill_consolidate_run_t *run, const char *name,
                                           const bson_t *pipeline, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_check_own(run, error));
    return run->admin->ops->create_view(run->admin, name, run->group->into, pipeline, error);
}

spill_code_t spill_consolidate_rename(spill_consolidate_run_t *run, const char *from,
                                      const char *to, spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_check_own(run, error));
    return run->admin->ops->rename(run->admin, from, to, error);
}

spill_code_t spill_consolidate_drop(spill_consolidate_run_t *run, const char *collection,
                                    spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_check_own(run, error));
    return run->admin->ops->drop(run->admin, collection, error);
}

/* ---- the place ------------------------------------------------------------------------------- */

static void free_place(spill_consolidate_place_t *place)
{
    spill_job_release(&place_kind, place);
}

/* The place where the passes of a phase begin. It keeps `by` and `stored`. */
static void reset_place(spill_consolidate_run_t *run)
{
    spill_consolidate_place_t *place = &run->place;
    bool first = run->checkpoint.phase == SPILL_CONSOLIDATE_COPYING && !run->checkpoint.copied;
    place->phase = run->checkpoint.phase;
    place->pass = first ? 1 : 2;
    place->member = place->changing = 0;
    bson_reinit(place->after);
}

spill_code_t spill_consolidate_place_load(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    spill_job_catalog_t catalog = catalog_of(run);
    SPILL_SCOPED(free_place) spill_consolidate_place_t loaded = {0};
    if (place->stored) {
        spill_job_decode(&place_kind, place->stored, &loaded);
    } else {
        SPILL_TRY(spill_job_load(&catalog, &place_kind, run->group->into, &loaded, error));
        place->stored = loaded.stored;
        loaded.stored = NULL; /* values of `loaded` now borrow from the place's document */
    }
    reset_place(run);
    if (loaded.phase != run->checkpoint.phase)
        return SPILL_OK;
    place->pass = loaded.pass;
    place->member = loaded.member;
    place->changing = loaded.changing;
    bson_t after;
    const spill_value_t *stored = &loaded.stored_after;
    if (stored->data && bson_init_static(&after, stored->data, stored->size_bytes))
        bson_concat(place->after, &after);
    return SPILL_OK;
}

spill_code_t spill_consolidate_place_save(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    spill_consolidate_place_t next = run->place;
    next.stored_after = value_of(run->place.after);
    pthread_rwlock_wrlock(&run->place_lock);
    spill_code_t code = spill_job_save(&catalog, &place_kind, run->group->into, &next, error);
    if (code == SPILL_OK)
        run->place.stored = next.stored;
    pthread_rwlock_unlock(&run->place_lock);
    return code;
}

/* If CUTTING has no place yet, no cut-over may have put a collection aside. */
static spill_code_t check_first_place(spill_consolidate_run_t *run, spill_error_t *error)
{
    SPILL_SCOPED(free_place) spill_consolidate_place_t loaded = {0};
    if (run->place.stored)
        spill_job_decode(&place_kind, run->place.stored, &loaded);
    if (loaded.phase == SPILL_CONSOLIDATE_CUTTING)
        return SPILL_OK;
    SPILL_TRY(spill_consolidate_list(run, error));
    SPILL_TRY(spill_consolidate_check_own(run, error)); /* another run may have put them aside */
    for (size_t i = 0; i < run->group->count; i++) {
        const char *kept = run->group->members[i].kept;
        if (spill_consolidate_kind_of(run, kept, NULL) != SPILL_CONSOLIDATE_ABSENT)
            return spill_fail(error, SPILL_CORRUPT,
                              "'%s' is put aside, but the entry '%s:consolidate.at' is missing: "
                              "which collections are open in '%s' is not known",
                              kept, run->group->into, run->group->into);
    }
    return SPILL_OK;
}

spill_code_t spill_consolidate_own_place(spill_consolidate_run_t *run, size_t *open,
                                         spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    *open = 0;
    SPILL_TRY(spill_consolidate_place_load(run, error));
    SPILL_TRY(check_first_place(run, error));
    if (place->changing > 0) /* from a version that compared all members together */
        place->member = place->changing = 0;
    SPILL_TRY(spill_consolidate_place_save(run, error));
    *open = place->member;
    return SPILL_OK;
}

spill_code_t spill_consolidate_place_delete(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_job_catalog_t catalog = catalog_of(run);
    return spill_job_delete(&catalog, &place_kind, run->group->into, error);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static double measure_latency(void *context)
{
    spill_consolidate_run_t *run = context;
    spill_job_catalog_t catalog = catalog_of(run);
    spill_consolidate_checkpoint_t read;
    int64_t began_us = spill_throttle_now_us(&run->throttle);
    spill_code_t code = spill_job_load(&catalog, &checkpoint_kind, run->group->into, &read, NULL);
    int64_t took_us = spill_throttle_now_us(&run->throttle) - began_us;
    spill_job_release(&checkpoint_kind, &read);
    return code == SPILL_OK || code == SPILL_CORRUPT ? (double)took_us / 1e6 : -1;
}

static double forward_lag(void *context)
{
    const spill_throttle_options_t *given =
        &((const spill_consolidate_run_t *)context)->options->throttle;
    return given->lag ? given->lag(given->context) : 0;
}

static bool must_stop(void *context)
{
    const spill_throttle_options_t *given =
        &((const spill_consolidate_run_t *)context)->options->throttle;
    return given->stop && given->stop(given->context);
}

static void forward_notice(void *context, bool waits, const char *text)
{
    const spill_throttle_options_t *given =
        &((const spill_consolidate_run_t *)context)->options->throttle;
    if (given->notice)
        given->notice(given->context, waits, text);
}

spill_code_t spill_consolidate_start(spill_consolidate_run_t *run, spill_raw_admin_t *admin,
                                     const spill_consolidation_t *group,
                                     const spill_consolidate_options_t *options,
                                     spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_throttle_options_t throttle = options->throttle;
    *run = (spill_consolidate_run_t){.admin = admin,
                                     .group = group,
                                     .options = options,
                                     .result = result,
                                     .lock = PTHREAD_MUTEX_INITIALIZER,
                                     .place_lock = PTHREAD_RWLOCK_INITIALIZER};
    *result = (spill_consolidate_result_t){0};
    run->place.after = bson_new();
    bson_oid_init(&run->place.by, NULL);
    bson_init(&run->listing);
    throttle.latency = measure_latency;
    throttle.lag = forward_lag;
    throttle.stop = must_stop;
    throttle.notice = forward_notice;
    throttle.context = run;
    spill_throttle_init(&run->throttle, &throttle);
    return load_checkpoint(run, error);
}

void spill_consolidate_release(spill_consolidate_run_t *run)
{
    spill_job_release(&checkpoint_kind, &run->checkpoint);
    bson_destroy(run->place.after);
    spill_job_release(&place_kind, &run->place);
    bson_destroy(&run->listing);
    pthread_mutex_destroy(&run->lock);
    pthread_rwlock_destroy(&run->place_lock);
}

/* ---- existing collections -------------------------------------------------------------------- */

spill_code_t spill_consolidate_list(spill_consolidate_run_t *run, spill_error_t *error)
{
    bson_destroy(&run->listing);
    return run->admin->ops->list(run->admin, NULL, &run->listing, error);
}

static spill_consolidate_kind_t kind_in(const bson_t *description)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, description, "type") || !BSON_ITER_HOLDS_UTF8(&iter))
        return SPILL_CONSOLIDATE_COLLECTION;
    const char *type = bson_iter_utf8(&iter, NULL);
    if (strcmp(type, "collection") == 0)
        return SPILL_CONSOLIDATE_COLLECTION;
    return strcmp(type, "view") == 0 ? SPILL_CONSOLIDATE_VIEW : SPILL_CONSOLIDATE_OTHER;
}

spill_consolidate_kind_t spill_consolidate_kind_of(const spill_consolidate_run_t *run,
                                                   const char *name, bson_t *options)
{
    bson_iter_t iter, field;
    if (options)
        bson_init(options);
    bson_iter_init(&iter, &run->listing);
    while (bson_iter_next(&iter)) {
        bson_t description;
        const uint8_t *data;
        uint32_t size;
        bson_iter_document(&iter, &size, &data);
        if (!bson_init_static(&description, data, size) ||
            !bson_iter_init_find(&field, &description, "name") || !BSON_ITER_HOLDS_UTF8(&field) ||
            strcmp(bson_iter_utf8(&field, NULL), name) != 0)
            continue;
        if (options && bson_iter_init_find(&field, &description, "options") &&
            BSON_ITER_HOLDS_DOCUMENT(&field)) {
            bson_iter_document(&field, &size, &data);
            if (!bson_init_static(options, data, size))
                bson_init(options);
        }
        return kind_in(&description);
    }
    return SPILL_CONSOLIDATE_ABSENT;
}

spill_code_t spill_consolidate_check_names(const spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidation_t *group = run->group;
    for (size_t i = 0; i <= group->count; i++) {
        const char *name = i < group->count ? group->members[i].collection : group->into;
        const char *kept = i < group->count ? group->members[i].kept : group->aside;
        if (spill_consolidate_kind_of(run, name, NULL) == SPILL_CONSOLIDATE_COLLECTION &&
            spill_consolidate_kind_of(run, kept, NULL) != SPILL_CONSOLIDATE_ABSENT)
            return spill_fail(error, SPILL_REFUSED,
                              "a client has written to '%s' after it was put aside as '%s': move "
                              "its documents to where they belong, and drop it",
                              name, kept);
    }
    return SPILL_OK;
}
