/*
 * A peer: a system that stores an array for each owner, in the way that its own documentation
 * recommends. Each peer is a small file with one struct of functions. Errors end the program
 * (measure_stop).
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where peers store their data. If a member is NULL or 0, its peers are skipped. */
typedef struct peer_place {
    const char *folder;   /* for engines in this process; each peer has its own folder */
    const char *mongodb;  /* a connection string with the run's own database */
    const char *postgres; /* a connection string of libpq */
    int redis_port;       /* on 127.0.0.1 */
    bool durable;         /* an append that was acknowledged survives a power loss */
    bool fresh;           /* begin without data; otherwise with the existing data */
    bool ids;             /* elements are found by their ids: create an index if necessary */
    int capacity;         /* elements in a document, for peers with several elements in one */
} peer_place_t;

/* An operation, for peers with operation ids. The base is the result of the append before it. */
typedef struct peer_op {
    const char *id;
    int64_t base;
} peer_op_t;

typedef void (*peer_visit_fn)(void *context, const uint8_t *element, size_t size_bytes);

typedef enum peer_home { PEER_HERE, PEER_MONGODB, PEER_REDIS, PEER_POSTGRES } peer_home_t;

typedef struct peer {
    const char *name;
    const char *id; /* its name in results */
    peer_home_t home;
    bool racy;      /* known to lose elements: takes part only in the works that count losses */
    bool takes_ops; /* `append` uses `op` */

    void *(*open)(const peer_place_t *place);
    void (*close)(void *peer);

    /* Open a connection for one thread. */
    void *(*join)(void *peer);
    void (*leave)(void *connection);

    /* Create the owner, if appends need that. NULL: they do not. */
    void (*begin)(void *connection, const char *owner);

    /* Create the owner with elements 0 to count - 1, faster than by appends. May be NULL. */
    void (*fill)(void *connection, const char *owner, int count);

    /* Append an element of ELEMENT_BYTES. `op` may be NULL. Returns a base for the next one. */
    int64_t (*append)(void *connection, const char *owner, const uint8_t *element,
                      const peer_op_t *op);

    /* Append unless an element with that id (its time) exists. NULL: not supported. */
    bool (*add)(void *connection, const char *owner, int64_t id, const uint8_t *element);

    /* Read `limit` elements, newest first, after the newest `skip`. Returns how many it read. */
    int (*page)(void *connection, const char *owner, int64_t skip, int limit);

    /* Describe wrong bounds and counts in the owner's documents. NULL: it has neither. */
    void (*faults)(void *connection, const char *owner, char *text, size_t size);

    /*
     * Bytes on the disk after closing; compacted: after the peer's own command that reduces them,
     * if it has one. NULL: the size of its folder.
     */
    int64_t (*bytes)(const peer_place_t *place, bool compacted);

    /* Visit all elements, the oldest first. */
    void (*all)(void *connection, const char *owner, peer_visit_fn visit, void *context);
} peer_t;

/* Bytes of the whole database, including its indexes. */
int64_t peer_mongodb_bytes(const peer_place_t *place, bool compacted);

extern const peer_t peer_push, peer_racy, peer_safe, peer_referenced, peer_bucket; /* mongodb.c */
extern const peer_t peer_redis_list, peer_redis_stream;                            /* redis.c */
extern const peer_t peer_sqlite;                                                   /* sqlite.c */
extern const peer_t peer_postgres_rows, peer_postgres_jsonb;                       /* postgres.c */
extern const peer_t peer_rocksdb, peer_lmdb;               /* rocksdb.c, lmdb.c */
extern const peer_t peer_ours_embedded, peer_ours_mongodb; /* ours.c */

#endif
