/*
 * scan: find the arrays that grow, in documents of any source. It reads every document of a source
 * once, in memory that does not depend on the number of documents, and reports its findings.
 *
 *   source -> inputs -> document source -> blocks -> workers: walk, table of paths
 *          -> merged tables -> findings
 *
 * The folder's files, in the order to read:
 *   scan.c      the inputs, the workers, and the collections of a scan
 *   inputs.c    the files of a source; document_source*.c read documents from each
 *   resync.c    find documents again behind damage
 *   walk.c      one pass over the bytes of a document; gathered.h keeps what it finds there
 *   outline.c   what a path's documents had, to recognize the next ones field by field, or whole
 *   paths.c     the table of paths
 *   times.c     the times of elements
 *   sketch.c    distributions, and the largest owners
 *   growth.c    how arrays grew
 *   forecast.c  how arrays may continue to grow (growth_forecast.c)
 *   shape.c     fields and indexes of a collection
 *   sprawl.c    groups of collections that have the same shape
 *   result.c    the result; findings.c derives the findings
 *   json.c      the result as JSON (json_paths.c, json_values.c)
 *   repeats.c   values that occur twice in an array
 *   plan.c      a plan for the findings (plan_import.c, plan_sprawl.c, plan_texts.c); plan_edit.c
 *               changes one
 */
#ifndef SPILL_TOOLS_SCAN_SCAN_H
#define SPILL_TOOLS_SCAN_SCAN_H

#include "tools/scan/paths.h"
#include "tools/scan/shape.h"

#include <spillway/store.h>

#include <stdatomic.h>
#include <stdio.h>

/* Defaults; see spill_scan_options_init. */
#define SPILL_SCAN_ELEMENTS 10000                    /* Atlas warns from here on, too */
#define SPILL_SCAN_BYTES (200 * 1024)                /* the head size at which thresholds aim */
#define SPILL_SCAN_DOCUMENT_LIMIT (16 * 1024 * 1024) /* of MongoDB and Azure DocumentDB */
#define SPILL_SCAN_PAID_PER_CENT 80
#define SPILL_SCAN_COLLECTIONS 1000 /* Azure DocumentDB's limit */

/*
 * The largest value of a scan's limits, counts, bytes and milliseconds, and of the program's
 * options. Small multiples of it do not overflow. Numbers read from a scan's JSON are checked.
 */
#define SPILL_SCAN_NUMBER_MAX (INT64_C(1) << 53)

#define SPILL_SCAN_SCHEMA 1 /* the version of the JSON document: docs/reference/scan-json.md */

#define SPILL_SCAN_PATHS_KEPT 100    /* of a collection */
#define SPILL_SCAN_PATHS_ALL 5000    /* of a scan; beyond, only paths over a threshold are kept */
#define SPILL_SCAN_PATHS_MOST 20000  /* of a scan, with these */
#define SPILL_SCAN_PROBLEMS_KEPT 100 /* of a scan; all are counted */

/* ---- results --------------------------------------------------------------------------------- */

/* A distribution in bins, for a plot. */
typedef struct spill_scan_histogram {
    spill_sketch_bin_t *bins; /* owned */
    size_t count;
} spill_scan_histogram_t;

/* A distribution. Quantiles are within SPILL_SKETCH_ERROR; the other figures are exact. */
typedef struct spill_scan_numbers {
    int64_t count;
    int64_t sum;
    int64_t min;
    int64_t p10;
    int64_t p50;
    int64_t p90;
    int64_t p99;
    int64_t p999;
    int64_t max;
    double mean;                      /* derived */
    spill_scan_histogram_t histogram; /* of lengths of arrays, and of sizes of documents */
} spill_scan_numbers_t;

/* An array, or a map (a sub-document that grows by keys), by its path. */
typedef struct spill_scan_path {
    char *path;
    bool map;
    int64_t documents; /* that have it; in a map an upper bound */
    spill_scan_numbers_t lengths;
    spill_scan_numbers_t elements; /* bytes of elements' values; of a map only the sum, with keys */
    int64_t bytes;                 /* of all its arrays */
    double share;                  /* derived: of the bytes of its collection */
    int64_t bytes_max;             /* in one document */
    int64_t document_max;  /* bytes of the largest document in which it is over a threshold */
    int64_t over_elements; /* documents over options.limits.elements */
    int64_t over_bytes;
    int64_t over_entries; /* documents over limits.elements / SPILL_SCAN_INDEX_PART */
    int64_t paid;
    int64_t threshold; /* elements that a head should hold, by their mean size; 0: no elements */
    char time_field[SPILL_TIMES_NAMES_SIZE]; /* the field of elements with their time */
    const char *time_type;                   /* "date", "text", "timestamp", "objectId", or NULL */
    /* A set: its elements are scalars, and no checked array has one twice (repeats.h). */
    bool set;
    int64_t set_arrays;                      /* that were checked, of two elements or more */
    bool set_sampled;                        /* the check did not see all elements */
    spill_growth_forecast_t growth_forecast; /* of all together; each owner has its own */
    spill_owners_t owners;
    spill_owners_t heaviest; /* by their bytes; without forecasts */
} spill_scan_path_t;

typedef struct spill_scan_collection {
    char *name;
    char *input; /* the file, or NULL */
    int64_t documents;
    int64_t bytes;
    spill_scan_numbers_t sizes; /* of documents */
    int64_t over_half;          /* documents over half of the limit */
    int64_t damaged;            /* documents that could not be read */
    spill_owners_t largest;
    spill_shape_t shape; /* empty if the result was read from JSON */
    spill_scan_indexes_t indexes;
    spill_scan_path_t *paths; /* by their bytes */
    size_t path_count;
    int64_t paths_left_out; /* smaller ones */
    int64_t overflow;       /* arrays and documents of paths for which the table had no room */
} spill_scan_collection_t;

/* Damage in the input. */
typedef struct spill_scan_problem {
    char *input;
    int64_t place; /* a byte or a line; -1: the whole input */
    bool by_line;
    char *text;
} spill_scan_problem_t;

/* X(name, Spillway's name, Atlas's name) */
#define SPILL_SCAN_FINDINGS(X)                                                                     \
    X(ARRAY, "unbounded-array", "AVOID_UNBOUNDED_ARRAY")                                           \
    X(MAP, "unbounded-map", "AVOID_UNBOUNDED_ARRAY")                                               \
    X(INDEX, "overgrown-index", "AVOID_UNBOUNDED_ARRAY")                                           \
    X(PAID, "paid-by-array", "REDUCE_DOCUMENT_SIZE")                                               \
    X(DOCUMENT, "large-document", "REDUCE_DOCUMENT_SIZE")                                          \
    X(SPRAWL, "collection-sprawl", "REDUCE_NUMBER_OF_NAMESPACES")

typedef enum spill_scan_finding_kind {
#define SPILL_SCAN_FINDING_ENUM(name, ours, atlas) SPILL_SCAN_FINDING_##name,
    SPILL_SCAN_FINDINGS(SPILL_SCAN_FINDING_ENUM)
#undef SPILL_SCAN_FINDING_ENUM
        SPILL_SCAN_FINDING_KINDS
} spill_scan_finding_kind_t;

typedef struct spill_scan_finding {
    spill_scan_finding_kind_t kind;
    bool critical;     /* a document is within a fifth of the limit, or past it; of a sprawl: the
                          number of collections is */
    size_t collection; /* of a sprawl: its first */
    const spill_sprawl_group_t *group; /* of a sprawl, else NULL */
    const spill_scan_path_t *path;     /* NULL: concerns the documents */
    const spill_scan_index_t *index;   /* the oversized index, or NULL */
    int64_t documents;                 /* concerned */
} spill_scan_finding_t;

const char *spill_scan_finding_name(spill_scan_finding_kind_t kind);
const char *spill_scan_finding_atlas(spill_scan_finding_kind_t kind);

/* ---- scanning -------------------------------------------------------------------------------- */

typedef struct spill_scan_progress {
    int64_t documents;
    int64_t documents_total; /* of a server; -1: unknown */
    int64_t bytes_done;      /* of the files */
    int64_t bytes_total;     /* -1: unknown */
} spill_scan_progress_t;

typedef struct spill_scan_options {
    /* A file, "-", a folder or an archive that mongodump made, or a server's URI with a database.
     */
    const char *source;
    const char *format; /* NULL: by the file's name */
    /* For a server: */
    /* these collections, separated by commas (NULL: all); */
    const char *only;
    int64_t sample;         /* a sample of this many documents of each (0: all); */
    int64_t rate;           /* at most this many per second (0: not limited); */
    const char *preference; /* as in store/raw_reader.h (NULL: the URI's) */
    bool partial;           /* of an embedded store: as in spill_store_options_t */
    spill_log_fn log;       /* of an embedded store: warnings; NULL: silent */
    spill_scan_limits_t limits;
    int64_t collections_max; /* SPILL_SCAN_COLLECTIONS */
    int threads;             /* 1 or 2 */
    bool ignore_outlines;    /* for tests: see spill_walker_ignore_outlines */
    atomic_bool *stop;       /* or NULL: once true, the scan ends with its results so far */
    void (*progress)(void *context, const spill_scan_progress_t *progress);
    void *context;
} spill_scan_options_t;

/* Set the defaults: two threads, no stop, no callbacks. The caller sets the source. */
void spill_scan_options_init(spill_scan_options_t *options);

typedef struct spill_scan {
    char *source; /* its name, if the result was read from JSON; else NULL */
    spill_scan_limits_t limits;
    spill_scan_collection_t *collections; /* in the order of the source */
    size_t collection_count;
    int64_t collections_max;        /* more collections are too many */
    spill_sprawl_t sprawl;          /* members are indexes of collections */
    spill_scan_finding_t *findings; /* critical ones first, then by collection */
    size_t finding_count;
    spill_scan_problem_t *problems;
    size_t problem_count; /* kept */
    int64_t problems_all;
    int64_t documents;
    int64_t bytes;
    bool interrupted;
    bool qualified;     /* collections' names begin with their database's and a dot */
    size_t paths_told;  /* paths in all collections */
    int64_t scanned_ms; /* time of the scan, in milliseconds since 1970; 0: unknown */
} spill_scan_result_t;

/*
 * Scan. *result is filled in every case, for spill_scan_release. Damage in the input is no error:
 * it is listed in result->problems. SPILL_NOT_FOUND, SPILL_INVALID, SPILL_DENIED, SPILL_IO: nothing
 * could be read. Memory: a few blocks of 1 MiB or of one document, and the tables.
 */
spill_code_t spill_scan(const spill_scan_options_t *options, spill_scan_result_t *result,
                        spill_error_t *error);
void spill_scan_release(spill_scan_result_t *result);

/*
 * Add to the forecasts what has come since an earlier scan of the same source: for paths by their
 * sums, for the owners that are among the largest in both by their lengths. If elements have no
 * times, the likely dates are computed from the pace between the two scans.
 */
void spill_scan_since(spill_scan_result_t *result, const spill_scan_result_t *earlier);

/* ---- for the files of the scan --------------------------------------------------------------- */

/* Add a collection from its table of paths; `name` and `input` (or NULL) are copied. */
void spill_scan_add_collection(spill_scan_result_t *result, const char *name, const char *input,
                               spill_paths_t *paths, int64_t damaged);

void spill_scan_add_problem(spill_scan_result_t *result, const char *input, bool by_line,
                            int64_t place, const char *text);

/* Fill result->sprawl from its collections. */
void spill_scan_find_sprawl(spill_scan_result_t *result);

/* Set what is derived from other fields: means, shares, dates that are past, paces of additions. */
void spill_scan_derive(spill_scan_result_t *result);

/* Fill result->findings from its collections and sprawl. */
void spill_scan_find(spill_scan_result_t *result);

/*
 * The name of a source for output: as it was `given`; for a server its address without a password.
 * `given` is NULL for a server whose URI stood elsewhere. Borrows from either argument.
 */
const char *spill_scan_shown_source(const spill_scan_result_t *result, const char *given);

/*
 * Write it as one JSON document (docs/reference/scan-json.md). `source` is its name, without a
 * password. Values that JSON cannot express are null.
 */
void spill_scan_write_json(const spill_scan_result_t *result, const char *source, FILE *to);

/*
 * Read from that file, or from stdin ("-"), what spill_scan_write_json wrote. Findings are computed
 * again, and problems are only counted. *result is filled in every case, for spill_scan_release.
 * SPILL_NOT_FOUND, SPILL_IO; SPILL_PARSE: the message names what is missing; SPILL_FORMAT: an
 * unknown version.
 */
spill_code_t spill_scan_read_json(const char *file, spill_scan_result_t *result,
                                  spill_error_t *error);

/* Report whether the file begins as such a document does. False if it cannot be read. */
bool spill_scan_is_json(const char *file);

#endif
