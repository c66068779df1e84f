/*
 * plan: for each array that a scan found, the layout that fits, why, and what it saves. A plan is a
 * proposal: a file that a person reads, changes and hands to the migration.
 *
 * What documents alone cannot tell (whether elements are edited, which ones are read, whether
 * statistics are wanted) is not guessed: the default serves all of them, and `alternatives` says
 * what would fit better if.
 */
#ifndef SPILL_TOOLS_SCAN_PLAN_H
#define SPILL_TOOLS_SCAN_PLAN_H

#include "tools/planned.h"
#include "tools/scan/scan.h"

/* Sentences; the texts are owned. */
typedef struct spill_plan_texts {
    char **at;
    size_t count;
} spill_plan_texts_t;

/* The end of an array at which new elements come, by the times in its elements. */
typedef enum spill_plan_end {
    SPILL_PLAN_END_UNKNOWN,
    SPILL_PLAN_END_BACK,
    SPILL_PLAN_END_FRONT
} spill_plan_end_t;

typedef struct spill_plan_item {
    const spill_scan_collection_t *collection; /* the result's */
    const spill_scan_path_t *path;             /* the result's */
    spill_plan_end_t grows_at;
    bool qualified; /* the collection's name begins with its database's and a dot */
    bool possible;  /* the array can be laid out; else `why` says what has to be done first */
    bool migrate;   /* it can by `spillway migrate', and saves something; else `why` says */
    spill_definition_t definition;
    spill_planned_t planned; /* the same, and the way there: `migrate` alone */
    spill_plan_texts_t why;
    spill_plan_texts_t alternatives;
    /*
     * The largest document with it, in bytes; afterwards at most. An append rewrites as much, and
     * a query for the document's other fields reads as much. Equal: nothing is saved.
     */
    int64_t bytes_now, bytes_then;
    int64_t element_then; /* bytes of the element's own document, which an append writes as well */
    char *others;         /* what programs with other drivers may do afterwards; or NULL */
    char *detection;      /* an aggregation for the shell, to look for oneself */
} spill_plan_item_t;

/* Collections that are to become one, with a field that tells them apart: plan_sprawl.c. */
typedef struct spill_plan_group {
    const spill_scan_result_t *result;
    const spill_sprawl_group_t *sprawl; /* the result's */
    bool possible;                      /* else `why` says why not */
    char *into;
    char *field;       /* "customerId", "tenantId"... */
    size_t database;   /* so many bytes of each collection's name are its database's, and a dot */
    size_t head, tail; /* so many of the rest stand before and behind the identifier */
    spill_plan_texts_t why;
} spill_plan_group_t;

typedef struct spill_plan {
    spill_plan_item_t *items; /* in the order of the findings */
    size_t count;
    spill_plan_group_t *groups; /* likewise */
    size_t group_count;
} spill_plan_t;

/*
 * Plan for each array and map that a finding names, and each group of collections. The result has
 * to outlive the plan. `target` is how many bytes a head is meant to have, SPILL_SCAN_BYTES by
 * default.
 */
spill_plan_t spill_plan_make(const spill_scan_result_t *result, int64_t target);
void spill_plan_release(spill_plan_t *plan);

/* Write it as one JSON document (docs/reference/plan-file.md), a line a sentence, for an editor. */
void spill_plan_write_json(const spill_plan_t *plan, const char *source, FILE *to);

/* ---- in parts, for the plan itself ----------------------------------------------------------- */

/* Append a sentence. */
void spill_plan_say(spill_plan_texts_t *texts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void spill_plan_release_texts(spill_plan_texts_t *texts);

/*
 * Name the definition and its fields after the collection and the array; what the layout does not
 * have stays empty. Its name differs from those in the plan. False where one would be too long.
 */
bool spill_plan_put_names(const spill_plan_t *plan, spill_definition_t *definition,
                          const char *collection, const char *path);

spill_plan_group_t spill_plan_make_group(const spill_scan_result_t *result,
                                         const spill_sprawl_group_t *sprawl);
void spill_plan_release_group(spill_plan_group_t *group);
void spill_plan_write_group(const spill_plan_group_t *group, FILE *to);

/* "FIELD": [TEXT...], on lines of their own behind a comma. */
void spill_plan_write_texts(FILE *to, const char *field, const spill_plan_texts_t *texts);

#endif
