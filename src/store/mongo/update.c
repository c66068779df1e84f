/*
 * The updates of APPEND and UPDATE_FIELDS. They are classic operators, of which a replicated server
 * logs only the changes.
 */
#include "store/mongo/mongo.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "store/render.h"

/* ---- operators ------------------------------------------------------------------------------- */

/* Operators that both Spillway and the caller may use; the caller's other operators are added. */
typedef struct update {
    bson_t set;
    bson_t increment;
    bson_t push;
    bson_t unset;
} update_t;

static void update_init(update_t *update)
{
    bson_init(&update->set);
    bson_init(&update->increment);
    bson_init(&update->push);
    bson_init(&update->unset);
}

static bool caller_operator(const bson_t *caller, const char *name, bson_t *operands)
{
    bson_iter_t iter;
    const uint8_t *data;
    uint32_t size;
    if (!caller || !bson_iter_init_find(&iter, caller, name) || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return false;
    bson_iter_document(&iter, &size, &data);
    return bson_init_static(operands, data, size) && !bson_empty(operands);
}

static void add_operator(bson_t *document, const char *name, const bson_t *ours,
                         const bson_t *caller)
{
    bson_t all, operands;
    bool more = caller_operator(caller, name, &operands);
    if (!more && (!ours || bson_empty(ours)))
        return;
    bson_append_document_begin(document, name, -1, &all);
    if (ours)
        bson_concat(&all, ours);
    if (more)
        bson_concat(&all, &operands);
    bson_append_document_end(document, &all);
}

/* Build the document of the update, and release the rest. */
static void update_finish(update_t *update, const bson_t *caller, bson_t *document)
{
    bson_init(document);
    add_operator(document, "$set", &update->set, caller);
    add_operator(document, "$inc", &update->increment, caller);
    add_operator(document, "$push", &update->push, NULL);
    add_operator(document, "$unset", &update->unset, caller);
    add_operator(document, "$min", NULL, caller);
    add_operator(document, "$max", NULL, caller);
    bson_destroy(&update->set);
    bson_destroy(&update->increment);
    bson_destroy(&update->push);
    bson_destroy(&update->unset);
}

/* ---- $push ----------------------------------------------------------------------------------- */

/* Push the operations as the newest; $slice drops the oldest of the window. */
static void push_ops(const spill_mongo_document_t *document, bson_t *push)
{
    const spill_request_t *request = document->request;
    char path[SPILL_MONGO_PATH_SIZE];
    bson_t ops;
    bson_append_document_begin(push, spill_mongo_path(document, "ops", path), -1, &ops);
    spill_mongo_append_ops(request, "$each", &ops);
    BSON_APPEND_INT32(&ops, "$position", 0);
    BSON_APPEND_INT32(&ops, "$slice", request->definition->op_window);
    bson_append_document_end(push, &ops);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* Increase the numbers that a roll changes besides the array. */
static void increment_by_roll(const spill_mongo_document_t *document,
                              const spill_mongo_roll_t *roll, update_t *parts)
{
    int64_t count = (int64_t)document->request->append.element_count - roll->moved;
    char path[SPILL_MONGO_PATH_SIZE];
    if (!roll->counted && count > 0)
        spill_render_count(&parts->increment, document->count, count);
    if (roll->moved > 0) {
        bson_append_int64(&parts->increment, spill_mongo_path(document, "first", path), -1,
                          roll->moved);
        bson_append_int64(&parts->increment, spill_mongo_path(document, "low", path), -1,
                          roll->moved);
    }
    if (roll->clears)
        BSON_APPEND_BOOL(&parts->unset,
                         spill_mongo_path(document, roll->top_n ? "gaps" : "gone", path), true);
}

void spill_mongo_update_of_append(const spill_mongo_document_t *document, const bson_t *open,
                                  const bson_t *push, const spill_mongo_roll_t *roll,
                                  bson_t *update)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->append.element_count;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    bson_concat(&parts.set, open);
    if (push)
        bson_concat(&parts.push, push);
    if (!roll || !roll->top_n)
        spill_mongo_push(document, roll, &parts.push);
    else if (!roll->same)
        spill_mongo_set_array(document, roll->top_n, &parts.set);
    if (roll)
        increment_by_roll(document, roll, &parts);
    else
        spill_render_count(&parts.increment, document->count, count);
    int64_t ops = spill_request_ops(request);
    if (ops > 0) {
        push_ops(document, &parts.push);
        bson_append_int64(&parts.increment, spill_mongo_path(document, "n", path), -1, ops);
    } else {
        BSON_APPEND_INT64(&parts.increment, spill_mongo_path(document, "ops.0.after", path),
                          spill_request_numbers(request));
    }
    update_finish(&parts, request->append.update, update);
}

/* Set the summary of a head that has only the request's elements. */
static void set_first_summary(const spill_mongo_document_t *document, bson_t *set)
{
    const spill_request_t *request = document->request;
    spill_state_t state = {.live = (int64_t)request->append.element_count};
    for (size_t i = 0; i < request->append.element_count; i++) {
        spill_sum_t value = spill_sum_of(request->definition, &request->append.elements[i]);
        spill_sum_add(&state.sum, &value);
        if (!spill_schema_of(request->definition)->has_top)
            continue;
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, (int64_t)i, &request->append.elements[i]);
        spill_top_add(&state.top, (size_t)request->definition->top_count, &entry);
    }
    spill_response_t nothing = SPILL_RESPONSE_INIT;
    spill_run_t top = {0};
    spill_top_show(&state.top, request->definition, SIZE_MAX);
    spill_mongo_gather_top(request, 0, &nothing, &state.top, &top);
    spill_mongo_set_summary(document, &state, &top, false, set);
    spill_run_release(&top);
    spill_state_release(&state);
}

void spill_mongo_update_of_new_head(const spill_mongo_document_t *document, int64_t incarnation,
                                    const spill_mongo_roll_t *roll, bson_t *update)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t first = roll ? roll->moved : 0;
    bool top_n = roll && roll->top_n;
    int64_t count =
        top_n ? (int64_t)roll->top_n->count : (int64_t)request->append.element_count - first;
    char path[SPILL_MONGO_PATH_SIZE];
    update_t parts;
    update_init(&parts);
    struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"epoch", incarnation}, {"rev", incarnation},
                   {"first", first},       {"n", spill_request_ops(request)},
                   {"pages", 0},           {"low", first},
                   {"removed", 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        bson_append_int64(&parts.set, spill_mongo_path(document, numbers[i].name, path), -1,
                          numbers[i].value);
    if (!spill_schema_of(definition)->appends_to_head)
        BSON_APPEND_INT64(&parts.set, spill_mongo_path(document, "total", path), 0);
    spill_mongo_append_ops(request, spill_mongo_path(document, "ops", path), &parts.set);
    if (document->referenced) {
        set_first_summary(document, &parts.set);
    } else {
        if (!top_n)
            spill_mongo_append_open(document, incarnation, spill_mongo_path(document, "open", path),
                                    &parts.set);
        spill_render_count(&parts.set, document->count, count);
    }
    if (top_n) {
        spill_mongo_set_array(document, roll->top_n, &parts.set);
        spill_mongo_set_deleted(document, roll->after, &parts.set);
    } else if (count > 0) {
        spill_mongo_push(document, roll, &parts.push);
    } else {
        bson_t none = BSON_INITIALIZER;
        BSON_APPEND_ARRAY(&parts.set, document->array, &none);
        bson_destroy(&none);
    }
    update_finish(&parts, request->append.update, update);
}

void spill_mongo_update_of_fields(const spill_mongo_document_t *document, bson_t *update)
{
    update_t parts;
    update_init(&parts);
    update_finish(&parts, document->request->append.update, update);
}
