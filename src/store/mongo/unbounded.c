/* One document with a whole array, without Spillway and without a bound. */
#include "store/unbounded.h"

#include "store/mongo/mongo.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

static spill_mongo_t *mongo_of(const spill_unbounded_t *unbounded)
{
    return (spill_mongo_t *)unbounded->store;
}

bool spill_unbounded_serves(const spill_store_t *store)
{
    return strcmp(store->ops->name, "mongodb") == 0;
}

static spill_code_t fail_missing(const spill_unbounded_t *unbounded, spill_error_t *error)
{
    return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no document \"%s\"",
                      unbounded->collection, unbounded->id);
}

spill_code_t spill_unbounded_put(const spill_unbounded_t *unbounded, const bson_t *elements,
                                 spill_error_t *error)
{
    spill_mongo_t *store = mongo_of(unbounded);
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    bool found, done;
    BSON_APPEND_UTF8(&filter, "_id", unbounded->id);
    BSON_APPEND_UTF8(&document, "_id", unbounded->id);
    BSON_APPEND_ARRAY(&document, unbounded->array, elements);
    SPILL_TRY(spill_mongo_replace(store, unbounded->collection, &filter, &document, &found, error));
    return found ? SPILL_OK
                 : spill_mongo_insert(store, unbounded->collection, &document, &done, error);
}

spill_code_t spill_unbounded_push(const spill_unbounded_t *unbounded, const spill_value_t *element,
                                  spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bson_t push;
    bool done;
    BSON_APPEND_UTF8(&filter, "_id", unbounded->id);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$push", &push);
    spill_value_append(element, &push, unbounded->array);
    bson_append_document_end(&update, &push);
    return spill_mongo_upsert(mongo_of(unbounded), unbounded->collection, &filter, &update, &done,
                              error);
}

/* Read a projection of the document, which is initialized here in every case. */
static spill_code_t project(const spill_unbounded_t *unbounded, const bson_t *projection,
                            bson_t *document, spill_error_t *error)
{
    bool found;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *pipeline = BCON_NEW("0", "{", "$match", "{", "_id", BCON_UTF8(unbounded->id), "}", "}",
                                "1", "{", "$project", BCON_DOCUMENT(projection), "}");
    SPILL_TRY(spill_mongo_first(mongo_of(unbounded), unbounded->collection, pipeline, document,
                                &found, error));
    return found ? SPILL_OK : fail_missing(unbounded, error);
}

/* "$<array>" */
static const char *array_ref(const spill_unbounded_t *unbounded, char ref[SPILL_NAME_SIZE + 1])
{
    snprintf(ref, SPILL_NAME_SIZE + 1, "$%s", unbounded->array);
    return ref;
}

spill_code_t spill_unbounded_newest(const spill_unbounded_t *unbounded, int64_t limit,
                                    int64_t *count, spill_error_t *error)
{
    char ref[SPILL_NAME_SIZE + 1];
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("page", "{", "$slice", "[", BCON_UTF8(array_ref(unbounded, ref)),
                                  BCON_INT64(-limit), "]", "}");
    bson_iter_t iter, elements;
    *count = 0;
    SPILL_TRY(project(unbounded, projection, &document, error));
    if (bson_iter_init_find(&iter, &document, "page") && bson_iter_recurse(&iter, &elements))
        while (bson_iter_next(&elements))
            ++*count;
    return SPILL_OK;
}

spill_code_t spill_unbounded_measure(const spill_unbounded_t *unbounded, int64_t *elements,
                                     int64_t *size_bytes, spill_error_t *error)
{
    char ref[SPILL_NAME_SIZE + 1];
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *projection = BCON_NEW("bytes", "{", "$bsonSize", "$$ROOT", "}", "elements", "{",
                                  "$size", BCON_UTF8(array_ref(unbounded, ref)), "}");
    bson_iter_t iter;
    *elements = *size_bytes = 0;
    SPILL_TRY(project(unbounded, projection, &document, error));
    if (bson_iter_init_find(&iter, &document, "bytes"))
        *size_bytes = spill_iter_int64(&iter);
    if (bson_iter_init_find(&iter, &document, "elements"))
        *elements = spill_iter_int64(&iter);
    return SPILL_OK;
}
