#include "mongo/gateway_client.h"

#include "gateway/translate/first_step.h"
#include "support/document.h"
#include "support/server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- messages -------------------------------------------------------------------------------- */

static bool write_all(int socket, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t sent = send(socket, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        at += sent;
        size -= (size_t)sent;
    }
    return true;
}

static bool read_all(int socket, void *data, size_t size)
{
    char *at = data;
    while (size > 0) {
        ssize_t got = recv(socket, at, size, 0);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static void append_int32(spill_buffer_t *out, int32_t value)
{
    uint32_t bytes = BSON_UINT32_TO_LE((uint32_t)value);
    spill_buffer_append(out, &bytes, sizeof bytes);
}

/* Send an OP_MSG. */
static bool send_message(gateway_client_t *client, const bson_t *body,
                         const spill_wire_sequence_t *sequences, size_t count)
{
    spill_buffer_t out = SPILL_BUFFER_INIT;
    append_int32(&out, 0);
    append_int32(&out, ++client->request_id);
    append_int32(&out, 0);
    append_int32(&out, SPILL_WIRE_MSG);
    append_int32(&out, 0);
    spill_buffer_append_byte(&out, 0);
    spill_buffer_append(&out, bson_get_data(body), body->len);
    for (size_t i = 0; i < count; i++) {
        size_t name = strlen(sequences[i].name) + 1;
        spill_buffer_append_byte(&out, 1);
        append_int32(&out, (int32_t)(4 + name + sequences[i].bytes));
        spill_buffer_append(&out, sequences[i].name, name);
        spill_buffer_append(&out, sequences[i].documents, sequences[i].bytes);
    }
    uint32_t size = BSON_UINT32_TO_LE((uint32_t)out.size);
    memcpy(out.data, &size, sizeof size);
    bool sent = write_all(client->socket, out.data, out.size);
    spill_buffer_release(&out);
    client->calls++;
    return sent;
}

static bool receive(gateway_client_t *client, bson_t *reply)
{
    enum { BEFORE_BODY = 16 + 4 + 1 };
    uint8_t header[BEFORE_BODY];
    uint32_t size;
    if (!read_all(client->socket, header, sizeof header))
        return false;
    memcpy(&size, header, sizeof size);
    size = BSON_UINT32_FROM_LE(size) - BEFORE_BODY;
    uint8_t *data = bson_malloc(size);
    bson_t body;
    bool got = read_all(client->socket, data, size) && bson_init_static(&body, data, size);
    if (got)
        bson_copy_to(&body, reply);
    bson_free(data);
    return got;
}

static spill_code_t fail_call(spill_error_t *error)
{
    *error = (spill_error_t){.code = SPILL_IO, .message = "the connection broke"};
    return SPILL_IO;
}

static spill_code_t call(spill_client_connection_t *connection, const bson_t *body,
                         const spill_wire_sequence_t *sequences, size_t count, bson_t *reply,
                         spill_error_t *error)
{
    gateway_client_t *client = (gateway_client_t *)connection;
    if (client->before_call != NULL && !client->before_call(client, body))
        return fail_call(error);
    bool dies = client->dies_at == 1;
    client->dies_at -= client->dies_at > 1;
    if (dies && !client->loses_reply)
        return fail_call(error);
    bson_t sent = BSON_INITIALIZER;
    if (client->omits_collation)
        bson_copy_to_excluding_noinit(body, &sent, "collation", NULL);
    bool done = send_message(client, client->omits_collation ? &sent : body, sequences, count) &&
                receive(client, reply);
    bson_destroy(&sent);
    if (!done)
        return fail_call(error);
    if (!dies)
        return SPILL_OK;
    client->loses_reply = false; /* the next call is not sent */
    bson_destroy(reply);
    return fail_call(error);
}

static bool reserve(spill_client_connection_t *connection, size_t bytes)
{
    gateway_client_t *client = (gateway_client_t *)connection;
    client->reserved += (int64_t)bytes;
    return true;
}

/* ---- clients --------------------------------------------------------------------------------- */

static int connect_to(const mongoc_host_list_t *host)
{
    int on = 1, made = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(host->port)};
    assert_int_equal(inet_pton(AF_INET, host->host, &address.sin_addr), 1);
    assert_int_equal(connect(made, (struct sockaddr *)&address, sizeof address), 0);
    setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return made;
}

gateway_client_t *gateway_client_new(const char *uri)
{
    spill_error_t error;
    gateway_client_t *client = bson_malloc0(sizeof *client);
    mongoc_uri_t *parsed = mongoc_uri_new(uri);
    client->database = bson_strdup(mongoc_uri_get_database(parsed));
    client->socket = connect_to(mongoc_uri_get_hosts(parsed));
    client->txn_number = -1;
    client->connection.call = call;
    client->connection.reserve = reserve;
    client->connection.reply_bytes_max = SPILL_WIRE_MESSAGE_BYTES_MAX;
    client->connection.rights = spill_rights_new();
    mongoc_uri_destroy(parsed);
    if (spill_served_open(uri, &client->served, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    return client;
}

void gateway_client_free(gateway_client_t *client)
{
    spill_served_free(client->served);
    spill_rights_free(client->connection.rights);
    close(client->socket);
    bson_free(client->database);
    bson_free(client);
}

spill_definition_t gateway_small_definition(void)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "gateway", "c.f", NULL), SPILL_OK);
    definition.bounds.threshold = 3;
    definition.bounds.page_capacity = 2;
    strcpy(definition.collection, "c");
    strcpy(definition.array, "f");
    strcpy(definition.page_array, "f");
    strcpy(definition.page_collection, "c.pages");
    return definition;
}

/* ---- commands -------------------------------------------------------------------------------- */

static void add_fields(const gateway_client_t *client, const bson_t *command, bson_t *body)
{
    static const uint8_t session[16] = {7};
    bson_t lsid;
    bson_init(body);
    bson_concat(body, command);
    if (!bson_has_field(body, "$db"))
        BSON_APPEND_UTF8(body, "$db", client->database);
    if (client->txn_number < 0)
        return;
    BSON_APPEND_DOCUMENT_BEGIN(body, "lsid", &lsid);
    BSON_APPEND_BINARY(&lsid, "id", BSON_SUBTYPE_UUID, session, sizeof session);
    bson_append_document_end(body, &lsid);
    BSON_APPEND_INT64(body, "txnNumber", client->txn_number);
}

static spill_client_command_t read_command(const spill_wire_message_t *message)
{
    spill_client_command_t command = {.message = message, .txn_number = -1};
    bson_iter_t iter;
    const uint8_t *bytes;
    uint32_t size;
    bson_subtype_t subtype;
    assert_true(bson_iter_init(&iter, &message->body) && bson_iter_next(&iter));
    command.name = bson_iter_key(&iter);
    command.collection = BSON_ITER_HOLDS_UTF8(&iter) ? bson_iter_utf8(&iter, NULL) : NULL;
    assert_true(bson_iter_init_find(&iter, &message->body, "$db"));
    command.database = bson_iter_utf8(&iter, NULL);
    if (bson_iter_init_find(&iter, &message->body, "txnNumber"))
        command.txn_number = bson_iter_as_int64(&iter);
    if (bson_iter_init_find(&iter, &message->body, "maxTimeMS"))
        command.max_time_ms = bson_iter_as_int64(&iter);
    bson_iter_t id;
    if (bson_iter_init(&iter, &message->body) && bson_iter_find_descendant(&iter, "lsid.id", &id)) {
        bson_iter_binary(&id, &subtype, &size, &bytes);
        command.session = bytes;
    }
    command.in_transaction = bson_iter_init_find(&iter, &message->body, "autocommit");
    return command;
}

bson_t *gateway_direct(gateway_client_t *client, const bson_t *command)
{
    bson_t body, *reply = bson_new();
    bson_t got;
    spill_error_t error;
    add_fields(client, command, &body);
    if (client->connection.call(&client->connection, &body, NULL, 0, &got, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    bson_concat(reply, &got);
    bson_destroy(&got);
    bson_destroy(&body);
    return reply;
}

/* The first step of an update, which the relay makes on its loop. False: a worker begins. */
static bool run_first_step(gateway_client_t *client, const spill_client_command_t *command,
                           spill_push_turn_t *turn, bson_t *reply, bool *close)
{
    bson_t body;
    spill_error_t error;
    if (!spill_first_step_make(client->served, NULL, command, client->connection.user, &body, turn))
        return false;
    *close = call(&client->connection, &body, NULL, 0, reply, &error) != SPILL_OK;
    bson_destroy(&body);
    if (*close) {
        bson_init(reply);
        return true;
    }
    bool done = spill_first_step_is_done(reply, turn);
    if (!done)
        bson_destroy(reply);
    return done;
}

bson_t *gateway_run(gateway_client_t *client, const bson_t *command)
{
    spill_wire_message_t message = {.header = {.opcode = SPILL_WIRE_MSG}};
    bson_t reply, *result;
    bool close = false;
    add_fields(client, command, &message.body);
    spill_client_command_t read = read_command(&message);
    client->relayed = spill_translate_classify(client->served, &read) == SPILL_TRANSLATION_RELAY;
    if (client->relayed) {
        result = gateway_direct(client, command);
    } else {
        spill_push_turn_t turn;
        if (!run_first_step(client, &read, &turn, &reply, &close))
            spill_translate_run(client->served, &client->connection, &read, &reply, &close);
        spill_push_turn_end(client->served, &turn);
        client->broken = close;
        assert_true(!close || client->dies_at > 0);
        result = bson_copy(&reply);
        bson_destroy(&reply);
    }
    bson_destroy(&message.body);
    return result;
}

bson_t *gateway_run_json(gateway_client_t *client, const char *json)
{
    bson_t *command = document_from_json(json);
    bson_t *reply = gateway_run(client, command);
    bson_destroy(command);
    return reply;
}

bson_t *gateway_direct_json(gateway_client_t *client, const char *json)
{
    bson_t *command = document_from_json(json);
    bson_t *reply = gateway_direct(client, command);
    bson_destroy(command);
    return reply;
}

void gateway_expect(const bson_t *reply, const char *path, const char *json)
{
    bson_iter_t iter, found;
    bson_t value = BSON_INITIALIZER;
    char *wanted = bson_strdup_printf("{ \"v\" : %s }", json);
    char *all = bson_as_relaxed_extended_json(reply, NULL);
    bool there = bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &found);
    if (there)
        bson_append_iter(&value, "v", -1, &found);
    char *got = bson_as_relaxed_extended_json(&value, NULL);
    if (strcmp(got, there || strcmp(json, "null") != 0 ? wanted : "{ }") != 0)
        fail_msg("%s is %s, not %s, in %s", path, got, wanted, all);
    bson_free(got);
    bson_free(all);
    bson_free(wanted);
    bson_destroy(&value);
}

/* ---- fixtures -------------------------------------------------------------------------------- */

void gateway_define(const char *uri, const spill_definition_t *definition)
{
    spill_error_t error;
    spill_store_t *store = server_open_indexed(uri);
    if (spill_store_define(store, definition, &error) != SPILL_OK)
        fail_msg("%s", error.message);
    server_close(store);
}

gateway_fixture_t *gateway_fixture_new(const spill_definition_t *definition)
{
    gateway_fixture_t *fixture = bson_malloc0(sizeof *fixture);
    fixture->uri = server_new_database(NULL);
    gateway_define(fixture->uri, definition);
    fixture->client = gateway_client_new(fixture->uri);
    return fixture;
}

void gateway_fixture_free(gateway_fixture_t *fixture)
{
    gateway_client_free(fixture->client);
    server_drop(fixture->uri);
    bson_free(fixture->uri);
    bson_free(fixture);
}

int gateway_setup(void **state)
{
    spill_definition_t definition = gateway_small_definition();
    *state = gateway_fixture_new(&definition);
    return 0;
}

int gateway_teardown(void **state)
{
    gateway_fixture_free(*state);
    return 0;
}

void gateway_settle(gateway_fixture_t *fixture)
{
    gateway_client_free(fixture->client);
    fixture->client = gateway_client_new(fixture->uri);
}

void gateway_try(gateway_fixture_t *fixture, const char *command, const char *path,
                 const char *json)
{
    bson_t *reply = gateway_run_json(fixture->client, command);
    gateway_expect(reply, path, json);
    bson_destroy(reply);
}

void gateway_try_direct(gateway_fixture_t *fixture, const char *command, const char *path,
                        const char *json)
{
    bson_t *reply = gateway_direct_json(fixture->client, command);
    gateway_expect(reply, path, json);
    bson_destroy(reply);
}

void gateway_push(gateway_fixture_t *fixture, int owner, int from, int to)
{
    for (int i = from; i < to; i++) {
        char *command = bson_strdup_printf(
            "{\"update\": \"c\", \"updates\": [{\"q\": {\"_id\": %d}, \"u\": {\"$push\": {\"f\": "
            "%d}}, \"upsert\": true}]}",
            owner, i);
        gateway_try(fixture, command, "n", "1");
        bson_free(command);
    }
}
