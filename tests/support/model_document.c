#include "support/model_store.h"

#include "bson/element_fields.h"

#include <assert.h>
#include <string.h>

/* ---- the array ------------------------------------------------------------------------------- */

static spill_value_t copy_value(const spill_value_t *value)
{
    spill_value_t copy = *value;
    uint8_t *data = NULL;
    if (value->size_bytes > 0) {
        data = bson_malloc(value->size_bytes);
        memcpy(data, value->data, value->size_bytes);
    }
    copy.data = data;
    return copy;
}

static void free_value(const spill_value_t *value)
{
    bson_free((void *)value->data);
}

void model_document_insert(model_document_t *document, size_t index, const spill_value_t *element)
{
    assert(index <= document->count);
    if (document->count == document->capacity) {
        document->capacity = document->capacity < 4 ? 4 : document->capacity * 2;
        document->elements =
            bson_realloc(document->elements, document->capacity * sizeof *document->elements);
    }
    spill_value_t *place = document->elements + index;
    memmove(place + 1, place, (document->count - index) * sizeof *place);
    *place = copy_value(element);
    document->count++;
    document->bytes += element->size_bytes;
}

void model_document_replace(model_document_t *document, size_t index, const spill_value_t *element)
{
    assert(index < document->count);
    spill_value_t copy = copy_value(element);
    spill_value_t *place = document->elements + index;
    document->bytes += (int64_t)copy.size_bytes - (int64_t)place->size_bytes;
    free_value(place);
    *place = copy;
}

void model_document_remove(model_document_t *document, size_t index, size_t count)
{
    assert(index + count <= document->count);
    if (count == 0)
        return;
    spill_value_t *place = document->elements + index;
    for (size_t i = 0; i < count; i++) {
        document->bytes -= place[i].size_bytes;
        free_value(&place[i]);
    }
    document->count -= count;
    memmove(place, place + count, (document->count - index) * sizeof *place);
}

void model_document_release(model_document_t *document)
{
    for (size_t i = 0; i < document->count; i++)
        free_value(&document->elements[i]);
    bson_free(document->elements);
    spill_state_release(&document->state);
    spill_ops_release(&document->ops);
    spill_sessions_release(&document->sessions);
    *document = (model_document_t){0};
}

/* ---- numbers --------------------------------------------------------------------------------- */

static int64_t end_of(const model_document_t *document)
{
    return document->state.first + (int64_t)document->count +
           (int64_t)document->state.deleted.count;
}

size_t model_document_position(const model_document_t *document, int64_t seq)
{
    const spill_state_t *state = &document->state;
    if (seq >= end_of(document))
        return document->count;
    int64_t position = seq - state->first - (int64_t)spill_seqs_count_below(&state->deleted, seq);
    if (seq <= state->first || position < 0)
        return 0;
    return (size_t)position < document->count ? (size_t)position : document->count;
}

bool model_document_find(const model_document_t *document, int64_t seq, size_t *index)
{
    const spill_state_t *state = &document->state;
    *index = model_document_position(document, seq);
    return seq >= state->first && *index < document->count &&
           !spill_seqs_contains(&state->deleted, seq);
}

int64_t model_document_bytes(const model_document_t *document, size_t from, size_t to)
{
    int64_t bytes = 0;
    for (size_t i = from; i < to; i++)
        bytes += document->elements[i].size_bytes;
    return bytes;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_forward(const model_document_t *document, const spill_request_t *request,
                         spill_run_t *run)
{
    int64_t seq =
        request->read.seq > document->state.first ? request->read.seq : document->state.first;
    size_t index = model_document_position(document, seq);
    for (; index < document->count && (int64_t)run->count < request->read.limit; index++, seq++) {
        seq = spill_seqs_pass(&document->state.deleted, seq);
        spill_run_add(run, seq, &document->elements[index]);
    }
}

static void read_backward(const model_document_t *document, const spill_request_t *request,
                          spill_run_t *run)
{
    int64_t end = end_of(document);
    int64_t seq = request->read.seq < end ? request->read.seq : end - 1;
    size_t index = model_document_position(document, seq + 1);
    for (; index > 0 && (int64_t)run->count < request->read.limit; index--, seq--) {
        seq = spill_seqs_pass_down(&document->state.deleted, seq);
        spill_run_add(run, seq, &document->elements[index - 1]);
    }
}

bool model_document_find_id(const model_document_t *document, const spill_request_t *request,
                            size_t *index, int64_t *seq)
{
    const spill_seqs_t *deleted = &document->state.deleted;
    spill_buffer_t wanted = SPILL_BUFFER_INIT;
    spill_buffer_t key = SPILL_BUFFER_INIT;
    bool found = false;
    spill_element_id_key(request->read.id, request->definition->unique, &wanted, NULL);
    *seq = document->state.first;
    for (*index = 0; *index < document->count; ++*index, ++*seq) {
        *seq = spill_seqs_pass(deleted, *seq);
        spill_buffer_clear(&key);
        found = *seq >= request->read.seq &&
                spill_element_key(&document->elements[*index], request->definition->id_field,
                                  request->definition->unique, &key) &&
                spill_buffer_equal(&key, &wanted);
        if (found)
            break;
    }
    spill_buffer_release(&wanted);
    spill_buffer_release(&key);
    return found;
}

static void read_id(const model_document_t *document, const spill_request_t *request,
                    spill_run_t *run)
{
    size_t index;
    int64_t seq;
    if (model_document_find_id(document, request, &index, &seq))
        spill_run_add(run, seq, &document->elements[index]);
}

void model_document_read(const model_document_t *document, const spill_request_t *request,
                         spill_run_t *run)
{
    if (request->read.want == SPILL_WANT_FORWARD)
        read_forward(document, request, run);
    else if (request->read.want == SPILL_WANT_BACKWARD)
        read_backward(document, request, run);
    else if (request->read.want == SPILL_WANT_ID)
        read_id(document, request, run);
}
