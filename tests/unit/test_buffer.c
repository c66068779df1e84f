/* Buffers, readers, the hash, and the checksum of archives. */
#include "util/buffer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* ---- buffers, readers, the hash -------------------------------------------------------------- */

static spill_reader_t reader_of(const spill_buffer_t *buffer)
{
    return (spill_reader_t){.at = buffer->data, .end = buffer->data + buffer->size};
}

static void test_append_grows(void **state)
{
    (void)state;
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    for (int i = 0; i < 1000; i++) {
        spill_buffer_append_byte(&buffer, (uint8_t)i);
        spill_buffer_append(&buffer, "abc", 3);
        spill_buffer_append(&buffer, NULL, 0);
    }
    assert_int_equal(buffer.size, 4000);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(buffer.data[4 * i], (uint8_t)i);
        assert_memory_equal(buffer.data + 4 * i + 1, "abc", 3);
    }
    spill_buffer_release(&buffer);
}

static void test_clear_keeps_memory(void **state)
{
    (void)state;
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    spill_buffer_append(&buffer, "0123456789", 10);
    const uint8_t *memory = buffer.data;
    spill_buffer_clear(&buffer);
    assert_int_equal(buffer.size, 0);
    spill_buffer_append(&buffer, "x", 1);
    assert_ptr_equal(buffer.data, memory);
    spill_buffer_release(&buffer);
    assert_null(buffer.data);
    assert_int_equal(buffer.capacity, 0);
    spill_buffer_append(&buffer, "again", 5);
    assert_memory_equal(buffer.data, "again", 5);
    spill_buffer_release(&buffer);
}

static void test_reserve_makes_room(void **state)
{
    (void)state;
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    spill_buffer_append(&buffer, "head", 4);
    uint8_t *at = spill_buffer_reserve(&buffer, 100000);
    assert_true(buffer.capacity - buffer.size >= 100000);
    assert_ptr_equal(at, buffer.data + 4);
    assert_int_equal(buffer.size, 4);
    spill_buffer_release(&buffer);
}

static void test_equal(void **state)
{
    (void)state;
    spill_buffer_t left = SPILL_BUFFER_INIT;
    spill_buffer_t right = SPILL_BUFFER_INIT;
    assert_true(spill_buffer_equal(&left, &right));
    spill_buffer_append(&left, "ab", 2);
    assert_false(spill_buffer_equal(&left, &right));
    spill_buffer_append(&right, "ac", 2);
    assert_false(spill_buffer_equal(&left, &right));
    right.data[1] = 'b';
    assert_true(spill_buffer_equal(&left, &right));
    spill_buffer_release(&left);
    spill_buffer_release(&right);
}

static const uint64_t corners[] = {
    0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX};

static void test_numbers_read_back(void **state)
{
    (void)state;
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    size_t count = sizeof corners / sizeof corners[0];
    for (size_t i = 0; i < count; i++) {
        spill_buffer_append_be64(&buffer, corners[i]);
        spill_buffer_append_varint(&buffer, corners[i]);
        spill_buffer_append_zigzag(&buffer, (int64_t)corners[i]);
    }
    spill_reader_t reader = reader_of(&buffer);
    for (size_t i = 0; i < count; i++) {
        assert_true(spill_reader_be64(&reader) == corners[i]);
        assert_true(spill_reader_varint(&reader) == corners[i]);
        assert_true(spill_reader_zigzag(&reader) == (int64_t)corners[i]);
    }
    assert_ptr_equal(reader.at, reader.end);
    assert_false(reader.bad);
    spill_buffer_release(&buffer);
}

static void check_order(const char *left, size_t left_bytes, const char *right, size_t right_bytes,
                        int expected)
{
    const uint8_t *a = (const uint8_t *)left, *b = (const uint8_t *)right;
    int order = spill_bytes_compare(a, left_bytes, b, right_bytes);
    int back = spill_bytes_compare(b, right_bytes, a, left_bytes);
    assert_int_equal((order > 0) - (order < 0), expected);
    assert_int_equal((back > 0) - (back < 0), -expected);
}

static void test_bytes_are_ordered(void **state)
{
    (void)state;
    check_order("ab", 2, "ab", 2, 0);
    check_order("ab", 2, "abc", 3, -1);
    check_order("b", 1, "abc", 3, 1);
    check_order("\x7f", 1, "\x80", 1, -1);
    check_order(NULL, 0, "", 1, -1);
    check_order(NULL, 0, NULL, 0, 0);
}

static void test_known_encodings(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0, 0, 0, 0, 0, 0, 1, 2, 0xac, 0x02, 0x01, 0x02};
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    spill_buffer_append_be64(&buffer, 0x0102);
    spill_buffer_append_varint(&buffer, 300);
    spill_buffer_append_zigzag(&buffer, -1);
    spill_buffer_append_zigzag(&buffer, 1);
    assert_int_equal(buffer.size, sizeof expected);
    assert_memory_equal(buffer.data, expected, sizeof expected);
    spill_buffer_release(&buffer);
}

/* A sequence that is cut anywhere is bad, and no byte after it is read. */
static void test_short_reads_are_bad(void **state)
{
    (void)state;
    spill_buffer_t buffer = SPILL_BUFFER_INIT;
    spill_buffer_append_byte(&buffer, 7);
    spill_buffer_append_varint(&buffer, UINT64_MAX);
    spill_buffer_append_be64(&buffer, 5);
    spill_buffer_append(&buffer, "xyz", 3);
    for (size_t size = 0; size < buffer.size; size++) {
        spill_reader_t reader = {.at = buffer.data, .end = buffer.data + size};
        (void)spill_reader_byte(&reader);
        (void)spill_reader_varint(&reader);
        (void)spill_reader_be64(&reader);
        assert_null(spill_reader_bytes(&reader, 3));
        assert_true(reader.bad);
        assert_int_equal(spill_reader_byte(&reader), 0);
        assert_true(spill_reader_be64(&reader) == 0);
        assert_true(spill_reader_varint(&reader) == 0);
    }
    spill_buffer_release(&buffer);
}

static void test_overlong_varint_is_bad(void **state)
{
    (void)state;
    static const uint8_t eleven[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1};
    static const uint8_t bits_65[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02};
    spill_reader_t reader = {.at = eleven, .end = eleven + sizeof eleven};
    assert_true(spill_reader_varint(&reader) == 0);
    assert_true(reader.bad);
    reader = (spill_reader_t){.at = bits_65, .end = bits_65 + sizeof bits_65};
    assert_true(spill_reader_varint(&reader) == 0);
    assert_true(reader.bad);
}

static void test_hash_is_fnv1a(void **state)
{
    (void)state;
    assert_true(spill_hash("", 0) == UINT64_C(0xcbf29ce484222325));
    assert_true(spill_hash("a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(spill_hash("foobar", 6) == UINT64_C(0x85944171f73967e8));
}

/* Names that differ in few bits use all slots of a table, by the low and by the high bits. */
static void quick_hash_spreads_similar_names(void **state)
{
    (void)state;
    enum { SLOTS = 256, EACH = 64 };
    for (size_t padding = 0; padding < 16; padding++) {
        int low[SLOTS] = {0}, high[SLOTS] = {0};
        for (int i = 0; i < SLOTS * EACH; i++) {
            char name[40];
            int length = snprintf(name, sizeof name, "%*s%06d", (int)padding, "", i);
            uint64_t hash = spill_hash_quick(name, (size_t)length);
            low[hash % SLOTS]++;
            high[hash >> 56]++;
        }
        for (int i = 0; i < SLOTS; i++) {
            assert_in_range(low[i], EACH / 3, EACH * 2);
            assert_in_range(high[i], EACH / 3, EACH * 2);
        }
    }
}

static void quick_hash_depends_on_each_byte(void **state)
{
    (void)state;
    uint8_t bytes[24] = {0};
    for (size_t size = 1; size <= sizeof bytes; size++) {
        uint64_t before = spill_hash_quick(bytes, size);
        assert_true(before != spill_hash_quick(bytes, size - 1));
        for (size_t i = 0; i < size; i++) {
            bytes[i] = 0x80;
            uint64_t change = before ^ spill_hash_quick(bytes, size);
            assert_true((uint32_t)change != 0 && change >> 32 != 0);
            bytes[i] = 0;
        }
    }
}

/* ---- the checksum of archives ---------------------------------------------------------------- */

static uint64_t bit_by_bit(const uint8_t *data, size_t size)
{
    uint64_t crc = UINT64_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ UINT64_C(0xC96C5795D7870F42) : crc >> 1;
    }
    return ~crc;
}

static void published_check_value(void **state)
{
    (void)state;
    assert_true(spill_crc64(0, "", 0) == 0);
    assert_true(spill_crc64(0, "123456789", 9) == UINT64_C(0x995DC9BBDF1939FA));
}

static void sum_of_parts_equals_whole(void **state)
{
    (void)state;
    uint8_t data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t)(i * 151 + i * i);
    for (size_t size = 0; size <= sizeof data; size++) {
        uint64_t expected = bit_by_bit(data, size);
        assert_true(spill_crc64(0, data, size) == expected);
        size_t first = size / 3;
        uint64_t crc = spill_crc64(0, data, first);
        assert_true(spill_crc64(crc, data + first, size - first) == expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_append_grows),
        cmocka_unit_test(test_clear_keeps_memory),
        cmocka_unit_test(test_reserve_makes_room),
        cmocka_unit_test(test_numbers_read_back),
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_bytes_are_ordered),
        cmocka_unit_test(test_known_encodings),
        cmocka_unit_test(test_short_reads_are_bad),
        cmocka_unit_test(test_overlong_varint_is_bad),
        cmocka_unit_test(test_hash_is_fnv1a),
        cmocka_unit_test(quick_hash_spreads_similar_names),
        cmocka_unit_test(quick_hash_depends_on_each_byte),
        cmocka_unit_test(published_check_value),
        cmocka_unit_test(sum_of_parts_equals_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
