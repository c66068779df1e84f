/*
 * The matrix on a MongoDB-compatible server: completely with SPILLWAY_LONG, else a few arrays of
 * each layout, with small, equal and very different bounds.
 */
#include "model/matrix.h"
#include "support/effort.h"
#include "support/server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void cut(spill_store_t *store)
{
    static const struct {
        int64_t threshold;
        int64_t page;
    } cells[] = {{1, 1}, {1, 1000}, {2, 7}, {7, 3}, {100, 100}, {1000, 2}};
    matrix_play_referenced(store, 1, 3);
    matrix_play_subset(store, 7, "value", 3);
    matrix_play_subset(store, 2, "", 1);
    matrix_play_best(store, 7, "rating", SPILL_ARRAY_OLDEST_FIRST);
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        matrix_cell_t cell = {.keep = i % 2 ? SPILL_KEEP_NEWEST : SPILL_KEEP_OLDEST,
                              .order =
                                  i / 2 % 2 ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST,
                              .threshold = cells[i].threshold,
                              .page = cells[i].page};
        matrix_play_cell(store, &cell);
    }
    for (int i = 0; i < 2; i++) {
        static const int64_t caps[] = {1, 100};
        matrix_cell_t cell = {.layout = SPILL_LAYOUT_CAPPED,
                              .keep = SPILL_KEEP_NEWEST,
                              .order = i % 2 ? SPILL_ARRAY_NEWEST_FIRST : SPILL_ARRAY_OLDEST_FIRST,
                              .threshold = caps[i]};
        matrix_play_cell(store, &cell);
    }
}

static void mongo_store(void **state)
{
    (void)state;
    char *uri = server_new_database(NULL);
    spill_store_t *store = server_open_indexed(uri);
    if (effort(true, false, false))
        matrix_play(store);
    else
        cut(store);
    server_close(store);
    server_drop(uri);
    bson_free(uri);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(mongo_store)};
    server_uri();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
