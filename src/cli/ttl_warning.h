/* A warning of TTL indexes, which delete documents of managed arrays and leave their pages. */
#ifndef SPILL_CLI_TTL_WARNING_H
#define SPILL_CLI_TTL_WARNING_H

#include "cli/command.h"

#include <spillway/definition.h>

/*
 * If the store is a database of a server, and a TTL index is on a collection of the definitions,
 * say so on stderr. The warning is left out if the server does not answer. Two commands for each
 * definition. The second function reads the store's own definitions.
 */
void spill_cli_warn_of_ttl(const spill_invocation_t *invocation,
                           const spill_definition_t *definitions, size_t count);
void spill_cli_warn_of_ttl_in_store(const spill_invocation_t *invocation, spill_store_t *store);

#endif
