/*
 * The verifier and repair, on inconsistent states: one number in the state record of a sound array
 * is changed. The finding must name the document and the invariant. Repair fixes it, or reports the
 * same and changes nothing; a second repair has nothing to do.
 */
#include "store/embedded/embedded_codec.h"
#include "store/embedded/records.h"
#include "support/tampered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    tampered_t feed;
    int64_t incarnation;
    char found[8192];
} fixture_t;

static void open_fixture(fixture_t *fixture, spill_keep_t keep)
{
    *fixture = (fixture_t){0};
    tampered_open(&fixture->feed, keep);
}

static void close_fixture(fixture_t *fixture)
{
    tampered_close(&fixture->feed);
}

static void note_finding(void *context, const spill_finding_t *finding)
{
    fixture_t *fixture = context;
    size_t used = strlen(fixture->found);
    assert_string_equal(finding->definition, "feed");
    snprintf(fixture->found + used, sizeof fixture->found - used, "I%d@%d: %s\n",
             finding->invariant, (int)finding->page, finding->text);
}

static void assert_found(fixture_t *fixture, const char *finding)
{
    spill_verify_summary_t summary;
    spill_error_t error;
    fixture->found[0] = '\0';
    assert_int_equal(
        spill_array_verify(fixture->feed.array, NULL, note_finding, fixture, &summary, &error),
        SPILL_OK);
    assert_int_equal(summary.owners, 1);
    if (finding == NULL)
        assert_string_equal(fixture->found, "");
    else if (!strstr(fixture->found, finding))
        fail_msg("\"%s\" is not among:\n%s", finding, fixture->found);
    assert_true((summary.findings > 0) == (finding != NULL));
}

/* The result of a repair. */
typedef enum outcome {
    SOUND, /* nothing to find */
    LEFT,  /* the right value is unknown: repair reports it and changes nothing */
    FIXED, /* repair completes an unfinished operation */
} outcome_t;

typedef struct lie {
    int64_t page;
    void (*change)(spill_state_t *state);
    outcome_t outcome;
    const char *finding;
    int64_t fixes; /* findings that repair fixes, if not one for FIXED and none for LEFT */
} lie_t;

static void repair(fixture_t *fixture, bool look_only, spill_repair_summary_t *summary)
{
    spill_error_t error;
    fixture->found[0] = '\0';
    assert_int_equal(spill_array_repair(fixture->feed.array, NULL, look_only, note_finding, fixture,
                                        summary, &error),
                     SPILL_OK);
}

/* Repair the state that the verifier has reported. */
static void assert_repaired(fixture_t *fixture, const lie_t *lie)
{
    spill_repair_summary_t first, dry, second;
    char told[sizeof fixture->found];
    tampered_reopen(&fixture->feed); /* it caches heads */
    repair(fixture, true, &dry);
    memcpy(told, fixture->found, sizeof told);
    repair(fixture, false, &first);
    assert_string_equal(fixture->found, lie->outcome == FIXED ? fixture->found : told);
    assert_int_equal(dry.findings, first.findings);
    assert_int_equal(first.findings, lie->fixes > 0 ? lie->fixes : (lie->outcome == FIXED ? 1 : 0));
    if (lie->outcome == LEFT && !strstr(told, lie->finding))
        fail_msg("\"%s\" is not in repair's report:\n%s", lie->finding, told);
    repair(fixture, false, &second);
    assert_int_equal(second.findings, 0);
    assert_int_equal(second.left, lie->outcome == LEFT ? first.left : 0);
    assert_found(fixture, lie->outcome == LEFT ? lie->finding : NULL);
}

/* Verify and repair with a changed state of one document; then restore the state. */
static void assert_lie_found(fixture_t *fixture, const lie_t *lie)
{
    spill_buffer_t was = SPILL_BUFFER_INIT, changed = SPILL_BUFFER_INIT, after = SPILL_BUFFER_INIT;
    spill_state_t state = {0};
    bool found, head = lie->page == SPILL_HEAD;
    tampered_t *feed = &fixture->feed;
    const spill_record_key_t *key = &feed->key;
    spill_embedded_state_key(&feed->key, lie->page);
    assert_int_equal(feed->kv->ops->get(feed->kv, key->data, key->size, &was, &found, NULL),
                     SPILL_OK);
    assert_true(found);
    assert_true(spill_state_decode(was.data, was.size, head, &state));
    fixture->incarnation = state.incarnation;
    int64_t rev = state.rev;
    lie->change(&state);
    spill_state_encode(&state, head, &changed);
    tampered_put(feed, changed.data, changed.size);
    assert_found(fixture, lie->finding);
    assert_repaired(fixture, lie);
    spill_embedded_state_key(&feed->key, lie->page);
    assert_int_equal(feed->kv->ops->get(feed->kv, key->data, key->size, &after, &found, NULL),
                     SPILL_OK);
    assert_true(spill_state_decode(after.data, after.size, head, &state));
    if (state.rev > rev && !head) { /* unchanged except for the rev */
        state.rev = rev;
        spill_buffer_clear(&after);
        spill_state_encode(&state, head, &after);
        assert_int_equal(after.size, was.size);
        assert_memory_equal(after.data, was.data, was.size);
    }
    tampered_put(feed, was.data, was.size);
    tampered_reopen(feed);
    spill_state_release(&state);
    spill_buffer_release(&was);
    spill_buffer_release(&changed);
    spill_buffer_release(&after);
}

static void one_element_more(spill_state_t *state)
{
    state->live++;
}

static void one_element_less(spill_state_t *state)
{
    state->live--;
}

static void one_element_and_a_byte_more(spill_state_t *state)
{
    state->live++;
    state->live_bytes++;
}

static void a_byte_more(spill_state_t *state)
{
    state->live_bytes++;
}

static void one_removed_more(spill_state_t *state)
{
    state->removed++;
}

static void one_removed_less(spill_state_t *state)
{
    state->removed--;
}

static void one_page_more(spill_state_t *state)
{
    state->pages++;
}

static void one_page_less(spill_state_t *state)
{
    state->pages--;
}

static void two_pages_less(spill_state_t *state)
{
    state->pages -= 2;
}

static void one_given_more(spill_state_t *state)
{
    state->total++;
}

static void begins_earlier(spill_state_t *state)
{
    state->first--;
}

static void begins_later(spill_state_t *state)
{
    state->first++;
}

static void not_sealed(spill_state_t *state)
{
    state->sealed = false;
}

static void too_many_slots(spill_state_t *state)
{
    for (int64_t seq = 0; seq < 20; seq++)
        spill_seqs_insert(&state->deleted, state->first + state->live + seq);
}

static void too_many_bytes(spill_state_t *state)
{
    state->fields_bytes = 17 * 1024 * 1024;
}

static void an_edit_of_an_element_that_is_gone(spill_state_t *state)
{
    state->intent = true;
    state->intent_seq = 1000;
    state->intent_page = 2;
}

static const lie_t newest_lies[] = {
    {2, too_many_slots, FIXED,
     "I4@2: counts 4 elements, in [8, 32), where its elements are in "
     "[8, 12)",
     1},
    {SPILL_HEAD, too_many_bytes, LEFT, "more than a document holds", 0},
    {2, one_element_more, FIXED, "I4@2: counts 5 elements, in [8, 13)", 1},
    {2, one_element_less, FIXED, "I4@2: counts 3 elements, in [8, 11)", 1},
    {2, one_element_and_a_byte_more, LEFT, "I7@2: its numbers, up to 13, overlap", 0},
    {4, one_element_more, FIXED, "I4@4: counts 5 elements, in [16, 21)", 1},
    {2, a_byte_more, FIXED, "I5@2: its elements have ", 1},
    {2, begins_earlier, FIXED, "I4@2: counts 4 elements, in [7, 11)", 3},
    {2, begins_later, FIXED, "I4@2: counts 4 elements, in [9, 13)", 3},
    {SPILL_HEAD, a_byte_more, FIXED, "I5@-1: its elements have ", 1},
    {SPILL_HEAD, one_element_more, LEFT, "I2@-1: cannot be read", 0},
    {SPILL_HEAD, one_element_less, FIXED, "I4@-1: counts ", 1},
    {SPILL_HEAD, one_removed_more, FIXED, "I5@-1: counts 1 removed elements where 0 are missing",
     1},
    {SPILL_HEAD, one_removed_less, FIXED, "I5@-1: counts -1 removed elements where 0 are missing",
     1},
    {SPILL_HEAD, one_page_more, FIXED, "is missing: the head counts ", 1},
    {SPILL_HEAD, one_page_less, FIXED, "with elements before its own", 1},
    {SPILL_HEAD, two_pages_less, FIXED, "with elements before its own", 1},
    {SPILL_HEAD, an_edit_of_an_element_that_is_gone, FIXED, NULL, 1},
};

static const lie_t oldest_lies[] = {
    {2, too_many_slots, FIXED, "I4@2: counts 4 elements, in [13, 37)", 1},
    {2, one_element_more, FIXED, "I4@2: counts 5 elements, in [13, 18)", 1},
    {2, one_element_less, FIXED, "I4@2: counts 3 elements, in [13, 16)", 1},
    {SPILL_HEAD, one_element_more, FIXED, "I4@-1: counts 6 elements, in [0, 6)", 1},
    {SPILL_HEAD, one_element_less, FIXED, "I4@-1: counts 4 elements, in [0, 4)", 1},
    {6, one_element_more, LEFT, "I2@6: cannot be read", 0},
    {6, one_element_less, FIXED, "I4@6: counts 0 elements, in [29, 29)", 1},
    {2, a_byte_more, FIXED, "I5@2: its elements have ", 1},
    {2, begins_earlier, FIXED, "I4@2: counts 4 elements, in [12, 16)", 3},
    {2, begins_later, FIXED, "I4@2: counts 4 elements, in [14, 18)", 3},
    {2, not_sealed, FIXED, "I4@2: is not sealed, though a page follows it", 1},
    {SPILL_HEAD, one_given_more, FIXED, "I5@6: starts at 29, the head counts 30", 1},
    {SPILL_HEAD, one_removed_more, FIXED, "I5@-1: counts 1 removed elements where 0 are missing",
     1},
    {SPILL_HEAD, one_page_less, FIXED, "I7@6: is there, though the head counts 6", 1},
};

static void assert_lies_found(spill_keep_t keep, const lie_t *lies, size_t count)
{
    fixture_t fixture;
    open_fixture(&fixture, keep);
    assert_found(&fixture, NULL);
    for (size_t i = 0; i < count; i++)
        assert_lie_found(&fixture, &lies[i]);
    assert_found(&fixture, NULL);
    close_fixture(&fixture);
}

/*
 * With a page that begins before the trim, repair finds the end of the trim correctly, and does not
 * mistake earlier pages with live elements for left-over pages.
 */
static void page_that_begins_before_trim_loses_no_elements(void **state)
{
    (void)state;
    enum { LOW = 10, PAGE = 4, EARLIER = 7 };
    fixture_t fixture;
    spill_error_t error;
    spill_verify_summary_t before, after;
    spill_repair_summary_t repaired;
    spill_buffer_t record = SPILL_BUFFER_INIT;
    spill_state_t page = {0};
    bson_t storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&storage, "ada");
    bool found;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    tampered_t *feed = &fixture.feed;
    assert_int_equal(spill_array_trim(feed->array, &owner, LOW, &error), SPILL_OK);
    assert_int_equal(spill_array_verify(feed->array, NULL, NULL, NULL, &before, &error), SPILL_OK);
    assert_int_equal(before.findings, 0);
    spill_embedded_state_key(&feed->key, PAGE);
    assert_int_equal(
        feed->kv->ops->get(feed->kv, feed->key.data, feed->key.size, &record, &found, NULL),
        SPILL_OK);
    assert_true(found && spill_state_decode(record.data, record.size, false, &page));
    assert_true(page.first - EARLIER < LOW);
    page.first -= EARLIER;
    spill_buffer_clear(&record);
    spill_state_encode(&page, false, &record);
    tampered_put(feed, record.data, record.size);
    tampered_reopen(feed);
    repair(&fixture, false, &repaired);
    assert_true(repaired.findings > 0);
    assert_found(&fixture, NULL);
    assert_int_equal(spill_array_verify(feed->array, NULL, NULL, NULL, &after, &error), SPILL_OK);
    assert_int_equal(after.elements, before.elements);
    bson_destroy(&storage);
    spill_state_release(&page);
    spill_buffer_release(&record);
    close_fixture(&fixture);
}

static void lies_of_keep_newest(void **state)
{
    (void)state;
    assert_lies_found(SPILL_KEEP_NEWEST, newest_lies, sizeof newest_lies / sizeof *newest_lies);
}

static void lies_of_keep_oldest(void **state)
{
    (void)state;
    assert_lies_found(SPILL_KEEP_OLDEST, oldest_lies, sizeof oldest_lies / sizeof *oldest_lies);
}

/* A drop in progress is reported, also by a dry run, and then completed: the owner is deleted. */
static void unfinished_drop_is_completed(void **state)
{
    (void)state;
    fixture_t fixture;
    spill_buffer_t lie = SPILL_BUFFER_INIT, was = SPILL_BUFFER_INIT;
    spill_state_t tail = {0};
    spill_repair_summary_t summary;
    spill_verify_summary_t verified;
    bool found;
    open_fixture(&fixture, SPILL_KEEP_OLDEST);
    tampered_t *feed = &fixture.feed;
    spill_embedded_state_key(&feed->key, 6);
    assert_int_equal(
        feed->kv->ops->get(feed->kv, feed->key.data, feed->key.size, &was, &found, NULL), SPILL_OK);
    assert_true(found && spill_state_decode(was.data, was.size, false, &tail));
    tail.sealed = tail.closed = true;
    spill_state_encode(&tail, false, &lie);
    tampered_put(feed, lie.data, lie.size);
    assert_found(&fixture, "I7@6: is closed under a live head: a drop of the owner was begun");
    tampered_reopen(feed);
    for (int look_only = 1; look_only >= 0; look_only--) {
        repair(&fixture, look_only, &summary);
        assert_int_equal(summary.findings, 1);
        assert_non_null(strstr(fixture.found, "a drop of the owner was not finished"));
    }
    repair(&fixture, false, &summary);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(summary.left, 0);
    assert_int_equal(spill_array_verify(feed->array, NULL, NULL, NULL, &verified, NULL), SPILL_OK);
    assert_int_equal(verified.owners, 0);
    assert_int_equal(verified.findings, 0);
    spill_state_release(&tail);
    spill_buffer_release(&lie);
    spill_buffer_release(&was);
    close_fixture(&fixture);
}

static void put_op(fixture_t *fixture, int64_t ordinal, int64_t seq, int64_t count)
{
    spill_op_entry_t entry = {.seq = seq, .count = count, .id_bytes = 1, .id = "x"};
    spill_buffer_t value = SPILL_BUFFER_INIT;
    spill_op_encode(&entry, &value);
    spill_record_key_op(&fixture->feed.key, fixture->incarnation, ordinal);
    tampered_put(&fixture->feed, value.data, value.size);
    spill_buffer_release(&value);
}

static void two_operations(spill_state_t *state)
{
    state->op_count = 2;
}

static void lies_of_operations(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    const lie_t no_lie = {SPILL_HEAD, two_operations, SOUND, NULL, 0};
    const lie_t lie = {SPILL_HEAD, two_operations, LEFT,
                       "I3@-1: operation 'x' gave numbers that were given before", 0};
    assert_lie_found(&fixture, &no_lie);
    put_op(&fixture, 0, 3, 2);
    put_op(&fixture, 1, 5, 1);
    assert_lie_found(&fixture, &no_lie);
    put_op(&fixture, 1, 4, 1);
    assert_lie_found(&fixture, &lie);
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_of_keep_newest),
        cmocka_unit_test(page_that_begins_before_trim_loses_no_elements),
        cmocka_unit_test(lies_of_keep_oldest),
        cmocka_unit_test(lies_of_operations),
        cmocka_unit_test(unfinished_drop_is_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
