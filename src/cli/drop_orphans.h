/* repair --drop-orphans: delete the pages of documents that another program deleted. */
#ifndef SPILL_CLI_DROP_ORPHANS_H
#define SPILL_CLI_DROP_ORPHANS_H

#include "cli/command.h"

/*
 * Print each owner that has pages and no head, then ask (not with `yes`), and delete the pages of
 * each owner without a document. With invocation->dry_run only print. SPILL_EXIT_FOUND: something
 * is left, or would be deleted.
 */
spill_exit_t spill_cli_drop_orphans(const spill_invocation_t *invocation, bool yes);

#endif
