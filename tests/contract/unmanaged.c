/* Unmanaged arrays in a definition's place: adopt, cut and unmanage. */
#include "unmanaged.h"
#include "bson/value.h"

#include "suite.h"

#include "store/render.h"
#include "support/state.h"

#include <stdio.h>

/* Open another array of the same heads: its steps write a head's other fields. */
static void open_other(const fixture_t *fixture, fixture_t *other)
{
    *other = *fixture;
    other->response = (spill_response_t)SPILL_RESPONSE_INIT;
    make_definition(&other->definition, "other", SPILL_KEEP_NEWEST);
    save_definition(fixture->store, &other->definition);
    assert_int_equal(
        fixture->store->ops->bind(fixture->store, &other->definition, &other->binding, NULL),
        SPILL_OK);
}

void open_both(fixture_t *fixture, fixture_t *other, const contract_kind_t *kind)
{
    fixture_open(fixture, kind, SPILL_KEEP_NEWEST);
    open_other(fixture, other);
}

void close_both(fixture_t *fixture, fixture_t *other)
{
    spill_response_release(&other->response);
    fixture_close(fixture);
}

void set_field(fixture_t *other, const bson_t *update)
{
    spill_request_t fields = make_request(other, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    fields.append.update = update;
    fields.create = true;
    assert_done(other, &fields);
}

/* Write the numbers 100, 101, ... as a program that knows nothing of Spillway. */
void write_unmanaged(fixture_t *fixture, fixture_t *other, int64_t count)
{
    bson_t update = BSON_INITIALIZER, set, array;
    other->owner = fixture->owner;
    other->key = fixture->key;
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &set);
    BSON_APPEND_UTF8(&set, "name", "Ada");
    BSON_APPEND_ARRAY_BEGIN(&set, fixture->definition.array, &array);
    for (int64_t i = 0; i < count; i++) {
        char key[24];
        snprintf(key, sizeof key, "%lld", (long long)i);
        BSON_APPEND_INT64(&array, key, 100 + spill_array_index(&fixture->definition, count, i));
    }
    bson_append_array_end(&set, &array);
    bson_append_document_end(&update, &set);
    set_field(other, &update);
    bson_destroy(&update);
}

spill_request_t make_adopt(const fixture_t *fixture)
{
    spill_request_t adopt = make_request(fixture, SPILL_REQUEST_ADOPT, SPILL_HEAD);
    adopt.create = true;
    return adopt;
}

static void adopt_keeps_all_elements(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 3);
    spill_request_t adopt = make_adopt(&fixture);
    assert_done(&fixture, &adopt);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102");
    assert_ops(&fixture, SPILL_HEAD, "");
    if (!fixture.kind->shows_other_arrays)
        assert_fields(&fixture, "{ \"_id\" : \"ada\", \"name\" : \"Ada\" }");
    append_numbers(&fixture, SPILL_HEAD, 103, 1);
    fixture_reopen(&fixture);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101 2=102 3=103");
    close_both(&fixture, &other);
}

static void answer_of_adopt_matches_read(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t adopt = make_adopt(&fixture);
    adopt.adopt.shown = 3;
    assert_done(&fixture, &adopt);
    spill_response_t adopted = fixture.response;
    fixture.response = (spill_response_t)SPILL_RESPONSE_INIT;
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 3;
    assert_done(&fixture, &read);
    if (adopted.shows_read) { /* a store may leave it to a READ */
        assert_same_state(&adopted.state, &fixture.response.state);
        assert_int_equal(adopted.run.count, 3);
        assert_true(spill_run_begins_with(&fixture.response.run, &adopted.run));
    }
    assert_int_equal(fixture.response.run.count, 3);
    spill_response_release(&adopted);
    close_both(&fixture, &other);
}

static void adopt_needs_array_with_elements(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    spill_request_t adopt = make_adopt(&fixture);
    assert_refused(&fixture, &adopt); /* no document */
    other.owner = fixture.owner;
    bson_t *update = BCON_NEW("$set", "{", "name", "Ada", "}");
    set_field(&other, update);
    bson_destroy(update);
    assert_refused(&fixture, &adopt); /* no such field */
    write_unmanaged(&fixture, &other, 0);
    assert_refused(&fixture, &adopt);
    update = BCON_NEW("$set", "{", fixture.definition.array, "{", "0", "zero", "}", "}");
    set_field(&other, update);
    bson_destroy(update);
    assert_refused(&fixture, &adopt); /* a document; its keys look like array indexes */
    write_unmanaged(&fixture, &other, 2);
    assert_done(&fixture, &adopt);
    assert_refused(&fixture, &adopt); /* it is managed */
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=101");
    close_both(&fixture, &other);
}

/* An empty unmanaged array, too, becomes the array of the head that is created in its place. */
static void unmanaged_array_prevents_new_head(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    int64_t number = 7;
    spill_value_t element = number_value(&number);
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    append.create = true;
    write_unmanaged(&fixture, &other, 2);
    spill_error_t error;
    assert_int_equal(fixture.store->ops->call(fixture.store, &append, &fixture.response, &error),
                     SPILL_REFUSED);
    assert_int_equal(error.reason, SPILL_REASON_UNMANAGED);
    assert_non_null(strstr(error.message, "2 elements"));
    assert_non_null(strstr(error.message, "migrate"));
    write_unmanaged(&fixture, &other, 0);
    assert_done(&fixture, &append);
    assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=7");
    close_both(&fixture, &other);
}

spill_run_t numbers_run(int64_t label, int64_t count)
{
    spill_run_t run = {0};
    for (int64_t i = 0; i < count; i++) {
        int64_t number = label + i;
        spill_value_t value = number_value(&number);
        spill_run_add(&run, i, &value);
    }
    return run;
}

/* Other programs do not raise rev, so a cut may compare the elements themselves. */
static void cut_may_compare_elements(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    spill_run_t run = numbers_run(100, 2);
    cut.rev = INCARNATION;
    cut.cut.slots = 2;
    cut.cut.bytes = 16;
    cut.cut.run = &run;
    append_numbers(&fixture, SPILL_HEAD, 105, 1); /* does not prevent the cut */
    assert_done(&fixture, &cut);
    spill_run_release(&run);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=102 3=103 4=104 5=105");
    fixture_close(&fixture);
}

static void cut_is_refused_if_elements_changed(void **state)
{
    const contract_kind_t *kind = *state;
    fixture_t fixture, other;
    open_both(&fixture, &other, kind);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t adopt = make_adopt(&fixture);
    assert_done(&fixture, &adopt);
    assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    /* other programs write to the same document */
    if (strcmp(fixture.store->ops->name, "mongodb") == 0) {
        char second[SPILL_NAME_SIZE + 8];
        snprintf(second, sizeof second, "%s.%d", fixture.definition.array,
                 contract_order == SPILL_ARRAY_NEWEST_FIRST ? 3 : 1);
        bson_t *update = BCON_NEW("$inc", "{", second, BCON_INT64(40), "}");
        set_field(&other, update);
        bson_destroy(update);
        spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
        spill_run_t run = numbers_run(100, 2);
        cut.rev = INCARNATION;
        cut.cut.slots = 2;
        cut.cut.bytes = 16;
        cut.cut.run = &run;
        assert_refused(&fixture, &cut);
        spill_run_release(&run);
        assert_document(&fixture, SPILL_HEAD, "rev+0 | 0=100 1=141 2=102 3=103 4=104");
        /* After a recount raised the rev, the page can be put again. */
        spill_request_t recount = make_request(&fixture, SPILL_REQUEST_RECOUNT, SPILL_HEAD);
        recount.rev = INCARNATION;
        assert_done(&fixture, &recount);
        assert_int_equal(put_from_head(&fixture, 0, 2), SPILL_DONE);
    }
    assert_int_equal(cut_from_head(&fixture, 0), SPILL_DONE);
    close_both(&fixture, &other);
}

static void cut_moves_several_pages(void **state)
{
    fixture_t fixture;
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 7);
    spill_request_t put = make_request(&fixture, SPILL_REQUEST_PUT_PAGE, 0);
    spill_run_t runs[2] = {numbers_run(100, 2), numbers_run(102, 3)};
    put.put_page.source_rev = INCARNATION;
    put.put_page.slots = 2;
    put.put_page.run = &runs[0];
    assert_done(&fixture, &put);
    for (size_t i = 0; i < runs[1].count; i++)
        runs[1].entries[i].seq += 2;
    put.page = 1;
    put.put_page.first = 2;
    put.put_page.slots = 3;
    put.put_page.run = &runs[1];
    assert_done(&fixture, &put);
    spill_request_t cut = make_request(&fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.rev = INCARNATION;
    cut.cut.slots = 5;
    cut.cut.bytes = 40;
    cut.cut.more_pages = 1;
    assert_done(&fixture, &cut);
    spill_run_release(&runs[0]);
    spill_run_release(&runs[1]);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=5 pages=2 | 5=105 6=106");
    assert_document(&fixture, 1, "rev+0 first=2 page=1 | 2=102 3=103 4=104");
    fixture_close(&fixture);
}

/* Put `count` pages 0, 1, ... of one element each, as copied from a head at rev `src`. */
static void put_several(fixture_t *fixture, int64_t source_rev, size_t count,
                        spill_response_t *answers)
{
    enum { SEVERAL_MAX = 8 };
    spill_run_t runs[SEVERAL_MAX];
    spill_request_t puts[SEVERAL_MAX];
    assert_true(count <= SEVERAL_MAX);
    for (size_t i = 0; i < count; i++) {
        puts[i] = make_request(fixture, SPILL_REQUEST_PUT_PAGE, (int64_t)i);
        runs[i] = numbers_run(100 + (int64_t)i, 1);
        runs[i].entries[0].seq = (int64_t)i;
        puts[i].put_page.source_rev = source_rev;
        puts[i].put_page.first = (int64_t)i;
        puts[i].put_page.slots = 1;
        puts[i].put_page.run = &runs[i];
    }
    assert_int_equal(spill_store_call_all(fixture->store, puts, count, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < count; i++)
        spill_run_release(&runs[i]);
}

/* Each page is put or refused by itself. */
static void several_pages_are_put_in_one_request(void **state)
{
    fixture_t fixture;
    spill_response_t answers[4] = {0};
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    put_several(&fixture, INCARNATION, 2, answers);
    assert_int_equal(answers[0].outcome, SPILL_DONE);
    assert_int_equal(answers[1].outcome, SPILL_DONE);
    spill_request_t newer = make_request(&fixture, SPILL_REQUEST_PUT_PAGE, 1);
    spill_run_t run = numbers_run(101, 1);
    run.entries[0].seq = 1;
    newer.put_page.source_rev = INCARNATION + 9;
    newer.put_page.first = 1;
    newer.put_page.slots = 1;
    newer.put_page.run = &run;
    assert_done(&fixture, &newer);
    spill_run_release(&run);
    put_several(&fixture, INCARNATION + 1, 4,
                answers); /* replaces an older, not a newer page, and creates a missing one */
    const spill_outcome_t expected[] = {SPILL_DONE, SPILL_REFUSED_GUARD, SPILL_DONE, SPILL_DONE};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(answers[i].outcome, expected[i]);
    assert_document(&fixture, 0, "rev+1 src+1 | 0=100");
    assert_document(&fixture, 1, "rev+9 first=1 page=1 src+9 | 1=101");
    assert_document(&fixture, 2, "rev+1 first=2 page=2 src+1 | 2=102");
    assert_document(&fixture, 3, "rev+1 first=3 page=3 src+1 | 3=103");
    for (size_t i = 0; i < 4; i++)
        spill_response_release(&answers[i]);
    fixture_close(&fixture);
}

static void several_pages_are_read_in_one_request(void **state)
{
    enum { COUNT = 4, THERE = 3 };
    fixture_t fixture;
    spill_request_t reads[COUNT];
    spill_response_t answers[COUNT] = {0};
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    put_several(&fixture, INCARNATION, THERE, answers);
    for (size_t i = 0; i < COUNT; i++) {
        reads[i] = make_request(&fixture, SPILL_REQUEST_READ, (int64_t)(COUNT - 1 - i));
        reads[i].read.want = SPILL_WANT_FORWARD;
        reads[i].read.limit = 10;
    }
    assert_int_equal(spill_store_call_all(fixture.store, reads, COUNT, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < COUNT; i++) {
        int64_t page = reads[i].page, number = 100 + page;
        spill_value_t expected = number_value(&number);
        assert_int_equal(answers[i].outcome, SPILL_DONE);
        assert_int_equal(answers[i].state.present, page < THERE);
        assert_int_equal(answers[i].run.count, page < THERE ? 1 : 0);
        if (page == THERE)
            continue;
        assert_int_equal(answers[i].state.page, page);
        assert_int_equal(answers[i].state.first, page);
        spill_element_t element = spill_run_element(&answers[i].run, 0);
        assert_int_equal(element.seq, page);
        assert_true(spill_value_equal(&element.value, &expected));
    }
    for (size_t i = 0; i < COUNT; i++)
        spill_response_release(&answers[i]);
    fixture_close(&fixture);
}

/* Each page is deleted or refused by itself. */
static void several_pages_are_dropped_in_one_request(void **state)
{
    enum { COUNT = 4, THERE = 3 };
    fixture_t fixture;
    spill_request_t drops[COUNT];
    spill_response_t answers[COUNT] = {0};
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    put_several(&fixture, INCARNATION, THERE, answers);
    for (size_t i = 0; i < COUNT; i++)
        drops[i] = make_request(&fixture, SPILL_REQUEST_DROP_PAGE, (int64_t)(COUNT - 1 - i));
    drops[2].incarnation = INCARNATION - 1; /* page 1 is of a later one */
    const spill_outcome_t expected[] = {SPILL_REFUSED_GUARD, SPILL_DONE, SPILL_REFUSED_GUARD,
                                        SPILL_DONE};
    assert_int_equal(spill_store_call_all(fixture.store, drops, COUNT, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(answers[i].outcome, expected[i]);
    assert_document(&fixture, 0, "absent");
    assert_document(&fixture, 1, "rev+0 first=1 page=1 | 1=101");
    assert_document(&fixture, 2, "absent");
    drops[2].incarnation = INCARNATION + 5; /* and of all earlier ones */
    assert_int_equal(spill_store_call_all(fixture.store, drops, COUNT, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(answers[i].outcome, i == 2 ? SPILL_DONE : SPILL_REFUSED_GUARD);
    assert_document(&fixture, 1, "absent");
    for (size_t i = 0; i < COUNT; i++)
        spill_response_release(&answers[i]);
    fixture_close(&fixture);
}

/* Each page is deleted or refused by itself. */
static void several_pages_are_emptied_in_one_request(void **state)
{
    enum { COUNT = 4, THERE = 3 };
    fixture_t fixture;
    spill_request_t empties[COUNT];
    spill_response_t answers[COUNT] = {0};
    fixture_open(&fixture, *state, SPILL_KEEP_NEWEST);
    append_numbers(&fixture, SPILL_HEAD, 100, 5);
    put_several(&fixture, INCARNATION, THERE, answers);
    for (size_t i = 0; i < COUNT; i++)
        empties[i] = make_request(&fixture, SPILL_REQUEST_EMPTY_PAGE, (int64_t)(COUNT - 1 - i));
    empties[2].incarnation = INCARNATION + 1; /* page 1 is of another one */
    const spill_outcome_t expected[] = {SPILL_REFUSED_GUARD, SPILL_DONE, SPILL_REFUSED_GUARD,
                                        SPILL_DONE};
    assert_int_equal(spill_store_call_all(fixture.store, empties, COUNT, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(answers[i].outcome, expected[i]);
    assert_document(&fixture, 0, "absent");
    assert_document(&fixture, 1, "rev+0 first=1 page=1 | 1=101");
    assert_document(&fixture, 2, "absent");
    empties[2].incarnation = INCARNATION;
    assert_int_equal(spill_store_call_all(fixture.store, empties, COUNT, answers, NULL), SPILL_OK);
    for (size_t i = 0; i < COUNT; i++)
        assert_int_equal(answers[i].outcome, i == 2 ? SPILL_DONE : SPILL_REFUSED_GUARD);
    assert_document(&fixture, 1, "absent");
    for (size_t i = 0; i < COUNT; i++)
        spill_response_release(&answers[i]);
    fixture_close(&fixture);
}

static spill_request_t make_unmanage(const fixture_t *fixture, const spill_run_t *run)
{
    spill_request_t back = make_request(fixture, SPILL_REQUEST_UNMANAGE, SPILL_HEAD);
    back.rev = INCARNATION + 1;
    back.unmanage.pages = 1;
    back.unmanage.run = run;
    return back;
}

/* A later ADOPT shows what UNMANAGE left. */
static void unmanage_returns_whole_array(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    write_unmanaged(&fixture, &other, 5);
    spill_request_t adopt = make_adopt(&fixture);
    assert_done(&fixture, &adopt);
    spill_page(&fixture, 0, 3);
    spill_run_t run = numbers_run(100, 3);
    spill_request_t back = make_unmanage(&fixture, &run);
    back.rev = INCARNATION;
    assert_refused(&fixture, &back);
    back = make_unmanage(&fixture, &run);
    back.unmanage.pages = 0;
    assert_refused(&fixture, &back);
    append_numbers(&fixture, SPILL_HEAD, 105, 1); /* does not prevent it */
    back = make_unmanage(&fixture, &run);
    assert_done(&fixture, &back);
    assert_refused(&fixture, &back);
    fixture_reopen(&fixture);
    other.store = fixture.store;
    assert_done(&fixture, &adopt);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    assert_done(&fixture, &read);
    assert_true(fixture.response.state.incarnation >
                INCARNATION + 1); /* later than all earlier incarnations */
    assert_int_equal(fixture.response.state.live, 6);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = 10;
    assert_done(&fixture, &read);
    for (size_t i = 0; i < 6; i++) {
        int64_t number = 100 + (int64_t)i;
        spill_value_t expected = number_value(&number);
        spill_element_t element = spill_run_element(&fixture.response.run, i);
        assert_true(spill_value_equal(&element.value, &expected));
    }
    spill_run_release(&run);
    close_both(&fixture, &other);
}

/* Documents nested in each other, `depth` of them. */
static void make_nested(int depth, bson_t *document)
{
    bson_init(document);
    for (int i = 1; i < depth; i++) {
        bson_t outer = BSON_INITIALIZER;
        BSON_APPEND_DOCUMENT(&outer, "a", document);
        bson_destroy(document);
        bson_steal(document, &outer);
    }
}

/* In the head's fields, the array and the document around it add two levels. */
static void unmanage_returns_deep_element(void **state)
{
    fixture_t fixture, other;
    bson_t nested;
    open_both(&fixture, &other, *state);
    if (fixture.kind->shows_other_arrays) { /* a server has its own limits */
        close_both(&fixture, &other);
        return;
    }
    write_unmanaged(&fixture, &other, 3);
    spill_request_t adopt = make_adopt(&fixture);
    assert_done(&fixture, &adopt);
    make_nested(SPILL_NESTING_MAX, &nested);
    spill_value_t element = spill_value_from_document(&nested);
    assert_true(spill_value_valid(&element));
    spill_request_t append = make_append(&fixture, SPILL_HEAD, &element, 1);
    assert_done(&fixture, &append);
    spill_run_t run = {0};
    spill_request_t back = make_unmanage(&fixture, &run);
    back.rev = INCARNATION;
    back.unmanage.pages = 0;
    assert_done(&fixture, &back);
    fixture_reopen(&fixture);
    other.store = fixture.store;
    assert_sound(&fixture);
    bson_t *update = BCON_NEW("$set", "{", "name", "Eve", "}");
    set_field(&other, update);
    bson_destroy(update);
    assert_done(&fixture, &adopt);
    spill_request_t read = make_request(&fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.seq = 3;
    read.read.limit = 10;
    assert_done(&fixture, &read);
    assert_int_equal(fixture.response.run.count, 1);
    spill_element_t last = spill_run_element(&fixture.response.run, 0);
    assert_true(spill_value_equal(&last.value, &element));
    bson_destroy(&nested);
    close_both(&fixture, &other);
}

/* List what is found, `limit` at a time, as "ada:5:unmanaged bob:3:managed". */
static void list_oversized(const fixture_t *fixture, const spill_list_query_t *query,
                           bson_string_t *text)
{
    spill_cursor_t cursor = {.store = fixture->store,
                             .definition = &fixture->definition,
                             .binding = &fixture->binding,
                             .query = *query};
    const spill_item_t *item;
    do {
        assert_int_equal(spill_cursor_next(&cursor, &item, NULL), SPILL_OK);
        assert_in_range(cursor.listing.count, 0, query->limit);
        if (!item)
            break;
        const spill_oversized_t *one = &item->oversized;
        assert_true(one->bytes >= one->elements * 8);
        bson_string_append_printf(text, "%.*s:%lld:%s ", (int)one->owner.size_bytes - 5,
                                  (const char *)one->owner.data + 4, (long long)one->elements,
                                  one->managed ? "managed" : "unmanaged");
    } while (item);
    spill_cursor_release(&cursor);
}

static void assert_oversized(const fixture_t *fixture, const spill_list_query_t *query,
                             const char *expected)
{
    bson_string_t *text = bson_string_new(NULL);
    list_oversized(fixture, query, text);
    assert_string_equal(text->str, expected);
    bson_string_free(text, true);
}

static void oversized_heads_are_found(void **state)
{
    fixture_t fixture, other;
    open_both(&fixture, &other, *state);
    static const struct {
        const char *name;
        int64_t count;
        bool managed;
    } owners[] = {{"ada", 5, false}, {"bob", 3, true},  {"cid", 1, false},
                  {"dan", 0, false}, {"eve", 12, true}, {"fay", 4, true}};
    for (size_t i = 0; i < sizeof owners / sizeof *owners; i++) {
        fixture_owner(&fixture, owners[i].name);
        if (owners[i].managed)
            append_numbers(&fixture, SPILL_HEAD, 100, (size_t)owners[i].count);
        else
            write_unmanaged(&fixture, &other, owners[i].count);
    }
    spill_list_query_t query = {
        .list = SPILL_LIST_OVERSIZED, .limit = 100, .oversized = {.slots = 4, .bytes = INT64_MAX}};
    assert_oversized(&fixture, &query,
                     "ada:5:unmanaged cid:1:unmanaged eve:12:managed fay:4:managed ");
    query.limit = 2;
    assert_oversized(&fixture, &query,
                     "ada:5:unmanaged cid:1:unmanaged eve:12:managed fay:4:managed ");
    query.limit = 1;
    query.oversized.slots = 100;
    assert_oversized(&fixture, &query, "ada:5:unmanaged cid:1:unmanaged ");
    query.oversized.bytes = 10; /* any size */
    assert_oversized(&fixture, &query,
                     "ada:5:unmanaged bob:3:managed cid:1:unmanaged eve:12:managed fay:4:managed ");
    close_both(&fixture, &other);
}

void add_unmanaged_tests(suite_t *suite)
{
    SUITE_ADD(suite, adopt_keeps_all_elements);
    SUITE_ADD(suite, answer_of_adopt_matches_read);
    SUITE_ADD(suite, adopt_needs_array_with_elements);
    SUITE_ADD(suite, unmanaged_array_prevents_new_head);
    SUITE_ADD(suite, cut_may_compare_elements);
    SUITE_ADD(suite, cut_is_refused_if_elements_changed);
    SUITE_ADD(suite, cut_moves_several_pages);
    SUITE_ADD(suite, several_pages_are_put_in_one_request);
    SUITE_ADD(suite, several_pages_are_read_in_one_request);
    SUITE_ADD(suite, several_pages_are_dropped_in_one_request);
    SUITE_ADD(suite, several_pages_are_emptied_in_one_request);
    SUITE_ADD(suite, unmanage_returns_whole_array);
    SUITE_ADD(suite, unmanage_returns_deep_element);
    SUITE_ADD(suite, oversized_heads_are_found);
}
