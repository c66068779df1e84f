/*
 * The updates of APPEND and UPDATE_FIELDS, and the operations that an append records. The updates
 * are classic operators, of which a replicated server logs only the changes.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- operations ------------------------------------------------------------------------------ */

/* The appends that a request is made of: its members, or itself. */
typedef struct members {
    spill_member_t alone;
    const spill_member_t *at;
    size_t count;
} members_t;

static void members_of(const spill_request_t *request, members_t *members)
{
    bool joined = request->kind == SPILL_REQUEST_APPEND && request->append.member_count > 0;
    members->alone =
        (spill_member_t){.op = spill_request_op(request), .count = spill_request_numbers(request)};
    members->at = joined ? request->append.members : &members->alone;
    members->count = joined ? request->append.member_count : 1;
}

/*
 * The server writes the whole window again with each update, so an entry is short: a count is an
 * int32 if it fits, and `after` is left out until an append without an operation increases it.
 */
static void append_op(bson_t *array, uint32_t index, const spill_op_t *op, int64_t count)
{
    char buffer[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_document_begin(array, key, -1, &entry);
    if (op) {
        BSON_APPEND_BINARY(&entry, SPILL_STORED_OP_ID, BSON_SUBTYPE_BINARY, op->id,
                           (uint32_t)op->id_bytes);
        spill_append_count(&entry, SPILL_STORED_OP_ELEMENTS, count);
    } else {
        BSON_APPEND_INT64(&entry, SPILL_STORED_OP_ELEMENTS, 0);
        BSON_APPEND_INT64(&entry, SPILL_STORED_OP_AFTER, count);
    }
    bson_append_document_end(array, &entry);
}

void spill_mongo_append_ops(const spill_request_t *request, const char *field, bson_t *to)
{
    members_t members;
    bson_t array;
    members_of(request, &members);
    bson_append_array_begin(to, field, -1, &array);
    if (!members.at[0].op) /* no operation: all elements count as after the existing operations */
        append_op(&array, 0, NULL, spill_request_numbers(request));
    for (size_t i = 0; members.at[0].op && i < members.count; i++) {
        const spill_member_t *member = &members.at[members.count - 1 - i];
        append_op(&array, (uint32_t)i, member->op, member->count);
    }
    bson_append_array_end(to, &array);
}

void spill_mongo_list_ops(const spill_request_t *request, spill_ops_t *ops)
{
    members_t members;
    members_of(request, &members);
    int64_t seq = 0;
    for (size_t i = 0; members.at[0].op && i < members.count; i++) {
        const spill_member_t *member = &members.at[i];
        spill_op_entry_t entry = {.ordinal = (int64_t)i,
                                  .seq = seq,
                                  .count = member->count,
                                  .id_bytes = (uint8_t)member->op->id_bytes};
        memcpy(entry.id, member->op->id, member->op->id_bytes);
        spill_ops_push(ops, &entry, (size_t)request->definition->op_window);
        seq += member->count;
    }
}

/* Append as `field` the ids of the request's operations; return what `n` must be below. */
static int64_t append_op_ids(const spill_request_t *request, const char *field, bson_t *to)
{
    members_t members;
    members_of(request, &members);
    int64_t below = INT64_MAX;
    bson_t ids;
    bson_append_array_begin(to, field, -1, &ids);
    for (size_t i = 0; i < members.count; i++) {
        const spill_op_t *op = members.at[i].op;
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_binary(&ids, key, -1, BSON_SUBTYPE_BINARY, op->id, (uint32_t)op->id_bytes);
        int64_t own = op->base + request->definition->op_window - (int64_t)i;
        below = own < below ? own : below;
    }
    bson_append_array_end(to, &ids);
    return below;
}

void spill_mongo_append_op_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t condition;
    bson_append_document_begin(filter, spill_mongo_path(document, "ops.id", path), -1, &condition);
    int64_t below = append_op_ids(document->request, "$nin", &condition);
    bson_append_document_end(filter, &condition);
    spill_mongo_path(document, SPILL_STORED_OP_COUNT, path);
    BCON_APPEND(filter, path, "{", "$lt", BCON_INT64(below), "}");
}

/* `ids`: {$literal: the ids}. A set operation costs the server more than a search for one id. */
static void append_ids_unseen(const spill_mongo_document_t *document, const bson_t *ids,
                              const char *key, bson_t *all)
{
    char path[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *seen = BCON_NEW("$ifNull", "[", BCON_UTF8(spill_mongo_ref(document, "ops.id", path)),
                            "[", "]", "]");
    if (spill_request_ops(document->request) > 1) {
        BCON_APPEND(all, key, "{", "$eq", "[", "{", "$setIntersection", "[", BCON_DOCUMENT(ids),
                    BCON_DOCUMENT(seen), "]", "}", "[", "]", "]", "}");
        return;
    }
    bson_iter_t iter, id;
    bson_iter_init(&iter, ids);
    bson_iter_find_descendant(&iter, "$literal.0", &id);
    SPILL_SCOPED(bson_destroy) bson_t one = BSON_INITIALIZER;
    bson_append_iter(&one, "$literal", -1, &id);
    BCON_APPEND(all, key, "{", "$not", "[", "{", "$in", "[", BCON_DOCUMENT(&one),
                BCON_DOCUMENT(seen), "]", "}", "]", "}");
}

void spill_mongo_append_op_conditions(const spill_mongo_document_t *document, uint32_t number,
                                      bson_t *all)
{
    char path[SPILL_MONGO_PATH_SIZE], keys[2][12];
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    int64_t below = append_op_ids(document->request, "$literal", &ids);
    for (uint32_t i = 0; i < 2; i++)
        snprintf(keys[i], sizeof keys[i], "%u", number + i);
    BCON_APPEND(all, keys[0], "{", "$lt", "[",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_OP_COUNT, path)),
                BCON_INT64(below), "]", "}");
    append_ids_unseen(document, &ids, keys[1], all);
}

/* ---- operators ------------------------------------------------------------------------------- */

/* Operators that both Spillway and the caller may use; the caller's other operators are added. */
typedef struct update {
    bson_t set;
    bson_t increment;
    bson_t push;
    bson_t unset;
    bson_t date; /* $currentDate */
} update_t;

static void update_init(update_t *update)
{
    bson_init(&update->set);
    bson_init(&update->increment);
    bson_init(&update->push);
    bson_init(&update->unset);
    bson_init(&update->date);
}

static bool caller_operator(const bson_t *caller, const char *name, bson_t *operands)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!caller || !bson_iter_init_find(&iter, caller, name) || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return false;
    bson_iter_document(&iter, &size, &data);
    return bson_init_static(operands, data, size) && !bson_empty(operands);
}

static void add_operator(bson_t *document, const char *name, const bson_t *ours,
                         const bson_t *caller)
{
    bson_t all, operands;
    bool more = caller_operator(caller, name, &operands);
    if (!more && (!ours || bson_empty(ours)))
        return;
    bson_append_document_begin(document, name, -1, &all);
    if (ours)
        bson_concat(&all, ours);
    if (more)
        bson_concat(&all, &operands);
    bson_append_document_end(document, &all);
}

/* Build the document of the update, and release the rest. Other operators are the caller's. */
static void update_finish(update_t *update, const bson_t *caller, bson_t *document)
{
    struct {
        const char *name;
        bson_t *ours;
    } parts[] = {{"$set", &update->set},
                 {"$inc", &update->increment},
                 {"$push", &update->push},
                 {"$unset", &update->unset},
                 {"$currentDate", &update->date}};
    enum { PARTS = sizeof parts / sizeof *parts };
    bson_iter_t iter;
    bson_init(document);
    for (size_t i = 0; i < PARTS; i++) {
        add_operator(document, parts[i].name, parts[i].ours, caller);
        bson_destroy(parts[i].ours);
    }
    if (!caller || !bson_iter_init(&iter, caller))
        return;
    while (bson_iter_next(&iter)) {
        bool own = false;
        for (size_t i = 0; i < PARTS; i++)
            own = own || strcmp(bson_iter_key(&iter), parts[i].name) == 0;
        if (!own)
            add_operator(document, bson_iter_key(&iter), NULL, caller);
    }
}

/* ---- $push ----------------------------------------------------------------------------------- */

/* Push the operations as the newest; $slice drops the oldest of the window. */
static void push_ops(const spill_mongo_document_t *document, bson_t *push)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t ops;
    bson_append_document_begin(push, spill_mongo_path(document, SPILL_STORED_OPS, path), -1, &ops);
    spill_mongo_append_ops(request, "$each", &ops);
    BSON_APPEND_INT32(&ops, "$position", 0);
    BSON_APPEND_INT32(&ops, "$slice", request->definition->op_window);
    bson_append_document_end(push, &ops);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Increase the numbers that a roll changes besides the array. */
static void increment_by_roll(const spill_mongo_document_t *document,
                              const spill_mongo_roll_t *roll, update_t *parts)
{
    int64_t count = (int64_t)document->request->append.element_count - roll->moved;
    char path[SPILL_MONGO_PATH_SIZE];
    if (!roll->counted && count > 0)
        spill_append_count(&parts->increment, document->count, count);
    if (roll->moved > 0) {
        bson_append_int64(&parts->increment, spill_mongo_path(document, SPILL_STORED_FIRST, path),
                          -1, roll->moved);
        bson_append_int64(&parts->increment,
                          spill_mongo_path(document, SPILL_STORED_WATERMARK, path), -1,
                          roll->moved);
    }
    if (roll->clears)
        BSON_APPEND_BOOL(
            &parts->unset,
            spill_mongo_path(document,
                             roll->top_n ? SPILL_STORED_DELETED_RUNS : SPILL_STORED_DELETED, path),
            true);
}

void spill_mongo_update_of_append(const spill_mongo_document_t *document, const bson_t *open,
                                  const bson_t *push, const spill_mongo_roll_t *roll,
                                  bson_t *update)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->append.element_count;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    bson_concat(&parts.set, open);
    if (push)
        bson_concat(&parts.push, push);
    if (!roll || !roll->top_n)
        spill_mongo_push(document, roll, &parts.push);
    else if (!roll->same)
        spill_mongo_set_array(document, roll->top_n, &parts.set);
    if (roll)
        increment_by_roll(document, roll, &parts);
    else
        spill_append_count(&parts.increment, document->count, count);
    int64_t ops = spill_request_ops(request);
    if (ops > 0) {
        push_ops(document, &parts.push);
        bson_append_int64(&parts.increment, spill_mongo_path(document, SPILL_STORED_OP_COUNT, path),
                          -1, ops);
    } else {
        BSON_APPEND_INT64(&parts.increment, spill_mongo_path(document, "ops.0.after", path),
                          spill_request_numbers(request));
    }
    spill_mongo_set_sessions(document, &parts.set, &parts.date);
    update_finish(&parts, request->append.update, update);
}

void spill_mongo_gather_top_n(const spill_request_t *append, const spill_run_t *old,
                              const spill_state_t *after, const spill_effect_t *effect,
                              spill_run_t *top_n)
{
    for (size_t i = 0; i < old->count; i++) {
        spill_element_t element = spill_run_element(old, i);
        if (!spill_is_deleted(after, element.seq))
            spill_run_add(top_n, element.seq, &element.value);
    }
    for (size_t i = 0; i < append->append.element_count; i++) {
        int64_t seq = spill_request_seq(append, effect->seq, i);
        if (!spill_is_deleted(after, seq))
            spill_run_add(top_n, seq, &append->append.elements[i]);
    }
}

/* Set the summary of a head that has only the request's elements. */
static void set_first_summary(const spill_mongo_document_t *document, spill_state_t *after,
                              bson_t *set)
{
    static const spill_response_t nothing = SPILL_RESPONSE_INIT;
    spill_run_t top = {0};
    spill_mongo_gather_top(document->request, 0, &nothing, &after->top, &top);
    spill_mongo_set_summary(document, after, &top, false, set);
    spill_run_release(&top);
}

/* Set the numbers and the operations of a new head's bookkeeping. */
static void set_bookkeeping(const spill_mongo_document_t *document, const spill_state_t *after,
                            bson_t *set)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{SPILL_STORED_INCARNATION, after->incarnation},
                   {SPILL_STORED_REV, after->rev},
                   {SPILL_STORED_FIRST, after->first},
                   {SPILL_STORED_OP_COUNT, after->op_count},
                   {SPILL_STORED_PAGES, after->pages},
                   {SPILL_STORED_WATERMARK, after->watermark},
                   {SPILL_STORED_REMOVED, after->removed}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        bson_append_int64(set, spill_mongo_path(document, numbers[i].name, path), -1,
                          numbers[i].value);
    if (!spill_schema_of(request->definition)->appends_to_head)
        BSON_APPEND_INT64(set, spill_mongo_path(document, SPILL_STORED_TOTAL, path), after->total);
    spill_mongo_append_ops(request, spill_mongo_path(document, SPILL_STORED_OPS, path), set);
}

void spill_mongo_update_of_new_head(const spill_mongo_document_t *document, spill_state_t *after,
                                    const spill_mongo_roll_t *roll, bson_t *update)
{
    static const bson_t none = BSON_INITIALIZER;
    bool top_n = roll && roll->top_n;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    set_bookkeeping(document, after, &parts.set);
    if (document->referenced)
        set_first_summary(document, after, &parts.set);
    else
        spill_append_count(&parts.set, document->count, after->live);
    if (!document->referenced && !top_n && after->deleted.count == 0)
        spill_mongo_append_open(document, after->incarnation,
                                spill_mongo_path(document, SPILL_STORED_OPEN, path), &parts.set);
    spill_mongo_set_deleted(document, after, &parts.set);
    if (top_n) {
        spill_mongo_set_array(document, roll->top_n, &parts.set);
    } else if (after->live > 0) {
        spill_mongo_push(document, roll, &parts.push);
    } else {
        BSON_APPEND_ARRAY(&parts.set, document->array, &none);
    }
    spill_mongo_set_sessions(document, &parts.set, &parts.date);
    update_finish(&parts, document->request->append.update, update);
}

void spill_mongo_update_of_fields(const spill_mongo_document_t *document, bson_t *update)
{
    update_t parts;
    update_init(&parts);
    spill_mongo_set_sessions(document, &parts.set, &parts.date);
    update_finish(&parts, document->request->append.update, update);
}
