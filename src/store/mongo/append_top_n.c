/*
 * APPEND to a top-N capped head. transition.c computes which elements stay, from all of the head's
 * elements. The write requires that the head has not changed since: rev and the next number show
 * it, because each append uses numbers, also for elements that it does not keep.
 */
#include "store/mongo/mongo.h"

#include "store/render.h"
#include "store/transition.h"

static spill_code_t read_head(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    spill_request_t read = spill_request_reading(request);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    spill_response_clear(response);
    spill_code_t code = spill_mongo_read(store, &read, response, error);
    response->outcome = SPILL_REFUSED_GUARD;
    return code;
}

/* Collect the elements that stay, of those that were read and the new ones from number `first` on.
 */
static void gather(const spill_request_t *request, const spill_run_t *read, int64_t first,
                   const spill_state_t *after, spill_run_t *top_n)
{
    for (size_t i = 0; i < read->count; i++) {
        spill_element_t element = spill_run_element(read, i);
        if (!spill_is_deleted(after, element.seq))
            spill_run_add(top_n, element.seq, &element.value);
    }
    first += request->append.skip;
    for (size_t i = 0; i < request->append.element_count; i++)
        if (!spill_is_deleted(after, first + (int64_t)i))
            spill_run_add(top_n, first + (int64_t)i, &request->append.elements[i]);
}

/* Is the array unchanged? */
static bool is_same(const spill_run_t *read, const spill_run_t *top_n)
{
    bool same = read->count == top_n->count;
    for (size_t i = 0; same && i < read->count; i++)
        same = read->entries[i].seq == top_n->entries[i].seq;
    return same;
}

/* Write over the head that was read, in `before`. */
static spill_code_t write_top_n(spill_mongo_t *store, const spill_mongo_document_t *document,
                                const spill_state_t *before, const spill_mongo_roll_t *roll,
                                bool *done, spill_error_t *error)
{
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t filter, update, set = BSON_INITIALIZER;
    spill_mongo_select(document, &filter);
    bson_append_int64(&filter, spill_mongo_path(document, "epoch", path), -1, before->incarnation);
    bson_append_int64(&filter, spill_mongo_path(document, "rev", path), -1, before->rev);
    bson_append_int64(&filter, spill_mongo_path(document, "first", path), -1, before->first);
    spill_mongo_append_as_numbered(document, before, &filter);
    if (spill_request_ops(document->request) > 0)
        spill_mongo_append_op_guard(document, &filter);
    spill_render_count(&set, document->count, roll->after->live);
    spill_mongo_set_deleted(document, roll->after, &set);
    spill_mongo_update_of_append(document, &set, NULL, roll, &update);
    spill_code_t code =
        spill_mongo_modify(store, document->collection, &filter, &update, NULL, NULL, done, error);
    bson_destroy(&filter);
    bson_destroy(&update);
    bson_destroy(&set);
    return code;
}

/* Append after the READ in `response`. */
static spill_code_t append_after_read(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    spill_state_t before = {0}, after = {0};
    spill_top_t ranks = {0};
    spill_run_t top_n = {0};
    spill_effect_t effect;
    spill_code_t code = SPILL_OK;
    spill_state_copy(&response->state, &before);
    spill_state_copy(&response->state, &after);
    spill_top_note(&ranks, request->definition, &response->run);
    spill_facts_t facts = {.op_seen = response->op_found,
                           .journal = &ranks,
                           .fields_bytes =
                               before.fields_bytes + spill_update_growth(request->append.update)};
    bool done = spill_transition(request, &facts, &after, &effect) == SPILL_DONE;
    if (done) {
        gather(request, &response->run, effect.seq, &after, &top_n);
        spill_mongo_roll_t roll = {
            .moved = after.first - before.first,
            .live = after.live,
            .counted = true,
            .clears = before.deleted.count > 0 && after.deleted.count == 0,
            .top_n = &top_n,
            .after = &after,
            .same = is_same(&response->run, &top_n),
        };
        if (before.present) {
            code = write_top_n(store, document, &before, &roll, &done, error);
        } else {
            code = spill_mongo_make_head(store, document, &roll, response, error);
            done = response->outcome == SPILL_DONE;
        }
    }
    if (code == SPILL_OK && done) {
        response->outcome = SPILL_DONE;
        response->seq = effect.seq;
        response->crowded_out = effect.crowded_out;
        spill_state_copy(&after, &response->state);
    }
    spill_state_release(&before);
    spill_state_release(&after);
    spill_top_release(&ranks);
    spill_run_release(&top_n);
    return code;
}

/*
 * If the head has changed between the READ and the append, another append came first: retry. If it
 * has not changed, one of the request's operations is refused.
 */
spill_code_t spill_mongo_append_top_n(spill_mongo_t *store, const spill_mongo_document_t *document,
                                      spill_response_t *response, spill_error_t *error)
{
    enum { TRIES = 100 };
    const spill_request_t *request = document->request;
    spill_code_t code = SPILL_OK;
    int64_t rev = -1, end = -1;
    for (int i = 0; code == SPILL_OK && i < TRIES && response->outcome != SPILL_DONE; i++) {
        code = read_head(store, request, response, error);
        const spill_state_t *state = &response->state;
        if (code != SPILL_OK ||
            (state->present && state->rev == rev && spill_state_end(state) == end))
            break;
        rev = state->rev;
        end = spill_state_end(state);
        response->refusal_explained =
            spill_append_refusal(request, state, response->op_found) != SPILL_REFUSAL_NONE;
        if (response->refusal_explained)
            break;
        code = append_after_read(store, document, response, error);
    }
    return code;
}
