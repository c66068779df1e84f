/* Find documents again behind damage. */
#include "tools/scan/document_source.h"

#include "bson/value.h"
#include "tools/scan/field_bytes.h"

#include <string.h>

enum {
    CHUNK_BITS = 16,
    CHUNK_PLACES = 1 << CHUNK_BITS,
    CHUNKS = 128,
    PLACES_MAX = CHUNKS * CHUNK_PLACES, /* remembered places from the front on: 32 MiB */
    FIND_PLACES = 1 << 18,              /* between two polls for an interrupt */
    NAME_STEP_BYTES = 16                /* bytes of a name that count as one step */
};
#define CREDIT_MAX (INT64_C(16) << 20)

/* The distance from a place to a later one of its chain; 0: unknown. */
typedef struct chunk {
    int64_t number; /* of its first place, divided by CHUNK_PLACES */
    uint32_t *jumps;
} chunk_t;

struct spill_resync {
    chunk_t chunks[CHUNKS];
    int64_t front;               /* places before this one are no longer needed */
    int64_t nul_from, nul_at;    /* the last search: the first NUL from nul_from on is at nul_at */
    int64_t none_from, none_end; /* or no NUL was found between these places */
    int64_t credit;
    int64_t work;
};

spill_resync_t *spill_resync_new(void)
{
    spill_resync_t *resync = bson_malloc0(sizeof *resync);
    resync->credit = CREDIT_MAX;
    resync->nul_at = -1;
    return resync;
}

void spill_resync_free(spill_resync_t *resync)
{
    for (size_t i = 0; resync && i < CHUNKS; i++)
        bson_free(resync->chunks[i].jumps);
    bson_free(resync);
}

int64_t spill_resync_work(const spill_resync_t *resync)
{
    return resync->work;
}

static void spend_credit(spill_resync_t *resync, int64_t steps)
{
    resync->work += steps;
    resync->credit -= steps;
}

static void move_front(spill_resync_t *resync, int64_t front)
{
    if (front <= resync->front)
        return;
    resync->credit += (front - resync->front) * SPILL_RESYNC_CREDIT;
    resync->credit = resync->credit < CREDIT_MAX ? resync->credit : CREDIT_MAX;
    resync->front = front;
}

/* Reuse the memory of a chunk before the front, so that few chunks are in use; or NULL. */
static uint32_t *reuse_memory(spill_resync_t *resync)
{
    for (size_t i = 0; i < CHUNKS; i++) {
        chunk_t *chunk = &resync->chunks[i];
        uint32_t *jumps = chunk->jumps;
        if (jumps && chunk->number < resync->front >> CHUNK_BITS) {
            chunk->jumps = NULL;
            return jumps;
        }
    }
    return NULL;
}

static void begin_chunk(spill_resync_t *resync, chunk_t *chunk, int64_t number)
{
    if (!chunk->jumps)
        chunk->jumps = reuse_memory(resync);
    if (chunk->jumps)
        memset(chunk->jumps, 0, CHUNK_PLACES * sizeof *chunk->jumps);
    else
        chunk->jumps = bson_malloc0(CHUNK_PLACES * sizeof *chunk->jumps);
    chunk->number = number;
}

/* The jump from a place; NULL: the place is too far ahead to be remembered. */
static inline uint32_t *jump_at(spill_resync_t *resync, int64_t place)
{
    int64_t number = place >> CHUNK_BITS;
    chunk_t *chunk = &resync->chunks[(uint64_t)number % CHUNKS];
    if (number - (resync->front >> CHUNK_BITS) >= CHUNKS)
        return NULL;
    if (!chunk->jumps || chunk->number != number)
        begin_chunk(resync, chunk, number);
    return &chunk->jumps[place & (CHUNK_PLACES - 1)];
}

/* ---- fields ---------------------------------------------------------------------------------- */

/* As behind_nul, for a name that is not short. */
static size_t behind_far_nul(spill_resync_t *resync, const spill_resync_view_t *view, size_t at)
{
    int64_t place = view->offset + (int64_t)at;
    if (resync && resync->nul_from <= place && place <= resync->nul_at)
        return (size_t)(resync->nul_at - view->offset) + 1;
    int64_t end = view->offset + (int64_t)view->size;
    if (resync && resync->none_from <= place && end <= resync->none_end)
        return 0;
    const uint8_t *nul = at < view->size ? memchr(view->data + at, 0, view->size - at) : NULL;
    size_t found = nul ? (size_t)(nul - view->data) : view->size;
    if (resync)
        spend_credit(resync, (int64_t)(found - at) / NAME_STEP_BYTES);
    if (resync && nul) {
        resync->nul_from = place;
        resync->nul_at = view->offset + (int64_t)found;
    } else if (resync) {
        resync->none_from = place;
        resync->none_end = end;
    }
    return nul ? found + 1 : 0;
}

/* The index behind the first NUL from `at` on; 0: none. `resync` may be NULL. */
static inline size_t behind_nul(spill_resync_t *resync, const spill_resync_view_t *view, size_t at)
{
    uint64_t word;
    if (at + sizeof word <= view->size) {
        memcpy(&word, view->data + at, sizeof word);
        word = BSON_UINT64_FROM_LE(word);
        uint64_t nul = (word - ONES) & ~word & HIGH_BITS; /* its lowest bit is the first NUL's */
        if (nul != 0)
            return at + ((size_t)__builtin_ctzll(nul) >> 3) + 1;
    }
    return behind_far_nul(resync, view, at);
}

/* The bytes of the field at `at`; 0: no field begins there, or it is incomplete. */
static size_t measure_field(spill_resync_t *resync, const spill_resync_view_t *view, size_t at)
{
    uint8_t type = at < view->size ? view->data[at] : 0;
    if (SIZES[type] == BAD)
        return 0;
    size_t value = behind_nul(resync, view, at + 1);
    if (value == 0)
        return 0;
    size_t left = view->size - value;
    uint32_t size = SIZES[type] - 1U;
    if (type == BSON_TYPE_REGEX) {
        size_t options = behind_nul(resync, view, value);
        size_t end = options > 0 ? behind_nul(resync, view, options) : 0;
        return end > 0 ? end - at : 0;
    }
    if (SIZES[type] == MEASURED && !spill_value_measure(type, view->data + value, left, &size))
        return 0;
    return size <= left ? value + size - at : 0;
}

/* ---- chains ---------------------------------------------------------------------------------- */

bool spill_resync_fits(const spill_resync_view_t *view, size_t at, size_t length, size_t *passed)
{
    size_t end = at + length - 1;
    spill_resync_view_t document = *view;
    document.size = end + 1;
    *passed = at + 4;
    for (size_t size = 1; size > 0 && *passed < end; *passed += size)
        size = measure_field(NULL, &document, *passed);
    return *passed == end && view->data[end] == 0;
}

/* Make all places of the chain from `from` to `to` lead to `to`. */
static void shorten(spill_resync_t *resync, int64_t from, int64_t to)
{
    int64_t steps = 0;
    for (; from < to; steps++) {
        uint32_t *jump = jump_at(resync, from);
        if (!jump || *jump == 0)
            break;
        int64_t next = from + *jump;
        *jump = (uint32_t)(to - from);
        from = next;
    }
    spend_credit(resync, steps);
}

/*
 * Return the index at which the chain from index `at` ends. Behind `limit` the search may stop
 * early, and does if no jumps are remembered there.
 */
static size_t end_of_chain(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                           size_t limit)
{
    int64_t from = view->offset + (int64_t)at;
    int64_t place = from, measured = from;
    int64_t steps = 0;
    for (; steps < resync->credit; steps++) {
        uint32_t *jump = jump_at(resync, place);
        size_t size = jump ? *jump : 0;
        if (!jump && place - view->offset > (int64_t)limit)
            break;
        if (size == 0) {
            size = measure_field(resync, view, (size_t)(place - view->offset));
            if (size == 0)
                break;
            if (jump)
                *jump = (uint32_t)size;
        }
        place += (int64_t)size;
        measured = jump ? place : measured;
    }
    spend_credit(resync, steps + 1);
    if (steps > 1)
        shorten(resync, from, measured);
    return (size_t)(place - view->offset);
}

static inline bool is_whole(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                            size_t length)
{
    size_t end = at + length - 1;
    return view->data[end] == 0 && end_of_chain(resync, view, at + 4, end) == end;
}

bool spill_resync_whole(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                        size_t length)
{
    move_front(resync, view->offset);
    return is_whole(resync, view, at, length);
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Can a document begin here, by its length and the type of its first field? `size`: bytes in
 * memory. */
static bool may_begin(const uint8_t *data, size_t size)
{
    if (size < 4)
        return true; /* the rest is not in memory yet */
    uint32_t length = read_u32(data);
    if (length < 5 || length > SPILL_SCAN_DOCUMENT_BYTES_MAX)
        return false;
    return size < 5 || (length == 5 ? data[4] == 0 : SIZES[data[4]] != BAD);
}

static bool begins_with_id(const uint8_t *data, size_t size)
{
    return size >= 9 && may_begin(data, size) && memcmp(data + 5, "_id", 4) == 0;
}

bool spill_resync_two(const uint8_t *data, size_t size)
{
    if (!begins_with_id(data, size))
        return false;
    uint32_t length = read_u32(data);
    return length < size && data[length - 1] == 0 && begins_with_id(data + length, size - length);
}

static spill_sight_t sight_of_missing(const spill_resync_view_t *view)
{
    return view->ended ? SPILL_SIGHT_NO : SPILL_SIGHT_CANNOT_TELL;
}

/* Can a document that is not empty begin at `at`? Then *length is its length. */
static spill_sight_t check_header(const spill_resync_view_t *view, size_t at, uint32_t *length,
                                  size_t *wanted)
{
    const uint8_t *data = view->data + at;
    size_t size = view->size - at;
    *wanted = 5;
    if (size < 5)
        return sight_of_missing(view);
    *length = read_u32(data);
    if (!may_begin(data, size) || *length == 5)
        return SPILL_SIGHT_NO;
    *wanted = *length;
    return SPILL_SIGHT_YES;
}

/* Is the second of two documents whole? It begins at `at`; *wanted counts from there. */
static spill_sight_t check_second(spill_resync_t *resync, const spill_resync_view_t *view,
                                  size_t at, size_t *wanted)
{
    uint32_t length = 0;
    spill_sight_t sight = check_header(view, at, &length, wanted);
    if (sight != SPILL_SIGHT_YES)
        return sight;
    if (length > view->size - at)
        return sight_of_missing(view);
    return is_whole(resync, view, at, length) ? SPILL_SIGHT_YES : SPILL_SIGHT_NO;
}

spill_sight_t spill_resync_look(spill_resync_t *resync, const spill_resync_view_t *view, size_t at,
                                size_t *wanted)
{
    const uint8_t *data = view->data + at;
    size_t size = view->size - at;
    uint32_t length = 0;
    spill_sight_t sight = check_header(view, at, &length, wanted);
    if (sight != SPILL_SIGHT_YES)
        return sight;
    bool id = view->ids && begins_with_id(data, size);
    if (length > size)
        return view->ids && !id ? SPILL_SIGHT_NO : sight_of_missing(view);
    size_t left = size - length;
    if (left > 0 && !may_begin(data + length, left))
        return SPILL_SIGHT_NO;
    if (!is_whole(resync, view, at, length))
        return SPILL_SIGHT_NO;
    if (left == 0 && view->ended)
        return SPILL_SIGHT_YES;
    if (view->ids && !id && left >= 9 && !begins_with_id(data + length, left))
        return SPILL_SIGHT_NO;
    spill_sight_t second = check_second(resync, view, at + length, wanted);
    *wanted += length;
    return second;
}

spill_sight_t spill_resync_find(spill_resync_t *resync, const spill_resync_view_t *view, size_t *at,
                                size_t *wanted)
{
    size_t last = *at + FIND_PLACES;
    move_front(resync, view->offset + (int64_t)*at);
    for (; *at + 5 <= view->size; ++*at) {
        const uint8_t *data = view->data + *at;
        if (*at == last) {
            *wanted = 0;
            return SPILL_SIGHT_CANNOT_TELL;
        }
        if (data[3] > SPILL_SCAN_DOCUMENT_BYTES_MAX >> 24 || SIZES[data[4]] == BAD)
            continue; /* for most places */
        uint32_t length = read_u32(data);
        if (length > view->size - *at ? view->ended : length == 0 || data[length - 1] != 0)
            continue;
        move_front(resync, view->offset + (int64_t)*at);
        spill_sight_t sight = spill_resync_look(resync, view, *at, wanted);
        if (sight != SPILL_SIGHT_NO)
            return sight;
    }
    if (view->ended)
        *at = view->size;
    *wanted = 5;
    return view->ended ? SPILL_SIGHT_NO : SPILL_SIGHT_CANNOT_TELL;
}
