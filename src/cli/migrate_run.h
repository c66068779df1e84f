/*
 * A run of migrate or sweep: the store, the throttle, and what is printed during the run and after
 * each pass.
 */
#ifndef SPILL_CLI_MIGRATE_RUN_H
#define SPILL_CLI_MIGRATE_RUN_H

#include "cli/operate.h"
#include "tools/migrate.h"
#include "tools/planned.h"
#include "tools/throttle.h"

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
    spill_migrate_result_t survey;        /* what had to be done */
    int64_t failed;
    bool refused;    /* a definition of the plan was skipped */
    bool unfinished; /* a definition still has its original: --finish is needed */
} spill_cli_migrate_t;

/* The option that both commands have. */
#define SPILL_CLI_THREADS_OPTION(type)                                                             \
    {                                                                                              \
        "threads", "N", SPILL_OPTION_NUMBER, offsetof(type, threads),                              \
            "Migrate N owners at the same time (4; with --max-latency 1)"                          \
    }

typedef spill_code_t (*spill_cli_migrate_fn)(spill_cli_migrate_t *run, spill_error_t *error);

/* Open the store, do `work`, close it. threads: 0 if not given. Returns the exit code. */
spill_exit_t spill_cli_migrate_operate(const spill_invocation_t *invocation,
                                       const spill_cli_operate_given_t *given, int64_t threads,
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

/* Copy the original's arrays to definition `name`, and print their number. */
spill_code_t spill_cli_migrate_catch_up(spill_cli_migrate_t *run, const char *original,
                                        const char *name, spill_error_t *error);

/* Print what must be done, as text or as JSON. */
void spill_cli_migrate_print_survey(const spill_cli_migrate_t *run);

void spill_cli_migrate_print_result(const spill_cli_migrate_t *run, const char *step,
                                    const spill_migrate_result_t *result);

/* Print the line that ends --finish. `compared` has the numbers of the comparison. */
void spill_cli_migrate_print_finished(const spill_cli_migrate_t *run, int64_t owners,
                                      const spill_copy_result_t *compared);

#endif
