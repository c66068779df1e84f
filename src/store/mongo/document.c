/* The documents of a request: filters, paths of fields, and what layout bucket adds to them. */
#include "store/mongo/mongo_document.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "store/server_code.h"
#include "util/error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void spill_mongo_document_init(spill_mongo_document_t *document, const spill_mongo_t *store,
                               const spill_request_t *request)
{
    const spill_definition_t *definition = request->definition;
    bool head = request->page == SPILL_HEAD;
    *document = (spill_mongo_document_t){
        .request = request,
        .head = head,
        .referenced = spill_schema_of(definition)->has_referenced_elements,
        .sharded = store->sharded,
        .collection = head ? definition->collection : definition->page_collection,
        .array = head ? definition->array : definition->page_array,
        .count = head ? definition->count_field : definition->page_count,
    };
    /* A head may have several arrays; a page or a bucket has one. */
    if (head && !spill_schema_of(definition)->has_windows)
        spill_bookkeeping_path(definition->array, "", document->spill);
    else
        strcpy(document->spill, SPILL_STORED_ROOT);
    if (!head || !document->referenced)
        return;
    document->array = spill_mongo_path(document, SPILL_STORED_JOURNAL, document->journal);
}

bool spill_mongo_is_bucket(const spill_mongo_document_t *document)
{
    return spill_schema_of(document->request->definition)->has_windows;
}

void spill_mongo_append_id(const spill_definition_t *definition, const spill_value_t *owner,
                           int64_t page, const char *key, bson_t *to)
{
    bson_t id;
    if (spill_schema_of(definition)->has_windows) {
        spill_render_part_id(to, key, owner, page);
        return;
    }
    if (page == SPILL_HEAD) {
        spill_value_append(owner, to, key);
        return;
    }
    bson_append_document_begin(to, key, -1, &id);
    spill_value_append(owner, &id, SPILL_STORED_ID_OWNER);
    BSON_APPEND_INT64(&id, SPILL_STORED_ID_PAGE, page);
    bson_append_document_end(to, &id);
}

/* No number of a valid document is larger, and the sum of three does not overflow. */
#define NUMBER_MAX (INT64_MAX / 4)

/* A guard compares the stored value: a double with a fraction would never match what was read. */
int64_t spill_mongo_whole_number(const bson_iter_t *iter)
{
    bool fits = BSON_ITER_HOLDS_NUMBER(iter);
    if (BSON_ITER_HOLDS_DOUBLE(iter)) { /* the driver's conversion of a large double is undefined */
        double number = bson_iter_double(iter);
        fits = number >= 0 && number <= (double)NUMBER_MAX && number == floor(number);
    }
    int64_t number = fits ? bson_iter_as_int64(iter) : -1;
    return number <= NUMBER_MAX ? number : -1;
}

static bool next_is(bson_iter_t *field, const char *name)
{
    return bson_iter_next(field) && strcmp(bson_iter_key(field), name) == 0;
}

bool spill_mongo_split_id(const spill_definition_t *definition, const bson_iter_t *id,
                          spill_value_t *owner, const char **window, int64_t *page)
{
    bson_iter_t field;
    bool bucket = spill_schema_of(definition)->has_windows;
    if (!BSON_ITER_HOLDS_DOCUMENT(id) || !bson_iter_recurse(id, &field) ||
        !next_is(&field, SPILL_STORED_ID_OWNER))
        return false;
    *owner = spill_value_from_iter(&field);
    if (bucket && (!next_is(&field, SPILL_STORED_ID_WINDOW) || !BSON_ITER_HOLDS_UTF8(&field)))
        return false;
    *window = bucket ? bson_iter_utf8(&field, NULL) : "";
    if (!next_is(&field, bucket ? SPILL_STORED_ID_PART : SPILL_STORED_ID_PAGE))
        return false;
    int64_t number = spill_mongo_whole_number(&field);
    *page = bucket ? number - 1 : number;
    return number >= 0 && !bson_iter_next(&field);
}

bool spill_mongo_read_id(const spill_request_t *request, const bson_iter_t *id, int64_t *page)
{
    spill_value_t owner, own = *request->owner;
    const char *window, *own_window = "";
    if (spill_schema_of(request->definition)->has_windows)
        spill_window_split(request->owner, &own, &own_window);
    return spill_mongo_split_id(request->definition, id, &owner, &window, page) &&
           spill_value_compare(&owner, &own) == 0 && strcmp(window, own_window) == 0;
}

spill_code_t spill_mongo_fail_id(const char *collection, const bson_iter_t *id,
                                 spill_error_t *error)
{
    spill_value_t value = spill_value_from_iter(id);
    char *json = spill_value_to_json(&value, false);
    spill_fail(error, SPILL_CORRUPT,
               "%s: the document with the _id %.200s has the fields of a page of this owner, but "
               "not the _id of one: inspect and delete this document",
               collection, json ? json : "?");
    bson_free(json);
    return SPILL_CORRUPT;
}

void spill_mongo_append_page_owner(const spill_request_t *request, bson_t *filter)
{
    spill_value_t of = *request->owner;
    const char *window = NULL;
    bson_t owner;
    if (spill_schema_of(request->definition)->has_windows)
        spill_window_split(request->owner, &of, &window);
    bson_append_document_begin(filter, request->definition->page_owner, -1, &owner);
    spill_value_append(&of, &owner, "$eq");
    bson_append_document_end(filter, &owner);
    if (window)
        BCON_APPEND(filter, request->definition->window_field, "{", "$eq", BCON_UTF8(window), "}");
}

void spill_mongo_append_page_bound(const spill_definition_t *definition, const spill_value_t *owner,
                                   const char *operator, bool above, bson_t *condition)
{
    bool bucket = spill_schema_of(definition)->has_windows;
    bson_t id, window;
    bson_append_document_begin(condition, operator, - 1, &id);
    if (!bucket)
        spill_value_append(owner, &id, SPILL_STORED_ID_OWNER);
    else if (bson_init_static(&window, owner->data, owner->size_bytes))
        bson_concat(&id, &window);
    const char *number = bucket ? SPILL_STORED_ID_PART : SPILL_STORED_ID_PAGE;
    if (above)
        BSON_APPEND_MAXKEY(&id, number);
    else
        BSON_APPEND_MINKEY(&id, number);
    bson_append_document_end(condition, &id);
}

void spill_mongo_append_page_ids(const spill_definition_t *definition, const spill_value_t *owner,
                                 bson_t *condition)
{
    spill_mongo_append_page_bound(definition, owner, "$gt", false, condition);
    spill_mongo_append_page_bound(definition, owner, "$lt", true, condition);
}

void spill_mongo_append_pages(const spill_definition_t *definition, int64_t pages, bson_t *filter)
{
    if (spill_schema_of(definition)->has_windows) /* page n is part n + 1 */
        BCON_APPEND(filter, SPILL_STORED_PAGE_PART, "{", "$gt", BCON_INT64(0), "$lte",
                    BCON_INT64(pages), "}");
    else
        BCON_APPEND(filter, SPILL_STORED_PAGE_NUMBER, "{", "$lt", BCON_INT64(pages), "}");
}

/* The document of a removed element has no owner field. */
static void append_id_owner(const spill_request_t *request, bson_t *filter)
{
    bson_t owner;
    BSON_APPEND_DOCUMENT_BEGIN(filter, SPILL_STORED_PAGE_OWNER, &owner);
    spill_value_append(request->owner, &owner, "$eq");
    bson_append_document_end(filter, &owner);
}

void spill_mongo_append_shard(const spill_mongo_document_t *document, bson_t *filter)
{
    if (document->sharded && !document->head && document->referenced)
        append_id_owner(document->request, filter);
    else if (document->sharded && (!document->head || spill_mongo_is_bucket(document)))
        spill_mongo_append_page_owner(document->request, filter);
}

void spill_mongo_select(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    bson_init(filter);
    bson_t id;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &id);
    spill_mongo_append_id(request->definition, request->owner, request->page, "$eq", &id);
    bson_append_document_end(filter, &id);
    spill_mongo_append_shard(document, filter);
}

void spill_mongo_select_pages(const spill_mongo_document_t *document, const int64_t *pages,
                              size_t count, bson_t *filter)
{
    bson_init(filter);
    bson_t id, ids;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &id);
    BSON_APPEND_ARRAY_BEGIN(&id, "$in", &ids);
    for (size_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_mongo_append_id(document->request->definition, document->request->owner, pages[i],
                              key, &ids);
    }
    bson_append_array_end(&id, &ids);
    bson_append_document_end(filter, &id);
    spill_mongo_append_shard(document, filter);
}

/* Commands have many paths: snprintf would take a tenth of the client's time of a read. */
static void append_text(char path[SPILL_MONGO_PATH_SIZE], size_t *at, const char *text)
{
    size_t length = strlen(text), room = SPILL_MONGO_PATH_SIZE - 1 - *at;
    length = length < room ? length : room;
    memcpy(path + *at, text, length);
    *at += length;
    path[*at] = '\0';
}

const char *spill_mongo_path(const spill_mongo_document_t *document, const char *name,
                             char path[SPILL_MONGO_PATH_SIZE])
{
    size_t at = 0;
    append_text(path, &at, document->spill);
    append_text(path, &at, ".");
    append_text(path, &at, name);
    return path;
}

const char *spill_mongo_ref(const spill_mongo_document_t *document, const char *name,
                            char path[SPILL_MONGO_PATH_SIZE])
{
    size_t at = 0;
    append_text(path, &at, "$");
    append_text(path, &at, document->spill);
    append_text(path, &at, ".");
    append_text(path, &at, name);
    return path;
}

const char *spill_mongo_deleted_name(const spill_state_t *state)
{
    return state->gaps ? SPILL_STORED_DELETED_RUNS : SPILL_STORED_DELETED;
}

void spill_mongo_set_deleted(const spill_mongo_document_t *document, const spill_state_t *state,
                             bson_t *set)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_render_deleted(set, spill_mongo_path(document, spill_mongo_deleted_name(state), path),
                         &state->deleted, state->gaps);
}

void spill_mongo_set_document(const char *path, const bson_t *holder, bool literal, bson_t *set)
{
    bson_iter_t iter;
    if (!bson_iter_init(&iter, holder) || !bson_iter_next(&iter))
        return;
    if (!literal) {
        bson_append_iter(set, path, -1, &iter);
        return;
    }
    bson_t expression;
    BSON_APPEND_DOCUMENT_BEGIN(set, path, &expression);
    bson_append_iter(&expression, "$literal", -1, &iter);
    bson_append_document_end(set, &expression);
}

/* ---- the array's own fields ------------------------------------------------------------------ */

void spill_mongo_append_reference(bson_t *document, const char *field)
{
    char ref[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", field);
    BSON_APPEND_UTF8(document, field, ref);
}

/*
 * Append {KEY: "$field"}. The key is as long as the last name of the field's path, so that the size
 * is that of the fields where they are, without the documents around them.
 */
static void append_measured_field(const char *field, bson_t *fields)
{
    char ref[SPILL_MONGO_PATH_SIZE + 1], key[SPILL_NAME_SIZE];
    bson_strncpy(key, spill_path_leaf(field), sizeof key);
    for (char letter = '0'; bson_has_field(fields, key); letter++)
        memset(key, letter, strlen(key));
    snprintf(ref, sizeof ref, "$%s", field);
    BSON_APPEND_UTF8(fields, key, ref);
}

/* The size of a document {array: "$array", ...} is not part of the application's fields. */
static void append_measured(const spill_definition_t *definition, bool array, const char *key,
                            bson_t *to)
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = spill_own_fields(definition, own);
    bson_t size, fields;
    bson_append_document_begin(to, key, -1, &size);
    BSON_APPEND_DOCUMENT_BEGIN(&size, "$bsonSize", &fields);
    for (size_t i = 0; i < count; i++)
        if (array || strcmp(own[i], definition->array) != 0)
            append_measured_field(own[i], &fields);
    append_measured_field(SPILL_STORED_ROOT, &fields);
    bson_append_document_end(&size, &fields);
    bson_append_document_end(to, &size);
}

/* The entries of sessions count as other fields, because they are as many as there are clients. */
void spill_mongo_append_own_size(const spill_definition_t *definition, bool array, const char *key,
                                 bson_t *to)
{
    char path[SPILL_MONGO_PATH_SIZE], sessions[SPILL_MONGO_PATH_SIZE + 1];
    bson_t difference, sides;
    if (!spill_mongo_has_sessions(definition)) {
        append_measured(definition, array, key, to);
        return;
    }
    snprintf(sessions, sizeof sessions, "$%s",
             spill_bookkeeping_path(definition->array, SPILL_STORED_SESSIONS, path));
    bson_append_document_begin(to, key, -1, &difference);
    BSON_APPEND_ARRAY_BEGIN(&difference, "$subtract", &sides);
    append_measured(definition, array, "0", &sides);
    BCON_APPEND(&sides, "1", "{", "$ifNull", "[", "{", "$bsonSize", BCON_UTF8(sessions), "}",
                BCON_INT32(0), "]", "}");
    bson_append_array_end(&difference, &sides);
    bson_append_document_end(to, &difference);
}

/* ---- documents around the array's own fields ------------------------------------------------- */

size_t spill_mongo_own_parents(const spill_definition_t *definition,
                               char parents[SPILL_MONGO_PARENTS_MAX][SPILL_NAME_SIZE])
{
    const char *own[SPILL_OWN_FIELDS_MAX];
    size_t count = 0, fields = spill_own_fields(definition, own);
    for (size_t i = 0; i < fields; i++) {
        for (size_t length = spill_path_next_parent(own[i], 0); length > 0;
             length = spill_path_next_parent(own[i], length)) {
            size_t known = 0;
            memcpy(parents[count], own[i], length);
            parents[count][length] = '\0';
            while (strcmp(parents[known], parents[count]) != 0)
                known++;
            count += known == count;
        }
    }
    return count;
}

void spill_mongo_append_viable(const spill_definition_t *definition, bson_t *filter)
{
    char parents[SPILL_MONGO_PARENTS_MAX][SPILL_NAME_SIZE];
    size_t count = spill_mongo_own_parents(definition, parents);
    bson_t all;
    if (count == 0)
        return;
    BSON_APPEND_ARRAY_BEGIN(filter, "$nor", &all); /* other guards use $and and $expr */
    for (size_t i = 0; i < count; i++) {
        char buffer[16], ref[SPILL_NAME_SIZE + 1];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        snprintf(ref, sizeof ref, "$%s", parents[i]);
        BCON_APPEND(&all, key, "{", "$expr", "{", "$not", "[", "{", "$in", "[", "{", "$type",
                    BCON_UTF8(ref), "}", "[", "missing", "object", "]", "]", "}", "]", "}", "}");
    }
    bson_append_array_end(filter, &all);
}

spill_code_t spill_mongo_blocked(const spill_mongo_document_t *document, spill_code_t code,
                                 spill_error_t *error)
{
    if (code != SPILL_INVALID || error == NULL || error->native != SPILL_SERVER_PATH_NOT_VIABLE ||
        strchr(document->array, '.') == NULL)
        return code;
    const spill_obstruction_t found = {.collection = document->collection, .path = document->array};
    return spill_path_refuse(&found, error);
}

void spill_mongo_append_length(const char *ref, const char *key, bson_t *to)
{
    BCON_APPEND(to, key, "{", "$size", "{", "$ifNull", "[", BCON_UTF8(ref), "[", "]", "]", "}",
                "}");
}

/* ---- layout bucket --------------------------------------------------------------------------- */

void spill_mongo_set_statistics(const spill_mongo_document_t *document, const spill_state_t *after,
                                bool literal, bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t stats = BSON_INITIALIZER, window_stats = BSON_INITIALIZER;
    spill_window_stats_render(&after->window_stats, after->live, definition, &stats);
    spill_window_stats_append(&after->window_stats, SPILL_STORED_WINDOW_STATS, &window_stats);
    spill_mongo_set_document(definition->stats_field, &stats, literal, set);
    spill_mongo_set_document(spill_mongo_path(document, SPILL_STORED_WINDOW_STATS, path),
                             &window_stats, literal, set);
    bson_destroy(&stats);
    bson_destroy(&window_stats);
}

void spill_mongo_bucket_fields(const spill_mongo_document_t *document, bson_t **fields)
{
    bson_t *without = bson_new();
    spill_value_append(document->request->owner, without, "_id");
    bson_copy_to_excluding_noinit(*fields, without, "_id", NULL);
    bson_destroy(*fields);
    *fields = without;
}

int64_t spill_mongo_usual_reach(const spill_request_t *request)
{
    int64_t length = request->read.page_length;
    return length > 0 ? length + (length + 1) / 2 : request->definition->largest.page_capacity;
}

int64_t spill_mongo_last_begin(const spill_request_t *request)
{
    int64_t seq = request->read.seq, ahead = request->read.limit;
    if (request->read.page_length > 0 && ahead > request->read.page_length)
        ahead = request->read.page_length;
    if (!request->read.want_beyond || request->read.want != SPILL_WANT_FORWARD)
        return seq;
    return seq < INT64_MAX - ahead ? seq + ahead : seq;
}
