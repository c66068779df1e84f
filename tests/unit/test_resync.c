/*
 * Finding documents again behind damage. A search with memory gives the same answers as one
 * without, and finds all undamaged documents. Search and sources do work linear in the bytes, even
 * for hostile input: bytes and steps are counted, no time is measured.
 */
#include "tools/scan/document_source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

static uint64_t state = 0x9E3779B97F4A7C15U;

static uint32_t next_random(uint32_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 33) % below;
}

static void put_u32(spill_buffer_t *to, uint32_t value)
{
    value = BSON_UINT32_TO_LE(value);
    spill_buffer_append(to, &value, sizeof value);
}

/* Put {"a": <number>}, 12 bytes. */
static void put_small(spill_buffer_t *to)
{
    put_u32(to, 12);
    spill_buffer_append(to,
                        "\x10"
                        "a\0\1\2\3\4",
                        8);
}

/* Put int32s; each could be the length of a document that ends behind the last one. */
static void put_lengths(spill_buffer_t *to, size_t count)
{
    size_t end = to->size + 7 * count + 7;
    for (size_t i = 0; i < count; i++) {
        spill_buffer_append(to,
                            "\x10"
                            "a",
                            3);
        put_u32(to, (uint32_t)(end - to->size));
    }
    spill_buffer_append(to, "\x7e\x7eX\x7e\x7e\x7e", 7);
    put_u32(to, 12); /* a header behind it, but no document */
    spill_buffer_append(to,
                        "\x10"
                        "a\0\xff\xff\xff\xff\xff\xff",
                        9);
}

/* ---- inputs that are slow to search without memory ------------------------------------------- */

static void make_one_end(spill_buffer_t *to, size_t size)
{
    put_lengths(to, size / 7);
}

static void make_many_ends(spill_buffer_t *to, size_t size)
{
    while (to->size < size)
        put_lengths(to, 500);
}

/* Two documents, and a length that reaches far. */
static void make_far(spill_buffer_t *to, size_t size)
{
    while (to->size < size) {
        put_small(to);
        put_small(to);
        put_u32(to, 20000);
        spill_buffer_append(to,
                            "\x10"
                            "b",
                            3);
    }
}

/* A candidate at each byte. */
static void make_ones(spill_buffer_t *to, size_t size)
{
    while (to->size < size)
        spill_buffer_append(to, "\1\1\1\1\1\1\1\1", 8);
}

/* Names without an end. */
static void make_names(spill_buffer_t *to, size_t size)
{
    while (to->size + 20 < size) {
        put_u32(to, (uint32_t)(size - to->size));
        spill_buffer_append(to, "\x10 name", 6);
    }
    while (to->size < size)
        spill_buffer_append(to, "\0\0\0\0\0\0\0", 7);
}

static void make_damaged(spill_buffer_t *to, size_t size)
{
    while (to->size < size)
        put_small(to);
    for (size_t i = 0; i < size / 40; i++)
        to->data[next_random((uint32_t)size)] ^= (uint8_t)(1U << next_random(8));
}

typedef void (*make_fn)(spill_buffer_t *to, size_t size);
static const make_fn FAMILIES[] = {make_one_end, make_many_ends, make_far,
                                   make_ones,    make_names,     make_damaged};
enum { FAMILY_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

/* Count the documents that are found; each search begins behind the previous document. */
static int64_t search_all(const spill_buffer_t *input, int64_t *work)
{
    spill_resync_t *resync = spill_resync_new();
    spill_resync_view_t view = {.data = input->data, .size = input->size, .ended = true};
    int64_t found = 0;
    size_t at = 0, wanted = 0;
    for (;;) {
        spill_sight_t sight = spill_resync_find(resync, &view, &at, &wanted);
        if (sight == SPILL_SIGHT_NO)
            break;
        found += sight == SPILL_SIGHT_YES;
        at += sight == SPILL_SIGHT_YES;
        assert_true(sight == SPILL_SIGHT_YES || wanted == 0); /* the whole input is available */
    }
    *work = spill_resync_work(resync);
    spill_resync_free(resync);
    return found;
}

static void work_is_linear(void **unused)
{
    (void)unused;
    static const size_t sizes[] = {100 * 1000, 2000 * 1000};
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        for (size_t j = 0; j < 2; j++) {
            spill_buffer_t input = SPILL_BUFFER_INIT;
            int64_t work;
            FAMILIES[i](&input, sizes[j]);
            search_all(&input, &work);
            print_message("family %zu: %zu bytes, %ld steps\n", i, input.size, (long)work);
            assert_true(work <= 2 * (int64_t)input.size);
            spill_buffer_release(&input);
        }
    }
}

/* ---- the same answers ------------------------------------------------------------------------ */

/* Random bytes that often form fields, lengths and ends. */
static void make_likely(spill_buffer_t *to, size_t size)
{
    static const uint8_t likely[] = {0, 0, 0, 0, 1, 2, 3, 5, 8, 10, 12, 16, 0x0a, 0x10, 0xff};
    while (to->size < size)
        spill_buffer_append(to, &likely[next_random(sizeof likely)], 1);
}

static void memory_changes_no_answer(void **unused)
{
    (void)unused;
    int64_t whole = 0;
    for (int round = 0; round < 300; round++) {
        spill_buffer_t input = SPILL_BUFFER_INIT;
        spill_resync_t *resync = spill_resync_new();
        make_likely(&input, 400);
        spill_resync_view_t view = {.data = input.data, .size = input.size, .ended = true};
        for (size_t at = 0; at + 5 <= input.size; at++) {
            for (size_t length = 5; length <= 60 && at + length <= input.size; length++) {
                size_t passed;
                bool fits = spill_resync_fits(&view, at, length, &passed);
                assert_true(spill_resync_whole(resync, &view, at, length) == fits);
                whole += fits;
            }
        }
        spill_resync_free(resync);
        spill_buffer_release(&input);
    }
    assert_true(whole > 1000);
}

/* A field that the end of the view cut off is measured once more bytes are available. */
static void more_bytes_are_seen(void **unused)
{
    (void)unused;
    spill_buffer_t input = SPILL_BUFFER_INIT;
    put_small(&input);
    put_small(&input);
    put_small(&input);
    spill_resync_t *resync = spill_resync_new();
    size_t wanted;
    for (size_t size = 0; size < 24; size++) {
        spill_resync_view_t part = {.data = input.data, .size = size};
        assert_int_equal(spill_resync_look(resync, &part, 0, &wanted), SPILL_SIGHT_CANNOT_TELL);
        assert_true(wanted > size && wanted <= 24);
    }
    spill_resync_view_t view = {.data = input.data, .size = 24};
    assert_int_equal(spill_resync_look(resync, &view, 0, &wanted), SPILL_SIGHT_YES);
    spill_resync_free(resync);
    spill_buffer_release(&input);
}

/* ---- document sources ------------------------------------------------------------------------ */

typedef struct reading {
    int64_t documents;
    int64_t problems;
    int64_t position;
    int64_t work;
} reading_t;

static void count_problem(void *context, int64_t place, const char *text)
{
    (void)place;
    (void)text;
    ++((reading_t *)context)->problems;
}

typedef spill_code_t (*open_fn)(spill_source_t *source, spill_document_source_t **document_source,
                                spill_error_t *error);

static reading_t read_source(open_fn open_source, const spill_buffer_t *input,
                             const atomic_bool *stop)
{
    char path[64];
    reading_t reading = {0};
    spill_source_t *source;
    spill_document_source_t *document_source;
    spill_error_t error;
    spill_block_t block = {0};
    int fd = memfd_create("feed", 0);
    assert_int_equal(write(fd, input->data, input->size), input->size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    assert_int_equal(spill_source_open(path, SPILL_CODEC_PLAIN, &source, &error), SPILL_OK);
    spill_source_stop_by(source, stop);
    assert_int_equal(open_source(source, &document_source, &error), SPILL_OK);
    document_source->problem = count_problem;
    document_source->context = &reading;
    do {
        spill_block_clear(&block);
        assert_int_equal(document_source->ops->next(document_source, &block, &error), SPILL_OK);
        reading.documents += (int64_t)block.count;
    } while (block.count > 0);
    reading.position = spill_source_position(source);
    reading.work = document_source->work;
    spill_document_source_close(document_source);
    spill_block_release(&block);
    close(fd);
    return reading;
}

/* Between two damaged documents all undamaged documents but one are found. */
static void whole_documents_are_found(void **unused)
{
    (void)unused;
    enum { DOCUMENTS = 200000, REFERENCED = 50 };
    spill_buffer_t input = SPILL_BUFFER_INIT;
    for (size_t i = 0; i < DOCUMENTS; i++)
        put_small(&input);
    for (size_t i = 0; i < DOCUMENTS; i += REFERENCED)
        input.data[12 * i + next_random(5)] ^= 0xA0;
    reading_t reading = read_source(spill_document_source_bson, &input, NULL);
    assert_true(reading.documents >= DOCUMENTS - DOCUMENTS / REFERENCED);
    assert_true(reading.problems > 0 && reading.problems <= DOCUMENTS / REFERENCED);
    spill_buffer_release(&input);
}

/* ---- the work of a whole source -------------------------------------------------------------- */

/* Undamaged documents of 1000 numbers. */
static void make_sound(spill_buffer_t *to, size_t size)
{
    while (to->size < size) {
        put_u32(to, 4 + 7 * 1000 + 1);
        for (uint32_t i = 0; i < 1000; i++) {
            spill_buffer_append(to,
                                "\x10"
                                "a",
                                3);
            put_u32(to, i);
        }
        spill_buffer_append_byte(to, 0);
    }
}

/*
 * Two documents, and the start of another one, again and again. The lengths and fields of all these
 * starts reach to one end, and no field ends there.
 */
static void make_far_chains(spill_buffer_t *to, size_t size)
{
    enum { UNIT_BYTES = 12 + 12 + 4 + 3 + 5 };
    for (size_t left = size / UNIT_BYTES; left > 0; left--) {
        put_small(to);
        put_small(to);
        put_u32(to, (uint32_t)(left * UNIT_BYTES - 24 + 1));
        spill_buffer_append(to, "\5x", 3);
        put_u32(to, 12 + 12 + 4); /* the binary value ends before the next such field */
        spill_buffer_append_byte(to, 0);
    }
    spill_buffer_append(to, "\0\xff\xff\xff\xff\xff\xff\xff", 8);
}

/* Every third document has lost its length. */
static void make_lost_lengths(spill_buffer_t *to, size_t size)
{
    make_sound(to, size);
    for (size_t at = 0; at < size; at += 3 * (4 + 7 * 1000 + 1))
        to->data[at + 3] = 0xA0;
}

/* Put the end of an archive's part, and a head with this size and names. */
static void put_head(spill_buffer_t *to, uint32_t size, uint32_t database_bytes, bool eof)
{
    put_u32(to, UINT32_MAX);
    put_u32(to, size);
    spill_buffer_append(to, "\2db", 4);
    put_u32(to, database_bytes);
    spill_buffer_append(to, "abcdefg", 8);
    spill_buffer_append(to, "\2collection", 12);
    put_u32(to, 2);
    spill_buffer_append(to, "c", 2);
    spill_buffer_append(to,
                        "\x08"
                        "EOF",
                        5);
    spill_buffer_append_byte(to, eof);
    spill_buffer_append_byte(to, 0);
}

enum { HEAD_BYTES = 4 + 16 + 18 + 6 + 1 }; /* a head, without the end before it */

static void begin_archive(spill_buffer_t *to)
{
    put_u32(to, UINT32_C(0x8199e26d));
    put_u32(to, UINT32_MAX);
}

/* An undamaged archive of one collection. */
static void make_archive(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    to->size -= 4; /* the first head has no end before it */
    while (to->size < size) {
        put_head(to, HEAD_BYTES, 8, false);
        for (size_t i = 0; i < 1000; i++)
            put_small(to);
    }
    put_head(to, HEAD_BYTES, 8, true);
    put_u32(to, UINT32_MAX);
}

/* Put the end of an archive's part, and the last head of a collection of that number. */
static void put_last_head(spill_buffer_t *to, uint32_t number)
{
    char name[16];
    uint32_t size = (uint32_t)snprintf(name, sizeof name, "c%u", number) + 1;
    put_u32(to, UINT32_MAX);
    put_u32(to, HEAD_BYTES - 2 + size);
    spill_buffer_append(to, "\2db", 4);
    put_u32(to, 8);
    spill_buffer_append(to, "abcdefg", 8);
    spill_buffer_append(to, "\2collection", 12);
    put_u32(to, size);
    spill_buffer_append(to, name, size);
    spill_buffer_append(to,
                        "\x08"
                        "EOF\0\1",
                        6);
    spill_buffer_append_byte(to, 0);
}

/* An undamaged archive of collections that have no documents. */
static void make_collections(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    to->size -= 4; /* the first head has no end before it */
    for (uint32_t number = 0; to->size < size; number++)
        put_last_head(to, number);
    put_u32(to, UINT32_MAX);
}

/* Damage, and then heads that each claim the data up to one end: as a head, or as its name. */
static void make_far_heads(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    put_u32(to, 3);
    while (to->size + HEAD_BYTES + 10 < size)
        put_head(to, (uint32_t)(size - to->size - 4), 8, false);
}

static void make_far_names(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    put_u32(to, 3);
    while (to->size + HEAD_BYTES + 10 < size)
        put_head(to, (uint32_t)(size - to->size - 4), (uint32_t)(size - to->size - 50), false);
}

/* True heads, each with a damaged part. */
static void make_damaged_parts(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    while (to->size < size) {
        put_head(to, HEAD_BYTES, 8, false);
        put_u32(to, 3);
    }
}

/* True heads, and behind each a false head: its size and fields reach to the end of the input. */
static void make_far_heads_of_parts(spill_buffer_t *to, size_t size)
{
    enum { UNIT_BYTES = 4 + 4 + 3 + 5 + 4 + HEAD_BYTES };
    begin_archive(to);
    for (size_t left = size / UNIT_BYTES; left > 0; left--) {
        put_u32(to, UINT32_MAX);
        put_u32(to, (uint32_t)(left * UNIT_BYTES - 4));
        spill_buffer_append(to, "\5x", 3);
        put_u32(to, HEAD_BYTES + 12); /* the binary value ends before the next such field */
        spill_buffer_append_byte(to, 0);
        put_head(to, HEAD_BYTES, 8, false);
    }
}

/* Damage that is the end of a part everywhere. */
static void make_ends(spill_buffer_t *to, size_t size)
{
    begin_archive(to);
    put_u32(to, 3);
    while (to->size < size)
        put_u32(to, UINT32_MAX);
}

static void make_flipped(spill_buffer_t *to, size_t size)
{
    make_archive(to, size);
    for (size_t i = 0; i < size / 1000; i++)
        to->data[100 + next_random((uint32_t)size - 100)] ^= (uint8_t)(1U << next_random(8));
}

/* The work for each byte of an input. */
static double work_of(open_fn open_source, make_fn make, size_t size, bool damaged)
{
    spill_buffer_t input = SPILL_BUFFER_INIT;
    make(&input, size);
    reading_t reading = read_source(open_source, &input, NULL);
    assert_int_equal(reading.position, input.size);
    assert_true(reading.work >= (int64_t)input.size); /* each byte is read */
    assert_true(damaged || (reading.problems == 0 && reading.documents > 0));
    double work = (double)reading.work / (double)input.size;
    spill_buffer_release(&input);
    return work;
}

/*
 * A byte of damage takes at most three times the work of an undamaged byte, in inputs of any size.
 * If the work grew with the square of the size, it would take a thousand times as much.
 */
static void assert_linear(open_fn open_source, make_fn make_good, const make_fn *makes,
                          size_t count)
{
    static const size_t sizes[] = {1 << 20, 5 << 20, 24 << 20};
    double good = work_of(open_source, make_good, 5 << 20, false);
    assert_true(good <= 3);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sizeof sizes / sizeof sizes[0]; j++) {
            double work = work_of(open_source, makes[i], sizes[j], true);
            print_message("damage %zu of %zu bytes: %.2f for each, undamaged %.2f\n", i, sizes[j],
                          work, good);
            assert_true(work <= 3 * good);
        }
}

static void damage_in_bson_takes_linear_work(void **unused)
{
    (void)unused;
    static const make_fn makes[] = {make_far_chains, make_one_end, make_many_ends,    make_far,
                                    make_ones,       make_names,   make_lost_lengths, make_damaged};
    assert_linear(spill_document_source_bson, make_sound, makes, sizeof makes / sizeof makes[0]);
}

static void damage_in_archives_takes_linear_work(void **unused)
{
    (void)unused;
    static const make_fn makes[] = {make_far_heads,     make_far_names, make_far_heads_of_parts,
                                    make_damaged_parts, make_ends,      make_flipped,
                                    make_collections};
    assert_linear(spill_document_source_archive, make_archive, makes,
                  sizeof makes / sizeof makes[0]);
}

static void interrupt_ends_search(void **unused)
{
    (void)unused;
    spill_buffer_t input = SPILL_BUFFER_INIT;
    atomic_bool stop = true;
    make_ones(&input, 8 << 20);
    reading_t reading = read_source(spill_document_source_bson, &input, &stop);
    assert_int_equal(reading.documents, 0);
    assert_true(reading.position <= 2 << 20);
    reading = read_source(spill_document_source_bson, &input, NULL);
    assert_int_equal(reading.position, input.size);
    assert_int_equal(reading.problems, 1);
    spill_buffer_release(&input);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_linear),
        cmocka_unit_test(memory_changes_no_answer),
        cmocka_unit_test(more_bytes_are_seen),
        cmocka_unit_test(whole_documents_are_found),
        cmocka_unit_test(damage_in_bson_takes_linear_work),
        cmocka_unit_test(damage_in_archives_takes_linear_work),
        cmocka_unit_test(interrupt_ends_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
