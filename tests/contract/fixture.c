#include "fixture.h"

#include "bson/key.h"
#include "support/definition.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool contract_paths;
spill_array_order_t contract_order;

/* ---- a store and an array -------------------------------------------------------------------- */

void make_definition(spill_definition_t *definition, const char *name, spill_keep_t keep)
{
    spill_code_t code = spill_definition_preset(definition, "feed", name, NULL);
    assert_int_equal(code, SPILL_OK);
    definition->keep = keep;
    definition->order = contract_order;
    definition->op_window = 3;
    if (strcmp(name, "feed") == 0) {
        if (contract_paths)
            definition_put_in_document(definition, "stats");
        return;
    }
    /* Arrays of one collection share no other names. */
    snprintf(definition->array, SPILL_NAME_SIZE, "%s", name);
    snprintf(definition->count_field, SPILL_NAME_SIZE, "%sCount", name);
    snprintf(definition->overflow_field, SPILL_NAME_SIZE, "%sOverflow", name);
    snprintf(definition->pages_field, SPILL_NAME_SIZE, "%sPages", name);
    snprintf(definition->page_collection, SPILL_NAME_SIZE, "%sPages", name);
    if (contract_paths)
        definition_put_in_document(definition, "stats");
}

void make_bucket_definition(spill_definition_t *definition, const char *name)
{
    spill_code_t code = spill_definition_preset(definition, "reviews-bucket", name, NULL);
    assert_int_equal(code, SPILL_OK);
    definition->op_window = 3;
    definition->order = contract_order;
}

void save_definition(spill_store_t *store, const spill_definition_t *definition)
{
    bson_t document;
    spill_definition_to_bson(definition, &document);
    bool done = false;
    spill_code_t code = store->ops->catalog_put(store, SPILL_CATALOG_DEFINITION, definition->name,
                                                NULL, &document, &done, NULL);
    assert_int_equal(code, SPILL_OK);
    assert_true(done);
    bson_destroy(&document);
}

void fixture_open(fixture_t *fixture, const contract_kind_t *kind, spill_keep_t keep)
{
    fixture_open_with_ids(fixture, kind, keep, "");
}

void fixture_open_with_ids(fixture_t *fixture, const contract_kind_t *kind, spill_keep_t keep,
                           const char *id_field)
{
    spill_definition_t definition;
    make_definition(&definition, "feed", keep);
    snprintf(definition.id_field, SPILL_NAME_SIZE, "%s", id_field);
    fixture_open_with(fixture, kind, &definition);
}

void fixture_open_with(fixture_t *fixture, const contract_kind_t *kind,
                       const spill_definition_t *definition)
{
    *fixture = (fixture_t){.kind = kind, .store = kind->open(), .definition = *definition};
    save_definition(fixture->store, &fixture->definition);
    spill_code_t code =
        fixture->store->ops->bind(fixture->store, &fixture->definition, &fixture->binding, NULL);
    assert_int_equal(code, SPILL_OK);
    bson_init(&fixture->owner_storage);
    fixture_owner(fixture, "ada");
}

void fixture_reopen(fixture_t *fixture)
{
    if (fixture->kind->reopen)
        fixture->store = fixture->kind->reopen(fixture->store);
}

void fixture_close(fixture_t *fixture)
{
    spill_response_release(&fixture->response);
    spill_buffer_release(&fixture->key);
    bson_destroy(&fixture->owner_storage);
    fixture->kind->close(fixture->store);
}

void fixture_owner(fixture_t *fixture, const char *name)
{
    bson_reinit(&fixture->owner_storage);
    fixture->owner = spill_value_from_utf8(&fixture->owner_storage, name);
    spill_buffer_clear(&fixture->key);
    assert_int_equal(spill_owner_key(&fixture->owner, &fixture->key, NULL), SPILL_OK);
}

/* ---- requests -------------------------------------------------------------------------------- */

spill_request_t make_request(const fixture_t *fixture, spill_request_kind_t kind, int64_t page)
{
    return (spill_request_t){
        .kind = kind,
        .definition = &fixture->definition,
        .array_id = fixture->binding.array_id,
        .collection_id = fixture->binding.collection_id,
        .owner = &fixture->owner,
        .key = fixture->key.data,
        .key_bytes = fixture->key.size,
        .page = page,
        .incarnation = INCARNATION,
        .limits = {.slots_max = INT64_MAX, .bytes_max = INT64_MAX},
    };
}

spill_request_t make_append(const fixture_t *fixture, int64_t page, const spill_value_t *elements,
                            size_t count)
{
    spill_request_t append = make_request(fixture, SPILL_REQUEST_APPEND, page);
    append.append.elements = elements;
    append.append.element_count = count;
    for (size_t i = 0; i < count; i++)
        append.append.elements_bytes += elements[i].size_bytes;
    return append;
}

spill_outcome_t call(fixture_t *fixture, const spill_request_t *request)
{
    spill_error_t error = {.message = ""};
    spill_code_t code = spill_store_call(fixture->store, request, &fixture->response, &error);
    if (code != SPILL_OK)
        fail_msg("%s: %s: %s", spill_request_kind_name(request->kind), spill_code_name(code),
                 error.message);
    return fixture->response.outcome;
}

spill_value_t number_value(const int64_t *number)
{
    return (spill_value_t){
        .data = (const uint8_t *)number, .size_bytes = sizeof *number, .type = BSON_TYPE_INT64};
}

spill_value_t text_value(uint32_t size_bytes, char fill)
{
    assert_true(size_bytes >= 5);
    uint8_t *data = bson_malloc(size_bytes);
    uint32_t length = BSON_UINT32_TO_LE(size_bytes - 4);
    memcpy(data, &length, 4);
    memset(data + 4, fill, size_bytes - 5);
    data[size_bytes - 1] = 0;
    return (spill_value_t){.data = data, .size_bytes = size_bytes, .type = BSON_TYPE_UTF8};
}

static void append_to(fixture_t *fixture, int64_t page, int64_t incarnation, int64_t label,
                      size_t count)
{
    int64_t numbers[64];
    spill_value_t values[64];
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = label + (int64_t)i;
        values[i] = number_value(&numbers[i]);
    }
    spill_request_t append = make_append(fixture, page, values, count);
    append.create = page == SPILL_HEAD;
    append.incarnation = incarnation;
    assert_done(fixture, &append);
}

void append_numbers(fixture_t *fixture, int64_t page, int64_t label, size_t count)
{
    append_to(fixture, page, INCARNATION, label, count);
}

void begin_again(fixture_t *fixture, int64_t label, size_t count)
{
    append_to(fixture, SPILL_HEAD, INCARNATION + 50, label, count);
}

void make_empty_head(fixture_t *fixture)
{
    spill_request_t request = make_request(fixture, SPILL_REQUEST_UPDATE_FIELDS, SPILL_HEAD);
    request.create = true;
    assert_done(fixture, &request);
}

void drop_head(fixture_t *fixture, int64_t incarnation, int64_t pages)
{
    spill_request_t drop = make_request(fixture, SPILL_REQUEST_DROP_HEAD, SPILL_HEAD);
    drop.incarnation = incarnation;
    drop.drop_head.pages = pages;
    assert_done(fixture, &drop);
}

/* ---- spilling -------------------------------------------------------------------------------- */

/* Read the head's state and its elements in slots below `slots`. */
static void read_oldest(fixture_t *fixture, int64_t slots, spill_state_t *head, spill_run_t *run)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = slots;
    assert_done(fixture, &read);
    spill_state_copy(&fixture->response.state, head);
    int64_t end = head->first + slots;
    spill_seqs_keep_below(&head->deleted, end);
    for (size_t i = 0; i < fixture->response.run.count; i++) {
        spill_element_t element = spill_run_element(&fixture->response.run, i);
        if (element.seq < end)
            spill_run_add(run, element.seq, &element.value);
    }
}

spill_outcome_t put_from_head(fixture_t *fixture, int64_t page, int64_t slots)
{
    spill_state_t head = {0};
    spill_run_t run = {0};
    read_oldest(fixture, slots, &head, &run);
    spill_request_t put = make_request(fixture, SPILL_REQUEST_PUT_PAGE, page);
    put.incarnation = head.incarnation;
    put.put_page.source_rev = head.rev;
    put.put_page.first = head.first;
    put.put_page.slots = slots;
    put.put_page.run = &run;
    put.put_page.deleted = &head.deleted;
    spill_outcome_t outcome = call(fixture, &put);
    spill_run_release(&run);
    spill_state_release(&head);
    return outcome;
}

spill_outcome_t cut_from_head(fixture_t *fixture, int64_t page)
{
    spill_request_t read = make_request(fixture, SPILL_REQUEST_READ, page);
    assert_done(fixture, &read);
    spill_request_t cut = make_request(fixture, SPILL_REQUEST_CUT, SPILL_HEAD);
    cut.incarnation = fixture->response.state.incarnation;
    cut.cut.pages = page;
    cut.rev = fixture->response.state.source_rev;
    cut.cut.slots = spill_state_slots(&fixture->response.state);
    cut.cut.bytes = fixture->response.state.live_bytes;
    return call(fixture, &cut);
}

void spill_page(fixture_t *fixture, int64_t page, int64_t slots)
{
    assert_int_equal(put_from_head(fixture, page, slots), SPILL_DONE);
    assert_int_equal(cut_from_head(fixture, page), SPILL_DONE);
}

void leave_page(fixture_t *fixture, int64_t slots)
{
    append_numbers(fixture, SPILL_HEAD, 100, (size_t)slots + 1);
    spill_page(fixture, 0, slots);
    drop_head(fixture, INCARNATION, 1);
}

/* ---- the store's own check ------------------------------------------------------------------- */

static void count_finding(void *context, const spill_store_finding_t *finding)
{
    print_error("page %lld, I%d: %s\n", (long long)finding->page, finding->invariant,
                finding->text);
    ++*(int *)context;
}

void assert_sound(fixture_t *fixture)
{
    int findings = 0;
    if (!fixture->store->ops->check)
        return;
    assert_int_equal(fixture->store->ops->check(fixture->store, &fixture->binding,
                                                &fixture->definition, &fixture->owner,
                                                count_finding, &findings, NULL),
                     SPILL_OK);
    assert_int_equal(findings, 0);
}
