#include "results.h"

#include "../measure.h"

#include <bson/bson.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

enum { WIDTH = 11, KEY_SIZE = 256 };

void row_add(row_t *row, double figure)
{
    if (row->count == COLUMNS_MAX)
        measure_stop("a row has too many figures");
    row->figures[row->count++] = figure;
}

/* ---- printed --------------------------------------------------------------------------------- */

void results_print_heads(const work_t *work)
{
    for (const column_t *column = work->columns; column->key; column++)
        printf(" %*s", WIDTH, column->head);
    printf("\n");
}

void results_print(const work_t *work, const row_t *row)
{
    for (size_t i = 0; i < row->count; i++)
        printf(" %*.*f", WIDTH, work->columns[i].decimals, row->figures[i]);
    printf("%s  %s\n", row->count == 0 ? "  not tried" : "", row->note);
    fflush(stdout);
}

/* ---- kept ------------------------------------------------------------------------------------ */

static void write_key(const results_key_t *key, char text[KEY_SIZE])
{
    const works_options_t *options = key->options;
    snprintf(text, KEY_SIZE, "%s/%s/%s/%d.%d/%d-%d-%d-%d-%d-%d-%d-%d-%gs", key->work->name,
             key->peer->id, key->place->durable ? "durable" : "not", key->run, key->repetition,
             options->appends, options->length, options->adds, options->owners, options->threads,
             options->racers, options->race_count, key->place->capacity, options->seconds);
}

bool results_have(const char *file, const results_key_t *key)
{
    char text[KEY_SIZE], *line = NULL;
    size_t size = 0;
    bool found = false;
    FILE *results = file ? fopen(file, "r") : NULL;
    write_key(key, text);
    while (results && !found && getline(&line, &size, results) >= 0)
        found = strstr(line, text) != NULL;
    free(line);
    if (results)
        fclose(results);
    return found;
}

static void append_options(bson_t *line, const results_key_t *key)
{
    const works_options_t *options = key->options;
    bson_t inner;
    BSON_APPEND_DOCUMENT_BEGIN(line, "options", &inner);
    BSON_APPEND_INT32(&inner, "appends", options->appends);
    BSON_APPEND_INT32(&inner, "length", options->length);
    BSON_APPEND_INT32(&inner, "adds", options->adds);
    BSON_APPEND_INT32(&inner, "owners", options->owners);
    BSON_APPEND_INT32(&inner, "threads", options->threads);
    BSON_APPEND_INT32(&inner, "racers", options->racers);
    BSON_APPEND_INT32(&inner, "raceCount", options->race_count);
    BSON_APPEND_INT32(&inner, "capacity", key->place->capacity);
    BSON_APPEND_DOUBLE(&inner, "seconds", options->seconds);
    BSON_APPEND_INT32(&inner, "elementBytes", ELEMENT_BYTES);
    bson_append_document_end(line, &inner);
}

static void append_figures(bson_t *line, const work_t *work, const row_t *row)
{
    bson_t inner;
    BSON_APPEND_DOCUMENT_BEGIN(line, "figures", &inner);
    for (size_t i = 0; i < row->count; i++)
        BSON_APPEND_DOUBLE(&inner, work->columns[i].key, row->figures[i]);
    bson_append_document_end(line, &inner);
}

void results_add(const char *file, const results_key_t *key, const row_t *row, double load)
{
    char text[KEY_SIZE];
    bson_t line = BSON_INITIALIZER;
    struct timeval now;
    size_t length;
    gettimeofday(&now, NULL);
    write_key(key, text);
    BSON_APPEND_UTF8(&line, "key", text);
    BSON_APPEND_UTF8(&line, "work", key->work->name);
    BSON_APPEND_UTF8(&line, "peer", key->peer->name);
    BSON_APPEND_UTF8(&line, "id", key->peer->id);
    BSON_APPEND_BOOL(&line, "socket", key->peer->home != PEER_HERE);
    BSON_APPEND_BOOL(&line, "durable", key->place->durable);
    BSON_APPEND_INT32(&line, "run", key->run);
    BSON_APPEND_INT32(&line, "repetition", key->repetition);
    BSON_APPEND_TIMEVAL(&line, "at", &now);
    BSON_APPEND_DOUBLE(&line, "load", load);
    append_options(&line, key);
    append_figures(&line, key->work, row);
    BSON_APPEND_UTF8(&line, "note", row->note);
    char *json = bson_as_relaxed_extended_json(&line, &length);
    json[length] = '\n'; /* in place of the NUL */
    int at = open(file, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (at < 0 || write(at, json, length + 1) != (ssize_t)(length + 1) || close(at) != 0)
        measure_stop("%s: cannot add a row", file);
    bson_free(json);
    bson_destroy(&line);
}
