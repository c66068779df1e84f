#include "store/session_entry.h"

#include "util/buffer.h"

#include <bson/bson.h>
#include <string.h>

void spill_session_key(const spill_session_op_t *op, uint8_t key[SPILL_SESSION_KEY_BYTES])
{
    memcpy(key, op->session, sizeof op->session);
    memcpy(key + sizeof op->session, op->user, sizeof op->user);
}

int64_t spill_session_horizon_us(const spill_session_op_t *op)
{
    return op->horizon_us > 0 ? op->horizon_us : SPILL_SESSION_HORIZON_US;
}

int64_t spill_session_entries_max(const spill_session_op_t *op)
{
    return op->entries_max > 0 ? op->entries_max : SPILL_SESSION_ENTRIES_MAX;
}

/* ---- runs of numbers ------------------------------------------------------------------------- */

static int64_t last_of(const spill_session_op_t *op, int64_t count)
{
    return op->number + count - 1;
}

/* Insert [first, last]. No run has one of these numbers yet. False: there is no room for a run. */
static bool insert_run(spill_session_entry_t *entry, int32_t first, int32_t last)
{
    int32_t at = 0;
    while (at < entry->run_count && entry->runs[at].first < first)
        at++;
    bool joins_left = at > 0 && entry->runs[at - 1].last == first - 1;
    bool joins_right = at < entry->run_count && entry->runs[at].first == last + 1;
    if (joins_left && joins_right) {
        entry->runs[at - 1].last = entry->runs[at].last;
        entry->run_count--;
        memmove(entry->runs + at, entry->runs + at + 1,
                (size_t)(entry->run_count - at) * sizeof *entry->runs);
    } else if (joins_left) {
        entry->runs[at - 1].last = last;
    } else if (joins_right) {
        entry->runs[at].first = first;
    } else {
        if (entry->run_count == SPILL_SESSION_RUNS_MAX)
            return false;
        memmove(entry->runs + at + 1, entry->runs + at,
                (size_t)(entry->run_count - at) * sizeof *entry->runs);
        entry->runs[at] = (spill_session_run_t){first, last};
        entry->run_count++;
    }
    return true;
}

/* Is one of the numbers [first, last] in a run? *applied: how many, from `first` on. */
static bool overlaps(const spill_session_entry_t *entry, int64_t first, int64_t last,
                     int64_t *applied)
{
    bool any = false;
    for (int32_t i = 0; i < entry->run_count; i++) {
        const spill_session_run_t *run = &entry->runs[i];
        any = any || (run->first <= last && run->last >= first);
        if (run->first <= first && run->last >= first)
            *applied = (run->last < last ? run->last : last) - first + 1;
    }
    return any;
}

/* ---- judging --------------------------------------------------------------------------------- */

spill_session_verdict_t spill_session_judge(const spill_session_op_t *op, int64_t count,
                                            const spill_session_entry_t *own, int64_t entries,
                                            int64_t *applied)
{
    *applied = 0;
    if (!own)
        return entries < spill_session_entries_max(op) ? SPILL_SESSION_NEW : SPILL_SESSION_FULL;
    if (own->txn > op->txn)
        return SPILL_SESSION_TOO_OLD;
    if (own->txn < op->txn)
        return SPILL_SESSION_NEW;
    if (overlaps(own, op->number, last_of(op, count), applied))
        return SPILL_SESSION_REPEATED;
    spill_session_entry_t after = *own;
    bool room = insert_run(&after, op->number, (int32_t)last_of(op, count));
    return room ? SPILL_SESSION_NEW : SPILL_SESSION_GAPS;
}

void spill_session_apply(const spill_session_op_t *op, int64_t count,
                         const spill_session_entry_t *own, int64_t now_us,
                         spill_session_entry_t *after)
{
    spill_session_entry_t entry = {.txn = op->txn};
    spill_session_key(op, entry.key);
    if (own && own->txn == op->txn)
        entry = *own;
    entry.at_us = now_us;
    insert_run(&entry, op->number, (int32_t)last_of(op, count));
    *after = entry;
}

bool spill_session_expired(const spill_session_entry_t *entry, int64_t horizon_us, int64_t now_us)
{
    return entry->at_us < now_us - horizon_us;
}

bool spill_session_forgets(const spill_session_op_t *op)
{
    enum { PART = 16 };
    uint64_t parts[1 + SPILL_SESSION_KEY_BYTES / sizeof(uint64_t)] = {(uint64_t)op->txn};
    uint8_t key[SPILL_SESSION_KEY_BYTES];
    spill_session_key(op, key);
    memcpy(parts + 1, key, sizeof key);
    return spill_hash(parts, sizeof parts) % (uint64_t)(spill_session_entries_max(op) / PART + 1) ==
           0;
}

/* ---- the entries of one owner ---------------------------------------------------------------- */

spill_session_entry_t *spill_sessions_find(const spill_sessions_t *sessions,
                                           const uint8_t key[SPILL_SESSION_KEY_BYTES])
{
    for (size_t i = 0; i < sessions->count; i++)
        if (memcmp(sessions->entries[i].key, key, SPILL_SESSION_KEY_BYTES) == 0)
            return &sessions->entries[i];
    return NULL;
}

void spill_sessions_put(spill_sessions_t *sessions, const spill_session_entry_t *entry)
{
    spill_session_entry_t *own = spill_sessions_find(sessions, entry->key);
    if (!own && sessions->count == sessions->capacity) {
        sessions->capacity = sessions->capacity < 4 ? 4 : 2 * sessions->capacity;
        sessions->entries =
            bson_realloc(sessions->entries, sessions->capacity * sizeof *sessions->entries);
    }
    if (!own)
        own = &sessions->entries[sessions->count++];
    *own = *entry;
}

size_t spill_sessions_forget(spill_sessions_t *sessions, int64_t horizon_us, int64_t now_us)
{
    size_t kept = 0, before = sessions->count;
    for (size_t i = 0; i < before; i++)
        if (!spill_session_expired(&sessions->entries[i], horizon_us, now_us))
            sessions->entries[kept++] = sessions->entries[i];
    sessions->count = kept;
    return before - kept;
}

void spill_sessions_release(spill_sessions_t *sessions)
{
    bson_free(sessions->entries);
    *sessions = (spill_sessions_t){0};
}
