/* Arrays that keep each id once: the guard of an append, and the public API on every layout. */
#include "suite.h"

#include "core/array.h"
#include "simulation/random.h"

#include <spillway/spillway.h>
#include <stdio.h>

/* ---- the guard ------------------------------------------------------------------------------- */

static void open_set(fixture_t *fixture, const contract_kind_t *kind, const char *id_field)
{
    spill_definition_t definition;
    make_definition(&definition, "feed", SPILL_KEEP_NEWEST);
    strcpy(definition.id_field, id_field);
    definition.unique = true;
    fixture_open_with(fixture, kind, &definition);
}

/* Append elements given as Extended JSON, separated by '|', in one step; within `limits` or NULL.
 */
static spill_outcome_t add_within(fixture_t *fixture, const spill_limits_t *limits,
                                  const char *elements, int64_t incarnation, int64_t pages)
{
    enum { MOST = 8 };
    char text[512];
    char *rest = NULL;
    size_t count = 0;
    bson_t storage[MOST];
    spill_value_t values[MOST];
    const spill_searched_t searched = {.incarnation = incarnation, .pages = pages};
    snprintf(text, sizeof text, "%s", elements);
    for (char *json = strtok_r(text, "|", &rest); json; json = strtok_r(NULL, "|", &rest)) {
        bson_init(&storage[count]);
        assert_true(count < MOST);
        assert_int_equal(
            spill_value_from_json(json, strlen(json), &storage[count], &values[count], NULL),
            SPILL_OK);
        count++;
    }
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.create = true;
    append.append.searched = &searched;
    if (limits)
        append.limits = *limits;
    spill_outcome_t outcome = call(fixture, &append);
    for (size_t i = 0; i < count; i++)
        bson_destroy(&storage[i]);
    return outcome;
}

/* Without limits, a store on a server reads the head before it appends. */
static spill_outcome_t add_at(fixture_t *fixture, const char *elements, int64_t incarnation,
                              int64_t pages)
{
    return add_within(fixture, NULL, elements, incarnation, pages);
}

#define assert_added(...) assert_int_equal(add_at(__VA_ARGS__), SPILL_DONE)
#define assert_not_added(...) assert_int_equal(add_at(__VA_ARGS__), SPILL_REFUSED_GUARD)

static void append_refuses_ids_of_the_head(void **state)
{
    fixture_t fixture;
    open_set(&fixture, *state, ".");
    assert_not_added(&fixture, "1", INCARNATION, 0); /* there is no head */
    assert_added(&fixture, "1|\"one\"|{\"a\": 1, \"b\": 2}", 0, 0);
    assert_not_added(&fixture, "5", 0, 0); /* there is one now */
    assert_not_added(&fixture, "1", INCARNATION, 0);
    assert_not_added(&fixture, "{\"$numberDouble\": \"1.0\"}", INCARNATION, 0);
    assert_not_added(&fixture, "2|3|\"one\"", INCARNATION, 0);
    assert_not_added(&fixture, "{\"a\": 1, \"b\": 2}", INCARNATION, 0);
    assert_not_added(&fixture, "2", INCARNATION + 1, 0);
    assert_not_added(&fixture, "2", INCARNATION, 1);
    assert_added(&fixture, "{\"b\": 2, \"a\": 1}|2", INCARNATION, 0);
    assert_not_added(&fixture, "2", INCARNATION, 0);
    assert_added(&fixture, "true", INCARNATION, 0);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

static void append_refuses_ids_at_a_path(void **state)
{
    fixture_t fixture;
    open_set(&fixture, *state, "user.id");
    assert_added(&fixture, "{\"user\": {\"id\": 1}}|{\"user\": {\"id\": 2}}", 0, 0);
    assert_not_added(&fixture, "{\"x\": 1, \"user\": {\"id\": 2}}", INCARNATION, 0);
    assert_added(&fixture, "{\"id\": 2, \"user\": {\"id\": 3}}", INCARNATION, 0);
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* Between search and append the id may move to a page: then there are more pages. */
static void append_is_refused_after_a_spill(void **state)
{
    fixture_t fixture;
    open_set(&fixture, *state, ".");
    assert_added(&fixture, "1|2|3", 0, 0);
    spill_page(&fixture, 0, 2);
    assert_not_added(&fixture, "1", INCARNATION, 0);
    assert_not_added(&fixture, "9", INCARNATION, 0);
    assert_added(&fixture, "9", INCARNATION, 1);
    assert_not_added(&fixture, "3", INCARNATION, 1);
    spill_request_t remove = make_request(&fixture, SPILL_REQUEST_REMOVE, SPILL_HEAD);
    remove.rev = INCARNATION + 1;
    remove.change.seq = 2;
    assert_done(&fixture, &remove);
    assert_added(&fixture, "3", INCARNATION, 1);
    assert_document(&fixture, SPILL_HEAD, "rev+2 first=3 pages=1 removed=1 | 3=#4 4=#4");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/*
 * The same with the limits of a real definition: a store on a server sends one update without a
 * READ, so only the filter of the update can refuse.
 */
static void append_without_a_read_is_refused_after_a_spill(void **state)
{
    static const spill_limits_t limits = {.slots_max = 100, .bytes_max = 1 << 20};
    fixture_t fixture;
    open_set(&fixture, *state, ".");
    assert_int_equal(add_within(&fixture, &limits, "1|2|3", 0, 0), SPILL_DONE);
    assert_int_equal(add_within(&fixture, &limits, "3", INCARNATION, 0), SPILL_REFUSED_GUARD);
    spill_page(&fixture, 0, 2);
    assert_int_equal(add_within(&fixture, &limits, "1", INCARNATION, 0), SPILL_REFUSED_GUARD);
    assert_int_equal(add_within(&fixture, &limits, "9", INCARNATION, 0), SPILL_REFUSED_GUARD);
    assert_int_equal(add_within(&fixture, &limits, "9", INCARNATION + 1, 1), SPILL_REFUSED_GUARD);
    assert_int_equal(add_within(&fixture, &limits, "9", INCARNATION, 1), SPILL_DONE);
    assert_document(&fixture, SPILL_HEAD, "rev+1 first=2 pages=1 | 2=#4 3=#4");
    assert_sound(&fixture);
    fixture_close(&fixture);
}

/* ---- the public API -------------------------------------------------------------------------- */

enum { IDS = 40 };

typedef struct set {
    const contract_kind_t *kind;
    spill_store_t *store;
    spill_array_t *array;
    bson_t name;
    spill_value_t owner;
    bool documents; /* elements are {id: N}, else N */
    bool has[IDS];
    sim_random_t random;
} set_t;

static void check(spill_code_t code, const spill_error_t *error)
{
    if (code != SPILL_OK)
        fail_msg("%s: %s", spill_code_name(code), error->message);
}

static void set_open(set_t *set, const contract_kind_t *kind, const char *preset, bool documents)
{
    spill_error_t error;
    spill_definition_t definition;
    *set = (set_t){.kind = kind, .store = kind->open(), .documents = documents, .random = {7}};
    check(spill_definition_preset(&definition, preset, "set", &error), &error);
    strcpy(definition.id_field, documents ? "id" : ".");
    definition.unique = true;
    definition.sort_field[0] = '\0';
    definition.value_field[0] = '\0';
    definition.stats_average[0] = '\0';
    definition.bounds.threshold = 4;
    definition.bounds.page_capacity = 3;
    check(spill_store_define(set->store, &definition, &error), &error);
    check(spill_array_open(set->store, "set", &set->array, &error), &error);
    bson_init(&set->name);
    set->owner = spill_value_from_utf8(&set->name, "tom");
}

static void set_close(set_t *set)
{
    spill_array_close(set->array);
    bson_destroy(&set->name);
    set->kind->close(set->store);
}

static spill_value_t make_element(const set_t *set, int id, bson_t *storage)
{
    bson_iter_t iter;
    bson_init(storage);
    BSON_APPEND_INT32(storage, "id", id);
    if (set->documents)
        return spill_value_from_document(storage);
    assert_true(bson_iter_init_find(&iter, storage, "id"));
    return spill_value_from_iter(&iter);
}

/* Append `count` random ids, perhaps one twice; compare with the plain set. */
static void add_some(set_t *set, int count)
{
    bson_t storage[4];
    spill_value_t elements[4];
    int64_t duplicates = 0;
    spill_append_result_t result;
    spill_error_t error;
    for (int i = 0; i < count; i++) {
        int id = sim_random_below(&set->random, IDS);
        elements[i] = make_element(set, id, &storage[i]);
        duplicates += set->has[id];
        set->has[id] = true;
    }
    check(
        spill_array_append(set->array, &set->owner, elements, (size_t)count, NULL, &result, &error),
        &error);
    assert_int_equal(result.count, count);
    assert_int_equal(result.duplicates, duplicates);
    assert_int_equal(result.first < 0, duplicates == count);
    for (int i = 0; i < count; i++)
        bson_destroy(&storage[i]);
}

static void remove_one(set_t *set)
{
    int32_t id = sim_random_below(&set->random, IDS);
    spill_value_t value = {
        .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT32};
    spill_error_t error;
    spill_code_t code = spill_array_remove_id(set->array, &set->owner, &value, NULL, &error);
    assert_int_equal(code, set->has[id] ? SPILL_OK : SPILL_NOT_FOUND);
    set->has[id] = false;
}

/* All ids are there, each once. */
static void compare(set_t *set)
{
    int64_t count = 0;
    spill_count_t counted;
    spill_slice_t *slice;
    spill_read_options_t options;
    spill_error_t error;
    for (int32_t id = 0; id < IDS; id++) {
        int64_t seq;
        spill_value_t value = {
            .data = (const uint8_t *)&id, .size_bytes = sizeof id, .type = BSON_TYPE_INT32};
        spill_code_t code = spill_array_find_id(set->array, &set->owner, &value, &seq, &error);
        assert_int_equal(code, set->has[id] ? SPILL_OK : SPILL_NOT_FOUND);
        count += set->has[id];
    }
    check(spill_array_count(set->array, &set->owner, &counted, &error), &error);
    assert_int_equal(counted.count, count);
    spill_read_options_init(&options);
    options.limit = 2 * IDS;
    check(spill_array_read(set->array, &set->owner, &options, &slice, &error), &error);
    assert_int_equal(slice->count, count);
    spill_slice_free(slice);
}

static void play(const contract_kind_t *kind, const char *preset, bool documents)
{
    set_t set;
    set_open(&set, kind, preset, documents);
    int steps = kind->slow ? 40 : 300;
    for (int i = 0; i < steps; i++) {
        if (sim_random_below(&set.random, 3) == 0)
            remove_one(&set);
        else
            add_some(&set, 1 + sim_random_below(&set.random, 4));
    }
    compare(&set);
    spill_error_t error;
    check(spill_array_drop_owner(set.array, &set.owner, &error), &error);
    memset(set.has, 0, sizeof set.has);
    add_some(&set, 4);
    compare(&set);
    set_close(&set);
}

static void outlier_keeps_each_scalar_once(void **state)
{
    play(*state, "feed-recent", false);
}

static void outlier_keeps_each_id_once(void **state)
{
    play(*state, "feed-recent", true);
}

static void reference_keeps_each_scalar_once(void **state)
{
    play(*state, "reviews-separate", false);
}

static void subset_keeps_each_id_once(void **state)
{
    play(*state, "reviews-subset", true);
}

/* Append one element given as Extended JSON; report if it was a duplicate. */
static bool add_is_duplicate(set_t *set, const char *json)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_append_result_t result;
    spill_error_t error;
    check(spill_value_from_json(json, strlen(json), &storage, &value, &error), &error);
    check(spill_array_append(set->array, &set->owner, &value, 1, NULL, &result, &error), &error);
    bson_destroy(&storage);
    return result.duplicates == 1;
}

static spill_code_t find_json(set_t *set, const char *json, bool remove)
{
    bson_t storage = BSON_INITIALIZER;
    spill_value_t value;
    spill_error_t error;
    int64_t seq;
    check(spill_value_from_json(json, strlen(json), &storage, &value, &error), &error);
    spill_code_t code = remove
                            ? spill_array_remove_id(set->array, &set->owner, &value, &seq, &error)
                            : spill_array_find_id(set->array, &set->owner, &value, &seq, &error);
    bson_destroy(&storage);
    return code;
}

static void add_values(set_t *set, const char *const *values, size_t count)
{
    spill_error_t error;
    for (size_t i = 0; i < count; i++)
        assert_false(add_is_duplicate(set, values[i]));
    for (size_t i = 0; i < count; i++) { /* most are in pages */
        assert_true(add_is_duplicate(set, values[i]));
        assert_int_equal(find_json(set, values[i], false), SPILL_OK);
    }
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(find_json(set, values[i], true), SPILL_OK);
        assert_int_equal(find_json(set, values[i], false), SPILL_NOT_FOUND);
        assert_false(add_is_duplicate(set, values[i]));
    }
    spill_verify_summary_t verified;
    check(spill_array_verify(set->array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, 0);
    assert_int_equal(verified.elements, count);
}

/*
 * Every value is an id: null, arrays, regular expressions, values of any length. The first page has
 * 1 and 2: a server's query for [1, 2] finds that page, too.
 */
static void any_value_is_an_id(void **state)
{
    enum { LONG = 3000 };
    char texts[2][LONG + 3];
    for (int i = 0; i < 2; i++) {
        memset(texts[i], 'x', LONG + 2);
        texts[i][0] = texts[i][LONG + 1] = '"';
        texts[i][LONG] = (char)('x' + i);
        texts[i][LONG + 2] = '\0';
    }
    const char *const values[] = {
        "1",
        "2",
        "{\"a\": null}",
        "[1, 2]",
        "null",
        "[]",
        "[[1, 2]]",
        "\"a\"",
        "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"\"}}",
        "{\"$regularExpression\": {\"pattern\": \"a\", \"options\": \"i\"}}",
        texts[0],
        texts[1],
        "{\"$maxKey\": 1}",
        "[3]"};
    static const char *const presets[] = {"feed-recent", "reviews-separate"};
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        set_t set;
        set_open(&set, *state, presets[i], false);
        add_values(&set, values, sizeof values / sizeof *values);
        set_close(&set);
    }
}

typedef struct found {
    int64_t count;
    spill_finding_t last;
} found_t;

static void add_finding(void *context, const spill_finding_t *finding)
{
    found_t *found = context;
    found->count++;
    found->last = *finding;
}

/* Append to the head without a search, as another program does. */
static void push_unsearched(fixture_t *fixture, const int64_t *numbers, size_t count)
{
    spill_value_t values[4];
    assert_true(count <= 4);
    for (size_t i = 0; i < count; i++)
        values[i] = number_value(&numbers[i]);
    spill_request_t append = make_append(fixture, SPILL_HEAD, values, count);
    append.create = true;
    assert_done(fixture, &append);
}

/* Verify finds an id twice, in two documents or in one. Repair reports it, and removes nothing. */
static void verify_finds_an_id_twice(void **state)
{
    static const int64_t first[] = {1, 2, 3}, second[] = {4, 2}, third[] = {4};
    fixture_t fixture;
    found_t found = {0};
    spill_array_t *array;
    spill_verify_summary_t verified;
    spill_repair_summary_t repaired;
    spill_error_t error;
    open_set(&fixture, *state, ".");
    check(spill_array_open(fixture.store, "feed", &array, &error), &error);
    push_unsearched(&fixture, first, 3);
    spill_page(&fixture, 0, 2);
    check(spill_array_verify(array, &fixture.owner, add_finding, &found, &verified, &error),
          &error);
    assert_int_equal(verified.findings, 0);
    push_unsearched(&fixture, second, 2); /* 2 is in page 0 */
    check(spill_array_verify(array, &fixture.owner, add_finding, &found, &verified, &error),
          &error);
    assert_int_equal(found.count, 1);
    assert_int_equal(found.last.invariant, 9);
    assert_int_equal(found.last.page, SPILL_HEAD);
    assert_non_null(strstr(found.last.text, "element 4 has the id of element 1:"));
    push_unsearched(&fixture, third, 1); /* 4 is in the head */
    check(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, 2);
    check(spill_array_repair(array, NULL, false, NULL, NULL, &repaired, &error), &error);
    assert_int_equal(repaired.left, 2);
    assert_int_equal(repaired.findings, 0);
    check(spill_array_remove(array, &fixture.owner, 4, &error), &error);
    check(spill_array_remove(array, &fixture.owner, 3, &error), &error);
    check(spill_array_verify(array, NULL, NULL, NULL, &verified, &error), &error);
    assert_int_equal(verified.findings, 0);
    assert_int_equal(verified.elements, 4);
    spill_array_close(array);
    fixture_close(&fixture);
}

/* The same in documents of single elements, and an element without an id. */
static void verify_finds_ids_of_referenced_elements(void **state)
{
    set_t set;
    found_t found = {0};
    spill_verify_summary_t verified;
    spill_error_t error;
    bson_t storage[3];
    spill_value_t elements[3];
    set_open(&set, *state, "reviews-separate", true);
    for (int i = 0; i < 2; i++)
        elements[i] = make_element(&set, 7, &storage[i]);
    bson_init(&storage[2]);
    BSON_APPEND_INT32(&storage[2], "other", 1);
    elements[2] = spill_value_from_document(&storage[2]);
    set.array->definition.unique = false; /* as in a program with a defect */
    check(spill_array_append(set.array, &set.owner, elements, 3, NULL, NULL, &error), &error);
    set.array->definition.unique = true;
    check(spill_array_verify(set.array, NULL, add_finding, &found, &verified, &error), &error);
    assert_int_equal(verified.findings, 2);
    assert_int_equal(found.last.invariant, 9);
    for (int i = 0; i < 3; i++)
        bson_destroy(&storage[i]);
    set_close(&set);
}

/* An id below the trim watermark may still be in a page, and may be appended again. */
static void trimmed_ids_do_not_count(void **state)
{
    static const char *const ids[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    static const char *const presets[] = {"feed-recent", "reviews-separate"};
    spill_verify_summary_t verified;
    spill_error_t error;
    for (size_t i = 0; i < sizeof presets / sizeof *presets; i++) {
        set_t set;
        set_open(&set, *state, presets[i], false);
        for (size_t id = 0; id < sizeof ids / sizeof *ids; id++)
            assert_false(add_is_duplicate(&set, ids[id]));
        check(spill_array_trim(set.array, &set.owner, 2, &error), &error);
        assert_int_equal(find_json(&set, ids[1], false), SPILL_NOT_FOUND);
        assert_false(add_is_duplicate(&set, ids[1]));
        assert_true(add_is_duplicate(&set, ids[2]));
        check(spill_array_verify(set.array, NULL, NULL, NULL, &verified, &error), &error);
        assert_int_equal(verified.findings, 0);
        assert_int_equal(verified.elements, 9);
        set_close(&set);
    }
}

/* A retry reports what the first try did, although the array has all ids now. */
static void operation_is_repeated(void **state)
{
    set_t set;
    set_open(&set, *state, "feed-recent", false);
    bson_t storage[5];
    spill_value_t elements[5];
    spill_append_options_t options;
    spill_append_result_t result;
    spill_error_t error;
    spill_op_t op = {"op", 2, 0};
    spill_append_options_init(&options);
    for (int i = 0; i < 5; i++)
        elements[i] = make_element(&set, i, &storage[i]);
    check(spill_array_append(set.array, &set.owner, elements, 1, NULL, &result, &error), &error);
    options.op = &op;
    for (int i = 0; i < 2; i++) {
        check(spill_array_append(set.array, &set.owner, elements, 3, &options, &result, &error),
              &error);
        assert_int_equal(result.first, 1);
        assert_int_equal(result.count, 3);
        assert_int_equal(result.duplicates, 1);
        assert_int_equal(result.repeated, i > 0);
    }
    check(spill_array_remove_id(set.array, &set.owner, &elements[2], NULL, &error), &error);
    check(spill_array_append(set.array, &set.owner, elements, 3, &options, &result, &error),
          &error);
    assert_true(result.repeated);
    assert_int_equal(spill_array_append(set.array, &set.owner, elements, 5, &options, NULL, &error),
                     SPILL_INVALID);
    for (int i = 0; i < 5; i++)
        bson_destroy(&storage[i]);
    set_close(&set);
}

/* Elements without an id, and edits that would change one, are refused. */
static void ids_stay(void **state)
{
    set_t set;
    set_open(&set, *state, "feed-recent", true);
    bson_t storage[3], other = BSON_INITIALIZER;
    spill_error_t error;
    spill_value_t one = make_element(&set, 1, &storage[0]),
                  two = make_element(&set, 2, &storage[1]);
    BSON_APPEND_INT32(&other, "x", 1);
    spill_value_t without = spill_value_from_document(&other);
    assert_int_equal(spill_array_append(set.array, &set.owner, &without, 1, NULL, NULL, &error),
                     SPILL_INVALID);
    check(spill_array_append(set.array, &set.owner, &one, 1, NULL, NULL, &error), &error);
    BSON_APPEND_INT32(&storage[0], "more", 1);
    spill_value_t more = spill_value_from_document(&storage[0]);
    check(spill_array_edit(set.array, &set.owner, 0, &more, &error), &error);
    assert_int_equal(spill_array_edit(set.array, &set.owner, 0, &two, &error), SPILL_INVALID);
    assert_int_equal(spill_array_edit(set.array, &set.owner, 0, &without, &error), SPILL_INVALID);
    int32_t number = 1;
    spill_value_t id = {
        .data = (const uint8_t *)&number, .size_bytes = sizeof number, .type = BSON_TYPE_INT32};
    assert_int_equal(spill_array_edit_id(set.array, &set.owner, &id, &two, NULL, &error),
                     SPILL_INVALID);
    check(spill_array_edit_id(set.array, &set.owner, &id, &more, NULL, &error), &error);
    bson_destroy(&storage[0]);
    bson_destroy(&storage[1]);
    bson_destroy(&other);
    set_close(&set);
}

void add_set_tests(suite_t *suite)
{
    SUITE_ADD(suite, append_refuses_ids_of_the_head);
    SUITE_ADD(suite, append_refuses_ids_at_a_path);
    SUITE_ADD(suite, append_is_refused_after_a_spill);
    SUITE_ADD(suite, append_without_a_read_is_refused_after_a_spill);
    SUITE_ADD(suite, outlier_keeps_each_scalar_once);
    SUITE_ADD(suite, outlier_keeps_each_id_once);
    SUITE_ADD(suite, reference_keeps_each_scalar_once);
    SUITE_ADD(suite, subset_keeps_each_id_once);
    SUITE_ADD(suite, any_value_is_an_id);
    SUITE_ADD(suite, verify_finds_an_id_twice);
    SUITE_ADD(suite, verify_finds_ids_of_referenced_elements);
    SUITE_ADD(suite, trimmed_ids_do_not_count);
    SUITE_ADD(suite, operation_is_repeated);
    SUITE_ADD(suite, ids_stay);
}
