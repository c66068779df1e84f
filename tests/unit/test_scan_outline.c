/*
 * Outlines and templates make a scan faster and change nothing: a walk with them and a walk without
 * them give the same answers and the same JSON, byte for byte.
 */
#include "support/document.h"
#include "support/effort.h"
#include "tools/scan/scan.h"
#include "unit/random_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static const int64_t now_ms = INT64_C(1700000000000);

/* ---- twins: two tables of the same documents ------------------------------------------------- */

typedef struct twin {
    spill_walker_t *walker;
    spill_paths_t paths;
} twin_t;

typedef struct twins {
    twin_t fast;
    twin_t plain; /* without outlines */
} twins_t;

static void begin_twins(twins_t *twins)
{
    static const spill_scan_limits_t limits = {
        .elements = 30, .bytes = 1000, .document_bytes = 10000, .paid_per_cent = 50};
    spill_paths_init(&twins->fast.paths, &limits);
    spill_paths_init(&twins->plain.paths, &limits);
    twins->fast.walker = spill_walker_new();
    twins->plain.walker = spill_walker_new();
    spill_walker_ignore_outlines(twins->plain.walker);
}

static bool same_text(const char *left, const char *right)
{
    return left == right || (left && right && strcmp(left, right) == 0);
}

/* Walk a copy at the end of a memory mapping. Return whether the document is valid. */
static bool walk_both(twins_t *twins, const uint8_t *data, size_t size)
{
    spill_walk_t fast, plain;
    uint8_t *copy = malloc(size + !size);
    memcpy(copy, data, size);
    spill_walk(twins->fast.walker, &twins->fast.paths, copy, size, 7, &fast);
    spill_walk(twins->plain.walker, &twins->plain.paths, copy, size, 7, &plain);
    assert_true(same_text(fast.damage, plain.damage));
    assert_true(same_text(fast.flaw, plain.flaw));
    assert_int_equal(fast.damage_at, plain.damage_at);
    assert_int_equal(fast.flaw_at, plain.flaw_at);
    assert_ptr_equal(fast.id.data, plain.id.data);
    assert_int_equal(fast.id.size_bytes, plain.id.size_bytes);
    free(copy);
    return !fast.damage;
}

static void walk_document(twins_t *twins, const bson_t *document)
{
    assert_true(walk_both(twins, bson_get_data(document), document->len));
}

static char *text_of(spill_scan_result_t *result)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    result->scanned_ms = now_ms;
    spill_scan_write_json(result, "twins", to);
    fclose(to);
    return text;
}

/* The JSON of a table, which is released. */
static char *json_of(twin_t *twin)
{
    spill_scan_result_t result = {.limits = twin->paths.limits, .collections_max = 10};
    spill_paths_foresee(&twin->paths, now_ms);
    spill_scan_add_collection(&result, "twins", NULL, &twin->paths, 0);
    spill_scan_find_sprawl(&result);
    spill_scan_derive(&result);
    spill_scan_find(&result);
    char *text = text_of(&result);
    spill_scan_release(&result);
    spill_paths_release(&twin->paths);
    spill_walker_free(twin->walker);
    return text;
}

/* Templates of a table's paths. */
static int count_templates(const spill_paths_t *paths)
{
    int count = 0;
    for (uint32_t i = 0; i < paths->node_count; i++)
        count += spill_paths_at(paths, i)->outline.template != NULL;
    return count;
}

/* Compare the twins' JSON, and check that only one of them had templates. */
static void end_twins(twins_t *twins, int templates_min)
{
    assert_true(count_templates(&twins->fast.paths) >= templates_min);
    assert_int_equal(count_templates(&twins->plain.paths), 0);
    char *fast = json_of(&twins->fast), *plain = json_of(&twins->plain);
    assert_string_equal(fast, plain);
    free(fast);
    free(plain);
}

/* ---- documents of changing shapes ------------------------------------------------------------ */

enum { FIELDS_MAX = 8, DEPTH_MAX = 3 };

/* A name of 1 to 36 bytes: heads of fields are compared by words of 8 bytes. */
static void make_name(uint32_t number, char name[40])
{
    static const char *const special[] = {"_id", "at", "caf\xC3\xA9", "caf\xE9", ""};
    if (number % 12 < 5) {
        strcpy(name, special[number % 12]);
        return;
    }
    size_t size = 1 + number % 36;
    memset(name, 'a' + (int)(number % 7), size);
    name[size] = '\0';
}

static void append_text(random_source_t *random, bson_t *document, const char *name)
{
    static const char *const endings[] = {"", "", "", "\xC3\xA9", "\xE9", "\xF0\x9F\x98\x80"};
    char text[400];
    size_t size = random_below(random, random_below(random, 4) ? 40 : 300);
    memset(text, 'x', size);
    strcpy(text + size, endings[random_below(random, 6)]);
    BSON_APPEND_UTF8(document, name, text);
}

static void append_fields(random_source_t *random, uint32_t schema, int depth, bson_t *document);

/* Documents of one schema, in an array or a map. */
static void append_many(random_source_t *random, uint32_t schema, int depth, bson_t *into,
                        int count)
{
    for (int i = 0; i < count; i++) {
        char key[16];
        bson_t element;
        bson_snprintf(key, sizeof key, "%d", i);
        if (random_below(random, 50) == 0) {
            random_append(random, into, key);
            continue;
        }
        bson_append_document_begin(into, key, -1, &element);
        append_fields(random, schema, depth + 1, &element);
        bson_append_document_end(into, &element);
    }
}

static void append_inner(random_source_t *random, uint32_t schema, int depth, bson_t *document,
                         const char *name)
{
    bson_t inner;
    if (schema % 5 == 0) {
        bson_append_document_begin(document, name, -1, &inner);
        append_fields(random, schema, depth + 1, &inner);
        bson_append_document_end(document, &inner);
    } else if (schema % 5 == 1) {
        bson_append_document_begin(document, name, -1, &inner);
        append_many(random, schema, depth, &inner, (int)random_below(random, 5) ? 3 : 140);
        bson_append_document_end(document, &inner);
    } else {
        bson_append_array_begin(document, name, -1, &inner);
        append_many(random, schema, depth, &inner, (int)random_below(random, 40));
        bson_append_array_end(document, &inner);
    }
}

static void append_field(random_source_t *random, uint32_t schema, int depth, bson_t *document,
                         const char *name)
{
    switch (schema % 11) {
    case 0:
        BSON_APPEND_INT32(document, name, 7);
        return;
    case 1:
        BSON_APPEND_DATE_TIME(document, name,
                              now_ms - (int64_t)random_below(random, 1000000) * 100000);
        return;
    case 2:
        BSON_APPEND_BOOL(document, name, random_below(random, 2));
        return;
    case 3:
        bson_append_utf8(document, name, -1, random_below(random, 9) ? "2023-01-02T03:04:05Z" : "?",
                         -1);
        return;
    case 4:
    case 5:
        append_text(random, document, name);
        return;
    case 6:
        BSON_APPEND_NULL(document, name);
        return;
    case 7:
        random_append(random, document, name);
        return;
    default:
        if (depth < DEPTH_MAX)
            append_inner(random, schema / 11, depth, document, name);
        else
            BSON_APPEND_DOUBLE(document, name, 1.5);
    }
}

/* The fields of a schema, which is a number; now and then others. */
static void append_fields(random_source_t *random, uint32_t schema, int depth, bson_t *document)
{
    random_source_t fields = {.state = schema * UINT64_C(0x9E3779B97F4A7C15) + 1};
    uint32_t count = 1 + random_below(&fields, depth == 0 ? FIELDS_MAX : FIELDS_MAX / 2);
    bool wild = random_below(random, 8) == 0;
    for (uint32_t i = 0; i < count; i++) {
        char name[40];
        uint32_t number = (uint32_t)random_next(&fields), kind = (uint32_t)random_next(&fields);
        if (wild && random_below(random, 3) == 0)
            continue;
        if (wild && random_below(random, 3) == 0)
            kind = number = (uint32_t)random_next(random);
        make_name(number, name);
        append_field(random, kind % 100000, depth, document, name);
        if (wild && random_below(random, 9) == 0)
            append_field(random, kind % 100000, depth, document, name);
    }
}

static void changing_shapes(void **state)
{
    (void)state;
    const int64_t rounds = effort(400, 12, 4);
    random_source_t random = {.state = 20};
    int templates = 0;
    for (int64_t round = 0; round < rounds; round++) {
        twins_t twins;
        begin_twins(&twins);
        for (int i = 0; i < 120; i++) {
            bson_t document = BSON_INITIALIZER;
            uint32_t schema = (uint32_t)round * 4 + (uint32_t)i / 50;
            append_fields(&random, random_below(&random, 20) ? schema : schema + 1000, 0,
                          &document);
            walk_document(&twins, &document);
            bson_destroy(&document);
        }
        templates += count_templates(&twins.fast.paths);
        end_twins(&twins, 0);
    }
    assert_true(templates > 5 * rounds);
}

/* ---- small documents ------------------------------------------------------------------------- */

static const char *const SMALL[] = {
    /* of the shape that a template recognizes, and of rare types */
    "{\"_id\":1,\"f\":[{\"k\":\"like\",\"n\":7,\"t\":\"a text that is long enough for blocks\","
    "\"b\":true},{\"k\":\"comment\",\"n\":8,\"t\":\"\",\"b\":false},{\"k\":\"\xC3\xA9\",\"n\":9,"
    "\"t\":\"b\",\"b\":true}],\"after\":\"this is behind the last comparison\"}",
    "{\"_id\":{\"a\":1},\"o\":{\"a\":[1,{\"c\":[2]}]},\"b\":{\"$binary\":{\"base64\":\"AAEC\","
    "\"subType\":\"00\"}},\"r\":{\"$regularExpression\":{\"pattern\":\"x\",\"options\":\"i\"}},"
    "\"c\":{\"$code\":\"f\"},\"dec\":{\"$numberDecimal\":\"1.5\"},\"max\":{\"$maxKey\":1}}",
    /* elements that are entered, with a field that is sometimes missing */
    "{\"e\":[{\"a\":1,\"in\":{\"x\":1,\"y\":\"z\"}},{\"a\":2,\"opt\":3,\"in\":{\"x\":2,\"y\":\"\"}}"
    ","
    "{\"in\":{\"x\":3,\"y\":\"yy\"},\"l\":[]}],\"seventeen_letters\":\"x\",\"n\":null}"};

/* Elements with times that are read: 22 of {"k": text, "ok": Boolean, "at": date}. */
static bson_t *timed_document(void)
{
    bson_t *document = bson_new();
    bson_t list, element;
    BSON_APPEND_INT32(document, "_id", 1);
    BSON_APPEND_ARRAY_BEGIN(document, "l", &list);
    for (int i = 0; i < 22; i++) {
        BSON_APPEND_DOCUMENT_BEGIN(&list, i % 2 ? "1" : "0", &element);
        BSON_APPEND_UTF8(&element, "k", i % 3 ? "a" : "bc");
        BSON_APPEND_BOOL(&element, "ok", i % 2);
        BSON_APPEND_DATE_TIME(&element, "at", now_ms - (int64_t)(30 - i) * 86400000);
        bson_append_document_end(&list, &element);
    }
    bson_append_array_end(document, &list);
    BSON_APPEND_UTF8(document, "z", "behind the last comparison");
    return document;
}

/* Walk the document with each byte changed to each of four values, and itself in between. */
static void change_bytes(twins_t *twins, const bson_t *document)
{
    static const uint8_t values[] = {0, 1, 0x7F, 0xFF};
    size_t size = document->len;
    uint8_t *copy = bson_malloc(size);
    int valid = 0, damaged = 0;
    memcpy(copy, bson_get_data(document), size);
    for (size_t at = 0; at < size; at++) {
        uint8_t kept = copy[at];
        for (size_t i = 0; i < sizeof values; i++) {
            copy[at] = values[i];
            bool good = walk_both(twins, copy, size);
            valid += good;
            damaged += !good;
        }
        copy[at] = kept;
        walk_document(twins, document);
    }
    assert_true(valid > 50 && damaged > 50);
    bson_free(copy);
}

/* Cut the document at each byte, with its length and with a length that fits. */
static void truncate_document(twins_t *twins, const bson_t *document)
{
    uint8_t *copy = bson_malloc(document->len);
    for (uint32_t size = 0; size < document->len; size++) {
        uint32_t length = BSON_UINT32_TO_LE(size);
        memcpy(copy, bson_get_data(document), document->len);
        assert_false(walk_both(twins, copy, size));
        if (size < 5)
            continue;
        memcpy(copy, &length, sizeof length);
        copy[size - 1] = 0;
        walk_both(twins, copy, size);
    }
    bson_free(copy);
}

static void change_and_truncate(const bson_t *document, int templates_min)
{
    twins_t twins;
    begin_twins(&twins);
    for (int i = 0; i < 6; i++)
        walk_document(&twins, document);
    assert_true(count_templates(&twins.fast.paths) >= templates_min);
    change_bytes(&twins, document);
    truncate_document(&twins, document);
    end_twins(&twins, templates_min);
}

static void damaged_documents(void **state)
{
    (void)state;
    static const int templates[] = {1, 0, 1};
    for (size_t i = 0; i < sizeof SMALL / sizeof SMALL[0]; i++) {
        bson_t *document = document_from_json(SMALL[i]);
        change_and_truncate(document, templates[i]);
        bson_destroy(document);
    }
    bson_t *timed = timed_document();
    change_and_truncate(timed, 1);
    bson_destroy(timed);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Names that never come again fill an outline, which then pauses; later it learns again. */
static void outlines_are_bounded(void **state)
{
    (void)state;
    twins_t twins;
    begin_twins(&twins);
    for (int i = 0; i < 3000; i++) {
        bson_t document = BSON_INITIALIZER;
        char name[16];
        bson_snprintf(name, sizeof name, "n%d", i < 2500 ? i : 0);
        BSON_APPEND_INT32(&document, name, i);
        BSON_APPEND_INT32(&document, "same", i);
        walk_document(&twins, &document);
        assert_true(twins.fast.paths.root->outline.count <= SPILL_OUTLINE_FIELDS);
        bson_destroy(&document);
    }
    assert_in_range(twins.fast.paths.root->outline.count, 2, SPILL_OUTLINE_FIELDS);
    end_twins(&twins, 0);
}

/* Append {"first": {}, "first+1": {}, ...} as a field. */
static void append_numbered(bson_t *document, const char *name, int first, int count)
{
    bson_t outer, inner;
    BSON_APPEND_DOCUMENT_BEGIN(document, name, &outer);
    for (int i = first; i < first + count; i++) {
        char key[16];
        bson_snprintf(key, sizeof key, "%d", i);
        bson_append_document_begin(&outer, key, -1, &inner);
        bson_append_document_end(&outer, &inner);
    }
    bson_append_document_end(document, &outer);
}

static void walk_numbered(twins_t *twins, const char *name, int first, int count)
{
    bson_t document = BSON_INITIALIZER;
    append_numbered(&document, name, first, count);
    walk_document(twins, &document);
    bson_destroy(&document);
}

/* A path without room in the table gets room when a map absorbs others. */
static void room_in_a_full_table(void **state)
{
    (void)state;
    twins_t twins;
    char name[16];
    begin_twins(&twins);
    for (int i = 0; i < SPILL_PATHS_MAX / SPILL_PATH_CHILDREN_MAX + 1; i++) {
        bson_snprintf(name, sizeof name, "d%d", i);
        walk_numbered(&twins, name, 0, SPILL_PATH_CHILDREN_MAX);
    }
    assert_int_equal(twins.fast.paths.live, SPILL_PATHS_MAX);
    for (int i = 0; i < 3; i++)
        walk_numbered(&twins, "late", 0, 3);
    walk_numbered(&twins, "d0", 2000, 1); /* becomes a map */
    assert_true(twins.fast.paths.live < SPILL_PATHS_MAX);
    walk_numbered(&twins, "late", 0, 3);
    end_twins(&twins, 0);
}

/* More elements of different sizes, and more arrays, than are kept until a document is valid. */
static void large_documents(void **state)
{
    (void)state;
    twins_t twins;
    bson_t document = BSON_INITIALIZER, list, element;
    static const char text[1100] = "";
    BSON_APPEND_ARRAY_BEGIN(&document, "list", &list);
    for (int i = 0; i < 34000; i++) { /* two sizes that share a slot, and arrays */
        BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &element);
        BSON_APPEND_BINARY(&element, "b", BSON_SUBTYPE_BINARY, (const uint8_t *)text,
                           i % 2 ? 1024 : 0);
        bson_append_document_end(&list, &element);
        BSON_APPEND_ARRAY_BEGIN(&list, "0", &element);
        bson_append_array_end(&list, &element);
    }
    bson_append_array_end(&document, &list);
    BSON_APPEND_INT32(&document, "last", 1);
    begin_twins(&twins);
    walk_document(&twins, &document);
    walk_document(&twins, &document);
    uint8_t *bytes = (uint8_t *)(uintptr_t)bson_get_data(&document);
    bytes[document.len - 11] ^= 0x40; /* the type of the last field */
    assert_false(walk_both(&twins, bytes, document.len));
    end_twins(&twins, 0);
    bson_destroy(&document);
}

/* Append an array of documents with a time. Every `strange`th has another type there. */
static void append_timed(bson_t *document, const char *name, int64_t first, int count, int strange)
{
    bson_t list, element;
    BSON_APPEND_ARRAY_BEGIN(document, name, &list);
    for (int i = 0; i < count; i++) {
        int64_t at = now_ms - (first + count - i) * 60000;
        BSON_APPEND_DOCUMENT_BEGIN(&list, "0", &element);
        BSON_APPEND_UTF8(&element, "kind", i % 3 ? "like" : "comment");
        if (i % strange == strange - 1)
            BSON_APPEND_INT64(&element, "at", at);
        else
            BSON_APPEND_DATE_TIME(&element, "at", at);
        BSON_APPEND_INT32(&element, "n", i);
        bson_append_document_end(&list, &element);
    }
    bson_append_array_end(document, &list);
}

/*
 * The walk keeps times of elements: of several arrays, in several series of one array, of shorter
 * arrays that are not used, and of more elements and more series than there is room for.
 */
static void times_kept_on_the_way(void **state)
{
    (void)state;
    static const struct {
        int longer, shorter, strange;
        uint32_t series, times;
    } CASES[] = {{100, 60, 1000, 2, 150},
                 {100, 60, 33, 4, 100},
                 {900, 40, 30, SPILL_TIMES_SERIES, 400},
                 {40000, 100, 50000, 1, SPILL_TIMES_KEPT}};
    twins_t twins;
    begin_twins(&twins);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        for (int repeat = 0; repeat < 3; repeat++) {
            bson_t document = BSON_INITIALIZER;
            append_timed(&document, "a", 5 * repeat, CASES[i].longer, CASES[i].strange);
            append_timed(&document, "b", 7 * repeat, CASES[i].shorter, CASES[i].strange);
            walk_document(&twins, &document);
            const spill_times_kept_t *kept = twins.fast.paths.kept;
            assert_true(repeat < 2 || kept->series_count >= CASES[i].series);
            assert_true(repeat < 2 || kept->count >= CASES[i].times);
            assert_int_equal(twins.plain.paths.kept->series_count, 0);
            bson_destroy(&document);
        }
    end_twins(&twins, 2);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char *scan_file(const char *path, bool ignore_outlines)
{
    spill_scan_options_t options;
    spill_scan_result_t result;
    spill_error_t error;
    spill_scan_options_init(&options);
    options.source = path;
    options.format = "bson";
    options.threads = 1;
    options.ignore_outlines = ignore_outlines;
    assert_int_equal(spill_scan(&options, &result, &error), SPILL_OK);
    char *text = text_of(&result);
    spill_scan_release(&result);
    return text;
}

/* Scan a file of these bytes in both ways. Return whether there were problems. */
static bool scan_both(const uint8_t *data, size_t size)
{
    char path[40];
    int file = memfd_create("twins", 0);
    assert_true(write(file, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    char *fast = scan_file(path, false), *plain = scan_file(path, true);
    assert_string_equal(fast, plain);
    bool problems = strstr(fast, "skipped") != NULL;
    close(file);
    free(fast);
    free(plain);
    return problems;
}

static void damaged_files(void **state)
{
    (void)state;
    bson_t *documents[] = {document_from_json(SMALL[0]), timed_document(),
                           document_from_json(SMALL[2])};
    random_source_t random = {.state = 7};
    uint8_t data[60000];
    size_t size = 0;
    int problems = 0;
    for (int i = 0; size + documents[i % 3]->len <= sizeof data; i++) {
        memcpy(data + size, bson_get_data(documents[i % 3]), documents[i % 3]->len);
        size += documents[i % 3]->len;
    }
    assert_false(scan_both(data, size));
    for (int64_t i = effort(1000, 40, 10); i > 0; i--) {
        uint32_t at = random_below(&random, (uint32_t)size);
        uint32_t count = random_below(&random, 4) ? 1 : random_below(&random, 2000);
        for (uint32_t j = 0; j < count && at + j < size; j++)
            data[at + j] = (uint8_t)random_next(&random);
        problems += scan_both(data, size - random_below(&random, 200));
    }
    assert_true(problems > 5);
    for (int i = 0; i < 3; i++)
        bson_destroy(documents[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changing_shapes),      cmocka_unit_test(damaged_documents),
        cmocka_unit_test(outlines_are_bounded), cmocka_unit_test(room_in_a_full_table),
        cmocka_unit_test(large_documents),      cmocka_unit_test(times_kept_on_the_way),
        cmocka_unit_test(damaged_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
