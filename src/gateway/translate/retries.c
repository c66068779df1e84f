/*
 * A hash table of sessions. Entries whose write has ended are also in a list by age, for expiry.
 */
#include "gateway/translate/retries.h"

#include "util/buffer.h"

#include <pthread.h>
#include <string.h>

enum { BUCKETS = 16384 };

typedef struct entry {
    struct entry *next;            /* of its bucket */
    struct entry *older, *younger; /* of the list */
    spill_retry_key_t key;
    int64_t txn;
    bool ended; /* and in the list */
    int64_t ended_ms;
    bson_t *reply; /* NULL: not known */
} entry_t;

struct spill_retries {
    spill_limits_t *limits;
    size_t sessions_max;
    pthread_mutex_t lock; /* guards the fields below */
    size_t sessions;
    entry_t *oldest, *youngest;
    entry_t *buckets[BUCKETS];
};

spill_retries_t *spill_retries_new(spill_limits_t *limits, size_t sessions_max)
{
    spill_retries_t *retries = bson_malloc0(sizeof *retries);
    retries->limits = limits;
    retries->sessions_max = sessions_max;
    pthread_mutex_init(&retries->lock, NULL);
    return retries;
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The place of the key's entry in its bucket, or of the bucket's end. */
static entry_t **place_of(spill_retries_t *retries, const spill_retry_key_t *key)
{
    entry_t **place = &retries->buckets[spill_hash(key, sizeof *key) % BUCKETS];
    while (*place != NULL && memcmp(&(*place)->key, key, sizeof *key) != 0)
        place = &(*place)->next;
    return place;
}

static void unlist(spill_retries_t *retries, entry_t *entry)
{
    if (!entry->ended)
        return;
    *(entry->older != NULL ? &entry->older->younger : &retries->oldest) = entry->younger;
    *(entry->younger != NULL ? &entry->younger->older : &retries->youngest) = entry->older;
    entry->older = entry->younger = NULL;
    entry->ended = false;
}

static void drop_reply(spill_retries_t *retries, entry_t *entry)
{
    if (entry->reply != NULL)
        spill_limits_release(retries->limits, entry->reply->len);
    bson_destroy(entry->reply);
    entry->reply = NULL;
}

static void remove_entry(spill_retries_t *retries, entry_t **place)
{
    entry_t *entry = *place;
    *place = entry->next;
    unlist(retries, entry);
    drop_reply(retries, entry);
    bson_free(entry);
    retries->sessions--;
}

static void expire(spill_retries_t *retries, int64_t now_ms)
{
    while (retries->oldest != NULL && now_ms - retries->oldest->ended_ms > SPILL_RETRY_HORIZON_MS)
        remove_entry(retries, place_of(retries, &retries->oldest->key));
}

void spill_retries_free(spill_retries_t *retries)
{
    if (retries == NULL)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        while (retries->buckets[i] != NULL)
            remove_entry(retries, &retries->buckets[i]);
    pthread_mutex_destroy(&retries->lock);
    bson_free(retries);
}

/* ---- writes ---------------------------------------------------------------------------------- */

static spill_retry_t begin(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn,
                           bson_t *reply)
{
    entry_t **place = place_of(retries, key);
    entry_t *entry = *place;
    if (entry == NULL) {
        if (retries->sessions >= retries->sessions_max)
            return SPILL_RETRY_FULL;
        *place = entry = bson_malloc0(sizeof *entry);
        entry->key = *key;
        retries->sessions++;
    } else if (txn <= entry->txn) {
        if (txn < entry->txn)
            return SPILL_RETRY_TOO_OLD;
        if (entry->reply == NULL)
            return SPILL_RETRY_UNKNOWN;
        bson_copy_to(entry->reply, reply);
        return SPILL_RETRY_REPEATED;
    }
    unlist(retries, entry);
    drop_reply(retries, entry);
    entry->txn = txn;
    return SPILL_RETRY_FIRST;
}

spill_retry_t spill_retries_begin(spill_retries_t *retries, const spill_retry_key_t *key,
                                  int64_t txn, int64_t now_ms, bson_t *reply)
{
    pthread_mutex_lock(&retries->lock);
    expire(retries, now_ms);
    spill_retry_t result = begin(retries, key, txn, reply);
    pthread_mutex_unlock(&retries->lock);
    return result;
}

/* The entry of this write, unless it has ended or the session has made a later one. */
static entry_t **find_begun(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn)
{
    entry_t **place = place_of(retries, key);
    return *place != NULL && (*place)->txn == txn && !(*place)->ended ? place : NULL;
}

static void list_ended(spill_retries_t *retries, entry_t *entry, int64_t now_ms)
{
    entry->ended = true;
    entry->ended_ms = now_ms;
    entry->older = retries->youngest;
    *(retries->youngest != NULL ? &retries->youngest->younger : &retries->oldest) = entry;
    retries->youngest = entry;
}

void spill_retries_end(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn,
                       int64_t now_ms, const bson_t *reply)
{
    pthread_mutex_lock(&retries->lock);
    entry_t **place = find_begun(retries, key, txn);
    if (place != NULL) {
        entry_t *entry = *place;
        if (reply != NULL && reply->len <= SPILL_RETRY_REPLY_BYTES_MAX &&
            spill_limits_reserve(retries->limits, reply->len))
            entry->reply = bson_copy(reply);
        list_ended(retries, entry, now_ms);
    }
    pthread_mutex_unlock(&retries->lock);
}

/* The session's earlier writes stay known as ended. */
void spill_retries_forget(spill_retries_t *retries, const spill_retry_key_t *key, int64_t txn,
                          int64_t now_ms)
{
    pthread_mutex_lock(&retries->lock);
    entry_t **place = find_begun(retries, key, txn);
    if (place != NULL) {
        (*place)->txn = txn - 1;
        list_ended(retries, *place, now_ms);
    }
    pthread_mutex_unlock(&retries->lock);
}
