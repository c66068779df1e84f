/* Views that read a collection with a definition: they would return heads without their pages. */
#ifndef SPILL_GATEWAY_TRANSLATE_VIEWS_H
#define SPILL_GATEWAY_TRANSLATE_VIEWS_H

#include <bson/bson.h>

typedef struct spill_served_view {
    char *name;
    const char *collection; /* which it reads, perhaps through other views. Borrowed */
} spill_served_view_t;

/*
 * Find the views that read one of `collections` (ended by NULL), whose names they borrow. `listing`
 * is an array of the server's descriptions {name, type, options: {viewOn, pipeline}}. The result
 * ends with an entry without a name; free it with spill_views_free. Cost: O(views^2 * size).
 */
spill_served_view_t *spill_views_find(const bson_t *listing, const char *const *collections);
void spill_views_free(spill_served_view_t *views); /* NULL is allowed */

/* The view of this name; NULL: none. */
const spill_served_view_t *spill_views_named(const spill_served_view_t *views, const char *name);

/* Are the names and the collections the same? */
bool spill_views_equal(const spill_served_view_t *left, const spill_served_view_t *right);

#endif
