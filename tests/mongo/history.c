#include "history.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LABELS_A_WORKER = 1000000000 };

static void die(const char *what)
{
    fprintf(stderr, "history: %s: %s\n", what, strerror(errno));
    exit(1);
}

int64_t history_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t history_label(int worker, int64_t number, int64_t i)
{
    return (int64_t)worker * LABELS_A_WORKER + number * (HISTORY_BATCH_MAX + 1) + i;
}

char *history_path(const char *folder, int worker)
{
    return bson_strdup_printf("%s/worker-%d", folder, worker);
}

/* ---- reading --------------------------------------------------------------------------------- */

static void add_append(history_book_t *book, history_append_t append)
{
    if (book->append_count == book->append_capacity) {
        book->append_capacity = 2 * book->append_capacity + 256;
        book->appends = bson_realloc(book->appends, book->append_capacity * sizeof append);
    }
    book->appends[book->append_count++] = append;
}

static void add_removal(history_book_t *book, history_removal_t removal)
{
    if (book->removal_count == book->removal_capacity) {
        book->removal_capacity = 2 * book->removal_capacity + 256;
        book->removals = bson_realloc(book->removals, book->removal_capacity * sizeof removal);
    }
    book->removals[book->removal_count++] = removal;
}

static void parse_call(history_book_t *book, const char *word, const char *rest, int64_t number)
{
    history_append_t append = {.number = number, .outcome = HISTORY_OPEN};
    history_removal_t removal = {.below = strcmp(word, "trim") == 0};
    if (strcmp(word, "append") == 0 &&
        sscanf(rest, " %47s %" SCNd64 " %" SCNd64, append.owner, &append.count, &append.base) == 3)
        add_append(book, append);
    else if ((removal.below || strcmp(word, "remove") == 0) &&
             sscanf(rest, " %47s %" SCNd64, removal.owner, &removal.seq) == 2)
        add_removal(book, removal);
}

static void parse_line(history_book_t *book, const char *line)
{
    char word[16];
    int end;
    if (sscanf(line, "%*d %*d %" SCNd64 " %15s%n", &book->number, word, &end) != 2) {
        fprintf(stderr, "history: unknown line '%s'\n", line);
        exit(1);
    }
    history_append_t *append =
        book->append_count > 0 ? &book->appends[book->append_count - 1] : NULL;
    if (strcmp(word, "unknown") == 0 && append != NULL)
        append->outcome = HISTORY_UNKNOWN;
    else if (strcmp(word, "appended") == 0 && append != NULL &&
             sscanf(line + end, " %" SCNd64, &append->first) == 1)
        append->outcome = HISTORY_APPENDED;
    else if ((strcmp(word, "removed") == 0 || strcmp(word, "trimmed") == 0) &&
             book->removal_count > 0)
        book->removals[book->removal_count - 1].done = true;
    else
        parse_call(book, word, line + end, book->number);
}

/* Read a log; *end is where its last whole line ends. */
static history_book_t read_book(const char *path, off_t *end)
{
    history_book_t book = {.number = -1};
    char *line = NULL;
    size_t size = 0;
    ssize_t got;
    *end = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && (got = getline(&line, &size, file)) > 0 && line[got - 1] == '\n') {
        *end += got;
        parse_line(&book, line);
    }
    free(line);
    if (file != NULL)
        fclose(file);
    return book;
}

history_book_t history_book(const char *folder, int worker)
{
    off_t end;
    char *path = history_path(folder, worker);
    history_book_t book = read_book(path, &end);
    bson_free(path);
    return book;
}

void history_book_release(history_book_t *book)
{
    bson_free(book->appends);
    bson_free(book->removals);
}

/* ---- writing --------------------------------------------------------------------------------- */

bool history_open(history_t *history, const char *folder, int worker, history_append_t *open_append)
{
    off_t end;
    char *path = history_path(folder, worker);
    history_book_t book = read_book(path, &end);
    *history = (history_t){.worker = worker, .number = book.number};
    history->file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (history->file < 0 || ftruncate(history->file, end) != 0)
        die(path);
    const history_append_t *last =
        book.append_count > 0 ? &book.appends[book.append_count - 1] : NULL;
    bool is_open = last != NULL && last->outcome == HISTORY_OPEN;
    if (is_open)
        *open_append = *last;
    history_book_release(&book);
    bson_free(path);
    return is_open;
}

void history_close(history_t *history)
{
    close(history->file);
}

static void write_event(history_t *history, const char *format, ...) BSON_GNUC_PRINTF(2, 3);
static void write_event(history_t *history, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *what = bson_strdupv_printf(format, arguments);
    va_end(arguments);
    char *line = bson_strdup_printf("%" PRId64 " %d %" PRId64 " %s\n", history_now(),
                                    history->worker, history->number, what);
    size_t size = strlen(line);
    if (write(history->file, line, size) != (ssize_t)size)
        die("write");
    bson_free(line);
    bson_free(what);
}

void history_append(history_t *history, const char *owner, int64_t count, int64_t base)
{
    history->number++;
    write_event(history, "append %s %" PRId64 " %" PRId64, owner, count, base);
}

void history_count(history_t *history, const char *owner)
{
    history->number++;
    write_event(history, "count %s", owner);
}

static const char *order_name(const spill_read_options_t *options)
{
    return options->order == SPILL_NEWEST_FIRST ? "newest" : "oldest";
}

void history_read(history_t *history, const char *owner, const spill_read_options_t *options)
{
    int64_t cursor = options->after;
    if (options->order == SPILL_NEWEST_FIRST)
        cursor = options->before == INT64_MAX ? -1 : options->before;
    history->number++;
    write_event(history, "read %s %s %" PRId64 " %" PRId64, owner, order_name(options), cursor,
                options->limit);
}

void history_remove(history_t *history, const char *owner, int64_t seq)
{
    history->number++;
    write_event(history, "remove %s %" PRId64, owner, seq);
}

void history_trim(history_t *history, const char *owner, int64_t below)
{
    history->number++;
    write_event(history, "trim %s %" PRId64, owner, below);
}

void history_removed(history_t *history, int existed)
{
    write_event(history, "removed %d", existed);
}

void history_trimmed(history_t *history)
{
    write_event(history, "trimmed");
}

void history_add(history_t *history, const char *owner, int64_t id)
{
    history->number++;
    write_event(history, "add %s %" PRId64, owner, id);
}

void history_remove_id(history_t *history, const char *owner, int64_t id)
{
    history->number++;
    write_event(history, "remove-id %s %" PRId64, owner, id);
}

void history_contains(history_t *history, const char *owner, int64_t id)
{
    history->number++;
    write_event(history, "contains %s %" PRId64, owner, id);
}

void history_added(history_t *history, bool added)
{
    write_event(history, "added %d", added);
}

void history_contained(history_t *history, bool contained)
{
    write_event(history, "contained %d", contained);
}

void history_appended(history_t *history, int64_t first)
{
    write_event(history, "appended %" PRId64, first);
}

void history_unknown(history_t *history)
{
    write_event(history, "unknown");
}

void history_counted(history_t *history, int64_t count)
{
    write_event(history, "counted %" PRId64, count);
}

void history_got(history_t *history, const spill_slice_t *slice)
{
    bson_string_t *labels = bson_string_new("");
    for (size_t i = 0; i < slice->count; i++) {
        int64_t label;
        memcpy(&label, slice->elements[i].value.data, sizeof label);
        bson_string_append_printf(labels, " %" PRId64, (int64_t)BSON_UINT64_FROM_LE(label));
    }
    write_event(history, "got %" PRId64 " %d%s", slice->count > 0 ? slice->elements[0].seq : -1,
                slice->more, labels->str);
    bson_string_free(labels, true);
}

/* ---- checking -------------------------------------------------------------------------------- */

int history_check(const char *folder)
{
    const char *sources = getenv("SPILLWAY_SOURCE"); /* ctest sets it */
    if (sources == NULL) {
        fprintf(stderr, "history: SPILLWAY_SOURCE must be the folder of the sources\n");
        exit(1);
    }
    char *command = bson_strdup_printf("'%s/tests/mongo/linearizable/run' -html %s %s/worker-*",
                                       sources, folder, folder);
    fflush(stdout);
    int status = system(command);
    bson_free(command);
    if (!WIFEXITED(status))
        die("the checker");
    return WEXITSTATUS(status);
}
