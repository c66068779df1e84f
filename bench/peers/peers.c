/*
 * Compare peers on the same work. bench/peers/run installs and starts what they need.
 *
 *   bench_peers [--peers LIST] [--works LIST] [--durable | --not-durable] [--seconds S]
 *               [--appends N] [--length N] [--adds N] [--owners N] [--threads N] [--racers N]
 *               [--race-count N] [--capacity N] [--folder FOLDER] [--redis PORT] [--postgres PLACE]
 *               [--results FILE] [--run N] [--repetitions N] [--minutes M]
 *
 * Works that measure speed are repeated, with all peers in turn each time, so that changes of the
 * machine's load do not affect only one peer.
 *
 * With --results, rows are added to FILE. Rows of the same run and options that FILE already has
 * are skipped, so that a long run can be made in pieces. After --minutes no new row is begun; if
 * rows remain, the exit code is 3.
 *
 * SPILLWAY_TEST_URI names the MongoDB-compatible server; the benchmark uses its own database there.
 * LIST has parts of names, separated by commas.
 */
#include "../measure.h"
#include "results.h"

#include <mongoc/mongoc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const peer_t *const peers[] = {&peer_ours_embedded, &peer_rocksdb,        &peer_lmdb,
                                      &peer_sqlite,        &peer_redis_list,     &peer_redis_stream,
                                      &peer_postgres_rows, &peer_postgres_jsonb, &peer_ours_mongodb,
                                      &peer_push,          &peer_racy,           &peer_safe,
                                      &peer_referenced,    &peer_bucket};

static const work_t *const works[] = {&work_append, &work_threads, &work_long, &work_ids,
                                      &work_add,    &work_feed,    &work_race, &work_kill};

typedef struct settings {
    works_options_t works;
    peer_place_t place;
    const char *peers, *work_names, *parent;
    const char *results;
    char *database;
    bool durable, not_durable;
    int run, repetitions;
    double until; /* time after which no new row is begun; 0: none */
    int left;     /* rows not begun for lack of time */
} settings_t;

enum { EXIT_MORE = 3 };

static bool is_wanted(const char *list, const char *name)
{
    if (!list)
        return true;
    for (const char *at = list; *at != '\0';) {
        char part[64];
        size_t length = strcspn(at, ",");
        snprintf(part, sizeof part, "%.*s", (int)length, at);
        if (length > 0 && strstr(name, part))
            return true;
        at += length + (at[length] == ',');
    }
    return false;
}

static bool is_there(const peer_t *peer, const peer_place_t *place)
{
    switch (peer->home) {
    case PEER_MONGODB:
        return place->mongodb != NULL;
    case PEER_REDIS:
        return place->redis_port > 0;
    case PEER_POSTGRES:
        return place->postgres != NULL;
    default:
        return true;
    }
}

/* ---- the run's own database on the server ---------------------------------------------------- */

static char *own_database(const char *server)
{
    size_t length = strlen(server);
    while (length > 0 && server[length - 1] == '/')
        length--;
    return bson_strdup_printf("%.*s/spillway_peers_%ld_%d", (int)length, server, (long)time(NULL),
                              (int)getpid());
}

/* Drop the database before each work, in a child process, like the works. */
static void drop_database(const char *place)
{
    mongoc_init();
    mongoc_uri_t *uri = mongoc_uri_new(place);
    mongoc_client_t *client = mongoc_client_new_from_uri(uri);
    mongoc_database_t *database = mongoc_client_get_database(client, mongoc_uri_get_database(uri));
    mongoc_database_drop(database, NULL);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    mongoc_uri_destroy(uri);
}

/* ---- one row --------------------------------------------------------------------------------- */

/* Run a row in a child process, so that a peer that fails loses only its row. */
static void run_row(const settings_t *settings, const results_key_t *key)
{
    peer_place_t place = settings->place;
    char *folder = measure_folder(settings->parent);
    double load = 0;
    getloadavg(&load, 1);
    place.folder = folder;
    place.fresh = true;
    printf("%-18s", key->peer->name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        row_t row = {0};
        if (key->peer->home == PEER_MONGODB)
            drop_database(place.mongodb);
        key->work->run(key->peer, &place, key->options, &row);
        results_print(key->work, &row);
        if (settings->results)
            results_add(settings->results, key, &row, load);
        _exit(EXIT_SUCCESS);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        printf("  failed\n");
    measure_remove_folder(folder);
}

/* Run each peer once, except for existing rows. `begun`: the column heads have been printed. */
static void run_turn(settings_t *settings, const work_t *work, int repetition, bool *begun)
{
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        results_key_t key = {work,          peers[i],  &settings->place, &settings->works,
                             settings->run, repetition};
        if (!is_wanted(settings->peers, key.peer->id) || !is_there(key.peer, &settings->place) ||
            (key.peer->racy && !work->counts_loss) || results_have(settings->results, &key))
            continue;
        if (settings->until > 0 && measure_now() > settings->until) {
            settings->left++;
            continue;
        }
        if (!*begun) {
            printf("\n%s, %s\n%-18s", work->name,
                   settings->place.durable ? "durable" : "not durable", "peer");
            results_print_heads(work);
        }
        *begun = true;
        run_row(settings, &key);
    }
}

static void run_work(settings_t *settings, const work_t *work)
{
    int repetitions = work->counts_loss ? 1 : settings->repetitions;
    bool begun = false;
    for (int i = 1; i <= repetitions; i++)
        run_turn(settings, work, i, &begun);
}

static void run_works(settings_t *settings, bool durable)
{
    settings->place.durable = durable;
    for (size_t i = 0; i < sizeof works / sizeof works[0]; i++)
        if (is_wanted(settings->work_names, works[i]->name))
            run_work(settings, works[i]);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool read_text(settings_t *settings, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **to;
    } texts[] = {{"--peers", &settings->peers},
                 {"--works", &settings->work_names},
                 {"--folder", &settings->parent},
                 {"--results", &settings->results},
                 {"--postgres", &settings->place.postgres}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(name, texts[i].name) == 0) {
            *texts[i].to = value;
            return true;
        }
    return false;
}

static bool read_number(settings_t *settings, const char *name, const char *value)
{
    works_options_t *given = &settings->works;
    const struct {
        const char *name;
        int *to;
        int most;
    } numbers[] = {{"--appends", &given->appends, 10000000},
                   {"--length", &given->length, 70000},
                   {"--adds", &given->adds, 10000000},
                   {"--owners", &given->owners, 1000000},
                   {"--threads", &given->threads, 64},
                   {"--racers", &given->racers, 64},
                   {"--race-count", &given->race_count, 1 << 20},
                   {"--capacity", &settings->place.capacity, 100000},
                   {"--run", &settings->run, 1000},
                   {"--repetitions", &settings->repetitions, 1000},
                   {"--redis", &settings->place.redis_port, 65535}};
    int number = atoi(value);
    if (strcmp(name, "--seconds") == 0 && atof(value) > 0) {
        given->seconds = atof(value);
        return true;
    }
    if (strcmp(name, "--minutes") == 0 && atof(value) > 0) {
        settings->until = measure_now() + 60 * atof(value);
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0) {
            if (number < 1 || number > numbers[i].most)
                measure_stop("%s is a number from 1 to %d", name, numbers[i].most);
            *numbers[i].to = number;
            return true;
        }
    return false;
}

int main(int argc, char **argv)
{
    settings_t settings = {.works = {.appends = 100000,
                                     .length = 20000,
                                     .adds = 65536,
                                     .owners = 100000,
                                     .threads = 8,
                                     .racers = 16,
                                     .race_count = 1000,
                                     .seconds = 30},
                           .place = {.capacity = 100},
                           .run = 1,
                           .repetitions = 1,
                           .parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp"};
    const char *server = getenv("SPILLWAY_TEST_URI");
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--durable") == 0)
            settings.durable = true;
        else if (strcmp(argv[i], "--not-durable") == 0)
            settings.not_durable = true;
        else if (more && (read_text(&settings, argv[i], argv[i + 1]) ||
                          read_number(&settings, argv[i], argv[i + 1])))
            i++;
        else
            measure_stop("%s: bench/peers/peers.c names the options", argv[i]);
    }
    if (server)
        settings.place.mongodb = settings.database = own_database(server);
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool both = settings.durable == settings.not_durable;
    if (settings.not_durable || both)
        run_works(&settings, false);
    if (settings.durable || both)
        run_works(&settings, true);
    if (settings.database)
        drop_database(settings.database);
    bson_free(settings.database);
    if (settings.left > 0)
        printf("\n%d rows are left: run it again\n", settings.left);
    return settings.left > 0 ? EXIT_MORE : EXIT_SUCCESS;
}
