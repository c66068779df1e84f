#include <spillway/definition.h>

int64_t spill_threshold(int64_t target_bytes, int64_t element_bytes)
{
    int64_t count = target_bytes / (element_bytes > 0 ? element_bytes : 1);
    int64_t unit = 1;
    while (count / unit >= 100)
        unit *= 10;
    count -= count % unit;
    return count > 0 ? count : 1;
}
