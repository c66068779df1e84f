/* Unbounded arrays, for comparison with the layouts. */
#include "tools/bench/subject.h"

#include "definition/schema.h"
#include "store/raw_reader.h"
#include "tools/bench/samples.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of a document on a server. Each element needs a key of some digits and a type. */
enum { SERVER_BYTES_MAX = 16 * 1024 * 1024, KEY_BYTES = 9, MARGIN_BYTES = 4096 };

static const char field[] = "activities";

static spill_unbounded_t unbounded_of(const spill_baseline_t *baseline, const char *owner)
{
    return (spill_unbounded_t){baseline->store, baseline->name, field, owner};
}

spill_code_t spill_baseline_open(spill_store_t *store, const char *name, int64_t element_bytes,
                                 spill_baseline_t *baseline, spill_error_t *error)
{
    spill_definition_t definition;
    *baseline = (spill_baseline_t){.store = store,
                                   .name = name,
                                   .element_bytes = element_bytes,
                                   .bytes_max = SERVER_BYTES_MAX};
    pthread_mutex_init(&baseline->lock, NULL);
    if (spill_unbounded_serves(store))
        return SPILL_OK;
    baseline->bytes_max = SPILL_DOCUMENT_BYTES_HIGHEST;
    spill_definition_init(&definition, name);
    snprintf(definition.collection, SPILL_NAME_SIZE, "%s", name);
    snprintf(definition.page_collection, SPILL_NAME_SIZE, "%sPages", name);
    definition.bounds.threshold = definition.bounds.page_capacity = 1;
    definition.bounds.head_bytes_max = definition.bounds.page_bytes_max =
        SPILL_DOCUMENT_BYTES_HIGHEST;
    SPILL_TRY(spill_store_define(store, &definition, error));
    return spill_array_open(store, name, &baseline->array, error);
}

void spill_baseline_close(spill_baseline_t *baseline)
{
    spill_array_close(baseline->array);
    baseline->array = NULL;
    pthread_mutex_destroy(&baseline->lock);
}

bool spill_baseline_fits(const spill_baseline_t *baseline, int64_t elements)
{
    return elements <= (baseline->bytes_max - MARGIN_BYTES) / (baseline->element_bytes + KEY_BYTES);
}

static void free_slice(spill_slice_t **slice)
{
    spill_slice_free(*slice);
}

/* ---- an embedded store: {activityCount, activities} as an element ---------------------------- */

static void append_numbered(bson_t *elements, int64_t number, const spill_value_t *element)
{
    char key[24];
    snprintf(key, sizeof key, "%" PRId64, number);
    spill_value_append(element, elements, key);
}

static spill_code_t write_whole(spill_baseline_t *baseline, const char *owner, const bson_t *whole,
                                bool is_new, spill_error_t *error)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_value_t value = spill_value_from_document(whole);
    spill_append_result_t result;
    spill_code_t code =
        is_new ? spill_array_append(baseline->array, &name, &value, 1, NULL, &result, error)
               : spill_array_edit(baseline->array, &name, 0, &value, error);
    bson_destroy(&storage);
    return code;
}

/* Read the document, which borrows from the slice. SPILL_NOT_FOUND: there is none. */
static spill_code_t read_whole(spill_baseline_t *baseline, const char *owner, spill_slice_t **slice,
                               bson_t *whole, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = spill_value_from_utf8(&storage, owner);
    spill_read_options_t options;
    spill_read_options_init(&options);
    bson_init(whole);
    SPILL_TRY(spill_array_read(baseline->array, &name, &options, slice, error));
    if ((*slice)->count != 1 || !bson_init_static(whole, (*slice)->elements[0].value.data,
                                                  (*slice)->elements[0].value.size_bytes))
        return spill_fail(error, SPILL_NOT_FOUND, "%s: there is no document \"%s\"", baseline->name,
                          owner);
    return SPILL_OK;
}

static int64_t elements_of(const bson_t *whole, bson_iter_t *elements)
{
    bson_iter_t count;
    bool good = bson_iter_init_find(&count, whole, "activityCount") &&
                bson_iter_init_find(elements, whole, field);
    return good ? bson_iter_as_int64(&count) : 0;
}

/* Make the document with one more element. */
static void append_element(const bson_t *whole, const spill_value_t *element, bson_t *longer)
{
    bson_iter_t found;
    bson_t before, elements;
    const uint8_t *data;
    uint32_t size;
    int64_t count = elements_of(whole, &found);
    bson_init(longer);
    BSON_APPEND_INT64(longer, "activityCount", count + 1);
    BSON_APPEND_ARRAY_BEGIN(longer, field, &elements);
    bson_iter_array(&found, &size, &data);
    if (bson_init_static(&before, data, size))
        bson_concat(&elements, &before);
    append_numbered(&elements, count, element);
    bson_append_array_end(longer, &elements);
}

static spill_code_t rewrite(spill_baseline_t *baseline, const char *owner,
                            const spill_value_t *element, spill_error_t *error)
{
    spill_slice_t *slice = NULL;
    bson_t whole, longer;
    pthread_mutex_lock(&baseline->lock);
    spill_code_t code = read_whole(baseline, owner, &slice, &whole, error);
    if (code == SPILL_OK) {
        append_element(&whole, element, &longer);
        code = write_whole(baseline, owner, &longer, false, error);
        bson_destroy(&longer);
    }
    pthread_mutex_unlock(&baseline->lock);
    spill_slice_free(slice);
    return code;
}

/* As an application would: read the whole document, and visit the end of its array. */
static spill_code_t end_of_whole(spill_baseline_t *baseline, const char *owner, int64_t limit,
                                 size_t *count, spill_error_t *error)
{
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    bson_t whole;
    bson_iter_t found, at;
    SPILL_TRY(read_whole(baseline, owner, &slice, &whole, error));
    int64_t skipped = elements_of(&whole, &found) - limit;
    for (bson_iter_recurse(&found, &at); bson_iter_next(&at);)
        *count += skipped-- <= 0;
    return SPILL_OK;
}

/* ---- on any store ---------------------------------------------------------------------------- */

spill_code_t spill_baseline_put(spill_baseline_t *baseline, const char *owner, int64_t count,
                                spill_error_t *error)
{
    uint8_t *bytes = bson_malloc((size_t)baseline->element_bytes);
    spill_value_t element = {
        .data = bytes, .size_bytes = (uint32_t)baseline->element_bytes, .type = BSON_TYPE_DOCUMENT};
    bson_t elements = BSON_INITIALIZER, whole = BSON_INITIALIZER;
    spill_code_t code;
    for (int64_t i = 0; i < count; i++) {
        spill_bench_element(bytes, (size_t)baseline->element_bytes, (uint64_t)i);
        append_numbered(&elements, i, &element);
    }
    if (!baseline->array) {
        spill_unbounded_t unbounded = unbounded_of(baseline, owner);
        code = spill_unbounded_put(&unbounded, &elements, error);
    } else {
        BSON_APPEND_INT64(&whole, "activityCount", count);
        BSON_APPEND_ARRAY(&whole, field, &elements);
        code = write_whole(baseline, owner, &whole, false, error);
        if (code == SPILL_NOT_FOUND)
            code = write_whole(baseline, owner, &whole, true, error);
    }
    bson_destroy(&whole);
    bson_destroy(&elements);
    bson_free(bytes);
    return code;
}

spill_code_t spill_baseline_append(spill_baseline_t *baseline, const char *owner,
                                   const spill_value_t *element, spill_error_t *error)
{
    if (baseline->array)
        return rewrite(baseline, owner, element, error);
    spill_unbounded_t unbounded = unbounded_of(baseline, owner);
    return spill_unbounded_push(&unbounded, element, error);
}

spill_code_t spill_baseline_newest(spill_baseline_t *baseline, const char *owner, int64_t limit,
                                   size_t *count, spill_error_t *error)
{
    *count = 0;
    if (baseline->array)
        return end_of_whole(baseline, owner, limit, count, error);
    spill_unbounded_t unbounded = unbounded_of(baseline, owner);
    int64_t found = 0;
    spill_code_t code = spill_unbounded_newest(&unbounded, limit, &found, error);
    *count = (size_t)found;
    return code;
}

spill_code_t spill_baseline_measure(spill_baseline_t *baseline, const char *owner,
                                    int64_t *elements, int64_t *size_bytes, spill_error_t *error)
{
    *elements = *size_bytes = 0;
    if (!baseline->array) {
        spill_unbounded_t unbounded = unbounded_of(baseline, owner);
        return spill_unbounded_measure(&unbounded, elements, size_bytes, error);
    }
    SPILL_SCOPED(free_slice) spill_slice_t *slice = NULL;
    bson_t whole;
    bson_iter_t found;
    SPILL_TRY(read_whole(baseline, owner, &slice, &whole, error));
    *elements = elements_of(&whole, &found);
    *size_bytes = whole.len;
    return SPILL_OK;
}
