#include "random_walk.h"

#include "support/effort.h"

/* splitmix64 */
int64_t walk_below(walk_t *walk, int64_t bound)
{
    walk->random += 0x9e3779b97f4a7c15u;
    uint64_t mixed = walk->random;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return (int64_t)((mixed ^ (mixed >> 31)) % (uint64_t)bound);
}

spill_request_t walk_request(const walk_t *walk, spill_request_kind_t kind, int64_t page)
{
    spill_request_t request = pair_request(&walk->pair, walk->array, walk->owner, kind, page);
    request.incarnation = walk->head.incarnation;
    request.rev = walk->head.rev;
    return request;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void deliver(walk_t *walk, const spill_request_t *request)
{
    pair_call(&walk->pair, walk->array, request);
    walk->plan->compare(walk);
}

static void deliver_later(walk_t *walk, const spill_request_t *request)
{
    assert_true(walk->plan->late_max <= WALK_LATE_MAX);
    if (walk->late_count == walk->plan->late_max)
        return;
    walk->late[walk->late_count].array = walk->array;
    walk->late[walk->late_count].owner = walk->owner;
    walk->late[walk->late_count++].request = spill_request_clone(request);
}

void walk_send(walk_t *walk, const spill_request_t *request)
{
    int64_t fate = walk_below(walk, 10);
    if (fate < 2)
        deliver_later(walk, request);
    if (fate != 0)
        deliver(walk, request);
}

void walk_deliver_late(walk_t *walk)
{
    if (walk->late_count == 0)
        return;
    size_t index = (size_t)walk_below(walk, (int64_t)walk->late_count);
    spill_request_t *request = walk->late[index].request;
    walk->array = walk->late[index].array;
    walk->owner = walk->late[index].owner;
    walk->late[index] = walk->late[--walk->late_count];
    if (!walk->plan->is_obsolete(walk, request))
        deliver(walk, request);
    spill_request_free(request);
}

/* ---- walks ----------------------------------------------------------------------------------- */

static void take_step(walk_t *walk)
{
    const walk_plan_t *plan = walk->plan;
    walk->array = plan->first_array + (size_t)walk_below(walk, (int64_t)plan->array_count);
    walk->owner = (size_t)walk_below(walk, PAIR_OWNERS);
    plan->read_head(walk);
    plan->acts[walk_below(walk, (int64_t)plan->act_count)](walk);
}

static void play_one(walk_t *walk, const contract_kind_t *store)
{
    pair_open(&walk->pair, store);
    for (int i = 0; i < walk->plan->steps; i++) {
        take_step(walk);
        if (i == walk->plan->steps / 2)
            pair_reopen(&walk->pair);
    }
    while (walk->late_count > 0)
        walk_deliver_late(walk);
}

static void release(walk_t *walk)
{
    spill_state_release(&walk->head);
    spill_state_release(&walk->page);
    spill_run_release(&walk->journal);
    spill_run_release(&walk->element);
    spill_top_release(&walk->top_n);
    spill_run_release(&walk->top_n_run);
    pair_close(&walk->pair);
}

static bool is_unused(const walk_plan_t *plan, spill_request_kind_t kind)
{
    for (size_t i = 0; i < plan->unused_count; i++)
        if (plan->unused[i] == kind)
            return true;
    return false;
}

void walk_play(const walk_plan_t *plan, const contract_kind_t *store)
{
    int64_t walks = store->slow ? effort(plan->walks, plan->walks_slow, plan->walks_slow)
                                : effort(plan->walks, plan->walks, plan->walks_sanitized);
    static walk_t walk;
    int64_t done[SPILL_REQUEST_KIND_COUNT] = {0}, refused[SPILL_REQUEST_KIND_COUNT] = {0};
    for (int64_t seed = 1; seed <= walks; seed++) {
        walk = (walk_t){.plan = plan, .random = (uint64_t)seed, .incarnation = INCARNATION};
        play_one(&walk, store);
        for (int kind = 0; kind < SPILL_REQUEST_KIND_COUNT; kind++) {
            done[kind] += walk.pair.done[kind];
            refused[kind] += walk.pair.refused[kind];
        }
        release(&walk);
    }
    for (int k = 0; k < SPILL_REQUEST_KIND_COUNT; k++) {
        spill_request_kind_t kind = (spill_request_kind_t)k;
        bool never_refused = kind == SPILL_REQUEST_READ || walks < plan->walks;
        if (is_unused(plan, kind))
            continue;
        if (done[kind] == 0 || (refused[kind] == 0 && !never_refused))
            fail_msg("%s: done %lld times, refused %lld times", spill_request_kind_name(kind),
                     (long long)done[kind], (long long)refused[kind]);
    }
}
