/* serve --check: what would be served, and whether the gateway's user has the rights for it. */
#include "gateway/gateway.h"

#include "core/array.h"
#include "definition/schema.h"
#include "gateway/relay/hello.h"
#include "gateway/translate/served.h"
#include "util/error.h"

#include <inttypes.h>

/* The result: text for people, or a line of JSON for each part of it. */
typedef struct output {
    FILE *to;
    bool json;
} output_t;

static void print_line(const output_t *output, const bson_t *line)
{
    char *text = bson_as_relaxed_extended_json(line, NULL);
    fprintf(output->to, "%s\n", text);
    bson_free(text);
}

static void close_upstream(spill_upstream_t **upstream)
{
    spill_upstream_close(*upstream);
}

static void free_served(spill_served_t **served)
{
    spill_served_free(*served);
}

/* What drivers take the gateway for: it decides how many a connection string may name. */
static void print_presented(bool router, FILE *out)
{
    if (router)
        fputs("drivers see: mongos; a connection string may name several such gateways\n", out);
    else
        fputs("drivers see: a standalone server; a connection string names one address: this "
              "gateway, or a load balancer (several: --present mongos)\n",
              out);
}

static void print_server(const output_t *output, const spill_upstream_primary_t *primary,
                         spill_present_t present)
{
    static const char *const kinds[] = {[SPILL_UPSTREAM_STANDALONE] =
                                            "a standalone server, without transactions",
                                        [SPILL_UPSTREAM_REPLICA_SET] = "a replica set",
                                        [SPILL_UPSTREAM_ROUTER] = "a sharded cluster"};
    static const char *const names[] = {[SPILL_UPSTREAM_STANDALONE] = "standalone",
                                        [SPILL_UPSTREAM_REPLICA_SET] = "replicaSet",
                                        [SPILL_UPSTREAM_ROUTER] = "sharded"};
    bool router = spill_hello_presents_router(present, primary->kind);
    if (!output->json) {
        fprintf(output->to, "server: %s:%u, %s\n", primary->host, (unsigned)primary->port,
                kinds[primary->kind]);
        print_presented(router, output->to);
        return;
    }
    SPILL_SCOPED(bson_destroy) bson_t line = BSON_INITIALIZER;
    BCON_APPEND(&line, "server", "{", "host", BCON_UTF8(primary->host), "port",
                BCON_INT32(primary->port), "kind", BCON_UTF8(names[primary->kind]), "}",
                "driversSee", BCON_UTF8(router ? "mongos" : "standalone"));
    print_line(output, &line);
}

static spill_code_t check_server(spill_upstream_t *upstream, spill_present_t present,
                                 const output_t *output, spill_error_t *error)
{
    spill_upstream_primary_t primary;
    spill_code_t code = spill_upstream_find(upstream, &primary, error);
    if (code == SPILL_OK)
        print_server(output, &primary, present);
    bson_destroy(&primary.hello);
    return code;
}

/* ---- a collection ---------------------------------------------------------------------------- */

/* A remark on a collection, of kind "note" or "warning": a line of text, or a field of `line`. */
static void remark(const output_t *output, const spill_served_collection_t *collection,
                   const char *kind, const char *text, bson_t *line)
{
    if (output->json)
        bson_append_utf8(line, kind, -1, text, -1);
    else
        fprintf(output->to, "%s: %s: %s\n", collection->collection, kind, text);
}

/* An undo that has not ended is no state to leave a served collection in. */
static spill_code_t note_undo(const output_t *output, const spill_served_collection_t *collection,
                              bson_t *line, spill_error_t *error)
{
    const spill_definition_t *definition = collection->definition;
    spill_store_t *store = collection->array->store;
    spill_stored_definition_t stored;
    SPILL_SCOPED(spill_free_document) bson_t *document = NULL;
    SPILL_TRY(store->ops->catalog_get(store, SPILL_CATALOG_DEFINITION, definition->name, &document,
                                      error));
    if (!document)
        return SPILL_OK;
    SPILL_TRY(spill_stored_definition_from_bson(&stored, document, error));
    if (stored.undoing == 0)
        return SPILL_OK;
    char *note = bson_strdup_printf(
        "an undo of '%s' has begun and not ended, so no array is adopted: `spillway migrate URI %s "
        "--undo --execute' ends it, and with --execute alone cancels it",
        definition->name, definition->name);
    remark(output, collection, output->json ? "undo" : "note", note, line);
    bson_free(note);
    return SPILL_OK;
}

static void print_unserved(const output_t *output, const spill_served_collection_t *collection,
                           bson_t *line)
{
    bool reads_refused = collection->parts[0] != NULL;
    if (!output->json) {
        fprintf(output->to, "%s: not served: %s. %s\n", collection->collection, collection->reason,
                reads_refused ? "Reads and writes of the arrays are refused"
                              : "Reads return the stored documents; writes are refused");
        return;
    }
    BCON_APPEND(line, "served", BCON_BOOL(false), "reason", BCON_UTF8(collection->reason),
                "readsRefused", BCON_BOOL(reads_refused));
}

static void print_served(const output_t *output, const spill_served_collection_t *collection,
                         bson_t *line)
{
    const spill_definition_t *definition = collection->definition;
    if (output->json)
        BCON_APPEND(line, "served", BCON_BOOL(true), "array", BCON_UTF8(definition->array), "pages",
                    BCON_UTF8(definition->page_collection), "threshold",
                    BCON_INT64(definition->bounds.threshold));
    else
        fprintf(output->to, "%s: served: array %s, pages in %s, threshold %" PRId64 "\n",
                collection->collection, definition->array, definition->page_collection,
                definition->bounds.threshold);
}

static spill_code_t check_collection(spill_upstream_t *upstream,
                                     const spill_served_collection_t *collection,
                                     const output_t *output, bson_t *line, spill_error_t *error)
{
    const spill_definition_t *definition = collection->definition;
    BSON_APPEND_UTF8(line, "collection", collection->collection);
    if (!collection->array) {
        print_unserved(output, collection, line);
        return SPILL_OK;
    }
    SPILL_TRY(spill_upstream_probe(upstream, collection->collection, error));
    SPILL_TRY(spill_upstream_probe(upstream, definition->page_collection, error));
    print_served(output, collection, line);
    char note[SPILL_UPSTREAM_NOTE_BYTES];
    spill_upstream_note_missing(upstream, collection->collection, definition->array, note);
    if (note[0] != '\0')
        remark(output, collection, "note", note, line);
    spill_upstream_note_ttl(upstream, collection->collection, definition->page_collection, note);
    if (note[0] != '\0')
        remark(output, collection, "warning", note, line);
    return note_undo(output, collection, line, error);
}

static void print_view(const output_t *output, const spill_served_view_t *view)
{
    SPILL_SCOPED(bson_destroy) bson_t line = BSON_INITIALIZER;
    if (!output->json) {
        fprintf(output->to, "%s: a view of %s: reads are refused\n", view->name, view->collection);
        return;
    }
    BCON_APPEND(&line, "view", BCON_UTF8(view->name), "of", BCON_UTF8(view->collection),
                "readsRefused", BCON_BOOL(true));
    print_line(output, &line);
}

spill_code_t spill_gateway_check(const spill_gateway_options_t *options, FILE *out, bool json,
                                 bool *found, spill_error_t *error)
{
    *found = false;
    const output_t output = {out, json};
    SPILL_SCOPED(close_upstream) spill_upstream_t *upstream = NULL;
    SPILL_SCOPED(free_served) spill_served_t *served = NULL;
    SPILL_SCOPED(bson_destroy) bson_t line = BSON_INITIALIZER;
    SPILL_TRY(spill_gateway_check_options(options, error));
    SPILL_TRY(spill_upstream_open(options->uri, &upstream, error));
    SPILL_TRY(check_server(upstream, options->present, &output, error));
    SPILL_TRY(spill_served_open(options->uri, &served, error));
    const spill_served_collection_t *const *all = spill_served_all(served);
    if (!*all && !json)
        fprintf(out, "no collection has a definition: everything is relayed; `spillway define` "
                     "makes one\n");
    for (size_t i = 0; all[i]; i++) {
        *found |= !all[i]->array;
        SPILL_TRY(check_collection(upstream, all[i], &output, &line, error));
        if (json)
            print_line(&output, &line);
        bson_reinit(&line);
    }
    for (const spill_served_view_t *view = spill_served_views(served); view->name; view++)
        print_view(&output, view);
    return SPILL_OK;
}
