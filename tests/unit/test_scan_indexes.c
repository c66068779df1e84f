/* Indexes of a collection: for which arrays they have entries, and which sets of them are equal. */
#include "tools/scan/shape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void parse(const char *text, spill_scan_indexes_t *indexes)
{
    *indexes = (spill_scan_indexes_t){0};
    assert_true(spill_scan_indexes_parse(indexes, text, strlen(text)));
    assert_true(indexes->known);
}

static bool covers(const char *key, const char *path)
{
    spill_scan_indexes_t indexes;
    char text[256];
    snprintf(text, sizeof text, "{\"indexes\": [{\"key\": %s}]}", key);
    parse(text, &indexes);
    bool found = spill_scan_index_covers(&indexes.items[0], path);
    spill_scan_indexes_release(&indexes);
    return found;
}

static void keys_lie_in_arrays(void **context)
{
    (void)context;
    assert_true(covers("{\"posts\": 1}", "posts"));
    assert_true(covers("{\"at\": 1, \"posts.tag\": -1}", "posts"));
    assert_true(covers("{\"groups.members.name\": 1}", "groups"));
    assert_true(covers("{\"groups.members.name\": 1}", "groups[].members"));
    assert_true(covers("{\"meta.posts.tag\": 1}", "meta.posts"));
    assert_false(covers("{\"postscript\": 1}", "posts"));
    assert_false(covers("{\"groups\": 1}", "groups[].members"));
    assert_false(covers("{\"post\": 1}", "posts"));
    assert_false(covers("{\"a.b\": 1}", "\"a.b\""));
    assert_false(covers("{\"_fts\": \"text\"}", "posts"));
}

static bool are_alike(const char *left, const char *right)
{
    spill_scan_indexes_t one, two;
    parse(left, &one);
    parse(right, &two);
    bool same = one.hash == two.hash;
    assert_true(one.hash != 0 && two.hash != 0);
    spill_scan_indexes_release(&one);
    spill_scan_indexes_release(&two);
    return same;
}

static void sets_are_alike(void **context)
{
    (void)context;
    const char *set = "{\"indexes\": [{\"v\": 2, \"key\": {\"_id\": 1}, \"name\": \"_id_\"},"
                      "{\"v\": 2, \"key\": {\"a\": 1, \"b\": -1}, \"name\": \"x\","
                      " \"unique\": true, \"sparse\": true}]}";
    assert_true(are_alike(set, set));
    assert_true(are_alike(set, "{\"indexes\": [{\"sparse\": true, \"key\": {\"a\": 1.0, \"b\": -1},"
                               " \"unique\": true, \"name\": \"y\", \"ns\": \"shop.other\"},"
                               "{\"key\": {\"_id\": {\"$numberInt\": \"1\"}}}]}"));
    assert_false(are_alike(set, "{\"indexes\": [{\"key\": {\"_id\": 1}}]}"));
    assert_false(
        are_alike(set, "{\"indexes\": [{\"key\": {\"_id\": 1}}, {\"key\": {\"a\": 1, \"b\": -1},"
                       " \"sparse\": true}]}"));
    assert_false(
        are_alike(set, "{\"indexes\": [{\"key\": {\"_id\": 1}}, {\"key\": {\"b\": -1, \"a\": 1},"
                       " \"unique\": true, \"sparse\": true}]}"));
}

static void malformed_descriptions_are_unknown(void **context)
{
    (void)context;
    static const char *const texts[] = {"",
                                        "{",
                                        "[1",

                                        "{\"indexes\": 1}",
                                        "{\"indexes\": [1]}",
                                        "{\"indexes\": [{\"key\": 1}]}",
                                        "{\"indexes\": [{\"key\": {\"a\": 1}}, {}]}"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        spill_scan_indexes_t indexes = {0};
        assert_false(spill_scan_indexes_parse(&indexes, texts[i], strlen(texts[i])));
        assert_true(!indexes.known && indexes.count == 0 && indexes.hash == 0);
    }
}

static void collection_may_have_no_indexes(void **context)
{
    (void)context;
    spill_scan_indexes_t indexes = {0};
    assert_true(spill_scan_indexes_parse(&indexes, "{}", 2));
    assert_true(!indexes.known && indexes.count == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_lie_in_arrays),
        cmocka_unit_test(sets_are_alike),
        cmocka_unit_test(collection_may_have_no_indexes),
        cmocka_unit_test(malformed_descriptions_are_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
