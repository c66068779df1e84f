/* The file that `plan --output` writes and a person edits (docs/plan.md): what every command reads.
 */
#ifndef SPILL_TOOLS_PLAN_FILE_H
#define SPILL_TOOLS_PLAN_FILE_H

#include "tools/planned.h"

/*
 * Read a plan into `document`, which is made in every case. SPILL_IO; SPILL_PARSE: it is no JSON;
 * SPILL_INVALID: it is no plan of this version. Messages name the file.
 */
spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error);

/*
 * Its arrays with "migrate": true, in *arrays (bson_free): their definitions are checked, and where
 * an entry has its "original", that is the one. SPILL_INVALID names the array whose definition
 * cannot be.
 */
spill_code_t spill_plan_file_arrays(const char *file, spill_planned_t **arrays, size_t *count,
                                    spill_error_t *error);

#endif
