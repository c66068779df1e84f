#include "store/limits.h"

bool spill_limits_allow(const spill_limits_t *limits, int64_t slots, int64_t live, int64_t bytes)
{
    int64_t bytes_max = live == 1 ? SPILL_DOCUMENT_BYTES_MAX : limits->bytes_max;
    return slots <= limits->slots_max && bytes <= bytes_max;
}
