#include "store/request.h"

#include <assert.h>
#include <string.h>

const char *spill_request_kind_name(spill_request_kind_t kind)
{
    static const char *const names[] = {
#define SPILL_REQUEST_NAME(name) #name,
        SPILL_REQUEST_KINDS(SPILL_REQUEST_NAME)
#undef SPILL_REQUEST_NAME
    };
    assert(kind < SPILL_REQUEST_KIND_COUNT);
    return names[kind];
}

/* ---- responses ------------------------------------------------------------------------------- */

void spill_response_clear(spill_response_t *response)
{
    spill_response_t empty = SPILL_RESPONSE_INIT;
    spill_state_clear(&response->state);
    empty.state = response->state;
    empty.run = response->run;
    spill_run_clear(&empty.run);
    empty.top_run = response->top_run;
    spill_run_clear(&empty.top_run);
    empty.top_n = response->top_n;
    spill_top_clear(&empty.top_n);
    spill_state_clear(&response->beyond);
    empty.beyond = response->beyond;
    empty.beyond_run = response->beyond_run;
    spill_run_clear(&empty.beyond_run);
    empty.ops = response->ops;
    empty.ops.count = 0;
    bson_destroy(response->fields);
    *response = empty;
}

void spill_response_release(spill_response_t *response)
{
    spill_state_release(&response->state);
    spill_run_release(&response->run);
    spill_run_release(&response->top_run);
    spill_top_release(&response->top_n);
    spill_state_release(&response->beyond);
    spill_run_release(&response->beyond_run);
    spill_ops_release(&response->ops);
    bson_destroy(response->fields);
    *response = (spill_response_t)SPILL_RESPONSE_INIT;
}

/* ---- clones ---------------------------------------------------------------------------------- */

/* The request is the first member: a pointer to it frees the clone. */
typedef struct clone {
    spill_request_t request;
    spill_definition_t definition;
    spill_value_t owner;
    spill_value_t id;
    spill_top_entry_t below;
    spill_op_t op;
    uint8_t op_id[SPILL_OP_ID_MAX];
    spill_run_t run;
    spill_seqs_t deleted;
    spill_ops_t ops;
    spill_top_t refill;
    spill_run_t refill_run;
} clone_t;

static void *copy_bytes(const void *data, size_t size)
{
    if (size == 0)
        return NULL;
    void *copy = bson_malloc(size);
    memcpy(copy, data, size);
    return copy;
}

static void clone_value(const spill_value_t *from, spill_value_t *to)
{
    *to = *from;
    to->data = copy_bytes(from->data, from->size_bytes);
}

static const spill_value_t *clone_elements(const spill_value_t *elements, size_t count)
{
    if (count == 0)
        return NULL;
    spill_value_t *copies = bson_malloc(count * sizeof *copies);
    for (size_t i = 0; i < count; i++)
        clone_value(&elements[i], &copies[i]);
    return copies;
}

static void clone_address(const spill_request_t *request, clone_t *clone)
{
    if (request->definition) {
        clone->definition = *request->definition;
        clone->request.definition = &clone->definition;
    }
    if (request->owner) {
        clone_value(request->owner, &clone->owner);
        clone->request.owner = &clone->owner;
    }
    if (request->id) {
        clone_value(request->id, &clone->id);
        clone->request.id = &clone->id;
    }
    if (request->below) {
        clone->below = *request->below;
        clone->request.below = &clone->below;
    }
    clone->request.key = copy_bytes(request->key, request->key_bytes);
}

static void clone_op(const spill_request_t *request, clone_t *clone)
{
    if (!request->op)
        return;
    assert(request->op->id_bytes <= SPILL_OP_ID_MAX);
    memcpy(clone->op_id, request->op->id, request->op->id_bytes);
    clone->op = *request->op;
    clone->op.id = clone->op_id;
    clone->request.op = &clone->op;
}

static void clone_content(const spill_request_t *request, clone_t *clone)
{
    clone->request.elements = clone_elements(request->elements, request->element_count);
    if (request->run) {
        spill_run_copy(request->run, &clone->run);
        clone->request.run = &clone->run;
    }
    if (request->deleted) {
        spill_seqs_copy(request->deleted, &clone->deleted);
        clone->request.deleted = &clone->deleted;
    }
    if (request->ops) {
        spill_ops_copy(request->ops, &clone->ops);
        clone->request.ops = &clone->ops;
    }
    if (request->refill) {
        spill_top_copy(request->refill, &clone->refill);
        clone->request.refill = &clone->refill;
    }
    if (request->refill_run) {
        spill_run_copy(request->refill_run, &clone->refill_run);
        clone->request.refill_run = &clone->refill_run;
    }
    if (request->update)
        clone->request.update = bson_copy(request->update);
}

bool spill_request_is_due(const spill_request_t *append, int64_t slots)
{
    return append->due > 0 && slots >= append->due &&
           slots - (int64_t)append->element_count < append->due;
}

bool spill_ends_incarnation(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_DROP_HEAD || request->kind == SPILL_REQUEST_UNMANAGE;
}

int64_t spill_request_ops(const spill_request_t *request)
{
    if (request->member_count > 0)
        return request->members[0].op ? (int64_t)request->member_count : 0;
    return request->op ? 1 : 0;
}

int64_t spill_request_numbers(const spill_request_t *append)
{
    return append->skip + (int64_t)append->element_count;
}

const spill_request_t *spill_request_dated(const spill_request_t *request, int64_t dropped_rev,
                                           spill_request_t *dated)
{
    if (!request->create || request->incarnation > dropped_rev)
        return request;
    *dated = *request;
    dated->incarnation = dropped_rev + 1;
    return dated;
}

spill_request_t *spill_request_clone(const spill_request_t *request)
{
    clone_t *clone = bson_malloc0(sizeof *clone);
    clone->request = *request;
    clone_address(request, clone);
    clone_op(request, clone);
    clone_content(request, clone);
    return &clone->request;
}

void spill_request_free(spill_request_t *clone)
{
    if (!clone)
        return;
    clone_t *owned = (clone_t *)clone;
    for (size_t i = 0; i < clone->element_count; i++)
        bson_free((void *)clone->elements[i].data);
    bson_free((void *)clone->elements);
    bson_free((void *)clone->key);
    bson_free((void *)owned->owner.data);
    bson_free((void *)owned->id.data);
    bson_destroy((bson_t *)clone->update);
    spill_run_release(&owned->run);
    spill_seqs_release(&owned->deleted);
    spill_ops_release(&owned->ops);
    spill_top_release(&owned->refill);
    spill_run_release(&owned->refill_run);
    bson_free(owned);
}
