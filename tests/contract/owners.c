/*
 * Lists of owners with an _id of any type that a key may have, and of pages without a head.
 */
#include "suite.h"

#include "bson/key.h"
#include "bson/value.h"

#include <spillway/verify.h>

#include <stdio.h>

/* Two values of each BSON type, including types that no owner may have. */
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

/* List all owners into `owners`, `limit` at a time. */
static void list_owners(fixture_t *fixture, size_t limit, bson_t *owners)
{
    spill_cursor_t cursor = {.store = fixture->store,
                             .definition = &fixture->definition,
                             .binding = &fixture->binding,
                             .query = {.list = SPILL_LIST_OWNERS, .limit = limit}};
    const spill_item_t *item;
    do {
        assert_int_equal(spill_cursor_next(&cursor, &item, NULL), SPILL_OK);
        assert_true(cursor.listing.count <= limit);
        if (item)
            spill_value_append(&item->owner, owners, "");
        assert_true(bson_count_keys(owners) < 100); /* no endless list */
    } while (item);
    spill_cursor_release(&cursor);
}

static size_t count_value(const bson_t *owners, const spill_value_t *owner)
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

static void owners_of_every_type_are_listed(void **state)
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
        list_owners(&fixture, limits[i], &owners);
        assert_int_equal(bson_count_keys(&owners), bson_count_keys(&made));
        bson_iter_init(&iter, &made);
        while (bson_iter_next(&iter)) {
            spill_value_t owner = spill_value_from_iter(&iter);
            if (count_value(&owners, &owner) != 1)
                fail_msg("an owner of type 0x%02x was listed %zu times, %zu at a time", owner.type,
                         count_value(&owners, &owner), limits[i]);
        }
        bson_destroy(&owners);
    }
    bson_destroy(&made);
    bson_destroy(&values);
    fixture_close(&fixture);
}

/* ---- pages without a head -------------------------------------------------------------------- */

/*
 * List the pages without a head, `limit` owners at a time, as "OWNER:EPOCH:PAGES ", with a '?' if
 * it is not known that the owner was dropped. Owners that are not strings are only counted.
 */
static size_t list_orphans(const fixture_t *fixture, size_t limit, bool one, char text[1024])
{
    size_t count = 0, used = 0;
    spill_cursor_t cursor = {.store = fixture->store,
                             .definition = &fixture->definition,
                             .binding = &fixture->binding,
                             .query = {.list = SPILL_LIST_ORPHANS,
                                       .limit = limit,
                                       .orphans.owner = one ? &fixture->owner : NULL}};
    const spill_item_t *item;
    text[0] = '\0';
    do {
        assert_int_equal(spill_cursor_next(&cursor, &item, NULL), SPILL_OK);
        if (!item)
            break;
        const spill_orphan_t *orphan = &item->orphan;
        uint32_t length;
        count++;
        if (orphan->owner.type == BSON_TYPE_UTF8)
            used += (size_t)snprintf(
                text + used, 1024 - used, "%s:%d:%d%s ", spill_value_text(&orphan->owner, &length),
                (int)orphan->incarnation, (int)orphan->pages, orphan->dropped ? "" : "?");
        assert_true(count < 100);
    } while (item);
    spill_cursor_release(&cursor);
    return count;
}

/* A '?' in `expected` appears only if other programs write to documents, too. */
static void assert_orphans(const fixture_t *fixture, bool one, const char *expected)
{
    char text[1024], here[1024];
    bool others = fixture->store->ops->others_write;
    size_t used = 0;
    for (const char *at = expected; *at; at++)
        if (*at != '?' || others)
            here[used++] = *at;
    here[used] = '\0';
    for (size_t limit = 1; limit < 1000; limit += 299) {
        list_orphans(fixture, limit, one, text);
        assert_string_equal(text, here);
    }
}

static void close_page(fixture_t *fixture, int64_t page)
{
    spill_request_t close = make_request(fixture, SPILL_REQUEST_SEAL, page);
    close.seal.close = true;
    assert_done(fixture, &close);
}

/*
 * Create "cid" with two pages, one of them closed (which proves nothing), and "bob" with one page.
 * Both have heads.
 */
static void open_with_pages(fixture_t *fixture, void **state)
{
    fixture_open(fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(fixture, SPILL_HEAD, 100, 5);
    spill_page(fixture, 0, 2);
    assert_int_equal(put_from_head(fixture, 1, 2), SPILL_DONE); /* not cut */
    fixture_owner(fixture, "cid");
    append_numbers(fixture, SPILL_HEAD, 100, 5);
    spill_page(fixture, 0, 2);
    spill_page(fixture, 1, 2);
    close_page(fixture, 0);
    fixture_owner(fixture, "bob");
    append_numbers(fixture, SPILL_HEAD, 100, 5);
    spill_page(fixture, 0, 4);
    assert_orphans(fixture, false, "");
    assert_orphans(fixture, true, "");
}

static void pages_without_head_are_listed(void **state)
{
    fixture_t fixture;
    open_with_pages(&fixture, state);
    drop_head(&fixture, INCARNATION, 1);
    assert_orphans(&fixture, true, "bob:1000:1? ");
    fixture_owner(&fixture, "cid");
    drop_head(&fixture, INCARNATION, 2);
    assert_orphans(&fixture, true, "cid:1000:2? ");
    assert_orphans(&fixture, false, "bob:1000:1? cid:1000:2? ");
    /*
     * Create an owner of that name again: its left-over pages are listed until they are replaced.
     */
    begin_again(&fixture, 200, 4);
    fixture_owner(&fixture, "bob");
    begin_again(&fixture, 200, 4);
    assert_orphans(&fixture, false, "bob:1000:1? cid:1000:2? ");
    spill_page(&fixture, 0, 2);
    assert_orphans(&fixture, true, "");
    assert_orphans(&fixture, false, "cid:1000:2? ");
    fixture_reopen(&fixture);
    assert_orphans(&fixture, false, "cid:1000:2? ");
    fixture_close(&fixture);
}

static void tombstones_are_not_listed(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, SPILL_HEAD);
    assert_done(&fixture, &seal);
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    create.create_page.first = 3;
    assert_done(&fixture, &create);
    append_numbers(&fixture, 0, 103, 3);
    assert_orphans(&fixture, false, "");
    close_page(&fixture, 0);
    drop_head(&fixture, INCARNATION, 1);
    assert_orphans(&fixture, false, "ada:1000:1? ");
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 0);
    assert_done(&fixture, &drop);
    assert_orphans(&fixture, false, "");
    assert_orphans(&fixture, true, "");
    fixture_close(&fixture);
}

/* Advance to the next owner of the values; false: none is left. */
static bool next_owner(fixture_t *fixture, bson_iter_t *iter)
{
    spill_code_t code = SPILL_INVALID;
    while (code != SPILL_OK && bson_iter_next(iter)) {
        fixture->owner = spill_value_from_iter(iter);
        spill_buffer_clear(&fixture->key);
        code = spill_owner_key(&fixture->owner, &fixture->key, NULL);
    }
    return code == SPILL_OK;
}

static void pages_of_owners_of_every_type_are_listed(void **state)
{
    fixture_t fixture;
    char text[1024];
    bson_t values = BSON_INITIALIZER;
    bson_iter_t iter;
    size_t made = 0;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    make_values(&values);
    bson_iter_init(&iter, &values);
    while (next_owner(&fixture, &iter)) {
        append_numbers(&fixture, SPILL_HEAD, 100, 2);
        spill_page(&fixture, 0, 1);
    }
    assert_int_equal(list_orphans(&fixture, 1000, false, text), 0);
    bson_iter_init(&iter, &values);
    while (next_owner(&fixture, &iter)) {
        drop_head(&fixture, INCARNATION, 1);
        assert_int_equal(list_orphans(&fixture, 1, true, text), 1);
        made++;
    }
    assert_in_range(made, 30, 40);
    static const size_t limits[] = {1, 7, 1000};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        assert_int_equal(list_orphans(&fixture, limits[i], false, text), made);
    bson_destroy(&values);
    fixture_close(&fixture);
}

/* One window lacks its first part; the other window is sound. */
static void parts_without_first_part_are_listed(void **state)
{
    fixture_t fixture;
    spill_definition_t definition;
    spill_error_t error;
    spill_array_t *array;
    char text[1024];
    make_bucket_definition(&definition, "reviews");
    definition.bounds.threshold = 2;
    definition.bounds.page_capacity = 2;
    fixture_open_with(&fixture, *state, &definition);
    assert_int_equal(spill_array_open(fixture.store, "reviews", &array, &error), SPILL_OK);
    for (int i = 0; i < 10; i++) {
        size_t windows;
        bson_t *review = BCON_NEW("rating", BCON_INT32(i), "createdAt",
                                  BCON_DATE_TIME(i % 2 ? 0 : INT64_C(5000000000)));
        spill_value_t element = spill_value_from_document(review);
        assert_int_equal(
            spill_bucket_append(array, &fixture.owner, &element, 1, NULL, NULL, &windows, &error),
            SPILL_OK);
        bson_destroy(review);
    }
    assert_int_equal(list_orphans(&fixture, 10, false, text), 0);
    bson_t storage = BSON_INITIALIZER, name = BSON_INITIALIZER;
    spill_value_t owner = fixture.owner;
    spill_value_append(&owner, &storage, "");
    fixture.owner = spill_bucket_name(&name, &owner, "1970-01");
    spill_buffer_clear(&fixture.key);
    assert_int_equal(spill_owner_key(&fixture.owner, &fixture.key, NULL), SPILL_OK);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.present);
    drop_head(&fixture, fixture.response.state.incarnation, fixture.response.state.pages);
    assert_int_equal(list_orphans(&fixture, 10, false, text), 1);
    assert_int_equal(list_orphans(&fixture, 10, true, text), 1);
    spill_verify_summary_t verified;
    assert_int_equal(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), SPILL_OK);
    assert_int_equal(verified.findings, 1);
    spill_array_close(array);
    bson_destroy(&storage);
    bson_destroy(&name);
    fixture_close(&fixture);
}

void add_owner_tests(suite_t *suite)
{
    SUITE_ADD(suite, owners_of_every_type_are_listed);
    SUITE_ADD(suite, pages_without_head_are_listed);
    SUITE_ADD(suite, tombstones_are_not_listed);
    SUITE_ADD(suite, pages_of_owners_of_every_type_are_listed);
    SUITE_ADD(suite, parts_without_first_part_are_listed);
}
