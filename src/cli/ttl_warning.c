/* Warn of TTL indexes on collections of definitions. */
#include "cli/ttl_warning.h"
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

void spill_cli_warn_of_ttl(const spill_invocation_t *invocation,
                           const spill_definition_t *definitions, size_t count)
{
    char uri[SPILL_CLI_URI], note[SPILL_UPSTREAM_NOTE_BYTES];
    SPILL_SCOPED(close_upstream) spill_upstream_t *upstream = NULL;
    spill_error_t error;
    if (count == 0 || spill_cli_store_uri(invocation->arguments[0], uri, &error) != SPILL_OK ||
        !spill_raw_reader_serves(uri) || spill_upstream_open(uri, &upstream, &error) != SPILL_OK)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!leaves_pages(&definitions[i]))
            continue;
        spill_upstream_note_ttl(upstream, definitions[i].collection, definitions[i].page_collection,
                                note);
        if (note[0] != '\0')
            spill_cli_say("warning: '%s': %s", definitions[i].name, note);
    }
}

void spill_cli_warn_of_ttl_in_store(const spill_invocation_t *invocation, spill_store_t *store)
{
    spill_definition_t *definitions = NULL;
    size_t count = 0;
    if (spill_store_definitions(store, &definitions, &count, NULL) == SPILL_OK)
        spill_cli_warn_of_ttl(invocation, definitions, count);
    bson_free(definitions);
}
