/*
 * Layouts reference and subset: the head's summary, with the highest-ranked elements of a subset,
 * and documents of one element {_id: {owner, page}, <owner>, <its fields>, spill}.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "store/transition.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the top of a summary -------------------------------------------------------------------- */

enum { TOP_PATH_SIZE = 2 * SPILL_NAME_SIZE };

static bool has_top(const spill_mongo_document_t *document)
{
    return document->head && spill_schema_of(document->request->definition)->has_top;
}

/* "reviewSummary.topReviews" */
static const char *summary_path(const spill_definition_t *definition, const char *name,
                                char path[TOP_PATH_SIZE])
{
    snprintf(path, TOP_PATH_SIZE, "%s.%s", definition->array, name);
    return path;
}

/* ---- ... reading it -------------------------------------------------------------------------- */

void spill_mongo_project_top(const spill_mongo_document_t *document, bson_t *projection)
{
    char path[TOP_PATH_SIZE], ref[TOP_PATH_SIZE + 1], own[SPILL_MONGO_PATH_SIZE];
    if (!has_top(document))
        return;
    BSON_APPEND_UTF8(projection, SPILL_STORED_TOP,
                     spill_mongo_ref(document, SPILL_STORED_TOP, own));
    BSON_APPEND_UTF8(projection, SPILL_STORED_SHOWN,
                     spill_mongo_ref(document, SPILL_STORED_SHOWN, own));
    if (document->request->kind != SPILL_REQUEST_READ || !document->request->read.want_top)
        return;
    const spill_definition_t *definition = document->request->definition;
    snprintf(ref, sizeof ref, "$%s", summary_path(definition, definition->top_field, path));
    BSON_APPEND_UTF8(projection, "topRun", ref);
}

spill_code_t spill_mongo_decode_top(const spill_mongo_document_t *document, const bson_t *projected,
                                    spill_state_t *state, spill_error_t *error)
{
    bson_iter_t top, shown;
    if (!has_top(document) || !state->present ||
        !bson_iter_init_find(&top, projected, SPILL_STORED_TOP))
        return SPILL_OK;
    spill_value_t value = spill_value_from_iter(&top);
    bool counted = bson_iter_init_find(&shown, projected, SPILL_STORED_SHOWN) &&
                   BSON_ITER_HOLDS_NUMBER(&shown) && spill_iter_int64(&shown) >= 0;
    if (!counted || !spill_top_read(&value, (size_t)spill_iter_int64(&shown), &state->top))
        return spill_fail(error, SPILL_CORRUPT, "%s: %s.top or its field shown is malformed",
                          document->collection, document->spill);
    return SPILL_OK;
}

void spill_mongo_decode_top_run(const bson_t *projected, const spill_state_t *state,
                                spill_run_t *run)
{
    bson_iter_t iter, elements;
    if (!bson_iter_init_find(&iter, projected, "topRun") || !BSON_ITER_HOLDS_ARRAY(&iter) ||
        !bson_iter_recurse(&iter, &elements))
        return;
    for (size_t i = 0; i < state->top.shown && bson_iter_next(&elements); i++) {
        spill_value_t value = spill_value_from_iter(&elements);
        spill_run_add(run, state->top.at[i].seq, &value);
    }
}

/* ---- ... the elements that it shows ---------------------------------------------------------- */

bool spill_mongo_find_in(const spill_run_t *run, int64_t seq, spill_value_t *value)
{
    for (size_t i = 0; run && i < run->count; i++)
        if (run->entries[i].seq == seq) {
            *value = spill_run_element(run, i).value;
            return true;
        }
    return false;
}

/* Find element `seq` among the request's own; an append's have numbers from `from` on. */
static bool find_own(const spill_request_t *request, int64_t from, int64_t seq,
                     spill_value_t *value)
{
    bool append = request->kind == SPILL_REQUEST_APPEND;
    for (size_t i = 0; append && i < request->append.element_count; i++)
        if (spill_request_seq(request, from, i) == seq) {
            *value = request->append.elements[i];
            return true;
        }
    if (!spill_request_is_change(request) || seq != request->change.seq || !request->change.element)
        return false;
    *value = *request->change.element;
    return true;
}

void spill_mongo_gather_top(const spill_request_t *request, int64_t from,
                            const spill_response_t *read, spill_top_t *top, spill_run_t *values)
{
    const spill_run_t *refill_run = spill_request_refill_run(request);
    spill_run_clear(values);
    for (size_t i = 0; i < top->shown; i++) {
        spill_value_t value;
        int64_t seq = top->at[i].seq;
        if (!find_own(request, from, seq, &value) &&
            !spill_mongo_find_in(refill_run, seq, &value) &&
            !spill_mongo_find_in(&read->run, seq, &value) &&
            !spill_mongo_find_in(&read->top_run, seq, &value)) {
            spill_top_show(top, request->definition, i); /* another program changed the summary */
            return;
        }
        spill_run_add(values, seq, &value);
    }
}

/* ---- ... writing it -------------------------------------------------------------------------- */

static void set_top(const spill_mongo_document_t *document, const spill_top_t *top, bool literal,
                    bson_t *set)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t noted = BSON_INITIALIZER;
    if (has_top(document)) {
        spill_top_append(top, SPILL_STORED_TOP, &noted);
        bson_append_int64(set, spill_mongo_path(document, SPILL_STORED_SHOWN, path), -1,
                          (int64_t)top->shown);
        spill_mongo_set_document(spill_mongo_path(document, SPILL_STORED_TOP, path), &noted,
                                 literal, set);
    }
    bson_destroy(&noted);
}

static void append_values(const spill_run_t *values, size_t from, size_t count, const char *name,
                          bson_t *to)
{
    bson_t array;
    bson_append_array_begin(to, name, -1, &array);
    for (size_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        spill_element_t element = spill_run_element(values, from + i);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&element.value, &array, key);
    }
    bson_append_array_end(to, &array);
}

/* Find new elements among the shown ones, if they are adjacent: first ... first + count - 1. */
static bool find_block(const spill_top_t *top, int64_t from, size_t *first, size_t *count)
{
    size_t end = 0;
    *first = 0;
    *count = 0;
    for (size_t i = 0; i < top->shown; i++) {
        if (top->at[i].seq < from)
            continue;
        *first = *count == 0 ? i : *first;
        end = i + 1;
        ++*count;
    }
    return *count == 0 || end - *first == *count;
}

void spill_mongo_append_to_summary(const spill_mongo_document_t *document,
                                   const spill_response_t *read, spill_state_t *after, bson_t *set,
                                   bson_t *push)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t from = spill_state_end(&read->state);
    char path[TOP_PATH_SIZE];
    if (!spill_top_equal(&read->state.top, &after->top)) {
        spill_run_t values = {0};
        bson_t operand;
        size_t first, count;
        bool block = find_block(&after->top, from, &first, &count);
        summary_path(definition, definition->top_field, path);
        if (block) { /* insert it between the existing elements */
            for (size_t i = first; i < first + count; i++)
                spill_run_add(&values, after->top.at[i].seq,
                              &request->append.elements[after->top.at[i].seq - from]);
            bson_append_document_begin(push, path, -1, &operand);
            append_values(&values, 0, count, "$each", &operand);
            BSON_APPEND_INT64(&operand, "$position", (int64_t)first);
            BSON_APPEND_INT64(&operand, "$slice", (int64_t)after->top.shown);
            bson_append_document_end(push, &operand);
        } else {
            spill_mongo_gather_top(request, from, read, &after->top, &values);
            append_values(&values, 0, values.count, path, set);
        }
        set_top(document, &after->top, false, set);
        spill_run_release(&values);
    }
    if (definition->stats_count[0] != '\0')
        spill_append_count(set, summary_path(definition, definition->stats_count, path),
                           spill_state_count(definition, after));
    if (definition->stats_average[0] != '\0' && after->sum.values > 0)
        BSON_APPEND_DOUBLE(set, summary_path(definition, definition->stats_average, path),
                           spill_sum_average(&after->sum));
}

/*
 * Layouts reference and subset: documents of one element {_id: {owner, page}, <owner>, <its
 * fields>, spill}, and the head's summary.
 */

/* ---- the summary ----------------------------------------------------------------------------- */

/* Does the step complete an edit of a shown element? Then update it, even at the same rank.
 */
static bool shows_edited(const spill_request_t *request, const spill_state_t *before,
                         const spill_state_t *after)
{
    return request->kind == SPILL_REQUEST_COMPLETE && before->intent_edit &&
           spill_top_shows(&after->top, request->change.seq);
}

bool spill_mongo_summary_changes(const spill_mongo_document_t *document,
                                 const spill_state_t *before, const spill_state_t *after)
{
    const spill_definition_t *definition = document->request->definition;
    return document->referenced && document->head && after->present &&
           (document->request->kind ==
                SPILL_REQUEST_RECOUNT || /* other programs may have changed it */
            shows_edited(document->request, before, after) ||
            !spill_sum_equal(&before->sum, &after->sum) ||
            !spill_top_equal(&before->top, &after->top) ||
            spill_state_count(definition, before) != spill_state_count(definition, after));
}

void spill_mongo_set_sum(const spill_mongo_document_t *document, const spill_state_t *after,
                         bool literal, bson_t *set)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t sum = BSON_INITIALIZER;
    spill_sum_append(&after->sum, SPILL_STORED_SUM, &sum);
    spill_mongo_set_document(spill_mongo_path(document, SPILL_STORED_SUM, path), &sum, literal,
                             set);
    bson_destroy(&sum);
}

void spill_mongo_set_summary(const spill_mongo_document_t *document, const spill_state_t *after,
                             const spill_run_t *top, bool literal, bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    bson_t summary = BSON_INITIALIZER;
    spill_render_summary(definition, after, top, &summary);
    spill_mongo_set_document(definition->array, &summary, literal, set);
    spill_mongo_set_sum(document, after, literal, set);
    set_top(document, &after->top, literal, set);
    bson_destroy(&summary);
}

/* ---- documents of one element ---------------------------------------------------------------- */

void spill_mongo_project_referenced(bson_t *projection)
{
    BSON_APPEND_UTF8(projection, "element", "$$ROOT");
}

bool spill_mongo_element_of(const spill_definition_t *definition, const bson_t *document,
                            int64_t *seq, bson_t *memory, spill_value_t *element)
{
    bson_iter_t iter, first;
    bool numbered = bson_iter_init(&iter, document) &&
                    bson_iter_find_descendant(&iter, SPILL_STORED_PAGE_FIRST, &first);
    *seq = numbered ? spill_iter_int64(&first) : -1;
    return spill_stored_element_read(definition, document, memory, element) && numbered;
}

spill_code_t spill_mongo_check_element(const spill_request_t *request, const bson_t *document,
                                       int64_t seq, spill_error_t *error)
{
    bson_iter_t id;
    int64_t page;
    if (!bson_iter_init_find(&id, document, "_id"))
        return SPILL_OK;
    if (spill_mongo_read_id(request, &id, &page) && page == seq)
        return SPILL_OK;
    return spill_mongo_fail_id(request->definition->page_collection, &id, error);
}

spill_code_t spill_mongo_add_element(const spill_request_t *request, const bson_t *document,
                                     spill_run_t *run, spill_error_t *error)
{
    int64_t seq;
    bson_t memory;
    spill_value_t element;
    bool found = spill_mongo_element_of(request->definition, document, &seq, &memory, &element);
    if (found)
        spill_run_add(run, seq, &element);
    bson_destroy(&memory);
    return found ? spill_mongo_check_element(request, document, seq, error) : SPILL_OK;
}

static bool is_wanted(const spill_request_t *request, int64_t seq)
{
    if (request->read.want == SPILL_WANT_NONE || request->read.limit < 1)
        return false;
    return request->read.want == SPILL_WANT_BACKWARD ? seq <= request->read.seq
                                                     : seq >= request->read.seq;
}

void spill_mongo_decode_referenced(const spill_mongo_document_t *document, const bson_t *projected,
                                   spill_state_t *state, spill_run_t *run)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    bson_t whole, memory;
    spill_value_t value;
    if (!state->present || !bson_iter_init_find(&iter, projected, "element") ||
        !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    bson_iter_document(&iter, &size, &data);
    if (!bson_init_static(&whole, data, size))
        return;
    if (spill_stored_element_read(document->request->definition, &whole, &memory, &value)) {
        state->live = 1;
        state->live_bytes = value.size_bytes;
        if (is_wanted(document->request, state->first))
            spill_run_add(run, state->first, &value);
    }
    bson_destroy(&memory);
}

/* ---- deleting documents of one element ------------------------------------------------------- */

spill_code_t spill_mongo_delete_element(spill_mongo_t *store,
                                        const spill_mongo_document_t *document, bool *done,
                                        spill_error_t *error)
{
    const spill_request_t *request = document->request;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_mongo_select(document, &filter);
    if (request->kind == SPILL_REQUEST_EMPTY_PAGE)
        BSON_APPEND_INT64(&filter, SPILL_STORED_PAGE_INCARNATION, request->incarnation);
    else
        BCON_APPEND(&filter, SPILL_STORED_PAGE_INCARNATION, "{", "$lte",
                    BCON_INT64(request->incarnation), "}");
    return spill_mongo_delete(store, document->collection, &filter, done, error);
}
