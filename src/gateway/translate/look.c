/* Look at the head that a statement concerns, and conditions on heads. */
#include "gateway/translate/change.h"

#include "definition/stored_names.h"
#include "gateway/translate/mention.h"
#include "store/renumber.h"
#include "util/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- conditions ------------------------------------------------------------------------------ */

void spill_guard_unmanaged(const spill_translation_t *translation, bson_t *guards)
{
    char path[SPILL_BOOK_PATH_SIZE];
    BCON_APPEND(guards, spill_translation_book_path(translation, "", path), "{", "$exists",
                BCON_BOOL(false), "}");
}

void spill_guard_no_pages(const spill_translation_t *translation, bson_t *guards)
{
    char path[SPILL_BOOK_PATH_SIZE];
    BCON_APPEND(guards, spill_translation_book_path(translation, SPILL_STORED_PAGES, path), "{",
                "$not", "{", "$gt", BCON_INT64(0), "}", "}");
}

int64_t spill_change_longest(const spill_change_t *change)
{
    const spill_statement_t *statement = change->statement;
    const spill_bounds_t *bounds = &change->translation->at->definition->bounds;
    int64_t count = statement->count > 0 ? statement->count : 1;
    int64_t bytes = spill_statement_bytes(statement);
    if (bytes * bounds->threshold <= bounds->head_bytes_max * count)
        return bounds->threshold;
    return bounds->head_bytes_max * count / bytes;
}

void spill_guard_short(const spill_translation_t *translation, int64_t longest, bson_t *guards)
{
    char path[SPILL_NAME_SIZE + 32];
    spill_guard_unmanaged(translation, guards);
    snprintf(path, sizeof path, "%s.%" PRId64, translation->array, longest > 0 ? longest : 0);
    BCON_APPEND(guards, path, "{", "$exists", BCON_BOOL(false), "}");
}

/* ---- looks ----------------------------------------------------------------------------------- */

void spill_look_release(spill_look_t *look)
{
    bson_destroy(&look->id);
}

static void append_projection(const spill_translation_t *translation, bson_t *find)
{
    char field[SPILL_NAME_SIZE + 1];
    bson_t projection, length, choice;
    snprintf(field, sizeof field, "$%s", translation->array);
    BSON_APPEND_DOCUMENT_BEGIN(find, "projection", &projection);
    BCON_APPEND(&projection, "_id", BCON_INT32(1), SPILL_STORED_ROOT, BCON_INT32(1), "bytes", "{",
                "$bsonSize", "$$ROOT", "}");
    BSON_APPEND_DOCUMENT_BEGIN(&projection, "length", &length);
    BSON_APPEND_ARRAY_BEGIN(&length, "$cond", &choice);
    spill_append_is_array(translation->array, false, "0", &choice);
    BCON_APPEND(&choice, "1", "{", "$size", BCON_UTF8(field), "}", "2", BCON_INT32(-1));
    bson_append_array_end(&length, &choice);
    bson_append_document_end(&projection, &length);
    bson_append_document_end(find, &projection);
}

static void read_look(const spill_translation_t *translation, const bson_t *document,
                      spill_look_t *look)
{
    bson_iter_t iter;
    look->found = bson_iter_init_find(&iter, document, "_id");
    if (!look->found)
        return;
    bson_append_iter(&look->id, "_id", -1, &iter);
    look->managed = spill_book_read(document, translation->array, &look->book);
    look->book.has_gone = false;
    look->pages = look->book.pages;
    look->bytes = bson_iter_init_find(&iter, document, "bytes") ? bson_iter_as_int64(&iter) : 0;
    look->length = bson_iter_init_find(&iter, document, "length") ? bson_iter_as_int64(&iter) : -1;
}

bool spill_look(spill_translation_t *translation, const bson_t *statement, const bson_t *filter,
                const bson_t *sort, spill_look_t *look)
{
    bson_t reply, document;
    bson_iter_t iter, found;
    SPILL_SCOPED(bson_destroy) bson_t find = BSON_INITIALIZER;
    *look = (spill_look_t){.length = -1};
    bson_init(&look->id);
    BCON_APPEND(&find, "find", BCON_UTF8(translation->at->collection), "filter",
                BCON_DOCUMENT(filter), "limit", BCON_INT64(1), "singleBatch", BCON_BOOL(true));
    if (sort != NULL)
        BSON_APPEND_DOCUMENT(&find, "sort", sort);
    append_projection(translation, &find);
    spill_translation_append_context(translation, statement, &find);
    spill_translation_finish_step(translation, &find);
    if (!spill_translation_call(translation, &find, &reply))
        return false;
    if (bson_iter_init(&iter, &reply) &&
        bson_iter_find_descendant(&iter, "cursor.firstBatch.0", &found) &&
        spill_iter_document(&found, &document))
        read_look(translation, &document, look);
    bool sound = !look->managed || spill_book_check(translation, &document, &look->book);
    bson_destroy(&reply);
    return sound;
}
