/* The tail cache: what readers do. */
#include "store/embedded/tail_cache.h"

#include "store/embedded/embedded_codec.h"
#include "store/embedded/tail_shard.h"
#include "store/slice.h"
#include "util/buffer.h"
#include "util/error.h"

#include <string.h>

/* Bytes of an entry that a reader fetches: the part before the arena of 20 elements, and the arena;
 * at most FETCHED_MAX. */
enum { HEAD_BYTES = 640, FETCHED_MAX = 8 * 1024 };

/*
 * How often a reader tries to lock a shard: for about two microseconds. The thread that holds the
 * lock may have lost its processor, for milliseconds. The engine answers sooner.
 */
enum { TRIES_MAX = 64 };

/* The most memory that a reader reserves for its answer before it locks the shard. */
enum { ANSWER_BYTES_MAX = 8 * 1024 };

/* ---- readers --------------------------------------------------------------------------------- */

/*
 * Let the processor fetch the first entry of the bucket: in a large cache, most memory is in no
 * cache of the processor. The entry may change before the lock is held; that does no harm.
 */
static void fetch_entry(spill_tail_shard_t *shard, spill_tail_entry_t *const *bucket)
{
    enum { LINE = 64 };
    const uint8_t *entry = (const uint8_t *)__atomic_load_n(bucket, __ATOMIC_RELAXED);
    size_t bytes = HEAD_BYTES + atomic_load_explicit(&shard->answer_bytes, memory_order_relaxed);
    bytes = bytes < FETCHED_MAX ? bytes : FETCHED_MAX;
    for (size_t at = 0; entry && at < bytes; at += LINE)
        __builtin_prefetch(entry + at);
}

static bool is_served(const spill_request_t *request)
{
    const spill_read_t *read = &request->read;
    return request->page == SPILL_HEAD && !read->unmanaged && !read->op && !read->want_ops &&
           !read->want_fields && !read->want_top &&
           (read->want == SPILL_WANT_NONE || read->want == SPILL_WANT_BACKWARD);
}

/* Copy the slots [from, end), the newest first. */
static void copy_slots(spill_tail_entry_t *entry, size_t from, size_t end, spill_run_t *run)
{
    if (from == end)
        return;
    const spill_tail_slot_t *newest = &spill_tail_slots_of(entry)[end - 1];
    size_t start = spill_tail_slots_of(entry)[from].offset;
    size_t bytes = newest->offset + newest->size_bytes - start;
    spill_run_reserve(run, end - from, bytes);
    spill_buffer_append(&run->arena, spill_tail_arena_of(entry) + start, bytes);
    for (size_t i = end; i > from; i--) {
        const spill_tail_slot_t *slot = &spill_tail_slots_of(entry)[i - 1];
        run->entries[run->count++] = (spill_run_entry_t){.seq = entry->base + slot->number,
                                                         .offset = slot->offset - start,
                                                         .size_bytes = slot->size_bytes,
                                                         .type = (uint8_t)slot->type};
    }
}

/* Copy the run that the READ selects. Return false if the entry lacks an element of it. */
static bool copy_run(spill_tail_entry_t *entry, const spill_read_t *read,
                     spill_response_t *response)
{
    const spill_state_t *state = &response->state;
    int64_t seq = spill_state_end(state) - 1;
    seq = read->seq < seq ? read->seq : seq;
    size_t end = entry->slot_count;
    while (end > 0 && spill_tail_seq_of(entry, end - 1) > seq)
        end--;
    size_t from = end;
    for (; (int64_t)(end - from) < read->limit; seq--) {
        seq = spill_seqs_pass_down(&state->deleted, seq);
        if (seq < state->first)
            break;
        if (from == 0 || spill_tail_seq_of(entry, from - 1) != seq)
            return false;
        from--;
    }
    copy_slots(entry, from, end, &response->run);
    return true;
}

static bool copy_entry(spill_tail_entry_t *entry, const spill_read_t *read,
                       spill_response_t *response)
{
    bool copied = spill_state_decode(spill_tail_state_of(entry), entry->state_bytes, true,
                                     &response->state) &&
                  response->state.incarnation == entry->incarnation &&
                  (read->want == SPILL_WANT_NONE || copy_run(entry, read, response));
    if (!copied)
        spill_state_clear(&response->state);
    return copied;
}

/* Let the processor's other thread run for some cycles. */
static void spin(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Lock the shard, unless another thread holds it for long. */
static bool try_lock(spill_tail_shard_t *shard)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        if (pthread_mutex_trylock(&shard->lock) == 0)
            return true;
        spin();
    }
    return false;
}

/* Reserve memory for an answer like the last one. */
static void reserve_answer(spill_tail_shard_t *shard, const spill_read_t *read, spill_run_t *run)
{
    size_t bytes = atomic_load_explicit(&shard->answer_bytes, memory_order_relaxed);
    bool small = read->limit <= SPILL_TAIL_ELEMENTS_MAX && bytes <= ANSWER_BYTES_MAX;
    if (read->want != SPILL_WANT_NONE && bytes > 0 && small)
        spill_run_reserve(run, (size_t)read->limit, bytes);
}

/* Note the bytes of an answer, for the next reader. */
static void note_answer(spill_tail_shard_t *shard, size_t bytes)
{
    if (atomic_load_explicit(&shard->answer_bytes, memory_order_relaxed) != bytes)
        atomic_store_explicit(&shard->answer_bytes, bytes, memory_order_relaxed);
}

/* Answer from the owner's entry, or write the ticket. */
static bool answer(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                   const spill_record_key_t *owner, uint64_t hash, const spill_request_t *request,
                   spill_response_t *response, spill_tail_ticket_t *ticket)
{
    const spill_tail_stamp_t *stamp = spill_tail_stamp_of(shard, hash);
    spill_tail_entry_t *entry =
        stamp->pending == 0 ? spill_tail_find(cache, shard, owner, hash) : NULL;
    bool hit = entry && copy_entry(entry, &request->read, response);
    if (hit)
        entry->block.used = true;
    if (hit && response->run.count > 0)
        note_answer(shard, response->run.arena.size);
    ticket->open = stamp->pending == 0;
    ticket->version = stamp->version;
    return hit;
}

bool spill_tail_cache_read(spill_tail_cache_t *cache, const spill_record_key_t *owner,
                           const spill_request_t *request, spill_response_t *response,
                           spill_tail_ticket_t *ticket)
{
    ticket->open = false;
    if (!cache || !is_served(request))
        return false;
    uint64_t hash = spill_hash_quick(owner->data, owner->prefix);
    spill_tail_shard_t *shard = spill_tail_shard_of(cache, hash);
    spill_tail_entry_t **bucket = spill_tail_bucket_of(cache, shard, hash);
    __builtin_prefetch(bucket);
    reserve_answer(shard, &request->read, &response->run);
    fetch_entry(shard, bucket);
    bool locked = try_lock(shard);
    bool hit = locked && answer(cache, shard, owner, hash, request, response, ticket);
    if (locked)
        pthread_mutex_unlock(&shard->lock);
    atomic_fetch_add_explicit(hit ? &cache->counts->tail_hits : &cache->counts->tail_misses, 1,
                              memory_order_relaxed);
    return hit;
}

/* ---- readers without a request --------------------------------------------------------------- */

/* The bounds of the entry's state. If the state cannot be read, no number is from `whole` on. */
static const spill_tail_bounds_t *bounds_of(spill_tail_entry_t *entry)
{
    if (entry->has_bounds)
        return &entry->bounds;
    SPILL_SCOPED(spill_state_release) spill_state_t state = {0};
    spill_tail_bounds_t *bounds = &entry->bounds;
    bool good = spill_state_decode(spill_tail_state_of(entry), entry->state_bytes, true, &state) &&
                state.incarnation == entry->incarnation;
    const spill_seqs_t *deleted = &state.deleted;
    *bounds = (spill_tail_bounds_t){.first = state.first,
                                    .whole = state.first,
                                    .end = spill_state_end(&state),
                                    .watermark = state.watermark};
    if (!good)
        bounds->whole = INT64_MAX;
    else if (deleted->run_count > 0)
        bounds->whole = deleted->runs[deleted->run_count - 1].end;
    entry->has_bounds = true;
    return bounds;
}

/* Slots of an entry that a slice gets. */
typedef struct selection {
    size_t from, end; /* [from, end) */
    size_t start;     /* in the arena */
    size_t bytes;
    bool more; /* live numbers are below, from the lower bound on */
} selection_t;

/*
 * Select the elements that the caller wants. Return false if the entry may lack one of them. Slots
 * ascend: if the first and the last of them are where they must be, none between them is missing.
 */
static bool select_slots(spill_tail_entry_t *entry, const spill_recall_t *recall,
                         selection_t *selection)
{
    const spill_tail_bounds_t *bounds = bounds_of(entry);
    int64_t lower = recall->lower > bounds->watermark ? recall->lower : bounds->watermark;
    int64_t bottom = lower > bounds->whole ? lower : bounds->whole;
    int64_t top = recall->upper < bounds->end ? recall->upper : bounds->end - 1;
    if (entry->slot_count == 0 || top < bottom)
        return false;
    int64_t count = recall->limit <= top - bottom ? recall->limit : top - bottom + 1;
    bool complete =
        count == recall->limit || (bounds->first <= lower && bounds->whole == bounds->first);
    int64_t above = spill_tail_seq_of(entry, entry->slot_count - 1) - top; /* slots to omit */
    if (!complete || above < 0 || above > entry->slot_count ||
        count > (int64_t)entry->slot_count - above)
        return false;
    size_t end = entry->slot_count - (size_t)above, from = end - (size_t)count;
    const spill_tail_slot_t *slots = spill_tail_slots_of(entry), *last = &slots[end - 1];
    *selection = (selection_t){.from = from,
                               .end = end,
                               .start = slots[from].offset,
                               .bytes = last->offset + last->size_bytes - slots[from].offset,
                               .more = top - count + 1 > lower};
    return spill_tail_seq_of(entry, end - 1) == top &&
           spill_tail_seq_of(entry, from) == top - count + 1;
}

/* Copy the selected slots to the slice, the newest first. */
static void fill_slice(const spill_tail_entry_t *entry, const selection_t *selection,
                       spill_slice_t *slice, uint8_t *values)
{
    const spill_tail_slot_t *slots = spill_tail_slots_of(entry);
    spill_element_t *element = slice->elements;
    memcpy(values, spill_tail_arena_of(entry) + selection->start, selection->bytes);
    for (size_t i = selection->end; i > selection->from; element++) {
        const spill_tail_slot_t *slot = &slots[--i];
        element->seq = entry->base + slot->number;
        element->value = (spill_value_t){
            .data = slot->size_bytes > 0 ? values + (slot->offset - selection->start) : NULL,
            .size_bytes = slot->size_bytes,
            .type = (uint8_t)slot->type};
    }
    slice->count = selection->end - selection->from;
    slice->next = element[-1].seq;
    slice->more = selection->more;
}

/*
 * Answer from the owner's entry, with memory for *bytes bytes of values. NULL: the entry lacks
 * something, or *bytes, which is raised, was too low.
 */
static spill_slice_t *recall_with(const spill_tail_cache_t *cache, spill_tail_shard_t *shard,
                                  const spill_record_key_t *owner, uint64_t hash,
                                  const spill_recall_t *recall, size_t *bytes)
{
    uint8_t *values;
    selection_t selection;
    spill_slice_t *slice = spill_slice_new((size_t)recall->limit, *bytes, &values);
    bool filled = false;
    if (try_lock(shard)) {
        spill_tail_entry_t *entry = spill_tail_stamp_of(shard, hash)->pending == 0
                                        ? spill_tail_find(cache, shard, owner, hash)
                                        : NULL;
        bool selected = entry && select_slots(entry, recall, &selection);
        filled = selected && selection.bytes <= *bytes;
        if (filled) {
            fill_slice(entry, &selection, slice, values);
            entry->block.used = true;
            note_answer(shard, selection.bytes);
        } else if (selected) {
            *bytes = selection.bytes;
        }
        pthread_mutex_unlock(&shard->lock);
    }
    if (filled)
        return slice;
    spill_slice_free(slice);
    return NULL;
}

spill_slice_t *spill_tail_cache_recall(spill_tail_cache_t *cache, const spill_recall_t *recall)
{
    if (!cache || recall->limit > SPILL_TAIL_ELEMENTS_MAX)
        return NULL;
    spill_record_key_t owner;
    spill_record_key_init(&owner, recall->array_id, recall->key, recall->key_bytes);
    uint64_t hash = spill_hash_quick(owner.data, owner.prefix);
    spill_tail_shard_t *shard = spill_tail_shard_of(cache, hash);
    spill_tail_entry_t **bucket = spill_tail_bucket_of(cache, shard, hash);
    fetch_entry(shard, bucket);
    size_t last = atomic_load_explicit(&shard->answer_bytes, memory_order_relaxed);
    size_t reserved = last < ANSWER_BYTES_MAX ? last : ANSWER_BYTES_MAX, bytes = reserved;
    spill_slice_t *slice = recall_with(cache, shard, &owner, hash, recall, &bytes);
    if (!slice && bytes > reserved)
        slice = recall_with(cache, shard, &owner, hash, recall, &bytes);
    if (slice)
        atomic_fetch_add_explicit(&cache->counts->tail_hits, 1, memory_order_relaxed);
    return slice;
}

/* ---- readers that missed --------------------------------------------------------------------- */

/* Take the elements of a run that begins with the newest one. */
static void take_run(spill_tail_content_t *content, const spill_run_t *run)
{
    size_t count = run->count < content->wanted ? run->count : content->wanted;
    content->item_count = count;
    for (size_t i = 0; i < count; i++) {
        spill_element_t element = spill_run_element(run, i);
        content->items[count - 1 - i] = (spill_tail_item_t){.seq = element.seq,
                                                            .data = element.value.data,
                                                            .size_bytes = element.value.size_bytes,
                                                            .type = element.value.type};
    }
    spill_tail_bound(content);
}

/* Does the entry have these elements as its newest? */
static bool has_items(const spill_tail_entry_t *entry, const spill_tail_content_t *content)
{
    size_t offset = entry->slot_count - content->item_count;
    bool same = entry->slot_count >= content->item_count;
    for (size_t i = 0; same && i < content->item_count; i++)
        same = spill_tail_seq_of(entry, offset + i) == content->items[i].seq;
    return same;
}

/* Is there room for the entry, or was the owner missed before? If not, remember that it was. */
static bool admits(spill_tail_shard_t *shard, const spill_tail_content_t *content)
{
    uint32_t *missed = &shard->missed[(content->hash >> 16) % SPILL_TAIL_MISSED];
    uint32_t mark = (uint32_t)content->hash;
    if (*missed == mark || spill_tail_has_room(shard, content))
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
    spill_tail_content_t content;
    content.owner = owner;
    content.hash = spill_hash_quick(owner->data, owner->prefix);
    content.incarnation = state->incarnation;
    content.item_count = 0;
    int64_t wanted = read->want == SPILL_WANT_NONE ? 0 : read->limit;
    wanted = wanted > SPILL_TAIL_WANTED_MIN ? wanted : SPILL_TAIL_WANTED_MIN;
    content.wanted =
        (uint16_t)(wanted < SPILL_TAIL_ELEMENTS_MAX ? wanted : SPILL_TAIL_ELEMENTS_MAX);
    if (read->want == SPILL_WANT_BACKWARD)
        take_run(&content, &response->run);
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t record = SPILL_BUFFER_INIT;
    spill_state_encode(state, true, &record);
    content.state = record.data;
    content.state_bytes = record.size;
    spill_tail_shard_t *shard = spill_tail_shard_of(cache, content.hash);
    if (!try_lock(shard))
        return;
    const spill_tail_stamp_t *stamp = spill_tail_stamp_of(shard, content.hash);
    const spill_tail_entry_t *entry = spill_tail_find(cache, shard, owner, content.hash);
    bool current = stamp->pending == 0 && stamp->version == ticket->version;
    bool better = !(entry && has_items(entry, &content));
    if (current && better && (entry || admits(shard, &content)))
        spill_tail_put(cache, shard, &content, false);
    pthread_mutex_unlock(&shard->lock);
}
