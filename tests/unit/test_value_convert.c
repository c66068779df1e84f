/* Values from ObjectIds and libbson's values, and back. */
#include <spillway/spillway.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static spill_value_t first_of(const bson_t *document)
{
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, document) && bson_iter_next(&iter));
    return spill_value_from_iter(&iter);
}

static void object_ids_name_owners(void **state)
{
    (void)state;
    bson_oid_t id, back;
    spill_store_t *store;
    spill_array_t *array;
    spill_count_t count;
    spill_definition_t definition;
    bson_oid_init_from_string(&id, "65f0c0ffee0123456789abcd");
    spill_value_t owner = spill_value_from_oid(&id);
    assert_int_equal(owner.type, BSON_TYPE_OID);
    assert_ptr_equal(owner.data, id.bytes);
    assert_true(spill_value_to_oid(&owner, &back));
    assert_true(bson_oid_equal(&id, &back));

    spill_definition_init(&definition, "feed");
    assert_int_equal(spill_store_open("memory:", NULL, &store, NULL), SPILL_OK);
    assert_int_equal(spill_store_define(store, &definition, NULL), SPILL_OK);
    assert_int_equal(spill_array_open(store, "feed", &array, NULL), SPILL_OK);
    assert_int_equal(spill_array_append(array, &owner, &owner, 1, NULL, NULL, NULL), SPILL_OK);
    assert_int_equal(spill_array_count(array, &owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 1);
    spill_array_close(array);
    assert_int_equal(spill_store_close(store, NULL), SPILL_OK);
}

static void every_type_goes_to_libbson_and_back(void **state)
{
    (void)state;
    static const char text[] =
        "{\"a\":1.5,\"b\":\"x\\u0000y\",\"c\":{\"d\":[1,2]},\"e\":[true],"
        "\"f\":{\"$binary\":{\"base64\":\"AQID\",\"subType\":\"05\"}},"
        "\"g\":{\"$oid\":\"65f0c0ffee0123456789abcd\"},\"h\":true,"
        "\"i\":{\"$date\":{\"$numberLong\":\"17\"}},\"j\":null,"
        "\"k\":{\"$regularExpression\":{\"pattern\":\"a\",\"options\":\"i\"}},"
        "\"l\":{\"$code\":\"f\"},\"m\":{\"$numberInt\":\"7\"},"
        "\"n\":{\"$timestamp\":{\"t\":1,\"i\":2}},\"o\":{\"$numberLong\":\"8\"},"
        "\"p\":{\"$numberDecimal\":\"1.25\"},\"q\":{\"$minKey\":1},\"r\":{\"$maxKey\":1},"
        "\"s\":{\"$undefined\":true}}";
    bson_t *all = bson_new_from_json((const uint8_t *)text, -1, NULL);
    bson_iter_t iter;
    int types = 0;
    assert_non_null(all);
    for (assert_true(bson_iter_init(&iter, all)); bson_iter_next(&iter); types++) {
        bson_value_t copy;
        bson_t storage = BSON_INITIALIZER;
        spill_value_t value = spill_value_from_iter(&iter);
        assert_true(spill_value_to_bson(&value, &copy));
        assert_int_equal(copy.value_type, bson_iter_type(&iter));
        spill_value_t back = spill_value_from_bson(&storage, &copy);
        assert_true(spill_value_equal(&value, &back));
        bson_value_destroy(&copy);
        bson_destroy(&storage);
    }
    assert_int_equal(types, 18);
    bson_destroy(all);
}

static void whole_numbers(void **state)
{
    (void)state;
    static const struct {
        double real;
        bool whole;
    } doubles[] = {{3, true},       {-4, true},     {0.5, false},         {0x1p63, false},
                   {-0x1p63, true}, {1e300, false}, {(double)NAN, false}, {-0.0, true}};
    int64_t number;
    bson_t storage = BSON_INITIALIZER;
    BSON_APPEND_INT32(&storage, "a", -7);
    spill_value_t value = first_of(&storage);
    assert_true(spill_value_to_int64(&value, &number));
    assert_int_equal(number, -7);
    value = spill_value_from_int64(&storage, INT64_MIN);
    assert_true(spill_value_to_int64(&value, &number));
    assert_true(number == INT64_MIN);
    for (size_t i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        bson_reinit(&storage);
        BSON_APPEND_DOUBLE(&storage, "a", doubles[i].real);
        value = first_of(&storage);
        number = 99;
        assert_int_equal(spill_value_to_int64(&value, &number), doubles[i].whole);
        assert_true(number == (doubles[i].whole ? (int64_t)doubles[i].real : 99));
    }
    value = spill_value_from_utf8(&storage, "5");
    assert_false(spill_value_to_int64(&value, &number));
    bson_destroy(&storage);
}

static void views(void **state)
{
    (void)state;
    size_t length;
    bson_t document, storage = BSON_INITIALIZER;
    bson_t *made = BCON_NEW("by", "ada", "tags", "[", "x", "]");
    spill_value_t value = spill_value_from_document(made);
    assert_true(spill_value_to_document(&value, &document));
    assert_true(bson_equal(made, &document));
    bson_iter_t iter;
    assert_true(bson_iter_init_find(&iter, made, "tags"));
    value = spill_value_from_iter(&iter);
    assert_true(spill_value_to_document(&value, &document));
    assert_int_equal(bson_count_keys(&document), 1);
    assert_null(spill_value_to_utf8(&value, &length));
    assert_int_equal(length, 0);
    value = spill_value_from_utf8(&storage, "ada");
    assert_string_equal(spill_value_to_utf8(&value, &length), "ada");
    assert_int_equal(length, 3);
    assert_string_equal(spill_value_to_utf8(&value, NULL), "ada");
    assert_false(spill_value_to_document(&value, &document));
    bson_destroy(made);
    bson_destroy(&storage);
}

/* Malformed values, and NULL. */
static void malformed(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {200, 0, 0, 0, 'x', 0, 0, 0, 0, 0, 0, 0};
    static const uint8_t types[] = {BSON_TYPE_UTF8,  BSON_TYPE_DOCUMENT, BSON_TYPE_INT64,
                                    BSON_TYPE_INT32, BSON_TYPE_DOUBLE,   99};
    bson_oid_t id;
    bson_t document;
    bson_value_t copy;
    int64_t number;
    for (size_t i = 0; i < sizeof types; i++) {
        spill_value_t value = {bytes, sizeof bytes, types[i]};
        assert_null(spill_value_to_utf8(&value, NULL));
        assert_false(spill_value_to_document(&value, &document));
        assert_false(spill_value_to_int64(&value, &number));
        assert_false(spill_value_to_oid(&value, &id));
        assert_false(spill_value_to_bson(&value, &copy));
    }
    spill_value_t short_id = {bytes, 11, BSON_TYPE_OID}, nothing = {0};
    assert_false(spill_value_to_oid(&short_id, &id));
    assert_false(spill_value_to_bson(&nothing, &copy));
    assert_int_equal(spill_value_from_oid(NULL).size_bytes, 0);
    assert_int_equal(spill_value_from_bson(NULL, &(bson_value_t){0}).size_bytes, 0);
    assert_int_equal(spill_value_from_bson(&document, NULL).size_bytes, 0);
    assert_false(spill_value_to_document(NULL, &document));
    assert_false(spill_value_to_document(&short_id, NULL));
    assert_false(spill_value_to_oid(NULL, &id));
    assert_false(spill_value_to_int64(NULL, &number));
    assert_null(spill_value_to_utf8(NULL, NULL));
    assert_false(spill_value_to_bson(NULL, &copy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(object_ids_name_owners),
        cmocka_unit_test(every_type_goes_to_libbson_and_back),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(views),
        cmocka_unit_test(malformed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
