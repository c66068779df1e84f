/*
 * A TCP proxy between the driver and a server, in this process, that counts whole requests and
 * answers and can spoil them by a plan.
 *
 *     proxy_t *proxy = proxy_start(server_uri());
 *     char *uri = proxy_uri(proxy, database_uri);     // the same database, through the proxy
 *     ...
 *     proxy_counts_t before = proxy_counts(proxy);    // differences of two counts tell what a
 *     ...                                             // piece of work has cost at the wire
 *     proxy_set_plan(proxy, &plan);                   // from here on, faults
 *     ...
 *     proxy_stop(proxy);
 *
 * It listens on 127.0.0.1, has one thread for each connection, and takes whole messages before it
 * hands them on. What the driver sends on its own account (wire_is_driver_own) is neither counted
 * as requests nor spoilt. It does not speak TLS. Every function may be called from any thread.
 */
#ifndef TESTS_SUPPORT_PROXY_H
#define TESTS_SUPPORT_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct proxy proxy_t;

typedef enum proxy_fault {
    PROXY_PASS,        /* nothing is spoilt */
    PROXY_CUT_BEFORE,  /* the connection is cut, the server gets nothing of the request */
    PROXY_CUT_REQUEST, /* the server gets a part of the request */
    PROXY_CUT_AFTER,   /* the client loses the connection at once, the server gets the request */
    PROXY_CUT_REPLY,   /* the client gets a part of the answer, or nothing of it */
    PROXY_LATE,        /* as CUT_AFTER, but the server gets the request after a pause */
    PROXY_DELAY,       /* pauses before the request and before the answer */
    PROXY_FAULT_COUNT
} proxy_fault_t;

/*
 * How often each fault happens. The n-th connection draws its faults from n and the seed there was
 * when it was opened: the same seed brings the same faults, though not the same meetings of
 * threads.
 */
typedef struct proxy_plan {
    uint64_t seed;
    int rate[PROXY_FAULT_COUNT]; /* of 10 000 requests; PROXY_PASS is what remains */
    int64_t delay_us;            /* the longest pause of DELAY, before request and answer each */
    int64_t late_us;             /* the longest pause of LATE */
} proxy_plan_t;

/* What the server says to one request in the place of what it would say. */
typedef enum proxy_error {
    PROXY_NOT_DONE, /* it does not get the request; a write conflict, which changed nothing */
    PROXY_PERHAPS   /* it carries the request out; it was interrupted, perhaps before it did */
} proxy_error_t;

/* Each a value that rises for ever. Bytes are those of the messages, with their headers. */
typedef struct proxy_counts {
    int64_t requests; /* whole ones, as they come from clients, spoilt or not */
    int64_t request_bytes;
    int64_t replies; /* whole ones, as they come from the server */
    int64_t reply_bytes;
    int64_t own_requests; /* the driver's own; none of the above */
    int64_t own_replies;
    int64_t connections;
    int64_t faults[PROXY_FAULT_COUNT];
} proxy_counts_t;

/* Start a proxy to the first host of a URI. Stops the program where that fails. */
proxy_t *proxy_start(const char *uri);

/* Cut every connection and end every thread. NULL is allowed. */
void proxy_stop(proxy_t *proxy);

/*
 * A URI with the proxy in the place of its hosts and of its replica set, whose members the driver
 * would look for otherwise. Free with bson_free.
 */
char *proxy_uri(const proxy_t *proxy, const char *uri);

/* Spoil requests from now on, those of connections that are open already too; NULL: no more. */
void proxy_set_plan(proxy_t *proxy, const proxy_plan_t *plan);

proxy_counts_t proxy_counts(proxy_t *proxy);

/*
 * Answer request `at` from now (from 0) with an error. For one client at a time. proxy_spare ends
 * that; true: the request came.
 */
void proxy_answer(proxy_t *proxy, int64_t at, proxy_error_t error);
bool proxy_spare(proxy_t *proxy);

/* "cut before the request", ...; static. */
const char *proxy_fault_name(proxy_fault_t fault);

#endif
