#include "suite.h"

/* ---- putting and cutting pages --------------------------------------------------------------- */

static void page_is_put_and_cut(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102 3=103 4=104");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101 2=102");
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=3 pages=1 | 3=103 4=104");
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_REFUSED_GUARD);
    append_numbers(&fixture, SPILL_HEAD, 105, 1);
    spill_page(&fixture, 1, 2);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=5 pages=2 | 5=105");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101 2=102");
    assert_document(&fixture, 1, "rev+1 first=3 page=1 src+1 | 3=103 4=104");
    fixture_close(&fixture);
}

static void appends_do_not_disturb_a_spill(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    append_numbers(&fixture, SPILL_HEAD, 103, 1);
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103");
    fixture_close(&fixture);
}

static spill_request_t make_cut(const fixture_t *fixture)
{
    spill_request_t cut = make_request(fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION;
    cut.cut.slots = 2;
    cut.cut.bytes = 16;
    return cut;
}

static void cut_needs_copied_head(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    spill_request_t cut = make_cut(&fixture);
    cut.rev = INCARNATION + 1;
    assert_refused(&fixture, &cut);
    cut = make_cut(&fixture);
    cut.cut.pages = 1;
    assert_refused(&fixture, &cut);
    cut = make_cut(&fixture);
    cut.incarnation = INCARNATION - 1;
    assert_refused(&fixture, &cut);
    fixture_owner(&fixture, "bob");
    cut = make_cut(&fixture);
    assert_refused(&fixture, &cut); /* no head */
    fixture_owner(&fixture, "ada");
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    cut = make_cut(&fixture);
    assert_done(&fixture, &cut);
    fixture_close(&fixture);
}

static void page_is_replaced_only_by_later_copy(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_REFUSED_GUARD); /* the same source_rev */
    int64_t number = 201;
    spill_value_t element = number_value(&number);
    spill_request_t edit = make_request(&fixture, SPILL_REQUEST_EDIT, SPILL_HEAD);
    edit.rev = INCARNATION;
    edit.change.seq = 1;
    edit.change.element = &element;
    assert_done(&fixture, &edit);
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_REFUSED_GUARD);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    assert_document(&fixture, 0, "rev+1 src+1 | 0=100 1=201");
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=2 pages=1 | 2=102");
    fixture_close(&fixture);
}

static void removed_numbers_move_to_the_page(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 6);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    const int64_t removed[] = {1, 3, 4};
    for (int i = 0; i < 3; i++) {
        remove.rev = INCARNATION + i;
        remove.change.seq = removed[i];
        assert_done(&fixture, &remove);
    }
    assert_document(&fixture, SPILL_HEAD, "rev+3 gone=1,3,4 | 0=100 2=102 5=105");
    spill_page(&fixture, 0, 3);
    assert_document(&fixture, 0, "rev+3 gone=1 src+3 | 0=100 2=102");
    /* The page has 1 as a deleted number; 3 and 4 led the head and need not be remembered. */
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=5 pages=1 removed=3 | 5=105");
    fixture_close(&fixture);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void removal_in_head_happens_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION;
    remove.change.seq = 3;
    assert_refused(&fixture, &remove);
    remove.change.seq = -1;
    assert_refused(&fixture, &remove);
    remove.change.seq = 1;
    remove.rev = INCARNATION + 1;
    assert_refused(&fixture, &remove);
    remove.rev = INCARNATION;
    assert_done(&fixture, &remove);
    remove.rev = INCARNATION + 1;
    assert_refused(&fixture, &remove); /* already deleted */
    assert_document(&fixture, SPILL_HEAD, "rev+1 gone=1 | 0=100 2=102");
    remove.change.seq = 0;
    assert_done(&fixture, &remove);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=2 removed=2 | 2=102");
    remove.change.seq = 2;
    remove.rev = INCARNATION + 2;
    assert_done(&fixture, &remove);
    append_numbers(&fixture, SPILL_HEAD, 103, 1);
    assert_document(&fixture, SPILL_HEAD, "rev+3 first=3 removed=3 | 3=103");
    fixture_close(&fixture);
}

static void removal_in_page_takes_three_steps(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 4);
    spill_page(&fixture, 0, 3);
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = INCARNATION;
    prepare.change.seq = 1;
    prepare.change.intent_page = 0;
    assert_refused(&fixture, &prepare);
    prepare.rev = INCARNATION + 1;
    assert_done(&fixture, &prepare);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=3 pages=1 removed=1 intent=1@0 | 3=103");
    prepare.rev = INCARNATION + 2;
    assert_refused(&fixture, &prepare); /* a removal is in progress */

    spill_request_t pull = make_request(&fixture, SPILL_REQUEST_DELETE, 0);
    pull.change.seq = 1;
    pull.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &pull);
    pull.incarnation = INCARNATION;
    assert_done(&fixture, &pull);
    assert_refused(&fixture, &pull);
    pull.change.seq = 3;
    assert_refused(&fixture, &pull);
    assert_document(&fixture, 0, "rev+1 gone=1 | 0=100 2=102");

    spill_request_t complete = make_request(&fixture, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    complete.rev = INCARNATION + 2;
    complete.change.seq = 2;
    assert_refused(&fixture, &complete);
    complete.change.seq = 1;
    complete.change.intent_page = 1;
    assert_refused(&fixture, &complete);
    complete.change.intent_page = 0;
    assert_done(&fixture, &complete);
    complete.rev = INCARNATION + 3;
    assert_refused(&fixture, &complete);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+3 first=3 pages=1 removed=1 | 3=103");
    assert_document(&fixture, 0, "rev+1 gone=1 | 0=100 2=102");
    fixture_close(&fixture);
}

/* ---- editing --------------------------------------------------------------------------------- */

static spill_request_t make_edit(const fixture_t *fixture, int64_t page, int64_t seq,
                                 const spill_value_t *element)
{
    spill_request_t edit = make_request(fixture, SPILL_REQUEST_EDIT, page);
    edit.rev = INCARNATION;
    edit.change.seq = seq;
    edit.change.element = element;
    return edit;
}

/* A store may keep the page as a view of the head's records until the cut. */
static void page_that_is_not_cut_may_be_read(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION;
    remove.change.seq = 1;
    assert_done(&fixture, &remove);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, 0);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 10;
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.present);
    const spill_run_t *run = &fixture.response.run;
    assert_in_range(run->count, 2, 3);
    assert_int_equal(spill_run_element(run, 0).seq, 0);
    assert_int_equal(spill_run_element(run, run->count - 1).seq, 2);
    fixture_close(&fixture);
}

static void drop_of_a_page_that_is_not_cut_leaves_the_head(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 0);
    assert_done(&fixture, &drop);
    assert_document(&fixture, 0, "absent");
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102 3=103 4=104");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void edit_happens_once(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 4);
    spill_page(&fixture, 0, 2);
    int64_t number = 201;
    spill_value_t element = number_value(&number);
    spill_request_t edit = make_edit(&fixture, 0, 1, &element);
    assert_done(&fixture, &edit);
    assert_refused(&fixture, &edit);
    assert_document(&fixture, 0, "rev+1 | 0=100 1=201");
    edit.rev = INCARNATION + 1;
    edit.change.seq = 2;
    assert_refused(&fixture, &edit); /* the element is in the head */
    edit.page = SPILL_HEAD;
    assert_done(&fixture, &edit);
    edit.rev = INCARNATION + 2;
    edit.change.seq = 1;
    assert_refused(&fixture, &edit); /* the element is in the page */
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=2 pages=1 | 2=201 3=103");
    fixture_close(&fixture);
}

static void growing_edit_needs_room(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_value_t large = text_value(700, 'l'), small = text_value(50, 's');
    spill_value_t larger = text_value(2000, 'x');
    spill_value_t both[] = {large, large};
    spill_request_t append = make_append(&fixture, SPILL_HEAD, both, 2);
    append.create = true;
    assert_done(&fixture, &append);
    spill_request_t edit = make_edit(&fixture, SPILL_HEAD, 0, &larger);
    edit.limits.bytes_max = 1000; /* the document is over this bound already */
    assert_refused(&fixture, &edit);
    edit = make_edit(&fixture, SPILL_HEAD, 0, &small);
    edit.limits.bytes_max = 1000;
    assert_done(&fixture, &edit); /* a shrinking edit is always allowed */
    edit = make_edit(&fixture, SPILL_HEAD, 0, &large);
    edit.rev = INCARNATION + 1;
    edit.limits.bytes_max = 1000;
    assert_refused(&fixture, &edit);
    edit.limits.bytes_max = 2000;
    assert_done(&fixture, &edit);
    assert_document(&fixture, SPILL_HEAD, "rev+2 | 0=#700 1=#700");
    bson_free((void *)large.data);
    bson_free((void *)small.data);
    bson_free((void *)larger.data);
    fixture_close(&fixture);
}

/* ---- trimming and dropping ------------------------------------------------------------------- */

static void trim_raises_watermark_and_cuts_head(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 8);
    spill_page(&fixture, 0, 2);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + 1;
    remove.change.seq = 5;
    assert_done(&fixture, &remove);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 1;
    trim.change.watermark = 1;
    assert_refused(&fixture, &trim);
    trim.rev = INCARNATION + 2;
    assert_done(&fixture, &trim); /* inside the page: the head keeps its elements */
    assert_document(&fixture, SPILL_HEAD,
                    "rev+3 first=2 gone=5 pages=1 low=1 | 2=102 3=103 4=104 6=106 7=107");
    trim.rev = INCARNATION + 3;
    assert_refused(&fixture, &trim); /* the watermark is already there */
    trim.change.watermark = 5;
    assert_done(&fixture, &trim); /* 5 is deleted and leads now: it need not be remembered */
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=6 pages=1 removed=1 low=5 | 6=106 7=107");
    trim.rev = INCARNATION + 4;
    trim.change.watermark = 8;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD, "rev+5 first=8 pages=1 low=8 |");
    append_numbers(&fixture, SPILL_HEAD, 108, 1);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+5 first=8 pages=1 low=8 | 8=108");
    fixture_close(&fixture);
}

static void trim_is_refused_during_removal(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 4);
    spill_page(&fixture, 0, 3);
    spill_request_t prepare = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.rev = INCARNATION + 1;
    assert_done(&fixture, &prepare);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 2;
    trim.change.watermark = 2;
    assert_refused(&fixture, &trim);
    fixture_close(&fixture);
}

/* An array without elements may begin at a later number: an import gives elements their numbers. */
static void trim_begins_an_empty_array(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION;
    trim.change.begins = true;
    trim.change.watermark = 1000;
    assert_refused(&fixture, &trim); /* there is no head */
    make_empty_head(&fixture);
    trim.change.end = 1;
    assert_refused(&fixture, &trim);
    trim.change.end = 0;
    trim.rev = INCARNATION + 1;
    assert_refused(&fixture, &trim);
    trim.rev = INCARNATION;
    assert_done(&fixture, &trim);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=1000 low=1000 |");
    append_numbers(&fixture, SPILL_HEAD, 100, 2);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=1000 low=1000 | 1000=100 1001=101");
    trim.rev = INCARNATION + 1;
    trim.change.end = 1002;
    trim.change.watermark = 2000;
    assert_refused(&fixture, &trim); /* it has elements */
    trim.change.watermark = 1002;
    trim.change.begins = false;
    assert_done(&fixture, &trim);
    trim.rev = INCARNATION + 2;
    trim.change.begins = true;
    assert_refused(&fixture, &trim); /* not above its end */
    trim.change.watermark = 1005;
    assert_done(&fixture, &trim);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+3 first=1005 low=1005 |");
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_page(&fixture, 0, 3); /* its rev rises */
    trim.rev = INCARNATION + 4;
    trim.change.end = 1008;
    trim.change.watermark = 1010;
    assert_refused(&fixture, &trim); /* it has a page */
    assert_document(&fixture, 0, "rev+3 first=1005 src+3 | 1005=100 1006=101 1007=102");
    fixture_close(&fixture);
}

static void page_below_watermark_is_deleted(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 6);
    spill_page(&fixture, 0, 2);
    spill_page(&fixture, 1, 2);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 2;
    trim.change.watermark = 2;
    assert_done(&fixture, &trim);
    spill_request_t empty = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, 0);
    empty.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &empty);
    empty.incarnation = INCARNATION;
    assert_done(&fixture, &empty);
    assert_refused(&fixture, &empty);
    fixture_reopen(&fixture);
    assert_document(&fixture, 0, "absent");
    assert_document(&fixture, 1, "rev+1 first=2 page=1 src+1 | 2=102 3=103");
    fixture_close(&fixture);
}

static void dropped_head_leaves_other_fields(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    spill_page(&fixture, 0, 2);
    bson_t *update = BCON_NEW("$set", "{", "name", "Ada", "}");
    spill_request_t fields = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    fields.append.update = update;
    assert_done(&fixture, &fields);
    spill_request_t drop = make_request(&fixture, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.drop_head.pages = 0;
    assert_refused(&fixture, &drop);
    drop.drop_head.pages = 1;
    drop.incarnation = INCARNATION + 1;
    assert_refused(&fixture, &drop);
    drop.incarnation = INCARNATION;
    assert_done(&fixture, &drop);
    assert_refused(&fixture, &drop);
    assert_document(&fixture, SPILL_HEAD, "absent");
    assert_document(&fixture, 0, "rev+0 | 0=100 1=101");
    append_numbers(&fixture, SPILL_HEAD, 200, 1);
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\" }");
    bson_destroy(update);
    fixture_close(&fixture);
}

/*
 * Drop an owner with a page and leave the page over. Then create the owner again; its new elements
 * get the same numbers.
 */
static void drop_and_recreate(fixture_t *fixture)
{
    leave_page(fixture, 4);
    begin_again(fixture, 200, 3);
}

static void left_over_pages_are_found(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_request_t look = make_request(&fixture, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);
    drop_and_recreate(&fixture); /* from here on a page of the dropped incarnation exists */
    assert_done(&fixture, &look);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.state.page, 0);
    assert_int_equal(fixture.response.state.incarnation, INCARNATION);
    look.incarnation = INCARNATION - 1;
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);

    spill_page(&fixture, 0, 2); /* a page of the later owner replaces it */
    look.incarnation = INCARNATION;
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);
    fixture_owner(&fixture, "bob");
    look.owner = &fixture.owner;
    look.incarnation = INT64_MAX;
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);
    fixture_close(&fixture);
}

static void later_owner_starts_empty(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    drop_and_recreate(&fixture);
    spill_request_t drop_page = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, 0);
    drop_page.incarnation = INCARNATION - 1;
    assert_refused(&fixture, &drop_page);
    drop_page.incarnation = INCARNATION;
    assert_done(&fixture, &drop_page);
    assert_refused(&fixture, &drop_page);
    assert_document(&fixture, 0, "absent");
    assert_document(&fixture, SPILL_HEAD, "rev+0 epoch=1050 | 0=200 1=201 2=202");
    assert_fields(&fixture, "{ \"_id\" : \"ada\" }");
    spill_page(&fixture, 0, 2);
    assert_refused(&fixture, &drop_page);
    fixture_reopen(&fixture);
    assert_document(&fixture, 0, "rev+0 epoch=1050 | 0=200 1=201");
    fixture_close(&fixture);
}

static void left_over_page_is_replaced_by_later_owner(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    drop_and_recreate(&fixture);
    spill_page(&fixture, 0, 2);
    fixture_reopen(&fixture);
    assert_document(&fixture, 0, "rev+0 epoch=1050 | 0=200 1=201");
    assert_document(&fixture, SPILL_HEAD, "rev+1 epoch=1050 first=2 pages=1 | 2=202");
    append_numbers(&fixture, SPILL_HEAD, 203, 3);
    assert_document(&fixture, SPILL_HEAD,
                    "rev+1 epoch=1050 first=2 pages=1 | 2=202 3=203 4=204 5=205");
    fixture_close(&fixture);
}

void add_newest_tests(suite_t *suite)
{
    SUITE_ADD(suite, page_is_put_and_cut);
    SUITE_ADD(suite, appends_do_not_disturb_a_spill);
    SUITE_ADD(suite, cut_needs_copied_head);
    SUITE_ADD(suite, page_is_replaced_only_by_later_copy);
    SUITE_ADD(suite, removed_numbers_move_to_the_page);
    SUITE_ADD(suite, removal_in_head_happens_once);
    SUITE_ADD(suite, removal_in_page_takes_three_steps);
    SUITE_ADD(suite, page_that_is_not_cut_may_be_read);
    SUITE_ADD(suite, drop_of_a_page_that_is_not_cut_leaves_the_head);
    SUITE_ADD(suite, edit_happens_once);
    SUITE_ADD(suite, growing_edit_needs_room);
    SUITE_ADD(suite, trim_raises_watermark_and_cuts_head);
    SUITE_ADD(suite, trim_is_refused_during_removal);
    SUITE_ADD(suite, trim_begins_an_empty_array);
    SUITE_ADD(suite, page_below_watermark_is_deleted);
    SUITE_ADD(suite, dropped_head_leaves_other_fields);
    SUITE_ADD(suite, left_over_pages_are_found);
    SUITE_ADD(suite, later_owner_starts_empty);
    SUITE_ADD(suite, left_over_page_is_replaced_by_later_owner);
}
