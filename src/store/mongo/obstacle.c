/*
 * Whether an unmanaged array in a document of nearly the size limit can be adopted. The server
 * measures, and the bookkeeping is rendered here, so the answer is exact to the byte.
 */
#include "store/mongo/mongo.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"

#include <stdio.h>
#include <string.h>

/*
 * A document is measured if it is within this many bytes of the size limit. What matters are some
 * hundred bytes of bookkeeping, and the owner, which a page has twice.
 */
enum { NEAR_BYTES = 65536 };

/* ---- what the server measures ---------------------------------------------------------------- */

/* A slice of the array without its newest element, or the newest alone. */
static bson_t *slice_of(const spill_definition_t *definition, const char *array, bool newest)
{
    bool front = spill_grows_at_front(definition);
    bson_t *rest = BCON_NEW("$max", "[", BCON_INT32(1), "{", "$subtract", "[", "{", "$size",
                            BCON_UTF8(array), "}", BCON_INT32(1), "]", "}", "]");
    bson_t *slice;
    if (newest)
        slice = BCON_NEW("$slice", "[", BCON_UTF8(array), BCON_INT32(front ? 1 : -1), "]");
    else if (front)
        slice = BCON_NEW("$slice", "[", BCON_UTF8(array), BCON_INT32(1), BCON_DOCUMENT(rest), "]");
    else
        slice = BCON_NEW("$slice", "[", BCON_UTF8(array), BCON_DOCUMENT(rest), "]");
    bson_destroy(rest);
    return slice;
}

void spill_mongo_project_near(const spill_definition_t *definition, bson_t *projection)
{
    char array[SPILL_NAME_SIZE + 1], count[SPILL_NAME_SIZE + 1];
    snprintf(array, sizeof array, "$%s", definition->array);
    snprintf(count, sizeof count, "$%s", definition->count_field);
    bson_t *newest = slice_of(definition, array, true);
    bson_t *older = slice_of(definition, array, false);
    bson_t near = BSON_INITIALIZER;
    BCON_APPEND(&near, "bytes", "{", "$bsonSize", "$$ROOT", "}", "newest", "{", "$bsonSize", "{",
                "a", BCON_DOCUMENT(newest), "}", "}", "largest", "{", "$max", "{", "$map", "{",
                "input", BCON_DOCUMENT(older), "in", "{", "$bsonSize", "{", "a", "$$this", "}", "}",
                "}", "}", "}", "bookkeeping", "{", "$type", "$" SPILL_STORED_ROOT, "}");
    if (definition->count_field[0] != '\0')
        BCON_APPEND(&near, "count", "{", "$type", BCON_UTF8(count), "}");
    BCON_APPEND(projection, "near", "{", "$cond", "[", "{", "$gte", "[", "{", "$bsonSize", "$$ROOT",
                "}", BCON_INT32(SPILL_DOCUMENT_BYTES_MAX - NEAR_BYTES), "]", "}",
                BCON_DOCUMENT(&near), "$$REMOVE", "]", "}");
    bson_destroy(newest);
    bson_destroy(older);
    bson_destroy(&near);
}

/* The measures of one document. */
typedef struct measures {
    int64_t bytes;    /* the document */
    int64_t newest;   /* {a: [the newest element]} */
    int64_t largest;  /* the largest of the older elements */
    bool has_spill;   /* another array is managed */
    char counted[16]; /* type of the count field, "missing" or "" */
} measures_t;

static bool read_measures(const bson_t *found, measures_t *measures)
{
    enum { AROUND_VALUE = 4 + 1 + 2 + 1 }; /* {a: value} without the value */
    bson_iter_t near, field;
    *measures = (measures_t){0};
    if (!bson_iter_init_find(&near, found, "near") || !BSON_ITER_HOLDS_DOCUMENT(&near) ||
        !bson_iter_recurse(&near, &field))
        return false;
    while (bson_iter_next(&field)) {
        const char *key = bson_iter_key(&field);
        const char *text = BSON_ITER_HOLDS_UTF8(&field) ? bson_iter_utf8(&field, NULL) : "";
        if (strcmp(key, "bytes") == 0)
            measures->bytes = spill_iter_int64(&field);
        else if (strcmp(key, "newest") == 0)
            measures->newest = spill_iter_int64(&field);
        else if (strcmp(key, "largest") == 0)
            measures->largest = spill_iter_int64(&field) - AROUND_VALUE;
        else if (strcmp(key, "bookkeeping") == 0)
            measures->has_spill = strcmp(text, "missing") != 0;
        else if (strcmp(key, "count") == 0)
            bson_strncpy(measures->counted, text, sizeof measures->counted);
    }
    return measures->bytes > 0;
}

/* ---- added bytes ----------------------------------------------------------------------------- */

/* Bytes of a field with that name and a value of `value` bytes. A path adds documents around it. */
static int64_t field_bytes(const char *name, int64_t value)
{
    enum { AROUND = 1 + 4 + 1 }; /* type, length and NUL of a document, in whose place is a '.' */
    int64_t around = 0;
    for (const char *dot = strchr(name, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
        around += AROUND;
    return name[0] == '\0' ? 0 : 1 + (int64_t)strlen(name) + 1 + around + value;
}

/* The bytes that ADOPT (`pages` == 0) or ADOPT_SPLIT adds to a document, not counting what it cuts.
 * A full document is not opened for quick appends (reshape.c), so `limits` is zero. */
static int64_t added_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                           const measures_t *measures, int64_t pages)
{
    enum { EMPTY_DOCUMENT = 5, INT32_BYTES = 4, INT64_BYTES = 8, BOOL_BYTES = 1 };
    spill_request_t take = {.kind = pages > 0 ? SPILL_REQUEST_ADOPT_SPLIT : SPILL_REQUEST_ADOPT,
                            .definition = definition,
                            .owner = owner,
                            .page = SPILL_HEAD};
    int64_t bytes = field_bytes(definition->array, spill_mongo_bookkeeping_bytes(&take, pages));
    if (!measures->has_spill)
        bytes += field_bytes(SPILL_STORED_ROOT, EMPTY_DOCUMENT);
    if (strcmp(measures->counted, "missing") == 0)
        bytes += field_bytes(definition->count_field, INT32_BYTES);
    else if (strcmp(measures->counted, "long") == 0 || strcmp(measures->counted, "double") == 0)
        bytes -= INT64_BYTES - INT32_BYTES;
    if (pages > 0)
        bytes += field_bytes(definition->overflow_field, BOOL_BYTES) +
                 field_bytes(definition->pages_field, INT32_BYTES);
    return bytes;
}

/* Bytes of a page with one element of `element` bytes. */
static int64_t page_bytes(const spill_definition_t *definition, const spill_value_t *owner,
                          int64_t element, bool leased)
{
    spill_run_t run = {0};
    spill_value_t null = {.type = BSON_TYPE_NULL};
    spill_state_t page = {.live = 1, .lease = leased ? 1 : 0};
    bson_t document;
    spill_run_add(&run, 0, &null);
    spill_render_page(definition, owner, &page, &run, NULL, false, &document);
    int64_t bytes = (int64_t)document.len + element;
    bson_destroy(&document);
    spill_run_release(&run);
    return bytes;
}

/* ---- the answer ------------------------------------------------------------------------------ */

spill_obstacle_t spill_mongo_obstacle(const spill_definition_t *definition,
                                      const spill_list_query_t *query,
                                      const spill_oversized_t *found, const bson_t *document)
{
    measures_t measures;
    if (found->managed || !read_measures(document, &measures))
        return SPILL_OBSTACLE_NONE;
    int64_t room = SPILL_DOCUMENT_BYTES_MAX - measures.bytes;
    bool fits = added_bytes(definition, &found->owner, &measures, 0) <= room;
    int64_t freed = found->elements > 1 ? found->bytes - measures.newest : 0;
    bool due = !fits || found->elements >= query->oversized.slots ||
               measures.bytes >= query->oversized.bytes;
    if (!fits && (found->elements <= 1 ||
                  added_bytes(definition, &found->owner, &measures, 1) > room + freed))
        return SPILL_OBSTACLE_ROOM;
    if (due && found->elements > 1 &&
        page_bytes(definition, &found->owner, measures.largest, !fits) > SPILL_DOCUMENT_BYTES_MAX)
        return SPILL_OBSTACLE_ELEMENT;
    return SPILL_OBSTACLE_NONE;
}
