/*
 * The guards of updates, as filters: the document has room for an append, or has not changed since
 * it was read.
 */
#include "store/mongo/guarded.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>

/*
 * ---- room: spill_limits_fit, computed by the server. The sum is that of
 * spill_document_base_bytes (store/state.h), to the byte, with sizes that the server measures.
 */

/* spill_array_framing (store/state.h) of variable + more: three bytes each, and longer indices. */
static bson_t *framing(const char *variable, int64_t more)
{
    bson_t *sum = bson_new();
    bson_t terms;
    BSON_APPEND_ARRAY_BEGIN(sum, "$add", &terms);
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *count = BCON_NEW("$add", "[", BCON_UTF8(variable), BCON_INT64(more), "]");
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *each = BCON_NEW("$multiply", "[", BCON_INT64(3), BCON_DOCUMENT(count), "]");
    BSON_APPEND_DOCUMENT(&terms, "0", each);
    uint32_t index = 1;
    for (int64_t power = 10; power <= 1000000; power *= 10) {
        char buffer[16];
        const char *key;
        bson_t *longer = BCON_NEW("$max", "[", BCON_INT64(0), "{", "$add", "[", BCON_UTF8(variable),
                                  BCON_INT64(more - power), "]", "}", "]");
        bson_uint32_to_string(index++, &key, buffer, sizeof buffer);
        BSON_APPEND_DOCUMENT(&terms, key, longer);
        bson_destroy(longer);
    }
    bson_append_array_end(sum, &terms);
    return sum;
}

/* All terms except the base, with the sizes that spill_mongo_project_state measures. */
static bson_t *document_bytes(const spill_mongo_document_t *document)
{
    enum { EMPTY_DOCUMENT = 5 };
    const spill_request_t *request = document->request;
    int64_t base = spill_document_base_bytes(request->definition, request->owner, document->head) +
                   request->append.elements_bytes + spill_fields_growth(request) -
                   SPILL_MONGO_EMPTY_ARRAY;
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *after = framing("$$live", (int64_t)request->append.element_count);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *before = framing("$$live", 0);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *deleted = framing("$$deleted", 0);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *ops = framing("$$ops", 0);
    bson_t *sum =
        BCON_NEW("$add", "[", BCON_INT64(base + (document->head ? EMPTY_DOCUMENT : 0)), "$$array",
                 BCON_DOCUMENT(after), "{", "$multiply", "[", BCON_INT64(-1), BCON_DOCUMENT(before),
                 "]", "}", BCON_DOCUMENT(deleted), "{", "$multiply", "[",
                 BCON_INT64(SPILL_NUMBER_BYTES), "$$deleted", "]", "}", BCON_DOCUMENT(ops), "{",
                 "$multiply", "[", BCON_INT64(SPILL_OP_BYTES), "$$ops", "]", "}", "$$root", "{",
                 "$multiply", "[", BCON_INT64(-1), "$$own", "]", "}", "]");
    return sum;
}

/* The variables of the sum. */
static bson_t *variables(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    char array[SPILL_MONGO_PATH_SIZE + 1], path[SPILL_MONGO_PATH_SIZE];
    snprintf(array, sizeof array, "$%s", document->array);
    bson_t *vars = bson_new();
    spill_mongo_append_length(array, "live", vars);
    spill_mongo_append_length(spill_mongo_ref(document, SPILL_STORED_DELETED, path), "deleted",
                              vars);
    BCON_APPEND(vars, "ops", "{", "$max", "[", BCON_INT64(1), "{", "$min", "[", "{", "$add", "[",
                BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_OP_COUNT, path)),
                BCON_INT64(spill_request_ops(request)), "]", "}",
                BCON_INT64(request->definition->op_window), "]", "}", "]", "}", "array", "{",
                "$bsonSize", "{", "a", "{", "$ifNull", "[", BCON_UTF8(array), "[", "]", "]", "}",
                "}", "}");
    if (document->head) {
        BCON_APPEND(vars, "root", "{", "$bsonSize", "$$ROOT", "}");
        spill_mongo_append_own_size(request->definition, true, "own", vars);
    } else {
        BCON_APPEND(vars, "root", BCON_INT64(0), "own", BCON_INT64(0));
    }
    return vars;
}

void spill_mongo_append_room(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->append.element_count;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *vars = variables(document);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *bytes = document_bytes(document);
    char deleted[SPILL_MONGO_PATH_SIZE], first[SPILL_MONGO_PATH_SIZE];
    /* A single element may fill a document up to the size limit. */
    int64_t alone = count == 1 ? SPILL_DOCUMENT_BYTES_MAX : request->limits.bytes_max;
    BCON_APPEND(filter, "$expr", "{", "$let", "{", "vars", BCON_DOCUMENT(vars), "in", "{", "$and",
                "[", "{", "$lte", "[", "{", "$add", "[", "$$live", "$$deleted", BCON_INT64(count),
                "]", "}", BCON_INT64(request->limits.slots_max), "]", "}", "{", "$lt", "[", "{",
                "$max", BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_DELETED, deleted)), "}",
                "{", "$add", "[", BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_FIRST, first)),
                "$$live", "$$deleted", "]", "}", "]", "}", "{", "$lte", "[", BCON_DOCUMENT(bytes),
                "{", "$cond", "[", "{", "$eq", "[", "$$live", BCON_INT64(0), "]", "}",
                BCON_INT64(alone), BCON_INT64(request->limits.bytes_max), "]", "}", "]", "}", "]",
                "}", "}", "}");
}

void spill_mongo_append_same_numbers(const spill_mongo_document_t *document,
                                     const spill_state_t *state, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(spill_mongo_destroy) bson_t *live = spill_mongo_live(document);
    bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_INCARNATION, path), -1,
                      state->incarnation);
    bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_REV, path), -1, state->rev);
    BCON_APPEND(filter, "$expr", "{", "$eq", "[", BCON_DOCUMENT(live), BCON_INT64(state->live), "]",
                "}");
}

/* ---- ids that are to be kept once ------------------------------------------------------------ */

/* An expression: the ids of the array's elements. */
static bson_t *ids_of_array(const spill_mongo_document_t *document)
{
    char array[SPILL_MONGO_PATH_SIZE + 1], field[SPILL_MONGO_THIS_ID_SIZE];
    snprintf(array, sizeof array, "$%s", document->array);
    spill_mongo_this_id(document->request->definition, field);
    if (spill_is_whole_element(document->request->definition->id_field))
        return BCON_NEW("$ifNull", "[", BCON_UTF8(array), "[", "]", "]");
    /* $map would make the id null of an element that has none. */
    return BCON_NEW("$map", "{", "input", "{", "$filter", "{", "input", "{", "$ifNull", "[",
                    BCON_UTF8(array), "[", "]", "]", "}", "as", "this", "cond", "{", "$ne", "[",
                    "{", "$type", BCON_UTF8(field), "}", "missing", "]", "}", "}", "}", "as",
                    "this", "in", BCON_UTF8(field), "}");
}

/* An expression: the array has none of the ids of the appended elements. */
static bson_t *has_no_id(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *ids = ids_of_array(document);
    SPILL_SCOPED(bson_destroy) bson_t own = BSON_INITIALIZER;
    bson_t list;
    BSON_APPEND_ARRAY_BEGIN(&own, "$literal", &list);
    for (size_t i = 0; i < request->append.element_count; i++) {
        char buffer[16];
        const char *key;
        spill_value_t id;
        spill_element_id(&request->append.elements[i], request->definition->id_field, &id);
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        spill_value_append(&id, &list, key);
    }
    bson_append_array_end(&own, &list);
    return BCON_NEW("$eq", "[", "{", "$setIntersection", "[", BCON_DOCUMENT(ids),
                    BCON_DOCUMENT(&own), "]", "}", "[", "]", "]");
}

static bson_t *search_condition(const spill_mongo_document_t *document)
{
    const spill_searched_t *searched = document->request->append.searched;
    char epoch[SPILL_MONGO_PATH_SIZE], pages[SPILL_MONGO_PATH_SIZE];
    SPILL_SCOPED(spill_mongo_destroy) bson_t *none = has_no_id(document);
    return BCON_NEW("$and", "[", "{", "$eq", "[",
                    BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_INCARNATION, epoch)),
                    BCON_INT64(searched->incarnation), "]", "}", "{", "$eq", "[",
                    BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_PAGES, pages)),
                    BCON_INT64(searched->pages), "]", "}", BCON_DOCUMENT(none), "]");
}

void spill_mongo_append_search_guard(const spill_mongo_document_t *document, bson_t *filter)
{
    if (document->request->kind != SPILL_REQUEST_APPEND || !document->request->append.searched)
        return;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *condition = search_condition(document);
    /* Other guards of one filter use $and, $nor and $expr. */
    BCON_APPEND(filter, "$or", "[", "{", "$expr", BCON_DOCUMENT(condition), "}", "]");
}

/* ---- quick appends --------------------------------------------------------------------------- */

/* QUICK_PART: quick appends leave this part of the bound free; the largest one has as many bytes.
 */
enum { QUICK_PART = 8, LONGEST_FRAMING = 2 + 7, PLACES_MAX = 1000000000, OPEN_NAME_SIZE = 48 };

static int64_t quick_bytes(const spill_request_t *request)
{
    return request->limits.bytes_max / QUICK_PART;
}

/* The size up to which the document is open. The rest is for one more quick append, and for all
 * operations and bookkeeping that the document may get. */
static int64_t open_bytes(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    spill_state_t full = {.op_count = request->definition->op_window};
    return request->limits.bytes_max - quick_bytes(request) -
           spill_state_document_bytes(request->definition, request->owner, document->head, &full, 0,
                                      0);
}

/* "b1048576": the bound in bytes; for a page also its incarnation, "b1048576e17". */
static const char *open_name(const spill_mongo_document_t *document, int64_t incarnation,
                             char name[OPEN_NAME_SIZE])
{
    long long bytes_max = document->request->limits.bytes_max;
    if (document->head)
        snprintf(name, OPEN_NAME_SIZE, "b%lld", bytes_max);
    else
        snprintf(name, OPEN_NAME_SIZE, "b%llde%lld", bytes_max, (long long)incarnation);
    return name;
}

bool spill_mongo_is_quick(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    int64_t count = (int64_t)request->append.element_count;
    return request->append.elements_bytes + spill_fields_growth(request) +
                   LONGEST_FRAMING * count <=
               quick_bytes(request) &&
           count <= request->limits.slots_max && request->limits.slots_max < PLACES_MAX &&
           open_bytes(document) > 0;
}

/*
 * Servers need more time to plan a query with more than two conditions. So there are two: the place
 * of the last slot is free (or the array has the length of the hint), and one expression with the
 * comparison of the size and, for operations, what else must hold.
 */
void spill_mongo_append_quick_guard(const spill_mongo_document_t *document,
                                    const spill_mongo_hint_t *hint, bson_t *filter)
{
    const spill_request_t *request = document->request;
    char place[SPILL_NAME_SIZE + 24], open[SPILL_MONGO_PATH_SIZE];
    char name[OPEN_NAME_SIZE], limit[SPILL_MONGO_PATH_SIZE + OPEN_NAME_SIZE];
    snprintf(place, sizeof place, "%s.%lld", document->array,
             (long long)request->limits.slots_max - (long long)request->append.element_count);
    snprintf(limit, sizeof limit, "%s.%s", spill_mongo_ref(document, SPILL_STORED_OPEN, open),
             open_name(document, request->incarnation, name));
    if (hint)
        BCON_APPEND(filter, document->array, "{", "$size", BCON_INT64(hint->length), "}");
    else
        BCON_APPEND(filter, place, "{", "$exists", BCON_BOOL(false), "}");
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *small = BCON_NEW("$lte", "[", "{", "$bsonSize", "$$ROOT", "}", BCON_UTF8(limit), "]");
    spill_mongo_append_seen_guard(document, false, filter);
    spill_mongo_append_search_guard(document, filter);
    int64_t count;
    bool session = spill_request_session_at(request, 0, &count) != NULL;
    if (spill_request_ops(request) == 0 && !session) {
        BSON_APPEND_DOCUMENT(filter, "$expr", small);
        return;
    }
    bson_t expression, all;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "$expr", &expression);
    BSON_APPEND_ARRAY_BEGIN(&expression, "$and", &all);
    BSON_APPEND_DOCUMENT(&all, "0", small);
    if (session)
        spill_mongo_append_session_conditions(document, 1, &all);
    else
        spill_mongo_append_op_conditions(document, 1, &all);
    bson_append_array_end(&expression, &all);
    bson_append_document_end(filter, &expression);
}

void spill_mongo_append_open(const spill_mongo_document_t *document, int64_t incarnation,
                             const char *field, bson_t *to)
{
    char name[OPEN_NAME_SIZE];
    int64_t bytes = open_bytes(document);
    if (bytes > 0)
        BCON_APPEND(to, field, "{", open_name(document, incarnation, name),
                    BCON_INT32((int32_t)bytes), "}");
}

/* ---- the slots hold the run ------------------------------------------------------------------ */

void spill_mongo_append_same_run(const spill_mongo_document_t *document, uint32_t number,
                                 bson_t *all)
{
    static const spill_run_t none = {0};
    const spill_run_t *run = spill_request_run(document->request);
    int64_t bytes =
        SPILL_MONGO_EMPTY_ARRAY + spill_run_bytes(run) + spill_array_framing((int64_t)run->count);
    char keys[2][12];
    bson_t *live = spill_mongo_live(document);
    bson_t *rank = BCON_NEW("$literal", BCON_INT64(0));
    bson_t *count = BCON_NEW("$literal", BCON_INT64((int64_t)run->count));
    bson_t *slice = spill_mongo_slice(document, live, rank, count);
    bson_t same, sides, expected;
    for (uint32_t i = 0; i < 2; i++)
        snprintf(keys[i], sizeof keys[i], "%u", number + i);
    BCON_APPEND(all, keys[0], "{", "$eq", "[", "{", "$bsonSize", "{", "a", BCON_DOCUMENT(slice),
                "}", "}", BCON_INT64(bytes), "]", "}");
    bson_append_document_begin(all, keys[1], -1, &same);
    BSON_APPEND_ARRAY_BEGIN(&same, "$eq", &sides);
    BSON_APPEND_DOCUMENT(&sides, "0", slice);
    BSON_APPEND_DOCUMENT_BEGIN(&sides, "1", &expected);
    spill_unmanaged_append(document->request->definition, "$literal", run, &none, &expected);
    bson_append_document_end(&sides, &expected);
    bson_append_array_end(&same, &sides);
    bson_append_document_end(all, &same);
    bson_destroy(slice);
    bson_destroy(count);
    bson_destroy(rank);
    bson_destroy(live);
}

/*
 * CUT with a run: the head is still as in `before`, and the slots to cut hold the run's elements.
 * Two numbers of one value and size are equal, whatever their type. `assumed`: the head was not
 * read, and has no deleted numbers.
 */
static void append_cut_guard(const spill_mongo_document_t *document, const spill_state_t *before,
                             bool assumed, bson_t *filter)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{SPILL_STORED_INCARNATION, before->incarnation},
                   {SPILL_STORED_REV, before->rev},
                   {SPILL_STORED_PAGES, before->pages},
                   {SPILL_STORED_FIRST, before->first}};
    char path[SPILL_MONGO_PATH_SIZE], key[8];
    bson_t expression, all;
    uint32_t count = 0;
    BSON_APPEND_DOCUMENT_BEGIN(filter, "$expr", &expression);
    BSON_APPEND_ARRAY_BEGIN(&expression, "$and", &all);
    for (; count < sizeof numbers / sizeof *numbers; count++) {
        snprintf(key, sizeof key, "%u", count);
        BCON_APPEND(&all, key, "{", "$eq", "[",
                    BCON_UTF8(spill_mongo_ref(document, numbers[count].name, path)),
                    BCON_INT64(numbers[count].value), "]", "}");
    }
    if (assumed)
        BCON_APPEND(&all, "4", "{", "$eq", "[", "{", "$type",
                    BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_DELETED, path)), "}",
                    "missing", "]", "}");
    spill_mongo_append_same_run(document, assumed ? 5 : 4, &all);
    bson_append_array_end(&expression, &all);
    bson_append_document_end(filter, &expression);
}

/* ---- nothing has changed since it was read --------------------------------------------------- */

static const spill_schema_t *schema(const spill_mongo_step_t *step)
{
    return spill_schema_of(step->request->definition);
}

/* Does the write depend on the end of the array? Then the guard excludes appends in between. */
static bool depends_on_end(const spill_mongo_step_t *step)
{
    /* Statistics are computed from the elements that were read. */
    if (schema(step)->has_windows &&
        (step->effect.kind != SPILL_EFFECT_NONE || spill_request_recounts_elements(step->request)))
        return true;
    switch (step->request->kind) {
    case SPILL_REQUEST_RECOUNT:
        return step->request->recount.range;
    case SPILL_REQUEST_TRIM:
        return step->request->change.begins;
    case SPILL_REQUEST_SEAL:
    case SPILL_REQUEST_EDIT:
    case SPILL_REQUEST_EMPTY_PAGE:
    case SPILL_REQUEST_DROP_PAGE:
        return step->effect.kind != SPILL_EFFECT_DROP;
    default:
        return false;
    }
}

/* The guard of a state that was not read. */
static void append_assumed(const spill_mongo_step_t *step, bson_t *filter)
{
    const spill_mongo_document_t *document = &step->document;
    char deleted[SPILL_MONGO_PATH_SIZE], sealed[SPILL_MONGO_PATH_SIZE];
    char last[SPILL_MONGO_PATH_SIZE + 24];
    snprintf(last, sizeof last, "%s.%lld", document->array, (long long)step->read->state.live - 1);
    BCON_APPEND(filter, spill_mongo_path(document, SPILL_STORED_DELETED, deleted), "{", "$exists",
                BCON_BOOL(false), "}", spill_mongo_path(document, SPILL_STORED_SEALED, sealed), "{",
                "$ne", BCON_BOOL(true), "}", last, "{", "$exists", BCON_BOOL(true), "}");
}

/* The array has this length. An absent array is an empty one, which $size does not match. */
static void append_length(const spill_mongo_document_t *document, int64_t live, bson_t *filter)
{
    char first[SPILL_MONGO_PATH_SIZE + 2];
    snprintf(first, sizeof first, "%s.0", document->array);
    if (live > 0)
        BCON_APPEND(filter, document->array, "{", "$size", BCON_INT64(live), "}");
    else
        BCON_APPEND(filter, first, "{", "$exists", BCON_BOOL(false), "}");
}

/* With the length, and `first` in a capped head, this excludes every change of elements. */
static void append_append_guard(const spill_mongo_step_t *step, bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    if (!schema(step)->keeps_top_n)
        append_length(&step->document, step->read->state.live, filter);
    spill_mongo_append_search_guard(&step->document, filter);
    if (schema(step)->has_windows)
        BCON_APPEND(filter, spill_mongo_path(&step->document, SPILL_STORED_SEALED, path), "{",
                    "$ne", BCON_BOOL(true), "}");
    if (spill_request_ops(step->request) > 0)
        spill_mongo_append_op_guard(&step->document, filter);
}

/* The guard of all other requests. Most allow appends in between, which do not raise `rev`. */
static void append_change_guard(const spill_mongo_step_t *step, bson_t *filter)
{
    const spill_mongo_document_t *document = &step->document;
    const spill_state_t *before = &step->read->state;
    char path[SPILL_MONGO_PATH_SIZE];
    if (before->lease > 0)
        bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_LEASE, path), -1,
                          before->lease);
    if (document->head) {
        bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_PAGES, path), -1,
                          before->pages);
        if (!schema(step)->appends_to_head && !step->assumed)
            bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_TOTAL, path), -1,
                              before->total);
    }
    bool summary = spill_mongo_summary_changes(document, before, &step->after);
    if (step->assumed)
        append_assumed(step, filter);
    else if ((depends_on_end(step) || summary) && !schema(step)->keeps_top_n &&
             (document->head || !document->referenced)) /* a page of one element has no array */
        append_length(&step->document, step->read->state.live, filter);
}

/*
 * The document still has the length and the deleted numbers that were read. With `first` and `rev`
 * this excludes each change of a top-N head, because each append uses numbers.
 */
static void append_numbers(const spill_mongo_document_t *document, const spill_state_t *state,
                           bson_t *filter)
{
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_path(document, spill_mongo_deleted_name(state), path);
    append_length(document, state->live, filter);
    if (state->deleted.count > 0)
        spill_render_deleted(filter, path, &state->deleted, state->gaps);
    else
        BCON_APPEND(filter, path, "{", "$exists", BCON_BOOL(false), "}");
}

void spill_mongo_unchanged(const spill_mongo_step_t *step, bson_t *filter)
{
    const spill_mongo_document_t *document = &step->document;
    const spill_state_t *before = &step->read->state;
    bool cut = step->request->kind == SPILL_REQUEST_CUT;
    char path[SPILL_MONGO_PATH_SIZE];
    spill_mongo_select(document, filter);
    if (document->head || spill_mongo_is_bucket(document))
        spill_mongo_append_viable(document->request->definition, filter);
    if (cut && step->request->cut.run) {
        append_cut_guard(document, before, step->assumed, filter);
        return;
    }
    bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_INCARNATION, path), -1,
                      before->incarnation);
    bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_REV, path), -1, before->rev);
    if (schema(step)->is_capped || (step->assumed && cut)) /* an append may change `first` */
        bson_append_int64(filter, spill_mongo_path(document, SPILL_STORED_FIRST, path), -1,
                          before->first);
    if (schema(step)->keeps_top_n)
        append_numbers(document, before, filter);
    if (step->request->kind == SPILL_REQUEST_APPEND)
        append_append_guard(step, filter);
    else
        append_change_guard(step, filter);
}
