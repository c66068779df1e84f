/*
 * The model store: documents as a document database keeps them. A document has an array of
 * elements and its bookkeeping; a page has its own copy of its elements. An element's number is not
 * stored: it follows from `first` and `deleted`. So an error in a protocol loses or shifts elements
 * here as it would in a database.
 *
 * It is the model that other stores are compared with. It also gives direct access to its
 * documents, to damage them, or to act as a client that does not keep to the protocol; no call on
 * the store may run at the same time.
 */
#ifndef TESTS_SUPPORT_MODEL_STORE_H
#define TESTS_SUPPORT_MODEL_STORE_H

#include "store/store.h"

/* A store with nothing in it. Close it with spill_store_close. */
spill_store_t *model_store_open(void);

/*
 * A head or a page. state.live, state.live_bytes and a head's state.fields_bytes are not kept here:
 * like a document database, the store computes them from elements and fields at each use.
 */
typedef struct model_document {
    spill_state_t state;
    spill_ops_t ops;
    spill_sessions_t sessions; /* of a head */
    spill_value_t *elements;   /* each owns its bytes */
    size_t count;
    size_t capacity;
    int64_t bytes; /* sum of the elements' sizes */
} model_document_t;

void model_document_insert(model_document_t *document, size_t index,
                           const spill_value_t *element); /* index <= count */
void model_document_replace(model_document_t *document, size_t index, const spill_value_t *element);
/* Remove `count` elements from `index` on; the elements behind them move up. */
void model_document_remove(model_document_t *document, size_t index, size_t count);
void model_document_release(model_document_t *document);

/* Position of the first element with a number >= seq; `count` if there is none. */
size_t model_document_position(const model_document_t *document, int64_t seq);

/* Position of element `seq`; false if the document does not have it. */
bool model_document_find(const model_document_t *document, int64_t seq, size_t *index);

/* Position and number of the element that SPILL_WANT_ID selects; false: there is none. */
bool model_document_find_id(const model_document_t *document, const spill_request_t *request,
                            size_t *index, int64_t *seq);

/* Sum of the sizes of the elements at positions [from, to). */
int64_t model_document_bytes(const model_document_t *document, size_t from, size_t to);

/* Read the elements that a READ asks for into an empty run. O(elements read). */
void model_document_read(const model_document_t *document, const spill_request_t *request,
                         spill_run_t *run);

/* ---- access for tests ------------------------------------------------------------------------ */

/*
 * A document of a model store; NULL if it is absent. With `make`, make an absent one, empty (a
 * head with fields {_id: owner}). `request` names it by array_id, collection_id, owner, key and
 * page. The pointer is valid until the document is dropped.
 */
model_document_t *model_document(spill_store_t *store, const spill_request_t *request, bool make);

/* Delete a document, as an administrator might. No effect if it is absent. */
void model_document_drop(spill_store_t *store, const spill_request_t *request);

/* Later heads have incarnations above `rev`: see head_ends in store/store.h. */
void model_head_ends(spill_store_t *store, int64_t rev);

/* The other fields of a head, {_id, ...}; NULL if there is no such document. */
bson_t *model_fields(spill_store_t *store, const spill_request_t *request);

#endif
