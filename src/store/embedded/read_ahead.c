/* The spans of passes over many owners, and the changes that make them old. */
#include "store/embedded/read_ahead.h"

#include "util/buffer.h"
#include "util/error.h"

#include <pthread.h>
#include <string.h>

/*
 * Each batch of changes has a number. The leader notes it for the owners of the batch before it
 * writes, and as `ended` after that. Owners with one hash share a note. A span knows
 * the last batch that had ended when it was filled: it has the changes of all batches up to that.
 */
enum { NOTES = 4096 };

/* A number that no span reaches. */
#define NEVER INT64_MAX

/* If a span has fewer owners and none of them was read, its pass only lists owners. */
enum { OWNERS_WORTH = 16 };

/* One pass over the owners of an array. Its lock is only tried: a thread without it uses the
 * engine. */
struct spill_pass {
    pthread_mutex_t lock;
    spill_read_ahead_t *ahead;
    atomic_uint array_id; /* 0: no pass */
    pthread_t thread;     /* that lists its owners */
    bool used;            /* a read used the span */
    int64_t as_of;        /* the last batch that the span certainly has */
    size_t at;            /* the owner that was found last */
    int64_t turn;         /* when it was opened last */
    spill_buffer_t last;  /* the key of the last owner that was listed */
    spill_span_t span;
};

/* Ways to place a known owner. */
enum { KNOWN_WAYS = 4 };

typedef struct known {
    uint32_t array_id; /* 0: none */
    uint32_t collection_id;
    bool has_head;
    uint8_t key_bytes;
    uint8_t head_bytes;
    uint8_t key[SPILL_KNOWN_KEY_MAX];
    uint8_t head[SPILL_KNOWN_HEAD_MAX];
} known_t;

struct spill_read_ahead {
    spill_kv_t *kv;
    int64_t started; /* the last batch; for the leader */
    atomic_llong ended;
    atomic_llong turns;
    atomic_llong notes[NOTES];
    atomic_llong note_of_all; /* of the last change of unknown owners */
    spill_pass_t pass[SPILL_PASSES_MAX];
    pthread_mutex_t known_lock;
    known_t *known; /* by the hash of the owner's key; NULL before the first one */
    size_t evict;   /* the way that the next owner takes if all are occupied */
};

spill_read_ahead_t *spill_read_ahead_new(spill_kv_t *kv)
{
    spill_read_ahead_t *ahead = bson_malloc0(sizeof *ahead);
    ahead->kv = kv;
    pthread_mutex_init(&ahead->known_lock, NULL);
    for (size_t i = 0; i < SPILL_PASSES_MAX; i++)
        pthread_mutex_init(&ahead->pass[i].lock, NULL);
    return ahead;
}

static void release_pass(spill_pass_t *pass)
{
    atomic_store(&pass->array_id, 0);
    spill_buffer_release(&pass->last);
    spill_span_release(&pass->span);
}

void spill_read_ahead_free(spill_read_ahead_t *ahead)
{
    for (size_t i = 0; i < SPILL_PASSES_MAX; i++) {
        release_pass(&ahead->pass[i]);
        pthread_mutex_destroy(&ahead->pass[i].lock);
    }
    pthread_mutex_destroy(&ahead->known_lock);
    bson_free(ahead->known);
    bson_free(ahead);
}

/* ---- listings -------------------------------------------------------------------------------- */

static bool continues(const spill_pass_t *pass, const spill_span_range_t *range)
{
    return pthread_equal(pass->thread, pthread_self()) && range->after_bytes > 0 &&
           pass->last.size == range->after_bytes &&
           memcmp(pass->last.data, range->after, range->after_bytes) == 0;
}

/* Lock the pass that continues at the range, or a place for a new one: unused, or the oldest. */
static spill_pass_t *lock_pass(spill_read_ahead_t *ahead, const spill_span_range_t *range)
{
    spill_pass_t *oldest = NULL;
    for (size_t i = 0; i < SPILL_PASSES_MAX; i++) {
        spill_pass_t *pass = &ahead->pass[i];
        if (pthread_mutex_trylock(&pass->lock) != 0)
            continue;
        if (atomic_load(&pass->array_id) == range->array_id && continues(pass, range)) {
            if (oldest)
                pthread_mutex_unlock(&oldest->lock);
            return pass;
        }
        bool older = !oldest || (atomic_load(&oldest->array_id) != 0 &&
                                 (atomic_load(&pass->array_id) == 0 || pass->turn < oldest->turn));
        spill_pass_t *worse = older ? oldest : pass;
        oldest = older ? pass : oldest;
        if (worse)
            pthread_mutex_unlock(&worse->lock);
    }
    if (oldest) {
        oldest->span.owner_count = 0;
        oldest->span.bytes_most = 0;
    }
    return oldest;
}

spill_pass_t *spill_pass_open(spill_read_ahead_t *ahead, const spill_span_range_t *range)
{
    spill_pass_t *pass = lock_pass(ahead, range);
    if (!pass)
        return NULL;
    size_t owners = pass->span.owner_count;
    if (owners > 0 && owners < OWNERS_WORTH && !pass->used) {
        spill_pass_close(pass, NULL, 0);
        return NULL;
    }
    atomic_store(&pass->array_id, range->array_id);
    pass->ahead = ahead;
    pass->thread = pthread_self();
    pass->turn = atomic_fetch_add(&ahead->turns, 1);
    return pass;
}

const spill_span_t *spill_pass_fill(spill_pass_t *pass, const spill_span_range_t *range)
{
    pass->used = false;
    pass->at = 0;
    pass->as_of = atomic_load(&pass->ahead->ended);
    spill_span_fill(&pass->span, pass->ahead->kv, range);
    return &pass->span;
}

void spill_pass_close(spill_pass_t *pass, const uint8_t *last, size_t last_bytes)
{
    if (!pass)
        return;
    if (last_bytes == 0) {
        release_pass(pass);
    } else {
        spill_buffer_clear(&pass->last);
        spill_buffer_append(&pass->last, last, last_bytes);
    }
    pthread_mutex_unlock(&pass->lock);
}

/* ---- reads ----------------------------------------------------------------------------------- */

/* Did a change of the owner begin after the batch `as_of`? */
static bool is_old(const spill_read_ahead_t *ahead, uint64_t hash, int64_t as_of)
{
    return atomic_load(&ahead->notes[hash % NOTES]) > as_of ||
           atomic_load(&ahead->note_of_all) > as_of;
}

static int compare(const spill_span_t *span, size_t at, const uint8_t *owner, size_t owner_bytes)
{
    const spill_span_owner_t *other = &span->owners[at];
    return spill_bytes_compare(spill_span_owner_key(span, other), other->key_bytes, owner,
                               owner_bytes);
}

/* Find the owner: usually the one that was found last, or the next one. */
static bool find_owner(spill_pass_t *pass, const uint8_t *owner, size_t owner_bytes)
{
    const spill_span_t *span = &pass->span;
    size_t low = 0, high = span->owner_count;
    for (size_t i = pass->at; i < high && i < pass->at + 2; i++)
        if (compare(span, i, owner, owner_bytes) == 0) {
            pass->at = i;
            return true;
        }
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(span, middle, owner, owner_bytes);
        if (order == 0) {
            pass->at = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

spill_kv_t *spill_read_ahead_hold(spill_read_ahead_t *ahead, const spill_record_key_t *owner,
                                  spill_hold_t *hold)
{
    const uint8_t *key = owner->data + 4;
    size_t key_bytes = owner->prefix - 4;
    uint8_t id[4];
    hold->pass = NULL;
    for (size_t i = 0; i < SPILL_PASSES_MAX; i++) {
        spill_pass_t *pass = &ahead->pass[i];
        uint32_t array_id = atomic_load_explicit(&pass->array_id, memory_order_relaxed);
        if (array_id == 0)
            continue;
        spill_id_prefix(id, array_id);
        if (memcmp(id, owner->data, sizeof id) != 0 || pthread_mutex_trylock(&pass->lock) != 0)
            continue;
        if (atomic_load(&pass->array_id) == array_id && find_owner(pass, key, key_bytes) &&
            !is_old(ahead, spill_hash_quick(key, key_bytes), pass->as_of)) {
            pass->used = true;
            hold->pass = pass;
            return spill_owner_records_open(&hold->records, &pass->span,
                                            &pass->span.owners[pass->at]);
        }
        pthread_mutex_unlock(&pass->lock);
    }
    return NULL;
}

void spill_hold_release(spill_hold_t *hold)
{
    if (hold->pass)
        pthread_mutex_unlock(&hold->pass->lock);
    hold->pass = NULL;
}

/* ---- known owners ---------------------------------------------------------------------------- */

int64_t spill_known_note(spill_read_ahead_t *ahead)
{
    return atomic_load(&ahead->ended);
}

static bool is_at(const known_t *known, const uint8_t *owner, size_t owner_bytes)
{
    return known->array_id != 0 && known->key_bytes == owner_bytes &&
           memcmp(known->key, owner, owner_bytes) == 0;
}

/* The first of the owner's possible places. */
static known_t *places_of(const spill_read_ahead_t *ahead, uint64_t hash)
{
    return &ahead->known[hash % (SPILL_KNOWN_MAX / KNOWN_WAYS) * KNOWN_WAYS];
}

/* There are places. */
static known_t *find_known(const spill_read_ahead_t *ahead, const uint8_t *owner,
                           size_t owner_bytes, uint64_t hash)
{
    known_t *places = places_of(ahead, hash);
    for (size_t i = 0; i < KNOWN_WAYS; i++)
        if (is_at(&places[i], owner, owner_bytes))
            return &places[i];
    return NULL;
}

/* The owner's place, or an empty one, or any. */
static known_t *place_known(spill_read_ahead_t *ahead, const uint8_t *owner, size_t owner_bytes,
                            uint64_t hash)
{
    if (!ahead->known)
        ahead->known = bson_malloc0(SPILL_KNOWN_MAX * sizeof *ahead->known);
    known_t *found = find_known(ahead, owner, owner_bytes, hash);
    known_t *places = places_of(ahead, hash);
    for (size_t i = 0; !found && i < KNOWN_WAYS; i++)
        if (places[i].array_id == 0)
            found = &places[i];
    return found ? found : &places[ahead->evict++ % KNOWN_WAYS];
}

void spill_known_add(spill_read_ahead_t *ahead, const spill_request_t *request, const void *head,
                     size_t head_bytes, int64_t note)
{
    if (request->key_bytes > SPILL_KNOWN_KEY_MAX || head_bytes > SPILL_KNOWN_HEAD_MAX)
        return;
    uint64_t hash = spill_hash_quick(request->key, request->key_bytes);
    pthread_mutex_lock(&ahead->known_lock);
    /* A change that begins later than this check removes the owner. */
    if (!is_old(ahead, hash, note)) {
        known_t *known = place_known(ahead, request->key, request->key_bytes, hash);
        *known = (known_t){.array_id = request->array_id,
                           .collection_id = request->collection_id,
                           .has_head = head != NULL,
                           .key_bytes = (uint8_t)request->key_bytes,
                           .head_bytes = (uint8_t)head_bytes};
        memcpy(known->key, request->key, request->key_bytes);
        if (head)
            memcpy(known->head, head, head_bytes);
    }
    pthread_mutex_unlock(&ahead->known_lock);
}

spill_known_t spill_known_find(spill_read_ahead_t *ahead, const uint8_t *key, size_t key_bytes,
                               spill_buffer_t *head)
{
    const uint8_t *owner = key + 4;
    const size_t owner_bytes = key_bytes - 4;
    spill_known_t what = SPILL_KNOWN_NOT;
    uint32_t id;
    memcpy(&id, key, sizeof id);
    id = BSON_UINT32_FROM_BE(id);
    pthread_mutex_lock(&ahead->known_lock);
    const known_t *known =
        ahead->known ? find_known(ahead, owner, owner_bytes, spill_hash_quick(owner, owner_bytes))
                     : NULL;
    if (known && !known->has_head && (id == known->array_id || id == known->collection_id)) {
        what = SPILL_KNOWN_ABSENT;
    } else if (known && known->has_head && id == known->array_id) {
        what = SPILL_KNOWN_HEAD;
        spill_buffer_append(head, known->head, known->head_bytes);
    }
    pthread_mutex_unlock(&ahead->known_lock);
    return what;
}

/* An owner changes. NULL: all owners. */
static void remove_known(spill_read_ahead_t *ahead, const uint8_t *owner, size_t owner_bytes,
                         uint64_t hash)
{
    pthread_mutex_lock(&ahead->known_lock);
    known_t *known = owner && ahead->known ? find_known(ahead, owner, owner_bytes, hash) : NULL;
    if (known)
        known->array_id = 0;
    if (!owner && ahead->known)
        memset(ahead->known, 0, SPILL_KNOWN_MAX * sizeof *ahead->known);
    pthread_mutex_unlock(&ahead->known_lock);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* The number rises, except behind NEVER, which stays. */
static void note_change(atomic_llong *note, int64_t number)
{
    if (atomic_load_explicit(note, memory_order_relaxed) < number)
        atomic_store_explicit(note, number, memory_order_release);
}

/* Note the number for the owners of the batch. */
static void note_batch(spill_read_ahead_t *ahead, const spill_batch_t *batch, int64_t number)
{
    const uint8_t *last = NULL; /* the owner of the change before */
    size_t last_bytes = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const spill_change_t *change = &batch->changes[i];
        const uint8_t *key = spill_batch_key(batch, change);
        bool is_system = change->key_bytes >= 4 && memcmp(key, "\0\0\0\0", 4) == 0;
        bool same =
            last && change->key_bytes >= 4 + last_bytes && memcmp(key + 4, last, last_bytes) == 0;
        if (is_system || same)
            continue;
        last_bytes =
            change->key_bytes > 4 ? spill_owner_key_length(key + 4, change->key_bytes - 4) : 0;
        last = last_bytes > 0 ? key + 4 : NULL;
        uint64_t hash = last ? spill_hash_quick(last, last_bytes) : 0;
        note_change(last ? &ahead->notes[hash % NOTES] : &ahead->note_of_all, number);
        remove_known(ahead, last, last_bytes, hash);
    }
}

void spill_read_ahead_begin(spill_read_ahead_t *ahead, const spill_batch_t *batch)
{
    if (ahead)
        note_batch(ahead, batch, ++ahead->started);
}

/* After a write that may take effect later, no span may answer for the owners again. */
void spill_read_ahead_end(spill_read_ahead_t *ahead, const spill_batch_t *batch, spill_code_t code)
{
    if (!ahead)
        return;
    if (code == SPILL_UNKNOWN)
        note_batch(ahead, batch, NEVER);
    atomic_store(&ahead->ended, ahead->started);
}
