/* Times as text (ISO 8601). */
#ifndef SPILL_UTIL_ISO_TIME_H
#define SPILL_UTIL_ISO_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Read a text of `size` bytes as a time: "2026-08-21", "2026-08-21T10:30", "2026-08-21
 * 10:30:15.25Z", "2026-08-21T10:30:15+02:00" (also +0200 and +02). The text must have nothing
 * before or behind that. A time without a zone is in UTC. *time_ms: milliseconds since 1970;
 * further digits are dropped. False if the text has another form, or names a day or time that does
 * not exist.
 */
bool spill_iso_time(const char *text, size_t size, int64_t *time_ms);

#endif
