/* Internals of the memory store: owners, fields and documents. Call with the store's lock held. */
#ifndef SPILL_STORE_MEMORY_STORE_H
#define SPILL_STORE_MEMORY_STORE_H

#include "store/memory.h"
#include "store/memory_table.h"

#include <pthread.h>

/* The head and the pages of one owner's array. */
typedef struct spill_memory_owner {
    spill_memory_entry_t entry; /* array_id, owner key */
    spill_memory_document_t *head;
    spill_memory_document_t **pages; /* by number */
    size_t page_count;
    size_t page_capacity;
    spill_memory_document_t **by_first; /* the same pages by (incarnation, first, number) ... */
    bool sorted;                        /* ... while this is true */
} spill_memory_owner_t;

/* The other fields of a head document; the arrays of one collection share them. */
typedef struct spill_memory_fields {
    spill_memory_entry_t entry; /* collection_id, owner key */
    bson_t *document;
    size_t heads; /* arrays that have a head in this document */
} spill_memory_fields_t;

/* A name in the catalog (with its document), or a name with a number. */
typedef struct spill_memory_name {
    spill_memory_entry_t entry;
    bson_t *document;
    uint32_t number;
} spill_memory_name_t;

typedef struct spill_memory_store {
    spill_store_t base;
    pthread_mutex_t lock;
    spill_memory_table_t owners;
    spill_memory_table_t fields;
    spill_memory_table_t catalog; /* spill_catalog_t, name */
    spill_memory_table_t numbers; /* of arrays and collections, by name */
    uint32_t last_number;         /* the last number given to a name */
    int64_t dropped_rev;          /* the highest rev of a dropped head */
} spill_memory_store_t;

/* NULL if there is none. */
spill_memory_owner_t *spill_memory_find_owner(const spill_memory_store_t *memory,
                                              const spill_request_t *request);
spill_memory_fields_t *spill_memory_find_fields(const spill_memory_store_t *memory,
                                                const spill_request_t *request);

/* Find a document and update its live, live_bytes and fields_bytes. NULL: absent. */
spill_memory_document_t *spill_memory_find_document(const spill_memory_store_t *memory,
                                                    const spill_request_t *request);

/* READ of SPILL_ELEMENTS. */
void spill_memory_read_elements(const spill_memory_store_t *memory, const spill_request_t *request,
                                spill_response_t *response);

/* READ with want_top of a subset's head. */
void spill_memory_read_top(const spill_memory_store_t *memory, const spill_request_t *request,
                           spill_run_t *run);

/*
 * Add the document that the request names; a head needs its fields first. Takes ownership of what
 * `made` owns.
 */
spill_memory_document_t *spill_memory_add_document(spill_memory_store_t *memory,
                                                   const spill_request_t *request,
                                                   const spill_memory_document_t *made);

/* With a head, drop its fields too, if they have only _id and no other array has a head there. */
void spill_memory_drop_document(spill_memory_store_t *memory, const spill_request_t *request,
                                spill_memory_document_t *document);

/* A copy of the fields; {_id: owner} if there are none yet. Free with bson_destroy. */
bson_t *spill_memory_copy_fields(const spill_memory_store_t *memory,
                                 const spill_request_t *request);
void spill_memory_set_fields(spill_memory_store_t *memory, const spill_request_t *request,
                             bson_t *document); /* takes ownership of `document` */

void spill_memory_release_owner(spill_memory_owner_t *owner); /* with its documents */

/* Functions of spill_store_ops_t (memory_owners.c). */
spill_code_t spill_memory_owners(spill_store_t *store, const spill_definition_t *definition,
                                 const spill_binding_t *binding, const uint8_t *after,
                                 size_t after_bytes, size_t limit, bson_t *owners_found,
                                 spill_buffer_t *last, spill_error_t *error);
spill_code_t spill_memory_oversized(spill_store_t *store, const spill_definition_t *definition,
                                    const spill_binding_t *binding,
                                    const spill_oversized_query_t *query, bson_t *found,
                                    spill_buffer_t *last, spill_error_t *error);
spill_code_t spill_memory_orphans(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_binding_t *binding, const spill_orphan_query_t *query,
                                  bson_t *found, spill_buffer_t *last, spill_error_t *error);
spill_code_t spill_memory_windows(spill_store_t *store, const spill_definition_t *definition,
                                  const spill_binding_t *binding, const spill_window_query_t *query,
                                  bson_t *texts, spill_error_t *error);

/* Carry out a request that is not a READ (memory_change.c). */
spill_code_t spill_memory_change(spill_memory_store_t *memory, const spill_request_t *request,
                                 spill_response_t *response, spill_error_t *error);

#endif
