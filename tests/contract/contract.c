#include "contract.h"

#include "suite.h"

#include <assert.h>

void suite_add(suite_t *suite, const char *name, CMUnitTestFunction test)
{
    assert(suite->count < sizeof suite->tests / sizeof *suite->tests);
    suite->tests[suite->count++] = (struct CMUnitTest){.name = name, .test_func = test};
}

int contract_run(const contract_kind_t *kind)
{
    static suite_t suite;
    suite.count = 0; /* a program may run it for several kinds */
    add_append_tests(&suite);
    if (kind->combines)
        add_combined_tests(&suite);
    add_newest_tests(&suite);
    add_oldest_tests(&suite);
    add_read_tests(&suite);
    add_catalog_tests(&suite);
    add_random_tests(&suite);
    for (size_t i = 0; i < suite.count; i++)
        suite.tests[i].initial_state = (void *)kind;
    return _cmocka_run_group_tests(kind->name, suite.tests, suite.count, NULL, NULL);
}
