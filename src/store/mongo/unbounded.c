/* One document with a whole array, without Spillway and without a bound. */
#include "store/unbounded.h"

#include "store/mongo/mongo.h"
#include "util/error.h"

#include <string.h>

static spill_mongo_t *mongo_of(const spill_unbounded_t *unbounded)
{
    return (spill_mongo_t *)unbounded->store;
}

bool spill_unbounded_serves(const spill_store_t *store)
{
    return strcmp(store->ops->name, "mongodb") == 0;
}

static bson_t *filter_of(const spill_unbounded_t *unbounded)
{
    return BCON_NEW("_id", BCON_UTF8(unbounded->id));
}

static spill_code_t fail_missing(const spill_unbounded_t *unbounded, spill_error_t *error)
{
    return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no document \"%s\"",
                      unbounded->collection, unbounded->id);
}

spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error)
{
    bool found, done;
    bson_t *filter = filter_of(unbounded);
    bson_t document = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&document, "_id", unbounded->id);
    BSON_APPEND_ARRAY(&document, unbounded->array, elements);
    spill_code_t code = spill_mongo_replace(mongo_of(unbounded), unbounded->collection, filter,
                                            &document, &found, error);
    if (code == SPILL_OK && !found)
        code =
            spill_mongo_insert(mongo_of(unbounded), unbounded->collection, &document, &done, error);
    bson_destroy(&document);
    bson_destroy(filter);
    return code;
}

spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error)
{
    bool done;
    bson_t *filter = filter_of(unbounded);
    bson_t update = BSON_INITIALIZER, push;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$push", &push);
    spill_value_append(element, &push, unbounded->array);
    bson_append_document_end(&update, &push);
    spill_code_t code = spill_mongo_upsert(mongo_of(unbounded), unbounded->collection, filter,
                                           &update, &done, error);
    bson_destroy(&update);
    bson_destroy(filter);
    return code;
}

/* Read a projection of the document. The result is initialized in every case. */
static spill_code_t project(const spill_unbounded_t *unbounded, const bson_t *projection,
                            bson_t *document, spill_error_t *error)
{
    bool found;
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", BCON_UTF8(unbounded->id), "}", "}",
                                "1", "{", "$project", BCON_DOCUMENT(projection), "}");
    spill_code_t code = spill_mongo_first(mongo_of(unbounded), unbounded->collection, pipeline,
                                          document, &found, error);
    bson_destroy(pipeline);
    return code == SPILL_OK && !found ? fail_missing(unbounded, error) : code;
}

spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error)
{
    bson_t document;
    bson_iter_t iter, elements;
    char *path = bson_strdup_printf("$%s", unbounded->array);
    bson_t *projection =
        BCON_NEW("page", "{", "$slice", "[", BCON_UTF8(path), BCON_INT64(-limit), "]", "}");
    spill_code_t code = project(unbounded, projection, &document, error);
    *count = 0;
    if (code == SPILL_OK && bson_iter_init_find(&iter, &document, "page") &&
        bson_iter_recurse(&iter, &elements))
        while (bson_iter_next(&elements))
            ++*count;
    bson_destroy(&document);
    bson_destroy(projection);
    bson_free(path);
    return code;
}

spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error)
{
    bson_t document;
    bson_iter_t iter;
    char *path = bson_strdup_printf("$%s", unbounded->array);
    bson_t *projection = BCON_NEW("bytes", "{", "$bsonSize", "$$ROOT", "}", "elements", "{",
                                  "$size", BCON_UTF8(path), "}");
    spill_code_t code = project(unbounded, projection, &document, error);
    *elements = *size_bytes = 0;
    if (code == SPILL_OK && bson_iter_init_find(&iter, &document, "bytes"))
        *size_bytes = spill_iter_int64(&iter);
    if (code == SPILL_OK && bson_iter_init_find(&iter, &document, "elements"))
        *elements = spill_iter_int64(&iter);
    bson_destroy(&document);
    bson_destroy(projection);
    bson_free(path);
    return code;
}
