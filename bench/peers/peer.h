/*
 * A peer: a system that keeps an array for each owner, as its own documentation recommends to. One
 * small file each, behind one struct of functions; what goes wrong ends the program
 * (measure_stop).
 */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where peers live. What is not there is NULL or 0, and its peers are passed over. */
typedef struct peer_place {
    const char *folder;   /* for engines in this process; a peer has one of its own */
    const char *mongodb;  /* a connection string with a database of the run's own */
    const char *postgres; /* a connection string of libpq */
    int redis_port;       /* on 127.0.0.1 */
    bool durable;         /* an append that was acknowledged survives a power loss */
    bool fresh;           /* begin with nothing; else with what was there */
    bool ids;             /* elements are looked for by their ids: an index is made, if need be */
    int capacity;         /* elements of a document, where there are several */
} peer_place_t;

/* An operation, for peers that know such: the base is what the owner's append before answered. */
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
    bool racy; /* known to lose: only in the works that count what is lost */

    void *(*open)(const peer_place_t *place);
    void (*close)(void *peer);

    /* A connection, of one thread. */
    void *(*join)(void *peer);
    void (*leave)(void *connection);

    /* Make the owner, where appends need that. NULL: they do not. */
    void (*begin)(void *connection, const char *owner);

    /* Make the owner with elements 0 to count - 1, where appends would take too long. May be NULL.
     */
    void (*fill)(void *connection, const char *owner, int count);

    /* Append an element of ELEMENT_BYTES. `op` may be NULL. Returns a base for the next one. */
    int64_t (*append)(void *connection, const char *owner, const uint8_t *element,
                      const peer_op_t *op);

    /* The same unless there is one of that id, which is the element's time. NULL: not tried. */
    bool (*add)(void *connection, const char *owner, int64_t id, const uint8_t *element);

    /* Read `limit` elements, the newest first, after the newest `skip`; how many came. */
    int (*page)(void *connection, const char *owner, int64_t skip, int limit);

    /* Say what else is wrong with the owner's documents: bounds, counts. NULL: it has no such. */
    void (*faults)(void *connection, const char *owner, char *text, size_t size);

    /*
     * Bytes on the disk once it is closed; compacted: after its own command that makes them fewer,
     * where it has one. NULL: those of its folder.
     */
    int64_t (*bytes)(const peer_place_t *place, bool compacted);

    /* Visit all elements, the oldest first. */
    void (*all)(void *connection, const char *owner, peer_visit_fn visit, void *context);
} peer_t;

/* Of all that the database holds, indexes with it. */
int64_t peer_mongodb_bytes(const peer_place_t *place, bool compacted);

extern const peer_t peer_push, peer_racy, peer_safe, peer_referenced, peer_bucket; /* mongodb.c */
extern const peer_t peer_redis_list, peer_redis_stream;                            /* redis.c */
extern const peer_t peer_sqlite;                                                   /* sqlite.c */
extern const peer_t peer_postgres_rows, peer_postgres_jsonb;                       /* postgres.c */
extern const peer_t peer_rocksdb, peer_lmdb;               /* rocksdb.c, lmdb.c */
extern const peer_t peer_ours_embedded, peer_ours_mongodb; /* ours.c */

#endif
