/* The time that is left of work that counts its parts, smoothed for people. */
#ifndef SPILL_UTIL_ESTIMATE_H
#define SPILL_UTIL_ESTIMATE_H

/* A zeroed one is ready for work that begins at 0 seconds with part 0. */
typedef struct spill_estimate {
    double seconds;    /* of the last call */
    double part;       /* of the last call */
    double per_second; /* smoothed; 0: unknown */
    double left_s;     /* returned last; 0: none */
} spill_estimate_t;

/*
 * Estimate the seconds that are left at the time `seconds`, from the speed of `part` towards
 * `whole`. Between two calls the result changes by at most half. 0: not known yet.
 */
double spill_estimate_left(spill_estimate_t *estimate, double seconds, double part, double whole);

/* A duration for people: "4.2 s", "85 s", "12 min", "5 h 20 min". */
typedef struct spill_duration_text {
    char text[48];
} spill_duration_text_t;
spill_duration_text_t spill_duration_text(double seconds);

#endif
