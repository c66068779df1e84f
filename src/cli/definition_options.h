/* Options of a definition that several commands share. */
#ifndef SPILL_CLI_DEFINITION_OPTIONS_H
#define SPILL_CLI_DEFINITION_OPTIONS_H

#include <spillway/definition.h>

/*
 * Parse the name of a layout, or of the kept end; NULL leaves the value unchanged. SPILL_INVALID:
 * the message lists the names.
 */
spill_code_t spill_cli_layout(const char *name, spill_layout_t *layout, spill_error_t *error);
spill_code_t spill_cli_keep(const char *name, spill_keep_t *keep, spill_error_t *error);

#endif
