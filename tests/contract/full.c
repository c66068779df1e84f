/* Arrays of other programs that are taken over and cut in one update; pages with a lease. */
#include "suite.h"
#include "unmanaged.h"

#include "util/clock.h"

#define HOUR_US ((int64_t)3600 * 1000000)

static int64_t in_an_hour(void)
{
    return spill_clock_now_us(NULL) + HOUR_US;
}

/* Page `page` with the numbers label, label + 1, ... from `first` on. */
static spill_request_t make_copy(const fixture_t *fixture, int64_t page, int64_t first,
                                 const spill_run_t *run, int64_t lease)
{
    spill_request_t put = make_request(fixture, SPILL_REQUEST_PUT_PAGE, page);
    put.create = true;
    put.put_page.lease = lease;
    put.put_page.first = first;
    put.put_page.slots = (int64_t)run->count;
    put.put_page.run = run;
    return put;
}

static spill_request_t make_adopt_split(const fixture_t *fixture, const spill_run_t *run)
{
    spill_request_t take = make_request(fixture, SPILL_REQUEST_ADOPT_SPLIT, SPILL_HEAD);
    take.adopt.until = in_an_hour();
    take.adopt.slots = (int64_t)run->count;
    take.adopt.run = run;
    return take;
}

/* The array 100 .. 104, of which page 0 has a copy of the first two elements. */
static void open_copied(fixture_t *fixture, fixture_t *other, const contract_kind_t *kind,
                        spill_run_t *run, int64_t lease)
{
    open_both(fixture, other, kind);
    write_unmanaged(fixture, other, 5);
    *run = numbers_run(100, 2);
    spill_request_t put = make_copy(fixture, 0, 0, run, lease);
    assert_done(fixture, &put);
}

static void an_array_is_taken_without_what_a_page_has(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    spill_request_t take = make_adopt_split(&fixture, &run);
    assert_done(&fixture, &take);
    assert_refused(&fixture, &take); /* it is ours */
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    assert_ops(&fixture, SPILL_HEAD, "");
    append_numbers(&fixture, SPILL_HEAD, 105, 1);
    fixture_reopen(&fixture);
    other.store = fixture.store;
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104 5=105");
    assert_sound(&fixture);
    /* It goes on as any other. */
    spill_page(&fixture, 1, 2);
    assert_document(&fixture, 1, "rev+1 first=2 page=1 src+1 | 2=102 3=103");
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=4 pages=2 | 4=104 5=105");
    spill_run_release(&run);
    close_both(&fixture, &other);
}

static void what_is_in_several_pages_is_taken_off_at_once(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    spill_run_t next = numbers_run(102, 1), all = numbers_run(100, 3);
    next.entries[0].seq = 2;
    spill_request_t put = make_copy(&fixture, 1, 2, &next, in_an_hour());
    assert_done(&fixture, &put);
    spill_request_t take = make_adopt_split(&fixture, &all);
    take.adopt.more_pages = 1;
    assert_done(&fixture, &take);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 pages=2 | 3=103 4=104");
    assert_document(&fixture, 1, "rev+0 first=2 page=1 | 2=102");
    assert_sound(&fixture);
    spill_run_release(&run);
    spill_run_release(&next);
    spill_run_release(&all);
    close_both(&fixture, &other);
}

/* Each of its guards, one after the other. */
static void only_an_array_that_begins_so_is_taken_in_time(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    spill_run_t run = numbers_run(100, 2), changed = numbers_run(101, 2),
                whole = numbers_run(100, 5);
    spill_request_t take = make_adopt_split(&fixture, &run);
    assert_refused(&fixture, &take); /* no document */
    write_unmanaged(&fixture, &other, 0);
    assert_refused(&fixture, &take);
    write_unmanaged(&fixture, &other, 5);
    take.adopt.until = spill_clock_now_us(NULL) - HOUR_US;
    assert_refused(&fixture, &take);
    take = make_adopt_split(&fixture, &changed);
    assert_refused(&fixture, &take);
    take = make_adopt_split(&fixture, &whole); /* one element stays, at least */
    assert_refused(&fixture, &take);
    take = make_adopt_split(&fixture, &run);
    assert_done(&fixture, &take);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104");
    spill_run_release(&run);
    spill_run_release(&changed);
    spill_run_release(&whole);
    close_both(&fixture, &other);
}

/* A later incarnation was there, and has ended. */
static void an_array_is_not_taken_for_an_incarnation_that_is_over(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    fixture_owner(&fixture, "bob");
    append_numbers(&fixture, SPILL_HEAD, 1, 1);
    drop_head(&fixture, INCARNATION, 0);
    fixture_owner(&fixture, "ada");
    spill_request_t take = make_adopt_split(&fixture, &run);
    assert_refused(&fixture, &take);
    /* A copy that is made now is of a later one. */
    spill_request_t put = make_copy(&fixture, 1, 2, &run, in_an_hour());
    assert_done(&fixture, &put);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, 1);
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.incarnation > INCARNATION);
    assert_int_equal(fixture.response.state.source_rev, fixture.response.state.incarnation);
    spill_run_release(&run);
    close_both(&fixture, &other);
}

static spill_request_t make_on_page(const fixture_t *fixture, spill_request_kind_t kind)
{
    spill_request_t request = make_request(fixture, kind, 0);
    request.incarnation = INCARNATION + 7;
    if (kind == SPILL_REQUEST_EMPTY_PAGE)
        request.incarnation = INCARNATION;
    return request;
}

static void a_page_stays_while_its_lease_runs(void **state)
{
    for (int over = 0; over < 2; over++) {
        fixture_t fixture, other;
        spill_run_t run;
        open_copied(&fixture, &other, *state, &run, over ? INCARNATION : in_an_hour());
        spill_run_t later = numbers_run(200, 1);
        spill_request_t copy = make_copy(&fixture, 0, 0, &later, in_an_hour());
        copy.incarnation = INCARNATION + 7;
        assert_refused(&fixture, &copy); /* in a free place alone */
        spill_request_t put = make_on_page(&fixture, SPILL_REQUEST_PUT_PAGE);
        put.put_page.source_rev = INCARNATION + 9;
        put.put_page.slots = 1;
        put.put_page.run = &later;
        spill_request_t empty = make_on_page(&fixture, SPILL_REQUEST_EMPTY_PAGE);
        spill_request_t drop = make_on_page(&fixture, SPILL_REQUEST_DROP_PAGE);
        if (over) {
            assert_done(&fixture, &put);
            assert_document(&fixture, 0, "rev+2 epoch=1007 src+2 | 0=200");
            assert_done(&fixture, &drop);
            put = make_copy(&fixture, 0, 0, &run, INCARNATION);
            assert_done(&fixture, &put);
            assert_done(&fixture, &empty);
            assert_document(&fixture, 0, "absent");
        } else {
            assert_refused(&fixture, &put);
            assert_refused(&fixture, &empty);
            assert_refused(&fixture, &drop);
            fixture_reopen(&fixture);
            other.store = fixture.store;
            assert_refused(&fixture, &drop);
            assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
        }
        spill_run_release(&later);
        spill_run_release(&run);
        close_both(&fixture, &other);
    }
}

static void who_reads_a_page_sees_its_lease(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    int64_t lease = in_an_hour(), before = spill_clock_now_us(NULL) - HOUR_US / 2;
    open_copied(&fixture, &other, *state, &run, lease);
    for (int closed = 0; closed < 2; closed++) {
        spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, 0);
        read.read.want_now = true;
        assert_done(&fixture, &read);
        assert_true(fixture.response.state.lease == lease);
        assert_true(fixture.response.now_us > before && fixture.response.now_us < lease);
        assert_int_equal(fixture.response.state.closed, closed);
        read.page = SPILL_PAGE_LEFT_OVER;
        assert_done(&fixture, &read);
        assert_true(fixture.response.state.lease == lease);
        assert_true(fixture.response.now_us > before);
        spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, 0); /* it is given up */
        seal.seal.close = true;
        assert_int_equal(call(&fixture, &seal), closed ? SPILL_REFUSED_GUARD : SPILL_DONE);
        fixture_reopen(&fixture);
        other.store = fixture.store;
    }
    spill_run_release(&run);
    close_both(&fixture, &other);
}

static void an_array_of_others_can_be_read(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.unmanaged = true;
    read.read.want_now = true;
    assert_done(&fixture, &read);
    assert_false(fixture.response.state.present);
    assert_int_equal(fixture.response.state.live, 5);
    assert_int_equal(fixture.response.state.live_bytes, 40);
    assert_int_equal(fixture.response.run.count, 0);
    assert_true(fixture.response.now_us > 0);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 3;
    assert_done(&fixture, &read);
    assert_int_equal(fixture.response.run.count, 3);
    for (size_t i = 0; i < 3; i++) {
        int64_t number = 100 + (int64_t)i;
        spill_value_t expected = number_value(&number);
        spill_element_t element = spill_run_element(&fixture.response.run, i);
        assert_int_equal(element.seq, i);
        assert_true(spill_value_equal(&element.value, &expected));
    }
    spill_request_t take = make_adopt(&fixture);
    assert_done(&fixture, &take);
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.run.count, 3);
    close_both(&fixture, &other);
}

/* What a server refuses by itself. */
static void an_array_in_a_document_without_room_is_not_taken_as_it_is(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t take = make_adopt(&fixture);
    take.limits.bytes_max = 10;
    if (strcmp(fixture.store->ops->name, "mongodb") != 0)
        assert_int_equal(fixture.store->ops->call(fixture.store, &take, &fixture.response, NULL),
                         SPILL_TOO_BIG);
    take.limits.bytes_max = INT64_MAX;
    assert_done(&fixture, &take);
    close_both(&fixture, &other);
}

void add_full_tests(suite_t *suite)
{
    SUITE_ADD(suite, an_array_is_taken_without_what_a_page_has);
    SUITE_ADD(suite, what_is_in_several_pages_is_taken_off_at_once);
    SUITE_ADD(suite, only_an_array_that_begins_so_is_taken_in_time);
    SUITE_ADD(suite, an_array_is_not_taken_for_an_incarnation_that_is_over);
    SUITE_ADD(suite, a_page_stays_while_its_lease_runs);
    SUITE_ADD(suite, who_reads_a_page_sees_its_lease);
    SUITE_ADD(suite, an_array_of_others_can_be_read);
    SUITE_ADD(suite, an_array_in_a_document_without_room_is_not_taken_as_it_is);
}
