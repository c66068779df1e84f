/* The walk over owners whose _id is of any type that a key can be made of. */
#include "suite.h"

#include "bson/key.h"
#include "bson/value.h"

/* Two values of each BSON type, those that no owner can have among them. */
static void make_values(bson_t *values)
{
    static const uint8_t bytes[] = {1, 2, 3};
    bson_oid_t oid;
    bson_decimal128_t decimal;
    bson_t *scope = BCON_NEW("y", BCON_INT32(1));
    bson_oid_init_from_string(&oid, "0123456789abcdef01234567");
    bson_decimal128_from_string("0.1", &decimal);
    BSON_APPEND_MINKEY(values, "");
    BSON_APPEND_UNDEFINED(values, "");
    BSON_APPEND_NULL(values, "");
    BSON_APPEND_MAXKEY(values, "");
    BSON_APPEND_BOOL(values, "", false);
    BSON_APPEND_BOOL(values, "", true);
    for (int i = 0; i < 2; i++) {
        const char *text = i == 0 ? "a" : "b";
        BSON_APPEND_INT32(values, "", i);
        BSON_APPEND_INT64(values, "", (INT64_C(1) << 40) + i);
        BSON_APPEND_DOUBLE(values, "", i + 0.5);
        decimal.low += 1;
        BSON_APPEND_DECIMAL128(values, "", &decimal);
        BSON_APPEND_UTF8(values, "", i == 0 ? "c" : "d");
        BSON_APPEND_SYMBOL(values, "", text);
        BCON_APPEND(values, "", "{", text, BCON_INT32(i), "}");
        BCON_APPEND(values, "", "[", text, "]");
        BSON_APPEND_BINARY(values, "", BSON_SUBTYPE_BINARY, bytes, (uint32_t)(2 + i));
        oid.bytes[11] = (uint8_t)i;
        BSON_APPEND_OID(values, "", &oid);
        BSON_APPEND_DATE_TIME(values, "", 1000 + i);
        BSON_APPEND_TIMESTAMP(values, "", 1000, (uint32_t)i);
        BSON_APPEND_REGEX(values, "", text, "i");
        BSON_APPEND_DBPOINTER(values, "", text, &oid);
        BSON_APPEND_CODE(values, "", text);
        BSON_APPEND_CODE_WITH_SCOPE(values, "", text, scope);
    }
    bson_destroy(scope);
}

/* Every owner in turn, `limit` at a time, into `owners`. */
static void walk(fixture_t *fixture, size_t limit, bson_t *owners)
{
    spill_buffer_t last = SPILL_BUFFER_INIT, after = SPILL_BUFFER_INIT;
    for (bool more = true; more;) {
        bson_t page;
        bson_iter_t iter;
        assert_int_equal(fixture->store->ops->owners(fixture->store, &fixture->definition,
                                                     &fixture->binding, after.data, after.size,
                                                     limit, &page, &last, NULL),
                         SPILL_OK);
        more = !bson_empty(&page);
        bson_iter_init(&iter, &page);
        while (bson_iter_next(&iter))
            bson_append_iter(owners, "", 0, &iter);
        bson_destroy(&page);
        spill_buffer_clear(&after);
        if (more)
            spill_buffer_append(&after, last.data, last.size);
        assert_true(bson_count_keys(owners) < 100); /* no owner comes again and again */
    }
    spill_buffer_release(&last);
    spill_buffer_release(&after);
}

static size_t count_of(const bson_t *owners, const spill_value_t *owner)
{
    size_t count = 0;
    bson_iter_t iter;
    bson_iter_init(&iter, owners);
    while (bson_iter_next(&iter)) {
        spill_value_t value = spill_value_from_iter(&iter);
        count += spill_value_equal(&value, owner) ? 1 : 0;
    }
    return count;
}

static void owners_of_every_type_are_walked(void **state)
{
    fixture_t fixture;
    bson_t values = BSON_INITIALIZER, made = BSON_INITIALIZER;
    bson_iter_t iter;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    make_values(&values);
    bson_iter_init(&iter, &values);
    while (bson_iter_next(&iter)) {
        fixture.owner = spill_value_from_iter(&iter);
        spill_buffer_clear(&fixture.key);
        if (spill_owner_key(&fixture.owner, &fixture.key, NULL) != SPILL_OK)
            continue;
        append_numbers(&fixture, SPILL_HEAD, 100, 1);
        bson_append_iter(&made, "", 0, &iter);
    }
    assert_in_range(bson_count_keys(&made), 30, 40);
    static const size_t limits[] = {1, 2, 3, 1000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        bson_t owners = BSON_INITIALIZER;
        walk(&fixture, limits[i], &owners);
        assert_int_equal(bson_count_keys(&owners), bson_count_keys(&made));
        bson_iter_init(&iter, &made);
        while (bson_iter_next(&iter)) {
            spill_value_t owner = spill_value_from_iter(&iter);
            if (count_of(&owners, &owner) != 1)
                fail_msg("an owner of type 0x%02x comes %zu times, %zu at a time", owner.type,
                         count_of(&owners, &owner), limits[i]);
        }
        bson_destroy(&owners);
    }
    bson_destroy(&made);
    bson_destroy(&values);
    fixture_close(&fixture);
}

void add_owner_tests(suite_t *suite)
{
    SUITE_ADD(suite, owners_of_every_type_are_walked);
}
