/* The URI, the pool of clients, and the check of the server's abilities. */
#include "store/mongo/guarded.h"
#include "store/raw_reader.h"
#include "store/upstream.h"

#include "util/error.h"
#include "util/redact.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The oldest supported server is MongoDB 4.4.2 (wire version 9), because of $bsonSize and of
 * expressions in the projection of findAndModify.
 */
enum { WIRE_VERSION_MIN = 9, SELECTION_MS = 10000 };

/* The longest wait for an answer: builds of indexes and searches through all pages take minutes. */
enum { SOCKET_MS = 300000 };

/* Set w: majority, if the URI does not set w; it may set the journal or a time-out. */
static void fill_write_concern(mongoc_uri_t *uri)
{
    const mongoc_write_concern_t *given = mongoc_uri_get_write_concern(uri);
    if (mongoc_write_concern_get_w(given) != MONGOC_WRITE_CONCERN_W_DEFAULT)
        return;
    mongoc_write_concern_t *majority = mongoc_write_concern_copy(given);
    mongoc_write_concern_set_w(majority, MONGOC_WRITE_CONCERN_W_MAJORITY);
    mongoc_uri_set_write_concern(uri, majority);
    mongoc_write_concern_destroy(majority);
}

void spill_mongo_fill_defaults(mongoc_uri_t *uri)
{
    fill_write_concern(uri);
    if (mongoc_read_concern_is_default(mongoc_uri_get_read_concern(uri))) {
        mongoc_read_concern_t *majority = mongoc_read_concern_new();
        mongoc_read_concern_set_level(majority, MONGOC_READ_CONCERN_LEVEL_MAJORITY);
        mongoc_uri_set_read_concern(uri, majority);
        mongoc_read_concern_destroy(majority);
    }
    if (!mongoc_uri_has_option(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS))
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, SELECTION_MS);
    if (!mongoc_uri_has_option(uri, MONGOC_URI_SOCKETTIMEOUTMS))
        mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SOCKETTIMEOUTMS, SOCKET_MS);
    if (!mongoc_uri_get_appname(uri))
        mongoc_uri_set_appname(uri, "spillway");
}

/*
 * Could the end of a password be parsed as a host, a database or an option, and then be printed? It
 * could if there is an @ besides the one between the password and the hosts.
 */
static bool is_ambiguous(const char *text)
{
    const char *authority = strstr(text, "://");
    const char *at = authority ? strchr(authority, '@') : NULL;
    if (!at)
        return false;
    const char *end = authority + 3 + strcspn(authority + 3, "/?");
    const char *next = strchr(at + 1, '@');
    const char *options = strchr(end, '?');
    return at > end || (next && (!options || next < options));
}

/* Has the file a PEM block? The driver reads certificates and keys only in this format. */
static bool has_pem(const char *path)
{
    static const char marker[] = "-----BEGIN ";
    char bytes[4096];
    size_t kept = 0, got;
    bool found = false;
    FILE *from = fopen(path, "rb");
    while (from && !found && (got = fread(bytes + kept, 1, sizeof bytes - kept, from)) > 0) {
        size_t size = kept + got;
        found = memmem(bytes, size, marker, sizeof marker - 1) != NULL;
        kept = size < sizeof marker - 2 ? size : sizeof marker - 2; /* it may span two reads */
        memmove(bytes, bytes + size - kept, kept);
    }
    if (from)
        fclose(from);
    return found;
}

/* Check the files for TLS: the driver's error does not name an unreadable or invalid file. */
static spill_code_t check_files(const mongoc_uri_t *uri, spill_error_t *error)
{
    static const struct {
        const char *option, *name;
    } options[] = {{MONGOC_URI_TLSCAFILE, "tlsCAFile"},
                   {MONGOC_URI_TLSCERTIFICATEKEYFILE, "tlsCertificateKeyFile"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *path = mongoc_uri_get_option_as_utf8(uri, options[i].option, NULL);
        struct stat file = {0};
        int cause = 0;
        if (!path)
            continue;
        if (access(path, R_OK) != 0 || stat(path, &file) != 0)
            cause = errno;
        else if (S_ISDIR(file.st_mode))
            cause = EISDIR;
        if (cause == 0 && S_ISREG(file.st_mode) && !has_pem(path))
            return spill_fail(
                error, SPILL_INVALID,
                "%s, which the connection string names as %s, has no certificate or key in "
                "PEM format (-----BEGIN ...)",
                path, options[i].name);
        if (cause == 0)
            continue;
        return spill_fail(error, cause == EACCES ? SPILL_DENIED : SPILL_NOT_FOUND,
                          "%s, which the connection string names as %s: %s", path, options[i].name,
                          strerror(cause));
    }
    return SPILL_OK;
}

/*
 * The driver's error may quote any part of the text. So the text without its secrets is parsed for
 * the error; if that succeeds, the user's name or the password is at fault.
 */
static spill_code_t fail_parse(const char *text, const bson_error_t *cause, spill_error_t *error)
{
    bson_error_t shown_cause = *cause;
    char *shown = spill_redact(text);
    mongoc_uri_t *uri =
        strcmp(shown, text) == 0 ? NULL : mongoc_uri_new_with_error(shown, &shown_cause);
    bson_free(shown);
    mongoc_uri_destroy(uri);
    if (!uri)
        return spill_fail(error, SPILL_INVALID, "the connection string is not valid: %s",
                          shown_cause.message);
    return spill_fail(error, SPILL_INVALID,
                      "the connection string is not valid: encode characters other than letters "
                      "and digits in the user's name and the password, such as %%25 for a percent "
                      "sign");
}

/*
 * The driver ignores an option that it does not know, and warns. A typing error in `tls` would send
 * the password in the clear, so it is an error here. Options of other drivers that change nothing
 * for a store are no error: applications share connection strings.
 */
static spill_code_t check_options(const char *warnings, spill_error_t *error)
{
    static const char start[] = "Unsupported URI option \"";
    static const char *const harmless[] = {"maxconnecting", "minpoolsize",
                                           "maxidletimems", "servermonitoringmode",
                                           "timeoutms",     "uuidrepresentation"};
    for (const char *at = warnings; (at = strstr(at, start)) != NULL;) {
        at += sizeof start - 1;
        size_t length = strcspn(at, "\"\n");
        bool known = false;
        for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
            known = known ||
                    (strlen(harmless[i]) == length && strncasecmp(harmless[i], at, length) == 0);
        if (!known)
            return spill_fail(error, SPILL_INVALID,
                              "the connection string has the option '%.*s', which the driver does "
                              "not know: correct or remove it",
                              (int)(length < 64 ? length : 64), at);
    }
    return SPILL_OK;
}

static mongoc_uri_t *parse_uri(const char *text, bson_string_t *warnings, bson_error_t *cause)
{
    spill_driver_keep_warnings(warnings);
    mongoc_uri_t *uri = mongoc_uri_new_with_error(text, cause);
    spill_driver_keep_warnings(NULL);
    return uri;
}

static spill_code_t parse(const char *text, mongoc_uri_t **uri, spill_error_t *error)
{
    bson_error_t cause;
    *uri = NULL;
    if (is_ambiguous(text))
        return spill_fail(error, SPILL_INVALID,
                          "the connection string has an @ in the user's name, the password or the "
                          "database: write %%40, for / write %%2F, and for ? write %%3F");
    bson_string_t *warnings = bson_string_new(NULL);
    *uri = parse_uri(text, warnings, &cause);
    spill_code_t code = *uri ? check_options(warnings->str, error) : SPILL_OK;
    bson_string_free(warnings, true);
    if (!*uri)
        return fail_parse(text, &cause, error);
    SPILL_TRY(code);
    const char *database = mongoc_uri_get_database(*uri);
    if (!database || database[0] == '\0')
        return spill_fail(error, SPILL_INVALID,
                          "the connection string names no database: write "
                          "mongodb://HOST/DATABASE");
    if (!mongoc_write_concern_is_acknowledged(mongoc_uri_get_write_concern(*uri)))
        return spill_fail(error, SPILL_INVALID,
                          "the connection string asks for w=0: a store needs writes that are "
                          "acknowledged");
    if (mongoc_uri_has_option(*uri, MONGOC_URI_WAITQUEUETIMEOUTMS))
        return spill_fail(error, SPILL_INVALID,
                          "the connection string has %s, which is not supported: threads wait for "
                          "a connection; raise maxPoolSize",
                          MONGOC_URI_WAITQUEUETIMEOUTMS);
    spill_mongo_fill_defaults(*uri);
    return check_files(*uri, error);
}

/* "localhost:27017/feeds", for messages, without user and password. */
static char *place_of(const mongoc_uri_t *uri, const char *database)
{
    const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
    const char *service = mongoc_uri_get_srv_hostname(uri);
    const char *name = service ? service : host ? host->host_and_port : "?";
    return bson_strdup_printf("%s/%s", name, database);
}

/* If the driver could not use the files for TLS, add their names to its error. */
static spill_code_t name_files(const mongoc_uri_t *uri, const bson_error_t *cause,
                               spill_code_t code, spill_error_t *error)
{
    const char *authority = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCAFILE, NULL);
    const char *own = mongoc_uri_get_option_as_utf8(uri, MONGOC_URI_TLSCERTIFICATEKEYFILE, NULL);
    if (!strstr(cause->message, "TLS state") || (!authority && !own))
        return code;
    return spill_fail_prefix(error, code, "%s%s%s, which the connection string names for TLS",
                             authority ? authority : "", authority && own ? " or " : "",
                             own ? own : "");
}

static spill_code_t check_server(spill_mongo_t *store, spill_error_t *error)
{
    bson_t *hello = BCON_NEW("hello", BCON_INT32(1));
    bson_t reply;
    bson_error_t cause;
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    bool good = mongoc_client_command_simple(client, store->database, hello, NULL, &reply, &cause);
    bson_destroy(hello);
    bson_iter_t iter;
    spill_code_t code = SPILL_OK;
    if (!good)
        code = spill_mongo_name_cause(
            mongoc_client_get_uri(client), &cause,
            name_files(mongoc_client_get_uri(client), &cause,
                       spill_mongo_fail(store, NULL, false, &cause, &reply, error), error),
            error);
    else if (bson_iter_init_find(&iter, &reply, SPILL_UPSTREAM_GATEWAY_FIELD))
        code =
            spill_fail(error, SPILL_INVALID,
                       "%s: this is a Spillway gateway: give the address of the server behind it",
                       store->place);
    else if (!bson_iter_init_find(&iter, &reply, "maxWireVersion") ||
             spill_iter_int64(&iter) < WIRE_VERSION_MIN)
        code = spill_fail(error, SPILL_FORMAT,
                          "%s: the server is older than MongoDB 4.4.2, whose commands are needed",
                          store->place);
    mongoc_client_pool_push(store->pool, client);
    /* Only the router of a sharded cluster returns this field. */
    store->sharded = good && bson_iter_init_find(&iter, &reply, "msg");
    bson_destroy(&reply);
    return code;
}

/* Does the catalog have an entry of this kind? */
static spill_code_t has_entry(spill_mongo_t *store, spill_catalog_t kind, bool *any,
                              spill_error_t *error)
{
    SPILL_SCOPED(spill_listing_release) spill_listing_t names = SPILL_LISTING_INIT;
    SPILL_TRY(spill_mongo_catalog_names(&store->base, kind, &names, error));
    *any = names.count > 0;
    return SPILL_OK;
}

/*
 * A database without definitions and jobs is not a store yet. A consolidation is a job without a
 * definition.
 */
static spill_code_t check_exists(spill_mongo_t *store, spill_error_t *error)
{
    bool any;
    SPILL_TRY(has_entry(store, SPILL_CATALOG_DEFINITION, &any, error));
    if (!any)
        SPILL_TRY(has_entry(store, SPILL_CATALOG_JOB, &any, error));
    if (any)
        return SPILL_OK;
    return spill_fail(error, SPILL_NOT_FOUND,
                      "%s: the database has no Spillway definitions; `spillway define` makes one",
                      store->place);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void count_command(const mongoc_apm_command_started_t *event)
{
    spill_counts_t *counts = mongoc_apm_command_started_get_context(event);
    atomic_fetch_add_explicit(&counts->bytes_written,
                              mongoc_apm_command_started_get_command(event)->len,
                              memory_order_relaxed);
}

static void watch_reply(const mongoc_apm_command_succeeded_t *event)
{
    spill_counts_t *counts = mongoc_apm_command_succeeded_get_context(event);
    const bson_t *reply = mongoc_apm_command_succeeded_get_reply(event);
    if (counts)
        atomic_fetch_add_explicit(&counts->bytes_read, reply->len, memory_order_relaxed);
    spill_mongo_check_answer(reply);
}

/* Call it before the pool makes its first client. To count sent bytes the driver copies commands.
 */
static void watch(spill_mongo_t *store, bool count_bytes)
{
    mongoc_apm_callbacks_t *callbacks = mongoc_apm_callbacks_new();
    if (count_bytes)
        mongoc_apm_set_command_started_cb(callbacks, count_command);
    mongoc_apm_set_command_succeeded_cb(callbacks, watch_reply);
    mongoc_client_pool_set_apm_callbacks(store->pool, callbacks,
                                         count_bytes ? &store->base.counts : NULL);
    mongoc_apm_callbacks_destroy(callbacks);
}

/* ---- the store ------------------------------------------------------------------------------- */

static spill_code_t change(spill_mongo_t *store, const spill_request_t *request,
                           spill_response_t *response, spill_error_t *error)
{
    if (request->kind == SPILL_REQUEST_ADOPT || request->kind == SPILL_REQUEST_ADOPT_SPLIT)
        return spill_mongo_adopt(store, request, response, error);
    if (request->kind == SPILL_REQUEST_UNMANAGE)
        return spill_mongo_unmanage(store, request, response, error);
    if (request->kind == SPILL_REQUEST_REWRITE)
        return spill_mongo_renumber(store, request, response, error);
    return spill_mongo_guarded(store, request, response, error);
}

/*
 * Is it a page of a layout that has none? A damaged head may lead there. No collection has such
 * pages: they are absent, and a change of one is refused.
 */
static bool is_impossible(const spill_request_t *request, spill_response_t *response)
{
    if (request->page == SPILL_HEAD || spill_schema_of(request->definition)->has_pages)
        return false;
    response->outcome = request->kind == SPILL_REQUEST_READ ? SPILL_DONE : SPILL_REFUSED_GUARD;
    return true;
}

static spill_code_t read_any(spill_mongo_t *store, const spill_request_t *request,
                             spill_response_t *response, spill_error_t *error)
{
    if (request->page != SPILL_ELEMENTS)
        return spill_mongo_read(store, request, response, error);
    if (request->read.want != SPILL_WANT_TOP_N)
        return spill_mongo_read_elements(store, request, response, error);
    spill_mongo_ahead_changed(store->ahead, request->owner); /* a later head is no older */
    return spill_mongo_read_top_n(store, request, response, error);
}

static spill_code_t call(spill_store_t *base, const spill_request_t *request,
                         spill_response_t *response, spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    spill_response_clear(response);
    if (is_impossible(request, response))
        return SPILL_OK;
    if (request->kind == SPILL_REQUEST_READ)
        return read_any(store, request, response, error);
    if (base->options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s was opened for reading only", store->place);
    spill_code_t code = change(store, request, response, error);
    spill_mongo_ahead_changed(store->ahead, request->owner);
    return code;
}

static spill_code_t call_all(spill_store_t *base, const spill_request_t *requests, size_t count,
                             spill_response_t *responses, spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    bool impossible = false;
    for (size_t i = 0; i < count; i++) {
        spill_response_clear(&responses[i]);
        impossible = is_impossible(&requests[i], &responses[i]);
    }
    if (impossible) /* the requests are of one definition */
        return SPILL_OK;
    if (requests->kind == SPILL_REQUEST_READ)
        return spill_mongo_read_pages(store, requests, count, responses, error);
    for (size_t i = 0; i < count; i++)
        if (i == 0 || requests[i].owner != requests[i - 1].owner)
            spill_mongo_ahead_changed(store->ahead, requests[i].owner);
    if (base->options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s was opened for reading only", store->place);
    return (requests->kind == SPILL_REQUEST_PUT_PAGE
                ? spill_mongo_put_pages
                : spill_mongo_empty_pages)(store, requests, count, responses, error);
}

static bool make_push(spill_store_t *base, const spill_request_t *append, bson_t *filter,
                      bson_t *update)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    if (base->options.read_only || !spill_mongo_make_push(store, append, filter, update))
        return false;
    spill_mongo_ahead_changed(store->ahead, append->owner);
    return true;
}

typedef spill_code_t change_heads_fn(spill_mongo_t *store, const spill_request_t *requests,
                                     size_t count, spill_error_t *error);

/* Changes of heads of several owners. */
static spill_code_t change_heads(spill_store_t *base, change_heads_fn *make,
                                 const spill_request_t *requests, size_t count,
                                 spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    if (base->options.read_only)
        return spill_fail(error, SPILL_READ_ONLY, "%s was opened for reading only", store->place);
    spill_code_t code = make(store, requests, count, error);
    for (size_t i = 0; i < count; i++)
        spill_mongo_ahead_changed(store->ahead, requests[i].owner);
    return code;
}

static spill_code_t make_heads(spill_store_t *base, const spill_request_t *requests, size_t count,
                               spill_error_t *error)
{
    return change_heads(base, spill_mongo_make_heads, requests, count, error);
}

static spill_code_t cut_heads(spill_store_t *base, const spill_request_t *requests, size_t count,
                              spill_error_t *error)
{
    return change_heads(base, spill_mongo_cut_heads, requests, count, error);
}

static void expect(spill_store_t *base, const spill_definition_t *definition,
                   const spill_listing_t *owners)
{
    spill_mongo_ahead_list(((spill_mongo_t *)base)->ahead, definition, owners);
}

static spill_code_t head_ends(spill_store_t *base, int64_t rev, spill_error_t *error)
{
    return spill_mongo_raise_dropped_rev((spill_mongo_t *)base, rev, error);
}

/*
 * Choose the server now: without one the driver waits, and perhaps sends the command later. Until
 * here a deadline is exact.
 */
static spill_code_t await_ready(spill_store_t *base, spill_error_t *error)
{
    spill_mongo_t *store = (spill_mongo_t *)base;
    bson_error_t cause;
    mongoc_client_t *client = mongoc_client_pool_pop(store->pool);
    mongoc_server_description_t *server = mongoc_client_select_server(client, true, NULL, &cause);
    mongoc_client_pool_push(store->pool, client);
    if (!server)
        return spill_mongo_fail(store, NULL, false, &cause, NULL, error);
    mongoc_server_description_destroy(server);
    return SPILL_OK;
}

static void release_concerns(spill_mongo_concerns_t *concerns)
{
    if (concerns->write)
        mongoc_write_concern_destroy(concerns->write);
    if (concerns->read)
        mongoc_read_concern_destroy(concerns->read);
    bson_destroy(concerns->write_opts);
    bson_destroy(concerns->read_opts);
    *concerns = (spill_mongo_concerns_t){0};
}

static spill_code_t close_store(spill_store_t *base, spill_error_t *error)
{
    (void)error;
    spill_mongo_t *store = (spill_mongo_t *)base;
    if (store->pool && !store->is_borrowed)
        mongoc_client_pool_destroy(store->pool);
    mongoc_read_prefs_destroy(store->primary);
    release_concerns(&store->concerns);
    spill_mongo_hints_free(store->hints);
    spill_mongo_ahead_free(store->ahead);
    bson_free(store->database);
    bson_free(store->place);
    spill_store_base_release(base);
    bson_free(store);
    return SPILL_OK;
}

static const spill_store_ops_t mongo_ops = {
    .name = "mongodb",
    .combines = true,
    .defers_spills = true,
    .others_write = true,
    .call = call,
    .call_all = call_all,
    .make_push = make_push,
    .make_heads = make_heads,
    .cut_heads = cut_heads,
    .expect = expect,
    .windows_of = spill_mongo_windows_of,
    .bind = spill_mongo_bind,
    .list = {[SPILL_LIST_OWNERS] = spill_mongo_owners,
             [SPILL_LIST_OVERSIZED] = spill_mongo_oversized,
             [SPILL_LIST_ORPHANS] = spill_mongo_orphans,
             [SPILL_LIST_WINDOWS] = spill_mongo_windows},
    .catalog_get = spill_mongo_catalog_get,
    .open = spill_mongo_open_entries,
    .catalog_put = spill_mongo_catalog_put,
    .catalog_delete = spill_mongo_catalog_delete,
    .jobs_get = spill_mongo_imports_get,
    .make_indexes = spill_mongo_make_indexes,
    .catalog_names = spill_mongo_catalog_names,
    .now = spill_mongo_now,
    .definitions_beside = spill_mongo_definitions_beside,
    .same = spill_mongo_same,
    .head_ends = head_ends,
    .note_drop = spill_mongo_note_drop,
    .note_drop_all = spill_mongo_note_drop_all,
    .find_drop = spill_mongo_find_drop,
    .forget_drop = spill_mongo_forget_drop,
    .forget_drops = spill_mongo_forget_drops,
    .old_drops = spill_mongo_old_drops,
    .await_ready = await_ready,
    .close = close_store,
};

spill_mongo_t *spill_mongo_make_store(const mongoc_uri_t *uri, const char *database,
                                      const spill_store_options_t *options)
{
    spill_mongo_t *store = bson_malloc0(sizeof *store);
    store->place = place_of(uri, database);
    store->hints = spill_mongo_hints_new();
    store->ahead = spill_mongo_ahead_new();
    store->retries = mongoc_uri_get_option_as_bool(uri, MONGOC_URI_RETRYWRITES, true);
    store->primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    store->database = bson_strdup(database);
    spill_store_base_init(&store->base, &mongo_ops, store->place, options);
    store->base.reads_copies =
        mongoc_read_prefs_get_mode(mongoc_uri_get_read_prefs_t(uri)) != MONGOC_READ_PRIMARY;
    return store;
}

spill_code_t spill_mongo_check(spill_mongo_t *store, spill_error_t *error)
{
    SPILL_TRY(check_server(store, error));
    return store->base.options.must_exist ? check_exists(store, error) : SPILL_OK;
}

static spill_code_t connect_store(spill_mongo_t *store, const mongoc_uri_t *uri,
                                  const spill_store_options_t *options, spill_error_t *error)
{
    bson_error_t cause;
    store->pool = mongoc_client_pool_new_with_error(uri, &cause);
    if (!store->pool)
        return spill_fail(error, SPILL_INVALID, "%s: %s", store->place, cause.message);
    mongoc_client_pool_set_error_api(store->pool, MONGOC_ERROR_API_VERSION_2);
    watch(store, options->count_bytes);
    return spill_mongo_check(store, error);
}

static void destroy_uri(mongoc_uri_t **uri)
{
    mongoc_uri_destroy(*uri);
}

bool spill_raw_reader_answers(const char *text, int timeout_ms)
{
    spill_error_t error;
    bson_error_t cause;
    SPILL_SCOPED(destroy_uri) mongoc_uri_t *uri = NULL;
    if (spill_driver_load(&error) != SPILL_OK || parse(text, &uri, &error) != SPILL_OK)
        return true;
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, timeout_ms);
    mongoc_uri_set_option_as_int32(uri, MONGOC_URI_CONNECTTIMEOUTMS, timeout_ms);
    mongoc_client_t *client = mongoc_client_new_from_uri(uri);
    if (!client)
        return true;
    mongoc_server_description_t *server =
        mongoc_client_select_server(client, false, mongoc_uri_get_read_prefs_t(uri), &cause);
    bool answers = server != NULL;
    mongoc_server_description_destroy(server);
    mongoc_client_destroy(client);
    return answers;
}

spill_code_t spill_mongo_open(const char *text, const spill_store_options_t *options,
                              spill_store_t **store, spill_error_t *error)
{
    *store = NULL;
    SPILL_TRY(spill_driver_load(error));
    SPILL_SCOPED(destroy_uri) mongoc_uri_t *uri = NULL;
    SPILL_TRY(parse(text, &uri, error));
    spill_mongo_t *mongo = spill_mongo_make_store(uri, mongoc_uri_get_database(uri), options);
    spill_code_t code = connect_store(mongo, uri, options, error);
    if (code == SPILL_OK)
        *store = &mongo->base;
    else
        close_store(&mongo->base, NULL);
    return code;
}
