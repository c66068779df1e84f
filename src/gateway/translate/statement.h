/* A statement that changes documents, q and u of an update: what it does to the array. */
#ifndef SPILL_GATEWAY_TRANSLATE_STATEMENT_H
#define SPILL_GATEWAY_TRANSLATE_STATEMENT_H

#include "gateway/translate/served.h"

typedef enum spill_statement_kind {
    SPILL_STATEMENT_OTHER, /* fields other than the definition's */
    SPILL_STATEMENT_PUSH,  /* append elements to F, perhaps with changes of other fields */
    SPILL_STATEMENT_ARRAY, /* F in another way, or another field of the definition */
    SPILL_STATEMENT_SPILL  /* Spillway's bookkeeping: refused */
} spill_statement_kind_t;

/* Borrows from the command. */
typedef struct spill_statement {
    bson_t q, u;   /* static; u is an array for a pipeline */
    bson_t whole;  /* static: the statement's document; or empty */
    bool pipeline; /* u is one */
    bool upsert, multi;
    bool has_filters;    /* arrayFilters */
    bool has_context;    /* a collation, or the command's `let`: what q means depends on them */
    bool has_sort;       /* which of several documents is changed */
    unsigned q_mentions; /* mention.h */
    spill_statement_kind_t kind;
    const char *field;        /* SPILL_STATEMENT_ARRAY: what it changes */
    const char *operation;    /* ... and by which operator */
    const char *reason;       /* ... and what to do instead; NULL: nothing in particular */
    bool touches_other_field; /* it changes a field of the definition that is not F */
    bool replaces;            /* u is a document, not operators or a pipeline */
    bool ends;                /* operators that may set F to something that is no array */
    bson_iter_t values;       /* SPILL_STATEMENT_PUSH: at the array of $each, or at the one value */
    bool each;
    int64_t count; /* of these values */
} spill_statement_t;

/* Read the parts, which must stay in memory. False: one is malformed. `pipeline`: u is an array. */
bool spill_statement_read(const spill_served_collection_t *at, const bson_t *q, const bson_t *u,
                          bool pipeline, spill_statement_t *statement);

/* Does neither q nor u name F, another field of the definition, or `spill`? */
bool spill_statement_is_relayed(const spill_statement_t *statement);

/*
 * u without the push to F, without $setOnInsert, and without a $set of _id to the owner's (which
 * may be NULL: not known); `others` is initialized. False: nothing is left.
 */
bool spill_statement_others(const spill_statement_t *statement, const char *array,
                            const spill_value_t *owner, bson_t *others);

/* The size of the push's elements; at least 1. */
int64_t spill_statement_bytes(const spill_statement_t *statement);

/* The elements of the push, oldest first. Free them with bson_free; they borrow. */
spill_value_t *spill_statement_elements(const spill_statement_t *statement, bool newest_first);

#endif
