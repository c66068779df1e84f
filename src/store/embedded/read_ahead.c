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

typedef struct absent {
    uint32_t array_id; /* 0: none */
    uint32_t collection_id;
    uint8_t key_bytes;
    uint8_t key[SPILL_ABSENT_KEY_MAX];
} absent_t;

struct spill_read_ahead {
    spill_kv_t *kv;
    int64_t started; /* the last batch; for the leader */
    atomic_llong ended;
    atomic_llong turns;
    atomic_llong notes[NOTES];
    atomic_llong note_of_all; /* of the last change of unknown owners */
    spill_pass_t pass[SPILL_PASSES_MAX];
    pthread_mutex_t absent_lock;
    absent_t *absent; /* by the hash of the owner's key; NULL before the first one */
};

spill_read_ahead_t *spill_read_ahead_new(spill_kv_t *kv)
{
    spill_read_ahead_t *ahead = bson_malloc0(sizeof *ahead);
    ahead->kv = kv;
    pthread_mutex_init(&ahead->absent_lock, NULL);
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
    pthread_mutex_destroy(&ahead->absent_lock);
    bson_free(ahead->absent);
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
            !is_old(ahead, spill_hash(key, key_bytes), pass->as_of)) {
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

/* ---- absent owners --------------------------------------------------------------------------- */

int64_t spill_absent_note(spill_read_ahead_t *ahead)
{
    return atomic_load(&ahead->ended);
}

/* The owner's place, whoever it has now. */
static absent_t *absent_place(const spill_read_ahead_t *ahead, uint64_t hash)
{
    return &ahead->absent[hash % SPILL_ABSENT_MAX];
}

void spill_absent_add(spill_read_ahead_t *ahead, uint32_t array_id, uint32_t collection_id,
                      const uint8_t *owner, size_t owner_bytes, int64_t note)
{
    if (owner_bytes > SPILL_ABSENT_KEY_MAX)
        return;
    uint64_t hash = spill_hash(owner, owner_bytes);
    pthread_mutex_lock(&ahead->absent_lock);
    if (!ahead->absent)
        ahead->absent = bson_malloc0(SPILL_ABSENT_MAX * sizeof *ahead->absent);
    absent_t *place = absent_place(ahead, hash);
    /* A change that begins later than this check removes the owner. */
    if (!is_old(ahead, hash, note)) {
        *place = (absent_t){.array_id = array_id,
                            .collection_id = collection_id,
                            .key_bytes = (uint8_t)owner_bytes};
        memcpy(place->key, owner, owner_bytes);
    }
    pthread_mutex_unlock(&ahead->absent_lock);
}

static bool is_at(const absent_t *place, const uint8_t *owner, size_t owner_bytes)
{
    return place->key_bytes == owner_bytes && memcmp(place->key, owner, owner_bytes) == 0;
}

bool spill_absent_has(spill_read_ahead_t *ahead, const uint8_t *key, size_t key_bytes)
{
    const uint8_t *owner = key + 4;
    uint32_t id;
    memcpy(&id, key, sizeof id);
    id = BSON_UINT32_FROM_BE(id);
    pthread_mutex_lock(&ahead->absent_lock);
    const absent_t *place =
        ahead->absent ? absent_place(ahead, spill_hash(owner, key_bytes - 4)) : NULL;
    bool has = place && place->array_id != 0 && is_at(place, owner, key_bytes - 4) &&
               (id == place->array_id || id == place->collection_id);
    pthread_mutex_unlock(&ahead->absent_lock);
    return has;
}

/* An owner changes. NULL: all owners. */
static void remove_absent(spill_read_ahead_t *ahead, const uint8_t *owner, size_t owner_bytes,
                          uint64_t hash)
{
    pthread_mutex_lock(&ahead->absent_lock);
    if (ahead->absent && !owner)
        memset(ahead->absent, 0, SPILL_ABSENT_MAX * sizeof *ahead->absent);
    else if (ahead->absent && is_at(absent_place(ahead, hash), owner, owner_bytes))
        absent_place(ahead, hash)->array_id = 0;
    pthread_mutex_unlock(&ahead->absent_lock);
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
        uint64_t hash = last ? spill_hash(last, last_bytes) : 0;
        note_change(last ? &ahead->notes[hash % NOTES] : &ahead->note_of_all, number);
        remove_absent(ahead, last, last_bytes, hash);
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
