/*
 * The embedded store: documents as records of an ordered key-value engine, RocksDB or a map in
 * memory (docs/internals/format.md).
 *
 *   embedded.c            open, close and copy a store; the table of functions
 *   embedded_codec.h      keys and values of records: keys.c, embedded_codec.c
 *   embedded_read.c       READ, directly from the engine, on the caller's thread
 *   view.h                ... and how it finds its document
 *   group_commit.h        many changes, one batch
 *   embedded_change.c     all other requests: decide, on the thread of the batch's leader
 *   effect.c              ... and write the records of a decision
 *   op_records.h          the records of operations
 *   records.c             records of states, system records, the heads' other fields
 *   embedded_catalog.c    definitions with their numbers, and imports
 *   definition_index.h    the definitions by the collections that they use
 *   leader_cache.h        the leader's caches of head records and of operation windows
 *   tail_cache.c          the cache of heads and their newest elements, for readers
 *   read_ahead.h          spans of consecutive owners in memory, for work on a whole store
 *   embedded_listing.c    list owners, heads that need a reshape, windows, pages without a head
 *   embedded_check.h      find errors in the records
 *   embedded_indexes.c    find errors in the indexes, and rebuild them
 *   format.c              the version of the format
 *   kv.h, batch.c         engines, and batches of changes for them; kv_memory.c, kv_rocksdb.c
 *   folder.h, pinned.c    the folder, and the files of it that a reader holds open
 *   engine_files.cpp      let the engine read those
 *   engine_fork.c         children of a process in which the engine has run
 *   engine_guard.cpp      turn the engine's exceptions and messages into errors
 *   logs.h                the engine's logs and its list of files
 *   log_check.c           can the logs be read to their end?
 *   log_cut.c             repair a log that cannot
 */
#ifndef SPILL_STORE_EMBEDDED_EMBEDDED_H
#define SPILL_STORE_EMBEDDED_EMBEDDED_H

#include "store/embedded/definition_index.h"
#include "store/embedded/embedded_codec.h"
#include "store/embedded/folder.h"
#include "store/embedded/group_commit.h"
#include "store/embedded/leader_cache.h"
#include "store/embedded/read_ahead.h"
#include "store/embedded/tail_cache.h"
#include "store/store.h"
#include "store/transition.h"

#define SPILL_FORMAT_VERSION 2

/*
 * The numbers in the records of arrays and collections when the store was opened. Only the counter
 * gives numbers after that, so they stay unique. Constant while the store is open.
 */
typedef struct spill_numbers {
    uint32_t highest;
    uint32_t *shared; /* those that several records have, ascending: damage */
    size_t shared_count;
    spill_code_t code; /* unless SPILL_OK, the records could not be read, and why */
    spill_error_t error;
} spill_numbers_t;

typedef struct spill_embedded {
    spill_store_t base;
    spill_kv_t *kv;
    char *folder; /* NULL: not on disk */
    spill_folder_lock_t lock;
    spill_group_commit_t writer;
    spill_tail_cache_t *tails; /* NULL: none */
    spill_read_ahead_t *ahead;
    spill_numbers_t numbers;
    /* The defined arrays, by number. Only the leader of the group commit uses them. */
    spill_binding_t *bindings;
    size_t binding_count;
    spill_head_cache_t heads; /* used by the leader only, as the next two */
    spill_op_cache_t ops;
    int64_t dropped_rev; /* the highest rev of a dropped head */
    spill_definition_index_t definitions;
} spill_embedded_t;

/* Open a store on an open engine. The store owns the engine, also after an error. */
spill_code_t spill_embedded_open_kv(spill_kv_t *kv, const char *uri,
                                    const spill_store_options_t *options, spill_store_t **store,
                                    spill_error_t *error);

/* ---- embedded_change.c and effect.c ---------------------------------------------------------- */

/* The context of spill_embedded_decide: one request. */
typedef struct spill_change_call {
    spill_embedded_t *store;
    const spill_request_t *request;
    spill_response_t *response;
} spill_change_call_t;

/* The document before the step, for spill_embedded_carry_out. */
typedef struct spill_before {
    bool present;
    int64_t incarnation;
    int64_t first;
    int64_t end;
    bool shared;    /* a page that is not cut yet: it shares its element records with the head */
    bool left_over; /* a page of an ended incarnation, perhaps without its elements */
    bool is_view;   /* PUT_PAGE: the element records exist, as the head's */
    const bson_t *fields;         /* the head's new other fields; NULL: unchanged */
    spill_value_t element;        /* EDIT, REMOVE, DELETE: element request->change.seq */
    const spill_top_t *elements;  /* if spill_needs_journal: the document's */
    const spill_seqs_t *deleted;  /* top-N capped: the deleted numbers; else NULL */
    const spill_run_t *unmanaged; /* ADOPT: the elements that become the head's; else NULL */
} spill_before_t;

spill_code_t spill_embedded_decide(void *context, spill_batch_t *batch, spill_error_t *error);

/* Write the records of a DONE step; `state` is the document after it, and gets its operations. */
spill_code_t spill_embedded_carry_out(spill_embedded_t *store, const spill_request_t *request,
                                      const spill_before_t *before, const spill_effect_t *effect,
                                      spill_state_t *state, spill_record_key_t *key,
                                      spill_batch_t *batch, spill_error_t *error);

/* ---- records.c: the other fields of a head, which the arrays of a collection share ----------- */

/* Read the other fields; {_id} if there are none. The caller owns *fields. */
spill_code_t spill_embedded_get_fields(spill_embedded_t *store, const spill_batch_t *batch,
                                       const spill_request_t *request, bson_t **fields,
                                       spill_error_t *error);
/* Get the size of the other fields. *bytes: 0 if they are not *there, or cannot be read. */
spill_code_t spill_embedded_get_fields_bytes(spill_embedded_t *store,
                                             const spill_request_t *request, int64_t *bytes,
                                             bool *there, spill_error_t *error);

/* Write the other fields, and their size into the heads of the collection's other arrays. */
spill_code_t spill_embedded_put_fields(spill_embedded_t *store, const spill_request_t *request,
                                       const bson_t *fields, spill_batch_t *batch,
                                       spill_error_t *error);

/*
 * After a head was dropped, if no other array has a head: remove the empty documents around the
 * array, and delete the fields if only _id is left.
 */
spill_code_t spill_embedded_drop_fields(spill_embedded_t *store, const spill_request_t *request,
                                        spill_batch_t *batch, spill_error_t *error);

/*
 * Call a function for each record of other fields in a collection, in the order of owners, behind
 * the owner key `after` (no bytes: all). Stop when it fails or sets *more = false. The iterator is
 * at the record; its key is 4 bytes and the owner's key.
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
spill_code_t spill_embedded_catalog_names(spill_store_t *store, spill_catalog_t kind,
                                          spill_listing_t *names, spill_error_t *error);

spill_code_t spill_embedded_definitions_beside(spill_store_t *store,
                                               const spill_definition_t *definition,
                                               spill_listing_t *names, spill_error_t *error);
int64_t spill_embedded_definitions_version(spill_store_t *store);

spill_code_t spill_embedded_retire(spill_store_t *store, const spill_definition_t *definition,
                                   const spill_binding_t *binding, bool *done,
                                   spill_error_t *error);

/* Is this the number of a defined array? For the leader of the group commit. O(log arrays). */
bool spill_embedded_has_array(const spill_embedded_t *store, uint32_t array_id);

/*
 * Fill store->numbers from the records. If they cannot be read, every later use of an array's
 * number fails with the same error. O(arrays).
 */
spill_code_t spill_embedded_load_numbers(spill_embedded_t *store, spill_error_t *error);

/* Fill store->bindings from the records. */
spill_code_t spill_embedded_load_bindings(spill_embedded_t *store, spill_error_t *error);

/* Functions of spill_store_ops_t.list (embedded_listing.c). */
spill_list_fn spill_embedded_owners;
spill_list_fn spill_embedded_oversized;
spill_list_fn spill_embedded_orphans;
spill_list_fn spill_embedded_windows;

/* Move to the first record behind all records of the owner, of any kind. (span.c) */
void spill_embedded_pass_owner(spill_kv_iter_t *iter, spill_record_key_t *owner);

/*
 * Rebuild the index entries of the owner's pages, and of the ids and ranks of its elements. `key`
 * is one of the owner's keys. Cost: reads all pages and elements. (embedded_indexes.c)
 */
spill_code_t spill_embedded_reindex(spill_embedded_t *store, const spill_request_t *request,
                                    const spill_record_key_t *key, spill_batch_t *batch,
                                    spill_error_t *error);

/*
 * Layout bucket: the entry of an element with this id (as a key) in the index over all windows of
 * its owner. False: it has none. (records.c)
 */
bool spill_embedded_window_entry(const spill_request_t *request, uint32_t array_id,
                                 const spill_buffer_t *id, int64_t incarnation, int64_t seq,
                                 spill_record_key_t *key);

spill_code_t spill_embedded_check(spill_store_t *store, const spill_binding_t *binding,
                                  const spill_definition_t *definition, const spill_value_t *owner,
                                  spill_store_finding_fn report, void *context,
                                  spill_error_t *error);

spill_code_t spill_embedded_backup(spill_store_t *store, const char *folder, spill_error_t *error);

/*
 * Check the format's version. Write the current one into a new store, and upgrade an older store
 * unless `read_only`. SPILL_FORMAT: this release cannot read it. SPILL_INVALID: the database is not
 * a store.
 */
spill_code_t spill_embedded_format(spill_kv_t *kv, const char *place, bool read_only,
                                   spill_error_t *error);

#endif
