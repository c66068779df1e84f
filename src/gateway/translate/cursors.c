#include "gateway/translate/cursors.h"

#include "util/clock.h"

#include <pthread.h>
#include <string.h>
#include <sys/random.h>

struct spill_cursors {
    pthread_mutex_t lock;
    spill_read_cursor_t *kept[SPILL_CURSORS_MAX];
    size_t count;
    size_t bytes;
};

spill_read_cursor_t *spill_read_cursor_new(const spill_served_collection_t *at,
                                           const uint8_t user[8])
{
    spill_read_cursor_t *cursor = bson_malloc0(sizeof *cursor);
    cursor->at = at;
    memcpy(cursor->user, user, sizeof cursor->user);
    return cursor;
}

void spill_read_cursor_free(spill_read_cursor_t *cursor)
{
    if (cursor == NULL)
        return;
    spill_asked_release(&cursor->asked);
    spill_buffer_release(&cursor->pending);
    bson_free(cursor);
}

spill_cursors_t *spill_cursors_new(void)
{
    spill_cursors_t *cursors = bson_malloc0(sizeof *cursors);
    pthread_mutex_init(&cursors->lock, NULL);
    return cursors;
}

void spill_cursors_free(spill_cursors_t *cursors)
{
    if (cursors == NULL)
        return;
    for (size_t i = 0; i < cursors->count; i++)
        spill_read_cursor_free(cursors->kept[i]);
    pthread_mutex_destroy(&cursors->lock);
    bson_free(cursors);
}

/* The lock is held. */
static spill_read_cursor_t *remove_at(spill_cursors_t *cursors, size_t index)
{
    spill_read_cursor_t *cursor = cursors->kept[index];
    cursors->bytes -= cursor->pending.size;
    cursors->kept[index] = cursors->kept[--cursors->count];
    return cursor;
}

static void remove_idle(spill_cursors_t *cursors, int64_t now)
{
    for (size_t i = cursors->count; i > 0; i--)
        if (cursors->kept[i - 1]->used + SPILL_CURSOR_IDLE_SECONDS < now)
            spill_read_cursor_free(remove_at(cursors, i - 1));
}

/* A positive number that others cannot guess. */
static int64_t make_id(void)
{
    uint64_t random = 0;
    while (random == 0) {
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            random = 0;
        random &= INT64_MAX;
    }
    return (int64_t)random;
}

bool spill_cursors_put(spill_cursors_t *cursors, spill_read_cursor_t *cursor)
{
    pthread_mutex_lock(&cursors->lock);
    cursor->used = spill_clock_monotonic_s();
    remove_idle(cursors, cursor->used);
    bool fits = cursors->count < SPILL_CURSORS_MAX &&
                cursors->bytes + cursor->pending.size <= SPILL_CURSORS_BYTES_MAX;
    if (fits) {
        if (cursor->id == 0)
            cursor->id = make_id();
        cursors->kept[cursors->count++] = cursor;
        cursors->bytes += cursor->pending.size;
    }
    pthread_mutex_unlock(&cursors->lock);
    return fits;
}

spill_read_cursor_t *spill_cursors_take(spill_cursors_t *cursors, int64_t id, const uint8_t user[8])
{
    spill_read_cursor_t *taken = NULL;
    pthread_mutex_lock(&cursors->lock);
    for (size_t i = 0; i < cursors->count && taken == NULL; i++)
        if (cursors->kept[i]->id == id && memcmp(cursors->kept[i]->user, user, 8) == 0)
            taken = remove_at(cursors, i);
    pthread_mutex_unlock(&cursors->lock);
    return taken;
}
