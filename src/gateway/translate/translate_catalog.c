/* Commands on collections and databases. */
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "gateway/translate/change.h"
#include "gateway/translate/mention.h"
#include "gateway/translate/translations.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* ---- listCollections ------------------------------------------------------------------------- */

/* The collections that clients see. */
static void append_visible(const spill_translation_t *translation, bson_t *all)
{
    const char *const *pages = spill_served_pages(translation->served);
    bson_t condition, names, list;
    BCON_APPEND(all, "0", "{", "name", "{", "$not", BCON_REGEX("^spillway\\.", ""), "}", "}");
    BSON_APPEND_DOCUMENT_BEGIN(all, "1", &condition);
    BSON_APPEND_DOCUMENT_BEGIN(&condition, "name", &names);
    BSON_APPEND_ARRAY_BEGIN(&names, "$nin", &list);
    for (uint32_t i = 0; pages[i] != NULL; i++) {
        char text[16];
        const char *key;
        bson_uint32_to_string(i, &key, text, sizeof text);
        BSON_APPEND_UTF8(&list, key, pages[i]);
    }
    bson_append_array_end(&names, &list);
    bson_append_document_end(&condition, &names);
    bson_append_document_end(all, &condition);
}

bool spill_translate_list_collections(spill_translation_t *translation, bson_t *reply)
{
    static const char *const except[] = {"filter", NULL};
    SPILL_SCOPED(bson_destroy) bson_t body = BSON_INITIALIZER;
    bson_t filter, all, client;
    spill_translation_copy_body(translation, except, &body);
    BSON_APPEND_DOCUMENT_BEGIN(&body, "filter", &filter);
    BSON_APPEND_ARRAY_BEGIN(&filter, "$and", &all);
    append_visible(translation, &all);
    if (spill_translation_find_document(translation, "filter", &client))
        BSON_APPEND_DOCUMENT(&all, "2", &client);
    bson_append_array_end(&filter, &all);
    bson_append_document_end(&body, &filter);
    return spill_translation_call(translation, &body, reply);
}

/* ---- create, createIndexes ------------------------------------------------------------------- */

static bool refuse_ttl(spill_translation_t *translation)
{
    return spill_translation_fail(
        translation, SPILL_SERVER_CANNOT_CREATE_INDEX,
        "spillway: a TTL index on '%s' would delete documents and leave the pages of their arrays: "
        "let a job of the application delete old documents through the gateway, which deletes "
        "their pages too",
        translation->command->collection);
}

/* collMod can make a TTL index of another one. */
static bool makes_ttl(const spill_translation_t *translation)
{
    bson_t index;
    return translation->at != NULL && translation->at->array != NULL &&
           strcmp(translation->command->name, "collMod") == 0 &&
           spill_translation_find_document(translation, "index", &index) &&
           bson_has_field(&index, "expireAfterSeconds");
}

bool spill_translate_create(spill_translation_t *translation, bson_t *reply)
{
    if (makes_ttl(translation))
        return refuse_ttl(translation);
    if (spill_pipeline_concerns(translation->served, translation->command))
        return spill_translation_refuse(
            translation, "viewOn", translation->command->name,
            "a view would show heads without their pages: query the collection itself, or give the "
            "view a collection without a definition");
    return spill_translation_forward(translation, reply);
}

/* Is one of the key's values a text, as in {F: "text"}? */
static bool has_type(const bson_t *key)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, key))
        return false;
    while (bson_iter_next(&iter))
        if (BSON_ITER_HOLDS_UTF8(&iter))
            return true;
    return false;
}

static bool check_index(spill_translation_t *translation, const bson_t *index)
{
    bson_iter_t iter;
    bson_t key;
    if (bson_iter_init_find(&iter, index, "expireAfterSeconds"))
        return refuse_ttl(translation);
    if (!bson_iter_init_find(&iter, index, "key") || !spill_iter_document(&iter, &key))
        return true; /* upstream refuses it */
    unsigned mentions = spill_mentions_in_document(&key, translation->array);
    if (mentions & SPILL_MENTIONS_SPILL)
        return spill_translation_refuse_spill(translation, "createIndexes");
    bool unique = bson_iter_init_find(&iter, index, "unique") && spill_iter_is_true(&iter);
    if (mentions == 0 || (!unique && !has_type(&key)))
        return true;
    return spill_translation_fail(
        translation, SPILL_SERVER_CANNOT_CREATE_INDEX,
        "spillway: a unique, text or geospatial index on '%s' would miss the elements in pages: "
        "create an index without these options, or leave the array out of it",
        translation->array);
}

bool spill_translate_create_indexes(spill_translation_t *translation, bson_t *reply)
{
    bson_iter_t iter, each;
    bson_t index;
    if (translation->at->array != NULL && spill_translation_find(translation, "indexes", &iter) &&
        BSON_ITER_HOLDS_ARRAY(&iter) && bson_iter_recurse(&iter, &each))
        while (bson_iter_next(&each))
            if (spill_iter_document(&each, &index) && !check_index(translation, &index))
                return false;
    return spill_translation_forward(translation, reply);
}

/* ---- drop, dropDatabase ---------------------------------------------------------------------- */

enum { NAMESPACE_NOT_FOUND = 26 };

/* Drop a collection that may be absent. */
static bool drop_collection(spill_translation_t *translation, const char *name)
{
    bson_t reply;
    bson_t *drop = BCON_NEW("drop", BCON_UTF8(name));
    spill_translation_finish_step(translation, drop);
    bool done = spill_translation_call(translation, drop, &reply);
    bson_destroy(drop);
    if (done)
        bson_destroy(&reply);
    else if (spill_translation_failure_code(translation) == NAMESPACE_NOT_FOUND)
        spill_translation_recover(translation);
    return !translation->failed;
}

/* Raise *most to the highest number at the path in the collection. */
static bool raise_to_highest(spill_translation_t *translation, const char *collection,
                             const char *path, int64_t *most)
{
    char field[SPILL_NAME_SIZE + 32];
    bson_iter_t iter, found;
    bson_t reply;
    snprintf(field, sizeof field, "$%s", path);
    bson_t *command = BCON_NEW("aggregate", BCON_UTF8(collection), "pipeline", "[", "{", "$group",
                               "{", "_id", BCON_NULL, "most", "{", "$max", BCON_UTF8(field), "}",
                               "}", "}", "]", "cursor", "{", "}");
    spill_translation_finish_step(translation, command);
    bool done = spill_translation_call(translation, command, &reply);
    bson_destroy(command);
    if (!done)
        return false;
    if (bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch.0.most", &found) &&
        BSON_ITER_HOLDS_NUMBER(&found) && bson_iter_as_int64(&found) > *most)
        *most = bson_iter_as_int64(&found);
    bson_destroy(&reply);
    return true;
}

/*
 * Delete the pages of incarnations up to `most`, except those with a lease that runs, or ended less
 * than two minutes ago: an ADOPT_SPLIT may still need them (docs/internals/protocol.md, "Documents
 * that are full").
 */
static bool delete_pages(spill_translation_t *translation, const char *pages, int64_t most)
{
    enum { MARGIN_SECONDS = 120 };
    bson_t reply;
    int64_t ended = ((int64_t)time(NULL) - MARGIN_SECONDS) * 1000000;
    bson_t *command =
        BCON_NEW("delete", BCON_UTF8(pages), "deletes", "[", "{", "q", "{",
                 SPILL_STORED_PAGE_INCARNATION, "{", "$lte", BCON_INT64(most), "}",
                 SPILL_STORED_PAGE_LEASE, "{", "$not", "{", "$gt", BCON_INT64(ended), "}", "}", "}",
                 "limit", BCON_INT32(0), "}", "]", "writeConcern", "{", "w", "majority", "}");
    spill_translation_finish_step(translation, command);
    bool done = spill_translation_call(translation, command, &reply);
    bson_destroy(command);
    if (!done)
        return false;
    done = spill_translation_keep_write_error(translation, &reply, true);
    bson_destroy(&reply);
    return done;
}

/* A definition with heads in a collection that is dropped, and the note of the drop. */
typedef struct dropping {
    const spill_served_collection_t *at;
    const spill_definition_t *definition;
    spill_drop_all_t drop; /* incarnation 0: there is nothing to note */
} dropping_t;

/* Add the definitions of a collection that have pages in another collection. */
static size_t add_dropping(const spill_served_collection_t *at, dropping_t *all, size_t count)
{
    for (size_t i = 0; at->definitions[i] != NULL; i++) {
        const spill_definition_t *definition = at->definitions[i];
        if (definition->page_collection[0] != '\0' &&
            strcmp(definition->page_collection, at->collection) != 0)
            all[count++] = (dropping_t){.at = at, .definition = definition};
    }
    return count;
}

/*
 * Before the collection is dropped: later heads get incarnations above drop.incarnation, the
 * highest of all present heads and pages, and a note lets repair delete their pages. The gateway
 * writes both with its own rights, so the client's are tried first.
 */
static bool begin_drop(spill_translation_t *translation, dropping_t *one)
{
    char rev[SPILL_BOOK_PATH_SIZE];
    spill_error_t error;
    bson_oid_t attempt;
    spill_store_t *store = spill_served_store(translation->served);
    int64_t most = 0;
    spill_bookkeeping_path(one->definition->array, SPILL_STORED_REV, rev);
    if (!spill_translation_probe(translation, SPILL_RIGHT_DELETE, one->definition) ||
        !raise_to_highest(translation, one->definition->collection, rev, &most) ||
        !raise_to_highest(translation, one->definition->page_collection,
                          SPILL_STORED_PAGE_INCARNATION, &most))
        return false;
    if (most == 0) /* there is no head and no page */
        return true;
    one->drop.incarnation = most;
    bson_oid_init(&attempt, NULL);
    bson_oid_to_string(&attempt, one->drop.attempt);
    spill_code_t code = store->ops->head_ends(store, most, &error);
    if (code == SPILL_OK)
        code = store->ops->note_drop_all(store, one->definition, &one->drop, SPILL_DROP_BEGINS,
                                         &error);
    return code == SPILL_OK || spill_translation_fail_library(translation, code, &error);
}

static void note_stage(const spill_translation_t *translation, const dropping_t *one,
                       spill_drop_stage_t stage)
{
    spill_store_t *store = spill_served_store(translation->served);
    if (one->drop.incarnation > 0)
        store->ops->note_drop_all(store, one->definition, &one->drop, stage, NULL);
}

/* No heads are dropped: they live on. */
static void withdraw_all(const spill_translation_t *translation, const dropping_t *all,
                         size_t count)
{
    for (size_t i = 0; i < count; i++)
        note_stage(translation, &all[i], SPILL_DROP_REFUSED);
}

/* `lenient`: if there can be no note, drop all the same. */
static bool begin_all(spill_translation_t *translation, dropping_t *all, size_t count, bool lenient)
{
    for (size_t i = 0; i < count; i++) {
        if (begin_drop(translation, &all[i]))
            continue;
        if (translation->close || !lenient) {
            withdraw_all(translation, all, i + 1); /* the last may be announced, too */
            return false;
        }
        spill_translation_recover(translation);
        all[i].drop.incarnation = 0;
    }
    return true;
}

/*
 * After the drop: delete the pages. The notes stay, for pages that another process puts late. If
 * one cannot be completed, the collection's UUID shows that the collection is gone. `lenient`: the
 * notes are enough.
 */
static bool finish_all(spill_translation_t *translation, const dropping_t *all, size_t count,
                       bool lenient)
{
    for (size_t i = 0; i < count; i++)
        note_stage(translation, &all[i], SPILL_DROP_ENDED);
    for (size_t i = 0; i < count; i++) {
        if (all[i].drop.incarnation == 0 ||
            delete_pages(translation, all[i].definition->page_collection, all[i].drop.incarnation))
            continue;
        if (translation->close || !lenient)
            return false;
        spill_translation_recover(translation);
    }
    return true;
}

static bool drop_noted(spill_translation_t *translation, dropping_t *all, size_t count,
                       bson_t *reply)
{
    if (!begin_all(translation, all, count, false))
        return false;
    if (!spill_translation_forward(translation, reply)) {
        if (!spill_translation_may_have_changed(translation)) /* else the notes stay */
            withdraw_all(translation, all, count);
        return false;
    }
    if (finish_all(translation, all, count, false))
        return true;
    bson_destroy(reply);
    return false;
}

/*
 * Another gateway may adopt an array as soon as the collection is gone. So the pages are not
 * dropped with their collection: the pages of the incarnations that have ended are deleted. Pages
 * of a head that is made before the drop, but after begin_drop, stay without a head; `verify`
 * reports them.
 */
bool spill_translate_drop(spill_translation_t *translation, bson_t *reply)
{
    const spill_served_collection_t *at = translation->at;
    size_t most = 0;
    while (at->definitions[most] != NULL)
        most++;
    dropping_t *all = bson_malloc0((most + 1) * sizeof *all);
    size_t count = add_dropping(at, all, 0);
    bool done = drop_noted(translation, all, count, reply);
    bson_free(all);
    return done;
}

/* Drop the collections of a listing, except those with the definitions. */
static bool drop_listed(spill_translation_t *translation, const bson_t *reply)
{
    bson_iter_t iter, batch, each, name;
    if (!bson_iter_init(&iter, reply) ||
        !bson_iter_find_descendant(&iter, "cursor.firstBatch", &batch) ||
        !bson_iter_recurse(&batch, &each))
        return true;
    while (bson_iter_next(&each)) {
        if (!bson_iter_recurse(&each, &name) || !bson_iter_find(&name, "name") ||
            !BSON_ITER_HOLDS_UTF8(&name))
            continue;
        const char *text = bson_iter_utf8(&name, NULL);
        if (strncmp(text, "spillway.", strlen("spillway.")) != 0 &&
            strncmp(text, "system.", strlen("system.")) != 0 && !drop_collection(translation, text))
            return false;
    }
    return true;
}

static bool drop_all_listed(spill_translation_t *translation)
{
    bson_t answer;
    bool more = true;
    while (more) {
        bson_iter_t iter, id;
        bson_t *list = BCON_NEW("listCollections", BCON_INT32(1), "nameOnly", BCON_BOOL(true),
                                "cursor", "{", "batchSize", BCON_INT32(10000), "}");
        spill_translation_finish_step(translation, list);
        bool listed = spill_translation_call(translation, list, &answer);
        bson_destroy(list);
        if (!listed)
            return false;
        bool dropped = drop_listed(translation, &answer);
        more = bson_iter_init(&iter, &answer) &&
               bson_iter_find_descendant(&iter, "cursor.id", &id) && bson_iter_as_int64(&id) != 0;
        bson_destroy(&answer);
        if (!dropped)
            return false;
    }
    return true;
}

/* Drop the heads before any pages: a head without its pages would be damage. */
static bool drop_heads(spill_translation_t *translation, const dropping_t *all, size_t count)
{
    size_t i = 0;
    while (i < count && drop_collection(translation, all[i].at->collection))
        i++;
    bool certain = i == count || !spill_translation_may_have_changed(translation);
    size_t living = certain ? i : i + 1;
    withdraw_all(translation, all + living, count - living);
    return i == count;
}

/* A user who may drop the database, but not read it or delete documents, gets no notes. */
bool spill_translate_drop_database(spill_translation_t *translation, bson_t *reply)
{
    const spill_served_collection_t *const *served = spill_served_all(translation->served);
    size_t most = 0, count = 0;
    for (size_t i = 0; served[i] != NULL; i++)
        for (size_t k = 0; served[i]->definitions[k] != NULL; k++)
            most++;
    dropping_t *all = bson_malloc0((most + 1) * sizeof *all);
    for (size_t i = 0; served[i] != NULL; i++)
        if (strcmp(served[i]->database, translation->command->database) == 0)
            count = add_dropping(served[i], all, count);
    bool done = begin_all(translation, all, count, true) && drop_heads(translation, all, count) &&
                drop_all_listed(translation) && finish_all(translation, all, count, true);
    bson_free(all);
    if (!done)
        return false;
    bson_init(reply);
    BSON_APPEND_UTF8(reply, "dropped", translation->command->database);
    BSON_APPEND_DOUBLE(reply, "ok", 1);
    return true;
}
