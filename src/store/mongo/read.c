/* READ: one aggregation that finds a document and projects what the request wants. */
#include "store/mongo/mongo.h"

#include "bson/element.h"
#include "definition/fields.h"
#include "definition/schema.h"
#include "store/place.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- finding the document -------------------------------------------------------------------- */

/* A search for one document, or with want_beyond for two pages. */
typedef struct search {
    const spill_mongo_document_t *document;
    int64_t over;  /* SPILL_PAGE_HOLDING: pages that begin above this number */
    bool in_parts; /* the answer is several documents; see append_parts */
} search_t;

/*
 * Find the last committed page of this incarnation that begins at or below seq, by an index on
 * (owner, first); see catalog.c. With want_beyond also find the page before it, or the page that
 * begins within the next `limit` numbers.
 */
static void append_page_holding(const search_t *search, bson_t *stages)
{
    const spill_request_t *request = search->document->request;
    bool forward = request->read.want_beyond && request->read.want == SPILL_WANT_FORWARD;
    int64_t last = request->read.seq;
    if (forward && last < INT64_MAX - request->read.limit)
        last += request->read.limit;
    bson_t stage, match;
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    spill_mongo_append_page_owner(request, &match);
    BCON_APPEND(&match, "spill.first", "{", "$lte", BCON_INT64(last), "$gt",
                BCON_INT64(search->over), "}", "spill.epoch", BCON_INT64(request->incarnation));
    spill_mongo_append_pages(request->definition, request->read.pages, &match);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(stages, &stage);
    BCON_APPEND(stages, "1", "{", "$sort", "{", "spill.first", BCON_INT32(-1), "_id",
                BCON_INT32(-1), "}", "}", "2", "{", "$limit",
                BCON_INT32(request->read.want_beyond ? 2 : 1), "}");
}

/* The number of the page in which a run continues. */
static int64_t page_beyond(const spill_request_t *request, int64_t page)
{
    return request->read.want == SPILL_WANT_BACKWARD ? page - 1 : page + 1;
}

/* Match the owner's pages. If a page is one element, only its _id names the owner for certain. */
static void match_pages(const spill_mongo_document_t *document, bson_t *match)
{
    const spill_request_t *request = document->request;
    bson_t id;
    if (!document->referenced) {
        spill_mongo_append_page_owner(request, match);
        return;
    }
    BSON_APPEND_DOCUMENT_BEGIN(match, "_id", &id);
    spill_mongo_append_page_ids(request->definition, request->owner, &id);
    bson_append_document_end(match, &id);
    spill_mongo_append_shard(document, match);
}

/*
 * SPILL_PAGE_LEFT_OVER: find the last page, because a drop continues from there to the first
 * (layout/drop.c). A page of one element has its own number as `first`, so there the order of _id
 * is the same.
 */
static void append_left_over(const spill_mongo_document_t *document, bson_t *stages)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    bson_t stage, match, order;
    char first[SPILL_NAME_SIZE + 2];
    snprintf(first, sizeof first, "%s.0", definition->page_array);
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    match_pages(document, &match);
    BCON_APPEND(&match, "spill.epoch", "{", "$lte", BCON_INT64(request->incarnation), "}");
    if (spill_schema_of(definition)
            ->has_windows) /* exclude heads, which are in the same collection */
        spill_mongo_append_pages(definition, INT64_MAX, &match);
    if (!spill_schema_of(definition)->appends_to_head) /* exclude tombstones */
        BCON_APPEND(&match, first, "{", "$exists", BCON_BOOL(true), "}");
    bson_append_document_end(&stage, &match);
    bson_append_document_end(stages, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(stages, "1", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$sort", &order);
    if (!document->referenced)
        BSON_APPEND_INT32(&order, "spill.first", -1);
    BSON_APPEND_INT32(&order, "_id", -1);
    bson_append_document_end(&stage, &order);
    bson_append_document_end(stages, &stage);
    BCON_APPEND(stages, "2", "{", "$limit", BCON_INT32(1), "}");
}

static void append_document(const spill_mongo_document_t *document, bson_t *stages)
{
    const spill_request_t *request = document->request;
    bson_t stage, filter;
    BSON_APPEND_DOCUMENT_BEGIN(stages, "0", &stage);
    int64_t two[] = {request->page, page_beyond(request, request->page)};
    if (request->read.want_beyond && request->page >= 0)
        spill_mongo_select_pages(document, two, 2, &filter);
    else
        spill_mongo_select(document, &filter);
    BSON_APPEND_DOCUMENT(&stage, "$match", &filter);
    bson_destroy(&filter);
    bson_append_document_end(stages, &stage);
}

/* ---- projecting elements --------------------------------------------------------------------- */

bson_t *spill_mongo_live_below(const spill_mongo_document_t *document, int64_t seq,
                               const bson_t *live)
{
    char first[SPILL_MONGO_PATH_SIZE], deleted[SPILL_MONGO_PATH_SIZE];
    return BCON_NEW("$min", "[", BCON_DOCUMENT(live), "{", "$max", "[", BCON_INT64(0), "{",
                    "$subtract", "[", "{", "$subtract", "[", BCON_INT64(seq),
                    BCON_UTF8(spill_mongo_ref(document, "first", first)), "]", "}", "{", "$size",
                    "{", "$filter", "{", "input", "{", "$ifNull", "[",
                    BCON_UTF8(spill_mongo_ref(document, "gone", deleted)), "[", "]", "]", "}",
                    "cond", "{", "$lt", "[", "$$this", BCON_INT64(seq), "]", "}", "}", "}", "}",
                    "]", "}", "]", "}", "]");
}

/*
 * How many elements to return. With `spare`, subtract the numbers between the head and the start of
 * the run.
 */
static bson_t *run_limit(const spill_mongo_document_t *document, int64_t seq, int64_t limit,
                         const bson_t *live)
{
    const spill_request_t *request = document->request;
    char first[SPILL_MONGO_PATH_SIZE], deleted[SPILL_MONGO_PATH_SIZE], pages[SPILL_MONGO_PATH_SIZE];
    spill_mongo_ref(document, "first", first);
    spill_mongo_ref(document, "gone", deleted);
    if (!request->read.spare)
        return BCON_NEW("$literal", BCON_INT64(limit));
    bson_t *between;
    if (request->read.want == SPILL_WANT_FORWARD)
        between = BCON_NEW("$subtract", "[", BCON_UTF8(first), BCON_INT64(seq), "]");
    else
        between = BCON_NEW("$subtract", "[", BCON_INT64(seq), "{", "$add", "[", BCON_UTF8(first),
                           BCON_DOCUMENT(live), "{", "$size", "{", "$ifNull", "[",
                           BCON_UTF8(deleted), "[", "]", "]", "}", "}", "]", "}", "]");
    bson_t *left = BCON_NEW(
        "$cond", "[", "{", "$gt", "[", BCON_UTF8(spill_mongo_ref(document, "pages", pages)),
        BCON_INT64(0), "]", "}", "{", "$max", "[", BCON_INT64(0), "{", "$subtract", "[",
        BCON_INT64(limit), "{", "$max", "[", BCON_INT64(0), BCON_DOCUMENT(between), "]", "}", "]",
        "}", "]", "}", BCON_INT64(limit), "]");
    bson_destroy(between);
    return left;
}

/* Project the whole array. */
static void project_all(const spill_mongo_document_t *document, bson_t *projection)
{
    char array[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(array, sizeof array, "$%s", document->array);
    BCON_APPEND(projection, "from", "{", "$literal", BCON_INT64(0), "}", "run", "{", "$cond", "[",
                "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array), "[", "]", "]", "}");
}

/*
 * Project `run`, the elements in the order of the array, and `from`, the rank of the oldest of
 * them. Forward, `from` is the rank of seq; backward, it is `limit` elements before the end of the
 * run.
 */
static void project_run(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_request_t *request = document->request;
    bool forward = request->read.want == SPILL_WANT_FORWARD;
    bool first = forward && request->read.seq <= 0; /* no number is lower */
    int64_t limit = request->read.limit < INT32_MAX ? request->read.limit : INT32_MAX;
    int64_t seq = request->read.seq;
    if (spill_schema_of(request->definition)->keeps_top_n ||
        (first && limit == INT32_MAX && !request->read.spare)) {
        project_all(document, projection);
        return;
    }
    if (!forward && seq < INT64_MAX)
        seq++;
    bson_t *live = spill_mongo_live(document);
    bson_t *rank =
        first ? BCON_NEW("$literal", BCON_INT64(0)) : spill_mongo_live_below(document, seq, live);
    bson_t *most = run_limit(document, seq, limit, live);
    bson_t *from = forward ? bson_copy(rank)
                           : BCON_NEW("$max", "[", BCON_INT64(0), "{", "$subtract", "[",
                                      BCON_DOCUMENT(rank), BCON_DOCUMENT(most), "]", "}", "]");
    bson_t *count = forward ? bson_copy(most)
                            : BCON_NEW("$min", "[", BCON_DOCUMENT(most), BCON_DOCUMENT(rank), "]");
    bson_t *run = spill_mongo_slice(document, live, from, count);
    BCON_APPEND(projection, "from", BCON_DOCUMENT(from), "run", BCON_DOCUMENT(run));
    bson_destroy(run);
    bson_destroy(live);
    bson_destroy(rank);
    bson_destroy(most);
    bson_destroy(from);
    bson_destroy(count);
}

static void reverse(spill_run_t *run)
{
    for (size_t i = 0; i < run->count / 2; i++) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[run->count - 1 - i];
        run->entries[run->count - 1 - i] = entry;
    }
}

/* Number an ascending run whose first element has rank `from`; skip deleted numbers. */
static void number(const spill_state_t *state, int64_t from, spill_run_t *run)
{
    int64_t seq = spill_seqs_absent(&state->deleted, state->first, from);
    for (size_t i = 0; i < run->count; i++) {
        seq = spill_seqs_pass(&state->deleted, seq);
        run->entries[i].seq = seq++;
    }
}

static bool has_id(const spill_request_t *request, const spill_value_t *element)
{
    spill_buffer_t wanted = SPILL_BUFFER_INIT, own = SPILL_BUFFER_INIT;
    spill_element_id_key(request->read.id, &wanted, NULL);
    bool same = spill_element_key(element, request->definition->id_field, &own) &&
                spill_buffer_equal(&own, &wanted);
    spill_buffer_release(&wanted);
    spill_buffer_release(&own);
    return same;
}

/* Reduce all of a head's elements, ascending, to those that the request wants. */
static void choose(const spill_request_t *request, spill_run_t *run)
{
    size_t from = 0, end = run->count;
    if (request->read.want == SPILL_WANT_BACKWARD) {
        while (end > 0 && run->entries[end - 1].seq > request->read.seq)
            end--;
        if ((int64_t)end > request->read.limit)
            from = end - (size_t)request->read.limit;
    } else {
        while (from < end && run->entries[from].seq < request->read.seq)
            from++;
        if (request->read.want == SPILL_WANT_FORWARD && (int64_t)(end - from) > request->read.limit)
            end = from + (size_t)request->read.limit;
    }
    while (request->read.want == SPILL_WANT_ID && from < end) {
        spill_element_t element = spill_run_element(run, from);
        if (has_id(request, &element.value)) {
            end = from + 1;
            break;
        }
        from++;
    }
    if (from > 0) /* an empty run has no memory */
        memmove(run->entries, run->entries + from, (end - from) * sizeof *run->entries);
    run->count = end - from;
}

/* Read the elements of project_run into the run of the response. */
static bool read_run(const spill_mongo_document_t *document, const bson_t *projected,
                     const spill_state_t *state, spill_run_t *run)
{
    bson_iter_t iter, elements;
    if (!bson_iter_init_find(&iter, projected, "from"))
        return true;
    int64_t from = spill_iter_int64(&iter);
    if (!BSON_ITER_HOLDS_NUMBER(&iter) || from < -1 || from > INT32_MAX) /* -1: not found */
        return false;
    if (!bson_iter_init_find(&iter, projected, "run"))
        return true;
    if (!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &elements))
        return false;
    while (bson_iter_next(&elements)) {
        spill_value_t value = spill_value_from_iter(&elements);
        spill_run_add(run, 0, &value);
    }
    if (spill_grows_at_front(document->request->definition))
        reverse(run);
    number(state, from, run);
    if (spill_schema_of(document->request->definition)->keeps_top_n)
        choose(document->request, run);
    if (document->request->read.want == SPILL_WANT_BACKWARD)
        reverse(run);
    return true;
}

/* ---- the head's other fields ----------------------------------------------------------------- */

/* Project the whole document as `fields`, then remove the array's own fields. */
static void append_without_own(const spill_definition_t *definition, bson_t *stages,
                               const char *key)
{
    const char *own[SPILL_MONGO_OWN_FIELDS];
    size_t count = spill_mongo_own_fields(definition, own);
    bson_t stage, projection;
    bson_append_document_begin(stages, key, -1, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &projection);
    BSON_APPEND_INT32(&projection, "fields.spill", 0);
    for (size_t i = 0; i < count; i++) {
        char path[SPILL_NAME_SIZE + 8];
        snprintf(path, sizeof path, "fields.%s", own[i]);
        BSON_APPEND_INT32(&projection, path, 0);
    }
    bson_append_document_end(&stage, &projection);
    bson_append_document_end(stages, &stage);
}

static void read_fields(const bson_t *projected, bson_t **fields)
{
    bson_iter_t iter;
    if (!bson_iter_init_find(&iter, projected, "fields") || !BSON_ITER_HOLDS_DOCUMENT(&iter))
        return;
    const uint8_t *data;
    uint32_t size;
    bson_iter_document(&iter, &size, &data);
    *fields = bson_new_from_data(data, size);
}

/* ---- the whole projection -------------------------------------------------------------------- */

void spill_mongo_project_read(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_request_t *request = document->request;
    bool ops = request->kind == SPILL_REQUEST_READ && (request->read.op || request->read.want_ops);
    spill_mongo_project_state(document, ops, projection);
    if (request->read.want_now)
        BSON_APPEND_UTF8(projection, "now", "$$NOW");
    bool top_n = spill_schema_of(request->definition)->keeps_top_n;
    if (request->read.want == SPILL_WANT_ID && !top_n && (document->head || !document->referenced))
        spill_mongo_project_element(document, projection);
    else if (request->read.want != SPILL_WANT_NONE && (document->head || !document->referenced))
        project_run(document, projection);
}

static void append_projection(const spill_mongo_document_t *document, const char *key,
                              bson_t *stages)
{
    bson_t stage, projection;
    bson_append_document_begin(stages, key, -1, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &projection);
    spill_mongo_project_read(document, &projection);
    if (document->request->read.want_fields && document->head)
        BSON_APPEND_UTF8(&projection, "fields", "$$ROOT");
    bson_append_document_end(&stage, &projection);
    bson_append_document_end(stages, &stage);
}

/*
 * A projection has the state and the elements. For a document near the size limit it exceeds that
 * limit. Then the server answers with one document {r: PART} for each part: first the state, then
 * the parts below, null if there is none. One aggregation reads the document once, so the parts
 * agree.
 */
static const char *const parts[] = {"run", "element", "fields"};
enum { PARTS = sizeof parts / sizeof *parts };

static bool is_part(const char *name)
{
    for (size_t i = 0; i < PARTS; i++)
        if (strcmp(name, parts[i]) == 0)
            return true;
    return false;
}

/* `projection`: the fields that the stages before this one project. */
static void append_parts(const bson_t *projection, bson_t *stages)
{
    char buffer[16];
    const char *key;
    bson_t stage, project, array, rest;
    bson_iter_t iter;
    bson_uint32_to_string(bson_count_keys(stages), &key, buffer, sizeof buffer);
    bson_append_document_begin(stages, key, -1, &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$project", &project);
    BSON_APPEND_INT32(&project, "_id", 0);
    BSON_APPEND_ARRAY_BEGIN(&project, "r", &array);
    BSON_APPEND_DOCUMENT_BEGIN(&array, "0", &rest);
    bson_iter_init(&iter, projection);
    while (bson_iter_next(&iter))
        if (!is_part(bson_iter_key(&iter)) && strcmp(bson_iter_key(&iter), "_id") != 0)
            spill_mongo_append_reference(&rest, bson_iter_key(&iter));
    bson_append_document_end(&array, &rest);
    for (uint32_t i = 0; i < PARTS; i++) {
        char ref[16];
        snprintf(ref, sizeof ref, "$%s", parts[i]);
        bson_uint32_to_string(i + 1, &key, buffer, sizeof buffer);
        BSON_APPEND_UTF8(&array, key, ref);
    }
    bson_append_array_end(&project, &array);
    bson_append_document_end(&stage, &project);
    bson_append_document_end(stages, &stage);
    bson_uint32_to_string(bson_count_keys(stages), &key, buffer, sizeof buffer);
    BCON_APPEND(stages, key, "{", "$unwind", "$r", "}");
}

/* The parts of one document, as they arrive. */
typedef struct joined {
    bson_t projected; /* may be larger than a document */
    size_t count;
} joined_t;

static bool join_part(void *context, const bson_t *part)
{
    joined_t *joined = context;
    size_t number = joined->count++;
    bson_iter_t iter, field;
    if (number > PARTS || !bson_iter_init_find(&iter, part, "r"))
        return number < PARTS;
    if (number > 0 && !BSON_ITER_HOLDS_NULL(&iter))
        bson_append_iter(&joined->projected, parts[number - 1], -1, &iter);
    else if (number == 0 && BSON_ITER_HOLDS_DOCUMENT(&iter) && bson_iter_recurse(&iter, &field))
        while (bson_iter_next(&field))
            bson_append_iter(&joined->projected, NULL, -1, &field);
    return number < PARTS;
}

static bson_t *make_pipeline(const search_t *search)
{
    const spill_mongo_document_t *document = search->document;
    const spill_request_t *request = document->request;
    bson_t *stages = bson_new();
    if (request->page == SPILL_PAGE_HOLDING)
        append_page_holding(search, stages);
    else if (request->page == SPILL_PAGE_LEFT_OVER)
        append_left_over(document, stages);
    else if (request->page == SPILL_PAGE_WITH_ID)
        spill_mongo_match_id(document, stages);
    else
        append_document(document, stages);
    char buffer[16];
    const char *key;
    bson_uint32_to_string(bson_count_keys(stages), &key, buffer, sizeof buffer);
    append_projection(document, key, stages);
    if (request->page == SPILL_PAGE_WITH_ID && document->referenced)
        BCON_APPEND(stages, "3", "{", "$limit", BCON_INT32(1), "}");
    else if (request->page == SPILL_PAGE_WITH_ID)
        BCON_APPEND(stages, "3", "{", "$match", "{", "from", "{", "$gte", BCON_INT64(0), "}", "}",
                    "}", "4", "{", "$limit", BCON_INT32(1), "}");
    if (request->read.want_fields && document->head)
        append_without_own(request->definition, stages, "2");
    if (search->in_parts) {
        bson_t projection = BSON_INITIALIZER;
        spill_mongo_project_read(document, &projection);
        append_parts(&projection, stages);
        bson_destroy(&projection);
    }
    return stages;
}

static void look_up_op(const spill_request_t *request, spill_ops_t *ops, spill_response_t *response)
{
    const spill_op_entry_t *entry =
        spill_ops_find(ops, request->read.op->id, request->read.op->id_bytes);
    response->op_found = entry != NULL;
    if (entry)
        response->op = *entry;
}

spill_code_t spill_mongo_decode_reply(const spill_mongo_document_t *document,
                                      const bson_t *projected, spill_state_t *state,
                                      spill_run_t *run, spill_ops_t *ops, spill_error_t *error)
{
    spill_code_t code = spill_mongo_state(document, projected, state, ops, error);
    if (code == SPILL_OK && document->referenced && !document->head)
        spill_mongo_decode_referenced(document, projected, state, run);
    else if (code == SPILL_OK && (state->present || document->request->read.unmanaged))
        code = read_run(document, projected, state, run)
                   ? SPILL_OK
                   : spill_fail(error, SPILL_CORRUPT,
                                "%s: the server's answer is wrong: it has no elements of '%s'",
                                document->collection, document->array);
    return code;
}

/* The results of a search so far. */
typedef struct findings {
    const spill_mongo_document_t *document;
    spill_response_t *response;
    spill_code_t code;
    spill_error_t *error;
} findings_t;

static void read_beyond(findings_t *findings, const bson_t *projected)
{
    spill_response_t *response = findings->response;
    findings->code = spill_mongo_decode_reply(findings->document, projected, &response->beyond,
                                              &response->beyond_run, NULL, findings->error);
}

/* Does the run begin in this document, so that no element was omitted? */
static bool begins_within(const spill_request_t *request, const spill_state_t *state)
{
    return request->read.want == SPILL_WANT_FORWARD ? request->read.seq >= state->first
                                                    : request->read.seq < spill_state_end(state);
}

static void read_found(findings_t *findings, const bson_t *projected)
{
    const spill_request_t *request = findings->document->request;
    spill_response_t *response = findings->response;
    spill_ops_t ops = {0};
    findings->code = spill_mongo_decode_reply(findings->document, projected, &response->state,
                                              &response->run, &ops, findings->error);
    if (findings->code == SPILL_OK && response->state.present && request->page >= 0 &&
        response->state.page != request->page)
        findings->code = spill_fail(findings->error, SPILL_CORRUPT,
                                    "%s: the server's answer is wrong: it has another page",
                                    findings->document->collection);
    bson_iter_t now;
    if (bson_iter_init_find(&now, projected, "now") && BSON_ITER_HOLDS_DATE_TIME(&now))
        response->now_us = bson_iter_date_time(&now) * 1000;
    if (findings->code == SPILL_OK && response->state.present) {
        response->spared = request->read.spare && response->state.pages > 0 &&
                           !begins_within(request, &response->state);
        spill_mongo_decode_top_run(projected, &response->state, &response->top_run);
        read_fields(projected, &response->fields);
        if (response->fields && spill_mongo_is_bucket(findings->document))
            spill_mongo_bucket_fields(findings->document, &response->fields);
        if (request->read.op)
            look_up_op(request, &ops, response);
        if (request->read.want_ops)
            spill_ops_copy(&ops, &response->ops);
    }
    spill_ops_release(&ops);
}

/* Is it the requested document, and not the one beyond it? */
static bool is_meant(const spill_request_t *request, const bson_t *projected)
{
    bson_iter_t iter, first;
    if (!request->read.want_beyond)
        return true;
    if (request->page >= 0)
        return bson_iter_init_find(&iter, projected, "page") &&
               spill_iter_int64(&iter) == request->page;
    return bson_iter_init(&iter, projected) &&
           bson_iter_find_descendant(&iter, "state.first", &first) &&
           spill_iter_int64(&first) <= request->read.seq;
}

static bool add_document(void *context, const bson_t *projected)
{
    findings_t *findings = context;
    if (!findings->response->state.present && is_meant(findings->document->request, projected))
        read_found(findings, projected);
    else
        read_beyond(findings, projected);
    return findings->code == SPILL_OK;
}

/* READ of one document whose projection exceeds the size limit. */
static spill_code_t find_in_parts(spill_mongo_t *store, const search_t *search,
                                  spill_response_t *response, spill_error_t *error)
{
    spill_request_t alone = *search->document->request;
    spill_mongo_document_t one = *search->document;
    search_t whole = {.document = &one, .over = search->over, .in_parts = true};
    findings_t findings = {.document = &one, .response = response, .error = error};
    joined_t joined = {.projected = BSON_INITIALIZER};
    alone.read.want_beyond = false;
    one.request = &alone;
    bson_t *pipeline = make_pipeline(&whole);
    spill_response_clear(response);
    spill_code_t code = spill_mongo_each(store, one.collection, pipeline, alone.read.may_be_old,
                                         join_part, &joined, error);
    if (code == SPILL_OK && joined.count > 0)
        read_found(&findings, &joined.projected);
    bson_destroy(pipeline);
    bson_destroy(&joined.projected);
    return code == SPILL_OK ? findings.code : code;
}

static spill_code_t run_search(spill_mongo_t *store, const search_t *search,
                               spill_response_t *response, spill_error_t *error)
{
    bson_t *pipeline = make_pipeline(search);
    findings_t findings = {.document = search->document, .response = response, .error = error};
    const spill_mongo_document_t *document = search->document;
    spill_code_t code =
        spill_mongo_each(store, document->collection, pipeline, document->request->read.may_be_old,
                         add_document, &findings, error);
    bson_destroy(pipeline);
    if (code == SPILL_TOO_BIG)
        return find_in_parts(store, search, response, error);
    return code == SPILL_OK ? findings.code : code;
}

/*
 * The page that holds a number begins at most one page's length below it, unless numbers between
 * two pages were deleted. So search that range first: a server may sort all documents that it
 * finds.
 */
static spill_code_t find_holding(spill_mongo_t *store, const spill_mongo_document_t *document,
                                 spill_response_t *response, spill_error_t *error)
{
    const spill_request_t *request = document->request;
    int64_t reach = request->definition->largest.page_capacity;
    if (request->read.want_beyond && request->read.want == SPILL_WANT_BACKWARD)
        reach *= 2;
    search_t near = {.document = document, .over = request->read.seq - reach};
    search_t any = {.document = document, .over = -1};
    if (near.over < 0)
        return run_search(store, &any, response, error);
    spill_code_t code = run_search(store, &near, response, error);
    if (code != SPILL_OK || response->state.present)
        return code;
    spill_request_t alone = *request; /* there may be many short pages beyond */
    spill_mongo_document_t one = *document;
    alone.read.want_beyond = false;
    one.request = &alone;
    any.document = &one;
    spill_response_clear(response);
    return run_search(store, &any, response, error);
}

spill_code_t spill_mongo_read(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    if (request->page == SPILL_ELEMENTS)
        return spill_mongo_read_elements(store, request, response, error);
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    search_t search = {.document = &document};
    spill_code_t code = request->page == SPILL_PAGE_HOLDING
                            ? find_holding(store, &document, response, error)
                            : run_search(store, &search, response, error);
    response->outcome = SPILL_DONE;
    return code;
}
