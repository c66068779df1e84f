/*
 * Strings that are not UTF-8: appends and edits refuse them and name the field; an array of another
 * program's elements keeps them, and every read returns them unchanged.
 */
#include "bson/value_text.h"
#include "layout/owner.h"
#include "support/embedded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* The bytes "caf" 0xe9: Latin-1. */
#define LATIN "caf\xe9"

static spill_error_t error;

static void assert_refused(spill_code_t code, const char *says)
{
    assert_int_equal(code, SPILL_INVALID);
    if (strstr(error.message, says) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.message, says);
}

/* libbson appends any bytes with this function; the names have no NUL. */
static void put_text(bson_t *document, const char *name, const char *text)
{
    assert_true(bson_append_utf8(document, name, (int)strlen(name), text, (int)strlen(text)));
}

static void assert_document_refused(bson_t *document, const char *says)
{
    spill_value_t value = spill_value_from_document(document);
    assert_refused(spill_value_check_text(&value, &error), says);
    bson_destroy(document);
}

static void every_kind_of_text_is_checked(void **state)
{
    (void)state;
    bson_t document = BSON_INITIALIZER, inner = BSON_INITIALIZER, scope = BSON_INITIALIZER;
    put_text(&document, "text", LATIN);
    assert_document_refused(&document, "the string at 'text' is not UTF-8, at byte 3");

    bson_init(&document);
    put_text(&inner, "0", "ok");
    put_text(&inner, "1", LATIN);
    BSON_APPEND_ARRAY(&document, "tags", &inner);
    assert_document_refused(&document, "the string at 'tags.1'");
    bson_destroy(&inner);

    bson_init(&document);
    BSON_APPEND_INT32(&document, LATIN, 1);
    assert_document_refused(&document, "the name of a field is not UTF-8, at byte 3");

    bson_init(&document);
    bson_init(&inner);
    BSON_APPEND_INT32(&inner, LATIN, 1);
    BSON_APPEND_DOCUMENT(&document, "by", &inner);
    assert_document_refused(&document, "the name of a field at 'by'");
    bson_destroy(&inner);

    bson_init(&document);
    bson_append_code(&document, "code", 4, LATIN);
    assert_document_refused(&document, "at 'code'");

    bson_init(&document);
    bson_append_symbol(&document, "symbol", 6, LATIN, 4);
    assert_document_refused(&document, "at 'symbol'");

    bson_init(&document);
    put_text(&scope, "x", LATIN);
    bson_append_code_with_scope(&document, "run", 3, "f()", &scope);
    assert_document_refused(&document, "the string at 'run.x'");
    bson_destroy(&scope);

    bson_init(&document);
    bson_append_regex(&document, "like", 4, LATIN, "i");
    assert_document_refused(&document, "the regular expression at 'like'");
}

static void other_bytes_are_no_text(void **state)
{
    (void)state;
    bson_t document = BSON_INITIALIZER;
    bson_oid_t id;
    bson_oid_init_from_data(&id,
                            (const uint8_t *)"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8\xf7\xf6\xf5\xf4");
    BSON_APPEND_OID(&document, "_id", &id);
    BSON_APPEND_BINARY(&document, "bytes", BSON_SUBTYPE_BINARY, (const uint8_t *)LATIN, 4);
    BSON_APPEND_DOUBLE(&document, "n", -1.1);
    BSON_APPEND_INT64(&document, "i", -2);
    put_text(&document, "caf\xc3\xa9", "\xf0\x9f\x98\x80 \xe2\x82\xac");
    bson_append_utf8(&document, "nul", 3, "a\0b", 3);
    spill_value_t value = spill_value_from_document(&document);
    assert_int_equal(spill_value_check_text(&value, &error), SPILL_OK);
    bson_destroy(&document);
}

/* The warnings of a store. */
static struct {
    int count;
    char last[512];
} note;

static void keep_note(void *context, spill_log_level_t level, const char *message)
{
    (void)context;
    if (level != SPILL_LOG_WARNING)
        return;
    note.count++;
    snprintf(note.last, sizeof note.last, "%s", message);
}

static void appends_and_edits_refuse(void **state)
{
    (void)state;
    spill_store_options_t options;
    spill_store_options_init(&options);
    options.log = keep_note;
    spill_store_t *store = embedded_in_folder("memory:", &options);
    spill_array_t *feed = embedded_array(store, "feed", 10, 5);
    bson_t good_storage = BSON_INITIALIZER, bad_storage = BSON_INITIALIZER;
    bson_t owner_storage = BSON_INITIALIZER;
    spill_value_t owner = spill_value_from_utf8(&owner_storage, "ada");
    spill_value_t both[] = {spill_value_from_utf8(&good_storage, "caf\xc3\xa9"),
                            spill_value_from_utf8(&bad_storage, LATIN)};
    assert_refused(spill_array_append(feed, &owner, both, 2, NULL, NULL, &error),
                   "element 1: the string is not UTF-8, at byte 3");
    assert_refused(spill_array_append(feed, &both[1], both, 1, NULL, NULL, &error),
                   "the owner's _id: the string is not UTF-8");
    spill_count_t count;
    assert_int_equal(spill_array_count(feed, &owner, &count, &error), SPILL_OK);
    assert_false(count.exists);
    assert_int_equal(spill_array_append(feed, &owner, both, 1, NULL, NULL, &error), SPILL_OK);
    assert_refused(spill_array_edit(feed, &owner, 0, &both[1], &error), "the string is not UTF-8");

    feed->keeps_any_text = true;
    assert_int_equal(spill_array_append(feed, &owner, both, 2, NULL, NULL, &error), SPILL_OK);
    assert_int_equal(spill_array_append(feed, &both[1], both, 2, NULL, NULL, &error), SPILL_OK);
    feed->keeps_any_text = false;
    spill_slice_t *slice;
    assert_int_equal(spill_array_read_newest(feed, &both[1], 0, 2, &slice, &error), SPILL_OK);
    assert_int_equal(slice->count, 2);
    assert_true(spill_value_equal(&slice->elements[0].value, &both[1]));
    spill_slice_free(slice);
    note.count = 0;
    spill_verify_summary_t summary;
    assert_int_equal(spill_array_verify(feed, NULL, NULL, NULL, &summary, &error), SPILL_OK);
    assert_int_equal(summary.findings, 0);
    assert_int_equal(note.count, 2); /* one for each owner */
    assert_non_null(strstr(note.last, "element 1: the string is not UTF-8, at byte 3"));
    assert_int_equal(spill_array_remove(feed, &both[1], 0, &error), SPILL_OK);
    spill_array_close(feed);
    embedded_close(store);
    bson_destroy(&good_storage);
    bson_destroy(&bad_storage);
    bson_destroy(&owner_storage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_text_is_checked),
        cmocka_unit_test(other_bytes_are_no_text),
        cmocka_unit_test(appends_and_edits_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
