/*
 * Migrations in two stages (staged.h) on a server, the k-th store call failing or its answer being
 * lost: for each k with SPILLWAY_LONG, else for few.
 */
#include "model/staged.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static bool survives(const staged_goal_t *goal, int64_t at, spill_fault_t fault, bool undo)
{
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open(uri);
    bool reached = staged_survives(goal, store, at, fault, undo);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
    return reached;
}

static void every_call(void **state)
{
    (void)state;
    bool all = getenv("SPILLWAY_LONG") != NULL;
    for (size_t g = 0; g < STAGED_GOALS; g++) {
        bool reached = true;
        for (int64_t k = all ? 0 : 40 + 37 * (int64_t)g; reached; k += all ? 1 : 200) {
            spill_fault_t fault =
                (k + (int64_t)g) % 2 == 0 ? SPILL_FAULT_FAIL : SPILL_FAULT_LOST_APPLIED;
            reached = survives(&staged_goals[g], k, fault, k / 2 % 2 == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_call)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
