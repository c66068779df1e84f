/*
 * LMDB: one record per element, with owner and number as the key. A cursor at the owner's end finds
 * the next number. Only one write transaction runs at a time. MDB_NOSYNC if a power loss may lose
 * the last transactions.
 */
#include "../measure.h"
#include "peer.h"

#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAP_BYTES ((size_t)16 << 30)

enum { KEY_MAX = 96 };

typedef struct engine {
    MDB_env *env;
    MDB_dbi db;
} engine_t;

static void check(int code)
{
    if (code != MDB_SUCCESS)
        measure_stop("lmdb: %s", mdb_strerror(code));
}

static void *open_engine(const peer_place_t *place)
{
    engine_t *engine = calloc(1, sizeof *engine);
    MDB_txn *txn;
    check(mdb_env_create(&engine->env));
    check(mdb_env_set_mapsize(engine->env, MAP_BYTES));
    check(mdb_env_open(engine->env, place->folder, place->durable ? 0 : MDB_NOSYNC, 0600));
    check(mdb_txn_begin(engine->env, NULL, 0, &txn));
    check(mdb_dbi_open(txn, NULL, 0, &engine->db));
    check(mdb_txn_commit(txn));
    return engine;
}

static void close_engine(void *peer)
{
    engine_t *engine = peer;
    mdb_env_close(engine->env);
    free(engine);
}

static void *join(void *peer)
{
    return peer;
}

static void leave(void *connection)
{
    (void)connection;
}

static MDB_val make_key(char key[KEY_MAX], const char *owner, char kind, uint64_t number)
{
    size_t length = (size_t)snprintf(key, KEY_MAX - 16, "%s", owner) + 1;
    key[length++] = kind;
    for (int i = 0; i < 8; i++)
        key[length++] = (char)(number >> (56 - 8 * i));
    return (MDB_val){length, key};
}

/* Move to the owner's last element and set *key to its key. Returns false if there is none. */
static bool seek_last(MDB_cursor *cursor, const char *owner, MDB_val *key, MDB_val *value)
{
    char text[KEY_MAX];
    MDB_val past = make_key(text, owner, 'e', UINT64_MAX);
    size_t prefix = past.mv_size - 8;
    *key = past;
    int code = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE);
    code = mdb_cursor_get(cursor, key, value, code == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
    if (code == MDB_NOTFOUND)
        return false;
    check(code);
    return key->mv_size == past.mv_size && memcmp(key->mv_data, text, prefix) == 0;
}

static uint64_t number_of(const MDB_val *key)
{
    const uint8_t *at = (const uint8_t *)key->mv_data + key->mv_size - 8;
    uint64_t number = 0;
    for (int i = 0; i < 8; i++)
        number = number << 8 | at[i];
    return number;
}

/* `id` NULL: none. Returns false if an element with that id exists. */
static bool put(engine_t *engine, const char *owner, const uint8_t *element, const int64_t *id)
{
    char text[KEY_MAX];
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value, body = {ELEMENT_BYTES, (void *)(uintptr_t)element}, nothing = {0, NULL};
    check(mdb_txn_begin(engine->env, NULL, 0, &txn));
    if (id) {
        key = make_key(text, owner, 'i', (uint64_t)*id);
        int code = mdb_put(txn, engine->db, &key, &nothing, MDB_NOOVERWRITE);
        if (code == MDB_KEYEXIST) {
            mdb_txn_abort(txn);
            return false;
        }
        check(code);
    }
    check(mdb_cursor_open(txn, engine->db, &cursor));
    uint64_t number = seek_last(cursor, owner, &key, &value) ? number_of(&key) + 1 : 0;
    mdb_cursor_close(cursor);
    key = make_key(text, owner, 'e', number);
    check(mdb_put(txn, engine->db, &key, &body, 0));
    check(mdb_txn_commit(txn));
    return true;
}

static int64_t append(void *connection, const char *owner, const uint8_t *element,
                      const peer_op_t *op)
{
    (void)op;
    put(connection, owner, element, NULL);
    return 0;
}

static bool add(void *connection, const char *owner, int64_t id, const uint8_t *element)
{
    return put(connection, owner, element, &id);
}

static int page(void *connection, const char *owner, int64_t skip, int limit)
{
    engine_t *engine = connection;
    char text[KEY_MAX], copy[ELEMENT_BYTES];
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    int count = 0;
    check(mdb_txn_begin(engine->env, NULL, MDB_RDONLY, &txn));
    check(mdb_cursor_open(txn, engine->db, &cursor));
    bool found = seek_last(cursor, owner, &key, &value);
    if (found && skip > 0) {
        found = number_of(&key) >= (uint64_t)skip;
        key = make_key(text, owner, 'e', number_of(&key) - (uint64_t)skip);
        found = found && mdb_cursor_get(cursor, &key, &value, MDB_SET) == MDB_SUCCESS;
    }
    char prefix[KEY_MAX];
    size_t size = make_key(prefix, owner, 'e', 0).mv_size;
    while (found && count < limit && key.mv_size == size &&
           memcmp(key.mv_data, prefix, size - 8) == 0) {
        memcpy(copy, value.mv_data, value.mv_size < sizeof copy ? value.mv_size : sizeof copy);
        count++;
        found = mdb_cursor_get(cursor, &key, &value, MDB_PREV) == MDB_SUCCESS;
    }
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    return count;
}

static void all(void *connection, const char *owner, peer_visit_fn visit, void *context)
{
    engine_t *engine = connection;
    char prefix[KEY_MAX];
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key = make_key(prefix, owner, 'e', 0), value;
    size_t size = key.mv_size;
    check(mdb_txn_begin(engine->env, NULL, MDB_RDONLY, &txn));
    check(mdb_cursor_open(txn, engine->db, &cursor));
    for (int code = mdb_cursor_get(cursor, &key, &value, MDB_SET_RANGE);
         code == MDB_SUCCESS && key.mv_size == size && memcmp(key.mv_data, prefix, size - 8) == 0;
         code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
        visit(context, value.mv_data, value.mv_size);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
}

const peer_t peer_lmdb = {.name = "LMDB raw",
                          .id = "lmdb",
                          .home = PEER_HERE,
                          .open = open_engine,
                          .close = close_engine,
                          .join = join,
                          .leave = leave,
                          .append = append,
                          .add = add,
                          .page = page,
                          .all = all};
