#include "support/model_store_internal.h"

#include "bson/element_fields.h"
#include "bson/update.h"
#include "definition/schema.h"
#include "store/render.h"
#include "store/transition.h"

#include <assert.h>
#include <string.h>

/* A request that is carried out: its document, and what the transition needs to know. */
typedef struct step {
    const spill_request_t *request;
    model_document_t *document; /* `fresh` if there was none */
    model_document_t fresh;
    size_t index;   /* of element request->change.seq */
    bson_t *fields; /* the new fields of the head; NULL: unchanged */
    spill_facts_t facts;
    spill_sessions_t sessions; /* entries to put */
    spill_top_t journal;
    spill_run_t all;       /* ... and its elements */
    spill_run_t unmanaged; /* ADOPT, ADOPT_SPLIT: the unmanaged array */
} step_t;

static int64_t size_of(void *context, int64_t seq)
{
    const model_document_t *document = context;
    size_t index;
    return model_document_find(document, seq, &index)
               ? model_document_bytes(document, index, index + 1)
               : -1;
}

/* CUT: do the slots hold other elements than the request's run? */
static bool differs(const model_document_t *document, const spill_request_t *cut)
{
    size_t end = model_document_position(document, cut->cut.first + cut->cut.slots);
    bool same = end == cut->cut.run->count;
    for (size_t i = 0; same && i < end; i++) {
        spill_value_t expected = spill_run_element(cut->cut.run, i).value;
        same = spill_value_equal(&document->elements[i], &expected);
    }
    return !same;
}

/* Set facts.seen, and collect the entries of the request's sessions after the step. */
static void see(const model_store_t *model, step_t *step)
{
    const spill_request_t *request = step->request;
    const model_document_t *document = step->document;
    const spill_clock_t *clock = &model->base.options.clock;
    const spill_op_t *op = spill_request_op(request);
    spill_seen_t *seen = &step->facts.seen;
    if (op)
        seen->op = spill_ops_find(&document->ops, op->id, op->id_bytes) != NULL;
    if (spill_request_match(request) && document->state.present)
        seen->unmatched = !spill_match_fields(spill_request_match(request),
                                              model_find_fields(model, request)->document);
    for (size_t i = 0; request->kind == SPILL_REQUEST_APPEND && request->append.searched &&
                       !seen->has_id && i < document->count;
         i++)
        seen->has_id = spill_request_has_id_of(request, &document->elements[i]);
    const spill_session_op_t *session;
    int64_t count, applied, entries = (int64_t)document->sessions.count;
    for (size_t i = 0; (session = spill_request_session_at(request, i, &count)) != NULL; i++) {
        spill_session_entry_t after;
        uint8_t key[SPILL_SESSION_KEY_BYTES];
        spill_session_key(session, key);
        const spill_session_entry_t *own = spill_sessions_find(&step->sessions, key);
        entries += own == NULL;
        if (!own)
            own = spill_sessions_find(&document->sessions, key);
        spill_session_verdict_t verdict =
            spill_session_judge(session, count, own, entries - 1, &applied);
        if (verdict != SPILL_SESSION_NEW) {
            seen->session = verdict;
            return;
        }
        spill_session_apply(session, count, own, clock->now_us(clock->context), &after);
        spill_sessions_put(&step->sessions, &after);
    }
}

static void gather_facts(const model_store_t *model, step_t *step)
{
    const spill_request_t *request = step->request;
    const model_document_t *document = step->document;
    const spill_clock_t *clock = &model->base.options.clock;
    if (spill_needs_time(request))
        step->facts.now_us = clock->now_us(clock->context);
    step->facts.dropped_rev = model->dropped_rev;
    step->facts.size_of = size_of;
    step->facts.context = step->document;
    see(model, step);
    bool found = spill_request_is_change(request) &&
                 model_document_find(document, request->change.seq, &step->index);
    step->facts.old_bytes =
        found ? model_document_bytes(document, step->index, step->index + 1) : -1;
    if (spill_needs_window_stats(request)) {
        spill_request_t all = {.read = {.want = SPILL_WANT_FORWARD, .limit = INT64_MAX}};
        spill_run_t run = {0};
        model_document_read(document, &all, &run);
        step->facts.window_stats = spill_window_stats_after(request, &run);
        spill_run_release(&run);
    }
    if (spill_needs_journal(request)) {
        spill_request_t all = {.read = {.want = SPILL_WANT_FORWARD, .limit = INT64_MAX}};
        model_document_read(document, &all, &step->all);
        spill_top_note(&step->journal, request->definition, &step->all);
        step->facts.journal = &step->journal;
    }
    if (request->kind == SPILL_REQUEST_CUT && request->cut.run)
        step->facts.differs = differs(document, request);
    if (spill_request_recounts_elements(request)) {
        step->facts.measured = true;
        step->facts.live = (int64_t)document->count;
        step->facts.live_bytes = model_document_bytes(document, 0, document->count);
    }
    if (request->kind == SPILL_REQUEST_TRIM)
        step->facts.erased_bytes = model_document_bytes(
            document, 0, model_document_position(document, request->change.watermark));
}

static spill_code_t make_fields(const model_store_t *model, step_t *step, spill_error_t *error)
{
    const spill_request_t *request = step->request;
    step->fields = model_copy_fields(model, request);
    spill_code_t code = SPILL_OK;
    if (!step->document->state.present)
        code = spill_unmanaged_check(request->definition, step->fields, error);
    if (code == SPILL_OK && !step->document->state.present)
        code = spill_unmanaged_prepare(request->definition, &step->fields,
                                       &step->facts.around_bytes, error);
    const bson_t *update = spill_request_update(request);
    if (code == SPILL_OK && update)
        code = spill_update_replace(&step->fields, update, error);
    if (code == SPILL_OK)
        step->facts.fields_bytes = step->fields->len;
    return code;
}

/* ADOPT and ADOPT_SPLIT remove the array from the fields; UNMANAGE adds it. */
static spill_code_t move_array(const model_store_t *model, step_t *step, spill_error_t *error)
{
    const spill_request_t *request = step->request;
    bson_t *fields = model_copy_fields(model, request);
    int64_t added;
    spill_code_t code = spill_unmanaged_allows(request, fields, error);
    if (request->kind == SPILL_REQUEST_UNMANAGE) {
        spill_request_t all = {.read = {.want = SPILL_WANT_FORWARD, .limit = INT64_MAX}};
        spill_run_t own = {0};
        model_document_read(step->document, &all, &own);
        step->fields =
            spill_unmanaged_join(request->definition, fields, request->unmanage.run, &own);
        spill_run_release(&own);
    } else {
        step->fields = spill_unmanaged_split(request->definition, fields, &step->unmanaged);
        step->facts.unmanaged = step->fields ? &step->unmanaged : NULL;
        if (code == SPILL_OK && step->fields)
            code = spill_unmanaged_prepare(request->definition, &step->fields, &added, error);
        if (request->kind == SPILL_REQUEST_ADOPT_SPLIT)
            step->facts.differs = !spill_unmanaged_cut(&step->unmanaged, request->adopt.run);
    }
    step->facts.fields_bytes = step->fields ? step->fields->len : 0;
    bson_destroy(fields);
    return code;
}

static void fill(model_document_t *document, const spill_request_t *request, const spill_run_t *run)
{
    model_document_remove(document, 0, document->count);
    for (size_t i = 0; run && i < run->count; i++) {
        spill_element_t element = spill_run_element(run, i);
        model_document_insert(document, document->count, &element.value);
    }
    document->ops.count = 0;
    if (request->kind == SPILL_REQUEST_CREATE_PAGE && request->create_page.ops)
        spill_ops_copy(request->create_page.ops, &document->ops);
}

/* Top-N capped: keep the old elements, in `all`, and the new ones, except the deleted ones. */
static void keep_top_n(model_document_t *document, const spill_request_t *request,
                       const spill_run_t *all, int64_t first)
{
    for (size_t i = all->count; i > 0; i--)
        if (spill_is_deleted(&document->state, all->entries[i - 1].seq))
            model_document_remove(document, i - 1, 1);
    for (size_t i = 0; i < request->append.element_count; i++)
        if (!spill_is_deleted(&document->state, spill_request_seq(request, first, i)))
            model_document_insert(document, document->count, &request->append.elements[i]);
}

static void keep_newest(model_document_t *document, const spill_request_t *request,
                        const spill_effect_t *effect)
{
    int64_t added = 0;
    for (size_t i = 0; i < request->append.element_count; i++)
        added += spill_request_seq(request, effect->seq, i) >= effect->end;
    model_document_remove(document, 0,
                          document->count + (size_t)added - (size_t)document->state.live);
    for (size_t i = request->append.element_count - (size_t)added;
         i < request->append.element_count; i++)
        model_document_insert(document, document->count, &request->append.elements[i]);
}

static void add_elements(const step_t *step, const spill_effect_t *effect)
{
    const spill_request_t *request = step->request;
    model_document_t *document = step->document;
    if (spill_schema_of(request->definition)->keeps_top_n)
        keep_top_n(document, request, &step->all, effect->seq);
    else
        keep_newest(document, request, effect);
    if (!request->append.op)
        return;
    spill_op_entry_t entry = {
        .ordinal = document->state.op_count - 1,
        .seq = request->append.seqs ? 0 : effect->seq,
        .count = spill_request_numbers(request),
        .id_bytes = (uint8_t)request->append.op->id_bytes,
    };
    memcpy(entry.id, request->append.op->id, request->append.op->id_bytes);
    spill_ops_push(&document->ops, &entry, (size_t)request->definition->op_window);
}

/* Update the elements after the transition has updated the state. */
static void carry_out(step_t *step, const spill_effect_t *effect)
{
    const spill_request_t *request = step->request;
    model_document_t *document = step->document;
    switch (effect->kind) {
    case SPILL_EFFECT_NONE:
    case SPILL_EFFECT_DROP:
        break;
    case SPILL_EFFECT_ADD:
        add_elements(step, effect);
        break;
    case SPILL_EFFECT_REPLACE:
        model_document_replace(document, step->index, request->change.element);
        break;
    case SPILL_EFFECT_DELETE:
        model_document_remove(document, step->index, 1);
        break;
    case SPILL_EFFECT_CUT:
    case SPILL_EFFECT_ERASE:
        model_document_remove(document, 0, document->count - (size_t)document->state.live);
        break;
    case SPILL_EFFECT_FILL:
        fill(document, request,
             step->facts.unmanaged ? step->facts.unmanaged : spill_request_run(request));
        break;
    }
}

static void commit(model_store_t *model, step_t *step, const spill_effect_t *effect)
{
    if (step->fields)
        model_set_fields(model, step->request, step->fields);
    step->fields = NULL;
    if (effect->kind == SPILL_EFFECT_DROP) {
        step->document->state.page = step->request->page; /* the key of the page */
        model_drop_document(model, step->request, step->document);
        return;
    }
    carry_out(step, effect);
    assert(step->document->state.live == (int64_t)step->document->count);
    if (step->document == &step->fresh) {
        model_add_document(model, step->request, &step->fresh);
        step->fresh = (model_document_t){0};
    } else if (effect->kind == SPILL_EFFECT_FILL || effect->kind == SPILL_EFFECT_ERASE ||
               step->request->kind == SPILL_REQUEST_RECOUNT) {
        /* The step may have changed the incarnation or the first number of a page. */
        model_find_owner(model, step->request)->sorted = false;
    }
}

spill_code_t model_change(model_store_t *model, const spill_request_t *request,
                          spill_response_t *response, spill_error_t *error)
{
    spill_request_t dated;
    request = spill_request_dated(request, model->dropped_rev, &dated);
    step_t step = {.request = request, .document = model_find_document(model, request)};
    if (!step.document)
        step.document = &step.fresh;
    int64_t rev = step.document->state.rev;
    gather_facts(model, &step);
    spill_code_t code = SPILL_OK;
    if (spill_writes_fields(request, &step.document->state, &step.facts.seen))
        code = make_fields(model, &step, error);
    if (code == SPILL_OK && spill_moves_array(request))
        code = move_array(model, &step, error);
    spill_effect_t effect;
    if (code == SPILL_OK)
        response->outcome = spill_transition(request, &step.facts, &step.document->state, &effect);
    if (code == SPILL_OK && response->outcome == SPILL_DONE) {
        if (request->kind == SPILL_REQUEST_APPEND) {
            spill_state_copy(&step.document->state, &response->state);
            response->seq = effect.seq;
            response->crowded_out = effect.crowded_out;
        }
        for (size_t i = 0; i < step.sessions.count; i++)
            spill_sessions_put(&step.document->sessions, &step.sessions.entries[i]);
        if (request->kind == SPILL_REQUEST_FORGET)
            spill_sessions_forget(&step.document->sessions, request->forget.horizon_us,
                                  step.facts.now_us);
        if (spill_ends_incarnation(request) && rev > model->dropped_rev)
            model->dropped_rev = rev;
        commit(model, &step, &effect);
    }
    bson_destroy(step.fields);
    spill_sessions_release(&step.sessions);
    spill_top_release(&step.journal);
    spill_run_release(&step.all);
    spill_run_release(&step.unmanaged);
    model_document_release(&step.fresh);
    return code;
}
