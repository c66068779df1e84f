#include "tools/scan/scan.h"

#include "tools/import_decode.h"
#include "tools/scan/feed.h"
#include "tools/scan/inputs.h"
#include "tools/scan/walk.h"
#include "util/clock.h"
#include "util/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

enum { THREADS_MAX = 2, PATH_SHOWN = 40 };

/* One scan. The lock guards the feed, and what both threads change. */
typedef struct scanner {
    const spill_scan_options_t *options;
    spill_scan_result_t *result;
    pthread_mutex_t lock;
    spill_feed_t *feed;
    const char *input;
    int64_t bytes_before; /* of the files before this one */
    int64_t bytes_total;
    int64_t documents;
    int64_t damaged; /* of the collection at hand */
    bool ended;
} scanner_t;

typedef struct worker {
    scanner_t *scanner;
    spill_walker_t *walker;
    spill_paths_t paths;
    spill_block_t block;
    bool leads; /* reports progress */
    pthread_t thread;
} worker_t;

void spill_scan_options_init(spill_scan_options_t *options)
{
    *options = (spill_scan_options_t){.limits = {.elements = SPILL_SCAN_ELEMENTS,
                                                 .bytes = SPILL_SCAN_BYTES,
                                                 .document_bytes = SPILL_SCAN_DOCUMENT_LIMIT,
                                                 .paid_per_cent = SPILL_SCAN_PAID_PER_CENT},
                                      .threads = THREADS_MAX};
}

/* ---- problems -------------------------------------------------------------------------------- */

/* From the feed, which is called under the lock. */
static void note_problem(void *context, int64_t place, const char *text)
{
    scanner_t *scanner = context;
    spill_scan_add_problem(scanner->result, scanner->input, scanner->feed->ops->by_line, place,
                           text);
}

static void note_missing(void *context, const char *path, const char *text)
{
    scanner_t *scanner = context;
    spill_scan_add_problem(scanner->result, path, false, -1, text);
}

static void report(scanner_t *scanner, int64_t place, bool damaged, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void report(scanner_t *scanner, int64_t place, bool damaged, const char *format, ...)
{
    char text[SPILL_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&scanner->lock);
    note_problem(scanner, place, text);
    scanner->damaged += damaged;
    pthread_mutex_unlock(&scanner->lock);
}

/* ---- documents ------------------------------------------------------------------------------- */

static void walk_document(worker_t *worker, const uint8_t *data, size_t size, int64_t place)
{
    scanner_t *scanner = worker->scanner;
    bool by_line = scanner->feed->ops->by_line;
    spill_walk_t walk;
    spill_walk(worker->walker, &worker->paths, data, size, place, &walk);
    if (walk.damage)
        report(scanner, by_line ? place : place + (int64_t)walk.damage_at, true,
               "%s: the document is passed over", walk.damage);
    else if (walk.flaw)
        report(scanner, by_line ? place : place + (int64_t)walk.flaw_at, false, "%s", walk.flaw);
}

static void walk_text(worker_t *worker, const spill_feed_record_t *record)
{
    spill_decoder_t decoder = {.format = SPILL_FORMAT_NDJSON};
    spill_record_t text = {.data = worker->block.data.data + record->at,
                           .size = record->size_bytes,
                           .line = record->place};
    bson_t document;
    spill_error_t error;
    if (spill_decode(&decoder, &text, &document, &error) != SPILL_OK) {
        report(worker->scanner, record->place, true, "%s", error.message);
        return;
    }
    walk_document(worker, bson_get_data(&document), document.len, record->place);
    bson_destroy(&document);
}

static bool is_stopped(const scanner_t *scanner)
{
    atomic_bool *stop = scanner->options->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* The next block; false at the end. */
static bool take_block(worker_t *worker)
{
    scanner_t *scanner = worker->scanner;
    spill_error_t error;
    spill_block_clear(&worker->block);
    pthread_mutex_lock(&scanner->lock);
    scanner->result->interrupted = scanner->result->interrupted || is_stopped(scanner);
    if (!scanner->ended && !scanner->result->interrupted) {
        if (scanner->feed->ops->next(scanner->feed, &worker->block, &error) != SPILL_OK)
            note_problem(scanner, -1, error.message);
        scanner->ended = worker->block.count == 0;
    }
    scanner->documents += (int64_t)worker->block.count;
    spill_scan_progress_t progress = {.documents = scanner->documents,
                                      .bytes_total = scanner->bytes_total};
    if (scanner->feed->source)
        progress.bytes_done = scanner->bytes_before + spill_source_position(scanner->feed->source);
    pthread_mutex_unlock(&scanner->lock);
    if (worker->leads && scanner->options->progress)
        scanner->options->progress(scanner->options->context, &progress);
    return worker->block.count > 0;
}

static void *work(void *argument)
{
    worker_t *worker = argument;
    bool text = worker->scanner->feed->ops->text;
    while (take_block(worker)) {
        for (size_t i = 0; i < worker->block.count; i++) {
            const spill_feed_record_t *record = &worker->block.records[i];
            if (text)
                walk_text(worker, record);
            else
                walk_document(worker, worker->block.data.data + record->at, record->size_bytes,
                              record->place);
        }
    }
    return NULL;
}

/* ---- collections ----------------------------------------------------------------------------- */

static void start_worker(scanner_t *scanner, worker_t *worker, bool leads)
{
    *worker = (worker_t){.scanner = scanner, .leads = leads, .walker = spill_walker_new()};
    spill_paths_init(&worker->paths, &scanner->options->limits);
}

static void end_worker(worker_t *worker)
{
    spill_walker_free(worker->walker);
    spill_paths_release(&worker->paths);
    spill_block_release(&worker->block);
}

/* All of the feed, which is of one collection. */
static void scan_feed(scanner_t *scanner, const char *collection)
{
    worker_t workers[THREADS_MAX];
    int threads = scanner->options->threads == 1 ? 1 : THREADS_MAX;
    bool started[THREADS_MAX] = {false};
    scanner->ended = false;
    scanner->damaged = 0;
    for (int i = 0; i < threads; i++)
        start_worker(scanner, &workers[i], i == 0);
    for (int i = 1; i < threads; i++)
        started[i] = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    work(&workers[0]);
    for (int i = 1; i < threads; i++) {
        if (started[i])
            pthread_join(workers[i].thread, NULL);
        spill_paths_merge(&workers[0].paths, &workers[i].paths);
    }
    spill_paths_foresee(&workers[0].paths, spill_clock_now_us(NULL) / 1000);
    spill_scan_add_collection(scanner->result, collection, scanner->input, &workers[0].paths,
                              scanner->damaged);
    for (int i = 0; i < threads; i++)
        end_worker(&workers[i]);
}

static spill_code_t open_feed(const spill_scan_input_t *input, spill_feed_t **feed,
                              spill_error_t *error)
{
    spill_source_t *source;
    *feed = NULL;
    spill_code_t code = spill_source_open(input->path, input->codec, &source, error);
    if (code != SPILL_OK) {
        spill_source_close(source);
        return code;
    }
    return input->format == SPILL_FORMAT_BSON ? spill_feed_bson(source, feed, error)
                                              : spill_feed_text(source, input->format, feed, error);
}

static void scan_input(scanner_t *scanner, const spill_scan_input_t *input)
{
    spill_error_t error;
    scanner->input = input->path;
    if (open_feed(input, &scanner->feed, &error) == SPILL_OK) {
        scanner->feed->problem = note_problem;
        scanner->feed->context = scanner;
        scan_feed(scanner, input->collection);
    } else {
        spill_scan_add_problem(scanner->result, input->path, false, -1, error.message);
    }
    spill_feed_close(scanner->feed);
    scanner->feed = NULL;
    if (input->size_bytes > 0)
        scanner->bytes_before += input->size_bytes;
}

spill_code_t spill_scan(const spill_scan_options_t *options, spill_scan_result_t *result,
                        spill_error_t *error)
{
    *result = (spill_scan_result_t){.limits = options->limits};
    scanner_t scanner = {.options = options, .result = result};
    spill_scan_inputs_t inputs;
    spill_code_t code =
        spill_scan_inputs(options->source, options->format, &inputs, note_missing, &scanner, error);
    scanner.bytes_total = inputs.size_bytes;
    pthread_mutex_init(&scanner.lock, NULL);
    for (size_t i = 0; code == SPILL_OK && i < inputs.count && !result->interrupted; i++)
        scan_input(&scanner, &inputs.items[i]);
    pthread_mutex_destroy(&scanner.lock);
    spill_scan_inputs_release(&inputs);
    spill_scan_find(result);
    return code;
}
