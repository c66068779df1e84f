/* Where the record ends that begins at `data`: a pure function for each format. */
#ifndef SPILL_TOOLS_IMPORT_SCAN_H
#define SPILL_TOOLS_IMPORT_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* How a scan ended, and *length: of the record, its line end included; or as far as it went. */
typedef enum spill_scan { SPILL_SCAN_WHOLE, SPILL_SCAN_MORE, SPILL_SCAN_BAD } spill_scan_t;

spill_scan_t spill_scan_line(const uint8_t *data, size_t size, size_t *length);

/* Quotes open only at the start of a field; within them a newline is text. */
spill_scan_t spill_scan_csv(const uint8_t *data, size_t size, size_t *length);

/* A document by its brackets. BAD where none begins at `data`. */
spill_scan_t spill_scan_document(const uint8_t *data, size_t size, size_t *length);

#endif
