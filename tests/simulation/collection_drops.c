/*
 * Drops of the whole collection, by the gateway (src/gateway/translate/translate_catalog.c) and by
 * a program that knows nothing of pages. The store keeps one note of them: what is certain, and
 * what each attempt has announced, with the collection's UUID. A collection that was dropped never
 * comes back under its UUID. What must hold:
 *   - A page is deleted only if its head ended by a drop or a client's statement, or with a
 *     collection that a client wanted to drop, unless the drop was refused.
 *   - After a client's drop, however the client ended, repair deletes all pages of the heads that
 *     it has announced.
 */
#include "world.h"

#include "bson/key.h"
#include "layout/owner.h"
#include "support/model_store.h"
#include "util/error.h"

static int64_t higher(int64_t left, int64_t right)
{
    return left > right ? left : right;
}

/* ---- the store's side ------------------------------------------------------------------------ */

/* The document of this owner that is in the place of the request's. */
typedef struct place {
    spill_request_t request;
    spill_value_t owner;
    spill_buffer_t key;
} place_t;

static bool locate(const sim_world_t *world, const spill_request_t *like, int owner, place_t *place)
{
    *place = (place_t){.request = *like, .key = SPILL_BUFFER_INIT};
    place->owner = sim_owner_value(world, owner);
    if (spill_owner_key(&place->owner, &place->key, NULL) != SPILL_OK)
        return false;
    place->request.owner = &place->owner;
    place->request.key = place->key.data;
    place->request.key_bytes = place->key.size;
    return true;
}

/* The highest number of all heads, or of all pages. */
static int64_t find_highest(sim_world_t *world, const spill_request_t *head, bool pages)
{
    int64_t most = 0;
    for (int owner = 0; owner < world->settings.owners; owner++) {
        place_t place;
        if (!locate(world, head, owner, &place))
            continue;
        int64_t count = pages ? (int64_t)world->origin_count + 2 : 1;
        for (int64_t i = 0; i < count; i++) {
            place.request.page = pages ? i : SPILL_HEAD;
            const model_document_t *one = model_document(world->store, &place.request, false);
            if (one)
                most = higher(most, pages ? one->state.incarnation : one->state.rev);
        }
        spill_buffer_release(&place.key);
    }
    return most;
}

/*
 * All heads go, with their arrays. Pages up to `may_go` may go as well. Later heads get later
 * incarnations than those that were made just before, as in endings.c.
 */
static void drop_heads(sim_world_t *world, const spill_request_t *head, int64_t may_go)
{
    model_head_ends(world->store, find_highest(world, head, false));
    for (int owner = 0; owner < world->settings.owners; owner++) {
        place_t place;
        sim_ends_t *ends = &world->ends[owner];
        if (!locate(world, head, owner, &place))
            continue;
        ends->may_go = higher(ends->may_go, may_go);
        const model_document_t *one = model_document(world->store, &place.request, false);
        if (one) {
            sim_ends_vanished(ends, &one->state);
            model_document_drop(world->store, &place.request);
            const char *wrong = sim_model_drop(&world->plains[owner]);
            if (wrong)
                sim_fail(world, "owner %d: %s", owner, wrong);
        }
        spill_buffer_release(&place.key);
    }
    world->drops_all.collection++;
}

static void delete_pages(sim_world_t *world, const spill_request_t *head, int64_t most)
{
    for (int owner = 0; owner < world->settings.owners; owner++) {
        place_t place;
        if (!locate(world, head, owner, &place))
            continue;
        for (int64_t i = 0; i < (int64_t)world->origin_count + 2; i++) {
            place.request.page = i;
            const model_document_t *page = model_document(world->store, &place.request, false);
            if (!page || page->state.incarnation > most)
                continue;
            if (page->state.incarnation > world->ends[owner].may_go)
                sim_fail(world, "owner %d: page %lld was deleted, though nobody dropped it", owner,
                         (long long)i);
            model_document_drop(world->store, &place.request);
        }
        spill_buffer_release(&place.key);
    }
}

int64_t sim_all_ended(const sim_drops_all_t *all)
{
    int64_t ended = all->ended;
    for (int i = 0; i < all->count; i++) {
        const sim_attempt_t *attempt = &all->attempts[i];
        if (attempt->announced && !attempt->refused && attempt->collection != all->collection)
            ended = higher(ended, attempt->incarnation);
    }
    return ended;
}

void sim_deliver_all(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                     bool *done)
{
    enum { REFUSED = 300 }; /* of 1000 drops */
    sim_drops_all_t *all = &world->drops_all;
    int64_t incarnation = message->note.incarnation;
    sim_attempt_t *attempt = &all->attempts[message->attempt];
    switch (message->kind) {
    case SIM_MESSAGE_HIGHEST_HEAD:
    case SIM_MESSAGE_HIGHEST_PAGE:
        if (found)
            found->incarnation =
                find_highest(world, message->head, message->kind == SIM_MESSAGE_HIGHEST_PAGE);
        break;
    case SIM_MESSAGE_ANNOUNCE_ALL:
        attempt->announced = true;
        break;
    case SIM_MESSAGE_DROP_ALL:
        attempt->denied = sim_random_chance(&world->random, REFUSED) || attempt->denied;
        *done = !attempt->denied;
        if (!*done)
            break;
        drop_heads(world, message->head, incarnation);
        all->sure = higher(all->sure, incarnation);
        break;
    case SIM_MESSAGE_ENDED_ALL:
        all->ended = higher(all->ended, incarnation);
        break;
    case SIM_MESSAGE_REFUSED_ALL:
        attempt->refused = true;
        break;
    case SIM_MESSAGE_DELETE_ALL:
        delete_pages(world, message->head, incarnation);
        break;
    default:
        break;
    }
}

/* ---- the clients ----------------------------------------------------------------------------- */

static spill_code_t send_all(sim_client_t *client, sim_message_t message, sim_message_kind_t kind,
                             spill_drop_note_t *found, bool *done, spill_error_t *error)
{
    message.kind = kind;
    return sim_send(client, &message, found, done, error);
}

/* The steps of the gateway. A failure ends them anywhere. */
static spill_code_t drop_all(sim_client_t *client, sim_message_t message, spill_error_t *error)
{
    bool done;
    sim_world_t *world = client->world;
    spill_drop_note_t heads = {0}, pages = {0};
    sim_attempt_t *attempt = &world->drops_all.attempts[message.attempt];
    SPILL_TRY(send_all(client, message, SIM_MESSAGE_HIGHEST_HEAD, &heads, &done, error));
    SPILL_TRY(send_all(client, message, SIM_MESSAGE_HIGHEST_PAGE, &pages, &done, error));
    int64_t most = higher(heads.incarnation, pages.incarnation);
    if (most == 0)
        return SPILL_OK;
    SPILL_TRY(client->port.ops->head_ends(&client->port, most, error));
    message.note.incarnation = most;
    *attempt = (sim_attempt_t){
        .incarnation = most, .collection = world->drops_all.collection, .wanted = true};
    SPILL_TRY(send_all(client, message, SIM_MESSAGE_ANNOUNCE_ALL, NULL, &done, error));
    SPILL_TRY(send_all(client, message, SIM_MESSAGE_DROP_ALL, NULL, &done, error));
    sim_saw(world, done ? SIM_ALL_DROPPED : SIM_ALL_REFUSED);
    if (!done) {
        SPILL_TRY(send_all(client, message, SIM_MESSAGE_REFUSED_ALL, NULL, &done, error));
        attempt->wanted = false;
        return SPILL_OK;
    }
    SPILL_TRY(send_all(client, message, SIM_MESSAGE_ENDED_ALL, NULL, &done, error));
    return send_all(client, message, SIM_MESSAGE_DELETE_ALL, NULL, &done, error);
}

/* Another program drops the collection. What a client has wanted to drop with it may go. */
static void drop_by_another(sim_client_t *client, const spill_request_t *head)
{
    sim_world_t *world = client->world;
    const sim_drops_all_t *all = &world->drops_all;
    int64_t wanted = 0;
    for (int i = 0; i < all->count; i++)
        if (all->attempts[i].wanted && all->attempts[i].collection == all->collection)
            wanted = higher(wanted, all->attempts[i].incarnation);
    sim_trace(world, "       another program drops the collection");
    drop_heads(world, head, wanted);
    sim_saw(world, SIM_ALL_DELETED);
}

void sim_act_on_collection(sim_client_t *client, int owner)
{
    sim_world_t *world = client->world;
    SPILL_SCOPED(spill_owner_release) spill_owner_t own = {0};
    spill_value_t value = sim_owner_value(world, owner);
    spill_error_t error;
    if (!sim_turn(client) || spill_owner_init(&own, client->array, &value, NULL) != SPILL_OK)
        return;
    spill_request_t head = spill_owner_request(&own, SPILL_REQUEST_READ, SPILL_HEAD);
    if (world->drops_all.count == SIM_ATTEMPTS_MAX || sim_random_chance(&world->random, 300)) {
        drop_by_another(client, &head);
        return;
    }
    const sim_message_t message = {
        .owner = owner, .head = &head, .attempt = world->drops_all.count++};
    spill_code_t code = drop_all(client, message, &error);
    sim_trace(world, "       client %d   drops the collection: %s", client->index,
              spill_code_name(code));
}
