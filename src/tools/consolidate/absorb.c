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
#include "tools/consolidate/consolidate_run.h"

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
    SPILL_TRY(spill_transform_id_of(document, &id, error));
    char *text = spill_value_to_json(&id, false);
    spill_code_t code =
        spill_fail(error, SPILL_REFUSED,
                   "a client has written to '%s' after it was put aside as '%s': '%s' has another "
                   "document of _id %s, or of the same unique value; merge the documents of "
                   "'%s' into '%s' by hand, drop '%s', and run the same command again",
                   stray->member->collection, stray->member->kept, stray->to, text ? text : "?",
                   stray->from, stray->to, stray->from);
    bson_free(text);
    return code;
}

static void add_id_of(bson_t *ids, const spill_value_t *id)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string(bson_count_keys(ids), &key, buffer, sizeof buffer);
    spill_value_append(id, ids, key);
}

/* Transform a document for the target, and collect the _ids under which it may have it. */
static spill_code_t transform_one(const stray_t *stray, const bson_t *document,
                                  spill_raw_admin_batch_t *transformed, bson_t *ids,
                                  spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t one = BSON_INITIALIZER;
    spill_value_t id;
    if (stray->open)
        SPILL_TRY(spill_transform_make(&stray->slice, document, &one, error));
    else
        bson_concat(&one, document);
    SPILL_TRY(spill_transform_id_of(&one, &id, error));
    add_id_of(ids, &id);
    spill_raw_admin_batch_add(transformed, &one);
    if (!stray->open || stray->slice.keeps_ids)
        return SPILL_OK;
    SPILL_TRY(spill_transform_id_of(document, &id, error));
    add_id_of(ids, &id); /* as the application may have written it */
    return SPILL_OK;
}

static void free_flags(bool **flags)
{
    bson_free(*flags);
}

static void free_writes(spill_raw_admin_write_t **writes)
{
    bson_free(*writes);
}

/* Plan an insert for each transformed document that the target lacks. *count is their number. */
static spill_code_t plan_inserts(const stray_t *stray, const spill_raw_admin_batch_t *transformed,
                                 const bson_t *ids, spill_raw_admin_write_t *writes, size_t *count,
                                 spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t found = {0};
    spill_raw_admin_read_t what = {.collection = stray->to,
                                   .filter = stray->open && !stray->slice.keeps_ids ? &stray->filter
                                                                                    : NULL,
                                   .ids = ids};
    SPILL_SCOPED(free_flags) bool *there = bson_malloc0(transformed->count + 1);
    if (transformed->count > 0)
        SPILL_TRY(stray->run->admin->ops->read(stray->run->admin, &what, &found, error));
    for (size_t i = 0; i < found.count; i++) {
        bool equal = false;
        for (size_t j = 0; j < transformed->count && !equal; j++) {
            equal = bson_equal(found.documents[i], transformed->documents[j]);
            there[j] = there[j] || equal;
        }
        if (!equal)
            return fail_conflict(stray, found.documents[i], error);
    }
    for (size_t i = 0; i < transformed->count; i++)
        if (!there[i])
            writes[(*count)++] = (spill_raw_admin_write_t){.kind = SPILL_RAW_ADMIN_INSERT,
                                                           .document = transformed->documents[i]};
    return SPILL_OK;
}

static spill_code_t insert_all(const stray_t *stray, spill_raw_admin_write_t *writes, size_t count,
                               spill_error_t *error)
{
    spill_consolidate_run_t *run = stray->run;
    if (count == 0)
        return SPILL_OK;
    SPILL_TRY(spill_consolidate_check_own(run, error));
    SPILL_TRY(run->admin->ops->write(run->admin, stray->to, writes, count, error));
    for (size_t i = 0; i < count; i++) {
        if (writes[i].duplicate)
            return fail_conflict(stray, writes[i].document, error);
        run->result->inserted++;
    }
    return SPILL_OK;
}

/* Check a chunk for conflicts and, with `inserts`, insert what the target does not have. */
static spill_code_t absorb_chunk(const stray_t *stray, const spill_raw_admin_batch_t *documents,
                                 bool inserts, spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t transformed = {0};
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    SPILL_SCOPED(free_writes)
    spill_raw_admin_write_t *writes = bson_malloc0((documents->count + 1) * sizeof *writes);
    size_t count = 0;
    for (size_t i = 0; i < documents->count; i++)
        SPILL_TRY(transform_one(stray, documents->documents[i], &transformed, &ids, error));
    SPILL_TRY(plan_inserts(stray, &transformed, &ids, writes, &count, error));
    return inserts ? insert_all(stray, writes, count, error) : SPILL_OK;
}

/* Absorb the chunk behind `after`, {id: _id} or empty, and advance `after`. */
static spill_code_t absorb_next(const stray_t *stray, bool inserts, bson_t *after, bool *end,
                                spill_error_t *error)
{
    const spill_throttle_options_t *given = &stray->run->throttle.options;
    spill_raw_admin_read_t what = {.collection = stray->from, .limit = CHUNK_DOCUMENTS};
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t batch = {0};
    spill_value_t id;
    bson_iter_t iter;
    if (bson_iter_init_find(&iter, after, "id")) {
        id = spill_value_from_iter(&iter);
        what.after = &id;
    }
    if (stray->open && given->stop && given->stop(given->context)) /* no writer waits for it */
        return spill_fail(error, SPILL_CANCELLED, "interrupted: run the same command to continue");
    SPILL_TRY(stray->run->admin->ops->read(stray->run->admin, &what, &batch, error));
    SPILL_TRY(absorb_chunk(stray, &batch, inserts, error));
    *end = batch.end || batch.count == 0;
    if (*end)
        return SPILL_OK;
    SPILL_TRY(spill_transform_id_of(batch.documents[batch.count - 1], &id, error));
    bson_reinit(after);
    spill_value_append(&id, after, "id");
    return SPILL_OK;
}

/* Absorb all documents of the stray, in the order of _id. */
static spill_code_t absorb_documents(const stray_t *stray, bool inserts, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t after = BSON_INITIALIZER;
    for (bool end = false; !end;)
        SPILL_TRY(absorb_next(stray, inserts, &after, &end, error));
    return SPILL_OK;
}

/* Rename the stray, if it has its first name, and absorb it. */
static spill_code_t absorb_stray(stray_t *stray, const char *late, bool moved, spill_error_t *error)
{
    if (!moved) {
        SPILL_TRY(absorb_documents(stray, false, error));
        SPILL_TRY(spill_consolidate_rename(stray->run, stray->from, late, error));
    }
    stray->from = late;
    SPILL_TRY(absorb_documents(stray, true, error));
    return spill_consolidate_drop(stray->run, late, error);
}

static bool is_collection(const spill_consolidate_run_t *run, const char *name)
{
    return spill_consolidate_kind_of(run, name, NULL) == SPILL_CONSOLIDATE_COLLECTION;
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
    bool moved = is_collection(run, late);
    bson_init(&stray.filter);
    spill_value_append(&stray.slice.value, &stray.filter, stray.slice.field);
    *found = is_collection(run, joined->kept) && (moved || is_collection(run, joined->collection));
    spill_code_t code = *found ? absorb_stray(&stray, late, moved, error) : SPILL_OK;
    bson_destroy(&stray.filter);
    bson_free(late);
    return code;
}

spill_code_t spill_consolidate_absorb_all(spill_consolidate_run_t *run, size_t open,
                                          spill_error_t *error)
{
    SPILL_TRY(spill_consolidate_list(run, error));
    for (size_t i = 0; i < run->group->count; i++) {
        bool found = false;
        SPILL_TRY(spill_consolidate_absorb(run, i, i < open, &found, error));
    }
    SPILL_TRY(spill_consolidate_list(run, error));
    return spill_consolidate_check_names(run, error);
}
