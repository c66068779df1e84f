#include "fixture.h"

#include "store/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void append_field(bson_string_t *text, const char *name, int64_t number)
{
    if (number != 0)
        bson_string_append_printf(text, " %s%" PRId64, name, number);
}

static void append_state(bson_string_t *text, const spill_state_t *state)
{
    bson_string_append_printf(text, "rev+%" PRId64, state->rev - state->incarnation);
    if (state->incarnation != INCARNATION)
        append_field(text, "epoch=", state->incarnation);
    append_field(text, "first=", state->first);
    for (size_t i = 0; i < state->deleted.run_count; i++)
        for (int64_t seq = state->deleted.runs[i].first; seq < state->deleted.runs[i].end; seq++)
            bson_string_append_printf(
                text, "%s%" PRId64, i == 0 && seq == state->deleted.runs[i].first ? " gone=" : ",",
                seq);
    append_field(text, "n=", state->op_count);
    bson_string_append(text, state->sealed ? " sealed" : "");
    bson_string_append(text, state->closed ? " closed" : "");
    append_field(text, "pages=", state->pages);
    append_field(text, "removed=", state->removed);
    append_field(text, "low=", state->watermark);
    append_field(text, "total=", state->total);
    if (state->intent)
        bson_string_append_printf(text, " intent=%" PRId64 "@%" PRId64, state->intent_seq,
                                  state->intent_page);
    append_field(text, "page=", state->page);
    if (state->source_rev != 0 && state->source_rev != state->incarnation)
        bson_string_append_printf(text, " src+%" PRId64, state->source_rev - state->incarnation);
}

static void append_elements(bson_string_t *text, const spill_run_t *run)
{
    bson_string_append(text, " |");
    for (size_t i = 0; i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        bson_string_append_printf(text, " %" PRId64, element.seq);
        if (element.value.type == BSON_TYPE_INT64) {
            int64_t number;
            memcpy(&number, element.value.data, sizeof number);
            bson_string_append_printf(text, "=%" PRId64, BSON_UINT64_FROM_LE(number));
        } else {
            bson_string_append_printf(text, "=#%" PRIu32, element.value.size_bytes);
        }
    }
}

/* The run that was read backward must match the state and its copy that was read forward. */
static void check_runs(const spill_state_t *state, const spill_run_t *forward,
                       const spill_run_t *backward)
{
    assert_int_equal(state->live, forward->count);
    assert_int_equal(state->live_bytes, spill_run_bytes(forward));
    assert_int_equal(forward->count, backward->count);
    for (size_t i = 0; i < forward->count; i++) {
        spill_element_t there = spill_run_element(forward, i);
        spill_element_t back = spill_run_element(backward, forward->count - 1 - i);
        assert_int_equal(there.seq, back.seq);
        assert_true(spill_value_equal(&there.value, &back.value));
        assert_in_range(there.seq, state->first, spill_state_end(state) - 1);
        assert_false(spill_seqs_contains(&state->deleted, there.seq));
    }
}

char *describe(fixture_t *fixture, int64_t page)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    read.read.limit = INT64_MAX;
    read.read.want = SPILL_WANT_FORWARD;
    assert_done(fixture, &read);
    if (!fixture->response.state.present)
        return bson_strdup("absent");
    spill_run_t forward = {0};
    spill_run_copy(&fixture->response.run, &forward);
    read.read.want = SPILL_WANT_BACKWARD;
    read.read.seq = INT64_MAX;
    assert_done(fixture, &read);
    check_runs(&fixture->response.state, &forward, &fixture->response.run);

    bson_string_t *text = bson_string_new(NULL);
    append_state(text, &fixture->response.state);
    append_elements(text, &forward);
    spill_run_release(&forward);
    return bson_string_free(text, false);
}

void assert_document(fixture_t *fixture, int64_t page, const char *expected)
{
    char *found = describe(fixture, page);
    assert_string_equal(found, expected);
    bson_free(found);
}

void assert_ops(fixture_t *fixture, int64_t page, const char *expected)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    read.read.want_ops = true;
    assert_done(fixture, &read);
    bson_string_t *text = bson_string_new(NULL);
    for (size_t i = 0; i < fixture->response.ops.count; i++) {
        const spill_op_entry_t *entry = &fixture->response.ops.entries[i];
        bson_string_append_printf(text, "%s%.*s@%" PRId64 ":%" PRId64 "+%" PRId64, i > 0 ? " " : "",
                                  (int)entry->id_bytes, (const char *)entry->id, entry->ordinal,
                                  entry->seq, entry->count);
    }
    assert_string_equal(text->str, expected);
    bson_string_free(text, true);
}

void assert_fields(fixture_t *fixture, const char *expected)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want_fields = true;
    assert_done(fixture, &read);
    if (!expected) {
        assert_null(fixture->response.fields);
        return;
    }
    assert_non_null(fixture->response.fields);
    assert_int_equal(fixture->response.fields->len, fixture->response.state.fields_bytes);
    assert_fields_read(fixture, expected);
}

void assert_fields_read(const fixture_t *fixture, const char *expected)
{
    bson_t *fields = bson_copy(fixture->response.fields);
    spill_unmanaged_forget(&fixture->definition, &fields); /* documents around the array */
    char *json = bson_as_relaxed_extended_json(fields, NULL);
    assert_string_equal(json, expected);
    bson_free(json);
    bson_destroy(fields);
}
