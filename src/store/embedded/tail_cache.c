/* The tail cache: its shards and entries, what readers do, and what the leader does. */
#include "store/embedded/tail_cache.h"

#include "store/embedded/embedded_codec.h"
#include "util/buffer.h"
#include "util/error.h"

#include <pthread.h>
#include <string.h>

/*
 * Shards have a lock each. Owners of one stamp count as one when changes are noted: a change of one
 * of them stops the answers for all of them for a moment.
 */
enum { SHARDS_MAX = 64, SHARD_BYTES_MIN = 256 * 1024, STAMPS = 64, BUCKETS_MIN = 64 };

/*
 * A full shard admits an owner when it is missed again, so an owner that is read once evicts none.
 * It remembers this many missed owners.
 */
enum { MISSED = 512 };

/* What malloc adds to an entry, and the elements that an entry at least has room for. */
enum { MALLOC_BYTES = 16, WANTED_MIN = 8, STATE_SLACK = 16 };

/* Bytes of an entry that a reader fetches at once: for 20 elements all except the arena. */
enum { FETCHED = 640 };

/*
 * An owner's head and some of its newest elements, in one block of memory. What a read compares
 * first lies next to each other:
 *
 *   entry, owner, state[state_capacity], slots[slot_capacity], arena[arena_capacity]
 *
 * Each slot has the current value of the element with that number. Slots ascend, but numbers may be
 * missing: copy_run compares them with the numbers that the state has.
 */
typedef struct entry {
    uint64_t hash;
    struct entry *next; /* in its bucket */
    int64_t incarnation;
    uint32_t owner_bytes;
    uint32_t slots_offset; /* from the start of the block */
    uint32_t slot_count, slot_capacity;
    uint32_t arena_bytes, arena_capacity;
    uint32_t state_bytes, state_capacity;
    uint32_t bytes;
    uint16_t wanted; /* elements that reads want, at most SPILL_TAIL_ELEMENTS_MAX */
    bool used;       /* read since the hand passed it */
    uint8_t owner[];
} entry_t;

typedef struct stamp {
    uint64_t version; /* raised by each change that begins */
    uint64_t pending; /* changes that have begun and not ended */
} stamp_t;

typedef struct shard {
    pthread_mutex_t lock;
    stamp_t stamps[STAMPS];
    entry_t **buckets; /* NULL until the first entry */
    size_t bucket_count;
    size_t entry_count;
    size_t bytes;
    size_t hand;             /* the bucket to look at next, if the shard must evict an entry */
    uint32_t missed[MISSED]; /* hashes of owners that were missed, each in one possible place */
} shard_t;

struct spill_tail_cache {
    spill_counts_t *counts;
    size_t shard_bytes_max;
    size_t shard_count;
    shard_t shards[];
};

/* An element that an entry gets. */
typedef struct item {
    int64_t seq;
    const uint8_t *data;
    uint32_t size_bytes;
    uint8_t type;
} item_t;

/* What an entry is made of. Items ascend. */
typedef struct content {
    const spill_record_key_t *owner;
    uint64_t hash;
    int64_t incarnation;
    const uint8_t *state;
    size_t state_bytes;
    uint16_t wanted;
    size_t item_count;
    item_t items[SPILL_TAIL_ELEMENTS_MAX];
} content_t;

/* ---- the parts of a cache -------------------------------------------------------------------- */

static shard_t *shard_of(spill_tail_cache_t *cache, uint64_t hash)
{
    return &cache->shards[(hash >> 32) & (cache->shard_count - 1)];
}

static stamp_t *stamp_of(shard_t *shard, uint64_t hash)
{
    return &shard->stamps[(hash >> 48) % STAMPS];
}

static uint8_t *state_of(entry_t *entry)
{
    return entry->owner + entry->owner_bytes;
}

static spill_run_entry_t *slots_of(const entry_t *entry)
{
    return (spill_run_entry_t *)((uintptr_t)entry + entry->slots_offset);
}

static uint8_t *arena_of(const entry_t *entry)
{
    return (uint8_t *)(slots_of(entry) + entry->slot_capacity);
}

static void add_bytes(const spill_tail_cache_t *cache, shard_t *shard, int64_t bytes)
{
    shard->bytes += (size_t)bytes;
    atomic_fetch_add_explicit(&cache->counts->tail_bytes, bytes, memory_order_relaxed);
}

spill_tail_cache_t *spill_tail_cache_new(int64_t bytes_max, spill_counts_t *counts)
{
    if (bytes_max <= 0)
        return NULL;
    size_t shards = 1;
    while (shards < SHARDS_MAX && (size_t)bytes_max / (shards * 2) >= SHARD_BYTES_MIN)
        shards *= 2;
    spill_tail_cache_t *cache = bson_malloc0(sizeof *cache + shards * sizeof *cache->shards);
    cache->counts = counts;
    cache->shard_count = shards;
    cache->shard_bytes_max = (size_t)bytes_max / shards;
    for (size_t i = 0; i < shards; i++)
        pthread_mutex_init(&cache->shards[i].lock, NULL);
    return cache;
}

static void remove_entry(const spill_tail_cache_t *cache, shard_t *shard, entry_t **place)
{
    entry_t *entry = *place;
    *place = entry->next;
    shard->entry_count--;
    add_bytes(cache, shard, -(int64_t)entry->bytes);
    bson_free(entry);
}

void spill_tail_cache_free(spill_tail_cache_t *cache)
{
    for (size_t i = 0; cache && i < cache->shard_count; i++) {
        shard_t *shard = &cache->shards[i];
        for (size_t bucket = 0; bucket < shard->bucket_count; bucket++)
            while (shard->buckets[bucket])
                remove_entry(cache, shard, &shard->buckets[bucket]);
        add_bytes(cache, shard, -(int64_t)shard->bytes);
        bson_free(shard->buckets);
        pthread_mutex_destroy(&shard->lock);
    }
    bson_free(cache);
}

/* ---- entries --------------------------------------------------------------------------------- */

/* The pointer to the owner's entry; to NULL if there is none. NULL if the shard has no table. */
static entry_t **find_place(const shard_t *shard, const spill_record_key_t *owner, uint64_t hash)
{
    if (!shard->buckets)
        return NULL;
    entry_t **place = &shard->buckets[hash & (shard->bucket_count - 1)];
    while (*place && ((*place)->hash != hash || (*place)->owner_bytes != owner->prefix ||
                      memcmp((*place)->owner, owner->data, owner->prefix) != 0))
        place = &(*place)->next;
    return place;
}

/* Let the processor fetch memory that is needed soon: in a large cache, most of it is in no cache
 * of the processor. */
static void fetch(const void *start, size_t bytes)
{
    enum { LINE = 64 };
    for (size_t at = 0; at < bytes; at += LINE)
        __builtin_prefetch((const uint8_t *)start + at);
}

/* Fetch the first entry of the owner's bucket, as far as a hit compares it. */
static void fetch_bucket(const shard_t *shard, uint64_t hash)
{
    const entry_t *entry = shard->buckets ? shard->buckets[hash & (shard->bucket_count - 1)] : NULL;
    if (entry)
        fetch(entry, FETCHED);
}

static entry_t *find_entry(const shard_t *shard, const spill_record_key_t *owner, uint64_t hash)
{
    entry_t **place = find_place(shard, owner, hash);
    return place ? *place : NULL;
}

static void drop_entry(const spill_tail_cache_t *cache, shard_t *shard,
                       const spill_record_key_t *owner, uint64_t hash)
{
    entry_t **place = find_place(shard, owner, hash);
    if (place && *place)
        remove_entry(cache, shard, place);
}

/* Evict entries, in the order of buckets, that were not used since the hand passed them last. */
static void evict(const spill_tail_cache_t *cache, shard_t *shard, size_t bytes)
{
    while (shard->entry_count > 0 && shard->bytes + bytes > cache->shard_bytes_max) {
        entry_t **place = &shard->buckets[shard->hand];
        shard->hand = (shard->hand + 1) & (shard->bucket_count - 1);
        while (*place) {
            bool used = (*place)->used;
            (*place)->used = false;
            if (used)
                place = &(*place)->next;
            else
                remove_entry(cache, shard, place);
        }
    }
}

/* Make the table larger if it has more than one entry for two buckets: few entries share one. */
static void grow_table(const spill_tail_cache_t *cache, shard_t *shard)
{
    if (shard->buckets && shard->entry_count < shard->bucket_count / 2)
        return;
    size_t count = shard->buckets ? shard->bucket_count * 2 : BUCKETS_MIN;
    entry_t **buckets = bson_malloc0(count * sizeof(void *));
    for (size_t i = 0; i < shard->bucket_count; i++)
        for (entry_t *entry = shard->buckets[i], *next; entry; entry = next) {
            next = entry->next;
            entry->next = buckets[entry->hash & (count - 1)];
            buckets[entry->hash & (count - 1)] = entry;
        }
    add_bytes(cache, shard, (int64_t)((count - shard->bucket_count) * sizeof(void *)));
    bson_free(shard->buckets);
    shard->buckets = buckets;
    shard->bucket_count = count;
}

/* Keep the newest items that fit an entry. */
static void bound_content(content_t *content)
{
    size_t from = content->item_count;
    size_t bytes = 0;
    while (from > 0 && content->item_count - from < content->wanted &&
           bytes + content->items[from - 1].size_bytes <= SPILL_TAIL_BYTES_MAX)
        bytes += content->items[--from].size_bytes;
    content->item_count -= from;
    memmove(content->items, content->items + from, content->item_count * sizeof *content->items);
}

static void append_item(entry_t *entry, const item_t *item)
{
    slots_of(entry)[entry->slot_count++] = (spill_run_entry_t){.seq = item->seq,
                                                               .offset = entry->arena_bytes,
                                                               .size_bytes = item->size_bytes,
                                                               .type = item->type};
    if (item->size_bytes > 0)
        memcpy(arena_of(entry) + entry->arena_bytes, item->data, item->size_bytes);
    entry->arena_bytes += item->size_bytes;
}

/* `grows`: with room for half as many elements more. */
static entry_t *make_entry(const content_t *content, bool grows)
{
    size_t arena = 0;
    for (size_t i = 0; i < content->item_count; i++)
        arena += content->items[i].size_bytes;
    size_t slots = content->item_count;
    if (grows) {
        slots += slots / 2 + WANTED_MIN / 2;
        arena += content->item_count > 0
                     ? arena / content->item_count * (slots - content->item_count)
                     : 0;
    }
    size_t state = content->state_bytes + STATE_SLACK + (grows ? content->state_bytes : 0);
    size_t before = sizeof(entry_t) + content->owner->prefix + state;
    before = (before + _Alignof(spill_run_entry_t) - 1) & ~(_Alignof(spill_run_entry_t) - 1);
    size_t bytes = before + slots * sizeof(spill_run_entry_t) + arena;
    entry_t *entry = bson_malloc(bytes);
    *entry = (entry_t){.hash = content->hash,
                       .bytes = (uint32_t)(bytes + MALLOC_BYTES),
                       .slots_offset = (uint32_t)before,
                       .incarnation = content->incarnation,
                       .owner_bytes = (uint32_t)content->owner->prefix,
                       .state_bytes = (uint32_t)content->state_bytes,
                       .state_capacity = (uint32_t)state,
                       .slot_capacity = (uint32_t)slots,
                       .arena_capacity = (uint32_t)arena,
                       .wanted = content->wanted,
                       .used = true};
    memcpy(entry->owner, content->owner->data, content->owner->prefix);
    memcpy(state_of(entry), content->state, content->state_bytes);
    for (size_t i = 0; i < content->item_count; i++)
        append_item(entry, &content->items[i]);
    return entry;
}

/* Replace the owner's entry. The content may borrow from it. */
static void put_entry(const spill_tail_cache_t *cache, shard_t *shard, const content_t *content,
                      bool grows)
{
    entry_t *entry =
        content->state_bytes <= SPILL_TAIL_BYTES_MAX ? make_entry(content, grows) : NULL;
    drop_entry(cache, shard, content->owner, content->hash);
    if (!entry)
        return;
    grow_table(cache, shard);
    evict(cache, shard, entry->bytes);
    if (shard->bytes + entry->bytes > cache->shard_bytes_max) {
        bson_free(entry); /* larger than the shard may be */
        return;
    }
    entry_t **bucket = &shard->buckets[content->hash & (shard->bucket_count - 1)];
    entry->next = *bucket;
    *bucket = entry;
    shard->entry_count++;
    add_bytes(cache, shard, (int64_t)entry->bytes);
}

/* ---- readers --------------------------------------------------------------------------------- */

static bool is_served(const spill_request_t *request)
{
    const spill_read_t *read = &request->read;
    return request->page == SPILL_HEAD && !read->unmanaged && !read->op && !read->want_ops &&
           !read->want_fields && !read->want_top &&
           (read->want == SPILL_WANT_NONE || read->want == SPILL_WANT_BACKWARD);
}

/* Copy the slots [from, end), the newest first. */
static void copy_slots(entry_t *entry, size_t from, size_t end, spill_run_t *run)
{
    if (from == end)
        return;
    const spill_run_entry_t *newest = &slots_of(entry)[end - 1];
    size_t start = slots_of(entry)[from].offset;
    size_t bytes = newest->offset + newest->size_bytes - start;
    spill_run_reserve(run, end - from, bytes);
    spill_buffer_append(&run->arena, arena_of(entry) + start, bytes);
    for (size_t i = end; i > from; i--) {
        run->entries[run->count] = slots_of(entry)[i - 1];
        run->entries[run->count++].offset -= start;
    }
}

/* Copy the run that the READ selects. Return false if the entry lacks an element of it. */
static bool copy_run(entry_t *entry, const spill_read_t *read, spill_response_t *response)
{
    const spill_state_t *state = &response->state;
    int64_t seq = spill_state_end(state) - 1;
    seq = read->seq < seq ? read->seq : seq;
    size_t end = entry->slot_count;
    while (end > 0 && slots_of(entry)[end - 1].seq > seq)
        end--;
    size_t from = end;
    for (; (int64_t)(end - from) < read->limit; seq--) {
        seq = spill_seqs_pass_down(&state->deleted, seq);
        if (seq < state->first)
            break;
        if (from == 0 || slots_of(entry)[from - 1].seq != seq)
            return false;
        from--;
    }
    copy_slots(entry, from, end, &response->run);
    return true;
}

static bool copy_entry(entry_t *entry, const spill_read_t *read, spill_response_t *response)
{
    bool copied = spill_state_decode(state_of(entry), entry->state_bytes, true, &response->state) &&
                  response->state.incarnation == entry->incarnation &&
                  (read->want == SPILL_WANT_NONE || copy_run(entry, read, response));
    if (!copied)
        spill_state_clear(&response->state);
    return copied;
}

bool spill_tail_cache_read(spill_tail_cache_t *cache, const spill_record_key_t *owner,
                           const spill_request_t *request, spill_response_t *response,
                           spill_tail_ticket_t *ticket)
{
    ticket->open = false;
    if (!cache || !is_served(request))
        return false;
    uint64_t hash = spill_hash(owner->data, owner->prefix);
    shard_t *shard = shard_of(cache, hash);
    pthread_mutex_lock(&shard->lock);
    fetch_bucket(shard, hash);
    const stamp_t *stamp = stamp_of(shard, hash);
    entry_t *entry = stamp->pending == 0 ? find_entry(shard, owner, hash) : NULL;
    if (entry)
        fetch(arena_of(entry), entry->arena_bytes);
    bool hit = entry && copy_entry(entry, &request->read, response);
    if (hit)
        entry->used = true;
    ticket->open = stamp->pending == 0;
    ticket->version = stamp->version;
    pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add_explicit(hit ? &cache->counts->tail_hits : &cache->counts->tail_misses, 1,
                              memory_order_relaxed);
    return hit;
}

/* Take the elements of a run that begins with the newest one. */
static void take_run(content_t *content, const spill_run_t *run)
{
    size_t count = run->count < content->wanted ? run->count : content->wanted;
    content->item_count = count;
    for (size_t i = 0; i < count; i++) {
        spill_element_t element = spill_run_element(run, i);
        content->items[count - 1 - i] = (item_t){.seq = element.seq,
                                                 .data = element.value.data,
                                                 .size_bytes = element.value.size_bytes,
                                                 .type = element.value.type};
    }
    bound_content(content);
}

/* Does the entry have these elements as its newest? */
static bool has_items(const entry_t *entry, const content_t *content)
{
    size_t offset = entry->slot_count - content->item_count;
    bool same = entry->slot_count >= content->item_count;
    for (size_t i = 0; same && i < content->item_count; i++)
        same = slots_of(entry)[offset + i].seq == content->items[i].seq;
    return same;
}

/* Is there room for the entry, or was the owner missed before? If not, remember that it was. */
static bool admits(const spill_tail_cache_t *cache, shard_t *shard, const content_t *content)
{
    size_t bytes = sizeof(entry_t) + content->state_bytes;
    for (size_t i = 0; i < content->item_count; i++)
        bytes += content->items[i].size_bytes + sizeof(spill_run_entry_t);
    uint32_t *missed = &shard->missed[(content->hash >> 16) % MISSED];
    uint32_t mark = (uint32_t)content->hash;
    if (shard->bytes + bytes <= cache->shard_bytes_max || *missed == mark)
        return true;
    *missed = mark;
    return false;
}

/* Is it the key of an owner? The leader finds the owners of a batch's records only by such keys. */
static bool is_owner(const spill_record_key_t *owner)
{
    return spill_owner_key_length(owner->data + 4, owner->prefix - 4) == owner->prefix - 4;
}

void spill_tail_cache_fill(spill_tail_cache_t *cache, const spill_record_key_t *owner,
                           const spill_request_t *request, const spill_response_t *response,
                           const spill_tail_ticket_t *ticket)
{
    const spill_state_t *state = &response->state;
    const spill_read_t *read = &request->read;
    bool newest = read->want == SPILL_WANT_NONE || read->seq >= spill_state_end(state) - 1;
    if (!ticket->open || !state->present || !newest || !is_owner(owner))
        return;
    content_t content;
    content.owner = owner;
    content.hash = spill_hash(owner->data, owner->prefix);
    content.incarnation = state->incarnation;
    content.item_count = 0;
    int64_t wanted = read->want == SPILL_WANT_NONE ? 0 : read->limit;
    wanted = wanted > WANTED_MIN ? wanted : WANTED_MIN;
    content.wanted =
        (uint16_t)(wanted < SPILL_TAIL_ELEMENTS_MAX ? wanted : SPILL_TAIL_ELEMENTS_MAX);
    if (read->want == SPILL_WANT_BACKWARD)
        take_run(&content, &response->run);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t record = SPILL_BUFFER_INIT;
    spill_state_encode(state, true, &record);
    content.state = record.data;
    content.state_bytes = record.size;
    shard_t *shard = shard_of(cache, content.hash);
    pthread_mutex_lock(&shard->lock);
    const stamp_t *stamp = stamp_of(shard, content.hash);
    const entry_t *entry = find_entry(shard, owner, content.hash);
    bool current = stamp->pending == 0 && stamp->version == ticket->version;
    bool better = !(entry && has_items(entry, &content));
    if (current && better && (entry || admits(cache, shard, &content)))
        put_entry(cache, shard, &content, false);
    pthread_mutex_unlock(&shard->lock);
}

/* ---- the leader ------------------------------------------------------------------------------ */

/* Changes of one owner that follow each other in a batch. */
typedef struct group {
    const spill_batch_t *batch;
    size_t at, end; /* [at, end) */
    bool all;       /* a range of many owners */
    spill_record_key_t owner;
} group_t;

/* Set the owner of the record with this key. Return false if it belongs to no array's owner. */
static bool split_key(const uint8_t *key, size_t key_bytes, spill_record_key_t *owner)
{
    static const uint8_t system[4] = {0};
    if (key_bytes <= sizeof system || memcmp(key, system, sizeof system) == 0)
        return false;
    size_t length = spill_owner_key_length(key + 4, key_bytes - 4);
    if (length == 0 || length > SPILL_OWNER_KEY_MAX || key_bytes == 4 + length)
        return false; /* the last case: other fields */
    memcpy(owner->data, key, 4 + length);
    owner->prefix = owner->size = 4 + length;
    return true;
}

static bool belongs(const spill_batch_t *batch, size_t i, const spill_record_key_t *owner)
{
    const spill_change_t *change = &batch->changes[i];
    return change->key_bytes > owner->prefix &&
           memcmp(spill_batch_key(batch, change), owner->data, owner->prefix) == 0;
}

/* Go to the next group; false: there is none. */
static bool next_group(group_t *group)
{
    const spill_batch_t *batch = group->batch;
    for (group->at = group->end; group->at < batch->count; group->at++) {
        const spill_change_t *change = &batch->changes[group->at];
        bool owned = split_key(spill_batch_key(batch, change), change->key_bytes, &group->owner);
        group->end = group->at + 1;
        group->all = !owned && change->kind == SPILL_CHANGE_DELETE_RANGE;
        while (owned && group->end < batch->count && belongs(batch, group->end, &group->owner))
            group->end++;
        if (owned || group->all)
            return true;
    }
    return false;
}

/* Begin a change of all owners, and drop all entries. */
static void begin_all(spill_tail_cache_t *cache)
{
    for (size_t i = 0; i < cache->shard_count; i++) {
        shard_t *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (size_t stamp = 0; stamp < STAMPS; stamp++) {
            shard->stamps[stamp].version++;
            shard->stamps[stamp].pending++;
        }
        for (size_t bucket = 0; bucket < shard->bucket_count; bucket++)
            while (shard->buckets[bucket])
                remove_entry(cache, shard, &shard->buckets[bucket]);
        pthread_mutex_unlock(&shard->lock);
    }
}

static void end_all(spill_tail_cache_t *cache)
{
    for (size_t i = 0; i < cache->shard_count; i++) {
        shard_t *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (size_t stamp = 0; stamp < STAMPS; stamp++)
            shard->stamps[stamp].pending--;
        pthread_mutex_unlock(&shard->lock);
    }
}

void spill_tail_cache_begin(spill_tail_cache_t *cache, const spill_batch_t *batch)
{
    group_t group;
    group.batch = batch;
    group.end = 0;
    while (cache && next_group(&group)) {
        if (group.all) {
            begin_all(cache);
            continue;
        }
        uint64_t hash = spill_hash(group.owner.data, group.owner.prefix);
        shard_t *shard = shard_of(cache, hash);
        pthread_mutex_lock(&shard->lock);
        stamp_of(shard, hash)->version++;
        stamp_of(shard, hash)->pending++;
        pthread_mutex_unlock(&shard->lock);
    }
}

/* What the changes of a group make of an entry. */
typedef struct update {
    const spill_batch_t *batch;
    const spill_change_t *state; /* the head's new record; NULL: unchanged */
    bool drops;                  /* the entry is no longer of use */
    size_t added_count;
    size_t added_bytes;
    item_t added[SPILL_TAIL_ELEMENTS_MAX]; /* ascending; the newest ones of the new elements */
} update_t;

/* Add a new element. An append puts its newest element first. */
static void add_item(update_t *update, const item_t *item)
{
    size_t place = update->added_count;
    while (place > 0 && update->added[place - 1].seq > item->seq)
        place--;
    if (place > 0 && update->added[place - 1].seq == item->seq) {
        update->drops = true;
        return;
    }
    if (update->added_count == SPILL_TAIL_ELEMENTS_MAX) {
        if (place == 0)
            return;
        update->added_bytes -= update->added[0].size_bytes;
        memmove(update->added, update->added + 1, --place * sizeof *item);
    } else {
        memmove(update->added + place + 1, update->added + place,
                (update->added_count++ - place) * sizeof *item);
    }
    update->added[place] = *item;
    update->added_bytes += item->size_bytes;
}

/* Keep the oldest slot only if it is not the deleted element. */
static void delete_slot(entry_t *entry, int64_t seq, update_t *update)
{
    bool added = update->added_count > 0 && seq >= update->added[0].seq;
    if (added || (entry->slot_count > 0 && seq > slots_of(entry)[0].seq))
        update->drops = true;
    else if (entry->slot_count > 0 && seq == slots_of(entry)[0].seq)
        memmove(slots_of(entry), slots_of(entry) + 1,
                --entry->slot_count * sizeof(spill_run_entry_t));
}

static void change_element(entry_t *entry, const spill_record_key_t *owner,
                           const spill_change_t *change, update_t *update)
{
    const uint8_t *value = spill_batch_value(update->batch, change);
    int64_t incarnation, seq;
    bool known = change->kind != SPILL_CHANGE_DELETE_RANGE &&
                 spill_record_key_is_element(owner, spill_batch_key(update->batch, change),
                                             change->key_bytes, &incarnation, &seq) &&
                 incarnation == entry->incarnation;
    if (!known) {
        update->drops = true;
        return;
    }
    if (change->kind == SPILL_CHANGE_DELETE) {
        delete_slot(entry, seq, update);
    } else if (entry->slot_count == 0 || seq > slots_of(entry)[entry->slot_count - 1].seq) {
        if (update->state && change->value_bytes > 0) /* else it is an element of a page */
            add_item(update, &(item_t){.seq = seq,
                                       .data = value + 1,
                                       .size_bytes = change->value_bytes - 1,
                                       .type = value[0]});
    } else if (seq >= slots_of(entry)[0].seq) {
        update->drops = true;
    }
}

static void change_record(entry_t *entry, const spill_record_key_t *owner,
                          const spill_change_t *change, update_t *update)
{
    uint8_t kind = spill_batch_key(update->batch, change)[owner->prefix];
    if (kind == SPILL_RECORD_ELEMENT || change->kind == SPILL_CHANGE_DELETE_RANGE)
        change_element(entry, owner, change, update);
    else if (kind == SPILL_RECORD_HEAD && change->kind == SPILL_CHANGE_PUT)
        update->state = change;
    else if (kind == SPILL_RECORD_HEAD)
        update->drops = true;
}

/* Write the update into the entry's free memory. Return false if it does not fit. */
static bool update_in_place(entry_t *entry, const update_t *update)
{
    size_t state_bytes = update->state ? update->state->value_bytes : 0;
    if (state_bytes > entry->state_capacity ||
        update->added_count > entry->slot_capacity - entry->slot_count ||
        update->added_bytes > entry->arena_capacity - entry->arena_bytes)
        return false;
    if (update->state) {
        memcpy(state_of(entry), spill_batch_value(update->batch, update->state), state_bytes);
        entry->state_bytes = (uint32_t)state_bytes;
    }
    for (size_t i = 0; i < update->added_count; i++)
        append_item(entry, &update->added[i]);
    return true;
}

/* Make a new entry of the old one's newest elements and the added ones. */
static void rebuild(const spill_tail_cache_t *cache, shard_t *shard, entry_t *entry,
                    const spill_record_key_t *owner, const update_t *update)
{
    content_t content = {.owner = owner,
                         .hash = entry->hash,
                         .incarnation = entry->incarnation,
                         .state = state_of(entry),
                         .state_bytes = entry->state_bytes,
                         .wanted = entry->wanted};
    if (update->state) {
        content.state = spill_batch_value(update->batch, update->state);
        content.state_bytes = update->state->value_bytes;
    }
    size_t room = SPILL_TAIL_ELEMENTS_MAX - update->added_count;
    size_t kept = entry->slot_count < room ? entry->slot_count : room;
    for (size_t i = entry->slot_count - kept; i < entry->slot_count; i++)
        content.items[content.item_count++] =
            (item_t){.seq = slots_of(entry)[i].seq,
                     .data = arena_of(entry) + slots_of(entry)[i].offset,
                     .size_bytes = slots_of(entry)[i].size_bytes,
                     .type = slots_of(entry)[i].type};
    for (size_t i = 0; i < update->added_count; i++)
        content.items[content.item_count++] = update->added[i];
    bound_content(&content);
    put_entry(cache, shard, &content, true);
}

/* Apply the changes of a group, which are written, to the owner's entry. */
static void update_entry(const spill_tail_cache_t *cache, shard_t *shard, entry_t *entry,
                         const group_t *group)
{
    update_t update;
    update.batch = group->batch;
    update.state = NULL;
    update.drops = false;
    update.added_count = update.added_bytes = 0;
    for (size_t i = group->at; i < group->end && !update.drops; i++)
        change_record(entry, &group->owner, &group->batch->changes[i], &update);
    if (update.drops)
        drop_entry(cache, shard, &group->owner, entry->hash);
    else if (!update_in_place(entry, &update))
        rebuild(cache, shard, entry, &group->owner, &update);
}

void spill_tail_cache_end(spill_tail_cache_t *cache, const spill_batch_t *batch, spill_code_t code)
{
    group_t group;
    group.batch = batch;
    group.end = 0;
    while (cache && next_group(&group)) {
        if (group.all && code != SPILL_UNKNOWN)
            end_all(cache);
        if (group.all)
            continue;
        uint64_t hash = spill_hash(group.owner.data, group.owner.prefix);
        shard_t *shard = shard_of(cache, hash);
        pthread_mutex_lock(&shard->lock);
        entry_t *entry = find_entry(shard, &group.owner, hash);
        if (entry && code == SPILL_OK)
            update_entry(cache, shard, entry, &group);
        else if (entry)
            drop_entry(cache, shard, &group.owner, hash);
        if (code != SPILL_UNKNOWN)
            stamp_of(shard, hash)->pending--;
        pthread_mutex_unlock(&shard->lock);
    }
}
