/*
 * kill -9 of the program itself, at random moments, during:
 *   - `append` from a stream, in batches that spill many times;
 *   - `append` of a batch with an operation id, retried with the id and the base that the program
 *     printed until it is acknowledged;
 *   - `import` of a growing file.
 * The stores vary in owners, in the end that the head keeps, in durability and in bounds, from one
 * element upwards.
 *
 * Each element is its owner's counter. The program acknowledges an element by printing its number.
 * After each kill the program's verifier must find nothing. Its export must have every owner's
 * counters from 0, each once and in order, including every acknowledged one. A kill counts only if
 * the process held the store and had not ended.
 */
#include "killed.h"
#include "program.h"
#include "support/effort.h"

#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    OWNERS = 6,          /* of appends: three heads keep the newest elements, three the oldest */
    FEEDS = 4,           /* owners of the import */
    STREAM_LINES = 8000, /* more than the program appends before the kill */
    IMPORT_LINES = 4000,
    BATCH_MAX = 60, /* so that an operation has fewer parts than the window has ids */
    ROUNDS_OF_A_STORE = 10,
    TRIES_FOR_A_KILL = 10
};

/* An owner, and what the test knows about its elements. */
typedef struct owner {
    const char *array;
    char name[16];
    int64_t acknowledged; /* elements */
    int64_t found;        /* the elements found by the last check */
    int64_t given;        /* elements passed to the program so far */
    /* The unacknowledged operation appends the elements begin..given. */
    bool pending;
    int64_t begin;
    int64_t operations;
    int64_t base; /* -1: the program has not printed it */
} owner_t;

typedef struct scene {
    char folder[48];
    unsigned random;
    int64_t launch_us; /* how long it takes to open and close the store */
    owner_t owners[OWNERS + FEEDS];
    int64_t imported; /* lines in the import's file */
    bool import_done; /* all lines were acknowledged */
    const char *durability;
    /* Sums over all stores. */
    int kills;
    int kills_in_writing; /* kills that left unacknowledged elements in the store */
    int64_t elements;     /* acknowledged */
} scene_t;

static int64_t pick(scene_t *scene, int64_t below)
{
    return rand_r(&scene->random) % below;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void define(scene_t *scene, const char *name, const char *keep)
{
    static const char *const bounds[][2] = {{"1", "1"}, {"3", "4"}, {"2", "7"}, {"20", "30"}};
    const char *const *chosen = bounds[pick(scene, sizeof bounds / sizeof *bounds)];
    char pages[24];
    const char *array = pick(scene, 3) == 0 ? "stats.elements" : "elements";
    snprintf(pages, sizeof pages, "%s.pages", name);
    const char *arguments[] = {"define",   "db",
                               name,       "--keep",
                               keep,       "--collection",
                               name,       "--array",
                               array,      "--threshold",
                               chosen[0],  "--page",
                               chosen[1],  "--layout",
                               "outlier",  "--page-collection",
                               pages,      "--page-array",
                               "elements", "--op-window",
                               "100",      NULL};
    free(program_run(scene->folder, arguments));
}

static const char *const arrays[] = {"newest", "oldest", "imported"};

static void new_store(scene_t *scene)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'/*", scene->folder);
    assert_int_equal(system(command), 0);
    define(scene, "newest", "newest");
    define(scene, "oldest", "oldest");
    define(scene, "imported", pick(scene, 2) ? "oldest" : "newest");
    for (int i = 0; i < OWNERS + FEEDS; i++) {
        const char *array = arrays[i < OWNERS ? i % 2 : 2];
        scene->owners[i] = (owner_t){.array = array, .base = -1};
        snprintf(scene->owners[i].name, sizeof scene->owners[i].name, "u%d", i);
    }
    scene->imported = 0;
    scene->import_done = true;
}

static owner_t *find_owner(scene_t *scene, const char *array, const char *name)
{
    for (int i = 0; i < OWNERS + FEEDS; i++)
        if (strcmp(scene->owners[i].array, array) == 0 && strcmp(scene->owners[i].name, name) == 0)
            return &scene->owners[i];
    fail_msg("'%s' has an owner '%s'", array, name);
    return NULL;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* Each line: {"owner":"u1","seq":7,"element":{ "n" : 7, ...}}. Counts into `found`. */
static void check_export(scene_t *scene, const char *array, char *lines)
{
    char *rest = lines;
    for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
        char name[8];
        int64_t seq;
        int64_t n;
        int fields = sscanf(line, // NOLINT(cert-err34-c): what does not fit fails the comparison
                            "{\"owner\":\"%7[^\"]\",\"seq\":%" SCNd64
                            ",\"element\":{%*[^:]: \"%*[^\"]\", \"n\" : %" SCNd64,
                            name, &seq, &n);
        if (fields != 3)
            fail_msg("not an exported element: %.200s", line);
        owner_t *owner = find_owner(scene, array, name);
        if (seq != owner->found || n != seq)
            fail_msg("%s of '%s': element %" PRId64 " is %" PRId64 ", and number %" PRId64
                     " was to come",
                     name, array, seq, n, owner->found);
        owner->found++;
    }
}

/* Verify the store, and compare an array's export with what the test knows about its owners. */
static void check_array(scene_t *scene, const char *array)
{
    const char *verify[] = {"verify", "db", NULL};
    const char *export[] = {"export", "db", array, "--relaxed", NULL};
    char *report = program_run(scene->folder, verify);
    if (strstr(report, "\"findings\":0}") == NULL)
        fail_msg("verify: %s", report);
    free(report);
    for (int i = 0; i < OWNERS + FEEDS; i++)
        if (strcmp(scene->owners[i].array, array) == 0)
            scene->owners[i].found = 0;
    char *lines = program_run(scene->folder, export);
    check_export(scene, array, lines);
    free(lines);
    for (int i = 0; i < OWNERS + FEEDS; i++) {
        const owner_t *owner = &scene->owners[i];
        if (owner->found < owner->acknowledged || owner->found > owner->given)
            fail_msg("%s of '%s': %" PRId64 " elements found, %" PRId64
                     " were acknowledged, %" PRId64 " given",
                     owner->name, owner->array, owner->found, owner->acknowledged, owner->given);
    }
}

/* ---- one process ----------------------------------------------------------------------------- */

static FILE *open_input(const scene_t *scene, const char *name, const char *mode)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", scene->folder, name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

static void write_line(FILE *file, const char *owner, int64_t n)
{
    fprintf(file, "{\"by\": \"%s\", \"n\": %" PRId64 ", \"text\": \"%0*d\"}\n", owner, n,
            (int)(n % 200), 0);
}

/* Whether the killed process had opened the store: the store records the last process to hold it.
 */
static bool held(const scene_t *scene, pid_t pid)
{
    char line[256];
    long holder = -1;
    FILE *checkpoint = open_input(scene, "db/SPILLWAY", "rb");
    while (fgets(line, sizeof line, checkpoint) != NULL)
        if (strncmp(line, "process ", 8) == 0)
            holder = strtol(line + 8, NULL, 10);
    fclose(checkpoint);
    return holder == pid;
}

/* Start the program, let it run for a random time, and kill it. */
static program_end_t start_and_kill(scene_t *scene, const char *input, const char *const *arguments)
{
    pid_t pid = program_start(scene->folder, input, arguments);
    usleep((useconds_t)pick(scene, scene->launch_us + 40000));
    assert_int_equal(kill(pid, SIGKILL), 0);
    program_end_t end = program_wait(scene->folder, pid);
    bool nothing_new = end.status == 4 && strstr(end.err, "has nothing new") != NULL;
    if (!end.killed && end.status != 0 && !nothing_new)
        fail_msg("%s ended with %d: %s", arguments[0], end.status, end.err);
    scene->kills += end.killed && held(scene, pid);
    return end;
}

/* Record the printed numbers, "7" or "7..9", which must be the next numbers of `owner`. */
static void record_answers(scene_t *scene, owner_t *owner, int64_t next, char *out)
{
    char *rest = out;
    for (char *line; (line = strtok_r(rest, "\n", &rest)) != NULL;) {
        char *end;
        int64_t first = strtoll(line, &end, 10);
        int64_t last = strncmp(end, "..", 2) == 0 ? strtoll(end + 2, NULL, 10) : first;
        if (first != next || last >= owner->given)
            fail_msg("%s of '%s': '%s' is acknowledged, but %" PRId64 " was expected", owner->name,
                     owner->array, line, next);
        next = last + 1;
        scene->elements += next - first;
        owner->acknowledged = next;
    }
}

static void append_stream(scene_t *scene, owner_t *owner)
{
    const char *arguments[] = {"append", "db",           owner->array,      owner->name,
                               "-",      "--durability", scene->durability, NULL};
    FILE *lines = open_input(scene, "lines", "wb");
    for (int64_t i = 0; i < STREAM_LINES; i++)
        write_line(lines, owner->name, owner->found + i);
    fclose(lines);
    owner->given = owner->found + STREAM_LINES;
    program_end_t end = start_and_kill(scene, "lines", arguments);
    record_answers(scene, owner, owner->found, end.out);
    program_end_release(&end);
}

/* Retry the unacknowledged operation, or begin a new one. Called again after each kill. */
static void append_operation(scene_t *scene, owner_t *owner)
{
    char op[64];
    if (!owner->pending) {
        FILE *lines = open_input(scene, owner->name, "wb");
        owner->pending = true;
        owner->begin = owner->found;
        owner->base = -1;
        owner->operations++;
        owner->given = owner->found + 2 + pick(scene, BATCH_MAX - 1);
        for (int64_t i = owner->begin; i < owner->given; i++)
            write_line(lines, owner->name, i);
        fclose(lines);
    }
    int length = snprintf(op, sizeof op, "op%" PRId64, owner->operations);
    if (owner->base >= 0)
        snprintf(op + length, sizeof op - (size_t)length, "@%" PRId64, owner->base);
    const char *arguments[] = {"append", "db", owner->array,   owner->name,       "-",
                               "--op",   op,   "--durability", scene->durability, NULL};
    program_end_t end = start_and_kill(scene, owner->name, arguments);
    const char *at = strchr(end.err, '@');
    if (owner->base < 0 && at != NULL && strchr(at, '\n') != NULL)
        owner->base = strtoll(at + 1, NULL, 10);
    if (end.out[0] != '\0') {
        record_answers(scene, owner, owner->begin, end.out);
        assert_int_equal(owner->acknowledged, owner->given);
        owner->pending = false;
    }
    program_end_release(&end);
}

static void import(scene_t *scene)
{
    const char *arguments[] = {"import", "db",      "imported",     "events.ndjson",   "--owner",
                               "by",     "--quiet", "--durability", scene->durability, NULL};
    if (scene->import_done) {
        FILE *file = open_input(scene, "events.ndjson", "ab");
        for (int i = 0; i < IMPORT_LINES; i++) {
            owner_t *owner = &scene->owners[OWNERS + pick(scene, FEEDS)];
            write_line(file, owner->name, owner->given++);
        }
        fclose(file);
        scene->import_done = false;
    }
    program_end_t end = start_and_kill(scene, NULL, arguments);
    scene->import_done = !end.killed;
    for (int i = OWNERS; i < OWNERS + FEEDS && !end.killed; i++) {
        scene->elements += scene->owners[i].given - scene->owners[i].acknowledged;
        scene->owners[i].acknowledged = scene->owners[i].given;
    }
    program_end_release(&end);
}

/* ---- the test -------------------------------------------------------------------------------- */

static void play_round(scene_t *scene)
{
    int before = scene->kills;
    int64_t more = 0;
    for (int i = 0; i < OWNERS + FEEDS; i++)
        more -= scene->owners[i].found;
    scene->durability = pick(scene, 2) ? "fsync" : "log";
    owner_t *owner = &scene->owners[pick(scene, OWNERS)];
    int64_t kind = pick(scene, 3);
    int64_t acknowledged = scene->elements;
    if (kind == 0)
        import(scene);
    else if (kind == 1 || owner->pending)
        append_operation(scene, owner);
    else
        append_stream(scene, owner);
    check_array(scene, kind == 0 ? arrays[2] : owner->array);
    for (int i = 0; i < OWNERS + FEEDS; i++)
        more += scene->owners[i].found;
    if (scene->kills > before && more > scene->elements - acknowledged)
        scene->kills_in_writing++;
}

static void check_all_arrays(scene_t *scene)
{
    for (int i = 0; i < 3; i++)
        check_array(scene, arrays[i]);
}

static void measure_launch(scene_t *scene)
{
    struct timespec begun;
    struct timespec ended;
    const char *arguments[] = {"append", "db", "newest", "somebody", "1", NULL};
    new_store(scene);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    free(program_run(scene->folder, arguments));
    clock_gettime(CLOCK_MONOTONIC, &ended);
    scene->launch_us =
        (ended.tv_sec - begun.tv_sec) * 1000000 + (ended.tv_nsec - begun.tv_nsec) / 1000;
}

static void the_program_is_killed(void **state)
{
    (void)state;
    scene_t scene = {.folder = "/tmp/spillway-kill-XXXXXX", .random = killed_seed()};
    assert_non_null(mkdtemp(scene.folder));
    print_message("seed %u\n", scene.random);
    measure_launch(&scene);
    int kills = (int)effort(2000, 25, 20);
    int rounds = 0;
    /* Chance decides which kills interrupt a write: repeat until enough have. */
    for (; scene.kills < kills || scene.kills_in_writing <= kills / 10; rounds++) {
        assert_true(rounds < TRIES_FOR_A_KILL * kills);
        if (rounds % ROUNDS_OF_A_STORE == 0)
            new_store(&scene);
        play_round(&scene);
        if (rounds % ROUNDS_OF_A_STORE == ROUNDS_OF_A_STORE - 1)
            check_all_arrays(&scene);
    }
    check_all_arrays(&scene);
    print_message("%d rounds, %d kills of a running program; %d left unacknowledged "
                  "elements; %" PRId64 " elements acknowledged\n",
                  rounds, scene.kills, scene.kills_in_writing, scene.elements);
    assert_true(scene.elements > kills);
    char remove_it[128];
    snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", scene.folder);
    assert_int_equal(system(remove_it), 0);
}

int main(int count, char **arguments)
{
    killed_run_if_worker(count, arguments);
    program_needed();
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_program_is_killed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
