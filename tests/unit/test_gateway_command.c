/* The fields of a command, from a whole message and from a part of one. */
#include "gateway/relay/client_command.h"
#include "gateway/relay/command_peek.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const uint8_t session[16] = "0123456789abcdef";

/* The command is valid until the bytes are released. */
static spill_code_t read_body(const bson_t *body, uint32_t flags, spill_buffer_t *bytes,
                              spill_wire_message_t *message, spill_client_command_t *command,
                              spill_error_t *error)
{
    spill_buffer_clear(bytes);
    assert_true(spill_wire_write(bytes, 1, 0, flags, body, NULL, 0));
    assert_int_equal(spill_wire_read(bytes->data, bytes->size, message, NULL), SPILL_OK);
    return spill_client_command_read(message, command, error);
}

static void all_fields(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    spill_client_command_t command;
    bson_t *body = BCON_NEW("insert", BCON_UTF8("c"), "lsid", "{", "id",
                            BCON_BIN(BSON_SUBTYPE_UUID, session, sizeof session), "}", "txnNumber",
                            BCON_INT64(5), "startTransaction", BCON_BOOL(true), "autocommit",
                            BCON_BOOL(false), "maxTimeMS", BCON_INT32(9), "$db", BCON_UTF8("d"));
    assert_int_equal(read_body(body, SPILL_WIRE_MORE_TO_COME, &bytes, &message, &command, NULL),
                     SPILL_OK);
    assert_string_equal(command.name, "insert");
    assert_string_equal(command.collection, "c");
    assert_string_equal(command.database, "d");
    assert_memory_equal(command.session, session, sizeof session);
    assert_int_equal(command.txn_number, 5);
    assert_true(command.starts_transaction);
    assert_true(command.in_transaction);
    assert_int_equal(command.max_time_ms, 9);
    assert_true(command.unanswered);
    bson_destroy(body);

    body = BCON_NEW("ping", BCON_INT32(1), "lsid", "{", "id", BCON_INT32(1), "}", "$db",
                    BCON_UTF8("d"), "autocommit", BCON_BOOL(true));
    assert_int_equal(read_body(body, 0, &bytes, &message, &command, NULL), SPILL_OK);
    assert_null(command.collection);
    assert_null(command.session);
    assert_int_equal(command.txn_number, -1);
    assert_false(command.in_transaction);
    assert_false(command.unanswered);
    bson_destroy(body);
    spill_buffer_release(&bytes);
}

/* {ping: {a: {a: ...}}} of `depth` documents in all. */
static bson_t *nested(int depth)
{
    bson_t *inner = bson_new();
    for (int i = 1; i < depth; i++) {
        bson_t *outer = BCON_NEW("a", BCON_DOCUMENT(inner));
        bson_destroy(inner);
        inner = outer;
    }
    BSON_APPEND_UTF8(inner, "$db", "d");
    return inner;
}

static void refused_bodies(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    spill_client_command_t command;
    spill_error_t error;
    bson_t *deepest = nested(SPILL_COMMAND_DEPTH_MAX),
           *deeper = nested(SPILL_COMMAND_DEPTH_MAX + 1);
    bson_t *nowhere = BCON_NEW("ping", BCON_INT32(1), "$db", BCON_INT32(1));
    bson_t empty = BSON_INITIALIZER;
    assert_int_equal(read_body(deepest, 0, &bytes, &message, &command, &error), SPILL_OK);
    assert_int_equal(read_body(deeper, 0, &bytes, &message, &command, &error), SPILL_PARSE);
    assert_non_null(strstr(error.message, "deeper than 200"));
    assert_int_equal(read_body(nowhere, 0, &bytes, &message, &command, &error), SPILL_PARSE);
    assert_non_null(strstr(error.message, "$db"));
    assert_int_equal(read_body(&empty, 0, &bytes, &message, &command, &error), SPILL_PARSE);
    assert_non_null(strstr(error.message, "empty"));
    bson_t *inner = BCON_NEW("a", "{", "b", BCON_INT32(1), "}", "$db", BCON_UTF8("d"));
    spill_buffer_clear(&bytes);
    spill_wire_write(&bytes, 1, 0, 0, inner, NULL, 0);
    bytes.data[SPILL_WIRE_HEADER_BYTES + 5 + 4 + 3] = 99; /* the length of the inner document */
    assert_int_equal(spill_wire_read(bytes.data, bytes.size, &message, NULL), SPILL_OK);
    assert_int_equal(spill_client_command_read(&message, &command, &error), SPILL_PARSE);
    bson_destroy(deepest);
    bson_destroy(deeper);
    bson_destroy(nowhere);
    bson_destroy(inner);
    spill_buffer_release(&bytes);
}

/* ---- a part of a message --------------------------------------------------------------------- */

static void write_insert(spill_buffer_t *bytes, const bson_t *body)
{
    static uint8_t documents[5 * 100];
    for (size_t i = 0; i < sizeof documents; i += 5)
        documents[i] = 5;
    spill_wire_sequence_t sequence = {"documents", documents, sizeof documents};
    spill_buffer_clear(bytes);
    assert_true(spill_wire_write(bytes, 1, 0, 0, body, &sequence, 1));
}

/* The look at each part agrees with the look at the whole, and needs no byte behind the body. */
/* Servers differ in which of both they read. */
static void a_field_is_in_the_body_or_in_a_section(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    spill_client_command_t command;
    bson_t *body = BCON_NEW("update", BCON_UTF8("c"), "updates", "[", "]", "$db", BCON_UTF8("d"));
    spill_wire_sequence_t section = {"updates", NULL, 0};
    assert_true(spill_wire_write(&bytes, 1, 0, 0, body, &section, 1));
    assert_int_equal(spill_wire_read(bytes.data, bytes.size, &message, NULL), SPILL_OK);
    assert_int_equal(spill_client_command_read(&message, &command, NULL), SPILL_PARSE);
    section.name = "others";
    spill_buffer_clear(&bytes);
    assert_true(spill_wire_write(&bytes, 1, 0, 0, body, &section, 1));
    assert_int_equal(spill_wire_read(bytes.data, bytes.size, &message, NULL), SPILL_OK);
    assert_int_equal(spill_client_command_read(&message, &command, NULL), SPILL_OK);
    bson_destroy(body);
    spill_buffer_release(&bytes);
}

static void every_part_of_an_insert(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_command_peek_t peek;
    bson_t *body = BCON_NEW("insert", BCON_UTF8("c"), "ordered", BCON_BOOL(true), "x", BCON_NULL,
                            "$db", BCON_UTF8("d"), "autocommit", BCON_BOOL(false));
    write_insert(&bytes, body);
    size_t end = SPILL_WIRE_HEADER_BYTES + 5 + body->len;
    size_t known = 0;
    for (size_t size = 0; size <= bytes.size; size++) {
        uint8_t *part = bson_malloc(size + 1); /* exact, for the address sanitizer */
        if (size > 0)
            memcpy(part, bytes.data, size);
        spill_peek_result_t result = spill_command_peek(part, size, bytes.size, &peek);
        if (result == SPILL_PEEK_KNOWN) {
            known++;
            assert_string_equal(peek.name, "insert");
            assert_string_equal(peek.collection, "c");
            assert_string_equal(peek.database, "d");
            assert_int_equal(peek.complete, size >= end);
            assert_true(!peek.complete || peek.transaction);
        } else {
            assert_int_equal(result, SPILL_PEEK_MORE);
            assert_true(size < end);
        }
        bson_free(part);
    }
    assert_true(known > bytes.size - end);
    bson_destroy(body);
    spill_buffer_release(&bytes);
}

static void malformed_beginnings(void **state)
{
    (void)state;
    spill_buffer_t bytes = SPILL_BUFFER_INIT;
    spill_command_peek_t peek;
    bson_t *body = BCON_NEW("insert", BCON_UTF8("c"));
    enum { FLAGS = SPILL_WIRE_HEADER_BYTES, KIND = FLAGS + 4 };
    write_insert(&bytes, body);
    assert_int_equal(spill_command_peek(bytes.data, bytes.size, bytes.size, &peek),
                     SPILL_PEEK_UNKNOWN); /* no $db */
    bytes.data[FLAGS] = 8;
    assert_int_equal(spill_command_peek(bytes.data, bytes.size, bytes.size, &peek),
                     SPILL_PEEK_MALFORMED);
    bytes.data[FLAGS] = 0;
    bytes.data[KIND] = 1;
    assert_int_equal(spill_command_peek(bytes.data, bytes.size, bytes.size, &peek),
                     SPILL_PEEK_UNKNOWN);
    bytes.data[KIND] = 0;
    bytes.data[KIND + 4] = 0x7F; /* a body longer than the message */
    assert_int_equal(spill_command_peek(bytes.data, bytes.size, bytes.size, &peek),
                     SPILL_PEEK_MALFORMED);
    bytes.data[KIND + 4] = 0;
    bytes.data[KIND + 5] = 0x42; /* no type */
    assert_int_equal(spill_command_peek(bytes.data, bytes.size, bytes.size, &peek),
                     SPILL_PEEK_UNKNOWN);
    bson_destroy(body);
    spill_buffer_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_fields),
        cmocka_unit_test(refused_bodies),
        cmocka_unit_test(a_field_is_in_the_body_or_in_a_section),
        cmocka_unit_test(every_part_of_an_insert),
        cmocka_unit_test(malformed_beginnings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
