/*
 * The server behind the gateway: which host is the primary now, what its hello says, and how TLS to
 * it is set up. The driver's monitoring watches the servers and follows failovers; the gateway
 * opens sockets to the primary by itself.
 *
 * Threads: one thread at a time uses an upstream.
 */
#ifndef SPILL_STORE_UPSTREAM_H
#define SPILL_STORE_UPSTREAM_H

#include <spillway/error.h>

#include <bson/bson.h>

typedef struct spill_upstream spill_upstream_t;

typedef enum spill_upstream_kind {
    SPILL_UPSTREAM_STANDALONE,
    SPILL_UPSTREAM_REPLICA_SET,
    SPILL_UPSTREAM_ROUTER /* of a sharded cluster */
} spill_upstream_kind_t;

#define SPILL_UPSTREAM_HOST_BYTES 256

#define SPILL_UPSTREAM_NOTE_BYTES 512

/*
 * A field of a gateway's hello, with its version. A store is never opened through a gateway, which
 * hides the bookkeeping and the pages.
 */
#define SPILL_UPSTREAM_GATEWAY_FIELD "spillway"

typedef struct spill_upstream_primary {
    char host[SPILL_UPSTREAM_HOST_BYTES];
    uint16_t port;
    spill_upstream_kind_t kind;
    bson_t hello; /* what it has just answered */
} spill_upstream_primary_t;

/* The options of the URI that concern TLS; texts are NULL if it does not have them. */
typedef struct spill_upstream_tls {
    bool used;
    const char *authority_file;
    const char *certificate_file; /* with the key */
    const char *password;         /* of the key */
    bool any_certificate;         /* do not check the server's certificate */
    bool any_host;                /* do not check that the certificate has the host's name */
} spill_upstream_tls_t;

/* Open it by its URI, which names a database. Fails as the opening of a store. Close it in every
 * case. */
spill_code_t spill_upstream_open(const char *uri, spill_upstream_t **upstream,
                                 spill_error_t *error);
void spill_upstream_close(spill_upstream_t *upstream); /* NULL is allowed */

/* "localhost:27017/shop": without user or password. Borrowed. */
const char *spill_upstream_place(const spill_upstream_t *upstream);
const char *spill_upstream_database(const spill_upstream_t *upstream);

/* Borrowed. */
const spill_upstream_tls_t *spill_upstream_tls(const spill_upstream_t *upstream);

/*
 * Name the primary, or wait for one until the URI's serverSelectionTimeoutMS has passed. One round
 * trip if there is one. primary->hello is initialized in every case, and is the caller's.
 */
spill_code_t spill_upstream_find(spill_upstream_t *upstream, spill_upstream_primary_t *primary,
                                 spill_error_t *error);

/*
 * May the URI's user read and write the collection of the URI's database? Sends a find, an update
 * and a delete that match nothing. SPILL_DENIED, or what else the server answers, names the
 * collection.
 */
spill_code_t spill_upstream_probe(spill_upstream_t *upstream, const char *collection,
                                  spill_error_t *error);

/*
 * Does a definition name an array that is not there? Then `note` says what is missing: the
 * collection has no document, or none of its documents has the field. Else, or if the server does
 * not answer within two seconds, it is "". One or two commands; a field that is missing costs a
 * scan of the collection.
 */
void spill_upstream_note_missing(spill_upstream_t *upstream, const char *collection,
                                 const char *array, char note[SPILL_UPSTREAM_NOTE_BYTES]);

/*
 * Does a TTL index delete documents of the collection, or pages? `pages` may be "". Then `note`
 * names the index, says what stays, and what to do. Else, or if the server does not answer, it is
 * "". Two commands.
 */
void spill_upstream_note_ttl(spill_upstream_t *upstream, const char *collection, const char *pages,
                             char note[SPILL_UPSTREAM_NOTE_BYTES]);

#endif
