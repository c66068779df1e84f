#include "late.h"

#include <assert.h>

int64_t dice_below(uint64_t *random, int64_t bound)
{
    *random += 0x9e3779b97f4a7c15u;
    uint64_t mixed = *random;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((mixed ^ (mixed >> 31)) % (uint64_t)bound);
}

void late_add(late_queue_t *queue, size_t most, size_t array, size_t owner,
              const spill_request_t *request)
{
    assert(most <= sizeof queue->late / sizeof *queue->late);
    if (queue->count < most)
        queue->late[queue->count++] =
            (late_t){.array = array, .owner = owner, .request = spill_request_clone(request)};
}

bool late_take_random(late_queue_t *queue, uint64_t *random, late_t *late)
{
    if (queue->count == 0)
        return false;
    size_t index = (size_t)dice_below(random, (int64_t)queue->count);
    *late = queue->late[index];
    queue->late[index] = queue->late[--queue->count];
    return true;
}
