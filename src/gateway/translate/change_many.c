/*
 * multi: true on F. The owners are found first. Then each is changed at most once: the unmanaged
 * ones by the client's statement, many at a time, the managed ones by the library.
 */
#include "gateway/translate/change.h"

#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { OWNERS_MAX = 1000000, OWNERS_AT_A_TIME = 1000 };

typedef struct owners {
    bson_t unmanaged; /* array of _ids */
    bson_t managed;   /* array of _ids */
    uint32_t unmanaged_count, managed_count;
    bool any_pages;
} owners_t;

static void release_owners(owners_t *owners)
{
    bson_destroy(&owners->unmanaged);
    bson_destroy(&owners->managed);
}

/* ---- find the owners ------------------------------------------------------------------------- */

static void add_owner(const spill_translation_t *translation, const bson_t *document,
                      owners_t *owners)
{
    char text[16];
    const char *key;
    bson_iter_t id;
    spill_book_t book;
    if (!bson_iter_init_find(&id, document, "_id"))
        return;
    bool managed = spill_book_read(document, translation->array, &book);
    uint32_t *count = managed ? &owners->managed_count : &owners->unmanaged_count;
    bson_uint32_to_string((*count)++, &key, text, sizeof text);
    bson_append_iter(managed ? &owners->managed : &owners->unmanaged, key, -1, &id);
    owners->any_pages = owners->any_pages || (managed && book.pages > 0);
}

/* Add a batch; *cursor is upstream's. */
static bool add_batch(spill_translation_t *translation, const bson_t *reply, const char *path,
                      owners_t *owners, int64_t *cursor)
{
    bson_iter_t iter, batch, each;
    bson_t document;
    *cursor = bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, "cursor.id", &each)
                  ? bson_iter_as_int64(&each)
                  : 0;
    if (bson_iter_init(&iter, reply) && bson_iter_find_descendant(&iter, path, &batch) &&
        bson_iter_recurse(&batch, &each))
        while (bson_iter_next(&each))
            if (spill_iter_document(&each, &document))
                add_owner(translation, &document, owners);
    if (owners->unmanaged_count + owners->managed_count <= OWNERS_MAX)
        return true;
    return spill_translation_refuse(translation, translation->array, "multi: true",
                                    "more than a million documents match: update fewer at a time");
}

static bool find_owners(spill_change_t *change, owners_t *owners)
{
    spill_translation_t *translation = change->translation;
    bson_t reply;
    int64_t cursor;
    SPILL_SCOPED(bson_destroy) bson_t find = BSON_INITIALIZER;
    BCON_APPEND(&find, "find", BCON_UTF8(translation->at->collection), "filter",
                BCON_DOCUMENT(&change->statement->q), "projection", "{", "_id", BCON_INT32(1),
                SPILL_STORED_ROOT, BCON_INT32(1), "}");
    spill_translation_append_context(translation, &change->statement->whole, &find);
    spill_translation_finish_step(translation, &find);
    if (!spill_translation_call(translation, &find, &reply))
        return false;
    bool done = add_batch(translation, &reply, "cursor.firstBatch", owners, &cursor);
    bson_destroy(&reply);
    while (done && cursor != 0) {
        bson_t *more = BCON_NEW("getMore", BCON_INT64(cursor), "collection",
                                BCON_UTF8(translation->at->collection));
        spill_translation_finish_step(translation, more);
        done = spill_translation_call(translation, more, &reply);
        bson_destroy(more);
        if (!done)
            break;
        done = add_batch(translation, &reply, "cursor.nextBatch", owners, &cursor);
        bson_destroy(&reply);
    }
    return done;
}

/* ---- change them ----------------------------------------------------------------------------- */

/*
 * Fewer unmanaged owners were changed than were found. Those that no longer match q are rightly
 * left out. But if another client has adopted one meanwhile, it is not known whether it was
 * changed.
 */
static bool check_adopted(spill_change_t *change, const bson_t *ids)
{
    char path[SPILL_BOOK_PATH_SIZE];
    spill_look_t look;
    spill_translation_t *translation = change->translation;
    bson_t filter = BSON_INITIALIZER;
    spill_translation_book_path(translation, "", path);
    BCON_APPEND(&filter, "_id", "{", "$in", BCON_ARRAY(ids), "}", path, "{", "$exists",
                BCON_BOOL(true), "}");
    bool known = spill_look(translation, &change->statement->whole, &filter, NULL, &look);
    bool adopted = known && look.found;
    if (known)
        spill_look_release(&look);
    bson_destroy(&filter);
    if (!adopted)
        return known;
    return spill_translation_fail(translation, SPILL_SERVER_WRITE_CONFLICT,
                                  "spillway: another client adopted an array during an update of "
                                  "many: %" PRId64 " documents were updated; check the others",
                                  change->n);
}

static bool change_batch(spill_change_t *change, const bson_t *ids, uint32_t count)
{
    bson_t guards = BSON_INITIALIZER;
    int64_t before = change->n;
    BCON_APPEND(&guards, "_id", "{", "$in", BCON_ARRAY(ids), "}");
    spill_guard_unmanaged(change->translation, &guards);
    bool done = change->attempt(change, &guards, false, true);
    bson_destroy(&guards);
    return done && (change->n - before == (int64_t)count || check_adopted(change, ids));
}

static bool change_unmanaged(spill_change_t *change, const owners_t *owners)
{
    bson_iter_t id;
    bson_t batch;
    uint32_t count = 0, left = owners->unmanaged_count;
    bool done = true;
    if (!bson_iter_init(&id, &owners->unmanaged))
        return true;
    bson_init(&batch);
    while (done && bson_iter_next(&id)) {
        char text[16];
        const char *key;
        bson_uint32_to_string(count++, &key, text, sizeof text);
        bson_append_iter(&batch, key, -1, &id);
        left--;
        if (count < OWNERS_AT_A_TIME && left > 0)
            continue;
        done = change_batch(change, &batch, count);
        bson_reinit(&batch);
        count = 0;
    }
    bson_destroy(&batch);
    return done;
}

/* Other fields, with a filter on F: the client's statement, if there are no pages. */
static bool change_others(spill_change_t *change, const owners_t *owners)
{
    bson_t guards = BSON_INITIALIZER;
    BCON_APPEND(&guards, "_id", "{", "$in", BCON_ARRAY(&owners->managed), "}");
    spill_guard_no_pages(change->translation, &guards);
    bool done = change->attempt(change, &guards, false, true);
    bson_destroy(&guards);
    return done;
}

/* The owner has become unmanaged. */
static bool change_ended(spill_change_t *change, const bson_iter_t *id)
{
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    bson_append_iter(&ids, "0", -1, id);
    return change_batch(change, &ids, 1);
}

static bool change_managed(spill_change_t *change, const owners_t *owners)
{
    bson_iter_t id;
    bool done = true, matched;
    if (owners->managed_count > 0 && change->statement->kind == SPILL_STATEMENT_OTHER)
        return change_others(change, owners);
    if (!bson_iter_init(&id, &owners->managed))
        return true;
    while (done && bson_iter_next(&id)) {
        bson_t owner = BSON_INITIALIZER;
        bson_append_iter(&owner, "_id", -1, &id);
        change->ended = false;
        done = spill_change_is_appended(change) ? spill_change_append(change, &owner, &matched)
                                                : spill_change_adopted(change, &owner, &matched);
        if (done && change->ended)
            done = change_ended(change, &id);
        bson_destroy(&owner);
    }
    return done;
}

/* The "simple" collation compares bytes, as without one. */
static bool is_simple(const bson_iter_t *collation)
{
    bson_iter_t locale;
    return BSON_ITER_HOLDS_DOCUMENT(collation) && bson_iter_recurse(collation, &locale) &&
           bson_iter_find(&locale, "locale") && BSON_ITER_HOLDS_UTF8(&locale) &&
           strcmp(bson_iter_utf8(&locale, NULL), "simple") == 0;
}

/*
 * Under a collation several _ids may be equal. One update of all documents changes each once. Each
 * of several updates would also change documents of the others: elements would be pushed twice.
 */
static bool check_collation(const spill_change_t *change, const owners_t *owners)
{
    bson_iter_t collation;
    spill_translation_t *translation = change->translation;
    bool one = owners->managed_count == 0 && owners->unmanaged_count <= OWNERS_AT_A_TIME;
    if (one ||
        !spill_translation_find_collation(translation, &change->statement->whole, &collation) ||
        is_simple(&collation))
        return true;
    return spill_translation_refuse(translation, translation->array, "multi: true with a collation",
                                    "more than 1000 documents match, or one with a managed array: "
                                    "update them by _id, without a collation");
}

/* *raced: another client has inserted the document of an upsert meanwhile. */
static bool insert(spill_change_t *change, bool *raced)
{
    bson_t guards = BSON_INITIALIZER;
    spill_guard_unmanaged(change->translation, &guards);
    bool done = change->attempt(change, &guards, true, true);
    *raced = !done && spill_translation_is_duplicate(change->translation);
    bson_destroy(&guards);
    return done;
}

/* Find the owners, and change each. *raced as above. */
static bool find_and_change(spill_change_t *change, bool *raced)
{
    SPILL_SCOPED(release_owners) owners_t owners = {0};
    spill_translation_t *translation = change->translation;
    const spill_statement_t *statement = change->statement;
    bool any = false;
    bson_init(&owners.unmanaged);
    bson_init(&owners.managed);
    if (statement->q_mentions != 0 &&
        !spill_translation_find_pages(translation, &statement->whole, &statement->q, &any))
        return false;
    if (any)
        return spill_change_refuse(translation, statement);
    if (!find_owners(change, &owners) || !check_collation(change, &owners))
        return false;
    bool appends = spill_change_is_appended(change);
    if (owners.any_pages && !appends)
        return spill_change_refuse(translation, statement);
    if (owners.managed_count > 0 && appends && !spill_change_may_append(change))
        return false;
    if (owners.unmanaged_count + owners.managed_count > 0 || !statement->upsert)
        return change_unmanaged(change, &owners) && change_managed(change, &owners);
    return insert(change, raced);
}

bool spill_change_many(spill_change_t *change)
{
    bool raced = false;
    bool done = find_and_change(change, &raced);
    if (!raced)
        return done;
    spill_translation_recover(change->translation);
    return find_and_change(change, &raced);
}
