#include "layout/owner.h"

#include "bson/key.h"
#include "definition/schema.h"
#include "store/timed.h"
#include "util/buffer.h"
#include "util/error.h"
#include "util/text.h"

#include <inttypes.h>
#include <string.h>

spill_code_t spill_owner_init(spill_owner_t *owner, spill_array_t *array,
                              const spill_value_t *value, spill_error_t *error)
{
    *owner = (spill_owner_t){.array = array, .value = value, .key = SPILL_BUFFER_INIT};
    spill_timed_forget_changes();
    const spill_definition_t *definition = &array->definition;
    spill_value_t of;
    const char *window;
    bool bucket = spill_schema_of(definition)->has_windows;
    bool named = bucket && spill_window_split(value, &of, &window);
    if (named && spill_owner_check(&of, error) != SPILL_OK)
        return SPILL_INVALID;
    if (bucket && !named)
        return spill_fail(error, SPILL_INVALID,
                          "'%s' has windows: here its owners are documents {owner, window} "
                          "(spill_bucket_name); spill_bucket_... functions take an owner alone",
                          definition->name);
    return spill_owner_key(value, &owner->key, error);
}

void spill_owner_release(spill_owner_t *owner)
{
    spill_buffer_release(&owner->key);
}

spill_request_t spill_owner_request(const spill_owner_t *owner, spill_request_kind_t kind,
                                    int64_t page)
{
    spill_request_t request = {
        .kind = kind,
        .definition = &owner->array->definition,
        .array_id = owner->array->binding.array_id,
        .collection_id = owner->array->binding.collection_id,
        .owner = owner->value,
        .key = owner->key.data,
        .key_bytes = owner->key.size,
        .page = page,
    };
    if (kind == SPILL_REQUEST_READ)
        request.read.ahead = owner->walked;
    return request;
}

/* "owner {...} of 'feed', page 3: " before a store's message. */
static spill_code_t name_document(const spill_owner_t *owner, const spill_request_t *request,
                                  spill_code_t code, spill_error_t *error)
{
    if (error == NULL)
        return code;
    char document[48] = "head";
    if (request->page >= 0)
        snprintf(document, sizeof document, "page %" PRId64, request->page);
    else if (request->page == SPILL_PAGE_HOLDING)
        snprintf(document, sizeof document, "page of element %" PRId64, request->read.seq);
    else if (request->page == SPILL_PAGE_LEFT_OVER)
        snprintf(document, sizeof document, "pages left over");
    else if (request->page == SPILL_PAGE_WITH_ID)
        snprintf(document, sizeof document, "pages by an element's id");
    char *json = spill_value_to_json(owner->value, false);
    spill_fail_prefix(error, code, "owner %.100s of '%s', %s", json ? json : "?",
                      owner->array->definition.name, document);
    bson_free(json);
    return code;
}

spill_code_t spill_owner_name(const spill_owner_t *owner, spill_code_t code, spill_error_t *error)
{
    char *json = error != NULL ? spill_value_to_json(owner->value, false) : NULL;
    spill_fail_prefix(error, code, "owner %.100s of '%s'", json ? json : "?",
                      owner->array->definition.name);
    bson_free(json);
    return code;
}

spill_code_t spill_owner_absent(const spill_owner_t *owner, spill_error_t *error)
{
    spill_fail(error, SPILL_NOT_FOUND, "there is no such owner");
    return spill_owner_name(owner, SPILL_NOT_FOUND, error);
}

spill_code_t spill_owner_call(const spill_owner_t *owner, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    spill_code_t code = spill_store_call(owner->array->store, request, response, error);
    return code == SPILL_OK ? SPILL_OK : name_document(owner, request, code, error);
}

spill_code_t spill_owner_call_all(const spill_owner_t *owner, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error)
{
    spill_code_t code =
        spill_store_call_all(owner->array->store, requests, count, responses, error);
    return code == SPILL_OK ? SPILL_OK : spill_owner_name(owner, code, error);
}

spill_code_t spill_owner_step(const spill_owner_t *owner, const spill_request_t *request,
                              bool *done, spill_error_t *error)
{
    spill_response_t response = SPILL_RESPONSE_INIT;
    spill_code_t code = spill_owner_call(owner, request, &response, error);
    if (done != NULL)
        *done = code == SPILL_OK && response.outcome == SPILL_DONE;
    spill_response_release(&response);
    return code;
}

spill_code_t spill_owner_read_state(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    return spill_owner_call(owner, &read, response, error);
}

spill_request_t spill_owner_unmanaged_request(const spill_owner_t *owner, int64_t limit)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.unmanaged = true;
    read.read.want = limit > 0 ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = limit;
    return read;
}

spill_request_t spill_owner_whole_request(const spill_owner_t *owner, int64_t page)
{
    spill_request_t read = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    return read;
}

spill_code_t spill_owner_read_whole(const spill_owner_t *owner, int64_t page,
                                    spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_owner_whole_request(owner, page);
    return spill_owner_call(owner, &read, response, error);
}

spill_code_t spill_owner_missing_page(const spill_owner_t *owner, int64_t page,
                                      spill_error_t *error)
{
    spill_request_t place = spill_owner_request(owner, SPILL_REQUEST_READ, page);
    spill_fail(error, SPILL_CORRUPT, "the page is missing; run `spillway verify`");
    return name_document(owner, &place, SPILL_CORRUPT, error);
}

spill_code_t spill_owner_check_missing(const spill_owner_t *owner, const spill_state_t *head,
                                       int64_t page, int64_t missing, spill_error_t *error)
{
    enum { MISSING_MAX = 100 };
    if (missing == 0 || missing % MISSING_MAX != 0)
        return SPILL_OK;
    return spill_owner_check_counted(owner, head, page, error);
}

spill_code_t spill_owner_check_counted(const spill_owner_t *owner, const spill_state_t *head,
                                       int64_t page, spill_error_t *error)
{
    spill_response_t again = SPILL_RESPONSE_INIT; /* a drop deletes the head before its pages */
    spill_code_t code = spill_owner_read_state(owner, SPILL_HEAD, &again, error);
    if (code == SPILL_OK && again.state.present && again.state.incarnation == head->incarnation &&
        again.state.watermark <= head->watermark && page < again.state.pages)
        code = spill_owner_missing_page(owner, page, error);
    spill_response_release(&again);
    return code;
}

spill_code_t spill_owner_still_has(const spill_owner_t *owner, const spill_state_t *head,
                                   int64_t from, spill_response_t *now, bool *still,
                                   spill_error_t *error)
{
    *still = true;
    if (!spill_schema_of(&owner->array->definition)->appends_to_head)
        return SPILL_OK;
    int64_t incarnation = head->incarnation, watermark = head->watermark;
    SPILL_TRY(spill_owner_read_state(owner, SPILL_HEAD, now, error));
    *still = now->state.present && now->state.incarnation == incarnation &&
             (now->state.watermark <= watermark || now->state.watermark <= from);
    return SPILL_OK;
}

spill_code_t spill_owner_leased(const spill_owner_t *owner, int64_t lease, spill_error_t *error)
{
    const spill_time_text_t until = spill_time_text(lease / 1000 + 1000);
    spill_fail_retryable(error, SPILL_CONFLICT,
                         "its elements were copied by `spillway migrate', and the copy is neither "
                         "replaced nor deleted before %s; try again then",
                         until.text);
    return spill_owner_name(owner, SPILL_CONFLICT, error);
}

int64_t spill_owner_now(const spill_owner_t *owner)
{
    const spill_clock_t *clock = &owner->array->store->options.clock;
    return clock->now_us(clock->context);
}

spill_code_t spill_owner_again(const spill_owner_t *owner, int *tries, spill_error_t *error)
{
    enum { FREE_TRIES = 3, LONGEST_US = 10000 };
    spill_store_t *store = owner->array->store;
    atomic_fetch_add_explicit(&store->counts.retries, 1, memory_order_relaxed);
    if (++*tries > SPILL_TRIES_MAX) {
        spill_fail_retryable(error, SPILL_CONFLICT,
                             "lost every race in %d tries; try again later, and if no other client "
                             "writes to this owner, run `spillway verify`",
                             SPILL_TRIES_MAX);
        return spill_owner_name(owner, SPILL_CONFLICT, error);
    }
    if (*tries <= FREE_TRIES)
        return SPILL_OK;
    /* Racers that lost together shall not come back together: the pause depends on the moment. */
    int64_t moment = spill_owner_now(owner);
    int64_t longest = (int64_t)50 << (*tries - FREE_TRIES < 8 ? *tries - FREE_TRIES : 8);
    if (longest > LONGEST_US)
        longest = LONGEST_US;
    int64_t pause =
        longest / 2 + (int64_t)(spill_hash(&moment, sizeof moment) % (uint64_t)(longest / 2));
    atomic_fetch_add_explicit(&store->counts.waits, 1, memory_order_relaxed);
    store->options.clock.sleep_us(store->options.clock.context, pause);
    return SPILL_OK;
}

static spill_tail_t *tail_slot(const spill_owner_t *owner, uint64_t *hash)
{
    *hash = spill_hash(owner->key.data, owner->key.size);
    return &owner->array->tails[*hash % SPILL_TAIL_SLOTS];
}

bool spill_tail_recall(const spill_owner_t *owner, spill_tail_t *tail)
{
    uint64_t hash;
    spill_tail_t *slot = tail_slot(owner, &hash);
    pthread_mutex_lock(&owner->array->tails_lock);
    *tail = *slot;
    pthread_mutex_unlock(&owner->array->tails_lock);
    return tail->known && tail->owner_hash == hash;
}

void spill_tail_remember(const spill_owner_t *owner, int64_t incarnation, int64_t page)
{
    uint64_t hash;
    spill_tail_t *slot = tail_slot(owner, &hash);
    pthread_mutex_lock(&owner->array->tails_lock);
    *slot =
        (spill_tail_t){.known = true, .owner_hash = hash, .incarnation = incarnation, .page = page};
    pthread_mutex_unlock(&owner->array->tails_lock);
}

void spill_tail_forget(const spill_owner_t *owner)
{
    uint64_t hash;
    spill_tail_t *slot = tail_slot(owner, &hash);
    pthread_mutex_lock(&owner->array->tails_lock);
    if (slot->owner_hash == hash)
        *slot = (spill_tail_t){0};
    pthread_mutex_unlock(&owner->array->tails_lock);
}
