/*
 * The arrays and sub-documents of one collection, each by its path, with what is known of it. A
 * path is one whether its values are in one document or in a million; of an array's elements it is
 * the same for all. A sub-document with more than SPILL_PATH_CHILDREN_MAX arrays or documents of
 * different names is a map, whose values are one path.
 *
 *      products            the documents                 (root)
 *        versions          an array                      versions
 *          versions[]      documents in it               versions[]
 *        prices.*          what a map holds              prices.*
 *
 * Bounded: SPILL_PATHS_MAX paths. What has no room is counted in `overflow`.
 *
 * Until a map is known to be one, documents in which a path has something are counted for each of
 * its names. Of paths in maps such counts (documents, over_*, paid) may be too high by that, and
 * never higher than the map's own number of documents; all else is exact.
 *
 * When elements came is kept for the first SPILL_PATHS_GROWING paths with long arrays whose
 * elements have times; see growth.h.
 *
 * A table is one thread's; tables of parts merge to that of the whole.
 */
#ifndef SPILL_TOOLS_SCAN_PATHS_H
#define SPILL_TOOLS_SCAN_PATHS_H

#include "tools/scan/growth.h"
#include "tools/scan/owners.h"
#include "tools/scan/shape.h"
#include "tools/scan/sketch.h"
#include "tools/scan/times.h"

#define SPILL_PATHS_MAX 1000
#define SPILL_PATH_CHILDREN_MAX 128
#define SPILL_PATHS_GROWING 32
#define SPILL_PATH_NAME_MAX 255 /* names that are alike so far are one */

/* Fewer fields than this make no map: such a sub-document has a schema. */
#define SPILL_MAP_KEYS_MIN 64

/* What counts as much. */
#define SPILL_SCAN_INDEX_PART 10 /* of `elements` are too many entries of a document */

typedef struct spill_scan_limits {
    int64_t elements;       /* of an array, or keys of a map */
    int64_t bytes;          /* of a path in one document */
    int64_t document_bytes; /* the database's limit */
    int64_t paid_per_cent;  /* a document's other fields are paid for by an array with this share */
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
    char *name; /* "" of an array's elements and of a map's values */

    spill_sketch_t lengths;  /* elements of each array, fields of each document */
    spill_sketch_t elements; /* bytes of each element's value; arrays alone */
    int64_t documents;       /* that have it */
    int64_t bytes;           /* of all its arrays or documents */
    int64_t bytes_max;       /* in one document */
    int64_t document_max;    /* bytes of the largest document in which it is over a threshold */
    int64_t over_elements;   /* documents with a longer one */
    int64_t over_bytes;      /* documents with more of it */
    int64_t over_entries;    /* documents with more than an index should have of one */
    int64_t paid;            /* of these, documents of which it is the most part */
    spill_owners_t owners;   /* by the longest one of each document */
    spill_owners_t heaviest; /* by the bytes of all in each document; without histories */
    spill_times_rule_t times;
    spill_growth_t *growth; /* or NULL */
    spill_growth_forecast_t
        growth_forecast; /* of all owners' arrays together; see spill_paths_foresee */

    /* The document at hand. */
    bool touched;
    int64_t here_bytes;
    uint32_t here_length; /* of the longest */
    uint32_t here_size;
    uint32_t here_at; /* where it stands in the document */
};

typedef struct spill_paths {
    spill_scan_limits_t limits;
    spill_path_t *root;
    spill_path_t *overflow; /* stands for all that have no room */
    spill_path_t **nodes;   /* by index */
    uint32_t *moved;        /* by index: to which index a path that went up in a map has moved */
    uint32_t node_count;
    uint32_t node_capacity;
    uint32_t live; /* paths there are */
    uint32_t *touched;
    uint32_t touched_count;
    uint32_t touched_capacity;
    spill_sketch_t sizes;    /* of the documents */
    spill_shape_t shape;     /* of the documents */
    spill_owners_t largest;  /* documents */
    int64_t over_document;   /* documents over half of the limit */
    uint32_t growing;        /* paths with a growth */
    spill_history_t history; /* of the array at hand */
} spill_paths_t;

void spill_paths_init(spill_paths_t *paths, const spill_scan_limits_t *limits);
void spill_paths_release(spill_paths_t *paths);

/*
 * The path of a value of `parent`: of `name` in a document, of an element (no name) in an array.
 * `hint` (or NULL) is the child of the field before: its successor is looked at first. Never NULL.
 * May end the lives of other children of `parent`, whose indexes stay good.
 */
spill_path_t *spill_path_child(spill_paths_t *paths, spill_path_t *parent, spill_path_t *hint,
                               spill_path_kind_t kind, const char *name, size_t name_size);

static inline spill_path_t *spill_paths_at(const spill_paths_t *paths, uint32_t index)
{
    while (paths->moved[index] != index)
        index = paths->moved[index];
    return paths->nodes[index];
}

/* An array or document of this path in the document at hand, which begins at `document`. */
void spill_paths_add(spill_paths_t *paths, uint32_t index, uint32_t length, uint32_t size_bytes,
                     const uint8_t *document, uint32_t at);

/* Elements of an array of this path. */
void spill_paths_add_elements(spill_paths_t *paths, uint32_t index, uint32_t size_bytes,
                              uint32_t times);

/* The document at hand is whole. */
void spill_paths_end_document(spill_paths_t *paths, const uint8_t *document, uint32_t size_bytes,
                              const spill_value_t *owner, int64_t place);

/* Add what another table knows, which is of the same limits and between two documents. */
void spill_paths_merge(spill_paths_t *into, spill_paths_t *from);

/*
 * All documents were seen by `scan_ms` (now, in milliseconds since 1970): find out how long each
 * path's largest owners and all its arrays together have until the limits. What that was learned
 * from is given back. Some milliseconds for each growing path.
 */
void spill_paths_foresee(spill_paths_t *paths, int64_t scan_ms);

/* A count of documents of a path (see above), no higher than it can be. */
int64_t spill_path_documents(const spill_path_t *path, int64_t count);

/* "affected[].versions", "prices.*", names as in JSON where they would be unclear; cut to fit. */
void spill_path_text(const spill_path_t *path, char *text, size_t size);

#endif
