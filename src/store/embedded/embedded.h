/*
 * The embedded store: documents as records of an ordered key-value engine
 * (docs/internals/format.md).
 *
 *   embedded.c   opening, closing, the table of functions
 *   read.c       READ: straight from the engine, on the caller's thread
 *   change.c     every other request: decides, on the combiner's leader
 *   effect.c     ... and makes records of what was decided
 *   fields.c     the heads' other fields
 *   catalog.c    definitions and imports
 *   numbers.c    the numbers that definitions are given
 *   system_records.c   the records of both
 *   owners.c     listing owners; deleting what is left of an array
 *   embedded_oversized.c  ... those whose head is to be laid out
 *   orphans.c    ... those that have pages and no head
 *   check.h      what the records themselves show to be wrong
 *   reindex.c    indexes made anew
 *   format.c     the format's version
 *   backup.c     a copy
 *   pinned.c     the files that a reader holds open
 *   engine_files.cpp  ... read by the engine
 *   engine_guard.cpp  the engine's exceptions as errors
 *   log_check.h  can the engine's logs be read to their end?
 *   log_cut.c    repair of a log that cannot
 */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_H

#include "store/embedded/combiner.h"
#include "store/embedded/folder.h"
#include "store/embedded/head_cache.h"
#include "store/embedded/keys.h"
#include "store/store.h"
#include "store/transition.h"

#define SPILL_FORMAT_VERSION 2

typedef struct spill_embedded {
    spill_store_t base;
    spill_kv_t *kv;
    char *folder; /* NULL: not on disk */
    spill_folder_lock_t lock;
    spill_combiner_t combiner;
    /* The arrays that are defined here. Only the combiner's leader looks at them. */
    spill_binding_t *bindings;
    size_t binding_count;
    spill_head_cache_t heads; /* the leader's, too */
    int64_t dropped_rev;      /* the highest that a dropped head had; the leader's, too */
} spill_embedded_t;

/* A store on an engine that is open. The engine becomes the store's, also after an error. */
spill_code_t spill_embedded_open_kv(spill_kv_t *kv, const char *uri,
                                    const spill_store_options_t *options, spill_store_t **store,
                                    spill_error_t *error);

/* ---- records --------------------------------------------------------------------------------- */

/* Read a record, from the batch where it is in there. `batch` may be NULL. */
spill_code_t spill_embedded_get(spill_embedded_t *store, const spill_batch_t *batch,
                                const uint8_t *key, size_t key_bytes, spill_buffer_t *value,
                                bool *found, spill_error_t *error);

/*
 * Read the state of the head or of a page; absent where there is no record. With a batch the caller
 * is the combiner's leader.
 */
spill_code_t spill_embedded_get_state(spill_embedded_t *store, const spill_batch_t *batch,
                                      const spill_request_t *request, spill_record_key_t *key,
                                      int64_t page, spill_state_t *state, spill_error_t *error);

/* Write a state record; the key is that of the document. */
void spill_embedded_put_state(spill_embedded_t *store, const spill_record_key_t *key, bool head,
                              const spill_state_t *state, spill_batch_t *batch);

/* SPILL_CORRUPT, with the place as below. */
spill_code_t spill_embedded_corrupt(const spill_embedded_t *store, const spill_request_t *request,
                                    int64_t page, spill_error_t *error, const char *what);

/*
 * Put the document before an error where it is another than the one asked for. Owner, array and
 * the document that was asked for are named by the caller of the store.
 */
spill_code_t spill_embedded_place(const spill_request_t *request, int64_t page, spill_code_t code,
                                  spill_error_t *error);

/* Move to the first record behind all of the owner's, whatever kinds these have. (owners.c) */
void spill_embedded_pass_owner(spill_kv_iter_t *iter, spill_record_key_t *owner);

/* Set the key of a document's state record. */
void spill_embedded_state_key(spill_record_key_t *key, int64_t page);

/* ---- change.c and effect.c ------------------------------------------------------------------- */

/* A request that is being decided. */
typedef struct spill_change_call {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_response_t *response;
} spill_change_call_t;

/* What a decision was based on, for the effect to start from. */
typedef struct spill_before {
    bool present;
    int64_t incarnation;
    int64_t first;
    int64_t end;
    bool shared;    /* a page that is not cut yet: its elements are the head's */
    bool left_over; /* a page of an incarnation whose head is gone, perhaps with its elements */
    bool is_view;   /* PUT_PAGE: the elements are there, as the head's */
    const bson_t *fields;         /* the head's other fields as they will be; NULL: not touched */
    spill_value_t element;        /* EDIT, REMOVE, DELETE: element request->seq */
    const spill_top_t *elements;  /* where spill_needs_journal: the document's */
    const spill_seqs_t *deleted;  /* numbers that it had not, where there may be many; or NULL */
    const spill_run_t *unmanaged; /* ADOPT: the elements that become the head's; else NULL */
} spill_before_t;

spill_code_t spill_embedded_decide(void *context, spill_batch_t *batch, spill_error_t *error);

/* Records of an effect that is DONE; `state` is the document after it. */
spill_code_t spill_embedded_carry_out(spill_embedded_t *store, const spill_request_t *request,
                                      const spill_before_t *before, const spill_effect_t *effect,
                                      const spill_state_t *state, spill_record_key_t *key,
                                      spill_batch_t *batch, spill_error_t *error);

/* ---- fields.c: the head's other fields, which the arrays of a collection share ----------------
 */

/* What is there, or {_id}; *fields is the caller's. */
spill_code_t spill_embedded_get_fields(spill_embedded_t *store, const spill_batch_t *batch,
                                       const spill_request_t *request, bson_t **fields,
                                       spill_error_t *error);
/* The size of the document that is there. *bytes: 0 if there is none, or if it cannot be read. */
spill_code_t spill_embedded_get_fields_bytes(spill_embedded_t *store,
                                             const spill_request_t *request, int64_t *bytes,
                                             spill_error_t *error);

/* Write them, and their size into the heads of the collection's other arrays. */
spill_code_t spill_embedded_put_fields(spill_embedded_t *store, const spill_request_t *request,
                                       const bson_t *fields, spill_batch_t *batch,
                                       spill_error_t *error);

/* After a head was dropped: delete them if only _id is left and no other array has a head. */
spill_code_t spill_embedded_drop_fields(spill_embedded_t *store, const spill_request_t *request,
                                        spill_batch_t *batch, spill_error_t *error);

/*
 * Call a function for each record of other fields in a collection, in the order of owners, behind
 * the owner key `after` (no bytes: all), until it fails or says that there is to be no more. The
 * iterator stands at the record: 4 bytes, then the owner's key.
 */
typedef spill_code_t (*spill_fields_fn)(void *context, const spill_kv_iter_t *iter, bool *more,
                                        spill_error_t *error);
spill_code_t spill_embedded_each_fields(spill_embedded_t *store, uint32_t collection_id,
                                        const uint8_t *after, size_t after_bytes,
                                        spill_fields_fn call, void *context, spill_error_t *error);

/* ---- the other functions of the table -------------------------------------------------------- */

spill_code_t spill_embedded_read(spill_embedded_t *store, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error);

spill_code_t spill_embedded_bind(spill_store_t *store, const spill_definition_t *definition,
                                 spill_binding_t *binding, spill_error_t *error);
spill_code_t spill_embedded_catalog_get(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, bson_t **document, spill_error_t *error);
spill_code_t spill_embedded_catalog_put(spill_store_t *store, spill_catalog_t kind,
                                        const char *name, const bson_t *expected,
                                        const bson_t *document, bool *done, spill_error_t *error);
spill_code_t spill_embedded_catalog_delete(spill_store_t *store, spill_catalog_t kind,
                                           const char *name, spill_error_t *error);
spill_code_t spill_embedded_catalog_names(spill_store_t *store, spill_catalog_t kind, bson_t *names,
                                          spill_error_t *error);

spill_code_t spill_embedded_retire(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, bool *done,
                                   spill_error_t *error);

/* Is this the number of an array that is defined? Asked by the combiner's leader. */
bool spill_embedded_has_array(const spill_embedded_t *store, uint32_t array_id);

/* Fill store->bindings from what is saved. */
spill_code_t spill_embedded_load_bindings(spill_embedded_t *store, spill_error_t *error);

spill_code_t spill_embedded_owners(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, const uint8_t *after,
                                   size_t after_bytes, size_t limit, bson_t *owners,
                                   spill_buffer_t *last, spill_error_t *error);

spill_code_t spill_embedded_oversized(spill_store_t *store, const spill_definition_t *definition,
                                      const spill_binding_t *binding,
                                      const spill_oversized_query_t *query, bson_t *found,
                                      spill_buffer_t *last, spill_error_t *error);

spill_code_t spill_embedded_orphans(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_orphan_query_t *query, bson_t *found,
                                    spill_buffer_t *last, spill_error_t *error);

spill_code_t spill_embedded_windows(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_window_query_t *query, bson_t *texts,
                                    spill_error_t *error);

/*
 * Delete every record of an array's owners, unless one of them has a head (*deleted = false, and
 * the batch is as it was). For the combiner's leader, with a batch of its own. (owners.c)
 * Cost: one step for each owner of which something is left.
 */
spill_code_t spill_embedded_delete_array(spill_embedded_t *store, spill_batch_t *batch,
                                         uint32_t array_id, bool *deleted, spill_error_t *error);

/*
 * Entries of the owner's pages, and of ids and ranks of all its elements, as they are to be. `key`
 * is one of the owner's. It reads all of these. (reindex.c)
 */
spill_code_t spill_embedded_reindex(spill_embedded_t *store, const spill_request_t *request,
                                    const spill_record_key_t *key, spill_batch_t *batch,
                                    spill_error_t *error);

/*
 * Layout bucket: the entry that an element with this id (as a key) has in the index over all of the
 * windows of its owner. False: it has none. (window_ids.c)
 */
bool spill_embedded_window_entry(const spill_request_t *request, uint32_t array_id,
                                 const spill_buffer_t *id, int64_t incarnation, int64_t seq,
                                 spill_record_key_t *key);
/* spill_embedded_windows where the query has an id. */
spill_code_t spill_embedded_windows_with_id(spill_embedded_t *store, uint32_t array_id,
                                            const spill_window_query_t *query, bson_t *texts,
                                            spill_error_t *error);

spill_code_t spill_embedded_check(spill_store_t *store, const spill_binding_t *binding,
                                  const spill_definition_t *definition, const spill_value_t *owner,
                                  spill_store_finding_fn report, void *context,
                                  spill_error_t *error);

spill_code_t spill_embedded_backup(spill_store_t *store, const char *folder, spill_error_t *error);

/*
 * Is it of a format that this release reads? A new store gets today's; an older one is brought up
 * to date, unless `read_only`. SPILL_FORMAT, SPILL_INVALID (a database, but not a store's).
 */
spill_code_t spill_embedded_format(spill_kv_t *kv, const char *place, bool read_only,
                                   spill_error_t *error);

#endif
