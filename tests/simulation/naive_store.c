/* Weakened guards, over the model store's documents. Each quotes the belief behind it. */
#include "naive.h"

#include "support/model_store.h"

#include <string.h>

enum { BYTES_PLENTY = 16 * 1024 };

static bool compare_runs(const model_document_t *document, const spill_run_t *run)
{
    if (document->count < run->count)
        return false;
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        if (!spill_value_equal(&document->elements[i], &element.value))
            return false;
    }
    return true;
}

static model_document_t *document_of(sim_world_t *world, const spill_request_t *request)
{
    return model_document(world->store, request, false);
}

/* Return the head, or a page, of the request's owner. */
static model_document_t *other_document(sim_world_t *world, const spill_request_t *request,
                                        int64_t page)
{
    spill_request_t other = *request;
    other.page = page;
    return document_of(world, &other);
}

void sim_naive_weigh(sim_settings_t *settings, const int *weights)
{
    for (int i = 0; i < SIM_ACTION_KINDS; i++)
        settings->weights[i] = weights[i];
    settings->owners = 1;
    settings->padded = false;
    for (int i = 0; i < 2; i++) {
        settings->bounds[i].head_bytes_max = BYTES_PLENTY;
        settings->bounds[i].page_bytes_max = BYTES_PLENTY;
    }
}

void sim_naive_bound(sim_settings_t *settings, int64_t threshold, int64_t page)
{
    for (int i = 0; i < 2; i++)
        settings->bounds[i] = (spill_bounds_t){threshold, page, BYTES_PLENTY, BYTES_PLENTY};
}

/* ---- spilling -------------------------------------------------------------------------------- */

static void adjust_spills(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 50, [SIM_ACTION_EDIT] = 50, [SIM_ACTION_READ] = 5};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 1, 1);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.clients = 3;
    world->settings.actions_each = 6;
}

/* Believed: "Writing a page is idempotent, because every client writes the same run." */
static spill_code_t put_replaces(sim_world_t *world, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    model_document_t *page = document_of(world, request);
    if (request->kind == SPILL_REQUEST_PUT_PAGE && page)
        page->state.source_rev = -1;
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_put_replaces = {.name = "spill replaces the page, then cuts",
                                            .execute = put_replaces,
                                            .adjust = adjust_spills,
                                            .shows = "should be",
                                            .schedules = 20000};

/* Believed: "Adopt an existing page if it has my run, else replace it." */
static spill_code_t put_compares(sim_world_t *world, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    model_document_t *page = document_of(world, request);
    if (request->kind == SPILL_REQUEST_PUT_PAGE && page) {
        bool mine = page->count == request->put_page.run->count &&
                    compare_runs(page, request->put_page.run);
        page->state.source_rev = mine ? request->put_page.source_rev : -1;
    }
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_put_compares_contents = {.name = "the page is compared by contents",
                                                     .execute = put_compares,
                                                     .adjust = adjust_spills,
                                                     .shows = "should be",
                                                     .schedules = 20000};

/* The run that each client has copied to a page. */
typedef struct copies {
    spill_run_t runs[SIM_CLIENTS_MAX + 1];
} copies_t;

static copies_t copies;

static void forget_copies(void)
{
    for (int i = 0; i <= SIM_CLIENTS_MAX; i++)
        spill_run_release(&copies.runs[i]);
}

static void adjust_copies(sim_world_t *world)
{
    forget_copies();
    adjust_spills(world);
    world->settings.weights[SIM_ACTION_EDIT] = 100;
    world->settings.sticky = 0;
    world->settings.faults = 60;
}

/* Believed: "The head may be cut if its run still equals my copy." */
static spill_code_t cut_compares(sim_world_t *world, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    spill_run_t *copy = &copies.runs[world->running ? world->running->index : SIM_CLIENTS_MAX];
    if (request->kind == SPILL_REQUEST_PUT_PAGE) {
        spill_run_release(copy);
        spill_run_copy(request->put_page.run, copy);
    }
    model_document_t *head = document_of(world, request);
    if (request->kind != SPILL_REQUEST_CUT || !head || !compare_runs(head, copy))
        return sim_execute(world, request, response, error);
    spill_request_t weaker = *request;
    weaker.rev = head->state.rev;
    return sim_execute(world, &weaker, response, error);
}

const sim_naive_t sim_naive_cut_compares_contents = {.name = "the cut is guarded by the contents",
                                                     .execute = cut_compares,
                                                     .adjust = adjust_copies,
                                                     .shows = "should be",
                                                     .schedules = 200000};

/* ---- operations ------------------------------------------------------------------------------ */

static void adjust_retries(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_APPEND] = 1};
    sim_naive_weigh(&world->settings, weights);
    world->settings.faults = 100;
    world->settings.op_window = 1 + world->settings.op_window % 2;
    world->settings.bounds[1] = world->settings.bounds[0];
}

/* Believed: "The head remembers the last operations, so a retry is recognized." */
static spill_code_t window_alone(sim_world_t *world, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    if (request->kind != SPILL_REQUEST_APPEND || !request->append.op)
        return sim_execute(world, request, response, error);
    spill_op_t op = *request->append.op;
    spill_request_t weaker = *request;
    const model_document_t *document = document_of(world, request);
    op.base = document ? document->state.op_count : 0;
    weaker.append.op = &op;
    return sim_execute(world, &weaker, response, error);
}

const sim_naive_t sim_naive_window_alone = {.name = "an operation-id window alone",
                                            .execute = window_alone,
                                            .adjust = adjust_retries,
                                            .shows = "appended twice",
                                            .schedules = 20000};

static void adjust_windows(sim_world_t *world)
{
    adjust_retries(world);
    world->settings.keep = SPILL_KEEP_OLDEST;
    world->settings.op_window = 6;
    sim_naive_bound(&world->settings, 1, 2);
}

/* Believed: "Each document remembers its own operations, so a retry is recognized." */
static spill_code_t window_each(sim_world_t *world, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    spill_request_t weaker = *request;
    if (request->kind == SPILL_REQUEST_CREATE_PAGE)
        weaker.create_page.ops = NULL;
    return sim_execute(world, &weaker, response, error);
}

const sim_naive_t sim_naive_window_for_each_document = {
    .name = "an operation-id window for each document",
    .execute = window_each,
    .adjust = adjust_windows,
    .shows = "appended twice",
    .schedules = 20000};

/* ---- removals -------------------------------------------------------------------------------- */

static void adjust_removals(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 60, [SIM_ACTION_REMOVE] = 30, [SIM_ACTION_READ] = 10};
    sim_naive_weigh(&world->settings, weights);
}

/*
 * Believed: "Removing is a pull." The numbers of later elements follow from their positions, so
 * they change.
 */
static spill_code_t removal_deletes(sim_world_t *world, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error)
{
    model_document_t *head = document_of(world, request);
    size_t index;
    if (request->kind != SPILL_REQUEST_REMOVE || !head || head->state.rev != request->rev ||
        !model_document_find(head, request->change.seq, &index))
        return sim_execute(world, request, response, error);
    spill_response_clear(response);
    response->outcome = SPILL_DONE;
    model_document_remove(head, index, 1);
    head->state.rev++;
    return SPILL_OK;
}

const sim_naive_t sim_naive_removal_deletes = {.name = "removal as a plain pull",
                                               .execute = removal_deletes,
                                               .adjust = adjust_removals,
                                               .shows = "given twice",
                                               .schedules = 1000};

/* ---- deleting pages -------------------------------------------------------------------------- */

/* A sweeper: a client that has seen that no head refers to page `page`. */
typedef struct sweeper {
    bool seen;
    int64_t page;
    int64_t incarnation;
} sweeper_t;

static sweeper_t sweeper;

static void adjust_sweeper(sim_world_t *world)
{
    sweeper = (sweeper_t){0};
    adjust_spills(world);
}

/* Believed: "A page at or above overflowPages was left by a crash and may be deleted." */
static spill_code_t sweep_orphans(sim_world_t *world, const spill_request_t *request,
                                  spill_response_t *response, spill_error_t *error)
{
    model_document_t *head = other_document(world, request, SPILL_HEAD);
    if (sweeper.seen && head && head->state.incarnation == sweeper.incarnation) {
        spill_request_t page = *request;
        page.page = sweeper.page;
        model_document_drop(world->store, &page);
    }
    sweeper.seen = false;
    if (head && world->calls % 5 == 0 && other_document(world, request, head->state.pages))
        sweeper = (sweeper_t){true, head->state.pages, head->state.incarnation};
    return sim_execute(world, request, response, error);
}

const sim_naive_t sim_naive_orphans_deleted = {.name = "deleting orphan pages",
                                               .execute = sweep_orphans,
                                               .adjust = adjust_sweeper,
                                               .shows = "NOT_FOUND",
                                               .schedules = 20000};

static void adjust_trims(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 60, [SIM_ACTION_TRIM] = 20, [SIM_ACTION_READ] = 20};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 1, 1);
    world->settings.keep = SPILL_KEEP_NEWEST;
    world->settings.faults = 80;
    world->settings.late = 40;
    world->settings.crashes = 0;
}

/* Delete the owner's pages that end at or below the trim watermark. */
static void delete_pages(sim_world_t *world, const spill_request_t *request, int64_t pages,
                         int64_t watermark)
{
    for (int64_t number = 0; number < pages; number++) {
        spill_request_t page = *request;
        page.page = number;
        const model_document_t *document = document_of(world, &page);
        if (document && spill_state_end(&document->state) <= watermark)
            model_document_drop(world->store, &page);
    }
}

/*
 * Believed: "A trim deletes pages; the pages that exist are the array." With pages of one element
 * each, a trim always deletes whole pages. The head does not store how far it was trimmed: the
 * first existing page shows that.
 */
static spill_code_t trim_deletes(sim_world_t *world, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error)
{
    spill_code_t code = sim_execute(world, request, response, error);
    if (code != SPILL_OK || response->outcome != SPILL_DONE || request->page != SPILL_HEAD)
        return code;
    const model_document_t *head = document_of(world, request);
    if (request->kind == SPILL_REQUEST_TRIM)
        delete_pages(world, request, head->state.pages, request->change.watermark);
    if (request->kind != SPILL_REQUEST_READ || !response->state.present)
        return code;
    response->state.watermark = response->state.first;
    for (int64_t number = response->state.pages; number-- > 0;) {
        const model_document_t *page = other_document(world, request, number);
        if (page)
            response->state.watermark = page->state.first;
    }
    return code;
}

const sim_naive_t sim_naive_trim_deletes_pages = {.name = "trim by deleting pages",
                                                  .execute = trim_deletes,
                                                  .adjust = adjust_trims,
                                                  .shows = "no moment of the read",
                                                  .schedules = 50000};

static void adjust_sealed(sim_world_t *world)
{
    adjust_trims(world);
    world->settings.keep = SPILL_KEEP_OLDEST;
}

/*
 * Believed: "A sealed page below the trim is empty, so it may be deleted." This deletes the last
 * such page.
 */
static spill_code_t sealed_deleted(sim_world_t *world, const spill_request_t *request,
                                   spill_response_t *response, spill_error_t *error)
{
    spill_code_t code = sim_execute(world, request, response, error);
    const model_document_t *head = other_document(world, request, SPILL_HEAD);
    if (code != SPILL_OK || request->kind != SPILL_REQUEST_TRIM || !head ||
        response->outcome != SPILL_DONE)
        return code;
    spill_request_t page = *request;
    for (page.page = head->state.pages - 1; page.page >= 0; page.page--) {
        const model_document_t *document = document_of(world, &page);
        if (document && document->state.sealed &&
            spill_state_end(&document->state) <= request->change.watermark) {
            model_document_drop(world->store, &page);
            break;
        }
    }
    return code;
}

const sim_naive_t sim_naive_sealed_page_deleted = {.name = "deleting a sealed page",
                                                   .execute = sealed_deleted,
                                                   .adjust = adjust_sealed,
                                                   .shows = "given twice",
                                                   .schedules = 50000};

/* ---- numbers --------------------------------------------------------------------------------- */

/* The next number, which old clients store beside the array and maintain themselves. */
static int64_t next_number;

static void adjust_legacy(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_APPEND] = 80, [SIM_ACTION_READ] = 20};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 4, 4);
    next_number = 0;
    world->settings.keep = SPILL_KEEP_NEWEST;
}

/* Push onto the array like an old writer, which knows nothing of the bookkeeping. */
static void legacy_push(sim_world_t *world, const spill_request_t *request)
{
    enum { EVERY = 7, ROOM = 6 };
    model_document_t *head = document_of(world, request);
    if (request->kind != SPILL_REQUEST_APPEND || !head || head->count > ROOM ||
        world->calls % EVERY != 0)
        return;
    int append = sim_append_new(&world->clients[0], sim_owner_of(request), 1, false);
    int64_t id = world->appends[append].first_value;
    sim_value_bytes_t bytes;
    spill_value_t value = sim_value_of(world, &bytes, id);
    model_document_insert(head, head->count, &value);
    sim_trace(world, "       an old writer pushes v%lld", (long long)id);
    world->appends[append].code = SPILL_UNKNOWN; /* no client waits for an answer */
    sim_model_append(&world->plains[0], sim_model_now(&world->plains[0])->next, 0, &id, 1);
}

static spill_code_t with_legacy(sim_world_t *world, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    legacy_push(world, request);
    return sim_execute(world, request, response, error);
}

/* Believed: "Each append takes its number from a counter and raises it." */
static spill_code_t stored_counter(sim_world_t *world, const spill_request_t *request,
                                   spill_response_t *response, spill_error_t *error)
{
    spill_code_t code = with_legacy(world, request, response, error);
    if (code == SPILL_OK && request->kind == SPILL_REQUEST_APPEND &&
        response->outcome == SPILL_DONE) {
        response->seq = next_number;
        next_number += (int64_t)request->append.element_count;
    }
    return code;
}

const sim_naive_t sim_naive_stored_counter = {.name = "numbers from a stored counter",
                                              .execute = stored_counter,
                                              .adjust = adjust_legacy,
                                              .real = with_legacy,
                                              .shows = "given twice",
                                              .schedules = 1000};
