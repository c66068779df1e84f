/*
 * Job checkpoints: how far a conversion, a migration or a consolidation is. A checkpoint is a small
 * document in the catalog, {definition, ...fields of the kind}. It changes by compare-and-set only,
 * so of two runs that continue one job, one fails. docs/internals/transfer.md lists the kinds.
 *
 * A record (bson/record.h) describes each kind. The struct has a member for each field, and a
 * member `stored` for the document. All zero, it is the checkpoint of a job that was not begun.
 */
#ifndef SPILL_STORE_JOB_H
#define SPILL_STORE_JOB_H

#include "bson/record.h"
#include "store/raw_admin.h"
#include "store/store.h"

/* The field with the time at which a checkpoint was saved. Earlier versions did not store it. */
#define SPILL_JOB_SAVED "savedAt"

typedef struct spill_job_kind {
    const char *suffix;           /* the entry's name is the job's name and this */
    const char *activity;         /* for messages: "the conversion of" */
    const spill_record_t *record; /* the struct's fields; values borrow from `stored` */
    bool named;                   /* the document begins with {definition: NAME} */
    size_t stored; /* offset of the member `stored`: bson_t *, owned; NULL if nothing is stored */
    bool (*is_good)(const void *job); /* false: a field is damaged; NULL: no more to check */
} spill_job_kind_t;

/* Where checkpoints are: in a store's catalog, or in the catalog of a server's database. */
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

/* Set the fields of *job, which it overwrites, from a document, from which values borrow. False: a
 * field is damaged. `stored` is NULL. */
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

/* The same for two checkpoints of one job in a server's database: one read. */
spill_code_t spill_job_check_both(spill_raw_admin_t *admin, const spill_job_kind_t *const kinds[2],
                                  const char *name, const void *const jobs[2],
                                  spill_error_t *error);

/* Delete the checkpoint, whatever it holds. One write. */
spill_code_t spill_job_delete(const spill_job_catalog_t *catalog, const spill_job_kind_t *kind,
                              const char *name, spill_error_t *error);

/* Free what *job owns, and set it to zero. */
void spill_job_release(const spill_job_kind_t *kind, void *job);

#endif
