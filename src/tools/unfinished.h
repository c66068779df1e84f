/*
 * status: the unfinished work that a store's catalog records, and the command that finishes each.
 * Unfinished operations of single owners are found by `repair --dry-run`, which reads every owner.
 */
#ifndef SPILL_TOOLS_UNFINISHED_H
#define SPILL_TOOLS_UNFINISHED_H

#include <spillway/store.h>

#include <stdbool.h>
#include <stdint.h>

typedef enum spill_status_kind {
    SPILL_STATUS_MIGRATION,
    SPILL_STATUS_CONVERSION,
    SPILL_STATUS_CONSOLIDATION,
    SPILL_STATUS_IMPORT,
    SPILL_STATUS_UNKNOWN /* a job of a later version */
} spill_status_kind_t;

#define SPILL_STATUS_KINDS (SPILL_STATUS_UNKNOWN + 1)

/* Static. */
const char *spill_status_kind_name(spill_status_kind_t kind);

/* Everything is borrowed. */
typedef struct spill_status_job {
    spill_status_kind_t kind;
    const char *name;   /* of the definition, or of the joint collection */
    const char *state;  /* a sentence */
    const char *finish; /* the command that finishes it; NULL: this version knows none */
    int64_t saved_ms;   /* when it was last saved; SPILL_DATE_UNKNOWN: by an earlier version */
} spill_status_job_t;

/* Return false to stop. */
typedef bool (*spill_status_fn)(void *context, const spill_status_job_t *job);

/*
 * Visit each unfinished job in the order of their names, then each definition whose migration is
 * being undone. `shown` is the store as the user named it.
 * The commands quote names for the shell where they must.
 * SPILL_CORRUPT: an entry cannot be read. Cost: two lists of the catalog, and one read for each
 * entry and definition. Finished imports and conversions have entries too.
 */
spill_code_t spill_status_jobs(spill_store_t *store, const char *shown, spill_status_fn visit,
                               void *context, spill_error_t *error);

#endif
