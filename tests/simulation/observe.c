/*
 * The effects of requests on the plain arrays. Each request that took effect is one atomic step of
 * an operation, so the plain arrays follow the shared store step by step; this fixes the order of
 * operations. check.c compares the answers that readers get with the plain arrays, and the end of a
 * schedule compares the documents.
 */
#include "world.h"

#include <assert.h>
#include <string.h>

int sim_owner_number(const spill_value_t *value)
{
    int64_t number;
    spill_value_t owner = *value;
    char window[SPILL_WINDOW_SIZE] = "";
    spill_bucket_split(value, &owner, window);
    assert(owner.type == BSON_TYPE_INT64);
    memcpy(&number, owner.data, sizeof number);
    return strcmp(window, SIM_SECOND_WINDOW) == 0 ? 1 : (int)number;
}

int sim_owner_of(const spill_request_t *request)
{
    return sim_owner_number(request->owner);
}

void sim_read_state(sim_world_t *world, const spill_request_t *request, spill_response_t *response)
{
    spill_request_t read = spill_request_reading(request);
    int64_t seq = response->seq;
    spill_error_t error;
    if (spill_store_call(world->store, &read, response, &error) != SPILL_OK)
        sim_fail(world, "a document cannot be read: %s", error.message);
    response->seq = seq;
}

void sim_observe_before(sim_world_t *world, const spill_request_t *request)
{
    if (request->kind != SPILL_REQUEST_READ)
        sim_read_state(world, request, &world->before);
}

/* ---- appends --------------------------------------------------------------------------------- */

/*
 * Is it promised that the append is not applied to this owner again? A base belongs to one
 * incarnation and says nothing about a later owner of that name. The base 0 is valid for every
 * incarnation, but the later parts of a split batch rely on the earlier parts.
 */
static bool promised(const sim_append_t *append, size_t count, int32_t generation)
{
    if (!append->has_op || append->base_generation == generation)
        return true;
    return append->base == 0 && (generation == 1 || (int)count == append->count);
}

/*
 * Did the beginning of the append last reach an earlier owner of the name? Then parts of that try
 * may have reached this owner, but no try as a whole.
 */
static bool may_be_partial(const sim_world_t *world, int64_t value, int32_t generation)
{
    if (value < 0 || value >= (int64_t)world->origin_count || world->origins[value].append < 0)
        return false;
    const sim_append_t *append = &world->appends[world->origins[value].append];
    const sim_origin_t *first = &world->origins[append->first_value];
    return append->has_op && first->applied > 0 && first->generation != generation;
}

/* Record the number of one of `count` appended elements. */
static void place_element(sim_world_t *world, int owner, size_t count, int64_t value, int64_t seq,
                          bool is_torn)
{
    if (value < 0 || value >= (int64_t)world->origin_count || world->origins[value].append < 0) {
        sim_fail(world, "owner %d: an element was appended that no client sent", owner);
        return;
    }
    const sim_model_t *plain = &world->plains[owner];
    sim_origin_t *origin = &world->origins[value];
    const sim_append_t *append = &world->appends[origin->append];
    int32_t generation = sim_model_now(plain)->generation;
    bool again = origin->applied > 0 && (origin->generation == generation || !append->has_op);
    if (again && !is_torn && promised(append, count, generation))
        sim_fail(world, "owner %d: v%lld was appended twice, at %lld and at %lld", owner,
                 (long long)value, (long long)origin->seq, (long long)seq);
    origin->applied++;
    origin->generation = generation;
    origin->seq = seq;
    origin->version = sim_model_version(plain);
}

/* Does the document hold a single element that exceeds the byte bound? */
static bool alone_over_bound(const spill_request_t *request, const spill_state_t *state)
{
    return spill_state_document_bytes(request->definition, request->owner,
                                      request->page == SPILL_HEAD, state, 1,
                                      state->live_bytes) > request->limits.bytes_max;
}

static bool is_capped(const sim_world_t *world)
{
    return world->settings.layout == SPILL_LAYOUT_CAPPED;
}

/* Record the elements that a capped head dropped to fit the append. */
static void observe_fall(sim_world_t *world, int owner, const spill_request_t *request,
                         const spill_response_t *response)
{
    int64_t first = response->state.first;
    int64_t cap = request->limits.slots_max;
    const char *wrong = sim_model_fall(&world->plains[owner], first, cap, !world->settings.padded);
    if (wrong)
        sim_fail(world, "owner %d: %s: from %lld on", owner, wrong, (long long)first);
    if (first > world->before.state.first)
        sim_saw(world, response->state.live < cap ? SIM_CAPPED_BY_BYTES : SIM_CAPPED);
    if (first > response->seq)
        sim_saw(world, SIM_CAPPED_WITHIN_BATCH);
    if (first > world->before.state.first && world->before.state.deleted.count > 0)
        sim_saw(world, SIM_CAPPED_GONE);
}

static void observe_append(sim_world_t *world, int owner, const spill_request_t *request,
                           const spill_response_t *response)
{
    sim_model_t *plain = &world->plains[owner];
    int64_t values[SIM_BATCH_MAX] = {0};
    assert(request->append.element_count <= SIM_BATCH_MAX);
    if (!sim_model_now(plain)->exists) {
        if (request->page != SPILL_HEAD)
            sim_fail(world, "owner %d: an append to a page of an owner that is dropped", owner);
        sim_model_create(plain, response->state.incarnation);
        if (sim_model_now(plain)->generation > 1)
            sim_saw(world, SIM_OWNER_AGAIN);
    } else if (response->state.incarnation != plain->incarnation) {
        sim_fail(world, "owner %d: an append to a page of an earlier owner", owner);
    }
    for (size_t i = 0; i < request->append.element_count; i++)
        values[i] = sim_value_id(&request->append.elements[i], NULL);
    const char *wrong = sim_model_append(plain, response->seq, request->append.skip, values,
                                         request->append.element_count);
    if (request->append.skip > 0)
        sim_saw(world, SIM_SKIPPED);
    if (wrong)
        sim_fail(world, "owner %d: %s: %lld", owner, wrong, (long long)response->seq);
    bool is_torn = request->append.element_count > 0 &&
                   may_be_partial(world, values[0], sim_model_now(plain)->generation);
    for (size_t i = 0; i < request->append.element_count && !world->failure[0]; i++)
        place_element(world, owner, request->append.element_count, values[i],
                      response->seq + request->append.skip + (int64_t)i, is_torn);
    if (request->append.update && !world->failure[0]) {
        world->appends[world->origins[values[0]].append].updated++;
        world->hits[owner]++;
        sim_saw(world, SIM_UPDATE_WITH_APPEND);
    }
    if (world->settings.unique)
        sim_observe_unique(world, owner);
    if (response->state.live == 1 && alone_over_bound(request, &response->state))
        sim_saw(world, SIM_OVERSIZE_ALONE);
    if (world->settings.top_n)
        sim_observe_top_n(world, owner, request, response);
    else if (is_capped(world))
        observe_fall(world, owner, request, response);
}

static void observe_rewrite(sim_world_t *world, int owner, const spill_request_t *request)
{
    sim_model_t *plain = &world->plains[owner];
    const spill_run_t *run = request->rewrite.run;
    int64_t values[SIM_BATCH_MAX] = {0};
    assert(run->count <= SIM_BATCH_MAX);
    for (size_t i = 0; i < run->count; i++) {
        spill_value_t element = spill_run_element(run, i).value;
        values[i] = sim_value_id(&element, NULL);
    }
    const char *wrong = sim_model_rewrite(plain, request->rewrite.end, values, run->count);
    if (wrong)
        sim_fail(world, "owner %d: %s: %lld", owner, wrong, (long long)request->rewrite.end);
    for (size_t i = 0; i < run->count && !world->failure[0]; i++)
        place_element(world, owner, run->count, values[i], request->rewrite.end + (int64_t)i,
                      false);
}

/* ---- other requests -------------------------------------------------------------------------- */

static void observe_update(sim_world_t *world, int owner, const spill_request_t *request)
{
    sim_model_t *plain = &world->plains[owner];
    if (!sim_model_now(plain)->exists) {
        sim_observe_before(world, request); /* the store chooses the incarnation */
        sim_model_create(plain, world->before.state.incarnation);
    }
    world->hits[owner] += request->append.update != NULL;
}

/*
 * Does the request reach a document that no client reads any longer? An edit in progress may, if
 * its element was trimmed or its owner dropped.
 */
static bool is_unreachable(const sim_model_t *plain, const spill_request_t *request, int64_t seq)
{
    const sim_model_moment_t *now = sim_model_now(plain);
    return !now->exists || plain->incarnation != request->incarnation || seq < now->watermark;
}

/*
 * Referenced elements: the put writes the new element. If another client completes the edit, it
 * writes the previous one.
 */
static const char *observe_put(sim_world_t *world, int owner, const spill_request_t *request)
{
    sim_model_t *plain = &world->plains[owner];
    if (!request->put_page.replaces)
        return NULL;
    spill_element_t element = spill_run_element(request->put_page.run, 0);
    int64_t value = sim_value_id(&element.value, NULL);
    if (is_unreachable(plain, request, request->page)) {
        sim_model_edit_late(plain, request->incarnation, request->page, value);
        return NULL;
    }
    const sim_model_element_t *now = sim_model_find(plain, request->page);
    if (!now || (value != world->traces[owner].edited_value &&
                 value != sim_model_value(plain, now, sim_model_version(plain))))
        return "an element was put that no client sent";
    sim_saw(world, SIM_EDIT_REFERENCED);
    return sim_model_edit(plain, request->page, value);
}

static const char *observe_prepare(sim_world_t *world, int owner, const spill_request_t *request)
{
    if (!request->change.edit)
        return sim_model_prepare(&world->plains[owner], request->change.seq);
    world->traces[owner].edited_value = request->change.sum_added.whole;
    world->traces[owner].editing = true;
    return NULL;
}

static const char *observe_complete(sim_world_t *world, int owner, const spill_request_t *request)
{
    const sim_model_t *plain = &world->plains[owner];
    if (world->before.state.intent_edit) {
        world->traces[owner].editing = false;
        return NULL;
    }
    const sim_model_element_t *element = sim_model_find(plain, request->change.seq);
    if (element == NULL || element->died == SIM_ALIVE)
        return "a removal was completed before its element was deleted";
    return NULL;
}

static void observe_change(sim_world_t *world, int owner, int client,
                           const spill_request_t *request)
{
    sim_model_t *plain = &world->plains[owner];
    int32_t before = sim_model_version(plain);
    const char *wrong = NULL;
    bool removes = request->kind == SPILL_REQUEST_REMOVE || request->kind == SPILL_REQUEST_PREPARE;
    if (removes && !world->late_now)
        sim_check_removing(&world->clients[client], owner, request->change.seq);
    switch (request->kind) {
    case SPILL_REQUEST_EDIT:
        if (!is_unreachable(plain, request, request->change.seq))
            wrong = sim_model_edit(plain, request->change.seq,
                                   sim_value_id(request->change.element, NULL));
        else
            sim_model_edit_late(plain, request->incarnation, request->change.seq,
                                sim_value_id(request->change.element, NULL));
        break;
    case SPILL_REQUEST_REMOVE:
        wrong = sim_model_delete(plain, request->change.seq);
        break;
    case SPILL_REQUEST_PREPARE:
        wrong = observe_prepare(world, owner, request);
        break;
    case SPILL_REQUEST_PUT_PAGE:
        wrong = observe_put(world, owner, request);
        break;
    case SPILL_REQUEST_DELETE:
        if (!is_unreachable(plain, request, request->change.seq))
            wrong = sim_model_delete(plain, request->change.seq);
        break;
    case SPILL_REQUEST_COMPLETE:
        wrong = observe_complete(world, owner, request);
        break;
    case SPILL_REQUEST_TRIM:
        wrong = sim_model_trim(plain, request->change.watermark);
        if (!wrong && !world->late_now)
            sim_check_trimmed(&world->clients[client], owner, before);
        break;
    case SPILL_REQUEST_DROP_HEAD:
        wrong = sim_model_drop(plain);
        world->traces[owner].editing = false;
        break;
    default:
        break;
    }
    if (wrong)
        sim_fail(
            world, "owner %d: %s: %lld", owner, wrong,
            (long long)(spill_request_is_change(request) ? request->change.seq : request->page));
    if (is_capped(world) && sim_model_now(plain)->exists)
        sim_model_lift(plain);
}

/*
 * Referenced elements: after every step the head's sum equals the sum of the elements. It excludes
 * an element with a pending removal. For an element being edited it has the value that the intent
 * names.
 */
static void check_sum(sim_world_t *world, int owner, const spill_request_t *request)
{
    const sim_model_t *plain = &world->plains[owner];
    if (!sim_model_now(plain)->exists)
        return;
    sim_observe_before(world, request);
    const spill_state_t *head = &world->before.state;
    spill_sum_t sum = {0};
    for (size_t i = plain->generation_start; i < plain->element_count; i++) {
        const sim_model_element_t *element = &plain->elements[i];
        if (element->died != SIM_ALIVE || element->pending)
            continue;
        bool edited = head->intent_edit && head->intent_seq == element->seq;
        sum.values++;
        sum.whole += edited ? head->intent_value.whole
                            : sim_model_value(plain, element, sim_model_version(plain));
    }
    if (!spill_sum_equal(&sum, &head->sum))
        sim_fail(world, "owner %d: the sum is %lld of %lld values, not %lld of %lld", owner,
                 (long long)head->sum.whole, (long long)head->sum.values, (long long)sum.whole,
                 (long long)sum.values);
}

/* ---- which client did what ------------------------------------------------------------------- */

static void observe_turns(sim_world_t *world, int owner, int client, const spill_request_t *request)
{
    sim_traces_t *traces = &world->traces[owner];
    const sim_model_t *plain = &world->plains[owner];
    sim_client_t *sender = &world->clients[client];
    const spill_bounds_t *bounds = &world->settings.bounds[0];
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
        traces->put_client = client;
        traces->put_page = request->page;
        if (sim_model_now(plain)->watermark >= request->put_page.first + request->put_page.slots)
            sim_saw(world, SIM_TRIMMED_PAGE_PUT);
        if (request->put_page.slots > bounds->page_capacity)
            sim_saw(world, SIM_OTHER_BOUNDS);
        break;
    case SPILL_REQUEST_CUT:
        if (traces->put_page == request->cut.pages && traces->put_client != client)
            sim_saw(world, SIM_SPILL_BY_ANOTHER);
        if (sender->refused_put == request->cut.pages && sender->refused_src == request->rev)
            sim_saw(world, SIM_PAGE_ADOPTED);
        break;
    case SPILL_REQUEST_PREPARE:
        traces->intent_client = client;
        break;
    case SPILL_REQUEST_COMPLETE:
        if (traces->intent_client != client)
            sim_saw(world,
                    world->before.state.intent_edit ? SIM_EDIT_BY_ANOTHER : SIM_INTENT_BY_ANOTHER);
        break;
    case SPILL_REQUEST_SEAL:
        if (!request->seal.close &&
            spill_state_slots(&world->before.state) <
                (request->page == SPILL_HEAD ? bounds->threshold : bounds->page_capacity))
            sim_saw(world, SIM_EARLY_SEAL);
        break;
    default:
        break;
    }
}

void sim_observe(sim_world_t *world, int client, const spill_request_t *request,
                 const spill_response_t *response)
{
    int owner = sim_owner_of(request);
    if (request->kind == SPILL_REQUEST_READ) {
        sim_saw(world, response->state.present ? SIM_READ_DONE : SIM_READ_ABSENT);
        world->clients[client].reads++;
        return;
    }
    bool done = response->outcome == SPILL_DONE;
    if (done && request->kind == SPILL_REQUEST_FORGET)
        sim_saw(world, SIM_SESSION_FORGOTTEN);
    spill_seen_t seen = spill_seen_by(&world->before);
    sim_event_t event = sim_request_event(request, &world->before.state, &seen, done);
    sim_saw(world, event);
    if (event == SIM_APPEND_FULL &&
        spill_state_slots(&world->before.state) + (int64_t)request->append.element_count <=
            request->limits.slots_max)
        sim_saw(world, SIM_BYTES_FULL);
    if (event == SIM_PUT_PAGE_SAME && request->put_page.replaces)
        sim_saw(world, SIM_EDIT_FORESTALLED);
    if (event == SIM_PUT_PAGE_SAME) {
        world->clients[client].refused_put = request->page;
        world->clients[client].refused_src = request->put_page.source_rev;
    }
    if (!done)
        return;
    observe_turns(world, owner, client, request);
    if (world->settings.notes)
        sim_ends_observe(world, client, request);
    int32_t live = sim_model_now(&world->plains[owner])->live;
    if (request->kind == SPILL_REQUEST_APPEND)
        observe_append(world, owner, request, response);
    else if (request->kind == SPILL_REQUEST_REWRITE)
        observe_rewrite(world, owner, request);
    else if (request->kind == SPILL_REQUEST_UPDATE_FIELDS)
        observe_update(world, owner, request);
    else
        observe_change(world, owner, client, request);
    if (sim_model_now(&world->plains[owner])->live < live && !world->late_now)
        world->clients[client].taken += live - sim_model_now(&world->plains[owner])->live;
    if (!world->settings.referenced || request->page != SPILL_HEAD || world->failure[0])
        return;
    sim_observe_corrupted(world, owner, request);
    spill_top_copy(&world->before.state.top, &world->top_before);
    if (sim_is_corrupted(world, owner))
        return;
    check_sum(world, owner, request);
    if (world->settings.top > 0 && !world->failure[0])
        sim_observe_top(world, owner, request);
}
