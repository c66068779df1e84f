/* The time that is left of work that counts its parts, smoothed for people. */
#ifndef SPILL_UTIL_ESTIMATE_H
#define SPILL_UTIL_ESTIMATE_H

#define SPILL_ESTIMATE_MOMENTS 8

typedef struct spill_estimate_moment {
    double seconds;
    double part;
} spill_estimate_moment_t;

/*
 * A zeroed one is ready for work that begins at 0 seconds with part 0. For other work, set `begin`.
 */
typedef struct spill_estimate {
    spill_estimate_moment_t begin; /* the beginning of the work, later the moment before `moved` */
    spill_estimate_moment_t moved[SPILL_ESTIMATE_MOMENTS]; /* when the part grew, newest last */
    int moments;
    double per_second; /* at the last call; 0: unknown */
    double left_s;     /* returned last; 0: none */
} spill_estimate_t;

/*
 * Estimate the seconds that are left at the time `seconds`, from the recent speed of `part` towards
 * `whole`: of about the last 15 seconds, or of the last three moves if they took longer. 0: not
 * known yet. Between two calls the result grows by at most half. It falls by at most half, unless
 * the speed has more than doubled: then the result is that of the new speed.
 */
double spill_estimate_left(spill_estimate_t *estimate, double seconds, double part, double whole);

/* A duration for people: "4.2 s", "85 s", "12 min", "5 h 20 min". */
typedef struct spill_duration_text {
    char text[48];
} spill_duration_text_t;
spill_duration_text_t spill_duration_text(double seconds);

#endif
