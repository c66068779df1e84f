/* For maps and arrays in elements: the import that makes arrays of them, and the change of
 * programs. */
#include "tools/scan/plan.h"

#include <inttypes.h>
#include <string.h>

/* The way from a document to the map or array, as `import --elements` describes it. Owned. */
typedef struct way {
    char *elements; /* "versions", "groups.$.members" */
    char *outer;    /* "groups"; NULL: the document has the array itself */
    char *last;     /* the array's name: the last part of the path */
    bool by_key;    /* the outer one is a map */
} way_t;

static void release_way(way_t *way)
{
    bson_free(way->elements);
    bson_free(way->outer);
    bson_free(way->last);
}

/*
 * Translate a path of a scan. False: import has no path for it, because it is within two arrays or
 * maps, is an array's element itself, or has a name that needs quotes.
 */
static bool find_way(const spill_scan_path_t *path, way_t *way)
{
    static const char array[] = "[].", map[] = ".*.";
    *way = (way_t){0};
    size_t length = strlen(path->path) - (path->map ? strlen(".*") : 0);
    char *text = bson_strndup(path->path, length);
    const char *pass = strstr(text, array);
    const char *key = strstr(text, map);
    way->by_key = key && (!pass || key < pass);
    pass = way->by_key ? key : pass;
    const char *inner = pass ? pass + (way->by_key ? strlen(map) : strlen(array)) : text;
    bool plain = !strpbrk(inner, "[]*\"'$") && inner[0] != '\0' && pass != text &&
                 strcspn(text, "\"'$") == length;
    if (plain) {
        const char *dot = strrchr(inner, '.');
        way->outer = pass ? bson_strndup(text, (size_t)(pass - text)) : NULL;
        way->elements = pass ? bson_strdup_printf("%s.$.%s", way->outer, inner) : bson_strdup(text);
        way->last = bson_strdup(dot ? dot + 1 : inner);
    }
    bson_free(text);
    return plain;
}

/* The layout's options for `define`. */
static char *layout_options(const spill_definition_t *definition)
{
    const spill_bounds_t *bounds = &definition->bounds;
    bool front = definition->order == SPILL_ARRAY_NEWEST_FIRST;
    if (definition->layout != SPILL_LAYOUT_OUTLIER)
        return bson_strdup("--layout reference");
    return bson_strdup_printf("--layout outlier --threshold %" PRId64 " --page %" PRId64
                              " --max-bytes %" PRId64 "%s",
                              bounds->threshold, bounds->page_capacity, bounds->head_bytes_max,
                              front ? " --order newest-first" : "");
}

static void say_commands(const spill_plan_item_t *item, const way_t *way, const char *collection,
                         spill_plan_texts_t *texts)
{
    const bool map = item->path->map;
    char *layout = layout_options(&item->definition);
    char *owner = way->outer
                      ? bson_strdup_printf(" --owner-inner inner%s", way->by_key ? "" : "=_id")
                      : bson_strdup("");
    spill_plan_say(texts,
                   "Import it into a new collection: spillway define STORE NAME --collection NEW "
                   "--page-collection NEW_pages --array '%s' %s%s; spillway import STORE NAME "
                   "SOURCE --elements '%s'%s%s "
                   "--fields. SOURCE is mongodb://HOST/DATABASE.%s, or a dump of it.",
                   way->last, layout, map ? " --id-field key" : "", way->elements,
                   map ? " --entries-as key" : "", owner, collection);
    if (way->outer && !way->by_key)
        spill_plan_say(texts,
                       "If the documents in '%s' have no _id, write --owner-inner inner=FIELD, or "
                       "--owner-inner inner for their positions.",
                       way->outer);
    bson_free(layout);
    bson_free(owner);
}

/* What a program writes now, to set an entry or to push an element. */
static char *change_before(const spill_plan_item_t *item, const way_t *way)
{
    const char *inner = way->outer ? way->elements + strlen(way->outer) + strlen(".$.") : NULL;
    const char *step = way->by_key ? "INNER" : "$";
    char *filter = way->outer && !way->by_key
                       ? bson_strdup_printf("{_id: ID, \"%s._id\": INNER}", way->outer)
                       : bson_strdup("{_id: ID}");
    char *field = way->outer ? bson_strdup_printf("%s.%s.%s", way->outer, step, inner)
                             : bson_strdup(way->elements);
    char *text =
        item->path->map
            ? bson_strdup_printf("updateOne(%s, {$set: {\"%s.KEY\": VALUE}})", filter, field)
            : bson_strdup_printf("updateOne(%s, {$push: {\"%s\": ELEMENT}})", filter, field);
    bson_free(filter);
    bson_free(field);
    return text;
}

/* Where a program finds the array or map now. */
static char *place_before(const way_t *way)
{
    if (!way->outer)
        return bson_strdup_printf("document.%s", way->elements);
    return bson_strdup_printf("document.%s[%s].%s", way->outer, way->by_key ? "INNER" : "i",
                              way->elements + strlen(way->outer) + strlen(".$."));
}

/* Describe the change of programs, in the shell's language. */
static void say_change(const spill_plan_item_t *item, const way_t *way, const char *collection,
                       spill_plan_texts_t *texts)
{
    const bool map = item->path->map;
    const char *owner = way->outer ? "{_id: ID, inner: INNER}" : "ID";
    char *before = change_before(item, way);
    char *place = place_before(way);
    char *quoted = spill_plan_quoted(way->last, strlen(way->last));
    char *name = spill_plan_quoted(collection, strlen(collection));
    spill_plan_say(texts, "Programs write now: db.getCollection(%s).%s.", name, before);
    spill_plan_say(texts,
                   "Then, through the gateway: db.NEW.updateOne({_id: %s}, {$push: {%s: %s}}, "
                   "{upsert: true}); or spillway append STORE NAME OWNER ELEMENT.",
                   owner, quoted, map ? "{key: KEY, ...VALUE}" : "ELEMENT");
    if (map)
        spill_plan_say(texts, "An entry that exists is edited by its key: spillway edit STORE NAME "
                              "OWNER --id KEY ELEMENT.");
    spill_plan_say(
        texts,
        "Programs read now: %s%s. Then, of the owner %s in the new collection: %s in the "
        "array %s%s.",
        place, map ? "[KEY]" : "", owner,
        map ? "the element with {key: KEY}" : "the newest elements", way->last,
        map ? " or in its pages" : ", and older ones in its pages");
    bson_free(before);
    bson_free(place);
    bson_free(quoted);
    bson_free(name);
}

void spill_plan_say_import(spill_plan_item_t *item, const char *collection)
{
    way_t way;
    if (!strstr(item->path->path, "[]") && !strchr(item->path->path, '*'))
        return; /* an array of the document itself */
    if (find_way(item->path, &way)) {
        say_commands(item, &way, collection, &item->why);
        say_change(item, &way, collection, &item->why);
    } else {
        spill_plan_say(&item->why,
                       "`import --elements' passes one array or map on the way, and no array of "
                       "arrays: first import the outer one.");
    }
    release_way(&way);
}
