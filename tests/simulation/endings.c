/*
 * Heads that end without DROP_HEAD: by a statement of the gateway (layout/head_end.h), or by a
 * program that knows nothing of pages. The store keeps one note for each owner.
 *
 * What must hold:
 *   - A page is deleted only if its head ended by a drop or by a client's statement.
 *   - After such a statement, however its client ended, repair deletes all pages of the head. One
 *     case is excepted: a page was put after the head's rev was raised. Then a head that
 *     lives on would look the same.
 */
#include "world.h"

#include "layout/drop.h"
#include "layout/head_end.h"
#include "support/model_store.h"
#include "util/error.h"

void sim_settings_notes(sim_settings_t *settings)
{
    enum { WEIGHT = 12 };
    settings->notes = true;
    settings->weights[SIM_ACTION_DROP] += WEIGHT;
}

/* ---- the store's side ------------------------------------------------------------------------ */

const char *sim_message_name(sim_message_kind_t kind)
{
    static const char *const names[SIM_MESSAGE_KINDS] = {"marks heads",
                                                         "announces an end",
                                                         "deletes the head",
                                                         "says that it ended",
                                                         "forgets a note",
                                                         "reads a note",
                                                         "reads the highest head",
                                                         "reads the highest page",
                                                         "announces a drop of all",
                                                         "drops the collection",
                                                         "says that all have ended",
                                                         "withdraws a drop of all",
                                                         "deletes all pages"};
    return names[kind];
}

bool sim_message_reads(sim_message_kind_t kind)
{
    return kind == SIM_MESSAGE_FIND || kind == SIM_MESSAGE_HIGHEST_HEAD ||
           kind == SIM_MESSAGE_HIGHEST_PAGE;
}

static int64_t higher(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

static void announce(spill_drop_note_t *note, const spill_drop_note_t *of)
{
    note->rev = higher(note->rev, of->rev);
    note->incarnation = higher(note->incarnation, of->incarnation);
}

/* The document goes, with its array. */
static bool delete_head(sim_world_t *world, const sim_message_t *message)
{
    sim_ends_t *ends = &world->ends[message->owner];
    const model_document_t *head = model_document(world->store, message->head, false);
    if (!head || head->state.incarnation != message->note.incarnation ||
        head->state.rev != message->note.rev)
        return false;
    model_document_drop(world->store, message->head);
    const char *wrong = sim_model_drop(&world->plains[message->owner]);
    if (wrong)
        sim_fail(world, "owner %d: %s", message->owner, wrong);
    ends->any = true;
    ends->deleted = message->note.incarnation;
    ends->may_go = higher(ends->may_go, message->note.incarnation);
    return true;
}

/* What is certain is only forgotten when no request can arrive late. */
static void forget(spill_drop_note_t *note, const spill_drop_note_t *of, bool old)
{
    if (of->rev == SPILL_DROP_IS_CERTAIN) {
        if (old && note->incarnation <= of->incarnation && note->ended <= of->incarnation)
            *note = (spill_drop_note_t){0};
    } else if (note->incarnation <= of->incarnation && note->rev <= of->rev)
        *note = (spill_drop_note_t){.ended = note->ended};
}

void sim_deliver(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                 bool *done)
{
    sim_ends_t *ends = &world->ends[message->owner];
    spill_drop_note_t *note = &ends->note;
    *done = true;
    switch (message->kind) {
    case SIM_MESSAGE_MARK:
        model_head_ends(world->store, message->note.rev);
        break;
    case SIM_MESSAGE_ANNOUNCE:
        announce(note, &message->note);
        break;
    case SIM_MESSAGE_DELETE:
        *done = delete_head(world, message);
        break;
    case SIM_MESSAGE_CERTAIN:
        note->ended = higher(note->ended, message->note.incarnation);
        ends->certain = higher(ends->certain, message->note.incarnation);
        break;
    case SIM_MESSAGE_FORGET:
        forget(note, &message->note, ends->old || message->note.at_once);
        break;
    case SIM_MESSAGE_FIND:
        if (found) {
            *found = *note;
            found->ended = higher(note->ended, sim_all_ended(&world->drops_all));
        }
        break;
    default:
        sim_deliver_all(world, message, found, done);
        break;
    }
}

/* ---- the client's side ----------------------------------------------------------------------- */

static spill_code_t send_note(spill_store_t *port, sim_message_kind_t kind,
                              const spill_value_t *owner, const spill_drop_note_t *note,
                              spill_drop_note_t *found, spill_error_t *error)
{
    bool done;
    spill_error_t scratch;
    sim_message_t message = {.kind = kind};
    if (owner)
        message.owner = sim_owner_number(owner);
    if (note)
        message.note = *note;
    return sim_send((sim_client_t *)port, &message, found, &done, error ? error : &scratch);
}

spill_code_t sim_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error)
{
    return send_note(store, SIM_MESSAGE_MARK, NULL, &(spill_drop_note_t){.rev = rev}, NULL, error);
}

spill_code_t sim_note_drop(spill_store_t *store, const spill_definition_t *definition,
                           const spill_value_t *owner, const spill_drop_note_t *note,
                           spill_error_t *error)
{
    (void)definition;
    bool certain = note->rev == SPILL_DROP_IS_CERTAIN;
    return send_note(store, certain ? SIM_MESSAGE_CERTAIN : SIM_MESSAGE_ANNOUNCE, owner, note, NULL,
                     error);
}

spill_code_t sim_find_drop(spill_store_t *store, const spill_definition_t *definition,
                           const spill_value_t *owner, spill_drop_note_t *note,
                           spill_error_t *error)
{
    (void)definition;
    return send_note(store, SIM_MESSAGE_FIND, owner, NULL, note, error);
}

spill_code_t sim_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                             const spill_value_t *owner, const spill_drop_note_t *note,
                             spill_error_t *error)
{
    (void)definition;
    return send_note(store, SIM_MESSAGE_FORGET, owner, note, NULL, error);
}

/* A client wants to end this head. Then no page of an earlier one is to stay, either. */
static void want_to_end(sim_ends_t *ends, const spill_state_t *head)
{
    ends->wanted = head->incarnation;
    ends->pages = head->pages;
    ends->may_go = higher(ends->may_go, head->incarnation - 1);
}

/* Raise, begin, the statement, finish. A failure ends it anywhere. */
static spill_code_t end_head(sim_client_t *client, spill_head_end_t *end, int owner,
                             spill_error_t *error)
{
    bool done = false;
    sim_ends_t *ends = &client->world->ends[owner];
    client->raises = true;
    spill_code_t code = spill_head_end_raise(end, error);
    client->raises = false;
    SPILL_TRY(code);
    ends->announced = end->incarnation;
    SPILL_TRY(spill_head_end_begin(end, error));
    spill_request_t head = spill_owner_request(end->owner, SPILL_REQUEST_READ, SPILL_HEAD);
    const sim_message_t message = {.kind = SIM_MESSAGE_DELETE,
                                   .owner = owner,
                                   .note = {.incarnation = end->incarnation, .rev = end->rev},
                                   .head = &head};
    SPILL_TRY(sim_send(client, &message, NULL, &done, error));
    sim_saw(client->world, done ? SIM_HEAD_ENDED : SIM_HEAD_ENDED_NOT);
    SPILL_TRY(spill_head_end_finish(end, done, error));
    return done && client->world->settings.forgets ? spill_outlier_finish_noted(end->owner, error)
                                                   : SPILL_OK;
}

static spill_code_t read_and_end(sim_client_t *client, const spill_owner_t *own, int owner,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_response_release) spill_response_t head = SPILL_RESPONSE_INIT;
    SPILL_TRY(spill_owner_read_state(own, SPILL_HEAD, &head, error));
    if (!head.state.present)
        return SPILL_OK;
    sim_ends_t *ends = &client->world->ends[owner];
    want_to_end(ends, &head.state);
    spill_head_end_t end = {own, head.state.incarnation, head.state.rev};
    return end_head(client, &end, owner, error);
}

static void end_as_gateway(sim_client_t *client, int owner)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    spill_value_t value = sim_owner_value(client->world, owner);
    spill_error_t error;
    spill_code_t code = spill_owner_init(&own, client->array, &value, &error);
    if (code == SPILL_OK)
        code = read_and_end(client, &own, owner, &error);
    sim_trace(client->world, "       client %d   ends owner %d: %s", client->index, owner,
              spill_code_name(code));
    if (code != SPILL_OK && code != SPILL_CONFLICT && !sim_failed_by_fault(client, code))
        sim_fail(client->world, "owner %d: the end of a head failed: %s", owner, error.message);
}

void sim_ends_vanished(sim_ends_t *ends, const spill_state_t *head)
{
    /* A client wanted these pages to go: no others have been made since it read the head. */
    if (ends->wanted == head->incarnation && ends->pages == head->pages)
        ends->may_go = higher(ends->may_go, head->incarnation);
    ends->any = true;
}

/*
 * Another program deletes the head. Later heads get later incarnations: clocks differ by less than
 * the time until the next one is made.
 */
static void delete_by_another(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    sim_ends_t *ends = &world->ends[owner];
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    spill_value_t value = sim_owner_value(world, owner);
    if (!sim_turn(client) || spill_owner_init(&own, client->array, &value, NULL) != SPILL_OK)
        return;
    spill_request_t request = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
    const model_document_t *head = model_document(world->store, &request, false);
    if (!head)
        return;
    const spill_state_t *state = &head->state;
    sim_ends_vanished(ends, state);
    model_head_ends(world->store, state->rev);
    sim_trace(world, "       another program deletes the head of owner %d, epoch %lld rev %lld",
              owner, (long long)state->incarnation, (long long)state->rev);
    model_document_drop(world->store, &request);
    sim_model_drop(&world->plains[owner]);
    sim_saw(world, SIM_HEAD_DELETED);
    if (sim_random_chance(&world->random, 200))
        sim_client_export(client, owner);
}

bool sim_act_on_head(sim_client_t *client, int owner)
{
    int how = sim_random_below(&client->world->random, 9);
    if (how > 7)
        sim_act_on_collection(client, owner);
    else if (how > 4)
        delete_by_another(client, owner);
    else if (how > 1)
        end_as_gateway(client, owner);
    return how > 1;
}

/* ---- checks ---------------------------------------------------------------------------------- */

void sim_ends_sent(const sim_client_t *client, const spill_request_t *request)
{
    if (!client->drops)
        return;
    sim_world_t *world = client->world;
    sim_ends_t *ends = &world->ends[sim_owner_of(request)];
    if (request->kind == SPILL_REQUEST_DROP_PAGE)
        ends->may_go = higher(ends->may_go, request->incarnation);
    if (!world->settings.notes || request->page != SPILL_HEAD)
        return;
    const model_document_t *head = model_document(world->store, request, false);
    if (!head)
        return;
    want_to_end(ends, &head->state);
}

void sim_ends_observe(sim_world_t *world, int client, const spill_request_t *request)
{
    int owner = sim_owner_of(request);
    sim_ends_t *ends = &world->ends[owner];
    const sim_client_t *by = &world->clients[client];
    if (request->kind == SPILL_REQUEST_RECOUNT && (by->drops || by->raises)) {
        ends->announced = world->before.state.incarnation;
        ends->page_put = false;
    }
    if (request->kind == SPILL_REQUEST_DROP_HEAD) {
        ends->may_go = higher(ends->may_go, request->incarnation);
        ends->deleted = request->incarnation;
    }
    if (request->kind != SPILL_REQUEST_DROP_PAGE) {
        ends->page_put = ends->page_put || request->kind == SPILL_REQUEST_PUT_PAGE;
        return;
    }
    if (world->before.state.incarnation > ends->may_go)
        sim_fail(world, "owner %d: page %lld of epoch %lld was deleted, though nobody dropped it",
                 owner, (long long)request->page, (long long)world->before.state.incarnation);
}

static bool find_page(sim_world_t *world, const spill_owner_t *own, int64_t last, int64_t *number)
{
    SPILL_SCOPED(spill_response_release) spill_response_t page = SPILL_RESPONSE_INIT;
    int64_t pages = (int64_t)world->origin_count + 2; /* no owner can have had more pages */
    spill_error_t error;
    for (*number = 0; *number < pages; ++*number)
        if (spill_owner_read_state(own, *number, &page, &error) == SPILL_OK && page.state.present &&
            page.state.incarnation <= last)
            return true;
    return false;
}

void sim_check_ended(sim_world_t *world, sim_client_t *client, int owner, int64_t certain)
{
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    const sim_ends_t *ends = &world->ends[owner];
    spill_value_t value = sim_owner_value(world, owner);
    int64_t number;
    if (spill_owner_init(&own, client->array, &value, NULL) != SPILL_OK)
        return;
    bool any = find_page(world, &own, INT64_MAX - 1, &number);
    if (any && !sim_model_now(&world->plains[owner])->exists)
        sim_saw(world, SIM_PAGES_STAY);
    if (find_page(world, &own, world->drops_all.sure, &number))
        sim_fail(world, "owner %d, at the end: repair left page %lld of a collection's drop", owner,
                 (long long)number);
    if (find_page(world, &own, certain, &number))
        sim_fail(world, "owner %d, at the end: repair left page %lld of a head that surely ended",
                 owner, (long long)number);
    bool last = ends->deleted > 0 && ends->announced == ends->deleted;
    if (last && !ends->page_put && find_page(world, &own, ends->deleted, &number))
        sim_fail(world, "owner %d, at the end: repair left page %lld of a head that was ended",
                 owner, (long long)number);
}
