/*
 * Adopting an unmanaged array and cutting it in one update, for full documents; pages with a lease.
 */
#include "suite.h"
#include "unmanaged.h"

#include "util/clock.h"

#define HOUR_US ((int64_t)3600 * 1000000)

static int64_t in_an_hour(void)
{
    return spill_clock_now_us(NULL) + HOUR_US;
}

/* Copy the numbers label, label + 1, ... to page `page`, with sequence numbers from `first`. */
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
    spill_request_t adopt = make_request(fixture, SPILL_REQUEST_ADOPT_SPLIT, SPILL_HEAD);
    adopt.adopt.until = in_an_hour();
    adopt.adopt.slots = (int64_t)run->count;
    adopt.adopt.run = run;
    return adopt;
}

/* Write the unmanaged array 100 .. 104, and copy its first two elements to page 0. */
static void open_copied(fixture_t *fixture, fixture_t *other, const contract_kind_t *kind,
                        spill_run_t *run, int64_t lease)
{
    open_both(fixture, other, kind);
    write_unmanaged(fixture, other, 5);
    *run = numbers_run(100, 2);
    spill_request_t put = make_copy(fixture, 0, 0, run, lease);
    assert_done(fixture, &put);
}

static void adopt_split_leaves_out_copied_elements(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    spill_request_t adopt = make_adopt_split(&fixture, &run);
    assert_done(&fixture, &adopt);
    assert_refused(&fixture, &adopt); /* it is managed now */
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    assert_ops(&fixture, SPILL_HEAD, "");
    append_numbers(&fixture, SPILL_HEAD, 105, 1);
    fixture_reopen(&fixture);
    other.store = fixture.store;
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104 5=105");
    assert_sound(&fixture);
    /* It continues like any other array. */
    spill_page(&fixture, 1, 2);
    assert_document(&fixture, 1, "rev+1 first=2 page=1 src+1 | 2=102 3=103");
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=4 pages=2 | 4=104 5=105");
    spill_run_release(&run);
    close_both(&fixture, &other);
}

static void adopt_split_cuts_several_pages(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    spill_run_t next = numbers_run(102, 1), all = numbers_run(100, 3);
    next.entries[0].seq = 2;
    spill_request_t put = make_copy(&fixture, 1, 2, &next, in_an_hour());
    assert_done(&fixture, &put);
    spill_request_t adopt = make_adopt_split(&fixture, &all);
    adopt.adopt.more_pages = 1;
    assert_done(&fixture, &adopt);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 pages=2 | 3=103 4=104");
    assert_document(&fixture, 1, "rev+0 first=2 page=1 | 2=102");
    assert_sound(&fixture);
    spill_run_release(&run);
    spill_run_release(&next);
    spill_run_release(&all);
    close_both(&fixture, &other);
}

/* Break each guard, one after the other. */
static void adopt_split_checks_lease_and_first_elements(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    spill_run_t run = numbers_run(100, 2), changed = numbers_run(101, 2),
                whole = numbers_run(100, 5);
    spill_request_t adopt = make_adopt_split(&fixture, &run);
    assert_refused(&fixture, &adopt); /* no document */
    write_unmanaged(&fixture, &other, 0);
    assert_refused(&fixture, &adopt);
    write_unmanaged(&fixture, &other, 5);
    adopt.adopt.until = spill_clock_now_us(NULL) - HOUR_US;
    assert_refused(&fixture, &adopt);
    adopt = make_adopt_split(&fixture, &changed);
    assert_refused(&fixture, &adopt);
    adopt = make_adopt_split(&fixture, &whole); /* at least one element stays in the head */
    assert_refused(&fixture, &adopt);
    adopt = make_adopt_split(&fixture, &run);
    assert_done(&fixture, &adopt);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104");
    spill_run_release(&run);
    spill_run_release(&changed);
    spill_run_release(&whole);
    close_both(&fixture, &other);
}

/* A later incarnation existed and has ended. */
static void adopt_split_refuses_ended_incarnation(void **state)
{
    fixture_t fixture, other;
    spill_run_t run;
    open_copied(&fixture, &other, *state, &run, in_an_hour());
    fixture_owner(&fixture, "bob");
    append_numbers(&fixture, SPILL_HEAD, 1, 1);
    drop_head(&fixture, INCARNATION, 0);
    fixture_owner(&fixture, "ada");
    spill_request_t adopt = make_adopt_split(&fixture, &run);
    assert_refused(&fixture, &adopt);
    /* A copy that is made now belongs to a later incarnation. */
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

static void page_stays_until_lease_ends(void **state)
{
    for (int over = 0; over < 2; over++) {
        fixture_t fixture, other;
        spill_run_t run;
        open_copied(&fixture, &other, *state, &run, over ? INCARNATION : in_an_hour());
        spill_run_t later = numbers_run(200, 1);
        spill_request_t copy = make_copy(&fixture, 0, 0, &later, in_an_hour());
        copy.incarnation = INCARNATION + 7;
        assert_refused(&fixture, &copy); /* only if no page exists */
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

static void read_returns_lease_of_page(void **state)
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
        /* the lease is given up */
        spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, 0);
        seal.seal.close = true;
        assert_int_equal(call(&fixture, &seal), closed ? SPILL_REFUSED_GUARD : SPILL_DONE);
        fixture_reopen(&fixture);
        other.store = fixture.store;
    }
    spill_run_release(&run);
    close_both(&fixture, &other);
}

static void unmanaged_array_can_be_read(void **state)
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
    spill_request_t adopt = make_adopt(&fixture);
    assert_done(&fixture, &adopt);
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.run.count, 3);
    close_both(&fixture, &other);
}

/* A server refuses this by itself. */
static void adopt_needs_room_in_document(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t adopt = make_adopt(&fixture);
    adopt.limits.bytes_max = 10;
    if (strcmp(fixture.store->ops->name, "mongodb") != 0)
        assert_int_equal(fixture.store->ops->call(fixture.store, &adopt, &fixture.response, NULL),
                         SPILL_TOO_BIG);
    adopt.limits.bytes_max = INT64_MAX;
    assert_done(&fixture, &adopt);
    close_both(&fixture, &other);
}

void add_full_tests(suite_t *suite)
{
    SUITE_ADD(suite, adopt_split_leaves_out_copied_elements);
    SUITE_ADD(suite, adopt_split_cuts_several_pages);
    SUITE_ADD(suite, adopt_split_checks_lease_and_first_elements);
    SUITE_ADD(suite, adopt_split_refuses_ended_incarnation);
    SUITE_ADD(suite, page_stays_until_lease_ends);
    SUITE_ADD(suite, read_returns_lease_of_page);
    SUITE_ADD(suite, unmanaged_array_can_be_read);
    SUITE_ADD(suite, adopt_needs_room_in_document);
}
