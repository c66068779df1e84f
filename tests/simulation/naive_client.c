/* Clients with a protocol of their own, built from the same atomic steps. */
#include "naive.h"

#include "layout/append.h"
#include "layout/document_limits.h"

#include <string.h>

static const spill_limits_t no_limits = {INT64_MAX / 2, INT64_MAX / 2};

/* ---- shared by several clients --------------------------------------------------------------- */

typedef void (*act_fn)(sim_client_t *client, const spill_owner_t *owner);

static void run_naive_client(void *context, act_fn act)
{
    sim_client_t *client = context;
    sim_world_t *world = client->world;
    spill_value_t value = sim_owner_value(client->world, 0);
    spill_owner_t owner;
    client->array = NULL;
    if (sim_begin_call(client) && sim_client_open(client) &&
        spill_owner_init(&owner, client->array, &value, NULL) == SPILL_OK) {
        while (client->actions_left-- > 0 && !client->crashed && !world->failure[0])
            if (sim_begin_call(client))
                act(client, &owner);
        spill_owner_release(&owner);
    }
    spill_array_close(client->array);
    client->array = NULL;
}

static spill_code_t push_element(sim_client_t *client, const spill_owner_t *owner, int append,
                                 int64_t page, int64_t incarnation, spill_limits_t limits,
                                 spill_response_t *response)
{
    const sim_append_t *record = &client->world->appends[append];
    sim_value_bytes_t bytes[SIM_BATCH_MAX];
    spill_value_t elements[SIM_BATCH_MAX];
    spill_part_t part = {.elements = elements, .count = (size_t)record->count};
    for (int i = 0; i < record->count; i++) {
        elements[i] = sim_value_of(client->world, &bytes[i], record->first_value + i);
        part.bytes += elements[i].size_bytes;
    }
    spill_request_t request = spill_append_request(owner, page, &part);
    request.limits = limits;
    if (page != SPILL_HEAD)
        request.incarnation = incarnation;
    spill_error_t error;
    return spill_owner_call(owner, &request, response, &error);
}

static int one_element(sim_client_t *client)
{
    int append = sim_append_new(client, 0, 1, false);
    client->world->appends[append].code = SPILL_UNKNOWN;
    return append;
}

/* Apply {OPERATOR: {count: number}} to the head's other fields. */
static void update_count(const spill_owner_t *owner, const char *operator, int64_t number)
{
    bson_t *update = BCON_NEW(operator, "{", "count", BCON_INT64(number), "}");
    spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    request.append.update = update;
    spill_owner_call(owner, &request, &response, &error);
    spill_response_release(&response);
    bson_destroy(update);
}

static void compare_count(sim_world_t *world, bool only_above)
{
    sim_client_t *client = &world->clients[SIM_CLIENTS_MAX];
    spill_value_t value = sim_owner_value(client->world, 0);
    spill_owner_t owner;
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_error_t error;
    spill_owner_init(&owner, client->array, &value, NULL);
    spill_request_t read = spill_owner_request(&owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    bson_iter_t iter;
    int64_t count = 0;
    if (spill_owner_call(&owner, &read, &head, &error) == SPILL_OK && head.fields &&
        bson_iter_init_find(&iter, head.fields, "count"))
        count = bson_iter_as_int64(&iter);
    int64_t live = sim_model_now(&world->plains[0])->live;
    if (only_above ? count > live : count != live)
        sim_fail(world, "the head says %lld elements, but has %lld", (long long)count,
                 (long long)live);
    spill_response_release(&head);
    spill_owner_release(&owner);
}

static void finish_count(sim_world_t *world)
{
    compare_count(world, false);
}

static void finish_raised(sim_world_t *world)
{
    compare_count(world, true);
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void adjust_counts(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {
        [SIM_ACTION_APPEND] = 50, [SIM_ACTION_REMOVE] = 40, [SIM_ACTION_COUNT] = 30};
    sim_naive_weigh(&world->settings, weights);
    if (world->body) {
        world->settings.faults = 0;
        sim_naive_bound(&world->settings, 100, 100);
    }
}

static void append_and_raise(sim_client_t *client, const spill_owner_t *owner)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    if (push_element(client, owner, one_element(client), SPILL_HEAD, 0, no_limits, &response) ==
        SPILL_OK)
        update_count(owner, "$max", response.state.live);
    spill_response_release(&response);
}

static void remove_and_lower(const spill_owner_t *owner)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    if (spill_owner_read_state(owner, SPILL_HEAD, &response, &error) == SPILL_OK &&
        response.state.present) {
        spill_request_t request = spill_owner_request(owner, SPILL_REQUEST_REMOVE, SPILL_HEAD);
        request.rev = response.state.rev;
        request.change.seq = response.state.first;
        if (spill_owner_call(owner, &request, &response, &error) == SPILL_OK &&
            response.outcome == SPILL_DONE)
            update_count(owner, "$inc", -1);
    }
    spill_response_release(&response);
}

static void act_count_by_max(sim_client_t *client, const spill_owner_t *owner)
{
    if (sim_random_below(&client->world->random, 2))
        append_and_raise(client, owner);
    else
        remove_and_lower(owner);
}

static void count_by_max(void *context)
{
    run_naive_client(context, act_count_by_max);
}

const sim_naive_t sim_naive_count_by_max = {.name = "$max on a count that removals lower",
                                            .body = count_by_max,
                                            .finish = finish_raised,
                                            .adjust = adjust_counts,
                                            .shows = "the head says",
                                            .schedules = 1000};

static void adjust_crashes(sim_world_t *world)
{
    adjust_counts(world);
    world->settings.faults = 60;
    world->settings.crashes = 2;
}

static void act_increment_after(sim_client_t *client, const spill_owner_t *owner)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    if (push_element(client, owner, one_element(client), SPILL_HEAD, 0, no_limits, &response) ==
        SPILL_OK)
        update_count(owner, "$inc", 1);
    spill_response_release(&response);
}

static void increment_after(void *context)
{
    run_naive_client(context, act_increment_after);
}

const sim_naive_t sim_naive_count_incremented_after = {.name = "the count is incremented after",
                                                       .body = increment_after,
                                                       .finish = finish_count,
                                                       .adjust = adjust_crashes,
                                                       .shows = "the head says",
                                                       .schedules = 1000};

/* ---- batches --------------------------------------------------------------------------------- */

static void adjust_batches(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_BATCH] = 1};
    sim_naive_weigh(&world->settings, weights);
}

/* Believed: "A batch that does not fit waits until it does." */
static void act_batch(sim_client_t *client, const spill_owner_t *owner)
{
    const spill_bounds_t *bounds = &client->array->definition.bounds;
    spill_response_t response = SPILL_RESPONSE_INIT;
    int append = sim_append_new(client, 0, (int)bounds->page_capacity + 1, false);
    client->world->appends[append].code = SPILL_UNKNOWN;
    spill_code_t code = SPILL_OK;
    while (code != SPILL_CANCELLED && !client->world->failure[0]) {
        code = push_element(client, owner, append, SPILL_HEAD, 0, spill_page_limits(bounds),
                            &response);
        if (code == SPILL_OK && response.outcome == SPILL_DONE)
            break;
    }
    spill_response_release(&response);
}

static void batch_waits(void *context)
{
    run_naive_client(context, act_batch);
}

const sim_naive_t sim_naive_batch_larger_than_page = {.name = "a batch larger than a page",
                                                      .body = batch_waits,
                                                      .adjust = adjust_batches,
                                                      .shows = "no end in sight",
                                                      .schedules = 10};

/* ---- bugs in the published recipes ----------------------------------------------------------- */

static void adjust_appends(sim_world_t *world)
{
    static const int weights[SIM_ACTION_KINDS] = {[SIM_ACTION_APPEND] = 80, [SIM_ACTION_READ] = 20};
    sim_naive_weigh(&world->settings, weights);
    sim_naive_bound(&world->settings, 2, 2);
    world->settings.keep = SPILL_KEEP_OLDEST;
}

/* Check that no document exceeds its bound. */
static void finish_bounds(sim_world_t *world)
{
    sim_client_t *client = &world->clients[SIM_CLIENTS_MAX];
    spill_value_t value = sim_owner_value(client->world, 0);
    spill_owner_t owner;
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    spill_owner_init(&owner, client->array, &value, NULL);
    const spill_bounds_t *bounds = &world->settings.bounds[0];
    for (int64_t page = SPILL_HEAD; page < 20; page++) {
        int64_t most = page == SPILL_HEAD ? bounds->threshold : bounds->page_capacity;
        if (spill_owner_read_state(&owner, page, &response, &error) == SPILL_OK &&
            response.state.present && spill_state_slots(&response.state) > most)
            sim_fail(world, "document %lld has %lld elements, at most %lld were allowed",
                     (long long)page, (long long)spill_state_slots(&response.state),
                     (long long)most);
    }
    spill_response_release(&response);
    spill_owner_release(&owner);
}

/* Believed: "The count says whether the element fits." */
static void act_check(sim_client_t *client, const spill_owner_t *owner)
{
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_error_t error;
    if (spill_owner_read_state(owner, SPILL_HEAD, &head, &error) == SPILL_OK &&
        head.state.live < client->array->definition.bounds.threshold)
        push_element(client, owner, one_element(client), SPILL_HEAD, 0, no_limits, &head);
    spill_response_release(&head);
}

static void check_then_act(void *context)
{
    run_naive_client(context, act_check);
}

const sim_naive_t sim_naive_check_then_act = {.name = "check the count, then act",
                                              .body = check_then_act,
                                              .finish = finish_bounds,
                                              .adjust = adjust_appends,
                                              .shows = "were allowed",
                                              .schedules = 1000};

static void make_next_page(const spill_owner_t *owner, const spill_state_t *before, int64_t page)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    spill_request_t create = spill_owner_request(owner, SPILL_REQUEST_CREATE_PAGE, page);
    create.incarnation = before->incarnation;
    create.create_page.first = spill_state_end(before);
    spill_owner_call(owner, &create, &response, &error);
    spill_request_t advance = spill_owner_request(owner, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
    advance.incarnation = before->incarnation;
    advance.advance.pages = page + 1;
    spill_owner_call(owner, &advance, &response, &error);
    spill_response_release(&response);
}

/*
 * Believed: "The head says which page is the last one." The client pushes to it without checking.
 */
static void act_read_referenced(sim_client_t *client, const spill_owner_t *owner)
{
    const spill_bounds_t *bounds = &client->array->definition.bounds;
    spill_response_t last = SPILL_RESPONSE_INIT;
    spill_error_t error;
    if (spill_owner_read_state(owner, SPILL_HEAD, &last, &error) != SPILL_OK)
        return;
    int64_t page = last.state.present ? last.state.pages - 1 : SPILL_HEAD;
    int64_t most = page == SPILL_HEAD ? bounds->threshold : bounds->page_capacity;
    if (page != SPILL_HEAD)
        spill_owner_read_state(owner, page, &last, &error);
    if (last.state.present && spill_state_slots(&last.state) >= most)
        make_next_page(owner, &last.state, page + 1);
    else
        push_element(client, owner, one_element(client), page, last.state.incarnation, no_limits,
                     &last);
    spill_response_release(&last);
}

static void read_referenced(void *context)
{
    run_naive_client(context, act_read_referenced);
}

const sim_naive_t sim_naive_page_number_read_separately = {.name =
                                                               "the page number is read separately",
                                                           .body = read_referenced,
                                                           .finish = finish_bounds,
                                                           .adjust = adjust_appends,
                                                           .shows = "were allowed",
                                                           .schedules = 1000};

static void adjust_faults(sim_world_t *world)
{
    adjust_appends(world);
    world->settings.faults = 80;
}

/* Believed: "No answer came, so send it once more." */
static void act_retry(sim_client_t *client, const spill_owner_t *owner)
{
    enum { TRIES = 3 };
    spill_response_t response = SPILL_RESPONSE_INIT;
    int append = one_element(client);
    spill_code_t code = SPILL_UNKNOWN;
    for (int i = 0; i < TRIES && code == SPILL_UNKNOWN; i++)
        code = push_element(client, owner, append, SPILL_HEAD, 0, no_limits, &response);
    spill_response_release(&response);
}

static void retry_without_id(void *context)
{
    run_naive_client(context, act_retry);
}

const sim_naive_t sim_naive_retry_without_id = {.name = "an append is tried again without an id",
                                                .body = retry_without_id,
                                                .finish = finish_bounds,
                                                .adjust = adjust_faults,
                                                .shows = "appended twice",
                                                .schedules = 1000};

/* Believed: "The newest elements come from the head alone." */
static void act_fast_path(sim_client_t *client, const spill_owner_t *owner)
{
    sim_world_t *world = client->world;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.limit = 2;
    if (sim_random_below(&world->random, 3)) {
        sim_client_append(client, sim_append_new(client, 0, 1, false));
        return;
    }
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    spill_response_t head = SPILL_RESPONSE_INIT;
    spill_element_t elements[2];
    spill_slice_t slice = {.elements = elements, .more = true};
    spill_error_t error;
    read.read.want = SPILL_WANT_BACKWARD;
    read.read.seq = INT64_MAX;
    read.read.limit = options.limit;
    int32_t from = sim_model_version(&world->plains[0]);
    if (spill_owner_call(owner, &read, &head, &error) == SPILL_OK) {
        for (; slice.count < head.run.count; slice.count++)
            elements[slice.count] = spill_run_element(&head.run, slice.count);
        sim_span_t span = {from, sim_model_version(&world->plains[0])};
        sim_check_read(client, 0, span, &options, &slice);
    }
    spill_response_release(&head);
}

static void fast_path(void *context)
{
    run_naive_client(context, act_fast_path);
}

const sim_naive_t sim_naive_head_has_the_newest = {.name = "the newest come from the head alone",
                                                   .body = fast_path,
                                                   .adjust = adjust_appends,
                                                   .shows = "no moment of the read",
                                                   .schedules = 100};
