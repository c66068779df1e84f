/* Which views read a collection with a definition, by what a server lists. */
#include "gateway/translate/views.h"

#include "support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const char *const collections[] = {"c", "d", NULL};

#define VIEW(name, on, pipeline)                                                                   \
    "{\"name\": \"" name "\", \"type\": \"view\", \"options\": {\"viewOn\": \"" on                 \
    "\", \"pipeline\": [" pipeline "]}}"

static spill_served_view_t *find_views(const char *list)
{
    char *text = bson_strdup_printf("{\"v\": [%s]}", list);
    bson_t *all = document_from_json(text), listing;
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    assert_true(bson_iter_init_find(&iter, all, "v"));
    bson_iter_array(&iter, &size, &data);
    assert_true(bson_init_static(&listing, data, size));
    spill_served_view_t *views = spill_views_find(&listing, collections);
    bson_destroy(all);
    bson_free(text);
    return views;
}

static void expect_view(const spill_served_view_t *views, const char *name, const char *collection)
{
    const spill_served_view_t *view = spill_views_named(views, name);
    if (collection == NULL) {
        assert_null(view);
        return;
    }
    assert_non_null(view);
    assert_string_equal(view->collection, collection);
}

static void views_of_served_collections(void **state)
{
    (void)state;
    spill_served_view_t *views =
        find_views(VIEW("outer", "middle", "") "," VIEW("middle", "inner", "") "," VIEW(
            "inner", "c",
            "{\"$match\": {\"a\": 1}}") "," VIEW("joins", "o",
                                                 "{\"$lookup\": {\"from\": "
                                                 "\"d\"}}") "," VIEW("other", "o",
                                                                     "{\"$match\": {\"kind\": "
                                                                     "\"c\"}}") "," VIEW("pages",
                                                                                         "c.pages",
                                                                                         "") ","
                                                                                             "{\"na"
                                                                                             "me\":"
                                                                                             " \"c"
                                                                                             "\", "
                                                                                             "\"typ"
                                                                                             "e\": "
                                                                                             "\"col"
                                                                                             "lecti"
                                                                                             "on\","
                                                                                             " \"op"
                                                                                             "tions"
                                                                                             "\": "
                                                                                             "{}},"
                                                                                             "{\"na"
                                                                                             "me\":"
                                                                                             " \"od"
                                                                                             "d\", "
                                                                                             "\"typ"
                                                                                             "e\": "
                                                                                             "\"vie"
                                                                                             "w\"},"
                                                                                             " {"
                                                                                             "\"typ"
                                                                                             "e\": "
                                                                                             "\"vie"
                                                                                             "w\", "
                                                                                             "\"opt"
                                                                                             "ions"
                                                                                             "\": "
                                                                                             "{\"vi"
                                                                                             "ewOn"
                                                                                             "\": "
                                                                                             "\"c\""
                                                                                             "}}, "
                                                                                             "{\"na"
                                                                                             "me\":"
                                                                                             " \"ti"
                                                                                             "mes\""
                                                                                             ", "
                                                                                             "\"typ"
                                                                                             "e\": "
                                                                                             "\"tim"
                                                                                             "eseri"
                                                                                             "es\","
                                                                                             " \"op"
                                                                                             "tions"
                                                                                             "\": "
                                                                                             "{\"vi"
                                                                                             "ewOn"
                                                                                             "\": "
                                                                                             "\"c\""
                                                                                             "}}, "
                                                                                             "7");
    expect_view(views, "inner", "c");
    expect_view(views, "middle", "c");
    expect_view(views, "outer", "c");
    expect_view(views, "joins", "d");
    expect_view(views, "other", NULL);
    expect_view(views, "pages", NULL);
    expect_view(views, "odd", NULL);
    expect_view(views, "times", NULL);
    expect_view(views, "c", NULL);
    spill_views_free(views);
}

static void views_are_compared(void **state)
{
    (void)state;
    spill_served_view_t *none = find_views(""), *one = find_views(VIEW("v", "c", ""));
    spill_served_view_t *same = find_views(VIEW("v", "c", "{\"$limit\": 1}"));
    spill_served_view_t *other = find_views(VIEW("v", "d", ""));
    spill_served_view_t *two = find_views(VIEW("v", "c", "") "," VIEW("w", "c", ""));
    assert_true(spill_views_equal(none, none));
    assert_true(spill_views_equal(one, same));
    assert_false(spill_views_equal(none, one));
    assert_false(spill_views_equal(one, none));
    assert_false(spill_views_equal(one, other));
    assert_false(spill_views_equal(one, two));
    spill_served_view_t *all[] = {none, one, same, other, two};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        spill_views_free(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(views_of_served_collections),
                                       cmocka_unit_test(views_are_compared)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
