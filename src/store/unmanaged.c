#include "store/render.h"

#include "bson/field_path.h"
#include "definition/schema.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool find_array(const spill_definition_t *definition, const bson_t *document,
                       bson_iter_t *elements)
{
    bson_iter_t iter;
    return spill_path_find(document, definition->array, &iter) && BSON_ITER_HOLDS_ARRAY(&iter) &&
           bson_iter_recurse(&iter, elements);
}

static int64_t count(bson_iter_t elements)
{
    int64_t length = 0;
    while (bson_iter_next(&elements))
        length++;
    return length;
}

/* Number the elements from the oldest on, and sort the run by number. */
static void number(const spill_definition_t *definition, spill_run_t *run)
{
    size_t length = run->count;
    for (size_t i = 0; i < length; i++)
        run->entries[i].seq = spill_array_index(definition, (int64_t)length, (int64_t)i);
    for (size_t i = 0; spill_grows_at_front(definition) && i < length / 2; i++) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[length - 1 - i];
        run->entries[length - 1 - i] = entry;
    }
}

bson_t *spill_unmanaged_split(const spill_definition_t *definition, const bson_t *document,
                              spill_run_t *run)
{
    bson_iter_t elements;
    spill_run_clear(run);
    if (!find_array(definition, document, &elements))
        return NULL;
    while (bson_iter_next(&elements)) {
        spill_value_t value = spill_value_from_iter(&elements);
        spill_run_add(run, 0, &value);
    }
    if (run->count == 0)
        return NULL;
    number(definition, run);
    bson_t *rest = bson_new();
    const char *array = definition->array;
    spill_document_exclude(document, &array, 1, rest);
    return rest;
}

void spill_unmanaged_read(const spill_request_t *read, const bson_t *fields,
                          spill_response_t *response)
{
    spill_run_t run = {0};
    bson_t *rest = spill_unmanaged_split(read->definition, fields, &run);
    response->state.fields_bytes = rest ? rest->len : fields->len;
    response->state.live = (int64_t)run.count;
    response->state.live_bytes = spill_run_bytes(&run);
    for (size_t i = 0;
         read->read.want == SPILL_WANT_FORWARD && i < run.count && (int64_t)i < read->read.limit;
         i++) {
        spill_element_t element = spill_run_element(&run, i);
        spill_run_add(&response->run, element.seq, &element.value);
    }
    spill_run_release(&run);
    bson_destroy(rest);
}

spill_code_t spill_unmanaged_allows(const spill_request_t *request, const bson_t *fields,
                                    spill_error_t *error)
{
    bson_iter_t elements;
    if (request->kind != SPILL_REQUEST_ADOPT || fields->len < request->limits.bytes_max ||
        !find_array(request->definition, fields, &elements))
        return SPILL_OK;
    return spill_fail(error, SPILL_TOO_BIG,
                      "%s: a document of %u bytes has no room for Spillway's bookkeeping",
                      request->definition->collection, fields->len);
}

bool spill_unmanaged_cut(spill_run_t *run, const spill_run_t *first)
{
    if (first->count >= run->count || !spill_run_begins_with(run, first))
        return false;
    run->count -= first->count;
    memmove(run->entries, run->entries + first->count, run->count * sizeof *run->entries);
    return true;
}

bool spill_unmanaged_measure(const spill_definition_t *definition, const bson_t *document,
                             int64_t full_bytes, spill_oversized_t *measured)
{
    bson_iter_t iter, elements;
    const uint8_t *data;
    uint32_t size;
    if (!find_array(definition, document, &elements) ||
        !spill_path_find(document, definition->array, &iter))
        return false;
    bson_iter_array(&iter, &size, &data);
    measured->bytes = size;
    measured->elements = count(elements);
    measured->document_bytes = document->len;
    measured->full = full_bytes > 0 && (int64_t)document->len >= full_bytes;
    measured->obstacle =
        measured->full && measured->elements == 1 ? SPILL_OBSTACLE_ROOM : SPILL_OBSTACLE_NONE;
    return measured->elements > 0;
}

/* Advice: how to bring elements of an unmanaged array into an array of this definition. */
static const char *import_advice(const spill_definition_t *definition)
{
    if (definition->layout == SPILL_LAYOUT_OUTLIER && spill_schema_of(definition)->appends_to_head)
        return "read and change them with your driver, also through a gateway ($push, $pull, "
               "$set), "
               "or adopt them: `spillway migrate STORE NAME --execute'";
    if (spill_schema_of(definition)->keeps_top_n)
        return "save them elsewhere, unset the field, and append them (`spillway import')";
    if (definition->layout == SPILL_LAYOUT_OUTLIER)
        return "adopt them with `spillway migrate' and a definition that keeps the newest, then "
               "convert that to one that keeps the oldest (`spillway convert --keep oldest')";
    return "adopt them with `spillway migrate' and a definition of layout outlier that keeps the "
           "newest, then convert that to this layout (`spillway convert')";
}

spill_code_t spill_unmanaged_refuse(const spill_definition_t *definition, int64_t length,
                                    spill_error_t *error)
{
    spill_fail(error, SPILL_REFUSED,
               "%s: field '%s' has %" PRId64 " elements that were not put there by "
               "Spillway; %s",
               definition->collection, definition->array, length, import_advice(definition));
    return spill_fail_because(error, SPILL_REFUSED, SPILL_REASON_UNMANAGED);
}

spill_code_t spill_path_refuse(const spill_obstruction_t *found, spill_error_t *error)
{
    char where[SPILL_NAME_SIZE + 16];
    if (found->length > 0)
        snprintf(where, sizeof where, "field '%.*s'", (int)found->length, found->path);
    else
        snprintf(where, sizeof where, "a field around it");
    const char *advice =
        found->has_head ? "another program has written to it: unset it, or run `spillway verify'"
        : found->type == BSON_TYPE_ARRAY
            ? "a path goes through sub-documents only: keep each member as an owner of its own, "
              "or define another path"
            : "unset it, or define another path";
    return spill_fail(error, found->has_head ? SPILL_CORRUPT : SPILL_REFUSED,
                      "%s: '%s' cannot be stored: %s is %s; %s", found->collection, found->path,
                      where, found->type == BSON_TYPE_ARRAY ? "an array" : "not a document",
                      advice);
}

/* Check that sub-documents, or nothing, stand around this field of the definition. */
static spill_code_t check_path(const spill_definition_t *definition, const bson_t *fields,
                               const char *path, spill_error_t *error)
{
    spill_obstruction_t found = {.collection = definition->collection, .path = path};
    return spill_path_blocked(fields, path, &found.length, &found.type)
               ? spill_path_refuse(&found, error)
               : SPILL_OK;
}

spill_code_t spill_unmanaged_check(const spill_definition_t *definition, const bson_t *fields,
                                   spill_error_t *error)
{
    bson_iter_t elements, iter;
    if (find_array(definition, fields, &elements)) {
        int64_t there = count(elements);
        return there > 0 ? spill_unmanaged_refuse(definition, there, error) : SPILL_OK;
    }
    SPILL_TRY(check_path(definition, fields, definition->array, error));
    if (!spill_path_find(fields, definition->array, &iter))
        return SPILL_OK;
    return spill_fail(error, SPILL_REFUSED,
                      "%s: field '%s' is not an array; unset it before you append",
                      definition->collection, definition->array);
}

spill_code_t spill_unmanaged_prepare(const spill_definition_t *definition, bson_t **fields,
                                     int64_t *added, spill_error_t *error)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    int64_t before = (*fields)->len;
    size_t count = spill_own_fields(definition, own);
    for (size_t i = 0; i < count; i++) {
        if (strchr(own[i], '.') == NULL)
            continue;
        SPILL_TRY(check_path(definition, *fields, own[i], error));
        bson_t *with = bson_new();
        spill_document_add_parents(*fields, own[i], with);
        bson_destroy(*fields);
        *fields = with;
    }
    *added = (int64_t)(*fields)->len - before;
    return SPILL_OK;
}

void spill_unmanaged_forget(const spill_definition_t *definition, bson_t **fields)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = spill_own_fields(definition, own);
    bson_t *without = bson_new();
    spill_document_prune(*fields, own, count, without);
    bson_destroy(*fields);
    *fields = without;
}

void spill_unmanaged_append(const spill_definition_t *definition, const char *name,
                            const spill_run_t *older, const spill_run_t *newer, bson_t *to)
{
    bson_t array;
    size_t length = older->count + newer->count;
    bson_append_array_begin(to, name, -1, &array);
    for (size_t i = 0; i < length; i++) {
        char buffer[16];
        const char *key;
        size_t rank = (size_t)spill_array_index(definition, (int64_t)length, (int64_t)i);
        spill_element_t element = rank < older->count
                                      ? spill_run_element(older, rank)
                                      : spill_run_element(newer, rank - older->count);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&element.value, &array, key);
    }
    bson_append_array_end(to, &array);
}

bson_t *spill_unmanaged_join(const spill_definition_t *definition, const bson_t *document,
                             const spill_run_t *older, const spill_run_t *newer)
{
    bson_t *joined = bson_new();
    bson_t leaf = BSON_INITIALIZER;
    spill_unmanaged_append(definition, definition->array, older, newer, &leaf);
    spill_document_merge(document, &leaf, joined);
    bson_destroy(&leaf);
    return joined;
}
