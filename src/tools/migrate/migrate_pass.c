/* A pass of a migration over the owners of an array. */
#include "tools/migrate/migrate_pass.h"
#include "layout/repair.h"

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
    spill_buffer_t before; /* of the first owner of a batch: the position before it; or empty */
    uint8_t owner[];
} visit_t;

/* Get the cursor's next item. If it is the first of a batch, set *before to the position before it.
 */
static spill_code_t move_on(spill_cursor_t *cursor, const spill_item_t **item,
                            spill_buffer_t *before, spill_error_t *error)
{
    *before = (spill_buffer_t)SPILL_BUFFER_INIT;
    if (cursor->next == cursor->listing.count)
        spill_buffer_append(before, cursor->after.data, cursor->after.size);
    spill_code_t code = spill_cursor_next(cursor, item, error);
    if (!*item)
        spill_buffer_release(before);
    return code;
}

/* From this size on, a document is full. */
static int64_t full_bytes(const spill_migrate_options_t *options)
{
    return options && options->full_bytes > 0
               ? options->full_bytes
               : SPILL_DOCUMENT_BYTES_MAX - SPILL_MIGRATE_ROOM_BYTES + 1;
}

/* *item: the next one, or NULL. The cursor moves on while other threads visit. */
static spill_code_t next_oversized(void *context, void **item, spill_error_t *error)
{
    walk_t *walk = context;
    const spill_item_t *found;
    spill_buffer_t before;
    *item = NULL;
    SPILL_TRY(move_on(&walk->cursor, &found, &before, error));
    if (!found)
        return SPILL_OK;
    size_t owner_bytes = found->oversized.owner.size_bytes;
    visit_t *one = bson_malloc(sizeof *one + owner_bytes);
    one->oversized = found->oversized;
    one->before = before;
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

static spill_code_t finish_visit(void *context, void *item, spill_error_t *error)
{
    const walk_t *walk = context;
    const visit_t *one = item;
    (void)error;
    spill_migrate_place_reach(walk->pass->place, 1, &one->before);
    return SPILL_OK;
}

static void free_visit(void *item)
{
    visit_t *one = item;
    spill_buffer_release(&one->before);
    bson_free(one);
}

static int64_t slots_of(const spill_migrate_pass_t *pass)
{
    const spill_bounds_t *bounds = &pass->array->definition.bounds;
    return bounds->threshold + bounds->page_capacity;
}

spill_code_t spill_migrate_pass_place(spill_migrate_pass_t *pass, spill_migrate_place_t *place,
                                      spill_error_t *error)
{
    const spill_definition_t *definition = &pass->array->definition;
    bool resumes = pass->options && pass->options->resumes;
    pass->place = place;
    return spill_migrate_place_begin(place, pass->array->store, definition->name, slots_of(pass),
                                     definition->bounds.head_bytes_max, resumes, error);
}

spill_code_t spill_migrate_each(spill_migrate_pass_t *pass, spill_migrate_visit_fn visit,
                                size_t at_a_time, spill_error_t *error)
{
    spill_array_t *array = pass->array;
    walk_t walk = {.pass = pass, .visit = visit};
    walk.cursor =
        (spill_cursor_t){.store = array->store,
                         .definition = &array->definition,
                         .binding = &array->binding,
                         .query = {.list = SPILL_LIST_OVERSIZED,
                                   .limit = at_a_time,
                                   .oversized = {.slots = slots_of(pass),
                                                 .bytes = array->definition.bounds.head_bytes_max,
                                                 .miscounts = true,
                                                 .full = full_bytes(pass->options)}}};
    const spill_parallel_t job = {
        .threads = pass->options ? (size_t)pass->options->threads : 1,
        .allowed = pass->options ? spill_throttle_threads(pass->options->throttle) : NULL,
        .next = next_oversized,
        .work = visit_one,
        .finish = pass->place ? finish_visit : NULL,
        .free = free_visit,
        .context = &walk};
    if (pass->place)
        spill_migrate_place_move(pass->place, &walk.cursor);
    spill_code_t code = spill_parallel(&job, error);
    spill_cursor_release(&walk.cursor);
    return code;
}

/* ---- managed owners -------------------------------------------------------------------------- */

typedef struct owners_walk {
    const spill_owners_walk_t *given;
    spill_cursor_t cursor;
    bool done[SPILL_OWNERS_SURVEYED]; /* of the cursor's batch */
} owners_walk_t;

/* One of them. */
typedef struct owner_visit {
    bson_t *owner; /* {"": owner} */
    spill_buffer_t before;
    int64_t count; /* owners that are done with it */
    bool done;
} owner_visit_t;

/* Prepare the batch that begins at the cursor. Return how many of its owners are done. */
static spill_code_t prepare(owners_walk_t *walk, int64_t *count, spill_error_t *error)
{
    const spill_owners_walk_t *given = walk->given;
    size_t owners = walk->cursor.listing.count;
    memset(walk->done, 0, sizeof walk->done);
    *count = 0;
    if (!given->prepare)
        return SPILL_OK;
    SPILL_TRY(given->prepare(given->context, &walk->cursor.listing, walk->done, error));
    for (size_t i = 0; i < owners; i++)
        *count += walk->done[i];
    return SPILL_OK;
}

static owner_visit_t *make_visit(const owners_walk_t *walk, const spill_value_t *owner)
{
    owner_visit_t *one = bson_malloc0(sizeof *one);
    one->owner = bson_new();
    spill_value_append(owner, one->owner, "");
    one->done = walk->done[walk->cursor.next - 1];
    one->count = one->done ? 0 : 1;
    return one;
}

static void free_owner(void *item)
{
    owner_visit_t *one = item;
    bson_destroy(one->owner);
    spill_buffer_release(&one->before);
    bson_free(one);
}

/* *item: the next owner that needs a call, or the first of a batch, which carries the position
 * before it; or NULL. */
static spill_code_t next_owner(void *context, void **item, spill_error_t *error)
{
    owners_walk_t *walk = context;
    const spill_item_t *found;
    spill_buffer_t before;
    *item = NULL;
    if (spill_store_stopped(walk->given->array->store))
        return spill_walk_stopped(error);
    do {
        bool first = walk->cursor.next == walk->cursor.listing.count;
        int64_t count = 0;
        SPILL_TRY(move_on(&walk->cursor, &found, &before, error));
        spill_code_t code = found && first ? prepare(walk, &count, error) : SPILL_OK;
        if (code != SPILL_OK)
            spill_buffer_release(&before);
        SPILL_TRY(code);
        if (!found || (!first && walk->done[walk->cursor.next - 1]))
            continue;
        owner_visit_t *one = make_visit(walk, &found->owner);
        one->before = before;
        one->count += count;
        *item = one;
    } while (found && !*item);
    return SPILL_OK;
}

static spill_code_t visit_owner(void *context, void *item, spill_error_t *error)
{
    const owners_walk_t *walk = context;
    const owner_visit_t *one = item;
    bson_iter_t iter;
    if (one->done)
        return SPILL_OK;
    bson_iter_init_find(&iter, one->owner, "");
    spill_value_t owner = spill_value_from_iter(&iter);
    return walk->given->call(walk->given->context, &owner, error);
}

static spill_code_t finish_owner(void *context, void *item, spill_error_t *error)
{
    const owners_walk_t *walk = context;
    const owner_visit_t *one = item;
    (void)error;
    spill_migrate_place_reach(walk->given->place, one->count, &one->before);
    return SPILL_OK;
}

spill_code_t spill_migrate_each_owner(const spill_owners_walk_t *given, spill_error_t *error)
{
    spill_array_t *array = given->array;
    bool short_batches = given->place || given->prepare;
    owners_walk_t walk = {.given = given};
    walk.cursor = (spill_cursor_t){
        .store = array->store,
        .definition = &array->definition,
        .binding = &array->binding,
        .query = {.list = SPILL_LIST_OWNERS,
                  .limit = short_batches ? SPILL_OWNERS_PLACED : SPILL_OWNERS_SURVEYED}};
    const spill_parallel_t job = {.threads = (size_t)given->threads,
                                  .allowed = given->allowed,
                                  .next = next_owner,
                                  .work = visit_owner,
                                  .finish = given->place ? finish_owner : NULL,
                                  .free = free_owner,
                                  .context = &walk};
    if (given->place)
        spill_migrate_place_move(given->place, &walk.cursor);
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

void spill_migrate_works(const spill_migrate_options_t *options, const spill_value_t *owner)
{
    if (options && options->works)
        options->works(options->context, owner);
}

/* Report the result and what the owners in progress have done; report_lock is held. */
static void show_progress(const spill_migrate_pass_t *pass)
{
    spill_migrate_result_t so_far = *pass->result;
    if (!pass->options->progress)
        return;
    so_far.elements += pass->moved;
    so_far.moved += pass->moved;
    so_far.pages += pass->pages;
    pass->options->progress(pass->options->context, &so_far);
}

void spill_migrate_step_done(spill_migrate_pass_t *pass, int64_t elements, int64_t pages)
{
    pthread_mutex_lock(&pass->report_lock);
    pass->moved += elements;
    pass->pages += pages;
    if (elements > 0)
        show_progress(pass);
    pthread_mutex_unlock(&pass->report_lock);
}

/* `added`: what this owner adds to the result. */
spill_code_t spill_migrate_report(spill_migrate_pass_t *pass, spill_code_t code,
                                  const spill_error_t *failure, const spill_migrate_result_t *added,
                                  spill_migrated_t *migrated, spill_error_t *error)
{
    const spill_migrate_options_t *options = pass->options;
    spill_migrate_result_t *result = pass->result;
    bool ended = code == SPILL_REFUSED && failure->reason == SPILL_REASON_NOT_ADOPTED;
    bool skipped = spill_migrate_is_owner_failure(code) && !ended;
    bool continues = code == SPILL_OK || skipped;
    if (skipped && pass->place)
        spill_migrate_place_stop(pass->place);
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
    if (continues)
        show_progress(pass);
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
    spill_orphan_describe(orphan, text, sizeof text);
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

/* Report owners after their document was deleted or replaced. One search, and two reads for each.
 */
spill_code_t spill_migrate_report_orphans(spill_migrate_pass_t *pass, spill_error_t *error)
{
    spill_array_t *array = pass->array;
    return array->store->ops->others_write
               ? spill_each_orphan(array, NULL, report_orphan, pass, error)
               : SPILL_OK;
}
