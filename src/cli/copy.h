/* Shared by copy and convert: options, output during the run, and the exit code. */
#ifndef SPILL_CLI_COPY_H
#define SPILL_CLI_COPY_H

#include "cli/cli.h"
#include "cli/process.h"
#include "tools/definition_jobs.h"

typedef struct spill_cli_copy_given {
    int64_t threshold; /* 0: not given, as for the others */
    int64_t page;
    int64_t head_bytes;
    int64_t page_bytes;
    bool no_verify;
} spill_cli_copy_given_t;

/* Rows for a command's options; its struct `type` has a spill_cli_copy_given_t as `member`. */
#define SPILL_CLI_COPY_OPTIONS(type, member)                                                       \
    {"threshold", "N", SPILL_OPTION_NUMBER, offsetof(type, member.threshold),                      \
     "Elements that a new head is meant to hold; capped: the most"},                               \
        {"page", "N", SPILL_OPTION_NUMBER, offsetof(type, member.page),                            \
         "Most elements in a new page"},                                                           \
        {"max-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.head_bytes),                \
         "Most bytes of a new head, and of a new page"},                                           \
        {"page-bytes", "SIZE", SPILL_OPTION_SIZE, offsetof(type, member.page_bytes),               \
         "Most bytes of a new page, if different"},                                                \
    {                                                                                              \
        "no-verify", NULL, SPILL_OPTION_FLAG, offsetof(type, member.no_verify),                    \
            "Do not read both arrays again to compare them"                                        \
    }

/* One run of a command that copies. Zero it first. */
typedef struct spill_cli_copy {
    const spill_invocation_t *invocation;
    spill_copy_result_t result; /* for spill_copy to add to */
    spill_cli_progress_t progress;
    spill_store_t *source;    /* has the definitions to copy; owners_all counts their owners */
    const char *const *names; /* ended by NULL */
    int64_t owners_all;       /* -1: not counted yet, 0: unknown */
    int64_t unmanaged;        /* arrays that are left out, because Spillway does not manage them */
} spill_cli_copy_t;

/* `names`, ended by NULL, are the definitions of `source` that will be copied; both are borrowed.
 */
void spill_cli_copy_start(spill_cli_copy_t *copy, const spill_invocation_t *invocation,
                          spill_store_t *source, const char *const *names);

/* Set a copy's options from the command line, and its callbacks to print progress and differences.
 */
void spill_cli_copy_hook(spill_cli_copy_t *copy, const spill_cli_copy_given_t *given,
                         spill_copy_options_t *options);

/*
 * Count the unmanaged arrays of the definitions, which a copy leaves out, and print a line for each
 * definition that has some. Call it before a definition is dropped. Only names of owners are read.
 */
spill_code_t spill_cli_copy_count_unmanaged(spill_cli_copy_t *copy, spill_error_t *error);

/* The summary: one line of JSON on stdout, and the speed on stderr. */
void spill_cli_copy_print_result(const spill_cli_copy_t *copy);

/*
 * The exit code of the command. `code` is the result of the work, and `closed` the result of
 * closing the stores. After an error, print on stderr that copied elements stay. Differences and
 * unmanaged arrays make it 1.
 */
spill_exit_t spill_cli_copy_exit(const spill_cli_copy_t *copy, spill_code_t code,
                                 spill_exit_t closed);

/* If Ctrl-C ended the work (by `code`), set a message that says how to continue. */
spill_code_t spill_cli_copy_interrupted(const spill_cli_copy_t *copy, spill_code_t code,
                                        spill_error_t *error);

#endif
