/*
 * The memory store: documents as a document database keeps them. A document has an array of
 * elements and its bookkeeping; a page has its own copy of its elements. An element's number is not
 * stored: it follows from `first` and `deleted`. So an error in a protocol loses or shifts elements
 * here as it would in a database.
 *
 * This header is for tests: it gives direct access to the documents, to damage them, or to act as a
 * client that does not keep to the protocol. No call on the store may run at the same time.
 */
#ifndef SPILL_STORE_MEMORY_H
#define SPILL_STORE_MEMORY_H

#include "store/store.h"

/*
 * A head or a page. state.live, state.live_bytes and a head's state.fields_bytes are not kept here:
 * like a document database, the store computes them from elements and fields at each use.
 */
typedef struct spill_memory_document {
    spill_state_t state;
    spill_ops_t ops;
    spill_value_t *elements; /* each owns its bytes */
    size_t count;
    size_t capacity;
    int64_t bytes; /* sum of the elements' sizes */
} spill_memory_document_t;

void spill_memory_document_insert(spill_memory_document_t *document, size_t index,
                                  const spill_value_t *element); /* index <= count */
void spill_memory_document_replace(spill_memory_document_t *document, size_t index,
                                   const spill_value_t *element);
/* Remove `count` elements from `index` on; the elements behind them move up. */
void spill_memory_document_remove(spill_memory_document_t *document, size_t index, size_t count);
void spill_memory_document_release(spill_memory_document_t *document);

/* Position of the first element with a number >= seq; `count` if there is none. */
size_t spill_memory_document_position(const spill_memory_document_t *document, int64_t seq);

/* Position of element `seq`; false if the document does not have it. */
bool spill_memory_document_find(const spill_memory_document_t *document, int64_t seq,
                                size_t *index);

/* Position and number of the element that SPILL_WANT_ID selects; false: there is none. */
bool spill_memory_document_find_id(const spill_memory_document_t *document,
                                   const spill_request_t *request, size_t *index, int64_t *seq);

/* Sum of the sizes of the elements at positions [from, to). */
int64_t spill_memory_document_bytes(const spill_memory_document_t *document, size_t from,
                                    size_t to);

/* Read the elements that a READ asks for into an empty run. O(elements read). */
void spill_memory_document_read(const spill_memory_document_t *document,
                                const spill_request_t *request, spill_run_t *run);

/* ---- access for tests ------------------------------------------------------------------------ */

/*
 * A document of a memory store; NULL if it is absent. With `make`, make an absent one, empty (a
 * head with fields {_id: owner}). `request` names it by array_id, collection_id, owner, key and
 * page. The pointer is valid until the document is dropped.
 */
spill_memory_document_t *spill_memory_document(spill_store_t *store, const spill_request_t *request,
                                               bool make);

/* Delete a document, as an administrator might. No effect if it is absent. */
void spill_memory_document_drop(spill_store_t *store, const spill_request_t *request);

/* The other fields of a head, {_id, ...}; NULL if there is no such document. */
bson_t *spill_memory_fields(spill_store_t *store, const spill_request_t *request);

#endif
