/*
 * The interface that every store implements: a table of functions. Nothing above this header knows
 * which database is underneath.
 */
#ifndef SPILL_STORE_STORE_H
#define SPILL_STORE_STORE_H

#include "store/orphan.h"
#include "store/oversized.h"
#include "store/request.h"
#include "store/windows.h"

#include <spillway/store.h>

#include <pthread.h>
#include <stdatomic.h>

/* Kinds of catalog entries: small named documents beside the arrays. */
typedef enum spill_catalog { SPILL_CATALOG_DEFINITION, SPILL_CATALOG_IMPORT } spill_catalog_t;

/* The numbers of a document are [first, end), by all that is known beside its own state. */
typedef struct spill_place {
    int64_t page;
    int64_t first, end;
    int64_t seen_end; /* by its own state, when that was found */
} spill_place_t;

/* A problem that a store finds in its own records (spill_store_ops.check). */
typedef struct spill_store_finding {
    const spill_value_t *owner;
    int64_t page;
    int invariant;
    bool index; /* in an index, which can be made anew from the records (RECOUNT with `indexes`) */
    const spill_place_t *place; /* NULL; or the document's state is wrong, and this is right */
    const char *text;
} spill_store_finding_t;

typedef void (*spill_store_finding_fn)(void *context, const spill_store_finding_t *finding);

/* Numbers that a store gives to a definition and to its heads' collection. */
typedef struct spill_binding {
    uint32_t array_id;
    uint32_t collection_id;
} spill_binding_t;

typedef struct spill_store_ops {
    const char *name; /* "memory", "embedded", "mongodb" */

    /* Does it keep one window of operations for an owner? Then CREATE_PAGE needs no copy of it. */
    bool shared_window;

    /* Do other programs write to its documents, too? */
    bool others_write;

    /* Does it take several appends as one (spill_request.members)? Then those that wait are. */
    bool combines;

    /*
     * One atomic step on one document. An error is not a refusal: after SPILL_UNKNOWN the step may
     * or may not have been, or may yet be, carried out.
     */
    spill_code_t (*call)(spill_store_t *store, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error);

    /*
     * Several requests for pages of one owner at once, `count` > 0 of them, each with a response of
     * its own: all PUT_PAGE, or all READ of a numbered page with the same wishes. What is done, and
     * what an error leaves, is what calls of each of them would, one by one in some order. May be
     * NULL: spill_store_call_all.
     */
    spill_code_t (*call_all)(spill_store_t *store, const spill_request_t *requests, size_t count,
                             spill_response_t *responses, spill_error_t *error);

    /* The numbers of a definition that is saved in the catalog; the same until its array ends. */
    spill_code_t (*bind)(spill_store_t *store, const spill_definition_t *definition,
                         spill_binding_t *binding, spill_error_t *error);

    /*
     * Owners of an array that have a head, in the store's order: up to `limit` (<= 1000) of those
     * after `after`, a place that an earlier call left in `last` (size 0: from the start). `owners`
     * is a BSON array document of their _id values, in order, made where SPILL_OK; empty at the
     * end. Those before one that cannot be read come first, then the error. `last` (cleared first)
     * gets the place of the last one.
     */
    spill_code_t (*owners)(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, const uint8_t *after, size_t after_bytes,
                           size_t limit, bson_t *owners, spill_buffer_t *last,
                           spill_error_t *error);

    /*
     * Owners whose head has to be laid out (spill_oversized_t), in the same order and by the same
     * rules as `owners`; `found` is a BSON array document of documents, to be read by
     * spill_oversized_read.
     */
    spill_code_t (*oversized)(spill_store_t *store, const spill_definition_t *definition,
                              const spill_binding_t *binding, const spill_oversized_query_t *query,
                              bson_t *found, spill_buffer_t *last, spill_error_t *error);

    /*
     * Incarnations that have pages and no head (spill_orphan_t), by the same rules; the order is
     * one of the store's own, an owner's lie side by side, in the order of their incarnations, and
     * all of them come in one call. `found` is a BSON array document of documents, to be read by
     * spill_orphan_read. Pages are looked at first, and then heads. Memory: O(limit).
     */
    spill_code_t (*orphans)(spill_store_t *store, const spill_definition_t *definition,
                            const spill_binding_t *binding, const spill_orphan_query_t *query,
                            bson_t *found, spill_buffer_t *last, spill_error_t *error);

    /*
     * Layout bucket: the texts of an owner's windows that have a head, in the order asked for, as
     * strings of a BSON array document, made where SPILL_OK. Dropped ones of which parts are left
     * may be among them.
     */
    spill_code_t (*windows)(spill_store_t *store, const spill_definition_t *definition,
                            const spill_binding_t *binding, const spill_window_query_t *query,
                            bson_t *texts, spill_error_t *error);

    /*
     * Catalog. get: *document is new (bson_destroy), NULL when there is none. put: `expected`
     * (may be NULL: there must be none) has to equal what is stored, else *done = false. A
     * definition that is not compatible with the one that it replaces ends that one's array (see
     * retire): where an owner has a head, *done = false, too.
     */
    spill_code_t (*catalog_get)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                bson_t **document, spill_error_t *error);
    spill_code_t (*catalog_put)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                const bson_t *expected, const bson_t *document, bool *done,
                                spill_error_t *error);
    spill_code_t (*catalog_delete)(spill_store_t *store, spill_catalog_t kind, const char *name,
                                   spill_error_t *error);
    /* Names in order, as strings of a BSON array document, made where SPILL_OK. */
    spill_code_t (*catalog_names)(spill_store_t *store, spill_catalog_t kind, bson_t *names,
                                  spill_error_t *error);

    /*
     * End a definition's array: the definition goes, and whatever is left of the array. Where an
     * owner has a head, *done = false, and nothing is changed. Nothing is changed either where
     * `binding` is not the definition's any more: it was dropped, and perhaps saved anew. Changes
     * that are asked for with an array_id that has ended fail with SPILL_NOT_FOUND.
     * May be NULL, where documents are found by name: spill_store_retire.
     */
    spill_code_t (*retire)(spill_store_t *store, const spill_definition_t *definition,
                           const spill_binding_t *binding, bool *done, spill_error_t *error);

    /* Records of one owner that belong to no document, or that cannot be read. May be NULL. */
    spill_code_t (*check)(spill_store_t *store, const spill_binding_t *binding,
                          const spill_definition_t *definition, const spill_value_t *owner,
                          spill_store_finding_fn report, void *context, spill_error_t *error);

    /*
     * Is `other`, which has the same ops and may be written to, this store under another name? A
     * copy of a store is another one. May be NULL: no. See spill_store_same.
     */
    spill_code_t (*same)(spill_store_t *store, spill_store_t *other, bool *same,
                         spill_error_t *error);

    /* May be NULL: as spill_store_damage. */
    const char *(*damage)(const spill_store_t *store);

    /* May be NULL: the store has no backup of its own. */
    spill_code_t (*backup)(spill_store_t *store, const char *folder, spill_error_t *error);
    spill_code_t (*close)(spill_store_t *store, spill_error_t *error); /* frees `store` */
} spill_store_ops_t;

/* Counters are atomics of their own so that threads may raise them without a lock. */
typedef struct spill_counts {
    atomic_llong calls, appends, elements, repeats, spills, retries, waits, commits, syncs;
    atomic_llong bytes_written, bytes_read;
} spill_counts_t;

/* The head of every store's own struct. */
struct spill_store {
    const spill_store_ops_t *ops;
    spill_store_options_t options; /* clock filled in with the real one where it was NULL */
    spill_counts_t counts;
    char *uri;
    bool reads_copies;        /* may what is read be older than what was written? (may_be_old) */
    pthread_mutex_t defining; /* held while a definition is compared with the others and saved */
    /*
     * Documents that are taken over and cut at once (layout/full.c): how long after the look at one
     * that may be, how long after that its pages are kept all the same, and how many bytes have to
     * become free. Tests have their own.
     */
    int64_t adopt_us;
    int64_t margin_us;
    int64_t adopt_room;
    const atomic_bool *stop; /* borrowed; NULL: none. Long work ends soon once it is true */
};

/* What they are: a minute, three, and some bytes more than ADOPT_SPLIT adds. */
#define SPILL_ADOPT_US ((int64_t)60 * 1000000)
#define SPILL_MARGIN_US ((int64_t)180 * 1000000)
#define SPILL_ADOPT_ROOM 1024

/* Fill the common part. spill_store_base_release frees what it owns (not the store). */
void spill_store_base_init(spill_store_t *store, const spill_store_ops_t *ops, const char *uri,
                           const spill_store_options_t *options);
void spill_store_base_release(spill_store_t *store);

/* Was the work on this store asked to end? */
bool spill_store_stopped(const spill_store_t *store);

/* printf to the log callback. */
void spill_store_log(spill_store_t *store, spill_log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ops->call, counted: calls, appends and their elements, spills. */
spill_code_t spill_store_call(spill_store_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error);

/* ops->call_all, counted as one call; where there is none, calls one by one, up to an error. */
spill_code_t spill_store_call_all(spill_store_t *store, const spill_request_t *requests,
                                  size_t count, spill_response_t *responses, spill_error_t *error);

/* ops->retire; where there is none the definition alone goes. */
spill_code_t spill_store_retire(spill_store_t *store, const spill_definition_t *definition,
                                const spill_binding_t *binding, bool *done, spill_error_t *error);

/*
 * Is what is written to `other` written to `store`, too? On a server that takes three operations:
 * a mark is left in `other`, looked for in `store`, and removed.
 */
spill_code_t spill_store_same(spill_store_t *store, spill_store_t *other, bool *same,
                              spill_error_t *error);

/* What a request is told whose array has ended. */
spill_code_t spill_store_ended(spill_error_t *error);

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
