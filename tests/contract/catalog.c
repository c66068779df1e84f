#include "suite.h"

#include "bson/key.h"
#include "bson/value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- catalog documents ----------------------------------------------------------------------- */

static bool put_entry(spill_store_t *store, const char *name, const bson_t *expected,
                      const bson_t *document)
{
    bool done = !expected;
    spill_code_t code =
        store->ops->catalog_put(store, SPILL_CATALOG_JOB, name, expected, document, &done, NULL);
    assert_int_equal(code, SPILL_OK);
    return done;
}

static void assert_entry(spill_store_t *store, spill_catalog_t kind, const char *name,
                         const bson_t *expected)
{
    bson_t *found = NULL;
    assert_int_equal(store->ops->catalog_get(store, kind, name, &found, NULL), SPILL_OK);
    if (expected) {
        assert_non_null(found);
        assert_true(bson_equal(found, expected));
    } else {
        assert_null(found);
    }
    bson_destroy(found);
}

static void entry_is_put_if_unchanged(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *one = BCON_NEW("at", BCON_INT64(1)), *two = BCON_NEW("at", BCON_INT64(2));
    assert_entry(fixture.store, SPILL_CATALOG_JOB, "log", NULL);
    assert_false(put_entry(fixture.store, "log", one, two)); /* no entry exists */
    assert_true(put_entry(fixture.store, "log", NULL, one));
    assert_false(put_entry(fixture.store, "log", NULL, two)); /* an entry exists */
    assert_false(put_entry(fixture.store, "log", two, two));
    assert_entry(fixture.store, SPILL_CATALOG_JOB, "log", one);
    assert_true(put_entry(fixture.store, "log", one, two));
    fixture_reopen(&fixture);
    assert_entry(fixture.store, SPILL_CATALOG_JOB, "log", two);
    assert_entry(fixture.store, SPILL_CATALOG_DEFINITION, "log", NULL);
    spill_code_t code =
        fixture.store->ops->catalog_delete(fixture.store, SPILL_CATALOG_JOB, "log", NULL);
    assert_int_equal(code, SPILL_OK);
    assert_entry(fixture.store, SPILL_CATALOG_JOB, "log", NULL);
    code = fixture.store->ops->catalog_delete(fixture.store, SPILL_CATALOG_JOB, "log", NULL);
    assert_int_equal(code, SPILL_OK); /* the second time: no effect */
    bson_destroy(one);
    bson_destroy(two);
    fixture_close(&fixture);
}

static void assert_names(const fixture_t *fixture, spill_catalog_t kind, size_t count,
                         const char *const *expected)
{
    spill_listing_t names = SPILL_LISTING_INIT;
    assert_int_equal(fixture->store->ops->catalog_names(fixture->store, kind, &names, NULL),
                     SPILL_OK);
    assert_int_equal(names.count, count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(spill_listing_item(&names, i).text, expected[i]);
    spill_listing_release(&names);
}

static void names_are_sorted(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *document = BCON_NEW("a", BCON_INT32(1));
    const char *const names[] = {"pear", "apple", "plum", "applesauce"};
    for (size_t i = 0; i < 4; i++)
        assert_true(put_entry(fixture.store, names[i], NULL, document));
    const char *const imports[] = {"apple", "applesauce", "pear", "plum"};
    const char *const definitions[] = {"feed"};
    assert_names(&fixture, SPILL_CATALOG_JOB, 4, imports);
    assert_names(&fixture, SPILL_CATALOG_DEFINITION, 1, definitions);
    bson_destroy(document);
    fixture_close(&fixture);
}

/* Assert that a definition with these collections would be compared with the definition `name`. */
static void assert_beside(const fixture_t *fixture, const char *heads, const char *pages,
                          const char *name)
{
    spill_listing_t names = SPILL_LISTING_INIT;
    spill_definition_t next;
    make_definition(&next, "next", SPILL_KEEP_NEWEST);
    snprintf(next.collection, sizeof next.collection, "%s", heads);
    snprintf(next.page_collection, sizeof next.page_collection, "%s", pages);
    assert_int_equal(spill_store_definitions_beside(fixture->store, &next, &names, NULL), SPILL_OK);
    bool found = false;
    for (size_t i = 0; i < names.count; i++)
        found = found || strcmp(spill_listing_item(&names, i).text, name) == 0;
    assert_true(found);
    spill_listing_release(&names);
}

static void definitions_are_found_by_their_collections(void **state)
{
    fixture_t fixture;
    spill_definition_t likes;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    const spill_definition_t *feed = &fixture.definition;
    make_definition(&likes, "likes", SPILL_KEEP_NEWEST);
    assert_beside(&fixture, feed->collection, "new", "feed");
    save_definition(fixture.store, &likes);
    for (int round = 0; round < 2; round++) {
        assert_beside(&fixture, feed->collection, "new", "feed");
        assert_beside(&fixture, feed->collection, "new", "likes");
        assert_beside(&fixture, "new", feed->collection, "likes");
        assert_beside(&fixture, "new", likes.page_collection, "likes");
        assert_beside(&fixture, likes.page_collection, "new", "likes");
        assert_beside(&fixture, "new", feed->page_collection, "feed");
        fixture_reopen(&fixture);
    }
    fixture_close(&fixture);
}

/* ---- numbers --------------------------------------------------------------------------------- */

static spill_binding_t bind(fixture_t *fixture, const spill_definition_t *definition)
{
    spill_binding_t binding;
    assert_int_equal(fixture->store->ops->bind(fixture->store, definition, &binding, NULL),
                     SPILL_OK);
    return binding;
}

static void numbers_never_change(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_definition_t likes;
    make_definition(&likes, "likes", SPILL_KEEP_OLDEST);
    spill_binding_t binding;
    assert_int_equal(fixture.store->ops->bind(fixture.store, &likes, &binding, NULL),
                     SPILL_NOT_FOUND);
    save_definition(fixture.store, &likes);
    spill_binding_t first = bind(&fixture, &likes);
    assert_int_not_equal(first.array_id, fixture.binding.array_id);
    /* both arrays belong to "users" */
    assert_int_equal(first.collection_id, fixture.binding.collection_id);

    spill_definition_t sales;
    assert_int_equal(spill_definition_preset(&sales, "sales", "sales", NULL), SPILL_OK);
    save_definition(fixture.store, &sales);
    spill_binding_t other = bind(&fixture, &sales);
    assert_int_not_equal(other.array_id, first.array_id);
    assert_int_not_equal(other.collection_id, first.collection_id);
    fixture_reopen(&fixture);
    spill_binding_t again = bind(&fixture, &likes);
    assert_memory_equal(&again, &first, sizeof first);
    again = bind(&fixture, &fixture.definition);
    assert_memory_equal(&again, &fixture.binding, sizeof again);
    fixture_close(&fixture);
}

typedef struct array {
    spill_definition_t definition;
    spill_binding_t binding;
} array_t;

/* Define another array in the fixture's heads. */
static array_t add_likes(fixture_t *fixture)
{
    array_t likes;
    make_definition(&likes.definition, "likes", SPILL_KEEP_NEWEST);
    save_definition(fixture->store, &likes.definition);
    likes.binding = bind(fixture, &likes.definition);
    return likes;
}

/* Switch the fixture to that array; return the previous one. */
static array_t switch_to(fixture_t *fixture, const array_t *array)
{
    array_t before = {fixture->definition, fixture->binding};
    fixture->definition = array->definition;
    fixture->binding = array->binding;
    return before;
}

static void arrays_of_a_collection_share_fields(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    array_t likes = add_likes(&fixture);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    array_t feed = switch_to(&fixture, &likes);
    assert_document(&fixture, SPILL_HEAD, "absent");
    append_numbers(&fixture, SPILL_HEAD, 500, 1);
    bson_t *update = BCON_NEW("$set", "{", "name", "Ada", "}");
    spill_request_t set = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    set.append.update = update;
    assert_done(&fixture, &set);
    drop_head(&fixture, INCARNATION, 0);
    switch_to(&fixture, &feed);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101");
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\" }");
    bson_destroy(update);
    fixture_close(&fixture);
}

static void document_is_deleted_with_its_last_array(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    array_t likes = add_likes(&fixture);
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    array_t feed = switch_to(&fixture, &likes);
    append_numbers(&fixture, SPILL_HEAD, 200, 1);
    drop_head(&fixture, INCARNATION, 0);
    switch_to(&fixture, &feed);
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }"); /* the document still has the other array */
    drop_head(&fixture, INCARNATION, 0);
    assert_fields(&fixture, NULL);
    append_numbers(&fixture, SPILL_HEAD, 300, 1);
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    fixture_close(&fixture);
}

/* ---- ending an array ------------------------------------------------------------------------- */

static void skip_without_retire(fixture_t *fixture)
{
    if (fixture->store->ops->retire)
        return;
    fixture_close(fixture);
    skip();
}

static bool retire(fixture_t *fixture, const spill_binding_t *binding)
{
    bool done = false;
    spill_code_t code =
        fixture->store->ops->retire(fixture->store, &fixture->definition, binding, &done, NULL);
    assert_int_equal(code, SPILL_OK);
    return done;
}

static void assert_ended(fixture_t *fixture)
{
    int64_t number = 7;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(fixture, SPILL_HEAD, &element, 1);
    append.create = true;
    spill_error_t error;
    assert_int_equal(spill_store_call(fixture->store, &append, &fixture->response, &error),
                     SPILL_NOT_FOUND);
    assert_non_null(strstr(error.message, "open the array again"));
    assert_document(fixture, SPILL_HEAD, "absent");
}

static void ended_array_leaves_nothing(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_binding_t first = fixture.binding;
    skip_without_retire(&fixture);
    leave_page(&fixture, 2);
    fixture_owner(&fixture, "bob");
    append_numbers(&fixture, SPILL_HEAD, 200, 1);
    assert_false(retire(&fixture, &first)); /* bob exists */
    append_numbers(&fixture, SPILL_HEAD, 201, 1);
    drop_head(&fixture, INCARNATION + 2, 0); /* ada was dropped before, after one change */
    fixture_owner(&fixture, "ada");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    assert_true(retire(&fixture, &first));
    assert_document(&fixture, 0, "absent");
    assert_entry(fixture.store, SPILL_CATALOG_DEFINITION, "feed", NULL);
    assert_ended(&fixture);
    fixture_reopen(&fixture);
    assert_ended(&fixture);

    save_definition(fixture.store, &fixture.definition);
    fixture.binding = bind(&fixture, &fixture.definition);
    assert_int_not_equal(fixture.binding.array_id, first.array_id);
    assert_int_equal(fixture.binding.collection_id, first.collection_id);
    assert_document(&fixture, 0, "absent");
    append_numbers(&fixture, SPILL_HEAD, 300, 1);
    assert_true(retire(&fixture, &first)); /* it ended before */
    assert_document(&fixture, SPILL_HEAD, "rev+0 epoch=1003 | 0=300");
    fixture_close(&fixture);
}

static bool replace_definition(fixture_t *fixture, const spill_definition_t *next)
{
    bson_t old, new;
    bool done = false;
    spill_definition_to_bson(&fixture->definition, &old);
    spill_definition_to_bson(next, &new);
    spill_code_t code =
        fixture->store->ops->catalog_put(fixture->store, SPILL_CATALOG_DEFINITION,
                                         fixture->definition.name, &old, &new, &done, NULL);
    assert_int_equal(code, SPILL_OK);
    bson_destroy(&old);
    bson_destroy(&new);
    return done;
}

static void changed_layout_starts_new_array(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_binding_t first = fixture.binding;
    skip_without_retire(&fixture);
    spill_definition_t next = fixture.definition;
    next.bounds.threshold++;
    assert_true(replace_definition(&fixture, &next)); /* a compatible change */
    fixture.definition = next;
    leave_page(&fixture, 2);
    append_numbers(&fixture, SPILL_HEAD, 200, 1);
    next.keep = SPILL_KEEP_OLDEST;
    assert_false(replace_definition(&fixture, &next)); /* ada exists */
    append_numbers(&fixture, SPILL_HEAD, 201, 1);
    drop_head(&fixture, INCARNATION + 2, 0); /* an earlier ada was dropped, after one change */
    assert_true(replace_definition(&fixture, &next));
    assert_ended(&fixture);
    fixture.definition = next;
    fixture.binding = bind(&fixture, &next);
    assert_int_not_equal(fixture.binding.array_id, first.array_id);
    assert_document(&fixture, 0, "absent");
    append_numbers(&fixture, SPILL_HEAD, 300, 1);
    fixture_close(&fixture);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* List every owner into `all`, `limit` at a time. `all` holds `room` names of 16 bytes. */
static size_t walk_owners(fixture_t *fixture, size_t limit, char (*all)[16], size_t room)
{
    spill_listing_t page = SPILL_LISTING_INIT;
    spill_buffer_t after = SPILL_BUFFER_INIT;
    size_t count = 0;
    for (bool more = true; more;) {
        spill_list_query_t query = {.list = SPILL_LIST_OWNERS,
                                    .after = after.data,
                                    .after_bytes = after.size,
                                    .limit = limit};
        spill_code_t code = spill_store_list(fixture->store, &fixture->definition,
                                             &fixture->binding, &query, &page, NULL);
        assert_int_equal(code, SPILL_OK);
        more = page.count > 0;
        assert_true(page.count <= limit);
        for (size_t i = 0; i < page.count; i++) {
            uint32_t length;
            spill_value_t owner = spill_listing_item(&page, i).owner;
            assert_true(count < room);
            assert_int_equal(owner.type, BSON_TYPE_UTF8);
            snprintf(all[count++], 16, "%s", spill_value_text(&owner, &length));
        }
        spill_buffer_clear(&after);
        if (more)
            spill_buffer_append(&after, page.last.data, page.last.size);
    }
    spill_listing_release(&page);
    spill_buffer_release(&after);
    return count;
}

static void owners_are_walked_in_parts(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    enum { OWNERS = 57 };
    static char one_by_one[OWNERS][16], by_ten[OWNERS][16], all[OWNERS][16];
    assert_int_equal(walk_owners(&fixture, 10, all, OWNERS), 0);
    bool seen[OWNERS] = {false};
    for (int i = 0; i < OWNERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "owner %d", i * 7 % OWNERS);
        fixture_owner(&fixture, name);
        append_numbers(&fixture, SPILL_HEAD, 1, 1);
    }
    fixture_reopen(&fixture);
    assert_int_equal(walk_owners(&fixture, 1, one_by_one, OWNERS), OWNERS);
    assert_int_equal(walk_owners(&fixture, 10, by_ten, OWNERS), OWNERS);
    assert_int_equal(walk_owners(&fixture, 1000, all, OWNERS), OWNERS);
    for (int i = 0; i < OWNERS; i++) {
        assert_string_equal(one_by_one[i], all[i]);
        assert_string_equal(by_ten[i], all[i]);
        long number = strtol(all[i] + strlen("owner "), NULL, 10);
        assert_in_range(number, 0, OWNERS - 1);
        assert_false(seen[number]);
        seen[number] = true;
    }
    fixture_close(&fixture);
}

static void owners_are_heads(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    array_t likes = add_likes(&fixture);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_page(&fixture, 0, 2);
    fixture_owner(&fixture, "bob");
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    array_t feed = switch_to(&fixture, &likes);
    fixture_owner(&fixture, "cyd"); /* an owner of the other array */
    append_numbers(&fixture, SPILL_HEAD, 100, 1);
    switch_to(&fixture, &feed);
    fixture_owner(&fixture, "ada"); /* its head is dropped, its page stays */
    drop_head(&fixture, INCARNATION, 1);
    char all[4][16];
    assert_int_equal(walk_owners(&fixture, 2, all, 4), 1);
    assert_string_equal(all[0], "bob");
    fixture_close(&fixture);
}

static void number_types_name_one_owner(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    bson_t *ids = BCON_NEW("a", BCON_INT32(1), "b", BCON_INT64(1), "c", BCON_DOUBLE(1));
    bson_iter_t iter;
    bson_iter_init(&iter, ids);
    int64_t label = 100;
    while (bson_iter_next(&iter)) {
        fixture.owner = spill_value_from_iter(&iter);
        spill_buffer_clear(&fixture.key);
        assert_int_equal(spill_owner_key(&fixture.owner, &fixture.key, NULL), SPILL_OK);
        append_numbers(&fixture, SPILL_HEAD, label++, 1);
    }
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    assert_fields(&fixture, "{ \"_id\" : 1 }");
    spill_listing_t owners = SPILL_LISTING_INIT;
    spill_list_query_t query = {.list = SPILL_LIST_OWNERS, .limit = 10};
    spill_code_t code = spill_store_list(fixture.store, &fixture.definition, &fixture.binding,
                                         &query, &owners, NULL);
    assert_int_equal(code, SPILL_OK);
    assert_int_equal(owners.count, 1);
    /* the type with which it was created */
    assert_int_equal(spill_listing_item(&owners, 0).owner.type, BSON_TYPE_INT32);
    spill_listing_release(&owners);
    bson_destroy(ids);
    fixture_close(&fixture);
}

void add_catalog_tests(suite_t *suite)
{
    SUITE_ADD(suite, entry_is_put_if_unchanged);
    SUITE_ADD(suite, names_are_sorted);
    SUITE_ADD(suite, definitions_are_found_by_their_collections);
    SUITE_ADD(suite, numbers_never_change);
    SUITE_ADD(suite, arrays_of_a_collection_share_fields);
    SUITE_ADD(suite, document_is_deleted_with_its_last_array);
    SUITE_ADD(suite, ended_array_leaves_nothing);
    SUITE_ADD(suite, changed_layout_starts_new_array);
    SUITE_ADD(suite, owners_are_walked_in_parts);
    SUITE_ADD(suite, owners_are_heads);
    SUITE_ADD(suite, number_types_name_one_owner);
}
