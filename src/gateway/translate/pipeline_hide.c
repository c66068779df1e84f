/* Stages that hide `spill` from the stages behind them, and from what is joined. */
#include "gateway/translate/mention.h"
#include "gateway/translate/pipeline.h"

#include "definition/stored_names.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 200 };

static const char hides_spill[] = "$unset";

/* ---- lists ----------------------------------------------------------------------------------- */

/* An array that is being made. */
typedef struct list {
    bson_t *array;
    uint32_t count;
    char text[16];
} list_t;

static const char *next_key(list_t *list)
{
    const char *key;
    bson_uint32_to_string(list->count++, &key, list->text, sizeof list->text);
    return key;
}

static void append_unset(list_t *list, const char *path)
{
    bson_t stage;
    BSON_APPEND_DOCUMENT_BEGIN(list->array, next_key(list), &stage);
    BSON_APPEND_UTF8(&stage, hides_spill, path);
    bson_append_document_end(list->array, &stage);
}

/* Hide `spill` of the documents at `as`, and forget them. */
static void append_joined_unset(list_t *list, char **as)
{
    if (*as == NULL)
        return;
    char *path = bson_strdup_printf("%s.%s", *as, SPILL_STORED_ROOT);
    append_unset(list, path);
    bson_free(path);
    bson_free(*as);
    *as = NULL;
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* Does `spec` read a served collection: "c", {coll: "c"}, {from: "c"} or {from: {coll: "c"}}? */
static bool reads_served(const spill_served_t *served, const bson_iter_t *spec)
{
    bson_iter_t child;
    bool found = false;
    if (BSON_ITER_HOLDS_UTF8(spec)) {
        const spill_served_collection_t *at =
            spill_served_find(served, spill_served_database(served), bson_iter_utf8(spec, NULL));
        return at != NULL && at->array != NULL;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(spec) || !bson_iter_recurse(spec, &child))
        return false;
    while (!found && bson_iter_next(&child))
        found = (strcmp(bson_iter_key(&child), "coll") == 0 ||
                 strcmp(bson_iter_key(&child), "from") == 0) &&
                reads_served(served, &child);
    return found;
}

/* The stages at the front that have to stay there: $match, and those that only begin a pipeline. */
static int count_front(const bson_iter_t *stages)
{
    static const char *const front[] = {"$match",      "$geoNear",      "$search",
                                        "$searchMeta", "$vectorSearch", NULL};
    bson_iter_t each, spec;
    int count = 0;
    if (BSON_ITER_HOLDS_ARRAY(stages) && bson_iter_recurse(stages, &each))
        while (bson_iter_next(&each) && BSON_ITER_HOLDS_DOCUMENT(&each) &&
               bson_iter_recurse(&each, &spec) && bson_iter_next(&spec) &&
               spill_is_one_of(bson_iter_key(&spec), front))
            count++;
    return count;
}

static void append_stages(const spill_served_t *served, const bson_iter_t *stages, int at,
                          int depth, bson_t *array);

static void append_inner(const spill_served_t *served, const bson_iter_t *field, int at, int depth,
                         bson_t *out)
{
    bson_t inner;
    if (!BSON_ITER_HOLDS_ARRAY(field) || depth > DEPTH_MAX) {
        bson_append_iter(out, NULL, -1, field);
        return;
    }
    bson_append_array_begin(out, bson_iter_key(field), -1, &inner);
    append_stages(served, field, at, depth + 1, &inner);
    bson_append_array_end(out, &inner);
}

/*
 * The operand of $lookup or $unionWith. A pipeline in it hides `spill`; *as, which the caller
 * frees, is where a $lookup without one puts the documents.
 */
static void append_join(const spill_served_t *served, const bson_iter_t *spec, int depth, char **as,
                        bson_t *stage)
{
    bson_iter_t child;
    bson_t join;
    const char *place = NULL;
    bool reads = reads_served(served, spec), pipeline = false;
    BSON_APPEND_DOCUMENT_BEGIN(stage, bson_iter_key(spec), &join);
    if (BSON_ITER_HOLDS_UTF8(spec))
        BSON_APPEND_UTF8(&join, "coll", bson_iter_utf8(spec, NULL));
    else if (bson_iter_recurse(spec, &child))
        while (bson_iter_next(&child)) {
            const char *key = bson_iter_key(&child);
            if (strcmp(key, "as") == 0 && BSON_ITER_HOLDS_UTF8(&child))
                place = bson_iter_utf8(&child, NULL);
            if (strcmp(key, "pipeline") == 0) {
                append_inner(served, &child, reads ? count_front(&child) : -1, depth, &join);
                pipeline = true;
            } else {
                bson_append_iter(&join, NULL, -1, &child);
            }
        }
    if (reads && !pipeline && place == NULL)
        BCON_APPEND(&join, "pipeline", "[", "{", hides_spill, SPILL_STORED_ROOT, "}", "]");
    bson_append_document_end(stage, &join);
    *as = reads && !pipeline && place != NULL ? bson_strdup(place) : NULL;
}

static void append_facets(const spill_served_t *served, const bson_iter_t *spec, int depth,
                          bson_t *stage)
{
    bson_iter_t child;
    bson_t facets;
    BSON_APPEND_DOCUMENT_BEGIN(stage, bson_iter_key(spec), &facets);
    if (bson_iter_recurse(spec, &child))
        while (bson_iter_next(&child))
            append_inner(served, &child, -1, depth, &facets);
    bson_append_document_end(stage, &facets);
}

/* Append one stage. *as: the path of joined documents that show `spill`; NULL: there are none. */
static void append_stage(const spill_served_t *served, const bson_iter_t *from, int depth,
                         char **as, list_t *list)
{
    static const char *const joins[] = {"$lookup", "$graphLookup", "$unionWith", NULL};
    bson_iter_t spec;
    bson_t stage;
    *as = NULL;
    if (!BSON_ITER_HOLDS_DOCUMENT(from) || !bson_iter_recurse(from, &spec)) {
        bson_append_iter(list->array, next_key(list), -1, from);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(list->array, next_key(list), &stage);
    while (bson_iter_next(&spec)) {
        const char *name = bson_iter_key(&spec);
        bool union_with_name = strcmp(name, joins[2]) == 0 && BSON_ITER_HOLDS_UTF8(&spec);
        if (*as == NULL && spill_is_one_of(name, joins) &&
            (BSON_ITER_HOLDS_DOCUMENT(&spec) || union_with_name))
            append_join(served, &spec, depth, as, &stage);
        else if (strcmp(name, "$facet") == 0 && BSON_ITER_HOLDS_DOCUMENT(&spec))
            append_facets(served, &spec, depth, &stage);
        else
            bson_append_iter(&stage, NULL, -1, &spec);
    }
    bson_append_document_end(list->array, &stage);
}

/* Is it {$unwind: "$<as>"} or {$unwind: {path: "$<as>"}}? Servers join and unwind in one step. */
static bool unwinds(const bson_iter_t *from, const char *as)
{
    bson_iter_t stage, path;
    if (as == NULL || !BSON_ITER_HOLDS_DOCUMENT(from) || !bson_iter_recurse(from, &stage) ||
        !bson_iter_next(&stage) || strcmp(bson_iter_key(&stage), "$unwind") != 0)
        return false;
    path = stage;
    if (BSON_ITER_HOLDS_DOCUMENT(&stage) &&
        (!bson_iter_recurse(&stage, &path) || !bson_iter_find(&path, "path")))
        return false;
    const char *text = BSON_ITER_HOLDS_UTF8(&path) ? bson_iter_utf8(&path, NULL) : "";
    return text[0] == '$' && strcmp(text + 1, as) == 0;
}

static void append_stages(const spill_served_t *served, const bson_iter_t *stages, int at,
                          int depth, bson_t *array)
{
    bson_iter_t each;
    list_t list = {.array = array};
    char *joined = NULL, *as;
    int number = 0;
    if (!bson_iter_recurse(stages, &each))
        return;
    for (; bson_iter_next(&each); number++) {
        if (!unwinds(&each, joined))
            append_joined_unset(&list, &joined);
        if (number == at)
            append_unset(&list, SPILL_STORED_ROOT);
        append_stage(served, &each, depth, &as, &list);
        append_joined_unset(&list, &joined);
        joined = as;
    }
    append_joined_unset(&list, &joined);
    if (number == at)
        append_unset(&list, SPILL_STORED_ROOT);
}

void spill_pipeline_hide(const spill_served_t *served, const bson_t *from, int at, bson_t *body)
{
    bson_iter_t stages;
    if (bson_iter_init_find(&stages, from, "pipeline"))
        append_inner(served, &stages, at, 0, body);
}

bool spill_pipeline_joins(const spill_served_t *served, const bson_t *body)
{
    const spill_served_collection_t *const *all = spill_served_all(served);
    for (size_t i = 0; all[i] != NULL; i++)
        if (all[i]->array != NULL && spill_pipeline_reads(body, all[i]->collection))
            return true;
    return false;
}
