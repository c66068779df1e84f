/*
 * Can the engine's logs be read to their end? The engine itself does not always notice: it takes
 * zeros in a log, and parts of a type that it would recycle, for an end, and it does not compare
 * the end of one log with the start of the next.
 *
 * Every record begins with the number of its first change. The store compares these: each record
 * continues the one before, and the first one continues what the table files hold.
 */
#ifndef SPILL_EMBEDDED_LOG_CHECK_H
#define SPILL_EMBEDDED_LOG_CHECK_H

#include "store/embedded/manifest.h"

#include <stddef.h>

typedef enum spill_logs_health {
    SPILL_LOGS_WHOLE,   /* every record of every log can be read */
    SPILL_LOGS_TORN,    /* ... but the newest log ends in the middle of a record: a power loss */
    SPILL_LOGS_HOLE,    /* an older log lost its end: a power loss, with log durability */
    SPILL_LOGS_DAMAGED, /* bytes of a log were changed; repair can cut the log there */
    SPILL_LOGS_LOST     /* changes are missing before the first record of all logs */
} spill_logs_health_t;

/* If the logs are not WHOLE, the state names the place. */
typedef struct spill_logs_state {
    spill_logs_health_t health;
    bool torn;      /* a log ends in the middle of a record; newer logs may continue it */
    uint64_t log;   /* the number of that log */
    char file[32];  /* its name */
    int64_t offset; /* of the first byte that is not part of a good record */
    char what[160]; /* for a message */
    spill_manifest_t manifest;
} spill_logs_state_t;

/*
 * Check the list of files and the logs. Beside a writer the check is repeated while the list
 * changes. SPILL_CORRUPT names CURRENT or the list of files. A folder without CURRENT has whole
 * logs. Cost: reads the logs once, at most about 100 MB, about 1 ns a byte.
 */
spill_code_t spill_log_check(const char *folder, spill_logs_state_t *state, spill_error_t *error);

/* The same of a reader's view, which does not change. */
spill_code_t spill_log_check_pinned(const spill_pinned_t *pinned, spill_logs_state_t *state,
                                    spill_error_t *error);

/* Does a log have a part that the engine reads for ever if it skips damage? Reads the logs. */
bool spill_log_stalls_engine(const spill_pinned_t *pinned);

/* Make an error (SPILL_CORRUPT) of a state that is not WHOLE. It names the log and the offset. */
spill_code_t spill_log_fail(const char *folder, const spill_logs_state_t *state,
                            spill_error_t *error);

/*
 * List the numbers of the logs in a folder, from `oldest` on, in ascending order. Free *numbers
 * with bson_free; NULL: there is none. Fails if the folder cannot be read.
 */
spill_code_t spill_log_numbers(const char *folder, uint64_t oldest, uint64_t **numbers,
                               size_t *count, spill_error_t *error);

/* "FOLDER/000012.log". Free with bson_free. */
char *spill_log_path(const char *folder, uint64_t log);

#endif
