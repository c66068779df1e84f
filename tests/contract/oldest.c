#include "suite.h"

static void seal_document(fixture_t *fixture, int64_t page)
{
    spill_request_t request = make_request(fixture, SPILL_REQUEST_SEAL, page);
    assert_done(fixture, &request);
}

static void create_page(fixture_t *fixture, int64_t page, int64_t first)
{
    spill_request_t create = make_request(fixture, SPILL_REQUEST_CREATE_PAGE, page);
    create.create_page.first = first;
    assert_done(fixture, &create);
}

/* A sealed head with elements 0 1 2, a sealed page 0 with 3 4 5, an open page 1 with 6 7. */
static void open_long_array(fixture_t *fixture, void **state)
{
    fixture_open(fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(fixture, SPILL_HEAD, 100, 3);
    seal_document(fixture, SPILL_HEAD);
    create_page(fixture, 0, 3);
    append_numbers(fixture, 0, 103, 3);
    seal_document(fixture, 0);
    create_page(fixture, 1, 6);
    append_numbers(fixture, 1, 106, 2);
    spill_request_t advance = make_request(fixture, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
    advance.advance.pages = 2;
    advance.advance.total = 6;
    assert_done(fixture, &advance);
}

/* ---- moving to the next page ----------------------------------------------------------------- */

static void array_continues_in_pages(void **state)
{
    fixture_t fixture;
    open_long_array(&fixture, state);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+1 sealed pages=2 total=6 | 0=100 1=101 2=102");
    assert_document(&fixture, 0, "rev+1 first=3 sealed | 3=103 4=104 5=105");
    assert_document(&fixture, 1, "rev+0 first=6 page=1 | 6=106 7=107");
    append_numbers(&fixture, 1, 108, 1);
    assert_document(&fixture, 1, "rev+0 first=6 page=1 | 6=106 7=107 8=108");
    fixture_close(&fixture);
}

/* As in the preset sales: a seal then writes only its own field. */
static void page_without_count_is_sealed(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    fixture.definition.page_count[0] = '\0';
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    seal_document(&fixture, SPILL_HEAD);
    create_page(&fixture, 0, 3);
    append_numbers(&fixture, 0, 103, 2);
    seal_document(&fixture, 0);
    assert_document(&fixture, 0, "rev+1 first=3 sealed | 3=103 4=104");
    fixture_close(&fixture);
}

static void seal_happens_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, SPILL_HEAD);
    assert_refused(&fixture, &seal); /* no head */
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    seal.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &seal);
    seal.incarnation = INCARNATION;
    assert_done(&fixture, &seal);
    assert_refused(&fixture, &seal);
    assert_document(&fixture, SPILL_HEAD, "rev+1 sealed pages=1 total=2 | 0=100 1=101");
    fixture_close(&fixture);
}

static void empty_page_is_closed_but_not_sealed(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    seal_document(&fixture, SPILL_HEAD);
    create_page(&fixture, 0, 2);
    spill_request_t seal = make_request(&fixture, SPILL_REQUEST_SEAL, 0);
    assert_refused(&fixture, &seal);
    seal.seal.close = true;
    assert_done(&fixture, &seal);
    assert_refused(&fixture, &seal);
    assert_document(&fixture, 0, "rev+1 first=2 sealed closed |");
    fixture_close(&fixture);
}

static void page_is_created_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    seal_document(&fixture, SPILL_HEAD);
    create_page(&fixture, 0, 2);
    append_numbers(&fixture, 0, 102, 1);
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    create.create_page.first = 2;
    assert_refused(&fixture, &create);
    create.incarnation = INCARNATION - 1;
    assert_refused(&fixture, &create);
    assert_document(&fixture, 0, "rev+0 first=2 | 2=102");
    create.incarnation = INCARNATION + 20; /* by a later incarnation */
    assert_done(&fixture, &create);
    assert_document(&fixture, 0, "rev+0 epoch=1020 first=2 |");
    fixture_close(&fixture);
}

static void page_continues_operation_window(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    seal_document(&fixture, SPILL_HEAD);
    spill_ops_t ops = {0};
    spill_op_entry_t entry = {.ordinal = 3, .seq = 0, .count = 1, .id_bytes = 1, .id = "p"};
    spill_ops_push(&ops, &entry, 3);
    entry = (spill_op_entry_t){.ordinal = 4, .seq = 1, .count = 1, .id_bytes = 1, .id = "q"};
    spill_ops_push(&ops, &entry, 3);
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    create.create_page.first = 2;
    create.create_page.ops = &ops;
    create.create_page.op_count = 5;
    assert_done(&fixture, &create);
    assert_ops(&fixture, 0, "p@3:0+1 q@4:1+1");

    int64_t number = 1;
    spill_value_t element = number_value(&number);
    spill_op_t op = {.id = "q", .id_bytes = 1, .base = 4};
    spill_request_t append = make_append(&fixture, 0, &element, 1);
    append.append.op = &op;
    assert_refused(&fixture, &append);
    op.id = "r";
    op.base = 2;
    assert_refused(&fixture, &append); /* op_count is 5, base + window is 5, too */
    op.base = 3;
    assert_done(&fixture, &append);
    fixture_reopen(&fixture);
    assert_ops(&fixture, 0, "p@3:0+1 q@4:1+1 r@5:2+1");
    assert_document(&fixture, 0, "rev+0 first=2 n=6 | 2=1");
    spill_ops_release(&ops);
    fixture_close(&fixture);
}

static void head_only_advances(void **state)
{
    fixture_t fixture;
    open_long_array(&fixture, state);
    spill_request_t advance = make_request(&fixture, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
    advance.advance.pages = 1;
    advance.advance.total = 3;
    assert_done(&fixture, &advance);
    assert_document(&fixture, SPILL_HEAD, "rev+1 sealed pages=2 total=6 | 0=100 1=101 2=102");
    advance.advance.pages = 3;
    advance.advance.total = 8;
    advance.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &advance);
    advance.incarnation = INCARNATION;
    assert_done(&fixture, &advance);
    assert_document(&fixture, SPILL_HEAD, "rev+1 sealed pages=3 total=8 | 0=100 1=101 2=102");
    fixture_close(&fixture);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void removals_keep_their_slots(void **state)
{
    fixture_t fixture;
    open_long_array(&fixture, state);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + 1;
    remove.change.seq = 0;
    assert_done(&fixture, &remove);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+2 gone=0 sealed pages=2 removed=1 total=6 | 1=101 2=102");
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = INCARNATION + 2;
    prepare.change.seq = 5;
    prepare.change.intent_page = 0;
    assert_done(&fixture, &prepare);
    spill_request_t pull = make_request(&fixture, SPILL_REQUEST_DELETE, 0);
    pull.change.seq = 5;
    assert_done(&fixture, &pull);
    pull.page = 1;
    pull.change.seq = 7;
    assert_done(&fixture, &pull);
    append_numbers(&fixture, 1, 108, 1);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+3 gone=0 sealed pages=2 removed=2 total=6 intent=5@0 | 1=101 2=102");
    assert_document(&fixture, 0, "rev+2 first=3 gone=5 sealed | 3=103 4=104");
    assert_document(&fixture, 1, "rev+1 first=6 gone=7 page=1 | 6=106 8=108");
    fixture_close(&fixture);
}

static void trim_keeps_later_elements_of_head(void **state)
{
    fixture_t fixture;
    open_long_array(&fixture, state);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + 1;
    remove.change.seq = 1;
    assert_done(&fixture, &remove);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 2;
    trim.change.watermark = 1;
    trim.change.removed = 1;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+3 first=1 gone=1 sealed pages=2 removed=1 low=1 total=6 | 2=102");
    trim.rev = INCARNATION + 3;
    trim.change.watermark = 4;
    trim.change.removed = 0;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=3 sealed pages=2 low=4 total=6 |");
    fixture_close(&fixture);
}

static void trim_begins_an_empty_array(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_OLDEST);
    make_empty_head(&fixture);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION;
    trim.change.begins = true;
    trim.change.watermark = 1000;
    assert_done(&fixture, &trim);
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=1000 low=1000 | 1000=100 1001=101");
    fixture_reopen(&fixture);
    trim.rev = INCARNATION + 1;
    trim.change.end = 1002;
    trim.change.watermark = 2000;
    assert_refused(&fixture, &trim);
    fixture_close(&fixture);
}

static void page_below_watermark_is_emptied(void **state)
{
    fixture_t fixture;
    open_long_array(&fixture, state);
    spill_request_t empty = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, 1);
    assert_refused(&fixture, &empty); /* not sealed */
    empty.page = 0;
    empty.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &empty);
    empty.incarnation = INCARNATION;
    assert_done(&fixture, &empty);
    assert_done(&fixture, &empty);
    fixture_reopen(&fixture);
    assert_document(&fixture, 0, "rev+3 first=6 sealed |");
    assert_document(&fixture, 1, "rev+0 first=6 page=1 | 6=106 7=107");
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 0);
    assert_refused(&fixture, &create); /* its numbers are not assigned again */
    fixture_close(&fixture);
}

/* ---- dropping -------------------------------------------------------------------------------- */

/* The same array with its head dropped. */
static void open_dropped_array(fixture_t *fixture, void **state)
{
    open_long_array(fixture, state);
    drop_head(fixture, INCARNATION, 2);
}

static void dropped_page_leaves_tombstone(void **state)
{
    fixture_t fixture;
    open_dropped_array(&fixture, state);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 1);
    assert_done(&fixture, &drop);
    drop.page = 0;
    assert_done(&fixture, &drop);
    drop.page = 2;
    assert_refused(&fixture, &drop);
    assert_document(&fixture, SPILL_HEAD, "absent");
    assert_document(&fixture, 0, "rev+2 first=6 sealed closed |");
    assert_document(&fixture, 1, "rev+1 first=8 sealed closed page=1 |");
    spill_request_t create = make_request(&fixture, SPILL_REQUEST_CREATE_PAGE, 1);
    create.create_page.first = 6;
    assert_refused(&fixture, &create); /* a late request */
    create.incarnation = INCARNATION + 10;
    create.create_page.first = 4;
    assert_done(&fixture, &create);
    fixture_reopen(&fixture);
    assert_document(&fixture, 1, "rev+0 epoch=1010 first=4 page=1 |");
    fixture_close(&fixture);
}

/* Return the page that a READ of SPILL_PAGE_LEFT_OVER finds, or -1. */
static int64_t find_left_over(fixture_t *fixture)
{
    spill_request_t look = make_request(fixture, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    assert_done(fixture, &look);
    return fixture->response.state.present ? fixture->response.state.page : -1;
}

static void tombstones_are_not_left_over(void **state)
{
    fixture_t fixture;
    open_dropped_array(&fixture, state);
    int64_t first = find_left_over(&fixture);
    assert_in_range(first, 0, 1);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, first);
    assert_done(&fixture, &drop);
    assert_int_equal(find_left_over(&fixture), 1 - first);
    drop.page = 1 - first;
    assert_done(&fixture, &drop);
    assert_int_equal(find_left_over(&fixture), -1);
    fixture_close(&fixture);
}

static void later_owner_keeps_its_pages(void **state)
{
    fixture_t fixture;
    open_dropped_array(&fixture, state);
    begin_again(&fixture, 200, 4);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 0);
    assert_done(&fixture, &drop); /* a page of other elements: the head's number 3 is not in it */
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+0 epoch=1050 | 0=200 1=201 2=202 3=203");
    fixture_close(&fixture);
}

void add_oldest_tests(suite_t *suite)
{
    SUITE_ADD(suite, array_continues_in_pages);
    SUITE_ADD(suite, page_without_count_is_sealed);
    SUITE_ADD(suite, seal_happens_once);
    SUITE_ADD(suite, empty_page_is_closed_but_not_sealed);
    SUITE_ADD(suite, page_is_created_once);
    SUITE_ADD(suite, page_continues_operation_window);
    SUITE_ADD(suite, head_only_advances);
    SUITE_ADD(suite, removals_keep_their_slots);
    SUITE_ADD(suite, trim_keeps_later_elements_of_head);
    SUITE_ADD(suite, trim_begins_an_empty_array);
    SUITE_ADD(suite, page_below_watermark_is_emptied);
    SUITE_ADD(suite, dropped_page_leaves_tombstone);
    SUITE_ADD(suite, tombstones_are_not_left_over);
    SUITE_ADD(suite, later_owner_keeps_its_pages);
}
