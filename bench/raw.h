/*
 * The bare engine doing what a store has to do at least, through its C API and with the store's
 * options: to append, get the owner's header and write it with the element in one batch; to read
 * the newest page, iterate over the header and twenty elements.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdbool.h>

typedef struct raw raw_t;

raw_t *raw_open(const char *folder, bool sync);
void raw_close(raw_t *raw);

/* Append to owner number `owner`, which one thread at a time may do. */
void raw_append(raw_t *raw, int owner);

/* The same for any number of threads: the owner's lock is held across read, write and sync. */
void raw_append_locked(raw_t *raw, int owner);

/* Read the owner's newest page of `limit` into memory of its own. */
void raw_newest_page(raw_t *raw, int owner, int limit);

#endif
