/*
 * The rules of transition.c that the contract tests, which see a store from outside, do not cover:
 * the order of reasons, refusals that change nothing, revs of pages that are put again, deleted
 * numbers at the beginning, counting.
 */
#include "store/transition.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t owner_bytes[] = {4, 0, 0, 0, 'a', 'd', 'a', 0};
static const spill_value_t owner = {
    .data = owner_bytes, .size_bytes = sizeof owner_bytes, .type = BSON_TYPE_UTF8};

static spill_definition_t newest, oldest;

static int make_definitions(void **state)
{
    (void)state;
    spill_definition_preset(&newest, "feed-recent", "newest", NULL);
    spill_definition_preset(&oldest, "feed", "oldest", NULL);
    newest.op_window = oldest.op_window = 3;
    return 0;
}

static spill_request_t request_of(spill_request_kind_t kind, const spill_definition_t *definition,
                                  int64_t page)
{
    return (spill_request_t){
        .kind = kind,
        .definition = definition,
        .owner = &owner,
        .page = page,
        .incarnation = 1000,
        .rev = 1005,
        .limits = {.slots_max = 10, .bytes_max = 10000},
    };
}

/* A head with first 20 and slots 20..25; number 22 is deleted. */
static spill_state_t make_state(void)
{
    spill_state_t state = {.present = true,
                           .incarnation = 1000,
                           .rev = 1005,
                           .first = 20,
                           .live = 5,
                           .live_bytes = 50};
    spill_seqs_insert(&state.deleted, 22);
    return state;
}

static spill_outcome_t apply(const spill_request_t *request, int64_t old_bytes,
                             spill_state_t *state)
{
    spill_facts_t facts = {.old_bytes = old_bytes};
    spill_effect_t effect;
    return spill_transition(request, &facts, state, &effect);
}

/* ---- why an append is refused ---------------------------------------------------------------- */

static void refusal_reasons_have_priorities(void **state)
{
    (void)state;
    spill_op_t op = {.id = "x", .id_bytes = 1, .base = 4};
    spill_request_t append = request_of(SPILL_REQUEST_APPEND, &oldest, 0);
    append.append.element_count = 5;
    append.append.elements_bytes = 100;
    append.append.op = &op;
    spill_state_t page = make_state();
    page.sealed = true;
    page.op_count = 7;

    page.present = false;
    assert_int_equal(spill_append_refusal(&append, &page, &(spill_seen_t){.op = true}),
                     SPILL_REFUSAL_ABSENT);
    page.present = true;
    page.incarnation = 999;
    assert_int_equal(spill_append_refusal(&append, &page, &(spill_seen_t){.op = true}),
                     SPILL_REFUSAL_ABSENT);
    page.incarnation = 1000;
    assert_int_equal(spill_append_refusal(&append, &page, &(spill_seen_t){.op = true}),
                     SPILL_REFUSAL_REPEATED);
    assert_int_equal(spill_append_refusal(&append, &page, NULL), SPILL_REFUSAL_STALE);
    page.op_count = 6;
    assert_int_equal(spill_append_refusal(&append, &page, NULL), SPILL_REFUSAL_SEALED);
    page.sealed = false;
    assert_int_equal(spill_append_refusal(&append, &page, NULL), SPILL_REFUSAL_FULL);
    append.append.element_count = 4;
    assert_int_equal(spill_append_refusal(&append, &page, NULL), SPILL_REFUSAL_NONE);
    append.limits.bytes_max = 200;
    assert_int_equal(spill_append_refusal(&append, &page, NULL), SPILL_REFUSAL_FULL);
    append.append.op = NULL;
    append.limits.bytes_max = 10000;
    page.op_count = 100;
    assert_int_equal(spill_append_refusal(&append, &page, &(spill_seen_t){.op = true}),
                     SPILL_REFUSAL_NONE);
    spill_state_release(&page);
}

static void append_may_create_head_and_fits_any_incarnation(void **state)
{
    (void)state;
    spill_request_t append = request_of(SPILL_REQUEST_APPEND, &newest, SPILL_HEAD);
    append.append.element_count = 1;
    spill_state_t head = {0};
    assert_int_equal(spill_append_refusal(&append, &head, NULL), SPILL_REFUSAL_ABSENT);
    append.create = true;
    assert_int_equal(spill_append_refusal(&append, &head, NULL), SPILL_REFUSAL_NONE);
    head = (spill_state_t){.present = true, .incarnation = 5};
    assert_int_equal(spill_append_refusal(&append, &head, NULL), SPILL_REFUSAL_NONE);
}

static void fields_written_only_if_append_is_accepted(void **state)
{
    (void)state;
    bson_t *update = BCON_NEW("$set", "{", "a", BCON_INT32(1), "}");
    spill_request_t append = request_of(SPILL_REQUEST_APPEND, &newest, SPILL_HEAD);
    append.append.element_count = 1;
    spill_state_t absent = {0}, head = {.present = true, .incarnation = 5};
    assert_false(spill_writes_fields(&append, &absent, NULL));
    append.create = true;
    assert_true(spill_writes_fields(&append, &absent, NULL));
    assert_false(spill_writes_fields(&append, &head, NULL));
    append.append.update = update;
    assert_true(spill_writes_fields(&append, &head, NULL));
    append.limits.slots_max = 0; /* full */
    assert_true(spill_writes_fields(&append, &head, NULL));
    head.sealed = true;
    assert_false(spill_writes_fields(&append, &head, NULL));

    spill_request_t fields = request_of(SPILL_REQUEST_UPDATE_FIELDS, &newest, SPILL_HEAD);
    assert_false(spill_writes_fields(&fields, &absent, NULL));
    assert_false(spill_writes_fields(&fields, &head, NULL));
    fields.append.update = update;
    assert_true(spill_writes_fields(&fields, &head, NULL));
    fields.create = true;
    assert_true(spill_writes_fields(&fields, &absent, NULL));
    fields.kind = SPILL_REQUEST_TRIM;
    assert_false(spill_writes_fields(&fields, &head, NULL));
    bson_destroy(update);
}

static void update_reserves_room(void **state)
{
    (void)state;
    bson_t *update = BCON_NEW("$set", "{", "a.b.c.d.e.f.g.h", BCON_INT32(1), "}");
    spill_request_t append = request_of(SPILL_REQUEST_APPEND, &newest, SPILL_HEAD);
    append.append.element_count = 2;
    append.append.elements_bytes = 16;
    append.append.update = update;
    spill_state_t head = {.present = true, .incarnation = 1000, .fields_bytes = 20};
    /* The deepest path adds seven documents of 8 bytes each and the field itself. */
    int64_t grown = 20 + 7 * 8 + 7;
    spill_state_t after = head;
    after.fields_bytes = grown;
    append.limits.bytes_max = spill_state_document_bytes(&newest, &owner, true, &after, 2, 16) - 1;
    assert_int_equal(spill_append_refusal(&append, &head, NULL), SPILL_REFUSAL_FULL);
    /* The store knows the fields after the update and decides to the byte. */
    spill_facts_t facts = {.fields_bytes = grown};
    spill_effect_t effect;
    assert_int_equal(spill_transition(&append, &facts, &head, &effect), SPILL_REFUSED_GUARD);
    append.limits.bytes_max++;
    assert_int_equal(spill_transition(&append, &facts, &head, &effect), SPILL_DONE);
    assert_int_equal(head.fields_bytes, grown);
    assert_int_equal(effect.kind, SPILL_EFFECT_ADD);
    bson_destroy(update);
}

/* ---- refusals change nothing ----------------------------------------------------------------- */

static void assert_unchanged(const spill_request_t *request, int64_t old_bytes)
{
    spill_state_t before = make_state(), after = make_state();
    assert_int_equal(apply(request, old_bytes, &after), SPILL_REFUSED_GUARD);
    spill_seqs_t before_deleted = before.deleted, after_deleted = after.deleted;
    before.deleted = after.deleted = (spill_seqs_t){0};
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(after_deleted.count, 1);
    assert_true(spill_seqs_contains(&after_deleted, 22));
    spill_seqs_release(&before_deleted);
    spill_seqs_release(&after_deleted);
}

static void refusals_change_nothing(void **state)
{
    (void)state;
    spill_value_t element = {.size_bytes = 10};
    for (int kind = SPILL_REQUEST_APPEND; kind < SPILL_REQUEST_KIND_COUNT; kind++) {
        spill_request_t request = request_of((spill_request_kind_t)kind, &newest, 3);
        request.incarnation = 999; /* of an earlier incarnation, and at a rev that never existed */
        request.rev = 4;
        if (kind == SPILL_REQUEST_APPEND) {
            request.append.elements = &element;
            request.append.element_count = 1;
            request.append.elements_bytes = 10;
        }
        if (spill_request_is_change(&request)) {
            request.change.element = &element;
            request.change.seq = kind == SPILL_REQUEST_TRIM ? 0 : 21;
            request.change.end = kind == SPILL_REQUEST_TRIM ? 21 : 0;
            request.change.watermark = 30;
        }
        if (kind == SPILL_REQUEST_RECOUNT)
            request.recount.end = 21;
        /* their only guards are the size of the document, and that it exists */
        if (kind == SPILL_REQUEST_UPDATE_FIELDS || kind == SPILL_REQUEST_FORGET)
            continue;
        assert_unchanged(&request, 10);
    }
}

static void cut_needs_enough_slots(void **state)
{
    (void)state;
    spill_request_t cut = request_of(SPILL_REQUEST_CUT, &newest, SPILL_HEAD);
    cut.cut.slots = 7;
    cut.cut.bytes = 60;
    assert_unchanged(&cut, -1);
    spill_state_t head = make_state();
    cut.cut.slots = 6;
    cut.cut.bytes = 50;
    assert_int_equal(apply(&cut, -1, &head), SPILL_DONE);
    assert_int_equal(head.first, 26);
    assert_int_equal(head.live, 0);
    assert_int_equal(head.live_bytes, 0);
    assert_int_equal(head.removed, 1);
    assert_int_equal(head.pages, 1);
    assert_int_equal(head.rev, 1006);
    spill_state_release(&head);
}

static void element_must_exist_in_state_and_store(void **state)
{
    (void)state;
    static const spill_request_kind_t kinds[] = {SPILL_REQUEST_EDIT, SPILL_REQUEST_REMOVE,
                                                 SPILL_REQUEST_DELETE};
    spill_value_t element = {.size_bytes = 10};
    for (size_t i = 0; i < 3; i++) {
        spill_request_t request = request_of(kinds[i], &newest, SPILL_HEAD);
        request.change.element = &element;
        request.change.seq = 22; /* deleted, although the store has bytes of it */
        assert_unchanged(&request, 10);
        request.change.seq = 26;
        assert_unchanged(&request, 10);
        request.change.seq = 19;
        assert_unchanged(&request, 10);
        request.change.seq = 21; /* not deleted, but the store has no such element */
        assert_unchanged(&request, -1);
    }
}

/* ---- putting pages again --------------------------------------------------------------------- */

static spill_outcome_t put(spill_state_t *page, int64_t incarnation, int64_t source_rev)
{
    spill_run_t run = {0};
    spill_value_t value = {.data = owner_bytes, .size_bytes = 8, .type = BSON_TYPE_INT64};
    spill_run_add(&run, 5, &value);
    spill_request_t request = request_of(SPILL_REQUEST_PUT_PAGE, &newest, 3);
    request.incarnation = incarnation;
    request.put_page.source_rev = source_rev;
    request.put_page.first = 5;
    request.put_page.slots = 1;
    request.put_page.run = &run;
    spill_outcome_t outcome = apply(&request, -1, page);
    spill_run_release(&run);
    return outcome;
}

static void rev_of_page_never_repeats(void **state)
{
    (void)state;
    spill_state_t page = {0};
    assert_int_equal(put(&page, 1000, 1001), SPILL_DONE);
    assert_int_equal(page.rev, 1001);
    assert_int_equal(page.page, 3);
    assert_int_equal(page.live_bytes, 8);
    page.rev = 1004; /* after three edits */
    assert_int_equal(put(&page, 1000, 1001), SPILL_REFUSED_GUARD);
    assert_int_equal(put(&page, 1000, 1003), SPILL_DONE);
    assert_int_equal(page.rev, 1005);
    assert_int_equal(put(&page, 1000, 1010), SPILL_DONE);
    assert_int_equal(page.rev, 1010);
    assert_int_equal(put(&page, 999, 2000), SPILL_REFUSED_GUARD);
    assert_int_equal(put(&page, 2000, 2000), SPILL_DONE);
    assert_int_equal(page.incarnation, 2000);
    assert_int_equal(page.rev, 2000);
    spill_state_release(&page);
}

/* ---- deleted numbers and counting ------------------------------------------------------------ */

/* Count the live elements of an array with this head, as state.h defines it. */
static int64_t count_newest(const spill_state_t *head)
{
    return head->first - head->watermark - head->removed + head->live;
}

static void append_and_remove_does_not_grow(void **state)
{
    (void)state;
    spill_state_t head = {.present = true, .incarnation = 1000, .rev = 1000};
    for (int64_t i = 0; i < 1000; i++) {
        spill_request_t append = request_of(SPILL_REQUEST_APPEND, &newest, SPILL_HEAD);
        append.append.element_count = 1;
        append.append.elements_bytes = 8;
        append.limits.slots_max = 1;
        assert_int_equal(apply(&append, -1, &head), SPILL_DONE);
        assert_int_equal(count_newest(&head), 1);
        spill_request_t remove = request_of(SPILL_REQUEST_REMOVE, &newest, SPILL_HEAD);
        remove.rev = head.rev;
        remove.change.seq = i;
        assert_int_equal(apply(&remove, 8, &head), SPILL_DONE);
        assert_int_equal(count_newest(&head), 0);
        assert_int_equal(head.deleted.count, 0);
        assert_int_equal(spill_state_end(&head), i + 1);
    }
    spill_state_release(&head);
}

static void trim_forgets_deleted_numbers_below_it(void **state)
{
    (void)state;
    spill_state_t head = make_state();
    spill_request_t trim = request_of(SPILL_REQUEST_TRIM, &newest, SPILL_HEAD);
    trim.change.watermark = 24;
    spill_facts_t facts = {.erased_bytes = 30};
    spill_effect_t effect;
    assert_int_equal(spill_transition(&trim, &facts, &head, &effect), SPILL_DONE);
    assert_int_equal(effect.kind, SPILL_EFFECT_ERASE);
    assert_int_equal(effect.seq, 20);
    assert_int_equal(effect.end, 24);
    assert_int_equal(head.live, 2);
    assert_int_equal(head.live_bytes, 20);
    assert_int_equal(head.deleted.count, 0);
    assert_int_equal(spill_state_end(&head), 26);
    assert_int_equal(count_newest(&head), 2);
    /* Below the head's elements: nothing is erased. */
    head.watermark = 0;
    trim.rev = 1006;
    trim.change.watermark = 3;
    trim.change.removed = 4;
    assert_int_equal(spill_transition(&trim, &facts, &head, &effect), SPILL_DONE);
    assert_int_equal(effect.kind, SPILL_EFFECT_NONE);
    assert_int_equal(head.removed, 4);
    assert_int_equal(head.first, 24);
    spill_state_release(&head);
}

static void keep_oldest_counts_deleted_slots(void **state)
{
    (void)state;
    spill_state_t head = make_state();
    spill_request_t remove = request_of(SPILL_REQUEST_REMOVE, &oldest, SPILL_HEAD);
    remove.change.seq = 20; /* leads, but its number is kept */
    assert_int_equal(apply(&remove, 10, &head), SPILL_DONE);
    assert_int_equal(head.first, 20);
    assert_int_equal(head.deleted.count, 2);
    assert_int_equal(head.removed, 1);
    spill_state_release(&head);
}

/* Every element has 10 bytes; from number 23 on the size is unknown. */
static int64_t ten_bytes(void *context, int64_t seq)
{
    (void)context;
    return seq < 23 ? 10 : -1;
}

static spill_outcome_t apply_capped(const spill_request_t *request, spill_state_t *state,
                                    spill_effect_t *effect)
{
    spill_facts_t facts = {.size_of = ten_bytes};
    return spill_transition(request, &facts, state, effect);
}

static void capped_appends_drop_the_oldest(void **state)
{
    (void)state;
    spill_definition_t capped = newest;
    spill_definition_set_layout(&capped, SPILL_LAYOUT_CAPPED);
    spill_state_t head = make_state();
    head.watermark = 20;
    spill_value_t element = owner;
    spill_request_t append = request_of(SPILL_REQUEST_APPEND, &capped, SPILL_HEAD);
    append.append.elements = &element;
    append.append.element_count = 1;
    append.append.elements_bytes = element.size_bytes;
    append.limits.slots_max = 5;
    spill_effect_t effect;
    assert_int_equal(apply_capped(&append, &head, &effect), SPILL_DONE);
    assert_int_equal(effect.seq, 26);
    assert_int_equal(effect.end, 21);
    assert_int_equal(head.first, 21);
    assert_int_equal(head.watermark, 21);
    assert_int_equal(head.live, 5);
    assert_int_equal(head.live_bytes, 40 + element.size_bytes);
    assert_int_equal(head.deleted.count, 1);
    append.limits.slots_max = 5;
    assert_int_equal(apply_capped(&append, &head, &effect), SPILL_DONE);
    assert_int_equal(head.first, 23); /* 22 was deleted */
    assert_int_equal(head.deleted.count, 0);
    spill_state_t before = head;
    assert_int_equal(apply_capped(&append, &head, &effect), SPILL_REFUSED_GUARD);
    assert_memory_equal(&before, &head, sizeof head); /* a size is unknown: nothing changes */
    spill_state_release(&head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capped_appends_drop_the_oldest),
        cmocka_unit_test(refusal_reasons_have_priorities),
        cmocka_unit_test(append_may_create_head_and_fits_any_incarnation),
        cmocka_unit_test(fields_written_only_if_append_is_accepted),
        cmocka_unit_test(update_reserves_room),
        cmocka_unit_test(refusals_change_nothing),
        cmocka_unit_test(cut_needs_enough_slots),
        cmocka_unit_test(element_must_exist_in_state_and_store),
        cmocka_unit_test(rev_of_page_never_repeats),
        cmocka_unit_test(append_and_remove_does_not_grow),
        cmocka_unit_test(trim_forgets_deleted_numbers_below_it),
        cmocka_unit_test(keep_oldest_counts_deleted_slots),
    };
    return cmocka_run_group_tests(tests, make_definitions, NULL);
}
