/* The bytes of an input: skipping them, in stdin that begins inside a file and at a file's end. */
#include "tools/import/import_records.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* Open a file of these bytes as stdin, which begins at byte `start`. */
static spill_source_t *open_stdin(const char *bytes, off_t start)
{
    spill_source_t *source;
    spill_error_t error;
    int file = memfd_create("input", 0);
    assert_int_equal(write(file, bytes, strlen(bytes)), strlen(bytes));
    assert_int_equal(lseek(file, start, SEEK_SET), start);
    assert_int_equal(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
    assert_int_equal(spill_source_open("-", SPILL_CODEC_PLAIN, &source, &error), SPILL_OK);
    return source;
}

static void assert_skips(spill_source_t *source, int64_t bytes, int64_t expected)
{
    spill_error_t error;
    int64_t passed = -1;
    assert_int_equal(spill_source_skip(source, bytes, &passed, &error), SPILL_OK);
    assert_int_equal(passed, expected);
}

static void assert_reads(spill_source_t *source, const char *expected)
{
    spill_error_t error;
    uint8_t data[16];
    size_t got = 0;
    assert_int_equal(spill_source_read(source, data, sizeof data, &got, &error), SPILL_OK);
    assert_int_equal(got, strlen(expected));
    assert_memory_equal(data, expected, got);
}

static void skip_ends_at_the_end(void **unused)
{
    (void)unused;
    spill_source_t *source = open_stdin("0123456789", 0);
    assert_int_equal(spill_source_size(source), 10);
    assert_skips(source, 4, 4);
    assert_skips(source, 7, 6);
    assert_skips(source, 1, 0);
    assert_int_equal(spill_source_position(source), 10);
    spill_source_close(source);
}

static void stdin_inside_a_file_has_what_is_left(void **unused)
{
    (void)unused;
    spill_source_t *source = open_stdin("0123456789", 6);
    assert_int_equal(spill_source_size(source), 4);
    assert_skips(source, 1, 1);
    assert_skips(source, 4, 3);
    assert_reads(source, "");
    assert_int_equal(spill_source_position(source), 4);
    spill_source_close(source);
}

static void stdin_behind_the_end_has_nothing(void **unused)
{
    (void)unused;
    spill_source_t *source = open_stdin("0123456789", 16);
    assert_int_equal(spill_source_size(source), 0);
    assert_skips(source, 3, 0);
    assert_reads(source, "");
    spill_source_close(source);
}

/* A file that has grown was read beyond the size at opening: a skip never goes back. */
static void skip_never_goes_back(void **unused)
{
    (void)unused;
    spill_source_t *source = open_stdin("0123", 0);
    assert_int_equal(pwrite(STDIN_FILENO, "456789ab", 8, 4), 8);
    assert_reads(source, "0123456789ab");
    assert_skips(source, 3, 0);
    assert_reads(source, "");
    spill_source_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(skip_ends_at_the_end),
        cmocka_unit_test(stdin_inside_a_file_has_what_is_left),
        cmocka_unit_test(stdin_behind_the_end_has_nothing),
        cmocka_unit_test(skip_never_goes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
