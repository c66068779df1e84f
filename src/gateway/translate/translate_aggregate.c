/* aggregate, on a served collection or with stages that reach one. */
#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/pipeline.h"
#include "gateway/translate/reply_batch.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

static const char joining[] = "$lookup, $graphLookup or $unionWith";

/* Refuse what is never right. */
static bool check(spill_translation_t *translation, const spill_pipeline_t *pipeline)
{
    if (pipeline->hidden_target != NULL)
        return spill_translation_refuse_hidden(translation, pipeline->hidden_target);
    if (pipeline->names_spill)
        return spill_translation_refuse_spill(translation, "aggregate");
    if (spill_pipeline_watches(translation->served, translation->command))
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
        spill_pipeline_read(translation->served, translation->command, at->parts[i], &pipeline);
        if (pipeline.names_spill)
            return spill_translation_refuse_spill(translation, "aggregate");
        if (pipeline.has_array || pipeline.uses_array)
            return spill_translation_refuse(translation, at->parts[i], "aggregate", at->reason);
    }
    return true;
}

static bool is_foreign(const spill_translation_t *translation)
{
    return strcmp(translation->command->database, spill_served_database(translation->served)) != 0;
}

/* Does the pipeline read arrays of the collection, apart from the pipeline's own documents? */
static bool joins(const spill_translation_t *translation, const spill_served_collection_t *at)
{
    return (at->array != NULL || at->parts[0] != NULL) &&
           spill_pipeline_reads(&translation->command->message->body, at->collection);
}

/* A command on another database that names the served one: it may read collections there. */
static bool check_foreign(spill_translation_t *translation)
{
    const spill_served_collection_t *const *all = spill_served_all(translation->served);
    for (size_t i = 0; all[i] != NULL; i++)
        if (joins(translation, all[i]))
            return spill_translation_refuse_in(translation, all[i]->collection,
                                               all[i]->definition->array, joining,
                                               "read it in its own database");
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
    if (is_foreign(translation))
        return check_foreign(translation);
    for (; view->name != NULL; view++)
        if (spill_pipeline_reads(&translation->command->message->body, view->name))
            return spill_translation_refuse_view(translation, view, joining);
    for (size_t i = 0; known && with_pages == NULL && all[i] != NULL; i++) {
        bool any = false;
        if (!joins(translation, all[i]))
            continue;
        if (all[i]->array == NULL)
            return spill_translation_refuse_in(translation, all[i]->collection, all[i]->parts[0],
                                               joining, all[i]->reason);
        translation->at = all[i];
        known = spill_translation_find_pages(translation, NULL, NULL, &any);
        with_pages = any ? all[i] : NULL;
    }
    translation->at = own;
    if (with_pages == NULL)
        return known;
    return spill_translation_refuse_in(translation, with_pages->collection,
                                       with_pages->definition->array, joining,
                                       "arrays there have pages: read them with find");
}

/* Send the command. No stage from number `at` on (-1: none) sees `spill`, and no joined document
 * has it. */
static bool send(spill_translation_t *translation, int at, bson_t *answer)
{
    static const char *const except[] = {"pipeline", NULL};
    const bson_t *own = &translation->command->message->body;
    if (at < 0 && (is_foreign(translation) || !spill_pipeline_joins(translation->served, own)))
        return spill_translation_forward(translation, answer);
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(translation, except, &body);
    spill_pipeline_hide(translation->served, own, at, &body);
    return spill_translation_call(translation, &body, answer);
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
    asked->kind = SPILL_ASKED_STRIP;
    asked->recounts = true;
    asked->filter = pipeline->filters > 0 ? bson_copy(&pipeline->first_filter) : bson_new();
    if (!spill_translation_find_pages(translation, NULL, asked->filter, &any))
        return false;
    if (any)
        return refuse_use(translation);
    return send(translation, pipeline->begins ? 1 : pipeline->filters, answer);
}

/* The pipeline needs no array: without F, or on a collection that is not served. */
static bool run_without_array(spill_translation_t *translation, const spill_pipeline_t *pipeline,
                              bool in_part, bson_t *answer)
{
    if (in_part && !pipeline->reports)
        return send(translation, pipeline->begins ? 1 : pipeline->filters, answer);
    return send(translation, pipeline->hides ? pipeline->hide_at : -1, answer);
}

bool spill_translate_aggregate(spill_translation_t *translation, bson_t *reply)
{
    bson_t answer;
    bson_iter_t cursor;
    spill_pipeline_t pipeline;
    bool own = translation->at != NULL && translation->at->array != NULL;
    bool in_part = translation->at != NULL && !own && translation->at->parts[0] != NULL;
    SPILL_SCOPED(spill_asked_release) spill_asked_t asked = {.kind = SPILL_ASKED_STRIP};
    spill_pipeline_read(translation->served, translation->command, own ? translation->array : NULL,
                        &pipeline);
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
