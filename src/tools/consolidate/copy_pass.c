/*
 * Make one side equal to the other, chunk by chunk, in the order of _id. An existing document is
 * compared byte for byte, so every step may be repeated.
 *
 * If a unique index refuses a document, another document is in the way. That one is an older state
 * of a document which a later chunk or the next pass updates. So it is deleted, or the refused
 * document waits. Documents that have exchanged values do not block each other this way.
 */
#include "tools/consolidate/consolidate_run.h"

#include "bson/key.h"
#include "util/error.h"

#include <stdlib.h>
#include <string.h>

void spill_copy_pass_init(spill_copy_pass_t *copy_pass, spill_consolidate_run_t *run, size_t member,
                          const char *old, const char *joint, bool back)
{
    *copy_pass = (spill_copy_pass_t){.run = run,
                                     .slice = spill_consolidation_share(run->group, member),
                                     .old = old,
                                     .joint = joint,
                                     .back = back,
                                     .moved = {.member = &run->group->members[member]}};
    copy_pass->filter = bson_new();
    spill_value_append(&copy_pass->slice.value, copy_pass->filter, copy_pass->slice.field);
}

void spill_copy_pass_release(spill_copy_pass_t *copy_pass)
{
    bson_destroy(copy_pass->filter);
}

/* ---- chunks ---------------------------------------------------------------------------------- */

/* A walk over one side. */
typedef struct walk {
    spill_copy_pass_t *copy_pass;
    bool of_slice;
    bool ids_only;
    bson_t after; /* {id: _id}, or empty */
    spill_raw_admin_batch_t batch;
    int64_t began_us;
    bool counted; /* in the progress */
} walk_t;

static void walk_init(walk_t *walk, spill_copy_pass_t *copy_pass, bool of_slice, bool ids_only)
{
    *walk = (walk_t){.copy_pass = copy_pass, .of_slice = of_slice, .ids_only = ids_only};
    bson_init(&walk->after);
}

static void walk_release(walk_t *walk)
{
    spill_raw_admin_batch_release(&walk->batch);
    bson_destroy(&walk->after);
}

/* While a collection is put aside its writers wait: do not throttle, but bound the time. */
spill_code_t spill_consolidate_wait(spill_consolidate_run_t *run, spill_error_t *error)
{
    const spill_throttle_options_t *given = &run->throttle.options;
    bool fenced = run->deadline_us > 0; /* only one thread works then */
    if (fenced && spill_throttle_now_us(&run->throttle) > run->deadline_us) {
        run->late = true;
        return spill_fail(error, SPILL_REFUSED, "the time is up");
    }
    bool goes_on =
        fenced ? !given->stop || !given->stop(given->context) : spill_throttle_wait(&run->throttle);
    return goes_on ? SPILL_OK
                   : spill_fail(error, SPILL_CANCELLED,
                                "interrupted: run the same command to continue");
}

/* Wait for a turn, and read the next chunk. */
static spill_code_t walk_next(walk_t *walk, spill_error_t *error)
{
    spill_copy_pass_t *copy_pass = walk->copy_pass;
    spill_consolidate_run_t *run = copy_pass->run;
    spill_value_t after;
    spill_raw_admin_read_t what = {.collection = walk->of_slice ? copy_pass->joint : copy_pass->old,
                                   .filter = walk->of_slice ? copy_pass->filter : NULL,
                                   .ids_only = walk->ids_only,
                                   .limit = spill_throttle_chunk_size(&run->throttle)};
    bson_iter_t iter;
    spill_raw_admin_batch_release(&walk->batch);
    SPILL_TRY(spill_consolidate_wait(run, error));
    walk->began_us = spill_throttle_now_us(&run->throttle);
    if (bson_iter_init(&iter, &walk->after) && bson_iter_next(&iter)) {
        after = spill_value_from_iter(&iter);
        what.after = &after;
    }
    return run->admin->ops->read(run->admin, &what, &walk->batch, error);
}

void spill_consolidate_ran(spill_consolidate_run_t *run, size_t documents, bool counted,
                           int64_t took_us)
{
    spill_throttle_ran(&run->throttle, (int64_t)documents, took_us);
    pthread_mutex_lock(&run->lock);
    if (counted)
        run->progress.documents += (int64_t)documents;
    if (run->options->progress)
        run->options->progress(run->options->context, &run->progress);
    pthread_mutex_unlock(&run->lock);
}

spill_code_t spill_consolidate_behind(const spill_raw_admin_batch_t *batch, bson_t *after,
                                      spill_error_t *error)
{
    spill_value_t id;
    if (batch->count == 0)
        return SPILL_OK;
    SPILL_TRY(spill_transform_id_of(batch->documents[batch->count - 1], &id, error));
    bson_reinit(after); /* the _id is in the batch's own document */
    spill_value_append(&id, after, "id");
    return SPILL_OK;
}

/* The chunk is done: continue behind it. */
static spill_code_t walk_advance(walk_t *walk, spill_error_t *error)
{
    spill_consolidate_run_t *run = walk->copy_pass->run;
    int64_t took_us = spill_throttle_now_us(&run->throttle) - walk->began_us;
    walk->copy_pass->work_us += took_us;
    spill_consolidate_ran(run, walk->batch.count, walk->counted, took_us);
    return spill_consolidate_behind(&walk->batch, &walk->after, error);
}

/* ---- digests --------------------------------------------------------------------------------- */

static spill_code_t add_to_digest(const walk_t *walk, spill_digest_t *digest, spill_error_t *error)
{
    for (size_t i = 0; i < walk->batch.count; i++) {
        const bson_t *found = walk->batch.documents[i];
        SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
        if (walk->of_slice)
            SPILL_TRY(spill_transform_reverse(&walk->copy_pass->slice, found, &document, error));
        spill_digest_add(digest, walk->of_slice ? &document : found);
    }
    return SPILL_OK;
}

spill_code_t spill_copy_pass_digest(spill_copy_pass_t *copy_pass, bool of_slice,
                                    spill_digest_t *digest, spill_error_t *error)
{
    SPILL_SCOPED(walk_release) walk_t walk;
    *digest = (spill_digest_t){0};
    walk_init(&walk, copy_pass, of_slice, false);
    walk.counted = of_slice == copy_pass->back;
    do {
        SPILL_TRY(walk_next(&walk, error));
        SPILL_TRY(add_to_digest(&walk, digest, error));
        SPILL_TRY(walk_advance(&walk, error));
    } while (!walk.batch.end);
    return SPILL_OK;
}

/* ---- documents by their _ids ----------------------------------------------------------------- */

typedef struct entry {
    spill_buffer_t key;
    size_t index; /* of a document in its batch */
} entry_t;

/* Finds documents of a batch by _id. */
typedef struct index {
    entry_t *entries;
    size_t count;
} index_t;

static int compare_keys(const void *left, const void *right)
{
    const spill_buffer_t *a = &((const entry_t *)left)->key, *b = &((const entry_t *)right)->key;
    int order = memcmp(a->data, b->data, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static void index_release(index_t *index)
{
    for (size_t i = 0; i < index->count; i++)
        spill_buffer_release(&index->entries[i].key);
    bson_free(index->entries);
}

/* The _id of a document or, with a slice, its transformed _id, which `storage` holds. */
static spill_code_t index_id(const bson_t *document, const spill_share_t *slice, bson_t *storage,
                             spill_value_t *id, spill_error_t *error)
{
    bson_iter_t iter;
    SPILL_TRY(spill_transform_id_of(document, id, error));
    if (!slice)
        return SPILL_OK;
    spill_transform_id(slice, id, storage, "");
    bson_iter_init_find(&iter, storage, "");
    *id = spill_value_from_iter(&iter);
    return SPILL_OK;
}

/* Index a batch by its own _ids or, with a slice, by the transformed _ids. */
static spill_code_t index_make(index_t *index, const spill_raw_admin_batch_t *batch,
                               const spill_share_t *slice, spill_error_t *error)
{
    *index = (index_t){.entries = bson_malloc0((batch->count + 1) * sizeof(entry_t))};
    for (size_t i = 0; i < batch->count; i++) {
        SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
        spill_value_t id;
        SPILL_TRY(index_id(batch->documents[i], slice, &storage, &id, error));
        entry_t *entry = &index->entries[index->count++];
        entry->index = i;
        SPILL_TRY(spill_owner_key(&id, &entry->key, error));
    }
    if (index->count > 1)
        qsort(index->entries, index->count, sizeof *index->entries, compare_keys);
    return SPILL_OK;
}

static const entry_t *index_find(const index_t *index, const spill_value_t *id)
{
    entry_t wanted = {.key = SPILL_BUFFER_INIT};
    const entry_t *found = NULL;
    if (spill_owner_key(id, &wanted.key, NULL) == SPILL_OK && index->count > 0)
        found = bsearch(&wanted, index->entries, index->count, sizeof wanted, compare_keys);
    spill_buffer_release(&wanted.key);
    return found;
}

/* ---- copying --------------------------------------------------------------------------------- */

static void add_id(bson_t *ids, uint32_t index, const spill_value_t *id)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string(index, &key, buffer, sizeof buffer);
    spill_value_append(id, ids, key);
}

/* In the joint collection: refuse a document found there that belongs to another collection. */
static spill_code_t check_owner(const spill_copy_pass_t *copy_pass, const bson_t *found,
                                const spill_value_t *id, spill_error_t *error)
{
    bson_iter_t iter;
    spill_value_t value;
    if (copy_pass->back)
        return SPILL_OK;
    if (bson_iter_init_find(&iter, found, copy_pass->slice.field)) {
        value = spill_value_from_iter(&iter);
        if (spill_value_equal(&value, &copy_pass->slice.value))
            return SPILL_OK;
    }
    char *text = spill_value_to_json(id, false);
    spill_code_t code = spill_fail(
        error, SPILL_REFUSED,
        "_id %s also occurs in another collection: use \"ids\": \"compound\" in the plan",
        text ? text : "?");
    bson_free(text);
    return code;
}

/* Plan the write for one transformed document; `there`: the document of its _id, or NULL. */
static bool plan_write(spill_copy_pass_t *copy_pass, const bson_t *transformed, const bson_t *there,
                       spill_raw_admin_write_t *write)
{
    spill_value_t id, old_id;
    spill_transform_id_of(transformed, &id, NULL);
    *write = (spill_raw_admin_write_t){
        .kind = SPILL_RAW_ADMIN_INSERT, .id = id, .document = transformed};
    if (!copy_pass->back)
        write->filter = copy_pass->filter;
    if (!there) {
        copy_pass->moved.inserted++;
        return true;
    }
    if (bson_equal(there, transformed))
        return false;
    spill_transform_id_of(there, &old_id, NULL);
    if (spill_value_equal(&id, &old_id)) {
        write->kind = SPILL_RAW_ADMIN_REPLACE;
        copy_pass->moved.replaced++;
    } else { /* 1 has become 1.0, but an _id cannot change. The next pass copies the document. */
        write->kind = SPILL_RAW_ADMIN_DELETE;
        copy_pass->moved.deleted++;
    }
    return true;
}

/* Write, unless another run has continued. */
static spill_code_t write_own(spill_copy_pass_t *copy_pass, const char *to,
                              spill_raw_admin_write_t *writes, size_t count, spill_error_t *error)
{
    spill_raw_admin_t *admin = copy_pass->run->admin;
    SPILL_TRY(spill_consolidate_check_own(copy_pass->run, error));
    return admin->ops->write(admin, to, writes, count, error);
}

/* Write. Leave what a unique index refuses to the next pass, and delete what is in its way. */
static spill_code_t write_chunk(spill_copy_pass_t *copy_pass, spill_raw_admin_write_t *writes,
                                size_t count, spill_error_t *error)
{
    const char *to = copy_pass->back ? copy_pass->old : copy_pass->joint;
    size_t refused = 0;
    if (count == 0)
        return SPILL_OK;
    SPILL_TRY(write_own(copy_pass, to, writes, count, error));
    for (size_t i = 0; i < count; i++)
        if (writes[i].duplicate && writes[i].kind == SPILL_RAW_ADMIN_REPLACE) {
            writes[refused] = writes[i];
            writes[refused++].kind = SPILL_RAW_ADMIN_DELETE;
        }
    return refused > 0 ? write_own(copy_pass, to, writes, refused, error) : SPILL_OK;
}

static void free_writes(spill_raw_admin_write_t **writes)
{
    bson_free(*writes);
}

/* Room for as many writes as there are documents. */
static spill_raw_admin_write_t *new_writes(const spill_raw_admin_batch_t *documents)
{
    return bson_malloc0((documents->count + 1) * sizeof(spill_raw_admin_write_t));
}

/* Read the documents with the _ids of the transformed documents. */
static spill_code_t read_same_ids(const spill_copy_pass_t *copy_pass,
                                  const spill_raw_admin_batch_t *transformed,
                                  spill_raw_admin_batch_t *there, spill_error_t *error)
{
    spill_raw_admin_t *admin = copy_pass->run->admin;
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    for (size_t i = 0; i < transformed->count; i++) {
        spill_value_t id;
        SPILL_TRY(spill_transform_id_of(transformed->documents[i], &id, error));
        add_id(&ids, (uint32_t)i, &id);
    }
    spill_raw_admin_read_t what = {
        .collection = copy_pass->back ? copy_pass->old : copy_pass->joint, .ids = &ids};
    return transformed->count > 0 ? admin->ops->read(admin, &what, there, error) : SPILL_OK;
}

/* Write the transformed documents that are missing or differ. */
static spill_code_t copy_chunk(spill_copy_pass_t *copy_pass,
                               const spill_raw_admin_batch_t *transformed, spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t there = {0};
    SPILL_SCOPED(index_release) index_t index = {0};
    SPILL_SCOPED(free_writes) spill_raw_admin_write_t *writes = new_writes(transformed);
    size_t count = 0;
    SPILL_TRY(read_same_ids(copy_pass, transformed, &there, error));
    SPILL_TRY(index_make(&index, &there, NULL, error));
    for (size_t i = 0; i < transformed->count; i++) {
        spill_value_t id;
        spill_transform_id_of(transformed->documents[i], &id, NULL);
        const entry_t *entry = index_find(&index, &id);
        const bson_t *found = entry ? there.documents[entry->index] : NULL;
        if (found)
            SPILL_TRY(check_owner(copy_pass, found, &id, error));
        count += plan_write(copy_pass, transformed->documents[i], found, &writes[count]);
    }
    return write_chunk(copy_pass, writes, count, error);
}

/* Insert without reading; `refused` gets the documents that something is in the way of. */
static spill_code_t insert_chunk(spill_copy_pass_t *copy_pass,
                                 const spill_raw_admin_batch_t *transformed,
                                 spill_raw_admin_batch_t *refused, spill_error_t *error)
{
    SPILL_SCOPED(free_writes) spill_raw_admin_write_t *writes = new_writes(transformed);
    if (transformed->count == 0)
        return SPILL_OK;
    for (size_t i = 0; i < transformed->count; i++)
        writes[i] = (spill_raw_admin_write_t){.kind = SPILL_RAW_ADMIN_INSERT,
                                              .document = transformed->documents[i]};
    SPILL_TRY(write_own(copy_pass, copy_pass->joint, writes, transformed->count, error));
    for (size_t i = 0; i < transformed->count; i++) {
        if (writes[i].duplicate)
            spill_raw_admin_batch_add(refused, transformed->documents[i]);
        else
            copy_pass->moved.inserted++;
    }
    return SPILL_OK;
}

static spill_code_t transform_documents(const spill_copy_pass_t *copy_pass,
                                        const spill_raw_admin_batch_t *documents,
                                        spill_raw_admin_batch_t *transformed, spill_error_t *error)
{
    for (size_t i = 0; i < documents->count; i++) {
        SPILL_SCOPED(bson_destroy) bson_t one = BSON_INITIALIZER;
        const bson_t *document = documents->documents[i];
        SPILL_TRY(copy_pass->back
                      ? spill_transform_reverse(&copy_pass->slice, document, &one, error)
                      : spill_transform_make(&copy_pass->slice, document, &one, error));
        spill_raw_admin_batch_add(transformed, &one);
    }
    return SPILL_OK;
}

spill_code_t spill_copy_pass_insert(spill_copy_pass_t *copy_pass,
                                    const spill_raw_admin_batch_t *documents, spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t transformed = {0};
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t refused = {0};
    SPILL_TRY(transform_documents(copy_pass, documents, &transformed, error));
    SPILL_TRY(insert_chunk(copy_pass, &transformed, &refused, error));
    return copy_chunk(copy_pass, &refused, error);
}

static spill_code_t catch_up_chunk(walk_t *walk, spill_error_t *error)
{
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t transformed = {0};
    SPILL_TRY(transform_documents(walk->copy_pass, &walk->batch, &transformed, error));
    return copy_chunk(walk->copy_pass, &transformed, error);
}

spill_code_t spill_copy_pass_run(spill_copy_pass_t *copy_pass, spill_error_t *error)
{
    SPILL_SCOPED(walk_release) walk_t walk;
    walk_init(&walk, copy_pass, copy_pass->back, false);
    do {
        SPILL_TRY(walk_next(&walk, error));
        SPILL_TRY(catch_up_chunk(&walk, error));
        SPILL_TRY(walk_advance(&walk, error));
    } while (!walk.batch.end);
    return SPILL_OK;
}

/* ---- deleting -------------------------------------------------------------------------------- */

/* Append the _ids that the original of a document may have. */
static spill_code_t add_original_ids(const spill_copy_pass_t *copy_pass, const bson_t *document,
                                     bson_t *ids, uint32_t *count, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t storage = BSON_INITIALIZER;
    bson_iter_t iter;
    spill_value_t id, other;
    SPILL_TRY(spill_transform_id_of(document, &id, error));
    if (copy_pass->back) {
        add_id(ids, (*count)++, &id); /* the application may have written this _id */
        spill_transform_id(&copy_pass->slice, &id, &storage, "");
    } else {
        spill_transform_original_id(&copy_pass->slice, &id, &storage, "");
    }
    bson_iter_init_find(&iter, &storage, "");
    other = spill_value_from_iter(&iter);
    add_id(ids, (*count)++, &other);
    return SPILL_OK;
}

/* Find the documents from which those of a chunk were made, by _id, as far as they exist. */
static spill_code_t find_originals(const walk_t *walk, spill_raw_admin_batch_t *there,
                                   spill_error_t *error)
{
    const spill_copy_pass_t *copy_pass = walk->copy_pass;
    spill_raw_admin_t *admin = copy_pass->run->admin;
    SPILL_SCOPED(bson_destroy) bson_t ids = BSON_INITIALIZER;
    uint32_t count = 0;
    for (size_t i = 0; i < walk->batch.count; i++)
        SPILL_TRY(add_original_ids(copy_pass, walk->batch.documents[i], &ids, &count, error));
    spill_raw_admin_read_t what = {.collection =
                                       copy_pass->back ? copy_pass->joint : copy_pass->old,
                                   .filter = copy_pass->back ? copy_pass->filter : NULL,
                                   .ids = &ids,
                                   .ids_only = true};
    return count > 0 ? admin->ops->read(admin, &what, there, error) : SPILL_OK;
}

/* With `back`, transform the documents found into the old form. */
static spill_code_t restore_ids(const spill_copy_pass_t *copy_pass, spill_raw_admin_batch_t *found,
                                spill_error_t *error)
{
    for (size_t i = 0; i < found->count && copy_pass->back; i++) {
        SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
        SPILL_TRY(
            spill_transform_reverse(&copy_pass->slice, found->documents[i], &document, error));
        bson_destroy(found->documents[i]);
        found->documents[i] = bson_copy(&document);
    }
    return SPILL_OK;
}

spill_code_t spill_copy_pass_check_source(spill_copy_pass_t *copy_pass, spill_error_t *error)
{
    spill_consolidate_run_t *run = copy_pass->run;
    const char *from = copy_pass->back ? copy_pass->joint : copy_pass->old;
    pthread_mutex_lock(&run->lock); /* over run->listing */
    spill_code_t code = spill_consolidate_list(run, error);
    spill_consolidate_kind_t kind = spill_consolidate_kind_of(run, from, NULL);
    pthread_mutex_unlock(&run->lock);
    if (code != SPILL_OK || kind == SPILL_CONSOLIDATE_COLLECTION)
        return code;
    SPILL_TRY(spill_consolidate_check_own(run, error)); /* fails if another run put it aside */
    return spill_fail(error, SPILL_REFUSED,
                      "the collection '%s' no longer exists, and what '%s' has of it stays: rename "
                      "it back or, if it is meant to be empty, create it empty",
                      from, copy_pass->back ? copy_pass->old : copy_pass->joint);
}

static spill_code_t remove_chunk(walk_t *walk, spill_error_t *error)
{
    spill_copy_pass_t *copy_pass = walk->copy_pass;
    SPILL_SCOPED(spill_raw_admin_batch_release) spill_raw_admin_batch_t there = {0};
    SPILL_SCOPED(index_release) index_t index = {0};
    SPILL_SCOPED(free_writes) spill_raw_admin_write_t *writes = new_writes(&walk->batch);
    size_t count = 0;
    SPILL_TRY(find_originals(walk, &there, error));
    SPILL_TRY(restore_ids(copy_pass, &there, error));
    SPILL_TRY(index_make(&index, &there, copy_pass->back ? NULL : &copy_pass->slice, error));
    for (size_t i = 0; i < walk->batch.count; i++) {
        spill_value_t id;
        SPILL_TRY(spill_transform_id_of(walk->batch.documents[i], &id, error));
        if (index_find(&index, &id))
            continue;
        writes[count++] =
            (spill_raw_admin_write_t){.kind = SPILL_RAW_ADMIN_DELETE,
                                      .id = id,
                                      .filter = copy_pass->back ? NULL : copy_pass->filter};
    }
    if (count == 0)
        return SPILL_OK;
    /* check after the originals were read, not before */
    SPILL_TRY(spill_copy_pass_check_source(copy_pass, error));
    SPILL_TRY(write_chunk(copy_pass, writes, count, error));
    copy_pass->moved.deleted += (int64_t)count;
    return SPILL_OK;
}

spill_code_t spill_copy_pass_remove(spill_copy_pass_t *copy_pass, spill_error_t *error)
{
    SPILL_SCOPED(walk_release) walk_t walk;
    walk_init(&walk, copy_pass, !copy_pass->back, true);
    do {
        SPILL_TRY(walk_next(&walk, error));
        SPILL_TRY(remove_chunk(&walk, error));
        SPILL_TRY(walk_advance(&walk, error));
    } while (!walk.batch.end);
    return SPILL_OK;
}
