#include "bson/field_path.h"

#include "bson/value.h"

#include <string.h>

bool spill_starts_with_part(const char *path, const char *name)
{
    size_t length = strlen(name);
    return strncmp(path, name, length) == 0 && (path[length] == '\0' || path[length] == '.');
}

bool spill_paths_overlap(const char *left, const char *right)
{
    return spill_starts_with_part(left, right) || spill_starts_with_part(right, left);
}

const char *spill_path_leaf(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot != NULL ? dot + 1 : path;
}

size_t spill_path_next_parent(const char *path, size_t length)
{
    const char *dot = strchr(path + length + (length > 0), '.');
    return dot != NULL ? (size_t)(dot - path) : 0;
}

bool spill_path_find(const bson_t *document, const char *path, bson_iter_t *found)
{
    bson_iter_t iter;
    if (strchr(path, '.') == NULL)
        return bson_iter_init_find(found, document, path);
    return bson_iter_init(&iter, document) && bson_iter_find_descendant(&iter, path, found);
}

bool spill_path_blocked(const bson_t *document, const char *path, size_t *length, bson_type_t *type)
{
    for (*length = spill_path_next_parent(path, 0); *length > 0;
         *length = spill_path_next_parent(path, *length)) {
        bson_iter_t found;
        char *parent = bson_strndup(path, *length);
        bool there = spill_path_find(document, parent, &found);
        bson_free(parent);
        if (!there)
            return false;
        *type = bson_iter_type(&found);
        if (*type != BSON_TYPE_DOCUMENT)
            return true;
    }
    return false;
}

/* ---- rewriting a document -------------------------------------------------------------------- */

/* Paths, as they continue behind the first `prefix` bytes. */
typedef struct paths {
    const char *const *paths;
    size_t count;
    size_t prefix; /* of the document that is being written: "stats." */
} paths_t;

/* The path below the document that is being written; NULL: it is not below. */
static const char *below(const paths_t *paths, size_t index, const char *parent)
{
    const char *path = paths->paths[index];
    bool inside = strncmp(path, parent, paths->prefix) == 0;
    return inside ? path + paths->prefix : NULL;
}

typedef enum place { ELSEWHERE, PARENT, LEAF } place_t;

/* `parent`: the path of the document that is being written, with a '.' at its end. */
static place_t place_of(const paths_t *paths, const char *parent, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < paths->count; i++) {
        const char *rest = below(paths, i, parent);
        if (rest == NULL || strncmp(rest, name, length) != 0)
            continue;
        if (rest[length] == '\0')
            return LEAF;
        if (rest[length] == '.')
            return PARENT;
    }
    return ELSEWHERE;
}

/* libbson's functions for iterators change some values. */
static void append_field(const bson_iter_t *iter, const char *name, bson_t *to)
{
    spill_value_t value = spill_value_from_iter(iter);
    spill_value_append(&value, to, name);
}

static char *join(const char *parent, const char *name)
{
    return bson_strdup_printf("%s%s.", parent, name);
}

static void exclude(const bson_t *document, const paths_t *paths, const char *parent, bool prunes,
                    bson_t *to)
{
    bson_iter_t iter;
    bson_t inner;
    if (!bson_iter_init(&iter, document))
        return;
    while (bson_iter_next(&iter)) {
        const char *name = bson_iter_key(&iter);
        place_t place = place_of(paths, parent, name);
        if (place == PARENT && spill_inner_document(&iter, &inner) &&
            BSON_ITER_HOLDS_DOCUMENT(&iter)) {
            char *path = join(parent, name);
            paths_t deeper = {paths->paths, paths->count, strlen(path)};
            bson_t child = BSON_INITIALIZER;
            exclude(&inner, &deeper, path, prunes, &child);
            if (!prunes || !bson_empty(&child))
                bson_append_document(to, name, -1, &child);
            bson_destroy(&child);
            bson_free(path);
        } else if (place != LEAF || prunes) {
            append_field(&iter, name, to);
        }
    }
}

void spill_document_exclude(const bson_t *document, const char *const *paths, size_t count, bson_t *to)
{
    const paths_t all = {paths, count, 0};
    exclude(document, &all, "", false, to);
}

void spill_document_prune(const bson_t *document, const char *const *paths, size_t count, bson_t *to)
{
    const paths_t all = {paths, count, 0};
    exclude(document, &all, "", true, to);
}

/* ---- merging --------------------------------------------------------------------------------- */

static void merge(const bson_t *document, const bson_t *leaves, const char *parent, bson_t *to);

/* The rest of a leaf's path below `parent`; NULL: it is not there. */
static const char *rest_of(const bson_iter_t *leaf, const char *parent)
{
    size_t length = strlen(parent);
    const char *path = bson_iter_key(leaf);
    return strncmp(path, parent, length) == 0 ? path + length : NULL;
}

/* Does a leaf lie at this name, or (*inside) in the document of this name? */
static bool has_leaf(const bson_t *leaves, const char *parent, const char *name, size_t length,
                     bool *inside)
{
    bson_iter_t leaf;
    bool found = false;
    *inside = false;
    if (!bson_iter_init(&leaf, leaves))
        return false;
    while (!found && bson_iter_next(&leaf)) {
        const char *rest = rest_of(&leaf, parent);
        found = rest != NULL && strncmp(rest, name, length) == 0 &&
                (rest[length] == '\0' || rest[length] == '.');
        *inside = found && rest[length] == '.';
    }
    return found;
}

static void merge_child(const bson_t *document, const bson_t *leaves, const char *parent,
                        const char *name, bson_t *to)
{
    char *path = join(parent, name);
    bson_t child;
    bson_append_document_begin(to, name, -1, &child);
    merge(document, leaves, path, &child);
    bson_append_document_end(to, &child);
    bson_free(path);
}

/* Append the leaves below `parent` that the document has no place for yet. */
static void merge_missing(const bson_t *leaves, const char *parent, bson_t *to)
{
    static const bson_t none = BSON_INITIALIZER;
    bson_iter_t leaf;
    if (!bson_iter_init(&leaf, leaves))
        return;
    while (bson_iter_next(&leaf)) {
        const char *rest = rest_of(&leaf, parent);
        if (rest == NULL)
            continue;
        size_t length = strcspn(rest, ".");
        char *name = bson_strndup(rest, length);
        if (rest[length] == '\0')
            append_field(&leaf, name, to);
        else if (!bson_has_field(to, name))
            merge_child(&none, leaves, parent, name, to);
        bson_free(name);
    }
}

static void merge(const bson_t *document, const bson_t *leaves, const char *parent, bson_t *to)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, document))
        return;
    while (bson_iter_next(&iter)) {
        const char *name = bson_iter_key(&iter);
        bool inside;
        bson_t inner;
        if (!has_leaf(leaves, parent, name, strlen(name), &inside))
            append_field(&iter, name, to);
        else if (inside && BSON_ITER_HOLDS_DOCUMENT(&iter) && spill_inner_document(&iter, &inner))
            merge_child(&inner, leaves, parent, name, to);
    }
    merge_missing(leaves, parent, to);
}

void spill_document_merge(const bson_t *document, const bson_t *leaves, bson_t *to)
{
    merge(document, leaves, "", to);
}

void spill_document_add_parents(const bson_t *document, const char *path, bson_t *to)
{
    bson_t leaf = BSON_INITIALIZER, with = BSON_INITIALIZER;
    bson_append_null(&leaf, path, -1);
    spill_document_merge(document, &leaf, &with);
    spill_document_exclude(&with, &path, 1, to);
    bson_destroy(&with);
    bson_destroy(&leaf);
}
