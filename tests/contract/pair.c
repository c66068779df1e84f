#include "pair.h"

#include "bson/key.h"
#include "support/definition.h"
#include "support/model_store.h"
#include "support/state.h"

#include <stdio.h>

static void make_referenced_definition(spill_definition_t *definition, const char *name, bool top)
{
    const char *preset = top ? "reviews-subset" : "reviews-separate";
    assert_int_equal(spill_definition_preset(definition, preset, name, NULL), SPILL_OK);
    definition->op_window = 3;
    snprintf(definition->collection, SPILL_NAME_SIZE, "%sHeads", name);
    snprintf(definition->page_collection, SPILL_NAME_SIZE, "%sElements", name);
}

void pair_open(pair_t *pair, const contract_kind_t *kind)
{
    *pair = (pair_t){.kind = kind};
    pair->stores[0] = model_store_open();
    pair->stores[1] = kind->open();
    static const char *const names[PAIR_ALL] = {"feed", "likes",   "log",     "buckets",
                                                "last", "highest", "reviews", "best"};
    bool paths = contract_paths;
    /*
     * Two of them are in one sub-document of the same heads: "stats.activities" and "stats.log".
     * The array "stats_activities" is beside it.
     */
    static const bool has_path[PAIR_ALL] = {
        [0] = true, [2] = true, [PAIR_BUCKETS] = true, [PAIR_TOP_N] = true, [PAIR_SUBSET] = true};
    for (size_t i = 0; i < PAIR_ALL; i++) {
        spill_definition_t *definition = &pair->definitions[i];
        contract_paths = false;
        make_definition(definition, names[i], i == 2 ? SPILL_KEEP_OLDEST : SPILL_KEEP_NEWEST);
        if (pair_is_capped(i))
            spill_definition_set_layout(definition, SPILL_LAYOUT_CAPPED);
        if (i == PAIR_TOP_N)
            strcpy(definition->sort_field, "rating");
        if (i == PAIR_BUCKETS)
            make_bucket_definition(definition, names[i]);
        else if (i == PAIR_REFERENCE || i == PAIR_SUBSET)
            make_referenced_definition(definition, names[i], i == PAIR_SUBSET);
        else if (kind->shows_other_arrays)
            snprintf(definition->collection, SPILL_NAME_SIZE, "%sHeads", names[i]);
        contract_paths = paths;
        if (paths && i == 1)
            strcpy(definition->array, "stats_activities");
        if (paths && has_path[i])
            definition_put_in_document(definition, i == PAIR_BUCKETS ? "inner" : "stats");
        for (size_t k = 0; k < 2; k++) {
            save_definition(pair->stores[k], definition);
            spill_code_t code = pair->stores[k]->ops->bind(pair->stores[k], definition,
                                                           &pair->bindings[k][i], NULL);
            assert_int_equal(code, SPILL_OK);
        }
        if (i >= PAIR_ARRAYS) /* the summary cannot hold its larger elements */
            definition->bounds.head_bytes_max = 1600;
    }
    for (size_t i = 0; i < 2 * PAIR_OWNERS; i++) {
        bson_init(&pair->owner_storage[i]);
        pair->owners[i] = spill_value_from_int64(&pair->owner_storage[i], (int64_t)i);
        bson_t number = BSON_INITIALIZER;
        spill_value_t owner = spill_value_from_int64(&number, (int64_t)i);
        if (i >= PAIR_OWNERS)
            pair->owners[i] = spill_bucket_name(&pair->owner_storage[i], &owner, "2026-03");
        bson_destroy(&number);
        assert_int_equal(spill_owner_key(&pair->owners[i], &pair->keys[i], NULL), SPILL_OK);
    }
}

void pair_reopen(pair_t *pair)
{
    if (pair->kind->reopen)
        pair->stores[1] = pair->kind->reopen(pair->stores[1]);
}

void pair_close(pair_t *pair)
{
    for (size_t i = 0; i < 2 * PAIR_OWNERS; i++) {
        bson_destroy(&pair->owner_storage[i]);
        spill_buffer_release(&pair->keys[i]);
    }
    for (size_t k = 0; k < 2; k++)
        spill_response_release(&pair->responses[k]);
    spill_store_close(pair->stores[0], NULL);
    pair->kind->close(pair->stores[1]);
}

spill_request_t pair_request(const pair_t *pair, size_t array, size_t owner,
                             spill_request_kind_t kind, int64_t page)
{
    owner += array == PAIR_BUCKETS ? PAIR_OWNERS : 0;
    return (spill_request_t){
        .kind = kind,
        .definition = &pair->definitions[array],
        .owner = &pair->owners[owner],
        .key = pair->keys[owner].data,
        .key_bytes = pair->keys[owner].size,
        .page = page,
        .limits = {.slots_max = INT64_MAX, .bytes_max = INT64_MAX},
    };
}

/* ---- equal answers --------------------------------------------------------------------------- */

static void compare_runs(const spill_run_t *left, const spill_run_t *right)
{
    assert_int_equal(left->count, right->count);
    for (size_t i = 0; i < left->count; i++) {
        spill_element_t one = spill_run_element(left, i), other = spill_run_element(right, i);
        assert_int_equal(one.seq, other.seq);
        assert_true(spill_value_equal(&one.value, &other.value));
    }
}

static void compare_entries(const spill_op_entry_t *left, const spill_op_entry_t *right)
{
    assert_int_equal(left->ordinal, right->ordinal);
    assert_int_equal(left->seq, right->seq);
    assert_int_equal(left->count, right->count);
    assert_int_equal(left->id_bytes, right->id_bytes);
    assert_memory_equal(left->id, right->id, left->id_bytes);
}

static void compare_responses(const spill_request_t *request, const spill_response_t *left,
                              const spill_response_t *right)
{
    if (left->outcome != right->outcome)
        fail_msg("%s of page %d: %d in the model store, %d in the other",
                 spill_request_kind_name(request->kind), (int)request->page, left->outcome,
                 right->outcome);
    bool read = request->kind == SPILL_REQUEST_READ;
    if (!read && (request->kind != SPILL_REQUEST_APPEND || left->outcome != SPILL_DONE))
        return;
    if (!read) {
        assert_same_numbers(&left->state, &right->state);
        assert_int_equal(left->seq, right->seq);
        return;
    }
    assert_same_state(&left->state, &right->state);
    compare_runs(&left->run, &right->run);
    if (!left->state.intent_edit) /* in some stores it is a view of the element as it will be */
        compare_runs(&left->top_run, &right->top_run);
    assert_true(spill_top_equal(&left->top_n, &right->top_n));
    assert_int_equal(left->op_found, right->op_found);
    if (left->op_found)
        compare_entries(&left->op, &right->op);
    assert_int_equal(left->ops.count, right->ops.count);
    for (size_t i = 0; i < left->ops.count; i++)
        compare_entries(&left->ops.entries[i], &right->ops.entries[i]);
    assert_int_equal(left->fields != NULL, right->fields != NULL);
    if (left->fields)
        assert_true(bson_equal(left->fields, right->fields));
}

spill_code_t pair_call(pair_t *pair, size_t array, const spill_request_t *request)
{
    spill_code_t codes[2];
    spill_error_t errors[2] = {{.message = ""}, {.message = ""}};
    for (size_t k = 0; k < 2; k++) {
        spill_request_t mine = *request;
        mine.array_id = pair->bindings[k][array].array_id;
        mine.collection_id = pair->bindings[k][array].collection_id;
        codes[k] = spill_store_call(pair->stores[k], &mine, &pair->responses[k], &errors[k]);
    }
    /* The update is impossible. A store that refuses the request need not detect that. */
    if (codes[0] == SPILL_INVALID && codes[1] == SPILL_OK && spill_request_update(request) &&
        pair->responses[1].outcome == SPILL_REFUSED_GUARD)
        return codes[0];
    if (codes[0] != codes[1])
        fail_msg("%s of page %d: %s in the model store (%s), %s in the other (%s)",
                 spill_request_kind_name(request->kind), (int)request->page,
                 spill_code_name(codes[0]), errors[0].message, spill_code_name(codes[1]),
                 errors[1].message);
    if (codes[0] != SPILL_OK)
        return codes[0];
    compare_responses(request, &pair->responses[0], &pair->responses[1]);
    if (pair->responses[0].outcome == SPILL_DONE)
        pair->done[request->kind]++;
    else
        pair->refused[request->kind]++;
    return SPILL_OK;
}

void pair_compare(pair_t *pair, size_t array, size_t owner)
{
    spill_request_t read = pair_request(pair, array, owner, SPILL_REQUEST_READ, SPILL_HEAD);
    read.read.want = SPILL_WANT_FORWARD;
    read.read.limit = INT64_MAX;
    read.read.want_fields = true;
    assert_int_equal(pair_call(pair, array, &read), SPILL_OK);
    spill_state_t head = pair->responses[0].state;
    /* Compare only the tail's window: a store may keep one window for all documents. */
    bool newest = pair->definitions[array].keep == SPILL_KEEP_NEWEST;
    read.read.want_ops = newest || head.pages == 0;
    if (read.read.want_ops)
        assert_int_equal(pair_call(pair, array, &read), SPILL_OK);
    for (read.page = 0; !pair_is_capped(array) && read.page < PAIR_PAGES; read.page++) {
        read.read.want = SPILL_WANT_NONE;
        read.read.want_ops = false;
        assert_int_equal(pair_call(pair, array, &read), SPILL_OK);
        const spill_state_t *page = &pair->responses[0].state;
        if (!head.present || page->incarnation != head.incarnation || read.page >= head.pages ||
            spill_state_end(page) <= head.watermark)
            continue;
        read.read.want_ops = newest || read.page == head.pages - 1;
        read.read.want = SPILL_WANT_BACKWARD;
        read.read.seq = INT64_MAX;
        assert_int_equal(pair_call(pair, array, &read), SPILL_OK);
    }
}
