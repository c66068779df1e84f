/*
 * Layouts reference and subset: random requests of simulated clients, some late and some twice.
 * After each request the store must have the same documents as a model store.
 */
#include "random_walk.h"

#include "definition/schema.h"
#include "suite.h"

enum { COMPARED = 4, TEXT_MOST = 500 };

static const spill_definition_t *definition_of(const walk_t *walk)
{
    return &walk->pair.definitions[walk->array];
}

/* ---- reading --------------------------------------------------------------------------------- */

static void read_both(walk_t *walk, const spill_request_t *read)
{
    assert_int_equal(pair_call(&walk->pair, walk->array, read), SPILL_OK);
}

static void read_head(walk_t *walk)
{
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, SPILL_HEAD);
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
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, seq);
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
    return count > 0 && read_document(walk, walk->head.watermark + walk_below(walk, count)) &&
           walk->element.count == 1;
}

static spill_request_t elements_request(const walk_t *walk, spill_want_t want)
{
    spill_request_t read = walk_request(walk, SPILL_REQUEST_READ, SPILL_ELEMENTS);
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

/* In an array with a top, the step mostly carries the refill, but sometimes not. */
static void deliver_step(walk_t *walk, spill_request_t *step)
{
    bool trim = step->kind == SPILL_REQUEST_TRIM;
    if (spill_schema_of(definition_of(walk))->has_top && walk_below(walk, 5) != 0) {
        find_top_n(walk,
                   trim && step->change.watermark > walk->head.watermark ? step->change.watermark
                                                                         : walk->head.watermark,
                   trim ? -1 : step->change.seq, definition_of(walk)->top_count);
        step->change.refill = &walk->top_n;
        step->change.refill_run = &walk->top_n_run;
    }
    walk_send(walk, step);
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

/* ---- elements -------------------------------------------------------------------------------- */

/* Append an `_id`, and names that are allowed only in some places of a document. */
static void append_random_name(walk_t *walk, bson_t *element)
{
    static const uint8_t bytes[12] = "0123456789ab";
    bson_oid_t id;
    switch (walk_below(walk, 9)) {
    case 0:
    case 1:
        bson_oid_init_from_data(&id, bytes);
        BSON_APPEND_OID(element, "_id", &id);
        break;
    case 2:
        BCON_APPEND(element, "_id", "{", "_id", BCON_INT64(walk_below(walk, 9)), "}");
        break;
    case 3:
        BCON_APPEND(element, "_id", "[", BCON_INT32(1), BCON_NULL, "]");
        break;
    case 4:
        BSON_APPEND_INT32(element, "$cost", (int32_t)walk_below(walk, 9));
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
    bool first = walk_below(walk, 2) == 0;
    if (first)
        append_random_name(walk, element);
    switch (walk_below(walk, 8)) {
    case 0:
        BSON_APPEND_DOUBLE(element, "rating", (double)walk_below(walk, 100) / 7 - 3);
        break;
    case 1:
        BSON_APPEND_INT64(element, "rating", INT64_MAX - walk_below(walk, 3));
        break;
    case 2:
        BSON_APPEND_UTF8(element, "rating", "none");
        break;
    case 3:
        BSON_APPEND_DATE_TIME(element, "rating", walk_below(walk, 5));
        break;
    default:
        BSON_APPEND_INT32(element, "rating", (int32_t)walk_below(walk, 11) - 5);
    }
    memset(text, 'x', (size_t)(walk_below(walk, 4) == 0 ? walk_below(walk, TEXT_MOST) : 3));
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
    spill_request_t append = walk_request(walk, SPILL_REQUEST_APPEND, SPILL_HEAD);
    append.append.element_count = (size_t)(1 + walk_below(walk, MOST));
    append.append.elements = elements;
    for (size_t i = 0; i < append.append.element_count; i++) {
        documents[i] = random_element(walk);
        elements[i] = spill_value_from_document(documents[i]);
        append.append.elements_bytes += elements[i].size_bytes;
    }
    spill_op_t op = {.id_bytes = 3, .base = walk->head.op_count - walk_below(walk, 3)};
    const char id[] = {(char)('a' + walk_below(walk, 2)), (char)('a' + op.base % 20),
                       (char)('a' + walk->head.incarnation / 1000 % 26)};
    op.id = id;
    append.append.op = walk_below(walk, 3) == 0 ? &op : NULL;
    append.limits.slots_max = walk_below(walk, 4) == 0 ? walk_below(walk, 10) : 100;
    append.limits.bytes_max = walk_below(walk, 8) == 0 ? 2500 : 100000;
    if (!walk->head.present) {
        append.create = walk_below(walk, 8) != 0;
        append.incarnation = walk->incarnation += 1000;
    }
    walk_send(walk, &append);
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
    spill_request_t cut = walk_request(walk, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.cut.pages = walk->head.pages;
    cut.cut.first = walk->head.first;
    cut.cut.slots = slots;
    for (size_t i = 0; i < walk->journal.count; i++)
        if (walk->journal.entries[i].seq < walk->head.first + slots)
            cut.cut.bytes += walk->journal.entries[i].size_bytes;
    walk_send(walk, &cut);
}

static void write_out(walk_t *walk)
{
    int64_t slots = spill_state_slots(&walk->head);
    int64_t done = walk->head.present ? count_written(walk) : 0;
    if (slots == 0 || !walk->head.present)
        return;
    if (done == slots || (done > 0 && walk_below(walk, 3) == 0)) {
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
    spill_request_t put = walk_request(walk, SPILL_REQUEST_PUT_PAGE, seq);
    put.put_page.source_rev = walk->head.rev;
    put.put_page.first = seq;
    put.put_page.slots = 1;
    put.put_page.run = &run;
    put.put_page.deleted = &deleted;
    walk_send(walk, &put);
    spill_run_release(&run);
    spill_seqs_release(&deleted);
}

/* ---- changing and removing ------------------------------------------------------------------- */

static void change_journal(walk_t *walk)
{
    if (walk->journal.count == 0 || walk->head.intent)
        return; /* it would be completed first */
    bool edit = walk_below(walk, 2) == 0;
    size_t index = (size_t)walk_below(walk, (int64_t)walk->journal.count);
    bson_t *document = random_element(walk);
    spill_value_t element = spill_value_from_document(document);
    spill_request_t change =
        walk_request(walk, edit ? SPILL_REQUEST_EDIT : SPILL_REQUEST_REMOVE, SPILL_HEAD);
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
    spill_request_t prepare = walk_request(walk, SPILL_REQUEST_PREPARE, SPILL_HEAD);
    prepare.change.edit = walk_below(walk, 2) == 0;
    prepare.change.seq = walk->page.page;
    prepare.change.intent_page = walk->page.page;
    prepare.change.sum_removed = sum_value(walk, &walk->element, 0);
    if (prepare.change.edit) {
        prepare.change.sum_added = spill_sum_of(definition_of(walk), &element);
        walk_send(walk, &prepare);
    } else {
        deliver_step(walk, &prepare);
    }
    bson_destroy(document);
}

static spill_request_t complete_request(const walk_t *walk)
{
    spill_request_t complete = walk_request(walk, SPILL_REQUEST_COMPLETE, SPILL_HEAD);
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
        spill_request_t put = walk_request(walk, SPILL_REQUEST_PUT_PAGE, walk->head.intent_page);
        put.put_page.source_rev = walk->head.intent_source_rev;
        put.put_page.first = walk->head.intent_seq;
        put.put_page.slots = 1;
        put.put_page.run = &run;
        put.put_page.replaces = true;
        walk_send(walk, &put);
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
        walk->element.count == 0 ? complete_request(walk)
                                 : walk_request(walk, SPILL_REQUEST_DELETE, walk->head.intent_page);
    request.change.seq = walk->head.intent_seq;
    walk_send(walk, &request);
}

static void trim(walk_t *walk)
{
    int64_t end = spill_state_end(&walk->head);
    if (!walk->head.present || walk->head.intent || end <= walk->head.watermark)
        return;
    spill_request_t trim = walk_request(walk, SPILL_REQUEST_TRIM, SPILL_HEAD);
    trim.change.watermark = walk->head.watermark + 1 + walk_below(walk, end - walk->head.watermark);
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
    spill_request_t recount = walk_request(walk, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
    recount.recount.end = spill_state_end(&walk->head);
    recount.recount.sum =
        (spill_sum_t){.values = 1000 + walk_below(walk, 9), .whole = walk_below(walk, 100)};
    recount.recount.sum.high = walk_below(walk, 2) == 0 ? 0.25 * (double)walk_below(walk, 9) : 0;
    find_top_n(walk, walk->head.watermark, -1,
               1 + walk_below(walk, definition_of(walk)->top_count + 1));
    recount.recount.refill = &walk->top_n;
    recount.recount.refill_run = &walk->top_n_run;
    walk_send(walk, &recount);
}

/* ---- emptying and dropping ------------------------------------------------------------------- */

/* Empty a document that was trimmed or belongs to an earlier incarnation. */
static void empty_document(walk_t *walk)
{
    int64_t end = walk->head.present ? spill_state_end(&walk->head) : 2 * COMPARED;
    int64_t seq = walk_below(walk, end + 1);
    bool ours = read_document(walk, seq);
    spill_request_t request =
        walk_request(walk, ours ? SPILL_REQUEST_EMPTY_PAGE : SPILL_REQUEST_DROP_PAGE, seq);
    if (!walk->page.present || (ours && seq >= walk->head.watermark) ||
        (walk->head.present && walk->page.incarnation > walk->head.incarnation))
        return;
    if (!ours)
        request.incarnation = walk->page.incarnation;
    walk_send(walk, &request);
}

static void drop(walk_t *walk)
{
    if (!walk->head.present || walk_below(walk, 6) != 0)
        return;
    spill_request_t drop = walk_request(walk, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.drop_head.pages = walk->head.pages;
    walk_send(walk, &drop);
}

static void read_somewhere(walk_t *walk)
{
    if (!walk->head.present)
        return;
    spill_request_t read =
        elements_request(walk, walk_below(walk, 2) == 0 ? SPILL_WANT_FORWARD : SPILL_WANT_BACKWARD);
    read.read.seq = walk->head.watermark +
                    walk_below(walk, spill_state_end(&walk->head) - walk->head.watermark + 2) - 1;
    read.read.limit = 1 + walk_below(walk, 5);
    read_both(walk, &read);
    if (spill_schema_of(definition_of(walk))->has_top)
        find_top_n(walk, walk->head.watermark + walk_below(walk, 3), read.read.seq,
                   1 + walk_below(walk, 6));
}

/* ---- random steps ---------------------------------------------------------------------------- */

static const walk_fn acts[] = {
    append,         append,         append,         write_out,     write_out,        write_out,
    write_out,      change_journal, prepare_change, finish_change, finish_change,    trim,
    empty_document, recount,        read_somewhere, drop,          walk_deliver_late};

static const spill_request_kind_t unused[] = {
    SPILL_REQUEST_SEAL,          SPILL_REQUEST_ADVANCE, SPILL_REQUEST_CREATE_PAGE,
    SPILL_REQUEST_UPDATE_FIELDS, SPILL_REQUEST_ADOPT,   SPILL_REQUEST_ADOPT_SPLIT,
    SPILL_REQUEST_UNMANAGE,      SPILL_REQUEST_FORGET,  SPILL_REQUEST_REWRITE};

static const walk_plan_t plan = {
    .first_array = PAIR_REFERENCE,
    .array_count = 2, /* that one and PAIR_SUBSET */
    .acts = acts,
    .act_count = sizeof acts / sizeof *acts,
    .read_head = read_head,
    .compare = compare_stores,
    .is_obsolete = is_obsolete,
    .unused = unused,
    .unused_count = sizeof unused / sizeof *unused,
    .late_max = 12,
    .steps = 400,
    .walks = 20,
    .walks_slow = 2,
    .walks_sanitized = 5,
};

static void random_requests_of_referenced_elements_have_same_effect(void **state)
{
    walk_play(&plan, *state);
}

void add_random_referenced_tests(suite_t *suite)
{
    SUITE_ADD(suite, random_requests_of_referenced_elements_have_same_effect);
}
