/* What commands share: messages, exit codes, arguments, stores, output. */
#ifndef SPILL_CLI_CLI_H
#define SPILL_CLI_CLI_H

#include "bson/record.h"
#include "cli/color.h"
#include "cli/command.h"
#include "cli/walk.h"

/*
 * From now on, everything printed on stderr passes one filter. It replaces secrets in connection
 * strings, and writes out invisible characters (util/text.h). Call it once, before anything is
 * printed.
 */
void spill_cli_filter_messages(void);

/*
 * From now on, write `wrap(line)` in place of each line of stderr; if it returns NULL, the line
 * itself. The program frees the result with bson_free. NULL: do not wrap. It is for a log that a
 * program reads, while libraries print to stderr too.
 */
typedef char *(*spill_cli_wrap_fn)(const char *line);
void spill_cli_wrap_messages(spill_cli_wrap_fn wrap);

/*
 * Print "spillway: MESSAGE" as one line on stderr. Use it for messages that quote names, owners or
 * arguments: it also writes out line ends in these.
 */
void spill_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code of an error code; this is the only table of them. */
spill_exit_t spill_cli_exit_code(spill_code_t code);

/* Print "spillway: MESSAGE" on stderr, and return the exit code of the error. */
spill_exit_t spill_cli_fail(const spill_error_t *error);

/* Print a message and how to get help; returns SPILL_EXIT_USAGE. */
spill_exit_t spill_cli_usage(const spill_invocation_t *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Ask a question on the terminal. Returns SPILL_EXIT_DONE if the answer is "yes". Otherwise prints
 * that nothing was changed, or that --yes is needed without a terminal, and returns the exit code.
 */
spill_exit_t spill_cli_confirm(const spill_invocation_t *invocation, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- arguments ------------------------------------------------------------------------------- */

/*
 * "200KB" is 200 000, "16MiB" 16 777 216, "123" and "123B" are bytes; upper and lower case are
 * equal. False for anything else, and above 2^53.
 */
bool spill_cli_parse_size(const char *text, int64_t *size);

/* The range of spill_cli_parse_number, for messages: at most 2^53. */
#define SPILL_CLI_NUMBER "a number from 0 to 9007199254740992"
bool spill_cli_parse_number(const char *text, int64_t *number);

/*
 * Parse OWNER: Extended JSON, else a plain word, which is a string. Text that begins like JSON ({,
 * [ or ") must be JSON. The value lives in `storage` (initialized by the caller).
 */
bool spill_cli_parse_owner(const spill_invocation_t *invocation, const char *text, bson_t *storage,
                           spill_value_t *owner);

/* Parse an element. If it is no JSON, print what is wrong and return false. */
bool spill_cli_parse_element(const spill_invocation_t *invocation, const char *text,
                             bson_t *storage, spill_value_t *element);

/* Check an element's id in the same way. */
bool spill_cli_parse_id(const spill_invocation_t *invocation, const char *text);

/* "90s", "30m", "12h", "30d", "2w": a number and a unit. False for anything else. */
bool spill_cli_parse_duration(const char *text, int64_t *seconds);

/*
 * Parse a duration before `now_ms`, or an ISO 8601 time such as "2025-01-31" or
 * "2025-01-31T12:00:00Z", into milliseconds since 1970. False for anything else.
 */
bool spill_cli_parse_time(const char *text, int64_t now_ms, int64_t *time_ms);

/*
 * Parse the name of a layout, or of the kept end; NULL leaves the value unchanged. SPILL_INVALID:
 * the message lists the names.
 */
spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error);
spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error);

/*
 * Give these permissions to all files that this process creates from now on; folders also get x
 * where files have r. It sets the umask, because the engine creates files itself.
 */
void spill_cli_set_mode(unsigned file_mode);

/* ---- stores ---------------------------------------------------------------------------------- */

typedef enum spill_cli_mode { SPILL_CLI_READ, SPILL_CLI_WRITE, SPILL_CLI_CREATE } spill_cli_mode_t;

/* For spill_store_options_t: print a store's errors and warnings on stderr. */
void spill_cli_print_log(void *context, spill_log_level_t level, const char *message);

/* Does the text name a URI that stands elsewhere: "@FILE" or "env:"? */
bool spill_cli_names_uri(const char *text);

/*
 * Open STORE: a URI or path, "@FILE" for a file with one in its first line, or "env:" for the one
 * in the environment variable SPILLWAY_URI ("-" too, with a warning). READ opens read-only (so it
 * works beside a writer), WRITE needs an existing store, CREATE creates one.
 */
spill_code_t spill_cli_open_store(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_store_t **store, spill_error_t *error);

/*
 * The URI or path of STORE, after resolving @FILE and env:. `uri` has SPILL_CLI_URI bytes.
 * SPILL_INVALID, SPILL_NOT_FOUND, SPILL_IO.
 */
enum { SPILL_CLI_URI = 4096 };
spill_code_t spill_cli_store_uri(const char *text, char uri[SPILL_CLI_URI], spill_error_t *error);

/*
 * If the URI is a server's, find the server and run one command there. Call it before interrupts
 * are caught: nothing else ends the driver's search for a server, which may take its whole timeout.
 * `preference` is a read preference, or NULL.
 */
spill_code_t spill_cli_reach_server(const char *uri, const char *preference, spill_error_t *error);

/*
 * Close both (either may be NULL). If `code` is an error, report `error`, else the error of
 * closing. Returns the exit code.
 */
spill_exit_t spill_cli_close(spill_array_t *array, spill_store_t *store, spill_code_t code,
                             spill_error_t *error);

/* The session of most commands: STORE NAME [OWNER] are opened, worked on and closed. */
typedef struct spill_cli_session {
    const spill_invocation_t *invocation;
    spill_store_t *store;
    spill_array_t *array;
    const spill_value_t *owner; /* NULL if the command line has none */
    void *context;              /* the command's own */
    spill_cli_walk_t walk;      /* progress, if the command's row says that it walks over owners */
    bool found; /* the work sets it: if nothing fails, the exit code is SPILL_EXIT_FOUND */
} spill_cli_session_t;

typedef spill_code_t (*spill_cli_work_fn)(spill_cli_session_t *session, spill_error_t *error);

spill_exit_t spill_cli_with_array(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                  spill_cli_work_fn work);

/*
 * STORE [NAME]: the same for that array, or for each array of the store, without an owner. If one
 * is damaged (SPILL_CORRUPT), the others are worked on all the same.
 */
spill_exit_t spill_cli_with_arrays(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                   spill_cli_work_fn work, void *context);

/* The same in a session with an open store: on the array NAME, or on each array. */
spill_code_t spill_cli_work_on_arrays(spill_cli_session_t *session, spill_cli_work_fn work,
                                      spill_error_t *error);

/* The same for commands whose argument after STORE NAME is no owner. */
spill_exit_t spill_cli_with_file(const spill_invocation_t *invocation, spill_cli_mode_t mode,
                                 spill_cli_work_fn work, void *context);

/* ---- output ---------------------------------------------------------------------------------- */

/*
 * A value as Extended JSON, with invisible characters written as \uXXXX: a parser reads the same
 * value. NULL: JSON cannot express it. Free it with bson_free.
 */
char *spill_cli_json(const spill_value_t *value, bool canonical);

/*
 * Print a value as Extended JSON on stdout, without a newline. If JSON cannot express it (a string
 * in it is not UTF-8), print null; spill_cli_flush then fails.
 */
void spill_cli_print_value(const spill_value_t *value, bool canonical);

/*
 * The document as relaxed Extended JSON, its own doubles with 15 digits: 0.21, not
 * 0.20999999999999999. For results and logs; names are our own. NULL: a value cannot be written.
 * Free it with bson_free.
 */
char *spill_cli_plain_json(const bson_t *document);

/* Print a document as one line of Extended JSON on stdout. */
void spill_cli_print_document(const bson_t *document, bool canonical);

/* Print a record (bson/record.h) as one line of JSON on stdout. Values that JSON cannot express are
 * null; spill_cli_flush then fails. */
void spill_cli_print_record(const spill_record_t *type, const void *record);

/* The same, with values as canonical Extended JSON. */
void spill_cli_print_canonical(const spill_record_t *type, const void *record);

/*
 * Print a result: a table on a terminal; with --json, and into a pipe or a file, one line of JSON.
 * (table.c)
 */
void spill_cli_print_result(const spill_invocation_t *invocation, const spill_record_t *type,
                            const void *record);
void spill_cli_print_result_document(const spill_invocation_t *invocation, const bson_t *document);

/*
 * With --json, print what a command has done to the session's owner: {"owner": ..., NAME: number},
 * and the window if there is one ("" or NULL: none). A number below 0 is null.
 */
void spill_cli_print_done(const spill_cli_session_t *session, const char *window, const char *name,
                          int64_t number);

/* Does spill_cli_print_result print a table? */
bool spill_cli_prints_tables(const spill_invocation_t *invocation);

/* Return `one` if the count is 1, else `many`. */
const char *spill_cli_plural(int64_t count, const char *one, const char *many);

/*
 * Print text for people on stdout, with invisible characters written out (spill_visible_text).
 * spill_cli_print keeps line ends.
 */
void spill_cli_print(const char *format, ...) __attribute__((format(printf, 1, 2)));
void spill_cli_print_name(const char *name);

/* Report on stderr an element that JSON cannot express and is left out; spill_cli_flush then fails.
 */
void spill_cli_leave_out(const spill_value_t *owner, int64_t seq);

/* The same for a document, which is named by its first field. */
void spill_cli_leave_out_document(const char *collection, const bson_t *document);

/* Print a finding of verify or repair; with --json as a document. `context`: the invocation. */
void spill_cli_print_finding(void *context, const spill_finding_t *finding);

/* Print a finding about the store as a whole; with --json as a document without a definition. */
void spill_cli_print_store_finding(const spill_invocation_t *invocation, const char *text);

/*
 * Flush stdout. SPILL_IO or SPILL_NO_SPACE: the output could not be written; SPILL_PARSE: something
 * was left out.
 */
spill_code_t spill_cli_flush(spill_error_t *error);

/* For atexit: end the program with SPILL_EXIT_FAILED if a failed write was not reported yet. */
void spill_cli_check_output(void);

/* SPILL_NOT_FOUND with the owner's name. */
spill_code_t spill_cli_no_owner(const spill_cli_session_t *session, spill_error_t *error);

/* SPILL_NOT_FOUND if the owner does not exist. Not for layout bucket (spill_cli_bucket_exists). */
spill_code_t spill_cli_check_owner(const spill_cli_session_t *session, spill_error_t *error);

/*
 * With --partial: read every element of the session's owner. SPILL_CORRUPT, after a warning for
 * each hole: some cannot be read, so the owner's counts are not those of its elements.
 * (read_export.c)
 */
spill_code_t spill_cli_check_readable(spill_cli_session_t *session, spill_error_t *error);

/* ---- arrays with windows (bucket.c) ---------------------------------------------------------- */

/* Commands on a definition of layout bucket: an owner's elements are in its windows. */

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
