/*
 * The shared store as a client sees it. Each request waits for the client's turn; then chance
 * decides what happens to the request and to its answer. A crashed client never reaches the shared
 * store again: all its calls fail until it has returned from them.
 */
#include "world.h"

#include "util/error.h"

#include <assert.h>

typedef enum fate {
    FATE_FINE,
    FATE_CRASH_BEFORE,
    FATE_CRASH_AFTER,
    FATE_CRASH_IN_FLIGHT,
    FATE_LOST_APPLIED,
    FATE_LOST_REQUEST,
    FATE_LOST_LATER,
    FATE_DUPLICATE,
    FATE_FAILED,
    FATE_MACHINE_CRASH
} fate_t;

static const char *const fate_texts[] = {
    "",
    " [crash before]",
    " [crash after]",
    " [crash, request in flight]",
    " [answer lost]",
    " [request lost]",
    " [answer lost, request late]",
    " [again later]",
    " [failed]",
    " [the machine crashes]",
};

/*
 * May the request arrive a second time? An append without an operation id and an update of other
 * fields have no guard against a second delivery.
 */
static bool repeatable(const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_APPEND)
        return request->append.op != NULL || request->append.session != NULL;
    return request->kind != SPILL_REQUEST_UPDATE_FIELDS;
}

/* `read`: it changes nothing. */
static fate_t choose_fate(sim_client_t *client, bool read, bool may_repeat)
{
    sim_world_t *world = client->world;
    if (client->reliable || !sim_random_chance(&world->random, world->settings.faults))
        return FATE_FINE;
    if (!read && world->settings.machine_crashes > 0 && sim_random_chance(&world->random, 250)) {
        world->settings.machine_crashes--;
        return FATE_MACHINE_CRASH;
    }
    if (world->settings.crashes > 0 && sim_random_chance(&world->random, 350)) {
        world->settings.crashes--;
        fate_t fate =
            (fate_t)sim_random_between(&world->random, FATE_CRASH_BEFORE, FATE_CRASH_IN_FLIGHT);
        return read ? FATE_CRASH_BEFORE : fate;
    }
    fate_t fate = (fate_t)sim_random_between(&world->random, FATE_LOST_APPLIED, FATE_FAILED);
    if (read)
        return fate == FATE_FAILED ? FATE_FAILED : FATE_LOST_REQUEST;
    if (fate == FATE_DUPLICATE && !may_repeat)
        return FATE_LOST_APPLIED;
    return fate;
}

static sim_event_t fate_event(fate_t fate)
{
    static const sim_event_t events[] = {
        SIM_EVENT_COUNT,  SIM_CRASH_BEFORE, SIM_CRASH_AFTER, SIM_CRASH_IN_FLIGHT, SIM_LOST_APPLIED,
        SIM_LOST_REQUEST, SIM_LOST_LATER,   SIM_DUPLICATE,   SIM_FAILED,          SIM_MACHINE_CRASH,
    };
    return events[fate];
}

/* `message`: NULL for a request. */
static void send_late(sim_world_t *world, int client, const spill_request_t *request,
                      const sim_message_t *message)
{
    if (world->late_count == world->late_capacity) {
        world->late_capacity = world->late_capacity ? 2 * world->late_capacity : 16;
        world->late = bson_realloc(world->late, world->late_capacity * sizeof *world->late);
    }
    sim_late_t late = {.request = request ? spill_request_clone(request) : NULL, .client = client};
    if (message) {
        late.is_message = true;
        late.message = *message;
        late.message.head = late.request;
    }
    world->late[world->late_count++] = late;
}

static void free_late(const sim_late_t *late)
{
    if (late->request)
        spill_request_free(late->request);
}

/* ---- the trace ------------------------------------------------------------------------------- */

#define ADD(...)                                                                                   \
    do {                                                                                           \
        if (at < size)                                                                             \
            at += (size_t)snprintf(text + at, size - at, __VA_ARGS__);                             \
    } while (0)

/* Operation, update and elements. Returns the length of the text. */
static size_t describe_elements(const spill_request_t *request, char *text, size_t size)
{
    size_t at = 0;
    const spill_op_t *op =
        request->kind == SPILL_REQUEST_READ ? request->read.op : spill_request_op(request);
    const spill_run_t *run = spill_request_run(request);
    if (op)
        ADD(" op=%02x%02x base=%lld", ((const uint8_t *)op->id)[0], ((const uint8_t *)op->id)[1],
            (long long)op->base);
    const spill_session_op_t *session = spill_request_session(request);
    if (session)
        ADD(" session=%d txn=%lld number=%d", session->session[0], (long long)session->txn,
            (int)session->number);
    if (spill_request_update(request))
        ADD(" update");
    for (size_t i = 0; request->kind == SPILL_REQUEST_APPEND && i < request->append.element_count;
         i++)
        ADD("%sv%lld", i ? "," : " ", (long long)sim_value_id(&request->append.elements[i], NULL));
    if (spill_request_is_change(request) && request->change.element)
        ADD(" v%lld", (long long)sim_value_id(request->change.element, NULL));
    for (size_t i = 0; run && i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        ADD("%s%lld:v%lld", i ? "," : " ", (long long)element.seq,
            (long long)sim_value_id(&element.value, NULL));
    }
    return at;
}

static void describe_content(const spill_request_t *request, char *text, size_t size)
{
    text[0] = '\0';
    size_t at = describe_elements(request, text, size);
    static const struct {
        spill_request_kind_t kind;
        const char *name;
        size_t offset;
    } fields[] = {
#define PART(kind, part, name) {SPILL_REQUEST_##kind, #name, offsetof(spill_request_t, part.name)}
#define FIELD(kind, name)                                                                          \
    {                                                                                              \
        SPILL_REQUEST_##kind, #name, offsetof(spill_request_t, name)                               \
    }
        FIELD(APPEND, incarnation),
        PART(PUT_PAGE, put_page, source_rev),
        PART(PUT_PAGE, put_page, first),
        PART(PUT_PAGE, put_page, slots),
        PART(CUT, cut, pages),
        FIELD(CUT, rev),
        PART(CUT, cut, slots),
        FIELD(SEAL, incarnation),
        PART(ADVANCE, advance, pages),
        PART(ADVANCE, advance, total),
        FIELD(CREATE_PAGE, incarnation),
        PART(CREATE_PAGE, create_page, first),
        FIELD(REWRITE, rev),
        PART(REWRITE, rewrite, end),
        FIELD(EDIT, rev),
        PART(EDIT, change, seq),
        FIELD(REMOVE, rev),
        PART(REMOVE, change, seq),
        FIELD(PREPARE, rev),
        PART(PREPARE, change, seq),
        PART(PREPARE, change, intent_page),
        PART(DELETE, change, seq),
        FIELD(COMPLETE, rev),
        PART(COMPLETE, change, seq),
        FIELD(TRIM, rev),
        PART(TRIM, change, watermark),
        PART(TRIM, change, removed),
        FIELD(EMPTY_PAGE, incarnation),
        FIELD(DROP_HEAD, incarnation),
        PART(DROP_HEAD, drop_head, pages),
        FIELD(DROP_PAGE, incarnation),
        PART(READ, read, seq),
        PART(READ, read, want),
        PART(READ, read, limit),
        FIELD(READ, incarnation),
#undef FIELD
#undef PART
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (fields[i].kind != request->kind)
            continue;
        const char *field = (const char *)request + fields[i].offset;
        if (request->kind == SPILL_REQUEST_READ &&
            fields[i].offset == offsetof(spill_request_t, read.want))
            ADD(" want=%d", (int)request->read.want);
        else
            ADD(" %s=%lld", fields[i].name, (long long)*(const int64_t *)(const void *)field);
    }
#undef ADD
}

static void trace_request(sim_world_t *world, int client, const spill_request_t *request,
                          const spill_response_t *response, const char *note)
{
    if (!world->trace)
        return;
    char content[1024];
    char document[32] = "head";
    char answer[160] = "no answer yet";
    describe_content(request, content, sizeof content);
    if (request->page >= 0)
        snprintf(document, sizeof document, "page %lld", (long long)request->page);
    else if (request->page == SPILL_PAGE_HOLDING)
        snprintf(document, sizeof document, "page holding");
    else if (request->page == SPILL_PAGE_LEFT_OVER)
        snprintf(document, sizeof document, "left over");
    else if (request->page == SPILL_PAGE_WITH_ID)
        snprintf(document, sizeof document, "page by id");
    if (response && response->outcome != SPILL_DONE)
        snprintf(answer, sizeof answer, "REFUSED");
    else if (response && request->kind == SPILL_REQUEST_APPEND)
        snprintf(answer, sizeof answer, "DONE, number %lld", (long long)response->seq);
    else if (response && request->kind != SPILL_REQUEST_READ)
        snprintf(answer, sizeof answer, "DONE");
    else if (response && !response->state.present)
        snprintf(answer, sizeof answer, "absent");
    else if (response)
        snprintf(answer, sizeof answer,
                 "epoch %lld rev %lld pages %lld [%lld,%lld) removed %lld low %lld n %lld%s%s",
                 (long long)response->state.incarnation, (long long)response->state.rev,
                 (long long)response->state.pages, (long long)response->state.first,
                 (long long)spill_state_end(&response->state), (long long)response->state.removed,
                 (long long)response->state.watermark, (long long)response->state.op_count,
                 response->state.sealed ? " sealed" : "", response->state.intent ? " intent" : "");
    sim_trace(world, "%5lld  client %d%s  owner %d %-12s %s%s -> %s%s", (long long)world->calls,
              client, client == SIM_CLIENTS_MAX ? "*" : " ", sim_owner_of(request), document,
              spill_request_kind_name(request->kind), content, answer, note);
}

/* ---- carrying out ---------------------------------------------------------------------------- */

spill_code_t sim_execute(sim_world_t *world, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    return spill_store_call(world->store, request, response, error);
}

static spill_code_t carry_out(sim_world_t *world, int client, const spill_request_t *request,
                              spill_response_t *response, const char *note, spill_error_t *error)
{
    world->calls++;
    world->now_us++;
    sim_observe_before(world, request);
    spill_code_t code =
        (world->execute ? world->execute : sim_execute)(world, request, response, error);
    if (code == SPILL_OK) {
        trace_request(world, client, request, response, note);
        sim_observe(world, client, request, response);
    } else {
        sim_fail(world, "the store failed: %s", error->message);
    }
    return code;
}

static void carry_message(sim_world_t *world, int client, const sim_message_t *message,
                          spill_drop_note_t *found, bool *done, const char *note)
{
    world->calls++;
    world->now_us++;
    (world->deliver ? world->deliver : sim_deliver)(world, message, found, done);
    sim_trace(world, "%5lld  client %d%s  owner %d %s epoch %lld rev %lld -> %s%s",
              (long long)world->calls, client, client == SIM_CLIENTS_MAX ? "*" : " ",
              message->owner, sim_message_name(message->kind), (long long)message->note.incarnation,
              (long long)message->note.rev, *done ? "DONE" : "REFUSED", note);
}

/*
 * The machine crashes during the request. No client gets an answer. If the write reached the disk,
 * the request took effect.
 */
static void crash_machine(sim_world_t *world, int client, const spill_request_t *request)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    world->calls++;
    world->now_us++;
    world->machine_dies = true;
    world->write_survives = false;
    sim_observe_before(world, request);
    int64_t seq = spill_state_end(&world->before.state);
    trace_request(world, client, request, NULL, fate_texts[FATE_MACHINE_CRASH]);
    sim_execute(world, request, &response, &error);
    sim_machine_crash(world);
    if (world->write_survives) {
        response.outcome = SPILL_DONE;
        response.seq = seq;
        sim_read_state(world, request, &response);
        sim_trace(world, "       the request survived");
        sim_observe(world, client, request, &response);
    }
    spill_response_release(&response);
}

/* The append that a request carries, with an operation of a session; NULL: another request. */
static const sim_append_t *session_append(const sim_world_t *world, const spill_request_t *request)
{
    bool rewrites = request->kind == SPILL_REQUEST_REWRITE;
    if ((request->kind != SPILL_REQUEST_APPEND && !rewrites) || !spill_request_session(request))
        return NULL;
    spill_value_t first =
        rewrites ? spill_run_element(request->rewrite.run, 0).value : request->append.elements[0];
    int64_t value = sim_value_id(&first, NULL);
    return &world->appends[world->origins[value].append];
}

/* Is it beyond the horizon of its append's first try? */
static bool is_beyond_horizon(const sim_world_t *world, const spill_request_t *request)
{
    const sim_append_t *append = session_append(world, request);
    return append && world->now_us - append->started_us >= SIM_HORIZON_US;
}

void sim_deliver_late(sim_world_t *world)
{
    assert(world->late_count > 0);
    size_t index = (size_t)sim_random_below(&world->random, (int)world->late_count);
    sim_late_t late = world->late[index];
    world->late[index] = world->late[--world->late_count];
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_error_t error;
    if (late.is_message) {
        carry_message(world, late.client, &late.message, NULL, &(bool){false}, " [late]");
        free_late(&late);
        return;
    }
    if (is_beyond_horizon(world, late.request)) {
        free_late(&late);
        return;
    }
    world->late_now = true;
    if (carry_out(world, late.client, late.request, &response, " [late]", &error) == SPILL_OK)
        sim_saw(world, response.outcome == SPILL_DONE ? SIM_LATE_DONE : SIM_LATE_REFUSED);
    world->late_now = false;
    spill_response_release(&response);
    free_late(&late);
}

void sim_discard_late(sim_world_t *world)
{
    while (world->late_count > 0)
        free_late(&world->late[--world->late_count]);
}

static spill_code_t crashed(sim_client_t *client, spill_response_t *response, spill_error_t *error)
{
    client->crashed = true;
    spill_response_clear(response);
    return spill_fail(error, SPILL_CANCELLED, "this client has crashed");
}

/* Wait for the client's turn, unless its public call has just begun. False: it has crashed. */
static bool take_turn(sim_client_t *client)
{
    if (!client->crashed && !client->reliable && !client->began)
        sim_turn(client);
    client->began = false;
    return !client->crashed;
}

static void note_fate(sim_client_t *client, fate_t fate)
{
    if (fate == FATE_FINE)
        return;
    sim_saw(client->world, fate_event(fate));
    client->faults_met++;
}

static bool arrives_now(fate_t fate)
{
    return fate == FATE_FINE || fate == FATE_CRASH_AFTER || fate == FATE_LOST_APPLIED ||
           fate == FATE_DUPLICATE;
}

static bool arrives_later(fate_t fate)
{
    return fate == FATE_CRASH_IN_FLIGHT || fate == FATE_LOST_LATER || fate == FATE_DUPLICATE;
}

static bool crashes_client(fate_t fate)
{
    return fate >= FATE_CRASH_BEFORE && fate <= FATE_CRASH_IN_FLIGHT;
}

/* The client gets no answer. */
static spill_code_t fail_unanswered(fate_t fate, spill_error_t *error)
{
    if (fate == FATE_FAILED)
        return spill_fail(error, SPILL_IO, "the request was turned away");
    return spill_fail(error, SPILL_UNKNOWN, "no answer came");
}

static spill_code_t port_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    sim_client_t *client = (sim_client_t *)store;
    sim_world_t *world = client->world;
    if (!take_turn(client))
        return crashed(client, response, error);
    spill_error_t scratch;
    error = error ? error : &scratch;
    sim_ends_sent(client, request);
    fate_t fate = choose_fate(client, request->kind == SPILL_REQUEST_READ, repeatable(request));
    if (is_beyond_horizon(world, request))
        fate = FATE_LOST_REQUEST; /* its driver has given up */
    if (fate == FATE_MACHINE_CRASH) {
        crash_machine(world, client->index, request);
        return crashed(client, response, error);
    }
    note_fate(client, fate);
    if (fate == FATE_DUPLICATE && request->kind == SPILL_REQUEST_APPEND)
        client->append_again = true;
    spill_code_t code = SPILL_OK;
    if (arrives_now(fate))
        code = carry_out(world, client->index, request, response, fate_texts[fate], error);
    else
        trace_request(world, client->index, request, NULL, fate_texts[fate]);
    if (arrives_later(fate))
        send_late(world, client->index, request, NULL);
    if (crashes_client(fate))
        return crashed(client, response, error);
    if (code != SPILL_OK || fate == FATE_FINE || fate == FATE_DUPLICATE)
        return code;
    spill_response_clear(response);
    return fail_unanswered(fate, error);
}

spill_code_t sim_send(sim_client_t *client, const sim_message_t *message, spill_drop_note_t *found,
                      bool *done, spill_error_t *error)
{
    sim_world_t *world = client->world;
    *done = false;
    if (!take_turn(client))
        return spill_fail(error, SPILL_CANCELLED, "this client has crashed");
    fate_t fate = choose_fate(client, sim_message_reads(message->kind), true);
    note_fate(client, fate);
    if (arrives_now(fate))
        carry_message(world, client->index, message, found, done, fate_texts[fate]);
    else
        sim_trace(world, "       client %d   owner %d %s%s", client->index, message->owner,
                  sim_message_name(message->kind), fate_texts[fate]);
    if (arrives_later(fate))
        send_late(world, client->index, message->head, message);
    client->crashed = client->crashed || crashes_client(fate);
    if (client->crashed)
        return spill_fail(error, SPILL_CANCELLED, "this client has crashed");
    return fate == FATE_FINE || fate == FATE_DUPLICATE ? SPILL_OK : fail_unanswered(fate, error);
}

/* ---- the other functions of a store: forwarded, without faults ------------------------------- */

static spill_store_t *shared(spill_store_t *store)
{
    return ((sim_client_t *)store)->world->store;
}

static spill_code_t port_bind(spill_store_t *store, const spill_definition_t *definition,
                              spill_binding_t *binding, spill_error_t *error)
{
    return shared(store)->ops->bind(shared(store), definition, binding, error);
}

static spill_code_t port_list(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_list_query_t *query,
                              spill_listing_t *listing, spill_error_t *error)
{
    return spill_store_list(shared(store), definition, binding, query, listing, error);
}

/* Other programs delete heads, so an orphan is not known to be dropped. */
static spill_code_t port_orphans(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const spill_list_query_t *query,
                                 spill_listing_t *listing, spill_error_t *error)
{
    spill_code_t code = port_list(store, definition, binding, query, listing, error);
    for (size_t i = 0; code == SPILL_OK && i < listing->count; i++)
        listing->entries[i].item.orphan.dropped = false;
    return code;
}

static spill_code_t port_get(spill_store_t *store, spill_catalog_t kind, const char *name,
                             bson_t **document, spill_error_t *error)
{
    return shared(store)->ops->catalog_get(shared(store), kind, name, document, error);
}

static spill_code_t port_put(spill_store_t *store, spill_catalog_t kind, const char *name,
                             const bson_t *expected, const bson_t *document, bool *done,
                             spill_error_t *error)
{
    return shared(store)->ops->catalog_put(shared(store), kind, name, expected, document, done,
                                           error);
}

static spill_code_t port_delete(spill_store_t *store, spill_catalog_t kind, const char *name,
                                spill_error_t *error)
{
    return shared(store)->ops->catalog_delete(shared(store), kind, name, error);
}

static spill_code_t port_names(spill_store_t *store, spill_catalog_t kind, spill_listing_t *names,
                               spill_error_t *error)
{
    return shared(store)->ops->catalog_names(shared(store), kind, names, error);
}

static spill_code_t port_check(spill_store_t *store, const spill_binding_t *binding,
                               const spill_definition_t *definition, const spill_value_t *owner,
                               spill_store_finding_fn report, void *context, spill_error_t *error)
{
    if (shared(store)->ops->check == NULL)
        return SPILL_OK;
    return shared(store)->ops->check(shared(store), binding, definition, owner, report, context,
                                     error);
}

static spill_code_t port_finish(spill_store_t *store, spill_error_t *error)
{
    (void)store;
    (void)error;
    return SPILL_OK;
}

/* For every second seed, the clients assume that other programs write to documents, too. */
#define PORT_FUNCTIONS                                                                             \
    .name = "simulated client", .call = port_call, .bind = port_bind, .catalog_get = port_get,     \
    .catalog_put = port_put, .catalog_delete = port_delete, .catalog_names = port_names,           \
    .check = port_check, .close = port_finish
#define PORT_OPS(others, checks)                                                                   \
    {                                                                                              \
        PORT_FUNCTIONS, .others_write = (others), .checks_ids = (checks),                          \
                        .list = {port_list, port_list, port_list, port_list},                      \
    }

static const spill_store_ops_t port_ops[] = {PORT_OPS(false, false), PORT_OPS(true, false),
                                             PORT_OPS(false, true), PORT_OPS(true, true)};

static const spill_store_ops_t port_ops_with_notes = {
    PORT_FUNCTIONS,
    .others_write = true,
    .list = {[SPILL_LIST_OWNERS] = port_list,
             [SPILL_LIST_OVERSIZED] = port_list,
             [SPILL_LIST_ORPHANS] = port_orphans,
             [SPILL_LIST_WINDOWS] = port_list},
    .head_ends = sim_head_ends,
    .note_drop = sim_note_drop,
    .find_drop = sim_find_drop,
    .forget_drop = sim_forget_drop,
};

static int64_t port_now(void *context)
{
    const sim_client_t *client = context;
    return client->world->now_us + (int64_t)client->index * client->world->settings.skew_us;
}

static void port_sleep(void *context, int64_t duration_us)
{
    sim_client_t *client = context;
    client->world->now_us += duration_us;
    sim_saw(client->world, SIM_PAUSED);
    if (!client->reliable)
        sim_turn(client);
}

void sim_port_open(sim_client_t *client)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.clock = (spill_clock_t){.context = client, .now_us = port_now, .sleep_us = port_sleep};
    uint64_t seed = client->world->seed;
    /* The embedded store has an index of ids; every second seed searches all the same. */
    bool checks = client->world->engine == SIM_EMBEDDED && seed / 2 % 2 == 0;
    const spill_store_ops_t *ops = client->world->settings.notes
                                       ? &port_ops_with_notes
                                       : &port_ops[seed % 2 + (checks ? 2 : 0)];
    spill_store_base_init(&client->port, ops, "simulation:", &options);
    sim_spiller_open(client);
}

void sim_port_close(sim_client_t *client)
{
    spill_store_base_release(&client->port);
}
