/* Scan a source: inputs, workers, and the documents between them. */
#include "tools/scan/scan.h"

#include "tools/import/import_records.h"
#include "tools/scan/document_source.h"
#include "tools/scan/paths.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/file.h"

#include <spillway/array.h>

#include <pthread.h>
#include <stdarg.h>
#include <string.h>

enum { THREADS_MAX = 2 };

/* A collection that is being scanned. */
typedef struct collection {
    char *name;
    spill_paths_t *tables[THREADS_MAX]; /* one per thread; NULL: that thread had no block of it */
    int busy;                           /* threads with a block of it */
    int64_t damaged;
} collection_t;

/* One scan. The lock guards the document source, and what both threads change. */
typedef struct scanner {
    const spill_scan_options_t *options;
    spill_scan_result_t *result;
    pthread_mutex_t lock;
    spill_document_source_t *document_source;
    const spill_scan_input_t *input;
    spill_raw_reader_t *reader; /* of a server, else NULL */
    const char *collection;     /* of that server, which is being read */
    collection_t **collections; /* by the source's index; NULL: not begun, or in the result */
    size_t *begun;              /* the indexes of those that are not NULL, ascending */
    size_t begun_count;
    size_t count;
    int64_t bytes_before; /* of the files before this one */
    int64_t bytes_total;
    int64_t documents;
    int64_t documents_total;
    bool ended;
} scanner_t;

typedef struct worker {
    scanner_t *scanner;
    spill_walker_t *walker;
    spill_block_t block;
    collection_t *collection; /* of the block */
    int number;               /* 0 reports progress */
    pthread_t thread;
} worker_t;

void spill_scan_options_init(spill_scan_options_t *options)
{
    *options = (spill_scan_options_t){.collections_max = SPILL_SCAN_COLLECTIONS,
                                      .limits = {.elements = SPILL_SCAN_ELEMENTS,
                                                 .bytes = SPILL_SCAN_BYTES,
                                                 .document_bytes = SPILL_SCAN_DOCUMENT_LIMIT,
                                                 .paid_per_cent = SPILL_SCAN_PAID_PER_CENT},
                                      .threads = THREADS_MAX};
}

/* ---- problems -------------------------------------------------------------------------------- */

/* Called with the lock held, as the document source is. */
static void note_problem(void *context, int64_t place, const char *text)
{
    scanner_t *scanner = context;
    spill_scan_add_problem(scanner->result, scanner->input->path,
                           scanner->document_source->ops->by_line, place, text);
}

/* Do not report input that is cut off because the scan was stopped. */
static void note_cut(void *context, int64_t place, const char *text)
{
    const scanner_t *scanner = context;
    if (!scanner->document_source->source ||
        !spill_source_stopped(scanner->document_source->source))
        note_problem(context, place, text);
}

static void note_missing(void *context, const char *path, const char *text)
{
    scanner_t *scanner = context;
    spill_scan_add_problem(scanner->result, path, false, -1, text);
}

static void report_problem(worker_t *worker, int64_t place, bool damaged, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void report_problem(worker_t *worker, int64_t place, bool damaged, const char *format, ...)
{
    scanner_t *scanner = worker->scanner;
    char text[SPILL_ERROR_MESSAGE_SIZE] = "";
    va_list arguments;
    pthread_mutex_lock(&scanner->lock);
    va_start(arguments, format);
    if (scanner->result->problem_count < SPILL_SCAN_PROBLEMS_KEPT) /* others are only counted */
        vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    note_problem(scanner, place, text);
    worker->collection->damaged += damaged;
    pthread_mutex_unlock(&scanner->lock);
}

static spill_walker_t *new_walker(const scanner_t *scanner)
{
    spill_walker_t *walker = spill_walker_new();
    if (scanner->options->ignore_outlines)
        spill_walker_ignore_outlines(walker);
    return walker;
}

/* ---- documents ------------------------------------------------------------------------------- */

static void walk_document(worker_t *worker, const uint8_t *data, size_t size, int64_t place)
{
    bool by_line = worker->scanner->document_source->ops->by_line;
    spill_walk_t walk;
    spill_walk(worker->walker, worker->collection->tables[worker->number], data, size, place,
               &walk);
    if (walk.damage)
        report_problem(worker, by_line ? place : place + (int64_t)walk.damage_at, true,
                       "%s: the document is skipped", walk.damage);
    else if (walk.flaw)
        report_problem(worker, by_line ? place : place + (int64_t)walk.flaw_at, false, "%s",
                       walk.flaw);
}

static void walk_text(worker_t *worker, const spill_document_source_record_t *record)
{
    spill_decoder_t decoder = {.format = SPILL_FORMAT_NDJSON};
    spill_input_record_t text = {.data = worker->block.data.data + record->at,
                                 .size = record->size_bytes,
                                 .line = record->place};
    bson_t document;
    spill_error_t error;
    if (spill_decode(&decoder, &text, &document, &error) != SPILL_OK) {
        report_problem(worker, record->place, true, "%s", error.message);
        return;
    }
    walk_document(worker, bson_get_data(&document), document.len, record->place);
    bson_destroy(&document);
}

/* ---- collections: with the lock held --------------------------------------------------------- */

static collection_t *new_collection(const char *name)
{
    collection_t *collection = bson_malloc0(sizeof *collection);
    collection->name = bson_strdup(name);
    return collection;
}

/* Create a table for the worker, unless it has one. */
static void ensure_table(const worker_t *worker, collection_t *collection)
{
    if (collection->tables[worker->number])
        return;
    spill_paths_t *paths = bson_malloc(sizeof *paths);
    spill_paths_init(paths, &worker->scanner->options->limits);
    collection->tables[worker->number] = paths;
}

static void note_begun(scanner_t *scanner, size_t index)
{
    size_t at = scanner->begun_count++;
    scanner->begun = bson_realloc(scanner->begun, scanner->begun_count * sizeof *scanner->begun);
    for (; at > 0 && scanner->begun[at - 1] > index; at--)
        scanner->begun[at] = scanner->begun[at - 1];
    scanner->begun[at] = index;
}

/* The collection of the worker's block, with a table for the worker. */
static collection_t *collection_of(worker_t *worker)
{
    scanner_t *scanner = worker->scanner;
    size_t index = worker->block.collection;
    bool ended = false;
    if (index >= scanner->count) {
        size_t more = index + 1 - scanner->count;
        scanner->collections =
            bson_realloc(scanner->collections, (index + 1) * sizeof(collection_t *));
        memset(scanner->collections + scanner->count, 0, more * sizeof(collection_t *));
        scanner->count = index + 1;
    }
    collection_t *collection = scanner->collections[index];
    if (!collection) {
        const char *name =
            scanner->document_source->ops->collection
                ? scanner->document_source->ops->collection(scanner->document_source, index, &ended)
                : scanner->input->collection;
        collection = new_collection(name);
        scanner->collections[index] = collection;
        note_begun(scanner, index);
    }
    ensure_table(worker, collection);
    return collection;
}

/* ---- the end of collections: with the lock held ---------------------------------------------- */

static void add_index(void *indexes, const bson_t *description, int64_t bytes)
{
    spill_scan_indexes_add(indexes, description, bytes);
}

/* Read the indexes of the source's collection of that index, from any description of it. */
static void read_indexes(scanner_t *scanner, size_t index, spill_scan_indexes_t *indexes)
{
    const spill_document_source_ops_t *ops = scanner->document_source->ops;
    const char *inner = ops->metadata ? ops->metadata(scanner->document_source, index) : NULL;
    if (scanner->reader) {
        spill_raw_reader_indexes(scanner->reader, scanner->collection, add_index, indexes);
    } else if (inner) {
        spill_scan_indexes_parse(indexes, inner, strlen(inner));
    } else if (scanner->input->metadata) {
        size_t size = 0;
        char *text = spill_scan_metadata(scanner->input, &size);
        if (!text || !spill_scan_indexes_parse(indexes, text, size))
            spill_scan_add_problem(scanner->result, scanner->input->metadata, false, -1,
                                   "the collection's description is damaged: its indexes are "
                                   "unknown");
        bson_free(text);
    }
}

/* Add a collection to the result; it was read completely. */
static void finish_collection(scanner_t *scanner, size_t index)
{
    spill_scan_result_t *result = scanner->result;
    collection_t *collection = scanner->collections[index];
    spill_paths_t none, *first = NULL;
    for (int i = 0; i < THREADS_MAX; i++) {
        spill_paths_t *paths = collection->tables[i];
        if (first && paths)
            spill_paths_merge(first, paths);
        first = first ? first : paths;
    }
    if (!first) {
        spill_paths_init(&none, &scanner->options->limits);
        first = &none;
    }
    spill_paths_foresee(first, spill_clock_now_us(NULL) / 1000);
    spill_scan_add_collection(result, collection->name, scanner->input->path, first,
                              collection->damaged);
    read_indexes(scanner, index, &result->collections[result->collection_count - 1].indexes);
    if (first == &none)
        spill_paths_release(&none);
    for (int i = 0; i < THREADS_MAX; i++) {
        if (collection->tables[i])
            spill_paths_release(collection->tables[i]);
        bson_free(collection->tables[i]);
    }
    bson_free(collection->name);
    bson_free(collection);
}

/* Add the ended collections to the result, so that only those of the current input are kept. */
static void finish_ended(scanner_t *scanner, bool all)
{
    size_t left = 0;
    for (size_t i = 0; i < scanner->begun_count; i++) {
        size_t index = scanner->begun[i];
        bool busy = scanner->collections[index]->busy > 0, ended = all;
        if (!all && !busy && scanner->document_source->ops->collection)
            scanner->document_source->ops->collection(scanner->document_source, index, &ended);
        if (busy || !ended) {
            scanner->begun[left++] = index;
            continue;
        }
        finish_collection(scanner, index);
        scanner->collections[index] = NULL;
    }
    scanner->begun_count = left;
}

static void free_collections(scanner_t *scanner)
{
    bson_free(scanner->collections);
    bson_free(scanner->begun);
    scanner->collections = NULL;
    scanner->begun = NULL;
    scanner->count = 0;
    scanner->begun_count = 0;
}

/* ---- workers --------------------------------------------------------------------------------- */

static bool is_stopped(const scanner_t *scanner)
{
    atomic_bool *stop = scanner->options->stop;
    return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

static void take_block(worker_t *worker)
{
    scanner_t *scanner = worker->scanner;
    spill_error_t error;
    scanner->result->interrupted = scanner->result->interrupted || is_stopped(scanner);
    if (scanner->ended || scanner->result->interrupted)
        return;
    if (scanner->document_source->ops->next(scanner->document_source, &worker->block, &error) !=
        SPILL_OK)
        note_cut(scanner, -1, error.message);
    scanner->result->interrupted = is_stopped(scanner);
    scanner->ended = worker->block.count == 0;
    if (scanner->ended)
        return;
    worker->collection = collection_of(worker);
    worker->collection->busy++;
    scanner->documents += (int64_t)worker->block.count;
}

/* Get the next block; false at the end. */
static bool next_block(worker_t *worker)
{
    scanner_t *scanner = worker->scanner;
    spill_block_clear(&worker->block);
    pthread_mutex_lock(&scanner->lock);
    if (worker->collection) {
        worker->collection->busy--;
        worker->collection = NULL;
        finish_ended(scanner, false);
    }
    take_block(worker);
    spill_scan_progress_t progress = {.documents = scanner->documents,
                                      .documents_total = scanner->documents_total,
                                      .bytes_total = scanner->bytes_total};
    if (scanner->document_source->source)
        progress.bytes_done =
            scanner->bytes_before + spill_source_position(scanner->document_source->source);
    pthread_mutex_unlock(&scanner->lock);
    if (worker->number == 0 && scanner->options->progress)
        scanner->options->progress(scanner->options->context, &progress);
    return worker->block.count > 0;
}

static void *run_worker(void *argument)
{
    worker_t *worker = argument;
    bool text = worker->scanner->document_source->ops->text;
    while (next_block(worker)) {
        for (size_t i = 0; i < worker->block.count; i++) {
            const spill_document_source_record_t *record = &worker->block.records[i];
            if (text)
                walk_text(worker, record);
            else
                walk_document(worker, worker->block.data.data + record->at, record->size_bytes,
                              record->place);
        }
    }
    return NULL;
}

/* Scan the whole document source. */
static void scan_source(scanner_t *scanner)
{
    worker_t workers[THREADS_MAX] = {0};
    bool started[THREADS_MAX] = {false};
    int threads = scanner->options->threads == 1 ? 1 : THREADS_MAX;
    scanner->ended = false;
    for (int i = 0; i < threads; i++) {
        workers[i].scanner = scanner;
        workers[i].number = i;
        workers[i].walker = new_walker(scanner);
    }
    if (!scanner->document_source->ops->collection)
        collection_of(&workers[0]); /* report the collection even if it is empty */
    for (int i = 1; i < threads; i++)
        started[i] = pthread_create(&workers[i].thread, NULL, run_worker, &workers[i]) == 0;
    run_worker(&workers[0]);
    for (int i = 0; i < threads; i++) {
        if (started[i])
            pthread_join(workers[i].thread, NULL);
        spill_walker_free(workers[i].walker);
        spill_block_release(&workers[i].block);
    }
    finish_ended(scanner, true);
    free_collections(scanner);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static spill_code_t open_source(const spill_scan_input_t *input, const atomic_bool *stop,
                                spill_document_source_t **document_source, spill_error_t *error)
{
    spill_source_t *source;
    *document_source = NULL;
    spill_code_t code = spill_source_open(input->path, input->codec, &source, error);
    if (code != SPILL_OK) {
        spill_source_close(source);
        return code;
    }
    spill_source_stop_by(source, stop);
    if (input->archive)
        return spill_document_source_archive(source, document_source, error);
    return input->format == SPILL_FORMAT_BSON
               ? spill_document_source_bson(source, document_source, error)
               : spill_document_source_text(source, input->format, document_source, error);
}

static void scan_input(scanner_t *scanner, const spill_scan_input_t *input)
{
    spill_error_t error;
    scanner->input = input;
    if (open_source(input, scanner->options->stop, &scanner->document_source, &error) == SPILL_OK) {
        scanner->document_source->problem = note_cut;
        scanner->document_source->context = scanner;
        scan_source(scanner);
    } else {
        spill_scan_add_problem(scanner->result, input->path, false, -1, error.message);
    }
    spill_document_source_close(scanner->document_source);
    scanner->document_source = NULL;
    if (input->size_bytes > 0)
        scanner->bytes_before += input->size_bytes;
}

static spill_code_t scan_files(scanner_t *scanner, spill_error_t *error)
{
    const spill_scan_options_t *options = scanner->options;
    spill_scan_inputs_t inputs;
    spill_code_t code =
        spill_scan_inputs(options->source, options->format, &inputs, note_missing, scanner, error);
    scanner->bytes_total = inputs.size_bytes;
    scanner->documents_total = -1;
    scanner->result->qualified = spill_file_is_folder(options->source);
    for (size_t i = 0; i < inputs.count; i++)
        scanner->result->qualified |= inputs.items[i].archive;
    for (size_t i = 0; code == SPILL_OK && i < inputs.count && !scanner->result->interrupted; i++)
        scan_input(scanner, &inputs.items[i]);
    spill_scan_inputs_release(&inputs);
    return code;
}

/* ---- a server -------------------------------------------------------------------------------- */

/* Report whether the name is in the list, which is separated by commas. */
static bool is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);
    while (list && *list) {
        size_t word = strcspn(list, ",");
        if (word == length && strncmp(list, name, length) == 0)
            return true;
        list += word + (list[word] == ',');
    }
    return false;
}

static void scan_collection(scanner_t *scanner, spill_raw_reader_t *reader, const char *name)
{
    const spill_scan_options_t *options = scanner->options;
    spill_scan_input_t input = {
        .path = bson_strdup(spill_raw_reader_place(reader)),
        .collection = bson_strdup_printf("%s.%s", spill_raw_reader_database(reader), name)};
    scanner->input = &input;
    scanner->reader = reader;
    scanner->collection = name;
    scanner->document_source =
        spill_document_source_server(reader, name, options->sample, options->rate);
    scanner->document_source->problem = note_cut;
    scanner->document_source->context = scanner;
    scan_source(scanner);
    spill_document_source_close(scanner->document_source);
    scanner->document_source = NULL;
    bson_free(input.path);
    bson_free(input.collection);
}

/* Count the documents to read, for the progress. */
static void count_documents(scanner_t *scanner, spill_raw_reader_t *reader, char **names)
{
    int64_t sample = scanner->options->sample;
    for (size_t i = 0; names[i] && scanner->documents_total >= 0; i++) {
        int64_t count = spill_raw_reader_count(reader, names[i]);
        int64_t part = sample > 0 && count > sample ? sample : count;
        scanner->documents_total = count < 0 ? -1 : scanner->documents_total + part;
    }
}

/* Remove the names that are not in the list. */
static void keep_wanted(const char *list, char **names)
{
    size_t kept = 0;
    for (size_t i = 0; names[i]; i++) {
        if (list && !is_wanted(list, names[i]))
            bson_free(names[i]);
        else
            names[kept++] = names[i];
    }
    names[kept] = NULL;
}

static spill_code_t scan_server(scanner_t *scanner, spill_error_t *error)
{
    const spill_scan_options_t *options = scanner->options;
    spill_raw_reader_t *reader;
    char **names = NULL;
    scanner->bytes_total = -1;
    scanner->result->qualified = true;
    spill_code_t code = spill_raw_reader_open(options->source, options->preference, &reader, error);
    if (code == SPILL_OK)
        code = spill_raw_reader_collections(reader, &names, error);
    if (code == SPILL_OK) {
        keep_wanted(options->only, names);
        count_documents(scanner, reader, names);
        if (!names[0])
            code = spill_fail(error, SPILL_NOT_FOUND, "%s has no such collection",
                              spill_raw_reader_place(reader));
        for (size_t i = 0; names[i] && !scanner->result->interrupted; i++)
            scan_collection(scanner, reader, names[i]);
    }
    bson_strfreev(names);
    spill_raw_reader_close(reader);
    return code;
}

/* ---- an embedded store ----------------------------------------------------------------------- */

/* An embedded store calls back for each document, and one thread walks them. */
typedef struct pushed {
    worker_t worker;
    const char *definition;
} pushed_t;

/* "feed.users": heads and pages of each definition are collections of their own. */
static collection_t *collection_named(worker_t *worker, const char *definition, const char *name)
{
    scanner_t *scanner = worker->scanner;
    char *full = bson_strdup_printf("%s.%s", definition, name);
    size_t i = 0;
    while (i < scanner->count && strcmp(scanner->collections[i]->name, full) != 0)
        i++;
    if (i == scanner->count) {
        scanner->collections = bson_realloc(scanner->collections, (i + 1) * sizeof(collection_t *));
        scanner->collections[i] = new_collection(full);
        scanner->count++;
        note_begun(scanner, i);
    }
    bson_free(full);
    return scanner->collections[i];
}

static bool walk_pushed(void *context, const char *name, const bson_t *document)
{
    pushed_t *pushed = context;
    worker_t *worker = &pushed->worker;
    scanner_t *scanner = worker->scanner;
    worker->collection = collection_named(worker, pushed->definition, name);
    ensure_table(worker, worker->collection);
    walk_document(worker, bson_get_data(document), document->len, scanner->documents++);
    spill_scan_progress_t progress = {
        .documents = scanner->documents, .documents_total = -1, .bytes_total = -1};
    if (scanner->options->progress)
        scanner->options->progress(scanner->options->context, &progress);
    scanner->result->interrupted = is_stopped(scanner);
    return !scanner->result->interrupted;
}

static spill_code_t scan_array(scanner_t *scanner, spill_store_t *store, const char *name,
                               spill_error_t *error)
{
    pushed_t pushed = {.worker = {.scanner = scanner}, .definition = name};
    spill_array_t *array;
    spill_code_t code = spill_array_open(store, name, &array, error);
    if (code != SPILL_OK)
        return code;
    pushed.worker.walker = new_walker(scanner);
    code = spill_array_documents(array, NULL, false, walk_pushed, &pushed, error);
    spill_walker_free(pushed.worker.walker);
    spill_array_close(array);
    return code == SPILL_CANCELLED ? SPILL_OK : code;
}

static spill_code_t scan_store(scanner_t *scanner, spill_error_t *error)
{
    static const spill_document_source_ops_t none = {0};
    spill_document_source_t document_source = {.ops = &none};
    spill_scan_input_t input = {.path = bson_strdup(scanner->options->source)};
    spill_store_options_t options;
    spill_definition_t *definitions = NULL;
    spill_store_t *store;
    size_t count = 0;
    spill_store_options_init(&options);
    options.read_only = true;
    options.partial = scanner->options->partial;
    options.log = scanner->options->log;
    scanner->document_source = &document_source;
    scanner->input = &input;
    spill_code_t code = spill_store_open(scanner->options->source, &options, &store, error);
    if (code == SPILL_OK) {
        code = spill_store_definitions(store, &definitions, &count, error);
        for (size_t i = 0; code == SPILL_OK && i < count && !scanner->result->interrupted; i++)
            code = scan_array(scanner, store, definitions[i].name, error);
        spill_store_close(store, NULL);
    }
    finish_ended(scanner, true);
    scanner->document_source = NULL;
    scanner->input = NULL;
    free_collections(scanner);
    bson_free(definitions);
    bson_free(input.path);
    return code;
}

spill_code_t spill_scan(const spill_scan_options_t *options, spill_scan_result_t *result,
                        spill_error_t *error)
{
    *result = (spill_scan_result_t){.limits = options->limits,
                                    .collections_max = options->collections_max,
                                    .scanned_ms = spill_clock_now_us(NULL) / 1000};
    scanner_t scanner = {.options = options, .result = result};
    pthread_mutex_init(&scanner.lock, NULL);
    spill_code_t code;
    if (spill_raw_reader_serves(options->source))
        code = scan_server(&scanner, error);
    else if (spill_scan_is_store(options->source))
        code = scan_store(&scanner, error);
    else
        code = scan_files(&scanner, error);
    pthread_mutex_destroy(&scanner.lock);
    spill_scan_find_sprawl(result);
    spill_scan_derive(result);
    spill_scan_find(result);
    return code;
}
