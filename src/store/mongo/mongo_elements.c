/*
 * The elements in an array on the server: their places by the definition's order (store/render.h)
 * as operators and expressions, runs of them, and elements by their ids. Other clients may append
 * at the growing end at any time. So a change counts places from the other end, where the oldest
 * element is.
 */
#include "store/mongo/mongo_document.h"

#include "bson/element_fields.h"
#include "bson/field_path.h"
#include "definition/schema.h"
#include "definition/stored_names.h"
#include "store/render.h"
#include "util/error.h"

#include <stdio.h>
#include <string.h>

/* ---- places ---------------------------------------------------------------------------------- */

int64_t spill_mongo_place_of(const spill_mongo_document_t *document, const spill_state_t *state,
                             int64_t seq)
{
    return spill_array_index(document->request->definition, state->live,
                             spill_state_rank(state, seq));
}

void spill_mongo_push(const spill_mongo_document_t *document, const spill_mongo_roll_t *roll,
                      bson_t *push)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    int64_t skipped = roll ? roll->skipped : 0;
    int64_t count = (int64_t)request->append.element_count - skipped;
    bool front = spill_grows_at_front(definition);
    bson_t array, each;
    bson_append_document_begin(push, document->array, -1, &array);
    BSON_APPEND_ARRAY_BEGIN(&array, "$each", &each);
    for (int64_t i = 0; i < count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        int64_t place = skipped + spill_array_index(definition, count, i);
        spill_value_append(&request->append.elements[place], &each, key);
    }
    bson_append_array_end(&array, &each);
    if (front)
        BSON_APPEND_INT32(&array, "$position", 0);
    if (roll && roll->moved > 0)
        BSON_APPEND_INT64(&array, "$slice", front ? roll->live : -roll->live);
    bson_append_document_end(push, &array);
}

void spill_mongo_set_array(const spill_mongo_document_t *document, const spill_run_t *run,
                           bson_t *set)
{
    const spill_definition_t *definition = document->request->definition;
    bson_t array;
    bson_append_array_begin(set, document->array, -1, &array);
    for (size_t i = 0; i < run->count; i++) {
        char buffer[16];
        const char *key;
        bson_uint32_to_string((uint32_t)i, &key, buffer, sizeof buffer);
        int64_t place = spill_array_index(definition, (int64_t)run->count, (int64_t)i);
        spill_element_t element = spill_run_element(run, (size_t)place);
        spill_value_append(&element.value, &array, key);
    }
    bson_append_array_end(set, &array);
}

bson_t *spill_mongo_live(const spill_mongo_document_t *document)
{
    char ref[SPILL_NAME_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    return BCON_NEW("$cond", "[", "{", "$isArray", BCON_UTF8(ref), "}", "{", "$size",
                    BCON_UTF8(ref), "}", BCON_INT32(0), "]");
}

bson_t *spill_mongo_slice(const spill_mongo_document_t *document, const bson_t *live,
                          const bson_t *rank, const bson_t *count)
{
    char ref[SPILL_NAME_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    bson_t *place, *most;
    if (spill_grows_at_front(document->request->definition)) {
        most = BCON_NEW("$min", "[", BCON_DOCUMENT(count), "{", "$subtract", "[",
                        BCON_DOCUMENT(live), BCON_DOCUMENT(rank), "]", "}", "]");
        place = BCON_NEW("$subtract", "[", BCON_DOCUMENT(live), "{", "$add", "[",
                         BCON_DOCUMENT(rank), BCON_DOCUMENT(most), "]", "}", "]");
    } else {
        most = bson_copy(count);
        place = bson_copy(rank);
    }
    bson_t *slice =
        BCON_NEW("$cond", "[", "{", "$and", "[", "{", "$isArray", BCON_UTF8(ref), "}", "{", "$gt",
                 "[", BCON_DOCUMENT(most), BCON_INT64(0), "]", "}", "]", "}", "{", "$slice", "[",
                 BCON_UTF8(ref), BCON_DOCUMENT(place), "{", "$max", "[", BCON_INT64(1),
                 BCON_DOCUMENT(most), "]", "}", "]", "}", "[", "]", "]");
    bson_destroy(most);
    bson_destroy(place);
    return slice;
}

/* For an array that grows at the front: all but its `rank` oldest elements, as {$slice: ...}. */
static void newer_at_front(const char *ref, int64_t rank, bson_t *slice)
{
    bson_t length = BSON_INITIALIZER;
    spill_mongo_append_length(ref, "length", &length);
    BCON_APPEND(slice, "$slice", "[", BCON_UTF8(ref), "{", "$let", "{", "vars",
                BCON_DOCUMENT(&length), "in", "{", "$subtract", "[", "$$length", BCON_INT64(rank),
                "]", "}", "}", "}", "]");
    bson_destroy(&length);
}

void spill_mongo_append_without(const spill_mongo_document_t *document, int64_t rank, int64_t count,
                                bson_t *set)
{
    char ref[SPILL_MONGO_PATH_SIZE + 1];
    snprintf(ref, sizeof ref, "$%s", document->array);
    bson_t older = BSON_INITIALIZER, newer = BSON_INITIALIZER;
    bool front = spill_grows_at_front(document->request->definition);
    if (front) {
        newer_at_front(ref, rank + count, &newer);
        BCON_APPEND(&older, "$slice", "[", BCON_UTF8(ref), BCON_INT64(-rank), "]");
    } else {
        BCON_APPEND(&newer, "$slice", "[", BCON_UTF8(ref), BCON_INT64(rank + count),
                    BCON_INT64(INT32_MAX), "]");
        BCON_APPEND(&older, "$slice", "[", BCON_UTF8(ref), BCON_INT64(rank), "]");
    }
    if (rank == 0)
        BSON_APPEND_DOCUMENT(set, document->array, &newer);
    else
        BCON_APPEND(set, document->array, "{", "$concatArrays", "[",
                    BCON_DOCUMENT(front ? &newer : &older), BCON_DOCUMENT(front ? &older : &newer),
                    "]", "}");
    bson_destroy(&older);
    bson_destroy(&newer);
}

/* ---- projecting a run ------------------------------------------------------------------------ */

/* An expression, to be destroyed: the number of live elements with numbers below `seq`. */
static bson_t *live_below(const spill_mongo_document_t *document, int64_t seq, const bson_t *live)
{
    char first[SPILL_MONGO_PATH_SIZE], deleted[SPILL_MONGO_PATH_SIZE];
    return BCON_NEW("$min", "[", BCON_DOCUMENT(live), "{", "$max", "[", BCON_INT64(0), "{",
                    "$subtract", "[", "{", "$subtract", "[", BCON_INT64(seq),
                    BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_FIRST, first)), "]", "}", "{",
                    "$size", "{", "$filter", "{", "input", "{", "$ifNull", "[",
                    BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_DELETED, deleted)), "[", "]",
                    "]", "}", "cond", "{", "$lt", "[", "$$this", BCON_INT64(seq), "]", "}", "}",
                    "}", "}", "]", "}", "]", "}", "]");
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
    spill_mongo_ref(document, SPILL_STORED_FIRST, first);
    spill_mongo_ref(document, SPILL_STORED_DELETED, deleted);
    if (!request->read.spare)
        return BCON_NEW("$literal", BCON_INT64(limit));
    bson_t *between;
    if (request->read.want == SPILL_WANT_FORWARD)
        between = BCON_NEW("$subtract", "[", BCON_UTF8(first), BCON_INT64(seq), "]");
    else
        between = BCON_NEW("$subtract", "[", BCON_INT64(seq), "{", "$add", "[", BCON_UTF8(first),
                           BCON_DOCUMENT(live), "{", "$size", "{", "$ifNull", "[",
                           BCON_UTF8(deleted), "[", "]", "]", "}", "}", "]", "}", "]");
    bson_t *left =
        BCON_NEW("$cond", "[", "{", "$gt", "[",
                 BCON_UTF8(spill_mongo_ref(document, SPILL_STORED_PAGES, pages)), BCON_INT64(0),
                 "]", "}", "{", "$max", "[", BCON_INT64(0), "{", "$subtract", "[",
                 BCON_INT64(limit), "{", "$max", "[", BCON_INT64(0), BCON_DOCUMENT(between), "]",
                 "}", "]", "}", "]", "}", BCON_INT64(limit), "]");
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
 * Does the request want the newest elements of the array, whatever their numbers? The server then
 * slices the array's end, and need not compute a rank.
 */
static bool wants_newest(const spill_request_t *request)
{
    return request->read.want == SPILL_WANT_BACKWARD && request->read.seq == INT64_MAX &&
           request->read.limit >= 1 && request->read.limit <= INT32_MAX && !request->read.spare &&
           !spill_schema_of(request->definition)->keeps_top_n;
}

bool spill_mongo_is_sliced(const spill_mongo_document_t *document)
{
    static const char *const others[] = {"live",
                                         SPILL_STORED_WINDOW_STATS,
                                         SPILL_STORED_OPS,
                                         SPILL_STORED_TOP,
                                         SPILL_STORED_SHOWN,
                                         "now",
                                         "arrayBytes",
                                         "rootBytes",
                                         "topRun",
                                         "ownBytes"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (spill_starts_with_part(document->array, others[i]))
            return false;
    return !document->referenced && document->request->kind == SPILL_REQUEST_READ &&
           wants_newest(document->request);
}

/*
 * A `find` slices the field itself, at no cost for the server. In an aggregation, or if the
 * projection has a field with the name of the array, an expression computes `run`.
 */
static void project_newest(const spill_mongo_document_t *document, bool finds, bson_t *projection)
{
    const spill_request_t *request = document->request;
    char array[SPILL_MONGO_PATH_SIZE + 1];
    bool front = spill_grows_at_front(request->definition);
    int64_t limit = front ? request->read.limit : -request->read.limit;
    snprintf(array, sizeof array, "$%s", document->array);
    if (finds && spill_mongo_is_sliced(document))
        BCON_APPEND(projection, document->array, "{", "$slice", BCON_INT64(limit), "}");
    else
        BCON_APPEND(projection, "run", "{", "$cond", "[", "{", "$isArray", BCON_UTF8(array), "}",
                    "{", "$slice", "[", BCON_UTF8(array), BCON_INT64(limit), "]", "}", "[", "]",
                    "]", "}");
}

/*
 * Project `run`, the elements in the order of the array, and `from`, the rank of the oldest of
 * them. Forward, `from` is the rank of seq; backward, it is `limit` elements before the end of the
 * run.
 */
static void project_range(const spill_mongo_document_t *document, bson_t *projection)
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
    SPILL_SCOPED(spill_mongo_destroy) bson_t *live = spill_mongo_live(document);
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *rank = first ? BCON_NEW("$literal", BCON_INT64(0)) : live_below(document, seq, live);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *most = run_limit(document, seq, limit, live);
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *from = forward ? bson_copy(rank)
                           : BCON_NEW("$max", "[", BCON_INT64(0), "{", "$subtract", "[",
                                      BCON_DOCUMENT(rank), BCON_DOCUMENT(most), "]", "}", "]");
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *count = forward ? bson_copy(most)
                            : BCON_NEW("$min", "[", BCON_DOCUMENT(most), BCON_DOCUMENT(rank), "]");
    SPILL_SCOPED(spill_mongo_destroy) bson_t *run = spill_mongo_slice(document, live, from, count);
    BCON_APPEND(projection, "from", BCON_DOCUMENT(from), "run", BCON_DOCUMENT(run));
}

void spill_mongo_this_id(const spill_definition_t *definition, char ref[SPILL_MONGO_THIS_ID_SIZE])
{
    bool whole = spill_is_whole_element(definition->id_field);
    snprintf(ref, SPILL_MONGO_THIS_ID_SIZE, "$$this%s%s", whole ? "" : ".",
             whole ? "" : definition->id_field);
}

/*
 * Project `from`, the rank of the first element with the id from seq on, or -1; and `run`, that
 * element or none. Values are compared by MongoDB's rules, so 1 finds 1.0. A path through an array
 * gives an array, which is not an id.
 */
static void project_element(const spill_mongo_document_t *document, bson_t *projection)
{
    const spill_request_t *request = document->request;
    char array[SPILL_NAME_SIZE + 1], field[SPILL_MONGO_THIS_ID_SIZE];
    snprintf(array, sizeof array, "$%s", document->array);
    spill_mongo_this_id(request->definition, field);
    bson_t id = BSON_INITIALIZER;
    spill_value_append(request->read.id, &id, "$literal");
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *all = BCON_NEW("$cond", "[", "{", "$isArray", BCON_UTF8(array), "}", BCON_UTF8(array),
                           "[", "]", "]");
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *oldest_first = spill_grows_at_front(request->definition)
                               ? BCON_NEW("$reverseArray", BCON_DOCUMENT(all))
                               : bson_copy(all);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *live = spill_mongo_live(document);
    SPILL_SCOPED(spill_mongo_destroy) bson_t *rank = live_below(document, request->read.seq, live);
    SPILL_SCOPED(spill_mongo_destroy)
    bson_t *from =
        BCON_NEW("$indexOfArray", "[", "{", "$map", "{", "input", BCON_DOCUMENT(oldest_first), "as",
                 "this", "in", "{", "$eq", "[", BCON_UTF8(field), BCON_DOCUMENT(&id), "]", "}", "}",
                 "}", BCON_BOOL(true), BCON_DOCUMENT(rank), "]");
    SPILL_SCOPED(spill_mongo_destroy) bson_t *one = BCON_NEW("$literal", BCON_INT64(1));
    SPILL_SCOPED(spill_mongo_destroy) bson_t *run = spill_mongo_slice(document, live, from, one);
    BCON_APPEND(projection, "from", BCON_DOCUMENT(from), "run", "{", "$cond", "[", "{", "$gte", "[",
                BCON_DOCUMENT(from), BCON_INT64(0), "]", "}", BCON_DOCUMENT(run), "[", "]", "]",
                "}");
    bson_destroy(&id);
}

void spill_mongo_project_run(const spill_mongo_document_t *document, bool finds, bson_t *projection)
{
    spill_want_t want = document->request->read.want;
    if (want == SPILL_WANT_NONE || (document->referenced && !document->head))
        return;
    if (want == SPILL_WANT_ID && !spill_schema_of(document->request->definition)->keeps_top_n)
        project_element(document, projection);
    else if (wants_newest(document->request))
        project_newest(document, finds, projection);
    else
        project_range(document, projection);
}

/* ---- reading a run --------------------------------------------------------------------------- */

/* Find `run`, or the array itself: see project_newest. The newest elements may be in either. */
static bool find_run(const spill_mongo_document_t *document, const bson_t *projected, bool newest,
                     bson_iter_t *iter)
{
    return bson_iter_init_find(iter, projected, "run") ||
           (newest && spill_path_find(projected, document->array, iter));
}

static void reverse(spill_run_t *run)
{
    for (size_t i = 0; i < run->count / 2; i++) {
        spill_run_entry_t entry = run->entries[i];
        run->entries[i] = run->entries[run->count - 1 - i];
        run->entries[run->count - 1 - i] = entry;
    }
}

/* Number an ascending run. Its first element has rank `from`. Skip deleted numbers. */
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
    const spill_definition_t *definition = request->definition;
    spill_element_id_key(request->read.id, definition->unique, &wanted, NULL);
    bool same = spill_element_key(element, definition->id_field, definition->unique, &own) &&
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

bool spill_mongo_decode_run(const spill_mongo_document_t *document, const bson_t *projected,
                            const spill_state_t *state, spill_run_t *run)
{
    bool newest = wants_newest(document->request);
    bson_iter_t iter, elements;
    if (!bson_iter_init_find(&iter, projected, newest ? "live" : "from"))
        return true;
    int64_t from = spill_iter_int64(&iter);
    if (newest && !BSON_ITER_HOLDS_NUMBER(&iter)) /* not an array, so it has no elements */
        return true;
    if (!BSON_ITER_HOLDS_NUMBER(&iter) || from < -1 || from > INT32_MAX) /* -1: not found */
        return false;
    if (!find_run(document, projected, newest, &iter))
        return true;
    if (!BSON_ITER_HOLDS_ARRAY(&iter) || !bson_iter_recurse(&iter, &elements))
        return false;
    while (bson_iter_next(&elements)) {
        spill_value_t value = spill_value_from_iter(&elements);
        spill_run_add(run, 0, &value);
    }
    if (newest)
        from -= (int64_t)run->count;
    if (from < -1)
        return false;
    if (spill_grows_at_front(document->request->definition))
        reverse(run);
    number(state, from, run);
    if (spill_schema_of(document->request->definition)->keeps_top_n)
        choose(document->request, run);
    if (document->request->read.want == SPILL_WANT_BACKWARD)
        reverse(run);
    return true;
}

/* ---- pages by the ids of their elements ------------------------------------------------------ */

void spill_mongo_id_path(const spill_definition_t *definition, char path[SPILL_MONGO_ID_PATH_SIZE])
{
    if (spill_schema_of(definition)->has_referenced_elements)
        spill_stored_element_path(definition, definition->id_field, path);
    else if (spill_is_whole_element(definition->id_field))
        snprintf(path, SPILL_MONGO_ID_PATH_SIZE, "%s", definition->page_array);
    else
        snprintf(path, SPILL_MONGO_ID_PATH_SIZE, "%s.%s", definition->page_array,
                 definition->id_field);
}

/* Referenced elements: the document's own id is equal, not a member of an array of ids. */
static void match_itself(const spill_request_t *request, bson_t *match)
{
    char path[SPILL_MONGO_ID_PATH_SIZE], field[SPILL_MONGO_ID_PATH_SIZE + 1];
    bson_t id = BSON_INITIALIZER;
    spill_mongo_id_path(request->definition, path);
    snprintf(field, sizeof field, "$%s", path);
    spill_value_append(request->read.id, &id, "$literal");
    BCON_APPEND(match, SPILL_STORED_PAGE_FIRST, "{", "$gte", BCON_INT64(request->read.seq), "}",
                "$expr", "{", "$eq", "[", BCON_UTF8(field), BCON_DOCUMENT(&id), "]", "}");
    bson_destroy(&id);
}

void spill_mongo_match_id(const spill_mongo_document_t *document, bson_t *filter)
{
    const spill_request_t *request = document->request;
    const spill_definition_t *definition = request->definition;
    char path[SPILL_MONGO_ID_PATH_SIZE];
    bson_t id;
    spill_mongo_id_path(definition, path);
    spill_mongo_append_page_owner(request, filter);
    BSON_APPEND_DOCUMENT_BEGIN(filter, path, &id);
    spill_value_append(request->read.id, &id, "$eq");
    bson_append_document_end(filter, &id);
    BCON_APPEND(filter, SPILL_STORED_PAGE_INCARNATION, BCON_INT64(request->incarnation));
    spill_mongo_append_pages(definition, request->read.pages, filter);
    if (document->referenced)
        match_itself(request, filter);
}
