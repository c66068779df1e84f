/*
 * Plausible but wrong versions: the simulation finds a failure in each of them, and none in the
 * real protocol under the same schedules. One test for each row of the table in
 * docs/internals/simulation.md.
 */
#include "naive.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Return the first seed with the expected failure, or 0. */
static uint64_t find_failure(const sim_naive_t *naive, char *failure, size_t size)
{
    sim_coverage_t coverage = {0};
    sim_world_t world;
    uint64_t found = 0;
    sim_world_init(&world, SIM_MODEL, &coverage);
    world.execute = naive->execute;
    world.deliver = naive->deliver;
    world.body = naive->body;
    world.finish = naive->finish;
    world.adjust = naive->adjust;
    for (uint64_t seed = 1; found == 0 && seed <= (uint64_t)naive->schedules; seed++)
        if (!sim_schedule_run(&world, seed) && strstr(world.failure, naive->shows))
            found = seed;
    snprintf(failure, size, "%s", world.failure);
    sim_world_release(&world);
    return found;
}

static void expect_real_protocol_passes(const sim_naive_t *naive, uint64_t last)
{
    enum { AT_LEAST = 1000 };
    sim_coverage_t coverage = {0};
    sim_world_t world;
    sim_world_init(&world, SIM_MODEL, &coverage);
    world.execute = naive->real;
    world.adjust = naive->adjust;
    for (uint64_t seed = 1; seed <= last || seed <= AT_LEAST; seed++)
        if (!sim_schedule_run(&world, seed))
            fail_msg("the real protocol, in the schedules of '%s', seed %llu: %s", naive->name,
                     (unsigned long long)seed, world.failure);
    sim_world_release(&world);
}

static void expect_failure(const sim_naive_t *naive)
{
    char failure[512];
    uint64_t seed = find_failure(naive, failure, sizeof failure);
    if (seed == 0)
        fail_msg("'%s' did not fail in %d schedules", naive->name, naive->schedules);
    print_message("'%s' fails in schedule %llu: %s\n", naive->name, (unsigned long long)seed,
                  failure);
    expect_real_protocol_passes(naive, seed);
}

#define NAIVE_TESTS(X)                                                                             \
    X(put_replaces)                                                                                \
    X(put_compares_contents)                                                                       \
    X(cut_compares_contents)                                                                       \
    X(window_alone)                                                                                \
    X(window_for_each_document)                                                                    \
    X(sessions_by_count)                                                                           \
    X(highest_statement)                                                                           \
    X(entry_replaced_late)                                                                         \
    X(rewrite_without_length)                                                                      \
    X(rewrite_without_entry)                                                                       \
    X(note_always_believed)                                                                        \
    X(note_afterwards)                                                                             \
    X(note_forgotten_by_all)                                                                       \
    X(note_replaced)                                                                               \
    X(note_ends_with_pages)                                                                        \
    X(all_believed)                                                                                \
    X(all_stays)                                                                                   \
    X(all_replaced)                                                                                \
    X(ended_without_mark)                                                                          \
    X(set_without_pages)                                                                           \
    X(set_without_head)                                                                            \
    X(removal_deletes)                                                                             \
    X(orphans_deleted)                                                                             \
    X(trim_deletes_pages)                                                                          \
    X(sealed_page_deleted)                                                                         \
    X(stored_counter)                                                                              \
    X(count_by_max)                                                                                \
    X(batch_larger_than_page)                                                                      \
    X(check_then_act)                                                                              \
    X(page_number_read_separately)                                                                 \
    X(count_incremented_after)                                                                     \
    X(retry_without_id)                                                                            \
    X(head_has_the_newest)

#define NAIVE_TEST(row)                                                                            \
    static void row(void **state)                                                                  \
    {                                                                                              \
        (void)state;                                                                               \
        expect_failure(&sim_naive_##row);                                                          \
    }
NAIVE_TESTS(NAIVE_TEST)

int main(void)
{
    const struct CMUnitTest tests[] = {
#define NAIVE_ENTRY(row) cmocka_unit_test(row),
        NAIVE_TESTS(NAIVE_ENTRY)
#undef NAIVE_ENTRY
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
