/*
 * A simulated world: one shared store, a few clients in coroutines, and a network between them that
 * loses, delays and repeats. Everything that happens follows from one seed.
 *
 *   settings.c   what a seed decides beforehand: bounds, clients, faults, habits
 *   engine.c     the shared store; crashes of its machine
 *   network.c    the store as a client sees it: whose turn it is, faults, late deliveries
 *   observe.c    what each request that took effect means to the plain arrays
 *   corrupt.c      summaries and counts that somebody spoils
 *   client.c     random calls of the public API; check.c: are their answers right?
 *   schedule.c   one schedule from beginning to end, and the checks when all is quiet
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "coroutine.h"
#include "coverage.h"
#include "model_array.h"
#include "random.h"
#include "values.h"

#include "store/store.h"
#include "store/transition.h"
#include "support/disk.h"

#include <spillway/spillway.h>

#include <stdio.h>

#define SIM_CLIENTS_MAX 3
#define SIM_OWNERS_MAX 2
#define SIM_BATCH_MAX 8
#define SIM_ARRAY_NAME "feed"

/* What a client may do next. */
typedef enum sim_action {
    SIM_ACTION_APPEND,
    SIM_ACTION_BATCH,
    SIM_ACTION_READ,
    SIM_ACTION_COUNT,
    SIM_ACTION_EDIT,
    SIM_ACTION_REMOVE,
    SIM_ACTION_TRIM,
    SIM_ACTION_DROP,
    SIM_ACTION_UPDATE,
    SIM_ACTION_DEFINE,
    SIM_ACTION_EXPORT,
    SIM_ACTION_VERIFY,
    SIM_ACTION_KINDS
} sim_action_t;

/* Everything that is decided before a schedule begins. */
typedef struct sim_settings {
    spill_layout_t layout;
    spill_keep_t keep;
    bool referenced;        /* layout reference, or with a top */
    int top;                /* ... layout subset, of so many elements */
    const char *sort_field; /* ... that rank by this */
    bool top_n;             /* capped: those that rank highest by it stay */
    bool bucket;            /* layout bucket, which keeps the oldest */
    bool windows;           /* ... and the owners are two windows of one */
    int clients;
    int owners;
    int actions_each;
    int32_t op_window;
    spill_bounds_t bounds[2]; /* clients take one or the other */
    bool padded;              /* elements of several sizes, and small byte bounds */
    int sticky;               /* in 1000: the client that ran runs on */
    int faults;               /* in 1000 requests */
    int late;                 /* in 1000 steps: a late request is delivered */
    int crashes;              /* clients that may crash */
    int machine_crashes;      /* times that the store may lose what it has not synced */
    int keep_elements;        /* retention; 0: none */
    int keep_seconds;         /* the same by age: then each value takes a second */
    int skew_us;              /* how far clients' clocks may differ */
    int weights[SIM_ACTION_KINDS];
} sim_settings_t;

/* One append as the application sees it: kept through retries. */
typedef struct sim_append {
    int owner;
    int64_t first_value; /* its elements are first_value, first_value + 1, ... */
    int count;
    bool has_op;
    uint8_t id[8];
    int64_t base;
    int32_t base_generation;
    int64_t skip;    /* capped, keeping the best: so many numbers before its elements */
    bool fill;       /* documents to their bounds */
    bool updates;    /* also raises a field of the head */
    int updated;     /* times that it did */
    int32_t started; /* version of the plain array at the first try */
    int tries;
    bool unknown;      /* an answer was lost, or a client crashed */
    spill_code_t code; /* of the last try */
} sim_append_t;

/* Where a value came from and went to. */
typedef struct sim_origin {
    int32_t append; /* into world.appends; -1: an edit's */
    int32_t padding;
    bool second;     /* of two windows: it is for the second one */
    int32_t applied; /* times */
    int32_t generation;
    int32_t version;
    int64_t seq;
} sim_origin_t;

typedef struct sim_world sim_world_t;

/* What carries the documents. */
typedef enum sim_engine { SIM_MODEL, SIM_EMBEDDED } sim_engine_t;

/* What a client that trims by count or by time asked for, or its append by retention. */
typedef struct sim_trimming {
    bool retains;
    int64_t keep;
    int64_t time_ms; /* 0: not by time; by retention: now less keep_seconds */
    int32_t from;    /* version of the plain array when it was asked, or the append was begun */
} sim_trimming_t;

/* What a client that removes by a filter asked for. */
typedef struct sim_removing {
    bool active;
    int64_t id;
    int32_t from; /* version of the plain array when it was asked */
} sim_removing_t;

/* A client: a store of its own before the shared one (`port`, the first member), and a coroutine.
 */
typedef struct sim_client {
    spill_store_t port;
    sim_world_t *world;
    int index;
    int life; /* how many had this place before */
    sim_coroutine_t *coroutine;
    spill_array_t *array;
    bool crashed;  /* every call fails, until it has returned from all of them */
    bool reliable; /* no faults, no turns: the client of the last checks */
    bool began;    /* the first request of a public call needs no turn of its own */
    int actions_left;
    int pending; /* an append that is to be tried again, or -1 */
    int64_t bases[SIM_OWNERS_MAX];
    int32_t base_incarnations[SIM_OWNERS_MAX];
    /* The present public call. */
    int reads; /* documents read */
    int faults_met;
    bool append_again;   /* an append request of it will arrive once more */
    int64_t refused_put; /* page and src of a put that was refused, or -1 */
    int64_t refused_src;
    sim_trimming_t trimming;
    sim_removing_t removing;
    int64_t taken; /* elements that its steps took out of the plain arrays */
} sim_client_t;

/* A request on its way, to be carried out late. */
typedef struct sim_late {
    spill_request_t *request;
    int client;
} sim_late_t;

/* Who last put a page, announced a removal, ...: to see others finish it. */
typedef struct sim_traces {
    int put_client;
    int64_t put_page;
    int intent_client;
    int64_t edited_value; /* what the last edit in a page is to put there */
    bool editing;         /* ... which is under way */
} sim_traces_t;

typedef spill_code_t (*sim_execute_fn)(sim_world_t *world, const spill_request_t *request,
                                       spill_response_t *response, spill_error_t *error);

struct sim_world {
    uint64_t seed;
    sim_random_t random;
    sim_settings_t settings;
    sim_coverage_t *coverage;
    FILE *trace; /* or NULL */

    sim_engine_t engine;
    spill_store_t *store; /* the shared one */
    disk_t *disk;         /* under an embedded one */
    bool machine_dies;    /* at the next write */
    bool write_survives;  /* did it reach the disk all the same? */
    /* For naive versions (naive.h); NULL: ours. */
    sim_execute_fn execute;             /* how the store carries out requests */
    sim_body_fn body;                   /* what a client does */
    void (*adjust)(sim_world_t *world); /* settings that bring out the difference */
    void (*finish)(sim_world_t *world); /* the reckoning */
    void *naive;                        /* what they remember */
    spill_definition_t definition;
    int64_t now_us;
    int64_t calls;

    sim_client_t clients[SIM_CLIENTS_MAX + 1]; /* the last: the reliable one */
    sim_client_t *running;
    sim_late_t *late;
    size_t late_count, late_capacity;
    bool late_now; /* one of them is being delivered */

    sim_model_t plains[SIM_OWNERS_MAX];
    bool drop_begun[SIM_OWNERS_MAX]; /* a client has called a drop, or a trim that may drop */
    sim_traces_t traces[SIM_OWNERS_MAX];
    int64_t hits[SIM_OWNERS_MAX]; /* the field that appends raise */
    bool spoiled[SIM_OWNERS_MAX]; /* the summary is not that of the elements, perhaps */
    int spoils[SIM_OWNERS_MAX];   /* times that it was spoiled */
    sim_append_t *appends;
    size_t append_count, append_capacity;
    sim_origin_t *origins; /* by value id */
    size_t origin_count, origin_capacity;

    spill_response_t before; /* scratch of observe.c */
    spill_top_t top_before;
    char failure[512]; /* what went wrong first; "" while nothing did */
};

/* ---- settings.c ------------------------------------------------------------------------------ */

void sim_settings_choose(sim_settings_t *settings, sim_engine_t engine, sim_random_t *random);
/* ... of arrays with a top, which the seed decides. */
void sim_settings_top(sim_settings_t *settings, uint64_t seed);
/* Make it a schedule of capped arrays. */
void sim_settings_cap(sim_settings_t *settings, uint64_t seed);
void sim_settings_print(const sim_settings_t *settings, FILE *file);

/* ---- engine.c ------------------------------------------------------------------------------- */

void sim_engine_open(sim_world_t *world);
void sim_engine_close(sim_world_t *world);
void sim_machine_crash(sim_world_t *world);

/* ---- network.c ------------------------------------------------------------------------------- */

void sim_port_open(sim_client_t *client);
void sim_port_close(sim_client_t *client);

/* Deliver one of the late requests, chosen by chance. There is one. */
void sim_deliver_late(sim_world_t *world);
void sim_discard_late(sim_world_t *world);

/* Carry a request out on the shared store. */
spill_code_t sim_execute(sim_world_t *world, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error);

/* ---- observe.c ------------------------------------------------------------------------------- */

/* The document as it is now, into response->state; response->seq stays. */
void sim_read_state(sim_world_t *world, const spill_request_t *request, spill_response_t *response);

/* ... into world->before. */
void sim_observe_before(sim_world_t *world, const spill_request_t *request);

/* A request was carried out (or refused): what that means. `client` is who sent it. */
void sim_observe(sim_world_t *world, int client, const spill_request_t *request,
                 const spill_response_t *response);

/* Which owner a request speaks of; or a value that sim_owner_value made. */
int sim_owner_of(const spill_request_t *request);
int sim_owner_number(const spill_value_t *value);

/* ---- corrupt.c ---------------------------------------------------------------------------------
 */

bool sim_is_corrupted(const sim_world_t *world, int owner);
/* Elements apart: perhaps spoil the head's summary, behind the backs of all. */
void sim_corrupt(sim_client_t *client, int owner);
/* Perhaps make the count of the owner's removed elements too large. True: it was done. */
bool sim_miscount(sim_client_t *client, int owner);
/* A step on the head was done: a recount mends it, and a drop. */
void sim_observe_corrupted(sim_world_t *world, int owner, const spill_request_t *request);

/* ---- client.c -------------------------------------------------------------------------------- */

/* The body of a client's coroutine. */
void sim_client_run(void *client);

/* Wait for a turn before a public call. False: the client has crashed. */
bool sim_begin_call(sim_client_t *client);

/* Try an append (again), on the client's array; check the answer. True: the answer is final. */
bool sim_client_append(sim_client_t *client, int append);

/* When a client does not trim itself, its appends do, down to what the definition keeps. */
sim_trimming_t sim_retention(const sim_world_t *world);

/* Open the array, or open it again: with the bounds that are in force. */
bool sim_client_open(sim_client_t *client);

/* A new append of `count` elements to remember. */
int sim_append_new(sim_client_t *client, int owner, int count, bool has_op);

/* Values never used before. */
int64_t sim_value_new(sim_world_t *world, int owner, int32_t append, int padding);
/* Is an error what a fault explains? */
bool sim_failed_by_fault(const sim_client_t *client, spill_code_t code);
spill_value_t sim_value_of(const sim_world_t *world, sim_value_bytes_t *bytes, int64_t id);
spill_value_t sim_owner_value(const sim_world_t *world, int owner);

/* ---- windows.c ------------------------------------------------------------------------------- */

/* Several windows: an operation on all of an owner's, perhaps. False: none was made. */
bool sim_act_on_windows(sim_client_t *client);

/* ---- check.c, check_id.c
 * --------------------------------------------------------------------------------- */

/* The versions between which a call was made. */
typedef struct sim_span {
    int32_t from;
    int32_t to;
} sim_span_t;

void sim_check_append(sim_client_t *client, const sim_append_t *append,
                      const spill_append_result_t *result, int32_t tried_from);
void sim_check_read(sim_client_t *client, int owner, sim_span_t span,
                    const spill_read_options_t *options, const spill_slice_t *slice);
void sim_check_count(sim_client_t *client, int owner, sim_span_t span, const spill_count_t *count);
/* When nobody changes anything meanwhile, or the window has one document. */
void sim_check_statistics(sim_client_t *client, int owner, sim_span_t span,
                          const spill_statistics_t *statistics);
void sim_check_edit(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t seq, int64_t value);
void sim_check_remove(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                      int64_t seq);
/*
 * By id: `seq` is what was answered (-1: none), and `what` names the call. A change itself is
 * checked by its number besides.
 */
void sim_check_id(sim_client_t *client, int owner, sim_span_t span, spill_code_t code, int64_t id,
                  int64_t seq, const char *what);
/* All that client->removing asked for, or `limit` (0: none) of them, were removed. */
void sim_check_removed_where(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                             int64_t limit, int64_t removed);
/* It is about to remove an element that matched, as it was at some moment. */
void sim_check_removing(sim_client_t *client, int owner, int64_t seq);
/* By count or by time, as client->trimming has it. */
void sim_check_trim_to(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                       int64_t below);
/* A TRIM that this client sent took effect: it took no more than was asked for. (check_id.c) */
void sim_check_trimmed(sim_client_t *client, int owner, int32_t before);
void sim_check_trim(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t below);
/*
 * Layout subset: read the top, and check it; at the end, when all is quiet, it is exactly that of
 * the plain array. (top.c)
 */
/* Capped, keeping the best: what an append has dropped. (top_n.c) */
void sim_observe_top_n(sim_world_t *world, int owner, const spill_request_t *request,
                       const spill_response_t *response);

void sim_check_top(sim_client_t *client, int owner, bool at_the_end);
/* ... the head's, after a step on it, as it is in world->before. */
void sim_observe_top(sim_world_t *world, int owner, const spill_request_t *request);
void sim_check_drop(sim_client_t *client, int owner, sim_span_t span, spill_code_t code);

/*
 * A finding of the verifier is a failure; `world` is a sim_world_t. But where an owner was dropped,
 * an operation that counts on a base of the earlier owner may stand twice in the later one's
 * window, and a drop that was begun is found.
 */
void sim_check_finding(void *client, const spill_finding_t *finding);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* A world to run schedules in, one after another; and its end. */
void sim_world_init(sim_world_t *world, sim_engine_t engine, sim_coverage_t *coverage);
void sim_world_release(sim_world_t *world);

/* Run the schedule of a seed. False: world->failure says what is wrong. */
bool sim_schedule_run(sim_world_t *world, uint64_t seed);

/* The parts of a schedule, for tests that script one. */
void sim_schedule_begin(sim_world_t *world);
void sim_schedule_play(sim_world_t *world);
void sim_schedule_end(sim_world_t *world);
void sim_schedule_clear(sim_world_t *world);

/* From inside a client: let others run. False: this client has crashed. */
bool sim_turn(sim_client_t *client);

/* Remember the first failure. */
void sim_fail(sim_world_t *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(sim_world_t *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void sim_saw(sim_world_t *world, sim_event_t event)
{
    world->coverage->seen[event]++;
}

#endif
