/*
 * Bookkeeping that a server returns, with one wrong field at a time: another type, a number out of
 * range, or no value. Reading it must succeed or return SPILL_CORRUPT; it must never crash. And the
 * operations that an append records.
 */
#include "store/mongo/guarded.h"
#include "support/document.h"

#include <spillway/bucket.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char text[] =
    "{'spillwayState': {'epoch': 5, 'rev': 9, 'first': 2, 'n': 7, 'pages': 1, 'low': 1, 'total': 9,"
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

/* A page as a part: the document has no owner. */
static spill_code_t read_state(const spill_request_t *request, const bson_t *projected)
{
    static const spill_mongo_t store;
    spill_mongo_document_t document;
    spill_state_t state = {0};
    spill_ops_t ops = {0};
    spill_error_t error = {.message = ""};
    spill_mongo_document_init(&document, &store, request);
    spill_code_t code =
        spill_mongo_state(&document, projected, request->page == SPILL_HEAD, &state, &ops, &error);
    if (code == SPILL_CORRUPT)
        assert_non_null(strstr(error.message, document.collection));
    assert_true(code == SPILL_OK || code == SPILL_CORRUPT || code == SPILL_REFUSED);
    if (code == SPILL_OK)
        assert_true(state.intent_seq >= 0 && state.intent_page >= 0);
    spill_state_release(&state);
    spill_ops_release(&ops);
    return code;
}

/* Count the wrong documents that are corrupt. `expected`: of the document without a wrong field. */
static int read_each_wrong(const char *preset, int64_t page, spill_code_t expected)
{
    int refused = 0, fields = 0;
    spill_definition_t definition;
    spill_request_t request = {
        .kind = SPILL_REQUEST_READ, .definition = &definition, .page = page, .read.want_top = true};
    assert_int_equal(spill_definition_preset(&definition, preset, "feed", NULL), SPILL_OK);
    /* A window is compared with its name. */
    bson_t own = BSON_INITIALIZER, storage = BSON_INITIALIZER;
    spill_value_t ada = spill_value_from_utf8(&own, "ada");
    spill_value_t owner = spill_bucket_name(&storage, &ada, "2026-11");
    request.owner = &owner;
    bson_t *sound = sound_document();
    assert_int_equal(read_state(&request, sound), expected);
    for (bool more = true; more; fields++)
        for (int wrong = 0; wrong < WRONGS; wrong++) {
            int at = fields;
            bson_t copy = BSON_INITIALIZER;
            copy_with_wrong(sound, &copy, &at, wrong);
            more = at < 0;
            refused += read_state(&request, &copy) == SPILL_CORRUPT;
            bson_destroy(&copy);
        }
    assert_true(fields > 30);
    bson_destroy(sound);
    bson_destroy(&storage);
    bson_destroy(&own);
    return refused;
}

/* The document's top and tally are not those of layouts subset and bucket. */
static void wrong_bookkeeping_is_corrupt(void **state)
{
    (void)state;
    assert_true(read_each_wrong("feed", SPILL_HEAD, SPILL_OK) > 40);
    assert_true(read_each_wrong("feed-recent", SPILL_HEAD, SPILL_OK) > 40);
    assert_true(read_each_wrong("feed-recent", 2, SPILL_OK) > 40);
    assert_true(read_each_wrong("reviews-separate", SPILL_HEAD, SPILL_OK) > 40);
    assert_true(read_each_wrong("reviews-subset", SPILL_HEAD, SPILL_CORRUPT) > 40);
    assert_true(read_each_wrong("reviews-bucket", SPILL_HEAD, SPILL_CORRUPT) > 40);
    assert_true(read_each_wrong("reviews-bucket", 2, SPILL_CORRUPT) > 40);
}

/* ---- operations ------------------------------------------------------------------------------ */

static void make_append(const spill_definition_t *definition, const spill_op_t *op,
                        const spill_value_t *elements, size_t count, spill_request_t *append)
{
    *append = (spill_request_t){
        .kind = SPILL_REQUEST_APPEND, .definition = definition, .page = SPILL_HEAD};
    append->append.op = op;
    append->append.elements = elements;
    append->append.element_count = count;
}

/* Return the field of the first operation that the append records, or NULL. */
static const bson_iter_t *recorded(const spill_request_t *append, const char *field, bson_t *ops,
                                   bson_iter_t *found)
{
    bson_iter_t iter;
    char path[32];
    snprintf(path, sizeof path, "ops.0.%s", field);
    bson_reinit(ops);
    spill_mongo_append_ops(append, "ops", ops);
    return bson_iter_init(&iter, ops) && bson_iter_find_descendant(&iter, path, found) ? found
                                                                                       : NULL;
}

/* The server writes the whole window again with each append, so entries are short. */
static void recorded_operations_are_short(void **state)
{
    static const spill_value_t elements[3];
    const spill_op_t op = {.id = "abc", .id_bytes = 3};
    spill_definition_t definition;
    spill_request_t append;
    bson_t ops = BSON_INITIALIZER;
    bson_iter_t found;
    (void)state;
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", NULL), SPILL_OK);
    make_append(&definition, &op, elements, 3, &append);
    assert_non_null(recorded(&append, "id", &ops, &found));
    assert_null(recorded(&append, "after", &ops, &found));
    assert_non_null(recorded(&append, "count", &ops, &found));
    assert_true(BSON_ITER_HOLDS_INT32(&found) && bson_iter_int32(&found) == 3);
    make_append(&definition, NULL, elements, 3, &append);
    assert_null(recorded(&append, "id", &ops, &found));
    assert_non_null(recorded(&append, "after", &ops, &found));
    assert_int_equal(bson_iter_as_int64(&found), 3);
    bson_destroy(&ops);
}

/* Read the operations of the sound document, with the list `json` instead of its own. */
static void read_ops_of(const char *json, spill_ops_t *ops)
{
    static const spill_mongo_t store;
    spill_definition_t definition;
    spill_request_t request = {
        .kind = SPILL_REQUEST_READ, .definition = &definition, .page = SPILL_HEAD};
    spill_mongo_document_t document;
    spill_state_t state = {0};
    spill_error_t error;
    bson_t *sound = sound_document(), *list = document_from_json(json);
    bson_t projected = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(sound, &projected, "ops", NULL);
    bson_concat(&projected, list);
    assert_int_equal(spill_definition_preset(&definition, "feed-recent", "feed", NULL), SPILL_OK);
    spill_mongo_document_init(&document, &store, &request);
    if (spill_mongo_state(&document, &projected, true, &state, ops, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    spill_state_release(&state);
    bson_destroy(&projected);
    bson_destroy(list);
    bson_destroy(sound);
}

#define ID(base64) "{\"id\": {\"$binary\": {\"base64\": \"" base64 "\", \"subType\": \"00\"}}, "

static void missing_after_is_zero(void **state)
{
    spill_ops_t with = {0}, without = {0};
    (void)state;
    read_ops_of("{\"ops\": [" ID("AQID") "\"count\": 2, \"after\": 0}, " ID(
                    "BAUG") "\"count\": 1, \"after\": 0}]}",
                &with);
    read_ops_of("{\"ops\": [" ID("AQID") "\"count\": 2}, " ID("BAUG") "\"count\": 1}]}", &without);
    assert_int_equal(with.count, 2);
    assert_int_equal(without.count, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(without.entries[i].seq, with.entries[i].seq);
        assert_int_equal(without.entries[i].count, with.entries[i].count);
    }
    assert_int_equal(with.entries[0].seq + 1, with.entries[1].seq);
    spill_ops_release(&with);
    spill_ops_release(&without);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_bookkeeping_is_corrupt),
        cmocka_unit_test(recorded_operations_are_short),
        cmocka_unit_test(missing_after_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
