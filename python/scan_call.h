/* A scan as Python calls it: from strings and numbers to a text of JSON. */
#ifndef SPILL_PYTHON_SCAN_CALL_H
#define SPILL_PYTHON_SCAN_CALL_H

#include <spillway/error.h>

#include <stdint.h>

typedef struct spill_scan_call spill_scan_call_t;

/* A call that was not stopped; free it with spill_scan_call_free. */
spill_scan_call_t *spill_scan_call_new(void);

/* NULL is allowed. */
void spill_scan_call_free(spill_scan_call_t *call);

/* End a run early, with its results so far. Any thread; `call` must not be freed meanwhile. */
void spill_scan_call_stop(spill_scan_call_t *call);

/*
 * Scan `source` as spill_scan does, and return the result as docs/reference/scan-json.md describes
 * it. `format` and `collections` may be NULL. max_elements and max_bytes: 0 for the defaults.
 * sample and rate: 0 for all.
 *
 * NULL: nothing could be read; *error says why. Free the text with bson_free. Once for each call.
 */
char *spill_scan_call_run(spill_scan_call_t *call, const char *source, const char *format,
                          const char *collections, int64_t max_elements, int64_t max_bytes,
                          int64_t sample, int64_t rate, spill_error_t *error);

#endif
