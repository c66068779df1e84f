/*
 * Shared by commands that move data on a store in use: they act only with --execute, at a bounded
 * rate, can be paused and interrupted, and write a log.
 */
#ifndef SPILL_CLI_OPERATE_H
#define SPILL_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "tools/throttle.h"

typedef struct spill_cli_operate_given {
    bool execute;
    int64_t rate; /* 0: not given, as for the others */
    int64_t latency_ms;
    int64_t chunk_ms;
    const char *pause_file;
    const char *log;
} spill_cli_operate_given_t;

/*
 * Rows for a command's options; its struct `type` has a spill_cli_operate_given_t as `member`. The
 * first are for commands that act only with --execute, the second for those that act at once (they
 * set `execute` themselves).
 */
#define SPILL_CLI_OPERATE_OPTIONS(type, member, units)                                             \
    {"execute", NULL, SPILL_OPTION_FLAG, offsetof(type, member.execute),                           \
     "Act. Without it, print what would be done, and change nothing"},                             \
        SPILL_CLI_PACE_OPTIONS(type, member, units)
#define SPILL_CLI_PACE_OPTIONS(type, member, units)                                                \
    {"rate", "N", SPILL_OPTION_NUMBER, offsetof(type, member.rate),                                \
     "At most N " units " per second (not limited)"},                                              \
        {"max-latency", "MS", SPILL_OPTION_NUMBER, offsetof(type, member.latency_ms),              \
         "Wait while the server takes longer than MS milliseconds for a small read"},              \
        {"pause-file", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.pause_file),               \
         "Wait while this file exists"},                                                           \
    {                                                                                              \
        "log", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.log),                              \
            "Append what is done to this file, one line of JSON each"                              \
    }

/* The row for commands with chunks of variable size. */
#define SPILL_CLI_CHUNK_OPTION(type, member)                                                       \
    {                                                                                              \
        "chunk-time", "MS", SPILL_OPTION_NUMBER, offsetof(type, member.chunk_ms),                  \
            "Milliseconds that a chunk should take; its size follows (100)"                        \
    }

typedef struct spill_cli_operate {
    const spill_invocation_t *invocation;
    spill_cli_progress_t progress;
    FILE *log; /* NULL: none */
} spill_cli_operate_t;

/*
 * Begin: catch Ctrl-C, open the log, and set a throttle's options from the command line. `operate`
 * is their context, and must outlive them. SPILL_IO and the like: the log cannot be opened.
 */
spill_code_t spill_cli_operate_start(spill_cli_operate_t *operate,
                                     const spill_invocation_t *invocation,
                                     const spill_cli_operate_given_t *given,
                                     spill_throttle_options_t *throttle, spill_error_t *error);

/* Append a document to the log, if there is one, and flush it. */
void spill_cli_operate_log(spill_cli_operate_t *operate, const bson_t *document);

/* SPILL_IO: an entry could not be written to the log. */
spill_code_t spill_cli_operate_end(spill_cli_operate_t *operate, spill_error_t *error);

#endif
