/*
 * PostgreSQL: one row per element, and one JSONB array of all elements in the owner's row, which
 * grows with ||. synchronous_commit is on if an append must survive a power loss, else off. It uses
 * prepared statements, and one connection per thread.
 */
#include "../measure.h"
#include "peer.h"

#include <bson/bson.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct server {
    char *place;
    bool durable;
} server_t;

static PGresult *checked(PGconn *connection, PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        measure_stop("postgres: %s", PQerrorMessage(connection));
    return result;
}

static void execute(PGconn *connection, const char *text)
{
    PQclear(checked(connection, PQexec(connection, text)));
}

static PGconn *connect_to(const server_t *server)
{
    PGconn *connection = PQconnectdb(server->place);
    if (PQstatus(connection) != CONNECTION_OK)
        measure_stop("postgres: %s", PQerrorMessage(connection));
    execute(connection, "SET client_min_messages = warning");
    execute(connection,
            server->durable ? "SET synchronous_commit = on" : "SET synchronous_commit = off");
    return connection;
}

static void leave(void *connection)
{
    PQfinish(connection);
}

static void close_server(void *peer)
{
    server_t *server = peer;
    free(server->place);
    free(server);
}

static server_t *server_of(const peer_place_t *place, const char *drop, const char *make)
{
    server_t *server = calloc(1, sizeof *server);
    server->place = strdup(place->postgres);
    server->durable = place->durable;
    PGconn *connection = connect_to(server);
    if (place->fresh)
        execute(connection, drop);
    execute(connection, make);
    leave(connection);
    return server;
}

/* The size of the table with its indexes and TOAST data, without the log, which is reused. */
static int64_t bytes_of(const peer_place_t *place, bool compacted, const char *table)
{
    server_t server = {.place = (char *)(uintptr_t)place->postgres};
    char text[128];
    PGconn *connection = connect_to(&server);
    snprintf(text, sizeof text, "VACUUM FULL %s", table);
    if (compacted)
        execute(connection, text);
    snprintf(text, sizeof text, "SELECT pg_total_relation_size('%s')", table);
    PGresult *result = checked(connection, PQexec(connection, text));
    int64_t size = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    leave(connection);
    return size;
}

static int64_t bytes_rows(const peer_place_t *place, bool compacted)
{
    return bytes_of(place, compacted, "element");
}

static int64_t bytes_jsonb(const peer_place_t *place, bool compacted)
{
    return bytes_of(place, compacted, "owner");
}

/* Run a prepared statement with an owner, a number as text and bytes; each may be NULL. */
static PGresult *ask(PGconn *connection, const char *name, int count, const char *const *texts,
                     const int *lengths, const int *formats)
{
    return checked(connection, PQexecPrepared(connection, name, count, texts, lengths, formats, 1));
}

static void prepare(PGconn *connection, const char *name, const char *text)
{
    PQclear(checked(connection, PQprepare(connection, name, text, 0, NULL)));
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void *open_rows(const peer_place_t *place)
{
    static const char table[] =
        "CREATE TABLE IF NOT EXISTS element (owner text, seq bigint GENERATED ALWAYS AS IDENTITY, "
        "id bigint, body bytea, PRIMARY KEY (owner, seq))";
    char indexed[512];
    snprintf(indexed, sizeof indexed,
             "%s; CREATE UNIQUE INDEX IF NOT EXISTS element_id ON element (owner, id)", table);
    return server_of(place, "DROP TABLE IF EXISTS element", place->ids ? indexed : table);
}

static void *join_rows(void *peer)
{
    PGconn *connection = connect_to(peer);
    prepare(connection, "append", "INSERT INTO element (owner, id, body) VALUES ($1, $2, $3)");
    prepare(connection, "add",
            "INSERT INTO element (owner, id, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING");
    prepare(connection, "page",
            "SELECT body FROM element WHERE owner = $1 ORDER BY seq DESC OFFSET $2 LIMIT $3");
    prepare(connection, "all", "SELECT body FROM element WHERE owner = $1 ORDER BY seq");
    return connection;
}

static bool insert(PGconn *connection, const char *statement, const char *owner, const char *id,
                   const uint8_t *element)
{
    const char *texts[] = {owner, id, (const char *)element};
    const int lengths[] = {0, 0, ELEMENT_BYTES}, formats[] = {0, 0, 1};
    PGresult *result = ask(connection, statement, 3, texts, lengths, formats);
    bool inserted = strcmp(PQcmdTuples(result), "1") == 0;
    PQclear(result);
    return inserted;
}

static int64_t append_row(void *connection, const char *owner, const uint8_t *element,
                          const peer_op_t *op)
{
    (void)op;
    insert(connection, "append", owner, NULL, element);
    return 0;
}

static bool add_row(void *connection, const char *owner, int64_t id, const uint8_t *element)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)id);
    return insert(connection, "add", owner, text, element);
}

static int page_of(PGconn *connection, const char *owner, int64_t skip, int limit)
{
    char from[24], count[24];
    const char *texts[] = {owner, from, count};
    snprintf(from, sizeof from, "%lld", (long long)skip);
    snprintf(count, sizeof count, "%d", limit);
    PGresult *result = ask(connection, "page", 3, texts, NULL, NULL);
    int rows = PQntuples(result);
    PQclear(result);
    return rows;
}

static int page_rows(void *connection, const char *owner, int64_t skip, int limit)
{
    return page_of(connection, owner, skip, limit);
}

static void all_rows(void *connection, const char *owner, peer_visit_fn visit, void *context)
{
    const char *texts[] = {owner};
    PGresult *result = ask(connection, "all", 1, texts, NULL, NULL);
    for (int i = 0; i < PQntuples(result); i++)
        visit(context, (const uint8_t *)PQgetvalue(result, i, 0),
              (size_t)PQgetlength(result, i, 0));
    PQclear(result);
}

/* ---- JSONB ----------------------------------------------------------------------------------- */

static void *open_jsonb(const peer_place_t *place)
{
    return server_of(place, "DROP TABLE IF EXISTS owner",
                     "CREATE TABLE IF NOT EXISTS owner (owner text PRIMARY KEY, body jsonb)");
}

static void *join_jsonb(void *peer)
{
    PGconn *connection = connect_to(peer);
    prepare(connection, "append",
            "INSERT INTO owner AS o VALUES ($1, jsonb_build_array($2::jsonb)) ON CONFLICT (owner) "
            "DO UPDATE SET body = o.body || $2::jsonb");
    prepare(connection, "fill", "INSERT INTO owner VALUES ($1, $2::jsonb)");
    prepare(connection, "page",
            "SELECT e FROM owner, jsonb_array_elements(jsonb_path_query_array(body, '$[last - $to "
            "to last - $from]', jsonb_build_object('from', $2::bigint, 'to', $2::bigint + "
            "$3::bigint - 1), true)) e WHERE owner = $1");
    prepare(connection, "all",
            "SELECT e::text FROM owner, jsonb_array_elements(body) WITH ORDINALITY AS t(e, n) "
            "WHERE owner = $1 ORDER BY n");
    return connection;
}

static int64_t append_jsonb(void *connection, const char *owner, const uint8_t *element,
                            const peer_op_t *op)
{
    bson_t document;
    (void)op;
    bson_init_static(&document, element, ELEMENT_BYTES);
    char *json = bson_as_canonical_extended_json(&document, NULL);
    const char *texts[] = {owner, json};
    PQclear(ask(connection, "append", 2, texts, NULL, NULL));
    bson_free(json);
    return 0;
}

static char *json_of(int number)
{
    uint8_t bytes[ELEMENT_BYTES];
    bson_t document;
    measure_element(bytes, (uint64_t)number);
    bson_init_static(&document, bytes, sizeof bytes);
    return bson_as_canonical_extended_json(&document, NULL);
}

static void fill_jsonb(void *connection, const char *owner, int count)
{
    bson_string_t *text = bson_string_new("[");
    for (int i = 0; i < count; i++) {
        char *json = json_of(i);
        bson_string_append(text, i > 0 ? "," : "");
        bson_string_append(text, json);
        bson_free(json);
    }
    bson_string_append(text, "]");
    const char *texts[] = {owner, text->str};
    PQclear(ask(connection, "fill", 2, texts, NULL, NULL));
    bson_string_free(text, true);
}

/* Convert the JSON to an element's bytes again: jsonb sorts fields, and the visitor needs the time.
 */
static void all_jsonb(void *connection, const char *owner, peer_visit_fn visit, void *context)
{
    const char *texts[] = {owner};
    PGresult *result = ask(connection, "all", 1, texts, NULL, NULL);
    for (int i = 0; i < PQntuples(result); i++) {
        bson_error_t error;
        bson_t *element = bson_new_from_json((const uint8_t *)PQgetvalue(result, i, 0),
                                             PQgetlength(result, i, 0), &error);
        if (!element)
            measure_stop("postgres: %s", error.message);
        visit(context, bson_get_data(element), element->len);
        bson_destroy(element);
    }
    PQclear(result);
}

const peer_t peer_postgres_rows = {.name = "PostgreSQL rows",
                                   .id = "postgres-rows",
                                   .home = PEER_POSTGRES,
                                   .open = open_rows,
                                   .close = close_server,
                                   .bytes = bytes_rows,
                                   .join = join_rows,
                                   .leave = leave,
                                   .append = append_row,
                                   .add = add_row,
                                   .page = page_rows,
                                   .all = all_rows};
const peer_t peer_postgres_jsonb = {.name = "PostgreSQL JSONB",
                                    .id = "postgres-jsonb",
                                    .home = PEER_POSTGRES,
                                    .open = open_jsonb,
                                    .close = close_server,
                                    .join = join_jsonb,
                                    .bytes = bytes_jsonb,
                                    .leave = leave,
                                    .fill = fill_jsonb,
                                    .append = append_jsonb,
                                    .page = page_rows,
                                    .all = all_jsonb};
