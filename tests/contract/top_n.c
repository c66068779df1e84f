/* Capped arrays with a top-N: which elements an append drops, and how reads see the rest. */
#include "suite.h"

#include "bson/value.h"

#include <stdio.h>
#include <stdlib.h>

enum { ELEMENTS_MAX = 80 };

/* ---- helpers --------------------------------------------------------------------------------- */

static void open_top_n(fixture_t *fixture, const contract_kind_t *kind)
{
    spill_definition_t definition;
    make_definition(&definition, "best", SPILL_KEEP_NEWEST);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    strcpy(definition.sort_field, "game.score");
    strcpy(definition.id_field, "id");
    fixture_open_with(fixture, kind, &definition);
}

/* Make {game: {score: ...}, id}; the score is Extended JSON, or "" for none. */
static void make_game(const char *score, int64_t id, bson_t *game)
{
    char json[128];
    snprintf(json, sizeof json,
             score[0] == '\0' ? "{\"game\": {}%s}" : "{\"game\": {\"score\": %s}}", score);
    assert_true(bson_init_from_json(game, json, -1, NULL));
    BSON_APPEND_INT64(game, "id", id);
}

static spill_value_t value_of(const bson_t *document)
{
    return (spill_value_t){
        .data = bson_get_data(document), .size_bytes = document->len, .type = BSON_TYPE_DOCUMENT};
}

/*
 * Append games with these scores, separated by '|' (NULL: none), in one step, to a head of at most
 * `cap` elements. Their ids are numbers from `id` on. `skip` numbers are skipped first.
 */
static spill_outcome_t try_skipping(fixture_t *fixture, int64_t cap, int64_t skip,
                                    const char *scores, int64_t id, const spill_op_t *op)
{
    bson_t games[ELEMENTS_MAX];
    spill_value_t values[ELEMENTS_MAX] = {0};
    char text[512];
    size_t count = 0;
    snprintf(text, sizeof text, "%s", scores ? scores : "");
    for (char *score = text, *end = scores ? text : NULL; end; score = end + 1, count++) {
        assert_true(count < ELEMENTS_MAX);
        end = strchr(score, '|');
        if (end)
            *end = '\0';
        make_game(score, id + (int64_t)count, &games[count]);
        values[count] = value_of(&games[count]);
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.create = true;
    append.append.skip = skip;
    append.append.op = op;
    append.limits = (spill_limits_t){.slots_max = cap, .bytes_max = 100000};
    spill_outcome_t outcome = call(fixture, &append);
    while (count > 0)
        bson_destroy(&games[--count]);
    return outcome;
}

static spill_outcome_t try_games(fixture_t *fixture, int64_t cap, const char *scores, int64_t id,
                                 const spill_op_t *op)
{
    return try_skipping(fixture, cap, 0, scores, id, op);
}

static void append_games(fixture_t *fixture, int64_t cap, const char *scores, int64_t first)
{
    assert_int_equal(try_games(fixture, cap, scores, first, NULL), SPILL_DONE);
    assert_int_equal(fixture->response.seq, first);
}

/* Skip the numbers [from, first). */
static void append_after_skip(fixture_t *fixture, int64_t cap, int64_t from, const char *scores,
                              int64_t first)
{
    assert_int_equal(try_skipping(fixture, cap, first - from, scores, first, NULL), SPILL_DONE);
    assert_int_equal(fixture->response.seq, from);
}

/* Compare "rev+0 first=1 gone=2 n=1 low=1 | 1 3", without the elements' contents. */
static void assert_head(fixture_t *fixture, const char *expected)
{
    char *found = describe(fixture, SPILL_HEAD), *to = found;
    for (const char *at = found; *at != '\0'; to++) {
        *to = *at++;
        while (to > found && to[0] == '=' && at[0] == '#' && *at != ' ' && *at != '\0') {
            at += strcspn(at, " ");
            to--;
        }
    }
    *to = '\0';
    assert_string_equal(found, expected);
    bson_free(found);
}

static spill_outcome_t edit_or_remove(fixture_t *fixture, spill_request_kind_t kind, int64_t rev,
                                      int64_t seq, const char *score)
{
    bson_t game;
    spill_request_t request = make_request(fixture, kind, SPILL_HEAD);
    request.rev = INCARNATION + rev;
    bool trim = kind == SPILL_REQUEST_TRIM;
    request.change.seq = trim ? 0 : seq;
    request.change.watermark = trim ? seq : 0;
    make_game(score ? score : "", seq, &game);
    spill_value_t element = value_of(&game);
    if (score) {
        request.change.element = &element;
    }
    spill_outcome_t outcome = call(fixture, &request);
    bson_destroy(&game);
    return outcome;
}

/* ---- appends --------------------------------------------------------------------------------- */

static void append_drops_lowest(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 3, "5", 0);
    append_games(&fixture, 3, "1", 1);
    append_games(&fixture, 3, "9", 2);
    assert_head(&fixture, "rev+0 | 0 1 2");
    append_games(&fixture, 3, "3", 3);
    assert_head(&fixture, "rev+0 gone=1 | 0 2 3");
    append_games(&fixture, 3, "2", 4); /* it ranks too low, but gets a number */
    assert_head(&fixture, "rev+0 gone=1,4 | 0 2 3");
    fixture_reopen(&fixture);
    assert_head(&fixture, "rev+0 gone=1,4 | 0 2 3");
    append_games(&fixture, 3, "7", 5);
    assert_head(&fixture, "rev+0 gone=1,3,4 | 0 2 5");
    append_games(&fixture, 3, "8", 6);
    assert_head(&fixture, "rev+0 first=2 gone=3,4 low=2 | 2 5 6");
    append_games(&fixture, 3, "9.5|100", 7);
    assert_head(&fixture, "rev+0 first=2 gone=3,4,5,6 low=2 | 2 7 8");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* Dates rank above numbers, numbers above everything else; of two equals the newer ranks higher. */
static void ranks_match_layout_subset(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 3, "\"zz\"|{\"$date\": 0}|4|4.0|", 0);
    assert_head(&fixture, "rev+0 first=1 gone=4 low=1 | 1 2 3");
    append_games(&fixture, 3, "4", 5);
    assert_head(&fixture, "rev+0 first=1 gone=2,4 low=1 | 1 3 5");
    append_games(&fixture, 3, "{\"$numberLong\": \"9007199254740993\"}|9007199254740992.0", 6);
    assert_head(&fixture, "rev+0 first=1 gone=2,3,4,5 low=1 | 1 6 7");
    /* below the integer, which no double equals */
    append_games(&fixture, 3, "9007199254740992.0", 8);
    assert_head(&fixture, "rev+0 first=1 gone=2,3,4,5,7 low=1 | 1 6 8");
    fixture_close(&fixture);
}

static void batch_of_any_size_is_one_step(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 2, "1|7|3|9|5", 0); /* creates the head */
    assert_head(&fixture, "rev+0 first=1 gone=2,4 low=1 | 1 3");
    append_games(&fixture, 2, "1|2|3|4|5|6|5|4|3|2|1|8|6|5|4|3|2|1", 5);
    assert_head(&fixture, "rev+0 first=3 gone=4,5,6,7,8,9,10,11,12,13,14,15,17,18,19,20,21,22 "
                          "low=3 | 3 16");
    append_games(&fixture, 4, "0|1|2", 23); /* room for two */
    assert_head(&fixture, "rev+0 first=3 gone=4,5,6,7,8,9,10,11,12,13,14,15,17,18,19,20,21,22,23 "
                          "low=3 | 3 16 24 25");
    append_games(&fixture, 1, "8", 26); /* the cap may change */
    assert_int_equal(fixture.response.state.live, 1);
    assert_int_equal(fixture.response.state.first, 3);
    assert_int_equal(spill_state_end(&fixture.response.state), 27);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void append_drops_lowest_until_bytes_fit(void **state)
{
    fixture_t fixture;
    bson_t games[4];
    spill_value_t values[4];
    open_top_n(&fixture, *state);
    for (int i = 0; i < 4; i++) {
        char text[401] = "";
        char score[8];
        snprintf(score, sizeof score, "%d", i == 1 ? 0 : 9 - i);
        make_game(score, i, &games[i]);
        memset(text, 'a' + i, 400);
        BSON_APPEND_UTF8(&games[i], "text", text);
        values[i] = value_of(&games[i]);
    }
    spill_state_t empty = {0};
    for (int i = 0; i < 4; i++) {
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &values[i], 1);
        append.create = true;
        append.limits.slots_max = 10;
        append.limits.bytes_max =
            spill_state_document_bytes(&fixture.definition, &fixture.owner, true, &empty, 3,
                                       3 * values[i].size_bytes) +
            20;
        assert_done(&fixture, &append);
        assert_int_equal(fixture.response.seq, i);
        assert_int_equal(fixture.response.crowded_out, i == 3);
        bson_destroy(&games[i]);
    }
    assert_head(&fixture, "rev+0 gone=1 | 0 2 3");
    fixture_close(&fixture);
}

static void element_over_document_limit_is_refused(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 3, "1|2", 0);
    spill_value_t large = text_value(SPILL_DOCUMENT_BYTES_MAX - 100, 'x');
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &large, 1);
    append.limits = (spill_limits_t){.slots_max = 3, .bytes_max = 100000};
    assert_refused(&fixture, &append);
    assert_head(&fixture, "rev+0 | 0 1");
    bson_free((void *)large.data);
    fixture_close(&fixture);
}

static void operations_outlive_their_elements(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    spill_op_t a = {.id = "a", .id_bytes = 1}, b = {.id = "b", .id_bytes = 1, .base = 1};
    assert_int_equal(try_games(&fixture, 2, "5|6|7", 0, &a), SPILL_DONE);
    assert_int_equal(try_games(&fixture, 2, "1", 3, &b), SPILL_DONE);
    assert_int_equal(fixture.response.seq, 3);
    assert_int_equal(try_games(&fixture, 2, "5|6|7", 0, &a), SPILL_REFUSED_GUARD);
    assert_int_equal(try_games(&fixture, 2, "1", 3, &b), SPILL_REFUSED_GUARD);
    fixture_reopen(&fixture);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+3 b@1:3+1");
    append_games(&fixture, 2, "8|0", 4);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+3 b@1:3+1");
    assert_head(&fixture, "rev+0 first=2 gone=3,5 n=2 low=2 | 2 4");
    fixture_close(&fixture);
}

static void append_updates_other_fields_with_top_n(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    bson_t *update = BCON_NEW("$inc", "{", "visits", BCON_INT32(1), "}");
    for (int i = 0; i < 4; i++) {
        bson_t game;
        make_game(i == 3 ? "0" : "5", i, &game);
        spill_value_t value = value_of(&game);
        spill_request_t append = make_append(&fixture, SPILL_HEAD, &value, 1);
        append.create = true;
        append.append.update = update;
        append.limits = (spill_limits_t){.slots_max = 2, .bytes_max = 100000};
        assert_done(&fixture, &append);
        bson_destroy(&game);
    }
    bson_destroy(update);
    assert_head(&fixture, "rev+0 first=1 gone=3 low=1 | 1 2");
    assert_fields(&fixture, "{ \"_id\" : \"ada\", \"visits\" : 4 }");
    drop_head(&fixture, INCARNATION, 0);
    assert_fields(&fixture, NULL);
    fixture_close(&fixture);
}

/* ---- numbers without an element -------------------------------------------------------------- */

static void numbers_are_skipped(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_after_skip(&fixture, 3, 0, NULL, 1000000); /* creates the head */
    assert_head(&fixture, "rev+0 first=1000000 low=1000000 |");
    assert_int_equal(fixture.response.state.live, 0);
    append_after_skip(&fixture, 3, 1000000, "5|1", 1000002);
    assert_head(&fixture, "rev+0 first=1000002 low=1000002 | 1000002 1000003");
    append_after_skip(&fixture, 3, 1000004, NULL, 1000006);
    assert_head(&fixture, "rev+0 first=1000002 gone=1000004,1000005 low=1000002 | 1000002 1000003");
    fixture_reopen(&fixture);
    append_after_skip(&fixture, 3, 1000006, "7|3|0", 1000007);
    assert_head(&fixture, "rev+0 first=1000002 gone=1000003,1000004,1000005,1000006,1000009 "
                          "low=1000002 | 1000002 1000007 1000008");
    assert_int_equal(fixture.response.state.live, 3);
    append_games(&fixture, 3, "6", 1000010);
    assert_head(&fixture, "rev+0 first=1000002 gone=1000003,1000004,1000005,1000006,1000008,"
                          "1000009 low=1000002 | 1000002 1000007 1000010");
    assert_sound(&fixture);
    drop_head(&fixture, INCARNATION, 0);
    append_after_skip(&fixture, 3, 0, "5", INT64_C(1) << 40);
    assert_int_equal(fixture.response.state.first, INT64_C(1) << 40);
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, 1, INT64_C(1) << 40, NULL),
                     SPILL_DONE);
    append_after_skip(&fixture, 3, (INT64_C(1) << 40) + 1, NULL, INT64_C(1) << 41);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/*
 * An operation covers the numbers that it assigned. A later append with that id is refused if it
 * begins within them.
 */
static void skipping_append_is_an_operation(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    spill_op_t a = {.id = "a", .id_bytes = 1}, b = {.id = "b", .id_bytes = 1, .base = 1};
    assert_int_equal(try_skipping(&fixture, 2, 4, NULL, 4, &a), SPILL_DONE);
    assert_int_equal(try_skipping(&fixture, 2, 4, NULL, 4, &a), SPILL_REFUSED_GUARD);
    assert_int_equal(try_games(&fixture, 2, "5|6|7", 0, &a), SPILL_REFUSED_GUARD);
    assert_int_equal(try_skipping(&fixture, 2, 3, "1|2", 7, &b), SPILL_DONE);
    assert_int_equal(try_games(&fixture, 2, "1", 4, &b), SPILL_REFUSED_GUARD);
    fixture_reopen(&fixture);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+4 b@1:4+5");
    append_after_skip(&fixture, 2, 9, "8", 10);
    assert_ops(&fixture, SPILL_HEAD, "a@0:0+4 b@1:4+5");
    assert_int_equal(try_skipping(&fixture, 2, 4, NULL, 4, &a), SPILL_REFUSED_GUARD);
    assert_head(&fixture, "rev+0 first=8 gone=9 n=2 low=8 | 8 10");
    fixture_close(&fixture);
}

/* ---- other steps ----------------------------------------------------------------------------- */

static void dropped_element_cannot_be_changed(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 2, "5|1|7", 0);
    assert_head(&fixture, "rev+0 gone=1 | 0 2");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_EDIT, 0, 1, "9"), SPILL_REFUSED_GUARD);
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, 0, 1, NULL),
                     SPILL_REFUSED_GUARD);
    /* now the lowest */
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_EDIT, 0, 2, "3"), SPILL_DONE);
    append_games(&fixture, 2, "4", 3);
    assert_head(&fixture, "rev+1 gone=1,2 | 0 3");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_EDIT, 1, 2, "9"), SPILL_REFUSED_GUARD);
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, 1, 3, NULL), SPILL_DONE);
    append_games(&fixture, 2, "0", 4); /* there is room */
    assert_head(&fixture, "rev+2 gone=1,2,3 | 0 4");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, 2, 0, NULL), SPILL_DONE);
    assert_head(&fixture, "rev+3 first=4 low=4 | 4");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_REMOVE, 3, 4, NULL), SPILL_DONE);
    assert_head(&fixture, "rev+4 first=5 low=5 |");
    append_games(&fixture, 2, "3|1|2", 5);
    assert_head(&fixture, "rev+4 first=5 gone=6 low=5 | 5 7");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void trim_removes_oldest(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 3, "9|1|8|7|2", 0);
    assert_head(&fixture, "rev+0 gone=1,4 | 0 2 3");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_TRIM, 0, 1, NULL), SPILL_DONE);
    assert_head(&fixture, "rev+1 first=2 gone=4 low=2 | 2 3");
    assert_int_equal(edit_or_remove(&fixture, SPILL_REQUEST_TRIM, 1, 5, NULL), SPILL_DONE);
    assert_head(&fixture, "rev+2 first=5 low=5 |");
    append_games(&fixture, 3, "1", 5);
    assert_head(&fixture, "rev+2 first=5 low=5 | 5");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* Two elements were counted as the newest; then an append drops one of them. */
static void trim_by_count_is_refused_after_append(void **state)
{
    fixture_t fixture;
    open_top_n(&fixture, *state);
    append_games(&fixture, 3, "9|1|8", 0);
    spill_request_t trim = make_request(&fixture, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.rev = INCARNATION;
    trim.change.watermark = 1;
    trim.change.end = 3;
    append_games(&fixture, 1, "2", 3);
    assert_refused(&fixture, &trim);
    assert_head(&fixture, "rev+0 gone=1,2,3 | 0");
    trim.change.end = 4;
    assert_done(&fixture, &trim);
    fixture_close(&fixture);
}

/* ---- compared with a plain list -------------------------------------------------------------- */

typedef struct game {
    int64_t seq, score;
} game_t;

typedef struct plain {
    game_t games[ELEMENTS_MAX];
    size_t count;
    int64_t next, rev, watermark;
    uint32_t dice;
} plain_t;

static int64_t random_below(plain_t *plain, int64_t sides)
{
    plain->dice = plain->dice * 1664525u + 1013904223u;
    return (int64_t)(plain->dice >> 8) % sides;
}

static void unmanaged_remove(plain_t *plain, size_t index)
{
    plain->count--;
    memmove(plain->games + index, plain->games + index + 1,
            (plain->count - index) * sizeof *plain->games);
}

static void append_some(fixture_t *fixture, plain_t *plain)
{
    char scores[256] = "";
    int64_t cap = 1 + random_below(plain, 6), count = 1 + random_below(plain, 5);
    int64_t from = plain->next;
    if (random_below(plain, 4) == 0)
        plain->next += 1 + random_below(plain, 5);
    for (int64_t i = 0; i < count; i++) {
        game_t game = {.seq = plain->next + i, .score = random_below(plain, 12)};
        plain->games[plain->count++] = game;
        snprintf(scores + strlen(scores), sizeof scores - strlen(scores), "%s%lld",
                 i > 0 ? "|" : "", (long long)game.score);
    }
    while ((int64_t)plain->count > cap) {
        size_t lowest = 0;
        for (size_t i = 1; i < plain->count; i++)
            if (plain->games[i].score < plain->games[lowest].score)
                lowest = i;
        unmanaged_remove(plain, lowest);
    }
    append_after_skip(fixture, cap, from, scores, plain->next);
    plain->next += count;
}

static void change_one(fixture_t *fixture, plain_t *plain)
{
    size_t index = (size_t)random_below(plain, (int64_t)plain->count);
    game_t *game = &plain->games[index];
    char score[24];
    game->score = random_below(plain, 12);
    snprintf(score, sizeof score, "%lld", (long long)game->score);
    assert_int_equal(edit_or_remove(fixture, SPILL_REQUEST_EDIT, plain->rev++, game->seq, score),
                     SPILL_DONE);
}

static void drop_some(fixture_t *fixture, plain_t *plain)
{
    size_t index = (size_t)random_below(plain, (int64_t)plain->count);
    int64_t seq = plain->games[index].seq;
    if (random_below(plain, 3) > 0) {
        assert_int_equal(edit_or_remove(fixture, SPILL_REQUEST_REMOVE, plain->rev++, seq, NULL),
                         SPILL_DONE);
        unmanaged_remove(plain, index);
        return;
    }
    int64_t watermark = plain->count > 0 ? plain->games[0].seq : plain->next;
    assert_int_equal(edit_or_remove(fixture, SPILL_REQUEST_TRIM, plain->rev, seq, NULL),
                     seq > watermark ? SPILL_DONE : SPILL_REFUSED_GUARD);
    plain->rev += seq > watermark;
    while (plain->count > 0 && plain->games[0].seq < seq)
        unmanaged_remove(plain, 0);
}

static void compare_run(fixture_t *fixture, const plain_t *plain, spill_want_t want, int64_t seq,
                        int64_t limit)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = want;
    read.read.seq = seq;
    read.read.limit = limit;
    assert_done(fixture, &read);
    const spill_run_t *run = &fixture->response.run;
    size_t at = 0;
    for (size_t i = 0; i < plain->count && (int64_t)at < limit; i++) {
        bool forward = want == SPILL_WANT_FORWARD;
        const game_t *game = &plain->games[forward ? i : plain->count - 1 - i];
        if (forward ? game->seq < seq : game->seq > seq)
            continue;
        assert_true(at < run->count);
        spill_element_t element = spill_run_element(run, at++);
        spill_value_t score;
        assert_int_equal(element.seq, game->seq);
        assert_true(spill_value_at(&element.value, "game.score", &score));
        assert_int_equal(spill_value_int32(&score), game->score);
    }
    assert_int_equal(run->count, at);
    assert_int_equal(spill_state_end(&fixture->response.state), plain->next);
    assert_int_equal(fixture->response.state.live, plain->count);
    if (plain->count > 0)
        assert_int_equal(fixture->response.state.first, plain->games[0].seq);
    assert_int_equal(fixture->response.state.watermark, fixture->response.state.first);
}

static void compare_id(fixture_t *fixture, const plain_t *plain, int64_t id)
{
    spill_value_t wanted = number_value(&id);
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_ID;
    read.read.id = &wanted;
    read.read.limit = 1;
    bool there = false;
    for (size_t i = 0; i < plain->count; i++)
        there = there || plain->games[i].seq == id;
    assert_done(fixture, &read);
    assert_int_equal(fixture->response.run.count, there);
    if (there)
        assert_int_equal(fixture->response.run.entries[0].seq, id);
}

static void capped_head_matches_plain_top_n(void **state)
{
    enum { STEPS = 250 };
    fixture_t fixture;
    plain_t plain = {.dice = 7};
    open_top_n(&fixture, *state);
    for (int i = 0; i < STEPS; i++) {
        int64_t kind = plain.count > 0 ? random_below(&plain, 10) : 0;
        if (kind < 6)
            append_some(&fixture, &plain);
        else if (kind < 8)
            change_one(&fixture, &plain);
        else
            drop_some(&fixture, &plain);
        compare_run(&fixture, &plain, SPILL_WANT_FORWARD, 0, INT64_MAX);
        int64_t seq = random_below(&plain, plain.next + 2);
        compare_run(&fixture, &plain, SPILL_WANT_FORWARD, seq, 1 + random_below(&plain, 3));
        compare_run(&fixture, &plain, SPILL_WANT_BACKWARD, seq, 1 + random_below(&plain, 3));
        compare_id(&fixture, &plain, seq);
        if (i % 25 == 0) {
            assert_sound(&fixture);
            fixture_reopen(&fixture);
        }
    }
    assert_true(plain.next > 300);
    fixture_close(&fixture);
}

void add_top_n_tests(suite_t *suite)
{
    SUITE_ADD(suite, append_drops_lowest);
    SUITE_ADD(suite, ranks_match_layout_subset);
    SUITE_ADD(suite, batch_of_any_size_is_one_step);
    SUITE_ADD(suite, append_drops_lowest_until_bytes_fit);
    SUITE_ADD(suite, element_over_document_limit_is_refused);
    SUITE_ADD(suite, operations_outlive_their_elements);
    SUITE_ADD(suite, append_updates_other_fields_with_top_n);
    SUITE_ADD(suite, numbers_are_skipped);
    SUITE_ADD(suite, skipping_append_is_an_operation);
    SUITE_ADD(suite, dropped_element_cannot_be_changed);
    SUITE_ADD(suite, trim_removes_oldest);
    SUITE_ADD(suite, trim_by_count_is_refused_after_append);
    SUITE_ADD(suite, capped_head_matches_plain_top_n);
}
