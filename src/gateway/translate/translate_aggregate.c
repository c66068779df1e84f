/* aggregate, on a served collection or with stages that reach one. */
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/pipeline.h"
#include "gateway/translate/reply_batch.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

static const char joins[] = "$lookup, $graphLookup or $unionWith";

/* Refuse what is never right. */
static bool check(spill_translation_t *translation, const spill_pipeline_t *pipeline)
{
    if (pipeline->hidden_target != NULL)
        return spill_translation_refuse_hidden(translation, pipeline->hidden_target);
    if (pipeline->names_spill)
        return spill_translation_refuse_spill(translation, "aggregate");
    if (pipeline->watches)
        return spill_translation_refuse(translation, translation->array, "$changeStream",
                                        "watch the collection on the server itself");
    if (pipeline->target != NULL)
        return spill_translation_refuse_in(translation, pipeline->target->collection,
                                           pipeline->target->definition->array, "$out or $merge",
                                           "write to another collection, or update the documents");
    return true;
}

/* The collection is not served: refuse what may use an array that has a part in pages. */
static bool check_parts(spill_translation_t *translation)
{
    spill_pipeline_t pipeline;
    const spill_served_collection_t *at = translation->at;
    for (size_t i = 0; at->parts[i] != NULL; i++) {
        spill_pipeline_read(translation->served, &translation->command->message->body, at->parts[i],
                            &pipeline);
        if (pipeline.names_spill)
            return spill_translation_refuse_spill(translation, "aggregate");
        if (pipeline.has_array || pipeline.uses_array)
            return spill_translation_refuse(translation, at->parts[i], "aggregate", at->reason);
    }
    return true;
}

/* Refuse if any array of a served collection that another stage reads has pages, or may have. */
static bool check_joined(spill_translation_t *translation)
{
    const spill_served_view_t *view = spill_served_views(translation->served);
    const spill_served_collection_t *own = translation->at;
    const spill_served_collection_t *const *all = spill_served_all(translation->served);
    const spill_served_collection_t *with_pages = NULL;
    bool known = true;
    for (; view->name != NULL; view++)
        if (spill_pipeline_reads(&translation->command->message->body, view->name))
            return spill_translation_refuse_view(translation, view, joins);
    for (size_t i = 0; known && with_pages == NULL && all[i] != NULL; i++) {
        bool any = false;
        if ((all[i]->array == NULL && all[i]->parts[0] == NULL) ||
            !spill_pipeline_reads(&translation->command->message->body, all[i]->collection))
            continue;
        if (all[i]->array == NULL)
            return spill_translation_refuse_in(translation, all[i]->collection, all[i]->parts[0],
                                               joins, all[i]->reason);
        translation->at = all[i];
        known = spill_translation_find_pages(translation, NULL, NULL, &any);
        with_pages = any ? all[i] : NULL;
    }
    translation->at = own;
    if (with_pages == NULL)
        return known;
    return spill_translation_refuse_in(translation, with_pages->collection,
                                       with_pages->definition->array, joins,
                                       "arrays there have pages: read them with find");
}

/* No stage behind the filters sees `spill`: a document as a whole would include it. */
static void hide_spill(const spill_translation_t *translation, const spill_pipeline_t *pipeline,
                       bson_t *body)
{
    static const char *const except[] = {"pipeline", NULL};
    bson_iter_t stages, each;
    bson_t made, unset;
    uint32_t count = 0;
    bool done = false;
    spill_translation_copy_body(translation, except, body);
    BSON_APPEND_ARRAY_BEGIN(body, "pipeline", &made);
    if (spill_translation_find(translation, "pipeline", &stages) &&
        bson_iter_recurse(&stages, &each))
        for (int at = 0; bson_iter_next(&each); at++) {
            char text[2][16];
            const char *key;
            if (!done && at == pipeline->filters) {
                bson_uint32_to_string(count++, &key, text[0], sizeof text[0]);
                BSON_APPEND_DOCUMENT_BEGIN(&made, key, &unset);
                BSON_APPEND_UTF8(&unset, "$unset", SPILL_STORED_ROOT);
                bson_append_document_end(&made, &unset);
                done = true;
            }
            bson_uint32_to_string(count++, &key, text[1], sizeof text[1]);
            bson_append_iter(&made, key, -1, &each);
        }
    bson_append_array_end(body, &made);
}

static bool refuse_use(spill_translation_t *translation)
{
    char *reason = bson_strdup_printf(
        "the pipeline uses the array, and the server sees no pages: read the newest elements with "
        "find and the projection {\"%s\": {\"$slice\": -50}}, or all of them with find, and count, "
        "group or choose in the application; add the _id of an array without pages; or leave the "
        "array out (docs/reference/gateway.md#count-or-search-the-elements)",
        translation->array);
    spill_translation_refuse(translation, translation->array, "aggregate", reason);
    bson_free(reason);
    return false;
}

/* The pipeline needs F in the documents: right as long as no owner that it reads has pages. */
static bool run_on_heads(spill_translation_t *translation, const spill_pipeline_t *pipeline,
                         spill_asked_t *asked, bson_t *answer)
{
    bool any = false;
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    asked->kind = SPILL_ASKED_STRIP;
    asked->recounts = true;
    asked->filter = pipeline->filters > 0 ? bson_copy(&pipeline->first_filter) : bson_new();
    if (!spill_translation_find_pages(translation, NULL, asked->filter, &any))
        return false;
    if (any)
        return refuse_use(translation);
    hide_spill(translation, pipeline, &body);
    return spill_translation_call(translation, &body, answer);
}

/* The pipeline needs no array: without F, or on a collection that is not served. */
static bool run_without_array(spill_translation_t *translation, const spill_pipeline_t *pipeline,
                              bool in_part, bson_t *answer)
{
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    if (!in_part || pipeline->reports)
        return spill_translation_forward(translation, answer);
    hide_spill(translation, pipeline, &body);
    return spill_translation_call(translation, &body, answer);
}

bool spill_translate_aggregate(spill_translation_t *translation, bson_t *reply)
{
    bson_t answer;
    bson_iter_t cursor;
    spill_pipeline_t pipeline;
    bool own = translation->at != NULL && translation->at->array != NULL;
    bool in_part = translation->at != NULL && !own && translation->at->parts[0] != NULL;
    SPILL_SCOPED(spill_asked_release) spill_asked_t asked = {.kind = SPILL_ASKED_STRIP};
    spill_pipeline_read(translation->served, &translation->command->message->body,
                        own ? translation->array : NULL, &pipeline);
    if (!check(translation, &pipeline) || (in_part && !check_parts(translation)) ||
        !check_joined(translation))
        return false;
    bool heads = own && pipeline.uses_array;
    if (heads ? !run_on_heads(translation, &pipeline, &asked, &answer)
              : !run_without_array(translation, &pipeline, in_part, &answer))
        return false;
    if (!check_joined(translation)) {
        bson_destroy(&answer);
        return false;
    }
    /* Of other collections, and explanations: as upstream answered. */
    if (!own || !bson_iter_init_find(&cursor, &answer, "cursor")) {
        bson_steal(reply, &answer);
        if (!in_part || translation->connection->reserve(translation->connection, reply->len))
            return true;
        bson_destroy(reply);
        return spill_translation_overloaded(translation, "the memory for replies is used up");
    }
    if (!heads && pipeline.has_array)
        asked.kind = SPILL_ASKED_WHOLE;
    bool done = spill_batch_begin(translation, &answer, &asked, false, reply);
    bson_destroy(&answer);
    return done;
}
