/* Find the end of the record that begins at `data`: a pure function for each format. */
#ifndef SPILL_TOOLS_IMPORT_SCAN_H
#define SPILL_TOOLS_IMPORT_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* How a scan ended. *length: of the record with its line end, or of what was scanned. */
typedef enum spill_scan { SPILL_SCAN_WHOLE, SPILL_SCAN_MORE, SPILL_SCAN_BAD } spill_scan_t;

spill_scan_t spill_scan_line(const uint8_t *data, size_t size, size_t *length);

/* Quotes open only at the start of a field; within them a newline is text. */
spill_scan_t spill_scan_csv(const uint8_t *data, size_t size, size_t *length);

/* Find a document's end by its brackets. BAD: no document begins at `data`. */
spill_scan_t spill_scan_document(const uint8_t *data, size_t size, size_t *length);

#endif
