/* What commands do with a definition of layout bucket: an owner's elements lie in its windows. */
#ifndef SPILL_CLI_BUCKET_H
#define SPILL_CLI_BUCKET_H

#include "cli/cli.h"

bool spill_cli_is_bucket(const spill_cli_session_t *session);

/* An element's address on the command line: SEQ, or WINDOW:SEQ in a bucket. */
typedef struct spill_cli_address {
    char window[SPILL_WINDOW_SIZE]; /* "": none was given */
    int64_t seq;
} spill_cli_address_t;

/* Prints what is wrong and returns false when it is none. */
bool spill_cli_parse_address(const spill_invocation_t *invocation, const char *text,
                             spill_cli_address_t *address);

/*
 * The owner, of array.h, that the address is an element of: the session's, or in a bucket one of
 * its windows, which lives in `storage`. SPILL_INVALID where a window is missing or too much.
 */
spill_code_t spill_cli_address_owner(const spill_cli_session_t *session,
                                     const spill_cli_address_t *address, bson_t *storage,
                                     spill_value_t *owner, spill_error_t *error);

/*
 * TIME on the command line: "2026", "2026-03", "2026-03-05", "2026-03-05T10", ... with minutes,
 * seconds, milliseconds, and Z at the end or not; always UTC. The first moment of it.
 */
bool spill_cli_parse_moment(const char *text, int64_t *time_ms);

/*
 * Append a batch and print what became of it. With `op`, whose base is set unless it is -1: the
 * elements have to lie in one window; a base of -1 is read, and ID@BASE printed.
 */
spill_code_t spill_cli_bucket_append(const spill_cli_session_t *session,
                                     const spill_value_t *elements, size_t count, spill_op_t *op,
                                     bool fill, spill_error_t *error);

/* What `read` was asked for. Texts may be NULL. */
typedef struct spill_cli_bucket_read {
    int64_t limit;
    bool oldest;
    const char *from;   /* TIME, or a window of a field */
    const char *to;     /* likewise */
    const char *cursor; /* WINDOW:SEQ */
} spill_cli_bucket_read_t;

spill_code_t spill_cli_bucket_read(const spill_cli_session_t *session,
                                   const spill_cli_bucket_read_t *read, spill_error_t *error);

/* count: of all windows together. */
spill_code_t spill_cli_bucket_count(const spill_cli_session_t *session, spill_error_t *error);

/* stats of an owner: a line for each window, and one for all of them. */
spill_code_t spill_cli_bucket_stats(const spill_cli_session_t *session, spill_error_t *error);

/* Call a function with each window of the session's owner in the place of its owner. */
spill_code_t spill_cli_each_window(const spill_cli_session_t *session, spill_cli_work_fn work,
                                   spill_error_t *error);

/* Print the address of an owner's oldest element; nothing where there is none. */
spill_code_t spill_cli_bucket_oldest(const spill_cli_session_t *session, spill_error_t *error);

/* SPILL_NOT_FOUND: the owner has no window. */
spill_code_t spill_cli_bucket_exists(const spill_cli_session_t *session, spill_error_t *error);

#endif
