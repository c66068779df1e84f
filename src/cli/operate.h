/*
 * Shared by commands that move data on a store in use: they act only with --execute, at a bounded
 * rate, can be paused and interrupted, and write a log.
 */
#ifndef SPILL_CLI_OPERATE_H
#define SPILL_CLI_OPERATE_H

#include "cli/cli.h"
#include "cli/control.h"
#include "cli/job_log.h"
#include "cli/process.h"
#include "cli/skipped_owners.h"
#include "service/job_metrics.h"
#include "store/replication.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/planned.h"
#include "tools/migrate/staged.h"
#include "tools/parallel.h"
#include "tools/throttle.h"

typedef struct spill_cli_operate_given {
    bool execute;
    int64_t rate; /* 0: not given, as for the others */
    int64_t threads;
    int64_t latency_ms;
    int64_t lag_s;
    int64_t chunk_ms;
    const char *pause_file;
    const char *log;
    const char *control;
    const char *metrics;
} spill_cli_operate_given_t;

/*
 * Rows for a command's options; its struct `type` has a spill_cli_operate_given_t as `member`. The
 * first are for commands that act only with --execute, the second for those that act at once (they
 * set `execute` themselves). `units` is what --rate counts.
 */
#define SPILL_CLI_RATE_OF_OWNERS "elements per second, on average: a long array moves in steps"
#define SPILL_CLI_OPERATE_OPTIONS(type, member, units)                                             \
    {"execute", NULL, SPILL_OPTION_FLAG, offsetof(type, member.execute),                           \
     "Act. Without it, print what would be done, and change nothing"},                             \
        SPILL_CLI_PACE_OPTIONS(type, member, units)
#define SPILL_CLI_PACE_OPTIONS(type, member, units)                                                \
    {"rate", "N", SPILL_OPTION_NUMBER, offsetof(type, member.rate),                                \
     "At most N " units " (not limited)"},                                                         \
        {"max-latency", "MS", SPILL_OPTION_NUMBER, offsetof(type, member.latency_ms),              \
         "Wait while the server takes longer than MS milliseconds for a small read"},              \
        {"max-lag", "SECONDS", SPILL_OPTION_NUMBER, offsetof(type, member.lag_s),                  \
         "Replica set: wait while a secondary is further behind the primary"},                     \
        {"pause-file", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.pause_file),               \
         "Wait while this file exists"},                                                           \
        {"control", "PATH", SPILL_OPTION_TEXT, offsetof(type, member.control),                     \
         "A socket for `spillway control', which watches and changes the running job"},            \
        {"metrics", "[ADDRESS:]PORT", SPILL_OPTION_TEXT, offsetof(type, member.metrics),           \
         "Serve /metrics (Prometheus) and /healthz by HTTP; without ADDRESS on 127.0.0.1"},        \
    {                                                                                              \
        "log", "FILE", SPILL_OPTION_TEXT, offsetof(type, member.log),                              \
            "Append what happens to this file, one line of JSON each, with its time"               \
    }

/* The row for commands with chunks of variable size. */
#define SPILL_CLI_CHUNK_OPTION(type, member)                                                       \
    {                                                                                              \
        "chunk-time", "MS", SPILL_OPTION_NUMBER, offsetof(type, member.chunk_ms),                  \
            "Milliseconds that a chunk should take; its size follows (100)"                        \
    }

/* The row for commands with several threads; `work` is what N of them do at the same time. */
#define SPILL_CLI_THREADS_OPTION(type, member, work)                                               \
    {                                                                                              \
        "threads", "N", SPILL_OPTION_NUMBER, offsetof(type, member.threads),                       \
            work " N at the same time (4; with --max-latency 1)"                                   \
    }

/* Set *threads to the number given, or to the default. */
spill_exit_t spill_cli_operate_threads(const spill_invocation_t *invocation,
                                       const spill_cli_operate_given_t *given, int *threads);

typedef struct spill_cli_operate {
    const spill_invocation_t *invocation;
    spill_cli_progress_t progress;
    spill_job_pace_t pace;
    spill_cli_control_t control;
    spill_job_metrics_t metrics;         /* counted in every case */
    spill_http_server_t *metrics_server; /* NULL: nobody can read them */
    spill_replication_t *replication;    /* NULL: the lag is not measured */
    double lag_s;                        /* measured last, at: */
    int64_t lag_at_us;
    spill_cli_job_log_t log;
    atomic_bool stops;                    /* the log has the event "stop" */
    char ended[SPILL_ERROR_MESSAGE_SIZE]; /* why the job ended; "": the error says it */
} spill_cli_operate_t;

/*
 * Begin: catch Ctrl-C, open the log, and set a throttle's options from the command line. `operate`
 * is their context, and must outlive them. The log's first line has the version and the words of
 * the command. Then the server is reached. SPILL_IO and the like: the log cannot be opened.
 */
spill_code_t spill_cli_operate_start(spill_cli_operate_t *operate,
                                     const spill_invocation_t *invocation,
                                     const spill_cli_operate_given_t *given,
                                     spill_throttle_options_t *throttle, spill_error_t *error);

/* Was the job asked to stop (Ctrl-C, SIGTERM)? The first call that returns true logs it. Any
 * thread. */
bool spill_cli_operate_stops(spill_cli_operate_t *operate);

/* Append an event with its fields (may be NULL) to the log, if there is one. Any thread. */
void spill_cli_operate_log(spill_cli_operate_t *operate, const char *event, const bson_t *fields);

/* Append a message as a field, without secrets. */
void spill_cli_append_message(bson_t *fields, const char *name, const char *message);

/* Log the result of a pass, and (the second) print it on stdout, too. */
void spill_cli_operate_log_pass(spill_cli_operate_t *operate, const spill_record_t *type,
                                const void *result);
void spill_cli_operate_print(spill_cli_operate_t *operate, const spill_record_t *type,
                             const void *result);

/*
 * End a job with `code`, and with *error if that is not SPILL_OK. The last line of the log has the
 * reason. Returns `code`; if that is SPILL_OK and the log lacks lines, the log's error.
 */
spill_code_t spill_cli_operate_end(spill_cli_operate_t *operate, spill_code_t code,
                                   spill_error_t *error);

/* ---- migrate and sweep ----------------------------------------------------------------------- */

/*
 * A run of migrate or sweep: the store, the throttle, and what is printed during the run and after
 * each pass.
 */

/* `operate` comes first: it is the throttle's context. */
typedef struct spill_cli_migrate {
    spill_cli_operate_t operate;
    const spill_invocation_t *invocation;
    spill_store_t *store;
    spill_throttle_t throttle;
    spill_probe_t probe;
    int threads;
    const spill_planned_t *entry;         /* of the plan; NULL in sweep */
    const spill_definition_t *definition; /* of the current array */
    const spill_planned_t *planned;       /* the array is copied to it in stages; or NULL */
    const spill_definition_t *target;     /* elements are copied to it from there; or NULL */
    const char *name;                     /* of the planned, or the swept, definition */
    char uri[SPILL_CLI_URI];              /* of a server, or "" */
    spill_migrate_result_t survey;        /* what had to be done; zero: not known */
    spill_migrate_result_t shown;         /* the progress that was reported last */
    bool shows;                           /* there is one of the current pass */
    double delay_s;                       /* for which --rate delays the next owner */
    int64_t owners;                       /* that were worked on */
    int64_t done;                         /* of these, not skipped */
    spill_migrate_result_t last;          /* of the last step */
    const spill_value_t *owner;           /* of an undo; NULL: all */
    int64_t failed;
    int64_t printed; /* owners that a pass skipped; the first ten are on stderr */
    spill_cli_skipped_owners_t skipped;
    bool resumes; /* a pass may begin where an interrupted one ended */
    bool undoes;  /* owners become unmanaged */
    bool watches; /* passes follow each other, and an idle one is seldom reported */
    /* Monotonic: when the last pass was reported, if that was idle; else 0. [1]: of catching up */
    int64_t idle_us[2];
    bool refused;    /* a definition of the plan was skipped */
    bool unfinished; /* a definition still has its original: --finish is needed */
} spill_cli_migrate_t;

typedef spill_code_t (*spill_cli_migrate_fn)(spill_cli_migrate_t *run, spill_error_t *error);

/* Open the store, do `work`, close it. Returns the exit code. */
spill_exit_t spill_cli_migrate_operate(const spill_invocation_t *invocation,
                                       const spill_cli_operate_given_t *given,
                                       spill_cli_mode_t mode, spill_cli_migrate_fn work);

/* Callbacks of a survey: print each owner that the migration will skip, and the reason. */
spill_migrate_options_t spill_cli_migrate_predictions(spill_cli_migrate_t *run);

/* The throttle, and callbacks that print and log owners. Their context is the run. */
spill_migrate_options_t spill_cli_migrate_hooks(spill_cli_migrate_t *run);

typedef spill_code_t (*spill_cli_pass_fn)(spill_array_t *array,
                                          const spill_migrate_options_t *options,
                                          spill_migrate_result_t *result, spill_error_t *error);

/* A pass over the arrays of run->definition. Its result is printed as `step`. */
spill_code_t spill_cli_migrate_pass(spill_cli_migrate_t *run, spill_cli_pass_fn pass,
                                    const char *step, spill_error_t *error);

/* If the definition's migration is being undone, end the undo, and say so: it migrates again. */
spill_code_t spill_cli_migrate_cancel_undo(const spill_cli_migrate_t *run, const char *name,
                                           spill_error_t *error);

/* Copy the original's arrays to definition `name`, and print their number. */
spill_code_t spill_cli_migrate_catch_up(spill_cli_migrate_t *run, const char *original,
                                        const char *name, spill_error_t *error);

/* A pass of a watch ended well: log the owners that the pass before skipped and this one did not.
 */
void spill_cli_migrate_end_pass(spill_cli_migrate_t *run);

/* Print what must be done, as text or as JSON. */
void spill_cli_migrate_print_survey(const spill_cli_migrate_t *run);

/* `code`: SPILL_OK, or SPILL_CANCELLED if the pass was interrupted. */
void spill_cli_migrate_print_result(spill_cli_migrate_t *run, const char *step, spill_code_t code,
                                    const spill_migrate_result_t *result);

/* Print the line that ends --finish. `compared` has the numbers of the comparison. */
void spill_cli_migrate_print_finished(spill_cli_migrate_t *run, int64_t owners,
                                      const spill_copy_result_t *compared);

/* ---- the two stages of migrate --------------------------------------------------------------- */

/* The two stages of migrate: in place under the original's name, then into the planned definition.
 */

/*
 * All work on run->planned and set run->definition. look prints what would be done; catch_up does
 * both stages; finish does them once more, and drops the original. Each prints a line of JSON.
 */
spill_code_t spill_cli_staged_look(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_catch_up(spill_cli_migrate_t *run, spill_error_t *error);
spill_code_t spill_cli_staged_finish(spill_cli_migrate_t *run, spill_error_t *error);

typedef spill_code_t (*spill_cli_undo_fn)(const spill_staged_t *staged,
                                          const spill_migrate_options_t *options,
                                          spill_migrate_result_t *result, spill_error_t *error);

/* `undo`: spill_staged_undo, or the check before it; `step` is the word printed for it. */
spill_code_t spill_cli_staged_undo(spill_cli_migrate_t *run, spill_cli_undo_fn undo,
                                   const char *step, spill_error_t *error);

/*
 * Check an entry before any entry of the plan is migrated. *begins: some of its arrays still have
 * to be reshaped in place.
 */
spill_code_t spill_cli_staged_check(spill_cli_migrate_t *run, bool execute, bool finish,
                                    bool *begins, spill_error_t *error);

#endif
