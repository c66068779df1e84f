#include "tools/scan/paths.h"

#include <string.h>

static int compare_names(const spill_value_t *left, const spill_value_t *right)
{
    if (left->type != right->type)
        return left->type < right->type ? -1 : 1;
    uint32_t common = left->size_bytes < right->size_bytes ? left->size_bytes : right->size_bytes;
    int order = common > 0 ? memcmp(left->data, right->data, common) : 0;
    if (order != 0)
        return order;
    return (left->size_bytes > right->size_bytes) - (left->size_bytes < right->size_bytes);
}

/* The first and the second sort key of the list. */
static int64_t first_of(const spill_owners_t *owners, const spill_owner_t *owner)
{
    return owners->by_bytes ? owner->bytes : owner->length;
}

static int64_t second_of(const spill_owners_t *owners, const spill_owner_t *owner)
{
    return owners->by_bytes ? owner->length : owner->bytes;
}

/* Report whether `left` comes before `right`. */
static bool before(const spill_owners_t *owners, const spill_owner_t *left,
                   const spill_owner_t *right)
{
    if (first_of(owners, left) != first_of(owners, right))
        return first_of(owners, left) > first_of(owners, right);
    if (second_of(owners, left) != second_of(owners, right))
        return second_of(owners, left) > second_of(owners, right);
    int order = compare_names(&left->value, &right->value);
    return order != 0 ? order < 0 : left->place < right->place;
}

bool spill_owners_wanted(const spill_owners_t *owners, int64_t length, int64_t bytes)
{
    if (owners->count < SPILL_OWNERS_MAX)
        return true;
    const spill_owner_t *last = &owners->items[SPILL_OWNERS_MAX - 1];
    spill_owner_t one = {.length = length, .bytes = bytes};
    return first_of(owners, &one) > first_of(owners, last) ||
           (first_of(owners, &one) == first_of(owners, last) &&
            second_of(owners, &one) >= second_of(owners, last));
}

static void release(spill_owner_t *owner)
{
    bson_free((void *)(uintptr_t)owner->value.data);
    bson_free(owner->growth_forecast.course);
    spill_owner_forget_history(owner);
}

void spill_owner_forget_history(spill_owner_t *owner)
{
    spill_history_t *history = (spill_history_t *)(uintptr_t)owner->history;
    if (history)
        spill_history_release(history);
    bson_free(history);
    owner->history = NULL;
}

static const spill_history_t *sorted_copy(const spill_history_t *history)
{
    spill_history_t *copy = bson_malloc(sizeof *copy);
    spill_history_copy(history, copy);
    spill_history_sort(copy);
    return copy;
}

void spill_owners_add(spill_owners_t *owners, const spill_owner_t *owner)
{
    spill_owner_t item = *owner;
    if (!item.value.data || item.value.size_bytes > SPILL_OWNER_NAME_MAX)
        item.value = (spill_value_t){0};
    size_t at = owners->count;
    while (at > 0 && before(owners, &item, &owners->items[at - 1]))
        at--;
    if (at == SPILL_OWNERS_MAX)
        return;
    if (item.value.data) {
        uint8_t *copy = bson_malloc(item.value.size_bytes + 1U); /* a null value has no bytes */
        memcpy(copy, item.value.data, item.value.size_bytes);
        item.value.data = copy;
    }
    if (owners->count == SPILL_OWNERS_MAX)
        release(&owners->items[--owners->count]);
    if (item.history)
        item.history = sorted_copy(item.history);
    if (item.growth_forecast.course)
        item.growth_forecast.course = memcpy(bson_malloc(sizeof(spill_course_t)),
                                             owner->growth_forecast.course, sizeof(spill_course_t));
    memmove(&owners->items[at + 1], &owners->items[at],
            (owners->count - at) * sizeof owners->items[0]);
    owners->items[at] = item;
    owners->count++;
}

void spill_owners_merge(spill_owners_t *into, const spill_owners_t *from)
{
    for (size_t i = 0; i < from->count; i++)
        spill_owners_add(into, &from->items[i]);
}

void spill_owners_release(spill_owners_t *owners)
{
    for (size_t i = 0; i < owners->count; i++)
        release(&owners->items[i]);
    owners->count = 0;
}

static int64_t soonest_of(const spill_owner_t *owner)
{
    const spill_when_t *limit = &owner->growth_forecast.limit;
    if (limit->elements == 0)
        return SPILL_WHEN_UNKNOWN;
    return limit->likely_ms != SPILL_WHEN_UNKNOWN ? limit->likely_ms : limit->earliest_ms;
}

const spill_owner_t *spill_owners_first_at_limit(const spill_owners_t *owners)
{
    const spill_owner_t *first = &owners->items[0];
    for (size_t i = 1; i < owners->count; i++)
        if (soonest_of(&owners->items[i]) < soonest_of(first))
            first = &owners->items[i];
    return first;
}
