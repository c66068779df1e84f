/*
 * Layouts reference and subset: random requests of simulated clients, some late and some twice.
 * After each request the store must have the same documents as a model store.
 */
#include "late.h"
#include "pair.h"

#include "definition/fields.h"
#include "definition/schema.h"
#include "suite.h"
#include "support/effort.h"

enum { LATE_MAX = 12, COMPARED = 4, TEXT_MOST = 500 };

typedef struct walk {
    pair_t pair;
    uint64_t random;
    int64_t incarnation; /* of the next head to be created */
    late_queue_t late;
    size_t array, owner; /* of the current step */
    spill_state_t head;  /* the head as it was read, with its journal */
    spill_run_t journal;
    spill_state_t page; /* the document that was read last, with its element */
    spill_run_t element;
    spill_top_t top_n; /* layout subset: the refill that a step carries */
    spill_run_t top_n_run;
} walk_t;

static int64_t random_below(walk_t *walk, int64_t bound)
{
    return dice_below(&walk->random, bound);
}

static const spill_definition_t *definition_of(const walk_t *walk)
{
    return &walk->pair.definitions[walk->array];
}

/* ---- reading --------------------------------------------------------------------------------- */

static spill_request_t make_walk_request(const walk_t *walk, spill_request_kind_t kind,
                                         int64_t page)
{
    spill_request_t request = pair_request(&walk->pair, walk->array, walk->owner, kind, page);
    request.incarnation = walk->head.incarnation;
    request.rev = walk->head.rev;
    return request;
}

static void read_both(walk_t *walk, const spill_request_t *read)
{
    assert_int_equal(pair_call(&walk->pair, walk->array, read), SPILL_OK);
}

static void read_head(walk_t *walk)
{
    spill_request_t read = make_walk_request(walk, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_top = true;
    read_both(walk, &read);
    spill_state_copy(&walk->pair.responses[0].state, &walk->head);
    spill_run_clear(&walk->journal);
    spill_run_copy(&walk->pair.responses[0].run, &walk->journal);
}

/*
 * Read a document; false: it does not exist in this incarnation. Elements outside the array are not
 * compared: a store need not keep them.
 */
static bool read_document(walk_t *walk, int64_t seq)
{
    const spill_state_t *page = &walk->pair.responses[0].state;
    spill_request_t read = make_walk_request(walk, SPILL_REQUEST_READ, seq);
    read_both(walk, &read);
    bool ours = page->present && page->incarnation == walk->head.incarnation;
    if (ours && seq < walk->head.pages && seq >= walk->head.watermark) {
        read.read.want = SPILL_WANT_FORWARD;
        read.read.seq = seq;
        read.read.limit = 1;
        read_both(walk, &read);
    }
    spill_state_copy(page, &walk->page);
    spill_run_clear(&walk->element);
    spill_run_copy(&walk->pair.responses[0].run, &walk->element);
    return ours;
}

/* Read a random document that the head counts; false if it has no element. */
static bool read_any_document(walk_t *walk)
{
    int64_t count = walk->head.present ? walk->head.pages - walk->head.watermark : 0;
    return count > 0 && read_document(walk, walk->head.watermark + random_below(walk, count)) &&
           walk->element.count == 1;
}

static spill_request_t elements_request(const walk_t *walk, spill_want_t want)
{
    spill_request_t read = make_walk_request(walk, SPILL_REQUEST_READ, SPILL_ELEMENTS);
    read.read.watermark = walk->head.watermark;
    read.read.pages = walk->head.pages;
    read.read.want = want;
    read.read.limit = INT32_MAX;
    return read;
}

/* Find the highest-ranked documents from the trim watermark on, without number `without`. */
static void find_top_n(walk_t *walk, int64_t low, int64_t without, int64_t limit)
{
    spill_request_t read = elements_request(walk, SPILL_WANT_TOP_N);
    read.read.watermark = low;
    read.read.seq = without;
    read.read.limit = limit;
    read_both(walk, &read);
    spill_top_copy(&walk->pair.responses[0].top_n, &walk->top_n);
    spill_run_clear(&walk->top_n_run);
    spill_run_copy(&walk->pair.responses[0].run, &walk->top_n_run);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void compare_stores(walk_t *walk)
{
    read_head(walk);
    spill_request_t all = elements_request(walk, SPILL_WANT_FORWARD);
    if (walk->head.present)
        read_both(walk, &all);
    int64_t end = spill_state_end(&walk->head);
    for (int64_t seq = end > COMPARED ? end - COMPARED : 0; seq <= end; seq++)
        read_document(walk, seq);
}

static void deliver(walk_t *walk, const spill_request_t *request)
{
    pair_call(&walk->pair, walk->array, request);
    compare_stores(walk);
}

static void deliver_now_or_later(walk_t *walk, const spill_request_t *request)
{
    int64_t fate = random_below(walk, 10);
    if (fate < 2)
        late_add(&walk->late, LATE_MAX, walk->array, walk->owner, request);
    if (fate != 0)
        deliver(walk, request);
}

/* In an array with a top, the step mostly carries the refill, but sometimes not. */
static void deliver_step(walk_t *walk, spill_request_t *step)
{
    bool trim = step->kind == SPILL_REQUEST_TRIM;
    if (spill_schema_of(definition_of(walk))->has_top && random_below(walk, 5) != 0) {
        find_top_n(walk,
                   trim && step->change.watermark > walk->head.watermark ? step->change.watermark
                                                                         : walk->head.watermark,
                   trim ? -1 : step->change.seq, definition_of(walk)->top_count);
        step->change.refill = &walk->top_n;
        step->change.refill_run = &walk->top_n_run;
    }
    deliver_now_or_later(walk, step);
}

/* Is the late document outside the array by now? A store may refuse it. */
static bool is_obsolete(walk_t *walk, const spill_request_t *request)
{
    const spill_state_t *head = &walk->head;
    if (request->kind != SPILL_REQUEST_PUT_PAGE)
        return false;
    read_head(walk);
    if (!head->present || head->incarnation != request->incarnation)
        return request->put_page.replaces;
    if (request->put_page.replaces)
        return !head->intent_edit || head->intent_source_rev != request->put_page.source_rev;
    return request->page < head->pages || request->put_page.first < head->first;
}

static void deliver_late(walk_t *walk)
{
    late_t late;
    if (!late_take_random(&walk->late, &walk->random, &late))
        return;
    walk->array = late.array;
    walk->owner = late.owner;
    if (!is_obsolete(walk, late.request))
        deliver(walk, late.request);
    spill_request_free(late.request);
}

/* ---- elements -------------------------------------------------------------------------------- */

/* Append an `_id`, and names that are allowed only in some places of a document. */
static void append_random_name(walk_t *walk, bson_t *element)
{
    static const uint8_t bytes[12] = "0123456789ab";
    bson_oid_t id;
    switch (random_below(walk, 9)) {
    case 0:
    case 1:
        bson_oid_init_from_data(&id, bytes);
        BSON_APPEND_OID(element, "_id", &id);
        break;
    case 2:
        BCON_APPEND(element, "_id", "{", "_id", BCON_INT64(random_below(walk, 9)), "}");
        break;
    case 3:
        BCON_APPEND(element, "_id", "[", BCON_INT32(1), BCON_NULL, "]");
        break;
    case 4:
        BSON_APPEND_INT32(element, "$cost", (int32_t)random_below(walk, 9));
        break;
    case 5:
        BSON_APPEND_UTF8(element, "", "unnamed");
        break;
    default:
        break;
    }
}

static bson_t *random_element(walk_t *walk)
{
    bson_t *element = bson_new();
    char text[TEXT_MOST + 1] = "";
    bool first = random_below(walk, 2) == 0;
    if (first)
        append_random_name(walk, element);
    switch (random_below(walk, 8)) {
    case 0:
        BSON_APPEND_DOUBLE(element, "rating", (double)random_below(walk, 100) / 7 - 3);
        break;
    case 1:
        BSON_APPEND_INT64(element, "rating", INT64_MAX - random_below(walk, 3));
        break;
    case 2:
        BSON_APPEND_UTF8(element, "rating", "none");
        break;
    case 3:
        BSON_APPEND_DATE_TIME(element, "rating", random_below(walk, 5));
        break;
    default:
        BSON_APPEND_INT32(element, "rating", (int32_t)random_below(walk, 11) - 5);
    }
    memset(text, 'x', (size_t)(random_below(walk, 4) == 0 ? random_below(walk, TEXT_MOST) : 3));
    BSON_APPEND_UTF8(element, "text", text);
    if (!first)
        append_random_name(walk, element);
    return element;
}

static spill_sum_t sum_value(const walk_t *walk, const spill_run_t *run, size_t index)
{
    spill_element_t element = spill_run_element(run, index);
    return spill_sum_of(definition_of(walk), &element.value);
}

static void append(walk_t *walk)
{
    enum { MOST = 3 };
    bson_t *documents[MOST];
    spill_value_t elements[MOST];
    spill_request_t append = make_walk_request(walk, SPILL_REQUEST_APPEND, SPILL_HEAD);
    append.append.element_count = (size_t)(1 + random_below(walk, MOST));
    append.append.elements = elements;
    for (size_t i = 0; i < append.append.element_count; i++) {
        documents[i] = random_element(walk);
        elements[i] = spill_value_from_document(documents[i]);
        append.append.elements_bytes += elements[i].size_bytes;
    }
    spill_op_t op = {.id_bytes = 3, .base = walk->head.op_count - random_below(walk, 3)};
    const char id[] = {(char)('a' + random_below(walk, 2)), (char)('a' + op.base % 20),
                       (char)('a' + walk->head.incarnation / 1000 % 26)};
    op.id = id;
    append.append.op = random_below(walk, 3) == 0 ? &op : NULL;
    append.limits.slots_max = random_below(walk, 4) == 0 ? random_below(walk, 10) : 100;
    append.limits.bytes_max = random_below(walk, 8) == 0 ? 2500 : 100000;
    if (!walk->head.present) {
        append.create = random_below(walk, 8) != 0;
        append.incarnation = walk->incarnation += 1000;
    }
    deliver_now_or_later(walk, &append);
    for (size_t i = 0; i < append.append.element_count; i++)
        bson_destroy(documents[i]);
}

/* ---- writing the journal to documents -------------------------------------------------------- */

/* Count the documents, from the journal's beginning, that were put at this rev. */
static int64_t count_written(walk_t *walk)
{
    int64_t count = 0;
    while (count < spill_state_slots(&walk->head) &&
           read_document(walk, walk->head.first + count) && walk->page.source_rev == walk->head.rev)
        count++;
    return count;
}

static void cut(walk_t *walk, int64_t slots)
{
    spill_request_t cut = make_walk_request(walk, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.cut.pages = walk->head.pages;
    cut.cut.first = walk->head.first;
    cut.cut.slots = slots;
    for (size_t i = 0; i < walk->journal.count; i++)
        if (walk->journal.entries[i].seq < walk->head.first + slots)
            cut.cut.bytes += walk->journal.entries[i].size_bytes;
    deliver_now_or_later(walk, &cut);
}

static void write_out(walk_t *walk)
{
    int64_t slots = spill_state_slots(&walk->head);
    int64_t done = walk->head.present ? count_written(walk) : 0;
    if (slots == 0 || !walk->head.present)
        return;
    if (done == slots || (done > 0 && random_below(walk, 3) == 0)) {
        cut(walk, done);
        return;
    }
    int64_t seq = walk->head.first + done;
    spill_run_t run = {0};
    spill_seqs_t deleted = {0};
    for (size_t i = 0; i < walk->journal.count; i++)
        if (walk->journal.entries[i].seq == seq) {
            spill_element_t element = spill_run_element(&walk->journal, i);
            spill_run_add(&run, seq, &element.value);
        }
    if (run.count == 0)
        spill_seqs_insert(&deleted, seq);
    spill_request_t put = make_walk_request(walk, SPILL_REQUEST_PUT_PAGE, seq);
    put.put_page.source_rev = walk->head.rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.deleted = &deleted;
    deliver_now_or_later(walk, &put);
    spill_run_release(&run);
    spill_seqs_release(&deleted);
}

/* ---- changing and removing ------------------------------------------------------------------- */

static void change_journal(walk_t *walk)
{
    if (walk->journal.count == 0 || walk->head.intent)
        return; /* it would be completed first */
    bool edit = random_below(walk, 2) == 0;
    size_t index = (size_t)random_below(walk, (int64_t)walk->journal.count);
    bson_t *document = random_element(walk);
    spill_value_t element = spill_value_from_document(document);
    spill_request_t change =
        make_walk_request(walk, edit ? SPILL_REQUEST_EDIT : SPILL_REQUEST_REMOVE, SPILL_HEAD);
    change.change.seq = walk->journal.entries[index].seq;
    change.change.sum_removed = sum_value(walk, &walk->journal, index);
    if (edit) {
        change.change.element = &element;
        change.change.sum_added = spill_sum_of(definition_of(walk), &element);
    }
    deliver_step(walk, &change);
    bson_destroy(document);
}

static void prepare_change(walk_t *walk)
{
    if (walk->head.intent || !read_any_document(walk))
        return;
    bson_t *document = random_element(walk);
    spill_value_t element = spill_value_from_document(document);
    spill_request_t prepare = make_walk_request(walk, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.change.edit = random_below(walk, 2) == 0;
    prepare.change.seq = walk->page.page;
    prepare.change.intent_page = walk->page.page;
    prepare.change.sum_removed = sum_value(walk, &walk->element, 0);
    if (prepare.change.edit) {
        prepare.change.sum_added = spill_sum_of(definition_of(walk), &element);
        deliver_now_or_later(walk, &prepare);
    } else {
        deliver_step(walk, &prepare);
    }
    bson_destroy(document);
}

static spill_request_t complete_request(const walk_t *walk)
{
    spill_request_t complete = make_walk_request(walk, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
    complete.change.seq = walk->head.intent_seq;
    complete.change.intent_page = walk->head.intent_page;
    return complete;
}

/*
 * Put an element with the intent's source_rev. If the put succeeded, complete the edit with that
 * element.
 */
static void finish_edit(walk_t *walk)
{
    if (walk->page.source_rev < walk->head.intent_source_rev) {
        bson_t *document = random_element(walk);
        spill_value_t element = spill_value_from_document(document);
        spill_run_t run = {0};
        spill_run_add(&run, walk->head.intent_seq, &element);
        spill_request_t put =
            make_walk_request(walk, SPILL_REQUEST_PUT_PAGE, walk->head.intent_page);
        put.put_page.source_rev = walk->head.intent_source_rev;
        put.put_page.first = walk->head.intent_seq;
        put.put_page.slots = 1;
        put.put_page.run = &run;
        put.put_page.replaces = true;
        deliver_now_or_later(walk, &put);
        spill_run_release(&run);
        bson_destroy(document);
    } else if (walk->element.count == 1) {
        spill_run_t now = {0};
        spill_run_copy(&walk->element, &now);
        spill_element_t element = spill_run_element(&now, 0);
        spill_request_t complete = complete_request(walk);
        complete.change.sum_added = sum_value(walk, &now, 0);
        complete.change.element = &element.value;
        deliver_step(walk, &complete);
        spill_run_release(&now);
    }
}

static void finish_change(walk_t *walk)
{
    if (!walk->head.intent || !read_document(walk, walk->head.intent_page))
        return;
    if (walk->head.intent_edit) {
        finish_edit(walk);
        return;
    }
    spill_request_t request =
        walk->element.count == 0
            ? complete_request(walk)
            : make_walk_request(walk, SPILL_REQUEST_DELETE, walk->head.intent_page);
    request.change.seq = walk->head.intent_seq;
    deliver_now_or_later(walk, &request);
}

static void trim(walk_t *walk)
{
    int64_t end = spill_state_end(&walk->head);
    if (!walk->head.present || walk->head.intent || end <= walk->head.watermark)
        return;
    spill_request_t trim = make_walk_request(walk, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.change.watermark =
        walk->head.watermark + 1 + random_below(walk, end - walk->head.watermark);
    spill_request_t all = elements_request(walk, SPILL_WANT_FORWARD);
    read_both(walk, &all);
    const spill_run_t *runs[] = {&walk->pair.responses[0].run, &walk->journal};
    int64_t stay = 0;
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < runs[k]->count; i++) {
            spill_sum_t amount = sum_value(walk, runs[k], i);
            if (runs[k]->entries[i].seq < trim.change.watermark)
                spill_sum_add(&trim.change.sum_removed, &amount);
            else
                stay += k == 0 ? 1 : 0;
        }
    int64_t numbers = walk->head.first - trim.change.watermark;
    trim.change.removed = numbers > 0 ? numbers - stay : 0;
    deliver_step(walk, &trim);
}

static void recount(walk_t *walk)
{
    if (!walk->head.present)
        return;
    spill_request_t recount = make_walk_request(walk, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    recount.recount.end = spill_state_end(&walk->head);
    recount.recount.sum =
        (spill_sum_t){.values = 1000 + random_below(walk, 9), .whole = random_below(walk, 100)};
    recount.recount.sum.high =
        random_below(walk, 2) == 0 ? 0.25 * (double)random_below(walk, 9) : 0;
    find_top_n(walk, walk->head.watermark, -1,
               1 + random_below(walk, definition_of(walk)->top_count + 1));
    recount.recount.refill = &walk->top_n;
    recount.recount.refill_run = &walk->top_n_run;
    deliver_now_or_later(walk, &recount);
}

/* ---- emptying and dropping ------------------------------------------------------------------- */

/* Empty a document that was trimmed or belongs to an earlier incarnation. */
static void empty_document(walk_t *walk)
{
    int64_t end = walk->head.present ? spill_state_end(&walk->head) : 2 * COMPARED;
    int64_t seq = random_below(walk, end + 1);
    bool ours = read_document(walk, seq);
    spill_request_t request =
        make_walk_request(walk, ours ? SPILL_REQUEST_EMPTY_PAGE : SPILL_REQUEST_DROP_PAGE, seq);
    if (!walk->page.present || (ours && seq >= walk->head.watermark) ||
        (walk->head.present && walk->page.incarnation > walk->head.incarnation))
        return;
    if (!ours)
        request.incarnation = walk->page.incarnation;
    deliver_now_or_later(walk, &request);
}

static void drop(walk_t *walk)
{
    if (!walk->head.present || random_below(walk, 6) != 0)
        return;
    spill_request_t drop = make_walk_request(walk, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.drop_head.pages = walk->head.pages;
    deliver_now_or_later(walk, &drop);
}

static void read_somewhere(walk_t *walk)
{
    if (!walk->head.present)
        return;
    spill_request_t read = elements_request(walk, random_below(walk, 2) == 0 ? SPILL_WANT_FORWARD
                                                                             : SPILL_WANT_BACKWARD);
    read.read.seq = walk->head.watermark +
                    random_below(walk, spill_state_end(&walk->head) - walk->head.watermark + 2) - 1;
    read.read.limit = 1 + random_below(walk, 5);
    read_both(walk, &read);
    if (spill_schema_of(definition_of(walk))->has_top)
        find_top_n(walk, walk->head.watermark + random_below(walk, 3), read.read.seq,
                   1 + random_below(walk, 6));
}

/* ---- random steps ---------------------------------------------------------------------------- */

static void random_step(walk_t *walk)
{
    static void (*const acts[])(walk_t *) = {
        append,         append,         append,         write_out,     write_out,     write_out,
        write_out,      change_journal, prepare_change, finish_change, finish_change, trim,
        empty_document, recount,        read_somewhere, drop,          deliver_late};
    walk->array = random_below(walk, 2) == 0 ? PAIR_REFERENCE : PAIR_SUBSET;
    walk->owner = (size_t)random_below(walk, PAIR_OWNERS);
    read_head(walk);
    acts[random_below(walk, sizeof acts / sizeof *acts)](walk);
}

static void release(walk_t *walk)
{
    spill_state_release(&walk->head);
    spill_run_release(&walk->journal);
    spill_state_release(&walk->page);
    spill_run_release(&walk->element);
    spill_top_release(&walk->top_n);
    spill_run_release(&walk->top_n_run);
    pair_close(&walk->pair);
}

static void random_requests_of_referenced_elements_have_same_effect(void **state)
{
    enum { STEPS = 400 };
    static const spill_request_kind_t kinds[] = {
        SPILL_REQUEST_APPEND,     SPILL_REQUEST_PUT_PAGE,  SPILL_REQUEST_CUT,
        SPILL_REQUEST_EDIT,       SPILL_REQUEST_REMOVE,    SPILL_REQUEST_PREPARE,
        SPILL_REQUEST_DELETE,     SPILL_REQUEST_COMPLETE,  SPILL_REQUEST_TRIM,
        SPILL_REQUEST_EMPTY_PAGE, SPILL_REQUEST_DROP_HEAD, SPILL_REQUEST_DROP_PAGE,
        SPILL_REQUEST_RECOUNT};
    const contract_kind_t *store = *state;
    enum { WALKS = 20 };
    uint64_t walks = (uint64_t)(store->slow ? effort(WALKS, 2, 2) : effort(WALKS, WALKS, 5));
    bool whole = walks == WALKS;
    static walk_t walk;
    int64_t done[SPILL_REQUEST_KIND_COUNT] = {0}, refused[SPILL_REQUEST_KIND_COUNT] = {0};
    for (uint64_t seed = 1; seed <= walks; seed++) {
        walk = (walk_t){.random = seed, .incarnation = INCARNATION};
        pair_open(&walk.pair, store);
        for (int i = 0; i < STEPS; i++) {
            random_step(&walk);
            if (i == STEPS / 2)
                pair_reopen(&walk.pair);
        }
        while (walk.late.count > 0)
            deliver_late(&walk);
        for (int kind = 0; kind < SPILL_REQUEST_KIND_COUNT; kind++) {
            done[kind] += walk.pair.done[kind];
            refused[kind] += walk.pair.refused[kind];
        }
        release(&walk);
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (done[kinds[i]] == 0 || (whole && refused[kinds[i]] == 0))
            fail_msg("%s: done %lld times, refused %lld times", spill_request_kind_name(kinds[i]),
                     (long long)done[kinds[i]], (long long)refused[kinds[i]]);
}

void add_random_referenced_tests(suite_t *suite)
{
    SUITE_ADD(suite, random_requests_of_referenced_elements_have_same_effect);
}
