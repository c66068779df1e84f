/* Documents become elements: each row has a document, the options, and the items or the error. */
#include "tools/import/import_elements.h"

#include "bson/value.h"

#include "../support/document.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Append the value's JSON without its spaces. */
static void append_json(bson_string_t *text, const spill_value_t *value)
{
    char *json = spill_value_to_json(value, false);
    for (const char *at = json; *at != '\0'; at++)
        if (*at != ' ')
            bson_string_append_printf(text, "%c", *at);
    bson_free(json);
}

/* The items as text: "OWNER=ELEMENT", or "OWNER+UPDATE"; then "?N" if N arrays are missing. */
static char *items_of(spill_split_t *split, const bson_t *document, spill_error_t *error)
{
    bson_string_t *text = bson_string_new("");
    spill_input_item_t item;
    bool end = false;
    spill_code_t code = spill_split_begin(split, document, error);
    while (code == SPILL_OK) {
        code = spill_split_next(split, &item, &end, error);
        if (code != SPILL_OK || end)
            break;
        bson_string_append(text, text->len > 0 ? " " : "");
        append_json(text, &item.owner);
        bson_string_append(text, item.update ? "+" : "=");
        spill_value_t update = {0};
        if (item.update)
            update = spill_value_from_document(item.update);
        append_json(text, item.update ? &update : &item.element);
    }
    if (code != SPILL_OK) {
        assert_int_equal(code, SPILL_PARSE);
        bson_string_truncate(text, 0);
        bson_string_append(text, error->message);
    } else if (split->missing > 0) {
        bson_string_append_printf(text, " ?%d", (int)split->missing);
    }
    return bson_string_free(text, false);
}

typedef struct row {
    const char *json;
    spill_elements_options_t options;
    const char *expected;
} row_t;

#define OWNER .owner = "_id"

static const row_t rows[] = {
    {"{'_id':1,'a':5}", {OWNER}, "1={\"_id\":1,\"a\":5}"},
    {"{'_id':1,'a':[5,[6],{'b':7}]}", {OWNER, .array = "a"}, "1=5 1=[6] 1={\"b\":7}"},
    {"{'_id':1,'a':[5,6,7]}", {OWNER, .array = "a", .backwards = true}, "1=7 1=6 1=5"},
    {"{'_id':1,'a':[]}", {OWNER, .array = "a"}, ""},
    {"{'_id':1}", {OWNER, .array = "a"}, " ?1"},
    {"{'_id':1,'a':7}", {OWNER, .array = "a.b"}, " ?1"},
    {"{'_id':1,'a':null}", {OWNER, .array = "a"}, "'a' is no array"},
    {"{'a':[1]}", {OWNER, .array = "a"}, "the record has no field '_id'"},
    /* A field of exactly that name comes first. */
    {"{'_id':1,'a':{'b':[1]},'a.b':[2]}", {OWNER, .array = "a.b"}, "1=2"},
    {"{'_id':1,'a':{'b':{'c':[1]}}}", {OWNER, .array = "a.b.c"}, "1=1"},
    {"{'_id':1,'u':{'n':'x'},'a':[1]}", {.owner = "u.n", .array = "a"}, "\"x\"=1"},
    /* Other fields: sub-documents on the way to the array are passed. */
    {"{'_id':1,'x':2,'a':{'y':3,'b':[4],'z':{'w':5}}}",
     {OWNER, .array = "a.b", .fields = true},
     "1+{\"$set\":{\"x\":2,\"a.y\":3,\"a.z\":{\"w\":5}}} 1=4"},
    {"{'_id':1,'a':[]}", {OWNER, .array = "a", .fields = true}, ""},
    {"{'_id':1,'x':2}", {OWNER, .array = "a", .fields = true}, "1+{\"$set\":{\"x\":2}} ?1"},
    {"{'_id':1,'x.y':2,'a':[]}",
     {OWNER, .array = "a", .fields = true},
     "--fields cannot keep the field 'x.y': a head's field has a name without dots that does not "
     "begin with $"},
    /* Maps. */
    {"{'_id':1,'m':{'p.q':{'v':1},'':2,'r':[3]}}",
     {OWNER, .array = "m", .entries_as = "k"},
     "1={\"k\":\"p.q\",\"v\":1} 1={\"k\":\"\",\"value\":2} 1={\"k\":\"r\",\"value\":[3]}"},
    {"{'_id':1,'m':{'p':{'v':1},'q':{'k':2}}}",
     {OWNER, .array = "m", .entries_as = "k"},
     "the entry 'q' has a field 'k' already: give --entries-as another name"},
    {"{'_id':1,'m':{'p':1}}",
     {OWNER, .array = "m", .entries_as = "value"},
     "the entry 'p' has a field 'value' already: give --entries-as another name"},
    /* Inner arrays. */
    {"{'_id':1,'c':[{'_id':7,'m':[1,2]},{'m':[3]}]}",
     {OWNER, .array = "c.$.m", .inner = "at"},
     "{\"_id\":1,\"at\":0}=1 {\"_id\":1,\"at\":0}=2 {\"_id\":1,\"at\":1}=3"},
    {"{'_id':1,'c':[{'i':{'n':7},'m':[1]}]}",
     {OWNER, .array = "c.$.m", .inner = "at=i.n"},
     "{\"_id\":1,\"at\":7}=1"},
    {"{'_id':1,'c':{'x':{'l':{'m':[1]}},'y':{}}}",
     {OWNER, .array = "c.$.l.m", .inner = "at"},
     "{\"_id\":1,\"at\":\"x\"}=1 ?1"},
    {"{'_id':1,'c':[{'_id':7,'t':8,'m':[1]}]}",
     {OWNER, .array = "c.$.m", .inner = "at", .fields = true},
     "{\"_id\":1,\"at\":0}+{\"$set\":{\"t\":8}} {\"_id\":1,\"at\":0}=1"},
    {"{'_id':1,'c':[{'m':{'p':1}}]}",
     {OWNER, .array = "c.$.m", .inner = "at", .entries_as = "k"},
     "{\"_id\":1,\"at\":0}={\"k\":\"p\",\"value\":1}"},
    {"{'_id':1}", {OWNER, .array = "c.$.m", .inner = "at"}, " ?1"},
    {"{'_id':1,'c':[5]}", {OWNER, .array = "c.$.m", .inner = "at"}, "'0' in 'c' is no document"},
    {"{'_id':1,'c':[{'m':[1]}]}",
     {OWNER, .array = "c.m"},
     "'c' is an array, which 'c.m' cannot pass: write $ behind it, and use --owner-inner"},
};

static void documents_become_these_items(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *json = bson_strdup(rows[i].json);
        for (char *at = json; *at != '\0'; at++)
            *at = *at == '\'' ? '"' : *at;
        bson_t *document = document_from_json(json);
        spill_split_t split;
        spill_error_t error;
        assert_int_equal(spill_elements_check(&rows[i].options, &error), SPILL_OK);
        spill_split_init(&split, &rows[i].options);
        for (int again = 0; again < 2; again++) { /* the state of one document is not kept */
            char *items = items_of(&split, document, &error);
            assert_string_equal(items, rows[i].expected);
            bson_free(items);
        }
        spill_split_release(&split);
        bson_destroy(document);
        bson_free(json);
    }
}

static void an_error_names_the_owner_and_the_element(void **unused)
{
    (void)unused;
    static const spill_elements_options_t options = {OWNER, .array = "m", .entries_as = "k"};
    bson_t *document = document_from_json("{\"_id\": \"x\", \"m\": {\"p\": 1, \"q\": {\"k\": 2}}}");
    spill_split_t split;
    spill_error_t error;
    spill_split_init(&split, &options);
    bson_free(items_of(&split, document, &error));
    assert_int_equal(spill_split_fail(&split, SPILL_PARSE, &error), SPILL_PARSE);
    assert_string_equal(error.message, "owner \"x\", element 1: the entry 'q' has a field 'k' "
                                       "already: give --entries-as another name");
    spill_split_release(&split);
    bson_destroy(document);
}

static void contradicting_options_are_refused(void **unused)
{
    (void)unused;
    static const spill_elements_options_t wrong[] = {
        {OWNER, .fields = true},
        {OWNER, .entries_as = "k"},
        {OWNER, .inner = "k"},
        {OWNER, .array = ""},
        {OWNER, .array = "a", .entries_as = ""},
        {OWNER, .array = "a.$.b"},
        {OWNER, .array = "a.b", .inner = "k"},
        {OWNER, .array = "a.$.b.$.c", .inner = "k"},
        {OWNER, .array = "a.$.b", .inner = "_id"},
        {OWNER, .array = "a.$.b", .inner = "k="},
        {OWNER, .array = "a.$.b", .inner = "=k"},
        {OWNER, .array = "a.$.b", .inner = "k.l"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        spill_error_t error;
        assert_int_equal(spill_elements_check(&wrong[i], &error), SPILL_INVALID);
        assert_true(strlen(error.message) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_these_items),
        cmocka_unit_test(an_error_names_the_owner_and_the_element),
        cmocka_unit_test(contradicting_options_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
