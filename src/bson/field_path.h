/*
 * Paths of fields in documents: names with '.' between them, through documents and never through
 * arrays ("stats.events"). A name without '.' is the path of a top-level field.
 */
#ifndef SPILL_BSON_FIELD_PATH_H
#define SPILL_BSON_FIELD_PATH_H

#include <bson/bson.h>
#include <stdbool.h>
#include <stddef.h>

/* Is `name` the path itself, or a document on the way to it? */
bool spill_starts_with_part(const char *path, const char *name);

/* Does one path name the other's field, or a document around it? */
bool spill_paths_overlap(const char *left, const char *right);

/* The last name of a path: "events". */
const char *spill_path_leaf(const char *path);

/*
 * The end of the next document on the way to the field: 5 for "stats" in "stats.events"; 0 if there
 * is none. Start with length 0.
 */
size_t spill_path_next_parent(const char *path, size_t length);

/* Find the field at the path. O(fields on the way). */
bool spill_path_find(const bson_t *document, const char *path, bson_iter_t *found);

/*
 * Return true if the path goes through a value that is not a document. *length becomes the length
 * of the path to that value, *type its type.
 */
bool spill_path_blocked(const bson_t *document, const char *path, size_t *length,
                        bson_type_t *type);

/* Append to `to` the document without the fields at these paths. Documents around them stay. */
void spill_document_exclude(const bson_t *document, const char *const *paths, size_t count,
                            bson_t *to);

/*
 * Append to `to` the document with the fields of `leaves`. Their names are paths that do not
 * overlap. A leaf is appended to its parent document, behind the parent's other fields; a missing
 * parent is made at the end. A field that the document has at the path of a leaf is replaced. The
 * caller has checked that no path is blocked.
 */
void spill_document_merge(const bson_t *document, const bson_t *leaves, bson_t *to);

/* Append to `to` the document with every parent of the path, empty if it was missing. */
void spill_document_add_parents(const bson_t *document, const char *path, bson_t *to);

/* Append to `to` the document without those parents of the paths that are empty documents. */
void spill_document_prune(const bson_t *document, const char *const *paths, size_t count,
                          bson_t *to);

#endif
