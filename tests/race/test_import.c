/* The two threads of an import, the parser and the writer, on the embedded store in memory. */
#include "tools/import/import.h"

#include <spillway/spillway.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RECORDS 60000
#define OWNERS 17

typedef struct fixture {
    char path[64];
    spill_store_t *store;
    spill_array_t *array;
} fixture_t;

/* Write records of alternating owners; the record at `bad` (-1: none) has no owner. */
static void write_input(const fixture_t *fixture, int bad)
{
    FILE *file = fopen(fixture->path, "w");
    assert_non_null(file);
    for (int i = 0; i < RECORDS; i++) {
        fprintf(file, "{\"%s\": %d, \"n\": %d}\n", i == bad ? "nobody" : "by", i % OWNERS, i);
    }
    assert_int_equal(fclose(file), 0);
}

static int set_up(void **state)
{
    fixture_t *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    strcpy(fixture->path, "/tmp/spillway-race-XXXXXX");
    int file = mkstemp(fixture->path);
    assert_true(file >= 0);
    close(file);
    spill_definition_t definition;
    spill_definition_init(&definition, "events");
    definition.bounds.threshold = 50;
    definition.bounds.page_capacity = 20;
    assert_int_equal(spill_store_open("memory:", NULL, &fixture->store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(fixture->store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(fixture->store, "events", &fixture->array, NULL), SPILL_OK);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    fixture_t *fixture = *state;
    spill_array_close(fixture->array);
    assert_int_equal(spill_store_close(fixture->store, NULL), SPILL_OK);
    unlink(fixture->path);
    free(fixture);
    return 0;
}

static int64_t count_owner(const fixture_t *fixture, int64_t owner)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_int64(&storage, owner);
    spill_count_t count;
    assert_int_equal(spill_array_count(fixture->array, &value, &count, NULL), SPILL_OK);
    bson_destroy(&storage);
    return count.count;
}

static void imports_whole(void **state)
{
    const fixture_t *fixture = *state;
    write_input(fixture, -1);
    spill_import_options_t options = {.path = fixture->path, .format = "ndjson", .owner = "by"};
    spill_import_result_t result;
    spill_error_t error;
    assert_int_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                     SPILL_OK);
    assert_int_equal(result.records, RECORDS);
    int64_t total = 0;
    for (int64_t owner = 0; owner < OWNERS; owner++) {
        total += count_owner(fixture, owner);
    }
    assert_int_equal(total, RECORDS);
}

/* The writer fails while the parser is several chunks ahead, and stops it. */
static void stops_the_parser(void **state)
{
    const fixture_t *fixture = *state;
    write_input(fixture, -1);
    spill_import_options_t options = {
        .path = fixture->path, .format = "ndjson", .owner = "by", .id = "n"};
    spill_import_result_t result;
    spill_error_t error;
    assert_int_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                     SPILL_OK);
    options.owner = "n"; /* contradicts the checkpoint */
    assert_int_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                     SPILL_REFUSED);
    options.owner = "by";
    write_input(fixture, 0); /* the input that the checkpoint names is no longer there */
    assert_int_not_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                         SPILL_OK);
}

static void continues_after_bad_record(void **state)
{
    const fixture_t *fixture = *state;
    write_input(fixture, RECORDS / 2);
    spill_import_options_t options = {.path = fixture->path, .format = "ndjson", .owner = "by"};
    spill_import_result_t result;
    spill_error_t error;
    assert_int_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                     SPILL_PARSE);
    assert_int_equal(result.records, RECORDS / 2);
    options.skip_max = 1;
    assert_int_equal(spill_import(fixture->store, fixture->array, &options, &result, &error),
                     SPILL_OK);
    assert_int_equal(result.before, RECORDS / 2);
    assert_int_equal(result.records, RECORDS / 2 - 1);
    assert_int_equal(result.skipped, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(imports_whole, set_up, tear_down),
        cmocka_unit_test_setup_teardown(stops_the_parser, set_up, tear_down),
        cmocka_unit_test_setup_teardown(continues_after_bad_record, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
