/*
 * The input is a message of a client. Reading it, as a whole and in parts, must stay within its
 * bytes. A message that is read must be the same after it was written and read again.
 */
#include "fuzz.h"
#include "gateway/relay/authentication.h"
#include "gateway/relay/client_command.h"
#include "gateway/relay/command_peek.h"
#include "gateway/relay/hello.h"

#include <string.h>

static void check_written(const spill_wire_message_t *message)
{
    spill_buffer_t out = SPILL_BUFFER_INIT;
    spill_wire_message_t again;
    uint32_t flags = message->flags & ~SPILL_WIRE_CHECKSUM;
    REQUIRE(spill_wire_write(&out, message->header.request_id, message->header.response_to, flags,
                             &message->body, message->sequences, message->sequence_count));
    REQUIRE(spill_wire_read(out.data, out.size, &again, NULL) == SPILL_OK);
    REQUIRE(bson_equal(&again.body, &message->body));
    REQUIRE(again.sequence_count == message->sequence_count);
    for (size_t i = 0; i < again.sequence_count; i++) {
        REQUIRE(strcmp(again.sequences[i].name, message->sequences[i].name) == 0);
        REQUIRE(again.sequences[i].bytes == message->sequences[i].bytes);
        REQUIRE(memcmp(again.sequences[i].documents, message->sequences[i].documents,
                       again.sequences[i].bytes) == 0);
    }
    spill_buffer_release(&out);
}

static void check_hello(const bson_t *request)
{
    bson_t copy, answer;
    bson_iter_t iter;
    int fields = 0;
    spill_target_t target = {.message_bytes_max = SPILL_WIRE_MESSAGE_BYTES_MAX};
    bson_oid_t process;
    spill_hello_own_t own = {.process = &process};
    bson_oid_init_from_string(&process, "0123456789abcdef01234567");
    bson_init(&target.primary.hello);
    (void)spill_hello_needs_upstream(request);
    spill_hello_request(request, "admin", &copy);
    spill_hello_answer(&target, &own, request, request, &answer);
    REQUIRE(bson_iter_init(&iter, &answer));
    while (bson_iter_next(&iter))
        fields++;
    REQUIRE(iter.err_off == 0 && fields > 0);
    bson_destroy(&copy);
    bson_destroy(&answer);
    bson_destroy(&target.primary.hello);
}

/* A look at the first half agrees with the whole message. */
static void check_peek(const uint8_t *data, size_t size, const spill_client_command_t *command)
{
    spill_command_peek_t peek;
    if (spill_command_peek(data, size / 2, size, &peek) != SPILL_PEEK_KNOWN || !command)
        return;
    REQUIRE(strcmp(peek.name, command->name) == 0);
    REQUIRE(!peek.collection || !command->collection ||
            strcmp(peek.collection, command->collection) == 0);
    REQUIRE(peek.unanswered == command->unanswered);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    spill_wire_message_t message;
    spill_client_command_t command;
    spill_authentication_t authentication = {0};
    check_peek(data, size, NULL);
    if (spill_wire_read(data, size, &message, NULL) != SPILL_OK)
        return 0;
    if (message.header.opcode == SPILL_WIRE_QUERY) {
        if (spill_client_command_check(&message.body, NULL) == SPILL_OK)
            check_hello(&message.body);
        return 0;
    }
    check_written(&message);
    if (spill_client_command_read(&message, &command, NULL) != SPILL_OK)
        return 0;
    check_peek(data, size, &command);
    check_hello(&message.body);
    spill_authentication_begin(&authentication, &message.body, command.database);
    return 0;
}
