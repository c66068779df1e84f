/* RocksDB reports errors as text. These functions turn the text into codes. */
#ifndef SPILL_STORE_EMBEDDED_ENGINE_ERROR_H
#define SPILL_STORE_EMBEDDED_ENGINE_ERROR_H

#include <spillway/error.h>

#include <stdbool.h>

/* The code of an engine's message. */
spill_code_t spill_engine_code(const char *message);

/* Does the message say that data reached the log, but perhaps not the disk? */
bool spill_engine_sync_failed(const char *message);

/* Fill *error (may be NULL): "<place>: <message> <what to do>". Frees nothing. */
spill_code_t spill_engine_fail(spill_error_t *error, const char *place, const char *message);

#endif
