/* The program: it finds the command and runs it. */
#include "cli/cli.h"
#include "cli/command.h"
#include "cli/hint.h"
#include "cli/process.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- commands -------------------------------------------------------------------------------- */

/* NULL if there is no command of that name. */
static const spill_command_t *find_command(const char *name)
{
    size_t group = 0, at = 0;
    const spill_command_t *command;
    while ((command = spill_command_next(&group, &at)) != NULL && strcmp(command->name, name) != 0)
        ;
    return command;
}

/* The command with the most similar name, or NULL if none is similar. */
static const spill_command_t *nearest_command(const char *name)
{
    const spill_command_t *nearest = NULL;
    /* Beyond two letters it is another word; of a short name, beyond one. */
    size_t best = strlen(name) > 4 ? 3 : 2;
    size_t group = 0, at = 0;
    const spill_command_t *command;
    while ((command = spill_command_next(&group, &at)) != NULL) {
        size_t distance = spill_cli_word_distance(name, command->name);
        if (distance < best) {
            best = distance;
            nearest = command;
        }
    }
    return nearest;
}

/* ---- main ------------------------------------------------------------------------------------ */

/* Return larger blocks to the system when they are freed, so that large elements do not stay. */
#define LARGE_BLOCK_BYTES (256 * 1024)

static void print_help(FILE *stream)
{
    fputs("Usage: spillway COMMAND [ARGUMENT...] [OPTION...]\n"
          "Arrays without a limit, on documents with one.\n",
          stream);
    for (const spill_command_group_t *group = spill_command_groups; group->title; group++) {
        fprintf(stream, "\n%s:\n", group->title);
        for (const spill_command_t *const *command = group->commands; *command; command++)
            fprintf(stream, "  %-11s %s\n", (*command)->name, (*command)->summary);
    }
    fputs("\n"
          "'spillway help COMMAND' and 'spillway COMMAND --help' say more, with examples.\n"
          "\n"
          "STORE is a folder (a path, or rocksdb:PATH), a database on a server\n"
          "(mongodb://HOST:PORT/DATABASE), @FILE for a file that contains one of these,\n"
          "or env: for the environment variable SPILLWAY_URI. The last two keep a\n"
          "password out of the command line. NAME is a definition's name. Where a FILE is\n"
          "read, - is stdin. Sizes take units: 200KB is 200 000 bytes, 16MiB 16 777 216.\n"
          "\n"
          "Every command has -q (no progress, no remarks), -v (more of both), --color and\n"
          "--help; all but serve have --json. Text for people may change; JSON stays.\n"
          "\n"
          "Exit codes: 0 done; 1 a check found something; 2 usage; 3 the store or a file\n"
          "failed, or something named does not exist; 4 refused, because it would break a\n"
          "bound or a guard; 130 interrupted, after a part.\n",
          stream);
}

static spill_exit_t unknown_command(const char *name)
{
    const spill_command_t *nearest = nearest_command(name);
    if (nearest)
        spill_cli_say("there is no command '%s'; did you mean '%s'?", name, nearest->name);
    else
        spill_cli_say("there is no command '%s'", name);
    fputs("Try 'spillway --help'.\n", stderr);
    return SPILL_EXIT_USAGE;
}

static spill_exit_t run_command(const char *name, int argc, char **argv)
{
    const spill_command_t *command = find_command(name);
    if (!command)
        return unknown_command(name);
    return spill_command_run(command, argc, argv);
}

/* "spillway help COMMAND" is "spillway COMMAND --help". */
static spill_exit_t run_help(int argc, char **argv)
{
    if (argc < 3) {
        print_help(stdout);
        return SPILL_EXIT_DONE;
    }
    char option[] = "--help";
    char *arguments[] = {argv[2], option, NULL};
    return run_command(argv[2], 2, arguments);
}

/*
 * The server's driver shares its counters in a file in /dev/shm from the moment it is loaded. A
 * short-lived program does not need them, and if it is killed the file would stay.
 */
static void forget_driver_counters(void)
{
    char name[32];
    snprintf(name, sizeof name, "/mongoc-%d", (int)getpid());
    shm_unlink(name);
}

int main(int argc, char **argv)
{
    spill_cli_prepare_process();
    spill_cli_report_lost_memory();
    forget_driver_counters();
    spill_cli_filter_messages();
    atexit(spill_cli_check_output);
    if (argc < 2) {
        print_help(stderr);
        return SPILL_EXIT_USAGE;
    }
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    const char *first = argv[1];
    if (strcmp(first, "--version") == 0 || strcmp(first, "-V") == 0) {
        printf("spillway %s\n", spill_version());
        return SPILL_EXIT_DONE;
    }
    if (strcmp(first, "--help") == 0 || strcmp(first, "-h") == 0 || strcmp(first, "help") == 0)
        return (int)run_help(strcmp(first, "help") == 0 ? argc : 1, argv);
    return (int)run_command(first, argc - 1, argv + 1);
}
