/* Internals of the model store: owners, fields and documents. Call with the store's lock held. */
#ifndef TESTS_SUPPORT_MODEL_STORE_INTERNAL_H
#define TESTS_SUPPORT_MODEL_STORE_INTERNAL_H

#include "support/model_store.h"
#include "support/model_table.h"

#include <pthread.h>

/* The head and the pages of one owner's array. */
typedef struct model_owner {
    model_entry_t entry; /* array_id, owner key */
    model_document_t *head;
    model_document_t **pages; /* by number */
    size_t page_count;
    size_t page_capacity;
    model_document_t **by_first; /* the same pages by (incarnation, first, number) ... */
    bool sorted;                 /* ... while this is true */
} model_owner_t;

/* The other fields of a head document; the arrays of one collection share them. */
typedef struct model_fields {
    model_entry_t entry; /* collection_id, owner key */
    bson_t *document;
    size_t heads; /* arrays that have a head in this document */
} model_fields_t;

/* A name in the catalog (with its document), or a name with a number. */
typedef struct model_name {
    model_entry_t entry;
    bson_t *document;
    uint32_t number;
} model_name_t;

typedef struct model_store {
    spill_store_t base;
    pthread_mutex_t lock;
    model_table_t owners;
    model_table_t fields;
    model_table_t catalog; /* spill_catalog_t, name */
    model_table_t numbers; /* of arrays and collections, by name */
    uint32_t last_number;  /* the last number given to a name */
    int64_t dropped_rev;   /* the highest rev of a dropped head */
} model_store_t;

/* NULL if there is none. */
model_owner_t *model_find_owner(const model_store_t *model, const spill_request_t *request);
model_fields_t *model_find_fields(const model_store_t *model, const spill_request_t *request);

/* Find a document and update its live, live_bytes and fields_bytes. NULL: absent. */
model_document_t *model_find_document(const model_store_t *model, const spill_request_t *request);

/* READ of SPILL_ELEMENTS. */
void model_read_elements(const model_store_t *model, const spill_request_t *request,
                         spill_response_t *response);

/* READ with want_top of a subset's head. */
void model_read_top(const model_store_t *model, const spill_request_t *request, spill_run_t *run);

/*
 * Add the document that the request names; a head needs its fields first. Takes ownership of what
 * `made` owns.
 */
model_document_t *model_add_document(model_store_t *model, const spill_request_t *request,
                                     const model_document_t *made);

/* With a head, drop its fields too, if they have only _id and no other array has a head there. */
void model_drop_document(model_store_t *model, const spill_request_t *request,
                         model_document_t *document);

/* A copy of the fields; {_id: owner} if there are none yet. Free with bson_destroy. */
bson_t *model_copy_fields(const model_store_t *model, const spill_request_t *request);
void model_set_fields(model_store_t *model, const spill_request_t *request,
                      bson_t *document); /* takes ownership of `document` */

void model_release_owner(model_owner_t *owner); /* with its documents */

/* Functions of spill_store_ops_t.list (model_owners.c). */
spill_list_fn model_owners;
spill_list_fn model_oversized;
spill_list_fn model_orphans;
spill_list_fn model_windows;

/* Carry out a request that is not a READ (model_change.c). */
spill_code_t model_change(model_store_t *model, const spill_request_t *request,
                          spill_response_t *response, spill_error_t *error);

#endif
