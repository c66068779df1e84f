/*
 * Layout subset: find the documents that rank next, by the index {owner, sort field, number}.
 *
 * A server may read and sort all documents that a query finds before it returns the first ones; the
 * DocumentDB engine does. So each query ("look") must find few documents. The search goes down from
 * its start in short ranges of the index:
 *
 *   - of one value, it asks for the newest numbers;
 *   - to find the next value, it widens the range until it finds documents;
 *   - if there may be more documents than it asked for (they come in no order), it halves the range
 *     above the highest one found.
 */
#include "store/mongo/mongo_document.h"

#include "definition/schema.h"
#include "definition/stored_names.h"
#include "util/error.h"

#include <math.h>
#include <string.h>

/*
 * FEW: the limit of a look without an order. FIRST_NUMBERS: the first range of numbers. ALIKE: this
 * many elements for each different value are many. MISSES: this many empty halves are many.
 */
enum { FEW = 64, FIRST_NUMBERS = 64, NUMBERS_GROW = 8, VALUES_GROW = 64, ALIKE = 8, MISSES = 3 };

static const double FIRST_PART = 0x1p-20; /* the first range below a value, relative to it */

typedef struct search {
    spill_mongo_t *store;
    const spill_request_t *request;
    spill_response_t *response;
    spill_run_t values; /* of the highest-ranked elements that a head shows */
    int64_t bytes;
} search_t;

/* One look: selects documents of one class. */
typedef struct look {
    spill_rank_class_t class;
    const spill_rank_t *equal;
    const spill_rank_t *from;  /* the lowest value, included; NULL: none */
    const spill_rank_t *above; /* a lower bound, excluded; NULL: none */
    const spill_rank_t *below; /* an upper bound, excluded; NULL: none */
    int64_t low, end;          /* numbers */
    int64_t limit;
    bool newest; /* return the newest ones, else any */
} look_t;

/* The result of a look: the documents, and the elements that really are of the class. */
typedef struct found {
    const search_t *search;
    spill_rank_class_t class;
    int64_t documents;
    spill_run_t run;
    spill_top_t top;   /* of the run */
    spill_code_t code; /* of the first document that is no element of the owner */
    spill_error_t failure;
} found_t;

static bool is_full(const search_t *search)
{
    return (int64_t)search->response->top_n.count >= search->request->read.limit;
}

/* ---- looks ----------------------------------------------------------------------------------- */

static void append_types(spill_rank_class_t class, bson_t *condition)
{
    if (class == SPILL_RANK_DATE)
        BCON_APPEND(condition, "$type", BCON_INT32(BSON_TYPE_DATE_TIME));
    else
        BCON_APPEND(condition, "$type", "[", BCON_INT32(BSON_TYPE_DOUBLE),
                    BCON_INT32(BSON_TYPE_INT32), BCON_INT32(BSON_TYPE_INT64), "]");
}

static void append_match(const search_t *search, const look_t *look, bson_t *match)
{
    const spill_request_t *request = search->request;
    char path[SPILL_STORED_PATH_SIZE];
    bson_t value;
    spill_mongo_append_page_owner(request, match);
    spill_stored_element_path(request->definition, request->definition->sort_field, path);
    bson_append_document_begin(match, path, -1, &value);
    if (look->equal)
        spill_rank_append(look->equal, &value, "$eq");
    if (look->from)
        spill_rank_append(look->from, &value, "$gte");
    if (look->above)
        spill_rank_append(look->above, &value, "$gt");
    if (look->below)
        spill_rank_append(look->below, &value, "$lt");
    if (!look->equal)
        append_types(look->class, &value);
    bson_append_document_end(match, &value);
    BCON_APPEND(match, SPILL_STORED_PAGE_FIRST, "{", "$gte", BCON_INT64(look->low), "$lt",
                BCON_INT64(look->end), "}", SPILL_STORED_PAGE_INCARNATION,
                BCON_INT64(request->incarnation));
}

/* Add a document, unless it is of another class: a server also matches members of an array. */
static bool add_document(void *context, const bson_t *document)
{
    found_t *found = context;
    const spill_definition_t *definition = found->search->request->definition;
    int64_t seq;
    bson_t memory;
    spill_value_t value;
    found->documents++;
    if (spill_mongo_element_of(definition, document, &seq, &memory, &value)) {
        spill_top_entry_t entry = spill_top_entry_of(definition, seq, &value);
        found->code =
            spill_mongo_check_element(found->search->request, document, seq, &found->failure);
        if (entry.rank.class == found->class) {
            spill_run_add(&found->run, seq, &value);
            spill_top_add(&found->top, SIZE_MAX, &entry);
        }
    }
    bson_destroy(&memory);
    return found->code == SPILL_OK;
}

static spill_code_t find_documents(const search_t *search, const look_t *look, found_t *found,
                                   spill_error_t *error)
{
    SPILL_SCOPED(bson_destroy) bson_t pipeline = BSON_INITIALIZER;
    bson_t stage, match;
    found->search = search;
    found->class = look->class;
    found->documents = 0;
    found->code = SPILL_OK;
    spill_run_clear(&found->run);
    spill_top_clear(&found->top);
    BSON_APPEND_DOCUMENT_BEGIN(&pipeline, "0", &stage);
    BSON_APPEND_DOCUMENT_BEGIN(&stage, "$match", &match);
    append_match(search, look, &match);
    bson_append_document_end(&stage, &match);
    bson_append_document_end(&pipeline, &stage);
    if (look->newest)
        BCON_APPEND(&pipeline, "1", "{", "$sort", "{", SPILL_STORED_PAGE_FIRST, BCON_INT32(-1), "}",
                    "}");
    BCON_APPEND(&pipeline, look->newest ? "2" : "1", "{", "$limit", BCON_INT64(look->limit), "}");
    SPILL_TRY(spill_mongo_each(search->store, search->request->definition->page_collection,
                               &pipeline, false, add_document, found, error));
    if (found->code != SPILL_OK && error)
        *error = found->failure;
    return found->code;
}

static void release_found(found_t *found)
{
    spill_run_release(&found->run);
    spill_top_release(&found->top);
}

/* Add the found elements in the order of rank, until there are enough. */
static void add_found(search_t *search, const found_t *found)
{
    const spill_request_t *request = search->request;
    for (size_t i = 0; i < found->top.count && !is_full(search); i++) {
        const spill_top_entry_t *entry = &found->top.at[i];
        spill_value_t value;
        if (entry->seq == request->read.seq ||
            spill_top_contains(&search->response->top_n, entry->seq))
            continue;
        search->bytes += entry->size_bytes;
        if (search->bytes <= spill_top_room(request->definition) &&
            spill_mongo_find_in(&found->run, entry->seq, &value))
            spill_run_add(&search->values, entry->seq, &value);
        spill_top_add(&search->response->top_n, (size_t)request->read.limit, entry);
    }
}

/* ---- elements of one value ------------------------------------------------------------------- */

/* Add the newest elements of one value with numbers below `end`. */
static spill_code_t add_alike(search_t *search, const spill_rank_t *rank, int64_t end,
                              spill_error_t *error)
{
    int64_t low = search->request->read.watermark, width = FIRST_NUMBERS,
            most = search->request->read.limit + 1;
    SPILL_SCOPED(release_found) found_t found = {0};
    look_t look = {.class = (spill_rank_class_t)rank->class,
                   .equal = rank,
                   .low = low,
                   .end = end,
                   .limit = FEW};
    if (low < end)
        SPILL_TRY(find_documents(search, &look, &found, error));
    if (found.documents < FEW) {
        add_found(search, &found);
        end = low;
    }
    look.newest = true;
    while (low < end && !is_full(search)) {
        look.low = end - low > width ? end - width : low;
        look.end = end;
        look.limit = most;
        SPILL_TRY(find_documents(search, &look, &found, error));
        add_found(search, &found);
        if (found.documents == most) { /* documents of another class may hide more */
            most *= NUMBERS_GROW;
        } else {
            width *= NUMBERS_GROW;
            end = look.low;
        }
    }
    return SPILL_OK;
}

/* ---- from one value to the next -------------------------------------------------------------- */

/* An integer for a double; the integers sort as the doubles. */
static uint64_t place_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The middle one of all doubles between two doubles; this is not their mean. */
static double middle_of(double low, double high)
{
    uint64_t from = place_of(low), bits = from + (place_of(high) - from) / 2;
    double value;
    bits = bits >> 63 ? bits & ~(UINT64_C(1) << 63) : ~bits;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Are there few different values among the elements found? Then one is probably the highest. */
static bool is_alike(const found_t *found)
{
    size_t values = 0;
    for (size_t i = 0; i < found->top.count; i++)
        values += i == 0 || found->top.at[i].rank.value != found->top.at[i - 1].rank.value ? 1 : 0;
    return values * ALIKE <= found->top.count;
}

/* Search all values above *next (true), or only those from *middle to `high` (false)? */
static bool searches_all_above(const spill_rank_t *next, double high, int misses,
                               spill_rank_t *middle)
{
    *middle = (spill_rank_t){.class = next->class, .value = middle_of(next->value, high)};
    if (next->class == SPILL_RANK_DATE)
        middle->value = floor(middle->value);
    return misses >= MISSES || middle->value <= next->value;
}

/*
 * *next is the highest value found. If the look reached its limit, there may be a higher one. Then
 * search the upper half of the values above *next, and so on. So the number of looks is small in
 * whatever order a server returns documents: at most 128, usually as many as the values need to be
 * separated. Halving shows last that no value is above *next. So search all values above *next
 * instead, after some empty halves and, if many elements are alike, every second time.
 */
static spill_code_t climb(search_t *search, look_t *look, found_t *found, spill_rank_t *next,
                          spill_error_t *error)
{
    double high = look->below                      ? look->below->value
                  : look->class == SPILL_RANK_DATE ? 0x1p63
                                                   : INFINITY;
    bool highest = found->documents < look->limit;
    int misses = is_alike(found) ? MISSES : 0; /* empty halves since *next was found */
    spill_rank_t middle;
    *next = found->top.at[0].rank;
    while (!highest) {
        bool above = searches_all_above(next, high, misses, &middle);
        look->from = above ? NULL : &middle;
        look->above = above ? next : NULL;
        spill_code_t code = find_documents(search, look, found, error);
        if (code != SPILL_OK) {
            look->from = NULL;
            return code;
        }
        if (found->top.count > 0) {
            *next = found->top.at[0].rank;
            highest = found->documents < look->limit;
            misses = !is_alike(found) ? 0 : above ? MISSES - 1 : MISSES;
        } else if (found->documents == look->limit) {
            look->limit *= NUMBERS_GROW; /* of another class, all of them */
        } else if (!above) {
            high = middle.value;
            misses++;
        } else {
            highest = true;
        }
    }
    look->from = NULL;
    look->above = NULL;
    return SPILL_OK;
}

/* The lower end of a range of `width` below a value; false: the range has no lower end. */
static bool reach(const spill_rank_t *below, double width, spill_rank_t *from)
{
    *from = (spill_rank_t){.class = below->class, .value = below->value - width};
    if (!isfinite(from->value) || from->value <= -0x1p62)
        return false;
    if (below->class == SPILL_RANK_DATE)
        from->value = (double)(int64_t)from->value - 1;
    return true;
}

/* Find the next value below `below` in its class (NULL: the highest); *any: there is one. */
static spill_code_t find_next(search_t *search, spill_rank_class_t class, const spill_rank_t *below,
                              spill_rank_t *next, bool *any, spill_error_t *error)
{
    spill_rank_t from, bound = {0};
    SPILL_SCOPED(release_found) found_t found = {0};
    double size = below ? fabs(below->value) : 0;
    double width = (size > 1 ? size : 1) * FIRST_PART;
    bool ends = false;
    *any = false;
    if (below)
        bound = *below; /* next may alias below */
    while (!ends && !*any) {
        look_t look = {.class = class,
                       .below = below ? &bound : NULL,
                       .low = search->request->read.watermark,
                       .end = search->request->read.pages,
                       .limit = FEW};
        ends = !below || !reach(&bound, width, &from);
        look.from = ends ? NULL : &from;
        width *= VALUES_GROW;
        SPILL_TRY(find_documents(search, &look, &found, error));
        while (found.top.count == 0 && found.documents == look.limit) {
            look.limit *= NUMBERS_GROW; /* of another class, all of them */
            SPILL_TRY(find_documents(search, &look, &found, error));
        }
        *any = found.top.count > 0;
        if (*any)
            SPILL_TRY(climb(search, &look, &found, next, error));
    }
    return SPILL_OK;
}

static spill_code_t search_class(search_t *search, spill_rank_class_t class, spill_error_t *error)
{
    const spill_request_t *request = search->request;
    const spill_top_entry_t *start = request->read.below;
    bool within = start && start->rank.class == class;
    spill_rank_t value = within ? start->rank : (spill_rank_t){0};
    bool any = true;
    if (within)
        SPILL_TRY(add_alike(search, &value,
                            start->seq < request->read.pages ? start->seq : request->read.pages,
                            error));
    for (bool bounded = within; any && !is_full(search); bounded = true) {
        SPILL_TRY(find_next(search, class, bounded ? &value : NULL, &value, &any, error));
        if (any)
            SPILL_TRY(add_alike(search, &value, request->read.pages, error));
    }
    return SPILL_OK;
}

/* ---- elements without a sort value ----------------------------------------------------------- */

/*
 * Add the newest elements without a sort value. Few elements have one: those above `below` are in
 * the top, and those below it are already found. So reading a few more elements than wanted is
 * enough.
 */
static spill_code_t add_unranked(search_t *search, spill_error_t *error)
{
    const spill_request_t *request = search->request;
    const spill_top_entry_t *start = request->read.below;
    SPILL_SCOPED(spill_response_release) spill_response_t newest = SPILL_RESPONSE_INIT;
    SPILL_SCOPED(release_found) found_t found = {.search = search};
    spill_request_t read = *request;
    read.read.want = SPILL_WANT_BACKWARD;
    read.read.seq = request->read.pages - 1;
    if (start && start->rank.class == SPILL_RANK_NONE && start->seq <= read.read.seq)
        read.read.seq = start->seq - 1;
    read.read.limit = request->definition->top_count + request->read.limit + 1;
    if (read.read.seq >= request->read.watermark)
        SPILL_TRY(spill_mongo_read_elements(search->store, &read, &newest, error));
    for (size_t i = 0; i < newest.run.count; i++) {
        spill_element_t element = spill_run_element(&newest.run, i);
        spill_top_entry_t entry =
            spill_top_entry_of(request->definition, element.seq, &element.value);
        if (entry.rank.class == SPILL_RANK_NONE) {
            spill_run_add(&found.run, element.seq, &element.value);
            spill_top_add(&found.top, SIZE_MAX, &entry);
        }
    }
    add_found(search, &found);
    return SPILL_OK;
}

static void release_search(search_t *search)
{
    spill_run_release(&search->values);
}

spill_code_t spill_mongo_read_top_n(spill_mongo_t *store, const spill_request_t *request,
                                    spill_response_t *response, spill_error_t *error)
{
    SPILL_SCOPED(release_search)
    search_t search = {.store = store, .request = request, .response = response};
    spill_top_t *top_n = &response->top_n;
    bool ranked = request->definition->sort_field[0] != '\0';
    int class = request->read.below ? request->read.below->rank.class : SPILL_RANK_DATE;
    if (!ranked)
        class = SPILL_RANK_NONE;
    while (class > SPILL_RANK_NONE && request->read.watermark < request->read.pages &&
           !is_full(&search))
        SPILL_TRY(search_class(&search, (spill_rank_class_t) class --, error));
    if (!is_full(&search))
        SPILL_TRY(add_unranked(&search, error));
    spill_top_show(top_n, request->definition, SIZE_MAX);
    for (size_t i = 0; i < top_n->shown; i++) {
        spill_value_t value;
        if (spill_mongo_find_in(&search.values, top_n->at[i].seq, &value))
            spill_run_add(&response->run, top_n->at[i].seq, &value);
    }
    response->outcome = SPILL_DONE;
    return SPILL_OK;
}
