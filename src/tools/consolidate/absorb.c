/*
 * Absorbing strays. If an application inserts a document under an old name after that collection
 * was put aside, the server creates a new collection of that name: a stray.
 *
 *      NAME: no conflict? -> rename to spillway_late_NAME -> insert its documents -> drop it
 *
 * The documents are inserted into the slice if it is open, else into the collection that was put
 * aside. Nothing is overwritten: if the target has another document of the same _id, that is a
 * conflict, which is refused by name. If it has an equal document, nothing is inserted, so every
 * step may be repeated. No client writes under the late name, so no document is lost between its
 * insert and the drop.
 */
#include "tools/consolidate/run.h"

#include "util/error.h"

enum { CHUNK_DOCUMENTS = 100 };

typedef struct stray {
    spill_consolidate_run_t *run;
    const spill_joined_t *member;
    spill_share_t slice;
    bool open;
    const char *from;
    const char *to;
    bson_t filter; /* of the member's documents in `to` */
} stray_t;

/* The late name of the member. Free with bson_free. */
static char *late_name(const spill_joined_t *member)
{
    return bson_strdup_printf("spillway_late_%s", member->collection);
}

static spill_code_t fail_conflict(const stray_t *stray, const bson_t *document,
                                  spill_error_t *error)
{
    spill_value_t id;
    spill_code_t code = spill_transform_id_of(document, &id, error);
    if (code != SPILL_OK)
        return code;
    char *text = spill_value_to_json(&id, false);
    code =
        spill_fail(error, SPILL_REFUSED,
                   "a client has written to '%s' after it was put aside as '%s': '%s' has another "
                   "document of _id %s, or of the same unique value; merge the documents of "
                   "'%s' into '%s' by hand, drop '%s', and run the same command again",
                   stray->member->collection, stray->member->kept, stray->to, text ? text : "?",
                   stray->from, stray->to, stray->from);
    bson_free(text);
    return code;
}

/* Transform the documents for the target, and collect the _ids under which it may have them. */
static spill_code_t transform_chunk(const stray_t *stray, const spill_raw_admin_batch_t *documents,
                                    spill_raw_admin_batch_t *transformed_documents, bson_t *ids,
                                    spill_error_t *error)
{
    spill_code_t code = SPILL_OK;
    uint32_t count = 0;
    for (size_t i = 0; i < documents->count && code == SPILL_OK; i++) {
        bson_t transformed;
        char buffer[16];
        const char *key;
        spill_value_t id;
        if (stray->open)
            code =
                spill_transform_make(&stray->slice, documents->documents[i], &transformed, error);
        else
            bson_copy_to(documents->documents[i], &transformed);
        if (code == SPILL_OK)
            code = spill_transform_id_of(&transformed, &id, error);
        if (code == SPILL_OK) {
            bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
            spill_value_append(&id, ids, key);
            spill_raw_admin_batch_add(transformed_documents, &transformed);
        }
        if (code == SPILL_OK && stray->open && !stray->slice.keeps_ids) {
            code = spill_transform_id_of(documents->documents[i], &id, error);
            bson_uint32_to_string(count++, &key, buffer, sizeof buffer);
            spill_value_append(&id, ids, key); /* as the application may have written it */
        }
        bson_destroy(&transformed);
    }
    return code;
}

/* Plan an insert for each transformed document that the target lacks. *count is their number. */
static spill_code_t plan_inserts(const stray_t *stray,
                                 const spill_raw_admin_batch_t *transformed_documents,
                                 const bson_t *ids, spill_raw_admin_write_t *writes, size_t *count,
                                 spill_error_t *error)
{
    spill_raw_admin_batch_t found = {0};
    spill_raw_admin_read_t what = {.collection = stray->to,
                                   .filter = stray->open && !stray->slice.keeps_ids ? &stray->filter
                                                                                    : NULL,
                                   .ids = ids};
    bool *there = bson_malloc0(transformed_documents->count + 1);
    spill_code_t code = SPILL_OK;
    if (transformed_documents->count > 0)
        code = stray->run->admin->ops->read(stray->run->admin, &what, &found, error);
    for (size_t i = 0; i < found.count && code == SPILL_OK; i++) {
        bool equal = false;
        for (size_t j = 0; j < transformed_documents->count && !equal; j++) {
            equal = bson_equal(found.documents[i], transformed_documents->documents[j]);
            there[j] = there[j] || equal;
        }
        if (!equal)
            code = fail_conflict(stray, found.documents[i], error);
    }
    for (size_t i = 0; i < transformed_documents->count && code == SPILL_OK; i++)
        if (!there[i])
            writes[(*count)++] = (spill_raw_admin_write_t){
                .kind = SPILL_RAW_ADMIN_INSERT, .document = transformed_documents->documents[i]};
    bson_free(there);
    spill_raw_admin_batch_release(&found);
    return code;
}

static spill_code_t insert_all(const stray_t *stray, spill_raw_admin_write_t *writes, size_t count,
                               spill_error_t *error)
{
    spill_consolidate_run_t *run = stray->run;
    if (count == 0)
        return SPILL_OK;
    spill_code_t code = spill_consolidate_check_own(run, error);
    if (code == SPILL_OK)
        code = run->admin->ops->write(run->admin, stray->to, writes, count, error);
    for (size_t i = 0; i < count && code == SPILL_OK; i++)
        if (writes[i].duplicate)
            code = fail_conflict(stray, writes[i].document, error);
        else
            run->result->inserted++;
    return code;
}

/* Check a chunk for conflicts and, with `inserts`, insert what the target does not have. */
static spill_code_t absorb_chunk(const stray_t *stray, const spill_raw_admin_batch_t *documents,
                                 bool inserts, spill_error_t *error)
{
    spill_raw_admin_batch_t transformed_documents = {0};
    bson_t ids = BSON_INITIALIZER;
    spill_raw_admin_write_t *writes = bson_malloc0((documents->count + 1) * sizeof *writes);
    size_t count = 0;
    spill_code_t code = transform_chunk(stray, documents, &transformed_documents, &ids, error);
    if (code == SPILL_OK)
        code = plan_inserts(stray, &transformed_documents, &ids, writes, &count, error);
    if (code == SPILL_OK && inserts)
        code = insert_all(stray, writes, count, error);
    bson_free(writes);
    bson_destroy(&ids);
    spill_raw_admin_batch_release(&transformed_documents);
    return code;
}

/* Absorb all documents of the stray, in the order of _id. */
static spill_code_t absorb_documents(const stray_t *stray, bool inserts, spill_error_t *error)
{
    const spill_throttle_options_t *given = &stray->run->throttle.options;
    bson_t after = BSON_INITIALIZER;
    spill_code_t code = SPILL_OK;
    for (bool end = false; code == SPILL_OK && !end;) {
        spill_raw_admin_read_t what = {.collection = stray->from, .limit = CHUNK_DOCUMENTS};
        spill_raw_admin_batch_t batch = {0};
        spill_value_t id;
        bson_iter_t iter;
        if (bson_iter_init_find(&iter, &after, "id")) {
            id = spill_value_from_iter(&iter);
            what.after = &id;
        }
        if (stray->open && given->stop && given->stop(given->context)) /* no writer waits for it */
            code =
                spill_fail(error, SPILL_CANCELLED, "interrupted: run the same command to continue");
        if (code == SPILL_OK)
            code = stray->run->admin->ops->read(stray->run->admin, &what, &batch, error);
        if (code == SPILL_OK)
            code = absorb_chunk(stray, &batch, inserts, error);
        end = batch.end || batch.count == 0;
        if (code == SPILL_OK && !end)
            code = spill_transform_id_of(batch.documents[batch.count - 1], &id, error);
        if (code == SPILL_OK && !end) {
            bson_reinit(&after);
            spill_value_append(&id, &after, "id");
        }
        spill_raw_admin_batch_release(&batch);
    }
    bson_destroy(&after);
    return code;
}

spill_code_t spill_consolidate_absorb(spill_consolidate_run_t *run, size_t member, bool open,
                                      bool *found, spill_error_t *error)
{
    const spill_joined_t *joined = &run->group->members[member];
    char *late = late_name(joined);
    stray_t stray = {.run = run,
                     .member = joined,
                     .slice = spill_consolidation_share(run->group, member),
                     .open = open,
                     .from = joined->collection,
                     .to = open ? run->group->into : joined->kept};
    bool aside = spill_consolidate_kind_of(run, joined->kept, NULL) == SPILL_CONSOLIDATE_COLLECTION;
    bool moved = spill_consolidate_kind_of(run, late, NULL) == SPILL_CONSOLIDATE_COLLECTION;
    bool there =
        spill_consolidate_kind_of(run, joined->collection, NULL) == SPILL_CONSOLIDATE_COLLECTION;
    spill_code_t code = SPILL_OK;
    bson_init(&stray.filter);
    spill_value_append(&stray.slice.value, &stray.filter, stray.slice.field);
    *found = aside && (moved || there);
    if (*found && !moved) {
        code = absorb_documents(&stray, false, error);
        if (code == SPILL_OK)
            code = spill_consolidate_rename(run, joined->collection, late, error);
    }
    if (*found && code == SPILL_OK) {
        stray.from = late;
        code = absorb_documents(&stray, true, error);
    }
    if (*found && code == SPILL_OK)
        code = spill_consolidate_drop(run, late, error);
    bson_destroy(&stray.filter);
    bson_free(late);
    return code;
}

spill_code_t spill_consolidate_absorb_all(spill_consolidate_run_t *run, size_t open,
                                          spill_error_t *error)
{
    spill_code_t code = spill_consolidate_list(run, error);
    for (size_t i = 0; i < run->group->count && code == SPILL_OK; i++) {
        bool found = false;
        code = spill_consolidate_absorb(run, i, i < open, &found, error);
    }
    if (code == SPILL_OK)
        code = spill_consolidate_list(run, error);
    return code == SPILL_OK ? spill_consolidate_check_names(run, error) : code;
}
