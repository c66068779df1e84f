#include "store/request.h"

#include "bson/element_fields.h"
#include "util/error.h"

#include <assert.h>
#include <stddef.h>
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

/* ---- checks ---------------------------------------------------------------------------------- */

/* The document of this kind, by the table in request.h. Unused in a build without assertions. */
__attribute__((unused)) static bool names_document(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_READ:
        return true;
    case SPILL_REQUEST_PUT_PAGE:
    case SPILL_REQUEST_CREATE_PAGE:
    case SPILL_REQUEST_DELETE:
    case SPILL_REQUEST_EMPTY_PAGE:
    case SPILL_REQUEST_DROP_PAGE:
        return request->page >= 0;
    case SPILL_REQUEST_APPEND:
    case SPILL_REQUEST_SEAL:
    case SPILL_REQUEST_EDIT:
        return request->page >= SPILL_HEAD;
    case SPILL_REQUEST_RECOUNT:
        return request->page == SPILL_HEAD || (request->page >= 0 && request->recount.counts);
    default:
        return request->page == SPILL_HEAD;
    }
}

void spill_request_assert(const spill_request_t *request)
{
    assert(request->definition && request->owner && names_document(request));
    switch (request->kind) {
    case SPILL_REQUEST_READ:
        assert(request->read.want <= SPILL_WANT_TOP_N && request->read.limit >= 0);
        assert(request->read.want != SPILL_WANT_ID || request->read.id);
        break;
    case SPILL_REQUEST_APPEND:
        assert(request->append.element_count > 0 || request->append.skip > 0);
        assert(!request->append.seqs ||
               (request->create && request->append.skip == 0 && request->append.member_count == 0));
        assert(request->append.member_count == 0 ||
               (!request->append.op && !request->append.session));
        assert(!request->append.op || !request->append.session);
        assert((!request->append.session && !request->append.match) || request->page == SPILL_HEAD);
        break;
    case SPILL_REQUEST_PUT_PAGE:
        assert(request->put_page.run && request->put_page.slots >= 0);
        break;
    case SPILL_REQUEST_EDIT:
        assert(request->change.element);
        break;
    case SPILL_REQUEST_PREPARE:
        assert(request->change.seq >= 0 && request->change.intent_page >= 0);
        break;
    case SPILL_REQUEST_REWRITE:
        assert(request->rewrite.run && request->rewrite.end >= 0);
        break;
    case SPILL_REQUEST_ADOPT_SPLIT:
        assert(request->adopt.run && request->adopt.slots > 0);
        break;
    case SPILL_REQUEST_UNMANAGE:
        assert(request->unmanage.run && request->unmanage.pages >= 0);
        break;
    default:
        break;
    }
}

/* How many bytes of the union belong to the request's kind. */
static size_t part_bytes(const spill_request_t *request)
{
    if (spill_request_is_change(request))
        return sizeof request->change;
    switch (request->kind) {
    case SPILL_REQUEST_READ:
        return sizeof request->read;
    case SPILL_REQUEST_APPEND:
    case SPILL_REQUEST_UPDATE_FIELDS:
        return sizeof request->append;
    case SPILL_REQUEST_PUT_PAGE:
        return sizeof request->put_page;
    case SPILL_REQUEST_CUT:
        return sizeof request->cut;
    case SPILL_REQUEST_SEAL:
        return sizeof request->seal;
    case SPILL_REQUEST_ADVANCE:
        return sizeof request->advance;
    case SPILL_REQUEST_CREATE_PAGE:
        return sizeof request->create_page;
    case SPILL_REQUEST_RECOUNT:
        return sizeof request->recount;
    case SPILL_REQUEST_REWRITE:
        return sizeof request->rewrite;
    case SPILL_REQUEST_FORGET:
        return sizeof request->forget;
    case SPILL_REQUEST_DROP_HEAD:
        return sizeof request->drop_head;
    case SPILL_REQUEST_ADOPT:
    case SPILL_REQUEST_ADOPT_SPLIT:
        return sizeof request->adopt;
    case SPILL_REQUEST_UNMANAGE:
        return sizeof request->unmanage;
    default: /* EMPTY_PAGE, DROP_PAGE */
        return 0;
    }
}

const spill_request_t *spill_request_poisoned(const spill_request_t *request,
                                              spill_request_t *poisoned)
{
    const size_t parts = offsetof(spill_request_t, read), used = parts + part_bytes(request);
    *poisoned = *request;
    memset((char *)poisoned + used, 0xA5, sizeof *poisoned - used);
    return poisoned;
}

/* ---- questions about a request --------------------------------------------------------------- */

bool spill_request_is_change(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_REMOVE:
    case SPILL_REQUEST_PREPARE:
    case SPILL_REQUEST_DELETE:
    case SPILL_REQUEST_COMPLETE:
    case SPILL_REQUEST_TRIM:
        return true;
    default:
        return false;
    }
}

bool spill_request_recounts_elements(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_RECOUNT && request->recount.counts;
}

const spill_run_t *spill_request_run(const spill_request_t *request)
{
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
        return request->put_page.run;
    case SPILL_REQUEST_CUT:
        return request->cut.run;
    case SPILL_REQUEST_ADOPT_SPLIT:
        return request->adopt.run;
    case SPILL_REQUEST_UNMANAGE:
        return request->unmanage.run;
    case SPILL_REQUEST_REWRITE:
        return request->rewrite.run;
    default:
        return NULL;
    }
}

const spill_op_t *spill_request_op(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_APPEND ? request->append.op : NULL;
}

/* APPEND or UPDATE_FIELDS: it may have an update, a session and a match. */
static bool writes_fields(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_APPEND || request->kind == SPILL_REQUEST_UPDATE_FIELDS;
}

const bson_t *spill_request_update(const spill_request_t *request)
{
    return writes_fields(request) ? request->append.update : NULL;
}

const spill_session_op_t *spill_request_session(const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_REWRITE)
        return request->rewrite.session;
    return writes_fields(request) ? request->append.session : NULL;
}

const bson_t *spill_request_match(const spill_request_t *request)
{
    return writes_fields(request) ? request->append.match : NULL;
}

const spill_session_op_t *spill_request_session_at(const spill_request_t *request, size_t i,
                                                   int64_t *count)
{
    bool joined = request->kind == SPILL_REQUEST_APPEND && request->append.member_count > 0;
    *count = joined && i < request->append.member_count ? request->append.members[i].count
             : request->kind == SPILL_REQUEST_APPEND    ? spill_request_numbers(request)
             : request->kind == SPILL_REQUEST_REWRITE   ? request->rewrite.session_count
                                                        : 1;
    if (joined)
        return i < request->append.member_count ? request->append.members[i].session : NULL;
    return i == 0 ? spill_request_session(request) : NULL;
}

const spill_top_t *spill_request_refill(const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_RECOUNT)
        return request->recount.refill;
    return spill_request_is_change(request) ? request->change.refill : NULL;
}

const spill_run_t *spill_request_refill_run(const spill_request_t *request)
{
    if (request->kind == SPILL_REQUEST_RECOUNT)
        return request->recount.refill_run;
    return spill_request_is_change(request) ? request->change.refill_run : NULL;
}

bool spill_request_is_due(const spill_request_t *request, int64_t slots)
{
    return request->append.due > 0 && slots >= request->append.due &&
           slots - (int64_t)request->append.element_count < request->append.due;
}

bool spill_ends_incarnation(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_DROP_HEAD || request->kind == SPILL_REQUEST_UNMANAGE;
}

int64_t spill_request_ops(const spill_request_t *request)
{
    if (request->kind != SPILL_REQUEST_APPEND)
        return 0;
    if (request->append.member_count > 0)
        return request->append.members[0].op ? (int64_t)request->append.member_count : 0;
    return request->append.op ? 1 : 0;
}

bool spill_request_has_id_of(const spill_request_t *append, const spill_value_t *element)
{
    const char *path = append->definition->id_field;
    bool any = append->definition->unique;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t other = SPILL_BUFFER_INIT;
    SPILL_SCOPED(spill_buffer_release) spill_buffer_t own = SPILL_BUFFER_INIT;
    if (!spill_element_key(element, path, any, &other))
        return false;
    for (size_t i = 0; i < append->append.element_count; i++) {
        spill_buffer_clear(&own);
        if (spill_element_key(&append->append.elements[i], path, any, &own) &&
            spill_buffer_equal(&own, &other))
            return true;
    }
    return false;
}

int64_t spill_request_numbers(const spill_request_t *request)
{
    if (request->kind != SPILL_REQUEST_APPEND)
        return 0;
    return request->append.seqs ? request->append.end
                                : request->append.skip + (int64_t)request->append.element_count;
}

int64_t spill_request_seq(const spill_request_t *append, int64_t from, size_t i)
{
    return append->append.seqs ? append->append.seqs[i] : from + append->append.skip + (int64_t)i;
}

/* ---- requests made from others --------------------------------------------------------------- */

spill_request_t spill_request_reading(const spill_request_t *request)
{
    spill_request_t read = {
        .kind = SPILL_REQUEST_READ,
        .definition = request->definition,
        .array_id = request->array_id,
        .collection_id = request->collection_id,
        .owner = request->owner,
        .key = request->key,
        .key_bytes = request->key_bytes,
        .page = request->page,
        .incarnation = request->incarnation,
    };
    read.read.op = spill_request_op(request);
    read.read.session = spill_request_session_at(request, 0, &read.read.session_count);
    if (request->kind == SPILL_REQUEST_APPEND && request->append.member_count > 0)
        read.read.session = NULL;
    read.read.match = spill_request_match(request);
    return read;
}

spill_request_t spill_request_shown(const spill_request_t *request)
{
    bool adopts = request->kind == SPILL_REQUEST_ADOPT;
    spill_request_t read = spill_request_reading(request);
    read.read.op = NULL;
    read.read.session = NULL;
    read.read.match = NULL;
    if (adopts)
        read.read.limit = request->adopt.shown;
    else if (request->append.due > 0)
        read.read.limit = request->append.due_limit;
    read.read.want = read.read.limit > 0 ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    return read;
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

/* ---- responses ------------------------------------------------------------------------------- */

void spill_response_clear(spill_response_t *response)
{
    memset(response, 0, offsetof(spill_response_t, state));
    spill_state_clear(&response->state);
    spill_run_clear(&response->run);
    spill_top_clear(&response->top_n);
    spill_run_clear(&response->top_run);
    spill_state_clear(&response->beyond);
    spill_run_clear(&response->beyond_run);
    response->ops.count = 0;
    bson_destroy(response->fields);
    response->fields = NULL;
}

void spill_response_release(spill_response_t *response)
{
    memset(response, 0, offsetof(spill_response_t, state));
    spill_state_release(&response->state);
    spill_run_release(&response->run);
    spill_top_release(&response->top_n);
    spill_run_release(&response->top_run);
    spill_state_release(&response->beyond);
    spill_run_release(&response->beyond_run);
    spill_ops_release(&response->ops);
    bson_destroy(response->fields);
    response->fields = NULL;
}

/* ---- clones ---------------------------------------------------------------------------------- */

/* The request is the first member: a pointer to it frees the clone. */
typedef struct clone {
    spill_request_t request;
    spill_definition_t definition;
    spill_value_t owner;
    spill_value_t value; /* READ: id; a change: element */
    spill_top_entry_t below;
    spill_session_op_t session;
    spill_searched_t searched;
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
    clone->request.key = copy_bytes(request->key, request->key_bytes);
}

/* Each of these returns its argument's copy in the clone; NULL if it is NULL. */

static const spill_value_t *clone_one(const spill_value_t *value, clone_t *clone)
{
    if (!value)
        return NULL;
    clone_value(value, &clone->value);
    return &clone->value;
}

static const spill_op_t *clone_op(const spill_op_t *op, clone_t *clone)
{
    if (!op)
        return NULL;
    assert(op->id_bytes <= SPILL_OP_ID_MAX);
    memcpy(clone->op_id, op->id, op->id_bytes);
    clone->op = *op;
    clone->op.id = clone->op_id;
    return &clone->op;
}

static const spill_session_op_t *clone_session(const spill_session_op_t *session, clone_t *clone)
{
    if (!session)
        return NULL;
    clone->session = *session;
    return &clone->session;
}

static const spill_run_t *clone_run(const spill_run_t *run, spill_run_t *copy)
{
    if (run)
        spill_run_copy(run, copy);
    return run ? copy : NULL;
}

static const spill_top_t *clone_top(const spill_top_t *top, spill_top_t *copy)
{
    if (top)
        spill_top_copy(top, copy);
    return top ? copy : NULL;
}

static void clone_append(const spill_request_t *request, clone_t *clone)
{
    spill_request_t *to = &clone->request;
    to->append.op = clone_op(request->append.op, clone);
    to->append.elements = clone_elements(request->append.elements, request->append.element_count);
    if (request->append.seqs) {
        size_t bytes = request->append.element_count * sizeof(int64_t);
        int64_t *seqs = bson_malloc(bytes);
        memcpy(seqs, request->append.seqs, bytes);
        to->append.seqs = seqs;
    }
    to->append.session = clone_session(request->append.session, clone);
    if (request->append.searched) {
        clone->searched = *request->append.searched;
        to->append.searched = &clone->searched;
    }
    if (request->append.update)
        to->append.update = bson_copy(request->append.update);
    if (request->append.match)
        to->append.match = bson_copy(request->append.match);
}

static void clone_read(const spill_request_t *request, clone_t *clone)
{
    spill_request_t *to = &clone->request;
    to->read.op = clone_op(request->read.op, clone);
    to->read.session = clone_session(request->read.session, clone);
    if (request->read.match)
        to->read.match = bson_copy(request->read.match);
    to->read.id = clone_one(request->read.id, clone);
    if (request->read.below) {
        clone->below = *request->read.below;
        to->read.below = &clone->below;
    }
}

static void clone_put_page(const spill_request_t *request, clone_t *clone)
{
    spill_request_t *to = &clone->request;
    to->put_page.run = clone_run(request->put_page.run, &clone->run);
    if (request->put_page.deleted) {
        spill_seqs_copy(request->put_page.deleted, &clone->deleted);
        to->put_page.deleted = &clone->deleted;
    }
}

static void clone_create_page(const spill_request_t *request, clone_t *clone)
{
    if (!request->create_page.ops)
        return;
    spill_ops_copy(request->create_page.ops, &clone->ops);
    clone->request.create_page.ops = &clone->ops;
}

static void clone_change(const spill_request_t *request, clone_t *clone)
{
    spill_request_t *to = &clone->request;
    to->change.element = clone_one(request->change.element, clone);
    to->change.refill = clone_top(request->change.refill, &clone->refill);
    to->change.refill_run = clone_run(request->change.refill_run, &clone->refill_run);
}

static void clone_content(const spill_request_t *request, clone_t *clone)
{
    spill_request_t *to = &clone->request;
    switch (request->kind) {
    case SPILL_REQUEST_READ:
        clone_read(request, clone);
        break;
    case SPILL_REQUEST_APPEND:
    case SPILL_REQUEST_UPDATE_FIELDS:
        clone_append(request, clone);
        break;
    case SPILL_REQUEST_PUT_PAGE:
        clone_put_page(request, clone);
        break;
    case SPILL_REQUEST_CUT:
        to->cut.run = clone_run(request->cut.run, &clone->run);
        break;
    case SPILL_REQUEST_CREATE_PAGE:
        clone_create_page(request, clone);
        break;
    case SPILL_REQUEST_RECOUNT:
        to->recount.refill = clone_top(request->recount.refill, &clone->refill);
        to->recount.refill_run = clone_run(request->recount.refill_run, &clone->refill_run);
        break;
    case SPILL_REQUEST_ADOPT_SPLIT:
        to->adopt.run = clone_run(request->adopt.run, &clone->run);
        break;
    case SPILL_REQUEST_UNMANAGE:
        to->unmanage.run = clone_run(request->unmanage.run, &clone->run);
        break;
    case SPILL_REQUEST_REWRITE:
        to->rewrite.run = clone_run(request->rewrite.run, &clone->run);
        to->rewrite.session = clone_session(request->rewrite.session, clone);
        break;
    default:
        if (spill_request_is_change(request))
            clone_change(request, clone);
        break;
    }
}

spill_request_t *spill_request_clone(const spill_request_t *request)
{
    clone_t *clone = bson_malloc0(sizeof *clone);
    clone->request = *request;
    clone_address(request, clone);
    clone_content(request, clone);
    return &clone->request;
}

void spill_request_free(spill_request_t *clone)
{
    if (!clone)
        return;
    clone_t *owned = (clone_t *)clone;
    if (clone->kind == SPILL_REQUEST_APPEND || clone->kind == SPILL_REQUEST_UPDATE_FIELDS) {
        for (size_t i = 0; i < clone->append.element_count; i++)
            bson_free((void *)clone->append.elements[i].data);
        bson_free((void *)clone->append.elements);
        bson_free((void *)clone->append.seqs);
        bson_destroy((bson_t *)clone->append.update);
        bson_destroy((bson_t *)clone->append.match);
    }
    if (clone->kind == SPILL_REQUEST_READ)
        bson_destroy((bson_t *)clone->read.match);
    bson_free((void *)clone->key);
    bson_free((void *)owned->owner.data);
    bson_free((void *)owned->value.data);
    spill_run_release(&owned->run);
    spill_seqs_release(&owned->deleted);
    spill_ops_release(&owned->ops);
    spill_top_release(&owned->refill);
    spill_run_release(&owned->refill_run);
    bson_free(owned);
}
