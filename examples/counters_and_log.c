/*
 * Observe a store: its log, and counters that an application can publish as metrics.
 *
 *   counters_and_log [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

/* Called from any thread that works on the store. */
static void print_log(void *context, spill_log_level_t level, const char *message)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    fprintf(context, "[%s] %s\n", names[level], message);
}

static spill_store_t *open_store(const char *uri)
{
    spill_error_t error;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.log = print_log;
    options.log_context = stdout;
    options.durability = SPILL_DURABILITY_LOG; /* no sync after each append */

    spill_store_t *store;
    check(spill_store_open(uri, &options, &store, &error), &error);
    return store;
}

static spill_array_t *open_readings(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t readings;
    check(spill_definition_preset(&readings, "feed-recent", "readings", &error), &error);
    readings.bounds.threshold = spill_threshold(10 * 1000, 100); /* a head of about 10 KB */
    readings.bounds.page_capacity = 50;
    check(spill_store_define(store, &readings, &error), &error);

    spill_array_t *array;
    check(spill_array_open(store, "readings", &array, &error), &error);
    return array;
}

static void append_readings(spill_array_t *readings, int32_t count)
{
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, 42);
    for (int32_t i = 0; i < count; i++) {
        bson_t *reading = BCON_NEW("celsius", BCON_DOUBLE(20.0 + i % 7));
        spill_value_t element = spill_value_from_document(reading);
        spill_append_result_t result;
        check(spill_array_append(readings, &owner, &element, 1, NULL, &result, &error), &error);
        bson_destroy(reading);
    }
    bson_destroy(&storage);
}

int main(int argc, char **argv)
{
    spill_error_t error;
    spill_store_t *store = open_store(argc > 1 ? argv[1] : "memory:");
    spill_array_t *readings = open_readings(store);
    append_readings(readings, 1000);

    spill_counters_t counters;
    spill_store_counters(store, &counters);
    printf("%" PRId64 " appends took %" PRId64 " store operations; %" PRId64 " spills, %" PRId64
           " retries, %" PRId64 " waits, %" PRId64 " syncs\n",
           counters.appends, counters.calls, counters.spills, counters.retries, counters.waits,
           counters.syncs);

    spill_array_close(readings);
    check(spill_store_close(store, &error), &error);
    return counters.appends == 1000 && counters.spills > 0 ? 0 : 1;
}
