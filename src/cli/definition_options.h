/* What several commands take on their command lines of a definition. */
#ifndef SPILL_CLI_DEFINITION_OPTIONS_H
#define SPILL_CLI_DEFINITION_OPTIONS_H

#include <spillway/definition.h>

/*
 * The layout, or which end is kept, of that name; NULL leaves what is there. SPILL_INVALID says
 * which names there are.
 */
spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error);
spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error);

#endif
