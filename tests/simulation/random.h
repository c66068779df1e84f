/* The seeded source of every choice that a simulation makes (splitmix64). */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sim_random {
    uint64_t state;
} sim_random_t;

static inline uint64_t sim_random_next(sim_random_t *random)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* 0 .. bound - 1 */
static inline int sim_random_below(sim_random_t *random, int bound)
{
    return (int)(((sim_random_next(random) >> 32) * (uint64_t)bound) >> 32);
}

/* low .. high, both included */
static inline int sim_random_between(sim_random_t *random, int low, int high)
{
    return low + sim_random_below(random, high - low + 1);
}

/* True in `parts` of 1000 cases. */
static inline bool sim_random_chance(sim_random_t *random, int parts)
{
    return sim_random_below(random, 1000) < parts;
}

#endif
