/*
 * The elements of a simulation. Every append and most edits bring values that were never used
 * before, so that an element tells where it came from. As elements they have an id besides, which
 * several of them share, and a time.
 */
#ifndef SIM_VALUES_H
#define SIM_VALUES_H

#include <spillway/value.h>

#include <stdbool.h>
#include <stdint.h>

#define SIM_PADDING_MAX 1200

/* Where the values of a definition for them are. */
#define SIM_ID_FIELD "at.k"
#define SIM_TIME_FIELD "t"
#define SIM_VALUE_FIELD "v" /* what an array's sum is of */

/* How many ids there are: elements with value v have the id v % SIM_IDS. */
#define SIM_IDS 5

/* The time of an element with value v. Edits bring later values to earlier places. */
static inline int64_t sim_value_time_ms(int64_t value)
{
    return value * 1000;
}

/* Where a value is built; it lives as long as this does. */
typedef struct sim_value_bytes {
    uint8_t bytes[SIM_PADDING_MAX + 96];
} sim_value_bytes_t;

/* {v: int64, at: {k: int32}, t: date}; with padding (bytes) binary data besides. */
spill_value_t sim_value_make(sim_value_bytes_t *bytes, int64_t id, int padding);

/*
 * A document of a bucket: a time in the first window or the second, the id, the padding, and for
 * most ids a value.
 */
spill_value_t sim_value_make_document(sim_value_bytes_t *bytes, int64_t id, int padding,
                                      bool second);

#define SIM_WINDOW "1970-01"
#define SIM_SECOND_WINDOW "1970-02"

/* {owner: int64, window}, as bytes. */
enum { SIM_WINDOW_BYTES = 4 + (1 + 6 + 8) + (1 + 7 + 4 + 8) + 1 };
#define SIM_WINDOW_OF(byte, window)                                                                \
    "\x28\0\0\0\x12owner\0" byte "\0\0\0\0\0\0\0\x02window\0\x08\0\0\0" window "\0\0"

/* Its v; -1 for a value that neither function made. *padding may be NULL. */
int64_t sim_value_id(const spill_value_t *value, int *padding);

#endif
