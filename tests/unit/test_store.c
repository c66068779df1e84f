/* Opening stores, and their common parts: counters, the log, the clock. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static spill_store_t *open_memory(const spill_store_options_t *options)
{
    spill_store_t *store;
    assert_int_equal(spill_store_open("memory:", options, &store, NULL), SPILL_OK);
    assert_non_null(store);
    return store;
}

static void assert_refused(const char *uri, const spill_store_options_t *options, spill_code_t code,
                           const char *says)
{
    spill_store_t *store = (spill_store_t *)&code;
    spill_error_t error;
    assert_int_equal(spill_store_open(uri, options, &store, &error), code);
    assert_null(store);
    assert_int_equal(error.code, code);
    if (!strstr(error.message, says))
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
}

static void unknown_scheme_is_named(void **state)
{
    (void)state;
    assert_refused("mysql://localhost/test", NULL, SPILL_INVALID, "\"mysql:\"");
    assert_refused("rocks:/tmp/x", NULL, SPILL_INVALID, "\"rocks:\"");
    assert_refused("memory:feeds", NULL, SPILL_INVALID, "has no name");
    assert_refused("", NULL, SPILL_INVALID, "needs a name");
    assert_refused("rocksdb:", NULL, SPILL_INVALID, "needs a name");
}

static void path_is_embedded_store(void **state)
{
    (void)state;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.must_exist = true;
    assert_refused("/nowhere/at/all", &options, SPILL_NOT_FOUND, "/nowhere/at/all");
    assert_refused("rocksdb:/nowhere/at/all", &options, SPILL_NOT_FOUND, "/nowhere/at/all");
    assert_refused("./a:b/nowhere", &options, SPILL_NOT_FOUND, "a:b/nowhere");
    assert_refused("nowhere/a:b", &options, SPILL_NOT_FOUND, "nowhere/a:b");
}

static void options_are_checked(void **state)
{
    (void)state;
    spill_store_options_t options = {0};
    assert_refused("memory:", &options, SPILL_INVALID, "spill_store_options_init");
    spill_store_options_init(&options);
    options.durability = (spill_durability_t)9;
    assert_refused("memory:", &options, SPILL_INVALID, "durability 9");
    spill_store_options_init(&options);
    options.cache_bytes = -1;
    assert_refused("memory:", &options, SPILL_INVALID, "cache_bytes");
    for (unsigned mode = 0; mode <= 010000; mode += 0100) {
        spill_store_options_init(&options);
        options.file_mode = mode;
        if (mode != 0600)
            assert_refused("memory:", &options, SPILL_INVALID, "file_mode");
    }
    spill_store_options_init(&options);
    options.read_only = true;
    assert_refused("memory:", &options, SPILL_NOT_FOUND, "read-only");
    spill_store_options_init(&options);
    options.must_exist = true;
    assert_refused("memory:", &options, SPILL_NOT_FOUND, "begins empty");
}

static void closing_nothing_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(spill_store_close(NULL, NULL), SPILL_OK);
    spill_store_t *store = open_memory(NULL);
    spill_error_t error;
    assert_int_equal(spill_store_backup(store, "/tmp/x", &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "\"memory\""));
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static int64_t frozen_clock(void *context)
{
    return *(int64_t *)context;
}

static void clock_is_callers_or_real(void **state)
{
    (void)state;
    spill_store_t *store = open_memory(NULL);
    const spill_clock_t *clock = &store->options.clock;
    assert_true(clock->now_us(clock->context) > 1500000000000000);
    clock->sleep_us(clock->context, 0);
    spill_store_close(store, NULL);
    spill_store_options_t options;
    spill_store_options_init(&options);
    int64_t now = 42;
    options.clock = (spill_clock_t){.context = &now, .now_us = frozen_clock};
    store = open_memory(&options);
    assert_int_equal(store->options.clock.now_us(store->options.clock.context), 42);
    assert_non_null(store->options.clock.sleep_us);
    spill_store_close(store, NULL);
}

static void keep_message(void *context, spill_log_level_t level, const char *message)
{
    char *kept = context;
    kept[0] = (char)('0' + level);
    strncpy(kept + 1, message, 30);
}

static void log_is_passed_on(void **state)
{
    (void)state;
    spill_store_t *silent = open_memory(NULL);
    spill_store_log(silent, SPILL_LOG_ERROR, "nobody hears %d", 1);
    spill_store_close(silent, NULL);
    char kept[32] = "";
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.log = keep_message;
    options.log_context = kept;
    spill_store_t *store = open_memory(&options);
    spill_store_log(store, SPILL_LOG_WARNING, "page %d of %s", 3, "ada");
    assert_string_equal(kept, "1page 3 of ada");
    spill_store_close(store, NULL);
}

static void calls_are_counted(void **state)
{
    (void)state;
    spill_store_t *store = open_memory(NULL);
    spill_definition_t definition;
    spill_binding_t binding;
    assert_int_equal(spill_definition_preset(&definition, "feed", "feed", NULL), SPILL_OK);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(store->ops->bind(store, &definition, &binding, NULL), SPILL_OK);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    spill_value_t elements[2] = {owner, owner};
    spill_request_t request = {
        .kind = SPILL_REQUEST_APPEND,
        .definition = &definition,
        .array_id = binding.array_id,
        .collection_id = binding.collection_id,
        .owner = &owner,
        .key = (const uint8_t *)"ada",
        .key_bytes = 3,
        .page = SPILL_HEAD,
        .incarnation = 7,
        .create = true,
        .limits = {.slots_max = 10, .bytes_max = 10000},
        .append = {.elements = elements, .element_count = 2, .elements_bytes = 16},
    };
    spill_response_t response = SPILL_RESPONSE_INIT;
    assert_int_equal(spill_store_call(store, &request, &response, NULL), SPILL_OK);
    request.limits.slots_max = 3;
    assert_int_equal(spill_store_call(store, &request, &response, NULL), SPILL_OK);
    assert_int_equal(response.outcome, SPILL_REFUSED_GUARD);
    request.kind = SPILL_REQUEST_SEAL;
    request.seal.close = false;
    assert_int_equal(spill_store_call(store, &request, &response, NULL), SPILL_OK);
    assert_int_equal(response.outcome, SPILL_DONE);
    spill_counters_t counters;
    spill_store_counters(store, &counters);
    assert_int_equal(counters.calls, 3);
    assert_int_equal(counters.appends, 1);
    assert_int_equal(counters.elements, 2);
    assert_int_equal(counters.spills, 1);
    assert_int_equal(counters.retries, 0);
    spill_response_release(&response);
    bson_destroy(&storage);
    spill_store_close(store, NULL);
}

/* Save preset "feed-recent" under that name; "" keeps a name of the preset. */
static spill_code_t define(spill_store_t *store, const char *name, const char *collection,
                           const char *page_collection, spill_error_t *error)
{
    spill_definition_t definition;
    spill_definition_init(&definition, name);
    if (collection[0])
        strcpy(definition.collection, collection);
    if (page_collection[0])
        strcpy(definition.page_collection, page_collection);
    return spill_store_define(store, &definition, error);
}

static void definitions_that_clash_are_refused(void **state)
{
    (void)state;
    spill_store_t *store = open_memory(NULL);
    spill_error_t error;
    assert_int_equal(define(store, "feed", "", "", NULL), SPILL_OK);
    assert_int_equal(define(store, "feed", "", "", NULL), SPILL_OK);
    assert_int_equal(define(store, "zoo", "", "zooPages", &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "'feed'"));
    assert_int_equal(define(store, "zoo", "animals", "", NULL), SPILL_REFUSED);
    assert_int_equal(define(store, "zoo", "animals", "zooPages", NULL), SPILL_OK);
    /* A change may also cause a clash: of the first definition with a later one. */
    assert_int_equal(define(store, "feed", "animals", "", &error), SPILL_REFUSED);
    assert_non_null(strstr(error.message, "'zoo'"));
    /* Without an owner, names may still change. */
    assert_int_equal(define(store, "zoo", "plants", "", &error), SPILL_REFUSED);
    assert_int_equal(define(store, "zoo", "plants", "plantPages", NULL), SPILL_OK);
    assert_int_equal(define(store, "feed", "animals", "zooPages", NULL), SPILL_OK);
    spill_store_close(store, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_scheme_is_named),
        cmocka_unit_test(path_is_embedded_store),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(closing_nothing_is_allowed),
        cmocka_unit_test(clock_is_callers_or_real),
        cmocka_unit_test(log_is_passed_on),
        cmocka_unit_test(calls_are_counted),
        cmocka_unit_test(definitions_that_clash_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
