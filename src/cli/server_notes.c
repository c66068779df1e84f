#include "cli/server_notes.h"
#include "cli/cli.h"
#include "definition/schema.h"
#include "store/raw_reader.h"
#include "store/upstream.h"
#include "util/error.h"

static void close_upstream(spill_upstream_t **upstream)
{
    spill_upstream_close(*upstream);
}

/* Do the heads have pages in another collection? */
static bool leaves_pages(const spill_definition_t *definition)
{
    const spill_schema_t *schema = spill_schema_of(definition);
    return schema->has_pages && !schema->has_windows;
}

/* NULL: the store is no database of a server, or the server does not answer. */
static spill_upstream_t *open_upstream(const spill_invocation_t *invocation)
{
    char uri[SPILL_CLI_URI];
    spill_upstream_t *upstream;
    spill_error_t error;
    bool opened = spill_cli_store_uri(invocation->arguments[0], uri, &error) == SPILL_OK &&
                  spill_raw_reader_serves(uri) &&
                  spill_upstream_open(uri, &upstream, &error) == SPILL_OK;
    return opened ? upstream : NULL;
}

static void warn_of_ttl(spill_upstream_t *upstream, const spill_definition_t *definition)
{
    char note[SPILL_UPSTREAM_NOTE_BYTES];
    if (!leaves_pages(definition))
        return;
    spill_upstream_note_ttl(upstream, definition->collection, definition->page_collection, note);
    if (note[0] != '\0')
        spill_cli_say("warning: '%s': %s", definition->name, note);
}

void spill_cli_note_definition(const spill_invocation_t *invocation,
                               const spill_definition_t *definition, bool plain)
{
    char note[SPILL_UPSTREAM_NOTE_BYTES];
    SPILL_SCOPED(close_upstream) spill_upstream_t *upstream = open_upstream(invocation);
    if (!upstream)
        return;
    if (plain) {
        spill_upstream_note_missing(upstream, definition->collection, definition->array, note);
        if (note[0] != '\0')
            spill_cli_say("note: %s", note);
    }
    warn_of_ttl(upstream, definition);
}

void spill_cli_warn_of_ttl(const spill_invocation_t *invocation,
                           const spill_definition_t *definitions, size_t count)
{
    SPILL_SCOPED(close_upstream)
    spill_upstream_t *upstream = count > 0 ? open_upstream(invocation) : NULL;
    for (size_t i = 0; upstream && i < count; i++)
        warn_of_ttl(upstream, &definitions[i]);
}

void spill_cli_warn_of_ttl_in_store(const spill_invocation_t *invocation, spill_store_t *store)
{
    spill_definition_t *definitions = NULL;
    size_t count = 0;
    if (spill_store_definitions(store, &definitions, &count, NULL) == SPILL_OK)
        spill_cli_warn_of_ttl(invocation, definitions, count);
    bson_free(definitions);
}
