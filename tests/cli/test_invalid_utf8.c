/*
 * Strings that are not UTF-8: other programs may store them and the library keeps them, but JSON
 * cannot express them. The program omits such a value, names it, and ends with an error.
 */
#include "layout/owner.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A string that ends in a byte that never occurs in UTF-8. */
static const uint8_t broken_text[] = {4, 0, 0, 0, 'a', 'b', 0xff, 0};

static void append(spill_array_t *array, const char *owner, const spill_value_t *element)
{
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value = spill_value_from_utf8(&storage, owner);
    if (spill_array_append(array, &value, element, 1, NULL, NULL, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    bson_destroy(&storage);
}

/* Owner "ada" with the elements 0, "ab\xff", 2; owner "bob" with the element 0. */
static const char *make_store(void)
{
    const char *folder = embedded_new_folder();
    spill_store_t *store = embedded_in_folder(folder, NULL);
    spill_array_t *array = embedded_array(store, "feed", 10, 10);
    spill_error_t error;
    spill_value_t broken = {
        .data = broken_text, .size_bytes = sizeof broken_text, .type = BSON_TYPE_UTF8};
    assert_int_equal(embedded_append(array, "ada", 0, 1, &error), SPILL_OK);
    array->keeps_any_text = true; /* as another program, or an earlier version, has stored it */
    append(array, "ada", &broken);
    array->keeps_any_text = false;
    assert_int_equal(embedded_append(array, "ada", 2, 1, &error), SPILL_OK);
    assert_int_equal(embedded_append(array, "bob", 0, 1, &error), SPILL_OK);
    spill_array_close(array);
    embedded_close(store);
    return folder;
}

/* Run the program on the store. Sets `text` to both outputs, in order, and returns the exit code.
 */
static int run_program(const char *command, const char *folder, const char *arguments, char *text,
                       size_t size)
{
    char line[512];
    const char *program = getenv("SPILLWAY");
    assert_non_null(program);
    snprintf(line, sizeof line, "'%s' %s '%s' %s 2>&1", program, command, folder, arguments);
    FILE *output = popen(line, "r");
    assert_non_null(output);
    size_t length = fread(text, 1, size - 1, output);
    text[length] = '\0';
    int status = pclose(output);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" is not in \"%s\"", part, text);
}

static void export_leaves_the_element_out(void **state)
{
    (void)state;
    char text[4096];
    const char *folder = make_store();
    assert_int_equal(run_program("export", folder, "feed --relaxed", text, sizeof text), 3);
    assert_string_equal(text,
                        "{\"owner\":\"ada\",\"seq\":0,\"element\":0}\n"
                        "spillway: owner \"ada\", element 1 is left out: a string in it is not "
                        "UTF-8, so JSON cannot express it\n"
                        "{\"owner\":\"ada\",\"seq\":2,\"element\":2}\n"
                        "{\"owner\":\"bob\",\"seq\":0,\"element\":0}\n"
                        "spillway: the output is incomplete: 1 values in it have strings that "
                        "are not UTF-8, which JSON cannot express\n");
    assert_int_equal(run_program("export", folder, "feed bob", text, sizeof text), 0);
    assert_int_equal(run_program("read", folder, "feed ada", text, sizeof text), 3);
    assert_contains(text, "owner \"ada\", element 1 is left out");
    assert_contains(text, "0\t0\n");
    assert_int_equal(run_program("verify", folder, "", text, sizeof text), 0);
    assert_int_equal(run_program("stats", folder, "", text, sizeof text), 0);
    embedded_remove_folder(folder);
}

static void export_leaves_the_document_out(void **state)
{
    (void)state;
    char text[4096];
    const char *folder = make_store();
    assert_int_equal(
        run_program("export", folder, "feed --documents --plain --relaxed", text, sizeof text), 3);
    assert_string_equal(
        text, "spillway: a document of users, with _id \"ada\", is left out: a string in it is "
              "not UTF-8, so JSON cannot express it\n"
              "{\"collection\":\"users\",\"document\":{ \"_id\" : \"bob\", \"activities\" : [ 0 ], "
              "\"activityCount\" : 1 },\"definition\":{ \"layout\" : \"outlier\", "
              "\"keep\" : \"newest\", \"order\" : \"oldest-first\", \"collection\" : "
              "\"users\", \"array\" : \"activities\", \"countField\" : \"activityCount\", "
              "\"overflowField\" : \"hasOverflow\", \"pagesField\" : \"overflowPages\", "
              "\"pageCollection\" : \"overflowActivities\", \"pageOwner\" : \"userId\", "
              "\"pageNumber\" : \"page\", \"pageArray\" : \"activities\", \"pageCount\" : "
              "\"count\" }}\n"
              "spillway: the output is incomplete: 1 values in it have strings that are not "
              "UTF-8, which JSON cannot express\n");
    embedded_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(export_leaves_the_element_out),
        cmocka_unit_test(export_leaves_the_document_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
