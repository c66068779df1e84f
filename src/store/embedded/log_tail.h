/* The end of the engine's log, as the engine writes it, to tell a torn end from damage. */
#ifndef SPILL_EMBEDDED_LOG_TAIL_H
#define SPILL_EMBEDDED_LOG_TAIL_H

#include <stdbool.h>

/*
 * Where the newest log of a folder cannot be read to its end: does a whole record follow that
 * place? Then its bytes were there and were changed; a write that was cut off leaves none. False
 * where there is no log, or it cannot be read. Cost: one block, 32 KiB.
 */
bool spill_log_goes_on(const char *folder);

#endif
