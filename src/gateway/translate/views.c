#include "gateway/translate/views.h"

#include "gateway/translate/mention.h"

#include <string.h>

/* Has the description a view, and if so which? *options is static. */
static const char *read_view(const bson_iter_t *item, bson_t *options)
{
    bson_t description;
    bson_iter_t field;
    if (!spill_iter_document(item, &description) ||
        !bson_iter_init_find(&field, &description, "type") || !BSON_ITER_HOLDS_UTF8(&field) ||
        strcmp(bson_iter_utf8(&field, NULL), "view") != 0 ||
        !bson_iter_init_find(&field, &description, "options") ||
        !spill_iter_document(&field, options) ||
        !bson_iter_init_find(&field, &description, "name") || !BSON_ITER_HOLDS_UTF8(&field))
        return NULL;
    return bson_iter_utf8(&field, NULL);
}

/* Does a view read this collection or view, as its source or in a stage? */
static bool reads(const bson_t *options, const char *name)
{
    bson_iter_t on;
    return (bson_iter_init_find(&on, options, "viewOn") && BSON_ITER_HOLDS_UTF8(&on) &&
            strcmp(bson_iter_utf8(&on, NULL), name) == 0) ||
           spill_pipeline_reads(options, name);
}

/* The collection that a view with these options reads, directly or through a view that is known. */
static const char *find_source(const bson_t *options, const char *const *collections,
                               const spill_served_view_t *known)
{
    for (size_t i = 0; collections[i] != NULL; i++)
        if (reads(options, collections[i]))
            return collections[i];
    for (size_t i = 0; known[i].name != NULL; i++)
        if (reads(options, known[i].name))
            return known[i].collection;
    return NULL;
}

/* Add the views that read a collection or a known view. False: there was none. */
static bool add_views(const bson_t *listing, const char *const *collections,
                      spill_served_view_t **views, size_t *count)
{
    bson_iter_t item;
    size_t before = *count;
    if (!bson_iter_init(&item, listing))
        return false;
    while (bson_iter_next(&item)) {
        bson_t options;
        const char *name = read_view(&item, &options);
        if (name == NULL || spill_views_named(*views, name) != NULL)
            continue;
        const char *source = find_source(&options, collections, *views);
        if (source == NULL)
            continue;
        *views = bson_realloc(*views, (*count + 2) * sizeof **views);
        (*views)[(*count)++] = (spill_served_view_t){bson_strdup(name), source};
        (*views)[*count] = (spill_served_view_t){NULL, NULL};
    }
    return *count > before;
}

spill_served_view_t *spill_views_find(const bson_t *listing, const char *const *collections)
{
    size_t count = 0;
    spill_served_view_t *views = bson_malloc0(sizeof *views);
    while (add_views(listing, collections, &views, &count))
        continue; /* a view may read one that is listed after it */
    return views;
}

void spill_views_free(spill_served_view_t *views)
{
    for (size_t i = 0; views != NULL && views[i].name != NULL; i++)
        bson_free(views[i].name);
    bson_free(views);
}

const spill_served_view_t *spill_views_named(const spill_served_view_t *views, const char *name)
{
    for (size_t i = 0; views[i].name != NULL; i++)
        if (strcmp(views[i].name, name) == 0)
            return &views[i];
    return NULL;
}

bool spill_views_equal(const spill_served_view_t *left, const spill_served_view_t *right)
{
    size_t i = 0;
    for (; left[i].name != NULL && right[i].name != NULL; i++)
        if (strcmp(left[i].name, right[i].name) != 0 ||
            strcmp(left[i].collection, right[i].collection) != 0)
            return false;
    return left[i].name == NULL && right[i].name == NULL;
}
