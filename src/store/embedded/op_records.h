/*
 * The records of an owner's operations. The newest operations are in the record of the document
 * that got them (spill_state_t.newest_ops), so an append with an operation id writes no additional
 * record. When they are SPILL_OPS_TOGETHER, they move to a record of their own. Earlier versions
 * wrote one record per operation; such records are read, and deleted with the owner.
 */
#ifndef SPILL_STORE_EMBEDDED_OP_RECORDS_H
#define SPILL_STORE_EMBEDDED_OP_RECORDS_H

#include "store/embedded/embedded.h"

/*
 * Where to read an operation: in the batch, if it is not NULL, and then in the engine. The record
 * that was read last stays, so that several operations of one record cost one look-up. Records that
 * are read one after the other, from the oldest up, cost a look-up and a seek in all: an iterator
 * steps through the second record and the later ones. Call spill_op_source_release before a change
 * of the batch or of the engine.
 */
typedef struct spill_op_source {
    spill_embedded_t *store;
    spill_kv_t *kv;
    const spill_batch_t *batch;
    const spill_request_t *request; /* for messages */
    int64_t page;
    spill_buffer_t value;
    bool holds;            /* `value` has the record of the operations from `first` on */
    spill_kv_iter_t *iter; /* at this record or before it; NULL: the last read was no next record */
    int64_t incarnation, first;
} spill_op_source_t;

/* Forget what was read. The source can be used again. */
void spill_op_source_release(spill_op_source_t *source);

/* Read operation `ordinal` of the incarnation of the state. `key` is one of the owner's. */
spill_code_t spill_op_read(spill_op_source_t *source, spill_record_key_t *key,
                           const spill_state_t *state, int64_t ordinal, spill_op_entry_t *entry,
                           bool *found, spill_error_t *error);

/*
 * Add an operation to the state, as its newest one. If they become SPILL_OPS_TOGETHER, write them
 * into a record, and delete the record that has left the window. Write the state afterwards.
 */
void spill_op_add(spill_batch_t *batch, spill_record_key_t *key, spill_state_t *state,
                  const spill_op_entry_t *entry, int64_t op_window);

/* Delete the records of the incarnation's operations, of both kinds. */
spill_code_t spill_ops_delete(spill_embedded_t *store, spill_record_key_t *key, int64_t incarnation,
                              spill_batch_t *batch, spill_error_t *error);

#endif
