/*
 * The writes of guarded requests: one update, insert or delete for each effect of a transition. The
 * guard compares the incarnation and rev of the document with the ones that were read. Appends
 * change neither, so most writes use expressions on the current array instead of its value. Only
 * the writes of a new page and of a top-N append write a whole array; their guards exclude appends.
 */
#include "store/mongo/guarded.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>

static const spill_schema_t *schema(const spill_mongo_step_t *step)
{
    return spill_schema_of(step->request->definition);
}

/* Send the update with the guard that the document has the incarnation and rev that were read. */
static spill_code_t update_unchanged(const spill_mongo_step_t *step, const bson_t *update,
                                     bool *done, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_mongo_unchanged(step, &filter);
    return spill_mongo_modify(step->store, step->document.collection, &filter, update, NULL, NULL,
                              done, error);
}

/* ---- APPEND ---------------------------------------------------------------------------------- */

/* Do two runs have the same elements? */
static bool is_same(const spill_run_t *one, const spill_run_t *other)
{
    bool same = one->count == other->count;
    for (size_t i = 0; same && i < one->count; i++)
        same = one->entries[i].seq == other->entries[i].seq;
    return same;
}

/* Set the effect on a capped head's array; `top_n` must outlive it. */
static void make_roll(const spill_mongo_step_t *step, spill_run_t *top_n, spill_mongo_roll_t *roll)
{
    const spill_state_t *before = &step->read->state, *after = &step->after;
    *roll = (spill_mongo_roll_t){
        .moved = after->first - before->first,
        .live = after->live,
        .counted = true,
        .clears = before->deleted.count > 0 && after->deleted.count == 0,
    };
    if (!schema(step)->keeps_top_n) {
        roll->skipped = (int64_t)spill_append_skipped(step->request, &step->effect);
        return;
    }
    spill_mongo_gather_top_n(step->request, &step->read->run, &step->after, &step->effect, top_n);
    roll->top_n = top_n;
    roll->after = after;
    roll->same = is_same(&step->read->run, top_n);
}

/* Append what an append sets and pushes besides the array: statistics, a summary, or counts. */
static void append_derived(spill_mongo_step_t *step, bson_t *set, bson_t *push)
{
    const spill_mongo_document_t *document = &step->document;
    char path[SPILL_MONGO_PATH_SIZE];
    if (schema(step)->has_windows) {
        spill_mongo_set_statistics(document, &step->after, false, set);
    } else if (schema(step)->has_top) {
        spill_mongo_set_sum(document, &step->after, false, set);
        spill_mongo_append_to_summary(document, step->read, &step->after, set, push);
    } else if (document->referenced) {
        spill_mongo_set_summary(document, &step->after, NULL, false, set);
    } else {
        spill_append_count(set, document->count, step->after.live);
        spill_mongo_set_deleted(document, &step->after, set);
        if (!schema(step)->keeps_top_n && step->after.deleted.count == 0)
            spill_mongo_append_open(document, step->after.incarnation,
                                    spill_mongo_path(document, SPILL_STORED_OPEN, path), set);
    }
}

/* Append to the head that was read, or make it. */
static spill_code_t write_append(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(spill_run_release) spill_run_t top_n = {0};
    spill_mongo_roll_t rolled, *roll = schema(step)->is_capped ? &rolled : NULL;
    if (roll)
        make_roll(step, &top_n, roll);
    if (!step->read->state.present)
        return spill_mongo_make_head(step->store, &step->document, roll, &step->after, done, error);
    SPILL_SCOPED(bson_destroy) bson_t set = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t push = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    append_derived(step, &set, &push);
    spill_mongo_update_of_append(&step->document, &set, &push, roll, &update);
    return update_unchanged(step, &update, done, error);
}

bool spill_mongo_reads_journal(const spill_request_t *append)
{
    enum { JOURNAL_SHORT = 16 };
    return append->append.due > 0 && append->append.due <= JOURNAL_SHORT;
}

/* Add the new elements to the journal that was read. So the answer has what a READ returns. */
static void show_journal(spill_mongo_step_t *step)
{
    const spill_request_t *request = step->request;
    spill_response_t *response = step->read;
    if (!spill_mongo_reads_journal(request))
        return;
    for (size_t i = 0; i < request->append.element_count &&
                       (int64_t)response->run.count < request->append.due_limit;
         i++)
        spill_run_add(&response->run, step->effect.seq + (int64_t)i, &request->append.elements[i]);
    response->shows_read = true;
}

/* A push to a present document gets its numbers from the server's answer, not from the transition.
 */
static spill_code_t append(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    spill_response_t *response = step->read;
    bool pushed = spill_mongo_is_pushed(&step->document);
    if (pushed && !schema(step)->is_capped && response->state.present)
        return spill_mongo_push_exactly(step->store, &step->document, response, done, error);
    SPILL_TRY(write_append(step, done, error));
    if (!*done)
        return SPILL_OK;
    spill_state_copy(&step->after, &response->state);
    response->seq = step->effect.seq;
    response->crowded_out = step->effect.crowded_out;
    if (step->document.referenced)
        show_journal(step);
    if (pushed)
        spill_mongo_hint_learn(step->store->hints, &step->document, &response->state,
                               spill_store_defers(&step->store->base, step->request));
    return SPILL_OK;
}

/* ---- bookkeeping and single elements --------------------------------------------------------- */

/* Write new bookkeeping, and remove elements. */
static spill_code_t write_state(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    *done = !spill_mongo_rewrite(&step->document, &step->read->state, &step->after, &step->effect,
                                 &step->top, &pipeline);
    return *done ? SPILL_OK : update_unchanged(step, &pipeline, done, error);
}

/* Replace one element. In classic operators, unlike in expressions, any value is a literal. */
static spill_code_t write_element(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    const spill_mongo_document_t *document = &step->document;
    const spill_state_t *before = &step->read->state, *after = &step->after;
    bool has_windows = schema(step)->has_windows;
    char element[SPILL_MONGO_PATH_SIZE + 24], path[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(bson_destroy) bson_t update = BSON_INITIALIZER;
    bson_t set;
    snprintf(element, sizeof element, "%s.%lld", document->array,
             (long long)spill_mongo_place_of(document, before, step->request->change.seq));
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    spill_value_append(step->request->change.element, &set, element);
    bson_append_int64(&set, spill_mongo_path(document, SPILL_STORED_REV, path), -1, after->rev);
    if (document->referenced)
        spill_mongo_set_summary(document, after, &step->top, false, &set);
    if (has_windows)
        spill_mongo_set_statistics(document, after, false, &set);
    bson_append_document_end(&update, &set);
    if (has_windows && after->window_stats.values == 0 && before->window_stats.values > 0)
        BCON_APPEND(&update, "$unset", "{",
                    spill_mongo_path(document, SPILL_STORED_WINDOW_STATS, path), "", "}");
    return update_unchanged(step, &update, done, error);
}

/* ---- whole documents ------------------------------------------------------------------------- */

/* Open a new page for quick appends. */
static void open_page(const spill_mongo_step_t *step, bson_t *document)
{
    bson_t open = BSON_INITIALIZER, spill;
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!bson_iter_init_find(&iter, document, SPILL_STORED_ROOT))
        return;
    bson_iter_document(&iter, &size, &data);
    bson_init_static(&spill, data, size);
    bson_copy_to_excluding_noinit(document, &open, SPILL_STORED_ROOT, NULL);
    bson_t with;
    BSON_APPEND_DOCUMENT_BEGIN(&open, SPILL_STORED_ROOT, &with);
    bson_concat(&with, &spill);
    spill_mongo_append_open(&step->document, step->after.incarnation, SPILL_STORED_OPEN, &with);
    bson_append_document_end(&open, &with);
    bson_destroy(document);
    bson_steal(document, &open);
}

/* Write a whole page: insert it, or replace the page that was read. */
static spill_code_t write_page(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    static const spill_run_t empty = {0};
    const spill_request_t *request = step->request;
    const spill_run_t *run = spill_request_run(request);
    const char *collection = step->document.collection;
    bool creates = request->kind == SPILL_REQUEST_CREATE_PAGE;
    SPILL_SCOPED(bson_destroy) bson_t document = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_render_page(request->definition, request->owner, &step->after, run ? run : &empty,
                      creates ? request->create_page.ops : NULL, false, &document);
    if (creates && !schema(step)->has_windows)
        open_page(step, &document);
    if (!step->read->state.present)
        return spill_mongo_insert(step->store, collection, &document, done, error);
    spill_mongo_unchanged(step, &filter);
    return spill_mongo_replace(step->store, collection, &filter, &document, done, error);
}

static spill_code_t delete_page(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_mongo_unchanged(step, &filter);
    return spill_mongo_delete(step->store, step->document.collection, &filter, done, error);
}

/* UPDATE_FIELDS: update the head that was read, or make it. */
static spill_code_t write_fields(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    if (!step->read->state.present)
        return spill_mongo_make_head(step->store, &step->document, NULL, &step->after, done, error);
    *done = !spill_mongo_has_operators(step->request);
    return *done ? SPILL_OK : spill_mongo_update_head(step->store, &step->document, done, error);
}

/* ---- one write ------------------------------------------------------------------------------- */

spill_code_t spill_mongo_write(spill_mongo_step_t *step, bool *done, spill_error_t *error)
{
    *done = false;
    if (step->document.referenced && !step->document.head &&
        step->effect.kind == SPILL_EFFECT_DELETE)
        return write_page(step, done, error); /* without the element */
    switch (step->effect.kind) {
    case SPILL_EFFECT_ADD:
        return append(step, done, error);
    case SPILL_EFFECT_FILL:
        return write_page(step, done, error);
    case SPILL_EFFECT_REPLACE:
        return write_element(step, done, error);
    case SPILL_EFFECT_DROP:
        return step->document.head ? spill_mongo_drop_head(step, done, error)
                                   : delete_page(step, done, error);
    default:
        return step->request->kind == SPILL_REQUEST_UPDATE_FIELDS ? write_fields(step, done, error)
                                                                  : write_state(step, done, error);
    }
}
