/*
 * How scan, plan and report read a source and print the result: their shared options, the scan
 * itself, and the findings as text for people.
 */
#ifndef SPILL_CLI_SCAN_OPTIONS_H
#define SPILL_CLI_SCAN_OPTIONS_H

#include "cli/command.h"
#include "tools/scan/scan.h"

/* A member of a command's own options. */
typedef struct spill_cli_scan_options {
    const char *format;
    const char *since;
    const char *collections;
    const char *read_preference;
    int64_t max_elements;
    int64_t max_bytes;
    int64_t max_share;
    int64_t document_limit;
    int64_t collection_limit;
    int64_t threads;
    int64_t sample;
    int64_t rate;
} spill_cli_scan_options_t;

#define SPILL_CLI_SCAN_DEFAULTS                                                                    \
    {                                                                                              \
        .max_elements = SPILL_SCAN_ELEMENTS, .max_bytes = SPILL_SCAN_BYTES,                        \
        .max_share = SPILL_SCAN_PAID_PER_CENT, .document_limit = SPILL_SCAN_DOCUMENT_LIMIT,        \
        .collection_limit = SPILL_SCAN_COLLECTIONS, .threads = 2                                   \
    }

/* Rows for a command's table of options; its struct `type` has the member. */
#define SPILL_CLI_SCAN_OPTIONS(type, member)                                                       \
    {"format", "F", SPILL_OPTION_TEXT, offsetof(type, member.format),                              \
     "ndjson, json, bson or archive, with .gz or .zst; by default from the file's name or its "    \
     "first bytes"},                                                                               \
        {"max-elements", "N", SPILL_OPTION_NUMBER, offsetof(type, member.max_elements),            \
         "Elements of an array, or keys of a map, that are too many (10000)"},                     \
        {"max-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.max_bytes),                 \
         "Bytes of an array or map in one document that are too many (200KiB)"},                   \
        {"max-share", "PERCENT", SPILL_OPTION_NUMBER, offsetof(type, member.max_share),            \
         "Percentage of a document that makes reads of its other fields pay for an array (80)"},   \
        {"document-limit", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.document_limit),       \
         "Most bytes of a document in the database (16MiB)"},                                      \
        {"collection-limit", "N", SPILL_OPTION_NUMBER, offsetof(type, member.collection_limit),    \
         "Most collections in the database (1000)"},                                               \
        {"since", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.since),                         \
         "Compare with an earlier scan, and show what is new; FILE has the output of "             \
         "scan --json"},                                                                           \
        {"threads", "N", SPILL_OPTION_NUMBER, offsetof(type, member.threads), "1 or 2 (2)"},       \
        {"collections", "LIST", SPILL_OPTION_TEXT, offsetof(type, member.collections),             \
         "Server: only these collections, separated by commas"},                                   \
        {"sample", "N", SPILL_OPTION_NUMBER, offsetof(type, member.sample),                        \
         "Server: N documents of each collection, chosen by the server"},                          \
        {"rate", "N", SPILL_OPTION_NUMBER, offsetof(type, member.rate),                            \
         "Server: at most N documents per second"},                                                \
    {                                                                                              \
        "read-preference", "MODE", SPILL_OPTION_TEXT, offsetof(type, member.read_preference),      \
            "Server: primary, primaryPreferred, secondary, secondaryPreferred or nearest"          \
    }

/*
 * Scan the first argument, a source or @FILE for a file that has a server's URI. Print progress on
 * stderr. Ctrl-C ends the scan with its results so far. *result is filled in every case, for
 * spill_scan_release. On an error, print the reason and return the exit code.
 */
spill_exit_t spill_cli_scan(const spill_invocation_t *invocation,
                            const spill_cli_scan_options_t *given, spill_scan_result_t *result);

/* What a command does with a scan; it returns an error if it cannot write. */
typedef spill_code_t (*spill_cli_use_scan_fn)(const spill_invocation_t *invocation,
                                              const spill_scan_result_t *result,
                                              spill_error_t *error);

/*
 * Scan the first argument and use the result. If it is a file that scan --json printed, or stdin
 * without --format, read the result instead: it was scanned with options of its own. `target` is
 * the option of that name. Prints errors and returns the exit code.
 */
spill_exit_t spill_cli_with_scan(const spill_invocation_t *invocation,
                                 const spill_cli_scan_options_t *given, int64_t target,
                                 spill_cli_use_scan_fn use);

/* The exit code of a result: interrupted, failed if the input had damage, or done. */
spill_exit_t spill_cli_scan_exit(const spill_scan_result_t *result);

/* ---- the result as text ---------------------------------------------------------------------- */

/* The source's name for output: as it was given, for a server without a password. */
const char *spill_cli_shown_source(const spill_invocation_t *invocation,
                                   const spill_scan_result_t *result);

/* For spill_scan_options_t: show the progress of a scan; the context is a spill_cli_progress_t. */
void spill_cli_show_scan(void *context, const spill_scan_progress_t *progress);

/* Print on stdout. `next`: with the next command, if an array has a finding. */
void spill_cli_print_scan(const spill_scan_result_t *result, bool next);

/* Print on stderr, one per line. */
void spill_cli_print_problems(const spill_scan_result_t *result);

/* Print their number on stderr, if there are any; for commands that do not print them. */
void spill_cli_remark_problems(const spill_scan_result_t *result);

#endif
