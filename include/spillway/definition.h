/*
 * A definition: the named description of one array. It says where the head documents live, which
 * field holds the array, how long a head and a page may grow, and what the fields are called.
 * Definitions are saved in the store, so that every client finds the same one.
 */
#ifndef SPILLWAY_DEFINITION_H
#define SPILLWAY_DEFINITION_H

#include <spillway/error.h>

#include <bson/bson.h>
#include <stdint.h>

SPILL_BEGIN_DECLS

typedef enum spill_layout {
    SPILL_LAYOUT_OUTLIER,   /* a head, and pages for what it does not hold */
    SPILL_LAYOUT_REFERENCE, /* each element a document of its own; the head has a summary */
    SPILL_LAYOUT_BUCKET,    /* time windows with statistics: bucket.h */
    SPILL_LAYOUT_CAPPED,    /* a head with the newest elements; older ones are dropped for good */
    SPILL_LAYOUT_SUBSET     /* as reference; the summary has the best or newest elements, too */
} spill_layout_t;

/* Which end of the array an outlier layout keeps in the head. */
typedef enum spill_keep { SPILL_KEEP_OLDEST, SPILL_KEEP_NEWEST } spill_keep_t;

/*
 * At which end the documents' arrays grow. Where an element stands in its document is all that this
 * says: numbers, reads and everything else are the same.
 */
typedef enum spill_array_order {
    SPILL_ARRAY_OLDEST_FIRST, /* new elements at the end: `$push` */
    SPILL_ARRAY_NEWEST_FIRST  /* at the front: `$push` with `$position: 0` */
} spill_array_order_t;

/*
 * Layout bucket: which window an element lies in, by its time in UTC or by what a field says, as a
 * text that sorts in time order: "2026-03-05T10", "2026-03-05", "2026-W10" (ISO 8601), "2026-03",
 * "2026".
 */
typedef enum spill_window {
    SPILL_WINDOW_NONE, /* of another layout */
    SPILL_WINDOW_HOUR,
    SPILL_WINDOW_DAY,
    SPILL_WINDOW_WEEK,
    SPILL_WINDOW_MONTH,
    SPILL_WINDOW_YEAR,
    SPILL_WINDOW_FIELD /* the string at window_source */
} spill_window_t;

#define SPILL_NAME_SIZE 128 /* most bytes of any name below, with its NUL */
#define SPILL_TOP_MAX 1000  /* layout subset: most elements in the summary */

/* The element_id_field of presets, and of definitions that get layout reference or subset. */
#define SPILL_ELEMENT_ID_FIELD "elementId"

/*
 * The bounds of documents. They may change while the array lives, and so may op_window and what is
 * retained; everything else may not.
 */
typedef struct spill_bounds {
    int64_t threshold;      /* elements that a head is meant to hold (capped: the most); >= 1 */
    int64_t page_capacity;  /* most elements in a page; >= 1; 0 where there are no pages */
    int64_t head_bytes_max; /* most bytes of a head document, its other fields included */
    int64_t page_bytes_max; /* most bytes of a page document; 0 where there are no pages */
} spill_bounds_t;

/*
 * A plain value: copy it freely. Names that a preset leaves empty ("") are fields which that
 * source does not have, and none is written. Start from spill_definition_init or a preset.
 */
typedef struct spill_definition {
    char name[SPILL_NAME_SIZE]; /* of the definition itself */
    spill_layout_t layout;
    spill_keep_t keep;
    spill_array_order_t order; /* of the arrays in heads and pages */
    spill_bounds_t bounds;
    int32_t op_window;                     /* operation ids remembered for each owner; >= 1 */
    char collection[SPILL_NAME_SIZE];      /* of the heads: "users" */
    char array[SPILL_NAME_SIZE];           /* the head's array field: "activities" */
    char count_field[SPILL_NAME_SIZE];     /* "activityCount", or "" */
    char overflow_field[SPILL_NAME_SIZE];  /* "hasOverflow", "has_extras", or "" */
    char pages_field[SPILL_NAME_SIZE];     /* "overflowPages", or "" */
    char page_collection[SPILL_NAME_SIZE]; /* "overflowActivities" */
    char page_owner[SPILL_NAME_SIZE];      /* "userId" */
    char page_number[SPILL_NAME_SIZE];     /* "page", or "" */
    char page_array[SPILL_NAME_SIZE];      /* "activities" */
    char page_count[SPILL_NAME_SIZE];      /* "count", or "" */
    char id_field[SPILL_NAME_SIZE];        /* what names an element, a path within it, or "" */
    char time_field[SPILL_NAME_SIZE];      /* an element's time, a path within it, or "" */
    /*
     * Retention; 0: everything stays. The newest keep_elements elements stay, and those of the last
     * keep_seconds, by their time_field; what neither keeps goes, from the oldest on (as by
     * spill_array_trim_keep and spill_array_trim_older: by time, up to the first one that is not
     * older). No daemon does it, but the append that spills or seals a document, after it: so an
     * array has at most max(keep_elements, threshold) + page_capacity elements, those of racing
     * appends besides, while it is appended to and no writer dies (where bytes fill documents, up
     * to the sum of the three). What is not appended to stays.
     *
     * Layout bucket: keep_elements is 0; the append that makes a window or a part does, for its
     * owner, what spill_bucket_trim_older does, of SPILL_BUCKET_RETAINED windows at most. Layout
     * reference: the append does it that takes the numbers past a multiple of page_capacity. Layout
     * capped: the threshold is what is kept by number (keep_elements is 0); of these go the ones
     * that are older than keep_seconds. The append does it that takes the numbers past a multiple
     * of an eighth of the threshold (each append, with a threshold below 16).
     */
    int64_t keep_elements;
    int64_t keep_seconds; /* needs time_field */
    /*
     * Layout reference: elements are documents {_id, <page_owner>, <the element's own fields>} in
     * page_collection; page_array, page_number, page_count, count_field, overflow_field and
     * pages_field are "". The head's field `array` is a document with these statistics. An append
     * is noted in the head first; when `threshold` elements are, they are written out, at most
     * page_capacity at a time (which is also the largest batch in one piece).
     */
    /*
     * Layouts reference and subset: the field in which an element's document stores the element's
     * own `_id` (the document's `_id` is Spillway's). Reads return the field as `_id`, where it
     * stood. An element cannot have a field of this name itself. "": elements cannot have an `_id`;
     * so it is with definitions that were saved before this field existed.
     */
    char element_id_field[SPILL_NAME_SIZE]; /* "elementId" */
    /* Layout bucket has these, and besides them: */
    spill_window_t window;
    char window_field[SPILL_NAME_SIZE];  /* "month": a document's field that names its window */
    char window_source[SPILL_NAME_SIZE]; /* SPILL_WINDOW_FIELD: a path within an element; or "" */
    char value_field[SPILL_NAME_SIZE]; /* the number statistics are about, a path in an element, or
                                          "" */
    char stats_field[SPILL_NAME_SIZE]; /* "stats", or "": documents have no statistics */
    char stats_count[SPILL_NAME_SIZE]; /* how many elements: "totalCount", or "" */
    char stats_average[SPILL_NAME_SIZE]; /* "averageRating", or "" */
    char stats_sum[SPILL_NAME_SIZE];     /* "sum", or "" */
    char stats_min[SPILL_NAME_SIZE];     /* "min", or "" */
    char stats_max[SPILL_NAME_SIZE];     /* "max", or "" */
    /*
     * Layout subset: as reference, and the summary's field top_field is an array of the top_count
     * elements that rank highest, the highest first. Elements rank by what is at sort_field: dates
     * above numbers (int32, int64, double but NaN), and these above everything else; then by their
     * sequence number, the newer one higher, as they all do where sort_field is "". The elements in
     * the array take at most half of head_bytes_max: of larger ones there are fewer. That half is
     * set aside, so it is the other one that bounds the head's other fields and its journal.
     */
    /*
     * A decimal128 is not compared: in a subset it ranks as no value does.
     *
     * Layout capped: with a sort_field the head keeps the elements that rank highest, and not the
     * newest; top_field is "", top_count 0, and threshold at most SPILL_TOP_MAX. What does not rank
     * is dropped first, for good: so an element with a decimal128 at its sort_field is refused. The
     * head's other fields count towards head_bytes_max: as they grow, fewer elements may stay.
     */
    char top_field[SPILL_NAME_SIZE];  /* "topReviews" */
    char sort_field[SPILL_NAME_SIZE]; /* "rating", a path within an element; "": the newest */
    int64_t top_count;                /* 1 to SPILL_TOP_MAX; it does not change */
    spill_bounds_t largest;           /* the largest each bound has ever been (for verify) */
} spill_definition_t;

/*
 * A definition with the defaults of preset "feed-recent" and the given name. A name that does not
 * fit, or is NULL, stays empty, which spill_definition_check refuses.
 */
SPILL_API void spill_definition_init(spill_definition_t *definition, const char *name);

/*
 * Fill from a preset: "feed" (000 and 001: the oldest 1000 in the head), "feed-recent" (the same
 * documents, the newest 1000 in the head), "sales" (the MongoDB manual's example: 50 in the head),
 * "reviews-separate" (003's product reviews in a collection of their own),
 * "reviews-subset" (the same, and the 3 best in the product, by rating),
 * "reviews-bucket" (003's reviews by month, with their statistics).
 * SPILL_NOT_FOUND lists the presets.
 */
SPILL_API spill_code_t spill_definition_preset(spill_definition_t *definition, const char *preset,
                                               const char *name, spill_error_t *error);

/*
 * Make it a definition of that layout: what the layout does not have becomes empty or 0 (capped:
 * everything of pages, and it keeps the newest), what it needs and the definition has not comes
 * from preset "feed-recent" (subset: the names and number of its top elements from
 * "reviews-subset"; reference and subset: element_id_field is SPILL_ELEMENT_ID_FIELD).
 */
SPILL_API void spill_definition_set_layout(spill_definition_t *definition, spill_layout_t layout);

/* Names of the presets, ended by NULL. Static. */
SPILL_API const char *const *spill_definition_presets(void);

/* Is it complete and in range, with no two fields of one name? SPILL_INVALID says what is not. */
SPILL_API spill_code_t spill_definition_check(const spill_definition_t *definition,
                                              spill_error_t *error);

/*
 * May `next` take the place of `now` where there is data? Only bounds, op_window and what is
 * retained may differ;
 * SPILL_REFUSED names another field that does, with both values. SPILL_INVALID: one of them does
 * not pass the check.
 */
SPILL_API spill_code_t spill_definition_compatible(const spill_definition_t *now,
                                                   const spill_definition_t *next,
                                                   spill_error_t *error);

/*
 * May both be in one store? Two arrays on one collection of heads are fine where none of their
 * fields in the head (array, count, overflow, pages) has a name of the other's. A collection of
 * pages belongs to one definition and holds no heads. SPILL_REFUSED names `other`, what clashes,
 * and what to change in `definition`. SPILL_INVALID: one of them does not pass the check.
 */
SPILL_API spill_code_t spill_definition_beside(const spill_definition_t *definition,
                                               const spill_definition_t *other,
                                               spill_error_t *error);

/*
 * As a document, which the call initializes, and back. The document of NULL is empty. SPILL_CORRUPT
 * names a field that is missing or out of range; SPILL_FORMAT one that this version does not know.
 */
SPILL_API void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document);
SPILL_API spill_code_t spill_definition_from_bson(spill_definition_t *definition,
                                                  const bson_t *document, spill_error_t *error);

/*
 * Threshold arithmetic (001): how many elements of `element_bytes` on average fit in a head of
 * `target_bytes`, rounded down to a readable number: two leading digits and zeros. 200 KB and 200 B
 * give 1000; 200 KB and 2 KB give 100. At least 1.
 */
SPILL_API int64_t spill_threshold(int64_t target_bytes, int64_t element_bytes);

SPILL_END_DECLS

#endif
