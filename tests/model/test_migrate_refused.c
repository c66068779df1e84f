/*
 * Migrations to layouts reference and subset of an array with an element that these cannot store.
 * The survey predicts it, the owner stays unchanged, and everything is migrated once the element is
 * corrected. A conversion of such an array refuses the owner before it appends anything.
 */
#include "core/array.h"
#include "support/definition.h"
#include "support/model_store.h"
#include "tools/definition_jobs.h"
#include "tools/migrate/staged.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 3, ELEMENTS = 2500, BAD_OWNER = 1, BAD_ELEMENT = 2400 };

typedef struct world {
    spill_store_t *store;
    spill_array_t *other; /* another array in the same heads, which writes other fields */
    spill_planned_t planned;
    spill_staged_t staged;
    spill_migrate_options_t options;
    char message[512]; /* of the owner that failed last */
} world_t;

static void expect_code(spill_code_t code, spill_code_t expected, const spill_error_t *error)
{
    if (code != expected)
        fail_msg("%s, not %s: %s", spill_code_name(code), spill_code_name(expected),
                 code == SPILL_OK ? "" : error->message);
}

static void note_failed(void *context, const spill_migrated_t *migrated)
{
    world_t *world = context;
    if (migrated->failed)
        bson_strncpy(world->message, migrated->failed->message, sizeof world->message);
}

static void open_world(world_t *world, const char *preset)
{
    spill_definition_t definition;
    spill_error_t error;
    *world = (world_t){.options = {.migrated = note_failed, .context = world}};
    world->store = model_store_open();
    expect_code(spill_definition_preset(&definition, "feed-recent", "other", &error), SPILL_OK,
                &error);
    definition_name_other(&definition);
    expect_code(spill_store_define(world->store, &definition, &error), SPILL_OK, &error);
    expect_code(spill_array_open(world->store, "other", &world->other, &error), SPILL_OK, &error);
    expect_code(spill_definition_preset(&definition, preset, "planned", &error), SPILL_OK, &error);
    strcpy(definition.id_field, "_id");
    spill_planned_init(&world->planned, &definition, "users", "events");
    world->staged = (spill_staged_t){.store = world->store, .planned = &world->planned};
    world->options.planned = &world->planned.definition;
}

static void close_world(world_t *world)
{
    spill_error_t error;
    spill_array_close(world->other);
    expect_code(spill_store_close(world->store, &error), SPILL_OK, &error);
}

static void append_element(bson_t *array, int number, const char *bad)
{
    char key[16];
    bson_t element;
    snprintf(key, sizeof key, "%d", number);
    bson_append_document_begin(array, key, -1, &element);
    BSON_APPEND_INT32(&element, "rating", number % 9);
    BCON_APPEND(&element, "_id", "{", "n", BCON_INT32(number), "}");
    if (bad && number == BAD_ELEMENT)
        BSON_APPEND_INT32(&element, bad, 1);
    bson_append_document_end(array, &element);
}

/* Write the owner's unmanaged array; one element has that extra field, or none if it is NULL. */
static void write_array(world_t *world, int owner, const char *bad)
{
    spill_error_t error;
    bson_t update = BSON_INITIALIZER, set, array, storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_int64(&storage, owner);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_ARRAY_BEGIN(&set, "events", &array);
    for (int i = 0; i < ELEMENTS; i++)
        append_element(&array, i, bad);
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    expect_code(spill_array_update(world->other, &value, &update, &error), SPILL_OK, &error);
    bson_destroy(&update);
    bson_destroy(&storage);
}

static int64_t predict(world_t *world)
{
    spill_error_t error;
    spill_migrate_result_t result = {0};
    expect_code(spill_migrate_predict(world->store, &world->planned.original, &world->options,
                                      &result, &error),
                SPILL_OK, &error);
    return result.failed;
}

static void migrate(world_t *world, int64_t *failed, int64_t *copied)
{
    spill_error_t error;
    spill_migrate_result_t reshaped = {0};
    spill_catch_up_result_t caught_up = {0};
    spill_array_t *original;
    expect_code(spill_staged_begin(&world->staged, &error), SPILL_OK, &error);
    expect_code(spill_array_open(world->store, world->planned.original.name, &original, &error),
                SPILL_OK, &error);
    expect_code(spill_migrate(original, &world->options, &reshaped, &error), SPILL_OK, &error);
    expect_code(spill_catch_up(world->store, world->planned.original.name, "planned",
                               &world->options, &caught_up, &error),
                SPILL_OK, &error);
    spill_array_close(original);
    *failed = reshaped.failed + caught_up.failed;
    *copied = caught_up.copied.elements;
}

static int64_t count_in(world_t *world, const char *name, int number)
{
    spill_error_t error;
    spill_array_t *array;
    spill_count_t count;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_int64(&storage, number);
    expect_code(spill_array_open(world->store, name, &array, &error), SPILL_OK, &error);
    expect_code(spill_array_count(array, &owner, &count, &error), SPILL_OK, &error);
    spill_array_close(array);
    bson_destroy(&storage);
    return count.next;
}

static void assert_message(const world_t *world, const char *field)
{
    char expected[160];
    snprintf(expected, sizeof expected,
             "owner 1 of 'planned.original': element %d: an element of 'planned' cannot have a "
             "field '%s'",
             BAD_ELEMENT, field);
    if (strstr(world->message, expected) == NULL)
        fail_msg("'%s' does not say '%s'", world->message, expected);
}

static void try_migration(const char *preset, const char *field)
{
    static world_t world;
    spill_error_t error;
    int64_t failed, copied;
    bool unmanaged;
    spill_copy_result_t result = {0};
    open_world(&world, preset);
    for (int owner = 0; owner < OWNERS; owner++)
        write_array(&world, owner, owner == BAD_OWNER ? field : NULL);
    expect_code(spill_staged_begin(&world.staged, &error), SPILL_OK, &error);
    assert_int_equal(predict(&world), 1);
    assert_message(&world, field);
    world.message[0] = '\0';
    migrate(&world, &failed, &copied);
    assert_message(&world, field);
    assert_int_equal(failed, 1);
    assert_int_equal(copied, (OWNERS - 1) * ELEMENTS);
    assert_int_equal(count_in(&world, "planned", BAD_OWNER), 0);
    assert_int_equal(count_in(&world, world.planned.original.name, BAD_OWNER), 0);
    expect_code(
        spill_migrate_has_unmanaged(world.store, &world.planned.original, &unmanaged, &error),
        SPILL_OK, &error);
    assert_true(unmanaged);
    write_array(&world, BAD_OWNER, NULL);
    assert_int_equal(predict(&world), 0);
    migrate(&world, &failed, &copied);
    assert_int_equal(failed, 0);
    assert_int_equal(copied, ELEMENTS);
    expect_code(spill_staged_finish(&world.staged, &world.options, &result, &error), SPILL_OK,
                &error);
    assert_int_equal(result.verified, OWNERS * ELEMENTS);
    close_world(&world);
}

static void refused_owner_stays_unchanged(void **state)
{
    (void)state;
    try_migration("reviews-separate", "spill");
    try_migration("reviews-subset", "productId");
    try_migration("reviews-subset", "elementId");
}

/* More elements than a batch holds come before the refused one. */
static void conversion_appends_nothing_of_refused_owner(void **state)
{
    (void)state;
    static world_t world;
    spill_error_t error;
    spill_migrate_result_t reshaped = {0};
    spill_copy_result_t result = {0};
    spill_copy_options_t options = {.as = "planned"};
    spill_array_t *original;
    open_world(&world, "reviews-separate");
    write_array(&world, BAD_OWNER, "spill");
    expect_code(spill_store_define(world.store, &world.planned.original, &error), SPILL_OK, &error);
    expect_code(spill_store_define(world.store, &world.planned.definition, &error), SPILL_OK,
                &error);
    expect_code(spill_array_open(world.store, world.planned.original.name, &original, &error),
                SPILL_OK, &error);
    world.options.planned = NULL;
    expect_code(spill_migrate(original, &world.options, &reshaped, &error), SPILL_OK, &error);
    spill_array_close(original);
    world.options.planned = &world.planned.definition;
    assert_int_equal(predict(&world), 1); /* the array is managed already */
    assert_message(&world, "spill");
    expect_code(spill_convert(world.store, world.planned.original.name, &options, &result, &error),
                SPILL_INVALID, &error);
    bson_strncpy(world.message, error.message, sizeof world.message);
    assert_message(&world, "spill");
    assert_int_equal(count_in(&world, "planned", BAD_OWNER), 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_owner_stays_unchanged),
        cmocka_unit_test(conversion_appends_nothing_of_refused_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
