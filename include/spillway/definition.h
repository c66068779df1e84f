/**
 * \file
 * Definitions describe arrays.
 */
#ifndef SPILLWAY_DEFINITION_H
#define SPILLWAY_DEFINITION_H

#include <spillway/error.h>

#include <bson/bson.h>
#include <stdint.h>

/**
 * \defgroup spillway_definition Definitions
 * A definition describes one array and has a name: the layout, the collections and fields of the
 * documents, and their bounds. The store saves definitions, so every client uses the same one.
 *
 *     spill_definition_t feed;
 *     spill_definition_init(&feed, "feed");        // preset "feed-recent"
 *     feed.bounds.threshold = 100;
 *     spill_store_define(store, &feed, &error);
 * \{
 */

SPILL_BEGIN_DECLS

/** How an array is stored. */
typedef enum spill_layout {
    SPILL_LAYOUT_OUTLIER,   /**< a head, and pages for the elements that the head has no room for */
    SPILL_LAYOUT_REFERENCE, /**< one document for each element; the head has a summary of them */
    SPILL_LAYOUT_BUCKET,    /**< one document for each time window, with statistics: bucket.h */
    SPILL_LAYOUT_CAPPED,    /**< a head with the newest elements; appends delete older ones */
    SPILL_LAYOUT_SUBSET     /**< reference, with the best or newest elements in the summary */
} spill_layout_t;

/** Layout outlier: which elements stay in the head. */
typedef enum spill_keep {
    SPILL_KEEP_OLDEST, /**< the oldest stay; newer ones go to pages */
    SPILL_KEEP_NEWEST  /**< the newest stay; older ones move to pages */
} spill_keep_t;

/**
 * At which end of a document's array new elements are added. Sequence numbers and reads do not
 * depend on it.
 */
typedef enum spill_array_order {
    SPILL_ARRAY_OLDEST_FIRST, /**< new elements at the end: `$push` */
    SPILL_ARRAY_NEWEST_FIRST  /**< at the front: `$push` with `$position: 0` */
} spill_array_order_t;

/**
 * Layout bucket: the length of a window. An element belongs to a window by its time in UTC, or by
 * the string in one of its fields. The name of a window sorts in time order: "2026-03-05T10",
 * "2026-03-05", "2026-W10" (ISO 8601), "2026-03", "2026".
 */
typedef enum spill_window {
    SPILL_WINDOW_NONE,  /**< the layout is not bucket */
    SPILL_WINDOW_HOUR,  /**< "2026-03-05T10" */
    SPILL_WINDOW_DAY,   /**< "2026-03-05" */
    SPILL_WINDOW_WEEK,  /**< "2026-W10" */
    SPILL_WINDOW_MONTH, /**< "2026-03" */
    SPILL_WINDOW_YEAR,  /**< "2026" */
    SPILL_WINDOW_FIELD  /**< the string at window_source names the window */
} spill_window_t;

#define SPILL_NAME_SIZE 128 /**< most bytes of any name below, with its NUL */
#define SPILL_TOP_MAX 1000  /**< layout subset: most elements in the summary */

/** The element_id_field of presets, and of definitions that get layout reference or subset. */
#define SPILL_ELEMENT_ID_FIELD "elementId"

/** The bounds of documents. */
typedef struct spill_bounds {
    int64_t threshold;      /**< elements in a head before it spills (capped: the most); >= 1 */
    int64_t page_capacity;  /**< most elements in a page; >= 1; 0 if the layout has no pages */
    int64_t head_bytes_max; /**< most bytes of a head document, its other fields included */
    int64_t page_bytes_max; /**< most bytes of a page document; 0 if the layout has no pages */
} spill_bounds_t;

/**
 * A definition owns no memory: copy it freely. Start with spill_definition_init or a preset, and
 * then set fields. A field with the name "" is not written. While an array has elements, only its
 * bounds, op_window, keep_elements and keep_seconds may change (spill_definition_compatible).
 *
 * A path within an element is a field's name, or names with dots between them.
 */
typedef struct spill_definition {
    char name[SPILL_NAME_SIZE];            /**< the definition's own */
    spill_layout_t layout;                 /**< how the array is stored */
    spill_keep_t keep;                     /**< which elements stay in the head */
    spill_array_order_t order;             /**< of the arrays in heads and pages */
    spill_bounds_t bounds;                 /**< of its documents */
    int32_t op_window;                     /**< operation ids remembered for each owner; >= 1 */
    char collection[SPILL_NAME_SIZE];      /**< of the heads: "users" */
    char array[SPILL_NAME_SIZE];           /**< the head's array field: "activities" */
    char count_field[SPILL_NAME_SIZE];     /**< "activityCount", or "" */
    char overflow_field[SPILL_NAME_SIZE];  /**< "hasOverflow", "has_extras", or "" */
    char pages_field[SPILL_NAME_SIZE];     /**< "overflowPages", or "" */
    char page_collection[SPILL_NAME_SIZE]; /**< "overflowActivities" */
    char page_owner[SPILL_NAME_SIZE];      /**< "userId" */
    char page_number[SPILL_NAME_SIZE];     /**< "page", or "" */
    char page_array[SPILL_NAME_SIZE];      /**< "activities" */
    char page_count[SPILL_NAME_SIZE];      /**< "count", or "" */
    char id_field[SPILL_NAME_SIZE];        /**< the path of an element's id, ".": itself, or "" */
    char time_field[SPILL_NAME_SIZE];      /**< the path of an element's time, or "" */
    /**
     * Retention. An element stays if it is one of the newest keep_elements, or if its time is in
     * the last keep_seconds. With both 0 all elements stay. Elements are deleted from the oldest
     * on, up to the first one that stays (like spill_array_trim_keep and spill_array_trim_older).
     *
     * An append deletes them, after it has spilled or sealed a document. So nothing is deleted from
     * an owner without appends. If no writer dies, an owner with appends has at most
     * max(keep_elements, threshold) + page_capacity elements, and those of concurrent appends. (If
     * bytes fill its documents, the sum of the three values is the bound.)
     *
     * Which appends delete in other layouts:
     * - bucket: the append that creates a window's document. It deletes at most
     *   SPILL_BUCKET_RETAINED windows, like spill_bucket_trim_older. keep_elements is 0.
     * - reference: the append that makes the next sequence number pass a multiple of page_capacity.
     * - capped: every append keeps at most `threshold` elements; keep_elements is 0. keep_seconds
     *   deletes older ones at each multiple of an eighth of the threshold (below 16: at each
     *   append).
     */
    int64_t keep_elements;
    int64_t keep_seconds; /**< seconds; needs time_field */
    /**
     * Layouts reference and subset: an element is a document `{_id, page_owner, ...the element's
     * fields}` in page_collection. The head's field `array` is a document with the statistics that
     * the `stats_` fields below name. page_array, page_number, page_count, count_field,
     * overflow_field and pages_field are "".
     *
     * An append writes its elements into a journal in the head. When the journal has `threshold`
     * elements, an append moves them to documents, at most page_capacity at a time. A batch in one
     * piece has at most page_capacity elements, too.
     *
     * element_id_field: an element's document has an `_id` of Spillway's, so it stores the
     * element's own `_id` under this name. Reads return it as `_id`, at the same position. Elements
     * cannot have a field of this name. With "" elements cannot have an `_id`: definitions of older
     * versions have "".
     */
    char element_id_field[SPILL_NAME_SIZE]; /**< "elementId" */
    /** Layout bucket. Layouts reference and subset have value_field and `stats_` fields, too. */
    spill_window_t window;               /**< the length of a window */
    char window_field[SPILL_NAME_SIZE];  /**< "month": a document's field that names its window */
    char window_source[SPILL_NAME_SIZE]; /**< SPILL_WINDOW_FIELD: the path of the name; or "" */
    char value_field[SPILL_NAME_SIZE];   /**< the path of the number for statistics, or "" */
    char stats_field[SPILL_NAME_SIZE];   /**< "stats", or "": documents have no statistics */
    char stats_count[SPILL_NAME_SIZE];   /**< number of elements: "totalCount", or "" */
    char stats_average[SPILL_NAME_SIZE]; /**< "averageRating", or "" */
    char stats_sum[SPILL_NAME_SIZE];     /**< "sum", or "" */
    char stats_min[SPILL_NAME_SIZE];     /**< "min", or "" */
    char stats_max[SPILL_NAME_SIZE];     /**< "max", or "" */
    /**
     * Layout subset: the head's field top_field is an array of the top_count elements with the
     * highest ranks, the highest first. An element ranks by its value at sort_field: dates rank
     * above numbers (int32, int64, and double except NaN), and numbers above all other types, of
     * which decimal128 is one. Of two elements with equal values, the newer one ranks higher. With
     * an empty sort_field the newest elements rank highest. The array takes at most half of
     * head_bytes_max, so it has fewer elements if they are large. The other half is for the head's
     * other fields and its journal.
     *
     * Layout capped: with a sort_field, the head keeps the elements with the highest ranks instead
     * of the newest ones. threshold is then at most SPILL_TOP_MAX, top_field is "", and top_count
     * is 0. Appends delete elements without a rank first, so they refuse an element with a
     * decimal128 at sort_field. The head's other fields count towards head_bytes_max: the more they
     * grow, the fewer elements stay.
     */
    char top_field[SPILL_NAME_SIZE];  /**< "topReviews" */
    char sort_field[SPILL_NAME_SIZE]; /**< the path of "rating"; "": rank by age */
    int64_t top_count;                /**< 1 to SPILL_TOP_MAX */
    /**
     * Keep each id once: an append leaves out elements whose id the array has
     * (spill_append_result_t). Needs id_field. Layouts outlier with keep newest, reference and
     * subset. Each element must have an id, of any type but undefined and of any length, and an
     * edit cannot change it.
     */
    bool unique;
    spill_bounds_t largest; /**< set by the store: the highest value that each bound has had */
    int64_t reserved[8];    /**< 0: for fields of later versions */
} spill_definition_t;

/**
 * Make a definition with the values of preset "feed-recent" and a name.
 *
 * \param definition  becomes the definition
 * \param name        its name, shorter than SPILL_NAME_SIZE bytes. If it is too long, the
 *                    definition's name stays empty, and spill_definition_check() refuses it.
 * \null `definition` NULL: nothing happens. `name` NULL: the definition's name stays empty.
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_definition_init(spill_definition_t *definition, const char *name);

/**
 * Make a definition from a preset.
 *
 * - feed: an activity feed; the oldest 1000 elements stay in the head
 * - feed-recent: the same documents; the newest 1000 elements stay in the head
 * - sales: the example of the MongoDB manual; 50 elements in the head
 * - reviews-separate: product reviews in a collection of their own
 * - reviews-subset: the same, with the 3 best reviews by rating in the product
 * - reviews-bucket: product reviews by month, with statistics
 * - gateway: for `spillway serve`: heads have no fields besides the application's
 *
 * \param definition  becomes the definition
 * \param preset      the preset's name
 * \param name        the definition's name
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_NOT_FOUND (there is no such preset; the message lists them), SPILL_INVALID (the
 *         name is too long)
 * \cost none
 * \threads any number at once
 */
SPILL_API spill_code_t spill_definition_preset(spill_definition_t *definition, const char *preset,
                                               const char *name, spill_error_t *error);

/**
 * Change the layout. Fields that the layout does not have become empty or 0. Fields that it needs
 * and that are empty get the values of a preset: "feed-recent", "reviews-separate",
 * "reviews-bucket", and for the `top_` fields "reviews-subset". The bounds stay if the documents
 * keep their form: from outlier to capped, for example, but not from outlier to reference. Capped
 * gets SPILL_KEEP_NEWEST. `unique` becomes false if the layout cannot keep each id once. A bucket
 * needs a time_field (or a window of a field), which only the caller knows: set it before.
 *
 * \param definition  the definition
 * \param layout      the new layout
 * \null `definition` NULL: nothing happens
 * \errors none
 * \cost none
 * \threads one at a time for each definition
 */
SPILL_API void spill_definition_set_layout(spill_definition_t *definition, spill_layout_t layout);

/**
 * Return the names of the presets.
 *
 * \return a static array of names with NULL at its end
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API const char *const *spill_definition_presets(void);

/**
 * Check that the definition is complete, that its values are in range, and that no two fields have
 * the same name.
 *
 * \param definition  the definition
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_INVALID: the message names the wrong field
 * \cost none
 * \threads any number at once
 */
SPILL_API spill_code_t spill_definition_check(const spill_definition_t *definition,
                                              spill_error_t *error);

/**
 * Check that a definition may replace another one while the array has elements: only bounds,
 * op_window, keep_elements and keep_seconds may differ.
 *
 * \param now    the saved definition
 * \param next   the new one
 * \param error  filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_REFUSED (another field differs; the message has both values), SPILL_INVALID (one
 *         of them does not pass spill_definition_check())
 * \cost none
 * \threads any number at once
 */
SPILL_API spill_code_t spill_definition_compatible(const spill_definition_t *now,
                                                   const spill_definition_t *next,
                                                   spill_error_t *error);

/**
 * Check that both definitions may be in one store. Two arrays may have the same collection of
 * heads if their fields in the head (array, count, overflow, pages) have different names. A
 * collection of pages belongs to one definition and has no heads.
 *
 * \param definition  the new definition
 * \param other       one that the store has
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_REFUSED (the message names `other`, the conflict, and what to change in
 *         `definition`), SPILL_INVALID (one of them does not pass spill_definition_check())
 * \cost none
 * \threads any number at once
 */
SPILL_API spill_code_t spill_definition_beside(const spill_definition_t *definition,
                                               const spill_definition_t *other,
                                               spill_error_t *error);

/**
 * Convert a definition to a document.
 *
 * \param definition  the definition
 * \param document    is initialized; the caller destroys it with bson_destroy()
 * \null `definition` NULL: an empty document. `document` NULL: nothing happens.
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API void spill_definition_to_bson(const spill_definition_t *definition, bson_t *document);

/**
 * Convert a document to a definition.
 *
 * \param definition  becomes the definition
 * \param document    what spill_definition_to_bson() has made
 * \param error       filled after a failure
 * \return SPILL_OK, or the code of the failure
 * \null `error` may be NULL; else SPILL_INVALID
 * \errors SPILL_CORRUPT (a field is missing or out of range; the message names it), SPILL_FORMAT
 *         (this version does not know a field)
 * \cost none
 * \threads any number at once
 */
SPILL_API spill_code_t spill_definition_from_bson(spill_definition_t *definition,
                                                  const bson_t *document, spill_error_t *error);

/**
 * Compute a threshold: the number of elements that fit in a head, rounded down to two leading
 * digits and zeros. 200 KB and 200 B give 1000; 200 KB and 2 KB give 100.
 *
 * \param target_bytes   the size of a head in bytes
 * \param element_bytes  the average size of an element in bytes
 * \return a number of elements, at least 1
 * \errors none
 * \cost none
 * \threads any number at once
 */
SPILL_API int64_t spill_threshold(int64_t target_bytes, int64_t element_bytes);

SPILL_END_DECLS

/** \} */

#endif
