/* The stored state of a consolidation: two small documents, the checkpoint and the place. */
#include "bson/number.h"
#include "tools/consolidate/run.h"

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

/* False: the document has no phase of a known name. */
static bool phase_in(const bson_t *document, spill_consolidate_phase_t *phase)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, document, "phase") || !BSON_ITER_HOLDS_UTF8(&iter))
        return false;
    for (int i = SPILL_CONSOLIDATE_COPYING; i <= SPILL_CONSOLIDATE_RESTORING; i++)
        if (strcmp(bson_iter_utf8(&iter, NULL), phase_names[i]) == 0) {
            *phase = (spill_consolidate_phase_t)i;
            return true;
        }
    return false;
}

static bool flag_in(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, field) && bson_iter_as_bool(&iter);
}

static int64_t number_in(const bson_t *document, const char *field)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, field) ? spill_iter_int64(&iter) : 0;
}

/* A sub-document or an array; borrows. */
static bool inner_in(const bson_t *document, const char *field, bson_t *inner)
{
    bson_iter_t iter;
    spill_value_t value;
    if (!bson_iter_init_find(&iter, document, field))
        return false;
    value = spill_value_from_iter(&iter);
    return (value.type == BSON_TYPE_DOCUMENT || value.type == BSON_TYPE_ARRAY) &&
           bson_init_static(inner, value.data, value.size_bytes);
}

/* Names of the two entries: names of imports end with 16 hexadecimal digits, these do not. */
static char *entry_name(const spill_consolidate_run_t *run, const char *which)
{
    return bson_strdup_printf("%s:consolidate%s", run->group->into, which);
}

static spill_code_t put_entry(spill_consolidate_run_t *run, const char *which, bson_t **stored,
                              bson_t *document, spill_error_t *error)
{
    bool done = false;
    char *name = entry_name(run, which);
    spill_code_t code =
        run->admin->ops->checkpoint_put(run->admin, name, *stored, document, &done, error);
    if (code == SPILL_OK && !done)
        code = spill_fail(error, SPILL_CONFLICT,
                          "another run consolidates into '%s' at the same time", run->group->into);
    bson_free(name);
    if (code == SPILL_OK) {
        bson_destroy(*stored);
        *stored = document;
    } else {
        bson_destroy(document);
    }
    return code;
}

/* ---- the checkpoint -------------------------------------------------------------------------- */

static spill_code_t decode_checkpoint(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_checkpoint_t *checkpoint = &run->checkpoint;
    bson_t plan, indexes;
    if (!phase_in(checkpoint->stored, &checkpoint->phase) ||
        !inner_in(checkpoint->stored, "plan", &plan) ||
        !inner_in(checkpoint->stored, "indexes", &indexes))
        return spill_fail(error, SPILL_CORRUPT,
                          "the checkpoint of the consolidation into '%s' cannot be read",
                          run->group->into);
    checkpoint->copied = flag_in(checkpoint->stored, "copied");
    checkpoint->views = flag_in(checkpoint->stored, "views");
    checkpoint->back = flag_in(checkpoint->stored, "back");
    checkpoint->open = number_in(checkpoint->stored, "open");
    checkpoint->indexes = bson_copy(&indexes);
    if (!bson_equal(&plan, run->group->document) && checkpoint->phase == SPILL_CONSOLIDATE_FINISHED)
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' is finished with another plan, and '%s' "
                          "belongs to the application: nothing is added to it. Give other "
                          "collections another 'into', or write their documents to '%s' by other "
                          "means",
                          run->group->into, run->group->into, run->group->into);
    if (!bson_equal(&plan, run->group->document) &&
        checkpoint->phase == SPILL_CONSOLIDATE_FINISHING)
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' is being finished with another plan: "
                          "continue with that plan",
                          run->group->into);
    if (!bson_equal(&plan, run->group->document))
        return spill_fail(error, SPILL_REFUSED,
                          "the consolidation into '%s' was begun with another plan: continue with "
                          "that plan, or undo it with that plan first",
                          run->group->into);
    return SPILL_OK;
}

spill_code_t spill_consolidate_checkpoint_load(spill_consolidate_run_t *run, spill_error_t *error)
{
    char *name = entry_name(run, "");
    spill_code_t code =
        run->admin->ops->checkpoint_get(run->admin, name, &run->checkpoint.stored, error);
    bson_free(name);
    return code == SPILL_OK && run->checkpoint.stored ? decode_checkpoint(run, error) : code;
}

spill_code_t spill_consolidate_enter(spill_consolidate_run_t *run, spill_consolidate_phase_t phase,
                                     spill_error_t *error)
{
    spill_consolidate_checkpoint_t *checkpoint = &run->checkpoint;
    bson_t none = BSON_INITIALIZER;
    bson_t *document = bson_new();
    BSON_APPEND_UTF8(document, "phase", phase_names[phase]);
    BSON_APPEND_DOCUMENT(document, "plan", run->group->document);
    BSON_APPEND_BOOL(document, "copied", checkpoint->copied);
    BSON_APPEND_BOOL(document, "views", checkpoint->views);
    BSON_APPEND_BOOL(document, "back", checkpoint->back);
    BSON_APPEND_INT64(document, "open", checkpoint->open);
    BSON_APPEND_ARRAY(document, "indexes", checkpoint->indexes ? checkpoint->indexes : &none);
    spill_code_t code = put_entry(run, "", &checkpoint->stored, document, error);
    if (code == SPILL_OK)
        checkpoint->phase = phase;
    return code;
}

static spill_code_t delete_entry(spill_consolidate_run_t *run, const char *which,
                                 spill_error_t *error)
{
    char *name = entry_name(run, which);
    spill_code_t code = run->admin->ops->checkpoint_delete(run->admin, name, error);
    bson_free(name);
    return code;
}

spill_code_t spill_consolidate_checkpoint_delete(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_check_own(run, error);
    if (code == SPILL_OK)
        code = delete_entry(run, ".at", error);
    return code == SPILL_OK ? delete_entry(run, "", error) : code;
}

/* ---- ownership ------------------------------------------------------------------------------- */

static spill_code_t check_entry(spill_consolidate_run_t *run, const char *which,
                                const bson_t *stored, spill_error_t *error)
{
    bson_t *found = NULL;
    char *name = entry_name(run, which);
    spill_code_t code = run->admin->ops->checkpoint_get(run->admin, name, &found, error);
    if (code == SPILL_OK && (!found || !stored || !bson_equal(found, stored)))
        code = spill_fail(error, SPILL_CONFLICT,
                          "another run has continued the consolidation into '%s' meanwhile: "
                          "this run ends without a change",
                          run->group->into);
    bson_destroy(found);
    bson_free(name);
    return code;
}

spill_code_t spill_consolidate_check_own(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = check_entry(run, "", run->checkpoint.stored, error);
    return code == SPILL_OK && run->place.stored ? check_entry(run, ".at", run->place.stored, error)
                                                 : code;
}

spill_code_t spill_consolidate_create(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_check_own(run, error);
    return code == SPILL_OK ? run->admin->ops->create(run->admin, run->group->into,
                                                      run->checkpoint.indexes, error)
                            : code;
}

spill_code_t spill_consolidate_create_view(spill_consolidate_run_t *run, const char *name,
                                           const bson_t *pipeline, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_check_own(run, error);
    return code == SPILL_OK
               ? run->admin->ops->create_view(run->admin, name, run->group->into, pipeline, error)
               : code;
}

spill_code_t spill_consolidate_rename(spill_consolidate_run_t *run, const char *from,
                                      const char *to, spill_error_t *error)
{
    spill_code_t code = spill_consolidate_check_own(run, error);
    return code == SPILL_OK ? run->admin->ops->rename(run->admin, from, to, error) : code;
}

spill_code_t spill_consolidate_drop(spill_consolidate_run_t *run, const char *collection,
                                    spill_error_t *error)
{
    spill_code_t code = spill_consolidate_check_own(run, error);
    return code == SPILL_OK ? run->admin->ops->drop(run->admin, collection, error) : code;
}

/* ---- the place ------------------------------------------------------------------------------- */

spill_code_t spill_consolidate_place_load(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    spill_consolidate_phase_t phase;
    bson_t after;
    if (!place->stored) {
        char *name = entry_name(run, ".at");
        spill_code_t code =
            run->admin->ops->checkpoint_get(run->admin, name, &place->stored, error);
        bson_free(name);
        if (code != SPILL_OK)
            return code;
    }
    place->phase = run->checkpoint.phase;
    place->pass =
        run->checkpoint.phase == SPILL_CONSOLIDATE_COPYING && !run->checkpoint.copied ? 1 : 2;
    place->member = place->changing = 0;
    bson_reinit(&place->after);
    if (!place->stored || !phase_in(place->stored, &phase) || phase != run->checkpoint.phase)
        return SPILL_OK;
    place->pass = number_in(place->stored, "pass");
    place->member = (size_t)number_in(place->stored, "member");
    place->changing = (size_t)number_in(place->stored, "changing");
    if (inner_in(place->stored, "after", &after))
        bson_concat(&place->after, &after);
    return SPILL_OK;
}

spill_code_t spill_consolidate_place_save(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_consolidate_place_t *place = &run->place;
    bson_t *document = bson_new();
    BSON_APPEND_UTF8(document, "phase", phase_names[place->phase]);
    BSON_APPEND_INT64(document, "pass", place->pass);
    BSON_APPEND_INT64(document, "member", (int64_t)place->member);
    BSON_APPEND_INT64(document, "changing", (int64_t)place->changing);
    BSON_APPEND_DOCUMENT(document, "after", &place->after);
    BSON_APPEND_OID(document, "by", &place->by);
    return put_entry(run, ".at", &run->place.stored, document, error);
}

/* If CUTTING has no place yet, no cut-over may have put a collection aside. */
static spill_code_t check_first_place(spill_consolidate_run_t *run, spill_error_t *error)
{
    spill_consolidate_phase_t phase;
    if (run->place.stored && phase_in(run->place.stored, &phase) &&
        phase == SPILL_CONSOLIDATE_CUTTING)
        return SPILL_OK;
    spill_code_t code = spill_consolidate_list(run, error);
    if (code == SPILL_OK) /* another run may have put them aside meanwhile */
        code = spill_consolidate_check_own(run, error);
    for (size_t i = 0; i < run->group->count && code == SPILL_OK; i++) {
        const char *kept = run->group->members[i].kept;
        if (spill_consolidate_kind_of(run, kept, NULL) != SPILL_CONSOLIDATE_ABSENT)
            code = spill_fail(error, SPILL_CORRUPT,
                              "'%s' is put aside, but the entry '%s:consolidate.at' is missing: "
                              "which collections are open in '%s' is not known",
                              kept, run->group->into, run->group->into);
    }
    return code;
}

spill_code_t spill_consolidate_own_place(spill_consolidate_run_t *run, size_t *open,
                                         spill_error_t *error)
{
    spill_consolidate_place_t *place = &run->place;
    *open = 0;
    spill_code_t code = spill_consolidate_place_load(run, error);
    if (code == SPILL_OK)
        code = check_first_place(run, error);
    if (place->changing > 0) /* from a version that compared all members together */
        place->member = place->changing = 0;
    if (code == SPILL_OK)
        code = spill_consolidate_place_save(run, error);
    if (code == SPILL_OK)
        *open = place->member;
    return code;
}

spill_code_t spill_consolidate_place_delete(spill_consolidate_run_t *run, spill_error_t *error)
{
    return delete_entry(run, ".at", error);
}

/* ---- a run ----------------------------------------------------------------------------------- */

static double measure_latency(void *context)
{
    spill_consolidate_run_t *run = context;
    bson_t *document = NULL;
    char *name = entry_name(run, "");
    int64_t began_us = spill_throttle_now_us(&run->throttle);
    spill_code_t code = run->admin->ops->checkpoint_get(run->admin, name, &document, NULL);
    int64_t took_us = spill_throttle_now_us(&run->throttle) - began_us;
    bson_destroy(document);
    bson_free(name);
    return code == SPILL_OK ? (double)took_us / 1e6 : -1;
}

static bool must_stop(void *context)
{
    const spill_throttle_options_t *given =
        &((const spill_consolidate_run_t *)context)->options->throttle;
    return given->stop && given->stop(given->context);
}

static void forward_notice(void *context, const char *text)
{
    const spill_throttle_options_t *given =
        &((const spill_consolidate_run_t *)context)->options->throttle;
    if (given->notice)
        given->notice(given->context, text);
}

spill_code_t spill_consolidate_start(spill_consolidate_run_t *run, spill_raw_admin_t *admin,
                                     const spill_consolidation_t *group,
                                     const spill_consolidate_options_t *options,
                                     spill_consolidate_result_t *result, spill_error_t *error)
{
    spill_throttle_options_t throttle = options->throttle;
    *run = (spill_consolidate_run_t){
        .admin = admin, .group = group, .options = options, .result = result};
    *result = (spill_consolidate_result_t){0};
    bson_init(&run->place.after);
    bson_oid_init(&run->place.by, NULL);
    bson_init(&run->listing);
    throttle.latency = measure_latency;
    throttle.stop = must_stop;
    throttle.notice = forward_notice;
    throttle.context = run;
    spill_throttle_init(&run->throttle, &throttle);
    return spill_consolidate_checkpoint_load(run, error);
}

void spill_consolidate_release(spill_consolidate_run_t *run)
{
    bson_destroy(run->checkpoint.indexes);
    bson_destroy(run->checkpoint.stored);
    bson_destroy(run->place.stored);
    bson_destroy(&run->place.after);
    bson_destroy(&run->listing);
}

/* ---- existing collections -------------------------------------------------------------------- */

spill_code_t spill_consolidate_list(spill_consolidate_run_t *run, spill_error_t *error)
{
    bson_destroy(&run->listing);
    return run->admin->ops->list(run->admin, &run->listing, error);
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
        if (options && !inner_in(&description, "options", options))
            bson_init(options);
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
