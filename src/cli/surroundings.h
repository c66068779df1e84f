/* What the program sets up in the system before a command runs. */
#ifndef SPILL_CLI_SURROUNDINGS_H
#define SPILL_CLI_SURROUNDINGS_H

#include <spillway/export.h>

SPILL_BEGIN_DECLS

/*
 * Call it first in main. Afterwards descriptors 0 to 2 are open, so no file of a store gets one of
 * them; a write to one that was closed fails. The limit of open files is as high as the system
 * permits. (A write beyond the file size limit, ulimit -f, fails without ending the process: that
 * is set up before main.)
 */
void spill_cli_prepare_process(void);

/* When memory runs out, print that and exit with SPILL_EXIT_FAILED instead of aborting. */
void spill_cli_report_lost_memory(void);

SPILL_END_DECLS

#endif
