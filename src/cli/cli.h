/* What commands share: messages, exit codes, arguments, stores, output. */
#ifndef SPILL_CLI_CLI_H
#define SPILL_CLI_CLI_H

#include "cli/command.h"

/*
 * From now on everything that is printed on stderr passes one filter: secrets of connection strings
 * are replaced (util/redact.h), and characters that a reader would not see are written out
 * (util/text.h). Call it once, before anything is printed.
 */
void spill_cli_filter_messages(void);

/*
 * Print "spillway: MESSAGE" as one line on stderr. Use it for messages that quote names, owners or
 * arguments: a line end in those is written out, too.
 */
void spill_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The one table from error codes to exit codes. */
spill_exit_t spill_cli_exit_code(spill_code_t code);

/* Print "spillway: MESSAGE" on stderr; the exit code for the error. */
spill_exit_t spill_cli_fail(const spill_error_t *error);

/* Print a message and where help is to be had; SPILL_EXIT_USAGE. */
spill_exit_t spill_cli_usage(const spill_invocation_t *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Ask a question on the terminal, to which only "yes" is one: SPILL_EXIT_DONE. Else it says that
 * nothing was dropped, or that --yes is needed where there is no terminal, and returns the exit
 * code.
 */
spill_exit_t spill_cli_confirm(const spill_invocation_t *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- arguments ------------------------------------------------------------------------------- */

/*
 * "200KB" is 200 000, "16MiB" 16 777 216, "123" and "123B" are bytes; the case of letters does not
 * matter. False for anything else, and above 2^53.
 */
bool spill_cli_parse_size(const char *text, int64_t *size);

/* What spill_cli_parse_number takes, for messages: 2^53 is the most. */
#define SPILL_CLI_NUMBER "a number from 0 to 9007199254740992"
bool spill_cli_parse_number(const char *text, int64_t *number);

/* SEQ. Prints what is wrong and returns false when it is not a sequence number. */
bool spill_cli_parse_seq(const spill_invocation_t *invocation, const char *text, int64_t *seq);

/*
 * OWNER: Extended JSON where it is some, else a plain word, which is a string. Text that begins as
 * JSON does ({, [ or ") has to be JSON. The value lives in `storage` (initialized by the caller).
 */
bool spill_cli_parse_owner(const spill_invocation_t *invocation, const char *text, bson_t *storage,
                           spill_value_t *owner);

/* An element as an argument. Prints what is wrong and returns false when it is not JSON. */
bool spill_cli_parse_element(const spill_invocation_t *invocation, const char *text,
                             bson_t *storage, spill_value_t *element);

/* An element's id as an argument, likewise. */
bool spill_cli_parse_id(const spill_invocation_t *invocation, const char *text);

/* "90s", "30m", "12h", "30d", "2w": a number and a unit. False for anything else. */
bool spill_cli_parse_duration(const char *text, int64_t *seconds);

/*
 * A duration before `now_ms`, or a time as ISO 8601 has it, "2025-01-31" or "2025-01-31T12:00:00Z",
 * in milliseconds since 1970. False for anything else.
 */
bool spill_cli_parse_time(const char *text, int64_t now_ms, int64_t *time_ms);

/*
 * Let all files that this process makes from now on have these permissions, folders also x where
 * files have r. By the umask, since the engine makes files itself.
 */
void spill_cli_set_mode(unsigned file_mode);

/* ---- stores ---------------------------------------------------------------------------------- */

typedef enum spill_cli_mode { SPILL_CLI_READ, SPILL_CLI_WRITE, SPILL_CLI_CREATE } spill_cli_mode_t;

/* For spill_store_options_t: print errors and warnings of a store on stderr. */
void spill_cli_print_log(void *context, spill_log_level_t level, const char *message);

/*
 * Open STORE: a URI or path, "@FILE" for a file whose first line is one, "-" for the one in the
 * environment variable SPILLWAY_URI. READ opens read-only (so it works beside a writer), WRITE
 * needs an existing store, CREATE makes one.
 */
spill_code_t spill_cli_open_store(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_store_t **store, spill_error_t *error);

/*
 * What STORE names, in the place of @FILE (and of -) what these stand for. `uri` has SPILL_CLI_URI
 * bytes. SPILL_INVALID, SPILL_NOT_FOUND, SPILL_IO.
 */
enum { SPILL_CLI_URI = 4096 };
spill_code_t spill_cli_store_uri(const char *text, char uri[SPILL_CLI_URI], spill_error_t *error);

/* STORE NAME: open both. On an error both are NULL. */
spill_code_t spill_cli_open_array(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_store_t **store, spill_array_t **array,
                                  spill_error_t *error);

/*
 * Close both (either may be NULL). Reports `error` if `code` is one, else what closing reports, and
 * returns the exit code.
 */
spill_exit_t spill_cli_close(spill_array_t *array, spill_store_t *store, spill_code_t code,
                             spill_error_t *error);

/* What most commands are: STORE NAME [OWNER], opened, worked on, and closed. */
typedef struct spill_cli_session {
    const spill_invocation_t *invocation;
    spill_store_t *store;
    spill_array_t *array;
    const spill_value_t *owner; /* NULL where the command line has none */
    void *context;              /* the command's own */
} spill_cli_session_t;

typedef spill_code_t (*spill_cli_work_fn)(spill_cli_session_t *session, spill_error_t *error);

spill_exit_t spill_cli_with_array(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_cli_work_fn work);

/*
 * STORE [NAME]: the same for that array, or for each one of the store, without an owner. One that
 * has damage (SPILL_CORRUPT) does not keep the others from being worked on.
 */
spill_exit_t spill_cli_with_arrays(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                   spill_cli_work_fn work, void *context);

/* The same work in a session whose store is open: on the array NAME, or on each one. */
spill_code_t spill_cli_work_on_arrays(spill_cli_session_t *session, spill_cli_work_fn work,
                                      spill_error_t *error);

/* The same where what follows STORE NAME is not an owner. */
spill_exit_t spill_cli_with_file(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                 spill_cli_work_fn work, void *context);

/* ---- output ---------------------------------------------------------------------------------- */

/*
 * A value as Extended JSON, in which characters that a reader would not see are written as \uXXXX:
 * a parser reads the same value. NULL: JSON cannot hold it. Free it with bson_free.
 */
char *spill_cli_json(const spill_value_t *value, bool canonical);

/*
 * A value as Extended JSON on stdout, without a newline. In the place of one that JSON cannot hold
 * (a string in it is not UTF-8) stands null, and spill_cli_flush fails.
 */
void spill_cli_print_value(const spill_value_t *value, bool canonical);

/* A document as one line of Extended JSON on stdout. */
void spill_cli_print_document(const bson_t *document, bool canonical);

/* The form of a word that goes with a count. */
const char *spill_cli_plural(int64_t count, const char *one, const char *many);

/*
 * Print text for people on stdout, in which characters that a reader would not see are written out
 * (spill_visible_text). spill_cli_print keeps line ends.
 */
void spill_cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void spill_cli_print_name(const char *name);

/* Print the text as it stands in a JSON string, quotes included. */
void spill_cli_print_text(const char *text);

/* Say on stderr that an element is not printed, as JSON cannot hold it. spill_cli_flush fails. */
void spill_cli_leave_out(const spill_value_t *owner, int64_t seq);

/* The same of a document, which its first field names. */
void spill_cli_leave_out_document(const char *collection, const bson_t *document);

/* Print what verify or repair found: for --json as a document. `context` is the invocation. */
void spill_cli_print_finding(void *context, const spill_finding_t *finding);

/* Print a finding about the store as a whole; with --json as a document without a definition. */
void spill_cli_print_store_finding(const spill_invocation_t *invocation, const char *text);

/*
 * Flush stdout. SPILL_IO or SPILL_NO_SPACE when what was printed did not get out; SPILL_PARSE where
 * something could not be printed.
 */
spill_code_t spill_cli_flush(spill_error_t *error);

/* For atexit: ends the program with SPILL_EXIT_FAILED where the output did not get out unnoticed.
 */
void spill_cli_check_output(void);

/* SPILL_NOT_FOUND with the owner's name. */
spill_code_t spill_cli_no_owner(const spill_cli_session_t *session, spill_error_t *error);

/* SPILL_NOT_FOUND if the owner does not exist. Not for layout bucket (spill_cli_bucket_exists). */
spill_code_t spill_cli_check_owner(const spill_cli_session_t *session, spill_error_t *error);

#endif
