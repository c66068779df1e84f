#include "gateway/translate/pipeline.h"

#include "gateway/translate/mention.h"
#include "gateway/translate/translations.h"

#include <string.h>

enum { DEPTH_MAX = 200 };

/* ---- collections that a pipeline names ------------------------------------------------------- */

static const spill_served_collection_t *find_served(const spill_served_t *served, const char *name)
{
    return spill_served_find(served, spill_served_database(served), name);
}

static bool is_hidden(const spill_served_t *served, const char *name)
{
    return spill_served_hidden(served, spill_served_database(served), name);
}

static bool is_view(const spill_served_t *served, const char *name)
{
    return spill_served_find_view(served, spill_served_database(served), name) != NULL;
}

/* Does it name a served or hidden collection, or a view of one? `foreign`: the command is for
 * another database, so a name alone is of that database; {db: ...} may name the served one. */
static bool concerns(const spill_served_t *served, const bson_iter_t *value, bool foreign,
                     int depth)
{
    bson_iter_t child;
    bool found = false;
    if (BSON_ITER_HOLDS_UTF8(value)) {
        const char *text = bson_iter_utf8(value, NULL);
        return !foreign && (find_served(served, text) != NULL || is_hidden(served, text) ||
                            is_view(served, text));
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(value) && !BSON_ITER_HOLDS_ARRAY(value))
        return false;
    if (depth > DEPTH_MAX || !bson_iter_recurse(value, &child))
        return true;
    while (!found && bson_iter_next(&child))
        found = (strcmp(bson_iter_key(&child), "db") == 0 && BSON_ITER_HOLDS_UTF8(&child) &&
                 strcmp(bson_iter_utf8(&child, NULL), spill_served_database(served)) == 0) ||
                concerns(served, &child, foreign, depth + 1);
    return found;
}

bool spill_pipeline_concerns(const spill_served_t *served, const spill_client_command_t *command)
{
    static const char *const names[] = {"pipeline", "out", "viewOn", NULL};
    bson_iter_t iter;
    bool foreign = strcmp(command->database, spill_served_database(served)) != 0;
    if (spill_served_all(served)[0] == NULL)
        return false;
    for (size_t i = 0; names[i] != NULL; i++)
        if (bson_iter_init_find(&iter, &command->message->body, names[i]) &&
            concerns(served, &iter, foreign, 0))
            return true;
    return false;
}

bool spill_pipeline_watches(const spill_served_t *served, const spill_client_command_t *command)
{
    bson_iter_t iter, stream, all;
    const bson_t *body = &command->message->body;
    if (spill_served_all(served)[0] == NULL || !bson_iter_init(&iter, body) ||
        !bson_iter_find_descendant(&iter, "pipeline.0.$changeStream", &stream))
        return false;
    if (BSON_ITER_HOLDS_DOCUMENT(&stream) && bson_iter_recurse(&stream, &all) &&
        bson_iter_find(&all, "allChangesForCluster") && spill_iter_is_true(&all))
        return true;
    return strcmp(command->database, spill_served_database(served)) == 0 &&
           (command->collection == NULL || find_served(served, command->collection) != NULL ||
            is_hidden(served, command->collection) || is_view(served, command->collection));
}

/* The collection of $out or $merge: "c", {coll: "c"}, {into: "c"} or {into: {coll: "c"}}.
 * *database changes if it is named. */
static const char *find_target(const bson_iter_t *spec, const char **database)
{
    bson_iter_t child;
    const char *target = "";
    if (BSON_ITER_HOLDS_UTF8(spec))
        return bson_iter_utf8(spec, NULL);
    if (!BSON_ITER_HOLDS_DOCUMENT(spec) || !bson_iter_recurse(spec, &child))
        return "";
    while (bson_iter_next(&child)) {
        const char *key = bson_iter_key(&child);
        if (strcmp(key, "into") == 0)
            return find_target(&child, database);
        if (strcmp(key, "coll") == 0 && BSON_ITER_HOLDS_UTF8(&child))
            target = bson_iter_utf8(&child, NULL);
        if (strcmp(key, "db") == 0 && BSON_ITER_HOLDS_UTF8(&child))
            *database = bson_iter_utf8(&child, NULL);
    }
    return target;
}

/* ---- stages ---------------------------------------------------------------------------------- */

typedef enum stage {
    STAGE_KEEPS,    /* the documents stay */
    STAGE_SETS,     /* $set */
    STAGE_FILTERS,  /* $match */
    STAGE_PROJECTS, /* $project */
    STAGE_UNSETS,   /* $unset */
    STAGE_REPLACES, /* other documents follow, made of what the stage names */
    STAGE_JOINS,    /* adds what it reads in another collection */
    STAGE_WRITES,
    STAGE_REPORTS,
    STAGE_BEGINS, /* must be the first one; else not analyzed */
    STAGE_OTHER   /* not analyzed */
} stage_t;

static stage_t stage_of(const char *name)
{
    static const struct {
        const char *name;
        stage_t stage;
    } stages[] = {{"$match", STAGE_FILTERS},
                  {"$sort", STAGE_KEEPS},
                  {"$limit", STAGE_KEEPS},
                  {"$skip", STAGE_KEEPS},
                  {"$sample", STAGE_KEEPS},
                  {"$set", STAGE_SETS},
                  {"$addFields", STAGE_SETS},
                  {"$unwind", STAGE_KEEPS},
                  {"$project", STAGE_PROJECTS},
                  {"$unset", STAGE_UNSETS},
                  {"$group", STAGE_REPLACES},
                  {"$count", STAGE_REPLACES},
                  {"$bucket", STAGE_REPLACES},
                  {"$bucketAuto", STAGE_REPLACES},
                  {"$sortByCount", STAGE_REPLACES},
                  {"$replaceRoot", STAGE_REPLACES},
                  {"$replaceWith", STAGE_REPLACES},
                  {"$lookup", STAGE_JOINS},
                  {"$graphLookup", STAGE_JOINS},
                  {"$unionWith", STAGE_JOINS},
                  {"$out", STAGE_WRITES},
                  {"$merge", STAGE_WRITES},
                  {"$indexStats", STAGE_REPORTS},
                  {"$collStats", STAGE_REPORTS},
                  {"$planCacheStats", STAGE_REPORTS},
                  {"$geoNear", STAGE_BEGINS},
                  {"$search", STAGE_BEGINS},
                  {"$searchMeta", STAGE_BEGINS},
                  {"$vectorSearch", STAGE_BEGINS},
                  {"$changeStream", STAGE_BEGINS}};
    for (size_t i = 0; i < sizeof stages / sizeof *stages; i++)
        if (strcmp(stages[i].name, name) == 0)
            return stages[i].stage;
    return STAGE_OTHER;
}

/* Does a $set write _id? The array's owner would then be unknown. */
static bool has_key(const bson_iter_t *spec, const char *name)
{
    bson_iter_t child;
    if (!BSON_ITER_HOLDS_DOCUMENT(spec) || !bson_iter_recurse(spec, &child))
        return false;
    while (bson_iter_next(&child))
        if (spill_path_begins(bson_iter_key(&child), name))
            return true;
    return false;
}

/* Does a $lookup, $graphLookup or $unwind write _id? */
static bool writes_id(const bson_iter_t *spec)
{
    static const char *const names[] = {"as", "includeArrayIndex", "path", NULL};
    bson_iter_t child;
    if (BSON_ITER_HOLDS_UTF8(spec))
        return spill_path_begins(bson_iter_utf8(spec, NULL), "$_id");
    if (!BSON_ITER_HOLDS_DOCUMENT(spec) || !bson_iter_recurse(spec, &child))
        return false;
    while (bson_iter_next(&child)) {
        if (!spill_is_one_of(bson_iter_key(&child), names) || !BSON_ITER_HOLDS_UTF8(&child))
            continue;
        const char *path = bson_iter_utf8(&child, NULL);
        if (spill_path_begins(path[0] == '$' ? path + 1 : path, "_id"))
            return true;
    }
    return false;
}

static void exclude_array(spill_pipeline_t *pipeline, int at)
{
    pipeline->has_array = false;
    pipeline->excluded = true;
    pipeline->hide_at = at;
}

/* A $project that does not use F. It leaves F out if it includes fields, or excludes F itself. */
static void read_project(const bson_iter_t *spec, const char *array, unsigned mentions, int at,
                         spill_pipeline_t *pipeline)
{
    bson_iter_t child;
    bool includes = false, excludes = false, without_id = false;
    if (!BSON_ITER_HOLDS_DOCUMENT(spec) || !bson_iter_recurse(spec, &child))
        return;
    while (bson_iter_next(&child)) {
        const char *key = bson_iter_key(&child);
        bool keeps = spill_projection_of(&child) == SPILL_PROJECTION_EXCLUDES;
        if (strcmp(key, "_id") == 0 && keeps)
            without_id = true;
        else if (!keeps)
            includes = true;
        else if (spill_path_holds(key, array) && spill_iter_is_flag(&child))
            excludes = true;
    }
    if (mentions == 0 && includes)
        pipeline->has_array = false;
    else if (mentions != 0 && excludes && !includes)
        exclude_array(pipeline, at);
    else if (mentions != 0 || without_id)
        pipeline->uses_array = true;
}

/* "F", or ["F", "a"]: these paths exactly, or others. */
static void read_unset(const bson_iter_t *spec, const char *array, unsigned mentions, int at,
                       spill_pipeline_t *pipeline)
{
    bson_iter_t child;
    bool itself = BSON_ITER_HOLDS_UTF8(spec) && spill_path_holds(bson_iter_utf8(spec, NULL), array);
    bool id = BSON_ITER_HOLDS_UTF8(spec) && strcmp(bson_iter_utf8(spec, NULL), "_id") == 0;
    if (BSON_ITER_HOLDS_ARRAY(spec) && bson_iter_recurse(spec, &child))
        while (bson_iter_next(&child)) {
            itself = itself || (BSON_ITER_HOLDS_UTF8(&child) &&
                                spill_path_holds(bson_iter_utf8(&child, NULL), array));
            id = id ||
                 (BSON_ITER_HOLDS_UTF8(&child) && strcmp(bson_iter_utf8(&child, NULL), "_id") == 0);
        }
    if (itself)
        exclude_array(pipeline, at);
    else if (mentions != 0 || id)
        pipeline->uses_array = true;
}

static void read_other(stage_t stage, const bson_iter_t *spec, unsigned mentions,
                       spill_pipeline_t *pipeline)
{
    switch (stage) {
    case STAGE_SETS:
        pipeline->uses_array = pipeline->uses_array || mentions != 0 || has_key(spec, "_id");
        break;
    case STAGE_KEEPS:
    case STAGE_JOINS:
        pipeline->uses_array = pipeline->uses_array || mentions != 0 || writes_id(spec);
        break;
    case STAGE_REPLACES:
        pipeline->uses_array = pipeline->uses_array || mentions != 0;
        pipeline->has_array = false;
        break;
    default:
        pipeline->uses_array = true;
        break;
    }
}

/*
 * A stage behind one that has left F out. The documents still have `spill`: it is hidden before
 * they are used as a whole. In the DocumentDB engine a $set behind such a stage reads the documents
 * before it, with F.
 */
static void read_behind(stage_t stage, unsigned mentions, spill_pipeline_t *pipeline)
{
    switch (stage) {
    case STAGE_SETS:
        pipeline->uses_array = pipeline->uses_array || mentions != 0;
        break;
    case STAGE_WRITES:
    case STAGE_OTHER:
        pipeline->hides = true;
        break;
    default:
        pipeline->hides = pipeline->hides || (mentions & SPILL_MENTIONS_WHOLE) != 0;
        break;
    }
    pipeline->excluded = stage != STAGE_REPLACES;
}

/* Read a stage that may still get the documents of the collection. */
static void read_own(stage_t stage, const bson_iter_t *spec, const char *array, int at,
                     spill_pipeline_t *pipeline)
{
    bson_t filter;
    unsigned mentions = spill_mentions_in_value(spec, array);
    if (stage == STAGE_FILTERS && spill_iter_document(spec, &filter))
        mentions = spill_mentions_in_filter(&filter, array);
    if ((mentions & SPILL_MENTIONS_SPILL) && mentions != SPILL_MENTIONS_ANY)
        pipeline->names_spill = true;
    if (pipeline->excluded)
        read_behind(stage, mentions, pipeline);
    if (!pipeline->has_array)
        return;
    switch (stage) {
    case STAGE_FILTERS:
        pipeline->uses_array = pipeline->uses_array || mentions != 0;
        break;
    case STAGE_PROJECTS:
        read_project(spec, array, mentions, at, pipeline);
        break;
    case STAGE_UNSETS:
        read_unset(spec, array, mentions, at, pipeline);
        break;
    default:
        read_other(stage, spec, mentions, pipeline);
        break;
    }
}

static void read_target(const spill_served_t *served, const bson_iter_t *spec, const char *database,
                        spill_pipeline_t *pipeline)
{
    const char *target = find_target(spec, &database);
    pipeline->writes = true;
    pipeline->target = spill_served_find(served, database, target);
    if (spill_served_hidden(served, database, target))
        pipeline->hidden_target = target;
}

void spill_pipeline_read(const spill_served_t *served, const spill_client_command_t *command,
                         const char *array, spill_pipeline_t *pipeline)
{
    bson_iter_t iter, each, spec;
    bool filters = true;
    *pipeline = (spill_pipeline_t){.has_array = array != NULL};
    if (!bson_iter_init_find(&iter, &command->message->body, "pipeline") ||
        !BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &each))
        return;
    for (int at = 0; bson_iter_next(&each); at++) {
        if (!BSON_ITER_HOLDS_DOCUMENT(&each) || !bson_iter_recurse(&each, &spec) ||
            !bson_iter_next(&spec)) {
            pipeline->uses_array = true; /* upstream refuses it */
            continue;
        }
        stage_t stage = stage_of(bson_iter_key(&spec));
        filters = filters && stage == STAGE_FILTERS;
        if (filters && pipeline->filters++ == 0)
            spill_iter_document(&spec, &pipeline->first_filter);
        if (at == 0 && stage == STAGE_BEGINS)
            pipeline->begins = true;
        if (at == 0 && stage == STAGE_REPORTS) {
            pipeline->reports = true;
            pipeline->has_array = false;
        }
        if (stage == STAGE_WRITES)
            read_target(served, &spec, command->database, pipeline);
        if (array != NULL)
            read_own(stage, &spec, array, at, pipeline);
    }
}
