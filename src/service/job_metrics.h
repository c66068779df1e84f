/*
 * What a long job (migrate, sweep, consolidate) counts, and how Prometheus reads it. The numbers
 * have no data of users; the only texts are names of commands, definitions and error codes.
 */
#ifndef SPILL_SERVICE_JOB_METRICS_H
#define SPILL_SERVICE_JOB_METRICS_H

#include "service/http_server.h"
#include "service/lost_lines.h"
#include "tools/migrate/migrate.h"
#include "tools/parallel.h"

#include <spillway/definition.h>
#include <spillway/error.h>

#include <pthread.h>
#include <stdatomic.h>

/* X(field, name, help): the counters of a process. */
#define SPILL_JOB_COUNTERS(X)                                                                      \
    X(passes, "passes", "Passes that ended well")                                                  \
    X(owners, "owners", "Owners that were changed, copied, compared or skipped")                   \
    X(adopted, "owners_adopted", "Unmanaged arrays that became managed ones")                      \
    X(skipped, "owners_skipped", "Owners that were skipped; the log has each with the reason")     \
    X(moved, "elements_moved", "Elements that moved to pages")                                     \
    X(pages, "pages_written", "Pages that received elements")                                      \
    X(compared, "elements_compared", "Elements that were compared with their original")            \
    X(documents, "documents_written", "Documents of a consolidation that were changed")

/* Every error code has a counter of failed passes. */
#define SPILL_JOB_COUNT_CODE(name, text) +1
#define SPILL_JOB_CODE_COUNT (0 SPILL_CODES(SPILL_JOB_COUNT_CODE))

/* A longer owner is not shown. */
#define SPILL_JOB_OWNER_BYTES 240

/* An owner that a thread works on. */
typedef struct spill_job_owner {
    pthread_t thread;
    int64_t since_us; /* since 1970; 0: this entry is free */
    bson_type_t type;
    uint32_t size_bytes; /* of data; type BSON_TYPE_EOD: the owner is too long */
    uint8_t data[SPILL_JOB_OWNER_BYTES];
} spill_job_owner_t;

typedef struct spill_job_metrics {
    const char *command;           /* "sweep"; borrowed */
    const spill_lost_lines_t *log; /* of the file of --log; borrowed; NULL: there is none */
#define SPILL_JOB_FIELD(field, name, help) atomic_int_fast64_t field;
    SPILL_JOB_COUNTERS(SPILL_JOB_FIELD)
#undef SPILL_JOB_FIELD
    atomic_int_fast64_t failures[SPILL_JOB_CODE_COUNT]; /* of passes */
    atomic_int_fast64_t failures_in_a_row;
    atomic_int_fast64_t started_us, succeeded_us; /* since 1970; 0: never */
    atomic_int_fast64_t progress_per_mille;       /* of the pass, where its work is known */
    atomic_bool waits;                            /* for its turn: paused, or a slow server */
    atomic_bool paused;                           /* by an operator, also between two passes */
    pthread_mutex_t lock;                         /* of the following */
    spill_code_t failure;                         /* of the last pass; SPILL_OK: it ended well */
    char message[SPILL_ERROR_MESSAGE_SIZE];       /* of the last pass that failed; "": none did */
    int64_t failed_us;                            /* when that was, since 1970 */
    int64_t next_us;                              /* when the next pass begins; 0: not known */
    int64_t gives_up_us;                          /* if passes fail until then; 0: it does not */
    char definition[SPILL_NAME_SIZE];             /* the array, or the joint collection */
    spill_job_owner_t working[SPILL_PARALLEL_MAX + 1]; /* owners in progress */
} spill_job_metrics_t;

/* All of these may be called by any thread. */

void spill_job_metrics_init(spill_job_metrics_t *metrics, const char *command);

/* Begin work on a definition, or on the collection that a consolidation fills. */
void spill_job_metrics_begin(spill_job_metrics_t *metrics, const char *definition);

/*
 * This thread begins to work on an owner, and ends it. A consolidation gives the name of a
 * collection as the owner.
 */
void spill_job_metrics_owner_begins(spill_job_metrics_t *metrics, const spill_value_t *owner);
void spill_job_metrics_owner_ends(spill_job_metrics_t *metrics);

/* Copy the owner in progress that has taken longest. False: none is in progress. */
bool spill_job_metrics_longest(spill_job_metrics_t *metrics, spill_job_owner_t *longest);

/* The owner as a value that borrows from it. Its type is BSON_TYPE_EOD if the owner is too long. */
spill_value_t spill_job_owner_value(const spill_job_owner_t *owner);

/* Count an owner that a pass reports. */
void spill_job_metrics_owner(spill_job_metrics_t *metrics, const spill_migrated_t *migrated);

/* Count documents that a consolidation inserted, replaced or deleted. */
void spill_job_metrics_documents(spill_job_metrics_t *metrics, int64_t written);

/* Set how much of the pass is done. `whole` 0: not known. */
void spill_job_metrics_progress(spill_job_metrics_t *metrics, int64_t done, int64_t whole);

/*
 * Count a pass that ended with this code; *error has the message if that is not SPILL_OK.
 * SPILL_CANCELLED: it was stopped, which is no failure.
 */
void spill_job_metrics_end(spill_job_metrics_t *metrics, spill_code_t code,
                           const spill_error_t *error);

/* Set when the next pass begins, in microseconds since 1970; 0: it has begun, or there is none. */
void spill_job_metrics_next(spill_job_metrics_t *metrics, int64_t next_us);

/* Set when the job gives up if passes fail until then, in microseconds since 1970; 0: never. */
void spill_job_metrics_gives_up(spill_job_metrics_t *metrics, int64_t gives_up_us);

/* What an operator asks first: how many passes failed, why, and when the next one begins. */
typedef struct spill_job_failures {
    char definition[SPILL_NAME_SIZE];
    int64_t passes, failures, in_a_row;
    char message[SPILL_ERROR_MESSAGE_SIZE]; /* of the last failure, without secrets; "": none */
    int64_t failed_us, next_us;             /* since 1970; 0: never */
    int64_t gives_up_us;
} spill_job_failures_t;

void spill_job_metrics_failures(spill_job_metrics_t *metrics, spill_job_failures_t *failures);

/* Append them in Prometheus' text format. */
void spill_job_metrics_print(spill_job_metrics_t *metrics, spill_buffer_t *out);

/*
 * A spill_http_answer_fn whose context is a spill_job_metrics_t: /metrics, and /healthz with 200,
 * or 503 and the error code if the last pass failed. A log that lacks lines is named in both cases,
 * and changes no status: the work does not need the log.
 */
void spill_job_metrics_answer(void *context, const char *path, spill_http_answer_t *answer);

#endif
