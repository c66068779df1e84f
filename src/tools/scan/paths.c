#include "tools/scan/paths.h"

#include "definition/stored_names.h"
#include "util/buffer.h"

#include <stdio.h>
#include <string.h>

#define YEAR_9999_MS INT64_C(253402300799999) /* ignore times beyond, and as far before 1970 */
#define NODES_MAX (1U << 20) /* indexes ever assigned, including paths absorbed by maps */

/* ---- creating paths -------------------------------------------------------------------------- */

static spill_path_t *make_path(spill_paths_t *paths, spill_path_t *parent, spill_path_kind_t kind,
                               const char *name, size_t name_size)
{
    spill_path_t *path = bson_malloc0(sizeof *path);
    path->parent = parent;
    path->kind = kind;
    path->name_size = (uint32_t)name_size;
    path->name = bson_malloc(name_size + 1);
    memcpy(path->name, name, name_size);
    path->name[name_size] = '\0';
    path->heaviest.by_bytes = true;
    spill_sketch_init(&path->lengths);
    spill_sketch_init(&path->elements);
    if (paths->node_count == paths->node_capacity) {
        paths->node_capacity = paths->node_capacity ? 2 * paths->node_capacity : 16;
        paths->nodes = bson_realloc(paths->nodes, paths->node_capacity * sizeof(spill_path_t *));
        paths->moved = bson_realloc(paths->moved, paths->node_capacity * sizeof *paths->moved);
    }
    path->index = paths->node_count;
    paths->moved[path->index] = path->index;
    paths->nodes[paths->node_count++] = path;
    paths->live++;
    if (parent) {
        if (parent->last_child)
            parent->last_child->next = path;
        else
            parent->children = path;
        parent->last_child = path;
        parent->child_count++;
    }
    return path;
}

/* The path's growth, created if there is room for one more; or NULL. */
static spill_growth_t *growth_of(spill_paths_t *paths, spill_path_t *path)
{
    if (path->growth || paths->growing == SPILL_PATHS_GROWING)
        return path->growth;
    path->growth = bson_malloc(sizeof *path->growth);
    spill_growth_init(path->growth);
    paths->growing++;
    return path->growth;
}

static void drop_growth(spill_paths_t *paths, spill_path_t *path)
{
    if (!path->growth)
        return;
    spill_growth_release(path->growth);
    bson_free(path->growth);
    path->growth = NULL;
    paths->growing--;
}

static void free_subtree(spill_paths_t *paths, spill_path_t *path)
{
    while (path->children) {
        spill_path_t *child = path->children;
        path->children = child->next;
        free_subtree(paths, child);
    }
    spill_sketch_release(&path->lengths);
    spill_sketch_release(&path->elements);
    spill_owners_release(&path->owners);
    spill_owners_release(&path->heaviest);
    drop_growth(paths, path);
    spill_outline_release(&path->outline);
    bson_free(path->name);
    bson_free(path);
    paths->live--;
}

void spill_paths_init(spill_paths_t *paths, const spill_scan_limits_t *limits)
{
    *paths = (spill_paths_t){.limits = *limits};
    paths->root = make_path(paths, NULL, SPILL_PATH_DOCUMENT, "", 0);
    paths->overflow = make_path(paths, NULL, SPILL_PATH_DOCUMENT, "", 0);
    spill_sketch_init(&paths->sizes);
    spill_history_init(&paths->history, SPILL_GROWTH_POINTS);
}

void spill_paths_release(spill_paths_t *paths)
{
    free_subtree(paths, paths->root);
    free_subtree(paths, paths->overflow);
    spill_sketch_release(&paths->sizes);
    spill_owners_release(&paths->largest);
    spill_history_release(&paths->history);
    bson_free(paths->nodes);
    bson_free(paths->moved);
    bson_free(paths->touched);
    *paths = (spill_paths_t){0};
}

static spill_path_t *child_of_kind(const spill_path_t *parent, spill_path_kind_t kind)
{
    spill_path_t *child = parent->children;
    while (child && child->kind != kind)
        child = child->next;
    return child;
}

/* ---- the current document -------------------------------------------------------------------- */

static void touch(spill_paths_t *paths, spill_path_t *path)
{
    if (path->touched)
        return;
    if (paths->touched_count == paths->touched_capacity) {
        paths->touched_capacity = paths->touched_capacity ? 2 * paths->touched_capacity : 16;
        paths->touched =
            bson_realloc(paths->touched, paths->touched_capacity * sizeof *paths->touched);
    }
    paths->touched[paths->touched_count++] = path->index;
    path->touched = true;
    path->here_bytes = 0;
    path->here_length = 0;
    path->here_size = 0;
    path->here_at = 0;
}

static void keep_longest(spill_path_t *path, uint32_t length, uint32_t size_bytes, uint32_t at)
{
    bool longer =
        length > path->here_length || (length == path->here_length && size_bytes > path->here_size);
    if (!longer)
        return;
    path->here_length = length;
    path->here_size = size_bytes;
    path->here_at = at;
}

void spill_paths_add(spill_paths_t *paths, const spill_path_values_t *values,
                     const uint8_t *document)
{
    spill_path_t *path = spill_paths_at(paths, values->path);
    spill_sketch_add(&path->lengths, values->length, values->count);
    path->bytes += (int64_t)values->bytes;
    touch(paths, path);
    path->here_bytes += (int64_t)values->bytes;
    keep_longest(path, values->length, values->size_max, values->size_max_at);
    bool grows = path->kind == SPILL_PATH_ARRAY || values->length >= SPILL_MAP_KEYS_MIN;
    if (grows && values->length > 0 && path->parent && spill_times_open(&path->times))
        spill_times_learn(&path->times, document + values->size_max_at);
}

void spill_paths_add_elements(spill_paths_t *paths, uint32_t index, uint32_t size_bytes,
                              uint32_t times)
{
    spill_sketch_add(&spill_paths_at(paths, index)->elements, size_bytes, times);
}

/* Report whether its length can be a sign of growth. */
static bool may_grow(const spill_path_t *path)
{
    return path->kind == SPILL_PATH_ARRAY ? path->here_length > 0
                                          : path->here_length >= SPILL_MAP_KEYS_MIN;
}

/* Report whether the bytes come from many fields, as in a map, and not from a single one. */
static bool is_spread(const spill_path_t *path, const uint8_t *document)
{
    spill_fields_t fields = spill_fields_of(document + path->here_at);
    const char *name;
    spill_value_t value;
    uint32_t largest = 0;
    while (spill_fields_next(&fields, &name, &value))
        largest = value.size_bytes > largest ? value.size_bytes : largest;
    return largest < path->here_size / 2;
}

/* The document that is being ended. */
typedef struct ended {
    const uint8_t *data;
    const spill_value_t *owner;
    int64_t place;
    int64_t bytes;
} ended_t;

/* The field of that name in the document at `data`, if it is a document; else NULL. */
static const uint8_t *document_in(const uint8_t *data, const char *wanted, size_t size)
{
    spill_fields_t fields = spill_fields_of(data);
    const char *name;
    spill_value_t value;
    while (spill_fields_next(&fields, &name, &value))
        if (value.type == BSON_TYPE_DOCUMENT && strlen(name) == size &&
            memcmp(name, wanted, size) == 0)
            return value.data;
    return NULL;
}

static bool has_field(const uint8_t *data, const char *wanted)
{
    spill_fields_t fields = spill_fields_of(data);
    const char *name;
    spill_value_t value;
    while (spill_fields_next(&fields, &name, &value))
        if (strcmp(name, wanted) == 0)
            return true;
    return false;
}

/* Report whether it is a page, or a part of a window, by its _id and its bookkeeping. */
static bool is_page(const uint8_t *data, const uint8_t *spill)
{
    const uint8_t *id = document_in(data, "_id", 3);
    return id && has_field(spill, SPILL_STORED_INCARNATION) && has_field(id, "owner") &&
           (has_field(id, "page") || has_field(id, "part"));
}

/* The field of `above`, or of the current document, in which the path is. */
static const spill_path_t *field_of(const spill_path_t *path, const spill_path_t *above)
{
    while (path && path->parent != above)
        path = path->parent;
    return path;
}

/* Report whether `spill` has bookkeeping for that field. */
static bool is_bookkeeping(const uint8_t *spill, const spill_path_t *field)
{
    const uint8_t *own = field ? document_in(spill, field->name, field->name_size) : NULL;
    return own && has_field(own, SPILL_STORED_INCARNATION);
}

/*
 * Report whether Spillway keeps the path's values in this document within bounds. A head has
 * bookkeeping for each field that is bounded; a page is bounded itself
 * (docs/reference/mongodb.md).
 */
static bool is_bounded(const spill_paths_t *paths, const spill_path_t *path, const ended_t *here)
{
    const spill_path_t *top = field_of(path, paths->root);
    const uint8_t *spill =
        top ? document_in(here->data, SPILL_STORED_ROOT, strlen(SPILL_STORED_ROOT)) : NULL;
    if (!spill)
        return false;
    if (top->name_size == strlen(SPILL_STORED_ROOT) &&
        memcmp(top->name, SPILL_STORED_ROOT, top->name_size) == 0)
        return is_bookkeeping(spill, field_of(path, top)) ||
               has_field(spill, SPILL_STORED_INCARNATION);
    return is_bookkeeping(spill, top) || is_page(here->data, spill);
}

/* The outline of the documents in an array or a map; NULL: there are none. */
static const spill_outline_t *outline_of_elements(const spill_path_t *path)
{
    bool alike = path->kind == SPILL_PATH_ARRAY || path->map;
    const spill_path_t *element = alike ? child_of_kind(path, SPILL_PATH_DOCUMENT) : NULL;
    return element ? &element->outline : NULL;
}

static void note_time(spill_history_t *history, int64_t time_ms)
{
    if (time_ms > -YEAR_9999_MS && time_ms < YEAR_9999_MS)
        spill_history_add(history, time_ms);
}

/* Read the times of the path's longest array and add them to its growth. NULL: unknown. */
static const spill_history_t *learn_history(spill_paths_t *paths, spill_path_t *path,
                                            const ended_t *here)
{
    bool known, more = true;
    int64_t time_ms;
    uint32_t count;
    if (path->times.type == 0 || path->here_length < SPILL_GROWTH_LENGTH_MIN ||
        !growth_of(paths, path))
        return NULL;
    spill_history_clear(&paths->history);
    spill_times_t times = spill_times_of(&path->times, here->data + path->here_at,
                                         outline_of_elements(path), paths->kept);
    while (more) {
        const int64_t *kept_ms = spill_times_pass_kept(&times, &count);
        for (uint32_t i = 0; i < count; i++)
            note_time(&paths->history, kept_ms[i]);
        more = spill_times_next(&times, &known, &time_ms);
        if (more && known)
            note_time(&paths->history, time_ms);
    }
    uint64_t owner = here->owner->data ? spill_hash(here->owner->data, here->owner->size_bytes)
                                       : spill_hash(&here->place, sizeof here->place);
    spill_growth_add(path->growth, owner, &paths->history);
    return paths->history.seen >= SPILL_GROWTH_LENGTH_MIN ? &paths->history : NULL;
}

/* Add the document to the path's largest owners if it is among them. */
static void add_owner(spill_path_t *path, const ended_t *here, const spill_history_t *history)
{
    bool longest = spill_owners_wanted(&path->owners, path->here_length, path->here_bytes);
    bool heaviest = spill_owners_wanted(&path->heaviest, path->here_length, path->here_bytes);
    if (!longest && !heaviest)
        return;
    spill_large_owner_t owner = {.length = path->here_length,
                                 .bytes = path->here_bytes,
                                 .array_bytes = path->here_size,
                                 .document_bytes = here->bytes,
                                 .place = here->place,
                                 .value = *here->owner};
    if (heaviest)
        spill_owners_add(&path->heaviest, &owner);
    owner.history = history;
    if (longest)
        spill_owners_add(&path->owners, &owner);
}

/* Does a value of the document's longest array occur twice? */
static void check_repeats(spill_paths_t *paths, spill_path_t *path, const ended_t *here)
{
    if (path->kind != SPILL_PATH_ARRAY || path->repeats.excluded || !paths->repeats)
        return;
    spill_repeats_check(&path->repeats, paths->repeats, here->data + path->here_at,
                        path->here_length);
    path->repeats.sampled = path->repeats.sampled || path->here_bytes != path->here_size;
}

static void end_path(spill_paths_t *paths, spill_path_t *path, const ended_t *here)
{
    const spill_scan_limits_t *limits = &paths->limits;
    path->documents++;
    if (path->here_bytes > path->bytes_max)
        path->bytes_max = path->here_bytes;
    if (!may_grow(path))
        return;
    check_repeats(paths, path, here);
    bool over = path->here_length > limits->elements;
    bool large = path->here_bytes > limits->bytes &&
                 (path->kind == SPILL_PATH_ARRAY || is_spread(path, here->data));
    bool many = path->here_length > limits->elements / SPILL_SCAN_INDEX_PART;
    if ((over || large || many) && is_bounded(paths, path, here))
        over = large = many = false;
    path->over_elements += over;
    path->over_entries += many;
    path->over_bytes += large;
    path->paid +=
        large && path->parent && path->here_bytes * 100 >= here->bytes * limits->paid_per_cent;
    over = over || large;
    if (over && here->bytes > path->document_max)
        path->document_max = here->bytes;
    const spill_history_t *history = learn_history(paths, path, here);
    add_owner(path, here, history);
}

void spill_paths_end_document(spill_paths_t *paths, const uint8_t *document, uint32_t size_bytes,
                              const spill_value_t *owner, int64_t place)
{
    ended_t here = {.data = document, .owner = owner, .place = place, .bytes = size_bytes};
    for (uint32_t i = 0; i < paths->touched_count; i++) {
        spill_path_t *path = spill_paths_at(paths, paths->touched[i]);
        if (path->touched && path != paths->overflow)
            end_path(paths, path, &here);
        path->touched = false; /* two paths absorbed by one map are listed twice */
    }
    paths->touched_count = 0;
    spill_sketch_add(&paths->sizes, size_bytes, 1);
    spill_shape_add(&paths->shape, document);
    paths->over_document += size_bytes > paths->limits.document_bytes / 2;
    if (spill_owners_wanted(&paths->largest, 0, size_bytes)) {
        spill_large_owner_t largest = {
            .bytes = size_bytes, .document_bytes = size_bytes, .place = place, .value = *owner};
        spill_owners_add(&paths->largest, &largest);
    }
}

/* ---- merging --------------------------------------------------------------------------------- */

static void make_map(spill_paths_t *paths, spill_path_t *path);

static void merge_growth(spill_paths_t *paths, spill_path_t *into, spill_path_t *from, bool own)
{
    if (own && !into->growth) {
        into->growth = from->growth;
        from->growth = NULL;
    }
    if (from->growth && growth_of(paths, into))
        spill_growth_merge(into->growth, from->growth);
}

static int64_t seen_of(const spill_path_t *path)
{
    return path->growth ? path->growth->all.seen : 0;
}

static void forget_histories(spill_path_t *path)
{
    if (path->growth)
        spill_growth_release(path->growth);
    for (size_t i = 0; i < path->owners.count; i++)
        spill_owner_forget_history(&path->owners.items[i]);
}

/* If both found times in different fields, keep the times of the path that has more. */
static void choose_rule(spill_path_t *into, spill_path_t *from)
{
    if (from->times.type == 0 || spill_times_same(&into->times, &from->times))
        return;
    bool keep = into->times.type != 0 && seen_of(into) >= seen_of(from);
    forget_histories(keep ? from : into);
    if (!keep)
        into->times = from->times;
}

static void merge_totals(spill_paths_t *paths, spill_path_t *into, spill_path_t *from, bool own)
{
    choose_rule(into, from);
    spill_sketch_merge(&into->lengths, &from->lengths);
    spill_sketch_merge(&into->elements, &from->elements);
    spill_owners_merge(&into->owners, &from->owners);
    spill_owners_merge(&into->heaviest, &from->heaviest);
    into->documents += from->documents;
    into->bytes += from->bytes;
    into->over_elements += from->over_elements;
    into->over_entries += from->over_entries;
    into->over_bytes += from->over_bytes;
    into->paid += from->paid;
    if (from->bytes_max > into->bytes_max)
        into->bytes_max = from->bytes_max;
    if (from->document_max > into->document_max)
        into->document_max = from->document_max;
    merge_growth(paths, into, from, own);
    spill_repeats_merge(&into->repeats, &from->repeats);
    if (from->touched) {
        touch(paths, into);
        into->here_bytes += from->here_bytes;
        keep_longest(into, from->here_length, from->here_size, from->here_at);
    }
}

/* With `own`, `from` belongs to this table, and its indexes become indexes of `into`. */
static void merge_subtree(spill_paths_t *paths, spill_path_t *into, spill_path_t *from, bool own)
{
    merge_totals(paths, into, from, own);
    if (own)
        paths->moved[from->index] = into->index;
    if (from->map && !into->map && into != paths->overflow)
        make_map(paths, into);
    for (spill_path_t *child = from->children; child; child = child->next) {
        spill_path_t *mine =
            spill_path_child(paths, into, NULL, child->kind, child->name, child->name_size);
        merge_subtree(paths, mine, child, own);
    }
}

void spill_paths_merge(spill_paths_t *into, spill_paths_t *from)
{
    merge_subtree(into, into->root, from->root, false);
    merge_totals(into, into->overflow, from->overflow, false);
    spill_sketch_merge(&into->sizes, &from->sizes);
    spill_shape_merge(&into->shape, &from->shape);
    spill_owners_merge(&into->largest, &from->largest);
    into->over_document += from->over_document;
}

/* ---- maps ------------------------------------------------------------------------------------ */

static void make_map(spill_paths_t *paths, spill_path_t *path)
{
    spill_path_t *children = path->children;
    path->map = true;
    spill_outline_release(&path->outline); /* it has the children that are freed below */
    path->children = NULL;
    path->last_child = NULL;
    path->child_count = 0;
    for (spill_path_t *child = children; child; child = child->next) {
        spill_path_t *all = child_of_kind(path, child->kind);
        if (!all) /* even without room: many paths are about to become one */
            all = make_path(paths, path, child->kind, "", 0);
        merge_subtree(paths, all, child, true);
    }
    while (children) {
        spill_path_t *child = children;
        children = child->next;
        free_subtree(paths, child);
    }
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void forecast_path(spill_paths_t *paths, spill_path_t *path, int64_t scan_ms)
{
    spill_growth_model_t *growth_model =
        path->growth ? spill_growth_model_new(path->growth, scan_ms) : NULL;
    if (growth_model)
        spill_growth_predict_all(growth_model, &path->growth_forecast);
    for (size_t i = 0; i < path->owners.count; i++) {
        spill_large_owner_t *owner = &path->owners.items[i];
        spill_growing_t array = {.length = owner->length,
                                 .bytes = owner->array_bytes,
                                 .room = paths->limits.document_bytes - owner->document_bytes,
                                 .elements_max = paths->limits.elements,
                                 .course = path->over_elements + path->over_bytes > 0,
                                 .history = owner->history};
        spill_growth_predict(growth_model, &array, &owner->growth_forecast);
        spill_owner_forget_history(owner);
    }
    spill_growth_model_free(growth_model);
    drop_growth(paths, path);
}

void spill_paths_foresee(spill_paths_t *paths, int64_t scan_ms)
{
    for (uint32_t i = 0; i < paths->node_count; i++)
        if (paths->moved[i] == i && paths->nodes[i]->owners.count > 0)
            forecast_path(paths, paths->nodes[i], scan_ms);
}

int64_t spill_path_documents(const spill_path_t *path, int64_t count)
{
    for (const spill_path_t *above = path->parent; above; above = above->parent)
        if (above->documents < count)
            count = above->documents;
    return count;
}

/* ---- finding paths --------------------------------------------------------------------------- */

static bool is_named(const spill_path_t *path, spill_path_kind_t kind, const char *name,
                     size_t name_size)
{
    return path->kind == kind && path->name_size == name_size &&
           memcmp(path->name, name, name_size) == 0;
}

static spill_path_t *find_named(const spill_path_t *parent, const spill_path_t *hint,
                                spill_path_kind_t kind, const char *name, size_t name_size)
{
    spill_path_t *start = hint && hint->next ? hint->next : parent->children;
    spill_path_t *child = start;
    while (child) {
        if (is_named(child, kind, name, name_size))
            return child;
        child = child->next ? child->next : parent->children;
        if (child == start)
            break;
    }
    return NULL;
}

spill_path_t *spill_path_child(spill_paths_t *paths, spill_path_t *parent, spill_path_t *hint,
                               spill_path_kind_t kind, const char *name, size_t name_size)
{
    if (parent == paths->overflow)
        return parent;
    bool one = parent->map || parent->kind == SPILL_PATH_ARRAY;
    if (one || name_size > SPILL_PATH_NAME_MAX)
        name_size = one ? 0 : SPILL_PATH_NAME_MAX;
    spill_path_t *child =
        one ? child_of_kind(parent, kind) : find_named(parent, hint, kind, name, name_size);
    if (child)
        return child;
    if (!one && parent->child_count == SPILL_PATH_CHILDREN_MAX) {
        make_map(paths, parent);
        child = child_of_kind(parent, kind);
        name_size = 0;
    }
    if (child)
        return child;
    if (paths->live >= SPILL_PATHS_MAX || paths->node_count >= NODES_MAX)
        return paths->overflow;
    return make_path(paths, parent, kind, name, name_size);
}

/* ---- texts of paths -------------------------------------------------------------------------- */

/* Report whether the name needs no quotes between dots. */
static bool is_plain(const spill_path_t *path)
{
    for (uint32_t i = 0; i < path->name_size; i++) {
        unsigned char byte = (unsigned char)path->name[i];
        if (byte <= ' ' || byte == 0x7F || strchr(".*[]\"\\", byte))
            return false;
    }
    return path->name_size > 0;
}

static size_t put_piece(char *text, size_t size, size_t at, const char *piece, size_t length)
{
    size_t room = at + 1 < size ? size - 1 - at : 0;
    size_t fits = length < room ? length : room;
    memcpy(text + at, piece, fits);
    return at + fits;
}

/* Quote it as in JSON; a byte below ' ' as \u00XX. */
static size_t put_quoted(char *text, size_t size, size_t at, const spill_path_t *path)
{
    at = put_piece(text, size, at, "\"", 1);
    for (uint32_t i = 0; i < path->name_size; i++) {
        char piece[8] = {path->name[i]};
        unsigned char byte = (unsigned char)path->name[i];
        if (byte < ' ')
            snprintf(piece, sizeof piece, "\\u%04x", byte);
        else if (byte == '"' || byte == '\\')
            snprintf(piece, sizeof piece, "\\%c", byte);
        at = put_piece(text, size, at, piece, strlen(piece));
    }
    return put_piece(text, size, at, "\"", 1);
}

static size_t put_path(const spill_path_t *path, char *text, size_t size)
{
    const spill_path_t *parent = path->parent;
    if (!parent)
        return 0;
    size_t at = put_path(parent, text, size);
    if (parent->kind == SPILL_PATH_ARRAY)
        return put_piece(text, size, at, "[]", 2);
    if (parent->parent)
        at = put_piece(text, size, at, ".", 1);
    if (parent->map)
        return put_piece(text, size, at, "*", 1);
    return is_plain(path) ? put_piece(text, size, at, path->name, path->name_size)
                          : put_quoted(text, size, at, path);
}

void spill_path_text(const spill_path_t *path, char *text, size_t size)
{
    text[put_path(path, text, size)] = '\0';
}
