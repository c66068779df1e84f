/*
 * Elements by their ids. The index `spillway_id` finds pages that have the id in any element; the
 * aggregation then selects the oldest page whose element has it as its id (bson/element.h).
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "definition/stored_element.h"
#include "store/place.h"

#include <stdio.h>

void spill_mongo_id_path(const spill_definition_t *definition, char path[SPILL_MONGO_ID_PATH_SIZE])
{
    if (spill_schema_of(definition)->has_referenced_elements)
        spill_stored_element_path(definition, definition->id_field, path);
    else
        snprintf(path, SPILL_MONGO_ID_PATH_SIZE, "%s.%s", definition->page_array,
                 definition->id_field);
}

/* Referenced elements: the document's own id is equal, not a member of an array of ids. */
static void match_itself(const spill_request_t *request, bson_t *match)
{
    char path[SPILL_MONGO_ID_PATH_SIZE], field[SPILL_MONGO_ID_PATH_SIZE + 1];
    bson_t id = BSON_INITIALIZER;
    spill_mongo_id_path(request->definition, path);
    snprintf(field, sizeof field, "$%s", path);
    spill_value_append(request->read.id, &id, "$literal");
    BCON_APPEND(match, "spill.first", "{", "$gte", BCON_INT64(request->read.seq), "}", "$expr", "{",
                "$eq", "[", BCON_UTF8(field), BCON_DOCUMENT(&id), "]", "}");
    bson_destroy(&id);
}

void spill_mongo_match_id(const spill_mongo_document_t *document, bson_t *stages)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    char path[SPILL_MONGO_ID_PATH_SIZE];
    bson_t stage, match, id;
    spill_mongo_id_path(definition, path);
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    spill_mongo_append_page_owner(request, &match);
    BSON_APPEND_DOCUMENT_BEGIN(&match, path, &id);
    spill_value_append(request->read.id, &id, "$eq");
    bson_append_document_end(&match, &id);
    BCON_APPEND(&match, "spill.epoch", BCON_INT64(request->incarnation));
    spill_mongo_append_pages(definition, request->read.pages, &match);
    if (document->referenced)
        match_itself(request, &match);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(stages, &stage);
    BCON_APPEND(stages, "1", "{", "$sort", "{", "spill.first", BCON_INT32(1), "_id", BCON_INT32(1),
                "}", "}");
}

/*
 * Values are compared by MongoDB's rules, so 1 finds 1.0. A path through an array gives an array,
 * which is not an id.
 */
void spill_mongo_project_element(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_request_t *request = document->request;
    char array[SPILL_NAME_SIZE + 1], field[SPILL_NAME_SIZE + 8];
    snprintf(array, sizeof array, "$%s", document->array);
    snprintf(field, sizeof field, "$$this.%s", request->definition->id_field);
    bson_t id = BSON_INITIALIZER;
    spill_value_append(request->read.id, &id, "$literal");
    bson_t *all = BCON_NEW("$cond", "[", "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array),
                           "[", "]", "]");
    bson_t *oldest_first = spill_grows_at_front(request->definition)
                               ? BCON_NEW("$reverseArray", BCON_DOCUMENT(all))
                               : bson_copy(all);
    bson_t *live = spill_mongo_live(document);
    bson_t *rank = spill_mongo_live_below(document, request->read.seq, live);
    bson_t *from =
        BCON_NEW("$indexOfArray", "[", "{", "$map", "{", "input", BCON_DOCUMENT(oldest_first), "as",
                 "this", "in", "{", "$eq", "[", BCON_UTF8(field), BCON_DOCUMENT(&id), "]", "}", "}",
                 "}", BCON_BOOL(true), BCON_DOCUMENT(rank), "]");
    bson_t *one = BCON_NEW("$literal", BCON_INT64(1));
    bson_t *run = spill_mongo_slice(document, live, from, one);
    BCON_APPEND(projection, "from", BCON_DOCUMENT(from), "run", "{", "$cond", "[", "{", "$gte", "[",
                BCON_DOCUMENT(from), BCON_INT64(0), "]", "}", BCON_DOCUMENT(run), "[", "]", "]",
                "}");
    bson_destroy(&id);
    bson_destroy(all);
    bson_destroy(oldest_first);
    bson_destroy(live);
    bson_destroy(rank);
    bson_destroy(from);
    bson_destroy(one);
    bson_destroy(run);
}
