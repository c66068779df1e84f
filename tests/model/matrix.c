#include "model/matrix.h"

#include "model/model.h"
#include "simulation/random.h"
#include "support/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const int64_t sizes[MATRIX_SIZES] = {1, 2, 3, 7, 100, 1000};

enum { BATCH_MAX = 64 };

typedef struct player {
    sim_random_t random;
    spill_array_t *array;
    spill_value_t owner;
    model_t model;
} player_t;

static void expect_ok(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static int64_t random_seq(player_t *player)
{
    return sim_random_between(&player->random, 0, (int)player->model.count);
}

/* A top-N by value does not accept decimals. */
static int random_kind(player_t *player)
{
    const model_t *model = &player->model;
    int kind = sim_random_below(&player->random, model_kinds());
    bool refused = model->top_n && strcmp(model->by, "value") == 0 &&
                   model_value(kind).type == BSON_TYPE_DECIMAL128;
    return refused ? (kind + 1) % model_kinds() : kind;
}

static void append(player_t *player, size_t count)
{
    spill_value_t elements[BATCH_MAX];
    int kinds[BATCH_MAX];
    for (size_t i = 0; i < count; i++) {
        kinds[i] = random_kind(player);
        elements[i] = model_element(&player->model, kinds[i]);
    }
    spill_append_result_t result;
    spill_error_t error;
    int64_t first = player->model.count;
    expect_ok(
        spill_array_append(player->array, &player->owner, elements, count, NULL, &result, &error),
        &error);
    assert_int_equal(result.first, first);
    assert_int_equal(result.count, count);
    for (size_t i = 0; i < count; i++)
        model_push(&player->model, kinds[i]);
}

static void read_randomly(player_t *player)
{
    sim_random_t *random = &player->random;
    spill_read_options_t options;
    spill_read_options_init(&options);
    options.order = sim_random_below(random, 2) ? SPILL_NEWEST_FIRST : SPILL_OLDEST_FIRST;
    options.limit = sim_random_between(random, 1, 30);
    if (sim_random_chance(random, 300))
        options.before = random_seq(player);
    if (sim_random_chance(random, 300))
        options.after = random_seq(player) - 1;
    if (sim_random_chance(random, 300))
        options.skip = sim_random_between(random, 0, 40);
    model_check_read(&player->model, player->array, &player->owner, &options);
}

static bool is_live(const player_t *player, int64_t seq)
{
    return seq < player->model.count && player->model.kinds[seq] >= 0;
}

static void edit(player_t *player)
{
    int64_t seq = random_seq(player);
    int kind = random_kind(player);
    spill_value_t element = model_element(&player->model, kind);
    spill_error_t error;
    bool there = is_live(player, seq);
    spill_code_t code = spill_array_edit(player->array, &player->owner, seq, &element, &error);
    assert_int_equal(code, there ? SPILL_OK : SPILL_NOT_FOUND);
    if (there)
        model_set(&player->model, seq, kind);
}

static void remove_one(player_t *player)
{
    int64_t seq = random_seq(player);
    spill_error_t error;
    bool there = is_live(player, seq);
    spill_code_t code = spill_array_remove(player->array, &player->owner, seq, &error);
    assert_int_equal(code, there ? SPILL_OK : SPILL_NOT_FOUND);
    if (there)
        model_remove(&player->model, seq);
}

/* The documents among the model's values all have the same id. */
static int64_t first_with_id(const player_t *player, int *kind)
{
    for (*kind = 0; model_value(*kind).type != BSON_TYPE_DOCUMENT;)
        ++*kind;
    int64_t seq = 0;
    while (seq < player->model.count && player->model.kinds[seq] != *kind)
        seq++;
    return seq < player->model.count ? seq : -1;
}

static void by_id(player_t *player)
{
    static const int32_t number = 3;
    spill_value_t id = {.data = (const uint8_t *)&number, .size_bytes = 4, .type = BSON_TYPE_INT32};
    int kind;
    int64_t seq = 0;
    int64_t expected = first_with_id(player, &kind);
    int what = sim_random_below(&player->random, 3);
    int next = random_kind(player);
    spill_value_t element = model_element(&player->model, next);
    spill_code_t code;
    spill_error_t error;
    if (what == 0)
        code = spill_array_find_id(player->array, &player->owner, &id, &seq, &error);
    else if (what == 1)
        code = spill_array_remove_id(player->array, &player->owner, &id, &seq, &error);
    else
        code = spill_array_edit_id(player->array, &player->owner, &id, &element, &seq, &error);
    assert_int_equal(code, expected >= 0 ? SPILL_OK : SPILL_NOT_FOUND);
    assert_int_equal(seq, expected);
    if (expected >= 0 && what == 1)
        model_remove(&player->model, seq);
    else if (expected >= 0 && what == 2)
        model_set(&player->model, seq, next);
}

/* Remove elements that are numbers below 0, at most a few of them. */
static void remove_where(player_t *player)
{
    model_t *model = &player->model;
    bson_t *filter = model->documents ? BCON_NEW("value", "{", "$lt", BCON_INT32(0), "}")
                                      : BCON_NEW("$lt", BCON_INT32(0));
    int64_t limit = sim_random_below(&player->random, 4);
    int64_t expected = 0;
    int64_t removed;
    spill_error_t error;
    spill_code_t code =
        spill_array_remove_where(player->array, &player->owner, filter, limit, &removed, &error);
    expect_ok(code, &error);
    for (int64_t seq = 0; seq < model->count && (limit == 0 || expected < limit); seq++) {
        uint8_t type = model->kinds[seq] < 0 ? 0 : model_value(model->kinds[seq]).type;
        /* -7, and the lowest of each type */
        bool below = type == BSON_TYPE_INT32 || type == BSON_TYPE_INT64;
        if (below)
            model_remove(model, seq);
        expected += below;
    }
    assert_int_equal(removed, expected);
    bson_destroy(filter);
}

static void trim_keep(player_t *player)
{
    model_t *model = &player->model;
    int64_t keep = sim_random_between(&player->random, (int)model->live / 2, (int)model->live + 2);
    int64_t below = model->count;
    int64_t left = keep;
    int64_t got;
    spill_error_t error;
    while (below > 0 && left > 0)
        left -= model->kinds[--below] >= 0;
    spill_code_t code = spill_array_trim_keep(player->array, &player->owner, keep, &got, &error);
    assert_int_equal(code, model->count > 0 ? SPILL_OK : SPILL_NOT_FOUND);
    if (model->live > keep)
        model_trim(model, below);
    assert_true(code != SPILL_OK || got <= model->count);
}

static void trim(player_t *player)
{
    int64_t below = random_seq(player) / 3;
    spill_error_t error;
    spill_code_t code = spill_array_trim(player->array, &player->owner, below, &error);
    assert_int_equal(code, player->model.count > 0 ? SPILL_OK : SPILL_NOT_FOUND);
    model_trim(&player->model, below);
}

static void run_operations(player_t *player)
{
    const spill_bounds_t *bounds = &spill_array_get_definition(player->array)->bounds;
    while (player->model.count < bounds->threshold + 2 * bounds->page_capacity)
        append(player, BATCH_MAX);
    int64_t operations = effort(250, 80, 40);
    for (int64_t i = 0; i < operations; i++) {
        int roll = sim_random_below(&player->random, 100);
        if (roll < 35)
            append(player, 1);
        else if (roll < 50)
            append(player, (size_t)sim_random_between(&player->random, 2, BATCH_MAX));
        else if (roll < 70)
            read_randomly(player);
        else if (roll < 78 && player->model.top > 0)
            model_check_top(&player->model, player->array, &player->owner);
        else if (roll < 78)
            model_check_count(&player->model, player->array, &player->owner);
        else if (roll < 87)
            edit(player);
        else if (roll < 94)
            remove_one(player);
        else if (roll < 97)
            by_id(player);
        else if (roll < 98 && sim_random_chance(&player->random, 300))
            remove_where(player);
        else if (roll < 98)
            trim_keep(player);
        else
            trim(player);
    }
    model_check_count(&player->model, player->array, &player->owner);
    if (player->model.top > 0)
        model_check_top(&player->model, player->array, &player->owner);
    model_check_export(&player->model, player->array, &player->owner);
    model_check_verify(player->array, &player->owner);
}

void matrix_play_cell(spill_store_t *store, const matrix_cell_t *cell)
{
    static int64_t number;
    spill_definition_t definition;
    spill_error_t error;
    char name[64];
    int64_t owner = ++number;
    player_t player = {.random = {(uint64_t)(cell->threshold * 10007 + cell->page * 31 +
                                             (int)cell->keep + 2 * (int)cell->order)},
                       .owner = {.data = (const uint8_t *)&owner,
                                 .size_bytes = sizeof owner,
                                 .type = BSON_TYPE_INT64}};
    bool capped = cell->layout == SPILL_LAYOUT_CAPPED;
    player.model.cap = capped ? cell->threshold : 0;
    snprintf(name, sizeof name, "t%d-p%d-k%d-o%d-l%d", (int)cell->threshold, (int)cell->page,
             (int)cell->keep, (int)cell->order, (int)cell->layout);
    spill_definition_init(&definition, name);
    snprintf(definition.collection, sizeof definition.collection, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%s.pages", name);
    definition.keep = cell->keep;
    definition.order = cell->order;
    definition.bounds.threshold = cell->threshold;
    definition.bounds.page_capacity = cell->page;
    snprintf(definition.id_field, sizeof definition.id_field, "number");
    spill_definition_set_layout(&definition, cell->layout);
    expect_ok(spill_store_define(store, &definition, &error), &error);
    expect_ok(spill_array_open(store, name, &player.array, &error), &error);
    run_operations(&player);
    spill_array_close(player.array);
    model_clear(&player.model);
}

void matrix_play_referenced(spill_store_t *store, int64_t threshold, int64_t page)
{
    spill_definition_t definition;
    spill_error_t error;
    char name[64];
    int64_t owner = threshold * 10000 + page;
    player_t player = {.random = {(uint64_t)(threshold * 10007 + page * 31)},
                       .owner = {.data = (const uint8_t *)&owner,
                                 .size_bytes = sizeof owner,
                                 .type = BSON_TYPE_INT64},
                       .model = {.documents = true}};
    snprintf(name, sizeof name, "apart-t%d-p%d", (int)threshold, (int)page);
    expect_ok(spill_definition_preset(&definition, "reviews-separate", name, &error), &error);
    snprintf(definition.collection, sizeof definition.collection, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%s.elements", name);
    snprintf(definition.id_field, sizeof definition.id_field, "value.number");
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = page;
    expect_ok(spill_store_define(store, &definition, &error), &error);
    expect_ok(spill_array_open(store, name, &player.array, &error), &error);
    run_operations(&player);
    spill_array_close(player.array);
    model_clear(&player.model);
}

void matrix_play_subset(spill_store_t *store, int64_t top, const char *by, int64_t threshold)
{
    spill_definition_t definition;
    spill_error_t error;
    char name[64];
    int64_t owner = top;
    player_t player = {.random = {(uint64_t)(threshold * 10007 + top * 31) + strlen(by)},
                       .owner = {.data = (const uint8_t *)&owner,
                                 .size_bytes = sizeof owner,
                                 .type = BSON_TYPE_INT64},
                       .model = {.documents = true, .top = top, .by = by}};
    snprintf(name, sizeof name, "subset-k%d-%s", (int)top, by);
    expect_ok(spill_definition_preset(&definition, "reviews-subset", name, &error), &error);
    snprintf(definition.collection, sizeof definition.collection, "%s", name);
    snprintf(definition.page_collection, sizeof definition.page_collection, "%s.elements", name);
    snprintf(definition.sort_field, sizeof definition.sort_field, "%s", by);
    snprintf(definition.id_field, sizeof definition.id_field, "value.number");
    definition.top_count = top;
    definition.bounds.threshold = threshold;
    definition.bounds.page_capacity = 3;
    expect_ok(spill_store_define(store, &definition, &error), &error);
    expect_ok(spill_array_open(store, name, &player.array, &error), &error);
    run_operations(&player);
    spill_array_close(player.array);
    model_clear(&player.model);
}

void matrix_play_best(spill_store_t *store, int64_t cap, const char *by, spill_array_order_t order)
{
    spill_definition_t definition;
    spill_error_t error;
    char name[64];
    int64_t owner = cap;
    player_t player = {
        .random = {(uint64_t)(cap * 10007) + strlen(by)},
        .owner = {.data = (const uint8_t *)&owner,
                  .size_bytes = sizeof owner,
                  .type = BSON_TYPE_INT64},
        .model = {.documents = true, .top = INT64_MAX, .by = by, .cap = cap, .top_n = true}};
    snprintf(name, sizeof name, "best-c%d-%s-o%d", (int)cap, by, (int)order);
    spill_definition_init(&definition, name);
    spill_definition_set_layout(&definition, SPILL_LAYOUT_CAPPED);
    snprintf(definition.collection, sizeof definition.collection, "%s", name);
    snprintf(definition.sort_field, sizeof definition.sort_field, "%s", by);
    snprintf(definition.id_field, sizeof definition.id_field, "value.number");
    definition.bounds.threshold = cap;
    definition.order = order;
    expect_ok(spill_store_define(store, &definition, &error), &error);
    expect_ok(spill_array_open(store, name, &player.array, &error), &error);
    run_operations(&player);
    spill_array_close(player.array);
    model_clear(&player.model);
}

void matrix_play(spill_store_t *store)
{
    static const char *const ranks[] = {"rating", "value", ""};
    for (int i = 0; i < MATRIX_SUBSETS; i++)
        matrix_play_subset(store, sizes[i % 4], ranks[i / 4], 1 + i % 3);
    for (int i = 0; i < MATRIX_TOP_N; i++)
        matrix_play_best(store, sizes[i / 2], ranks[i % 2],
                         i / 2 % 2 ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST);
    for (int i = 0; i < MATRIX_REFERENCED; i++)
        matrix_play_referenced(store, sizes[i % 4], sizes[1 + i / 4]);
    for (int i = 0; i < 2 * MATRIX_SIZES; i++) {
        matrix_cell_t cell = {.layout = SPILL_LAYOUT_CAPPED,
                              .keep = SPILL_KEEP_NEWEST,
                              .order = i % 2 ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST,
                              .threshold = sizes[i / 2]};
        matrix_play_cell(store, &cell);
    }
    for (int i = 0; i < 4 * MATRIX_SIZES * MATRIX_SIZES; i++) {
        matrix_cell_t cell = {.keep = i % 2 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST,
                              .order =
                                  i / 2 % 2 ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST,
                              .threshold = sizes[i / 4 % MATRIX_SIZES],
                              .page = sizes[i / 4 / MATRIX_SIZES]};
        matrix_play_cell(store, &cell);
    }
}
