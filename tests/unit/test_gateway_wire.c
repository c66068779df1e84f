/* Messages of the wire protocol: what is written is read, and malformed messages are refused. */
#include "gateway/relay/wire.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void put_int32(uint8_t *at, int32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((uint32_t)value >> (8 * i));
}

/* {ping: 1, $db: "admin"} with a sequence of two documents. */
static void write_example(spill_buffer_t *out, uint32_t flags)
{
    bson_t *body = BCON_NEW("ping", BCON_INT32(1), "$db", BCON_UTF8("admin"));
    bson_t *one = BCON_NEW("_id", BCON_INT32(1));
    uint8_t documents[64];
    memcpy(documents, bson_get_data(one), one->len);
    memcpy(documents + one->len, bson_get_data(one), one->len);
    spill_wire_sequence_t sequence = {"documents", documents, 2 * one->len};
    assert_true(spill_wire_write(out, 7, 3, flags, body, &sequence, 1));
    bson_destroy(body);
    bson_destroy(one);
}

static void written_is_read(void **state)
{
    (void)state;
    spill_buffer_t out = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    bson_iter_t iter;
    write_example(&out, SPILL_WIRE_MORE_TO_COME | SPILL_WIRE_EXHAUST_ALLOWED);
    assert_int_equal(spill_wire_read(out.data, out.size, &message, NULL), SPILL_OK);
    assert_int_equal(message.header.length, out.size);
    assert_int_equal(message.header.request_id, 7);
    assert_int_equal(message.header.response_to, 3);
    assert_int_equal(message.header.opcode, SPILL_WIRE_MSG);
    assert_int_equal(message.flags, SPILL_WIRE_MORE_TO_COME | SPILL_WIRE_EXHAUST_ALLOWED);
    assert_true(bson_iter_init_find(&iter, &message.body, "ping"));
    assert_int_equal(message.sequence_count, 1);
    assert_string_equal(message.sequences[0].name, "documents");
    assert_int_equal(message.sequences[0].bytes, 28);
    spill_buffer_release(&out);
}

/* The check value of CRC-32C: RFC 3720, appendix B.4, has it for other bytes; this one is
 * Rocksoft's. */
static void checksum_is_verified(void **state)
{
    (void)state;
    spill_buffer_t out = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    spill_error_t error;
    uint8_t checksum[4];
    assert_int_equal(spill_crc32c("123456789", 9), 0xE3069283);
    write_example(&out, 0);
    out.data[SPILL_WIRE_HEADER_BYTES] |= SPILL_WIRE_CHECKSUM;
    put_int32(out.data, (int32_t)out.size + 4);
    put_int32(checksum, (int32_t)spill_crc32c(out.data, out.size));
    spill_buffer_append(&out, checksum, sizeof checksum);
    assert_int_equal(spill_wire_read(out.data, out.size, &message, NULL), SPILL_OK);
    assert_int_equal(message.sequence_count, 1);
    out.data[out.size - 1] ^= 1;
    assert_int_equal(spill_wire_read(out.data, out.size, &message, &error), SPILL_PARSE);
    assert_non_null(strstr(error.message, "checksum"));
    spill_buffer_release(&out);
}

/* Every shorter message is refused, also if its header gives the shorter length. */
static void cut_messages_are_refused(void **state)
{
    (void)state;
    spill_buffer_t out = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    write_example(&out, 0);
    size_t whole = out.size, refused = 0, with_body_alone = 0;
    for (size_t size = 0; size < whole; size++) {
        if (size >= 4)
            put_int32(out.data, (int32_t)size);
        if (spill_wire_read(out.data, size, &message, NULL) == SPILL_PARSE)
            refused++;
        else
            with_body_alone += message.sequence_count == 0;
    }
    assert_int_equal(with_body_alone, 1); /* the cut before the sequence */
    assert_int_equal(refused, whole - 1);
    spill_buffer_release(&out);
}

static void refuse(spill_buffer_t *out, const char *what)
{
    spill_wire_message_t message;
    spill_error_t error;
    assert_int_equal(spill_wire_read(out->data, out->size, &message, &error), SPILL_PARSE);
    if (!strstr(error.message, what))
        fail_msg("'%s' does not name '%s'", error.message, what);
    spill_buffer_release(out);
}

static void malformed_messages_are_refused(void **state)
{
    (void)state;
    spill_buffer_t out = SPILL_BUFFER_INIT;
    bson_t empty = BSON_INITIALIZER;
    enum { FLAGS = SPILL_WIRE_HEADER_BYTES, KIND = FLAGS + 4 };

    write_example(&out, 0);
    out.data[FLAGS] = 4;
    refuse(&out, "unknown flags");
    write_example(&out, 0);
    out.data[KIND] = 2;
    refuse(&out, "unknown kind");
    write_example(&out, 0);
    put_int32(out.data + KIND + 1, INT_MAX);
    refuse(&out, "document with a wrong length at byte 21");
    write_example(&out, 0);
    put_int32(out.data + out.size - 14, 13);
    refuse(&out, "document with a wrong length");
    write_example(&out, 0);
    put_int32(out.data + 12, SPILL_WIRE_COMPRESSED);
    refuse(&out, "opcode 2012");

    spill_wire_write(&out, 1, 0, 0, &empty, NULL, 0);
    spill_buffer_append_byte(&out, 0);
    spill_buffer_append(&out, bson_get_data(&empty), empty.len);
    put_int32(out.data, (int32_t)out.size);
    refuse(&out, "second body");
    spill_wire_sequence_t many[SPILL_WIRE_SEQUENCES_MAX + 1];
    char names[SPILL_WIRE_SEQUENCES_MAX + 1][2] = {{0}};
    for (size_t i = 0; i <= SPILL_WIRE_SEQUENCES_MAX; i++) {
        names[i][0] = (char)('a' + i);
        many[i] = (spill_wire_sequence_t){names[i], NULL, 0};
    }
    many[1].name = names[0];
    spill_wire_write(&out, 1, 0, 0, &empty, many, 2);
    refuse(&out, "second section of a name");
    many[1].name = names[1];
    spill_wire_write(&out, 1, 0, 0, &empty, many, SPILL_WIRE_SEQUENCES_MAX + 1);
    refuse(&out, "too many sections");
    write_example(&out, 0);
    out.size -= 1; /* the header says more */
    refuse(&out, "gives its length as");
}

static void headers_have_limits(void **state)
{
    (void)state;
    uint8_t bytes[SPILL_WIRE_HEADER_BYTES] = {0};
    spill_wire_header_t header;
    static const int32_t refused[] = {INT_MIN, -1, 0, 15, 101, INT_MAX};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        put_int32(bytes, refused[i]);
        assert_int_equal(spill_wire_read_header(bytes, 100, &header, NULL), SPILL_PARSE);
    }
    put_int32(bytes, 100);
    assert_int_equal(spill_wire_read_header(bytes, 100, &header, NULL), SPILL_OK);
}

static void append_query(spill_buffer_t *out, const bson_t *query)
{
    static const uint8_t numbers[8] = {0};
    uint8_t header[SPILL_WIRE_HEADER_BYTES] = {0};
    put_int32(header + 12, SPILL_WIRE_QUERY);
    spill_buffer_append(out, header, sizeof header);
    spill_buffer_append(out, numbers, 4);
    spill_buffer_append(out, "admin.$cmd", sizeof "admin.$cmd");
    spill_buffer_append(out, numbers, 8);
    spill_buffer_append(out, bson_get_data(query), query->len);
    put_int32(out->data, (int32_t)out->size);
}

static void query_is_read_and_answered(void **state)
{
    (void)state;
    spill_buffer_t out = SPILL_BUFFER_INIT;
    spill_wire_message_t message;
    spill_wire_header_t header;
    bson_t *query = BCON_NEW("isMaster", BCON_INT32(1));
    append_query(&out, query);
    assert_int_equal(spill_wire_read(out.data, out.size, &message, NULL), SPILL_OK);
    assert_string_equal(message.ns, "admin.$cmd");
    assert_true(bson_equal(&message.body, query));
    spill_buffer_append_byte(&out, 0);
    put_int32(out.data, (int32_t)out.size);
    assert_int_equal(spill_wire_read(out.data, out.size, &message, NULL), SPILL_PARSE);
    spill_buffer_clear(&out);
    assert_true(spill_wire_write_reply(&out, 5, 9, query));
    assert_int_equal(spill_wire_read_header(out.data, INT_MAX, &header, NULL), SPILL_OK);
    assert_int_equal(header.opcode, SPILL_WIRE_REPLY);
    assert_int_equal(header.response_to, 9);
    assert_int_equal(header.length, out.size);
    assert_memory_equal(out.data + out.size - query->len, bson_get_data(query), query->len);
    bson_destroy(query);
    spill_buffer_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_is_read),
        cmocka_unit_test(checksum_is_verified),
        cmocka_unit_test(cut_messages_are_refused),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(headers_have_limits),
        cmocka_unit_test(query_is_read_and_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
