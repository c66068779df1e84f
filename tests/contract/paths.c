/*
 * Arrays of one head whose names look alike: "a.b" is a path, the others are names of top-level
 * fields. Each has its own elements, counts and bookkeeping.
 */
#include "suite.h"

#include <stdio.h>

enum { ALIKE = 4, SPILLED = 2 };

/* Arrays of one collection. The store shows other arrays in `fields` if its kind says so. */
typedef struct alike {
    spill_definition_t definition;
    spill_binding_t binding;
} alike_t;

static const char *const arrays[ALIKE] = {"a.b", "a_b", "a%2Eb", "ab"};

static void open_alike(fixture_t *fixture, const contract_kind_t *kind, alike_t alike[ALIKE])
{
    for (int i = 0; i < ALIKE; i++) {
        spill_definition_t *definition = &alike[i].definition;
        char name[24];
        snprintf(name, sizeof name, "alike%d", i);
        make_definition(definition, name, SPILL_KEEP_NEWEST);
        snprintf(definition->array, SPILL_NAME_SIZE, "%s", arrays[i]);
        snprintf(definition->count_field, SPILL_NAME_SIZE, "%sc", arrays[i]);
        definition->overflow_field[0] = definition->pages_field[0] = '\0';
        if (i == 0)
            fixture_open_with(fixture, kind, definition);
        else
            save_definition(fixture->store, definition);
        spill_code_t code =
            fixture->store->ops->bind(fixture->store, definition, &alike[i].binding, NULL);
        assert_int_equal(code, SPILL_OK);
    }
}

static void use_array(fixture_t *fixture, const alike_t *alike)
{
    fixture->definition = alike->definition;
    fixture->binding = alike->binding;
}

/* Array i has i + 3 elements from 100 * i on; two of them are in its page. */
static void assert_array(fixture_t *fixture, const alike_t alike[ALIKE], int i)
{
    char *head, *page;
    use_array(fixture, &alike[i]);
    head = describe(fixture, SPILL_HEAD);
    page = describe(fixture, 0);
    for (int at = 0; at < i + 3; at++) {
        char element[32];
        snprintf(element, sizeof element, " %d=%d", at, 100 * i + at);
        if (strstr(at < SPILLED ? page : head, element) == NULL)
            fail_msg("%s: no%s in '%s' and '%s'", arrays[i], element, head, page);
        assert_null(strstr(at < SPILLED ? head : page, element));
    }
    bson_free(head);
    bson_free(page);
    assert_sound(fixture);
}

static void fill_arrays(fixture_t *fixture, const alike_t alike[ALIKE])
{
    for (int i = 0; i < ALIKE; i++) {
        use_array(fixture, &alike[i]);
        make_empty_head(fixture);
        append_numbers(fixture, SPILL_HEAD, (int64_t)100 * i, (size_t)i + 3);
    }
    for (int i = ALIKE; i > 0; i--) { /* spill in another order */
        use_array(fixture, &alike[i - 1]);
        spill_page(fixture, 0, SPILLED);
    }
}

static void names_that_look_alike(void **state)
{
    fixture_t fixture;
    alike_t alike[ALIKE];
    open_alike(&fixture, *state, alike);
    fill_arrays(&fixture, alike);
    for (int i = 0; i < ALIKE; i++)
        assert_array(&fixture, alike, i);
    fixture_reopen(&fixture);
    for (int i = 0; i < ALIKE; i++)
        assert_array(&fixture, alike, i);
    fixture_close(&fixture);
}

static void drop_leaves_arrays_that_look_alike(void **state)
{
    for (int dropped = 0; dropped < ALIKE; dropped++) {
        fixture_t fixture;
        alike_t alike[ALIKE];
        open_alike(&fixture, *state, alike);
        fill_arrays(&fixture, alike);
        use_array(&fixture, &alike[dropped]);
        drop_head(&fixture, INCARNATION, 1);
        assert_document(&fixture, SPILL_HEAD, "absent");
        for (int i = 0; i < ALIKE; i++)
            if (i != dropped)
                assert_array(&fixture, alike, i);
        fixture_close(&fixture);
    }
}

/* An update of the field beside a path leaves the arrays as they are. */
static void update_beside_arrays_that_look_alike(void **state)
{
    fixture_t fixture;
    alike_t alike[ALIKE];
    open_alike(&fixture, *state, alike);
    fill_arrays(&fixture, alike);
    for (int i = 0; i < ALIKE; i++) {
        use_array(&fixture, &alike[i]);
        spill_request_t request = make_request(&fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
        bson_t *update = BCON_NEW("$set", "{", "a.other", BCON_INT32(i), "abc", BCON_INT32(i), "}");
        request.append.update = update;
        assert_done(&fixture, &request);
        bson_destroy(update);
    }
    for (int i = 0; i < ALIKE; i++)
        assert_array(&fixture, alike, i);
    fixture_close(&fixture);
}

void add_path_tests(suite_t *suite)
{
    SUITE_ADD(suite, names_that_look_alike);
    SUITE_ADD(suite, drop_leaves_arrays_that_look_alike);
    SUITE_ADD(suite, update_beside_arrays_that_look_alike);
}
