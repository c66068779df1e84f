/* Spans of consecutive owners in memory, absent owners, and first tries for several owners. */
#include "store/embedded/read_ahead.h"

#include "core/array.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { OWNERS = 300, LARGE_ELEMENTS = 60, LARGE_BYTES = 20 * 1024 };

typedef struct fixture {
    disk_t *disk;
    spill_store_t *store;
    spill_array_t *array;
    spill_read_ahead_t *ahead;
    spill_binding_t binding;
    spill_record_key_t key; /* set_key */
    int64_t visited;
    int64_t held; /* of these, in a span when they were visited */
    int64_t elements;
} fixture_t;

static void open_fixture(fixture_t *fixture)
{
    *fixture = (fixture_t){.disk = disk_new()};
    fixture->store = embedded_on_disk(fixture->disk, SPILL_DURABILITY_LOG);
    fixture->array = embedded_array(fixture->store, "feed", 5, 4);
    fixture->ahead = ((spill_embedded_t *)fixture->store)->ahead;
    const spill_definition_t *definition = spill_array_get_definition(fixture->array);
    assert_int_equal(fixture->store->ops->bind(fixture->store, definition, &fixture->binding, NULL),
                     SPILL_OK);
}

static void close_fixture(fixture_t *fixture)
{
    spill_array_close(fixture->array);
    embedded_close(fixture->store);
    disk_free(fixture->disk);
}

static const char *name_of(int owner)
{
    static char name[32];
    snprintf(name, sizeof name, "owner-%05d", owner);
    return name;
}

static void append_one(fixture_t *fixture, int owner)
{
    assert_int_equal(embedded_append(fixture->array, name_of(owner), 0, 1, NULL), SPILL_OK);
}

static void append_owners(fixture_t *fixture)
{
    for (int i = 0; i < OWNERS; i++)
        append_one(fixture, i);
}

/* An owner of more bytes than a span. */
static void append_large(fixture_t *fixture, int owner)
{
    static char bytes[LARGE_BYTES];
    memset(bytes, 'x', sizeof bytes - 1);
    bson_t storage = BSON_INITIALIZER, element = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&element, "text", bytes);
    spill_value_t value = spill_value_from_document(&element);
    spill_value_t name = spill_value_from_utf8(&storage, name_of(owner));
    for (int i = 0; i < LARGE_ELEMENTS; i++)
        assert_int_equal(spill_array_append(fixture->array, &name, &value, 1, NULL, NULL, NULL),
                         SPILL_OK);
    bson_destroy(&element);
    bson_destroy(&storage);
}

static void set_key(fixture_t *fixture, const spill_value_t *owner)
{
    spill_buffer_t key = SPILL_BUFFER_INIT;
    assert_int_equal(spill_owner_key(owner, &key, NULL), SPILL_OK);
    spill_record_key_init(&fixture->key, fixture->binding.array_id, key.data, key.size);
    spill_buffer_release(&key);
}

static void set_key_of(fixture_t *fixture, int owner)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_utf8(&storage, name_of(owner));
    set_key(fixture, &value);
    bson_destroy(&storage);
}

/* Is the owner of fixture->key in the span of a pass? */
static bool is_held(fixture_t *fixture)
{
    spill_hold_t hold;
    bool held = spill_read_ahead_hold(fixture->ahead, &fixture->key, &hold) != NULL;
    spill_hold_release(&hold);
    return held;
}

/* ---- passes ---------------------------------------------------------------------------------- */

static bool visit(void *context, const spill_value_t *owner)
{
    fixture_t *fixture = context;
    spill_count_t count;
    set_key(fixture, owner);
    fixture->held += is_held(fixture) ? 1 : 0;
    assert_int_equal(spill_array_count(fixture->array, owner, &count, NULL), SPILL_OK);
    fixture->elements += count.count;
    fixture->visited++;
    return true;
}

static void owners_of_a_walk_are_in_spans(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    assert_int_equal(spill_array_owners(fixture.array, visit, &fixture, NULL), SPILL_OK);
    assert_int_equal(fixture.visited, OWNERS);
    assert_int_equal(fixture.held, OWNERS);
    assert_int_equal(fixture.elements, OWNERS);
    assert_false(is_held(&fixture)); /* the walk has ended */
    close_fixture(&fixture);
}

static void large_owner_is_read_from_engine(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    append_large(&fixture, OWNERS / 2);
    append_large(&fixture, OWNERS);
    assert_int_equal(spill_array_owners(fixture.array, visit, &fixture, NULL), SPILL_OK);
    assert_int_equal(fixture.visited, OWNERS + 1);
    assert_int_equal(fixture.held, OWNERS - 1);
    assert_int_equal(fixture.elements, OWNERS + 2 * LARGE_ELEMENTS);
    close_fixture(&fixture);
}

/* Append to this owner and to the last one, and count what the appends have made. */
static bool append_and_count(void *context, const spill_value_t *owner)
{
    fixture_t *fixture = context;
    spill_count_t count;
    append_one(fixture, (int)fixture->visited);
    if (fixture->visited < OWNERS - 1)
        append_one(fixture, OWNERS - 1);
    set_key(fixture, owner);
    assert_false(is_held(fixture));
    assert_int_equal(spill_array_count(fixture->array, owner, &count, NULL), SPILL_OK);
    fixture->elements += count.count;
    fixture->visited++;
    return true;
}

static void walk_reads_appends_since_the_span(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    assert_int_equal(spill_array_owners(fixture.array, append_and_count, &fixture, NULL), SPILL_OK);
    assert_int_equal(fixture.visited, OWNERS);
    assert_int_equal(fixture.elements, 2 * (OWNERS - 1) + 1 + OWNERS);
    close_fixture(&fixture);
}

/* After a write of unknown outcome, the owner is read from the engine. */
static bool fail_unknown(void *context, const spill_value_t *owner)
{
    fixture_t *fixture = context;
    set_key(fixture, owner);
    bool held = is_held(fixture);
    fixture->visited++;
    assert_int_equal(held, fixture->visited != 2); /* 2: the first owner, in the second walk */
    if (fixture->visited == 2)
        return false;
    disk_fail_writes(fixture->disk, 0, 1, SPILL_UNKNOWN);
    assert_int_equal(embedded_append(fixture->array, name_of(0), 0, 1, NULL), SPILL_UNKNOWN);
    assert_false(is_held(fixture));
    append_one(fixture, 1);
    assert_false(is_held(fixture));
    return false;
}

static void unknown_write_ends_answers_for_owner(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    assert_int_equal(spill_array_owners(fixture.array, fail_unknown, &fixture, NULL),
                     SPILL_CANCELLED);
    assert_int_equal(spill_array_owners(fixture.array, fail_unknown, &fixture, NULL),
                     SPILL_CANCELLED);
    assert_int_equal(fixture.visited, 2);
    close_fixture(&fixture);
}

/* ---- a span ---------------------------------------------------------------------------------- */

static void span_is_bounded(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    append_large(&fixture, OWNERS);
    spill_kv_t *kv = ((spill_embedded_t *)fixture.store)->kv;
    spill_span_t span = {.bytes_most = 0};
    spill_span_range_t range = {.array_id = fixture.binding.array_id,
                                .collection_id = fixture.binding.collection_id,
                                .heads_max = 10};
    spill_span_fill(&span, kv, &range);
    assert_int_equal(span.owner_count, 10);
    assert_false(span.ends);
    range.heads_max = SIZE_MAX;
    span.bytes_most = SPILL_SPAN_BYTES;
    spill_span_fill(&span, kv, &range);
    assert_int_equal(span.owner_count, OWNERS); /* the large one is not in it */
    assert_false(span.ends);
    assert_true(span.bytes.size <= 2 * SPILL_SPAN_BYTES);
    set_key_of(&fixture, OWNERS - 1);
    range.after = fixture.key.data + 4;
    range.after_bytes = fixture.key.prefix - 4;
    spill_span_fill(&span, kv, &range);
    assert_int_equal(span.owner_count, 0);
    assert_false(span.ends);
    spill_record_key_t last = fixture.key;
    set_key_of(&fixture, OWNERS);
    range.after = fixture.key.data + 4;
    range.after_bytes = fixture.key.prefix - 4;
    spill_span_fill(&span, kv, &range);
    assert_int_equal(span.owner_count, 0);
    assert_true(span.ends);
    assert_int_equal(last.prefix, fixture.key.prefix);
    spill_span_release(&span);
    close_fixture(&fixture);
}

static void span_ends_before_damage(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_owners(&fixture);
    set_key_of(&fixture, 20);
    spill_record_key_kind(&fixture.key, SPILL_RECORD_HEAD);
    disk_damage(fixture.disk, fixture.key.data, fixture.key.size);
    spill_span_t span = {.bytes_most = 0};
    spill_span_range_t range = {.array_id = fixture.binding.array_id,
                                .collection_id = fixture.binding.collection_id,
                                .heads_max = SIZE_MAX};
    spill_span_fill(&span, ((spill_embedded_t *)fixture.store)->kv, &range);
    assert_in_range(span.owner_count, 1, 20);
    assert_false(span.ends);
    spill_span_release(&span);
    disk_damage(fixture.disk, NULL, 0);
    close_fixture(&fixture);
}

/* ---- known owners ---------------------------------------------------------------------------- */

/* What the leader knows of the owner of fixture->key. */
static spill_known_t known(fixture_t *fixture)
{
    spill_buffer_t head = SPILL_BUFFER_INIT;
    spill_known_t what =
        spill_known_find(fixture->ahead, fixture->key.data, fixture->key.prefix, &head);
    assert_int_equal(what == SPILL_KNOWN_HEAD, head.size > 0);
    spill_buffer_release(&head);
    return what;
}

/* What a reader would add that had found the owner absent. */
static void add_absent(fixture_t *fixture, int64_t note)
{
    spill_request_t read = {.kind = SPILL_REQUEST_READ,
                            .array_id = fixture->binding.array_id,
                            .collection_id = fixture->binding.collection_id,
                            .key = fixture->key.data + 4,
                            .key_bytes = fixture->key.prefix - 4};
    spill_known_add(fixture->ahead, &read, NULL, 0, note);
}

static void owner_is_known_until_it_changes(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    append_one(&fixture, 0);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, name_of(7));
    int64_t base, note = spill_known_note(fixture.ahead);
    set_key_of(&fixture, 7);
    assert_int_equal(known(&fixture), SPILL_KNOWN_NOT);
    assert_int_equal(spill_array_op_base(fixture.array, &owner, &base, NULL), SPILL_OK);
    assert_int_equal(known(&fixture), SPILL_KNOWN_ABSENT);
    append_one(&fixture, 7);
    assert_int_equal(known(&fixture), SPILL_KNOWN_NOT);
    /* A reader that was slower than the append. */
    add_absent(&fixture, note);
    assert_int_equal(known(&fixture), SPILL_KNOWN_NOT);
    assert_int_equal(embedded_holds(fixture.array, name_of(7), 0, 1, NULL), SPILL_OK);
    bson_destroy(&storage);
    close_fixture(&fixture);
}

/* The append uses the head that was read before it, and no later append does. */
static void head_is_known_until_it_changes(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    spill_embedded_t *store = (spill_embedded_t *)fixture.store;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, name_of(7));
    int64_t base;
    append_one(&fixture, 7);
    set_key_of(&fixture, 7);
    for (int i = 1; i < 4; i++) {
        spill_tail_cache_free(store->tails); /* so that the read reaches the engine */
        store->tails = store->writer.tails = NULL;
        spill_head_cache_clear(&store->heads);
        assert_int_equal(known(&fixture), SPILL_KNOWN_NOT);
        assert_int_equal(spill_array_op_base(fixture.array, &owner, &base, NULL), SPILL_OK);
        assert_int_equal(known(&fixture), SPILL_KNOWN_HEAD);
        assert_int_equal(embedded_append(fixture.array, name_of(7), i, 1, NULL), SPILL_OK);
        assert_int_equal(embedded_holds(fixture.array, name_of(7), 0, i + 1, NULL), SPILL_OK);
    }
    bson_destroy(&storage);
    close_fixture(&fixture);
}

/* More owners than there is room for: each one that is known is known rightly. */
static void known_owners_are_bounded(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    int found = 0;
    for (int i = 0; i < 2 * SPILL_KNOWN_MAX; i++) {
        set_key_of(&fixture, i);
        add_absent(&fixture, spill_known_note(fixture.ahead));
        assert_int_equal(known(&fixture), SPILL_KNOWN_ABSENT);
    }
    for (int i = 0; i < 2 * SPILL_KNOWN_MAX; i++) {
        set_key_of(&fixture, i);
        found += known(&fixture) == SPILL_KNOWN_ABSENT;
    }
    assert_in_range(found, SPILL_KNOWN_MAX / 2, SPILL_KNOWN_MAX);
    append_one(&fixture, 2 * SPILL_KNOWN_MAX - 1);
    set_key_of(&fixture, 2 * SPILL_KNOWN_MAX - 1);
    assert_int_equal(known(&fixture), SPILL_KNOWN_NOT);
    close_fixture(&fixture);
}

/* ---- first tries for several owners ---------------------------------------------------------- */

static void several_owners_get_batches_at_once(void **state)
{
    (void)state;
    enum { BATCHES = 3 };
    fixture_t fixture;
    open_fixture(&fixture);
    append_one(&fixture, 1);
    bson_t storage[BATCHES], element = BSON_INITIALIZER;
    BSON_APPEND_INT64(&element, "n", 1);
    spill_value_t value = spill_value_from_document(&element);
    spill_owner_batch_t batches[BATCHES];
    for (int i = 0; i < BATCHES; i++) {
        bson_init(&storage[i]);
        batches[i] = (spill_owner_batch_t){.owner = spill_value_from_utf8(&storage[i], name_of(i)),
                                           .elements = &value,
                                           .count = 1,
                                           .op = {"id", 2, 0}};
    }
    batches[2].count = 0; /* invalid: only its own append reports that */
    long long commits = atomic_load(&fixture.store->counts.commits);
    assert_int_equal(spill_array_append_many(fixture.array, batches, BATCHES, NULL), SPILL_OK);
    assert_true(batches[0].done && batches[1].done && !batches[2].done);
    assert_int_equal(batches[0].result.first, 0);
    assert_int_equal(batches[1].result.first, 1);
    assert_int_equal(atomic_load(&fixture.store->counts.commits), commits + 1);
    assert_int_equal(spill_array_append_many(fixture.array, batches, BATCHES, NULL), SPILL_OK);
    assert_false(batches[0].done || batches[1].done); /* the operation is known */
    disk_fail_writes(fixture.disk, 0, 1, SPILL_IO);
    batches[0].op.id = batches[1].op.id = "io";
    assert_int_equal(spill_array_append_many(fixture.array, batches, 2, NULL), SPILL_IO);
    assert_false(batches[0].done || batches[1].done);
    spill_count_t count;
    assert_int_equal(spill_array_count(fixture.array, &batches[1].owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 2);
    for (int i = 0; i < BATCHES; i++)
        bson_destroy(&storage[i]);
    bson_destroy(&element);
    close_fixture(&fixture);
}

/* A batch that fills the head spills, as an append of its own does. */
static void full_head_spills_after_joint_append(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture);
    assert_int_equal(embedded_append(fixture.array, name_of(0), 0, 8, NULL), SPILL_OK);
    bson_t storage = BSON_INITIALIZER, element = BSON_INITIALIZER;
    BSON_APPEND_INT64(&element, "n", 8);
    spill_value_t value = spill_value_from_document(&element);
    spill_owner_batch_t batch = {.owner = spill_value_from_utf8(&storage, name_of(0)),
                                 .elements = &value,
                                 .count = 1,
                                 .op = {"id", 2, 0}};
    spill_count_t count;
    assert_int_equal(spill_array_append_many(fixture.array, &batch, 1, NULL), SPILL_OK);
    assert_true(batch.done);
    assert_int_equal(spill_array_count(fixture.array, &batch.owner, &count, NULL), SPILL_OK);
    assert_int_equal(count.count, 9);
    assert_int_equal(count.pages, 1);
    bson_destroy(&element);
    bson_destroy(&storage);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(owners_of_a_walk_are_in_spans),
        cmocka_unit_test(large_owner_is_read_from_engine),
        cmocka_unit_test(walk_reads_appends_since_the_span),
        cmocka_unit_test(unknown_write_ends_answers_for_owner),
        cmocka_unit_test(span_is_bounded),
        cmocka_unit_test(span_ends_before_damage),
        cmocka_unit_test(owner_is_known_until_it_changes),
        cmocka_unit_test(head_is_known_until_it_changes),
        cmocka_unit_test(known_owners_are_bounded),
        cmocka_unit_test(several_owners_get_batches_at_once),
        cmocka_unit_test(full_head_spills_after_joint_append),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
