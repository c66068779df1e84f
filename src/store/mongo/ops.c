/*
 * The operations of an append, as documents list them, and the guard that none of them was seen.
 * document.c reads such a list.
 */
#include "store/mongo/mongo.h"

#include <string.h>

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

static void append_op(bson_t *array, uint32_t index, const spill_op_t *op, int64_t count)
{
    char buffer[16];
    const char *key;
    bson_t entry;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    bson_append_document_begin(array, key, -1, &entry);
    if (op)
        BSON_APPEND_BINARY(&entry, "id", BSON_SUBTYPE_BINARY, op->id, (uint32_t)op->id_bytes);
    BSON_APPEND_INT64(&entry, "count", op ? count : 0);
    BSON_APPEND_INT64(&entry, "after", op ? 0 : count);
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

void spill_mongo_append_op_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    members_t members;
    members_of(request, &members);
    int64_t below = INT64_MAX;
    bson_t condition, ids;
    bson_append_document_begin(filter, spill_mongo_path(document, "ops.id", path), -1, &condition);
    BSON_APPEND_ARRAY_BEGIN(&condition, "$nin", &ids);
    for (size_t i = 0; i < members.count; i++) {
        const spill_op_t *op = members.at[i].op;
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        bson_append_binary(&ids, key, -1, BSON_SUBTYPE_BINARY, op->id, (uint32_t)op->id_bytes);
        int64_t own = op->base + request->definition->op_window - (int64_t)i;
        below = own < below ? own : below;
    }
    bson_append_array_end(&condition, &ids);
    bson_append_document_end(filter, &condition);
    spill_mongo_path(document, "n", path);
    BCON_APPEND(filter, path, "{", "$lt", BCON_INT64(below), "}");
}
