/* serve --check: what would be served, and whether the gateway's user has the rights for it. */
#include "gateway/gateway.h"

#include "core/array.h"
#include "definition/schema.h"
#include "gateway/relay/hello.h"
#include "gateway/translate/served.h"
#include "util/error.h"

#include <inttypes.h>

static void close_upstream(spill_upstream_t **upstream)
{
    spill_upstream_close(*upstream);
}

static void free_served(spill_served_t **served)
{
    spill_served_free(*served);
}

/* What drivers take the gateway for: it decides how many a connection string may name. */
static void print_presented(spill_present_t present, spill_upstream_kind_t kind, FILE *out)
{
    if (spill_hello_presents_router(present, kind))
        fputs("drivers see: mongos; a connection string may name several such gateways\n", out);
    else
        fputs("drivers see: a standalone server; a connection string names one address: this "
              "gateway, or a load balancer (several: --present mongos)\n",
              out);
}

static spill_code_t check_server(spill_upstream_t *upstream, spill_present_t present, FILE *out,
                                 spill_error_t *error)
{
    static const char *const kinds[] = {[SPILL_UPSTREAM_STANDALONE] =
                                            "a standalone server, without transactions",
                                        [SPILL_UPSTREAM_REPLICA_SET] = "a replica set",
                                        [SPILL_UPSTREAM_ROUTER] = "a sharded cluster"};
    spill_upstream_primary_t primary;
    spill_code_t code = spill_upstream_find(upstream, &primary, error);
    if (code == SPILL_OK) {
        fprintf(out, "server: %s:%u, %s\n", primary.host, (unsigned)primary.port,
                kinds[primary.kind]);
        print_presented(present, primary.kind, out);
    }
    bson_destroy(&primary.hello);
    return code;
}

/* An undo that has not ended is no state to leave a served collection in. */
static spill_code_t note_undo(const spill_served_collection_t *collection, FILE *out,
                              spill_error_t *error)
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
    if (stored.undoing != 0)
        fprintf(out,
                "%s: note: an undo of '%s' has begun and not ended, so no array is adopted: "
                "`spillway migrate URI %s --undo --execute' ends it, and with --execute alone "
                "cancels it\n",
                collection->collection, definition->name, definition->name);
    return SPILL_OK;
}

static spill_code_t check_collection(spill_upstream_t *upstream,
                                     const spill_served_collection_t *collection, FILE *out,
                                     spill_error_t *error)
{
    const spill_definition_t *definition = collection->definition;
    if (!collection->array) {
        fprintf(out, "%s: not served: %s. %s\n", collection->collection, collection->reason,
                collection->parts[0] ? "Reads and writes of the arrays are refused"
                                     : "Reads return the stored documents; writes are refused");
        return SPILL_OK;
    }
    SPILL_TRY(spill_upstream_probe(upstream, collection->collection, error));
    SPILL_TRY(spill_upstream_probe(upstream, definition->page_collection, error));
    fprintf(out, "%s: served: array %s, pages in %s, threshold %" PRId64 "\n",
            collection->collection, definition->array, definition->page_collection,
            definition->bounds.threshold);
    char note[SPILL_UPSTREAM_NOTE_BYTES];
    spill_upstream_note_missing(upstream, collection->collection, definition->array, note);
    if (note[0] != '\0')
        fprintf(out, "%s: note: %s\n", collection->collection, note);
    spill_upstream_note_ttl(upstream, collection->collection, definition->page_collection, note);
    if (note[0] != '\0')
        fprintf(out, "%s: warning: %s\n", collection->collection, note);
    return note_undo(collection, out, error);
}

spill_code_t spill_gateway_check(const spill_gateway_options_t *options, FILE *out, bool *found,
                                 spill_error_t *error)
{
    *found = false;
    SPILL_SCOPED(close_upstream) spill_upstream_t *upstream = NULL;
    SPILL_SCOPED(free_served) spill_served_t *served = NULL;
    SPILL_TRY(spill_gateway_check_options(options, error));
    SPILL_TRY(spill_upstream_open(options->uri, &upstream, error));
    SPILL_TRY(check_server(upstream, options->present, out, error));
    SPILL_TRY(spill_served_open(options->uri, &served, error));
    const spill_served_collection_t *const *all = spill_served_all(served);
    if (!*all)
        fprintf(out, "no collection has a definition: everything is relayed; `spillway define` "
                     "makes one\n");
    for (size_t i = 0; all[i]; i++) {
        *found |= !all[i]->array;
        SPILL_TRY(check_collection(upstream, all[i], out, error));
    }
    for (const spill_served_view_t *view = spill_served_views(served); view->name; view++)
        fprintf(out, "%s: a view of %s: reads are refused\n", view->name, view->collection);
    return SPILL_OK;
}
