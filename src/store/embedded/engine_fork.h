/*
 * What a fork leaves of the engine. RocksDB has threads for the whole process, which a child lacks.
 * A writer's close waits for them, and so do the destructors of the engine that exit() calls.
 */
#ifndef SPILL_STORE_EMBEDDED_ENGINE_FORK_H
#define SPILL_STORE_EMBEDDED_ENGINE_FORK_H

#include <spillway/error.h>

#include <stdbool.h>

/*
 * Call it before the engine opens `folder`. SPILL_INVALID: a writer, in a child of a process in
 * which the engine has run. Readers need none of the engine's threads.
 */
spill_code_t spill_engine_check_fork(const char *folder, bool read_only, spill_error_t *error);

/*
 * Call it after the engine has opened a folder, also if that failed. If a later child of this
 * process calls exit(), the child ends before the engine's destructors. Handlers of exit() that the
 * program registered before it first opened an embedded store do not run in that child.
 */
void spill_engine_has_run(bool read_only);

#endif
