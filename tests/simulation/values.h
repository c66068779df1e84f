/*
 * The elements of a simulation. Every append and most edits use values that were never used before,
 * so that a value identifies its origin. Each element also has an id, which several elements share,
 * and a time.
 */
#ifndef SIM_VALUES_H
#define SIM_VALUES_H

#include <spillway/value.h>

#include <stdbool.h>
#include <stdint.h>

#define SIM_PADDING_MAX 1200

/* The fields of an element that hold its id, value and time. */
#define SIM_ID_FIELD "at.k"
#define SIM_TIME_FIELD "t"
#define SIM_VALUE_FIELD "v" /* the field that an array sums */

/* How many ids there are: elements with value v have the id v % SIM_IDS. */
#define SIM_IDS 5

/* The time of an element with value v. An edit may give an early element a late time. */
static inline int64_t sim_value_time_ms(int64_t value)
{
    return value * 1000;
}

/* Memory for a value; the value is valid as long as this. */
typedef struct sim_value_bytes {
    uint8_t bytes[SIM_PADDING_MAX + 96];
} sim_value_bytes_t;

/* Make {v: int64, at: {k: int32}, t: date}, and `padding` bytes of binary data. */
spill_value_t sim_value_make(sim_value_bytes_t *bytes, int64_t id, int padding);

/*
 * Make a document of a bucket: a time in the first or the second window, the id, the padding, and
 * for most ids a value.
 */
spill_value_t sim_value_make_document(sim_value_bytes_t *bytes, int64_t id, int padding,
                                      bool second);

#define SIM_WINDOW "1970-01"
#define SIM_SECOND_WINDOW "1970-02"

/* Make {owner: int64, window} as bytes. */
enum { SIM_WINDOW_BYTES = 4 + (1 + 6 + 8) + (1 + 7 + 4 + 8) + 1 };
#define SIM_WINDOW_OF(byte, window)                                                                \
    "\x28\0\0\0\x12owner\0" byte "\0\0\0\0\0\0\0\x02window\0\x08\0\0\0" window "\0\0"

/* Return the value's v, or -1 if neither function made it. *padding may be NULL. */
int64_t sim_value_id(const spill_value_t *value, int *padding);

#endif
