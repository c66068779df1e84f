/*
 * "There is room": spill_limits_allow for a document as the server finds it. The sum is that of
 * spill_document_base_bytes (store/state.h), to the byte, from sizes that the server takes.
 */
#include "store/mongo/mongo.h"

#include "store/transition.h"

#include <stdio.h>

/* {$size: <array or []>} */
static bson_t *length_of(const char *ref)
{
    return BCON_NEW("$size", "{", "$ifNull", "[", BCON_UTF8(ref), "[", "]", "]", "}");
}

/* framing(n) of store/state.h, for n = variable + more: three bytes each and the longer indices. */
static bson_t *framing(const char *variable, int64_t more)
{
    bson_t *sum = bson_new();
    bson_t terms;
    BSON_APPEND_ARRAY_BEGIN(sum, "$add", &terms);
    bson_t *count = BCON_NEW("$add", "[", BCON_UTF8(variable), BCON_INT64(more), "]");
    bson_t *each = BCON_NEW("$multiply", "[", BCON_INT64(3), BCON_DOCUMENT(count), "]");
    BSON_APPEND_DOCUMENT(&terms, "0", each);
    uint32_t index = 1;
    for (int64_t power = 10; power <= 1000000; power *= 10) {
        char buffer[16];
        const char *key;
        bson_t *longer = BCON_NEW("$max", "[", BCON_INT64(0), "{", "$add", "[", BCON_UTF8(variable),
                                  BCON_INT64(more - power), "]", "}", "]");
        bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(&terms, key, longer);
        bson_destroy(longer);
    }
    bson_append_array_end(sum, &terms);
    bson_destroy(count);
    bson_destroy(each);
    return sum;
}

/* All terms but the base: sizes are those of a document as spill_mongo_project_state takes them. */
static bson_t *document_bytes(const spill_mongo_document_t *document)
{
    enum { EMPTY_ARRAY_DOCUMENT = 5 + 3 + 5, EMPTY_DOCUMENT = 5 };
    const spill_request_t *request = document->request;
    int64_t base = spill_document_base_bytes(request->definition, request->owner, document->head) +
                   request->elements_bytes + spill_update_growth(request->update) -
                   EMPTY_ARRAY_DOCUMENT;
    bson_t *after = framing("$$live", (int64_t)request->element_count);
    bson_t *before = framing("$$live", 0);
    bson_t *gone = framing("$$gone", 0);
    bson_t *ops = framing("$$ops", 0);
    bson_t *sum = BCON_NEW(
        "$add", "[", BCON_INT64(base + (document->head ? EMPTY_DOCUMENT : 0)), "$$array",
        BCON_DOCUMENT(after), "{", "$multiply", "[", BCON_INT64(-1), BCON_DOCUMENT(before), "]",
        "}", BCON_DOCUMENT(gone), "{", "$multiply", "[", BCON_INT64(SPILL_NUMBER_BYTES), "$$gone",
        "]", "}", BCON_DOCUMENT(ops), "{", "$multiply", "[", BCON_INT64(SPILL_OP_BYTES), "$$ops",
        "]", "}", "$$root", "{", "$multiply", "[", BCON_INT64(-1), "$$own", "]", "}", "]");
    bson_destroy(after);
    bson_destroy(before);
    bson_destroy(gone);
    bson_destroy(ops);
    return sum;
}

static void append_field(bson_t *fields, const char *name)
{
    char ref[SPILL_NAME_SIZE + 1];
    if (name[0] == '\0')
        return;
    snprintf(ref, sizeof ref, "$%s", name);
    BSON_APPEND_UTF8(fields, name, ref);
}

/* What the sum refers to. */
static bson_t *variables(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    char array[SPILL_NAME_SIZE + 1], path[SPILL_MONGO_PATH_SIZE];
    snprintf(array, sizeof array, "$%s", document->array);
    bson_t *live = length_of(array);
    bson_t *gone = length_of(spill_mongo_ref(document, "gone", path));
    const char *n = spill_mongo_ref(document, "n", path);
    bson_t *vars =
        BCON_NEW("live", BCON_DOCUMENT(live), "gone", BCON_DOCUMENT(gone), "ops", "{", "$max", "[",
                 BCON_INT64(1), "{", "$min", "[", "{", "$add", "[", BCON_UTF8(n),
                 BCON_INT64(spill_request_ops(request)), "]", "}", BCON_INT64(request->op_window),
                 "]", "}", "]", "}", "array", "{", "$bsonSize", "{", "a", "{", "$ifNull", "[",
                 BCON_UTF8(array), "[", "]", "]", "}", "}", "}");
    bson_destroy(live);
    bson_destroy(gone);
    if (!document->head) {
        BCON_APPEND(vars, "root", BCON_INT64(0), "own", BCON_INT64(0));
        return vars;
    }
    BCON_APPEND(vars, "root", "{", "$bsonSize", "$$ROOT", "}");
    bson_t own, fields;
    BSON_APPEND_DOCUMENT_BEGIN(vars, "own", &own);
    BSON_APPEND_DOCUMENT_BEGIN(&own, "$bsonSize", &fields);
    append_field(&fields, request->definition->array);
    append_field(&fields, request->definition->count_field);
    append_field(&fields, request->definition->overflow_field);
    append_field(&fields, request->definition->pages_field);
    append_field(&fields, "spill");
    bson_append_document_end(&own, &fields);
    bson_append_document_end(vars, &own);
    return vars;
}

void spill_mongo_append_room(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->element_count;
    bson_t *vars = variables(document);
    bson_t *bytes = document_bytes(document);
    /* An element alone may take all that a document may. */
    int64_t alone = count == 1 ? SPILL_DOCUMENT_BYTES_MAX : request->limits.bytes_max;
    BCON_APPEND(filter, "$expr", "{", "$let", "{", "vars", BCON_DOCUMENT(vars), "in", "{", "$and",
                "[", "{", "$lte", "[", "{", "$add", "[", "$$live", "$$gone", BCON_INT64(count), "]",
                "}", BCON_INT64(request->limits.slots_max), "]", "}", "{", "$lte", "[",
                BCON_DOCUMENT(bytes), "{", "$cond", "[", "{", "$eq", "[", "$$live", BCON_INT64(0),
                "]", "}", BCON_INT64(alone), BCON_INT64(request->limits.bytes_max), "]", "}", "]",
                "}", "]", "}", "}", "}");
    bson_destroy(vars);
    bson_destroy(bytes);
}

/*
 * Servers plan a query with more than two conditions noticeably longer, so there are two: the place
 * of the last slot is free, and one comparison that is false as well for a document that is none of
 * ours, is sealed, is of another incarnation, or has numbers that are gone.
 */
void spill_mongo_append_ample_room(const spill_mongo_document_t *document, bson_t *filter)
{
    enum { LONGEST_FRAMING = 2 + 7, PLACES_MAX = 1000000000 };
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->element_count;
    int64_t last = request->limits.slots_max - count;
    spill_state_t full = {.n = request->op_window};
    /* The most that the bound counts and the document does not have, and what is added. */
    int64_t more = spill_state_document_bytes(request->definition, request->owner, document->head,
                                              &full, 0, 0) +
                   request->elements_bytes + spill_update_growth(request->update) +
                   LONGEST_FRAMING * count;
    char gone[SPILL_MONGO_PATH_SIZE], sealed[SPILL_MONGO_PATH_SIZE], epoch[SPILL_MONGO_PATH_SIZE];
    char place[SPILL_NAME_SIZE + 24];
    snprintf(place, sizeof place, "%s.%lld", document->array, (long long)(last < 0 ? 0 : last));
    if (last < PLACES_MAX)
        BCON_APPEND(filter, place, "{", "$exists", BCON_BOOL(false), "}");
    const char *other = document->head ? "$lte" : "$ne";
    BCON_APPEND(filter, "$expr", "{", "$lte", "[", "{", "$bsonSize", "$$ROOT", "}", "{", "$cond",
                "[", "{", "$or", "[", BCON_UTF8(spill_mongo_ref(document, "gone", gone)),
                BCON_UTF8(spill_mongo_ref(document, "sealed", sealed)), "{", other, "[",
                BCON_UTF8(spill_mongo_ref(document, "epoch", epoch)),
                BCON_INT64(document->head ? 0 : request->epoch), "]", "}", "]", "}", BCON_INT64(-1),
                BCON_INT64(last < 0 ? -1 : request->limits.bytes_max - more), "]", "}", "]", "}");
}
