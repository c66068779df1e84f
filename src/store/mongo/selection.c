/*
 * Why the driver selects no server: it does not say that a server speaks TLS or not, or that it
 * belongs to another replica set. A probe without the user's name finds out.
 */
#include "store/mongo/mongo.h"

#include "util/error.h"

#include <string.h>

enum { PROBE_MS = 2000 };

/* Send hello to the first host, directly and without checks of certificates. False: no answer. */
static bool ask_host(const mongoc_uri_t *uri, bool tls, bson_t *hello)
{
    bson_error_t cause;
    bson_t *command;
    const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
    bson_init(hello);
    if (!host || host->host[0] == '/')
        return false;
    char *text = bson_strdup_printf("mongodb://%s/?directConnection=true&appname=spillway%s",
                                    host->host_and_port, tls ? "&tls=true&tlsInsecure=true" : "");
    mongoc_uri_t *plain = mongoc_uri_new_with_error(text, &cause);
    bson_free(text);
    if (!plain)
        return false;
    mongoc_uri_set_option_as_int32(plain, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, PROBE_MS);
    mongoc_uri_set_option_as_int32(plain, MONGOC_URI_CONNECTTIMEOUTMS, PROBE_MS);
    mongoc_client_t *client = mongoc_client_new_from_uri(plain);
    mongoc_uri_destroy(plain);
    if (!client)
        return false;
    command = BCON_NEW("hello", BCON_INT32(1));
    bson_destroy(hello);
    bool answers = mongoc_client_command_simple(client, "admin", command, NULL, hello, &cause);
    bson_destroy(command);
    mongoc_client_destroy(client);
    return answers;
}

/* The host answers as the URI asks for it, so the replica set or the certificate is another one. */
static spill_code_t name_set(const mongoc_uri_t *uri, const bson_t *hello, spill_code_t code,
                             spill_error_t *error)
{
    bson_iter_t iter;
    const char *host = mongoc_uri_get_hosts(uri)->host_and_port;
    const char *asked = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_REPLICASET, NULL);
    bool has = bson_iter_init_find(&iter, hello, "setName") && BSON_ITER_HOLDS_UTF8(&iter);
    const char *set = has ? bson_iter_utf8(&iter, NULL) : "";
    if (asked && !has)
        return spill_fail_prefix(
            error, code,
            "the connection string has replicaSet=%s, and %s answers, but is no "
            "member of a replica set",
            asked, host);
    if (asked && strcmp(asked, set) != 0)
        return spill_fail_prefix(error, code,
                                 "the connection string has replicaSet=%s, and %s is a member of "
                                 "the replica set %s",
                                 asked, host, set);
    if (mongoc_uri_get_tls(uri))
        return spill_fail_prefix(
            error, code,
            "%s answers with TLS if its certificate is not checked (tlsCAFile, "
            "the host's name)",
            host);
    return code;
}

static void append_advice(spill_error_t *error)
{
    size_t length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, "%s",
             "; is the server running, is its address in the connection string right, and does a "
             "firewall let a connection through?");
}

spill_code_t spill_mongo_name_cause(const mongoc_uri_t *uri, const bson_error_t *cause,
                                    spill_code_t code, spill_error_t *error)
{
    bool tls = mongoc_uri_get_tls(uri);
    bson_t hello;
    if (cause->domain != MONGOC_ERROR_SERVER_SELECTION || !error)
        return code;
    bool answers = ask_host(uri, tls, &hello);
    if (answers)
        code = name_set(uri, &hello, code, error);
    bson_destroy(&hello);
    if (answers)
        return code;
    if (ask_host(uri, !tls, &hello))
        code = spill_fail_prefix(error, code,
                                 "%s answers only with%s TLS, and the connection "
                                 "string has%s tls=true",
                                 mongoc_uri_get_hosts(uri)->host_and_port, tls ? "out" : "",
                                 tls ? "" : " not");
    else
        append_advice(error);
    bson_destroy(&hello);
    return code;
}
