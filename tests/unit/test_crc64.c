/* The checksum of archives, against its published check value and against one bit at a time. */
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

static void what_is_published(void **state)
{
    (void)state;
    assert_true(spill_crc64(0, "", 0) == 0);
    assert_true(spill_crc64(0, "123456789", 9) == UINT64_C(0x995DC9BBDF1939FA));
}

static void any_size_in_any_parts(void **state)
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
        cmocka_unit_test(what_is_published),
        cmocka_unit_test(any_size_in_any_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
