/* Texts in memory: their bytes, and writes that find no memory. */
#include "util/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void text_has_what_was_written(void **unused)
{
    (void)unused;
    spill_error_t error;
    spill_text_t text = {0};
    assert_int_equal(spill_text_open(&text, &error), SPILL_OK);
    for (int i = 0; i < 100000; i++)
        fputs("0123456789", text.to);
    assert_int_equal(spill_text_close(&text, &error), SPILL_OK);
    assert_null(text.to);
    assert_int_equal(text.size_bytes, 1000000);
    assert_int_equal(strlen(text.text), text.size_bytes);
    assert_memory_equal(text.text + 999990, "0123456789", 10);
    spill_text_release(&text);
    assert_null(text.text);
}

static void empty_text_is_a_string(void **unused)
{
    (void)unused;
    spill_error_t error;
    spill_text_t text = {0};
    assert_int_equal(spill_text_open(&text, &error), SPILL_OK);
    assert_int_equal(spill_text_close(&text, &error), SPILL_OK);
    assert_int_equal(text.size_bytes, 0);
    assert_string_equal(text.text, "");
    spill_text_release(&text);
}

static void open_text_is_released(void **unused)
{
    (void)unused;
    spill_error_t error;
    spill_text_t text = {0};
    spill_text_release(&text);
    assert_int_equal(spill_text_open(&text, &error), SPILL_OK);
    fputs("unused", text.to);
    spill_text_release(&text);
    assert_null(text.to);
    spill_text_release(&text);
}

/* The text's stream is replaced by one that cannot be written. */
static void failed_write_is_reported(void **unused)
{
    (void)unused;
    spill_error_t error;
    spill_text_t text = {0};
    assert_int_equal(spill_text_open(&text, &error), SPILL_OK);
    fclose(text.to);
    text.to = fopen("/dev/full", "w"); /* its writes fail, as without memory */
    assert_non_null(text.to);
    fputs("lost", text.to);
    assert_int_equal(spill_text_close(&text, &error), SPILL_NO_MEMORY);
    assert_non_null(strstr(error.message, "no memory for a text"));
    spill_text_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_has_what_was_written),
        cmocka_unit_test(empty_text_is_a_string),
        cmocka_unit_test(open_text_is_released),
        cmocka_unit_test(failed_write_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
