/*
 * The places of elements in an array on the server, by the definition's order: store/place.h as
 * operators and expressions. Other clients may append at the growing end at any time. So a change
 * counts places from the other end, where the oldest element is.
 */
#include "store/mongo/mongo.h"

#include "store/place.h"

#include <stdio.h>

int64_t spill_mongo_place_of(const spill_mongo_document_t *document, const spill_state_t *state,
                             int64_t seq)
{
    return spill_place(document->request->definition, state->live, spill_state_rank(state, seq));
}

void spill_mongo_push(const spill_mongo_document_t *document, const spill_mongo_roll_t *roll,
                      bson_t *push)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t skipped = roll ? roll->skipped : 0;
    int64_t count = (int64_t)request->append.element_count - skipped;
    bool front = spill_grows_at_front(definition);
    bson_t array, each;
    bson_append_document_begin(push, document->array, -1, &array);
    BSON_APPEND_ARRAY_BEGIN(&array, "$each", &each);
    for (int64_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        int64_t place = skipped + spill_place(definition, count, i);
        spill_value_append(&request->append.elements[place], &each, key);
    }
    bson_append_array_end(&array, &each);
    if (front)
        BSON_APPEND_INT32(&array, "$position", 0);
    if (roll && roll->moved > 0)
        BSON_APPEND_INT64(&array, "$slice", front ? roll->live : -roll->live);
    bson_append_document_end(push, &array);
}

void spill_mongo_set_array(const spill_mongo_document_t *document, const spill_run_t *run,
                           bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    bson_t array;
    bson_append_array_begin(set, document->array, -1, &array);
    for (size_t i = 0; i < run->count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        int64_t place = spill_place(definition, (int64_t)run->count, (int64_t)i);
        spill_element_t element = spill_run_element(run, (size_t)place);
        spill_value_append(&element.value, &array, key);
    }
    bson_append_array_end(set, &array);
}

bson_t *spill_mongo_live(const spill_mongo_document_t *document)
{
    char ref[SPILL_NAME_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    return BCON_NEW("$cond", "[", "{", "$isArray", BCON_UTF8(ref), "}", "{", "$size",
                    BCON_UTF8(ref), "}", BCON_INT32(0), "]");
}

bson_t *spill_mongo_slice(const spill_mongo_document_t *document, const bson_t *live,
                          const bson_t *rank, const bson_t *count)
{
    char ref[SPILL_NAME_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    bson_t *place, *most;
    if (spill_grows_at_front(document->request->definition)) {
        most = BCON_NEW("$min", "[", BCON_DOCUMENT(count), "{", "$subtract", "[",
                        BCON_DOCUMENT(live), BCON_DOCUMENT(rank), "]", "}", "]");
        place = BCON_NEW("$subtract", "[", BCON_DOCUMENT(live), "{", "$add", "[",
                         BCON_DOCUMENT(rank), BCON_DOCUMENT(most), "]", "}", "]");
    } else {
        most = bson_copy(count);
        place = bson_copy(rank);
    }
    bson_t *slice =
        BCON_NEW("$cond", "[", "{", "$and", "[", "{", "$isArray", BCON_UTF8(ref), "}", "{", "$gt",
                 "[", BCON_DOCUMENT(most), BCON_INT64(0), "]", "}", "]", "}", "{", "$slice", "[",
                 BCON_UTF8(ref), BCON_DOCUMENT(place), "{", "$max", "[", BCON_INT64(1),
                 BCON_DOCUMENT(most), "]", "}", "]", "}", "[", "]", "]");
    bson_destroy(most);
    bson_destroy(place);
    return slice;
}

/* For an array that grows at the front: all but its `rank` oldest elements, as {$slice: ...}. */
static void newer_at_front(const char *ref, int64_t rank, bson_t *slice)
{
    bson_t length = BSON_INITIALIZER;
    spill_mongo_append_length(ref, "n", &length);
    BCON_APPEND(slice, "$slice", "[", BCON_UTF8(ref), "{", "$let", "{", "vars",
                BCON_DOCUMENT(&length), "in", "{", "$subtract", "[", "$$n", BCON_INT64(rank), "]",
                "}", "}", "}", "]");
    bson_destroy(&length);
}

void spill_mongo_append_without(const spill_mongo_document_t *document, int64_t rank, int64_t count,
                                bson_t *set)
{
    char ref[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    bson_t older = BSON_INITIALIZER, newer = BSON_INITIALIZER;
    bool front = spill_grows_at_front(document->request->definition);
    if (front) {
        newer_at_front(ref, rank + count, &newer);
        BCON_APPEND(&older, "$slice", "[", BCON_UTF8(ref), BCON_INT64(-rank), "]");
    } else {
        BCON_APPEND(&newer, "$slice", "[", BCON_UTF8(ref), BCON_INT64(rank + count),
                    BCON_INT64(INT32_MAX), "]");
        BCON_APPEND(&older, "$slice", "[", BCON_UTF8(ref), BCON_INT64(rank), "]");
    }
    if (rank == 0)
        BSON_APPEND_DOCUMENT(set, document->array, &newer);
    else
        BCON_APPEND(set, document->array, "{", "$concatArrays", "[",
                    BCON_DOCUMENT(front ? &newer : &older), BCON_DOCUMENT(front ? &older : &newer),
                    "]", "}");
    bson_destroy(&older);
    bson_destroy(&newer);
}
