/* The tail cache: what the leader does. */
#include "store/embedded/tail_cache.h"

#include "store/embedded/tail_shard.h"

#include <string.h>

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
        spill_tail_shard_t *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (size_t stamp = 0; stamp < SPILL_TAIL_STAMPS; stamp++) {
            shard->stamps[stamp].version++;
            shard->stamps[stamp].pending++;
        }
        spill_tail_drop_all(cache, shard);
        pthread_mutex_unlock(&shard->lock);
    }
}

static void end_all(spill_tail_cache_t *cache)
{
    for (size_t i = 0; i < cache->shard_count; i++) {
        spill_tail_shard_t *shard = &cache->shards[i];
        pthread_mutex_lock(&shard->lock);
        for (size_t stamp = 0; stamp < SPILL_TAIL_STAMPS; stamp++)
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
        uint64_t hash = spill_hash_quick(group.owner.data, group.owner.prefix);
        spill_tail_shard_t *shard = spill_tail_shard_of(cache, hash);
        pthread_mutex_lock(&shard->lock);
        spill_tail_stamp_of(shard, hash)->version++;
        spill_tail_stamp_of(shard, hash)->pending++;
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
    spill_tail_item_t
        added[SPILL_TAIL_ELEMENTS_MAX]; /* ascending; the newest ones of the new elements */
} update_t;

/* Add a new element. An append puts its newest element first. */
static void add_new(update_t *update, const spill_tail_item_t *item)
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
static void delete_slot(spill_tail_entry_t *entry, int64_t seq, update_t *update)
{
    bool added = update->added_count > 0 && seq >= update->added[0].seq;
    if (added || (entry->slot_count > 0 && seq > spill_tail_seq_of(entry, 0)))
        update->drops = true;
    else if (entry->slot_count > 0 && seq == spill_tail_seq_of(entry, 0))
        memmove(spill_tail_slots_of(entry), spill_tail_slots_of(entry) + 1,
                --entry->slot_count * sizeof(spill_tail_slot_t));
}

static void change_element(spill_tail_entry_t *entry, const spill_record_key_t *owner,
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
    } else if (entry->slot_count == 0 || seq > spill_tail_seq_of(entry, entry->slot_count - 1)) {
        if (update->state && change->value_bytes > 0) /* else it is an element of a page */
            add_new(update, &(spill_tail_item_t){.seq = seq,
                                                 .data = value + 1,
                                                 .size_bytes = change->value_bytes - 1,
                                                 .type = value[0]});
    } else if (seq >= spill_tail_seq_of(entry, 0)) {
        update->drops = true;
    }
}

static void change_record(spill_tail_entry_t *entry, const spill_record_key_t *owner,
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
static bool update_in_place(spill_tail_entry_t *entry, const update_t *update)
{
    size_t state_bytes = update->state ? update->state->value_bytes : 0;
    if (state_bytes > entry->state_capacity ||
        update->added_count > entry->slot_capacity - entry->slot_count ||
        update->added_bytes > entry->arena_capacity - entry->arena_bytes ||
        (update->added_count > 0 &&
         !spill_tail_reaches(entry, update->added[0].seq,
                             update->added[update->added_count - 1].seq)))
        return false;
    if (update->state) {
        memcpy(spill_tail_state_of(entry), spill_batch_value(update->batch, update->state),
               state_bytes);
        entry->state_bytes = (uint32_t)state_bytes;
        entry->has_bounds = false;
    }
    for (size_t i = 0; i < update->added_count; i++)
        spill_tail_add_item(entry, &update->added[i]);
    return true;
}

/* Make a new entry of the old one's newest elements and the added ones. */
static void rebuild(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                    const spill_tail_entry_t *old, const spill_record_key_t *owner,
                    const update_t *update)
{
    spill_tail_entry_t *entry = cache->old_entry;
    memcpy(entry, old, old->block.bytes);
    spill_tail_content_t content = {.owner = owner,
                                    .hash = entry->hash,
                                    .incarnation = entry->incarnation,
                                    .state = spill_tail_state_of(entry),
                                    .state_bytes = entry->state_bytes,
                                    .wanted = entry->wanted};
    if (update->state) {
        content.state = spill_batch_value(update->batch, update->state);
        content.state_bytes = update->state->value_bytes;
    }
    size_t room = SPILL_TAIL_ELEMENTS_MAX - update->added_count;
    size_t kept = entry->slot_count < room ? entry->slot_count : room;
    for (size_t i = entry->slot_count - kept; i < entry->slot_count; i++)
        content.items[content.item_count++] = (spill_tail_item_t){
            .seq = spill_tail_seq_of(entry, i),
            .data = spill_tail_arena_of(entry) + spill_tail_slots_of(entry)[i].offset,
            .size_bytes = spill_tail_slots_of(entry)[i].size_bytes,
            .type = (uint8_t)spill_tail_slots_of(entry)[i].type};
    for (size_t i = 0; i < update->added_count; i++)
        content.items[content.item_count++] = update->added[i];
    spill_tail_bound(&content);
    spill_tail_put(cache, shard, &content, true);
}

/* Apply the changes of a group, which are written, to the owner's entry. */
static void update_entry(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                         spill_tail_entry_t *entry, const group_t *group)
{
    update_t update;
    update.batch = group->batch;
    update.state = NULL;
    update.drops = false;
    update.added_count = update.added_bytes = 0;
    for (size_t i = group->at; i < group->end && !update.drops; i++)
        change_record(entry, &group->owner, &group->batch->changes[i], &update);
    if (update.drops)
        spill_tail_drop(cache, shard, &group->owner, entry->hash);
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
        uint64_t hash = spill_hash_quick(group.owner.data, group.owner.prefix);
        spill_tail_shard_t *shard = spill_tail_shard_of(cache, hash);
        pthread_mutex_lock(&shard->lock);
        spill_tail_entry_t *entry = spill_tail_find(cache, shard, &group.owner, hash);
        if (entry && code == SPILL_OK)
            update_entry(cache, shard, entry, &group);
        else if (entry)
            spill_tail_drop(cache, shard, &group.owner, hash);
        if (code != SPILL_UNKNOWN)
            spill_tail_stamp_of(shard, hash)->pending--;
        pthread_mutex_unlock(&shard->lock);
    }
}
