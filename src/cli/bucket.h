/* Commands on a definition of layout bucket: an owner's elements are in its windows. */
#ifndef SPILL_CLI_BUCKET_H
#define SPILL_CLI_BUCKET_H

#include "cli/cli.h"

bool spill_cli_is_bucket(const spill_cli_session_t *session);

/* An element's address on the command line: SEQ, or WINDOW:SEQ in a bucket. */
typedef struct spill_cli_address {
    char window[SPILL_WINDOW_SIZE]; /* "": not given */
    int64_t seq;
} spill_cli_address_t;

/* Parse an address. If it is none, print what is wrong and return false. */
bool spill_cli_parse_address(const spill_invocation_t *invocation, const char *text,
                             spill_cli_address_t *address);

/*
 * The owner (in the sense of array.h) of the element at the address: the session's owner, or in a
 * bucket one of its windows, which lives in `storage`. SPILL_INVALID: a bucket needs a window, and
 * other layouts allow none.
 */
spill_code_t spill_cli_address_owner(const spill_cli_session_t *session,
                                     const spill_cli_address_t *address, bson_t *storage,
                                     spill_value_t *owner, spill_error_t *error);

/*
 * Append a batch and print the result. With `op`, all elements must be in one window. Its base is
 * set, or -1: then the base is read, and ID@BASE printed.
 */
spill_code_t spill_cli_bucket_append(const spill_cli_session_t *session,
                                     const spill_value_t *elements, size_t count, spill_op_t *op,
                                     bool fill, spill_error_t *error);

/* The options of `read`. Texts may be NULL. */
typedef struct spill_cli_bucket_read {
    int64_t limit;
    bool oldest;
    const char *from;   /* TIME, or a window of a field */
    const char *to;     /* TIME, or a window of a field */
    const char *cursor; /* WINDOW:SEQ */
} spill_cli_bucket_read_t;

spill_code_t spill_cli_bucket_read(const spill_cli_session_t *session,
                                   const spill_cli_bucket_read_t *read, spill_error_t *error);

/* count: all windows together. */
spill_code_t spill_cli_bucket_count(const spill_cli_session_t *session, spill_error_t *error);

/* stats of an owner: a line for each window, and one for all windows. */
spill_code_t spill_cli_bucket_stats(const spill_cli_session_t *session, spill_error_t *error);

/* Call a function for each window of the session's owner, with the window as the owner. */
spill_code_t spill_cli_each_window(const spill_cli_session_t *session, spill_cli_work_fn work,
                                   spill_error_t *error);

/* Print the address of an owner's oldest element; nothing if it has none. */
spill_code_t spill_cli_bucket_oldest(const spill_cli_session_t *session, spill_error_t *error);

/* SPILL_NOT_FOUND: the owner has no window. */
spill_code_t spill_cli_bucket_exists(const spill_cli_session_t *session, spill_error_t *error);

#endif
