/* Which collections differ only in an identifier, and which are separate for a reason. */
#include "support/document.h"
#include "tools/scan/shape.h"

#include <bson/bson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 3000 };

typedef struct database {
    spill_sprawl_collection_t at[MOST];
    char names[MOST][64];
    spill_shape_t shapes[MOST];
    size_t count;
} database_t;

static int set_up(void **state)
{
    *state = bson_malloc0(sizeof(database_t));
    return 0;
}

static int tear_down(void **state)
{
    bson_free(*state);
    return 0;
}

static void add_document(spill_shape_t *shape, const char *json)
{
    bson_t *document = document_from_json(json);
    spill_shape_add(shape, bson_get_data(document));
    bson_destroy(document);
}

static spill_sprawl_collection_t *add_collection(database_t *database, const char *json,
                                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a collection with one document; all collections have the same indexes. */
static spill_sprawl_collection_t *add_collection(database_t *database, const char *json,
                                                 const char *format, ...)
{
    va_list arguments;
    size_t i = database->count++;
    assert_true(i < MOST);
    va_start(arguments, format);
    vsnprintf(database->names[i], sizeof database->names[i], format, arguments);
    va_end(arguments);
    if (json)
        add_document(&database->shapes[i], json);
    database->at[i] = (spill_sprawl_collection_t){.name = database->names[i],
                                                  .shape = &database->shapes[i],
                                                  .indexes = 1,
                                                  .index_count = 3,
                                                  .index_bytes = 4096,
                                                  .documents = json ? 10 : 0,
                                                  .bytes = json ? 1000 : 0};
    return &database->at[i];
}

static spill_sprawl_t find_group(const database_t *database)
{
    return spill_sprawl_find(database->at, database->count, SPILL_SPRAWL_MIN, false);
}

#define ORDER "{\"_id\":1,\"customer\":\"a\",\"total\":5,\"at\":3,\"lines\":[]}"
#define INVOICE "{\"_id\":1,\"order\":4,\"due\":5,\"paid\":true}"
#define READING "{\"_id\":1,\"device\":\"x\",\"at\":3,\"celsius\":21.5}"

static void one_collection_per_customer(void **state)
{
    database_t *database = *state;
    for (int i = 0; i < 300; i++) {
        add_collection(database, ORDER, "customer_%c%d%c_orders", 'a' + i % 26, i, 'a' + i % 7);
        add_collection(database, INVOICE, "customer_%c%d%c_invoices", 'a' + i % 26, i, 'a' + i % 7);
    }
    add_collection(database, ORDER, "archive");
    spill_sprawl_t sprawl = find_group(database);
    assert_int_equal(sprawl.count, 2);
    assert_string_equal(sprawl.groups[0].pattern, "customer_*_invoices");
    assert_string_equal(sprawl.groups[1].pattern, "customer_*_orders");
    for (int i = 0; i < 2; i++) {
        const spill_sprawl_group_t *group = &sprawl.groups[i];
        assert_int_equal(group->count, 300);
        assert_int_equal(group->kind, SPILL_SPRAWL_NAMES);
        assert_int_equal(group->index_count, 900);
        assert_int_equal(group->index_bytes, 300 * 4096);
        assert_int_equal(group->documents, 3000);
        assert_int_equal(group->bytes, 300000);
        for (size_t j = 0; j < group->count; j++)
            assert_int_equal(group->members[j], 2 * j + (i == 0));
    }
    spill_sprawl_release(&sprawl);
}

static void dates_and_numbers(void **state)
{
    database_t *database = *state;
    for (int month = 0; month < 36; month++)
        add_collection(database, READING, "readings_%d_%02d", 2023 + month / 12, 1 + month % 12);
    for (int day = 1; day < 29; day++)
        add_collection(database, ORDER, "log.202402%02d", day);
    for (int device = 0; device < 20; device++)
        add_collection(database, INVOICE, "device%d", 100000 + 7919 * device);
    spill_sprawl_t sprawl = find_group(database);
    assert_int_equal(sprawl.count, 3);
    assert_string_equal(sprawl.groups[0].pattern, "readings_*");
    assert_int_equal(sprawl.groups[0].kind, SPILL_SPRAWL_DATES);
    assert_int_equal(sprawl.groups[0].count, 36);
    assert_string_equal(sprawl.groups[1].pattern, "log.*");
    assert_int_equal(sprawl.groups[1].kind, SPILL_SPRAWL_DATES);
    assert_string_equal(sprawl.groups[2].pattern, "device*");
    assert_int_equal(sprawl.groups[2].kind, SPILL_SPRAWL_NUMBERS);
    spill_sprawl_release(&sprawl);
}

/* Identifiers of every kind, also with words of their own; and rooms with mere names. */
static void identifiers_of_any_form(void **state)
{
    static const char *const rooms[] = {"Wiki",       "help", "React Berlin", "java-beginners",
                                        "x2",         "go",   "Delhi",        "data.science",
                                        "MEAN_stack", "c++",  "vim",          "São Paulo"};
    database_t *database = *state;
    for (int i = 0; i < 15; i++)
        add_collection(database, ORDER, "tenant-%08x-%04x-4%03x-%012x", (unsigned)i * 2654435761U,
                       i * 77, i, i * 99991);
    for (int i = 0; i < 60; i++)
        add_collection(database, READING, "%x", (unsigned)i * 2654435761U);
    for (int i = 0; i < 12; i++)
        add_collection(database, INVOICE, "acme%sOrders", rooms[i]);
    spill_sprawl_t sprawl = find_group(database);
    assert_int_equal(sprawl.count, 3);
    assert_string_equal(sprawl.groups[0].pattern, "*");
    assert_int_equal(sprawl.groups[0].count, 60);
    assert_string_equal(sprawl.groups[1].pattern, "tenant-*");
    assert_int_equal(sprawl.groups[1].count, 15);
    assert_true(strncmp(sprawl.groups[2].pattern, "acme*", 5) == 0 ||
                strcmp(sprawl.groups[2].pattern, "*Orders") == 0);
    spill_sprawl_release(&sprawl);
}

/* Many collections with similar names and different contents are not sprawl. */
static void different_contents_are_not_sprawl(void **state)
{
    database_t *database = *state;
    for (int i = 0; i < 200; i++) {
        char json[200];
        snprintf(json, sizeof json, "{\"_id\":1,\"f%d\":1,\"g%d\":2,\"h%d\":3,\"at\":4}", i, i, i);
        add_collection(database, json, "module_%d_data", i);
    }
    for (int i = 0; i < 9; i++) /* alike, but few */
        add_collection(database, ORDER, "orders_%d", i);
    static const char *const tables[] = {"countries", "currencies", "languages", "units",
                                         "colours",   "sizes",      "brands",    "roles",
                                         "statuses",  "regions",    "timezones", "tags"};
    for (int i = 0; i < 12; i++) /* alike by chance */
        add_collection(database, INVOICE, "shop.%s", tables[i]);
    for (int i = 0; i < 40; i++) /* nothing in them to compare */
        add_collection(database, NULL, "empty_%d", i);
    spill_sprawl_t sprawl =
        spill_sprawl_find(database->at, database->count, SPILL_SPRAWL_MIN, true);
    assert_int_equal(sprawl.count, 0);
    assert_null(sprawl.groups);
    spill_sprawl_release(&sprawl);
}

static void different_indexes_are_not_sprawl(void **state)
{
    database_t *database = *state;
    for (int i = 0; i < 30; i++)
        add_collection(database, ORDER, "orders_%d", i)->indexes = i < 20 ? 1 : 2;
    spill_sprawl_t sprawl = find_group(database);
    assert_int_equal(sprawl.count, 2);
    assert_int_equal(sprawl.groups[0].count, 20);
    assert_int_equal(sprawl.groups[1].count, 10);
    spill_sprawl_release(&sprawl);
}

/* Fields that some documents lack do not change a shape; different fields do. */
static void shapes_are_compared_by_common_fields(void **state)
{
    (void)state;
    spill_shape_t left = {0}, right = {0}, other = {0}, none = {0};
    for (int i = 0; i < 300; i++) { /* only 200 documents are read */
        add_document(&left, i % 10 ? ORDER : "{\"_id\":1,\"customer\":\"a\",\"note\":\"rare\"}");
        add_document(&right, ORDER);
        add_document(&other, INVOICE);
    }
    assert_int_equal(left.documents, SPILL_SHAPE_DOCUMENTS);
    assert_true(spill_shape_likeness(&left, &right) == 1);
    assert_true(spill_shape_likeness(&left, &other) < 0.2); /* only _id is common */
    assert_true(spill_shape_likeness(&left, &none) == 0);
    assert_true(spill_shape_likeness(&none, &none) == 0);
    for (int i = 0; i < 100; i++) { /* names beyond the first 64 are ignored */
        char json[40];
        snprintf(json, sizeof json, "{\"n%d\":1}", i);
        add_document(&none, json);
    }
    assert_int_equal(none.count, SPILL_SHAPE_FIELDS);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(one_collection_per_customer),      TEST(dates_and_numbers),
        TEST(identifiers_of_any_form),          TEST(different_contents_are_not_sprawl),
        TEST(different_indexes_are_not_sprawl), TEST(shapes_are_compared_by_common_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
