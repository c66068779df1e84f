/* What is checked before anything is changed, besides names and indexes. */
#include "tools/consolidate/consolidate_run.h"

#include "bson/value.h"
#include "util/error.h"

#include <inttypes.h>
#include <string.h>

spill_code_t spill_consolidate_refuse_first(const bson_t *texts, const char *before,
                                            spill_error_t *error)
{
    bson_iter_t iter;
    int64_t more = (int64_t)bson_count_keys(texts) - 1;
    char others[48] = "";
    if (!bson_iter_init(&iter, texts) || !bson_iter_next(&iter))
        return SPILL_OK;
    if (more > 0)
        snprintf(others, sizeof others, " (and %" PRId64 " more)", more);
    return spill_fail(error, SPILL_REFUSED, "%s%s%s", before, bson_iter_utf8(&iter, NULL), others);
}

/* ---- definitions ----------------------------------------------------------------------------- */

static void refuse_if_used(bson_t *refused, const char *name, const bson_t *definition,
                           const char *collection)
{
    bool heads = strcmp(spill_document_text(definition, "collection", ""), collection) == 0;
    if (heads || strcmp(spill_document_text(definition, "pageCollection", ""), collection) == 0)
        spill_consolidate_add_text(
            refused,
            "'%s' has %s of the definition '%s', which would no longer find "
            "them: consolidate before you define; leave it out of the "
            "plan (a definition without arrays, as `spillway migrate --undo' "
            "leaves it, is removed by `spillway drop STORE %s')",
            collection, heads ? "the documents" : "the pages", name, name);
}

static void check_definition(const spill_consolidation_t *group, const char *name,
                             const bson_t *definition, bson_t *refused)
{
    refuse_if_used(refused, name, definition, group->into);
    for (size_t i = 0; i < group->count; i++)
        refuse_if_used(refused, name, definition, group->members[i].collection);
}

spill_code_t spill_consolidate_check_definitions(spill_consolidate_run_t *run, bson_t *refused,
                                                 spill_error_t *error)
{
    bson_t definitions, stored, definition;
    bson_iter_t iter, entry;
    spill_code_t code = run->admin->ops->definitions(run->admin, &definitions, error);
    bson_iter_init(&iter, &definitions);
    while (code == SPILL_OK && bson_iter_next(&iter)) {
        const uint8_t *data;
        uint32_t size;
        bson_iter_document(&iter, &size, &data);
        if (!bson_init_static(&stored, data, size) ||
            !bson_iter_init_find(&entry, &stored, "entry") || !BSON_ITER_HOLDS_DOCUMENT(&entry))
            continue;
        bson_iter_document(&entry, &size, &data);
        if (bson_init_static(&definition, data, size))
            check_definition(run->group, spill_document_text(&stored, "_id", ""), &definition,
                             refused);
    }
    bson_destroy(&definitions);
    return code;
}

/* ---- _ids that would collide ----------------------------------------------------------------- */

/* If the document has an _id that the application has chosen, collect the _id that a copy from the
 * old collection would have given to it. */
static spill_code_t add_transformed_id(const spill_share_t *slice, const bson_t *document,
                                       bson_t *ids, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t old = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_value_t id, old_id;
    SPILL_TRY(spill_transform_id_of(document, &id, error));
    spill_transform_original_id(slice, &id, &old, "");
    bson_iter_init_find(&iter, &old, "");
    old_id = spill_value_from_iter(&iter);
    if (spill_value_equal(&id, &old_id)) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string(bson_count_keys(ids), &key, buffer, sizeof buffer);
        spill_transform_id(slice, &id, ids, key);
    }
    return SPILL_OK;
}

/* Refuse if the collection also has a document of one of these _ids. */
static spill_code_t refuse_if_there(spill_consolidate_run_t *run, const spill_joined_t *member,
                                    const spill_raw_admin_read_t *what, spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    spill_value_t id;
    SPILL_TRY(run->admin->ops->read(run->admin, what, &batch, error));
    if (batch.count == 0)
        return SPILL_OK;
    SPILL_TRY(spill_transform_id_of(batch.documents[0], &id, error));
    char *text = spill_value_to_json(&id, false);
    spill_fail(error, SPILL_REFUSED,
               "'%s' has a document of _id %s, and another one with the 'id' in it as _id: both "
               "would be one document of '%s'; delete one of them, or give it another _id",
               what->collection, text ? text : "?", member->collection);
    bson_free(text);
    return SPILL_REFUSED;
}

/* Check the chunk behind `after`, {id: _id} or empty, and advance `after`. */
static spill_code_t check_chunk(spill_consolidate_run_t *run, size_t member,
                                spill_raw_admin_read_t what, bson_t *after, bool *end,
                                spill_error_t *error)
{
    spill_share_t slice = spill_consolidation_share(run->group, member);
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_value_t id;
    if (bson_iter_init(&iter, after) && bson_iter_next(&iter)) {
        id = spill_value_from_iter(&iter);
        what.after = &id;
    }
    SPILL_TRY(run->admin->ops->read(run->admin, &what, &batch, error));
    *end = batch.end;
    for (size_t i = 0; i < batch.count; i++)
        SPILL_TRY(add_transformed_id(&slice, batch.documents[i], &ids, error));
    if (batch.count > 0) {
        spill_transform_id_of(batch.documents[batch.count - 1], &id, NULL);
        bson_reinit(after);
        spill_value_append(&id, after, "id");
    }
    if (bson_empty(&ids))
        return SPILL_OK;
    what.after = NULL;
    what.ids = &ids;
    what.limit = 1;
    return refuse_if_there(run, &run->group->members[member], &what, error);
}

static spill_code_t check_slice(spill_consolidate_run_t *run, size_t member, const char *joint,
                                spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t after = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_value_append(&run->group->members[member].value, &filter, run->group->field);
    for (bool end = false; !end;) {
        spill_raw_admin_read_t what = {.collection = joint,
                                       .filter = &filter,
                                       .ids_only = true,
                                       .limit = spill_throttle_chunk_size(&run->throttle)};
        if (!spill_throttle_wait(&run->throttle))
            return spill_fail(error, SPILL_CANCELLED, "interrupted");
        SPILL_TRY(check_chunk(run, member, what, &after, &end, error));
    }
    return SPILL_OK;
}

spill_code_t spill_consolidate_check_ids(spill_consolidate_run_t *run, const char *joint,
                                         spill_error_t *error)
{
    for (size_t i = 0; i < run->group->count && !run->group->keeps_ids; i++)
        SPILL_TRY(check_slice(run, i, joint, error));
    return SPILL_OK;
}
