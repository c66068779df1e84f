/* find, count and distinct on a served collection. */
#include "gateway/translate/mention.h"
#include "gateway/translate/reply_batch.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <string.h>

/* What a filter, which may be NULL, mentions. False: it mentions `spill`. */
static bool survey_filter(spill_translation_t *translation, const bson_t *filter,
                          unsigned *mentions)
{
    *mentions = filter != NULL ? spill_mentions_in_filter(filter, translation->array) : 0;
    return (*mentions & SPILL_MENTIONS_SPILL) == 0 || *mentions == SPILL_MENTIONS_ANY ||
           spill_translation_refuse_spill(translation, "a filter");
}

/* Do the sort, the hint or the bounds of an index use F? */
static bool orders_by_array(const spill_translation_t *translation)
{
    static const char *const names[] = {"sort", "hint", "min", "max", NULL};
    bson_t document;
    for (size_t i = 0; names[i] != NULL; i++)
        if (spill_translation_find_document(translation, names[i], &document) &&
            spill_mentions_in_document(&document, translation->array) != 0)
            return true;
    return false;
}

static void copy_option(const spill_translation_t *translation, const char *name, bson_t *options)
{
    bson_iter_t iter;
    if (spill_translation_find(translation, name, &iter))
        bson_append_iter(options, name, -1, &iter);
}

/* Keep what is needed to read a document again. */
static void keep_query(const spill_translation_t *translation, const bson_t *filter,
                       spill_asked_t *asked)
{
    asked->filter = filter != NULL ? bson_copy(filter) : bson_new();
    asked->options = bson_new();
    copy_option(translation, "collation", asked->options);
    copy_option(translation, "let", asked->options);
}

static bool ask(spill_translation_t *translation, const spill_asked_t *asked, bson_t *answer)
{
    static const char *const except[] = {"projection", NULL};
    if (asked->projection == NULL)
        return spill_translation_forward(translation, answer);
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    spill_translation_copy_body(translation, except, &body);
    BSON_APPEND_DOCUMENT(&body, "projection", asked->projection);
    return spill_translation_call(translation, &body, answer);
}

/* Not served: refuse a filter, a sort or a key that uses an array. `filter` may be NULL. */
static bool check_parts(spill_translation_t *translation, const bson_t *filter, const char *key)
{
    unsigned mentions;
    const spill_served_collection_t *at = translation->at;
    for (size_t i = 0; at->parts[i] != NULL; i++) {
        translation->array = at->parts[i];
        if (!survey_filter(translation, filter, &mentions))
            return false;
        if (mentions != 0 || spill_mentions_in_path(key, translation->array) != 0 ||
            orders_by_array(translation))
            return spill_translation_refuse(translation, translation->array,
                                            translation->command->name, at->reason);
    }
    return true;
}

/* The server's answer, if no document can have an array of which a head has a part. */
static bool find_unserved(spill_translation_t *translation, const bson_t *filter,
                          const bson_t *projection, bson_t *reply)
{
    const spill_served_collection_t *at = translation->at;
    SPILL_SCOPED(spill_asked_release) spill_asked_t asked = {0};
    if (!check_parts(translation, filter, ""))
        return false;
    for (size_t i = 0; at->parts[i] != NULL; i++) {
        spill_asked_release(&asked);
        if (!spill_asked_read(at->parts[i], projection, &asked))
            return spill_translation_refuse_spill(translation, "a projection");
        if (asked.kind != SPILL_ASKED_PASS)
            return spill_translation_refuse(translation, at->parts[i], "find", at->reason);
    }
    if (!ask(translation, &asked, reply))
        return false;
    if (translation->connection->reserve(translation->connection, reply->len))
        return true;
    bson_destroy(reply);
    return spill_translation_overloaded(translation, "the memory for replies is used up");
}

bool spill_translate_find(spill_translation_t *translation, bson_t *reply)
{
    bson_t filter, projection, answer;
    bson_iter_t single;
    unsigned mentions;
    SPILL_SCOPED(spill_asked_release) spill_asked_t asked = {0};
    bool filters = spill_translation_find_document(translation, "filter", &filter);
    bool projects = spill_translation_find_document(translation, "projection", &projection);
    if (translation->at->array == NULL)
        return find_unserved(translation, filters ? &filter : NULL, projects ? &projection : NULL,
                             reply);
    if (!survey_filter(translation, filters ? &filter : NULL, &mentions))
        return false;
    if (!spill_asked_read(translation->array, projects ? &projection : NULL, &asked))
        return spill_translation_refuse_spill(translation, "a projection");
    asked.recounts = mentions != 0 || orders_by_array(translation);
    keep_query(translation, filters ? &filter : NULL, &asked);
    if (!ask(translation, &asked, &answer))
        return false;
    bool one =
        spill_translation_find(translation, "singleBatch", &single) && spill_iter_is_true(&single);
    bool done = spill_batch_begin(translation, &answer, &asked, one, reply);
    bson_destroy(&answer);
    return done;
}

/* ---- count, distinct ------------------------------------------------------------------------- */

bool spill_translate_count(spill_translation_t *translation, bson_t *reply)
{
    bson_t filter;
    bson_iter_t key;
    unsigned mentions;
    bool any = false;
    bool filters = spill_translation_find_document(translation, "query", &filter);
    bool has_key = spill_translation_find(translation, "key", &key) && BSON_ITER_HOLDS_UTF8(&key);
    const char *path = has_key ? bson_iter_utf8(&key, NULL) : "";
    if (translation->at->array == NULL)
        return check_parts(translation, filters ? &filter : NULL, path) &&
               spill_translation_forward(translation, reply);
    if (!survey_filter(translation, filters ? &filter : NULL, &mentions))
        return false;
    mentions |= has_key ? spill_mentions_in_path(path, translation->array) : 0;
    if (mentions & SPILL_MENTIONS_SPILL)
        return spill_translation_refuse_spill(translation, translation->command->name);
    if (orders_by_array(translation))
        mentions |= SPILL_MENTIONS_ARRAY;
    if (!spill_translation_forward(translation, reply))
        return false;
    /* Afterwards: an array that got its first page meanwhile was complete before. */
    bool known = mentions == 0 ||
                 spill_translation_find_pages(translation, NULL, filters ? &filter : NULL, &any);
    if (known && !any)
        return true;
    bson_destroy(reply);
    return known && spill_translation_refuse_search(translation, filters ? &filter : NULL,
                                                    translation->command->name);
}
