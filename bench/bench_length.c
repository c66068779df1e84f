/*
 * Does the cost of an operation depend on the length of the array? For each layout, an owner of a
 * million elements takes turns with owners of a thousand (or of --short) on one store. The figure
 * is the median of the rounds' ratios. docs/internals/benchmarks/lengths.md has the figures and the
 * bars.
 *
 *   bench_length [--quick] [--length N] [--short N] [--layout NAME] [--only NAME]
 *                [--dir FOLDER | --server | mongodb://HOST/]
 *
 * Without a server it uses the embedded store, in a new folder. --length is for servers, because
 * appending a million elements of each layout takes minutes there. Removals are measured only if
 * the short owners have pages.
 */
#include "measure.h"

#include "tools/bench/subject.h"

#include <mongoc/mongoc.h>
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    CAPACITY = 100, /* threshold and page */
    CYCLES = 5,     /* spills of a round */
    PAGE = 20,      /* elements of a read */
    SHORT = 1000,   /* elements of a short owner without --short */
    SHORT_MIN = 2 * PAGE,
    HOUR = 3600,       /* elements of an hour's window: one each second */
    FIRST_HOUR = 2000, /* of the first window: element 0 is at 12:26:40 */
    LENGTH_QUICK = 50000,
    SMALLEST = 250, /* a short owner has pages */
    SETTLE_SECONDS = 15,
    READS = 20, /* in a round */
    REMOVALS = 5,
    TOP = 3, /* layout subset: elements in the summary, as spill_subject_definition has it */
    REMOVE_STEP = 7, /* the removals are of the numbers 0, 7, 14, ... */
};

typedef struct bench {
    measure_report_t report;
    const char *layout; /* the only layout to measure; NULL: all */
    const char *parent; /* the parent of the folder */
    const char *server;
    char *place; /* the folder, or the database's connection string */
    spill_store_t *store;
    int64_t length, shorts; /* elements of the long owner, and of the short ones */
    int rounds, read_rounds;
} bench_t;

/* A layout, and what is measured on it. */
typedef struct kind {
    spill_subject_kind_t as;
    bool statistics;        /* it keeps window statistics */
    bool removal;           /* it has documents besides the head */
    const char *sort_field; /* capped: keeps the top-N by this field; NULL: the newest */
} kind_t;

static const kind_t KINDS[] = {
    {{"newest", "feed-recent", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_NEWEST, SPILL_WINDOW_NONE},
     false,
     true,
     NULL},
    {{"oldest", "feed", SPILL_LAYOUT_OUTLIER, SPILL_KEEP_OLDEST, SPILL_WINDOW_NONE},
     false,
     true,
     NULL},
    {{"reference", "reviews-separate", SPILL_LAYOUT_REFERENCE, SPILL_KEEP_NEWEST,
      SPILL_WINDOW_NONE},
     true,
     true,
     NULL},
    {{"subset", "reviews-subset", SPILL_LAYOUT_SUBSET, SPILL_KEEP_NEWEST, SPILL_WINDOW_NONE},
     true,
     true,
     NULL},
    {{"capped", "feed-recent", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST, SPILL_WINDOW_NONE},
     false,
     false,
     NULL},
    {{"best", "feed-recent", SPILL_LAYOUT_CAPPED, SPILL_KEEP_NEWEST, SPILL_WINDOW_NONE},
     false,
     false,
     "actor"},
    {{"hours", "reviews-bucket", SPILL_LAYOUT_BUCKET, SPILL_KEEP_OLDEST, SPILL_WINDOW_HOUR},
     true,
     false,
     NULL},
    {{"year", "reviews-bucket", SPILL_LAYOUT_BUCKET, SPILL_KEEP_OLDEST, SPILL_WINDOW_YEAR},
     false,
     true,
     NULL},
};

/* The owners of one length, used in turn. */
typedef struct side {
    const kind_t *kind;
    spill_array_t *array;
    const char *name;
    int64_t length;  /* elements of each owner at the start */
    int owners;      /* how many there are */
    int at_once;     /* appends to one owner before the next one's turn */
    int64_t appends; /* to all of them so far */
    int64_t turn;    /* number of other operations so far */
} side_t;

/* ---- elements and owners --------------------------------------------------------------------- */

static spill_value_t owner_value(const side_t *side, int64_t owner, bson_t *storage)
{
    char name[32];
    snprintf(name, sizeof name, "%s-%04" PRId64, side->name, owner);
    bson_init(storage);
    return spill_value_from_utf8(storage, name);
}

static bool is_bucket(const kind_t *kind)
{
    return kind->as.layout == SPILL_LAYOUT_BUCKET;
}

/* Append the elements `from` to `to` to one owner, in large batches. */
static void fill(const side_t *side, int64_t owner, int64_t from, int64_t to)
{
    bson_t storage;
    spill_error_t error;
    spill_value_t name = owner_value(side, owner, &storage);
    measure_check(spill_subject_fill(side->array, &name, ELEMENT_BYTES, from, to, &error), &error);
    bson_destroy(&storage);
}

/*
 * Append the long owner's last elements between those of the short owners: the engine keeps the
 * most recent writes in memory, and must have both sides there.
 */
static void fill_both(const side_t *longer, const side_t *shorter)
{
    double from = measure_now();
    int64_t last = longer->length - shorter->length;
    fill(longer, 0, 0, last);
    fprintf(stderr, "%s: %" PRId64 " elements in %.0f s\n", longer->kind->as.name, longer->length,
            measure_now() - from);
    for (int owner = 0; owner < shorter->owners; owner++) {
        if (owner == shorter->owners / 2)
            fill(longer, 0, last, longer->length);
        fill(shorter, owner, 0, shorter->length);
    }
}

/* ---- what is measured ------------------------------------------------------------------------ */

static void appends(void *context, int thread, int count)
{
    side_t *side = context;
    (void)thread;
    for (int i = 0; i < count; i++) {
        int64_t cycle = side->appends / side->at_once;
        int64_t before = cycle / side->owners * side->at_once + side->appends % side->at_once;
        int64_t number = side->length + before;
        fill(side, cycle % side->owners, number, number + 1);
        side->appends++;
    }
}

static void newest(void *context, int thread, int count)
{
    side_t *side = context;
    (void)thread;
    for (int i = 0; i < count; i++) {
        bson_t storage;
        spill_error_t error;
        size_t found;
        spill_value_t name = owner_value(side, side->turn++ % side->owners, &storage);
        measure_check(spill_subject_newest(side->array, &name, PAGE, &found, &error), &error);
        if (found != PAGE)
            measure_stop("a page has %zu elements", found);
        bson_destroy(&storage);
    }
}

/* The window of an owner's last element. */
static void last_window(const side_t *side, char window[SPILL_WINDOW_SIZE])
{
    uint8_t bytes[ELEMENT_BYTES];
    spill_value_t element = {
        .data = bytes, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    spill_error_t error;
    measure_element(bytes, (uint64_t)side->length - 1);
    measure_check(
        spill_bucket_window_of(spill_array_get_definition(side->array), &element, window, &error),
        &error);
}

static void statistics(void *context, int thread, int count)
{
    side_t *side = context;
    char window[SPILL_WINDOW_SIZE];
    (void)thread;
    if (is_bucket(side->kind))
        last_window(side, window);
    for (int i = 0; i < count; i++) {
        bson_t storage;
        spill_value_t name = owner_value(side, side->turn++ % side->owners, &storage);
        spill_statistics_t found;
        spill_count_t counted;
        spill_error_t error;
        if (is_bucket(side->kind))
            measure_check(
                spill_bucket_statistics(side->array, &name, window, window, &found, NULL, &error),
                &error);
        else
            measure_check(spill_array_count(side->array, &name, &counted, &error), &error);
        bson_destroy(&storage);
    }
}

/* Layout subset: read the summary's elements; remove the highest, which the next one replaces. */
static void tops(void *context, int thread, int count)
{
    side_t *side = context;
    (void)thread;
    for (int i = 0; i < count; i++) {
        bson_t storage;
        spill_value_t name = owner_value(side, side->turn++ % side->owners, &storage);
        spill_slice_t *slice;
        spill_error_t error;
        measure_check(spill_array_top(side->array, &name, PAGE, &slice, &error), &error);
        if (slice->count != TOP)
            measure_stop("a summary has %zu elements", slice->count);
        spill_slice_free(slice);
        bson_destroy(&storage);
    }
}

static void top_removals(void *context, int thread, int count)
{
    side_t *side = context;
    (void)thread;
    for (int i = 0; i < count; i++, side->turn++) {
        bson_t storage;
        spill_value_t name = owner_value(side, side->turn % side->owners, &storage);
        spill_error_t error;
        int64_t seq = side->length - 1 - side->turn / side->owners;
        measure_check(spill_array_remove(side->array, &name, seq, &error), &error);
        bson_destroy(&storage);
    }
}

/* Remove from the oldest elements upwards: these are not in the head. */
static void removals(void *context, int thread, int count)
{
    side_t *side = context;
    (void)thread;
    for (int i = 0; i < count; i++, side->turn++) {
        bson_t storage, window_storage;
        spill_value_t name = owner_value(side, side->turn % side->owners, &storage);
        char window[SPILL_WINDOW_SIZE];
        spill_error_t error;
        bson_init(&window_storage);
        if (is_bucket(side->kind)) {
            last_window(side, window);
            name = spill_bucket_name(&window_storage, &name, window);
        }
        int64_t seq = CAPACITY + REMOVE_STEP * (side->turn / side->owners);
        measure_check(spill_array_remove(side->array, &name, seq, &error), &error);
        bson_destroy(&window_storage);
        bson_destroy(&storage);
    }
}

/* ---- stores ---------------------------------------------------------------------------------- */

static void connect_store(bench_t *bench)
{
    spill_store_options_t options;
    spill_error_t error;
    spill_store_options_init(&options);
    if (!bench->server)
        options.durability = SPILL_DURABILITY_LOG;
    measure_check(spill_store_open(bench->place, &options, &bench->store, &error), &error);
}

/* Open a new store, without unfinished work from the layout before. */
static void open_store(bench_t *bench)
{
    static int number;
    if (bench->server) {
        size_t length = strlen(bench->server);
        while (length > 0 && bench->server[length - 1] == '/')
            length--;
        bench->place = bson_strdup_printf("%.*s/spillway_bench_%ld_%d_%d", (int)length,
                                          bench->server, (long)time(NULL), (int)getpid(), number++);
    } else {
        bench->place = measure_folder(bench->parent);
    }
    connect_store(bench);
}

/* Closing writes the data to files, and gives the engine time to merge them. */
static void reopen_store(bench_t *bench)
{
    spill_error_t error;
    measure_check(spill_store_close(bench->store, &error), &error);
    connect_store(bench);
    sleep(bench->length > LENGTH_QUICK && !bench->server ? SETTLE_SECONDS : 0);
}

static void drop_database(const char *place)
{
    mongoc_uri_t *uri = mongoc_uri_new(place);
    mongoc_client_t *client = mongoc_client_new_from_uri(uri);
    mongoc_database_t *database = mongoc_client_get_database(client, mongoc_uri_get_database(uri));
    mongoc_database_drop(database, NULL);
    mongoc_database_destroy(database);
    mongoc_client_destroy(client);
    mongoc_uri_destroy(uri);
}

static void close_store(bench_t *bench)
{
    spill_error_t error;
    measure_check(spill_store_close(bench->store, &error), &error);
    if (bench->server) {
        drop_database(bench->place);
        bson_free(bench->place);
    } else {
        measure_remove_folder(bench->place);
    }
}

/* ---- figures --------------------------------------------------------------------------------- */

typedef struct pair {
    bench_t *bench;
    const kind_t *kind;
    side_t longer, shorter;
} pair_t;

/* Use many short rounds if possible, so that other load on the machine affects both sides. */
static void measure(pair_t *pair, const char *what, measure_fn run, int rounds, int count)
{
    char name[48], against[64];
    snprintf(name, sizeof name, "%s-%s", pair->kind->as.name, what);
    snprintf(against, sizeof against, "at %" PRId64 ", against %" PRId64 "%s", pair->longer.length,
             pair->shorter.length, pair->bench->server ? ", on a server" : "");
    if (!measure_wanted(&pair->bench->report, name))
        return;
    pair->longer.turn = pair->shorter.turn = 0;
    measure_figure_t figure = {.name = name,
                               .what = against,
                               .bar = 1.25,
                               .at_most = true,
                               .threads = 1,
                               .rounds = rounds,
                               .ours = {run, &pair->longer, count},
                               .other = {run, &pair->shorter, count}};
    measure_figure(&pair->bench->report, &figure);
}

static void define(const bench_t *bench, const kind_t *kind)
{
    spill_subject_bounds_t bounds = {CAPACITY, CAPACITY, ELEMENT_BYTES};
    spill_error_t error;
    spill_definition_t definition;
    measure_check(spill_subject_definition(&kind->as, kind->as.name, &bounds, &definition, &error),
                  &error);
    if (kind->sort_field)
        strcpy(definition.sort_field, kind->sort_field);
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
}

static void open_arrays(pair_t *pair)
{
    spill_error_t error;
    measure_check(
        spill_array_open(pair->bench->store, pair->kind->as.name, &pair->longer.array, &error),
        &error);
    pair->shorter.array = pair->longer.array;
}

static void bench_kind(bench_t *bench, const kind_t *kind)
{
    if (bench->layout && strcmp(bench->layout, kind->as.name) != 0)
        return;
    /* The last window has the same number of elements as a short owner's. */
    int64_t length = FIRST_HOUR + bench->length / HOUR * HOUR + bench->shorts;
    int owners = bench->rounds * CYCLES;
    pair_t pair = {.bench = bench,
                   .kind = kind,
                   .longer = {kind, NULL, "long", length, 1, CAPACITY * CYCLES, 0, 0},
                   .shorter = {kind, NULL, "short", bench->shorts, owners, CAPACITY, 0, 0}};
    open_store(bench);
    define(bench, kind);
    open_arrays(&pair);
    fill_both(&pair.longer, &pair.shorter);
    spill_array_close(pair.longer.array);
    reopen_store(bench);
    open_arrays(&pair);
    measure(&pair, "newest", newest, bench->read_rounds, READS);
    if (kind->statistics)
        measure(&pair, "stats", statistics, bench->read_rounds, READS);
    if (kind->as.layout == SPILL_LAYOUT_SUBSET) {
        measure(&pair, "top", tops, bench->read_rounds, READS);
        measure(&pair, "remove-top", top_removals, bench->read_rounds, REMOVALS);
    }
    measure(&pair, "append", appends, bench->rounds, CAPACITY * CYCLES);
    if (kind->removal && (bench->shorts >= SHORT || measure_is_smallest()))
        measure(&pair, "remove", removals, bench->read_rounds, REMOVALS);
    spill_array_close(pair.longer.array);
    close_store(bench);
}

/* ---- large elements -------------------------------------------------------------------------- */

enum { LARGE = 100, LARGE_BYTES = 500000, LARGE_READ = 5, NEAR = 5, FAR = 90 };

/* Reads of LARGE_READ elements at one place of an owner whose pages have one element each. */
typedef struct place {
    spill_array_t *array;
    int64_t at;
    spill_order_t order;
} place_t;

static void reads_at(void *context, int thread, int count)
{
    const place_t *place = context;
    (void)thread;
    for (int i = 0; i < count; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_utf8(&storage, "large");
        spill_read_options_t options;
        spill_slice_t *slice;
        spill_error_t error;
        spill_read_options_init(&options);
        options.order = place->order;
        options.limit = LARGE_READ;
        if (place->order == SPILL_OLDEST_FIRST)
            options.after = place->at - 1;
        else
            options.before = place->at;
        measure_check(spill_array_read(place->array, &owner, &options, &slice, &error), &error);
        if (slice->count != LARGE_READ)
            measure_stop("a read at %" PRId64 " has %zu elements", place->at, slice->count);
        spill_slice_free(slice);
        bson_destroy(&storage);
    }
}

static void fill_large(spill_array_t *array)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "large");
    char *text = bson_malloc(LARGE_BYTES);
    for (int i = 0; i < LARGE; i++) {
        bson_t element = BSON_INITIALIZER;
        spill_error_t error;
        uint64_t random = (uint64_t)i + 1;
        for (int k = 0; k < LARGE_BYTES; k++) { /* text that does not compress well */
            random = random * 6364136223846793005u + 1442695040888963407u;
            text[k] = (char)('!' + (random >> 33) % 90);
        }
        bson_append_utf8(&element, "t", 1, text, LARGE_BYTES);
        spill_value_t value = spill_value_from_document(&element);
        measure_check(spill_array_append(array, &owner, &value, 1, NULL, NULL, &error), &error);
        bson_destroy(&element);
    }
    bson_free(text);
    bson_destroy(&storage);
}

/* A page that is far from an end, against one that is near to it. On a server only. */
static void bench_large(bench_t *bench, spill_keep_t keep)
{
    const char *name = keep == SPILL_KEEP_NEWEST ? "large-newest" : "large-oldest";
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    if (!bench->server || (bench->layout && strcmp(bench->layout, name) != 0))
        return;
    open_store(bench);
    spill_definition_init(&definition, "large");
    definition.keep = keep;
    definition.bounds = (spill_bounds_t){.threshold = 1000,
                                         .page_capacity = 1000,
                                         .head_bytes_max = 1 << 20,
                                         .page_bytes_max = 1 << 20};
    measure_check(spill_store_define(bench->store, &definition, &error), &error);
    measure_check(spill_array_open(bench->store, "large", &array, &error), &error);
    fill_large(array);
    for (int backward = 0; backward < 2; backward++) {
        char row[48];
        spill_order_t order = backward ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
        snprintf(row, sizeof row, "%s-%s", name, backward ? "down" : "up");
        place_t far = {array, FAR, order}, near = {array, NEAR + LARGE_READ, order};
        measure_figure_t figure = {.name = row,
                                   .what = "5 of 500 KB at page 90, against page 10",
                                   .bar = 1.5,
                                   .at_most = true,
                                   .threads = 1,
                                   .rounds = 9,
                                   .ours = {reads_at, &far, 2},
                                   .other = {reads_at, &near, 2}};
        if (measure_wanted(&bench->report, row))
            measure_figure(&bench->report, &figure);
    }
    spill_array_close(array);
    close_store(bench);
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    bench_t bench = {
        .parent = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", .length = 1000000, .shorts = SHORT};
    bool quick = false;
    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0)
            quick = true;
        else if (strcmp(argv[i], "--length") == 0 && more)
            bench.length = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--short") == 0 && more)
            bench.shorts = strtoll(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--layout") == 0 && more)
            bench.layout = argv[++i];
        else if (strcmp(argv[i], "--only") == 0 && more)
            bench.report.only = argv[++i];
        else if (strcmp(argv[i], "--dir") == 0 && more)
            bench.parent = argv[++i];
        else if (strcmp(argv[i], "--server") == 0 && getenv("SPILLWAY_TEST_URI"))
            bench.server = getenv("SPILLWAY_TEST_URI");
        else if (strncmp(argv[i], "mongodb", strlen("mongodb")) == 0)
            bench.server = argv[i];
        else
            measure_stop("usage: bench_length [--quick] [--length N] [--short N] [--layout NAME] "
                         "[--only NAME] [--dir FOLDER | --server | mongodb://HOST/]");
    }
    if (quick)
        bench.length = measure_count(LENGTH_QUICK, SMALLEST);
    if (measure_is_smallest())
        bench.shorts = SMALLEST;
    if (bench.shorts < SHORT_MIN || bench.shorts > bench.length)
        measure_stop("--short is a number from %d to the length", SHORT_MIN);
    bench.rounds = measure_count(quick || bench.server ? 5 : 15, 1);
    bench.read_rounds = measure_count(bench.server ? 25 : 99, 1);
    measure_print_header();
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        bench_kind(&bench, &KINDS[i]);
    bench_large(&bench, SPILL_KEEP_NEWEST);
    bench_large(&bench, SPILL_KEEP_OLDEST);
    return bench.report.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
