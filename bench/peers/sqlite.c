/*
 * SQLite: one row per element, in a table WITHOUT ROWID. Journal mode WAL, which its documentation
 * recommends for several threads, with synchronous FULL if a power loss must lose nothing, else
 * NORMAL. Each thread has its own connection.
 */
#include "../measure.h"
#include "peer.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUSY_MS = 60000 };

typedef struct base {
    char path[512];
    bool durable;
} base_t;

typedef struct connection {
    sqlite3 *db;
    sqlite3_stmt *append, *add, *page, *all;
} connection_t;

static void check(const connection_t *connection, int code)
{
    if (code != SQLITE_OK && code != SQLITE_DONE && code != SQLITE_ROW)
        measure_stop("sqlite: %s", sqlite3_errmsg(connection->db));
}

static void execute(const connection_t *connection, const char *text)
{
    check(connection, sqlite3_exec(connection->db, text, NULL, NULL, NULL));
}

static connection_t *connect_to(const base_t *base)
{
    connection_t *connection = calloc(1, sizeof *connection);
    check(connection, sqlite3_open(base->path, &connection->db));
    sqlite3_busy_timeout(connection->db, BUSY_MS);
    execute(connection, "PRAGMA journal_mode=WAL");
    execute(connection, base->durable ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    return connection;
}

static sqlite3_stmt *prepare(const connection_t *connection, const char *text)
{
    sqlite3_stmt *statement;
    check(connection, sqlite3_prepare_v2(connection->db, text, -1, &statement, NULL));
    return statement;
}

static void *open_base(const peer_place_t *place)
{
    base_t *base = calloc(1, sizeof *base);
    snprintf(base->path, sizeof base->path, "%s/peer.db", place->folder);
    base->durable = place->durable;
    connection_t *connection = connect_to(base);
    execute(connection,
            "CREATE TABLE IF NOT EXISTS element (owner TEXT, seq INTEGER, id INTEGER, body "
            "BLOB, PRIMARY KEY (owner, seq)) WITHOUT ROWID");
    if (place->ids)
        execute(connection, "CREATE UNIQUE INDEX IF NOT EXISTS element_id ON element (owner, id)");
    sqlite3_close(connection->db);
    free(connection);
    return base;
}

static void *join(void *peer)
{
    connection_t *connection = connect_to(peer);
    static const char insert[] =
        "INSERT INTO element SELECT ?1, 1 + COALESCE((SELECT MAX(seq) FROM element WHERE owner = "
        "?1), -1), ?2, ?3";
    char conditional[512];
    snprintf(conditional, sizeof conditional,
             "%s WHERE NOT EXISTS (SELECT 1 FROM element WHERE owner = ?1 AND id = ?2)", insert);
    connection->append = prepare(connection, insert);
    connection->add = prepare(connection, conditional);
    connection->page = prepare(
        connection, "SELECT body FROM element WHERE owner = ?1 AND seq <= (SELECT MAX(seq) FROM "
                    "element WHERE owner = ?1) - ?2 ORDER BY seq DESC LIMIT ?3");
    connection->all = prepare(connection, "SELECT body FROM element WHERE owner = ?1 ORDER BY seq");
    return connection;
}

static void leave(void *at)
{
    connection_t *connection = at;
    sqlite3_finalize(connection->append);
    sqlite3_finalize(connection->add);
    sqlite3_finalize(connection->page);
    sqlite3_finalize(connection->all);
    sqlite3_close(connection->db);
    free(connection);
}

/* `id` NULL: none. */
static void insert(const connection_t *connection, sqlite3_stmt *statement, const char *owner,
                   const int64_t *id, const uint8_t *element)
{
    sqlite3_bind_text(statement, 1, owner, -1, SQLITE_STATIC);
    if (id)
        sqlite3_bind_int64(statement, 2, *id);
    sqlite3_bind_blob(statement, 3, element, ELEMENT_BYTES, SQLITE_STATIC);
    check(connection, sqlite3_step(statement));
    check(connection, sqlite3_reset(statement));
}

static int64_t append(void *at, const char *owner, const uint8_t *element, const peer_op_t *op)
{
    connection_t *connection = at;
    (void)op;
    insert(connection, connection->append, owner, NULL, element);
    return 0;
}

static bool add(void *at, const char *owner, int64_t id, const uint8_t *element)
{
    connection_t *connection = at;
    insert(connection, connection->add, owner, &id, element);
    return sqlite3_changes(connection->db) > 0;
}

static int rows(const connection_t *connection, sqlite3_stmt *statement, peer_visit_fn visit,
                void *context)
{
    int count = 0, code;
    for (; (code = sqlite3_step(statement)) == SQLITE_ROW; count++)
        if (visit)
            visit(context, sqlite3_column_blob(statement, 0),
                  (size_t)sqlite3_column_bytes(statement, 0));
    check(connection, code);
    check(connection, sqlite3_reset(statement));
    return count;
}

static int page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    sqlite3_bind_text(connection->page, 1, owner, -1, SQLITE_STATIC);
    sqlite3_bind_int64(connection->page, 2, skip);
    sqlite3_bind_int(connection->page, 3, limit);
    return rows(connection, connection->page, NULL, NULL);
}

static void all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    connection_t *connection = at;
    sqlite3_bind_text(connection->all, 1, owner, -1, SQLITE_STATIC);
    rows(connection, connection->all, visit, context);
}

static int64_t bytes(const peer_place_t *place, bool compacted)
{
    if (compacted) {
        base_t base = {.durable = place->durable};
        snprintf(base.path, sizeof base.path, "%s/peer.db", place->folder);
        connection_t *connection = connect_to(&base);
        execute(connection, "VACUUM");
        check(connection, sqlite3_close(connection->db));
        free(connection);
    }
    return measure_folder_bytes(place->folder);
}

const peer_t peer_sqlite = {.name = "SQLite rows",
                            .id = "sqlite",
                            .home = PEER_HERE,
                            .open = open_base,
                            .close = free,
                            .join = join,
                            .leave = leave,
                            .append = append,
                            .add = add,
                            .page = page,
                            .bytes = bytes,
                            .all = all};
