/*
 * The minimum that a store must do, on the bare engine, through its C API and with the store's
 * options. To append, get the owner's header, and write it and the element in one batch. To read
 * the newest page, iterate over the header and twenty elements.
 */
#ifndef BENCH_RAW_H
#define BENCH_RAW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct raw raw_t;

raw_t *raw_open(const char *folder, bool sync);
void raw_close(raw_t *raw);

/* Append to owner number `owner`. Only one thread may do so at a time. */
void raw_append(raw_t *raw, int owner);

/* The same for any number of threads: the owner's lock is held across read, write and sync. */
void raw_append_locked(raw_t *raw, int owner);

/* Add an id to the owner's set, if an index does not have it. Only one thread may do so at a time.
 */
void raw_add(raw_t *raw, int owner, int64_t id);

/* Read the owner's newest page of `limit` elements, and copy them to the heap. */
void raw_newest_page(raw_t *raw, int owner, int limit);

#endif
