/*
 * The checksum of archives, compared with its published check value and with a bitwise computation.
 */
#include "util/crc64.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

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
        cmocka_unit_test(published_check_value),
        cmocka_unit_test(sum_of_parts_equals_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
