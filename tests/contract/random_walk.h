/*
 * Random requests of simulated clients, sent to a pair of stores; some arrive late, some twice.
 * After each request both stores must have the same documents. random.c and random_referenced.c
 * contain the steps that clients take in their layouts.
 */
#ifndef TESTS_CONTRACT_RANDOM_WALK_H
#define TESTS_CONTRACT_RANDOM_WALK_H

#include "pair.h"

#define WALK_LATE_MAX 24

typedef struct walk walk_t;
typedef void (*walk_fn)(walk_t *walk);

/* How to walk. Each step chooses an array and an owner, reads its head, and takes one of `acts`. */
typedef struct walk_plan {
    size_t first_array, array_count; /* of pair.h */
    const walk_fn *acts;
    size_t act_count;
    walk_fn read_head; /* into walk->head */
    walk_fn compare;   /* the documents of the array and the owner, after each request */
    /* Is a late request without use by now, so that a store may refuse it? */
    bool (*is_obsolete)(walk_t *walk, const spill_request_t *request);
    const spill_request_kind_t *unused; /* kinds of requests that these layouts do not use */
    size_t unused_count;
    size_t late_max; /* queued requests, at most WALK_LATE_MAX */
    int steps;       /* of each walk */
    int walks, walks_slow, walks_sanitized;
} walk_plan_t;

struct walk {
    pair_t pair;
    const walk_plan_t *plan;
    uint64_t random;
    int64_t incarnation; /* of the next head to be created */
    struct {
        size_t array, owner;
        spill_request_t *request; /* a clone */
    } late[WALK_LATE_MAX];
    size_t late_count;
    size_t array, owner; /* of the current step */
    spill_state_t head;  /* the head as it was read */
    spill_state_t page;  /* the page or document that was read last */
    /* Only with referenced elements: */
    spill_run_t journal; /* of the head */
    spill_run_t element; /* of the document in `page` */
    spill_top_t top_n;   /* layout subset: the refill that a step carries */
    spill_run_t top_n_run;
};

/*
 * Play the plan's walks on the store and a model store. Each kind of request that the plan uses
 * must be carried out, and in a complete run also be refused.
 */
void walk_play(const walk_plan_t *plan, const contract_kind_t *store);

/* Return a random number in [0, bound). */
int64_t walk_below(walk_t *walk, int64_t bound);

/* Make a request of the current array and owner, at the head's incarnation and rev. */
spill_request_t walk_request(const walk_t *walk, spill_request_kind_t kind, int64_t page);

/* Send a request now, later, or both. */
void walk_send(walk_t *walk, const spill_request_t *request);

/* Deliver one of the late requests, chosen by chance; no effect if there is none. */
void walk_deliver_late(walk_t *walk);

#endif
