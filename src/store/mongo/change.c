/*
 * The steps that change bookkeeping: spill, seal, edit, remove, trim, drop. Each one reads the
 * document's state, lets transition.c compute the new state, and writes it if the state has not
 * changed since. Appends in between are allowed: they change nothing that is written here, and the
 * array is cut by expressions on its current value.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/render.h"
#include "store/transition.h"
#include "util/error.h"

#include <stdio.h>

/* A step that is carried out. */
typedef struct step {
    spill_mongo_t *store;
    const spill_request_t *request;
    spill_mongo_document_t document;
    spill_response_t read; /* the state before, and the request's element */
    bool assumed;          /* the state was not read, but assumed: no deleted numbers */
    spill_state_t after;
    spill_effect_t effect;
    spill_top_t journal; /* layout subset: the ranks of the journal's elements */
    spill_run_t top;     /* ... and the elements that the head will show */
} step_t;

/* ---- the guard: nothing has changed since it was read ---------------------------------------- */

/* Does the write depend on the end of the array? Then the guard excludes appends in between. */
static bool depends_on_end(const step_t *step)
{
    /* Statistics are computed from the elements that were read. */
    if (spill_mongo_is_bucket(&step->document) &&
        (step->effect.kind != SPILL_EFFECT_NONE || spill_request_recounts_elements(step->request)))
        return true;
    switch (step->request->kind) {
    case SPILL_REQUEST_RECOUNT:
        return step->request->recount.place;
    case SPILL_REQUEST_SEAL:
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_EMPTY_PAGE:
    case SPILL_REQUEST_DROP_PAGE:
        return step->effect.kind != SPILL_EFFECT_DROP;
    default:
        return false;
    }
}

static void unchanged_filter(const step_t *step, bson_t *filter)
{
    const spill_mongo_document_t *document = &step->document;
    const spill_state_t *before = &step->read.state;
    char path[SPILL_MONGO_PATH_SIZE], sealed[SPILL_MONGO_PATH_SIZE];
    spill_mongo_select(document, filter);
    if (step->request->kind == SPILL_REQUEST_CUT && step->request->cut.run) {
        spill_mongo_append_cut_guard(document, before, step->assumed, filter);
        return;
    }
    bson_append_int64(filter, spill_mongo_path(document, "epoch", path), -1, before->incarnation);
    bson_append_int64(filter, spill_mongo_path(document, "rev", path), -1, before->rev);
    if (before->lease > 0)
        bson_append_int64(filter, spill_mongo_path(document, "lease", path), -1, before->lease);
    if (document->head) {
        bson_append_int64(filter, spill_mongo_path(document, "pages", path), -1, before->pages);
        if (!spill_schema_of(step->request->definition)->appends_to_head && !step->assumed)
            bson_append_int64(filter, spill_mongo_path(document, "total", path), -1, before->total);
    }
    bool capped =
        spill_schema_of(step->request->definition)->is_capped; /* an append may change `first` */
    if (capped || (step->assumed && step->request->kind == SPILL_REQUEST_CUT))
        bson_append_int64(filter, spill_mongo_path(document, "first", path), -1, before->first);
    if (spill_schema_of(step->request->definition)->keeps_top_n)
        spill_mongo_append_as_numbered(document, before, filter);
    bool summary = spill_mongo_summary_changes(document, before, &step->after);
    if (step->assumed) {
        char last[SPILL_MONGO_PATH_SIZE + 24];
        snprintf(last, sizeof last, "%s.%lld", document->array, (long long)before->live - 1);
        BCON_APPEND(filter, spill_mongo_path(document, "gone", path), "{", "$exists",
                    BCON_BOOL(false), "}", spill_mongo_path(document, "sealed", sealed), "{", "$ne",
                    BCON_BOOL(true), "}", last, "{", "$exists", BCON_BOOL(true), "}");
    } else if ((depends_on_end(step) || summary) &&
               !spill_schema_of(step->request->definition)->keeps_top_n &&
               (document->head || !document->referenced)) /* a page of one element has no array */
        BCON_APPEND(filter, document->array, "{", "$size", BCON_INT64(before->live), "}");
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Write new bookkeeping, and remove elements. */
static spill_code_t write_state(step_t *step, bool *done, spill_error_t *error)
{
    bson_t filter, pipeline;
    spill_code_t code = SPILL_OK;
    *done = !spill_mongo_rewrite(&step->document, &step->read.state, &step->after, &step->effect,
                                 &step->top, &pipeline);
    if (!*done) {
        unchanged_filter(step, &filter);
        code = spill_mongo_modify(step->store, step->document.collection, &filter, &pipeline, NULL,
                                  NULL, done, error);
        bson_destroy(&filter);
    }
    bson_destroy(&pipeline);
    return code;
}

/* Replace one element. In classic operators, unlike in expressions, any value is a literal. */
static spill_code_t write_element(step_t *step, bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE + 24];
    char rev[SPILL_MONGO_PATH_SIZE];
    snprintf(path, sizeof path, "%s.%lld", step->document.array,
             (long long)spill_mongo_place_of(&step->document, &step->read.state,
                                             step->request->change.seq));
    bson_t filter, update = BSON_INITIALIZER, set;
    unchanged_filter(step, &filter);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    spill_value_append(step->request->change.element, &set, path);
    bson_append_int64(&set, spill_mongo_path(&step->document, "rev", rev), -1, step->after.rev);
    if (step->document.referenced)
        spill_mongo_set_summary(&step->document, &step->after, &step->top, false, &set);
    bool tallied = spill_mongo_is_bucket(&step->document);
    if (tallied)
        spill_mongo_set_statistics(&step->document, &step->after, false, &set);
    bson_append_document_end(&update, &set);
    if (tallied && step->after.window_stats.values == 0 && step->read.state.window_stats.values > 0)
        BCON_APPEND(&update, "$unset", "{", spill_mongo_path(&step->document, "tally", rev), "",
                    "}");
    spill_code_t code = spill_mongo_modify(step->store, step->document.collection, &filter, &update,
                                           NULL, NULL, done, error);
    bson_destroy(&filter);
    bson_destroy(&update);
    return code;
}

/* Open a new page for quick appends. */
static void open_page(const step_t *step, bson_t *document)
{
    bson_t open = BSON_INITIALIZER, spill;
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!bson_iter_init_find(&iter, document, "spill"))
        return;
    bson_iter_document(&iter, &size, &data);
    bson_init_static(&spill, data, size);
    bson_copy_to_excluding_noinit(document, &open, "spill", NULL);
    bson_t with;
    BSON_APPEND_DOCUMENT_BEGIN(&open, "spill", &with);
    bson_concat(&with, &spill);
    spill_mongo_append_open(&step->document, step->after.incarnation, "open", &with);
    bson_append_document_end(&open, &with);
    bson_destroy(document);
    bson_steal(document, &open);
}

/* Write a whole page: insert it, or replace the page that was read. */
static spill_code_t write_page(step_t *step, bool *done, spill_error_t *error)
{
    static const spill_run_t empty = {0};
    const spill_request_t *request = step->request;
    const spill_run_t *run = spill_request_run(request);
    bool creates = request->kind == SPILL_REQUEST_CREATE_PAGE;
    bson_t document, filter;
    spill_render_page(request->definition, request->owner, &step->after, run ? run : &empty,
                      creates ? request->create_page.ops : NULL, false, &document);
    if (creates && !spill_mongo_is_bucket(&step->document))
        open_page(step, &document);
    spill_code_t code;
    if (step->read.state.present) {
        unchanged_filter(step, &filter);
        code = spill_mongo_replace(step->store, step->document.collection, &filter, &document, done,
                                   error);
        bson_destroy(&filter);
    } else {
        code = spill_mongo_insert(step->store, step->document.collection, &document, done, error);
    }
    bson_destroy(&document);
    return code;
}

/* ---- dropping documents ---------------------------------------------------------------------- */

static spill_code_t delete_page(step_t *step, bool *done, spill_error_t *error)
{
    bson_t filter;
    unchanged_filter(step, &filter);
    spill_code_t code =
        spill_mongo_delete(step->store, step->document.collection, &filter, done, error);
    bson_destroy(&filter);
    return code;
}

/* Call it before a head is dropped: later heads get a later incarnation (append.c). */
spill_code_t spill_mongo_raise_dropped_rev(spill_mongo_t *store, int64_t rev, spill_error_t *error)
{
    bson_t *filter = BCON_NEW("_id", "dropped");
    bson_t *update = BCON_NEW("$max", "{", "rev", BCON_INT64(rev), "}");
    bool done = false;
    spill_code_t code = SPILL_OK;
    while (code == SPILL_OK && !done) /* two clients may insert the document at once */
        code = spill_mongo_upsert(store, SPILL_MONGO_CHECKPOINTS, filter, update, &done, error);
    bson_destroy(filter);
    bson_destroy(update);
    return code;
}

void spill_mongo_append_without_spill(const char *key, bson_t *pipeline)
{
    BCON_APPEND(pipeline, key, "{", "$set", "{", "spill", "{", "$cond", "[", "{", "$eq", "[",
                "$spill", "{", "}", "]", "}", "$$REMOVE", "$spill", "]", "}", "}", "}");
}

/* Remove the array's own fields from the head, and `spill` with its last array. */
static void drop_pipeline(const step_t *step, bson_t *pipeline)
{
    const char *own[SPILL_MONGO_OWN_FIELDS];
    size_t count = spill_mongo_own_fields(step->request->definition, own);
    bson_t unset = BSON_INITIALIZER, stage;
    BSON_APPEND_UTF8(&unset, "0", step->document.spill);
    for (size_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i + 1, &key, buffer, sizeof buffer);
        BSON_APPEND_UTF8(&unset, key, own[i]);
    }
    bson_init(pipeline);
    BSON_APPEND_DOCUMENT_BEGIN(pipeline, "0", &stage);
    BSON_APPEND_ARRAY(&stage, "$unset", &unset);
    bson_append_document_end(pipeline, &stage);
    spill_mongo_append_without_spill("1", pipeline);
    bson_destroy(&unset);
}

/* Delete the document if it has only its _id; the filter checks that no field was added since. */
static spill_code_t delete_bare(step_t *step, spill_error_t *error)
{
    bson_t filter;
    bool found;
    spill_mongo_select(&step->document, &filter);
    BCON_APPEND(&filter, "$expr", "{", "$eq", "[", "{", "$size", "{", "$objectToArray", "$$ROOT",
                "}", "}", BCON_INT64(1), "]", "}");
    spill_code_t code =
        spill_mongo_delete(step->store, step->document.collection, &filter, &found, error);
    bson_destroy(&filter);
    return code;
}

static spill_code_t drop_head(step_t *step, bool *done, spill_error_t *error)
{
    spill_code_t code = spill_mongo_raise_dropped_rev(step->store, step->read.state.rev, error);
    if (code != SPILL_OK)
        return code;
    if (spill_mongo_is_bucket(&step->document))
        return delete_page(step, done, error); /* all fields belong to the array */
    bool stays =
        step->request->kind == SPILL_REQUEST_DROP_HEAD && step->request->drop_head.document_stays;
    bson_t filter, pipeline;
    unchanged_filter(step, &filter);
    drop_pipeline(step, &pipeline);
    code = spill_mongo_modify(step->store, step->document.collection, &filter, &pipeline, NULL,
                              NULL, done, error);
    if (code == SPILL_OK && *done && !stays)
        code = delete_bare(step, error);
    bson_destroy(&filter);
    bson_destroy(&pipeline);
    return code;
}

/* ---- the step -------------------------------------------------------------------------------- */

static spill_code_t write_effect(step_t *step, bool *done, spill_error_t *error)
{
    if (step->document.referenced && !step->document.head &&
        step->effect.kind == SPILL_EFFECT_DELETE)
        return write_page(step, done, error); /* without the element */
    switch (step->effect.kind) {
    case SPILL_EFFECT_FILL:
        return write_page(step, done, error);
    case SPILL_EFFECT_REPLACE:
        return write_element(step, done, error);
    case SPILL_EFFECT_DROP:
        return step->document.head ? drop_head(step, done, error) : delete_page(step, done, error);
    default:
        return write_state(step, done, error);
    }
}

/* Is the request about one element? */
static bool concerns_element(const spill_request_t *request)
{
    return request->kind == SPILL_REQUEST_EDIT || request->kind == SPILL_REQUEST_REMOVE ||
           request->kind == SPILL_REQUEST_DELETE;
}

/* Layout subset: does the request change the head's summary? */
static bool changes_top(const step_t *step)
{
    const spill_request_t *request = step->request;
    bool changes = concerns_element(request) || request->kind == SPILL_REQUEST_PREPARE ||
                   request->kind == SPILL_REQUEST_COMPLETE || request->kind == SPILL_REQUEST_TRIM ||
                   request->kind == SPILL_REQUEST_RECOUNT;
    return changes && step->document.head && spill_schema_of(request->definition)->has_top;
}

/* -1: the element is not in the run. */
static int64_t size_of(const spill_run_t *run, int64_t seq)
{
    for (size_t i = 0; i < run->count; i++)
        if (run->entries[i].seq == seq)
            return run->entries[i].size_bytes;
    return -1;
}

static spill_code_t read_before(step_t *step, spill_facts_t *facts, spill_error_t *error)
{
    const spill_request_t *request = step->request;
    spill_request_t read = spill_request_reading(request);
    read.read.want_now = spill_needs_time(request);
    if (concerns_element(request)) {
        read.read.want = SPILL_WANT_FORWARD;
        read.read.seq = request->change.seq;
        read.read.limit = 1;
    }
    bool window_stats = spill_needs_window_stats(request), journal = spill_needs_journal(request);
    read.read.want_top = changes_top(step);
    if (window_stats || journal) {
        read.read.want = SPILL_WANT_FORWARD;
        read.read.seq = 0;
        read.read.limit = INT64_MAX;
    }
    spill_response_clear(&step->read);
    spill_code_t code = spill_mongo_read(step->store, &read, &step->read, error);
    const spill_run_t *run = &step->read.run;
    *facts = (spill_facts_t){.old_bytes = -1, .now_us = step->read.now_us};
    if (concerns_element(request))
        facts->old_bytes = size_of(run, request->change.seq);
    if (window_stats && code == SPILL_OK)
        facts->window_stats = spill_window_stats_after(request, run);
    if (journal && code == SPILL_OK) {
        spill_top_clear(&step->journal);
        spill_top_note(&step->journal, request->definition, run);
        facts->journal = &step->journal;
    }
    return code;
}

/*
 * Assume the most likely state of the document, to save the READ: PUT_PAGE and CREATE_PAGE find no
 * page; CUT and SEAL of a page find the document as the caller has just read it. If the assumption
 * is wrong, the guard does not hold, and the document is read.
 */
static bool assume_before(step_t *step)
{
    const spill_request_t *request = step->request;
    spill_state_t *before = &step->read.state;
    switch (request->kind) {
    case SPILL_REQUEST_PUT_PAGE:
        return !request->put_page.replaces;
    case SPILL_REQUEST_CREATE_PAGE:
        return true;
    case SPILL_REQUEST_CUT:
        *before = (spill_state_t){.first = request->cut.first,
                                  .pages = request->cut.pages,
                                  .live = request->cut.slots,
                                  .live_bytes = request->cut.bytes};
        break;
    case SPILL_REQUEST_SEAL:
        if (step->document.head || request->seal.close)
            return false;
        *before = (spill_state_t){.live = 1};
        break;
    default:
        return false;
    }
    before->present = true;
    before->incarnation = request->incarnation;
    before->rev = request->rev;
    return before->live > 0;
}

static spill_code_t change(spill_mongo_t *store, const spill_request_t *request,
                           spill_response_t *response, spill_error_t *error)
{
    enum { TRIES_MAX = 100 };
    step_t step = {.store = store, .request = request};
    spill_mongo_document_init(&step.document, store, request);
    spill_facts_t facts = {0};
    spill_code_t code = SPILL_OK;
    bool done = false;
    response->outcome = SPILL_REFUSED_GUARD;
    if (step.document.referenced &&
        (request->kind == SPILL_REQUEST_EMPTY_PAGE || request->kind == SPILL_REQUEST_DROP_PAGE)) {
        code = spill_mongo_delete_element(store, &step.document, &done, error);
        response->outcome = done ? SPILL_DONE : SPILL_REFUSED_GUARD;
        return code;
    }
    for (int tries = 0; code == SPILL_OK && !done; tries++) {
        step.assumed = tries == 0 && assume_before(&step);
        if (!step.assumed)
            code = read_before(&step, &facts, error);
        if (code == SPILL_OK && tries == TRIES_MAX)
            code =
                spill_fail_retryable(error, SPILL_CONFLICT, "lost every race for a document of %s",
                                     step.document.collection);
        if (code != SPILL_OK)
            break;
        spill_state_copy(&step.read.state, &step.after);
        if (spill_transition(request, &facts, &step.after, &step.effect) != SPILL_DONE)
            break;
        if (changes_top(&step))
            spill_mongo_gather_top(request, -1, &step.read, &step.after.top, &step.top);
        code = write_effect(&step, &done, error);
        if (request->kind == SPILL_REQUEST_CUT && request->cut.run && !step.assumed)
            break; /* appends do not matter: the slots hold other elements than the run */
    }
    if (done && request->kind == SPILL_REQUEST_CUT)
        spill_mongo_hint_shorten(store->hints, &step.document,
                                 step.read.state.live - step.after.live);
    if (done)
        response->outcome = SPILL_DONE;
    spill_response_release(&step.read);
    spill_state_release(&step.after);
    spill_top_release(&step.journal);
    spill_run_release(&step.top);
    return code;
}

spill_code_t spill_mongo_change(spill_mongo_t *store, const spill_request_t *request,
                                spill_response_t *response, spill_error_t *error)
{
    spill_request_t dated = *request;
    if (!request->create)
        return change(store, request, response, error);
    spill_code_t code = spill_mongo_date(store, request, &dated.incarnation, error);
    return code == SPILL_OK ? change(store, &dated, response, error) : code;
}
