/* Layouts reference and subset: how an element is stored in its document, and read back. */
#include "bson/value.h"
#include "definition/schema.h"
#include "random_value.h"
#include "support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static spill_definition_t reviews(const char *element_id_field)
{
    spill_definition_t definition;
    assert_int_equal(spill_definition_preset(&definition, "reviews-subset", "r", NULL), SPILL_OK);
    strcpy(definition.element_id_field, element_id_field);
    return definition;
}

/* ---- elements that can be stored ------------------------------------------------------------- */

/* Check an element; NULL: it can be stored. */
static void assert_check(const spill_definition_t *definition, const char *json, const char *except,
                         const char *problem)
{
    spill_error_t error;
    bson_t *document = document_from_json(json);
    spill_value_t element = spill_value_from_document(document);
    spill_code_t code = spill_stored_element_check(definition, &element, except, &error);
    assert_int_equal(code, problem == NULL ? SPILL_OK : SPILL_INVALID);
    if (problem != NULL && strstr(error.message, problem) == NULL)
        fail_msg("'%s' does not say '%s'", error.message, problem);
    bson_destroy(document);
}

static void fields_of_the_document_are_refused(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId");
    assert_check(&definition, "{\"a\": 1, \"_id\": {\"b\": 2}}", NULL, NULL);
    assert_check(&definition, "{\"$c\": 1, \"\": 2, \"a.b\": 3, \"_id\": [1]}", NULL, NULL);
    assert_check(&definition, "{\"a\": {\"spill\": 1, \"productId\": 2, \"elementId\": 3}}", NULL,
                 NULL);
    assert_check(&definition, "{\"a\": 1, \"spill\": 1}", NULL, "cannot have a field 'spill'");
    assert_check(&definition, "{\"productId\": 1}", NULL, "define another --page-owner");
    assert_check(&definition, "{\"elementId\": 1}", NULL, "define another --element-id-field");
    assert_check(&definition, "{\"elementId\": 1, \"_id\": 2}", NULL, "'elementId'");
}

static void removed_field_is_not_refused(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId");
    assert_check(&definition, "{\"productId\": 1, \"a\": 2}", "productId", NULL);
    assert_check(&definition, "{\"productId\": 1, \"spill\": 2}", "productId", "'spill'");
}

static void id_needs_element_id_field(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("");
    assert_check(&definition, "{\"_id\": 1}", NULL, "the definition has no elementIdField");
    assert_check(&definition, "{\"elementId\": 1, \"\": 2}", NULL, NULL);
}

static void element_must_be_document(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId");
    spill_error_t error;
    bson_t storage = BSON_INITIALIZER;
    spill_value_t number = spill_value_from_int64(&storage, 7);
    assert_int_equal(spill_stored_element_check(&definition, &number, NULL, &error), SPILL_INVALID);
    assert_non_null(strstr(error.message, "must be a document"));
    bson_destroy(&storage);
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void assert_path(const spill_definition_t *definition, const char *path, const char *stored)
{
    char buffer[SPILL_STORED_PATH_SIZE];
    spill_stored_element_path(definition, path, buffer);
    assert_string_equal(buffer, stored);
}

static void paths_into_the_id_are_renamed(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId"), without = reviews("");
    assert_path(&definition, "_id", "elementId");
    assert_path(&definition, "_id.n.0", "elementId.n.0");
    assert_path(&definition, "_idea", "_idea");
    assert_path(&definition, "by._id", "by._id");
    assert_path(&definition, "", "");
    assert_path(&without, "_id", "_id");
    char longest[SPILL_NAME_SIZE] = "_id.", expected[SPILL_STORED_PATH_SIZE];
    memset(longest + 4, 'p', SPILL_NAME_SIZE - 5);
    memset(definition.element_id_field, 'e', SPILL_NAME_SIZE - 1);
    snprintf(expected, sizeof expected, "%s%s", definition.element_id_field, longest + 3);
    assert_path(&definition, longest, expected);
}

static void paths_into_the_documents_own_fields_are_reserved(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId"), without = reviews("");
    assert_false(spill_stored_element_reserves(&definition, "_id"));
    assert_false(spill_stored_element_reserves(&definition, ""));
    assert_false(spill_stored_element_reserves(&definition, "spilled"));
    assert_true(spill_stored_element_reserves(&definition, "elementId"));
    assert_true(spill_stored_element_reserves(&definition, "elementId.x"));
    assert_true(spill_stored_element_reserves(&definition, "spill.first"));
    assert_true(spill_stored_element_reserves(&definition, "productId"));
    assert_true(spill_stored_element_reserves(&without, "_id.x"));
    assert_false(spill_stored_element_reserves(&without, "elementId"));
    assert_false(spill_stored_element_reserves(&without, ""));
}

/* ---- documents ------------------------------------------------------------------------------- */

/* Make a document with the element, as the stores do. */
static void make_document(const spill_definition_t *definition, const bson_t *element,
                          bson_t *document)
{
    spill_value_t value = spill_value_from_document(element);
    bson_init(document);
    BCON_APPEND(document, "_id", "{", "owner", "p1", "page", BCON_INT32(0), "}",
                definition->page_owner, "p1");
    spill_stored_element_append(definition, &value, document);
    BCON_APPEND(document, "spill", "{", "first", BCON_INT64(0), "}");
}

static void assert_round_trip(const spill_definition_t *definition, const bson_t *element)
{
    bson_t document, back;
    spill_value_t value;
    make_document(definition, element, &document);
    assert_true(spill_stored_element_read(definition, &document, &back, &value));
    assert_int_equal(value.size_bytes, element->len);
    assert_memory_equal(value.data, bson_get_data(element), element->len);
    bson_destroy(&back);
    bson_destroy(&document);
}

static void id_keeps_its_position(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId");
    bson_t *element = document_from_json("{\"a\": 1, \"_id\": {\"_id\": 2}, \"$c\": 3, \"\": 4}"),
           document;
    make_document(&definition, element, &document);
    char *json = bson_as_relaxed_extended_json(&document, NULL);
    assert_string_equal(json,
                        "{ \"_id\" : { \"owner\" : \"p1\", \"page\" : 0 }, \"productId\" : \"p1\", "
                        "\"a\" : 1, \"elementId\" : { \"_id\" : 2 }, \"$c\" : 3, \"\" : 4, "
                        "\"spill\" : { \"first\" : 0 } }");
    assert_round_trip(&definition, element);
    bson_free(json);
    bson_destroy(&document);
    bson_destroy(element);
}

/* Names of every kind, values of every type, the _id anywhere or absent. */
static void random_elements_round_trip(void **state)
{
    (void)state;
    static const char *const names[] = {"_id", "a", "$c", "", "a.b", "_ide", "id", "elementI"};
    const char *const fields[] = {"elementId", "e", ""};
    random_source_t random = {.state = 1};
    for (int i = 0; i < 3000; i++) {
        spill_definition_t definition = reviews(fields[i % 3]);
        bson_t element = BSON_INITIALIZER;
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const char *name = names[(k + (size_t)i) % (sizeof names / sizeof *names)];
            bool none = definition.element_id_field[0] == '\0' && strcmp(name, "_id") == 0;
            if (!none && random_below(&random, 3) != 0)
                random_append(&random, &element, name);
        }
        assert_round_trip(&definition, &element);
        bson_destroy(&element);
    }
}

/* With the id_field "." every element is stored whole, a document too. */
static void element_that_is_its_id_is_stored_whole(void **state)
{
    (void)state;
    char path[SPILL_STORED_PATH_SIZE];
    spill_definition_t definition = reviews("elementId");
    strcpy(definition.id_field, ".");
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_OK);
    random_source_t random = {.state = 7};
    for (int i = 0; i < 500; i++) {
        bson_t holder = BSON_INITIALIZER, document, memory;
        bson_iter_t iter;
        spill_value_t value;
        random_append(&random, &holder, "spill");
        assert_true(bson_iter_init_find(&iter, &holder, "spill"));
        spill_value_t element = spill_value_from_iter(&iter);
        assert_int_equal(spill_stored_element_check(&definition, &element, NULL, NULL), SPILL_OK);
        bson_init(&document);
        BCON_APPEND(&document, "_id", BCON_INT32(1), "productId", "p1");
        uint32_t before = document.len;
        spill_stored_element_append(&definition, &element, &document);
        assert_int_equal(document.len - before,
                         spill_stored_element_growth(&definition) + element.size_bytes);
        assert_true(spill_stored_element_read(&definition, &document, &memory, &value));
        assert_true(spill_value_equal(&value, &element));
        bson_destroy(&memory);
        bson_destroy(&document);
        bson_destroy(&holder);
    }
    spill_stored_element_path(&definition, ".", path);
    assert_string_equal(path, "elementId");
    spill_stored_element_path(&definition, "spill.first", path);
    assert_string_equal(path, "elementId.spill.first");
    assert_false(spill_stored_element_reserves(&definition, "spill.first"));
    spill_definition_t other = reviews("elementId");
    assert_false(spill_stored_element_same_rules(&definition, &other));
    definition.element_id_field[0] = '\0';
    assert_int_equal(spill_definition_check(&definition, NULL), SPILL_INVALID);
}

static void document_of_removed_element_has_none(void **state)
{
    (void)state;
    spill_definition_t definition = reviews("elementId");
    bson_t *document =
               document_from_json("{\"_id\": {\"owner\": \"p1\"}, \"spill\": {\"first\": 0}}"),
           element;
    spill_value_t value;
    assert_false(spill_stored_element_read(&definition, document, &element, &value));
    assert_true(bson_empty(&element));
    bson_destroy(&element);
    bson_destroy(document);
}

static void bytes_are_counted_with_the_longer_name(void **state)
{
    (void)state;
    const char *const fields[] = {"", "e", "eid", "elementId"};
    const int64_t growth[] = {0, 0, 0, 6};
    for (size_t i = 0; i < 4; i++) {
        spill_definition_t definition = reviews(fields[i]);
        assert_int_equal(spill_stored_element_growth(&definition), growth[i]);
    }
}

static void rules_are_names(void **state)
{
    (void)state;
    spill_definition_t left = reviews("elementId"), right = reviews("elementId");
    assert_true(spill_stored_element_same_rules(&left, &right));
    strcpy(right.page_owner, "other");
    assert_false(spill_stored_element_same_rules(&left, &right));
    right = reviews("");
    assert_false(spill_stored_element_same_rules(&left, &right));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_of_the_document_are_refused),
        cmocka_unit_test(removed_field_is_not_refused),
        cmocka_unit_test(id_needs_element_id_field),
        cmocka_unit_test(element_must_be_document),
        cmocka_unit_test(paths_into_the_id_are_renamed),
        cmocka_unit_test(paths_into_the_documents_own_fields_are_reserved),
        cmocka_unit_test(id_keeps_its_position),
        cmocka_unit_test(random_elements_round_trip),
        cmocka_unit_test(element_that_is_its_id_is_stored_whole),
        cmocka_unit_test(document_of_removed_element_has_none),
        cmocka_unit_test(bytes_are_counted_with_the_longer_name),
        cmocka_unit_test(rules_are_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
