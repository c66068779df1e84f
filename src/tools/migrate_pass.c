/* A pass of a migration over the owners of an array. */
#include "tools/migrate_pass.h"

#include "core/array.h"
#include "tools/parallel.h"
#include "util/error.h"

#include <spillway/verify.h>

#include <string.h>

spill_migrate_pass_t spill_migrate_pass_begin(spill_array_t *array,
                                              const spill_migrate_options_t *options,
                                              spill_migrate_result_t *result)
{
    return (spill_migrate_pass_t){.array = array,
                                  .options = options,
                                  .result = result,
                                  .report_lock = PTHREAD_MUTEX_INITIALIZER};
}

/* ---- owners to reshape ----------------------------------------------------------------------- */

/* A walk over these owners, each once, in the store's order. */
typedef struct walk {
    spill_migrate_pass_t *pass;
    spill_migrate_visit_fn visit;
    spill_cursor_t cursor;
} walk_t;

/* One of them, with a copy of its owner's bytes. */
typedef struct visit {
    spill_oversized_t oversized;
    uint8_t owner[];
} visit_t;

/* From this size on, a document may have no room for the bytes that ADOPT adds, about 300. */
static int64_t document_bytes(const spill_migrate_options_t *options)
{
    enum { ROOM_BYTES = 1024 };
    return options && options->full_bytes > 0 ? options->full_bytes
                                              : SPILL_DOCUMENT_BYTES_MAX - ROOM_BYTES;
}

/* *item: the next one, or NULL. The cursor moves on while other threads visit. */
static spill_code_t next_oversized(void *context, void **item, spill_error_t *error)
{
    walk_t *walk = context;
    const spill_item_t *found;
    *item = NULL;
    SPILL_TRY(spill_cursor_next(&walk->cursor, &found, error));
    if (!found)
        return SPILL_OK;
    size_t owner_bytes = found->oversized.owner.size_bytes;
    visit_t *one = bson_malloc(sizeof *one + owner_bytes);
    one->oversized = found->oversized;
    if (owner_bytes > 0)
        memcpy(one->owner, found->oversized.owner.data, owner_bytes);
    one->oversized.owner.data = one->owner;
    *item = one;
    return SPILL_OK;
}

static spill_code_t visit_one(void *context, void *item, spill_error_t *error)
{
    const walk_t *walk = context;
    visit_t *one = item;
    return walk->visit(walk->pass, &one->oversized, error);
}

spill_code_t spill_migrate_each(spill_migrate_pass_t *pass, spill_migrate_visit_fn visit,
                                size_t at_a_time, spill_error_t *error)
{
    spill_array_t *array = pass->array;
    const spill_bounds_t *bounds = &array->definition.bounds;
    walk_t walk = {.pass = pass, .visit = visit};
    walk.cursor =
        (spill_cursor_t){.store = array->store,
                         .definition = &array->definition,
                         .binding = &array->binding,
                         .query = {.list = SPILL_LIST_OVERSIZED,
                                   .limit = at_a_time,
                                   .oversized = {.slots = bounds->threshold + bounds->page_capacity,
                                                 .bytes = bounds->head_bytes_max,
                                                 .miscounts = true,
                                                 .full = document_bytes(pass->options)}}};
    const spill_parallel_t job = {
        .threads = pass->options ? (size_t)pass->options->threads : 1,
        .allowed = pass->options ? spill_throttle_threads(pass->options->throttle) : NULL,
        .next = next_oversized,
        .work = visit_one,
        .free = bson_free,
        .context = &walk};
    spill_code_t code = spill_parallel(&job, error);
    spill_cursor_release(&walk.cursor);
    return code;
}

/* ---- managed owners -------------------------------------------------------------------------- */

typedef struct owners_walk {
    spill_array_t *array;
    spill_each_fn call;
    void *context;
    spill_cursor_t cursor;
} owners_walk_t;

/* *item: the next owner, {"": owner}; or NULL. */
static spill_code_t next_owner(void *context, void **item, spill_error_t *error)
{
    owners_walk_t *walk = context;
    const spill_item_t *found;
    *item = NULL;
    if (spill_store_stopped(walk->array->store))
        return spill_walk_stopped(error);
    SPILL_TRY(spill_cursor_next(&walk->cursor, &found, error));
    if (!found)
        return SPILL_OK;
    bson_t *owner = bson_new();
    spill_value_append(&found->owner, owner, "");
    *item = owner;
    return SPILL_OK;
}

static spill_code_t visit_owner(void *context, void *item, spill_error_t *error)
{
    const owners_walk_t *walk = context;
    bson_iter_t iter;
    bson_iter_init_find(&iter, item, "");
    spill_value_t owner = spill_value_from_iter(&iter);
    return walk->call(walk->context, &owner, error);
}

static void free_owner(void *item)
{
    bson_destroy(item);
}

spill_code_t spill_migrate_each_owner(spill_array_t *array, int threads, spill_each_fn call,
                                      void *context, spill_error_t *error)
{
    owners_walk_t walk = {.array = array, .call = call, .context = context};
    walk.cursor =
        (spill_cursor_t){.store = array->store,
                         .definition = &array->definition,
                         .binding = &array->binding,
                         .query = {.list = SPILL_LIST_OWNERS, .limit = SPILL_OWNERS_SURVEYED}};
    const spill_parallel_t job = {.threads = (size_t)threads,
                                  .next = next_owner,
                                  .work = visit_owner,
                                  .free = free_owner,
                                  .context = &walk};
    spill_code_t code = spill_parallel(&job, error);
    spill_cursor_release(&walk.cursor);
    return code;
}

/* ---- reports --------------------------------------------------------------------------------- */

bool spill_migrate_is_owner_failure(spill_code_t code)
{
    return code == SPILL_REFUSED || code == SPILL_TOO_BIG || code == SPILL_CORRUPT ||
           code == SPILL_CONFLICT || code == SPILL_INVALID;
}

/* `added`: what this owner adds to the result. */
spill_code_t spill_migrate_report(spill_migrate_pass_t *pass, spill_code_t code,
                                  const spill_error_t *failure, const spill_migrate_result_t *added,
                                  spill_migrated_t *migrated, spill_error_t *error)
{
    const spill_migrate_options_t *options = pass->options;
    spill_migrate_result_t *result = pass->result;
    bool skipped = spill_migrate_is_owner_failure(code), continues = code == SPILL_OK || skipped;
    migrated->failed = skipped ? failure : NULL;
    pthread_mutex_lock(&pass->report_lock);
    result->owners += added->owners;
    result->unmanaged += skipped ? 0 : added->unmanaged;
    result->full += skipped ? 0 : added->full;
    result->elements += added->elements;
    result->bytes += added->bytes;
    result->moved += added->moved;
    result->pages += added->pages;
    result->changed += added->changed;
    result->failed += skipped ? 1 : 0;
    if (continues && options->migrated)
        options->migrated(options->context, migrated);
    if (continues && options->progress)
        options->progress(options->context, result);
    pthread_mutex_unlock(&pass->report_lock);
    if (!continues && error)
        *error = *failure;
    return continues ? SPILL_OK : code;
}

spill_code_t spill_migrate_wait(spill_migrate_pass_t *pass, int64_t *started_us,
                                spill_error_t *error)
{
    spill_throttle_t *throttle = pass->options->throttle;
    *started_us = 0;
    if (!throttle)
        return SPILL_OK;
    bool continues = spill_throttle_wait(throttle);
    *started_us = spill_throttle_now_us(throttle);
    return continues ? SPILL_OK : spill_walk_stopped(error);
}

void spill_migrate_end_turn(spill_migrate_pass_t *pass, int64_t elements, int64_t started_us)
{
    spill_throttle_t *throttle = pass->options->throttle;
    if (!throttle)
        return;
    spill_throttle_ran(throttle, elements, spill_throttle_now_us(throttle) - started_us);
}

spill_code_t spill_migrate_report_failure(spill_migrate_pass_t *pass, const spill_value_t *owner,
                                          spill_code_t code, const spill_error_t *failure,
                                          spill_error_t *error)
{
    const spill_migrate_result_t nothing = {0};
    spill_migrated_t migrated = {.owner = owner};
    return code == SPILL_OK ? SPILL_OK
                            : spill_migrate_report(pass, code, failure, &nothing, &migrated, error);
}

/* ---- pages without a head -------------------------------------------------------------------- */

static spill_code_t is_unmanaged(const spill_owner_t *owner, bool *unmanaged, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    spill_request_t read = spill_owner_unmanaged_request(owner, 1);
    spill_code_t code = spill_owner_call(owner, &read, &head, error);
    *unmanaged = code == SPILL_OK && !head.state.present && head.run.count > 0;
    return code == SPILL_REFUSED ? SPILL_OK : code;
}

spill_code_t spill_migrate_is_unmanaged(const spill_migrate_pass_t *pass,
                                        const spill_value_t *value, bool *unmanaged,
                                        spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    *unmanaged = false;
    SPILL_TRY(spill_owner_init(&owner, pass->array, value, error));
    return is_unmanaged(&owner, unmanaged, error);
}

/* Free an abandoned copy of a full document that was deleted or emptied afterwards. */
static spill_code_t free_abandoned(const spill_owner_t *owner, bool *freed, spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    *freed = false;
    SPILL_TRY(spill_owner_read_state(owner, 0, &page, error));
    if (!page.state.present || page.state.lease <= 0 || !page.state.closed)
        return SPILL_OK;
    SPILL_TRY(spill_free_pages(owner, error));
    *freed = true;
    return SPILL_OK;
}

/* SPILL_REFUSED, with the reason, unless the pages are freed or their array was visited. */
static spill_code_t examine_orphan(const spill_migrate_pass_t *pass, const spill_orphan_t *orphan,
                                   spill_error_t *error)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t owner = {0};
    char text[SPILL_FINDING_TEXT_SIZE];
    bool done;
    SPILL_TRY(spill_owner_init(&owner, pass->array, &orphan->owner, error));
    /* The pass visited an unmanaged array beside the pages, and reported it if it was refused. */
    SPILL_TRY(is_unmanaged(&owner, &done, error));
    if (!done)
        SPILL_TRY(free_abandoned(&owner, &done, error));
    if (done)
        return SPILL_OK;
    spill_orphan_tell(orphan, text, sizeof text);
    spill_fail(error, SPILL_REFUSED, "%s", text);
    return spill_owner_name(&owner, SPILL_REFUSED, error);
}

static spill_code_t report_orphan(void *context, const spill_orphan_t *orphan, spill_error_t *error)
{
    spill_migrate_pass_t *pass = context;
    spill_error_t failure;
    bool stays = false;
    if (!orphan->dropped)
        SPILL_TRY(spill_orphan_stays(pass->array, orphan, &stays, error));
    if (!stays)
        return SPILL_OK;
    spill_code_t code = examine_orphan(pass, orphan, &failure);
    return spill_migrate_report_failure(pass, &orphan->owner, code, &failure, error);
}

/* Report owners whose document was deleted or replaced. One search, and two reads for each. */
spill_code_t spill_migrate_report_orphans(spill_migrate_pass_t *pass, spill_error_t *error)
{
    spill_array_t *array = pass->array;
    return array->store->ops->others_write
               ? spill_each_orphan(array, NULL, report_orphan, pass, error)
               : SPILL_OK;
}
