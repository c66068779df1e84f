/* The file that `plan --output` writes and a person edits (docs/plan.md): what every command reads.
 */
#ifndef SPILL_TOOLS_PLAN_FILE_H
#define SPILL_TOOLS_PLAN_FILE_H

#include <spillway/definition.h>

/*
 * Read a plan into `document`, which is made in every case. SPILL_IO; SPILL_PARSE: it is no JSON;
 * SPILL_INVALID: it is no plan of this version. Messages name the file.
 */
spill_code_t spill_plan_file_read(const char *file, bson_t *document, spill_error_t *error);

/*
 * The definitions of its arrays with "migrate": true, in *definitions (bson_free), checked.
 * SPILL_INVALID names the array whose definition cannot be.
 */
spill_code_t spill_plan_file_definitions(const char *file, spill_definition_t **definitions,
                                         size_t *count, spill_error_t *error);

#endif
