/* Measured arrays in any layout: appends, newest pages, sizes of documents. */
#include "tools/bench/subject.h"

#include "definition/schema.h"
#include "tools/bench/samples.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

enum { TOP = 3, FILL_BATCH = 500, DOCUMENTS_MAX = 100, RACERS = 64, ENTRY_BYTES = 64 };

static bool is_bucket(const spill_array_t *array)
{
    return spill_schema_of(spill_array_get_definition(array))->has_windows;
}

static bool is_referenced(spill_layout_t layout)
{
    return layout == SPILL_LAYOUT_REFERENCE || layout == SPILL_LAYOUT_SUBSET;
}

/* ---- definitions ----------------------------------------------------------------------------- */

/* Bytes for this many elements: the number of elements must be the bound, not their bytes. */
static int64_t room_for(int64_t elements, int64_t element_bytes)
{
    int64_t bytes = (elements + RACERS) * (element_bytes + ENTRY_BYTES) + (1 << 16);
    return bytes < SPILL_DOCUMENT_BYTES_HIGHEST ? bytes : SPILL_DOCUMENT_BYTES_HIGHEST;
}

static void set_bounds(const spill_subject_kind_t *kind, const spill_subject_bounds_t *bounds,
                       spill_definition_t *definition)
{
    spill_bounds_t *own = &definition->bounds;
    own->threshold = is_referenced(kind->layout) ? 1 : bounds->threshold;
    own->head_bytes_max = room_for(bounds->threshold + bounds->page, bounds->element_bytes);
    if (kind->layout == SPILL_LAYOUT_CAPPED)
        return;
    own->page_capacity = bounds->page;
    own->page_bytes_max = is_referenced(kind->layout)
                              ? own->page_bytes_max
                              : room_for(bounds->page, bounds->element_bytes);
}

spill_code_t spill_subject_definition(const spill_subject_kind_t *kind, const char *name,
                                      const spill_subject_bounds_t *bounds,
                                      spill_definition_t *definition, spill_error_t *error)
{
    SPILL_TRY(spill_definition_preset(definition, kind->preset, name, error));
    if (kind->layout == SPILL_LAYOUT_CAPPED)
        spill_definition_set_layout(definition, kind->layout);
    snprintf(definition->collection, SPILL_NAME_SIZE, "%s", name);
    if (kind->layout != SPILL_LAYOUT_CAPPED)
        snprintf(definition->page_collection, SPILL_NAME_SIZE, "%s%s", name,
                 kind->layout == SPILL_LAYOUT_BUCKET ? "" : "Pages");
    if (kind->layout == SPILL_LAYOUT_BUCKET)
        definition->window = kind->window;
    if (kind->layout == SPILL_LAYOUT_SUBSET) {
        definition->top_count = TOP;
        strcpy(definition->sort_field, "at");
    }
    if (definition->value_field[0] != '\0') {
        strcpy(definition->value_field, "actor");
        strcpy(definition->time_field, "at");
    }
    set_bounds(kind, bounds, definition);
    return spill_definition_check(definition, error);
}

/* ---- appends --------------------------------------------------------------------------------- */

spill_code_t spill_subject_append(spill_array_t *array, const spill_value_t *owner,
                                  const spill_value_t *elements, size_t count, spill_error_t *error)
{
    if (is_bucket(array)) {
        spill_bucket_append_options_t options;
        size_t windows;
        spill_bucket_append_options_init(&options);
        return spill_bucket_append(array, owner, elements, count, &options, NULL, &windows, error);
    }
    spill_append_result_t result;
    return spill_array_append(array, owner, elements, count, NULL, &result, error);
}

spill_code_t spill_subject_fill(spill_array_t *array, const spill_value_t *owner,
                                int64_t element_bytes, int64_t from, int64_t to,
                                spill_error_t *error)
{
    enum { BATCH_BYTES = 1 << 20 };
    size_t size = (size_t)element_bytes;
    size_t batch = BATCH_BYTES / size < FILL_BATCH ? BATCH_BYTES / size + 1 : FILL_BATCH;
    uint8_t *bytes = bson_malloc(batch * size);
    spill_value_t *elements = bson_malloc(batch * sizeof *elements);
    spill_code_t code = SPILL_OK;
    for (int64_t done = from; code == SPILL_OK && done < to; done += (int64_t)batch) {
        size_t count = to - done < (int64_t)batch ? (size_t)(to - done) : batch;
        for (size_t i = 0; i < count; i++) {
            spill_bench_element(bytes + i * size, size, (uint64_t)done + i);
            elements[i] = (spill_value_t){
                .data = bytes + i * size, .size_bytes = (uint32_t)size, .type = BSON_TYPE_DOCUMENT};
        }
        code = spill_subject_append(array, owner, elements, count, error);
    }
    bson_free(elements);
    bson_free(bytes);
    return code;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static spill_code_t newest_of_buckets(spill_array_t *array, const spill_value_t *owner,
                                      int64_t limit, size_t *count, spill_error_t *error)
{
    spill_bucket_read_options_t options;
    spill_bucket_slice_t *slice;
    spill_bucket_read_options_init(&options);
    options.limit = limit;
    spill_code_t code = spill_bucket_read(array, owner, &options, &slice, error);
    if (code == SPILL_OK)
        *count = slice->count;
    spill_bucket_slice_free(slice);
    return code;
}

spill_code_t spill_subject_newest(spill_array_t *array, const spill_value_t *owner, int64_t limit,
                                  size_t *count, spill_error_t *error)
{
    *count = 0;
    if (is_bucket(array))
        return newest_of_buckets(array, owner, limit, count, error);
    spill_read_options_t options;
    spill_slice_t *slice;
    spill_read_options_init(&options);
    options.limit = limit;
    spill_code_t code = spill_array_read(array, owner, &options, &slice, error);
    if (code == SPILL_OK)
        *count = slice->count;
    spill_slice_free(slice);
    return code;
}

spill_code_t spill_subject_given(spill_array_t *array, const spill_value_t *owner, int64_t *given,
                                 spill_error_t *error)
{
    *given = 0;
    if (is_bucket(array)) {
        spill_statistics_t statistics;
        SPILL_TRY(spill_bucket_statistics(array, owner, NULL, NULL, &statistics, NULL, error));
        *given = statistics.count;
        return SPILL_OK;
    }
    spill_count_t count;
    SPILL_TRY(spill_array_count(array, owner, &count, error));
    bool capped = spill_schema_of(spill_array_get_definition(array))->is_capped;
    *given = capped ? count.next : count.count;
    return SPILL_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

typedef struct sizing {
    spill_subject_sizes_t *sizes;
    int documents;
} sizing_t;

static bool note_document(void *context, const char *collection, const bson_t *document)
{
    sizing_t *sizing = context;
    (void)collection;
    if (sizing->documents++ == 0)
        sizing->sizes->head = document->len;
    if (document->len > sizing->sizes->largest)
        sizing->sizes->largest = document->len;
    return sizing->documents < DOCUMENTS_MAX;
}

/* The window of element `last`, as an owner. */
static spill_code_t last_window(spill_array_t *array, const spill_value_t *owner,
                                int64_t element_bytes, int64_t last, bson_t *storage,
                                spill_value_t *name, spill_error_t *error)
{
    char window[SPILL_WINDOW_SIZE];
    uint8_t *bytes = bson_malloc((size_t)element_bytes);
    spill_value_t element = {
        .data = bytes, .size_bytes = (uint32_t)element_bytes, .type = BSON_TYPE_DOCUMENT};
    spill_bench_element(bytes, (size_t)element_bytes, (uint64_t)last);
    spill_code_t code =
        spill_bucket_window_of(spill_array_get_definition(array), &element, window, error);
    if (code == SPILL_OK)
        *name = spill_bucket_name(storage, owner, window);
    bson_free(bytes);
    return code;
}

spill_code_t spill_subject_sizes(spill_array_t *array, const spill_value_t *owner,
                                 int64_t element_bytes, int64_t last, spill_subject_sizes_t *sizes,
                                 spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    spill_value_t name = *owner;
    *sizes = (spill_subject_sizes_t){0};
    sizing_t sizing = {.sizes = sizes};
    if (is_bucket(array))
        SPILL_TRY(last_window(array, owner, element_bytes, last, &storage, &name, error));
    spill_code_t code = spill_array_documents(array, &name, false, note_document, &sizing, error);
    return code == SPILL_CANCELLED ? SPILL_OK : code;
}
