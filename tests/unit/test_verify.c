/*
 * The verifier and repair against states that lie: a state record of a sound array is changed, one
 * number at a time. The finding has to name the document and the invariant; repair mends it, or
 * tells the same and changes nothing; and a second repair has nothing to do.
 */
#include "store/embedded/codec.h"
#include "support/tampered.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct fixture {
    tampered_t feed;
    int64_t epoch;
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

static void note(void *context, const spill_finding_t *finding)
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
    assert_int_equal(spill_array_verify(fixture->feed.array, NULL, note, fixture, &summary, &error),
                     SPILL_OK);
    assert_int_equal(summary.owners, 1);
    if (finding == NULL)
        assert_string_equal(fixture->found, "");
    else if (!strstr(fixture->found, finding))
        fail_msg("\"%s\" is not among:\n%s", finding, fixture->found);
    assert_true((summary.findings > 0) == (finding != NULL));
}

/* What repair does about it. */
typedef enum outcome {
    SOUND,  /* there is nothing to find */
    LEFT,   /* what was to be there is not known: it is told, and stays */
    MENDED, /* what is half done is finished, whoever left it so */
} outcome_t;

static void repair(fixture_t *fixture, bool look_only, spill_repair_summary_t *summary)
{
    spill_error_t error;
    fixture->found[0] = '\0';
    assert_int_equal(
        spill_array_repair(fixture->feed.array, NULL, look_only, note, fixture, summary, &error),
        SPILL_OK);
}

/* `finding` is what the verifier has told. */
static void assert_repaired(fixture_t *fixture, outcome_t outcome, const char *finding)
{
    spill_repair_summary_t first, dry, second;
    char told[sizeof fixture->found];
    tampered_reopen(&fixture->feed); /* it remembers heads */
    repair(fixture, true, &dry);
    memcpy(told, fixture->found, sizeof told);
    repair(fixture, false, &first);
    assert_string_equal(fixture->found, outcome == MENDED ? fixture->found : told);
    assert_int_equal(dry.findings, first.findings);
    assert_int_equal(first.findings, outcome == MENDED ? 1 : 0);
    if (outcome == LEFT && !strstr(told, finding))
        fail_msg("\"%s\" is not among what repair told:\n%s", finding, told);
    repair(fixture, false, &second);
    assert_int_equal(second.findings, 0);
    assert_int_equal(second.left, outcome == LEFT ? first.left : 0);
    assert_found(fixture, outcome == LEFT ? finding : NULL);
}

/* Verify and repair with a changed state of one document; the state is put back. */
static void assert_lie_found(fixture_t *fixture, int64_t page, void (*change)(spill_state_t *state),
                             outcome_t outcome, const char *finding)
{
    spill_buffer_t was = SPILL_BUFFER_INIT, lie = SPILL_BUFFER_INIT;
    spill_state_t state = {0};
    bool found;
    tampered_t *feed = &fixture->feed;
    const spill_record_key_t *key = &feed->key;
    spill_embedded_state_key(&feed->key, page);
    assert_int_equal(feed->kv->ops->get(feed->kv, key->data, key->size, &was, &found, NULL),
                     SPILL_OK);
    assert_true(found);
    assert_true(spill_state_decode(was.data, was.size, page == SPILL_HEAD, &state));
    fixture->epoch = state.epoch;
    change(&state);
    spill_state_encode(&state, page == SPILL_HEAD, &lie);
    tampered_put(feed, lie.data, lie.size);
    assert_found(fixture, finding);
    assert_repaired(fixture, outcome, finding);
    spill_embedded_state_key(&feed->key, page);
    tampered_put(feed, was.data, was.size);
    tampered_reopen(feed);
    spill_state_release(&state);
    spill_buffer_release(&was);
    spill_buffer_release(&lie);
}

static void one_element_more(spill_state_t *state)
{
    state->live++;
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
        spill_seqs_insert(&state->gone, state->first + state->live + seq);
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

typedef struct lie {
    int64_t page;
    void (*change)(spill_state_t *state);
    outcome_t outcome;
    const char *finding;
} lie_t;

static const lie_t newest_lies[] = {
    {2, too_many_slots, LEFT, "I1@2: 24 slots and "},
    {SPILL_HEAD, too_many_bytes, LEFT, "more than a document holds"},
    {2, one_element_more, LEFT, "@2: "},
    {2, a_byte_more, MENDED, "I5@2: its elements have "},
    {SPILL_HEAD, a_byte_more, MENDED, "I5@-1: its elements have "},
    {2, begins_earlier, LEFT, "I4@2: starts at 7, before the end 8"},
    {SPILL_HEAD, one_removed_more, MENDED, "I5@-1: counts 1 removed elements where 0 are missing"},
    {SPILL_HEAD, one_removed_less, MENDED, "I5@-1: counts -1 removed elements where 0 are missing"},
    {SPILL_HEAD, one_page_more, MENDED, "is missing: the head counts "},
    {SPILL_HEAD, one_page_less, LEFT, "removed elements where 4 are missing"},
    {SPILL_HEAD, an_edit_of_an_element_that_is_gone, MENDED, NULL},
};

static const lie_t oldest_lies[] = {
    {2, too_many_slots, LEFT, "I1@2: 24 slots and "},
    {2, a_byte_more, MENDED, "I5@2: its elements have "},
    {2, begins_earlier, LEFT, "I4@2: starts at 12, before the end 13"},
    {2, begins_later, LEFT, "I4@2: starts at 14, after a gap from 13"},
    {2, not_sealed, MENDED, "I4@2: is not sealed, though a page follows it"},
    {SPILL_HEAD, one_given_more, MENDED, "I5@6: starts at 29, the head counts 30"},
    {SPILL_HEAD, one_removed_more, MENDED, "I5@-1: counts 1 removed elements where 0 are missing"},
    {SPILL_HEAD, one_page_less, MENDED, "I7@6: is there, though the head counts 6"},
};

static void assert_lies_found(spill_keep_t keep, const lie_t *lies, size_t count)
{
    fixture_t fixture;
    open_fixture(&fixture, keep);
    assert_found(&fixture, NULL);
    for (size_t i = 0; i < count; i++)
        assert_lie_found(&fixture, lies[i].page, lies[i].change, lies[i].outcome, lies[i].finding);
    assert_found(&fixture, NULL);
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

/* It is told, also by a dry run, before it is finished: the owner goes. */
static void a_drop_that_was_begun(void **state)
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
    spill_record_key_op(&fixture->feed.key, fixture->epoch, ordinal);
    tampered_put(&fixture->feed, value.data, value.size);
    spill_buffer_release(&value);
}

static void two_operations(spill_state_t *state)
{
    state->n = 2;
}

static void lies_of_operations(void **state)
{
    (void)state;
    fixture_t fixture;
    open_fixture(&fixture, SPILL_KEEP_NEWEST);
    assert_lie_found(&fixture, SPILL_HEAD, two_operations, SOUND, NULL);
    put_op(&fixture, 0, 3, 2);
    put_op(&fixture, 1, 5, 1);
    assert_lie_found(&fixture, SPILL_HEAD, two_operations, SOUND, NULL);
    put_op(&fixture, 1, 4, 1);
    assert_lie_found(&fixture, SPILL_HEAD, two_operations, LEFT,
                     "I3@-1: operation 'x' gave numbers that were given before");
    close_fixture(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lies_of_keep_newest),
        cmocka_unit_test(lies_of_keep_oldest),
        cmocka_unit_test(lies_of_operations),
        cmocka_unit_test(a_drop_that_was_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
