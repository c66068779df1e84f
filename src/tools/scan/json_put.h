/* Values and texts as JSON, for documents that are written piece by piece. */
#ifndef SPILL_TOOLS_SCAN_JSON_PUT_H
#define SPILL_TOOLS_SCAN_JSON_PUT_H

#include <spillway/value.h>

#include <stdio.h>

/* As relaxed Extended JSON; null if there is no value, or if JSON cannot express it. */
void spill_json_put_value(FILE *to, const spill_value_t *value);

/* As a string; null for NULL. */
void spill_json_put_text(FILE *to, const char *text);

/* The same for a path or a URI, without the secrets in a connection string. */
void spill_json_put_source(FILE *to, const char *source);

#endif
