/*
 * READ: one query that finds a document and projects what the request wants. It is a `find`, which
 * a server answers faster than an aggregation, unless a later stage needs what the projection made.
 */
#include "store/mongo/mongo_document.h"

#include "bson/element_fields.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- finding the document -------------------------------------------------------------------- */

/* A search for one document, or with want_beyond for two pages. */
typedef struct search {
    const spill_mongo_document_t *document;
    int64_t over;  /* SPILL_PAGE_HOLDING: pages that begin above this number */
    bool in_parts; /* the answer is several documents; see append_parts */
    bool computed; /* the server computes every field, whatever type the array's field has */
} search_t;

/* The documents of a search: `order` is empty if at most one matches, `limit` 0 if any number may.
 */
typedef struct query {
    bson_t filter;
    bson_t order;
    int64_t limit;
} query_t;

/*
 * Find the last committed page of this incarnation that begins at or below seq, by an index on
 * (owner, first); see catalog.c. With want_beyond also find the page before it, or the page that
 * begins within the next `limit` numbers, but no further than a page's usual length.
 */
static void find_page_holding(const search_t *search, query_t *query)
{
    const spill_request_t *request = search->document->request;
    int64_t last = spill_mongo_last_begin(request);
    spill_mongo_append_page_owner(request, &query->filter);
    BCON_APPEND(&query->filter, SPILL_STORED_PAGE_FIRST, "{", "$lte", BCON_INT64(last), "$gt",
                BCON_INT64(search->over), "}", SPILL_STORED_PAGE_INCARNATION,
                BCON_INT64(request->incarnation));
    spill_mongo_append_pages(request->definition, request->read.pages, &query->filter);
    BCON_APPEND(&query->order, SPILL_STORED_PAGE_FIRST, BCON_INT32(-1), "_id", BCON_INT32(-1));
    query->limit = request->read.want_beyond ? 2 : 1;
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
static void find_left_over(const spill_mongo_document_t *document, query_t *query)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    char first[SPILL_NAME_SIZE + 2];
    snprintf(first, sizeof first, "%s.0", definition->page_array);
    match_pages(document, &query->filter);
    BCON_APPEND(&query->filter, SPILL_STORED_PAGE_INCARNATION, "{", "$lte",
                BCON_INT64(request->incarnation), "}");
    if (spill_schema_of(definition)
            ->has_windows) /* exclude heads, which are in the same collection */
        spill_mongo_append_pages(definition, INT64_MAX, &query->filter);
    if (!spill_schema_of(definition)->appends_to_head) /* exclude tombstones */
        BCON_APPEND(&query->filter, first, "{", "$exists", BCON_BOOL(true), "}");
    if (!document->referenced)
        BSON_APPEND_INT32(&query->order, SPILL_STORED_PAGE_FIRST, -1);
    BSON_APPEND_INT32(&query->order, "_id", -1);
    query->limit = 1;
}

/* Find a page that holds the id. Only referenced pages hold one element each. */
static void find_page_with_id(const spill_mongo_document_t *document, query_t *query)
{
    spill_mongo_match_id(document, &query->filter);
    BCON_APPEND(&query->order, SPILL_STORED_PAGE_FIRST, BCON_INT32(1), "_id", BCON_INT32(1));
    query->limit = document->referenced ? 1 : 0;
}

static void find_by_number(const spill_mongo_document_t *document, query_t *query)
{
    const spill_request_t *request = document->request;
    int64_t two[] = {request->page, page_beyond(request, request->page)};
    bool both = request->read.want_beyond && request->page >= 0;
    bson_destroy(&query->filter);
    if (both)
        spill_mongo_select_pages(document, two, 2, &query->filter);
    else
        spill_mongo_select(document, &query->filter);
    query->limit = both ? 2 : 1;
}

/* ---- the whole projection -------------------------------------------------------------------- */

void spill_mongo_project_read(const spill_mongo_document_t *document, bool finds,
                              bson_t *projection)
{
    const spill_request_t *request = document->request;
    bool ops = request->kind == SPILL_REQUEST_READ && (request->read.op || request->read.want_ops);
    spill_mongo_project_state(document, ops, finds, projection);
    if (request->read.want_now)
        BSON_APPEND_UTF8(projection, "now", "$$NOW");
    if (request->kind == SPILL_REQUEST_READ && request->read.session)
        spill_mongo_project_session(document, projection);
    spill_mongo_project_run(document, finds, projection);
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

static void begin_stage(bson_t *stages, bson_t *stage)
{
    char buffer[16];
    const char *key;
    bson_uint32_to_string(bson_count_keys(stages), &key, buffer, sizeof buffer);
    bson_append_document_begin(stages, key, -1, stage);
}

/* `projection`: the fields that the stages before this one project. */
static void append_parts(const bson_t *projection, bson_t *stages)
{
    char buffer[16];
    const char *key;
    bson_t stage, project, array, rest;
    bson_iter_t iter;
    begin_stage(stages, &stage);
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
    begin_stage(stages, &stage);
    BSON_APPEND_UTF8(&stage, "$unwind", "$r");
    bson_append_document_end(stages, &stage);
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

static void query_init(query_t *query, const search_t *search)
{
    *query = (query_t){.filter = BSON_INITIALIZER, .order = BSON_INITIALIZER};
    if (search->document->request->page == SPILL_PAGE_HOLDING)
        find_page_holding(search, query);
    else if (search->document->request->page == SPILL_PAGE_LEFT_OVER)
        find_left_over(search->document, query);
    else if (search->document->request->page == SPILL_PAGE_WITH_ID)
        find_page_with_id(search->document, query);
    else
        find_by_number(search->document, query);
}

/* For SPILL_SCOPED. */
static void query_release(query_t *query)
{
    bson_destroy(&query->filter);
    bson_destroy(&query->order);
}

/* Does a stage after the projection choose between documents, or change them? */
static bool needs_stages(const search_t *search)
{
    const spill_mongo_document_t *document = search->document;
    const spill_request_t *request = document->request;
    return search->in_parts || search->computed || (request->read.want_fields && document->head) ||
           (request->page == SPILL_PAGE_WITH_ID && !document->referenced);
}

static void append_stage(const char *name, const bson_t *content, bson_t *stages)
{
    bson_t stage;
    begin_stage(stages, &stage);
    bson_append_document(&stage, name, -1, content);
    bson_append_document_end(stages, &stage);
}

static void append_limit(int64_t limit, bson_t *stages)
{
    bson_t stage;
    begin_stage(stages, &stage);
    BSON_APPEND_INT64(&stage, "$limit", limit);
    bson_append_document_end(stages, &stage);
}

/* The query as a pipeline, with the stages that follow the projection. */
static bson_t *make_pipeline(const search_t *search, const query_t *query, bson_t *projection)
{
    const spill_mongo_document_t *document = search->document;
    const spill_request_t *request = document->request;
    bool fields = request->read.want_fields && document->head;
    bson_t *stages = bson_new();
    append_stage("$match", &query->filter, stages);
    if (!bson_empty(&query->order))
        append_stage("$sort", &query->order, stages);
    if (query->limit > 0)
        append_limit(query->limit, stages);
    if (fields)
        BSON_APPEND_UTF8(projection, "fields", "$$ROOT");
    append_stage("$project", projection, stages);
    if (request->page == SPILL_PAGE_WITH_ID && !document->referenced) {
        SPILL_SCOPED(spill_mongo_destroy)
        bson_t *found = BCON_NEW("from", "{", "$gte", BCON_INT64(0), "}");
        append_stage("$match", found, stages);
        append_limit(1, stages);
    }
    if (fields) {
        SPILL_SCOPED(bson_destroy) bson_t own = BSON_INITIALIZER;
        spill_mongo_exclude_own(request->definition, &own);
        append_stage("$project", &own, stages);
    }
    if (search->in_parts)
        append_parts(projection, stages);
    return stages;
}

/* Answer the READ of a head from read-ahead; `finds`: without its other fields. */
static bool read_ahead(spill_mongo_t *store, const spill_mongo_document_t *document, bool finds,
                       const bson_t *projection, bson_t **head)
{
    SPILL_SCOPED(bson_destroy) bson_t all = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t own = BSON_INITIALIZER;
    if (finds)
        return spill_mongo_ahead_read(store, document, projection, NULL, head);
    bson_concat(&all, projection);
    BSON_APPEND_UTF8(&all, "fields", "$$ROOT");
    spill_mongo_exclude_own(document->request->definition, &own);
    return spill_mongo_ahead_read(store, document, &all, &own, head);
}

/* May the READ of pages be answered from read-ahead? Two pages of a search are one moment's. */
static bool may_be_ahead(const spill_mongo_document_t *document)
{
    const spill_request_t *request = document->request;
    return !document->head && request->page >= 0 && request->read.ahead &&
           !request->read.may_be_old && !request->read.want_beyond;
}

/* Answer a READ from read-ahead. False: it is sent alone. */
static bool visit_ahead(spill_mongo_t *store, const search_t *search, bool finds,
                        const bson_t *projection, spill_mongo_visit_fn visit, void *context)
{
    const spill_mongo_document_t *document = search->document;
    const spill_request_t *request = document->request;
    SPILL_SCOPED(spill_mongo_destroy) bson_t *found = NULL;
    bool plain = !search->in_parts && !search->computed;
    bool answered = false;
    if (plain && document->head && request->read.ahead && !request->read.may_be_old)
        answered = read_ahead(store, document, finds, projection, &found);
    else if (plain && finds && may_be_ahead(document))
        answered = spill_mongo_ahead_pages(store, document, projection, request->page,
                                           request->page + 1, &found);
    if (answered && found)
        visit(context, found);
    if (!answered && !document->head) /* a head that is read afterwards is no older */
        spill_mongo_ahead_changed(store->ahead, request->owner);
    return answered;
}

/* Call `visit` for each document that the search finds, projected. */
static spill_code_t visit_found(spill_mongo_t *store, const search_t *search,
                                spill_mongo_visit_fn visit, void *context, spill_error_t *error)
{
    const spill_mongo_document_t *document = search->document;
    bool may_be_old = document->request->read.may_be_old;
    SPILL_SCOPED(bson_destroy) bson_t projection = BSON_INITIALIZER;
    SPILL_SCOPED(query_release) query_t query;
    bool finds = !needs_stages(search);
    query_init(&query, search);
    spill_mongo_project_read(document, finds, &projection);
    if (visit_ahead(store, search, finds, &projection, visit, context))
        return SPILL_OK;
    if (!finds) {
        SPILL_SCOPED(spill_mongo_destroy)
        bson_t *pipeline = make_pipeline(search, &query, &projection);
        return spill_mongo_each(store, document->collection, pipeline, may_be_old, visit, context,
                                error);
    }
    const spill_mongo_query_t find = {&query.filter, &query.order, &projection, query.limit};
    return spill_mongo_find(store, document->collection, &find, may_be_old, visit, context, error);
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
    SPILL_TRY(spill_mongo_state(document, projected, true, state, ops, error));
    if (document->referenced && !document->head)
        spill_mongo_decode_referenced(document, projected, state, run);
    else if ((state->present || document->request->read.unmanaged) &&
             !spill_mongo_decode_run(document, projected, state, run))
        return spill_fail(error, SPILL_CORRUPT,
                          "%s: the server's answer is wrong: it has no elements of '%s'",
                          document->collection, document->array);
    return SPILL_OK;
}

/* The results of a search so far. */
typedef struct findings {
    const spill_mongo_document_t *document;
    spill_response_t *response;
    spill_code_t code;
    spill_error_t *error;
} findings_t;

static spill_code_t read_beyond(const findings_t *findings, const bson_t *projected)
{
    spill_response_t *response = findings->response;
    return spill_mongo_decode_reply(findings->document, projected, &response->beyond,
                                    &response->beyond_run, NULL, findings->error);
}

/* Does the run begin in this document, so that no element was omitted? */
static bool begins_within(const spill_request_t *request, const spill_state_t *state)
{
    return request->read.want == SPILL_WANT_FORWARD ? request->read.seq >= state->first
                                                    : request->read.seq < spill_state_end(state);
}

/* The server's time, if the request has asked for it. */
static void read_time(const bson_t *projected, spill_response_t *response)
{
    bson_iter_t now;
    if (bson_iter_init_find(&now, projected, "now") && BSON_ITER_HOLDS_DATE_TIME(&now))
        response->now_us = bson_iter_date_time(&now) * 1000;
}

static spill_code_t read_found(const findings_t *findings, const bson_t *projected)
{
    const spill_mongo_document_t *document = findings->document;
    const spill_request_t *request = document->request;
    spill_response_t *response = findings->response;
    SPILL_SCOPED(spill_ops_release) spill_ops_t ops = {0};
    SPILL_TRY(spill_mongo_decode_reply(document, projected, &response->state, &response->run, &ops,
                                       findings->error));
    if (response->state.present && request->page >= 0 && response->state.page != request->page)
        return spill_fail(findings->error, SPILL_CORRUPT,
                          "%s: the server's answer is wrong: it has another page",
                          document->collection);
    read_time(projected, response);
    if (!response->state.present)
        return SPILL_OK;
    response->spared = request->read.spare && response->state.pages > 0 &&
                       !begins_within(request, &response->state);
    spill_mongo_decode_top_run(projected, &response->state, &response->top_run);
    spill_mongo_decode_fields(projected, &response->fields);
    if (response->fields && spill_mongo_is_bucket(document))
        spill_mongo_bucket_fields(document, &response->fields);
    if (request->read.op)
        look_up_op(request, &ops, response);
    if (request->read.want_ops)
        spill_ops_copy(&ops, &response->ops);
    if (request->read.session)
        return spill_mongo_read_session(document, projected, response, findings->error);
    return SPILL_OK;
}

/* Is it the requested document, and not the one beyond it? */
static bool is_meant(const spill_mongo_document_t *document, const bson_t *projected)
{
    const spill_request_t *request = document->request;
    bson_iter_t iter, field;
    if (!request->read.want_beyond)
        return true;
    int64_t page;
    if (request->page >= 0)
        return bson_iter_init_find(&iter, projected, SPILL_MONGO_PAGE_ID) &&
               spill_mongo_read_id(request, &iter, &page) && page == request->page;
    return spill_mongo_find_state(document, projected, &iter) && bson_iter_recurse(&iter, &field) &&
           bson_iter_find(&field, "first") && spill_iter_int64(&field) <= request->read.seq;
}

static bool add_document(void *context, const bson_t *projected)
{
    findings_t *findings = context;
    if (!findings->response->state.present && is_meant(findings->document, projected))
        findings->code = read_found(findings, projected);
    else
        findings->code = read_beyond(findings, projected);
    return findings->code == SPILL_OK;
}

static void release_joined(joined_t *joined)
{
    bson_destroy(&joined->projected);
}

/* READ of one document whose projection exceeds the size limit. */
static spill_code_t find_in_parts(spill_mongo_t *store, const search_t *search,
                                  spill_response_t *response, spill_error_t *error)
{
    spill_request_t alone = *search->document->request;
    spill_mongo_document_t one = *search->document;
    search_t whole = {.document = &one, .over = search->over, .in_parts = true};
    findings_t findings = {.document = &one, .response = response, .error = error};
    SPILL_SCOPED(release_joined) joined_t joined = {.projected = BSON_INITIALIZER};
    alone.read.want_beyond = false;
    one.request = &alone;
    spill_response_clear(response);
    SPILL_TRY(visit_found(store, &whole, join_part, &joined, error));
    return joined.count > 0 ? read_found(&findings, &joined.projected) : SPILL_OK;
}

/* Did the server refuse a cheap projection, because a document's array is not an array? */
static bool is_no_array(spill_code_t code, const spill_error_t *cause)
{
    return code == SPILL_IO && cause->native == SPILL_MONGO_NO_ARRAY;
}

static spill_code_t run_search(spill_mongo_t *store, const search_t *search,
                               spill_response_t *response, spill_error_t *error)
{
    const spill_mongo_document_t *document = search->document;
    findings_t findings = {.document = document, .response = response, .error = error};
    spill_error_t cause = {0};
    spill_code_t code = visit_found(store, search, add_document, &findings, &cause);
    if (is_no_array(code, &cause)) {
        search_t computed = *search;
        computed.computed = true;
        spill_response_clear(response);
        code = visit_found(store, &computed, add_document, &findings, &cause);
    }
    if (code == SPILL_TOO_BIG)
        return find_in_parts(store, search, response, error);
    if (code != SPILL_OK && error)
        *error = cause;
    SPILL_TRY(code);
    return findings.code;
}

/*
 * The page that holds a number begins at most one page's length below it, unless numbers between
 * two pages were deleted. A server may read and sort all documents that it finds; the DocumentDB
 * engine does. So search a short range below the number first, of the owner's usual page length.
 * While it has no page, search a range eight times as long.
 */
static spill_code_t find_holding(spill_mongo_t *store, const spill_mongo_document_t *document,
                                 spill_response_t *response, spill_error_t *error)
{
    enum { GROW = 8 };
    const spill_request_t *request = document->request;
    int64_t seq = request->read.seq, reach = spill_mongo_usual_reach(request);
    spill_request_t alone = *request; /* there may be many short pages beyond */
    spill_mongo_document_t one = *document;
    alone.read.want_beyond = false;
    one.request = &alone;
    search_t search = {.document = document};
    if (request->read.want_beyond && request->read.want == SPILL_WANT_BACKWARD)
        reach *= 2;
    for (;;) {
        search.over = seq >= reach ? seq - reach : -1;
        SPILL_TRY(run_search(store, &search, response, error));
        bool missed = response->beyond.present; /* only pages after the number were found */
        if (response->state.present || (search.over < 0 && !missed))
            return SPILL_OK;
        search.document = &one;
        spill_response_clear(response);
        if (!missed)
            reach = reach < INT64_MAX / GROW ? reach * GROW : INT64_MAX;
    }
}

/* ---- one READ -------------------------------------------------------------------------------- */

spill_code_t spill_mongo_read(spill_mongo_t *store, const spill_request_t *request,
                              spill_response_t *response, spill_error_t *error)
{
    spill_mongo_document_t document;
    spill_mongo_document_init(&document, store, request);
    search_t search = {.document = &document};
    spill_code_t code = request->page == SPILL_PAGE_HOLDING
                            ? find_holding(store, &document, response, error)
                            : run_search(store, &search, response, error);
    response->outcome = SPILL_DONE;
    if (code == SPILL_OK && request->read.match && response->state.present)
        code = spill_mongo_read_match(store, &document, response, error);
    return code;
}

/* ---- several pages --------------------------------------------------------------------------- */

typedef struct reading {
    const spill_mongo_document_t *document;
    const int64_t *pages;
    size_t count;
    spill_response_t *responses;
    spill_code_t code;
    spill_error_t *error;
} reading_t;

static bool add_page(void *context, const bson_t *projected)
{
    reading_t *reading = context;
    bson_iter_t iter;
    int64_t page = SPILL_HEAD;
    if (bson_iter_init_find(&iter, projected, SPILL_MONGO_PAGE_ID))
        spill_mongo_read_id(reading->document->request, &iter, &page);
    for (size_t i = 0; i < reading->count && reading->code == SPILL_OK; i++) {
        if (reading->pages[i] != page)
            continue;
        reading->code =
            spill_mongo_decode_reply(reading->document, projected, &reading->responses[i].state,
                                     &reading->responses[i].run, NULL, reading->error);
        read_time(projected, &reading->responses[i]);
    }
    return reading->code == SPILL_OK;
}

/* Answer READs of consecutive pages from read-ahead. False: they are sent as one command. */
static bool find_pages_ahead(spill_mongo_t *store, const bson_t *projection, reading_t *reading)
{
    int64_t first = reading->pages[0], end = first + (int64_t)reading->count;
    bool consecutive = may_be_ahead(reading->document);
    for (size_t i = 0; i < reading->count; i++)
        consecutive = consecutive && reading->pages[i] == first + (int64_t)i;
    bson_t **found = bson_malloc0(reading->count * sizeof(bson_t *));
    bool answered = consecutive && spill_mongo_ahead_pages(store, reading->document, projection,
                                                           first, end, found);
    for (size_t i = 0; i < reading->count; i++) {
        if (found[i])
            add_page(reading, found[i]);
        bson_destroy(found[i]);
    }
    bson_free(found);
    if (!answered)
        spill_mongo_ahead_changed(store->ahead, reading->document->request->owner);
    return answered;
}

/* `finds`: with the cheap projection of a find. */
static spill_code_t find_pages(spill_mongo_t *store, bool finds, reading_t *reading,
                               spill_error_t *error)
{
    const spill_mongo_document_t *document = reading->document;
    SPILL_SCOPED(bson_destroy) bson_t projection = BSON_INITIALIZER;
    SPILL_SCOPED(bson_destroy) bson_t filter = BSON_INITIALIZER;
    spill_mongo_select_pages(document, reading->pages, reading->count, &filter);
    spill_mongo_project_read(document, finds, &projection);
    if (finds && find_pages_ahead(store, &projection, reading))
        return SPILL_OK;
    const spill_mongo_query_t query = {&filter, NULL, &projection, (int64_t)reading->count};
    return spill_mongo_find(store, document->collection, &query, document->request->read.may_be_old,
                            add_page, reading, error);
}

/* For SPILL_SCOPED. */
static void free_numbers(int64_t **numbers)
{
    bson_free(*numbers);
}

spill_code_t spill_mongo_read_pages(spill_mongo_t *store, const spill_request_t *requests,
                                    size_t count, spill_response_t *responses, spill_error_t *error)
{
    spill_mongo_document_t document;
    SPILL_SCOPED(free_numbers) int64_t *pages = bson_malloc0(count * sizeof *pages);
    reading_t reading = {&document, pages, count, responses, SPILL_OK, error};
    spill_error_t cause = {0};
    for (size_t i = 0; i < count; i++) {
        pages[i] = requests[i].page;
        responses[i].outcome = SPILL_DONE;
    }
    spill_mongo_document_init(&document, store, requests);
    spill_code_t code = find_pages(store, true, &reading, &cause);
    if (is_no_array(code, &cause)) {
        for (size_t i = 0; i < count; i++) {
            spill_response_clear(&responses[i]);
            responses[i].outcome = SPILL_DONE;
        }
        code = find_pages(store, false, &reading, &cause);
    }
    if (code != SPILL_OK && error)
        *error = cause;
    SPILL_TRY(code);
    return reading.code;
}
