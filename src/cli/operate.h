/*
 * What commands share that move data on a store in use: they act with --execute alone, at a bounded
 * rate, may be paused and interrupted, and keep a log.
 */
#ifndef SPILL_CLI_OPERATE_H
#define SPILL_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/progress.h"
#include "tools/throttle.h"

typedef struct spill_cli_operate_given {
    bool execute;
    int64_t rate; /* 0: not given; so are the others */
    int64_t latency_ms;
    int64_t chunk_ms;
    const char *pause_file;
    const char *log;
} spill_cli_operate_given_t;

/*
 * Rows of a command's options, which has a spill_cli_operate_given_t as `member` of its `type`: of
 * one that acts with --execute alone, and of one that acts at once (it sets `execute` itself).
 */
#define SPILL_CLI_OPERATE_OPTIONS(type, member, units)                                             \
    {"execute", NULL, SPILL_OPTION_FLAG, offsetof(type, member.execute),                           \
     "Act. Without it what would be done is said, and nothing is changed"},                        \
        SPILL_CLI_PACE_OPTIONS(type, member, units)
#define SPILL_CLI_PACE_OPTIONS(type, member, units)                                                \
    {"rate", "N", SPILL_OPTION_NUMBER, offsetof(type, member.rate),                                \
     "At most N " units " a second (as fast as can be)"},                                          \
        {"max-latency", "MS", SPILL_OPTION_NUMBER, offsetof(type, member.latency_ms),              \
         "Wait while the server takes longer than MS milliseconds for a small read"},              \
        {"pause-file", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.pause_file),               \
         "Wait while there is this file"},                                                         \
    {                                                                                              \
        "log", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.log),                              \
            "Append what is done to this file, a line of JSON each"                                \
    }

/* The row of one whose chunks are of any size. */
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
 * Begin: catch Ctrl-C, open the log, and fill in what of a throttle's options the command line
 * gave. `operate` is their context, and has to outlive them. SPILL_IO and the like: the log.
 */
spill_code_t spill_cli_operate_start(spill_cli_operate_t *operate,
                                     const spill_invocation_t *invocation,
                                     const spill_cli_operate_given_t *given,
                                     spill_throttle_options_t *throttle, spill_error_t *error);

/* Append a document to the log, where there is one, and to its file at once. */
void spill_cli_operate_log(spill_cli_operate_t *operate, const bson_t *document);

/* SPILL_IO: something did not get into the log. */
spill_code_t spill_cli_operate_end(spill_cli_operate_t *operate, spill_error_t *error);

#endif
