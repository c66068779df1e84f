/*
 * A simulated world: one shared store, a few clients in coroutines, and a network between them that
 * loses, delays and repeats messages. One seed determines everything that happens.
 *
 *   settings.c   the settings of a seed: bounds, clients, faults, the actions that clients prefer
 *   engine.c     the shared store; crashes of its machine
 *   network.c    the store as a client sees it: turns, faults, late deliveries
 *   observe.c    how each request that took effect changes the plain arrays
 *   corrupt.c    make wrong summaries and counts
 *   spiller.c    clients that spill later than they append
 *   sets.c       arrays that keep each id once
 *   rewriting.c  clients that replace the elements of a head, as the gateway does
 *   collection_drops.c  drops of the whole collection, and their note
 *   endings.c    heads that end by the gateway's statements or by other programs; notes of drops
 *   client.c     random calls of the public API; check.c checks their answers
 *   schedule.c   one schedule from beginning to end, and the final checks
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "coroutine.h"
#include "coverage.h"
#include "model_array.h"
#include "random.h"
#include "values.h"

#include "store/drop_note.h"
#include "store/store.h"
#include "store/transition.h"
#include "support/disk.h"

#include <spillway/spillway.h>

#include <stdio.h>

#define SIM_CLIENTS_MAX 3
#define SIM_OWNERS_MAX 2
#define SIM_BATCH_MAX 8
#define SIM_ARRAY_NAME "feed"

/* With `paths`, a head's small bound is larger by this. */
#define SIM_PATHS_BYTES 200

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
    int top;                /* layout subset: the number of its elements; else 0 */
    const char *sort_field; /* layout subset: the field that ranks them */
    bool top_n;             /* capped: keep the elements that rank highest by sort_field */
    bool bucket;            /* layout bucket, which keeps the oldest elements */
    bool windows;           /* layout bucket: the owners are two windows of one owner */
    int clients;
    int owners;
    int actions_each;
    int32_t op_window;
    spill_bounds_t bounds[2]; /* each client has one of the two */
    bool padded;              /* elements of several sizes, and small byte bounds */
    int sticky;               /* in 1000 turns: the same client runs again */
    int faults;               /* in 1000 requests */
    int late;                 /* in 1000 steps: a late request is delivered */
    int crashes;              /* clients that may crash */
    int machine_crashes;      /* times that the machine may crash and lose unsynced data */
    int keep_elements;        /* retention; 0: none */
    int keep_seconds;         /* retention by age; appended values are one second apart */
    bool defers;              /* appends leave due spills to another thread */
    int skew_us;              /* how far clients' clocks may differ */
    bool paths;               /* the head's fields are in a sub-document */
    bool unique;              /* the array keeps each id once */
    bool notes;               /* statements of a gateway and other programs delete heads */
    bool forgets;             /* clients forget a note when the pages are deleted */
    int sessions; /* appends carry operations of sessions; most entries; 0: they do not */
    int weights[SIM_ACTION_KINDS];
} sim_settings_t;

/* One append of the application, remembered through its retries. */
typedef struct sim_append {
    int owner;
    int64_t first_value; /* its elements are first_value, first_value + 1, ... */
    int count;
    bool has_op;
    uint8_t id[8];
    int64_t base;
    int32_t base_generation;
    int64_t skip; /* capped, top-N: skip this number of sequence numbers first */
    bool fill;    /* fill documents to their bounds */
    int session;  /* with has_op: its session, or -1: an operation id */
    int64_t txn;  /* of the session */
    int32_t number;
    bool must_exist;       /* the head is not created */
    bool rewrites;         /* its elements replace those of a head without pages (rewriting.c) */
    int64_t started_us;    /* the first try */
    spill_reason_t reason; /* of the last try's error */
    bool updates;          /* also raises a field of the head */
    int updated;           /* times that the field was raised */
    int32_t started;       /* version of the plain array at the first try */
    int tries;
    bool unknown;      /* an answer was lost or a client crashed */
    spill_code_t code; /* the code of the last try */
} sim_append_t;

/* The origin of a value and where it was appended. */
typedef struct sim_origin {
    int32_t append; /* index into world.appends; -1: an edit */
    int32_t padding;
    bool second;     /* with two windows: in the second one */
    int32_t applied; /* times that it was appended */
    int32_t generation;
    int32_t version;
    int64_t seq;
} sim_origin_t;

typedef struct sim_world sim_world_t;

/*
 * Sessions of applications. Each client has two, and begins a transaction only when the one before
 * is over. No request is carried out later than the horizon after the first try of its append.
 */
#define SIM_SESSIONS (2 * SIM_CLIENTS_MAX)
#define SIM_HORIZON_US 50000

typedef struct sim_session {
    int64_t txn;
    int32_t next; /* the number after the last statement's */
    int owner;
} sim_session_t;

/* The store under the simulation. */
typedef enum sim_engine { SIM_MODEL, SIM_EMBEDDED } sim_engine_t;

/* The request of a client that trims by count or time, or of its append by retention. */
typedef struct sim_trimming {
    bool retains;
    int64_t keep;
    int64_t time_ms; /* 0: not by time; by retention: now minus keep_seconds */
    /* version of the plain array when the trim was requested or the append began */
    int32_t from;
} sim_trimming_t;

/* The request of a client that removes by a filter. */
typedef struct sim_removing {
    bool active;
    int64_t id;
    int32_t from; /* version of the plain array when it was requested */
} sim_removing_t;

/*
 * A client: a coroutine, and its own store object in front of the shared store (`port`, the first
 * member).
 */
typedef struct sim_client {
    spill_store_t port;
    sim_world_t *world;
    int index;
    int life; /* the number of crashed clients that it replaces */
    sim_coroutine_t *coroutine;
    spill_array_t *array;
    bool crashed;  /* every call fails until it has returned from all of them */
    bool reliable; /* no faults and no turns: the client that makes the final checks */
    bool began;    /* the first request of a public call reuses the call's turn */
    bool drops;    /* it drops an owner by the public call */
    bool raises;   /* it raises the rev of a head, to end it as the gateway does */
    int actions_left;
    int pending; /* the append to retry, or -1 */
    int64_t bases[SIM_OWNERS_MAX];
    int32_t base_incarnations[SIM_OWNERS_MAX];
    /* Of the current public call. */
    int reads; /* documents read */
    int faults_met;
    bool append_again;   /* one of its append requests will arrive again */
    int64_t refused_put; /* page and source_rev of a refused put, or -1 */
    int64_t refused_src;
    sim_trimming_t trimming;
    sim_removing_t removing;
    int64_t taken; /* elements that its steps removed from the plain arrays */
    /* Owners whose spill an append has left to spiller.c, and their heads, or nothing. */
    bool due[SIM_OWNERS_MAX];
    spill_response_t due_heads[SIM_OWNERS_MAX];
} sim_client_t;

/* A message that is no request: about a note of a drop, or a statement that deletes a head. */
typedef enum sim_message_kind {
    SIM_MESSAGE_MARK,     /* later heads have incarnations above note.rev */
    SIM_MESSAGE_ANNOUNCE, /* write the note */
    SIM_MESSAGE_DELETE,   /* delete the head of note.incarnation and note.rev */
    SIM_MESSAGE_CERTAIN,  /* the note needs no rev any longer */
    SIM_MESSAGE_FORGET,   /* forget the note, if it is not later than this one */
    SIM_MESSAGE_FIND,     /* read the note */
    /* of the whole collection (collection_drops.c) */
    SIM_MESSAGE_HIGHEST_HEAD, /* read the highest rev of all heads */
    SIM_MESSAGE_HIGHEST_PAGE, /* read the highest incarnation of all pages */
    SIM_MESSAGE_ANNOUNCE_ALL, /* write what the attempt announces */
    SIM_MESSAGE_DROP_ALL,     /* drop the collection */
    SIM_MESSAGE_ENDED_ALL,    /* heads up to this incarnation have surely ended */
    SIM_MESSAGE_REFUSED_ALL,  /* what the attempt has announced does not hold */
    SIM_MESSAGE_DELETE_ALL,   /* delete the pages up to this incarnation */
    SIM_MESSAGE_KINDS
} sim_message_kind_t;

typedef struct sim_message {
    sim_message_kind_t kind;
    int owner;
    spill_drop_note_t note;
    const spill_request_t *head; /* names the head of the owner */
    int attempt;                 /* to drop the collection */
} sim_message_t;

/* A request or a message to be delivered late. */
typedef struct sim_late {
    spill_request_t *request; /* a message: its head, or NULL */
    int client;
    bool is_message;
    sim_message_t message;
} sim_late_t;

enum { SIM_ATTEMPTS_MAX = 16 };

/* A client's attempt to drop the collection. */
typedef struct sim_attempt {
    int64_t incarnation, collection;
    bool announced, refused; /* as the store has it */
    bool wanted;             /* no client has withdrawn it */
    bool denied; /* by the server, which denies a late delivery of the same command as well */
} sim_attempt_t;

typedef struct sim_drops_all {
    int64_t collection; /* its UUID: each drop ends one */
    int64_t ended;      /* the note: incarnations up to this one have surely ended */
    sim_attempt_t attempts[SIM_ATTEMPTS_MAX];
    int count;
    int64_t sure; /* the highest incarnation of a drop that was announced, then made */
} sim_drops_all_t;

/* The notes of one owner, and what the checks know of the end of its heads. */
typedef struct sim_ends {
    spill_drop_note_t note; /* incarnation 0: there is none */
    int64_t wanted;         /* the last incarnation that a client wanted to end ... */
    int64_t pages;          /* ... and how many pages its head had then */
    int64_t announced;      /* the last incarnation whose rev a client has raised to end it ... */
    bool page_put;          /* ... and a page was put since then */
    int64_t deleted;        /* the last incarnation that a client's statement has ended */
    int64_t certain;        /* the last one whose end the note has */
    bool old;               /* the note has stayed for its time: no request can arrive late */
    int64_t may_go;         /* pages up to this incarnation may be deleted */
    bool any;               /* a head was deleted without DROP_HEAD */
} sim_ends_t;

/*
 * The last client to put a page, prepare a removal, ...: detects when another client finishes it.
 */
typedef struct sim_traces {
    int put_client;
    int64_t put_page;
    int intent_client;
    int64_t edited_value; /* the value that the last edit in a page will write */
    bool editing;         /* that edit is in progress */
} sim_traces_t;

typedef void (*sim_deliver_fn)(sim_world_t *world, const sim_message_t *message,
                               spill_drop_note_t *found, bool *done);
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
    disk_t *disk;         /* the disk of an embedded store */
    bool machine_dies;    /* at the next write */
    bool write_survives;  /* that write still reached the disk */
    /* Hooks of naive versions (naive.h); NULL: the real protocol. */
    sim_execute_fn execute;             /* how the store carries out requests */
    sim_deliver_fn deliver;             /* ... and messages about notes */
    sim_body_fn body;                   /* what a client does */
    void (*adjust)(sim_world_t *world); /* settings that expose the difference */
    void (*finish)(sim_world_t *world); /* its final checks */
    void *naive;                        /* data of the naive version */
    spill_definition_t definition;
    int64_t now_us;
    int64_t calls;

    sim_client_t clients[SIM_CLIENTS_MAX + 1]; /* the last one makes the final checks */
    sim_client_t *running;
    sim_late_t *late;
    size_t late_count, late_capacity;
    bool late_now; /* a late request is being delivered */

    sim_model_t plains[SIM_OWNERS_MAX];
    bool drop_begun[SIM_OWNERS_MAX]; /* a client has called a drop, or a trim that may drop */
    sim_traces_t traces[SIM_OWNERS_MAX];
    sim_ends_t ends[SIM_OWNERS_MAX];
    sim_drops_all_t drops_all;
    int64_t hits[SIM_OWNERS_MAX];    /* the value of the field that appends raise */
    bool corrupted[SIM_OWNERS_MAX];  /* the summary may differ from the elements */
    int corruptions[SIM_OWNERS_MAX]; /* times that the summary was corrupted */
    sim_session_t sessions[SIM_SESSIONS];
    sim_append_t *appends;
    size_t append_count, append_capacity;
    sim_origin_t *origins; /* by value id */
    size_t origin_count, origin_capacity;

    spill_response_t before; /* scratch of observe.c */
    spill_top_t top_before;
    char failure[512]; /* the first failure; "" if none */
};

/* ---- settings.c ------------------------------------------------------------------------------ */

void sim_settings_choose(sim_settings_t *settings, sim_engine_t engine, sim_random_t *random);
/* Turn them into settings of an array with a top, derived from the seed. */
void sim_settings_top(sim_settings_t *settings, uint64_t seed);
/* Turn them into settings of a capped array. */
void sim_settings_cap(sim_settings_t *settings, uint64_t seed);
void sim_settings_print(const sim_settings_t *settings, FILE *file);

/* ---- engine.c ------------------------------------------------------------------------------- */

void sim_engine_open(sim_world_t *world);
void sim_engine_close(sim_world_t *world);
void sim_machine_crash(sim_world_t *world);

/* ---- network.c ------------------------------------------------------------------------------- */

void sim_port_open(sim_client_t *client);
void sim_port_close(sim_client_t *client);

/* Deliver one of the late requests, chosen by chance. At least one exists. */
void sim_deliver_late(sim_world_t *world);
void sim_discard_late(sim_world_t *world);

/*
 * Send a message, which meets the same faults as a request. `found` (may be NULL) and `done`: the
 * answer.
 */
spill_code_t sim_send(sim_client_t *client, const sim_message_t *message, spill_drop_note_t *found,
                      bool *done, spill_error_t *error);

/* Carry a request out on the shared store. */
spill_code_t sim_execute(sim_world_t *world, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error);

/* ---- observe.c ------------------------------------------------------------------------------- */

/* Read the document's present state into response->state; response->seq stays. */
void sim_read_state(sim_world_t *world, const spill_request_t *request, spill_response_t *response);

/* Read the state before a request into world->before. */
void sim_observe_before(sim_world_t *world, const spill_request_t *request);

/* Follow a request of `client` that was carried out or refused. */
void sim_observe(sim_world_t *world, int client, const spill_request_t *request,
                 const spill_response_t *response);

/*
 * Return the owner that a request names. The second function does so for a value made by
 * sim_owner_value.
 */
int sim_owner_of(const spill_request_t *request);
int sim_owner_number(const spill_value_t *value);

/* ---- corrupt.c ------------------------------------------------------------------------------- */

bool sim_is_corrupted(const sim_world_t *world, int owner);
/*
 * Layouts with referenced elements: perhaps corrupt the head's summary without any client's
 * knowledge.
 */
void sim_corrupt(sim_client_t *client, int owner);
/* Perhaps make the count of the owner's removed elements too large. True: it was changed. */
bool sim_miscount(sim_client_t *client, int owner);
/* Note a step on the head: a recount or a drop ends a corruption. */
void sim_observe_corrupted(sim_world_t *world, int owner, const spill_request_t *request);

/* ---- spiller.c ------------------------------------------------------------------------------- */

/* Call it when the client's port is open, and when the client has ended. */
void sim_spiller_open(sim_client_t *client);
void sim_spiller_close(sim_client_t *client);
/* Sometimes perform a spill that an append of the client has left. False: do something else. */
bool sim_spiller_act(sim_client_t *client);

/* ---- rewriting.c ----------------------------------------------------------------------------- */

/* Replace the elements of a head without pages by these. SPILL_REFUSED: it has pages. */
spill_code_t sim_rewrite(sim_client_t *client, const sim_append_t *append,
                         const spill_value_t *elements, const spill_session_op_t *session,
                         spill_append_result_t *result, spill_error_t *error);

/* ---- endings.c ------------------------------------------------------------------------------- */

/* Turn the settings into those of heads that end in these ways, which is often. */
void sim_settings_notes(sim_settings_t *settings);

/* Carry a message out. */
void sim_deliver(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                 bool *done);
const char *sim_message_name(sim_message_kind_t kind);
bool sim_message_reads(sim_message_kind_t kind);

/*
 * Perhaps end the owner's head as the gateway does, or as a program that knows nothing of pages.
 * False: do something else.
 */
bool sim_act_on_head(sim_client_t *client, int owner);

/* Note a request that a client sends, and one that took effect: may this page be deleted? */
void sim_ends_sent(const sim_client_t *client, const spill_request_t *request);
void sim_ends_observe(sim_world_t *world, int client, const spill_request_t *request);

/* The head vanishes, without a request and without a client's statement. */
void sim_ends_vanished(sim_ends_t *ends, const spill_state_t *head);

/* ---- collection_drops.c ---------------------------------------------------------------------- */

/* The incarnations up to which heads are known to have ended with their collection. */
int64_t sim_all_ended(const sim_drops_all_t *all);
void sim_deliver_all(sim_world_t *world, const sim_message_t *message, spill_drop_note_t *found,
                     bool *done);

/* This client, or another program, drops the collection. */
void sim_act_on_collection(sim_client_t *client, int owner);

/*
 * After a repair: no page is left of a head that a client's statement has ended, nor of those up to
 * the incarnation `certain`, whose end was certain before the repair.
 */
void sim_check_ended(sim_world_t *world, sim_client_t *client, int owner, int64_t certain);

/* The operations of spill_store_ops_t of these names, for a client's port. */
spill_code_t sim_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error);
spill_code_t sim_note_drop(spill_store_t *store, const spill_definition_t *definition,
                           const spill_value_t *owner, const spill_drop_note_t *note,
                           spill_error_t *error);
spill_code_t sim_find_drop(spill_store_t *store, const spill_definition_t *definition,
                           const spill_value_t *owner, spill_drop_note_t *note,
                           spill_error_t *error);
spill_code_t sim_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                             const spill_value_t *owner, const spill_drop_note_t *note,
                             spill_error_t *error);

/* ---- sets.c ---------------------------------------------------------------------------------- */

/* Turn the settings into those of an array that keeps each id once. */
void sim_settings_unique(sim_settings_t *settings);
/* After an append: no two elements have one id. */
void sim_observe_unique(sim_world_t *world, int owner);
/* Check the answer to an append, which may have left out elements. */
void sim_check_left_out(sim_client_t *client, const sim_append_t *append,
                        const spill_append_result_t *result, int32_t from);

/* ---- client.c -------------------------------------------------------------------------------- */

/* The body of a client's coroutine. */
void sim_client_run(void *client);

/* Wait for a turn before a public call. False: the client has crashed. */
bool sim_begin_call(sim_client_t *client);

/*
 * Try an append, or retry it, through the client's array, and check the answer. True: the answer is
 * final.
 */
bool sim_client_append(sim_client_t *client, int append);

/* If a client does not trim itself, its appends trim to what the definition keeps. */
sim_trimming_t sim_retention(const sim_world_t *world);

/* Open the array, or reopen it, with the current bounds. */
bool sim_client_open(sim_client_t *client);

/*
 * Export an owner, and check it as a read of all elements, oldest first. An export also reports
 * pages whose head was deleted without a drop.
 */
void sim_client_export(sim_client_t *client, int owner);

/* Record a new append of `count` elements. */
int sim_append_new(sim_client_t *client, int owner, int count, bool has_op);

/* Return values that were never used before. */
int64_t sim_value_new(sim_world_t *world, int owner, int32_t append, int padding);
/* Does a fault explain the error? */
bool sim_failed_by_fault(const sim_client_t *client, spill_code_t code);
spill_value_t sim_value_of(const sim_world_t *world, sim_value_bytes_t *bytes, int64_t id);
spill_value_t sim_owner_value(const sim_world_t *world, int owner);

/* ---- windows.c ------------------------------------------------------------------------------- */

/* Perhaps make an operation on all windows of an owner. False: it made none. */
bool sim_act_on_windows(sim_client_t *client);

/* ---- check.c, check_id.c --------------------------------------------------------------------- */

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
/* Checked only if no other client changes anything meanwhile, or the window has one document. */
void sim_check_statistics(sim_client_t *client, int owner, sim_span_t span,
                          const spill_statistics_t *statistics);
void sim_check_edit(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t seq, int64_t value);
void sim_check_remove(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                      int64_t seq);
/*
 * By id: `seq` is the answer (-1: none), and `what` names the call. Changes are also checked by
 * their number.
 */
void sim_check_id(sim_client_t *client, int owner, sim_span_t span, spill_code_t code, int64_t id,
                  int64_t seq, const char *what);
/*
 * Check that the call removed everything that client->removing matches, or `limit` (0: no limit)
 * elements.
 */
void sim_check_removed_where(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                             int64_t limit, int64_t removed);
/* Check that the element to be removed matched the filter at some version. */
void sim_check_removing(sim_client_t *client, int owner, int64_t seq);
/* Check a trim by count or by time, as client->trimming says. */
void sim_check_trim_to(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                       int64_t below);
/* Check a TRIM of this client that took effect: it removed no more than requested. (check_id.c) */
void sim_check_trimmed(sim_client_t *client, int owner, int32_t before);
void sim_check_trim(sim_client_t *client, int owner, sim_span_t span, spill_code_t code,
                    int64_t below);
/*
 * Layout subset: read the top and check it. At the end of a schedule it must equal that of the
 * plain array. (top.c)
 */
/* Capped, top-N: check what an append dropped. (top_n.c) */
void sim_observe_top_n(sim_world_t *world, int owner, const spill_request_t *request,
                       const spill_response_t *response);

void sim_check_top(sim_client_t *client, int owner, bool at_the_end);
/* Check the head's top after a step on it; world->before is the state before. */
void sim_observe_top(sim_world_t *world, int owner, const spill_request_t *request);
void sim_check_drop(sim_client_t *client, int owner, sim_span_t span, spill_code_t code);

/*
 * Report a finding of the verifier as a failure. Two findings are allowed after an owner was
 * dropped: a drop in progress, and an operation id that occurs twice in the window of the later
 * owner, because it relied on a base of the earlier one.
 */
void sim_check_finding(void *client, const spill_finding_t *finding);

/* ---- schedule.c ------------------------------------------------------------------------------ */

/* Initialize and release a world, which runs schedules one after another. */
void sim_world_init(sim_world_t *world, sim_engine_t engine, sim_coverage_t *coverage);
void sim_world_release(sim_world_t *world);

/* Run the schedule of a seed. False: world->failure has the reason. */
bool sim_schedule_run(sim_world_t *world, uint64_t seed);

/* The parts of a schedule, for tests that script one. */
void sim_schedule_begin(sim_world_t *world);
void sim_schedule_play(sim_world_t *world);
void sim_schedule_end(sim_world_t *world);
void sim_schedule_clear(sim_world_t *world);

/* Called by a client: let other clients run. False: this client has crashed. */
bool sim_turn(sim_client_t *client);

/* Record the first failure. */
void sim_fail(sim_world_t *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(sim_world_t *world, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void sim_saw(sim_world_t *world, sim_event_t event)
{
    world->coverage->seen[event]++;
}

#endif
