/*
 * Which parts of a command mention the array of a served collection, or Spillway's bookkeeping. All
 * functions err on one side: what they do not know, they report as a mention of the whole document.
 */
#ifndef SPILL_GATEWAY_TRANSLATE_MENTION_H
#define SPILL_GATEWAY_TRANSLATE_MENTION_H

#include <bson/bson.h>

/* Bits of a result. */
#define SPILL_MENTIONS_ARRAY 1u
#define SPILL_MENTIONS_SPILL 2u
#define SPILL_MENTIONS_WHOLE 4u /* the document as a whole, or in a way that is not analyzed */
#define SPILL_MENTIONS_ANY 7u

/* Does the path lead to the field, or into it? */
bool spill_path_begins(const char *path, const char *field);

/* Does the path lead to the array, or to a document around it ("stats" of "stats.events")? */
bool spill_path_holds(const char *path, const char *array);

/* A path such as "activities.0.type"; also that of a document around the array. */
unsigned spill_mentions_in_path(const char *path, const char *array);

/* A query, as in `find`. Malformed BSON mentions everything. Cost: O(size). */
unsigned spill_mentions_in_filter(const bson_t *filter, const char *array);

/* A value of any type with expressions or stages of a pipeline. Cost: O(size). */
unsigned spill_mentions_in_value(const bson_iter_t *value, const char *array);
unsigned spill_mentions_in_document(const bson_t *document, const char *array);

/*
 * Find a top-level condition `_id: value` or `_id: {$eq: value}` of a filter. *id is at the value.
 * False: there is none, or two. An array, a regular expression and a document of operators are no
 * values.
 */
bool spill_filter_find_id(const bson_t *filter, bson_iter_t *id);

/* Does the filter consist of that condition alone? */
bool spill_filter_is_id(const bson_t *filter);

/* Does a stage of `pipeline` other than $match, $out and $merge name this collection? */
bool spill_pipeline_reads(const bson_t *body, const char *collection);

/* ---- values ---------------------------------------------------------------------------------- */

/* Is it a boolean or a number, as a projection's {F: 1}? */
bool spill_iter_is_flag(const bson_iter_t *iter);

/* Is it true, or a number other than 0? */
bool spill_iter_is_true(const bson_iter_t *iter);

/* What the value of a projection's field makes of the projection. */
typedef enum spill_projection {
    SPILL_PROJECTION_INCLUDES, /* 1, {a: 1}, or an expression: fields that it does not name are left
                                  out */
    SPILL_PROJECTION_EXCLUDES, /* 0, or {a: 0}: they stay */
    SPILL_PROJECTION_MATCHES,  /* $elemMatch of a find: they are left out if nothing else decides */
    SPILL_PROJECTION_NEUTRAL   /* $slice and $meta of a find: they stay if nothing else decides */
} spill_projection_t;

/* Cost: O(size). */
spill_projection_t spill_projection_of(const bson_iter_t *value);

/* Is the name in the list, which NULL ends? */
bool spill_is_one_of(const char *name, const char *const *names);

/* A static document at an iterator that holds a document or an array. */
bool spill_iter_document(const bson_iter_t *iter, bson_t *document);

#endif
