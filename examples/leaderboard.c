/*
 * The ten best scores of each game: a capped array with a sort field keeps the top-N elements in
 * the game's own document. The append returns whether a score was kept. A score that is sent twice
 * counts once, whether it was kept or not.
 *
 *   leaderboard [STORE]      STORE is rocksdb:PATH; without it, a store in memory
 */
#include <spillway/spillway.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLACES = 10, PLAYED = 2000, SCORE_MAX = 100000 };

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK) {
        fprintf(stderr, "%s: %s\n", spill_code_name(code), error->message);
        exit(1);
    }
}

static spill_array_t *open_board(spill_store_t *store)
{
    spill_error_t error;
    spill_definition_t board;
    spill_definition_init(&board, "board");
    spill_definition_set_layout(&board, SPILL_LAYOUT_CAPPED);
    board.bounds.threshold = PLACES;
    strcpy(board.sort_field, "score");
    strcpy(board.collection, "games");
    strcpy(board.array, "best");
    check(spill_store_define(store, &board, &error), &error);

    spill_array_t *array;
    check(spill_array_open(store, "board", &array, &error), &error);
    return array;
}

/* Append the score of a match; the match number is the operation's id. Returns whether it was kept.
 */
static bool submit_score(spill_array_t *board, const spill_value_t *game, int32_t match,
                         int32_t score, int64_t *base)
{
    char id[24], player[24];
    snprintf(id, sizeof id, "match-%" PRId32, match);
    snprintf(player, sizeof player, "player-%" PRId32, match % 97);
    spill_op_t op = {.id = id, .id_bytes = strlen(id), .base = *base};
    spill_append_options_t options;
    spill_append_options_init(&options);
    options.op = &op;

    bson_t *document = BCON_NEW("player", BCON_UTF8(player), "score", BCON_INT32(score));
    spill_value_t element = spill_value_from_document(document);
    spill_append_result_t result;
    spill_error_t error;
    check(spill_array_append(board, game, &element, 1, &options, &result, &error), &error);
    /* Send it again, as if the first answer had been lost: the store recognizes the id. */
    check(spill_array_append(board, game, &element, 1, &options, &result, &error), &error);
    *base = result.op_base;
    bson_destroy(document);
    return result.repeated && result.dropped == 0;
}

static int by_score(const void *left, const void *right)
{
    int32_t one = *(const int32_t *)left, other = *(const int32_t *)right;
    return (one < other) - (one > other);
}

static int32_t score_of(const spill_value_t *element)
{
    bson_t document;
    bson_iter_t iter;
    bool found = bson_init_static(&document, element->data, element->size_bytes) &&
                 bson_iter_init_find(&iter, &document, "score");
    return found ? bson_iter_int32(&iter) : -1;
}

/* Print the board. Returns whether its scores are the best of all. */
static bool is_right(const spill_slice_t *best, int32_t *scores)
{
    bool right = best->count == PLACES;
    qsort(scores, PLAYED, sizeof *scores, by_score);
    for (size_t i = 0; i < best->count; i++) {
        char *json = spill_value_to_json(&best->elements[i].value, true);
        printf("%2zu. %s\n", i + 1, json);
        bson_free(json);
        right = right && score_of(&best->elements[i].value) == scores[i];
    }
    return right;
}

int main(int argc, char **argv)
{
    static int32_t scores[PLAYED];
    spill_error_t error;
    spill_store_t *store;
    check(spill_store_open(argc > 1 ? argv[1] : "memory:", NULL, &store, &error), &error);
    spill_array_t *board = open_board(store);
    bson_t storage = BSON_INITIALIZER;
    spill_value_t game = spill_value_from_utf8(&storage, "tower");
    int64_t base;
    int made = 0;
    uint32_t dice = 1;
    check(spill_array_op_base(board, &game, &base, &error), &error);
    for (int32_t match = 0; match < PLAYED; match++) {
        dice = dice * 1664525u + 1013904223u;
        scores[match] = (int32_t)(dice >> 8) % SCORE_MAX;
        made += submit_score(board, &game, match, scores[match], &base);
    }

    spill_count_t count;
    check(spill_array_count(board, &game, &count, &error), &error);
    printf("%" PRId64 " of %" PRId64 " scores are kept; %d were among the best when they came\n",
           count.count, count.next, made);

    spill_slice_t *best;
    check(spill_array_top(board, &game, PLACES, &best, &error), &error);
    bool right = is_right(best, scores) && count.next == PLAYED && made >= PLACES;
    spill_slice_free(best);
    bson_destroy(&storage);
    spill_array_close(board);
    check(spill_store_close(store, &error), &error);
    return right ? 0 : 1;
}
