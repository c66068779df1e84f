/*
 * A command of the program: one row of a table. Options are rows too; each is stored by its kind at
 * an offset of the command's own options struct, so no command parses anything itself.
 */
#ifndef SPILL_CLI_COMMAND_H
#define SPILL_CLI_COMMAND_H

#include <spillway/spillway.h>

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The program's exit codes; spill_cli_exit_code maps error codes to them. */
typedef enum spill_exit {
    SPILL_EXIT_DONE = 0,
    SPILL_EXIT_FOUND = 1,         /* a check ran and found something */
    SPILL_EXIT_USAGE = 2,         /* the command line is wrong */
    SPILL_EXIT_FAILED = 3,        /* the store or a file failed */
    SPILL_EXIT_REFUSED = 4,       /* it would have broken a bound or a guard */
    SPILL_EXIT_INTERRUPTED = 130, /* Ctrl-C: the output is incomplete */
} spill_exit_t;

typedef enum spill_option_kind {
    SPILL_OPTION_FLAG,    /* bool */
    SPILL_OPTION_NUMBER,  /* int64_t, 0 or more */
    SPILL_OPTION_SIZE,    /* int64_t, bytes, with an optional unit */
    SPILL_OPTION_TEXT,    /* const char * */
    SPILL_OPTION_LIMIT,   /* int64_t; the argument may be left out: no limit (INT64_MAX) */
    SPILL_OPTION_OLD_NAME /* another name, which is not shown, of the option in `argument` */
} spill_option_kind_t;

typedef struct spill_option {
    const char *name;
    const char *argument; /* its name in the help; NULL for a flag */
    spill_option_kind_t kind;
    size_t offset; /* in the command's options struct */
    const char *help;
} spill_option_t;

typedef struct spill_command spill_command_t;

/*
 * Options that several commands share. All have --quiet, --verbose and --color, and --json unless
 * they say otherwise.
 */
#define SPILL_COMMON_JSON 1U
#define SPILL_COMMON_QUIET 2U
#define SPILL_COMMON_DURABILITY 4U
#define SPILL_COMMON_PARTIAL 8U /* the command reads: an embedded store may be damaged */
#define SPILL_COMMON_MODE 16U
#define SPILL_COMMON_DRY_RUN 32U
#define SPILL_COMMON_NO_JSON 64U /* its output is no result: there is no --json */
#define SPILL_COMMON_FOLDS 128U  /* no option: without --json, a terminal gets text (cli/fold.h) */

/* One row of the help for an option that several commands share (arguments.c). */
typedef struct spill_common_option {
    unsigned flag; /* the commands that have it; 0: all */
    char letter;   /* or 0 */
    const char *name, *argument, *help;
} spill_common_option_t;

/* Ended by a row without a name. */
extern const spill_common_option_t spill_common_options[];

bool spill_common_belongs(const spill_common_option_t *option, const spill_command_t *command);

/* A parsed command line. `options` is the command's own struct. Everything is borrowed. */
typedef struct spill_invocation {
    const spill_command_t *command;
    char **words; /* the command line from the command's name on, ended by NULL */
    char **arguments;
    int argument_count;
    const void *options;
    bool json;
    bool quiet;
    bool verbose;
    bool dry_run;
    bool partial;
    spill_durability_t durability;
    unsigned mode; /* permissions of the files that the command creates */
    bool mode_given;
} spill_invocation_t;

struct spill_command {
    const char *name;
    const char *arguments; /* "STORE NAME OWNER" */
    int arguments_min;
    int arguments_max; /* INT_MAX: any number */
    const char *summary;
    const char *text; /* details and examples, after the options in the help */
    unsigned common;
    const char *walked;      /* of owners, in its progress: "verified"; NULL: it shows none */
    const char *interrupted; /* after a Ctrl-C: how to continue; NULL: it has its own message */
    spill_durability_t durability; /* the default; usually fsync */
    const spill_option_t *options; /* ended by a row without a name; may be NULL */
    const void *defaults;          /* the initial options struct */
    size_t options_bytes;          /* at most SPILL_OPTIONS_BYTES_MAX */
    spill_exit_t (*run)(const spill_invocation_t *invocation);
};

#define SPILL_OPTIONS_BYTES_MAX 512

/* A group of commands in the help. */
typedef struct spill_command_group {
    const char *title;
    const spill_command_t *const *commands; /* ended by NULL */
} spill_command_group_t;

/* Every command of the program, in groups; ended by a row without a title (command_table.c). */
extern const spill_command_group_t spill_command_groups[];

/* The next command after *group and *at, which begin at 0; NULL after the last one. */
const spill_command_t *spill_command_next(size_t *group, size_t *at);

extern const spill_command_t spill_command_append;
extern const spill_command_t spill_command_backup;
extern const spill_command_t spill_command_bench;
extern const spill_command_t spill_command_completion;
extern const spill_command_t spill_command_consolidate;
extern const spill_command_t spill_command_contains;
extern const spill_command_t spill_command_control;
extern const spill_command_t spill_command_convert;
extern const spill_command_t spill_command_copy;
extern const spill_command_t spill_command_count;
extern const spill_command_t spill_command_define;
extern const spill_command_t spill_command_drop;
extern const spill_command_t spill_command_edit;
extern const spill_command_t spill_command_explain;
extern const spill_command_t spill_command_export;
extern const spill_command_t spill_command_import;
extern const spill_command_t spill_command_migrate;
extern const spill_command_t spill_command_owners;
extern const spill_command_t spill_command_plan;
extern const spill_command_t spill_command_plan_set;
extern const spill_command_t spill_command_read;
extern const spill_command_t spill_command_remove;
extern const spill_command_t spill_command_report;
extern const spill_command_t spill_command_restore;
extern const spill_command_t spill_command_scan;
extern const spill_command_t spill_command_serve;
extern const spill_command_t spill_command_stats;
extern const spill_command_t spill_command_status;
extern const spill_command_t spill_command_sweep;
extern const spill_command_t spill_command_threshold;
extern const spill_command_t spill_command_trim;
extern const spill_command_t spill_command_update;
extern const spill_command_t spill_command_verify;
extern const spill_command_t spill_command_repair;

/*
 * Parse the command line (argv[0] is the command's name) and run the command. Ends the program
 * after --help and, with exit code 2, after an invalid option.
 */
spill_exit_t spill_command_run(const spill_command_t *command, int argc, char **argv);

#endif
