/*
 * plan: for each array that a scan found, the layout that fits, the reasons, and what it saves. A
 * plan is a proposal: a file that a person reads, edits and uses for the migration.
 *
 * Documents alone do not show whether elements are edited, which ones are read, and whether
 * statistics are wanted. The plan does not guess: its default serves all of these, and
 * `alternatives` says which layouts fit better under which conditions.
 */
#ifndef SPILL_TOOLS_SCAN_PLAN_H
#define SPILL_TOOLS_SCAN_PLAN_H

#include "tools/migrate/planned.h"
#include "tools/scan/scan.h"

/* Sentences; the list owns the texts. */
typedef struct spill_plan_texts {
    char **at;
    size_t count;
} spill_plan_texts_t;

/* The end of an array at which new elements come, according to their times. */
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
    bool possible;  /* the array can be reshaped; else `why` says what must be done first */
    bool migrate;   /* `spillway migrate` can do it, and it saves something; else see `why` */
    spill_definition_t definition;
    spill_planned_t planned; /* the same with the stages to it; set if `migrate` */
    spill_plan_texts_t why;
    spill_plan_texts_t alternatives;
    /*
     * Bytes of the largest document with the array: now, and afterwards at most. An append rewrites
     * this many bytes, and a query for the document's other fields reads them. Equal: nothing is
     * saved.
     */
    int64_t bytes_now, bytes_then;
    int64_t element_then; /* bytes of the element's own document, which an append writes as well */
    char *others;         /* what programs with other drivers may do afterwards; or NULL */
    char *detection;      /* an aggregation for the shell, to check the finding */
} spill_plan_item_t;

/* Collections that should become one, with a field that tells them apart: plan_sprawl.c. */
typedef struct spill_plan_group {
    const spill_scan_result_t *result;
    const spill_sprawl_group_t *sprawl; /* the result's */
    bool possible;                      /* else see `why` */
    char *into;
    char *field;       /* "customerId", "tenantId"... */
    size_t database;   /* bytes of each collection's name for its database's name and a dot */
    size_t head, tail; /* bytes of the rest before and behind the identifier */
    spill_plan_texts_t why;
} spill_plan_group_t;

typedef struct spill_plan {
    spill_plan_item_t *items; /* in the order of the findings */
    size_t count;
    spill_plan_group_t *groups; /* in the order of the findings */
    size_t group_count;
} spill_plan_t;

/*
 * Plan for each array and map that a finding names, and for each group of collections. The result
 * must outlive the plan. `target`: the bytes that a head is meant to have, by default
 * SPILL_SCAN_BYTES.
 */
spill_plan_t spill_plan_make(const spill_scan_result_t *result, int64_t target);
void spill_plan_release(spill_plan_t *plan);

/* Write it as one JSON document (docs/reference/plan-file.md), one field per line for editors. */
spill_code_t spill_plan_write_json(const spill_plan_t *plan, const char *source, FILE *to,
                                   spill_error_t *error);

/*
 * Print a plan's JSON text for an editor: one field or item per line, down to the fields of a
 * definition, and a newline at the end.
 */
void spill_plan_print_lines(const char *json, FILE *to);

/* ---- for the files of the plan --------------------------------------------------------------- */

/* Append a sentence. */
void spill_plan_say(spill_plan_texts_t *texts, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void spill_plan_release_texts(spill_plan_texts_t *texts);

/*
 * Name the definition and its fields after the collection and the array; names that the layout does
 * not need stay empty. Its name differs from the other names in the plan. False: a name would be
 * too long.
 */
bool spill_plan_put_names(const spill_plan_t *plan, spill_definition_t *definition,
                          const char *collection, const char *path);

/*
 * What other programs may do once an array is reshaped in place (docs/reference/allowed-writes.md).
 * `planned`: the layout that a migration in two stages copies it to; NULL: it stays in place. Free
 * the result with bson_free.
 */
char *spill_plan_other_writers(const spill_definition_t *definition,
                               const spill_definition_t *planned);

/* A string literal for the shell of the databases; free it with bson_free. */
char *spill_plan_quoted(const char *text, size_t size);

/*
 * Say how `import --elements` makes an array of a map, or of an array in elements, and how programs
 * change. `collection`: without its database.
 */
void spill_plan_say_import(spill_plan_item_t *item, const char *collection);

spill_plan_group_t spill_plan_make_group(const spill_scan_result_t *result,
                                         const spill_sprawl_group_t *sprawl);
void spill_plan_release_group(spill_plan_group_t *group);

/* The name of a collection of the group; if all are in one database, without its name. */
const char *spill_plan_group_member(const spill_plan_group_t *group, size_t member);

#endif
