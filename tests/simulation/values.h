/*
 * The elements of a simulation. Every append and most edits bring values that were never used
 * before, so that an element tells where it came from.
 */
#ifndef SIM_VALUES_H
#define SIM_VALUES_H

#include <spillway/value.h>

#include <stdint.h>

#define SIM_PADDING_MAX 1200

/* Where a value is built; it lives as long as this does. */
typedef struct sim_value_bytes {
    uint8_t bytes[SIM_PADDING_MAX + 16];
} sim_value_bytes_t;

/* A 64-bit integer; with padding (bytes), binary data that begins with it. */
spill_value_t sim_value_make(sim_value_bytes_t *bytes, int64_t id, int padding);

/* Its id; -1 for a value that sim_value_make did not make. *padding may be NULL. */
int64_t sim_value_id(const spill_value_t *value, int *padding);

#endif
