/* What the program settles with the system before a command runs. */
#ifndef SPILL_CLI_SURROUNDINGS_H
#define SPILL_CLI_SURROUNDINGS_H

#include <spillway/export.h>

SPILL_BEGIN_DECLS

/*
 * Call it first in main. Descriptors 0 to 2 are open afterwards, so no file of a store gets one of
 * them; a write to one that was closed fails. The limit of open files is as high as the system
 * permits. (A write beyond the file size limit, ulimit -f, fails and does not end the process: that
 * is settled before main.)
 */
void spill_cli_prepare_process(void);

/* When memory runs out, print that and exit with SPILL_EXIT_FAILED instead of aborting. */
void spill_cli_report_lost_memory(void);

SPILL_END_DECLS

#endif
