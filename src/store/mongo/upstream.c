/* The primary and its hello, by the driver's monitoring (store/upstream.h). */
#include "store/upstream.h"

#include "definition/stored_names.h"
#include "store/mongo/mongo.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

struct spill_upstream {
    spill_mongo_t *store;
    mongoc_client_t *client;
    spill_upstream_tls_t tls; /* borrows from the client's URI */
};

static bool flag_of(const mongoc_uri_t *uri, const char *option)
{
    return mongoc_uri_get_option_as_bool(uri, option, false);
}

static void read_tls(const mongoc_uri_t *uri, spill_upstream_tls_t *tls)
{
    bool insecure = flag_of(uri, MONGOC_URI_TLSINSECURE);
    tls->used = mongoc_uri_get_tls(uri);
    tls->authority_file = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCAFILE, NULL);
    tls->certificate_file =
        mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL);
    tls->password =
        mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILEPASSWORD, NULL);
    tls->any_certificate = insecure || flag_of(uri, MONGOC_URI_TLSALLOWINVALIDCERTIFICATES);
    tls->any_host = tls->any_certificate || flag_of(uri, MONGOC_URI_TLSALLOWINVALIDHOSTNAMES);
}

spill_code_t spill_upstream_open(const char *uri, spill_upstream_t **upstream, spill_error_t *error)
{
    spill_store_options_t options;
    spill_store_t *store = NULL;
    *upstream = NULL;
    SPILL_TRY(spill_driver_load(error));
    spill_upstream_t *made = bson_malloc0(sizeof *made);
    *upstream = made;
    spill_store_options_init(&options);
    options.read_only = true;
    SPILL_TRY(spill_mongo_open(uri, &options, &store, error));
    made->store = (spill_mongo_t *)store;
    made->client = mongoc_client_pool_pop(made->store->pool);
    read_tls(mongoc_client_get_uri(made->client), &made->tls);
    return SPILL_OK;
}

void spill_upstream_close(spill_upstream_t *upstream)
{
    if (!upstream)
        return;
    if (upstream->client)
        mongoc_client_pool_push(upstream->store->pool, upstream->client);
    if (upstream->store)
        spill_store_close(&upstream->store->base, NULL);
    bson_free(upstream);
}

const char *spill_upstream_place(const spill_upstream_t *upstream)
{
    return upstream->store->place;
}

const char *spill_upstream_database(const spill_upstream_t *upstream)
{
    return upstream->store->database;
}

const spill_upstream_tls_t *spill_upstream_tls(const spill_upstream_t *upstream)
{
    return &upstream->tls;
}

/* ---- the primary ----------------------------------------------------------------------------- */

static bool is_text(const bson_t *document, const char *key, const char *text)
{
    bson_iter_t iter;
    return bson_iter_init_find(&iter, document, key) && BSON_ITER_HOLDS_UTF8(&iter) &&
           strcmp(bson_iter_utf8(&iter, NULL), text) == 0;
}

/* The hello tells the kind also if the URI asks for a direct connection. */
static spill_upstream_kind_t kind_of(const bson_t *hello)
{
    bson_iter_t iter;
    if (is_text(hello, "msg", "isdbgrid"))
        return SPILL_UPSTREAM_ROUTER;
    return bson_iter_init_find(&iter, hello, "setName") ? SPILL_UPSTREAM_REPLICA_SET
                                                        : SPILL_UPSTREAM_STANDALONE;
}

static spill_code_t copy_host(const mongoc_host_list_t *host, spill_upstream_primary_t *primary,
                              spill_error_t *error)
{
    if (host->host[0] == '/' || host->port == 0)
        return spill_fail(
            error, SPILL_INVALID,
            "%s: the gateway needs a host and a port, not a socket in the file system", host->host);
    snprintf(primary->host, sizeof primary->host, "%s", host->host);
    primary->port = host->port;
    return SPILL_OK;
}

spill_code_t spill_upstream_find(spill_upstream_t *upstream, spill_upstream_primary_t *primary,
                                 spill_error_t *error)
{
    spill_mongo_t *store = upstream->store;
    bson_error_t cause;
    bson_t empty = BSON_INITIALIZER;
    memset(primary, 0, sizeof *primary);
    bson_init(&primary->hello);
    mongoc_server_description_t *server =
        mongoc_client_select_server(upstream->client, true, NULL, &cause);
    if (!server)
        return spill_mongo_fail(store, NULL, false, &cause, &empty, error);
    spill_code_t code = copy_host(mongoc_server_description_host(server), primary, error);
    if (code == SPILL_OK) {
        bson_t *hello = BCON_NEW("hello", BCON_INT32(1));
        bson_destroy(&primary->hello);
        if (!mongoc_client_command_simple_with_server_id(upstream->client, "admin", hello, NULL,
                                                         mongoc_server_description_id(server),
                                                         &primary->hello, &cause))
            code = spill_mongo_fail(store, NULL, false, &cause, &primary->hello, error);
        bson_destroy(hello);
    }
    mongoc_server_description_destroy(server);
    primary->kind = kind_of(&primary->hello);
    return code;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* A write error of a probe is a refusal: with such a filter, nothing else can fail. */
static spill_code_t check_write_errors(const spill_mongo_t *store, const char *collection,
                                       const bson_t *reply, spill_error_t *error)
{
    bson_iter_t iter, cause;
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "writeErrors.0.errmsg", &cause) ||
        !BSON_ITER_HOLDS_UTF8(&cause))
        return SPILL_OK;
    return spill_fail(error, SPILL_DENIED, "%s.%s: the user of the URI may not write: %s",
                      store->place, collection, bson_iter_utf8(&cause, NULL));
}

static spill_code_t probe_command(spill_upstream_t *upstream, const char *collection,
                                  bson_t *command, spill_error_t *error)
{
    spill_mongo_t *store = upstream->store;
    bson_error_t cause;
    bson_t reply;
    bool done = mongoc_client_command_simple(upstream->client, store->database, command, NULL,
                                             &reply, &cause);
    spill_code_t code = done ? check_write_errors(store, collection, &reply, error)
                             : spill_mongo_fail(store, collection, false, &cause, &reply, error);
    bson_destroy(&reply);
    bson_destroy(command);
    return code;
}

/* {_id: {$in: []}}, which no document matches. */
#define MATCHES_NOTHING "{", "_id", "{", "$in", "[", "]", "}", "}"

spill_code_t spill_upstream_probe(spill_upstream_t *upstream, const char *collection,
                                  spill_error_t *error)
{
    SPILL_TRY(probe_command(
        upstream, collection,
        BCON_NEW("find", BCON_UTF8(collection), "filter", MATCHES_NOTHING, "limit", BCON_INT32(1)),
        error));
    SPILL_TRY(probe_command(upstream, collection,
                            BCON_NEW("update", BCON_UTF8(collection), "updates", "[", "{", "q",
                                     MATCHES_NOTHING, "u", "{", "$set", "{", SPILL_STORED_ROOT,
                                     BCON_INT32(0), "}", "}", "}", "]"),
                            error));
    return probe_command(upstream, collection,
                         BCON_NEW("delete", BCON_UTF8(collection), "deletes", "[", "{", "q",
                                  MATCHES_NOTHING, "limit", BCON_INT32(1), "}", "]"),
                         error);
}

/* ---- typing errors --------------------------------------------------------------------------- */

/* Does a document match? False also if the server does not say so in time. */
static bool is_any(spill_upstream_t *upstream, const char *collection, const bson_t *filter,
                   bool *known)
{
    enum { LOOK_MS = 2000 };
    bson_t reply;
    bson_iter_t iter, first;
    bson_t *find = BCON_NEW("find", BCON_UTF8(collection), "filter", BCON_DOCUMENT(filter),
                            "projection", "{", "_id", BCON_INT32(1), "}", "limit", BCON_INT32(1),
                            "singleBatch", BCON_BOOL(true), "maxTimeMS", BCON_INT32(LOOK_MS));
    *known = mongoc_client_command_simple(upstream->client, upstream->store->database, find, NULL,
                                          &reply, NULL);
    bool any = *known && bson_iter_init(&iter, &reply) &&
               bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &first);
    bson_destroy(find);
    bson_destroy(&reply);
    return any;
}

void spill_upstream_note_missing(spill_upstream_t *upstream, const char *collection,
                                 const char *array, char note[SPILL_UPSTREAM_NOTE_BYTES])
{
    bool known;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    note[0] = '\0';
    if (!is_any(upstream, collection, &filter, &known)) {
        if (known)
            snprintf(note, SPILL_UPSTREAM_NOTE_BYTES,
                     "the collection '%s' has no document yet; is its name right?", collection);
        return;
    }
    BCON_APPEND(&filter, array, "{", "$exists", BCON_BOOL(true), "}");
    if (!is_any(upstream, collection, &filter, &known) && known)
        snprintf(note, SPILL_UPSTREAM_NOTE_BYTES,
                 "no document of '%s' has the field '%s' yet; is its name right?", collection,
                 array);
}

/* ---- TTL indexes ----------------------------------------------------------------------------- */

/* Copy the name of the first TTL index of a collection; "": there is none. */
static void find_ttl_index(spill_upstream_t *upstream, const char *collection,
                           char name[SPILL_NAME_SIZE])
{
    bson_t reply;
    bson_iter_t iter, batch, each, field;
    name[0] = '\0';
    bson_t *list = BCON_NEW("listIndexes", BCON_UTF8(collection));
    bool known = mongoc_client_command_simple(upstream->client, upstream->store->database, list,
                                              NULL, &reply, NULL);
    if (known && bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) &&
        bson_iter_recurse(&batch, &each))
        while (name[0] == '\0' && bson_iter_next(&each))
            if (bson_iter_recurse(&each, &field) && bson_iter_find(&field, "expireAfterSeconds") &&
                bson_iter_recurse(&each, &field) && bson_iter_find(&field, "name") &&
                BSON_ITER_HOLDS_UTF8(&field))
                snprintf(name, SPILL_NAME_SIZE, "%s", bson_iter_utf8(&field, NULL));
    bson_destroy(list);
    bson_destroy(&reply);
}

void spill_upstream_note_ttl(spill_upstream_t *upstream, const char *collection, const char *pages,
                             char note[SPILL_UPSTREAM_NOTE_BYTES])
{
    char name[SPILL_NAME_SIZE];
    note[0] = '\0';
    if (pages[0] == '\0')
        return;
    find_ttl_index(upstream, pages, name);
    if (name[0] != '\0') {
        snprintf(note, SPILL_UPSTREAM_NOTE_BYTES,
                 "the TTL index '%s' of '%s' deletes pages of living arrays: drop it", name, pages);
        return;
    }
    find_ttl_index(upstream, collection, name);
    if (name[0] != '\0')
        snprintf(note, SPILL_UPSTREAM_NOTE_BYTES,
                 "the TTL index '%s' of '%s' deletes documents and leaves their pages: drop the "
                 "index and delete through the gateway or with `spillway drop`; "
                 "`spillway repair STORE NAME --drop-orphans` deletes the pages that are left",
                 name, collection);
}
