/* The memory of the tail cache: segments, and the blocks that are freed and moved in them. */
#include "store/embedded/tail_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { SEGMENTS = 3, SEGMENT_BYTES = 1024, BLOCK_BYTES = 256, BLOCKS = 64 };

/* Each block has the number of its place in `blocks`. */
typedef struct numbered {
    spill_tail_block_t head;
    uint32_t number;
} numbered_t;

typedef struct fixture {
    spill_tail_pool_t *pool;
    spill_tail_memory_t memory;
    numbered_t *blocks[BLOCKS]; /* NULL: freed */
    uint32_t count;
    int moves;
} fixture_t;

static void open_memory(fixture_t *fixture)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->pool = spill_tail_pool_new(SEGMENTS, SEGMENT_BYTES);
    assert_non_null(fixture->pool);
    spill_tail_memory_init(&fixture->memory, fixture->pool, SEGMENTS);
}

static void close_memory(fixture_t *fixture)
{
    spill_tail_memory_release(&fixture->memory);
    spill_tail_pool_free(fixture->pool);
}

static void note(void *context, spill_tail_block_t *from, spill_tail_block_t *to)
{
    fixture_t *fixture = context;
    const numbered_t *block = (const numbered_t *)(to ? to : from);
    assert_ptr_equal(fixture->blocks[block->number], from);
    fixture->blocks[block->number] = (numbered_t *)to;
    fixture->moves += to != NULL;
    if (!to)
        from->live = false;
}

static bool take(fixture_t *fixture, size_t bytes)
{
    numbered_t *block =
        (numbered_t *)spill_tail_memory_take(&fixture->memory, bytes, note, fixture);
    if (!block)
        return false;
    assert_int_equal(block->head.bytes, bytes);
    assert_true(block->head.live);
    block->number = fixture->count;
    fixture->blocks[fixture->count++] = block;
    return true;
}

/* The live blocks are where the fixture knows them, and no two of them overlap. */
static void check_blocks(const fixture_t *fixture)
{
    for (uint32_t i = 0; i < fixture->count; i++) {
        const numbered_t *block = fixture->blocks[i];
        if (!block)
            continue;
        assert_int_equal(block->number, i);
        for (uint32_t k = 0; k < i; k++) {
            const numbered_t *other = fixture->blocks[k];
            assert_true(!other || (const uint8_t *)block >= (const uint8_t *)other + BLOCK_BYTES ||
                        (const uint8_t *)other >= (const uint8_t *)block + BLOCK_BYTES);
        }
    }
}

static void blocks_in_use_stay(void **state)
{
    (void)state;
    fixture_t fixture;
    open_memory(&fixture);
    while (spill_tail_memory_has_room(&fixture.memory, 0, SEGMENTS * SEGMENT_BYTES))
        assert_true(take(&fixture, BLOCK_BYTES)); /* until all segments are taken */
    while (fixture.count < SEGMENTS * SEGMENT_BYTES / BLOCK_BYTES)
        assert_true(take(&fixture, BLOCK_BYTES));
    assert_false(
        spill_tail_memory_has_room(&fixture.memory, (size_t)SEGMENTS * SEGMENT_BYTES, BLOCK_BYTES));
    fixture.blocks[1]->head.used = true;
    fixture.blocks[3]->head.live = false;
    fixture.blocks[3] = NULL;
    assert_true(take(&fixture, BLOCK_BYTES));
    assert_null(fixture.blocks[0]); /* not in use */
    assert_non_null(fixture.blocks[1]);
    assert_int_equal(fixture.moves, 1);
    assert_false(fixture.blocks[1]->head.used);
    assert_null(fixture.blocks[2]);
    assert_non_null(fixture.blocks[4]); /* in the next segment */
    check_blocks(&fixture);
    close_memory(&fixture);
}

/* If all blocks are in use, a second turn frees them: a block that fits a segment is never refused.
 */
static void a_block_that_fits_is_made(void **state)
{
    (void)state;
    fixture_t fixture;
    open_memory(&fixture);
    while (fixture.count < BLOCKS - 1) {
        assert_true(take(&fixture, BLOCK_BYTES));
        for (uint32_t i = 0; i < fixture.count; i++)
            if (fixture.blocks[i])
                fixture.blocks[i]->head.used = true;
        check_blocks(&fixture);
    }
    assert_true(take(&fixture, SEGMENT_BYTES));
    assert_false(take(&fixture, SEGMENT_BYTES + 1));
    close_memory(&fixture);
}

static void cleared_memory_is_used_again(void **state)
{
    (void)state;
    fixture_t fixture;
    open_memory(&fixture);
    assert_true(take(&fixture, SEGMENT_BYTES));
    assert_true(take(&fixture, SEGMENT_BYTES));
    const numbered_t *first = fixture.blocks[0];
    spill_tail_memory_clear(&fixture.memory);
    assert_true(take(&fixture, BLOCK_BYTES));
    assert_ptr_equal(fixture.blocks[2], first);
    assert_int_equal(fixture.moves, 0);
    close_memory(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_in_use_stay),
        cmocka_unit_test(a_block_that_fits_is_made),
        cmocka_unit_test(cleared_memory_is_used_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
