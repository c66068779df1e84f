/* Records: documents to and from structs by tables of fields, and their JSON. */
#include "bson/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef enum colour { NO_COLOUR, RED, GREEN } colour_t;

static const char *colour_name(int colour)
{
    static const char *const names[] = {NULL, "red", "green"};
    return colour >= 0 && colour <= GREEN ? names[colour] : NULL;
}

typedef struct item {
    int64_t number;
    char *text;
} item_t;

typedef struct thing {
    char chars[8];
    const char *text;
    char *copy;
    int32_t narrow;
    int64_t wide;
    int64_t number;
    bool flag;
    double real;
    int64_t date;
    colour_t colour;
    spill_value_t value;
    spill_value_t array;
    bson_oid_t oid;
    spill_bytes_t bytes;
    item_t inner;
    item_t *items;
    size_t item_count;
} thing_t;

static const spill_field_t item_fields[] = {
    SPILL_FIELD(INT64, item_t, number, "number", .least = -10, .most = 10),
    SPILL_FIELD(COPY, item_t, text, "text", .flags = SPILL_FIELD_SPARSE)};
static const spill_record_t item_record = SPILL_RECORD("item", item_t, item_fields);

#define THING(type, member, ...) SPILL_FIELD(type, thing_t, member, #member, __VA_ARGS__)
static const spill_field_t thing_fields[] = {
    THING(CHARS, chars, .flags = 0),
    THING(TEXT, text, .flags = 0),
    THING(COPY, copy, .flags = 0),
    THING(INT32, narrow, .flags = 0),
    THING(INT64, wide, .flags = 0),
    THING(NUMBER, number, .most = 100),
    THING(BOOL, flag, .flags = 0),
    THING(DOUBLE, real, .digits = 6),
    THING(DATE, date, .flags = 0),
    THING(ENUM, colour, .name_of = colour_name, .values = GREEN + 1),
    THING(VALUE, value, .flags = 0),
    THING(VALUE, array, .bson_type = BSON_TYPE_ARRAY),
    THING(OID, oid, .flags = 0),
    THING(BYTES, bytes, .flags = 0),
    THING(RECORD, inner, .of = &item_record),
    THING(LIST, items, .of = &item_record, .count_offset = offsetof(thing_t, item_count)),
};
static const spill_record_t thing_record = {.name = "thing",
                                            .fields = thing_fields,
                                            .count = sizeof thing_fields / sizeof thing_fields[0],
                                            .size_bytes = sizeof(thing_t),
                                            .closed = true};

static void release(thing_t *thing)
{
    bson_free(thing->copy);
    bson_free(thing->inner.text);
    for (size_t i = 0; i < thing->item_count; i++)
        bson_free(thing->items[i].text);
    bson_free(thing->items);
    *thing = (thing_t){0};
}

/* A thing that borrows from `storage`, which has a value of each BSON type. */
static thing_t example(bson_t *storage)
{
    static item_t items[] = {{1, NULL}, {-10, (char *)"last"}};
    static const uint8_t bytes[] = {1, 2, 3};
    bson_iter_t iter;
    thing_t thing = {.chars = "1234567",
                     .text = "a text",
                     .copy = (char *)"a copy",
                     .narrow = -5,
                     .wide = INT64_MIN,
                     .number = 99,
                     .flag = true,
                     .real = 2.5,
                     .date = 1700000000123,
                     .colour = GREEN,
                     .bytes = {bytes, sizeof bytes},
                     .inner = {7, NULL},
                     .items = items,
                     .item_count = 2};
    bson_oid_init_from_string(&thing.oid, "5f1d7a3e9d1b2c0001a2b3c4");
    assert_true(bson_iter_init_find(&iter, storage, "double"));
    thing.value = spill_value_from_iter(&iter);
    assert_true(bson_iter_init_find(&iter, storage, "array"));
    thing.array = spill_value_from_iter(&iter);
    return thing;
}

/* A value of each BSON type, and of some ranges. */
static void add_values(bson_t *document)
{
    bson_t child, scope = BSON_INITIALIZER;
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_oid_init_from_string(&oid, "5f1d7a3e9d1b2c0001a2b3c5");
    bson_decimal128_from_string("1.5", &decimal);
    bson_init(document);
    BSON_APPEND_DOUBLE(document, "double", 1.5);
    BSON_APPEND_DOUBLE(document, "nan", NAN);
    BSON_APPEND_DOUBLE(document, "infinity", INFINITY);
    BSON_APPEND_DOUBLE(document, "huge", 1e300);
    BSON_APPEND_UTF8(document, "utf8", "red");
    BSON_APPEND_UTF8(document, "long", "a text of more than seven bytes");
    bson_append_utf8(document, "nul", -1, "a\0b", 3);
    BSON_APPEND_DOCUMENT_BEGIN(document, "document", &child);
    BSON_APPEND_INT64(&child, "number", 11);
    bson_append_document_end(document, &child);
    BSON_APPEND_ARRAY_BEGIN(document, "array", &child);
    BSON_APPEND_INT32(&child, "0", 1);
    bson_append_array_end(document, &child);
    BSON_APPEND_BINARY(document, "binary", BSON_SUBTYPE_BINARY, (const uint8_t *)"x", 1);
    BSON_APPEND_UNDEFINED(document, "undefined");
    BSON_APPEND_OID(document, "oid", &oid);
    BSON_APPEND_BOOL(document, "bool", false);
    BSON_APPEND_DATE_TIME(document, "date", -1);
    BSON_APPEND_NULL(document, "null");
    BSON_APPEND_REGEX(document, "regex", "a", "i");
    BSON_APPEND_DBPOINTER(document, "pointer", "c", &oid);
    BSON_APPEND_CODE(document, "code", "f");
    BSON_APPEND_SYMBOL(document, "symbol", "red");
    BSON_APPEND_CODE_WITH_SCOPE(document, "scope", "f", &scope);
    BSON_APPEND_INT32(document, "int32", 42);
    BSON_APPEND_TIMESTAMP(document, "timestamp", 1, 2);
    BSON_APPEND_INT64(document, "int64", 43);
    BSON_APPEND_INT64(document, "largest", INT64_MAX);
    BSON_APPEND_DECIMAL128(document, "decimal", &decimal);
    BSON_APPEND_MINKEY(document, "min");
    BSON_APPEND_MAXKEY(document, "max");
    bson_destroy(&scope);
}

/* ---- round trips ----------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    (void)state;
    bson_t values, document = BSON_INITIALIZER, again = BSON_INITIALIZER;
    add_values(&values);
    thing_t thing = example(&values), read = {0};
    spill_error_t error;
    spill_record_write(&thing_record, &thing, &document);
    if (spill_record_read(&thing_record, &document, &read, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    assert_string_equal(read.chars, "1234567");
    assert_string_equal(read.text, "a text");
    assert_string_equal(read.copy, "a copy");
    assert_int_equal(read.narrow, -5);
    assert_int_equal(read.wide, INT64_MIN);
    assert_int_equal(read.colour, GREEN);
    assert_int_equal(read.inner.number, 7);
    assert_null(read.inner.text);
    assert_int_equal(read.item_count, 2);
    assert_string_equal(read.items[1].text, "last");
    spill_record_write(&thing_record, &read, &again);
    assert_true(bson_equal(&document, &again));
    release(&read);
    bson_destroy(&again);
    bson_destroy(&document);
    bson_destroy(&values);
}

/* ---- every type for every field -------------------------------------------------------------- */

/* Which of the values fit a field of that type. */
static bool fits(const spill_field_t *field, const char *value)
{
    static const char *const fitting[] = {[SPILL_FIELD_CHARS] = " utf8 ",
                                          [SPILL_FIELD_TEXT] = " utf8 long ",
                                          [SPILL_FIELD_COPY] = " utf8 long ",
                                          [SPILL_FIELD_INT32] = " int32 ",
                                          [SPILL_FIELD_INT64] = " int32 int64 largest ",
                                          [SPILL_FIELD_NUMBER] = " int32 int64 double ",
                                          [SPILL_FIELD_BOOL] = " bool ",
                                          [SPILL_FIELD_DOUBLE] =
                                              " double huge int32 int64 largest ",
                                          [SPILL_FIELD_DATE] = " date null ",
                                          [SPILL_FIELD_ENUM] = " utf8 ",
                                          [SPILL_FIELD_OID] = " oid ",
                                          [SPILL_FIELD_BYTES] = " binary ",
                                          [SPILL_FIELD_FIELDS] = ""};
    char word[32];
    if (field->type == SPILL_FIELD_VALUE)
        return field->bson_type == BSON_TYPE_EOD || strcmp(value, "array") == 0;
    snprintf(word, sizeof word, " %s ", value);
    return fitting[field->type] && strstr(fitting[field->type], word) != NULL;
}

static void replace(const bson_t *document, const char *name, const bson_iter_t *value,
                    bson_t *changed)
{
    bson_init(changed);
    bson_copy_to_excluding_noinit(document, changed, name, NULL);
    if (value)
        bson_append_iter(changed, name, -1, value);
}

static void assert_problem(const bson_t *document, spill_code_t code, const char *message)
{
    thing_t read = {0};
    spill_error_t error;
    assert_int_equal(spill_record_read(&thing_record, document, &read, &error), code);
    assert_int_equal(error.code, code);
    if (strstr(error.message, message) == NULL)
        fail_msg("expected '%s' in '%s'", message, error.message);
    release(&read);
}

static void test_every_type_for_every_field(void **state)
{
    (void)state;
    bson_t values, document = BSON_INITIALIZER, changed;
    bson_iter_t iter;
    add_values(&values);
    thing_t thing = example(&values);
    spill_record_write(&thing_record, &thing, &document);
    int fitting = 0, refused = 0;
    for (size_t i = 0; i < thing_record.count; i++) {
        const spill_field_t *field = &thing_fields[i];
        char name[64];
        snprintf(name, sizeof name, "thing: field '%s", field->name);
        replace(&document, field->name, NULL, &changed);
        assert_problem(&changed, SPILL_CORRUPT, "' is missing");
        assert_problem(&changed, SPILL_CORRUPT, name);
        bson_destroy(&changed);
        for (bson_iter_init(&iter, &values); bson_iter_next(&iter);) {
            replace(&document, field->name, &iter, &changed);
            if (fits(field, bson_iter_key(&iter))) {
                thing_t read = {0};
                spill_error_t error;
                assert_int_equal(spill_record_read(&thing_record, &changed, &read, &error),
                                 SPILL_OK);
                release(&read);
                fitting++;
            } else {
                assert_problem(&changed, SPILL_CORRUPT, name);
                refused++;
            }
            bson_destroy(&changed);
        }
    }
    assert_int_equal(fitting, 51);
    assert_int_equal(refused, 16 * 27 - 51);
    bson_destroy(&document);
    bson_destroy(&values);
}

static void test_messages(void **state)
{
    (void)state;
    static const struct {
        const char *name, *json, *message;
        spill_code_t code;
    } cases[] = {
        {"chars", "\"12345678\"", "thing: field 'chars' is too long", SPILL_CORRUPT},
        {"number", "101", "thing: field 'number' is out of range", SPILL_CORRUPT},
        {"number", "-1", "thing: field 'number' is out of range", SPILL_CORRUPT},
        {"colour", "\"blue\"", "thing: field 'colour' is not one of: red, green", SPILL_CORRUPT},
        {"inner", "{}", "thing: field 'inner.number' is missing", SPILL_CORRUPT},
        {"inner", "{\"number\": 11}", "thing: field 'inner.number' is out of", SPILL_CORRUPT},
        {"items", "[{\"number\": 1}, 2]", "field 'items[1]' is not a document", SPILL_CORRUPT},
        {"items", "[{\"number\": true}]", "field 'items[0].number' is not an", SPILL_CORRUPT},
        {"size", "1", "thing: field 'size' is not known to this version", SPILL_FORMAT},
    };
    bson_t values, document = BSON_INITIALIZER, changed;
    add_values(&values);
    thing_t thing = example(&values);
    spill_record_write(&thing_record, &thing, &document);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value;
        assert_int_equal(
            spill_value_from_json(cases[i].json, strlen(cases[i].json), &storage, &value, NULL),
            SPILL_OK);
        replace(&document, cases[i].name, NULL, &changed);
        assert_true(spill_value_append(&value, &changed, cases[i].name));
        assert_problem(&changed, cases[i].code, cases[i].message);
        bson_destroy(&changed);
        bson_destroy(&storage);
    }
    bson_destroy(&document);
    bson_destroy(&values);
}

/* ---- flags ----------------------------------------------------------------------------------- */

typedef struct flags {
    int64_t optional, sparse, lenient, required, omitted, nulled, negative;
    bool on;
} flags_t;

static bool is_on(const void *record)
{
    return ((const flags_t *)record)->on;
}

static const spill_field_t flag_fields[] = {
    SPILL_FIELD(INT64, flags_t, optional, "optional", .flags = SPILL_FIELD_OPTIONAL),
    SPILL_FIELD(INT64, flags_t, sparse, "sparse", .flags = SPILL_FIELD_SPARSE),
    SPILL_FIELD(INT64, flags_t, lenient, "lenient", .flags = SPILL_FIELD_LENIENT),
    SPILL_FIELD(INT64, flags_t, required, "required", .flags = SPILL_FIELD_REQUIRED_WHEN,
                .when = is_on),
    SPILL_FIELD(INT64, flags_t, omitted, "omitted", .flags = SPILL_FIELD_OMIT_UNLESS,
                .when = is_on),
    SPILL_FIELD(INT64, flags_t, nulled, "nulled", .flags = SPILL_FIELD_NULL_UNLESS, .when = is_on),
    SPILL_FIELD(INT64, flags_t, negative, "negative", .flags = SPILL_FIELD_NULL_NEGATIVE),
    SPILL_FIELD(BOOL, flags_t, on, "on")};
static const spill_record_t flag_record = SPILL_RECORD("flags", flags_t, flag_fields);

static char *printed(const spill_record_t *type, const void *record, bool canonical,
                     int64_t left_out)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    assert_int_equal(spill_record_print(type, record, canonical, to), left_out);
    fclose(to);
    return text;
}

static void assert_printed(const spill_record_t *type, const void *record, const char *expected)
{
    char *text = printed(type, record, false, 0);
    assert_string_equal(text, expected);
    free(text);
}

static void assert_written(const flags_t *flags, const char *expected)
{
    bson_t document = BSON_INITIALIZER;
    spill_record_write(&flag_record, flags, &document);
    char *text = bson_as_relaxed_extended_json(&document, NULL), *to = text;
    for (const char *from = text; *from; from++)
        if (*from != ' ')
            *to++ = *from;
    *to = '\0';
    assert_string_equal(text, expected);
    bson_free(text);
    bson_destroy(&document);
}

static void test_flags(void **state)
{
    (void)state;
    flags_t flags = {.negative = -1};
    const char *off =
        "{\"optional\":0,\"lenient\":0,\"nulled\":null,\"negative\":null,\"on\":false}";
    const char *on = "{\"optional\":0,\"sparse\":1,\"lenient\":0,\"required\":0,\"omitted\":0,"
                     "\"nulled\":0,\"negative\":0,\"on\":true}";
    assert_printed(&flag_record, &flags, off);
    assert_written(&flags, off);
    flags = (flags_t){.sparse = 1, .on = true};
    assert_printed(&flag_record, &flags, on);
    assert_written(&flags, on);
}

static void read_flags(const char *json, spill_code_t code, flags_t *flags)
{
    bson_t document;
    spill_error_t error;
    *flags = (flags_t){.lenient = 9};
    assert_true(bson_init_from_json(&document, json, -1, NULL));
    assert_int_equal(spill_record_read(&flag_record, &document, flags, &error), code);
    bson_destroy(&document);
}

static void test_flags_when_reading(void **state)
{
    (void)state;
    flags_t flags;
    read_flags("{\"on\": false, \"nulled\": null, \"negative\": 1}", SPILL_OK, &flags);
    assert_int_equal(flags.lenient, 9);
    read_flags("{\"on\": false, \"nulled\": 5, \"negative\": 1, \"omitted\": 6, \"required\": 7}",
               SPILL_OK, &flags);
    assert_int_equal(flags.nulled, 5);
    assert_int_equal(flags.omitted, 6);
    assert_int_equal(flags.required, 7);
    read_flags("{\"on\": true, \"nulled\": null, \"negative\": 1}", SPILL_CORRUPT, &flags);
    read_flags("{\"on\": false, \"negative\": 1}", SPILL_CORRUPT, &flags);
    read_flags("{\"on\": false, \"nulled\": 1, \"negative\": 1, \"lenient\": \"x\"}", SPILL_OK,
               &flags);
    assert_int_equal(flags.lenient, 9);
    read_flags("{\"on\": false, \"nulled\": 1, \"negative\": 1, \"sparse\": \"x\"}", SPILL_CORRUPT,
               &flags);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void test_json(void **state)
{
    (void)state;
    bson_t values;
    add_values(&values);
    thing_t thing = example(&values);
    thing.real = 1.0 / 3;
    assert_printed(&thing_record, &thing,
                   "{\"chars\":\"1234567\",\"text\":\"a text\",\"copy\":\"a copy\",\"narrow\":-5,"
                   "\"wide\":-9223372036854775808,\"number\":99,\"flag\":true,\"real\":0.333333,"
                   "\"date\":{ \"$date\" : \"2023-11-14T22:13:20.123Z\" },\"colour\":\"green\","
                   "\"value\":1.5,\"array\":[ 1 ],\"oid\":{\"$oid\":\"5f1d7a3e9d1b2c0001a2b3c4\"},"
                   "\"bytes\":null,\"inner\":{\"number\":7},"
                   "\"items\":[{\"number\":1},{\"number\":-10,\"text\":\"last\"}]}");
    bson_destroy(&values);
}

typedef struct shown {
    const char *text, *json;
    const spill_value_t *value;
    const item_t *item;
    double real;
    const char **texts;
    size_t text_count;
    char chars[2];
} shown_t;

static const spill_field_t shown_fields[] = {
    SPILL_FIELD(TEXT, shown_t, text, "text"),
    SPILL_FIELD(JSON, shown_t, json, "json"),
    SPILL_FIELD(POINTER, shown_t, value, "value"),
    SPILL_FIELD(FIELDS, shown_t, item, "item", .of = &item_record),
    SPILL_FIELD(DOUBLE, shown_t, real, "real"),
    SPILL_FIELD(TEXTS, shown_t, texts, "texts", .count_offset = offsetof(shown_t, text_count)),
    SPILL_FIELD(CHARS, shown_t, chars, "chars")};
static const spill_record_t shown_record = SPILL_RECORD("shown", shown_t, shown_fields);

static const spill_field_t safe_fields[] = {
    SPILL_FIELD(TEXT, shown_t, text, "text", .flags = SPILL_FIELD_REDACTED | SPILL_FIELD_REPAIRED)};
static const spill_record_t safe_record = SPILL_RECORD("safe", shown_t, safe_fields);

static void test_json_of_what_is_only_written(void **state)
{
    (void)state;
    const char *texts[] = {"a", "b\x1b"};
    item_t item = {3, NULL};
    shown_t shown = {.texts = texts, .text_count = 2, .item = &item, .real = INFINITY};
    memcpy(shown.chars, "xy", 2);
    assert_printed(&shown_record, &shown,
                   "{\"text\":null,\"json\":null,\"value\":null,\"number\":3,"
                   "\"real\":{\"$numberDouble\":\"Infinity\"},\"texts\":[\"a\",\"b\\u001b\"],"
                   "\"chars\":\"xy\"}");
    shown = (shown_t){.json = "[1]", .real = 0.1};
    assert_printed(&shown_record, &shown,
                   "{\"text\":null,\"json\":[1],\"value\":null,\"real\":0.10000000000000001,"
                   "\"texts\":[],\"chars\":\"\"}");
    const spill_value_t empty = {.data = NULL, .size_bytes = 0, .type = BSON_TYPE_MINKEY};
    shown = (shown_t){.value = &empty};
    assert_printed(&shown_record, &shown,
                   "{\"text\":null,\"json\":null,\"value\":{ \"$minKey\" : 1 },\"real\":0,"
                   "\"texts\":[],\"chars\":\"\"}");
}

/* Values that JSON cannot express are null, and counted; or repaired. */
static void test_json_of_damaged_text(void **state)
{
    (void)state;
    shown_t shown = {.text = "a\xff"};
    char *text = printed(&shown_record, &shown, false, 1);
    assert_non_null(strstr(text, "\"text\":null"));
    free(text);
    assert_printed(&safe_record, &shown, "{\"text\":\"a?\"}");
    shown.text = "mongodb://user:secret@host/db";
    text = printed(&safe_record, &shown, false, 0);
    assert_null(strstr(text, "secret"));
    assert_non_null(strstr(text, "host/db"));
    free(text);
}

/* ---- fields with functions of their own ------------------------------------------------------ */

static void print_twice(const void *record, const void *root, FILE *to)
{
    assert_ptr_equal(record, root);
    fprintf(to, "%d", 2 * (int)((const item_t *)record)->number);
}

static spill_code_t read_half(void *record, const void *root, const bson_iter_t *iter,
                              spill_error_t *error)
{
    (void)error;
    assert_ptr_equal(record, root);
    ((item_t *)record)->number = bson_iter_int32(iter) / 2;
    return SPILL_OK;
}

static const spill_field_t custom_fields[] = {
    {.type = SPILL_FIELD_CUSTOM, .name = "twice", .print = print_twice, .read = read_half},
    {.type = SPILL_FIELD_CUSTOM, .name = "printed", .print = print_twice},
    SPILL_FIELD(COPY, item_t, text, "text", .flags = SPILL_FIELD_UNREAD)};
static const spill_record_t custom_record = SPILL_RECORD("custom", item_t, custom_fields);

static void test_custom_fields(void **state)
{
    (void)state;
    item_t item = {4, (char *)"a"};
    bson_t document;
    assert_printed(&custom_record, &item, "{\"twice\":8,\"printed\":8,\"text\":\"a\"}");
    assert_true(bson_init_from_json(&document, "{\"twice\": 6, \"text\": \"b\"}", -1, NULL));
    assert_int_equal(spill_record_read(&custom_record, &document, &item, NULL), SPILL_OK);
    assert_int_equal(item.number, 3);
    assert_string_equal(item.text, "a");
    bson_destroy(&document);
    bson_init(&document);
    assert_int_equal(spill_record_read(&custom_record, &document, &item, NULL), SPILL_CORRUPT);
    bson_destroy(&document);
}

static void test_canonical_json(void **state)
{
    (void)state;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_int64(&storage, 5);
    shown_t shown = {.value = &value};
    char *text = printed(&shown_record, &shown, true, 0);
    assert_non_null(strstr(text, "\"value\":{ \"$numberLong\" : \"5\" }"));
    free(text);
    bson_destroy(&storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_type_for_every_field),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_flags_when_reading),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_json_of_what_is_only_written),
        cmocka_unit_test(test_json_of_damaged_text),
        cmocka_unit_test(test_custom_fields),
        cmocka_unit_test(test_canonical_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
