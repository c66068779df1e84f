/* Several threads migrate, undo, and copy to another layout, each on one owner at a time. */
#include "support/embedded.h"
#include "tools/migrate/migrate.h"
#include "tools/migrate/staged.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Owner 0 has more pages than are read or deleted together. */
enum { OWNERS = 12, LONGEST = 400, LENGTH = 30, THRESHOLD = 4, PAGE = 3, THREADS = 4 };

typedef struct world {
    spill_store_t *store;
    spill_array_t *feed;
    spill_migrate_options_t options;
    spill_migrate_result_t result;
    spill_error_t error;
} world_t;

static int64_t length_of(int owner)
{
    return owner == 0 ? LONGEST : LENGTH + owner;
}

static int64_t all_elements(void)
{
    int64_t all = 0;
    for (int i = 0; i < OWNERS; i++)
        all += length_of(i);
    return all;
}

static void name_owner(int owner, char name[24])
{
    snprintf(name, 24, "owner %d", owner);
}

static void open_world(world_t *world)
{
    *world = (world_t){.options = {.threads = THREADS}};
    world->store = embedded_in_folder(embedded_new_folder(), NULL);
    world->feed = embedded_array(world->store, "feed", THRESHOLD, PAGE);
    for (int i = 0; i < OWNERS; i++) {
        char name[24];
        name_owner(i, name);
        assert_int_equal(embedded_append(world->feed, name, 1000 * i, length_of(i), &world->error),
                         SPILL_OK);
    }
}

static void close_world(world_t *world)
{
    spill_array_close(world->feed);
    embedded_close(world->store);
}

static void must(const world_t *world, spill_code_t code)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), world->error.message);
}

static void check_elements(world_t *world)
{
    for (int i = 0; i < OWNERS; i++) {
        char name[24];
        name_owner(i, name);
        must(world, embedded_holds(world->feed, name, 1000 * i, length_of(i), &world->error));
        assert_int_equal(embedded_findings(world->store, world->feed, name), 0);
    }
}

static bool count_one(void *context, const spill_value_t *owner)
{
    (void)owner;
    ++*(int *)context;
    return true;
}

static int count_managed(world_t *world)
{
    int count = 0;
    must(world, spill_array_owners(world->feed, count_one, &count, &world->error));
    return count;
}

static void arrays_are_undone_and_migrated(void **state)
{
    (void)state;
    world_t world;
    open_world(&world);
    must(&world, spill_migrate_check_undo(world.feed, &world.options, &world.result, &world.error));
    assert_int_equal(world.result.owners, OWNERS);
    assert_int_equal(count_managed(&world), OWNERS);
    world.result = (spill_migrate_result_t){0};
    must(&world, spill_migrate_undo(world.feed, &world.options, &world.result, &world.error));
    assert_int_equal(world.result.owners, OWNERS);
    assert_int_equal(world.result.failed, 0);
    assert_int_equal(world.result.elements, all_elements());
    assert_int_equal(count_managed(&world), 0);
    world.result = (spill_migrate_result_t){0};
    must(&world, spill_migrate(world.feed, &world.options, &world.result, &world.error));
    assert_int_equal(world.result.unmanaged, OWNERS);
    assert_true(world.result.pages > 100);
    check_elements(&world);
    close_world(&world);
}

/* Called by all threads, one at a time. */
static void count_caught_up(void *context, const spill_migrated_t *migrated)
{
    int *owners = context;
    assert_null(migrated->failed);
    *owners += migrated->caught_up ? 1 : 0;
}

static void arrays_are_copied(void **state)
{
    (void)state;
    world_t world;
    spill_planned_t planned;
    spill_definition_t definition;
    spill_catch_up_result_t first = {0}, second = {0};
    int owners = 0;
    open_world(&world);
    must(&world, spill_definition_preset(&definition, "feed", "copy", &world.error));
    strcpy(definition.collection, "copies");
    strcpy(definition.page_collection, "copyPages");
    spill_planned_init(&planned, &definition, "feed", "activities");
    planned.original = *spill_array_get_definition(world.feed);
    const spill_staged_t staged = {.store = world.store, .planned = &planned};
    must(&world, spill_staged_begin(&staged, &world.error));
    world.options.migrated = count_caught_up;
    world.options.context = &owners;
    must(&world, spill_catch_up(world.store, "feed", "copy", &world.options, &first, &world.error));
    assert_int_equal(owners, OWNERS);
    assert_int_equal(first.copied.owners, OWNERS);
    assert_int_equal(first.copied.elements, all_elements());
    assert_int_equal(first.copied.verified, all_elements());
    must(&world,
         spill_catch_up(world.store, "feed", "copy", &world.options, &second, &world.error));
    assert_int_equal(second.copied.elements, 0);
    assert_int_equal(second.copied.before, all_elements());
    assert_int_equal(second.hash, first.hash);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_are_undone_and_migrated),
        cmocka_unit_test(arrays_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
