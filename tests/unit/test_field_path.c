/*
 * Paths of fields: finding, excluding, merging and pruning; updates around an array;
 * the rules for paths in a definition.
 */
#include "bson/field_path.h"
#include "bson/update.h"
#include "definition/schema.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static bson_t *parse(const char *json)
{
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, NULL);
    assert_non_null(document);
    return document;
}

static void assert_document(const bson_t *document, const char *expected)
{
    bson_t *other = parse(expected);
    char *json = bson_as_relaxed_extended_json(document, NULL);
    char *wanted = bson_as_relaxed_extended_json(other, NULL);
    assert_string_equal(json, wanted);
    bson_free(json);
    bson_free(wanted);
    bson_destroy(other);
}

static void fields_are_merged_into_their_documents(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"{\"_id\":1}", "{\"a.b\":2,\"a.c.d\":3,\"e\":4}",
         "{\"_id\":1,\"a\":{\"b\":2,\"c\":{\"d\":3}},\"e\":4}"},
        {"{\"a\":{\"x\":1},\"z\":2}", "{\"a.b\":3,\"y\":4}",
         "{\"a\":{\"x\":1,\"b\":3},\"z\":2,\"y\":4}"},
        {"{\"a\":{\"b\":1,\"x\":2}}", "{\"a.b\":3}", "{\"a\":{\"x\":2,\"b\":3}}"},
        {"{\"ab\":{\"b\":1}}", "{\"a.b\":3}", "{\"ab\":{\"b\":1},\"a\":{\"b\":3}}"},
        {"{\"b\":1,\"a\":2}", "{\"b\":3}", "{\"a\":2,\"b\":3}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *document = parse(cases[i][0]), *leaves = parse(cases[i][1]);
        bson_t merged = BSON_INITIALIZER;
        spill_document_merge(document, leaves, &merged);
        assert_document(&merged, cases[i][2]);
        bson_destroy(&merged);
        bson_destroy(document);
        bson_destroy(leaves);
    }
}

static void fields_are_excluded_and_documents_stay_until_pruned(void **state)
{
    (void)state;
    const char *const paths[] = {"a.b", "a.c.d", "e"};
    bson_t *document = parse("{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"e\":3,\"ab\":4,\"f\":{}}");
    bson_t left = BSON_INITIALIZER, pruned = BSON_INITIALIZER, again = BSON_INITIALIZER;
    spill_document_exclude(document, paths, 3, &left);
    assert_document(&left, "{\"a\":{\"c\":{}},\"ab\":4,\"f\":{}}");
    spill_document_prune(&left, paths, 3, &pruned);
    assert_document(&pruned, "{\"ab\":4,\"f\":{}}");
    spill_document_add_parents(&pruned, "a.c.d", &again);
    assert_document(&again, "{\"ab\":4,\"f\":{},\"a\":{\"c\":{}}}");
    bson_destroy(&again);
    bson_destroy(&pruned);
    bson_destroy(&left);
    bson_destroy(document);
}

static void values_in_the_way_are_found(void **state)
{
    (void)state;
    bson_t *document = parse("{\"a\":{\"b\":[1],\"c\":{\"d\":5}},\"n\":null}");
    bson_iter_t found;
    size_t length;
    bson_type_t type;
    assert_true(spill_path_blocked(document, "a.b.c", &length, &type));
    assert_int_equal(length, 3);
    assert_int_equal(type, BSON_TYPE_ARRAY);
    assert_true(spill_path_blocked(document, "n.x", &length, &type));
    assert_int_equal(length, 1);
    assert_false(spill_path_blocked(document, "a.c.d", &length, &type));
    assert_false(spill_path_blocked(document, "x.y", &length, &type));
    assert_true(spill_path_find(document, "a.c.d", &found));
    assert_int_equal(bson_iter_int32(&found), 5);
    assert_false(spill_path_find(document, "a.d", &found));
    assert_true(spill_paths_overlap("a", "a.b"));
    assert_true(spill_paths_overlap("a.b", "a.b"));
    assert_false(spill_paths_overlap("a.b", "a.bc"));
    assert_false(spill_paths_overlap("a_b", "a.b"));
    assert_string_equal(spill_path_leaf("a.b.c"), "c");
    bson_destroy(document);
}

static void updates_leave_the_documents_around_an_array(void **state)
{
    (void)state;
    static const char *const reserved[] = {"stats.events", NULL};
    static const struct {
        const char *update;
        bool allowed;
    } cases[] = {
        {"{\"$set\":{\"stats.other\":1}}", true},
        {"{\"$set\":{\"stat\":1}}", true},
        {"{\"$set\":{\"stats\":{\"other\":1}}}", false},
        {"{\"$unset\":{\"stats\":1}}", false},
        {"{\"$set\":{\"stats.events\":1}}", false},
        {"{\"$inc\":{\"stats.events.0\":1}}", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bson_t *update = parse(cases[i].update);
        spill_code_t expected = cases[i].allowed ? SPILL_OK : SPILL_INVALID;
        assert_int_equal(spill_update_check(update, reserved, NULL), expected);
        assert_int_equal(spill_update_check_names(update, reserved, NULL), expected);
        bson_destroy(update);
    }
    bson_t *rename = parse("{\"$rename\":{\"a\":\"stats\"}}");
    assert_int_equal(spill_update_check_names(rename, reserved, NULL), SPILL_INVALID);
    bson_destroy(rename);
}

static void rules_for_paths_of_head_fields(void **state)
{
    (void)state;
    static const struct {
        const char *path, *message;
    } wrong[] = {
        {".", "has an empty part"},
        {"a..b", "has an empty part"},
        {"a.", "has an empty part"},
        {"a.$b", "contains '$'"},
        {"a.0.b", "has a number as a part"},
        {"spill.a", "is in a field that Spillway uses itself"},
        {"_id.a", "is in a field that Spillway uses itself"},
        {"a.b.c.d.e.f.g.h.i", "has more than 8 parts"},
        {"activityCount.a", "one field would be in the other"},
    };
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "feed", "feed", NULL), SPILL_OK);
    spill_error_t error;
    char name[SPILL_NAME_SIZE];
    strcpy(definition.array, "stats.events");
    strcpy(definition.count_field, "stats.count");
    strcpy(definition.overflow_field, "a.b.c.d.e.f.g.h");
    strcpy(definition.pages_field, "pages.of-2024");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_OK);
    strcpy(definition.page_array, "stats.events");
    assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "only the fields of a head may be paths"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        spill_definition_preset(&definition, "feed", "feed", NULL);
        strcpy(definition.array, wrong[i].path);
        assert_int_equal(spill_definition_check(&definition, &error), SPILL_INVALID);
        assert_non_null(strstr(error.message, wrong[i].message));
    }
    spill_bookkeeping_name("a.b", name);
    assert_string_equal(name, "a$b");
    spill_bookkeeping_name("a%2Eb", name);
    assert_string_equal(name, "a%2Eb");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_merged_into_their_documents),
        cmocka_unit_test(fields_are_excluded_and_documents_stay_until_pruned),
        cmocka_unit_test(values_in_the_way_are_found),
        cmocka_unit_test(rules_for_paths_of_head_fields),
        cmocka_unit_test(updates_leave_the_documents_around_an_array),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
