/*
 * The interface that every store implements: a table of functions. Code above this header does not
 * depend on the database.
 *
 * The folder's files, in the order to read:
 *   state.c             a document in memory: elements, operation ids and limits (content.h), state
 *   sum.c, top.c        what a document shows of its elements (summary.h)
 *   request.c           the steps, as plain structs
 *   slice.c             the elements that a caller of the library gets
 *   session_entry.c     what a head has of a session, and what it says about an operation
 *   session_document.c  such an entry as a server's head has it
 *   refusal.c           why an append is refused
 *   transition.c        guard and effect of each step; step_top.c for tops and top-N capped heads
 *   render.c            a document as a document database stores it, and its size
 *   unmanaged.c         arrays that programs without Spillway write
 *   renumber.c          the update of a program that gives all elements of a head new numbers
 *   server_code.c       the error codes of servers
 *   listing.c           lists of owners, windows and pages, read in batches
 *   store.c             calls of a store's table; store_open.c opens a store by its URI
 *   timed.c             steps of threads with a deadline; timed_steps.c, timed_list.c: the kinds
 *   job.c               job checkpoints
 *   raw_reader.h        an application's own collections on a server; raw_admin.h changes them
 */
#ifndef SPILL_STORE_STORE_H
#define SPILL_STORE_STORE_H

#include "store/drop_note.h"
#include "store/listing.h"
#include "store/request.h"
#include "util/error.h"
#include "util/fork.h"

#include <spillway/store.h>

#include <pthread.h>
#include <stdatomic.h>

/* Kinds of catalog entries, which are small named documents. */
typedef enum spill_catalog { SPILL_CATALOG_DEFINITION, SPILL_CATALOG_JOB } spill_catalog_t;

/*
 * While the catalog has a job with a definition's name and this suffix, a migration copies elements
 * to the definition (core/building.h).
 */
#define SPILL_CATALOG_BUILDING ":migrate"

/* The numbers [first, end) that a document must have, according to everything but its own state. */
typedef struct spill_number_range {
    int64_t page;
    int64_t first, end;
    int64_t seen_end; /* the end by its own state, when the problem was found */
} spill_number_range_t;

/* A problem that a store finds in its own records (spill_store_ops.check). */
typedef struct spill_store_finding {
    const spill_value_t *owner;
    int64_t page;
    int invariant;
    bool index; /* in an index, which RECOUNT with `indexes` rebuilds from the records */
    const spill_number_range_t
        *range; /* NULL; or the right numbers, if the document's state is wrong */
    const char *text;
} spill_store_finding_t;

typedef void (*spill_store_finding_fn)(void *context, const spill_store_finding_t *finding);

/* Numbers that a store gives to a definition and to its heads' collection. */
typedef struct spill_binding {
    uint32_t array_id;
    uint32_t collection_id;
} spill_binding_t;

/*
 * A read of the newest elements of a head, to which appends go: of the numbers in [lower, upper],
 * at most `limit`, the newest first. The key is borrowed.
 */
typedef struct spill_recall {
    uint32_t array_id;
    const uint8_t *key; /* owner key (bson/key.h) */
    size_t key_bytes;
    int64_t lower, upper;
    int64_t limit; /* at least 1 */
} spill_recall_t;

/* What the catalog has of an array. Documents are owned, or NULL if there is no such entry. */
typedef struct spill_entries {
    bson_t *definition;
    bson_t *import;
    spill_binding_t binding; /* if `bound` */
    bool bound;
} spill_entries_t;

/* Add items that `query` asks for to the empty listing. On an error its content does not matter. */
typedef spill_code_t spill_list_fn(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, const spill_list_query_t *query,
                                   spill_listing_t *listing, spill_error_t *error);

enum { SPILL_DEFINITIONS_CHANGE = -1 };

typedef struct spill_store_ops {
    const char *name; /* "memory", "embedded", "mongodb" */

    /* One window of operations for all documents of an owner: CREATE_PAGE needs no copy of it. */
    bool shared_window;

    /* Other programs write to its documents, too. */
    bool others_write;

    /* It accepts several appends in one request (append.members): waiting ones are joined. */
    bool combines;

    /* It has an index of all ids of an array, so an append needs no search (searched.by_store). */
    bool checks_ids;

    /*
     * Its steps call spill_timed_begin themselves. Otherwise a step with a deadline begins as soon
     * as await_ready returns.
     */
    bool begins_steps;

    /* A spill costs round trips: appends leave it to a thread of the store (layout/spiller.h). */
    bool defers_spills;

    /*
     * Carry out one atomic step on one document. An error is not a refusal: after SPILL_UNKNOWN the
     * step may have been carried out, may still be carried out later, or not at all.
     */
    spill_code_t (*call)(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error);

    /*
     * Answer a READ of a head towards older elements from memory, as a slice for the caller. It
     * shows what `call` would show at this moment. NULL: the memory lacks a part of it. Such a
     * call costs little beside `call`. NULL in stores without such a memory.
     */
    spill_slice_t *(*recall)(spill_store_t *store, const spill_recall_t *recall);

    /*
     * Carry out `count` > 0 requests for pages of one owner, each with its own response. All are
     * PUT_PAGE, which may be of several owners of one definition, or all are READ of a numbered
     * page and want the same things, or all are EMPTY_PAGE or all DROP_PAGE, with keep newest. The
     * effect, also of an error, is that of one call for each request: of the last two kinds in
     * their order, of the others in some order. May be NULL; see spill_store_call_all.
     */
    spill_code_t (*call_all)(spill_store_t *store, const spill_request_t *requests, size_t count,
                             spill_response_t *responses, spill_error_t *error);

    /*
     * Carry out `count` > 0 APPENDs to heads of different owners, each with its own response, in
     * one atomic write. After an error except SPILL_UNKNOWN none was carried out. NULL: the store
     * cannot.
     */
    spill_code_t (*call_many)(spill_store_t *store, const spill_request_t *requests, size_t count,
                              spill_response_t *responses, spill_error_t *error);

    /*
     * Make the update by which a caller with a connection of its own carries out an APPEND to an
     * existing head: `filter` and `update`, which are initialized if the result is true. False: one
     * update is not enough, or it would make a spill due. An update that finds no document has
     * changed nothing: then call `call`. Make the next one for the owner after its end. The counts
     * do not have it. NULL: the store has no such updates.
     */
    bool (*make_push)(spill_store_t *store, const spill_request_t *append, bson_t *filter,
                      bson_t *update);

    /*
     * Carry out `count` > 0 APPENDs that make heads of different owners of one definition, each by
     * itself. An owner that has a head, or an unmanaged array, is not changed; the answer does not
     * show which. After an error any of them may have been carried out, or may still be. NULL: the
     * store has call_many, or cannot.
     */
    spill_code_t (*make_heads)(spill_store_t *store, const spill_request_t *requests, size_t count,
                               spill_error_t *error);

    /*
     * Carry out `count` > 0 CUTs without a run, of heads of different owners of one definition,
     * each by itself. The answer does not show which of them were carried out. After an error any
     * of them may have been carried out, or may still be. NULL: the store has call_many, or cannot.
     */
    spill_code_t (*cut_heads)(spill_store_t *store, const spill_request_t *requests, size_t count,
                              spill_error_t *error);

    /*
     * The calling thread will READ the heads of these owners, with read.ahead: as if a listing had
     * returned them now. NULL: the store has no use for that.
     */
    void (*expect)(spill_store_t *store, const spill_definition_t *definition,
                   const spill_listing_t *owners);

    /*
     * Layout bucket: add the windows of several owners to the empty listing, as items that name
     * them (spill_bucket_name), in any order, at most `limit`. *all: there are no more. NULL: list
     * the windows of one owner after another.
     */
    spill_code_t (*windows_of)(spill_store_t *store, const spill_definition_t *definition,
                               const spill_listing_t *owners, size_t limit,
                               spill_listing_t *windows, bool *all, spill_error_t *error);

    /* The numbers of a definition in the catalog. They stay the same until its array ends. */
    spill_code_t (*bind)(spill_store_t *store, const spill_definition_t *definition,
                         spill_binding_t *binding, spill_error_t *error);

    /* List the next batch of items (store/listing.h), by kind. Call it through spill_store_list. */
    spill_list_fn *list[SPILL_LISTS];

    /*
     * Catalog. get: *document is new (bson_destroy), or NULL if there is no entry. put: if
     * `expected` (NULL: no entry) does not equal the stored entry, *done = false. A NULL `document`
     * deletes the entry. If a definition is not compatible with the one that it replaces, the old
     * array ends (see retire); *done = false if an owner has a head.
     */
    spill_code_t (*catalog_get)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                bson_t **document, spill_error_t *error);
    spill_code_t (*catalog_put)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                const bson_t *expected, const bson_t *document, bool *done,
                                spill_error_t *error);
    spill_code_t (*catalog_delete)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                   spill_error_t *error);
    /* All names, in order, as texts. `names` is cleared first. */
    spill_code_t (*catalog_names)(spill_store_t *store, spill_catalog_t kind,
                                  spill_listing_t *names, spill_error_t *error);

    /* As catalog_get of two jobs, by one command. NULL: call catalog_get twice. */
    spill_code_t (*jobs_get)(spill_store_t *store, const char *const names[2], bson_t *documents[2],
                             spill_error_t *error);

    /*
     * Make the indexes of a definition's pages that do not exist yet. A put of a definition makes
     * them, with one exception: if the definition is being built (SPILL_CATALOG_BUILDING), the put
     * leaves those for applications' queries and for ranks to this call, which makes them faster
     * after the copy. NULL: the store has no such indexes. Cost: one command for each index.
     */
    spill_code_t (*make_indexes)(spill_store_t *store, const spill_definition_t *definition,
                                 spill_error_t *error);

    /*
     * The names of all definitions with heads or pages in one of the definition's collections, and
     * of all that cannot be read; others may be among them. `names` is cleared first. Cost: does
     * not grow with the number of other definitions. May be NULL; see
     * spill_store_definitions_beside.
     */
    spill_code_t (*definitions_beside)(spill_store_t *store, const spill_definition_t *definition,
                                       spill_listing_t *names, spill_error_t *error);

    /*
     * The version of the store's definitions. An unchanged version means unchanged definitions. A
     * caller that reads the version first and then the definitions sees all changes up to it.
     * SPILL_DEFINITIONS_CHANGE: a change is being written. NULL: other clients or programs change
     * definitions, too.
     */
    int64_t (*definitions_version)(spill_store_t *store);

    /*
     * What spill_array_open needs, by one command: the definition's entry, the import's entry
     * `import`, and the definition's numbers. May be NULL; see spill_store_open_entries.
     */
    spill_code_t (*open)(spill_store_t *store, const char *name, const char *import,
                         spill_entries_t *entries, spill_error_t *error);

    /*
     * End a definition's array: delete the definition and the rest of the array. If an owner has a
     * head, set *done = false and change nothing. Also change nothing if `binding` is no longer the
     * definition's, because another client has dropped it and perhaps saved it again. Later
     * requests with the array_id of an ended array fail with SPILL_NOT_FOUND. May be NULL if
     * documents are found by name; see spill_store_retire.
     */
    spill_code_t (*retire)(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, bool *done, spill_error_t *error);

    /* Report records of one owner that no document has, or that cannot be read. May be NULL. */
    spill_code_t (*check)(spill_store_t *store, const spill_binding_t *binding,
                          const spill_definition_t *definition, const spill_value_t *owner,
                          spill_store_finding_fn report, void *context, spill_error_t *error);

    /*
     * Is `other`, which has the same ops and may be written to, this store under another name? A
     * copy of a store is a different store. NULL means no. See spill_store_same.
     */
    spill_code_t (*same)(spill_store_t *store, spill_store_t *other, bool *same,
                         spill_error_t *error);

    /* See spill_store_damage. May be NULL. */
    const char *(*damage)(const spill_store_t *store);

    /* SPILL_CORRUPT: the file by which writers recognize the store was overwritten. May be NULL. */
    spill_code_t (*check_label)(const spill_store_t *store, spill_error_t *error);

    /*
     * A caller deletes documents of heads by other means than DROP_HEAD: later incarnations will be
     * above `rev`, the head's. Call it before. NULL: such a store has no other means.
     */
    spill_code_t (*head_ends)(spill_store_t *store, int64_t rev, spill_error_t *error);

    /*
     * Notes of drops, for stores that have head_ends (store/drop_note.h). The store keeps one for
     * an owner. note_drop with a `rev` raises its incarnation and rev: call it before the head is
     * deleted. With SPILL_DROP_IS_CERTAIN it raises `ended`: call it when the head is deleted.
     * find_drop: numbers are 0 if there is none. All are NULL in other stores.
     */
    spill_code_t (*note_drop)(spill_store_t *store, const spill_definition_t *definition,
                              const spill_value_t *owner, const spill_drop_note_t *note,
                              spill_error_t *error);
    spill_code_t (*find_drop)(spill_store_t *store, const spill_definition_t *definition,
                              const spill_value_t *owner, spill_drop_note_t *note,
                              spill_error_t *error);
    /*
     * The same for all heads of a definition, whose collection is dropped. In find_drop, `ended`
     * considers these notes as well. They stay: later heads have later incarnations.
     */
    spill_code_t (*note_drop_all)(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_drop_all_t *drop, spill_drop_stage_t stage,
                                  spill_error_t *error);
    /*
     * With SPILL_DROP_IS_CERTAIN: the pages up to this incarnation are deleted; forget the note if
     * it names no later one and, without `at_once`, has stayed for its time. With another `rev`:
     * the head lives on; forget what was announced for this incarnation or an earlier one, at this
     * rev or a lower one. Another client may be about to end the head at a later rev.
     */
    spill_code_t (*forget_drop)(spill_store_t *store, const spill_definition_t *definition,
                                const spill_value_t *owner, const spill_drop_note_t *note,
                                spill_error_t *error);
    /* The definition is dropped: forget the notes of all owners. */
    spill_code_t (*forget_drops)(spill_store_t *store, const spill_definition_t *definition,
                                 spill_error_t *error);
    /* Add up to SPILL_DROP_NOTES_LISTED owners whose notes have stayed for their time. */
    spill_code_t (*old_drops)(spill_store_t *store, const spill_definition_t *definition,
                              spill_listing_t *owners, spill_error_t *error);

    /*
     * The store's clock, in microseconds since 1970: the one of READ with want_now. NULL: that of
     * the options. Call it through spill_store_now.
     */
    spill_code_t (*now)(spill_store_t *store, int64_t *now_us, spill_error_t *error);

    /* Wait until a step can be sent. NULL: it always can. */
    spill_code_t (*await_ready)(spill_store_t *store, spill_error_t *error);

    /* May be NULL, if the store has no backup function. */
    spill_code_t (*backup)(spill_store_t *store, const char *folder, spill_error_t *error);
    spill_code_t (*close)(spill_store_t *store, spill_error_t *error); /* frees `store` */
} spill_store_ops_t;

/* Each counter is atomic: threads raise them without a lock. */
typedef struct spill_counts {
    atomic_llong calls, appends, elements, repeats, spills, retries, waits, commits, syncs;
    atomic_llong bytes_written, bytes_read;
    atomic_llong tail_hits, tail_misses, tail_bytes;
} spill_counts_t;

struct spill_owner;                           /* layout/owner.h */
typedef struct spill_spiller spill_spiller_t; /* layout/spiller.c */

/* The head of every store's own struct. */
struct spill_store {
    const spill_store_ops_t *ops;
    spill_store_options_t options; /* the clock is never NULL here */
    spill_counts_t counts;
    char *uri;
    spill_maker_t maker;      /* which opened it */
    atomic_llong arrays;      /* open ones (spill_array_open) */
    bool reads_copies;        /* a READ with may_be_old may miss the last writes */
    pthread_mutex_t defining; /* held while a definition is compared with the others and saved */
    /*
     * ADOPT_SPLIT (layout/full.c): the time that it has after the document was read; how much
     * longer its pages stay leased; and the bytes that it must free. Tests set other values.
     */
    int64_t adopt_us;
    int64_t margin_us;
    int64_t adopt_room;
    int64_t adopter_us; /* how long a client may adopt arrays after it asked (layout/adoption.h) */
    const atomic_bool *stop; /* borrowed; or NULL. When it is true, long work stops soon */
    /*
     * A walk over the owners of an array (core/owners.c) calls this after each owner, with the
     * number of owners so far. NULL: nobody watches.
     */
    void (*walked)(void *context, spill_array_t *array, int64_t owners);
    void *walk_context;
    /*
     * Promise to spill the owner's head later. May move the content of `head`, the answer to the
     * append. False: the caller spills it now. NULL: every append performs the spill that it makes
     * due. Simulations set their own.
     */
    bool (*defer_spill)(const struct spill_owner *owner, spill_response_t *head);
    /*
     * With less room in a head beyond the point where a spill is due, the spill is not deferred:
     * the next appends would have to wait for it. Tests set other values.
     */
    int64_t defer_room;
    pthread_mutex_t timed_lock; /* guards the number of steps that timed.c carries out */
    pthread_cond_t timed_changed;
    size_t timed_running;
    spill_spiller_t *spiller;                        /* of defer_spill; or NULL */
    void (*close_spiller)(spill_spiller_t *spiller); /* spill_store_close calls it first */
};

/*
 * Their values: one minute, ten seconds, three minutes, a bit more than ADOPT_SPLIT adds to a
 * document, slots.
 */
#define SPILL_ADOPT_US ((int64_t)60 * 1000000)
#define SPILL_ADOPTER_US ((int64_t)10 * 1000000)
#define SPILL_MARGIN_US ((int64_t)180 * 1000000)
#define SPILL_ADOPT_ROOM 1024
#define SPILL_DEFER_ROOM 14 /* a page of 104 elements or more */

/* Fill the common part. spill_store_base_release frees what it owns (not the store). */
void spill_store_base_init(spill_store_t *store, const spill_store_ops_t *ops, const char *uri,
                           const spill_store_options_t *options);
void spill_store_base_release(spill_store_t *store);

/*
 * Does this APPEND leave a spill that it makes due to another thread? The store needs defer_spill,
 * and the head the room of defer_room.
 */
bool spill_store_defers(const spill_store_t *store, const spill_request_t *append);

/* Was the work on this store asked to stop? */
bool spill_store_stopped(const spill_store_t *store);

/*
 * Fail in a child of the process that opened the store: SPILL_INVALID. The child has neither the
 * threads of the store nor the memory that the parent shares, and both processes would write to the
 * same files or sockets. Public functions call it before they use the store or one of its locks.
 */
spill_code_t spill_store_forked(const spill_store_t *store, spill_error_t *error);

static inline spill_code_t spill_store_check_process(const spill_store_t *store,
                                                     spill_error_t *error)
{
    return spill_maker_is_current(&store->maker) ? SPILL_OK : spill_store_forked(store, error);
}

/*
 * SPILL_CHECK_POINTERS at the start of a public function on a store, or on an array, and
 * spill_store_check_process.
 */
#define SPILL_CHECK_STORE(error, store, ...)                                                       \
    do {                                                                                           \
        SPILL_CHECK_POINTERS(error, store, __VA_ARGS__);                                           \
        SPILL_TRY(spill_store_check_process(store, error));                                        \
    } while (0)
#define SPILL_CHECK_ARRAY(error, array, ...)                                                       \
    do {                                                                                           \
        SPILL_CHECK_POINTERS(error, array, __VA_ARGS__);                                           \
        SPILL_TRY(spill_store_check_process((array)->store, error));                               \
    } while (0)

/* printf to the log callback. */
void spill_store_log(spill_store_t *store, spill_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ops->call, counted: calls, appends and their elements, spills. */
spill_code_t spill_store_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);

/*
 * ops->recall, counted as one call if it answers. NULL: use spill_store_call. Threads with a
 * deadline always do.
 */
spill_slice_t *spill_store_recall(spill_store_t *store, const spill_recall_t *recall);

/* ops->call_all, counted as one call. If it is NULL: one call for each request, up to an error. */
spill_code_t spill_store_call_all(spill_store_t *store, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error);

/* ops->call_many, which is not NULL, counted as one call. */
spill_code_t spill_store_call_many(spill_store_t *store, const spill_request_t *requests,
                                   size_t count, spill_response_t *responses, spill_error_t *error);

/* ops->now. If it is NULL: the clock of the options. */
spill_code_t spill_store_now(spill_store_t *store, int64_t *now_us, spill_error_t *error);

/* ops->definitions_beside. If it is NULL, the names of all definitions. */
spill_code_t spill_store_definitions_beside(spill_store_t *store,
                                            const spill_definition_t *definition,
                                            spill_listing_t *names, spill_error_t *error);

/* ops->make_heads, counted as one call; ops->call_many in stores that have it; else nothing. */
spill_code_t spill_store_make_heads(spill_store_t *store, const spill_request_t *requests,
                                    size_t count, spill_error_t *error);

/* The same for ops->cut_heads. */
spill_code_t spill_store_cut_heads(spill_store_t *store, const spill_request_t *requests,
                                   size_t count, spill_error_t *error);

/* ops->head_ends, note_drop, find_drop and forget_drop, which are not NULL. */
spill_code_t spill_store_head_ends(spill_store_t *store, int64_t rev, spill_error_t *error);
spill_code_t spill_store_note_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, const spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_store_find_drop(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_value_t *owner, spill_drop_note_t *note,
                                   spill_error_t *error);
spill_code_t spill_store_forget_drop(spill_store_t *store, const spill_definition_t *definition,
                                     const spill_value_t *owner, const spill_drop_note_t *note,
                                     spill_error_t *error);

/* ops->open. If it is NULL, catalog_get of both, without the numbers. Release in every case. */
spill_code_t spill_store_open_entries(spill_store_t *store, const char *name, const char *import,
                                      spill_entries_t *entries, spill_error_t *error);
void spill_entries_release(spill_entries_t *entries);

/* ops->jobs_get. The documents are new (bson_destroy), or NULL; both also after an error. */
spill_code_t spill_store_jobs_get(spill_store_t *store, const char *const names[2],
                                  bson_t *documents[2], spill_error_t *error);

/* ops->make_indexes. */
spill_code_t spill_store_make_indexes(spill_store_t *store, const spill_definition_t *definition,
                                      spill_error_t *error);

/* ops->retire. If it is NULL, delete only the definition. */
spill_code_t spill_store_retire(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, bool *done, spill_error_t *error);

/*
 * Do writes to `other` reach `store`? On a server that takes three operations: write a marker to
 * `other`, look it up in `store`, and delete it.
 */
spill_code_t spill_store_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error);

/* The error of a request for an array that has ended. */
spill_code_t spill_store_ended(spill_error_t *error);

/* SPILL_INVALID: an option is out of range, or of another version. */
spill_code_t spill_store_options_check(const spill_store_options_t *options, spill_error_t *error);

/* Constructors. */
spill_code_t spill_memory_open(const char *uri, const spill_store_options_t *options,
                               spill_store_t **store, spill_error_t *error);
spill_code_t spill_embedded_open(const char *path, const spill_store_options_t *options,
                                 spill_store_t **store, spill_error_t *error);
spill_code_t spill_embedded_cut_log(const char *folder, bool look_only, spill_log_loss_fn report,
                                    void *context, spill_log_cut_t *cut, spill_error_t *error);
spill_code_t spill_mongo_open(const char *uri, const spill_store_options_t *options,
                              spill_store_t **store, spill_error_t *error);

#endif
