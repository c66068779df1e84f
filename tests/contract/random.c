/*
 * Random requests of simulated clients. Each follows from a READ, as in the protocols, but may
 * arrive late or twice. After each request the store must have the same documents as a model store.
 */
#include "random_walk.h"

#include "suite.h"

/* ---- reading --------------------------------------------------------------------------------- */

/* Read a document into `state`; its elements stay in the response. */
static bool read_document(walk_t *walk, int64_t page, spill_state_t *state)
{
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, page);
    /* Do not read elements of uncommitted pages: they may be views of the head's. */
    read.read.want = page == SPILL_HEAD ? SPILL_WANT_FORWARD : SPILL_WANT_NONE;
    read.read.limit = 100;
    assert_int_equal(pair_call(&walk->pair, walk->array, &read), SPILL_OK);
    spill_state_copy(&walk->pair.responses[0].state, state);
    return state->present;
}

static bool keeps_oldest(const walk_t *walk)
{
    return walk->pair.definitions[walk->array].keep == SPILL_KEEP_OLDEST;
}

/* Read a random page that belongs to the array. */
static bool read_any_page(walk_t *walk)
{
    return walk->head.present && walk->head.pages > 0 &&
           read_document(walk, walk_below(walk, walk->head.pages), &walk->page) &&
           walk->page.incarnation == walk->head.incarnation &&
           spill_state_end(&walk->page) > walk->head.watermark;
}

/* Keep oldest: read the last existing page; false if that is the head. */
static bool read_tail(walk_t *walk)
{
    for (int64_t page = walk->head.pages; walk->head.present && page >= 0; page--) {
        if (read_document(walk, page, &walk->page) &&
            walk->page.incarnation == walk->head.incarnation)
            return true;
    }
    return false;
}

static void read_head(walk_t *walk)
{
    read_document(walk, SPILL_HEAD, &walk->head);
}

static void compare_owner(walk_t *walk)
{
    pair_compare(&walk->pair, walk->array, walk->owner);
}

/* Does a late page hold elements that the head has counted or trimmed? A store may refuse it. */
static bool is_obsolete(walk_t *walk, const spill_request_t *request)
{
    if (request->kind != SPILL_REQUEST_PUT_PAGE)
        return false;
    read_head(walk);
    return walk->head.present && walk->head.incarnation == request->incarnation &&
           (request->page < walk->head.pages || request->put_page.first < walk->head.first);
}

/* ---- appending ------------------------------------------------------------------------------- */

static bson_t *random_update(walk_t *walk)
{
    switch (walk_below(walk, 6)) {
    case 0:
        return BCON_NEW("$inc", "{", "posts", BCON_INT32(1), "}");
    case 1:
        return BCON_NEW("$set", "{", "a.b", BCON_INT64(walk_below(walk, 5)), "}");
    case 2:
        return BCON_NEW("$unset", "{", "a", "", "}");
    case 3:
        return BCON_NEW("$set", "{", "posts", "many", "}"); /* the next $inc of it fails */
    default:
        return NULL;
    }
}

/* Make an element: a string; in arrays with values mostly a document, perhaps with a value. */
static spill_value_t random_element(walk_t *walk, uint32_t size_bytes, char fill)
{
    if ((walk->array != PAIR_BUCKETS && walk->array != PAIR_TOP_N) || walk_below(walk, 8) == 0)
        return text_value(size_bytes, fill);
    bson_t document = BSON_INITIALIZER;
    switch (walk_below(walk, 8)) {
    case 0:
        BSON_APPEND_INT64(&document, "rating", INT64_MAX - walk_below(walk, 3));
        break;
    case 1:
        BSON_APPEND_DOUBLE(&document, "rating", (double)walk_below(walk, 100) / 7 - 3);
        break;
    case 2:
        BSON_APPEND_UTF8(&document, "rating", "none");
        break;
    default:
        BSON_APPEND_INT32(&document, "rating", (int32_t)walk_below(walk, 11) - 5);
    }
    uint8_t *data = bson_malloc(document.len);
    memcpy(data, bson_get_data(&document), document.len);
    spill_value_t value = {.data = data, .size_bytes = document.len, .type = BSON_TYPE_DOCUMENT};
    bson_destroy(&document);
    return value;
}

static void append_to(walk_t *walk, int64_t page)
{
    enum { MOST = 3 };
    spill_value_t elements[MOST];
    spill_request_t append = walk_request(walk, SPILL_REQUEST_APPEND, page);
    append.append.element_count = (size_t)(1 + walk_below(walk, MOST));
    append.append.elements = elements;
    for (size_t i = 0; i < append.append.element_count; i++) {
        elements[i] = random_element(walk, (uint32_t)(5 + walk_below(walk, 40)),
                                     (char)('a' + walk_below(walk, 26)));
        append.append.elements_bytes += elements[i].size_bytes;
    }
    const spill_state_t *state = page == SPILL_HEAD ? &walk->head : &walk->page;
    /*
     * An operation is the pair of an id and a base: an id comes again only with its base, and only
     * in the incarnation that the base was seen in. A late one may come to a later incarnation,
     * whose n its base is above; stores need not agree on it when it comes again there.
     */
    spill_op_t op = {.id_bytes = 3, .base = state->op_count - walk_below(walk, 4)};
    const char id[] = {(char)('a' + walk_below(walk, 2)), (char)('a' + op.base % 20),
                       (char)('a' + state->incarnation / 1000 % 26)};
    op.id = id;
    append.append.op = walk_below(walk, 2) == 0 ? &op : NULL;
    append.limits.slots_max = walk_below(walk, 4) == 0 ? walk_below(walk, 10) : 100;
    if (pair_is_capped(walk->array))
        append.limits.slots_max = walk_below(walk, 4) == 0 ? 1 + walk_below(walk, 10) : 7;
    append.limits.bytes_max = walk_below(walk, 8) == 0 ? 400 : 100000;
    bson_t *update = page == SPILL_HEAD && walk->array != PAIR_BUCKETS ? random_update(walk) : NULL;
    append.append.update = update;
    if (page == SPILL_HEAD && !walk->head.present) {
        append.create = walk_below(walk, 8) != 0;
        append.incarnation = walk->incarnation += 1000;
    }
    walk_send(walk, &append);
    bson_destroy(update);
    for (size_t i = 0; i < append.append.element_count; i++)
        bson_free((void *)elements[i].data);
}

static void append_somewhere(walk_t *walk)
{
    bool in_page = keeps_oldest(walk) && read_tail(walk);
    append_to(walk, in_page ? walk->page.page : SPILL_HEAD);
}

static void update_fields(walk_t *walk)
{
    bson_t *update = walk->array != PAIR_BUCKETS ? random_update(walk) : NULL;
    spill_request_t request = walk_request(walk, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.append.update = update;
    if (!walk->head.present) {
        request.create = walk_below(walk, 4) == 0;
        request.incarnation = walk->incarnation += 1000;
    }
    walk_send(walk, &request);
    bson_destroy(update);
}

/* ---- spilling, keep newest ------------------------------------------------------------------- */

static void put_page(walk_t *walk)
{
    int64_t slots = spill_state_slots(&walk->head);
    if (slots == 0 || walk->head.pages == PAIR_PAGES)
        return;
    slots = 1 + walk_below(walk, slots < 5 ? slots : 5);
    read_document(walk, SPILL_HEAD, &walk->page);
    spill_seqs_keep_below(&walk->page.deleted, walk->page.first + slots);
    const spill_run_t *head = &walk->pair.responses[0].run;
    spill_run_t run = {0};
    for (size_t i = 0; i < head->count; i++) {
        spill_element_t element = spill_run_element(head, i);
        if (element.seq < walk->page.first + slots)
            spill_run_add(&run, element.seq, &element.value);
    }
    spill_request_t put = walk_request(walk, SPILL_REQUEST_PUT_PAGE, walk->head.pages);
    put.put_page.source_rev = walk->head.rev;
    put.put_page.first = walk->head.first;
    put.put_page.slots = slots;
    put.put_page.run = &run;
    put.put_page.deleted = &walk->page.deleted;
    walk_send(walk, &put);
    spill_run_release(&run);
}

static void spill(walk_t *walk)
{
    if (!walk->head.present)
        return;
    bool put = read_document(walk, walk->head.pages, &walk->page) &&
               walk->page.incarnation == walk->head.incarnation &&
               walk->page.source_rev == walk->head.rev;
    if (!put) {
        put_page(walk);
        return;
    }
    spill_request_t cut = walk_request(walk, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.cut.pages = walk->head.pages;
    cut.cut.slots = spill_state_slots(&walk->page);
    cut.cut.bytes = walk->page.live_bytes;
    walk_send(walk, &cut);
}

/* ---- sealing and new pages, keep oldest ------------------------------------------------------ */

static void create_page(walk_t *walk, int64_t page, const spill_state_t *before)
{
    if (page == PAIR_PAGES)
        return;
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, page - 1);
    read.read.want_ops = true;
    assert_int_equal(pair_call(&walk->pair, walk->array, &read), SPILL_OK);
    spill_ops_t ops = {0};
    spill_ops_copy(&walk->pair.responses[0].ops, &ops);
    spill_request_t create = walk_request(walk, SPILL_REQUEST_CREATE_PAGE, page);
    create.create_page.first = spill_state_end(before);
    create.create_page.op_count = before->op_count;
    create.create_page.ops = &ops;
    walk_send(walk, &create);
    spill_ops_release(&ops);
}

/*
 * Take one of the steps, in turn or again: seal the tail, advance the head, create the next page.
 */
static void extend_array(walk_t *walk)
{
    if (!walk->head.present)
        return;
    bool in_page = read_tail(walk);
    const spill_state_t *tail = in_page ? &walk->page : &walk->head;
    int64_t number = in_page ? walk->page.page : SPILL_HEAD;
    if (!tail->sealed || walk_below(walk, 5) == 0) {
        spill_request_t seal = walk_request(walk, SPILL_REQUEST_SEAL, number);
        seal.seal.close = in_page && number == walk->head.pages - 1 && walk_below(walk, 6) == 0;
        walk_send(walk, &seal);
    } else if (in_page && walk->head.pages < number + 2) {
        spill_request_t advance = walk_request(walk, SPILL_REQUEST_ADVANCE, SPILL_HEAD);
        advance.advance.pages = number + 2;
        advance.advance.total = spill_state_end(tail);
        if (!tail->closed)
            walk_send(walk, &advance);
    } else if (!tail->closed) {
        create_page(walk, number + 1, tail);
    }
}

static void spill_or_extend(walk_t *walk)
{
    if (pair_is_capped(walk->array))
        append_somewhere(walk);
    else if (keeps_oldest(walk))
        extend_array(walk);
    else
        spill(walk);
}

/* ---- changing and removing ------------------------------------------------------------------- */

static int64_t random_number(walk_t *walk, const spill_state_t *state)
{
    return state->first - 1 + walk_below(walk, spill_state_slots(state) + 2);
}

static void edit_somewhere(walk_t *walk)
{
    bool in_page = walk_below(walk, 2) == 0 && read_any_page(walk);
    const spill_state_t *state = in_page ? &walk->page : &walk->head;
    spill_value_t element = random_element(walk, (uint32_t)(5 + walk_below(walk, 90)), 'E');
    spill_request_t edit =
        walk_request(walk, SPILL_REQUEST_EDIT, in_page ? walk->page.page : SPILL_HEAD);
    edit.rev = state->rev;
    edit.change.seq = random_number(walk, state);
    edit.change.element = &element;
    edit.limits.bytes_max = walk_below(walk, 4) == 0 ? 400 : 100000;
    walk_send(walk, &edit);
    bson_free((void *)element.data);
}

static void remove_one(walk_t *walk)
{
    spill_request_t request;
    if (walk->head.intent && walk_below(walk, 4) != 0) {
        bool pull = walk_below(walk, 2) == 0;
        request = walk_request(walk, pull ? SPILL_REQUEST_DELETE : SPILL_REQUEST_COMPLETE,
                               pull ? walk->head.intent_page : SPILL_HEAD);
        request.change.seq = walk->head.intent_seq;
        request.change.intent_page = walk->head.intent_page;
    } else if (walk_below(walk, 2) == 0 && read_any_page(walk)) {
        request = walk_request(walk, SPILL_REQUEST_PREPARE, SPILL_HEAD);
        request.change.seq = random_number(walk, &walk->page);
        request.change.intent_page = walk->page.page;
        if (request.change.seq < 0)
            return;
    } else {
        request = walk_request(walk, SPILL_REQUEST_REMOVE, SPILL_HEAD);
        request.change.seq = random_number(walk, &walk->head);
    }
    walk_send(walk, &request);
}

static void trim_somewhere(walk_t *walk)
{
    spill_request_t trim = walk_request(walk, SPILL_REQUEST_TRIM, SPILL_HEAD);
    int64_t end = spill_state_end(&walk->head);
    if (keeps_oldest(walk) && read_tail(walk))
        end = spill_state_end(&walk->page);
    if (end <= walk->head.watermark)
        return;
    trim.change.watermark = walk->head.watermark + 1 + walk_below(walk, end - walk->head.watermark);
    trim.change.removed = walk_below(walk, 4);
    walk_send(walk, &trim);
}

static void empty_page(walk_t *walk)
{
    if (!walk->head.present || walk->head.pages == 0)
        return;
    int64_t number = walk_below(walk, walk->head.pages);
    if (!read_document(walk, number, &walk->page) ||
        walk->page.incarnation != walk->head.incarnation ||
        spill_state_end(&walk->page) > walk->head.watermark)
        return;
    spill_request_t empty = walk_request(walk, SPILL_REQUEST_EMPTY_PAGE, number);
    walk_send(walk, &empty);
}

/* ---- dropping -------------------------------------------------------------------------------- */

/* Drop a page that an earlier incarnation left. */
static void drop_page(walk_t *walk)
{
    int64_t number = walk_below(walk, PAIR_PAGES);
    if (!read_document(walk, number, &walk->page) ||
        (walk->head.present && walk->page.incarnation >= walk->head.incarnation))
        return;
    spill_request_t drop = walk_request(walk, SPILL_REQUEST_DROP_PAGE, number);
    drop.incarnation = walk->page.incarnation;
    walk_send(walk, &drop);
}

static void drop_somewhere(walk_t *walk)
{
    bool oldest = keeps_oldest(walk) && walk->head.pages > 0;
    bool closed = oldest && read_tail(walk) && walk->page.closed;
    if (pair_is_capped(walk->array) && !walk->head.present)
        return;
    if (!pair_is_capped(walk->array) &&
        (!walk->head.present || (oldest && !closed) || (!oldest && walk_below(walk, 8) != 0))) {
        drop_page(walk);
        return;
    }
    if (pair_is_capped(walk->array) && walk_below(walk, 6) != 0)
        return;
    spill_request_t request = walk_request(walk, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    request.drop_head.pages = walk->head.pages;
    walk_send(walk, &request);
}

/* ---- random steps ---------------------------------------------------------------------------- */

static void read_somewhere(walk_t *walk)
{
    if (!read_any_page(walk))
        return;
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, SPILL_PAGE_HOLDING);
    read.read.pages = walk->head.pages;
    read.read.seq = walk->page.first;
    read.read.want = walk_below(walk, 2) == 0 ? SPILL_WANT_FORWARD : SPILL_WANT_BACKWARD;
    read.read.limit = walk_below(walk, 4);
    if (walk->page.first >= walk->head.watermark)
        assert_int_equal(pair_call(&walk->pair, walk->array, &read), SPILL_OK);
    read.page = walk_below(walk, 2) == 0 ? walk->page.page : SPILL_HEAD;
    read.read.seq = random_number(walk, read.page == SPILL_HEAD ? &walk->head : &walk->page);
    assert_int_equal(pair_call(&walk->pair, walk->array, &read), SPILL_OK);
}

static const walk_fn acts[] = {
    append_somewhere, append_somewhere, append_somewhere, spill_or_extend, spill_or_extend,
    spill_or_extend,  edit_somewhere,   remove_one,       trim_somewhere,  empty_page,
    update_fields,    read_somewhere,   drop_somewhere,   drop_somewhere,  walk_deliver_late,
};

static const spill_request_kind_t unused[] = {SPILL_REQUEST_RECOUNT,     SPILL_REQUEST_ADOPT,
                                              SPILL_REQUEST_ADOPT_SPLIT, SPILL_REQUEST_UNMANAGE,
                                              SPILL_REQUEST_FORGET,      SPILL_REQUEST_REWRITE};

static const walk_plan_t plan = {
    .array_count = PAIR_ARRAYS,
    .acts = acts,
    .act_count = sizeof acts / sizeof *acts,
    .read_head = read_head,
    .compare = compare_owner,
    .is_obsolete = is_obsolete,
    .unused = unused,
    .unused_count = sizeof unused / sizeof *unused,
    .late_max = WALK_LATE_MAX,
    .steps = 650,
    .walks = 40,
    .walks_slow = 10,
    .walks_sanitized = 10,
};

static void random_requests_have_the_same_effect(void **state)
{
    walk_play(&plan, *state);
}

void add_random_tests(suite_t *suite)
{
    SUITE_ADD(suite, random_requests_have_the_same_effect);
}
