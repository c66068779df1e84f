/*
 * What each command that reads does with a damaged store: damage in the middle of the newest log,
 * in an older log, in a table file, in CURRENT and in the list of files, for every layout.
 *
 * Without --partial a command fails and names the file, or prints what the sound store has. With
 * --partial, every element and every count that it prints is one of elements that can be read, and
 * all commands agree on their number.
 */
#include "fault/program.h"
#include "fault/second_log.h"
#include "support/child.h"
#include "support/definition.h"
#include "support/effort.h"
#include "support/embedded.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <spillway/bucket.h>

enum { OWNERS = 6, ELEMENTS = 1800, PATH_BYTES = 200, PLACES = 8, LOST_MAX = 600 };

static int complaints;
static int owner_step;        /* 1: check each owner alone; 2: every second one */
static char work[PATH_BYTES]; /* where the program runs */

static void require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "test_partial: %s\n", what);
    exit(1);
}

/* ---- base stores ----------------------------------------------------------------------------- */

static const char *const presets[] = {"feed-recent", "feed", "reviews-separate", "reviews-bucket",
                                      "reviews-subset"};
enum { PRESETS = sizeof presets / sizeof *presets };

typedef enum kind { CLOSED, KILLED, TWO_LOGS, KINDS } kind_t;

typedef struct base {
    const char *preset;
    kind_t kind;
    char folder[PATH_BYTES];
    char *sound; /* what export prints */
} base_t;

static void append_element(spill_array_t *array, int i)
{
    spill_error_t error;
    char name[16], text[61] = "";
    uint64_t random = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int at = 0; at < 60; at++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        text[at] = (char)('a' + random % 26);
    }
    snprintf(name, sizeof name, "o%d", i % OWNERS);
    bson_t storage = BSON_INITIALIZER, element = BSON_INITIALIZER;
    BSON_APPEND_DATE_TIME(&element, "createdAt", INT64_C(1750000000000) + i * INT64_C(3000000));
    BSON_APPEND_INT32(&element, "rating", i % 5);
    BSON_APPEND_UTF8(&element, "text", text);
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    spill_value_t value = spill_value_from_document(&element);
    bool bucket = spill_array_get_definition(array)->layout == SPILL_LAYOUT_BUCKET;
    spill_code_t code =
        bucket ? spill_bucket_append(array, &owner, &value, 1, NULL, NULL, NULL, &error)
               : spill_array_append(array, &owner, &value, 1, NULL, NULL, &error);
    require(code == SPILL_OK, error.message);
    bson_destroy(&element);
    bson_destroy(&storage);
}

static void append_range(spill_store_t *store, int first, int end)
{
    spill_error_t error;
    spill_array_t *array;
    require(spill_array_open(store, "ev", &array, &error) == SPILL_OK, error.message);
    for (int i = first; i < end; i++)
        append_element(array, i);
    spill_array_close(array);
}

static spill_store_t *open_base(const base_t *base)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    return embedded_in_folder(base->folder, &options);
}

/* A third of the elements is in a table file of its own, unless the layout is to have one file. */
static void write_base(const base_t *base)
{
    spill_error_t error;
    spill_definition_t definition;
    spill_store_t *store = open_base(base);
    require(spill_definition_preset(&definition, base->preset, "ev", &error) == SPILL_OK,
            error.message);
    definition.bounds.threshold = 20;
    definition.bounds.page_capacity = 30;
    if (base->kind == TWO_LOGS)
        definition_put_in_document(&definition, "activity");
    require(spill_store_define(store, &definition, &error) == SPILL_OK, error.message);
    append_range(store, 0, ELEMENTS / 3);
    embedded_close(store);
    store = open_base(base);
    append_range(store, ELEMENTS / 3, ELEMENTS);
    if (base->kind != CLOSED)
        raise(SIGKILL);
    embedded_close(store);
    child_end(0);
}

static int in_child(const base_t *base, bool second_log)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    require(child >= 0, "cannot fork");
    if (child == 0 && second_log)
        second_log_add(base->folder);
    if (child == 0)
        write_base(base);
    require(waitpid(child, &status, 0) == child, "cannot wait");
    return status;
}

/* ---- running the program --------------------------------------------------------------------- */

typedef struct injury {
    const base_t *base;
    char folder[PATH_BYTES];
    char file[64];
    int64_t place;
    bool log;     /* a log was damaged */
    bool useless; /* nothing can be read, also with --partial */
    char *part;   /* what export --partial prints */
    int64_t lines;
} injury_t;

static void complain(const injury_t *injury, const char *command, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void complain(const injury_t *injury, const char *command, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "VIOLATION (%s, %s at %" PRId64 "): %s ", injury->base->preset, injury->file,
            injury->place, command);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    complaints++;
}

/* The arguments are words; "STORE" and "PART" stand for the damaged store and a new folder. */
static program_end_t run(const injury_t *injury, const char *command)
{
    enum { WORDS_MAX = 12 };
    char copy[200];
    const char *words[WORDS_MAX + 1] = {0};
    snprintf(copy, sizeof copy, "%s", command);
    size_t count = 0;
    for (char *at = copy, *word; (word = strsep(&at, " ")) != NULL && count < WORDS_MAX;)
        words[count++] = strcmp(word, "STORE") == 0 ? injury->folder : word;
    program_end_t end = program_wait(work, program_start(work, NULL, words));
    if (end.status < 0)
        complain(injury, command, "ended with a signal");
    if (end.status != 0 && end.err[0] == '\0' && end.out[0] == '\0')
        complain(injury, command, "fails without a message");
    return end;
}

static int64_t count_lines(const char *text, const char *with)
{
    int64_t count = 0;
    while (*text != '\0') {
        const char *end = strchr(text, '\n');
        size_t length = end ? (size_t)(end - text) : strlen(text);
        count += memmem(text, length, with, strlen(with)) != NULL;
        text += length + (end != NULL);
    }
    return count;
}

/* The number behind `name` in a line of JSON; -1: there is none. */
static int64_t number_in(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoll(at + strlen(name), NULL, 10) : -1;
}

/* Are the lines of `part` lines of `whole`, in the same order? */
static bool is_part(const char *part, const char *whole)
{
    while (*part != '\0') {
        size_t length = strcspn(part, "\n") + 1;
        while (*whole != '\0' && strncmp(whole, part, length) != 0)
            whole += strcspn(whole, "\n") + 1;
        if (*whole == '\0')
            return false;
        part += length;
        whole += length;
    }
    return true;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static const char *const reading_commands[] = {
    "export STORE ev",  "export STORE ev --documents", "stats STORE",        "count STORE ev o3",
    "read STORE ev o3", "explain STORE ev o3",         "threshold STORE ev", "scan STORE",
    "plan STORE",       "backup STORE saved",          "copy STORE target"};
enum { COMMANDS = sizeof reading_commands / sizeof *reading_commands };

/* Without --partial a damaged log or list of files fails every command, and nothing is printed. */
static void check_refused(const injury_t *injury, const char *option)
{
    for (int i = 0; i < COMMANDS; i++) {
        char command[100];
        snprintf(command, sizeof command, "%s%s", reading_commands[i], option);
        program_end_t end = run(injury, command);
        if (end.status != 3 || end.out[0] != '\0')
            complain(injury, command, "ended with %d and printed '%.100s'", end.status, end.out);
        if (strstr(end.err, injury->file) == NULL)
            complain(injury, command, "does not name the file: %s", end.err);
        program_end_release(&end);
    }
    char path[PATH_BYTES * 3];
    snprintf(path, sizeof path, "%s/saved", work);
    if (access(path, F_OK) == 0)
        complain(injury, "backup", "made a copy");
}

/* A damaged table file hides some elements. What is printed is right. */
static void check_table_without_partial(const injury_t *injury)
{
    program_end_t end = run(injury, "export STORE ev");
    if (end.status != (strcmp(end.out, injury->base->sound) == 0 ? 0 : 3) ||
        !is_part(end.out, injury->base->sound))
        complain(injury, "export", "ended with %d: %s", end.status, end.err);
    program_end_release(&end);
    end = run(injury, "backup STORE saved");
    if (end.status != 3 || strstr(end.err, injury->file) == NULL)
        complain(injury, "backup", "ended with %d: %s", end.status, end.err);
    program_end_release(&end);
    char path[PATH_BYTES * 3];
    snprintf(path, sizeof path, "%s/saved", work);
    if (access(path, F_OK) == 0)
        complain(injury, "backup", "made a copy");
}

/* export --partial prints lines of the sound store, and fails if it knows that some are missing. */
static void check_export(injury_t *injury)
{
    program_end_t end = run(injury, "export STORE ev --partial");
    injury->lines = count_lines(end.out, "{");
    if (!is_part(end.out, injury->base->sound))
        complain(injury, "export --partial", "prints an element that is not in the store");
    if (injury->lines < ELEMENTS - LOST_MAX)
        complain(injury, "export --partial", "prints only %" PRId64 " elements: %.600s",
                 injury->lines, end.err);
    if (end.status != (injury->lines == ELEMENTS ? 0 : 3))
        complain(injury, "export --partial", "ended with %d and %" PRId64 " of %d elements: %s",
                 end.status, injury->lines, ELEMENTS, end.err);
    if (end.status == 3 && strstr(end.err, "cannot be read") == NULL)
        complain(injury, "export --partial", "names no hole: %s", end.err);
    injury->part = strdup(end.out);
    program_end_release(&end);
}

/* The commands with one owner print right counts, or fail and print none. */
static void check_owner(const injury_t *injury, int owner)
{
    char name[32], command[100];
    snprintf(name, sizeof name, "\"owner\":\"o%d\"", owner);
    int64_t lines = count_lines(injury->part, name);
    snprintf(command, sizeof command, "count STORE ev o%d --partial", owner);
    program_end_t end = run(injury, command);
    int count_status = end.status;
    if (end.status == 0 ? number_in(end.out, "\"count\":") != lines
                        : end.status != 3 || end.out[0] != '\0')
        complain(injury, command, "ended with %d and prints '%s', %" PRId64 " can be read: %s",
                 end.status, end.out, lines, end.err);
    if ((end.status == 0) != (lines == ELEMENTS / OWNERS))
        complain(injury, command, "ended with %d, %" PRId64 " can be read", end.status, lines);
    program_end_release(&end);
    snprintf(command, sizeof command, "explain STORE ev o%d --partial", owner);
    end = run(injury, command);
    if (end.status != count_status && end.status != 3)
        complain(injury, command, "ended with %d, count with %d", end.status, count_status);
    program_end_release(&end);
    snprintf(command, sizeof command, "read STORE ev o%d --oldest --limit 1000 --partial", owner);
    end = run(injury, command);
    if (end.status == 0 ? count_lines(end.out, "\t") > lines : end.status != 3)
        complain(injury, command, "ended with %d, %" PRId64 " can be read: %s", end.status, lines,
                 end.err);
    program_end_release(&end);
    snprintf(command, sizeof command, "export STORE ev o%d --partial", owner);
    end = run(injury, command);
    if (count_lines(end.out, "{") != lines || end.status != count_status)
        complain(injury, command, "ended with %d and prints %" PRId64 " of %" PRId64 " elements",
                 end.status, count_lines(end.out, "{"), lines);
    program_end_release(&end);
}

/* The commands with all owners agree on the number of elements. */
static void check_all(const injury_t *injury)
{
    int status = injury->lines == ELEMENTS ? 0 : 3;
    program_end_t end = run(injury, "stats STORE --partial --json");
    if (end.status != status || number_in(end.out, "\"elements\":") != injury->lines)
        complain(injury, "stats --partial", "ended with %d: %s%s, %" PRId64 " can be read",
                 end.status, end.out, end.err, injury->lines);
    program_end_release(&end);
    end = run(injury, "verify STORE");
    if (end.status != 1 || number_in(end.out, "\"elements\":") != injury->lines ||
        strstr(end.out, injury->file) == NULL)
        complain(injury, "verify", "ended with %d: %s%s, %" PRId64 " can be read", end.status,
                 end.out, end.err, injury->lines);
    program_end_release(&end);
    static const char *const others[] = {"export STORE ev --documents --partial",
                                         "threshold STORE ev --partial", "scan STORE --partial",
                                         "plan STORE --partial"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        end = run(injury, others[i]);
        if (end.status != 0 && end.status != 3)
            complain(injury, others[i], "ended with %d: %s", end.status, end.err);
        program_end_release(&end);
    }
}

/* A copy has whole owners only, and a backup has the same damage. */
static void check_copies(const injury_t *injury)
{
    program_end_t end = run(injury, "copy STORE target --partial");
    if (end.status != (injury->lines == ELEMENTS ? 0 : 3))
        complain(injury, "copy --partial", "ended with %d: %s", end.status, end.err);
    program_end_release(&end);
    end = run(injury, "verify target");
    if (end.status != 0)
        complain(injury, "copy --partial", "made a store with findings: %s%s", end.out, end.err);
    program_end_release(&end);
    end = run(injury, "export target ev");
    if (end.status != 0 || !is_part(end.out, injury->part))
        complain(injury, "copy --partial", "copied other elements than can be read");
    program_end_release(&end);
    end = run(injury, "backup STORE saved --partial");
    if (end.status != 0 || strstr(end.err, injury->file) == NULL)
        complain(injury, "backup --partial", "ended with %d: %s", end.status, end.err);
    program_end_release(&end);
    end = run(injury, "export saved ev --partial");
    if (strcmp(end.out, injury->part) != 0)
        complain(injury, "backup --partial", "has other elements than can be read");
    program_end_release(&end);
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* The file with the ending or the beginning `kind`: the largest, or the one with a lower number. */
static void find_file(const char *folder, const char *kind, char *name, size_t size)
{
    off_t largest = -1;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        struct stat about;
        if (strstr(entry->d_name, kind) != NULL &&
            fstatat(dirfd(entries), entry->d_name, &about, 0) == 0 && about.st_size > largest) {
            largest = about.st_size;
            snprintf(name, size, "%.60s", entry->d_name);
        }
    }
    if (entries)
        closedir(entries);
    require(largest > 0, "a file is missing");
}

/* Flip a bit of the byte at `eighth` eighths of the file. */
static void damage(injury_t *injury, const char *kind, int eighth)
{
    char command[4 * PATH_BYTES], path[PATH_BYTES * 3];
    uint8_t byte;
    struct stat about;
    snprintf(injury->folder, sizeof injury->folder, "%s", embedded_new_folder());
    snprintf(command, sizeof command, "cp -r '%s' '%s'", injury->base->folder, injury->folder);
    require(system(command) == 0, "cannot copy a store");
    find_file(injury->folder, kind, injury->file, sizeof injury->file);
    snprintf(path, sizeof path, "%s/%s", injury->folder, injury->file);
    int file = open(path, O_RDWR);
    require(file >= 0 && fstat(file, &about) == 0, "cannot open the file to damage");
    injury->place = about.st_size * eighth / PLACES;
    require(pread(file, &byte, 1, injury->place) == 1, "cannot read");
    byte ^= 4;
    require(pwrite(file, &byte, 1, injury->place) == 1, "cannot write");
    close(file);
}

static void clear_work(void)
{
    char command[PATH_BYTES * 3];
    snprintf(command, sizeof command, "rm -rf '%s'; mkdir '%s'", work, work);
    require(system(command) == 0, "cannot make a folder");
}

static void try_damage(const base_t *base, const char *kind, int eighth)
{
    injury_t injury = {.base = base, .log = strcmp(kind, ".log") == 0};
    damage(&injury, kind, eighth);
    clear_work();
    bool useless = strcmp(kind, "CURRENT") == 0 || strcmp(kind, "MANIFEST") == 0;
    if (useless || injury.log)
        check_refused(&injury, "");
    else
        check_table_without_partial(&injury);
    if (useless) {
        check_refused(&injury, " --partial");
        program_end_t end = run(&injury, "verify STORE");
        if (end.status != 3 || strstr(end.err, injury.file) == NULL ||
            strstr(end.err, "showing") != NULL)
            complain(&injury, "verify", "ended with %d: %s", end.status, end.err);
        program_end_release(&end);
    } else {
        clear_work();
        check_export(&injury);
        for (int owner = 0; owner < OWNERS; owner += owner_step)
            check_owner(&injury, owner);
        check_all(&injury);
        check_copies(&injury);
    }
    free(injury.part);
    embedded_remove_folder(injury.folder);
}

static void make_base(base_t *base)
{
    snprintf(base->folder, sizeof base->folder, "%s", embedded_new_folder());
    int status = in_child(base, false);
    require(base->kind == CLOSED ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                                 : WIFSIGNALED(status),
            "a base store could not be made");
    if (base->kind == TWO_LOGS)
        require(WIFSIGNALED(in_child(base, true)), "a second log could not be made");
    injury_t sound = {.base = base};
    snprintf(sound.folder, sizeof sound.folder, "%s", base->folder);
    clear_work();
    program_end_t end = run(&sound, "export STORE ev");
    require(end.status == 0 && count_lines(end.out, "{") == ELEMENTS, "a base store is not sound");
    base->sound = strdup(end.out);
    program_end_release(&end);
}

int main(int argc, char **argv)
{
    program_needed();
    snprintf(work, sizeof work, "%s", embedded_new_folder());
    int step = (int)effort(1, 4, 8);
    owner_step = (int)effort(1, 4, 6);
    for (int i = 0; i < PRESETS; i++) {
        if (argc > 1 && strcmp(argv[1], presets[i]) != 0)
            continue;
        for (kind_t kind = CLOSED; kind < KINDS; kind++) {
            base_t base = {.preset = presets[i], .kind = kind};
            make_base(&base);
            for (int eighth = 1; kind == CLOSED && eighth < PLACES; eighth += step)
                try_damage(&base, ".sst", eighth);
            if (kind != CLOSED)
                try_damage(&base, ".log", PLACES / 2);
            if (i == 0 && kind != TWO_LOGS) { /* the same for every layout */
                try_damage(&base, "CURRENT", 2);
                try_damage(&base, "MANIFEST", 2);
            }
            embedded_remove_folder(base.folder);
            free(base.sound);
        }
    }
    printf("%d complaints\n", complaints);
    return complaints > 0 ? 1 : 0;
}
