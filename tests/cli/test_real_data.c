/*
 * Import a real activity stream, by person and by project:
 *   - the whole stream with threshold and page 100, by person (keep newest) and by project (keep
 *     oldest);
 *   - the first lines with other bounds and both keeps;
 *   - with SPILLWAY_LONG the whole stream with both keeps and bounds 1, 2, 3, 7, 100 and 1000.
 * Every element must be read back in order, with the same BSON as libbson's parse of its line, and
 * then again page by page from the newest. Verify must find nothing.
 *
 * Runs if SPILLWAY_DATA names a folder with openstack_updates/events.ndjson.gz.
 */
#include "cli/real_data.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Threshold and page. */
static const int64_t whole[][2] = {{100, 100}};
static const int64_t equal[][2] = {{1, 1}, {2, 2}, {3, 3}, {7, 7}, {1000, 1000}};
static const int64_t unequal[][2] = {{1, 1000}, {1000, 1}, {7, 100}, {100, 7}, {3, 2}, {2, 3}};

enum { FIRST_LINES = 4000, FIRST_LINES_LONG = 30000 };

static int delete_one(const char *path, const struct stat *status, int kind, struct FTW *walk)
{
    (void)status;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void try_combination(real_data_t *data, const char *path, const char *field, shape_t shape)
{
    char folder[] = "/tmp/spillway-data-XXXXXX";
    if (!mkdtemp(folder)) {
        real_data_stop("mkdtemp", folder);
    }
    spill_error_t error;
    spill_store_t *store = NULL;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.durability = SPILL_DURABILITY_LOG;
    options.cache_bytes = 256 * 1024 * 1024;
    real_data_check(spill_store_open(folder, &options, &store, &error), &error);
    real_data_try(data, store, path, field, shape);
    real_data_check(spill_store_close(store, &error), &error);
    nftw(folder, delete_one, 16, FTW_DEPTH | FTW_PHYS);
}

static real_data_t *read_lines(const char *path, const char *field)
{
    real_data_t *data = real_data_read(path, field);
    printf("%s: %zu lines, %zu owners\n", field, data->count, data->feed_count);
    fflush(stdout);
    return data;
}

static void try_shape(const char *path, const char *field, shape_t shape)
{
    real_data_t *data = read_lines(path, field);
    try_combination(data, path, field, shape);
    real_data_free(data);
}

static void try_shapes(const char *path, const char *field, const int64_t shapes[][2], size_t count)
{
    real_data_t *data = read_lines(path, field);
    for (size_t i = 0; i < count; i++)
        for (spill_keep_t keep = SPILL_KEEP_OLDEST; keep <= SPILL_KEEP_NEWEST; keep++)
            try_combination(data, path, field, (shape_t){keep, shapes[i][0], shapes[i][1]});
    real_data_free(data);
}

static void try_field(const char *path, const char *field, spill_keep_t keep)
{
    bool is_long = getenv("SPILLWAY_LONG") != NULL;
    char *start = real_data_cut(path, is_long ? FIRST_LINES_LONG : FIRST_LINES);
    if (is_long)
        try_shapes(path, field, whole, sizeof whole / sizeof *whole);
    else
        try_shape(path, field, (shape_t){keep, whole[0][0], whole[0][1]});
    try_shapes(is_long ? path : start, field, equal, sizeof equal / sizeof *equal);
    try_shapes(start, field, unequal, sizeof unequal / sizeof *unequal);
    remove(start);
    bson_free(start);
}

int main(void)
{
    char *path = real_data_path();
    static const char *const fields[] = {"by", "project"};
    static const spill_keep_t keeps[] = {SPILL_KEEP_NEWEST, SPILL_KEEP_OLDEST};
    pid_t children[2];
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            try_field(path, fields[i], keeps[i]);
            bson_free(path);
            exit(EXIT_SUCCESS);
        }
    }
    bool good = true;
    for (int i = 0; i < 2; i++) {
        int status = 0;
        good = waitpid(children[i], &status, 0) == children[i] && status == 0 && good;
    }
    bson_free(path);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
