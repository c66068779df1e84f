/* The walk over a document's bytes, and the table of paths that it fills. */
#include "support/document.h"
#include "tools/scan/paths.h"

#include "util/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const spill_scan_limits_t LIMITS = {
    .elements = 100, .bytes = 1000, .document_bytes = 10000, .paid_per_cent = 80};

static spill_walker_t *walker;

static int set_up(void **state)
{
    (void)state;
    walker = spill_walker_new();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    spill_walker_free(walker);
    return 0;
}

static spill_walk_t walk_document(spill_paths_t *paths, const bson_t *document)
{
    spill_walk_t result;
    spill_walk(walker, paths, bson_get_data(document), document->len, 7, &result);
    return result;
}

static void walk_json(spill_paths_t *paths, const char *text)
{
    bson_t *document = document_from_json(text);
    spill_walk_t result = walk_document(paths, document);
    assert_null(result.damage);
    assert_null(result.flaw);
    bson_destroy(document);
}

/* Return the path's entry; NULL: none. */
static spill_path_t *find_path(const spill_paths_t *paths, const char *text, spill_path_kind_t kind)
{
    for (uint32_t i = 0; i < paths->node_count; i++) {
        char name[256];
        spill_path_t *path = spill_paths_at(paths, i);
        if (path == paths->overflow || path->index != i)
            continue;
        spill_path_text(path, name, sizeof name);
        if (path->kind == kind && strcmp(name, text) == 0)
            return path;
    }
    return NULL;
}

/* ---- results --------------------------------------------------------------------------------- */

static void arrays_of_documents(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    walk_json(&paths, "{\"_id\":1,\"tags\":[\"a\",\"bc\",\"de\"],\"in\":{\"deep\":[[1,2],[3]]},"
                      "\"items\":[{\"x\":[1]},{\"x\":[]},{}],\"a.b\":[1]}");
    walk_json(&paths, "{\"_id\":2,\"tags\":[],\"items\":[{\"x\":[1,2,3,4]}],\"tags\":{\"no\":1}}");
    spill_path_t *tags = find_path(&paths, "tags", SPILL_PATH_ARRAY);
    assert_non_null(tags);
    assert_int_equal(tags->documents, 2);
    assert_int_equal(tags->lengths.count, 2);
    assert_int_equal(tags->lengths.sum, 3);
    assert_int_equal(tags->elements.count, 3); /* int32 length, text, NUL */
    assert_int_equal(tags->elements.sum, 6 + 7 + 7);
    assert_int_equal(tags->bytes, 5 + 3 * 3 + 20 + 5);
    spill_path_t *x = find_path(&paths, "items[].x", SPILL_PATH_ARRAY);
    assert_int_equal(x->lengths.count, 3);
    assert_int_equal(x->documents, 2);
    assert_int_equal(x->lengths.max, 4);
    assert_int_equal(x->owners.count, 2);
    assert_int_equal(x->owners.items[0].length, 4);
    assert_int_equal(spill_value_int32(&x->owners.items[0].value), 2);
    assert_int_equal(x->owners.items[0].place, 7);
    assert_int_equal(find_path(&paths, "in.deep", SPILL_PATH_ARRAY)->lengths.max, 2);
    assert_int_equal(find_path(&paths, "in.deep[]", SPILL_PATH_ARRAY)->lengths.count, 2);
    assert_int_equal(find_path(&paths, "items[]", SPILL_PATH_DOCUMENT)->lengths.count, 4);
    assert_non_null(find_path(&paths, "\"a.b\"", SPILL_PATH_ARRAY));
    assert_non_null(find_path(&paths, "tags", SPILL_PATH_DOCUMENT));
    assert_int_equal(paths.sizes.count, 2);
    spill_paths_release(&paths);
}

static void over_thresholds(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    for (int length = 99; length <= 102; length++) {
        bson_t document = BSON_INITIALIZER, list;
        BSON_APPEND_UTF8(&document, "_id", length % 2 ? "odd" : "even");
        bson_append_array_begin(&document, "list", -1, &list);
        for (int i = 0; i < length; i++) {
            char key[32];
            snprintf(key, sizeof key, "%d", i);
            BSON_APPEND_NULL(&list, key);
        }
        bson_append_array_end(&document, &list);
        if (length == 102) { /* 413 bytes in the list, more than 1000 in other fields */
            char *text = bson_malloc0(2000);
            memset(text, 'x', 1999);
            BSON_APPEND_UTF8(&document, "text", text);
            bson_free(text);
        }
        if (length == 101) {
            char text[700] = "";
            memset(text, 'x', 699);
            bson_append_array_begin(&document, "other", -1, &list);
            BSON_APPEND_UTF8(&list, "0", text);
            BSON_APPEND_UTF8(&list, "1", text);
            bson_append_array_end(&document, &list);
        }
        walk_document(&paths, &document);
        bson_destroy(&document);
    }
    spill_path_t *list = find_path(&paths, "list", SPILL_PATH_ARRAY);
    assert_int_equal(list->over_elements, 2);
    assert_int_equal(list->over_bytes, 0);
    assert_int_equal(list->paid, 0);
    spill_path_t *other = find_path(&paths, "other", SPILL_PATH_ARRAY);
    assert_int_equal(other->over_bytes, 1);
    assert_int_equal(other->paid, 0); /* 1425 of 1882 bytes are 76 per cent */
    assert_int_equal(paths.over_document, 0);
    assert_int_equal(list->owners.items[0].length, 102);
    assert_string_equal(spill_value_text(&list->owners.items[0].value, &(uint32_t){0}), "even");
    spill_paths_release(&paths);
}

/* Keys with dots, 300 of them in two documents: they are one path, in either order of documents. */
static void maps_are_one_path(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    for (int half = 0; half < 2; half++) {
        bson_t document = BSON_INITIALIZER, versions, version, tags;
        BSON_APPEND_INT32(&document, "_id", half);
        BSON_APPEND_DOCUMENT_BEGIN(&document, "versions", &versions);
        for (int i = 0; i < 150; i++) {
            char key[32];
            snprintf(key, sizeof key, "%d.%d.0", half, i);
            BSON_APPEND_DOCUMENT_BEGIN(&versions, key, &version);
            BSON_APPEND_ARRAY_BEGIN(&version, "tags", &tags);
            BSON_APPEND_INT32(&tags, "0", i);
            bson_append_array_end(&version, &tags);
            BSON_APPEND_DATE_TIME(&version, "at", i);
            bson_append_document_end(&versions, &version);
        }
        bson_append_document_end(&document, &versions);
        walk_document(&paths, &document);
        bson_destroy(&document);
    }
    spill_path_t *versions = find_path(&paths, "versions", SPILL_PATH_DOCUMENT);
    assert_true(versions->map);
    assert_int_equal(versions->lengths.count, 2);
    assert_int_equal(versions->lengths.max, 150);
    assert_int_equal(versions->over_elements, 2);
    assert_int_equal(versions->times.type, BSON_TYPE_DATE_TIME);
    assert_int_equal(find_path(&paths, "versions.*", SPILL_PATH_DOCUMENT)->lengths.count, 300);
    assert_int_equal(find_path(&paths, "versions.*", SPILL_PATH_DOCUMENT)->documents, 2);
    spill_path_t *tags = find_path(&paths, "versions.*.tags", SPILL_PATH_ARRAY);
    assert_int_equal(tags->lengths.count, 300);
    assert_int_equal(tags->documents, 2);
    assert_int_equal(paths.live, 5); /* and the entry for names that do not fit */
    spill_paths_release(&paths);
}

/* A map with values that became maps before the map did: pointers to them are followed twice. */
static void maps_in_maps(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_walker_t *own = spill_walker_new();
    bson_t document = BSON_INITIALIZER, outer, middle, inner;
    char key[16];
    BSON_APPEND_DOCUMENT_BEGIN(&document, "m", &outer);
    for (int i = 0; i < 200; i++) {
        bson_snprintf(key, sizeof key, "k%d", i);
        bson_append_document_begin(&outer, key, -1, &middle);
        for (int j = 0; j < (i == 0 ? 200 : 3); j++) {
            bson_snprintf(key, sizeof key, "j%d", j);
            bson_append_document_begin(&middle, key, -1, &inner);
            BSON_APPEND_INT32(&inner, "n", j);
            bson_append_document_end(&middle, &inner);
        }
        bson_append_document_end(&outer, &middle);
    }
    bson_append_document_end(&document, &outer);
    spill_paths_init(&paths, &LIMITS);
    for (int i = 0; i < 3; i++) {
        spill_walk_t result;
        spill_walk(own, &paths, bson_get_data(&document), document.len, i, &result);
        assert_null(result.damage);
    }
    spill_path_t *map = spill_path_child(&paths, paths.root, NULL, SPILL_PATH_DOCUMENT, "m", 1);
    spill_path_t *values = spill_path_child(&paths, map, NULL, SPILL_PATH_DOCUMENT, "x", 1);
    spill_path_t *innermost = spill_path_child(&paths, values, NULL, SPILL_PATH_DOCUMENT, "x", 1);
    assert_true(map->map && values->map);
    assert_int_equal(values->lengths.count, 3 * 200);
    assert_int_equal(innermost->lengths.count, 3 * (200 + 199 * 3));
    assert_int_equal(innermost->lengths.sum, 3 * (200 + 199 * 3));
    spill_paths_release(&paths);
    spill_walker_free(own);
    bson_destroy(&document);
}

static void the_table_is_bounded(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    uint64_t arrays = 0;
    for (int i = 0; i < 40; i++) { /* 40 * 100 names; none of them becomes a map */
        bson_t document = BSON_INITIALIZER, inner, list;
        char name[32];
        snprintf(name, sizeof name, "d%d", i);
        BSON_APPEND_DOCUMENT_BEGIN(&document, name, &inner);
        for (int j = 0; j < 100; j++) {
            snprintf(name, sizeof name, "a%d", j);
            BSON_APPEND_ARRAY_BEGIN(&inner, name, &list);
            bson_append_array_end(&inner, &list);
            arrays++;
        }
        bson_append_document_end(&document, &inner);
        walk_document(&paths, &document);
        bson_destroy(&document);
    }
    assert_int_equal(paths.live, SPILL_PATHS_MAX);
    uint64_t told = 0;
    for (uint32_t i = 0; i < paths.node_count; i++)
        told += spill_paths_at(&paths, i)->lengths.count;
    assert_int_equal(told, arrays + 40 + 40);
    assert_true(paths.overflow->lengths.count > 0);
    spill_paths_release(&paths);
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void make_document(bson_t *document, int i)
{
    bson_t map, list;
    bson_init(document);
    BSON_APPEND_INT32(document, "_id", i);
    BSON_APPEND_ARRAY_BEGIN(document, i % 3 ? "a" : "b", &list);
    for (int j = 0; j < i % 37; j++)
        BSON_APPEND_INT64(&list, "0", j);
    bson_append_array_end(document, &list);
    BSON_APPEND_DOCUMENT_BEGIN(document, "map", &map);
    for (int j = 0; j < i % 7; j++) {
        char key[32];
        snprintf(key, sizeof key, "k%d.%d", i, j);
        BSON_APPEND_ARRAY_BEGIN(&map, key, &list);
        BSON_APPEND_UTF8(&list, "0", key);
        bson_append_array_end(&map, &list);
    }
    bson_append_document_end(document, &map);
}

static void check_same(const spill_paths_t *left, const spill_paths_t *right)
{
    static const struct {
        const char *name;
        spill_path_kind_t kind;
    } names[] = {{"a", SPILL_PATH_ARRAY},
                 {"b", SPILL_PATH_ARRAY},
                 {"map", SPILL_PATH_DOCUMENT},
                 {"map.*", SPILL_PATH_ARRAY}};
    assert_int_equal(left->live, right->live);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        spill_path_t *one = find_path(left, names[i].name, names[i].kind);
        spill_path_t *two = find_path(right, names[i].name, names[i].kind);
        assert_true(one && two);
        assert_int_equal(one->lengths.count, two->lengths.count);
        assert_int_equal(one->lengths.sum, two->lengths.sum);
        assert_int_equal(one->elements.sum, two->elements.sum);
        assert_int_equal(one->bytes, two->bytes);
        if (i + 1 == sizeof names / sizeof names[0])
            continue; /* entries of a map are counted by name until the map is recognized */
        assert_int_equal(one->documents, two->documents);
        assert_int_equal(one->bytes_max, two->bytes_max);
        assert_int_equal(one->owners.count, two->owners.count);
        for (size_t j = 0; j < one->owners.count; j++) {
            assert_int_equal(one->owners.items[j].length, two->owners.items[j].length);
            assert_true(
                spill_value_equal(&one->owners.items[j].value, &two->owners.items[j].value));
        }
    }
}

/* Tables of two halves merge to the table of all documents, whichever half has the maps. */
static void halves_merge_to_the_whole(void **state)
{
    (void)state;
    for (int split = 0; split <= 600; split += 150) {
        spill_paths_t whole, parts[2];
        spill_paths_init(&whole, &LIMITS);
        spill_paths_init(&parts[0], &LIMITS);
        spill_paths_init(&parts[1], &LIMITS);
        for (int i = 0; i < 600; i++) {
            bson_t document;
            make_document(&document, i);
            walk_document(&whole, &document);
            walk_document(&parts[i >= split], &document);
            bson_destroy(&document);
        }
        spill_paths_merge(&parts[0], &parts[1]);
        check_same(&parts[0], &whole);
        spill_paths_release(&whole);
        spill_paths_release(&parts[0]);
        spill_paths_release(&parts[1]);
    }
}

/* ---- large documents ------------------------------------------------------------------------- */

/*
 * A document with more inner arrays than the walk keeps until it knows that the document is sound.
 */
static bson_t *large_document(void)
{
    bson_t *document = bson_new();
    bson_t list, inner;
    BSON_APPEND_ARRAY_BEGIN(document, "list", &list);
    for (int i = 0; i < 100000; i++) {
        BSON_APPEND_ARRAY_BEGIN(&list, "0", &inner);
        if (i % 2)
            BSON_APPEND_INT32(&inner, "0", i);
        bson_append_array_end(&list, &inner);
    }
    bson_append_array_end(document, &list);
    BSON_APPEND_INT32(document, "last", 1);
    return document;
}

static void large_documents(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    bson_t *document = large_document();
    spill_walk_t result = walk_document(&paths, document);
    assert_null(result.damage);
    spill_path_t *list = find_path(&paths, "list", SPILL_PATH_ARRAY);
    assert_int_equal(list->lengths.sum, 100000);
    assert_int_equal(list->elements.count, 100000);
    assert_int_equal(find_path(&paths, "list[]", SPILL_PATH_ARRAY)->lengths.count, 100000);
    assert_int_equal(find_path(&paths, "list[]", SPILL_PATH_ARRAY)->documents, 1);
    uint8_t *bytes = (uint8_t *)(uintptr_t)bson_get_data(document);
    bytes[document->len - 11] ^= 0x40; /* the type of the last field */
    result = walk_document(&paths, document);
    assert_non_null(result.damage);
    assert_int_equal(result.damage_at, document->len - 11);
    assert_int_equal(list->lengths.count, 1);
    assert_int_equal(paths.sizes.count, 1);
    bson_destroy(document);
    spill_paths_release(&paths);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const char EVERYTHING[] =
    "{\"_id\":{\"$oid\":\"5f5f5f5f5f5f5f5f5f5f5f5f\"},\"d\":1.5,\"s\":\"text\",\"o\":{\"a\":[1,"
    "{\"$numberLong\":\"2\"}]},\"b\":{\"$binary\":{\"base64\":\"AAEC\",\"subType\":\"00\"}},"
    "\"t\":true,\"w\":{\"$date\":0},\"n\":null,\"r\":{\"$regularExpression\":{\"pattern\":\"x\","
    "\"options\":\"i\"}},\"c\":{\"$code\":\"f\"},\"ts\":{\"$timestamp\":{\"t\":1,\"i\":2}},"
    "\"dec\":{\"$numberDecimal\":\"1.5\"},\"min\":{\"$minKey\":1},\"max\":{\"$maxKey\":1}}";

/*
 * Change each byte, and cut at each length: no read goes beyond the end (asan checks that), and no
 * result of the damaged document is kept.
 */
static void damage_leaves_no_trace(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    bson_t *document = document_from_json(EVERYTHING);
    size_t size = document->len;
    uint8_t *copy = bson_malloc(size);
    memcpy(copy, bson_get_data(document), size);
    assert_true(spill_walk_check(copy, size));
    uint64_t sound = 0;
    int damaged = 0;
    for (size_t at = 0; at < size; at++) {
        for (int bit = 0; bit < 8; bit++) {
            spill_walk_t result;
            copy[at] ^= (uint8_t)(1 << bit);
            spill_walk(walker, &paths, copy, size, 0, &result);
            bson_t view;
            if (result.damage)
                damaged++;
            else
                assert_true(bson_init_static(&view, copy, size));
            assert_true(spill_walk_check(copy, size) == !result.damage);
            sound += !result.damage;
            assert_int_equal(paths.sizes.count, sound);
            copy[at] ^= (uint8_t)(1 << bit);
        }
    }
    assert_true(damaged > 100 && sound > 100);
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *part = bson_malloc(cut + 1);
        memcpy(part, copy, cut);
        spill_walk_t result;
        spill_walk(walker, &paths, part, cut, 0, &result);
        assert_non_null(result.damage);
        bson_free(part);
    }
    assert_int_equal(paths.sizes.count, sound);
    bson_free(copy);
    bson_destroy(document);
    spill_paths_release(&paths);
}

static void nest(bson_t *document, int depth)
{
    bson_t inner = BSON_INITIALIZER;
    if (depth > 0)
        nest(&inner, depth - 1);
    BSON_APPEND_DOCUMENT(document, "d", &inner);
    bson_destroy(&inner);
}

static void nesting_is_bounded(void **state)
{
    (void)state;
    for (int depth = 97; depth < 120; depth++) {
        spill_paths_t paths;
        spill_paths_init(&paths, &LIMITS);
        bson_t document = BSON_INITIALIZER;
        nest(&document, depth);
        spill_walk_t result = walk_document(&paths, &document);
        assert_null(result.damage);
        bool deep = depth + 2 > SPILL_NESTING_MAX;
        assert_true(deep == (result.flaw != NULL));
        assert_int_equal(paths.sizes.count, 1);
        bson_destroy(&document);
        spill_paths_release(&paths);
    }
}

static void times_in_texts_are_found(void **state)
{
    (void)state;
    spill_paths_t paths;
    spill_paths_init(&paths, &LIMITS);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "s", "a\xC3\xA9");
    BSON_APPEND_UTF8(&document, "latin", "caf\xE9");
    spill_walk_t result = walk_document(&paths, &document);
    assert_null(result.damage);
    assert_non_null(result.flaw);
    assert_int_equal(result.flaw_at, 4 + 3 + 4 + 4 + 7 + 4);
    assert_int_equal(paths.sizes.count, 1);
    bson_destroy(&document);
    spill_paths_release(&paths);
}

static void utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool valid;
    } cases[] = {{"", true},
                 {"plain ascii, longer than a word", true},
                 {"\xC2\x80 \xDF\xBF", true},
                 {"\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF", true},
                 {"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF", true},
                 {"12345678\xC3\xA9", true},
                 {"\x80", false},
                 {"\xC0\x80", false},
                 {"\xC1\xBF", false},
                 {"\xE0\x9F\xBF", false},
                 {"\xED\xA0\x80", false},
                 {"\xF0\x8F\xBF\xBF", false},
                 {"\xF4\x90\x80\x80", false},
                 {"\xF5\x80\x80\x80", false},
                 {"\xFF", false},
                 {"12345678\xC3", false},
                 {"\xE2\x82", false},
                 {"\xF0\x9F\x98", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_true(spill_utf8_valid((const uint8_t *)cases[i].text, strlen(cases[i].text)) ==
                    cases[i].valid);
}

/* ---- times ----------------------------------------------------------------------------------- */

/*
 * Compare "field: time ..." of the array of that name, by its path's rule; "-" is an element
 * without a time.
 */
static void times_of(spill_paths_t *paths, const char *json, const char *name, char *text,
                     size_t size)
{
    bson_iter_t iter;
    bson_t *document = document_from_json(json);
    assert_true(bson_iter_init_find(&iter, document, name));
    spill_value_t array = spill_value_from_iter(&iter);
    const spill_path_t *path =
        spill_path_child(paths, paths->root, NULL, SPILL_PATH_ARRAY, name, strlen(name));
    spill_times_field(&path->times, text, size);
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, size - at, ":");
    spill_times_t times = spill_times_of(&path->times, array.data, NULL, NULL);
    bool known;
    int64_t time_ms;
    while (spill_times_next(&times, &known, &time_ms))
        at += (size_t)snprintf(text + at, size - at, known ? " %ld" : " -", (long)time_ms);
    bson_destroy(document);
}

static void elements_have_times(void **state)
{
    (void)state;
    static const char *const json = "{\"e\":[{\"o\":{\"$oid\":\"000000010000000000000000\"},"
                                    "\"m\":{\"at\":{\"$date\":5}}},{\"m\":3},"
                                    "{\"m\":{\"at\":{\"$date\":7}}}],"
                                    "\"ids\":[{\"$oid\":\"000000020000000000000000\"},1],"
                                    "\"ts\":[{\"t\":{\"$timestamp\":{\"t\":3,\"i\":9}}}],"
                                    "\"none\":[1]}";
    static const char *const other =
        "{\"e\":[{\"other\":{\"$date\":1},\"m\":{\"at\":{\"$date\":2}}}]}";
    static const char *const expected[][2] = {
        {"e", "m.at: 5 - 7"}, {"ids", ": 2000 -"}, {"ts", "t: 3000"}, {"none", ": -"}};
    spill_paths_t paths;
    char text[100];
    spill_paths_init(&paths, &LIMITS);
    walk_json(&paths, json);
    walk_json(&paths, other);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        times_of(&paths, json, expected[i][0], text, sizeof text);
        assert_string_equal(text, expected[i][1]);
    }
    times_of(&paths, other, "e", text, sizeof text);
    assert_string_equal(text, "m.at: 2"); /* the field is decided */
    spill_paths_release(&paths);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_of_documents),
        cmocka_unit_test(over_thresholds),
        cmocka_unit_test(maps_are_one_path),
        cmocka_unit_test(the_table_is_bounded),
        cmocka_unit_test(maps_in_maps),
        cmocka_unit_test(halves_merge_to_the_whole),
        cmocka_unit_test(large_documents),
        cmocka_unit_test(damage_leaves_no_trace),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(times_in_texts_are_found),
        cmocka_unit_test(utf8),
        cmocka_unit_test(elements_have_times),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
