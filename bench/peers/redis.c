/*
 * Redis: a list for each owner (RPUSH), and a stream (XADD), with an append-only file. appendfsync
 * is "always" if an append must survive a power loss, otherwise "everysec", which its documentation
 * recommends. A script checks an id in a set and appends to the list.
 */
#include "../measure.h"
#include "peer.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct connection {
    redisContext *redis;
} connection_t;

typedef struct server {
    int port;
} server_t;

static redisReply *checked(const connection_t *connection, void *reply)
{
    redisReply *answer = reply;
    if (!answer)
        measure_stop("redis: %s", connection->redis->errstr);
    if (answer->type == REDIS_REPLY_ERROR)
        measure_stop("redis: %s", answer->str);
    return answer;
}

static connection_t *connect_to(int port)
{
    connection_t *connection = calloc(1, sizeof *connection);
    connection->redis = redisConnect("127.0.0.1", port);
    if (!connection->redis || connection->redis->err)
        measure_stop("redis: cannot connect to port %d", port);
    return connection;
}

static void leave(void *at)
{
    connection_t *connection = at;
    redisFree(connection->redis);
    free(connection);
}

static void do_command(const connection_t *connection, const char *command)
{
    freeReplyObject(checked(connection, redisCommand(connection->redis, command)));
}

/* A number of INFO persistence. */
static int64_t persistence(const connection_t *connection, const char *name)
{
    redisReply *reply = checked(connection, redisCommand(connection->redis, "INFO persistence"));
    const char *at = strstr(reply->str, name);
    if (!at)
        measure_stop("redis: INFO has no %s", name);
    int64_t number = strtoll(at + strlen(name) + 1, NULL, 10);
    freeReplyObject(reply);
    return number;
}

/* Rewrite the append-only file from the current data. */
static void rewrite(const connection_t *connection)
{
    enum { POLL_US = 20000 };
    while (persistence(connection, "aof_rewrite_in_progress") > 0)
        usleep(POLL_US);
    do_command(connection, "BGREWRITEAOF");
    while (persistence(connection, "aof_rewrite_in_progress") > 0 ||
           persistence(connection, "aof_rewrite_scheduled") > 0)
        usleep(POLL_US);
}

static int64_t bytes(const peer_place_t *place, bool compacted)
{
    connection_t *connection = connect_to(place->redis_port);
    if (compacted)
        rewrite(connection);
    int64_t size = persistence(connection, "aof_current_size");
    leave(connection);
    return size;
}

static void *open_server(const peer_place_t *place)
{
    server_t *server = calloc(1, sizeof *server);
    server->port = place->redis_port;
    connection_t *connection = connect_to(server->port);
    do_command(connection, "CONFIG SET appendonly yes");
    freeReplyObject(checked(connection, redisCommand(connection->redis, "CONFIG SET appendfsync %s",
                                                     place->durable ? "always" : "everysec")));
    if (place->fresh) {
        do_command(connection, "FLUSHALL");
        rewrite(connection);
    }
    leave(connection);
    return server;
}

static void *join(void *peer)
{
    server_t *server = peer;
    return connect_to(server->port);
}

/* ---- a list ---------------------------------------------------------------------------------- */

static int64_t append(void *at, const char *owner, const uint8_t *element, const peer_op_t *op)
{
    connection_t *connection = at;
    (void)op;
    freeReplyObject(checked(connection, redisCommand(connection->redis, "RPUSH %s %b", owner,
                                                     element, (size_t)ELEMENT_BYTES)));
    return 0;
}

static bool add(void *at, const char *owner, int64_t id, const uint8_t *element)
{
    connection_t *connection = at;
    static const char script[] = "if redis.call('SADD', KEYS[2], ARGV[1]) == 0 then return 0 end "
                                 "redis.call('RPUSH', KEYS[1], ARGV[2]) return 1";
    redisReply *reply = checked(
        connection, redisCommand(connection->redis, "EVAL %s 2 %s %s:ids %lld %b", script, owner,
                                 owner, (long long)id, element, (size_t)ELEMENT_BYTES));
    bool added = reply->integer == 1;
    freeReplyObject(reply);
    return added;
}

static int page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    redisReply *reply =
        checked(connection, redisCommand(connection->redis, "LRANGE %s %lld %lld", owner,
                                         (long long)(-skip - limit), (long long)(-skip - 1)));
    int count = (int)reply->elements;
    freeReplyObject(reply);
    return count;
}

static void all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    connection_t *connection = at;
    redisReply *reply =
        checked(connection, redisCommand(connection->redis, "LRANGE %s 0 -1", owner));
    for (size_t i = 0; i < reply->elements; i++)
        visit(context, (const uint8_t *)reply->element[i]->str, reply->element[i]->len);
    freeReplyObject(reply);
}

/* ---- a stream -------------------------------------------------------------------------------- */

static int64_t stream_append(void *at, const char *owner, const uint8_t *element,
                             const peer_op_t *op)
{
    connection_t *connection = at;
    (void)op;
    freeReplyObject(checked(connection, redisCommand(connection->redis, "XADD %s * e %b", owner,
                                                     element, (size_t)ELEMENT_BYTES)));
    return 0;
}

/* A stream has no offsets: read the skipped entries too. */
static int stream_page(void *at, const char *owner, int64_t skip, int limit)
{
    connection_t *connection = at;
    redisReply *reply =
        checked(connection, redisCommand(connection->redis, "XREVRANGE %s + - COUNT %lld", owner,
                                         (long long)(skip + limit)));
    int64_t count = (int64_t)reply->elements - skip;
    freeReplyObject(reply);
    return (int)(count > 0 ? count : 0);
}

static void stream_all(void *at, const char *owner, peer_visit_fn visit, void *context)
{
    connection_t *connection = at;
    redisReply *reply =
        checked(connection, redisCommand(connection->redis, "XRANGE %s - +", owner));
    for (size_t i = 0; i < reply->elements; i++) {
        const redisReply *body = reply->element[i]->element[1]->element[1];
        visit(context, (const uint8_t *)body->str, body->len);
    }
    freeReplyObject(reply);
}

const peer_t peer_redis_list = {.name = "Redis list",
                                .id = "redis-list",
                                .home = PEER_REDIS,
                                .open = open_server,
                                .close = free,
                                .join = join,
                                .leave = leave,
                                .bytes = bytes,
                                .append = append,
                                .add = add,
                                .page = page,
                                .all = all};
const peer_t peer_redis_stream = {.name = "Redis stream",
                                  .id = "redis-stream",
                                  .home = PEER_REDIS,
                                  .open = open_server,
                                  .close = free,
                                  .join = join,
                                  .leave = leave,
                                  .bytes = bytes,
                                  .append = stream_append,
                                  .page = stream_page,
                                  .all = stream_all};
