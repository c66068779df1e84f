/*
 * kill -9, at random moments, of a process that appends to an embedded store from four threads:
 * during spills, seals, commits and recovery. The next process continues the appends. Half of the
 * rounds sync each commit, the others leave it in the log. A killed process loses neither.
 */
#include "killed.h"
#include "support/effort.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { LONGEST_US = 40000 };

static void killed_at_random(void **state)
{
    (void)state;
    char folder[] = "/tmp/spillway-kill-XXXXXX";
    assert_non_null(mkdtemp(folder));
    char path[64];
    snprintf(path, sizeof path, "%s/store", folder);
    unsigned random = killed_seed();
    print_message("seed %u%s\n", random, killed_use_paths(random) ? ", paths" : "");
    int rounds = (int)effort(1000, 25, 12);
    killed_ledger_t ledger;
    killed_ledger_init(&ledger);
    for (int round = 0; round < rounds; round++) {
        killed_plan_t plan = {
            .durability = round % 2 ? SPILL_DURABILITY_LOG : SPILL_DURABILITY_FSYNC,
            .at_once = round % 4 == 0,
            .longest_us = LONGEST_US,
        };
        killed_round(&ledger, path, &plan, &random);
        if (round % 20 == 19)
            killed_check(&ledger, path);
    }
    print_message("%d kills, %" PRId64 " appends acknowledged\n", rounds, ledger.answers);
    assert_true(ledger.answers > rounds);
    killed_check(&ledger, path);
    killed_ledger_release(&ledger);
    char remove_it[128];
    snprintf(remove_it, sizeof remove_it, "rm -rf '%s'", folder);
    assert_int_equal(system(remove_it), 0);
}

int main(int count, char **arguments)
{
    killed_run_if_worker(count, arguments);
    const struct CMUnitTest tests[] = {cmocka_unit_test(killed_at_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
