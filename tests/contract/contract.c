#include "contract.h"

#include "suite.h"
#include "support/effort.h"

#include <assert.h>
#include <stdio.h>

void suite_add(suite_t *suite, const char *name, CMUnitTestFunction test)
{
    assert(suite->count < sizeof suite->tests / sizeof *suite->tests);
    suite->tests[suite->count++] = (struct CMUnitTest){.name = name, .test_func = test};
}

/*
 * Random walks take most of the time on a slow store. In ./check it plays them newest first, and
 * oldest first in the build with a sanitizer, which runs that order alone.
 */
static bool plays_random(const contract_kind_t *kind, spill_array_order_t order)
{
    return !kind->slow || order == SPILL_ARRAY_NEWEST_FIRST || effort(true, false, true);
}

static int run_in_order(const contract_kind_t *kind, const char *name, spill_array_order_t order)
{
    contract_order = order;
    contract_paths = order == SPILL_ARRAY_NEWEST_FIRST;
    static suite_t suite;
    suite.count = 0; /* a program may run the suite for several kinds */
    add_append_tests(&suite);
    add_given_number_tests(&suite);
    if (kind->combines)
        add_combined_tests(&suite);
    add_newest_tests(&suite);
    add_oldest_tests(&suite);
    if (order == SPILL_ARRAY_OLDEST_FIRST) {
        add_referenced_tests(&suite);
        add_top_tests(&suite);
    }
    add_capped_tests(&suite);
    add_top_n_tests(&suite);
    add_session_tests(&suite);
    add_unmanaged_tests(&suite);
    add_full_tests(&suite);
    add_read_tests(&suite);
    add_id_tests(&suite);
    if (order == SPILL_ARRAY_OLDEST_FIRST)
        add_set_tests(&suite);
    add_catalog_tests(&suite);
    add_owner_tests(&suite);
    add_bucket_tests(&suite);
    add_path_tests(&suite);
    add_layout_tests(&suite);
    if (plays_random(kind, order)) {
        add_random_tests(&suite);
        add_random_referenced_tests(&suite);
    }
    for (size_t i = 0; i < suite.count; i++)
        suite.tests[i].initial_state = (void *)kind;
    return _cmocka_run_group_tests(name, suite.tests, suite.count, NULL, NULL);
}

int contract_run(const contract_kind_t *kind)
{
    char front[64];
    snprintf(front, sizeof front, "%s, newest first, paths", kind->name);
    int failed = run_in_order(kind, kind->name, SPILL_ARRAY_OLDEST_FIRST);
    if (!kind->slow || effort(true, true, false))
        failed += run_in_order(kind, front, SPILL_ARRAY_NEWEST_FIRST);
    return failed;
}
