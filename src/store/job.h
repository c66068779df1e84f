/*
 * Job checkpoints: how far a conversion, a migration or a consolidation is. A checkpoint is a small
 * document in the catalog, {definition, ...fields of the kind}. It changes by compare-and-set only,
 * so of two runs that continue one job, one fails. docs/internals/transfer.md lists the kinds.
 *
 * A kind is described by a table. The checkpoint's struct of that kind has a member for each field,
 * and a member `stored` for the document. All zero, it is the checkpoint of a job that was not
 * begun.
 */
#ifndef SPILL_STORE_JOB_H
#define SPILL_STORE_JOB_H

#include "store/raw_admin.h"
#include "store/store.h"

typedef enum spill_job_field_type {
    SPILL_JOB_TEXT,     /* char[size] */
    SPILL_JOB_NAME,     /* the same, not empty */
    SPILL_JOB_FLAG,     /* bool */
    SPILL_JOB_NUMBER,   /* int64_t, or size_t */
    SPILL_JOB_CHOICE,   /* an enum, stored as its name; 0 is not stored */
    SPILL_JOB_DOCUMENT, /* bson_t *, owned; NULL is stored as an empty one */
    SPILL_JOB_ARRAY,    /* the same for an array */
    SPILL_JOB_ID        /* bson_oid_t */
} spill_job_field_type_t;

typedef struct spill_job_field {
    const char *name; /* in the document */
    spill_job_field_type_t type;
    size_t offset;            /* in the struct */
    bool required;            /* if it is missing or has another type, the checkpoint is corrupt */
    size_t size;              /* of a text; or how many names there are */
    const char *const *names; /* of a choice's values */
} spill_job_field_t;

typedef struct spill_job_kind {
    const char *suffix;   /* the entry's name is the job's name and this */
    const char *activity; /* for messages: "the conversion of" */
    bool named;           /* the document begins with {definition: NAME} */
    const spill_job_field_t *fields;
    size_t count;
    size_t size;   /* of the struct */
    size_t stored; /* offset of the member `stored`: bson_t *, owned; NULL if nothing is stored */
} spill_job_kind_t;

/* Where checkpoints are: in a store's catalog, or in that of a database of a server. */
typedef struct spill_job_catalog {
    spill_store_t *store;
    spill_raw_admin_t *admin; /* if there is no store */
} spill_job_catalog_t;

/*
 * Load the checkpoint of the job `name` into *job, which it overwrites; if there is none, `stored`
 * is NULL. SPILL_CORRUPT. Release it in every case. One read.
 */
spill_code_t spill_job_load(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                            const char *name, void *job, spill_error_t *error);

/* The same from the entry that was read, which is consumed; NULL: there is none. */
spill_code_t spill_job_load_entry(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                                  const char *name, bson_t *document, void *job,
                                  spill_error_t *error);

/* Set the fields of *job, which it overwrites, from a document. False: a field is damaged. */
bool spill_job_decode(const spill_job_kind_t *kind, const bson_t *document, void *job);

/*
 * Replace the checkpoint that was loaded or saved last by the present values of the fields.
 * SPILL_CONFLICT: another run has changed it. One write, in the order of the store's other writes.
 */
spill_code_t spill_job_save(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                            const char *name, void *job, spill_error_t *error);

/* SPILL_CONFLICT if the checkpoint is no longer the one that was loaded or saved last. One read. */
spill_code_t spill_job_check(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                             const char *name, const void *job, spill_error_t *error);

/* Delete the checkpoint, whatever it holds. One write. */
spill_code_t spill_job_delete(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, spill_error_t *error);

/* Free what *job owns, and set it to zero. */
void spill_job_release(const spill_job_kind_t *kind, void *job);

#endif
