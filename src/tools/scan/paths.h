/*
 * What a scan keeps of a collection's documents: the arrays and sub-documents by their paths, the
 * times of elements, and the walk over a document's bytes that finds them.
 */
#ifndef SPILL_TOOLS_SCAN_PATHS_H
#define SPILL_TOOLS_SCAN_PATHS_H

#include "bson/value.h"
#include "tools/scan/forecast.h"
#include "tools/scan/growth.h"
#include "tools/scan/outline.h"
#include "tools/scan/repeats.h"
#include "tools/scan/shape.h"
#include "tools/scan/sketch.h"

#include <spillway/value.h>

#include <stdbool.h>

/* ---- times of elements ----------------------------------------------------------------------- */

/*
 * The times of an array's elements, from the elements themselves: from a date; or else a text that
 * is a date or a date with a time (util/clock.h); or else a timestamp; or else an ObjectId. The
 * first elements of a path decide on its field, so that all elements are read alike.
 */

/* Names on the way from an element to its time; none if the element is the time itself. */
#define SPILL_TIMES_DEPTH_MAX 3
#define SPILL_TIMES_NAMES_SIZE 96

/* Zero it to begin. */
typedef struct spill_times_rule {
    uint8_t type; /* BSON_TYPE_DATE_TIME, _UTF8, _TIMESTAMP or _OID; 0: none was found so far */
    uint8_t depth;
    uint8_t tries;                      /* arrays that were searched */
    char names[SPILL_TIMES_NAMES_SIZE]; /* `depth` names, each ended by NUL */
} spill_times_rule_t;

/* Report whether both are the same rule. */
bool spill_times_same(const spill_times_rule_t *left, const spill_times_rule_t *right);

/* Report whether the rule is still to be learned. */
bool spill_times_open(const spill_times_rule_t *rule);

/* Search the first elements of the array or map at `data`, which is well-formed, for a time. */
void spill_times_learn(spill_times_rule_t *rule, const uint8_t *data);

/*
 * Times that the walk read from elements that a template recognized, so that they need not be
 * searched again. Of one document: each series has elements in succession of one array. If there
 * is no room, the rest of the times is searched.
 */
enum { SPILL_TIMES_KEPT = 32768, SPILL_TIMES_SERIES = 16 };

typedef struct spill_times_series {
    const uint8_t *from; /* the first element */
    const uint8_t *to;   /* behind the last one */
    uint32_t first;      /* in `times_ms`; the next series begins where this one ends */
    uint32_t count;
    spill_times_rule_t rule;
} spill_times_series_t;

/* Set `series_count` and `count` to 0 for each document. */
typedef struct spill_times_kept {
    uint32_t series_count;
    uint32_t count;
    spill_times_series_t series[SPILL_TIMES_SERIES]; /* in the order of the document */
    int64_t times_ms[SPILL_TIMES_KEPT];
} spill_times_kept_t;

/* Read a date, a timestamp or an ObjectId as a time. */
int64_t spill_times_decode(uint8_t type, const uint8_t *data);

/* The documents at one depth of the way from an element to its time. */
typedef struct spill_times_step {
    const spill_outline_t *outline; /* NULL: none */
    uint64_t wanted;                /* bit i: the outline's field i has the rule's name */
} spill_times_step_t;

/* The elements' times in the order of the array. */
typedef struct spill_times {
    const spill_times_rule_t *rule;
    spill_fields_t elements;
    spill_times_step_t steps[SPILL_TIMES_DEPTH_MAX];
    const spill_template_t *template; /* of the elements, or NULL */
    spill_template_place_t place;     /* of the time in the template */
    const spill_times_kept_t *kept;   /* or NULL */
    uint32_t series;                  /* of `kept`: the first that was not passed */
} spill_times_t;

/*
 * Begin with the array or map at `data`, which is well-formed; borrows all. `outline`: of the
 * elements that are documents, or NULL; the times are found faster with it. `kept`: of the document
 * around it, or NULL.
 */
spill_times_t spill_times_of(const spill_times_rule_t *rule, const uint8_t *data,
                             const spill_outline_t *outline, const spill_times_kept_t *kept);

/*
 * Read the next element: false at the end. *known: it has a time, in *time_ms, in milliseconds
 * since 1970.
 */
bool spill_times_next(spill_times_t *times, bool *known, int64_t *time_ms);

/*
 * Pass the next elements if their times were kept, and return these times; all of them are known.
 * NULL: pass the next element with spill_times_next.
 */
const int64_t *spill_times_pass_kept(spill_times_t *times, uint32_t *count);

/* "at", "meta.at", or "" for the elements themselves; cut to fit. */
void spill_times_field(const spill_times_rule_t *rule, char *text, size_t size);

/* ---- paths ----------------------------------------------------------------------------------- */

/*
 * The arrays and sub-documents of one collection, each by its path. A path stands for the values of
 * all documents, and for all elements of an array. A sub-document with more than
 * SPILL_PATH_CHILDREN_MAX arrays or documents of different names is a map: its values share one
 * path.
 *
 *      products            the documents                 (root)
 *        versions          an array                      versions
 *          versions[]      documents in it               versions[]
 *        prices.*          the values of a map           prices.*
 *
 * Bounded: SPILL_PATHS_MAX paths. Values of further paths are counted in `overflow`.
 *
 * Until a map is recognized, each of its names counts the documents with a value there. So for
 * paths in maps such counts (documents, over_*, paid) may be too high, but never higher than the
 * map's own number of documents. All other numbers are exact.
 *
 * The times of elements are kept for the first SPILL_PATHS_GROWING paths with long arrays, if their
 * elements have times; see growth.h.
 *
 * Each thread has a table of its own; the tables are merged into one for the whole collection.
 */

#define SPILL_PATHS_MAX 1000
#define SPILL_PATH_CHILDREN_MAX 128
#define SPILL_PATHS_GROWING 32
#define SPILL_PATH_NAME_MAX 255 /* longer names that begin with the same bytes are one */

/* A sub-document with fewer fields than this is no map: it has a schema. */
#define SPILL_MAP_KEYS_MIN 64

/* The limits of findings. */
#define SPILL_SCAN_INDEX_PART 10 /* `elements` over this: too many index entries of a document */

typedef struct spill_scan_limits {
    int64_t elements;       /* of an array, or keys of a map */
    int64_t bytes;          /* of a path in one document */
    int64_t document_bytes; /* the database's limit */
    int64_t paid_per_cent;  /* from this share on, an array makes readers pay for its document */
} spill_scan_limits_t;

typedef enum spill_path_kind { SPILL_PATH_DOCUMENT, SPILL_PATH_ARRAY } spill_path_kind_t;

typedef struct spill_path spill_path_t;

struct spill_path {
    spill_path_t *parent; /* NULL: the documents themselves */
    spill_path_t *children;
    spill_path_t *last_child;
    spill_path_t *next; /* of the parent's children */
    uint32_t child_count;
    uint32_t index; /* spill_paths_at */
    spill_path_kind_t kind;
    bool map; /* its children have no names */
    uint32_t name_size;
    char *name; /* "" for an array's elements and a map's values */

    spill_sketch_t lengths;  /* elements of each array, fields of each document */
    spill_sketch_t elements; /* bytes of each element's value; only for arrays */
    int64_t documents;       /* that have it */
    int64_t bytes;           /* of all its arrays or documents */
    int64_t bytes_max;       /* in one document */
    int64_t document_max;    /* bytes of the largest document in which it is over a threshold */
    int64_t over_elements;   /* documents with one longer than limits.elements */
    int64_t over_bytes;      /* documents with more bytes of it than limits.bytes */
    int64_t over_entries;    /* documents with more elements than an index should have entries */
    int64_t paid;            /* of over_bytes, documents that consist mostly of it */
    spill_owners_t owners;   /* by the longest array of each document */
    spill_owners_t heaviest; /* by the bytes of all its arrays in each document; no histories */
    spill_times_rule_t times;
    spill_repeats_t repeats; /* of the longest array of each document */
    spill_growth_t *growth;  /* or NULL */
    spill_growth_forecast_t
        growth_forecast;     /* of all owners' arrays together; see spill_paths_foresee */
    spill_outline_t outline; /* of its documents; empty for arrays and maps */

    /* In the current document. */
    bool touched;
    int64_t here_bytes;
    uint32_t here_length; /* of the longest one */
    uint32_t here_size;
    uint32_t here_at; /* its offset in the document */
};

typedef struct spill_paths {
    spill_scan_limits_t limits;
    spill_path_t *root;
    spill_path_t *overflow; /* stands for all paths that have no room */
    spill_path_t **nodes;   /* by index */
    uint32_t *moved;        /* by index: the index of the map's path that has absorbed it */
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t live; /* paths in the tree */
    uint32_t *touched;
    uint32_t touched_count;
    uint32_t touched_capacity;
    spill_sketch_t sizes;           /* of the documents */
    spill_shape_t shape;            /* of the documents */
    spill_owners_t largest;         /* documents */
    int64_t over_document;          /* documents over half of the limit */
    uint32_t growing;               /* paths with a growth */
    spill_history_t history;        /* of the current array */
    spill_repeats_table_t *repeats; /* the walker's; or NULL */
    const spill_times_kept_t *kept; /* of the current document; or NULL */
} spill_paths_t;

void spill_paths_init(spill_paths_t *paths, const spill_scan_limits_t *limits);
void spill_paths_release(spill_paths_t *paths);

/*
 * Find or create the path of a value in `parent`: a field with `name` of a document, or an element
 * (no name) of an array. `hint` (or NULL) is the child of the previous field: its successor is
 * tried first. Never NULL. May free other children of `parent`; their indexes stay valid.
 */
spill_path_t *spill_path_child(spill_paths_t *paths, spill_path_t *parent, spill_path_t *hint,
                               spill_path_kind_t kind, const char *name, size_t name_size);

static inline spill_path_t *spill_paths_at(const spill_paths_t *paths, uint32_t index)
{
    while (paths->moved[index] != index)
        index = paths->moved[index];
    return paths->nodes[index];
}

/*
 * Arrays or documents of one path and one length in the current document. Arrays, and documents
 * with SPILL_MAP_KEYS_MIN fields or more, are added one by one.
 */
typedef struct spill_path_values {
    uint32_t path; /* an index: a map may absorb the path meanwhile */
    uint32_t length;
    uint32_t count;
    uint32_t size_max;    /* bytes of the largest, the first one of several */
    uint32_t size_max_at; /* its offset in the document */
    uint64_t bytes;       /* of all */
} spill_path_values_t;

/* Add values of the current document, which begins at `document`. */
void spill_paths_add(spill_paths_t *paths, const spill_path_values_t *values,
                     const uint8_t *document);

/* Add elements of an array of this path. */
void spill_paths_add_elements(spill_paths_t *paths, uint32_t index, uint32_t size_bytes,
                              uint32_t times);

/* End the current document, which was read completely. */
void spill_paths_end_document(spill_paths_t *paths, const uint8_t *document, uint32_t size_bytes,
                              const spill_value_t *owner, int64_t place);

/* Add another table, which has the same limits; both must be between two documents. */
void spill_paths_merge(spill_paths_t *into, spill_paths_t *from);

/*
 * Forecast how long each path's largest owners have until the limits, and how all its arrays
 * together grow. Call it after all documents, at `scan_ms` (now, in milliseconds since 1970). Frees
 * the histories. Some milliseconds per growing path.
 */
void spill_paths_foresee(spill_paths_t *paths, int64_t scan_ms);

/* Reduce a count of a path's documents (see above) to its highest possible value. */
int64_t spill_path_documents(const spill_path_t *path, int64_t count);

/* "affected[].versions", "prices.*", with JSON quotes around unclear names; cut to fit. */
void spill_path_text(const spill_path_t *path, char *text, size_t size);

/* ---- the walk over a document ---------------------------------------------------------------- */

/*
 * One pass over the bytes of a BSON document: find its arrays and sub-documents, and add them to a
 * table of paths. Every byte is checked before it is used: lengths, terminators, types, texts. No
 * memory is allocated per field. A damaged document leaves no trace in the table.
 */

typedef struct spill_walker spill_walker_t;

/* One thread's. NULL may be freed. */
spill_walker_t *spill_walker_new(void);
void spill_walker_free(spill_walker_t *walker);

/* Read each field without the outlines of paths, for tests: the results are the same. */
void spill_walker_ignore_outlines(spill_walker_t *walker);

typedef struct spill_walk {
    spill_value_t id; /* the _id; data NULL: it has none. Borrows from the document. */

    /* The damage, if the document is not BSON, and its offset. NULL: it is BSON. */
    const char *damage;
    size_t damage_at;

    /* A flaw in valid BSON: a bad text, or too deep nesting. The document counts all the same.
     * NULL: none. */
    const char *flaw;
    size_t flaw_at; /* of the first flaw */
} spill_walk_t;

/*
 * Walk the document of `size` bytes at `data`, which may be any bytes, and add it to the table if
 * it is not damaged. `place` is its place in the input. O(size).
 */
void spill_walk(spill_walker_t *walker, spill_paths_t *paths, const uint8_t *data, size_t size,
                int64_t place, spill_walk_t *result);

/* Report whether these bytes are exactly one document. Needs no table. O(size). */
bool spill_walk_check(const uint8_t *data, size_t size);

#endif
