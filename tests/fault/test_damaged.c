/*
 * Random damage: change one file of a store in one of four ways, then export the store, verify it,
 * and append to it. Each of these must return correct data or an error with a message. Only the
 * newest log of a killed writer may lose its end: then the export returns the elements before the
 * damage, in the order in which they were appended.
 *
 *   SPILLWAY_SEED          the seed (printed); the same seed draws the same cases
 *   SPILLWAY_DAMAGE_CASES  how many (72; with a sanitizer 36; 500 if SPILLWAY_LONG is set)
 *
 * A third of the seeds, 1 modulo 3, have the head's fields in a sub-document.
 *
 * Every pair of file kind and damage is used once before any pair is used twice. Each case runs in
 * its own process, so that the test sees a signal. Every tenth case also runs the program.
 */
#include "fault/program.h"
#include "fault/second_log.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/embedded.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OWNERS = 12, PROGRAM_EVERY = 10, DRAWS_MAX = 10000, SECONDS_MAX = 120, PATH_BYTES = 256 };

/* Sizes of elements in bytes: most are small, some go to files of their own. */
enum { SMALL = 60, LARGE = 150 * 1000, BLOB = 700 * 1000 };

/* ---- what a store should hold ---------------------------------------------------------------- */

/* Element i has an owner and a text that depend only on i. */
static int owner_of(int64_t i)
{
    return (int)(i * 7 % OWNERS);
}

static size_t size_of_element(int64_t i, bool large)
{
    if (!large || i % 5 != 0)
        return SMALL;
    return i % 50 == 0 ? BLOB : LARGE;
}

/* Random letters, so that the text does not compress well. Free with free. */
static char *make_text(int64_t i, bool large)
{
    size_t size = size_of_element(i, large);
    char *text = malloc(size + 1);
    uint64_t random = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) + 1;
    int used = snprintf(text, size, "%" PRId64 " ", i);
    for (size_t at = (size_t)used; at < size; at++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        text[at] = (char)('a' + random % 26);
    }
    text[size] = '\0';
    return text;
}

static spill_code_t append_element(spill_array_t *array, int64_t i, bool large,
                                   spill_error_t *error)
{
    char name[16];
    bson_t owner_storage = BSON_INITIALIZER, storage = BSON_INITIALIZER;
    char *text = make_text(i, large);
    snprintf(name, sizeof name, "o%02d", owner_of(i));
    spill_value_t owner = spill_value_from_utf8(&owner_storage, name);
    spill_value_t element = spill_value_from_utf8(&storage, text);
    spill_code_t code = spill_array_append(array, &owner, &element, 1, NULL, NULL, error);
    free(text);
    bson_destroy(&storage);
    bson_destroy(&owner_storage);
    return code;
}

/* ---- base stores ----------------------------------------------------------------------------- */

typedef struct base {
    const char *name;
    bool large;
    bool killed;
    int64_t count; /* elements 0, 1, ... */
    char folder[PATH_BYTES];
} base_t;

static void require(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "test_damaged: %s\n", what);
    exit(1);
}

static spill_store_t *open_base(const base_t *base)
{
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    return embedded_in_folder(base->folder, &options);
}

static void append_range(const base_t *base, spill_store_t *store, int64_t first, int64_t end)
{
    spill_error_t error;
    spill_array_t *array = embedded_array(store, "feed", 5, 8);
    for (int64_t i = first; i < end; i++)
        require(append_element(array, i, base->large, &error) == SPILL_OK, error.message);
    spill_array_close(array);
}

/*
 * Append half of the elements and close the store. Then append the other half, and close the store
 * or end without closing it.
 */
static void write_base(const base_t *base)
{
    spill_store_t *store = open_base(base);
    append_range(base, store, 0, base->count / 2);
    embedded_close(store);
    store = open_base(base);
    append_range(base, store, base->count / 2, base->count);
    if (base->killed)
        raise(SIGKILL);
    embedded_close(store);
    child_end(0);
}

/* Run a function in a child process, so that no engine thread stays in this one. */
static int in_child(void (*work)(const void *context), const void *context)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    require(child >= 0, "cannot fork");
    if (child == 0) {
        alarm(SECONDS_MAX); /* a case that hangs ends by this signal, which counts as a violation */
        work(context);
        child_end(0);
    }
    require(waitpid(child, &status, 0) == child, "cannot wait");
    return status;
}

static void write_base_in_child(const void *context)
{
    write_base(context);
}

static void add_second_log_in_child(const void *context)
{
    second_log_add(context);
}

static base_t bases[] = {
    {.name = "closed", .count = 600},
    {.name = "killed", .count = 600, .killed = true},
    {.name = "two logs", .count = 600, .killed = true},
    {.name = "closed, large", .count = 400, .large = true},
    {.name = "killed, large", .count = 800, .large = true, .killed = true},
};
enum { BASES = sizeof bases / sizeof *bases };

static void make_bases(int64_t seed)
{
    embedded_paths = seed % 3 == 1;
    for (int i = 0; i < BASES; i++) {
        snprintf(bases[i].folder, sizeof bases[i].folder, "%s", embedded_new_folder());
        int status = in_child(write_base_in_child, &bases[i]);
        require(bases[i].killed ? WIFSIGNALED(status)
                                : WIFEXITED(status) && WEXITSTATUS(status) == 0,
                "a base store could not be made");
        if (strcmp(bases[i].name, "two logs") == 0)
            require(WIFSIGNALED(in_child(add_second_log_in_child, bases[i].folder)),
                    "a second log could not be made");
    }
}

/* ---- files and damage ------------------------------------------------------------------------ */

static const char *const file_kinds[] = {"SPILLWAY", "CURRENT",  "MANIFEST-", ".log", ".sst",
                                         ".blob",    "OPTIONS-", "IDENTITY",  "LOG"};
enum { FILE_KINDS = sizeof file_kinds / sizeof *file_kinds };

static const char *const damage_names[] = {"flip", "zeroes", "garbage", "truncation"};
typedef enum damage { FLIP, ZEROES, GARBAGE, TRUNCATION, DAMAGES } damage_t;

static bool is_of_kind(const char *name, const char *kind)
{
    size_t length = strlen(name), end = strlen(kind);
    if (kind[0] == '.')
        return length > end && strcmp(name + length - end, kind) == 0;
    return kind[end - 1] == '-' ? strncmp(name, kind, end) == 0 : strcmp(name, kind) == 0;
}

static uint64_t random_state;

static uint64_t draw(uint64_t below)
{
    random_state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random_state;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

/* Choose at random a file of that kind that is not empty. Returns false if none exists. */
static bool draw_file(const char *folder, const char *kind, char *name, size_t size)
{
    uint64_t seen = 0;
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        struct stat about;
        char path[PATH_BYTES * 2];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (is_of_kind(entries[i]->d_name, kind) && stat(path, &about) == 0 && about.st_size > 0 &&
            draw(++seen) == 0)
            snprintf(name, size, "%.60s", entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return seen > 0;
}

static uint64_t newest_log(const char *folder)
{
    uint64_t newest = 0;
    DIR *entries = opendir(folder);
    for (const struct dirent *entry; entries && (entry = readdir(entries)) != NULL;) {
        uint64_t number = strtoull(entry->d_name, NULL, 10);
        struct stat about;
        char path[PATH_BYTES * 2];
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_of_kind(entry->d_name, ".log") && number > newest && stat(path, &about) == 0 &&
            about.st_size > 0)
            newest = number;
    }
    if (entries)
        closedir(entries);
    return newest;
}

/* Choose an offset near the start, near the end, or anywhere. */
static int64_t draw_place(int64_t size)
{
    int64_t near = size < 300 ? size : 300;
    switch (draw(3)) {
    case 0:
        return (int64_t)draw((uint64_t)near);
    case 1:
        return size - 1 - (int64_t)draw((uint64_t)near);
    default:
        return (int64_t)draw((uint64_t)size);
    }
}

typedef struct injury {
    const base_t *base;
    char folder[PATH_BYTES];
    char file[64];
    damage_t damage;
    int64_t place;
    int64_t bytes;
    uint64_t garbage;
    bool may_tear; /* the file is the newest log of a writer that was killed */
} injury_t;

static void damage_file(const injury_t *injury)
{
    char path[PATH_BYTES * 2];
    snprintf(path, sizeof path, "%s/%s", injury->folder, injury->file);
    if (injury->damage == TRUNCATION) {
        require(truncate(path, injury->place) == 0, "cannot truncate");
        return;
    }
    int file = open(path, O_RDWR);
    uint8_t *bytes = calloc(1, (size_t)injury->bytes);
    require(file >= 0 && bytes, "cannot open the file to damage");
    require(pread(file, bytes, (size_t)injury->bytes, injury->place) == injury->bytes,
            "cannot read");
    uint64_t random = injury->garbage | 1;
    for (int64_t i = 0; i < injury->bytes; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
        uint8_t flipped = (uint8_t)(bytes[i] ^ (1U << (random >> 61)));
        uint8_t garbage = (uint8_t)(random >> 56);
        bytes[i] = injury->damage == FLIP ? flipped : injury->damage == ZEROES ? 0 : garbage;
    }
    require(pwrite(file, bytes, (size_t)injury->bytes, injury->place) == injury->bytes,
            "cannot write");
    free(bytes);
    close(file);
}

/* Copy a store. Files that the engine never changes in place are hard links. */
static void copy_store(const char *from, const char *to, const char *damaged)
{
    char command[3 * PATH_BYTES];
    snprintf(command, sizeof command,
             "cp -rl '%s' '%s' && cd '%s' && for f in [A-Z]* '%s'; do cp \"$f\" .copy && "
             "mv -f .copy \"$f\" || exit 1; done",
             from, to, to, damaged);
    require(system(command) == 0, "cannot copy a store");
}

/* ---- what is read ---------------------------------------------------------------------------- */

typedef struct reading {
    const injury_t *injury;
    int64_t held[OWNERS]; /* elements of each owner */
    bool wrong;
} reading_t;

/* The i of an owner's element number n. */
static int64_t element_of(int owner, int64_t n)
{
    int64_t first = 0;
    while (owner_of(first) != owner)
        first++;
    return first + n * OWNERS;
}

static bool note_element(void *context, const spill_value_t *owner, const spill_element_t *element)
{
    reading_t *reading = context;
    uint32_t length;
    int number = atoi((const char *)owner->data + 4 + 1); /* length, then "oNN" */
    if (owner->type != BSON_TYPE_UTF8 || number < 0 || number >= OWNERS) {
        reading->wrong = true;
        return true;
    }
    char *text = make_text(element_of(number, reading->held[number]), reading->injury->base->large);
    memcpy(&length, element->value.data, sizeof length);
    reading->wrong = reading->wrong || element->value.type != BSON_TYPE_UTF8 ||
                     element->seq != reading->held[number] ||
                     BSON_UINT32_FROM_LE(length) != strlen(text) + 1 ||
                     memcmp(element->value.data + 4, text, strlen(text)) != 0;
    free(text);
    reading->held[number]++;
    return true;
}

/* Whether the elements read are the first ones appended. Sets *count to how many were read. */
static bool is_prefix(const reading_t *reading, int64_t *count)
{
    *count = 0;
    for (int i = 0; i < OWNERS; i++)
        *count += reading->held[i];
    for (int i = 0; i < OWNERS; i++)
        if (element_of(i, reading->held[i]) < *count ||
            (reading->held[i] > 0 && element_of(i, reading->held[i] - 1) >= *count))
            return false;
    return !reading->wrong;
}

static void violation(const injury_t *injury, const char *format, const char *detail)
{
    fprintf(stderr,
            "VIOLATION (%s, %s, %s at %" PRId64 ", %" PRId64 " bytes): ", injury->base->name,
            injury->file, damage_names[injury->damage], injury->place, injury->bytes);
    fprintf(stderr, format, detail);
    fputc('\n', stderr);
    _exit(1);
}

static void expect_message(const injury_t *injury, const spill_error_t *error)
{
    if (error->message[0] == '\0')
        violation(injury, "an error has no %s", "message");
}

/*
 * Export the whole store. Returns the number of elements, which must be the first ones appended, or
 * -1 if the export reported an error, which is also correct.
 */
static int64_t export_all(const injury_t *injury, spill_store_t *store, int64_t least, int64_t most)
{
    spill_error_t error = {.message = ""};
    spill_array_t *array;
    reading_t reading = {.injury = injury};
    int64_t count;
    spill_code_t code = spill_array_open(store, "feed", &array, &error);
    if (code == SPILL_OK)
        code = spill_array_export(array, NULL, note_element, &reading, &error);
    spill_array_close(array);
    if (reading.wrong)
        violation(injury, "an element was %s", "changed, or is out of order");
    if (code != SPILL_OK) {
        expect_message(injury, &error);
        if (code == SPILL_NOT_FOUND && !injury->may_tear)
            violation(injury, "the definition is missing: %s", error.message);
        return injury->may_tear && code == SPILL_NOT_FOUND ? 0 : -1;
    }
    if (!is_prefix(&reading, &count) || count < least || count > most) {
        char text[64];
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64, count, most);
        violation(injury, "elements are missing: the export has %s", text);
    }
    return count;
}

static spill_code_t open_case(const injury_t *injury, bool read_only, bool partial,
                              spill_store_t **store)
{
    spill_error_t error = {.message = ""};
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.read_only = read_only;
    options.partial = partial;
    options.must_exist = true;
    spill_code_t code = spill_store_open(injury->folder, &options, store, &error);
    if (code != SPILL_OK)
        expect_message(injury, &error);
    return code;
}

/* Verify what can be read. Verify must report an error or findings if the export failed. */
static void verify_all(const injury_t *injury, int64_t exported)
{
    spill_store_t *store;
    spill_array_t *array;
    spill_error_t error = {.message = ""};
    spill_verify_summary_t summary = {0};
    if (open_case(injury, true, true, &store) != SPILL_OK)
        return;
    bool damaged = spill_store_damage(store) != NULL;
    spill_code_t code = spill_array_open(store, "feed", &array, &error);
    if (code == SPILL_OK)
        code = spill_array_verify(array, NULL, NULL, NULL, &summary, &error);
    if (code != SPILL_OK)
        expect_message(injury, &error);
    if (code == SPILL_OK && exported < 0 && !damaged && summary.findings == 0)
        violation(injury, "verify finds nothing, but export %s", "fails");
    if (code == SPILL_OK && exported >= 0 && (damaged || summary.findings > 0))
        violation(injury, "export succeeds, but verify %s", "has findings");
    spill_array_close(array);
    spill_store_close(store, NULL);
}

/* Append the next element. If that succeeds, the store must have it and all earlier elements. */
static void append_one(const injury_t *injury, int64_t exported)
{
    spill_store_t *store;
    spill_array_t *array;
    spill_error_t error = {.message = ""};
    int64_t next = exported >= 0 ? exported : injury->base->count;
    if (open_case(injury, false, false, &store) != SPILL_OK)
        return;
    spill_code_t code = spill_array_open(store, "feed", &array, &error);
    if (code == SPILL_OK)
        code = append_element(array, next, injury->base->large, &error);
    if (code != SPILL_OK)
        expect_message(injury, &error);
    spill_array_close(array);
    spill_code_t closing = spill_store_close(store, &error);
    if (closing != SPILL_OK)
        expect_message(injury, &error);
    if (open_case(injury, true, false, &store) != SPILL_OK)
        return;
    int64_t most = next + (code == SPILL_OK);
    export_all(injury, store, code == SPILL_OK && closing == SPILL_OK ? most : next, most);
    spill_store_close(store, NULL);
}

static void run_case(const void *context)
{
    const injury_t *injury = context;
    int64_t exported = -1;
    spill_store_t *store;
    if (open_case(injury, true, false, &store) == SPILL_OK) {
        int64_t count = injury->base->count;
        exported = export_all(injury, store, injury->may_tear ? 0 : count, count);
        spill_store_close(store, NULL);
    }
    verify_all(injury, exported);
    append_one(injury, exported);
}

/* ---- the program ----------------------------------------------------------------------------- */

static int run_program(const injury_t *injury, const char *const *arguments, int64_t *lines)
{
    program_end_t end =
        program_wait(injury->folder, program_start(injury->folder, NULL, arguments));
    int status = end.killed ? -1 : end.status;
    *lines = 0;
    for (const char *at = end.out; (at = strchr(at, '\n')) != NULL; at++)
        ++*lines;
    if (status != 0 && end.err[0] == '\0' && end.out[0] == '\0')
        violation(injury, "the program fails without a %s", "message");
    program_end_release(&end);
    return status;
}

/* Run the same three operations with the program. Its exit codes must agree with each other. */
static void run_program_case(const void *context)
{
    const injury_t *injury = context;
    const char *export[] = {"export", injury->folder, "feed", NULL};
    const char *verify[] = {"verify", injury->folder, NULL};
    const char *append[] = {"append", injury->folder, "feed", "o00", "\"x\"", NULL};
    int64_t lines, others;
    int exported = run_program(injury, export, &lines);
    if (exported != 0 && exported != 3)
        violation(injury, "export exits with %s", "neither 0 nor 3");
    if (exported == 0 && lines != injury->base->count && !injury->may_tear)
        violation(injury, "export exits 0 and elements are %s", "missing");
    int verified = run_program(injury, verify, &others);
    if (verified != 0 && verified != 1 && verified != 3)
        violation(injury, "verify exits with %s", "none of 0, 1 and 3");
    if ((verified == 0) != (exported == 0))
        violation(injury, "export and verify do not %s", "agree");
    int appended = run_program(injury, append, &others);
    if (appended != 0 && appended != 3)
        violation(injury, "append exits with %s", "neither 0 nor 3");
}

/* ---- the cases ------------------------------------------------------------------------------- */

/* Apply pair number `pair` to a base store that has such a file. */
static injury_t draw_injury(int pair)
{
    injury_t injury = {.damage = (damage_t)(pair % DAMAGES)};
    const char *kind = file_kinds[pair / DAMAGES];
    int tries = 0;
    do {
        injury.base = &bases[draw(BASES)];
        require(++tries <= DRAWS_MAX, "no base store has a file of that kind");
    } while (!draw_file(injury.base->folder, kind, injury.file, sizeof injury.file));
    struct stat about;
    char path[PATH_BYTES * 2];
    snprintf(path, sizeof path, "%s/%s", injury.base->folder, injury.file);
    require(stat(path, &about) == 0, "a file is missing");
    injury.place = draw_place(about.st_size);
    int64_t left = about.st_size - injury.place;
    int64_t most = draw(2) == 0 ? 16 : 40000;
    injury.bytes = injury.damage == FLIP ? 1 : 1 + (int64_t)draw((uint64_t)most);
    if (injury.bytes > left)
        injury.bytes = left;
    if (injury.damage == TRUNCATION)
        injury.bytes = left;
    injury.garbage = draw(UINT64_MAX);
    injury.may_tear = injury.base->killed && strcmp(kind, ".log") == 0 &&
                      strtoull(injury.file, NULL, 10) == newest_log(injury.base->folder);
    return injury;
}

static bool ended_well(const injury_t *injury, int status)
{
    if (WIFSIGNALED(status))
        fprintf(stderr, "VIOLATION (%s, %s, %s at %" PRId64 ", %" PRId64 " bytes): signal %d\n",
                injury->base->name, injury->file, damage_names[injury->damage], injury->place,
                injury->bytes, WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool try_injury(injury_t *injury, void (*work)(const void *context))
{
    snprintf(injury->folder, sizeof injury->folder, "%s", embedded_new_folder());
    copy_store(injury->base->folder, injury->folder, injury->file);
    damage_file(injury);
    bool good = ended_well(injury, in_child(work, injury));
    embedded_remove_folder(injury->folder);
    return good;
}

static int64_t number_from(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text && text[0] != '\0' ? (int64_t)strtoll(text, NULL, 10) : otherwise;
}

enum { PAIRS = FILE_KINDS * DAMAGES };

/* Draw and try `cases` cases. Return how many were bad. */
static int64_t try_cases(int64_t seed, int64_t cases)
{
    int64_t bad = 0;
    int order[PAIRS];
    make_bases(seed);
    printf("seed %" PRId64 ", %" PRId64 " cases%s\n", seed, cases, embedded_paths ? ", paths" : "");
    random_state = (uint64_t)seed;
    for (int64_t i = 0; i < cases; i++) {
        int at = (int)(i % PAIRS);
        for (int k = 0; at == 0 && k < PAIRS; k++) { /* a new order of all pairs */
            int other = (int)draw((uint64_t)k + 1);
            order[k] = order[other];
            order[other] = k;
        }
        injury_t injury = draw_injury(order[at]);
        bool good = try_injury(&injury, run_case);
        if (i % PROGRAM_EVERY == 0)
            good = try_injury(&injury, run_program_case) && good;
        bad += !good;
    }
    printf("%" PRId64 " cases, %" PRId64 " bad\n", cases, bad);
    return bad;
}

int main(void)
{
    /* In a case of this seed, the footer of a table made the open wait for its own lock forever. */
    enum { HANGING = 1795543761, HANGING_CASES = 23 };
    program_needed();
    int64_t bad = 0;
    int64_t seed = number_from("SPILLWAY_SEED", (int64_t)time(NULL));
    int64_t cases = number_from("SPILLWAY_DAMAGE_CASES", effort(500, PAIRS, PAIRS / 2));
    if (getenv("SPILLWAY_SEED") == NULL)
        bad += try_cases(HANGING, HANGING_CASES);
    bad += try_cases(seed, cases);
    return bad > 0 ? 1 : 0;
}
