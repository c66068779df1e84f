/* What a server shows about definitions: TTL indexes, and names that are perhaps wrong. */
#ifndef SPILL_CLI_SERVER_NOTES_H
#define SPILL_CLI_SERVER_NOTES_H

#include "cli/command.h"

#include <spillway/definition.h>

/*
 * All notes go to stderr. They are left out if the store is no database of a server, or if the
 * server does not answer. Cost: a connection, and for each definition two or three commands.
 */

/* Of a new definition. `plain`: its arrays are there already; say if no document has one. */
void spill_cli_note_definition(const spill_invocation_t *invocation,
                               const spill_definition_t *definition, bool plain);

/*
 * Warn of TTL indexes on collections of the definitions: they delete documents of managed arrays,
 * and leave their pages. The second function reads the store's own definitions.
 */
void spill_cli_warn_of_ttl(const spill_invocation_t *invocation,
                           const spill_definition_t *definitions, size_t count);
void spill_cli_warn_of_ttl_in_store(const spill_invocation_t *invocation, spill_store_t *store);

#endif
