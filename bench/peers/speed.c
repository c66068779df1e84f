/* Works that measure speed. */
#include "../measure.h"
#include "tools/bench/samples.h"
#include "works.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PAGE = 20,
    PAGES = 1000, /* read by each of the two page measurements, unless the time ends before */
    PAGES_SECONDS = 5,
    LONG_APPENDS = 1000,
    OWNER_SIZE = 32,
    FEED_FILL = 20,
    FEED_READS = 95 /* percent of the operations */
};

/* An operation that threads repeat, up to a number of times or until the time is over. */
typedef struct task {
    const peer_t *peer;
    void *opened;
    const works_options_t *options;
    double until;
    int64_t from;              /* the number of the first element */
    const double *popularity;  /* feed: measure_zipf */
    spill_samples_t *reads_us; /* one for each thread */
    spill_samples_t *appends_us;
} task_t;

static void name_owner(char name[OWNER_SIZE], int number)
{
    snprintf(name, OWNER_SIZE, "owner-%06d", number);
}

static double timed_append(const peer_t *peer, void *connection, const char *owner, int64_t number)
{
    uint8_t element[ELEMENT_BYTES];
    measure_element(element, (uint64_t)number);
    double from = measure_now();
    peer->append(connection, owner, element, NULL);
    return (measure_now() - from) * 1e6;
}

static void append_many(void *context, int thread, int count)
{
    task_t *task = context;
    char owner[OWNER_SIZE];
    void *connection = task->peer->join(task->opened);
    name_owner(owner, thread);
    for (int i = 0; i < count && measure_now() < task->until; i++)
        spill_samples_add(&task->appends_us[thread],
                          timed_append(task->peer, connection, owner, task->from + i));
    task->peer->leave(connection);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static spill_samples_t merged(spill_samples_t *parts, int count)
{
    spill_samples_t all = {0};
    for (int i = 0; i < count; i++) {
        for (size_t j = 0; j < parts[i].count; j++)
            spill_samples_add(&all, parts[i].values[j]);
        spill_samples_release(&parts[i]);
    }
    return all;
}

static void add_percentiles(row_t *row, spill_samples_t *samples)
{
    row_add(row, spill_samples_percentile(samples, 500));
    row_add(row, spill_samples_percentile(samples, 990));
}

static void add_rate(row_t *row, spill_samples_t *samples, double seconds)
{
    row_add(row, (double)samples->count);
    row_add(row, (double)samples->count / seconds);
    add_percentiles(row, samples);
}

static void begin(const peer_t *peer, void *connection, int owners)
{
    char owner[OWNER_SIZE];
    for (int i = 0; peer->begin && i < owners; i++) {
        name_owner(owner, i);
        peer->begin(connection, owner);
    }
}

/* Append from `threads` threads, each to its own owner. */
static int64_t measure_appends(task_t *task, int threads, int count, row_t *row)
{
    task->appends_us = calloc((size_t)threads, sizeof *task->appends_us);
    task->until = measure_now() + task->options->seconds;
    double seconds = measure_threads(append_many, task, threads, count);
    spill_samples_t all = merged(task->appends_us, threads);
    add_rate(row, &all, seconds);
    int64_t done = (int64_t)all.count;
    spill_samples_release(&all);
    free(task->appends_us);
    return done;
}

static task_t open_task(const peer_t *peer, const peer_place_t *place,
                        const works_options_t *options, int owners)
{
    task_t task = {.peer = peer, .opened = peer->open(place), .options = options};
    void *connection = peer->join(task.opened);
    begin(peer, connection, owners);
    peer->leave(connection);
    return task;
}

/* ---- appends, and pages of these arrays ------------------------------------------------------ */

/* Read pages from one thread, the newest or random ones, up to PAGES or until the time is over. */
static void measure_pages(task_t *task, int64_t length, bool deep, row_t *row)
{
    spill_samples_t samples = {0};
    void *connection = task->peer->join(task->opened);
    uint64_t random = 1;
    double from = measure_now();
    for (int i = 0; i < PAGES && length > 2 * PAGE; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t skip = deep ? (int64_t)((random >> 33) % (uint64_t)(length - PAGE)) : 0;
        double began = measure_now();
        int count = task->peer->page(connection, "owner-000000", skip, PAGE);
        spill_samples_add(&samples, (measure_now() - began) * 1e6);
        if (count != PAGE)
            measure_stop("%s: a page has %d elements", task->peer->name, count);
        if (measure_now() - from > PAGES_SECONDS)
            break;
    }
    add_percentiles(row, &samples);
    spill_samples_release(&samples);
    task->peer->leave(connection);
}

/* The bytes on the disk, before and after the peer's own command that reduces them. */
static void add_bytes(row_t *row, const peer_t *peer, const peer_place_t *place, int64_t elements)
{
    for (int compacted = 0; compacted < 2; compacted++) {
        int64_t bytes =
            peer->bytes ? peer->bytes(place, compacted) : measure_folder_bytes(place->folder);
        row_add(row, (double)bytes / (double)elements);
    }
}

static void run_append(const peer_t *peer, const peer_place_t *place,
                       const works_options_t *options, row_t *row)
{
    task_t task = open_task(peer, place, options, 1);
    int64_t done = measure_appends(&task, 1, options->appends, row);
    measure_pages(&task, done, false, row);
    measure_pages(&task, done, true, row);
    peer->close(task.opened);
    add_bytes(row, peer, place, done);
}

static void run_threads(const peer_t *peer, const peer_place_t *place,
                        const works_options_t *options, row_t *row)
{
    task_t task = open_task(peer, place, options, options->threads);
    int64_t done =
        measure_appends(&task, options->threads, options->appends / options->threads, row);
    peer->close(task.opened);
    add_bytes(row, peer, place, done);
}

/* ---- an owner with many elements ------------------------------------------------------------- */

static void fill(const peer_t *peer, void *connection, const char *owner, int count)
{
    if (peer->fill) {
        peer->fill(connection, owner, count);
        return;
    }
    if (peer->begin)
        peer->begin(connection, owner);
    for (int i = 0; i < count; i++)
        timed_append(peer, connection, owner, i);
}

static void run_long(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                     row_t *row)
{
    task_t task = open_task(peer, place, options, 0);
    void *connection = peer->join(task.opened);
    fill(peer, connection, "owner-000000", options->length);
    peer->leave(connection);
    task.from = options->length;
    measure_appends(&task, 1, LONG_APPENDS, row);
    peer->close(task.opened);
}

/* ---- with operation ids ---------------------------------------------------------------------- */

/*
 * Append an element with a new id, and return the microseconds. A peer without operation ids stores
 * the id and checks it. *base: the operation's, and then the next one's.
 */
static double timed_with_id(const peer_t *peer, void *connection, int64_t number, int64_t *base)
{
    static const char owner[] = "owner-000000";
    uint8_t element[ELEMENT_BYTES];
    char id[24];
    peer_op_t op = {.id = id, .base = *base};
    bool appended = true;
    snprintf(id, sizeof id, "%" PRId64, number);
    measure_element(element, (uint64_t)number);
    double from = measure_now();
    if (peer->takes_ops)
        *base = peer->append(connection, owner, element, &op);
    else
        appended = peer->add(connection, owner, INT64_C(1600000000000) + number * 1000, element);
    double us = (measure_now() - from) * 1e6;
    if (!appended)
        measure_stop("%s: element %" PRId64 " was not appended", peer->name, number);
    return us;
}

static void run_ids(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                    row_t *row)
{
    peer_place_t with_ids = *place;
    with_ids.ids = !peer->takes_ops;
    if (!peer->takes_ops && !peer->add)
        return;
    task_t task = open_task(peer, &with_ids, options, 1);
    void *connection = peer->join(task.opened);
    spill_samples_t samples = {0};
    int64_t base = 0;
    double from = measure_now();
    for (int i = 0; i < options->appends && measure_now() - from < options->seconds; i++)
        spill_samples_add(&samples, timed_with_id(peer, connection, i, &base));
    add_rate(row, &samples, measure_now() - from);
    spill_samples_release(&samples);
    peer->leave(connection);
    peer->close(task.opened);
}

/* ---- with an id check ------------------------------------------------------------------------ */

/* One of eight ids exists already. */
static void run_add(const peer_t *peer, const peer_place_t *place, const works_options_t *options,
                    row_t *row)
{
    peer_place_t with_ids = *place;
    with_ids.ids = true;
    if (!peer->add)
        return;
    task_t task = open_task(peer, &with_ids, options, 1);
    void *connection = peer->join(task.opened);
    spill_samples_t samples = {0};
    double from = measure_now();
    for (int i = 0; i < options->adds && measure_now() - from < options->seconds; i++) {
        uint8_t element[ELEMENT_BYTES];
        bool again = i % 8 == 7;
        int64_t number = again ? i / 2 / 8 * 8 : i;
        measure_element(element, (uint64_t)number);
        double began = measure_now();
        bool added =
            peer->add(connection, "owner-000000", INT64_C(1600000000000) + number * 1000, element);
        spill_samples_add(&samples, (measure_now() - began) * 1e6);
        if (added == again)
            measure_stop("%s: element %" PRId64 " was %s", peer->name, number,
                         added ? "added twice" : "not added");
    }
    add_rate(row, &samples, measure_now() - from);
    spill_samples_release(&samples);
    peer->leave(connection);
    peer->close(task.opened);
}

/* ---- a feed ---------------------------------------------------------------------------------- */

static void reader(void *context, int thread, int count)
{
    task_t *task = context;
    char owner[OWNER_SIZE];
    uint64_t random = (uint64_t)thread + 1;
    void *connection = task->peer->join(task->opened);
    for (int i = 0; i < count && measure_now() < task->until; i++) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double at = (double)(random >> 11) / (double)(UINT64_C(1) << 53);
        name_owner(owner, measure_zipf_draw(task->popularity, task->options->owners, at));
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        double began = measure_now();
        if ((random >> 33) % 100 < FEED_READS) {
            task->peer->page(connection, owner, 0, PAGE);
            spill_samples_add(&task->reads_us[thread], (measure_now() - began) * 1e6);
        } else {
            spill_samples_add(&task->appends_us[thread],
                              timed_append(task->peer, connection, owner, FEED_FILL + i));
        }
    }
    task->peer->leave(connection);
}

static void fill_owners(void *context, int thread, int count)
{
    task_t *task = context;
    char owner[OWNER_SIZE];
    void *connection = task->peer->join(task->opened);
    (void)count;
    for (int i = thread; i < task->options->owners; i += task->options->threads) {
        name_owner(owner, i);
        fill(task->peer, connection, owner, FEED_FILL);
    }
    task->peer->leave(connection);
}

/* Fill owners with FEED_FILL elements each. They are on the disk before the measurement begins. */
static task_t open_filled(const peer_t *peer, const peer_place_t *place,
                          const works_options_t *options)
{
    peer_place_t at = *place;
    at.durable = false;
    task_t task = open_task(peer, &at, options, 0);
    measure_threads(fill_owners, &task, options->threads, 1);
    if (place->durable) {
        peer->close(task.opened);
        sync();
        at.durable = true;
        at.fresh = false;
        task.opened = peer->open(&at);
    }
    return task;
}

static void run_source(const peer_t *peer, const peer_place_t *place,
                       const works_options_t *options, row_t *row)
{
    enum { COUNT_MAX = 10000000 };
    task_t task = open_filled(peer, place, options);
    double *popularity = measure_zipf(options->owners);
    task.popularity = popularity;
    task.reads_us = calloc((size_t)options->threads, sizeof *task.reads_us);
    task.appends_us = calloc((size_t)options->threads, sizeof *task.appends_us);
    task.until = measure_now() + options->seconds;
    double seconds = measure_threads(reader, &task, options->threads, COUNT_MAX);
    spill_samples_t reads = merged(task.reads_us, options->threads);
    spill_samples_t appends = merged(task.appends_us, options->threads);
    row_add(row, (double)(reads.count + appends.count) / seconds);
    add_percentiles(row, &reads);
    add_percentiles(row, &appends);
    spill_samples_release(&reads);
    spill_samples_release(&appends);
    free(task.reads_us);
    free(task.appends_us);
    free(popularity);
    peer->close(task.opened);
}

#define APPEND_COLUMNS                                                                             \
    {"appends", "appends", 0}, {"perSecond", "appends/s", 0}, {"p50Us", "p50 us", 1},              \
    {                                                                                              \
        "p99Us", "p99 us", 1                                                                       \
    }
#define BYTES_COLUMNS                                                                              \
    {"bytes", "B/element", 0},                                                                     \
    {                                                                                              \
        "bytesLeast", "compacted", 0                                                               \
    }

const work_t work_append = {.name = "append",
                            .columns = {APPEND_COLUMNS,
                                        {"newestP50Us", "newest p50", 1},
                                        {"newestP99Us", "newest p99", 1},
                                        {"deepP50Us", "deep p50", 1},
                                        {"deepP99Us", "deep p99", 1},
                                        BYTES_COLUMNS},
                            .run = run_append};
const work_t work_threads = {
    .name = "threads", .columns = {APPEND_COLUMNS, BYTES_COLUMNS}, .run = run_threads};
const work_t work_long = {.name = "long", .columns = {APPEND_COLUMNS}, .run = run_long};
const work_t work_ids = {.name = "ids",
                         .columns = {{"appends", "appends", 0},
                                     {"perSecond", "app./s", 0},
                                     {"p50Us", "p50 us", 1},
                                     {"p99Us", "p99 us", 1}},
                         .run = run_ids};
const work_t work_add = {.name = "add",
                         .columns = {{"adds", "adds", 0},
                                     {"perSecond", "adds/s", 0},
                                     {"p50Us", "p50 us", 1},
                                     {"p99Us", "p99 us", 1}},
                         .run = run_add};
const work_t work_feed = {.name = "feed",
                          .columns = {{"perSecond", "ops/s", 0},
                                      {"readP50Us", "read p50", 1},
                                      {"readP99Us", "read p99", 1},
                                      {"appendP50Us", "app. p50", 1},
                                      {"appendP99Us", "app. p99", 1}},
                          .run = run_source};
