/* The file that `plan --output` writes and a person edits (docs/reference/plan-file.md). */
#ifndef SPILL_TOOLS_PLAN_FILE_H
#define SPILL_TOOLS_PLAN_FILE_H

#include "tools/planned.h"

/*
 * Read a plan into `document`, which is initialized in every case. SPILL_IO; SPILL_PARSE: it is no
 * JSON; SPILL_INVALID: it is no plan of this version. Messages name the file.
 */
spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error);

/*
 * Read the arrays with "migrate": true into *arrays (bson_free). Their definitions are checked. An
 * entry's "original" replaces the default one.
 *
 * A plan of a server, of a folder or of an archive names a collection with its database in front:
 * "shop.users". The arrays have the name without that database. It is the first of these: the
 * entry's "database"; `database`, the one that is migrated (NULL on an embedded store); the part
 * in front of the collection's name in the definition.
 *
 * SPILL_INVALID: the message names the entry at fault.
 */
spill_code_t spill_plan_file_arrays(const char *file, const char *database,
                                    spill_planned_t **arrays, size_t *count, spill_error_t *error);

#endif
