/*
 * The network cost of operations after the first one: round trips and bytes, counted by a proxy
 * between the driver and the server.
 */
#include "core/building.h"
#include "support/proxy.h"
#include "support/server.h"

#include "core/array.h"
#include "store/store.h"

#include <spillway/spillway.h>

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum {
    ELEMENT_BYTES = 200,
    PAGE = 20,
    THRESHOLD = 100,
    CAPACITY = 100,
    FILLED = 2000,
    REMOVE_TRIPS = 8
};

typedef struct wire {
    proxy_t *proxy;
    char *uri; /* of the server itself */
    spill_store_t *store;
    spill_array_t *array;
    bson_t owner_storage;
    spill_value_t owner;
    uint8_t element[ELEMENT_BYTES];
} wire_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

/* A document of ELEMENT_BYTES: {"t": "xxx..."}. */
static void make_element(uint8_t element[ELEMENT_BYTES])
{
    bson_t document = BSON_INITIALIZER;
    char text[ELEMENT_BYTES];
    size_t length = ELEMENT_BYTES - 5 - 3 - 5;
    memset(text, 'x', length);
    bson_append_utf8(&document, "t", 1, text, (int)length);
    assert_int_equal(document.len, ELEMENT_BYTES);
    memcpy(element, bson_get_data(&document), ELEMENT_BYTES);
    bson_destroy(&document);
}

static void append(wire_t *wire, int count, const char *op_name, spill_append_result_t *result)
{
    static spill_value_t elements[FILLED];
    for (int i = 0; i < count; i++)
        elements[i] = (spill_value_t){
            .data = wire->element, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
    spill_append_options_t options;
    spill_error_t error;
    spill_append_options_init(&options);
    spill_op_t op = {.id = op_name, .id_bytes = op_name ? strlen(op_name) : 0};
    op.base = result->op_base;
    options.op = op_name ? &op : NULL;
    expect_ok(spill_array_append(wire->array, &wire->owner, elements, (size_t)count, &options,
                                 result, &error),
              &error);
}

static void open_wire_with(wire_t *wire, const spill_definition_t *like)
{
    *wire = (wire_t){.proxy = proxy_start(server_uri()), .uri = server_new_database(NULL)};
    char *through = proxy_uri(wire->proxy, wire->uri);
    spill_definition_t definition;
    spill_append_result_t result = {0};
    spill_error_t error;
    wire->store = server_open(through);
    wire->store->defer_room = INT64_MAX; /* so that the appends' own round trips include spills */
    bson_free(through);
    definition = *like;
    definition.bounds.threshold = THRESHOLD;
    if (like->layout == SPILL_LAYOUT_OUTLIER)
        definition.bounds.page_capacity = CAPACITY;
    expect_ok(spill_store_define(wire->store, &definition, &error), &error);
    expect_ok(spill_array_open(wire->store, "feed", &wire->array, &error), &error);
    bson_init(&wire->owner_storage);
    wire->owner = spill_value_from_utf8(&wire->owner_storage, "ada");
    make_element(wire->element);
    for (int done = 0; done < FILLED; done += CAPACITY / 2)
        append(wire, CAPACITY / 2, NULL, &result);
}

static void open_wire(wire_t *wire, spill_keep_t keep, spill_array_order_t order)
{
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    definition.keep = keep;
    definition.order = order;
    open_wire_with(wire, &definition);
}

static void close_wire(wire_t *wire)
{
    spill_array_close(wire->array);
    server_close(wire->store);
    proxy_stop(wire->proxy);
    server_drop(wire->uri);
    bson_free(wire->uri);
    bson_destroy(&wire->owner_storage);
}

/* The counts since `before`. */
static proxy_counts_t since(const wire_t *wire, const proxy_counts_t *before)
{
    proxy_counts_t now = proxy_counts(wire->proxy);
    now.requests -= before->requests;
    now.request_bytes -= before->request_bytes;
    now.replies -= before->replies;
    now.reply_bytes -= before->reply_bytes;
    return now;
}

static int64_t spills(const wire_t *wire)
{
    spill_counters_t counters;
    spill_store_counters(wire->store, &counters);
    return counters.spills;
}

/* An append without a spill is one round trip. The average with spills is at most 1.1. */
static void check_appends(wire_t *wire, bool with_ops)
{
    enum { APPENDS = 10 * CAPACITY };
    spill_append_result_t result = {0};
    append(wire, 1, NULL, &result);
    int64_t alone = 0, all = 0, spilled = spills(wire);
    for (int i = 0; i < APPENDS; i++) {
        char id[16];
        snprintf(id, sizeof id, "op %d", i);
        proxy_counts_t before = proxy_counts(wire->proxy);
        append(wire, 1, with_ops ? id : NULL, &result);
        int64_t requests = since(wire, &before).requests;
        all += requests;
        alone += requests == 1;
    }
    spilled = spills(wire) - spilled;
    print_message("%d appends: %" PRId64 " round trips, %" PRId64 " alone, %" PRId64 " spills\n",
                  APPENDS, all, alone, spilled);
    assert_in_range(spilled, APPENDS / CAPACITY - 1, APPENDS / CAPACITY + 1);
    assert_true(alone >= APPENDS - APPENDS / CAPACITY - 1);
    assert_true(all - APPENDS < APPENDS / 10);
}

/* Read PAGE elements below `before` or above `after`, and check round trips and bytes. */
static void check_page(wire_t *wire, int64_t before, int64_t after, int64_t trips_max)
{
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    spill_read_options_init(&options);
    options.limit = PAGE;
    options.before = before;
    options.after = after;
    options.order = after >= 0 ? SPILL_OLDEST_FIRST : SPILL_NEWEST_FIRST;
    proxy_counts_t counts = proxy_counts(wire->proxy);
    expect_ok(spill_array_read(wire->array, &wire->owner, &options, &slice, &error), &error);
    proxy_counts_t cost = since(wire, &counts);
    assert_int_equal(slice->count, PAGE);
    if (cost.requests > trips_max || cost.reply_bytes > 3 * PAGE * ELEMENT_BYTES)
        fail_msg("before %" PRId64 ", after %" PRId64 ": %" PRId64 " round trips, %" PRId64
                 " bytes for %d of elements",
                 before, after, cost.requests, cost.reply_bytes, PAGE * ELEMENT_BYTES);
    spill_slice_free(slice);
}

/* With keep newest a read of a page reads the head before and after it. */
static void check_pages(wire_t *wire, int64_t newest_trips, int64_t page_trips)
{
    spill_append_result_t result = {0};
    for (int i = 0; i < 2 * CAPACITY; i += 7) { /* for every length of the last document */
        append(wire, 7, NULL, &result);
        check_page(wire, INT64_MAX, -1, newest_trips);
    }
    for (int64_t before = PAGE; before < FILLED; before += 13)
        check_page(wire, before, -1, page_trips);
    for (int64_t after = 0; after < FILLED - PAGE; after += 13)
        check_page(wire, INT64_MAX, after, page_trips);
}

/* Check the maximum of round trips of a removal, and that it sends less than a page's bytes. */
static void check_removals(wire_t *wire)
{
    spill_error_t error;
    for (int64_t seq = 3; seq < FILLED; seq += 97) {
        proxy_counts_t counts = proxy_counts(wire->proxy);
        expect_ok(spill_array_remove(wire->array, &wire->owner, seq, &error), &error);
        proxy_counts_t cost = since(wire, &counts);
        if (cost.requests > REMOVE_TRIPS ||
            cost.request_bytes + cost.reply_bytes > CAPACITY * ELEMENT_BYTES)
            fail_msg("removal of %" PRId64 ": %" PRId64 " round trips, %" PRId64
                     " bytes sent, %" PRId64 " received",
                     seq, cost.requests, cost.request_bytes, cost.reply_bytes);
    }
}

/* For an owner without pages too, only the first append must read the head's position. */
static void young_owner(void **state)
{
    (void)state;
    for (int keep = 0; keep < 2; keep++) {
        wire_t wire;
        open_wire(&wire, keep ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST, SPILL_ARRAY_OLDEST_FIRST);
        spill_append_result_t result = {0};
        wire.owner = spill_value_from_utf8(&wire.owner_storage, "bob");
        append(&wire, 1, NULL, &result);
        append(&wire, 1, NULL, &result);
        proxy_counts_t before = proxy_counts(wire.proxy);
        for (int i = 2; i < THRESHOLD; i++)
            append(&wire, 1, NULL, &result);
        int64_t requests = since(&wire, &before).requests;
        print_message("%d appends to a young owner: %" PRId64 " round trips\n", THRESHOLD - 2,
                      requests);
        assert_true(requests <= THRESHOLD + THRESHOLD / 10);
        close_wire(&wire);
    }
}

/* Definition, checkpoint of a migration and numbers come with one answer. */
static void opening_is_one_round_trip(void **state)
{
    (void)state;
    wire_t wire;
    spill_array_t *again, *none;
    spill_error_t error;
    open_wire(&wire, SPILL_KEEP_NEWEST, SPILL_ARRAY_OLDEST_FIRST);
    proxy_counts_t before = proxy_counts(wire.proxy);
    expect_ok(spill_array_open(wire.store, "feed", &again, &error), &error);
    assert_int_equal(since(&wire, &before).requests, 1);
    assert_memory_equal(&again->binding, &wire.array->binding, sizeof again->binding);
    assert_memory_equal(&again->definition, &wire.array->definition, sizeof again->definition);
    assert_false(again->building);
    assert_int_equal(spill_array_open(wire.store, "food", &none, &error), SPILL_NOT_FOUND);
    assert_non_null(strstr(error.message, "there is no definition 'food'"));
    spill_building_t building = {0};
    expect_ok(spill_building_save(wire.store, "feed", "original", false, &building, &error),
              &error);
    spill_building_release(&building);
    spill_array_close(again);
    before = proxy_counts(wire.proxy);
    expect_ok(spill_array_open(wire.store, "feed", &again, &error), &error);
    assert_int_equal(since(&wire, &before).requests, 1);
    assert_true(again->building);
    spill_array_close(again);
    close_wire(&wire);
}

/* A server with one copy gives the same answers with a read preference. */
static void read_preference(void **state)
{
    (void)state;
    wire_t wire;
    open_wire(&wire, SPILL_KEEP_OLDEST, SPILL_ARRAY_NEWEST_FIRST);
    char *uri = bson_strdup_printf("%sreadPreference=secondaryPreferred", wire.uri);
    spill_store_t *store = server_open(uri);
    assert_true(store->reads_copies);
    assert_false(wire.store->reads_copies);
    spill_array_close(wire.array);
    server_close(wire.store);
    wire.store = store;
    spill_error_t error;
    expect_ok(spill_array_open(store, "feed", &wire.array, &error), &error);
    for (int64_t before = PAGE; before < FILLED; before += 61) {
        spill_read_options_t options;
        spill_slice_t *slice;
        spill_read_options_init(&options);
        options.before = before;
        expect_ok(spill_array_read(wire.array, &wire.owner, &options, &slice, &error), &error);
        assert_int_equal(slice->count, PAGE);
        for (int64_t i = 0; i < PAGE; i++)
            assert_int_equal(slice->elements[i].seq, before - 1 - i);
        spill_slice_free(slice);
    }
    bson_free(uri);
    close_wire(&wire);
}

/*
 * The newest page is one find. Its only expression is the number of elements: none walks the array.
 */
static void newest_page_is_a_find(void **state)
{
    (void)state;
    static const char *const walks[] = {"$bsonSize", "$map",     "$filter", "$reduce",   "$max",
                                        "$min",      "$sum",     "$concat", "$cond",     "$indexOf",
                                        "$range",    "$reverse", "$sort",   "$elemMatch"};
    static const char begins[] = "{ \"find\" : ";
    for (int front = 0; front < 2; front++) {
        wire_t wire;
        open_wire(&wire, SPILL_KEEP_NEWEST,
                  front ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST);
        check_page(&wire, INT64_MAX, -1, 1);
        char *request = proxy_last_request(wire.proxy);
        assert_memory_equal(request, begins, strlen(begins));
        assert_non_null(strstr(request, "$slice"));
        for (size_t i = 0; i < sizeof walks / sizeof *walks; i++)
            if (strstr(request, walks[i]))
                fail_msg("%s is in %s", walks[i], request);
        bson_free(request);
        close_wire(&wire);
    }
}

static void check_costs(spill_keep_t keep, spill_array_order_t order)
{
    wire_t wire;
    open_wire(&wire, keep, order);
    check_appends(&wire, false);
    check_appends(&wire, true);
    bool newest = keep == SPILL_KEEP_NEWEST;
    check_pages(&wire, newest ? 1 : 2, newest ? 3 : 2);
    check_removals(&wire);
    close_wire(&wire);
}

static void keep_newest(void **state)
{
    (void)state;
    check_costs(SPILL_KEEP_NEWEST, SPILL_ARRAY_OLDEST_FIRST);
}

static void keep_oldest(void **state)
{
    (void)state;
    check_costs(SPILL_KEEP_OLDEST, SPILL_ARRAY_OLDEST_FIRST);
}

static void keep_newest_at_front(void **state)
{
    (void)state;
    check_costs(SPILL_KEEP_NEWEST, SPILL_ARRAY_NEWEST_FIRST);
}

static void keep_oldest_at_front(void **state)
{
    (void)state;
    check_costs(SPILL_KEEP_OLDEST, SPILL_ARRAY_NEWEST_FIRST);
}

/* ---- large elements -------------------------------------------------------------------------- */

enum { LARGE_BYTES = 40000, LARGE = 60, LARGE_READ = 5 };

/* Append LARGE elements. The byte bound lets a page have one of them, the element bound CAPACITY.
 */
static void open_large(wire_t *wire, spill_keep_t keep, spill_array_order_t order)
{
    spill_definition_t definition;
    spill_append_result_t result;
    spill_error_t error;
    char *text = bson_malloc(LARGE_BYTES);
    spill_definition_init(&definition, "large");
    definition.keep = keep;
    definition.order = order;
    definition.bounds.threshold = THRESHOLD;
    definition.bounds.page_capacity = CAPACITY;
    definition.bounds.head_bytes_max = 2 * LARGE_BYTES;
    definition.bounds.page_bytes_max = 3 * LARGE_BYTES / 2;
    strcpy(definition.array, "stats.events");
    strcpy(definition.collection, "large");
    strcpy(definition.page_collection, "large.pages");
    open_wire(wire, keep, order);
    spill_array_close(wire->array);
    expect_ok(spill_store_define(wire->store, &definition, &error), &error);
    expect_ok(spill_array_open(wire->store, "large", &wire->array, &error), &error);
    for (int i = 0; i < LARGE; i++) {
        bson_t element = BSON_INITIALIZER;
        memset(text, 'a' + i % 26, LARGE_BYTES);
        bson_append_utf8(&element, "t", 1, text, LARGE_BYTES);
        spill_value_t value = spill_value_from_document(&element);
        expect_ok(spill_array_append(wire->array, &wire->owner, &value, 1, NULL, &result, &error),
                  &error);
        bson_destroy(&element);
    }
    bson_free(text);
    spill_count_t count;
    expect_ok(spill_array_count(wire->array, &wire->owner, &count, &error), &error);
    assert_int_equal(count.count, LARGE);
    assert_true(count.pages >= LARGE / 2);
}

/*
 * Read LARGE_READ elements at each place. Neither the requests nor the bytes depend on the number
 * of pages on one side of it.
 */
static void check_large(spill_keep_t keep, spill_array_order_t order)
{
    enum { REQUESTS_MOST = 6, BYTES_MOST = (LARGE_READ + 2) * LARGE_BYTES };
    wire_t wire;
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_error_t error;
    open_large(&wire, keep, order);
    for (int place = LARGE_READ; place <= LARGE - LARGE_READ; place++) {
        for (int forward = 0; forward < 2; forward++) {
            spill_read_options_init(&options);
            options.limit = LARGE_READ;
            options.order = forward ? SPILL_OLDEST_FIRST : SPILL_NEWEST_FIRST;
            options.after = forward ? place - 1 : -1;
            options.before = forward ? INT64_MAX : place;
            proxy_counts_t counts = proxy_counts(wire.proxy);
            expect_ok(spill_array_read(wire.array, &wire.owner, &options, &slice, &error), &error);
            proxy_counts_t cost = since(&wire, &counts);
            assert_int_equal(slice->count, LARGE_READ);
            assert_int_equal(slice->elements[0].seq, forward ? place : place - 1);
            if (cost.requests > REQUESTS_MOST || cost.reply_bytes > BYTES_MOST)
                fail_msg("%s %d: %" PRId64 " requests, %" PRId64 " bytes",
                         forward ? "from" : "before", place, cost.requests, cost.reply_bytes);
            spill_slice_free(slice);
        }
    }
    close_wire(&wire);
}

static void large_elements(void **state)
{
    (void)state;
    check_large(SPILL_KEEP_NEWEST, SPILL_ARRAY_OLDEST_FIRST);
    check_large(SPILL_KEEP_OLDEST, SPILL_ARRAY_OLDEST_FIRST);
    check_large(SPILL_KEEP_NEWEST, SPILL_ARRAY_NEWEST_FIRST);
    check_large(SPILL_KEEP_OLDEST, SPILL_ARRAY_NEWEST_FIRST);
}

/* The append to a full capped head drops the oldest elements in the same command. */
static void check_capped(spill_array_order_t order)
{
    enum { APPENDS = 300 };
    wire_t wire;
    spill_append_result_t result = {0};
    spill_definition_t definition;
    spill_definition_init(&definition, "feed");
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    definition.order = order;
    open_wire_with(&wire, &definition);
    for (int i = 0; i < APPENDS; i++) {
        char id[16];
        snprintf(id, sizeof id, "op %d", i);
        proxy_counts_t before = proxy_counts(wire.proxy);
        append(&wire, 1 + i % 3, i % 2 ? id : NULL, &result);
        assert_int_equal(since(&wire, &before).requests, 1);
    }
    assert_int_equal(result.first + result.count, FILLED + 2 * APPENDS);
    check_page(&wire, INT64_MAX, -1, 1);
    check_page(&wire, INT64_MAX, result.first - 50, 1);
    spill_count_t count;
    spill_error_t error;
    expect_ok(spill_array_count(wire.array, &wire.owner, &count, &error), &error);
    assert_int_equal(count.count, THRESHOLD);
    close_wire(&wire);
}

static void capped(void **state)
{
    (void)state;
    check_capped(SPILL_ARRAY_OLDEST_FIRST);
}

static void capped_at_front(void **state)
{
    (void)state;
    check_capped(SPILL_ARRAY_NEWEST_FIRST);
}

/* The byte counters count the documents of messages, without the few bytes of their frames. */
static void counted_bytes(void **state)
{
    (void)state;
    enum { FRAME_BYTES = 64, APPENDS = 20 };
    wire_t wire;
    spill_append_result_t result = {0};
    spill_store_options_t options;
    spill_counters_t counters;
    spill_error_t error;
    open_wire(&wire, SPILL_KEEP_NEWEST, SPILL_ARRAY_OLDEST_FIRST);
    spill_store_counters(wire.store, &counters);
    assert_int_equal(counters.bytes_written, 0); /* the option is off */
    assert_int_equal(counters.bytes_read, 0);
    spill_array_close(wire.array);
    server_close(wire.store);
    proxy_counts_t before = proxy_counts(wire.proxy);
    char *through = proxy_uri(wire.proxy, wire.uri);
    spill_store_options_init(&options);
    options.count_bytes = true;
    expect_ok(spill_store_open(through, &options, &wire.store, &error), &error);
    expect_ok(spill_array_open(wire.store, "feed", &wire.array, &error), &error);
    for (int i = 0; i < APPENDS; i++)
        append(&wire, 1, NULL, &result);
    proxy_counts_t sent = since(&wire, &before);
    spill_store_counters(wire.store, &counters);
    assert_true(counters.bytes_written > (int64_t)APPENDS * ELEMENT_BYTES);
    assert_in_range(sent.request_bytes - counters.bytes_written, 0, sent.requests * FRAME_BYTES);
    assert_true(counters.bytes_read > 0);
    assert_in_range(sent.reply_bytes - counters.bytes_read, 0, sent.replies * FRAME_BYTES);
    bson_free(through);
    close_wire(&wire);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keep_newest),          cmocka_unit_test(keep_oldest),
        cmocka_unit_test(keep_newest_at_front), cmocka_unit_test(keep_oldest_at_front),
        cmocka_unit_test(large_elements),       cmocka_unit_test(capped),
        cmocka_unit_test(capped_at_front),      cmocka_unit_test(newest_page_is_a_find),
        cmocka_unit_test(young_owner),          cmocka_unit_test(opening_is_one_round_trip),
        cmocka_unit_test(read_preference),      cmocka_unit_test(counted_bytes),
    };
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
