#include "suite.h"

/* ---- putting and cutting --------------------------------------------------------------------- */

static void a_page_is_put_and_cut(void **state)
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

static void a_cut_needs_the_head_that_was_copied(void **state)
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
    assert_refused(&fixture, &cut); /* no head at all */
    fixture_owner(&fixture, "ada");
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    cut = make_cut(&fixture);
    assert_done(&fixture, &cut);
    fixture_close(&fixture);
}

static void a_page_gives_way_to_a_later_copy_only(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 3);
    assert_int_equal(put_from_head(&fixture, 0, 3), SPILL_DONE);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_REFUSED_GUARD); /* src is the same */
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
    /* 1 lies in the page; 3 and 4 were leading and folded away. */
    assert_document(&fixture, SPILL_HEAD, "rev+4 first=5 pages=1 removed=3 | 5=105");
    fixture_close(&fixture);
}

/* ---- removing -------------------------------------------------------------------------------- */

static void a_removal_in_the_head_happens_once(void **state)
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
    assert_refused(&fixture, &remove); /* gone */
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

static void a_removal_in_a_page_takes_three_steps(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 4);
    spill_page(&fixture, 0, 3);
    spill_request_t intend = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    intend.rev = INCARNATION;
    intend.change.seq = 1;
    intend.change.intent_page = 0;
    assert_refused(&fixture, &intend);
    intend.rev = INCARNATION + 1;
    assert_done(&fixture, &intend);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=3 pages=1 removed=1 intent=1@0 | 3=103");
    intend.rev = INCARNATION + 2;
    assert_refused(&fixture, &intend); /* one is under way */

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

    spill_request_t settle = make_request(&fixture, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    settle.rev = INCARNATION + 2;
    settle.change.seq = 2;
    assert_refused(&fixture, &settle);
    settle.change.seq = 1;
    settle.change.intent_page = 1;
    assert_refused(&fixture, &settle);
    settle.change.intent_page = 0;
    assert_done(&fixture, &settle);
    settle.rev = INCARNATION + 3;
    assert_refused(&fixture, &settle);
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

static void an_edit_happens_once(void **state)
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
    assert_refused(&fixture, &edit); /* it is in the head */
    edit.page = SPILL_HEAD;
    assert_done(&fixture, &edit);
    edit.rev = INCARNATION + 2;
    edit.change.seq = 1;
    assert_refused(&fixture, &edit); /* it is in the page */
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=2 pages=1 | 2=201 3=103");
    fixture_close(&fixture);
}

static void an_edit_needs_room_to_grow(void **state)
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
    edit.limits.bytes_max = 1000; /* which the document passes already */
    assert_refused(&fixture, &edit);
    edit = make_edit(&fixture, SPILL_HEAD, 0, &small);
    edit.limits.bytes_max = 1000;
    assert_done(&fixture, &edit); /* an edit that shrinks is always allowed */
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

static void a_trim_raises_low_and_cuts_the_head(void **state)
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
    assert_done(&fixture, &trim); /* inside the page: the head is as it was */
    assert_document(&fixture, SPILL_HEAD,
                    "rev+3 first=2 gone=5 pages=1 low=1 | 2=102 3=103 4=104 6=106 7=107");
    trim.rev = INCARNATION + 3;
    assert_refused(&fixture, &trim); /* low is there already */
    trim.change.watermark = 5;
    assert_done(&fixture, &trim); /* 5 is gone and leads now: it folds away */
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

static void a_trim_waits_for_an_intent(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 4);
    spill_page(&fixture, 0, 3);
    spill_request_t intend = make_request(&fixture, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    intend.rev = INCARNATION + 1;
    assert_done(&fixture, &intend);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION + 2;
    trim.change.watermark = 2;
    assert_refused(&fixture, &trim);
    fixture_close(&fixture);
}

static void a_page_below_low_is_deleted(void **state)
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

static void a_dropped_head_leaves_its_fields(void **state)
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
 * An owner with a page is dropped, and the page is left over. The owner is then made again, and
 * gives the same numbers to other elements.
 */
static void drop_and_begin_again(fixture_t *fixture)
{
    leave_page(fixture, 4);
    begin_again(fixture, 200, 3);
}

static void pages_left_over_are_found(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    spill_request_t look = make_request(&fixture, SPILL_REQUEST_READ, SPILL_PAGE_LEFT_OVER);
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);
    drop_and_begin_again(&fixture); /* from here on there is a page of the dropped incarnation */
    assert_done(&fixture, &look);
    assert_true(fixture.response.state.present);
    assert_int_equal(fixture.response.state.page, 0);
    assert_int_equal(fixture.response.state.incarnation, INCARNATION);
    look.incarnation = INCARNATION - 1;
    assert_done(&fixture, &look);
    assert_false(fixture.response.state.present);

    spill_page(&fixture, 0, 2); /* the later one's takes its place */
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

static void a_later_owner_has_nothing_of_an_earlier_one(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    drop_and_begin_again(&fixture);
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

static void a_page_left_over_gives_way_to_a_later_owner(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    drop_and_begin_again(&fixture);
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
    SUITE_ADD(suite, a_page_is_put_and_cut);
    SUITE_ADD(suite, appends_do_not_disturb_a_spill);
    SUITE_ADD(suite, a_cut_needs_the_head_that_was_copied);
    SUITE_ADD(suite, a_page_gives_way_to_a_later_copy_only);
    SUITE_ADD(suite, removed_numbers_move_to_the_page);
    SUITE_ADD(suite, a_removal_in_the_head_happens_once);
    SUITE_ADD(suite, a_removal_in_a_page_takes_three_steps);
    SUITE_ADD(suite, an_edit_happens_once);
    SUITE_ADD(suite, an_edit_needs_room_to_grow);
    SUITE_ADD(suite, a_trim_raises_low_and_cuts_the_head);
    SUITE_ADD(suite, a_trim_waits_for_an_intent);
    SUITE_ADD(suite, a_page_below_low_is_deleted);
    SUITE_ADD(suite, a_dropped_head_leaves_its_fields);
    SUITE_ADD(suite, pages_left_over_are_found);
    SUITE_ADD(suite, a_later_owner_has_nothing_of_an_earlier_one);
    SUITE_ADD(suite, a_page_left_over_gives_way_to_a_later_owner);
}
