#include "store/renumber.h"

#include "bson/field_path.h"
#include "bson/value.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/session_document.h"

#include <stdio.h>
#include <string.h>

enum { RENUMBER_PATH_SIZE = SPILL_NAME_SIZE + SPILL_SESSION_HEX_SIZE + 32 };

/* ---- reading --------------------------------------------------------------------------------- */

static bool find_document(const bson_t *document, const char *name, bson_t *found)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!bson_iter_init_find(&iter, document, name))
        return false;
    if (BSON_ITER_HOLDS_DOCUMENT(&iter))
        bson_iter_document(&iter, &size, &data);
    else if (BSON_ITER_HOLDS_ARRAY(&iter))
        bson_iter_array(&iter, &size, &data);
    else
        return false;
    return bson_init_static(found, data, size);
}

static bool find_number(const bson_t *document, const char *name, int64_t *number)
{
    bson_iter_t iter;
    *number = 0;
    if (!bson_iter_init_find(&iter, document, name) || !BSON_ITER_HOLDS_NUMBER(&iter))
        return false;
    *number = spill_iter_int64(&iter);
    return true;
}

static bool read_entry(spill_renumbering_t *renumbering)
{
    char hex[SPILL_SESSION_HEX_SIZE];
    bson_t sessions;
    bson_iter_t iter;
    renumbering->has_entry = false;
    renumbering->entries = 0;
    if (!find_document(&renumbering->own, SPILL_STORED_SESSIONS, &sessions))
        return true;
    renumbering->entries = (int64_t)bson_count_keys(&sessions);
    if (!renumbering->session ||
        !bson_iter_init_find(&iter, &sessions, spill_session_hex(renumbering->session, hex)))
        return true;
    renumbering->has_entry = true;
    spill_session_key(renumbering->session, renumbering->entry.key);
    return spill_session_read(&iter, &renumbering->entry);
}

bool spill_renumber_read(const bson_t *document, spill_renumbering_t *renumbering)
{
    int64_t first;
    char name[SPILL_NAME_SIZE];
    bson_t elements, deleted;
    bson_iter_t iter;
    spill_bookkeeping_name(renumbering->array, name);
    if (!find_document(document, SPILL_STORED_ROOT, &renumbering->spill) ||
        !find_document(&renumbering->spill, name, &renumbering->own) ||
        !find_number(&renumbering->own, SPILL_STORED_INCARNATION, &renumbering->incarnation) ||
        !find_number(&renumbering->own, SPILL_STORED_REV, &renumbering->rev) ||
        !find_number(&renumbering->own, SPILL_STORED_FIRST, &first))
        return false;
    find_number(&renumbering->own, SPILL_STORED_PAGES, &renumbering->pages);
    find_number(&renumbering->own, SPILL_STORED_OP_COUNT, &renumbering->op_count);
    bool is_array = spill_path_find(document, renumbering->array, &iter) &&
                    BSON_ITER_HOLDS_ARRAY(&iter) && spill_inner_document(&iter, &elements);
    renumbering->length = is_array ? (int64_t)bson_count_keys(&elements) : -1;
    renumbering->next = first + (is_array ? renumbering->length : 0);
    if (find_document(&renumbering->own, SPILL_STORED_DELETED, &deleted))
        renumbering->next += (int64_t)bson_count_keys(&deleted);
    return read_entry(renumbering);
}

/* ---- the update ------------------------------------------------------------------------------ */

void spill_renumber_guard(const spill_renumbering_t *renumbering, bson_t *filter)
{
    bson_t length;
    BSON_APPEND_DOCUMENT(filter, SPILL_STORED_ROOT, &renumbering->spill);
    bson_append_document_begin(filter, renumbering->array, -1, &length);
    if (renumbering->length >= 0)
        BSON_APPEND_INT64(&length, "$size", renumbering->length);
    else
        BCON_APPEND(&length, "$not", "{", "$type", "array", "}");
    bson_append_document_end(filter, &length);
}

/* Append the numbers and the empty window, each under its name behind `prefix`. */
static void append_changes(const spill_renumbering_t *renumbering, const char *prefix, bson_t *to)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{SPILL_STORED_REV, renumbering->rev + 1},
                   {SPILL_STORED_FIRST, renumbering->next},
                   {SPILL_STORED_WATERMARK, renumbering->next},
                   {SPILL_STORED_REMOVED, 0},
                   {SPILL_STORED_OP_COUNT, renumbering->op_count + renumbering->op_window}};
    char path[RENUMBER_PATH_SIZE];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        snprintf(path, sizeof path, "%s%s", prefix, numbers[i].name);
        BSON_APPEND_INT64(to, path, numbers[i].value);
    }
    snprintf(path, sizeof path, "%s" SPILL_STORED_OPS, prefix);
    BCON_APPEND(to, path, "[", "{", SPILL_STORED_OP_ELEMENTS, BCON_INT64(0), SPILL_STORED_OP_AFTER,
                BCON_INT64(0), "}", "]");
}

static spill_session_entry_t entry_after(const spill_renumbering_t *renumbering)
{
    spill_session_entry_t after;
    spill_session_apply(renumbering->session, renumbering->session_count,
                        renumbering->has_entry ? &renumbering->entry : NULL, 0, &after);
    return after;
}

void spill_renumber_set(const spill_renumbering_t *renumbering, bson_t *set, bson_t *unset,
                        bson_t *date)
{
    char own[SPILL_BOOKKEEPING_PATH_SIZE], prefix[RENUMBER_PATH_SIZE], path[2 * RENUMBER_PATH_SIZE],
        hex[SPILL_SESSION_HEX_SIZE];
    snprintf(prefix, sizeof prefix, "%s.", spill_bookkeeping_path(renumbering->array, "", own));
    append_changes(renumbering, prefix, set);
    snprintf(path, sizeof path, "%s" SPILL_STORED_DELETED, prefix);
    BSON_APPEND_BOOL(unset, path, true);
    if (!renumbering->session)
        return;
    spill_session_entry_t after = entry_after(renumbering);
    spill_session_hex(renumbering->session, hex);
    snprintf(path, sizeof path, "%s" SPILL_STORED_SESSIONS ".%s." SPILL_STORED_SESSION_TXN, prefix,
             hex);
    BSON_APPEND_INT64(set, path, after.txn);
    snprintf(path, sizeof path, "%s" SPILL_STORED_SESSIONS ".%s." SPILL_STORED_SESSION_DONE, prefix,
             hex);
    spill_session_append_done(&after, path, set);
    snprintf(path, sizeof path, "%s" SPILL_STORED_SESSIONS ".%s." SPILL_STORED_SESSION_AT, prefix,
             hex);
    BSON_APPEND_BOOL(date, path, true);
}

/* {sessions: the sessions before, and this one's new entry} */
static void append_sessions(const spill_renumbering_t *renumbering, const char *key, bson_t *parts)
{
    static const uint8_t nothing[] = {5, 0, 0, 0, 0};
    char hex[SPILL_SESSION_HEX_SIZE];
    bson_t before, part, merged, sides, own, entry;
    if (!find_document(&renumbering->own, SPILL_STORED_SESSIONS, &before))
        bson_init_static(&before, nothing, sizeof nothing);
    spill_session_entry_t after = entry_after(renumbering);
    BSON_APPEND_DOCUMENT_BEGIN(parts, key, &part);
    BSON_APPEND_DOCUMENT_BEGIN(&part, SPILL_STORED_SESSIONS, &merged);
    BSON_APPEND_ARRAY_BEGIN(&merged, "$mergeObjects", &sides);
    BCON_APPEND(&sides, "0", "{", "$literal", BCON_DOCUMENT(&before), "}");
    BSON_APPEND_DOCUMENT_BEGIN(&sides, "1", &own);
    BSON_APPEND_DOCUMENT_BEGIN(&own, spill_session_hex(renumbering->session, hex), &entry);
    BCON_APPEND(&entry, SPILL_STORED_SESSION_TXN, "{", "$literal", BCON_INT64(after.txn), "}",
                SPILL_STORED_SESSION_AT, "$$NOW");
    spill_session_append_done(&after, SPILL_STORED_SESSION_DONE, &entry);
    bson_append_document_end(&own, &entry);
    bson_append_document_end(&sides, &own);
    bson_append_array_end(&merged, &sides);
    bson_append_document_end(&part, &merged);
    bson_append_document_end(parts, &part);
}

/* Append, as operand "1" of $mergeObjects, {<array>: its bookkeeping after the update}. */
static void append_own(const spill_renumbering_t *renumbering, bson_t *sides)
{
    char name[SPILL_NAME_SIZE];
    bson_t side, own, parts, kept = BSON_INITIALIZER, changes = BSON_INITIALIZER;
    bson_copy_to_excluding_noinit(&renumbering->own, &kept, SPILL_STORED_DELETED, NULL);
    append_changes(renumbering, "", &changes);
    BSON_APPEND_DOCUMENT_BEGIN(sides, "1", &side);
    spill_bookkeeping_name(renumbering->array, name);
    bson_append_document_begin(&side, name, -1, &own);
    BSON_APPEND_ARRAY_BEGIN(&own, "$mergeObjects", &parts);
    BCON_APPEND(&parts, "0", "{", "$literal", BCON_DOCUMENT(&kept), "}", "1", "{", "$literal",
                BCON_DOCUMENT(&changes), "}");
    if (renumbering->session)
        append_sessions(renumbering, "2", &parts);
    bson_append_array_end(&own, &parts);
    bson_append_document_end(&side, &own);
    bson_append_document_end(sides, &side);
    bson_destroy(&changes);
    bson_destroy(&kept);
}

static void append_has_type(const char *path, size_t length, const char *type, bool or_missing,
                            uint32_t *count, bson_t *all)
{
    char field[SPILL_NAME_SIZE + 1], text[16];
    const char *key;
    snprintf(field, sizeof field, "$%.*s", (int)length, path);
    bson_uint32_to_string((*count)++, &key, text, sizeof text);
    BCON_APPEND(all, key, "{", "$in", "[", "{", "$type", BCON_UTF8(field), "}", "[",
                BCON_UTF8(type), BCON_UTF8(or_missing ? "missing" : type), "]", "]", "}");
}

void spill_append_is_array(const char *array, bool or_missing, const char *key, bson_t *to)
{
    uint32_t count = 0;
    bson_t condition, all;
    BSON_APPEND_DOCUMENT_BEGIN(to, key, &condition);
    BSON_APPEND_ARRAY_BEGIN(&condition, "$and", &all);
    for (size_t length = spill_path_next_parent(array, 0); length > 0;
         length = spill_path_next_parent(array, length))
        append_has_type(array, length, "object", or_missing, &count, &all);
    append_has_type(array, strlen(array), "array", or_missing, &count, &all);
    bson_append_array_end(&condition, &all);
    bson_append_document_end(to, &condition);
}

void spill_renumber_expression(const spill_renumbering_t *renumbering, bson_t *set)
{
    bson_t spill, choice, merged, sides;
    BSON_APPEND_DOCUMENT_BEGIN(set, SPILL_STORED_ROOT, &spill);
    BSON_APPEND_ARRAY_BEGIN(&spill, "$cond", &choice);
    spill_append_is_array(renumbering->array, true, "0", &choice);
    BSON_APPEND_DOCUMENT_BEGIN(&choice, "1", &merged);
    BSON_APPEND_ARRAY_BEGIN(&merged, "$mergeObjects", &sides);
    BCON_APPEND(&sides, "0", "{", "$literal", BCON_DOCUMENT(&renumbering->spill), "}");
    append_own(renumbering, &sides);
    bson_append_array_end(&merged, &sides);
    bson_append_document_end(&choice, &merged);
    BSON_APPEND_UTF8(&choice, "2", "$$REMOVE");
    bson_append_array_end(&spill, &choice);
    bson_append_document_end(set, &spill);
}
