/*
 * The first pass of a copy. One thread at a time gets the next chunk, in the order of members and
 * _ids; all threads transform and insert. Chunks are finished in that order, too, so everything
 * before the saved place is copied. A killed run leaves some chunks behind the place. The next run
 * finds that their documents exist.
 */
#include "tools/consolidate/consolidate_run.h"

#include "tools/parallel.h"
#include "util/error.h"

/* Chunks that one read may have. Reads are cheaper than writes, if they are not too small. */
enum { CHUNKS_AHEAD = 8 };

typedef struct first_pass {
    spill_consolidate_run_t *run;
    const spill_consolidate_way_t *way;
    int64_t pause_us;
    size_t member;                   /* the next chunk is of this member ... */
    bson_t after;                    /* ... and behind this _id, {id: _id}; or empty */
    spill_raw_admin_batch_t ahead;   /* documents of this member that were read */
    size_t taken;                    /* of them, by chunks */
    double read_us;                  /* for each of them */
    spill_consolidate_moved_t moved; /* by the finished chunks of the place's member */
    int64_t unsaved;                 /* documents behind the saved place */
} first_pass_t;

typedef struct chunk {
    spill_copy_pass_t copy_pass;
    spill_raw_admin_batch_t batch;
    bson_t *after; /* {id: _id} of its last document, or empty */
    size_t documents;
    bool ends; /* no chunk of its member follows */
    int64_t took_us;
} chunk_t;

static void free_chunk(void *item)
{
    chunk_t *chunk = item;
    spill_copy_pass_release(&chunk->copy_pass);
    spill_raw_admin_batch_release(&chunk->batch);
    bson_destroy(chunk->after);
    bson_free(chunk);
}

static chunk_t *new_chunk(const first_pass_t *pass)
{
    chunk_t *chunk = bson_malloc0(sizeof *chunk);
    spill_copy_pass_init(&chunk->copy_pass, pass->run, pass->member,
                         spill_consolidate_old_name(pass->run, pass->way, pass->member),
                         pass->way->joint, false);
    chunk->after = bson_new();
    return chunk;
}

/* Put the collection's name before the message. */
static spill_code_t name_collection(const char *old, spill_code_t code, spill_error_t *error)
{
    return code == SPILL_OK ? code : spill_fail_prefix(error, code, "%s", old);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read the next documents of the member. */
static spill_code_t read_ahead(first_pass_t *pass, spill_error_t *error)
{
    spill_consolidate_run_t *run = pass->run;
    spill_raw_admin_read_t what = {
        .collection = spill_consolidate_old_name(run, pass->way, pass->member),
        .limit = CHUNKS_AHEAD * spill_throttle_chunk_size(&run->throttle)};
    spill_value_t after;
    bson_iter_t iter;
    int64_t began_us = spill_throttle_now_us(&run->throttle);
    if (bson_iter_init(&iter, &pass->after) && bson_iter_next(&iter)) {
        after = spill_value_from_iter(&iter);
        what.after = &after;
    }
    spill_raw_admin_batch_release(&pass->ahead);
    pass->taken = 0;
    SPILL_TRY(run->admin->ops->read(run->admin, &what, &pass->ahead, error));
    int64_t took_us = spill_throttle_now_us(&run->throttle) - began_us;
    pass->read_us = pass->ahead.count > 0 ? (double)took_us / (double)pass->ahead.count : 0;
    return spill_consolidate_behind(&pass->ahead, &pass->after, error);
}

/* Move as many documents as a chunk may have from those that were read. */
static spill_code_t fill_chunk(first_pass_t *pass, chunk_t *chunk, spill_error_t *error)
{
    spill_raw_admin_batch_t *ahead = &pass->ahead;
    size_t count = (size_t)spill_throttle_chunk_size(&pass->run->throttle);
    if (count > ahead->count - pass->taken)
        count = ahead->count - pass->taken;
    chunk->batch.documents = bson_malloc0((count + 1) * sizeof(bson_t *));
    for (; chunk->batch.count < count; pass->taken++) {
        chunk->batch.documents[chunk->batch.count++] = ahead->documents[pass->taken];
        ahead->documents[pass->taken] = NULL;
    }
    chunk->documents = count;
    chunk->ends = ahead->end && pass->taken == ahead->count;
    chunk->took_us = (int64_t)(pass->read_us * (double)count);
    return spill_consolidate_behind(&chunk->batch, chunk->after, error);
}

static spill_code_t next_chunk(void *context, void **item, spill_error_t *error)
{
    first_pass_t *pass = context;
    *item = NULL;
    if (pass->member >= spill_consolidate_members(pass->run, pass->way))
        return SPILL_OK;
    chunk_t *chunk = new_chunk(pass);
    spill_code_t code = spill_consolidate_wait(pass->run, error);
    if (code == SPILL_OK && pass->taken == pass->ahead.count)
        code = read_ahead(pass, error);
    if (code == SPILL_OK)
        code = fill_chunk(pass, chunk, error);
    if (code != SPILL_OK) {
        name_collection(chunk->copy_pass.old, code, error);
        free_chunk(chunk);
        return code;
    }
    if (chunk->ends) {
        pass->member++;
        bson_reinit(&pass->after);
    }
    *item = chunk;
    return SPILL_OK;
}

/* ---- inserting ------------------------------------------------------------------------------- */

static spill_code_t insert_chunk(void *context, void *item, spill_error_t *error)
{
    spill_consolidate_run_t *run = ((first_pass_t *)context)->run;
    chunk_t *chunk = item;
    int64_t began_us = spill_throttle_now_us(&run->throttle);
    spill_consolidate_works(run, chunk->copy_pass.old);
    spill_code_t code = spill_copy_pass_insert(&chunk->copy_pass, &chunk->batch, error);
    spill_consolidate_works(run, NULL);
    chunk->took_us += spill_throttle_now_us(&run->throttle) - began_us;
    spill_raw_admin_batch_release(&chunk->batch);
    return name_collection(chunk->copy_pass.old, code, error);
}

static void add_moved(spill_consolidate_moved_t *moved, const spill_consolidate_moved_t *more)
{
    moved->member = more->member;
    moved->inserted += more->inserted;
    moved->replaced += more->replaced;
    moved->deleted += more->deleted;
}

/*
 * Move the place behind the chunk, and save it if the chunk is the last of its member, or if at
 * least a tenth of the largest chunk's documents are behind the saved place.
 */
static spill_code_t finish_chunk(void *context, void *item, spill_error_t *error)
{
    first_pass_t *pass = context;
    spill_consolidate_run_t *run = pass->run;
    const chunk_t *chunk = item;
    add_moved(&pass->moved, &chunk->copy_pass.moved);
    spill_consolidate_ran(run, chunk->documents, true, chunk->took_us);
    if (!chunk->ends) {
        bson_reinit(run->place.after);
        bson_concat(run->place.after, chunk->after);
        pass->unsaved += (int64_t)chunk->documents;
        if (pass->unsaved < run->throttle.options.chunk_max / 10)
            return SPILL_OK;
        pass->unsaved = 0;
        return spill_consolidate_place_save(run, error);
    }
    spill_consolidate_count_member(run, &pass->moved, pass->pause_us);
    pass->moved = (spill_consolidate_moved_t){.pass = run->place.pass};
    pass->unsaved = 0;
    return spill_consolidate_next_member(run, error);
}

spill_code_t spill_consolidate_first_pass(spill_consolidate_run_t *run,
                                          const spill_consolidate_way_t *way, int64_t pause_us,
                                          spill_error_t *error)
{
    first_pass_t pass = {.run = run,
                         .way = way,
                         .pause_us = pause_us,
                         .member = run->place.member,
                         .moved = {.pass = run->place.pass}};
    const spill_parallel_t job = {.threads = (size_t)run->options->threads,
                                  .allowed = spill_throttle_threads(&run->throttle),
                                  .next = next_chunk,
                                  .work = insert_chunk,
                                  .finish = finish_chunk,
                                  .free = free_chunk,
                                  .context = &pass};
    bson_copy_to(run->place.after, &pass.after);
    spill_code_t code = spill_parallel(&job, error);
    bson_destroy(&pass.after);
    spill_raw_admin_batch_release(&pass.ahead);
    return code;
}
