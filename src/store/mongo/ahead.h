/*
 * The read-ahead of walks: what ahead.c (heads) and ahead_pages.c (pages) share. Each function
 * needs the lock.
 */
#ifndef SPILL_STORE_MONGO_AHEAD_H
#define SPILL_STORE_MONGO_AHEAD_H

#include "store/mongo/mongo_document.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SPILL_AHEAD_PASSES = 16, /* at a time; another one takes the place of the oldest */
    SPILL_AHEAD_COLUMNS = 6, /* kinds of READs in a pass; others are not fetched ahead */
    SPILL_AHEAD_FIRST = 8,
    SPILL_AHEAD_MAX = 128,
    SPILL_AHEAD_BYTES = 1 << 20 /* of a fetch: then it ends with the document that it has got */
};

/* No answer that was fetched ahead is used any longer. */
#define SPILL_AHEAD_NEVER UINT64_MAX

typedef struct spill_ahead_answer {
    bool held;       /* fetched; a head: and not used */
    bool used;       /* a READ of this kind has been answered */
    uint64_t moment; /* of its fetch */
    bson_t *head;    /* NULL: there is none */
    bson_t **pages;  /* the pages with numbers in [0, count); NULL: there is none, or it was used */
    int64_t count;
    int64_t next; /* READs of pages with lower numbers have been answered */
} spill_ahead_answer_t;

/* The READs with one projection. */
typedef struct spill_ahead_column {
    bson_t *projection;
    bool pages;                    /* of pages, not of heads */
    spill_ahead_answer_t *answers; /* of each owner */
    size_t ahead;                  /* how many owners a fetch asks for */
    size_t rest;                   /* pages are too large: this number of READs is sent alone */
} spill_ahead_column_t;

/* The owners that one thread has listed last. */
typedef struct spill_ahead_pass {
    pthread_t thread;
    uint64_t began; /* 0: no pass */
    char definition[SPILL_NAME_SIZE];
    spill_listing_t owners;
    uint64_t *seen; /* of each owner: the moment of the answer that was used last, or NEVER */
    size_t at;      /* the owner of the last READ */
    spill_ahead_column_t columns[SPILL_AHEAD_COLUMNS];
    /* spill_ahead_column_t.ahead at the end of the thread's listing before */
    size_t ahead_before[SPILL_AHEAD_COLUMNS];
} spill_ahead_pass_t;

struct spill_mongo_ahead {
    pthread_mutex_t lock; /* guards the passes, but is not held during a command */
    atomic_bool any;      /* is there a pass? */
    uint64_t moment;      /* counts fetches and passes */
    spill_ahead_pass_t passes[SPILL_AHEAD_PASSES];
};

/* What to do with a READ. */
typedef enum spill_ahead_way {
    SPILL_AHEAD_ANSWERED, /* the answer was fetched before */
    SPILL_AHEAD_FETCH,    /* run the fetch first */
    SPILL_AHEAD_ALONE     /* no answer was fetched, and none will be */
} spill_ahead_way_t;

/* The calling thread's pass over the definition, or NULL. */
spill_ahead_pass_t *spill_ahead_pass(spill_mongo_ahead_t *ahead, const char *definition);

/* The owner's index in the pass, or the number of owners. */
size_t spill_ahead_index(const spill_ahead_pass_t *pass, const spill_value_t *owner);

/* The column of the projection; a new one if there is room; else NULL. */
spill_ahead_column_t *spill_ahead_column(spill_ahead_pass_t *pass, const bson_t *projection,
                                         bool pages);

/* Release what was fetched. */
void spill_ahead_forget(spill_ahead_answer_t *answer);

/* After a fetch of `bytes` bytes: set how many owners the next one asks for. */
void spill_ahead_adapt(spill_ahead_column_t *column, bool complete, size_t bytes);

#endif
