/*
 * A TCP proxy between the driver and a server, in this process. It counts whole requests and
 * answers, and injects faults by a plan.
 *
 *     proxy_t *proxy = proxy_start(server_uri());
 *     char *uri = proxy_uri(proxy, database_uri);     // the same database, through the proxy
 *     ...
 *     proxy_counts_t before = proxy_counts(proxy);    // subtract two counts: the requests
 *     ...                                             // and bytes of the work between them
 *     proxy_set_plan(proxy, &plan);                   // from here on, faults
 *     ...
 *     proxy_stop(proxy);
 *
 * It listens on 127.0.0.1, has one thread for each connection, and receives a whole message before
 * it forwards it. The driver's own requests (wire_is_driver_own) are counted apart and get no
 * faults. It does not speak TLS. Every function may be called from any thread.
 */
#ifndef TESTS_SUPPORT_PROXY_H
#define TESTS_SUPPORT_PROXY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct proxy proxy_t;

typedef enum proxy_fault {
    PROXY_PASS,        /* no fault */
    PROXY_CUT_BEFORE,  /* the proxy cuts the connection before the server gets any of the request */
    PROXY_CUT_REQUEST, /* the server gets only a part of the request */
    PROXY_CUT_AFTER,   /* the client loses the connection at once, the server gets the request */
    PROXY_CUT_REPLY,   /* the client gets a part of the answer, or none */
    PROXY_LATE,        /* as CUT_AFTER, but the server gets the request after a pause */
    PROXY_DELAY,       /* pauses before the request and before the answer */
    PROXY_FAULT_COUNT
} proxy_fault_t;

/*
 * How often each fault happens. The n-th connection draws its faults from n and from the seed at
 * the time when it was opened. The same seed repeats the faults, but not the interleaving of
 * threads.
 */
typedef struct proxy_plan {
    uint64_t seed;
    int rate[PROXY_FAULT_COUNT]; /* of 10 000 requests; PROXY_PASS has the rest */
    int64_t delay_us;            /* the longest pause of DELAY, before request and answer each */
    int64_t late_us;             /* the longest pause of LATE */
} proxy_plan_t;

/* The answer that the client gets instead of the server's. */
typedef enum proxy_error {
    PROXY_NOT_DONE, /* a write conflict that changed nothing; the server does not get the request */
    PROXY_PERHAPS   /* interrupted, perhaps before the change; the server carries the request out */
} proxy_error_t;

/* Counters that only rise. Bytes include the headers of messages. */
typedef struct proxy_counts {
    int64_t requests; /* whole requests from clients, with or without a fault */
    int64_t request_bytes;
    int64_t replies; /* whole answers from the server */
    int64_t reply_bytes;
    int64_t own_requests; /* the driver's own; none of the above */
    int64_t own_replies;
    int64_t connections;
    int64_t faults[PROXY_FAULT_COUNT];
} proxy_counts_t;

/* Start a proxy to the first host of a URI. Ends the program if that fails. */
proxy_t *proxy_start(const char *uri);

/* Cut every connection and end every thread. NULL is allowed. */
void proxy_stop(proxy_t *proxy);

/*
 * The URI with the proxy instead of its hosts, and without its replica set, because the driver
 * would connect to the members directly. Free with bson_free.
 */
char *proxy_uri(const proxy_t *proxy, const char *uri);

/* Inject faults from now on, in open connections too; NULL: no faults from now on. */
void proxy_set_plan(proxy_t *proxy, const proxy_plan_t *plan);

/* What the proxy keeps to itself until it may go on. */
typedef enum proxy_hold {
    PROXY_HOLD_NOTHING,
    PROXY_HOLD_REQUESTS, /* the server does not get them */
    PROXY_HOLD_REPLIES,  /* the server carries out the requests; the client gets no answer */
    PROXY_HOLD_ALL       /* HOLD_REQUESTS, also of the driver's own */
} proxy_hold_t;

/*
 * Let `pass` more requests pass, then hold. PROXY_HOLD_NOTHING lets everything go on that is held.
 * The connections stay open all the time.
 */
void proxy_hold(proxy_t *proxy, proxy_hold_t hold, int64_t pass);

proxy_counts_t proxy_counts(proxy_t *proxy);

/* The last request that was counted, as JSON (wire_command_text). Free with bson_free. */
char *proxy_last_request(proxy_t *proxy);

/*
 * Answer one request with an error: the next if `at` is 0, the one after it if `at` is 1, and so
 * on. For one client at a time. proxy_cancel_answer ends that, and returns whether the request
 * came.
 */
void proxy_answer(proxy_t *proxy, int64_t at, proxy_error_t error);
bool proxy_cancel_answer(proxy_t *proxy);

/* "cut before the request", ...; static. */
const char *proxy_fault_name(proxy_fault_t fault);

#endif
