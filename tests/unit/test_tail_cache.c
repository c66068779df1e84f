/* The cache of heads and their newest elements of the embedded store. */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/tail_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { INCARNATION = 5, ELEMENT_BYTES = 100, LARGE = 16 * 1024 * 1024 };

/* One owner, and what its records in the engine are: elements [first, end) of one head. */
typedef struct fixture {
    spill_counts_t counts;
    spill_tail_cache_t *cache;
    spill_record_key_t owner;
    spill_definition_t definition;
    int64_t first, end;
    int64_t watermark;
    uint8_t version; /* the content of elements that are put */
    spill_batch_t batch;
    spill_response_t response;
} fixture_t;

static void open_cache(fixture_t *fixture, int64_t bytes_max)
{
    static const spill_value_t owner = {.data = (const uint8_t *)"\4\0\0\0ada", 8, BSON_TYPE_UTF8};
    memset(fixture, 0, sizeof *fixture);
    spill_buffer_t key = SPILL_BUFFER_INIT;
    assert_int_equal(spill_owner_key(&owner, &key, NULL), SPILL_OK);
    spill_record_key_init(&fixture->owner, 7, key.data, key.size);
    spill_buffer_release(&key);
    spill_definition_init(&fixture->definition, "feed");
    fixture->cache = spill_tail_cache_new(bytes_max, &fixture->counts);
    fixture->end = 30;
    fixture->version = 1;
}

static void close_cache(fixture_t *fixture)
{
    spill_tail_cache_free(fixture->cache);
    assert_int_equal(fixture->counts.tail_bytes, 0);
    spill_batch_release(&fixture->batch);
    spill_response_release(&fixture->response);
}

static spill_state_t head_of(const fixture_t *fixture)
{
    return (spill_state_t){.present = true,
                           .incarnation = INCARNATION,
                           .rev = INCARNATION,
                           .first = fixture->first,
                           .watermark = fixture->watermark,
                           .live = fixture->end - fixture->first,
                           .live_bytes = (fixture->end - fixture->first) * ELEMENT_BYTES};
}

static spill_value_t element_of(uint8_t *bytes, int64_t seq, uint8_t version)
{
    memset(bytes, (int)seq, ELEMENT_BYTES);
    bytes[0] = version;
    return (spill_value_t){.data = bytes, .size_bytes = ELEMENT_BYTES, .type = BSON_TYPE_DOCUMENT};
}

/* ---- readers --------------------------------------------------------------------------------- */

static spill_request_t newest(const fixture_t *fixture, int64_t limit)
{
    return (spill_request_t){
        .kind = SPILL_REQUEST_READ,
        .definition = &fixture->definition,
        .page = SPILL_HEAD,
        .read = {.want = SPILL_WANT_BACKWARD, .seq = INT64_MAX, .limit = limit}};
}

static bool look_up(fixture_t *fixture, const spill_request_t *request, spill_tail_ticket_t *ticket)
{
    spill_response_clear(&fixture->response);
    return spill_tail_cache_read(fixture->cache, &fixture->owner, request, &fixture->response,
                                 ticket);
}

/* Read the "engine", and fill the cache with the answer. */
static void fill(fixture_t *fixture, const spill_request_t *request,
                 const spill_tail_ticket_t *ticket)
{
    uint8_t bytes[ELEMENT_BYTES];
    spill_response_clear(&fixture->response);
    fixture->response.state = head_of(fixture);
    if (request->read.want == SPILL_WANT_BACKWARD)
        for (int64_t i = 0; i < request->read.limit && fixture->end - i > fixture->first; i++) {
            spill_value_t value = element_of(bytes, fixture->end - 1 - i, 1);
            spill_run_add(&fixture->response.run, fixture->end - 1 - i, &value);
        }
    spill_tail_cache_fill(fixture->cache, &fixture->owner, request, &fixture->response, ticket);
}

/* A read without a request. Its slice must have the elements below `before`. */
static spill_slice_t *recall(const fixture_t *fixture, int64_t before, int64_t limit)
{
    const spill_recall_t recall = {.array_id = 7,
                                   .key = fixture->owner.data + 4,
                                   .key_bytes = fixture->owner.prefix - 4,
                                   .upper = before - 1,
                                   .limit = limit};
    spill_slice_t *slice = spill_tail_cache_recall(fixture->cache, &recall);
    for (size_t i = 0; slice && i < slice->count; i++) {
        uint8_t bytes[ELEMENT_BYTES];
        int64_t seq = before - 1 - (int64_t)i;
        spill_value_t expected = element_of(bytes, seq, slice->elements[i].value.data[0]);
        assert_int_equal(slice->elements[i].seq, seq);
        assert_true(spill_value_equal(&slice->elements[i].value, &expected));
    }
    if (slice)
        assert_int_equal(slice->next, before - (int64_t)slice->count);
    return slice;
}

static bool recalls(const fixture_t *fixture, int64_t before, int64_t limit, size_t count,
                    bool more)
{
    spill_slice_t *slice = recall(fixture, before, limit);
    bool same = slice && slice->count == count && slice->more == more;
    spill_slice_free(slice);
    return same;
}

static bool recalls_nothing(const fixture_t *fixture, int64_t before, int64_t limit)
{
    spill_slice_t *slice = recall(fixture, before, limit);
    spill_slice_free(slice);
    return slice == NULL;
}

static void miss_and_fill(fixture_t *fixture, int64_t limit)
{
    spill_request_t request = newest(fixture, limit);
    spill_tail_ticket_t ticket;
    assert_false(look_up(fixture, &request, &ticket));
    assert_true(ticket.open);
    fill(fixture, &request, &ticket);
}

static bool hits(fixture_t *fixture, int64_t limit)
{
    spill_request_t request = newest(fixture, limit);
    spill_tail_ticket_t ticket;
    if (!look_up(fixture, &request, &ticket)) {
        assert_false(fixture->response.state.present);
        assert_int_equal(fixture->response.run.count, 0);
        return false;
    }
    const spill_run_t *run = &fixture->response.run;
    int64_t all = fixture->end - fixture->first;
    assert_int_equal(fixture->response.state.first, fixture->first);
    assert_int_equal(spill_state_end(&fixture->response.state), fixture->end);
    assert_int_equal(run->count, limit < all ? limit : all);
    for (size_t i = 0; i < run->count; i++) {
        uint8_t bytes[ELEMENT_BYTES];
        spill_element_t element = spill_run_element(run, i);
        int64_t seq = fixture->end - 1 - (int64_t)i;
        spill_value_t expected = element_of(bytes, seq, element.value.data[0]);
        assert_int_equal(element.seq, seq);
        assert_true(spill_value_equal(&element.value, &expected));
    }
    return true;
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void put_head(fixture_t *fixture)
{
    spill_state_t state = head_of(fixture);
    spill_record_key_kind(&fixture->owner, SPILL_RECORD_HEAD);
    spill_state_encode(
        &state, true,
        spill_batch_put_open(&fixture->batch, fixture->owner.data, fixture->owner.size));
    spill_batch_put_close(&fixture->batch);
}

static void put_element(fixture_t *fixture, int64_t seq)
{
    uint8_t bytes[ELEMENT_BYTES];
    element_of(bytes, seq, fixture->version);
    spill_record_key_element(&fixture->owner, INCARNATION, seq);
    uint8_t *place = spill_batch_put_place(&fixture->batch, fixture->owner.data,
                                           fixture->owner.size, ELEMENT_BYTES + 1);
    place[0] = BSON_TYPE_DOCUMENT;
    memcpy(place + 1, bytes, ELEMENT_BYTES);
}

static void delete_element(fixture_t *fixture, int64_t seq)
{
    spill_record_key_element(&fixture->owner, INCARNATION, seq);
    spill_batch_delete(&fixture->batch, fixture->owner.data, fixture->owner.size);
}

/* An append puts the newest element first. */
static void append(fixture_t *fixture, int64_t count)
{
    fixture->end += count;
    put_head(fixture);
    for (int64_t i = 1; i <= count; i++)
        put_element(fixture, fixture->end - i);
}

static void commit(fixture_t *fixture, spill_code_t code)
{
    spill_tail_cache_begin(fixture->cache, &fixture->batch);
    assert_false(hits(fixture, 1));
    spill_tail_cache_end(fixture->cache, &fixture->batch, code);
    spill_batch_clear(&fixture->batch);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void answers_what_was_read(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    assert_true(hits(&fixture, 20));
    assert_true(hits(&fixture, 3));
    assert_false(hits(&fixture, 21));
    miss_and_fill(&fixture, 100);
    assert_true(hits(&fixture, 100)); /* the whole head */
    assert_int_equal(fixture.counts.tail_hits, 3);
    assert_int_equal(fixture.counts.tail_misses, 3);
    assert_true(fixture.counts.tail_bytes > (int64_t)30 * ELEMENT_BYTES);
    close_cache(&fixture);
}

static void answers_older_elements_and_states(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_tail_ticket_t ticket;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    spill_request_t request = newest(&fixture, 5);
    request.read.seq = 14;
    assert_true(look_up(&fixture, &request, &ticket));
    assert_int_equal(fixture.response.run.count, 5);
    assert_int_equal(fixture.response.run.entries[0].seq, 14);
    assert_int_equal(fixture.response.run.entries[4].seq, 10);
    request.read.seq = 13; /* one is missing */
    assert_false(look_up(&fixture, &request, &ticket));
    request.read.want = SPILL_WANT_NONE;
    assert_true(look_up(&fixture, &request, &ticket));
    assert_int_equal(fixture.response.state.live, 30);
    close_cache(&fixture);
}

/* Elements of 30 are cached from number 10 on. */
static void recalls_elements_that_it_has(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    assert_true(recalls_nothing(&fixture, 30, 20));
    assert_int_equal(fixture.counts.tail_misses, 0); /* a READ follows, and counts */
    miss_and_fill(&fixture, 20);
    assert_true(recalls(&fixture, 30, 20, 20, true));
    assert_true(recalls(&fixture, 30, 1, 1, true));
    assert_true(recalls(&fixture, 15, 5, 5, true));
    assert_int_equal(fixture.counts.tail_hits, 3);
    assert_true(recalls_nothing(&fixture, 30, 21));
    assert_true(recalls_nothing(&fixture, 14, 5));
    assert_true(recalls_nothing(&fixture, 10, 1));
    assert_true(recalls_nothing(&fixture, 30, SPILL_TAIL_ELEMENTS_MAX + 1));
    assert_int_equal(fixture.counts.tail_hits, 3);
    append(&fixture, 1);
    spill_tail_cache_begin(fixture.cache, &fixture.batch);
    assert_true(recalls_nothing(&fixture, 30, 1));
    spill_tail_cache_end(fixture.cache, &fixture.batch, SPILL_OK);
    spill_batch_clear(&fixture.batch);
    assert_true(recalls(&fixture, 31, 20, 20, true));
    append(&fixture, 1);
    commit(&fixture, SPILL_NO_SPACE);
    assert_true(recalls_nothing(&fixture, 31, 1));
    close_cache(&fixture);
}

/* A read that gets less than its limit needs the lowest number, and all numbers from there on. */
static void recalls_short_reads_of_whole_arrays_only(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 30);
    assert_true(recalls(&fixture, 30, 30, 30, false));
    assert_true(recalls(&fixture, 30, 40, 30, false));
    assert_true(recalls(&fixture, 3, 40, 3, false));
    fixture.first = 12; /* the others are in pages */
    put_head(&fixture);
    commit(&fixture, SPILL_OK);
    assert_true(recalls_nothing(&fixture, 30, 40));
    assert_true(recalls(&fixture, 30, 18, 18, true));
    assert_true(recalls_nothing(&fixture, 12, 1));
    fixture.watermark = 12; /* they are trimmed */
    put_head(&fixture);
    commit(&fixture, SPILL_OK);
    assert_true(recalls(&fixture, 30, 40, 18, false));
    assert_true(recalls(&fixture, 30, 18, 18, false));
    close_cache(&fixture);
}

/* Elements below the highest deleted number are left to a READ. */
static void recalls_no_deleted_number(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_tail_ticket_t ticket;
    open_cache(&fixture, LARGE);
    spill_request_t request = newest(&fixture, 29);
    assert_false(look_up(&fixture, &request, &ticket));
    fixture.response.state = head_of(&fixture);
    spill_seqs_insert(&fixture.response.state.deleted, 0);
    spill_seqs_insert(&fixture.response.state.deleted, 20);
    fixture.response.state.live -= 2;
    for (int64_t seq = 29; seq > 0; seq--) {
        uint8_t bytes[ELEMENT_BYTES];
        spill_value_t value = element_of(bytes, seq, 1);
        if (seq != 20)
            spill_run_add(&fixture.response.run, seq, &value);
    }
    spill_tail_cache_fill(fixture.cache, &fixture.owner, &request, &fixture.response, &ticket);
    assert_true(recalls(&fixture, 30, 9, 9, true));
    assert_true(recalls_nothing(&fixture, 30, 10));
    assert_true(recalls_nothing(&fixture, 20, 1));
    assert_true(look_up(&fixture, &request, &ticket));
    assert_int_equal(fixture.response.run.count, 28);
    close_cache(&fixture);
}

/* A slice has room for the last answer of its shard. A larger one is answered, too. */
static void recalls_more_bytes_than_the_last_time(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 30);
    assert_true(recalls(&fixture, 30, 1, 1, true));
    assert_true(recalls(&fixture, 30, 20, 20, true));
    assert_true(recalls(&fixture, 30, 2, 2, true));
    assert_int_equal(fixture.counts.tail_hits, 3);
    close_cache(&fixture);
}

/* A read of anything else is not answered, and does not count. */
static void leaves_other_reads_to_the_engine(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_tail_ticket_t ticket;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    spill_request_t request = newest(&fixture, 5);
    request.read.want = SPILL_WANT_FORWARD;
    assert_false(look_up(&fixture, &request, &ticket));
    request = newest(&fixture, 5);
    request.page = 0;
    assert_false(look_up(&fixture, &request, &ticket));
    request = newest(&fixture, 5);
    request.read.want_ops = true;
    assert_false(look_up(&fixture, &request, &ticket));
    request = newest(&fixture, 5);
    request.read.want_fields = true;
    assert_false(look_up(&fixture, &request, &ticket));
    assert_int_equal(fixture.counts.tail_misses, 1);
    close_cache(&fixture);
}

static void follows_appends(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    for (int i = 0; i < 200; i++) {
        append(&fixture, i % 5 + 1);
        if (i % 3 == 0)
            append(&fixture, 2); /* two jobs in one batch */
        commit(&fixture, SPILL_OK);
        assert_true(hits(&fixture, 20));
    }
    append(&fixture, 300); /* more than an entry has */
    commit(&fixture, SPILL_OK);
    assert_true(hits(&fixture, 20));
    assert_true(fixture.counts.tail_bytes < (int64_t)40 * 2 * ELEMENT_BYTES);
    close_cache(&fixture);
}

/* A capped array deletes its oldest element with each append. */
static void follows_deletions_of_the_oldest(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 30);
    for (int i = 0; i < 100; i++) {
        int64_t oldest = fixture.first++;
        append(&fixture, 1);
        delete_element(&fixture, oldest);
        commit(&fixture, SPILL_OK);
        assert_true(hits(&fixture, 30));
    }
    fixture.first += 10; /* a cut: elements leave the head and stay in the engine */
    put_head(&fixture);
    commit(&fixture, SPILL_OK);
    assert_true(hits(&fixture, 30));
    close_cache(&fixture);
}

static void drops_an_entry_whose_elements_change(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    put_head(&fixture);
    put_element(&fixture, 5); /* not cached */
    commit(&fixture, SPILL_OK);
    assert_true(hits(&fixture, 20));
    fixture.version = 2;
    put_head(&fixture);
    put_element(&fixture, 15);
    commit(&fixture, SPILL_OK);
    assert_false(hits(&fixture, 1));
    miss_and_fill(&fixture, 20);
    delete_element(&fixture, 20);
    commit(&fixture, SPILL_OK);
    assert_false(hits(&fixture, 1));
    miss_and_fill(&fixture, 20);
    spill_record_key_kind(&fixture.owner, SPILL_RECORD_HEAD);
    spill_batch_delete(&fixture.batch, fixture.owner.data, fixture.owner.size);
    commit(&fixture, SPILL_OK);
    assert_false(hits(&fixture, 1));
    assert_true(fixture.counts.tail_bytes < ELEMENT_BYTES * 20);
    close_cache(&fixture);
}

/* An incarnation that begins in the same batch as the last one ends. */
static void never_joins_incarnations(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    put_head(&fixture);
    spill_record_key_element(&fixture.owner, INCARNATION + 1, 30);
    spill_batch_put(&fixture.batch, fixture.owner.data, fixture.owner.size, "\3abc", 4);
    commit(&fixture, SPILL_OK);
    assert_false(hits(&fixture, 1));
    close_cache(&fixture);
}

static void a_range_of_owners_drops_all(void **state)
{
    (void)state;
    fixture_t fixture;
    uint8_t from[4], to[5] = {0, 0, 0, 7, 0xff};
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    spill_request_t request = newest(&fixture, 30);
    spill_tail_ticket_t before;
    assert_false(look_up(&fixture, &request, &before));
    spill_id_prefix(from, 7);
    spill_batch_delete_range(&fixture.batch, from, sizeof from, to, sizeof to);
    commit(&fixture, SPILL_OK);
    assert_false(hits(&fixture, 1));
    fill(&fixture, &request, &before);
    assert_false(hits(&fixture, 1));
    miss_and_fill(&fixture, 20);
    assert_true(hits(&fixture, 20));
    close_cache(&fixture);
}

/* What was read before a change began, or while it was written, is not cached after it. */
static void refuses_old_answers(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_tail_ticket_t before, during;
    open_cache(&fixture, LARGE);
    spill_request_t request = newest(&fixture, 20);
    assert_false(look_up(&fixture, &request, &before));
    append(&fixture, 1);
    spill_tail_cache_begin(fixture.cache, &fixture.batch);
    assert_false(look_up(&fixture, &request, &during));
    assert_false(during.open);
    fill(&fixture, &request, &before);
    fill(&fixture, &request, &during);
    spill_tail_cache_end(fixture.cache, &fixture.batch, SPILL_OK);
    spill_batch_clear(&fixture.batch);
    assert_false(hits(&fixture, 1));
    fill(&fixture, &request, &before);
    fill(&fixture, &request, &during);
    assert_false(hits(&fixture, 1));
    miss_and_fill(&fixture, 20);
    assert_true(hits(&fixture, 20));
    close_cache(&fixture);
}

static void a_failed_write_drops_the_entry(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, LARGE);
    miss_and_fill(&fixture, 20);
    append(&fixture, 1);
    commit(&fixture, SPILL_NO_SPACE);
    fixture.end--;
    assert_false(hits(&fixture, 1));
    miss_and_fill(&fixture, 20);
    assert_true(hits(&fixture, 20));
    append(&fixture, 1);
    commit(&fixture, SPILL_UNKNOWN); /* the engine may show it later */
    spill_request_t request = newest(&fixture, 20);
    spill_tail_ticket_t ticket;
    assert_false(look_up(&fixture, &request, &ticket));
    assert_false(ticket.open);
    fill(&fixture, &request, &ticket);
    assert_false(hits(&fixture, 1));
    close_cache(&fixture);
}

static void set_owner(fixture_t *fixture, int number)
{
    char name[24];
    bson_t storage = BSON_INITIALIZER;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    snprintf(name, sizeof name, "owner %d", number);
    spill_value_t owner = spill_value_from_utf8(&storage, name);
    assert_int_equal(spill_owner_key(&owner, &key, NULL), SPILL_OK);
    spill_record_key_init(&fixture->owner, 7, key.data, key.size);
    spill_buffer_release(&key);
    bson_destroy(&storage);
}

/* Entries that are read stay longer than others. */
static void evicts_at_its_bound(void **state)
{
    (void)state;
    enum { BYTES_MAX = 64 * 1024, OWNERS = 1000, READ = 10 };
    fixture_t fixture;
    int cached = 0;
    open_cache(&fixture, BYTES_MAX);
    for (int i = 0; i < OWNERS; i++) {
        set_owner(&fixture, i);
        miss_and_fill(&fixture, 10);
        if (!hits(&fixture, 10))
            miss_and_fill(&fixture, 10);
        assert_true(hits(&fixture, 10));
        assert_true(fixture.counts.tail_bytes <= BYTES_MAX);
        set_owner(&fixture, i % READ);
        if (i >= READ && !hits(&fixture, 10))
            miss_and_fill(&fixture, 10);
    }
    for (int i = 0; i < OWNERS; i++) {
        set_owner(&fixture, i);
        cached += hits(&fixture, 10);
    }
    assert_in_range(cached, BYTES_MAX / ELEMENT_BYTES / 20, BYTES_MAX / ELEMENT_BYTES / 10);
    close_cache(&fixture);
}

/* An owner that is read once evicts none. An owner that is missed again is admitted. */
static void a_full_cache_admits_owners_that_are_missed_again(void **state)
{
    (void)state;
    enum { BYTES_MAX = 64 * 1024, CACHED = 20, ONCE = 500 };
    fixture_t fixture;
    open_cache(&fixture, BYTES_MAX);
    int filled = 0;
    for (bool full = false; !full; filled++) {
        set_owner(&fixture, filled);
        miss_and_fill(&fixture, 10);
        full = !hits(&fixture, 10);
    }
    assert_true(filled > CACHED);
    for (int i = 0; i < ONCE; i++) {
        set_owner(&fixture, filled + i);
        miss_and_fill(&fixture, 10);
        assert_false(hits(&fixture, 10));
    }
    for (int i = 0; i < filled - 1; i++) {
        set_owner(&fixture, i);
        assert_true(hits(&fixture, 10));
    }
    set_owner(&fixture, filled + ONCE - 1);
    miss_and_fill(&fixture, 10);
    assert_true(hits(&fixture, 10));
    close_cache(&fixture);
}

static void does_not_keep_what_is_too_large(void **state)
{
    (void)state;
    fixture_t fixture;
    open_cache(&fixture, 6000);
    miss_and_fill(&fixture, 20);
    assert_false(hits(&fixture, 20));
    miss_and_fill(&fixture, 10);
    assert_true(hits(&fixture, 10));
    append(&fixture, 30); /* the entry would be too large, so it goes */
    commit(&fixture, SPILL_OK);
    assert_true(fixture.counts.tail_bytes <= 6000);
    close_cache(&fixture);
}

static void no_bytes_no_cache(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_tail_ticket_t ticket;
    open_cache(&fixture, 0);
    assert_null(fixture.cache);
    spill_request_t request = newest(&fixture, 20);
    assert_false(look_up(&fixture, &request, &ticket));
    fill(&fixture, &request, &ticket);
    append(&fixture, 1);
    commit(&fixture, SPILL_OK);
    assert_int_equal(fixture.counts.tail_misses, 0);
    close_cache(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_what_was_read),
        cmocka_unit_test(answers_older_elements_and_states),
        cmocka_unit_test(recalls_elements_that_it_has),
        cmocka_unit_test(recalls_short_reads_of_whole_arrays_only),
        cmocka_unit_test(recalls_no_deleted_number),
        cmocka_unit_test(recalls_more_bytes_than_the_last_time),
        cmocka_unit_test(leaves_other_reads_to_the_engine),
        cmocka_unit_test(follows_appends),
        cmocka_unit_test(follows_deletions_of_the_oldest),
        cmocka_unit_test(drops_an_entry_whose_elements_change),
        cmocka_unit_test(never_joins_incarnations),
        cmocka_unit_test(a_range_of_owners_drops_all),
        cmocka_unit_test(refuses_old_answers),
        cmocka_unit_test(a_failed_write_drops_the_entry),
        cmocka_unit_test(evicts_at_its_bound),
        cmocka_unit_test(a_full_cache_admits_owners_that_are_missed_again),
        cmocka_unit_test(does_not_keep_what_is_too_large),
        cmocka_unit_test(no_bytes_no_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
