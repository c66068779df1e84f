/*
 * Bookkeeping that a server returns, with one wrong field at a time: another type, a number out of
 * range, or no value. Reading it must succeed or return SPILL_CORRUPT; it must never crash.
 */
#include "store/mongo/mongo_document.h"
#include "support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "{'state': {'epoch': 5, 'rev': 9, 'first': 2, 'n': 7, 'pages': 1, 'low': 1, 'total': 9,"
    " 'removed': 1, 'src': 3, 'lease': 4, 'sealed': true, 'closed': false, 'gone': [3, 5],"
    " 'gaps': [6, 2, 9, 1], 'sum': {'values': 2, 'whole': 7, 'high': 0.5, 'low': 0.25},"
    " 'intent': {'seq': 1, 'page': 0, 'src': 9, 'value': {'values': 1, 'whole': 3}}},"
    " 'live': 3, 'arrayBytes': 80, 'rootBytes': 400, 'ownBytes': 60, 'page': 2,"
    " 'tally': {'count': 3, 'sum': {'values': 2, 'whole': 7}}, 'shown': 1,"
    " 'top': [{'seq': 4, 'rank': 1}],"
    " 'ops': [{'id': {'$binary': {'base64': 'AQID', 'subType': '00'}}, 'count': 2, 'after': 0},"
    "         {'id': {'$binary': {'base64': 'BAUG', 'subType': '00'}}, 'count': 1, 'after': 1}]}";

static bson_t *sound_document(void)
{
    char json[sizeof text];
    for (size_t i = 0; i < sizeof text; i++)
        json[i] = text[i] == '\'' ? '"' : text[i];
    return document_from_json(json);
}

/* ---- one wrong field ------------------------------------------------------------------------- */

enum { WRONGS = 9 };

/* Put the wrong value number `wrong` under a key; the last one is no value. */
static void put_wrong(bson_t *to, const char *key, int wrong)
{
    bson_t empty = BSON_INITIALIZER;
    switch (wrong) {
    case 0:
        BSON_APPEND_UTF8(to, key, "missing");
        break;
    case 1:
        BSON_APPEND_UTF8(to, key, "other");
        break;
    case 2:
        BSON_APPEND_INT32(to, key, -1);
        break;
    case 3:
        BSON_APPEND_INT64(to, key, INT64_MAX);
        break;
    case 4:
        BSON_APPEND_DOUBLE(to, key, 1e300);
        break;
    case 5:
        BSON_APPEND_NULL(to, key);
        break;
    case 6:
        BSON_APPEND_DOCUMENT(to, key, &empty);
        break;
    case 7:
        BSON_APPEND_ARRAY(to, key, &empty);
        break;
    default:
        break;
    }
    bson_destroy(&empty);
}

/* Copy a document and make field number `*at`, in the order of the walk, wrong. */
static void copy_with_wrong(const bson_t *from, bson_t *to, int *at, int wrong)
{
    bson_iter_t iter;
    assert_true(bson_iter_init(&iter, from));
    while (bson_iter_next(&iter)) {
        const char *key = bson_iter_key(&iter);
        bson_t within, copy;
        const uint8_t *data;
        uint32_t size;
        bool array = BSON_ITER_HOLDS_ARRAY(&iter);
        if ((*at)-- == 0) {
            put_wrong(to, key, wrong);
        } else if (array || BSON_ITER_HOLDS_DOCUMENT(&iter)) {
            if (array) {
                bson_iter_array(&iter, &size, &data);
                BSON_APPEND_ARRAY_BEGIN(to, key, &copy);
            } else {
                bson_iter_document(&iter, &size, &data);
                BSON_APPEND_DOCUMENT_BEGIN(to, key, &copy);
            }
            assert_true(bson_init_static(&within, data, size));
            copy_with_wrong(&within, &copy, at, wrong);
            bson_append_document_end(to, &copy);
        } else {
            bson_append_iter(to, key, -1, &iter);
        }
    }
}

/* ---- reading it ------------------------------------------------------------------------------ */

static spill_code_t read_state(const spill_request_t *request, const bson_t *projected)
{
    static const spill_mongo_t store;
    spill_mongo_document_t document;
    spill_state_t state = {0};
    spill_ops_t ops = {0};
    spill_error_t error = {.message = ""};
    spill_mongo_document_init(&document, &store, request);
    spill_code_t code = spill_mongo_state(&document, projected, &state, &ops, &error);
    if (code == SPILL_CORRUPT)
        assert_non_null(strstr(error.message, document.collection));
    assert_true(code == SPILL_OK || code == SPILL_CORRUPT || code == SPILL_REFUSED);
    if (code == SPILL_OK)
        assert_true(state.intent_seq >= 0 && state.intent_page >= 0);
    spill_state_release(&state);
    spill_ops_release(&ops);
    return code;
}

/* Count the wrong documents that are refused. */
static int read_each_wrong(const char *preset, int64_t page)
{
    int refused = 0, fields = 0;
    spill_definition_t definition;
    spill_request_t request = {
        .kind = SPILL_REQUEST_READ, .definition = &definition, .page = page, .read.want_top = true};
    assert_int_equal(spill_definition_preset(&definition, preset, "feed", NULL), SPILL_OK);
    bson_t *sound = sound_document();
    for (bool more = true; more; fields++)
        for (int wrong = 0; wrong < WRONGS; wrong++) {
            int at = fields;
            bson_t copy = BSON_INITIALIZER;
            copy_with_wrong(sound, &copy, &at, wrong);
            more = at < 0;
            refused += read_state(&request, &copy) != SPILL_OK;
            bson_destroy(&copy);
        }
    assert_true(fields > 30);
    bson_destroy(sound);
    return refused;
}

static void wrong_bookkeeping_is_corrupt(void **state)
{
    (void)state;
    assert_true(read_each_wrong("feed", SPILL_HEAD) > 40);
    assert_true(read_each_wrong("feed-recent", SPILL_HEAD) > 40);
    assert_true(read_each_wrong("feed-recent", 2) > 40);
    assert_true(read_each_wrong("reviews-separate", SPILL_HEAD) > 40);
    assert_true(read_each_wrong("reviews-subset", SPILL_HEAD) > 40);
    assert_true(read_each_wrong("reviews-bucket", SPILL_HEAD) > 40);
    assert_true(read_each_wrong("reviews-bucket", 2) > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(wrong_bookkeeping_is_corrupt)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
